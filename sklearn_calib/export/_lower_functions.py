"""The nodes that are functions of one number, as arithmetic.

Tables are searched by the probability, not by log-odds: it needs no logarithm, whose last digits
differ between languages. The places where the reference goes over to the next entry, rounding of
ties included, are found as float64 numbers by bisection.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .._kernels._log_odds import gap
from .._simplex import without_rounding_noise
from .._typing import FloatArray
from ._functions import Curve, Function, PiecewiseCubic, PiecewiseLinear, score_of
from ._program import (
    SMALLEST_DIVISOR,
    Expr,
    at_most,
    chebyshev_sum,
    clipped,
    expm1_of_negative,
    larger,
    log_floored,
    log_for_order,
    lookup,
    number,
    rounded,
    search,
    sigmoid,
    smaller,
    where,
)

_NEVER = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Rows:
    """The row between two nodes: probabilities, and logarithms where they are exact.

    `alone` where p_0 is computed as 1 - p_1.
    """

    p: list[Expr]
    log: list[Expr] | None = None
    alone: bool = False


@dataclass(frozen=True)
class Score:
    """The number x of a row, and one that orders rows alike, computed without logarithms."""

    x: Expr
    order: Expr
    x_of_order: Callable[[FloatArray], FloatArray]
    ends: tuple[float, float]

    def edges(self, targets: FloatArray, moved: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The least orders for which moved(x) reaches the targets."""
        return least_reaching(lambda order: moved(self.x_of_order(order)), targets, *self.ends)


def score(rows: Rows, kind: str) -> Score:
    """As `score_of`."""
    if kind == "proba":
        return Score(rows.p[1], rows.p[1], np.asarray, (0.0, 1.0))
    if rows.log is not None:
        x = rows.log[1] - rows.log[0]
        return Score(x, x, np.asarray, (-_NEVER, _NEVER))
    log = log_floored if kind == "logit" else log_for_order
    zero, one = rows.p
    x = log(one) - log(zero)
    if rows.alone:
        return Score(x, one, lambda p: score_of(_pair(1.0 - p, p), kind), (0.0, 1.0))
    order = where(at_most(one, zero), one, 1.0 / larger(zero, SMALLEST_DIVISOR))

    def x_of_order(order):
        small = 1.0 / np.maximum(order, 2.0)
        low = np.minimum(order, 0.5)
        pair = np.where(order < 1, [1.0 - low, low], [small, 1.0 - small])
        return score_of(_pair(*pair), kind)

    return Score(x, order, x_of_order, (0.0, 1.0 / SMALLEST_DIVISOR))


def _pair(zero, one):
    return np.column_stack([zero, one])


def least_reaching(
    function: Callable[[FloatArray], FloatArray], targets: FloatArray, low: float, high: float
) -> FloatArray:
    """The smallest float64 numbers of [low, high] at which an increasing function reaches targets.

    The largest float64 where it reaches them nowhere. Takes 64 evaluations of all targets.
    """
    below = np.full(len(targets), _place_of(low) - 1)
    reached = np.full(len(targets), _place_of(high) + 1)
    while (open_ := reached - 1 > below).any():
        middle = (below >> 1) + (reached >> 1) + (below & reached & 1)
        at = np.clip(_float_at(middle), low, high)
        enough = function(at) >= targets
        reached = np.where(open_ & enough, middle, reached)
        below = np.where(open_ & ~enough, middle, below)
    never = reached > _place_of(high)
    return np.where(never, _NEVER, _float_at(np.where(never, 0, reached)))


def _place_of(value):
    """Where a float64 stands in the order of all of them; zero at 0."""
    bits = np.float64(value).view(np.int64)
    return int(bits) if bits >= 0 else -int(bits & np.int64(2**63 - 1))


def _float_at(places):
    return np.copysign(np.abs(places).view(np.float64), places)


def function_rows(node: Function, value: Expr) -> Rows:
    """Both probabilities from the value."""
    if getattr(node, "link", None) == "sigmoid":
        return Rows([sigmoid(-value), sigmoid(value)])
    one = clipped(value, 0.0, 1.0)
    return Rows([1.0 - one, one])


def moved_score(
    node: Function, rows: Rows, domain: FloatArray | None
) -> tuple[Score, Expr, Callable]:
    """The number x, rounded and moved into the domain, and what does the same to arrays."""
    found = score(rows, node.input)
    x, ties = found.x, getattr(node, "ties", False)
    if ties:
        x = rounded(x, 0.0 if node.input == "proba" else 1.0)
    if domain is not None:
        x = clipped(x, *domain)

    def moved(numbers):
        if ties:
            numbers = without_rounding_noise(numbers, -2000 if node.input == "proba" else 0)
        return numbers if domain is None else np.clip(numbers, *domain)

    return found, x, moved


def steps_value(node, rows):
    found = score(rows, node.input)
    return lookup(search(found.order, found.edges(node.edges, np.asarray)), node.values)


def sigmoid_poly_value(node, rows):
    z = (score(rows, node.input).x - node.centre) / node.spread
    value = number(node.coef[-1])
    for coefficient in node.coef[-2::-1]:
        value = value * z + float(coefficient)
    return value


def chebyshev_value(node, rows):
    low, high = node.domain
    _, x, _ = moved_score(node, rows, node.domain)
    z = (x - low) * (2.0 / (high - low)) - 1.0
    return chebyshev_sum(clipped(z, -1.0, 1.0), node.coef)


def curve_value(node: Curve, rows: Rows) -> Expr:
    """A curve between knots."""
    found, x, moved = moved_score(node, rows, node.domain)
    place = search(found.order, found.edges(node.knots[1:-1], moved))
    low, high = node.knots[:-1], node.knots[1:]
    start = lookup(place, low)
    if node.scale == "input":
        width = high - low
        with np.errstate(over="ignore"):
            share = (x - start) * lookup(place, 1.0 / width)
        outside = node.domain is None or node.domain[0] < low[0] or node.domain[1] > high[-1]
    else:
        width, outside = gap(low, high), False
        unit = 1.0 / np.minimum(expit(high) * np.expm1(low - high), -SMALLEST_DIVISOR)
        share = sigmoid(x) * expm1_of_negative(start - x) * lookup(place, unit)
        share = clipped(share, 0.0, 1.0)
    if isinstance(node, PiecewiseLinear):
        return lookup(place, node.values[:-1]) + share * lookup(place, np.diff(node.values))
    return _cubic(node, place, share, width, outside)


def _cubic(node: PiecewiseCubic, place, at, width, outside):
    """The cubic in powers of t, and straight lines beyond the knots."""
    rise = np.diff(node.values)
    left, right = width * node.slopes[:-1], width * node.slopes[1:]
    t = clipped(at, 0.0, 1.0) if outside else at
    powers = [node.values[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise]
    value = lookup(place, powers[3])
    for power in powers[2::-1]:
        value = lookup(place, power) + t * value
    if outside:
        value = value + smaller(at - t, 0.0) * lookup(place, left)
        value = value + larger(at - t, 0.0) * lookup(place, right)
    return value
