"""Arithmetic on the numbers of one row, as a graph: what maps are made of in other languages.

`_lower` turns nodes into such graphs, and each writer prints them: a writer knows these operations
and no node.
"""

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from .._simplex import LOG_OF_ZERO, SMALLEST_PROBABILITY
from .._typing import FloatArray

#: Exponents are moved into [-700, 700], where no database reports underflow or overflow.
LARGEST_EXPONENT = 700.0
#: 1 divided by it is finite.
SMALLEST_DIVISOR = 2.5e-308
_LARGEST = 1e300
CONDITIONS = ("less", "at_most", "and")
LEAVES = ("number", "input")


class Expr:
    """One operation: its name, what it is applied to, and for some a constant.

    number, input, search, lookup and chebyshev have one: the number, the position of the input, or
    an array. A search counts the entries that are <= its argument; a lookup takes that entry.
    """

    __slots__ = ("args", "data", "op")

    def __init__(self, op: str, *args: "Expr", data: object = None) -> None:
        self.op, self.args = op, args
        self.data: Any = data

    def __array_ufunc__(self, ufunc: Any, _: str, *given: "Expr | float") -> "Expr":
        """What a function of numpy or SciPy would compute."""
        return _UFUNCS[ufunc](*map(as_expr, given))

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        return _FUNCTIONS[function](*given, **options)

    def __add__(self, other: "Expr | float") -> "Expr":
        a, b = self, as_expr(other)
        if a.is_number(0.0):
            return b
        return a if b.is_number(0.0) else Expr("add", a, b)

    __radd__ = __add__

    def __sub__(self, other: "Expr | float") -> "Expr":
        b = as_expr(other)
        return self if b.is_number(0.0) else Expr("sub", self, b)

    def __rsub__(self, other: float) -> "Expr":
        return Expr("sub", as_expr(other), self)

    def __mul__(self, other: "Expr | float") -> "Expr":
        a, b = self, as_expr(other)
        for one, rest in ((a, b), (b, a)):
            if one.is_number(1.0):
                return rest
            if one.is_number(0.0):
                return one
        return Expr("mul", a, b)

    __rmul__ = __mul__

    def __truediv__(self, other: "Expr | float") -> "Expr":
        b = as_expr(other)
        return self if b.is_number(1.0) else Expr("div", self, b)

    def __rtruediv__(self, other: float) -> "Expr":
        return Expr("div", as_expr(other), self)

    def __neg__(self) -> "Expr":
        return number(-self.data) if self.op == "number" else Expr("neg", self)

    def is_number(self, value: float) -> bool:
        """Whether it is this constant."""
        return self.op == "number" and self.data == value


@dataclass(frozen=True, eq=False)
class Program:
    """What to compute from one row of scores.

    `outputs` may be used where `valid` holds; other rows have no result.
    """

    n_inputs: int
    valid: Expr
    outputs: tuple[Expr, ...]


def as_expr(value: "Expr | float") -> Expr:
    """A number as an expression; expressions stay."""
    return value if isinstance(value, Expr) else number(value)


def number(value: float) -> Expr:
    """A constant."""
    return Expr("number", data=float(value))


def smaller(a: Expr, b: Expr | float) -> Expr:
    """The smaller of two."""
    return Expr("min", a, as_expr(b))


def larger(a: Expr, b: Expr | float) -> Expr:
    """The larger of two."""
    return Expr("max", a, as_expr(b))


def clipped(a: Expr, low: float, high: float) -> Expr:
    """The nearest number of an interval."""
    return smaller(larger(a, low), high)


def less(a: Expr | float, b: Expr | float) -> Expr:
    """The condition a < b."""
    return Expr("less", as_expr(a), as_expr(b))


def at_most(a: Expr | float, b: Expr | float) -> Expr:
    """The condition a <= b."""
    return Expr("at_most", as_expr(a), as_expr(b))


def both(*conditions: Expr) -> Expr:
    """The condition that all hold."""
    return paired(lambda a, b: Expr("and", a, b), conditions)


def where(condition: Expr, yes: Expr | float, no: Expr | float) -> Expr:
    """One of two numbers."""
    return Expr("where", condition, as_expr(yes), as_expr(no))


def size(a: Expr) -> Expr:
    """The absolute value."""
    return Expr("abs", a)


def floor(a: Expr) -> Expr:
    """The largest whole number that is not above it."""
    return Expr("floor", a)


def exp(a: Expr) -> Expr:
    """e^a, for a moved into [-700, 700]."""
    return Expr("exp", clipped(a, -LARGEST_EXPONENT, LARGEST_EXPONENT))


def exp_of_negative(a: Expr) -> Expr:
    """e^a for a <= 0, moved up to -700."""
    return Expr("exp", larger(a, -LARGEST_EXPONENT))


def expm1_of_negative(a: Expr) -> Expr:
    """e^a - 1 for a <= 0, with all its digits where the language has such a function."""
    return Expr("expm1", larger(a, -LARGEST_EXPONENT))


def log(a: Expr) -> Expr:
    """The logarithm of a positive number."""
    return Expr("log", a)


def log_floored(p: Expr) -> Expr:
    """As `log_proba`."""
    return log(larger(p, SMALLEST_PROBABILITY))


