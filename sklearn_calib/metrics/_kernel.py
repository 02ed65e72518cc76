"""The kernel calibration error."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from ..exceptions import refuse
from ._case import BINARY
from ._measure import metric

if TYPE_CHECKING:
    from . import BinaryProblem


@metric(range=(0.0, 1.0), multiclass=BINARY, in_report=False, cells=True)
def kernel_calibration_error(
    problem: "BinaryProblem", *, kernel: Literal["laplace"] = "laplace", bandwidth: float = 1.0
) -> float:
    """Norm of the mean residual in the Hilbert space of the Laplace kernel, exactly.

    Parameters
    ----------
    kernel : {"laplace"}, default="laplace"
        exp(-abs(p - q) / bandwidth). With it the error is 0 only for calibrated predictions, and
        polynomially related to the distance to calibration; not so with the Gaussian kernel.
    bandwidth : float, default=1.0
        Above 0.

    Returns
    -------
    error : float
        In [0, 1], perfect 0: sqrt(sum_ij r_i r_j k(p_i, p_j)) of the weighted residuals. Includes
        the terms i = j and is of the order n^-1/2 for calibrated predictions.

    Notes
    -----
    All pairs are summed by one recursion over the sorted scores. Cost: O(n log n).

    References
    ----------
    Kumar, Sarawagi, Jain (2018), "Trainable calibration measures for neural networks from kernel
    mean embeddings". Blasiok, Gopalan, Hu, Nakkiran (2023), section 8.

    Examples
    --------
    >>> from sklearn_calib.metrics import kernel_calibration_error
    >>> round(kernel_calibration_error([0, 1], [0.25, 0.75], bandwidth=0.5), 4)
    0.1405
    """
    from .._kernels._intervals import laplace_square

    if kernel != "laplace":
        refuse(problem.where, "kernel 'laplace'", repr(kernel), "Leave the default")
    if isinstance(bandwidth, bool) or not (np.isfinite(bandwidth) and bandwidth > 0):
        refuse(problem.where, "a finite bandwidth above 0", repr(bandwidth), "Leave the default")
    cells = problem.cells
    square = laplace_square(cells.score, cells.residual, float(bandwidth))
    return min(np.sqrt(max(square, 0.0)), 1.0)
