"""The verdict of a report: each sentence where it must be, and where it must not."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit, softmax
from scipy.stats import ks_2samp

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import all_metrics, kernel_calibration_error, log_loss
from sklearn_calib.report import _verdict, calibration_report
from sklearn_calib.report._evidence import (
    KERNEL_BANDWIDTH,
    Bin,
    find_minimum_detectable_error_and_blindness,
    find_wrong_ranges,
    make_bins,
    run_kernel_test,
)
from sklearn_calib.summary import CalibrationSummary

QUICK = {"measures": ["expected_calibration_error"], "n_resamples": 60}


def rows(law, n, seed=0):
    """Labels and predictions of a known error."""
    rng = np.random.default_rng(seed)
    p, truth = LAWS[law](n, rng)
    return (rng.random(n) < truth).astype(int), p


def _logit(law):
    def draw(n, rng):
        z = 1.5 * rng.normal(size=n)
        return expit(z), expit(law(z))

    return draw


def _uniform(law):
    def draw(n, rng):
        p = rng.uniform(0.1, 0.9, n)
        return p, law(p)

    return draw


LAWS = {
    "calibrated": _uniform(lambda p: p),
    "too high": _logit(lambda z: z - 0.4),
    "too low": _logit(lambda z: z + 0.4),
    "overconfident": _logit(lambda z: 0.6 * z),
    "underconfident": _logit(lambda z: 1.6 * z),
    "backwards": _logit(lambda z: -0.2 * z),
    "wave": _uniform(lambda p: p - 0.12 * np.cos(7.5 * np.pi * (p - 0.5))),
    "only above .8": _uniform(lambda p: np.where(p > 0.8, p - 0.2, p)),
}


def verdict(law, n=6000, **options):
    return calibration_report(*rows(law, n), **{**QUICK, **options}).verdict


def sentence(found, topic):
    return next((s for s in found.sentences if s.topic == topic), None)


# -- calibrated -----------------------------------------------------------------------------------


def test_not_calibrated():
    found = verdict("overconfident")
    said = sentence(found, "calibrated")
    assert found.calibrated is False and found.p_value == 0.001
    assert said.text.startswith(
        "The probabilities are not calibrated (p = 0.001): none of 999 "
    )
    assert said.numbers["test"] == "kernel_calibration_error"
    assert str(found).startswith(said.text)


@pytest.mark.slow
def test_calibrated_with_many_rows():
    found = verdict("calibrated", 20_000)
    assert found.calibrated is True and found.p_value > 0.05
    assert "No miscalibration is found in 20000 rows" in str(found)


def test_no_verdict_with_few_rows():
    found = verdict("calibrated", 60)
    assert found.calibrated is None
    assert "60 rows are too few for a verdict" in str(found)


def test_certain_and_right_is_no_proof():
    """No resample of such rows differs, and no label drawn: there is nothing to learn from."""
    y = np.arange(40) % 2
    found = calibration_report(y, y.astype(float), **QUICK).verdict
    assert found.p_value == 1.0 and found.calibrated is None
    assert sentence(found, "size") is None
    assert "no error could be seen" in str(found)


@pytest.mark.parametrize("p", [0.04, 0.001])
def test_few_rows_that_are_all_right_are_no_proof(p):
    """Resamples of them do not differ, but 1 of 10 such rows may well be wrong."""
    y = np.arange(10) % 2
    found = calibration_report(y, np.where(y == 1, 1 - p, p), **QUICK).verdict
    assert found.calibrated is None
    assert sentence(found, "size").numbers["high"] == pytest.approx(
        1 - 0.05 ** (1 / 10)
    )
    y = np.arange(400) % 2
    found = calibration_report(y, np.where(y == 1, 1 - p / 10, p / 10), **QUICK).verdict
    assert found.calibrated is True
    assert sentence(found, "size").numbers["high"] == pytest.approx(
        1 - 0.05 ** (1 / 400)
    )


def test_few_rows_that_are_all_wrong():
    y = np.arange(12) % 2
    found = calibration_report(y, np.where(y == 1, 0.1, 0.9), **QUICK).verdict
    numbers = sentence(found, "size").numbers
    assert found.calibrated is False and numbers["error"] == pytest.approx(0.9)
    assert numbers["low"] == pytest.approx(0.9 - (1 - 0.05 ** (1 / 12)))
    assert numbers["high"] <= 1


def test_no_error_above_100_points():
    found = calibration_report([0, 1], [0.64, 0.27], **QUICK).verdict
    assert sentence(found, "size").numbers["high"] <= 1


@pytest.mark.slow
def test_small_probabilities_keep_their_digits():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.001, 0.003, 20_000)
    y = (rng.random(20_000) < 4 * p).astype(int)
    text = str(calibration_report(y, p, **QUICK).verdict)
    assert re.search(
        r"predictions of 0\.00[12]\d* come true in 0\.0\d+ of the cases", text
    )
    assert "predictions of 0.00 " not in text and "0.2 % on average" in text


def test_a_certain_prediction_has_two_decimals():
    y = np.arange(200) % 10 < 7
    for p, said in ((1.0, "1.00"), (0.9975, "0.9975"), (0.98, "0.98")):
        text = str(calibration_report(y, np.full(200, p), **QUICK).verdict)
        assert f"; predictions of {said} come true in 0.70 of the cases" in text


def test_rare_events_need_a_smaller_error_to_be_called_calibrated():
    """An error of 2 points is small where half of the rows are events, not where 1 % are."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.0, 0.02, 3000)
    y = (rng.random(3000) < p).astype(int)
    found = calibration_report(y, p, **QUICK).verdict
    assert found.p_value > 0.05 and found.calibrated is None
    assert sentence(found, "calibrated").numbers["tolerable"] == pytest.approx(
        y.mean() / 4
    )
    assert sentence(found, "size").numbers["high"] < 0.05


