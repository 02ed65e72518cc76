"""How many rows a table shows: up to a number one more for each group, and then no more."""

import numpy as np
import pytest
from cases import run_every_case

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import decision_curve
from sklearn_calib.groups import group_calibration
from sklearn_calib.report import calibration_report

PROBA, Y = make_overconfident(2, 1100)


def count_lines(result):
    return len(str(result).splitlines())


def name_groups(n):
    return {"g": [f"{i % n:02d}" for i in range(len(Y))]}


#: What is called with a number of groups, and the largest number that is shown.
CASES = {
    "thresholds": (
        lambda n: decision_curve(
            Y, PROBA, thresholds=np.linspace(0.05, 0.9, n), n_resamples=9
        ),
        10,
    ),
    "groups": (
        lambda n: group_calibration(Y, PROBA, name_groups(n), n_resamples=9),
        10,
    ),
}
GROUPS_OF_A_REPORT = (
    lambda n: calibration_report(
        Y, PROBA, by=name_groups(n), n_resamples=3, advice=False
    ),
    20,
)


@run_every_case(
    "name", [*CASES, pytest.param("groups of a report", marks=pytest.mark.slow)]
)
def test_so_many_rows_are_shown(name):
    call, most = CASES.get(name, GROUPS_OF_A_REPORT)
    fewer, all_shown, more = [count_lines(call(n)) for n in (most - 1, most, most + 1)]
    assert all_shown == fewer + 1
    assert more == all_shown
