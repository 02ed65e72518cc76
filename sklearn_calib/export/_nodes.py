"""The nodes that describe a fitted map: what each holds, and its value, computed with numpy.

A node maps rows on the simplex to rows on the simplex. `p` is a row, `p_1` the probability of the
second class, counted from 0. `l` are its logarithms: exact ones where the row was made from logits
and nothing but nodes that hand them on (see `hands_on_logits`) came before; otherwise log p, with
p below 1.1754943508222875e-38 counted as that.

Each class of this file is one kind of node. The tables of the documentation and the JSON Schema are
read off the fields.
"""

import itertools
import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit, log_expit, softmax

from .._kernels._coupling import couple_pairs
from .._kernels._log_odds import gap
from .._simplex import (
    each_against_rest,
    log_odds,
    log_proba,
    one_against_one,
    raised,
    top_against_rest,
    unrounded_rank_score,
    with_log,
    without_rounding_noise,
)
from .._typing import FloatArray, IntArray
from ._fields import Choice, Field, Flag, Number, Numbers, Parts, entry, wrong

_SUM = 1e-9  # how far a sum that must be 1 may be from it

PARTS = Parts("The nodes inside.")
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
    'Null: P_1 is the value, moved into [0, 1]. "sigmoid": its sigmoid.', ("sigmoid",), True
)


@dataclass(frozen=True, eq=False)
class Node:
    """What all nodes share: call one with rows, of shape (n, k), to get its rows."""

    #: Its name in a description.
    kind: ClassVar[str]
    #: For two classes only.
    binary: ClassVar[bool] = False
    #: The nodes inside see two classes, whatever the number outside.
    splits: ClassVar[bool] = False
    #: Rows that carry exact logarithms still carry them afterwards.
    hands_on_logits: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __call__(self, rows: FloatArray) -> FloatArray:
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


# -- any number of classes -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Identity(Node):
    """p, without exact logarithms."""

    def __call__(self, rows):
        return np.array(rows)


@dataclass(frozen=True, eq=False)
class Uniform(Node):
    """1 / k for each of the k classes."""

    def __call__(self, rows):
        return np.full(rows.shape, 1.0 / rows.shape[1])


@dataclass(frozen=True, eq=False)
class Raised(Node):
    """Probabilities below `floor` become `floor`, and their row is divided by its sum.

    Rows without such a probability, and rows that carry exact logarithms, stay as they are.
    """

    floor: float = entry(Number("The smallest probability.", 0.0, 1.0))
    hands_on_logits: ClassVar[bool] = True

    def __call__(self, rows):
        return raised(rows, self.floor)


@dataclass(frozen=True, eq=False)
class SoftmaxAffine(Node):
    """softmax(coef u + intercept), where u = l, less its largest entry where `centred`."""

    coef: FloatArray = entry(
        Numbers("One factor for all, one for each class, or k rows of k numbers.", shapes=(0, 1, 2))
    )
    intercept: FloatArray = entry(Numbers("One number for all, or for each class.", shapes=(0, 1)))
    centred: bool = entry(Flag("Whether the largest entry of l is subtracted from it."), False)
    least: float | None = entry(
        Number("Smaller entries of u count as this number; null for none.", optional=True), None
    )

    def check(self, k, at):
        if self.coef.shape not in ((), (k,), (k, k)):
            shape = "x".join(map(str, self.coef.shape))
            wrong(f"{at}.coef", f"one number, {k} or {k}x{k} of them", f"{shape} numbers")
        if self.intercept.ndim:
            _check_length(self.intercept, k, f"{at}.intercept")

    def __call__(self, rows):
        u = np.asarray(log_proba(rows))
        if self.centred:
            u = u - u.max(axis=1, keepdims=True)
        if self.least is not None:
            u = np.maximum(u, self.least)
        moved = u @ self.coef.T if self.coef.ndim == 2 else u * self.coef
        return softmax(moved + self.intercept, axis=1)


@dataclass(frozen=True, eq=False)
class Mixture(Node):
    """The weighted mean of what the parts give."""

    weights: FloatArray = entry(Numbers("At least 0, with sum 1, one for each part.", 0.0, 1.0))
    parts: tuple[Node, ...] = entry(PARTS)

    def check(self, k, at):
        _check_length(self.weights, len(self.parts), f"{at}.weights")
        total = float(self.weights.sum())
        if abs(total - 1) > _SUM:
            wrong(f"{at}.weights", "a sum of 1", f"{total:.12g}")

    def __call__(self, rows):
        return sum(w * part(rows) for w, part in zip(self.weights, self.parts, strict=True))


