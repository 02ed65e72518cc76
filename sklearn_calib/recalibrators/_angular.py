"""Angular calibration."""

from itertools import compress, product
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from .. import maps
from .._kernels._expected_link import (
    SYMMETRY_CENTRE_BY_LINK,
    compute_label_log_proba_and_derivatives,
    compute_negative_and_positive_proba,
)
from .._kernels._logistic import fit_logistic, threshold_separates
from .._simplex_array import compute_log_odds
from .._sklearn_compat import POSITIVE_REAL
from .._typing import Link
from ..exceptions import invalid_input
from ._base import Capabilities, Recalibrator

# Steeper links are steps.
_MAX_LINK_SLOPE = 100.0
# More noise does not change the shape of the curve.
_MAX_NOISE_DEVIATION = 30.0
# The start is chosen by this many points.
MAX_START_SAMPLE_ROWS = 1000
# So many rows give the start, and the second derivatives, of more rows: enough for
# averages to be read from a table.
_MAX_HESSIAN_SAMPLE_ROWS = 25_000
# Also the most halvings of a step; three steps are usual.
_MAX_NEWTON_STEPS = 20
# The distance between points whose slopes are compared.
_DIFFERENCE_STEP = 1e-5
# Rounding hides a curvature below this, relative to the largest one, and a change of
# the loss below this.
_CURVATURE_TOLERANCE = 1e-12
# Log-odds with a smaller norm, relative to their mean, differ by rounding alone.
_NORM_TOLERANCE = 1e-12


