import numpy as np
import pytest

from sklearn_calib.recalibrators import (
    TrendFiltering,
    TrendFilteringEnsemble,
    _trend_filtering as trend_filtering,
)

CASES = ["n30", "ties60", "n200", "tiny8"]


@pytest.mark.parametrize("case", CASES)
def test_fits_equal_glmgen_with_a_tight_tolerance(oracle, case):
    data = oracle("elite.json")[case]
    x = np.unique(data["s"])
    for expected in data["tight"]:
        fit = TrendFiltering(penalty=expected["lambda"]).fit(data["s"], data["y"])
        found = fit.predict_proba(x)[:, 1]
        np.testing.assert_allclose(found, np.clip(expected["beta"], 0, 1), atol=4e-5)


@pytest.mark.parametrize("case", CASES)
def test_penalties_equal_the_r_package(oracle, case):
    data = oracle("elite.json")[case]
    elite = TrendFilteringEnsemble().fit(data["s"], data["y"])
    tried = np.array(data["lambda"])
    nearest = np.abs(np.log(elite.penalties_[:, None] / tried)).min(axis=1)
    assert nearest.max() < 1e-5


@pytest.mark.parametrize(("case", "criterion", "tolerance"), [
    ("n200", "aicc", 0.02), ("n200", "bic", 0.01), ("n30", "aicc", 0.04), ("n30", "bic", 0.05),
])  # fmt: skip
def test_ensemble_near_the_r_package(oracle, case, criterion, tolerance):
    """Its solver stops early, and what it calls impossible does not count there."""
    data = oracle("elite.json")[case]
    found = (
        TrendFilteringEnsemble(criterion)
        .fit(data["s"], data["y"])
        .predict_proba(data["t"])[:, 1]
    )
    assert np.abs(found - data[criterion]).max() < tolerance


@pytest.mark.slow
def test_finds_the_bend():
    rng = np.random.default_rng(0)
    p = rng.random(10_000)
    y = rng.random(10_000) < np.where(p < 0.5, 0.1, 0.1 + 1.6 * (p - 0.5))
    fit = TrendFiltering("bic").fit(p, y)
    assert 3 <= fit.df_ <= 6
    assert np.abs(fit.knots_[1:-1] - 0.5).min() < 0.05
    assert fit.predict_proba([0.5])[0, 1] == pytest.approx(0.1, abs=0.03)


def test_many_equal_or_nearly_equal_scores():
    p = np.r_[np.full(50, 0.2), np.full(50, 0.2 + 1e-9), np.full(100, 0.7), 5e-324, 0.0]
    y = np.r_[np.arange(100) < 30, np.arange(100) < 80, 0, 0].astype(int)
    fit = TrendFiltering(0.0).fit(p, y)
    assert len(fit.knots_) == 3
    np.testing.assert_allclose(
        fit.predict_proba([0.2, 0.7])[:, 1], [0.3, 0.8], atol=1e-12
    )
    order = np.random.default_rng(0).permutation(len(p))
    again = TrendFiltering(0.0).fit(p[order], y[order])
    np.testing.assert_allclose(again.values_, fit.values_, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.parametrize("method", [TrendFiltering, TrendFilteringEnsemble])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_few_rows(method, rows):
    p, y = [0.1, 0.9, 0.5, 0.3][:rows], [0, 1, 0, 1][:rows]
    out = method().fit(p, y, classes=[0, 1]).predict_proba([0.0, 0.5, 1.0])
    assert np.isfinite(out).all()


def test_bad_parameters():
    with pytest.raises(ValueError, match="The 'penalty' parameter"):
        TrendFiltering(-1.0).fit([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match="The 'criterion' parameter"):
        TrendFilteringEnsemble("aic").fit([0.1, 0.9], [0, 1])


def mean_slope(fit, p):
    slopes = np.diff(fit.values_) / np.diff(fit.knots_)
    return np.abs(slopes[np.searchsorted(fit.knots_[1:-1], p)]).mean()


@pytest.mark.slow
@pytest.mark.parametrize("law", [(1, 1), (0.3, 3), (2, 20)])
def test_joined_points(law, monkeypatch):
    """Many points are joined to cells: the fit moves by less than the bound, and by very little."""
    rng = np.random.default_rng(0)
    p = rng.beta(*law, 200_000)
    truth = np.clip(p**1.5 + 0.05 * np.sin(6 * p), 0, 1)
    y = (rng.random(len(p)) < truth).astype(int)
    monkeypatch.setattr(trend_filtering, "MAX_UNJOINED_POINTS", 5000)
    joined = TrendFiltering().fit(p, y)
    monkeypatch.setattr(trend_filtering, "MAX_UNJOINED_POINTS", 10**9)
    exact = TrendFiltering(joined.penalty_).fit(p, y)
    one, two = (fit.predict_proba(p)[:, 1] for fit in (joined, exact))
    assert not np.array_equal(one, two)
    moved = np.sqrt(np.mean((one - two) ** 2))
    slope = max(mean_slope(fit, p) for fit in (joined, exact))
    assert moved < np.sqrt(4e-4 * slope)
    assert moved < 1e-4


def test_cells_are_narrow_and_light():
    rng = np.random.default_rng(0)
    x = np.unique(np.append(rng.random(50_000), rng.random(30_000) / 1e3))
    mass = rng.exponential(size=len(x))
    mass[100] = mass.sum()  # a point of half the weight
    starts = trend_filtering._find_cell_starts(x, mass)
    ends = np.append(starts[1:], len(x)) - 1
    assert starts[0] == 0 and len(starts) <= 10_001
    assert (x[ends] - x[starts]).max() <= 2e-4
    share = np.add.reduceat(mass, starts) / mass.sum()
    several = ends > starts
    heaviest = np.maximum.reduceat(mass, starts) / mass.sum()
    assert (share - heaviest)[several].max() <= 4e-4


def test_few_points_are_kept_as_they_are():
    rng = np.random.default_rng(0)
    p, y = rng.random(5000), rng.integers(0, 2, 5000)
    x, frequency, mass = trend_filtering._pool_rows_by_close_scores(p, y, np.ones(5000))
    assert len(x) == len(np.unique(np.rint(p / 1e-5)))
    assert mass @ x == pytest.approx(p.sum()) and mass @ frequency == pytest.approx(
        y.sum()
    )
