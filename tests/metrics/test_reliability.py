import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.isotonic import isotonic_regression

from sklearn_calib._kernels._binning import assign_rows_to_bins, sum_bins
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import CurveRows, reliability_curve, validate_predictions
from sklearn_calib.summary import CalibrationSummary


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins(strategy):
    proba, y = make_overconfident(2, 500)
    w = np.random.default_rng(0).exponential(size=500)
    (curve,) = reliability_curve(y, proba, strategy=strategy, n_bins=6, sample_weight=w)
    assert curve.weight.sum() == pytest.approx(w.sum())
    assert curve.weight @ curve.observed == pytest.approx(w @ y)
    assert curve.weight @ curve.predicted == pytest.approx(w @ proba[:, 1])
    assert (np.diff(curve.predicted) > 0).all()
    assert curve.histogram.sum() == pytest.approx(1)
    for low, high in (
        (curve.consistency_low, curve.consistency_high),
        (curve.confidence_low, curve.confidence_high),
    ):
        assert (low <= high).all() and low.min() >= 0 and high.max() <= 1
    assert (curve.confidence_low <= curve.observed).all()
    assert (curve.observed <= curve.confidence_high).all()


def test_isotonic_is_pav():
    proba, y = make_overconfident(2, 200)
    (curve,) = reliability_curve(y, proba, strategy="isotonic", n_resamples=20)
    order = np.argsort(proba[:, 1])
    np.testing.assert_allclose(
        curve.observed, isotonic_regression(y[order].astype(float))
    )
    assert (np.diff(curve.observed) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["quantile", "isotonic"])
def test_bands_hold_their_level(strategy):
    """Calibrated predictions lie in the consistency band about as often as it states."""
    rng = np.random.default_rng(1)
    inside = []
    for seed in range(40):
        p = rng.random(300)
        y = (rng.random(300) < p).astype(int)
        (curve,) = reliability_curve(
            y,
            p,
            strategy=strategy,
            n_bins=10,
            level=0.8,
            n_resamples=100,
            random_state=seed,
        )
        low, high = curve.consistency_low, curve.consistency_high
        inside.append(
            np.mean((low - 1e-12 <= curve.observed) & (curve.observed <= high + 1e-12))
        )
    assert 0.74 < np.mean(inside) < 0.93  # counts are whole: a little above 0.8


def test_bands_of_bins_are_clopper_pearsons():
    """Both ends by another implementation, also if no row of a bin is a hit, or all are."""
    hits, rows = np.array([0, 1, 5, 19, 20]), 20
    p = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], rows)
    y = (np.arange(rows) < hits[:, None]).astype(int).ravel()
    for level in (0.5, 0.9, 0.99):
        (curve,) = reliability_curve(y, p, n_bins=5, level=level, n_resamples=0)
        for number, count in enumerate(hits):
            ends = binomtest(int(count), rows).proportion_ci(level, method="exact")
            assert curve.confidence_low[number] == pytest.approx(ends.low, abs=1e-12)
            assert curve.confidence_high[number] == pytest.approx(ends.high, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "weighted"),
    [
        ("quantile", False),
        ("quantile", True),
        pytest.param("isotonic", False, marks=pytest.mark.slow),
    ],
)
def test_confidence_bands_hold_the_truth(strategy, weighted):
    """Neither much less nor much more often than they say, and missed on both sides."""
    rng, missed = np.random.default_rng(0), []
    draws, n, n_resamples = (60, 900, 50) if strategy == "isotonic" else (200, 3000, 0)
    for seed in range(draws):
        p = rng.random(n)
        weight = rng.exponential(size=n) if weighted else np.ones(n)
        truth = p**1.5
        y = (rng.random(n) < truth).astype(int)
        options = {"n_resamples": n_resamples, "random_state": seed}
        (curve,) = reliability_curve(
            y,
            p,
            strategy=strategy,
            n_bins=5,
            level=0.8,
            sample_weight=weight,
            **options,
        )
        inner = slice(None)
        if strategy == "isotonic":  # next to 0 and 1 its error is of another kind
            inner, truth = np.abs(curve.predicted - 0.5) < 0.4, curve.predicted**1.5
        else:
            bins = assign_rows_to_bins(p, weight, 5, strategy)
            mass, total = sum_bins(bins, 5, weight, weight * truth)
            truth = total / mass
        low, high = curve.confidence_low, curve.confidence_high
        missed.append([(truth < low)[inner].mean(), (truth > high)[inner].mean()])
    below, above = np.mean(missed, axis=0)
    assert 0.06 < below < 0.15 and 0.06 < above < 0.15, (below, above)


