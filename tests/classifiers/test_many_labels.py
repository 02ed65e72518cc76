"""CalibratedModel with classifiers of many labels per row."""

import pickle
import warnings
from unittest import SkipTest

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy import sparse
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, canonical_proba
from sklearn_calib.classifiers._base import threshold_labels
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import brier_loss, get_scorer, log_loss
from sklearn_calib.recalibrators import (
    HistogramBinning,
    MultilabelCalibration,
    get_recalibrator,
    warn_if_harmful_for_labels,
)

NB = MultiOutputClassifier(GaussianNB())
LISTED = {
    "MultiOutputClassifier": NB,
    "RandomForestClassifier": RandomForestClassifier(5, random_state=0),
    "Pipeline": make_pipeline(StandardScaler(), NB),
}
TABLES = {
    "ClassifierChain": ClassifierChain(LogisticRegression()),
    "OneVsRestClassifier": OneVsRestClassifier(GaussianNB()),
    "OneVsRestClassifier(LinearSVC)": OneVsRestClassifier(LinearSVC()),
}


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(900, 10, n_classes=3, random_state=0)
    X = np.hstack([X, X])  # naive Bayes counts all evidence twice
    return X[:500], Y[:500], X[500:], Y[500:]


def table(proba):
    return (
        np.column_stack([q[:, 1] for q in proba]) if isinstance(proba, list) else proba
    )


def loss(Y, proba):
    P = table(proba)
    return np.mean(
        [log_loss(Y[:, c], P[:, c], labels=[0, 1]) for c in range(P.shape[1])]
    )


@pytest.mark.parametrize(
    ("name", "ensemble"),
    [
        pytest.param(
            name, ensemble, marks=pytest.mark.slow if ensemble != (i % 2 == 0) else ()
        )
        for i, name in enumerate([*LISTED, *TABLES])
        for ensemble in (True, False)
    ],
)
def test_every_kind_of_classifier(data, name, ensemble):
    X, Y, X_test, Y_test = data
    estimator = (LISTED | TABLES)[name]
    model = CalibratedModel(estimator, ensemble=ensemble, cv=3).fit(X, Y)
    proba = model.predict_proba(X_test)
    assert isinstance(proba, list) == (name in LISTED)
    if name in LISTED:
        assert [part.shape for part in proba] == [(400, 2)] * 3
    assert (
        table(proba).shape == (400, 3)
        and 0 <= table(proba).min() <= table(proba).max() <= 1
    )
    np.testing.assert_array_equal(
        model.predict(X_test), (table(proba) > 0.5).astype(int)
    )
    assert len(model.calibrated_pairs_) == (3 if ensemble else 1)
    assert [c.tolist() for c in model.classes_] == [[0, 1]] * 3
    if hasattr(estimator, "predict_proba"):
        assert loss(Y_test, proba) < loss(
            Y_test, clone(estimator).fit(X, Y).predict_proba(X_test)
        )
    again = pickle.loads(pickle.dumps(model)).predict_proba(X_test)
    np.testing.assert_array_equal(table(again), table(proba))


def test_it_is_the_recalibrator_of_out_of_fold_scores(data):
    X, Y, X_test, _ = data
    cv = KFold(4)
    model = CalibratedModel(NB, cv=cv, ensemble=False).fit(X, Y)
    folds = [
        clone(NB).fit(X[train], Y[train]).predict_proba(X[test])
        for train, test in cv.split(X)
    ]
    by_hand = MultilabelCalibration().fit(
        [np.vstack(parts) for parts in zip(*folds, strict=True)], Y
    )
    wanted = by_hand.predict_proba(clone(NB).fit(X, Y).predict_proba(X_test))
    np.testing.assert_allclose(
        table(model.predict_proba(X_test)), table(wanted), rtol=0, atol=1e-12
    )


def test_the_default_folds_are_shuffled(data):
    X, Y, X_test, _ = data
    order = np.argsort(Y[:, 0], kind="stable")  # unshuffled folds would miss a label
    X, Y = X[order], Y[order]
    default = CalibratedModel(NB, ensemble=False).fit(X, Y)
    named = (
        clone(default).set_params(cv=KFold(5, shuffle=True, random_state=0)).fit(X, Y)
    )
    np.testing.assert_array_equal(
        table(default.predict_proba(X_test)), table(named.predict_proba(X_test))
    )


def test_a_frozen_model_and_unknown_labels(data):
    X, Y, X_test, Y_test = data
    frozen = FrozenEstimator(clone(NB).fit(X, Y))
    known = np.where(np.arange(400)[:, None] < [300, 100, 20], np.nan, Y_test)
    model = CalibratedModel(frozen).fit(X_test, known)
    wanted = MultilabelCalibration().fit(frozen.predict_proba(X_test), known)
    np.testing.assert_array_equal(
        table(model.predict_proba(X)),
        table(wanted.predict_proba(frozen.predict_proba(X))),
    )


