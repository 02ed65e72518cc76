"""The stack: weights, folds, chains, candidates that fail, small and degenerate samples."""

import warnings

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib._kernels._mixture_proportions import fit_mixture_weights
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    Identity,
    PlattScaling,
    SplineCalibration,
    StackedCalibration,
    TemperatureScaling,
    cross_fitted_proba,
    get_recalibrator,
)
from sklearn_calib.recalibrators._auto import list_candidates
from sklearn_calib.recalibrators._stacking import compute_fit_and_held_out_weights

MANY = 10**9


def bent(n, seed=0):
    rng = np.random.default_rng(seed)
    x = 2 * rng.normal(size=n)
    return expit(x), (rng.random(n) < expit(0.7 * x + np.sin(x))).astype(int)


class Failing(ClassifierMixin, BaseEstimator):
    """Fails on fewer or on more rows than some number, or predicts what is not a number."""

    def __init__(self, fewest=0, most=MANY, value=None):
        self.fewest = fewest
        self.most = most
        self.value = value

    def fit(self, X, y):
        if not self.fewest <= len(y) <= self.most:
            raise RuntimeError("rows out of range")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        proba = np.full(np.shape(X), 1 / np.shape(X)[1])
        return proba if self.value is None else proba * self.value


class Counted(TemperatureScaling):
    fits = 0

    def _fit(self, proba, codes, weight):
        type(self).fits += 1
        super()._fit(proba, codes, weight)


# -- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.05, 1.0, 20.0])
def test_weights_are_the_maximum(alpha):
    """The derivatives are equal: sum_i mass_i A_im / (A w)_i + prior_m / w_m is n + alpha."""
    rng = np.random.default_rng(0)
    table = rng.random((300, 5)) ** 3 + 1e-6
    table[:, 1] *= 1e-4  # hopeless
    table[:, 3] = table[:, 2] * (1 + 1e-9 * rng.random(300))  # twins
    mass = rng.exponential(size=300)
    prior = alpha * np.array([0.5, 0.125, 0.125, 0.125, 0.125])
    weights = fit_mixture_weights(table, mass, prior)
    assert abs(weights.sum() - 1) < 1e-12
    assert weights.min() > 0
    slope = mass @ (table / (table @ weights)[:, None]) + prior / weights
    assert np.abs(slope / (mass.sum() + alpha) - 1).max() < 1e-5
    assert abs(weights[2] - weights[3]) < 1e-4


def test_weights_without_rows_are_the_prior():
    prior = np.array([2.0, 1.0, 1.0])
    assert np.allclose(
        fit_mixture_weights(np.ones((1, 3)), np.ones(1), prior), prior / 4, atol=1e-9
    )
    p, y = bent(400)
    held = StackedCalibration(alpha=1e7).fit(p, y).weights_
    assert abs(held["identity"] - 0.025) < 1e-3
    assert abs(held["default"] - 0.95) < 1e-3
    assert abs(held["spline"] - 0.025 / 3) < 1e-3
    plain = (
        StackedCalibration(["identity", "platt", "beta"], alpha=1e7).fit(p, y).weights_
    )
    assert abs(plain["beta"] - 0.25) < 1e-3
    equal = StackedCalibration(["platt", "beta"], alpha=1e7).fit(p, y).weights_
    assert abs(equal["platt"] - 0.5) < 1e-3


def test_the_best_candidate_gets_the_weight():
    p, y = bent(3000)
    chosen = StackedCalibration({"wrong": DummyClassifier(), "bent": "spline"}).fit(
        p, y
    )
    assert chosen.weights_["bent"] > 0.95
    table = chosen.to_frame()
    assert list(table.index) == ["bent", "wrong"]
    assert table.loc["bent", "cv_loss"] < table.loc["wrong", "cv_loss"]
    assert set(chosen.recalibrators_) <= {"bent", "wrong"}
    assert isinstance(chosen.recalibrators_["bent"], SplineCalibration)
    mean, error = chosen.cv_losses_["bent"]
    assert abs(mean - log_loss(y, cross_fitted_proba("spline", p, y))) < 0.01
    assert 0 < error < 0.02


def test_prediction_is_the_mixture():
    p, y = bent(1500)
    stack = StackedCalibration().fit(p, y)
    mixed = sum(
        stack.weights_[name] * one.predict_proba(p)
        for name, one in stack.recalibrators_.items()
    )
    mixed = (mixed + canonical_proba(p) / 1500) / (1 + 1 / 1500)
    assert np.abs(stack.predict_proba(p) - mixed).max() < 1e-12
    assert log_loss(y, stack.predict_proba(p)) < log_loss(y, p) - 0.01


