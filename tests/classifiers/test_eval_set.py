"""Rows that boosters judge their rounds on, and estimators whose constructors copy."""

from inspect import signature

import numpy as np
import pytest
from boosters import imported
from error_fields import raises_invalid_input
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.classifiers._eval_sets import _replace_eval_set_with_kept_rows
from sklearn_calib.decisions import SelectiveClassifier
from sklearn_calib.linear import approximate_leave_one_out

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*1000 validation rows"),
    pytest.mark.filterwarnings("ignore:.*no bound of at most max_risk"),
    pytest.mark.filterwarnings(
        "ignore:The argument 'eval_set' is deprecated"
    ),  # LightGBM 4.7
]
DATA = make_classification(700, flip_y=0.2, random_state=0)
X, Y = DATA[0][:400], DATA[1][:400]
X_EVAL, Y_EVAL = DATA[0][400:], DATA[1][400:]
NAMES = {
    "minus": [-1, 1],
    "text": ["no", "yes"],
    "bytes": [b"a", b"b"],
    "bool": [False, True],
}


def learner(package, **more):
    module = imported(package)
    options = {
        "n_estimators": 60,
        "early_stopping_rounds": 3,
        "learning_rate": 0.3,
        "n_jobs": 1,
    }
    options |= more
    if package == "xgboost":
        return module.XGBClassifier(verbosity=0, **options)
    return module.LGBMClassifier(verbose=-1, **options)


def rounds(model):
    """The round that each fold's model stopped at."""
    inner = [pair.estimator for pair in model.calibrated_pairs_]
    ends = [one[-1] if hasattr(one, "steps") else one for one in inner]
    return [
        getattr(end, "best_iteration_", getattr(end, "best_iteration", None))
        for end in ends
    ]


def fitted(model, y, **params):
    if "xgb" in repr(model).lower():
        name = next(iter(params)).rpartition("__")[0]
        params[f"{name}__verbose" if name else "verbose"] = False
    return CalibratedModel(model, "platt", cv=2).fit(X, y, **params)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("kind", NAMES)
def test_labels_of_any_type_stop_the_same_round(package, kind):
    names, model = np.array(NAMES[kind]), learner(package)
    reference = rounds(fitted(model, Y, eval_set=[(X_EVAL, Y_EVAL)]))
    assert max(reference) < 55
    for form in (
        [(X_EVAL, names[Y_EVAL])],
        (X_EVAL, names[Y_EVAL]),
        ((X_EVAL, labels_in_a_list(kind)),),
    ):
        assert rounds(fitted(model, names[Y], eval_set=form)) == reference


def labels_in_a_list(kind):
    """The labels of the rows to be judged on as a list."""
    return np.array(NAMES[kind])[Y_EVAL].tolist()


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("form", ["array", "tuple"])
def test_features_and_labels_apart(kind, form):
    """LightGBM's eval_X and eval_y, also of as many rows as X."""
    imported("lightgbm")
    pytest.importorskip("lightgbm", minversion="4.7")
    names, model = np.array(NAMES[kind]), learner("lightgbm")
    X_valid, y_valid = np.resize(X_EVAL, X.shape), np.resize(Y_EVAL, len(X))
    reference = rounds(fitted(model, Y, eval_set=[(X_valid, y_valid)]))
    pair = {"eval_X": X_valid, "eval_y": names[y_valid]}
    if form == "tuple":
        pair = {name: (value,) for name, value in pair.items()}
    assert rounds(fitted(model, names[Y], **pair)) == reference


def test_features_of_more_sets_than_labels():
    """LightGBM reports it; no set is left out without a word."""
    imported("lightgbm")
    pytest.importorskip("lightgbm", minversion="4.7")
    with pytest.raises(ValueError, match="tuple of same length"):
        fitted(learner("lightgbm"), Y, eval_X=(X_EVAL, X_EVAL), eval_y=(Y_EVAL,))


def test_the_loss_is_one():
    """A log loss of labels -1 and 1 would be negative; the metric of a user sees codes."""
    seen = []

    def metric(y, p):
        seen.append(set(np.unique(y).tolist()))
        return float(-np.mean(np.log(np.where(y == 1, p, 1 - p))))

    model = learner("xgboost", eval_metric=metric)
    done = fitted(model, 2 * Y - 1, eval_set=[(X_EVAL, 2 * Y_EVAL - 1)])
    assert {frozenset(s) for s in seen} == {frozenset({0, 1})}
    assert all(0 < pair.estimator.best_score < 0.7 for pair in done.calibrated_pairs_)
    by_name = fitted(learner("xgboost"), 2 * Y - 1, eval_set=[(X_EVAL, 2 * Y_EVAL - 1)])
    assert rounds(done) == rounds(by_name)


