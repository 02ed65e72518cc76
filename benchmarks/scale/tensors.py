"""Temperature of tensors: fit and predict beside scikit-learn's own and probmetrics'.

``python benchmarks/run.py scale/tensors [rows [classes [rounds]]]``, with torch and
probmetrics installed; by default 100,000 rows of 1000 logits in float32, 400 MB, and
three rounds in which the methods take turns in one process. One thread of the CPU.
``cpu_s`` is the median; ``peak`` is the largest resident memory of any call beyond what
there was before, in units of the logits, by Linux.
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


def measured(function, size):
    """CPU seconds of one call, its peak of memory in units of `size`, and what it returns."""
    torch.set_num_threads(1)
    # the peak begins anew
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before, start = resident("VmRSS"), time.process_time()
    result = function()
    return time.process_time() - start, (resident("VmHWM") - before) / size, result


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

    return (
        fit,
        lambda m: m.predict_proba_torch(given).get_probs(),
        lambda m: 1 / m.invtemp_,
    )


def mean_loss(proba, y):
    """Mean log loss, of slices of rows."""
    total = 0.0
    for start in range(0, len(y), 1000):
        part = proba[start : start + 1000].double()
        total -= float(
            part[torch.arange(len(part)), y[start : start + 1000]].log().sum()
        )
    return total / len(y)


def one_round(make, z, y, classes):
    """(CPU seconds, peak, answer) of the fit and of the prediction."""
    fit, predict, temperature = make(z, y, classes)
    *spent, method = measured(fit, z.nbytes)
    *more, proba = measured(partial(predict, method), z.nbytes)
    return (*spent, f"{temperature(method):.6f}"), (*more, f"{mean_loss(proba, y):.8f}")


def table(found, n, k):
    """Rows of the table; ratios to the first method, by medians of the rounds."""
    for name, both in found.items():
        for place, what in enumerate(("fit", "predict")):
            spent = [turn[place] for turn in both]
            base = [turn[place][0] for turn in next(iter(found.values()))]
            yield {
                "job": f"{name}: {what} ({n:,}, {k})",
                "cpu_s": f"{np.median([s for s, _, _ in spent]):.2f}",
                "ratio": f"{np.median([s for s, _, _ in spent]) / np.median(base):.1f}",
                "peak": f"{max(peak for _, peak, _ in spent):.2f}",
                ("loss" if place else "temperature"): spent[-1][2],
                "note": "peak <= 1.5" if name == "sklearn_calib" else "",
            }


def main():
    given = [*sys.argv[1:], *("1e5", "1000", "3")[len(sys.argv) - 1 :]]
    n, k, rounds = (int(float(number)) for number in given)
    sklearn.set_config(array_api_dispatch=True)
    (z, y), classes = problem(n, k), np.arange(k)
    methods = {
        "sklearn_calib": ours,
        "scikit-learn": theirs,
        "probmetrics": probmetrics,
    }
    # what is compiled or imported at the first call
    for name, make in [*methods.items()]:
        try:
            one_round(make, z[:3000], y[:3000], classes)
        except ImportError as error:
            print(f"skipped {name}: {error}")
            del methods[name]
    found = {name: [] for name in methods}
    for _ in range(rounds):
        for name, make in methods.items():
            found[name].append(one_round(make, z, y, classes))
            print(name, found[name][-1], flush=True)
    runner.write(HERE / "tensors.csv", [*table(found, n, k)], COLUMNS)


if __name__ == "__main__":
    main()
