"""Every option of a public constructor changes what comes of it: models, testers, monitors.

The classes are read off `offered`, the options off the signatures. What a recalibrator
promises of its options is in `test_methods.py`; here are the others, with the positive
class that sorts first and with weights beside each option.
"""

import dataclasses
import functools
import inspect

import numpy as np
import pytest
from cases import run_every_case
from offered import offered
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from test_methods import CLASSES
from words import strings

from sklearn_calib.displays import Display
from sklearn_calib.inference import CalibrationTester
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import MultilabelCalibration
from sklearn_calib.summary import CalibrationSummary
from sklearn_calib.theory import GaussianLogisticModel

N = 160
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)) + 0.2
Y = (RNG.random(N) < expit(3 * X[:, 0] + 4 * np.abs(X[:, 1]) - 3)).astype(int)
P = expit(3 * X[:, 0] + X[:, 2])
WEIGHT = 1 + np.arange(N) % 3 % 2 + (Y == 0)


class TwoScores(LogisticRegression):
    """Its decision function is not the log-odds of its probabilities; fitted to the last digits."""

    def decision_function(self, X):
        return super().decision_function(X) ** 3

    def predict_proba(self, X):
        z = super().decision_function(X)
        return np.column_stack([expit(-z), expit(z)])


#: Classes whose options are tested elsewhere, each with its reason.
ELSEWHERE = {
    **dict.fromkeys(CLASSES, "tests/test_methods.py"),
    **dict.fromkeys(
        ("SimplexArray", "Predictions", "Measure", "ClusterSample"), "for authors"
    ),
    **dict.fromkeys(("CalibrationWitness", "ReliabilityCurves"), "are results"),
    "ProbabilityScorer": "tests/metrics/test_scorers.py",
}
NOT_OPTIONS = {"estimator", "n_jobs", "random_state", "groups", "classes"}
#: What is built: the arguments without a default, or that make it quick.
GIVEN = {
    "CostSensitiveClassifier": {
        "estimator": LogisticRegression(),
        "costs": [[0, 1], [2, 0]],
    },
    "SelectiveClassifier": {"estimator": LogisticRegression(), "max_risk": 0.35},
    "AngularCalibratedClassifier": {"estimator": LogisticRegression()},
    "CalibratedModel": {
        "estimator": TwoScores(tol=1e-12, solver="newton-cholesky"),
        "cv": 2,
    },
    "MulticalibratedModel": {
        "estimator": TwoScores(tol=1e-12, solver="newton-cholesky"),
        "cv": 2,
        "n_rounds": 2,
        "n_trees": 5,
        "min_samples_leaf": 5.0,
        "min_gain": 0.0,
        "l2": 30.0,
    },
    "RefineThenCalibrateCV": {"estimator": GaussianNB(), "cv": 2},
    "CalibrationTester": {"epsilon": 0.3},
    "CalibrationMonitor": {"average_run_length": 40},
}
VALUES = {
    "cv": 3,
    "recalibrator": "beta",
    ("CostSensitiveClassifier", "costs"): [[0, 3], [1, 0]],
    ("CostSensitiveClassifier", "actions"): ["wait", "act"],
    ("SelectiveClassifier", "max_risk"): 0.2,
    ("SelectiveClassifier", "delta"): 0.4,
    ("SelectiveClassifier", "coverage"): 0.5,
    ("SelectiveClassifier", "abstain_label"): -7,
    ("SelectiveClassifier", "calibration_size"): 0.3,
    ("AngularCalibratedClassifier", "link_slope"): 2.0,
    ("AngularCalibratedClassifier", "link_intercept"): 0.5,
    ("AngularCalibratedClassifier", "covariance"): np.diag([1.0, 2.0, 3.0]),
    ("RefineThenCalibrateCV", "param_grid"): {"var_smoothing": [10.0]},
    ("RefineThenCalibrateCV", "n_iter"): 1,
    ("RefineThenCalibrateCV", "loss"): "brier",
    ("RefineThenCalibrateCV", "refinement"): "isotonic",
    ("CalibratedModel", "ensemble"): False,
    ("MulticalibratedModel", "n_rounds"): 1,
    ("MulticalibratedModel", "n_trees"): 2,
    ("MulticalibratedModel", "learning_rate"): 0.3,
    ("MulticalibratedModel", "max_leaves"): 2,
    ("MulticalibratedModel", "min_samples_leaf"): 25.0,
    ("MulticalibratedModel", "l2"): 1.0,
    ("MulticalibratedModel", "min_gain"): 3.0,
    ("MulticalibratedModel", "n_bins"): 3,
    ("CalibrationTester", "tolerance"): 0.05,
    ("CalibrationTester", "n_parts"): 3,
    ("CalibrationTester", "delta"): 0.1,
    ("CalibrationMonitor", "average_run_length"): 4.0,
    ("CalibrationMonitor", "alpha"): 0.9,
    ("MultilabelCalibration", "shrinkage"): 0.3,
    ("CalibrationSummary", "pos_label"): 0,
    ("GaussianLogisticModel", "ratio"): 0.3,
    ("GaussianLogisticModel", "error_rate"): 0.2,
    ("GaussianLogisticModel", "spectrum"): (2, 1),
    ("GaussianLogisticModel", "smallest"): 0.1,
}
#: What an option needs beside it to matter.
WITH = {
    ("SelectiveClassifier", "coverage"): {"max_risk": None},
    ("RefineThenCalibrateCV", "n_iter"): {
        "param_grid": {"var_smoothing": [1e-9, 1.0, 10.0]}
    },
    ("MultilabelCalibration", "recalibrator"): {"pooling": "none"},
}
#: Options that change nothing here, each with its reason.
SAME = {
    ("SelectiveClassifier", "method"): "there is one",
    ("CalibratedModel", "decision_function"): "is what 'auto' takes",
    ("MulticalibratedModel", "decision_function"): "is what 'auto' takes",
    ("CalibrationSummary", "classwise"): "of two classes one is as wrong as the other",
    (
        "AngularCalibratedClassifier",
        "assume_centered",
    ): "is a promise: tests/classifiers",
    (
        "AngularCalibratedClassifier",
        "sign",
    ): "the sign is clear here: tests/classifiers",
    ("RefineThenCalibrateCV", "selection"): "of stages: tests/classifiers",
    ("RefineThenCalibrateCV", "refit"): "whether a model is left: tests/classifiers",
    ("CalibrationSummary", "max_cells"): "of more rows: tests/summary",
    (
        "MulticalibratedModel",
        "patience",
    ): "the losses of the folds have one minimum here",
    ("RefineThenCalibrateCV", "stages"): "of a model that has some: tests/classifiers",
    ("RefineThenCalibrateCV", "error_score"): "of a fit that fails: tests/classifiers",
}


