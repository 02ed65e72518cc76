import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    HistogramBinning,
    Identity,
    OneVsRest,
    PlattScaling,
    TemperatureScaling,
    TopLabel,
)


def test_one_vs_rest_is_the_lifting_of_the_base_class():
    proba, y = make_overconfident(4)
    np.testing.assert_allclose(
        OneVsRest("platt").fit(proba, y).predict_proba(proba),
        PlattScaling().fit(proba, y).predict_proba(proba),
    )


@pytest.mark.parametrize("combinator", [OneVsRest, TopLabel])
def test_two_classes_are_the_method_itself(combinator):
    proba, y = make_overconfident(2)
    np.testing.assert_allclose(
        combinator("platt").fit(proba, y).predict_proba(proba),
        PlattScaling().fit(proba, y).predict_proba(proba),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    "combinator",
    [OneVsRest(Identity()), TopLabel(Identity(), rest="proportional")],
    ids=repr,
)
def test_identity_stays_identity(combinator):
    proba, y = make_overconfident(5)
    np.testing.assert_allclose(
        combinator.fit(proba, y).predict_proba(proba), proba, atol=1e-9
    )


@pytest.mark.parametrize("combinator", [OneVsRest, TopLabel])
def test_they_repair_overconfidence(combinator):
    proba, y = make_overconfident(4, 4000)
    assert log_loss(y, combinator().fit(proba, y).predict_proba(proba)) < log_loss(
        y, proba
    )


def test_top_label_per_class():
    proba, y = make_overconfident(3, 600)
    top = TopLabel("platt", per_class=True).fit(proba, y)
    assert sorted(top.recalibrators_) == [0, 1, 2]
    one = TopLabel("platt", rest="proportional").fit(proba, y)
    assert list(one.recalibrators_) == [-1]
    assert one.rest_inverse_temperature_ == 1
    out = one.predict_proba(proba)
    ratio = out / proba
    others = np.sort(
        np.where(np.eye(3, dtype=bool)[proba.argmax(axis=1)], np.nan, ratio), axis=1
    )
    np.testing.assert_allclose(others[:, 0], others[:, 1])


def test_top_label_repairs_the_other_classes_too():
    """Their temperature is that of all classes where the truth is a temperature."""
    proba, y = make_overconfident(6, 20_000)
    wrong = y != proba.argmax(axis=1)
    truth = TemperatureScaling().fit(proba, y).inverse_temperature_
    losses = {}
    for rest in ("temperature", "proportional"):
        top = TopLabel(rest=rest).fit(proba, y)
        losses[rest] = log_loss(y[wrong], top.predict_proba(proba[wrong]))
        sums = top.predict_proba(proba).sum(axis=1)
        np.testing.assert_allclose(sums, 1, atol=1e-12)
    assert losses["temperature"] < losses["proportional"] - 0.1
    found = TopLabel().fit(proba, y).rest_inverse_temperature_
    assert found == pytest.approx(truth, rel=0.05)


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_top_label_without_a_wrong_row():
    proba, y = make_overconfident(4, 200)
    right = y == proba.argmax(axis=1)
    top = TopLabel().fit(proba[right], y[right], classes=range(4))
    assert top.rest_inverse_temperature_ == 1


@pytest.mark.slow
def test_few_rows_of_each_class_leave_right_scores_nearly_alone():
    """Ten classes, 100 rows: Platt's smoothed labels drew every class towards 1/2."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(10, 0.03), 3000)
    y = (proba.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(max=9)
    few, rest = slice(0, 100), slice(100, None)
    raw = log_loss(y[rest], proba[rest])
    losses = {}
    for name in ("default", "platt"):
        method = OneVsRest(name).fit(proba[few], y[few])
        losses[name] = log_loss(y[rest], method.predict_proba(proba[rest]))
    assert losses["default"] < raw + 0.12
    assert losses["platt"] > losses["default"] + 0.02


def test_scaling_binning_pipeline():
    proba, y = make_overconfident(3, 500)
    pipe = make_pipeline(TemperatureScaling(), HistogramBinning(5)).fit(proba, y)
    by_hand = TemperatureScaling().fit(proba, y)
    binned = HistogramBinning(5).fit(by_hand.transform(proba), y)
    np.testing.assert_array_equal(
        pipe.predict_proba(proba), binned.predict_proba(by_hand.transform(proba))
    )
    nested = OneVsRest(make_pipeline(TemperatureScaling(), HistogramBinning(5)))
    assert nested.fit(proba, y, sample_weight=np.ones(500)).predict_proba(
        proba
    ).shape == (500, 3)


def test_any_classifier_is_a_recalibrator():
    proba, y = make_overconfident(3)
    out = OneVsRest(LogisticRegression()).fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(out.sum(axis=1), 1)


@pytest.mark.parametrize("bad", [3, PlattScaling, None])
def test_refused_recalibrators(bad):
    proba, y = make_overconfident(3)
    with raises_invalid_input(
        TypeError, expected="a recalibrator: a name or an instance"
    ):
        OneVsRest(bad).fit(proba, y)


class Majority(ClassifierMixin, BaseEstimator):
    """Certain of the class that has more than one half."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        second = (X[:, 1] > 0.5).astype(float)
        return np.column_stack([1 - second, second])


def test_rows_that_no_map_gives_a_class_keep_their_probabilities():
    """Beside rows that one map is certain of."""
    proba = np.array([[0.4, 0.35, 0.25], [0.8, 0.1, 0.1], [0.1, 0.3, 0.6]])
    model = OneVsRest(Majority()).fit(np.tile(proba, (4, 1)), [0, 1, 2] * 4)
    expected = [[0.4, 0.35, 0.25], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(model.predict_proba(proba), expected, atol=1e-12)
