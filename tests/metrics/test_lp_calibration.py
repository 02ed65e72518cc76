"""The l_p calibration error: oracles, a slow reference, unbiasedness, the null, validation."""

import math

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_calib.inference import binning_sample_size, lp_calibration_bound
from sklearn_calib.inference._lp_calibration import compute_log_level_sets
from sklearn_calib.metrics import (
    _lp_calibration,
    get_scorer,
    lp_calibration_error,
    lp_calibration_test,
)
from sklearn_calib.metrics._lp_calibration import _read_proba_without_copy


def reference(y, P, p, n_levels):
    cells = {}
    for label, row in zip(y, P, strict=True):
        key = tuple(
            np.floor(np.asarray(row, dtype=float) * n_levels + 4e-5).astype(int)
        )
        cells[key] = cells.get(key, 0) + (row - np.eye(len(row))[label])
    gaps = np.abs(np.array(list(cells.values())) / len(y))
    return gaps.max() if np.isinf(p) else (gaps**p).sum() ** (1 / p)


def softmax_data(n, k, seed=0, sharp=1.0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, k)) * 2
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    q = np.exp(z * sharp) / np.exp(z * sharp).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    return y, q


@pytest.mark.parametrize("weighted", [False, True])
def test_oracle(oracle, weighted):
    case = oracle("multiclass_binning.json")["case2_measure"]
    expected = case["expected_weighted" if weighted else "expected"]
    weight = {"sample_weight": case["sample_weight"]} if weighted else {}
    common = {"n_levels": case["lam"], **weight}
    for p, value in expected["err_p"].items():
        found = lp_calibration_error(case["y"], case["P"], p=float(p), **common)
        assert_allclose(found, value, atol=1e-15)
    found = lp_calibration_error(case["y"], case["P"], estimator="unbiased", **common)
    assert_allclose(np.sign(found) * found**2, expected["err2_sq_unbiased"], atol=1e-15)


@run_every_case("p", [1, 1.5, 2, 3.3, 4, np.inf])
@run_every_case("k", [2, 5])
def test_slow_reference(p, k):
    y, P = softmax_data(400, k)
    found = lp_calibration_error(y, P, p=p, n_levels=6)
    assert_allclose(found, reference(y, P, p, 6), rtol=1e-10)
    single = lp_calibration_error(y, P.astype(np.float32), p=p, n_levels=6)
    assert_allclose(single, found, rtol=1e-5)


@pytest.mark.slow
def test_the_unbiased_estimate_is_unbiased():
    """Mean over draws against the error of 400,000 rows; the plug-in is far above."""
    y, P = softmax_data(400_000, 4, 99, 1.7)
    truth = lp_calibration_error(y, P, estimator="unbiased", n_levels=10) ** 2
    draws, plugin = [], []
    for seed in range(60):
        y, P = softmax_data(500, 4, seed, 1.7)
        value = lp_calibration_error(y, P, estimator="unbiased", n_levels=10)
        draws.append(np.sign(value) * value**2)
        plugin.append(lp_calibration_error(y, P, n_levels=10) ** 2)
    error = 4 * np.std(draws) / np.sqrt(60)
    assert abs(np.mean(draws) - truth) < error
    assert np.mean(plugin) > truth + 2 * error


@pytest.mark.slow
def test_null():
    y, P = softmax_data(1000, 5)
    calibrated = lp_calibration_test(y, P, p=1, n_resamples=99)
    assert calibrated.null_mean < calibrated.null_quantile
    assert abs(calibrated.value - calibrated.null_mean) < 0.1 * calibrated.null_mean
    assert calibrated.pvalue > 0.01 and calibrated.n_cells > 100
    y, P = softmax_data(1000, 5, sharp=2.5)
    wrong = lp_calibration_test(y, P, p=1, n_resamples=99)
    assert wrong.pvalue == 0.01 and wrong.value > wrong.null_quantile
    assert (wrong.p, wrong.n_levels) == (1, 20)
    again = lp_calibration_test(y, P, p=1, n_resamples=99)
    assert again == wrong
    signed = lp_calibration_test(y, P, estimator="unbiased", n_resamples=20)
    assert abs(signed.null_mean) < signed.value


@pytest.mark.slow
@pytest.mark.parametrize(("p", "estimator"), [(1, "plugin"), (2, "unbiased")])
def test_pvalues_and_quantile_of_calibrated_predictions(p, estimator):
    """As often beyond the 95 % quantile as stated, and p-values that are neither low nor high."""
    pvalues, beyond = [], []
    for seed in range(300):
        y, P = softmax_data(80, 3, seed)
        options = {"p": p, "n_levels": 5, "estimator": estimator, "random_state": seed}
        found = lp_calibration_test(y, P, n_resamples=59, **options)
        pvalues.append(found.pvalue)
        beyond.append(found.value > found.null_quantile)
    assert 0.02 < np.mean(beyond) < 0.09
    for level in (0.1, 0.5, 0.9):
        assert np.mean(np.array(pvalues) <= level) == pytest.approx(level, abs=0.06)


