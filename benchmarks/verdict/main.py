"""Verdicts: how often they condemn calibrated predictions, and how often their intervals hold."""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

from sklearn_calib._kernels._detectable_error import DetectableErrors
from sklearn_calib.inference import (
    calibration_test,
    cox_test,
    cumulative_test,
    validation_sample_size,
)
from sklearn_calib.metrics import all_metrics
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.report import calibration_report

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
MEASURES = [
    name for name, f in all_metrics().items() if f.spec.in_report and not f.spec.proper
]
CALIBRATED = ("30 %", "1 %", "4 classes")
OFF = ("too low by .02", "too low by .05", "overconfident", "wave", "rare x 1.8")
_TESTED = {"measures": ["expected_calibration_error"], "n_resamples": 1}

JOBS = [
    ("level", law, n, 600 if n == 200 else 200)
    for n in (200, 5000)
    for law in CALIBRATED
]
JOBS += [
    ("measures", law, n, 60) for n in (200, 2000) for law in (*CALIBRATED[:2], *OFF)
]
JOBS += [
    ("sentences", law, n, 200 if n == 200 else 100)
    for n in (200, 5000)
    for law in ("30 %", "1 %", "overconfident", "too low by .05", "rare x 1.8", "4 off")
]
JOBS += [("power", law, n, 100) for n in (200, 1000) for law in (*OFF[1:], "slope 0.7")]
JOBS += [
    ("planned", law, size, 400)  # the mean error in thousandths
    for law, sizes in (
        ("30 %", (20, 50)),
        ("overconfident", (20, 50)),
        ("1 %", (5, 10)),
    )
    for size in sizes
]
JOBS += [("gain", law, 300, 30) for law in ("30 %", "overconfident", "4 off")]


def draw(law, n, rng):
    """Predictions and true probabilities, of the second class of two or of all classes."""
    if law in ("4 classes", "4 off"):
        z = 1.2 * rng.normal(size=(n, 4))
        return softmax(z * (1.5 if law == "4 off" else 1.0), axis=1), softmax(z, axis=1)
    if law.startswith("too low"):
        size = float(law.split()[-1])
        p = rng.uniform(0, 1 - size, n)
        return p, p + size
    if law == "wave":
        p = rng.uniform(0.15, 0.85, n)
        return p, p + 0.1 * np.sin(12 * p)
    z = rng.normal(size=n)
    if law == "slope 0.7":
        return expit(1.6 * z), expit(1.6 * 0.7 * z)
    if law == "overconfident":
        return expit(2.4 * z), expit(1.5 * z)
    p = expit(1.2 * z + (-1 if law == "30 %" else -5))
    return p, np.minimum(1.8 * p, 1) if law == "rare x 1.8" else p


def labels(q, rng):
    """A label for each row."""
    if q.ndim == 1:
        return (rng.random(len(q)) < q).astype(int)
    return (
        (rng.random(len(q))[:, None] > q.cumsum(axis=1))
        .sum(axis=1)
        .clip(max=q.shape[1] - 1)
    )


def drawn(law, n, draws):
    """Number, predictions, truths and labels of each draw."""
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        p, q = draw(law, n, rng)
        y = labels(q, rng)
        yield number, p, q, y


def given(p, number):
    """Options of the report: all classes, whether or not a draw shows them."""
    return {"random_state": number, "labels": np.arange(4 if p.ndim == 2 else 2)}


def level(law, n, draws):
    """How often the verdict says "not calibrated" of calibrated predictions."""
    said = []
    for number, p, _, y in drawn(law, n, draws):
        report = calibration_report(y, p, **given(p, number), **_TESTED)
        said.append(report.verdict.calibrated is False)
    yield shares(law, n, "not calibrated", said, 0.05)


def power(law, n, draws):
    """How often tests reject at 0.05."""
    found = {
        "kernel, bandwidth 0.2": [],
        "kernel": [],
        "smooth": [],
        "cox": [],
        "kuiper": [],
    }
    options = {
        "kernel, bandwidth 0.2": {
            "statistic": "kernel_calibration_error",
            "bandwidth": 0.2,
        },
        "kernel": {"statistic": "kernel_calibration_error"},
        "smooth": {},
    }
    for number, p, _, y in drawn(law, n, draws):
        more = {"n_resamples": 99, "random_state": number, "labels": [0, 1]}
        for name, one in options.items():
            found[name].append(calibration_test(y, p, **one, **more).pvalue <= 0.05)
        for name, test in (("cox", cox_test), ("kuiper", cumulative_test)):
            found[name].append(test(y, p, labels=[0, 1]).pvalue <= 0.05)
    for name, rejected in found.items():
        yield shares(law, n, f"rejected by {name}", rejected, np.mean(rejected))


def measures(law, n, draws):
    """How often the intervals of the table hold the measure of the population."""
    p, q = draw(law, 500_000, np.random.default_rng(2**32))
    both = np.repeat([1, 0], len(p)), np.tile(p, 2)
    weight = np.concatenate([q, 1 - q])
    off = law in OFF
    truth = {
        m: all_metrics()[m](*both, sample_weight=weight) if off else 0.0
        for m in MEASURES
    }
    held = {m: [] for m in MEASURES}
    for number, p, _, y in drawn(law, n, draws):
        for row in calibration_report(
            y, p, measures=MEASURES, n_resamples=100, **given(p, number)
        ).rows:
            held[row.measure].append(row.low <= truth[row.measure] <= row.high)
    for measure, found in held.items():
        yield shares(law, n, measure, found, 0.9)


