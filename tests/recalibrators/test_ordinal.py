"""Recalibration of ordered classes, against a direct optimiser and at its limits."""

import warnings

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib._kernels._ordinal import compute_cumulative_log_odds
from sklearn_calib._simplex_array import log_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_code, to_dict
from sklearn_calib.metrics import log_loss, ranked_probability_score
from sklearn_calib.recalibrators import (
    OrdinalCalibration,
    PlattScaling,
    all_recalibrators,
)


def make_grades(k, n=300, seed=0, factor=2.0, shift=0.5):
    """Grades of a latent number, and probabilities too certain and too high by these."""
    rng = np.random.default_rng(seed)
    eta = 2 * rng.normal(size=n)[:, None] - np.linspace(-3, 3, k - 1)
    y = (rng.random(n)[:, None] < expit(eta)).sum(axis=1)
    above = np.column_stack([np.ones(n), expit(factor * eta + shift), np.zeros(n)])
    return -np.diff(above, axis=1), y


def above(proba):
    return proba[:, ::-1].cumsum(axis=1)[:, -2::-1]


def objective(parameters, P, y, prior):
    """The penalised loss, written down directly."""
    slope, shifts = (
        parameters[0],
        parameters[1] - np.append(0, np.cumsum(parameters[2:])),
    )
    G = expit(slope * logit(above(P)) + shifts)
    new = -np.diff(np.column_stack([np.ones(len(P)), G, np.zeros(len(P))]), axis=1)
    target = prior / len(P) * P
    target[np.arange(len(P)), y] += 1
    return -(target * np.log(np.maximum(new, 1e-300))).sum()


@pytest.mark.parametrize(("k", "prior"), [(3, 1.0), (5, 1e-6), (4, 20.0)])
def test_the_fit_is_that_of_a_direct_optimiser(k, prior):
    P, y = make_grades(k)
    P = canonical_proba(0.97 * P + 0.03 / k)
    if k == 5:
        y = np.where(y == 2, 1, y)  # a class hardly occurs: a shift is at its bound
        y[-1] = 2
    weight = np.ones(len(y))
    weight[-1] = 1e-9
    model = OrdinalCalibration(prior).fit(P, y, weight)
    P, y = P[:-1], y[:-1]
    mine = np.r_[model.slope_, model.shifts_[0], -np.diff(model.shifts_)]
    bounds = [(0, None), (None, None)] + [(0, None)] * (k - 2)
    start = np.r_[1.0, 0.0, np.full(k - 2, 0.1)]
    given = {"args": (P, y, prior), "bounds": bounds, "tol": 1e-14}
    direct = minimize(
        objective, start, method="L-BFGS-B", options={"maxiter": 10_000}, **given
    )
    assert objective(mine, P, y, prior) <= direct.fun + 1e-8
    np.testing.assert_allclose(mine, direct.x, atol=2e-3)
    assert (mine[2:] >= 0).all() and (k != 5 or min(mine[2:4]) < 1e-6)


def test_two_classes_are_platt_scaling():
    P, y = make_grades(2)
    ordinal = OrdinalCalibration(1e-9).fit(P, y)
    platt = PlattScaling(smooth_targets=False).fit(P, y)
    assert ordinal.slope_ == pytest.approx(platt.slope_, abs=1e-6)
    assert ordinal.shifts_ == pytest.approx([platt.intercept_], abs=1e-6)


@pytest.mark.parametrize("k", [3, 6])
def test_it_finds_the_distortion(k):
    P, y = make_grades(k, 6000)
    model = OrdinalCalibration().fit(P, y)
    assert model.slope_ == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(model.shifts_, -0.25, atol=0.2)
    new, labels = make_grades(k, 3000, seed=1)
    after = model.predict_proba(new)
    for loss in (log_loss, ranked_probability_score):
        assert loss(labels, after) < 0.97 * loss(labels, new)


def test_cumulative_probabilities_keep_their_order():
    rng = np.random.default_rng(0)
    for k in (3, 7):
        P, y = rng.dirichlet(np.full(k, 0.3), 200), rng.integers(k, size=200)
        model = OrdinalCalibration().fit(P, y)
        assert model.slope_ >= 0 and (np.diff(model.shifts_) <= 0).all()
        after = model.predict_proba(P)
        assert after.min() >= 0 and np.abs(after.sum(axis=1) - 1).max() <= 1e-15 * k
        order = np.argsort(above(P)[:, 1], kind="stable")
        assert (np.diff(above(after)[order, 1]) >= -1e-15).all()


