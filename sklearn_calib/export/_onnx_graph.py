"""ONNX graphs written as arithmetic: tensors with operators, each computation once."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from scipy.special import expit, log_expit

from .._typing import AnyArray

#: From this version on the axes of all reductions are an input; before, only those of ReduceSum.
_AXES_ARE_INPUT = 18

#: A tensor, or numbers that become a constant of the graph.
Operand = Union["Tensor", float, AnyArray]


@dataclass(frozen=True)
class Step:
    """One operation of a graph."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


@dataclass(eq=False)
class Graph:
    """Operations in the order of their computation.

    Parameters
    ----------
    dtype : dtype
        Of the tensors that hold scores: float64 or float32.
    opset : int
        The version of the standard operators.
    prefix : str
        Begins the names of its tensors.

    Attributes
    ----------
    steps : list of Step
    constants : dict of str to ndarray
    """

    dtype: Any
    opset: int
    prefix: str = "t"
    steps: list[Step] = field(default_factory=list)
    constants: dict[str, AnyArray] = field(default_factory=dict)
    _known: dict[Any, str] = field(default_factory=dict)

    def named(self, name: str) -> "Tensor":
        """A tensor that the graph is given."""
        return Tensor(self, name)

    def add(self, op: str, *inputs: Operand, **attributes: Any) -> "Tensor":
        """The result of an operation; that of an equal one if there was one."""
        names = tuple(self.tensor(value).name for value in inputs)
        key = (op, names, *sorted((name, str(value)) for name, value in attributes.items()))
        if key not in self._known:
            self._known[key] = f"{self.prefix}{len(self._known)}"
            self.steps.append(Step(op, names, self._known[key], attributes))
        return Tensor(self, self._known[key])

    def tensor(self, value: Operand) -> "Tensor":
        """Numbers as a constant: integers as int64, others in the dtype of the graph; or text."""
        if isinstance(value, Tensor):
            return value
        array = np.array(value)
        if array.dtype.kind != "U":
            array = array.astype(np.int64 if array.dtype.kind == "i" else self.dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"{self.prefix}{len(self._known)}"
            self.constants[self._known[key]] = array
        return Tensor(self, self._known[key])

    def search(self, length: int, at_most: Callable[[Operand], "Tensor"]) -> "Tensor":
        """How many of so many increasing entries are at most a number: one result for each row.

        `at_most` tells it of the entries at given positions. The halving is written out,
        ceil(log2(length)) + 1 times, so no tensor is longer than the rows.
        """
        found: Operand = np.array(0)
        while length > 1:
            half = length // 2
            length -= half
            less = at_most(_plus(found, half - 1))
            found = self.add("Where", less, _plus(found, half), found)
        return self.add("Where", at_most(found), _plus(found, 1), found)


def _plus(position, step):
    return position + np.array(step) if isinstance(position, Tensor) or step else position


def _almost_one(value):
    """Whether onnxruntime takes a factor for 1: it looks at it in float32, and drops it then."""
    if isinstance(value, Tensor):
        return False
    return np.size(value) == 1 and bool(
        (np.float32(np.minimum(value, 2.0)) == 1) & (np.asarray(value) != 1)
    )


@dataclass(frozen=True)
class Tensor:
    """A tensor of a graph, with the operators of Python; shapes are those of numpy."""

    graph: Graph
    name: str

    def __array_ufunc__(self, ufunc: Any, _: str, *given: Operand) -> Any:
        """Write what a function of numpy or SciPy would compute."""
        return _UFUNCS[ufunc](*(v if isinstance(v, Tensor) else float(v) for v in given))

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        return _FUNCTIONS[function](*given, **options)

    def __radd__(self, other: Operand) -> "Tensor":
        return self + other

    def __rmul__(self, other: float) -> "Tensor":
        return self * float(other)

    def __add__(self, other: Operand) -> "Tensor":
        return self.graph.add("Add", self, other)

    def __sub__(self, other: Operand) -> "Tensor":
        return self.graph.add("Sub", self, other)

    def __rsub__(self, other: Operand) -> "Tensor":
        return self.graph.add("Sub", other, self)

    def __mul__(self, other: Operand) -> "Tensor":
        if _almost_one(other):
            return self * (2 * np.asarray(other)) * 0.5
        return self.graph.add("Mul", self, other)

    def __truediv__(self, other: Operand) -> "Tensor":
        if _almost_one(other):
            return self / (2 * np.asarray(other)) * 2.0
        return self.graph.add("Div", self, other)

    def __rtruediv__(self, other: Operand) -> "Tensor":
        return self.graph.add("Div", other, self)

    def __matmul__(self, other: Operand) -> "Tensor":
        return self.graph.add("MatMul", self, other)

    def __neg__(self) -> "Tensor":
        return self.graph.add("Neg", self)

    def __le__(self, other: Operand) -> "Tensor":
        return self.graph.add("LessOrEqual", self, other)

    def __lt__(self, other: Operand) -> "Tensor":
        return self.graph.add("Less", self, other)

    def __and__(self, other: Operand) -> "Tensor":
        return self.graph.add("And", self, other)

    def equal(self, other: Operand) -> "Tensor":
        return self.graph.add("Equal", self, other)

    def exp(self) -> "Tensor":
        return self.graph.add("Exp", self)

    def log(self) -> "Tensor":
        return self.graph.add("Log", self)

    def abs(self) -> "Tensor":
        return self.graph.add("Abs", self)

    def softmax(self) -> "Tensor":
        return self.graph.add("Softmax", self, axis=1)

    def at_least(self, bound: Operand) -> "Tensor":
        return self.graph.add("Max", self, bound)

    def at_most(self, bound: Operand) -> "Tensor":
        return self.graph.add("Min", self, bound)

    def clip(self, low: Operand, high: Operand) -> "Tensor":
        return self.at_least(low).at_most(high)

    def where(self, yes: Operand, no: Operand) -> "Tensor":
        """One or the other, where this tensor of truth values says so."""
        return self.graph.add("Where", self, yes, no)

    def column(self, c: int) -> "Tensor":
        return self.columns([c])

    def columns(self, which: Any) -> "Tensor":
        return self.graph.add("Gather", self, np.asarray(which), axis=1)

    def entries(self, position: Operand) -> "Tensor":
        """Of a table along its first axis, the entries at some positions."""
        return self.graph.add("Gather", self, position, axis=0)

    def entries_of(self, table: AnyArray) -> "Tensor":
        """Entries of a table of numbers, where this tensor is the positions."""
        return self.graph.tensor(table).entries(self)

    def entry(self, position: "Tensor") -> "Tensor":
        """The entry of each row in a column that differs from row to row, of shape (n, 1)."""
        return self.graph.add("GatherElements", self, position, axis=1)

    def top(self) -> "Tensor":
        """The column of the largest entry of each row, the first of equals, of shape (n, 1)."""
        return self.graph.add("ArgMax", self, axis=1, keepdims=1)

    def sum(self) -> "Tensor":
        return self.reduced("Sum")

    def max(self, axis: int = 1, keepdims: bool = True) -> "Tensor":
        return self.reduced("Max", axis)

    def min(self) -> "Tensor":
        return self.reduced("Min")

    def reduced(self, op: str, axis: int = 1) -> "Tensor":
        """A reduction along an axis, which stays with length 1."""
        if op == "Sum" or self.graph.opset >= _AXES_ARE_INPUT:
            return self.graph.add(f"Reduce{op}", self, np.array([axis]), keepdims=1)
        return self.graph.add(f"Reduce{op}", self, axes=[axis], keepdims=1)

    def reshaped(self, *shape: int) -> "Tensor":
        """Another shape; 0 stands for the number of rows, as it is."""
        return self.graph.add("Reshape", self, np.array(shape))

    def all(self) -> "Tensor":
        """Whether all truth values of a row are true, of shape (n, 1)."""
        return self.graph.add("Greater", self.where(1.0, 0.0).min(), 0.5)


def side_by_side(*columns: Tensor) -> Tensor:
    """Tensors of the same number of rows as one."""
    return columns[0].graph.add("Concat", *columns, axis=1)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), right to the last digit of small results too."""
    return 1.0 / ((-x).exp() + 1.0)


def log_sigmoid(x: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    return x.at_most(0.0) - ((-x.abs()).exp() + 1.0).log()


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1 for x <= 0, right to the last digits of small results."""
    return x.graph.add("Tanh", x * 0.5) * (x.exp() + 1.0)


def _place(entries, x, side):
    """How many of increasing numbers are at most x."""
    if not len(entries):
        return x.graph.add("Where", x <= np.inf, np.array(0), np.array(0))
    table = x.graph.tensor(entries)
    return x.graph.search(len(entries), lambda position: table.entries(position) <= x)


_UFUNCS: dict[Any, Callable[..., Tensor]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.maximum: Tensor.at_least,
    np.minimum: Tensor.at_most,
    np.exp: Tensor.exp,
    np.expm1: expm1,
    expit: sigmoid,
    log_expit: log_sigmoid,
}
_FUNCTIONS: dict[Any, Callable[..., Tensor]] = {
    np.clip: Tensor.clip,
    np.column_stack: lambda columns: side_by_side(*columns),
    np.searchsorted: _place,  # side="right"
}
