"""Expressions of programs as SQL text."""

import math
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..exceptions import refuse
from ._dialects import Dialect
from ._program import SMALLEST_DIVISOR, Expr, ordered

_LONGEST = 8_000_000  # characters of an expression
_WAYS = 4  # of a CASE: SQLite's parser allows about 15 of them inside each other
_NEVER = 1e308  # edges from here on are never reached


class Printer:
    """Prints expressions; some have a name already, by id: those of columns."""

    def __init__(self, dialect: Dialect, names: dict[int, str]) -> None:
        self.dialect = dialect
        self.names = names

    def text(self, root: Expr) -> str:
        """One expression."""
        said, depth = dict(self.names), dict.fromkeys(self.names, 1)
        for one in list(ordered([root], said)):
            said[id(one)] = self._operation(one, [said[id(arg)] for arg in one.args])
            depth[id(one)] = _depth(one, [depth[id(arg)] for arg in one.args])
        self._check(depth[id(root)], self.dialect.deepest, "an expression less deeply nested")
        return said[id(root)]

    def _operation(self, one: Expr, args: list[str]) -> str:
        data: Any = one.data
        if one.op == "number":  # some databases take the smallest numbers for zeros
            tiny = 0 < abs(data) < SMALLEST_DIVISOR
            return self.dialect.literal(np.copysign(SMALLEST_DIVISOR, data) if tiny else data)
        if one.op == "search":
            return args[0]  # what the lookups compare
        if one.op == "lookup":
            return self._tree(args[0], *distinct_pieces(one.args[0].data, data))
        if one.op == "chebyshev":
            return self._chebyshev(args[0], data.tolist())
        self._check_length(sum(map(len, args)))
        return self.dialect.operation(one.op).format(*args)

    def _tree(self, x: str, edges: FloatArray, values: FloatArray) -> str:
        """The value of the piece of x by balanced CASEs inside each other."""
        self._check_length(len(edges) * (len(x) + 50))
        literal = self.dialect.literal

        def piece(first, last):
            if first == last:
                return literal(values[first])
            starts = sorted({first + (last + 1 - first) * i // _WAYS for i in range(_WAYS)})
            ends = [start - 1 for start in starts[1:]]
            whens = [
                f"WHEN {x} < {literal(edges[end])} THEN {piece(start, end)}"
                for start, end in zip(starts, ends, strict=False)
            ]
            return f"CASE {' '.join(whens)} ELSE {piece(starts[-1], last)} END"

        return piece(0, len(edges))

    def _chebyshev(self, z: str, coef: list[float]) -> str:
        """T_j(z) = cos(j arccos z): Clenshaw's recurrence needs everything twice."""
        self._check_length(len(coef) * (len(z) + 60))
        literal = self.dialect.literal
        terms = [f"{literal(c)} * COS({literal(j)} * ACOS({z}))" for j, c in enumerate(coef) if j]
        return f"({' + '.join([literal(coef[0]), *terms])})"

    def _check_length(self, length: int) -> None:
        self._check(length, _LONGEST, f"an expression of at most {_LONGEST:,} characters")

    def _check(self, number: int, limit: int, rule: str) -> None:
        if number > limit:
            refuse(
                "to_sql",
                rule,
                f"{number:,}",
                "Pass columns as a list, for a query with intermediate columns; into='table' for "
                "large tables; or call simplify first",
            )


# symbols that a parser keeps while it reads each argument: "(a + b)" is "(", "a" "+" and "b"
_BEFORE = {
    "neg": (2,),
    "abs": (3,),
    "floor": (3,),
    "exp": (3,),
    "log": (3,),
    "expm1": (4,),
    "min": (3, 5),
    "max": (3, 5),
    "where": (3, 5, 4),
    "chebyshev": (13,),
    "search": (0,),
}


def _depth(one, depths):
    """How many symbols a parser keeps at most while it reads an expression."""
    if one.op == "lookup":
        levels = max(1, math.ceil(math.log(len(one.data)) / math.log(_WAYS)))
        return 6 * (levels - 1) + 4 + max(4, *depths)
    before = _BEFORE.get(one.op, (1, 3))
    return max((b + depth for b, depth in zip(before, depths, strict=False)), default=3)


def distinct_pieces(edges: Any, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Step functions, one in each column, without empty pieces and edges between equal values."""
    count = int(np.searchsorted(edges, _NEVER))
    edges, values = edges[:count], values[: count + 1]
    last = np.append(edges[1:] > edges[:-1], True)[:count]
    edges, values = edges[last], np.concatenate([values[:1], values[1:][last]])
    change = (values[1:] != values[:-1]).reshape(len(edges), -1).any(axis=1)
    return edges[change], np.concatenate([values[:1], values[1:][change]])