# -- folds --------------------------------------------------------------------------------------


def test_folds_are_a_stratified_partition():
    proba, y = make_overconfident(4, 503)
    weight = np.random.default_rng(1).integers(0, 4, 503).astype(float)
    for given in (np.ones(503), weight, weight + 0.5):
        folds = compute_fit_and_held_out_weights(proba, y, given, 5, MANY)
        assert np.allclose(sum(left for _, left in folds), given)
        assert all(np.allclose(kept + left, given) for kept, left in folds)
    for _, left in compute_fit_and_held_out_weights(proba, y, np.ones(503), 5, MANY):
        assert np.abs(np.bincount(y, left) - np.bincount(y) / 5).max() < 1


@pytest.mark.slow
@pytest.mark.parametrize("k", [10, 26])
def test_no_fold_is_empty_where_classes_have_fewer_rows_than_folds(k):
    """Three or four rows of each class: dealt class by class, the fifth fold had none."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(k, 0.5), 4 * k)
    y = np.repeat(np.arange(k), 4)[: 4 * k - 1]
    proba = proba[: len(y)]
    sizes = [
        left.sum()
        for _, left in compute_fit_and_held_out_weights(
            proba, y, np.ones(len(y)), 5, MANY
        )
    ]
    assert max(sizes) - min(sizes) <= 1
    other = rng.permutation(k)
    swapped = compute_fit_and_held_out_weights(
        proba[:, np.argsort(other)], other[y], np.ones(len(y)), 5, MANY
    )
    assert sorted(sizes) == sorted(left.sum() for _, left in swapped)
    assert StackedCalibration().fit(proba, y).weights_


def test_copies_of_a_row_fall_into_different_folds():
    proba, y = canonical_proba(np.repeat([0.2, 0.7], 500)), np.tile([0, 1], 500)
    shares = [
        y @ left / left.sum()
        for _, left in compute_fit_and_held_out_weights(
            proba, y, np.ones(1000), 5, MANY
        )
    ]
    assert np.ptp(shares) < 0.01
    inner = [
        (y[:500] @ left[:500]) / left[:500].sum()
        for _, left in compute_fit_and_held_out_weights(
            proba, y, np.ones(1000), 5, MANY
        )
    ]
    assert np.ptp(inner) > 0.005  # by chance, not dealt out evenly at each score


@pytest.mark.slow
@pytest.mark.parametrize("digits", [1, 12])
def test_held_out_losses_do_not_flatter_flexible_maps(digits):
    """Folds balanced at each score would let isotonic regression see the noise it is tested on."""
    rng = np.random.default_rng(2)
    differences = []
    for _ in range(12):
        p = np.clip(rng.random(400).round(digits), 0.02, 0.98)
        y = (rng.random(400) < 0.5).astype(int)
        ours = StackedCalibration(["venn_abers"]).fit(p, y).cv_losses_["venn_abers"][0]
        differences.append(ours - log_loss(y, cross_fitted_proba("venn_abers", p, y)))
    assert abs(np.mean(differences)) < 3.5 * np.std(differences) / np.sqrt(12) + 1e-3


def test_a_sample_of_many_rows():
    p, y = bent(5000)
    proba = canonical_proba(p)
    for weight in (np.ones(5000), np.full(5000, 40.0), np.linspace(0.1, 2.3, 5000)):
        folds = compute_fit_and_held_out_weights(proba, y, weight, 5, 1000)
        left = sum(left for _, left in folds)
        total = 1000 if (weight == np.floor(weight)).all() else weight.sum()
        assert abs(left.sum() - total) < 1e-6 * total
        assert abs(left @ y / left.sum() - weight @ y / weight.sum()) < 0.002
        assert abs(left @ p / left.sum() - weight @ p / weight.sum()) < 0.03


@pytest.mark.slow
def test_processes():
    p, y = bent(300)
    assert (
        StackedCalibration(n_jobs=2).fit(p, y).weights_
        == StackedCalibration().fit(p, y).weights_
    )


def test_other_splitters():
    p, y = bent(300)
    plain = StackedCalibration().fit(p, y)
    split = StackedCalibration(cv=KFold(4, shuffle=True, random_state=3)).fit(p, y)
    assert split.weights_ != plain.weights_
    assert np.abs(split.predict_proba(p) - plain.predict_proba(p)).max() < 0.1


# -- candidates ---------------------------------------------------------------------------------


def test_candidates_that_fail_are_left_out_and_named():
    p, y = bent(300)
    for culprit in (Failing(fewest=10_000), Failing(most=260), Failing(value=np.nan)):
        with pytest.warns(
            CalibrationWarning, match="'culprit'.*It is left out"
        ) as caught:
            stack = StackedCalibration({"culprit": culprit, "platt": "platt"}).fit(p, y)
        assert len(caught) == 1
        assert stack.weights_ == {"platt": 1.0}
        assert list(stack.recalibrators_) == ["platt"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        with raises_invalid_input(
            ValueError, expected="a candidate", value="none: RuntimeError: rows out"
        ):
            StackedCalibration([Failing(fewest=10_000)]).fit(p, y)
        with raises_invalid_input(
            ValueError, expected="a candidate", value="none: RuntimeError: rows out"
        ):
            StackedCalibration([Failing(most=260)]).fit(p, y)


def test_refused_candidates():
    p, y = bent(100)
    with raises_invalid_input(
        TypeError, expected=".*a name or an instance with fit and predict_proba"
    ):
        StackedCalibration([LinearSVC()]).fit(p, y)
    with raises_invalid_input(TypeError, expected=".*a list of names and instances"):
        StackedCalibration([]).fit(p, y)
    with raises_invalid_input(TypeError, expected=".*a list of names and instances"):
        StackedCalibration("platt").fit(p, y)
    with raises_invalid_input(ValueError, expected="one of"):
        StackedCalibration(["plat"]).fit(p, y)
    with raises_invalid_input(
        ValueError, expected=".*declare that they are monotone", value="'quadratic'"
    ):
        StackedCalibration(["platt", "quadratic"], monotone=True).fit(p, y)


def test_candidates_of_every_kind():
    p, y = bent(400)
    given = ["platt", PlattScaling(), "platt", LogisticRegression()]
    given.append(make_pipeline(TemperatureScaling(), PlattScaling()))
    stack = StackedCalibration(given).fit(p, y)
    assert list(stack.weights_)[:3] == ["platt", "PlattScaling()", "platt'"]
    assert len(stack.weights_) == 5
    assert abs(sum(stack.weights_.values()) - 1) < 1e-12
    assert np.isfinite(stack.predict_proba(p)).all()


def test_shared_first_steps_are_fitted_once():
    proba, y = make_overconfident(3, 200)
    first, Counted.fits = Counted(), 0
    chains = {
        "first": first,
        "platt": make_pipeline(first, PlattScaling()),
        "spline": make_pipeline(first, SplineCalibration()),
    }
    stack = StackedCalibration(chains, alpha=30.0).fit(proba, y)
    assert Counted.fits == 5 + 1
    alone = make_pipeline(TemperatureScaling(), PlattScaling()).fit(proba, y)
    found = stack.recalibrators_["platt"].predict_proba(proba)
    assert np.abs(found - alone.predict_proba(proba)).max() < 1e-12


def test_candidates_by_size():
    names = ["identity", "default", "spline", "venn_abers"]
    assert list(list_candidates(2, 999)) == [*names, "platt"]
    assert list(list_candidates(2, 1000)) == [*names, "quadratic"]
    few = list_candidates(10, 999)
    assert few["default, shared spline"][1].shared
    assert few["default, shared spline"][0] is few["default"][0]  # fitted once
    assert "default, shared spline" not in list_candidates(10, 1000)
    assert "default, spline" in list_candidates(10, 500)
    assert "default, shared spline" in list_candidates(60, 500)
    assert "default" not in list_candidates(300, 500)
    for n in (500, 5000):
        for chain in list_candidates(2, n, monotone=True).values():
            assert all(step.capabilities.monotone for step in chain)


@pytest.mark.slow
def test_many_classes():
    proba, y = make_overconfident(60, 900)
    stack = StackedCalibration(cv=2).fit(proba[:600], y[:600], classes=range(60))
    held = log_loss(y[600:], stack.predict_proba(proba[600:]), labels=range(60))
    assert held < log_loss(y[600:], proba[600:], labels=range(60))


# -- monotone -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_monotone():
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    y = (rng.random(2000) < np.clip(p + 0.3 * np.sin(9 * p), 0, 1)).astype(int)
    stack = StackedCalibration(monotone=True).fit(p, y)
    assert {*stack.cv_losses_} == {*list_candidates(2, 2000, monotone=True)}
    grid = stack.predict_proba(np.linspace(0, 1, 4001))[:, 1]
    assert np.diff(grid).min() >= -1e-12
    with pytest.warns(CalibrationWarning, match="scores that rise with the outcome"):
        upside_down = StackedCalibration(monotone=True).fit(p, 1 - y)
    assert (
        np.diff(upside_down.predict_proba(np.linspace(0, 1, 4001))[:, 1]).min()
        >= -1e-12
    )
    assert "default" not in upside_down.recalibrators_
    with (
        pytest.warns(CalibrationWarning, match="scores that rise with the outcome"),
        raises_invalid_input(ValueError, value="only maps that fall"),
    ):
        StackedCalibration(["platt"], monotone=True).fit(p, 1 - y)


# -- small and degenerate samples ---------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.parametrize("n", [2, 9, 19])
@pytest.mark.parametrize("k", [2, 3])
def test_few_rows(n, k):
    proba, _ = make_overconfident(k, 100)
    y = np.arange(n) % k
    with pytest.warns(CalibrationWarning, match="enough rows of two classes"):
        stack = StackedCalibration().fit(proba[:n], y, classes=range(k))
    assert stack.cv_losses_ == {}
    assert stack.weights_["identity"] == pytest.approx(0.025)
    assert stack.to_frame()["cv_loss"].isna().all()
    assert np.isfinite(stack.predict_proba(proba)).all()


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.slow
def test_a_class_with_one_row_and_one_without():
    proba, y = make_overconfident(3, 300)
    y[y == 2] = 1
    y[7] = 2
    for n_of_two in (1, 0):
        labels = np.where((y == 2) & (n_of_two == 0), 1, y)
        stack = StackedCalibration().fit(proba, labels, classes=[0, 1, 2])
        out = stack.predict_proba(proba)
        assert np.isfinite(out).all()
        mean = out[:, 2].mean()
        if n_of_two:
            assert 0 < mean < 0.1
        else:  # nothing is known about it but what was predicted
            assert abs(mean - proba[:, 2].mean()) < 0.05


def test_constant_scores():
    y = np.arange(100) % 4 > 0
    with pytest.warns(CalibrationWarning, match="at least two different rows"):
        stack = StackedCalibration().fit(np.full(100, 0.4), y)
    assert abs(stack.predict_proba([0.4])[0, 1] - 0.75) < 0.05


def test_all_correct_labels():
    p, _ = bent(300)
    stack = StackedCalibration().fit(p, (p > 0.5).astype(int))
    out = stack.predict_proba(p)[:, 1]
    assert np.isfinite(out).all()
    assert ((out > 0.5) == (p > 0.5)).all()
    assert log_loss(p > 0.5, out) < log_loss(p > 0.5, p)


def test_exact_zeros_of_a_forest():
    """The floor keeps the identity candidate from calling a label impossible."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 5))
    y = (rng.random(3000) < expit(X[:, 0] + X[:, 1])).astype(int)
    forest = RandomForestClassifier(30, random_state=0).fit(X[:1000], y[:1000])
    calib, test = (
        forest.predict_proba(part)[:, 1] for part in (X[1000:2000], X[2000:])
    )
    assert (calib == 0).any() and (test == 0).any()
    stack = StackedCalibration().fit(calib, y[1000:2000])
    found = log_loss(y[2000:], stack.predict_proba(test))
    # scikit-learn's for forests
    sigmoid = PlattScaling("proba").fit(calib, y[1000:2000])
    assert found < log_loss(y[2000:], test)
    assert found < 1.01 * log_loss(y[2000:], sigmoid.predict_proba(test))


