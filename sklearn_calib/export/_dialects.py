"""How databases write numbers, names and functions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..exceptions import invalid_input
from ._languages import ARITHMETIC_TEMPLATES


def make_name_quoter(first: str, last: str) -> Callable[[str], str]:
    """Quote a name; a closing quote inside it is written twice."""
    return lambda name: f"{first}{name.replace(last, 2 * last)}{last}"


def quote_with_escaped_backticks(name: str) -> str:
    """Quote a name with backticks; backticks and backslashes inside it get a backslash."""
    name = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{name}`"


quote_identifier = make_name_quoter('"', '"')
quote_text = make_name_quoter("'", "'")


def quote_with_backslashes(text: str) -> str:
    """Quote text with doubled backslashes, for dialects in which they begin an escape."""
    return "'{}'".format(text.replace("\\", "\\\\").replace("'", "\\'"))


def write_double(value: float) -> str:
    """Write a double with an exponent; without one databases read it as a decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def write_postgres_search(x: str, edges: list[str], values: list[str]) -> str:
    """Search a constant array by bisection (PostgreSQL)."""
    places, results = (
        f"'{{{','.join(table)}}}'::float8[]" for table in (edges, values)
    )
    return f"({results})[WIDTH_BUCKET({x}, {places}) + 1]"


def write_mysql_search(x: str, edges: list[str], values: list[str]) -> str:
    """Search constants by bisection with INTERVAL; ELT returns text (MySQL)."""
    # INTERVAL counts from 0, but the constant -1e308 in front makes the positions start
    # at 1.
    place = f"INTERVAL({x}, -1e308, {', '.join(edges)})"
    return f"CAST(ELT({place}, {', '.join(values)}) AS DOUBLE)"


def write_clickhouse_search(x: str, edges: list[str], values: list[str]) -> str:
    """Search the edges with roundDown, and look the edge up with transform (ClickHouse)."""
    table = f"[-1e308, {', '.join(edges)}]"
    # NULL has been handled before.
    edge = f"roundDown(assumeNotNull({x}), {table})"
    return f"transform({edge}, {table}, [{', '.join(values)}], 0e0)"


def write_duckdb_search(x: str, edges: list[str], values: list[str]) -> str:
    """Halve the range by one query without a table each.

    Beyond its end a list has NULL (DuckDB).
    """
    row = f"(SELECT 0 AS i, {x} AS x, [{', '.join(edges)}] AS e, [{', '.join(values)}] AS v)"
    # Bisection by the bits of the index, the highest first.
    for bit in reversed(range(len(edges).bit_length())):
        after = f"i + CASE WHEN x >= e[i + {1 << bit}] THEN {1 << bit} ELSE 0 END"
        row = f"(SELECT {after} AS i, x, e, v FROM {row})"
    return f"(SELECT v[i + 1] FROM {row})"


_SQL_FUNCTION_TEMPLATES = ARITHMETIC_TEMPLATES | {
    "and": "({} AND {})",
    "where": "CASE WHEN {} THEN {} ELSE {} END",
    "abs": "ABS({})",
    "floor": "FLOOR({})",
    "exp": "EXP({})",
    "expm1": "(EXP({}) - 1e0)",
    "log": "LN({})",
    "min": "LEAST({}, {})",
    "max": "GREATEST({}, {})",
}


@dataclass(frozen=True)
class Dialect:
    """How to write queries for one database.

    Attributes
    ----------
    quote : callable
        Quotes a name as an identifier.
    double_type : str
        The name of the type of double precision.
    number_template : str
        Writes a literal of that type.
    cast_template : str
        Converts a column to that type.
    stored_double_type : str
        The name of the type in a table without NULLs, if it differs.
    materialized_keyword : str
        Makes a common table expression be computed once, not at each use.
    subquery_limit : str
        Does the same, at the end of the expression, for databases that would merge it
        into the query that reads it.
    write_step_search : callable or None
        Writes the value of a step function, of x, edges and values.
    max_case_edges : int
        From more edges on, `write_step_search` is quicker than CASE.
    max_parser_symbols : int
        About how many symbols the parser keeps; deeper expressions become values of a
        query by stages.
    quote_literal : callable
        Writes a text as a literal.
    key_clause : str
        Declares the lower edge of a table of intervals to be the primary key.
    join_template : str
        Finds the interval of a score in such a table.
    functions : dict
        Templates of operations that differ from those of other databases.
    """

    quote: Callable[[str], str] = quote_identifier
    double_type: str = "DOUBLE PRECISION"
    number_template: str = "{}"
    cast_template: str = "CAST({} AS {})"
    stored_double_type: str = ""
    materialized_keyword: str = ""
    subquery_limit: str = ""
    write_step_search: Callable[[str, list[str], list[str]], str] | None = None
    max_case_edges: int = 4
    max_parser_symbols: int = 1000
    quote_literal: Callable[[str], str] = quote_text
    key_clause: str = ""
    join_template: str = "LEFT JOIN {table} AS m ON {x} >= m.{low} AND {x} < m.{high}"
    functions: dict[str, str] = field(default_factory=dict)

    def get_template(self, name: str) -> str:
        """Return the template of an operation."""
        return self.functions.get(name) or _SQL_FUNCTION_TEMPLATES[name]

    def write_literal(self, value: float) -> str:
        """Write a number of type double."""
        text = self.number_template.format(write_double(value))
        # Two minus signs in a row would begin a comment.
        return f"({text})" if text.startswith("-") else text

    def write_column_as_double(self, name: str) -> str:
        """Write a column of scores as numbers of type double."""
        return self.cast_template.format(
            self.quote_name(name, "columns"), self.double_type
        )

    def quote_name(self, name: str, what: str) -> str:
        """Quote a name as an identifier, with any characters."""
        # Names are data from tables: control characters could hide text in a query.
        if not isinstance(name, str) or not name or not name.isprintable():
            raise invalid_input(
                expected=f"{what}: a text of printable characters",
                got=repr(name)[:80],
                hint="Pass its name",
            )
        return self.quote(name)


