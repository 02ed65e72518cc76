"""The nodes for two classes that give P_1 as a function of one number.

The functions are written once, with operators and functions of numpy: they compute with arrays, and
write a graph of ONNX or of `_program` where they are called with its tensors or columns.
"""

import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit, log_expit

from .._kernels._log_odds import gap
from .._simplex import score_of, without_rounding_noise
from .._typing import FloatArray
from ._fields import Choice, Flag, Number, Numbers, entry, wrong

#: All kinds of nodes, by name: a class is one when it is defined.
NODES: dict[str, type["Node"]] = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """What all nodes share: call one with rows, of shape (n, k), to get its rows."""

    #: Its name in a description.
    kind: ClassVar[str]
    #: For two classes only.
    binary: ClassVar[bool] = False
    #: The nodes inside see two classes, whatever the number outside.
    splits: ClassVar[bool] = False

    def __init_subclass__(cls, *, shared: bool = False) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        if not shared:  # by several kinds
            NODES[cls.kind] = cls

    def __call__(self, rows: FloatArray) -> FloatArray:
        raise NotImplementedError

    def written(self, rows: Any) -> Any:
        """What the node gives for the `Rows` of a program or a graph."""
        raise NotImplementedError

    def check(self, k: int, at: str) -> None:
        """Refuse fields that do not fit each other, or the number of classes."""

    def tree(self) -> dict[str, Any]:
        """The node as it was read: a dict of JSON's types."""
        return {"node": self.kind} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def children(self) -> tuple["Node", ...]:
        """The nodes inside, without gaps."""
        return tuple(part for part in getattr(self, "parts", ()) if part is not None)


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [None if part is None else part.tree() for part in value]
    return value


def check_length(values: FloatArray, length: int, at: str) -> None:
    if len(values) != length:
        wrong(at, f"{length} numbers", f"{len(values)}")


# ruff: noqa: RUF009 - `entry` makes a field of a dataclass


