"""The kernel calibration error."""

import numpy as np

from ..exceptions import refuse
from ._base import binary_problems, canonical_case, metric


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"), in_report=False)
def kernel_calibration_error(
    y_true,
    y_proba,
    *,
    kernel="laplace",
    bandwidth=1.0,
    multiclass="auto",
    sample_weight=None,
    labels=None,
    pos_label=None,
):
    """Norm of the mean residual in the Hilbert space of the Laplace kernel, exactly.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels; one dimension is the probability
        of the second class.
    kernel : {"laplace"}, default="laplace"
        exp(-abs(p - q) / bandwidth). With it the error is 0 only for calibrated predictions, and
        polynomially related to the distance to calibration; not so with the Gaussian kernel.
    bandwidth : float, default=1.0
        Above 0.
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
        In [0, 1], perfect 0: sqrt(sum_ij r_i r_j k(p_i, p_j)) of the weighted residuals. Includes
        the terms i = j and is of the order n^-1/2 for calibrated predictions.

    Raises
    ------
    ValueError
        Unknown option, or input that the door refuses.

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

    where = "kernel_calibration_error"
    if kernel != "laplace":
        refuse(where, "kernel 'laplace'", repr(kernel), "Leave the default")
    if isinstance(bandwidth, bool) or not (np.isfinite(bandwidth) and bandwidth > 0):
        refuse(where, "a finite bandwidth above 0", repr(bandwidth), "Leave the default")
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    error = 0.0
    for share, score, hit, weight, _ in binary_problems(case, multiclass, where):
        order = np.argsort(score)
        residual = ((hit - score) * (weight / weight.sum()))[order]
        square = laplace_square(score[order], residual, float(bandwidth))
        error += share * np.sqrt(max(square, 0.0))
    return float(min(error, 1.0))
