"""Platt scaling and beta calibration: the score equations are the oracle."""

import numpy as np
import pytest
from cases import run_every_case
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import canonical_proba
from sklearn_calib._simplex_array import compute_log_odds
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import BetaCalibration, PlattScaling, QuadraticScaling


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
    platt = PlattScaling(scale, smooth_targets=smooth).fit(p, y, sample_weight=w)
    q = platt.predict_proba(p)[:, 1]
    z = logit(p) if scale == "logit" else p
    positive, negative = w[y == 1].sum(), w[y == 0].sum()
    target = (
        np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))
        if smooth
        else y
    )
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
    coefficients = {
        "abm": [beta.a_, beta.b_, 1],
        "am": [beta.a_, 1],
        "ab": [beta.a_, beta.b_],
    }
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
    np.testing.assert_allclose(
        platt.predict_proba(proba), values / values.sum(1, keepdims=True)
    )


def log_loss(method, p, y, w=None):
    """Of the labels under the fitted map, from its own predictions, both columns exact."""
    q = method.fit(p, y, sample_weight=w).predict_proba(p)[np.arange(len(y)), y]
    return np.average(-np.log(q), weights=w)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("centre", "half"), [(0.5, 0.05), (0.5, 0.02), (0.3, 0.02), (0.1, 0.01)]
)
def test_beta_narrow_ranges(centre, half):
    """The optimum over a, b >= 0 in coordinates where the columns are not nearly collinear."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        u = rng.uniform(-1, 1, 1000)
        p = centre + half * u
        y = (rng.random(1000) < expit(3 * u - 1)).astype(int)
        losses = {
            kind: log_loss(BetaCalibration(kind), p, y) for kind in ("abm", "am", "ab")
        }
        assert losses["abm"] <= min(losses.values()) + 1e-12
        columns = np.column_stack(
            [np.log(p / p.max()), -np.log((1 - p) / (1 - p.min()))]
        )
        found = minimize(
            soft_loss,
            [1.0, 1.0, 0.0],
            (
                np.column_stack([columns / np.abs(columns).max(axis=0), np.ones(1000)]),
                y,
            ),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None), (0, None), (None, None)],
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 20_000},
        )
        assert losses["abm"] <= found.fun + 1e-10


def soft_loss(coef, features, y):
    z = features @ coef
    return np.logaddexp(0, np.where(y == 1, -z, z)).mean(), features.T @ (
        expit(z) - y
    ) / len(y)


def test_beta_contains_its_submodels():
    rng = np.random.default_rng(3)
    u = rng.uniform(-1, 1, 1000)
    p = 0.5 + 0.02 * u
    y = (rng.random(1000) < 1 / (1 + np.exp(-3 * u - 1))).astype(int)
    whole, part = (log_loss(BetaCalibration(kind), p, y) for kind in ("abm", "am"))
    assert whole == pytest.approx(0.4609075428387, abs=1e-11)
    assert part == pytest.approx(0.4611225153755, abs=1e-11)


@pytest.mark.parametrize("ones", [1200, 20_000])
def test_beta_saturated_at_one(ones):
    """Most scores are exactly 1: the fit was P = 0 everywhere, 17.6 nats."""
    y = np.r_[np.zeros(600), np.ones(400), np.ones(ones - 500), np.zeros(500)].astype(
        int
    )
    p = np.r_[np.linspace(0.01, 0.4, 600), np.linspace(0.2, 0.9, 400), np.ones(ones)]
    base_rate = -np.log([1 - y.mean(), y.mean()]) @ [1 - y.mean(), y.mean()]
    # ones as near as can be
    p = canonical_proba(compute_log_odds(canonical_proba(p)), kind="logits")
    losses = {
        kind: log_loss(BetaCalibration(kind), p, y) for kind in ("abm", "am", "ab")
    }
    assert losses["abm"] <= min(losses.values()) + 1e-12
    assert losses["am"] < base_rate
    if ones == 1200:
        assert losses["am"] == pytest.approx(0.6746638326962, abs=1e-11)
        assert losses["abm"] == pytest.approx(0.5913739794293, abs=1e-11)


def test_beta_saturated_scores_of_many_sizes():
    """log p from -e^-5 to -e^-75: a slope of 1e16 is the optimum, 0.0108 nats below others."""
    rng = np.random.default_rng(0)
    z = rng.uniform(5, 75, 400)
    y = (rng.random(400) < expit(0.05 * (z - 30))).astype(int)
    whole, part = (
        log_loss(BetaCalibration(kind), canonical_proba(z, kind="logits"), y)
        for kind in ("abm", "am")
    )
    assert whole <= part + 1e-12


@pytest.mark.filterwarnings("ignore:.*scores that rise with the outcome")
def test_beta_weighted_with_parts_at_odds():
    """Heavy rows say one slope, light rows the other."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.random(300)
        heavy = rng.random(300) < 0.5
        y = (rng.random(300) < np.where(heavy, 1 - p, p)).astype(int)
        w = np.where(heavy, 1.0, 1e-3) * rng.exponential(size=300)
        losses = [
            log_loss(BetaCalibration(kind), p, y, w) for kind in ("abm", "am", "ab")
        ]
        assert losses[0] <= min(losses) + 1e-12
        share = w @ y / w.sum()
        assert (
            losses[0] <= -share * np.log(share) - (1 - share) * np.log1p(-share) + 1e-12
        )


