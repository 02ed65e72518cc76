"""The interior-point method of `_distance`: steps that cost O(1) a point of the grid.

Pairs of multipliers X and slacks S, five a point: that x rises by no more than the gap to the next
point, that it falls by no more, the same two of z, and t x + (1 - t) z <= 0 (no gap follows the
last point, whose first four are not used). Mehrotra's predictor and corrector; the duals are
feasible throughout. Newton's equations have a symmetric 2 x 2 block for each point, and the next
point only adds springs between equal prices: eliminating point by point, as a parallel of the
springs so far and those of the gap, adds positive numbers alone and so loses no digits.
"""

from ._compile import kernel, part

_STAY = 0.995  # of the way to where a variable would be 0


def tolerance(value):
    """The gap between primal and dual at which a value is good enough."""
    return 1e-9 * abs(value) + 1e-12


@kernel
def interior_point(
    grid, masses, prices, primal, slack, d_primal, d_slack, d_prices, left, factor, max_iter
):
    """Improve prices, primal and slack in place; the gap between primal and dual, and the value."""
    n = len(grid)
    gap = value = 0.0
    for iteration in range(max_iter + 1):
        _imbalance(grid, masses, primal, left)
        product = unbalanced = value = 0.0
        for k in range(n):
            for i in range(0 if k < n - 1 else 4, 5):
                product += primal[i, k] * slack[i, k]
                d_primal[i, k] = -primal[i, k]
            for label in range(2):
                unbalanced += left[label, k] * prices[label, k]
                value += masses[label, k] * prices[label, k]
        gap = product + abs(unbalanced)
        if gap <= 1e-9 * abs(value) + 1e-12 or iteration == max_iter:
            break
        _eliminate(grid, primal, slack, factor)
        centre = 0.0
        for corrector in range(2):
            _direction(grid, primal, slack, left, factor, d_prices, d_primal, d_slack)
            step = min(1.0, (_STAY if corrector else 1.0) * _longest(primal, d_primal))
            d_step = min(1.0, (_STAY if corrector else 1.0) * _longest(slack, d_slack))
            if corrector:
                break
            reached = 0.0
            for k in range(n):
                for i in range(0 if k < n - 1 else 4, 5):
                    reached += (primal[i, k] + step * d_primal[i, k]) * (
                        slack[i, k] + d_step * d_slack[i, k]
                    )
            centre = (reached / product) ** 3 * product / (5 * n - 4)
            for k in range(n):
                for i in range(0 if k < n - 1 else 4, 5):
                    second = d_primal[i, k] * d_slack[i, k]
                    d_primal[i, k] = (centre - second) / slack[i, k] - primal[i, k]
        for k in range(n):
            for i in range(0 if k < n - 1 else 4, 5):
                primal[i, k] += step * d_primal[i, k]
                slack[i, k] += d_step * d_slack[i, k]
            for label in range(2):
                prices[label, k] += d_step * d_prices[label, k]
    return gap, value


@part
def _imbalance(grid, masses, primal, left):
    """The mass of each label and point that the law and the flows do not account for."""
    for label in range(2):
        before = 0.0
        for k in range(len(grid)):
            share = 1 - grid[k] if label else grid[k]
            after = 0.0
            if k < len(grid) - 1:
                after = primal[2 * label, k] - primal[2 * label + 1, k]
            left[label, k] = masses[label, k] - share * primal[4, k] + after - before
            before = after


@part
def _eliminate(grid, primal, slack, factor):
    """The inverse of each block after elimination of the points before, and the next springs."""
    a = b = c = det = 0.0  # what the points so far add: entries xx, zz, xz, the determinant
    for k in range(len(grid)):
        t = grid[k]
        u = 1 - t
        weight = primal[4, k] / slack[4, k]
        det += weight * max(u * u * a + t * t * b - 2 * t * u * c, 0.0)
        a += weight * t * t
        b += weight * u * u
        c += weight * t * u
        p = q = 0.0
        if k < len(grid) - 1:
            p = primal[0, k] / slack[0, k] + primal[1, k] / slack[1, k]
            q = primal[2, k] / slack[2, k] + primal[3, k] / slack[3, k]
        whole = det + a * q + b * p + p * q
        factor[0, k] = (b + q) / whole
        factor[1, k] = (a + p) / whole
        factor[2, k] = c / whole
        factor[3, k] = p
        factor[4, k] = q
        a, b, c = p * (det + a * q) / whole, q * (det + b * p) / whole, p * q * c / whole
        det = p * q * det / whole


@part
def _direction(grid, primal, slack, left, factor, d_prices, d_primal, d_slack):
    """Newton's step; `d_primal` comes as the aimed change of the products over the slacks."""
    last = len(grid) - 1
    x = z = 0.0
    for k in range(last + 1):
        u = left[0, k] - grid[k] * d_primal[4, k]
        v = left[1, k] - (1 - grid[k]) * d_primal[4, k]
        if k < last:
            u += d_primal[0, k] - d_primal[1, k]
            v += d_primal[2, k] - d_primal[3, k]
        if k > 0:
            u += factor[3, k - 1] * x - d_primal[0, k - 1] + d_primal[1, k - 1]
            v += factor[4, k - 1] * z - d_primal[2, k - 1] + d_primal[3, k - 1]
        x = factor[0, k] * u - factor[2, k] * v
        z = factor[1, k] * v - factor[2, k] * u
        d_prices[0, k] = x
        d_prices[1, k] = z
    for k in range(last, -1, -1):
        if k < last:
            u = factor[3, k] * d_prices[0, k + 1]
            v = factor[4, k] * d_prices[1, k + 1]
            d_prices[0, k] += factor[0, k] * u - factor[2, k] * v
            d_prices[1, k] += factor[1, k] * v - factor[2, k] * u
            u = d_prices[0, k + 1] - d_prices[0, k]
            v = d_prices[1, k + 1] - d_prices[1, k]
            d_slack[0, k] = -u
            d_slack[1, k] = u
            d_slack[2, k] = -v
            d_slack[3, k] = v
        d_slack[4, k] = -grid[k] * d_prices[0, k] - (1 - grid[k]) * d_prices[1, k]
        for i in range(0 if k < last else 4, 5):
            d_primal[i, k] -= primal[i, k] / slack[i, k] * d_slack[i, k]


@part
def _longest(values, change):
    """The largest step that leaves all values at least 0."""
    step = 1e300
    last = values.shape[1] - 1
    for k in range(last + 1):
        for i in range(0 if k < last else 4, 5):
            if change[i, k] * step < -values[i, k]:
                step = -values[i, k] / change[i, k]
    return step
