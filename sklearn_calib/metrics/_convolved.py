"""The convolved calibration error ("smECE")."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import dct, idct

from .._argument_checks import is_real_number
from ..exceptions import invalid_input
from ._measure import BinaryOptions, binary_measure

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import BinaryProblem

# The bandwidth that is found is rarely below 20 of these cells.
GRID_CELLS = 1 << 14
# Frequencies above this number over the bandwidth are damped to 1e-16; the grid of the
# inverse transform has eight points for each of the others.
_MAX_FREQUENCY_TIMES_BANDWIDTH = 2.75
# The search ends at a step of the log-bandwidth this small: the error that remains is of
# the order of its square.
LOG_BANDWIDTH_TOLERANCE = 1e-7
MIN_BANDWIDTH = 1e-9
FIRST_BANDWIDTH = 0.02
# At larger bandwidths all frequencies but the lowest are damped to 0, as at this one.
_MAX_BANDWIDTH = 10.0
#: The logarithm of what each frequency is damped by, at the bandwidth 1.
_DAMPING_EXPONENTS = -((np.pi * np.arange(GRID_CELLS)) ** 2) / 2


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def convolved_calibration_error(
    problem: "BinaryProblem",
    *,
    bandwidth: float | None = None,
    **shared: "Unpack[BinaryOptions]",
) -> float:
    """Compute the error of smoothed residuals, at the bandwidth that equals the error itself.

    Residuals are smoothed by a Gaussian that is reflected at 0 and 1, and the absolute
    values are integrated. The integral falls as the bandwidth grows; the measure is the
    bandwidth at which the two are equal.

    Parameters
    ----------
    {shared_parameters}
    bandwidth : float, default=None
        A given standard deviation of the Gaussian instead.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Biased upwards: of the order n^-1/3 for calibrated
        predictions.

    Notes
    -----
    Smoothing with reflection is the heat equation with insulated ends, diagonal in the
    basis of the cosine transform: one transform, and one back for each bandwidth tried.
    The grid has 16,384 cells; residuals are shared between the two nearest. Cost: O(n),
    and some milliseconds.

    References
    ----------
    Blasiok, Nakkiran (2023), "Smooth ECE: principled reliability diagrams via kernel
    smoothing". Hu, Jambulapati, Tian, Yang (2024), definition 9.

    Examples
    --------
    >>> from sklearn_calib.metrics import convolved_calibration_error
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 2000)
    >>> 0.03 < convolved_calibration_error(y, proba) < 0.2
    True
    """
    if bandwidth is not None and (not is_real_number(bandwidth) or not bandwidth > 0):
        raise invalid_input(
            expected="a bandwidth above 0, or None",
            got=repr(bandwidth),
            hint="Leave the default",
        )
    compute_error = _make_error_function(problem)
    if bandwidth is not None:
        bandwidth = np.clip(bandwidth, MIN_BANDWIDTH, _MAX_BANDWIDTH)
        return min(compute_error(bandwidth), 1.0)
    return min(_find_bandwidth_equal_to_error(compute_error), 1.0)


def _find_bandwidth_equal_to_error(compute_error):
    """Find the bandwidth that equals its error; return 0 if it is below `MIN_BANDWIDTH`.

    The error decreases in the bandwidth. The root of log error - log bandwidth is found
    by secants; its slope is at most -1, and -1.5 for noise.
    """
    u = np.log(FIRST_BANDWIDTH)
    slope = 1.5
    low = np.log(MIN_BANDWIDTH)
    high = 0.0
    previous = None
    for _ in range(200):
        error = max(compute_error(np.exp(u)), np.finfo(float).tiny)
        gap = np.log(error) - u
        if previous is not None:
            # The error decreases in the bandwidth, so the gap falls at least as fast as
            # u rises: its slope is at most -1, which limits the step.
            last_u, last_gap = previous
            slope = max((last_gap - gap) / (u - last_u), 1.0)
        # A secant step on the logarithms, replaced by bisection outside the bracket.
        next_u = u + gap / slope
        if abs(next_u - u) < LOG_BANDWIDTH_TOLERANCE:
            return float(np.exp(next_u))
        if gap > 0:
            low = u
        else:
            high = u
        if high - np.log(MIN_BANDWIDTH) < LOG_BANDWIDTH_TOLERANCE:
            return 0.0
        previous = u, gap
        u = next_u if low < next_u < high else (low + high) / 2
    return float(np.exp(u))


def _make_error_function(problem):
    """Return the integral of absolute smoothed residuals as a function of the bandwidth.

    A Gaussian leaves few frequencies, so few points of the grid are enough. A sum over
    points differs from the integral of an absolute value at its kinks: between values a
    and -b it is too large by a b / (a + b) for the two triangles, and too small by
    (a + b) / 6 for the curvature.
    """
    from .._kernels._score_sums import compute_linearly_binned_residuals

    # Sums over rows need neither an order nor cells.
    residual = problem.weight * (problem.hit - problem.score)
    # The cosine transform convolves with reflection at 0 and 1, as in definition 9 of
    # Hu, Jambulapati, Tian, Yang (2024).
    binned_residual = compute_linearly_binned_residuals(
        problem.score, residual, GRID_CELLS
    )
    spectrum = dct(binned_residual / problem.weight.sum())

    def compute_smoothed_error(bandwidth):
        """Return the integral for one bandwidth."""
        # A power of 2, for which the transform is fast.
        n_needed = 1 << int(
            np.ceil(np.log2(8 * _MAX_FREQUENCY_TIMES_BANDWIDTH / bandwidth))
        )
        n_points = min(GRID_CELLS, max(64, n_needed))
        # A Gaussian damps high frequencies to nothing, so a short inverse transform of the
        # others is complete.
        low_frequencies = slice(
            min(n_points, int(_MAX_FREQUENCY_TIMES_BANDWIDTH / bandwidth) + 1)
        )
        damping = np.exp(_DAMPING_EXPONENTS[low_frequencies] * bandwidth**2)
        values = idct(spectrum[low_frequencies] * damping, n=n_points)
        magnitude = np.abs(values)
        # The trapezoid rule for |x|, corrected where the values change their sign
        # between two points.
        changes = np.flatnonzero(values[1:] * values[:-1] < 0)
        left = magnitude[changes]
        right = magnitude[changes + 1]
        gap = left + right
        correction = (gap / 6 - left * right / gap).sum()
        return float(magnitude.sum() + correction)

    return compute_smoothed_error
