"""Parquet files as summaries: CPU and memory beside reading alone, databases, peers, clusters.

``python benchmarks/run.py files [rows]``: 1e8 rows by default, written to a temporary
folder.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from glob import glob
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "POLARS_MAX", "RAYON"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")
    os.environ.setdefault(f"{name}_THREADS", "1")

import numpy as np  # noqa: E402

HERE = Path(__file__).parent
BINS = "least(floor(15 * p), 14)"
ROWS_OF_A_FILE = 10_000_000
BATCH = 2**17


def write_rows(folder, n):
    """Files of 1e7 rows in row groups of 1e6: a float64 score and an int8 label."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    for number in range(max(1, n // ROWS_OF_A_FILE)):
        m = min(n, ROWS_OF_A_FILE)
        p = rng.beta(2, 5, m)
        y = (rng.random(m) < p**1.1).astype(np.int8)
        table = pa.table(
            {"y": y, "p": p, "shop": pa.array(rng.integers(0, 8, m).astype(np.int8))}
        )
        parquet.write_table(
            table, f"{folder}/{number:03d}.parquet", row_group_size=1_000_000
        )


HEADER = [
    "job",
    "rows",
    "cpu_ns_a_row",
    "wall_s",
    "megabytes",
    "times_reading",
    "same",
    "bar",
]

# -- jobs: each gets the files and returns (rows, answer) ------------------------------------------


def batches(files):
    from pyarrow.parquet import ParquetFile

    for file in files:
        with ParquetFile(file, buffer_size=2**20) as source:
            yield from source.iter_batches(BATCH, columns=["y", "p"])


def reading(files):
    return sum(batch.num_rows for batch in batches(files)), None


def summary(files, **options):
    from sklearn_calib.summary import summarize

    found = summarize(files, label="y", prob="p", **options)
    return found.n_samples, found


def in_turns(files):
    """Reading a file and summarising it, file by file: the ratio does not feel the neighbours."""
    from sklearn_calib.summary import CalibrationSummary

    found, spent, ratios = CalibrationSummary(), 0.0, []
    for file in files:
        start = time.process_time()
        reading([file])
        middle = time.process_time()
        found += summary([file])[1]
        spent += (end := time.process_time()) - middle
        ratios.append((end - middle) / (middle - start))
    return (
        found.n_samples,
        found,
        {"cpu": spent, "times_reading": float(np.median(ratios))},
    )


def groups(files):
    from sklearn_calib.summary import summarize

    found = sum(summarize(files, label="y", prob="p", by="shop").values())
    return found.n_samples, found


def duckdb_bins(files):
    return _duckdb(
        files,
        f"select {BINS} k, sum(p) p, sum(y) n1, count(*) n from scores group by k",
    )


def duckdb_keys(files):
    page = HERE.parents[1] / "doc" / "user_guide" / "large_data.rst"
    query = (
        page.read_text(encoding="utf-8")
        .split(".. code-block:: sql\n\n")[1]
        .split("\n\n..")[0]
    )
    return _duckdb(files, query)


def _duckdb(files, query):
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"create view scores as select y, p from read_parquet({files})")
    connection.execute(query).fetchnumpy()
    return None, None


def polars_bins(files):
    import polars as pl

    rows = pl.scan_parquet(files).group_by(
        (pl.col("p") * 15).floor().clip(upper_bound=14)
    )
    rows.agg(n=pl.len(), y=pl.col("y").sum(), q=pl.col("p").mean()).collect(
        engine="streaming"
    )
    return None, None


def torchmetrics_ece(files):
    import torch
    from torchmetrics.classification import BinaryCalibrationError

    torch.set_num_threads(1)
    metric, n = BinaryCalibrationError(n_bins=15), 0
    for batch in batches(files):
        p, y = (torch.from_numpy(batch[name].to_numpy().copy()) for name in ("p", "y"))
        metric.update(p, y.long())
        n += batch.num_rows
    metric.compute()
    return n, None


def river_log_loss(files):
    from river import metrics

    metric, n = metrics.LogLoss(), 0
    for batch in batches(files):
        for p, y in zip(batch["p"].to_pylist(), batch["y"].to_pylist(), strict=True):
            metric.update(bool(y), p)
        n += batch.num_rows
        if n > 1_000_000:
            return n, None
    return n, None


def dask_two_workers(files):
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.run(_warm)
        start, before = time.perf_counter(), sum(client.run(_cpu).values())
        found = summary(dd.read_parquet(files, columns=["y", "p"]))
        spent = sum(client.run(_cpu).values()) - before
        return *found, {"wall": time.perf_counter() - start, "cpu": spent}


