"""Approximate leave-one-out scores beside those of refits, and CalibratedModel(cv="alo")."""

import warnings

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.linear import approximate_leave_one_out
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import TemperatureScaling

EXACT = {"tol": 1e-10, "max_iter": 20_000}


def logistic(**options):
    return LogisticRegression(**{"C": 2.0, **EXACT, **options})


def elastic(ratio, **options):
    """The spelling of the penalty changed in scikit-learn 1.8."""
    model = LogisticRegression(
        C=1.0, solver="saga", tol=1e-10, max_iter=100_000, **options
    )
    if model.get_params()["penalty"] == "deprecated":
        return model.set_params(l1_ratio=ratio)
    return model.set_params(penalty="elasticnet", l1_ratio=ratio)


def data(n, d, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 2 / np.sqrt(d) + (np.arange(d) < 3) * 0.5
    y = (X @ rng.standard_normal((d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return X, y


def refitted(model, X, y, weight=None, step=1):
    """Scores of each row by a model fitted on the others, with the same penalty on their sum."""
    found = []
    for row in range(0, len(y), step):
        rest = np.arange(len(y)) != row
        params = {} if weight is None else {"sample_weight": weight[rest]}
        one = clone(model)
        if isinstance(model, SGDClassifier):
            one.set_params(alpha=model.alpha * len(y) / (len(y) - 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            one.fit(X[rest], y[rest], **params)
        found.append(one.decision_function(X[[row]])[0])
    return np.array(found)


def rms(a, b):
    a, b = (x - x.mean(axis=1, keepdims=True) if x.ndim == 2 else x for x in (a, b))
    return np.sqrt(np.mean((a - b) ** 2))


SMALL = [(80, 20), (50, 90)]
CASES = [
    (logistic(), 2, SMALL, 0.02),
    (logistic(fit_intercept=False), 2, SMALL, 0.02),
    (logistic(solver="liblinear", intercept_scaling=2.0), 2, SMALL, 0.02),
    (logistic(class_weight={0: 1.0, 1: 4.0}), 2, SMALL, 0.02),
    (logistic(class_weight="balanced"), 2, SMALL, 0.04),  # balanced anew in each refit
    (logistic(C=np.inf, solver="newton-cholesky"), 2, [(200, 8)], 0.02),
    (logistic(), 4, SMALL, 0.03),
    (logistic(fit_intercept=False), 3, SMALL, 0.03),
    (logistic(solver="liblinear"), 2, [(60, 60)], 0.02),
    (elastic(0.4), 2, [(80, 20)], 0.06),
    (elastic(1.0), 2, [(80, 20)], 0.12),
    (LinearSVC(C=0.3, **EXACT), 2, SMALL, 0.05),
    (LinearSVC(C=0.3, fit_intercept=False, **EXACT), 3, SMALL, 0.05),
    (RidgeClassifier(alpha=3.0), 2, SMALL, 1e-10),
    (RidgeClassifier(alpha=3.0, fit_intercept=False), 2, SMALL, 1e-10),
    (RidgeClassifier(alpha=3.0), 3, SMALL, 1e-10),
]


@run_every_case(
    ("model", "k", "shape", "tolerance"),
    [(model, k, shape, t) for model, k, shapes, t in CASES for shape in shapes],
)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_against_refits(model, k, shape, tolerance):
    """About 16 rows; the tolerance is relative to the standard deviation of the scores."""
    X, y = data(*shape, k)
    fitted, step = clone(model).fit(X, y), len(y) // 16
    exact = refitted(model, X, y, step=step)
    found = approximate_leave_one_out(fitted, X, y)
    assert len(found) == len(y)
    found, in_sample = found[::step], fitted.decision_function(X)[::step]
    assert found.shape == exact.shape
    assert rms(found, exact) <= tolerance * exact.std()
    assert rms(found, exact) <= 0.3 * rms(in_sample, exact)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "tolerance"),
    [
        (logistic(), 0.03),
        (RidgeClassifier(alpha=2.0), 1e-10),
        (LinearSVC(C=0.3, **EXACT), 0.08),
        (logistic(class_weight={0: 1, 1: 3, 2: 2}), 0.04),
    ],
)
def test_sample_weights(model, tolerance):
    X, y = data(80, 20, 3 if model.class_weight else 2)
    weight = np.random.default_rng(0).integers(0, 4, 80).astype(float)
    fitted = clone(model).fit(X, y, sample_weight=weight)
    exact = refitted(model, X, y, weight)
    found = approximate_leave_one_out(fitted, X, y, weight)
    assert rms(found, exact) <= tolerance * exact.std()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sgd_where_converged():
    X, y = data(60, 15)
    model = SGDClassifier(
        "log_loss", alpha=0.05, average=True, max_iter=20_000, tol=1e-9, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # stopped early, but near
        found = approximate_leave_one_out(clone(model).fit(X, y), X, y)
    same = logistic(C=1 / (0.05 * 60)).fit(X, y)
    assert_allclose(found, approximate_leave_one_out(same, X, y), atol=1e-6)
    hurried = clone(model).set_params(
        max_iter=5, tol=None, eta0=0.1, learning_rate="constant"
    )
    with raises_invalid_input(ValueError, expected="a converged fit of these rows"):
        approximate_leave_one_out(hurried.set_params(average=False).fit(X, y), X, y)


@pytest.mark.parametrize("model", [logistic(), LinearSVC(C=0.3, **EXACT)])
@pytest.mark.parametrize("d", [20, 150])
def test_sparse_rows(model, d):
    X = sparse.random(80, d, 0.2, random_state=0, format="csr")
    y = np.random.default_rng(0).integers(0, 2, 80)
    fitted = clone(model).fit(X, y)
    found = approximate_leave_one_out(fitted, X, y)
    assert_allclose(found, approximate_leave_one_out(fitted, X.toarray(), y), atol=1e-6)


@pytest.mark.slow
def test_at_scale_against_folds():
    """Log loss of the leave-one-out scores: that of 10-fold, and not that of the training."""
    X, y = data(1000, 1500)
    model = logistic(C=1.0)
    found = approximate_leave_one_out(clone(model).fit(X, y), X, y)
    folds = cross_val_predict(model, X, y, cv=10, method="decision_function")
    losses = [
        np.mean(np.logaddexp(0, -(2 * y - 1) * u))
        for u in (found, folds, clone(model).fit(X, y).decision_function(X))
    ]
    assert abs(losses[0] - losses[1]) < 0.02
    assert losses[2] < 0.7 * losses[0]


@pytest.mark.parametrize("free", [True, False])
def test_early_stop_is_carried_on(free):
    X, y = data(300, 40)
    early = LogisticRegression(C=2.0, tol=3e-3, fit_intercept=free).fit(X, y)
    coef = early.coef_.copy()
    with pytest.warns(
        CalibrationWarning, match="expected a converged fit, got .* smaller tol"
    ):
        found = approximate_leave_one_out(early, X, y)
    assert (early.coef_ == coef).all()  # the user's model stays as it is
    assert_allclose(
        found,
        approximate_leave_one_out(logistic(fit_intercept=free).fit(X, y), X, y),
        atol=1e-6,
    )
    sloppy = elastic(1.0).set_params(tol=0.3).fit(X, y)
    with pytest.warns(CalibrationWarning, match="conditions of optimality"):
        approximate_leave_one_out(sloppy, X, y)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_bad_input():
    X, y = data(80, 20)
    fitted = logistic().fit(X, y)
    refused = [
        (fitted, X[::-1], y, "expected a converged fit of these rows"),
        (
            fitted,
            X[:, :10],
            y,
            r"expected the training rows, with 20 features .* \(80, 10\)",
        ),
        (
            LinearSVC(loss="hinge", **EXACT).fit(X, y),
            X,
            y,
            "a twice differentiable loss",
        ),
        (SGDClassifier("hinge").fit(X, y), X, y, "one of the losses log_loss"),
        (RidgeClassifier(positive=True, alpha=1).fit(X, y), X, y, "any sign"),
        (elastic(0.5).fit(*data(80, 20, 3)), *data(80, 20, 3), "without l1 penalty"),
        (
            logistic(class_weight="balanced").fit(X, y, np.arange(80)),
            X,
            y,
            "in numbers",
        ),
    ]
    for model, rows, labels, message in refused:
        weight = np.arange(80) if "numbers" in message else None
        with pytest.raises(ValueError, match=message):
            approximate_leave_one_out(model, rows, labels, weight)
    for model in (GaussianNB().fit(X, y), LogisticRegressionCV(Cs=2, cv=2).fit(X, y)):
        with raises_invalid_input(
            TypeError, expected="a fitted LogisticRegression, RidgeClass"
        ):
            approximate_leave_one_out(model, X, y)
    with raises_invalid_input(ValueError, expected="a fitted model"):
        approximate_leave_one_out(logistic(), X, y)
    X, y = data(20, 30)
    with raises_invalid_input(
        ValueError, expected=".*row is left out", hint="Add a penalty"
    ):
        approximate_leave_one_out(RidgeClassifier(alpha=1e-14).fit(X, y), X, y)


# -- CalibratedModel(cv="alo") ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("recalibrator", ["platt", "temperature"])
@pytest.mark.parametrize(
    "model", [LogisticRegression(), RidgeClassifier(10.0), LinearSVC(C=0.01)], ids=repr
)
def test_calibrated_model(model, recalibrator):
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = rows[:400], rows[400:]
    wrapped = make_pipeline(StandardScaler(), model)
    alo, folds = (
        CalibratedModel(wrapped, recalibrator, cv=cv, ensemble=False).fit(
            X[train], y[train]
        )
        for cv in ("alo", 5)
    )
    losses = [log_loss(y[test], m.predict_proba(X[test])) for m in (alo, folds)]
    assert losses[0] < 1.1 * losses[1]
    assert len(alo.calibrated_pairs_) == 1
    exact = clone(wrapped)
    exact[-1].set_params(tol=1e-10, max_iter=100_000)
    exact = exact.fit(X[train], y[train]).decision_function(X[test])
    assert_allclose(alo.estimator_.decision_function(X[test]), exact, atol=1e-4)


def test_calibrated_model_two_classes_text_labels_and_frames():
    pd = pytest.importorskip("pandas")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    labels = y.map({0: "malignant", 1: "benign"})
    X = pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns)[:150]
    labels = labels[:150]
    model = CalibratedModel(LogisticRegression(C=10), "platt", cv="alo").fit(X, labels)
    assert list(model.classes_) == ["benign", "malignant"]
    assert list(model.feature_names_in_) == list(X.columns)
    fitted = LogisticRegression(C=10, **EXACT).fit(X, labels)
    u = approximate_leave_one_out(fitted, X, labels)
    assert_allclose(model.estimator_.coef_, fitted.coef_, atol=1e-5)
    prefit = CalibratedModel(FrozenEstimator(fitted), "platt", cv="alo").fit(X, labels)
    assert_allclose(prefit.predict_proba(X), model.predict_proba(X), atol=1e-6)
    weighted = CalibratedModel(LogisticRegression(C=10), "platt", cv="alo")
    twice = weighted.fit(X, labels, sample_weight=np.full(150, 2.0))
    # a weaker penalty
    assert twice.estimator_.coef_.std() > model.estimator_.coef_.std()
    assert u.shape == (150,)


@pytest.mark.slow
def test_text(monkeypatch):
    """A pipeline from words: sparse rows, more features than rows, three classes."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(400)])
    likely = rng.dirichlet(np.full(400, 1.0), 3)
    y = np.repeat(["arts", "law", "trade"], 40)
    texts = [
        " ".join(rng.choice(words, 6, p=likely[c])) for c in np.repeat([0, 1, 2], 40)
    ]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100.0))
    model = CalibratedModel(pipeline, "temperature", cv="alo").fit(texts, y)
    assert list(model.classes_) == ["arts", "law", "trade"]
    exact = make_pipeline(TfidfVectorizer(), logistic(C=100.0)).fit(texts, y)
    scores = canonical_proba(approximate_leave_one_out(exact, texts, y), kind="logits")
    expected = TemperatureScaling().fit(scores, y).temperature_
    assert_allclose(model.recalibrator_.temperature_, expected, rtol=1e-4)
    binary = CalibratedModel(pipeline, "platt", cv="alo").fit(texts, y == "law")
    assert binary.predict_proba(texts[:3]).shape == (3, 2)
    monkeypatch.setattr("sklearn_calib.linear._fit.MAX_HESSIAN_ORDER", 100)
    with raises_invalid_input(
        ValueError, expected=".*Hessian of at most 100 rows ", value="240"
    ):
        CalibratedModel(pipeline, "temperature", cv="alo").fit(texts, y)


def test_bytes_as_labels():
    X, y = data(80, 20)
    named = np.array([b"no", b"yes"])[y]
    model = CalibratedModel(logistic(), "platt", cv="alo")
    expected = clone(model).fit(X, y).predict_proba(X)
    model.fit(X, named)
    assert list(model.classes_) == [b"no", b"yes"]
    assert_allclose(model.predict_proba(X), expected, atol=1e-10)


def test_calibrated_model_bad_input():
    X, y = data(80, 20)
    with raises_invalid_input(
        ValueError,
        expected=".*cv='alo'",
        value="ensemble=True",
        hint=".*Leave both out",
    ):
        CalibratedModel(logistic(), cv="alo", ensemble=True).fit(X, y)
    with raises_invalid_input(
        ValueError, expected=".*cv='alo'", value=".*'predict_proba'"
    ):
        CalibratedModel(logistic(), cv="alo", response_method="predict_proba").fit(X, y)
    with raises_invalid_input(TypeError, expected="a fitted LogisticRegression"):
        CalibratedModel(GaussianNB(), cv="alo").fit(X, y)
    frozen = FrozenEstimator(logistic().fit(X, y))
    with raises_invalid_input(ValueError, expected=".*converged fit of these rows"):
        CalibratedModel(frozen, cv="alo").fit(*data(60, 20, seed=1))


def test_no_worse_than_five_folds_of_scikit_learn():
    X, y = data(300, 400, seed=3)
    X_test, y_test = X[200:], y[200:]
    losses = [
        log_loss(y_test, m.fit(X[:200], y[:200]).predict_proba(X_test))
        for m in (
            CalibratedModel(LogisticRegression(), "platt", cv="alo"),
            CalibratedClassifierCV(LogisticRegression(), cv=5),
            LogisticRegression(C=1000.0, max_iter=1000),
        )
    ]
    assert losses[0] < losses[2]
    assert losses[0] < losses[1] + 0.03
