"""Abstention: golden values of the search and of the area, and the guarantee."""

import contextlib
from unittest import SkipTest

import numpy as np
import pytest
import sklearn
from cases import run_every_case
from error_fields import parse_error_fields, raises_invalid_input
from golden_sets import golden_set
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import beta
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from sklearn_calib import CalibratedModel
from sklearn_calib.decisions import (
    SelectiveClassifier,
    area_under_risk_coverage,
    risk_coverage_curve,
)
from sklearn_calib.exceptions import CalibrationWarning

Y, P = golden_set()


SELECTIVE = "sklearn_calib.decisions._selective"


class Given(ClassifierMixin, BaseEstimator):
    """Predicts the probabilities that stand in its only feature."""

    def __init__(self, classes=(0, 1)):
        self.classes = classes

    @property
    def classes_(self):
        return np.asarray(self.classes)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0]
        return np.column_stack([1 - p, p])


def selective(p, y, **options):
    return SelectiveClassifier(FrozenEstimator(Given()), **options).fit(p[:, None], y)


def test_golden_search():
    model = selective(P, Y, max_risk=0.3, delta=0.1)
    assert model.coverage_ == 148 / 200 and model.risk_ == pytest.approx(31 / 148)
    assert model.risk_bound_ == pytest.approx(0.2947292212, abs=1e-10)
    assert model.threshold_ == pytest.approx(0.688903918, abs=1e-9)
    answers = model.predict(P[:, None])
    answered = np.array([answer is not None for answer in answers])
    assert answered.sum() == 148 and (answers[answered] != Y[answered]).sum() == 31
    assert selective(P, Y, max_risk=0.25).coverage_ == 80 / 200
    with pytest.warns(
        CalibrationWarning, match=r"no bound of at most max_risk=0.2 on 200 rows"
    ):
        none = selective(P, Y, max_risk=0.2)
    assert (none.threshold_, none.coverage_, none.risk_bound_) == (np.inf, 0.0, 1.0)
    assert np.isnan(none.risk_) and set(none.predict(P[:, None])) == {None}
    assert none.score(P[:, None], Y) == 0


def test_a_model_of_another_library():
    class Plain:
        classes_, fitted_ = np.arange(2), True
        fit, predict_proba = None, Given().predict_proba

    model = SelectiveClassifier(FrozenEstimator(Plain()), 0.3).fit(P[:, None], Y)
    assert model.coverage_ == 148 / 200
    with raises_invalid_input(ValueError, expected="as many labels as"):
        model.fit(P[:99, None], Y)


def test_everything_is_answered():
    model = selective(P, Y, max_risk=0.5)
    assert (model.threshold_, model.coverage_) == (0.0, 1.0)
    wrong = ((P >= 0.5) != Y).sum()
    assert model.risk_bound_ == pytest.approx(
        beta.ppf(1 - 0.1 / 8, wrong + 1, 200 - wrong), abs=1e-12
    )
    assert (
        model.predict([[0.5]]).tolist() == [0]
        and model.predict([[0.5]]).dtype.kind == "i"
    )
    # one row: 1 - delta ** 1 is the bound
    one = selective(np.array([0.9]), [1], max_risk=0.95)
    assert one.risk_bound_ == pytest.approx(0.9)


def test_words():
    words = np.array(["no", "yes"])[Y]
    frozen = FrozenEstimator(Given(("no", "yes")))
    model = SelectiveClassifier(frozen, 0.3, abstain_label="ask a person").fit(
        P[:, None], words
    )
    found = model.predict(P[:, None])
    assert set(found) == {"no", "yes", "ask a person"} and found.dtype.kind == "U"
    assert set(SelectiveClassifier(frozen, 0.3).fit(P[:, None], words).predict(P[:, None])) == {
        "no", "yes", None,
    }  # fmt: skip
    right = (found == words).mean()
    assert model.score(P[:, None], words) == pytest.approx(right)


