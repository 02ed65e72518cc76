"""Adapters for estimators of users: prefitted, from other libraries, or not clonable."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    is_outlier_detector,
    is_regressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._clone import clone_comparing_by_value
from .._typing import AnyArray, Estimator, Features, FloatArray, Self
from ..exceptions import invalid_input
from ._classifier_scores import is_xgboost_or_lightgbm


class ModelWithInferredClasses(ClassifierMixin, BaseEstimator):
    """A fitted model without ``classes_``, with the classes of the labels.

    Parameters
    ----------
    model : object
        With ``predict_proba``, a ``predict`` that returns probabilities, or callable; a
        Booster of XGBoost, whose ``predict`` takes a DMatrix alone, with its
        ``inplace_predict``.
    classes : ndarray of shape (n_classes,)
    """

    def __init__(self, model: Estimator, classes: AnyArray) -> None:
        self.model = model
        self.classes = classes

    @property
    def classes_(self) -> AnyArray:
        return self.classes

    def fit(self, X: Features, y: object = None) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Features) -> FloatArray:
        """Return probabilities by the first method of the model that exists."""
        # The method `inplace_predict` is XGBoost's.
        names = (
            "predict_proba",
            "inplace_predict",
            "predict",
            "__call__",
        )
        # The first method that exists, from the most specific one on.
        name = next(name for name in names if hasattr(self.model, name))
        try:
            proba = getattr(self.model, name)(X)
        except TypeError as error:
            if not _is_torch_module(self.model):
                raise
            raise invalid_input(
                expected="a model that takes X",
                got=f"a module of torch ({error})",
                hint=_TORCH_MODULE_HINT,
                error=TypeError,
            ) from error
        # Only tensors of torch have `detach`.
        proba = proba.detach().cpu() if hasattr(proba, "detach") else proba
        proba = np.asarray(proba)
        # One column is the probability of the second class.
        columns = 2 if proba.ndim == 1 else max(2, proba.shape[-1])
        # The `predict` of most libraries returns labels, which look like certain
        # probabilities.
        if name == "predict" and proba.dtype.kind != "f":
            raise invalid_input(
                expected="a model without classes_ whose predict returns probabilities",
                got=f"{proba.dtype} values",
                hint=(
                    "Set model.classes_ if it has predict_proba, or pass a function: "
                    "FrozenEstimator(lambda X: probabilities of X)"
                ),
            )
        if columns != len(self.classes):
            raise invalid_input(
                expected=(
                    f"labels of {columns} classes, one for each column of a model without classes_"
                ),
                got=f"{len(self.classes)} classes, {self.classes[:10].tolist()}",
                hint="Set model.classes_ to all classes in the order of the columns",
            )
        return proba


def _is_torch_module(model):
    packages = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    return "torch" in packages


def add_classes_to_frozen(
    estimator: Estimator, classes_of_labels: Callable[[], AnyArray]
) -> Estimator:
    """Return a FrozenEstimator with its classes, which come from the labels if need be."""
    inner = estimator.estimator
    of_scikit_learn = hasattr(inner, "__sklearn_tags__")
    if of_scikit_learn:
        check_is_fitted(estimator)
    has_classes = _has_classes(inner)
    names = ("predict_proba", "decision_function" if has_classes else "predict")
    is_detector = of_scikit_learn and is_outlier_detector(inner)
    is_function = callable(inner) and not has_classes
    has_scores = is_function or any(hasattr(inner, name) for name in names)
    if is_detector or not has_scores:
        raise invalid_input(
            expected=(
                "a fitted classifier, a model whose predict returns probabilities, or a "
                "function of X"
            ),
            got=repr(inner),
            hint=_TORCH_MODULE_HINT
            if _is_torch_module(inner)
            else _OUTLIER_DETECTOR_HINT,
            error=TypeError,
        )
    if has_classes:
        return estimator
    return FrozenEstimator(ModelWithInferredClasses(inner, classes_of_labels()))


_TORCH_MODULE_HINT = (
    "Pass a function of X that gives probabilities, for instance FrozenEstimator(lambda X: "
    "module(torch.as_tensor(X, dtype=torch.float32)).softmax(dim=1))"
)
_REGRESSION_HINT = (
    "Counts, amounts and times are out of scope: choose a threshold, and fit a classifier to "
    "whether y is above it, y = (y > threshold).astype(int)"
)
_OUTLIER_DETECTOR_HINT = (
    "For the scores of an outlier detector fit a recalibrator on them, for instance "
    "PlattScaling().fit(canonical_proba(-model.score_samples(X), kind='logits'), y)"
)


def check_gives_proba(
    model: Any, call: str, rule: str = "a fitted classifier with predict_proba"
) -> None:
    """Raise an error with the call to write for a model without ``predict_proba``.

    `call` is what takes its probabilities instead, ``{}`` standing for them.
    """
    if hasattr(model, "predict_proba") and not isinstance(model, type):
        return
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    end = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner
    got = f"{type(end).__name__}, which has no predict_proba"
    if isinstance(inner, type):
        got = f"the class {inner.__name__}"
        hint = "Make one of it, fit it and pass that"
    elif hasattr(end, "__sklearn_tags__") and is_outlier_detector(end):
        got = f"{type(end).__name__}, which learns no labels"
        hint = f"{_OUTLIER_DETECTOR_HINT}, and write {call.format('its probabilities')}"
    elif hasattr(inner, "decision_function"):
        hint = (
            "Give it probabilities: CalibratedModel(FrozenEstimator(model)).fit(X, y) with rows "
            "that it has not seen; from sklearn.frozen import FrozenEstimator"
        )
    elif hasattr(inner, "predict") and not hasattr(inner, "__sklearn_tags__"):
        hint = f"If its predict gives probabilities, write {call.format('model.predict(X)')}"
    elif callable(inner):
        hint = f"If it gives probabilities, write {call.format('model(X)')}"
    else:
        hint = f"Compute probabilities and write {call.format('probabilities')}"
    raise invalid_input(expected=rule, got=got, hint=hint, error=TypeError)


def check_refittable_classifier(estimator: object) -> None:
    """Raise TypeError for models without FrozenEstimator that cannot be fitted again here."""
    if isinstance(estimator, type | FrozenEstimator):
        return
    ends = [estimator.steps[-1][1]] if isinstance(estimator, Pipeline) else [estimator]
    if hasattr(ends[0], "__sklearn_tags__") and is_outlier_detector(ends[0]):
        raise invalid_input(
            expected="a classifier",
            got=f"{type(ends[0]).__name__}, which learns no labels",
            hint=_OUTLIER_DETECTOR_HINT,
            error=TypeError,
        )
    able = any(
        hasattr(estimator, name) for name in ("predict_proba", "decision_function")
    )
    if not able and hasattr(ends[0], "__sklearn_tags__") and is_regressor(ends[0]):
        raise invalid_input(
            expected="a classifier",
            got=f"{type(ends[0]).__name__}, which predicts numbers",
            hint=_REGRESSION_HINT,
            error=TypeError,
        )
    if (hasattr(estimator, "fit") and able) or hasattr(estimator, "get_params"):
        return
    if able or hasattr(estimator, "predict") or callable(estimator):
        raise invalid_input(
            expected=(
                "a classifier in the manner of scikit-learn, or a fitted model in a FrozenEstimator"
            ),
            got=f"{type(estimator).__name__}, which has no predict_proba or no fit",
            hint=(
                "Fit it, and write FrozenEstimator(model) for it, with rows that it has "
                "not seen; from sklearn.frozen import FrozenEstimator"
            ),
            error=TypeError,
        )


def clone_or_raise(estimator: Estimator) -> Estimator:
    """Return an unfitted clone, or raise an error with an alternative."""
    try:
        return clone_comparing_by_value(estimator)
    except RuntimeError as error:
        raise invalid_input(
            expected="an estimator that scikit-learn can clone",
            got=f"{type(estimator).__name__}, whose constructor changes its parameters ({error})",
            hint="Fit it yourself and pass FrozenEstimator(model) with rows of its own",
        ) from error


def loses_fit_when_cloned(estimator: Estimator) -> bool:
    """Return whether the estimator is fitted and a clone of it is not."""
    # Models that keep their fit when cloned are not affected.
    return _has_classes(estimator) and not _has_classes(clone_or_raise(estimator))


def _has_classes(model):
    classes = getattr(model, "classes_", None)
    return classes is not None and len(classes) > 0


def check_early_stopping_has_eval_set(
    estimator: Estimator, params: Mapping[str, object]
) -> None:
    """Raise ValueError if XGBoost or LightGBM is to stop early without rows to be judged on."""
    learner = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not is_xgboost_or_lightgbm(learner) or isinstance(learner, FrozenEstimator):
        return
    settings = learner.get_params()
    names = ("early_stopping_rounds", "early_stopping_round")
    reasons = [f"{name}={settings[name]}" for name in names if settings.get(name)]
    # In a pipeline the parameter has the prefix of its step.
    of_fit = (
        value
        for name, value in params.items()
        if name.rpartition("__")[2] == "callbacks"
    )
    fit_callbacks: Any = next(of_fit, None) or ()
    callbacks = [*(settings.get("callbacks") or ()), *fit_callbacks]
    reasons += [
        type(callback).__name__
        for callback in callbacks
        if "EarlyStopping" in type(callback).__name__
    ]
    if reasons and not any(name.endswith(("eval_set", "eval_X")) for name in params):
        raise invalid_input(
            expected="an eval_set for the early stopping",
            got=f"{reasons[0]} without one",
            hint=(
                "Pass fit(X, y, eval_set=[(X_valid, y_valid)]) with rows of their own, "
                "or leave the early stopping out: RefineThenCalibrateCV chooses the "
                "round by itself"
            ),
        )
