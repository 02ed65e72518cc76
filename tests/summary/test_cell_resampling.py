"""Draws of cells against draws of rows."""

import numpy as np
import pytest
from scipy import stats

from sklearn_calib._random import cumulate_proba, draw_labels, draw_row_counts
from sklearn_calib.metrics import (
    Predictions,
    brier_loss,
    expected_calibration_error,
    smooth_calibration_error,
)
from sklearn_calib.summary import CalibrationSummary, CellSample

MEASURES = (expected_calibration_error, smooth_calibration_error, brier_loss)


def rows(n, weighted, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.2, n)
    y = (rng.random(n) < p**1.2).astype(np.intp)
    weight = rng.gamma(1.5, size=n) if weighted else np.ones(n)
    return Predictions(np.column_stack([1 - p, p]), y, weight, np.arange(2))


def pooled(case, n_cells):
    """A sample of these rows in cells of equal width, at their mean scores."""
    cell = np.minimum((case.second * n_cells).astype(int), n_cells - 1)
    cell = np.unique(cell, return_inverse=True)[1]
    size = cell.max() + 1
    place = 2 * cell + case.codes

    def sums(values):
        return np.bincount(place, values, 2 * size).reshape(size, 2)

    counts = sums(np.ones(len(place))).astype(int)
    mean = np.bincount(cell, case.weight * case.second) / np.bincount(cell, case.weight)
    proba = np.column_stack([1 - mean, mean])
    return CellSample(proba, counts, sums(case.weight), sums(case.weight**2))


def values(draw, n_resamples, seed):
    rng = np.random.default_rng(seed)
    drawn = (draw(rng) for _ in range(n_resamples))
    return np.array(
        [[measure.evaluate(case) for measure in MEASURES] for case in drawn]
    )


def pvalues(n, n_cells, n_resamples, weighted, kind):
    """Of two-sample Kolmogorov-Smirnov tests between draws of rows and of cells."""
    case = rows(n, weighted)
    sample = pooled(case, n_cells)
    bounds = cumulate_proba(case.proba)
    if kind == "draw_bootstrap_sample":
        by_rows = values(
            lambda rng: case.with_weight(case.weight * draw_row_counts(n, rng)),
            n_resamples,
            1,
        )
    else:
        by_rows = values(
            lambda rng: case.with_labels(draw_labels(bounds, rng)), n_resamples, 1
        )
    by_cells = values(getattr(sample, kind), n_resamples, 2)
    return [
        stats.ks_2samp(a, b).pvalue for a, b in zip(by_rows.T, by_cells.T, strict=True)
    ]


KINDS = pytest.mark.parametrize("kind", ["draw_bootstrap_sample", "simulate_labels"])
WEIGHTS = pytest.mark.parametrize("weighted", [False, True])


@KINDS
@WEIGHTS
def test_same_law_as_rows(kind, weighted):
    assert min(pvalues(3000, 128, 120, weighted, kind)) > 0.005


@pytest.mark.slow
@KINDS
@WEIGHTS
def test_same_law_as_rows_many(kind, weighted):
    found = pvalues(20_000, 256, 600, weighted, kind)
    print(kind, weighted, np.round(found, 3))
    assert min(found) > 0.005


@pytest.mark.slow
@pytest.mark.parametrize("scale", [3, 300])
@WEIGHTS
def test_moments_of_the_draws(scale, weighted):
    """Mean and variance of the weight of each cell and label; few rows per cell, and many."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, scale, (20, 2))
    drawn = [rng.gamma(1.5, size=c) if weighted else np.ones(c) for c in counts.ravel()]
    weight = np.array([w.sum() for w in drawn]).reshape(counts.shape)
    squares = np.array([(w**2).sum() for w in drawn]).reshape(counts.shape)
    p = np.linspace(0.05, 0.95, 20)
    sample = CellSample(np.column_stack([1 - p, p]), counts, weight, squares)
    assert sample._label_sampler.has_few_rows_per_cell == (scale == 3)
    draws = 4000
    found = np.array(
        [sample.draw_bootstrap_sample(rng).weight.reshape(20, 2) for _ in range(draws)]
    )
    variance = squares - (
        weight**2 / counts.sum() if sample._label_sampler.has_few_rows_per_cell else 0.0
    )
    error = np.sqrt(variance / draws)
    assert np.abs((found.mean(axis=0) - weight) / error).max() < 4.5
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.3)
    found = np.array(
        [sample.simulate_labels(rng).weight.reshape(20, 2) for _ in range(draws)]
    )
    np.testing.assert_allclose(
        found.sum(axis=2), np.tile(weight.sum(axis=1), (draws, 1))
    )
    assert (found >= 0).all()
    variance = squares.sum(axis=1) * p * (1 - p)
    error = np.sqrt(variance / draws)
    assert (
        np.abs((found[:, :, 1].mean(axis=0) - weight.sum(axis=1) * p) / error).max()
        < 4.5
    )
    np.testing.assert_allclose(found[:, :, 1].var(axis=0), variance, rtol=0.3)


@WEIGHTS
def test_folds_part_the_rows(weighted):
    case = rows(5000, weighted)
    sample = pooled(case, 64)
    rng, shares = np.random.default_rng(0), []
    for _ in range(200):
        folds = sample.split_into_folds(5, rng)
        for whole, parts in zip(
            (sample.counts, sample.weight, sample.squares),
            zip(*folds, strict=True),
            strict=True,
        ):
            assert all((part >= 0).all() for part in parts)
            np.testing.assert_allclose(
                np.sum(parts, axis=0), whole, rtol=1e-9, atol=1e-9
            )
        shares.append([[fold.counts.sum(), fold.weight.sum()] for fold in folds])
    shares = np.array(shares)
    assert shares.mean(axis=0) == pytest.approx(
        np.tile([1000, case.weight.sum() / 5], (5, 1)), rel=0.02
    )
    spread = [5000 * 0.16, (case.weight**2).sum() * 0.16]
    np.testing.assert_allclose(shares.var(axis=0), np.tile(spread, (5, 1)), rtol=0.35)


def test_one_heavy_row_beside_a_light_one():
    """The weight drawn is never 0 and never negative, whatever the weights of a cell are."""
    sample = CellSample(
        np.array([[0.5, 0.5]]),
        np.array([[2, 1]]),
        np.array([[101.0, 1.0]]),
        np.array([[10_001, 1]]),
    )
    rng = np.random.default_rng(0)
    for _ in range(500):
        for drawn in (
            sample.draw_bootstrap_sample(rng).weight,
            sample.simulate_labels(rng).weight,
        ):
            assert (drawn >= 0).all() and drawn.sum() > 0
        for fold in sample.split_into_folds(3, rng):
            assert (fold.weight >= -1e-9).all()
            assert not (
                (fold.weight > 0) & (fold.weight < 1e-14)
            ).any()  # a draw, not a weight


def test_cells_of_a_summary():
    case = rows(30_000, True)
    summary = CalibrationSummary().update(
        case.codes, case.second, sample_weight=case.weight
    )
    (sample,) = summary.samples(4096)
    assert 1000 < len(sample.counts) <= 4096
    assert sample.n_samples == 30_000
    assert sample.weight.sum() == pytest.approx(case.weight.sum())
    assert sample.squares.sum() == pytest.approx((case.weight**2).sum())
    for measure in MEASURES:
        assert measure.evaluate(sample.predictions) == pytest.approx(
            measure.evaluate(case), abs=1e-4
        )
    assert summary.n_cells == 30_000  # the summary is as it was
