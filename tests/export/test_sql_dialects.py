"""Maps in the SQL of every database: DuckDB runs, all others are interpreted."""

import numpy as np
import pytest
from cases import run_every_case
from export_cases import IN_FULL, QUICK, TABULATED, fitted, logits, probabilities
from other_languages import as_expression, at_last_digits, in_sql
from sql_interpreter import MANUALS, SqlError, evaluated
from test_code import UNCOMMON, document, rows_for
from test_maps_in_sql import BOUND, maps

from sklearn_calib.export import to_dict, to_sql
from sklearn_calib.export._dialects import DIALECTS
from sklearn_calib.recalibrators import HistogramBinning, Identity, VennAbers


def test_every_database_has_its_manual():
    assert set(DIALECTS) - set(MANUALS) == {"duckdb"}


def quoted(dialect, name):
    return DIALECTS[dialect].quote(name)


def expression(dialect, map_, column):
    if dialect == "duckdb":
        return as_expression(dialect, map_, column)
    sql = f"SELECT {to_sql(map_, 'p', dialect=dialect, into='q')} FROM t"
    table = {quoted(dialect, "p"): np.asarray(column, dtype=float)}
    return evaluated(dialect, sql, table)[quoted(dialect, "q")]


def query(dialect, map_, scores):
    if dialect == "duckdb":
        return in_sql(dialect, [(map_, scores)])[0]
    names = [f"score {i}" for i in range(scores.shape[1])]
    into = [f"result {i}" for i in range(scores.shape[1])]
    sql = to_sql(map_, names, dialect=dialect, source="rows", keep=["id"], into=into)
    table = {
        quoted(dialect, name): column
        for name, column in zip(names, scores.T, strict=True)
    }
    table[quoted(dialect, "id")] = np.arange(len(scores))
    found = evaluated(dialect, sql, table)
    assert np.array_equal(found.pop(quoted(dialect, "id")), np.arange(len(scores)))
    assert list(found) == [quoted(dialect, name) for name in into]
    return np.column_stack(list(found.values()))


def check(dialect, name, k, n, rows, kind):
    map_ = maps(name, k, n, kind)
    scores = probabilities(k, rows) if kind == "proba" else logits(k, rows)
    assert (
        len(at_last_digits(map_, scores, query(dialect, map_, scores), BOUND)) == 0
    ), name
    if k == 2 and (dialect != "sqlite" or "(WITH" not in to_sql(map_, dialect=dialect)):
        column = scores[:, 1] if kind == "proba" else scores[:, 1] - scores[:, 0]
        pairs = np.column_stack([1 - column if kind == "proba" else 0 * column, column])
        got = expression(dialect, map_, column)
        both = np.column_stack([1 - got, got])
        assert len(at_last_digits(map_, pairs, both, BOUND)) == 0, name


@pytest.mark.parametrize(
    "dialect",
    [
        dialect
        if dialect in ("ansi", "postgres", "bigquery")
        else pytest.param(dialect, marks=pytest.mark.slow)
        for dialect in DIALECTS
    ],
)
def test_maps(dialect):
    """Every method in four of the dialects."""
    cases = [(name, k) for k, names in QUICK.items() for name in names]
    for name, k in cases[list(DIALECTS).index(dialect) % 2 :: 2]:
        check(dialect, name, k, 100, 30, "proba")
    check(dialect, "isotonic", 2, 100, 60, "logits")


# what is in no other dialect: no names for the greatest and the least, other functions
# and types
APART = [
    d if d in ("tsql", "mysql") else pytest.param(d, marks=pytest.mark.cross)
    for d in DIALECTS
]


@pytest.mark.cross
@pytest.mark.parametrize("dialect", APART)
def test_all_methods(dialect):
    for name, k in IN_FULL:
        if name not in TABULATED and k < 10:
            for kind in ("proba", "logits"):
                check(dialect, name, k, 150, 200, kind)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", APART)
