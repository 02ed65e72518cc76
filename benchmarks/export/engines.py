"""Maps in the engines themselves: seconds of 1,000,000 rows on one core, largest difference.

Four maps of two classes as an expression of one column, as a query by stages (a list of
that one column) and joined to a table of their pieces. The engine itself computes the
largest difference from `predict_proba`, so that one statement gives both. Where it
rejects a text, or takes more than two minutes or 8 GB, the cell says so. Each
measurement is a process of its own; servers are started by tests/servers.py, where they
are installed.
"""

import multiprocessing
import os
import re
import resource
import sqlite3
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tests")]

import pyarrow  # noqa: E402
import pyarrow.csv  # noqa: E402
import pyarrow.parquet  # noqa: E402
import pytest  # noqa: E402
import runner  # noqa: E402
from servers import mariadb_server, postgres_server, spark_session  # noqa: E402
from speed import with_knots  # noqa: E402

from sklearn_calib.datasets import make_overconfident  # noqa: E402
from sklearn_calib.export import from_dict, to_dict, to_sql  # noqa: E402
from sklearn_calib.recalibrators import (  # noqa: E402
    IsotonicCalibration,
    PlattScaling,
    StackedCalibration,
)

ROWS, LONGEST, MEMORY = 1_000_000, 120, 8e9
FORMS = ("expression", "query", "table")


def maps():
    """Documents by name."""
    proba, y = make_overconfident(2, 20_000, random_state=0)
    found = {"Platt scaling": to_dict(PlattScaling().fit(proba, y))}
    isotonic = to_dict(IsotonicCalibration().fit(proba, y))
    for pieces in (50, 5000):
        found[f"isotonic, {pieces} pieces"] = with_knots(isotonic, pieces, 3.0)
    return found | {'"auto"': to_dict(StackedCalibration().fit(proba[:2000], y[:2000]))}


def statements(document, form, dialect):
    """What is run before, and the statement that is timed."""
    options = {"dialect": dialect, "source": "calib_scores", "keep": ["q"]}
    if form == "expression":
        sql = to_sql(document, "p", dialect=dialect, into=None)
        return [], f"SELECT MAX(ABS({sql} - q)) FROM calib_scores"
    if form == "query":
        return [], around(to_sql(document, ["p"], **options))
    if "knots" not in document["map"]:
        return None
    *first, query = re.split(
        r";\n", to_sql(document, "p", into="table", **options).strip(";\n")
    )
    return first, around(query)


def around(query):
    return f"SELECT MAX(ABS(calibrated - q)) FROM ({query}) AS found"


# -- engines: each gives a function that runs a statement and returns its first number -------------


def postgres(path, stack, server):
    limits = f"SET max_parallel_workers_per_gather = 0; SET statement_timeout = '{LONGEST}s'; "
    return lambda sql: server.run(limits + sql)


def mysql(path, stack, server):
    return lambda sql: server.run(f"SET max_statement_time = {LONGEST}; {sql}")


def sqlite(path, stack, server):
    database = stack.enter_context(sqlite3.connect(":memory:"))
    database.execute("CREATE TABLE calib_scores (p REAL, q REAL)")
    columns = [
        column.to_pylist() for column in pyarrow.parquet.read_table(path).columns
    ]
    database.executemany(
        "INSERT INTO calib_scores VALUES (?, ?)", zip(*columns, strict=True)
    )
    return lambda sql: database.execute(sql).fetchone()


def duckdb(path, stack, server):
    import duckdb

    database = duckdb.connect(config={"threads": 1})
    database.execute(f"CREATE TABLE calib_scores AS SELECT * FROM '{path}'")
    return lambda sql: database.execute(sql).fetchone()


def clickhouse(path, stack, server):
    from chdb.session import Session

    session = Session(tempfile.mkdtemp())
    source = f"file('{path}', 'Parquet')"
    session.query(
        f"CREATE TABLE calib_scores ENGINE = Memory AS SELECT * FROM {source}"
    )
    limits = (
        f"max_threads = 1, max_memory_usage = {int(MEMORY)}, max_query_size = 100000000"
    )
    limits += ", max_parser_depth = 100000, max_ast_elements = 10000000"
    limits += ", max_expanded_ast_elements = 10000000, max_ast_depth = 100000"
    limits = f" SETTINGS {limits}"  # an INSERT has no place for them

    def run(sql):
        return str(
            session.query(sql + limits * sql.startswith("SELECT"), "CSV")
        ).split()

    return run


def spark(path, stack, server):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = stack.enter_context(spark_session(tempfile.mkdtemp(), "local[1]"))
    table = session.read.parquet(str(path)).cache()
    table.createOrReplaceTempView("calib_scores")
    table.count()
    return lambda sql: next(iter(session.sql(sql).collect()), None)


def datafusion(path, stack, server):
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.from_arrow(pyarrow.parquet.read_table(path), name="calib_scores")
    return lambda sql: next(
        (list(row.values()) for row in context.sql(sql).to_pylist()), None
    )