# -- in its place -------------------------------------------------------------------------------


@pytest.mark.slow
def test_by_its_name():
    assert isinstance(get_recalibrator("auto"), StackedCalibration)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    y = np.where(rng.random(400) < expit(2 * X[:, 0]), "yes", "no")
    model = CalibratedModel(LogisticRegression(), "auto").fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < 0.6


def test_progress():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9")
    seen = []

    class Watch:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **more):
            seen.append(context.task_name)

        def on_fit_task_end(self, estimator, context, **more):
            pass

        def teardown(self, estimator, context):
            pass

    assert hasattr(callback, "ProgressBar")
    StackedCalibration().set_callbacks(Watch()).fit(*bent(200))
    assert seen.count("fold") == 6


@pytest.mark.slow
def test_weights_that_are_not_whole():
    p, y = bent(600)
    weight = np.random.default_rng(6).exponential(size=600)
    stack = StackedCalibration().fit(p, y, sample_weight=weight)
    assert np.isfinite(stack.predict_proba(p)).all()
    doubled = StackedCalibration().fit(p, y, sample_weight=1.7 * np.ones(600))
    plain = StackedCalibration().fit(p, y)
    assert doubled.cv_losses_["identity"][0] == pytest.approx(
        plain.cv_losses_["identity"][0]
    )
    assert doubled.cv_losses_["identity"][1] == pytest.approx(
        plain.cv_losses_["identity"][1]
    )


def test_identity_alone_changes_nothing():
    p, y = bent(100)
    stack = StackedCalibration([Identity()]).fit(p, y)
    assert np.abs(stack.predict_proba(p)[:, 1] - p).max() < 1e-12
