import numpy as np
import pytest
from error_fields import raises_invalid_input
from golden_sets import golden_set
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.validation import check_is_fitted

from sklearn_calib import CalibratedModel
from sklearn_calib._kernels._logistic_grid import (
    COARSE_LINE_GRID,
    FINE_LINE_GRID,
    compute_proba_by_line,
    update_grid_weights,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_json, simplify, to_dict, to_json
from sklearn_calib.recalibrators import OnlineCalibration
from sklearn_calib.summary import CalibrationSummary


def prequential(online, p, y):
    """The prediction for each row before its label was learned."""
    found = []
    for row in range(len(y)):
        known = hasattr(online, "classes_")
        found.append(online.predict_proba(p[row : row + 1])[0, 1] if known else np.nan)
        online.partial_fit(p[row : row + 1], y[row : row + 1], classes=[0, 1])
    return np.array(found)


def total_loss(q, y):
    return -np.log(np.where(y == 1, q, 1 - q)).sum()


def test_golden_values():
    y, p = golden_set()
    order = 73 * np.arange(200) % 200
    y, p = y[order], p[order]
    z, log_weight, said = logit(p), COARSE_LINE_GRID.log_prior, []
    for row in range(200):
        said.append(
            float(
                compute_proba_by_line(1.0, z[row : row + 1], COARSE_LINE_GRID)[0]
                @ np.exp(log_weight)
            )
        )
        likelihood = compute_proba_by_line(
            2.0 * y[row] - 1, z[row : row + 1], COARSE_LINE_GRID
        )
        log_weight = update_grid_weights(
            log_weight, likelihood, None, COARSE_LINE_GRID, 1e-3
        )
    assert_allclose(
        [total_loss(np.array(said), y), total_loss(p, y), said[0], said[100]],
        [110.1896798581, 110.9362894344, 0.0835657283, 0.5651895656],
        atol=1e-9,
    )


def test_grid_and_prior():
    assert len(FINE_LINE_GRID.slope) == 325
    assert sorted({*FINE_LINE_GRID.slope}) == [*np.arange(1, 11) / 8, 1.5, 1.75, 2]
    assert sorted({*FINE_LINE_GRID.shift}) == [*np.arange(-12, 13) / 4]
    log = -((np.log(FINE_LINE_GRID.slope) / 0.5) ** 2) / 2 - FINE_LINE_GRID.shift**2 / 2
    assert_allclose(
        FINE_LINE_GRID.log_prior - FINE_LINE_GRID.log_prior[0], log - log[0], atol=1e-12
    )
    assert_allclose(np.exp(FINE_LINE_GRID.log_prior).sum(), 1)


def test_by_definition():
    proba, y = make_overconfident(2, 120)
    online = OnlineCalibration(0.05).fit(proba, y)
    prior = np.exp(FINE_LINE_GRID.log_prior)
    z, v = np.log(proba[:, 1] / proba[:, 0]), prior
    for row in range(120):
        v = 0.95 * v + 0.05 * prior
        q = expit(FINE_LINE_GRID.shift + FINE_LINE_GRID.slope * z[row])
        v = v * (q if y[row] else 1 - q)
        v = v / v.sum()
    v = 0.95 * v + 0.05 * prior
    assert_allclose(np.exp(online.log_weights_), v, atol=1e-14)
    assert_allclose(online.shift_, v @ FINE_LINE_GRID.shift, atol=1e-12)
    assert_allclose(online.slope_, np.exp(v @ np.log(FINE_LINE_GRID.slope)), atol=1e-12)
    expected = (
        expit(FINE_LINE_GRID.shift + np.multiply.outer(z, FINE_LINE_GRID.slope)) @ v
    )
    assert_allclose(online.predict_proba(proba)[:, 1], expected, atol=1e-13)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(["event", "none", "worst", "best"])),
        min_size=1,
        max_size=60,
    )
)
def test_regret_on_adversarial_sequences(rows):
    """The adversary sees the prediction before it chooses the label."""
    online = OnlineCalibration(share=0)
    loss, pairs = 0.0, np.zeros(325)
    for p, choice in rows:
        known = hasattr(online, "classes_")
        z = np.clip(np.log(max(p, 1e-38)) - np.log(max(1 - p, 1e-38)), -30, 30)
        q = online.predict_proba([p])[0, 1] if known else None
        if q is None:
            q = float(
                compute_proba_by_line(1.0, np.array([z]), FINE_LINE_GRID)[0]
                @ np.exp(FINE_LINE_GRID.log_prior)
            )
        label = {"event": 1, "none": 0, "worst": int(q < 0.5), "best": int(q >= 0.5)}[
            choice
        ]
        loss -= np.log(q if label else 1 - q)
        pairs -= np.log(
            compute_proba_by_line(2.0 * label - 1, np.array([z]), FINE_LINE_GRID)[0]
        )
        online.partial_fit([p], [label], classes=[0, 1])
    assert loss <= (pairs - FINE_LINE_GRID.log_prior).min() + 1e-9


