"""Classifiers with their maps in ONNX, run by onnxruntime, give what they predict."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from boosters import imported
from error_fields import raises_invalid_input
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.classifiers import AngularCalibratedClassifier, RefineThenCalibrateCV
from sklearn_calib.export import (
    _onnx_models,
    from_dict,
    register_onnx_converters,
    to_onnx,
)
from sklearn_calib.export._onnx_nodes import GraphExpression

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

SINGLE = 2e-6  # classifiers in float32
DOUBLE = 1e-12  # those that skl2onnx writes in float64
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning"),
    pytest.mark.filterwarnings(
        "ignore:Attribute `prob:FutureWarning"
    ),  # skl2onnx needs this of an SVC
]


def data(k=2, n=300, dtype=np.float64):
    X, y = make_classification(
        2 * n,
        6,
        n_informative=5,
        n_redundant=0,
        n_classes=k,
        flip_y=0.1,
        random_state=0,
    )
    X = X.astype(dtype)
    return X[:n], y[:n], X[n:]


def run(model, X):
    """Labels and probabilities."""
    names = [value.name for value in model.graph.input]
    feed = (
        {name: X[[name]].to_numpy() for name in names}
        if names != ["X"]
        else {"X": np.array(X)}
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


def differences(model, X):
    """Largest differences of the probabilities; the labels must agree."""
    found = to_onnx(model, X)
    labels, proba = run(found, X)
    assert np.array_equal(labels, model.predict(X))
    return np.abs(proba - model.predict_proba(X)).max(axis=1)


def boosted(name, **params):
    package = imported(name)
    pytest.importorskip("onnxmltools")
    if name == "xgboost":
        return package.XGBClassifier(n_estimators=8, n_jobs=1, **params)
    return package.LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1, **params)


EXACT = {
    "raw": LogisticRegression(),
    "raw in a pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "without probabilities": LinearSVC(),
    "ridge": RidgeClassifier(),
    "sgd": make_pipeline(StandardScaler(), SGDClassifier()),
    "probabilities": GaussianNB(),
    "searched": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
}


def difference_in_double(name, k):
    X, y, new = data(k)
    return differences(CalibratedModel(EXACT[name], "platt", cv=2).fit(X, y), new).max()


@pytest.mark.parametrize(
    ("name", "k"),
    [("raw in a pipeline", 2), ("without probabilities", 2), ("probabilities", 3)],
)
def test_exact(name, k):
    assert difference_in_double(name, k) <= DOUBLE


@pytest.mark.cross
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", EXACT)
def test_exact_in_full(name, k):
    assert difference_in_double(name, k) <= DOUBLE


TREES = {
    "tree": DecisionTreeClassifier(max_depth=4),
    "forest": RandomForestClassifier(5, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=8),
    "support vectors": SVC(),
}


def difference_in_single(name, dtype, k):
    X, y, new = data(k, dtype=dtype)
    estimator = TREES[name] if name in TREES else boosted(name)
    return differences(CalibratedModel(estimator, cv=2).fit(X, y), new).max()


@pytest.mark.parametrize(
    ("name", "dtype", "k"),
    [
        ("forest", np.float64, 2),
        ("hist", np.float32, 3),
        ("xgboost", np.float32, 2),
        ("xgboost", np.float64, 3),
        ("lightgbm", np.float64, 2),
    ],
)
def test_in_single_precision(name, dtype, k):
    assert difference_in_single(name, dtype, k) <= SINGLE


@pytest.mark.cross
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*TREES, "xgboost", "lightgbm"])
def test_in_single_precision_in_full(name, dtype, k):
    assert difference_in_single(name, dtype, k) <= SINGLE


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("xgboost", "auto"),
        ("hist", "predict_proba"),
        *(
            pytest.param(name, method, marks=pytest.mark.slow)
            for name, method in [
                ("hist", "auto"),
                ("lightgbm", "auto"),
                ("lightgbm", "predict_proba"),
                ("xgboost", "predict_proba"),
            ]
        ),
    ],
)
def test_tails_of_boosted_trees(name, method):
    """The logits are those of the trees, not logarithms of rounded probabilities."""
    X, y, _ = data(n=600)
    new = 4 * X
    params = {"learning_rate": 2.0} if name != "hist" else {}
    estimator = (
        boosted(name, **params) if params else TREES[name].set_params(learning_rate=2.0)
    )
    model = CalibratedModel(estimator, "platt", cv=2, response_method=method).fit(X, y)
    proba, got = model.predict_proba(new), run(to_onnx(model, new), new)[1]
    # XGBoost's own probabilities are float32: 1 - p has few digits where p is almost 1
    rounded = (name, method) == ("xgboost", "predict_proba")
    assert np.abs(got / proba - 1).max() <= (1e-2 if rounded else 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
        {"objective": "binary", "sigmoid": 2.5},
    ],
    ids=["means of trees", "slope"],
)
def test_links_of_lightgbm(params):
    X, y, new = data()
    model = CalibratedModel(boosted("lightgbm", **params), "platt", cv=2).fit(X, y)
    assert differences(model, new).max() <= SINGLE


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:The argument 'eval_set' is deprecated"
)  # new in LightGBM 4.7
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_fits_that_stopped_early(name, k):
    X, y, new = data(k, n=600)
    stop, fit = {"early_stopping_rounds": 3}, {"eval_set": [(X[200:400], y[200:400])]}
    inner = boosted(name, learning_rate=0.5, **(stop if name == "xgboost" else {}))
    inner.set_params(n_estimators=60)
    if name == "xgboost":
        fit["verbose"] = False
    else:
        fit["callbacks"] = [imported(name).early_stopping(3, verbose=False)]
    inner.fit(X[:200], y[:200], **fit)
    best = inner.best_iteration if name == "xgboost" else inner.best_iteration_
    assert best < 50
    model = CalibratedModel(FrozenEstimator(inner), "platt").fit(X[400:], y[400:])
    assert differences(model, new).max() <= SINGLE


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["hist", "xgboost", "lightgbm"])
def test_missing_values(name, dtype):
    X, y, _ = data(dtype=dtype)
    X[::7, 0] = np.nan
    estimator = TREES[name] if name in TREES else boosted(name)
    model = CalibratedModel(estimator, "platt", cv=2).fit(X, y)
    assert differences(model, X).max() <= SINGLE


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("hist", np.float64),
        ("lightgbm", np.float32),
        pytest.param("hist", np.float32, marks=pytest.mark.slow),
        pytest.param("lightgbm", np.float64, marks=pytest.mark.slow),
    ],
)
def test_rows_at_the_thresholds(name, dtype):
    """Numbers next to a threshold fall on the same side as in Python."""
    X, y, _ = data(dtype=dtype)
    estimator = TREES[name] if name in TREES else boosted(name)
    model = CalibratedModel(estimator, "platt", cv=2).fit(X, y)
    inner = model.calibrated_pairs_[0].estimator
    if name == "hist":
        nodes = np.concatenate([one.nodes for [one] in inner._predictors])
        nodes = nodes[nodes["is_leaf"] == 0]
        where = zip(nodes["feature_idx"], nodes["num_threshold"], strict=True)
    else:
        table = inner.booster_.trees_to_dataframe().dropna(subset=["threshold"])
        columns = table["split_feature"].str.removeprefix("Column_").astype(int)
        where = zip(columns, table["threshold"], strict=True)
    rows = []
    for feature, threshold in where:
        at = dtype(threshold)
        for value in (
            at,
            np.nextafter(at, dtype(-np.inf)),
            np.nextafter(at, dtype(np.inf)),
        ):
            rows.append(X[len(rows) % len(X)].copy())
            rows[-1][feature] = value
    assert len(rows) > 100
    assert differences(model, np.array(rows)).max() <= SINGLE


# -- sklearn-onnx issue 1246: a classifier inside a pipeline ---------------------------------------


@pytest.mark.slow
def test_the_model_of_issue_1246():
    """Right to 1e-5 in float32, all of which is the classifier's own share."""
    X, y, new = data(dtype=np.float32)
    inner = make_pipeline(FunctionTransformer(), LogisticRegression())
    model = CalibratedModel(inner, "platt", cv=3).fit(X, y)
    labels, proba = run(to_onnx(model, new), new)
    assert np.array_equal(labels, model.predict(new))
    exact = model.predict_proba(new)
    assert np.abs(proba - exact).max() <= 1e-5
    # the map in Python, on the scores of the ONNX classifiers
    of_scores = np.zeros_like(exact)
    for estimator, recalibrator, _ in model.calibrated_pairs_:
        scores = skl2onnx.to_onnx(
            estimator[-1],
            new[:1],
            target_opset=17,
            options={"zipmap": False, "raw_scores": True},
        )
        margin = run(scores, new)[1][:, 1].astype(np.float64)
        of_scores += recalibrator.predict_proba(canonical_proba(margin, kind="logits"))
    of_scores /= len(model.calibrated_pairs_)
    share = np.abs(of_scores - exact).max()
    assert 1e-9 < share <= 1e-5
    assert np.abs(proba - of_scores.astype(np.float32)).max() <= 1e-7
    doubled = new.astype(np.float64)
    wide = run(to_onnx(model, doubled), doubled)[1]
    assert np.abs(wide - model.predict_proba(doubled)).max() <= DOUBLE


