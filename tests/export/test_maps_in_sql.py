"""Maps in databases."""

import re
import sqlite3
from functools import cache

import duckdb
import numpy as np
import pytest
from cases import run_every_case
from error_fields import parse_error_fields, raises_invalid_input
from export_cases import IN_FULL, QUICK, TABULATED, fitted, logits, probabilities
from other_languages import (
    DATABASES,
    as_expression,
    at_last_digits,
    in_sql,
    run_statements,
    sqlite,
    sqlite_has_functions,
)
from test_code import BAD, HOSTILE, UNCOMMON, document, head_in, rows_for

from sklearn_calib._simplex_array import convert_log_odds
from sklearn_calib.export import _sql as sql_text, to_dict, to_sql
from sklearn_calib.export._dialects import DIALECTS
from sklearn_calib.export._document import to_document
from sklearn_calib.recalibrators import HistogramBinning, Identity, VennAbers

BOUND = 1e-9
BACKENDS = [
    pytest.param(
        "sqlite",
        marks=pytest.mark.skipif(
            not sqlite_has_functions(), reason="SQLite without mathematical functions"
        ),
    ),
    "duckdb",
]
# these are so deeply nested that for SQLite's parser they become values of a query by
# stages
DEEP = ("auto", "pipeline", "default")


@cache
def maps(name, k, n, kind):
    # tens of thousands of pieces at 1e-6
    tables = {"tabulate": 1e-4} if name in TABULATED else {}
    return to_document(fitted(name, k, n), input=kind, **tables)


def scores_of(k, kind, rows):
    return probabilities(k, rows) if kind == "proba" else logits(k, rows)


def differs(map_, scores, got):
    return len(at_last_digits(map_, scores, got, BOUND))


def check_expression(dialect, name, n, rows, kind):
    map_, scores = maps(name, 2, n, kind), scores_of(2, kind, rows)
    column = scores[:, 1] if kind == "proba" else scores[:, 1] - scores[:, 0]
    pairs = np.column_stack([1 - column if kind == "proba" else 0 * column, column])
    got = as_expression(dialect, map_, column)
    assert differs(map_, pairs, np.column_stack([1 - got, got])) == 0, name


def check_query(dialect, name, k, n, rows, kind):
    map_, scores = maps(name, k, n, kind), scores_of(k, kind, rows)
    (got,) = in_sql(dialect, [(map_, scores)])
    assert differs(map_, scores, got) == 0, name


@pytest.mark.skipif(
    not sqlite_has_functions(), reason="SQLite without mathematical functions"
)
@pytest.mark.parametrize("name", DEEP)
def test_deep_expressions(name):
    for kind in ("proba", "logits"):
        check_expression("sqlite", name, 300, 100, kind)
    sql = to_sql(maps(name, 2, 300, "proba"), "p", dialect="sqlite", into=None)
    assert sql.split("*/ ", 1)[1].startswith("(WITH ")
    # and NULL, beside a column that has the name of a stage's
    with sqlite() as database:
        database.execute("CREATE TABLE scores (p REAL, step_0_0 REAL)")
        database.execute("INSERT INTO scores VALUES (NULL, .5), (.3, NULL), (.7, 1)")
        found = database.execute(f"SELECT {sql} FROM scores WHERE {sql} > 0").fetchall()
        assert len(found) == 2
        assert database.execute(f"SELECT {sql} FROM scores").fetchone() == (None,)


@pytest.mark.parametrize("dialect", BACKENDS)
def test_expressions(dialect):
    for name in QUICK[2]:
        check_expression(dialect, name, 300, 100, "proba")
    for name in ("isotonic", "venn_abers"):
        check_expression(dialect, name, 300, 100, "logits")


@pytest.mark.parametrize("dialect", BACKENDS)
def test_queries(dialect):
    for name in QUICK[3]:
        check_query(dialect, name, 3, 300, 100, "proba")
    check_query(dialect, "matrix", 3, 300, 100, "logits")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "k"),
    [
        case for case in IN_FULL if not case[0].startswith("adaptive")
    ],  # tables of half a minute
)
@pytest.mark.parametrize("dialect", BACKENDS)
def test_all_methods(dialect, name, k):
    n = 300 if name in TABULATED else 1000
    for kind in ("proba", "logits"):
        if k == 2:
            check_expression(dialect, name, n, 4000, kind)
        check_query(dialect, name, k, n, 4000, kind)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", BACKENDS)
