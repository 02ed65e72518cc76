"""The nodes that are functions of one number, as arithmetic.

Tables are searched by the probability, not by log-odds: it needs no logarithm, whose last digits
differ between languages. The places where the reference goes over to the next entry, rounding of
ties included, are found as float64 numbers by bisection.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import expit

from .._kernels._float_order import first_beyond, keys_of, numbers_of
from .._kernels._log_odds import gap
from .._simplex import two_classes_of_margin, without_rounding_noise
from .._typing import FloatArray
from . import _program as ops
from ._functions import (
    ClippedChebyshev,
    Curve,
    Function,
    Node,
    PiecewiseCubic,
    PiecewiseLinear,
    SigmoidPoly,
    Steps,
    score_of,
)
from ._nodes import Chain, CumulativeAffine, Identity, Mixture, Raised, SoftmaxAffine, Uniform
from ._program import Expr

_NEVER = float(np.finfo(np.float64).max)
_WIDEST = 1e300  # log-odds
INVERSE = 2.0**1022  # of the smallest normal number


@dataclass(frozen=True)
class Origin:
    """A number from which rows of two classes come, such that P_1 never falls where it grows.

    `rows` computes them as the reference does; `ends` are the least and the largest number.
    """

    number: Any
    ends: tuple[float, float]
    rows: Callable[[FloatArray], FloatArray]

    def edges(
        self, function: Callable[[FloatArray], FloatArray], targets: FloatArray
    ) -> FloatArray:
        """The least numbers for whose rows an increasing function reaches the targets."""
        return least_reaching(lambda number: function(self.rows(number)), targets, *self.ends)

    def after(self, node: Node) -> "Origin":
        """The same number as the origin of what an increasing node gives."""
        return replace(self, rows=lambda number: node(self.rows(number)))


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
    return np.where((order < 1.0)[:, None], _pair(1.0 - one, one), _pair(zero, 1.0 - zero))


def _pair(zero, one):
    return np.column_stack([zero, one])


def score(rows: ExprRows, kind: str) -> Expr:
    """As `score_of`."""
    if kind == "proba":
        return rows.p[1]
    if rows.log is not None:
        return rows.log[1] - rows.log[0]
    log = ops.log_floored if kind == "logit" else ops.log_for_order
    return log(rows.p[1]) - log(rows.p[0])


def found_by(
    node: Function,
    rows: ExprRows,
    targets: FloatArray,
    moved: Callable[[FloatArray], FloatArray],
) -> Expr:
    """How many of the targets moved(x) reaches."""
    if node.input == "proba" and rows.origin is None:
        origin = of_probability(rows.p[1])
    else:
        origin = rows.pair_origin()
    return ops.search(origin.number, edges_of(node, origin, targets, moved))


def edges_of(
    node: Function,
    origin: Origin,
    targets: FloatArray,
    moved: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """The least numbers of an origin at which moved(x) reaches the targets."""
    return origin.edges(lambda pairs: moved(score_of(pairs, node.input)), targets)


def least_reaching(
    function: Callable[[FloatArray], FloatArray], targets: FloatArray, low: float, high: float
) -> FloatArray:
    """The smallest float64 numbers of [low, high] at which an increasing function reaches targets.

    The largest float64 where it reaches them nowhere. Takes 64 evaluations of all targets.
    """
    first, last = keys_of([low, high], "float64")
    before = np.full(len(targets), first - np.uint64(1))
    beyond = np.full(len(targets), last + np.uint64(1))
    reaches = np.ones(len(targets), dtype=bool)
    keys = first_beyond(function, before, beyond, targets, reaches, "float64")
    return np.where(keys > last, _NEVER, numbers_of(np.minimum(keys, last), "float64"))


def function_rows(node: Function, value: Expr) -> ExprRows:
    """Both probabilities from the value."""
    if getattr(node, "link", None) == "sigmoid":
        return ExprRows([ops.sigmoid(-value), ops.sigmoid(value)])
    one = ops.clipped(value, 0.0, 1.0)
    return ExprRows([1.0 - one, one])


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
    """The value of a function, from which `function_rows` makes probabilities."""
    raise NotImplementedError(node.kind)


@value_of.register
def _steps(node: Steps, rows: ExprRows) -> Expr:
    """A step function."""
    return ops.lookup(found_by(node, rows, node.edges, np.asarray), node.values)


@value_of.register
def _sigmoid_poly(node: SigmoidPoly, rows: ExprRows) -> Expr:
    """A polynomial, by Horner's scheme."""
    return node.value(score(rows, node.input))


@value_of.register
def _chebyshev(node: ClippedChebyshev, rows: ExprRows) -> Expr:
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
    if not isinstance(node, PiecewiseCubic):
        return ops.lookup(place, node.values[:-1]) + share * ops.lookup(place, np.diff(node.values))
    return _cubic(node, place, share, width, outside)


def _cubic(node: PiecewiseCubic, place, at, width, outside):
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
    if isinstance(node, Identity | Uniform | Raised | CumulativeAffine):
        return True
    if isinstance(node, Mixture | Chain):
        return all(map(never_falls, node.parts))
    if isinstance(node, SoftmaxAffine):
        coef = node.coef if node.coef.ndim == 2 else np.diag(np.broadcast_to(node.coef, 2))
        return bool((coef[1] - coef[0])[1] >= 0 >= (coef[1] - coef[0])[0])
    if isinstance(node, SigmoidPoly):
        return len(node.coef) == 2 and bool(node.coef[1] >= 0)
    if isinstance(node, Steps) or (isinstance(node, PiecewiseLinear) and node.domain is not None):
        return bool((np.diff(node.values) >= 0).all())
    return False
