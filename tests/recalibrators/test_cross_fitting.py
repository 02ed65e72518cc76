"""cross_fitted_proba: each row by a fit that has not seen it."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import refinement_error
from sklearn_calib.metrics import brier_loss
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    PlattScaling,
    cross_fitted_proba,
    predict_proba_aligned,
)


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_fits_by_hand(weighted):
    proba, y = make_overconfident(3, 200)
    weight = np.random.default_rng(0).random(200) if weighted else None
    found = cross_fitted_proba("platt", proba, y, cv=4, sample_weight=weight)
    for train, test in StratifiedKFold(4, shuffle=True, random_state=0).split(proba, y):
        part = weight[train] if weighted else None
        one = PlattScaling().fit(proba[train], y[train], sample_weight=part)
        np.testing.assert_array_equal(found[test], one.predict_proba(proba[test]))


def test_no_row_is_recalibrated_by_itself():
    """A row's own label does not move its probability."""
    proba, y = make_overconfident(2, 100)
    folds = list(KFold(5).split(proba))
    before = cross_fitted_proba(IsotonicCalibration(), proba, y, cv=folds)
    turned = y.copy()
    turned[folds[0][1]] = 1 - turned[folds[0][1]]
    after = cross_fitted_proba(IsotonicCalibration(), proba, turned, cv=folds)
    np.testing.assert_array_equal(after[folds[0][1]], before[folds[0][1]])
    assert np.abs(after - before).max() > 0.01


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_labels_classes_and_one_column():
    proba, y = make_overconfident(2, 100)
    names = np.array(["no", "yes"])[y]
    wanted = cross_fitted_proba("temperature", proba, y)
    one_column = cross_fitted_proba(
        "temperature", proba[:, 1], names, classes=["no", "yes"]
    )
    np.testing.assert_allclose(one_column, wanted, atol=1e-9)
    swapped = cross_fitted_proba(
        "temperature", proba[:, ::-1], names, classes=["yes", "no"]
    )
    np.testing.assert_allclose(swapped[:, ::-1], wanted, atol=1e-9)
    three = np.column_stack([0.9 * proba, np.full(100, 0.1)])
    assert cross_fitted_proba("temperature", three, y, classes=range(3)).shape == (
        100,
        3,
    )
    seen = cross_fitted_proba(LogisticRegression(), three, y, classes=range(3))
    assert (
        seen[:, 2] == 0
    ).all()  # a classifier that cannot be told of classes it does not see


def test_random_state():
    proba, y = make_overconfident(2, 100)

    def found(random_state):
        return cross_fitted_proba("isotonic", proba, y, random_state=random_state)

    np.testing.assert_array_equal(found(0), found(0))
    assert np.abs(found(0) - found(1)).max() > 0
    for kind in (np.random.default_rng, np.random.RandomState):
        np.testing.assert_array_equal(found(kind(3)), found(kind(3)))
    state = np.random.default_rng(3)
    assert np.abs(found(state) - found(state)).max() > 0


def test_the_decomposition_uses_it():
    proba, y = make_overconfident(3, 300)
    refined = cross_fitted_proba("isotonic", proba, y, cv=5)
    own = refinement_error(y, proba, loss="brier", recalibrator="isotonic", cv=5)
    assert own == pytest.approx(brier_loss(y, refined), abs=1e-15)


def test_refuses():
    proba, y = make_overconfident(2, 60)
    with raises_invalid_input(ValueError, expected="folds that test every row"):
        cross_fitted_proba("platt", proba, y, cv=ShuffleSplit(1, random_state=0))
    with raises_invalid_input(ValueError, expected=".* rows"):
        cross_fitted_proba("platt", proba, y[:-1])
    with raises_invalid_input(ValueError):
        cross_fitted_proba("platt", 3 * proba, y)
    with raises_invalid_input(TypeError, expected="a recalibrator"):
        cross_fitted_proba(3, proba, y)


def test_predictions_go_to_the_columns_of_their_classes():
    """A classifier of anyone's that has not seen the middle class."""
    proba, y = make_overconfident(3, 200)
    seen = y != 1
    model = LogisticRegression().fit(proba[seen], y[seen])
    found = predict_proba_aligned(model, proba, np.arange(3))
    assert np.array_equal(found[:, [0, 2]], model.predict_proba(proba))
    assert not found[:, 1].any()
