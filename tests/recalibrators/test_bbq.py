import numpy as np
import pytest

from sklearn_calib.recalibrators import BBQ, SmoothIsotonicCalibration


@pytest.mark.parametrize("case", ["n30", "tiny8", "n200"])
def test_equals_the_authors_program(oracle, case):
    """BBQ under GNU Octave, on scores without ties."""
    data = oracle("bbq.json")[case]
    bbq = BBQ().fit(data["s"], data["y"])
    np.testing.assert_allclose(bbq.predict_proba(data["t"])[:, 1], data["pred_avg"], atol=1e-10)
    np.testing.assert_array_equal(bbq.n_bins_, np.ravel(data["pruned_nbins"]))
    other = BBQ("bdeu").fit(data["s"], data["y"])
    found = other.predict_proba(data["t"])[:, 1]
    np.testing.assert_allclose(found, data["BDeu_pred_avg"], atol=1e-10)


def test_ties_share_a_bin_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    s = np.append(np.full(40, 0.5), rng.random(60))
    y = rng.integers(0, 2, 100)
    order = rng.permutation(100)
    first = BBQ().fit(s, y).predict_proba(s)
    second = BBQ().fit(s[order], y[order]).predict_proba(s)
    np.testing.assert_allclose(first, second, atol=1e-13)


def test_the_average_is_that_of_its_models():
    rng = np.random.default_rng(0)
    s = rng.random(3000)
    y = (rng.random(3000) < s).astype(int)
    bbq = BBQ().fit(s, y)
    assert (np.diff(bbq.weights_) <= 0).all()
    assert bbq.weights_.sum() == pytest.approx(1)
    assert len(bbq.values_) == len(bbq.bin_edges_) + 1
    assert np.abs(bbq.predict_proba(s)[:, 1] - s).mean() < 0.05


def test_degenerate_data():
    assert BBQ().fit([0.2, 0.8], [0, 1]).predict_proba([0.2, 0.8]).shape == (2, 2)
    with pytest.warns(UserWarning, match="two different rows of scores"):
        constant = BBQ().fit([0.5] * 30, [0, 1, 1] * 10)
    assert constant.predict_proba([0.5])[0, 1] == pytest.approx(2 / 3, abs=0.02)


def test_smooth_isotonic_is_monotone_and_has_no_jumps():
    rng = np.random.default_rng(0)
    s = rng.random(2000)
    y = (rng.random(2000) < s**2).astype(int)
    smooth = SmoothIsotonicCalibration().fit(s, y)
    grid = np.linspace(0, 1, 20_001)
    p = smooth.predict_proba(grid)[:, 1]
    assert (np.diff(p) >= 0).all()
    assert np.diff(p).max() < 0.02
    assert np.abs(p - grid**2).mean() < 0.03
    np.testing.assert_allclose(smooth.predict_proba(smooth.knots_)[:, 1], smooth.values_)
    # blocks keep the mean of the labels
    assert (np.diff(smooth.values_) > 0).all()


def test_smooth_isotonic_of_one_block():
    falling = SmoothIsotonicCalibration().fit([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])
    np.testing.assert_allclose(falling.predict_proba([0.0, 0.5, 1.0])[:, 1], 0.5)


@pytest.mark.parametrize("score", ["bic", 2])
def test_bad_parameters(score):
    with pytest.raises(ValueError, match="The 'criterion' parameter"):
        BBQ(score).fit([0.1, 0.9], [0, 1])
