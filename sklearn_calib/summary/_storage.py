"""Summaries as Arrow tables and parquet files.

The schema's metadata has the format, the options, the shift and the totals (whole
numbers of 2^-1074, see `_kernels._exact_sums`). In a file the identities are without
the last bits that all have in common, and in one of unweighted rows the offsets are
less what rows in the middle of their cell would give, the sign moved to the last bit,
and the bits of these integers are stored as doubles split into bytes: that is what
compresses best.
"""

import io
import json
import os
from typing import Any

import numpy as np

from .._argument_checks import import_optional
from .._files.atomic import write_atomically
from .._files.checksum import CHECKSUM_KEY, compute_checksum
from .._files.input_files import get_path_text
from .._kernels._cells import (
    COUNT_COLUMN_0,
    COUNT_COLUMN_1,
    CUT_KEYS,
    DISTANCE_STEP_BITS,
    IDENTITY_COLUMN,
    N_UNWEIGHTED_COLUMNS,
    N_WEIGHTED_COLUMNS,
    OFFSET_COLUMN,
    add_weight_columns_if_absent,
    count_dropped_bits_by_cell,
    decode_cell_start_and_side,
    view_as_float,
)
from .._show import make_printable
from .._typing import Self
from ..exceptions import invalid_input

METADATA_KEY = b"sklearn_calib.summary"
_FORMAT_PREFIX = "sklearn-calib summary "
_FORMAT_VERSION = "1"
_INTEGER_COLUMNS = ("id", "n0", "n1")
_FLOAT_COLUMNS = ("offset", "w0", "w1", "v0", "v1")
_PACKED_OFFSET_COLUMN = "packed_offset"
_PACKED_ID_COLUMN = "packed_id"
# The bits of larger integers might be a NaN.
_MAX_PACKED_OFFSET = 2.0**61
_COMPRESSION_LEVEL = 19


class Storable:
    """What a summary has for files."""

    def to_arrow(self) -> Any:
        """Return the cells as a pyarrow table, whose metadata have all else.

        Returns
        -------
        table : pyarrow.Table
            A row per cell: ``id``, the numbers of rows with label 0 and 1, ``n0`` and
            ``n1``, and ``offset``, from which the mean score follows; under weights
            also the sums of weights ``w0``, ``w1`` and of their squares ``v0``, ``v1``.
            `from_arrow` reads it.

        Raises
        ------
        ModuleNotFoundError
            pyarrow is not installed.
        ValueError
            Classes that are not numbers, booleans or text.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 1, 1], [0.25, 0.5, 0.5])
        >>> summary.to_arrow().column("n1").to_pylist()
        [0, 2]
        >>> CalibrationSummary.from_arrow(summary.to_arrow()) == summary
        True
        """
        return _make_arrow_table_from_summary(self)

    @classmethod
    def from_arrow(cls, table: Any) -> "Self":
        """Return the summary that `to_arrow` made a table of.

        Parameters
        ----------
        table : pyarrow.Table

        Returns
        -------
        summary : CalibrationSummary

        Raises
        ------
        ValueError
            Another table, or one that was changed.
        """
        return _read_summary_from_arrow_table(cls, table, "the table")

    def to_parquet(self, path: "str | os.PathLike[str]") -> None:
        """Write the summary into a file: at most 0.35 MB, some 2 MB with weights.

        The file is written whole or not at all.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        ModuleNotFoundError
            pyarrow is not installed.
        OSError
            The file cannot be written.
        ValueError
            Classes that are not numbers, booleans or text.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 1, 1], [0.25, 0.5, 0.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "monday.parquet")
        ...     summary.to_parquet(path)
        ...     CalibrationSummary.from_parquet(path) == summary
        True
        """
        path = get_path_text(path)
        parquet = import_optional("pyarrow.parquet", "cli")
        table = _pack_id_and_offset_columns(_make_arrow_table_from_summary(self))
        whole = ("problem", *_INTEGER_COLUMNS)
        encoding = {
            name: "DELTA_BINARY_PACKED" if name in whole else "BYTE_STREAM_SPLIT"
            for name in table.column_names
        }
        how = {
            "compression": "zstd",
            "compression_level": _COMPRESSION_LEVEL,
            "column_encoding": encoding,
        }
        # The file is made in memory and then written whole, so an interruption leaves
        # no half file.
        file = io.BytesIO()
        parquet.write_table(
            table,
            file,
            use_dictionary=False,
            write_statistics=False,
            **how,
        )
        write_atomically(path, file.getvalue())

    @classmethod
    def from_parquet(cls, path: "str | os.PathLike[str]") -> "Self":
        """Read a summary from a file of `to_parquet`: equal in all its bits.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        summary : CalibrationSummary

        Raises
        ------
        ModuleNotFoundError
            pyarrow is not installed.
        OSError
            There is no such file.
        ValueError
            The file is truncated, damaged, of another version or no summary; it is
            named.
        """
        path = get_path_text(path)
        parquet = import_optional("pyarrow.parquet", "cli")
        with open(path, "rb") as file:
            try:
                table = parquet.ParquetFile(file).read()
            except Exception as error:  # pyarrow has a dozen kinds for a damaged file
                reason = make_printable(str(error).partition("\n")[0].rstrip(".")[:120])
                raise invalid_input(
                    expected=f"a parquet file, {make_printable(path, 200)}",
                    got=f"one that cannot be read ({reason})",
                    hint="It is truncated, damaged or of another format: write it again",
                ) from error
        return _read_summary_from_arrow_table(cls, table, path)


