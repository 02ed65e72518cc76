"""Summaries: speed of rows and merges, memory of a stream, size of the file, errors.

``python benchmarks/run.py scale/summary [rows of the stream]``; CPU seconds of one
thread, ratios of runs in turn, since walls depend on what else runs.
"""

import pickle
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import runner

from sklearn_calib.metrics import all_metrics, log_loss
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.summary import CalibrationSummary

HERE = Path(__file__).parent
N = 2_000_000
LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "beta(.1, 20)": lambda rng, n: rng.beta(0.1, 20, n),
    "9 atoms and uniform": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.integers(1, 10, n) / 10, rng.random(n)
    ),
    "rates of 1e-6": lambda rng, n: np.exp(rng.normal(-13.8, 1, n)),
    "float32 beta(2, 5)": lambda rng, n: rng.beta(2, 5, n).astype(np.float32),
    "saturated": lambda rng, n: np.select(
        [rng.random(n) < 0.1, rng.random(n) < 0.1],
        [0.0, 1.0],
        1 / (1 + np.exp(-rng.normal(0, 20, n))),
    ),
}
MEASURES = {  # name: (options, bar)
    "expected_calibration_error, 15 equal widths": ({"strategy": "uniform"}, 1e-12),
    "expected_calibration_error": ({}, 5e-6),
    "smooth_calibration_error": ({}, 5e-7),
    "lower_distance_to_calibration": ({}, 5e-7),
    "isotonic_refinement_brier": ({}, None),
    "kernel_calibration_error": ({}, None),
    "convolved_calibration_error": ({}, None),
}


def rows_of(law, n, seed=0):
    rng = np.random.default_rng(seed)
    p = LAWS[law](rng, n)
    y = (rng.random(n) < p.astype(float) ** 1.1).astype(int)
    y[p.argmax()] = 1  # rates of 1e-6 may have no event at all
    return y, p


def numpy_ece(y, p):
    """The 15 bins of equal width that everybody writes."""
    bins = np.searchsorted(np.arange(1, 15) / 15, p)
    return np.abs(np.bincount(bins, weights=y - p, minlength=15)).sum() / len(p)


def cpu(*functions, times=5):
    """Median CPU seconds of each, in turns."""
    seconds = [[] for _ in functions]
    for _ in range(times):
        for function, own in zip(functions, seconds, strict=True):
            start = time.process_time()
            function()
            own.append(time.process_time() - start)
    return np.median(seconds, axis=1)


def updates():
    for law in LAWS:
        y, p = rows_of(law, N)
        for max_cells, bar in ((65_536, 3), (4096, 1.5)):
            summary = CalibrationSummary(max_cells).update(y, p)
            ours, ece = cpu(partial(summary.update, y, p), partial(numpy_ece, y, p))
            yield {
                "job": f"update, max_cells={max_cells}, {law}",
                "ns_per_row": f"{1e9 * ours / N:.1f}",
                "numpy_ece_ns": f"{1e9 * ece / N:.1f}",
                "ratio": f"{ours / ece:.2f}",
                "bar": f"<= {bar} x numpy's ECE",
            }
    y, p = rows_of("uniform", N)
    weight = np.random.default_rng(1).random(N)
    forms = {
        "with weights": (y, p, weight),
        "with counts": (y, p, None, np.ones(N, dtype=int)),
        "of two columns": (y, np.column_stack([1 - p, p])),
        "of float16": (y, p.astype(np.float16)),
    }
    for name, columns in forms.items():
        summary = CalibrationSummary().update(*columns)
        (ours,) = cpu(lambda s=summary, c=columns: s.update(*c))
        yield {"job": f"update {name}, uniform", "ns_per_row": f"{1e9 * ours / N:.1f}"}


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


def stream(n, step=1_000_000):
    """Memory after 1 % of the rows and the most after that; CPU of `update` alone."""
    rng, summary = np.random.default_rng(0), CalibrationSummary()
    before, most, seconds = None, 0, 0.0
    for start in range(0, n, step):
        p = rng.random(min(step, n - start))
        y = rng.random(len(p)) < p
        began = time.process_time()
        summary.update(y, p)
        seconds += time.process_time() - began
        if start >= n // 100:
            before = anonymous_mb() if before is None else before
            most = max(most, anonymous_mb())
    return {
        "job": f"stream of {n:,} rows in batches of {step:,}",
        "ns_per_row": f"{1e9 * seconds / n:.1f}",
        "cpu_s": f"{seconds:.2f}",
        "grown_mb": f"{most - before:.1f}",
        "bar": "constant memory",
    }


