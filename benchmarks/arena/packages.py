"""The arena's tasks for methods of scikit-learn, netcal and probcal: ``packages.csv``.

``python benchmarks/run.py arena/packages``. Every method that the three packages offer
for such tasks gets what the others get: probabilities of calibration rows with labels,
and then probabilities of test rows. A method that fails, or that takes more than 10 s,
leaves the probabilities as they were. probcal has methods for two classes only. The
table has log losses, like ``log_loss.csv``; ``python doc/front_page.py`` compares both.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import runner
import tasks
from main import COLUMNS, one_task

HERE = Path(__file__).parent
TINY = np.finfo(float).tiny


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose features are the probabilities, or their log-odds.

    Parameters
    ----------
    log_odds : bool
        Offer the log-odds of two classes as the decision function, which scikit-learn's
        sigmoid prefers to the probabilities.
    """

    def __init__(self, log_odds=False):
        self.log_odds = log_odds

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]

    @available_if(lambda self: self.log_odds)
    def decision_function(self, X):
        return np.log(X[:, 1] + TINY) - np.log(X[:, 0] + TINY)


class ScikitLearn:
    """`CalibratedClassifierCV` of a fitted model.

    Parameters
    ----------
    method : "sigmoid", "isotonic" or "temperature"
    log_odds : bool
        As in `GivenProbabilities`.
    """

    def __init__(self, method, log_odds=False):
        self.method = method
        self.log_odds = log_odds

    def fit(self, p, y):
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        X = _as_columns(p)
        given = GivenProbabilities(self.log_odds).fit(X, np.arange(X.shape[1]))
        model = CalibratedClassifierCV(FrozenEstimator(given), method=self.method)
        self.model_ = model.fit(X, y)
        return self

    def predict_proba(self, p):
        found = self.model_.predict_proba(_as_columns(p))
        columns = np.zeros((len(p), 2 if p.ndim == 1 else p.shape[1]))
        columns[:, self.model_.classes_] = found
        return columns


class Netcal:
    """A method of netcal, whose maps are called `transform`."""

    def __init__(self, method):
        self.method = method

    def fit(self, p, y):
        from pyro.poutine import runtime

        # a fit that was stopped by the limit of time leaves its plates behind
        runtime._PYRO_STACK.clear()
        runtime._DIM_ALLOCATOR._stack.clear()
        self.method.fit(p, y)
        return self

    def predict_proba(self, p):
        return self.method.transform(p)


def _as_columns(p):
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def competitors():
    """Return {name: (factory for two classes, factory for several classes or None)}."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import probcal
        from netcal import binning, scaling
    found = {}
    for method in ("sigmoid", "isotonic", "temperature"):
        found[f"{method} (scikit-learn)"] = (lambda m=method: ScikitLearn(m),) * 2
    logits = lambda: ScikitLearn("sigmoid", log_odds=True)  # noqa: E731
    found["sigmoid of log-odds (scikit-learn)"] = logits, None
    for name in (
        "PlattCalibrator",
        "TemperatureCalibrator",
        "BetaCalibrator",
        "SplineCalibrator",
        "IsotonicCalibrator",
        "CenteredIsotonicCalibrator",
        "VennAbersCalibrator",
        "HistogramBinningCalibrator",
        "ScalingBinningCalibrator",
        "BBQCalibrator",
        "ENIRCalibrator",
    ):
        found[f"{name} (probcal)"] = getattr(probcal, name), None
    for cls in (
        scaling.TemperatureScaling,
        binning.HistogramBinning,
        binning.IsotonicRegression,
        scaling.LogisticCalibration,
        binning.BBQ,
        binning.ENIR,
        scaling.BetaCalibration,  # minutes for 26 and more classes
    ):
        found[f"{cls.__name__} (netcal)"] = (lambda c=cls: Netcal(c()),) * 2
    return found


def main():
    found = []
    for name, factories in competitors().items():
        folder = tasks.CACHE / "local"
        folder.mkdir(parents=True, exist_ok=True)
        rows = runner.rounds(
            folder / f"{name}.jsonl",
            tasks.everything(),
            lambda *task, f=factories: one_task(f, *task),
            processes=1,
        )
        found += [{"method": name, **row} for row in rows]
    results = pd.DataFrame(found)
    failed = results[results["problem"] != ""].groupby(["method", "problem"]).size()
    print(failed.to_string())
    results["log loss"] = results["log loss"].map("{:.5g}".format)
    keys = [*COLUMNS, "k"]
    wide = results.pivot(index=keys, columns="method", values="log loss").reset_index()
    wide = wide.astype(object).where(wide.notna(), "")
    runner.write(HERE / "packages.csv", wide.to_dict("records"), list(wide.columns))


if __name__ == "__main__":
    main()