_ENDS = slice(-1), slice(1, None)  # of the pieces between knots
_SLACK = 1e-9  # what rounding may move a probability beyond 0 or 1 by
TIES = Flag(
    "Whether x is first rounded to 36 significant bits, halves to even; of log-odds those of size "
    "below 1 to multiples of 2^-36. Rows that differ by rounding noise alone then get one result."
)
SCORE = Choice(
    'What x is: "proba", p_1; "logit", l_1 - l_0; or "rank", the same with l = log p down to the '
    "smallest float64 and -745.1332191019412, which is -1075 log 2, for a zero.",
    ("proba", "logit", "rank"),
)
LOGIT = Choice('What x is: "proba" or "logit", as in `steps`.', ("proba", "logit"))
DOMAIN = Numbers(
    "Two numbers a <= b: x is first moved into [a, b]. Null: x stays, and beyond the knots the "
    "curve goes on as a straight line.",
    length=2,
    optional=True,
)
SCALE = Choice(
    'What lengths are measured in: "input", the length from a to b is b - a, or "proba", with x '
    "and knots that are log-odds, sigmoid(b) - sigmoid(a).",
    ("input", "proba"),
)
LINK = Choice(
    'Null: P_1 is the value, moved into [0, 1]. "sigmoid": its sigmoid.', ("sigmoid", None)
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Function(Node, shared=True):
    """P_1 as a function of one number x of the row; P_0 = 1 - P_1."""

    input: str = entry(SCORE)
    binary: ClassVar[bool] = True

    def __call__(self, rows: FloatArray) -> FloatArray:
        x = score_of(rows, self.input)
        if getattr(self, "ties", False):
            x = without_rounding_noise(x, -2000 if self.input == "proba" else 0)
        return self.pair(self.value(x))

    def written(self, rows: Any) -> Any:
        return rows.of(self.pair(rows.value(self)))

    def value(self, x: Any) -> Any:
        """The value at numbers x, before the link: an array, a tensor (n, 1), or a column."""
        raise NotImplementedError

    def pair(self, value: Any) -> Any:
        """(P_0, P_1), from an array, a tensor or a column of values."""
        if getattr(self, "link", None) == "sigmoid":
            return np.column_stack([expit(-value), expit(value)])
        value = np.clip(value, 0.0, 1.0)
        return np.column_stack([1.0 - value, value])


def entries(table: FloatArray, places: Any) -> Any:
    """Entries of a table at places that are an array, or a tensor, or a column."""
    return table[places] if isinstance(places, np.ndarray) else places.entries_of(table)


@dataclass(frozen=True, eq=False, kw_only=True)
class SigmoidPoly(Function):
    """P_1 = sigmoid(sum_j coef_j z^j), z = (x - centre) / spread."""

    input: str = entry(LOGIT)
    coef: FloatArray = entry(Numbers("The constant first.", least=1))
    centre: float = entry(Number("Subtracted from x."), 0.0)
    spread: float = entry(Number("Divides x."), 1.0)
    link: ClassVar[str] = "sigmoid"

    def check(self, k: int, at: str) -> None:
        if not self.spread > 0:
            wrong(f"{at}.spread", "a number above 0", f"{self.spread:g}")

    def value(self, x: Any) -> Any:
        z = (x - self.centre) / self.spread
        total = 0.0 * x + self.coef[-1]
        for coefficient in self.coef[-2::-1]:
            total = total * z + coefficient
        return total


@dataclass(frozen=True, eq=False, kw_only=True)
class ClippedChebyshev(Function):
    """P_1 = sum_j coef_j T_j(z), moved into [0, 1].

    z = 2 (x - a) / (b - a) - 1, moved into [-1, 1].
    """

    domain: FloatArray = entry(Numbers("Two numbers a < b.", length=2, increasing=True))
    coef: FloatArray = entry(
        Numbers("Coefficients of the Chebyshev polynomials T_0, T_1, ...", least=1)
    )
    ties: bool = entry(TIES, False)

    def value(self, x: Any) -> Any:
        low, high = self.domain
        z = 2.0 * (np.clip(x, low, high) - low) / (high - low) - 1.0
        return chebyshev.chebval(np.clip(z, -1.0, 1.0), self.coef)


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve(Function, shared=True):
    """What the two kinds of curves between knots share."""

    knots: FloatArray = entry(Numbers("Increasing, at least two.", least=2, increasing=True))
    values: FloatArray = entry(
        Numbers("The values at the knots; without a link and with a domain, in [0, 1].")
    )
    domain: FloatArray | None = entry(DOMAIN)
    scale: str = entry(SCALE, "input")
    link: str | None = entry(LINK, None)
    ties: bool = entry(TIES, False)

    def check(self, k: int, at: str) -> None:
        check_length(self.values, len(self.knots), f"{at}.values")
        if self.domain is not None and self.domain[0] > self.domain[1]:
            wrong(f"{at}.domain", "a <= b", f"{self.domain.tolist()}")
        if self.scale == "proba":
            if self.input == "proba":
                wrong(f"{at}.scale", "'input', where x is a probability", "'proba'")
            ends = self.knots[[0, -1]]
            if self.domain is None or self.domain[0] < ends[0] or self.domain[1] > ends[1]:
                wrong(
                    f"{at}.domain", "a domain within the knots, where scale is 'proba'", "another"
                )
        if self.link is None and self.domain is not None:
            Numbers("", -_SLACK, 1 + _SLACK).read(self.values, f"{at}.values")

    @cached_property
    def _tables(self):
        """Of each piece: where it begins, its length, and what else its t needs."""
        low, high = self.knots[:-1], self.knots[1:]
        if self.scale == "input":
            return low, high - low
        return low, gap(low, high), log_expit(high), np.expm1(low - high)

    def _place(self, x):
        """The piece of each number, t, and the length of the piece."""
        if self.domain is not None:
            x = np.clip(x, *self.domain)
        piece = np.searchsorted(self.knots[1:-1], x, side="right")
        low, width, *more = (entries(table, piece) for table in self._tables)
        if self.scale == "input":
            return piece, (x - low) / width, width
        share = np.exp(log_expit(x) - more[0]) * np.expm1(low - x) / more[1]
        return piece, np.clip(share, 0.0, 1.0), width


@dataclass(frozen=True, eq=False, kw_only=True)
class PiecewiseLinear(Curve):
    """Linear between knots: value_j + (value_(j+1) - value_j) t on [knot_j, knot_(j+1)].

    t is the length from knot_j to x divided by that from knot_j to knot_(j+1).
    """

    def value(self, x: Any) -> Any:
        piece, t, _ = self._place(x)
        return entries(self.values[:-1], piece) + t * entries(np.diff(self.values), piece)


@dataclass(frozen=True, eq=False, kw_only=True)
class PiecewiseCubic(Curve):
    """Cubic between knots, with the given slopes there.

    On [knot_j, knot_(j+1)] of length w, with t as in `piecewise_linear` and s = 1 - t:
    s^2 (1 + 2 t) value_j + t^2 (3 - 2 t) value_(j+1) + w t s^2 slope_j - w t^2 s slope_(j+1).
    """

    slopes: FloatArray = entry(Numbers("The slopes at the knots, per unit of length."))

    def check(self, k: int, at: str) -> None:
        super().check(k, at)
        check_length(self.slopes, len(self.knots), f"{at}.slopes")

    def value(self, x: Any) -> Any:
        piece, at, width = self._place(x)
        first, last = (entries(self.values[ends], piece) for ends in _ENDS)
        rise, fall = (entries(self.slopes[ends], piece) for ends in _ENDS)
        t = np.clip(at, 0.0, 1.0)
        beyond = (at - t) * width
        s, square = 1.0 - t, t * t
        return (
            s * s * (1.0 + 2.0 * t) * first
            + square * (3.0 - 2.0 * t) * last
            + (width * t * s * s + np.minimum(beyond, 0.0)) * rise
            + (np.maximum(beyond, 0.0) - width * square * s) * fall
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps(Function):
    """P_1 = values_j where edges_(j-1) <= x < edges_j."""

    edges: FloatArray = entry(Numbers("Increasing; none for a constant.", increasing=True))
    values: FloatArray = entry(Numbers("One more than edges.", 0.0, 1.0))

    def check(self, k: int, at: str) -> None:
        check_length(self.values, len(self.edges) + 1, f"{at}.values")

    def value(self, x: Any) -> Any:
        return entries(self.values, np.searchsorted(self.edges, x, side="right"))
