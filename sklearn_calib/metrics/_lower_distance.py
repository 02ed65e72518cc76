"""The lower distance to calibration."""

import numpy as np

from .._kernels._distance import lower_distance, onto_grid, rounded_distance
from ..exceptions import refuse
from ._base import binary_problems, canonical_case, metric

_METHODS = ("linear_program", "rounded")


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"))
def lower_distance_to_calibration(
    y_true,
    y_proba,
    *,
    resolution=1e-3,
    method="linear_program",
    return_bound=False,
    multiclass="auto",
    sample_weight=None,
    labels=None,
    pos_label=None,
):
    """How far the predictions have to be moved, on average, to become calibrated.

    The smallest mean of abs(u - p) over calibrated predictions u that may be chosen with knowledge
    of p and y, but not of x.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels; one dimension is the probability
        of the second class.
    resolution : float, default=1e-3
        Spacing of the grid of calibrated predictions, in (0, 1].
    method : {"linear_program", "rounded"}, default="linear_program"
        "linear_program": a program of the grid's size, by the interior-point solver Clarabel.
        "rounded": the published route, for comparison: a first-order method on all pairs of grid
        point and prediction, rounded to a feasible solution. Its value is an upper bound of the
        distance.
    return_bound : bool, default=False
        Return how far the value can be off as well.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        As in `calibration_error`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0. Counts of equal predictions may be given as weights.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.

    Returns
    -------
    distance : float
        In [0, 1], perfect 0. Between half and twice the smooth calibration error, and at most
        every other consistent distance. Biased upwards for finite n as that error is.
    bound : float
        Only with ``return_bound=True``: the distance of these rows is within it of the value. The
        resolution, and the mean distance of the predictions from the grid; "rounded" does not move
        predictions, and adds the gap of its solution, at most one resolution.

    Raises
    ------
    ValueError
        Unknown option, or input that the door refuses.

    Notes
    -----
    Given the law of u, the label-1 and the label-0 rows are moved onto it by optimal transport on
    a line, whose cost is the integral of a difference of distribution functions: so the program has
    two variables a grid point, whatever n is. Cost: O(n), and some 0.02 s at resolution 1e-3, 0.2 s
    at 1e-4. "rounded": O(n / resolution) time an iteration, and memory.

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran (2023), "A unifying theory of distance from calibration",
    definition 5.1 and theorem 7.3. Hu, Jambulapati, Tian, Yang (2024), "Testing calibration in
    nearly-linear time", definition 1, lemmas 18 and 20 to 22 for "rounded".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.metrics import lower_distance_to_calibration
    >>> p = np.linspace(0, 0.9, 10_000)
    >>> y = np.random.default_rng(0).random(10_000) < p + 0.1  # too low by 0.1 everywhere
    >>> round(lower_distance_to_calibration(y, p), 2)
    0.1
    """
    where = "lower_distance_to_calibration"
    if method not in _METHODS:
        refuse(where, f"method among {', '.join(_METHODS)}", repr(method), "Check the spelling")
    if isinstance(resolution, bool) or not 1e-6 <= resolution <= 1:
        refuse(where, "a resolution from 1e-6 to 1", repr(resolution), "Leave the default")
    n_cells = int(np.ceil(1 / resolution - 1e-9))
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    distance = bound = 0.0
    for share, score, hit, weight, _ in binary_problems(case, multiclass, where):
        weight = weight / weight.sum()
        if method == "rounded":
            value, lower = rounded_distance(score, hit, weight, n_cells, 1 / n_cells)
            slack = value - lower + 1 / n_cells
        else:
            ones, zeros, moved = onto_grid(score, hit, weight, n_cells)
            value, _ = lower_distance(np.linspace(0, 1, n_cells + 1), ones, zeros)
            slack = 1 / n_cells + moved
        distance, bound = distance + share * value, bound + share * slack
    distance = float(min(distance, 1.0))
    return (distance, float(bound)) if return_bound else distance
