"""Every kind of node in ONNX: what `_nodes` computes; functions of one number are theirs."""

import itertools
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from .._kernels._coupling import MIN_PAIR_PROBABILITY
from .._simplex import LOG_OF_ZERO, SMALLEST_PROBABILITY
from . import _lower_functions as lower
from . import _nodes as nodes
from ._functions import Function, Node, Steps
from ._onnx_graph import Tensor, log_sigmoid, side_by_side, sigmoid


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

    p: Tensor
    k: int
    exact: Tensor | None = None

    @property
    def log(self) -> Tensor:
        if self.exact is not None:
            return self.exact
        return self.p.at_least(SMALLEST_PROBABILITY).log()

    @property
    def ordered_log(self) -> Tensor:
        """Logarithms that only order the rows: no probability counts as a larger one."""
        return self.p.log().at_least(LOG_OF_ZERO) if self.exact is None else self.exact

    @property
    def log_odds(self) -> Tensor:
        return self.log.column(1) - self.log.column(0)


def of_margin(margin: Tensor) -> GraphRows:
    """Rows of two classes from the log-odds of the second."""
    log = side_by_side(log_sigmoid(-margin), log_sigmoid(margin))
    return GraphRows(log.exp(), 2, log)


def of_logits(z: Tensor, k: int) -> GraphRows:
    """Rows from one logit for each class."""
    low = z - z.max()
    total = low.exp().sum()
    return GraphRows(low.exp() / total, k, low - total.log())


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
    higher = rows.p.at_least(node.floor)
    low = rows.p.graph.add("Less", rows.p.min(), node.floor)
    return GraphRows(low.where(higher / higher.sum(), rows.p), rows.k)


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
    higher = sigmoid(eta)
    lower = sigmoid(-eta.column(0))
    inner = [(higher.column(c) - higher.column(c + 1)).at_least(0.0) for c in range(k - 2)]
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
    beyond = scaled.graph.add("Less", scaled, 1.0).where(2.0 - scaled, 1.0 / scaled.at_least(1.0))
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
    return x.graph.add("Less", x.abs(), 1.0).where(absolute, relative)


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
    is_top = top.equal(np.arange(rows.k))
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
        out = joined if len(node.parts) == 1 else top.equal(np.array(c)).where(joined, out)
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
    r = pairwise.clip(MIN_PAIR_PROBABILITY, 1 - MIN_PAIR_PROBABILITY) * (1.0 - eye)
    q = -(r.graph.add("Transpose", r, perm=[0, 2, 1]) * r) + (r * r).reduced("Sum") * eye
    system = r.graph.add("Concat", q + 1.0, q.reduced("Sum", 2) * 0.0 + 1.0, axis=2)
    for i in range(k):
        row = r.graph.add("Gather", system, np.array([i]), axis=1)
        factor = r.graph.add("Gather", system, np.array([i]), axis=2)
        row = row / r.graph.add("Gather", row, np.array([i]), axis=2)
        system = system - (factor - eye[:, [i]]) * row
    p = r.graph.add("Gather", system, np.array([k]), axis=2).reshaped(0, k).at_least(0.0)
    return GraphRows(p / p.sum(), k)


@written.register
def _(node: nodes.Cells, rows):
    graph, k = rows.p.graph, rows.k
    levels = graph.add("Floor", rows.p * float(node.n_levels) + node.slack)
    if node.keep:
        out = rows.p
    else:
        missing = (float(node.n_levels) - levels.sum()) / float(k)
        out = (levels + missing) / float(node.n_levels)
    if len(node.keys):
        keys = graph.tensor(node.keys.astype(float))

        def order(position):
            """-1, 0, 1: levels before the key in the order of the alphabet, equal, after it."""
            sign = graph.add("Sign", levels - keys.entries(position))
            return sign.entry(sign.abs().top()).reshaped(-1)

        after = graph.search(
            len(node.keys), lambda position: graph.add("LessOrEqual", 0.0, order(position))
        )
        cell = after.at_least(np.array(1)) - np.array(1)
        found = order(cell).equal(0.0).reshaped(-1, 1)
        out = found.where(graph.tensor(node.rows).entries(cell), out)
    return _divided(out, rows)
