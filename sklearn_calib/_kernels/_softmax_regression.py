"""Softmax regression near the identity by Newton's method.

The systems are factorised or solved by conjugate gradients.

Arrays are class-major, (k, n), so that reductions over classes run along memory. The
model is
    logits u = z + A z + b,   loss = sum_i w_i (log sum_c exp(u_ci) - u_{y_i}) with sum
    w = 1 objective = loss + sum ridge_a A^2 + sum ridge_b b^2
with A diagonal or full. The objective is convex.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._newton import minimise_by_newton, solve_newton_step_and_decrement

# A Hessian product takes so many columns at a time.
_BLOCK_COLUMNS = 1024
# Tables up to this size use all rows in float64.
_MAX_EXACT_ENTRIES = 100_000
# The size of the sample that gives the Hessian of a large table with diagonal A.
_HESSIAN_SAMPLE_ROWS_PER_CLASS = 25
_HESSIAN_SAMPLE_ENTRIES = 200_000
# Up to so many entries a full A is fitted until only rounding remains.
_MAX_ENTRIES_FITTED_TO_ROUNDING = 10_000
# Up to so many classes, each has its own block of the preconditioner.
_MAX_BLOCK_PRECONDITIONER_CLASSES = 200
# The curvature of the preconditioner is taken from so many rows, or from more if they
# cost little.
_MIN_PRECONDITIONER_ROWS = 300
_MAX_PRECONDITIONER_WORK = 1_000_000

# The tolerance of the decrement, in nats. The last step squares the error that remains.
_JOINT_DECREMENT_TOLERANCE = 1e-10
_MIN_CURVATURE = 1e-300


class SoftmaxFit(NamedTuple):
    # Of shape (k,) or (k, k).
    A: np.ndarray
    # Of shape (k,).
    b: np.ndarray
    objective: float
    # The largest absolute entry of the gradient.
    gradient_norm: float
    # Half of this bounds the gap to the optimum, to second order.
    decrement: float
    n_iter: int


def fit_softmax_regression(
    z, y_encoded, weight, ridge_a, ridge_b, tol=None, start=None
):
    """Minimise the objective.

    The shape of `ridge_a`, (k,) or (k, k), determines whether A is diagonal.

    A diagonal: the 2k x 2k Hessian comes from three products and is factorised. A full:
    truncated conjugate gradients with exact Hessian products, and a Kronecker
    preconditioner. Stops when the Newton decrement, or the bound on it from the
    convexity of the penalties, is below `tol`: 1e-12 by default, and with a full A of a
    small table at rounding, so that the end does not depend on the order of the rows.
    `start` is a fit to begin with.
    """
    full = ridge_a.ndim == 2
    last = tol or (
        1e-22 if full and z.size <= _MAX_ENTRIES_FITTED_TO_ROUNDING else 1e-12
    )
    z = np.ascontiguousarray(z)
    w = weight / weight.sum()
    ridge = 2 * np.column_stack([ridge_a, np.full(len(z), ridge_b)])
    # The penalties alone make the objective strongly convex, so gap <= |g|^2 / (2
    # convexity): a gradient of size `enough` ends the iteration.
    convexity = ridge.min()
    enough = 0.5 * np.sqrt(convexity * last)
    newton = (
        _make_conjugate_gradient_step(z, w, ridge, enough)
        if full
        else _make_diagonal_step(z, w, ridge_a, ridge_b)
    )
    residual = np.empty_like(z)
    rows = np.arange(len(w))
    norm = 0.0

    def split_coefficients(theta):
        return theta[:, :-1] if full else theta[:, 0], theta[:, -1]

    def evaluate_loss_and_proba(theta):
        return compute_softmax_loss_and_proba(
            z, y_encoded, w, *split_coefficients(theta), ridge_a, ridge_b
        )

    def find_step_and_decrement(theta, proba):
        """Return the Newton step, and the smaller of two bounds on its decrement."""
        nonlocal norm
        # The gradient of the loss in the logits is w (p - e_y).
        np.multiply(proba, w, out=residual)
        residual[y_encoded, rows] -= w
        of_a = residual @ z.T if full else (residual * z).sum(axis=1)
        gradient = np.column_stack([of_a, residual.sum(axis=1)]) + ridge * theta
        norm = float(np.abs(gradient).max())
        bound = (gradient**2).sum() / convexity if convexity > 0 else np.inf
        if bound <= last:
            return np.zeros_like(theta), bound
        step = newton(proba, gradient)
        return step, min(bound, -(gradient * step).sum())

    theta = np.zeros_like(ridge) if start is None else np.column_stack(start[:2])
    theta, value, decrement, n_iter = minimise_by_newton(
        evaluate_loss_and_proba, find_step_and_decrement, theta, last
    )
    return SoftmaxFit(
        *split_coefficients(theta),
        float(value),
        norm,
        float(decrement),
        n_iter,
    )


def compute_softmax_loss_and_proba(z, y_encoded, w, A, b, ridge_a, ridge_b):
    """Return objective and probabilities, from one exponential per entry."""
    logits = z + (A @ z if A.ndim == 2 else A[:, None] * z) + b[:, None]
    true = logits[y_encoded, np.arange(len(w))]
    loss = w @ (_softmax_in_place_and_get_log_sums(logits) - true)
    return loss + (ridge_a * A**2).sum() + (ridge_b * b**2).sum(), logits


def _softmax_in_place_and_get_log_sums(logits):
    """Return log sum exp of each column, which becomes its probabilities.

    This takes one exponential for each entry.
    """
    top = logits.max(axis=0)
    np.exp(np.subtract(logits, top, out=logits), out=logits)
    total = logits.sum(axis=0)
    logits /= total
    return np.log(total) + top


def _make_diagonal_step(z, w, ridge_a, ridge_b):
    """Return a function that finds Newton steps of the 2k coefficients.

    Of a large table with the Hessian of some rows, as long as its steps shorten the
    next ones.
    """
    k, n = z.shape
    subsampling_step = 1
    before = np.inf
    if z.size > _MAX_EXACT_ENTRIES:
        # A Hessian of a subsample makes good steps at a fraction of the cost, because
        # only the gradient has to be exact.
        subsampling_step = max(
            1,
            n // max(_HESSIAN_SAMPLE_ROWS_PER_CLASS * k, _HESSIAN_SAMPLE_ENTRIES // k),
        )

    def find_newton_step_on_row_sample(proba, gradient):
        """Return Newton's step and its decrement, with the Hessian of sampled rows."""
        nonlocal subsampling_step, before
        sampled = slice(None, None, subsampling_step)
        share = w[sampled] / w[sampled].sum()
        solve = make_diagonal_model_solver(
            z[:, sampled],
            share,
            proba[:, sampled],
            ridge_a,
            ridge_b,
        )
        step = -solve(gradient.T.ravel()).reshape(2, k).T
        decrement = -(step * gradient).sum()
        # The steps no longer converge fast enough: from now on the Hessian uses all
        # rows.
        if decrement > before / 4:
            subsampling_step = 1
        before = decrement
        return step

    return find_newton_step_on_row_sample


