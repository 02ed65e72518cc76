"""Numbers of docstrings and pages, read from their text and recomputed."""

import csv
import inspect
import re
from math import sqrt

import numpy as np
import pytest
from checkout import GUIDE, ROOT
from scipy import stats
from scipy.special import expit

from sklearn_calib import decisions, decomposition, groups, inference, metrics
from sklearn_calib._kernels._grades import (
    compute_joint_p_from_smallest_p,
    compute_two_sided_total_events_p,
)

NUMBER = r"(-?\d*\.?\d+(?:e-?\d+)?)"


def numbers(thing, sentence):
    """The numbers of a sentence, written with N for each, in the docstring of a thing or a page."""
    text = (
        (GUIDE / thing).read_text(encoding="utf-8")
        if isinstance(thing, str)
        else thing.__doc__
    )
    text = " ".join(text.split())
    pattern = re.escape(sentence).replace(r"\ ", " ").replace("N", NUMBER)
    found = re.findall(pattern, text)
    name = thing if isinstance(thing, str) else thing.__name__
    assert len(found) == 1, f"{name} says {len(found)} times: {sentence}"
    return [float(number) for number in np.atleast_1d(found[0])]


def calibrated(scores, n_draws, n=500):
    """Scores and labels of calibrated predictions."""
    for number in range(n_draws):
        rng = np.random.default_rng(number)
        p = scores(rng, n)
        yield (rng.random(n) < p).astype(int), p


def read_table(name, **settings):
    """Return the rows of a table of the benchmarks that have these settings."""
    with open(ROOT / "benchmarks" / name, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        row for row in rows if all(row[key] in each for key, each in settings.items())
    ]


# -- of tables ------------------------------------------------------------------------------------


def test_the_coverage_of_one_sided_errors_is_that_of_the_table():
    sentence = (
        "too high by N, N or N, intervals of the expected error held the population's in N, N and "
        "N of N draws, and estimates were above it in N, N and N (stated.csv)"
    )
    stated = numbers(inference.confidence_interval, sentence)
    measure = "expected_calibration_error"
    rows = read_table("interval_coverage/stated.csv", measure=[measure])
    assert stated[:3] == [float(row["law"].split()[-1]) for row in rows]
    assert stated[3:6] == [float(row["covered"]) for row in rows]
    assert {stated[6]} == {float(row["draws"]) for row in rows}
    assert stated[7:] == [float(row["estimate_above"]) for row in rows]


def test_the_coverage_of_the_lp_error_is_that_of_the_table():
    sentence = (
        "in N of N draws and that of the sample's cells in N; "
        "estimates were above them in N and N"
    )
    population, draws, cells, *above = numbers(inference.confidence_interval, sentence)
    given = {
        "measure": ["lp_calibration_error"],
        "options": ["{}"],
        "law": ["log-odds times 0.8"],
    }
    rows = read_table("interval_coverage/stated.csv", **given)
    assert [row["value"] for row in rows] == ["population", "cells of the sample"]
    assert [population, cells] == [float(row["covered"]) for row in rows]
    assert above == [float(row["estimate_above"]) for row in rows]
    assert {draws} == {float(row["draws"]) for row in rows}


def test_the_coverage_of_mean_losses_with_few_events_is_that_of_the_table():
    sentence = (
        "one model held the truth in N to N of N draws of 30 and 60 rows (at 1 % all misses are "
        "intervals that are too high) and in N to N of 300 and 2,000 rows; percentiles in N to N "
        "and N to N"
    )
    stated = numbers(inference.confidence_interval, sentence)
    draws = stated.pop(2)
    found = []
    for kind in ("rows", "percentiles"):
        for sizes in (("30", "60"), ("300", "2000")):
            rows = read_table("interval_coverage/rare.csv", interval=[kind], n=sizes)
            held = [float(row["covered"]) for row in rows]
            found += [min(held), max(held)]
            assert kind == "percentiles" or {draws} == {
                float(row["draws"]) for row in rows
            }
    assert stated == pytest.approx(found, abs=0.0051)
    few = {"interval": ["rows"], "n": ["30", "60"], "share": ["0.01"]}
    assert {
        row["truth_above"] for row in read_table("interval_coverage/rare.csv", **few)
    } == {"0.000"}