@pytest.mark.slow
def test_calibrated_needs_an_interval_that_ends_below_what_is_tolerable():
    """Below, as the documents say: not at it."""
    report = calibration_report(*rows("calibrated", 2000), **QUICK)
    (row,) = report.rows
    tolerable = sentence(report.verdict, "calibrated").numbers["tolerable"]
    assert tolerable == 0.05 and report.verdict.p_value > 0.05
    ends = np.nextafter(tolerable, 0), tolerable, np.nextafter(tolerable, 1)
    found = [
        replace(report, rows=[replace(row, high=end)]).verdict.calibrated
        for end in ends
    ]
    assert found == [True, None, None]


def test_all_draws_at_once_are_the_draws_one_by_one():
    """The same statistic, and the law of `simulate_labels`, with weights and without."""
    rng = np.random.default_rng(0)
    p = rng.random(300).round(2)
    y = (rng.random(300) < p**1.1).astype(int)
    for weight in (None, rng.exponential(1, 300)):
        summary = CalibrationSummary().update(y, p, sample_weight=weight)
        (sample,) = summary.samples()
        found = run_kernel_test(sample, 0)
        options = {"sample_weight": weight, "bandwidth": KERNEL_BANDWIDTH}
        assert found.statistic == pytest.approx(
            kernel_calibration_error(y, p, **options)
        )
        drawn = (sample.simulate_labels(rng) for _ in range(500))
        one_by_one = [
            kernel_calibration_error.evaluate(c, bandwidth=KERNEL_BANDWIDTH)
            for c in drawn
        ]
        assert ks_2samp(found.null_distribution, one_by_one).pvalue > 0.001


def test_the_test_is_one_that_a_reader_can_repeat():
    """Other draws, the same test."""
    y, p = rows("too low", 150, seed=3)
    found = calibration_report(y, p, **QUICK).verdict
    again = calibration_test(
        y,
        p,
        statistic="kernel_calibration_error",
        bandwidth=KERNEL_BANDWIDTH,
        random_state=1,
    )
    assert 0.002 < again.pvalue < 0.6
    assert found.p_value == pytest.approx(again.pvalue, abs=4 * np.sqrt(0.25 / 999))


