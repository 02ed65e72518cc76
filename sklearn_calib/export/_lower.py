"""Nodes as arithmetic on the numbers of one row: what the writers of programs start from."""

import itertools
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from .._kernels._coupling import MIN_PAIR_PROBABILITY
from .._simplex import SMALLEST_PROBABILITY
from .._typing import IntArray
from ..canonical import LARGEST_LOGIT, SLACK
from . import _nodes as nodes
from . import _program as ops
from ._document import MapDocument
from ._functions import Function, Node
from ._lower_functions import (
    ExprRows,
    function_rows,
    never_falls,
    of_margin,
    of_probability,
    value_of,
)
from ._program import Expr

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
    x = ops.entry_of(0)
    if kind == "proba":
        return ops.both(ops.at_most(0.0, x), ops.at_most(x, 1.0)), ExprRows(
            [1.0 - x, x], origin=of_probability(x)
        )
    return ops.at_most(ops.size(x), LARGEST_LOGIT), _of_margin(x)


def _all_numbers(kind, k):
    """As `canonical_proba`."""
    x = [ops.entry_of(c) for c in range(k)]
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
        return replace(found, origin=rows.pair_origin().after(node))
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
    table = [ops.sigmoid(-eta[0]), *inner, higher[-1]]
    whole = ops.total(table)
    return ExprRows([one / whole for one in table])


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
    positive = [ops.larger(one, 0.0) for one in reversed(p)]
    whole = ops.total(positive)
    return ExprRows([one / whole for one in positive])


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
    parts = [
        ops.where(mine, 0.0, ops.exp_of_negative(one - highest))
        for mine, one in zip(first, z, strict=True)
    ]
    whole = ops.total(parts)
    return [part / whole for part in parts]


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
    return function_rows(node, value_of(node, rows))
