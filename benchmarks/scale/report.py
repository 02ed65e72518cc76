"""The main jobs: CPU seconds of reports, tests and commands, beside reports whose rows are drawn.

``python benchmarks/run.py scale/report``; CPU seconds of one thread, medians of five
runs after one that compiles, since walls depend on what else runs.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import runner

from sklearn_calib.inference import (
    calibration_test,
    simulate_bootstrap_distribution,
    simulate_null_distribution,
)
from sklearn_calib.metrics import (
    all_metrics,
    lower_distance_to_calibration,
    validate_predictions,
)
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

HERE = Path(__file__).parent
DRAWN = 5  # resamples of rows of each kind that are timed; they are all alike
ROWS_DRAWN = 37  # the same, of tests
MEASURES = [f for f in all_metrics().values() if f.spec.in_report]


def rows_of(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    if n_classes == 2:
        p = rng.random(n)
        return (rng.random(n) < p**1.2).astype(int), p
    p = rng.dirichlet(np.ones(n_classes), n)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    return np.minimum(y, n_classes - 1), p


def evaluate(case):
    return [measure.evaluate(case) for measure in MEASURES]


def drawing_rows(y, p):
    """CPU seconds of 200 + 200 resamples of rows, from a few."""
    case = validate_predictions(y, p)
    evaluate(case)
    start = time.process_time()
    for distribution in (simulate_bootstrap_distribution, simulate_null_distribution):
        distribution(case, evaluate, DRAWN)
    return (time.process_time() - start) * 200 / DRAWN


def reports():
    for n, n_classes, bar in (
        (10**4, 2, "<= 0.4 s"),
        (10**6, 2, "<= 3 s"),
        (3 * 10**6, 2, "<= 3 s"),
        (10**4, 10, "<= 2 s"),
    ):
        y, p = rows_of(n, n_classes)
        ours = runner.cpu_seconds(
            partial(calibration_report, y, p), runs=5 if n < 10**5 else 3
        )
        row = {"job": f"report, {n:.0e} rows, {n_classes} classes, 200 + 200 resamples"}
        row |= {"cpu_seconds": f"{ours:.3f}", "bar": bar}
        if n < 3 * 10**6:
            theirs = drawing_rows(y, p)
            row |= {
                "beside": "the same by drawing rows",
                "beside_seconds": f"{theirs:.1f}",
            }
            row["ratio"] = f"{theirs / ours:.0f}x"
        yield row
    y, p = rows_of(3 * 10**6, 2)
    summary = CalibrationSummary().update(y, p)
    seconds = runner.cpu_seconds(partial(calibration_report, summary), runs=3)
    yield {"job": "report of a summary of 3e+06 rows", "cpu_seconds": f"{seconds:.3f}"}


def distance():
    for n in (10**4, 10**6):
        y, p = rows_of(n, 2)
        case = validate_predictions(y, p)
        case.problems()[0].cells  # noqa: B018  the scores are sorted once for all resamples
        jobs = [
            partial(lower_distance_to_calibration.evaluate, case, resolution=r)
            for r in (None, 1e-3)
        ]
        ours, uniform = (runner.cpu_seconds(job, runs=9) for job in jobs)
        yield {
            "job": f"lower distance of sorted rows, {n:.0e}",
            "cpu_seconds": f"{ours:.5f}",
            "beside": "uniform grid of 1e-3",
            "beside_seconds": f"{uniform:.5f}",
            "ratio": f"{uniform / ours:.1f}x",
        }


def tests():
    """Tests by each measure, beside its evaluation on rows whose labels are drawn."""
    y, p = rows_of(10**4, 2)
    case = validate_predictions(y, p)
    for name, measure in all_metrics().items():
        bar = "" if name == "lower_distance_to_calibration" else "<= 0.6 s"
        theirs = runner.cpu_seconds(
            partial(simulate_null_distribution, case, measure.evaluate, ROWS_DRAWN),
            runs=3,
        )
        theirs *= 999 / ROWS_DRAWN
        ours = runner.cpu_seconds(partial(calibration_test, y, p, statistic=name))
        row = {"job": f"calibration_test by {name}, 1e+04 rows, 999 draws", "bar": bar}
        row |= {"cpu_seconds": f"{ours:.3f}", "ratio": f"{theirs / ours:.1f}x"}
        yield row | {
            "beside": "the same by drawing rows",
            "beside_seconds": f"{theirs:.3f}",
        }
    y, p = rows_of(10**6, 2)
    seconds = runner.cpu_seconds(partial(calibration_test, y, p), runs=1)
    job = "calibration_test by smooth_calibration_error, 1e+06 rows, 999 draws"
    yield {"job": job, "cpu_seconds": f"{seconds:.3f}"}


def command(*arguments, **variables):
    """CPU seconds of the command in a process of its own, with all that it imports."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "sklearn_calib", *arguments]
    subprocess.run(
        line, check=True, capture_output=True, env={**os.environ, **variables}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands():
    """The commands ``audit``, ``fit`` and ``demo``, from the start of Python to its end."""
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        out = ["--out", str(place / "report.html")]
        y, p = rows_of(3 * 10**6, 2)
        pd.DataFrame({"y": y, "p": p}).to_parquet(place / "rows.parquet")
        table = [str(place / "rows.parquet"), "--label", "y", "--prob", "p"]
        audit, fit = (
            ["audit", *table, *out],
            ["fit", *table, "--out", str(place / "map.json")],
        )
        for job, arguments, bar in (
            ("audit of 3e+06 rows of parquet", audit, "<= 6 s"),
            ("fit of 3e+06 rows of parquet", fit, "<= 1.3 times audit"),
            ("demo, warm", ["demo", *out], "<= 6 s"),
        ):
            command(*arguments)
            seconds = np.median([command(*arguments) for _ in range(5)])
            yield {"job": job, "cpu_seconds": f"{seconds:.2f}", "bar": bar}
        seconds = command("demo", *out, NUMBA_CACHE_DIR=str(place / "empty"))
        job = "demo, cold: nothing is compiled yet"
        yield {"job": job, "cpu_seconds": f"{seconds:.2f}", "bar": "<= 15 s"}


def main():
    columns = ["job", "cpu_seconds", "beside", "beside_seconds", "ratio", "bar"]
    rows = []
    for part in (reports, distance, tests, commands):
        for row in part():
            print(row, flush=True)
            rows.append(row)
    runner.write(HERE / "report.csv", rows, columns)


if __name__ == "__main__":
    main()
