"""The fields that nodes are made of: each can check a value and write its JSON Schema.

A library of typed documents (msgspec) checks types, bounds and lengths of lists. What it leaves is
what maps break by: numbers that are finite and increase, tables of one shape, the depth of a tree.
"""

import dataclasses
import reprlib
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..exceptions import refuse

WHERE = "sklearn_calib.export"


def wrong(at: str, rule: str, got: str, cure: str = "") -> NoReturn:
    """Refuse what stands at a place of the tree, such as ``map.parts[1].edges``."""
    cure = cure or "The map was changed or cut off; export it again"
    refuse(f"{WHERE}, {at}", rule, got, cure, argument=at)


def shown(value: object) -> str:
    """A value in a message: short, whatever it is."""
    return reprlib.repr(value)


def bounded(whole: bool, low: float | None, high: float | None) -> dict[str, Any]:
    """A number in JSON Schema."""
    limits = {"minimum": low, "maximum": high}
    found = {name: limit for name, limit in limits.items() if limit is not None}
    return {"type": "integer" if whole else "number"} | found


@dataclass(frozen=True)
class Field:
    """What a field of a node may hold, or null where `optional`; `text` is for its readers."""

    text: str = ""
    optional: bool = dataclasses.field(default=False, kw_only=True)

    def read(self, value: Any, at: str) -> Any:
        """The value as the node keeps it; ValueError names the place where it is wrong."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what is not null."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """The JSON Schema of the field, with its text."""
        found = self.schema()
        found = {"anyOf": [found, {"type": "null"}]} if self.optional else found
        return found | {"description": self.text}


@dataclass(frozen=True)
class Flag(Field):
    """True or false."""

    def read(self, value: Any, at: str) -> Any:
        if not isinstance(value, bool | np.bool_):
            wrong(at, "true or false", shown(value))
        return bool(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Choice(Field):
    """One of a few texts."""

    options: tuple[str | None, ...] = ()

    def read(self, value: Any, at: str) -> Any:
        if not (value is None or isinstance(value, str)) or value not in self.options:
            wrong(at, f"one of {', '.join(map(repr, self.options))}", shown(value))
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": [*self.options]}


@dataclass(frozen=True)
class Number(Field):
    """A finite number within closed limits, whole where `whole`."""

    low: float | None = None
    high: float | None = None
    whole: bool = False

    def read(self, value: Any, at: str) -> Any:
        number = float(number_table(value, at, 0)[()])
        outside = (self.low is not None and number < self.low) or (
            self.high is not None and number > self.high
        )
        if outside or (self.whole and number != int(number)):
            wrong(at, self._rule(), shown(value))
        return int(number) if self.whole else number

    def _rule(self):
        kind = "a whole number" if self.whole else "a number"
        low = "" if self.low is None else f" >= {self.low:g}"
        high = "" if self.high is None else f" <= {self.high:g}"
        return f"{kind}{low}{' and' * bool(low and high)}{high}"

    def schema(self) -> dict[str, Any]:
        return bounded(self.whole, self.low, self.high)


@dataclass(frozen=True)
class Numbers(Field):
    """Finite numbers in a list, or in nested lists of equal lengths.

    `shapes` are the numbers of dimensions that are allowed, 0 for a single number.
    """

    low: float | None = None
    high: float | None = None
    increasing: bool = False
    length: int | None = None
    least: int = 0
    shapes: tuple[int, ...] = (1,)
    whole: bool = False

    def read(self, value: Any, at: str) -> Any:
        table = number_table(value, at, *self.shapes)
        if table.ndim and len(table) < self.least:
            wrong(at, f"at least {self.least} numbers", f"{len(table)}")
        if self.length is not None and len(table) != self.length:
            wrong(at, f"{self.length} numbers", f"{len(table)}")
        if self.low is not None:
            _refuse_any(at, f"numbers >= {self.low:g}", table, table < self.low)
        if self.high is not None:
            _refuse_any(at, f"numbers <= {self.high:g}", table, table > self.high)
        if self.increasing:
            _refuse_any(at, "increasing numbers", table, np.append(False, table[1:] <= table[:-1]))
        if self.whole:
            _refuse_any(at, "whole numbers", table, table != np.floor(table))
            table = table.astype(np.int64)
        table.flags.writeable = False
        return table

    def schema(self) -> dict[str, Any]:
        found = bounded(self.whole, self.low, self.high)
        kinds = []
        for dimensions in range(max(self.shapes) + 1):
            if dimensions in self.shapes:
                kinds.append(found)
            found = {"type": "array", "items": found}
            if dimensions == 0 and self.length is not None:
                found |= {"minItems": self.length, "maxItems": self.length}
            elif dimensions == 0 and self.least:
                found["minItems"] = self.least
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


@dataclass(frozen=True)
class Parts(Field):
    """A list of nodes, of which some may be null where `gaps`. Read by the tree's reader."""

    gaps: bool = False

    def schema(self) -> dict[str, Any]:
        node = {"$ref": "#/$defs/node"}
        items = {"anyOf": [node, {"type": "null"}]} if self.gaps else node
        return {"type": "array", "items": items, "minItems": 1}


