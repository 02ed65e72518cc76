"""The program of the guide that carries attributions to the scale of the calibrated probability."""

import warnings

import numpy as np
import pages
import pytest
from boosters import imported
from checkout import ROOT
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    BetaCalibration,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    PlattScaling,
    PriorShift,
    QuadraticScaling,
    SplineCalibration,
    TemperatureScaling,
    VennAbers,
)

(PROGRAM,) = (
    block.text
    for block in pages.blocks("calibrating_a_model.rst")
    if "def calibrate_attributions" in block.text
)
exec(PROGRAM, program := {})
calibrate_attributions = program["calibrate_attributions"]

RNG = np.random.default_rng(0)
P = expit(RNG.normal(-1, 2, 400))
Y = np.where(RNG.random(400) < expit(0.5 * logit(P) + 0.3), "yes", "no")


def platt(slope, intercept):
    """The map slope z + intercept."""
    found = PlattScaling().fit(P, Y, classes=["no", "yes"])
    found.slope_, found.intercept_ = slope, intercept
    return found


def value(map_, z, scale="logit", input="logits", column=1):
    """What attributions add up to, from the map alone."""
    z = np.ravel(z)
    rows = canonical_proba(z, kind=input)
    p = np.asarray(map_.predict_proba(rows))
    if scale == "probability":
        return p[:, column]
    return np.log(p[:, column]) - np.log(p[:, 1 - column])


MAPS = {
    "identity": Identity(),
    "platt": PlattScaling(),
    "temperature": TemperatureScaling(),
    "beta": BetaCalibration(),
    "quadratic": QuadraticScaling(),
    "spline": SplineCalibration(),
    "isotonic": IsotonicCalibration(),
    "bins": HistogramBinning(10),
    "venn_abers": VennAbers(),
    "prior": PriorShift([0.9, 0.1]),
    "chain": make_pipeline(TemperatureScaling(), BetaCalibration()),
    "falls": PlattScaling(),
    "any classifier": LogisticRegression(),
}


def fitted(name):
    y = np.where(Y == "yes", "a", "z") if name == "falls" else Y
    rows = canonical_proba(P)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return clone(MAPS[name]).fit(rows, y)


def test_golden_values():
    """Base -1, attributions 0.5 and 1.5, slope 2, intercept 0.3."""
    map_ = platt(2.0, 0.3)
    values, base = calibrate_attributions([[0.5, 1.5]], -1.0, map_, scale="logit")
    assert np.allclose(values, [[1, 3]], rtol=0, atol=1e-12) and abs(base + 1.7) < 1e-12
    values, base = calibrate_attributions([[0.5, 1.5]], -1.0, map_)
    per_unit = (expit(2.3) - expit(-1.7)) / 2
    assert np.allclose(values, [[0.5 * per_unit, 1.5 * per_unit]], rtol=0, atol=1e-15)
    assert abs(base - expit(-1.7)) < 1e-15


def test_the_example_has_the_same_program():
    example = ROOT / "examples" / "8_decisions" / "plot_explanations.py"
    function = PROGRAM[PROGRAM.index("def calibrate_attributions") :]
    assert function in example.read_text(encoding="utf-8")


# isotonic regression returns 0 and 1, whose log-odds are infinite
CASES = [(name, "probability") for name in MAPS]
CASES += [(name, "logit") for name in MAPS if name != "isotonic"]


@pytest.mark.parametrize(("name", "scale"), CASES)
def test_sums_of_every_map(name, scale):
    map_ = fitted(name)
    rng = np.random.default_rng(1)
    phi = rng.normal(0, 0.7, (300, 6))
    base = rng.normal(-1, 0.5, 300)
    values, new_base = calibrate_attributions(phi, base, map_, scale)
    reached = new_base + values.sum(axis=1)
    np.testing.assert_allclose(new_base, value(map_, base, scale), rtol=0, atol=1e-12)
    expected = value(map_, base + phi.sum(axis=1), scale)
    np.testing.assert_allclose(reached, expected, rtol=0, atol=1e-11)
    shares = values / np.where(values[:, :1] == 0, 1, values[:, :1])
    moves = (values != 0).any(axis=1)
    np.testing.assert_allclose(shares[moves], (phi / phi[:, :1])[moves], rtol=1e-9)
    if name == "falls":
        assert (values * phi <= 0).all()


@pytest.mark.parametrize("left", [0.0, 1e-16, 1e-13, 1e-9, 3e-7])
def test_near_the_base_it_is_the_derivative(left):
    """A difference quotient over 1e-15 has no digits."""
    map_ = BetaCalibration().fit(P, Y, classes=["no", "yes"])
    below, above = value(map_, [-1 - 1e-3, -1 + 1e-3], "probability")
    values, _ = calibrate_attributions([[1.0, left - 1.0]], -1.0, map_)
    assert values[0, 0] == pytest.approx((above - below) / 2e-3, rel=1e-5)


def test_probabilities_that_add_up():
    """Of a forest: sums are probabilities, at 1 too, and rounding leads beyond it."""
    map_ = BetaCalibration().fit(P, Y, classes=["no", "yes"])
    phi = np.random.default_rng(2).dirichlet(np.ones(4), 50) * 0.7
    phi[:5] *= np.linspace(1e-9, 0.5, 5)[:, None]
    phi[5] += 1e-16
    values, base = calibrate_attributions(phi, 0.3, map_, kind="proba")
    total = np.minimum(0.3 + phi.sum(axis=1), 1)
    expected = value(map_, total, "probability", "proba")
    np.testing.assert_allclose(base + values.sum(axis=1), expected, rtol=0, atol=1e-12)


def test_a_model_with_one_map():
    X, y = make_classification(400, random_state=0)
    linear = LogisticRegression().fit(X, y)
    model = CalibratedModel(FrozenEstimator(linear), "beta").fit(X, y)
    phi, start = X * linear.coef_, linear.intercept_
    values, base = calibrate_attributions(phi, start, model.recalibrator_)
    expected = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(base + values.sum(axis=1), expected, rtol=0, atol=1e-12)


def test_the_mean_of_several_pairs():
    """Each estimator is explained with its map; the mean of these reaches the model's."""
    X, y = make_classification(400, random_state=0)
    folds = CalibratedModel(LogisticRegression(), "beta", cv=3).fit(X, y)
    reached = []
    for pair in folds.calibrated_pairs_:
        phi, start = X * pair.estimator.coef_, pair.estimator.intercept_
        values, base = calibrate_attributions(phi, start, pair.recalibrator)
        reached.append(base + values.sum(axis=1))
    expected = folds.predict_proba(X)[:, 1]
    np.testing.assert_allclose(np.mean(reached, axis=0), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_attributions_of_boosted_trees(name):
    booster = imported(name)
    X, y = make_classification(300, n_features=6, random_state=0)
    if name == "lightgbm":
        made = booster.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(X, y)
        table = made.predict(X, pred_contrib=True)
    else:
        made = booster.XGBClassifier(n_estimators=5, n_jobs=1).fit(X, y)
        table = made.get_booster().predict(booster.DMatrix(X), pred_contribs=True)
    model = CalibratedModel(FrozenEstimator(made), "beta").fit(X, y)
    p = model.predict_proba(X)[:, 1]
    # XGBoost's numbers are of single precision
    tolerance = 1e-9 if name == "lightgbm" else 1e-5
    for scale, expected in (("logit", logit(p)), ("probability", p)):
        values, base = calibrate_attributions(
            table[:, :-1], table[:, -1], model.recalibrator_, scale
        )
        np.testing.assert_allclose(
            base + values.sum(axis=1), expected, rtol=0, atol=tolerance
        )
