"""Soft labels in summaries: weighted rows, counted by item; what needs items is rejected."""

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib.recalibrators import get_recalibrator
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary, summarize


def shares(k, n=400, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), n).round(2)
    proba[:, 0] = 1 - proba[:, 1:].sum(axis=1)
    soft = rng.multinomial(4, 0.8 * np.clip(proba, 0, 1) + 0.2 / k) / 4
    return np.clip(proba, 0, 1), soft, rng.integers(0, 3, n) / 2


def doubled(proba, soft, weight):
    n, k = soft.shape
    labels, mass = np.tile(np.arange(k), n), (soft * weight[:, None]).ravel()
    return labels, np.repeat(proba, k, axis=0), mass


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["confidence", "classwise"])
def test_measures_are_those_of_doubled_rows(k, kind):
    proba, soft, weight = shares(k)
    whole = CalibrationSummary(multiclass=kind)
    for rows in (slice(0, 150), slice(150, 400), slice(400, 400)):
        given = soft[rows] if k > 2 else soft[rows, 1]
        whole.update(given, proba[rows], weight[rows], soft_labels=True)
    by_hand = CalibrationSummary(multiclass=kind).update(*doubled(proba, soft, weight))
    for name in (
        "log_loss",
        "brier_loss",
        "smooth_calibration_error",
        "expected_calibration_error",
    ):
        assert whole.measure(name) == pytest.approx(by_hand.measure(name), abs=1e-12)
    assert whole.n_samples == (weight > 0).sum() < by_hand.n_samples
    assert whole.weight == pytest.approx(weight.sum())
    assert whole.soft and whole.copy().soft and not by_hand.soft


def test_counts_repeat_items():
    proba, soft, _ = shares(2)
    counts = np.arange(400) % 3
    once = CalibrationSummary().update(
        soft[:, 1], proba, counts=counts, soft_labels=True
    )
    rows = np.repeat(np.arange(400), counts)
    again = CalibrationSummary().update(soft[rows, 1], proba[rows], soft_labels=True)
    assert once == again and once.n_samples == counts.sum()


@pytest.mark.parametrize("method", ["platt", "temperature", "isotonic", "beta"])
def test_fits_are_those_of_soft_rows(method):
    proba, soft, weight = shares(2)
    summary = CalibrationSummary().update(soft[:, 1], proba, weight, soft_labels=True)
    fitted = get_recalibrator(method).fit(proba, soft[:, 1], weight, soft_labels=True)
    found = summary.fit(method).predict_proba(proba)
    np.testing.assert_allclose(found, fitted.predict_proba(proba), rtol=0, atol=1e-9)


def test_parts_are_merged_and_stored(tmp_path):
    proba, soft, weight = shares(3)
    parts = [
        CalibrationSummary(classes=list("abc")).update(
            soft[rows], proba[rows], weight[rows], soft_labels=True
        )
        for rows in (slice(200), slice(200, None))
    ]
    both = parts[0] + parts[1]
    assert both.soft and both.coarsen(4096).soft
    both.to_parquet(tmp_path / "soft.parquet")
    read = CalibrationSummary.from_parquet(tmp_path / "soft.parquet")
    assert read.soft and read == both
    hard = CalibrationSummary(classes=list("abc")).update(["a", "b"], proba[:2])
    assert (hard + both).soft and not hard.soft
    assert b'"soft"' not in hard.to_arrow().schema.metadata[b"sklearn_calib.summary"]


def test_what_counts_rows_is_refused():
    proba, soft, _ = shares(2)
    summary = CalibrationSummary().update(soft[:, 1], proba, soft_labels=True)
    calls = [
        summary.samples,
        summary.test,
        lambda: summary.test("spiegelhalter"),
        summary.reliability_curve,
        summary.cross_validate,
        lambda: summary.rows_across([0.5]),
        lambda: calibration_report(summary),
    ]
    for call in calls:
        with raises_invalid_input(ValueError, value="a summary of soft labels"):
            call()


