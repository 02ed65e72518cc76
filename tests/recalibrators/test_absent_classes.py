"""A class that scores have a column for and no calibration row has: for every recalibrator."""

import warnings

import numpy as np
import pytest
import words
from numpy.testing import assert_allclose
from sklearn.base import clone

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.recalibrators import (
    OrdinalCalibration,
    PlattScaling,
    PriorShift,
    all_recalibrators,
)
from sklearn_calib.recalibrators._base import split_rows_among_absent_classes

NAMES = np.array(["no", "perhaps", "yes"])
SLOW = (
    "AdaptiveCalibration",
    "TrendFiltering",
    "TrendFilteringEnsemble",
    "OnlineCalibration",
)
CLASSES = [
    pytest.param(
        cls(**words.QUICKER.get(name, {})),
        id=name,
        marks=[pytest.mark.slow] * (name in SLOW),
    )
    for name, cls in ((cls.__name__, cls) for cls in all_recalibrators().values())
]
TABULATED = ("AdaptiveCalibration", "AngularCalibration")


def make_rows(k, absent, n=200):
    """Scores too flat, of which the absent class has more than half where there are others."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(k, 1.5), n)
    if k > 2:
        proba = 0.5 * proba + 0.5 * np.eye(k)[absent]
    others = np.where(np.arange(k) == absent, 0, proba) ** 2
    others /= others.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > others.cumsum(axis=1)).sum(axis=1)
    return proba, np.minimum(y, k - 1 - (absent == k - 1))


def fitted_with_warnings(recalibrator, *rows, **params):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(recalibrator).fit(*rows, **params)
    return fitted, [
        str(one.message) for one in caught if one.category is CalibrationWarning
    ]


@pytest.mark.parametrize(("k", "absent"), [(3, 0), (3, 2), (2, 1)])
@pytest.mark.parametrize("recalibrator", CLASSES)
def test_an_absent_class_is_named_and_keeps_its_probability(recalibrator, k, absent):
    proba, y = make_rows(k, absent)
    names = NAMES[:k]
    if k > 2 and isinstance(recalibrator, OrdinalCalibration):
        recalibrator = OrdinalCalibration(order=names)
    fitted, said = fitted_with_warnings(recalibrator, proba, names[y], classes=names)
    title = type(recalibrator).__name__
    assert any(f"none of '{names[absent]}'" in text for text in said), (
        f"{title} says {said}"
    )
    found = fitted.predict_proba(proba)
    before, after = proba[:, absent].mean(), found[:, absent].mean()
    assert after == pytest.approx(before, abs=0.05), (
        f"{title}: from {before} to {after}"
    )
    tabulate = {"tabulate": 1e-4} if title in TABULATED else {}
    exported = from_dict(to_dict(fitted, **tabulate)).predict_proba(proba)
    assert_allclose(exported, found, atol=1e-3 if tabulate else 1e-9, err_msg=title)


def test_the_others_share_the_rest_as_the_labels_say():
    proba, y = make_rows(3, 0, 2000)
    fitted, _ = fitted_with_warnings(PlattScaling(), proba, y, classes=range(3))
    found = fitted.predict_proba(proba)
    rest = found[:, 1:].mean(axis=0)
    expected = np.bincount(y, minlength=3)[1:] / len(y) * (1 - proba[:, 0].mean())
    assert_allclose(rest, expected, atol=0.01)


def test_rows_of_absent_classes_are_worth_their_probability():
    proba = np.array([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0]])
    rows = split_rows_among_absent_classes(
        proba, np.array([0, 0]), np.array([1.0, 2.0]), np.array([1, 2])
    )
    assert rows[0].tolist() == proba[[0, 0, 0, 1, 1]].tolist()
    assert rows[1].tolist() == [0, 1, 2, 0, 1]
    assert_allclose(rows[2], [0.5, 0.3, 0.2, 0.2, 1.8])


def test_few_rows_stand_for_very_many_absent_classes(monkeypatch):
    monkeypatch.setattr(
        "sklearn_calib.recalibrators._base.MAX_ABSENT_CLASS_ENTRIES", 300
    )
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 100)
    absent = np.array([2, 3, 4])
    rows, codes, weight = split_rows_among_absent_classes(
        proba, np.zeros(100, int), np.ones(100), absent
    )
    assert len(rows) == 100 + 3 * 20  # one row of five, with five times the weight
    assert weight[codes == 2].sum() == pytest.approx(5 * proba[::5, 2].sum())


def test_a_class_of_weight_zero_is_absent():
    proba, y = make_rows(2, 1)
    y = y.copy()
    y[:5] = 1
    _, said = fitted_with_warnings(
        PlattScaling(), proba, y, sample_weight=1.0 * (y == 0)
    )
    assert any("none of 1" in text for text in said)


def test_a_given_mean_says_how_frequent_an_absent_class_is():
    proba, y = make_rows(3, 2)
    mean = [0.3, 0.5, 0.2]
    fitted, said = fitted_with_warnings(
        PriorShift(mean=mean), proba, y, classes=range(3)
    )
    assert said == []
    assert_allclose(fitted.predict_proba(proba).mean(axis=0), mean, atol=1e-9)
