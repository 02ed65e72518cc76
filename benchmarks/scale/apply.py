"""``sklearn-calib apply`` on parquet and csv: rows in a CPU second, and memory that stays.

``python benchmarks/run.py scale/apply``. Each job in a process of its own, which
applies the map to a small table first; the memory is what the process has grown by then
until its end, at most. A table has a key and a probability, in row groups of a million.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import runner

HERE = Path(__file__).parent
JOBS = (  # method, rows, format, at least so many million rows in a CPU second
    ("platt", 10**6, "parquet", None),
    ("platt", 10**7, "parquet", 2),
    ("isotonic", 10**7, "parquet", None),
    ("platt", 10**6, "csv", None),
    ("platt", 10**7, "csv", None),
)
MOST_MORE = 64  # megabytes that ten times the rows may need in addition

CHILD = """
import contextlib, io, resource, sys, time
from sklearn_calib._cli import main

def apply(table, out):
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["apply", "map.json", table, "--prob", "p", "--out", out]) == 0

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

kind = sys.argv[1]
apply(f"small.{kind}", f"out.{kind}")
before, start = peak(), time.process_time()
apply(f"table.{kind}", f"out.{kind}")
print(time.process_time() - start, peak() - before)
"""


def write(path, n_rows):
    """A table of a key and a probability."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet as pq

    schema = pa.schema([("id", pa.int64()), ("p", pa.float64())])
    writer = pq.ParquetWriter if path.endswith("parquet") else csv.CSVWriter
    rng = np.random.default_rng(0)
    with writer(path, schema) as file:
        for first in range(0, n_rows, 10**6):
            m = min(10**6, n_rows - first)
            columns = [np.arange(first, first + m), rng.random(m)]
            file.write_table(pa.table(columns, schema=schema))


def main():
    from sklearn_calib.datasets import make_overconfident
    from sklearn_calib.export import to_json
    from sklearn_calib.recalibrators import get_recalibrator

    rows, memory = [], {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for method, n_rows, kind, bar in JOBS:
            to_json(
                get_recalibrator(method).fit(*make_overconfident(2, 5000)), "map.json"
            )
            write(f"small.{kind}", 1000)
            write(f"table.{kind}", n_rows)
            said = subprocess.run(
                [sys.executable, "-c", CHILD, kind],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            seconds, grown = map(float, said.split())
            speed = n_rows / seconds / 1e6
            assert bar is None or speed >= bar
            row = {
                "job": f"{method}, {kind}, {n_rows:.0e} rows",
                "cpu_s": f"{seconds:.1f}",
            }
            row |= {
                "million_rows_per_second": f"{speed:.2f}",
                "grown_mb": f"{grown:.0f}",
            }
            fewer = memory.setdefault((method, kind), grown)
            assert grown <= fewer + MOST_MORE
            rows.append(
                row | {"bar": "" if bar is None else f">= {bar} million rows/s"}
            )
            print(rows[-1], flush=True)
            os.remove(f"table.{kind}")
        os.chdir(HERE)
    columns = ["job", "cpu_s", "million_rows_per_second", "grown_mb", "bar"]
    runner.write(HERE / "apply.csv", rows, columns)


if __name__ == "__main__":
    main()
