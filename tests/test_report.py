import re

import numpy as np
import pytest

import sklearn_calib
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import all_metrics, brier_loss, log_loss, metric
from sklearn_calib.report import calibration_report


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
    said = f"calibration {parts.calibration:.4f} (90%: {low:.4f} to {high:.4f})"
    assert said in str(report)
    assert report.accuracy["model"] == pytest.approx(
        np.average(proba.argmax(axis=1) == y, weights=weight)
    )


def test_overconfidence_is_seen_and_calibration_is_not():
    proba, y = make_overconfident(2, 2000)
    report = calibration_report(y, proba, measures=["expected_calibration_error"], n_resamples=50)
    assert report.rows[0].value > report.rows[0].if_calibrated
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    calm = calibration_report(
        (rng.random(2000) < p).astype(int),
        p,
        measures=["expected_calibration_error"],
        level=0.99,
        n_resamples=100,
    )
    assert calm.rows[0].value <= calm.rows[0].if_calibrated


def test_interval_of_a_mean_is_the_textbook_one():
    proba, y = make_overconfident(2, 1000)
    (row,) = calibration_report(y, proba, measures=["brier_loss"], n_resamples=1500).rows
    losses = (proba[:, 1] - y) ** 2
    half = 1.645 * losses.std() / np.sqrt(1000)
    assert row.value - row.low == pytest.approx(half, rel=0.1)
    assert row.high - row.value == pytest.approx(half, rel=0.1)


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
        beyond.append(report.rows[0].value > report.rows[0].if_calibrated)
    assert np.mean(beyond) == pytest.approx(0.2, abs=0.07)


def test_limit_of_a_measure_that_is_greater_for_better_predictions(monkeypatch):
    @metric(greater_is_better=True, range=(0, 1), perfect=1.0, cells=True)
    def skill(case):
        """One less the Brier loss."""
        return 1 - brier_loss.of_case(case)

    monkeypatch.setitem(sklearn_calib.metrics._REGISTRY, "skill", skill)
    proba, y = make_overconfident(2, 300)
    options = {"measures": ["brier_loss", "skill"], "n_resamples": 50}
    plain, turned = calibration_report(y, proba, **options).rows
    assert turned.if_calibrated == pytest.approx(1 - plain.if_calibrated)
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
    assert list(frame.columns) == ["model", "measure", "value", "low", "high", "if_calibrated"]
    assert len(frame) == len(report.rows)
    assert "raw" in str(report) and "brier_loss" in str(report)
    assert "flat &lt;b&gt;" in report._repr_html_() and "<b>" not in report._repr_html_()
    path = report.to_html(tmp_path / "r.html", title="A & B")
    text = (tmp_path / "r.html").read_text()
    assert path == str(tmp_path / "r.html")
    assert text.count("data:image/png;base64,") == 3
    assert "A &amp; B" in text and "<script" not in text
    assert not re.search(r'(src|href)="(?!data:)', text), "the file needs the network"


def test_auto_resamples_shrink_with_the_data(monkeypatch):
    """Where rows are drawn; cells are drawn 200 times however many rows they hold."""

    def spread(case):
        """A measure that needs the rows: nothing says that they may be pooled."""
        return float(case.second.std())

    monkeypatch.setitem(sklearn_calib.metrics._REGISTRY, "spread", metric()(spread))
    proba, y = make_overconfident(2, 200_000)
    for measure, total in (("spread", 200), ("brier_loss", 400)):
        seen = []
        calibration_report(
            y, proba, measures=[measure], progress=lambda done, total, seen=seen: seen.append(total)
        )
        assert set(seen) == {total}  # half of each kind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["ece"]}, "expected measures among brier_loss.*, got 'ece'"),
        ({"level": 2}, r"expected level in \(0, 1\), got 2"),
    ],
)
def test_refused(options, message):
    proba, y = make_overconfident(2)
    with pytest.raises(ValueError, match=message):
        calibration_report(y, proba, **options)


def test_one_log_loss_in_a_report(tmp_path):
    """Table and decomposition print the same number, also where a true class has probability 0."""
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
    with open(report.to_html(tmp_path / "report.html")) as file:
        page = file.read()
    assert said in page and "2.2e&minus;16" in page
