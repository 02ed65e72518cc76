"""A million rows through every recalibrator and measure: time and memory; and the import.

``run.py scale WORD ...`` measures the jobs whose names contain one of the words and
keeps the other rows.
"""

import csv
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import runner

from sklearn_calib import canonical_proba
from sklearn_calib.decisions import risk_coverage_curve
from sklearn_calib.decomposition import refinement_error
from sklearn_calib.metrics import all_metrics, reliability_curve
from sklearn_calib.recalibrators import (
    RestrictedPolynomialRegression,
    TemperatureScaling,
    all_recalibrators,
)

TABLE = Path(__file__).parent / "results.csv"
N = 1_000_000
BARS = {
    "near_isotonic": "<= 2 s",
    "bbq": "<= 5 s",
    "enir": "<= 3 s",
    "venn_abers": "<= 2 s",
}


def timed(function):
    """Median of the processor's time, and the peak of new memory in one more run.

    Of 5 runs after one that is not counted, or of 2 where one takes longer than 2 s.
    """
    spent = []
    for run in range(6):
        start = time.process_time()
        function()
        seconds = time.process_time() - start
        if run:
            spent.append(seconds)
        if len(spent) == 2 and seconds > 2:
            break
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"seconds": f"{np.median(spent):.4f}", "peak_mb": f"{peak / 1e6:.0f}"}


def import_ratio():
    """`import sklearn_calib` beside `import sklearn.calibration`, in turns, medians of 11."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    seconds = {"sklearn.calibration": [], "sklearn_calib": []}
    for _ in range(11):
        for module, values in seconds.items():
            out = subprocess.run(
                [sys.executable, "-c", code.format(module)],
                capture_output=True,
                text=True,
            )
            values.append(float(out.stdout))
    ours, theirs = (
        np.median(seconds[m]) for m in ("sklearn_calib", "sklearn.calibration")
    )
    return {
        "job": "import, ratio to sklearn.calibration",
        "seconds": f"{ours:.3f}",
        "ratio": f"{ours / theirs:.3f}",
        "bar": "<= 1.15",
    }


def jobs():
    """Triples: a name, a bar, what is called."""
    rng = np.random.default_rng(0)
    p = rng.random(N)
    y = (rng.random(N) < p**1.5).astype(int)
    for name, cls in all_recalibrators().items():
        job = f"{name}: fit and predict, n = 1e6, two classes"
        yield (
            job,
            BARS.get(name, ""),
            lambda cls=cls: cls().fit(p, y).predict_proba(p),
        )
    for name, function in all_metrics().items():
        yield f"{name}, n = 1e6", "", partial(function, y, p)
    yield "risk_coverage_curve, n = 1e6", "", partial(risk_coverage_curve, y, p)
    z = 2 * rng.normal(size=(10_000, 10))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    start = TemperatureScaling().fit(canonical_proba(z, kind="logits"), labels)
    near = 1.001 * start.inverse_temperature_
    job = "refinement error of an epoch, logits, n = 1e4, k = 10, warm"
    refinement = partial(refinement_error, labels, z, kind="logits", start=near)
    yield job, "<= 0.001 s", refinement
    polynomial = RestrictedPolynomialRegression(degree=16)
    job = "restricted polynomial of degree 16, fit, n = 38400"
    yield job, "<= 0.015 s", partial(polynomial.fit, p[:38_400], y[:38_400])
    job = "reliability curve without bands, n = 1e6"
    yield job, "", partial(reliability_curve, y, p, n_resamples=0)


def main():
    words = sys.argv[1:]
    with open(TABLE, encoding="utf-8", newline="") as file:
        known = {row["job"]: row for row in csv.DictReader(file)}
    job = "import, ratio to sklearn.calibration"
    chosen = not words or any(word in job for word in words)
    rows = [import_ratio() if chosen else known[job]]
    for job, bar, call in jobs():
        row = {"job": job, "bar": bar}
        if words and not any(word in job for word in words):
            rows += [known[job]] if job in known else []
            continue
        try:
            rows.append(row | timed(call))
        except ValueError as error:
            print(f"skipped {job}: {error}")
            continue
        print(rows[-1], flush=True)
    runner.write(TABLE, rows, ["job", "seconds", "peak_mb", "ratio", "bar"])


if __name__ == "__main__":
    main()
