"""The convolved calibration error ("smECE")."""

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq

from ..exceptions import refuse
from ._base import binary_problems, canonical_case, metric

_CELLS = 1 << 14  # of the grid; the bandwidth found is rarely below 20 of them


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"), in_report=False)
def convolved_calibration_error(
    y_true,
    y_proba,
    *,
    bandwidth=None,
    multiclass="auto",
    sample_weight=None,
    labels=None,
    pos_label=None,
):
    """Calibration error of smoothed residuals, at the bandwidth that equals the error.

    Residuals are smoothed by a Gaussian that is reflected at 0 and 1, and the absolute values are
    integrated. It falls with the bandwidth; the measure is the bandwidth where the two are equal.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels; one dimension is the probability
        of the second class.
    bandwidth : float, default=None
        A given standard deviation of the Gaussian instead.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        As in `calibration_error`.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Biased upwards: of the order n^-1/3 for calibrated predictions.

    Raises
    ------
    ValueError
        Unknown option, or input that the door refuses.

    Notes
    -----
    Smoothing with reflection is the heat equation with insulated ends, diagonal in the basis of the
    cosine transform: one transform, and one back for each bandwidth tried. The grid has 16,384
    cells; residuals are shared between the two nearest. Cost: O(n), and some milliseconds.

    References
    ----------
    Blasiok, Nakkiran (2023), "Smooth ECE: principled reliability diagrams via kernel smoothing".
    Hu, Jambulapati, Tian, Yang (2024), definition 9.

    Examples
    --------
    >>> from sklearn_calib.metrics import convolved_calibration_error
    >>> from sklearn_calib.testing import make_scores
    >>> proba, y = make_scores(2, 2000)
    >>> 0.03 < convolved_calibration_error(y, proba) < 0.2
    True
    """
    where = "convolved_calibration_error"
    if bandwidth is not None and (isinstance(bandwidth, bool) or not bandwidth > 0):
        refuse(where, "a bandwidth above 0, or None", repr(bandwidth), "Leave the default")
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    error = 0.0
    for problem in binary_problems(case, multiclass, where):
        smoothed = _smoother(problem)
        if bandwidth is not None:
            error += problem.share * smoothed(bandwidth)
            continue
        low = 1e-9
        if smoothed(low) > low:
            fixed = brentq(lambda s, f=smoothed: f(s) - s, low, 1.0, xtol=1e-14)
            error += problem.share * fixed
    return float(min(error, 1.0))


def _smoother(problem):
    """The integral of the absolute smoothed residuals as a function of the bandwidth."""
    from .._kernels._intervals import linear_bins

    _, score, hit, weight, _ = problem
    grid = linear_bins(np.ascontiguousarray(score), hit, weight, _CELLS) / weight.sum()
    spectrum = dct(grid)
    frequency = np.pi * np.arange(_CELLS)

    def smoothed(bandwidth):
        return float(np.abs(idct(spectrum * np.exp(-((frequency * bandwidth) ** 2) / 2))).sum())

    return smoothed