def test_uncommon_nodes(dialect):
    for tree, k in UNCOMMON:
        if k < 20:
            map_, rows = document(tree, k), rows_for(tree, k)
            assert differs(map_, rows, in_sql(dialect, [(map_, rows)])[0]) == 0, tree


@pytest.mark.parametrize("dialect", BACKENDS)
def test_steps_are_exact(dialect):
    """Ties, zeros and the smallest numbers land on the step that Python takes."""
    p, y = probabilities(2, 200)[:, 1], np.resize([0, 1, 1], 210)
    method = VennAbers().fit(p[:210], y)
    near = np.clip(
        np.concatenate([p, p + 1e-17, p * (1 + 2e-12), p * (1 - 1e-11)]), 0, 1
    )
    got = as_expression(dialect, to_dict(method), near)
    assert np.array_equal(got, method.predict_proba(near)[:, 1])
    edges = HistogramBinning(5, strategy="uniform").fit(
        np.linspace(0, 1, 11), np.arange(11) % 2
    )
    near = np.concatenate(
        [np.linspace(0, 1, 11), np.nextafter(np.linspace(0.1, 0.9, 9), 1)]
    )
    assert np.array_equal(
        as_expression(dialect, to_dict(edges), near), edges.predict_proba(near)[:, 1]
    )


def test_log_odds_of_steps_keep_their_digits():
    method = VennAbers().fit(
        convert_log_odds(np.array([-900.0, -800, 30, 900])), [0, 1, 0, 1]
    )
    x = np.array([-1e5, -900, -850, -800, 29, 30, 31, 900, 901])
    got = as_expression("duckdb", to_dict(method, input="logits"), x)
    assert np.array_equal(got, method.predict_proba(convert_log_odds(x))[:, 1])


# -- names --------------------------------------------------------------------------------------

NAMES = [
    'a"b',
    "a`b",
    "a]b",
    "a'b; DROP TABLE scores; --",
    "ä b",
    "a\\b",
    "select",
    "/*",
    "%s ?",
]


@pytest.mark.parametrize("dialect", BACKENDS)
def test_names_are_data(dialect):
    method, p = fitted("platt", 2), probabilities(2, 20)
    run = DATABASES[dialect]
    quote = DIALECTS[dialect].quote
    for name in NAMES:
        sql = to_sql(method, name, dialect=dialect, into=name + "!")
        query = f"SELECT id, {sql} FROM {quote('scores')}"
        create = {"sqlite": "`", "duckdb": '"'}[dialect]
        table = f"(SELECT id, {create}x{create} AS {quote(name)} FROM scores) AS t"
        got = run(
            query.replace(f"FROM {quote('scores')}", f"FROM {table}"), p[:, 1:], ["x"]
        )
        assert np.abs(got[:, 0] - method.predict_proba(p[:, 1])[:, 1]).max() <= BOUND


@pytest.mark.parametrize("dialect", BACKENDS)
def test_names_of_queries_are_data(dialect):
    quote, p = DIALECTS[dialect].quote, probabilities(3, 20)
    method = fitted("isotonic", 3)
    columns, key, source = NAMES[:3], NAMES[3], 'x"`] y'
    fields = ", ".join(f"{quote(name)} DOUBLE" for name in [key, *columns])
    rows = [(float(i), *row) for i, row in enumerate(p.tolist())]
    into = [f"{name} new" for name in columns]
    sql = to_sql(method, columns, dialect=dialect, source=source, keep=[key], into=into)
    with sqlite() if dialect == "sqlite" else duckdb.connect() as database:
        database.execute(f"CREATE TABLE {quote(source)} ({fields})")
        database.executemany(f"INSERT INTO {quote(source)} VALUES (?, ?, ?, ?)", rows)
        done = database.execute(sql)
        assert [field[0] for field in done.description] == [key, *into]
        got = np.array(sorted(done.fetchall()))[:, 1:]
    assert np.abs(got - method.predict_proba(p)).max() <= BOUND


