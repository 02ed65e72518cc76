"""Shares of labels in a monitor: the same evidence where they are 0 and 1, and its guarantees."""

import numpy as np
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._kernels._logistic_grid import (
    COARSE_LINE_GRID,
    compute_soft_gains_and_impossible,
    draw_label_flags_by_column,
)
from sklearn_calib.monitoring import CalibrationMonitor


@pytest.mark.parametrize("multiclass", ["confidence", "classwise"])
def test_shares_of_0_and_1_are_labels(multiclass):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 700)
    y = (rng.random((700, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    one, other = (CalibrationMonitor(multiclass=multiclass) for _ in range(2))
    for rows in (slice(0, 300), slice(300, 700)):
        one.update(
            y[rows], proba[rows] ** 2 / (proba[rows] ** 2).sum(axis=1, keepdims=True)
        )
        said = proba[rows] ** 2 / (proba[rows] ** 2).sum(axis=1, keepdims=True)
        other.update(np.eye(3)[y[rows]], said, soft_labels=True)
    assert one.log_e_value_ == pytest.approx(other.log_e_value_, rel=1e-12)
    assert str(one) == str(other) and one.n_samples_ == other.n_samples_ == 700
    for own, theirs in zip(one._records, other._records, strict=True):
        assert (
            own.add_waiting_rows_in_place().all_counts
            == theirs.add_waiting_rows_in_place().all_counts
        ).all()


def test_shares_weigh_the_ratios_and_are_at_most_fair_bets():
    rng = np.random.default_rng(1)
    p, y = rng.random(50), rng.integers(0, 6, 50) / 5
    gain, impossible = compute_soft_gains_and_impossible(
        np.log(np.column_stack([1 - p, p])), y, COARSE_LINE_GRID
    )
    assert not impossible.any()
    z = np.log(p / (1 - p))[:, None] * COARSE_LINE_GRID.slope + COARSE_LINE_GRID.shift
    q = 1 / (1 + np.exp(-z))
    by_hand = y[:, None] * np.log(q / p[:, None]) + (1 - y)[:, None] * np.log(
        (1 - q) / (1 - p[:, None])
    )
    np.testing.assert_allclose(gain, by_hand, atol=1e-12)
    bets = y[:, None] * q / p[:, None] + (1 - y)[:, None] * (1 - q) / (1 - p[:, None])
    assert (np.exp(gain) <= bets + 1e-12).all()


def test_what_cannot_be_is_impossible():
    monitor = CalibrationMonitor(alarm="test").update([0.5], [0.0], soft_labels=True)
    assert monitor.impossible_ == 1 and monitor.alarm_
    assert (
        CalibrationMonitor()
        .update([0.0, 1.0], [0.0, 1.0], soft_labels=True)
        .impossible_
        == 0
    )


def test_batches_and_single_rows_are_the_same():
    rng = np.random.default_rng(2)
    p = rng.random(40)
    y = rng.binomial(4, p**2) / 4
    at_once = CalibrationMonitor().update(y, p, soft_labels=True)
    parts = CalibrationMonitor()
    for one, score in zip(y, p, strict=True):
        parts.update(one, score, soft_labels=True)
    assert parts.log_e_value_ == pytest.approx(at_once.log_e_value_, rel=1e-12)
    for own, theirs in zip(parts._records, at_once._records, strict=True):
        assert (
            own.add_waiting_rows_in_place().all_counts
            == theirs.add_waiting_rows_in_place().all_counts
        ).all()
    with raises_invalid_input(
        ValueError, expected=r".*soft labels in \[0, 1\]", value="3", row=1
    ):
        parts.update([0.5, 3], [0.5, 0.5], soft_labels=True)
    with raises_invalid_input(ValueError, hint=".*pass soft_labels=True"):
        parts.update([0.5, 1], [0.5, 0.5])
    assert parts.n_samples_ == 40


def test_drawn_labels_have_the_shares():
    share = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    hit = draw_label_flags_by_column(share, np.arange(1, 20_001))
    assert (hit.sum(axis=1) == 1).all()
    np.testing.assert_allclose(hit.mean(axis=0), [0.2, 0.5, 0.3], atol=0.015)
    one = draw_label_flags_by_column(share[:, :1], np.arange(1, 20_001))[:, 0]
    assert (
        abs(one.mean() - 0.2) < 0.012
        and abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.03
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_votes", [pytest.param(1, marks=pytest.mark.cross), 5])
def test_guarantees_hold_for_shares(n_votes):
    """Annotators of one item agree more than chance: the test keeps its level, the run length too.

    200 courses of 500 rows; with one vote a share is a label, for which level and
    length hold.
    """
    rng = np.random.default_rng(3)
    alarms = rejected = power = 0
    for _ in range(200):
        p = rng.beta(2, 2, 500)
        own = rng.beta(3 * p, 3 * (1 - p))
        y = rng.binomial(n_votes, own) / n_votes
        watch = CalibrationMonitor(average_run_length=2000, alpha=0.1)
        watch.update(y, p, soft_labels=True)
        alarms += watch.n_alarms_
        rejected += watch.rejected_at_ is not None
        odd = p**2 / (p**2 + (1 - p) ** 2)
        power += (
            CalibrationMonitor(alpha=0.1).update(y, odd, soft_labels=True).p_value_
            < 0.1
        )
    assert rejected <= 0.1 * 200 + 2 * np.sqrt(200 * 0.09)
    assert alarms <= 200 * 500 / 2000 + 2 * np.sqrt(50)
    assert power > 0.9 * 200
