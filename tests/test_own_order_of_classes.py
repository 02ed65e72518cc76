"""Whatever takes a classifier follows the order of its `classes_`: every wrapper is tried."""

import warnings
from inspect import isclass, signature

import matplotlib as mpl
import numpy as np
import pytest
from cases import run_every_case
from numpy.testing import assert_allclose
from offered import offered
from own_order import LinearOwnOrder, OwnOrder
from sklearn.datasets import make_blobs
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_validate
from sklearn.multioutput import MultiOutputClassifier

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.decisions import CostSensitiveClassifier, SelectiveClassifier
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import MulticalibratedModel
from sklearn_calib.inference import internal_validation
from sklearn_calib.metrics import all_metrics, get_scorer

mpl.use("Agg")
INNER = LogisticRegression()
ORDERS = {2: [(1, 0)], 3: [(2, 1, 0), (1, 2, 0)], 4: [(3, 2, 1, 0), (2, 0, 3, 1)]}
CASES = [
    (k, order, names)
    for k, orders in ORDERS.items()
    for order in orders
    for names in (0, 1)
]


def make_rows(k, names=False, n=240):
    centers = 2.0 * np.column_stack([np.cos(np.arange(k)), np.sin(2 * np.arange(k))])
    X, y = make_blobs(n, centers=centers, random_state=0)
    X = np.column_stack([X, np.arange(n) % 2])
    return X, np.array(["bad", "fair", "good", "top"])[y] if names else y


MAKERS = {
    "CalibratedModel": lambda inner: CalibratedModel(inner, "platt", cv=3),
    "RefineThenCalibrateCV": lambda inner: RefineThenCalibrateCV(
        inner, stages=None, cv=3
    ),
    "MulticalibratedModel": lambda inner: MulticalibratedModel(inner, groups=[2], cv=3),
    "CostSensitiveClassifier": CostSensitiveClassifier,
    "SelectiveClassifier": lambda inner: SelectiveClassifier(inner, max_risk=0.3),
    "AngularCalibratedClassifier": None,  # linear models alone: below
    "AngularCalibration": None,  # no wrapper: `estimator` is that of the angle
}


def wrappers():
    """The classes that take a classifier."""
    found = {
        name
        for name, thing in offered()
        if isclass(thing)
        and hasattr(thing, "fit")
        and "estimator" in signature(thing).parameters
    }
    return sorted(found)


