"""Simulated designs: their entries have the covariance and the tails that are stated."""

import numpy as np
import pytest

from sklearn_calib.datasets import make_high_dimensional


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "kurtosis"),
    [("gaussian", 3.0), ("rademacher", 1.0), ("uniform", 9 / 5), ("elliptical", 4.0)],
)
def test_moments_of_the_entries(design, kurtosis):
    """Of Student's law with 10 degrees of freedom the kurtosis is 3 + 6 / 6."""
    X, _, truth = make_high_dimensional(
        20_000,
        4,
        design=design,
        covariance="identity",
        degrees_of_freedom=10,
        random_state=0,
    )
    np.testing.assert_allclose(truth.covariance, np.eye(4) / 4)
    np.testing.assert_allclose(4 * X.T @ X / 20_000, np.eye(4), atol=0.04)
    assert np.mean((2 * X) ** 4) == pytest.approx(kurtosis, rel=0.06)


def test_entries_of_an_elliptical_row_share_one_length():
    """Squares of two entries go together as (f - 2) / (f - 4) states, here 4 / 3."""
    more = {"covariance": "identity", "degrees_of_freedom": 10, "random_state": 0}
    X = make_high_dimensional(40_000, 2, design="elliptical", **more)[0]
    assert np.mean((2 * X[:, 0] * X[:, 1]) ** 2) == pytest.approx(4 / 3, rel=0.06)
