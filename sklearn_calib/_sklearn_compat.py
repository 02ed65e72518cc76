"""The only file that imports private scikit-learn names."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_method_params as check_method_params

from ._typing import Function

try:
    from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
except ImportError:  # pragma: no cover - a later scikit-learn may move it
    from sklearn import get_config

    def routing_enabled() -> bool:
        return get_config().get("enable_metadata_routing", False)


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9: no callbacks, fits are silent

    class CallbackSupportMixin:  # type: ignore[no-redef]
        pass

    def with_callbacks(method: Function) -> Function:
        return method


def mixed_penalties(
    penalty: str | None, strength: float, l1_ratio: float | None
) -> dict[str, float]:
    """(l2, l1) of a penalty by its name, as a dict."""
    if penalty in (None, "none"):
        return {"l2": 0.0, "l1": 0.0}
    ratio = {"l2": 0.0, "l1": 1.0}.get(penalty, l1_ratio or 0.0)
    return {"l2": strength * (1 - ratio), "l1": strength * ratio}


def logistic_penalties(model: Any) -> dict[str, float]:
    """The same of a LogisticRegression; from version 1.8 on l1_ratio and C say it all."""
    penalty = getattr(model, "penalty", "deprecated")
    if penalty == "deprecated":
        penalty = "elasticnet" if float("inf") > model.C else None
    return mixed_penalties(penalty, 1 / model.C, getattr(model, "l1_ratio", None))


@contextmanager
def callback_fit(estimator: Any, n_tasks: int, X: Any, y: Any) -> Iterator[Any]:
    """The callback context of a fit made of `n_tasks` sub-fits; None before scikit-learn 1.9."""
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    context = estimator._init_callback_context(max_subtasks=n_tasks, sequential_subtasks=False)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    yield context
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y)


def callback_tasks(context: Any, n_tasks: int, name: str) -> list[Any]:
    """One context a sub-fit, made before they are sent to other processes."""
    if context is None:
        return [None] * n_tasks
    return [context.subcontext(task_name=name, task_id=i) for i in range(n_tasks)]


@contextmanager
def callback_task(context: Any, caller: Any, sub_estimator: Any, X: Any, y: Any) -> Iterator[None]:
    """Report one sub-fit, and let the sub-estimator report into it where it can."""
    if context is None:
        yield
        return
    able = hasattr(sub_estimator, "set_callbacks")
    with context.propagate_callback_context(sub_estimator) if able else nullcontext():
        context.call_on_fit_task_begin(estimator=caller, X=X, y=y)
        yield
    context.call_on_fit_task_end(estimator=caller, X=X, y=y)


__all__ = [
    "BaseScorer",
    "CallbackSupportMixin",
    "callback_fit",
    "callback_task",
    "callback_tasks",
    "check_feature_names",
    "check_method_params",
    "routing_enabled",
    "safe_split",
    "with_callbacks",
]
