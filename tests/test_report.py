import re
from pathlib import Path

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy.stats import norm, sem

import sklearn_calib
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import (
    simulate_bootstrap_distribution,
    simulate_null_distribution,
)
from sklearn_calib.metrics import (
    all_metrics,
    brier_loss,
    log_loss,
    measure,
    validate_predictions,
)
from sklearn_calib.report import calibration_report
from sklearn_calib.report._table import make_draw_interval
from sklearn_calib.summary import CalibrationSummary


@pytest.mark.parametrize("k", [2, 4])
def test_values_are_the_measures(k):
    proba, y = make_overconfident(k, 400)
    weight = np.random.default_rng(0).random(400)
    labels = np.array(["a", "b", "c", "d"])[y]
    report = calibration_report(labels, proba, sample_weight=weight, n_resamples=8)
    assert {r.measure for r in report.rows} == {
        name for name, f in all_metrics().items() if f.spec.in_report
    }
    for row in report.rows:
        measure = all_metrics()[row.measure]
        assert row.value == pytest.approx(measure(labels, proba, sample_weight=weight))
        assert row.low <= row.high
    parts = report.decomposition["model"]
    assert parts.risk == pytest.approx(log_loss(labels, proba, sample_weight=weight))
    low, high = parts.interval("calibration", 0.9)
    said = f"calibration {parts.calibration:.4f} (90 %: {low:.4f} to {high:.4f})"
    assert said in str(report)
    assert report.accuracy["model"] == pytest.approx(
        np.average(proba.argmax(axis=1) == y, weights=weight)
    )


def test_overconfidence_is_seen_and_calibration_is_not():
    proba, y = make_overconfident(2, 2000)
    report = calibration_report(
        y, proba, measures=["expected_calibration_error"], n_resamples=50
    )
    assert report.rows[0].value > report.rows[0].null_mean
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    calm = calibration_report(
        (rng.random(2000) < p).astype(int),
        p,
        measures=["expected_calibration_error"],
        level=0.99,
        n_resamples=100,
    )
    assert calm.rows[0].value <= calm.rows[0].null_mean


def test_interval_of_a_mean_is_the_textbook_one():
    proba, y = make_overconfident(2, 1000)
    (row,) = calibration_report(
        y, proba, measures=["brier_loss"], n_resamples=1500
    ).rows
    losses = (proba[:, 1] - y) ** 2
    half = 1.645 * losses.std() / np.sqrt(1000)
    assert row.value - row.low == pytest.approx(half, rel=0.1)
    assert row.high - row.value == pytest.approx(half, rel=0.1)


@pytest.mark.slow
def test_calibrated_predictions_stay_below_the_limit_as_often_as_it_says():
    rng, beyond = np.random.default_rng(0), []
    for seed in range(150):
        p = rng.random(200)
        report = calibration_report(
            (rng.random(200) < p).astype(int),
            p,
            measures=["brier_loss"],
            level=0.8,
            n_resamples=40,
            random_state=seed,
        )
        beyond.append(report.rows[0].value > report.rows[0].null_mean)
    assert np.mean(beyond) == pytest.approx(0.2, abs=0.07)


def test_limit_of_a_measure_that_is_greater_for_better_predictions(monkeypatch):
    @measure(greater_is_better=True, range=(0, 1), perfect=1.0, poolable=True)
    def skill(predictions):
        """One less the Brier loss."""
        return 1 - brier_loss.evaluate(predictions)

    monkeypatch.setitem(sklearn_calib.metrics._MEASURE_REGISTRY, "skill", skill)
    proba, y = make_overconfident(2, 300)
    options = {"measures": ["brier_loss", "skill"], "n_resamples": 50}
    plain, turned = calibration_report(y, proba, **options).rows
    assert turned.null_mean == pytest.approx(1 - plain.null_mean)
    assert (turned.low, turned.high) == pytest.approx((1 - plain.high, 1 - plain.low))


def test_several_models_progress_and_forms(tmp_path):
    proba, y = make_overconfident(3, 300)
    seen = []
    report = calibration_report(
        y,
        {"raw": proba, "flat <b>": np.full((300, 3), 1 / 3)},
        n_resamples=5,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1][0] == 20
    frame = report.to_frame()
    assert list(frame.columns) == [
        "model",
        "measure",
        "value",
        "low",
        "high",
        "null_mean",
    ]
    assert len(frame) == len(report.rows)
    assert "raw" in str(report) and "brier_loss" in str(report)
    assert (
        "flat &lt;b&gt;" in report._repr_html_() and "<b>" not in report._repr_html_()
    )
    path = report.to_html(tmp_path / "r.html", title="A & B")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert path == str(tmp_path / "r.html")
    assert text.count('role="img"') == 6  # two models, three classes, and their plane
    assert "A &amp; B" in text and "<script" not in text
    assert not re.search(r'(src|href)="(?!data:)', text), "the file needs the network"


