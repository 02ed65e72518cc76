"""The only file that imports private scikit-learn names; what its estimators share below them."""

import copy
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils import get_tags
from sklearn.utils._array_api import _convert_to_numpy, _max_precision_float_dtype, get_namespace
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_method_params
from threadpoolctl import ThreadpoolController

from ._typing import AnyArray, Estimator, Function

_MANY_GROUPS = 5000  # at some 0.3 ms each


class StratifiedGroups(StratifiedGroupKFold):
    """Folds of whole groups, as its base; many groups in the time of a sort.

    Each of many groups is a row of `StratifiedKFold` with the rarest of its classes as label.
    """

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        """The pairs (train, test) of rows."""
        number = None if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
        if number is None or number.max(initial=0) < _MANY_GROUPS:
            yield from super().split(X, y, groups)
            return
        _, codes, rows = np.unique(y, return_inverse=True, return_counts=True)
        order = np.lexsort((rows[codes], number))
        first = np.append(True, np.diff(number[order]) > 0)
        rarest = codes[order[first]]
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        for _, chosen in folds.split(rarest, rarest):
            held_out = np.isin(number, chosen)
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def clone_by_value(estimator: Any) -> Any:
    """Clone an estimator, also if its constructor copies what it is given.

    scikit-learn asks that a parameter is the same object afterwards; CatBoost copies
    ``cat_features``. Here equal parameters will do, at any depth. RuntimeError where they differ.
    """
    try:
        return clone(estimator)
    except RuntimeError:
        return rebuilt(estimator)


def rebuilt(estimator: Any) -> Any:
    """Build the same estimator again from copies of its parameters."""
    given = {name: _copied(value) for name, value in estimator.get_params(deep=False).items()}
    fresh = type(estimator)(**given)
    kept = fresh.get_params(deep=False)
    for name in given:
        if name not in kept or not _same(kept[name], given[name]):
            raise RuntimeError(f"the constructor of {type(estimator).__name__} changes {name}")
    for name in ("_metadata_request", "_skl_callbacks", "_sklearn_output_config"):
        if hasattr(estimator, name):
            setattr(fresh, name, copy.copy(getattr(estimator, name)))
    return fresh


def _copied(value):
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    if not hasattr(value, "get_params") or isinstance(value, type):
        return copy.deepcopy(value)
    own = getattr(type(value), "__sklearn_clone__", None)  # of a FrozenEstimator: itself
    return rebuilt(value) if own in (None, BaseEstimator.__sklearn_clone__) else clone(value)


def _same(one, other):
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


class ClassifierAround(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier around another one, ``estimator``: its tags, its routing and its features."""

    estimator: Estimator
    classes_: AnyArray
    n_features_in_: int
    feature_names_in_: AnyArray

    def get_metadata_routing(self) -> Any:
        """Return the metadata that fit takes: its own, and those of the wrapped classifier."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not hasattr(getattr(self.estimator, "estimator", self.estimator), "__sklearn_tags__"):
            return tags  # a model of another library in a FrozenEstimator
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags

    def _remember_features(self, estimator):
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))


try:
    from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
except ImportError:  # pragma: no cover - a later scikit-learn may move it

    def routing_enabled() -> bool:
        return get_config().get("enable_metadata_routing", False)


_JUDGED_ON = (  # what learners call rows of their own to be judged on, and what belongs to these
    "eval_set", "eval_X", "eval_y", "X_val", "y_val", "sample_weight_val",
    "sample_weight_eval_set", "base_margin_eval_set", "eval_sample_weight", "eval_init_score",
)  # fmt: skip


def check_method_params(X: Any, params: dict[str, Any], indices: Any = None) -> dict[str, Any]:
    """Select rows of parameters with one entry per row of X; others stay complete.

    scikit-learn itself goes by the length alone: ``eval_X`` of as many rows as X would be cut.
    """
    whole = {name: params[name] for name in params if name.rpartition("__")[2] in _JUDGED_ON}
    others = {name: value for name, value in params.items() if name not in whole}
    return {**_check_method_params(X, params=others, indices=indices), **whole}


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9: no callbacks, fits are silent

    class CallbackSupportMixin:  # type: ignore[no-redef]
        pass

    def with_callbacks(method: Function) -> Function:
        return method


