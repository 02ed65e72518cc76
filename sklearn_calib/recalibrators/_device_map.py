"""A fitted map applied to tensors on their device, by the array API: no numpy, no compiled code."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._simplex import SMALLEST_PROBABILITY
from .._sklearn_compat import host_array
from .._typing import AnyArray
from ..canonical import DeviceScores, canonical_proba, device_scores
from ..exceptions import refuse, setting

Tree = dict[str, Any]
MOST_MIXED = 100  # maps in a mixture; one of `OnlineCalibration` has thousands


class _DeviceRows:
    """Some rows: probabilities, or logarithms that are exact, perhaps up to a constant a row."""

    def __init__(self, xp: Any, p: Any = None, log: Any = None, *, normalised: bool = False):
        self.xp, self.p, self._log, self._normalised = xp, p, log, normalised

    @property
    def exact(self) -> bool:
        return self._log is not None

    def proba(self) -> Any:
        if self.p is None:
            self.p = softmax(self.xp, self._log)
        return self.p

    def log(self, *, any_constant: bool = False) -> Any:
        """The logarithms, or where that is enough, up to a constant a row."""
        xp = self.xp
        if self._log is None:
            return xp.log(xp.clip(self.p, min=SMALLEST_PROBABILITY))
        if not (any_constant or self._normalised):
            self._log, self._normalised = self._log - log_sum(xp, self._log), True
        return self._log


def softmax(xp: Any, z: Any) -> Any:
    """Each row's softmax."""
    return divided(xp, xp.exp(z - xp.max(z, axis=1, keepdims=True)))


def divided(xp: Any, power: Any) -> Any:
    """Rows divided by their sums; in place it would break gradients."""
    return power / xp.sum(power, axis=1, keepdims=True)


def log_sum(xp: Any, z: Any) -> Any:
    """The logarithm of each row's sum of exponentials, as a column."""
    top = xp.max(z, axis=1, keepdims=True)
    return top + xp.log(xp.sum(xp.exp(z - top), axis=1, keepdims=True))