def polars(path, stack, server):
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as module

    context = module.SQLContext({"calib_scores": module.read_parquet(path)}, eager=True)
    return lambda sql: context.execute(sql).row(0)


def filled_postgres(server, path):
    server.run("CREATE TABLE calib_scores (p DOUBLE PRECISION, q DOUBLE PRECISION)")
    text = Path(f"{path}.csv").read_text(encoding="utf-8")
    server.run(f"COPY calib_scores FROM STDIN (FORMAT csv);\n{text}\\.\n")
    server.run("ANALYZE calib_scores")


def filled_mysql(server, path):
    server.run("CREATE TABLE calib_scores (p DOUBLE, q DOUBLE)")
    server.run(
        f"LOAD DATA INFILE '{path}.csv' INTO TABLE calib_scores FIELDS TERMINATED BY ',';"
        "ANALYZE TABLE calib_scores"
    )


#: name: (what starts it in a process, the dialect, the server and what fills its table)
ENGINES = {
    "PostgreSQL": (postgres, "postgres", (postgres_server, filled_postgres)),
    "MariaDB": (mysql, "mysql", (mariadb_server, filled_mysql)),
    "SQLite": (sqlite, "sqlite", None),
    "DuckDB": (duckdb, "duckdb", None),
    "ClickHouse": (clickhouse, "clickhouse", None),
    "Spark": (spark, "spark", None),
    "DataFusion": (datafusion, "ansi", None),
    "Polars": (polars, "ansi", None),
}


def measured(start, texts, path, server=None, begun=lambda: None):
    """Seconds and difference, or why there are none."""
    try:
        with ExitStack() as stack:
            run = start(path, stack, server)
            for text in texts[0]:
                run(text)
            begun()
            began = time.perf_counter()
            found = float(run(texts[1])[0])
            return time.perf_counter() - began, found
    except (ImportError, pytest.skip.Exception) as error:
        return error
    except BaseException as error:  # whatever an engine raises
        words = str(getattr(error, "stderr", "") or error)
        print("  refused:", words[:200], flush=True)
        late = "max_statement_time" in words or "statement timeout" in words
        return f"over {LONGEST} s" if late else "refused"


def limited(start, texts, path, said):
    """`measured`, in a process of its own."""
    # these reserve more than they use
    if start is not spark and start is not clickhouse:
        resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY), int(MEMORY)))
    said.send(measured(start, texts, path, begun=lambda: said.send("begun")))


def answer(start, texts, path):
    """What `measured` says, or that it did not say it in time."""
    processes = multiprocessing.get_context("fork")
    ours, theirs = processes.Pipe(duplex=False)
    work = processes.Process(target=limited, args=(start, texts, path, theirs))
    work.start()
    theirs.close()
    found, left = "refused", 300  # to load the rows
    try:
        while ours.poll(left):
            found, left = ours.recv(), LONGEST
            if not isinstance(found, str) or found != "begun":
                break
    except EOFError:  # it died
        found = "refused"
    work.kill()
    work.join()
    return f"over {LONGEST} s" if isinstance(found, str) and found == "begun" else found


def lines_of(name, folder, documents, p):
    """The lines of an engine."""
    start, dialect, server = ENGINES[name]
    path = folder / "scores.parquet"
    for which, document in documents.items():
        table = pyarrow.table({"p": p, "q": from_dict(document).predict_proba(p)[:, 1]})
        pyarrow.parquet.write_table(table, path)
        line, worst = {"engine": name, "map": which}, []
        with ExitStack() as stack:
            if server:
                no_header = pyarrow.csv.WriteOptions(include_header=False)
                pyarrow.csv.write_csv(table, f"{path}.csv", no_header)
                place = Path(tempfile.mkdtemp(dir=folder))
                running = stack.enter_context(server[0](place))
                server[1](running, path)
            for form in FORMS:
                texts = statements(document, form, dialect)
                if texts is None:
                    continue
                if server:
                    found = measured(start, texts, path, running)
                else:
                    found = answer(start, texts, path)
                if isinstance(found, BaseException):
                    raise found
                if not isinstance(found, str):
                    worst.append(found[1])
                    found = f"{found[0]:.2g}"
                line[form] = found
        line["largest difference"] = f"{max(worst):.1e}" if worst else ""
        print(line, flush=True)
        yield line


def main(*names):
    documents, lines = maps(), []
    p = np.random.default_rng(1).random(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name in names or ENGINES:
            try:
                lines += lines_of(name, Path(folder), documents, p)
            except (ImportError, pytest.skip.Exception) as error:
                print(f"skipped {name}: {error}")
    columns = ["engine", "map", *FORMS, "largest difference"]
    runner.write(HERE / "engines.csv", lines, columns)


if __name__ == "__main__":
    main(*sys.argv[1:])
