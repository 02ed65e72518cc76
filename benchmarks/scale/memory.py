"""Memory that calls need beside their input, in arrays of the input's size.

The peak of what is newly allocated (`tracemalloc`), after one call that compiles, over
the size of scores and labels: 16 bytes a row for two classes, 88 for ten.
``run.py scale/memory WORD ...`` measures the jobs whose names contain one of the words
and keeps the other rows. Column ``before`` has what commit 94f4a06e needed.
"""

import csv
import sys
import tracemalloc
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import runner

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import decision_curve, risk_coverage_curve
from sklearn_calib.decomposition import (
    decompose_loss,
    integrated_calibration_index,
    variational_calibration_error,
)
from sklearn_calib.inference import (
    calibration_test,
    confidence_interval,
    validation_summary,
)
from sklearn_calib.metrics import all_metrics
from sklearn_calib.recalibrators import all_recalibrators
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

TABLE = Path(__file__).parent / "memory.csv"
SIZES = {2: 100_000, 10: 20_000}
BAR = "<= 12"
MOST_CPU_SECONDS = 30


def jobs(n_classes):
    """Pairs: a name, what is called."""
    proba, y = make_overconfident(n_classes, SIZES[n_classes])
    proba = np.array(proba)
    if n_classes == 2:
        proba = np.ascontiguousarray(proba[:, 1])
    for name, kind in all_recalibrators().items():
        yield f"{name}: fit", lambda kind=kind: kind().fit(proba, y)
    for name, measure in all_metrics().items():
        yield name, partial(measure, y, proba)
    functions = [
        calibration_report,
        calibration_test,
        decompose_loss,
        variational_calibration_error,
        risk_coverage_curve,
    ]
    if n_classes == 2:
        functions += [decision_curve, integrated_calibration_index, validation_summary]
    for function in functions:
        yield function.__name__, partial(function, y, proba)
    for name in ("smooth_calibration_error", "expected_calibration_error", "log_loss"):
        yield (
            f"confidence_interval: {name}",
            partial(confidence_interval, y, proba, name),
        )
    yield "a summary", lambda: CalibrationSummary().update(y, proba)


def measure_peak(call):
    """Return the peak of newly allocated memory in bytes."""
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main():
    words = sys.argv[1:]
    rows = {}
    if TABLE.exists():
        with open(TABLE, encoding="utf-8", newline="") as file:
            rows = {(row["job"], row["classes"]): row for row in csv.DictReader(file)}
    for n_classes, n in SIZES.items():
        size = 8 * n * (1 + (n_classes if n_classes > 2 else 1))
        for job, call in jobs(n_classes):
            if words and not any(word in job for word in words):
                continue
            row = {"job": job, "classes": str(n_classes), "rows": n, "bar": BAR}
            row["before"] = rows.get((job, row["classes"]), {}).get("before", "")
            try:
                with warnings.catch_warnings(), runner.at_most(MOST_CPU_SECONDS):
                    warnings.simplefilter("ignore")
                    row["arrays"] = f"{measure_peak(call) / size:.1f}"
            except TimeoutError as error:
                row["note"] = str(error)
            except (ValueError, TypeError) as error:
                print(f"skipped {job}, {n_classes} classes: {error}")
                continue
            print(row, flush=True)
            rows[job, row["classes"]] = row
    runner.write(
        TABLE,
        list(rows.values()),
        ["job", "classes", "rows", "before", "arrays", "bar", "note"],
    )


if __name__ == "__main__":
    main()
