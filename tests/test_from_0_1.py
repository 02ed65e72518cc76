"""The page "From 0.1 to 0.2": what is gone is gone, what stands beside it works."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from sklearn_calib import datasets, metrics

PAGE = Path(__file__).parent.parent / "doc" / "user_guide" / "from_0_1_to_0_2.rst"
p, y = datasets.make_overconfident(2, 400)
p3, y3 = datasets.make_overconfident(3, 400)
ROOMS = (
    *("canonical", "datasets", "decomposition", "displays", "inference", "linear", "meta"),
    *("metrics", "recalibrators", "testing", "theory"),
)
NAMES = {room: import_module(f"sklearn_calib.{room}") for room in ROOMS}
NAMES |= {"p": p, "y": y, "p3": p3, "y3": y3}

#: What 0.1.0 gave for the first row of the same tables.
BEFORE = {
    "PlattScaling": [0.64907527, 0.35092473],
    "HistogramBinning": [0.30434783, 0.13043478, 0.56521739],
    "AdaptiveCalibration": [0.75, 0.25],
    "DirichletCalibration": [0.30444845, 0.11412249, 0.58142906],
    "OneVsOne": [0.30916046, 0.13795643, 0.55288311],
    "OneVsRest": [0.29158226, 0.14658002, 0.56183771],
    "TopLabel": [0.29069757, 0.1105427, 0.59875973],
}


def cells(part):
    """The code in each cell of a table's rows; `part` counts the tables."""
    table = PAGE.read_text("utf-8").split(".. list-table::")[part]
    for row in re.findall(r"(?m)^   \* - (.*)\n((?:     - .*\n)+)", table)[1:]:
        yield [re.findall("``(.+?)``", cell) for cell in (row[0], *row[1].splitlines())]


def renamed():
    for old, new in cells(1):
        for name in old:
            yield pytest.param(name, new[0], id=name)


@pytest.mark.parametrize(("old", "new"), renamed())
def test_names_of_0_1_are_gone_and_those_beside_them_work(old, new):
    with pytest.raises((AttributeError, TypeError, ValueError)):
        eval(old, NAMES)
    eval(new, NAMES)


def test_what_is_as_before_gives_the_numbers_of_0_1():
    found = {}
    for _, now, _ in cells(2):
        fitted = eval(now[0], NAMES)
        rows = p if len(fitted.classes_) == 2 else p3
        found[type(fitted).__name__] = fitted.predict_proba(rows)[0]
    for name, expected in BEFORE.items():
        np.testing.assert_allclose(found[name], expected, atol=1e-8, err_msg=name)
    before = metrics.lower_distance_to_calibration(y, p, resolution=0.001)
    assert before == pytest.approx(0.062069124598897, abs=1e-9)
