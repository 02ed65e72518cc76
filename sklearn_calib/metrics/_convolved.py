"""The convolved calibration error ("smECE")."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq

from ..exceptions import refuse
from ._case import BINARY
from ._measure import metric

if TYPE_CHECKING:
    from . import BinaryProblem

_CELLS = 1 << 14  # of the grid; the bandwidth found is rarely below 20 of them


@metric(range=(0.0, 1.0), multiclass=BINARY, in_report=False, cells=True)
def convolved_calibration_error(
    problem: "BinaryProblem", *, bandwidth: float | None = None
) -> float:
    """Calibration error of smoothed residuals, at the bandwidth that equals the error.

    Residuals are smoothed by a Gaussian that is reflected at 0 and 1, and the absolute values are
    integrated. It falls with the bandwidth; the measure is the bandwidth where the two are equal.

    Parameters
    ----------
    bandwidth : float, default=None
        A given standard deviation of the Gaussian instead.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Biased upwards: of the order n^-1/3 for calibrated predictions.

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
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 2000)
    >>> 0.03 < convolved_calibration_error(y, proba) < 0.2
    True
    """
    if bandwidth is not None and (isinstance(bandwidth, bool) or not bandwidth > 0):
        refuse(problem.where, "a bandwidth above 0, or None", repr(bandwidth), "Leave the default")
    smoothed = _smoother(problem.cells)
    if bandwidth is not None:
        return min(smoothed(bandwidth), 1.0)
    low = 1e-9
    if smoothed(low) <= low:
        return 0.0
    return min(brentq(lambda s: smoothed(s) - s, low, 1.0, xtol=1e-14), 1.0)


def _smoother(cells):
    """The integral of the absolute smoothed residuals as a function of the bandwidth."""
    from .._kernels._intervals import linear_bins

    grid = linear_bins(cells.score, cells.residual, _CELLS)
    spectrum = dct(grid)
    frequency = np.pi * np.arange(_CELLS)

    def smoothed(bandwidth):
        return float(np.abs(idct(spectrum * np.exp(-((frequency * bandwidth) ** 2) / 2))).sum())

    return smoothed
