"""Logits on disk: temperature and vector scaling block by block, beside reading the file alone.

``python benchmarks/run.py scale/logits [rows]`` writes files of 4 kB a row into a
temporary folder (TMPDIR chooses where): 1e6 rows of 1000 classes need 8.4 GB there for
a while. CPU seconds of one thread, since walls depend on what else runs.
"""

import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import runner

from sklearn_calib import canonical_proba
from sklearn_calib.recalibrators import TemperatureScaling, VectorScaling

HERE = Path(__file__).parent
BLOCK = 10_000


def write_logits(path, n, k):
    """Logits of a model that is too confident, in a memory map of float32; and labels."""
    rng = np.random.default_rng(0)
    z = np.memmap(path, np.float32, "w+", shape=(n, k))
    y = rng.integers(0, k, n)
    for start in range(0, n, BLOCK):
        part = 2.5 * rng.standard_normal(
            (len(y[start : start + BLOCK]), k), dtype=np.float32
        )
        rows = np.arange(len(part))
        part[rows, y[start : start + BLOCK]] += rng.normal(8, 4, len(part)).astype(
            np.float32
        )
        z[start : start + BLOCK] = part
    z.flush()
    return np.memmap(path, np.float32, "r", shape=(n, k)), y


def cut(z, y, step=BLOCK):
    return [(z[i : i + step], y[i : i + step]) for i in range(0, len(z), step)]


def anonymous_mb():
    """Memory of this process without pages of files, in MB; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return (
        next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
        / 1024
    )


def timed(job, function, **more):
    """One row: CPU seconds, and the peak of what was newly allocated, in one call each."""
    start, cpu = time.perf_counter(), time.process_time()
    result = function()
    row = {"job": job, "cpu_s": f"{time.process_time() - cpu:.2f}"}
    row["seconds"] = f"{time.perf_counter() - start:.2f}"
    tracemalloc.start()
    before = anonymous_mb()
    function()
    row["peak_mb"] = f"{tracemalloc.get_traced_memory()[1] / 1e6:.0f}"
    row["grown_mb"] = f"{anonymous_mb() - before:.0f}"
    tracemalloc.stop()
    return result, row | {name: text(result) for name, text in more.items()}


def read_alone(blocks):
    """The largest of all logits: every byte is read, and nothing else is done."""
    return max(float(z.max()) for z, _ in blocks)


def exact(blocks, start):
    """The optimum to the last digits: every pass starts from the last result."""
    for _ in range(3):
        start = (
            TemperatureScaling().fit_blocks(blocks, start=start).inverse_temperature_
        )
    return start


def mean_loss(ts, blocks):
    """Mean log loss of a fitted temperature on all rows."""
    total = rows = 0.0
    for z, y in blocks:
        d = np.asarray(z, dtype=np.float64) * ts.inverse_temperature_
        d -= d.max(axis=1, keepdims=True)
        total += float((np.log(np.exp(d).sum(axis=1)) - d[np.arange(len(y)), y]).sum())
        rows += len(y)
    return total / rows


def temperature(n, k, folder):
    z, y = write_logits(folder / "logits", n, k)
    blocks, size = cut(z, y), f"({n:,}, {k})"
    TemperatureScaling().fit_blocks(blocks[:1])  # compiles
    read_alone(blocks)
    yield timed(f"reading {size} alone", lambda: read_alone(blocks))[1]
    ts, row = timed(
        f"temperature, fit_blocks, {size}",
        lambda: TemperatureScaling().fit_blocks(blocks),
        passes=lambda ts: ts.n_iter_,
    )
    best = exact(blocks, ts.inverse_temperature_)
    row |= {
        "read": f"{ts.n_iter_ + 20_000 / n:.2f}",
        "difference": f"{abs(ts.inverse_temperature_ / best - 1):.1e}",
        "bar": "read <= 1.1 times, relative error <= 1e-6",
    }
    yield row
    rows = np.sort(np.random.default_rng(1).permutation(n)[:50_000])
    sample = canonical_proba(z[rows], kind="logits"), y[rows]
    ts_some, row = timed(
        "temperature, fit, 50,000 of these rows",
        lambda: TemperatureScaling().fit(*sample),
    )
    excess = mean_loss(ts_some, blocks) - mean_loss(ts, blocks)
    yield row | {
        "difference": f"{excess:.1e}",
        "bar": "log loss above that of all rows, 1e-5 nats",
    }
    p = np.memmap(folder / "proba", np.float32, "w+", shape=(n, k))
    for start in range(0, n, BLOCK):
        p[start : start + BLOCK] = canonical_proba(
            z[start : start + BLOCK], kind="logits"
        )
    p.flush()
    p = np.memmap(folder / "proba", np.float32, "r", shape=(n, k))
    mapped, row = timed(
        f"temperature, fit on a memory map of probabilities, {size}",
        lambda: TemperatureScaling().fit(p, y),
        passes=lambda ts: ts.n_iter_,
    )
    difference = abs(mapped.inverse_temperature_ / best - 1)
    yield row | {
        "difference": f"{difference:.1e}",
        "bar": "no array of the file's size",
    }


def vector(n, k, folder):
    z, y = write_logits(folder / "fewer", n, k)
    blocks, size = cut(z, y), f"({n:,}, {k})"
    VectorScaling().fit_blocks(blocks[:1])
    yield timed(f"reading {size} alone", lambda: read_alone(blocks))[1]
    found, row = timed(
        f"vector, fit_blocks, {size}",
        lambda: VectorScaling().fit_blocks(blocks),
        passes=lambda v: v.n_iter_,
    )
    best = VectorScaling().fit_blocks(blocks, tol=1e-12)
    bar = f"objective above the smallest, k / (10 n) = {k / 10 / n:.0e}"
    yield row | {"difference": f"{found.objective_ - best.objective_:.1e}", "bar": bar}


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for job in (temperature(n, 1000, Path(folder)), vector(n, 100, Path(folder))):
            for row in job:
                print({name: value for name, value in row.items() if value}, flush=True)
                rows.append(row)
    columns = [
        "job",
        "cpu_s",
        "seconds",
        "passes",
        "read",
        "difference",
        "peak_mb",
        "grown_mb",
    ]
    runner.write(HERE / "logits.csv", rows, [*columns, "bar"])


if __name__ == "__main__":
    main()
