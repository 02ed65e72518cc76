"""Maps as SQL."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..exceptions import check_known, equals, is_number, refuse
from ..recalibrators import Recalibrator
from ._dialects import DIALECTS, Dialect
from ._document import Kind, document_of
from ._exported import ExportedMap
from ._lower import program_of
from ._sql_query import Join, Printer, Query, different, entries

SqlDialect = Literal[
    "ansi", "postgres", "sqlite", "duckdb", "mysql", "bigquery", "snowflake", "tsql"
]


def to_sql(
    fitted: Any,
    columns: str | Sequence[str] = "p",
    *,
    dialect: SqlDialect = "ansi",
    into: str | Sequence[str] | None = "calibrated",
    source: str | Sequence[str] = "scores",
    keep: Sequence[str] = (),
    table: str | Sequence[str] = "calibration",
    input: Kind | None = None,
    tabulate: float | None = None,
    bands: Sequence[float] | Mapping[str, float] | None = None,
) -> str:
    """Write a fitted map as SQL: an expression, or a query for several classes.

    Parameters
    ----------
    fitted : fitted recalibrator, Pipeline of them, ExportedMap or dict
        As in `to_dict`.
    columns : str or sequence of str, default="p"
        One name, for two classes: the column with the probability of the second class (its
        log-odds where ``input="logits"``); the result is an expression. A sequence of k names,
        one for each class in the order of the labels, or of that one name: the result is a query
        on `source`, with intermediate columns.
    dialect : {"ansi", "postgres", "sqlite", "duckdb", "mysql", "bigquery", "snowflake", "tsql"}
        The database. SQLite needs its mathematical functions (3.35 or later, in most builds).
    into : str, sequence of str, or None, default="calibrated"
        Name of the result. A query has one column for each class, named by this and the position:
        ``calibrated_0``, ``calibrated_1``, ...; pass k names for others. ``None``: the bare
        expression, for use inside others. ``"table"``: see Returns.
    source : str or sequence of str, default="scores"
        The table of the scores for a query; a sequence is a qualified name, such as
        ``("marketing", "scores")``.
    keep : sequence of str, default=()
        Columns of the source that the query returns too, such as a key.
    table : str or sequence of str, default="calibration"
        Name of the new table, where ``into="table"``.
    input : {"proba", "logits"}, default=None
        The scores in the columns: see `to_dict`.
    tabulate : float in (0, 0.1], default=None
        As in `to_dict`, for methods without a finite form.
    bands : sequence of float, or dict of str to float, default=None
        For two classes and one column: the band of the calibrated probability instead of the
        probability, found by comparing the score with numbers alone, see `Recalibrator.threshold`.
        With increasing probabilities the result is how many of them are reached, from 0 on. With a
        dict from the name of each band to its lowest probability, such as
        ``{"A": 0, "B": 0.02, "C": 0.05}``, it is the name.

    Returns
    -------
    sql : str
        * ``<expression> AS "calibrated"``, the probability of the second class, for a list of
          columns: ``f"SELECT id, {sql} FROM scores"``.
        * ``WITH ... SELECT ...`` for a sequence of columns.
        * for ``into="table"``, one column and a map with one large table (step functions,
          isotonic, splines): three statements, of which each ends with a semicolon at the end of
          a line. CREATE TABLE, INSERT with one row for each piece, and the query, which joins
          each score to its piece by its range.

        The text begins with a comment: the document of `to_dict` without the map, as JSON on one
        line, with its five check rows.

    Raises
    ------
    ValueError
        An unknown dialect, a wrong number of columns, names that are empty, have control
        characters or are not different, a map that cannot be exported, an expression of more than
        8 million characters or too deeply nested for SQLite, ``into="table"`` for a map with no
        table or several.

    Notes
    -----
    NULL gives NULL. So do a single probability outside [0, 1] and a NaN; of several columns, rows
    with a number farther than 1e-6 outside or a sum farther than 1e-6 from 1 (others are clipped
    and divided by their sums, as `canonical_proba` does); and an infinite logit. Rows are never
    left out.

    Names are data: they are quoted by the rules of the dialect, whatever characters they have.
    Quoted names keep their case: in Snowflake a column made by ``CREATE TABLE t (p FLOAT)`` is
    called ``"P"``.

    No function is created in the database. Tables become nested CASEs, as deep as the logarithm of
    their length. They compare the probability itself, not its logarithm, so a database's LN, which
    differs in the last digits, cannot move a score to another step: step functions are exact.
    Elsewhere results are those of `predict_proba` within 1e-9, run in SQLite, DuckDB and
    PostgreSQL; the other dialects follow their manuals. Two exceptions: the few rows whose score is
    within its last digit of the middle between two scores of 36 bits (see `to_code`); and isotonic
    pieces shorter than about 1e-7 in log-odds, where differences of probabilities lose digits: the
    error is about 1e-16 of the probability, divided by the length of the piece.

    Cost: an expression repeats what it uses twice. Over some 2000 steps, `simplify` the map first,
    or use ``into="table"``.

    Examples
    --------
    >>> import sqlite3
    >>> from sklearn_calib.export import to_sql
    >>> from sklearn_calib.recalibrators import HistogramBinning
    >>> fitted = HistogramBinning(2).fit([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1])
    >>> sql = to_sql(fitted, "score", dialect="sqlite", into=None)
    >>> with sqlite3.connect(":memory:") as database:
    ...     _ = database.execute("CREATE TABLE t (score REAL)")
    ...     _ = database.execute("INSERT INTO t VALUES (0.15), (0.8), (NULL)")
    ...     database.execute(f"SELECT ROUND({sql}, 3) FROM t").fetchall()
    [(0.132,), (0.836,), (None,)]
    """
    check_known("to_sql", "a dialect", dialect, DIALECTS, "Choose a dialect")
    known = DIALECTS[dialect]
    document = document_of(fitted, input=input, tabulate=tabulate)
    head = f"/* {document.head} */"
    if not isinstance(columns, str | Sequence):
        cure = "Pass for instance columns='p'"
        refuse("to_sql", "columns as a name or a list of names", repr(columns), cure)
    if bands is not None and not isinstance(columns, str):
        cure = "Name one column, the score of the second class"
        refuse("to_sql", "one column where there are bands", repr(columns)[:80], cure)
    names, k = different(columns, "columns"), len(document.classes)
    if len(names) == 1 and k != 2:
        cure = "Pass the names of all columns, one for each class"
        refuse("to_sql", "two classes where there is one column", f"{k}", cure)
    if len(names) not in (1, k):
        rule, cure = f"{k} columns, one for each class", "Pass them in the order of the labels"
        refuse("to_sql", rule, f"{len(names)}", cure)
    program = program_of(document, second_only=len(names) == 1)
    if not isinstance(columns, str):
        return f"{head}\n{Query(known, program, names, source, keep).text(into)}"
    if bands is None and equals(into, "table"):
        return f"{head}\n{Join(known, program, columns, source, keep).text(table)}"
    score = known.column(columns)
    printer = Printer(known, entries(program, [score]))
    valid = printer.text(program.valid)
    if bands is None:
        result = printer.text(program.outputs[0])
    else:
        result = _bands(known, fitted, document, score, bands)
    return f"{head} {_named(known, f'CASE WHEN {valid} THEN {result} END', into)}"


def _named(dialect: Dialect, text: str, into: str | Sequence[str] | None) -> str:
    if into is None:
        return text
    if not isinstance(into, str):
        refuse("to_sql", "one name into which the result goes", repr(into)[:80], "Pass a text")
    return f"{text} AS {dialect.name(into, 'into')}"


def _bands(dialect, fitted, document, score, bands):
    """The band of each score: a CASE of comparisons, from the highest band on."""
    edges, names = _edges_of(bands, dialect)
    own = fitted if isinstance(fitted, Recalibrator) else ExportedMap(document.to_dict())
    kind: Any = document.input
    found = own.threshold(edges, input=kind) if edges else []
    literal, whens = dialect.literal, []
    for one, name in reversed([*zip(found, names[1:], strict=True)]):
        ends = [
            f"{score} >= {literal(low)} AND {score} <= {literal(high)}"
            for low, high in one.intervals
        ]
        if one.side:
            ends = [f"{score} {one.side} {literal(one.score)}"]
        if ends:
            whens.append(f"WHEN {' OR '.join(ends)} THEN {name}")
    return f"CASE {' '.join(whens)} ELSE {names[0]} END" if whens else names[0]


def _edges_of(bands, dialect):
    """Where the second band and those after it begin, and what SQL says for each band."""
    rule = "bands as increasing probabilities, or as a dict from names to them, the first 0"
    cure = "Pass for instance bands=[0.02, 0.05], or {'A': 0, 'B': 0.02}"
    known = isinstance(bands, Mapping | Sequence | np.ndarray)
    values = [*(bands.values() if isinstance(bands, Mapping) else bands)] if known else [None]
    good = all(is_number(value) for value in values)
    good = good and not any(one >= other for one, other in itertools.pairwise(values))
    if good and not isinstance(bands, Mapping):
        return values, [str(number) for number in range(len(values) + 1)]
    good = good and all(isinstance(name, str) and name.isprintable() for name in bands)
    if not good or values[:1] != [0]:
        refuse("to_sql", rule, repr(bands)[:80], cure)
    return values[1:], [dialect.text(name) for name in bands]