def merges():
    parts = [
        CalibrationSummary().update(*rows_of("float32 beta(2, 5)", N, i))
        for i in (1, 2)
    ]
    cells = [part.n_cells for part in parts]
    made = []

    def prepare():
        made[:] = [parts[0].copy()]

    seconds = []
    for _ in range(20):
        prepare()
        start = time.process_time()
        made[0].merge(parts[1])
        seconds.append(time.process_time() - start)
    yield {
        "job": f"merge of {cells[0]} and {cells[1]} cells",
        "cpu_s": f"{np.median(seconds):.4f}",
        "bar": "<= 0.005 s",
    }
    (dump,) = cpu(lambda: pickle.dumps(parts[0]))
    size = len(pickle.dumps(parts[0]))
    job = f"pickle of {cells[0]} cells"
    yield {"job": job, "cpu_s": f"{dump:.4f}", "kilobytes": f"{size / 1e3:.0f}"}
    hours = [
        CalibrationSummary().update(*rows_of("uniform", 3000, i)) for i in range(720)
    ]
    (month,) = cpu(lambda: sum(hours), times=3)
    yield {"job": "sum of 720 summaries of 3000 rows", "cpu_s": f"{month:.3f}"}


def files():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "summary.parquet"
        for law in LAWS:
            for n in (1_000_000, 4_000_000):
                summary = CalibrationSummary().update(*rows_of(law, n))
                write, read = cpu(
                    lambda s=summary: s.to_parquet(path),
                    lambda: CalibrationSummary.from_parquet(path),
                )
                yield {
                    "job": f"file of {summary.n_cells} cells, {n:,} rows, {law}",
                    "cpu_s": f"{write:.3f} written, {read:.3f} read",
                    "kilobytes": f"{path.stat().st_size / 1e3:.0f}",
                    "bar": "<= 300 kB",
                }


def errors():
    for law in LAWS:
        y, p = rows_of(law, 1_000_000)
        p = p.astype(float)
        summary = CalibrationSummary().update(y, p)
        for name, (options, bar) in MEASURES.items():
            measure = all_metrics()[name.partition(",")[0]]
            value = summary.measure(measure.spec.name, **options)
            yield {
                "job": f"{name}, {law}",
                "error": f"{abs(value - measure(y, p, **options)):.1e}",
                "bar": "" if bar is None else f"<= {bar:g}",
            }
        of_rows, of_cells = PlattScaling().fit(p, y), summary.fit("platt")
        slopes = [m.slope_ for m in (of_rows, of_cells)]
        losses = [log_loss(y, m.predict_proba(p)) for m in (of_rows, of_cells)]
        bar = 1e-4 if law.startswith("rates") else 1e-5
        error = abs(slopes[1] / slopes[0] - 1)
        yield {
            "job": f"slope of Platt, relative, {law}",
            "error": f"{error:.1e}",
            "bar": f"<= {bar:g}",
        }
        error = abs(losses[1] - losses[0])
        yield {
            "job": f"excess log loss of Platt, {law}",
            "error": f"{error:.1e}",
            "bar": "<= 1e-9",
        }


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000
    # compiles
    CalibrationSummary().update([0, 1], [0.1, 0.2], [1.0, 2.0]).update(
        [0, 1], [0.1, 0.2]
    )
    CalibrationSummary().update([0, 1], [0.1, 0.2])
    rows = []
    for job in (updates(), [stream(n)], merges(), files(), errors()):
        for row in job:
            print({name: value for name, value in row.items() if value}, flush=True)
            rows.append(row)
    numbers = ["ns_per_row", "numpy_ece_ns", "ratio", "cpu_s", "grown_mb", "kilobytes"]
    runner.write(HERE / "summary.csv", rows, ["job", *numbers, "error", "bar"])


if __name__ == "__main__":
    main()
