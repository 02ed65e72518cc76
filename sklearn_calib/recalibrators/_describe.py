"""How fitted recalibrators describe themselves: trees of nodes, plain dicts.

What the nodes mean is said in `sklearn_calib.export`, which reads them.
"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._simplex import least_rounding_above, two_classes_of_margin
from .._typing import AnyArray, Estimator, FloatArray
from ..exceptions import meant, refuse
from ._base import Recalibrator

Tree = dict[str, Any]

IDENTITY: Tree = {"node": "identity"}
_LOG_OF_ZERO = -40.0  # in tables; lines to it from other values must not be too steep

UNIFORM: Tree = {"node": "uniform"}


def map_nodes(fitted: Estimator, where: str) -> Tree:
    """The map of a fitted recalibrator, or of a pipeline of them, as a tree of nodes.

    Parameters
    ----------
    fitted : recalibrator or Pipeline
    where : str
        Begins the error messages.

    Raises
    ------
    TypeError
        What is neither.
    ValueError
        A method that declares in ``capabilities.not_exported`` why it cannot be described.
    """
    if isinstance(fitted, Pipeline):
        steps = [part for _, part in fitted.steps if part not in (None, "passthrough")]
        return chain(*(map_nodes(part, where) for part in steps)) if steps else IDENTITY
    if not isinstance(fitted, Recalibrator):
        cure = "Other estimators cannot be written as a map"
        if hasattr(fitted, "calibrated_pairs_") or hasattr(fitted, "recalibrator_"):
            cure = f"Pass the map on its scores alone, {where}(model.recalibrator_)"
            if not hasattr(fitted, "recalibrator_"):
                cure = "Pass the map of one fold, model.calibrated_pairs_[0].recalibrator, or fit "
                cure += "with ensemble=False, which makes one map, model.recalibrator_"
        rule = "a recalibrator of this package, or a pipeline of them"
        refuse(where, rule, type(fitted).__name__, cure, error=TypeError)
    check_is_fitted(fitted)
    if reason := fitted.capabilities.not_exported:
        refuse(where, "a method that can be written as nodes", type(fitted).__name__, reason)
    return chain(*fitted._all_nodes())


def chain(*trees: Tree) -> Tree:
    """One node after the other; chains inside are opened."""
    parts: list[Tree] = []
    for tree in trees:
        parts += tree["parts"] if tree["node"] == "chain" else [tree]
    return parts[0] if len(parts) == 1 else {"node": "chain", "parts": parts}


def mixture(weights: FloatArray, trees: list[Tree]) -> Tree:
    """The weighted mean of parts, without those of weight 0."""
    kept = [(float(w), tree) for w, tree in zip(weights, trees, strict=True) if w > 0]
    if len(kept) == 1:
        return kept[0][1]
    return {"node": "mixture", "weights": [w for w, _ in kept], "parts": [t for _, t in kept]}


def steps_of_rank(cuts: FloatArray, values: FloatArray, *, right_closed: bool) -> Tree:
    """A step function of `rank_score`, with edges for log-odds that are not rounded."""
    edges = least_rounding_above(cuts, inclusive=not right_closed)
    return steps("rank", edges, values)


def steps(score: str, edges: FloatArray, values: AnyArray) -> Tree:
    """A step function that contains its left edges; pieces between equal edges vanish."""
    kept = np.append(np.diff(edges) > 0, True)[: len(edges)]
    values = np.append(values[:1], np.asarray(values)[1:][kept])
    return {"node": "steps", "input": score, "edges": edges[kept], "values": values}


def constant(value: float) -> Tree:
    """The same probability of the second class for every row."""
    return {"node": "steps", "input": "proba", "edges": [], "values": [float(value)]}


def curve(
    score: str,
    fitted: Any,
    *,
    points: FloatArray | None = None,
    piece: Callable[[FloatArray], AnyArray] | None = None,
) -> Tree:
    """A method for two classes whose map has no finite form: to be tabulated.

    It may jump between `points` where the number that `piece` gives to log-odds changes.
    """

    def function(log_odds):
        """Log-odds of the result."""
        found = fitted._predict_proba(two_classes_of_margin(log_odds))
        with np.errstate(divide="ignore"):
            log = np.where(found > 0, np.log(found), _LOG_OF_ZERO)
        return log[:, 1] - log[:, 0]

    return {
        "node": "curve",
        "input": score,
        "name": type(fitted).__name__,
        "function": function,
        "points": [] if points is None else points,
        "piece": piece or (lambda log_odds: np.zeros(len(log_odds))),
    }


def linear_in_proba(log_odds: FloatArray, values: FloatArray) -> Tree:
    """What `interpolated` computes from rank scores."""
    if len(log_odds) == 1:
        return constant(values[0])
    return {
        "node": "piecewise_linear",
        "input": "rank",
        "ties": True,
        "scale": "proba",
        "domain": log_odds[[0, -1]],
        "knots": log_odds,
        "values": values,
    }


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


def suggestion(name: str, names: Collection[str], prefix: str = "") -> str | None:
    """What to write for a name that is not among `names`; None where nothing is near."""
    plain = _plain(str(name))
    same = {_plain(other): found for other, found in ELSEWHERE.items()}.get(plain)
    if same and same[0] in names:
        return f"Write {prefix}{same[0]!r}, the same as {same[1]}"
    return meant(name, names, "", prefix) or None


def _plain(name):
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
