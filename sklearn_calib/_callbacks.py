"""Callbacks of scikit-learn around fits; versions before 1.9 have none."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ._typing import Function

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        pass

    def with_callbacks(method: Function) -> Function:
        return method


@contextmanager
def report_fit(estimator: Any, n_tasks: int, X: Any, y: Any) -> Iterator[Any]:
    """Report a fit of `n_tasks` sub-fits and yield its context, None before scikit-learn 1.9."""
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    context = estimator._init_callback_context(
        max_subtasks=n_tasks, sequential_subtasks=False
    )
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    yield context
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y)


def make_task_contexts(context: Any, n_tasks: int, name: str) -> list[Any]:
    """Return one context per sub-fit, made before they are sent to other processes."""
    if context is None:
        return [None] * n_tasks
    return [context.subcontext(task_name=name, task_id=i) for i in range(n_tasks)]


@contextmanager
def report_task(
    context: Any, caller: Any, sub_estimator: Any, X: Any, y: Any
) -> Iterator[None]:
    """Report one sub-fit, and let the sub-estimator report into it if it can."""
    if context is None:
        yield
        return
    propagated = nullcontext()
    if hasattr(sub_estimator, "set_callbacks"):
        propagated = context.propagate_callback_context(sub_estimator)
    with propagated:
        context.call_on_fit_task_begin(estimator=caller, X=X, y=y)
        yield
    context.call_on_fit_task_end(estimator=caller, X=X, y=y)


__all__ = [
    "CallbackSupportMixin",
    "make_task_contexts",
    "report_fit",
    "report_task",
    "with_callbacks",
]
