"""Coverage of `confidence_interval` by inversion: calibration errors of known size."""

import sys
from pathlib import Path

import numpy as np
from scipy.special import expit

from sklearn_calib.inference import confidence_interval
from sklearn_calib.metrics import all_metrics

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
MEASURES = (
    "smooth_calibration_error",
    "expected_calibration_error",
    "integrated_calibration_index",
    "cumulative_calibration_error",
)
JOBS = [
    (family, size, n, draws)
    for n, draws in ((500, 200), (2000, 100))
    for family, size in (
        ("too low", 0.0),
        ("too low", 0.02),
        ("too low", 0.05),
        ("too low", 0.145),
        ("overconfident", 1.6),
        ("wave", 0.1),
    )
    if n == 500 or family == "too low"
]


def draw(family, size, n, rng):
    """Predictions and true probabilities."""
    if family == "too low":  # everywhere by `size`
        p = rng.uniform(0, 1 - size, n)
        return p, p + size
    if family == "overconfident":  # true log-odds times `size`
        z = 1.5 * rng.normal(size=n)
        return expit(size * z), expit(z)
    p = rng.uniform(0.15, 0.85, n)  # an error that changes its sign four times
    return p, p + size * np.sin(12 * p)


def population(measure, family, size, n=1_000_000):
    """The measure on every row with both labels, weighted by their probabilities."""
    p, truth = draw(family, size, n, np.random.default_rng(2**32))
    return all_metrics()[measure](
        np.repeat([1, 0], n), np.tile(p, 2), sample_weight=np.r_[truth, 1 - truth]
    )


def coverage(family, size, n, draws):
    """One row per measure."""
    rows = []
    for measure in MEASURES:
        truth = 0.0 if size == 0 else population(measure, family, size)
        found = []
        for number in range(draws):
            rng = np.random.default_rng([n, number])
            p, true = draw(family, size, n, rng)
            y = (rng.random(n) < true).astype(int)
            found.append(confidence_interval(y, p, measure, n_resamples=99, random_state=number))
        low, high = np.array([(one.low, one.high) for one in found]).T
        row = {"family": family, "size": size, "n": n, "measure": measure, "draws": draws}
        row["truth"] = f"{truth:.4f}"
        row["covered"] = f"{((low <= truth) & (truth <= high)).mean():.3f}"
        row["truth_below"] = f"{(truth < low).mean():.3f}"
        row["truth_above"] = f"{(truth > high).mean():.3f}"
        row["width"] = f"{(high - low).mean():.4f}"
        rows.append(row)
    return rows


def main():
    runner.study(HERE, JOBS, coverage)


if __name__ == "__main__":
    main()
