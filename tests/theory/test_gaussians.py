import numpy as np
import pytest
from cases import run_every_case
from scipy.special import expit, ndtr
from sklearn.linear_model import LogisticRegression

from sklearn_calib.datasets import make_two_gaussians
from sklearn_calib.decomposition import refinement_error
from sklearn_calib.metrics import brier_loss, log_loss
from sklearn_calib.recalibrators import TemperatureScaling
from sklearn_calib.theory import GaussianLogisticModel


def test_closed_forms_against_the_oracle(oracle):
    for row in oracle("gaussian_theory.json")["gaussian_model"]:
        parts = GaussianLogisticModel.compute_weight_loss(
            row["inner"], row["norm"], row["loss"]
        )
        halves = 2 if row["loss"] == "brier" else 1  # the oracle sums over both classes
        assert halves * parts.calibration == pytest.approx(row["K"], abs=1e-14)
        assert halves * parts.refinement == pytest.approx(row["R"], abs=1e-14)
        assert parts.error_rate == pytest.approx(row["err"], abs=1e-14)


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(6, 6))
    covariance = factor @ factor.T / 6 + 0.3 * np.eye(6)
    mean = rng.normal(size=6) * 0.4
    X, y, proba = make_two_gaussians(200_000, mean, covariance, random_state=0)
    return X, y, proba, mean, covariance


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_proposition_6_1_by_simulation(drawn, seed):
    X, y, _, mean, covariance = drawn
    best = 2 * np.linalg.solve(covariance, mean)
    w = best + np.random.default_rng(seed).normal(size=6) * 1.5
    inner, norm = 2 * w @ mean, np.sqrt(w @ covariance @ w)
    p = expit(X @ w)
    for name, measure in (("log", log_loss), ("brier", brier_loss)):
        parts = GaussianLogisticModel.compute_weight_loss(inner, norm, name)
        assert measure(y, p) == pytest.approx(parts.risk, rel=0.02)
    parts = GaussianLogisticModel.compute_weight_loss(inner, norm)
    assert ((p > 0.5) != y).mean() == pytest.approx(parts.error_rate, abs=0.005)
    assert refinement_error(y, p) == pytest.approx(parts.refinement, rel=0.015)
    # proposition 6.2: temperature scaling finds the factor inner / norm^2
    beta = 1 / TemperatureScaling().fit(np.column_stack([1 - p, p]), y).temperature_
    assert beta == pytest.approx(inner / norm**2, rel=0.03)


def test_a_loss_that_treats_the_classes_differently(drawn):
    """Corrected: the calibrated logit is a mixture; a single normal would give another value."""

    def loss(p, q):  # proper, with entropy q (1 - q)^2: E[C=1](p) q + E[C=0](p) (1 - q)
        slope = (1 - p) * (1 - 3 * p)
        return p * (1 - p) ** 2 + (q - p) * slope

    X, y, _, mean, covariance = drawn
    w = 2 * np.linalg.solve(covariance, mean)
    p = expit(X @ w)
    inner, norm = 2 * w @ mean, np.sqrt(w @ covariance @ w)
    parts = GaussianLogisticModel.compute_weight_loss(inner, norm, loss)
    assert parts.calibration == pytest.approx(0, abs=1e-14)
    assert loss(p, y).mean() == pytest.approx(parts.refinement, abs=4 / np.sqrt(len(y)))
    a = inner / norm
    z = a**2 / 2 + a * np.random.default_rng(0).normal(size=10**6)
    one_sided = (expit(z) * expit(-z) ** 2).mean()
    assert abs(one_sided - parts.refinement) > 0.01


def test_two_gaussians_know_their_probabilities(drawn):
    _, y, proba, *_ = drawn
    assert set(y) == {0, 1}
    for low in np.arange(0, 1, 0.1):
        rows = (proba >= low) & (proba < low + 0.1)
        error = np.sqrt((proba[rows] * (1 - proba[rows])).sum()) / rows.sum()
        assert y[rows].mean() == pytest.approx(proba[rows].mean(), abs=4.5 * error)
    assert make_two_gaussians(10)[0].shape == (10, 20)
    again = make_two_gaussians(50, [1.0, 0.0], [2.0, 1.0], random_state=1)
    dense = make_two_gaussians(50, [1.0, 0.0], np.diag([2.0, 1.0]), random_state=1)
    for one, other in zip(again, dense, strict=True):
        np.testing.assert_allclose(one, other)


def test_limit_against_the_oracle(oracle):
    expected = oracle("gaussian_theory.json")["mai_uniform_r.5_e.1_eps1e-3"]
    model = GaussianLogisticModel(ratio=0.5, error_rate=0.1)
    assert model.scale_ == pytest.approx(expected["c"], abs=1e-13)
    for row in expected["rows"]:
        limit = model.limit(row["lam"])
        assert limit.inner[0] == pytest.approx(row["inner_2m"], abs=1e-11)
        assert limit.norm[0] == pytest.approx(row["norm"], abs=1e-11)