def spark(files):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config(
        "spark.ui.enabled", "false"
    )
    session = session.config("spark.driver.memory", "2g").getOrCreate()

    def part(rows):
        from sklearn_calib.summary import CalibrationSummary

        found = CalibrationSummary()
        for batch in rows:
            found.update(batch["y"].to_numpy(), batch["p"].to_numpy())
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({"summary": [pickle.dumps(found)]})

    try:
        rows = session.read.parquet(*files).select("y", "p")
        start = time.perf_counter()
        parts = rows.mapInArrow(part, "summary binary").collect()
        found = sum(pickle.loads(row.summary) for row in parts)
        return found.n_samples, found, {"wall": time.perf_counter() - start}
    finally:
        session.stop()


JOBS = {
    "reading alone": (reading, 1.0),
    "summarize": (summary, 1.0),
    "summarize, each file after reading it alone": (in_turns, 1.0),
    "summarize by a column of 8 values": (groups, 0.25),
    "DuckDB, SQL, 15 bins": (duckdb_bins, 0.25),
    "DuckDB, SQL, keys of the summary": (duckdb_keys, 0.25),
    "polars, 15 bins": (polars_bins, 0.25),
    "torchmetrics BinaryCalibrationError": (torchmetrics_ece, 0.25),
    "river LogLoss, 1e6 rows": (river_log_loss, 0.01),
    "dask, 2 workers": (dask_two_workers, 1.0),
    "Spark mapInArrow, 2 threads": (spark, 0.25),
}


# -- one job in a process of its own ---------------------------------------------------------------


def _cpu():
    times = os.times()
    return times.user + times.system


def _warm():
    from sklearn_calib.summary import CalibrationSummary

    return CalibrationSummary().update([0, 1, 1], [0.1, 0.5, 0.7]).n_cells


def _memory(what):
    lines = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(lines.split(f"{what}:")[1].split()[0]) / 1e3


def run_job(name, folder, n):
    import pyarrow as pa
    import pyarrow.parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _warm()
    job, share = JOBS[name]
    files = sorted(glob(f"{folder}/*.parquet"))
    files = files[: max(1, round(share * len(files)))]
    expected = len(files) * min(n, ROWS_OF_A_FILE)
    for module in (
        "duckdb",
        "polars",
        "torch",
        "torchmetrics",
        "river",
        "dask",
        "pyspark",
    ):
        if name.lower().startswith(module[:5]):
            __import__(module)
    # the peak counts from here
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = _memory("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    rows, answer, *measured = job(files)
    row = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    if measured:
        row = {"cpu": float("nan"), "wall": row["wall"], **measured[0]}
    rows = expected if rows is None else rows
    peak = _memory("VmHWM")
    alone = answer is None or name == "summarize"
    same = "" if alone else answer == summary(files)[1]
    print(
        json.dumps({"rows": rows, **row, "megabytes": peak - before, "same": str(same)})
    )


def main():
    import runner

    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000
    table = []
    with tempfile.TemporaryDirectory() as folder:
        write_rows(folder, n)
        for name in JOBS:
            call = [sys.executable, __file__, "--job", name, folder, str(n)]
            found = []
            for _ in range(3 if name in ("reading alone", "summarize") else 1):
                out = subprocess.run(call, capture_output=True, text=True)
                if out.returncode:
                    print(f"skipped {name}: {out.stderr.strip().splitlines()[-1]}")
                    break
                found.append(json.loads(out.stdout.strip().splitlines()[-1]))
            else:
                best = min(
                    found, key=lambda row: row["cpu"] if row["cpu"] > 0 else row["wall"]
                )
                table.append(_row(name, best, table))
                print(table[-1])
                runner.write(HERE / "results.csv", table, HEADER)


def _row(name, found, table):
    cpu = found["cpu"] / found["rows"] * 1e9
    row = {"job": name, "rows": f"{found['rows']:.3g}", "cpu_ns_a_row": f"{cpu:.0f}"}
    row |= {"wall_s": f"{found['wall']:.1f}", "megabytes": f"{found['megabytes']:.0f}"}
    row["same"] = found["same"]
    times = found.get(
        "times_reading", cpu / float(table[0]["cpu_ns_a_row"]) if table else 1.0
    )
    row["times_reading"] = f"{times:.1f}"
    row["bar"] = (
        "<= 5 times reading, <= 200 MB" if name.startswith("summarize, each") else ""
    )
    return row


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        run_job(*sys.argv[2:4], int(sys.argv[4]))
    else:
        main()