def fitted_quietly(model, X, y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return model.fit(X, y, **params)


def proba_by_class(model, X):
    """Probabilities with columns in the order of the sorted classes."""
    return model.predict_proba(X)[:, np.argsort(model.classes_)]


def test_every_wrapper_is_tried():
    assert set(wrappers()) <= set(MAKERS), (
        "a wrapper that nobody has tried with such an order"
    )


@pytest.mark.parametrize("scores", ["both", "proba"])
@pytest.mark.parametrize(("k", "order", "names"), CASES)
@pytest.mark.parametrize("name", [name for name, make in MAKERS.items() if make])
def test_a_wrapper_follows_the_order_of_the_classifier(name, k, order, names, scores):
    X, y = make_rows(k, names)
    if name == "MulticalibratedModel" and k > 2:
        pytest.skip("two classes alone")
    plain, moved = (
        fitted_quietly(MAKERS[name](OwnOrder(INNER, one, scores)), X, y)
        for one in (tuple(range(k)), order)
    )
    expected, found = proba_by_class(plain, X), proba_by_class(moved, X)
    assert_allclose(
        found, expected, atol=1e-6, err_msg=f"{name}, classes in the order {order}"
    )
    assert moved.score(X, y) == pytest.approx(plain.score(X, y), abs=0.02)
    answers = moved.predict(X)
    answered = [label is not None for label in answers.tolist()]  # some abstain
    assert np.mean((answers == y)[answered]) > 0.6


@pytest.mark.parametrize("name", [name for name, make in MAKERS.items() if make])
def test_a_frozen_classifier_keeps_its_order(name):
    X, y = make_rows(2, names=True)
    frozen = FrozenEstimator(OwnOrder(INNER, (1, 0)).fit(X, y))
    model = fitted_quietly(MAKERS[name](frozen), X, y)
    assert np.mean(model.classes_[model.predict_proba(X).argmax(axis=1)] == y) > 0.8


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("recalibrator", ["default", "isotonic", LogisticRegression()])
def test_ensembles_and_any_recalibrator_follow_the_order(ensemble, recalibrator):
    X, y = make_rows(3, names=True)
    found = [
        proba_by_class(
            fitted_quietly(
                CalibratedModel(
                    OwnOrder(INNER, order), recalibrator, cv=3, ensemble=ensemble
                ),
                X,
                y,
            ),
            X,
        )
        for order in [(0, 1, 2), (1, 2, 0)]
    ]
    assert_allclose(found[1], found[0], atol=1e-6)


class BoostedOwnOrder(GradientBoostingClassifier):
    """Boosted trees of three classes, the last of which comes first."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_ = self.classes_[::-1]
        return self

    def decision_function(self, X):
        return super().decision_function(X)[:, ::-1]

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]

    def staged_decision_function(self, X):
        return (scores[:, ::-1] for scores in super().staged_decision_function(X))

    def staged_predict_proba(self, X):
        return (proba[:, ::-1] for proba in super().staged_predict_proba(X))


def test_stages_follow_the_order():
    X, y = make_rows(3)
    risks = []
    for kind in (GradientBoostingClassifier, BoostedOwnOrder):
        search = RefineThenCalibrateCV(
            kind(n_estimators=4, max_depth=2, random_state=0), stages=[1, 2, 4], cv=2
        )
        fitted_quietly(search, X, y)
        risks.append(search.refinement_curve_.risk)
    assert_allclose(risks[1], risks[0], atol=1e-12)
    assert search.score(X, y) > 0.7


@pytest.mark.parametrize("k", [2, 3])
def test_leave_one_out_scores_follow_the_order(k):
    X, y = make_rows(k, names=True)
    found = [
        proba_by_class(fitted_quietly(CalibratedModel(inner, cv="alo"), X, y), X)
        for inner in (LogisticRegression(max_iter=200), LinearOwnOrder())
    ]
    assert_allclose(found[1], found[0], atol=1e-4)


def test_the_angle_follows_the_order():
    X, y = make_rows(2, names=True)
    found = [
        proba_by_class(
            fitted_quietly(AngularCalibratedClassifier(inner, sign="holdout"), X, y), X
        )
        for inner in (LogisticRegression(max_iter=200), LinearOwnOrder())
    ]
    assert_allclose(found[1], found[0], atol=1e-3)


class BackwardsLabels(MultiOutputClassifier):
    """Many labels, of each of which 1 comes first."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_ = [own[::-1] for own in self.classes_]
        return self

    def predict_proba(self, X):
        return [pair[:, ::-1] for pair in super().predict_proba(X)]


def test_many_labels_follow_the_order():
    X, y = make_rows(2)
    table = np.column_stack([y, X[:, 0] > 0, 1 - y]).astype(int)
    found = [
        fitted_quietly(
            CalibratedModel(kind(INNER), "platt", cv=3), X, table
        ).predict_proba(X)
        for kind in (MultiOutputClassifier, BackwardsLabels)
    ]
    assert_allclose(np.array(found[1]), np.array(found[0]), atol=1e-9)


@run_every_case(
    "name",
    [
        name
        for name, one in all_metrics().items()
        if "multiclass" not in one.option_names
    ],
)
def test_a_scorer_follows_the_order(name):
    X, y = make_rows(3)
    scorer = get_scorer(all_metrics()[name].spec.scorer_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        expected = scorer(OwnOrder(INNER, (0, 1, 2)).fit(X, y), X, y)
        found = scorer(OwnOrder(INNER, (1, 2, 0)).fit(X, y), X, y)
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_scorer_of_two_classes_takes_the_second_of_the_labels():
    X, y = make_rows(2, names=True)
    scorer = get_scorer("neg_expected_calibration_error")
    expected, found = (
        scorer(OwnOrder(INNER, order).fit(X, y), X, y) for order in [(0, 1), (1, 0)]
    )
    assert found == pytest.approx(expected, abs=1e-12)


def test_several_models_of_one_display_follow_their_orders():
    X, y = make_rows(2, names=True)
    models = {
        str(order): OwnOrder(INNER, order).fit(X, y) for order in [(0, 1), (1, 0)]
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        display = ReliabilityDisplay.from_estimator(models, X, y)
        folds = KFold(3, shuffle=True, random_state=0)
        both = [
            ReliabilityDisplay.from_cv_results(
                cross_validate(
                    OwnOrder(INNER, order),
                    X,
                    y,
                    cv=folds,
                    return_estimator=True,
                    return_indices=True,
                ),
                X,
                y,
            )
            for order in [(0, 1), (1, 0)]
        ]
    (first,), (second,) = display.curves.values()
    assert_allclose(second.predicted, first.predicted)
    assert_allclose(second.observed, first.observed)
    (first,), (second,) = (next(iter(one.curves.values())) for one in both)
    assert_allclose(second.predicted, first.predicted)


def test_validation_inside_follows_the_order():
    X, y = make_rows(2)
    X = X[:, :2]
    rows = [
        internal_validation(OwnOrder(INNER, order), X, y, n_resamples=5)["Brier"]
        for order in [(0, 1), (1, 0)]
    ]
    assert rows[0].corrected == pytest.approx(rows[1].corrected, abs=1e-12)
