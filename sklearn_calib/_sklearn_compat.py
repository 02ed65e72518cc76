"""The only file that imports private names of scikit-learn."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import optimize
from sklearn import get_config
from sklearn.isotonic import isotonic_regression
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._array_api import (
    _convert_to_numpy,
    _max_precision_float_dtype,
    get_namespace,
)
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import (
    _check_feature_names as check_feature_names,
    _check_method_params,
)

from ._typing import AnyArray

try:
    from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
except ImportError:  # pragma: no cover - a later scikit-learn may move it

    def routing_enabled() -> bool:
        return get_config().get("enable_metadata_routing", False)


#: Constraints of parameters, for ``_parameter_constraints``.
NONNEGATIVE_REAL = Interval(Real, 0, None, closed="left")
POSITIVE_REAL = Interval(Real, 0, None, closed="neither")
OPEN_UNIT_INTERVAL = Interval(Real, 0, 1, closed="neither")
NONNEGATIVE_INTEGER = Interval(Integral, 0, None, closed="left")
POSITIVE_INTEGER = Interval(Integral, 1, None, closed="left")

#: Parameters for an evaluation set of a learner, and for columns of its rows.
_EVAL_SET_PARAMETERS = (
    "eval_set", "eval_X", "eval_y", "X_val", "y_val", "sample_weight_val",
    "sample_weight_eval_set", "base_margin_eval_set", "eval_sample_weight", "eval_init_score",
)  # fmt: skip


def check_method_params(
    X: Any, params: dict[str, Any], indices: Any = None
) -> dict[str, Any]:
    """Select rows of parameters with one entry per row of X; others stay complete.

    scikit-learn itself decides by the length alone: it would select rows of an
    ``eval_X`` with as many rows as X.
    """
    others = dict(params)
    eval_sets = {}
    for name in params:
        if name.rpartition("__")[2] in _EVAL_SET_PARAMETERS:
            eval_sets[name] = others.pop(name)
    return {**_check_method_params(X, params=others, indices=indices), **eval_sets}


def fit_isotonic_shares(share: AnyArray, mass: AnyArray) -> AnyArray:
    """Fit increasing numbers in [0, 1] to shares, by least squares with these masses.

    scikit-learn checks its arguments at each call, which takes ten times as long as the
    fit of 100 shares: intervals by resampling fit hundreds of times.
    """
    # scipy has had the solver since 1.12.
    if hasattr(optimize, "isotonic_regression"):
        fit = optimize.isotonic_regression(share, weights=mass).x
    else:
        fit = isotonic_regression(share, sample_weight=mass)
    return fit.clip(0.0, 1.0)


def get_array_namespace_if_dispatched(values: Any) -> Any:
    """Return the array API of a foreign array; None if scikit-learn does not dispatch.

    Also None for numpy's own, and for JAX, whose arrays cannot be written to.
    """
    if isinstance(values, np.ndarray | np.generic | list | tuple | float | int):
        # Nearly all values are of these types, so this check comes first.
        return None
    if not get_config().get("array_api_dispatch", False):
        return None
    is_array = hasattr(values, "device") and hasattr(values, "dtype")
    # A table of pandas may have a device too.
    if not is_array or hasattr(values, "iloc"):
        return None
    xp = get_namespace(values)[0]
    # The name of `jax.numpy` contains "numpy", too.
    return None if "numpy" in xp.__name__ else xp


def to_numpy(values: Any, xp: Any) -> AnyArray:
    """Convert a foreign array to numpy, without a copy if it is on the host."""
    values = values.detach() if hasattr(values, "detach") else values
    # Numpy has no bfloat16; float32 holds its numbers exactly.
    if "bfloat16" in str(values.dtype):
        values = xp.astype(values, xp.float32)
    return _convert_to_numpy(values, xp)


def convert_to_namespace(values: AnyArray, X: Any) -> Any:
    """Convert numbers to the library and device of `X` if scikit-learn dispatches to it."""
    xp = get_array_namespace_if_dispatched(X)
    numbers = values.dtype.kind in "biuf"
    return values if xp is None or not numbers else xp.asarray(values, device=X.device)


def get_widest_float(xp: Any, device: Any) -> Any:
    """Return float64, or float32 on devices without it."""
    return _max_precision_float_dtype(xp, device)


__all__ = [
    "BaseScorer",
    "check_feature_names",
    "check_method_params",
    "get_array_namespace_if_dispatched",
    "get_widest_float",
    "routing_enabled",
    "safe_indexing",
    "safe_split",
    "to_numpy",
]
