"""The kernel error of whole vectors (SKCE): golden values, estimators, weights, the exact test."""

import numpy as np
import pytest
from cases import run_every_case
from error_fields import parse_error_fields, raises_invalid_input
from scipy.special import softmax

from sklearn_calib._kernels import _pairwise_kernel
from sklearn_calib._kernels._pairwise_kernel import compute_median_bandwidth
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import get_scorer, kernel_calibration_error
from sklearn_calib.summary import CalibrationSummary

ESTIMATORS = ("biased", "unbiased", "linear")


def example():
    """60 rows of three classes without random numbers."""
    i = np.arange(60)
    z = np.column_stack([np.sin(0.37 * i), np.cos(0.61 * i), np.sin(1.3 * i + 1)])
    truth = softmax(0.9 * z + np.array([0.2, 0, -0.2]), axis=1)
    threshold = (i + 1) * (np.sqrt(5) - 1) / 2 % 1
    y = (truth.cumsum(axis=1)[:, :2] <= threshold[:, None]).sum(axis=1)
    return y, softmax(1.5 * z, axis=1)


Y, P = example()


def skce(y=Y, proba=P, estimator="auto", bandwidth=1.0, **options):
    options = {"estimator": estimator, "bandwidth": bandwidth, **options}
    return kernel_calibration_error(
        y, proba, multiclass="canonical", labels=range(3), **options
    )


def double_sum(y, proba, bandwidth, w):
    """(all pairs, pairs of different rows), term by term."""
    terms = np.zeros((len(y), len(y)))
    for i, j in np.ndindex(terms.shape):
        k = np.exp(-0.5 * np.abs(proba[i] - proba[j]).sum() / bandwidth)
        terms[i, j] = (
            w[i]
            * w[j]
            * k
            * (np.eye(3)[y[i]] - proba[i])
            @ (np.eye(3)[y[j]] - proba[j])
        )
    total, own = w.sum() ** 2, (w**2).sum()
    return terms.sum() / total, (terms.sum() - terms.trace()) / (total - own)


def test_the_example_is_the_published_one():
    assert np.bincount(Y).tolist() == [24, 20, 16]
    assert P[0] == pytest.approx([0.1109274903, 0.4971425208, 0.3919299890], abs=1e-10)
    assert compute_median_bandwidth(P) == pytest.approx(0.3941149645, abs=1e-10)


@pytest.mark.parametrize(
    ("bandwidth", "expected"),
    [
        ("median", (0.0114602279, 0.0012329383, -0.1236639213)),
        (1.0, (0.0092500906, -0.0010146590, -0.1682295976)),
    ],
)
def test_golden(bandwidth, expected):
    found = [skce(estimator=name, bandwidth=bandwidth) for name in ESTIMATORS]
    assert found == pytest.approx(expected, abs=1e-9)
    assert skce(bandwidth=bandwidth) == found[1]


def test_weights_are_of_independent_rows():
    w = np.random.default_rng(0).random(60) + 0.1
    expected = double_sum(Y, P, 0.3, w)
    found = [
        skce(estimator=e, bandwidth=0.3, sample_weight=w)
        for e in ("biased", "unbiased")
    ]
    assert found == pytest.approx(expected, abs=1e-14)
    pairs = w[::2] * w[1::2]
    alone = [skce(Y[j : j + 2], P[j : j + 2], "linear", 0.3) for j in range(0, 60, 2)]
    linear = skce(estimator="linear", bandwidth=0.3, sample_weight=w)
    assert linear == pytest.approx(pairs @ alone / pairs.sum(), abs=1e-14)


def test_of_two_classes_twice_the_square():
    p, y = P[:, 0], (Y == 0).astype(int)
    root = kernel_calibration_error(y, p, bandwidth=0.4)
    found = kernel_calibration_error(
        y, p, multiclass="canonical", estimator="biased", bandwidth=0.4
    )
    assert found == pytest.approx(2 * root**2, abs=1e-14)


def test_median_bandwidth_of_many_and_of_equal_rows(monkeypatch):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 300)
    monkeypatch.setattr(_pairwise_kernel, "MAX_MEDIAN_ROWS", 100)
    exact = np.median(
        0.5 * np.abs(proba[:, None] - proba).sum(axis=2)[np.triu_indices(300, 1)]
    )
    assert compute_median_bandwidth(proba) == pytest.approx(exact, rel=0.1)
    assert compute_median_bandwidth(np.full((5, 2), 0.5)) == 1.0
    mostly = np.array([[0.5, 0.5]] * 9 + [[0.2, 0.8]])
    assert compute_median_bandwidth(mostly) == pytest.approx(0.3)