@dataclass(frozen=True, eq=False)
class Chain(Node):
    """The parts one after the other: each gets what the one before it gives."""

    parts: tuple[Node, ...] = entry(PARTS)

    def __call__(self, rows):
        for part in self.parts:
            rows = part(rows)
        return rows


@dataclass(frozen=True, eq=False)
class OneVsRest(Node):
    """A part for each class c, given the two classes (all others, c), and rows divided by their sums.

    p of the others is the sum of their probabilities, l the logarithm of the sum of exp(l). A row
    for which every part gives 0 keeps p.
    """

    parts: tuple[Node, ...] = entry(Parts("One node for each class, or one for all of them."))
    splits: ClassVar[bool] = True

    def check(self, k, at):
        if len(self.parts) not in (1, k):
            wrong(f"{at}.parts", f"1 node or {k} of them", f"{len(self.parts)}")

    def __call__(self, rows):
        k = rows.shape[1]
        parts = self.parts * (k if len(self.parts) == 1 else 1)
        pairs = zip(parts, each_against_rest(rows), strict=True)
        return _divided(np.column_stack([part(pair)[:, 1] for part, pair in pairs]), rows)


@dataclass(frozen=True, eq=False)
class OneVsOne(Node):
    """A part for each pair of classes i < j, given p_i and p_j alone, joined by pairwise coupling.

    The part sees the log-odds l_j - l_i, exact. r_ij is its probability of i, moved into [1e-12,
    1 - 1e-12], and r_ji = 1 - r_ij of j, moved in the same way. With Q_ij = -r_ij r_ji and Q_ii the sum over j of r_ij^2,
    no negative entries of the solution of (Q + 1) P = 1 and division by the sum. For two classes P is
    what the part gives.
    """

    parts: tuple[Node | None, ...] = entry(
        Parts(
            "One node for each pair, in the order (0, 1), (0, 2), ..., (1, 2), ...; null for a "
            "pair that keeps its ratio.",
            gaps=True,
        )
    )
    splits: ClassVar[bool] = True

    def check(self, k, at):
        if len(self.parts) != k * (k - 1) // 2:
            wrong(f"{at}.parts", f"{k * (k - 1) // 2} nodes", f"{len(self.parts)}")

    def __call__(self, rows):
        n, k = rows.shape
        pairwise = np.zeros((n, k, k))
        pairs = itertools.combinations(range(k), 2)
        for part, (first, second) in zip(self.parts, pairs, strict=True):
            pair = one_against_one(rows, first, second)
            value = np.asarray(pair) if part is None else part(pair)
            pairwise[:, first, second], pairwise[:, second, first] = value.T
        if k == 2:
            return np.column_stack([pairwise[:, 0, 1], pairwise[:, 1, 0]])
        return couple_pairs(pairwise)


@dataclass(frozen=True, eq=False)
class TopLabel(Node):
    """A new probability for the class t with the largest p, the first of equals; the others share the rest.

    The part is given the two classes (all others, t), as in `one_vs_rest`. The others get shares in
    proportion to exp(rest l).
    """

    parts: tuple[Node | None, ...] = entry(
        Parts("One node for each class t, null where the row keeps p; or one for all.", gaps=True)
    )
    rest: float = entry(Number("Exponent of the probabilities of the other classes."))
    splits: ClassVar[bool] = True

    def check(self, k, at):
        if len(self.parts) not in (1, k):
            wrong(f"{at}.parts", f"1 node or {k} of them", f"{len(self.parts)}")
        if k == 2:
            wrong(at, "more than two classes", "two", "For two classes the part says it all")

    def __call__(self, rows):
        out = np.array(rows)
        top = out.argmax(axis=1)
        for c, part in enumerate(self.parts):
            chosen = np.flatnonzero(top == c) if len(self.parts) > 1 else np.arange(len(out))
            if part is not None and len(chosen):
                out[chosen] = self._joined(part, rows[chosen], top[chosen])
        return out

    def _joined(self, part, rows, top):
        pair = part(top_against_rest(rows, top))
        others = np.arange(rows.shape[1]) != top[:, None]
        log = np.asarray(log_proba(rows))[others].reshape(len(rows), -1)
        shares = softmax(self.rest * (log - log.max(axis=1, keepdims=True)), axis=1)
        out = np.empty(others.shape)
        out[~others] = pair[:, 1]
        out[others] = (pair[:, [0]] * shares).ravel()
        return out


