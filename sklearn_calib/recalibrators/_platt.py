"""Platt scaling."""

from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._log_odds import compute_map_input
from .._kernels._logistic import (
    compute_platt_targets,
    find_two_pseudo_row_log_odds,
    fit_logistic,
    threshold_separates,
)
from .._simplex_array import compute_log_odds, convert_log_odds
from .._sklearn_compat import NONNEGATIVE_REAL
from ._base import (
    Capabilities,
    Recalibrator,
    smooth_targets_if_separable,
    warn_if_not_converged,
)


class PlattScaling(Recalibrator):
    """Logistic regression on the score: P = sigmoid(slope * score + intercept).

    Its two parameters correct over- or underconfidence and a shifted base rate. More
    than two classes are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    scale : {"logit", "proba"}, default="logit"
        The score is the log-odds of the probability, so that slope 1 and intercept 0
        change nothing, or the probability itself, the convention of scikit-learn's
        ``CalibratedClassifierCV(method="sigmoid")`` for estimators without
        ``decision_function``. Neither wins always.
    smooth_targets : bool, default=True
        Replace the labels by (N+ + 1)/(N+ + 2) and 1/(N- + 2), as Platt does. It keeps
        the slope finite when one threshold separates the classes.
    prior_weight : float, default=0.0
        Weight, at least 0 and on the scale of the sample weights, of each of two
        invented rows on which the probabilities are right. They stand at 1/4 and 3/4;
        nearer to each other if the log-odds of the scores have a standard deviation
        below 1, and around the end of the scores next to 1/2 if all are on one side
        of it. They draw the map towards changing nothing, as far as few calibration
        rows leave it open, and keep the slope finite: above 0 the labels are not
        smoothed.

    Attributes
    ----------
    slope_, intercept_ : float
        One-vs-rest fits keep theirs in ``one_vs_rest_[c]``.
    one_vs_rest_ : list of PlattScaling
        More than two classes only.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        With ``smooth_targets=False`` and no `prior_weight`, when a threshold separates
        the classes or one is missing, the maximum likelihood is infinite; Platt's
        targets are used instead. Or the fit could not reach the optimum within 1e-9
        nats.

    Notes
    -----
    Newton's method; cost O(n) an iteration, about 6 iterations. The slope can be
    negative when scores and labels are at odds: the map is monotone, in the fitted
    direction. The smoothed targets take sample weights for numbers of rows, so their
    sum matters.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines", section 2.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> p, y = [0.9, 0.8, 0.7, 0.9, 0.6, 0.8, 0.1], ["no", "yes", "no", "yes", "no", "yes", "no"]
    >>> platt = PlattScaling().fit(p, y, classes=["no", "yes"])
    >>> bool(platt.slope_ > 0), platt.predict([0.95])
    (True, array(['yes'], dtype='<U3'))
    """

    slope_: float
    intercept_: float

    capabilities = Capabilities(
        array_api=True,
        monotone=True,
        continuous=True,
        needs_positive_proba=True,
        weights="counts",
    )
    _parameter_constraints: ClassVar = {
        "scale": [StrOptions({"logit", "proba"})],
        "smooth_targets": ["boolean"],
        "prior_weight": [NONNEGATIVE_REAL],
    }

    def __init__(
        self,
        scale: Literal["logit", "proba"] = "logit",
        *,
        smooth_targets: bool = True,
        prior_weight: float = 0.0,
    ) -> None:
        self.scale = scale
        self.smooth_targets = smooth_targets
        self.prior_weight = prior_weight

    def _fit(self, proba, codes, weight):
        """Fit a line to the scores by logistic regression."""
        score = compute_map_input(proba, self.scale)
        if self.prior_weight > 0:
            z = find_two_pseudo_row_log_odds(compute_log_odds(proba), weight)
            right = convert_log_odds(z)
            score = np.append(score, compute_map_input(right, self.scale))
            # The pseudo rows are labelled with their own probabilities, which draws the
            # line to the identity.
            target = np.append(codes.astype(float), np.asarray(right)[:, 1])
            weight = np.append(weight, np.full(2, self.prior_weight))
        elif self.smooth_targets:
            target = compute_platt_targets(codes, weight)
        else:
            separates = "a threshold" if threshold_separates(score, codes) else ""
            target = smooth_targets_if_separable(
                "PlattScaling", separates, codes, weight
            )
        # Centring within the scores keeps the columns well conditioned if all scores
        # are far from 0.
        centre = np.clip(0.0, score.min(), score.max())
        features = np.stack([np.ones_like(score), score - centre]).T
        fit = fit_logistic(features, target, weight)
        warn_if_not_converged("PlattScaling", fit)
        self.slope_ = float(fit.coef[1])
        self.intercept_ = float(fit.coef[0] - fit.coef[1] * centre)

    def _make_map(self):
        coef = [self.intercept_, self.slope_]
        return maps.SigmoidPoly(input=self.scale, coef=coef)