def test_the_level_of_hosmer_and_lemeshow_of_20_clusters_is_that_of_the_table():
    sentence = (
        "in 20 clusters N to N of N tests reject at 0.05 and N to N at 0.01; with half of the "
        "clusters copies of one row N at 0.05"
    )
    stated = numbers(inference.hosmer_lemeshow_test, sentence)
    table = "cluster_coverage/hosmer_lemeshow.csv"
    rows = read_table(table, law=["20 of 3", "20 of 5", "20 of 20"])
    assert {stated[2]} == {float(row["draws"]) for row in rows}
    for ends, level in ((stated[:2], "at 0.05"), (stated[3:5], "at 0.01")):
        held = [float(row[level]) for row in rows]
        assert ends == pytest.approx([min(held), max(held)], abs=0.0051)
    (copies,) = read_table(table, law=["copies in half of the clusters"])
    assert stated[5] == pytest.approx(float(copies["at 0.05"]), abs=0.0051)


# -- exact ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "options"),
    [
        (inference.calibration_test, {}),
        (inference.cumulative_test, {"groups": np.arange(100)}),
        (inference.hosmer_lemeshow_test, {"groups": np.arange(100), "n_bins": 4}),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
def test_the_smallest_p_value(test, options):
    text = " ".join(test.__doc__.split())
    assert re.search(
        r"smallest (possible )?p-value is (then )?1 / \(1 \+ n_resamples\)", text
    )
    p = np.tile([0.02, 0.03, 0.05, 0.04], 25)
    found = test(np.ones(100), p, labels=[0, 1], n_resamples=19, **options)
    assert found.pvalue == 1 / (1 + 19)


def test_resamples_between_whose_quantiles_a_value_lies():
    """The mean mass of a uniform law between the quantiles of n draws is that of its places."""
    probability = "a further value lies between them with probability N for N resamples and N for N"
    first, n, second, few = numbers(inference.internal_validation, probability)
    assert (n, few) == (200, 40)
    for share, size in ((first, 200), (second, 40)):
        # E of the k-th of n: k / (n + 1)
        places = 1 + np.quantile(np.arange(size), [0.025, 0.975])
        assert round(np.diff(places)[0] / (size + 1), 2) == share
        assert round(0.95 * (size - 1) / (size + 1), 2) == share
    default = (
        inspect.signature(inference.internal_validation)
        .parameters["n_resamples"]
        .default
    )
    (written,) = numbers(inference.internal_validation, "n_resamples : int, default=N")
    assert written == default == 200


def test_the_fewest_resamples_that_exclude_anything():
    expected = "with fewer than 2 / (1 - level) - 1, N of them at N"
    fewest, level = numbers(inference.confidence_interval, expected)
    assert fewest == round(2 / (1 - level) - 1)
    y, p = np.zeros(200), np.full(200, 0.5)
    given = {"measure": "expected_calibration_error", "labels": [0, 1], "level": level}
    some = inference.confidence_interval(y, p, n_resamples=int(fewest), **given)
    fewer = inference.confidence_interval(y, p, n_resamples=int(fewest) - 1, **given)
    assert some.low > 0 == fewer.low


def test_rows_from_which_the_gamma_law_is_left():
    (rows,) = numbers(
        inference.confidence_interval, "proper losses if fewer than N rows, and"
    )
    for events, method in ((rows - 1, "gamma"), (rows, "bootstrap")):
        y = np.r_[np.ones(int(events)), np.zeros(400)]
        p = np.full(len(y), 0.1)
        assert (
            inference.confidence_interval(y, p, "log_loss", n_resamples=9).method
            == method
        )


def test_the_log_loss_of_a_class_of_probability_0():
    floor, most = numbers(
        metrics.log_loss,
        "-log(max(p, N)) with p the probability of its true class, so a true class of probability "
        "0 costs N",
    )
    loss = metrics.log_loss([1], [[1.0, 0.0]], labels=[0, 1])
    assert loss == pytest.approx(-np.log(floor), rel=0.01)
    assert round(loss, 2) == most


def test_the_largest_brier_losses():
    two, more = numbers(
        metrics.brier_loss,
        "the mean of (p - y)^2, in [0, N]. More: the mean of sum_c (p_c - y_c)^2, in [0, N];",
    )
    assert metrics.brier_loss([1], [[1.0, 0.0]], labels=[0, 1]) == two
    assert metrics.brier_loss([1], [[1.0, 0.0, 0.0]], labels=[0, 1, 2]) == more


def test_a_label_in_a_block_of_the_other_class():
    (cost,) = numbers(
        decomposition.isotonic_refinement_log_loss,
        "a label in a block of the other class costs N",
    )
    assert round(metrics.log_loss([1], [[1.0, 0.0]], labels=[0, 1])) == cost


# -- bounds ---------------------------------------------------------------------------------------


def test_swapping_the_classes_changes_l1_by_twice_the_share_of_rows_on_edges():
    text = " ".join(metrics.calibration_error.__doc__.split())
    assert '"l1" then changes by at most twice the share of such rows' in text
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.integers(1, 20, 60) / 20
        y = rng.integers(0, 2, 60)
        given = {"n_bins": 10, "strategy": "uniform", "norm": "l1"}
        one = metrics.calibration_error(y, p, **given)
        two = metrics.calibration_error(1 - y, 1 - p, **given)
        on_edge = np.isclose(10 * p, np.round(10 * p)).mean()
        assert abs(one - two) <= 2 * on_edge + 1e-12, seed


def test_the_decision_loss_is_between_the_largest_regret_and_twice_that():
    text = " ".join(decisions.calibration_decision_loss.__doc__.split())
    assert "is at most this number and at least half of it" in text
    assert "R(t) = E (c - t)(1{c > t} - 1{p > t})" in text
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = np.sort(rng.random(40))
        y = (rng.random(40) < p).astype(int)
        y[:2] = 0, 1
        c = isotonic(y)
        ends = np.concatenate([p, c])
        t = np.concatenate([ends - 1e-12, ends])[:, None]
        largest = ((c - t) * ((c > t).astype(int) - (p > t))).mean(axis=1).max()
        loss = decisions.calibration_decision_loss(y, p)
        assert loss / 2 - 1e-9 <= largest <= loss + 1e-9, seed


def isotonic(y):
    """Pool adjacent violators, of labels in the order of their scores."""
    blocks = []
    for label in y:
        blocks.append([float(label), 1])
        while (
            len(blocks) > 1
            and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]
        ):
            events, rows = blocks.pop()
            blocks[-1] = [blocks[-1][0] + events, blocks[-1][1] + rows]
    return np.concatenate([np.full(rows, events / rows) for events, rows in blocks])


