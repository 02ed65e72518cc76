import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from golden_sets import golden_set
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from sklearn_calib import canonical_proba, log_proba
from sklearn_calib._kernels._temperature import fit_temperature
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import TemperatureScaling


def slope(beta, log, codes, weight):
    """L'(beta), the optimality condition."""
    d = log - log.max(axis=1, keepdims=True)
    mean = (softmax(beta * d, axis=1) * d).sum(axis=1)
    return weight @ (mean - d[np.arange(len(d)), codes]) / weight.sum()


@pytest.mark.parametrize(
    "name", ["ts_binary_constant_margin", "ts_multiclass_symmetric"]
)
def test_closed_forms(oracle, name):
    case = oracle("temperature.json")[name]
    logits = np.array(case["logits"], float)
    fit = fit_temperature(logits, np.array(case["y"]), np.ones(len(logits)))
    assert fit.beta == pytest.approx(case["beta"], rel=1e-9)
    assert fit.loss == pytest.approx(case["loss"], rel=1e-12)
    assert fit.status == "inside"


@pytest.mark.parametrize(
    "name", ["ts_random_binary", "ts_random_3class", "ts_random_3class_weighted"]
)
def test_oracles(oracle, name):
    case = oracle("temperature.json")[name]
    logits, y, weight = np.array(case["logits"]), np.array(case["y"]), case["weights"]
    scores = canonical_proba(logits, kind="logits")
    ts = TemperatureScaling(laplace=True).fit(scores, y, sample_weight=weight)
    assert ts.inverse_temperature_ == pytest.approx(case["beta"], rel=1e-8)
    assert ts.loss_ == pytest.approx(case["ts_refinement_log"], rel=1e-11)
    true = ts.predict_proba(scores)[np.arange(len(y)), y]
    smoothed = np.average(-np.log(true), weights=weight)
    assert smoothed == pytest.approx(case["ts_refinement_log_smoothed"], rel=1e-8)


@pytest.mark.parametrize(
    "name", ["ts_zero_probs_clip_tiny32", "ts_zero_prob_on_true_label"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_zeros_as_the_smallest_float(oracle, name, dtype):
    """The oracle counts zeros as 1.18e-38; asked for by passing logarithms, not the default."""
    case = oracle("temperature.json")[name]
    log = log_proba(canonical_proba(np.array(case["probs"], dtype)))
    ts = TemperatureScaling().fit(canonical_proba(log, kind="logits"), case["y"])
    assert ts.inverse_temperature_ == pytest.approx(case["beta"], rel=1e-6)
    assert ts.loss_ == pytest.approx(case["loss"], rel=1e-7)


def test_separable(oracle):
    case = oracle("temperature.json")["ts_separable"]
    scores = canonical_proba(case["logits"], kind="logits")
    with pytest.warns(CalibrationWarning, match=r"all correct.*laplace=True"):
        ts = TemperatureScaling(laplace=True).fit(scores, case["y"])
    assert ts.loss_ == pytest.approx(0, abs=1e-12)
    assert ts.inverse_temperature_ == pytest.approx(np.exp(16))
    loss = -np.log(ts.predict_proba(scores)[np.arange(5), case["y"]]).mean()
    assert loss == pytest.approx(case["loss_smoothed"], rel=1e-9)


def test_separable_without_laplace_is_safe(oracle):
    """Smoothed labels: a finite temperature that is optimal for them."""
    case = oracle("temperature.json")["ts_separable"]
    z, y = log_softmax(np.array(case["logits"], float), axis=1), np.array(case["y"])
    with pytest.warns(CalibrationWarning, match=r"labels smoothed by 1 / \(N \+ 1\)"):
        ts = TemperatureScaling().fit(canonical_proba(z, kind="logits"), y)
    beta, eps = ts.inverse_temperature_, 1 / 6
    target = (1 - eps) * np.eye(3)[y] + eps / 3
    gradient = np.mean(((softmax(beta * z, axis=1) - target) * z).sum(axis=1))
    assert abs(gradient) < 1e-8 and 0.1 < beta < 100


def test_separable_with_ties(oracle):
    case = oracle("temperature.json")["ts_separable_with_ties"]
    fit = fit_temperature(
        np.array(case["logits"], float), np.array(case["y"]), np.ones(2)
    )
    assert fit.status == "separable"
    assert fit.loss == pytest.approx(case["loss_limit"], rel=1e-9)


def test_scores_at_odds_with_the_labels(oracle):
    case = oracle("temperature.json")["ts_anticorrelated"]
    scores = canonical_proba(case["logits"], kind="logits")
    with (
        pytest.warns(CalibrationWarning, match="at least two different rows of scores"),
        pytest.warns(CalibrationWarning, match="no better than a uniform guess"),
    ):
        ts = TemperatureScaling().fit(scores, case["y"])
    assert 0 < ts.inverse_temperature_ < 1e-6
    assert ts.loss_ == pytest.approx(case["loss_limit"], rel=1e-6)
    assert np.allclose(ts.predict_proba(scores), 0.5, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3, 10, 100])
@pytest.mark.parametrize("temperature", [0.05, 0.5, 1, 5, 1000])
@pytest.mark.parametrize("kind", ["normal", "cauchy", "weighted"])
def test_certificate(k, temperature, kind):
    rng = np.random.default_rng([k, int(100 * temperature)])
    n = 400
    logits = (
        rng.standard_cauchy((n, k)) if kind == "cauchy" else 2 * rng.normal(size=(n, k))
    )
    y = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    weight = rng.exponential(size=n) if kind == "weighted" else np.ones(n)
    z = log_softmax(logits * temperature, axis=1)
    fit = fit_temperature(z, y, weight)
    assert fit.status == "inside" and fit.n_passes <= 25
    scale = abs(slope(0.0, z, y, weight))  # L'(0), the natural unit of the slope
    assert abs(slope(fit.beta, z, y, weight)) <= 1e-7 * scale
    bz = fit.beta * z
    loss = weight @ (logsumexp(bz, axis=1) - bz[np.arange(n), y]) / weight.sum()
    assert fit.loss == pytest.approx(loss, rel=1e-9)


@run_every_case("factor", [1e-12, 1e-4, 30, 1e5, 1e12, 1e100])
def test_logits_of_any_size(factor):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(300, 4))
    y = (logits + rng.gumbel(size=(300, 4))).argmax(axis=1)
    reference = TemperatureScaling().fit(canonical_proba(logits, kind="logits"), y)
    scores = canonical_proba(logits * factor, kind="logits")
    ts = TemperatureScaling().fit(scores, y)
    assert ts.inverse_temperature_ * factor == pytest.approx(
        reference.inverse_temperature_, rel=1e-3 if factor < 1e-8 else 1e-7
    )
    assert np.allclose(ts.predict_proba(scores).sum(axis=1), 1)


