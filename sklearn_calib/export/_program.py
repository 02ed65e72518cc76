"""Arithmetic on the numbers of one row, as a graph: what maps are made of in other languages.

Nodes write such graphs with the operators and functions of numpy, and each writer
prints them: a writer handles these operations and does not depend on nodes.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.special import expit, log_expit

from .._typing import FloatArray
from ..maps import combine_pairwise

#: Exponents are moved into [-700, 700], in which no database reports underflow or
#: overflow.
MAX_EXPONENT = 700.0
#: 1 divided by it is finite.
MIN_DIVISOR = 2.5e-308
MAX_TABLE_VALUE = 1e300
CONDITION_OPERATIONS = ("less", "at_most", "and")
LEAF_OPERATIONS = ("number", "input")

Operand = TypeVar("Operand")


class Expr:
    """One operation: its name, what it is applied to, and for some a constant.

    number, input, search, lookup and chebyshev have one: the number, the position of
    the input, or an array. A search counts the entries that are <= its argument; a
    lookup takes that entry.
    """

    __slots__ = ("args", "data", "op")

    def __init__(self, op: str, *args: "Expr", data: object = None) -> None:
        self.op = op
        self.args = args
        self.data: Any = data

    def is_number(self, value: float) -> bool:
        """Return whether the expression is this constant."""
        return self.op == "number" and self.data == value


class Columns(NDArrayOperatorsMixin):
    """Expressions side by side, with the operators, functions and shapes of numpy's tables.

    If several meet, a number, or a single column, stands for all columns.
    """

    def __init__(self, every: Sequence[Expr]) -> None:
        self.expressions = list(every)

    def __array_ufunc__(self, ufunc: Any, _: str, *operands: Any) -> "Columns":
        """Apply an operator, or a function of numpy or SciPy."""
        if ufunc in _COLUMNS_BY_UFUNC:
            return _COLUMNS_BY_UFUNC[ufunc](*operands)
        return apply_to_columns(_EXPRESSION_BY_UFUNC[ufunc], *operands)

    def __array_function__(
        self, function: Any, _: Any, args: Any, options: Any
    ) -> "Columns":
        return _COLUMNS_BY_FUNCTION[function](*args, **options)

    def where(self, yes: Any, no: Any) -> "Columns":
        """Select one or the other by these conditions."""
        return apply_to_columns(_make_operation("where"), self, yes, no)

    def column(self, c: int) -> "Columns":
        return Columns([self.expressions[c]])

    def split_columns(self) -> "list[Columns]":
        """Return each column alone."""
        return [Columns([column]) for column in self.expressions]

    def sum(self, axis: int = 1, keepdims: bool = True) -> "Columns":
        return combine_pairwise(np.add, self.split_columns())

    def max(self, axis: int = 1, keepdims: bool = True) -> "Columns":
        return combine_pairwise(np.maximum, self.split_columns())

    def min(self) -> "Columns":
        return -(-self).max()

    def all(self) -> "Columns":
        """Return the condition that all hold."""
        return combine_pairwise(np.bitwise_and, self.split_columns())

    def log_sum_exp(self) -> "Columns":
        """Return the logarithm of the sum of the exponentials."""
        return combine_pairwise(add_logarithms, self.split_columns())

    def compute_shifted_exponentials(self) -> "Columns":
        """Return e to the power of each, less the largest."""
        return compute_nonpositive_exp(self - self.max())

    def softmax(self) -> "Columns":
        """Return the probabilities of logits."""
        # The sigmoid of a difference needs one exponential instead of two.
        if len(self.expressions) == 2:
            return expit(self - Columns(self.expressions[::-1]))
        parts = self.compute_shifted_exponentials()
        return parts / parts.sum()

    def look_up_in_table(self, table: FloatArray) -> "Columns":
        """Return the entry of a table at a position that `search` found."""
        values = np.clip(
            np.asarray(table, dtype=float), -MAX_TABLE_VALUE, MAX_TABLE_VALUE
        )
        # A table of equal values needs no search.
        if (values == values[0]).all():
            return Columns([make_number(values[0])])
        return Columns([Expr("lookup", *self.expressions, data=values)])


def make_number(value: float) -> Expr:
    """Make a constant."""
    return Expr("number", data=float(value))


def apply_to_columns(operation: Callable[..., Expr], *operands: Any) -> Columns:
    """Apply an operation to the expressions of each column."""
    tables = list(map(_list_expressions, operands))
    k = max(map(len, tables))
    # Operands of one column are repeated, as numpy broadcasts them.
    rows = zip(*(table * (k // len(table)) for table in tables), strict=True)
    return Columns([operation(*row) for row in rows])


def _list_expressions(operand):
    """Return the expressions of the columns; numbers become constants."""
    if isinstance(operand, Columns):
        return operand.expressions
    return [make_number(x) for x in np.ravel(operand)]


def _make_operation(op):
    return lambda *args: Expr(op, *args)


def _add_expressions(a, b):
    a, b = (b, a) if a.op == "number" else (a, b)
    return a if b.is_number(0.0) else Expr("add", a, b)


def _subtract_expressions(a, b):
    return a if b.is_number(0.0) else Expr("sub", a, b)


def _multiply_expressions(a, b):
    a, b = (b, a) if a.op == "number" else (a, b)
    if b.is_number(0.0):
        return b
    return a if b.is_number(1.0) else Expr("mul", a, b)


def _divide_expressions(a, b):
    return a if b.is_number(1.0) else Expr("div", a, b)


def _negate_expression(a):
    return make_number(-a.data) if a.op == "number" else Expr("neg", a)


def _make_absolute_value(a):
    return Expr("abs", a.args[0] if a.op == "neg" else a)


def compute_nonpositive_exp(a: Any) -> Columns:
    """Compute e^a for a <= 0, with a raised to -700."""
    return apply_to_columns(_make_operation("exp"), np.maximum(a, -MAX_EXPONENT))


def _compute_log1p_exp_neg_abs(a):
    """Compute log(1 + e^-|a|)."""
    return np.log(1.0 + compute_nonpositive_exp(-abs(a)))


def add_logarithms(a: Any, b: Any) -> Any:
    """Compute log(e^a + e^b)."""
    return np.maximum(a, b) + _compute_log1p_exp_neg_abs(a - b)


def _multiply_columns_by_matrix(numbers, matrix):
    return np.column_stack([(numbers * row).sum() for row in matrix.T])


_EXPRESSION_BY_UFUNC: dict[Any, Callable[..., Expr]] = {
    np.absolute: _make_absolute_value,
    np.add: _add_expressions,
    np.bitwise_and: _make_operation("and"),
    np.divide: _divide_expressions,
    np.floor: _make_operation("floor"),
    np.greater: lambda a, b: Expr("less", b, a),
    np.greater_equal: lambda a, b: Expr("at_most", b, a),
    np.less: _make_operation("less"),
    np.less_equal: _make_operation("at_most"),
    np.log: _make_operation("log"),
    np.maximum: _make_operation("max"),
    np.minimum: _make_operation("min"),
    np.multiply: _multiply_expressions,
    np.negative: _negate_expression,
    np.subtract: _subtract_expressions,
}
_COLUMNS_BY_UFUNC: dict[Any, Callable[..., Columns]] = {
    np.exp: lambda a: apply_to_columns(
        _make_operation("exp"),
        np.clip(a, -MAX_EXPONENT, MAX_EXPONENT),
    ),
    # The argument is never positive, so it needs no upper limit.
    np.expm1: lambda a: apply_to_columns(
        _make_operation("expm1"), np.maximum(a, -MAX_EXPONENT)
    ),
    np.matmul: _multiply_columns_by_matrix,
    expit: lambda a: 1.0 / (1.0 + np.exp(-a)),
    log_expit: lambda a: np.minimum(a, 0.0) - _compute_log1p_exp_neg_abs(a),
}
_COLUMNS_BY_FUNCTION: dict[Any, Callable[..., Columns]] = {
    np.clip: lambda a, low, high: np.minimum(np.maximum(a, low), high),
    np.column_stack: lambda tables: Columns([*chain(*map(_list_expressions, tables))]),
    np.searchsorted: lambda edges, x, side: apply_table_operation("search", x, edges),
}


def apply_table_operation(op: str, column: Columns, table: FloatArray) -> Columns:
    """Apply an operation with a table, such as a search, to a number."""
    return Columns([Expr(op, *column.expressions, data=np.asarray(table, dtype=float))])


@dataclass(frozen=True, eq=False)
class Program:
    """What to compute from one row of scores.

    `outputs` may be used where `valid` holds; other rows have no result.
    """

    n_inputs: int
    valid: Expr
    outputs: tuple[Expr, ...]


def reduce_excluding_each(
    operation: Callable[..., Any], terms: Sequence[Operand]
) -> list[Operand]:
    """Apply the operation to all terms but one, for each, in O(k)."""
    # Leaving each term out of one total would cancel, so sums before and after it are
    # combined.
    before = list(accumulate(terms[:-1], operation))
    after = list(accumulate(terms[:0:-1], operation))[::-1]
    inner = map(operation, before[:-1], after[1:])
    return [after[0], *inner, before[-1]]


# -- graphs -----------------------------------------------------------------------------------


def iter_expressions(
    roots: Sequence[Expr], known_ids: Collection[int] = ()
) -> Iterator[Expr]:
    """Iterate over the expressions of a graph, each after its arguments, without known ones."""
    seen = set(known_ids)
    # A stack instead of recursion, because expressions may be nested more deeply than
    # Python allows.
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            yield expr
        elif id(expr) not in seen:
            seen.add(id(expr))
            stack.append((expr, True))
            stack += [(arg, False) for arg in reversed(expr.args)]


def merge_equal_expressions(program: Program) -> Program:
    """Return the same program, in which equal expressions are one."""
    roots = [program.valid, *program.outputs]
    expr_by_key: dict[object, Expr] = {}
    new: dict[int, Expr] = {}
    for expr in iter_expressions(roots):
        args = tuple(new[id(arg)] for arg in expr.args)
        data = (
            expr.data.tobytes()
            if isinstance(expr.data, np.ndarray)
            else repr(expr.data)
        )
        # Arguments are merged before, so equal ones are the same object.
        key = (expr.op, data, *map(id, args))
        if key not in expr_by_key:
            expr_by_key[key] = Expr(expr.op, *args, data=expr.data)
        new[id(expr)] = expr_by_key[key]
    valid, *outputs = (new[id(root)] for root in roots)
    return Program(program.n_inputs, valid, tuple(outputs))


def count_uses(roots: Sequence[Expr]) -> dict[int, int]:
    """Count how often each expression is used, by its id."""
    count = {id(root): 1 for root in roots}
    for expr in iter_expressions(roots):
        for arg in expr.args:
            count[id(arg)] = count.get(id(arg), 0) + 1
    return count
