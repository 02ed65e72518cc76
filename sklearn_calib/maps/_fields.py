"""The fields of the maps: each checks a value and writes its JSON Schema.

A library of typed documents (msgspec) checks types, bounds and lengths of lists. What
it leaves is what maps break by: numbers that are finite and increase, tables of one
shape, the depth of a tree.
"""

import dataclasses
import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import InvalidInputError, invalid_input


def invalid_field(
    at: str,
    *,
    expected: str,
    got: str,
    hint: str = "The map was changed or cut off; export it again",
) -> InvalidInputError:
    """Return the error to raise about a place of the tree, such as ``map.parts[1].edges``."""
    return invalid_input(at, expected=expected, got=got, hint=hint, source=at)


def short_repr(value: object) -> str:
    """Return a value as short text for a message."""
    return reprlib.repr(value)


def make_number_schema(
    whole: bool, low: float | None, high: float | None
) -> dict[str, Any]:
    """Return the JSON Schema of a number."""
    limits = {"minimum": low, "maximum": high}
    bounds = {name: limit for name, limit in limits.items() if limit is not None}
    return {"type": "integer" if whole else "number"} | bounds


@dataclass(frozen=True)
class Field:
    """A field of a map, which is null at most if `optional`; `text` describes it."""

    text: str = ""
    optional: bool = dataclasses.field(default=False, kw_only=True)

    def convert(self, value: Any) -> Any:
        """Return a value of the right type as the map keeps it."""
        return value

    def read(self, value: Any, at: str) -> Any:
        """Return a value of a document as the map keeps it, or raise an error with its place."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a value that is not null."""
        raise NotImplementedError

    def describe_field(self) -> dict[str, Any]:
        """Return the JSON Schema of the field, with its text."""
        schema = self.schema()
        schema = {"anyOf": [schema, {"type": "null"}]} if self.optional else schema
        return schema | {"description": self.text}


