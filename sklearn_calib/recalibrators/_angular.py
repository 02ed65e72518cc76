"""Angular calibration."""

from numbers import Real

import numpy as np
from scipy.optimize import minimize
from sklearn.utils._param_validation import Interval, StrOptions

from .._kernels._expected_link import LINKS, numerical
from .._simplex import log_odds
from ..exceptions import refuse
from ._base import Capabilities, Recalibrator, two_columns

_STEEPEST = 100.0  # links steeper than that are steps
_TINY = 1e-300
_FEW = 1000  # points that the start is chosen by


class AngularCalibration(Recalibrator):
    """The expected link given the score of a linear classifier, by the angle to the truth.

    Let P(y = 1 | x) = link(slope * t + intercept) with t = w*'x of unit variance, and u = w'x the
    score of an estimated w. For Gaussian rows, P(y = 1 | u) is the mean of
    link(slope * (cos(theta) s + sin(theta) Z) + intercept) over Z ~ N(0, 1), where
    s = (u - center) / norm and theta is the angle between w and w*: the worse w, the nearer to the
    base rate. Whatever is not given is fitted by maximum likelihood. Two classes; more are handled
    one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    cos_theta : float, default=None
        Cosine of the angle between the estimated and the true coefficients in the norm of the
        covariance, from -1 to 1. Fitted from 0 to 1.
    norm, center : float, default=None
        Standard deviation, above 0, and mean of the score (log-odds) over new rows; by default
        those of the calibration rows.
    link : {"logit", "probit", "clipped_relu"} or callable, default="logit"
        The function from the true score to the probability, rising: the logistic, the normal
        distribution function, min(max(t, 0), 1), or any function of an array.
    link_slope, link_intercept : float, default=None
        The slope, above 0, and the intercept within the link. 1 and 0 are no defaults: a wrong
        slope is worse than no calibration.

    Attributes
    ----------
    cos_theta_, theta_, norm_, center_, link_slope_, link_intercept_ : float
        The angle in radians. One-vs-rest fits keep theirs in ``one_vs_rest_[c]``. Where cosine and
        slope are both fitted only their product is well determined.
    platt_equivalent_ : tuple of float
        (A, B) such that the result is link(slope * (A * (u - center) + B) + intercept): exact for
        "probit", within 0.02 for "logit", not defined for other links.
    one_vs_rest_ : list of AngularCalibration
        More than two classes only.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        A callable link that leaves [0, 1].

    Notes
    -----
    The mean over Z has a closed form for "probit" and "clipped_relu" and is computed to 1e-12 by
    fixed nodes for "logit"; other links are integrated numerically, to some 1e-5 where they have
    kinks. Cost: O(n) an iteration. `AngularCalibratedClassifier` finds the angle without labels
    beyond those of the training.

    References
    ----------
    Li, Sur (2025), "Optimal and provable calibration in high-dimensional binary classification:
    angular calibration and Platt scaling", equations 3 and 9.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib import canonical_proba
    >>> from sklearn_calib.recalibrators import AngularCalibration
    >>> scores = canonical_proba(np.array([-4.0, 0.0, 4.0]), kind="logits")
    >>> known = AngularCalibration(0.5, 2.0, 0.0, link_slope=3.0, link_intercept=0.0)
    >>> known.fit(scores, [0, 1, 1]).predict_proba(scores)[:, 1].round(3)
    array([0.17, 0.5 , 0.83])
    """

    capabilities = Capabilities(monotone=True, continuous=True, takes_logarithm=True)
    _parameter_constraints: dict = {  # noqa: RUF012
        "cos_theta": [Interval(Real, -1, 1, closed="both"), None],
        "norm": [Interval(Real, 0, None, closed="neither"), None],
        "center": [Interval(Real, None, None, closed="neither"), None],
        "link": [StrOptions(set(LINKS)), callable],
        "link_slope": [Interval(Real, 0, None, closed="neither"), None],
        "link_intercept": [Interval(Real, None, None, closed="neither"), None],
    }

    def __init__(
        self,
        cos_theta=None,
        norm=None,
        center=None,
        *,
        link="logit",
        link_slope=None,
        link_intercept=None,
    ):
        self.cos_theta = cos_theta
        self.norm = norm
        self.center = center
        self.link = link
        self.link_slope = link_slope
        self.link_intercept = link_intercept

    def _fit(self, proba, codes, weight):
        u = log_odds(proba)
        share = weight / weight.sum()
        self.center_ = float(share @ u) if self.center is None else float(self.center)
        self.norm_ = self.norm
        if self.norm is None:
            self.norm_ = float(np.sqrt(share @ (u - self.center_) ** 2))
        if not self.norm_ > 0:
            self.norm_ = 1.0  # all scores are equal
        s = (u - self.center_) / self.norm_
        expected = self._checked_link()
        given = (self.cos_theta, self.link_slope, self.link_intercept)
        found = _likeliest(expected, s, codes, share, *given)
        self.cos_theta_, self.link_slope_, self.link_intercept_ = map(float, found)
        self.theta_ = float(np.arccos(self.cos_theta_))

    @property
    def platt_equivalent_(self):
        """Equation 9."""
        scale = {"probit": 1.0, "logit": np.sqrt(np.pi / 8)}.get(self.link)
        if scale is None:
            raise AttributeError("AngularCalibration.platt_equivalent_ exists for probit and logit")
        a, b = scale * self.link_slope_, scale * self.link_intercept_
        shrink = 1 / np.hypot(1, a * np.sin(self.theta_))
        return float(self.cos_theta_ * shrink / self.norm_), float(b / a * (shrink - 1))

    def _predict_proba(self, proba):
        s = (log_odds(proba) - self.center_) / self.norm_
        mu = self.link_slope_ * self.cos_theta_ * s + self.link_intercept_
        value, _, _ = self._expected()(mu, self.link_slope_ * np.sin(self.theta_))
        return two_columns(np.clip(value, 0, 1))

    def _expected(self):
        return numerical(self.link) if callable(self.link) else LINKS[self.link]

    def _checked_link(self):
        if callable(self.link):
            t = np.linspace(-30, 30, 601)
            value = np.asarray(self.link(t), dtype=float)
            low, high = value.min(), value.max()
            if value.shape != t.shape or not (low >= 0 and high <= 1):
                refuse(
                    "AngularCalibration.fit",
                    "a link from any array to probabilities of its shape",
                    f"shape {value.shape} and values from {low:.3g} to {high:.3g}",
                    "Pass the mean function, say scipy.special.expit for logits",
                )
        return self._expected()