def test_a_function_of_the_features(data):
    """A network's sigmoid outputs."""
    X, Y, X_test, Y_test = data
    network = LogisticRegression().fit(X, Y[:, 0])

    def forward(features):
        return np.column_stack([network.predict_proba(features)[:, 1]] * 3)

    model = CalibratedModel(FrozenEstimator(forward)).fit(X_test, Y_test)
    assert model.predict_proba(X).shape == (500, 3)


def test_logits_are_taken_where_there_are_some(data):
    X, Y, X_test, Y_test = data
    svm = clone(TABLES["OneVsRestClassifier(LinearSVC)"]).fit(X, Y)
    model = CalibratedModel(FrozenEstimator(svm)).fit(X_test, Y_test)
    logits = [
        canonical_proba(z, kind="logits") for z in svm.decision_function(X_test).T
    ]
    wanted = MultilabelCalibration().fit(logits, Y_test).predict_proba(logits)
    np.testing.assert_array_equal(model.predict_proba(X_test), table(wanted))
    with raises_invalid_input(
        TypeError, expected="an estimator with decision_function"
    ):
        CalibratedModel(NB, response_method="decision_function").fit(X, Y)


@pytest.mark.parametrize(
    "recalibrator", ["isotonic", "platt", MultilabelCalibration(pooling="all")]
)
def test_which_recalibrator(data, recalibrator):
    X, Y, _, _ = data
    model = CalibratedModel(NB, recalibrator, ensemble=False, cv=2).fit(X, Y)
    named = isinstance(recalibrator, str)
    assert model.recalibrator_.pooling == ("none" if named else "all")
    assert (
        CalibratedModel(NB, ensemble=False).fit(X, Y).recalibrator_.pooling == "shrink"
    )


def test_a_label_that_a_fold_has_not_seen(data):
    """Its model states 0 everywhere there, which is uninformative about other scores."""
    X, Y, X_test, _ = data
    Y = Y.copy()
    Y[:, 2] = 0
    Y[:4, 2] = 1  # all in the first fold
    forest = RandomForestClassifier(5, random_state=0)
    model = CalibratedModel(forest, ensemble=False, cv=KFold(2)).fit(X, Y)
    scores = np.empty(Y.shape)
    for test, train in (
        (slice(0, 250), slice(250, 500)),
        (slice(250, 500), slice(0, 250)),
    ):
        proba = clone(forest).fit(X[train], Y[train]).predict_proba(X[test])
        scores[test] = np.column_stack(
            [q[:, 1] if q.shape[1] == 2 else 0 * q for q in proba]
        )
    known = Y.astype(float)
    known[:250, 2] = np.nan
    wanted = MultilabelCalibration().fit(scores, known)
    for found, line in zip(
        model.recalibrator_.recalibrators_, wanted.recalibrators_, strict=True
    ):
        assert found.slope_ == pytest.approx(line.slope_, abs=1e-9)
    forest = clone(forest).fit(X[4:], Y[4:])  # one column for the last label
    assert forest.predict_proba(X)[2].shape == (500, 1)
    frozen = CalibratedModel(FrozenEstimator(forest)).fit(X, Y)
    assert [part.shape for part in frozen.predict_proba(X_test)] == [(400, 2)] * 3


