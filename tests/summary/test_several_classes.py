import pickle

import numpy as np
import pytest
from error_fields import raises_invalid_input

from sklearn_calib import metrics
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.summary import CalibrationSummary

KINDS = ["confidence", "top_label", "classwise"]
BINARY = sorted(
    n for n, m in metrics.all_metrics().items() if "multiclass" in m.option_names
)


@pytest.mark.parametrize("kind", ["auto", *KINDS])
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("weighted", [False, True])
def test_measures_of_rows_while_exact(kind, name, weighted):
    proba, y = make_overconfident(4, 300)
    w = np.random.default_rng(0).gamma(1.0, size=len(y)) if weighted else None
    summary = CalibrationSummary(multiclass=kind).update(y, proba, w)
    expected = metrics.all_metrics()[name](y, proba, sample_weight=w, multiclass=kind)
    assert summary.exact
    assert summary.measure(name) == pytest.approx(expected, abs=1e-10)
    assert summary.measure(name, multiclass=kind) == summary.measure(name)
    problems = summary.predictions().problems()
    titles = [p.title for p in metrics.validate_predictions(y, proba).problems(kind)]
    assert [p.title for p in problems] == titles


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_losses_and_parts(kind, k):
    proba, y = make_overconfident(k, 3000)
    rng = np.random.default_rng(1)
    once = CalibrationSummary(multiclass=kind, classes=np.arange(k)).update(y, proba)
    parts = []
    for rows in np.array_split(rng.permutation(len(y)), [5, 5, 900]):
        part = CalibrationSummary(multiclass=kind).update(y[rows], proba[rows])
        parts.append(pickle.loads(pickle.dumps(part)))
    assert sum(parts) == once == sum(parts[::-1])
    for name in ("brier_loss", "log_loss"):
        expected = metrics.all_metrics()[name](y, proba)
        assert once.measure(name) == pytest.approx(expected, rel=1e-12)


def test_totals():
    proba, y = make_overconfident(3, 4000)
    rng = np.random.default_rng(2)
    w, counts = rng.gamma(1.0, size=len(y)), rng.integers(0, 3, len(y))
    proba[:5], y[:5] = [1.0, 0.0, 0.0], 1
    totals = CalibrationSummary().update(y, proba, w, counts).totals
    rows = np.repeat(np.arange(len(y)), counts)
    proba, y, w = proba[rows], y[rows], w[rows]
    assert (totals.n_samples, totals.certain_and_wrong) == (len(y), counts[:5].sum())
    assert totals.correct == pytest.approx(w @ (proba.argmax(axis=1) == y))
    log, brier = (
        metrics.get_loss(name).compute_row_losses(proba, y) for name in ("log", "brier")
    )
    for own, found in ((log, totals[5:8]), (brier, totals[10:13])):
        assert np.allclose(found, [w @ own, w**2 @ own, w**2 @ own**2], 1e-12, 0)
    codes = np.tile(np.arange(3), (len(y), 1))
    for of_rows, found in (
        (metrics.get_loss("log").compute_row_losses, totals[8:10]),
        (metrics.get_loss("brier").compute_row_losses, totals[13:15]),
    ):
        loss = np.column_stack([of_rows(proba, codes[:, c]) for c in range(3)])
        mean = (proba * loss).sum(axis=1)
        variance = (proba * loss**2).sum(axis=1) - mean**2
        assert np.allclose(found, [w @ mean, w**2 @ variance], 1e-9, 0)


@pytest.mark.parametrize("k", [2, 3])
def test_cells_of_classwise_share_the_number(k):
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.ones(k), 50_000)
    y = rng.integers(0, k, len(proba))
    summary = CalibrationSummary(16_384, multiclass="classwise").update(y, proba)
    assert summary.n_cells <= 16_384
    assert summary.significant_bits < 36


def test_labels_of_many_classes():
    proba, y = make_overconfident(3, 200)
    words = np.array(["a", "b", "c"])[y]
    plain = CalibrationSummary().update(y, proba)
    named = CalibrationSummary(classes=["a", "b", "c"]).update(words, proba)
    assert plain.classes.tolist() == [0, 1, 2]
    for name in ("log_loss", "smooth_calibration_error"):
        assert named.measure(name) == plain.measure(name)
    with raises_invalid_input(
        ValueError, expected=".*labels among .*0, 1, 2", value=".a", row=0
    ):
        CalibrationSummary().update(words, proba)
    with raises_invalid_input(
        ValueError, expected="scores of 3 classes", value="2 columns"
    ):
        plain.update(y[:3] % 2, proba[:3, :1])
    with raises_invalid_input(
        ValueError, expected="scores of 2 classes", value="3 columns"
    ):
        CalibrationSummary(classes=[0, 1]).update(y, proba)
    with raises_invalid_input(
        ValueError, expected=".*pos_label with two classes", value="3 classes"
    ):
        CalibrationSummary(classes=[0, 1, 2], pos_label=1)
    with raises_invalid_input(ValueError, expected="summaries of the same classes"):
        plain + named
    with raises_invalid_input(
        ValueError, expected="summaries of one multiclass option"
    ):
        plain + CalibrationSummary(multiclass="classwise")


def test_empty_parts_know_no_classes():
    proba, y = make_overconfident(3, 200)
    full = CalibrationSummary().update(y, proba)
    empty = CalibrationSummary().update([], [])
    assert empty + full == full == full + empty and empty.classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda s: s.measure("lp_calibration_error"),
            "lp_calibration_error, which reads whole",
        ),
        (
            lambda s: s.measure("isotonic_refinement_brier"),
            "summary of two classes, got a summary of 3 classes",
        ),
        (lambda s: s.rows(), "summary of two classes, got a summary of 3 classes"),
        (
            lambda s: s.measure("expected_calibration_error", multiclass="classwise"),
            "'confidence', which was summarised, got 'classwise'",
        ),
    ],
)
def test_what_is_refused(call, message):
    proba, y = make_overconfident(3, 200)
    with pytest.raises(ValueError, match=message):
        call(CalibrationSummary().update(y, proba))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["calibration_error", "smooth_calibration_error"])
def test_two_classes_know_all_ways(kind, name):
    """Cells do not cross 1/2, so those of two classes hold the largest probability too."""
    proba, y = make_overconfident(2, 500)
    summary = CalibrationSummary(multiclass=kind).update(y, proba)
    expected = metrics.all_metrics()[name](y, proba, multiclass=kind)
    assert summary.measure(name) == pytest.approx(expected, abs=1e-10)
