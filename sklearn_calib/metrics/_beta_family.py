"""Losses of two classes that weigh the thresholds of decisions by a beta density."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, exprel, log_expit

from .._simplex_array import LARGEST_LOG_LOSS, compute_log_odds, log_proba
from .._typing import FloatArray
from ..exceptions import invalid_input
from ._loss import ProperLoss

# Beyond these log-odds c or 1 - c counts as 1.
_MAX_ABS_LOG_ODDS = LARGEST_LOG_LOSS
_QUADRATURE_NODES, _QUADRATURE_WEIGHTS = np.polynomial.legendre.leggauss(2)
# Cells of the log-odds from -36 to 36, for parameters up to 1.
LOG_ODDS_CELLS = 8192
MAX_ALPHA_OR_BETA = 1000


@dataclass(frozen=True)
class BetaFamilyLoss(ProperLoss):
    """A proper loss for two classes that stresses the thresholds of action you choose.

    Someone who acts from a probability c of the second class on pays 1 - c for an event
    that was missed and c for a false alarm. The loss is the mean cost over all thresholds
    c, with weights w(c) = c^(alpha - 1) (1 - c)^(beta - 1).

    Parameters
    ----------
    alpha, beta : float
        Above -1. The larger alpha is beside beta, the more count large thresholds; the
        larger both are, the more the thresholds near alpha / (alpha + beta) alone.

    Raises
    ------
    ValueError
        Parameters that are not above -1 and at most 1000; predictions of another number
        of classes than two.

    Notes
    -----
    l(1, p) is the integral of (1 - c) w(c) from p to 1, l(0, p) that of c w(c) from 0
    to p. The factor B, a beta function, makes members comparable: calibrated
    predictions that are spread evenly over [0, 1] lose 1/2. ``BetaFamilyLoss(0, 0)`` is
    the log loss, ``BetaFamilyLoss(1, 1)`` three times the Brier loss, and
    ``BetaFamilyLoss(-0.5, -0.5)`` the exponential loss of boosting, sqrt((1 - p) / p),
    times 2 / pi. A true class of probability below 2.2e-16 counts as that, as in
    `log_loss`. Accuracy: 12 digits. Cost: O(n), some 1.5 microseconds a row.

    References
    ----------
    Buja, Stuetzle, Shen (2005), "Loss functions for binary class probability estimation
    and classification: structure and applications", section 11.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.decomposition import decompose_loss
    >>> from sklearn_calib.metrics import BetaFamilyLoss
    >>> loss = BetaFamilyLoss(2, 18)  # alarms from about 10 % on
    >>> loss.compute_label_losses([[0.95, 0.05], [0.5, 0.5]]).round(5).tolist()
    [[0.08806, 7.72632], [1.16643, 0.00021]]
    >>> proba, y = make_overconfident(2, 1000)
    >>> decompose_loss(y, proba, loss=loss).interval("calibration")[0] > 0
    True
    """

    alpha: float
    beta: float
    floored: bool = field(default=True, repr=False)

    name = "beta_family"
    title = "beta-family loss"
    n_classes = 2

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not -1 < value <= MAX_ALPHA_OR_BETA:
                raise invalid_input(
                    expected=f"{name} above -1, at most {MAX_ALPHA_OR_BETA}",
                    got=repr(value),
                    hint="The log loss has alpha = beta = 0, the Brier loss 1",
                )

    @property
    def label(self) -> str:
        return f"{self.title} ({self.alpha:g}, {self.beta:g})"

    @property
    def range(self) -> tuple[float, float]:  # type: ignore[override]
        return 0.0, float(self.compute_label_losses(np.eye(2)).max())

    def compute_label_losses(self, proba: FloatArray) -> FloatArray:
        self.check_classes(np.shape(proba)[1])
        z = compute_log_odds(proba)
        min_log_odds = -_MAX_ABS_LOG_ODDS if self.floored else -np.inf
        # The loss of label 0 is that of label 1 with both classes exchanged.
        loss_of_zero = _integrate_cost_above(
            np.maximum(-z, min_log_odds), self.beta, self.alpha
        )
        loss_of_one = _integrate_cost_above(
            np.maximum(z, min_log_odds), self.alpha, self.beta
        )
        return np.column_stack([loss_of_zero, loss_of_one])

    def slope(self, proba: FloatArray, rate: FloatArray) -> FloatArray:
        unit = betaln(self.alpha + 1, self.beta + 1)
        # The derivative of the loss in p is the weight function at p times p - y.
        weight = np.exp(log_proba(proba) @ [self.beta, self.alpha] - unit)
        weight *= rate[:, 1] - rate[:, 0]
        return np.asarray(proba)[:, ::-1] * weight[:, None] * [1, -1]

    def get_undecided_prediction(self, n_classes: int) -> FloatArray:
        return np.array(_find_equal_loss_proba_pair(self))

    def without_floor(self) -> "BetaFamilyLoss":
        return BetaFamilyLoss(self.alpha, self.beta, False)


@lru_cache(maxsize=64)
def _find_equal_loss_proba_pair(loss):
    """Return the prediction for which both labels cost the same, as a tuple."""

    def compute_loss_gap(z):
        (losses,) = loss.compute_label_losses(_make_two_class_proba_row(z))
        return float(losses[1] - losses[0])

    z = brentq(
        compute_loss_gap,
        -_MAX_ABS_LOG_ODDS,
        _MAX_ABS_LOG_ODDS,
        xtol=1e-14,
        rtol=1e-14,
    )
    return tuple(_make_two_class_proba_row(z)[0])


def _make_two_class_proba_row(z):
    return np.exp(log_expit([[-z, z]]))


def _compute_log_odds_cost_density(log_odds, a, b):
    log_density = (
        (a + b + 1) * log_expit(log_odds) - (b + 1) * log_odds - betaln(a + 1, b + 1)
    )
    return np.exp(log_density)


def _integrate_cost_above(z, a, b):
    """Integrate (1 - c) w(c) from c = expit(z) to 1, over log-odds, where it is smooth."""
    # The incomplete beta function of scipy loses digits for parameters near -1, and
    # calls of it are slow; the table is made once per loss.
    step, integral_from = _tabulate_step_and_tail_integrals(a, b)
    clipped = np.clip(z, -_MAX_ABS_LOG_ODDS, _MAX_ABS_LOG_ODDS)
    edge = np.minimum(
        ((clipped + _MAX_ABS_LOG_ODDS) / step).astype(np.intp) + 1,
        len(integral_from) - 1,
    )
    # From the score to the next edge the integral is computed by two Gauss nodes, and
    # from there on it is in the table.
    half = (edge * step - _MAX_ABS_LOG_ODDS - clipped) / 2
    mean_density = 0.0
    for node, node_weight in zip(_QUADRATURE_NODES, _QUADRATURE_WEIGHTS, strict=True):
        density = _compute_log_odds_cost_density(clipped + half * (1 + node), a, b)
        mean_density += node_weight * density
    # Before the first edge the density is proportional to exp(a t), beyond the last one
    # to exp(-(b + 1) t).
    distance_before = np.maximum(-_MAX_ABS_LOG_ODDS - z, 0.0)
    distance_beyond = np.maximum(z - _MAX_ABS_LOG_ODDS, 0.0)
    tail_before = (
        distance_before
        * _compute_log_odds_cost_density(-_MAX_ABS_LOG_ODDS, a, b)
        * exprel(-a * distance_before)
    )
    tail_factor = np.exp(-(b + 1) * distance_beyond)
    return integral_from[edge] * tail_factor + half * mean_density + tail_before


@lru_cache(maxsize=8)
def _tabulate_step_and_tail_integrals(a, b):
    """Return the width of cells of log-odds, and the integral from each edge to infinity."""
    # The density is narrower for larger parameters, by the root of these.
    n_cells = LOG_ODDS_CELLS * int(np.ceil(np.sqrt(max(a, b, 1.0))))
    edges, step = np.linspace(
        -_MAX_ABS_LOG_ODDS, _MAX_ABS_LOG_ODDS, n_cells + 1, retstep=True
    )
    nodes = edges[:-1, None] + step / 2 * (1 + _QUADRATURE_NODES)
    cell_integrals = (
        _compute_log_odds_cost_density(nodes, a, b) @ _QUADRATURE_WEIGHTS * step / 2
    )
    tail = _compute_log_odds_cost_density(_MAX_ABS_LOG_ODDS, a, b) / (b + 1)
    # The sum runs from infinity, so that small integrals are added first.
    integrals = np.append(cell_integrals, tail)[::-1].cumsum()
    return step, integrals[::-1]
