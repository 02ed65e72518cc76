"""Graphs of ONNX, their tensors, and the rows inside them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.special import expit, log_expit

from .._typing import AnyArray
from ..maps import Cells, CurveBetweenKnots, FunctionOfScore, take_entries
from ._lower import RowExpression, ScoreOrigin, make_two_class_proba_origin

#: From this version on the axes of all reductions are an input; before, only those of
#: ReduceSum.
_AXES_INPUT_OPSET = 18

#: A tensor, or numbers that become a constant of the graph.
Operand = Union["Tensor", float, AnyArray]


@dataclass(eq=False)
class Graph:
    """Operations in the order of their computation.

    Parameters
    ----------
    write : callable
        Takes an operation as ``onnx.helper.make_node`` does.
    dtype : dtype
        Of the tensors that hold scores: float64 or float32.
    opset : int
        The version of the standard operators.
    prefix : str
        Begins the names of its tensors.
    slack : float, default=0.0
        What its scores may be off, relative to their size. A score that close below a
        step, or to a knot, counts as at it.
    second_only : bool, default=False
        Whether the first of two probabilities is 1 less the second, as ONNX writes
        those of trees, so that the second alone determines which step a row is at.

    Attributes
    ----------
    constants : dict of str to ndarray
    """

    write: Callable[..., Any]
    dtype: Any
    opset: int
    prefix: str = "t"
    slack: float = 0.0
    second_only: bool = False
    constants: dict[str, AnyArray] = field(default_factory=dict)
    _known: dict[Any, str] = field(default_factory=dict)

    def add(self, op: str, *inputs: Operand, **attributes: Any) -> "Tensor":
        """Add an operation, and return its result; an equal operation is reused."""
        names = [self.add_constant(value).name for value in inputs]
        key = (op, *names, str(attributes))
        if key not in self._known:
            self._known[key] = new = f"{self.prefix}{len(self._known)}"
            # onnxruntime 1.20 makes names from those of the nodes, which must differ.
            self.write(op, names, [new], name=new, **attributes)
        return Tensor(self, self._known[key])

    def add_constant(self, value: Operand) -> "Tensor":
        """Add a constant: integers as int64, other numbers in the graph's dtype, or text."""
        if isinstance(value, Tensor):
            return value
        array = np.array(value)
        if array.dtype.kind != "U":
            whole = array.dtype.kind == "i" and not isinstance(value, int)
            array = array.astype(np.int64 if whole else self.dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"{self.prefix}{len(self._known)}"
            self.constants[self._known[key]] = array
        return Tensor(self, self._known[key])

    def search(self, length: int, at_most: Callable[[Operand], "Tensor"]) -> "Tensor":
        """Count, for each row, the increasing entries that are at most a number.

        `at_most` does so for the entries at given positions. The halving is written
        out, ceil(log2(length)) + 1 times, so no tensor is longer than the rows.
        """
        position: Operand = np.array(0)
        while length > 1:
            half = length // 2
            length -= half
            less = at_most(_add_tensors(position, half - 1))
            position = self.add("Where", less, _add_tensors(position, half), position)
        return self.add("Where", at_most(position), _add_tensors(position, 1), position)


def _add_tensors(position, step):
    if isinstance(position, Tensor) or step:
        return position + np.array(step)
    return position


def _rounds_to_one(value):
    """Return whether onnxruntime takes a factor for 1, and drops it, in float32."""
    if isinstance(value, Tensor):
        return False
    return np.size(value) == 1 and bool(value != 1 and np.float32(min(value, 2.0)) == 1)


@dataclass(eq=False)
class Tensor(NDArrayOperatorsMixin):
    """A tensor that a graph has or is given, with numpy's operators, functions and shapes."""

    graph: Graph
    name: str

    def __array_ufunc__(self, ufunc: Any, _: str, *operands: Operand) -> Any:
        """Write what an operator, or a function of numpy or SciPy, would compute."""
        if ufunc in _BUILDER_BY_UFUNC:
            return _BUILDER_BY_UFUNC[ufunc](*operands)
        return self.graph.add(
            _ONNX_NAME_BY_UFUNC.get(ufunc, ufunc.__name__.title()), *operands
        )

    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        return _BUILDER_BY_FUNCTION[function](*args, **options)

    def where(self, yes: Operand, no: Operand) -> "Tensor":
        """Select one or the other by this tensor of truth values."""
        return self.graph.add("Where", self, yes, no)

    def column(self, c: int) -> "Tensor":
        return self.columns([c])

    def columns(self, which: Any) -> "Tensor":
        return self.graph.add("Gather", self, np.asarray(which), axis=1)

    def entries(self, position: Operand) -> "Tensor":
        """Select entries of a table along its first axis."""
        return self.graph.add("Gather", self, position, axis=0)

    def look_up_in_table(self, table: AnyArray) -> "Tensor":
        """Select entries of a table at the positions in this tensor."""
        return self.graph.add_constant(table).entries(self)

    def find_top_column(self) -> "Tensor":
        """Return the column of each row's largest entry, the first of equals, of shape (n, 1)."""
        return self.graph.add("ArgMax", self, axis=1, keepdims=1)

    def sum(self, axis: int = 1, keepdims: bool = True) -> "Tensor":
        return self.reduce_axis_keepdims("Sum", axis)

    def max(self, axis: int = 1, keepdims: bool = True) -> "Tensor":
        return self.reduce_axis_keepdims("Max", axis)

    def min(self) -> "Tensor":
        return self.reduce_axis_keepdims("Min")

    def reduce_axis_keepdims(self, op: str, axis: int = 1) -> "Tensor":
        """Reduce along an axis, which stays with length 1."""
        if op == "Sum" or self.graph.opset >= _AXES_INPUT_OPSET:
            return self.graph.add(f"Reduce{op}", self, np.array([axis]), keepdims=1)
        return self.graph.add(f"Reduce{op}", self, axes=[axis], keepdims=1)

    def change_shape(self, *shape: int) -> "Tensor":
        """Change the shape; 0 stands for the number of rows."""
        return self.graph.add("Reshape", self, np.array(shape))

    def all(self) -> "Tensor":
        """Return whether all truth values of a row are true, of shape (n, 1)."""
        return self.where(1.0, 0.0).min() > 0.5

    def log_sum_exp(self) -> "Tensor":
        """Return the logarithm of the sum of the exponentials of a row, of shape (n, 1)."""
        return self.reduce_axis_keepdims("LogSumExp")

    def compute_shifted_exponentials(self) -> "Tensor":
        """Return e to the power of each number of a row, less the largest."""
        return np.exp(self - self.max())

    def softmax(self) -> "Tensor":
        return self.graph.add("Softmax", self, axis=1)


def _multiply_tensors(a, b):
    a, b = (a, b) if isinstance(a, Tensor) else (b, a)
    if _rounds_to_one(b):
        return a * (2 * np.asarray(b)) * 0.5
    return a.graph.add("Mul", a, b)


def _divide_tensors(a, b):
    if _rounds_to_one(b):
        return a / (2 * np.asarray(b)) * 2.0
    return (a if isinstance(a, Tensor) else b).graph.add("Div", a, b)


def _build_sigmoid(x):
    """Compute 1 / (1 + exp(-x)), also correct to the last digit for small results."""
    return 1.0 / (np.exp(-x) + 1.0)


def _build_log_sigmoid(x):
    """Compute log(1 / (1 + exp(-x)))."""
    return np.minimum(x, 0.0) - np.log(np.exp(-abs(x)) + 1.0)


def _build_expm1_below_zero(x):
    """Compute exp(x) - 1 for x <= 0, correct to the last digits for small results."""
    return np.tanh(x * 0.5) * (np.exp(x) + 1.0)


def _count_entries_at_most(entries, x, side):
    """Count the increasing numbers that are at most x."""
    if not len(entries):
        return x.graph.add("Where", x <= np.inf, np.array(0), np.array(0))
    table = x.graph.add_constant(entries)
    return x.graph.search(len(entries), lambda position: table.entries(position) <= x)


#: What ONNX calls otherwise than numpy.
_ONNX_NAME_BY_UFUNC = {
    np.absolute: "Abs",
    np.bitwise_and: "And",
    np.greater_equal: "GreaterOrEqual",
    np.less_equal: "LessOrEqual",
    np.matmul: "MatMul",
    np.maximum: "Max",
    np.minimum: "Min",
    np.negative: "Neg",
    np.subtract: "Sub",
}
_BUILDER_BY_UFUNC: dict[Any, Callable[..., Tensor]] = {
    np.divide: _divide_tensors,
    np.expm1: _build_expm1_below_zero,
    np.multiply: _multiply_tensors,
    expit: _build_sigmoid,
    log_expit: _build_log_sigmoid,
}
_BUILDER_BY_FUNCTION: dict[Any, Callable[..., Tensor]] = {
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.column_stack: lambda tables: tables[0].graph.add("Concat", *tables, axis=1),
    # This is side="right".
    np.searchsorted: _count_entries_at_most,
}


class GraphExpression(RowExpression):
    """Rows inside a graph."""

    @property
    def number_below_all_logs(self) -> float:
        return float(np.finfo(self.p.graph.dtype).min)

    @property
    def is_double(self) -> bool:
        return self.p.graph.dtype == np.float64

    def make_pair_origin(self) -> ScoreOrigin:
        if self.p.graph.second_only and self.exact is None:
            return make_two_class_proba_origin(self.p.column(1))
        return super().make_pair_origin()

    def shift_edges_by_rounding_slack(
        self, edges: AnyArray, origin: ScoreOrigin
    ) -> AnyArray:
        """Move edges of steps by the slack, so that rounding of a score does not cross them."""
        # A fitted score lies exactly at its step, or in a very narrow cell of its own.
        # Rounding must neither put it below the step nor out of the cell at either end.
        unit = 1.0 if origin.ends[0] < 0 else 0.0
        slack = self.p.graph.slack * np.maximum(abs(edges), unit)
        gaps = np.diff(edges, prepend=-np.inf, append=np.inf) / 2
        lower = edges - np.minimum(slack, gaps[:-1])
        # Edges that no score reaches may overflow.
        with np.errstate(over="ignore"):
            upper = edges + np.minimum(slack, gaps[1:])
        return np.where(gaps[:-1] < slack, upper, lower)

    def compute_input_score(self, function: FunctionOfScore) -> Any:
        """Return the score of a function, moved to a knot that is within the slack."""
        x = super().compute_input_score(function)
        if not (self.p.graph.slack and isinstance(function, CurveBetweenKnots)):
            return x
        # Between knots that are close together the curve may be almost vertical.
        middles = (function.knots[:-1] + function.knots[1:]) / 2
        knot = take_entries(function.knots, np.searchsorted(middles, x, side="right"))
        slack = self.p.graph.slack * np.maximum(
            abs(knot), 0.0 if function.input == "proba" else 1.0
        )
        return (abs(x - knot) <= slack).where(knot, x)

    def divide_by_sums_or_keep_p(self, values: Tensor) -> "GraphExpression":
        filled = (values.sum() > 0.0).where(values, self.p)
        return self.make_rows(filled / filled.sum())

    def sum_other_classes_with_log_if_exact(
        self,
    ) -> tuple[list[Tensor], list[Tensor] | None]:
        """Return the sum of the other classes for each class, and its logarithm if it is exact."""
        before, after = (
            self.p.graph.add("CumSum", self.p, np.array(1), exclusive=1, reverse=end)
            for end in (0, 1)
        )
        # In the order of `iter_one_vs_rest`, because steps depend on the last digit.
        others = before + after
        classes = np.arange(self.k)
        log_others = None
        if self.exact is not None:
            log_others = [
                self.exact.columns(np.delete(classes, c)).log_sum_exp() for c in classes
            ]
        return [others.column(c) for c in classes], log_others

    def mark_first_top_class(self) -> Tensor:
        return self.p.find_top_column() == np.arange(self.k)

    def compute_log_odds_above_each_class(self) -> Tensor:
        def stack_log_sums(columns):
            sums = [self.log.columns(which).log_sum_exp() for which in columns]
            return np.column_stack(sums)

        below = stack_log_sums(np.arange(c) for c in range(1, self.k))
        above = stack_log_sums(np.arange(c, self.k) for c in range(1, self.k))
        return above - below

    def look_up_cells(self, cells: Cells, levels: Any, other: Any) -> Any:
        """Return the row of the cell that has the levels as its key, else `other`."""
        graph = levels.graph
        keys = graph.add_constant(cells.keys.astype(float))

        def compute_sign_relative_to_key(position):
            """Compare levels with a key: -1 (before), 0 (equal) or 1 (after)."""
            sign = np.sign(levels - keys.entries(position))
            return graph.add(
                "GatherElements", sign, abs(sign).find_top_column(), axis=1
            ).change_shape(-1)

        after = graph.search(
            len(cells.keys),
            lambda position: np.less_equal(0.0, compute_sign_relative_to_key(position)),
        )
        cell = np.maximum(after, np.array(1)) - np.array(1)
        is_cell = (compute_sign_relative_to_key(cell) == 0.0).change_shape(-1, 1)
        return is_cell.where(cell.look_up_in_table(cells.rows), other)
