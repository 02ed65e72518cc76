"""Coverage of `confidence_interval`: calibration errors of known size, options of all measures."""

import argparse
import csv
import json
import re
import sys
import time
import warnings
from inspect import signature
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri, softmax

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import confidence_interval, paired_difference
from sklearn_calib.inference._intervals import is_calibration_error
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
    if family == "upper half too high":
        p = rng.uniform(0, 1, n)
        return p, np.where(p > 0.5, p - size, p)
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
            found.append(
                confidence_interval(y, p, measure, n_resamples=99, random_state=number)
            )
        low, high = np.array([(one.low, one.high) for one in found]).T
        row = {
            "family": family,
            "size": size,
            "n": n,
            "measure": measure,
            "draws": draws,
        }
        row["truth"] = f"{truth:.4f}"
        row["covered"] = f"{((low <= truth) & (truth <= high)).mean():.3f}"
        row["truth_below"] = f"{(truth < low).mean():.3f}"
        row["truth_above"] = f"{(truth > high).mean():.3f}"
        row["width"] = f"{(high - low).mean():.4f}"
        rows.append(row)
    return rows


#: A value of each option that is not a word and no yes or no.
VALUES = {
    "bandwidth": (0.2,),
    "smoother": ("cox", "spline"),
    "width": (0.3,),
    "resolution": (0.05,),
    "p": (1.0,),
    "n_levels": (4,),
    "norm": (2.0,),
    "recalibrator": ("platt",),
    "cv": (3,),
    "costs": ([[0.0, 1.0], [4.0, 0.0]],),
}
CANONICAL = {"multiclass": "canonical"}
#: Options that are another measure, or are taken with another option alone: what is
#: left of them.
SAME = {
    "calibration_error": dict.fromkeys(
        ("strategy", "n_bins", "debias", "bin_weight"), ()
    ),
    "integrated_calibration_index": {"summary": ()},
    "e50_calibration_index": {"smoother": ()},
    "e90_calibration_index": {"smoother": ()},
    "emax_calibration_index": {"smoother": ()},
    "kernel_calibration_error": {"estimator": ("biased",)},
    # these are options of the interval by the same name
    "lower_distance_to_calibration": {"method": ()},
    "variational_calibration_error": {"recalibrator": ()},
}
#: Pairs of options.
PAIRS = {
    "kernel_calibration_error": [
        *(
            (CANONICAL | {"estimator": e}, 3)
            for e in ("linear", "auto", "unbiased", "biased")
        ),
        *((CANONICAL | {"estimator": e}, 2) for e in ("linear", "unbiased")),
        (CANONICAL | {"bandwidth": "median"}, 3),
    ],
    "lp_calibration_error": [
        ({"estimator": "unbiased", "n_levels": 4}, 3),
        ({"p": 1.0, "n_levels": 4}, 3),
    ],
    "calibration_error": [({"norm": "l2", "debias": True}, 2)],
    "variational_calibration_error": [({"norm": 2.0, "multiclass": "canonical"}, 3)],
}
LOSSES = (  # no calibration errors, whose intervals are bootstrapped
    "expected_cost_score",
    "area_under_risk_coverage",
    "temperature_refinement_brier",
    "temperature_refinement_log_loss",
)


def options_of(name):
    """The default, each value of each option by itself, and the pairs: (options, classes)."""
    measure, found = all_metrics()[name], []
    whole = measure.spec.multiclass == ("canonical",)
    same = SAME.get(name, ())
    for option in measure.option_names:
        given = signature(measure).parameters[option]
        _, literal, hint = str(given.annotation).rpartition("Literal")
        words = re.findall(r"'(\w+)'", hint if literal else "")
        values = [word for word in words if word not in (given.default, "median")]
        if option == "multiclass":
            values = measure.spec.multiclass
        elif isinstance(given.default, bool):
            values = (not given.default,)
        values = same[option] if option in same else values or VALUES.get(option, ())
        assert values or option in (*same, "kernel"), f"a value of {name}'s {option}"
        several = whole or option == "multiclass"
        found += [({option: value}, 3 if several else 2) for value in values]
    found = [({}, 3 if whole else 2), *found, *PAIRS.get(name, [])]
    return [pair for number, pair in enumerate(found) if pair not in found[:number]]


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
    if (
        measure == "kernel_calibration_error"
        and options.get("multiclass") == "canonical"
    ):
        options["estimator"] = "biased"
    slow = options.get("multiclass") == "canonical" or measure.startswith("lower")
    n = CANONICAL_ROWS if slow else 100_000
    p, truth = slope_draw(classes, slope, n, np.random.default_rng(2**32))
    rows = np.repeat(np.arange(classes), n), np.tile(p, (classes, 1))
    return all_metrics()[measure](*rows, sample_weight=truth.T.ravel(), **options)