# -- forms of models ----------------------------------------------------------------------------


def test_a_pipeline_that_holds_a_model():
    X, y, new = data(3)
    model = make_pipeline(
        StandardScaler(), CalibratedModel(LogisticRegression(), cv=2)
    ).fit(X, y)
    assert differences(model, new).max() <= DOUBLE
    register_onnx_converters()
    plain = skl2onnx.to_onnx(model, X[:1], target_opset=17, options={"zipmap": False})
    assert np.abs(run(plain, new)[1] - model.predict_proba(new)).max() <= DOUBLE
    mapped = skl2onnx.to_onnx(model, X[:1].astype(np.float32), target_opset=17)
    row = run(mapped, new[:1].astype(np.float32))[1][0]
    assert row.keys() == {0, 1, 2}
    assert (
        np.abs(np.array([*row.values()]) - model.predict_proba(new[:1])).max() <= SINGLE
    )


@pytest.mark.parametrize(
    ("labels", "ensemble"),
    [(["no", "yes"], True), ([-5, 7], False), ([False, True], False)],
)
def test_labels_and_ensembles(labels, ensemble):
    X, y, new = data()
    y = np.array(labels)[y]
    model = CalibratedModel(
        LogisticRegression(), "isotonic", cv=2, ensemble=ensemble
    ).fit(X, y)
    assert len(model.calibrated_pairs_) == (2 if ensemble else 1)
    assert differences(model, new).max() <= DOUBLE


