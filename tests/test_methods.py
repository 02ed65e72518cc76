"""The contract of methods, read off their signatures: of estimators, summaries, displays, results.

What has `classes`, `sample_weight`, `random_state` or `level` keeps what the word
promises, with every string, every switch and every number that the constructor takes;
each of these changes something. A number or an object needs an entry in `VALUES`:
without one, a new option fails.
"""

import inspect
import warnings

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.utils._param_validation import StrOptions
from words import QUICKER, strings

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import GroupRecalibration, MulticalibratedScores
from sklearn_calib.recalibrators import all_recalibrators

N = 160
#: Arguments that make an option quick, or let it matter on so few rows.
WITH = QUICKER | {
    "MulticlassBinning": {"min_count": 2, "epsilon": 0.01},
    "GroupRecalibration": {"recalibrator": "temperature"},
    "MulticalibratedScores": {
        "n_rounds": 2,
        "n_trees": 5,
        "min_samples_leaf": 5.0,
        "n_bins": 8,
    },
}
WITH_OPTION = {
    ("MulticalibratedScores", "n_rounds"): {"l2": 30.0},
    ("AngularCalibration", "norm"): {"cos_theta": 0.4},
    ("AngularCalibration", "center"): {"link_intercept": 0.0},
    ("DirichletCalibration", "intercept_penalty"): {"penalty": 0.1},
    ("RestrictedPolynomialRegression", "selection"): {"degree": (2, 3)},
    ("MulticlassBinning", "noise"): {"pools": "paper", "delta": 0.9},
    ("MulticlassBinning", "pools"): {"delta": 0.9},
}
MISSING = "an entry of VALUES"
#: A value of every number and object that a constructor takes, of all classes or of
#: one.
VALUES = {
    "penalty": 0.5,
    "intercept_penalty": 0.5,
    "prior_weight": 2.5,
    "recalibrator": "beta",
    "share": 0.2,
    "cv": 3,
    "n_bins": 4,
    ("AngularCalibration", "cos_theta"): 0.4,
    ("AngularCalibration", "norm"): 1.7,
    ("AngularCalibration", "center"): 0.3,
    ("AngularCalibration", "link_slope"): 2.0,
    ("AngularCalibration", "link_intercept"): 0.5,
    ("MulticlassBinning", "epsilon"): 0.2,
    ("MulticlassBinning", "n_levels"): 5,
    ("MulticlassBinning", "min_count"): 4,
    ("MulticlassBinning", "z"): 0.3,
    ("MulticlassBinning", "shrink"): 2.0,
    ("MulticlassBinning", "max_iter"): 0,
    ("RestrictedPolynomialRegression", "degree"): 2,
    ("RestrictedPolynomialRegression", "l1"): 1.2,
    ("SplineCalibration", "n_knots"): 4,
    ("SplineCalibration", "prior"): 1.0,
    ("StackedCalibration", "recalibrators"): ("temperature", "beta"),
    ("StackedCalibration", "alpha"): 0.1,
    ("GroupRecalibration", "strength"): 2.0,
    ("MulticalibratedScores", "n_rounds"): 1,
    ("MulticalibratedScores", "n_trees"): 2,
    ("MulticalibratedScores", "learning_rate"): 0.4,
    ("MulticalibratedScores", "max_leaves"): 2,
    ("MulticalibratedScores", "min_samples_leaf"): 25.0,
    ("MulticalibratedScores", "l2"): 30.0,
    ("MulticalibratedScores", "min_gain"): 2.0,
    ("MulticalibratedScores", "n_bins"): 3,
    ("MulticalibratedScores", "patience"): 2,
}
#: Options that change nothing here, each with its reason.
SAME = {
    (
        "MulticalibratedScores",
        "patience",
    ): "the losses of the folds have one minimum here",
    ("RestrictedPolynomialRegression", "solver"): "another way to the same minimum",
    ("TemperatureScaling", "warm_start"): "where a second fit begins",
    (
        "StackedCalibration",
        "monotone",
    ): "refuses candidates: tests/recalibrators/test_auto.py",
    (
        "SplineCalibration",
        "monotone",
    ): "the curve rises here: tests/recalibrators/test_spline.py",
    (
        "RestrictedPolynomialRegression",
        "selection",
    ): "the same degrees here: its own tests",
    ("PriorShift", "confusion"): "of adapt, below",
    ("PriorShift", "prior"): "of adapt, below",
}
NOT_HERE = {
    ("PriorShift", "undo_resampling"): "needs the frequencies: test_prior_shift.py",
    **dict.fromkeys(
        (
            ("PriorShift", x)
            for x in ("prior", "training_prior", "strength", "penalty", "mean")
        ),
        "of adapt: tests/recalibrators/test_prior_shift.py",
    ),
    ("MulticlassBinning", "delta"): "of noise, and of the error bound: its own tests",
    ("MulticlassBinning", "p"): "with epsilon a tolerance: its own tests",
    (
        "AdaptiveCalibration",
        "level",
    ): "of predict_interval: tests/recalibrators/test_adaptive.py",
    ("AngularCalibration", "link"): "a function: tests/recalibrators/test_angular.py",
    (
        "OrdinalCalibration",
        "order",
    ): "names classes: tests/recalibrators/test_ordinal.py",
    ("RestrictedPolynomialRegression", "constraints"): "test_constrained_polynomial.py",
    (
        "MulticalibratedScores",
        "cv",
    ): "its folds are given, so that copies stay together",
}
#: That weights do not matter to.
INDIFFERENT = {
    "Identity": "it learns nothing",
    "PriorShift": "but for prior='uniform', frequencies count in adapt",
    ("MulticlassBinning", "paper"): "its groups of cells are too light",
    ("MulticlassBinning", "laplace"): "its groups of cells are too light",
    ("MulticlassBinning", "min_count"): "all cells are too light",
    ("MulticlassBinning", "max_iter"): "nothing is learned without an iteration",
    (
        "RestrictedPolynomialRegression",
        "l1",
    ): "a tight bound is met whatever the weights",
}
SLOW_OF_THREE = {  # one fit per class, of 15 ms or more
    *("AngularCalibration", "RestrictedPolynomialRegression", "SplineCalibration"),
    *("StackedCalibration", "TrendFiltering", "TrendFilteringEnsemble"),
}
SLOW = {
    ("RestrictedPolynomialRegression", "clarabel"),
    ("RestrictedPolynomialRegression", "cvxpy"),
}
DRAWS = "its rows are drawn, whatever their weights"
#: Where a weight of 2 is not two rows.
NOT_REPEATED = {
    ("MulticlassBinning", "paper"): DRAWS,
    ("MulticlassBinning", "laplace"): DRAWS,
    ("MulticlassBinning", "split"): DRAWS,
}
#: Where a class without rows is rejected.
REFUSED = {("PriorShift", "uniform"): "none of"}
#: Of a loss whose minimum is found to so many digits.
TOLERANCE = {"RestrictedPolynomialRegression": 1e-4}
#: Whose columns cannot be turned round, each with its reason.
NOT_TURNED = {
    "BBQ": "bins are filled from below, its prior counts positives",
    "HistogramBinning": "a score at an edge is in the bin below it",
    ("IsotonicCalibration", "step"): "a step keeps the value of the lower score",
    ("MulticlassBinning", "keep"): "scores are rounded down",
    ("MulticlassBinning", "paper"): DRAWS,
    ("MulticlassBinning", "laplace"): DRAWS,
    ("MulticlassBinning", "z"): "scores are rounded down",
    ("AngularCalibration", "center"): "is of the second class",
    ("AngularCalibration", "link_intercept"): "is of the second class",
    ("StackedCalibration", "cv"): "the digits of the second class draw the folds",
}
CLASSES = [*all_recalibrators().values(), GroupRecalibration, MulticalibratedScores]


