import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit, logit
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from sklearn_calib._kernels._log_odds import compute_rounded_unclipped_log_odds
from sklearn_calib._simplex_array import convert_log_odds
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.linear import logistic_intervals
from sklearn_calib.recalibrators import AdaptiveCalibration


def nearest(p, y, w, share, s):
    """The smallest symmetric window with this share of the rows, by trying all radii."""
    for radius in np.sort(np.abs(p - s)):
        inside = np.abs(p - s) <= radius + 1e-12
        if w[inside].sum() >= share * w.sum() - 1e-9:
            return np.average(y[inside], weights=w[inside])
    return None


@pytest.mark.parametrize("decimals", [2, 8])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 1.0])
def test_nearest_rows(share, decimals):
    rng = np.random.default_rng(0)
    p = rng.random(200).round(decimals)
    y = (rng.random(200) < p).astype(int)
    w = rng.integers(1, 4, 200).astype(float)
    acp = AdaptiveCalibration(share=share, prior_weight=0).fit(p, y, sample_weight=w)
    grid = np.r_[0.0, 1.0, p[:20], rng.random(50)]
    expected = [nearest(p, y, w, share, s) for s in grid]
    np.testing.assert_allclose(acp.predict_proba(grid)[:, 1], expected, atol=1e-12)


def test_invented_rows():
    """Five in each window: nine parts the score itself, one part the base rate."""
    rng = np.random.default_rng(0)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    plain = AdaptiveCalibration(share=0.1, prior_weight=0).fit(p, y)
    grid = np.r_[0.0, rng.random(30), 1.0]
    share = plain.predict_proba(grid)[:, 1]
    expected = (10 * share + 5 * (0.9 * grid + 0.1 * y.mean())) / 15
    found = AdaptiveCalibration(share=0.1).fit(p, y).predict_proba(grid)[:, 1]
    np.testing.assert_allclose(found, expected)
    assert 0 < found.min() < found.max() < 1


