"""Labels, scores, weights and groups of pandas whose indexes differ: a warning, or an error."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from test_functions import FUNCTIONS, SLOW, N, call, rows
from test_methods import CLASSES, build, rows as rows_of_methods
from words import same

from sklearn_calib._validation import check_and_get_common_index
from sklearn_calib.decisions import risk_coverage_curve
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import group_calibration
from sklearn_calib.inference import calibrated_mean, confidence_interval
from sklearn_calib.metrics import brier_loss, log_loss
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    MultilabelCalibration,
    TemperatureScaling,
    cross_fitted_proba,
)
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

TABLES = {"first", "second"}
RULE = "one index for labels, scores, weights and groups of the same rows"
#: The arguments of each kind of data that the tests of functions pass.
OF_DATA = {
    "y": ("y_true",),
    "first": ("y_proba", "first_proba", "staged_proba"),
    "second": ("second_proba", "staged_proba"),
    "clusters": ("groups",),
}
#: Functions to which groups are columns of a table, and those without labels.
NO_LABELS = "validation_sample_size"


def named(values, labels):
    """A Series, or a table, whose rows have these labels."""
    return (pd.Series if np.ndim(values) == 1 else pd.DataFrame)(values, index=labels)


def said_of(function, *given, **more):
    """Whether the indexes are warned of; everything else may be said, too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*given, **more)
    return {str(one.message) for one in caught if RULE in str(one.message)}


def cases():
    """Functions of labels, and each of their arguments that has rows."""
    for name, function in FUNCTIONS.items():
        known = set(inspect.signature(function).parameters)
        for kind, arguments in OF_DATA.items():
            if known & set(arguments) and name != NO_LABELS:
                key = kind
                if kind == "clusters" and name == "group_calibration":
                    key = "groups"
                yield pytest.param(name, key, marks=[pytest.mark.slow] * (name in SLOW))
        if "sample_weight" in known and name != NO_LABELS:
            yield pytest.param(
                name, "sample_weight", marks=[pytest.mark.slow] * (name in SLOW)
            )


@pytest.mark.parametrize(("name", "changed"), cases())
def test_every_function_compares_the_indexes(name, changed):
    function = FUNCTIONS[name]
    labels = np.array([f"row {i}" for i in range(N)])
    k = 3

    def given(other):
        data = rows(k)
        more = {}
        if "sample_weight" in inspect.signature(function).parameters:
            more["sample_weight"] = np.ones(N)
        for key in data:
            data[key] = named(data[key], other if key == changed else labels)
        for key in more:
            more[key] = named(more[key], other if key == changed else labels)
        return data, more

    def run(other):
        data, more = given(other)
        return call(function, data, **more)

    try:
        assert said_of(run, labels) == set()
    except ValueError as error:
        assert "expected" in str(error)
        k = 2
        assert said_of(run, labels) == set()
    # only counts, and is uninformative about the rows
    assert said_of(run, np.arange(N)) == set()
    assert len(said_of(run, labels[::-1])) == 1
    with raises_invalid_input(ValueError, expected=RULE, value="'.*' in some only"):
        run(np.array([f"other {i}" for i in range(N)]))


@pytest.mark.parametrize("changed", ["X", "y", "sample_weight", "groups"])
@pytest.mark.parametrize("cls", CLASSES)
def test_every_recalibrator_compares_the_indexes(cls, changed):
    proba, y = rows_of_methods(2)
    n = 40
    labels = np.arange(100, 100 + n)

    def fit(other):
        at = {key: other if key == changed else labels for key in ("X", "y", "groups")}
        more = {}
        if "groups" in inspect.signature(cls.fit).parameters:
            more["groups"] = named(np.arange(n) % 2, at["groups"])
        if changed == "sample_weight":
            more["sample_weight"] = named(np.ones(n), other)
        build(cls).fit(named(proba[:n, 1], at["X"]), named(y[:n], at["y"]), **more)

    expected = 1
    if changed == "groups" and "groups" not in inspect.signature(cls.fit).parameters:
        expected = 0
    assert len(said_of(fit, labels[::-1])) == expected
    if expected:
        with raises_invalid_input(ValueError, expected=RULE):
            fit(labels + 1)


# -- what counts as another index ---------------------------------------------------------------


def test_the_index_of_a_split_beside_that_of_an_array():
    """As after train_test_split: the labels are shuffled rows, the scores were just made."""
    picked = np.array([7, 3, 11, 5, 2, 8])
    y = pd.Series([0, 1, 0, 1, 1, 0], index=picked)
    p = pd.Series([0.2, 0.7, 0.4, 0.8, 0.6, 0.1])
    assert brier_loss(y, p) == brier_loss(y.to_numpy(), p.to_numpy())
    # half of the rows: a number that both have proves nothing
    y.index = [0, 1, 2, 3, 4, 9]
    assert brier_loss(y, p) == brier_loss(y.to_numpy(), p.to_numpy())


