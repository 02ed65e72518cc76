"""The default: joint start, gate, structured scaling; scores of any scale and number of classes."""

from unittest import mock

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_expit, logsumexp, softmax

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._logistic import (
    fit_slope_and_opposite_offsets,
    fit_two_class_vector_scaling,
)
from sklearn_calib._kernels._softmax_regression import (
    fit_softmax_regression,
    fit_temperature_and_offsets,
)
from sklearn_calib._simplex_array import convert_log_odds
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    DefaultCalibration,
    PlattScaling,
    SplineCalibration,
    TemperatureScaling,
    _default,
)


def rows(n, k, seed=0, spread=2.0):
    """Logits that are right, and labels drawn from them."""
    rng = np.random.default_rng([seed, n, k])
    eta = spread * rng.normal(size=(n, k))
    return eta, (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)


def log_loss(proba, y):
    return float(-np.log(proba[np.arange(len(y)), y]).mean())


def after(method, scores, y, n):
    """Test log loss of a fit to the first n rows."""
    scores = canonical_proba(scores, kind="logits")
    fitted = method.fit(scores[:n], y[:n], classes=range(scores.shape[1]))
    return log_loss(fitted.predict_proba(scores[n:]), y[n:])


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("far", [0, 8, 40])
def test_joint_start_is_the_optimum(k, far):
    """Of the targets (n y + m p) / (n + m), by another optimiser; also if no class overlaps."""
    eta, y = rows(200, k)
    z = 3 * eta + np.linspace(0, far, k)
    log, m = z - logsumexp(z, axis=1, keepdims=True), 2 * k
    weight = np.ones(200)
    if k == 2:
        found = fit_slope_and_opposite_offsets(log[:, 1] - log[:, 0], y, weight, m)
    else:
        found = fit_temperature_and_offsets(log, y, weight, m, 0.3)
    target = (200 * np.eye(k)[y] + m * np.exp(log)) / (200 + m)
    if k == 2:  # two rows at 1/4 and 3/4, of all scores on one side at their end
        x = log[:, 1] - log[:, 0]
        x = np.clip(0, x.min(), x.max()) + np.log(3) * np.array([-1, 1])
        invented = np.column_stack([log_expit(-x), log_expit(x)])
        log = np.r_[log, np.repeat(invented, 2, axis=0)]
        target = np.r_[np.eye(2)[y], np.repeat(np.exp(invented), 2, axis=0)]

    def loss(theta):
        u = theta[0] * log + theta[1:]
        return (logsumexp(u, axis=1) - (target * u).sum(axis=1)).mean()

    other = minimize(loss, np.r_[0.3, np.zeros(k)], method="BFGS")
    assert loss(np.r_[found.inverse_temperature, found.offsets]) <= other.fun + 1e-9
    assert abs(found.offsets.sum()) < 1e-9


def test_structured_pair_is_vector_scaling():
    rng = np.random.default_rng(0)
    log = np.log(rng.dirichlet([1, 1], 400)).T
    y = (rng.random(400) < 0.2 + 0.6 * np.exp(log[1]) ** 3).astype(int)
    pair = fit_two_class_vector_scaling(log, y, np.ones(400), 0.01)
    other = fit_softmax_regression(
        log, y, np.ones(400), np.full(2, 0.01), 0.01, tol=1e-15
    )
    np.testing.assert_allclose(pair.A, other.A, atol=1e-6)
    np.testing.assert_allclose(pair.b, other.b - other.b.mean(), atol=1e-6)
    # the best map is not monotone
    middle = (np.abs(np.exp(log[1]) - 0.5) < 0.3).astype(int)
    free = fit_softmax_regression(log, middle, np.ones(400), np.full(2, 1e-3), 1e-3)
    kept = fit_two_class_vector_scaling(log, middle, np.ones(400), 1e-3)
    assert (free.A < -1).any() and (kept.A >= -1).all()


