"""Refinement as measures with scorers."""

from typing import TYPE_CHECKING

from .._typing import CV
from ..metrics import BrierLoss, LogLoss, SharedOptions, measure
from ._decompose import _compute_refinement

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..metrics import Predictions


@measure(in_report=False, poolable=True)
def temperature_refinement_log_loss(
    predictions: "Predictions",
    *,
    cv: CV = None,
    label_smoothing: bool = False,
    **shared: "Unpack[SharedOptions]",
) -> float:
    """Compute the log loss after temperature scaling of the predictions.

    Parameters
    ----------
    {shared_parameters}
    cv, label_smoothing
        As in `refinement_error`.

    Returns
    -------
    error : float
        At least 0, in nats; at most log k. In sample too low by about 1 / (2 n), for
        every model. Cost: O(n k) per pass, 2 to 6 passes.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 4.

    Examples
    --------
    >>> from sklearn_calib.decomposition import temperature_refinement_log_loss
    >>> round(temperature_refinement_log_loss([0, 0, 1, 1, 1], [0.4, 0.6, 0.4, 0.6, 0.9]), 3)
    0.591
    """
    return _compute_refinement(predictions, LogLoss(), cv=cv, smooth=label_smoothing)


@measure(range=(0.0, 2.0), in_report=False, poolable=True)
def temperature_refinement_brier(
    predictions: "Predictions", *, cv: CV = None, **shared: "Unpack[SharedOptions]"
) -> float:
    """Compute the Brier loss after temperature scaling (by log loss) of the predictions.

    Parameters
    ----------
    {shared_parameters}
    cv : int, splitter or iterable, default=None
        As in `refinement_error`.

    Returns
    -------
    error : float
        In [0, 1] for two classes, [0, 2] for more. Cost: O(n k) per pass, 2 to 6
        passes.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 4.

    Examples
    --------
    >>> from sklearn_calib.decomposition import temperature_refinement_brier
    >>> round(temperature_refinement_brier([0, 0, 1, 1, 1], [0.4, 0.6, 0.4, 0.6, 0.9]), 3)
    0.211
    """
    return _compute_refinement(predictions, BrierLoss(), cv=cv)


@measure(in_report=False, poolable=True)
def isotonic_refinement_log_loss(
    predictions: "Predictions", *, cv: CV = None, **shared: "Unpack[SharedOptions]"
) -> float:
    """Compute the log loss after isotonic calibration of the predictions.

    Parameters
    ----------
    {shared_parameters}
    cv : int, splitter or iterable, default=None
        As in `refinement_error`.

    Returns
    -------
    error : float
        At least 0, in nats. In sample too low (by 0.07 at n = 100, 0.006 at n = 6400);
        with `cv`, a label in a block of the other class costs 36. Cost: O(k n log n).

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 4. Dimitriadis, Gneiting, Jordan
    (2021).

    Examples
    --------
    >>> from sklearn_calib.decomposition import isotonic_refinement_log_loss
    >>> round(isotonic_refinement_log_loss([0, 0, 1, 1, 1], [0.4, 0.6, 0.4, 0.6, 0.9]), 3)
    0.555
    """
    return _compute_refinement(predictions, LogLoss(), "isotonic", cv)


@measure(range=(0.0, 2.0), in_report=False, poolable=True)
def isotonic_refinement_brier(
    predictions: "Predictions", *, cv: CV = None, **shared: "Unpack[SharedOptions]"
) -> float:
    """Compute the Brier loss after isotonic calibration of the predictions.

    Parameters
    ----------
    {shared_parameters}
    cv : int, splitter or iterable, default=None
        As in `refinement_error`.

    Returns
    -------
    error : float
        In [0, 1] for two classes, [0, 2] for more; in sample too low. Cost: O(k n log
        n).

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), "Stable reliability diagrams for probabilistic
    classifiers": the loss less MCB.

    Examples
    --------
    >>> from sklearn_calib.decomposition import isotonic_refinement_brier
    >>> round(isotonic_refinement_brier([0, 0, 1, 1, 1], [0.4, 0.6, 0.4, 0.6, 0.9]), 3)
    0.2
    """
    return _compute_refinement(predictions, BrierLoss(), "isotonic", cv)
