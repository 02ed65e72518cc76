"""Attributions of a score on the scale of the calibrated probability."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from boosters import imported
from refused import refuses
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.meta import calibrated_attributions
from sklearn_calib.recalibrators import (
    BetaCalibration,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MultilabelCalibration,
    PlattScaling,
    PriorShift,
    QuadraticScaling,
    SplineCalibration,
    TemperatureScaling,
    VennAbers,
)

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
    values, base = calibrated_attributions([[0.5, 1.5]], -1.0, map_)
    assert np.allclose(values, [[1, 3]], rtol=0, atol=1e-12) and abs(base + 1.7) < 1e-12
    values, base = calibrated_attributions([[0.5, 1.5]], -1.0, map_, scale="probability")
    per_unit = (expit(2.3) - expit(-1.7)) / 2
    assert np.allclose(values, [[0.5 * per_unit, 1.5 * per_unit]], rtol=0, atol=1e-15)
    assert abs(base - expit(-1.7)) < 1e-15


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("scale", ["logit", "probability"])
def test_sums_of_every_map(name, scale):
    """Also of rows whose attributions cancel to any size, and in documents."""
    map_ = fitted(name)
    rng = np.random.default_rng(1)
    phi = rng.normal(0, 0.7, (300, 6))
    base = rng.normal(-1, 0.5, 300)
    phi[:200, -1] -= phi[:200].sum(axis=1) - 10.0 ** rng.uniform(-17, 0, 200)
    phi[:20, -1] -= phi[:20].sum(axis=1)
    maps = [map_] if name in ("chain", "any classifier") else [map_, from_dict(to_dict(map_))]
    for one in maps:
        if scale == "logit" and name == "isotonic":
            with pytest.raises(ValueError, match=r"strictly between 0 and 1.*'probability'"):
                calibrated_attributions(phi * 5, base, one)
            continue
        values, new_base = calibrated_attributions(phi, base, one, scale)
        for z, found in ((base, new_base), (base + phi.sum(axis=1), None)):
            found = new_base + values.sum(axis=1) if found is None else found
            rounding = 1e-12 + 1e-15 * np.abs(values).sum(axis=1)
            assert (np.abs(found - value(one, z, scale)) <= rounding).all()
        kept = np.abs(phi.sum(axis=1)) > 1e-3
        shares = values[kept] / np.where(values[kept, :1] == 0, 1, values[kept, :1])
        flat = (values[kept] == 0).all(axis=1)
        assert np.allclose(shares[~flat], (phi[kept] / phi[kept, :1])[~flat], rtol=1e-9)
        assert np.isfinite(values).all()
    if name == "falls":
        assert (values[kept] * phi[kept] <= 0).all()


def test_near_the_base_it_is_the_derivative():
    """A difference quotient over 1e-15 has no digits; of a flat piece nothing is given."""
    map_ = BetaCalibration().fit(P, Y, classes=["no", "yes"])
    wide = 1e-3
    slope = (value(map_, -1 + wide, "probability") - value(map_, -1 - wide, "probability")) / (
        2 * wide
    )
    for left in (0.0, 1e-16, 1e-13, 1e-9, 3e-7):
        values, _ = calibrated_attributions([1.0, left - 1.0], -1.0, map_, "probability")
        assert abs(values[0] / slope[0] - 1) < 1e-5, left
    steps = HistogramBinning(4).fit(P, Y, classes=["no", "yes"])
    values, _ = calibrated_attributions([1.0, -1.0], -1.0, steps, "probability")
    assert values.tolist() == [0.0, 0.0]
    edge = steps.threshold(steps.predict_proba([0.5])[0, 1], input="logits").score
    values, _ = calibrated_attributions([1.0, -1.0], edge, steps, "probability")
    assert np.abs(values).max() < 1e-9  # on the step itself, and not its height over nothing
    across = calibrated_attributions([[1e-9]], edge - 5e-10, steps, "probability")[0]
    height = np.diff(value(steps, [edge - 1e-6, edge], "probability"))[0]
    assert height > 0.01 and abs(across[0, 0] - height) < 1e-12


def test_probabilities_that_add_up():
    """Of a forest: values of both classes, whose sums are probabilities, at 0 and 1 too."""
    map_ = BetaCalibration().fit(P, Y, classes=["no", "yes"])
    rng = np.random.default_rng(2)
    phi = rng.dirichlet(np.ones(4), 50) * rng.uniform(-0.25, 0.7, (50, 1))
    phi[0] *= 0.7 / phi[0].sum()  # to 1, but for rounding
    phi[1] = [0.1, -0.1, 0.0, 0.0]
    values, base = calibrated_attributions(phi, 0.3, map_, "probability", input="proba")
    total = np.minimum(0.3 + phi.sum(axis=1), 1)
    assert np.allclose(base + values.sum(axis=1), value(map_, total, "probability", "proba"), 0)
    wide = np.diff(value(map_, [0.3 - 1e-4, 0.3 + 1e-4], "probability", "proba")) / 2e-4
    assert np.allclose(values[1], phi[1] * wide, rtol=1e-5)
    both, bases = np.stack([-phi, phi], axis=-1), np.array([0.7, 0.3])
    for pos_label in (None, "no"):
        options = {"scale": "probability", "input": "proba", "pos_label": pos_label}
        found, new = calibrated_attributions(both, bases, map_, **options)
        assert found.shape == (50, 4, 2) and new.shape == (2,)
        assert np.allclose(found[..., 1], values, rtol=1e-9, atol=1e-15)
        assert np.array_equal(found[..., 0], -found[..., 1])
        assert np.allclose(new, [1 - base, base], rtol=1e-15)
    per_row = np.broadcast_to(bases, (50, 2))
    again = calibrated_attributions(both, per_row, map_, "probability", input="proba")
    assert np.allclose(again[0][..., 1], values, rtol=1e-9, atol=1e-15)
    assert again[1].shape == (50, 2)
    log_odds = calibrated_attributions(np.stack([-phi, phi], -1), [1.0, -1.0], map_)
    assert np.array_equal(log_odds[0][..., 1], calibrated_attributions(phi, -1.0, map_)[0])
    assert log_odds[1][0] == -log_odds[1][1]


def test_pos_label_is_the_class_of_the_scores():
    """The scores of the other class are the same with the other sign."""
    map_ = BetaCalibration().fit(P, Y, classes=["no", "yes"])
    phi = np.random.default_rng(3).normal(size=(20, 3))
    for scale, whole in (("logit", 0.0), ("probability", 1.0)):
        values, base = calibrated_attributions(phi, -0.5, map_, scale)
        other, other_base = calibrated_attributions(-phi, 0.5, map_, scale, pos_label="no")
        assert np.allclose(other, -values, rtol=1e-12) and abs(other_base + base - whole) < 1e-14
        named = calibrated_attributions(phi, -0.5, map_, scale, pos_label="yes")
        assert np.array_equal(named[0], values)
    p, start = np.array([[0.1, -0.2]]), 0.4
    one = calibrated_attributions(p, start, map_, "probability", input="proba")
    other = calibrated_attributions(
        -p, 1 - start, map_, "probability", input="proba", pos_label="no"
    )
    assert np.allclose(other[0], -one[0], rtol=1e-9) and abs(other[1] + one[1] - 1) < 1e-14


def test_shapes_come_back():
    map_ = platt(2.0, 0.3)
    phi = np.array([[0.5, 1.5], [0.1, -0.3], [0.0, 0.0]])
    rows = calibrated_attributions(phi, [-1.0, -1.0, -1.0], map_)
    one = calibrated_attributions(phi, -1.0, map_)
    array = calibrated_attributions(phi, np.array([-1.0]), map_)
    assert isinstance(one[1], float) and rows[1].shape == (3,) and array[1].shape == (1,)
    assert np.allclose(rows[0], one[0], rtol=1e-12) and np.array_equal(array[0], one[0])
    single = calibrated_attributions(phi[0], -1.0, map_)
    assert single[0].shape == (2,) and np.array_equal(single[0], one[0][0])
    different = calibrated_attributions(phi, [-1.0, 0.0, 1.0], map_)
    assert np.allclose(different[1], [-1.7, 0.3, 2.3])
    small = calibrated_attributions(phi.astype(np.float32), np.float32(-1), map_)
    assert np.allclose(small[0], one[0], rtol=1e-6) and small[0].dtype == np.float64


class Explained:
    """What shap's Explanation is made of: properties over a private store, shared by copy.copy."""

    def __init__(self, **fields):
        self._store = fields

    values = property(lambda self: self._store["values"], lambda self, v: self._put("values", v))
    base_values = property(
        lambda self: self._store["base_values"], lambda self, v: self._put("base_values", v)
    )
    data = property(lambda self: self._store["data"])
    feature_names = property(lambda self: self._store["feature_names"])

    def _put(self, name, v):
        self._store[name] = v