@dataclass(frozen=True, eq=False)
class Cells(Node):
    """One result for all rows of a cell: of equal levels, which are floor(n_levels p + slack).

    A row of no cell keeps p where `keep`; otherwise it gets (levels + r / k) / n_levels, where r is
    what the levels miss to n_levels. Rows are divided by their sums; a row of zeros keeps p.
    """

    n_levels: int = entry(Number("Levels of a probability.", 1, 5000, whole=True))
    slack: float = entry(Number("What rounding may take from n_levels p.", 0.0, 0.5))
    keys: IntArray = entry(
        Numbers(
            "The levels of each cell, k numbers, in the order of the alphabet.",
            0,
            whole=True,
            shapes=(2,),
        )
    )
    rows: FloatArray = entry(Numbers("The result of each cell, k numbers.", 0.0, 1.0, shapes=(2,)))
    keep: bool = entry(Flag("Whether rows of no cell stay as they are."))

    def check(self, k, at):
        for name in ("keys", "rows"):
            table = getattr(self, name)
            if len(table) and table.shape[1] != k:
                wrong(f"{at}.{name}", f"{k} numbers for each cell", f"{table.shape[1]}")
        if len(self.keys) != len(self.rows):
            wrong(f"{at}.rows", f"{len(self.keys)} of them, one for each key", f"{len(self.rows)}")
        found = list(map(tuple, self.keys.tolist()))
        if any(later <= earlier for earlier, later in itertools.pairwise(found)):
            wrong(f"{at}.keys", "different keys in increasing order", "others")

    def __call__(self, rows):
        plain = np.asarray(rows)
        levels = np.floor(plain * float(self.n_levels) + self.slack).astype(np.int64)
        if self.keep:
            out = plain.copy()
        else:
            missing = self.n_levels - levels.sum(axis=1, keepdims=True)
            out = (levels + missing / plain.shape[1]) / self.n_levels
        if len(self.keys):
            both = np.vstack([self.keys, levels])
            _, number = np.unique(both, axis=0, return_inverse=True)
            cell = np.full(number.max() + 1, -1)
            cell[number.ravel()[: len(self.keys)]] = np.arange(len(self.keys))
            found = cell[number.ravel()[len(self.keys) :]]
            out[found >= 0] = self.rows[found[found >= 0]]
        return _divided(out, plain)


# -- two classes: P_1 as a function of a number x -------------------------------------------------


@dataclass(frozen=True, eq=False)
class Function(Node):
    """P_1 as a function of one number x of the row; P_0 = 1 - P_1."""

    binary: ClassVar[bool] = True

    def __call__(self, rows):
        x = score_of(rows, self.input)
        if getattr(self, "ties", False):
            x = without_rounding_noise(x, -2000 if self.input == "proba" else 0)
        return self._rows(self.value(x))

    def value(self, x: FloatArray) -> FloatArray:
        """The value at numbers x, before the link."""
        raise NotImplementedError

    def _rows(self, value):
        if getattr(self, "link", None) == "sigmoid":
            return np.column_stack([expit(-value), expit(value)])
        value = np.clip(value, 0.0, 1.0)
        return np.column_stack([1.0 - value, value])


def score_of(rows: FloatArray, score: str) -> FloatArray:
    """The number x of each row of two classes."""
    if score == "proba":
        return np.asarray(rows)[:, 1]
    return log_odds(rows) if score == "logit" else unrounded_rank_score(rows)


@dataclass(frozen=True, eq=False)
class SigmoidPoly(Function):
    """P_1 = sigmoid(sum_j coef_j z^j), z = (x - centre) / spread."""

    input: str = entry(LOGIT)
    coef: FloatArray = entry(Numbers("The constant first.", least=1))
    centre: float = entry(Number("Subtracted from x."), 0.0)
    spread: float = entry(Number("Divides x."), 1.0)
    link: ClassVar[str] = "sigmoid"

    def check(self, k, at):
        if not self.spread > 0:
            wrong(f"{at}.spread", "a number above 0", self.spread)

    def value(self, x):
        z = (x - self.centre) / self.spread
        total = np.full_like(x, self.coef[-1])
        for coefficient in self.coef[-2::-1]:
            total = total * z + coefficient
        return total


@dataclass(frozen=True, eq=False)
class ClippedChebyshev(Function):
    """P_1 = sum_j coef_j T_j(z), moved into [0, 1]; z = 2 (x - a) / (b - a) - 1, moved into [-1, 1]."""

    input: str = entry(SCORE)
    domain: FloatArray = entry(Numbers("Two numbers a < b.", length=2, increasing=True))
    coef: FloatArray = entry(
        Numbers("Coefficients of the Chebyshev polynomials T_0, T_1, ...", least=1)
    )
    ties: bool = entry(TIES, False)

    def value(self, x):
        low, high = self.domain
        z = 2 * (np.clip(x, low, high) - low) / (high - low) - 1
        return chebyshev.chebval(np.clip(z, -1.0, 1.0), self.coef)


