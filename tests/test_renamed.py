"""Old names work for one release and say what to write."""

import warnings

import pytest

import sklearn_calib
from sklearn_calib import datasets, linear, meta, theory
from sklearn_calib._renamed import renamed_arguments


def test_functions_that_moved():
    with pytest.warns(FutureWarning, match=r"meta\.estimate_angle is called .*linear\.estimate_an"):
        assert meta.estimate_angle is linear.estimate_angle
    with pytest.warns(FutureWarning, match=r"datasets\.gaussian_loss is called"):
        assert datasets.gaussian_loss is theory.gaussian_loss
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = meta.nothing


def test_arguments():
    class Thing:
        @renamed_arguments(lam="penalty")
        def __init__(self, first=0, *, penalty=1.0, second=2.0):
            self.values = first, penalty, second

    assert Thing(5, penalty=3).values == (5, 3, 2.0)
    with pytest.warns(FutureWarning, match=r"Thing\(lam=\) is called penalty= now"):
        assert Thing(lam=3).values == (0, 3, 2.0)
    with pytest.warns(FutureWarning, match="write penalty=7, second=8"):
        assert Thing(5, 7, 8).values == (5, 7, 8)
    with pytest.raises(TypeError, match="positional"):
        Thing(5, 7, 8, 9)


def test_sub_packages_are_imported_when_asked_for():
    """That they are not before, test_architecture.py sees in a fresh process."""
    assert sklearn_calib.report.__name__ == "sklearn_calib.report"
    assert sklearn_calib.inference.calibration_test.__name__ == "calibration_test"
    assert {"inference", "displays", "report", "metrics"} <= set(dir(sklearn_calib))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = sklearn_calib.nonsense


def test_the_settings_of_a_paper_are_passed_by_name():
    """The constructor that calls another one must not warn its user."""
    from sklearn_calib.recalibrators import RestrictedPolynomialRegression

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paper = RestrictedPolynomialRegression.paper()
    assert paper.degree == tuple(range(4, 21)) and len(paper.l1) == 21
