"""Temperature of tensors: fit and predict beside scikit-learn's own and probmetrics'.

``python benchmarks/run.py scale/tensors [rows [classes]]``, with torch and probmetrics installed;
by default 100,000 rows of 1000 logits in float32, 400 MB. One thread of the CPU. ``peak`` is the
largest resident memory of a call beyond what there was before, in units of the logits, by Linux.
"""

import logging
import os
import sys
import time
from functools import partial
from pathlib import Path

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import runner
import sklearn
import torch
from sklearn.calibration import _TemperatureScaling

from sklearn_calib import canonical_proba
from sklearn_calib.recalibrators import TemperatureScaling

HERE = Path(__file__).parent
COLUMNS = ["job", "cpu_s", "ratio", "peak", "temperature", "loss", "note"]


def problem(n, k):
    """Logits of a model that is too confident, in place, and labels."""
    rng = torch.Generator().manual_seed(0)
    z = torch.empty((n, k)).normal_(0, 2.5, generator=rng)
    y = torch.randint(0, k, (n,), generator=rng)
    z[torch.arange(n), y] += 8 + 4 * torch.randn(n, generator=rng)
    return z, y


def resident(name):
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def measured(job, function, size):
    """A row with the CPU seconds of one call and its peak of memory, and what it returns."""
    torch.set_num_threads(1)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
    before, start = resident("VmRSS"), time.process_time()
    result = function()
    seconds, peak = time.process_time() - start, (resident("VmHWM") - before) / size
    row = {"job": job, "cpu_s": f"{seconds:.2f}", "peak": f"{peak:.2f}"}
    return row, result


def ours(z, y, classes):
    held = canonical_proba(z, kind="logits")
    fit = partial(TemperatureScaling().fit, held, y, classes=classes)
    return fit, lambda m: m.predict_proba(held), lambda m: m.temperature_


def theirs(z, y, classes):
    return (
        partial(_TemperatureScaling().fit, z, y),
        lambda m: m.predict(z),
        lambda m: 1 / float(m.beta_),
    )


def probmetrics(z, y, classes):
    from probmetrics.calibrators import get_calibrator
    from probmetrics.distributions import CategoricalLogits

    logging.disable(logging.INFO)
    calibrator = get_calibrator("temp-scaling", calibrate_with_mixture=False)
    given = CategoricalLogits(z)

    def fit():
        calibrator.fit_torch(given, y)
        return calibrator

    return fit, lambda m: m.predict_proba_torch(given).get_probs(), lambda m: float("nan")


def mean_loss(proba, y):
    """Mean log loss, of slices of rows."""
    total = 0.0
    for start in range(0, len(y), 1000):
        part = proba[start : start + 1000].double()
        total -= float(part[torch.arange(len(part)), y[start : start + 1000]].log().sum())
    return total / len(y)


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000
    k = int(float(sys.argv[2])) if len(sys.argv) > 2 else 1000
    sklearn.set_config(array_api_dispatch=True)
    (z, y), classes, rows = problem(n, k), np.arange(k), []
    TemperatureScaling().fit(canonical_proba(z[:3000], kind="logits"), y[:3000], classes=classes)
    base = {}
    for name, make in {
        "sklearn_calib": ours,
        "scikit-learn": theirs,
        "probmetrics": probmetrics,
    }.items():
        try:
            fit, predict, temperature = make(z, y, classes)
            fitted, method = measured(f"{name}: fit ({n:,}, {k})", fit, 4 * n * k)
            applied, proba = measured(
                f"{name}: predict ({n:,}, {k})", partial(predict, method), 4 * n * k
            )
        except ImportError as error:
            print(f"skipped {name}: {error}")
            continue
        fitted["temperature"] = f"{temperature(method):.6f}"
        applied["loss"] = f"{mean_loss(proba, y):.8f}"
        del proba
        for what, row in (("fit", fitted), ("predict", applied)):
            base.setdefault(what, float(row["cpu_s"]))
            row["ratio"] = f"{float(row['cpu_s']) / base[what]:.1f}"
            row["note"] = "peak <= 1.5" if name == "sklearn_calib" else ""
            print(row, flush=True)
            rows.append(row)
        runner.write(HERE / "tensors.csv", rows, COLUMNS)  # what there is, if a peer is stopped


if __name__ == "__main__":
    main()