# -- size, direction, where -----------------------------------------------------------------------


@pytest.mark.slow
def test_size_of_an_error():
    y, p = rows("too high", 6000)
    report = calibration_report(y, p, **QUICK)
    said = sentence(report.verdict, "size")
    (row,) = report.rows
    assert (said.numbers["low"], said.numbers["high"]) == (row.low, row.high)
    assert f"off by {100 * row.value:.1f} percentage points" in said.text
    worst = said.numbers["worst"]
    inside = (p >= worst["low"] - 1e-9) & (p <= worst["high"] + 1e-9)  # kept in 36 bits
    assert worst["observed"] == pytest.approx(y[inside].mean())
    assert f"come true in {worst['observed']:.2f} of the cases" in said.text
    calm = sentence(verdict("calibrated"), "size")
    assert "at most" in calm.text and "come true" not in calm.text


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ("too high", "too high"),
        ("too low", "too low"),
        ("overconfident", "overconfident"),
        ("underconfident", "underconfident"),
        ("backwards", "backwards"),
    ],
)
def test_direction(law, words):
    said = sentence(verdict(law), "direction")
    assert said.numbers["words"] == [words] and words in said.text
    assert ("Perhaps they are those of the other class" in said.text) == (
        law == "backwards"
    )


@pytest.mark.parametrize("law", ["calibrated", "wave"])
def test_no_direction_without_one(law):
    assert sentence(verdict(law), "direction") is None
    if law == "wave":
        assert verdict(law).calibrated is False


@pytest.mark.slow
def test_where_it_is_wrong():
    said = sentence(verdict("only above .8", 10_000), "where")
    (interval,) = said.numbers["intervals"]
    assert interval["too_high"] and interval["low"] > 0.7 and interval["high"] > 0.85
    assert "(too high)" in said.text
    assert sentence(verdict("calibrated"), "where") is None


@pytest.mark.parametrize("side", [0, 1])
def test_what_lies_at_the_end_of_an_interval_is_inside(side):
    """Of a bin, of the mean and of the slope; the next number is outside."""
    ends = [(0.3, 0.5), (0.1, 0.3)][side]
    one = Bin(0.2, 0.4, 50, 50.0, 0.3, sum(ends) / 2, *ends, None)
    out = float(np.nextafter(0.3, side))
    assert find_wrong_ranges([one]) == ([], None)
    runs, worst = find_wrong_ranges([one._replace(predicted=out)])
    assert [run.too_high for run in runs] == [side == 1] and worst.predicted == out
    of = SimpleNamespace(
        predicted=0.3, observed=0.4, observed_low=ends[0], observed_high=ends[1]
    )
    model = SimpleNamespace(two_classes=True, positive="rain")
    found = SimpleNamespace(evidence=of, level=0.95, model=model)
    assert _verdict._describe_mean_direction(found) is None
    of.predicted = out
    assert _verdict._describe_mean_direction(found)[0] == ("too low", "too high")[side]
    of.line = SimpleNamespace(
        slope=1.1, slope_interval=lambda level: [(1.0, 1.2), (0.8, 1)][side]
    )
    assert _verdict._make_slope_direction_parts(found) is None


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.9, 0.996])
def test_what_is_tolerable_is_a_share_of_the_rarer_outcome(rate):
    """The class that is called positive does not matter."""
    assert _verdict._compute_tolerable_error(rate) == pytest.approx(
        min(0.05, rate / 4, (1 - rate) / 4)
    )


@pytest.mark.slow
def test_runs_of_bins_on_one_side_are_one():
    found = [run.too_high for run in verdict("wave", 20_000).evidence.runs]
    assert len(found) >= 3 and all(a != b for a, b in pairwise(found))


