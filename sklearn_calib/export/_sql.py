"""Maps as SQL."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._argument_checks import check_choice, is_real_number, is_scalar_equal
from .._typing import FloatArray
from ..exceptions import invalid_input
from ..recalibrators import Recalibrator
from ._dialects import DIALECTS, Dialect, write_double
from ._document import Kind, to_document
from ._exported import ExportedMap
from ._lower import make_program
from ._program import (
    CONDITION_OPERATIONS,
    LEAF_OPERATIONS,
    MIN_DIVISOR,
    Expr,
    Program,
    count_uses,
    iter_expressions,
)

MAX_EXPRESSION_CHARACTERS = 8_000_000
# SQLite's parser allows about 15 CASE expressions inside each other.
_BRANCHES_PER_CASE = 4
# Edges from here on are never reached.
MIN_UNREACHED_EDGE = 1e308


class Printer:
    """Prints expressions; some have a name already, by id: those of columns."""

    def __init__(self, dialect: Dialect, names: dict[int, str]) -> None:
        self.dialect = dialect
        self.names = names
        # The largest depth of what was printed.
        self.max_used_symbols = 0

    def write_expression(self, root: Expr) -> str:
        """Write one expression."""
        texts = dict(self.names)
        depth = dict.fromkeys(self.names, 1)
        for expr in list(iter_expressions([root], texts)):
            texts[id(expr)] = self._write_operation(
                expr, [texts[id(arg)] for arg in expr.args]
            )
            depth[id(expr)] = _count_parser_symbols(
                expr, [depth[id(arg)] for arg in expr.args]
            )
        # Parsers have a limit on nesting, which decides between an expression and a
        # query.
        self.max_used_symbols = max(self.max_used_symbols, depth[id(root)])
        return texts[id(root)]

    def _write_operation(self, expr: Expr, args: list[str]) -> str:
        """Write an operation whose arguments are written already."""
        data = expr.data
        # Some databases treat the smallest numbers as zeros.
        if expr.op == "number":
            tiny = 0 < abs(data) < MIN_DIVISOR
            return self.dialect.write_literal(
                np.copysign(MIN_DIVISOR, data) if tiny else data
            )
        if expr.op == "search":
            # The lookups compare the argument itself.
            return args[0]
        if expr.op == "lookup":
            return self._write_tree(
                args[0], *merge_equal_pieces(expr.args[0].data, data)
            )
        if expr.op == "chebyshev":
            return self._write_chebyshev(args[0], data.tolist())
        self._check_expression_length(sum(map(len, args)))
        return self.dialect.get_template(expr.op).format(*args)

    def _write_tree(self, x: str, edges: FloatArray, values: FloatArray) -> str:
        """Write the value of the piece of x with balanced CASEs, or with a form of the dialect."""
        self._check_expression_length(len(edges) * (len(x) + 50))
        if self.dialect.write_step_search and len(edges) > self.dialect.max_case_edges:
            return self.dialect.write_step_search(
                x, *(list(map(write_double, table)) for table in (edges, values))
            )
        literal = self.dialect.write_literal

        def write_piece(first, last):
            """Write a CASE expression for the pieces from `first` to `last`."""
            if first == last:
                return literal(values[first])
            # A balanced tree: the number of comparisons is logarithmic in the number of
            # pieces.
            starts = sorted(
                {
                    first + (last + 1 - first) * i // _BRANCHES_PER_CASE
                    for i in range(_BRANCHES_PER_CASE)
                }
            )
            ends = [start - 1 for start in starts[1:]]
            whens = [
                f"WHEN {x} < {literal(edges[end])} THEN {write_piece(start, end)}"
                for start, end in zip(starts, ends, strict=False)
            ]
            return f"CASE {' '.join(whens)} ELSE {write_piece(starts[-1], last)} END"

        return write_piece(0, len(edges))

    def _write_chebyshev(self, z: str, coef: list[float]) -> str:
        """Write T_j(z) = cos(j arccos z); Clenshaw's recurrence needs every term twice."""
        self._check_expression_length(len(coef) * (len(z) + 60))
        literal = self.dialect.write_literal
        terms = [
            f"{literal(coefficient)} * COS({literal(j)} * ACOS({z}))"
            for j, coefficient in enumerate(coef)
            if j
        ]
        return f"({' + '.join([literal(coef[0]), *terms])})"

    def _check_expression_length(self, length: int) -> None:
        if length > MAX_EXPRESSION_CHARACTERS:
            raise invalid_input(
                expected=f"an expression of at most {MAX_EXPRESSION_CHARACTERS:,} characters",
                got=f"{length:,}",
                hint=(
                    "Pass columns as a list, for a query with intermediate columns; "
                    "into='table' for large tables; or call simplify first"
                ),
            )


