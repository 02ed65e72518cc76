"""Does `internal_validation` find what a model is worth on new rows, and do its intervals hold it?

``python benchmarks/run.py validation/internal [DRAWS]`` writes internal.csv (means and
coverage) and internal_one.csv (one data set, beside its 20,000 new rows); 200 draws of
each law by default, of the forest a tenth of them. Rows of a law that are in
internal.csv with as many draws stay as they are; ``DRAWS LAW ...`` looks at these laws
alone.
"""

import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier

import sklearn_calib.inference._internal_validation as module
from sklearn_calib.inference import internal_validation
from sklearn_calib.inference._refits import RefitMeasuresEvaluator, build_bootstrap_rows

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LEVEL, NEW = 0.95, 20_000


class Logistic(ClassifierMixin, BaseEstimator):
    """Logistic regression by Newton's method: the fits take a tenth of the time of a general one.

    `penalty` is half a factor of the squared coefficients, as 1 / C of
    LogisticRegression.
    """

    def __init__(self, penalty=0.0):
        self.penalty = penalty

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        X = np.column_stack([np.ones(len(X)), X])
        ridge = np.diag([0.0] + [self.penalty] * (X.shape[1] - 1)) + 1e-8 * np.eye(
            X.shape[1]
        )
        coef = np.zeros(X.shape[1])
        for _ in range(25):
            mean = expit(X @ coef)
            pull = X.T @ (y - mean) - ridge @ coef
            step = np.linalg.solve((X.T * (mean * (1 - mean))) @ X + ridge, pull)
            coef += step * min(1.0, 5 / np.abs(step).max())
            if np.abs(step).max() < 1e-9:
                break
        self.coef_ = coef
        return self

    def predict_proba(self, X):
        p = expit(self.coef_[0] + X @ self.coef_[1:])
        return np.column_stack([1 - p, p])


FULL = Logistic()
RIDGE = Logistic(penalty=10.0)
FOREST = RandomForestClassifier(20, random_state=0)
#: Model, rows, features, coefficients of the first three, intercept, resamples.
LAWS = {
    "200 rows, 10 features": (FULL, 200, 10, 0.8, -1.0, 200),
    "1000 rows, 10 features": (FULL, 1000, 10, 0.8, -1.0, 200),
    "100 rows, 15 features": (FULL, 100, 15, 0.8, -1.0, 200),
    "rare: 400 rows, 7 % events": (FULL, 400, 10, 0.8, -3.3, 200),
    "nothing to learn: 200 rows": (FULL, 200, 10, 0.0, -1.0, 200),
    "penalty: 200 rows, C = 0.1": (RIDGE, 200, 10, 0.8, -1.0, 200),
    "forest: 300 rows, 20 trees": (FOREST, 300, 10, 0.8, -1.0, 50),
}
PART = 5  # draws of a job
MEASURES = ["slope", "intercept", "O/E", "AUC", "Brier", "log loss", "ICI"]
#: A data set of which another program noted three numbers; the seed that comes nearest
#: to them.
SEED, NOTED = 4, {"slope": (1.0, 0.782, 0.808), "AUC": (0.810, 0.766, 0.770)}


def drawn(law, rng, n):
    """Rows and labels, and as many new rows as it takes to know what a model is worth."""
    _, _, p, size, intercept, _ = LAWS[law]
    X = rng.normal(size=(n + NEW, p))
    chance = expit(size * (X[:, 0] - X[:, 1] + X[:, 2]) + intercept)
    y = (rng.random(len(X)) < chance).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def validated(law, rng, n_resamples):
    """By method and kind of interval: rows of the table, and the truth of each measure."""
    model, n = LAWS[law][:2]
    X, y, X_new, y_new = drawn(law, rng, n)
    given = []

    def kept(*arguments):
        given.append(arguments)
        return build_bootstrap_rows(*arguments)

    # one set of fits for both estimates and both intervals
    module.build_bootstrap_rows = kept
    with warnings.catch_warnings():  # separated samples, and fits that stop early
        warnings.simplefilter("ignore")
        found = internal_validation(
            model, X, y, method=".632+", measures=MEASURES, n_resamples=n_resamples,
            keep_predictions=False, random_state=rng,
        )  # fmt: skip
    named, own, values, nothing, tail, _ = given[0]
    rows = {
        (method, ci): {
            row.measure: row
            for row in build_bootstrap_rows(named, own, values, worst, tail, ci)
        }
        for method, worst in (("optimism", None), (".632+", nothing))
        for ci in ("pivot", "shifted")
    }
    new = module.Predictions(np.full((NEW, 2), 0.5), y_new, None, np.arange(2))
    judge = RefitMeasuresEvaluator(new, {name: name for name in MEASURES})
    predicted = found.estimator.predict_proba(X_new)[:, 1][None]
    truth = judge.compute_values_by_weight_measure_and_model(predicted, [new.weight])[
        0, :, 0
    ]
    return rows, dict(zip(MEASURES, truth, strict=True))