class AngularCalibration(Recalibrator):
    """Calibrate a linear classifier by the angle between its coefficients and the true ones.

    Let P(y = 1 | x) = link(slope * t + intercept) with t = w*'x of unit variance, and u
    = w'x the score of an estimated w. For Gaussian rows, P(y = 1 | u) is the mean of
    link(slope * (cos(theta) s + sin(theta) Z) + intercept) over Z ~ N(0, 1), where s =
    (u - center) / norm and theta is the angle between w and w*: the worse w, the nearer
    to the base rate. Parameters that are not given are fitted by maximum likelihood.
    Two classes; more are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    cos_theta : float, default=None
        Cosine of the angle between the estimated and the true coefficients in the norm
        of the covariance, from -1 to 1. Fitted from 0 to 1.
    norm, center : float, default=None
        Standard deviation, above 0, and mean of the score (log-odds) over new rows; by
        default those of the calibration rows.
    link : {"logit", "probit", "clipped_relu"} or callable, default="logit"
        The function from the true score to the probability, rising: the logistic, the
        normal distribution function, min(max(t, 0), 1), or any function of an array.
    link_slope, link_intercept : float, default=None
        The slope, above 0, and the intercept within the link. 1 and 0 are not defaults:
        a wrong slope is worse than no calibration.

    Attributes
    ----------
    cos_theta_, theta_, norm_, center_, link_slope_, link_intercept_ : float
        The angle in radians. One-vs-rest fits keep theirs in ``one_vs_rest_[c]``. If
        cosine and slope are both fitted only their product is well determined.
    platt_equivalent_ : tuple of float
        (A, B) such that the result is link(slope * (A * (u - center) + B) + intercept):
        exact for "probit", within 0.02 for "logit", not defined for other links.
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
    The mean over Z has a closed form for "probit" and "clipped_relu" and is computed to
    1e-12 by fixed nodes for "logit"; other links are integrated numerically, to some
    1e-5 if they have kinks. Cost: O(n) an iteration. `AngularCalibratedClassifier`
    finds the angle without labels beyond those of the training.

    References
    ----------
    Li, Sur (2025), "Optimal and provable calibration in high-dimensional binary
    classification: angular calibration and Platt scaling", equations 3 and 9.

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

    cos_theta_: float
    theta_: float
    norm_: float
    center_: float
    link_slope_: float
    link_intercept_: float

    capabilities = Capabilities(
        monotone=True,
        increasing=True,
        continuous=True,
        needs_positive_proba=True,
        max_classes=200,
    )
    _parameter_constraints: ClassVar = {
        "cos_theta": [Interval(Real, -1, 1, closed="both"), None],
        "norm": [POSITIVE_REAL, None],
        "center": [Interval(Real, None, None, closed="neither"), None],
        "link": [StrOptions({"logit", "probit", "clipped_relu"}), callable],
        "link_slope": [POSITIVE_REAL, None],
        "link_intercept": [Interval(Real, None, None, closed="neither"), None],
    }

    def __init__(
        self,
        cos_theta: float | None = None,
        norm: float | None = None,
        center: float | None = None,
        *,
        link: Link = "logit",
        link_slope: float | None = None,
        link_intercept: float | None = None,
    ) -> None:
        self.cos_theta = cos_theta
        self.norm = norm
        self.center = center
        self.link = link
        self.link_slope = link_slope
        self.link_intercept = link_intercept

    def _fit(self, proba, codes, weight):
        """Standardise the log-odds; fit the angle and the link's parameters unless they are set."""
        u = compute_log_odds(proba)
        share = weight / weight.sum()
        self.center_ = float(share @ u) if self.center is None else float(self.center)
        self.norm_ = self.norm
        if self.norm is None:
            self.norm_ = float(np.sqrt(share @ (u - self.center_) ** 2))
            if self.norm_ <= _NORM_TOLERANCE * max(1.0, abs(self.center_)):
                # All scores are equal, and their mean is rounded.
                self.norm_ = 1.0
                u = np.full_like(u, self.center_)
        # The standardised score of eq. (3) of Li and Sur (2025): w'x / |w|_S, centred.
        s = (u - self.center_) / self.norm_
        self._check_link_gives_probabilities()
        parameters = _fit_angle_and_line_class_symmetrically(
            self.link,
            s,
            codes,
            share,
            self.cos_theta,
            self.link_slope,
            self.link_intercept,
        )
        self.theta_, self.link_slope_, self.link_intercept_ = map(float, parameters)
        self.cos_theta_ = float(
            np.cos(self.theta_) if self.cos_theta is None else self.cos_theta
        )

    @property
    def platt_equivalent_(self) -> tuple[float, float]:
        """Return slope and intercept of the equivalent Platt map (equation 9)."""
        scale = {"probit": 1.0, "logit": np.sqrt(np.pi / 8)}.get(str(self.link))
        if scale is None:
            raise AttributeError(
                "AngularCalibration.platt_equivalent_ exists for probit and logit"
            )
        a = scale * self.link_slope_
        b = scale * self.link_intercept_
        # Eq. (9): A = cos(theta) / (|w| sqrt(1 + a^2 sin^2(theta))) and B = b / a (1 /
        # sqrt(...) - 1), for sigma(x) = Phi(a x + b). The logistic function is close to
        # Phi(sqrt(pi / 8) x).
        shrink = 1 / np.hypot(1, a * np.sin(self.theta_))
        return float(self.cos_theta_ * shrink / self.norm_), float(b / a * (shrink - 1))

    def _predict_two_class_proba(self, proba):
        s = (compute_log_odds(proba) - self.center_) / self.norm_
        # The mean of the argument of the link in eq. (3), and the deviation of the
        # noise that is averaged out.
        mu = self.link_slope_ * self.cos_theta_ * s + self.link_intercept_
        tau = self.link_slope_ * np.sin(self.theta_)
        return np.column_stack(compute_negative_and_positive_proba(self.link, mu, tau))

    def _make_map(self):
        points = self.center_ + self.norm_ * np.array([-1.0, 0.0, 1.0])
        name = type(self).__name__
        return maps.CallableMap(
            input="logit",
            name=name,
            predict=self._predict_two_class_proba,
            points=points,
        )

    def _check_link_gives_probabilities(self):
        """Raise an error if a link of the user does not return probabilities."""
        if callable(self.link):
            t = np.linspace(-30, 30, 601)
            value = np.asarray(self.link(t), dtype=float)
            low = value.min()
            high = value.max()
            if value.shape != t.shape or not (low >= 0 and high <= 1):
                raise invalid_input(
                    "link",
                    expected="a link from any array to probabilities of its shape",
                    got=f"shape {value.shape} and values from {low:.3g} to {high:.3g}",
                    hint="Pass the mean function, say scipy.special.expit for logits",
                )