@run_every_case(
    ("dialect", "name", "quoted"),
    [
        ("ansi", 'a"b', '"a""b"'),
        ("postgres", 'a"b', '"a""b"'),
        ("duckdb", 'a"b', '"a""b"'),
        ("snowflake", 'a"b', '"a""b"'),
        ("sqlite", "a`b", "`a``b`"),
        ("mysql", "a`b", "`a``b`"),
        ("tsql", "a]b[", "[a]]b[]"),
        ("spark", "a`b", "`a``b`"),
        ("databricks", "a`b", "`a``b`"),
        ("clickhouse", "a\\`b", "`a\\\\\\`b`"),
        ("bigquery", "a\\`b", "`a\\\\\\`b`"),
    ],
)
def test_quoting(dialect, name, quoted):
    method = fitted("platt", 2)
    assert f"{quoted}" in to_sql(method, name, dialect=dialect)
    assert to_sql(method, "p", dialect=dialect, into=name).endswith(f" AS {quoted}")
    assert f"FROM {quoted}.{quoted}" in to_sql(
        method, ["p"], dialect=dialect, source=(name, name)
    )


def test_a_wrong_column_is_an_error():
    """SQLite takes an unknown name in double quotes for a text."""
    sql = to_sql(fitted("platt", 2), "q", dialect="sqlite")
    with (
        sqlite() as database,
        pytest.raises(sqlite3.OperationalError, match="such column: q"),
    ):
        database.execute(f"SELECT {sql} FROM (SELECT 0.5 AS p)")


def test_labels_are_data():
    method = Identity().fit(probabilities(4, 50)[:20], np.resize(HOSTILE, 20))
    sql = to_sql(method, list("abcd"), dialect="duckdb")
    head, rest = sql.split("\n", 1)
    assert (head[:4], head[-4:]) == ("/* {", "} */")
    assert not re.search(r"[/*;?%'`$]|:\S", head[2:-2])
    assert head_in("\n" + head)["classes"] == sorted(HOSTILE)
    assert "WITH" in rest and rest.isascii()


# -- rows that are not scores -------------------------------------------------------------------


@pytest.mark.parametrize("dialect", BACKENDS)
def test_null_gives_null(dialect):
    for name in ("platt", "isotonic", "venn_abers"):
        got = as_expression(
            dialect, to_dict(fitted(name, 2)), [np.nan, -1e-9, 1.1, 0.0, 1.0]
        )
        assert np.isnan(got).tolist() == [True, True, True, False, False]
    both = np.array(BAD)
    both[~np.isfinite(both)] = np.nan  # SQLite has no infinity of its own
    pair = (to_dict(fitted("isotonic", 2)), np.vstack([both, [[0.5, 0.5 + 5e-7]]]))
    assert np.isnan(in_sql(dialect, [pair])[0]).tolist() == [[True, True]] * 6 + [
        [False, False]
    ]
    wild = [np.nan, 1e200, -np.inf, 1e3]
    got = as_expression(dialect, to_dict(fitted("isotonic", 2), input="logits"), wild)
    assert np.isnan(got).tolist() == [True, True, True, False]


def test_nan_gives_null():
    sql = to_sql(fitted("platt", 2), "p", dialect="duckdb")
    query = f"SELECT {sql} FROM (SELECT UNNEST(['NaN'::DOUBLE, NULL, 0.5]) AS p)"
    assert [row[0] is None for row in duckdb.sql(query).fetchall()] == [
        True,
        True,
        False,
    ]


def test_text_columns_give_null_in_sqlite():
    sql = to_sql(fitted("platt.proba", 2), "p", dialect="sqlite")
    with sqlite() as database:
        assert database.execute(f"SELECT {sql} FROM (SELECT 'x' AS p)").fetchone() == (
            None,
        )


# -- forms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", BACKENDS)
@pytest.mark.parametrize(
    "name", ["venn_abers", "isotonic", "spline", "histogram_binning"]
)
def test_tables(dialect, name):
    method, p = fitted(name, 2), probabilities(2, 100)[:, 1:]
    sql = to_sql(
        method, "p", dialect=dialect, into="table", table=("main", "steps"), keep=["id"]
    )
    assert [s.split()[0] for s in sql.split(";\n")[:2]] == ["/*", "INSERT"]
    got = DATABASES[dialect](sql, np.vstack([p, [[np.nan]]]), ["p"])[:, 0]
    assert np.isnan(got[-1])
    assert np.abs(got[:-1] - method.predict_proba(p)[:, 1]).max() <= BOUND


