"""Methods that order the rows: both ends of [0, 1], weights of every kind, edges of bins."""

import pickle
import warnings

import numpy as np
import pytest
from cases import run_every_case
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._near_isotonic import PenaltyPath
from sklearn_calib._validation import get_rows_per_weight
from sklearn_calib.decomposition import refinement_error
from sklearn_calib.metrics import reliability_curve
from sklearn_calib.recalibrators import (
    BBQ,
    ENIR,
    AdaptiveCalibration,
    HistogramBinning,
    IsotonicCalibration,
    NearIsotonicCalibration,
    SmoothIsotonicCalibration,
    VennAbers,
)

ORDERED = [
    IsotonicCalibration(),
    IsotonicCalibration(centred=True),
    VennAbers(),
    NearIsotonicCalibration(),
    NearIsotonicCalibration("bdeu"),
    NearIsotonicCalibration(penalty=1.5),
    ENIR(),
    ENIR("aic"),
    SmoothIsotonicCalibration(),
    AdaptiveCalibration(),
    AdaptiveCalibration("interval"),
    HistogramBinning(7),
    HistogramBinning("bdeu"),
]


def large_logits(size, n=101, seed=0):
    """Logits with labels that follow them loosely; an odd number of rows."""
    rng = np.random.default_rng(seed)
    z = size * rng.standard_normal(n)
    return z, (rng.random(n) < expit(1.5 * z / size)).astype(int)


@run_every_case("size", [1e-3, 1.0, 10.0, 40.0, 1e3, 1e6])
@run_every_case("method", ORDERED, ids=repr)
def test_swapping_the_classes_swaps_the_result(method, size):
    z, y = large_logits(size)
    grid = np.concatenate([z, z + 0.1 * size, [0.0]])
    logits, swapped, queries, back = (
        canonical_proba(v, kind="logits") for v in (z, -z, grid, -grid)
    )
    first = clone(method).fit(logits, y).predict_proba(queries)
    second = clone(method).fit(swapped, 1 - y).predict_proba(back)
    assert_allclose(second[:, ::-1], first, atol=1e-9)


@pytest.mark.parametrize("n_bins", [7, 10, "bdeu"])
def test_swapping_the_classes_with_ties_on_edges(n_bins):
    """But for a score of 1/2 on the median."""
    method = HistogramBinning(n_bins)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        second = 2 * rng.integers(0, 10, 200) + 1
        proba = np.column_stack([20 - second, second]) / 20
        y = (rng.random(200) < proba[:, 1]).astype(int)
        first = clone(method).fit(proba, y).predict_proba(proba)
        back = clone(method).fit(proba[:, ::-1], 1 - y).predict_proba(proba[:, ::-1])
        assert_allclose(back[:, ::-1], first, atol=1e-9)


def test_cuts_between_neighbouring_floats():
    """Their mean rounds to one of them; the bin above must not take the rows below."""
    p = np.repeat([5e-324, 1e-323, 1.5e-323, 2e-323], 50)
    y = np.repeat([0, 1, 0, 1], 50)
    found = BBQ().fit(p, y)
    assert_allclose(found.predict_proba(p)[:, 1], y, atol=0.2)


BY_RANK = [
    IsotonicCalibration(),
    VennAbers(),
    NearIsotonicCalibration(),
    NearIsotonicCalibration("bdeu"),
]


@pytest.mark.parametrize(
    "method", [*BY_RANK, HistogramBinning(7, prior_weight=0)], ids=repr
)
def test_an_increasing_change_of_large_logits_changes_nothing_at_the_scores(method):
    """What is fitted depends on the order only, also if all probabilities are 0 or 1."""
    z, y = large_logits(1.0, 201)
    expected = clone(method).fit(canonical_proba(z, kind="logits"), y)
    expected = expected.predict_proba(canonical_proba(z, kind="logits"))
    for size in (1e3, 1e9):
        wide = canonical_proba(size * z, kind="logits")
        assert_allclose(
            clone(method).fit(wide, y).predict_proba(wide), expected, atol=1e-9
        )


