"""The integrated calibration index and its relatives: distances to a smoothed calibration curve."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from .._argument_checks import check_choice, is_scalar_equal, unknown_name_error
from .._kernels._loess import Loess, compute_weighted_quantile
from .._typing import ArrayLike, FloatArray, Multiclass, RecalibratorLike
from ..exceptions import invalid_input
from ..metrics import BinaryOptions, binary_measure, validate_predictions
from ..recalibrators import (
    Identity,
    PlattScaling,
    all_recalibrators,
    resolve_recalibrator,
)
from ._in_sample import fit_and_recalibrate_new_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..metrics import BinaryProblem

_SUMMARY_NAMES = ("mean", "median", "q90", "max")


class CalibrationIndices(NamedTuple):
    """The result of `calibration_indices`: ICI, E50, E90 and Emax.

    All four are sizes of abs(c(p) - p), where c is a smoothed calibration curve.

    Attributes
    ----------
    ici : float
        Mean: the integrated calibration index.
    e50, e90 : float
        Median and 90 % quantile.
    emax : float
        Largest.
    """

    ici: float
    e50: float
    e90: float
    emax: float


def smooth_cell_frequencies(
    problem: "BinaryProblem", smoother: RecalibratorLike = "loess"
) -> FloatArray:
    """Smooth the calibration curve of a `BinaryProblem` at the distinct scores of its cells.

    Parameters
    ----------
    problem : BinaryProblem
    smoother : str or recalibrator, default="loess"
        As in `integrated_calibration_index`.

    Returns
    -------
    frequency : ndarray of shape (n_cells,)
        In [0, 1], at ``problem.cells.score``.
    """
    cells = problem.cells
    # The operator depends on the scores only, so resamples of labels share it.
    if is_scalar_equal(smoother, "loess"):
        return problem.derive_from_scores(Loess)(cells.mass, cells.hits)
    if is_scalar_equal(smoother, "cox"):
        method = PlattScaling(smooth_targets=False)
    elif isinstance(smoother, str) and smoother not in all_recalibrators():
        names = ("loess", "cox", *all_recalibrators())
        raise unknown_name_error("a smoother", smoother, names)
    else:
        method = resolve_recalibrator(smoother, input_name="smoother")
    # The distance from the identity would be 0 for all predictions.
    if isinstance(method, Identity):
        raise invalid_input(
            expected="a smoother that learns from the labels",
            got="Identity, whose curve is the predictions, so that every index is 0",
            hint="Leave smoother out, or take 'cox' or 'spline'",
        )
    # Fitted to the rows, evaluated at the distinct scores.
    proba = np.column_stack([1 - problem.score, problem.score])
    points = np.column_stack([1 - cells.score, cells.score])
    labels = problem.hit.astype(np.intp)
    mapped = fit_and_recalibrate_new_rows(
        method, proba, labels, problem.weight, points
    )[:, 1]
    return np.clip(mapped, 0.0, 1.0)


def compute_problem_indices(
    problem: "BinaryProblem",
    smoother: RecalibratorLike = "loess",
    summaries: Sequence[str] = _SUMMARY_NAMES,
) -> list[float]:
    """Summarise the distances of a `BinaryProblem` from its curve, without validation."""
    gap = np.abs(smooth_cell_frequencies(problem, smoother) - problem.cells.score)
    return [_summarise_gaps(gap, problem.cells.mass, name) for name in summaries]


def _summarise_gaps(gap, mass, summary):
    if summary == "mean":
        return float(mass @ gap / mass.sum())
    if summary == "max":
        return float(gap.max())
    quantile = 0.5 if summary == "median" else 0.9
    return compute_weighted_quantile(gap, mass, quantile)


def calibration_indices(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    smoother: RecalibratorLike = "loess",
    multiclass: Multiclass = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> CalibrationIndices:
    """Compute ICI, E50, E90 and Emax: distances of predictions from a smoothed curve.

    Parameters
    ----------
    y_true, y_proba, smoother, multiclass, sample_weight, labels, pos_label
        As in `integrated_calibration_index`.

    Returns
    -------
    indices : CalibrationIndices
        Each in [0, 1]. Of several two-class problems the means, with their shares.

    Raises
    ------
    ValueError, TypeError
        An unknown smoother, or invalid scores, labels or weights; see
        `canonical_proba`.

    Notes
    -----
    Cost: that of one of them; see `integrated_calibration_index`.

    References
    ----------
    Austin, Steyerberg (2019), section 2.

    Examples
    --------
    >>> from sklearn_calib.decomposition import calibration_indices
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> found = calibration_indices(y, proba)
    >>> found.e50 <= found.e90 <= found.emax
    True
    """
    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    shares = []
    indices = []
    for problem in predictions.problems(multiclass):
        shares.append(problem.share)
        indices.append(compute_problem_indices(problem, smoother))
    # The mean over classes, weighted by their shares.
    means = shares @ np.array(indices)
    return CalibrationIndices(*means.tolist())


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def integrated_calibration_index(
    problem: "BinaryProblem",
    *,
    smoother: RecalibratorLike = "loess",
    summary: Literal["mean", "median", "q90", "max"] = "mean",
    **shared: "Unpack[BinaryOptions]",
) -> float:
    """Compute the mean distance between the predictions and a smoothed calibration curve: ICI.

    The measure that validations of clinical models report: how far, for a typical row,
    the prediction is from the frequency of the event among rows like it. No bins; the
    curve is that of the smoother, and so is the meaning of "like it".

    Parameters
    ----------
    {shared_parameters}
    smoother : str or recalibrator, default="loess"
        What estimates the frequency c(p). "loess": local quadratic regression with span
        0.75, as published and as R's ``loess(y ~ p)``. "cox": logistic regression on
        the log-odds (`PlattScaling` without smoothed targets). "spline", "isotonic" or
        any other name of `all_recalibrators`, or an instance, which is cloned: fitted
        on these rows.
    summary : {"mean", "median", "q90", "max"}, default="mean"
        Of abs(c(p) - p) over the rows: the ICI, E50, E90 or Emax.
        `e50_calibration_index`, `e90_calibration_index` and `emax_calibration_index`
        are these by name.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Biased upwards, the more the more flexible the smoother:
        for calibrated predictions it is of the order n^-1/2. Report it with its value
        under calibration: ``calibration_test(y, p,
        statistic="integrated_calibration_index")``.

    Raises
    ------
    ValueError, TypeError
        An unknown smoother or summary; "identity", with which every index is 0.

    Notes
    -----
    "loess" takes the floor(0.75 n) rows nearest to a score, weighs them by (1 -
    (distance / farthest distance)^3)^3, fits a parabola by least squares and clips its
    value at the score to [0, 1]. That is R with ``surface = "direct"``. By default R
    does it at a few vertices of a k-d tree and interpolates, which moved the curve by
    up to 0.007 and the ICI by 5e-4 in two examples of 151 and 200 rows. Where one score
    holds more than 75 % of the rows, the window reaches to the next score.

    More than 512 distinct scores are fitted at 512 of them, with linear interpolation
    between, and more than 4096 are pooled to as many cells before. In 30 examples of
    700 to 2000 rows (uniform, two beta laws, normal log-odds, six powers of ten) that
    changed the ICI by at most 3.4e-6 and the curve by at most 9.6e-4. If most of the
    rows lie close together (85 % of 2000 within 6e-4 around 0.68, 30 examples) the
    windows there are narrow and the curve is coarser: it moved by up to 0.11, in half of
    the examples by less than 0.0021, and the ICI by at most 5.5e-5. In 208 more data
    sets, of 700 to 4000 rows from eight kinds of laws, the ICI moved by at most 2.8e-4.
    Cost: O(n log n) and at most some 5 ms for the fits; labels drawn again, as in
    `calibration_test`, share all of it but one product of a matrix and a vector.

    Weights that are whole numbers count rows, exactly. Others are read as frequencies:
    0.75 of their sum, and quantiles without interpolation. Scores that carry exact
    logarithms are read as plain probabilities.

    References
    ----------
    Austin, Steyerberg (2019), "The integrated calibration index (ICI) and related
    metrics for quantifying the calibration of logistic regression models", section 2.
    Van Calster et al. (2016), "A calibration hierarchy for risk models was defined".
    Cleveland, Devlin (1988), "Locally weighted regression: an approach to regression
    analysis by local fitting".

    Examples
    --------
    >>> from sklearn_calib.decomposition import integrated_calibration_index
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> integrated_calibration_index(y, proba) > 0.05  # overconfident
    True
    >>> integrated_calibration_index(y, proba, smoother="isotonic", summary="max") > 0.1
    True
    """
    check_choice("summary", summary, _SUMMARY_NAMES)
    return compute_problem_indices(problem, smoother, [summary])[0]


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def e50_calibration_index(
    problem: "BinaryProblem",
    *,
    smoother: RecalibratorLike = "loess",
    **shared: "Unpack[BinaryOptions]",
) -> float:
    """Compute the median distance between the predictions and a smoothed calibration curve: E50.

    Parameters
    ----------
    {shared_parameters}
    smoother : str or recalibrator, default="loess"
        As in `integrated_calibration_index`.

    Returns
    -------
    error : float
        In [0, 1], perfect 0; biased upwards. Cost: as `integrated_calibration_index`.

    References
    ----------
    Austin, Steyerberg (2019), section 2.

    Examples
    --------
    >>> from sklearn_calib.decomposition import e50_calibration_index
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> e50_calibration_index(y, proba) > 0.05  # overconfident
    True
    """
    return compute_problem_indices(problem, smoother, ["median"])[0]


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def e90_calibration_index(
    problem: "BinaryProblem",
    *,
    smoother: RecalibratorLike = "loess",
    **shared: "Unpack[BinaryOptions]",
) -> float:
    """Compute the 90 % quantile of the distances from a smoothed calibration curve: E90.

    Parameters
    ----------
    {shared_parameters}
    smoother : str or recalibrator, default="loess"
        As in `integrated_calibration_index`.

    Returns
    -------
    error : float
        In [0, 1], perfect 0; biased upwards. Cost: as `integrated_calibration_index`.

    References
    ----------
    Austin, Steyerberg (2019), section 2.

    Examples
    --------
    >>> from sklearn_calib.decomposition import e90_calibration_index
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> e90_calibration_index(y, proba) > 0.05  # overconfident
    True
    """
    return compute_problem_indices(problem, smoother, ["q90"])[0]


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def emax_calibration_index(
    problem: "BinaryProblem",
    *,
    smoother: RecalibratorLike = "loess",
    **shared: "Unpack[BinaryOptions]",
) -> float:
    """Compute the largest distance between the predictions and a smoothed calibration curve: Emax.

    The ends of the curve, which rest on few rows, often decide it.

    Parameters
    ----------
    {shared_parameters}
    smoother : str or recalibrator, default="loess"
        As in `integrated_calibration_index`.

    Returns
    -------
    error : float
        In [0, 1], perfect 0; biased upwards. Of several two-class problems the mean of
        their largest. Cost: as `integrated_calibration_index`.

    References
    ----------
    Austin, Steyerberg (2019), section 2. Harrell (2015), "Regression modeling
    strategies".

    Examples
    --------
    >>> from sklearn_calib.decomposition import emax_calibration_index
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> emax_calibration_index(y, proba) > 0.1  # overconfident
    True
    """
    return compute_problem_indices(problem, smoother, ["max"])[0]
