"""JSON lines: one object in each line; its fields are columns, those of nested ones ``a.b``.

Blocks of lines are read by pyarrow, by the columns in question alone. What it rejects,
it does not word for a reader of the file, so Python's parser reads such a block again:
it reports the line, keeps numbers of any size, and its result is final.
"""

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._show import make_printable, quote_text
from ..exceptions import InvalidInputError, invalid_input
from . import csv_text
from .columns import EMPTY_TABLE_HINT
from .csv_text import (
    MAX_EXACT_INTEGER,
    ColumnSelector,
    check_columns,
    compute_read_fraction,
    detect_encoding,
    iter_text_blocks,
    peek_head_with_first_line,
)

# The columns are found in the lines of this many first bytes.
_HEAD_BYTES = 2**20
# A single object with at least this many values is taken for a whole table.
_MIN_WHOLE_TABLE_OBJECT_VALUES = 50
_JSON_WHITESPACE_CHARACTERS = " \t\r\n"
# Matches what stands between the objects of a list.
_SEPARATOR_PATTERN = re.compile(r"[ \t\r\n,]*")
_KIND_NAME_BY_TYPE = {bool: "boolean", int: "number", float: "number", str: "text"}
_MULTILINE_OBJECT_HINT = (
    "An object may not go over several lines; jq -c . puts it into one"
)


class _DuplicateFieldError(Exception):
    """A field that an object has twice."""


def iter_json_frames(
    stream: Any,
    file: str,
    pick: ColumnSelector,
    encoding: str | None,
    size: int,
) -> Iterator[tuple[Any, float, str]]:
    """Yield blocks of some columns: a pandas DataFrame, how much has been read, and the text.

    Parameters
    ----------
    stream : binary stream
    file : str
        What messages call it.
    pick : callable
        Given the names of all columns of the first lines, the list of those to read.
    encoding : str or None
        UTF-8 by default.
    size : int
        Characters of a block.
    """
    head = peek_head_with_first_line(stream, _HEAD_BYTES)
    if not head.strip():
        raise invalid_input(
            expected=f"rows in {make_printable(file)}",
            got="an empty file",
            hint="Check the export",
        )
    encoding = detect_encoding(head, file, encoding)
    begun = io.TextIOWrapper(
        io.BytesIO(head), encoding, errors="replace", newline=""
    ).read()
    source = stream
    unit = "line"
    if begun.lstrip(_JSON_WHITESPACE_CHARACTERS).startswith("["):
        begun = _read_json_array_as_lines_string(stream, encoding, file)
        unit = "object"
        source = io.BytesIO(begun.encode())
        encoding = "utf-8"
    if len(head) >= _HEAD_BYTES:  # the last line is cut
        begun = begun[: begun.rfind("\n", 0, len(head)) % (len(begun) + 1)]
    reader = _JsonLinesReader(file, unit)
    above = 0
    needed = reader.choose_and_remember_columns(
        begun, pick, cut=len(head) >= _HEAD_BYTES
    )
    for text in iter_text_blocks(source, encoding, None, size, file):
        frame = reader.read_frame(text, above, needed)
        yield frame, compute_read_fraction(stream), text
        above += text.count("\n")