# -- simulations ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_decision_loss_of_calibrated_predictions():
    sentence = (
        "for N rows of calibrated predictions it is N on average with normal log-odds, N with N % "
        "events, and N with predictions between N and N"
    )
    found = numbers(decisions.calibration_decision_loss, sentence)
    n, normal, rare, share, narrow, low, high = found
    laws = {
        normal: lambda rng, n: expit(rng.normal(size=n)),
        rare: lambda rng, n: expit(np.log(share / 165) + rng.normal(size=n)),
        narrow: lambda rng, n: rng.uniform(low, high, n),
    }
    for written, law in laws.items():
        losses = [
            decisions.calibration_decision_loss(y, p, labels=[0, 1])
            for y, p in calibrated(law, 200, int(n))
        ]
        assert abs(np.mean(losses) - written) < 0.0005 + 3 * np.std(losses) / sqrt(
            200
        ), written


@pytest.mark.slow
def test_errors_of_bins_of_calibrated_predictions():
    text = " ".join(metrics.calibration_error.__doc__.split())
    assert (
        "biased upwards, by about sqrt(n_bins / n) / 2 for calibrated predictions"
        in text
    )
    for n in (500, 2000):
        found = [
            metrics.calibration_error(y, p, n_bins=15, norm="l1")
            for y, p in calibrated(lambda rng, n: rng.random(n), 100, n)
        ]
        assert np.mean(found) == pytest.approx(sqrt(15 / n) / 2, rel=0.5)


