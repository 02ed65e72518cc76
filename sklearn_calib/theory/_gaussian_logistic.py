"""Ridge logistic regression on two Gaussian classes, in the limit of many features and rows."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import special
from scipy.optimize import root
from scipy.special import expit, ndtr

from .._argument_checks import is_real_number
from .._random import make_random_state
from .._simplex_array import convert_log_odds
from .._typing import ArrayLike, FloatArray, RandomStateLike
from .._validation import read_numeric_array
from ..datasets import make_two_gaussians
from ..exceptions import invalid_input
from ..metrics import LossLike, get_loss

#: A loss, or a function (p, q) -> its expected value for p where q is true.
ExpectedLoss: TypeAlias = LossLike | Callable[[Any, Any], Any]
# In standard deviations: 2e-19 of the mass lies beyond.
_MAX_QUADRATURE_DEVIATIONS = 9.0
# The quadrature rule for expectations.
_N_QUADRATURE_PANELS = 24
_QUADRATURE_ORDER = 20


class GaussianLoss(NamedTuple):
    """The exact expected loss of a linear classifier of two Gaussian classes, and its parts."""

    risk: float
    calibration: float
    refinement: float
    error_rate: float


# Squares and quotients of parameters up to this size are finite in float64.
MAX_PARAMETER_MAGNITUDE = 1e50


def make_normal_rule() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for expectations under the standard normal distribution."""
    x, w = np.polynomial.legendre.leggauss(_QUADRATURE_ORDER)
    edges = np.linspace(
        -_MAX_QUADRATURE_DEVIATIONS,
        _MAX_QUADRATURE_DEVIATIONS,
        _N_QUADRATURE_PANELS + 1,
    )
    # Composite Gauss-Legendre: Gauss-Hermite converges slowly for the logistic function
    # at large variances.
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half * (x + 1)).ravel()
    weights = (half * w).ravel() * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    return nodes, weights / weights.sum()


# Of the logarithms of the unknowns.
_MAX_LOG_RESIDUAL = 1e-12


class LogisticLimit(NamedTuple):
    """The limit of ridge logistic regression: arrays, one entry per regularisation strength."""

    risk: FloatArray
    calibration: FloatArray
    refinement: FloatArray
    error_rate: FloatArray
    # The inner product w' S w_best, and the norm sqrt(w' S w).
    inner: FloatArray
    norm: FloatArray


