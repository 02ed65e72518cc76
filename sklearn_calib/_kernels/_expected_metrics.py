"""Means and standard deviations of metrics whose labels are drawn from the probabilities."""

import numpy as np


def compute_expected_mean_and_sd(proba, values, weight_fraction):
    """Return mean and deviation of the mean of one value per row.

    The value depends on the label; `values` has the shape (n, k).
    """
    expected = (proba * values).sum(axis=1)
    variance = (proba * (values - expected[:, None]) ** 2).sum(axis=1)
    deviation = np.sqrt(weight_fraction**2 @ variance)
    return float(weight_fraction @ expected), float(deviation)


def compute_expected_precision_and_sd(p, is_acted, weight_fraction):
    """Return mean and deviation of the precision; NaN if no row is acted on."""
    acted_fraction = weight_fraction * is_acted
    total = acted_fraction.sum()
    if total == 0:
        return np.nan, np.nan
    deviation = np.sqrt(acted_fraction**2 @ (p * (1 - p))) / total
    return float(acted_fraction @ p / total), float(deviation)


def compute_expected_recall_and_sd(p, is_acted, weight_fraction):
    """Return mean and deviation of the recall, a ratio of two sums of labels."""
    total = weight_fraction @ p
    if total == 0:
        return np.nan, np.nan
    value = (weight_fraction * is_acted) @ p / total
    # A ratio of two sums of independent labels: the delta method replaces it by its
    # linear part.
    influence = weight_fraction * (is_acted - value) / total
    deviation = np.sqrt(influence**2 @ (p * (1 - p)))
    return float(value), float(deviation)


def compute_expected_auc_and_sd(score, p, weight_fraction):
    """Return mean and deviation of the AUC, ties counting half.

    The ratio of sums over pairs of rows i != j; its standard deviation is that of the
    derivatives with respect to the labels.
    """
    _, index = np.unique(score, return_inverse=True)
    events = np.bincount(index, weight_fraction * p)
    nonevents = np.bincount(index, weight_fraction * (1 - p))
    nonevents_below = (np.cumsum(nonevents) - nonevents / 2)[index]
    events_above = (events.sum() - np.cumsum(events) + events / 2)[index]
    row_event = weight_fraction * p
    row_nonevent = weight_fraction * (1 - p)
    # A row cannot be an event and a non-event at once, so pairs of a row with itself
    # are left out.
    wins = row_event @ (nonevents_below - row_nonevent / 2)
    pairs = row_event @ (nonevents.sum() - row_nonevent)
    if pairs <= 0:
        return np.nan, np.nan
    value = wins / pairs
    # If a row becomes an event, it leaves the non-events. Neither sum counts the pair
    # of the row with itself.
    change_in_wins = nonevents_below - row_nonevent / 2 - (events_above - row_event / 2)
    change_in_pairs = (nonevents.sum() - row_nonevent) - (events.sum() - row_event)
    influence = weight_fraction * (change_in_wins - value * change_in_pairs) / pairs
    deviation = np.sqrt(influence**2 @ (p * (1 - p)))
    return float(value), float(deviation)


def compute_expected_costs(proba, costs):
    """Return sum_j p_j costs[j, a] of each row and action.

    The result has the shape (n_rows, n_actions).

    `costs` has shape (n_classes, n_actions), or (n_rows, n_classes, n_actions).
    """
    if costs.ndim == 2:
        return proba @ costs
    return np.einsum("nj,njm->nm", proba, costs)


def choose_best_actions(proba, costs):
    """Return the index of the cheapest action of each row, the first of equals.

    With two classes and two actions it is the second action from its threshold on, p >=
    t*, which does not depend on the rounding of the two expected costs.
    """
    if costs.shape[-2:] != (2, 2):
        return compute_expected_costs(proba, costs).argmin(axis=1)
    # With two classes and two actions the choice is a threshold on p; comparing p with
    # it has fewer roundings than comparing two expected costs. The additional cost of
    # action 1 in class 0.
    against = costs[..., 0, 1] - costs[..., 0, 0]
    total = against + costs[..., 1, 0] - costs[..., 1, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        threshold = against / total
    p = proba[:, 1]
    # If `total` is negative, action 1 is cheaper for small p, so the comparison is
    # reversed.
    chosen = np.where(total > 0, p >= threshold, p <= threshold)
    return np.where(total == 0, against < 0, chosen).astype(np.intp)


def get_chosen_costs(costs, y_encoded, chosen):
    """Return the cost of the chosen action of each row, given the true classes."""
    if costs.ndim == 2:
        return costs[y_encoded, chosen]
    return costs[np.arange(len(y_encoded)), y_encoded, chosen]
