"""Newton's method for smooth convex functions of a few numbers, some of which may have a bound."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

# Rounding of the value hides decrements below this fraction of it. Whole steps are then
# taken without a comparison.
_MAX_HIDDEN_DECREMENT_FRACTION = 1e-12
_MIN_STEP_LENGTH = 1e-10


class NewtonMinimum(NamedTuple):
    """Where the search ended; half the decrement is the distance of the value, to second order."""

    theta: np.ndarray
    value: float
    decrement: float
    n_iter: int


def minimise_by_newton(
    evaluate,
    compute_step_and_decrement,
    theta,
    tol,
    lowest=-np.inf,
    is_trusted=None,
    max_iter=200,
):
    """Minimise a convex function by Newton steps, each halved until it pays (Armijo's rule).

    Parameters
    ----------
    evaluate : callable
        ``evaluate(theta)`` is the value, and anything that `compute_step_and_decrement`
        can use of its computation.
    compute_step_and_decrement : callable
        ``compute_step_and_decrement(theta, anything)`` is the Newton step and its
        decrement, minus the slope.
    theta : ndarray
        To begin with.
    tol : float
        The step whose decrement is at most this is the last one; of a `tol` that
        rounding does not allow, the one after which decrements do not become smaller.
    lowest : float or ndarray, default=-inf
        Bounds of theta, which whole steps keep up to rounding.
    is_trusted : callable, default=None
        ``is_trusted(theta, step)`` is true if the second-order model holds along the
        whole step; without it that is assumed once the decrement is rounding.
    max_iter : int, default=200

    Returns
    -------
    end : NewtonMinimum
    """
    value, extra = evaluate(theta)
    before = np.inf
    for n_iter in range(1, max_iter + 1):
        step, decrement = compute_step_and_decrement(theta, extra)
        # Below this decrement the rounding of the value hides the gain, so Armijo's
        # rule cannot judge the step.
        near = decrement <= max(tol, _MAX_HIDDEN_DECREMENT_FRACTION * (1 + abs(value)))
        near = near and (is_trusted is None or is_trusted(theta, step))
        # Newton's method converges quadratically; a decrement that no longer falls is
        # rounding noise.
        if near and decrement > before / 4:
            break
        before = decrement
        # The step has been computed already, so taking it costs nothing.
        if near and decrement <= tol:
            theta = np.maximum(theta + step, lowest)
            value -= decrement / 2
            break
        length = 1.0
        while True:
            candidate = np.maximum(theta + length * step, lowest)
            reached, extra = evaluate(candidate)
            if near or reached <= value - 1e-4 * length * decrement:
                break
            length /= 2
            # No progress is possible in floating point.
            if length < _MIN_STEP_LENGTH:
                return NewtonMinimum(theta, value, decrement, n_iter)
        theta = candidate
        value = reached
    return NewtonMinimum(theta, value, decrement, n_iter)


def solve_newton_step_and_decrement(hessian, gradient, lowest=-np.inf):
    """Minimise the second-order model over steps >= `lowest`; also its decrement."""
    # Scaling to a unit diagonal makes the step independent of the units of the
    # parameters.
    scale = np.sqrt(np.maximum(hessian.diagonal(), 1e-200))
    scaled = hessian / scale / scale[:, None]
    # A multiple of the identity keeps the matrix invertible if the data leave a
    # direction open.
    scaled.flat[:: len(scale) + 1] += 1e-13
    step = np.linalg.solve(scaled, -gradient / scale)
    if (step < lowest * scale).any():
        root = np.linalg.cholesky(scaled).T
        step = solve_bounded_step(
            root, np.linalg.solve(root.T, -gradient / scale), lowest * scale
        )
    step /= scale
    return step, float(-gradient @ step)


def solve_bounded_step(root, pull, lowest):
    """Return the step of least |root step - pull| among those of at least `lowest`."""
    step = np.linalg.lstsq(root, pull, rcond=None)[0]
    if (step < lowest).any():
        # `nnls` has bounds at 0 only; a free variable is the difference of two
        # nonnegative ones.
        free = np.isneginf(lowest)
        base = np.where(free, 0.0, lowest)
        above = nnls(np.column_stack([root, -root[:, free]]), pull - root @ base)[0]
        step = base + above[: len(step)]
        step[free] -= above[len(step) :]
    return step
