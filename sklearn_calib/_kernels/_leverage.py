"""Leverages x_i' H x_i of a penalised linear fit, H = (X'DX + P)^-1: H itself is never formed.

Notation of the leave-one-out literature: D_i >= 0 is the curvature of row i's loss at
its score, P = penalty * I on the coefficients and 0 on the intercept. Only the diagonal
of X H X' is needed, from one Cholesky factor of the smaller of X'DX + P (primal) and I
+ D^0.5 K D^0.5 (dual), K = XX' / penalty. An intercept without a penalty is eliminated by
centring the rows at their mean weighted by D, which makes the Hessian block diagonal.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, lapack, solve_triangular

# A block of rows takes up to 64 MB.
MAX_BLOCK_ENTRIES = 2**23
# Above this D K the penalty is negligible and the rows are reproduced.
MAX_WEIGHTED_KERNEL_DIAGONAL = 1e11
# The largest squared centre, relative to the squares of the rows around it.
MAX_SQUARED_CENTRE_RATIO = 100
# Below this D_i K_ii, the difference in (1 - m_i) / D_i would lose digits.
MIN_CURVATURE_NORM_FOR_SUBTRACTION = 1e-4


def compute_leverages_and_weighted_complements(
    X, curvature, penalty, intercept, dual=None
):
    """Return leverages h of all rows, and m = 1 - D h with all its digits.

    X has the shape (n, d), dense or sparse. `dual` forces a form; otherwise the cheaper
    one is taken. Raises LinAlgError if the Hessian is singular.
    """
    n_rows, d = X.shape
    total = curvature.sum()
    if intercept and total <= 0:
        raise np.linalg.LinAlgError("no row has curvature")
    # Centring at the weighted mean makes the intercept orthogonal to the coefficients,
    # so its leverage is simply added.
    centre = X.T @ curvature / total if intercept else np.zeros(d)
    level = 1 / total if intercept else 0.0
    curved = np.flatnonzero(curvature > 0)
    if dual is None:
        # Rows without curvature, such as those beyond the margin of a hinge loss, do
        # not enter the dual matrix. Floating point operations; the product of a matrix
        # with its own transpose costs half of a general one.
        size = len(curved)
        costs = size**2 * d + 2 * size**3 / 3, 2 * n_rows * d**2 + d**3 / 3
        dual = penalty > 0 and costs[0] < costs[1]
    if dual:
        h, m = _compute_dual_leverages_and_complements(
            X, curvature, penalty, centre, curved
        )
    else:
        h = _compute_primal_leverages(X, curvature, penalty, centre)
        m = 1 - curvature * h
    return h + level, m - curvature * level


def _compute_primal_leverages(X, curvature, penalty, centre):
    """Return the leverages from the factor of X'DX + P, by blocks of rows."""
    n, d = X.shape
    if sparse.issparse(X):
        hessian = (X.T @ X.multiply(curvature[:, None]).tocsr()).toarray()
        # A centred sparse matrix would be dense; the correction of the product has the
        # same effect.
        hessian -= curvature.sum() * np.outer(centre, centre)
    else:
        rooted = (X - centre) * np.sqrt(curvature)[:, None]
        hessian = rooted.T @ rooted
        del rooted
    hessian.flat[:: d + 1] += penalty
    factor = _factor_primal_in_place(hessian)
    h = np.empty(n)
    for block in make_row_slices_within_entry_limit(n, d):
        rows = _make_dense(X[block]) - centre
        half = solve_triangular(
            factor, rows.T, lower=True, overwrite_b=True, check_finite=False
        )
        h[block] = np.einsum("ji,ji->i", half, half)
    return h


def _compute_dual_leverages_and_complements(X, curvature, penalty, centre, curved):
    """Return h, and m = diag(B^-1) for B = I + D^0.5 K D^0.5 over the curved rows.

    One array holds B, its factor and its inverse in turn.
    """
    n = X.shape[0]
    is_complete = len(curved) == n
    rows = X if is_complete else X[curved]
    inner = _compute_dense_centred_gram(rows, rows, centre)
    norms = inner.diagonal() if is_complete else _compute_gram_diagonal(X, centre)
    norms = norms / penalty
    # Here m is close to 1 and (1 - m) / D cancels; the direct formula does not.
    flat = np.flatnonzero(curvature * norms < MIN_CURVATURE_NORM_FOR_SUBTRACTION)
    cross = np.empty((len(curved), 0))
    if len(flat):
        cross = _compute_dense_centred_gram(rows, X[flat], centre) / penalty
    root = np.sqrt(curvature[curved])
    inner *= root[:, None] / penalty
    inner *= root
    factor = _factor_dual_in_place(inner)
    half = solve_triangular(
        factor, root[:, None] * cross, lower=True, check_finite=False
    )
    # m is the diagonal of the inverse of B, computed as a sum of squares of the inverse
    # factor: no digits cancel for rows of high leverage.
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=True)
    m = np.ones(n)
    h = np.empty(n)
    m[curved] = np.einsum("ij,ij->j", inverse, inverse)
    with np.errstate(divide="ignore", invalid="ignore"):
        h[:] = (1 - m) / curvature
    h[flat] = norms[flat] - np.einsum("ij,ij->j", half, half)
    return h, m


def compute_leverage_blocks(X, curvature, penalty, intercept, dual=None):
    """Return blocks J_i = (x_i (x) I)' H (x_i (x) I) for several scores per row.

    The result has the shape (n, r, r).

    `curvature` holds the Hessians W_i of the rows' losses, (n, r, r), positive
    semidefinite. Here the intercept is eliminated by bordering, since a mean weighted
    by matrices would differ from score to score.
    """
    n, d = X.shape
    centre = np.asarray(X.mean(axis=0)).ravel() if intercept else np.zeros(d)
    if dual is None:
        dual = penalty > 0 and n < d
    solve = _compute_dual_blocks if dual else _compute_leverage_block_array_by_primal
    return solve(X, curvature, penalty, centre, intercept)


