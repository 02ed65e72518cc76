"""Fits and predictions of any recalibrator: a name, an instance, a pipeline, a classifier."""

from collections.abc import Collection
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._sklearn_compat import routing_enabled
from .._spelling import suggest_name
from .._typing import AnyArray, ArrayLike, Estimator, FloatArray, RecalibratorLike
from .._validation import align_columns
from ..exceptions import invalid_input

#: Other name -> (name here, where it is called so).
ELSEWHERE = {
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
    "elite": ("trend_filtering_ensemble", "ELiTE, the ensemble of linear trend estimates"),
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
    """Fit anyone's recalibrator in place on canonical scores, with `fit_arguments`."""
    return recalibrator.fit(proba, y, **fit_arguments(recalibrator, **arguments))


def fit_clone(
    recalibrator: RecalibratorLike,
    proba: FloatArray,
    y: ArrayLike,
    classes: ArrayLike,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Estimator:
    """A copy of a recalibrator given by name or as an instance, fitted on canonical scores."""
    method = resolve_recalibrator(recalibrator)
    given = {"classes": classes, "sample_weight": sample_weight, "groups": groups}
    return fit_recalibrator(method, proba, y, **given)


def fit_arguments(
    recalibrator: Estimator,
    *,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """What the fit of anyone's recalibrator is called with: of the three what it understands.

    A `Pipeline` hands `sample_weight`, `classes` and `groups` to every step whose fit takes them. A
    plain scikit-learn classifier gets the probabilities as its features.
    """
    known = {"sample_weight": sample_weight, "classes": classes, "groups": groups}
    known = {name: value for name, value in known.items() if value is not None}
    if not isinstance(recalibrator, Pipeline):
        return _accepted(recalibrator, known) | metadata
    accepted = {step: _accepted(part, known) for step, part in recalibrator.steps}
    if not routing_enabled():
        of_steps = {
            f"{step}__{name}": value for step in accepted for name, value in accepted[step].items()
        }
        return of_steps | metadata
    for step, part in recalibrator.steps:
        if accepted[step]:
            part.set_fit_request(**dict.fromkeys(accepted[step], True))
    return known | metadata


def _accepted(estimator, params):
    """The parameters that an estimator's fit names."""
    names = signature(estimator.fit).parameters if hasattr(estimator, "fit") else ()
    return {name: value for name, value in params.items() if name in names}


def predict_proba_aligned(
    recalibrator: Estimator, proba: FloatArray, classes: AnyArray
) -> FloatArray:
    """Predictions of anyone's fitted recalibrator with one column for each of `classes`."""
    predicted = np.asarray(recalibrator.predict_proba(proba), dtype=np.float64)
    return align_columns(predicted, recalibrator.classes_, classes)


def suggest_method_name(name: str, names: Collection[str], prefix: str = "") -> str | None:
    """What to write for a name that is not among `names`; None where nothing is near."""
    plain = _plain(str(name))
    same = {_plain(other): found for other, found in ELSEWHERE.items()}.get(plain)
    if same and same[0] in names:
        return f"Write {prefix}{same[0]!r}, the same as {same[1]}"
    return suggest_name(name, names, "", prefix) or None


def _plain(name):
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