def test_the_measure_is_weak():
    """The same wrong predictions: the error falls with the size of the cells, but for p = 1."""
    y, P = softmax_data(100_000, 3, sharp=2.0)
    two, one = (
        [lp_calibration_error(y, P, p=p, n_levels=n) for n in (5, 20, 80)]
        for p in (2, 1)
    )
    assert two[0] > 1.5 * two[1] > 2 * two[2]
    assert max(one) < 1.5 * min(one)


def test_tables_are_taken_as_they_are():
    """No copy of floating-point tables of two columns or more; all else becomes probabilities."""
    _, P = softmax_data(50, 3)
    for table in (
        P,
        P.astype(np.float32),
        P[:, :2] / P[:, :2].sum(axis=1, keepdims=True),
    ):
        assert _read_proba_without_copy(table) is table
    for other in (P.tolist(), P[:, 0], P[:, :1], P.astype(np.float16)):
        found = _read_proba_without_copy(other)
        assert found.dtype == np.float64 and found.shape[1] in (2, 3)
        assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    with raises_invalid_input(ValueError, value=".*dimensions"):
        _read_proba_without_copy(P[None])
    assert lp_calibration_error([0, 1], [0.2, 0.7], n_levels=5000) > 0


def test_a_right_table_is_checked_in_blocks_alone(monkeypatch):
    checked = []
    monkeypatch.setattr(
        _lp_calibration, "read_proba", lambda *args, **kw: checked.append(1)
    )
    monkeypatch.setattr(_lp_calibration, "_BLOCK_ENTRIES", 21)  # 7 rows
    _, P = softmax_data(50, 3)
    assert _read_proba_without_copy(P) is P and not checked
    P[49, 0] += 0.1
    _read_proba_without_copy(P)
    assert checked == [1]


def test_door():
    y, P = softmax_data(50, 3)
    as_list = lp_calibration_error(y, P.tolist())
    assert_allclose(as_list, lp_calibration_error(y, P), rtol=1e-12)
    copy = P.copy()
    lp_calibration_error(y, P)
    assert (copy == P).all()
    assert lp_calibration_error([0, 1], [0.0, 1.0]) == 0.0
    assert (
        lp_calibration_error([0], [[0.5, 0.5]], labels=[0, 1], estimator="unbiased")
        == 0.0
    )
    P[17] *= 0.5
    with pytest.raises(ValueError, match=r"a sum of 0\.5 in row 17"):
        lp_calibration_error(y, P)
    P[17] = np.nan
    with raises_invalid_input(
        ValueError, expected="finite scores", value="nan", row=17
    ):
        lp_calibration_error(y, P.astype(np.float32))
    for options, message in (
        ({"p": 0.5}, "p from 1 to infinity, got 0.5"),
        ({"n_levels": 0}, "from 1 to 5000, got 0"),
        ({"n_levels": 5001}, "from 1 to 5000, got 5001"),
        ({"n_levels": 2.5}, "a whole number of n_levels .* got 2.5"),
        ({"n_levels": True}, "a whole number of n_levels .* got True"),
        ({"p": True}, "p from 1 to infinity, got True"),
        ({"estimator": "jackknife"}, "estimator among plugin, unbiased"),
        ({"p": 1, "estimator": "unbiased"}, "p = 2 for the unbiased"),
    ):
        with pytest.raises(ValueError, match=message):
            lp_calibration_error([0, 1], [0.2, 0.7], **options)
    with raises_invalid_input(ValueError, expected=".*n_resamples >= 1"):
        lp_calibration_test([0, 1], [0.2, 0.7], n_resamples=0)


