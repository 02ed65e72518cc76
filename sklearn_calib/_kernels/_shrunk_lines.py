"""Logistic regressions on one score, one for each group or label, drawn towards a given line."""

import numpy as np

_SHORTEST = 1e-10


def shrunk_lines(z, target, weight, group, n_groups, centre, strength, spread):
    """(intercept, slope) of each group, as an array of shape (n_groups, 2).

    Each minimises sum w (log(1 + e^t) - y t) + strength / 2 ((a - a0)^2 + (b - b0)^2 spread^2) for
    t = a + b z, with (a0, b0) the centre. Strictly convex; Newton's method for all groups at once,
    each step halved until it pays. Never above the loss at the centre; a group without rows stays
    there.
    """
    centre = np.asarray(centre, float)
    penalty = strength * np.array([1.0, spread**2])

    def total(values):
        return np.bincount(group, values, minlength=n_groups)

    def objective(line):
        t = line[group, 0] + line[group, 1] * z
        losses = total(weight * (np.logaddexp(0.0, t) - target * t))
        return losses + 0.5 * ((line - centre) ** 2 @ penalty)

    line = np.tile(centre, (n_groups, 1))
    value = objective(line)
    for _ in range(100):
        t = line[group, 0] + line[group, 1] * z
        small = np.exp(-np.abs(t))
        pull = weight * (target - np.where(t >= 0, 1.0, small) / (1.0 + small))
        curvature = weight * small / (1.0 + small) ** 2
        slope = np.stack([total(pull), total(pull * z)], axis=1) - (line - centre) * penalty
        h00 = total(curvature) + penalty[0]
        h01 = total(curvature * z)
        h11 = total(curvature * z * z) + penalty[1]
        determinant = h00 * h11 - h01 * h01
        step = np.stack(
            [h11 * slope[:, 0] - h01 * slope[:, 1], h00 * slope[:, 1] - h01 * slope[:, 0]], axis=1
        )
        step /= determinant[:, None]
        decrement = (slope * step).sum(axis=1)
        length = np.where(decrement > 1e-13 * (1.0 + value), 1.0, 0.0)
        if not length.any():
            return line + step  # the last step is free
        while True:
            moved = line + length[:, None] * step
            reached = objective(moved)
            worse = (length > 0) & ~(reached < value)
            if not worse.any():
                break
            length = np.where(worse, np.where(length > _SHORTEST, length / 2, 0.0), length)
        line, value = moved, np.minimum(reached, value)
        if not length.any():
            break
    return line