def test_calibrated_around_zero_and_miscalibrated_above():
    proba, y = make_overconfident(3, 400)
    assert skce(y, proba) > 0.005
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 200)
    draws = (rng.random((200, 100))[:, :, None] > p.cumsum(axis=1)[:, None, :2]).sum(
        axis=2
    )
    for estimator in ("unbiased", "linear"):
        found = np.array([skce(column, p, estimator) for column in draws.T])
        assert abs(found.mean()) < 4 * found.std() / 10  # both signs


def test_exact_test(monkeypatch):
    made = []
    whole = _pairwise_kernel.compute_pair_kernel
    from sklearn_calib.metrics import _kernel

    monkeypatch.setattr(
        _kernel, "compute_pair_kernel", lambda *a: made.append(1) or whole(*a)
    )
    name = "kernel_calibration_error"
    options = {"statistic": name, "multiclass": "canonical", "bandwidth": "median"}
    found = calibration_test(Y, P, n_resamples=199, **options)
    assert found.statistic == pytest.approx(0.0012329383, abs=1e-10)
    assert found.pvalue == pytest.approx(
        np.mean(found.null_distribution >= found.statistic), abs=0.01
    )
    assert len(made) == 2  # of the rows, and of all draws
    proba, y = make_overconfident(3, 300)
    assert calibration_test(y, proba, n_resamples=99, **options).pvalue == 0.01
    linear = calibration_test(Y, P, n_resamples=99, estimator="linear", **options)
    assert linear.statistic == pytest.approx(-0.1236639213, abs=1e-10)


def test_scorer():
    options = {"multiclass": "canonical", "bandwidth": "median"}
    assert get_scorer("neg_kernel_calibration_error", **options)._kwargs == options


@run_every_case(
    ("call", "message"),
    [
        (
            lambda: skce(bandwidth="mean"),
            "a finite bandwidth above 0 or 'median', got 'mean'",
        ),
        (
            lambda: skce(bandwidth=True),
            "a finite bandwidth above 0 or 'median', got True",
        ),
        (
            lambda: skce(estimator="u"),
            "estimator among auto, biased, unbiased, linear, got 'u'",
        ),
        (lambda: skce([1], P[:1]), "at least two rows, got 1"),
        (
            lambda: skce(np.tile(Y, 84), np.tile(P, (84, 1))),
            "at most 5000 rows .*, got 5040. Pass a random",
        ),
        (
            lambda: kernel_calibration_error(Y, P, estimator="unbiased"),
            "estimator 'auto' or 'biased' .*, got 'unbiased'. Pass multiclass='can",
        ),
        (
            lambda: kernel_calibration_error(Y, P, bandwidth="median"),
            "a finite bandwidth above 0, got 'median'",
        ),
    ],
)
def test_refused(call, message):
    with raises_invalid_input(ValueError, **parse_error_fields(message)):
        call()


def test_linear_of_many_rows():
    y, proba = np.tile(Y, 100), np.tile(P, (100, 1))
    assert skce(y, proba, "linear") == pytest.approx(
        skce(estimator="linear"), abs=1e-12
    )


@pytest.mark.parametrize(
    "options", [{"multiclass": "canonical"}, {"estimator": "linear"}]
)
def test_a_summary_has_no_rows(options):
    summary = CalibrationSummary().update((Y == 0).astype(int), P[:, 0])
    with raises_invalid_input(
        ValueError, expected="options that read weights of scores"
    ):
        summary.measure("kernel_calibration_error", **options)


def test_equal_vectors_are_added_up():
    """The biased form reads the residual of each vector: more than 5000 rows of few are allowed."""
    rng = np.random.default_rng(0)
    p, y = (
        np.repeat(rng.dirichlet(np.ones(3), 20), 300, axis=0),
        rng.integers(0, 3, 6000),
    )
    given = {"multiclass": "canonical", "estimator": "biased", "bandwidth": 0.3}
    residual = np.eye(3)[y] - p
    vectors, sums = p[::300], residual.reshape(20, 300, 3).sum(axis=1)
    gram = np.exp(-np.abs(vectors[:, None] - vectors).sum(axis=2) / 2 / 0.3)
    expected = np.einsum("ij,ia,ja", gram, sums, sums) / 6000**2
    assert kernel_calibration_error(y, p, **given) == pytest.approx(expected, rel=1e-11)
    one = p[:, 1], (y == 1).astype(int)
    plain, named = (
        kernel_calibration_error(one[1], one[0], estimator=e)
        for e in ("auto", "biased")
    )
    assert plain == named
