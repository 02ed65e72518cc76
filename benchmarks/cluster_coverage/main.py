"""Level and coverage of everything that takes `groups`: five rows a cluster, few clusters too."""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import (
    calibration_test,
    confidence_interval,
    cumulative_test,
    hosmer_lemeshow_test,
    paired_difference,
    spiegelhalter_test,
    validation_summary,
)
from sklearn_calib.metrics import log_loss
from sklearn_calib.report import calibration_report

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LEVEL, ROWS = 0.9, 5
SHIFT = {"calibrated": 0.0, "overconfident": 0.0, "rare": -3.0}
SLOPE = {"calibrated": 1.0, "overconfident": 0.6, "rare": 1.0}
SIZES = (  # part, clusters, what is given, draws of a batch
    ("inference", 30, "clusters", 20),
    ("inference", 10, "clusters", 20),
    ("report", 30, "clusters", 10),
    ("report", 10, "clusters", 10),
    ("report", 200, "clusters", 5),
    ("table", 200, "clusters", 50),  # what is cheap, of the same rows
    ("table", 200, "rows", 50),
    ("inference", 200, "clusters", 5),
    ("inference", 200, "rows", 5),
    ("report", 200, "rows", 5),
)
BATCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 20
JOBS = [
    (part, family, n_clusters, given, draws, batch)
    for batch in range(BATCHES)
    for part, n_clusters, given, draws in SIZES
    for family in (SHIFT if given == "clusters" else ("calibrated",))
]


def draw(family, n_clusters, rng):
    """Clusters, log-odds of two models, labels; labels of a cluster share six tenths of a cause."""
    groups = np.repeat(np.arange(n_clusters), ROWS)
    z = (
        rng.normal(size=n_clusters)[groups]
        + 0.5 * rng.normal(size=len(groups))
        + SHIFT[family]
    )
    cause = np.sqrt(0.6) * rng.normal(size=n_clusters)[groups]
    cause = cause + np.sqrt(0.4) * rng.normal(size=len(groups))
    y = (norm.cdf(cause) < expit(SLOPE[family] * z)).astype(int)
    return groups, z, z + 0.5 * rng.normal(size=len(groups)), y


def population(family, n=400_000):
    """True values: of the log loss, of its difference, and of the calibration parameters."""
    rng = np.random.default_rng(2**32)
    _, z, other, _ = draw(family, n // ROWS, rng)
    truth = expit(SLOPE[family] * z)
    y, weight = np.repeat([1, 0], len(z)), np.r_[truth, 1 - truth]
    one, two = (
        log_loss(y, np.tile(expit(each), 2), sample_weight=weight)
        for each in (z, other)
    )
    error = np.abs(truth - expit(z)).mean()
    found = {"log loss": one, "difference": two - one, "frequency": truth.mean()}
    found |= {
        "O/E": truth.mean() / expit(z).mean(),
        "slope": SLOPE[family],
        "intercept": 0.0,
    }
    return found | {"mean error": error}


def of_table(y, z, other, groups, seed, n_resamples=1):
    """Intervals by name, and p-values by name, of the validation table."""
    p, given = expit(z), {"groups": groups}
    draws = {"n_resamples": n_resamples, "random_state": seed}
    summary = validation_summary(y, p, level=LEVEL, **draws, **given)
    intervals = {name: summary[name] for name in ("O/E", "intercept", "slope")}
    tests = {"Cox": summary["Cox chi-square"].pvalue, "O/E": summary["O/E"].pvalue}
    tests["Spiegelhalter"] = spiegelhalter_test(y, p, **given)[1]
    if n_resamples > 1:
        tests["ICI"] = summary["ICI"].pvalue
    return {name: (one.low, one.high) for name, one in intervals.items()}, tests


def of_inference(y, z, other, groups, seed):
    """The same of all functions of `inference`."""
    p, given = expit(z), {"groups": groups}
    intervals, tests = of_table(y, z, other, groups, seed, 19)
    difference = paired_difference(y, p, expit(other), level=LEVEL, **given)
    loss = confidence_interval(
        y, p, "log_loss", level=LEVEL, n_resamples=199, random_state=seed, **given
    )
    intervals |= {
        "difference": (difference.low, difference.high),
        "log loss": (loss.low, loss.high),
    }
    how = {"n_resamples": 99, "random_state": seed, **given}
    tests["smooth calibration error"] = calibration_test(y, p, **how).pvalue
    tests["cumulative"] = cumulative_test(y, p, **how).pvalue
    tests["Hosmer-Lemeshow"] = hosmer_lemeshow_test(y, p, **how).pvalue
    return intervals, tests


def of_report(y, z, other, groups, seed):
    """The same of `calibration_report` and its verdict."""
    given = {"groups": groups, "level": LEVEL, "random_state": seed}
    report = calibration_report(y, expit(z), n_resamples=100, **given)
    rows = {row.measure: row for row in report.rows}
    of, line = report.verdict.evidence, report.line()
    intervals = {"log loss": (rows["log_loss"].low, rows["log_loss"].high)}
    intervals["frequency"] = of.observed_low, of.observed_high
    if line is not None:
        intervals["slope"] = line.slope_interval(LEVEL)
    error = rows["expected_calibration_error"]
    intervals["mean error"] = error.low, error.high
    return intervals, {"verdict": report.verdict.p_value}


def batch_of(part, family, n_clusters, given, draws, batch):
    """What some draws have: (quantity, low, high) of intervals, (test, p-value)."""
    head = {"part": part, "family": family, "clusters": n_clusters, "given": given}
    rows = []
    for number in range(batch * draws, (batch + 1) * draws):
        rng = np.random.default_rng([n_clusters, number])
        groups, z, other, y = draw(family, n_clusters, rng)
        if not 2 <= y.sum() <= len(y) - 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            work = {"inference": of_inference, "table": of_table, "report": of_report}[
                part
            ]
            found = work(y, z, other, groups if given == "clusters" else None, number)
        rows += [
            head | {"quantity": name, "ends": ends} for name, ends in found[0].items()
        ]
        rows += [
            head | {"quantity": name, "p": float(p)} for name, p in found[1].items()
        ]
    return rows


def table(found):
    """Rows of the table: one for each interval, one for each test."""
    truth, together = {family: population(family) for family in SHIFT}, {}
    for one in found:
        kind = "interval" if "ends" in one else "test at .05"
        head = {
            name: one[name]
            for name in ("part", "family", "clusters", "given", "quantity")
        }
        together.setdefault((*(head | {"kind": kind}).items(),), []).append(one)
    for head, draws in together.items():
        row = dict(head)
        if row["kind"] == "interval":
            ends = np.array([one["ends"] for one in draws], dtype=float)
            low, high = ends[np.isfinite(ends).any(axis=1)].T
            row["draws"] = len(low)
            yield row | runner.covered(low, high, truth[row["family"]][row["quantity"]])
        else:
            p = np.array([one["p"] for one in draws])
            p = p[np.isfinite(p)]
            yield row | {"draws": len(p), "rejected": f"{(p <= 0.05).mean():.3f}"}


if __name__ == "__main__":
    found = runner.rounds(HERE / "rounds.partial.jsonl", JOBS, batch_of)
    runner.table(HERE, list(table(found)))