def test_loss_is_below_that_of_a_general_solver():
    rng = np.random.default_rng(1)
    z = log_softmax(3 * rng.normal(size=(500, 5)), axis=1)
    y = rng.integers(0, 5, 500)
    y[:300] = z[:300].argmax(axis=1)
    fit = fit_temperature(z, y, np.ones(500))

    def loss(beta):
        return np.mean(logsumexp(beta * z, axis=1) - beta * z[np.arange(500), y])

    found = minimize_scalar(
        loss, bounds=(0, 5), method="bounded", options={"xatol": 1e-10}
    )
    assert loss(fit.beta) <= found.fun + 1e-13


def test_warm_start():
    proba, y = make_overconfident(5, 300)
    cold = TemperatureScaling().fit(proba, y)
    warm = TemperatureScaling(warm_start=True).fit(proba, y)
    assert warm.temperature_ == cold.temperature_
    assert warm.fit(proba, y).n_iter_ < cold.n_iter_
    assert warm.temperature_ == pytest.approx(cold.temperature_, rel=1e-7)


def test_argmax_never_changes_and_coding_does_not_matter():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), size=200)
    y = rng.integers(0, 3, 200)
    y[:90] = proba[:90].argmax(axis=1)
    ts = TemperatureScaling().fit(proba, y)
    assert np.array_equal(ts.predict(proba), proba.argmax(axis=1))
    named = TemperatureScaling().fit(proba, np.array(["x", "y", "z"])[y])
    assert named.temperature_ == ts.temperature_


@pytest.mark.parametrize("k", [2, 3, 7])
def test_uniform_scores(k):
    """All scores equal: the result is uniform, whatever beta, and nothing overflows."""
    y = np.arange(40) % k
    fit = fit_temperature(np.full((40, k), -np.log(k)), y, np.ones(40))
    assert fit.loss == pytest.approx(np.log(k)) and np.isfinite(fit.beta)


def test_expectation_consistency_equals_its_golden_value():
    """200 rows without random numbers: confidence = accuracy, and maximum likelihood beside it."""
    y, p = golden_set()
    found = TemperatureScaling(criterion="expectation_consistency").fit(p, y)
    assert found.inverse_temperature_ == pytest.approx(0.7434582322, abs=1e-9)
    assert np.mean((p > 0.5) == y) == 0.735
    assert TemperatureScaling().fit(p, y).inverse_temperature_ == pytest.approx(
        0.740001332
    )
    assert found.loss_ == pytest.approx(
        -np.log(found.predict_proba(p)[np.arange(200), y]).mean()
    )


def test_expectation_consistency_with_weights_and_several_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.5), 300)
    y = rng.integers(0, 4, 300)
    y[:200] = p[:200].argmax(axis=1)
    w = rng.integers(1, 4, 300)
    found = TemperatureScaling(criterion="expectation_consistency").fit(
        p, y, sample_weight=w
    )
    right = p.argmax(axis=1) == y
    assert np.average(found.predict_proba(p).max(axis=1), weights=w) == pytest.approx(
        np.average(right, weights=w), abs=1e-9
    )
    again = TemperatureScaling(criterion="expectation_consistency")
    again.fit(np.repeat(p, w, axis=0), np.repeat(y, w))
    assert again.inverse_temperature_ == pytest.approx(
        found.inverse_temperature_, rel=1e-9
    )


def test_expectation_consistency_at_the_bounds():
    p = [[0.7, 0.3], [0.4, 0.6], [0.8, 0.2], [0.1, 0.9]]
    method = TemperatureScaling(criterion="expectation_consistency")
    with pytest.warns(UserWarning, match="no better than a uniform guess"):
        assert method.fit(p, [1, 0, 1, 1]).predict_proba(p) == pytest.approx(
            0.5, abs=1e-5
        )
    with pytest.warns(UserWarning, match="a calibration set that is all correct"):
        found = method.fit(p, [0, 1, 0, 1]).predict_proba(p).max(axis=1).mean()
    assert found == pytest.approx(1 - 0.5 / 5)  # an accuracy smoothed by 1 / (N + 1)
    with raises_invalid_input(ValueError, expected="criterion='log_loss' for blocks"):
        method.fit_blocks([(p, [0, 1, 0, 1])])