def test_weights_are_repetition(data):
    X, Y, X_test, _ = data
    X, Y = X[:120], Y[:120]
    weight = np.random.default_rng(0).integers(1, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    test = np.arange(len(X)) < 60
    halves = [(np.flatnonzero(~test), np.flatnonzero(test))]
    repeated = [(np.flatnonzero(~test[rows]), np.flatnonzero(test[rows]))]
    one = CalibratedModel(NB, cv=halves).fit(X, Y, sample_weight=weight)
    two = CalibratedModel(NB, cv=repeated).fit(X[rows], Y[rows])
    np.testing.assert_allclose(
        table(one.predict_proba(X_test)), table(two.predict_proba(X_test)), atol=1e-8
    )
    with raises_invalid_input(ValueError, expected="sample_weight >= 0"):
        CalibratedModel(NB).fit(X, Y, sample_weight=-weight)


@pytest.mark.slow
def test_model_selection_of_scikit_learn(data):
    X, Y, _, _ = data
    for estimator in (NB, OneVsRestClassifier(GaussianNB())):
        scores = cross_val_score(
            CalibratedModel(estimator, cv=2), X, Y, scoring="roc_auc", cv=2
        )
        assert (scores > 0.6).all()
    # two labels are not two classes
    for estimator in (
        NB,
        OneVsRestClassifier(GaussianNB()),
    ):
        model = clone(estimator).fit(X, Y[:, :2])
        for average in ("macro", "micro"):
            found = get_scorer("neg_brier_loss", multilabel=average)(model, X, Y[:, :2])
            wanted = brier_loss(
                Y[:, :2], table(model.predict_proba(X)), multilabel=average
            )
            assert found == pytest.approx(-wanted, abs=1e-14)
    scorer = get_scorer("neg_log_loss", multilabel="macro")
    grid = {"ensemble": [True, False]}
    search = GridSearchCV(CalibratedModel(NB, cv=2), grid, scoring=scorer, cv=2)
    assert -1 < search.fit(X, Y).best_score_ < 0


def test_tables_of_labels(data):
    X, Y, X_test, _ = data
    model = CalibratedModel(NB, cv=2)
    wanted = table(clone(model).fit(X, Y).predict_proba(X_test))
    for same in (sparse.csr_matrix(Y), Y.astype(bool), Y.tolist()):
        found = table(clone(model).fit(X, same).predict_proba(X_test))
        np.testing.assert_array_equal(found, wanted)


def test_errors(data):
    X, Y, _, _ = data
    with raises_invalid_input(
        ValueError,
        expected=".*many labels per row",
        value="LogisticRegression, whose fit raises",
    ):
        CalibratedModel(LogisticRegression()).fit(X, Y)
    with raises_invalid_input(
        ValueError,
        expected=r".*labels 0, 1 or NaN \(unknown\)",
        value="2",
        row=0,
        column=1,
    ):
        CalibratedModel(NB).fit(X, 2 * Y)
    with raises_invalid_input(
        TypeError, expected=".*numbers as labels", hint=r".*\(y == 'yes'\)"
    ):
        CalibratedModel(NB).fit(X, np.where(Y == 1, "yes", "no").astype(object))
    with raises_invalid_input(
        ValueError, expected=".*folds for many labels", value="cv='alo'"
    ):
        CalibratedModel(NB, cv="alo").fit(X, Y)
    with raises_invalid_input(ValueError, expected="one label per row"):
        RefineThenCalibrateCV(LogisticRegression()).fit(X, Y)
    with raises_invalid_input(
        ValueError, expected="a fitted model in a FrozenEstimator"
    ):
        CalibratedModel(NB, cv="prefit").fit(X, Y)
    frozen = FrozenEstimator(clone(NB).fit(X, Y))
    with raises_invalid_input(ValueError, expected=".*scores of 2 labels", value="3"):
        CalibratedModel(frozen).fit(X, Y[:, :2])
    with pytest.warns(CalibrationWarning, match="not fitted yet"):
        CalibratedModel(clone(NB).fit(X, Y), cv=2).fit(X, Y)


def test_a_failed_fit_leaves_nothing(data):
    X, Y, _, _ = data
    model = CalibratedModel(NB, cv=2).fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X[:9], Y)
    assert not hasattr(model, "classes_") and not hasattr(model, "calibrated_pairs_")


@pytest.mark.slow
def test_checks_of_scikit_learn():
    model = CalibratedModel(DecisionTreeClassifier(max_depth=3, random_state=0), cv=2)
    ran = 0
    for estimator, check in estimator_checks_generator(model):
        if "multilabel" in repr(check) or "multioutput" in repr(check):
            try:
                check(estimator)
                ran += 1
            except SkipTest as skipped:
                assert "decision_function" in str(skipped)
    assert ran == 4


# -- a recalibration that harms ------------------------------------------------------------------


