"""The lower distance to calibration."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from .._kernels._distance import lower_distance, onto_grid, rounded_distance
from .._typing import ArrayLike, Multiclass
from ..exceptions import refuse
from ._case import BINARY, canonical_case
from ._measure import metric

if TYPE_CHECKING:
    from . import BinaryProblem

_METHODS = ("linear_program", "rounded")


class DistanceInterval(NamedTuple):
    """What `lower_distance_interval` returns.

    Parameters
    ----------
    distance : float
        The value of `lower_distance_to_calibration`.
    bound : float
        The distance of these rows is within it of the value.
    """

    distance: float
    bound: float


@metric(
    range=(0.0, 1.0),
    multiclass=BINARY,
    cells=True,
    moved={"return_bound": "lower_distance_interval"},
)
def lower_distance_to_calibration(
    problem: "BinaryProblem",
    *,
    resolution: float = 1e-3,
    method: Literal["linear_program", "rounded"] = "linear_program",
) -> float:
    """How far the predictions have to be moved, on average, to become calibrated.

    The smallest mean of abs(u - p) over calibrated predictions u that may be chosen with knowledge
    of p and y, but not of x.

    Parameters
    ----------
    resolution : float, default=1e-3
        Spacing of the grid of calibrated predictions, in (0, 1].
    method : {"linear_program", "rounded"}, default="linear_program"
        "linear_program": a program of the grid's size, by the interior-point solver Clarabel.
        "rounded": the published route, for comparison: a first-order method on all pairs of grid
        point and prediction, rounded to a feasible solution. Its value is an upper bound of the
        distance.

    Returns
    -------
    distance : float
        In [0, 1], perfect 0. Between half and twice the smooth calibration error, and at most
        every other consistent distance. Biased upwards for finite n as that error is.
        `lower_distance_interval` says how far the value can be off.

    Notes
    -----
    Given the law of u, the label-1 and the label-0 rows are moved onto it by optimal transport on
    a line, whose cost is the integral of a difference of distribution functions: so the program has
    two variables a grid point, whatever n is. Cost: O(n), and some 0.02 s at resolution 1e-3, 0.2 s
    at 1e-4. "rounded": O(n / resolution) time per iteration, and as much memory.

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
    return min(_distance(problem, resolution, method).distance, 1.0)


def lower_distance_interval(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    resolution: float = 1e-3,
    method: Literal["linear_program", "rounded"] = "linear_program",
    multiclass: Multiclass = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> DistanceInterval:
    """The lower distance to calibration of these rows, with a bound of its numerical error.

    Parameters
    ----------
    y_true, y_proba, resolution, method, multiclass, sample_weight, labels, pos_label
        As in `lower_distance_to_calibration`.

    Returns
    -------
    interval : DistanceInterval
        (distance, bound). The bound is the resolution and the mean distance of the predictions
        from the grid; "rounded" does not move predictions, and adds the gap of its solution, at
        most one resolution. It is not a confidence interval; see
        `sklearn_calib.inference.confidence_interval`.

    Raises
    ------
    ValueError, TypeError
        An unknown option, or invalid scores, labels or weights; see `canonical_proba`.

    Notes
    -----
    Cost: that of the distance.

    References
    ----------
    Hu, Jambulapati, Tian, Yang (2024), lemmas 18 and 20.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.metrics import lower_distance_interval
    >>> p = np.linspace(0, 0.9, 10_000)
    >>> y = np.random.default_rng(0).random(10_000) < p + 0.1
    >>> distance, bound = lower_distance_interval(y, p)
    >>> round(distance, 2), bound < 0.002
    (0.1, True)
    """
    where = "lower_distance_interval"
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    problems = case.problems(multiclass)
    parts = [_distance(problem, resolution, method) for problem in problems]
    shares = np.array([problem.share for problem in problems])
    distance, bound = shares @ np.array(parts)
    return DistanceInterval(float(min(distance, 1.0)), float(bound))


def _distance(problem, resolution, method):
    where = problem.where
    if method not in _METHODS:
        refuse(where, f"method among {', '.join(_METHODS)}", repr(method), "Check the spelling")
    if isinstance(resolution, bool) or not 1e-6 <= resolution <= 1:
        refuse(where, "a resolution from 1e-6 to 1", repr(resolution), "Leave the default")
    n_cells = int(np.ceil(1 / resolution - 1e-9))
    cells = problem.cells
    ones, zeros = (part / cells.mass.sum() for part in (cells.hits, cells.mass - cells.hits))
    if method == "rounded":
        value, lower = rounded_distance(cells.score, ones, zeros, n_cells, 1 / n_cells)
        return DistanceInterval(value, value - lower + 1 / n_cells)
    ones, zeros, moved = onto_grid(cells.score, ones, zeros, n_cells)
    value, _ = lower_distance(np.linspace(0, 1, n_cells + 1), ones, zeros)
    return DistanceInterval(value, 1 / n_cells + moved)