def test_a_frozen_estimator():
    X, y, new = data()
    inner = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    model = CalibratedModel(FrozenEstimator(inner), "beta").fit(X, y)
    assert differences(model, new).max() <= DOUBLE


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GaussianNB()], ids=["raw", "proba"]
)
def test_members_that_have_not_seen_a_class(estimator):
    X, y, new = data(3)
    rare = np.flatnonzero(y == 2)[:10]
    kept = np.append(np.flatnonzero(y < 2), rare)
    # class 2 alone
    fold = np.isin(np.arange(len(kept)), np.flatnonzero(kept == kept)[-10:])
    folds = [
        (np.flatnonzero(~fold), np.flatnonzero(fold | (np.arange(len(kept)) % 2 == 0)))
    ]
    folds.append((np.arange(0, len(kept), 2), np.arange(1, len(kept), 2)))
    model = CalibratedModel(estimator, "temperature", cv=folds).fit(X[kept], y[kept])
    assert len(model.calibrated_pairs_[0].columns) == 2
    assert differences(model, new).max() <= DOUBLE


def test_tables_with_named_columns():
    X, y, _ = data()
    table = pd.DataFrame(X[:, :2], columns=["age", "pay"])
    table["job"] = np.where(X[:, 2] > 0, "cook", np.where(X[:, 3] > 0, "clerk", "none"))
    inner = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["age", "pay"]),
            (OneHotEncoder(sparse_output=False), ["job"]),
        ),
        LogisticRegression(),
    )
    model = CalibratedModel(inner, "platt", cv=2).fit(table, y)
    assert differences(model, table).max() <= DOUBLE


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_tables_of_numbers(name):
    X, y, new = data()
    table, new = (pd.DataFrame(one, columns=list("abcdef")) for one in (X, new))
    model = CalibratedModel(boosted(name), "platt", cv=2).fit(table, y)
    assert differences(model, new).max() <= SINGLE
    # The model that is exported keeps the names of its features.
    for pair in model.calibrated_pairs_:
        assert [*pair.estimator.feature_names_in_] == [*new.columns]


def test_pipelines_inside_pipelines():
    X, y, new = data()
    inner = make_pipeline(
        StandardScaler(), FrozenEstimator(LogisticRegression().fit(X, y))
    )
    outer = make_pipeline(FunctionTransformer(), "passthrough", inner).fit(X, y)
    model = CalibratedModel(FrozenEstimator(outer), "platt").fit(X, y)
    assert differences(model, new).max() <= DOUBLE
    trees = make_pipeline(
        StandardScaler(), make_pipeline(StandardScaler(), TREES["hist"])
    )
    model = CalibratedModel(trees, "platt", cv=2).fit(X, y)
    assert differences(model, new).max() <= SINGLE