def test_columns_of_shares_and_of_votes():
    proba, soft, weight = shares(3)
    votes = (4 * soft).astype(int)
    table = {"a": soft[:, 0], "b": soft[:, 1], "c": soft[:, 2], "w": weight}
    table |= {f"p{number}": proba[:, number] for number in range(3)}
    names, prob = [*"abc"], ["p0", "p1", "p2"]
    found = summarize(
        table, label=names, prob=prob, weight="w", soft_labels=True, classes=names
    )
    expected = CalibrationSummary(classes=names)
    assert found == expected.update(soft, proba, weight, soft_labels=True)
    counted = table | dict(zip(names, votes.T, strict=True))
    found = summarize(counted, label=names, prob=prob, weight="w", soft_labels=True)
    expected = CalibrationSummary().update(soft, proba, 4 * weight, soft_labels=True)
    assert found.measure("log_loss") == pytest.approx(
        expected.measure("log_loss"), abs=1e-12
    )
    assert found.weight == pytest.approx(4 * weight.sum())
    one = summarize(table, label="a", prob="p0", weight="w", soft_labels=True)
    assert one == CalibrationSummary().update(
        soft[:, 0], proba[:, 0], weight, soft_labels=True
    )


@run_every_case(
    ("first", "said"),
    [
        ([3, 0.5], "shares, or numbers of votes, in all rows, got shares in some"),
        ([1, 1], "rows sum to 1, got 0 and 1 alone"),
        ([0, 0], "a share or a vote in every row, got none in row 1"),
        ([-1, 1], "got -1 in row 1, column 0"),
        ([0.5, 1], "got a sum of 1.5 in row 1"),
        ([np.nan, 1], "expected a number in every row, got nan"),
    ],
)
def test_columns_that_are_neither_shares_nor_votes(first, said):
    a, b = (
        ([0.5, 3, 0.5], [0.5, 1, 0.5])
        if 3 in first
        else ([0, first[0], 1], [1, first[1], 0])
    )
    table = {"a": np.array(a, float), "b": np.array(b, float), "p": np.full(3, 0.4)}
    with pytest.raises(ValueError, match=said):
        summarize(table, label=["a", "b"], prob="p", soft_labels=True)


@pytest.mark.parametrize("bad", [1.5, -0.1, np.nan])
def test_a_batch_that_is_refused_changes_nothing(bad):
    summary = CalibrationSummary().update([0.5], [0.5], soft_labels=True)
    with raises_invalid_input(ValueError, expected=r"soft labels in \[0, 1\]"):
        summary.update([0.5, bad], [0.5, 0.2], soft_labels=True)
    assert summary == CalibrationSummary().update([0.5], [0.5], soft_labels=True)
    with raises_invalid_input(
        ValueError, expected=".*all classes, for soft labels", value="pos_label alone"
    ):
        CalibrationSummary(pos_label="yes").update([0.5], [0.5], soft_labels=True)


@pytest.mark.parametrize("k", [2, 3])
def test_a_batch_of_weights_of_0_adds_nothing(k):
    proba, soft, weight = shares(k)
    found = CalibrationSummary().update(
        soft, proba, np.zeros(len(soft)), soft_labels=True
    )
    found.update(soft, proba, weight, soft_labels=True)
    expected = CalibrationSummary().update(soft, proba, weight, soft_labels=True)
    assert found == expected and found.n_samples == expected.n_samples


def test_rows_of_one_vote_stand_beside_rows_of_several():
    table = {"a": [1, 2, 0], "b": [0, 1, 3], "p": [0.3, 0.6, 0.8]}
    found = summarize(table, label=["a", "b"], prob="p", soft_labels=True)
    assert found.weight == 7
    # The squared errors of each vote.
    assert found.measure("brier_loss") == pytest.approx(
        (0.3**2 + 2 * 0.6**2 + 0.4**2 + 3 * 0.2**2) / 7
    )