# -- power ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_more_rows_see_smaller_errors():
    small, large = (
        verdict("calibrated", n).evidence.minimum_detectable for n in (300, 6000)
    )
    assert 0.01 < large < small < 0.15
    text = sentence(verdict("calibrated", 300), "power").text
    assert f"an error of {100 * small:.1f} percentage points" in text


def test_power_of_hopeless_rows():
    few, more = (verdict("calibrated", n) for n in (12, 300))
    assert few.evidence.blind and not more.evidence.blind
    assert few.evidence.minimum_detectable > 0.2
    said = [sentence(one, "power").text for one in (few, more)]
    assert ["scores without any information might pass" in text for text in said] == [
        True,
        False,
    ]


@pytest.mark.slow
def test_an_error_of_the_smallest_size_is_seen():
    """At least 4 of 5 times, for both kinds of error: too high or low, and overconfident."""
    n, draws = 400, 60
    z = np.linspace(-2.5, 2.5, n)
    p = expit(z)
    seen = calibration_report(
        (p > 0.5).astype(int), p, **QUICK
    ).verdict.evidence.minimum_detectable
    for kind in (lambda t: expit(z + t), lambda t: expit(z * (1 - t))):
        strengths = np.linspace(0, 0.9, 901)
        sizes = np.array([np.abs(kind(t) - p).mean() for t in strengths])
        truth = kind(strengths[np.searchsorted(sizes, seen)])
        found = []
        for seed in range(draws):
            y = (np.random.default_rng(seed).random(n) < truth).astype(int)
            options = {
                "statistic": "kernel_calibration_error",
                "bandwidth": KERNEL_BANDWIDTH,
            }
            found.append(
                calibration_test(y, p, n_resamples=99, **options).pvalue <= 0.05
            )
        assert np.mean(found) > 0.8 - 3 * np.sqrt(0.16 / draws)


def test_power_needs_the_rows_and_their_weights():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    whole = CalibrationSummary().update(p < 0.5, p)
    heavy = CalibrationSummary().update(
        p < 0.5, p, sample_weight=rng.exponential(1, 500) ** 2
    )
    equal, varied = (
        find_minimum_detectable_error_and_blindness(
            s.samples()[0], KERNEL_BANDWIDTH, 0.03
        )[0]
        for s in (whole, heavy)
    )
    assert equal != pytest.approx(varied, rel=0.02)


# -- gain and map ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_gain_and_map():
    # its gain is 3.0 to 3.7 standard errors in seeds 0 to 4, with scores of 36 bits as
    # of 52
    y, p = rows("overconfident", 2000, seed=1)
    report = calibration_report(y, p, **QUICK)
    assert sentence(report.verdict, "gain") is None
    advice = report.advise()["model"]
    gain, mixture = (sentence(report.verdict, topic) for topic in ("gain", "map"))
    row = advice.row("auto")
    assert gain.text.startswith('Recalibration by "auto" lowers the log loss from ')
    assert gain.numbers["gain"] == row.gain > 3 * row.standard_error > 0
    assert gain.numbers["rows"] == 2000 and "2000 rows" in gain.text
    assert mixture.numbers["weights"] == advice.weights
    assert list(advice.weights) == list(advice.stack.to_frame().index)
    assert advice.best == min(advice.rows, key=lambda one: one.loss).method


@pytest.mark.slow
def test_no_gain_for_calibrated_predictions():
    found = calibration_report(*rows("calibrated", 2000), advice=True, **QUICK).verdict
    assert "These rows do not show that recalibration would help" in str(found)
    assert sentence(found, "map") is None


