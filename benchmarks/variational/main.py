"""How often intervals and bounds of the variational error hold, also under calibration."""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax

from sklearn_calib.decomposition import (
    _variational as kit,
    variational_calibration_interval,
)
from sklearn_calib.decomposition._intervals import estimate_mean_sampling_error
from sklearn_calib.metrics import validate_predictions

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LEVEL = 0.95
# name: (classes, law, multiclass, recalibrator, norm)
CASES = {
    "two classes": (2, "auto", None, 1.0),
    "two classes, spline": (2, "auto", "spline", 1.0),
    "five classes, confidence": (5, "confidence", None, 1.0),
    "five classes, classwise": (5, "classwise", None, 1.0),
    "five classes, vectors, norm 1": (5, "canonical", None, 1.0),
    "five classes, vectors, norm 2": (5, "canonical", None, 2.0),
}
LAWS = {
    2: ("calibrated", "1 % calibrated", "power 1.5", "overconfident", "underconfident")
}
LAWS[5] = ("calibrated", "overconfident", "underconfident")
# rounds of so many draws; `run.py variational 1` runs the first round of each
DRAWS = {
    "two classes": {500: (4, 100), 2000: (4, 75), 20_000: (10, 20)},
    "five classes, confidence": {500: (4, 100), 2000: (4, 75), 20_000: (10, 20)},
    "five classes, vectors, norm 1": {500: (4, 60), 2000: (4, 40), 20_000: (10, 8)},
    "five classes, classwise": {2000: (4, 40)},
    "five classes, vectors, norm 2": {2000: (4, 30)},
    "two classes, spline": {2000: (4, 25)},
}
JOBS = [
    (case, law, n, batch, draws)
    for case, sizes in DRAWS.items()
    for n, (batches, draws) in sizes.items()
    for law in LAWS[CASES[case][0]]
    for batch in range(batches)
]
SHOWN = (
    "case",
    "law",
    "n",
    "draws",
    "true",
    "value",
    "interval above",
    "interval below",
)
SHOWN += ("bound above the truth", "naive bound above it")
PARTIAL = HERE / "rounds.partial.jsonl"


def draw(law, k, n, rng):
    """Predictions and true probabilities, of the second class of two or of all classes."""
    slope = {"overconfident": 1 / 1.5, "underconfident": 1.5}.get(law, 1.0)
    if k > 2:
        z = 1.5 * rng.normal(size=(n, k))
        return softmax(z, axis=1), softmax(slope * z, axis=1)
    if law == "power 1.5":
        f = rng.random(n)
        return f, f**1.5
    z = 1.5 * rng.normal(size=n) - 5.5 * law.startswith("1 %")
    return expit(z), expit(slope * z)


def labels(truth, rng):
    if truth.ndim == 1:
        return (rng.random(len(truth)) < truth).astype(int)
    below = rng.random(len(truth))[:, None] > truth.cumsum(axis=1)
    return below.sum(axis=1).clip(max=truth.shape[1] - 1)


def questions_of(case, multiclass, truth):
    """What is asked, and its residuals with the truth in the place of the labels."""
    both = np.column_stack([1 - truth, truth]) if truth.ndim == 1 else truth
    if multiclass == "canonical":
        question = kit._make_vector_variational_input(case)
        key = kit._number_rows_by_sorted_values(question.proba)
        return [
            (
                question,
                key,
                question._replace(
                    compute_residuals_by_compared_class=both - question.score
                ),
            )
        ]
    found = []
    for number, problem in enumerate(case.problems(multiclass)):
        question = kit._make_binary_variational_input(problem)
        if multiclass == "confidence":
            mean = both[np.arange(len(both)), case.proba.argmax(axis=1)]
        else:
            mean = both[:, 1] if multiclass == "auto" else both[:, number]
        key = (
            kit._number_rows_by_sorted_values(case.proba)
            if multiclass == "classwise"
            else problem.cell_indices
        )
        true = question._replace(
            compute_residuals_by_compared_class=mean[:, None] - question.score
        )
        found.append((question, key, true))
    return found


def terms(asked, norm, method, sequential):
    """t of each row, and its mean given the predictions and the fit."""
    found = []
    for question, key, true in asked:
        pairs = kit._make_folds_if_several_predictions(question, key, 5)
        if sequential:
            tests = [test for _, test in pairs]
            pairs = [
                (np.concatenate(tests[:j]), tests[j]) for j in range(1, len(tests))
            ]
        parts = []
        for train, test in pairs:
            fitted = kit._predict_test_rows(method, question, train, test)
            parts.append(
                [
                    kit._compute_estimate_term_by_row(q, test, fitted, norm, None)
                    for q in (question, true)
                ]
            )
        found.append(np.concatenate(parts, axis=1))
    return np.mean(found, axis=0)