def is_summary_file(path: "str | os.PathLike[str]") -> bool:
    """Return whether `CalibrationSummary.to_parquet` wrote a file, of any version.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    answer : bool

    Raises
    ------
    ModuleNotFoundError
        pyarrow is not installed.
    OSError
        There is no such file.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn_calib.summary import CalibrationSummary, is_summary_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "monday.parquet")
    ...     CalibrationSummary().to_parquet(path)
    ...     is_summary_file(path)
    True
    """
    parquet = import_optional("pyarrow.parquet", "cli")
    with open(get_path_text(path), "rb") as file:
        if file.read(4) != b"PAR1":
            return False
        try:
            metadata = parquet.read_schema(file).metadata
        except Exception:  # pyarrow has a dozen kinds for a damaged file
            return False
    return METADATA_KEY in (metadata or {})


# -- tables ---------------------------------------------------------------------------------------


def _make_arrow_table_from_summary(summary):
    pa = import_optional("pyarrow", "cli")
    tables = [state.table for state in summary._states]
    wide = any(table.shape[1] == N_WEIGHTED_COLUMNS for table in tables)
    cells = np.concatenate(
        [table if not wide else add_weight_columns_if_absent(table) for table in tables]
    )
    columns = {
        name: cells[:, column]
        for name, column in zip(
            _INTEGER_COLUMNS,
            (IDENTITY_COLUMN, COUNT_COLUMN_0, COUNT_COLUMN_1),
            strict=True,
        )
    }
    numbers = view_as_float(cells)[:, OFFSET_COLUMN:]
    columns |= dict(zip(_FLOAT_COLUMNS, numbers.T, strict=False))
    if len(tables) > 1:
        problem = np.repeat(
            np.arange(len(tables), dtype=np.int64), [len(cells) for cells in tables]
        )
        columns = {"problem": problem, **columns}
    table = pa.table(
        {name: np.ascontiguousarray(column) for name, column in columns.items()}
    )
    metadata = _build_metadata(summary)
    metadata[CHECKSUM_KEY] = compute_checksum(metadata, cells.tobytes())
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(metadata)})


def _build_metadata(summary):
    labels = summary._labels
    classes = None if labels.classes is None else labels.classes.tolist()
    for label in [*(classes or ()), labels.pos_label]:
        if not isinstance(label, str | int | float | np.number | np.bool_ | None):
            raise invalid_input(
                expected="classes that are numbers, booleans or text",
                got=repr(label),
                hint="Convert the labels first",
            )
    pos_label = labels.pos_label
    # files of other rows stay as they are
    soft = {"soft": True} if summary.soft else {}
    return soft | {
        "format": _FORMAT_PREFIX + _FORMAT_VERSION,
        "max_cells": summary.max_cells,
        "multiclass": summary.multiclass,
        "classes": classes,
        "guessed": labels.guessed,
        "pos_label": pos_label.item() if hasattr(pos_label, "item") else pos_label,
        "problems": [
            {
                "cells": len(state.table),
                "shift": state.shift,
                "zeros": _count_droppable_zero_bits(state.table, state.shift),
                "max_cells": state.max_cells,
                "totals": _format_sums(state.sums),
            }
            for state in summary._states
        ],
        "joint": None if summary._joint is None else _format_sums(summary._joint),
    }