class _JsonLinesReader:
    """Fields of the lines of one file: where they stand, and of which kind their values are."""

    def __init__(self, file, unit):
        self.file = file
        self.unit = unit
        self.paths = {}  # of each column: names of fields, and places in lists
        self.kinds = {}  # of each column of which a value has been seen
        self.whole = set()  # columns of whole numbers alone
        # names whose repetition in an object leaves a value in doubt
        self.parts = set()
        self.scan = json.JSONDecoder(object_pairs_hook=self._build_object).scan_once

    def choose_and_remember_columns(self, text, pick, cut=False):
        """Return the names of the columns to read, after the first lines have shown all columns."""
        rows = [row for _, row in self._iter_line_numbers_and_objects(text, 0)]
        paths = {}
        for row in rows:
            paths |= dict.fromkeys(_iter_paths(row))
        names = [".".join(map(str, path)) for path in paths]
        if not names:
            raise invalid_input(
                expected=f"rows in {make_printable(self.file)}",
                got="none",
                hint=EMPTY_TABLE_HINT,
            )
        needed = list(dict.fromkeys(pick(names)))
        try:
            check_columns(needed, names, self.file)
        except InvalidInputError as error:
            if cut and not set(needed) <= set(names):
                hint = "Columns are those of the first MB: put a line that has all of them on top"
                error.set_fields(remark=f"{hint}.")
                raise
            if len(rows) > 1 or len(names) < _MIN_WHOLE_TABLE_OBJECT_VALUES:
                raise
            raise invalid_input(
                expected=f"one object for each row of {make_printable(self.file)}",
                got=f"a single object of {len(names)} values",
                hint=(
                    "Write the rows one by one: of a pandas DataFrame, frame.to_json(FILE, "
                    "orient='records', lines=True)"
                ),
            ) from error
        place = dict(zip(names, paths, strict=True))
        self.paths = {name: place[name] for name in needed}
        self.parts = {step for path in self.paths.values() for step in path}
        for name in needed:
            types = {type(_get_at_path(row, self.paths[name])) for row in rows}
            kinds = {_KIND_NAME_BY_TYPE.get(value_type) for value_type in types} - {
                None
            }
            if len(kinds) == 1:
                self.kinds[name] = kinds.pop()
            if types <= {int, type(None)}:
                self.whole.add(name)
        return needed

    def read_frame(self, text, above, needed):
        """Return the columns of a block of lines that begins below `above` others."""
        import pandas as pd

        columns = self._read_columns_with_arrow_if_safe(text)
        if columns is None:
            columns = self._read_columns_with_python(text, above)
        return pd.DataFrame({name: columns[name] for name in needed})

    # -- by pyarrow -------------------------------------------------------------------------------

    def _read_columns_with_arrow_if_safe(self, text):
        """Return columns by name.

        None if pyarrow is not there, or cannot vouch for the block.
        """
        if not set(self.paths) <= set(self.kinds):
            return None
        try:
            import pyarrow as pa
            from pyarrow import json as arrow_json

            content = text.encode()
            table = arrow_json.read_json(
                io.BytesIO(content),
                arrow_json.ReadOptions(use_threads=False, block_size=len(content) + 1),
                arrow_json.ParseOptions(
                    explicit_schema=self._build_schema(pa),
                    unexpected_field_behavior="ignore",
                ),
            )
            if table.num_rows != _count_rows(text):  # two objects in one line
                return None
            return {name: self._extract_column(table, name) for name in self.paths}
        except InvalidInputError:
            raise
        except (ImportError, ValueError, TypeError, NotImplementedError, LookupError):
            return None  # pyarrow's own errors are kinds of these

    def _build_schema(self, pa):
        tree = {}
        for name, path in self.paths.items():
            node = tree
            for step in path[:-1]:
                node = node.setdefault(step, {})
            kind = {"number": pa.float64(), "text": pa.string(), "boolean": pa.bool_()}
            whole = name in self.whole
            node[path[-1]] = pa.int64() if whole else kind[self.kinds[name]]

        def build_type(node):
            if not isinstance(node, dict):
                return node
            if all(isinstance(step, str) for step in node):
                return pa.struct(
                    [(step, build_type(below)) for step, below in node.items()]
                )
            value_types = {*map(build_type, node.values())}
            if value_types == {pa.int64(), pa.float64()}:
                return pa.list_(pa.float64())
            [below] = value_types  # values of one type, or a ValueError
            return pa.list_(below)

        return pa.schema([(step, build_type(node)) for step, node in tree.items()])

    def _extract_column(self, table, name):
        import pandas as pd
        import pyarrow.compute as pc

        first, *rest = self.paths[name]
        column = table.column(first)
        for step in rest:
            take = pc.struct_field if isinstance(step, str) else pc.list_element
            column = take(column, step)
        kind = self.kinds[name]
        if kind == "text" or (
            column.null_count and (kind == "boolean" or name in self.whole)
        ):
            return _make_series(column.to_pylist())
        return pd.Series(column.to_numpy())

    # -- by Python --------------------------------------------------------------------------------

    def _read_columns_with_python(self, text, above):
        rows = [*self._iter_line_numbers_and_objects(text, above)]
        return {
            name: self._read_column_and_remember_kind(rows, name) for name in self.paths
        }

    def _iter_line_numbers_and_objects(self, text, above):
        """Yield (number of its line, object) of each line that is not blank."""
        for number, line in enumerate(text.split("\n"), above + 1):
            line = line.strip(_JSON_WHITESPACE_CHARACTERS)
            if not line:
                continue
            try:
                row, end = self.scan(line, 0)
                if end != len(line):
                    raise json.JSONDecodeError("more behind it", line, end)
            except _DuplicateFieldError as error:
                raise self._invalid_value(
                    "each field once in an object",
                    f"{quote_text(error)} twice",
                    number,
                    "Rename one of them",
                ) from error
            except RecursionError as error:
                rule = "objects of some hundred levels at most"
                got = "a deeper one"
                hint = "Leave out the field that is so deep"
                raise self._invalid_value(rule, got, number, hint) from error
            except (StopIteration, ValueError) as error:
                raise self._invalid_line(line, number, error) from error
            if not isinstance(row, dict):
                got = f"{quote_text(line, 40)}"
                hint = "Write the names of the fields into each line"
                raise self._invalid_value("an object in each line", got, number, hint)
            yield number, row

    def _build_object(self, pairs):
        value_by_name = dict(pairs)
        if len(value_by_name) != len(pairs):
            names = [name for name, _ in pairs]
            for name in value_by_name:
                if name in self.parts and names.count(name) > 1:
                    raise _DuplicateFieldError(name)
        return value_by_name

    def _read_column_and_remember_kind(self, rows, name):
        path = self.paths[name]
        values = [_get_at_path(row, path) for _, row in rows]
        if float in (types := {*map(type, values)}):
            values = [None if value != value else value for value in values]  # NaN
            types = {*map(type, values)}
        types.discard(type(None))
        kinds = {_KIND_NAME_BY_TYPE.get(value_type) for value_type in types}
        known_kind = self.kinds.get(name)
        if (
            kinds
            and kinds != {known_kind}
            and (known_kind or len(kinds) > 1 or None in kinds)
        ):
            self._raise_for_first_wrong_kind(rows, values, name)
        if kinds:
            [self.kinds[name]] = kinds
        if types and types != {int}:
            self.whole.discard(name)
        return _make_series(values)

    def _raise_for_first_wrong_kind(self, rows, values, name):
        """Reject the first value that is of another kind than those above it."""
        known_kind = self.kinds.get(name)
        for (number, _), value in zip(rows, values, strict=True):
            kind = _KIND_NAME_BY_TYPE.get(type(value))
            if value is None or (
                kind is not None and kind == (known_kind := known_kind or kind)
            ):
                continue
            named = f"of column {quote_text(name)}"
            if kind is None:
                got = "a list" if isinstance(value, list) else "an object"
                hint = (
                    "Its fields are columns, such as "
                    f"{make_printable(name, 40)}.{_get_first_key_or_index(value)}"
                )
                raise self._invalid_value(
                    f"one value in each row {named}", got, number, hint
                )
            kind_name = {
                "number": "numbers",
                "text": "text",
                "boolean": "true or false",
            }[known_kind]
            hint = "Write all values of the column in one way"
            if known_kind == "number" and kind == "text":
                hint = "Write the number without quotes, and null where there is none"
            got = f"the {kind} {quote_text(json.dumps(value))}"
            raise self._invalid_value(
                f"{kind_name} in all rows {named}, as in those above", got, number, hint
            )
        raise AssertionError(name)

    def _invalid_line(self, line, number, error):
        why = str(error).partition(":")[0]
        excerpt = line
        if isinstance(error, json.JSONDecodeError):
            why = f"{error.msg.partition(' (')[0].lower()} at character {error.pos + 1}"
            excerpt = line[max(0, error.pos - 20) :]
        elif isinstance(error, StopIteration):
            why = f"no value at character {error.value + 1}"
            excerpt = line[max(0, error.value - 20) :]
        return self._invalid_value(
            f"a JSON object in each {self.unit}",
            f"{quote_text(excerpt[:60], 40)} ({why})",
            number,
            f"Repair it, or leave it out. {_MULTILINE_OBJECT_HINT}",
        )

    def _invalid_value(self, rule, got, number, hint):
        place = f"{self.unit} {number} of {make_printable(self.file)}"
        return invalid_input(expected=rule, got=f"{got} in {place}", hint=hint)


