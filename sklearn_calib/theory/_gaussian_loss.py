"""Exact expected losses of linear classifiers of two Gaussian classes."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, ndtr

from .._simplex import two_classes_of_margin
from .._typing import FloatArray
from ..exceptions import is_number, refuse
from ..metrics import LossLike, get_loss

#: A loss, or a function (p, q) -> its expected value for p where q is true.
ExpectedLoss: TypeAlias = LossLike | Callable[[Any, Any], Any]
_REACH = 9.0  # standard deviations: 2e-19 of the mass lies beyond
_PANELS, _ORDER = 24, 20  # of the rule for expectations


class GaussianLoss(NamedTuple):
    """The exact expected loss of a linear classifier of two Gaussian classes, and its parts."""

    risk: float
    calibration: float
    refinement: float
    error_rate: float


_FAR = 1e50  # of squares and quotients that float64 holds


def gaussian_loss(inner: float, norm: float, loss: ExpectedLoss = "log") -> GaussianLoss:
    """The exact loss of the classifier expit(w' x) on two balanced Gaussian classes.

    It depends on the weights w by two numbers only.

    Parameters
    ----------
    inner : float
        w' S w_best, with the covariance S and the best weights w_best = 2 S^-1 m: twice w' m.
    norm : float
        The square root of w' S w, above 0.
    loss : {"log", "brier", "spherical"}, ProperLoss or callable, default="log"
        As in `decompose_loss`; a probability near 0 counts as what it is. Or a callable (p, q) ->
        the expected loss of predicting p where the true probability is q, on arrays.

    Returns
    -------
    parts : GaussianLoss
        Named tuple (risk, calibration, refinement, error_rate): floats.

    Raises
    ------
    ValueError
        A norm that is not above 0, or an unknown loss.

    Notes
    -----
    The logit z is a mixture of two normals with means +-inner/2 and variance norm^2, and the true
    probability given z is expit(z inner / norm^2): the calibration part vanishes for weights
    multiplied by inner / norm^2, which leaves refinement and error rate unchanged. The mixture
    is needed for losses that treat the classes differently. Integrals by Gauss-Legendre
    quadrature, to some 1e-15; cost: below a millisecond.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), propositions 6.1 (corrected: the mixture) and 6.2.

    Examples
    --------
    >>> from sklearn_calib.theory import gaussian_loss
    >>> sure = gaussian_loss(inner=2.0, norm=4.0)  # overconfident: inner / norm^2 = 1/8
    >>> calm = gaussian_loss(inner=2.0 / 8, norm=4.0 / 8)
    >>> round(sure.calibration, 3), abs(round(calm.calibration, 3))
    (0.632, 0.0)
    >>> abs(sure.refinement - calm.refinement) < 1e-12
    True
    """
    where = "gaussian_loss"
    numbers = is_number(inner) and is_number(norm)
    if not (numbers and abs(inner) <= _FAR and 1 / _FAR <= norm <= _FAR):
        bounds = f"within {_FAR:g} a finite inner and a norm above 0"
        refuse(where, bounds, f"{inner!r}, {norm!r}", "Check the weights")
    step, weight = normal_rule()
    z = np.concatenate([sign * inner / 2 + norm * step for sign in (-1, 1)])
    weight = np.concatenate([weight, weight]) / 2
    slope = inner / norm**2
    q = expit(slope * z)
    if callable(loss):
        risk, least = loss(expit(z), q), loss(q, q)
    else:
        rule, truth = get_loss(loss, where, 2).without_floor(), np.column_stack([1 - q, q])
        risk, least = (rule.expected(two_classes_of_margin(m), truth) for m in (z, slope * z))
    risk, refinement = float(weight @ risk), float(weight @ least)
    return GaussianLoss(risk, risk - refinement, refinement, float(ndtr(-inner / norm / 2)))


def normal_rule() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of expectations under the standard normal distribution."""
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    edges = np.linspace(-_REACH, _REACH, _PANELS + 1)
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half * (x + 1)).ravel()
    weights = (half * w).ravel() * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    return nodes, weights / weights.sum()