def _fit_angle_and_line_class_symmetrically(
    link, s, codes, share, cos_theta, slope, intercept
):
    """Fit with classes in a fixed order, so that exchanged classes give the same curve."""
    if callable(link) or codes[0] == 0:
        return _maximise_likelihood(link, s, codes, share, cos_theta, slope, intercept)
    # Exchanging the classes mirrors score and link, so the other order is fitted by
    # mirrored arguments.
    twice = 2 * SYMMETRY_CENTRE_BY_LINK[link]
    other = None if intercept is None else twice - intercept
    theta, slope, other = _maximise_likelihood(
        link,
        -s,
        1 - codes,
        share,
        cos_theta,
        slope,
        other,
    )
    return theta, slope, twice - other


def _maximise_likelihood(link, s, codes, share, cos_theta, slope, intercept):
    """Fit missing ones of angle, slope and intercept by maximum likelihood."""
    fixed_values = [
        None if cos_theta is None else np.arccos(cos_theta),
        slope,
        intercept,
    ]
    if all(value is not None for value in fixed_values):
        return fixed_values
    # Angle and slope enter the likelihood as the coefficient a cos(theta) and the noise
    # a sin(theta), in which it is smooth.
    if cos_theta is None and slope is None:
        return _fit_angle_slope_and_intercept(link, s, codes, share, intercept)
    free = [value is None for value in fixed_values]
    values = np.array(fixed_values, dtype=float)

    def compute_parameters_and_jacobian(free_values):
        """Return (mu's coefficient of s, tau, intercept) and the Jacobian."""
        values[free] = free_values
        theta, a, b = values
        cos = np.cos(theta)
        sin = np.sin(theta)
        jacobian = np.array(
            [[-a * sin, cos, 0.0], [a * cos, sin, 0.0], [0.0, 0.0, 1.0]]
        )
        return (a * cos, a * sin, b), jacobian[:, free]

    starts = [0.2, 0.8, 1.3], [0.5, 1.5, 4.0], [-2.0, -0.7, 0.0, 0.7, 2.0]
    bounds = (0, np.pi / 2), (1e-6, _MAX_LINK_SLOPE), (None, None)
    starts = compress(starts, free)
    bounds = compress(bounds, free)
    values[free] = _minimise_from_grid(
        link, s, codes, share, compute_parameters_and_jacobian, starts, bounds
    )
    return values


def _fit_angle_slope_and_intercept(link, s, codes, share, intercept):
    """Fit angle and slope, both free, by mu's coefficient of s and the noise's deviation.

    In units of the scores that decide a logistic fit (few huge scores make the others
    tiny).
    """
    centre = 0.0
    unit = 1.0
    # The scores are centred and scaled where the likelihood has its information, so
    # that one grid of starts serves all data.
    if not threshold_separates(s, codes, increasing=True):
        line = np.column_stack([s, np.ones_like(s)])
        slope, constant = fit_logistic(line, codes.astype(float), share, (0,)).coef
        z = slope * s + constant
        curvature = share * expit(z) * expit(-z)
        curvature /= curvature.sum()
        centre = curvature @ s if intercept is None else 0.0
        unit = np.sqrt(curvature @ (s - centre) ** 2) or 1.0
    free = [True, True, intercept is None]

    def compute_parameters_and_jacobian(free_values):
        values = np.array([*free_values, intercept])[:3].astype(float)
        return tuple(values), np.eye(3)[:, free]

    starts = [0.3, 1.0, 3.0], [0.1, 1.0, 3.0], [-2.0, -0.7, 0.0, 0.7, 2.0]
    bounds = (0, _MAX_LINK_SLOPE), (0, _MAX_NOISE_DEVIATION), (None, None)
    starts = compress(starts, free)
    bounds = compress(bounds, free)
    minimum = _minimise_from_grid(
        link,
        (s - centre) / unit,
        codes,
        share,
        compute_parameters_and_jacobian,
        starts,
        bounds,
    )
    (coefficient, tau, b), _ = compute_parameters_and_jacobian(minimum)
    coefficient /= unit
    a = max(np.hypot(coefficient, tau), 1e-12)
    return np.arctan2(tau, coefficient), a, b - coefficient * centre


