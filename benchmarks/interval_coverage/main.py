"""Coverage of `confidence_interval`: calibration errors of known size, options of all measures."""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax

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


#: Options of a measure and how many classes.
BINNED = (
    {},
    {"strategy": "uniform"},
    {"n_bins": "cube_root"},
    {"n_bins": "sweep"},
    {"bin_weight": "equal"},
    {"debias": True},
)
KERNEL = {"multiclass": "canonical"}
SEVERAL = "confidence", "top_label", "classwise"
OPTIONS = {
    "kernel_calibration_error": [
        *((KERNEL | {"estimator": e}, 3) for e in ("linear", "auto", "unbiased", "biased")),
        *((KERNEL | {"estimator": e}, 2) for e in ("linear", "unbiased")),
        (KERNEL | {"bandwidth": "median"}, 3),
        ({}, 2),
        ({"bandwidth": 0.2}, 2),
    ],
    "lp_calibration_error": [
        ({"estimator": "unbiased", "n_levels": 4}, 3),
        ({}, 3),
        ({"p": 1.0, "n_levels": 4}, 3),
    ],
    "averaged_two_bin_error": [({"debias": True}, 2), ({}, 2)],
    "expected_calibration_error": [
        *((options, 2) for options in BINNED),
        *(({"multiclass": way}, 3) for way in SEVERAL),
    ],
    "calibration_error": [
        ({"norm": "l2"}, 2),
        ({"norm": "l2", "debias": True}, 2),
        ({"norm": "max"}, 2),
    ],
    "maximum_calibration_error": [({}, 2)],
    "smooth_calibration_error": [({}, 2)],
    "cumulative_calibration_error": [({}, 2), ({"statistic": "mad"}, 2)],
    "convolved_calibration_error": [({}, 2), ({"bandwidth": 0.1}, 2)],
    "random_interval_calibration_error": [({}, 2)],
    "interval_calibration_error": [({}, 2)],
    "calibration_decision_loss": [({}, 2)],
    "expected_cost_score": [({}, 2)],
    "area_under_risk_coverage": [({}, 2)],
    "temperature_refinement_brier": [({}, 2)],
    "temperature_refinement_log_loss": [({}, 2)],
    "isotonic_refinement_brier": [({}, 2)],
    "isotonic_refinement_log_loss": [({}, 2)],
    "lower_distance_to_calibration": [({}, 2)],
    "integrated_calibration_index": [({}, 2), ({"smoother": "cox"}, 2)],
    "e50_calibration_index": [({}, 2)],
    "e90_calibration_index": [({}, 2)],
    "emax_calibration_index": [({}, 2)],
    "variational_calibration_error": [({}, 2), ({"direction": "over"}, 2)],
}
CANONICAL_ROWS = 3000  # all pairs


def slope_draw(classes, slope, n, rng):
    """Predictions and true probabilities, whose log-odds are `slope` times those predicted."""
    z = 1.5 * rng.normal(size=(n, classes))
    if classes == 2:
        z[:, 0] = 0.0
    return softmax(z, axis=1), softmax(slope * z, axis=1)


def of_population(measure, options, classes, slope):
    """The plug-in form on many rows, each with every label."""
    options = {name: value for name, value in options.items() if name != "debias"}
    if measure == "lp_calibration_error":
        options.pop("estimator", None)
    if options.get("multiclass") == "canonical":
        options["estimator"] = "biased"
    slow = options.get("multiclass") == "canonical" or measure.startswith("lower")
    n = CANONICAL_ROWS if slow else 100_000
    p, truth = slope_draw(classes, slope, n, np.random.default_rng(2**32))
    rows = np.repeat(np.arange(classes), n), np.tile(p, (classes, 1))
    return all_metrics()[measure](*rows, sample_weight=truth.T.ravel(), **options)


def of_options(measure, number, slope, n, draws):
    """One row: options of a measure, at one slope of the true log-odds."""
    options, classes = OPTIONS[measure][number]
    error = "error" in measure or measure[:3] in ("cal", "e50", "e90", "ema", "int", "low")
    truth = of_population(measure, options, classes, slope)
    if error and slope == 1:
        truth = 0.0
    found = []
    for seed in range(draws):
        rng = np.random.default_rng([n, seed])
        p, true = slope_draw(classes, slope, n, rng)
        y = (rng.random(n)[:, None] > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
        given = {"n_resamples": 59, "random_state": seed, "labels": range(classes)}
        one = confidence_interval(y, p, measure, **given, **options)
        found.append((one.low, one.high, one.estimate, one.on_these_rows))
    low, high, estimate, plain = np.array(found).T
    row = {"measure": measure, "options": json.dumps(options), "classes": classes, "slope": slope}
    row |= {"n": n, "draws": draws, "method": one.method, "truth": f"{truth:.5f}"}
    row |= runner.covered(low - 1e-9, high + 1e-9, truth)
    row["estimate_above"] = f"{(estimate > truth + 1e-9).mean():.3f}"
    row["estimate_outside"] = f"{((estimate < low) | (estimate > high)).mean():.3f}"
    row["on_these_rows_outside"] = f"{((plain < low) | (plain > high)).mean():.3f}"
    row["width"] = f"{(high - low).mean():.5f}"
    return [row]


def draws_of(measure, number):
    """Fewer where a draw takes a second."""
    if measure == "kernel_calibration_error":
        return 60 if number < 4 else 20
    slow = "index" in measure or measure[:3] in ("low", "var")
    return 12 if slow else 40


OPTION_JOBS = [
    (measure, number, slope, 200, draws_of(measure, number))
    for measure, options in OPTIONS.items()
    for number in range(len(options))
    for slope in (1.0, 0.8)
]


def main():
    """Both tables; the second alone with the argument ``options``."""
    if "options" not in sys.argv[1:]:
        runner.study(HERE, JOBS, coverage)
    rows = runner.rounds(HERE / "options.partial.jsonl", OPTION_JOBS, of_options, 1)
    runner.write(HERE / "options.csv", rows)


if __name__ == "__main__":
    main()
