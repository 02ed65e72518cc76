"""The nodes that describe a fitted map: what each holds, its value by numpy, and how it is written.

A node maps rows on the simplex to rows on the simplex. `p` is a row, `p_1` the probability of the
second class, counted from 0. `l` are its logarithms: exact ones where the row was made from logits
and nothing but `Raised` came before, which hands them on; otherwise log p, with p below
1.1754943508222875e-38 counted as that.

Each class of this file and of `_functions` is one kind of node. The tables of the documentation and
the JSON Schema are read off the fields.
"""

# ruff: noqa: RUF009 - `entry` makes a field of a dataclass

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from .._kernels._level_sets import rounded
from .._kernels._ordinal import probabilities, thresholds
from .._simplex import (
    absent_of,
    log_of_options,
    log_proba,
    raised,
    top_against_rest,
)
from .._typing import FloatArray, IntArray
from ..recalibrators import joined_against_rest, normalised_rows, with_confidence
from ._fields import Flag, Number, Numbers, Parts, entry, wrong
from ._functions import NODES as NODES
from ._functions import Node as Node
from ._functions import check_length
from ._program import paired

_SUM = 1e-9  # how far a sum that must be 1 may be from it

PARTS = Parts("The nodes inside.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Identity(Node):
    """p, without exact logarithms."""

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.array(rows)

    def written(self, rows: Any) -> Any:
        return rows.of(rows.p)


@dataclass(frozen=True, eq=False, kw_only=True)
class Uniform(Node):
    """1 / k for each of the k classes."""

    def __call__(self, rows: FloatArray) -> FloatArray:
        absent = absent_of(rows)
        if absent is not None:
            return ~absent / (~absent).sum(axis=1, keepdims=True)
        return np.full(rows.shape, 1.0 / rows.shape[1])

    def written(self, rows: Any) -> Any:
        return rows.of(rows.p * 0.0 + 1.0 / rows.k)


@dataclass(frozen=True, eq=False, kw_only=True)
class Raised(Node):
    """Probabilities below `floor` become `floor`, and their row is divided by its sum.

    Rows without such a probability, and rows that carry exact logarithms, stay as they are.
    """

    floor: float = entry(Number("The smallest probability.", 0.0, 1.0))

    def check(self, k: int, at: str) -> None:
        if self.floor > 1 / k:
            wrong(f"{at}.floor", f"a number <= {1 / k:.6g}, one over the classes", f"{self.floor}")

    def __call__(self, rows: FloatArray) -> FloatArray:
        return raised(rows, self.floor)

    def written(self, rows: Any) -> Any:
        if rows.exact is not None:
            return rows
        higher = np.maximum(rows.p, self.floor)
        low = rows.p.min() < self.floor
        return rows.of(low.where(higher / higher.sum(), rows.p))


@dataclass(frozen=True, eq=False, kw_only=True)
class Squeezed(Node):
    """P_c in proportion to 1 / (1 + m - l_c), m the largest entry of l: tails become short."""

    def __call__(self, rows: FloatArray) -> FloatArray:
        return _squeezed(log_proba(rows))

    def written(self, rows: Any) -> Any:
        return rows.of(_squeezed(rows.log))


def _squeezed(log):
    shares = 1.0 / (1.0 + log.max(axis=1, keepdims=True) - log)
    return shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False, kw_only=True)
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

    def check(self, k: int, at: str) -> None:
        if self.coef.shape not in ((), (k,), (k, k)):
            shape = "x".join(map(str, self.coef.shape))
            wrong(f"{at}.coef", f"one number, {k} or {k}x{k} of them", f"{shape} numbers")
        if self.intercept.ndim:
            check_length(self.intercept, k, f"{at}.intercept")

    def __call__(self, rows: FloatArray) -> FloatArray:
        return softmax(self.logits(np.asarray(log_of_options(rows))), axis=1)

    def written(self, rows: Any) -> Any:
        return rows.of(self.logits(rows.log).softmax())

    def logits(self, u: Any) -> Any:
        """What softmax is taken of, from the array, the tensor or the columns of l."""
        if self.centred:
            u = u - u.max(axis=1, keepdims=True)
        if self.least is not None:
            u = np.maximum(u, self.least)
        moved = u @ self.coef.T if self.coef.ndim == 2 else u * self.coef
        return moved + self.intercept


