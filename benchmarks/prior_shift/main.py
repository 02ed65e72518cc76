"""Do intervals of `PriorShift.adapt` hold, and how often does `prior_shift_test` reject?"""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.pipeline import make_pipeline

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import prior_shift_test
from sklearn_calib.recalibrators import PlattScaling, PriorShift

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
DRAWS = 1000
METHODS = {
    "em, a known": lambda a: PriorShift("em", training_prior=a),
    "em": lambda a: PriorShift("em"),
    "bbse soft": lambda a: PriorShift("bbse"),
    "bbse hard": lambda a: PriorShift("bbse", confusion="hard"),
}
# law: classes, distance of neighbouring class means in standard deviations
LAWS = {
    "2 classes": (2, 2.0),
    "2 close": (2, 1.0),
    "2 far": (2, 4.0),
    "3 classes": (3, 2.0),
}
LAWS |= {"8 classes": (8, 3.0), "2 sharpened, then platt": (2, 2.0)}
# frequency of the first class; the others are equally frequent
JOBS = [
    *(
        ("2 classes", b, n, m)
        for n, m in ((500, 500), (500, 100), (100, 500), (500, 30), (50, 50))
        for b in (0.01, 0.05, 0.2, 0.5)
    ),
    *(
        (law, b, 500, 200)
        for law in ("2 close", "2 far", "3 classes")
        for b in (0.01, 0.2, 0.9)
    ),
    *(("8 classes", b, 800, 400) for b in (0.01, 0.125, 0.7)),
    *(("2 sharpened, then platt", b, 500, 500) for b in (0.05, 0.2, 0.5)),
    *(("3 classes", b, 500, 200) for b in (0.0,)),
]
SHARES = ("covered", "truth_below", "truth_above")
TEST_DRAWS = 300
TESTS = [
    *(
        ("2 classes", "", b, n, m)
        for n, m in ((500, 500), (50, 50), (100, 300))
        for b in (0.01, 0.2, 0.5)
    ),
    *(
        (law, "", b, 200, 100)
        for law in ("2 close", "2 far", "3 classes")
        for b in (0.1, 0.5)
    ),
    ("8 classes", "", 0.125, 400, 200),
    ("2 classes", "rounded", 0.2, 200, 200),
    ("2 classes", "5 labelled", 0.5, 110, 60),
    *(
        ("2 classes", change, 0.2, n, n)
        for change in ("shifted", "spread")
        for n in (100, 500)
    ),
    ("3 classes", "shifted", 0.2, 500, 500),
]


def centres(law):
    """Means of the classes: on a line for two, at the corners of a simplex for more."""
    k, distance = LAWS[law]
    if k == 2:
        return np.array([[0.0], [distance]])
    return np.eye(k) * distance / np.sqrt(2)


def draw(law, prior, n, rng):
    """Labels of these frequencies, and the probabilities that are true for equal ones."""
    means = centres(law)
    y = rng.choice(len(means), n, p=prior)
    x = means[y] + rng.normal(size=(n, means.shape[1]))
    log = x @ means.T - (means**2).sum(axis=1) / 2
    return softmax(log - logsumexp(log, axis=1, keepdims=True), axis=1), y


def found(law, name, b, n, m, seed):
    """Estimate, standard errors and intervals of one draw; None where it is rejected."""
    k = LAWS[law][0]
    even, prior = np.full(k, 1 / k), np.r_[b, np.full(k - 1, (1 - b) / (k - 1))]
    rng = np.random.default_rng([seed, n, m])
    source, y = draw(law, even, n, rng)
    target, _ = draw(law, prior, m, rng)
    shift = METHODS[name](even)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        if "platt" in law:
            source, target = (softmax(2 * np.log(p), axis=1) for p in (source, target))
            pipe = make_pipeline(PlattScaling(), shift).fit(source, y)
            shift, target = pipe[-1], pipe[:-1].transform(target)
        else:
            shift = shift.fit(source, y)
        adapted = shift.adapt(target)
    return adapted.prior_, adapted.prior_se_, adapted.prior_interval_


