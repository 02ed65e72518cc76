"""One row at a time, and batches, through calibrated models beside scikit-learn's.

``python benchmarks/run.py scale/one_row``. A logistic regression of 20 features on 3000 rows, and
3000 calibration rows; with "folds" five models, each with its own map. Microseconds for each call
of ``predict_proba``, the shortest of 15 runs, and the ratio to the classifier's own call. Last, the
map alone on a million rows, as one program and candidate by candidate.
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


def shortest(function, calls):
    """Microseconds of a call."""
    function()
    spent = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        spent.append((time.perf_counter() - start) / calls)
    return 1e6 * min(spent)


def models(k):
    X, y = make_classification(6000, 20, n_informative=10, n_classes=k, random_state=0)
    classifier = LogisticRegression(max_iter=500).fit(X[:3000], y[:3000])
    frozen, X_calib, y_calib = FrozenEstimator(classifier), X[3000:], y[3000:]
    yield "the classifier", classifier, X
    for method in ("default", "auto"):
        yield method, CalibratedModel(frozen, method).fit(X_calib, y_calib), X
    yield "scikit-learn, sigmoid", CalibratedClassifierCV(frozen).fit(X_calib, y_calib), X
    for method in ("default", "auto"):
        fresh = LogisticRegression(max_iter=500)
        yield f"{method}, folds", CalibratedModel(fresh, method, cv=5).fit(X, y), X
    fresh = LogisticRegression(max_iter=500)
    yield "scikit-learn, sigmoid, folds", CalibratedClassifierCV(fresh, cv=5).fit(X, y), X


def main():
    rows = []
    for k in (2, 5):
        own = {}
        for name, model, X in models(k):
            row = {"model": name, "classes": k}
            for size in SIZES:
                some = np.resize(X, (size, 20))
                calls = 20 if size < 1000 else 2
                spent = shortest(lambda model=model, some=some: model.predict_proba(some), calls)
                ratio = spent / own.setdefault(size, spent)
                row |= {f"us_{size}": f"{spent:.0f}", f"ratio_{size}": f"{ratio:.1f}"}
                row["bar"] = f"<= {MOST} with one row" if name == "auto" else ""
                assert name != "auto" or size > 1 or ratio <= MOST
            rows.append(row)
            print(row, flush=True)
        stack = StackedCalibration().fit(*make_overconfident(k, 3000))
        many, _ = make_overconfident(k, MANY, random_state=1)
        spent = {}
        for way, call in (("as one program", stack._predict_proba), ("each", stack._mixed)):
            spent[way] = runner.seconds(lambda call=call, many=many: call(many), times=3)
            row = {"model": f"map of auto, {MANY} rows, {way}", "classes": k}
            rows.append(row | {"seconds": f"{spent[way]:.2f}"})
            print(rows[-1], flush=True)
        assert spent["as one program"] <= 1.1 * spent["each"]
    columns = [f"{what}_{size}" for size in SIZES for what in ("us", "ratio")]
    runner.write(HERE / "one_row.csv", rows, ["model", "classes", *columns, "seconds", "bar"])


if __name__ == "__main__":
    main()
