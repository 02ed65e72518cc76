"""The bars of the calibration measures and tests: speed beside a sort or a peer, and levels."""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from sklearn_calib._kernels._distance import (
    compute_upper_and_lower_distance,
    find_distance_distribution_and_prices,
    make_uniform_program,
)
from sklearn_calib.inference import (
    calibration_test,
    cox_test,
    cumulative_test,
    hosmer_lemeshow_test,
    spiegelhalter_test,
)
from sklearn_calib.metrics import (
    averaged_two_bin_error,
    convolved_calibration_error,
    kernel_calibration_error,
    smooth_calibration_error,
)

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent


def seconds(*functions, runs=5):
    """Medians of CPU seconds, in turns, after one call each."""
    for function in functions:
        function()
    table = []
    for _ in range(runs):
        row = []
        for function in functions:
            start = time.process_time()
            function()
            row.append(time.process_time() - start)
        table.append(row)
    return np.median(table, axis=0)


def scores(n, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.random(n)
    return v, (rng.random(n) < v**1.1).astype(int)


def speed():
    for n in (10**6, 10**7):
        v, y = scores(n)
        runs = 5 if n == 10**6 else 3
        ours_call = partial(smooth_calibration_error, y, v)
        sort, ours = seconds(partial(np.argsort, v), ours_call, runs=runs)
        yield (
            f"smooth, n = {n:.0e}",
            ours,
            "np.argsort",
            sort,
            f"{ours / sort:.2f} of it",
            "<= 4",
        )
    v, y = scores(10**6)
    for weight, text in (
        (None, ""),
        (np.random.default_rng(1).random(10**6), ", weighted"),
    ):
        call = partial(averaged_two_bin_error, y, v, sample_weight=weight)
        sort, ours = seconds(partial(np.argsort, v), call)
        name = f"averaged two bins, n = 1e+06{text}"
        yield name, ours, "np.argsort", sort, f"{ours / sort:.2f} of it", "<= 2.5"
    v, y = scores(10**6)
    weight = np.full(10**6, 1e-6)
    for cells, bar in ((1000, "<= 0.1 s"), (10_000, "<= 0.6 s")):
        program = make_uniform_program(v, weight * y, weight * (1 - y), cells)
        (ours,) = seconds(partial(find_distance_distribution_and_prices, program))
        yield (
            f"distance at 1/{cells}, n = 1e6, beyond the histogram",
            ours,
            "",
            None,
            "",
            bar,
        )
    v, y = scores(300)
    weight = np.full(300, 1 / 300)
    grid = make_uniform_program(v, weight * y, weight * (1 - y), 100)
    program, rounded = seconds(
        lambda: find_distance_distribution_and_prices(grid),
        lambda: compute_upper_and_lower_distance(
            v, weight * y, weight * (1 - y), 100, 0.01
        ),
    )
    name = "distance at 1/100, n = 300"
    yield (
        name,
        program,
        "the published route",
        rounded,
        f"{rounded / program:.1f}x faster",
        "",
    )
    v, y = scores(10**6)
    try:
        import relplot

        gap = abs(convolved_calibration_error(y, v) - relplot.smECE(f=v, y=y))
        ours, theirs = seconds(
            lambda: convolved_calibration_error(y, v), lambda: relplot.smECE(f=v, y=y)
        )
        found = f"{theirs / ours:.1f}x faster, difference {gap:.1e}"
        yield "convolved, n = 1e6", ours, "relplot", theirs, found, ">= 10x, 1e-3"
    except ImportError:
        print("skipped relplot: not installed")
    (ours,) = seconds(lambda: kernel_calibration_error(y, v))
    yield "Laplace kernel, n = 1e6", ours, "", None, "", "<= 0.5 s"
    v, y = scores(10**4)
    (ours,) = seconds(lambda: calibration_test(y, v, random_state=0), runs=3)
    yield "test by smooth, n = 1e4, 999 replicates", ours, "", None, "", "<= 0.6 s"


TESTS = {
    "smooth, Monte Carlo": lambda y, p, i: calibration_test(
        y, p, n_resamples=99, random_state=i
    ),
    "spiegelhalter": lambda y, p, i: spiegelhalter_test(y, p),
    "hosmer_lemeshow": lambda y, p, i: hosmer_lemeshow_test(y, p),
    "cox": lambda y, p, i: cox_test(y, p),
    "kuiper": lambda y, p, i: cumulative_test(y, p),
    "kolmogorov_smirnov": lambda y, p, i: cumulative_test(
        y, p, statistic="kolmogorov_smirnov"
    ),
}


def by_cells(measure):
    """A test whose statistic is evaluated on cells, which two rows or more per cell allow."""
    return lambda y, p, i: calibration_test(
        y, p, statistic=measure, n_resamples=99, random_state=i
    )


BY_CELLS = {
    "smooth, Monte Carlo by cells": by_cells("smooth"),
    "isotonic refinement (Brier), Monte Carlo by cells": by_cells(
        "isotonic_refinement_brier"
    ),
    "temperature refinement (log), Monte Carlo by cells": by_cells(
        "temperature_refinement_log_loss"
    ),
}


def levels(tests, sets, n, power):
    """How often calibrated predictions are rejected; and predictions off by a power."""
    for name, test in tests.items():
        pvalues, powers = [], []
        for i in range(sets):
            rng = np.random.default_rng(i)
            p = rng.beta(0.7, 1.2, n)
            u = rng.random(n)
            pvalues.append(test((u < p).astype(int), p, i).pvalue)
            powers.append(test((u < p**power).astype(int), p, i).pvalue)
        row = {"test": name, "n": n, "sets": sets}
        for level in (0.01, 0.05, 0.1):
            row[f"at_{level}"] = f"{np.mean(np.array(pvalues) <= level):.3f}"
            row[f"three_sd_{level}"] = f"{3 * np.sqrt(level * (1 - level) / sets):.3f}"
        row["off_by_power"] = power
        row["power_at_0.05"] = f"{np.mean(np.array(powers) <= 0.05):.3f}"
        print(row, flush=True)
        yield row


def main():
    rows = []
    for case, ours, beside, theirs, found, bar in speed():
        row = {"case": case, "ours_s": f"{ours:.4g}", "beside": beside}
        row["theirs_s"] = "" if theirs is None else f"{theirs:.4g}"
        rows.append({**row, "found": found, "bar": bar})
        print(rows[-1], flush=True)
    runner.write(HERE / "results.csv", rows)
    table = [*levels(TESTS, 1000, 1000, 1.15), *levels(BY_CELLS, 200, 10_000, 1.05)]
    runner.write(HERE / "levels.csv", table)


if __name__ == "__main__":
    main()