def array_namespace(values: Any) -> Any:
    """Return the array API of a foreign array; None if scikit-learn does not dispatch.

    Also None for numpy's own, and for JAX, whose arrays cannot be written to.
    """
    if isinstance(values, np.ndarray | np.generic | list | tuple | float | int):
        return None  # what is nearly always given: one look
    if not get_config().get("array_api_dispatch", False):
        return None
    if not (hasattr(values, "device") and hasattr(values, "dtype")) or hasattr(values, "iloc"):
        return None
    xp = get_namespace(values)[0]
    return None if any(name in xp.__name__ for name in ("numpy", "jax")) else xp


def host_array(values: Any, xp: Any) -> AnyArray:
    """Convert a foreign array to numpy, without a copy if it is on the host."""
    values = values.detach() if hasattr(values, "detach") else values
    if "bfloat16" in str(values.dtype):  # numpy has no such numbers; float32 holds them exactly
        values = xp.astype(values, xp.float32)
    return _convert_to_numpy(values, xp)


def beside(values: AnyArray, X: Any) -> Any:
    """Convert numbers to the library and device of `X` if scikit-learn dispatches to it."""
    xp = array_namespace(X)
    numbers = values.dtype.kind in "biuf"
    return values if xp is None or not numbers else xp.asarray(values, device=X.device)


def widest_float(xp: Any, device: Any) -> Any:
    """Return float64, or float32 on devices without it."""
    return _max_precision_float_dtype(xp, device)


def mixed_penalties(
    penalty: str | None, strength: float, l1_ratio: float | None
) -> dict[str, float]:
    """Return the l2 and l1 strength of a penalty by its name, as a dict."""
    if penalty in (None, "none"):
        return {"l2": 0.0, "l1": 0.0}
    ratio = {"l2": 0.0, "l1": 1.0}.get(penalty, l1_ratio or 0.0)
    return {"l2": strength * (1 - ratio), "l1": strength * ratio}


def logistic_penalties(model: Any) -> dict[str, float]:
    """Return `mixed_penalties` of a LogisticRegression.

    From 1.8 on l1_ratio and C suffice.
    """
    penalty = getattr(model, "penalty", "deprecated")
    if penalty == "deprecated":
        penalty = "elasticnet" if float("inf") > model.C else None
    return mixed_penalties(penalty, 1 / model.C, getattr(model, "l1_ratio", None))


@contextmanager
def callback_fit(estimator: Any, n_tasks: int, X: Any, y: Any) -> Iterator[Any]:
    """Yield the callback context of a fit with `n_tasks` sub-fits.

    None before version 1.9.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    context = estimator._init_callback_context(max_subtasks=n_tasks, sequential_subtasks=False)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    yield context
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y)


def callback_tasks(context: Any, n_tasks: int, name: str) -> list[Any]:
    """Return one context per sub-fit, made before they are sent to other processes."""
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
    "array_namespace",
    "callback_fit",
    "callback_task",
    "callback_tasks",
    "check_feature_names",
    "check_method_params",
    "clone_by_value",
    "host_array",
    "rebuilt",
    "routing_enabled",
    "safe_indexing",
    "safe_split",
    "widest_float",
    "with_callbacks",
]


# -- threads of BLAS ------------------------------------------------------------------------------

# OpenBLAS shares a product of 100 x 100 numbers between two threads. The second one then spins
# for some 20 ms in the hope of more, and where the other core is busy the first waits for it: a
# fit that calls BLAS a thousand times took fifteen times as long (``benchmarks/threads``).

NEVER_SHARED = 2048  # numbers: of so few BLAS does not share a product, and they are fast
_WIDE = (
    200  # classes from which a second thread pays: of a million rows and two classes it does not
)


class _OneThread:
    """One thread of BLAS in the block: the first that enters sets it, the last that leaves ends it.

    10 us, and 2 ms the first time.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.set: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.set = _blas().limit(limits=1)
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.set.restore_original_limits()


one_thread = _OneThread()


def threads_for(n_rows: int, n_classes: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread, unless a table of rows is large enough for more."""
    small = n_rows * n_classes < NEVER_SHARED
    return nullcontext() if small or n_classes >= _WIDE else one_thread


@cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which has to be found

    return ThreadpoolController().select(user_api="blas")
