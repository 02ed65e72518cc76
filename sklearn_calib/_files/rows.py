"""Rows that come piece by piece: results of queries, cursors, iterators; as tables in turn."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from .._argument_checks import import_optional
from .._show import format_error_or_type_if_secret, make_printable, quote_text
from ..exceptions import InvalidInputError, invalid_input

# Rows that are fetched from a query or an iterator at a time.
PIECE_ROWS = 2**17
# Objects with one of these attributes are tables or files, not rows.
_TABLE_METHODS = "__arrow_c_stream__", "read"
# the cursor of psycopg: without a name it fetches all rows at once
_SERVER_CURSOR_NAME = "sklearn_calib"


# Databases of these drivers quote names with backticks.
_BACKTICK_DRIVERS = ("pymysql", "MySQLdb", "mysql", "mariadb", "google", "databricks")


class GroupedRowCountColumns(NamedTuple):
    """How a database counts the rows of a query that are equal in some columns.

    The numbers are a column `count_column`; `weight_column` is one of the query, if its
    rows are numbers already.
    """

    columns: Sequence[str]
    count_column: str
    weight_column: str | None

    def make_group_count_query(self, query: str, source: Any) -> str:
        """Return the query for the counts."""
        first, last = _get_quote_marks(source)
        *names, counts, into = (
            first + name.replace(last, 2 * last) + last
            for name in (*self.columns, self.weight_column or "", self.count_column)
        )
        number = f"SUM({counts})" if self.weight_column else "COUNT(*)"
        quoted_columns = ", ".join(names)
        inner = query.strip().rstrip(";")
        return (
            f"SELECT {quoted_columns}, {number} AS {into} FROM (\n{inner}\n) counted "
            f"GROUP BY {quoted_columns}"
        )


def _get_quote_marks(source):
    """Return what a database writes before and behind a name."""
    driver = type(source).__module__.partition(".")[0]
    if driver == "sqlalchemy":
        quotes = source.dialect.identifier_preparer
        return quotes.initial_quote, quotes.final_quote
    return "``" if driver in _BACKTICK_DRIVERS else '""'


def iter_query_pieces(
    source: Any, query: str, counting: GroupedRowCountColumns | None = None
) -> Iterator[Any]:
    """Yield the result of a query in pieces, or of counting its rows.

    `source` is the address of a database (by SQLAlchemy), an engine or a connection of
    SQLAlchemy, or a connection of ADBC or of another driver with cursors.
    """
    address = source if isinstance(source, str) else ""
    with ExitStack() as stack:
        try:
            if address:
                alchemy = import_optional("sqlalchemy", "sql")
                source = alchemy.create_engine(address)
                stack.callback(source.dispose)
            query = (
                query
                if counting is None
                else counting.make_group_count_query(query, source)
            )
            result = _open_query_result(source, query, stack)
        except (InvalidInputError, TypeError):
            raise
        except Exception as error:  # of each driver its own
            raise invalid_input(
                expected="a query that the database answers",
                got=make_printable(
                    format_error_or_type_if_secret(
                        getattr(error, "orig", error), address
                    ),
                    300,
                ).rstrip("."),
                hint="Check the query, the address and the driver",
            ) from error
        yield from iter_pieces(result, ())


def _open_query_result(source, query, stack):
    # the driver alone is three times as fast
    if type(source).__module__.startswith("sqlalchemy"):
        if hasattr(source, "raw_connection"):
            held = source.raw_connection()
            stack.callback(_close_cursor, held)
        else:
            held = source.connection
        source = held.driver_connection
    # its cursors do not see all tables
    if type(source).__module__.strip("_").startswith("duckdb"):
        reader = import_optional("pyarrow", "cli").RecordBatchReader
        stream = source.sql(query).__arrow_c_stream__()  # DuckDB 1.1 takes no schema
        return (batch for batch in reader._import_from_c_capsule(stream))
    if not hasattr(source, "cursor"):
        raise invalid_input(
            "query",
            expected="the address, an engine or a connection of a database, for query",
            got=f"a {type(source).__name__}",
            hint="Connect first",
            error=TypeError,
        )
    cursor = _make_streaming_cursor(source)
    stack.callback(_close_cursor, cursor)
    cursor.execute(query)
    return cursor


def _close_cursor(cursor):
    with suppress(Exception):  # of each driver its own, if the connection is gone
        cursor.close()


def _make_streaming_cursor(connection):
    """Open a cursor that leaves the rows where they are until they are fetched."""
    driver = type(connection).__module__.partition(".")[0]
    if driver.startswith("psycopg"):
        return connection.cursor(
            _SERVER_CURSOR_NAME, withhold=bool(connection.autocommit)
        )
    if driver == "pymysql":
        from pymysql.cursors import SSCursor

        return connection.cursor(SSCursor)
    return connection.cursor()


def iter_pieces(data: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield tables of a cursor, a result or an iterator, in turn; anything else as it is.

    `names` are the columns of iterators of tuples, in their order.
    """
    if any(hasattr(data, name) for name in _TABLE_METHODS):
        yield data
    elif callable(fetch := getattr(data, "fetch_record_batch", None)):  # of ADBC
        yield from _iter_pieces_or_raise_if_broken(fetch())
    elif callable(getattr(data, "fetchmany", None)):
        yield from _iter_pieces_or_raise_if_broken(_iter_fetched_frames(data))
    elif hasattr(data, "__next__"):
        yield from _iter_pieces_or_raise_if_broken(_iter_gathered_tables(data, names))
    else:
        yield data