def test_beta_ab_is_finite_where_another_threshold_separates():
    """a log 2p - b log 2q passes through 1/2 at 1/2: a threshold at 0.7 leaves finite slopes."""
    p, y = np.array([0.1, 0.4, 0.6, 0.65, 0.8, 0.9]), np.array([0, 0, 0, 0, 1, 1])
    beta = BetaCalibration("ab").fit(p, y)  # no warning
    residual = beta.predict_proba(p)[:, 1] - y
    for slope, column in ((beta.a_, np.log(2 * p)), (beta.b_, -np.log(2 * (1 - p)))):
        gradient = residual @ column
        assert abs(gradient) < 1e-9 if slope > 0 else gradient > 0
    assert np.isfinite([beta.a_, beta.b_]).all()
    with pytest.warns(CalibrationWarning, match="the threshold 1/2 separates"):
        BetaCalibration("ab").fit(p, (p > 0.5).astype(int))


def test_quadratic_interval():
    p = np.linspace(0.05, 0.95, 60)
    # the maximum likelihood had probabilities of 1e-65
    y = ((p > 0.3) & (p < 0.7)).astype(int)
    for labels in (y, 1 - y):
        with pytest.warns(
            CalibrationWarning, match="a threshold or an interval separates"
        ):
            quadratic = QuadraticScaling().fit(p, labels)
        q = quadratic.predict_proba(p)[np.arange(60), labels]
        assert quadratic.predict_proba(p).min() > 1e-12 and -np.log(q).mean() > 0.01
    y[30] = 0
    assert QuadraticScaling().fit(p, y).a_ < 0  # overlap: no warning


@run_every_case(
    "method",
    [
        *map(BetaCalibration, ("abm", "am", "ab")),
        PlattScaling(),
        PlattScaling(smooth_targets=False),
        PlattScaling("proba"),
        QuadraticScaling(),
    ],
    ids=repr,
)
@run_every_case("scale", [0.01, 1.0, 1e3, 1e6, 1e149])
def test_classes_swap(method, scale):
    """Columns and labels exchanged: predictions exchanged."""
    rng = np.random.default_rng(7)
    z = rng.normal(size=300) + 0.5
    y = (rng.random(300) < expit(z - 0.7)).astype(int)
    logits = np.column_stack([np.zeros(300), scale * z])
    there = method.fit(canonical_proba(logits, kind="logits"), y)
    there = there.predict_proba(canonical_proba(logits, kind="logits"))
    back = method.fit(canonical_proba(logits[:, ::-1], kind="logits"), 1 - y)
    back = back.predict_proba(canonical_proba(logits[:, ::-1], kind="logits"))
    np.testing.assert_allclose(there, back[:, ::-1], atol=1e-9)


def test_two_scores_swap():
    """Two scores leave one slope of beta calibration open; neither class is preferred."""
    p, y = np.repeat([0.2, 0.6], 10), np.tile([0, 1, 0, 1, 1, 0, 1, 1, 1, 0], 2)
    y[:4] = 0
    there = BetaCalibration().fit(p, y).predict_proba([0.3, 0.4, 0.9])
    back = BetaCalibration().fit(1 - p, 1 - y).predict_proba([0.7, 0.6, 0.1])
    np.testing.assert_allclose(there, back[:, ::-1], atol=1e-9)


@pytest.mark.parametrize("prior_weight", [1.0, 40.0])
def test_platt_with_rows_that_are_right(scores, prior_weight):
    """Two rows at 1/4 and 3/4, each half a label of its weight: the score equations with them."""
    p, y, w = scores
    assert np.sqrt(np.cov(logit(p), aweights=w)) > 1
    platt = PlattScaling(prior_weight=prior_weight).fit(p, y, sample_weight=w)
    z = np.append(logit(p), logit([0.25, 0.75]))
    missed = expit(platt.intercept_ + platt.slope_ * z) - np.append(y, [0.25, 0.75])
    weight = np.append(w, [prior_weight, prior_weight])
    assert abs(weight @ missed) < 1e-7 and abs(weight @ (missed * z)) < 1e-7