def test_sorted_labels_beside_rows_that_are_counted():
    p = pd.Series(np.linspace(0.1, 0.9, 6))
    y = pd.Series([0, 1, 0, 1, 1, 0]).sort_values(kind="stable")
    with pytest.warns(CalibrationWarning, match="one index in two orders") as caught:
        found = brier_loss(y, p)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert found == brier_loss(y.to_numpy(), p.to_numpy())  # by position


def test_a_filter_of_one_side_of_equal_length():
    frame = pd.DataFrame(
        {"y": [0, 1, 0, 1], "p": [0.1, 0.8, 0.3, 0.6]}, index=list("abcd")
    )
    y, p = frame["y"].iloc[1:], frame["p"].iloc[:-1]
    with raises_invalid_input(
        ValueError, expected=RULE, value="'[ad]' in some only", hint=r".*\.to_numpy\(\)"
    ):
        log_loss(y, p)
    assert log_loss(y.to_numpy(), p) > 0


@run_every_case(
    ("one", "other", "said"),
    [
        ([1, 2, 3], [1.0, 2.0, 3.0], None),
        (
            pd.MultiIndex.from_tuples([(1, 2), (3, 4)]),
            [(3, 4), (1, 2)],
            CalibrationWarning,
        ),
        (
            pd.date_range("2026", periods=2),
            pd.date_range("2027", periods=2),
            ValueError,
        ),
        ([5, 5, 6], [6, 5, 5], CalibrationWarning),
        (pd.MultiIndex.from_tuples([(1, 2), (3, 4)]), [0, 1], None),
        (pd.MultiIndex.from_tuples([(1, 2), (3, 4)]), [8, 9], ValueError),
        (pd.date_range("2026", periods=2), [True, False], ValueError),
        (["a", 1], [1, "a"], CalibrationWarning),
        ([1, 2], ["1", "2"], ValueError),
        (range(2), [3, 4], None),
        (range(1, 3), [3, 4], ValueError),
    ],
)
def test_kinds_of_indexes(one, other, said):
    index = pd.MultiIndex.from_tuples(other) if isinstance(other[0], tuple) else other
    first = pd.Series(np.zeros(len(one)), index=one)
    second = pd.Series(np.zeros(len(one)), index=index)
    if said is None:
        check_and_get_common_index(first, second)
    elif said is ValueError:
        with raises_invalid_input(ValueError, expected=RULE):
            check_and_get_common_index(first, second)
    else:
        with pytest.warns(said, match=RULE):
            check_and_get_common_index(first, None, 0.5, [1, 2], second)


# -- what is not a function of labels and probabilities ----------------------------------------


def test_other_places():
    data = rows(2)
    labels = np.arange(200, 200 + N)
    y, p = named(data["y"], labels), named(data["first"][:, 1], labels[::-1])
    groups = named(data["clusters"], labels[::-1])
    quick = {"measures": ["log_loss"], "n_resamples": 2}
    calls = {
        "report": lambda: calibration_report(y, {"a": p}, check_columns=False, **quick),
        "summary": lambda: CalibrationSummary().update(y, p),
        "weights": lambda: CalibrationSummary().update(y, data["first"], groups),
        "counts": lambda: CalibrationSummary().update(y, data["first"], counts=groups),
        "monitor": lambda: CalibrationMonitor().update(y, p),
        "groups": lambda: CalibrationMonitor(groups=range(10)).update(
            y, data["first"], groups=groups
        ),
        "blocks": lambda: TemperatureScaling().fit_blocks([(p, y)], kind="proba"),
        "cross": lambda: cross_fitted_proba("platt", data["first"], y, groups=groups),
        "mean": lambda: calibrated_mean(y, p, data["second"][:, 1]),
        "risk": lambda: risk_coverage_curve(y, p),
        "interval": lambda: confidence_interval(
            y, data["first"], "brier_loss", groups=groups, n_resamples=20
        ),
        "table": lambda: group_calibration(
            y, data["first"], pd.DataFrame({"g": groups}), min_rows=5, n_resamples=2
        ),
        "columns": lambda: group_calibration(
            y, data["first"], {"g": groups}, min_rows=5, n_resamples=2
        ),
        "labels": lambda: log_loss(
            pd.DataFrame({"a": y, "b": 1 - y}),
            pd.DataFrame({"a": p, "b": p}).sort_index(ascending=False),
            multilabel="macro",
        ),
        "multilabel": lambda: MultilabelCalibration().fit(
            named(data["first"], labels), named(np.eye(2)[data["y"]], labels[::-1])
        ),
        "soft": lambda: log_loss(
            named(np.eye(2)[data["y"]], labels),
            named(data["first"], labels[::-1]),
            soft_labels=True,
        ),
    }
    for name, function in calls.items():
        assert len(said_of(function)) == 1, name


def test_rows_are_taken_by_position():
    data = rows(3)
    labels = np.arange(N)
    given = named(data["y"], labels[::-1]), named(data["first"], labels)
    with pytest.warns(CalibrationWarning, match=RULE):
        found = log_loss(*given)
    assert found == log_loss(data["y"], data["first"])
    same({"a": found}, {"a": log_loss(data["y"], data["first"])})