@pytest.mark.slow
def test_auto_resamples_shrink_with_the_data(monkeypatch):
    """Where rows are drawn; cells are drawn 200 times however many rows they hold."""

    def spread(case):
        """A measure that needs the rows: nothing states that they may be pooled."""
        return float(case.second.std())

    monkeypatch.setitem(
        sklearn_calib.metrics._MEASURE_REGISTRY, "spread", measure()(spread)
    )
    proba, y = make_overconfident(2, 200_000)
    for name, total in (("spread", 200), ("brier_loss", 400)):
        seen = []
        calibration_report(
            y,
            proba,
            measures=[name],
            progress=lambda done, total, seen=seen: seen.append(total),
        )
        assert set(seen) == {total}  # half of each kind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["ece"]}, "expected measures among .*brier_loss.*, got 'ece'"),
        ({"level": 2}, "expected a level between 0 and 1, got 2"),
    ],
)
def test_refused(options, message):
    proba, y = make_overconfident(2)
    with pytest.raises(ValueError, match=message):
        calibration_report(y, proba, **options)


def test_one_log_loss_in_a_report(tmp_path):
    """Table and decomposition print the same number, also if a true class has probability 0."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.2, 0.2, 500).round(2)
    y = (rng.random(500) < 0.1 + 0.8 * p).astype(int)
    report = calibration_report(y, {"forest": p, "calm": 0.1 + 0.8 * p}, n_resamples=0)
    table = {row.model: row.value for row in report.rows if row.measure == "log_loss"}
    for name, value in table.items():
        assert report.decomposition[name].risk == pytest.approx(value, rel=1e-14)
        assert f"log loss {value:.4f}" in str(report)
    zeros = int((np.where(y == 1, p, 1 - p) == 0).sum())
    assert zeros > 5 and report.floored == {"forest": (zeros, zeros), "calm": (0, 0)}
    said = f"forest: the true class has a probability below 2.2e-16 in {zeros} rows (exactly 0 in "
    assert said in str(report) and "calm: the true" not in str(report)
    with open(report.to_html(tmp_path / "report.html"), encoding="utf-8") as file:
        page = file.read()
    assert said in page and "2.2e−16" in page


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_intervals_are_those_of_rows(weighted):
    """Values to 1e-12; ends of intervals and limits within what 400 draws of rows vary by."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.9, 4000)
    y = (rng.random(4000) < p**1.2).astype(int)
    weight = rng.gamma(2.0, size=4000) if weighted else None
    report = calibration_report(y, p, sample_weight=weight, n_resamples=400)
    case = validate_predictions(y, p, weight)
    functions = [all_metrics()[row.measure] for row in report.rows]
    functions = [f for f in functions if f.spec.name != "lower_distance_to_calibration"]

    def evaluate(drawn):
        return [function.evaluate(drawn) for function in functions]

    redrawn = simulate_bootstrap_distribution(case, evaluate, 400, 1)
    relabelled = simulate_null_distribution(case, evaluate, 400, 1)
    for number, function in enumerate(functions):
        row = next(r for r in report.rows if r.measure == function.spec.name)
        assert row.value == pytest.approx(function.evaluate(case), abs=1e-12)
        drawn, null = redrawn[:, number], relabelled[:, number]
        low, high = make_draw_interval(function, row.value, drawn, null, 0.9)
        # the standard error of a tail of 5 % of 400 draws is some 0.11 standard
        # deviations
        for found, limit, column in (
            (row.low, low, drawn),
            (row.high, high, drawn),
            (row.null_mean, np.quantile(null, 0.9), null),
        ):
            assert abs(found - limit) < 0.6 * column.std(), function


@pytest.mark.slow
def test_a_class_without_rows_does_not_prevent_advice():
    proba, y = make_overconfident(3, 300)
    kept = y < 2
    with pytest.warns(CalibrationWarning, match="rows of every class"):
        report = calibration_report(
            y[kept], proba[kept], labels=range(3), n_resamples=2
        )
    assert {row.method for row in report.advise()["model"].rows} >= {"identity", "auto"}