# The subquery uses the index of the key; a join on a range would compare it with every
# piece.
_PRIMARY_KEY_CLAUSE = " PRIMARY KEY"
_KEY_JOIN_TEMPLATE = """LEFT JOIN {table} AS m ON m.{low} =
(SELECT MAX(b.{low}) FROM {table} AS b WHERE b.{low} <= {x})"""
_SPARK_DIALECT = Dialect(
    quote=make_name_quoter("`", "`"),
    double_type="DOUBLE",
    quote_literal=quote_with_backslashes,
)

DIALECTS = {
    "ansi": Dialect(),
    "postgres": Dialect(
        number_template="{}::float8",
        materialized_keyword="MATERIALIZED ",
        key_clause=_PRIMARY_KEY_CLAUSE,
        join_template=_KEY_JOIN_TEMPLATE,
        write_step_search=write_postgres_search,
    ),
    # SQLite reads a name in double quotes as a text if no column has that name, hence
    # the backticks.
    "sqlite": Dialect(
        quote=make_name_quoter("`", "`"),
        double_type="REAL",
        cast_template="{}",
        materialized_keyword="MATERIALIZED ",
        max_parser_symbols=90,
        key_clause=_PRIMARY_KEY_CLAUSE,
        join_template=_KEY_JOIN_TEMPLATE,
        functions={"min": "MIN({}, {})", "max": "MAX({}, {})"},
    ),
    # The ASOF join to the nearest smaller number sorts the rows; a comparison of ranges
    # would visit every piece.
    "duckdb": Dialect(
        double_type="DOUBLE",
        write_step_search=write_duckdb_search,
        max_case_edges=300,
        join_template="ASOF LEFT JOIN {table} AS m ON {x} >= m.{low}",
    ),
    # A derived table with a limit is not merged. This limit is the one in the manual
    # for all rows.
    "mysql": Dialect(
        quote=make_name_quoter("`", "`"),
        double_type="DOUBLE",
        quote_literal=quote_with_backslashes,
        subquery_limit=" LIMIT 18446744073709551615",
        write_step_search=write_mysql_search,
    ),
    "bigquery": Dialect(
        quote=quote_with_escaped_backticks,
        double_type="FLOAT64",
        quote_literal=quote_with_backslashes,
    ),
    "snowflake": Dialect(
        number_template="{}::FLOAT",
        double_type="FLOAT",
        quote_literal=quote_with_backslashes,
    ),
    "tsql": Dialect(
        quote=make_name_quoter("[", "]"),
        quote_literal=lambda text: f"N{quote_text(text)}",
        double_type="FLOAT",
        functions={
            "log": "LOG({})",
            "min": "(SELECT MIN(v) FROM (VALUES ({}), ({})) AS m(v))",
            "max": "(SELECT MAX(v) FROM (VALUES ({}), ({})) AS m(v))",
        },
    ),
    # Numbers are not NULL unless their type allows it.
    "clickhouse": Dialect(
        quote=quote_with_escaped_backticks,
        double_type="Nullable(Float64)",
        stored_double_type="Float64",
        quote_literal=quote_with_backslashes,
        write_step_search=write_clickhouse_search,
        key_clause=_PRIMARY_KEY_CLAUSE,
    ),
    "spark": _SPARK_DIALECT,
    "databricks": _SPARK_DIALECT,
}