def make_diagonal_model_solver(z, w, proba, ridge_a, ridge_b):
    """Return a function that solves systems of the Hessian of the 2k coefficients."""
    k = len(z)
    weighted = proba * w
    proba_scores = proba * z
    hessian = np.empty((2 * k, 2 * k))
    hessian[:k, :k] = -(proba_scores * w) @ proba_scores.T
    hessian[:k, k:] = -(proba_scores * w) @ proba.T
    hessian[k:, :k] = hessian[:k, k:].T
    hessian[k:, k:] = -weighted @ proba.T
    i = np.arange(k)
    hessian[i, i] += (weighted * z * z).sum(axis=1) + 2 * ridge_a
    hessian[i, i + k] += (weighted * z).sum(axis=1)
    hessian[i + k, i] += (weighted * z).sum(axis=1)
    hessian[i + k, i + k] += weighted.sum(axis=1) + 2 * ridge_b
    # A constant added to all intercepts changes nothing. This term keeps their sum.
    hessian[k:, k:] += 1.0 / k
    scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian / np.outer(scale, scale)
    try:
        factor = cho_factor(scaled + 1e-13 * np.eye(len(scaled)))
    except np.linalg.LinAlgError:
        return lambda right: (
            np.linalg.lstsq(scaled, right / scale, rcond=1e-12)[0] / scale
        )
    return lambda right: cho_solve(factor, right / scale) / scale