def test_sparse_rows_become_dense_ones():
    X, y, new = data()
    model = CalibratedModel(LogisticRegression(), "platt", cv=2).fit(csr_matrix(X), y)
    got = run(to_onnx(model, csr_matrix(new)), new)[1]
    assert np.abs(got - model.predict_proba(new)).max() <= DOUBLE


def test_refined_models():
    X, y, new = data()
    model = RefineThenCalibrateCV(
        HistGradientBoostingClassifier(max_iter=10), recalibrator="temperature", cv=2
    ).fit(X, y)
    assert differences(model, new).max() <= SINGLE


def test_angular_models_become_tables():
    X, y, new = data()
    model = AngularCalibratedClassifier(LogisticRegression(C=10)).fit(X, y)
    with raises_invalid_input(ValueError, hint="Pass tabulate=1e-6"):
        to_onnx(model, new)
    got = run(to_onnx(model, new, tabulate=1e-6), new)[1]
    assert np.abs(got - model.predict_proba(new)).max() <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 15, 18])
def test_opsets(opset):
    X, y, new = data(3)
    model = CalibratedModel(LogisticRegression(), cv=2).fit(X, y)
    found = to_onnx(model, new, opset=opset)
    versions = {one.domain: one.version for one in found.opset_import}
    assert versions[""] <= opset
    assert np.abs(run(found, new)[1] - model.predict_proba(new)).max() <= DOUBLE


def test_what_a_model_carries():
    X, y, new = data()
    model = CalibratedModel(LogisticRegression(), "isotonic", cv=2).fit(X, y)
    found = {one.key: one.value for one in to_onnx(model, new).metadata_props}
    rows = np.linspace(0, 1, 50)
    for document, pair in zip(
        json.loads(found["sklearn_calib_maps"]), model.calibrated_pairs_, strict=True
    ):
        expected = pair.recalibrator.predict_proba(rows)
        assert np.abs(from_dict(document).predict_proba(rows) - expected).max() <= 1e-12
    assert float(found["largest_difference_in_sample"]) <= DOUBLE


# -- errors ---------------------------------------------------------------------------------


