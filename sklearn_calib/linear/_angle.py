"""The angle between estimated and true coefficients of a linear classifier."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, issymmetric, lstsq
from sklearn.base import clone
from sklearn.utils import check_array

from .._argument_checks import is_scalar_equal
from .._typing import AnyArray, ArrayLike, Estimator, Features, FloatArray, Link
from .._validation import read_numeric_array, read_proba
from .._warnings import warn_calibration
from ..exceptions import InvalidInputError, invalid_input
from ..recalibrators import AngularCalibration
from ._fit import (
    FREE_INTERCEPT,
    NO_INTERCEPT,
    compute_derivatives_and_leverages,
    read_linear,
    refine_fits_and_update_own_model,
)

if TYPE_CHECKING:
    from ._fit import LinearFit

# The largest dispersion of the row sizes beyond that of a normal distribution. It is
# 0.6 for a t distribution of 10 degrees of freedom.
MAX_EXCESS_ROW_SIZE_DISPERSION = 0.5
# From so many rows per feature on, least squares gives the angle without a covariance.
MIN_ROWS_PER_FEATURE_FOR_LEAST_SQUARES = 1.1


@dataclass(frozen=True)
class AngleEstimate:
    """The result of `estimate_angle`.

    Parameters
    ----------
    cos_theta : float
        Cosine of the angle between estimated and true coefficients.
    norm, center : float
        Standard deviation and mean of the score of new rows.
    method : {"covariance", "no penalty", "least squares", "likelihood"}
        How the angle was found; "likelihood" is also the fallback.
    leave_one_out : ndarray of shape (n_samples,)
        Approximate leave-one-out scores.
    diagnostics : dict
        t2, the denominator of equation 11; gamma, v and df, its parts; dispersion of
        the rows' sizes; moved, the distance of the fit from its minimum in standard
        deviations of the scores.
    """

    cos_theta: float
    norm: float
    center: float
    method: str
    leave_one_out: FloatArray
    diagnostics: dict[str, Any]

    @property
    def theta(self) -> float:
        """Return the angle in radians."""
        return float(np.arccos(self.cos_theta))

    @property
    def inner_product(self) -> float:
        """Return <w*, w>, in the unit of the scores.

        The norm is that of the covariance, with ``|w*| = 1``.
        """
        return self.cos_theta * self.norm


def estimate_angle(
    model: Estimator,
    X: Features,
    y: ArrayLike,
    covariance: ArrayLike | Estimator = "auto",
    *,
    assume_centered: bool = False,
    link: Link = "logit",
    link_slope: float | None = None,
    link_intercept: float | None = None,
) -> AngleEstimate:
    """Estimate the angle between a linear classifier's coefficients and the true ones.

    For rows from a Gaussian law (or one with light tails) and labels whose probability
    rises with w*'x, where w* are the true coefficients. There may be more features than
    rows, and neither held-out rows nor w* are needed.

    Parameters
    ----------
    model : classifier
        Fitted and converged, for two classes, without weights; as in
        `approximate_leave_one_out`.
    X, y : array-like
        The rows that it was fitted on, and their labels.
    covariance : {"auto", "identity"}, array-like or estimator, default="auto"
        Of the features. An array of shape (n_features, n_features) that is symmetric is
        the covariance, any other array holds rows without labels, more than n_features
        + 1 of them. An estimator is fitted on X and has ``covariance_`` then.
        "identity": equal variances, no correlation. "auto" needs none: for a fit
        without penalty it drops out, with more rows than features least squares takes
        its place, else the likelihood of the leave-one-out scores.
    assume_centered : bool, default=False
        Required for a model without intercept: the features have mean zero.
    link, link_slope, link_intercept
        As in `AngularCalibration`; used by the method "likelihood" only.

    Returns
    -------
    angle : AngleEstimate

    Raises
    ------
    ValueError, TypeError
        As `approximate_leave_one_out`; more than two classes; weights; an intercept
        with a penalty; no intercept without ``assume_centered``; a covariance that is
        not positive definite, or too few rows for it.

    Warns
    -----
    CalibrationWarning
        Nothing but the likelihood is left and the slope of the link is not known: the
        cosine is hardly determined. The estimate of the squared inner product is not
        positive (weak signal, few rows), or the cosine exceeds 1: the likelihood is
        used. Rows of very different size (heavy tails common to a row): the angle is
        overestimated then.

    Notes
    -----
    The error is of the order n^-1/2; about 0.034 in the cosine for 1000 rows of 2000
    features. A covariance that is estimated on the training rows themselves biases the
    cosine, Ledoit-Wolf by 0.04 to 0.1 upwards; take a structured one, or rows without
    labels. Cost: that of `approximate_leave_one_out`, and one Cholesky factor of the
    covariance.

    References
    ----------
    Li, Sur (2025), "Optimal and provable calibration in high-dimensional binary
    classification: angular calibration and Platt scaling", equation 11, with gamma = df
    / (n v): the printed one lacks the division. Bellec (2022), "Observable adjustments
    in single-index models".

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.datasets import make_high_dimensional
    >>> from sklearn_calib.linear import estimate_angle
    >>> X, y, truth = make_high_dimensional(1000, 2000, random_state=0)
    >>> model = LogisticRegression(C=4, tol=1e-6, max_iter=1000).fit(X, y)
    >>> angle = estimate_angle(model, X, y, truth.covariance)
    >>> bool(abs(angle.cos_theta - truth.cos_theta(model.coef_)) < 0.1)
    True
    """
    fits = check_angle_assumptions_and_get_fits(
        read_linear(model, X, y, None), model, assume_centered
    )
    [fit] = refine_fits_and_update_own_model(fits, model)
    estimate = estimate_angle_from_fit(fit, covariance)
    if estimate.method != "likelihood":
        return estimate
    if link_slope is None:
        warn_calibration(
            expected="a covariance, more rows than features, or a known link_slope",
            got="none of them",
            hint="Without, the likelihood determines the product of cosine and slope only",
            argument="covariance",
        )
    options: dict[str, Any] = {
        "link": link,
        "link_slope": link_slope,
        "link_intercept": link_intercept,
    }
    # The leave-one-out scores are nearly independent of their labels, so their
    # likelihood can be maximised over the cosine as that of new rows would be.
    likely = make_angular_recalibrator(
        estimate,
        fit.target > 0,
        np.array([False, True]),
        options,
    )
    return replace(estimate, cos_theta=likely.cos_theta_)


def check_angle_assumptions_and_get_fits(
    fits: "list[LinearFit]", model: Estimator, assume_centered: bool
) -> "list[LinearFit]":
    """Reject what the formulas are not derived for, and return the fits."""
    fit = fits[0]
    if len(fits) > 1 or fit.loss == "multinomial":
        raise invalid_input(
            expected="two classes",
            got=f"{len(model.classes_)}",
            hint="Use CalibratedModel(cv='alo')",
        )
    if not (fit.weight == fit.weight[0]).all():
        raise make_unsupported_weights_error()
    if fit.intercept_kind not in (FREE_INTERCEPT, NO_INTERCEPT):
        raise invalid_input(
            expected="an intercept without penalty",
            got="liblinear, which penalises it",
            hint=(
                "Choose another solver of LogisticRegression, or fit_intercept=False "
                "for centred features"
            ),
        )
    if fit.intercept_kind == NO_INTERCEPT and not assume_centered:
        raise invalid_input(
            expected="a model with an intercept",
            got="fit_intercept=False",
            hint=(
                "Fit with an intercept, or say assume_centered=True if the features have mean zero"
            ),
        )
    return fits


def make_unsupported_weights_error() -> InvalidInputError:
    """Return the error for weights: the formulas are derived for equal ones."""
    return invalid_input(
        expected="rows without weights, for which the angle is derived",
        got="class_weight or sample_weight",
        hint="Use CalibratedModel(cv='alo'), which takes them",
    )


def estimate_angle_from_fit(
    fit: "LinearFit", covariance: ArrayLike | Estimator
) -> AngleEstimate:
    """Estimate the angle from one fit.

    The cosine is None if the method is "likelihood".
    """
    n = len(fit.target)
    free = fit.intercept_kind == FREE_INTERCEPT
    psi, curvature, h, m = compute_derivatives_and_leverages(fit)
    # The leave-one-out score of each row by itself. Eq. (11) only needs the average
    # version, u = f - gamma psi.
    loo = fit.scores - psi * h / m
    if not free and _is_centered(fit.X):
        # Centring the features took the place of an intercept.
        psi = psi - psi.mean()
    seen = make_angle_formula_inputs(
        fit.scores, psi, curvature, m, fit.X.shape[1], free
    )
    method, norm2, inner, t2 = _get_method_norm2_inner_product_and_t2(
        seen, fit, covariance
    )
    norm = np.sqrt(norm2)
    df = n * seen.v * seen.gamma
    cos = None if method == "likelihood" else _compute_cosine_or_warn(inner, t2, norm)
    middle = 0.0
    if free:
        middle = (fit.scores if method == "covariance" else loo).mean()
    diagnostics = {
        "t2": t2,
        "gamma": seen.gamma,
        "v": seen.v,
        "df": df,
        "dispersion": _measure_excess_dispersion_and_warn(h / m, df),
        "moved": fit.score_move_deviations,
    }
    method = "likelihood" if cos is None else method
    # None until the likelihood is evaluated.
    known_cos: Any = cos
    return AngleEstimate(known_cos, norm, float(middle), method, loo, diagnostics)


def _get_method_norm2_inner_product_and_t2(seen, fit, covariance):
    """Return (method, squared norm, N, t2) according to what is known of the covariance."""
    n, d = fit.X.shape
    free = fit.intercept_kind == FREE_INTERCEPT
    # The leave-one-out scores have the distribution of scores of new rows, hence
    # variance |w|^2 in the covariance of the features.
    norm2 = float(np.mean(seen.leave_one_out_scores**2))
    if not is_scalar_equal(covariance, "auto"):
        sigma, shrink = _get_covariance_and_inverse_scale(covariance, fit.X)
        norm2 = float(fit.coef @ sigma @ fit.coef)
        try:
            quadratic = shrink * compute_mean_gradient_quadratic_form(
                fit.X, seen.psi, sigma
            )
        except np.linalg.LinAlgError:
            raise invalid_input(
                expected="a positive definite covariance",
                got="a singular one",
                hint="Remove constant and duplicate features, or pass a structured estimate",
            ) from None
        return (
            "covariance",
            norm2,
            *estimate_overlap_numerator_and_square(seen, quadratic, norm2),
        )
    # Without a penalty X'psi = 0 at the minimum, so the quadratic form that needs the
    # covariance is 0.
    if fit.l1 == 0 and fit.l2 == 0:
        return "no penalty", norm2, *estimate_overlap_numerator_and_square(seen, 0.0)
    # Least squares of the labels is a second fit whose inner product with the truth
    # needs no covariance, if there are more rows than features.
    if n - free > MIN_ROWS_PER_FEATURE_FOR_LEAST_SQUARES * d and not sparse.issparse(
        fit.X
    ):
        inner, t2 = estimate_overlap_by_least_squares(seen, fit.X, fit.target, free)
        return "least squares", norm2, inner, t2
    return "likelihood", norm2, np.nan, np.nan


def _compute_cosine_or_warn(inner: float, t2: float, norm: float) -> float | None:
    """Return the cosine, or warn and return None if the estimate is out of range."""
    # The estimates may violate Cauchy-Schwarz by chance if the signal is weak.
    if t2 > 0 and inner > 0 and inner <= norm * np.sqrt(t2):
        return float(inner / np.sqrt(t2) / norm)
    warn_calibration(
        expected="a squared inner product between 0 and the squared norm",
        got=f"<w*, w>^2 = ({inner:.3g})^2 / {t2:.3g} for a norm of {norm:.3g}",
        hint=(
            "The signal is weak or the rows are few; the likelihood of the "
            "leave-one-out scores is used instead"
        ),
    )
    return None


def make_angular_recalibrator(
    angle: AngleEstimate, labels: AnyArray, classes: AnyArray, link: dict[str, Any]
) -> AngularCalibration:
    """Make the recalibrator of an angle.

    Unknown parts are fitted to leave-one-out scores.

    The angle is that of the second of `classes`.
    """
    scores = read_proba(angle.leave_one_out, kind="logits")
    recalibrator = AngularCalibration(angle.cos_theta, angle.norm, angle.center, **link)
    return recalibrator.fit(scores, labels, classes=classes)


def _is_centered(X):
    """Return whether the sample means are 0 up to rounding, as after centring by an intercept."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    spread = np.sqrt(np.mean(X.data**2 if sparse.issparse(X) else X**2))
    return bool(np.abs(mean).max() <= 1e-8 * spread)