@pytest.mark.slow
def test_advice_rests_on_the_rows_of_the_report():
    """Losses of the table and of the advice are one number; gains are differences row by row."""
    y, p = rows("overconfident", 20_000)
    weight = np.random.default_rng(0).exponential(1, 20_000)
    for given in (None, weight):
        report = calibration_report(y, p, sample_weight=given, advice=True, **QUICK)
        advice = report.advice["model"]
        loss = log_loss(y, p, sample_weight=given)
        assert advice.row("identity").loss == pytest.approx(loss, abs=1e-12)
        after = advice.recalibrated
        assert after.weight.sum() == pytest.approx(
            20_000 if given is None else weight.sum()
        )
        assert advice.row("auto").loss == pytest.approx(
            after.mean(-np.log(after.proba[np.arange(len(after.codes)), after.codes])),
            abs=1e-5,
        )
        before, recalibrated = advice.summaries().values()
        assert before.n_samples == recalibrated.n_samples
        if given is None:
            assert before.n_samples == 20_000


@pytest.mark.slow
def test_standard_error_of_the_gain():
    """Of two classes from cells as from the rows."""
    y, p = rows("overconfident", 3000)
    advice = calibration_report(y, p, advice=True, **QUICK).advice["model"]
    row, after, given = advice.row("auto"), advice.recalibrated, advice.given
    own = np.arange(len(after.codes)), after.codes
    gains = np.log(after.proba[own] / given.proba[own])
    assert row.gain == pytest.approx(gains.mean())
    assert row.standard_error == pytest.approx(gains.std() * np.sqrt(2 / 3000))


@pytest.mark.slow
def test_advice_of_several_classes_and_of_few_rows():
    proba, y = make_overconfident(3, 1200)
    report = calibration_report(y, proba, advice=True, **QUICK)
    advice = report.advice["model"]
    assert advice.recalibrated.proba.shape == (1200, 3)
    assert advice.row("auto").gain > 0.05
    assert "the predicted class was right" in str(report.verdict)
    summary = CalibrationSummary(classes=[0, 1, 2]).update(y, proba)
    assert calibration_report(summary, advice=True, **QUICK).advice == {"model": None}
    tiny = calibration_report(
        [0, 1, 0, 1, 1], [0.2, 0.9, 0.4, 0.6, 0.7], advice=True, **QUICK
    )
    assert tiny.advice == {"model": None} and sentence(tiny.verdict, "gain") is None


@pytest.mark.slow
def test_code_to_paste(tmp_path):
    """It runs, with the names of the columns, and repairs."""
    y, p = rows("overconfident", 400)
    table = pd.DataFrame({"score a": p, "outcome": np.where(y == 1, "yes", "no")})
    table.to_csv(tmp_path / "june.csv", index=False)
    table.to_csv(tmp_path / "new_predictions.csv", index=False)
    report = calibration_report(
        table["outcome"],
        table["score a"],
        source=str(tmp_path / "june.csv"),
        pos_label="yes",
        advice=True,
        **QUICK,
    )
    code = report.advice["model"].code
    assert "table['score a']" in code and "table['outcome']" in code
    code = code.replace(
        '"new_predictions.csv"', repr(str(tmp_path / "new_predictions.csv"))
    )
    found = {}
    exec(code, found)
    repaired = log_loss(table["outcome"], found["repaired"], pos_label="yes")
    assert repaired < log_loss(table["outcome"], p, pos_label="yes") - 0.02
    plain = calibration_report(y, p, advice=True, **QUICK).advice["model"].code
    found = {"y_true": y, "y_proba": p, "new_proba": p}
    exec(plain, found)
    assert log_loss(y, found["repaired"]) < log_loss(y, p)


# -- one test, all intervals ----------------------------------------------------------------------


@pytest.mark.slow
def test_no_claims_about_calibrated_predictions():
    """What is said beside the test rests on the test: no direction, no place without it."""
    for seed in range(6):
        y, p = rows("calibrated", 400, seed=seed)
        found = calibration_report(y, p, **QUICK).verdict
        said = {s.topic for s in found.sentences}
        assert ({"direction", "where"} & said == set()) or found.p_value <= 0.05


