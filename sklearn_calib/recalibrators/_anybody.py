"""Using a recalibrator that anyone may have written: a name, a pipeline, any classifier."""

from inspect import signature

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._sklearn_compat import routing_enabled
from ..exceptions import refuse


def resolve_recalibrator(recalibrator, where):
    """An unfitted copy of a recalibrator given by name or as an instance."""
    if isinstance(recalibrator, str):
        from . import get_recalibrator

        return get_recalibrator(recalibrator)
    if isinstance(recalibrator, type) or not (
        hasattr(recalibrator, "fit") and hasattr(recalibrator, "predict_proba")
    ):
        refuse(
            where,
            "a recalibrator: a name or an instance with fit and predict_proba",
            repr(recalibrator),
            "See sklearn_calib.recalibrators.recalibrator_names()",
            error=TypeError,
        )
    return clone(recalibrator)


def fit_recalibrator(recalibrator, proba, y, *, classes, sample_weight=None, **metadata):
    """Fit anyone's recalibrator in place on canonical scores, passing what it understands.

    A `Pipeline` hands `sample_weight` and `classes` to every step whose fit takes them. A plain
    scikit-learn classifier gets the probabilities as its features.
    """
    known = {"sample_weight": sample_weight, "classes": classes}
    known = {name: value for name, value in known.items() if value is not None}
    if not isinstance(recalibrator, Pipeline):
        known = _accepted(recalibrator, known)
    elif routing_enabled():
        for _, part in recalibrator.steps:
            requests = {name: True for name in _accepted(part, known)}
            if requests:
                part.set_fit_request(**requests)
    else:
        known = {
            f"{step}__{name}": value
            for step, part in recalibrator.steps
            for name, value in _accepted(part, known).items()
        }
    return recalibrator.fit(proba, y, **known, **metadata)


def _accepted(estimator, params):
    """The parameters that an estimator's fit names."""
    if not hasattr(estimator, "fit"):
        return {}
    names = signature(estimator.fit).parameters
    return {name: value for name, value in params.items() if name in names}


def aligned_proba(recalibrator, proba, classes):
    """Predictions of anyone's fitted recalibrator with one column for each of `classes`."""
    predicted = np.asarray(recalibrator.predict_proba(proba), dtype=np.float64)
    if len(recalibrator.classes_) == len(classes):
        return predicted
    aligned = np.zeros((len(predicted), len(classes)))
    aligned[:, np.searchsorted(classes, recalibrator.classes_)] = predicted
    return aligned
