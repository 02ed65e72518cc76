"""The angle from training data: golden values, simulated truth, guards and errors."""

import warnings

import numpy as np
import pytest
from error_fields import raises_invalid_input
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.datasets import make_high_dimensional
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.linear import estimate_angle
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import AngularCalibration

KNOWN = {"link_slope": 3.0, "link_intercept": 1.0}


def golden():
    rng = np.random.default_rng(20240613)
    X = rng.standard_normal((60, 90)) / np.sqrt(90)
    w = rng.standard_normal(90)
    w /= np.sqrt(w @ w / 90)
    return X, (rng.random(60) < expit(3 * (X @ w) + 1)).astype(int), np.eye(90) / 90


def fitted(X, y, C=2.0, **options):
    return LogisticRegression(C=C, tol=1e-10, max_iter=10_000, **options).fit(X, y)


def test_golden_values_without_intercept():
    X, y, S = golden()
    angle = estimate_angle(
        fitted(X, y, fit_intercept=False), X, y, S, assume_centered=True
    )
    assert angle.method == "covariance"
    found = angle.diagnostics
    assert_allclose(found["v"], 0.16297277581316, rtol=1e-9)
    assert_allclose(found["df"], 16.0238865954902, rtol=1e-9)
    assert_allclose(found["gamma"], 1.63870790847719, rtol=1e-9)
    assert_allclose(found["t2"], 0.0314453553453043, rtol=1e-8)
    assert_allclose(angle.inner_product, 0.197303167698652, rtol=1e-8)
    assert_allclose(angle.cos_theta, 0.381897525238621, rtol=1e-8)
    assert_allclose(angle.norm, 0.516639031832876, rtol=1e-8)


def test_golden_values_with_intercept():
    X, y, S = golden()
    angle = estimate_angle(fitted(X, y), X, y, S)
    assert_allclose(angle.diagnostics["gamma"], 1.65880322119118, rtol=1e-8)
    assert_allclose(angle.diagnostics["t2"], 0.0339980194793254, rtol=1e-7)
    assert_allclose(angle.cos_theta, 0.408378053916546, rtol=1e-7)
    assert_allclose(angle.center, 0.602446375626882, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "options"),
    [
        (500, 1000, {}),
        (500, 250, {}),
        (600, 200, {"link": "probit"}),
        (500, 800, {"link": "clipped_relu", "link_intercept": 0.5}),
        (500, 800, {"design": "rademacher"}),
        (500, 800, {"design": "uniform"}),
    ],
)
def test_near_the_truth(n, d, options):
    """4 standard deviations, 1.1 / sqrt(n), of the inner product."""
    X, y, truth = make_high_dimensional(n, d, random_state=0, **options)
    model = fitted(X, y, C=2 * d / n)
    angle = estimate_angle(model, X, y, truth.covariance)
    assert abs(angle.cos_theta - truth.cos_theta(model.coef_)) < 4 * 1.1 / np.sqrt(n)
    assert_allclose(angle.norm, truth.norm(model.coef_), rtol=1e-6)
    assert_allclose(angle.theta, np.arccos(angle.cos_theta))


KINDS = ["rows", "least squares", "no penalty", "likelihood"]


@pytest.mark.parametrize("kind", [*KINDS, pytest.param("l1", marks=pytest.mark.slow)])
def test_without_the_covariance(kind):
    n, d = (500, 800) if kind == "likelihood" else (2000, 200)
    slope = 1.0 if kind == "no penalty" else 3.0
    X, y, truth = make_high_dimensional(n, d, link_slope=slope, random_state=1)
    C = np.inf if kind == "no penalty" else 2 * d / n
    covariance = "auto"
    if kind == "l1":
        model = LogisticRegression(C=1.0, solver="saga", tol=1e-8, max_iter=20_000)
        spelled = {"l1_ratio": 1.0}
        if model.penalty != "deprecated":
            spelled["penalty"] = "elasticnet"
        X = X * np.sqrt(d)
        model.set_params(**spelled).fit(X, y)
        truth_cos = truth.cos_theta(model.coef_)
    else:
        model = fitted(X, y, C=C)
        truth_cos = truth.cos_theta(model.coef_)
    if kind == "rows":
        covariance = truth.draw(4 * d, 5)[0]
    angle = estimate_angle(model, X, y, covariance, link_slope=3.0, link_intercept=1.0)
    assert angle.method == {"rows": "covariance", "l1": "least squares"}.get(kind, kind)
    assert abs(angle.cos_theta - truth_cos) < 0.15


