"""The formulas of the laws of the terms, against their definitions."""

import numpy as np
import pytest
from scipy import stats

from sklearn_calib import canonical_proba
from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.decomposition._intervals import (
    SamplingErrorDistribution,
    _compute_row_losses_and_beta_derivatives,
    _compute_variance_and_skewness,
    _invert_hall,
    _solve_upper_interval_end,
    compute_uncertainty_sampling_error,
    estimate_mean_sampling_error,
)
from sklearn_calib.metrics import BetaFamilyLoss, get_loss, validate_predictions

ALL = ["log", "brier", "spherical", BetaFamilyLoss(0.5, 2.5)]


def hall(t, g):
    """Hall (1992), removing the skewness of a Student ratio by a cubic polynomial."""
    return t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6


@pytest.mark.parametrize("g", [-1.5, -0.3, 1e-6, 0.2, 2.0])
def test_inverse_of_halls_transformation(g):
    for x in (-2.5, -0.4, 0.0, 1.0, 1.96):
        assert hall(_invert_hall(x, g), g) == pytest.approx(
            x, abs=1e-6 if abs(g) < 1e-5 else 1e-12
        )
        assert _invert_hall(x, 0.0) == x


def test_moments_of_equal_weights():
    rows = np.random.default_rng(0).exponential(size=50)
    w = np.full(50, 1 / 50)
    variance, skewness = _compute_variance_and_skewness(rows, w, w**2)
    assert variance == pytest.approx(rows.var(ddof=1) / 50, rel=1e-12)
    assert skewness == pytest.approx(stats.skew(rows) / np.sqrt(50), rel=1e-12)


def test_moments_of_weights_and_of_few_rows():
    rows, w = np.array([1.0, 2.0, 5.0]), np.array([0.5, 0.3, 0.2])
    part = w * (rows - w @ rows)
    variance, skewness = _compute_variance_and_skewness(rows, w, w**2)
    assert variance == pytest.approx((part**2).sum() / (1 - 0.38))
    assert skewness == pytest.approx((part**3).sum() / (part**2).sum() ** 1.5)
    assert _compute_variance_and_skewness(np.array([3.0]), np.ones(1), np.ones(1)) == (
        np.inf,
        0.0,
    )
    assert _compute_variance_and_skewness(
        np.full(4, 3.0), np.full(4, 0.25), np.full(4, 1 / 16)
    ) == (
        0.0,
        0.0,
    )


def test_law_of_a_mean():
    rows = np.random.default_rng(1).normal(2, 1, 40)
    w = np.full(40, 1 / 40)
    law = estimate_mean_sampling_error(rows, w, w**2)
    assert law.estimate == pytest.approx(rows.mean())
    assert law.standard_error == pytest.approx(rows.std(ddof=1) / np.sqrt(40))
    assert (law.bias, law.origin_variance, law.lowest, law.highest) == (
        0.0,
        0.0,
        -np.inf,
        np.inf,
    )


def test_interval_of_a_regular_term():
    low, high = SamplingErrorDistribution(2.0, 0.25, bias=0.1).compute_interval(0.95)
    assert (low, high) == pytest.approx((1.9 - 1.96 * 0.5, 1.9 + 1.96 * 0.5), abs=1e-4)
    bounded = SamplingErrorDistribution(0.1, 0.25, lowest=0.0, highest=0.5)
    assert bounded.compute_interval(0.95) == (0.0, 0.5)
    skewed = SamplingErrorDistribution(2.0, 0.25, skewness=0.5)
    low, high = skewed.compute_interval(0.95)
    assert high - 2 > 2 - low, "the longer side is the one of the longer tail"
    assert hall((2.0 - low) / 0.5, 0.5) == pytest.approx(1.96, abs=1e-4)
    assert hall((2.0 - high) / 0.5, 0.5) == pytest.approx(-1.96, abs=1e-4)