def _merged(s, yes, no):
    """Many rows as a few hundred equally wide cells, good enough to start from."""
    if len(s) <= _FEW:
        return s, yes, no
    low, high = s.min(), s.max()
    cell = np.minimum((s - low) * (_FEW / max(high - low, _TINY)), _FEW - 1).astype(np.intp)
    centres = low + (np.arange(_FEW) + 0.5) * (high - low) / _FEW
    sums = [np.bincount(cell, weights, minlength=_FEW) for weights in (yes, no)]
    return centres, *sums


def _likeliest(expected, s, codes, share, cos_theta, slope, intercept):
    """Cosine, slope and intercept, the missing ones by maximum likelihood.

    The variables are the angle, the slope and the intercept, started from the best point of a
    coarse grid. Where cosine and slope are both free, those are the coefficient of s and the
    deviation of the noise.
    """
    free = [value is None for value in (cos_theta, slope, intercept)]
    if not any(free):
        return cos_theta, slope, intercept
    known = [None if cos_theta is None else np.arccos(cos_theta), slope, intercept]
    both = free[0] and free[1]

    def split(values):
        """(mu's coefficient of s, tau, intercept) and the Jacobian of the first two."""
        if both:
            return values[0], values[1], values[2], np.eye(2)
        theta, a, b = values
        cos, sin = np.cos(theta), np.sin(theta)
        return a * cos, a * sin, b, np.array([[-a * sin, cos], [a * cos, sin]])

    def loss(free_values, s, yes, no):
        values = np.array(known, dtype=float)
        values[free] = free_values
        coefficient, tau, b, jacobian = split(values)
        p, by_mu, by_tau = expected(coefficient * s + b, max(tau, 0.0))
        hit, miss = np.maximum(p, _TINY), np.maximum(1 - p, _TINY)
        factor = no / miss - yes / hit
        by_mu = factor * by_mu
        first = np.array([by_mu @ s, factor @ by_tau]) @ jacobian
        value = -(yes @ np.log(hit) + no @ np.log(miss))
        return value, np.array([*first, by_mu.sum()])[free]

    starts = [
        [0.3, 1.0, 3.0] if both else [0.2, 0.8, 1.3],
        [0.1, 1.0, 3.0] if both else [0.5, 1.5, 4.0],
        [-2.0, -0.7, 0.0, 0.7, 2.0],
    ]
    bounds = [(0, _STEEPEST), (0, 30.0)] if both else [(0, np.pi / 2), (1e-6, _STEEPEST)]
    bounds = [
        bound for bound, missing in zip([*bounds, (None, None)], free, strict=True) if missing
    ]
    grid = np.stack(
        np.meshgrid(*[start for start, missing in zip(starts, free, strict=True) if missing])
    ).reshape(sum(free), -1)
    data = s, share * (codes == 1), share * (codes != 1)
    few = _merged(*data)
    best = min(grid.T, key=lambda point: loss(point, *few)[0])
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 500, "maxcor": 20}
    found = minimize(
        loss, best, data, method="L-BFGS-B", jac=True, bounds=bounds, options=options
    ).x
    values = np.array(known, dtype=float)
    values[free] = found
    coefficient, tau, b, _ = split(values)
    if both:
        a = max(np.hypot(coefficient, tau), 1e-12)
        return min(coefficient / a, 1.0), a, b
    return (cos_theta if cos_theta is not None else np.cos(values[0])), values[1], b