def test_callbacks_stop_too():
    xgboost = imported("xgboost")
    callbacks = [xgboost.callback.EarlyStopping(rounds=3)]
    model = learner("xgboost", early_stopping_rounds=None, callbacks=callbacks)
    with raises_invalid_input(
        ValueError, expected="an eval_set ", value="EarlyStopping without one"
    ):
        CalibratedModel(model).fit(X, Y)
    done = fitted(model, 2 * Y - 1, eval_set=[(X_EVAL, 2 * Y_EVAL - 1)])
    reference = fitted(learner("xgboost"), Y, eval_set=[(X_EVAL, Y_EVAL)])
    assert rounds(done) == rounds(reference)
    lightgbm = imported("lightgbm")
    model = learner("lightgbm", early_stopping_rounds=None)
    with raises_invalid_input(
        ValueError, expected="an eval_set ", value="_EarlyStoppingCallback"
    ):
        CalibratedModel(model).fit(
            X, Y, callbacks=[lightgbm.early_stopping(3, verbose=False)]
        )


@pytest.mark.slow
def test_in_a_pipeline_and_in_a_search():
    model = make_pipeline(StandardScaler(), learner("xgboost"))
    text = np.array(["no", "yes"])
    params = {"xgbclassifier__verbose": False}
    plain = {"xgbclassifier__eval_set": [(X_EVAL, Y_EVAL)], **params}
    named = {"xgbclassifier__eval_set": [(X_EVAL, text[Y_EVAL])], **params}
    assert rounds(fitted(model, text[Y], **named)) == rounds(fitted(model, Y, **plain))
    searches = [
        RefineThenCalibrateCV(model, cv=2).fit(X, y, **given)
        for y, given in ((Y, plain), (text[Y], named))
    ]
    risks = [search.cv_results_["criterion"] for search in searches]
    np.testing.assert_array_equal(*risks)
    assert len(risks[0]) < 55


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_a_class_that_a_fold_misses_is_not_judged(package):
    """Its rows go, with the weights that belong to them."""
    names = np.array(["a", "b", "rare"])
    y, y_eval, weight = Y.copy(), Y_EVAL.copy(), np.linspace(1, 5, len(Y_EVAL))
    y[:6] = 2
    y_eval[20:60] = 2
    beside = "sample_weight_eval_set" if package == "xgboost" else "eval_sample_weight"
    folds = [(np.arange(6, 300), np.arange(300, 400))]
    kept = y_eval < 2

    def stopped(X_valid, codes, weights):
        more = {"verbose": False} if package == "xgboost" else {}
        model = CalibratedModel(learner(package), "platt", cv=folds)
        model.fit(
            X,
            names[y],
            eval_set=[(X_valid, names[codes])],
            **{beside: [weights]},
            **more,
        )
        return rounds(model), model.calibrated_pairs_[0].columns.tolist()

    found = stopped(X_EVAL, y_eval, weight)
    assert found == stopped(X_EVAL[kept], y_eval[kept], weight[kept])
    assert found[1] == [0, 1]
    with raises_invalid_input(
        ValueError,
        expected=".*class that the fold is trained on",
        value=r"classes \['rar",
    ):
        stopped(X_EVAL[:5], np.full(5, 2), weight[:5])


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_labels_that_no_row_has(package):
    message = r"expected labels among \[0, 1\], got .*3"
    with pytest.raises(ValueError, match=message):
        fitted(learner(package), Y, eval_set=[(X_EVAL, np.full(len(X_EVAL), 3))])
    with raises_invalid_input(ValueError, expected="as many labels as rows"):
        fitted(learner(package), Y, eval_set=[(X_EVAL, Y_EVAL[1:])])


@pytest.mark.slow
@pytest.mark.skipif(
    "X_val" not in signature(HistGradientBoostingClassifier.fit).parameters,
    reason="this scikit-learn takes no rows to judge the rounds on",
)
def test_labels_of_gradient_boosting():
    """X_val and y_val of scikit-learn, of as many rows as X, with labels that are coded."""
    model = HistGradientBoostingClassifier(
        max_iter=60, early_stopping=True, n_iter_no_change=3
    )
    X_valid, y_valid = np.resize(X_EVAL, X.shape), np.resize(Y_EVAL, len(X))
    seen = []
    for names in (np.array([0, 1]), np.array(["no", "yes"]), np.array([b"a", b"b"])):
        done = CalibratedModel(model, "platt", cv=2)
        done.fit(X, names[Y], X_val=X_valid, y_val=names[y_valid])
        seen.append([pair.estimator.n_iter_ for pair in done.calibrated_pairs_])
    assert seen[0] == seen[1] == seen[2]
    own = clone(model).fit(X, Y, X_val=X_valid, y_val=y_valid)
    assert abs(own.n_iter_ - np.mean(seen[0])) < 30


