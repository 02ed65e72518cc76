"""Coverage of the intervals of `validation_summary`, and the size of `polynomial_test`."""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import polynomial_test, validation_summary

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LEVEL = 0.95
#: Scale and mean of the log-odds z; intercept and slope of the truth.
LAWS = {
    "calibrated": (1.0, 0.0, 0.0, 1.0),
    "overconfident": (1.5, 0.0, 0.3, 0.7),
    "rare, too low": (1.0, -2.5, 0.4, 1.2),
}
TESTED = {"normal": (1.5, 0.0), "narrow": (0.5, -1.0), "rare": (1.0, -3.0)}
LINES = [
    ("lines", law, kind, n, 400 if n == 2000 else 1000)
    for law in LAWS
    for kind in ("profile", "wald", "sandwich", "weights")
    for n in (100, 500, 2000)
]
SIZES = [
    ("size", law, rows, n, 1000)
    for law in TESTED
    for rows in ("held out", "of the fit")
    for n in (100, 300, 2000)
]


def drawn(law, n, rng):
    """Log-odds and true probabilities."""
    scale, mean, a, b = LAWS[law]
    z = mean + scale * rng.normal(size=n)
    return z, expit(a + b * z)


def weights(z, rng):
    """Up to ten times as much for some, and more where the event is likely."""
    return rng.choice([0.2, 1.0, 2.0], len(z)) * (1 + expit(z))


def truths(law, kind):
    """O/E and calibration in the large of the population; intercept and slope."""
    rng = np.random.default_rng(2**32)
    z, q = drawn(law, 1_000_000, rng)
    w = weights(z, rng) if kind == "weights" else np.ones(len(z))
    large = 0.0
    for _ in range(20):
        mean = expit(large + z)
        large += w @ (q - mean) / (w @ (mean * (1 - mean)))
    _, _, a, b = LAWS[law]
    return {
        "O/E": w @ q / (w @ expit(z)),
        "calibration in the large": large,
        "intercept": a,
        "slope": b,
    }


def coverage(law, kind, n, draws):
    """One row for each interval."""
    truth = truths(law, kind)
    ends = {name: [] for name in truth}
    given = []
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        z, q = drawn(law, n, rng)
        w = weights(z, rng) if kind == "weights" else None
        y = (rng.random(n) < q).astype(int)
        options = {"ci": "profile" if kind == "weights" else kind, "sample_weight": w}
        with warnings.catch_warnings():  # a draw without an event has no intercepts
            warnings.simplefilter("ignore", CalibrationWarning)
            found = validation_summary(
                y,
                expit(z),
                level=LEVEL,
                smoother="cox",
                n_resamples=1,
                labels=[0, 1],
                **options,
            )
        w = np.ones(n) if w is None else w
        given.append(w @ q / (w @ expit(z)))
        for name, rows in ends.items():
            rows.append((found[name].low, found[name].high))
    table = []
    for name, rows in ends.items():
        low, high = np.array(rows).T
        table.append(_row(law, kind, name, n, low, high, np.full(draws, truth[name])))
    low, high = np.array(ends["O/E"]).T
    table.append(
        _row(law, kind, "O/E of these predictions", n, low, high, np.array(given))
    )
    return table


def _row(law, kind, name, n, low, high, truth):
    there = ~np.isnan(low)
    low, high, truth = low[there], high[there], truth[there]
    covered = ((low <= truth) & (truth <= high)).mean()
    return {
        "question": "coverage",
        "law": law,
        "kind": kind,
        "quantity": name,
        "n": n,
        "draws": int(there.sum()),
        "share": f"{covered:.3f}",
        "aim": LEVEL,
        "three_sd": f"{3 * np.sqrt(LEVEL * (1 - LEVEL) / there.sum()):.3f}",
        "truth_below": f"{(truth < low).mean():.3f}",
        "truth_above": f"{(truth > high).mean():.3f}",
        "width": f"{np.median(high - low):.4f}",
    }


def size(law, rows, n, draws):
    """How often the polynomial test and the belt reject calibrated predictions."""
    scale, mean = TESTED[law]
    held_out, grid = rows == "held out", np.linspace(0.001, 0.999, 400)
    pvalues, outside, degrees = [], [], []
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        z = mean + scale * rng.normal(size=n)
        y = (rng.random(n) < expit(z)).astype(int)
        if y.min() == y.max():
            continue
        p = expit(z)
        if not held_out:
            p = (
                LogisticRegression(C=np.inf, tol=1e-8)
                .fit(z[:, None], y)
                .predict_proba(z[:, None])
            )
            p = p[:, 1]
        found = polynomial_test(y, p, held_out=held_out)
        pvalues.append(found.pvalue)
        degrees.append(found.degree)
        points = grid[(grid >= p.min()) & (grid <= p.max())]
        low, high = found.belt(points)
        outside.append(((points < low) | (points > high)).any())
    pvalues, count = np.array(pvalues), len(pvalues)
    common = {"law": law, "kind": rows, "n": n, "draws": count}
    table = [
        {
            "question": "size",
            "quantity": "polynomial_test",
            **common,
            "share": f"{(pvalues <= level).mean():.3f}",
            "aim": level,
            "three_sd": f"{3 * np.sqrt(level * (1 - level) / count):.3f}",
        }
        for level in (0.01, 0.05, 0.1, 0.5)
    ]
    table.append(
        {
            "question": "size",
            "quantity": "diagonal leaves the 95 % belt",
            **common,
            "share": f"{np.mean(outside):.3f}",
            "aim": 0.05,
            "three_sd": f"{3 * np.sqrt(0.05 * 0.95 / count):.3f}",
        }
    )
    return table


def rows_of(question, law, kind, n, draws):
    """The rows of a job."""
    return (coverage if question == "lines" else size)(law, kind, n, draws)


def main():
    rows = runner.rounds(HERE / "rounds.partial.jsonl", LINES + SIZES, rows_of)
    columns = [
        "question",
        "law",
        "kind",
        "quantity",
        "n",
        "draws",
        "share",
        "aim",
        "three_sd",
    ]
    runner.write(
        HERE / "results.csv", rows, [*columns, "truth_below", "truth_above", "width"]
    )
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
