"""Intervals of mean losses with few events, or none: they have a width, and hold the truth."""

import json
import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import gamma, t

from sklearn_calib._cli import main
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import confidence_interval, paired_difference
from sklearn_calib.metrics import log_loss
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

NONE_SEEN = "expected rows of every class, for an interval, got none with the label"


def expected_loss(p, share):
    """The log loss of one prediction for rows of which `share` have the event."""
    return -share * np.log(p) - (1 - share) * np.log(1 - p)


@pytest.mark.parametrize("option", ["rows", "groups", "weights"])
def test_sixty_rows_without_an_event_have_an_interval_that_holds_the_truth(option):
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 60)
    given = {
        "groups": {"groups": np.arange(60) // 5},
        "weights": {"sample_weight": weight},
    }
    with pytest.warns(CalibrationWarning, match=NONE_SEEN):
        found = confidence_interval(
            np.zeros(60),
            np.full(60, 0.02),
            "log_loss",
            labels=[0, 1],
            **given.get(option, {}),
        )
    assert found.method == "gamma"
    assert found.low <= found.estimate == found.sample_value
    assert found.high > 2 * expected_loss(0.02, 0.02) > 2 * 0.09


def test_the_ends_are_those_of_a_gamma_law_of_the_number_of_events():
    """Of events that all cost the same: 3 of 200 rows, by hand."""
    y, p = np.r_[np.ones(3), np.zeros(197)], np.full(200, 0.02)
    gap = -np.log(0.02) + np.log(0.98)
    mean = log_loss(y, p)
    tail = (1 + 0.9) / 2
    longer = t.ppf(tail, 199) / t.ppf(tail, np.inf)
    ends = []
    for events, side in ((0.5, 1 - tail), (1.0, tail)):
        parts = np.r_[np.full(3, gap * (1 - 3 / 200)), np.full(197, -gap * 3 / 200)]
        new = gap * (1 - 3 / 200)
        variance = (parts**2).sum() + events * new**2
        scale = ((parts**3).sum() + events * new**3) / variance
        shape = variance / scale**2
        moved = events * new + scale * (gamma.ppf(side, shape) - shape)
        ends.append(mean + longer * moved / 200)
    found = confidence_interval(y, p, "log_loss", level=0.9)
    assert [found.low, found.high] == pytest.approx(ends, rel=1e-9)


@pytest.mark.parametrize(("events", "method"), [(49, "gamma"), (50, "bootstrap")])
def test_the_interval_switches_at_fifty_events(events, method):
    y = np.r_[np.ones(events), np.zeros(200)]
    assert (
        confidence_interval(y, np.full(len(y), 0.2), "log_loss", n_resamples=9).method
        == method
    )


@pytest.mark.parametrize(("n", "method"), [(60, "bootstrap"), (61, "gamma")])
def test_the_interval_switches_at_two_thirds_of_an_equal_share(n, method):
    y = np.r_[np.ones(20), np.zeros(n - 20)]
    assert (
        confidence_interval(y, np.full(n, 0.2), "log_loss", n_resamples=9).method
        == method
    )


@pytest.mark.parametrize("measure", ["log_loss", "brier_loss", "spherical_loss"])
def test_rows_summaries_counts_and_both_names_of_the_classes_have_one_interval(measure):
    rng = np.random.default_rng(1)
    p = np.round(rng.beta(1, 20, 300), 2)
    y = (rng.random(300) < p).astype(int)
    plain = confidence_interval(y, p, measure)
    summary = CalibrationSummary()
    summary.update(y, p)
    others = {
        "summary": confidence_interval(summary, None, measure),
        "swapped": confidence_interval(1 - y, 1 - p, measure),
        "clusters of one row": confidence_interval(
            y, p, measure, groups=np.arange(300)
        ),
        "weights": confidence_interval(y, p, measure, sample_weight=np.full(300, 2.5)),
        "soft labels": confidence_interval(
            y.astype(float), p, measure, soft_labels=True
        ),
    }
    for name, other in others.items():
        ends = [other.low, other.estimate, other.high]
        expected = [plain.low, plain.estimate, plain.high]
        assert ends == pytest.approx(expected, rel=1e-9), (name, measure)


def test_weights_that_differ_make_the_interval_longer():
    rng = np.random.default_rng(2)
    p = rng.beta(1, 20, 400)
    y = (rng.random(400) < p).astype(int)
    plain = confidence_interval(y, p, "log_loss")
    uneven = confidence_interval(
        y, p, "log_loss", sample_weight=np.tile([0.2, 1.8], 200)
    )
    assert uneven.high - uneven.low > 1.1 * (plain.high - plain.low)


def test_copies_in_one_cluster_are_no_further_events():
    y, p = np.r_[np.ones(4), np.zeros(96)], np.full(100, 0.03)
    plain = confidence_interval(y, p, "log_loss")
    copied = confidence_interval(
        np.repeat(y, 3),
        np.repeat(p, 3),
        "log_loss",
        groups=np.repeat(np.arange(100), 3),
    )
    assert [copied.low, copied.high] == pytest.approx([plain.low, plain.high], rel=1e-9)


def test_an_unseen_class_of_three_is_named_and_counted():
    proba = np.tile([0.6, 0.37, 0.03], (90, 1))
    y = np.arange(90) % 2
    with pytest.warns(CalibrationWarning, match=f"{NONE_SEEN} 2"):
        found = confidence_interval(y, proba, "log_loss", labels=[0, 1, 2])
    truth = -0.6 * np.log(0.6) - 0.37 * np.log(0.37) - 0.03 * np.log(0.03)
    assert found.low < truth < found.high


def test_the_difference_of_two_models_without_an_event_holds_the_truth():
    first, second = np.full(60, 0.02), np.full(60, 0.04)
    with pytest.warns(CalibrationWarning, match=NONE_SEEN):
        found = paired_difference(np.zeros(60), first, second, labels=[0, 1])
    truth = expected_loss(0.04, 0.02) - expected_loss(0.02, 0.02)
    assert found.method == "gamma" and found.low < truth < found.high


def test_a_difference_counts_an_unseen_row_on_either_side():
    """Without an event more risk costs nothing here, but by the rows with the largest loss."""
    p = np.r_[0.2, np.full(29, 0.01)]
    q = np.r_[0.3, np.full(29, 0.015)]
    with pytest.warns(CalibrationWarning, match=NONE_SEEN):
        found = paired_difference(np.zeros(30), p, q, "brier_loss", labels=[0, 1])
    parts = q**2 - p**2
    mean = parts.mean()
    new = (1 + (50 / 30) ** 2) * (
        parts[0] - mean
    )  # the events make the difference smaller
    moved = parts - mean
    variance = (moved**2).sum() + new**2
    scale = ((moved**3).sum() + new**3) / variance
    shape = variance / scale**2
    longer = t.ppf(0.975, 29) / t.ppf(0.975, np.inf)
    end = mean + longer * (new + scale * (gamma.ppf(0.975, shape) - shape)) / 30
    assert found.high == pytest.approx(end, rel=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
def test_differences_of_overconfident_models_hold_the_truth():
    truth, held, draws = 0.00155, 0, 300
    for number in range(draws):
        rng = np.random.default_rng([number, 8])
        z = rng.normal(size=60)
        p, other = (expit(-5.07 + 1.6 * z + shift) for shift in (0.0, 0.5))
        y = (rng.random(60) < expit(-5.07 + z)).astype(int)
        found = paired_difference(y, p, other, "brier_loss", labels=[0, 1])
        held += found.low <= truth <= found.high
    assert held / draws > 0.93


def test_a_report_has_the_same_interval():
    rng = np.random.default_rng(3)
    p = np.round(rng.beta(1, 30, 300), 3)
    y = (rng.random(300) < p).astype(int)
    summary = CalibrationSummary()
    summary.update(y, p)
    expected = confidence_interval(y, p, "log_loss")
    for given in ((y, p), (summary,)):
        report = calibration_report(
            *given, measures=["log_loss"], n_resamples=20, level=0.95
        )
        (row,) = (row for row in report.rows if row.measure == "log_loss")
        assert [row.low, row.high] == pytest.approx(
            [expected.low, expected.high], rel=1e-6
        )


def test_measures_that_are_bootstrapped_warn_of_an_unseen_class():
    with pytest.warns(CalibrationWarning, match=NONE_SEEN):
        confidence_interval(
            np.zeros(60),
            np.full(60, 0.1),
            "expected_cost_score",
            labels=[0, 1],
            n_resamples=9,
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 60, 300])
@pytest.mark.parametrize("share", [0.01, 0.02, 0.05])
def test_intervals_of_rare_events_hold_the_truth_and_miss_on_both_sides(n, share):
    rng = np.random.default_rng(n)
    z = np.log(share) + 0.8 * rng.normal(size=200_000)
    truth = expected_loss(expit(z), expit(z)).mean()
    ends = []
    for _ in range(500):
        p = expit(rng.choice(z, n))
        y = (rng.random(n) < p).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            found = confidence_interval(y, p, "log_loss", labels=[0, 1])
        ends.append((found.low, found.high))
    low, high = np.array(ends).T
    below, above = np.mean(truth < low), np.mean(truth > high)
    assert below < 0.025 + 3 * 0.0098, below
    assert above < 0.025 + 3 * 0.0098, above


def test_equal_classes_are_never_rare():
    proba, _ = make_overconfident(5, 60)
    found = confidence_interval(np.arange(60) % 5, proba, "log_loss", n_resamples=9)
    assert found.method == "bootstrap"


def test_the_command_compare_has_the_same_interval(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    p = rng.beta(1, 30, 200)
    y = (rng.random(200) < p).astype(int)
    table = np.column_stack([y, p, np.sqrt(p) / 3])
    np.savetxt("t.csv", table, delimiter=",", header="y,p,q", comments="", fmt="%.17g")
    options = ["--label", "y", "--prob", "p", "--prob", "q", "--positive", "1"]
    command = ["compare", "t.csv", *options, "--json", "c.json", "--level", "0.95"]
    # The intervals of the other measures are drawn; a gamma interval is not.
    assert main([*command, "--resamples", "40"]) == 0
    rows = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["differences"]
    (found,) = (row for row in rows if row["measure"] == "log_loss")
    expected = paired_difference(y, p, np.sqrt(p) / 3)
    assert expected.method == found["method"] == "gamma"
    ends = [found["low"], found["high"]]
    assert ends == pytest.approx([expected.low, expected.high], rel=1e-9)