def lower(t):
    law = estimate_mean_sampling_error(t, w := np.full(len(t), 1 / len(t)), w**2)
    return max(law.compute_interval(2 * LEVEL - 1)[0], 0.0)


def values(case, law, n, batch, draws):
    """Estimates, errors and ends of each draw."""
    k, multiclass, method, norm = CASES[case]
    plain = method or ("default" if multiclass == "canonical" else "isotonic")
    out = []
    for number in range(draws):
        rng = np.random.default_rng([n, batch, number, len(law), k])
        f, truth = draw(law, k, n, rng)
        given = {"norm": norm, "recalibrator": method, "multiclass": multiclass}
        y = labels(truth, rng)
        found = variational_calibration_interval(
            y, f, labels=np.arange(k), level=LEVEL, **given
        )
        asked = questions_of(
            validate_predictions(y, f, labels=np.arange(k)), multiclass, truth
        )
        t, mean = terms(asked, norm, plain, True)
        if not abs(lower(t) - found.lower_bound) < 1e-12:
            raise AssertionError(f"{case}: {lower(t)} and {found}")
        row = [
            found.value,
            found.low,
            found.high,
            found.lower_bound,
            found.standard_error,
        ]
        row += [t.mean(), mean.mean()]
        naive = terms(asked, norm, plain, False)[0]
        row += [naive.std() / n**0.5, lower(naive)]
        out.append([float(number) for number in row])
    return [out]


def true_error(case, law):
    """By 100,000 rows."""
    k, multiclass, _, norm = CASES[case]
    f, c = draw(law, k, 10**5, np.random.default_rng(0))
    gap = np.abs(f - c)
    if multiclass == "canonical":
        return float(np.linalg.norm(gap, ord=norm, axis=1).mean())
    # the frequency given the largest probability: in narrow bins
    if multiclass == "confidence":
        top, rows = f.argmax(axis=1), np.arange(len(f))
        order = np.argsort(f[rows, top])
        off = (f[rows, top] - c[rows, top])[order]
        return float(np.mean([abs(part.mean()) for part in np.array_split(off, 100)]))
    if multiclass == "classwise":
        off = np.take_along_axis(f - c, np.argsort(f, axis=0), axis=0)
        return float(
            np.mean([np.abs(part.mean(axis=0)) for part in np.array_split(off, 100)])
        )
    return float(gap.mean())


def rows_of(case, law, n, found):
    value, low, high, bound, se, middle, target, naive_se, naive_bound = found.T
    truth = true_error(case, law)
    row = {
        "case": case,
        "law": law,
        "n": n,
        "draws": len(found),
        "true": f"{truth:.4f}",
    }
    row |= {"value": f"{value.mean():.4f}", "sd": f"{value.std(ddof=1):.4f}"}
    row["naive se"] = f"{naive_se.mean():.4f}"
    row |= {
        "target": f"{target.mean():.4f}",
        "sd of middle": f"{(middle - target).std(ddof=1):.4f}",
    }
    row["se"] = f"{se.mean():.4f}"
    row["interval above"] = f"{100 * (low > target).mean():.1f}"
    row["interval below"] = f"{100 * (high < target).mean():.1f}"
    row["bound above the truth"] = f"{100 * (bound > truth).mean():.1f}"
    row["naive bound above it"] = f"{100 * (naive_bound > truth).mean():.1f}"
    return row


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else np.inf
    lines = PARTIAL.read_text(encoding="utf-8").splitlines() if PARTIAL.exists() else []
    done = {tuple(json.loads(line)[0]) for line in lines}
    jobs = sorted(
        (job for job in JOBS if job[3] < rounds or job in done), key=lambda job: job[3]
    )
    found = {}
    drawn = runner.rounds(PARTIAL, jobs, values)
    for job, part in zip(jobs, drawn, strict=True):
        found.setdefault(job[:3], []).append(np.array(part))
    order = {job[:3]: number for number, job in enumerate(JOBS)}
    found = sorted(found.items(), key=lambda item: order[item[0]])
    rows = [rows_of(*key, np.concatenate(parts)) for key, parts in found]
    runner.write(HERE / "results.csv", rows)
    shown = [{name: row[name] for name in SHOWN} for row in rows]
    runner.write(HERE / "summary.csv", shown, list(SHOWN))
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
