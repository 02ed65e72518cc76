"""Temperature scaling of rows that have different numbers of options.

The sums of `_temperature` add up over rows, so rows are sorted by how many options they have: those
of m options are a dense problem of m classes, and the objective is the sum over all m.
"""

import numpy as np

from ._temperature import (
    TemperatureFit,
    box_of,
    choose_pass,
    excess_loss,
    solve,
)


def fit_temperature_of_options(z, codes, weight, label_smoothing=0.0):
    """As `fit_temperature`, for logits of which -inf marks an option that the row does not have.

    A smoothed label spreads over the options of its row. Rows of one option say nothing.
    """
    parts, spread = parts_of(z, codes, weight), 1.0
    if parts:
        spread = max(float((part[0].max(axis=1) - part[0].min(axis=1)).max()) for part in parts)
        spread = spread or 1.0
    unit = 1.0
    if not 1e-50 < spread < 1e50:  # third powers would leave the range of a float
        unit = spread
        parts = [((z - z.max(axis=1, keepdims=True)) / spread, *rest) for z, *rest in parts]

    def sums(beta):
        found = [np.zeros(6)]
        found += [np.asarray(choose_pass(part[0].size)(*part, beta)) for part in parts]
        return np.sum(found, axis=0)

    total, most = float(weight.sum()), max([2, *(part[0].shape[1] for part in parts)])
    box = box_of(spread, unit)
    fit: TemperatureFit = solve(sums, total, most, label_smoothing, unit, box, 1e-3)
    if label_smoothing == 0:
        excess = sum(excess_loss(*part, fit.beta)[0] for part in parts) / total
        fit = fit._replace(loss=max(float(fit.loss - excess), 0.0))
    return fit._replace(beta=fit.beta / unit)


def parts_of(z, codes, weight):
    """(logits, codes, weights) of the rows of each number of options from two on."""
    there = z > -np.inf
    counts, place = there.sum(axis=1), there.cumsum(axis=1) - 1
    parts = []
    for count in np.unique(counts[counts > 1]):
        rows = np.flatnonzero(counts == count)
        dense = z[rows][there[rows]].reshape(len(rows), count)
        parts.append((dense, place[rows, codes[rows]], weight[rows]))
    return parts