@pytest.mark.slow
def test_summaries_are_reported_on(tmp_path):
    proba, y = make_overconfident(2, 3000)
    proba[:5], y[:5] = [1.0, 0.0], [0, 0, 1, 1, 1]
    rows = calibration_report(y, proba, n_resamples=20)
    parts = [CalibrationSummary().update(y[i::3], proba[i::3]) for i in range(3)]
    alone = calibration_report(sum(parts), n_resamples=20)
    for one, other in zip(rows.rows, alone.rows, strict=True):
        expected = [one.value, one.low, one.high, one.null_mean]
        found = [other.value, other.low, other.high, other.null_mean]
        assert found == pytest.approx(expected, rel=1e-9)
    assert alone.n_samples == 3000 and alone.classes == [0, 1]
    assert alone.floored == rows.floored == {"model": (3, 3)}
    assert alone.accuracy == pytest.approx(rows.accuracy)
    mine, theirs = alone.decomposition["model"], rows.decomposition["model"]
    assert mine.risk == pytest.approx(theirs.risk)
    assert mine.interval("calibration") == pytest.approx(theirs.interval("calibration"))
    two = calibration_report({"old": parts[0], "new": parts[1]}, measures=["log_loss"])
    assert [row.model for row in two.rows] == ["old", "new"]
    text = Path(two.to_html(tmp_path / "two.html")).read_text(encoding="utf-8")
    assert text.count('role="img"') == 3


def test_a_summary_of_several_classes_is_reported_on():
    proba, y = make_overconfident(5, 2000)
    rows = calibration_report(y, proba, n_resamples=50)
    summary = CalibrationSummary(classes=np.arange(5)).update(y, proba)
    alone = calibration_report(summary, n_resamples=50)
    for one, other in zip(rows.rows, alone.rows, strict=True):
        assert (other.measure, other.value) == (
            one.measure,
            pytest.approx(one.value, rel=1e-9),
        )
        assert other.low == pytest.approx(one.low, rel=1e-9)
    assert alone.accuracy == pytest.approx(rows.accuracy)
    assert alone.decomposition == {} and alone.classes == list(range(5))
    with raises_invalid_input(
        ValueError, expected="measures of cells", value="lp_calibration_error"
    ):
        calibration_report(summary, measures=["lp_calibration_error"])
    with raises_invalid_input(ValueError, expected="summaries of the confidence"):
        calibration_report(
            CalibrationSummary(multiclass="classwise", classes=np.arange(5))
        )
    # Of two classes each is the other's complement, so there is one problem.
    two = CalibrationSummary(multiclass="classwise", classes=[0, 1])
    two.update(y > 1, 1 - proba[:, :2].sum(axis=1))
    assert calibration_report(two, n_resamples=5, advice=False).n_samples == 2000
    with raises_invalid_input(
        ValueError, expected="summaries alone", value="other arguments"
    ):
        calibration_report(summary, labels=[0, 1, 2, 3, 4])
    with pytest.raises(TypeError, match=r"y_proba is missing, .*\. Pass y_proba"):
        calibration_report([0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["brier_loss", "log_loss"])
def test_losses_of_several_classes_by_their_standard_errors(name):
    """Interval and limit against many draws of rows and labels."""
    proba, y = make_overconfident(4, 800)
    weight = np.random.default_rng(0).gamma(2.0, size=800)
    (row,) = calibration_report(y, proba, sample_weight=weight, measures=[name]).rows
    case = validate_predictions(y, proba, weight)
    measure = all_metrics()[name]
    redrawn = simulate_bootstrap_distribution(case, measure.evaluate, 3000)
    spread = redrawn.std()
    ends = np.quantile(redrawn, [0.05, 0.95])
    assert [row.low, row.high] == pytest.approx(ends, abs=0.2 * spread)
    relabelled = simulate_null_distribution(case, measure.evaluate, 3000)
    limit = np.quantile(relabelled, 0.9)
    assert row.null_mean == pytest.approx(limit, abs=0.2 * relabelled.std())


def test_standard_error_of_a_loss_of_a_few_rows():
    """The textbook's, of n - 1 degrees of freedom; one row has none."""
    proba, y = make_overconfident(3, 6)
    given = {"measures": ["log_loss"], "labels": [0, 1, 2], "level": 0.9}
    (row,) = calibration_report(y, proba, **given).rows
    half = norm.ppf(0.95) * sem(-np.log(proba[np.arange(6), y]))
    assert [row.low, row.high] == pytest.approx([row.value - half, row.value + half])
    (row,) = calibration_report(y[:1], proba[:1], **given).rows
    assert (row.low, row.high) == (-np.inf, np.inf)
