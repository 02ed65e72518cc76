"""Columns named in an order of their own: every public `classes=` and `labels=` of a method.

The functions with `labels=` are in test_functions.py; test_report_columns.py has the correct
predictions for which the check must be silent.
"""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from offered import offered
from test_functions import FUNCTIONS

from sklearn_calib.decisions import decision_curve, expected_metrics
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import GroupRecalibration, MulticalibratedScores
from sklearn_calib.inference import CalibrationTester
from sklearn_calib.metrics import log_loss, smooth_calibration_error
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    OnlineCalibration,
    TemperatureScaling,
    VectorScaling,
    all_recalibrators,
    cross_fitted_proba,
    get_recalibrator,
)
from sklearn_calib.summary import CalibrationSummary, summarize

NAMES = np.array(["high", "low", "medium"])
ORDER = ["low", "medium", "high"]  # of the scale; scikit-learn's columns are sorted
N = 150


def rows(n=N, order=None):
    """Labels and their probabilities, nine of ten right; columns sorted, or in this order."""
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 3
    said = np.where(rng.random(n) < 0.9, codes, rng.integers(0, 3, n))
    proba = rng.dirichlet([2, 2, 2], n) + 4 * rng.random((n, 1)) * np.eye(3)[said]
    proba /= proba.sum(axis=1, keepdims=True)
    proba = proba if order is None else proba[:, np.searchsorted(NAMES, order)]
    return NAMES[codes], proba


def summarized(y, proba):
    table = pd.DataFrame(proba, columns=list("abc")).assign(y=y)
    return summarize(table, label="y", prob=list("abc"), classes=ORDER)