def _measure_excess_dispersion_and_warn(sizes, df):
    """Compute the variation of the leverages of rows beyond that of a normal distribution."""
    # For Gaussian rows h / m is nearly a scaled chi-square variable with df degrees of
    # freedom, whose squared coefficient of variation is 2 / df.
    dispersion = np.var(sizes) / np.mean(sizes) ** 2 - 2 / max(df, 1.0)
    dispersion = float(np.sqrt(max(dispersion, 0.0)))
    if dispersion > MAX_EXCESS_ROW_SIZE_DISPERSION:
        warn_calibration(
            expected="rows of similar size, as a normal law gives",
            got=f"leverages whose variation exceeds it by {dispersion:.2g}",
            hint=(
                "The angle is overestimated for heavy-tailed rows; compare with "
                "CalibratedModel(cv='alo'), which does not assume it, or scale the rows "
                "to one length"
            ),
        )
    return dispersion


def _get_covariance_and_inverse_scale(covariance, X):
    """Return (covariance, factor for the quadratic form of its inverse)."""
    d = X.shape[1]
    dense = X.toarray() if sparse.issparse(X) else X
    # The only accepted text is "identity".
    if isinstance(covariance, str):
        return np.mean(np.var(dense, axis=0)) * np.eye(d), 1.0
    if hasattr(covariance, "fit"):
        return np.asarray(clone(covariance).fit(dense).covariance_), 1.0
    matrix = read_numeric_array(covariance, "covariance")
    if matrix.ndim != 2 or matrix.shape[1] != d:
        raise invalid_input(
            "covariance",
            expected=f"a covariance or rows of {d} features",
            got=f"shape {matrix.shape}",
            hint="Pass it for the features as the linear model sees them",
        )
    matrix = check_array(matrix, dtype=np.float64)
    if matrix.shape[0] == d and issymmetric(matrix, atol=1e-8, rtol=1e-8):
        return matrix, 1.0
    rows = len(matrix)
    if rows <= d + 2:
        raise invalid_input(
            expected=f"more than {d + 2} rows without labels for {d} features",
            got=f"{rows}",
            hint="Pass more, or a structured covariance estimate",
        )
    # The mean of an inverse Wishart matrix is too large by this factor.
    return np.cov(matrix, rowvar=False).reshape(d, d), 1 - (d + 1) / (rows - 1)


