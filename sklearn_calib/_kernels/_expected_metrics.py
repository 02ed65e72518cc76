"""Means and standard deviations of metrics whose labels are drawn from the probabilities."""

import numpy as np


def mean_of_rows(proba, values, share):
    """Of the mean of one value per row that depends on the label, `values` of shape (n, k)."""
    expected = (proba * values).sum(axis=1)
    variance = (proba * (values - expected[:, None]) ** 2).sum(axis=1)
    return float(share @ expected), float(np.sqrt(share**2 @ variance))


def precision(p, acts, share):
    """The share of events among the rows acted on; NaN where there is none."""
    part = share * acts
    total = part.sum()
    if total == 0:
        return np.nan, np.nan
    return float(part @ p / total), float(np.sqrt(part**2 @ (p * (1 - p))) / total)


def recall(p, acts, share):
    """The share of the events that are acted on, a ratio of two sums of labels."""
    total = share @ p
    if total == 0:
        return np.nan, np.nan
    value = (share * acts) @ p / total
    influence = share * (acts - value) / total
    return float(value), float(np.sqrt(influence**2 @ (p * (1 - p))))


def auc(score, p, share):
    """The probability that an event has a larger score than a row without, ties counting half.

    The ratio of sums over pairs of rows i != j; its standard deviation is that of the derivatives
    with respect to the labels.
    """
    _, place = np.unique(score, return_inverse=True)
    events = np.bincount(place, share * p)
    others = np.bincount(place, share * (1 - p))
    others_below = (np.cumsum(others) - others / 2)[place]
    events_above = (events.sum() - np.cumsum(events) + events / 2)[place]
    own_event, own_other = share * p, share * (1 - p)
    wins = own_event @ (others_below - own_other / 2)
    pairs = own_event @ (others.sum() - own_other)
    if pairs <= 0:
        return np.nan, np.nan
    value = wins / pairs
    # a row that becomes an event leaves the others: both sums without the row itself
    of_wins = others_below - own_other / 2 - (events_above - own_event / 2)
    of_pairs = (others.sum() - own_other) - (events.sum() - own_event)
    influence = share * (of_wins - value * of_pairs) / pairs
    return float(value), float(np.sqrt(influence**2 @ (p * (1 - p))))


def expected_costs(proba, costs):
    """sum_j p_j costs[j, a] of each row and action, shape (n_rows, n_actions).

    `costs` has shape (n_classes, n_actions), or (n_rows, n_classes, n_actions).
    """
    if costs.ndim == 2:
        return proba @ costs
    return np.einsum("nj,njm->nm", proba, costs)


def best_actions(proba, costs):
    """Position of the cheapest action of each row, the first of equals.

    With two classes and two actions it is the second action from its threshold on, p >= t*, which
    does not depend on the rounding of the two expected costs.
    """
    if costs.shape[-2:] != (2, 2):
        return expected_costs(proba, costs).argmin(axis=1)
    against = costs[..., 0, 1] - costs[..., 0, 0]  # what action 1 costs more in class 0
    total = against + costs[..., 1, 0] - costs[..., 1, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        threshold = against / total
    p = proba[:, 1]
    chosen = np.where(total > 0, p >= threshold, p <= threshold)
    return np.where(total == 0, against < 0, chosen).astype(np.intp)


def costs_of(costs, codes, chosen):
    """What each row pays for the chosen action, the true classes being known."""
    if costs.ndim == 2:
        return costs[codes, chosen]
    return costs[np.arange(len(codes)), codes, chosen]