@pytest.mark.parametrize("k", [2, 3, 10])
def test_offsets_only_where_rates_have_moved(k):
    eta, y = rows(4000, k)
    rates = np.linspace(0, 3, k)
    right, moved = (
        DefaultCalibration().fit(canonical_proba(2 * z, kind="logits"), y)
        for z in (eta, eta + rates)
    )
    gap = np.ptp(moved.maps_[0].offsets_)
    assert gap == pytest.approx(3, abs=0.5)
    assert (
        np.ptp(right.maps_[0].offsets_) < 0.2
        if k == 2
        else not right.maps_[0].offsets_.any()
    )
    assert right.maps_[0].inverse_temperature_ == pytest.approx(0.5, abs=0.06)


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.slow
@pytest.mark.parametrize("k, n", [(3, 100), (10, 100), (100, 200)])
def test_overfitted_networks_get_no_offsets(k, n):
    """Few rows, scores six times too sure: offsets of some nats would fit them, and be wrong."""
    eta, y = rows(n + 2000, k, spread=1.5)
    scores = 6 * eta
    fitted = DefaultCalibration().fit(
        canonical_proba(scores[:n], kind="logits"), y[:n], classes=range(k)
    )
    assert not fitted.maps_[0].offsets_.any()
    temperature = after(TemperatureScaling(laplace=True), scores, y, n)
    assert after(DefaultCalibration(), scores, y, n) < 1.06 * temperature


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("n", [100, 2000])
def test_scores_squeezed_together(k, n):
    """All probabilities near 1 / k, as AdaBoost's and margins squeezed by hand."""
    eta, y = rows(n + 4000, k)
    truth = log_loss(softmax(eta[n:], axis=1), y[n:])
    methods = [DefaultCalibration()]
    if k == 2:
        methods += [PlattScaling(prior_weight=1.0), SplineCalibration()]
    for method in methods:
        assert after(method, 0.01 * eta, y, n) < truth * (1.2 if n == 100 else 1.015)


@pytest.mark.parametrize("k", [2, 4])
def test_rates_moved_by_eight_nats(k):
    eta, y = rows(3000, k)
    truth = log_loss(softmax(eta[1000:], axis=1), y[1000:])
    assert (
        after(DefaultCalibration(), 1.5 * eta + np.linspace(0, 8, k), y, 1000)
        < 1.02 * truth
    )


@pytest.mark.parametrize("k", [2, 3, 6])
def test_order_of_classes_and_weights_as_counts(k):
    eta, y = rows(300, k)
    scores = canonical_proba(3 * eta + np.linspace(0, 2, k), kind="logits")
    plain = DefaultCalibration().fit(scores, y).predict_proba(scores)
    order = np.random.default_rng(0).permutation(k)[::-1]
    turned = canonical_proba(np.asarray(scores._log)[:, order], kind="logits")
    other = DefaultCalibration().fit(turned, np.argsort(order)[y]).predict_proba(turned)
    np.testing.assert_allclose(other, plain[:, order], atol=1e-7)
    weight = np.random.default_rng(1).integers(0, 3, 300)
    many = DefaultCalibration().fit(
        scores[np.repeat(np.arange(300), weight)], np.repeat(y, weight)
    )
    once = DefaultCalibration().fit(scores, y, sample_weight=weight)
    np.testing.assert_allclose(
        many.predict_proba(scores), once.predict_proba(scores), atol=1e-7
    )


def test_two_classes_are_monotone_also_where_scores_fall():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    grid = np.linspace(0, 1, 201)
    for truth, sign in ((p**3, 1), (1 - p, -1), (4 * p * (1 - p) * 0.8 + 0.1 * p, 1)):
        y = (rng.random(2000) < truth).astype(int)
        steps = np.diff(DefaultCalibration().fit(p, y).predict_proba(grid)[:, 1])
        assert (sign * steps >= -1e-12).all()