def log_for_order(p: Expr) -> Expr:
    """As in `unrounded_rank_score`: a zero comes before the smallest float64."""
    smallest = float(np.nextafter(0.0, 1.0))
    return where(less(0.0, p), log(larger(p, smallest)), float(LOG_OF_ZERO))


def sigmoid(a: Expr) -> Expr:
    """1 / (1 + e^-a)."""
    return 1.0 / (1.0 + exp(-a))


_UFUNCS: dict[Any, Callable[..., Expr]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.maximum: larger,
    np.minimum: smaller,
    np.exp: exp,
    np.expm1: expm1_of_negative,
    expit: sigmoid,
}
_FUNCTIONS: dict[Any, Callable[..., Any]] = {np.clip: clipped, np.column_stack: list}


def log_sum(a: Expr, b: Expr) -> Expr:
    """log(e^a + e^b)."""
    return larger(a, b) + log(1.0 + exp_of_negative(-size(a - b)))


def total(terms: Sequence[Expr]) -> Expr:
    """The sum."""
    return paired(lambda a, b: a + b, terms)


def largest(terms: Sequence[Expr]) -> Expr:
    """The largest of them."""
    return paired(larger, terms)


def paired(operation: Callable[[Expr, Expr], Expr], terms: Sequence[Expr]) -> Expr:
    """An associative operation over all terms, as a balanced tree: databases limit the depth."""
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [operation(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0]


def of_others(operation: Callable[[Expr, Expr], Expr], terms: Sequence[Expr]) -> list[Expr]:
    """The operation over all terms but one, for each, in O(k)."""
    before = accumulated(operation, terms[:-1])
    after = accumulated(operation, terms[:0:-1])[::-1]
    inner = [operation(a, b) for a, b in zip(before[:-1], after[1:], strict=True)]
    return [after[0], *inner, before[-1]]


def accumulated(operation: Callable[[Expr, Expr], Expr], terms: Sequence[Expr]) -> list[Expr]:
    """The operation over the first term, the first two, and so on."""
    found = list(terms[:1])
    for term in terms[1:]:
        found.append(operation(found[-1], term))
    return found


def softmax(z: Sequence[Expr]) -> list[Expr]:
    """Probabilities of logits."""
    if len(z) == 2:
        return [sigmoid(z[0] - z[1]), sigmoid(z[1] - z[0])]
    top = largest(z)
    return shares([exp_of_negative(one - top) for one in z])


def shares(terms: Sequence[Expr]) -> list[Expr]:
    """Each divided by the sum of all."""
    whole = total(terms)
    return [term / whole for term in terms]


def rounded(x: Expr, least: float) -> Expr:
    """As `without_rounding_noise`: to 36 significant bits, numbers below `least` as those above.

    `power` is the power of two above |x| [Rump, Ogita, Oishi (2008), NextPowerTwo], or 0 where x is
    one, which needs no rounding; adding 1.5 * 2^16 of it leaves 36 bits.
    """
    far = size(x) * 2.0**53
    power = (far + size(x)) - far
    shift = 1.5 * 2.0**16 * (larger(power, least) if least else power)
    return Expr("sub", Expr("add", x, shift), shift)


def search(x: Expr, edges: FloatArray) -> Expr:
    """The number of edges <= x, of increasing ones."""
    return Expr("search", x, data=np.asarray(edges, dtype=np.float64))


def chebyshev_sum(z: Expr, coef: FloatArray) -> Expr:
    """sum_j coef_j T_j(z), for z in [-1, 1]."""
    return Expr("chebyshev", z, data=np.asarray(coef, dtype=np.float64))


def lookup(place: Expr, values: FloatArray) -> Expr:
    """The entry of a table at a place that `search` found."""
    values = np.clip(np.asarray(values, dtype=np.float64), -_LARGEST, _LARGEST)
    if (values == values[0]).all():
        return number(values[0])
    return Expr("lookup", place, data=values)


# -- graphs -----------------------------------------------------------------------------------


def ordered(roots: Sequence[Expr], known: Collection[int] = ()) -> Iterator[Expr]:
    """All expressions of a graph once, each after what it needs, without known ones, by id."""
    seen = set(known)
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        one, ready = stack.pop()
        if ready:
            yield one
        elif id(one) not in seen:
            seen.add(id(one))
            stack.append((one, True))
            stack += [(arg, False) for arg in reversed(one.args)]


def without_repetition(program: Program) -> Program:
    """The same program, in which equal expressions are one."""
    roots = [program.valid, *program.outputs]
    known: dict[object, Expr] = {}
    new: dict[int, Expr] = {}
    for one in ordered(roots):
        args = tuple(new[id(arg)] for arg in one.args)
        data = one.data.tobytes() if isinstance(one.data, np.ndarray) else repr(one.data)
        key = (one.op, data, *map(id, args))
        if key not in known:
            known[key] = Expr(one.op, *args, data=one.data)
        new[id(one)] = known[key]
    valid, *outputs = (new[id(root)] for root in roots)
    return Program(program.n_inputs, valid, tuple(outputs))


def uses(roots: Sequence[Expr]) -> dict[int, int]:
    """How often each expression is used, by its id."""
    count = {id(root): 1 for root in roots}
    for one in ordered(roots):
        for arg in one.args:
            count[id(arg)] = count.get(id(arg), 0) + 1
    return count