# -- the inner product of estimated and true coefficients, from training data alone ---------------
#
# For Gaussian rows with covariance S, y a function of w*'x (w*'S w* = 1) and noise, and
# w a penalised fit whose leave-one-out scores are u. Notation of Li and Sur (2025),
# equation 11; corrected: gamma is df / (n v), not df.


class AngleFormulaInputs(NamedTuple):
    """What the formulas need of a fit; scores centred if the fit has an intercept.

    scores f, residuals psi = -l'(f), curvatures D = l''(f), m = 1 - D_i h_i, d all
    coefficients.
    """

    f: FloatArray
    psi: FloatArray
    gamma: float
    v: float
    d: int

    @property
    def leave_one_out_scores(self) -> FloatArray:
        """Return leave-one-out scores, to first order."""
        return self.f - self.gamma * self.psi


def make_angle_formula_inputs(
    scores: FloatArray,
    residuals: FloatArray,
    curvature: FloatArray,
    m: FloatArray,
    d: int,
    intercept: bool,
) -> AngleFormulaInputs:
    """Return what the formulas need of a fit; an intercept centres the scores."""
    n = len(scores)
    # v = Tr(D - D X H X' D) / n of eq. (11), with m = 1 - D h from the leverages.
    v = float(np.mean(curvature * m))
    df = n - m.sum() - intercept
    gamma = float(df / (n * v))
    # The intercept shifts all scores alike; the angle is about the coefficients, so the
    # scores are centred.
    centre = (scores - gamma * residuals).mean() if intercept else 0.0
    return AngleFormulaInputs(scores - centre, residuals, gamma, v, d)


