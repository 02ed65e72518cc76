"""Where a map for two classes may turn: the scores between which it only rises or only falls.

Read off the tree of nodes (see `sklearn_calib.export`): knots, steps and stationary points, carried
back to the scores that come in. What a sum of rising and falling parts does is searched for.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, polynomial

from .._kernels._float_order import crossings, first_beyond, keys_of, numbers_of
from .._kernels._log_odds import gap
from .._simplex import (
    log_odds,
    log_proba,
    one_against_rest,
    raised,
    score_of,
)
from .._typing import AnyArray, FloatArray
from ..exceptions import refuse

Rows = Callable[[FloatArray], Any]

_ROUNDING = 1e-13  # of a slope is none
_APART = {"float64": np.uint64(1 << 16), "float32": np.uint64(4)}  # numbers, of a jump at most
_JUMP = 1e-9
_GRID = 257  # scores of a range that is searched
_SEARCHED = 20_000  # scores of all ranges together, about


def direction(tree: Any) -> int | None:
    """1 where the map of a tree never falls, -1 where it never rises, 0 for both, None for others.

    Parameters
    ----------
    tree : dict
        Of a map for two classes.
    """
    found = _DIRECTIONS.get(tree["node"])
    return found(tree) if found else None


def _of_all(signs):
    """What parts do together, where all that do something do the same."""
    signs = set(signs) - {0}
    return (signs.pop() if signs else 0) if len(signs) < 2 else None


def _of_differences(tree):
    return _of_all(np.sign(np.diff(tree["values"])).astype(int).tolist())


def _of_chain(tree):
    signs = [direction(part) for part in tree["parts"]]
    return 0 if 0 in signs else None if None in signs else int(np.prod(signs))


def _of_parts(tree):
    return _of_all([1 if part is None else direction(part) for part in tree["parts"]])


def _slopes(tree):
    """What the logarithms of P_0 and P_1 are multiplied by in the log-odds of the result."""
    coef = np.asarray(tree["coef"], dtype=np.float64)
    if coef.ndim == 2:
        return coef[0, 0] - coef[1, 0], coef[1, 1] - coef[0, 1]
    zero, one = np.broadcast_to(coef, 2)
    return float(zero), float(one)


def _of_cubic(tree):
    a, b, c, _, _ = _derivatives(tree)
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.where(a != 0, np.clip(-b / (2 * a), 0.0, 1.0), 0.0)
    slope = np.vstack([c, a + b + c, (a * vertex + b) * vertex + c])
    return _of_slopes(slope, _ROUNDING * (np.abs(a) + np.abs(b) + np.abs(c)))


def _of_slopes(slope, noise):
    return _of_all([-(slope < -noise).any().astype(int), (slope > noise).any().astype(int)])


def _of_polynomial(tree):
    coef = np.atleast_1d(np.asarray(tree["coef"], dtype=np.float64))
    return int(np.sign(coef[1:].sum())) if len(coef) < 3 else None


def _of_chebyshev(tree):
    z = np.linspace(-1.0, 1.0, 4097)
    derivative = chebyshev.chebder(np.atleast_1d(np.asarray(tree["coef"], dtype=np.float64)))
    ends = np.unique(np.concatenate([z, _real_roots(chebyshev.chebroots(derivative), -1.0, 1.0)]))
    slope = chebyshev.chebval((ends[:-1] + ends[1:]) / 2, derivative)
    return _of_slopes(slope, 1e-9 * np.abs(derivative).sum())


_DIRECTIONS: dict[str, Callable[[Any], int | None]] = {
    "identity": lambda tree: 1,
    "uniform": lambda tree: 0,
    "raised": lambda tree: 1,
    "squeezed": lambda tree: 1,
    "softmax_affine": lambda tree: _of_all(np.sign(_slopes(tree)).astype(int).tolist()),
    "cumulative_affine": lambda tree: int(tree["slope"] > 0),
    "steps": _of_differences,
    "piecewise_linear": _of_differences,
    "piecewise_cubic": _of_cubic,
    "sigmoid_poly": _of_polynomial,
    "clipped_chebyshev": _of_chebyshev,
    "mixture": _of_parts,
    "one_vs_rest": lambda tree: 1 if {*map(direction, tree["parts"])} <= {0, 1} else None,
    "chain": _of_chain,
}


class Ranges:
    """Ranges of scores, by their keys, that are cut where a map may turn.

    Parameters
    ----------
    low, high : float
        The scores that there are.
    dtype : {"float64", "float32"}
        Their type.
    evaluate : callable
        From a tree and rows to rows.
    where : str
        Begins the error messages.
    """

    def __init__(self, low: float, high: float, dtype: str, evaluate: Any, where: str) -> None:
        self.starts = keys_of([low], dtype)
        self._last = keys_of([high], dtype)
        self.dtype, self.evaluate, self.where = dtype, evaluate, where
        self.searched = False  # a part of the map is smooth between the cuts, and no more
        self._jumps = self.starts[:0]

    @property
    def stops(self) -> AnyArray:
        """The last key of each range."""
        return np.append(self.starts[1:] - np.uint64(1), self._last)

    def _cut(self, keys):
        self.starts = np.union1d(self.starts, keys)

    def cut_at(self, score: Rows, levels: FloatArray, *, jumps: bool = False) -> None:
        """Cut where a function of the scores passes levels; it turns at cuts alone."""
        if len(levels):
            given = self.starts, self.stops, np.asarray(levels), self.dtype
            keys = crossings(score, *given)[2]
            self._cut(keys)
            if jumps:
                self._jumps = np.union1d(self._jumps, keys)

    def settle(self, value: Rows) -> None:
        """Move cuts to where the map itself jumps, whose arithmetic may round otherwise."""
        at = np.flatnonzero(np.isin(self.starts, self._jumps) & (self.starts > self.starts[0]))
        if not len(at):
            return
        ends, here, apart = np.append(self.starts, self._last), self.starts[at], _APART[self.dtype]
        low = here - np.minimum((here - ends[at - 1]) // np.uint64(2), apart)
        high = here + np.minimum((ends[at + 1] - here) // np.uint64(2), apart)
        left, right = value(numbers_of(np.append(low, high), self.dtype)).reshape(2, -1)
        jump = np.abs(right - left) > _JUMP
        level = (left + right)[jump] / 2
        given = low[jump], high[jump], level, right[jump] >= level, self.dtype
        self.starts[at[jump]] = first_beyond(value, *given)

    def cut(self, tree: Any, rows: Rows, *, every: bool = False) -> None:
        """Cut where the map of a tree turns; `every`: at each place where its formula changes."""
        if every or direction(tree) is None:
            _CUTS.get(tree["node"], _refuse_curve)(self, tree, rows, every)

    def search(self, value: Rows) -> None:
        """Cut where a function that is smooth between the cuts is largest or smallest."""
        number = max(9, min(_GRID, _SEARCHED // len(self.starts)))
        x = self._grid(number)
        y = value(numbers_of(x.ravel(), self.dtype)).reshape(x.shape)
        step = np.diff(y, axis=1)
        step[np.abs(step) <= _ROUNDING] = 0.0
        of_range, there = np.nonzero(step)
        sign = np.sign(step[of_range, there])
        turns = (np.diff(sign) != 0) & (np.diff(of_range) == 0)
        if turns.any():
            of_range, before, after = of_range[:-1][turns], there[:-1][turns], there[1:][turns] + 1
            ends = x[of_range, before], x[of_range, after]
            self._cut(self._extremes(value, *ends, sign[:-1][turns]))

    def _grid(self, number):
        """Keys of each range, in even steps and in even steps of log-odds, with both ends."""
        starts, stops = self.starts[:, None], self.stops[:, None]
        low, high = (numbers_of(ends, self.dtype) for ends in (starts, stops))
        share = np.linspace(0.0, 1.0, number)
        even = low + share * (high - low)
        if low.min() >= 0 and high.max() <= 1:
            with np.errstate(divide="ignore"):
                logits = [np.clip(np.log(x) - np.log1p(-x), -700.0, 40.0) for x in (low, high)]
            other = 1 / (1 + np.exp(-(logits[0] + share * (logits[1] - logits[0]))))
        else:
            near = [np.clip(x, -745.0, 745.0) for x in (low, high)]
            other = near[0] + share * (near[1] - near[0])
        keys = keys_of(np.clip(np.hstack([even, other]), low, high), self.dtype)
        return np.sort(np.hstack([starts, np.clip(keys, starts, stops), stops]), axis=1)

    def _extremes(self, value, low, high, sign):
        """Keys where a function is largest (sign 1) or smallest, each between two others."""
        while ((high - low) > 2).any():
            third = (high - low) // np.uint64(3)
            one, other = low + third, high - third
            y = value(numbers_of(np.append(one, other), self.dtype)).reshape(2, -1)
            beyond = sign * y[0] < sign * y[1]
            low, high = np.where(beyond, one, low), np.where(beyond, high, other)
        return low + np.uint64(1)


def _real_roots(roots, low=-np.inf, high=np.inf):
    """The real parts: of a pair that is none it cuts for nothing."""
    real = np.real(roots)
    return np.unique(real[(real > low) & (real < high)])


def _refuse_curve(ranges, tree, rows, every):
    """A method without a finite form: it jumps wherever its neighbours change."""
    refuse(
        ranges.where,
        "a map that only rises or only falls, or one with a finite form",
        tree.get("name", tree["node"]),
        "Take the threshold of a table of it: from_dict(to_dict(fitted, tabulate=1e-6))."
        "threshold(target), of sklearn_calib.export",
    )


def _cut_softmax(ranges, tree, rows, every):
    zero, one = _slopes(tree)
    centred, least = tree.get("centred", False), tree.get("least")
    if least is not None:
        for column, sign in ((0, -1), (1, 1)):
            level = least if centred else sign * least

            def rising(x, column=column, sign=sign):
                """A logarithm, with the other sign where it falls, or the log-odds."""
                pairs = rows(x)
                log = log_odds(pairs) if centred else np.asarray(log_proba(pairs))[:, column]
                return sign * log

            ranges.cut_at(rising, np.array([level]))
    turn = 0.0 if centred else np.log(-one / zero) if zero * one < 0 else 0.0
    ranges.cut_at(lambda x: log_odds(rows(x)), np.array([turn]))


def _cut_function(places, *, jumps=False):
    """A node that turns at numbers which `places` finds."""

    def cut(ranges, tree, rows, every):
        levels = np.unique(places(tree, every))
        ranges.cut_at(lambda x: score_of(rows(x), tree["input"]), levels, jumps=jumps)

    return cut


def _turns(values):
    """Whether the direction changes at a step but the first, or at a knot between two pieces."""
    sign = np.sign(np.diff(values))
    before = sign.copy()
    for j in range(1, len(before)):  # through flat pieces
        before[j] = before[j] or before[j - 1]
    return (sign[1:] != 0) & (sign[1:] != before[:-1])


def _edges_of_steps(tree, every):
    edges = np.asarray(tree["edges"], dtype=np.float64)
    return edges if every or len(edges) < 2 else edges[1:][_turns(tree["values"])]


def _knots_of_line(tree, every):
    knots = np.asarray(tree["knots"], dtype=np.float64)
    if every:
        return np.append(knots, [] if tree.get("domain") is None else tree["domain"])
    return knots[1:-1][_turns(tree["values"])]


def _derivatives(tree):
    """Of each piece of a cubic curve: a t^2 + b t + c, the slope in t; and the ends of the piece.

    Differentiated from s^2 (1 + 2 t) v + t^2 (3 - 2 t) v' + w t s^2 m - w t^2 s m', s = 1 - t.
    """
    knots, values, slopes = (np.asarray(tree[name]) for name in ("knots", "values", "slopes"))
    low, high = knots[:-1], knots[1:]
    width = high - low if tree.get("scale", "input") == "input" else gap(low, high)
    fall, rise, end = values[:-1] - values[1:], width * slopes[:-1], width * slopes[1:]
    return 6 * fall + 3 * (rise + end), -6 * fall - 4 * rise - 2 * end, rise, low, high


def _turns_of_cubic(tree, every):
    a, b, c, low, high = _derivatives(tree)
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    half = -(b + np.where(b < 0, -root, root)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.vstack([half / a, c / half])
    inside = (t > 0) & (t < 1)
    low, high = (np.broadcast_to(end, t.shape)[inside] for end in (low, high))
    found, knots = t[inside], np.asarray(tree["knots"], dtype=np.float64)
    if tree.get("scale", "input") == "input":
        found = low + found * (high - low)
    else:
        up, down = np.exp(-np.logaddexp(0, [-low, -high])), np.exp(-np.logaddexp(0, [low, high]))
        mixed = ((1 - found) * side[0] + found * side[1] for side in (up, down))
        found = np.subtract(*map(np.log, mixed))
    return np.concatenate([knots, found, [] if tree.get("domain") is None else tree["domain"]])


def _turns_of_polynomial(tree, every):
    coef = np.atleast_1d(np.asarray(tree["coef"], dtype=np.float64))
    roots = _real_roots(polynomial.polyroots(polynomial.polyder(coef))) if len(coef) > 2 else []
    return tree.get("centre", 0.0) + tree.get("spread", 1.0) * np.asarray(roots, dtype=np.float64)


def _turns_of_chebyshev(tree, every):
    low, high = tree["domain"]
    derivative = chebyshev.chebder(np.atleast_1d(np.asarray(tree["coef"], dtype=np.float64)))
    roots = _real_roots(chebyshev.chebroots(derivative), -1.0, 1.0)
    return np.concatenate([[low, high], low + (roots + 1) / 2 * (high - low)])


def _cut_cells(ranges, tree, rows, every):
    """Where a level of either class changes."""
    n, slack = float(tree["n_levels"]), tree["slack"]
    steps = np.arange(1, int(n) + 1, dtype=np.float64)
    ranges.cut_at(lambda x: np.floor(np.asarray(rows(x))[:, 1] * n + slack), steps, jumps=True)
    ranges.cut_at(lambda x: np.floor(np.asarray(rows(x))[:, 0] * n + slack), steps, jumps=True)


def _cut_chain(ranges, tree, rows, every):
    def after(part, rows):
        """From scores to the rows that a part gives to the next one."""
        if part["node"] == "raised":
            return lambda x: raised(rows(x), part["floor"])
        return lambda x: ranges.evaluate(part, rows(x))

    parts = tree["parts"]
    last = max((i for i, part in enumerate(parts) if every or direction(part) is None), default=-1)
    for part in parts[: last + 1]:
        ranges.cut(part, rows, every=every)
        rows = after(part, rows)


def _cut_mixture(ranges, tree, rows, every):
    """Between all cuts of all parts the sum is straight, or is searched."""
    for part in tree["parts"]:
        ranges.cut(part, rows, every=True)
    straight = {_unit(part) for part in tree["parts"]}
    ranges.searched |= None in straight or len(straight - {"constant"}) > 1


def _unit(part):
    """In what a part is straight between its cuts; None where it is not."""
    kind = part["node"]
    if kind in ("steps", "uniform"):
        return "constant"
    if kind == "identity":
        return "proba"
    if kind == "piecewise_linear" and part.get("link") is None:
        in_proba = part["input"] == "proba" or part.get("scale") == "proba"
        return "proba" if in_proba else part["input"]
    return None


def _cut_one_vs_rest(ranges, tree, rows, every):
    """Each part sees its class as the second; the ratio of what they give is searched."""
    for column, part in enumerate(tree["parts"] * (3 - len(tree["parts"]))):
        ranges.cut(part, lambda x, c=column: one_against_rest(rows(x), c), every=True)
    ranges.searched = True


_CUTS: dict[str, Callable[[Ranges, Any, Rows, bool], None]] = {
    **dict.fromkeys(
        ("identity", "uniform", "raised", "squeezed", "cumulative_affine"), lambda *_: None
    ),
    "softmax_affine": _cut_softmax,
    "steps": _cut_function(_edges_of_steps, jumps=True),
    "piecewise_linear": _cut_function(_knots_of_line),
    "piecewise_cubic": _cut_function(_turns_of_cubic),
    "sigmoid_poly": _cut_function(_turns_of_polynomial),
    "clipped_chebyshev": _cut_function(_turns_of_chebyshev),
    "cells": _cut_cells,
    "mixture": _cut_mixture,
    "chain": _cut_chain,
    "one_vs_rest": _cut_one_vs_rest,
}
