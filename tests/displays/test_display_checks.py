"""Every display of the package, made as its docstring states, passes the public checks."""

import doctest
import os
import subprocess
import sys

import numpy as np
import pytest

from sklearn_calib import displays
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.testing import _displays as checks, check_contract, contract_checks

CLASSES = [getattr(displays, name) for name in displays.__all__]


def made_by_its_docstring(cls):
    """The variable ``display`` after the example in the docstring of a class."""
    pytest.importorskip("matplotlib.pyplot")
    known = {}
    for example in doctest.DocTestParser().get_examples(cls.__doc__):
        exec(example.source, known)
    known["plt"] = __import__("matplotlib.pyplot").pyplot
    known["plt"].close("all")
    return known["display"]


@pytest.fixture(scope="module")
def made():
    return {cls: made_by_its_docstring(cls) for cls in CLASSES}


def test_every_display_is_a_display():
    assert all(issubclass(cls, displays.Display) for cls in CLASSES)


@pytest.mark.parametrize(
    "check", [name[1:] for name in vars(checks) if name.startswith("_check_")]
)
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_display(cls, check, made):
    assert cls is displays.Display or type(made[cls]) is cls
    dict(contract_checks(made[cls]))[check]()


@pytest.mark.slow
def test_several_panels_models_and_names():
    proba, y = make_overconfident(3, 200)
    models = {
        "one": proba,
        "two": np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True),
    }
    label = np.array(["a", "b", "c"])[y]
    for options in (
        {"multiclass": "classwise"},
        {"strategy": "isotonic"},
        {"bands": "both"},
    ):
        check_contract(
            displays.ReliabilityDisplay.from_predictions(label, models, **options)
        )
    check_contract(displays.WitnessDisplay.from_predictions(y, proba))
    known = displays.CalibratingFunctionDisplay.from_predictions(
        y == 1, proba[:, 1], ["platt", "beta", "isotonic", "temperature", "identity"],
        truth=lambda s: s**2,
    )  # fmt: skip
    check_contract(known)


@pytest.mark.slow
def test_without_a_display_server():
    windows = ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")
    code = (
        "import numpy as np;"
        "from sklearn_calib.displays import CalibratingFunctionDisplay;"
        "from sklearn_calib.testing import check_contract;"
        "score = np.array([0.0, 0.5, 1.0]);"
        "check_contract(CalibratingFunctionDisplay(score, {'a': score**2}));"
        "print('drawn')"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if name not in windows},
    )
    assert out.stdout.strip() == "drawn"


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_how_many_figures_are_open_is_the_callers(made):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    mine = [plt.figure().number for _ in range(20)]  # one more would be a warning
    check_contract(made[displays.CalibratingFunctionDisplay])
    assert plt.get_fignums() == mine
    plt.close("all")