def classes():
    """Public classes that a user builds: with options, and neither results nor pictures."""
    for name, thing in offered():
        built = inspect.isclass(thing) and not issubclass(
            thing, (tuple, Display, Exception)
        )
        built_by_fields = hasattr(thing, "get_params") or thing is GaussianLogisticModel
        result = dataclasses.is_dataclass(thing) and not built_by_fields
        if built and not result and not {thing, name} & {*ELSEWHERE}:
            yield name, thing


BUILT = dict(classes())


def options():
    """(class, option, value) of every number, object, string and switch."""
    for name, cls in BUILT.items():
        for option, parameter in inspect.signature(cls).parameters.items():
            if option in NOT_OPTIONS or parameter.default is parameter.empty:
                continue
            found = [s for s in strings(parameter.annotation) if s != parameter.default]
            if isinstance(parameter.default, bool):
                found = [not parameter.default]
            elif not found or (name, option) in VALUES:
                found.append(VALUES.get((name, option), VALUES.get(option)))
            found = [
                v for v in found if not isinstance(v, str) or (name, v) not in SAME
            ]
            yield from ((name, option, v) for v in found if (name, option) not in SAME)


def outcome(name, company="", **options):
    """What comes of it, as numbers and texts."""
    thing = BUILT[name](**GIVEN.get(name, {}) | options)
    y, weight = Y, WEIGHT if company == "sample_weight" else None
    if company == "sorted first":
        y = np.array(["b", "a"])[Y]
    known = {} if weight is None else {"sample_weight": weight}
    if isinstance(thing, GaussianLogisticModel):
        return thing.limit(0.1)
    if isinstance(thing, CalibrationTester):
        return thing.test(y, P)
    if isinstance(thing, CalibrationMonitor):
        thing.update(Y, P)
        return thing.e_value_, thing.n_alarms_, thing.rejected_at_, thing.posterior_
    if isinstance(thing, CalibrationSummary):
        thing.update(Y, P, weight)
        error = thing.measure("smooth_calibration_error")
        return error, [one.observed.tolist() for one in thing.reliability_curve()]
    if isinstance(thing, MultilabelCalibration):
        scores = np.column_stack([P, P**2])
        thing.fit(scores, np.column_stack([Y, np.roll(Y, 1)]), **known)
        return thing.predict_proba(scores).tolist()
    thing.fit(X, y, **known)
    said = [str(one) for one in thing.predict(X)]
    table = getattr(thing, "cv_results_", {"criterion": np.zeros(1)})
    return thing.predict_proba(X).tolist(), said, table["criterion"].tolist()