def entry(kind: Field, default: Any = dataclasses.MISSING) -> Any:
    """A field of a node class: what it may hold, and its value where it is left out."""
    return dataclasses.field(default=default, metadata={"kind": kind})


def kinds_of(cls: type) -> dict[str, tuple[Field, bool]]:
    """The fields of a node class: what each may hold, and whether it must be given."""
    return {
        field.name: (field.metadata["kind"], field.default is dataclasses.MISSING)
        for field in dataclasses.fields(cls)
    }


def number_table(value: Any, at: str, *dimensions: int) -> Any:
    """Numbers or (nested) lists of numbers as a new float64 array; nothing else passes."""
    if isinstance(value, list | tuple):
        _check_numbers(value, at, max(dimensions))
    try:
        table = np.array(value)
        if table.dtype == object and _all_of(table.ravel().tolist(), int, float):  # long integers
            table = table.astype(np.float64)
    except OverflowError:
        wrong(at, "finite numbers", "an integer above 1.8e308")
    except ValueError:
        wrong(at, "lists of equal lengths", "lists of different ones")
    if table.dtype.kind not in "iuf":
        wrong(at, "numbers", shown(value))
    if table.size == 0 and table.ndim == 1 and dimensions == (2,):
        table = table.reshape(0, 0)
    if table.ndim not in dimensions:
        words = {0: "a number", 1: "a list of numbers", 2: "a list of lists of numbers"}
        wrong(at, " or ".join(words[d] for d in sorted(dimensions)), shown(value))
    table = table.astype(np.float64)
    _refuse_any(at, "finite numbers", table, ~np.isfinite(table))
    return table


def _check_numbers(values, at, depth):
    """Python numbers only: numpy would read text and truth values as numbers too."""
    if depth < 1:
        wrong(at, "a number", "a list")
    if _all_of(values, float, int):
        return
    for i, value in enumerate(values):
        if isinstance(value, list | tuple) and depth > 1:
            _check_numbers(value, f"{at}[{i}]", depth - 1)
        elif isinstance(value, bool) or not isinstance(value, int | float | np.number | np.ndarray):
            rule = "a number" if depth == 1 else "a number or a list of numbers"
            wrong(f"{at}[{i}]", rule, shown(value))


def _all_of(values, *kinds):
    return set(map(type, values)) <= set(kinds)


def _refuse_any(at, rule, table, bad):
    if bad.any():
        place = np.argwhere(bad)[0]
        path = "".join(f"[{i}]" for i in place)
        wrong(f"{at}{path}", rule, f"{table[tuple(place)]:.17g}")