# The symbols that a parser holds while it reads each argument. For "(a + b)" these are
# "(" before a, and "(", "a" and "+" before b.
_PARSER_DEPTH_BY_OPERATION = {
    "neg": (2,),
    "abs": (3,),
    "floor": (3,),
    "exp": (3,),
    "log": (3,),
    "expm1": (4,),
    "min": (3, 5),
    "max": (3, 5),
    "where": (3, 5, 4),
    "chebyshev": (13,),
    "search": (0,),
}


def _count_parser_symbols(expr, depths):
    """Count the symbols that a parser keeps at most while it reads an expression."""
    if expr.op == "lookup":
        levels = max(
            1, math.ceil(math.log(len(expr.data)) / math.log(_BRANCHES_PER_CASE))
        )
        return 6 * (levels - 1) + 4 + max(4, *depths)
    before = _PARSER_DEPTH_BY_OPERATION.get(expr.op, (1, 3))
    return max(
        (n_before + depth for n_before, depth in zip(before, depths, strict=False)),
        default=3,
    )


def merge_equal_pieces(edges: Any, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Remove empty pieces and edges between equal values from step functions."""
    count = int(np.searchsorted(edges, MIN_UNREACHED_EDGE))
    edges = edges[:count]
    values = values[: count + 1]
    # Of equal edges the last one decides.
    last = np.append(edges[1:] > edges[:-1], True)[:count]
    edges = edges[last]
    values = np.concatenate([values[:1], values[1:][last]])
    change = (values[1:] != values[:-1]).reshape(len(edges), -1).any(axis=1)
    return edges[change], np.concatenate([values[:1], values[1:][change]])


# Rows of an INSERT: some databases take 1000.
ROWS_PER_INSERT = 500
MAX_QUERY_OPERATIONS = 20_000
# No score is this large.
UNREACHED_SCORE = 1e300

TableName = str | Sequence[str]


def require_unique_names(names: Any, what: str) -> list[str]:
    """Return names as a list; they differ in more than case, as databases compare them."""
    columns = [names] if isinstance(names, str) else list(names)
    texts = {name.lower() for name in columns if isinstance(name, str)}
    if len(texts) < len(columns):
        raise invalid_input(
            expected=f"{what}: different texts",
            got=repr(columns)[:80],
            hint="Rename some",
        )
    return columns


def make_column_name_by_input_id(
    program: Program, columns: Sequence[str]
) -> dict[int, str]:
    """Return the names of the numbers of the row, by id."""
    every = iter_expressions([program.valid, *program.outputs])
    return {id(expr): columns[expr.data] for expr in every if expr.op == "input"}


def qualify_name(dialect: Dialect, name: TableName, what: str) -> str:
    """Quote the name of a table, with schema and catalogue if given."""
    parts = [name] if isinstance(name, str) else list(name)
    return ".".join(dialect.quote_name(name_part, what) for name_part in parts)


@dataclass
class SqlStatement:
    """What a program reads and what it hands on: the numbers of a row, a table, other columns."""

    dialect: Dialect
    program: Program
    columns: Sequence[str]
    source: TableName
    keep: Sequence[str]

    def __post_init__(self) -> None:
        self.table = (
            qualify_name(self.dialect, self.source, "source") if self.source else ""
        )
        self.kept = require_unique_names(self.keep, "keep")


class SqlQuery(SqlStatement):
    """A query by stages: each is a common table expression that adds columns to the one before.

    What is used twice becomes a column; a stage has all that needs only columns before
    it. Without a source it is one value, of the columns of the query that it stands in.
    """

    def write_query(self, into: str | Sequence[str] | None) -> str:
        """Write the query."""
        roots = [self.program.valid, *self.program.outputs]
        every = list(iter_expressions(roots))
        if len(every) > MAX_QUERY_OPERATIONS:
            raise invalid_input(
                expected=f"a map of at most {MAX_QUERY_OPERATIONS} operations",
                got=f"{len(every)}",
                hint="Use to_json, to_onnx or to_code, or a method with fewer parameters",
            )
        results = self._check_and_quote_result_names(into)
        quote = self.dialect.quote_name
        kept = [quote(name, "keep") for name in self.kept]
        stages = _make_stages(every, count_uses(roots))
        last_use = _find_last_uses(every, roots, stages)
        names = make_column_name_by_input_id(
            self.program,
            [self.dialect.write_column_as_double(name) for name in self.columns],
        )
        parts = []
        before = self.table
        source = [self.source] if isinstance(self.source, str) else self.source
        prefix = _find_unused_prefix([*self.kept, *source])
        for number, stage in enumerate(stages):
            # The columns that this stage makes, and those before it that are still read.
            made = {
                id(expr): quote(f"{prefix}{number}_{i}", "column")
                for i, expr in enumerate(stage)
            }
            carried = {
                expr: name
                for expr, name in names.items()
                if expr not in made and last_use[expr] > number
            }
            printer = Printer(self.dialect, names)
            added = [
                f"{printer.write_expression(expr)} AS {made[id(expr)]}"
                for expr in stage
            ]
            chosen = ", ".join([*kept, *carried.values(), *added])
            name = quote(f"{prefix}{number}", "stage")
            origin = f" FROM {before}{self.dialect.subquery_limit}" if before else ""
            parts.append(
                f"{name} AS {self.dialect.materialized_keyword}(SELECT {chosen}{origin})"
            )
            names = carried | made
            before = name
        printer = Printer(self.dialect, names)
        final = ",\n".join([*kept, *_guard_results(printer, self.program, results)])
        return "WITH " + ",\n".join(parts) + f"\nSELECT {final}\nFROM {before}"

    def _check_and_quote_result_names(self, into):
        """Return the quoted names of the results, and raise an error if they are not unique."""
        count = len(self.program.outputs)
        if isinstance(into, str):
            into = [into] if count == 1 else [f"{into}_{i}" for i in range(count)]
        if into is None or len(into) != count:
            got = "None" if into is None else f"{len(into)}"
            raise invalid_input(
                "into",
                expected=f"into: a text, or {count} names",
                got=got,
                hint="Name the results",
            )
        require_unique_names([*into, *self.kept], "names of the results and of keep")
        return [self.dialect.quote_name(name, "into") for name in into]


def _make_stages(
    expressions: Sequence[Expr], count: dict[int, int]
) -> list[list[Expr]]:
    """Sort what is used twice, or searched, into stages by when it can be computed."""
    searched = {id(expr.args[0]) for expr in expressions if expr.op == "search"}
    stage_of: dict[int, int] = {}
    stages: list[list[Expr]] = [[expr for expr in expressions if expr.op == "input"]]
    for expr in expressions:
        needs = max((stage_of[id(arg)] for arg in expr.args), default=0)
        # Expressions that are used twice become columns of a stage, otherwise their
        # text would be repeated.
        column = count[id(expr)] > 1 or id(expr) in searched
        if column and expr.op not in (
            *LEAF_OPERATIONS,
            *CONDITION_OPERATIONS,
            "search",
        ):
            needs += 1
            stages += [[] for _ in range(needs + 1 - len(stages))]
            stages[needs].append(expr)
        stage_of[id(expr)] = needs
    return stages


def _find_last_uses(expressions, roots, stages) -> dict[int, int]:
    """Return the last stage that reads each expression; the final SELECT comes last."""
    stage_of: dict[int, int] = {}
    for number, stage in enumerate(stages):
        stage_of |= dict.fromkeys(map(id, stage), number)
    last = dict.fromkeys(map(id, roots), len(stages))
    # An expression is visited after all that use it.
    for expr in reversed(expressions):
        number = stage_of.get(id(expr), last[id(expr)])
        for arg in expr.args:
            last[id(arg)] = max(last.get(id(arg), 0), number)
    return last


def _guard_results(printer, program, results):
    """Write the results under their names, for valid rows."""
    valid = printer.write_expression(program.valid)
    pairs = zip(program.outputs, results, strict=True)
    return [
        f"CASE WHEN {valid} THEN {printer.write_expression(expr)} END AS {name}"
        for expr, name in pairs
    ]


def _find_unused_prefix(names):
    prefix = "step_"
    while any(
        isinstance(name, str) and name.lower().startswith(prefix) for name in names
    ):
        prefix += "_"
    return prefix


class SqlJoin(SqlStatement):
    """Statements: a table of the pieces of one large table, its rows, and a join to it."""

    columns: str

    def write_statements(self, table: TableName) -> str:
        """Write the statements."""
        lookups = [
            expr
            for expr in iter_expressions(self.program.outputs)
            if expr.op == "lookup"
        ]
        # Several tables of values may be searched at one place: these are the columns
        # of one table.
        places = {id(expr.args[0]): expr.args[0] for expr in lookups}
        if len(places) != 1 or lookups[0].args[0].args[0].op != "input":
            raise invalid_input(
                expected="a map with one table that is searched by the score, for into='table'",
                got=f"one with {len(places)} tables",
                hint="Leave into='table' out, or pass columns as a list",
            )
        name = qualify_name(self.dialect, table, "table")
        (place,) = places.values()
        edges, values = merge_equal_pieces(
            place.data, np.column_stack([expr.data for expr in lookups])
        )
        lookup_columns = [self.dialect.quote(f"value_{i}") for i in range(len(lookups))]
        fields = [
            self.dialect.quote("low"),
            self.dialect.quote("high"),
            *lookup_columns,
        ]
        # The first and the last piece are unbounded.
        bounds = np.concatenate([[-UNREACHED_SCORE], edges, [UNREACHED_SCORE]])
        rows = np.column_stack([bounds[:-1], bounds[1:], values]).tolist()
        texts = [f"({', '.join(map(self.dialect.write_literal, row))})" for row in rows]
        stored = self.dialect.stored_double_type or self.dialect.double_type
        first, *others = (f"{field} {stored} NOT NULL" for field in fields)
        columns = ", ".join([first + self.dialect.key_clause, *others])
        inserts = [
            f"INSERT INTO {name} ({', '.join(fields)}) VALUES\n"
            + ",\n".join(texts[i : i + ROWS_PER_INSERT])
            for i in range(0, len(texts), ROWS_PER_INSERT)
        ]
        names = {
            id(expr): f"m.{field}"
            for expr, field in zip(lookups, lookup_columns, strict=True)
        }
        query = self._write_query(name, names)
        return ";\n".join([f"CREATE TABLE {name} ({columns})", *inserts, query, ""])

    def _write_query(self, table, names):
        """Write the query that joins the rows to the table of pieces."""
        quote = self.dialect.quote
        column = self.dialect.quote_name(self.columns, "columns")
        score = self.dialect.cast_template.format(
            f"s.{column}", self.dialect.double_type
        )
        names = names | make_column_name_by_input_id(self.program, [score])
        printer = Printer(self.dialect, names)
        kept = [
            f"s.{self.dialect.quote_name(kept_column, 'keep')}"
            for kept_column in self.kept
        ]
        results = _guard_results(printer, self.program, [quote("calibrated")])
        joined = self.dialect.join_template.format(
            table=table, x=score, low=quote("low"), high=quote("high")
        )
        return (
            f"SELECT {', '.join([*kept, *results])}\nFROM {self.table} AS s\n{joined}"
        )


SqlDialect = Literal[
    "ansi",
    "postgres",
    "sqlite",
    "duckdb",
    "mysql",
    "bigquery",
    "snowflake",
    "tsql",
    "clickhouse",
    "spark",
    "databricks",
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
        One name, for two classes: the column with the probability of the second class
        (its log-odds where ``input="logits"``); the result is an expression. A sequence
        of k names, one for each class in the order of the labels, or of that one name:
        the result is a query on `source`, with intermediate columns.
    dialect : {"ansi", "postgres", "sqlite", "duckdb", "mysql", "bigquery", "snowflake", "tsql", \
            "clickhouse", "spark", "databricks"}
        The database. SQLite needs its mathematical functions (3.35 or later, in most
        builds). ``"ansi"`` is for Trino, DataFusion and Polars too; these read no
        deeply nested text, as of "auto" and other mixtures: pass columns as a list for
        a query.
    into : str, sequence of str, or None, default="calibrated"
        Name of the result. A query has one column for each class, named by this and the
        position: ``calibrated_0``, ``calibrated_1``, ...; pass k names for others.
        ``None``: the bare expression, for use inside others. ``"table"``: see Returns.
    source : str or sequence of str, default="scores"
        The table of the scores for a query; a sequence is a qualified name, such as
        ``("marketing", "scores")``.
    keep : sequence of str, default=()
        Columns of the source that the query returns too, such as a key.
    table : str or sequence of str, default="calibration"
        Name of the new table, if ``into="table"``.
    input : {"proba", "logits"}, default=None
        The scores in the columns: see `to_dict`.
    tabulate : float in (0, 0.1], default=None
        As in `to_dict`, for methods without a finite form.
    bands : sequence of float, or dict of str to float, default=None
        For two classes and one column: the band of the calibrated probability instead
        of the probability, found by comparing the score with numbers alone, see
        `Recalibrator.threshold`. With increasing probabilities the result is how many
        of them are reached, from 0 on. With a dict from the name of each band to its
        lowest probability, such as ``{"A": 0, "B": 0.02, "C": 0.05}``, it is the name.

    Returns
    -------
    sql : str
        * ``<expression> AS "calibrated"``, the probability of the second class, for a
          list of columns: ``f"SELECT id, {sql} FROM scores"``.
        * ``WITH ... SELECT ...`` for a sequence of columns.
        * for ``into="table"``, one column and a map with one large table (step
          functions, isotonic, splines): three statements, of which each ends with a
          semicolon at the end of a line. CREATE TABLE, INSERT with one row for each
          piece, and the query, which joins each score to its piece by its range.

        The text begins with a comment: the document of `to_dict` without the map, as
        JSON on one line, with its five check rows.

    Raises
    ------
    ValueError
        An unknown dialect, a wrong number of columns, names that are empty, have
        control characters or are not different, a map that cannot be exported, an
        expression of more than 8 million characters, ``into="table"`` for a map with no
        table or several.

    Notes
    -----
    NULL gives NULL. So do a single probability outside [0, 1] and a NaN; of several
    columns, rows with a number farther than 1e-6 outside or a sum farther than 1e-6
    from 1 (others are clipped and divided by their sums, as `canonical_proba` does);
    and an infinite logit. Rows are never left out.

    Names are data: they are quoted by the rules of the dialect, with any characters.
    Quoted names keep their case: in Snowflake a column made by ``CREATE TABLE t (p
    FLOAT)`` is called ``"P"``.

    No function is created in the database. Tables become nested CASEs, as deep as the
    logarithm of their length, in PostgreSQL and ClickHouse arrays, in MySQL INTERVAL,
    and in DuckDB from some 300 pieces on a list that is halved. They compare the
    probability itself, not its logarithm, so a database's LN, which differs in the last
    digits, cannot move a score to another step: step functions are exact. Elsewhere
    results are those of `predict_proba` within 1e-9, run in SQLite, DuckDB, PostgreSQL,
    MariaDB, DataFusion and Polars, and in ClickHouse and Spark if the text is not
    too long for them; the other dialects follow their manuals. Two exceptions: the few
    rows whose score is within its last digit of the middle between two scores of 36
    bits (see `to_code`); and isotonic pieces shorter than about 1e-7 in log-odds, where
    differences of probabilities lose digits: the error is about 1e-16 of the
    probability, divided by the length of the piece.

    Cost: an expression repeats what it uses twice. Over some 2000 steps if they are
    nested CASEs, `simplify` the map first, or use ``into="table"``.

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
    check_choice("a dialect", dialect, DIALECTS, "Choose a dialect")
    rules = DIALECTS[dialect]
    document = to_document(fitted, input=input, tabulate=tabulate)
    head = f"/* {document.json_without_map} */"
    if not isinstance(columns, str | Sequence):
        raise invalid_input(
            expected="columns as a name or a list of names",
            got=repr(columns),
            hint="Pass for instance columns='p'",
        )
    if bands is not None and not isinstance(columns, str):
        raise invalid_input(
            expected="one column for bands",
            got=repr(columns)[:80],
            hint="Name one column, the score of the second class",
        )
    names = require_unique_names(columns, "columns")
    k = len(document.classes)
    if len(names) == 1 and k != 2:
        raise invalid_input(
            expected="two classes for a single column",
            got=f"{k}",
            hint="Pass the names of all columns, one for each class",
        )
    if len(names) not in (1, k):
        raise invalid_input(
            expected=f"{k} columns, one for each class",
            got=f"{len(names)}",
            hint="Pass them in the order of the labels",
        )
    program = make_program(document, second_only=len(names) == 1)
    if not isinstance(columns, str):
        return (
            f"{head}\n{SqlQuery(rules, program, names, source, keep).write_query(into)}"
        )
    if bands is None and is_scalar_equal(into, "table"):
        return f"{head}\n{SqlJoin(rules, program, columns, source, keep).write_statements(table)}"
    score = rules.write_column_as_double(columns)
    printer = Printer(rules, make_column_name_by_input_id(program, [score]))
    valid = printer.write_expression(program.valid)
    if bands is None:
        result = printer.write_expression(program.outputs[0])
    else:
        result = _write_score_bands(rules, fitted, document, score, bands)
    query = f"CASE WHEN {valid} THEN {result} END"
    # The result is one value, computed in stages.
    if printer.max_used_symbols > rules.max_parser_symbols:
        query = (
            f"({SqlQuery(rules, program, [columns], '', ()).write_query('calibrated')})"
        )
    return f"{head} {_add_alias_if_named(rules, query, into)}"


def _add_alias_if_named(
    dialect: Dialect, text: str, into: str | Sequence[str] | None
) -> str:
    if into is None:
        return text
    if not isinstance(into, str):
        raise invalid_input(
            expected="one name into which the result goes",
            got=repr(into)[:80],
            hint="Pass a text",
        )
    return f"{text} AS {dialect.quote_name(into, 'into')}"


def _write_score_bands(dialect, fitted, document, score, bands):
    """Write the band of each score: a CASE of comparisons, from the highest band on."""
    edges, names = _parse_score_bands(bands, dialect)
    fitted_map = (
        fitted if isinstance(fitted, Recalibrator) else ExportedMap(document.to_dict())
    )
    kind = document.input
    thresholds = fitted_map.threshold(edges, input=kind) if edges else []
    literal = dialect.write_literal
    whens = []
    for threshold, name in reversed([*zip(thresholds, names[1:], strict=True)]):
        # A map that falls and rises reaches a band on several intervals.
        ends = [
            f"{score} >= {literal(low)} AND {score} <= {literal(high)}"
            for low, high in threshold.intervals
        ]
        if threshold.side:
            ends = [f"{score} {threshold.side} {literal(threshold.score)}"]
        if ends:
            whens.append(f"WHEN {' OR '.join(ends)} THEN {name}")
    return f"CASE {' '.join(whens)} ELSE {names[0]} END" if whens else names[0]


def _parse_score_bands(bands, dialect):
    """Return the lower edges of all bands but the first, and the SQL literal of each band."""
    is_table = isinstance(bands, Mapping | Sequence | np.ndarray)
    if isinstance(bands, Mapping):
        values = [*bands.values()]
    else:
        values = [*bands] if is_table else [None]
    good = all(is_real_number(value) for value in values)
    good = good and not any(edge >= other for edge, other in itertools.pairwise(values))
    if good and not isinstance(bands, Mapping):
        return values, [str(number) for number in range(len(values) + 1)]
    good = good and all(isinstance(name, str) and name.isprintable() for name in bands)
    if not good or values[:1] != [0]:
        raise invalid_input(
            expected="bands as increasing probabilities, or as a dict from names to them, "
            "the first 0",
            got=repr(bands)[:80],
            hint="Pass for instance bands=[0.02, 0.05], or {'A': 0, 'B': 0.02}",
        )
    return values[1:], [dialect.quote_literal(name) for name in bands]
