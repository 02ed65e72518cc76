"""Runs exported programs: C, JavaScript, Python, SQLite and DuckDB.

Each takes pairs of a document and scores, shape (n, k), and gives results of the same
shape.
"""

import ctypes
import json
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np

from sklearn_calib.export import to_code, to_sql

#: Maps of more characters are too large for SQL: tables of tens of thousands of pieces.
LARGEST = 400_000
CC, NODE = shutil.which("cc"), shutil.which("node")
FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")


def sqlite():
    """A database in memory, for `with`: as a context of its own a connection is left open."""
    return closing(sqlite3.connect(":memory:"))


def sqlite_has_functions():
    with sqlite() as database:
        try:
            database.execute("SELECT LN(EXP(1.0)), ACOS(0.5), FLOOR(0.5)")
        except sqlite3.OperationalError:
            return False
    return sqlite3.sqlite_version_info >= (3, 35)


def compiled(code, folder, flags=("-O0",)):
    """A library of C code."""
    source, library = Path(folder, "map.c"), Path(folder, "map.so")
    source.write_text(code, encoding="utf-8")
    command = [CC, *FLAGS, *flags, str(source), "-o", str(library), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(library))


def loop_over_rows(name, k):
    return (
        f"void {name}_rows(const double *p, double *out, long n) {{\n"
        f"    for (long i = 0; i < n; i++) {name}(p + {k} * i, out + {k} * i);\n}}\n"
    )


def called(function, scores):
    """What a loop over rows gives."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    out = np.empty_like(scores)
    numbers = ctypes.POINTER(ctypes.c_double)
    n = ctypes.c_long(len(scores))
    function(scores.ctypes.data_as(numbers), out.ctypes.data_as(numbers), n)
    return out


def in_c(pairs):
    parts = []
    for i, (document, scores) in enumerate(pairs):
        name = f"map{i}"
        parts += [to_code(document, "c", name), loop_over_rows(name, scores.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        library = compiled("\n".join(parts), folder)
        return [
            called(library[f"map{i}_rows"], scores)
            for i, (_, scores) in enumerate(pairs)
        ]


def in_javascript(pairs):
    parts, data = [], []
    for i, (document, scores) in enumerate(pairs):
        parts.append(to_code(document, "javascript", f"map{i}"))
        data.append(np.asarray(scores, dtype=np.float64).tolist())
    maps = ", ".join(f"map{i}" for i in range(len(pairs)))
    parts.append(
        'const data = JSON.parse(require("fs").readFileSync(0));\n'
        f"const found = [{maps}].map((f, i) => data[i].map((row) => f(row)));\n"
        "process.stdout.write(JSON.stringify(found));"
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "map.js")
        source.write_text("\n".join(parts), encoding="utf-8")
        done = subprocess.run(
            [NODE, str(source)],
            input=json.dumps(data),
            check=True,
            capture_output=True,
            text=True,
        )
    return [np.array(rows, dtype=float) for rows in json.loads(done.stdout)]


def in_python(pairs):
    return [
        np.array(list(map(python_function(d), scores.tolist()))) for d, scores in pairs
    ]


def python_function(document):
    namespace = {}
    exec(to_code(document, "python"), namespace)
    return namespace["calibrate"]


def at_last_digits(document, scores, got, tolerance):
    """Rows that differ, and not because another logarithm rounds a score to another one.

    Methods that round to 36 bits jump where a score is half-way; there the results for
    scores that are a few last digits larger or smaller are right too.
    """
    far = np.flatnonzero(
        ~(np.abs(got - document.rows(scores)).max(axis=1) <= tolerance)
    )
    if len(far) == 0 or len(far) > 3 + len(scores) // 1000:
        return far
    spread = (
        np.linspace(-1, 1, scores.shape[1])
        * 4e-16
        * np.maximum(1, np.abs(scores[far]).max())
    )
    close = np.zeros(len(far), dtype=bool)
    for sign in (-1, 1):
        moved = scores[far] + sign * spread
        moved = np.clip(moved, 0, 1) if document.input == "proba" else moved
        close |= np.abs(got[far] - document.rows(moved)).max(axis=1) <= tolerance
    return far[~close]


# -- databases ------------------------------------------------------------------------------------


def sqlite_rows(sql, scores, columns):
    """Results of a query on a table `scores` with these columns and an id, by the id."""
    fields = ", ".join(f"`{column}` REAL" for column in columns)
    marks = ", ".join("?" * (len(columns) + 1))
    numbered = [(i, *row) for i, row in enumerate(scores.tolist())]
    with sqlite() as database:
        database.execute(f"CREATE TABLE scores (id INTEGER, {fields})")
        database.executemany(f"INSERT INTO scores VALUES ({marks})", numbered)
        return _by_id(run_statements(database, sql).fetchall())


@cache
def _duckdb():
    """One database for all queries: to open one takes longer than most queries."""
    import duckdb

    return duckdb.connect(config={"threads": 1})


def duckdb_rows(sql, scores, columns):
    """As `sqlite_rows`; of tables that statements make none is left."""
    import pyarrow

    data = {"id": np.arange(len(scores))} | dict(zip(columns, scores.T, strict=True))
    with _duckdb().cursor() as database:
        database.register("scores", pyarrow.table(data))
        database.execute("BEGIN")
        found = _by_id(run_statements(database, sql).fetchall())
        database.execute("ROLLBACK")
        return found


def run_statements(database, sql):
    *first, last = [part for part in sql.split(";\n") if part.strip()]
    for statement in first:
        database.execute(statement)
    return database.execute(last)


def _by_id(rows):
    return np.array(sorted(rows), dtype=float)[:, 1:]


DATABASES = {"sqlite": sqlite_rows, "duckdb": duckdb_rows}


def in_sql(dialect, pairs):
    """Queries on all columns."""
    found = []
    for document, scores in pairs:
        columns = [f"score {i}" for i in range(scores.shape[1])]
        sql = to_sql(document, columns, dialect=dialect, keep=["id"])
        found.append(
            DATABASES[dialect](sql, np.asarray(scores, dtype=np.float64), columns)
        )
    return found


def as_expression(dialect, document, column):
    """An expression, for the probability or log-odds of the second of two classes."""
    sql = f"SELECT id, {to_sql(document, 'p', dialect=dialect)} FROM scores"
    return DATABASES[dialect](
        sql, np.asarray(column, dtype=np.float64)[:, None], ["p"]
    )[:, 0]
