"""One row at a time, and batches, through calibrated models beside scikit-learn's.

``python benchmarks/run.py scale/one_row``. A logistic regression of 20 features on 3000
rows, and 3000 calibration rows; with "folds" five models, each with its own map.
Microseconds for each call of ``predict_proba``, the shortest of 15 runs in turns, and
the ratio to the classifier's own call: only ratios mean anything on a machine with
other work. Last, the map alone on a million rows, as one map and candidate by
candidate, in turns as well.
"""

import time
from pathlib import Path

import numpy as np
import runner
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.recalibrators import StackedCalibration

HERE = Path(__file__).parent
SIZES = (1, 100, 10_000)
MOST = 10  # calls of the classifier that "auto" may cost with one row
MANY = 1_000_000


def shortest(functions, calls, runs=15):
    """Microseconds of a call of each function; all of them in turns, the shortest of `runs`."""
    spent = np.empty((runs, len(functions)))
    for function in functions:
        function()
    for run in spent:
        for place, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            run[place] = 1e6 * (time.perf_counter() - start) / calls
    return spent.min(axis=0)


def models(k):
    X, y = make_classification(6000, 20, n_informative=10, n_classes=k, random_state=0)
    classifier = LogisticRegression(max_iter=500).fit(X[:3000], y[:3000])
    frozen, X_calib, y_calib = FrozenEstimator(classifier), X[3000:], y[3000:]
    yield "the classifier", classifier, X
    for method in ("default", "auto"):
        yield method, CalibratedModel(frozen, method).fit(X_calib, y_calib), X
    yield (
        "scikit-learn, sigmoid",
        CalibratedClassifierCV(frozen).fit(X_calib, y_calib),
        X,
    )
    for method in ("default", "auto"):
        fresh = LogisticRegression(max_iter=500)
        yield f"{method}, folds", CalibratedModel(fresh, method, cv=5).fit(X, y), X
    fresh = LogisticRegression(max_iter=500)
    yield (
        "scikit-learn, sigmoid, folds",
        CalibratedClassifierCV(fresh, cv=5).fit(X, y),
        X,
    )


def main():
    rows = []
    for k in (2, 5):
        names, fitted, given = zip(*models(k), strict=True)
        table = [{"model": name, "classes": k} for name in names]
        for size in SIZES:
            some = np.resize(given[0], (size, 20))
            calls = [
                lambda model=model, some=some: model.predict_proba(some)
                for model in fitted
            ]
            spent = shortest(calls, 20 if size < 1000 else 2)
            for row, us in zip(table, spent, strict=True):
                row |= {
                    f"us_{size}": f"{us:.0f}",
                    f"ratio_{size}": f"{us / spent[0]:.1f}",
                }
                if row["model"] == "auto":
                    row["bar"] = f"<= {MOST} with one row"
                    assert size > 1 or us <= MOST * spent[0]
        print(*table, sep="\n", flush=True)
        stack = StackedCalibration().fit(*make_overconfident(k, 3000))
        many, _ = make_overconfident(k, MANY, random_state=1)
        ways = {
            "as one map": stack._predict_proba,
            "each": stack._predict_proba_with_parts,
        }
        spent = shortest(
            [lambda call=call, many=many: call(many) for call in ways.values()],
            1,
            runs=3,
        )
        for way, us in zip(ways, spent, strict=True):
            row = {"model": f"map of auto, {MANY} rows, {way}", "classes": k}
            table.append(row | {"seconds": f"{us / 1e6:.2f}"})
            print(table[-1], flush=True)
        assert spent[0] <= 1.1 * spent[1]
        rows += table
    columns = [f"{what}_{size}" for size in SIZES for what in ("us", "ratio")]
    runner.write(
        HERE / "one_row.csv", rows, ["model", "classes", *columns, "seconds", "bar"]
    )


if __name__ == "__main__":
    main()
