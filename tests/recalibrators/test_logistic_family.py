"""Platt scaling and beta calibration: the score equations are the oracle."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._logistic import fit_logistic, logistic_loss
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import BetaCalibration, PlattScaling


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    p = expit(2 * rng.normal(size=400))
    y = (rng.random(400) < expit(0.6 * logit(p) - 0.4)).astype(int)
    return p, y, rng.exponential(size=400)


@pytest.mark.parametrize("scale", ["logit", "proba"])
@pytest.mark.parametrize("smooth", [True, False])
def test_platt_score_equations(scores, scale, smooth):
    p, y, w = scores
    platt = PlattScaling(scale, smooth).fit(p, y, sample_weight=w)
    q = platt.predict_proba(p)[:, 1]
    z = logit(p) if scale == "logit" else p
    positive, negative = w[y == 1].sum(), w[y == 0].sum()
    target = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2)) if smooth else y
    assert abs(w @ (q - target)) / w.sum() < 1e-9
    assert abs(w @ (z * (q - target))) / w.sum() < 1e-9


def test_platt_equals_scikit_learn():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    base = LogisticRegression(C=10).fit(X, y)
    theirs = CalibratedClassifierCV(FrozenEstimator(base), method="sigmoid").fit(X, y)
    ours = PlattScaling().fit(base.predict_proba(X), y)
    np.testing.assert_allclose(
        ours.predict_proba(base.predict_proba(X)), theirs.predict_proba(X), atol=2e-4
    )


def test_platt_separable():
    p, y = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])
    smooth = PlattScaling().fit(p, y)
    assert np.isfinite(smooth.slope_)
    with pytest.warns(CalibrationWarning, match="a threshold separates"):
        plain = PlattScaling(smooth_targets=False).fit(p, y)
    assert plain.slope_ == smooth.slope_


def test_platt_reversed_scores():
    rng = np.random.default_rng(2)
    p = rng.random(300)
    y = (rng.random(300) > p).astype(int)
    platt = PlattScaling().fit(p, y)
    assert platt.slope_ < 0
    assert np.all(np.diff(platt.predict_proba(np.linspace(0, 1, 50))[:, 1]) <= 0)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6, 1e100])
def test_platt_logits_of_any_size(factor):
    rng = np.random.default_rng(3)
    z = rng.normal(size=200)
    y = (z + rng.logistic(size=200) > 0).astype(int)
    reference = PlattScaling().fit(canonical_proba(z, kind="logits"), y)
    platt = PlattScaling().fit(canonical_proba(factor * z, kind="logits"), y)
    assert platt.slope_ * factor == pytest.approx(reference.slope_, rel=1e-6)


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_beta_optimality(scores, parameters):
    p, y, w = scores
    beta = BetaCalibration(parameters).fit(p, y, sample_weight=w)
    residual = w * (beta.predict_proba(p)[:, 1] - y) / w.sum()
    columns = {
        "abm": [np.log(p), -np.log1p(-p), np.ones_like(p)],
        "am": [logit(p), np.ones_like(p)],
        "ab": [np.log(2 * p), -np.log(2 * (1 - p))],
    }[parameters]
    coefficients = {"abm": [beta.a_, beta.b_, 1], "am": [beta.a_, 1], "ab": [beta.a_, beta.b_]}
    for column, coef in zip(columns, coefficients[parameters], strict=True):
        gradient = residual @ column
        assert abs(gradient) < 1e-7 if coef > 0 else gradient > -1e-7


def test_beta_members():
    rng = np.random.default_rng(4)
    p = rng.beta(2, 2, 4000)
    y = (rng.random(4000) < p).astype(int)
    fits = {kind: BetaCalibration(kind).fit(p, y) for kind in ("abm", "am", "ab")}
    assert fits["am"].a_ == fits["am"].b_
    assert fits["ab"].predict_proba([0.5])[0, 1] == pytest.approx(0.5)
    assert fits["abm"].a_ == pytest.approx(1, abs=0.3)
    assert fits["abm"].c_ == pytest.approx(0, abs=0.5)


@pytest.mark.parametrize("seed", range(20))
def test_beta_sign_constraint(seed):
    """Where a coefficient is at 0 the loss must rise in its direction: KKT."""
    rng = np.random.default_rng(seed)
    p = rng.random(60)
    y = (rng.random(60) < rng.random()).astype(int)
    y[:2] = 0, 1
    features = np.column_stack([np.log(p), -np.log1p(-p), np.ones(60)])
    lower = np.array([0, 0, -np.inf])
    coef, gradient = fit_logistic(features, y.astype(float), np.ones(60), [1, 1, 0], lower)
    assert (coef[:2] >= 0).all()
    at_bound = coef <= lower
    assert np.abs(gradient[~at_bound]).max() < 1e-6
    assert (gradient[at_bound] > -1e-6).all()
    best, _ = logistic_loss(features, y, np.ones(60), coef)
    for _ in range(50):
        other = np.maximum(coef + rng.normal(size=3) * 0.1, lower)
        assert logistic_loss(features, y, np.ones(60), other)[0] >= best - 1e-12


def test_beta_separable():
    with pytest.warns(CalibrationWarning, match="slopes would be infinite"):
        beta = BetaCalibration().fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert np.isfinite([beta.a_, beta.b_, beta.c_]).all()


def test_one_vs_rest_warns_once():
    proba = np.eye(3)[np.arange(30) % 3] * 0.7 + 0.1
    proba += np.random.default_rng(0).random((30, 1)) * (1 / 3 - proba) * 0.1
    with pytest.warns(CalibrationWarning) as caught:
        BetaCalibration().fit(proba, np.array(["x", "y", "z"])[np.arange(30) % 3])
    assert len(caught) == 1
    assert "(One-vs-rest, classes x, y, z.)" in str(caught[0].message)


def test_one_vs_rest_divides_by_the_sum(scores):
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.ones(3), 300)
    y = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    platt = PlattScaling().fit(proba, y)
    values = np.column_stack(
        [
            part._predict_proba(np.column_stack([1 - proba[:, c], proba[:, c]]))[:, 1]
            for c, part in enumerate(platt.one_vs_rest_)
        ]
    )
    np.testing.assert_allclose(platt.predict_proba(proba), values / values.sum(1, keepdims=True))