def sentences(law, n, draws):
    """How often the intervals of the sentences hold: the rate, the slope, all bins at once."""
    held = {"rate": [], "slope": [], "all bins": []}
    p, q = draw(law, 500_000, np.random.default_rng(2**32))
    score, right = of_largest(p, q)
    slope = fitted_slope(score, right)
    for number, p, q, y in drawn(law, n, draws):
        score, right = of_largest(p, q)
        report = calibration_report(y, p, **given(p, number), **_TESTED)
        evidence = report.verdict.evidence
        held["rate"].append(
            evidence.observed_low <= right.mean() <= evidence.observed_high
        )
        if evidence.line is not None:
            low, high = evidence.line.slope_interval(report.level)
            held["slope"].append(low <= slope <= high)
        inside = [
            one.observed_low
            <= right[(score >= one.low - 1e-9) & (score <= one.high + 1e-9)].mean()
            <= one.observed_high
            for one in evidence.bins
        ]
        held["all bins"].append(all(inside))
    for name, found in held.items():
        yield shares(law, n, name, found, 0.9)


def of_largest(p, q):
    """Scores and truths of the positive class, or of the class of the largest probability."""
    if p.ndim == 1:
        return p, q
    top = p.argmax(axis=1)
    return p[np.arange(len(p)), top], q[np.arange(len(p)), top]


def fitted_slope(score, right):
    """The slope of the logistic regression of the population."""
    hit = np.repeat([1, 0], len(score))
    weight = np.concatenate([right, 1 - right])
    return PlattScaling(smooth_targets=False).fit(np.tile(score, 2), hit, weight).slope_


def gain(law, n, draws):
    """How often the interval of the gain holds what the fits of the folds gain on average."""
    found = []
    for number, p, q, y in drawn(law, n, draws):
        report = calibration_report(y, p, advice=True, **given(p, number), **_TESTED)
        advice, said = (
            report.advice["model"],
            {s.topic: s for s in report.verdict.sentences},
        )
        if advice is None:
            continue
        before, after = advice.given, advice.recalibrated
        true = truth_of(before, p, q)
        log = [
            np.log(np.maximum(np.asarray(case.proba), 2.2e-16))
            for case in (before, after)
        ]
        # both labels of a row are in the same fold, so that the mean is over each row
        # once
        expected = before.mean((true * (log[1] - log[0])).sum(axis=1))
        numbers = said["gain"].numbers
        found.append(numbers["low"] <= expected <= numbers["high"])
    yield shares(law, n, "gain", found, 0.9)


def planned(law, thousandths, draws):
    """How often the verdict finds an error with the rows that a plan says, of either kind."""
    size = thousandths / 1000
    population = np.sort(draw(law, 51_200, np.random.default_rng(0))[0])
    score = population.reshape(512, 100).mean(axis=1)
    errors = DetectableErrors(score, np.full(512, 1 / 512), np.log(score / (1 - score)))
    numbers = {}
    for kind in list(errors.kinds):
        errors.kinds = [kind]
        rows = errors.count_rows_to_detect(size)
        if rows is None:
            continue
        numbers[kind.__name__] = n = int(np.ceil(rows))
        strength = brentq(
            lambda s, kind=kind: errors.measure_size(kind(s)) - size, 0, 1
        )
        truth, found = kind(strength), []
        for number in range(draws):
            rng = np.random.default_rng([n, number])
            p = draw(law, n, rng)[0]
            q = expit(np.interp(np.log(p / (1 - p)), *log_odds(score, truth)))
            report = calibration_report(
                labels(q, rng), p, **given(p, number), **_TESTED
            )
            found.append(report.verdict.calibrated is False)
        yield shares(law, n, f"finds an error of {size:g}, {kind.__name__}", found, 0.8)
    given_ = validation_sample_size(population, error=size).targets[-1].n_samples
    assert abs(given_ - max(numbers.values())) < 0.02 * given_, (given_, numbers)


def log_odds(*shares_):
    """Of each."""
    return [np.log(share / (1 - share)) for share in shares_]


def truth_of(case, p, q):
    """The true probabilities of the rows of a case, found by their scores."""
    if q.ndim == 2:
        return q  # the rows themselves, in their order
    order = np.argsort(p)
    place = np.searchsorted(
        (p[order][1:] + p[order][:-1]) / 2, np.asarray(case.proba)[:, 1]
    )
    true = q[order][place]
    return np.column_stack([1 - true, true])


def shares(law, n, what, found, aim):
    """One row of the table."""
    share = np.mean(found) if found else np.nan
    sd = np.sqrt(aim * (1 - aim) / max(len(found), 1))
    row = {"law": law, "n": n, "what": what, "draws": len(found)}
    row["aim"] = "" if what.startswith("rejected") else aim
    return row | {"share": f"{share:.3f}", "three_sd": f"{3 * sd:.3f}"}


def run(kind, law, n, draws):
    """The rows of one job."""
    return list(KINDS[kind](law, n, draws))


KINDS = {f.__name__: f for f in (level, sentences, power, measures, planned, gain)}


def main():
    runner.study(HERE, JOBS, run)


if __name__ == "__main__":
    main()
