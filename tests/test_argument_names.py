"""Errors name the argument as the user wrote it, and the function or method that was called."""

import copy
import functools
import inspect
import re

import numpy as np
import pytest
from cases import run_every_case
from offered import offered
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from test_functions import call, rows

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.decisions import CostSensitiveClassifier
from sklearn_calib.export import to_dict, to_json
from sklearn_calib.groups import GroupRecalibration, MulticalibratedScores
from sklearn_calib.inference import CalibrationTester
from sklearn_calib.metrics import Measure
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    MultilabelCalibration,
    TemperatureScaling,
    all_recalibrators,
    get_recalibrator,
)
from sklearn_calib.summary import CalibrationSummary

DATA = rows(2)
PROBA, Y = DATA["first"], DATA["y"]
FITTED = TemperatureScaling().fit(PROBA, Y)
X = np.random.default_rng(0).normal(size=(80, 3))
MODEL = LogisticRegression(C=100.0).fit(X, Y)

#: What a function is called with beside the arguments of `call`.
GIVEN = {
    "canonical_labels": {"y": Y},
    "canonical_proba": {"scores": PROBA},
    "canonical_weight": {"sample_weight": np.ones(80), "n_samples": 80},
    "make_overconfident": {"n_classes": 2},
    "binning_sample_size": {"p": 2.0, "epsilon": 0.1},
    "cross_fitted_proba": {"recalibrator": "temperature", "proba": PROBA, "y": Y},
    "get_recalibrator": {"name": "temperature"},
    "get_loss": {"loss": "log"},
    "get_scorer": {"name": "neg_log_loss"},
    "approximate_leave_one_out": {"model": MODEL, "X": X, "y": Y},
    "calibrated_mean": {"y": Y, "score": PROBA[:, 1], "score_unlabelled": PROBA[:, 0]},
    "internal_validation": {
        "estimator": LogisticRegression(),
        "X": X,
        "y": Y,
        "n_resamples": 2,
    },
    "logistic_intervals": {"model": MODEL, "X_train": X, "X": X},
    "prior_shift_test": {"proba_source": PROBA, "y": Y, "proba_target": PROBA},
    "summarize": {"data": {"p": PROBA[:, 1], "y": Y}, "label": "y", "prob": "p"},
    "to_code": {"fitted": FITTED, "language": "c"},
    "to_dict": {"fitted": FITTED},
    "to_json": {"fitted": FITTED},
    "to_onnx": {"fitted": FITTED},
    "to_sql": {"fitted": FITTED},
    "from_dict": {"document": to_dict(FITTED)},
    "from_json": {"source": to_json(FITTED)},
    "simplify": {"source": to_dict(FITTED)},
    "estimate_angle": {"model": MODEL, "X": X, "y": Y},
    "find_distinct_labels": {"data": {"y": Y}, "label": "y"},
    "as_eval_metric": {"library": "lightgbm"},
    "calibration_report": {"y_true": Y, "y_proba": PROBA},
    "multilabel_report": {"y_true": np.eye(2, dtype=int)[Y], "y_proba": PROBA},
}
#: Functions that are not looked at, each with its reason.
EXEMPT = {
    **dict.fromkeys(
        ("validate_predictions", "compute_curve", "validate_multilabel"),
        "for authors of measures",
    ),
    **dict.fromkeys(
        ("simulate_null_distribution", "simulate_bootstrap_distribution"),
        "takes a validated case",
    ),
    "simulate_distribution": "takes a function that draws",
    "find_groups": "takes the name of the function that was called",
    **dict.fromkeys(
        ("measure", "binary_measure"), "is a decorator for authors of measures"
    ),
    "own_logits": "takes an estimator that was looked at",
}
ROOMS_OF_AUTHORS = ("testing", "staged", "theory")
LINK = ("link", "link_slope", "link_intercept")
#: Pairs of them that are not either.
CALLERS_OWN = {
    ("canonical_proba", "n_classes"): "is what the caller knows",
    ("canonical_weight", "n_samples"): "is what the caller knows",
    ("get_loss", "n_classes"): "is what the caller knows",
    ("is_summary_file", "path"): "Python's own error",
    ("calibration_report", "by"): "columns of it are refused as groups",
    ("to_json", "path"): "Python's own error",
    ("to_json", "indent"): "Python's own error",
    ("to_onnx", "X"): "is looked at only with a classifier",
    **dict.fromkeys(
        (("estimate_angle", x) for x in LINK), "is looked at without a covariance"
    ),
    ("to_sql", "table"): "is looked at only with into='table'",
    ("summarize", "pos_label"): "is any label",
    ("log_proba", "proba"): "is what canonical_proba gave",
    ("from_dict", "document"): "the message says what is wrong in the document",
}
#: Arguments that take anything, each with its reason.
FREE = {
    "keeps_unit": "says who asks",
    "source": "is shown as it is",
    "unit": "is shown as it is",
    **dict.fromkeys(
        ("advice", "check_columns", "debias", "drop_missing", "edited"), "true or not"
    ),
    **dict.fromkeys(
        ("held_out", "keep", "normalize", "assume_centered"), "true or not"
    ),
    "soft_labels": "true or not",
}