@pytest.mark.slow
def test_the_plug_in_error_of_all_classes():
    text = " ".join(metrics.lp_calibration_error.__doc__.split())
    assert "for p = 2 by about sqrt(Brier / n) for calibrated predictions" in text
    found, expected = [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(3), 500)
        y = (rng.random((500, 1)) > p.cumsum(axis=1)).sum(axis=1)
        found.append(metrics.lp_calibration_error(y, p))
        expected.append(sqrt(metrics.brier_loss(y, p) / 500))
    assert np.mean(found) == pytest.approx(np.mean(expected), rel=0.1)


@pytest.mark.slow
def test_the_level_and_the_power_of_the_portfolio():
    sentence = (
        "Measured at N with seven right grades of N rows from 0.1 % to 30 %: N; of rates N times "
        "as large it rejects N, `p_value` N."
    )
    level, rows, size, factor, power, of_smallest = numbers(
        groups.grade_calibration, sentence
    )
    rates = np.array([0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3])
    rng, n = np.random.default_rng(0), np.full(7, rows)
    right = rng.binomial(int(rows), rates, (3000, 7)).astype(float)
    higher = rng.binomial(int(rows), factor * rates, (1000, 7)).astype(float)
    rejected = {
        size: np.mean(
            [compute_two_sided_total_events_p(k, n, rates) <= level for k in right]
        ),
        power: np.mean(
            [compute_two_sided_total_events_p(k, n, rates) <= level for k in higher]
        ),
        of_smallest: np.mean(
            [compute_joint_p_from_smallest_p(k, n, rates) <= level for k in higher]
        ),
    }
    for written, share in rejected.items():
        assert abs(share - written) < 0.005 + 3 * sqrt(
            written * (1 - written) / 1000
        ), written


@pytest.mark.slow
def test_the_level_of_hosmer_and_lemeshow_of_rare_events():
    sentence = (
        "of calibrated predictions with a mean of N on N rows the test rejects N at 0.05 and N at "
        "0.01; the plain law rejects N and N."
    )
    mean, n, at_5, at_1, plain_5, plain_1 = numbers(
        inference.hosmer_lemeshow_test, sentence
    )
    own, plain = [], []
    for y, p in calibrated(lambda rng, n: expit(-5 + rng.normal(size=n)), 1500, int(n)):
        found = inference.hosmer_lemeshow_test(y, p, labels=[0, 1])
        own.append(found.pvalue)
        plain.append(stats.chi2.sf(found.statistic, 10))
    assert p.mean() == pytest.approx(mean, abs=0.003)
    for pvalues, at, written in (
        (own, 0.05, at_5),
        (own, 0.01, at_1),
        (plain, 0.05, plain_5),
        (plain, 0.01, plain_1),
    ):
        share = np.mean(np.array(pvalues) <= at)
        assert abs(share - written) < 0.005 + 3 * sqrt(
            written * (1 - written) / 1500
        ), (at, share)


@pytest.mark.slow
def test_the_refinement_in_sample_is_too_low():
    text = " ".join(decomposition.temperature_refinement_log_loss.__doc__.split())
    assert "too low by about 1 / (2 n)" in text
    gaps = []
    for y, p in calibrated(lambda rng, n: expit(1.5 * rng.normal(size=n)), 400, 200):
        own = metrics.log_loss(y, p)
        gaps.append(own - decomposition.temperature_refinement_log_loss(y, p))
    assert np.mean(gaps) == pytest.approx(1 / 400, rel=0.3)