@pytest.mark.parametrize(
    "strategy", ["quantile", pytest.param("isotonic", marks=pytest.mark.cross)]
)
def test_both_tails_of_consistency_bands(strategy):
    """Calibrated rows are below and above as often as the level states."""
    rng, outside = np.random.default_rng(1), []
    for seed in range(40):
        p = rng.random(600)
        y = (rng.random(600) < p).astype(int)
        (curve,) = reliability_curve(
            y,
            p,
            strategy=strategy,
            n_bins=8,
            level=0.8,
            n_resamples=100,
            random_state=seed,
        )
        low, high = curve.consistency_low, curve.consistency_high
        outside.append([np.mean(curve.observed < low), np.mean(curve.observed > high)])
    below, above = np.mean(outside, axis=0)
    assert 0.07 < below < 0.13 and 0.07 < above < 0.13


def test_panels():
    proba, y = make_overconfident(3, 300)
    labels = np.array(["x", "y", "z"])[y]
    titles = [c.title for c in reliability_curve(labels, proba, multiclass="classwise")]
    assert titles == ["class x", "class y", "class z"]
    assert [c.title for c in reliability_curve(labels, proba)] == ["confidence"]
    assert (
        reliability_curve(labels, proba, multiclass="top_label")[0].title
        == "predicted x"
    )


def test_no_resamples():
    proba, y = make_overconfident(2)
    for strategy in ("quantile", "isotonic"):
        (curve,) = reliability_curve(y, proba, strategy=strategy, n_resamples=0)
        assert curve.consistency_low is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "kernel"}, "expected strategy among quantile, uniform, isotonic"),
        ({"level": 90}, "expected a level between 0 and 1, got 90"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        reliability_curve([0, 1], [0.2, 0.8], **options)


def test_a_curve_of_cells_is_that_of_their_rows():
    """Sums of the cells are those of the rows, and draws have their means."""
    rng = np.random.default_rng(0)
    score = rng.choice([0.1, 0.4, 0.8], 600)
    hit = rng.random(600) < score
    weight = rng.integers(1, 3, 600).astype(float)
    (problem,) = validate_predictions(hit.astype(int), score, weight).problems()
    rows = CurveRows.from_problem(problem)
    summary = CalibrationSummary(classes=[0, 1]).update(hit.astype(int), score, weight)
    (sample,) = summary.samples()
    cells = CurveRows.from_pooled(sample, "class 1")
    assert rows.title == cells.title == "class 1"
    assert rows.compute_frequency_intervals is cells.compute_frequency_intervals is None
    for number, value in enumerate(cells.score):
        here = np.isclose(rows.score, value)
        for name in ("weight", "hits", "squares"):
            whole, part = getattr(cells, name)[number], getattr(rows, name)[here]
            assert whole == pytest.approx(part.sum()), name
    for one in (rows, cells):
        labels = [one.simulate_labels(rng).sum() for _ in range(400)]
        drawn = [one.draw_bootstrap_sample(rng) for _ in range(400)]
        masses, events = np.array([(mass.sum(), hits.sum()) for mass, hits in drawn]).T
        spread = np.sqrt(one.squares.sum() / 400)
        assert abs(np.mean(labels) - one.weight @ one.score) < 4 * spread
        assert abs(np.mean(masses) - one.weight.sum()) < 4 * spread
        assert abs(np.mean(events) - one.hits.sum()) < 4 * spread