def _iter_pieces_or_raise_if_broken(pieces):
    """Yield pieces, and count the rows before one that could not be had."""
    n_rows = 0
    try:
        for piece in pieces:
            n_rows += len(
                next(iter(piece.values())) if isinstance(piece, Mapping) else piece
            )
            yield piece
    except (InvalidInputError, TypeError, GeneratorExit):
        raise
    except Exception as error:  # a connection that is lost
        reason = make_printable(format_error_or_type_if_secret(error, ""), 200)
        raise invalid_input(
            expected="rows to the end",
            got=f"{type(error).__name__} after {n_rows:,} rows ({reason})",
            hint="Run it again; nothing was kept",
            error=OSError,
        ) from error
    if not n_rows:
        raise invalid_input(
            expected="at least one row",
            got="none",
            hint="Check the query or the iterator",
        )


def _iter_fetched_frames(result):
    """Yield frames of a cursor, or of a result of SQLAlchemy."""
    described = getattr(result, "description", None)
    if callable(names := getattr(result, "keys", None)):
        described = [(name,) for name in names()]
    if described is None:
        raise invalid_input(
            expected="a cursor with a result",
            got="one without",
            hint="Execute a query that returns rows first",
        )
    columns = [str(column[0]) for column in described]
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise invalid_input(
            expected="columns of different names",
            got=f"{quote_text(twice[0])} twice",
            hint="Name them with AS",
        )
    while rows := result.fetchmany(PIECE_ROWS):
        yield _make_frame(rows, columns)


def _iter_gathered_tables(iterator, names):
    """Yield tables as they are, tuples of arrays as tables, rows as tables of many."""
    for first in iterator:
        rows = isinstance(first, tuple | list | Mapping)
        values = [*first.values()] if isinstance(first, Mapping) else first
        if not rows:
            yield first
        elif len(values) and np.ndim(values[0]):
            value_by_name = (
                first
                if isinstance(first, Mapping)
                else _make_value_by_name(first, names)
            )
            yield {name: np.asarray(column) for name, column in value_by_name.items()}
        else:
            columns = (
                [*first]
                if isinstance(first, Mapping)
                else [*_make_value_by_name(first, names)]
            )
            yield _make_frame(
                [*chain([first], islice(iterator, PIECE_ROWS - 1))], columns
            )


def _make_value_by_name(values, names):
    names = getattr(values, "_fields", names)
    if len(values) != len(names):
        raise invalid_input(
            expected=f"tuples of {len(names)}, {', '.join(map(quote_text, names))}",
            got=f"a tuple of {len(values)}",
            hint="Give the columns in this order, or dicts by name",
        )
    return dict(zip(names, values, strict=True))


def _make_frame(rows, columns):
    pd = import_optional("pandas", "cli")
    with suppress(TypeError):  # rows of SQLAlchemy, of pyodbc
        rows = [row if isinstance(row, Mapping) else tuple(row) for row in rows]
    return pd.DataFrame.from_records(rows, columns=columns, coerce_float=True)