@pytest.mark.slow
def test_unfitted_estimators_see_other_rows():
    X, y = make_classification(3000, flip_y=0.02, random_state=0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = SelectiveClassifier(
        CalibratedModel(pipeline, cv=3), 0.1, calibration_size=0.3
    )
    found = model.fit(X, y)
    assert found.coverage_ * 900 == pytest.approx(round(found.coverage_ * 900))
    assert found.n_features_in_ == 20 and found.risk_ < found.risk_bound_ <= 0.1
    one, other = (
        SelectiveClassifier(pipeline, 0.1, random_state=s).fit(X, y) for s in (0, 1)
    )
    assert one.threshold_ != other.threshold_
    search = GridSearchCV(SelectiveClassifier(pipeline), {"max_risk": [0.1, 0.2]}, cv=3)
    assert search.fit(X, y).best_params_ == {"max_risk": 0.2}  # which answers more
    weight = np.where(y == 1, 50.0, 1.0)
    heavy = SelectiveClassifier(LogisticRegression(), 0.2).fit(
        X, y, sample_weight=weight
    )
    light = SelectiveClassifier(LogisticRegression(), 0.2).fit(X, y)
    assert (
        heavy.predict_proba(X)[:, 1].mean() > light.predict_proba(X)[:, 1].mean() + 0.02
    )
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = SelectiveClassifier(inner, 0.2).fit(X, y, sample_weight=weight)
    assert np.array_equal(routed.predict_proba(X), heavy.predict_proba(X))


@run_every_case(
    ("options", "said"),
    [
        ({"max_risk": 0}, "max_risk strictly between 0 and 1, got 0"),
        ({"max_risk": 5}, "max_risk strictly between 0 and 1, got 5"),
        ({"delta": 1.0}, "delta strictly between 0 and 1, got 1.0"),
        (
            {"calibration_size": np.nan},
            "calibration_size strictly between 0 and 1, got nan",
        ),
        ({"method": "conformal"}, "method 'sgr', got 'conformal'"),
        ({"abstain_label": 1}, "an abstain_label that is not a class, got 1"),
    ],
)
def test_bad_input(options, said):
    with raises_invalid_input(ValueError, **parse_error_fields(said)):
        selective(P, Y, **options)


def test_other_bad_input():
    with raises_invalid_input(
        TypeError, value="LinearSVC", hint=r"Write CalibratedModel\(LinearSVC"
    ):
        SelectiveClassifier(LinearSVC()).fit(P[:, None], Y)
    with raises_invalid_input(ValueError, value="one class"):
        SelectiveClassifier(LogisticRegression()).fit(P[:, None], np.zeros(200))
    with raises_invalid_input(ValueError, expected=r"labels among \[0, 1\]"):
        selective(P, Y + 1)


@pytest.mark.slow
def test_scikit_learn_contract():
    """With so large a risk every row is answered, and it is a classifier like others."""
    for estimator, check in estimator_checks_generator(
        SelectiveClassifier(LogisticRegression(), 0.99, 0.9)
    ):
        with contextlib.suppress(SkipTest):  # of one check
            check(estimator)


def broken_guarantees(draws, delta, n=300, max_risk=0.2):
    """How often the true error rate among the answers is above the guaranteed one."""
    rng = np.random.default_rng(2)
    broken = []
    grid = np.linspace(0.5, 1, 20_001)
    for _ in range(draws):
        p = rng.uniform(0.5, 1, n)
        model = selective(
            p, (rng.random(n) < p).astype(int), max_risk=max_risk, delta=delta
        )
        answered = grid[grid >= model.threshold_]
        broken.append(len(answered) > 0 and np.mean(1 - answered) > max_risk)
    return np.mean(broken)


@pytest.mark.slow
def test_guarantee():
    """It fails at most as often as allowed, and more often where more is allowed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{SELECTIVE}.warn_calibration", lambda **options: None)
        rare, often = (broken_guarantees(500, delta) for delta in (0.05, 0.9))
    assert rare <= 0.05 and rare < often <= 0.9


# -- risk and coverage ------------------------------------------------------------------------


def test_golden_area():
    assert area_under_risk_coverage(Y, P) == pytest.approx(0.1716592383, abs=1e-10)


def by_definition(confidence, error):
    """The mean over k of the expected error rate of the k first rows, ties in random order."""
    n, total = len(error), 0.0
    for k in range(1, n + 1):
        last = np.sort(confidence)[::-1][k - 1]
        before, tied = confidence > last, confidence == last
        total += (error[before].sum() + (k - before.sum()) * error[tied].mean()) / k
    return total / n


@settings(max_examples=30, deadline=None)
@given(
    arrays(float, 12, elements=st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.7, 0.9])),
    arrays(int, 12, elements=st.integers(0, 1)),
    arrays(int, 12, elements=st.integers(1, 3)),
)
def test_area_by_definition(p, y, weight):
    confidence, error = np.maximum(p, 1 - p).round(12), (p > 0.5) != y
    found = area_under_risk_coverage(y, p, labels=[0, 1])
    assert found == pytest.approx(by_definition(confidence, error), abs=1e-12)
    repeated = by_definition(np.repeat(confidence, weight), np.repeat(error, weight))
    weighted = area_under_risk_coverage(y, p, labels=[0, 1], sample_weight=weight)
    assert weighted == pytest.approx(repeated, abs=1e-12)
    many = area_under_risk_coverage(y, p, labels=[0, 1], sample_weight=weight * 100_000)
    limit = area_under_risk_coverage(y, p, labels=[0, 1], sample_weight=weight / 7)
    kept = weight > 0
    if (weight[kept] == weight.max()).all():  # equal weights are none
        assert limit == area_under_risk_coverage(y[kept], p[kept], labels=[0, 1])
    else:
        assert limit == pytest.approx(many, abs=1e-4)


def test_curve():
    curve = risk_coverage_curve(Y, P)
    assert curve.area == area_under_risk_coverage(Y, P)
    error = (P >= 0.5) != Y
    ideal = by_definition(-error.astype(float), error)
    assert curve.perfect_area == pytest.approx(ideal, abs=1e-12)
    assert curve.excess == pytest.approx(curve.area - ideal, abs=1e-12)
    assert (
        len(curve.risk) == 100
        and curve.coverage[-1] == 1
        and curve.risk[-1] == error.mean()
    )
    for place in (0, 40, 99):
        answered = np.maximum(P, 1 - P) >= curve.threshold[place]
        k, wrong = answered.sum(), error[answered].sum()
        assert curve.coverage[place] == pytest.approx(k / 200)
        assert curve.risk[place] == pytest.approx(wrong / k)
        low = beta.ppf(0.025, wrong, k - wrong + 1) if wrong else 0
        assert curve.low[place] == pytest.approx(low, abs=1e-12)
        assert curve.high[place] == pytest.approx(beta.ppf(0.975, wrong + 1, k - wrong))
    best = curve.perfect_risk_at([0.1, 1 - error.mean(), 0.95, 1])
    assert best == pytest.approx(
        [0, 0, 1 - (1 - error.mean()) / 0.95, error.mean()], abs=1e-15
    )
    assert (curve.perfect_risk <= curve.risk + 1e-15).all() and len(
        curve.to_frame()
    ) == 100
    scaled = risk_coverage_curve(Y, P, sample_weight=np.full(200, 0.3))
    assert scaled.high == pytest.approx(curve.high) and scaled.risk == pytest.approx(
        curve.risk
    )
    for y in (Y, 1 - Y):
        certain = risk_coverage_curve(y, Y.astype(float), labels=[0, 1])
        assert certain.area == certain.perfect_area == (1.0 if y is not Y else 0.0)
    with raises_invalid_input(ValueError, expected="a level"):
        risk_coverage_curve(Y, P, level=0)


# -- a share of rows, and groups --------------------------------------------------------------


def test_coverage():
    """The least number of rows that is at least the share; ties together; its Beta law."""
    model = selective(P, Y, coverage=0.6)
    answered = np.array([answer is not None for answer in model.predict(P[:, None])])
    assert answered.sum() == 120 and model.coverage_ == 0.6
    confidence = np.maximum(P, 1 - P)
    assert model.threshold_ == pytest.approx(np.sort(confidence)[::-1][119])
    low, high = model.coverage_interval_
    assert (low, high) == pytest.approx(
        (beta.ppf(0.05, 120, 81), beta.ppf(0.95, 121, 80)), abs=1e-12
    )
    wrong = ((P >= 0.5) != Y)[answered].sum()
    assert model.risk_bound_ == pytest.approx(beta.ppf(0.9, wrong + 1, 120 - wrong))
    assert selective(P, Y, coverage=0.6, delta=0.3).coverage_interval_[0] > low
    tied = selective(np.array([0.9, 0.8, 0.8, 0.8, 0.6]), [1, 1, 0, 1, 0], coverage=0.3)
    assert tied.coverage_ == 0.8 and tied.threshold_ == 0.8
    assert selective(P, Y, coverage=1).threshold_ == 0.0
    assert selective(P, Y, coverage=1).coverage_interval_[1] == 1.0
    with pytest.warns(CalibrationWarning, match=r"no bound of at most max_risk=0.05"):
        assert selective(P, Y).max_risk is None


def test_coverage_of_weights():
    p, y = np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 1, 1, 0])
    frozen = FrozenEstimator(Given())
    model = SelectiveClassifier(frozen, coverage=0.5)
    assert model.fit(p[:, None], y).coverage_ == 0.5
    heavy = model.fit(p[:, None], y, sample_weight=[3, 1, 1, 1])
    assert heavy.coverage_ == 0.5 and heavy.threshold_ == 0.9
    none = model.fit(p[:, None], y, sample_weight=[0, 1, 1, 1])
    assert none.threshold_ == 0.7 and none.coverage_ == pytest.approx(2 / 3)


def grouped(n=600):
    rng = np.random.default_rng(0)
    p, group = rng.uniform(0.5, 1, n), np.array(["a", "b"])[rng.integers(2, size=n)]
    truth = np.where(group == "a", p, p - 0.05)
    return p, (rng.random(n) < truth).astype(int), group


def test_groups():
    p, y, group = grouped()
    frozen = FrozenEstimator(Given())
    model = SelectiveClassifier(frozen, 0.3, delta=0.2).fit(p[:, None], y, groups=group)
    assert model.thresholds_["a"] < model.thresholds_["b"] and not hasattr(
        model, "threshold_"
    )
    for name in "ab":  # each as if alone, with half of delta
        own = group == name
        alone = selective(p[own], y[own], max_risk=0.3, delta=0.1)
        assert alone.threshold_ == model.thresholds_[name]
        assert (alone.risk_, alone.risk_bound_) == (
            model.risks_[name],
            model.risk_bounds_[name],
        )
        assert alone.coverage_ == model.coverages_[name]
        assert alone.coverage_interval_ == model.coverage_intervals_[name]
    assert model.risk_bound_ == max(model.risk_bounds_.values())
    found = model.predict(p[:, None], groups=group)
    answered = np.array([one is not None for one in found])
    assert answered.mean() == pytest.approx(model.coverage_)
    assert ((found != y) & answered).sum() / answered.sum() == pytest.approx(
        model.risk_
    )
    right = (found == y).mean()
    assert model.score(p[:, None], y, groups=group) == pytest.approx(right)
    share = SelectiveClassifier(frozen, coverage=0.5).fit(p[:, None], y, groups=group)
    assert all(one == pytest.approx(0.5, abs=0.01) for one in share.coverages_.values())
    share.fit(p[:, None], y)
    assert not hasattr(share, "thresholds_") and share.predict(p[:, None]).shape == (
        600,
    )


def test_groups_of_other_rows():
    p, y, group = grouped(200)
    model = SelectiveClassifier(FrozenEstimator(Given()), 0.4).fit(
        p[:, None], y, groups=group
    )
    with pytest.warns(
        CalibrationWarning, match=r"groups that fit has seen, got c in 2 rows"
    ):
        found = model.predict([[0.99], [0.99], [0.99]], groups=["c", "a", "c"])
    assert found.tolist() == [None, 1, None]
    with raises_invalid_input(ValueError, expected="the groups of"):
        model.predict(p[:, None])
    with raises_invalid_input(
        ValueError,
        expected=".*one group for each of the 200 rows",
        value=r"shape \(2,\)",
    ):
        model.predict(p[:, None], groups=["a", "b"])
    with raises_invalid_input(
        ValueError, expected=".*a group in every row", value="none", row=1
    ):
        model.predict([[0.9], [0.9]], groups=["a", None])
    with raises_invalid_input(ValueError, expected="rows without groups, as in fit"):
        selective(P, Y, coverage=0.5).score(P[:, None], Y, groups=np.zeros(200))
    few = group.astype(object)
    few[:3] = "few"
    with pytest.warns(
        CalibrationWarning, match=r"on 200 rows in the groups few. All their rows"
    ):
        model.fit(p[:, None], y, groups=few)
    assert model.thresholds_["few"] == np.inf


def test_groups_are_split_with_the_rows():
    X, y = make_classification(2000, flip_y=0.02, random_state=0)
    group = (X[:, 0] > 0).astype(int)
    model = SelectiveClassifier(LogisticRegression(), coverage=0.7).fit(
        X, y, groups=group
    )
    assert set(model.thresholds_) == {0, 1}
    assert model.coverage_ == pytest.approx(0.7, abs=0.002)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"coverage": 0}, "coverage above 0 and at most 1, got 0"),
        ({"coverage": 1.5}, "coverage above 0 and at most 1, got 1.5"),
        (
            {"coverage": 0.5, "max_risk": 0.1},
            "max_risk or coverage, got max_risk=0.1 and",
        ),
    ],
)
def test_bad_coverage(options, said):
    with raises_invalid_input(ValueError, **parse_error_fields(said)):
        selective(P, Y, **options)


@pytest.mark.slow
def test_laws_of_coverage_and_of_groups():
    """New coverage lies in its interval as often as said; all groups hold as often as said."""
    draws, n, delta = 200, 200, 0.2
    below = above = uniform = 0
    broken = {0.2: 0, 0.95: 0}
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.5, 1, n)
        y = (rng.random(n) < p).astype(int)
        model = selective(p, y, coverage=0.7, delta=delta)
        new = 2 * (1 - model.threshold_)
        low, high = model.coverage_interval_
        below, above = below + (new < low), above + (new > high)
        uniform += beta.cdf(new, 140, 61) / draws
        group = rng.integers(4, size=n)
        for allowed in broken:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    "sklearn_calib.decisions._selective.warn_calibration",
                    lambda **options: None,
                )
                each = SelectiveClassifier(FrozenEstimator(Given()), 0.25, allowed)
                each.fit(p[:, None], y, groups=group)
            t = np.array(list(each.thresholds_.values()))
            t = np.maximum(t[np.isfinite(t)], 0.5)
            broken[allowed] += bool(((1 - t) / 2 > 0.25).any())
    error = 3 * np.sqrt(0.1 * 0.9 / draws)
    assert 0.1 - error <= below / draws <= 0.1 + error
    assert 0.1 - error - 0.03 <= above / draws <= 0.1 + error
    assert abs(uniform - 0.5) < 3 * np.sqrt(1 / 12 / draws)
    assert all(count / draws <= allowed for allowed, count in broken.items())


def test_weights_count_as_effective_rows_in_the_intervals_of_a_curve():
    """Of the rows that are answered so far, each time."""
    rng = np.random.default_rng(1)
    p, weight = rng.random(200), rng.gamma(1.0, size=200)
    y = (rng.random(200) < p).astype(int)
    curve = risk_coverage_curve(y, p, sample_weight=weight, level=0.9)
    order = np.argsort(-np.maximum(p, 1 - p))
    w, wrong = weight[order], ((p >= 0.5) != y)[order]
    reached = np.cumsum(w)
    rows, risk = reached**2 / np.cumsum(w**2), np.cumsum(w * wrong) / reached
    np.testing.assert_allclose(curve.risk, risk, atol=1e-12)
    events = risk * rows
    some = slice(40, None)
    assert ((events > 1e-6) & (risk < 1 - 1e-6))[some].all()
    low = beta.ppf(0.05, events, rows - events + 1)
    high = beta.ppf(0.95, events + 1, rows - events)
    np.testing.assert_allclose(curve.low[some], low[some], atol=1e-9)
    np.testing.assert_allclose(curve.high[some], high[some], atol=1e-9)


def test_the_bound_counts_rows_whatever_their_weights():
    """With a coverage, too, where the weights say how many rows are answered."""
    weight = np.where((P >= 0.5) == Y, 9.0, 1.0)
    model = SelectiveClassifier(FrozenEstimator(Given()), coverage=0.5, delta=0.1)
    model.fit(P[:, None], Y, sample_weight=weight)
    answered = np.maximum(P, 1 - P) >= model.threshold_
    n, wrong = answered.sum(), ((P >= 0.5) != Y)[answered].sum()
    assert wrong > 0 and weight[answered].sum() == pytest.approx(
        0.5 * weight.sum(), abs=9
    )
    assert model.risk_bound_ == pytest.approx(
        beta.ppf(0.9, wrong + 1, n - wrong), abs=1e-9
    )
