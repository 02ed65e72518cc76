"""Nodes as arithmetic on the numbers of one row: what the writers of programs start from."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from .._kernels._coupling import MIN_PAIR_PROBABILITY
from .._kernels._float_order import first_beyond, keys_of, numbers_of
from .._kernels._log_odds import gap
from .._simplex import SMALLEST_PROBABILITY, two_classes_of_margin, without_rounding_noise
from .._typing import FloatArray, IntArray
from ..canonical import LARGEST_LOGIT, SLACK
from . import _functions as functions
from . import _nodes as nodes
from . import _program as ops
from ._document import MapDocument
from ._functions import Curve, Function, Node, score_of
from ._nodes import Chain, CumulativeAffine, Identity, Mixture, Raised, SoftmaxAffine, Uniform
from ._program import Expr

_NEVER = float(np.finfo(np.float64).max)
_WIDEST = 1e300  # log-odds
INVERSE = 2.0**1022  # of the smallest normal number

#: What is done to an array of numbers.
Moved: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Origin:
    """A number from which rows of two classes come, such that P_1 never falls where it grows.

    `rows` computes them as the reference does; `ends` are the least and the largest number.
    """

    number: Any
    ends: tuple[float, float]
    rows: Moved


def of_probability(p: Any) -> Origin:
    """Rows (1 - p, p)."""
    return Origin(p, (0.0, 1.0), lambda p: np.column_stack([1.0 - p, p]))


def of_margin(x: Any) -> Origin:
    """Rows with these log-odds, which are exact."""
    return Origin(x, (-_WIDEST, _WIDEST), two_classes_of_margin)


@dataclass(frozen=True)
class ExprRows:
    """The row between two nodes: probabilities, and logarithms where they are exact.

    Of two classes also their origin, where one is known.
    """

    p: list[Expr]
    log: list[Expr] | None = None
    origin: Origin | None = None

    def pair_origin(self) -> Origin:
        """The origin of two probabilities: by default p_1 where it is small, else 1 / p_0.

        This number orders like the log-odds, keeps their digits, and needs no logarithm. Below the
        smallest normal p_0 it goes on linearly, since 1 / p_0 would overflow: from 2^1022 to 2^1023
        at 0, which has a number for each of the subnormal ones.
        """
        if self.origin is not None:
            return self.origin
        if self.log is not None:
            return of_margin(self.log[1] - self.log[0])
        zero, one = self.p
        scaled = zero * INVERSE
        beyond = ops.where(ops.less(scaled, 1.0), 2.0 - scaled, 1.0 / ops.larger(scaled, 1.0))
        order = ops.where(ops.at_most(one, zero), one, INVERSE * beyond)
        return of_order(order)


def of_order(order: Any) -> Origin:
    """Rows that are known by the number that `ExprRows.pair_origin` describes."""
    return Origin(order, (0.0, 2.0 * INVERSE), _pairs_of_order)


def _pairs_of_order(order):
    one, zero = np.minimum(order, 0.5), 1.0 / np.maximum(order, 2.0)
    beyond = (2.0 - np.clip(order / INVERSE, 1.0, 2.0)) / INVERSE
    zero = np.where(order < INVERSE, zero, beyond)
    small = order < 1.0
    return np.column_stack([np.where(small, 1.0 - one, zero), np.where(small, one, 1.0 - zero)])


def score(rows: ExprRows, kind: str) -> Expr:
    """As `score_of`."""
    if kind == "proba":
        return rows.p[1]
    if rows.log is not None:
        return rows.log[1] - rows.log[0]
    log = ops.log_floored if kind == "logit" else ops.log_for_order
    return log(rows.p[1]) - log(rows.p[0])


def found_by(node: Function, rows: ExprRows, targets: FloatArray, moved: Moved) -> Expr:
    """How many of the targets moved(x) reaches."""
    if node.input == "proba" and rows.origin is None:
        origin = of_probability(rows.p[1])
    else:
        origin = rows.pair_origin()
    return ops.search(origin.number, edges_of(node, origin, targets, moved))


def edges_of(node: Function, origin: Origin, targets: FloatArray, moved: Moved) -> FloatArray:
    """The least numbers of an origin at which moved(x) reaches the targets."""
    return least_reaching(
        lambda number: moved(score_of(origin.rows(number), node.input)), targets, *origin.ends
    )


def least_reaching(function: Moved, targets: FloatArray, low: float, high: float) -> FloatArray:
    """The smallest float64 numbers of [low, high] at which an increasing function reaches targets.

    The largest float64 where it reaches them nowhere. Takes 64 evaluations of all targets.
    """
    first, last = keys_of([low, high], "float64")
    before = np.full(len(targets), first - np.uint64(1))
    beyond = np.full(len(targets), last + np.uint64(1))
    reaches = np.ones(len(targets), dtype=bool)
    keys = first_beyond(function, before, beyond, targets, reaches, "float64")
    return np.where(keys > last, _NEVER, numbers_of(np.minimum(keys, last), "float64"))


def moved_score(node: Function, rows: ExprRows, domain: FloatArray | None) -> tuple[Expr, Callable]:
    """The number x, rounded and moved into the domain, and what does the same to arrays."""
    x, ties = score(rows, node.input), getattr(node, "ties", False)
    if ties:
        x = ops.rounded(x, 0.0 if node.input == "proba" else 1.0)
    if domain is not None:
        x = ops.clipped(x, *domain)

    def moved(numbers):
        if ties:
            numbers = without_rounding_noise(numbers, -2000 if node.input == "proba" else 0)
        return numbers if domain is None else np.clip(numbers, *domain)

    return x, moved


@singledispatch
def value_of(node: Function, rows: ExprRows) -> Expr:
    """The value of a function, from which its `pair` makes probabilities."""
    return node.value(moved_score(node, rows, None)[0])


@value_of.register
def _steps(node: functions.Steps, rows: ExprRows) -> Expr:
    """A step function."""
    return ops.lookup(found_by(node, rows, node.edges, np.asarray), node.values)


@value_of.register
def _chebyshev(node: functions.ClippedChebyshev, rows: ExprRows) -> Expr:
    """A sum of Chebyshev polynomials."""
    low, high = node.domain
    x, _ = moved_score(node, rows, node.domain)
    z = (x - low) * (2.0 / (high - low)) - 1.0
    return ops.chebyshev_sum(ops.clipped(z, -1.0, 1.0), node.coef)


@value_of.register
def _curve(node: Curve, rows: ExprRows) -> Expr:
    """A curve between knots."""
    x, moved = moved_score(node, rows, node.domain)
    place = found_by(node, rows, node.knots[1:-1], moved)
    low, high = node.knots[:-1], node.knots[1:]
    start = ops.lookup(place, low)
    if node.scale == "input":
        width = high - low
        with np.errstate(over="ignore"):
            share = (x - start) * ops.lookup(place, 1.0 / width)
        outside = node.domain is None or node.domain[0] < low[0] or node.domain[1] > high[-1]
    else:
        width, outside = gap(low, high), False
        unit = 1.0 / np.minimum(expit(high) * np.expm1(low - high), -ops.SMALLEST_DIVISOR)
        share = ops.sigmoid(x) * ops.expm1_of_negative(start - x) * ops.lookup(place, unit)
        share = ops.clipped(share, 0.0, 1.0)
    if not isinstance(node, functions.PiecewiseCubic):
        return ops.lookup(place, node.values[:-1]) + share * ops.lookup(place, np.diff(node.values))
    return _cubic(node, place, share, width, outside)


def _cubic(node: functions.PiecewiseCubic, place, at, width, outside):
    """The cubic in powers of t, and straight lines beyond the knots."""
    rise = np.diff(node.values)
    left, right = width * node.slopes[:-1], width * node.slopes[1:]
    t = ops.clipped(at, 0.0, 1.0) if outside else at
    powers = [node.values[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise]
    value = ops.lookup(place, powers[3])
    for power in powers[2::-1]:
        value = ops.lookup(place, power) + t * value
    if outside:
        value = value + ops.smaller(at - t, 0.0) * ops.lookup(place, left)
        value = value + ops.larger(at - t, 0.0) * ops.lookup(place, right)
    return value


# -- what never falls where p_1 grows -----------------------------------------------------------


def never_falls(node: Node) -> bool:
    """Whether P_1 of a node for two classes cannot fall where p_1 grows, by its form."""
    if isinstance(node, Identity | Uniform | Raised | nodes.Squeezed | CumulativeAffine):
        return True
    if isinstance(node, Mixture | Chain):
        return all(map(never_falls, node.parts))
    if isinstance(node, SoftmaxAffine):
        coef = node.coef if node.coef.ndim == 2 else np.diag(np.broadcast_to(node.coef, 2))
        return bool((coef[1] - coef[0])[1] >= 0 >= (coef[1] - coef[0])[0])
    if isinstance(node, functions.SigmoidPoly):
        return len(node.coef) == 2 and bool(node.coef[1] >= 0)
    if isinstance(node, functions.Steps) or (
        isinstance(node, functions.PiecewiseLinear) and node.domain is not None
    ):
        return bool((np.diff(node.values) >= 0).all())
    return False


_ROUNDING = 1e-15  # sums that close to 1 are left as they are
_LEAST = -1e300
_EXACT_INTEGERS = 2**53


def program_of(document: MapDocument, *, second_only: bool = False) -> ops.Program:
    """The program of a map: from its scores to the probabilities of all classes.

    Parameters
    ----------
    document : MapDocument
    second_only : bool, default=False
        For two classes: the scores are one number, the probability of the second class or its
        log-odds, and so is the result.
    """
    k = len(document.classes)
    if second_only:
        valid, rows = _one_number(document.input)
        k = 1
    else:
        valid, rows = _all_numbers(document.input, k)
    outputs = _lower(document.root, rows).p
    return ops.without_repetition(
        ops.Program(k, valid, tuple(outputs[1:] if second_only else outputs))
    )


def _one_number(kind):
    x = Expr("input", data=0)
    if kind == "proba":
        return ops.both(ops.at_most(0.0, x), ops.at_most(x, 1.0)), ExprRows(
            [1.0 - x, x], origin=of_probability(x)
        )
    return ops.at_most(ops.size(x), LARGEST_LOGIT), _of_margin(x)


def _all_numbers(kind, k):
    """As `canonical_proba`."""
    x = [Expr("input", data=c) for c in range(k)]
    if kind == "logits":
        valid = ops.both(*(ops.at_most(ops.size(one), LARGEST_LOGIT) for one in x))
        x = [ops.clipped(one, -LARGEST_LOGIT, LARGEST_LOGIT) for one in x]
        top = ops.largest(x)
        parts = [ops.exp_of_negative(one - top) for one in x]
        whole = ops.total(parts)
        rows = ExprRows([part / whole for part in parts], [one - top - ops.log(whole) for one in x])
        return valid, rows
    within = [ops.both(ops.at_most(-SLACK, one), ops.at_most(one, 1 + SLACK)) for one in x]
    whole = ops.total([ops.clipped(one, 0.0, 1.0) for one in x])
    error = ops.size(whole - 1.0)
    divisor = ops.where(ops.less(_ROUNDING, error), ops.larger(whole, _ROUNDING), 1.0)
    valid = ops.both(*within, ops.at_most(error, SLACK))
    return valid, ExprRows([ops.clipped(one, 0.0, 1.0) / divisor for one in x])


def _of_margin(x):
    """As `two_classes_of_margin`."""
    shared = ops.log(1.0 + ops.exp_of_negative(-ops.size(x)))
    log_of_both = [ops.smaller(-x, 0.0) - shared, ops.smaller(x, 0.0) - shared]
    return ExprRows([ops.sigmoid(-x), ops.sigmoid(x)], log_of_both, of_margin(x))


def _logs(rows: ExprRows) -> list[Expr]:
    """As `log_proba`."""
    return [ops.log_floored(p) for p in rows.p] if rows.log is None else rows.log


# -- the nodes --------------------------------------------------------------------------------


def _lower(node: Node, rows: ExprRows) -> ExprRows:
    """The row that a node gives for one."""
    found = _node(node, rows)
    if len(rows.p) == 2 and found is not rows and never_falls(node):
        before = rows.pair_origin()
        origin = replace(before, rows=lambda number: node(before.rows(number)))
        return replace(found, origin=origin)
    return found


@singledispatch
def _node(node: Node, rows: ExprRows) -> ExprRows:
    raise NotImplementedError(node.kind)


@_node.register
def _identity(node: nodes.Identity, rows):
    return ExprRows(rows.p)


@_node.register
def _uniform(node: nodes.Uniform, rows):
    return ExprRows([ops.number(1.0 / len(rows.p))] * len(rows.p))


@_node.register
def _raised(node: nodes.Raised, rows):
    if rows.log is not None:
        return rows
    smallest = -ops.largest([-p for p in rows.p])
    lifted = [ops.larger(p, node.floor) for p in rows.p]
    low, whole = ops.less(smallest, node.floor), ops.total(lifted)
    return ExprRows([ops.where(low, q / whole, p) for p, q in zip(rows.p, lifted, strict=True)])


@_node.register
def _squeezed(node: nodes.Squeezed, rows):
    log = _logs(rows)
    from_top = 1.0 + ops.largest(log)
    return ExprRows(ops.shares([1.0 / (from_top - one) for one in log]))


@_node.register
def _softmax_affine(node: nodes.SoftmaxAffine, rows):
    u, k = _logs(rows), len(rows.p)
    if node.centred:
        top = ops.largest(u)
        u = [one - top for one in u]
    if node.least is not None:
        u = [ops.larger(one, node.least) for one in u]
    shift = np.broadcast_to(node.intercept, k)
    if node.coef.ndim == 2:
        moved = [
            ops.total([float(c) * x for c, x in zip(row, u, strict=True)]) for row in node.coef
        ]
    else:
        moved = [float(c) * x for c, x in zip(np.broadcast_to(node.coef, k), u, strict=True)]
    return ExprRows(ops.softmax([m + float(b) for m, b in zip(moved, shift, strict=True)]))


@_node.register
def _cumulative_affine(node: nodes.CumulativeAffine, rows):
    if rows.log is None:
        lifted = [ops.larger(p, SMALLEST_PROBABILITY) for p in rows.p]
        below, above = (
            ops.accumulated(lambda a, b: a + b, part) for part in (lifted, lifted[::-1])
        )
        below, above = ([ops.log(one) for one in part[:-1]] for part in (below, above))
    else:
        below, above = (
            ops.accumulated(ops.log_sum, part)[:-1] for part in (rows.log, rows.log[::-1])
        )
    pairs = zip(above[::-1], below, node.shifts.tolist(), strict=True)
    eta = [float(node.slope) * (up - down) + shift for up, down, shift in pairs]
    higher = [ops.sigmoid(one) for one in eta]
    inner = [ops.larger(a - b, 0.0) for a, b in itertools.pairwise(higher)]
    return ExprRows(ops.shares([ops.sigmoid(-eta[0]), *inner, higher[-1]]))


@_node.register
def _mixture(node: nodes.Mixture, rows):
    parts = [_lower(part, rows).p for part in node.parts]
    weights = node.weights.tolist()
    columns = zip(*parts, strict=True)
    return ExprRows([ops.total([w * p for w, p in zip(weights, c, strict=True)]) for c in columns])


@_node.register
def _chain(node: nodes.Chain, rows):
    for part in node.parts:
        rows = _lower(part, rows)
    return rows


@_node.register
def _one_vs_rest(node: nodes.OneVsRest, rows):
    parts = node.parts * (len(rows.p) if len(node.parts) == 1 else 1)
    pairs = zip(parts, _each_against_rest(rows), strict=True)
    return _divided([_lower(part, pair).p[1] for part, pair in pairs], rows.p)


def _each_against_rest(rows):
    others = ops.of_others(lambda a, b: a + b, rows.p)
    if rows.log is None:
        return [ExprRows([rest, p]) for rest, p in zip(others, rows.p, strict=True)]
    log_others = ops.of_others(ops.log_sum, rows.log)
    columns = zip(others, rows.p, log_others, rows.log, strict=True)
    return [ExprRows([rest, p], [log_rest, log_p]) for rest, p, log_rest, log_p in columns]


def _divided(values, fallback):
    whole, rest = ops.total(values), ops.total(fallback)
    some = ops.less(0.0, whole)
    divisor = ops.where(some, whole, rest)
    pairs = zip(values, fallback, strict=True)
    return ExprRows([ops.where(some, value, p) / divisor for value, p in pairs])


@_node.register
def _one_vs_one(node: nodes.OneVsOne, rows):
    k, logs = len(rows.p), _logs(rows)
    pairwise = {}
    for part, (i, j) in zip(node.parts, itertools.combinations(range(k), 2), strict=True):
        pair = _of_margin(logs[j] - logs[i])
        pairwise[i, j], pairwise[j, i] = (pair if part is None else _lower(part, pair)).p
    if k == 2:
        return ExprRows([pairwise[0, 1], pairwise[1, 0]])
    low, high = MIN_PAIR_PROBABILITY, 1 - MIN_PAIR_PROBABILITY
    return _coupled({at: ops.clipped(p, low, high) for at, p in pairwise.items()}, k)


def _coupled(r, k):
    """As `couple_pairs`; the matrix is positive definite, so elimination needs no pivots."""
    table = [[1.0 - r[j, i] * r[i, j] if i != j else 1.0 for j in range(k)] for i in range(k)]
    for i in range(k):
        table[i][i] = 1.0 + ops.total([r[j, i] * r[j, i] for j in range(k) if j != i])
    right = [ops.number(1.0)] * k
    for pivot, i in itertools.combinations(range(k), 2):
        factor = table[i][pivot] / table[pivot][pivot]
        for j in range(pivot + 1, k):
            table[i][j] = table[i][j] - factor * table[pivot][j]
        right[i] = right[i] - factor * right[pivot]
    p: list[Expr] = []
    for i in reversed(range(k)):
        known = [table[i][k - 1 - n] * one for n, one in enumerate(p)]
        p.append((right[i] - ops.total(known) if known else right[i]) / table[i][i])
    return ExprRows(ops.shares([ops.larger(one, 0.0) for one in reversed(p)]))


@_node.register
def _top_label(node: nodes.TopLabel, rows):
    first = _is_first_largest(rows.p)
    log_others = None if rows.log is None else ops.of_others(ops.log_sum, rows.log)
    pair = ExprRows(
        [_chosen(first, ops.of_others(lambda a, b: a + b, rows.p)), ops.largest(rows.p)],
        log_others and [_chosen(first, log_others), _chosen(first, rows.log)],
    )
    parts = [None if part is None else _lower(part, pair).p for part in node.parts]
    parts *= len(rows.p) if len(parts) == 1 else 1
    unknown = [ops.number(0.0)] * 2
    rest, top = (_chosen(first, [(part or unknown)[side] for part in parts]) for side in (0, 1))
    shares = _shares_of_others(first, _logs(rows), node.rest)
    new = [ops.where(mine, top, rest * share) for mine, share in zip(first, shares, strict=True)]
    for mine, part in zip(first, parts, strict=True):
        if part is None:
            new = [ops.where(mine, p, q) for p, q in zip(rows.p, new, strict=True)]
    return ExprRows(new)


def _shares_of_others(first, logs, exponent):
    """softmax(exponent log) over all classes but the one whose condition holds."""
    pairs = list(zip(first, logs, strict=True))
    top = ops.largest([ops.where(mine, _LEAST, one) for mine, one in pairs])
    z = [exponent * (ops.where(mine, top, one) - top) for mine, one in pairs]
    highest = ops.largest(z)
    pairs = zip(first, z, strict=True)
    return ops.shares(
        [ops.where(mine, 0.0, ops.exp_of_negative(one - highest)) for mine, one in pairs]
    )


def _is_first_largest(p):
    """A condition for each class, one of which holds: the first of the largest."""
    before, from_here = ops.accumulated(ops.larger, p), ops.accumulated(ops.larger, p[::-1])[::-1]
    found = [ops.at_most(top, one) for top, one in zip(from_here, p, strict=True)]
    later = zip(found[1:], before[:-1], p[1:], strict=True)
    return [found[0], *(ops.both(same, ops.less(top, one)) for same, top, one in later)]


def _chosen(conditions, values):
    """The value of the condition that holds."""
    found = values[-1]
    for condition, value in zip(conditions[-2::-1], values[-2::-1], strict=True):
        found = ops.where(condition, value, found)
    return found


@_node.register
def _cells(node: nodes.Cells, rows):
    levels = [ops.floor(p * float(node.n_levels) + node.slack) for p in rows.p]
    if node.keep:
        other = rows.p
    else:
        share = (float(node.n_levels) - ops.total(levels)) / len(levels)
        other = [(level + share) / float(node.n_levels) for level in levels]
    known = (node.keys <= node.n_levels).all(axis=1) if len(node.keys) else np.zeros(0, bool)
    if not known.any():
        return _divided(other, rows.p)
    found, place, number_of_key = _found(levels, node.keys[known], node.n_levels + 1)
    tables = np.empty((number_of_key.max() + 2, len(levels)))
    tables[0] = 0.0
    tables[number_of_key + 1] = node.rows[known]
    values = [ops.lookup(place, tables[:, c]) for c in range(len(levels))]
    pairs = zip(values, other, strict=True)
    return _divided([ops.where(found, value, rest) for value, rest in pairs], rows.p)


def _found(levels: list[Expr], keys: IntArray, base: int):
    """Whether levels are a key, the place that was searched, and where each key stands there.

    As many columns as fit join into one whole number, which is looked up; its place stands for
    them when the next columns join.
    """
    rank, conditions, at = ops.number(0.0), [], 0
    rank_of_keys: Any = np.zeros(len(keys))
    while at < len(levels):
        code, code_of_keys, largest_code = rank, rank_of_keys, float(len(keys))
        while at < len(levels) and (largest_code + 1) * base < _EXACT_INTEGERS:
            code = code * float(base) + levels[at]
            code_of_keys = code_of_keys * base + keys[:, at]
            largest_code = (largest_code + 1) * base
            at += 1
        codes, rank_of_keys = np.unique(code_of_keys, return_inverse=True)
        place = ops.search(code, codes)
        conditions.append(ops.at_most(code, ops.lookup(place, np.append(-1.0, codes))))
        rank = ops.lookup(place, np.append(0.0, np.arange(len(codes))))
        rank_of_keys = rank_of_keys.ravel()
    return ops.both(*conditions), place, rank_of_keys


@_node.register
def _function(node: Function, rows):
    return ExprRows(node.pair(value_of(node, rows)))