def _format_sums(sums) -> list[str]:
    """Return odd whole numbers and the powers of 2 that they are multiplied by."""
    # The sums have over 1000 trailing zero bits.
    powers = [(number & -number).bit_length() - 1 if number else 0 for number in sums]
    return [
        f"{n >> power:#x} << {power}" for n, power in zip(sums, powers, strict=True)
    ]


def _parse_hex_integer_sums(texts):
    pairs = [text.split(" << ") for text in texts]
    return [int(odd, 16) << int(power) for odd, power in pairs]


def _read_summary_from_arrow_table(cls, table, name):
    """Return the summary of a table; `name` is what errors call it."""
    hint = "Give what to_arrow or to_parquet made"
    metadata_json = (table.schema.metadata or {}).get(METADATA_KEY)
    if metadata_json is None:
        raise invalid_input(
            expected=f"a calibration summary in {name}",
            got="a table without its metadata",
            hint=hint,
        )
    try:
        metadata = json.loads(metadata_json)
        version = metadata["format"]
    except (ValueError, KeyError, TypeError):
        raise invalid_input(
            expected=f"a calibration summary in {name}",
            got="metadata that cannot be read",
            hint=hint,
        ) from None
    if version != _FORMAT_PREFIX + _FORMAT_VERSION:
        raise invalid_input(
            expected=f"{_FORMAT_PREFIX + _FORMAT_VERSION!r} in {name}",
            got=repr(version),
            hint="Read it with the version of sklearn-calib that wrote it",
        )
    try:
        summary = _assemble_summary(cls, _unpack_arrow_table_columns(table), metadata)
    except (LookupError, TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise invalid_input(
            expected=f"an unchanged calibration summary in {name}",
            got=f"{error}",
            hint="Write it again",
        ) from error
    return summary


def _assemble_summary(cls, table, metadata):
    summary = cls.__new__(cls)
    summary.__init__(**{key: metadata[key] for key in ("max_cells", "multiclass")})
    labels = summary._labels
    labels.pos_label = metadata["pos_label"]
    labels.guessed = metadata["guessed"]
    classes = metadata["classes"]
    classes = None if classes is None else np.array(classes)
    summary._set_classes_and_states(classes)
    summary.soft = metadata.get("soft", False)
    if classes is not None and labels.pos_label is not None:
        labels.positive = classes.tolist().index(labels.pos_label)
    columns = [column for column in table.column_names if column != "problem"]
    wide = len(columns) == N_WEIGHTED_COLUMNS
    if tuple(columns) != (
        *_INTEGER_COLUMNS,
        *_FLOAT_COLUMNS[: len(columns) - len(_INTEGER_COLUMNS)],
    ):
        raise ValueError(f"the columns {columns}")
    cells = np.zeros(
        (len(table), N_WEIGHTED_COLUMNS if wide else N_UNWEIGHTED_COLUMNS),
        dtype=np.int64,
    )
    for place, name in enumerate(columns):
        target = cells if name in _INTEGER_COLUMNS else view_as_float(cells)
        target[:, place] = table.column(name).to_numpy()
    # Damaged files must not give wrong measures.
    if metadata[CHECKSUM_KEY] != compute_checksum(metadata, cells.tobytes()):
        raise ValueError("another checksum")
    ends = np.cumsum([problem["cells"] for problem in metadata["problems"]])
    for state, problem, problem_cells in zip(
        summary._states, metadata["problems"], np.split(cells, ends[:-1]), strict=True
    ):
        totals = _parse_hex_integer_sums(problem["totals"])
        state.restore_cells(
            problem_cells.copy(), problem["shift"], problem["max_cells"], totals
        )
    if summary._joint is not None:
        summary._joint = _parse_hex_integer_sums(metadata["joint"])
    return summary


# -- files ----------------------------------------------------------------------------------------


def _repeat_problem_field_for_cells(table, name):
    """Return the metadata of each problem, repeated for its cells."""
    problems = json.loads(table.schema.metadata[METADATA_KEY])["problems"]
    return np.repeat([p[name] for p in problems], [p["cells"] for p in problems])


def _get_middle_offsets(table):
    """Return the offset of each cell if its rows were in its middle."""
    ids, n0, n1 = (table.column(name).to_numpy() for name in _INTEGER_COLUMNS)
    shift = _repeat_problem_field_for_cells(table, "shift")
    dropped = count_dropped_bits_by_cell(ids, shift) - DISTANCE_STEP_BITS
    return np.where(dropped >= 0, (n0 + n1) << np.maximum(dropped, 0) >> 1, 0)


def _pack_id_and_offset_columns(table):
    ids = table.column("id").to_numpy()
    packed = _replace_column(table, "id", _PACKED_ID_COLUMN, _pack_cell_ids(ids, table))
    offset = table.column("offset").to_numpy()
    # Offsets of weighted rows are not whole numbers.
    if "w0" in table.column_names or offset.max(initial=0.0) >= _MAX_PACKED_OFFSET:
        return packed
    excess = offset.astype(np.int64) - _get_middle_offsets(table)
    # The zigzag code: small negative numbers become small positive ones.
    bits = (excess << 1) ^ (excess >> 63)
    return _replace_column(
        packed, "offset", _PACKED_OFFSET_COLUMN, bits.view(np.float64)
    )


def _unpack_arrow_table_columns(table):
    if _PACKED_ID_COLUMN in table.column_names:
        ids = _unpack_cell_ids(table.column(_PACKED_ID_COLUMN).to_numpy(), table)
        table = _replace_column(table, _PACKED_ID_COLUMN, "id", ids)
    if _PACKED_OFFSET_COLUMN not in table.column_names:
        return table
    bits = table.column(_PACKED_OFFSET_COLUMN).to_numpy().view(np.int64)
    excess = (bits >> 1) ^ -(bits & 1)
    return _replace_column(
        table,
        _PACKED_OFFSET_COLUMN,
        "offset",
        (excess + _get_middle_offsets(table)).astype(float),
    )


def _replace_column(table, old, new, values):
    place = table.column_names.index(old)
    return table.set_column(place, new, [values])


# If no bits are dropped, identities end in as many zeros as all have in common. If some
# are, they end in 16 zeros, but for starts at cuts: these are recognised by the bit
# before and their place.


def _count_droppable_zero_bits(table, shift):
    if shift:
        return DISTANCE_STEP_BITS - 1
    used = int(
        np.bitwise_or.reduce(
            decode_cell_start_and_side(table[:, IDENTITY_COLUMN])[0], initial=0
        )
    )
    return (used & -used).bit_length() - 1 if used else 0


def _pack_cell_ids(ids, table):
    start, high = decode_cell_start_and_side(ids)
    coarse = _repeat_problem_field_for_cells(table, "shift") > 0
    zeros = _repeat_problem_field_for_cells(table, "zeros")
    at_cut = coarse & (start & ((1 << DISTANCE_STEP_BITS) - 1) != 0)
    code = np.where(at_cut, start >> DISTANCE_STEP_BITS << 1 | 1, start >> zeros)
    return np.where(high, ~code, code)


def _unpack_cell_ids(packed, table):
    code, high = decode_cell_start_and_side(packed)
    coarse = _repeat_problem_field_for_cells(table, "shift") > 0
    zeros = _repeat_problem_field_for_cells(table, "zeros")
    cut = [
        cuts[
            np.searchsorted(cuts >> DISTANCE_STEP_BITS, code >> 1).clip(
                max=len(cuts) - 1
            )
        ]
        for cuts in CUT_KEYS
    ]
    start = np.where(
        coarse & (code & 1 == 1), np.where(high, cut[1], cut[0]), code << zeros
    )
    return np.where(high, ~start, start)