def test_only_a_regular_term_has_a_standard_error():
    assert SamplingErrorDistribution(1.0, 0.04).standard_error == pytest.approx(0.2)
    degenerate = SamplingErrorDistribution(1.0, 0.04, origin_variance=1e-9)
    assert degenerate.standard_error is None


def test_interval_at_the_degenerate_point():
    """There the second order is all there is, around the origin and on both sides alike."""
    law = SamplingErrorDistribution(
        1.0, variance=0.0, origin_variance=1e-4, variance_slope=1e-3, origin=1.0
    )
    low, high = law.compute_interval(0.95)
    assert high - 1 == pytest.approx(1 - low)
    assert (high - 1) ** 2 == pytest.approx(
        1.959964**2 * (1e-4 + 1e-3 * (high - 1)), rel=1e-5
    )
    far = SamplingErrorDistribution(
        3.0, variance=0.01, origin_variance=1e-4, variance_slope=1.0, origin=1.0
    ).compute_interval(0.95)
    assert far == pytest.approx((3 - 0.196, 3 + 0.196), rel=0.02), (
        "far from it, the variance"
    )


@pytest.mark.parametrize("x", [-1.0, -0.05, 0.0, 0.05, 1.0])
@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_the_farthest_value(x, slope):
    z2, curved = 2.0, 0.02
    q = _solve_upper_interval_end(x, z2, curved, slope)
    assert (x - q) ** 2 == pytest.approx(z2 * (curved + slope * abs(q)), abs=1e-12)
    further = q + 1e-6
    assert (x - further) ** 2 > z2 * (curved + slope * abs(further))


@pytest.mark.parametrize(
    ("k", "loss"), [*((2, loss) for loss in ALL), *((4, loss) for loss in ALL[:3])]
)
def test_law_of_the_uncertainty(k, loss):
    """Mean and spread of the loss of the frequencies where all labels cost the same, simulated."""
    n, rng, loss = 300, np.random.default_rng(0), get_loss(loss)
    even = loss.get_undecided_prediction(k)
    q = np.clip(rng.multinomial(n, even, size=20_000) / n, 1e-12, 1)
    values, top = loss.expected(q, q), loss.expected(even[None], even[None])[0]
    codes = np.arange(n) % k
    w = even[codes] * k / n
    rows = loss.compute_label_losses(even[None])[0][codes]
    law = compute_uncertainty_sampling_error(rows, even, w, np.full(n, n**-2.0), loss)
    assert law.estimate == pytest.approx(top) and law.origin == pytest.approx(top)
    assert (law.lowest, law.highest) == (loss.range[0], law.origin)
    assert law.bias == pytest.approx(values.mean() - top, rel=0.03)
    assert law.origin_variance == pytest.approx(values.var(), rel=0.08)


@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("k", [2, 4])
def test_law_of_the_uncertainty_in_closed_form(k, loss):
    n, factor = 300, 0.5 if loss == "log" else 0.25 if k == 2 else 1 / k
    top = np.log(k) if loss == "log" else factor * (k - 1)
    rows, w = np.full(n, top), np.full(n, 1 / n)
    law = compute_uncertainty_sampling_error(
        rows, np.full(k, 1 / k), w, w**2, get_loss(loss)
    )
    found = law.origin, law.bias, law.origin_variance, law.variance_slope
    expected = (
        top,
        -factor * (k - 1) / n,
        2 * factor**2 * (k - 1) / n**2,
        4 * factor / n,
    )
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", ALL)
def test_slope_of_the_variance_of_the_uncertainty(loss):
    """Near the degenerate point the variance of first order is the slope times the distance."""
    n, loss = 1000, get_loss(loss)
    share = loss.get_undecided_prediction(2)[1] + 0.02
    frequencies, codes = np.array([1 - share, share]), np.arange(n) % 2
    w = frequencies[codes] * 2 / n
    rows = loss.compute_label_losses(frequencies[None])[0][codes]
    law = compute_uncertainty_sampling_error(rows, frequencies, w, w / n, loss)
    assert law.variance == pytest.approx(
        law.variance_slope * (law.origin - law.estimate), rel=0.06
    )


