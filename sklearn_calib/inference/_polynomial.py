"""The polynomial test of calibration and its belt (GiViTI)."""

from dataclasses import dataclass, field

import numpy as np

from .._argument_checks import check_flag, check_level
from .._kernels._log_odds import of_probability
from .._kernels._polynomial_test import LogisticPolynomial, fit_polynomial
from .._typing import ArrayLike, FloatArray
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ..metrics import validate_predictions


@dataclass(frozen=True)
class PolynomialTest:
    """A polynomial in the predicted log-odds, fitted to the outcomes, and the test of it.

    Attributes
    ----------
    statistic : float
        Twice the difference of the log-likelihoods of the polynomial and of the predictions.
    pvalue : float
    degree : int
        From 1 to 4, chosen by the data.
    coef : ndarray of shape (degree + 1,)
        Of 1, z, z^2, ... with z the predicted log-odds. Calibrated predictions have 0, 1, 0, ...
    covariance : ndarray of shape (degree + 1, degree + 1)
        Of `coef`; infinite where the outcomes are separated.
    held_out : bool
        Whether the model has not seen these rows.
    """

    statistic: float
    pvalue: float
    degree: int
    coef: FloatArray
    covariance: FloatArray
    held_out: bool
    _fit: LogisticPolynomial = field(repr=False)

    def belt(self, proba: ArrayLike, *, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Compute the calibration belt: the true probabilities at all predictions at once.

        Parameters
        ----------
        proba : array-like of shape (n_points,)
            Predicted probabilities of the event, in [0, 1].
        level : float in (0, 1), default=0.95
            Probability that the belt holds the whole curve.

        Returns
        -------
        low, high : ndarray of shape (n_points,)
            [0, 1] where the outcomes are separated, so that no polynomial fits best.

        Raises
        ------
        ValueError
            Predictions outside [0, 1], or a level outside (0, 1).

        Examples
        --------
        >>> from sklearn_calib.inference import polynomial_test
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(2, 500)
        >>> low, high = polynomial_test(y, proba).belt([0.1, 0.9])
        >>> bool(low[0] > 0.1), bool(high[1] < 0.9)  # overconfident at both ends
        (True, True)
        """
        p = np.asarray(proba, dtype=float)
        if not ((p >= 0) & (p <= 1)).all():
            bad = p[~((p >= 0) & (p <= 1))].flat[0]
            raise invalid_input(
                expected="probabilities in [0, 1]",
                got=repr(float(bad)),
                hint="Pass those of the event",
            )
        check_level(level)
        return self._fit.belt(of_probability(p, 1 - p), level)


def polynomial_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    held_out: bool = True,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> PolynomialTest:
    """Test whether outcomes follow a polynomial of the log-odds other than the identity (GiViTI).

    Its belt, `PolynomialTest.belt`, is drawn by ``ReliabilityDisplay`` with
    ``strategy="polynomial"``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; of more than two classes the largest is tested.
    held_out : bool, default=True
        Whether the model has not seen these rows. On the rows that a logistic regression without
        penalty was fitted to, intercept and slope are 0 and 1 by construction: with ``False`` the
        degree starts at 2 and the law of the statistic has a degree of freedom less.
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None

    Returns
    -------
    result : PolynomialTest

    Raises
    ------
    ValueError
        ``held_out=False`` with fewer than three different predictions, or invalid scores or
        labels; see `canonical_proba`.

    Warns
    -----
    CalibrationWarning
        A prediction of exactly 0 or 1 is wrong. It counts as 1.2e-38 or as 1 less that, and then
        decides the test alone.

    Notes
    -----
    logit P(y = 1) = b_0 + b_1 z + ... + b_m z^m. From m = 1 the degree is raised, to 4 at most,
    while the likelihood ratio of the next one exceeds k = 3.84, the 0.95 quantile of chi-square
    with one degree of freedom. Given m, the statistic is that of a chi-square variable with two
    degrees of freedom and m - 1 with one degree that are known to exceed k; p-values are of this
    law, by quadrature. Where all predictions are equal only b_0 is free: one degree of freedom.

    `cox_test` stops at m = 1 and is the same there; this test also finds curves, such as
    predictions that are right on average and at neither end. The law is that of many events: at
    the 5 % level calibrated predictions are rejected in 4 to 6 % of samples of 100 to 2000 rows,
    but on the rows of the fit with 7 events only in 10 % (``benchmarks/validation``). Cost: O(n) a
    Newton step.

    The belt is b'z +- c se with c^2 the quantile of the law above, so it holds for all z together
    and agrees with the test. The published belt takes the likelihood region in place of the
    ellipsoid, which is the same for many rows. The diagonal of calibrated predictions leaves the
    95 % belt in 2 to 5 % of samples.

    References
    ----------
    Nattino, Finazzi, Bertolini (2014), "A new calibration test and a reappraisal of the
    calibration belt for the assessment of prediction models based on dichotomous outcomes".

    Examples
    --------
    >>> from sklearn_calib.inference import polynomial_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> result = polynomial_test(y, proba)
    >>> result.degree, result.pvalue < 0.001
    (1, True)
    """
    held_out = check_flag(held_out, "held_out")
    predictions = validate_predictions(y_true, y_proba, None, labels, pos_label)
    (problem,) = predictions.problems()
    p, hit = problem.score, problem.hit
    warn_of_certain_and_wrong(p, hit, "the test rests on it")
    fit = fit_polynomial(of_probability(p, 1 - p), np.ones(len(p)), hit, internal=not held_out)
    if fit is None:
        raise invalid_input(
            expected="at least 3 different predictions for held_out=False",
            got=f"{len(np.unique(p))}",
            hint=(
                "On fewer, a logistic regression with an intercept and a slope has nothing to test"
            ),
        )
    degree = len(fit.coef) - 1
    rest = degree, fit.coef, fit.covariance, held_out, fit
    return PolynomialTest(fit.statistic, fit.pvalue, *rest)


def warn_of_certain_and_wrong(p: FloatArray, hit: FloatArray, what: str) -> None:
    """Give a `CalibrationWarning` where a prediction of 0 or 1 is wrong: `what` rests on it."""
    wrong = int(((hit != p) & ((p == 0) | (p == 1))).sum())
    if wrong:
        warn_calibration(
            expected="no certain prediction that is wrong",
            got=f"{wrong} of {len(p)} rows with probability 0 or 1 and the other outcome",
            hint=f"Each counts as 1.2e-38, and {what}: clip such predictions if they are rounded",
        )