def options(cls):
    """Each string and each switch of a constructor by itself, beside its defaults."""
    for name, parameter in inspect.signature(cls).parameters.items():
        constraints = cls._parameter_constraints.get(name)
        found = dict.fromkeys(strings(parameter.annotation))
        for one in constraints if isinstance(constraints, list) else ():
            found |= dict.fromkeys(
                s for s in getattr(one, "options", ()) if isinstance(s, str)
            )
        if isinstance(parameter.default, bool):
            found = {not parameter.default: None}
        found = sorted(found)
        if (
            is_number_or_object(name, constraints)
            and (cls.__name__, name) not in NOT_HERE
        ):
            found.append(VALUES.get((cls.__name__, name), VALUES.get(name, MISSING)))
        yield from ((name, value) for value in found if value != parameter.default)


def test_every_number_and_object_has_a_value():
    """A new option needs an entry in `VALUES`, or in `NOT_HERE` with the reason."""
    named = {
        (cls.__name__, name): value for cls in CLASSES for name, value in options(cls)
    }
    assert [key for key, value in named.items() if value == MISSING] == []
    assert {key for key in VALUES if isinstance(key, tuple)} <= {*named, *NOT_HERE}


def is_number_or_object(name, constraints):
    """Whether an option takes more than strings and switches; seeds and workers are none."""
    known = constraints if isinstance(constraints, list) else [constraints]
    some = [one for one in known if one not in ("boolean", "random_state", None)]
    some = [one for one in some if not isinstance(one, StrOptions)]
    return bool(some) and name not in ("random_state", "n_jobs")


def keys(cls, option):
    """What tables name: the class alone, or with the value of a string or the name of a switch."""
    pairs = [(cls.__name__, v if isinstance(v, str) else name) for name, v in option]
    return [cls.__name__, *pairs]


def build(cls, option=()):
    given = dict(WITH.get(cls.__name__, {}))
    for name, value in option:
        given |= WITH_OPTION.get((cls.__name__, name), {}) | {name: value}
    return cls(**given)


