"""Which action costs least under given probabilities."""

import numpy as np


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