def _make_kronecker_inverse(x, w, proba, ridge):
    """Return an approximate inverse as a Kronecker product.

    It is that of diag(mean p_c (1 - p_c)) (x) X' W X + mean ridge.
    """
    # With the curvature of each class replaced by a number, the Hessian is a Kronecker
    # product, whose inverse costs k^3 instead of k^6.
    values, vectors = np.linalg.eigh((x * w) @ x.T)
    spread = (proba * (1 - proba)) @ w
    scale = spread[:, None] * np.maximum(values, 1e-12 * values[-1])
    scale += ridge.mean(axis=1)[:, None] + 1e-12
    return lambda r: ((r @ vectors) / scale) @ vectors.T


def _make_block_inverse(x, w, proba, ridge):
    """Return an approximate inverse of the Hessian: that of its block of each class.

    A large table gives the blocks by some of its rows.

    Of a small table from all and in float64: equal rows then act as one row of their
    weight.
    """
    small = x.size <= _MAX_EXACT_ENTRIES
    kind = np.float64 if small else np.float32
    enough = max(_MIN_PRECONDITIONER_ROWS, _MAX_PRECONDITIONER_WORK // len(proba) ** 2)
    sampled = slice(None, None, 1 if small else max(1, len(w) // enough))
    x = x[:, sampled].T
    w = w[sampled] / w[sampled].sum()
    proba = proba[:, sampled]
    inverse = np.empty((len(proba), x.shape[1], x.shape[1]), dtype=kind)
    for c, p in enumerate(proba):
        curvature = w * p * (1 - p)
        rows = (
            slice(None) if small else np.flatnonzero(curvature > 1e-3 * curvature.max())
        )
        class_rows = x[rows]
        block = (class_rows * curvature[rows, None]).T @ class_rows
        block[np.diag_indices(len(block))] += (
            ridge[c] + 1e-12 + 1e-6 * block.diagonal().max()
        )
        # A preconditioner may be rough, so large problems use float32.
        inverse[c] = np.linalg.inv(block.astype(kind))
    return lambda r: (inverse @ r.astype(kind)[:, :, None])[:, :, 0].astype(np.float64)


def _make_conjugate_gradient_step(z, w, ridge, enough):
    """Return a function that finds truncated Newton steps of k x (k + 1) coefficients.

    Conjugate gradients with Hessian products (of large tables in float32, which only
    turns the direction) and a preconditioner from the first iteration. Forcing term
    min(1/4, sqrt |g|), or a residual that is `enough`.
    """
    x = np.vstack([z, np.ones(z.shape[1])])
    precondition = None
    kind = np.float64 if x.size <= _MAX_EXACT_ENTRIES else np.float32
    short = x.astype(kind, copy=False)
    short_w = w.astype(kind, copy=False)
    blocks = [
        slice(start, start + _BLOCK_COLUMNS)
        for start in range(0, x.shape[1], _BLOCK_COLUMNS)
    ]

    def find_newton_step_on_row_sample(proba, gradient):
        """Solve for the step by conjugate gradients with exact Hessian products."""
        nonlocal precondition
        if precondition is None:
            inverse = (
                _make_block_inverse
                if len(z) <= _MAX_BLOCK_PRECONDITIONER_CLASSES
                else _make_kronecker_inverse
            )
            precondition = inverse(x, w, proba, ridge)
        half = proba.astype(kind, copy=False)

        def apply_hessian(d):
            """Return the product of the Hessian with d, of shape (k, k + 1)."""
            out = ridge * d
            d = d.astype(kind, copy=False)
            # Blocks of columns are so small that u stays in the cache.
            for block in blocks:
                u = d @ short[:, block]
                p = half[:, block]
                # The product with diag(p) - p p' of each row, without forming the
                # matrix.
                u -= np.einsum("ij,ij->j", p, u)
                u *= p
                u *= short_w[block]
                out += u @ short[:, block].T
            return out

        size = np.sqrt((gradient**2).sum())
        # Eisenstat and Walker's forcing term: the system is solved more exactly as the
        # gradient falls, which keeps superlinear convergence.
        target = max(size * min(0.25, np.sqrt(np.abs(gradient).max())), enough)
        return _solve_conjugate_gradients(apply_hessian, precondition, gradient, target)

    return find_newton_step_on_row_sample


def _solve_conjugate_gradients(
    apply_hessian, precondition, gradient, max_residual_norm
):
    """Solve apply_hessian(step) = -gradient, up to `max_residual_norm`.

    With scipy.sparse.linalg.cg fits of some hundred rows took 4 to 8 % longer.
    """
    step = np.zeros_like(gradient)
    r = -gradient
    y = precondition(r)
    d = y.copy()
    rho = (r * y).sum()
    for _ in range(4 * gradient.size):
        product = apply_hessian(d)
        curvature = (d * product).sum()
        # Only rounding makes the curvature negative; the step so far is then the best
        # available.
        if curvature <= 0:
            break
        alpha = rho / curvature
        step += alpha * d
        r -= alpha * product
        y = precondition(r)
        rho, previous = (r * y).sum(), rho
        if np.sqrt((r**2).sum()) <= max_residual_norm:
            break
        d = y + rho / previous * d
    return step if step.any() else precondition(-gradient)


# -- one slope for all classes, and offsets -------------------------------------------------------


class TemperatureOffsetsFit(NamedTuple):
    inverse_temperature: float
    # Of shape (k,), with mean 0.
    offsets: np.ndarray


def fit_temperature_and_offsets(log_proba, y_encoded, weight, prior_rows, start=0.0):
    """Minimise the mean log loss, invented rows included, of softmax(a log + b).

    `log_proba`, (n, k), are logarithms of probabilities, `start` an a to begin with,
    best the optimum with b = 0, at which the Hessian is not flat.
    """
    z = np.ascontiguousarray(log_proba.T)
    z = z - z.max(axis=0)
    w = weight / weight.sum()
    total = float(weight.sum())
    label_fraction = total / (total + prior_rows)
    prior_fraction = prior_rows / (total + prior_rows)
    model = np.exp(log_proba.T) * w
    # The sum of w T z, and of w T for each class, for the targets T.
    score_sum = label_fraction * float(
        w @ z[y_encoded, np.arange(len(w))]
    ) + prior_fraction * float((model * z).sum())
    class_sums = label_fraction * np.bincount(
        y_encoded, weights=w, minlength=len(z)
    ) + prior_fraction * model.sum(axis=1)

    def evaluate_joint_loss_and_proba(theta):
        return _compute_joint_loss_and_proba(
            z, w, theta[0], theta[1:], score_sum, class_sums
        )

    def find_step_and_decrement(theta, proba):
        gradient, hessian = _compute_joint_derivatives(
            z,
            w,
            proba,
            theta[0],
            score_sum,
            class_sums,
        )
        return solve_newton_step_and_decrement(hessian, gradient)

    start = np.append(float(start), np.zeros(len(z)))
    a, *b = minimise_by_newton(
        evaluate_joint_loss_and_proba,
        find_step_and_decrement,
        start,
        _JOINT_DECREMENT_TOLERANCE,
    ).theta
    return TemperatureOffsetsFit(float(a), b - np.mean(b))


def _compute_joint_loss_and_proba(z, w, a, b, score_sum, class_sums):
    """Return the loss and the probabilities, from one exponential per entry."""
    logits = a * z
    logits += b[:, None]
    return float(
        w @ _softmax_in_place_and_get_log_sums(logits)
    ) - a * score_sum - float(b @ class_sums), logits


def _compute_joint_derivatives(z, w, proba, a, score_sum, class_sums):
    """Return gradient and Hessian in a and b.

    Where a class has hardly been predicted its curvature does not determine the step:
    half the size of the gradient is added, which bounds a step by 2 and vanishes at the
    optimum.
    """
    k = len(z)
    weighted = proba * w
    mean = np.einsum("ij,ij->j", proba, z)
    mass = weighted.sum(axis=1)
    gradient = np.append(w @ mean - score_sum, mass - class_sums)
    hessian = np.empty((k + 1, k + 1))
    hessian[1:, 1:] = np.diag(mass) - weighted @ proba.T + mass.mean() / k
    away = z - mean
    hessian[0, 1:] = hessian[1:, 0] = np.einsum("ij,ij->i", weighted, away)
    hessian[0, 0] = np.einsum("ij,ij,ij->", weighted, away, away)
    # A damped diagonal keeps the first steps short if the Hessian is nearly
    # singular; it vanishes with the gradient.
    bound = np.abs(gradient) / 2
    bound[0] /= max(abs(a), 1e-3)
    hessian.flat[:: k + 2] += bound + _MIN_CURVATURE
    return gradient, hessian