def instances(classes=(2, 3)):
    """Parameters of a test: every class by its defaults and with each option."""
    for cls in CLASSES:
        for option in [(), *((pair,) for pair in options(cls))]:
            key = keys(cls, option)[-1]
            if key in NOT_HERE:
                continue
            title = "-".join([cls.__name__, *(f"{a}={b}" for a, b in option)])
            numbers = classes if cls is not MulticalibratedScores else (2,)
            for k in numbers:
                slow = key in SLOW or (k > 2 and cls.__name__ in SLOW_OF_THREE)
                # of three classes it is quick
                slow |= bool(option) and k < max(numbers)
                marks = pytest.mark.slow if slow else ()
                yield pytest.param(cls, option, k, id=f"{title}-{k}", marks=marks)


def same(one):
    """Whether a test is of an option that changes nothing."""
    cls, option, _ = one.values
    return (cls.__name__, option[0][0]) in SAME


def rows(k):
    """Scores with ties, though none between two classes, and labels of k classes, distorted."""
    rng = np.random.default_rng(k)
    law = rng.dirichlet(np.ones(k), 2 * N)
    counts = np.array([rng.multinomial(21, p) for p in law])
    top = np.sort(counts, axis=1)
    kept = np.flatnonzero(top[:, -1] > top[:, -2])[:N]
    tilt = np.cumsum(0.5 * law + 0.5 / k * np.linspace(0.5, 1.5, k), axis=1)
    y = (rng.random(2 * N)[:, None] * tilt[:, -1:] > tilt).sum(axis=1)
    return ((counts + 1) / (21 + k))[kept], y[kept]


#: One row in eleven weighs as much as many others.
WEIGHT = np.where(
    np.arange(N) % 11 == 5, 20, 1 + np.arange(N) % 3 % 2 + np.arange(N) % 7 // 6
)
AGAIN = np.repeat(np.arange(N), WEIGHT)
GROUPS = np.arange(N) % 2
FOLDS = [(np.arange(N) % 3 != fold, np.arange(N) % 3 == fold) for fold in range(3)]


def fitted(cls, option, proba, y, picked=slice(None), **words):
    """Predictions of all rows and of others between them, after a fit on those picked."""
    model, more, at = build(cls, option), {}, {}
    if "groups" in inspect.signature(model.predict_proba).parameters:
        more, at = {"groups": GROUPS[picked]}, {"groups": GROUPS}
    if cls is MulticalibratedScores:
        model.set_params(
            cv=[tuple(np.flatnonzero(p[picked]) for p in pair) for pair in FOLDS]
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model.fit(proba[picked], y[picked], **more, **words)
        between = 0.6931 * proba + 0.3069 * np.roll(proba, 1, axis=0)
        seen = model.predict_proba(proba, **at)
        return np.vstack([seen, model.predict_proba(between, **at)])


def assert_close(cls, found, expected):
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=TOLERANCE.get(cls.__name__, 1e-7)
    )


@pytest.mark.slow
@pytest.mark.whole
@run_every_case(("cls", "option", "k"), instances())
def test_words_of_a_fit(cls, option, k):
    """Weights are repeated rows, columns come in any order, a class without rows has a column."""
    (proba, y), declared = rows(k), getattr(cls, "capabilities", None)
    plain = fitted(cls, option, proba, y)
    named = set(keys(cls, option))
    if declared is None or declared.sample_weight:
        weighted = fitted(cls, option, proba, y, sample_weight=WEIGHT)
        if not (named & set(NOT_REPEATED) or (declared and declared.order_dependent)):
            assert_close(cls, fitted(cls, option, proba, y, AGAIN), weighted)
        differs = np.abs(weighted - plain).max() > 1e-6
        assert differs or named & set(INDIFFERENT), "weights change nothing"
        check_missing_class(cls, option, proba, y, named & set(REFUSED))
    names = np.array(list("zyx"))[:k]
    assert_close(cls, fitted(cls, option, proba, names[y], classes=names), plain)
    lifted = k > 2 and declared is not None and declared.multiclass == "one-vs-rest"
    if lifted or not named & set(NOT_TURNED):
        turned = fitted(cls, option, proba[:, ::-1], k - 1 - y)
        assert_close(cls, turned[:, ::-1], plain)


def check_missing_class(cls, option, proba, y, refused):
    kept, k = y != 0, proba.shape[1]

    def without():
        return fitted(cls, option, proba, y, kept, classes=range(k))

    if refused:
        with raises_invalid_input(ValueError, value=r"none of \[0\]"):
            without()
    elif not set(keys(cls, option)) & set(NOT_REPEATED):
        assert_close(
            cls, fitted(cls, option, proba, y, sample_weight=1.0 * kept), without()
        )


@run_every_case(
    ("cls", "option", "k"),
    [one for one in instances((3,)) if one.values[1] and not same(one)],
)
def test_every_option_changes_something(cls, option, k):
    """A string or a switch that is ignored gives what the default gives."""
    ((name, _),) = option
    default = (name, inspect.signature(cls).parameters[name].default)
    given = [*build(cls, option).get_params(deep=False).items()]
    proba, y = rows(k)
    changed = fitted(cls, option, proba, y) - fitted(cls, [*given, default], proba, y)
    assert np.abs(changed).max() > 1e-6
