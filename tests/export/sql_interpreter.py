"""A small interpreter of the SQL that is exported, for databases that tests cannot start.

It reads the text as each database would: its quotes, its names of functions and of the
type of doubles, what a literal without a type is, and what the least of a number and
NULL is. These facts are from the manuals and stand here a second time on purpose. Where
a database may raise an error (a division by zero, a logarithm of 0, an overflow), it
raises `SqlError`; branches of a CASE are evaluated for their own rows only. NULL is
nan.
"""

import itertools
import re
from dataclasses import dataclass, field

import numpy as np

_PLAIN = ("ABS", "FLOOR", "EXP", "LN", "COS", "ACOS")


class SqlError(Exception):
    """What a database would say."""


@dataclass(frozen=True)
class Manual:
    """What the manual of a database states."""

    name: str = r'"(?:[^"]|"")*"'  # a quoted name
    doubles: tuple = ("DOUBLE PRECISION",)
    functions: tuple = (*_PLAIN, "LEAST", "GREATEST")
    typed: str = ""  # without this after it a literal is an exact decimal
    null_is_ignored: bool = False  # by LEAST and GREATEST, or by MIN and MAX of rows
    underflow_is_an_error: bool = False
    arrays: bool = False  # and WIDTH_BUCKET
    lists: bool = False  # [1, 2]
    limits: bool = False  # of stages, so that they are not merged
    values: bool = False  # MIN and MAX of a list are those of a table of values
    rename: dict = field(default_factory=dict)


MANUALS = {
    "ansi": Manual(),
    "postgres": Manual(
        doubles=("DOUBLE PRECISION", "float8"),
        typed="float8",
        arrays=True,
        null_is_ignored=True,
        underflow_is_an_error=True,
    ),
    "sqlite": Manual(
        name=r"`(?:[^`]|``)*`",
        doubles=("REAL",),
        functions=(*_PLAIN, "MIN", "MAX"),
        rename={"MIN": "LEAST", "MAX": "GREATEST"},
    ),
    "mysql": Manual(
        name=r"`(?:[^`]|``)*`",
        doubles=("DOUBLE",),
        functions=(*_PLAIN, "LEAST", "GREATEST", "INTERVAL", "ELT"),
        limits=True,
    ),
    "clickhouse": Manual(
        name=r"`(?:[^`\\]|\\.)*`",
        doubles=("Nullable ( Float64 )", "Float64"),
        functions=(
            *_PLAIN,
            "LEAST",
            "GREATEST",
            "assumeNotNull",
            "roundDown",
            "transform",
        ),
        lists=True,
    ),
    "spark": Manual(name=r"`(?:[^`]|``)*`", doubles=("DOUBLE",), null_is_ignored=True),
    "databricks": Manual(
        name=r"`(?:[^`]|``)*`", doubles=("DOUBLE",), null_is_ignored=True
    ),
    "bigquery": Manual(name=r"`(?:[^`\\]|\\.)*`", doubles=("FLOAT64",)),
    "snowflake": Manual(doubles=("FLOAT",), typed="FLOAT"),
    "tsql": Manual(
        name=r"\[(?:[^\]]|\]\])*\]",
        doubles=("FLOAT",),  # without digits those of a double
        functions=("ABS", "FLOOR", "EXP", "LOG", "COS", "ACOS"),
        rename={"LOG": "LN"},  # LOG of one argument is the natural one
        null_is_ignored=True,
        values=True,
    ),
}

# -- reading ----------------------------------------------------------------------------------

_BINDS = {"AND": 1, "<": 2, "<=": 2, ">=": 2, "+": 3, "-": 3, "*": 4, "/": 4}