def test_given_intervals():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    low, high = p - 0.1 * p, p + 0.2 * (1 - p)
    acp = AdaptiveCalibration("interval", prior_weight=0)
    acp.fit(p, y, intervals=np.column_stack([low, high]))
    expected = [y[(p >= a) & (p <= b)].mean() for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(acp.predict_proba(p)[:, 1], expected)
    own = acp.predict_proba(p, intervals=np.column_stack([p, p]))[:, 1]
    np.testing.assert_allclose(own, y)
    between = acp.predict_proba([0.5], intervals=[[0.50001, 0.50002]])  # no row inside
    assert between[0, 1] == y[np.abs(p - 0.5).argmin()]


def test_intervals_of_rows_without_weight():
    p, y = [0.1, 0.5, 0.9, 0.95], [0, 1, 0, 1]
    ends = np.column_stack([np.array(p) - 0.05, np.array(p) + 0.05])
    some = AdaptiveCalibration("interval").fit(
        p, y, sample_weight=[1, 0, 1, 1], intervals=ends
    )
    np.testing.assert_allclose(some.intervals_, ends[[0, 2, 3]])


def test_intervals_of_a_regression_on_the_score():
    """The window is the confidence interval of the fitted logit, brought back to the score."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(500)
    y = (rng.random(500) < expit(2 * x + 0.3)).astype(int)
    acp = AdaptiveCalibration("interval", level=0.9).fit(expit(x), y)
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(x[:, None], y)
    ends = logistic_intervals(model, x[:, None], x[:, None], level=0.9)
    back = expit((logit(ends) - model.intercept_) / model.coef_[0, 0])
    # smoothed targets
    np.testing.assert_allclose(acp.intervals_, back[np.argsort(x)], atol=1e-3)
    wide = AdaptiveCalibration("interval", level=0.999).fit(expit(x), y)
    assert (np.diff(wide.intervals_) > np.diff(acp.intervals_)).all()


@pytest.mark.slow
def test_logistic_intervals_cover():
    """And their half width is 1.96 times the spread of the fitted log-odds, within 8 %."""
    X, y = make_classification(1000, n_features=5, random_state=0)
    truth = LogisticRegression().fit(X, y)
    rng = np.random.default_rng(0)
    proba = truth.predict_proba(X)[:, 1]
    missed, scores, halves = [], [], []
    for _ in range(200):
        labels = (rng.random(1000) < proba).astype(int)
        again = LogisticRegression(C=1e6).fit(X, labels)
        low, high = logistic_intervals(again, X, X[:20]).T
        missed.append([proba[:20] < low, proba[:20] > high])
        scores.append(again.decision_function(X[:20]))
        halves.append((logit(high) - logit(low)) / 2)
    below, above = np.mean(missed, axis=(0, 2))
    assert below + above == pytest.approx(0.05, abs=0.02) and min(below, above) > 0.01
    ratio = np.mean(halves, axis=0) / (1.96 * np.std(scores, axis=0))
    assert ratio.mean() == pytest.approx(1, abs=0.08)


def test_logistic_intervals_know_a_fit_without_penalty():
    """C counts for nothing then, whatever it states and however the penalty is spelled."""
    X, y = make_classification(80, n_features=5, class_sep=0.3, random_state=0)
    free = LogisticRegression(C=np.inf, max_iter=1000).fit(X, y)
    expected = logistic_intervals(free, X, X)
    free.penalty, free.C = None, 0.01  # as before scikit-learn 1.8
    np.testing.assert_allclose(logistic_intervals(free, X, X), expected, rtol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_intervals_of_a_penalised_fit_by_hand(intercept):
    """The penalty of every coefficient, not of the intercept, is added to the information."""
    X, y = make_classification(200, n_features=4, random_state=0)
    weight = np.random.default_rng(0).exponential(size=200)
    model = LogisticRegression(C=0.02, fit_intercept=intercept).fit(
        X, y, sample_weight=weight
    )
    rows, p = (
        np.column_stack([X, np.ones(200)][: 1 + intercept]),
        model.predict_proba(X)[:, 1],
    )
    penalty = np.diag([50.0] * 4 + [0.0] * intercept)
    covariance = np.linalg.inv((rows.T * (weight * p * (1 - p))) @ rows + penalty)
    error = np.sqrt(np.diag(rows @ covariance @ rows.T))
    z = model.decision_function(X)
    for level, factor in ((0.95, 1.959964), (0.5, 0.674490)):
        found = logit(
            logistic_intervals(model, X, X, sample_weight=weight, level=level)
        )
        expected = np.column_stack([z - factor * error, z + factor * error])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_bad_intervals():
    p, y = [0.1, 0.5, 0.9], [0, 1, 1]
    with raises_invalid_input(
        ValueError, expected="neighborhood='interval' with intervals"
    ):
        AdaptiveCalibration().fit(p, y, intervals=np.zeros((3, 2)))
    acp = AdaptiveCalibration("interval")
    with raises_invalid_input(ValueError, expected=r"intervals of shape \(3, 2\)"):
        acp.fit(p, y, intervals=np.zeros((2, 2)))
    with raises_invalid_input(
        ValueError, expected=".*0 <= lower <= upper <= 1", value=r"\[0.5, 0.2\]", row=1
    ):
        acp.fit(p, y, intervals=[[0, 1], [0.5, 0.2], [0, 1]])
    three = np.full((6, 3), 1 / 3) + np.eye(3)[[0, 1, 2] * 2] * 0.1 - 0.1 / 3
    with raises_invalid_input(ValueError, expected="intervals for two classes only"):
        acp.fit(three, [0, 1, 2] * 2, intervals=np.tile([0.0, 1.0], (6, 1)))
    with raises_invalid_input(TypeError, expected=".*a fitted LogisticRegression"):
        logistic_intervals(acp, np.zeros((3, 1)), np.zeros((3, 1)))


@pytest.mark.parametrize("neighborhood", ["nearest", "interval"])
def test_rounding_noise_decides_nothing(neighborhood):
    """The map jumps between numbers of 36 bits, not among scores that are ties."""
    method = AdaptiveCalibration(neighborhood, prior_weight=0).fit(
        *make_overconfident(2, 300)
    )

    def value(x):
        return method.predict_proba(convert_log_odds(x))[:, 1]

    grid = np.linspace(-4.0, 4.0, 4001)
    jump = np.flatnonzero(np.abs(np.diff(value(grid))) > 1e-4)[::5]
    assert len(jump) > 10
    low, high = grid[jump], grid[jump + 1]
    for _ in range(60):  # until they are neighbours
        middle = low + (high - low) / 2
        same = value(middle) == value(low)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    below, above = (
        compute_rounded_unclipped_log_odds(convert_log_odds(x)) for x in (low, high)
    )
    assert (below < above).all()


@pytest.mark.parametrize("C", [0.3, np.inf])
def test_logistic_intervals_know_the_unit_of_weights(C):
    """Weights of a quarter are a quarter of the information, beside a penalty that stays."""
    X, y = make_classification(
        80, n_features=5, n_redundant=0, class_sep=0.3, random_state=0
    )
    weight = np.where(np.arange(80) % 2, 0.25, 0.5)
    model = LogisticRegression(C=C, max_iter=1000).fit(X, y, sample_weight=weight)
    both, p = np.column_stack([X, np.ones(80)]), model.predict_proba(X)[:, 1]
    information = (both * (weight * p * (1 - p))[:, None]).T @ both
    information += np.diag([1 / C] * 5 + [0.0])
    half = 1.959963984540054 * np.sqrt(
        ((both @ np.linalg.inv(information)) * both).sum(axis=1)
    )
    ends = logit(logistic_intervals(model, X, X, sample_weight=weight))
    np.testing.assert_allclose((ends[:, 1] - ends[:, 0]) / 2, half, rtol=1e-9)


def test_intervals_end_where_the_crossings_say():
    """Each root is a score whose interval of Wald ends at the point it was found for."""
    rng = np.random.default_rng(0)
    p = rng.random(60).round(2).clip(0.02, 0.98)
    y = (rng.random(60) < p).astype(int)
    wald = AdaptiveCalibration("interval").fit(p, y)._wald
    for point in (-2.0, -0.3, 0.0, 1.7):
        roots = wald.solve_log_odds_for_interval_ends(np.array([point]))
        gaps = [np.abs(end - point) for end in wald.compute_ends(roots)]
        assert len(roots) == 2
        found = np.min(gaps, axis=0)
        assert (found < 1e-9).all(), f"interval at {point}: expected 0, got {found}"