@pytest.mark.parametrize("penalty", [0.0, 0.3, 2.0, 1e6])
def test_near_isotonic_of_large_logits_is_optimal(penalty):
    """Against the dual: u in [0, penalty], and the derivative of the loss is its difference."""
    z, y = large_logits(1e3, 300)
    logits = canonical_proba(z, kind="logits")
    model = NearIsotonicCalibration(penalty=penalty).fit(logits, y)
    fit = model.predict_proba(logits)[np.argsort(z), 1]
    labels = y[np.argsort(z)].astype(float)
    u = np.cumsum(labels - fit)
    assert abs(u[-1]) < 1e-9
    assert u.min() > -1e-9 and u[:-1].max() < penalty + 1e-9
    falls, rises = np.diff(fit) < -1e-9, np.diff(fit) > 1e-9
    assert_allclose(u[:-1][falls], penalty, atol=1e-9)
    assert_allclose(u[:-1][rises], 0, atol=1e-9)
    if penalty == 1e6:
        assert_allclose(fit, isotonic_regression(labels), atol=1e-12)


@pytest.mark.parametrize(
    "method", [IsotonicCalibration(), NearIsotonicCalibration(1e6), VennAbers()]
)
def test_all_float64_numbers_keep_their_order(method):
    p = [1e-300, 1e-200, 1e-100, 1e-50, 0.5]
    found = method.fit(p, [0, 0, 1, 1, 1]).predict_proba([0.0, 5e-324, *p])[:, 1]
    if isinstance(method, VennAbers):
        assert found[3] < 0.4 < 0.6 < found[4]
    else:
        assert_allclose(found, [0, 0, 0, 0, 1, 1, 1], atol=1e-12)


def test_isotonic_refinement_of_tiny_probabilities_is_zero():
    p = 10.0 ** -np.arange(300, 40, -20.0)
    y = (np.arange(len(p)) >= 7).astype(int)
    assert refinement_error(y, p, loss="brier", recalibrator="isotonic") == 0


def test_the_last_digit_does_not_part_equal_scores_near_one_half():
    p = np.array([0.5, np.nextafter(0.5, 1), np.nextafter(0.5, 0), 0.9])
    assert len(NearIsotonicCalibration(0.0).fit(p, [0, 1, 1, 1]).knots_) == 2


# -- weights --------------------------------------------------------------------------------------


def test_a_weight_in_rows():
    assert get_rows_per_weight(np.array([1.0, 2.0, 3.0])) == 1
    assert get_rows_per_weight(np.full(9, 0.7)) == pytest.approx(1 / 0.7)
    weight = np.random.default_rng(0).exponential(size=50)
    kish = weight.sum() ** 2 / (weight**2).sum()
    for factor in (1e-200, 1e-3, 1.0, 1e3, 1e200):
        rows = get_rows_per_weight(factor * weight)
        assert rows * (factor * weight).sum() == pytest.approx(kish)


def test_weights_that_are_not_whole_numbers():
    """A pure group has no rows of the other label, not 1e-17 of one."""
    p = np.sort(np.random.default_rng(0).random(200))
    y = (np.random.default_rng(1).random(200) < p).astype(int)
    plain = NearIsotonicCalibration().fit(p, y)
    ensemble = ENIR().fit(p, y)
    for constant in (0.7, 0.5, 1e-3, 699.3):
        weight = np.full(200, constant)
        scaled = NearIsotonicCalibration().fit(p, y, sample_weight=weight)
        assert scaled.penalty_ == pytest.approx(plain.penalty_ * constant)
        assert_allclose(scaled.values_, plain.values_, atol=1e-9)
        found = ENIR().fit(p, y, sample_weight=weight)
        assert_allclose(found.values_, ensemble.values_, atol=1e-9)
        assert_allclose(found.penalties_, ensemble.penalties_ * constant)


def test_a_penalty_chosen_under_weights_gives_the_same_fit_when_passed():
    rng = np.random.default_rng(0)
    p, weight = rng.random(300), rng.exponential(size=300)
    y = (rng.random(300) < p).astype(int)
    chosen = NearIsotonicCalibration().fit(p, y, sample_weight=weight)
    given = NearIsotonicCalibration(penalty=chosen.penalty_).fit(
        p, y, sample_weight=weight
    )
    assert_allclose(given.values_, chosen.values_, atol=1e-12)


def test_groups_of_the_path_are_sums_without_subtraction():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 0.0, 1.0], 50)
    path = PenaltyPath(y, rng.random(200))
    zeros, ones = path.sum_labels_by_group(np.array([0, 50, 100, 150]))
    assert zeros[[1, 3]].tolist() == [0, 0] and ones[[0, 2]].tolist() == [0, 0]


