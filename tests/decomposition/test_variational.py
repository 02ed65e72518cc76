"""The variational calibration error: golden values, its definition, and that its interval holds."""

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold

from sklearn_calib.decomposition import (
    variational_calibration_error,
    variational_calibration_interval,
)
from sklearn_calib.decomposition._variational import (
    _compute_earlier_fold_terms_and_weights,
    compute_dual_unit_vectors,
)
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import get_scorer, validate_predictions
from sklearn_calib.recalibrators import cross_fitted_proba

F = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
G = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7], [0.4, 0.3, 0.3]])
Y = [0, 2, 2, 1]


class Known(ClassifierMixin, BaseEstimator):
    """Predicts G for the rows of F."""

    def fit(self, X, y):
        self.classes_ = np.arange(3)
        return self

    def predict_proba(self, X):
        return G[[np.abs(F - row).sum(axis=1).argmin() for row in X]]


@pytest.mark.parametrize(
    ("norm", "value"), [(1, -0.35), (2, -0.2474873734152916), (np.inf, -0.2)]
)
def test_golden(norm, value):
    given = {"recalibrator": Known(), "multiclass": "canonical", "norm": norm}
    assert variational_calibration_error(Y, F, **given) == pytest.approx(
        value, abs=1e-14
    )
    parts = [
        variational_calibration_error(Y, F, direction=way, **given)
        for way in ("over", "under")
    ]
    assert sum(parts) == pytest.approx(value, abs=1e-14)
    assert parts[1] == 0  # the largest probability is lowered in every row


@settings(max_examples=60, deadline=None)
@given(
    arrays(float, (3, 4), elements=st.floats(-1, 1).map(lambda x: round(x, 3))),
    st.sampled_from([1.0, 1.2, 2.0, 3.5, 50.0, np.inf]),
)
def test_dual_unit_vectors(v, norm):
    u = compute_dual_unit_vectors(v, norm)
    dual = np.inf if norm == 1 else 1.0 if np.isinf(norm) else norm / (norm - 1)
    zero = (v == 0).all(axis=1)
    assert (u[zero] == 0).all()
    size = np.linalg.norm(v, ord=norm, axis=1)
    assert np.allclose((u * v).sum(axis=1), size, atol=1e-12)
    assert np.allclose(np.linalg.norm(u, ord=dual, axis=1)[~zero], 1, atol=1e-12)


def power(n, exponent, seed=0):
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    return f, (rng.random(n) < f**exponent).astype(int)


def test_its_definition_with_folds_of_rows():
    f, y = power(500, 1.5)
    cv = KFold(4)
    g = cross_fitted_proba("platt", f, y, cv=cv)[:, 1]
    t = np.sign(g - f) * (y - f)
    given = {"recalibrator": "platt", "cv": cv}
    assert variational_calibration_error(y, f, **given) == pytest.approx(
        t.mean(), abs=1e-12
    )
    for way, rows in (("over", g < f), ("under", g > f)):
        value = variational_calibration_error(y, f, direction=way, **given)
        assert value == pytest.approx((t * rows).mean(), abs=1e-12)
    scored = get_scorer("neg_variational_calibration_error", **given)
    assert "variational_calibration_error" in repr(scored)


@pytest.mark.slow
def test_it_finds_the_error_and_is_not_biased_upwards():
    f, y = power(4000, 1.5)
    assert variational_calibration_error(y, f) == pytest.approx(0.1, abs=0.02)
    # of one class half the norm of both
    both = variational_calibration_error(
        y, f, multiclass="canonical", recalibrator="isotonic"
    )
    assert both == pytest.approx(0.2, abs=0.04)
    calibrated = [
        variational_calibration_error(*power(200, 1.0, seed)[::-1])
        for seed in range(30)
    ]
    error = np.std(calibrated) / 30**0.5
    assert abs(np.mean(calibrated)) < 3.5 * error and error < 0.03


def test_pairs_of_rows_work_for_each_predicted_class():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=row) for row in proba])
    fold = np.arange(200) % 4
    pairs = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(4)]
    found = variational_calibration_error(y, proba, multiclass="top_label", cv=pairs)
    top, expected = proba.argmax(axis=1), 0.0
    for c in range(3):
        rows = top == c
        g = cross_fitted_proba(
            "isotonic",
            proba[rows, c],
            (y[rows] == c).astype(int),
            cv=[
                (np.flatnonzero(fold[rows] != j), np.flatnonzero(fold[rows] == j))
                for j in range(4)
            ],
        )[:, 1]
        expected += (
            np.sign(g - proba[rows, c]) * ((y[rows] == c) - proba[rows, c])
        ).sum() / 200
    assert found == pytest.approx(expected, abs=1e-12)
    interval = variational_calibration_interval(
        y, proba, multiclass="top_label", cv=pairs
    )
    assert interval.value == found and interval.low < found < interval.high


