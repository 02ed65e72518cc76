"""A small sample of benchmarks/groups: the level, and intervals that hold for all groups."""

import numpy as np
import pytest
from scipy.special import expit, logit

from sklearn_calib.groups import _cells, group_calibration
from sklearn_calib.summary import summarize

SETS = 300
N = 400


def one_set(seed, off):
    """(p-value, smallest p-value, whether the intervals of O/E and of the slope hold)."""
    rng = np.random.default_rng([seed, off])
    p = rng.beta(1.0, 2.0, N)
    table = {
        "a": rng.choice(list("xyz"), N),
        "b": rng.choice(5, N),
        "c": rng.normal(size=N),
    }
    shift = 0.8 * (table["a"] == "x") if off else 0.0
    truth = expit(logit(p) + shift)
    y = (rng.random(N) < truth).astype(int)
    found = group_calibration(
        y,
        p,
        table,
        depth=1 if off else 2,
        min_rows=30,
        n_resamples=99,
        random_state=seed,
    )
    ratios = [truth[m].sum() / p[m].sum() for m in found.members]
    held = [
        r.ratio_low <= t <= r.ratio_high
        for r, t in zip(found.rows, ratios, strict=True)
    ]
    slopes = [row.slope_low <= 1 <= row.slope_high for row in found.rows]
    return found.p_value, min(row.p_value for row in found.rows), all(held), all(slopes)


@pytest.mark.slow
def test_calibrated_predictions_are_rejected_as_often_as_promised():
    found = np.array([one_set(seed, False) for seed in range(SETS)])
    for level in (0.05, 0.1):
        three = 3 * np.sqrt(level * (1 - level) / SETS)
        assert abs(np.mean(found[:, 0] <= level + 1e-12) - level) <= three
    assert np.mean(found[:, 1] <= 0.05) > 0.5  # what one group alone would say
    three = 3 * np.sqrt(0.95 * 0.05 / SETS)
    assert abs(found[:, 2].mean() - 0.95) <= three
    assert found[:, 3].mean() >= 0.95 - three


@pytest.mark.cross
@pytest.mark.parametrize("how", ["pooled scores", "weights that differ inside cells"])
def test_summaries_reject_as_often_as_promised(how, monkeypatch):
    """Where the draws are not draws of rows: cells of several scores, and of several weights."""
    monkeypatch.setattr(_cells, "MAX_FINE_CELLS", 200)
    monkeypatch.setattr(_cells, "MAX_POOLED_CELLS", 200)
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng([seed, 7])
        p = rng.beta(1.0, 2.0, N)
        p = p if how == "pooled scores" else np.ceil(10 * p) / 10 - 0.05
        rows = {
            "p": p,
            "y": (rng.random(N) < p).astype(int),
            "w": rng.exponential(size=N) + 0.1,
        }
        rows |= {"a": rng.choice(list("xyz"), N), "b": rng.choice(5, N)}
        weight = "w" if how != "pooled scores" else None
        groups = summarize(rows, label="y", prob="p", weight=weight, by=["a", "b"])
        options = {"depth": 2, "min_rows": 20, "n_resamples": 99, "random_state": seed}
        found.append(group_calibration(groups, groups=["a", "b"], **options).p_value)
    for level in (0.05, 0.1):
        three = 3 * np.sqrt(level * (1 - level) / SETS)
        assert abs(np.mean(np.array(found) <= level + 1e-12) - level) <= three


@pytest.mark.slow
def test_intervals_hold_where_predictions_are_wrong():
    found = np.array([one_set(seed, True) for seed in range(SETS)])
    three = 3 * np.sqrt(0.95 * 0.05 / SETS)
    assert 0.95 - three <= found[:, 2].mean() <= 0.95 + three + 0.01
    assert np.mean(found[:, 0] <= 0.05) > 0.5  # and the errors are found


def test_a_few_sets_of_calibrated_predictions():
    found = np.array([one_set(seed, False) for seed in range(20)])
    assert np.mean(found[:, 0] <= 0.1) < 0.4
    assert np.mean(found[:, 2]) > 0.75
