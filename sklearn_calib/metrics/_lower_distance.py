"""The lower distance to calibration."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from .._argument_checks import check_choice, is_real_number
from .._typing import ArrayLike, Multiclass
from ..exceptions import invalid_input
from ._measure import BinaryOptions, binary_measure
from ._predictions import validate_predictions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import BinaryProblem

_DISTANCE_METHODS = ("linear_program", "rounded")
# The resolution of "rounded" unless one is passed.
_DEFAULT_RESOLUTION = 1e-3


class DistanceInterval(NamedTuple):
    """The result of `lower_distance_interval`.

    Parameters
    ----------
    distance : float
        The value of `lower_distance_to_calibration`.
    bound : float
        The exact distance of these rows differs from `distance` by no more than this.
    """

    distance: float
    bound: float


@binary_measure(range=(0.0, 1.0), poolable=True)
def lower_distance_to_calibration(
    problem: "BinaryProblem",
    *,
    resolution: float | None = None,
    method: Literal["linear_program", "rounded"] = "linear_program",
    **shared: "Unpack[BinaryOptions]",
) -> float:
    """How far the predictions have to be moved, on average, to become calibrated.

    The smallest mean of abs(u - p) over calibrated predictions u that may be chosen
    with knowledge of p and y, but not of x.

    Parameters
    ----------
    {shared_parameters}
    resolution : float in [1e-6, 1], default=None
        Spacing of the grid of calibrated predictions, if it is to be uniform; the
        predictions are moved to it. None: the predictions themselves, and multiples of
        1/64 if these are farther apart. More than 160 distinct predictions are
        pooled to 160 means, in cells that are narrow where they are many.
    method : {"linear_program", "rounded"}, default="linear_program"
        "linear_program": a program of the grid's size, by an interior-point method.
        "rounded": the published route, for comparison: a first-order method on all
        pairs of grid point and prediction, rounded to a feasible solution. Its value is
        an upper bound of the distance. Its grid is uniform, of resolution 1e-3 by
        default.

    Returns
    -------
    distance : float
        In [0, 1], perfect 0. Between half and twice the smooth calibration error, and
        at most every other consistent distance. Biased upwards for finite n as that
        error is. `lower_distance_interval` bounds the error of the value.

    Notes
    -----
    Given the law of u, the label-1 and the label-0 rows are moved onto it by optimal
    transport on a line, whose cost is the integral of a difference of distribution
    functions: so the program has two variables per grid point, for every n. Cost:
    sorting the predictions, and some 0.3 ms; with a resolution 1 ms at 1e-3, 25 ms at
    1e-4.

    Two errors are bounded. Pooling (or moving to a uniform grid) changes the distance
    by at most the mean change of the predictions, since that is what moving them costs:
    half the mean width of the cells at most, and much less in fact, as changes around a
    mean cancel. Confining u to a grid that holds the predictions raises it by at most
    half the mean square of the grid's gaps: a u between the points a and b is split
    between them with its mean kept, which costs each label at most (u - a)(b - u). With
    the default that is below 1.3e-4. `lower_distance_interval` computes both bounds for
    the rows given, the second from the dual solution. In six laws of predictions
    (uniform, rare, atoms, rates of 1e-6, float32, saturated) with 10^6 rows, the
    default and 7000 points differed by at most 9e-7.

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran (2023), "A unifying theory of distance from
    calibration", definition 5.1 and theorem 7.3. Hu, Jambulapati, Tian, Yang (2024),
    "Testing calibration in nearly-linear time", definition 1, lemmas 18 and 20 to 22
    for "rounded".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.metrics import lower_distance_to_calibration
    >>> p = np.linspace(0, 0.9, 10_000)
    >>> y = np.random.default_rng(0).random(10_000) < p + 0.1  # too low by 0.1 everywhere
    >>> round(lower_distance_to_calibration(y, p), 2)
    0.1
    """
    return min(
        _compute_distance_and_bound_or_nan(problem, resolution, method, False).distance,
        1.0,
    )


def lower_distance_interval(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    resolution: float | None = None,
    method: Literal["linear_program", "rounded"] = "linear_program",
    multiclass: Multiclass = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> DistanceInterval:
    """`lower_distance_to_calibration` with a bound of its numerical error.

    Parameters
    ----------
    y_true, y_proba, resolution, method, multiclass, sample_weight, labels, pos_label
        As in `lower_distance_to_calibration`.

    Returns
    -------
    interval : DistanceInterval
        (distance, bound). The bound is the mean change of the predictions by pooling
        them or moving them to the grid, and the most that the optimum over all u can be
        below that on the grid, computed from the dual solution. "rounded" does not move
        predictions; its bound is the resolution and the gap of its solution, at most
        one resolution. It is not a confidence interval; see
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
    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    problems = predictions.problems(multiclass)
    intervals = []
    for problem in problems:
        intervals.append(
            _compute_distance_and_bound_or_nan(problem, resolution, method, True)
        )
    shares = np.array([problem.share for problem in problems])
    distance, bound = shares @ np.array(intervals)
    return DistanceInterval(float(min(distance, 1.0)), float(bound))


def _compute_distance_and_bound_or_nan(problem, resolution, method, needs_bound):
    """Return the distance; its bound is NaN unless it is wanted (`needs_bound`)."""
    from .._kernels import _distance as kernel

    check_choice("method", method, _DISTANCE_METHODS)
    is_in_range = is_real_number(resolution) and 1e-6 <= resolution <= 1
    if resolution is not None and not is_in_range:
        raise invalid_input(
            expected="a resolution from 1e-6 to 1",
            got=repr(resolution),
            hint="Leave the default",
        )
    # 1 / 0.001 may be just above 1000.
    n_cells = int(np.ceil(1 / (resolution or _DEFAULT_RESOLUTION) - 1e-9))
    cells = problem.cells
    total = cells.mass.sum()
    hits = cells.hits / total
    # Rounding can leave a difference of sums just below 0.
    misses = np.maximum(cells.mass - cells.hits, 0.0) / total
    if method == "rounded":
        value, lower = kernel.compute_upper_and_lower_distance(
            cells.score, hits, misses, n_cells, 1 / n_cells
        )
        # The certified gap of the solver, plus the effect of the grid: restricting u to
        # it costs at most one cell.
        return DistanceInterval(value, value - lower + 1 / n_cells)
    if resolution is None:
        program = kernel.make_distance_program_on_scores(cells.score, hits, misses)
    else:
        program = kernel.make_uniform_program(cells.score, hits, misses, n_cells)
    solution = kernel.find_distance_distribution_and_prices(program)
    bound = np.nan
    if needs_bound:
        bound = program.mean_move + kernel.bound_grid_excess(program, solution)
    return DistanceInterval(solution.value, bound)
