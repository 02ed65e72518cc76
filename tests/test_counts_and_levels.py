"""Counts, levels and seeds of every public function are worded where they cannot be."""

import inspect

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from offered import offered
from words import numbers

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.summary import CalibrationSummary

P, Y = make_overconfident(2, 60, random_state=0)
NAMES = ("level", "n_resamples", "n_bins", "random_state")
BAD = {
    "level": ["a", np.nan, True, -1, 0, 1, 99.5, None],
    "n_resamples": ["a", np.nan, True, -1, 99.5, np.inf, -np.inf, [5]],
    "n_bins": ["a", np.nan, True, -1, 0, 99.5, -np.inf, [5]],
    "random_state": ["a", np.nan, True, -1, 99.5],
}
GIVEN = {  # what the required parameters of public functions stand for
    "y_true": Y,
    "y": Y,
    "y_proba": P,
    "first_proba": P,
    "second_proba": P[::-1],
    "groups": [Y == 0],
    "measure": "log_loss",
    "proba_source": P,
    "proba_target": P,
    "threshold": 0.5,
    "thresholds": [0.2, 0.5],
    "epsilon": 0.5,
    "costs": [[0, 1], [1, 0]],
}


def functions():
    """(name, function, parameters to try) of public functions that take rows."""
    found = {}
    for name, thing in offered("testing"):
        # of a table of labels
        if not inspect.isfunction(thing) or name == "multilabel_report":
            continue
        parameters = inspect.signature(thing).parameters
        needed = [
            p.name for p in parameters.values() if p.default is p.empty and p.kind < 2
        ]
        if set(needed) <= set(GIVEN) and set(NAMES) & set(parameters):
            found[name] = (thing, needed, [n for n in NAMES if n in parameters])
    return found


def arguments(function, needed):
    """What a function needs, and groups of any size."""
    given = {key: GIVEN[key] for key in needed}
    more = {"y_proba": P, "min_rows": 1}
    return given | {
        k: v for k, v in more.items() if k in inspect.signature(function).parameters
    }


FUNCTIONS = functions()
CASES = [
    pytest.param(name, parameter, value, id=f"{name}-{parameter}-{value}")
    for name, (_, _, parameters) in FUNCTIONS.items()
    for parameter in parameters
    for value in BAD[parameter]
]


@run_every_case(("name", "parameter", "value"), CASES)
def test_bad_values_are_worded(name, parameter, value):
    function, needed, parameters = FUNCTIONS[name]
    given = arguments(function, needed)
    if "n_resamples" in parameters:
        given["n_resamples"] = 20
    if name in ("confidence_interval", "paired_difference"):
        given["measure"] = "smooth_calibration_error"
    if name in ("cumulative_test", "hosmer_lemeshow_test"):
        given["groups"] = np.arange(60) // 2  # there are no draws without clusters
    given[parameter] = value
    with raises_invalid_input((ValueError, TypeError), expected=f".*{parameter}"):
        function(**given)


@run_every_case(
    "name", [name for name, found in FUNCTIONS.items() if NAMES[1] in found[2]]
)
def test_no_draws(name):
    """0 draws are rejected, but for curves and reports, which are then without such bands."""
    function, needed, _ = FUNCTIONS[name]
    given = arguments(function, needed) | {"n_resamples": 0}
    if name in ("reliability_curve", "calibration_report"):
        function(**given)
        return
    with raises_invalid_input(ValueError, expected=".*n_resamples", value="0"):
        function(**given)


@run_every_case(
    "name", [name for name, found in FUNCTIONS.items() if NAMES[1] in found[2]]
)
def test_whole_numbers_may_be_floats(name):
    """As 1e3 is one."""
    function, needed, _ = FUNCTIONS[name]
    given = arguments(function, needed)
    if name in ("confidence_interval", "paired_difference"):
        given |= {"measure": "log_loss", "level": 0.5}
    if name == "group_calibration":
        given["groups"] = GIVEN["groups"]
    found = [dict(numbers(function(**given, n_resamples=n))) for n in (9, 9.0)]
    for field, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][field])


@pytest.mark.parametrize("parameter", NAMES[1:])
def test_of_summaries(parameter):
    summary = CalibrationSummary().update(Y, P)
    for value in BAD[parameter]:
        for method in (summary.test, summary.reliability_curve):
            if parameter in inspect.signature(method).parameters:
                with raises_invalid_input((ValueError, TypeError)):
                    method(**{parameter: value})


def test_many_functions_are_seen():
    assert len(FUNCTIONS) >= 12, sorted(FUNCTIONS)