@pytest.mark.parametrize(
    "law",
    [n if n == "calibrated" else pytest.param(n, marks=pytest.mark.slow) for n in LAWS],
)
def test_intervals_of_the_table_hold_their_value(law):
    y, p = rows(law, 60)
    for row in calibration_report(
        y, p, measures=list(all_metrics()), n_resamples=20
    ).rows:
        assert row.low <= row.value <= row.high, row


def test_interval_that_left_its_own_value_out():
    """20 rows in 15 bins: resampled bins have larger gaps than the bins themselves."""
    rng = np.random.default_rng(0)
    p = rng.random(120)
    y = (rng.random(120) < p).astype(int)
    (row,) = calibration_report(y, p, measures=["maximum_calibration_error"]).rows
    assert row.low == 0.0 and row.high >= row.value > 0.1


def test_values_that_chance_has_too_count_as_chance():
    """8 of 10 fair coins: as far from 5 as that, or farther, has probability 0.11; farther 0.02."""
    y, p = np.arange(10) < 8, np.full(10, 0.5)
    (row,) = calibration_report(y, p, measures=["expected_calibration_error"]).rows
    assert row.value == pytest.approx(0.3) and row.low == 0.0
    (row,) = calibration_report(np.arange(10) < 9, p, measures=[row.measure]).rows
    assert row.low > 0.1


def test_bins_slope_and_intercept():
    y, p = rows("overconfident", 3000)
    report = calibration_report(y, p, **QUICK)
    bins, line = report.bins(), report.line()
    assert sum(one.rows for one in bins) == 3000 and len(bins) == 10
    assert [one.rows for one in bins] == [300] * 10
    first = np.sort(p)[:300]
    assert bins[0].predicted == pytest.approx(first.mean())
    assert bins[0].observed_over_expected == pytest.approx(
        bins[0].observed / bins[0].predicted
    )
    assert line.slope == pytest.approx(0.6, abs=4 * line.slope_error)
    assert line.slope_interval(0.9)[0] < line.slope < line.slope_interval(0.9)[1]
    assert line.intercept == pytest.approx(0.0, abs=4 * line.intercept_error)
    frame = pd.DataFrame(bins)
    assert list(frame.columns)[:4] == ["low", "high", "rows", "weight"]


def test_no_slope_where_it_is_not_determined():
    p = np.linspace(0.01, 0.99, 200)
    options = {**QUICK, "check_columns": False}
    # separated
    assert calibration_report((p > 0.5).astype(int), p, **options).line() is None
    y = np.zeros(200, dtype=int)
    y[:9] = 1
    assert calibration_report(y, p, **options).line() is None  # nine events
    assert (
        calibration_report(np.arange(200) % 2, np.full(200, 0.4), **options).line()
        is None
    )


def test_weights_are_in_all_numbers():
    """Rows that are given twice are rows of weight two, but for the errors of two rows."""
    y, p = rows("too low", 500)
    weight = np.where(np.arange(500) % 2, 2.0, 1.0)
    twice = np.repeat(np.arange(500), weight.astype(int))
    weighted = calibration_report(y, p, sample_weight=weight, **QUICK)
    repeated = calibration_report(y[twice], p[twice], **QUICK)
    one, two = weighted.verdict.evidence, repeated.verdict.evidence
    assert one[:2] == pytest.approx(two[:2])
    assert one.observed_high - one.observed_low > two.observed_high - two.observed_low
    assert weighted.line().slope == pytest.approx(repeated.line().slope)
    for a, b in zip(weighted.bins(), repeated.bins(), strict=True):
        assert a.observed == pytest.approx(b.observed) and a.predicted == pytest.approx(
            b.predicted
        )


@pytest.mark.slow
def test_summaries_get_the_same_verdict():
    y, p = rows("too high", 3000)
    summary = CalibrationSummary().update(y, p)
    of_rows, of_summary = (
        calibration_report(*given, advice=True, **QUICK)
        for given in ((y, p), (summary,))
    )
    assert str(of_rows.verdict) == str(of_summary.verdict)
    assert "summary.fit" in of_summary.advice["model"].code