@dataclass(frozen=True, eq=False, kw_only=True)
class CumulativeAffine(Node):
    """For ordered classes: "above class c" gets the log-odds slope z_c + shifts_c, c = 0 .. k - 2.

    z_c is the logarithm of the sum of exp(l) over the classes above c, less that over the others.
    """

    slope: float = entry(Number("Factor of the log-odds.", 0.0))
    shifts: FloatArray = entry(
        Numbers("One for each class but the last, none above the one before.")
    )

    def check(self, k: int, at: str) -> None:
        check_length(self.shifts, k - 1, f"{at}.shifts")
        if (np.diff(self.shifts) > 0).any():
            wrong(f"{at}.shifts", "numbers that do not rise", "others")

    def __call__(self, rows: FloatArray) -> FloatArray:
        return probabilities(thresholds(log_proba(rows)), self.slope, self.shifts)

    def written(self, rows: Any) -> Any:
        eta = rows.thresholds() * float(self.slope) + self.shifts
        above = [expit(eta).column(c) for c in range(rows.k - 1)]
        inner = [np.maximum(one - other, 0.0) for one, other in itertools.pairwise(above)]
        table = np.column_stack([expit(-eta.column(0)), *inner, above[-1]])
        return rows.of(table / table.sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixture(Node):
    """The weighted mean of what the parts give."""

    weights: FloatArray = entry(Numbers("At least 0, with sum 1, one for each part.", 0.0, 1.0))
    parts: tuple[Node, ...] = entry(PARTS)

    def check(self, k: int, at: str) -> None:
        check_length(self.weights, len(self.parts), f"{at}.weights")
        total = float(self.weights.sum())
        if abs(total - 1) > _SUM:
            wrong(f"{at}.weights", "a sum of 1", f"{total:.12g}")

    def __call__(self, rows: FloatArray) -> FloatArray:
        return sum(w * part(rows) for w, part in zip(self.weights, self.parts, strict=True))

    def written(self, rows: Any) -> Any:
        weighted = zip(self.weights.tolist(), self.parts, strict=True)
        return rows.of(paired(np.add, [rows.after(part).p * w for w, part in weighted]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(Node):
    """The parts one after the other: each gets what the one before it gives."""

    parts: tuple[Node, ...] = entry(PARTS)

    def __call__(self, rows: FloatArray) -> FloatArray:
        for part in self.parts:
            rows = part(rows)
        return rows

    def written(self, rows: Any) -> Any:
        for part in self.parts:
            rows = rows.after(part)
        return rows


def takes_absent(node: Node) -> bool:
    """Whether a node keeps options that a row does not have at 0."""
    if isinstance(node, SoftmaxAffine):
        return node.coef.ndim == node.intercept.ndim == 0 and node.least is None
    if isinstance(node, Mixture):
        return all(map(takes_absent, node.parts))
    if isinstance(node, Chain):  # what Raised gives is still marked
        return all(isinstance(p, Raised) for p in node.parts[:-1]) and takes_absent(node.parts[-1])
    return isinstance(node, Identity | Uniform | Raised)


@dataclass(frozen=True, eq=False, kw_only=True)
class OneVsRest(Node):
    """A part for each class c, given two classes (all others, c); rows are divided by their sums.

    p of the others is the sum of their probabilities, l the logarithm of the sum of exp(l). A row
    for which every part gives 0 keeps p.
    """

    parts: tuple[Node, ...] = entry(Parts("One node for each class, or one for all of them."))
    splits: ClassVar[bool] = True

    def check(self, k: int, at: str) -> None:
        if len(self.parts) not in (1, k):
            wrong(f"{at}.parts", f"1 node or {k} of them", f"{len(self.parts)}")

    def __call__(self, rows: FloatArray) -> FloatArray:
        parts = self._of_each(rows.shape[1])
        return joined_against_rest(parts, rows, lambda part, pair: part(pair))

    def written(self, rows: Any) -> Any:
        pairs = zip(self._of_each(rows.k), rows.against_rest(), strict=True)
        return rows.divided(np.column_stack([pair.after(part).p.column(1) for part, pair in pairs]))

    def _of_each(self, k):
        return self.parts * (k if len(self.parts) == 1 else 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class TopLabel(Node):
    """A new probability for the class t with the largest p, the first of equals.

    The part is given the two classes (all others, t), as in `one_vs_rest`. The others share
    what it leaves, in proportion to exp(rest l).
    """

    parts: tuple[Node | None, ...] = entry(
        Parts("One node for each class t, null where the row keeps p; or one for all.", gaps=True)
    )
    rest: float = entry(Number("Exponent of the probabilities of the other classes."))
    splits: ClassVar[bool] = True

    def check(self, k: int, at: str) -> None:
        if len(self.parts) not in (1, k):
            wrong(f"{at}.parts", f"1 node or {k} of them", f"{len(self.parts)}")
        if k == 2:
            wrong(at, "more than two classes", "two", "For two classes the part says it all")

    def __call__(self, rows: FloatArray) -> FloatArray:
        out = np.array(rows)
        top = out.argmax(axis=1)
        for c, part in enumerate(self.parts):
            chosen = np.flatnonzero(top == c) if len(self.parts) > 1 else np.arange(len(out))
            if part is not None and len(chosen):
                given, predicted = rows[chosen], top[chosen]
                pair = part(top_against_rest(given, predicted))
                out[chosen] = with_confidence(pair, given, predicted, self.rest)
        return out

    def written(self, rows: Any) -> Any:
        is_top, exact = rows.is_top(), None
        log_others = is_top.where(rows.lowest, rows.log)
        if rows.exact is not None:
            log_top = is_top.where(rows.exact, 0.0).sum()
            exact = np.column_stack([log_others.log_of_sum(), log_top])
        p: Any = np.column_stack([is_top.where(0.0, rows.p).sum(), rows.p.max()])
        pair = rows.of(p, 2, exact)
        found = [p if part is None else pair.after(part).p for part in self.parts]
        rest, top = found[0].column(0), found[0].column(1)
        if len(found) > 1:  # the numbers of the part that is that of the class
            of_parts = (np.column_stack([one.column(side) for one in found]) for side in (0, 1))
            rest, top = (is_top.where(one, 0.0).sum() for one in of_parts)
        shares = is_top.where(rows.lowest, (rows.log - log_others.max()) * self.rest).softmax()
        out = is_top.where(top, rest * shares)
        if None in self.parts:
            kept = np.array([float(part is None) for part in self.parts])
            out = (is_top.where(kept, 0.0).sum() > 0.5).where(rows.p, out)
        return rows.of(out)


@dataclass(frozen=True, eq=False, kw_only=True)
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

    def check(self, k: int, at: str) -> None:
        for name in ("keys", "rows"):
            table = getattr(self, name)
            if len(table) and table.shape[1] != k:
                wrong(f"{at}.{name}", f"{k} numbers for each cell", f"{table.shape[1]}")
        if len(self.keys) != len(self.rows):
            wrong(f"{at}.rows", f"{len(self.keys)} of them, one for each key", f"{len(self.rows)}")
        found = list(map(tuple, self.keys.tolist()))
        if any(later <= earlier for earlier, later in itertools.pairwise(found)):
            wrong(f"{at}.keys", "different keys in increasing order", "others")

    def __call__(self, rows: FloatArray) -> FloatArray:
        plain = np.asarray(rows)
        levels = np.floor(plain * float(self.n_levels) + self.slack).astype(np.int64)
        out = plain.copy() if self.keep else rounded(levels, self.n_levels)
        if len(self.keys):
            known = {key: cell for cell, key in enumerate(map(tuple, self.keys.tolist()))}
            cells = (known.get(level, -1) for level in map(tuple, levels.tolist()))
            found = np.fromiter(cells, np.intp, len(levels))
            out[found >= 0] = self.rows[found[found >= 0]]
        return normalised_rows(out, plain)

    def written(self, rows: Any) -> Any:
        n_levels = float(self.n_levels)
        levels = np.floor(rows.p * n_levels + self.slack)
        missing = (n_levels - levels.sum()) / float(rows.k)
        out = rows.p if self.keep else (levels + missing) / n_levels
        return rows.divided(rows.in_cells(self, levels, out) if len(self.keys) else out)