def _minimise_from_grid(link, s, codes, share, compute_parameters, starts, bounds):
    """Maximise the likelihood by L-BFGS-B from the best point of a coarse grid."""

    def compute_loss_and_gradient(free_values, s, positive, share):
        (coefficient, tau, b), jacobian = compute_parameters(free_values)
        log, by_mu, by_tau = compute_label_log_proba_and_derivatives(
            link,
            coefficient * s + b,
            max(tau, 0.0),
            positive,
        )
        by_mu = share * by_mu
        gradient = np.array([by_mu @ s, share @ by_tau, by_mu.sum()])
        return -(share @ log), -gradient @ jacobian

    # The likelihood is not concave in the noise, so the search starts from the best
    # point of a grid, on a sample of rows.
    data = (s, codes == 1, share)
    sample = data
    # Other links are quick, or have kinks that a sample would move.
    if link == "logit" and len(s) > 2 * _MAX_HESSIAN_SAMPLE_ROWS:
        sample = _sample_rows(*data, _MAX_HESSIAN_SAMPLE_ROWS)
    few = _sample_rows(*sample, MAX_START_SAMPLE_ROWS)
    best = min(
        product(*starts), key=lambda point: compute_loss_and_gradient(point, *few)[0]
    )
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 500, "maxcor": 20}
    bounds = list(bounds)
    # A sample comes near enough for a few evaluations of all rows to be enough.
    for rows in [data] if sample is data else [sample, data]:
        best = minimize(
            compute_loss_and_gradient,
            best,
            rows,
            method="L-BFGS-B",
            jac=True,
            bounds=bounds,
            options=options,
        ).x
        # Newton's steps follow the fit to all rows, so that one may be coarse.
        options["gtol"] = 1e-6
    return _polish_minimum(
        lambda point: compute_loss_and_gradient(point, *data),
        lambda point: compute_loss_and_gradient(point, *sample)[1],
        best,
        bounds,
    )


def _polish_minimum(compute_loss_and_slope, compute_slope, point, bounds):
    """Iterate Newton steps until the slope is rounding error, far beyond a flat loss.

    The second derivatives are differences of the slopes of a sample, of either sign if
    the quasi-Newton method gave up far away. A step, halved if need be, makes the loss
    less, or the slope if the loss is flat.
    """
    # A bound of None becomes NaN, and no comparison with NaN is true.
    low, high = np.array(bounds, dtype=float).T
    value, slope = compute_loss_and_slope(point)
    for _ in range(_MAX_NEWTON_STEPS):
        free = ~((point <= low) & (slope > 0) | (point >= high) & (slope < 0))
        room = np.fmin(np.fmin(point - low, high - point), _DIFFERENCE_STEP)[free]
        if not free.any() or not (room > 0).all():
            break
        units = np.eye(len(point))[free] * room[:, None]
        # The Hessian by differences of exact gradients; second derivatives of the
        # averaged link would need more tables.
        differences = []
        for unit in units:
            ahead = compute_slope(point + unit)
            differences.append(ahead - compute_slope(point - unit))
        bent = np.array(differences)[:, free] / (2 * room[:, None])
        step = np.zeros_like(point)
        sizes, axes = np.linalg.eigh((bent + bent.T) / 2)
        # Absolute eigenvalues make the step a descent direction if the loss is not
        # convex.
        sizes = np.abs(sizes)
        along = np.divide(
            axes.T @ slope[free],
            sizes,
            where=sizes > _CURVATURE_TOLERANCE * sizes.max(),
            out=0 * sizes,
        )
        step[free] = axes @ along
        near = _CURVATURE_TOLERANCE * max(abs(value), 1.0)
        for size in 0.5 ** np.arange(_MAX_NEWTON_STEPS):
            moved = np.fmin(np.fmax(point - size * step, low), high)
            reached, then = compute_loss_and_slope(moved)
            flatter = np.abs(then[free]).max() < np.abs(slope[free]).max()
            if reached < value - near or (flatter and reached <= value + near):
                break
            # Rounding hides what still shorter steps gain.
            if size < 0.3 and reached <= value + near:
                return point
        else:
            break
        point = moved
        value = reached
        slope = then
    return point


def _sample_rows(s, positive, share, count):
    """Select evenly spaced sorted scores of each class; few rows stay as they are."""
    if len(s) <= count:
        return s, positive, share
    order = np.lexsort((s, positive))[:: len(s) // count]
    return s[order], positive[order], share[order] / share[order].sum()
