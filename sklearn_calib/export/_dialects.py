"""How databases write numbers, names and functions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..exceptions import invalid_input
from ._languages import ARITHMETIC_TEMPLATES


def make_name_quoter(first: str, last: str) -> Callable[[str], str]:
    """Quote a name; a closing quote inside it is written twice."""
    return lambda name: f"{first}{name.replace(last, 2 * last)}{last}"


def escape_quotes(name: str) -> str:
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


def write_array_search(x: str, edges: list[str], values: list[str]) -> str:
    """Search a constant array by bisection (PostgreSQL)."""
    places, results = (
        f"'{{{','.join(table)}}}'::float8[]" for table in (edges, values)
    )
    return f"({results})[WIDTH_BUCKET({x}, {places}) + 1]"


def write_interval_search(x: str, edges: list[str], values: list[str]) -> str:
    """Search constants by bisection with INTERVAL; ELT returns text (MySQL)."""
    # INTERVAL counts from 0, but the constant -1e308 in front makes the positions start
    # at 1.
    place = f"INTERVAL({x}, -1e308, {', '.join(edges)})"
    return f"CAST(ELT({place}, {', '.join(values)}) AS DOUBLE)"


def write_transform_search(x: str, edges: list[str], values: list[str]) -> str:
    """Search the edges with roundDown, and look the edge up with transform (ClickHouse)."""
    table = f"[-1e308, {', '.join(edges)}]"
    # NULL has been handled before.
    edge = f"roundDown(assumeNotNull({x}), {table})"
    return f"transform({edge}, {table}, [{', '.join(values)}], 0e0)"


def write_bisection(x: str, edges: list[str], values: list[str]) -> str:
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
    """A database.

    `number` writes a literal of type double, `double` is that type's name, `cast` makes
    a column one, `stored` is the type's name in a table without NULLs if it differs.
    `once` means that a common table expression is computed once, and not wherever it is
    used; `fence` does the same, at its end, where a database would write it into what
    reads it. `deepest` is about how many symbols the parser keeps, if that is little:
    deeper expressions are values of a query by stages. `text` writes one. `join` finds
    the interval of a score in a table with the `key` low, and `pieces` the value of a
    step function, of x, edges and values, where from more than `few` edges on that is
    quicker than CASE.
    """

    quote: Callable[[str], str] = quote_identifier
    double: str = "DOUBLE PRECISION"
    number: str = "{}"
    cast: str = "CAST({} AS {})"
    stored: str = ""
    once: str = ""
    fence: str = ""
    pieces: Callable[[str, list[str], list[str]], str] | None = None
    few: int = 4
    deepest: int = 1000
    text: Callable[[str], str] = quote_text
    key: str = ""
    join: str = "LEFT JOIN {table} AS m ON {x} >= m.{low} AND {x} < m.{high}"
    functions: dict[str, str] = field(default_factory=dict)

    def get_template(self, name: str) -> str:
        """Return the template of an operation."""
        return self.functions.get(name) or _SQL_FUNCTION_TEMPLATES[name]

    def write_literal(self, value: float) -> str:
        """Write a number of type double."""
        text = self.number.format(write_double(value))
        # Two minus signs in a row would begin a comment.
        return f"({text})" if text.startswith("-") else text

    def write_column(self, name: str) -> str:
        """Write a column of scores as numbers of type double."""
        return self.cast.format(self.quote_name(name, "columns"), self.double)

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
    quote=make_name_quoter("`", "`"), double="DOUBLE", text=quote_with_backslashes
)

DIALECTS = {
    "ansi": Dialect(),
    "postgres": Dialect(
        number="{}::float8",
        once="MATERIALIZED ",
        key=_PRIMARY_KEY_CLAUSE,
        join=_KEY_JOIN_TEMPLATE,
        pieces=write_array_search,
    ),
    # SQLite reads a name in double quotes as a text if no column has that name, hence
    # the backticks.
    "sqlite": Dialect(
        quote=make_name_quoter("`", "`"),
        double="REAL",
        cast="{}",
        once="MATERIALIZED ",
        deepest=90,
        key=_PRIMARY_KEY_CLAUSE,
        join=_KEY_JOIN_TEMPLATE,
        functions={"min": "MIN({}, {})", "max": "MAX({}, {})"},
    ),
    # The ASOF join to the nearest smaller number sorts the rows; a comparison of ranges
    # would visit every piece.
    "duckdb": Dialect(
        double="DOUBLE",
        pieces=write_bisection,
        few=300,
        join="ASOF LEFT JOIN {table} AS m ON {x} >= m.{low}",
    ),
    # A derived table with a limit is not merged. This limit is the one in the manual
    # for all rows.
    "mysql": Dialect(
        quote=make_name_quoter("`", "`"),
        double="DOUBLE",
        text=quote_with_backslashes,
        fence=" LIMIT 18446744073709551615",
        pieces=write_interval_search,
    ),
    "bigquery": Dialect(
        quote=escape_quotes, double="FLOAT64", text=quote_with_backslashes
    ),
    "snowflake": Dialect(
        number="{}::FLOAT", double="FLOAT", text=quote_with_backslashes
    ),
    "tsql": Dialect(
        quote=make_name_quoter("[", "]"),
        text=lambda text: f"N{quote_text(text)}",
        double="FLOAT",
        functions={
            "log": "LOG({})",
            "min": "(SELECT MIN(v) FROM (VALUES ({}), ({})) AS m(v))",
            "max": "(SELECT MAX(v) FROM (VALUES ({}), ({})) AS m(v))",
        },
    ),
    # Numbers are not NULL unless their type allows it.
    "clickhouse": Dialect(
        quote=escape_quotes,
        double="Nullable(Float64)",
        stored="Float64",
        text=quote_with_backslashes,
        pieces=write_transform_search,
        key=_PRIMARY_KEY_CLAUSE,
    ),
    "spark": _SPARK_DIALECT,
    "databricks": _SPARK_DIALECT,
}