def coverage(law, b, n, m):
    """Rows of the table: the first class, and the last where there are more than two."""
    k = LAWS[law][0]
    rows = []
    for name in METHODS:
        draws = [found(law, name, b, n, m, seed) for seed in range(DRAWS)]
        priors, errors, intervals = (
            np.array(part) for part in zip(*draws, strict=True)
        )
        for c, truth in ((0, b), (k - 1, (1 - b) / (k - 1)))[: 1 + (k > 2)]:
            low, high = intervals[:, c].T
            kept = np.isfinite(errors[:, c])
            row = {
                "law": law,
                "method": name,
                "truth": f"{truth:.3g}",
                "source rows": n,
            }
            row |= {
                "target rows": m,
                "draws": DRAWS,
                "bias": f"{priors[:, c].mean() - truth:.4f}",
            }
            row["sd"] = f"{priors[:, c].std():.4f}"
            row["median se"] = f"{np.median(errors[kept, c]):.4f}"
            row["estimate 0"] = f"{(priors[:, c] == 0).mean():.3f}"
            row["covered"] = f"{((low <= truth) & (truth <= high)).mean():.3f}"
            row["truth_below"] = f"{(truth < low).mean():.3f}"
            row["truth_above"] = f"{(truth > high).mean():.3f}"
            row["width"] = f"{(high - low).mean():.3f}"
            rows.append(row)
    return rows


def rejections(law, change, b, n, m):
    """How often the test rejects; `change` says what else has changed in the target."""
    k = LAWS[law][0]
    even, prior = np.full(k, 1 / k), np.r_[b, np.full(k - 1, (1 - b) / (k - 1))]
    values = []
    for seed in range(TEST_DRAWS):
        rng = np.random.default_rng([seed, n, m])
        source, y = draw(law, even, n, rng)
        target, _ = draw(law, prior, m, rng)
        if change == "5 labelled":  # rows of the second class; of the first all
            kept = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:5]]
            source, y = source[kept], y[kept]
        # the log-odds of all classes, by half a standard deviation
        if change == "shifted":
            target = softmax(
                np.log(target) + np.r_[0.0, np.full(k - 1, LAWS[law][1] / 2)], axis=1
            )
        if change == "spread":  # log-odds half as large again, as of sharper classes
            target = softmax(1.5 * np.log(target), axis=1)
        if change == "rounded":  # both samples have ties
            source, target = (tied(p) for p in (source, target))
        result = prior_shift_test(source, y, target, n_resamples=199, random_state=seed)
        values.append(result.pvalue)
    row = {
        "law": law,
        "target": change or "other frequencies",
        "frequency": b,
        "source rows": n,
    }
    row |= {"target rows": m, "draws": TEST_DRAWS}
    for level in (0.01, 0.05, 0.1, 0.5):
        row[f"rejected at {level:g}"] = (
            f"{np.mean(np.array(values) <= level + 1e-12):.3f}"
        )
    return [row]


def tied(proba):
    """Probabilities with one digit; the last one fills up."""
    first = proba[:, :-1].round(1)
    return np.column_stack([first, 1.0 - first.sum(axis=1)]).clip(0, 1)


def summary(rows):
    """The cells of each law and method: their lowest and highest shares."""
    found = {}
    for row in rows:
        found.setdefault((row["law"], row["method"]), []).append(row)
    for (law, method), cells in found.items():
        kept = {name: [float(cell[name]) for cell in cells] for name in SHARES}
        row = {"law": law, "method": method, "cells": len(cells)}
        for name in SHARES:
            row[name] = f"{min(kept[name]):.3f} to {max(kept[name]):.3f}"
        yield row


def main():
    if "test" not in sys.argv[1:]:
        rows = runner.rounds(HERE / "rounds.partial.jsonl", JOBS, coverage)
        runner.write(HERE / "results.csv", rows)
        rows = [*summary(rows)]
        runner.write(HERE / "coverage.csv", rows)
    rows = runner.rounds(HERE / "test.partial.jsonl", TESTS, rejections)
    runner.write(HERE / "rejections.csv", rows)


if __name__ == "__main__":
    main()