def _compute_leverage_block_array_by_primal(X, curvature, penalty, centre, intercept):
    """Return the blocks from the factor of the Hessian of all coefficients."""
    n, r, _ = curvature.shape
    columns = X.shape[1] + intercept
    rows = np.column_stack([np.ones(n)] * intercept + [_make_dense(X) - centre])
    hessian = np.empty((r * columns, r * columns))
    diagonal = np.full(columns, float(penalty))
    diagonal[:intercept] = 0
    for a in range(r):
        for b in range(a + 1):
            block = rows.T @ (rows * curvature[:, a, b, None])
            if a == b:
                block.flat[:: columns + 1] += diagonal
            block_rows = slice(a * columns, (a + 1) * columns)
            block_columns = slice(b * columns, (b + 1) * columns)
            hessian[block_rows, block_columns] = block
            hessian[block_columns, block_rows] = block.T
    factor = _factor_primal_in_place(hessian)
    J = np.empty((n, r, r))
    for row_block in make_row_slices_within_entry_limit(n, columns * r * r):
        size = len(rows[row_block])
        right = np.zeros((r, columns, r, size))
        for a in range(r):
            right[a, :, a] = rows[row_block].T
        half = solve_triangular(
            factor, right.reshape(r * columns, -1), lower=True, check_finite=False
        ).reshape(-1, r, size)
        J[row_block] = np.einsum("kai,kbi->iab", half, half)
    return J


def _compute_dual_blocks(X, curvature, penalty, centre, intercept):
    """Return the blocks from the factor of a matrix with a block for each pair of rows."""
    n, r, _ = curvature.shape
    # The curvature of a row is a matrix here, whose symmetric root takes the place of
    # sqrt(D).
    values, vectors = np.linalg.eigh(curvature)
    scaled = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    root = scaled @ vectors.transpose(0, 2, 1)
    kernel = _compute_dense_centred_gram(X, X, centre) / penalty
    inner = np.einsum(
        "ij,iab,jbc->iajc",
        kernel,
        root,
        root,
        optimize=True,
    ).reshape(n * r, n * r)
    factor = _factor_dual_in_place(inner)
    right = np.einsum("iab,ij->iajb", root, kernel, optimize=True).reshape(n * r, n * r)
    half = solve_triangular(
        factor, right, lower=True, overwrite_b=True, check_finite=False
    )
    half = half.reshape(n * r, n, r)
    J = kernel.diagonal()[:, None, None] * np.eye(r)
    J -= np.einsum("kia,kib->iab", half, half)
    if intercept:
        # The intercept has no penalty; its block is eliminated by the Schur complement.
        ones = solve_triangular(
            factor, root.reshape(n * r, r), lower=True, check_finite=False
        )
        residual = np.eye(r) - np.einsum("kia,kb->iab", half, ones)
        J += residual @ np.linalg.solve(ones.T @ ones, residual.transpose(0, 2, 1))
    return J


def _factor_primal_in_place(hessian):
    scale = hessian.diagonal().max(initial=0.0)
    factor = _make_cholesky_factor_in_place(hessian)
    # The Cholesky factor of a singular matrix may exist by rounding; its smallest pivot
    # reveals it.
    if factor.diagonal().min(initial=np.inf) ** 2 < 1e-13 * scale:
        raise np.linalg.LinAlgError("singular Hessian")
    return factor


def _factor_dual_in_place(inner):
    """Factor I + `inner` in its place."""
    inner.flat[:: len(inner) + 1] += 1
    if inner.diagonal().max(initial=0) > MAX_WEIGHTED_KERNEL_DIAGONAL:
        raise np.linalg.LinAlgError("m would be rounding noise")
    return _make_cholesky_factor_in_place(inner)


def _make_cholesky_factor_in_place(matrix):
    """Factor by Cholesky in place.

    The transpose is the same matrix in the order that LAPACK overwrites.
    """
    # LAPACK works in Fortran order, in which the transpose of a C array is contiguous
    # and can be overwritten.
    return cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)


def make_row_slices_within_entry_limit(n, n_columns):
    """Return slices of rows whose blocks hold at most MAX_BLOCK_ENTRIES numbers."""
    size = max(1, MAX_BLOCK_ENTRIES // max(1, n_columns))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _make_dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=float)


def _compute_dense_centred_gram(A, B, centre):
    """Return (A - c)(B - c)' as a dense array.

    The centre is subtracted from the product, without copies of the rows, unless it is
    so large that digits would be lost.
    """
    if sparse.issparse(A):
        product = (A @ B.T).toarray()
    elif (
        centre.any()
        and centre @ centre
        > MAX_SQUARED_CENTRE_RATIO * np.mean(np.square(A[:100] - centre)) * A.shape[1]
    ):
        centred = A - centre
        return centred @ (centred if B is A else B - centre).T
    else:
        product = A @ B.T
    if centre.any():
        product -= (A @ centre)[:, None]
        product -= B @ centre - centre @ centre
    return product


def _compute_gram_diagonal(X, centre):
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        return squares - 2 * (X @ centre) + centre @ centre
    diagonal = np.empty(X.shape[0])
    for block in make_row_slices_within_entry_limit(*X.shape):
        rows = X[block] - centre
        diagonal[block] = np.einsum("ij,ij->i", rows, rows)
    return diagonal