@run_every_case("method", [*ORDERED, BBQ(), BBQ("bdeu")], ids=repr)
def test_weights_that_span_many_decades(method):
    """D8: differences of prefix sums would be 0 / 0."""
    for seed, decades in ((0, 16), (1, 18), (2, 40), (3, 200)):
        rng = np.random.default_rng(seed)
        p = rng.random(300)
        y = (rng.random(300) < p).astype(int)
        weight = 10.0 ** rng.uniform(-decades / 2, decades / 2, 300)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            out = (
                clone(method)
                .fit(p, y, sample_weight=weight)
                .predict_proba(np.r_[p, 0, 1])
            )
        assert np.isfinite(out).all() and out.min() >= 0 and out.max() <= 1


def test_adaptive_windows_of_tiny_weights():
    """The share is that of the window's own rows, however heavy the others are."""
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(400))
    y = rng.integers(0, 2, 400)
    weight = np.where(p < 0.5, 1e9, 1e-9) * rng.random(400)
    ends = np.column_stack([np.maximum(p - 0.05, 0), np.minimum(p + 0.05, 1)])
    acp = AdaptiveCalibration("interval", prior_weight=0)
    acp.fit(p, y, sample_weight=weight, intervals=ends)
    inside = [(p >= low) & (p <= high) for low, high in ends]
    expected = [np.average(y[rows], weights=weight[rows]) for rows in inside]
    assert_allclose(acp.predict_proba(p)[:, 1], expected, atol=1e-12)


def test_adaptive_pickles_hold_the_cells_only():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    acp = AdaptiveCalibration().fit(p, rng.integers(0, 2, 20_000))
    text = pickle.dumps(acp)
    assert len(text) < 24 * 20_000 + 2000
    assert (pickle.loads(text).predict_proba(p) == acp.predict_proba(p)).all()


# -- bins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [4, 5, 10, 20])
@pytest.mark.parametrize("steps", [10, 20, 100])
def test_a_score_on_an_edge_of_equal_widths_belongs_to_the_bin_on_its_left(
    n_bins, steps
):
    """W3; and the bins are those of the reliability curve."""
    p = np.repeat(np.arange(1, steps + 1) / steps, 7)
    y = np.arange(len(p)) % 2
    binned = HistogramBinning(n_bins, strategy="uniform", prior_weight=0).fit(p, y)
    [curve] = reliability_curve(y, p, strategy="uniform", n_bins=n_bins, n_resamples=0)
    filled = binned.bin_weights_ > 0
    assert_allclose(binned.bin_weights_[filled], curve.weight)
    assert_allclose(binned.bin_values_[filled], curve.observed)
    if steps == n_bins == 10:
        assert binned.bin_weights_.tolist() == [7] * 10


def test_an_edge_of_bbq_between_symmetric_scores():
    """A piece contains its left edge; rounded scores would move the edge."""
    p = np.round(np.linspace(0.025, 0.975, 20), 3)
    bbq = BBQ().fit(p, (p > 0.5).astype(int))
    assert 0.5 in bbq.bin_edges_
    assert bbq.predict_proba([0.5])[0, 1] == bbq.predict_proba([0.51])[0, 1] > 0.5


@pytest.mark.parametrize(
    "method", [BBQ(), BBQ("bdeu"), HistogramBinning("bdeu")], ids=repr
)
def test_heavy_weights_ask_for_no_more_bins_than_the_scores_can_fill(
    method, monkeypatch
):
    """W6: the number of models that are tried does not grow with the weights."""
    import sklearn_calib.recalibrators._bbq as bbq
    import sklearn_calib.recalibrators._histogram_binning as histogram

    calls = []
    for module in (bbq, histogram):
        real = module.sum_log_evidence_over_bins
        monkeypatch.setattr(
            module,
            "sum_log_evidence_over_bins",
            lambda *a, real=real: calls.append(len(a[0])) or real(*a),
        )
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    y = (rng.random(1500) < p).astype(int)
    work = []
    for weight in (1.0, 1e4, 1e7, 1e12):
        calls.clear()
        out = (
            clone(method)
            .fit(p, y, sample_weight=np.full(1500, weight))
            .predict_proba(p)
        )
        assert np.isfinite(out).all()
        work.append((len(calls), sum(calls)))
    assert work[0][0] <= 115
    assert max(models for models, _ in work) <= 200


def test_equal_masses_tell_scores_next_to_one_apart():
    z = np.r_[-np.arange(1, 51), np.arange(1, 51)] * 100.0
    logits = canonical_proba(z, kind="logits")
    y = (np.abs(z) > 2500).astype(int)
    binned = HistogramBinning(10, prior_weight=0).fit(logits, y)
    assert binned.bin_weights_.tolist() == [10] * 10
    assert binned.bin_values_.tolist() == [1, 1, 0.5, 0, 0, 0, 0, 0.5, 1, 1]
