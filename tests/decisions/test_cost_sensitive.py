"""CostSensitiveClassifier: the cheapest action, where costs may come from, what is rejected."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from cases import run_every_case
from error_fields import raises_invalid_input
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_calib import CalibratedModel
from sklearn_calib._kernels._expected_metrics import (
    choose_best_actions,
    compute_expected_costs,
)
from sklearn_calib.decisions import CostSensitiveClassifier

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
MODEL = FrozenEstimator(LogisticRegression(max_iter=500).fit(X, NAMES))
COSTS = np.array([[0.0, 2, 4], [1, 0, 2], [9, 3, 0]])
TWO = Y > 0
TWO_COSTS = [[0, 1], [5, 0]]


def test_the_cheapest_action():
    clf = CostSensitiveClassifier(MODEL, COSTS).fit(X, NAMES)
    expected = clf.predict_proba(X) @ COSTS
    assert np.array_equal(clf.predict(X), clf.classes_[expected.argmin(axis=1)])
    assert clf.expected_cost(X) == pytest.approx(expected.min(axis=1), abs=1e-15)
    paid = COSTS[Y, np.searchsorted(clf.classes_, clf.predict(X))]
    assert clf.score(X, NAMES) == pytest.approx(-paid.mean())
    weight = np.arange(len(Y))
    assert clf.score(X, NAMES, weight) == pytest.approx(
        -np.average(paid, weights=weight)
    )
    assert (clf.predict(X) != MODEL.predict(X)).any()
    plain = CostSensitiveClassifier(MODEL).fit(X, NAMES)
    assert np.array_equal(plain.predict(X), MODEL.predict(X))
    assert plain.score(X, NAMES) == pytest.approx(MODEL.score(X, NAMES) - 1)


@settings(max_examples=40, deadline=None)
@given(
    arrays(float, 12, elements=st.sampled_from([0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])),
    arrays(float, 4, elements=st.sampled_from([0.0, 1, 2, 3, 4, 9])),
)
def test_two_actions_by_the_threshold(p, four):
    """p >= t* to the last digit, where expected costs would tie but for their rounding."""
    costs = four.reshape(2, 2)
    proba = np.column_stack([1 - p, p])
    chosen = choose_best_actions(proba, costs)
    against, saved = costs[0, 1] - costs[0, 0], costs[1, 0] - costs[1, 1]
    if against > 0 and saved > 0:
        assert np.array_equal(chosen, p >= against / (against + saved))
    table = compute_expected_costs(proba, costs)
    assert np.allclose(table[np.arange(12), chosen], table.min(axis=1), atol=1e-12)
    by_row = choose_best_actions(proba, np.tile(costs, (12, 1, 1)))
    assert np.array_equal(chosen, by_row)


def test_threshold():
    clf = CostSensitiveClassifier(LogisticRegression(), TWO_COSTS).fit(X[:, :1], TWO)
    assert clf.threshold_ == pytest.approx(1 / 6)
    fixed = FixedThresholdClassifier(
        LogisticRegression(), threshold=1 / 6, response_method="predict_proba"
    )
    assert np.array_equal(
        clf.predict(X[:, :1]), fixed.fit(X[:, :1], TWO).predict(X[:, :1])
    )
    turned = CostSensitiveClassifier(
        LogisticRegression(), [[1, 0], [0, 5]], actions=["stop", "pass"]
    ).fit(X[:, :1], TWO)
    assert np.array_equal(turned.predict(X[:, :1]) == "stop", clf.predict(X[:, :1]))
    assert not hasattr(turned, "threshold_")
    with pytest.raises(
        AttributeError, match=r"threshold_ exists after a fit with one table"
    ):
        _ = CostSensitiveClassifier(MODEL, COSTS).fit(X, NAMES).threshold_


def test_more_and_fewer_actions_than_classes():
    ask = np.column_stack([COSTS, np.full(3, 0.4)])
    clf = CostSensitiveClassifier(MODEL, ask, actions=[*MODEL.classes_, "ask"]).fit(
        X, NAMES
    )
    assert set(clf.predict(X)) == {*MODEL.classes_, "ask"}
    assert clf.expected_cost(X).max() == pytest.approx(0.4)
    numbers = FrozenEstimator(LogisticRegression(max_iter=500).fit(X, Y))
    mixed = CostSensitiveClassifier(numbers, ask, actions=[0, 1, 2, "ask"]).fit(X, Y)
    assert set(mixed.predict(X)) == {0, 1, 2, "ask"}  # the numbers are still numbers
    keep = CostSensitiveClassifier(
        MODEL, [[0, 2], [1, 0], [1, 0]], actions=["sell", "keep"]
    )
    assert set(keep.fit(X, NAMES).predict(X)) == {"sell", "keep"}


def test_costs_by_callable():
    def by_length(features):
        return features[:, 0, None, None] * COSTS

    clf = CostSensitiveClassifier(MODEL, by_length).fit(X, NAMES)
    table = by_length(X)
    expected = np.einsum("nj,njm->nm", clf.predict_proba(X), table)
    assert np.array_equal(clf.predict(X), clf.classes_[expected.argmin(axis=1)])
    assert clf.expected_cost(X) == pytest.approx(expected.min(axis=1))
    constant = CostSensitiveClassifier(MODEL, lambda features: COSTS).fit(X, NAMES)
    known = CostSensitiveClassifier(MODEL, COSTS).fit(X, NAMES)
    assert np.array_equal(constant.predict(X), known.predict(X))


def test_costs_of_the_last_call_hold():
    clf = CostSensitiveClassifier(MODEL).fit(X, NAMES, costs=COSTS)
    known = CostSensitiveClassifier(MODEL, COSTS).fit(X, NAMES)
    assert np.array_equal(clf.predict(X), known.predict(X))
    assert np.array_equal(clf.predict(X, costs=1 - np.eye(3)), MODEL.predict(X))
    rows = np.tile(COSTS, (len(X), 1, 1))
    by_row = CostSensitiveClassifier(MODEL).fit(X, NAMES, costs=rows)
    assert np.array_equal(by_row.predict(X[:9], costs=rows[:9]), known.predict(X[:9]))
    assert by_row.score(X, NAMES, costs=rows) == pytest.approx(known.score(X, NAMES))
    with raises_invalid_input(
        ValueError, expected="the costs of these rows", hint="Pass costs="
    ):
        by_row.predict(X)
    with raises_invalid_input(
        ValueError,
        expected=r".*shape \(3, 3\) or \(9, 3, 3\)",
        value=r"shape \(150, 3, 3\)",
    ):
        by_row.predict(X[:9], costs=rows)


def test_a_row_may_have_no_use_for_an_action():
    """A fee above the amount at stake: not to be rejected where other rows have other amounts."""
    amount = np.linspace(1, 100, len(X))
    costs = np.zeros((len(X), 2, 2))
    costs[:, 0, 1] = costs[:, 1, 1] = 5.0  # to investigate
    costs[:, 1, 0] = amount
    clf = CostSensitiveClassifier(LogisticRegression()).fit(X, TWO)
    acts = clf.predict(X, costs=costs)
    p = clf.predict_proba(X)[:, 1]
    assert np.array_equal(acts, p * amount >= 5) and 0 < acts.mean() < 1


def test_metadata_routing():
    rows = np.arange(1.0, 151)[:, None, None] * COSTS
    weight = np.arange(150) % 5
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
        clf = CostSensitiveClassifier(inner).set_fit_request(
            costs=False, sample_weight=False
        )
        clf.set_score_request(costs=True, sample_weight=False).set_predict_request(
            costs=True
        )
        search = GridSearchCV(clf, {"estimator__C": [1e-3, 1.0]}, cv=3)
        search.fit(X, NAMES, costs=rows, sample_weight=weight)
        pipeline = make_pipeline(clf).fit(X, NAMES, sample_weight=weight)
        acts = pipeline.predict(X, costs=rows)
    assert search.best_params_ == {"estimator__C": 1.0}
    direct = LogisticRegression(max_iter=500).fit(X, NAMES, sample_weight=weight)
    assert np.array_equal(pipeline.predict_proba(X), direct.predict_proba(X))
    assert np.array_equal(acts, pipeline.steps[0][1].predict(X, costs=COSTS))


@pytest.mark.slow
def test_search_pipeline_and_calibrated_model():
    """The score of a search is minus the cost, so that it finds the model that costs least."""
    data, y = load_breast_cancer(return_X_y=True)
    inner = CalibratedModel(
        make_pipeline(StandardScaler(), GaussianNB()), "platt", cv=3
    )
    clf = make_pipeline(StandardScaler(), CostSensitiveClassifier(inner, TWO_COSTS))
    name = "costsensitiveclassifier__estimator__estimator__gaussiannb__var_smoothing"
    search = GridSearchCV(clf, {name: [1e-9, 100.0]}, cv=3).fit(data[::2], y[::2])
    assert search.best_params_ == {name: 1e-9}
    assert -0.4 < search.score(data[1::2], y[1::2]) < 0
    table = pd.DataFrame(data).set_axis([f"f{i}" for i in range(30)], axis=1)
    fitted = CostSensitiveClassifier(inner, TWO_COSTS).fit(table, y)
    assert (
        list(fitted.feature_names_in_) == list(table.columns)
        and fitted.n_features_in_ == 30
    )


def test_weights_reach_the_classifier():
    weight = np.where(Y == 1, 20.0, 1.0)
    clf = CostSensitiveClassifier(GaussianNB()).fit(X, Y, sample_weight=weight)
    direct = GaussianNB().fit(X, Y, sample_weight=weight)
    assert np.array_equal(clf.predict_proba(X), direct.predict_proba(X))
    with pytest.raises(ValueError, match="sample_weight"):  # the pipeline's own words
        CostSensitiveClassifier(make_pipeline(GaussianNB())).fit(
            X, Y, sample_weight=weight
        )


BAD_COSTS = {
    "dominated": (COSTS + [[9, 0, 0]] * 3, r"got action 'setosa', which never costs less than 'v"),
    "equal": ([[1, 1, 0], [1, 1, 2], [3, 3, 4]], r"got action 'setosa', which never costs less"),
    "shape": (TWO_COSTS, r"costs of shape \(3, 3\).*got shape \(2, 2\).*actions=\["),
    "actions": (np.ones((3, 4)), r"costs of shape \(3, 3\).*got shape \(3, 4\).*actions=\["),
    "flat": ([1.0, 2, 3], r"got shape \(3,\)"),
    "nan": (np.where(COSTS == 9, np.nan, COSTS), r"finite costs, got costs\[2, 0\] = nan"),
    "infinite": (np.where(COSTS == 9, np.inf, COSTS), r"Write a large number"),
}  # fmt: skip


@run_every_case("case", BAD_COSTS)
def test_bad_costs(case):
    costs, said = BAD_COSTS[case]
    with pytest.raises(ValueError, match=rf"(?s)^expected .*{said}"):
        CostSensitiveClassifier(MODEL, costs).fit(X, NAMES)
    clf = CostSensitiveClassifier(MODEL).fit(X, NAMES)
    with pytest.raises(ValueError, match=rf"(?s)^expected .*{said}"):
        clf.predict(X, costs=costs)


def test_other_bad_input():
    with raises_invalid_input(TypeError, expected="numbers as costs"):
        CostSensitiveClassifier(MODEL, [["a"] * 3] * 3).fit(X, NAMES)
    with raises_invalid_input(
        TypeError, value="LinearSVC", hint=r"Write CalibratedModel\(Lin"
    ):
        CostSensitiveClassifier(LinearSVC(), COSTS).fit(X, NAMES)
    with raises_invalid_input(
        ValueError, expected=".*two different actions", value=".*'a', 'a', 'b'"
    ):
        CostSensitiveClassifier(MODEL, COSTS, actions=["a", "a", "b"]).fit(X, NAMES)
    with raises_invalid_input(
        ValueError, expected=".*labels of at least two classes", value="one class"
    ):
        CostSensitiveClassifier(GaussianNB()).fit(X[:50], NAMES[:50])
    with raises_invalid_input(ValueError, expected="labels among ", value=".*'rose'"):
        CostSensitiveClassifier(MODEL).fit(X, np.where(Y == 0, "rose", NAMES))
    weight = np.where(np.arange(len(Y)) == 3, -1.0, 1.0)
    with raises_invalid_input(
        ValueError, expected="sample_weight >= 0", value="-1", row=3
    ):
        CostSensitiveClassifier(MODEL, COSTS).fit(X, NAMES, sample_weight=weight)


@pytest.mark.parametrize("without", range(3))
def test_score_of_rows_without_a_class(without):
    clf = CostSensitiveClassifier(MODEL, COSTS).fit(X, NAMES)
    rows = without != Y
    paid = COSTS[Y[rows], np.searchsorted(clf.classes_, clf.predict(X[rows]))]
    assert clf.score(X[rows], NAMES[rows]) == pytest.approx(-paid.mean())
