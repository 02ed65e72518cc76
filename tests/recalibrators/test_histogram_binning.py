import numpy as np
import pytest
from scipy.special import betaln

from sklearn_calib.recalibrators import HistogramBinning


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_values_are_means(strategy):
    """The certificate: the value of each bin is the weighted mean of its labels."""
    rng = np.random.default_rng(0)
    p = rng.random(500).round(2)
    y = (rng.random(500) < p).astype(int)
    w = rng.exponential(size=500)
    hb = HistogramBinning(7, strategy=strategy, prior_weight=0).fit(
        p, y, sample_weight=w
    )
    number = np.searchsorted(hb.bin_edges_, p, side="left")
    assert len(hb.bin_values_) == 7
    for b in range(7):
        rows = number == b
        assert hb.bin_values_[b] == pytest.approx(np.average(y[rows], weights=w[rows]))
        assert hb.bin_weights_[b] == pytest.approx(w[rows].sum())


def test_equal_mass_without_ties():
    rng = np.random.default_rng(1)
    p = rng.beta(0.3, 3, 1003)
    hb = HistogramBinning(10).fit(p, rng.integers(0, 2, 1003))
    assert set(hb.bin_weights_) <= {100.0, 101.0}


def test_ties_never_split():
    p = np.r_[np.zeros(80), np.linspace(0.1, 1, 20)]
    hb = HistogramBinning(10).fit(p, np.arange(100) % 2)
    assert hb.bin_weights_.max() >= 80
    assert hb.bin_weights_.min() > 0


def test_empty_bins_have_their_middle():
    hb = HistogramBinning(10, strategy="uniform", prior_weight=0).fit(
        [0.05, 0.95], [1, 0]
    )
    np.testing.assert_allclose(hb.bin_values_[1:-1], np.arange(0.15, 0.9, 0.1))
    assert hb.bin_values_[[0, -1]].tolist() == [1, 0]
    assert hb.predict_proba([0.0, 1.0])[:, 1].tolist() == [1, 0]


def test_constant_scores():
    with pytest.warns(UserWarning, match="at least two different rows of scores"):
        hb = HistogramBinning(prior_weight=0).fit(np.full(10, 0.3), [1, 0] * 5)
    assert hb.bin_values_.tolist() == [0.5]


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_number_of_bins_by_evidence(strategy):
    """The best of all numbers by the evidence written out."""
    rng = np.random.default_rng(0)
    p = rng.random(300).round(2)
    y = (rng.random(300) < (p > 0.5) * 0.6 + 0.2).astype(int)
    chosen = HistogramBinning("bdeu", strategy=strategy).fit(p, y)

    def evidence(n_bins):
        hb = HistogramBinning(n_bins, strategy=strategy, prior_weight=0).fit(p, y)
        n, k = hb.bin_weights_, hb.bin_weights_ * hb.bin_values_
        prior, k = 1 / n_bins, np.where(n > 0, k, 0)
        return (betaln(k + prior, n - k + prior) - betaln(prior, prior)).sum()

    scores = [evidence(n_bins) for n_bins in range(1, 68)]
    assert chosen.n_bins_ == 1 + int(np.argmax(scores))
    assert chosen.n_bins_ == 2  # the truth is a step in the middle
    assert np.abs(chosen.bin_values_ - [0.2, 0.8]).max() < 0.1


@pytest.mark.parametrize("times", [1.0, 0.37])
def test_invented_rows(times):
    """Five in each bin: nine parts the mean score of the bin, one part the base rate."""
    rng = np.random.default_rng(0)
    p = rng.random(90)
    y = (rng.random(90) < p**2).astype(int)
    hb = HistogramBinning(6).fit(p, y, sample_weight=np.full(90, times))
    number = np.searchsorted(hb.bin_edges_, p, side="left")
    for b in range(6):
        invented = 0.9 * p[number == b].mean() + 0.1 * y.mean()
        expected = (y[number == b].sum() + 5 * invented) / (15 + 5)
        assert hb.bin_values_[b] == pytest.approx(expected)


def test_no_bin_is_certain():
    """Exact zeros of a forest, ten classes: a log loss near the best one, not 36 nats a row."""
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(10) == rng.integers(0, 10, (2000, 1)), 0.91, 0.01)
    y = (truth.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    p = np.where(truth > 0.5, 1.0, 0.0)
    best = -np.log(truth[np.arange(2000), y])[1000:].mean()
    losses = {}
    for rows in (0, 5):
        hb = HistogramBinning(prior_weight=rows).fit(
            p[:100], y[:100], classes=range(10)
        )
        found = np.maximum(hb.predict_proba(p)[np.arange(2000), y], 2.2e-16)
        losses[rows] = -np.log(found)[1000:].mean()
    assert best < losses[5] < best + 0.25
    assert losses[0] > best + 1
