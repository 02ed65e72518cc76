import numpy as np
import pytest

from sklearn_calib.datasets import make_sign_perturbed, make_uniform_shift
from sklearn_calib.metrics import (
    lower_distance_interval,
    lower_distance_to_calibration,
    smooth_calibration_error,
)


@pytest.mark.slow
@pytest.mark.parametrize("eps", [0.0, 0.02, 0.2])
def test_uniform_shift(eps):
    data = make_uniform_shift(40_000, eps, random_state=0)
    assert data.proba.max() <= 1 - eps
    np.testing.assert_allclose(data.true_proba, data.proba + eps)
    found, bound = lower_distance_interval(data.y, data.proba)
    assert found == pytest.approx(data.distance, abs=bound + 0.006)
    assert smooth_calibration_error(data.y, data.proba) == pytest.approx(eps, abs=0.008)


@pytest.mark.slow
def test_sign_perturbed():
    data = make_sign_perturbed(50_000, 10, 0.1, random_state=0)
    assert len(np.unique(data.proba)) == 10
    np.testing.assert_allclose(np.abs(data.true_proba - data.proba), 0.1)
    for value in np.unique(data.proba):
        rows = data.proba == value
        assert data.y[rows].mean() == pytest.approx(data.true_proba[rows][0], abs=0.03)
    assert np.isnan(data.distance)
    assert make_sign_perturbed(10, strength=0.0, random_state=0).distance == 0
    assert lower_distance_to_calibration(data.y, data.proba) < 0.08


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: make_uniform_shift(5, 1.5), "expected 0 <= epsilon <= 1, got 1.5"),
        (
            lambda: make_sign_perturbed(5, 3, 0.5),
            "expected 0 <= strength <= 1/3, got 0.5",
        ),
        (
            lambda: make_sign_perturbed(5, 0),
            "expected a whole number n_values >= 1, got 0",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