def test_separable_rows_of_one_class_and_no_information():
    """Nothing is said of what is not a mistake; what is no better than a guess is."""
    eta, _ = rows(30, 3)
    scores = canonical_proba(eta, kind="logits")
    y = eta.argmax(axis=1)
    # warnings are errors
    proba = DefaultCalibration().fit(scores, y).predict_proba(scores)
    assert (proba > 0).all() and log_loss(proba, y) < 0.3
    with pytest.warns(CalibrationWarning, match="none of 1, 2"):
        alone = DefaultCalibration().fit(
            scores, np.zeros(30, dtype=int), classes=range(3)
        )
    moved = alone.predict_proba(scores).mean(axis=0) - np.asarray(scores).mean(axis=0)
    assert np.abs(moved).max() < 0.05
    falling = DefaultCalibration().fit(scores, (-eta).argmax(axis=1))
    assert falling.maps_[0].inverse_temperature_ < 0
    with pytest.warns(CalibrationWarning, match="no better than a uniform guess"):
        DefaultCalibration().fit(scores, np.random.default_rng(1).integers(0, 3, 30))


@pytest.mark.parametrize(
    ("k", "n", "most"), [(3, 10, 0.5), (3, 100, 0.8), (10, 40, 1.2)]
)
def test_rows_without_an_error_make_no_step_of_the_map(k, n, most):
    """Without the row of all classes new rows lose 0.71, 1.18 and 2.14."""
    eta, y = rows(max(20 * n, 3000), k, spread=3.0)
    right = eta.argmax(axis=1) == y
    scores, labels = (np.r_[a[right][:n], a[~right], a[right][n:]] for a in (eta, y))
    proba = canonical_proba(scores[:n], kind="logits")
    fitted = DefaultCalibration().fit(proba, labels[:n], classes=range(k))
    log = np.log(np.asarray(proba))
    true = (n * log[np.arange(n), labels[:n]].mean() + log.mean()) / (n + 1)

    def loss(beta):
        return logsumexp(beta * log, axis=1).mean() - beta * true

    best = minimize_scalar(
        loss, bounds=(0, 20), method="bounded", options={"xatol": 1e-9}
    ).x
    if not fitted.maps_[0].offsets_.any():
        assert fitted.maps_[0].inverse_temperature_ == pytest.approx(best, rel=1e-5)
    assert after(DefaultCalibration(), scores, labels, n) < most


def long_tails(n, k=2, seed=0):
    """Scores as of naive Bayes: right where they are small, and up to 100 times too sure."""
    eta, y = rows(n, k, seed)
    return np.sign(eta) * np.expm1(1.5 * np.abs(eta)), y


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [100, 1000])
def test_a_long_tail_does_not_tilt_the_map_of_all_others(k, n):
    eta, y = long_tails(6000, k)
    proba = canonical_proba(eta, kind="logits")
    first = _default._TwoStepScaling()
    first._fit_predict_scores(
        _default._compute_log_proba_or_log_odds(proba[:n]), y[:n], np.ones(n)
    )
    fitted = DefaultCalibration().fit(proba[:n], y[:n])
    alone = log_loss(first.map_(proba[1000:]), y[1000:])
    assert log_loss(fitted.predict_proba(proba[1000:]), y[1000:]) < 0.97 * alone
    scales = [one.scale for one in fitted.maps_ if hasattr(one, "scale")]
    assert "compressed" in scales or "rank" in scales


