"""Rows that the theorems ask for and rows that were needed; and the bars of speed and memory."""

import resource
import warnings
from functools import partial

import numpy as np
import setting

from sklearn_calib.inference import binning_sample_size
from sklearn_calib.metrics import lp_calibration_error
from sklearn_calib.recalibrators import MulticlassBinning

TARGETS = [
    (np.inf, 0.1),
    (np.inf, 0.05),
    (np.inf, 0.02),
    (np.inf, 0.01),
    (2, 0.2),
    (2, 0.1),
]
SIZES = (30, 100, 300, 1000, 3000, 10_000, 30_000)
RUNS = 20


def reaches(family, k, p, epsilon, n):
    """Whether 19 of 20 fits have an error of the population of at most epsilon."""
    new, truth, _ = setting.draw(family, 50_000, k, 999)
    failed = 0
    for seed in range(RUNS):
        P, _, y = setting.draw(family, n, k, seed)
        model = MulticlassBinning.paper(p, epsilon).fit(P, y, classes=np.arange(k))
        error = setting.true_error(model.predict_proba(new), truth, p, model.n_levels_)
        failed += error > epsilon
        if failed > 1:
            return False
    return True


def needed(p, epsilon):
    for n in SIZES:
        if all(
            reaches(f, k, p, epsilon, n) for f in ("leaf", "satur") for k in (3, 10)
        ):
            return n
    return f"> {SIZES[-1]}"


def sample_sizes():
    rows = []
    for p, epsilon in TARGETS:
        rows.append(
            {
                "p": p,
                "epsilon": epsilon,
                "paper": f"{binning_sample_size(p, epsilon, method='paper'):.1e}",
                "plug-in, any cells": f"{binning_sample_size(p, epsilon):.1e}",
                "plug-in, 10 cells": f"{binning_sample_size(p, epsilon, n_bins=10):.1e}",
                "needed, four predictors": needed(p, epsilon),
            }
        )
        print(rows[-1], flush=True)
    return rows


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def bars():
    rows = []
    rng = np.random.default_rng(0)
    for n, k, dtype, bar in (
        (1_000_000, 10, np.float64, "<= 0.5 s"),
        (100_000, 1000, np.float32, "<= 0.7 s"),
    ):
        P = np.empty((n, k), dtype)
        # small blocks, which the peak of memory does not see
        for start in range(0, n, 1000):
            P[start : start + 1000] = setting.softmax(
                3 * rng.standard_normal((1000, k))
            )
        y = rng.integers(0, k, n)
        lp_calibration_error(y[:100], P[:100], labels=np.arange(k))  # compiles
        for options in ({}, {"estimator": "unbiased"}, {"p": 1.5}):
            before = peak()
            time_taken = setting.runner.seconds(
                partial(lp_calibration_error, y, P, **options), 5
            )
            rows.append(
                {
                    "case": f"lp_calibration_error, {n} rows, {k} classes, {dtype.__name__}",
                    "options": str(options),
                    "seconds": f"{time_taken:.3f}",
                    "bar": bar,
                    "memory beside the input [MB]": f"{max(peak() - before, 0):.0f}",
                }
            )
            print(rows[-1], flush=True)
    for k, leaves, n in (
        (10, 200, 1_000_000),
        (10, 5000, 1_000_000),
        (100, 5000, 100_000),
    ):
        predicted = rng.dirichlet(np.full(k, 0.5), leaves)
        chosen = rng.integers(0, leaves, n)
        P, y = predicted[chosen], rng.integers(0, k, n)
        for update in ("vector", "coordinate"):
            model = MulticlassBinning(
                2, 0.01, n_levels=50, update=update, z=0, min_count=5
            )
            fit = setting.runner.seconds(partial(model.fit, P, y), 3)
            case = f"MulticlassBinning, {n} rows, {k} classes, {len(model.bins_)} cells"
            options = f"{update}, {model.n_iter_} updates, {model.n_merges_} merges"
            rows.append(
                {
                    "case": f"{case}: fit",
                    "options": options,
                    "seconds": f"{fit:.3f}",
                    "bar": "",
                }
            )
            print(rows[-1], flush=True)
    return rows


def main():
    warnings.simplefilter("ignore")
    table = bars()
    setting.runner.write(setting.HERE / "bars.csv", table)
    table = sample_sizes()
    setting.runner.write(setting.HERE / "samples.csv", table)


if __name__ == "__main__":
    main()