@dataclass(frozen=True)
class Flag(Field):
    """True or false."""

    def read(self, value: Any, at: str) -> Any:
        if not isinstance(value, bool | np.bool_):
            raise invalid_field(at, expected="true or false", got=short_repr(value))
        return bool(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Choice(Field):
    """One of a few texts."""

    options: tuple[str | None, ...] = ()

    def read(self, value: Any, at: str) -> Any:
        if not (value is None or isinstance(value, str)) or value not in self.options:
            raise invalid_field(
                at,
                expected=f"one of {', '.join(map(repr, self.options))}",
                got=short_repr(value),
            )
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": [*self.options]}


@dataclass(frozen=True)
class Number(Field):
    """A finite number within closed limits, whole if `whole`."""

    low: float | None = None
    high: float | None = None
    whole: bool = False

    def convert(self, value: Any) -> Any:
        if value is None:
            return None
        return int(value) if self.whole else float(value)

    def read(self, value: Any, at: str) -> Any:
        number = float(read_number_table(value, at, 0)[()])
        outside = (self.low is not None and number < self.low) or (
            self.high is not None and number > self.high
        )
        if outside or (self.whole and number != int(number)):
            raise invalid_field(
                at, expected=self._describe_range(), got=short_repr(value)
            )
        return int(number) if self.whole else number

    def _describe_range(self):
        kind = "a whole number" if self.whole else "a number"
        low = "" if self.low is None else f" >= {self.low:g}"
        high = "" if self.high is None else f" <= {self.high:g}"
        return f"{kind}{low}{' and' * bool(low and high)}{high}"

    def schema(self) -> dict[str, Any]:
        return make_number_schema(self.whole, self.low, self.high)


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

    def convert(self, value: Any) -> Any:
        if value is None:
            return None
        table = np.array(value, dtype=np.int64 if self.whole else np.float64)
        table.flags.writeable = False
        return table

    def read(self, value: Any, at: str) -> Any:
        table = read_number_table(value, at, *self.shapes)
        if table.ndim and len(table) < self.least:
            raise invalid_field(
                at, expected=f"at least {self.least} numbers", got=f"{len(table)}"
            )
        if self.length is not None and len(table) != self.length:
            raise invalid_field(
                at, expected=f"{self.length} numbers", got=f"{len(table)}"
            )
        if self.low is not None:
            _reject_marked_numbers(
                at,
                f"numbers >= {self.low:g}",
                table,
                table < self.low,
            )
        if self.high is not None:
            _reject_marked_numbers(
                at,
                f"numbers <= {self.high:g}",
                table,
                table > self.high,
            )
        if self.increasing:
            _reject_marked_numbers(
                at,
                "increasing numbers",
                table,
                np.append(False, table[1:] <= table[:-1]),
            )
        if self.whole:
            _reject_marked_numbers(at, "whole numbers", table, table != np.floor(table))
            table = table.astype(np.int64)
        table.flags.writeable = False
        return table

    def schema(self) -> dict[str, Any]:
        schema = make_number_schema(self.whole, self.low, self.high)
        kinds = []
        for dimensions in range(max(self.shapes) + 1):
            if dimensions in self.shapes:
                kinds.append(schema)
            schema = {"type": "array", "items": schema}
            if dimensions == 0 and self.length is not None:
                schema |= {"minItems": self.length, "maxItems": self.length}
            elif dimensions == 0 and self.least:
                schema["minItems"] = self.least
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


@dataclass(frozen=True)
class MapListField(Field):
    """A list of maps, of which some may be null if `gaps`. `read_map` reads it."""

    gaps: bool = False

    def convert(self, value: Any) -> Any:
        return tuple(value)

    def schema(self) -> dict[str, Any]:
        node = {"$ref": "#/$defs/node"}
        # A node refers to the definition of all nodes, because maps may be nested.
        items = {"anyOf": [node, {"type": "null"}]} if self.gaps else node
        return {"type": "array", "items": items, "minItems": 1}


def schema_field(kind: Field, default: Any = dataclasses.MISSING) -> Any:
    """Return a field of a map: what it may hold, and its value if it is left out."""
    return dataclasses.field(default=default, metadata={"kind": kind})


def get_schema_fields(cls: type) -> dict[str, tuple[Field, bool]]:
    """Return what each field of a map may hold, and whether it must be given."""
    return {
        field.name: (field.metadata["kind"], field.default is dataclasses.MISSING)
        for field in dataclasses.fields(cls)
    }


def read_number_table(value: Any, at: str, *dimensions: int) -> Any:
    """Convert numbers or (nested) lists of numbers to a new float64 array."""
    if isinstance(value, list | tuple):
        _check_number_types(value, at, max(dimensions))
    try:
        table = np.array(value)
        # Numpy holds integers beyond int64 as objects.
        if table.dtype == object and _have_only_types(
            table.ravel().tolist(), int, float
        ):
            table = table.astype(np.float64)
    except OverflowError:
        raise invalid_field(
            at, expected="finite numbers", got="an integer above 1.8e308"
        ) from None
    except ValueError:
        raise invalid_field(
            at, expected="lists of equal lengths", got="lists of different ones"
        ) from None
    if table.dtype.kind not in "iuf":
        raise invalid_field(at, expected="numbers", got=short_repr(value))
    # An empty list has one dimension in numpy, although it may be a table without rows.
    if table.size == 0 and table.ndim == 1 and dimensions == (2,):
        table = table.reshape(0, 0)
    if table.ndim not in dimensions:
        words = {0: "a number", 1: "a list of numbers", 2: "a list of lists of numbers"}
        raise invalid_field(
            at,
            expected=" or ".join(words[d] for d in sorted(dimensions)),
            got=short_repr(value),
        )
    table = table.astype(np.float64)
    _reject_marked_numbers(at, "finite numbers", table, ~np.isfinite(table))
    return table


def _check_number_types(values, at, depth):
    """Check for Python numbers: numpy would also accept text and truth values."""
    if depth < 1:
        raise invalid_field(at, expected="a number", got="a list")
    if _have_only_types(values, float, int):
        return
    for i, value in enumerate(values):
        if isinstance(value, list | tuple) and depth > 1:
            _check_number_types(value, f"{at}[{i}]", depth - 1)
        elif isinstance(value, bool) or not isinstance(
            value, int | float | np.number | np.ndarray
        ):
            expected = "a number" if depth == 1 else "a number or a list of numbers"
            raise invalid_field(f"{at}[{i}]", expected=expected, got=short_repr(value))


def _have_only_types(values, *kinds):
    return set(map(type, values)) <= set(kinds)


def _reject_marked_numbers(at, rule, table, bad):
    if bad.any():
        place = np.argwhere(bad)[0]
        path = "".join(f"[{i}]" for i in place)
        raise invalid_field(
            f"{at}{path}", expected=rule, got=f"{table[tuple(place)]:.17g}"
        )
