"""Measures and curves of many labels per row."""

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from scipy import sparse

from sklearn_calib import canonical_proba
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import (
    all_metrics,
    brier_loss,
    expected_calibration_error,
    log_loss,
    reliability_curve,
    validate_multilabel,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    P = rng.random((90, 3))
    return (rng.random(P.shape) < P**2).astype(float), P


def pairs(P):
    return [np.column_stack([1 - p, p]) for p in P.T]


@run_every_case("measure", all_metrics().values(), ids=repr)
def test_macro_and_micro_of_every_measure(data, measure):
    Y, P = data
    each = [measure(y, p) for y, p in zip(Y.T, P.T, strict=True)]
    assert measure(Y, P, multilabel="macro") == pytest.approx(np.mean(each), abs=1e-12)
    pooled = measure(Y.T.ravel(), P.T.ravel())
    assert measure(Y, P, multilabel="micro") == pytest.approx(pooled, abs=1e-12)
    assert np.ptp(each) > 1e-6


def test_unknown_labels_and_weights(data):
    Y, P = data
    Y = Y.copy()
    Y[:60, 1] = np.nan
    weight = np.random.default_rng(1).integers(0, 3, len(Y)).astype(float)
    each = [
        log_loss(Y[rows, i], P[rows, i], sample_weight=weight[rows])
        for i, rows in enumerate([slice(None), slice(60, None), slice(None)])
    ]
    macro = log_loss(Y, P, multilabel="macro", sample_weight=weight)
    assert macro == pytest.approx(np.mean(each), abs=1e-12)
    masses = [weight.sum(), weight[60:].sum(), weight.sum()]
    micro = log_loss(Y, P, multilabel="micro", sample_weight=weight)
    assert micro == pytest.approx(np.average(each, weights=masses), abs=1e-12)


def test_all_forms(data):
    Y, P = data
    wanted = brier_loss(Y, P, multilabel="macro")
    for labels in (Y.tolist(), Y.astype(bool), sparse.csr_matrix(Y), pd.DataFrame(Y)):
        assert brier_loss(labels, P, multilabel="macro") == wanted
    assert brier_loss(Y, pairs(P), multilabel="macro") == pytest.approx(
        wanted, abs=1e-15
    )
    far = [
        canonical_proba([-800.0, 800.0], kind="logits")
    ] * 2  # exact logarithms are kept
    wrong = [[1, 1], [0, 0]]
    assert log_loss(wrong, far, multilabel="micro") == pytest.approx(36.04, abs=0.01)


def test_options_of_the_measure_work(data):
    Y, P = data
    each = [
        expected_calibration_error(y, p, n_bins=5)
        for y, p in zip(Y.T, P.T, strict=True)
    ]
    found = expected_calibration_error(Y, P, n_bins=5, multilabel="macro")
    assert found == pytest.approx(np.mean(each))


@run_every_case(
    ("change", "message"),
    [
        ({"multilabel": None}, r"expected one label per row.*got labels of 3 columns"),
        ({"multilabel": "mean"}, "expected multilabel 'macro' or 'micro', got 'mean'"),
        ({"bins": 3}, "expected options of brier_loss among none, got 'bins'"),
        ({"labels": ["a"]}, "expected 3 names as labels, got 1"),
        ({"y_true": [0, 1]}, r"labels of shape \(90, 3\).*got shape \(2,\)"),
        ({"y_true": np.full((90, 3), np.nan)}, "at least one known label"),
        (
            {"y_true": np.outer(np.ones(90), [np.nan, 1, 1])},
            "known label in every column.*for 0",
        ),
        ({"y_proba": np.full((90, 3), 1.5)}, r"label 0: expected probabilities in"),
        (
            {"y_proba": [np.ones((90, 2)) / 2]},
            r"labels of shape \(90, 1\), as many as scores",
        ),
    ],
)
def test_bad_input_is_refused(data, change, message):
    given = {"y_true": data[0], "y_proba": data[1], "multilabel": "macro"} | change
    with pytest.raises(ValueError, match=message):
        brier_loss(**given)


def test_cases_have_names(data):
    Y, P = data
    frame = pd.DataFrame(Y, columns=["rain", "hail", "snow"])
    assert [t for t, _ in validate_multilabel(frame, P, "macro")] == [
        "label rain",
        "label hail",
        "label snow",
    ]
    named = validate_multilabel(frame, P, "macro", labels=["a", "b", "c"])
    assert named[1][0] == "label b"


def test_curves(data):
    Y, P = data
    curves = reliability_curve(Y, P, multilabel="macro", n_bins=4, n_resamples=20)
    assert [curve.title for curve in curves] == ["label 0", "label 1", "label 2"]
    alone = reliability_curve(Y[:, 2], P[:, 2], n_bins=4, n_resamples=0)[0]
    np.testing.assert_array_equal(curves[2].observed, alone.observed)
    assert curves[2].consistency_low.shape == (4,)
    (pooled,) = reliability_curve(Y, P, multilabel="micro", n_bins=4, n_resamples=0)
    assert pooled.title == "all labels" and pooled.weight.sum() == 270


class Listed:
    """A fitted forest, as far as a display sees it."""

    classes_ = [np.arange(2)] * 2

    def predict_proba(self, X):
        return pairs(X)


@pytest.mark.slow
def test_display_has_a_panel_for_each_label(data):
    Y, P = data[0][:, :2], data[1][:, :2]
    frame = pd.DataFrame(Y, columns=["rain", "hail"])
    display = ReliabilityDisplay.from_predictions(
        frame, {"before": P, "after": pairs(P)}, multilabel="macro"
    )
    assert [ax.get_title() for ax in display.axes_] == ["label rain", "label hail"]
    for predicted, observed in display.get_plotted_data()[1]:
        np.testing.assert_allclose(predicted, display.curves["before"][1].predicted)
        np.testing.assert_allclose(observed, display.curves["before"][1].observed)
    display = ReliabilityDisplay.from_estimator(
        Listed(), P, frame, multilabel="micro", n_resamples=0
    )
    assert [ax.get_title() for ax in display.axes_] == ["all labels"]
    results = {
        "estimator": [Listed(), Listed()],
        "indices": {"test": [np.arange(50), np.arange(50, 80)]},
    }
    shown = ReliabilityDisplay.from_cv_results(
        results, P, frame, multilabel="macro", n_resamples=0
    )
    assert shown.axes_[1].get_title() == "label hail"
    assert shown.curves["Listed"][0].weight.sum() == 80