def test_upside_down_it_is_the_same():
    P, y = make_grades(4)
    one = OrdinalCalibration().fit(P, y)
    other = OrdinalCalibration().fit(P[:, ::-1], 3 - y)
    assert other.slope_ == pytest.approx(one.slope_, abs=1e-7)
    np.testing.assert_allclose(other.shifts_, -one.shifts_[::-1], atol=1e-7)
    names = np.array(["poor", "fair", "good", "best"])
    named = OrdinalCalibration().fit(P, names[y], classes=names)
    np.testing.assert_array_equal(named.predict_proba(P), one.predict_proba(P))


def test_weights_are_repetition():
    P, y = make_grades(4, 100)
    weight = np.random.default_rng(0).integers(0, 3, 100)
    rows = np.repeat(np.arange(100), weight)
    one = OrdinalCalibration().fit(P, y, weight)
    two = OrdinalCalibration().fit(P[rows], y[rows])
    np.testing.assert_allclose(one.predict_proba(P), two.predict_proba(P), atol=1e-9)


def test_scores_at_odds_with_the_labels():
    P, y = make_grades(4, 2000)
    with pytest.warns(CalibrationWarning, match="scores that rise with the outcome"):
        model = OrdinalCalibration().fit(P[:, ::-1], y)
    assert 0 <= model.slope_ < 1e-9
    share = np.bincount(y) / len(y)
    np.testing.assert_allclose(
        model.predict_proba(P[:3]), np.tile(share, (3, 1)), atol=2e-3
    )


def test_separated_and_equal_rows():
    P = np.eye(3)[[0, 1, 2] * 10] * 0.97 + 0.01
    model = OrdinalCalibration().fit(P, [0, 1, 2] * 10)
    after = model.predict_proba(P)
    assert np.isfinite(model.slope_) and 1 < model.slope_ < 20
    assert (after.argmax(axis=1) == [0, 1, 2] * 10).all() and after.max() < 1
    with pytest.warns(UserWarning, match="at least two different rows"):
        model = OrdinalCalibration(1e-6).fit(
            np.tile([[0.2, 0.3, 0.5]], (10, 1)), [0, 1, 1, 2, 2] * 2
        )
    np.testing.assert_allclose(
        model.predict_proba([[0.2, 0.3, 0.5]]), [[0.2, 0.4, 0.4]], atol=1e-5
    )


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_missing_classes_are_rare_not_impossible():
    P, y = make_grades(5, 200)
    for missing in ({0}, {4}, {2}, {1, 2}, {0, 4}):
        kept = ~np.isin(y, list(missing))
        model = OrdinalCalibration().fit(P[kept], y[kept], classes=range(5))
        after = model.predict_proba(P)
        assert 0 < after[:, list(missing)].mean() < P[:, list(missing)].mean()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
