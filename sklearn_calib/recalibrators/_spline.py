"""Natural cubic splines on the log-odds."""

from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils._param_validation import Interval

from .. import maps
from .._kernels._log_odds import round_to_36_bits
from .._simplex_array import compute_log_odds
from .._sklearn_compat import NONNEGATIVE_REAL
from .._typing import FloatArray
from ._base import Capabilities, Recalibrator

# Log-odds are clipped to this.
MAX_ABS_LOG_ODDS = 30.0
MAX_SPLINE_CELLS = 2000
_MAX_PENALTY_SEARCH_CELLS = 400


class SplineCalibration(Recalibrator):
    """A smooth curve on the log-odds, whose smoothness is chosen by leave-one-out.

    A natural cubic spline: log-odds = f(log-odds of the score). The integral of f''^2
    is penalised; the penalty, from that of a straight line, which is Platt scaling, to
    nearly none, is the one with the smallest approximate leave-one-out log loss. Some
    invented rows on which the score is right draw the curve towards changing nothing.
    Among the best methods for two classes from some thousand calibration rows on. More
    than two classes are handled one-vs-rest and the rows divided by their sums;
    `StructuredMatrixScaling` before it does better, see the example.

    Parameters
    ----------
    n_knots : int, default=20
        Knots, from 3 to 500, at quantiles of the scores; nearly equal ones are merged.
    prior : float, default=20.0
        Weight of all invented rows together, at least 0 and on the scale of the sample
        weights. They lie evenly over the range of the scores.
    monotone : bool, default=True
        Make the curve rise: isotonic regression of its values at the knots, and slopes
        there that keep it rising between them. Without it every fourth curve falls
        somewhere.

    Attributes
    ----------
    knots_ : ndarray of shape (n_knots,)
        In log-odds of the score.
    values_, slopes_ : ndarray of shape (n_knots,)
        Recalibrated log-odds at the knots and their derivative. Between knots the curve
        is the cubic with these values and slopes, outside it goes on straight.
    domain_ : ndarray of shape (2,)
        The smallest and the largest log-odds of the calibration scores. Beyond them,
        and beyond 30, the result is constant.
    penalty_ : float
        Factor of half the integral of f''^2 that leave-one-out chose; infinite for a
        straight line.
    edf_ : float
        Effective degrees of freedom of the curve before it is made to rise: about 2 for
        a straight line.
    loo_ : float
        Its approximate leave-one-out log loss, in nats.
    one_vs_rest_ : list of SplineCalibration
        More than two classes only.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Minimises the sum of the log losses + penalty / 2 times the integral of f''^2 + half
    the squared distance of intercept and slope of f's straight part from 0 and 1, by
    Newton's method. The slope counts times the standard deviation of the scores if
    that is below 1, so that scores squeezed together may be spread again. More than
    2000 distinct scores are pooled to as many cells of equal mass, to 400 for the
    choice among the 18 penalties. Sample weights count rows: multiplied by a constant
    above 1 they let the fit depart further from no change. Lucena's program takes
    random knots, one fold and no weights. Cost: O(n log n), a hundredth of a second for
    thousand rows and half a second for a million.

    References
    ----------
    Lucena (2018), "Spline-based probability calibration". Green, Silverman (1994),
    "Nonparametric regression and generalized linear models", sections 2.1 and 5.3.
    Fritsch, Carlson (1980), "Monotone piecewise cubic interpolation", section 3.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import SplineCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> spline = SplineCalibration().fit(proba, y)
    >>> bool(0 < spline.predict_proba([0.999])[0, 1] < 0.999)
    True

    Several classes: first what moves probability between classes, then the shape of
    each.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_calib.recalibrators import StructuredMatrixScaling
    >>> proba, y = make_overconfident(4, 500)
    >>> chain = make_pipeline(StructuredMatrixScaling(), SplineCalibration()).fit(proba, y)
    >>> chain.predict_proba(proba).shape
    (500, 4)
    """

    knots_: FloatArray
    values_: FloatArray
    slopes_: FloatArray
    domain_: FloatArray
    penalty_: float
    edf_: float
    loo_: float

    capabilities = Capabilities(
        monotone=True,
        increasing=True,
        continuous=True,
        nonparametric_shape=True,
        needs_positive_proba=True,
        weights="counts",
        cost="O(k n log n)",
    )
    _parameter_constraints: ClassVar = {
        "n_knots": [Interval(Integral, 3, 500, closed="both")],
        "prior": [NONNEGATIVE_REAL],
        "monotone": ["boolean"],
    }

    def __init__(
        self,
        n_knots: int = 20,
        *,
        prior: float = 20.0,
        monotone: bool = True,
    ) -> None:
        self.n_knots = n_knots
        self.prior = prior
        self.monotone = monotone

    def _fit(self, proba, codes, weight):
        self._fit_log_odds_and_set_attributes(compute_log_odds(proba), codes, weight)

    def _fit_log_odds_and_set_attributes(self, score, codes, weight):
        """Fit a smoothing spline to cells of log-odds; leave-one-out chooses the penalty."""
        from .._kernels import _spline as kernel

        score = np.clip(score, -MAX_ABS_LOG_ODDS, MAX_ABS_LOG_ODDS)
        self.domain_ = np.array([score.min(), score.max()])
        # Rows that are equal up to rounding become ties.
        score = round_to_36_bits(score, 0)
        spread = np.average(
            (score - np.average(score, weights=weight)) ** 2, weights=weight
        )
        cells = kernel.coarsen_cells(
            kernel.make_spline_cells(score, codes, weight), MAX_SPLINE_CELLS
        )
        # Fewer cells are enough to compare penalties; the final fit uses all of them.
        few = kernel.coarsen_cells(cells, _MAX_PENALTY_SEARCH_CELLS)
        same = few is cells
        cells = kernel.add_prior_points(cells, self.prior)
        few = cells if same else kernel.add_prior_points(few, self.prior)
        knots = kernel.choose_knots(cells.x, cells.mass.sum(axis=0), self.n_knots)
        pull = np.array([1.0, min(1.0, spread)])
        fit = kernel.fit_spline(cells, knots, identity_ridge=pull, coarse_cells=few)
        curve = fit.curve
        if self.monotone:
            curve = kernel.make_increasing(curve, cells, isotonic_regression)
        self.knots_, self.values_, self.slopes_ = curve
        self.penalty_ = fit.penalty
        self.edf_ = fit.edf
        self.loo_ = fit.leave_one_out_loss

    def _make_map(self):
        return maps.PiecewiseCubic(
            input="logit",
            link="sigmoid",
            domain=self.domain_,
            knots=self.knots_,
            values=self.values_,
            slopes=self.slopes_,
        )
