"""Leverages beside the inverse that they avoid."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sklearn_calib._kernels._leverage import (
    compute_leverage_blocks,
    compute_leverages_and_weighted_complements,
)


def explicit(X, D, penalty, intercept):
    n = len(X)
    rows = np.column_stack([np.ones(n), X]) if intercept else X
    P = penalty * np.eye(rows.shape[1])
    if intercept:
        P[0, 0] = 0
    H = np.linalg.inv(rows.T @ (D[:, None] * rows) + P)
    return np.einsum("ij,jk,ik->i", rows, H, rows)


def problem(n, d, flat, seed=0, shift=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + shift
    D = rng.uniform(0.01, 0.25, n)
    if flat:
        D[: n // 3] = 0
        D[n // 3 : n // 2] = 10.0 ** -rng.uniform(5, 300, n // 2 - n // 3)
    return X, D


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dual", [True, False, None])
@pytest.mark.parametrize(("n", "d"), [(40, 15), (20, 50), (30, 30)])
@pytest.mark.parametrize("flat", [False, True])
def test_leverages(n, d, dual, intercept, flat):
    X, D = problem(n, d, flat)
    expected = explicit(X, D, 0.7, intercept)
    for rows in (X, sparse.csr_matrix(X)):
        h, m = compute_leverages_and_weighted_complements(rows, D, 0.7, intercept, dual)
        assert_allclose(h, expected, rtol=1e-9)
        assert_allclose(m, 1 - D * expected, rtol=1e-9)


def test_a_centre_far_away_loses_no_digits():
    X, D = problem(20, 40, False)
    near = compute_leverages_and_weighted_complements(X, D, 0.7, True)
    far = compute_leverages_and_weighted_complements(X + 1e5, D, 0.7, True)
    assert_allclose(far[0], near[0], rtol=1e-8)


def test_without_penalty():
    X, D = problem(40, 10, False)
    h, m = compute_leverages_and_weighted_complements(X, D, 0.0, True)
    assert_allclose(h, explicit(X, D, 0.0, True), rtol=1e-9)
    assert_allclose((D * h).sum(), 11)  # as many parameters
    for rows, weights, intercept in ((X[:8], D[:8], False), (X, 0 * D, True)):
        with pytest.raises(np.linalg.LinAlgError):
            compute_leverages_and_weighted_complements(rows, weights, 0.0, intercept)
    assert (m > 0).all()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(25, 6), (12, 30)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_blocks(n, d, intercept, kind):
    rng = np.random.default_rng(0)
    X, r, penalty = rng.standard_normal((n, d)) + 0.3, 3, 0.4
    root = rng.standard_normal((n, r, r)) * 0.4
    W = root @ root.transpose(0, 2, 1)
    rows = np.column_stack([np.ones(n), X]) if intercept else X
    # (n, r columns, r)
    wide = np.stack([np.kron(np.eye(r), row[:, None]) for row in rows])
    hessian = np.einsum("iua,iab,ivb->uv", wide, W, wide)
    P = np.full(rows.shape[1], penalty)
    P[:intercept] = 0
    hessian += np.diag(np.tile(P, r))
    expected = np.einsum("iua,uv,ivb->iab", wide, np.linalg.inv(hessian), wide)
    for dual in (True, False):
        assert_allclose(
            compute_leverage_blocks(kind(X), W, penalty, intercept, dual),
            expected,
            rtol=1e-8,
        )


def test_one_score_is_the_same_as_the_other_function():
    X, D = problem(30, 8, False)
    J = compute_leverage_blocks(X, D[:, None, None], 0.3, True)
    assert_allclose(
        J[:, 0, 0],
        compute_leverages_and_weighted_complements(X, D, 0.3, True)[0],
        rtol=1e-10,
    )
    with pytest.raises(np.linalg.LinAlgError):
        compute_leverage_blocks(X[:5], D[:5, None, None], 0.0, False)


def test_a_penalty_next_to_nothing_is_no_rounding_noise():
    """The dual forms would lose m; both say so."""
    X, D = problem(12, 30, False)
    for call in (
        lambda: compute_leverages_and_weighted_complements(X, D, 1e-14, True),
        lambda: compute_leverage_blocks(X, D[:, None, None], 1e-14, True),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            call()
