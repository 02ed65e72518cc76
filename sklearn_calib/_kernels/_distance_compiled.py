"""The interior-point method of `_distance`: steps that cost O(1) a point of the grid.

Pairs of multipliers X and slacks S, five a point: t x + (1 - t) z <= 0, that x rises by
no more than the gap to the next point, that it falls by no more, and the same two of z
(no gap follows the last point, whose last four are not used). Mehrotra's predictor and
corrector; the duals are feasible throughout. Newton's equations have a symmetric 2 x 2
block for each point, and the next point only adds springs between equal prices:
eliminating point by point, as a parallel of the springs so far and those of the gap,
adds positive numbers alone and so loses no digits. If the distribution has an atom its
slack becomes as small as the gap between primal and dual, while prices do not. So the
change of that slack is taken from the elimination, not from prices, whose digits
cancel. If some products have become far smaller than the others the corrected step
is blocked at once; then the step towards equal products, half their mean, is taken
instead.
"""

import numpy as np

from ._compile import compile_helper, compile_kernel

# The imbalance of masses that may remain in the gap: sums of prices times what rounding
# leaves.
MASS_BALANCE_TOLERANCE = 1e-9
# A step goes this fraction of the way to where a variable would become 0.
_BOUNDARY_STEP_FRACTION = 0.995
# A corrected step shorter than this counts as blocked.
_MIN_CORRECTED_STEP = 0.1
# A centring step aims at products of this size, in units of their mean.
_CENTRING_FACTOR = 0.5


def get_duality_gap_tolerance(value):
    """Return the gap between primal and dual that is small enough."""
    return 1e-9 * abs(value) + 1e-12


@compile_kernel(fastmath={"reassoc", "contract"})
def run_interior_point_and_get_gap_and_value(
    grid,
    masses,
    prices,
    x,
    s,
    dx,
    ds,
    primal,
    slack,
    d_primal,
    d_slack,
    d_prices,
    imbalance,
    factor,
    max_iter,
):
    """Improve prices, primal and slack in place.

    Returns the gap between primal and dual, and the value.
    """
    n = len(grid)
    pairs = 5 * n - 4
    gap = value = 0.0
    for iteration in range(max_iter + 1):
        _fill_imbalance_from_primal(grid, masses, primal, imbalance)
        product = unbalanced = value = 0.0
        for i in range(pairs):
            product += x[i] * s[i]
            dx[i] = -x[i]
        for label in range(2):
            for k in range(n):
                unbalanced += imbalance[label, k] * prices[label, k]
                value += masses[label, k] * prices[label, k]
        gap = product + abs(unbalanced)
        # As `get_duality_gap_tolerance`; a call would be compiled into this kernel a
        # second time.
        enough = 1e-9 * abs(value) + 1e-12
        if gap <= enough or iteration == max_iter:
            break
        if product <= enough and gap <= enough + MASS_BALANCE_TOLERANCE:
            # The remaining imbalance is rounding and no longer falls.
            break
        _fill_elimination_factor(grid, primal, slack, factor)
        # The stages are a predictor, a corrector, and a centring step if the corrector
        # is blocked.
        for stage in range(3):
            _replace_aims_by_direction_in_place(
                grid, primal, slack, imbalance, factor, d_prices, d_primal, d_slack
            )
            step = min(
                1.0,
                (_BOUNDARY_STEP_FRACTION if stage else 1.0)
                * _find_step_to_boundary(x, dx, pairs),
            )
            d_step = min(
                1.0,
                (_BOUNDARY_STEP_FRACTION if stage else 1.0)
                * _find_step_to_boundary(s, ds, pairs),
            )
            if stage == 0:
                reached = 0.0
                for i in range(pairs):
                    reached += (x[i] + step * dx[i]) * (s[i] + d_step * ds[i])
                # Mehrotra's heuristic: the cube of the fraction of the gap that the
                # predictor leaves, times the mean product.
                centre = (reached / product) * (reached / product) * reached / pairs
                for i in range(pairs):
                    dx[i] = (centre - dx[i] * ds[i]) / s[i] - x[i]
            elif stage == 1 and min(step, d_step) < _MIN_CORRECTED_STEP:
                for i in range(pairs):
                    dx[i] = _CENTRING_FACTOR * product / pairs / s[i] - x[i]
            else:
                break
        for i in range(pairs):
            x[i] += step * dx[i]
            s[i] += d_step * ds[i]
        for label in range(2):
            for k in range(n):
                prices[label, k] += d_step * d_prices[label, k]
    return gap, value


@compile_helper
def _fill_imbalance_from_primal(grid, masses, primal, imbalance):
    """Compute the mass that the distribution and the flows do not account for.

    There is an entry for each label and point.
    """
    for label in range(2):
        before = 0.0
        for k in range(len(grid)):
            label_rate = 1 - grid[k] if label else grid[k]
            after = 0.0
            if k < len(grid) - 1:
                after = primal[k, 2 * label + 1] - primal[k, 2 * label + 2]
            imbalance[label, k] = (
                masses[label, k] - label_rate * primal[k, 0] + after - before
            )
            before = after


