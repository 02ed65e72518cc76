"""The floor that methods on log-probabilities learn at fit."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from words import QUICKER

from sklearn_calib import canonical_proba, log_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    AngularCalibration,
    DefaultCalibration,
    IsotonicCalibration,
    PlattScaling,
    SplineCalibration,
    StackedCalibration,
    TemperatureScaling,
    all_recalibrators,
)

LOGARITHMIC = [
    cls()
    for cls in all_recalibrators().values()
    if cls.capabilities.needs_positive_proba
]
SLOW_TO_FIT = (AngularCalibration, SplineCalibration, StackedCalibration)
CASES = [
    pytest.param(method, k, marks=pytest.mark.slow)
    if isinstance(method, SLOW_TO_FIT if k == 4 else StackedCalibration)
    else (method, k)
    for method in LOGARITHMIC
    for k in (2, 4)
]
FEW = StackedCalibration(**QUICKER["StackedCalibration"])


def votes(k, n=300, trees=20, seed=0):
    """Shares of votes, with exact zeros, and labels that follow flatter probabilities."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), size=n)
    shares = np.array([rng.multinomial(trees, row) for row in p]) / trees
    p = 0.8 * p + 0.2 / k
    return shares, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)


def fitted(method, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return clone(method).fit(*args, **kwargs)


@pytest.mark.parametrize(("method", "k"), [*CASES, (FEW, 2)], ids=repr)
def test_contract(method, k):
    """Zeros count as the floor; weights repeat and scale; types; pickle; rows stand alone."""
    proba, y = votes(k)
    model = fitted(method, proba, y)
    smallest = proba[proba > 0].min()
    assert model.floor_ == pytest.approx(min(smallest / 2, 0.01))
    raised = np.maximum(proba, model.floor_)
    raised = canonical_proba(np.log(raised), kind="logits")
    np.testing.assert_allclose(
        model.predict_proba(proba), model.predict_proba(raised), atol=1e-12
    )
    out = model.predict_proba(np.vstack([proba, np.eye(k)]))
    assert np.abs(out.sum(axis=1) - 1).max() <= 1e-12 and (out > 0).all()
    np.testing.assert_allclose(out[7:8], model.predict_proba(proba[7:8]), atol=1e-14)
    again = pickle.loads(pickle.dumps(model))
    assert again.floor_ == model.floor_
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = fitted(method, proba, y, sample_weight=weight)
    repeated = fitted(method, np.repeat(proba, weight, axis=0), np.repeat(y, weight))
    assert weighted.floor_ == repeated.floor_
    assert (
        fitted(method, proba, y, sample_weight=np.full(len(y), 1e-3)).floor_
        == model.floor_
    )
    tolerance = 1e-8 * max(1.0, np.abs(out).max())
    np.testing.assert_allclose(
        weighted.predict_proba(proba), repeated.predict_proba(proba), atol=tolerance
    )
    assert fitted(method, proba.astype(np.float32), y).floor_ == pytest.approx(
        model.floor_
    )


@pytest.mark.parametrize(("method", "k"), CASES, ids=repr)
def test_positive_probabilities_and_logits_are_left_alone(method, k):
    """Tiny but real probabilities, such as a network's, are not raised at fit."""
    logits = 12 * np.random.default_rng(0).normal(size=(300, k))
    y = logits.argmax(axis=1)
    y[::7] = (y[::7] + 1) % k
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    assert proba.min() < 1e-12
    by_proba = fitted(method, proba, y).predict_proba(proba)
    exact = canonical_proba(np.log(proba), kind="logits")
    by_logits = fitted(method, exact, y).predict_proba(exact)
    np.testing.assert_allclose(by_proba, by_logits, atol=1e-5)


def test_logits_below_the_floor_keep_their_digits():
    z = canonical_proba(
        [[0.0, 2.0], [0.0, -300.0], [0.0, 1.0], [0.0, -500.0]], kind="logits"
    )
    platt = PlattScaling().fit(z, [1, 0, 0, 1])
    assert platt.predict_proba(z)[1, 1] != platt.predict_proba(z)[3, 1]


def test_smaller_probabilities_at_prediction():
    """What the calibration rows never showed counts as the floor, so the map stays monotone."""
    proba, y = votes(2)
    platt = PlattScaling().fit(proba, y)
    query = [0.0, 1e-30, platt.floor_, 0.02, 0.5, 1 - 1e-9, 1.0]
    out = platt.predict_proba(query)[:, 1]
    assert out[0] == out[1] and np.diff(out).min() >= 0
    assert out[-1] == pytest.approx(out[-2], abs=1e-8)


def test_range_of_the_floor():
    """A tree grown to the end states 0 and 1 only; naive Bayes states anything down to 5e-324."""
    y = np.arange(40) % 2
    hard = np.where(np.arange(40) % 5 == 0, 1 - y, y).astype(float)
    tree = TemperatureScaling().fit(hard, y)
    assert tree.floor_ == 0.01
    assert tree.predict_proba([1.0])[0, 1] == pytest.approx(0.8, abs=1e-6)
    spread = np.r_[hard, np.geomspace(5e-324, 0.3, 200)]
    labels = np.r_[y, np.arange(200) % 2]
    assert TemperatureScaling().fit(spread, labels).floor_ == np.finfo(np.float32).tiny
    tiny = np.r_[np.geomspace(1e-30, 0.3, 200)]
    assert TemperatureScaling().fit(tiny, labels[40:]).floor_ == pytest.approx(5e-31)


@pytest.mark.parametrize("blocks", [False, True])
def test_one_tiny_number_is_noise(blocks):
    """Of shares of votes it is known what a vote is; else a value far below all others is a 0."""
    rng = np.random.default_rng(0)
    votes = np.clip(np.rint(60 * rng.beta(0.4, 0.4, 400)), 0, 60) / 60
    y = (rng.random(400) < 0.1 + 0.8 * votes).astype(int)
    leaves = np.where(votes > 0, votes * rng.uniform(0.5, 1, 400), 0)

    def floor(p):
        if blocks:
            rows = [(p[part], y[part]) for part in np.split(np.arange(len(p)), 4)]
            return (
                TemperatureScaling()
                .fit_blocks(rows, kind="proba", classes=[0, 1])
                .floor_
            )
        return fitted(TemperatureScaling(), p, y).floor_

    for noise in (2e-14, 1e-17):
        for p, expected in ((votes, 1 / 120), (leaves, leaves[leaves > 0].min() / 2)):
            noisy = p.copy()
            noisy[np.flatnonzero(p == 0)[:3]] = noise
            assert (noisy == 0).any()
            assert floor(noisy) == pytest.approx(min(expected, 0.01)) == floor(p)
    few = np.where(votes < 0.1, 0.2, votes)  # no row shows a single vote
    assert floor(few) == pytest.approx(1 / 120)
    assert floor((0.1 + 0.8 * votes).round(2)) == pytest.approx(0.005)  # two digits


def test_one_tiny_number_costs_nothing():
    """Forest scores with one 2e-14 are calibrated as well as without it."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.3, 1.5, 8000)
    scores = rng.binomial(100, p) / 100
    y = (rng.random(8000) < 0.02 + 0.9 * p).astype(int)
    noisy = scores.copy()
    noisy[np.flatnonzero((scores == 0) & (y == 0))[0]] = 2e-14
    for method in (DefaultCalibration(), PlattScaling(), TemperatureScaling()):
        clean, other = (
            fitted(method, given[:4000], y[:4000]).predict_proba(scores[4000:])
            for given in (scores, noisy)
        )
        np.testing.assert_allclose(clean, other, atol=1e-10)


def test_as_before_on_request():
    """Zeros as 1.18e-38: their logarithms, passed as logits."""
    proba, y = votes(3)
    exact = canonical_proba(log_proba(canonical_proba(proba)), kind="logits")
    before = TemperatureScaling().fit(exact, y)
    after = TemperatureScaling().fit(proba, y)
    assert before.temperature_ > 3 * after.temperature_


def test_methods_that_order_have_none():
    proba, y = votes(2)
    assert not hasattr(IsotonicCalibration().fit(proba, y), "floor_")
    assert DefaultCalibration().fit(proba, y).floor_ > 0


@pytest.mark.parametrize("scale", ["logit", "proba"])
def test_prior_rows_draw_towards_no_change(scale):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 20)
    y = (rng.random(20) < 0.3).astype(int)
    shift = [
        np.abs(
            PlattScaling(scale, prior_weight=w).fit(p, y).predict_proba(p)[:, 1] - p
        ).mean()
        for w in (1e-9, 1.0, 100.0, 1e6)
    ]
    assert shift == sorted(shift, reverse=True) and shift[0] > 0.1 and shift[-1] < 0.02
    separable = PlattScaling(prior_weight=1.0).fit([0.2, 0.3, 0.6, 0.7], [0, 0, 1, 1])
    assert 1 < separable.slope_ < 10