def test_uncommon_nodes(dialect):
    for tree, k in UNCOMMON:
        if k < 20:
            map_, rows = document(tree, k), rows_for(tree, k)[::5]
            got = query(dialect, map_, rows)
            assert len(at_last_digits(map_, rows, got, BOUND)) == 0, tree


@run_every_case("dialect", DIALECTS)
def test_edges_of_bins(dialect):
    """Scores at an edge, and one last digit to both sides."""
    grid = np.linspace(0, 1, 11)
    method = HistogramBinning(5, strategy="uniform").fit(grid, np.arange(11) % 2)
    near = np.concatenate([grid, np.nextafter(grid[1:], 0), np.nextafter(grid[:-1], 1)])
    expected = method.predict_proba(near)[:, 1]
    assert len(np.unique(expected)) > 2
    assert np.array_equal(expression(dialect, to_dict(method), near), expected)
    p = np.unique(probabilities(2, 60)[:, 1])
    steps = VennAbers().fit(p, np.arange(len(p)) % 3 == 0)
    assert np.array_equal(
        expression(dialect, to_dict(steps), p), steps.predict_proba(p)[:, 1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_null_and_what_is_no_probability_give_null(dialect):
    for name in ("platt", "isotonic", "venn_abers", "beta", "restricted_polynomial"):
        got = expression(
            dialect, to_dict(fitted(name, 2)), [np.nan, -1e-9, 1.1, 0.0, 1.0]
        )
        assert np.isnan(got).tolist() == [True, True, True, False, False]
    rows = np.array(
        [[np.nan, 0.5, 0.5], [0.5, np.nan, 0.5], [0.2, 0.2, 0.2], [1, 0, 0]]
    )
    got = query(dialect, to_dict(fitted("isotonic", 3)), rows)
    assert np.isnan(got).tolist() == [[True] * 3] * 3 + [[False] * 3]


@pytest.mark.parametrize(
    "dialect", sorted({*DIALECTS} - {"duckdb", "sqlite", "postgres"})
)
@pytest.mark.parametrize("name", ["isotonic", "histogram_binning.uniform"])
def test_tables(dialect, name):
    """Joins that are not of a range are run by the databases themselves."""
    method = fitted(name, 2)
    p = np.concatenate([probabilities(2, 50)[:, 1], np.linspace(0, 1, 11), [np.nan]])
    sql = to_sql(method, "p", dialect=dialect, into="table", table="pieces")
    got = evaluated(dialect, sql, {quoted(dialect, "p"): p})[
        quoted(dialect, "calibrated")
    ]
    assert np.isnan(got[-1])
    assert np.abs(got[:-1] - method.predict_proba(p[:-1])[:, 1]).max() <= BOUND


@pytest.mark.parametrize(
    ("dialect", "few", "word"),
    [
        ("duckdb", 300, "SELECT v["),
        ("postgres", 4, "width_bucket"),
        ("mysql", 4, "INTERVAL"),
    ],
)
def test_from_how_many_edges_on_a_step_is_looked_up(dialect, few, word):
    """Below, a CASE is quicker; what both give is compared in the databases."""
    for edges, looked_up in ((few, False), (few + 1, True)):
        p = (np.arange(20 * edges) + 0.5) / (20 * edges)
        y = np.arange(len(p)) % 7 < 7 * p
        sql = to_sql(
            HistogramBinning(edges + 1, strategy="uniform").fit(p, y),
            "p",
            dialect=dialect,
        )
        assert (word.lower() in sql.lower()) is looked_up


@pytest.mark.parametrize(
    "name", ["isotonic", "beta", "restricted_polynomial", "spline"]
)
def test_the_interpreter_says_what_databases_say(name):
    dialect, column, map_ = (
        "sqlite",
        probabilities(2, 60)[:, 1],
        to_dict(fitted(name, 2)),
    )
    ran = as_expression(dialect, map_, column)
    assert np.abs(ran - expression(dialect, map_, column)).max() <= 1e-15
    rows, map_ = probabilities(3, 60), to_dict(fitted("isotonic", 3))
    assert (
        np.abs(in_sql(dialect, [(map_, rows)])[0] - query(dialect, map_, rows)).max()
        <= 1e-15
    )


@run_every_case(
    ("dialect", "sql", "words"),
    [
        ("tsql", "SELECT LN(1e0) AS [q] FROM t", "no function LN"),
        ("tsql", "SELECT LEAST(1e0, 2e0) AS [q] FROM t", "no function LEAST"),
        ("mysql", 'SELECT "p" AS `q` FROM t', "cannot be read"),
        (
            "bigquery",
            "SELECT CAST(`p` AS DOUBLE) AS `q` FROM t",
            "DOUBLE is no type of doubles",
        ),
        ("postgres", 'SELECT 1.5e0 AS "q" FROM t', "1.5e0 is an exact decimal"),
        ("ansi", 'SELECT 1.5 AS "q" FROM t', "1.5 is an exact decimal"),
        ("ansi", 'SELECT 1e0 / 0e0 AS "q" FROM t', "a division by zero"),
        ("ansi", 'SELECT LN(0e0) AS "q" FROM t', "no such number"),
        ("ansi", 'SELECT EXP(1e3) AS "q" FROM t', "an overflow"),
        ("ansi", 'SELECT "other" AS "q" FROM t', "no column"),
        ("postgres", 'SELECT EXP((-1e3::float8)) AS "q" FROM t', "underflow"),
    ],
)
def test_what_a_database_would_refuse(dialect, sql, words):
    with pytest.raises(SqlError, match=words):
        evaluated(dialect, sql, {quoted(dialect, "p"): np.array([0.5])})


def test_what_databases_compute():
    """By hand: the order of operations, CASE for its own rows, NULL in comparisons and LEAST."""
    p = {'"p"': np.array([0.0, 0.5, np.nan])}
    for text, expected in [
        ('1e0 + 2e0 * "p"', [1, 2, np.nan]),
        ('1e0 - "p" - 1e0', [0, -0.5, np.nan]),
        ('CASE WHEN "p" <= 0e0 THEN 7e0 ELSE 1e0 / "p" END', [7, 2, np.nan]),
        ('CASE WHEN "p" < 1e0 AND 0e0 < "p" THEN 1e0 END', [np.nan, 1, np.nan]),
        ('LEAST("p", 1e0)', [0, 0.5, np.nan]),
        ('GREATEST(FLOOR("p"), (-3e0))', [0, 0, np.nan]),
    ]:
        (got,) = evaluated("ansi", f'SELECT {text} AS "q" FROM t', p).values()
        np.testing.assert_array_equal(got, expected, err_msg=text)
    text = "SELECT (SELECT MIN(v) FROM (VALUES ([p]), (1e0)) AS m(v)) AS [q] FROM t"
    (got,) = evaluated("tsql", text, {"[p]": p['"p"']}).values()
    assert got.tolist() == [0, 0.5, 1]
    stages = 'WITH "a" AS (SELECT "p", "p" + 1e0 AS "x" FROM t) SELECT "x" * 2e0 AS "q" FROM "a"'
    (got,) = evaluated("ansi", stages, p).values()
    np.testing.assert_array_equal(got, [2, 3, np.nan])


def test_names_are_data():
    method = Identity().fit([0.2, 0.7], [0, 1])
    for dialect in MANUALS:
        for name in ('a"b', "a`b", "a]b", "a\\b", "a'b; --"):
            column = {quoted(dialect, name): np.array([0.25])}
            sql = f"SELECT {to_sql(method, name, dialect=dialect, into=name + '!')} FROM t"
            found = evaluated(dialect, sql, column)
            assert found[quoted(dialect, name + "!")][0] == pytest.approx(
                0.25, abs=1e-12
            )