@compile_helper
def _fill_elimination_factor(grid, primal, slack, factor):
    """Eliminate the points from left to right.

    `factor` gets for each point the inverse of its block (entries xx, zz, xz), the
    springs to the next point, and what turns the right side into the change of the last
    slack.
    """
    # The contributions of the points so far: the entries xx, zz and xz of the matrix,
    # and its determinant.
    a = b = c = det = 0.0
    for k in range(len(grid)):
        t = grid[k]
        u = 1 - t
        # The ratios of multipliers and slacks are the conductances of the springs of
        # the normal equations.
        weight = primal[k, 0] / slack[k, 0]
        p = q = 0.0
        if k < len(grid) - 1:
            p = primal[k, 1] / slack[k, 1] + primal[k, 2] / slack[k, 2]
            q = primal[k, 3] / slack[k, 3] + primal[k, 4] / slack[k, 4]
        # The point's own weight is left out, because it would cancel.
        x = (b + q) * t - c * u
        z = (a + p) * u - c * t
        # The quadratic form is not negative in exact arithmetic; rounding must not make
        # the determinant negative.
        det += weight * max(u * u * a + t * t * b - 2 * t * u * c, 0.0)
        a += weight * t * t
        b += weight * u * u
        c += weight * t * u
        # Springs in series: the next point is attached to the previous one by the
        # springs of the gap.
        scale = 1 / (det + a * q + b * p + p * q)
        factor[k, 5] = x * scale
        factor[k, 6] = z * scale
        factor[k, 0] = (b + q) * scale
        factor[k, 1] = (a + p) * scale
        factor[k, 2] = c * scale
        factor[k, 3] = p
        factor[k, 4] = q
        a = p * scale * (det + a * q)
        b = q * scale * (det + b * p)
        c = p * scale * q * c
        det = p * scale * q * det


@compile_helper
def _replace_aims_by_direction_in_place(
    grid, primal, slack, imbalance, factor, d_prices, d_primal, d_slack
):
    """Compute Newton's step.

    `d_primal` comes as the aimed change of the products over the slacks.
    """
    last = len(grid) - 1
    x = z = 0.0
    for k in range(last + 1):
        u = imbalance[0, k] - grid[k] * d_primal[k, 0]
        v = imbalance[1, k] - (1 - grid[k]) * d_primal[k, 0]
        if k < last:
            u += d_primal[k, 1] - d_primal[k, 2]
            v += d_primal[k, 3] - d_primal[k, 4]
        if k > 0:
            u += factor[k - 1, 3] * x - d_primal[k - 1, 1] + d_primal[k - 1, 2]
            v += factor[k - 1, 4] * z - d_primal[k - 1, 3] + d_primal[k - 1, 4]
        x = factor[k, 0] * u - factor[k, 2] * v
        z = factor[k, 1] * v - factor[k, 2] * u
        d_prices[0, k] = x
        d_prices[1, k] = z
        d_slack[k, 0] = -factor[k, 5] * u - factor[k, 6] * v
    for k in range(last, -1, -1):
        if k < last:
            u = factor[k, 3] * d_prices[0, k + 1]
            v = factor[k, 4] * d_prices[1, k + 1]
            d_prices[0, k] += factor[k, 0] * u - factor[k, 2] * v
            d_prices[1, k] += factor[k, 1] * v - factor[k, 2] * u
            d_slack[k, 0] -= factor[k, 5] * u + factor[k, 6] * v
            u = d_prices[0, k + 1] - d_prices[0, k]
            v = d_prices[1, k + 1] - d_prices[1, k]
            d_slack[k, 1] = -u
            d_slack[k, 2] = u
            d_slack[k, 3] = -v
            d_slack[k, 4] = v
        for i in range(5 if k < last else 1):
            d_primal[k, i] -= primal[k, i] / slack[k, i] * d_slack[k, i]


@compile_helper
def _find_step_to_boundary(values, change, n_pairs):
    """Return the largest step that leaves all values at least 0."""
    step = 1e300
    for i in range(n_pairs):
        if change[i] * step < -values[i]:
            step = -values[i] / change[i]
    return step


@compile_kernel
def pool_scores_into_cells(score, ones, zeros, max_cells, starts, sums):
    """Pool scores into cells for `_distance.make_distance_program_on_scores`.

    Fills where cells start, their mass, and that times the score.

    Returns the number of cells.
    """
    n = len(score)
    total = 0.0
    for i in range(n - 1):
        mass = (ones[i] + zeros[i]) + (ones[i + 1] + zeros[i + 1])
        # Cells of equal sums of sqrt(mass gap) minimise the mean distance to the
        # centres asymptotically.
        total += np.sqrt(mass * (score[i + 1] - score[i]))
    progress = 0.0
    cell = 0
    last = 0
    for i in range(n):
        mass = ones[i] + zeros[i]
        if i > 0:
            pair_mass = ones[i - 1] + zeros[i - 1] + mass
            progress += np.sqrt(pair_mass * (score[i] - score[i - 1]))
            target = min(int(progress * (max_cells / total)), max_cells - 1)
            if target != last:
                cell += 1
                last = target
                starts[cell] = i
        sums[cell, 0] += mass
        sums[cell, 1] += mass * score[i]
    starts[cell + 1] = n
    return cell + 1


@compile_kernel
def move_to_grid_and_get_mean_distance(
    score, ones, zeros, starts, indices, grid, at_ones, at_zeros
):
    """Move the masses of cells to their points; return the mean distance."""
    total_move = 0.0
    for cell in range(len(starts) - 1):
        index = indices[cell]
        for i in range(starts[cell], starts[cell + 1]):
            total_move += (ones[i] + zeros[i]) * abs(score[i] - grid[index])
            at_ones[index] += ones[i]
            at_zeros[index] += zeros[i]
    return total_move
