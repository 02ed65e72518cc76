"""Tests by cells: the labels have the law of the rows, and p-values are those of exact tests."""

import numpy as np
import pytest
from scipy import stats

import sklearn_calib  # noqa: F401 - the measures of all sub-packages register
from sklearn_calib import canonical_proba
from sklearn_calib.inference import calibration_test, simulate_null_distribution
from sklearn_calib.inference._resampling import (
    MAX_POOLED_CELLS,
    RowsInScoreCells,
    pool_rows_if_worthwhile,
)
from sklearn_calib.metrics import all_metrics, brier_loss, validate_predictions

ON_CELLS = sorted(
    name for name, measure in all_metrics().items() if measure.spec.poolable
)


def draw(seed, n, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 1.2, n)
    return (rng.random(n) < p**power).astype(int), p


def law_of_sum(chances):
    """The law of how many independent events happen."""
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1 - p, p])
    return law


@pytest.mark.slow
@pytest.mark.parametrize("few", [True, False])
def test_each_row_keeps_its_own_law(few):
    """Cells so wide that binomial numbers at their mean would vary by a fifth more."""
    p = np.sort(np.concatenate([np.linspace(0.0, 0.9, 24), np.linspace(0.91, 1.0, 40)]))
    starts = np.array([0, 24])
    pooled = RowsInScoreCells(np.column_stack([1 - p, p]), p > 0.5, np.ones(64), starts)
    pooled._rows.has_few_rows_per_cell = few
    rng = np.random.default_rng(0)
    drawn = np.array(
        [pooled.simulate_labels(rng).weight.reshape(2, 2) for _ in range(4000)]
    )
    np.testing.assert_array_equal(drawn.sum(axis=2), np.tile([24.0, 40.0], (4000, 1)))
    for cell, rows in enumerate((slice(0, 24), slice(24, 64))):
        law = law_of_sum(p[rows])
        likely = law > 0.01
        seen = np.bincount(drawn[:, cell, 1].astype(int), minlength=len(law))
        rest = 4000 - seen[likely].sum(), 4000 * (1 - law[likely].sum())
        observed, expected = (
            np.append(seen[likely], rest[0]),
            np.append(law[likely] * 4000, rest[1]),
        )
        assert stats.chisquare(observed, expected).pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:, 0, 1], drawn[:, 1, 1])[0, 1]) < 0.06


def test_rows_drawn_in_a_cell_are_different_and_none_is_favoured():
    p = np.linspace(0.2, 0.8, 5)
    pooled = RowsInScoreCells(
        np.column_stack([1 - p, p]), p > 0.5, np.ones(5), np.array([0])
    )
    rng, seen = np.random.default_rng(0), np.zeros(5)
    for _ in range(2000):
        rows = pooled._rows._draw_distinct_positions_in_cells(np.array([3]), rng)
        assert len(set(rows.tolist())) == 3
        seen[rows] += 1
    assert stats.chisquare(seen).pvalue > 1e-3


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_hold_all_rows(weighted):
    y, p = draw(0, 20_000)
    weight = np.random.default_rng(0).gamma(2.0, size=20_000) if weighted else None
    case = validate_predictions(y, p, weight)
    pooled = pool_rows_if_worthwhile(case)
    cells = pooled.predictions
    assert 1000 < len(cells.codes) / 2 <= MAX_POOLED_CELLS
    assert cells.weight.sum() == pytest.approx(case.weight.sum())
    assert cells.weight @ cells.codes == pytest.approx(case.weight @ y)
    assert cells.weight @ cells.second == pytest.approx(case.weight @ p)
    score = cells.second[::2]
    assert (np.diff(score) > 0).all()
    edges = np.arange(61) / 60  # no cell crosses them
    rows = np.histogram(p, edges, weights=weight)[0]
    here = np.histogram(cells.second, edges, weights=cells.weight)[0]
    np.testing.assert_allclose(here, rows)
    again = pooled.simulate_labels(np.random.default_rng(1))
    np.testing.assert_allclose(again.weight.reshape(-1, 2).sum(axis=1), pooled.mass)