def test_tables_are_inserted_in_parts():
    p = np.linspace(0.001, 0.999, 1200)
    sql = to_sql(
        VennAbers().fit(p, np.arange(1200) % 3 > 0), "p", dialect="sqlite", into="table"
    )
    inserted = [
        part.count("\n(") for part in sql.split(";\n") if part.startswith("INSERT")
    ]
    assert len(inserted) > 1 and max(inserted) == 500
    with sqlite() as database:
        database.execute("CREATE TABLE scores (p REAL)")
        run_statements(database, sql)
        assert database.execute("SELECT COUNT(*) FROM calibration").fetchone()[
            0
        ] == sum(inserted)


def test_trees_are_shallow():
    p = np.linspace(0.001, 0.999, 3000)
    sql = to_sql(VennAbers().fit(p, np.random.default_rng(0).random(3000) < p), "p")
    depth = deepest = 0
    for word in re.findall(r"\bCASE\b|\bEND\b", sql):
        depth += 1 if word == "CASE" else -1
        deepest = max(deepest, depth)
    assert sql.count("WHEN") > 300 and deepest <= 2 + np.log(
        sql.count("WHEN") + 1
    ) / np.log(4)


def test_literals_are_doubles():
    """A number without exponent is a decimal, with other rounding, for most databases."""
    for dialect in DIALECTS:
        sql = to_sql(fitted("isotonic", 2), "p", dialect=dialect).split("*/")[1]
        # arrays of doubles
        sql = re.sub(r"'\{[^']*\}'::float8\[\]\)?( \+ 1)?", "", sql)
        # places
        sql = re.sub(r"0 AS i|\[i \+ \d+\]|THEN \d+ ELSE 0 END|SELECT i \+", "", sql)
        numbers = re.findall(r"(?<![\w.])\d[\d.]*(?:e[+-]?\d+)?", sql)
        assert numbers and all("e" in text for text in numbers), dialect


def test_into():
    method = fitted("beta", 2)
    assert to_sql(method, into=None).endswith("END")
    assert to_sql(method).endswith('END AS "calibrated"')
    query = to_sql(method, ["a", "b"], dialect="mysql")
    assert re.findall(r"AS (`calibrated\w*`)", query) == [
        "`calibrated_0`",
        "`calibrated_1`",
    ]
    assert 'AS "calibrated"' in to_sql(method, ["p"])


def test_names_of_stages_give_way():
    query = to_sql(fitted("isotonic", 2), ["p"], source="step_0", keep=["STEP_1_0"])
    assert 'FROM "step_0")' in query and '"step__0" AS (' in query


@run_every_case(
    ("name", "k", "kwargs", "words"),
    [
        (
            "platt",
            2,
            {"dialect": "oracle"},
            "a dialect among ansi, .*databricks, got 'oracle'",
        ),
        ("platt", 3, {}, "two classes for a single column, got 3"),
        ("platt", 3, {"columns": ["a", "b"]}, "3 columns, one for each class, got 2"),
        ("platt", 2, {"columns": ["a", "A"]}, "columns: different texts"),
        (
            "platt",
            2,
            {"columns": ""},
            "columns: a text of printable characters, got ''",
        ),
        ("platt", 2, {"columns": "a\0b"}, "columns: a text of printable characters"),
        ("platt", 2, {"columns": ["a", 3]}, "columns: different texts"),
        ("platt", 2, {"into": ["a"]}, "one name into which the result goes"),
        (
            "platt",
            2,
            {"columns": ["a", "b"], "into": None},
            "into: a text, or 2 names, got None",
        ),
        (
            "platt",
            2,
            {"columns": ["p"], "keep": ["Calibrated"]},
            "names of the results and of keep: different",
        ),
        (
            "platt",
            2,
            {"into": "table"},
            "a map with one table that is searched by the score",
        ),
    ],
)
def test_refusals(name, k, kwargs, words):
    with raises_invalid_input(ValueError, **parse_error_fields(words)):
        to_sql(fitted(name, k), **kwargs)


def test_long_expressions_are_refused(monkeypatch):
    monkeypatch.setattr(sql_text, "MAX_EXPRESSION_CHARACTERS", 5000)
    with raises_invalid_input(
        ValueError, expected=".*at most 5,000 characters", hint=".*into='table'"
    ):
        to_sql(fitted("venn_abers", 2))
