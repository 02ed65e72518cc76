import numpy as np
import pytest
from error_fields import raises_invalid_input
from golden_sets import golden_set
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.monitoring import safe_calibration_test
from sklearn_calib.monitoring._result import e_benjamini_hochberg
from sklearn_calib.recalibrators import PlattScaling


def test_by_definition():
    """One split by hand: isotonic blocks of the fitting half, without zeros."""
    from sklearn.isotonic import IsotonicRegression

    y, p = golden_set(60)
    found = safe_calibration_test(y, p, n_splits=3, random_state=1)
    rng, logs = np.random.default_rng(1), []
    for _ in range(3):
        fit, judge = np.array_split(rng.permutation(60), 2)
        iso = IsotonicRegression(out_of_bounds="clip").fit(p[fit], y[fit])
        inside, q = iso.predict(p[fit]), iso.predict(p[judge])
        for value in (0.0, 1.0):
            rows = inside == value
            q[q == value] = (y[fit][rows].sum() + 0.5) / (rows.sum() + 1)
        ratio = np.where(y[judge] == 1, q / p[judge], (1 - q) / (1 - p[judge]))
        logs.append(np.log(ratio).sum())
    assert_allclose(found.log_e_values, logs, atol=1e-8)
    assert_allclose(found.e_value, np.exp(logsumexp(logs)) / 3)
    assert found.pvalue == min(1.0, 1 / found.e_value)


def test_platt_and_several_classes():
    proba, y = make_overconfident(3, 600)
    found = safe_calibration_test(y, proba, recalibrator="temperature")
    assert found.pvalue < 1e-6
    assert safe_calibration_test(y, proba).pvalue < 0.1
    again = safe_calibration_test(y, proba, recalibrator=PlattScaling(), n_splits=2)
    assert again.log_e_values.shape == (2,)


@pytest.mark.slow
def test_level():
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        p = expit(1.5 * rng.normal(size=100))
        y = (rng.random(100) < p).astype(int)
        found.append(
            safe_calibration_test(y, p, recalibrator="platt", n_splits=2).e_value
        )
    assert (np.array(found) >= 20).mean() <= 0.05
    assert 0.2 < np.mean(found) < 1.3  # at most 1 in expectation


def test_zeros_and_ones():
    y = np.arange(40) % 2
    assert np.isfinite(safe_calibration_test(y, 0.5 + 0.4 * (y - 0.5)).e_value)
    assert safe_calibration_test(y, 1.0 - y).e_value == np.inf


def test_refused():
    with raises_invalid_input(ValueError, expected="at least 4 rows"):
        safe_calibration_test([0, 1], [0.2, 0.4])
    with raises_invalid_input(ValueError, expected=".*n_splits"):
        safe_calibration_test([0, 1] * 3, [0.2, 0.4] * 3, n_splits=0)


def test_e_benjamini_hochberg():
    rng = np.random.default_rng(0)
    for _ in range(50):
        e, alpha = rng.exponential(20, 5), 0.2
        best = 0
        for k in range(1, 6):
            if np.sort(e)[-k] >= 5 / (k * alpha):
                best = k
        expected = {*np.argsort(-e)[:best].tolist()}
        assert {*np.flatnonzero(e_benjamini_hochberg(e, alpha)).tolist()} == expected
    assert not e_benjamini_hochberg([], 0.1).any()
    assert e_benjamini_hochberg([np.inf, 0.0, 14.0], 0.1).tolist() == [
        True,
        False,
        False,
    ]
    assert e_benjamini_hochberg([np.inf, 0.0, 15.0], 0.1).tolist() == [
        True,
        False,
        True,
    ]