def of_options(measure, options, classes, slope, n, draws, resamples):
    """One row: options of a measure, at one slope of the true log-odds."""
    options = json.loads(options)
    error = "error" in measure or measure[:3] in (
        "cal",
        "e50",
        "e90",
        "ema",
        "int",
        "low",
    )
    truth = of_population(measure, options, classes, slope)
    if error and slope == 1:
        truth = 0.0
    found = []
    for seed in range(draws):
        rng = np.random.default_rng([n, seed])
        p, true = slope_draw(classes, slope, n, rng)
        y = (rng.random(n)[:, None] > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
        given = {
            "n_resamples": resamples,
            "random_state": seed,
            "labels": range(classes),
        }
        one = confidence_interval(y, p, measure, **given, **options)
        # the distance to a grid, of so few scores, is not 0
        if "resolution" in options:
            every = np.repeat(np.arange(classes), n), np.tile(p, (classes, 1))
            truth = all_metrics()[measure](
                *every, sample_weight=true.T.ravel(), **options
            )
        found.append((one.low, one.high, one.estimate, one.sample_value, truth))
    low, high, estimate, plain, truth = np.array(found).T
    row = {
        "measure": measure,
        "options": json.dumps(options),
        "classes": classes,
        "slope": slope,
    }
    row |= {"n": n, "draws": draws, "resamples": resamples}
    row |= {"method": one.method, "truth": f"{truth.mean():.5f}"}
    row |= runner.covered(low - 1e-9, high + 1e-9, truth)
    row["estimate_above"] = f"{(estimate > truth + 1e-9).mean():.3f}"
    row["estimate_outside"] = f"{((estimate < low) | (estimate > high)).mean():.3f}"
    row["on_these_rows_outside"] = f"{((plain < low) | (plain > high)).mean():.3f}"
    row["width"] = f"{(high - low).mean():.5f}"
    return row


def price(measure, options):
    """0 for a cheap cell, and more."""
    dear = "smoother" in options or measure.startswith(
        ("lower", "convolved", "calibration_dec")
    )
    return ("multiclass" in options) + 2 * dear + 4 * measure.startswith("variational")


def option_jobs():
    """The settings of each cell, and then how many draws and resamples; the cheap ones first."""
    names = [name for name, one in all_metrics().items() if is_calibration_error(one)]
    cells = [(name, *pair) for name in (*names, *LOSSES) for pair in options_of(name)]
    first = {}, *(options for pairs in PAIRS.values() for options, _ in pairs)
    cells.sort(key=lambda cell: price(*cell[:2]) - 2 * (cell[1] in first))
    return [
        (
            (name, json.dumps(options), classes, slope, 200),
            (20 if price(name, options) else 40, 39),
        )
        for name, options, classes in cells
        for slope in (1.0, 0.8)
    ]


def of_all_options():
    """The table after each cell; cells of as many draws and resamples are kept."""
    path, jobs, there, rows = HERE / "options.csv", option_jobs(), {}, {}
    if path.exists():
        with open(path, newline="", encoding="utf-8") as file:
            there = {
                tuple(row[name] for name in SETTINGS): row
                for row in csv.DictReader(file)
            }
    for cell, least in jobs:
        row = there.get(tuple(map(str, cell)))
        if row and (int(row["draws"]), int(row["resamples"])) >= least:
            rows[cell] = row
    print(f"{len(rows)} of {len(jobs)} cells are there already", flush=True)
    for cell, number in jobs:
        if cell not in rows:
            rows[cell] = of_options(*cell, *number)
            runner.write(path, [rows[cell] for cell, _ in jobs if cell in rows])
            print(*rows[cell].values(), flush=True)


SETTINGS = "measure", "options", "classes", "slope", "n"
#: Calibrated, slope 0.8, one-sided.
LAWS = (("overconfident", 1.0), ("overconfident", 1.25), ("too low", 0.05))


def of_sizes(label, draws=200):
    """Few, some and many rows by two measures, under a label of the code."""
    path = HERE / "sizes.csv"
    rows = []
    if path.exists():
        with open(path, newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["code"] != label]
    for family, size in LAWS:
        for measure in MEASURES[:2]:
            truth = 0.0 if size == 1 else population(measure, family, size)
            for n in (60, 200, 1500):
                ends, seconds = [], []
                for number in range(draws):
                    rng = np.random.default_rng([n, number])
                    p, true = draw(family, size, n, rng)
                    y = (rng.random(n) < true).astype(int)
                    given = {
                        "n_resamples": 99,
                        "random_state": number,
                        "labels": [0, 1],
                    }
                    start = time.process_time()
                    one = confidence_interval(y, p, measure, **given)
                    seconds.append(time.process_time() - start)
                    ends.append((one.low, one.high, one.estimate))
                low, high, estimate = np.array(ends).T
                row = {
                    "code": label,
                    "family": family,
                    "size": size,
                    "n": n,
                    "measure": measure,
                }
                row |= {"draws": draws, "truth": f"{truth:.4f}"}
                row |= runner.covered(low - 1e-9, high + 1e-9, truth)
                row["estimate_above"] = f"{(estimate > truth + 1e-9).mean():.3f}"
                row["width"] = f"{(high - low).mean():.4f}"
                row["cpu_s"] = f"{np.median(seconds):.4f}"
                rows.append(row)
                print(*row.values(), flush=True)
                runner.write(path, rows)


# standard deviation of the log-odds, and how much larger the predicted ones are
RARE = {
    "constant": (0.0, 1.0),
    "calibrated": (1.0, 1.0),
    "discriminating": (2.0, 1.0),
    "overconfident": (1.0, 1.6),
}
RARE_LOSSES = "log_loss", "brier_loss"


def draw_rare(family, share, n, rng):
    """Predictions and true probabilities with a mean of `share`."""
    deviation, slope = RARE[family]
    z = deviation * ndtri((np.arange(4000) + 0.5) / 4000)
    middle = brentq(lambda c: expit(c + z).mean() - share, -15, 5)
    z = deviation * rng.normal(size=n)
    return expit(middle + slope * z), expit(middle + z)


def intervals_of_rare(y, p, other, measure, number, seed):
    """The intervals of one sample, by what they are called in the table."""
    pairs = np.arange(len(y)) // 2
    given = {"labels": [0, 1]}
    draws = {"n_resamples": 99, "random_state": np.random.default_rng([number, seed])}
    found = {
        "rows": confidence_interval(y, p, measure, **given, **draws),
        "pairs of rows": confidence_interval(y, p, measure, groups=pairs, **given),
        "difference": paired_difference(y, p, other, measure, **given),
    }
    if number < 60:
        given |= draws
        found["percentiles"] = confidence_interval(
            y, p, measure, method="bootstrap", **given
        )
    return found


def of_rare_events(draws, seed):
    """Mean losses with few events: all laws, shares and sizes, `draws` samples each.

    Seed 0 is kept for choosing methods: a table of the same samples says too little
    about others.
    """
    warnings.simplefilter("ignore", CalibrationWarning)  # some samples have no event
    rows = []
    for family in RARE:
        for share in (0.01, 0.02, 0.05):
            p, truth = draw_rare(family, share, 1_000_000, np.random.default_rng(2**32))
            y, weight = np.repeat([1, 0], len(p)), np.r_[truth, 1 - truth]
            values = {}
            for name in RARE_LOSSES:
                measure = all_metrics()[name]
                given = {"sample_weight": weight}
                one = measure(y, np.tile(p, 2), **given)
                two = measure(y, np.tile(expit(logit(p) + 0.5), 2), **given)
                values[name] = {"difference": two - one, "": one}
            for n in (30, 60, 300, 2000):
                ends = {}
                for number in range(draws):
                    rng = np.random.default_rng([n, number, seed])
                    p, truth = draw_rare(family, share, n, rng)
                    y = (rng.random(n) < truth).astype(int)
                    for name in RARE_LOSSES:
                        other = expit(logit(p) + 0.5)
                        found = intervals_of_rare(y, p, other, name, number, seed)
                        for kind, one in found.items():
                            ends.setdefault((name, kind), []).append(
                                (one.low, one.high)
                            )
                for (name, kind), pairs in ends.items():
                    low, high = np.array(pairs).T
                    of_kind = values[name]
                    truth_of_kind = of_kind[
                        "difference" if kind == "difference" else ""
                    ]
                    row = {"family": family, "share": share, "n": n, "measure": name}
                    row |= {"interval": kind, "seed": seed, "draws": len(pairs)}
                    row["truth"] = f"{truth_of_kind:.4f}"
                    row |= runner.covered(low - 1e-9, high + 1e-9, truth_of_kind)
                    row["median_width"] = f"{np.median(high - low):.4f}"
                    rows.append(row)
            print(family, share, flush=True)
            runner.write(HERE / "rare.csv", rows)


def describe_value(head, found, truth):
    """Return a row on one value: which intervals and estimates of (low, high, estimate) miss it."""
    low, high, estimate = np.array(found).T
    row = head | {"truth": f"{np.mean(truth):.5f}"}
    row |= runner.covered(low - 1e-9, high + 1e-9, truth)
    row["estimate_above"] = f"{(estimate > truth + 1e-9).mean():.3f}"
    return row


def of_one_sided_errors(draws, seed):
    """Yield rows on the expected calibration error of predictions whose upper half is too high."""
    family, measure, n = "upper half too high", "expected_calibration_error", 2000
    for size in (0.03, 0.05, 0.1):
        truth, found = population(measure, family, size), []
        for number in range(draws):
            rng = np.random.default_rng([n, number, seed])
            p, true = draw(family, size, n, rng)
            y = (rng.random(n) < true).astype(int)
            one = confidence_interval(y, p, measure, n_resamples=99, random_state=rng)
            found.append((one.low, one.high, one.estimate))
        head = {
            "law": f"{family} by {size}",
            "measure": measure,
            "options": "{}",
            "n": n,
        }
        head |= {"seed": seed, "draws": draws, "value": "population"}
        yield describe_value(head, found, truth)


def of_lp_errors(draws, seed):
    """Yield rows on the l_p error of three classes: of the population, and of the sample's cells.

    The cells of a sample are those of its predictions, each with every label that it
    may have.
    """
    measure, n, classes = "lp_calibration_error", 200, np.arange(3)
    for slope in (1.0, 0.8):
        for options in ({}, {"p": 1.0}, {"n_levels": 4}):
            population = (
                0.0 if slope == 1 else of_population(measure, options, 3, slope)
            )
            found, own = [], []
            for number in range(draws):
                rng = np.random.default_rng([n, number, seed])
                p, true = slope_draw(3, slope, n, rng)
                y = (rng.random(n)[:, None] > np.cumsum(true, axis=1)[:, :-1]).sum(
                    axis=1
                )
                given = {"n_resamples": 59, "random_state": rng, "labels": classes}
                one = confidence_interval(y, p, measure, **given, **options)
                found.append((one.low, one.high, one.estimate))
                every = np.repeat(classes, n), np.tile(p, (3, 1))
                weight = true.T.ravel()
                value = all_metrics()[measure](*every, sample_weight=weight, **options)
                own.append(0.0 if slope == 1 else value)
            head = {"law": f"log-odds times {slope}", "measure": measure}
            head |= {
                "options": json.dumps(options),
                "n": n,
                "seed": seed,
                "draws": draws,
            }
            yield describe_value(head | {"value": "population"}, found, population)
            yield describe_value(
                head | {"value": "cells of the sample"}, found, np.array(own)
            )


def of_stated_values(draws, seed):
    """Write the table of values that the documentation of intervals quotes."""
    rows = []
    for part in (of_one_sided_errors, of_lp_errors):
        for row in part(draws, seed):
            rows.append(row)
            print(*row.values(), flush=True)
            runner.write(HERE / "stated.csv", rows)


def main():
    """Two tables; the second alone with ``options``; with ``sizes LABEL`` the one of sizes.

    With ``rare`` the one of mean losses with few events (``--draws 350 --seed 1``), and
    with ``stated`` the one of errors on one side and of the l_p error.
    """
    of_seed = {"rare": of_rare_events, "stated": of_stated_values}
    table = sys.argv[1] if len(sys.argv) > 1 else ""
    if table in of_seed:
        parser = argparse.ArgumentParser()
        parser.add_argument("table")
        parser.add_argument("--draws", type=int, default=350)
        parser.add_argument("--seed", type=int, default=1)
        given = parser.parse_args()
        return of_seed[table](given.draws, given.seed)
    if "sizes" in sys.argv[1:]:
        return of_sizes(sys.argv[-1])
    if "options" not in sys.argv[1:]:
        runner.study(HERE, JOBS, coverage)
    of_all_options()


if __name__ == "__main__":
    main()