def test_equal_scores_are_cells_and_nothing_else_changes():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 11, 2000) / 10
    y = (rng.random(2000) < p**1.1).astype(int)
    result = calibration_test(y, p, statistic="smooth", n_resamples=99)
    assert (
        len(pool_rows_if_worthwhile(validate_predictions(y, p)).predictions.codes) == 22
    )
    assert result.ranked == pytest.approx(result.statistic, abs=1e-14)
    certain = validate_predictions([0, 1] * 50, [0.0, 1.0] * 50)
    assert (
        brier_loss.evaluate(pool_rows_if_worthwhile(certain).simulate_labels(rng)) == 0
    )


def test_where_cells_are_not_used():
    y, p = draw(0, 5000)
    # too few rows to save anything
    assert pool_rows_if_worthwhile(validate_predictions(y, p)) is None
    logits = canonical_proba(
        np.random.default_rng(0).normal(0, 900, 50_000), kind="logits"
    )
    case = validate_predictions(np.arange(50_000) % 2, logits)
    assert pool_rows_if_worthwhile(case) is None  # cells do not tell 1 - 1e-300 from 1
    y, p = draw(0, 10_000)
    by_rows = calibration_test(
        y, p, statistic="expected_calibration_error", n_bins=9, n_resamples=9
    )
    assert by_rows.ranked == by_rows.statistic


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_CELLS)
def test_cells_give_the_statistic_and_its_law(name, n_resamples=199):
    """Pooling changes a statistic by less than a tenth of what chance does."""
    y, p = draw(1, 10_000, 1.02)
    found = calibration_test(y, p, statistic=name, n_resamples=n_resamples)
    case = validate_predictions(y, p)
    rows = simulate_null_distribution(
        case, all_metrics()[name].evaluate, n_resamples, 1
    )
    spread = rows.std()
    moved = abs(found.ranked - found.statistic)
    assert moved < 0.1 * spread
    # one threshold, one bin
    of_few_sums = (
        "expected_cost_score",
        "maximum_calibration_error",
    )
    assert moved > 0 or name in of_few_sums
    assert found.null_distribution.mean() == pytest.approx(
        rows.mean(), abs=4 * spread * np.sqrt(2 / n_resamples)
    )
    heavy = np.sqrt((stats.kurtosis(rows, fisher=False) - 1) / 2)  # 1 for normal laws
    assert found.null_distribution.std() == pytest.approx(
        spread, rel=4 * max(heavy, 1) / np.sqrt(n_resamples)
    )
    assert stats.ks_2samp(found.null_distribution, rows).pvalue > 1e-3


@pytest.mark.slow
def test_the_largest_probability_of_several_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 20_000)
    y = np.minimum((rng.random((20_000, 1)) > proba.cumsum(axis=1)).sum(axis=1), 3)
    found = calibration_test(y, proba, n_resamples=99)
    assert found.ranked != found.statistic
    assert found.ranked == pytest.approx(found.statistic, abs=1e-4)
    assert found.pvalue > 0.01
    off = proba**1.2
    assert calibration_test(y, off / off.sum(axis=1, keepdims=True)).pvalue == 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, n, sets",
    [
        ("smooth_calibration_error", 9000, 80),
        pytest.param("smooth_calibration_error", 9000, 250, marks=pytest.mark.cross),
        pytest.param("isotonic_refinement_brier", 9000, 250, marks=pytest.mark.cross),
        # numbers of rows are drawn, not rows
        pytest.param("smooth_calibration_error", 90_000, 80, marks=pytest.mark.cross),
    ],
)
def test_level(name, n, sets):
    """Of calibrated data sets as many are rejected as are promised, two-sided."""
    pvalues = np.empty(sets)
    for seed in range(sets):
        y, p = draw(seed, n)
        found = calibration_test(
            y, p, statistic=name, n_resamples=39, random_state=seed
        )
        pvalues[seed] = found.pvalue
    for level in (0.05, 0.1, 0.25, 0.5):
        spread = np.sqrt(level * (1 - level) / sets)
        assert abs((pvalues <= level + 1e-9).mean() - level) < 3.3 * spread
