"""Rows of databases, cursors and iterators: the summary of the table, and what breaks off."""

import os
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy
from error_fields import raises_invalid_input
from servers import mariadb, postgres, spark_session

from sklearn_calib._cli import main
from sklearn_calib._files import rows as module
from sklearn_calib.summary import CalibrationSummary, summarize

__all__ = ["mariadb", "postgres"]  # fixtures
COLUMNS = {"label": "y", "prob": "p"}
QUERY = "SELECT * FROM rows_ ORDER BY i"
N = 1000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    p = rng.random(N)
    y, weight = (rng.random(N) < p**2).astype(int), rng.integers(1, 4, N)
    return pd.DataFrame(
        {"i": range(N), "y": y, "p": p, "w": weight, "g": np.arange(N) % 3}
    )


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "PIECE_ROWS", 300)


@pytest.fixture(scope="module")
def address(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "t.db"
    with sqlite3.connect(path) as connection:
        table.to_sql("rows_", connection, index=False)
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture
def connection(address):
    connection = sqlite3.connect(address.removeprefix("sqlite:///"))
    yield connection
    connection.close()


def check_counted(source, table):
    """In the database: names that need quotes, weights, groups, counts, a semicolon."""
    rounded = table.assign(p=table["p"].round(1))
    query = "SELECT i, y, ROUND(p, 1) AS p, w, g FROM rows_;"
    for more in (
        {},
        {"weight": "w"},
        {"by": "g"},
        {"weight": "w", "by": ["g"]},
        {"counts": "w"},
    ):
        options = {"query": query, "in_database": True} | more | COLUMNS
        assert summarize(source, **options) == summarize(rounded, **more, **COLUMNS), (
            more
        )


class Row(NamedTuple):
    p: float
    y: int


@pytest.mark.parametrize(
    "source",
    [
        lambda t: iter([t[:10], t[10:700], t[700:]]),
        lambda t: iter(pa.Table.from_pandas(t).to_batches(128)),
        lambda t: iter([pa.Table.from_pandas(t[:5]), t[5:]]),
        lambda t: zip(t["y"].tolist(), t["p"].tolist(), strict=True),
        lambda t: map(list, zip(t["y"].tolist(), t["p"].tolist(), strict=True)),
        lambda t: (Row(p, y) for y, p in zip(t["y"], t["p"], strict=True)),
        lambda t: (
            {"x": "?", "p": p, "y": y} for y, p in zip(t["y"], t["p"], strict=True)
        ),
        lambda t: iter([(t["y"].to_numpy()[:5], t["p"][:5]), (t["y"][5:], t["p"][5:])]),
        lambda t: iter([{"p": t["p"], "y": t["y"], "x": 3 * [t["y"]]}]),
    ],
    ids=[
        "frames",
        "batches",
        "mixed",
        "tuples",
        "lists",
        "named",
        "dicts",
        "arrays",
        "columns",
    ],
)
def test_iterators(table, source):
    assert summarize(source(table), **COLUMNS) == summarize(table, **COLUMNS)


def test_tuples_in_the_order_of_the_arguments(table):
    options = COLUMNS | {"weight": "w", "by": "g"}
    given = table[["y", "p", "w", "g"]].itertuples(index=False, name=None)
    assert summarize(given, **options) == summarize(table, **options)
    with raises_invalid_input(
        ValueError, expected="tuples of 2, 'y', 'p'", value="a tuple of 3"
    ):
        summarize(iter([(1, 0.5, 2)]), **COLUMNS)


def test_sqlite(table, connection, address):
    found = summarize(table, **COLUMNS)
    assert summarize(connection, query=QUERY, **COLUMNS) == found
    assert summarize(connection.execute(QUERY), **COLUMNS) == found
    assert summarize(pd.read_sql(QUERY, connection, chunksize=70), **COLUMNS) == found
    assert summarize(address, query=QUERY, **COLUMNS) == found
    groups = summarize(connection, query=QUERY, by="g", weight="w", **COLUMNS)
    assert groups == summarize(table, by="g", weight="w", **COLUMNS)


def test_sqlalchemy(table, address):
    found, engine = summarize(table, **COLUMNS), sqlalchemy.create_engine(address)
    assert summarize(engine, query=QUERY, **COLUMNS) == found
    with engine.connect() as opened:
        assert summarize(opened, query=QUERY, **COLUMNS) == found
        assert summarize(opened.execute(sqlalchemy.text(QUERY)), **COLUMNS) == found
        assert not opened.closed
    engine.dispose()


def test_counted_in_the_database(table, connection, address, monkeypatch):
    said, queried = [], module._open_query_result
    monkeypatch.setattr(
        module,
        "_open_query_result",
        lambda source, *more: (said.append(more[0]), queried(source, *more))[1],
    )
    for source in (connection, address):
        check_counted(source, table)
    assert all(" GROUP BY " in query for query in said)
    with duckdb.connect() as opened:
        opened.register("rows_", table)
        check_counted(opened, table)
        query = """SELECT y AS "n_rows", p AS "a ""b" FROM rows_"""
        names = {"label": "n_rows", "prob": 'a "b'}
        found = summarize(opened, query=query, in_database=True, **names)
        assert found == summarize(table, **COLUMNS)
    options = {"query": "SELECT y, NULL AS p FROM rows_", "in_database": True} | COLUMNS
    with raises_invalid_input(ValueError):
        summarize(connection, **options)
    with raises_invalid_input(
        ValueError, expected="query without drop_missing", value="drop_missing=True"
    ):
        summarize(connection, **options, drop_missing=True)
    with raises_invalid_input(
        ValueError, expected="query without drop_missing", value="no query"
    ):
        summarize(table, **COLUMNS, in_database=True)
    with raises_invalid_input(ValueError, expected="at least one row"):
        empty = options | {"query": "SELECT y, p FROM rows_ WHERE i < 0"}
        summarize(connection, **empty)


def test_duckdb_answers_in_record_batches(table):
    with duckdb.connect() as opened:
        opened.register("rows_", table)
        assert summarize(opened, query=QUERY, **COLUMNS) == summarize(table, **COLUMNS)


def test_the_row_is_counted_over_all_pieces(table):
    wrong = table.assign(p=table["p"].where(table["i"] != 700, 1.5))
    with raises_invalid_input(
        ValueError, expected="probabilities in", value="1.5", row=700
    ):
        summarize(wrong[["y", "p"]].itertuples(index=False, name=None), **COLUMNS)
    with raises_invalid_input(
        ValueError, expected="a number in every row", value="nan in rows 0, 1"
    ):
        summarize(iter([wrong.assign(p=np.nan)]), **COLUMNS)


def test_decimals_and_missing_values(connection):
    query = "SELECT y, CASE WHEN i % 10 = 0 THEN NULL ELSE p END AS p FROM rows_"
    with pytest.warns(match="a value in every cell, got none in 100 rows"):
        assert (
            summarize(connection, query=query, drop_missing=True, **COLUMNS).n_samples
            == 900
        )
    with raises_invalid_input(
        ValueError, expected="numbers in column 'p'", value="for instance 'a' in row 0"
    ):
        summarize(connection, query="SELECT y, 'a' AS p FROM rows_", **COLUMNS)


class Broken:
    """A cursor whose connection is lost."""

    description = (("y", None), ("p", None))

    def __init__(self):
        self.pieces = iter([[(0, 0.5)] * 300, [(1, 0.25)] * 300])

    def fetchmany(self, _):
        if (rows := next(self.pieces, None)) is None:
            raise ConnectionResetError("by the peer")
        return rows


def test_what_breaks_off():
    with raises_invalid_input(
        OSError, expected="rows to the end", value="ConnectionResetError after 600 rows"
    ):
        summarize(Broken(), **COLUMNS)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        (
            "SELECT * FROM rows_ WHERE p > 2",
            {"expected": "at least one row", "value": "none"},
        ),
        (
            "SELECT * FROM others",
            {"expected": "a query that the", "value": "no such table"},
        ),
        (
            "SELECT y, p, p FROM rows_",
            {"expected": "columns of different", "value": "'p' twice"},
        ),
        ("SELECT y FROM rows_", {"expected": "a column 'p'|the column 'p'"}),
        (
            "CREATE TEMP TABLE more (i INT)",
            {"expected": "a cursor with a result", "value": "one without"},
        ),
    ],
)
def test_queries_that_cannot_be_summarised(connection, query, fields):
    with raises_invalid_input(ValueError, **fields):
        summarize(connection, query=query, **COLUMNS)