def test_other_rows_stay_whole():
    """SelectiveClassifier trains on a part of X, and judges on all of X_val."""
    seen = {}

    class Curious(GaussianNB):
        def fit(self, X, y, X_val=None, weight=None):
            seen.update(given=len(X), judged=len(X_val), weight=len(weight))
            return super().fit(X, y)

    SelectiveClassifier(Curious()).fit(X, Y, X_val=X, weight=np.ones(len(X)))
    assert seen["given"] == seen["weight"] < seen["judged"] == len(X)


def test_rows_that_all_stay_are_not_copied():
    """A large table to be judged on is handed to every fold as it is."""

    class Keeps(GaussianNB):
        def fit(self, X, y, eval_set=None):
            self.given_ = eval_set
            return super().fit(X, y)

    names = np.array(["no", "yes"])
    model = CalibratedModel(Keeps(), "platt", cv=2)
    model.fit(X, names[Y], eval_set=[(X_EVAL, names[Y_EVAL])])
    for pair in model.calibrated_pairs_:
        ((features, labels),) = pair.estimator.given_
        assert features is X_EVAL and np.array_equal(labels, names[Y_EVAL])


def test_forms_that_cannot_be_coded():
    class Pooled(GaussianNB):
        def fit(self, X, y, eval_set=None):
            self.given_ = eval_set
            return super().fit(X, y)

    pool = object()
    model = CalibratedModel(Pooled(), "platt", cv=2).fit(X, Y, eval_set=pool)
    assert all(pair.estimator.given_ is pool for pair in model.calibrated_pairs_)
    with raises_invalid_input(
        ValueError,
        expected=".*eval_set as pairs ",
        value="object",
        hint=r"Pass eval_set=\[",
    ):
        CalibratedModel(Pooled(), "platt").fit(
            X, np.array([b"a", b"b"])[Y], eval_set=[pool]
        )


# -- constructors that copy, as CatBoost's does its cat_features ----------------------------------


class Copies(GaussianNB):
    def __init__(self, cat_features=None):
        super().__init__()
        self.cat_features = list(cat_features)

    def get_params(self, deep=True):
        return {"cat_features": self.cat_features}


class Loses(Copies):
    def __init__(self, cat_features=None):
        super().__init__([*cat_features, 1])


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize(
    "cls", [CalibratedModel, RefineThenCalibrateCV, SelectiveClassifier]
)
def test_a_constructor_that_copies(cls, piped):
    inner = Copies(["letter"])
    with pytest.raises(RuntimeError):
        clone(inner)
    model = cls(make_pipeline(StandardScaler(), inner) if piped else inner)
    assert model.fit(X, Y).predict_proba(X).shape == (400, 2)
    assert inner.cat_features == ["letter"]
    if cls is CalibratedModel:
        assert clone(model).get_params()["estimator"] is not model.estimator
        assert cross_val_score(model, X, Y, cv=2).min() > 0.6
    broken = cls(Loses(["letter"]))
    with pytest.raises((ValueError, RuntimeError), match="constructor"):
        broken.fit(X, Y)


def test_a_pipeline_of_one_step():
    assert fitted(
        make_pipeline(learner("xgboost")), Y, xgbclassifier__eval_set=[(X_EVAL, Y_EVAL)]
    )
    one = make_pipeline(LogisticRegression()).fit(X, Y)
    two = make_pipeline("passthrough", LogisticRegression()).fit(X, Y)
    found = [approximate_leave_one_out(model, X, Y) for model in (one, two)]
    assert repr(found[0]) == repr(found[1])


@pytest.mark.parametrize("form", [list, tuple, dict, np.asarray])
def test_what_stands_beside_a_set_loses_the_same_rows(form):
    """Weights of several sets, of which one is reduced; and those of a single set."""
    first, second, kept = np.arange(4.0), 10 + np.arange(5.0), np.array([1, 3, 4])
    if form is np.asarray:
        found, expected = (
            [_replace_eval_set_with_kept_rows(second, None, kept)],
            [second[kept]],
        )
    else:
        given = {0: first, 1: second} if form is dict else form([first, second])
        found = _replace_eval_set_with_kept_rows(given, 1, kept)
        assert type(found) is form
        found, expected = [found[0], found[1]], [first, second[kept]]
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(
            one, other, err_msg=f"{form.__name__}, set {number}"
        )
    assert len(second) == 5