def said_of_order(function, *given):
    """The warnings that are about the order of columns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*given)
    return [one for one in caught if "columns that fit" in str(one.message)]


PLACES = {
    "OnlineCalibration.partial_fit": lambda y, p: OnlineCalibration().partial_fit(
        p, y, classes=ORDER
    ),
    "GroupRecalibration.fit": lambda y, p: GroupRecalibration("temperature").fit(
        p, y, groups=["one"] * len(y), classes=ORDER
    ),
    "MulticalibratedScores.fit": lambda y, p: MulticalibratedScores(
        cv=2, n_rounds=1, n_trees=1
    ).fit(p, y, groups=["one"] * len(y), classes=ORDER),
    "cross_fitted_proba": lambda y, p: cross_fitted_proba(
        "temperature", p, y, classes=ORDER
    ),
    "TemperatureScaling.fit_blocks": lambda y, p: TemperatureScaling().fit_blocks(
        [(p, y)], kind="proba", classes=ORDER
    ),
    "VectorScaling.fit_blocks": lambda y, p: VectorScaling().fit_blocks(
        [(p[:60], y[:60]), (p[60:], y[60:])], kind="proba", classes=ORDER
    ),
    "CalibrationTester.test": lambda y, p: CalibrationTester(0.1).test(
        y, p, labels=ORDER
    ),
    "CalibrationMonitor.update": lambda y, p: CalibrationMonitor(classes=ORDER).update(
        y, p
    ),
    "CalibrationSummary.update": lambda y, p: CalibrationSummary(classes=ORDER).update(
        y, p
    ),
    "summarize": summarized,
}
#: Public `classes=` and `labels=` of methods that move or doubt nothing, each with its
#: reason.
EXEMPT = {
    "canonical_labels": "has no scores",
    "validate_predictions": "is what the functions with labels= call: tests/test_functions.py",
    "validate_multilabel": "labels= names columns of y itself",
    "Predictions": "takes what validate_predictions has checked",
    "CellProblems": "takes what CalibrationSummary has checked",
    "ColumnOrder": "is what find_column_order gives",
    "InternalValidation": "is what internal_validation gives",
    "CalibrationReport": "takes what calibration_report has checked",
    "LabelReport": "takes what calibration_report has checked",
    "ExportedMap.fit": "refuses any order but that of the map",
    "calibration_report": "refuses: tests/test_report_columns.py",
    "multilabel_report": "refuses: tests/test_report_labels.py",
    "find_column_order": "gives the words: tests/test_report_columns.py",
}
RECALIBRATORS = [
    name
    for name in all_recalibrators()
    if name not in ("group",)
    and get_recalibrator(name).capabilities.max_classes is None
]


def _callables():
    for name, thing in offered():
        if inspect.isclass(thing):
            yield name, thing
            for method, function in inspect.getmembers(thing, inspect.isfunction):
                if method[0] != "_" and not method.startswith("set_"):
                    yield f"{name}.{method}", function
        elif callable(thing):
            yield name, thing


def test_every_argument_is_here():
    """Another public `classes=` or `labels=` gets its line in this file."""
    recalibrators = {
        type(get_recalibrator(name)).__name__ for name in all_recalibrators()
    }
    left = set()
    for name, thing in _callables():
        try:
            known = set(inspect.signature(thing).parameters)
        except ValueError:
            continue
        owner, _, method = name.partition(".")
        updated = {"CalibrationMonitor", "CalibrationSummary"}
        if known & {"classes", "labels"} and not (
            name in {*PLACES, *EXEMPT, *FUNCTIONS, *updated}
            or (method == "fit" and owner in recalibrators | {"Recalibrator"})
        ):
            left.add(name)
    assert not left


@run_every_case("name", PLACES)
def test_an_order_that_the_columns_cannot_have(name):
    said = "labels" if name == "CalibrationTester.test" else "classes"
    order = said_of_order(PLACES[name], *rows())
    assert len(order) == 1 and order[0].filename == __file__
    assert str(order[0].message).startswith(
        f"expected columns in the order of {said}={ORDER}, got columns that fit "
        f"{NAMES.tolist()}: the largest probability is that of the true class in 0."
    )


@run_every_case("name", PLACES)
@pytest.mark.filterwarnings("ignore:.*expected two classes for a correction by groups")
@pytest.mark.filterwarnings(
    "ignore:.*expected some calibration label without the largest"
)
@pytest.mark.filterwarnings("ignore:.*expected a group")
def test_an_order_of_its_own_that_is_right(name):
    PLACES[name](*rows(order=ORDER))  # warnings are errors


@run_every_case(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n == "auto")) for n in RECALIBRATORS],
)
def test_fit_of_every_recalibrator(name):
    y, proba = rows()
    method = get_recalibrator(name)
    said = said_of_order(lambda: method.fit(proba, y, classes=ORDER))
    assert len(said) == 1 and said[0].filename == __file__
    assert "expected columns in the" in str(said[0].message)


def test_a_summary_warns_once_of_all_its_batches():
    y, proba = rows()
    summary = CalibrationSummary(classes=ORDER)
    with pytest.warns(CalibrationWarning, match="columns that fit"):
        summary.update(y, proba)
    summary.update(y, proba)
    # two columns, and one; counts and weights that are 0 do not speak
    two = np.array(["no", "yes"])[np.arange(N) % 2]
    p = np.where(two == "yes", 0.9, 0.1)
    for given in (p, np.column_stack([1 - p, p])):
        with pytest.warns(
            CalibrationWarning, match=r"\['yes', 'no'\], got columns that fit"
        ):
            CalibrationSummary(classes=["yes", "no"]).update(two, given)
    CalibrationSummary(classes=["yes", "no"]).update(two, p, np.zeros(N))
    CalibrationSummary(classes=["yes", "no"]).update(
        two, p, counts=np.zeros(N, dtype=int)
    )
    with pytest.warns(CalibrationWarning, match="columns that fit"):
        CalibrationSummary(classes=["yes", "no"]).update(
            two[:2], p[:2], counts=[10**12, 10**12]
        )


@pytest.mark.slow
def test_other_processes_warn_here(tmp_path):
    y, proba = rows()
    table = pd.DataFrame(proba, columns=list("abc")).assign(y=y)
    files = [str(tmp_path / f"{part}.parquet") for part in range(2)]
    for part, file in enumerate(files):
        table[part::2].to_parquet(file)
    with pytest.warns(CalibrationWarning, match=".*columns that fit") as caught:
        summarize(files, label="y", prob=list("abc"), classes=ORDER, n_jobs=2)
    assert len(caught) == 1


def test_rows_of_weight_zero_do_not_speak():
    y, proba = rows()
    weight = np.r_[np.ones(6), np.zeros(N - 6)]
    log_loss(y, proba, sample_weight=weight, labels=ORDER)
    expected_metrics(proba, y_true=y, sample_weight=weight, labels=ORDER)


def test_names_without_labels_are_counted():
    with raises_invalid_input(
        ValueError, expected=".*one class for each of the 3 columns ", value="2 classes"
    ):
        expected_metrics(rows()[1], labels=["low", "high"])


def test_a_column_belongs_to_the_positive_class():
    """As ``brier_score_loss(y, p, pos_label=...)`` takes it; was 0.95 for 0.04."""
    rng = np.random.default_rng(0)
    p = 0.6 * rng.random(400) ** 4
    y = np.where(rng.random(400) < p, "fraud", "ok")
    expected = smooth_calibration_error(y == "fraud", p)
    assert smooth_calibration_error(y, p, pos_label="fraud") == pytest.approx(expected)
    both = np.column_stack([p, 1 - p])
    assert smooth_calibration_error(y, both, pos_label="fraud") == pytest.approx(
        expected
    )
    for measure in (smooth_calibration_error, decision_curve):
        with raises_invalid_input(
            ValueError, hint="Pass pos_label='ok' if it is .* else pos_label='fraud'"
        ):
            measure(y, p)
    assert smooth_calibration_error(y, p, labels=["ok", "fraud"]) == pytest.approx(
        expected
    )