def test_other_losses():
    X, y, truth = make_high_dimensional(600, 300, random_state=0)
    ridge = RidgeClassifier(alpha=1.0).fit(X, y)
    angle = estimate_angle(ridge, X, y, truth.covariance)
    assert abs(angle.cos_theta - truth.cos_theta(ridge.coef_)) < 0.08
    svc = LinearSVC(C=1.0, tol=1e-8, max_iter=100_000, fit_intercept=False).fit(X, y)
    angle = estimate_angle(svc, X, y, truth.covariance, assume_centered=True)
    assert abs(angle.cos_theta - truth.cos_theta(svc.coef_)) < 0.12


def test_centred_features_without_intercept():
    """Standardised rows and fit_intercept=False is an intercept in disguise."""
    X, y, truth = make_high_dimensional(800, 400, link_intercept=-2.0, random_state=0)
    X = X - X.mean(axis=0)
    model = fitted(X, y, fit_intercept=False)
    angle = estimate_angle(model, X, y, truth.covariance, assume_centered=True)
    assert abs(angle.cos_theta - truth.cos_theta(model.coef_)) < 0.08


def exact_proba(model, truth, X):
    """E[y | score], by the true angle."""
    linear = model.estimator_
    u = linear.decision_function(X)
    known = AngularCalibration(
        truth.cos_theta(linear.coef_),
        truth.norm(linear.coef_),
        float(linear.intercept_[0]),
        link_slope=truth.slope,
        link_intercept=truth.intercept,
    )
    p = expit(u)
    return known.fit(p, np.arange(len(p)) % 2).predict_proba(p)[:, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({**KNOWN, "covariance": "given"}, 0.03),
        ({"covariance": "given"}, 0.05),
        ({}, 0.05),
        (KNOWN, 0.05),
    ],
)
def test_calibrated(options, error):
    X, y, truth = make_high_dimensional(600, 1000, random_state=2)
    if options.get("covariance") == "given":
        options = {**options, "covariance": truth.covariance}
    model = AngularCalibratedClassifier(LogisticRegression(C=100.0), **options).fit(
        X, y
    )
    X_test, _ = truth.draw(4000, 3)
    target = exact_proba(model, truth, X_test)
    distance = np.abs(model.predict_proba(X_test)[:, 1] - target).mean()
    before = np.abs(model.estimator_.predict_proba(X_test)[:, 1] - target).mean()
    assert distance < error < before
    assert_allclose(np.cos(model.theta_), model.cos_theta_)
    assert set(model.link_params_) == {"slope", "intercept"}
    assert len(model.platt_equivalent_) == 2
    assert model.diagnostics_["moved"] > 0  # the default tolerance stops early


def test_the_fit_is_polished_and_frozen_ones_are_not_touched():
    X, y, truth = make_high_dimensional(300, 500, random_state=0)
    model = AngularCalibratedClassifier(
        LogisticRegression(), covariance=truth.covariance
    )
    exact = fitted(X, y, C=1.0)
    assert_allclose(model.fit(X, y).estimator_.coef_, exact.coef_, atol=1e-6)
    early = LogisticRegression(tol=1e-3).fit(X, y)
    coef = early.coef_.copy()
    frozen = AngularCalibratedClassifier(
        FrozenEstimator(early), covariance=truth.covariance
    )
    with pytest.warns(CalibrationWarning, match="converged"):
        frozen.fit(X, y)
    assert (early.coef_ == coef).all()