def _iter_paths(row):
    """Yield the paths to all values of an object, in their order."""
    stack = [((), row)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict) and (value or not path):
            stack += [((*path, name), below) for name, below in reversed(value.items())]
        elif isinstance(value, list) and value:
            stack += [
                ((*path, place), value[place]) for place in reversed(range(len(value)))
            ]
        else:
            yield path


def _get_at_path(value, path):
    """Return the value at the end of a path; None if an object lacks it."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            is_present = isinstance(value, list) and step < len(value)
            value = value[step] if is_present else None
    return value


def _get_first_key_or_index(json_container):
    if isinstance(json_container, list):
        return "0"
    return make_printable(next(iter(json_container), "name"), 40)


def _count_rows(text):
    lines = text.count("\n") + (not text.endswith("\n"))
    if text.count("}\n") + text.endswith("}") == lines:  # none is blank
        return lines
    return lines - len(re.findall(r"^[ \t\r]*$", text.removesuffix("\n"), re.MULTILINE))


def _make_series(values):
    """Return values of one kind as numbers without a loss, booleans, text, or objects."""
    import pandas as pd

    types = {*map(type, values)}
    if types <= {int, float, type(None)}:
        whole = [value for value in values if type(value) is int]
        large = max(map(abs, whole), default=0)
        if types == {int} and large < 2**63:
            return pd.Series(np.array(values, dtype=np.int64))
        if large <= MAX_EXACT_INTEGER:
            return pd.Series(np.array(values, dtype=float))  # None becomes NaN
        return pd.Series(values, dtype=object)
    return pd.Series(values) if types == {bool} else pd.Series(values, dtype=object)


def _read_json_array_as_lines_string(stream, encoding, file):
    """Return the objects of a list, one in each line, each as it is written."""
    text = io.TextIOWrapper(stream, encoding, newline="")
    whole = text.read(csv_text.MAX_ROW_CHARACTERS + 1)
    text.detach()
    if len(whole) > csv_text.MAX_ROW_CHARACTERS:
        raise invalid_input(
            expected=f"one object in each line of {make_printable(file)}",
            got=f"a list of more than {csv_text.MAX_ROW_CHARACTERS:,} characters",
            hint="Write its objects into lines, for instance by jq -c '.[]' FILE > FILE.jsonl",
        )
    decoder = json.JSONDecoder()
    try:
        decoder.decode(whole)  # whose error names the fault and its place
    except RecursionError:
        raise invalid_input(
            expected=f"objects of some hundred levels at most in {make_printable(file)}",
            got="an object of more levels",
            hint="Leave out the field that is so deep",
        ) from None
    except ValueError as error:  # also a number of more digits than Python takes
        wrong = getattr(error, "pos", 0)
        excerpt = whole[wrong : wrong + 40]
        line = whole.count("\n", 0, wrong) + 1
        raise invalid_input(
            expected=f"a list of JSON objects in {make_printable(file)}",
            got=f"{quote_text(excerpt, 40)} in line {line}",
            hint="Repair it there, or write one object in each line",
        ) from error
    lines = []
    place = _SEPARATOR_PATTERN.match(whole, whole.index("[") + 1).end()
    while whole[place] != "]":
        _, end = decoder.raw_decode(whole, place)
        # `apply` writes the text of an object as it is
        lines.append(whole[place:end].replace("\n", " ").replace("\r", " "))
        place = _SEPARATOR_PATTERN.match(whole, end).end()
    return "\n".join(lines)
