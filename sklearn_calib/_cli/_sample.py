"""A sample of the rows of large files, in memory that does not grow with them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from .._files.tables import (
    FileTable,
    arrow_frame,
    check_columns,
    check_types,
    parquet_file,
    table_blocks,
    unreadable,
    values_of_text,
)

_ROWS = 2**16  # of a parquet file that are read at a time


def sampled_tables(
    files: Sequence[str],
    pick: Callable[[Sequence[str]], Any],
    most: int,
    as_text: Collection[str],
    form: dict[str, Any],
) -> list[FileTable]:
    """At most so many rows of all files together, each with the same chance; in their order.

    Each row draws a number, and those with the smallest are kept. Columns that are read
    `as_text`, so that all blocks have the same kind, become numbers again where all of them are.
    """
    rng = np.random.default_rng(0)
    kept: list[tuple[int, FileTable, Any]] = []
    for number, file in enumerate(files):
        for table in _blocks(file, pick, as_text, form):
            kept.append((number, table, rng.random(len(table.frame))))
            if sum(len(drawn) for *_, drawn in kept) > 2 * most:
                kept = _smallest(kept, most)
    kept = _smallest(kept, most)
    found = [_joined([table for place, table, _ in kept if place == n]) for n in range(len(files))]
    return [_with_numbers(table, as_text) for table in found if table is not None]


def _blocks(file: str, pick: Any, as_text: Any, form: Any) -> Iterator[FileTable]:
    with open(file, "rb") as stream:
        if stream.read(4) != b"PAR1":
            yield from table_blocks(file, pick, as_text=as_text, **form)
            return
        stream.seek(0)
        try:
            source = parquet_file(stream)
            schema, first = source.schema_arrow, 0
            needed = list(dict.fromkeys(pick(schema.names)))
            check_columns(needed, schema.names, file)
            check_types(needed, schema, file)
            for batch in source.iter_batches(_ROWS, columns=needed):
                import pyarrow as pa

                frame = arrow_frame(pa.Table.from_batches([batch]).select(needed))
                yield FileTable(frame, file, None, first)
                first += len(frame)
        except (OSError, ValueError) as error:  # pyarrow's among them
            raise unreadable(error, file) from error


def _smallest(kept, most):
    """The rows of the smallest numbers, of each block."""
    drawn = np.concatenate([drawn for *_, drawn in kept]) if kept else np.empty(0)
    if len(drawn) <= most:
        return kept
    limit = np.partition(drawn, most - 1)[most - 1]
    left = []
    for number, table, own in kept:
        chosen = np.flatnonzero(own <= limit)
        rows = np.arange(len(own)) if table.rows is None else table.rows
        frame = table.frame.iloc[chosen].reset_index(drop=True)
        left.append((number, table._replace(frame=frame, rows=rows[chosen]), own[chosen]))
    return [one for one in left if len(one[2])]


def _joined(tables):
    """The blocks of one file as one table; None where no row of it was drawn."""
    import pandas as pd

    if not tables:
        return None
    rows = [
        table.first + (np.arange(len(table.frame)) if table.rows is None else table.rows)
        for table in tables
    ]
    frame = pd.concat([table.frame for table in tables], ignore_index=True)
    return tables[-1]._replace(frame=frame, first=0, rows=np.concatenate(rows), text=None)


def _with_numbers(table, names):
    """Columns that were read as text, as if they had been read at once."""
    frame = table.frame.copy()
    for name in names:
        column = frame[name]
        texts = column.dropna().unique()
        if len(texts) and all(isinstance(text, str) for text in texts):
            values = values_of_text(list(texts), table.decimal)
            if not all(isinstance(value, str) for value in values.values()):
                frame[name] = column.map(values)
    return table._replace(frame=frame)
