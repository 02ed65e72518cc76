"""Every kind of node in ONNX: what `_nodes` computes; functions of one number are theirs."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, Union

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.special import expit, log_expit

from .._kernels._coupling import MIN_PAIR_PROBABILITY
from .._simplex import LOG_OF_ZERO, SMALLEST_PROBABILITY
from .._typing import AnyArray
from . import _lower as lower
from . import _nodes as nodes
from ._functions import Function, Node, Steps

#: From this version on the axes of all reductions are an input; before, only those of ReduceSum.
_AXES_ARE_INPUT = 18

#: A tensor, or numbers that become a constant of the graph.
Operand = Union["Tensor", float, AnyArray]


@dataclass(eq=False)
class Graph:
    """Operations in the order of their computation.

    Parameters
    ----------
    make_node : callable
        That of ``onnx.helper``.
    dtype : dtype
        Of the tensors that hold scores: float64 or float32.
    opset : int
        The version of the standard operators.
    prefix : str
        Begins the names of its tensors.

    Attributes
    ----------
    nodes : list of NodeProto
    constants : dict of str to ndarray
    """

    make_node: Callable[..., Any]
    dtype: Any
    opset: int
    prefix: str = "t"
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, AnyArray] = field(default_factory=dict)
    _known: dict[Any, str] = field(default_factory=dict)

    def add(self, op: str, *inputs: Operand, **attributes: Any) -> "Tensor":
        """The result of an operation; that of an equal one if there was one."""
        names = [self.tensor(value).name for value in inputs]
        key = (op, *names, str(attributes))
        if key not in self._known:
            self._known[key] = new = f"{self.prefix}{len(self._known)}"
            # onnxruntime 1.20 makes names from those of the nodes, which must differ
            self.nodes.append(self.make_node(op, names, [new], new, **attributes))
        return Tensor(self, self._known[key])

    def tensor(self, value: Operand) -> "Tensor":
        """A constant: integers of numpy as int64, other numbers in the graph's dtype; or text."""
        if isinstance(value, Tensor):
            return value
        array = np.array(value)
        if array.dtype.kind != "U":
            whole = array.dtype.kind == "i" and not isinstance(value, int)
            array = array.astype(np.int64 if whole else self.dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"{self.prefix}{len(self._known)}"
            self.constants[self._known[key]] = array
        return Tensor(self, self._known[key])

    def search(self, length: int, at_most: Callable[[Operand], "Tensor"]) -> "Tensor":
        """How many of so many increasing entries are at most a number: one result for each row.

        `at_most` tells it of the entries at given positions. The halving is written out,
        ceil(log2(length)) + 1 times, so no tensor is longer than the rows.
        """
        found: Operand = np.array(0)
        while length > 1:
            half = length // 2
            length -= half
            less = at_most(_plus(found, half - 1))
            found = self.add("Where", less, _plus(found, half), found)
        return self.add("Where", at_most(found), _plus(found, 1), found)


def _plus(position, step):
    return position + np.array(step) if isinstance(position, Tensor) or step else position


def _almost_one(value):
    """Whether onnxruntime takes a factor for 1: it looks at it in float32, and drops it then."""
    if isinstance(value, Tensor):
        return False
    return np.size(value) == 1 and bool(value != 1 and np.float32(min(value, 2.0)) == 1)


@dataclass(eq=False)
class Tensor(NDArrayOperatorsMixin):
    """A tensor that a graph has or is given, with numpy's operators, functions and shapes."""

    graph: Graph
    name: str

    def __array_ufunc__(self, ufunc: Any, _: str, *given: Operand) -> Any:
        """Write what an operator, or a function of numpy or SciPy, would compute."""
        if ufunc in _UFUNCS:
            return _UFUNCS[ufunc](*given)
        return self.graph.add(_OPERATIONS[ufunc], *given)

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        return _FUNCTIONS[function](*given, **options)

    def where(self, yes: Operand, no: Operand) -> "Tensor":
        """One or the other, where this tensor of truth values says so."""
        return self.graph.add("Where", self, yes, no)

    def column(self, c: int) -> "Tensor":
        return self.columns([c])

    def columns(self, which: Any) -> "Tensor":
        return self.graph.add("Gather", self, np.asarray(which), axis=1)

    def entries(self, position: Operand) -> "Tensor":
        """Of a table along its first axis, the entries at some positions."""
        return self.graph.add("Gather", self, position, axis=0)

    def entries_of(self, table: AnyArray) -> "Tensor":
        """Entries of a table of numbers, where this tensor is the positions."""
        return self.graph.tensor(table).entries(self)

    def entry(self, position: "Tensor") -> "Tensor":
        """The entry of each row in a column that differs from row to row, of shape (n, 1)."""
        return self.graph.add("GatherElements", self, position, axis=1)

    def top(self) -> "Tensor":
        """The column of the largest entry of each row, the first of equals, of shape (n, 1)."""
        return self.graph.add("ArgMax", self, axis=1, keepdims=1)

    def sum(self) -> "Tensor":
        return self.reduced("Sum")

    def max(self, axis: int = 1, keepdims: bool = True) -> "Tensor":
        return self.reduced("Max", axis)

    def min(self) -> "Tensor":
        return self.reduced("Min")

    def reduced(self, op: str, axis: int = 1) -> "Tensor":
        """A reduction along an axis, which stays with length 1."""
        if op == "Sum" or self.graph.opset >= _AXES_ARE_INPUT:
            return self.graph.add(f"Reduce{op}", self, np.array([axis]), keepdims=1)
        return self.graph.add(f"Reduce{op}", self, axes=[axis], keepdims=1)

    def reshaped(self, *shape: int) -> "Tensor":
        """Another shape; 0 stands for the number of rows, as it is."""
        return self.graph.add("Reshape", self, np.array(shape))

    def all(self) -> "Tensor":
        """Whether all truth values of a row are true, of shape (n, 1)."""
        return self.where(1.0, 0.0).min() > 0.5

    def softmax(self) -> "Tensor":
        return self.graph.add("Softmax", self, axis=1)


def _product(a, b):
    a, b = (a, b) if isinstance(a, Tensor) else (b, a)
    if _almost_one(b):
        return a * (2 * np.asarray(b)) * 0.5
    return a.graph.add("Mul", a, b)


def _quotient(a, b):
    if _almost_one(b):
        return a / (2 * np.asarray(b)) * 2.0
    return (a if isinstance(a, Tensor) else b).graph.add("Div", a, b)


def side_by_side(*columns: Tensor) -> Tensor:
    """Tensors of the same number of rows as one."""
    return columns[0].graph.add("Concat", *columns, axis=1)


def _sigmoid(x):
    """1 / (1 + exp(-x)), right to the last digit of small results too."""
    return 1.0 / (np.exp(-x) + 1.0)


def _log_sigmoid(x):
    """log(1 / (1 + exp(-x)))."""
    return np.minimum(x, 0.0) - np.log(np.exp(-abs(x)) + 1.0)


def _expm1(x):
    """exp(x) - 1 for x <= 0, right to the last digits of small results."""
    return np.tanh(x * 0.5) * (np.exp(x) + 1.0)


def _place(entries, x, side):
    """How many of increasing numbers are at most x."""
    if not len(entries):
        return x.graph.add("Where", x <= np.inf, np.array(0), np.array(0))
    table = x.graph.tensor(entries)
    return x.graph.search(len(entries), lambda position: table.entries(position) <= x)


_OPERATIONS = {
    np.absolute: "Abs",
    np.add: "Add",
    np.bitwise_and: "And",
    np.equal: "Equal",
    np.exp: "Exp",
    np.floor: "Floor",
    np.greater: "Greater",
    np.less: "Less",
    np.less_equal: "LessOrEqual",
    np.log: "Log",
    np.matmul: "MatMul",
    np.maximum: "Max",
    np.minimum: "Min",
    np.negative: "Neg",
    np.sign: "Sign",
    np.subtract: "Sub",
    np.tanh: "Tanh",
}
_UFUNCS: dict[Any, Callable[..., Tensor]] = {
    np.divide: _quotient,
    np.expm1: _expm1,
    np.multiply: _product,
    expit: _sigmoid,
    log_expit: _log_sigmoid,
}
_FUNCTIONS: dict[Any, Callable[..., Tensor]] = {
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.column_stack: lambda columns: side_by_side(*columns),
    np.searchsorted: _place,  # side="right"
}


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Rows on the simplex inside a graph.

    Parameters
    ----------
    p : Tensor of shape (n, k)
    k : int
    exact : Tensor of shape (n, k), default=None
        Their logarithms, where the rows carry them.
    """

    p: Any
    k: int
    exact: Tensor | None = None

    @property
    def log(self) -> Tensor:
        if self.exact is not None:
            return self.exact
        return np.log(np.maximum(self.p, SMALLEST_PROBABILITY))

    @property
    def ordered_log(self) -> Tensor:
        """Logarithms that only order the rows: no probability counts as a larger one."""
        return np.maximum(np.log(self.p), LOG_OF_ZERO) if self.exact is None else self.exact

    @property
    def log_odds(self) -> Tensor:
        return self.log.column(1) - self.log.column(0)


def of_margin(margin: Tensor) -> GraphRows:
    """Rows of two classes from the log-odds of the second."""
    log = side_by_side(_log_sigmoid(-margin), _log_sigmoid(margin))
    return GraphRows(np.exp(log), 2, log)


def of_logits(z: Tensor, k: int) -> GraphRows:
    """Rows from one logit for each class."""
    low = z - z.max()
    total = np.exp(low).sum()
    return GraphRows(np.exp(low) / total, k, low - np.log(total))


@singledispatch
def written(node: Node, rows: GraphRows) -> GraphRows:
    """What a node gives for rows, as tensors of their graph."""
    raise NotImplementedError(node.kind)


@written.register
def _(node: nodes.Identity, rows):
    return GraphRows(rows.p, rows.k)


@written.register
def _(node: nodes.Uniform, rows):
    return GraphRows(rows.p * 0.0 + 1.0 / rows.k, rows.k)


@written.register
def _(node: nodes.Raised, rows):
    if rows.exact is not None:
        return rows
    higher = np.maximum(rows.p, node.floor)
    low = rows.p.min() < node.floor
    return GraphRows(low.where(higher / higher.sum(), rows.p), rows.k)


@written.register
def _(node: nodes.Squeezed, rows):
    shares = 1.0 / (1.0 + rows.log.max() - rows.log)
    return GraphRows(shares / shares.sum(), rows.k)


@written.register
def _(node: nodes.SoftmaxAffine, rows):
    return GraphRows(node.logits(rows.log).softmax(), rows.k)


@written.register
def _(node: nodes.CumulativeAffine, rows):
    k = rows.k
    below, above = (
        side_by_side(*(rows.log.columns(which).reduced("LogSumExp") for which in sums))
        for sums in zip(*((np.arange(c), np.arange(c, k)) for c in range(1, k)), strict=True)
    )
    eta = (above - below) * float(node.slope) + node.shifts
    higher = _sigmoid(eta)
    lower = _sigmoid(-eta.column(0))
    inner = [np.maximum(higher.column(c) - higher.column(c + 1), 0.0) for c in range(k - 2)]
    table = side_by_side(lower, *inner, higher.column(k - 2))
    return GraphRows(table / table.sum(), k)


@written.register
def _(node: nodes.Mixture, rows):
    first, *others = (
        written(part, rows).p * float(w) for w, part in zip(node.weights, node.parts, strict=True)
    )
    return GraphRows(sum(others, start=first), rows.k)


@written.register
def _(node: nodes.Chain, rows):
    for part in node.parts:
        rows = written(part, rows)
    return rows


# -- functions of one number ------------------------------------------------------------------


@written.register
def _(node: Function, rows):
    x = _score(rows, node.input)
    if getattr(node, "ties", False):
        x = _without_noise(x, node.input)
    return GraphRows(node.pair(node.value(x)), 2)


@written.register
def _(node: Steps, rows):
    """Searched by numbers that need no logarithm, whose last digits may be others than numpy's."""
    graph, one = rows.p.graph, rows.p.column(1)
    if graph.dtype == np.float32:
        origin, edges = lower.of_probability(_score(rows, node.input)), node.edges
    else:
        if node.input == "proba":
            origin = lower.of_probability(one)
        elif rows.exact is None:
            origin = lower.of_order(_order(rows))
        else:
            origin = lower.of_margin(rows.log_odds)
        edges = lower.edges_of(node, origin, node.edges, np.asarray)
    place = np.searchsorted(edges, origin.number, side="right")
    return GraphRows(node.pair(place.entries_of(node.values)), 2)


def _order(rows):
    """The number of `ExprRows.pair_origin`."""
    zero, one = rows.p.column(0), rows.p.column(1)
    scaled = zero * lower.INVERSE
    beyond = (scaled < 1.0).where(2.0 - scaled, 1.0 / np.maximum(scaled, 1.0))
    return (one <= zero).where(one, beyond * lower.INVERSE)


def _score(rows, score):
    if score == "proba":
        return rows.p.column(1)
    if score == "logit":
        return rows.log_odds
    return rows.ordered_log.column(1) - rows.ordered_log.column(0)


def _without_noise(x, score):
    """`without_rounding_noise` by arithmetic alone: sums that push out the last digits."""
    if x.graph.dtype == np.float32:  # has fewer digits
        return x
    big = x * 131073.0  # 2^17 + 1
    relative = big - (big - x)
    if score == "proba":
        return relative
    absolute = (x + 98304.0) - 98304.0  # 1.5 * 2^16
    return (abs(x) < 1.0).where(absolute, relative)


# -- problems of two classes inside -----------------------------------------------------------


@written.register
def _(node: nodes.OneVsRest, rows):
    k = rows.k
    before, after = (
        rows.p.graph.add("CumSum", rows.p, np.array(1), exclusive=1, reverse=end) for end in (0, 1)
    )
    others = before + after  # in the order of `each_against_rest`: steps see the last digit
    columns = []
    for c, part in enumerate(node.parts * (k if len(node.parts) == 1 else 1)):
        exact = None
        if rows.exact is not None:
            rest = rows.exact.columns(np.delete(np.arange(k), c)).reduced("LogSumExp")
            exact = side_by_side(rest, rows.exact.column(c))
        pair = GraphRows(side_by_side(others.column(c), rows.p.column(c)), 2, exact)
        columns.append(written(part, pair).p.column(1))
    return _divided(side_by_side(*columns), rows)


def _divided(values, fallback):
    """Rows divided by their sums; rows of zeros are those of `fallback`."""
    values = (values.sum() <= 0.0).where(fallback.p, values)
    return GraphRows(values / values.sum(), fallback.k)


@written.register
def _(node: nodes.TopLabel, rows):
    top = rows.p.top()
    is_top = top == np.arange(rows.k)
    lowest = float(np.finfo(rows.p.graph.dtype).min)
    others = is_top.where(lowest, rows.log)
    pair = GraphRows(side_by_side(is_top.where(0.0, rows.p).sum(), rows.p.entry(top)), 2)
    if rows.exact is not None:
        exact = side_by_side(others.reduced("LogSumExp"), rows.exact.entry(top))
        pair = GraphRows(pair.p, 2, exact)
    shares = is_top.where(lowest, (rows.log - others.max()) * node.rest).softmax()
    out = rows.p
    for c, part in enumerate(node.parts):
        if part is None:
            continue
        new = written(part, pair).p
        joined = is_top.where(new.column(1), new.column(0) * shares)
        out = joined if len(node.parts) == 1 else (top == np.array(c)).where(joined, out)
    return GraphRows(out, rows.k)


@written.register
def _(node: nodes.OneVsOne, rows):
    k = rows.k
    pairs = [*itertools.combinations(range(k), 2)]
    entries = {}
    for part, (i, j) in zip(node.parts, pairs, strict=True):
        pair = of_margin(rows.log.column(j) - rows.log.column(i))
        value = pair if part is None else written(part, pair)
        entries[i, j], entries[j, i] = value.p.column(0), value.p.column(1)
    if k == 2:
        return GraphRows(side_by_side(entries[0, 1], entries[1, 0]), 2)
    zero = entries[0, 1] * 0.0
    flat = side_by_side(*(entries.get(place, zero) for place in np.ndindex(k, k)))
    return _coupled(flat.reshaped(0, k, k), k)


def _coupled(pairwise, k):
    """`couple_pairs`; the matrix is positive definite, so elimination needs no exchange of rows."""
    eye = np.eye(k)
    r = np.clip(pairwise, MIN_PAIR_PROBABILITY, 1 - MIN_PAIR_PROBABILITY) * (1.0 - eye)
    q = -(r.graph.add("Transpose", r, perm=[0, 2, 1]) * r) + (r * r).reduced("Sum") * eye
    system = r.graph.add("Concat", q + 1.0, q.reduced("Sum", 2) * 0.0 + 1.0, axis=2)
    for i in range(k):
        row = r.graph.add("Gather", system, np.array([i]), axis=1)
        factor = r.graph.add("Gather", system, np.array([i]), axis=2)
        row = row / r.graph.add("Gather", row, np.array([i]), axis=2)
        system = system - (factor - eye[:, [i]]) * row
    p = np.maximum(r.graph.add("Gather", system, np.array([k]), axis=2).reshaped(0, k), 0.0)
    return GraphRows(p / p.sum(), k)


@written.register
def _(node: nodes.Cells, rows):
    graph, k = rows.p.graph, rows.k
    levels = np.floor(rows.p * float(node.n_levels) + node.slack)
    if node.keep:
        out = rows.p
    else:
        missing = (float(node.n_levels) - levels.sum()) / float(k)
        out = (levels + missing) / float(node.n_levels)
    if len(node.keys):
        keys = graph.tensor(node.keys.astype(float))

        def order(position):
            """-1, 0, 1: levels before the key in the order of the alphabet, equal, after it."""
            sign = np.sign(levels - keys.entries(position))
            return sign.entry(abs(sign).top()).reshaped(-1)

        after = graph.search(len(node.keys), lambda position: np.less_equal(0.0, order(position)))
        cell = np.maximum(after, np.array(1)) - np.array(1)
        found = (order(cell) == 0.0).reshaped(-1, 1)
        out = found.where(graph.tensor(node.rows).entries(cell), out)
    return _divided(out, rows)