class Reader:
    """Recursive descent over the tokens of one statement."""

    def __init__(self, text, dialect):
        self.manual = MANUALS[dialect]
        token = rf"({self.manual.name})|(\d+\.?\d*(?:e[+-]?\d+)?)|(\w+)|(<=|>=|::|[-+*/<(),.;])"
        if self.manual.arrays or self.manual.lists:
            token += r"|('\{[^']*\}'|\[|\])"
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        self.tokens, end = [], 0
        for match in re.finditer(rf"\s*(?:{token})", text):
            if match.start() != end:
                break
            kind = ("name", "number", "word", "sign", "sign")[match.lastindex - 1]
            self.tokens.append((kind, match[match.lastindex]))
            end = match.end()
        if text[end:].strip():
            raise SqlError(f"cannot be read: {text[end : end + 40]!r}")
        self.tokens.append(("end", ""))
        self.at = 0

    def peek(self, *texts):
        """Whether these words or signs come next."""
        ahead = self.tokens[self.at : self.at + len(texts)]
        return [
            text for kind, text in ahead if kind in ("word", "sign", "end")
        ] == list(texts)

    def skip(self, *texts):
        """Go past these words, if they come next."""
        found = self.peek(*texts)
        self.at += len(texts) * found
        return found

    def expect(self, *texts):
        if not self.skip(*texts):
            got = " ".join(text for _, text in self.tokens[self.at : self.at + 6])
            raise SqlError(f"expected {' '.join(texts)}, got {got}")

    def take(self, kind):
        found, text = self.tokens[self.at]
        if found != kind:
            raise SqlError(f"expected a {kind}, got {text!r}")
        self.at += 1
        return text

    def listed(self, one):
        found = [one()]
        while self.skip(","):
            found.append(one())
        return found

    def name(self):
        """A name of a column or table; a part of a schema counts for the whole."""
        text = self.take("word" if self.tokens[self.at][0] == "word" else "name")
        while self.skip("."):
            text = self.take("name")
        return text

    # -- statements

    def query(self):
        stages = []
        if self.skip("WITH"):
            stages = self.listed(self.stage)
        return stages, self.select()

    def stage(self):
        name = self.take("name")
        self.expect("AS")
        self.skip("MATERIALIZED")
        self.expect("(")
        select = self.select()
        self.expect(")")
        return name, select

    def select(self):
        self.expect("SELECT")
        items = self.listed(self.item)
        self.expect("FROM")
        source = self.name()
        if self.manual.limits and self.skip("LIMIT"):
            self.take("number")
        if not self.skip("AS"):
            return items, source, None
        self.take("word")
        self.expect("LEFT", "JOIN")
        table = self.name()
        self.expect("AS", "m", "ON")
        return items, source, (table, self.expression())

    def item(self):
        one = self.expression()
        name = self.take("name") if self.skip("AS") else None
        return one, name or one[1]

    def inserted(self):
        """The rows of INSERT INTO name (names) VALUES ..."""
        self.expect("INSERT", "INTO")
        self.name()
        fields = self.parenthesised(self.name)
        self.expect("VALUES")
        return fields, self.listed(lambda: self.parenthesised(self.expression))

    def created(self):
        """The fields of CREATE TABLE name (name type NOT NULL, ...)."""
        self.expect("CREATE", "TABLE")
        self.name()
        return self.parenthesised(self.field)

    def field(self):
        name = self.take("name")
        self.double()
        self.expect("NOT", "NULL")
        self.skip("PRIMARY", "KEY")
        return name

    # -- expressions

    def parenthesised(self, one):
        self.expect("(")
        found = self.listed(one)
        self.expect(")")
        return found

    def expression(self, binds=0):
        left = self.unary()
        while True:
            sign = self.tokens[self.at][1]
            if (
                self.tokens[self.at][0] not in ("word", "sign")
                or _BINDS.get(sign, 0) <= binds
            ):
                return left
            self.at += 1
            left = (sign, left, self.expression(_BINDS[sign]))

    def unary(self):
        if self.skip("-"):
            return ("neg", self.unary())
        return self.primary()

    def primary(self):
        kind, text = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            typed = self.manual.typed
            if typed and self.skip("::", typed):
                return ("number", float(text))
            # decimals are exact
            if "e" not in text or (typed and not float(text).is_integer()):
                raise SqlError(f"{text} is an exact decimal")
            return ("number", float(text))
        if self.peek("(", "SELECT"):
            return self.of_values()
        if self.manual.arrays and self.tokens[self.at + 1][1].startswith("'"):
            return self.piece()
        if self.skip("("):
            inside = self.expression()
            self.expect(")")
            return inside
        if self.manual.lists and self.skip("["):
            found = self.listed(self.expression)
            self.expect("]")
            return ("list", np.array([_constant(one) for one in found]))
        if self.skip("CASE"):
            return self.case()
        if self.skip("CAST"):
            return self.cast()
        if kind == "word" and self.tokens[self.at + 1][1] == "(":
            return self.call()
        return ("column", self.name())

    def piece(self):
        """('{values}'::float8[])[WIDTH_BUCKET(x, '{edges}'::float8[]) + 1]."""
        self.expect("(")
        values = self.array()
        self.expect(")", "[", "WIDTH_BUCKET", "(")
        x = self.expression()
        self.expect(",")
        edges = self.array()
        self.expect(")", "+")
        if self.take("number") != "1":
            raise SqlError("arrays begin with 1")
        self.expect("]")
        return ("piece", x, edges, values)

    def array(self):
        text = self.take("sign")
        self.expect("::", "float8", "[", "]")
        return np.array(text[2:-2].split(","), dtype=float)

    def case(self):
        branches, otherwise = [], None
        while self.skip("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self.expression()))
        if self.skip("ELSE"):
            otherwise = self.expression()
        self.expect("END")
        return ("case", branches, otherwise)

    def cast(self):
        self.expect("(")
        inside = self.expression()
        self.expect("AS")
        self.double()
        self.expect(")")
        return inside

    def double(self):
        """The name of the type of doubles."""
        for name in self.manual.doubles:
            if self.skip(*name.split()):
                return
        raise SqlError(f"{self.tokens[self.at][1]} is no type of doubles")

    def call(self):
        name = self.take("word")
        if name not in self.manual.functions:
            raise SqlError(f"there is no function {name}")
        return (
            self.manual.rename.get(name, name),
            *self.parenthesised(self.expression),
        )

    def of_values(self):
        """(SELECT MIN(v) FROM (VALUES (x), (y)) AS m(v))."""
        if not self.manual.values:
            raise SqlError("a table of values in an expression")
        self.expect("(", "SELECT")
        name = {"MIN": "LEAST", "MAX": "GREATEST"}[self.take("word")]
        self.expect("(", "v", ")", "FROM", "(", "VALUES")
        values = self.listed(lambda: self.parenthesised(self.expression))
        self.expect(")", "AS", "m", "(", "v", ")", ")")
        return (name, *(one for (one,) in values))


# -- evaluating -------------------------------------------------------------------------------


def _and(a, b):
    known = np.where(np.isnan(a) | np.isnan(b), np.nan, 1.0)
    return np.where((a == 0) | (b == 0), 0.0, known)


def _compared(compare):
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, compare(a, b))


