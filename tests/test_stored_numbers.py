"""Every number of every public call is what it was when somebody last looked at it.

After an intended change run ``python tests/stored_numbers.py``, and give the reason for
each field that it names. Digits differ between processors and versions of numpy and
scipy: the tolerances are relative to the size of the entries, and draws are compared
where the numbers were written.
"""

import json
import platform
import sys

import numpy as np
import pytest
from cases import check_every_case
from stored_numbers import FILE, answer, calls

CALLS = calls()
STORED = json.loads(FILE.read_text(encoding="utf-8"))
pytestmark = pytest.mark.skipif(
    np.__version__ < "2" or sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the numbers were written by numpy 2 on Linux and x86_64",
)
RTOL = 3e-6
#: Angle, slope and intercept of a link trade off along a flat ridge of the likelihood, on
#: which the last step ends elsewhere by 5e-6 on another processor.
RTOL_ON_RIDGE = 2e-5
ON_RIDGE = ("link_intercept_", "link_slope_", "theta_", "cos_theta_")
WRITE = "run `python tests/stored_numbers.py`"


PER_TEST = 40  # calls
#: Their calls take 0.2 s or more together, as those of a display.
SLOW = (
    "AngularCalibration",
    "CalibratedModel",
    "CalibrationMonitor",
    "CalibrationSummary auto of 2 classes",
    "CalibrationSummary classwise of 3 classes",
    "MulticalibratedModel",
    "MulticalibratedScores",
    "MulticlassBinning",
    "OneVsRest",
    "RefineThenCalibrateCV",
    "RestrictedPolynomialRegression",
    "StackedCalibration",
    "TopLabel",
    "TrendFiltering",
    "TrendFilteringEnsemble",
    "calibration_report",
    "commands",
    "confidence_interval",
    "cross_fitted_proba",
    "decompose_loss",
    "from_dict",
    "group_calibration",
    "long names",
    "outputs of commands",
    "paired_difference",
    "summarize",
    "to_sql and to_code",
    "validation_summary",
    "variational_calibration_interval",
)


def parameters():
    """(name, titles): some calls of one function or class."""
    for name in sorted(CALLS):
        titles = sorted(CALLS[name])
        is_slow = name in SLOW or name.endswith("Display")
        marks = [pytest.mark.slow] if is_slow else []
        for start in range(0, len(titles), PER_TEST):
            chosen = titles[start : start + PER_TEST]
            yield pytest.param(name, chosen, id=f"{name}-{start}", marks=marks)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "titles"), parameters())
def test_numbers_are_what_they_were(name, titles):
    cases = {title: {"name": name, "title": title} for title in titles}
    check_every_case(cases, check_call)


def check_call(name, title):
    stored = STORED.get(name, {})
    assert title in stored, f"{name}, {title} is new: {WRITE}"
    if stored[title] is not None:  # which takes too long
        check_numbers(f"{name}, {title}", answer(CALLS[name][title]), stored[title])


def check_numbers(call, answered, expected):
    found, sizes = answered
    assert found.keys() == expected.keys(), f"{call}: other fields, {WRITE}"
    for field, value in expected.items():
        got = found[field]
        where = f"{call}, field {field or 'the value'}: expected {value}, got {got}"
        if isinstance(value, str) or isinstance(got, str):
            assert got == value, where
        else:
            is_on_ridge = call.startswith("Angular") and field.endswith(ON_RIDGE)
            rtol = RTOL_ON_RIDGE if is_on_ridge else RTOL
            assert abs(got - value) <= rtol * sizes[field] + 1e-9, where