def labels_of_scores(n=1500, shift=0.0, seed=0):
    """Three labels and the logits of a model, off by `shift` for the last of them."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3)) - 1
    Y = (rng.random((n, 3)) < 1 / (1 + np.exp(-z))).astype(int)
    z[:, 2] += shift
    return z, Y


class Logits(ClassifierMixin, BaseEstimator):
    """Its features are its logits."""

    def fit(self, X, Y):
        self.classes_ = [np.arange(2)] * Y.shape[1]
        return self

    def predict_proba(self, X):
        return 1 / (1 + np.exp(-X))


@pytest.mark.parametrize("ensemble", [False, True])
def test_labels_that_lose_their_frequency_are_said(ensemble):
    z, Y = labels_of_scores(3000, shift=0.7)
    message = "For 1 of 3 labels the mean .*for label number 2 it is"
    with pytest.warns(CalibrationWarning, match=message) as caught:
        CalibratedModel(Logits(), "temperature", ensemble=ensemble).fit(z, Y)
    assert sum("labels the mean" in str(w.message) for w in caught) == 1
    # warnings are errors
    CalibratedModel(Logits(), "default", ensemble=ensemble).fit(z, Y)
    with pytest.warns(CalibrationWarning, match="For 1 of 3 labels"):
        unknown = Y.astype(float)
        unknown[::7, 0] = np.nan
        weight = np.ones(len(Y))
        weight[::5] = 0
        frozen = FrozenEstimator(Logits().fit(z, Y))
        CalibratedModel(frozen, "temperature").fit(z, unknown, sample_weight=weight)


def test_labels_whose_loss_rises_are_said():
    wild = HistogramBinning(100, prior_weight=0)
    with pytest.warns(
        CalibrationWarning,
        match=r"increased the log loss .* from .* to .*, summed over",
    ):
        CalibratedModel(Logits(), wild, ensemble=False).fit(*labels_of_scores())


@pytest.mark.slow
def test_no_word_on_labels_that_are_calibrated():
    for seed in range(10):
        CalibratedModel(Logits(), "temperature").fit(*labels_of_scores(600, seed=seed))


@pytest.mark.cross
def test_false_alarms_on_labels():
    """Calibrated labels that are left as they are: 3 standard errors, two-sided, over all labels.

    Of 4000 fits like these 14 gave the warning, 0.35 %, where 0.27 % are expected.
    """
    rng, alarms = np.random.default_rng(0), 0
    method = MultilabelCalibration(get_recalibrator("identity"), pooling="none")
    for _ in range(2500):
        p = expit(rng.normal(size=(300, 3)) - 1)
        y = (rng.random((300, 3)) < p).astype(float)
        pairs = [np.column_stack([1 - one, one]) for one in p.T]

        def refit(rows, y=y, pairs=pairs):
            return clone(method).fit([pair[rows] for pair in pairs], y[rows])

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fitted = refit(np.arange(300))
            warn_if_harmful_for_labels(fitted, refit, pairs, y, np.ones(300))
        alarms += sum("labels the mean" in str(one.message) for one in said)
    low, high = binom.ppf([0.005, 0.995], 2500, 2 * norm.sf(3))
    assert low <= alarms <= high


def test_a_label_is_predicted_above_a_half():
    proba = np.array([[0.5, 0.6], [np.nextafter(0.5, 1), 0.4]])
    assert threshold_labels(proba).tolist() == [[0, 1], [1, 0]]
    pairs = [np.column_stack([1 - column, column]) for column in proba.T]
    assert threshold_labels(pairs).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("cv", [None, 3])
def test_folds_of_many_labels_split_no_group(cv):
    class Remembers(DecisionTreeClassifier):
        def fit(self, X, y):
            trained.append({*np.asarray(X)[:, 0]})
            return super().fit(X, y)

    trained, rng = [], np.random.default_rng(0)
    groups, Y = np.repeat(np.arange(30), 8), rng.integers(0, 2, (240, 2))
    X = np.column_stack([groups, rng.normal(size=(240, 2))])
    CalibratedModel(Remembers(max_depth=2), cv=cv).fit(X, Y, groups=groups)
    assert [len(each) for each in trained] == ([24] * 5 if cv is None else [20] * 3)


@pytest.mark.filterwarnings("ignore:A column-vector:UserWarning")
def test_one_column_of_labels_is_not_a_table(data):
    X, Y, X_new, _ = data
    model = CalibratedModel(LogisticRegression(max_iter=500), "platt")
    expected = model.fit(X, Y[:, 0]).predict_proba(X_new)
    found = model.fit(X, Y[:, :1]).predict_proba(X_new)
    assert np.array_equal(found, expected)


class FallingClasses(BaseEstimator, ClassifierMixin):
    """Many labels, each with its classes in falling order."""

    def fit(self, X, y):
        self.inner_ = MultiOutputClassifier(LogisticRegression()).fit(X, y)
        self.classes_ = [own[::-1] for own in self.inner_.classes_]
        return self

    def predict_proba(self, X):
        return [pair[:, ::-1] for pair in self.inner_.predict_proba(X)]


def test_classes_of_labels_in_falling_order(data):
    X, Y, X_new, _ = data
    found = CalibratedModel(FallingClasses(), "platt", cv=3).fit(X, Y)
    rising = MultiOutputClassifier(LogisticRegression())
    expected = CalibratedModel(rising, "platt", cv=3).fit(X, Y)
    for pair, wanted in zip(
        found.predict_proba(X_new), expected.predict_proba(X_new), strict=True
    ):
        assert np.array_equal(np.asarray(pair), np.asarray(wanted))