def cases(company):
    """Parameters of a test."""
    for name, option, value in options():
        function = getattr(BUILT[name], "fit", getattr(BUILT[name], "update", None))
        known = () if function is None else inspect.signature(function).parameters
        of_classes = not company or hasattr(BUILT[name], "predict")
        if company in known or (of_classes and company != "sample_weight"):
            yield pytest.param(
                name, option, value, id=f"{name}-{option}={value}".split("\n")[0]
            )


def test_every_number_and_object_has_a_value():
    """A new option needs an entry in `VALUES`, or in `SAME` with the reason."""
    found = list(options())
    assert [one[:2] for one in found if one[2] is None] == []
    known = {(name, option) for name, option, _ in found}
    assert {key for key in [*VALUES, *WITH] if isinstance(key, tuple)} <= known
    assert len(BUILT) >= 10


@functools.cache
def baseline(name, option, company):
    return repr(outcome(name, company, **WITH.get((name, option), {})))


KNOWN = {}


def outcome_with(name, option, value):
    """What comes of the option alone, computed once for all tests."""
    key = (name, option, repr(value))
    if key not in KNOWN:
        more = WITH.get((name, option), {}) | {option: value}
        KNOWN[key] = outcome(name, **more)
    return KNOWN[key]


#: Options that change nothing beside weights, each with its reason.
SAME_BESIDE_WEIGHTS = {
    ("MulticalibratedModel", "monotone"): "the trees rise by themselves"
}
#: Options of one class, and methods that treat the classes differently.
OF_ONE_CLASS = {
    "CostSensitiveClassifier": "its costs have an order",
    "MultilabelCalibration": "its columns are labels",
    "SelectiveClassifier": "its split is drawn class by class",
    ("AngularCalibratedClassifier", "link_intercept"): "is of the second class",
}


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@run_every_case(("name", "option", "value"), cases(""))
def test_alone(name, option, value):
    assert repr(outcome_with(name, option, value)) != baseline(name, option, "")


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@run_every_case(("name", "option", "value"), cases("sample_weight"))
def test_beside_weights(name, option, value):
    more = WITH.get((name, option), {}) | {option: value}
    found = repr(outcome(name, "sample_weight", **more))
    alone = repr(outcome_with(name, option, value))
    assert found != alone, "weights change nothing"
    unchanged = found == baseline(name, option, "sample_weight")
    assert unchanged == ((name, option) in SAME_BESIDE_WEIGHTS)


def turned():
    """Parameters of a test: what does not treat the classes differently."""
    for one in cases("sorted first"):
        name, option, _ = one.values
        if not {name, (name, option)} & {*OF_ONE_CLASS}:
            yield one


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@run_every_case(("name", "option", "value"), turned())
def test_classes_that_sort_the_other_way(name, option, value):
    """The columns change places, and nothing else does."""
    more = WITH.get((name, option), {}) | {option: value}
    found = outcome_with(name, option, value)
    back = outcome(name, "sorted first", **more)
    np.testing.assert_allclose(
        np.array(back[0])[:, ::-1], found[0], rtol=1e-6, atol=1e-9
    )