def estimate_overlap_numerator_and_square(
    seen: AngleFormulaInputs, quadratic: float, norm2: float | None = None
) -> tuple[float, float]:
    """Return (N, t2): a = N / sqrt(t2) estimates <w*, w>_S (equation 11).

    quadratic = psi'X S^-1 X'psi / n^2, 0 for a fit without penalty. `norm2` is w'S w
    where S is known, else the mean square of u stands for it; the same in both, mixing
    them is worse.
    """
    n = len(seen.f)
    size = np.mean(seen.leave_one_out_scores**2) if norm2 is None else norm2
    r2 = np.mean(seen.psi**2)
    cross = np.mean(seen.psi * seen.f)
    # The numerator of eq. (11) of Li and Sur (2025) before it is squared; its sign is
    # that of <w*, w>, which their eq. (12) takes from rows that are set aside.
    inner = seen.v * size + cross - seen.gamma * r2
    # The denominator of eq. (11). `quadratic` is its first term, |S^(-1/2) X'psi|^2 /
    # n^2.
    t2 = quadratic + 2 * seen.v * cross + seen.v**2 * size - seen.d / n * r2
    return float(inner), float(t2)


def estimate_overlap_by_least_squares(
    seen: AngleFormulaInputs, X: FloatArray, y: FloatArray, intercept: bool
) -> tuple[float, float]:
    """Return (N, t2) without a covariance, for n > d, from the least squares fit of y.

    Its leave-one-out scores have the same correlation with the truth, and their own
    scale is known from the same formulas, in which the covariance drops out since X'psi
    = 0.
    """
    n = len(y)
    if intercept:
        X = X - X.mean(axis=0)
        y = y - y.mean()
    fitted = X @ lstsq(X, y, check_finite=False, lapack_driver="gelsy")[0]
    psi = y - fitted
    # For the squared loss D is the identity and df is d, so v and gamma have closed
    # forms.
    v = 1 - seen.d / n
    gamma = seen.d / n / v
    u = fitted - gamma * psi
    t2 = v**2 * np.mean(u**2) - seen.d / n * np.mean(psi**2)
    inner = v * np.mean(u * seen.leave_one_out_scores) - seen.gamma * np.mean(
        psi * seen.psi
    )
    return float(inner), float(t2)


def compute_mean_gradient_quadratic_form(
    X: Any, psi: FloatArray, covariance: FloatArray
) -> float:
    """Compute psi'X S^-1 X'psi / n^2; raise LinAlgError if S is not positive definite."""
    g = X.T @ psi / len(psi)
    return float(g @ cho_solve(cho_factor(covariance, lower=True), g))