def test_several_models():
    y, p = rows("overconfident", 800)
    report = calibration_report(y, {"a": p, "b": np.full(800, y.mean())}, **QUICK)
    assert [v.calibrated for v in report.verdicts.values()] == [False, True]
    with raises_invalid_input(
        ValueError,
        expected=".*a model among a, b",
        value="2 models",
        hint=r"Write report.verdicts\['a'\]",
    ):
        _ = report.verdict
    with raises_invalid_input(
        ValueError, expected="a whole number n_bins >= 1", value="0"
    ):
        report.bins("a", n_bins=0)


@pytest.mark.slow
def test_many_models_stay_readable():
    y, p = rows("overconfident", 1000)
    named = {f"a very long name of a model, number {i}": p for i in range(20)}
    text = str(calibration_report(y, named, **{**QUICK, "n_resamples": 2}))
    lines = text.splitlines()
    assert len(lines) < 50 and max(map(len, lines)) < 160
    assert sum("number 7" in line for line in lines) == 2
    assert "overconfident" in text and "0.001" in text


# -- dict, JSON, Markdown -------------------------------------------------------------------------

KEYS = {
    "": "format schema version created source n_rows n_clusters classes level models",
    "model": "name accuracy verdict measures decomposition log_loss line bins advice groups "
    "grades features",
    "verdict": "calibrated p_value in_the_large minimum_detectable sentences",
    "in_the_large": "predicted observed observed_low observed_high",
    "sentence": "topic text numbers",
    "measure": "measure value low high null_mean",
    "decomposition": "risk calibration refinement uncertainty",
    "log_loss": "rows_below_floor rows_of_zero scikit_learn",
    "line": "slope intercept slope_error intercept_error n_clusters freedom",
    "bin": "low high rows weight predicted observed observed_low observed_high "
    "observed_over_expected",
    "advice": "n_rows best rows weights code",
    "advised": "method loss gain standard_error brier_loss expected_calibration_error",
}


@pytest.mark.slow
def test_schema_is_stable(tmp_path):
    """A new key is added here; to remove one raises the number of the schema."""
    y, p = rows("too high", 1000)
    p = p**1.3 / (p**1.3 + (1 - p) ** 1.3)  # and overconfident
    report = calibration_report(y, p, source="june.csv", advice=True, **QUICK)
    text = report.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == text
    content = json.loads(text)
    assert content == json.loads(json.dumps(report.to_dict()))
    assert content["format"] == "sklearn-calib-report" and content["schema"] == 1
    assert content["source"] == "june.csv" and content["n_rows"] == 1000
    (model,) = content["models"]
    found = {
        "": content,
        "model": model,
        "verdict": model["verdict"],
        "in_the_large": model["verdict"]["in_the_large"],
        "sentence": model["verdict"]["sentences"][0],
        "measure": model["measures"][0],
        "decomposition": model["decomposition"],
        "log_loss": model["log_loss"],
        "line": model["line"],
        "bin": model["bins"][0],
        "advice": model["advice"],
        "advised": model["advice"]["rows"][0],
    }
    assert {part: list(keys) for part, keys in found.items()} == {
        part: keys.split() for part, keys in KEYS.items()
    }
    assert model["verdict"]["calibrated"] is False
    assert [one["topic"] for one in model["verdict"]["sentences"]] == list(
        ("calibrated", "size", "direction", "where", "power", "gain", "map")
    )


