"""A million rows through every recalibrator and measure: time and memory; and the import."""

import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import runner

from sklearn_calib import canonical_proba
from sklearn_calib.decomposition import refinement_error
from sklearn_calib.metrics import all_metrics, reliability_curve
from sklearn_calib.recalibrators import (
    RestrictedPolynomialRegression,
    TemperatureScaling,
    all_recalibrators,
)

HERE = Path(__file__).parent
N = 1_000_000
BARS = {
    "near_isotonic": "<= 2 s",
    "bbq": "<= 5 s",
    "enir": "<= 3 s",
    "venn_abers": "<= 2 s",
}


def timed(function):
    """Median seconds of 5 runs, and the peak of newly allocated memory in one more."""
    function()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"seconds": f"{np.median(seconds):.4f}", "peak_mb": f"{peak / 1e6:.0f}"}


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


def main():
    rng = np.random.default_rng(0)
    p = rng.random(N)
    y = (rng.random(N) < p**1.5).astype(int)
    rows = [import_ratio()]
    print(rows[0])
    for name, cls in all_recalibrators().items():
        job = f"{name}: fit and predict, n = 1e6, two classes"
        row = {"job": job, "bar": BARS.get(name, "")}
        rows.append(row | timed(lambda cls=cls: cls().fit(p, y).predict_proba(p)))
        print(rows[-1])
    for name, function in all_metrics().items():
        rows.append({"job": f"{name}, n = 1e6", **timed(lambda f=function: f(y, p))})
        print(rows[-1])
    z = 2 * rng.normal(size=(10_000, 10))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    start = TemperatureScaling().fit(canonical_proba(z, kind="logits"), labels)
    near = 1.001 * start.inverse_temperature_
    job = "refinement error of an epoch, logits, n = 1e4, k = 10, warm"
    row = {"job": job, "bar": "<= 0.001 s"}
    row |= timed(lambda: refinement_error(labels, z, kind="logits", start=near))
    rows.append(row)
    print(rows[-1])
    some, labels = p[:38_400], y[:38_400]
    polynomial = RestrictedPolynomialRegression(degree=16)
    rows.append(
        {
            "job": "restricted polynomial of degree 16, fit, n = 38400",
            "bar": "<= 0.015 s",
            **timed(lambda: polynomial.fit(some, labels)),
        }
    )
    job = "reliability curve without bands, n = 1e6"
    rows.append({"job": job, **timed(lambda: reliability_curve(y, p, n_resamples=0))})
    runner.write(
        HERE / "results.csv", rows, ["job", "seconds", "peak_mb", "ratio", "bar"]
    )


if __name__ == "__main__":
    main()