@dataclass(frozen=True, eq=False)
class _Curve(Function):
    """What the two kinds of curves between knots share."""

    input: str = entry(SCORE)
    knots: FloatArray = entry(Numbers("Increasing, at least two.", least=2, increasing=True))
    values: FloatArray = entry(Numbers("The values at the knots."))

    def check(self, k, at):
        _check_length(self.values, len(self.knots), f"{at}.values")
        if self.domain is not None and self.domain[0] > self.domain[1]:
            wrong(f"{at}.domain", "a <= b", self.domain.tolist())
        if self.scale == "proba":
            if self.input == "proba":
                wrong(f"{at}.scale", "'input', where x is a probability", "'proba'")
            ends = self.knots[[0, -1]]
            if self.domain is None or self.domain[0] < ends[0] or self.domain[1] > ends[1]:
                wrong(
                    f"{at}.domain", "a domain within the knots, where scale is 'proba'", "another"
                )

    def _place(self, x):
        """The piece of each number, t, and the length of the piece."""
        if self.domain is not None:
            x = np.clip(x, *self.domain)
        left = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)
        low, high = self.knots[left], self.knots[left + 1]
        if self.scale == "input":
            return left, (x - low) / (high - low), high - low
        share = np.exp(log_expit(x) - log_expit(high)) * np.expm1(low - x) / np.expm1(low - high)
        return left, np.clip(share, 0.0, 1.0), gap(low, high)


@dataclass(frozen=True, eq=False)
class PiecewiseLinear(_Curve):
    """Linear between knots: value_j + (value_(j+1) - value_j) t on [knot_j, knot_(j+1)].

    t is the length from knot_j to x divided by that from knot_j to knot_(j+1).
    """

    domain: FloatArray | None = entry(DOMAIN)
    scale: str = entry(SCALE, "input")
    link: str | None = entry(LINK, None)
    ties: bool = entry(TIES, False)

    def value(self, x):
        left, t, _ = self._place(x)
        return self.values[left] + t * (self.values[left + 1] - self.values[left])


@dataclass(frozen=True, eq=False)
class PiecewiseCubic(_Curve):
    """Cubic between knots, with the given slopes there.

    On [knot_j, knot_(j+1)] of length w, with t as in `piecewise_linear` and s = 1 - t: s^2 (1 + 2 t)
    value_j + t^2 (3 - 2 t) value_(j+1) + w t s^2 slope_j - w t^2 s slope_(j+1).
    """

    slopes: FloatArray = entry(Numbers("The slopes at the knots, per unit of length."))
    domain: FloatArray | None = entry(DOMAIN)
    scale: str = entry(SCALE, "input")
    link: str | None = entry(LINK, None)
    ties: bool = entry(TIES, False)

    def check(self, k, at):
        super().check(k, at)
        _check_length(self.slopes, len(self.knots), f"{at}.slopes")

    def value(self, x):
        left, at, width = self._place(x)
        t = np.clip(at, 0.0, 1.0)
        beyond = (at - t) * width
        s, square = 1 - t, t * t
        return (
            s * s * (1 + 2 * t) * self.values[left]
            + square * (3 - 2 * t) * self.values[left + 1]
            + (width * t * s * s + np.minimum(beyond, 0)) * self.slopes[left]
            + (np.maximum(beyond, 0) - width * square * s) * self.slopes[left + 1]
        )


@dataclass(frozen=True, eq=False)
class Steps(Function):
    """P_1 = values_j where edges_(j-1) <= x < edges_j."""

    input: str = entry(SCORE)
    edges: FloatArray = entry(Numbers("Increasing; none for a constant.", increasing=True))
    values: FloatArray = entry(Numbers("One more than edges.", 0.0, 1.0))

    def check(self, k, at):
        _check_length(self.values, len(self.edges) + 1, f"{at}.values")

    def value(self, x):
        return self.values[np.searchsorted(self.edges, x, side="right")]


def _check_length(values, length, at):
    if len(values) != length:
        wrong(at, f"{length} numbers", f"{len(values)}")


def _divided(values, fallback):
    """Rows divided by their sums; rows of zeros are those of `fallback`."""
    empty = values.sum(axis=1) <= 0
    values = np.where(empty[:, None], np.asarray(fallback), values)
    return values / values.sum(axis=1, keepdims=True)


#: All kinds of nodes, by name.
NODES: dict[str, type[Node]] = {
    cls.kind: cls
    for cls in list(globals().values())
    if isinstance(cls, type)
    and issubclass(cls, Node)
    and cls.__doc__
    and cls not in (Node, Function, _Curve)
}