def test_scorer():
    y, P = softmax_data(200, 3)

    class Fixed(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(3)

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return X

    value = get_scorer("neg_lp_calibration_error", p=2, n_levels=10)(Fixed(), P, y)
    assert_allclose(value, -lp_calibration_error(y, P, n_levels=10))


# -- how many rows, and what the error is at most --------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("p", [2, 4, np.inf])
def test_bound_holds(p):
    y, P = softmax_data(300, 4)
    spread = lp_calibration_bound(y, P, p=p) - lp_calibration_error(y, P, p=p)
    assert spread == pytest.approx(
        (np.sqrt(2) + 2 * np.sqrt(np.log(20))) / np.sqrt(300)
    )
    y, P = softmax_data(300_000, 4, 1, 1.8)
    truth = abs(lp_calibration_error(y, P, p=p, n_levels=10))
    held = 0
    for seed in range(40):
        y, P = softmax_data(300, 4, seed, 1.8)
        held += lp_calibration_bound(y, P, p=p, n_levels=10, level=0.9) >= truth
    assert held >= 36
    weight = np.zeros(300)
    weight[:150] = 1
    assert lp_calibration_bound(y, P, sample_weight=weight) > lp_calibration_bound(y, P)


def test_bound_is_not_loose():
    """Its margin is as stated, and less than 4.5 times what the error of one cell needs."""
    n, bounds, errors = 500, {}, []
    rng = np.random.default_rng(0)
    for _ in range(400):
        errors.append(lp_calibration_error(rng.integers(0, 2, n), np.full(n, 0.5)))
    y, p = np.arange(n) % 2, np.full(n, 0.5)  # an error of 0
    for level in (0.9, 0.95, 0.99):
        stated = (np.sqrt(2) + 2 * np.sqrt(np.log(1 / (1 - level)))) / np.sqrt(n)
        bounds[level] = lp_calibration_bound(y, p, level=level)
        assert bounds[level] == pytest.approx(stated)
        assert 1 < bounds[level] / np.quantile(errors, level) < 4.5
    weight = np.repeat([1.0, 3.0], n // 2)
    few = lp_calibration_bound(y, p, sample_weight=weight)  # as of 400 rows
    assert few == pytest.approx(bounds[0.95] * np.sqrt(500 / 400))


def test_required_samples():
    """Hand-computed values, two digits."""
    inf = float("inf")
    for p, eps, total in ((inf, 0.1, 2.2e10), (inf, 0.02, 2.2e12), (2, 0.1, 7.1e13)):
        assert_allclose(binning_sample_size(p, eps, method="paper"), total, rtol=0.04)
    for p, eps, bins, total in (
        (inf, 0.1, None, 5.3e3 + 3.9e4),
        (inf, 0.05, 30, 1.2e4 + 9.0e4),
        (2, 0.2, 10, 3.2e4 + 2.9e5),
        (4, 0.1, None, 1.6e4 + 7.1e5),
    ):
        assert_allclose(binning_sample_size(p, eps, n_bins=bins), total, rtol=0.03)
    assert binning_sample_size(2, 0.1, n_classes=1000) < 1.5 * binning_sample_size(
        2, 0.1
    )
    for k, n, count in ((3, 2, 10), (2, 2, 5), (2, 4, 9), (3, 3, 19), (3, 7, 85)):
        assert_allclose(np.exp(compute_log_level_sets(n, k)), count)


def test_every_constant_of_the_numbers_of_rows():
    """For p = inf the tolerance is epsilon: 60 cells at most, 10 levels, 6 pools, 10 classes."""
    sets = math.log(math.comb(20, 10) - math.comb(10, 10))
    paper = max(
        math.log(4 * 120 * 60) * 120**2 / 2,  # a third of delta, a twelfth of epsilon
        8 * 120 / 3 * (math.log(2 * 60) + sets),
    )
    for factor in (1, 10):
        paper += 41472 * 6**3 * math.log(12 * 60 * factor * 6 / 0.05) * 100
    found = binning_sample_size(np.inf, 0.1, method="paper")
    assert found == pytest.approx(paper, abs=2)
    choice = 720 * math.log(8 / 0.005)
    estimates = 800 * (60 * math.log(2) + math.log(80 / 0.05))
    assert binning_sample_size(np.inf, 0.1) == pytest.approx(choice + estimates, abs=2)
    few = 800 * (7 * math.log(2) + math.log(80 / 0.05))
    assert binning_sample_size(np.inf, 0.1, n_bins=7) == pytest.approx(
        choice + few, abs=2
    )


def test_bad_arguments():
    for options, message in (
        ({"p": 1, "epsilon": 0.1}, "p above 1"),
        ({"p": 2, "epsilon": 0.0}, "epsilon between 1e-9 and 1"),
        ({"p": 1.001, "epsilon": 0.1}, "number of rows can be written"),
        ({"p": 2, "epsilon": 0.1, "delta": 1}, "delta between 1e-9 and 1"),
        ({"p": 2, "epsilon": 0.1, "n_classes": 1}, "n_classes >= 2"),
        ({"p": 2, "epsilon": 0.1, "method": "exact"}, "method 'plugin' or 'paper'"),
    ):
        with raises_invalid_input(ValueError, expected=f".*{message}"):
            binning_sample_size(**options)
    with raises_invalid_input(ValueError, expected="p >= 2"):
        lp_calibration_bound([0, 1], [0.2, 0.7], p=1.5)
    with raises_invalid_input(ValueError, expected=".*level between 0 and 1"):
        lp_calibration_bound([0, 1], [0.2, 0.7], level=95)