def _interval(x, *edges):
    """How many of the edges, which must rise, are reached; -1 for NULL."""
    if not all((one <= other).all() for one, other in itertools.pairwise(edges)):
        raise SqlError("INTERVAL: the edges do not rise")
    return np.where(np.isnan(x), -1.0, sum((x >= edge).astype(float) for edge in edges))


def _elt(place, *values):
    """The value at a place from 1 on, elsewhere NULL."""
    values = np.array([np.full(len(place), np.nan), *values])
    inside = np.where((place >= 1) & (place < len(values)), place, 0).astype(int)
    return values[inside, np.arange(len(place))]


def _round_down(x, table):
    """The largest entry of a rising list that is not above x; the first for what is below all."""
    if not (np.diff(table) > 0).all() or np.isnan(x).any():
        raise SqlError("roundDown: the list does not rise, or a NULL")
    return table[np.maximum(np.searchsorted(table, x, side="right") - 1, 0)]


def _transform(x, before, after, otherwise):
    place = np.minimum(np.searchsorted(before, x), len(before) - 1)
    return np.where(before[place] == x, after[place], otherwise)


_OPERATIONS = {
    "assumeNotNull": lambda x: np.where(np.isnan(x), 0.0, x),
    "roundDown": _round_down,
    "transform": _transform,
    "INTERVAL": _interval,
    "ELT": _elt,
    "AND": _and,
    "<": _compared(np.less),
    "<=": _compared(np.less_equal),
    ">=": _compared(np.greater_equal),
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "neg": np.negative,
    "ABS": np.abs,
    "FLOOR": np.floor,
    "EXP": np.exp,
    "LN": np.log,
    "COS": np.cos,
    "ACOS": np.arccos,
}