def test_it_follows_a_change():
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=3000)
    y = (rng.random(3000) < expit(z + 2.0 * (np.arange(3000) >= 2000))).astype(int)
    online = {share: OnlineCalibration(share).fit(expit(z), y) for share in (0, 1e-3)}
    assert abs(online[1e-3].shift_ - 2.0) < 0.3 < abs(online[0].shift_ - 2.0)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("share", [0, 1e-3])
def test_fit_is_partial_fit_in_the_order_of_the_rows(k, share):
    proba, y = make_overconfident(k, 700)
    weight = np.random.default_rng(0).exponential(size=700)
    whole = OnlineCalibration(share).fit(proba, y, sample_weight=weight)
    parts = OnlineCalibration(share)
    for rows in (slice(0, 1), slice(1, 400), slice(400, 700)):
        parts.partial_fit(proba[rows], y[rows], weight[rows], classes=range(k))
    assert_allclose(parts.predict_proba(proba), whole.predict_proba(proba), atol=1e-12)
    again = whole.fit(proba[:50], y[:50])
    fresh = OnlineCalibration(share).fit(proba[:50], y[:50])
    assert_allclose(again.predict_proba(proba), fresh.predict_proba(proba), atol=1e-15)


def test_without_share_rows_are_exchangeable_and_weights_repeat_them():
    proba, y = make_overconfident(2, 300)
    weight = np.random.default_rng(1).integers(0, 4, 300)
    order = np.random.default_rng(2).permutation(300)
    online = OnlineCalibration(share=0)
    expected = clone(online).fit(proba, y, sample_weight=weight).predict_proba(proba)
    repeated = clone(online).fit(np.repeat(proba, weight, axis=0), np.repeat(y, weight))
    moved = clone(online).fit(proba[order], y[order], sample_weight=weight[order])
    for other in (repeated, moved):
        assert_allclose(other.predict_proba(proba), expected, atol=1e-12)
    heavy = OnlineCalibration().fit(proba, y, sample_weight=1e6 * weight)
    assert np.isfinite(heavy.log_weights_).all()


def test_an_error_changes_nothing():
    proba, y = make_overconfident(3, 60)
    online = OnlineCalibration()
    with raises_invalid_input(ValueError, expected="labels of at least two classes"):
        online.partial_fit(proba[:1, :2] / proba[:1, :2].sum(), [0])
    assert not vars(online).keys() - {"share"}
    online.partial_fit(proba, y)
    before = online.predict_proba(proba)
    for change, said in (
        (((proba, y + 1), {}), "labels among"),
        (((proba[:, :2], y), {}), "sum to 1"),
        (((proba, y), {"classes": [0, 1, 5]}), "the classes of earlier rows"),
        (((proba, y), {"sample_weight": -y - 1.0}), ">= 0"),
        (((proba * np.nan, y), {}), "finite"),
    ):
        with raises_invalid_input(ValueError, expected=f".*{said}"):
            online.partial_fit(*change[0], **change[1])
        assert np.array_equal(online.predict_proba(proba), before)
    with pytest.raises(ValueError, match="share"):
        OnlineCalibration(share=2).partial_fit(proba, y)


