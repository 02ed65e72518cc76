"""Coverage of `paired_difference`: two models on the same rows, their true difference known."""

import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.special import expit

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import paired_difference, simulate_bootstrap_distribution
from sklearn_calib.metrics import (
    all_metrics,
    smooth_calibration_error,
    validate_predictions,
)
from sklearn_calib.recalibrators import get_recalibrator
from sklearn_calib.summary import CalibrationSummary

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LEVEL = 0.9
FAMILIES = ("no worse", "overconfident", "opposite", "shifted")
LOSSES = ("log_loss", "brier_loss", "accuracy", "log_loss after temperature")
JOBS = [
    (family, measure, n, draws)
    for measures, sizes in (
        (LOSSES, ((200, 2000), (2000, 1000))),
        (("smooth_calibration_error",), ((500, 100), (3000, 40))),
        (
            ("smooth_calibration_error",),
            ((500, 150),),
        ),  # by the bootstrap, to see why not
        (
            ("smooth_calibration_error of cells",),
            ((500, 100), (3000, 40)),
        ),  # as `compare` has it
    )
    for measure in measures
    for n, draws in sizes
    for family in FAMILIES
]


def draw(family, n, rng):
    """Predictions of two models, and true probabilities."""
    z = 1.5 * rng.normal(size=n)
    truth = expit(z)
    if family == "no worse":  # both calibrated: the second knows only a sign
        sign = z > 0
        return truth, np.where(sign, _MEAN, 1 - _MEAN), truth
    if family == "overconfident":  # the second alone
        return truth, expit(1.6 * z), truth
    if family == "opposite":  # one too certain, one too uncertain
        return expit(1.6 * z), expit(z / 1.6), truth
    p = rng.uniform(0, 0.95, n)  # one too low, one too high
    return p, np.clip(p + 0.05, 0, 1), np.clip(p + 0.02, 0, 1)


_NORMAL = 1.5 * np.random.default_rng(2**32).normal(size=4_000_000)
_MEAN = float(expit(np.abs(_NORMAL)).mean())


def value(measure, p, y, weight=None):
    """A measure as `compare` shows it."""
    name = measure.removesuffix(" after temperature").removesuffix(" of cells")
    if measure.endswith("temperature"):
        p = tempered(p, y, weight)
    if name == "accuracy":
        return float(np.average((p > 0.5) == y, weights=weight))
    return all_metrics()[name](y, p, sample_weight=weight)


def tempered(p, y, weight=None):
    """After temperature scaling on the rows themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = get_recalibrator("temperature").fit(p, y, sample_weight=weight)
    return fitted.predict_proba(p)[:, 1]


def bootstrapped(y, first, second, seed):
    """Percentiles of the difference over resampled rows, the same for both models."""
    cases = [validate_predictions(y, p) for p in (first, second)]
    one, two = (
        simulate_bootstrap_distribution(
            case, smooth_calibration_error.evaluate, 199, seed
        )
        for case in cases
    )
    low, high = np.quantile(two - one, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return SimpleNamespace(low=low, high=high)


def population(measure, family, n=500_000):
    """The difference on every row with both labels, weighted by their probabilities."""
    first, second, truth = draw(family, n, np.random.default_rng(2**32))
    y, weight = np.repeat([1, 0], n), np.r_[truth, 1 - truth]
    one, two = (value(measure, np.tile(p, 2), y, weight) for p in (first, second))
    return two - one


def coverage(family, measure, n, draws):
    """One row of the table."""
    truth = population(measure, family)
    name = measure.removesuffix(" after temperature").removesuffix(" of cells")
    by_bootstrap = (measure, draws) == ("smooth_calibration_error", 150)
    found = []
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        *models, true = draw(family, n, rng)
        y = (rng.random(n) < true).astype(int)
        if measure.endswith("temperature"):
            models = [tempered(p, y) for p in models]
        options = {"level": LEVEL, "n_resamples": 99, "random_state": number}
        if by_bootstrap:
            found.append(bootstrapped(y, *models, number))
            continue
        if measure.endswith("cells"):
            y, models = None, [CalibrationSummary().update(y, p) for p in models]
        found.append(paired_difference(y, *models, name, **options))
    low, high = np.array([(one.low, one.high) for one in found]).T
    method = "bootstrap (not used)" if by_bootstrap else found[0].method
    row = {"family": family, "measure": measure, "method": method, "n": n}
    row |= {"draws": draws, "truth": f"{truth:.4f}"}
    row["covered"] = f"{((low <= truth) & (truth <= high)).mean():.3f}"
    row["truth_below"] = f"{(truth < low).mean():.3f}"
    row["truth_above"] = f"{(truth > high).mean():.3f}"
    row["width"] = f"{(high - low).mean():.4f}"
    row["shows_a_difference"] = f"{((low > 0) | (high < 0)).mean():.3f}"
    return [row]


def main():
    runner.study(HERE, JOBS, coverage)


if __name__ == "__main__":
    main()