def functions():
    """Public functions and measures by name; of the measures one, they share their arguments."""
    for name, thing in offered(*ROOMS_OF_AUTHORS, "exceptions"):
        known = inspect.isfunction(thing) or isinstance(thing, Measure)
        if known and name not in EXEMPT:
            yield name, thing


FUNCTIONS = dict(functions())
SHARED = (
    "y_true",
    "y_proba",
    "sample_weight",
    "labels",
    "pos_label",
    "multilabel",
    "multiclass",
)


def arguments():
    """(function, argument) for every public function."""
    for name, thing in FUNCTIONS.items():
        for parameter in inspect.signature(thing).parameters.values():
            argument = parameter.name
            shared = isinstance(thing, Measure) and name != "calibration_error"
            free = {*FREE, *(SHARED if shared else ())}
            named = argument[0] != "_" and parameter.kind is not parameter.VAR_KEYWORD
            if named and argument not in free and (name, argument) not in CALLERS_OWN:
                yield name, argument


def wrong(argument):
    """Values that it does not take: another type, and of rows another number."""
    yield object()
    if argument in ("y", "y_true", "y_proba", "proba", "groups", "sample_weight", "X"):
        yield [0.5] * 7


def check(argument, function):
    with pytest.raises((ValueError, TypeError)) as caught:
        function()
    said = str(caught.value)
    assert (
        re.search(rf"\b{argument}\b", said)
        or "as many labels as rows of scores" in said
    ), said


@run_every_case(("name", "argument"), arguments())
def test_functions(name, argument):
    for value in wrong(argument):
        given = GIVEN.get(name, {}) | {argument: value}
        if name in GIVEN:
            check(argument, functools.partial(FUNCTIONS[name], **given))
        else:
            check(argument, functools.partial(call, FUNCTIONS[name], DATA, **given))


# -- methods --------------------------------------------------------------------------------------

GROUPS = np.arange(80) % 2
#: Objects whose methods are called, with the arguments of `fit` or `update`.
ROWS = {"X": PROBA, "y": Y}
METHODS = {
    **{name: (get_recalibrator(name), ROWS) for name in all_recalibrators()},
    "group": (GroupRecalibration("temperature"), ROWS | {"groups": GROUPS}),
    "multicalibrated": (MulticalibratedScores(), ROWS | {"groups": GROUPS}),
    "model": (CalibratedModel(LogisticRegression(), cv=2), {"X": X, "y": Y}),
    "refined": (RefineThenCalibrateCV(LogisticRegression(), cv=2), {"X": X, "y": Y}),
    "multilabel": (MultilabelCalibration(), {"X": PROBA, "y": np.eye(2)[Y]}),
    "costs": (
        CostSensitiveClassifier(LogisticRegression(), costs=np.eye(2)),
        {"X": X, "y": Y},
    ),
    "summary": (CalibrationSummary(), {"y_true": Y, "y_proba": PROBA}),
    "monitor": (CalibrationMonitor(), {"y": Y, "y_proba": PROBA}),
    "tester": (CalibrationTester(0.1), {"y_true": Y, "y_proba": PROBA}),
}
LEARN = ("fit", "partial_fit", "update", "test")
PREDICT = ("predict_proba", "predict", "transform")
OF_FEATURES = ("model", "refined", "costs")
OF_MODEL = ("X", "sample_weight")  # are rejected by the user's own model


def methods():
    """(name, method, argument) for what learns, and what predicts after it."""
    for name, (thing, _) in METHODS.items():
        shared = name in all_recalibrators() and name not in ("temperature", "adaptive")
        of_all = LEARN if shared else (*LEARN, *PREDICT)
        for method in (
            ("update",) if callable(getattr(thing, "update", None)) else of_all
        ):
            function = getattr(type(thing), method, None)
            if not callable(function):  # none, or an option of that name
                continue
            for argument, parameter in [
                *inspect.signature(function).parameters.items()
            ][1:]:
                of_model = OF_MODEL if name in OF_FEATURES else ()
                free = {*FREE, "only_later", *of_model}
                if parameter.kind is not parameter.VAR_KEYWORD and argument not in free:
                    yield name, method, argument


@functools.cache
def learned(name):
    thing, given = METHODS[name]
    return clone(thing).fit(**given)


@pytest.mark.slow
@run_every_case(("name", "method", "argument"), methods())
def test_methods(name, method, argument):
    thing, given = METHODS[name]
    values = [*wrong(argument)]
    if method in PREDICT:
        thing, values = learned(name), values[:1]
        known = inspect.signature(getattr(thing, method)).parameters
        given = {key: value for key, value in given.items() if key in known}
    for value in values:
        bound = getattr(copy.deepcopy(thing), method)
        check(argument, functools.partial(bound, **given | {argument: value}))