def test_one_prediction_for_all_rows():
    y = np.r_[np.ones(90, int), np.zeros(10, int)]
    p = np.full(100, 0.5)
    assert variational_calibration_error(y, p) == pytest.approx(0.4, abs=1e-12)
    assert variational_calibration_error(y, p, direction="over") == 0
    assert variational_calibration_interval(y, p).lower_bound > 0.3


def test_the_exact_test():
    f, y = power(600, 1.5)
    name = "variational_calibration_error"
    assert calibration_test(y, f, statistic=name, n_resamples=19).pvalue == 0.05


@run_every_case(
    ("options", "message"),
    [
        ({"norm": 0.5}, "norm from 1 to infinity, got 0.5"),
        ({"direction": "up"}, "direction among None, over, under, got 'up'"),
        ({"recalibrator": "identity"}, "a recalibrator that learns from the labels"),
        ({"cv": 1}, "cv"),
        ({"cv": None}, "cv as a number of folds or a splitter, got None"),
        ({"cv": [([0, 1, 2], [3])]}, "folds that test each row once, got 3 rows"),
        ({"multiclass": "each"}, "multiclass"),
    ],
)
def test_refused(options, message):
    given = [0, 1, 0, 1], [0.1, 0.7, 0.4, 0.6]
    for function in (variational_calibration_error, variational_calibration_interval):
        with pytest.raises(ValueError, match=message):
            function(*given, **options)


def test_a_single_row_and_levels_are_refused():
    with raises_invalid_input(ValueError, expected="at least three rows"):
        variational_calibration_interval([1], [0.4], labels=[0, 1])
    with raises_invalid_input(ValueError, expected=".*level"):
        variational_calibration_interval([0, 1], [0.4, 0.6], level=1.5)


def test_levels_and_bounds_are_of_one_law():
    f, y = power(800, 1.5)
    at_90, at_95 = (
        variational_calibration_interval(y, f, level=level) for level in (0.9, 0.95)
    )
    assert at_90.low == pytest.approx(at_95.lower_bound, abs=1e-12)
    assert at_95.low < at_90.low and at_90.high < at_95.high
    other = variational_calibration_interval(
        y, f, recalibrator="platt", cv=3, direction="over"
    )
    assert other.value != at_95.value and other.standard_error != at_95.standard_error


class Squares(Known):
    """Predicts squares, made a distribution: what no row changes."""

    def predict_proba(self, X):
        return X**2 / (X**2).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("norm", [1, 1.5, 2, np.inf])
def test_the_norm_of_the_interval(norm):
    """Terms in closed form, of a recalibrator that learns nothing: all rows but the first fold."""
    rng = np.random.default_rng(0)
    f = rng.dirichlet(np.ones(3), 400)
    y = (rng.random(400)[:, None] > f.cumsum(axis=1)[:, :-1]).sum(axis=1)
    gap = f**2 / (f**2).sum(axis=1, keepdims=True) - f
    terms = (compute_dual_unit_vectors(gap, norm) * (np.eye(3)[y] - f)).sum(axis=1)
    given = {"norm": norm, "recalibrator": Squares(), "multiclass": "canonical"}
    found = variational_calibration_interval(y, f, **given)
    assert found.value == pytest.approx(terms.mean(), abs=1e-12)
    pairs = [
        (np.delete(np.arange(400), rows), rows)
        for rows in np.arange(400).reshape(5, 80)
    ]
    found = variational_calibration_interval(y, f, cv=pairs, **given)
    seen = terms[80:]
    assert found.standard_error == pytest.approx(
        seen.std(ddof=1) / np.sqrt(320), rel=5e-3
    )


def test_terms_of_the_interval_know_earlier_folds_alone():
    f, y = power(200, 1.0)
    pairs = [
        (np.delete(np.arange(200), rows), rows)
        for rows in np.arange(200).reshape(4, 50)
    ]
    changed = np.r_[y[:150], 1 - y[150:]]
    one, other = (
        _compute_earlier_fold_terms_and_weights(
            validate_predictions(labels, f), "auto", 1.0, "isotonic", pairs, None
        )[0]
        for labels in (y, changed)
    )
    assert len(one) == 150  # the first fold has no terms
    assert (one[:100] == other[:100]).all() and (one[100:] != other[100:]).all()


@pytest.mark.cross
def test_the_interval_holds_under_calibration_where_that_of_independent_rows_does_not():
    """A small sample of ``benchmarks/variational``."""
    found, draws = [], 250
    for seed in range(draws):
        f, y = power(300, 1.0, seed)
        found.append(variational_calibration_interval(y, f, recalibrator="platt"))
    value, low, high, bound, se, _ = np.array(found).T
    for missed, expected in (((low > 0) | (high < 0), 0.05), (bound > 0, 0.05)):
        assert (
            abs(missed.mean() - expected)
            < 3.3 * (expected * (1 - expected) / draws) ** 0.5
        )
    middle = (low + high) / 2
    assert middle.std() == pytest.approx(se.mean(), rel=0.12)
    # of the cross-fitted value, fewer rows than in the interval would make it 0.9 of
    # that
    assert value.std() > 1.15 * 0.9 * se.mean()