@pytest.mark.slow
def test_proposition_7_1_by_simulation():
    model = GaussianLogisticModel(ratio=0.5, error_rate=0.1, smallest=0.05)
    n = 500
    for strength in (0.1, 0.01):
        limit = model.limit(strength)
        found = []
        for seed in range(8):
            X, y, _, mean, eigenvalues = model.sample(n, random_state=seed)
            learner = LogisticRegression(
                C=1 / (n * strength), fit_intercept=False, tol=1e-6
            )
            w = learner.set_params(max_iter=2000).fit(X, y).coef_[0]
            found.append((2 * w @ mean, np.sqrt(w**2 @ eigenvalues)))
        mean, error = (
            np.mean(found, axis=0),
            np.std(found, axis=0) / np.sqrt(len(found)),
        )
        assert abs(mean[0] - limit.inner[0]) < 4 * error[0]
        assert abs(mean[1] - limit.norm[0]) < 4 * error[1]


def test_proposition_7_3_by_simulation():
    model = GaussianLogisticModel(
        ratio=4, error_rate=0.2, spectrum=(2, 2), smallest=0.1
    )
    rates = []
    for seed in range(10):
        *_, mean, eigenvalues = model.sample(400, random_state=seed)
        rates.append(ndtr(-np.sqrt(mean**2 @ (1 / eigenvalues))))
    assert np.mean(rates) == pytest.approx(0.2, abs=4 * np.std(rates) / np.sqrt(10))


@pytest.mark.slow
def test_figure_7():
    """The two parts are smallest at different strengths: that is worth 2 % of log loss."""
    strength = np.logspace(-3, 0, 301)
    limit = GaussianLogisticModel(ratio=0.5, error_rate=0.1).limit(strength)
    by_risk, by_refinement = limit.risk.argmin(), limit.refinement.argmin()
    assert np.log10(strength[by_risk]) == pytest.approx(-1.27, abs=0.01)
    assert np.log10(strength[by_refinement]) == pytest.approx(-2.36, abs=0.01)
    assert np.log10(strength[limit.calibration.argmin()]) == pytest.approx(
        -1.15, abs=0.01
    )
    assert limit.risk[by_risk] == pytest.approx(0.57205, abs=1e-5)
    assert limit.refinement[by_refinement] == pytest.approx(0.55932, abs=1e-5)
    gain = 1 - limit.refinement[by_refinement] / limit.risk[by_risk]
    assert gain == pytest.approx(0.0223, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("spectrum", [(5, 1), (1, 5), (0.5, 0.5), [0.2, 1.0, 3.0]])
def test_every_corner_is_solved(spectrum):
    strengths = np.logspace(2, -5, 30)
    for ratio in (0.01, 0.8, 2.0):
        limit = GaussianLogisticModel(ratio, 0.001, spectrum).limit(strengths)
        assert np.isfinite(limit.risk).all()
        assert (limit.calibration > -1e-12).all()
        assert (np.diff(limit.norm) > 0).all()
        one = GaussianLogisticModel(ratio, 0.001, spectrum).limit(strengths[-1])
        # from another start
        assert one.norm[0] == pytest.approx(limit.norm[-1], rel=1e-9)


@run_every_case(
    "call, message",
    [
        (
            lambda: make_two_gaussians(5, [1, 2], [1.0]),
            r"expected a mean of shape \(p,\)",
        ),
        (
            lambda: make_two_gaussians(5, [1, 2], [1.0, -1]),
            "positive definite covariance, got",
        ),
        (
            lambda: GaussianLogisticModel.compute_weight_loss(1.0, 0.0),
            "a norm above 0, got",
        ),
        (
            lambda: GaussianLogisticModel.compute_weight_loss(1.0, 1.0, "hinge"),
            "expected a loss among brier, log, spherical",
        ),
        (lambda: GaussianLogisticModel(error_rate=0.6), "0 < error_rate < 0.5"),
        (
            lambda: GaussianLogisticModel(spectrum=(0, 1)),
            "expected a spectrum of positive",
        ),
        (
            lambda: GaussianLogisticModel().limit([1.0, 0.0]),
            "expected strengths above 0",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_limit_is_of_the_loss_that_is_asked_for():
    model = GaussianLogisticModel(0.5, 0.2)
    found = model.limit([0.5], "brier")
    expected = model.compute_weight_loss(found.inner[0], found.norm[0], "brier")
    assert found.risk[0] == expected.risk
    assert abs(found.risk[0] - model.limit([0.5]).risk[0]) > 0.01


@pytest.mark.parametrize("inner", [1e50, -1e50])
@pytest.mark.parametrize("norm", [1e50, 1e-50])
def test_parameters_at_the_documented_bounds(inner, norm):
    """Scores are nearly all on one side of 0, as the mean is at 1e50 or more deviations."""
    parts = GaussianLogisticModel.compute_weight_loss(inner, norm, "brier")
    if norm < 1:
        assert parts.error_rate == float(inner < 0)
    for wrong in ((2 * inner, norm), (inner, norm**1.01)):
        with pytest.raises(ValueError, match="within 1e\\+50 a finite inner"):
            GaussianLogisticModel.compute_weight_loss(*wrong, "brier")
