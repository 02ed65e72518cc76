"""A fitted map as one program for the compiled kernel: no checks and no arrays for each member."""

from typing import Any, NamedTuple

import numpy as np

from .._simplex import (
    SMALLEST_PROBABILITY,
    log_proba,
    raised,
    rank_scores_against_rest,
    row_blocks,
    unrounded_rank_score,
)
from .._typing import FloatArray

Tree = dict[str, Any]

_ENTRIES = 1 << 14  # of the numbers of some rows: they stay in the cache


class _Block(NamedTuple):
    """Where the `n` numbers of a row stand.

    `log` is where its exact logarithms are, if it carries them. `floor` is what the given rows were
    raised to; others have None, and no ranks. `column` is the class that a pair is made of.
    """

    at: int
    n: int
    log: int | None = None
    floor: float | None = None
    column: int = 0


class RowProgram:
    """What a tree of nodes says of a row, as steps of ``_kernels/_row_program``.

    Parameters
    ----------
    tree : dict
        Nodes, as `Recalibrator._nodes` gives them; the result is divided by its sum.
    k : int
        Classes.
    carried : bool
        Whether the rows carry exact logarithms.

    Raises
    ------
    NotImplementedError
        A node that has no steps; ranks of what another node made: they are rounded, so they need
        every digit that numpy gives them.
    """

    def __init__(self, tree: Tree, k: int, *, carried: bool) -> None:
        from .._kernels import _row_program as kernel

        self._kernel, self._k = kernel, k
        self._code: list[list[int]] = []
        self._data: list[FloatArray] = []
        self._known: dict[Any, int] = {}
        self._rank_floor: float | None = None
        self._n_data, self._size = 0, 2 * k + (1 if k == 2 else k)  # what is given
        rows = _Block(0, k, k if carried else None, 0.0)
        found = self._node(tree, rows)
        self._add(kernel.DIVIDE, k, found.at, found.at, n=k)
        self._lines = np.array(self._code), np.concatenate([*self._data, [0.0]])
        del self._code, self._data, self._known

    def __call__(self, proba: FloatArray) -> FloatArray:
        """The map of clean rows."""
        run, n_rows = self._kernel.run_rows, len(proba)
        out = np.empty(proba.shape)
        numbers = np.empty((self._size, min(n_rows, max(1, _ENTRIES // self._size))))
        for block in row_blocks(proba) if n_rows > 1 else ():
            run(*self._lines, self._given(proba[block]), numbers, out[block])
        if n_rows == 1:
            run(*self._lines, self._given(proba), numbers, out)
        return out

    def _given(self, proba):
        """Each row with its logarithms and, where they are asked for, its ranks."""
        given = [np.asarray(proba), log_proba(proba)]
        if self._rank_floor is not None:
            proba = raised(proba, self._rank_floor)
            ranks = unrounded_rank_score if self._k == 2 else rank_scores_against_rest
            given.append(ranks(proba).reshape(len(proba), -1))
        return np.ascontiguousarray(np.concatenate(given, axis=1))  # one layout to compile for

    # -- nodes --------------------------------------------------------------------------------

    def _node(self, tree: Tree, rows: _Block) -> _Block:
        make = getattr(self, f"_node_{tree['node']}", None)
        if make is None:
            raise NotImplementedError(tree["node"])
        return make(tree, rows)

    def _node_identity(self, tree, rows):
        return _Block(rows.at, rows.n)

    def _node_uniform(self, tree, rows):
        return self._new(self._kernel.AFFINE, n := rows.n, rows.at, data=[0.0] * n + [1.0 / n] * n)

    def _node_raised(self, tree, rows):
        if rows.log is not None:
            return rows
        found = self._new(self._kernel.RAISE, rows.n, rows.at, data=[tree["floor"]])
        return found._replace(floor=tree["floor"] if rows.at == 0 else None)

    def _node_squeezed(self, tree, rows):
        return self._new(self._kernel.SQUEEZE, rows.n, self._log(rows))

    def _node_chain(self, tree, rows):
        for part in tree["parts"]:
            rows = self._node(part, rows)
        return rows

    def _node_mixture(self, tree, rows):
        total, n = None, rows.n
        for weight, part in zip(tree["weights"], tree["parts"], strict=True):
            one = self._node(part, rows).at
            if total is None:
                total = self._new(self._kernel.AFFINE, n, one, data=[weight] * n + [0.0] * n)
            else:
                total = self._new(self._kernel.ADD, n, total.at, one, data=[weight])
        return total

    def _node_softmax_affine(self, tree, rows):
        kernel, n, u = self._kernel, rows.n, self._log(rows)
        if tree.get("centred", False):
            u = self._new(kernel.CENTRE, n, u).at
        if tree.get("least") is not None:
            u = self._new(kernel.LEAST, n, u, data=[tree["least"]]).at
        coef, intercept = np.asarray(tree["coef"]), np.broadcast_to(tree["intercept"], n)
        full = coef.ndim == 2
        coef = coef.ravel() if full else np.broadcast_to(coef, n)
        op = kernel.MATRIX if full else kernel.AFFINE
        moved = self._new(op, n, u, data=np.concatenate([coef, intercept]))
        return self._new(kernel.SOFTMAX, n, moved.at)

    def _node_one_vs_rest(self, tree, rows):
        kernel, k, log = self._kernel, rows.n, None
        others = self._new(kernel.OTHERS, k, rows.at)
        if rows.log is not None:
            log = self._new(kernel.LOG_OTHERS, k, rows.log)
        values, same = self._room(k), self._constants([1.0, 0.0])
        parts = tree["parts"] * (k if len(tree["parts"]) == 1 else 1)
        for c, part in enumerate(parts):
            pair = self._new(kernel.PAIR, 2, rows.at + c, others.at + c)._replace(column=c)
            pair = pair._replace(floor=rows.floor)
            if log is not None:
                pair = pair._replace(log=self._new(kernel.PAIR, 2, rows.log + c, log.at + c).at)
            found = self._node(part, pair)
            self._add(kernel.AFFINE, 0, found.at + 1, n=1, c=same, at=values + c)
        return self._new(kernel.DIVIDE, k, values, rows.at)

    def _node_sigmoid_poly(self, tree, rows):
        coef = tree["coef"]
        scale = [tree.get("centre", 0.0), tree.get("spread", 1.0)]
        x = self._score(tree["input"], rows)
        y = self._new(self._kernel.POLYNOMIAL, 1, x, n=len(coef) - 1, data=[*scale, *coef])
        return self._new(self._kernel.SIGMOID, 2, y.at, n=1)

    def _node_piecewise_cubic(self, tree, rows):
        if tree.get("scale", "input") != "input" or tree.get("ties", False):
            raise NotImplementedError(tree["node"])
        kernel, n, x = self._kernel, len(tree["knots"]), self._score(tree["input"], rows)
        domain = [-np.inf, np.inf] if tree["domain"] is None else tree["domain"]
        data = np.concatenate([domain, tree["knots"], tree["values"], tree["slopes"]])
        y = self._new(kernel.CUBIC, 1, x, n=n, data=data)
        end = kernel.SIGMOID if tree.get("link") == "sigmoid" else kernel.CLIPPED
        return self._new(end, 2, y.at, n=1)

    def _node_steps(self, tree, rows):
        data = np.concatenate([tree["edges"], tree["values"]])
        x = self._score(tree["input"], rows)
        y = self._new(self._kernel.STEPS, 1, x, n=len(tree["edges"]), data=data)
        return self._new(self._kernel.CLIPPED, 2, y.at, n=1)

    def _score(self, name, rows):
        """Where the number is that a function of two classes takes."""
        if name == "proba":
            return rows.at + 1
        if name == "logit":
            return self._new(self._kernel.MARGIN, 1, self._log(rows)).at
        if rows.floor is None or self._rank_floor not in (None, rows.floor):
            raise NotImplementedError("ranks")
        self._rank_floor = rows.floor
        return 2 * self._k + rows.column

    def _log(self, rows):
        if rows.log is not None:
            return rows.log
        if rows.at == 0:  # the rows that are given
            return self._k
        return self._new(self._kernel.LOG, rows.n, rows.at, data=[SMALLEST_PROBABILITY]).at

    # -- steps --------------------------------------------------------------------------------

    def _new(self, op, width, a=0, b=0, *, n=None, data=()):
        """A step whose result stands in a place of its own; the same step is not made twice."""
        n, c = width if n is None else n, self._constants(data)
        key = op, a, b, n, c
        if key not in self._known:
            self._known[key] = self._add(op, width, a, b, n=n, c=c)
        return _Block(self._known[key], width)

    def _add(self, op, width, a, b=0, *, n, c=0, at=None):
        at = self._room(width) if at is None else at
        self._code.append([op, at, a, b, n, c])
        return at

    def _room(self, width):
        self._size += width
        return self._size - width

    def _constants(self, data):
        data = np.asarray(data, dtype=np.float64)
        key = data.tobytes()
        if key not in self._known:
            self._data.append(data)
            self._known[key] = self._n_data
            self._n_data += len(data)
        return self._known[key]