def some(law, first, draws):
    """Numbers of some draws, one dict for each draw, method, interval and measure."""
    table = []
    for number in range(first, first + draws):
        rows, truth = validated(law, np.random.default_rng([number, 29]), LAWS[law][5])
        for (method, ci), by_name in rows.items():
            for name in MEASURES:
                row = by_name[name]
                numbers = (
                    row.apparent,
                    row.corrected,
                    row.low,
                    row.high,
                    float(truth[name]),
                )
                table.append([law, method, ci, name, *map(float, numbers)])
    return table


def summary(rows):
    """Means and coverage of each law, method, interval and measure."""
    groups = {}
    for *key, apparent, corrected, low, high, truth in rows:
        groups.setdefault(tuple(key), []).append(
            (apparent, corrected, low, high, truth)
        )
    for (law, method, ci, name), numbers in groups.items():
        apparent, corrected, low, high, truth = np.array(numbers).T
        there = np.isfinite(low) & np.isfinite(corrected)
        known = np.isfinite(corrected)
        off = (corrected - truth)[known]
        aim = 3 * np.sqrt(LEVEL * (1 - LEVEL) / max(there.sum(), 1))
        yield {
            "law": law,
            "method": method,
            "interval": ci,
            "measure": name,
            "seeds": f"0 to {len(known) - 1}",
            "draws": int(known.sum()),
            "apparent": f"{apparent.mean():.4f}",
            "corrected": f"{corrected[known].mean():.4f}" if known.any() else "",
            "new_rows": f"{truth.mean():.4f}",
            "rms_error": f"{np.sqrt(np.mean(off**2)):.4f}" if known.any() else "",
            "covered": f"{((low <= truth) & (truth <= high))[there].mean():.3f}"
            if there.any()
            else "",
            "aim": LEVEL,
            "three_sd": f"{aim:.3f}",
            "truth_below": f"{(truth < low)[there].mean():.3f}" if there.any() else "",
            "truth_above": f"{(truth > high)[there].mean():.3f}" if there.any() else "",
            "width": f"{np.median((high - low)[there]):.4f}" if there.any() else "",
        }


def one():
    """That data set beside the noted numbers."""
    law = next(iter(LAWS))
    rows, truth = validated(law, np.random.default_rng(SEED), 200)
    for name in MEASURES:
        row = rows["optimism", "pivot"][name]
        noted = [f"{x:.3f}" for x in NOTED.get(name, ())] or [""] * 3
        yield {
            "measure": name,
            **dict(
                zip(
                    ("noted_apparent", "noted_corrected", "noted_new_rows"),
                    noted,
                    strict=True,
                )
            ),
            "apparent": f"{row.apparent:.4f}",
            "corrected": f"{row.corrected:.4f}",
            "low": f"{row.low:.4f}",
            "high": f"{row.high:.4f}",
            "new_rows": f"{truth[name]:.4f}",
        }


def stored():
    """The rows of internal.csv by law."""
    path, rows = HERE / "internal.csv", {}
    if path.exists():
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                rows.setdefault(row["law"], []).append(row)
    return rows


def anew(law, draws):
    """The rows of a law."""
    jobs = [(law, first, PART) for first in range(0, draws, PART)]
    return list(summary(runner.rounds(HERE / "internal.partial.jsonl", jobs, some)))


def main():
    draws, laws = (
        int(sys.argv[1]) if len(sys.argv) > 1 else 200,
        sys.argv[2:] or [*LAWS],
    )
    if not set(laws) <= set(LAWS):
        sys.exit(f"laws are {', '.join(map(repr, LAWS))}")
    single = list(one())
    runner.write(HERE / "internal_one.csv", single)
    for row in single:
        print(*row.values(), sep="  ")
    rows = stored()
    for law in laws:
        # as slow as all others
        wanted = draws if LAWS[law][0] is not FOREST else draws / 10
        wanted = int(np.ceil(wanted / PART)) * PART
        if {row.get("seeds") for row in rows.get(law, [{}])} != {f"0 to {wanted - 1}"}:
            rows[law] = anew(law, wanted)
        table = [row for name in LAWS for row in rows.get(name, ())]
        runner.write(HERE / "internal.csv", table)
    for row in table:
        print(*row.values(), sep="  ")


if __name__ == "__main__":
    main()