@pytest.mark.parametrize(
    ("k", "loss"), [*((2, loss) for loss in ALL), *((3, loss) for loss in ALL[:3])]
)
def test_derivatives(k, loss):
    """Against differences in beta, and sums over the labels that may be drawn."""
    rng = np.random.default_rng(0)
    log = np.log(rng.dirichlet(np.ones(k), 6))
    beta, step = 0.7, 1e-5

    def losses(b, codes, kind):
        p = np.exp(b * log - np.log(np.exp(b * log).sum(axis=1, keepdims=True)))
        return get_loss(kind).compute_row_losses(p, codes)

    def slope(codes, kind):
        return (losses(beta + step, codes, kind) - losses(beta - step, codes, kind)) / (
            2 * step
        )

    p = np.exp(beta * log) / np.exp(beta * log).sum(axis=1, keepdims=True)
    every = [np.full(6, c) for c in range(k)]
    scores = np.array([slope(codes, "log") for codes in every]).T
    slopes = np.array([slope(codes, loss) for codes in every]).T
    for codes in every:
        case = validate_predictions(
            codes, canonical_proba(log, kind="logits"), None, range(k)
        )
        found = _compute_row_losses_and_beta_derivatives(case, beta, get_loss(loss))
        expected = (
            losses(beta, codes, loss),
            slope(codes, "log"),
            slope(codes, loss),
            (p * scores**2).sum(axis=1),
            (p * scores * slopes).sum(axis=1),
            (p * slopes**2).sum(axis=1) - (p * slopes).sum(axis=1) ** 2,
        )
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-8)


LOSSES = [ALL[0], *(pytest.param(loss, marks=pytest.mark.slow) for loss in ALL[1:])]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_second_order_of_the_calibration_term(loss):
    """Mean and spread of the term on calibrated rows, by simulation."""
    values, laws = [], []
    for seed in range(400):
        rng = np.random.default_rng([seed, 3])
        z = 1.5 * rng.normal(size=300)
        p = 1 / (1 + np.exp(-z))
        y = (rng.random(300) < p).astype(int)
        parts = decompose_loss(y, p, loss=loss, labels=[0, 1])
        values.append(parts.calibration)
        laws.append(parts._sampling_errors["calibration"])
    # a fit that minimises the log loss may raise the Brier loss
    assert laws[0].lowest == (0.0 if loss == "log" else -np.inf)
    assert np.mean([law.bias for law in laws]) == pytest.approx(
        np.mean(values), rel=0.25
    )
    assert np.mean([law.origin_variance for law in laws]) == pytest.approx(
        np.var(values), rel=0.35
    )


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_first_order_far_from_calibration(loss):
    """Every law has its term's value, and the variance that the term has over 300 draws."""
    terms = ("risk", "calibration", "refinement", "sharpness")
    values, laws = [], []
    for seed in range(300):
        rng = np.random.default_rng([seed, 4])
        z = 1.5 * rng.normal(size=300)
        y = (rng.random(300) < 1 / (1 + np.exp(-z))).astype(int)
        scores = canonical_proba(np.column_stack([-z, z]) * 1.5, kind="logits")
        parts = decompose_loss(y, scores, loss=loss, labels=[0, 1])
        values.append([getattr(parts, term) for term in terms])
        laws.append([parts._sampling_errors[term] for term in terms])
    for i, term in enumerate(terms):
        estimates = np.array([row[i].estimate for row in laws])
        np.testing.assert_allclose(estimates, np.array(values)[:, i], atol=1e-13)
        variance = np.mean([row[i].variance for row in laws])
        assert variance == pytest.approx(np.var(estimates), rel=0.25), term
