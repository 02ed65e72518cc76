"""While a summary is exact, its answers are those of the rows, where measures jump as well."""

import numpy as np
import pytest
from cases import run_every_case
from laws import LAWS, sample

from sklearn_calib import metrics
from sklearn_calib.summary import CalibrationSummary

COSTS = [[0, 4], [1, 0]]  # the actions change at 0.2
OPTIONS = {
    "area_under_risk_coverage": [{}],
    "calibration_error": [
        {"strategy": "uniform", "n_bins": n, "norm": norm}
        for n in (7, 9, 11, 13, 60)
        for norm in ("l1", "l2", "max")
    ],
    "expected_calibration_error": [
        {"strategy": "uniform", "n_bins": 7},
        {"n_bins": 7},
        {"n_bins": "sweep"},
        {"n_bins": "cube_root"},
        {"multiclass": "confidence", "strategy": "uniform", "n_bins": 14},
    ],
    "expected_cost_score": [
        {"costs": COSTS},
        {"costs": [[0, 1], [4, 0]]},
        {"costs": [[0, 1], [1, 0]]},
    ],
    "maximum_calibration_error": [{"strategy": "uniform", "n_bins": 7}, {"n_bins": 5}],
}
CASES = [(n, o) for n in sorted(metrics.all_metrics()) for o in OPTIONS.get(n, [{}])]


def edges():
    """Scores at the edges of bins and at thresholds, and one digit of a float64 beside them."""
    at = np.unique(
        np.concatenate([np.arange(n + 1) / n for n in (5, 7, 9, 11, 13, 14, 60, 100)])
    )
    p = np.concatenate(
        [at, np.nextafter(at, 0), np.nextafter(at, 1), at[5:-5] * (1 + 2.0**-40)]
    )
    rng = np.random.default_rng(0)
    return rng.permutation(np.clip(p, 0, 1))


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_measures_at_thresholds_and_edges(name, options, weighted):
    p = edges()
    rng = np.random.default_rng(1)
    y = (rng.random(len(p)) < p).astype(int)
    w = rng.integers(1, 5, len(p)).astype(float) if weighted else None
    summary = CalibrationSummary().update(y, p, w)
    half = CalibrationSummary().update(y[:300], p[:300], None if w is None else w[:300])
    rest = CalibrationSummary().update(y[300:], p[300:], None if w is None else w[300:])
    expected = metrics.all_metrics()[name](y, p, sample_weight=w, **options)
    for each in (
        summary,
        rest + half,
        CalibrationSummary.from_arrow(summary.to_arrow()),
    ):
        value = each.measure(name, **options)
        assert each.exact
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-11)


@run_every_case("law", LAWS)
@run_every_case("pos_label", [0, 1])
def test_the_rows_come_back_in_every_bit(law, pos_label):
    p, y = sample(law, 3000)
    p = p.astype(float)
    table = np.column_stack([1 - p, p])[:, :: 1 if pos_label else -1]
    for scores in (p, table):
        summary = CalibrationSummary(classes=[0, 1], pos_label=pos_label).update(
            y, scores
        )
        found = np.repeat(
            summary.rows().proba, summary.rows().sample_weight.astype(int), axis=0
        )
        order = np.argsort(found[:, pos_label], kind="stable")
        assert np.array_equal(found[order], table[np.argsort(p, kind="stable")])


def test_answers_that_were_wrong():
    """Scores at thresholds and at edges of bins."""
    three = CalibrationSummary().update([1, 0, 0], [0.8] * 3)
    assert three.measure("expected_cost_score", costs=COSTS) == pytest.approx(8 / 3)
    two = CalibrationSummary().update([1, 1], [0.2, 0.8])
    assert two.measure("area_under_risk_coverage") == 0.5
    options = {"strategy": "uniform", "n_bins": 7}
    p, y = (
        np.r_[np.full(10, 3 / 7), np.full(10, 0.505)],
        np.r_[np.ones(9, int), np.zeros(11, int)],
    )
    found = (
        CalibrationSummary()
        .update(y, p)
        .measure("expected_calibration_error", **options)
    )
    assert found == pytest.approx(metrics.expected_calibration_error(y, p, **options))


def test_decimals_in_two_columns():
    """Columns that are complements in decimals only: the positive class keeps its digits."""
    p = np.arange(1, 1000) / 1000
    table = np.column_stack([np.round(1 - p, 3), p])
    y = np.arange(999) % 2
    assert np.array_equal(CalibrationSummary().update(y, table).rows().proba[:, 1], p)
    first = CalibrationSummary(classes=[0, 1], pos_label=0).update(y, table)
    assert np.array_equal(
        first.rows().proba[:, 0], np.sort(table[:, 0])
    ) or np.array_equal(np.sort(first.rows().proba[:, 0]), np.sort(table[:, 0]))


def test_more_than_36_bits_are_told_apart_until_there_are_too_many(small_cells):
    p = 0.3 * (1 + np.arange(300) * 2.0**-50)
    y = np.arange(300) % 2
    fine, coarse = (CalibrationSummary(m).update(y, p) for m in (300, 299))
    assert fine.exact and fine.n_cells == 300 and fine.significant_bits == 52
    assert not coarse.exact and coarse.significant_bits <= 36