@pytest.mark.parametrize(("k", "n"), [(2, 30), (3, 30), (3, 300)])
def test_the_weights_are_those_of_bayes(k, n):
    """Each map pays its price; unchanged scores pay nothing."""
    eta, y = rows(n, k)
    proba, weight = canonical_proba(2 * eta, kind="logits"), 1 + np.arange(n) % 3
    with mock.patch.object(_default, "_MIN_MAP_WEIGHT", 0.0):
        fitted = DefaultCalibration().fit(proba, y, sample_weight=weight)
    prices = [4, 1, 5, 12, 0] if n == 300 else [4, 1, 5, 0]
    prices = [2, 4, 2.5, 4, 0] if k == 2 else prices
    given = np.array([one.map_(proba) for one in fitted.maps_])
    share = (np.log(given[:, np.arange(n), y]) * weight).sum(axis=1) - prices
    np.testing.assert_allclose(fitted.weights_, softmax(share), rtol=1e-9)
    mean = np.tensordot(fitted.weights_, given, axes=1)
    np.testing.assert_allclose(fitted.predict_proba(proba), mean, atol=1e-15)


def test_maps_without_weight_are_left_out():
    eta, y = rows(3000, 2)
    proba = canonical_proba(2 * eta + [0, 4], kind="logits")
    assert len(DefaultCalibration().fit(proba, y).maps_) < 4
    eta, y = rows(200, 50)
    proba = canonical_proba(eta, kind="logits")
    with mock.patch.object(_default, "_MIN_MAP_WEIGHT", 0.0):
        for k in (49, 50):
            given = softmax(np.asarray(proba)[:, :k], axis=1)
            found = DefaultCalibration().fit(
                given, np.minimum(y, k - 1), classes=range(k)
            )
            assert len(found.maps_) == (4 if k == 49 else 3)


@pytest.mark.parametrize(("k", "n", "spread"), [(2, 30, 4), (3, 100, 3)])
def test_right_scores_stay_nearly_as_they_are(k, n, spread):
    """Without unchanged scores among the maps the mean excess is 15 and 4.8 %."""
    ratios = []
    for seed in range(8):
        eta, y = rows(n + 4000, k, seed, spread)
        truth = log_loss(softmax(eta[n:], axis=1), y[n:])
        ratios.append(after(DefaultCalibration(), eta, y, n) / truth)
    assert np.mean(ratios) < (1.06 if k == 2 else 1.03)


def test_unchanged_scores_alone_are_no_certainty():
    """Exact zeros of unchanged scores are mixed with another map."""
    eta = np.array([[0.0, 800.0], [800.0, 0.0]] * 60)
    proba = canonical_proba(eta, kind="logits")
    fitted = DefaultCalibration().fit(proba, eta.argmax(axis=1))
    assert 0 < fitted.predict_proba(proba).min() < 1e-3


def test_ranks_bend_scores_of_any_spacing():
    """Scores that only order the rows: their log-odds have nothing in common with the truth."""
    rng = np.random.default_rng(5)
    truth = rng.normal(0, 2, 5000)
    y = (rng.random(5000) < 1 / (1 + np.exp(-truth))).astype(int)
    score = np.sign(truth) * np.abs(truth) ** 5
    given = canonical_proba(np.stack([np.zeros(5000), score], axis=1), kind="logits")
    fitted = DefaultCalibration().fit(given[:1000], y[:1000])
    assert "rank" in [one.scale for one in fitted.maps_ if hasattr(one, "scale")]
    best = log_loss(convert_log_odds(truth[1000:]), y[1000:])
    assert log_loss(fitted.predict_proba(given[1000:]), y[1000:]) < 1.02 * best


def test_maps_of_two_directions_are_not_mixed():
    """The mean of one that rises and one that falls may be no monotone map."""
    rng = np.random.default_rng(0)
    for n in range(4, 40):
        proba, y = canonical_proba(rng.normal(0, 6, n), kind="logits"), np.arange(n) % 2
        fitted = DefaultCalibration().fit(proba, y)
        slopes = [getattr(one, "inverse_temperature_", 1.0) for one in fitted.maps_]
        signs = {np.sign(slope) for slope in slopes}
        assert not {-1.0, 1.0} <= signs
        grid = canonical_proba(np.linspace(-20, 20, 400), kind="logits")
        steps = np.diff(fitted.predict_proba(grid)[:, 1])
        assert (steps >= -1e-12).all() or (steps <= 1e-12).all()