class GaussianLogisticModel:
    """The exact learning curve of ridge logistic regression on two Gaussian classes.

    Rows n and features p grow together with p / n fixed; the class means are +-m with
    entries of m drawn from N(0, c^2 / p), the eigenvalues of the covariance from a
    given distribution. The weights minimise mean log(1 + exp(-y w' x)) + strength / 2
    w' w, without intercept: ``LogisticRegression(C=1 / (n_samples * strength),
    fit_intercept=False)``.

    Parameters
    ----------
    ratio : float, default=0.5
        Features per row, p / n.
    error_rate : float, default=0.1
        Of the best classifier, between 0 and 0.5.
    spectrum : tuple of two floats or array-like, default=(1, 1)
        Shapes (a, b) of the Beta distribution of the eigenvalues, shifted up by
        `smallest`; or a list, array of eigenvalues that are equally frequent.
    smallest : float, default=1e-3
        The shift, above 0; not used for given eigenvalues.

    Attributes
    ----------
    scale_ : float
        The c above.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    The limit solves three equations (Mai, Liao, Couillet 2019) by a fixed-point
    iteration with Anderson acceleration in the logarithms: some 10 iterations, a few
    milliseconds a strength.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), propositions 7.1 and 7.3.

    Examples
    --------
    >>> from sklearn_calib.theory import GaussianLogisticModel
    >>> limit = GaussianLogisticModel(ratio=0.5, error_rate=0.1).limit([0.1, 0.01, 0.001])
    >>> limit.calibration.round(3).tolist()  # grows when the regularisation is weak
    [0.002, 0.074, 0.517]
    >>> limit.refinement.round(3).tolist()
    [0.577, 0.561, 0.562]
    """

    scale_: float

    def __init__(
        self,
        ratio: float = 0.5,
        error_rate: float = 0.1,
        spectrum: Sequence[float] = (1, 1),
        smallest: float = 1e-3,
    ) -> None:
        numbers = all(map(is_real_number, (ratio, error_rate, smallest)))
        if not (numbers and ratio > 0 and 0 < error_rate < 0.5 and smallest > 0):
            raise invalid_input(
                "ratio",
                expected="ratio > 0, 0 < error_rate < 0.5 and smallest > 0",
                got=f"{ratio}, {error_rate} and {smallest}",
                hint="Change the one that is out of range",
            )
        eigenvalues = read_numeric_array(spectrum, "spectrum")
        if eigenvalues.ndim != 1 or not eigenvalues.size or not eigenvalues.min() > 0:
            raise invalid_input(
                "spectrum",
                expected="a spectrum of positive numbers",
                got=repr(spectrum),
                hint="Pass (a, b) or eigenvalues",
            )
        self.ratio = ratio
        self.error_rate = error_rate
        self.spectrum = spectrum
        self.smallest = smallest
        self._nodes, self._weights = self._get_eigenvalue_nodes_and_weights()
        inverse_mean = self._weights @ (1 / self._nodes)
        # Proposition 7.3 relates the size of the means to the error rate of the best
        # classifier.
        self.scale_ = float(-special.ndtri(error_rate) / np.sqrt(inverse_mean))

    @staticmethod
    def compute_weight_loss(
        inner: float, norm: float, loss: ExpectedLoss = "log"
    ) -> GaussianLoss:
        """Compute the exact loss of the classifier expit(w' x) on two balanced Gaussian classes.

        It depends on the weights w by two numbers only.

        Parameters
        ----------
        inner : float
            w' S w_best, with the covariance S and the best weights w_best = 2 S^-1 m:
            twice w' m.
        norm : float
            The square root of w' S w, above 0.
        loss : {"log", "brier", "spherical"}, ProperLoss or callable, default="log"
            As in `decompose_loss`; a probability near 0 counts as what it is. Or a
            callable (p, q) -> the expected loss of predicting p where the true
            probability is q, on arrays.

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
        The logit z is a mixture of two normals with means +-inner/2 and variance
        norm^2, and the true probability given z is expit(z inner / norm^2): the
        calibration part vanishes for weights multiplied by inner / norm^2, which leaves
        refinement and error rate unchanged. The mixture is needed for losses that treat
        the classes differently. Integrals by Gauss-Legendre quadrature, to some 1e-15;
        cost: below a millisecond.

        References
        ----------
        Berta, Holzmueller, Jordan, Bach (2025), propositions 6.1 (corrected: the
        mixture) and 6.2.

        Examples
        --------
        >>> from sklearn_calib.theory import GaussianLogisticModel
        >>> compute_weight_loss = GaussianLogisticModel.compute_weight_loss
        >>> sure = compute_weight_loss(inner=2.0, norm=4.0)  # overconfident: inner / norm^2 = 1/8
        >>> calm = compute_weight_loss(inner=2.0 / 8, norm=4.0 / 8)
        >>> round(sure.calibration, 3), abs(round(calm.calibration, 3))
        (0.632, 0.0)
        >>> abs(sure.refinement - calm.refinement) < 1e-12
        True
        """
        bound = MAX_PARAMETER_MAGNITUDE
        is_valid = is_real_number(inner) and is_real_number(norm)
        is_valid = is_valid and abs(inner) <= bound and 1 / bound <= norm <= bound
        if not is_valid:
            raise invalid_input(
                expected=f"within {bound:g} a finite inner and a norm above 0",
                got=f"{inner!r}, {norm!r}",
                hint="Check the weights",
            )
        nodes, node_weights = make_normal_rule()
        # The score of each class is normal, around minus and plus half of `inner`.
        z = np.concatenate([-inner / 2 + norm * nodes, inner / 2 + norm * nodes])
        node_weights = np.concatenate([node_weights, node_weights]) / 2
        # The optimal recalibration of the score z is sigma(slope z), the rescaling of
        # proposition 6.2.
        slope = inner / norm**2
        q = expit(slope * z)
        if callable(loss):
            # Calibration error is the divergence between prediction and recalibrated
            # prediction, refinement the entropy of the latter (proposition 6.1).
            risk = loss(expit(z), q)
            lowest_risk = loss(q, q)
        else:
            rule = get_loss(loss, 2).without_floor()
            truth = np.column_stack([1 - q, q])
            risk = rule.expected(convert_log_odds(z), truth)
            lowest_risk = rule.expected(convert_log_odds(slope * z), truth)
        mean_risk = float(node_weights @ risk)
        refinement = float(node_weights @ lowest_risk)
        error_rate = float(ndtr(-inner / norm / 2))
        return GaussianLoss(mean_risk, mean_risk - refinement, refinement, error_rate)

    def limit(self, strength: ArrayLike, loss: ExpectedLoss = "log") -> LogisticLimit:
        """Compute the loss and its parts for each strength of the regularisation.

        Parameters
        ----------
        strength : float or array-like of shape (n_strengths,)
            Above 0.
        loss : {"log", "brier", "spherical"}, ProperLoss or callable, default="log"
            As in `compute_weight_loss`.

        Returns
        -------
        limit : LogisticLimit
            Named tuple of arrays (risk, calibration, refinement, error_rate, inner,
            norm).
        """
        strengths = np.atleast_1d(np.asarray(strength, dtype=float))
        if strengths.ndim != 1 or not (strengths > 0).all():
            raise invalid_input(
                expected="strengths above 0",
                got=repr(strength),
                hint="The limit without regularisation need not exist",
            )
        rows = []
        start = None
        for value in strengths:
            inner, norm, start = self._solve_overlap_norm_and_next_start(value, start)
            # Each strength starts from the solution of the one before, since the
            # solution changes continuously.
            parts = self.compute_weight_loss(inner, norm, loss)
            rows.append((*parts, inner, norm))
        return LogisticLimit(*np.array(rows).T)

    def sample(self, n_samples: int, random_state: RandomStateLike = 0) -> Any:
        """Draw the means and rows of one data set with p = ratio * n features.

        Parameters
        ----------
        n_samples : int
        random_state : int, Generator, RandomState or None, default=0

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,), int
        proba : ndarray of shape (n_samples,)
            The true P(y = 1 | x).
        mean, eigenvalues : ndarray of shape (n_features,)
            Of class 1, and of the diagonal covariance: weights w have ``inner = 2 w @
            mean`` and ``norm = sqrt(w**2 @ eigenvalues)``.
        """
        rng = make_random_state(random_state)
        n_features = max(1, round(self.ratio * n_samples))
        if isinstance(self.spectrum, tuple):
            a, b = self.spectrum
            eigenvalues = self.smallest + rng.beta(a, b, n_features)
        else:
            eigenvalues = rng.choice(np.asarray(self.spectrum, dtype=float), n_features)
        mean = rng.normal(size=n_features) * self.scale_ / np.sqrt(n_features)
        X, y, proba = make_two_gaussians(n_samples, mean, eigenvalues, random_state=rng)
        return X, y, proba, mean, eigenvalues

    def _get_eigenvalue_nodes_and_weights(self):
        """Return nodes and weights for expectations over the eigenvalues."""
        if not isinstance(self.spectrum, tuple):
            values = np.asarray(self.spectrum, dtype=float)
            return values, np.full(len(values), 1 / len(values))
        a, b = self.spectrum
        # Double exponential quadrature with x = expit(pi sinh t): any power of x at the
        # ends, and the pole at -smallest, are harmless.
        t = np.arange(-4.5, 4.5, 1 / 24)
        log_odds = np.pi * np.sinh(t)
        x = special.expit(log_odds)
        log_density = a * special.log_expit(log_odds) + b * special.log_expit(-log_odds)
        weights = np.exp(log_density - special.betaln(a, b)) * np.cosh(t)
        return self.smallest + x, weights / weights.sum()

    def _solve_overlap_norm_and_next_start(self, strength, start):
        """Solve the corrected equations of the weights: inner product with the truth, and norm."""
        s = self._nodes
        weights = self._weights
        c2 = self.scale_**2
        r = self.ratio
        nodes, density = make_normal_rule()

        def compute_new_log_unknowns_mean_and_norm(log_unknowns):
            eta, gamma, tau = np.exp(log_unknowns)
            # The fixed-point equations of the limit (Mai, Liao and Couillet 2019), in
            # the logarithms of eta, gamma and tau so that these stay positive.
            penalty = strength + tau * s
            kappa = r * (weights @ (s / penalty))
            # Proposition 7.1: the limits of the inner product with the truth (half of
            # it) and of the squared norm of the weights.
            mean = eta * c2 * (weights @ (1 / penalty))
            variance = weights @ ((gamma * r * s**2 + eta**2 * c2 * s) / penalty**2)
            norm = np.sqrt(variance)
            prox = _solve_prox(mean + norm * nodes, kappa)
            # f is the derivative of the logistic loss at its proximal point, and
            # `slope` its second derivative.
            f = special.expit(-prox)
            slope = f * (1 - f)
            new_unknowns = [
                density @ f,
                density @ f**2,
                density @ (slope / (1 + kappa * slope)),
            ]
            return np.log(new_unknowns), 2 * mean, norm

        start = np.log([0.4, 0.2, 0.2]) if start is None else start
        solution = root(
            lambda u: compute_new_log_unknowns_mean_and_norm(u)[0] - u, start, tol=1e-14
        ).x
        new, inner, norm = compute_new_log_unknowns_mean_and_norm(solution)
        residual = np.abs(new - solution).max()
        if not residual < _MAX_LOG_RESIDUAL:
            raise invalid_input(
                expected=f"a residual below {_MAX_LOG_RESIDUAL:g}",
                got=f"{residual:.2g}",
                hint="Use a larger strength",
                error=RuntimeError,
            )
        return float(inner), float(norm), solution


def _solve_prox(t, kappa):
    """Solve p - kappa / (1 + e^p) = t for p, which lies between t and t + kappa.

    The left side is convex below 0 and concave above; from these starts Newton is
    monotone.
    """
    # On this side of the solution the function is convex or concave in the right
    # direction, so Newton's method converges monotonically.
    p = np.where(t > -kappa / 2, np.maximum(t, 0.0), np.minimum(t + kappa, 0.0))
    for _ in range(100):
        f = special.expit(-p)
        step = (p - kappa * f - t) / (1 + kappa * f * (1 - f))
        p = p - step
        if np.abs(step).max() <= 1e-14 * (1 + np.abs(p).max()):
            break
    return p