def test_json_has_no_nan():
    """Intervals without resamples, observed over expected of nothing, labels of any type."""
    y = np.array(["b", "a"])[np.arange(40) % 2]
    report = calibration_report(y, np.zeros(40), n_resamples=0, labels=["a", "b"])
    content = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert content["models"][0]["measures"][0]["low"] is None
    assert content["models"][0]["bins"][0]["observed_over_expected"] is None
    assert content["classes"] == ["a", "b"]
    assert replace(report, classes=[np.int64(3), pd.Timestamp("2026-01-01")]).to_dict()[
        "classes"
    ] == [3, "2026-01-01 00:00:00"]


@pytest.mark.slow
def test_markdown():
    y, p = rows("overconfident", 500)
    report = calibration_report(y, {"a|b": p}, source="x_y.csv", advice=True, **QUICK)
    text = report.to_markdown()
    assert "source: x\\_y.csv; " in text and "accuracy of a\\|b: " in text
    assert "```python" in text and "| auto | " in text
    assert str(report.verdicts["a|b"]).replace("_", "\\_") in text


def test_source_is_shown():
    y, p = rows("calibrated", 100)
    report = calibration_report(y, p, source="june.csv", **QUICK)
    assert str(report).startswith(f"source: june.csv; {report.created}; sklearn-calib ")
    assert "source" not in str(calibration_report(y, p, **QUICK))


# -- small simulations; the large ones are in benchmarks/verdict -----------------------------------


@pytest.mark.slow
def test_level_of_the_verdict_small():
    said = [
        calibration_report(
            *rows("calibrated", 100, seed), **{**QUICK, "n_resamples": 1}
        ).verdict.calibrated
        is False
        for seed in range(60)
    ]
    assert np.mean(said) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.slow
@pytest.mark.cross
@pytest.mark.parametrize(
    ("law", "n"), [("30 %", 200), ("1 %", 200), ("4 classes", 200), ("1 %", 1000)]
)
def test_level_of_the_verdict(law, n):
    """P(not calibrated | calibrated) is 0.05."""
    draws, said = 200, []
    for seed in range(draws):
        rng = np.random.default_rng([n, seed])
        if law == "4 classes":
            p = softmax(1.5 * rng.normal(size=(n, 4)), axis=1)
            y = np.minimum((rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1), 3)
        else:
            p = expit((-1 if law == "30 %" else -5) + 1.2 * rng.normal(size=n))
            y = (rng.random(n) < p).astype(int)
        options = {**QUICK, "n_resamples": 1, "random_state": seed}
        options["labels"] = np.arange(4) if law == "4 classes" else np.arange(2)
        said.append(calibration_report(y, p, **options).verdict.calibrated is False)
    sd = np.sqrt(0.05 * 0.95 / len(said))
    assert abs(np.mean(said) - 0.05) <= 3 * sd


@pytest.mark.slow
def test_all_bins_at_once():
    """The band holds the true frequencies of all bins in 90 % of the draws or more."""
    held = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        truth = p**1.5
        y = (rng.random(500) < truth).astype(int)
        (sample,) = CalibrationSummary().update(y, p).samples()
        bins = make_bins(sample, 8, 0.9 ** (1 / 8))
        true = [truth[(p >= b.low - 1e-9) & (p <= b.high + 1e-9)].mean() for b in bins]
        moved = [b._replace(predicted=t) for b, t in zip(bins, true, strict=True)]
        held.append(find_wrong_ranges(moved) == ([], None))
    assert np.mean(held) >= 0.9 - 3 * np.sqrt(0.09 / 300)


def test_exact_zeros_of_a_rare_class_are_not_mixed_with_the_slope():
    rng = np.random.default_rng(0)
    p = np.repeat([0.0, 0.005, 0.02, 0.3], [6000, 2000, 1500, 500])
    y = rng.random(10_000) < np.repeat(
        [0.005, 0.001, 0.01, 0.6], [6000, 2000, 1500, 500]
    )
    verdict = calibration_report(y, p, n_resamples=0, measures=["log_loss"]).verdict
    assert "predictions of 0 (too low)" in verdict
    assert "0.00 " not in verdict
    assert "Those between 0 and 1 are too cautious" in verdict
