"""Rows from databases, cursors and iterators: rows a second, and what is in memory.

``python benchmarks/run.py scale/sources [rows ...] [names ...]`` (5,000,000 and
50,000,000 rows by default, and all sources, else those that begin so), each source in a
process of its own. "counted there": scores of four digits, which the database counts.
PostgreSQL and MySQL or MariaDB are measured where their addresses, as SQLAlchemy takes
them, are in POSTGRES and MYSQL, Spark where pyspark and Java are installed. A row is a
label and a probability. ``peak_mb`` is what the process holds beyond its imports.
"""

import csv
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
COLUMNS = {"label": "y", "prob": "p"}
QUERY, PIECE = "SELECT y, p FROM calib_rows", 2**17
ROUNDED = "SELECT y, FLOOR(p * 1e4) / 1e4 AS p FROM calib_rows"
COUNTED = ", counted there"
MAKE = {
    "postgres": "CREATE UNLOGGED TABLE calib_rows AS SELECT (random() < s.p)::int AS y, s.p FROM "
    "(SELECT random() AS p FROM generate_series(1, {n})) AS s",
    "mysql": "CREATE TABLE calib_rows AS SELECT s.p > RAND() AS y, s.p FROM "
    "(SELECT RAND() AS p FROM seq_1_to_{n}) AS s",
    "duckdb": "CREATE TABLE calib_rows AS SELECT (random() < s.p)::int AS y, s.p FROM "
    "(SELECT random() AS p FROM range({n})) AS s",
}


def batches(n):
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    for start in range(0, n, PIECE):
        p = rng.random(min(PIECE, n - start))
        yield pa.record_batch({"y": (rng.random(len(p)) < p).astype("int8"), "p": p})


def parquet(n, folder):
    import pyarrow.parquet as pq

    path = folder / f"{n}.parquet"
    if not path.exists():
        found = batches(n)
        first = next(found)
        with pq.ParquetWriter(path, first.schema) as file:
            for batch in (first, *found):
                file.write_batch(batch)
    return str(path)


def sqlite(n, folder):
    path = folder / f"{n}.db"
    if not path.exists():
        with sqlite3.connect(path) as opened:
            opened.execute("CREATE TABLE calib_rows (y INT, p REAL)")
            for batch in batches(n):
                rows = zip(
                    *(column.to_pylist() for column in batch.columns), strict=True
                )
                opened.executemany("INSERT INTO calib_rows VALUES (?, ?)", rows)
    return path


def server(kind, n):
    import sqlalchemy

    address = os.environ[kind.upper()]
    engine = sqlalchemy.create_engine(address)
    with engine.begin() as opened:
        opened.execute(sqlalchemy.text("DROP TABLE IF EXISTS calib_rows"))
        opened.execute(sqlalchemy.text(MAKE[kind].format(n=n)))
    return engine


def opened(engine):
    return engine.raw_connection().driver_connection


def adbc(engine):
    from adbc_driver_postgresql import dbapi

    url = engine.url
    place = url.query.get("host", url.host)
    return dbapi.connect(f"postgresql://{url.username}@/{url.database}?host={place}")


def duck(n):
    import duckdb

    found = duckdb.connect()
    found.execute(MAKE["duckdb"].format(n=n))
    return found


def spark(n, folder):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config(
        "spark.ui.enabled", "false"
    )
    for end in ("bindAddress", "host"):
        builder = builder.config(f"spark.driver.{end}", "127.0.0.1")
    return builder.getOrCreate().read.parquet(parquet(n, folder))


#: name: (what gives the source, whether it is asked a query)
SOURCES = {
    "parquet file": (lambda n, folder: parquet(n, folder), False),
    "iterator of record batches": (lambda n, folder: batches(n), False),
    "iterator of pandas frames": (
        lambda n, folder: (b.to_pandas() for b in batches(n)),
        False,
    ),
    "sqlite3": (lambda n, folder: sqlite3.connect(sqlite(n, folder)), True),
    "SQLite by its address": (lambda n, folder: f"sqlite:///{sqlite(n, folder)}", True),
    "DuckDB": (lambda n, folder: duck(n), True),
    "psycopg, cursor on the server": (
        lambda n, folder: opened(server("postgres", n)),
        True,
    ),
    "PostgreSQL, engine of SQLAlchemy": (lambda n, folder: server("postgres", n), True),
    "PostgreSQL, ADBC": (lambda n, folder: adbc(server("postgres", n)), True),
    "pymysql": (lambda n, folder: opened(server("mysql", n)), True),
    "Spark, two cores": (spark, False),
}
SOURCES |= {
    name + COUNTED: made for name, made in SOURCES.items() if made[1] or "Spark" in name
}
NEEDED = {"postgres": ("psycopg", "PostgreSQL"), "mysql": ("pymysql",)}


def skipped(name):
    for kind, begun in NEEDED.items():
        if name.startswith(begun) and kind.upper() not in os.environ:
            return f"no address in {kind.upper()}"
    without = "Spark" in name and not (
        shutil.which("java") and importlib.util.find_spec("pyspark")
    )
    return "pyspark or Java is not installed" if without else None


def resident(name):
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def one(name, n, folder):
    """One source, in this process."""
    from sklearn_calib.summary import summarize

    make, asked = SOURCES[name]
    counted = name.endswith(COUNTED)
    options = COLUMNS | ({"query": ROUNDED if counted else QUERY} if asked else {})
    options |= {"in_database": True} if counted and asked else {}
    summarize(batches(1000), **COLUMNS)  # imports and compiles
    source = make(n, Path(folder))
    if counted and not asked:
        source = (
            source.selectExpr("y", "FLOOR(p * 1e4) / 1e4 AS p")
            .groupBy("y", "p")
            .count()
        )
        options["counts"] = "count"
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before, start = resident("VmRSS"), (time.perf_counter(), time.process_time())
    found = summarize(source, **options)
    clock, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    assert found.n_samples == n
    row = {
        "source": name,
        "rows": n,
        "rows_per_s": f"{n / clock:.0f}",
        "cpu_s": f"{cpu:.2f}",
    }
    print(json.dumps(row | {"peak_mb": f"{resident('VmHWM') - before:.0f}"}))


def main():
    if len(sys.argv) == 4 and sys.argv[1] in SOURCES and Path(sys.argv[3]).is_dir():
        one(sys.argv[1], int(sys.argv[2]), sys.argv[3])
        return
    import runner

    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()] or [
        5_000_000,
        50_000_000,
    ]
    begun = tuple(word for word in sys.argv[1:] if not word.isdigit()) or ("",)
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for name in filter(lambda name: name.startswith(begun), SOURCES):
            if why := skipped(name):
                print(f"skipped {name}: {why}")
                continue
            for n in sizes:
                call = [sys.executable, __file__, name, str(n), folder]
                done = subprocess.run(
                    call, check=True, stdout=subprocess.PIPE, text=True
                )
                rows.append(json.loads(done.stdout.splitlines()[-1]))
                print(rows[-1], flush=True)
    path = HERE / "sources.csv"
    if path.exists():  # what was skipped keeps its rows
        with open(path, encoding="utf-8") as file:
            new = {(row["source"], str(row["rows"])) for row in rows}
            kept = [
                r for r in csv.DictReader(file) if (r["source"], r["rows"]) not in new
            ]
        rows = sorted([*kept, *rows], key=lambda row: [*SOURCES].index(row["source"]))
    runner.write(path, rows, ["source", "rows", "rows_per_s", "cpu_s", "peak_mb"])


if __name__ == "__main__":
    main()