@pytest.mark.slow
def test_weak_signal_falls_back():
    """t2 <= 0 in some draws: the likelihood takes over, and stays near the base rate."""
    seen = 0
    for seed in range(8):
        X, y, truth = make_high_dimensional(
            200, 400, link_slope=0.5, link_intercept=0.0, random_state=seed
        )
        model = AngularCalibratedClassifier(
            LogisticRegression(C=4.0),
            covariance=truth.covariance,
            link_slope=0.5,
            link_intercept=0.0,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        fell = any("between 0 and the squared norm" in str(w.message) for w in caught)
        assert fell == (model.method_ == "likelihood")
        seen += fell
        p = model.predict_proba(truth.draw(500, seed)[0])[:, 1]
        assert np.abs(p - 0.5).max() < 0.4
    assert 0 < seen < 8


def test_heavy_tailed_rows_warn():
    X, y, truth = make_high_dimensional(
        400, 400, design="elliptical", degrees_of_freedom=3, random_state=0
    )
    model = fitted(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        angle = estimate_angle(model, X, y, truth.covariance)
    assert any("rows of similar size" in str(w.message) for w in caught)
    assert angle.diagnostics["dispersion"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["holdout", "cv"])
def test_sign(sign):
    X, y, truth = make_high_dimensional(400, 300, random_state=0)
    model = AngularCalibratedClassifier(
        LogisticRegression(), sign=sign, covariance=truth.covariance, random_state=0
    ).fit(X, y)
    assert model.cos_theta_ > 0.3
    # labels that no feature has anything of: either sign may come out
    rng = np.random.default_rng(0)
    negative = 0
    for seed in range(6):
        noise = rng.integers(0, 2, 400)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.set_params(random_state=seed).fit(X, noise)
        said = any("rise with the labels" in str(w.message) for w in caught)
        assert said == np.signbit(model.cos_theta_)
        negative += said
    assert negative > 0


def test_covariance_in_every_form():
    X, y, truth = make_high_dimensional(300, 100, covariance="identity", random_state=0)
    model = fitted(X, y)
    true = truth.cos_theta(model.coef_)
    for covariance in (
        truth.covariance,
        truth.covariance.tolist(),
        LedoitWolf(),
        "identity",
    ):
        assert abs(estimate_angle(model, X, y, covariance).cos_theta - true) < 0.2
    for covariance, message in (
        (np.zeros((100, 100)), "expected a positive definite covariance"),
        (np.eye(7), r"a covariance or rows of 100 features, got shape \(7, 7\)"),
        (truth.draw(50, 0)[0], "more than 102 rows without labels"),
    ):
        with pytest.raises(ValueError, match=message):
            estimate_angle(model, X, y, covariance)


def test_bad_input():
    X, y, truth = make_high_dimensional(100, 60, random_state=0)
    S = truth.covariance
    with raises_invalid_input(
        ValueError,
        expected=".*with an intercept",
        value="fit_intercept=False",
        hint=".*assume_cen",
    ):
        estimate_angle(fitted(X, y, fit_intercept=False), X, y, S)
    for shift in (2.0, -2.0):
        with raises_invalid_input(ValueError, value="fit_intercept=False"):
            moved = X - X.mean(axis=0) + shift
            estimate_angle(fitted(moved, y, fit_intercept=False), moved, y, S)
    liblinear = fitted(X, y, solver="liblinear")
    with raises_invalid_input(ValueError, expected="an intercept without penalty"):
        estimate_angle(liblinear, X, y, S)
    with raises_invalid_input(ValueError, expected="rows without weights"):
        estimate_angle(fitted(X, y, class_weight={0: 1, 1: 2}), X, y, S)
    with raises_invalid_input(ValueError, expected="rows without weights"):
        AngularCalibratedClassifier(LogisticRegression()).fit(
            X, y, sample_weight=np.ones(100)
        )
    iris = load_iris(return_X_y=True)
    with raises_invalid_input(ValueError, expected="two classes", value="3"):
        estimate_angle(fitted(*iris), *iris)
    with raises_invalid_input(
        ValueError, expected=".*Only binary classification is supported"
    ):
        AngularCalibratedClassifier(LogisticRegression()).fit(*iris)
    wide = make_high_dimensional(60, 90, random_state=0)[:2]
    with pytest.warns(CalibrationWarning, match="product of cosine and slope only"):
        estimate_angle(fitted(*wide), *wide)


def test_standardised_real_rows():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = rows[:100], rows[100:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = AngularCalibratedClassifier(LogisticRegression(C=100.0)).fit(
            X[train], y[train]
        )
    before = log_loss(y[test], model.estimator_.predict_proba(X[test]))
    assert log_loss(y[test], model.predict_proba(X[test])) < before


@pytest.mark.parametrize(
    "options", [{}, {"C": np.inf}, {"fit_intercept": False}], ids=str
)
def test_all_diagnostics_are_given(options):
    X, y, _ = golden()
    X = X[:, :12] - X[:, :12].mean(axis=0)
    found = estimate_angle(fitted(X, y, **options), X, y, assume_centered=True)
    names = {"t2", "gamma", "v", "df", "dispersion", "moved"}
    assert set(found.diagnostics) == names
    # The solver stopped near the minimum, from which the steps are short.
    assert 0 <= found.diagnostics["moved"] < 1e-3