def test_no_rows_of_an_iterator(table):
    with raises_invalid_input(ValueError, expected="at least one row", value="none"):
        summarize(iter([]), **COLUMNS)
    with raises_invalid_input(
        TypeError,
        expected="the address, an engine or a connection",
        value="a DataFrame",
    ):
        summarize(table, query=QUERY, **COLUMNS)


@pytest.mark.slow
def test_no_password_is_shown(capsys):
    for address in (
        "nosuch://me:S3cret@h/d",
        "sqlite:////S3cret/none.db?password=S3cret",
    ):
        with pytest.raises(ValueError, match="database answers") as raised:
            summarize(address, query=QUERY, **COLUMNS)
        assert "S3cret" not in str(raised.value).replace("/S3cret/", "")
    options = ["--query", QUERY, "--label", "y", "--prob", "p"]
    assert main(["audit", "postgresql://me:S3cret@127.0.0.1:1/d", *options]) == 2
    assert "S3cret" not in capsys.readouterr().err


@pytest.mark.slow
def test_commands(table, address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table.to_parquet("t.parquet")
    options = ["--label", "y", "--prob", "p"]
    query = ["--query", f"{QUERY} LIMIT 1000"]
    audited = ["--resamples", "2", "--out", "none", "--no-advice", "--save"]
    assert main(["audit", address, *query, *options, *audited, "one.parquet"]) == 0
    assert main(["audit", "t.parquet", *options, *audited, "other.parquet"]) == 0
    one, other = map(CalibrationSummary.from_parquet, ("one.parquet", "other.parquet"))
    assert one == other and one.n_samples == N
    for name, source in (("a", [address, *query]), ("b", ["t.parquet"])):
        platt = [
            "--recalibrator",
            "platt",
            "--date",
            "2026-01-01",
            "--out",
            f"{name}.json",
        ]
        assert main(["fit", *source, *options, *platt]) in (0, 3)  # it may help or not
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    capsys.readouterr()
    assert main(["audit", "t.parquet", *query, *options]) == 2
    assert (
        "one address of a database for --query, got 't.parquet'"
        in capsys.readouterr().err
    )
    assert main(["audit", address, *query, *options, "--dask", "tcp://h:1"]) == 2
    assert (
        "the workers of --dask can read, got the rows of a query"
        in capsys.readouterr().err
    )
    assert main(["audit", address, "--query", "SELECT 1 WHERE 1 = 2", *options]) == 2
    assert "at least one row" in capsys.readouterr().err


def values(table):
    rows = table[["i", "y", "p", "w", "g"]].itertuples(index=False, name=None)
    return ",".join(f"({i},{y},{p!r},{w},{g})" for i, y, p, w, g in rows)


CREATE = "CREATE TABLE rows_ (i INT, y INT, p {}, w INT, g INT); INSERT INTO rows_ VALUES {};"


@pytest.mark.slow
@pytest.mark.cross
def test_postgres(request, table):
    psycopg = pytest.importorskip("psycopg")
    server = request.getfixturevalue("postgres")
    server.run(CREATE.format("NUMERIC", values(table)))
    found, place = (
        summarize(table, **COLUMNS),
        f"host={server.socket} user=test dbname=postgres",
    )
    for autocommit in (False, True):
        with psycopg.connect(place, autocommit=autocommit) as opened:
            assert summarize(opened, query=QUERY, **COLUMNS) == found
            check_counted(opened, table)
    with psycopg.connect(place) as opened, opened.cursor("on_the_server") as cursor:
        cursor.execute(QUERY)
        server.run("INSERT INTO rows_ SELECT * FROM rows_")
        assert summarize(cursor, **COLUMNS) == found
    found += found
    address = f"postgresql+psycopg://test@/postgres?host={server.socket}"
    assert summarize(address, query=QUERY, **COLUMNS) == found
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    query = "SELECT y, CAST(p AS DOUBLE PRECISION) AS p FROM rows_"
    with adbc.connect(f"postgresql://test@/postgres?host={server.socket}") as opened:
        assert summarize(opened, query=query, **COLUMNS) == found


def test_a_table_that_grows_meanwhile(table, tmp_path):
    """Rows that came after the query began are not among its rows."""
    frame, found = table[["i", "y", "p"]], summarize(table, **COLUMNS)
    with closing(sqlite3.connect(tmp_path / "t.db")) as reader:
        reader.execute("PRAGMA journal_mode = WAL")
        frame.to_sql("rows_", reader, index=False)
        cursor = reader.execute("SELECT y, p FROM rows_")
        with closing(sqlite3.connect(tmp_path / "t.db")) as writer:
            frame.to_sql("rows_", writer, index=False, if_exists="append")
        assert summarize(cursor, **COLUMNS) == found
        assert summarize(reader, query=QUERY, **COLUMNS) == found + found


@pytest.mark.slow
@pytest.mark.cross
def test_mariadb(request, table):
    pymysql = pytest.importorskip("pymysql")
    server = request.getfixturevalue("mariadb")
    server.run(CREATE.format("DOUBLE", values(table)))
    opened = pymysql.connect(unix_socket=server.socket, user="root", database="t")
    assert summarize(opened, query=QUERY, **COLUMNS) == summarize(table, **COLUMNS)
    check_counted(opened, table)
    opened.close()


@pytest.mark.slow
@pytest.mark.cross
@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
def test_spark(table, tmp_path):
    with spark_session(tmp_path, "local[2]") as session:
        frame = session.createDataFrame(table.to_dict("records")).repartition(5)
        assert summarize(frame, **COLUMNS) == summarize(table, **COLUMNS)
        options = COLUMNS | {"weight": "w", "by": "g"}
        assert summarize(frame, **options) == summarize(table, **options)
        assert summarize(frame.where("i < 3").repartition(9), **COLUMNS).n_samples == 3
        counted = frame.groupBy("y", "p", "g").count()
        options = COLUMNS | {"counts": "count", "by": "g"}
        assert summarize(counted, **options) == summarize(table, by="g", **COLUMNS)


@pytest.mark.slow
@pytest.mark.cross
@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
def test_spark_loses_an_executor(table, tmp_path):
    """What it had begun is done again by another one, and no row counts twice."""
    begun = tmp_path / "begun"

    def slowly(batches):
        begun.touch()
        time.sleep(1)
        yield from batches

    def executors():
        words = ["pgrep", "-f", "CoarseGrainedExecutorBackend"]
        return set(subprocess.run(words, capture_output=True, text=True).stdout.split())

    def kill():
        while not begun.exists():
            time.sleep(0.05)
        os.kill(int(lost), signal.SIGKILL)

    with spark_session(tmp_path, "local-cluster[2,1,1024]") as session:
        frame = session.createDataFrame(table.to_dict("records")).repartition(6)
        frame.count()  # both have started
        lost, *_ = before = executors()
        frame = frame.mapInArrow(slowly, frame.schema)
        killer = threading.Thread(target=kill)
        killer.start()
        assert summarize(frame, **COLUMNS) == summarize(table, **COLUMNS)
        killer.join()
        assert before - executors() == {lost}


@pytest.mark.slow
@pytest.mark.cross
def test_clickhouse(table, tmp_path):
    opened = pytest.importorskip("chdb.dbapi").connect(str(tmp_path / "data"))
    table.to_parquet(tmp_path / "t.parquet")
    source = f"file('{tmp_path / 't.parquet'}', 'Parquet')"
    opened.cursor().execute(f"CREATE VIEW default.rows_ AS SELECT * FROM {source}")
    assert summarize(opened, query=QUERY, **COLUMNS) == summarize(table, **COLUMNS)
    check_counted(opened, table)
    opened.close()


@pytest.mark.parametrize(
    ("driver", "marks"),
    [
        ("sqlite3", '""'),
        ("psycopg.connection", '""'),
        ("pymysql.connections", "``"),
        ("databricks.sql.client", "``"),
    ],
)
def test_names_have_the_quotes_of_their_database(driver, marks):
    source = type("Connection", (), {"__module__": driver})()
    assert module._get_quote_marks(source) == marks


@pytest.mark.skipif(os.name == "nt", reason="no named pipes in folders on Windows")
def test_a_named_pipe_is_no_file_of_rows(tmp_path):
    """It has no writer, so that opening it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    with raises_invalid_input(
        ValueError,
        expected="a file, which can be read again",
        value="the pipe or device",
        hint="Copy it into a file first",
    ):
        summarize(tmp_path / "pipe", **COLUMNS)
