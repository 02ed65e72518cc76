"""The classifier calibrated by the angle to the truth."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from .._atomic import replace_state_after_fitting_copy
from .._random import make_random_state
from .._sklearn_compat import POSITIVE_REAL
from .._typing import ArrayLike, Estimator, Features, Link, RandomStateLike, Self
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ..linear import (
    check_angle_assumptions_and_get_fits,
    estimate_angle_from_fit,
    make_angular_recalibrator,
    make_unsupported_weights_error,
    refine_fits_and_update_own_model,
)
from ._base import BaseCalibratedClassifier, CalibratedPair


class AngularCalibratedClassifier(BaseCalibratedClassifier):
    """A linear classifier, calibrated from one fit without held-out rows (angular calibration).

    For two classes and about as many features as rows, or more: text, genomics,
    embeddings. The estimator is fitted on all rows; the angle between its coefficients
    and the true ones follows from the same rows, and with it the calibrated probability
    of a new one. If in doubt use ``CalibratedModel(estimator, "platt", cv="alo")``,
    which assumes no law of the features and no link.

    Parameters
    ----------
    estimator : classifier
        ``LogisticRegression``, ``RidgeClassifier``, ``LinearSVC`` without intercept,
        ``SGDClassifier``, or a pipeline that ends in one. A fit that stopped early is
        carried on to its minimum. In a FrozenEstimator: fitted on the same rows.
    link : {"logit", "probit", "clipped_relu"} or callable, default="logit"
        From the true score, of unit variance, to the probability.
    link_slope, link_intercept : float or "auto", default="auto"
        Within the link; "auto" by maximum likelihood from the leave-one-out scores.
    covariance : {"auto", "identity"}, array-like or estimator, default="auto"
        As in `estimate_angle`.
    sign : {"positive", "holdout", "cv"}, default="positive"
        Of the cosine. A fit to the labels points their way, but for the weakest
        signals, if neither a quarter of the rows held out nor 5 folds determine it
        either.
    assume_centered : bool, default=False
        Required for an estimator without intercept: the features have mean zero.
    random_state : int, Generator, RandomState or None, default=0
        For the split of the last two.

    Attributes
    ----------
    theta_, cos_theta_, inner_product_ : float
        The angle in radians, its cosine, and the inner product with the true
        coefficients, whose norm is 1 (all in the norm of the covariance).
    link_params_ : dict
        slope and intercept.
    platt_equivalent_ : tuple of float
        See `AngularCalibration`.
    method_ : str
        How the angle was found, see `AngleEstimate`.
    diagnostics_ : dict
        See `AngleEstimate`.
    estimator_, recalibrator_
        The fitted linear classifier and its `AngularCalibration`.
    calibrated_pairs_ : list of CalibratedPair
        These two.
    classes_ : ndarray of shape (2,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the estimator defines them.

    Raises
    ------
    ValueError, TypeError
        As `estimate_angle`.

    Warns
    -----
    CalibrationWarning
        As `estimate_angle`; a negative sign.

    Notes
    -----
    If the estimate of the angle is out of range, cosine, slope and intercept are all
    fitted by maximum likelihood to the leave-one-out scores. Cost: the fit, and that of
    `estimate_angle`.

    References
    ----------
    Li, Sur (2025), "Optimal and provable calibration in high-dimensional binary
    classification: angular calibration and Platt scaling", equations 3, 11 (corrected,
    see `estimate_angle`), 12.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.datasets import make_high_dimensional
    >>> from sklearn_calib.classifiers import AngularCalibratedClassifier
    >>> from sklearn_calib.metrics import log_loss
    >>> X, y, truth = make_high_dimensional(500, 1000, random_state=0)
    >>> model = AngularCalibratedClassifier(LogisticRegression(C=10), covariance=truth.covariance)
    >>> model = model.fit(X, y)
    >>> X_test, y_test = truth.draw(5000, random_state=1)
    >>> before = log_loss(y_test, model.estimator_.predict_proba(X_test))
    >>> log_loss(y_test, model.predict_proba(X_test)) < before
    True
    """

    theta_: float
    cos_theta_: float
    inner_product_: float
    link_params_: dict[str, Any]
    method_: str
    diagnostics_: dict[str, Any]

    recalibrator = "angular"
    cv = None
    _parameter_constraints: ClassVar = {
        "estimator": [HasMethods(["fit", "decision_function"])],
        "link": [StrOptions({"logit", "probit", "clipped_relu"}), callable],
        "link_slope": [POSITIVE_REAL, StrOptions({"auto"})],
        "link_intercept": [
            Interval(Real, None, None, closed="neither"),
            StrOptions({"auto"}),
        ],
        "covariance": [
            "array-like",
            HasMethods(["fit"]),
            StrOptions({"auto", "identity"}),
        ],
        "sign": [StrOptions({"positive", "holdout", "cv"})],
        "assume_centered": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        estimator: Estimator,
        *,
        link: Link = "logit",
        link_slope: float | Literal["auto"] = "auto",
        link_intercept: float | Literal["auto"] = "auto",
        covariance: ArrayLike | Estimator = "auto",
        sign: Literal["positive", "holdout", "cv"] = "positive",
        assume_centered: bool = False,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.estimator = estimator
        self.link = link
        self.link_slope = link_slope
        self.link_intercept = link_intercept
        self.covariance = covariance
        self.sign = sign
        self.assume_centered = assume_centered
        self.random_state = random_state

    def fit(self, X: Features, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit the classifier, and find the angle on the same rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two classes.
        **fit_params : dict
            For the estimator's fit; no weights.

        Returns
        -------
        self : object
        """
        with replace_state_after_fitting_copy(self) as new:
            context = new._make_context_and_set_classes(X, y, None, fit_params)
            # The theory of the angle is for equally weighted rows.
            if any(name.endswith("sample_weight") for name in context.estimator_params):
                raise make_unsupported_weights_error()
            if len(new.classes_) > 2:
                raise invalid_input(
                    expected="two classes. Only binary classification is supported",
                    got=f"{len(new.classes_)}, so that the type of the target is multiclass",
                    hint="Use CalibratedModel(cv='alo'), which takes more",
                )
            estimator, columns = context.fit_estimator_and_get_columns(context.all_rows)
            # The angle belongs to the estimator's second class, so all else follows the
            # estimator's order of the classes.
            new.classes_ = context.classes[columns]
            context = replace(
                context,
                classes=new.classes_,
                # The inverse of the permutation of the columns.
                y_encoded=np.argsort(columns)[context.y_encoded],
            )
            columns = context.all_columns
            model, fits, is_own_link = context.read_model_and_linear_fits(
                estimator, columns
            )
            fits = check_angle_assumptions_and_get_fits(
                fits, model, new.assume_centered
            )
            # The formulas of the angle hold at the exact minimum of the objective.
            [fit] = refine_fits_and_update_own_model(fits, model, is_own_link)
            # The inner product of equation 11, without the sign of equation 12.
            angle = estimate_angle_from_fit(fit, new.covariance)
            link = {
                "link": new.link,
                "link_slope": None if new.link_slope == "auto" else new.link_slope,
                "link_intercept": None
                if new.link_intercept == "auto"
                else new.link_intercept,
            }
            labels = context.classes[context.y_encoded]
            if new._has_negative_held_out_covariance(context):
                # The likelihood finds the size of the cosine; the sign is that of the
                # held-out rows.
                if angle.cos_theta is None:
                    likely = make_angular_recalibrator(
                        angle, labels, context.classes, link
                    )
                    angle = replace(angle, cos_theta=likely.cos_theta_)
                angle = replace(angle, cos_theta=-angle.cos_theta)
            recalibrator = make_angular_recalibrator(
                angle, labels, context.classes, link
            )
            new.calibrated_pairs_ = [CalibratedPair(estimator, recalibrator, columns)]
            new.cos_theta_ = recalibrator.cos_theta_
            # Equation 13.
            new.theta_ = recalibrator.theta_
            # Equation 2, solved for the inner product.
            new.inner_product_ = new.cos_theta_ * angle.norm
            new.link_params_ = {
                "slope": recalibrator.link_slope_,
                "intercept": recalibrator.link_intercept_,
            }
            new.method_ = angle.method
            new.diagnostics_ = angle.diagnostics
            new._copy_feature_names(estimator)
            return self

    @property
    def recalibrator_(self) -> Any:
        """The fitted `AngularCalibration`."""
        return self._get_only_calibrated_pair("recalibrator_").recalibrator

    @property
    def platt_equivalent_(self) -> tuple[float, float]:
        """Equation 9: (A, B) with link(slope * (A * (u - center) + B) + intercept)."""
        return self.recalibrator_.platt_equivalent_

    def _has_negative_held_out_covariance(self, fit_context):
        """Return whether scores and labels of rows left out have a negative covariance (eq. 12)."""
        if self.sign == "positive":
            return False
        split = (
            StratifiedShuffleSplit(
                1, test_size=0.25, random_state=make_random_state(self.random_state)
            )
            if self.sign == "holdout"
            else StratifiedKFold(
                5, shuffle=True, random_state=make_random_state(self.random_state)
            )
        )
        # The intercept differs between folds, so scores are centred in each of them.
        total = 0.0
        for train, test in split.split(
            np.zeros(len(fit_context.y_encoded)), fit_context.y_encoded
        ):
            fold, columns = fit_context.fit_estimator_and_get_columns(train)
            rows, y_encoded = fit_context.get_test_rows_and_learned_labels(
                columns, test
            )
            scores = fold.decision_function(
                fit_context.get_features_at_rows(fold, train, rows)
            )
            total += (scores - scores.mean()) @ y_encoded
        if total < 0:
            warn_calibration(
                expected="scores that rise with the labels of rows left out",
                got=f"a negative covariance (sign={self.sign!r})",
                hint=(
                    "The cosine is taken as negative; the signal is too weak to be sure of "
                    "either sign"
                ),
                estimator=self,
            )
        return total < 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