class DeviceMap:
    """A tree of arithmetic nodes, for rows that stay on their device.

    Parameters
    ----------
    tree : dict
        Nodes, as `Recalibrator._nodes` gives them.
    scores : DeviceScores
    n_classes : int
    where : str
        The public method, for messages.

    Notes
    -----
    It computes in the type of the rows, block by block: beside the result there is never more than
    a few blocks. In float32 a probability has a relative error of some 1e-7 times what the scaled
    logits differ by.
    """

    def __init__(self, tree: Tree, scores: DeviceScores, n_classes: int, where: str) -> None:
        self._tree, self._scores, self._k, self._where = tree, scores, n_classes, where
        self._xp = scores.xp
        self._constants: dict[tuple[int, str], Any] = {}

    @classmethod
    def takes(cls, tree: Tree) -> bool:
        """Whether all nodes are arithmetic, and not too many: the host is quicker with those."""
        parts = tree.get("parts", [])
        few = tree["node"] != "mixture" or len(parts) <= MOST_MIXED
        return few and hasattr(cls, f"_node_{tree['node']}") and all(map(cls.takes, parts))

    def proba(self) -> Any:
        """Calibrated probabilities of shape (n_samples, n_classes)."""
        given = self._scores
        out = self._xp.empty((len(given), self._k), dtype=given.dtype, device=given.device)
        for place, rows in self._results():
            out[place, :] = rows
        return out

    def labels(self, classes: AnyArray) -> Any:
        """The most probable class of each row: a tensor, or text in an array of numpy."""
        xp = self._xp
        found = xp.concat([xp.argmax(rows, axis=1) for _, rows in self._results()])
        if classes.dtype.kind not in "biuf":
            return classes[host_array(found, xp)]
        return xp.take(xp.asarray(np.array(classes), device=self._scores.device), found, axis=0)

    def _results(self) -> Iterator[tuple[slice, Any]]:
        xp = self._xp
        for place, rows in self._scores.blocks(self._where):
            if self._scores.kind == "proba":
                rows = xp.concat([1.0 - rows, rows], axis=1) if rows.shape[1] == 1 else rows
                given = _DeviceRows(xp, rows)
            else:
                if rows.shape[1] == 1:
                    rows = xp.concat([xp.zeros_like(rows), rows], axis=1)
                given = _DeviceRows(xp, log=rows)
            yield place, self._node(self._tree, given).proba()

    # -- nodes, as `sklearn_calib.export` defines them --------------------------------------------

    def _node(self, tree: Tree, rows: _DeviceRows) -> _DeviceRows:
        return getattr(self, f"_node_{tree['node']}")(tree, rows)

    def _node_identity(self, tree, rows):
        return _DeviceRows(self._xp, rows.proba())

    def _node_uniform(self, tree, rows):
        p = rows.proba()
        return _DeviceRows(self._xp, self._xp.full_like(p, 1.0 / p.shape[1]))

    def _node_raised(self, tree, rows):
        xp = self._xp
        if rows.exact:
            return rows
        p, floor = rows.proba(), tree["floor"]
        low = xp.any(p < floor, axis=1, keepdims=True)
        if not bool(xp.any(low)):
            return rows
        more = xp.clip(p, min=floor)
        return _DeviceRows(xp, xp.where(low, more / xp.sum(more, axis=1, keepdims=True), p))

    def _node_chain(self, tree, rows):
        for part in tree["parts"]:
            rows = self._node(part, rows)
        return rows

    def _node_mixture(self, tree, rows):
        parts = zip(tree["weights"], tree["parts"], strict=True)
        return _DeviceRows(
            self._xp, sum(float(w) * self._node(part, rows).proba() for w, part in parts)
        )

    def _node_softmax_affine(self, tree, rows):
        xp, coef, centred = self._xp, np.asarray(tree["coef"]), tree.get("centred", False)
        u = rows.log(any_constant=centred or coef.ndim == 0)
        if centred:
            u = u - xp.max(u, axis=1, keepdims=True)
        least = tree.get("least")
        if least is not None and least > float(xp.finfo(u.dtype).min):
            u = xp.clip(u, min=float(least))
        if coef.ndim == 0:
            u = u * float(coef)
        elif coef.ndim == 1:
            u = u * self._constant(tree, "coef")
        else:
            u = u @ self._constant(tree, "coef").T
        if np.any(tree["intercept"]) and np.ndim(tree["intercept"]):  # one for all moves nothing
            u = u + self._constant(tree, "intercept")
        elif centred and coef.ndim == 0 and coef >= 0.0:  # the largest is 0
            return _DeviceRows(xp, divided(xp, xp.exp(u)))
        return _DeviceRows(xp, softmax(xp, u))

    def _node_squeezed(self, tree, rows):
        xp, log = self._xp, rows.log(any_constant=True)
        return _DeviceRows(xp, divided(xp, 1.0 / (1.0 + xp.max(log, axis=1, keepdims=True) - log)))

    def _node_sigmoid_poly(self, tree, rows):
        if tree["input"] == "proba":
            x = rows.proba()[:, 1:]
        else:
            log = rows.log(any_constant=True)
            x = log[:, 1:] - log[:, :1]
        x = (x - float(tree.get("centre", 0.0))) / float(tree.get("spread", 1.0))
        y = zero = self._xp.zeros_like(x)
        for c in reversed(tree["coef"]):
            y = y * x + float(c)
        return _DeviceRows(self._xp, softmax(self._xp, self._xp.concat([zero, y], axis=1)))

    def _node_one_vs_rest(self, tree, rows):
        xp, k = self._xp, self._k
        own = rows.log() if rows.exact else rows.proba()
        others = self._others(own, rows.exact)
        parts, columns = tree["parts"] * (k if len(tree["parts"]) == 1 else 1), []
        for c, part in enumerate(parts):
            pair = xp.concat([others[:, c : c + 1], own[:, c : c + 1]], axis=1)
            given = (
                _DeviceRows(xp, log=pair, normalised=True) if rows.exact else _DeviceRows(xp, pair)
            )
            columns.append(self._node(part, given).proba()[:, 1:])
        values = xp.concat(columns, axis=1)
        total = xp.sum(values, axis=1, keepdims=True)
        empty = total <= 0.0
        values = xp.where(empty, rows.proba(), values)
        return _DeviceRows(
            xp, values / xp.where(empty, xp.sum(values, axis=1, keepdims=True), total)
        )

    def _others(self, own, exact):
        """The sum over all other classes, or its logarithm; no difference of numbers near 1."""
        xp = self._xp
        top = xp.argmax(own, axis=1, keepdims=True)
        is_top = xp.arange(self._k, dtype=top.dtype, device=self._scores.device) == top
        if not exact:
            rest = xp.sum(xp.where(is_top, xp.zeros_like(own), own), axis=1, keepdims=True)
            return xp.where(is_top, rest, 1.0 - own)
        rest = log_sum(xp, xp.where(is_top, xp.full_like(own, -float("inf")), own))
        below = xp.clip(xp.exp(own), max=0.5)  # all but the largest are
        return xp.where(is_top, rest, xp.log1p(-below))

    def _constant(self, tree, name):
        """Numbers of a node on the device, moved there once."""
        key = id(tree), name
        if key not in self._constants:
            given, values = self._scores, np.array(tree[name], dtype=np.float64)
            self._constants[key] = self._xp.asarray(values, dtype=given.dtype, device=given.device)
        return self._constants[key]


def is_arithmetic(model: Any) -> bool:
    """Whether all nodes of a fitted recalibrator are."""
    return all(map(DeviceMap.takes, model._all_nodes()))


def device_map(model: Any, X: Any, method: str) -> DeviceMap | None:
    """The map of scores that stay on their device; None where numpy takes them."""
    where = f"{type(model).__name__}.{method}"
    if (scores := device_scores(X, "proba", where, canonical_proba)) is None:
        return None
    check_is_fitted(model)
    if not model._maps_tensors():
        return None
    n_classes = len(model.classes_)
    if max(2, scores.shape[1]) != n_classes:
        rule = f"{n_classes} columns of scores, one per class"
        cure = setting("columns", words="Pass the columns in the order of classes_")
        refuse(where, rule, f"{scores.shape[1]}", cure)
    return DeviceMap({"node": "chain", "parts": model._all_nodes()}, scores, n_classes, where)