def test_an_explanation_comes_back_as_a_copy():
    map_ = platt(2.0, 0.3)
    phi, base = np.array([[0.5, 1.5], [0.1, -0.3]]), np.array([-1.0, -1.0])
    for kind in (Explained, SimpleNamespace):
        data = np.ones((2, 2))
        given = kind(
            values=phi.copy(), base_values=base.copy(), data=data, feature_names=["a", "b"]
        )
        found = calibrated_attributions(given, None, map_)
        assert type(found) is kind and found is not given
        assert np.array_equal(given.values, phi) and np.array_equal(given.base_values, base)
        expected = calibrated_attributions(phi, base, map_)
        assert np.array_equal(found.values, expected[0])
        assert np.array_equal(found.base_values, expected[1])
        assert np.array_equal(found.data, np.ones((2, 2))) and found.feature_names == ["a", "b"]
    with refuses(ValueError, rule="no base besides the one of an explanation"):
        calibrated_attributions(given, -1.0, map_)


def test_a_model_is_its_map():
    X, y = make_classification(400, random_state=0)
    y = np.array(["no", "yes"])[y]
    linear = LogisticRegression().fit(X, y)
    model = CalibratedModel(FrozenEstimator(linear), "beta").fit(X, y)
    phi, start = X * linear.coef_, float(linear.intercept_[0])
    values, base = calibrated_attributions(phi, start, model, "probability")
    total = base + values.sum(axis=1)
    assert np.allclose(total, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    again = calibrated_attributions(phi, start, model.recalibrator_, "probability")
    assert np.array_equal(again[0], values)
    folds = CalibratedModel(LogisticRegression(), "beta", cv=3).fit(X, y)
    with refuses(
        ValueError, rule=".*one map", value="3 pairs", cure=".*calibrated_pairs_.*average"
    ):
        calibrated_attributions(phi, start, folds)
    parts = []
    for estimator, map_, _ in folds.calibrated_pairs_:  # as the message says
        given = X * estimator.coef_, estimator.intercept_
        parts.append(calibrated_attributions(*given, map_, "probability"))
    mean = np.mean([base + values.sum(axis=1) for values, base in parts], axis=0)
    assert np.allclose(mean, folds.predict_proba(X)[:, 1], rtol=0, atol=1e-12)


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
    for scale in ("logit", "probability"):
        values, base = calibrated_attributions(table[:, :-1], table[:, -1], model, scale)
        total = base + values.sum(axis=1)
        p = model.predict_proba(X)[:, 1]
        wanted = p if scale == "probability" else logit(p)
        # XGBoost's numbers are of single precision
        assert np.allclose(total, wanted, rtol=0, atol=1e-9 if name == "lightgbm" else 1e-5)


TWO = platt(2.0, 0.3)
FLAT = [[0.5, 1.5]]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((FLAT, None, TWO), {}, "expected the base that .*, got None. Pass expected_value"),
        ((FLAT, -1.0, TWO), {"scale": "logits"}, "scale among logit, probability, got 'logits'"),
        ((FLAT, -1.0, TWO), {"input": "logit"}, "input among .* got 'logit'. Write 'logits'"),
        ((FLAT, -1.0, TWO), {"pos_label": "maybe"}, "pos_label among.*got 'maybe'"),
        (([[0.5, np.nan]], -1.0, TWO), {}, r"finite numbers as values, got nan at \(0, 1\)"),
        ((FLAT, np.inf, TWO), {}, "finite numbers as base, got inf"),
        ((FLAT, [1.0, 2.0], TWO), {}, r"one for each row, got shapes \(1, 2\) and \(2,\).*:-1"),
        ((np.ones((0, 2)), 0.0, TWO), {}, r"got shapes \(0, 2\)"),
        ((np.ones((3, 2, 2)), [0.0, 0.0], TWO), {}, r"add up to 0.*values\[..., 1\]"),
        ((np.ones((2, 3, 4)), 0.0, TWO), {}, "numpy.stack.*axis=-1.*interactions"),
        ((FLAT, -1.0, TWO), {"input": "proba"}, "add up to 0 to 1, got -1 in row 0.*'logits'"),
        ((FLAT, 0.5, IsotonicCalibration().fit([0.1, 0.9], [0, 1])), {}, "strictly between 0"),
    ],
)
def test_refusals(arguments, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        calibrated_attributions(*arguments, **options)
    assert str(caught.value).startswith("calibrated_attributions: expected ")


def test_what_is_no_map():
    X, y = make_classification(60, random_state=0)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    for wrong in (forest, "platt", PlattScaling, StandardScaler()):
        with refuses(TypeError, where="calibrated_attributions", rule="a map of prob"):
            calibrated_attributions(FLAT, -1.0, wrong)
    for unfitted in (PlattScaling(), CalibratedModel(forest)):
        with pytest.raises(NotFittedError):
            calibrated_attributions(FLAT, -1.0, unfitted)
    three = TemperatureScaling().fit(np.eye(3)[[0, 1, 2, 0]] * 0.7 + 0.1, [0, 1, 2, 1])
    with pytest.raises(ValueError, match=re.escape("3 classes. Fit one for the class")):
        calibrated_attributions(FLAT, -1.0, three)
    labels = MultilabelCalibration("platt").fit(np.c_[P, P], np.c_[Y == "yes", Y == "yes"] * 1)
    with refuses((ValueError, TypeError), rule="a map"):
        calibrated_attributions(FLAT, -1.0, labels)