def test_scores_of_any_size(scale):
    """No warning that the optimum is not reached."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(5):
            k, n = rng.integers(2, 8), rng.integers(5, 150)
            z = scale * rng.normal(size=(n, k))
            y = np.clip(
                z.argmax(axis=1) + rng.integers(-1, 2, n) * (seed % 3 > 0), 0, k - 1
            )
            prior = 10 ** rng.uniform(-6, 2)
            proba = canonical_proba(z, kind="logits")
            model = OrdinalCalibration(prior).fit(proba, y, classes=range(k))
            assert np.isfinite(model.predict_proba(proba)).all()


def test_thresholds_have_all_their_digits():
    log = np.log([[0.2, 1e-30, 0.3, 0.5 - 1e-30], [1e-300, 1e-200, 1e-100, 1.0]])
    z, gap = compute_cumulative_log_odds(log)
    np.testing.assert_allclose(
        gap[0], [1e-30 / 0.8 + 1e-30 / 0.2, logit(0.8) - logit(0.5)]
    )
    np.testing.assert_allclose(
        z[1], [200 * np.log(10) * 0 + 690.7755279, 460.5170186, 230.2585093]
    )
    P, _ = make_grades(4, 50)
    z, gap = compute_cumulative_log_odds(np.asarray(log_proba(canonical_proba(P))))
    np.testing.assert_allclose(z, logit(above(P)), atol=1e-9)
    np.testing.assert_allclose(gap, -np.diff(z, axis=1), atol=1e-9)


def test_bad_arguments():
    P, y = make_grades(3, 50)
    for prior in (0, -1, np.inf, "much"):
        with pytest.raises(ValueError, match="'prior_weight' parameter"):
            OrdinalCalibration(prior).fit(P, y)
    assert all_recalibrators()["ordinal"] is OrdinalCalibration
    assert clone(OrdinalCalibration(3.0)).prior_weight == 3.0


def test_bad_nodes_are_refused():
    tree = {"node": "cumulative_affine", "slope": 1.0, "shifts": [0.5, 0.0]}
    P, y = make_grades(3, 50)
    document = OrdinalCalibration().fit(P, y)
    whole = to_dict(document)
    for change, message in (
        ({"shifts": [0.0, 0.5]}, "numbers that do not rise"),
        ({"shifts": [0.0]}, "2 numbers"),
        ({"slope": -1.0}, ">= 0"),
    ):
        with raises_invalid_input(ValueError, expected=f".*{message}"):
            from_dict({**whole, "map": tree | change})
    assert "def " in to_code(whole, "python")


# -- the order of the scale and the order of the columns -----------------------------------------

GRADES = np.array(["poor", "fair", "good", "excellent"])
COLUMNS = np.argsort(GRADES)  # excellent, fair, good, poor


def named_grades():
    P, y = make_grades(4, 400)
    return P, y, P[:, COLUMNS], GRADES[y]


def test_order_is_that_of_the_scale():
    P, y, proba, names = named_grades()
    numbered = OrdinalCalibration().fit(P, y)
    model = OrdinalCalibration(order=GRADES).fit(proba, names)
    assert model.slope_ == pytest.approx(numbered.slope_) and model.slope_ > 0.3
    np.testing.assert_allclose(model.shifts_, numbered.shifts_)
    assert model.order_.tolist() == GRADES.tolist()
    assert model.classes_.tolist() == sorted(GRADES)
    np.testing.assert_allclose(
        model.predict_proba(proba), numbered.predict_proba(P)[:, COLUMNS]
    )
    exported = from_dict(to_dict(model))
    np.testing.assert_allclose(
        exported.predict_proba(proba), model.predict_proba(proba)
    )
    by_columns = OrdinalCalibration(order=GRADES).fit(P, names, classes=GRADES)
    np.testing.assert_allclose(by_columns.predict_proba(P), numbered.predict_proba(P))


@pytest.mark.parametrize("order", [GRADES[:3], [*GRADES, "poor"], [*GRADES[:3], "bad"]])
def test_order_names_every_class(order):
    _, _, proba, names = named_grades()
    with raises_invalid_input(ValueError):
        OrdinalCalibration(order=order).fit(proba, names)


def test_classes_do_not_move_columns():
    """`classes` names the columns; an order of a scale that they do not have is said."""
    P, y, proba, names = named_grades()
    message = r"columns in the order of classes=\['poor', .* fit \['excellent', 'fair', .*not move"
    for method in (OrdinalCalibration(), PlattScaling()):
        with pytest.warns(CalibrationWarning, match=message) as caught:
            method.fit(proba, names, classes=GRADES)
        assert caught[0].filename == __file__
        # warnings are errors: columns that are in that order
        method.fit(P, names, classes=GRADES)
    PlattScaling().fit(proba, names)
    with raises_invalid_input(ValueError, expected="the order of a scale"):
        # sorted by the alphabet they are not scale
        OrdinalCalibration().fit(proba, names)
    with pytest.warns(
        CalibrationWarning, match=r"order of labels=\['poor', .*fit \['excellent'"
    ):
        ranked_probability_score(names, proba, labels=GRADES)
    right = ranked_probability_score(names, P, labels=GRADES)
    assert right == pytest.approx(ranked_probability_score(y, P))


def test_an_ordered_categorical_is_the_scale():
    P, y, proba, names = named_grades()
    numbered = OrdinalCalibration().fit(P, y)
    model = OrdinalCalibration().fit(proba, pd.Categorical(names, GRADES, ordered=True))
    assert model.order_.tolist() == GRADES.tolist()
    np.testing.assert_allclose(model.shifts_, numbered.shifts_, atol=1e-9)
    with raises_invalid_input(ValueError, expected="the order of a scale"):
        OrdinalCalibration().fit(proba, pd.Categorical(names))
    with raises_invalid_input(ValueError, expected="the order of a scale"):
        CalibratedModel(LogisticRegression(), OrdinalCalibration(), cv=2).fit(
            proba, names
        )
    ordered = OrdinalCalibration(order=GRADES)
    CalibratedModel(LogisticRegression(), ordered, cv=2).fit(proba, names)


def test_grades_that_fall():
    P, y, _, names = named_grades()
    with pytest.warns(CalibrationWarning, match="scores that rise with the outcome"):
        OrdinalCalibration().fit(P[:, ::-1], y)
    with pytest.warns(CalibrationWarning, match="scores that rise with the outcome"):
        OrdinalCalibration(order=GRADES).fit(P[:, ::-1][:, COLUMNS], names)


def test_too_many_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 501, 2000)
    with raises_invalid_input(
        ValueError, expected=".*at most 500 classes, ", value="501"
    ):
        OrdinalCalibration().fit(
            rng.dirichlet(np.ones(501), 2000), y, classes=range(501)
        )
