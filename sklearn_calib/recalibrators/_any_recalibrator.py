"""Fits and predictions of any recalibrator: a name, an instance, a pipeline, a classifier."""

from collections.abc import Collection
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._sklearn_compat import routing_enabled
from .._spelling import suggest_name
from .._typing import (
    AnyArray,
    ArrayLike,
    Estimator,
    FloatArray,
    IntArray,
    RecalibratorLike,
)
from .._validation import align_columns, get_present_ordered_categories
from ..exceptions import invalid_input

#: Other name -> (name here, where it is called so).
RECALIBRATOR_BY_OTHER_NAME = {
    "sigmoid": ("platt", "scikit-learn's method='sigmoid'"),
    "logistic": ("platt", "logistic calibration of one score"),
    "logistic_calibration": ("platt", "netcal's LogisticCalibration"),
    "temperature_scaling": ("temperature", "temperature scaling"),
    "ts": ("temperature", "temperature scaling"),
    "ts_mix": ("temperature", "probmetrics' temperature scaling"),
    "histogram": ("histogram_binning", "histogram binning"),
    "binning": ("histogram_binning", "histogram binning"),
    "isotonic_regression": ("isotonic", "netcal's IsotonicRegression"),
    "beta_calibration": ("beta", "netcal's BetaCalibration"),
    "near_isotonic_regression": ("near_isotonic", "netcal's NearIsotonicRegression"),
    "ivap": ("venn_abers", "the inductive Venn-Abers predictor"),
    "svs": ("structured_vector", "probmetrics' SVS"),
    "sms": ("structured_matrix", "probmetrics' SMS"),
    "rpr": ("restricted_polynomial", "restricted polynomial regression"),
    "elite": (
        "trend_filtering_ensemble",
        "ELiTE, the ensemble of linear trend estimates",
    ),
    "none": ("identity", "scores left as they are"),
    "bins": ("n_bins", "netcal's bins="),
}


def resolve_recalibrator(
    recalibrator: RecalibratorLike, *, input_name: str = "recalibrator"
) -> Estimator:
    """Return an unfitted copy of a recalibrator given by name or as an instance.

    Errors name the argument `input_name`.
    """
    if isinstance(recalibrator, str):
        from . import get_recalibrator

        return get_recalibrator(recalibrator)
    if isinstance(recalibrator, type) or not (
        hasattr(recalibrator, "fit") and hasattr(recalibrator, "predict_proba")
    ):
        raise invalid_input(
            input_name,
            expected="a recalibrator: a name or an instance with fit and predict_proba",
            got=repr(recalibrator),
            hint="See sklearn_calib.recalibrators.all_recalibrators()",
            error=TypeError,
        )
    return clone(recalibrator)


def fit_recalibrator(
    recalibrator: Estimator, proba: FloatArray, y: ArrayLike, **arguments: Any
) -> Estimator:
    """Fit any recalibrator in place on scores and labels, with the arguments it accepts."""
    return recalibrator.fit(
        proba, y, **select_and_request_fit_arguments(recalibrator, **arguments)
    )


def fit_validated(
    recalibrator: Estimator,
    proba: FloatArray,
    y_encoded: IntArray,
    classes: AnyArray,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ordered_labels: Any = None,
    **metadata: Any,
) -> Estimator:
    """Fit an unfitted recalibrator in place to canonical scores and encoded labels.

    Those of this package do not validate them again; others are fitted as scikit-learn
    does it.

    Parameters
    ----------
    recalibrator : recalibrator, pipeline of recalibrators or classifier
    proba : ndarray of shape (n_samples, n_classes), float64
    y_encoded : ndarray of shape (n_samples,), intp
        Positions among `classes`.
    classes : ndarray of shape (n_classes,)
    sample_weight, groups : array-like of shape (n_samples,), default=None
        Passed to those that take them.
    ordered_labels : Categorical of shape (n_samples,), default=None
        The labels as they were given, if their categories are ordered.
    **metadata
        What else the fit takes.
    """
    # Only classes of this package that do not override `fit` may skip its checks;
    # everything else is called as a user would.
    if metadata or not _can_skip_validation(type(recalibrator)):
        y = classes[y_encoded] if ordered_labels is None else ordered_labels
        arguments = select_and_request_fit_arguments(
            recalibrator,
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            **metadata,
        )
        return recalibrator.fit(proba, y, **arguments)
    category_order = get_present_ordered_categories(ordered_labels, classes)
    return recalibrator._fit_validated(
        proba, y_encoded, classes, sample_weight, groups, category_order
    )


def _can_skip_validation(cls):
    """Return whether the class that defines `fit` also defines the part behind its checks."""
    owner = next((base for base in cls.__mro__ if "fit" in vars(base)), object)
    return "_fit_validated" in vars(owner)


def fit_clone(
    recalibrator: RecalibratorLike,
    proba: FloatArray,
    y_encoded: IntArray,
    classes: AnyArray,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Estimator:
    """Fit a copy of a recalibrator, given by name or as an instance, as `fit_validated` does."""
    method = resolve_recalibrator(recalibrator)
    return fit_validated(
        method,
        proba,
        y_encoded,
        classes,
        sample_weight=sample_weight,
        groups=groups,
    )


def select_and_request_fit_arguments(
    recalibrator: Estimator,
    *,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """Return what the fit of any recalibrator is called with: of the three what it understands.

    A `Pipeline` hands `sample_weight`, `classes` and `groups` to every step whose fit
    takes them. A plain scikit-learn classifier gets the probabilities as its features.
    """
    arguments = {"sample_weight": sample_weight, "classes": classes, "groups": groups}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    if not isinstance(recalibrator, Pipeline):
        return _select_accepted_params(recalibrator, arguments) | metadata
    accepted = {
        step: _select_accepted_params(estimator, arguments)
        for step, estimator in recalibrator.steps
    }
    # Without metadata routing a pipeline takes arguments of a step as `step__name`;
    # with it, the steps request them.
    if not routing_enabled():
        step_arguments = {}
        for step, own_arguments in accepted.items():
            for name, value in own_arguments.items():
                step_arguments[f"{step}__{name}"] = value
        return step_arguments | metadata
    for step, estimator in recalibrator.steps:
        if accepted[step]:
            estimator.set_fit_request(**dict.fromkeys(accepted[step], True))
    return arguments | metadata


def _select_accepted_params(estimator, params):
    """Return the parameters that an estimator's fit names."""
    names = signature(estimator.fit).parameters if hasattr(estimator, "fit") else ()
    return {name: value for name, value in params.items() if name in names}


def predict_proba_aligned(
    recalibrator: Estimator, proba: FloatArray, classes: AnyArray
) -> FloatArray:
    """Return predictions of any fitted recalibrator with one column for each of `classes`."""
    predicted = np.asarray(recalibrator.predict_proba(proba), dtype=np.float64)
    # The usual case: the object that was passed to `fit`, which makes a comparison of
    # the labels unnecessary.
    if recalibrator.classes_ is classes:
        return predicted
    return align_columns(predicted, recalibrator.classes_, classes)


def make_method_name_hint(
    name: str, names: Collection[str], prefix: str = ""
) -> str | None:
    """Return what to write for a name that is not among `names`; None if nothing is near."""
    normalized = _lower_and_strip_separators(str(name))
    same = {
        _lower_and_strip_separators(other): own_name
        for other, own_name in RECALIBRATOR_BY_OTHER_NAME.items()
    }.get(normalized)
    if same and same[0] in names:
        return f"Write {prefix}{same[0]!r}, the same as {same[1]}"
    return suggest_name(name, names, "", prefix) or None


def _lower_and_strip_separators(name):
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