class Evaluator:
    def __init__(self, manual, table):
        self.manual, self.table = manual, table
        least, most = (
            (np.fmin, np.fmax) if manual.null_is_ignored else (np.minimum, np.maximum)
        )
        self.operations = _OPERATIONS | {"LEAST": least, "GREATEST": most}

    def value(self, tree, rows):
        """An expression for some rows of the table."""
        kind = tree[0]
        if kind == "number":
            return np.full(len(rows), tree[1])
        if kind == "list":
            return tree[1]
        if kind == "column":
            if tree[1] not in self.table:
                raise SqlError(f"there is no column {tree[1]}")
            return self.table[tree[1]][rows]
        if kind == "case":
            return self._case(*tree[1:], rows)
        if kind == "piece":
            x, edges, values = self.value(tree[1], rows), *tree[2:]
            return np.where(
                np.isnan(x), np.nan, values[np.searchsorted(edges, x, side="right")]
            )
        parts = [self.value(part, rows) for part in tree[1:]]
        with np.errstate(all="ignore"):
            found = self.operations[kind](*parts)
        self._check(kind, parts, found)
        return found

    def _case(self, branches, otherwise, rows):
        found = np.full(len(rows), np.nan)
        left = np.arange(len(rows))
        for condition, result in branches:
            taken = self.value(condition, rows[left]) == 1
            found[left[taken]] = self.value(result, rows[left[taken]])
            left = left[~taken]
        if otherwise is not None:
            found[left] = self.value(otherwise, rows[left])
        return found

    def _check(self, kind, parts, found):
        if kind in (
            "LEAST",
            "GREATEST",
            "AND",
            "ELT",
            "assumeNotNull",
            "roundDown",
            "transform",
        ):
            return
        null = np.any([np.isnan(part) for part in parts], axis=0)
        infinite = np.any([np.isinf(part) for part in parts], axis=0)
        if (~np.isfinite(found) & ~null & ~infinite).any():
            raise SqlError(f"{kind}: a division by zero, an overflow or no such number")
        if self.manual.underflow_is_an_error and kind in ("*", "/", "EXP"):
            zero = [part == 0 for part in parts[: 1 + (kind == "*")]]
            if kind == "EXP":
                zero = [np.isneginf(parts[0])]
            if ((found == 0) & ~np.any(zero, axis=0) & ~infinite).any():
                raise SqlError(f"{kind}: underflow")


def evaluated(dialect, sql, table):
    """The columns of a query, or of statements that end with one; `table` has arrays by name."""
    *first, last = [part for part in sql.split(";\n") if part.strip()]
    joined = _table_of(first, dialect) if first else None
    reader = Reader(last, dialect)
    stages, select = reader.query()
    reader.expect("")
    tables = {None: table}
    for name, stage in stages:
        tables[name] = _selected(stage, tables.get(stage[1], table), joined, dialect)
    return _selected(select, tables.get(select[1], table), joined, dialect)


def _selected(select, table, joined, dialect):
    items, _, join = select
    if join is not None:
        table = _left_join(table, joined, join[1], dialect)
    count = len(next(iter(table.values())))
    evaluator = Evaluator(MANUALS[dialect], table)
    return {name: evaluator.value(one, np.arange(count)) for one, name in items}


def _table_of(statements, dialect):
    fields = Reader(statements[0], dialect).created()
    rows = []
    for statement in statements[1:]:
        names, more = Reader(statement, dialect).inserted()
        if names != fields:
            raise SqlError(f"no columns {names}")
        rows += [[_constant(one) for one in row] for row in more]
    return dict(zip(fields, np.array(rows).T, strict=True))


def _constant(tree):
    return -_constant(tree[1]) if tree[0] == "neg" else tree[1]


def _left_join(table, joined, condition, dialect):
    """Each row beside the one of `joined` that it meets, or NULLs."""
    n, m = len(next(iter(table.values()))), len(next(iter(joined.values())))
    left = {name: np.repeat(column, m) for name, column in table.items()}
    pairs = left | {name: np.tile(column, n) for name, column in joined.items()}
    holds = Evaluator(MANUALS[dialect], pairs).value(condition, np.arange(n * m)) == 1
    holds = holds.reshape(n, m)
    if holds.sum(axis=1).max() > 1:
        raise SqlError("a row meets several pieces")
    place, met = holds.argmax(axis=1), holds.any(axis=1)
    return table | {
        k: np.where(met, column[place], np.nan) for k, column in joined.items()
    }