@pytest.mark.slow
def test_export_by_a_small_table():
    proba, y = make_overconfident(2, 400)
    online = OnlineCalibration().fit(proba, y)
    exact = from_json(to_json(online)).predict_proba(proba)
    assert_allclose(exact, online.predict_proba(proba), atol=1e-14)
    small = simplify(online, 1e-3)
    assert to_dict(small)["map"]["node"] == "piecewise_linear"
    assert to_dict(small)["map"]["link"] == "sigmoid"
    assert len(to_json(small)) < 0.05 * len(to_json(online))
    rows = np.r_[0.0, expit(np.linspace(-40, 40, 4001)), 1.0]
    assert np.abs(small.predict_proba(rows) - online.predict_proba(rows)).max() <= 1e-3


def test_a_summary_has_no_order():
    proba, y = make_overconfident(2, 100)
    with raises_invalid_input(
        ValueError, expected=".*needs no order of the rows", value="OnlineCalibration"
    ):
        CalibrationSummary().update(y, proba).fit("online")


# -- in a calibrated model ------------------------------------------------------------------------


def test_a_model_in_production():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3)) + np.repeat([[0.0], [1.0]], 600, axis=0) * (
        rng.random((1200, 1)) < 0.5
    )
    y = np.where(rng.random(1200) < expit(X.sum(axis=1)), "yes", "no")
    frozen = FrozenEstimator(GaussianNB().fit(X[:300], y[:300]))
    model = CalibratedModel(frozen, OnlineCalibration()).fit(X[300:500], y[300:500])
    expected = clone(OnlineCalibration()).fit(
        frozen.predict_proba(X[300:500]), y[300:500]
    )
    for rows in np.split(np.arange(500, 1200), 7):
        model.partial_fit_recalibrator(X[rows], y[rows])
        expected.partial_fit(frozen.predict_proba(X[rows]), y[rows])
    q = frozen.predict_proba(X)
    assert_allclose(model.predict_proba(X), expected.predict_proba(q), atol=1e-12)
    weighted = model.partial_fit_recalibrator(X[:5], y[:5], sample_weight=np.ones(5))
    assert weighted is model
    with raises_invalid_input(ValueError, expected="labels among"):
        model.partial_fit_recalibrator(X[:2], ["no", "maybe"])


def test_every_member_of_an_ensemble_learns():
    proba, y = make_overconfident(3, 150)
    X = np.log(proba)
    model = CalibratedModel(LogisticRegression(), "online", cv=3).fit(X, y)
    before = [
        pair.recalibrator.predict_proba(proba) for pair in model.calibrated_pairs_
    ]
    model.partial_fit_recalibrator(X[:20], y[:20])
    for pair, old in zip(model.calibrated_pairs_, before, strict=True):
        assert np.abs(pair.recalibrator.predict_proba(proba) - old).max() > 1e-4


def test_only_where_the_recalibrator_learns_online():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    model = CalibratedModel(GaussianNB(), "platt", cv=2)
    assert not hasattr(model, "partial_fit_recalibrator")
    assert not hasattr(model.fit(X, y), "partial_fit_recalibrator")
    assert not hasattr(
        CalibratedModel(GaussianNB(), "online"), "partial_fit_recalibrator"
    )
    online = CalibratedModel(GaussianNB(), "online", cv=2).fit(X, y)
    check_is_fitted(online)
    assert hasattr(online, "partial_fit_recalibrator")


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_the_share_of_three_classes_is_that_of_each_of_them(way):
    proba, y = make_overconfident(3, 300)
    online = getattr(OnlineCalibration(share=0.2), way)(proba, y)
    for c in range(3):
        alone = OnlineCalibration(share=0.2).fit(proba[:, c], (y == c).astype(int))
        assert_allclose(
            online.one_vs_rest_[c].log_weights_, alone.log_weights_, atol=1e-12
        )
        other = OnlineCalibration().fit(proba[:, c], (y == c).astype(int))
        assert abs(other.slope_ - alone.slope_) > 0.01
