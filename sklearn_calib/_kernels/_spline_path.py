"""Passes of a spline fit, compiled.

A fit tries 18 penalties at some hundred cells, each with some three steps of Newton's
method: small arrays, on which the calls of numpy took most of the time. `design` has a
row for each coefficient, of all cells; the rows of `tables` are log-odds, mean,
variance and leverage of the cells.
"""

import math

from ._compile import compile_helper, compile_kernel

# These flags allow sums in any order, but do not assume anything about NaN.
_FASTMATH_FLAGS = {
    "reassoc",
    "contract",
    "nsz",
}


@compile_helper
def _compute_softplus(eta):
    """Return log(1 + e^eta)."""
    return max(eta, 0.0) + math.log1p(math.exp(-abs(eta)))


@compile_kernel(fastmath=_FASTMATH_FLAGS)
def fill_tables_and_get_loss_and_ridge_loss(design, mass, ones, ridge, theta, tables):
    """Return the loss at theta without and with the penalty; fill the tables."""
    n_cells = design.shape[1]
    eta = tables[0]
    mean = tables[1]
    variance = tables[2]
    loss = 0.0
    for c in range(n_cells):
        eta[c] = theta[0] * design[0, c]
    for i in range(1, len(theta)):
        coefficient = theta[i]
        for c in range(n_cells):
            eta[c] += coefficient * design[i, c]
    for c in range(n_cells):
        # One exponential gives both probabilities without cancellation.
        small_exp = math.exp(-abs(eta[c]))
        larger = 1.0 / (1.0 + small_exp)
        smaller = small_exp * larger
        mean[c] = larger if eta[c] >= 0.0 else smaller
        variance[c] = larger * smaller
        loss += mass[c] * (max(eta[c], 0.0) + math.log1p(small_exp)) - ones[c] * eta[c]
    penalised = loss
    for i in range(len(theta)):
        # The penalty draws the curve to the identity: intercept 0, slope 1, no
        # curvature.
        away = theta[i] - (1.0 if i == 1 else 0.0)
        penalised += 0.5 * ridge[i] * away * away
    return loss, penalised


@compile_kernel(fastmath=_FASTMATH_FLAGS)
def fill_lower_hessian(design, mass, tables, row, square):
    """Fill the lower half of the Hessian.

    Without the copies of a product it stays in the cache.
    """
    free, n_cells = design.shape
    variance = tables[2]
    for i in range(free):
        for c in range(n_cells):
            row[c] = design[i, c] * mass[c] * variance[c]
        for j in range(i + 1):
            total = 0.0
            for c in range(n_cells):
                total += row[c] * design[j, c]
            square[i, j] = total


@compile_helper(fastmath=_FASTMATH_FLAGS)
def _factor_hessian_in_place(square, ridge, scale):
    """Factor the matrix, scaled to a diagonal of ones, in place.

    Returns whether there is a factor.
    """
    free = len(scale)
    for i in range(free):
        # Scaling to a unit diagonal keeps the factor exact for coefficients of very
        # different size.
        square[i, i] += ridge[i]
        scale[i] = math.sqrt(max(square[i, i], 1e-290))
        for j in range(i + 1, free):
            square[i, j] = 0.0
    for i in range(free):
        for j in range(i):
            total = square[i, j] / (scale[i] * scale[j])
            for m in range(j):
                total -= square[i, m] * square[j, m]
            square[i, j] = total / square[j, j]
        # A multiple of the identity keeps the factor if the data leave a direction
        # open.
        total = 1.0 + 1e-13
        for m in range(i):
            total -= square[i, m] * square[i, m]
        if not total > 0.0:
            return False
        square[i, i] = math.sqrt(total)
    return True


@compile_kernel(fastmath=_FASTMATH_FLAGS)
def fill_newton_step_and_get_decrement(
    design, mass, ones, tables, theta, ridge, square, scale, gradient, step
):
    """Compute Newton's step and the factor; return the decrement.

    It is -1 if the Hessian is not definite.
    """
    free, n_cells = design.shape
    mean = tables[1]
    if not _factor_hessian_in_place(square, ridge, scale):
        return -1.0
    for i in range(free):
        total = 0.0
        for c in range(n_cells):
            total += design[i, c] * (mass[c] * mean[c] - ones[c])
        gradient[i] = total + ridge[i] * (theta[i] - (1.0 if i == 1 else 0.0))
        total = -gradient[i] / scale[i]
        for m in range(i):
            total -= square[i, m] * step[m]
        step[i] = total / square[i, i]
    for back in range(free):
        i = free - 1 - back
        total = step[i]
        for m in range(i + 1, free):
            total -= square[m, i] * step[m]
        step[i] = total / square[i, i]
    decrement = 0.0
    for i in range(free):
        step[i] /= scale[i]
        decrement -= gradient[i] * step[i]
    return decrement


@compile_kernel
def sum_left_out_losses(scored_weight, unit_weight, tables):
    """Sum of the log losses of labels predicted without one row of their own, to first order.

    Leaving out one positive of weight u at eta moves it to eta - a u (1 - mean) / (1 -
    a u v), one negative to eta + a u mean / (1 - a u v), a the leverage and v = mean
    (1 - mean).
    """
    eta = tables[0]
    mean = tables[1]
    variance = tables[2]
    leverage = tables[3]
    total = 0.0
    for c in range(len(eta)):
        for label in range(2):
            if scored_weight[label, c] == 0.0:
                continue
            # The change of the row's own log-odds if it is left out, as in ridge
            # regression: leverage times residual over what remains of its curvature.
            pull = leverage[c] * unit_weight[label, c]
            pull /= max(1.0 - pull * variance[c], 1e-10)
            if label == 1:
                wrong = pull * (1.0 - mean[c]) - eta[c]
            else:
                wrong = eta[c] + pull * mean[c]
            total += scored_weight[label, c] * _compute_softplus(wrong)
    return total