class Foreign(ClassifierMixin, BaseEstimator):
    """A classifier that no converter has."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
        return np.column_stack([1 - p, p])


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (Foreign(), r"got Foreign. Export the map alone"),
        (
            QuadraticDiscriminantAnalysis(),
            r"Fit the model with response_method='predict_proba'",
        ),
        (
            FrozenEstimator(lambda X: np.full(len(X), 0.3)),
            r"got ModelWithInferredClasses",
        ),
    ],
    ids=["foreign", "no raw scores", "function"],
)
def test_classifiers_that_cannot_be_converted(estimator, words):
    X, y, new = data()
    model = CalibratedModel(estimator, "platt").fit(X, y)
    with pytest.raises(TypeError, match=words):
        to_onnx(model, new)


def test_probabilities_instead_of_raw_scores():
    X, y, new = data()
    model = CalibratedModel(
        QuadraticDiscriminantAnalysis(), "platt", response_method="predict_proba", cv=2
    ).fit(X, y)
    assert differences(model, new).max() <= 1e-9


def test_labels_with_characters_that_utf8_lacks_are_refused():
    X, y, _ = data()
    model = CalibratedModel(GaussianNB(), "platt", cv=2).fit(
        X, np.array(["a", "b\udc80"])[y]
    )
    with raises_invalid_input(
        ValueError, expected="labels whose characters UTF-8 has", value=r".*b\\udc80.*"
    ):
        to_onnx(model, X)


def test_rows_are_needed():
    X, y, _ = data()
    model = CalibratedModel(LogisticRegression(), cv=2).fit(X, y)
    with raises_invalid_input(ValueError, expected=r"some rows X for a classifier"):
        to_onnx(model)
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(CalibratedModel(LogisticRegression()), X)


def test_a_wrong_converter_is_noticed(monkeypatch):
    X, y, new = data()
    model = CalibratedModel(LogisticRegression(), cv=2).fit(X, y)
    of_margin = GraphExpression.from_margin
    monkeypatch.setattr(
        GraphExpression, "from_margin", lambda margin: of_margin(-margin)
    )
    with pytest.raises(
        RuntimeError, match=r"differences up to .* export the map alone"
    ):
        to_onnx(model, new)
    with monkeypatch.context() as patch:
        patch.setattr(_onnx_models, "run_onnx", lambda found, X: 1 / 0)
        with raises_invalid_input(
            RuntimeError,
            expected="a conversion that gives what the model predicts for X",
            value=r"one that does not run \(division by zero\)",
        ):
            to_onnx(model, new)


def test_categories_of_hist_gradient_boosting():
    X, y, new = data()
    X[:, 0], new[:, 0] = np.abs(X[:, 0]).round(), np.abs(new[:, 0]).round()
    inner = HistGradientBoostingClassifier(max_iter=3, categorical_features=[0])
    model = CalibratedModel(inner, "platt", cv=2).fit(X, y)
    with raises_invalid_input(ValueError, expected=".*without categorical features"):
        to_onnx(model, new)


@pytest.mark.parametrize("package", ["skl2onnx", "onnxmltools"])
def test_what_to_install(monkeypatch, package):
    X, y, new = data()
    model = CalibratedModel(boosted("xgboost"), "platt", cv=2).fit(X, y)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    words = rf"{package} is not installed. Run: pip install 'sklearn-calib\[exp"
    with pytest.raises(ModuleNotFoundError, match=words):
        to_onnx(model, new)


STEPPED = {
    "boosted": GradientBoostingClassifier(n_estimators=12, random_state=0),
    "extra trees": ExtraTreesClassifier(12, max_depth=5, random_state=0),
    "forest": RandomForestClassifier(12, min_samples_leaf=3, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=12),
    "linear": LogisticRegression(),
}


@pytest.mark.parametrize(
    "method", [pytest.param("auto", marks=pytest.mark.slow), "venn_abers"]
)
@pytest.mark.parametrize(
    "name",
    [
        "boosted",
        pytest.param("extra trees", marks=pytest.mark.slow),
        pytest.param("forest", marks=pytest.mark.slow),
        pytest.param("hist", marks=pytest.mark.slow),
        pytest.param("linear", marks=pytest.mark.slow),
        pytest.param("xgboost", marks=pytest.mark.slow),
        pytest.param("lightgbm", marks=pytest.mark.slow),
    ],
)
def test_steps_at_fitted_scores_hold_for_scores_in_float32(name, method):
    X, y, _ = data(n=400)
    estimator = STEPPED[name] if name in STEPPED else boosted(name)
    model = CalibratedModel(estimator, method, cv=2).fit(X, y)
    assert differences(model, X).max() <= 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["auto", "venn_abers", "isotonic"])
def test_steps_of_a_forest_hold_for_seen_and_new_rows(method, dtype):
    check_steps_of_a_forest(method, dtype, seeds=[0])


@pytest.mark.slow
@pytest.mark.cross
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["auto", "venn_abers", "isotonic"])
def test_steps_of_more_forests_hold(method, dtype):
    check_steps_of_a_forest(method, dtype, seeds=[1, 2])


def check_steps_of_a_forest(method, dtype, seeds):
    for seed in seeds:
        X, y = make_classification(
            800, 6, n_informative=5, n_redundant=0, flip_y=0.1, random_state=seed
        )
        X = X.astype(dtype)
        for folds in (2, 5):
            model = CalibratedModel(STEPPED["forest"], method, cv=folds).fit(
                X[:400], y[:400]
            )
            # lines between knots of an isotonic map are steep
            limit = 5e-6 if method == "isotonic" else 2e-7
            assert differences(model, X).max() <= limit


def test_a_registered_converter_keeps_the_steps_too():
    X, y, _ = data(n=400)
    model = CalibratedModel(STEPPED["boosted"], "venn_abers", cv=2).fit(X, y)
    register_onnx_converters()
    versions = {"": 17, "ai.onnx.ml": 3}
    options = {"zipmap": False}
    found = skl2onnx.to_onnx(model, X[:1], target_opset=versions, options=options)
    assert np.abs(run(found, X)[1] - model.predict_proba(X)).max() <= 1e-7


class Moved:
    """A model that predicts as another one, but for one row."""

    def __init__(self, model, row):
        self.model, self.row = model, row

    def predict_proba(self, X):
        proba = self.model.predict_proba(X)
        proba[(self.row == X).all(axis=1)] += [-2e-6, 2e-6]
        return proba


def test_one_wrong_row_of_all_given_is_enough_to_refuse():
    X, y, _ = data(n=600)
    model = CalibratedModel(LogisticRegression(), cv=2).fit(X, y)
    many = np.vstack([X, X + 0.5])
    found = to_onnx(model, X[:2])
    with raises_invalid_input(RuntimeError, value="differences up to 2e-06"):
        _onnx_models._check_onnx_and_record_difference(
            found, Moved(model, many[1100]), many, None
        )
