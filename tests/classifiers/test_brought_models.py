"""Models as users bring them, arguments as other packages call them, fits that fail."""

import pickle
import warnings

import numpy as np
import pytest
from boosters import imported
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    PlattScaling,
    all_recalibrators,
    get_recalibrator,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*1000 validation rows")


@pytest.fixture(params=[2, 3])
def data(request):
    return make_classification(
        400, n_informative=6, n_classes=request.param, random_state=0, flip_y=0.1
    )


# -- names ---------------------------------------------------------------------------------------


@run_every_case(
    "argument, hint",
    [
        (
            {"method": "sigmoid"},
            r"Write recalibrator='platt', the same as scikit-learn",
        ),
        ({"method": "isotonic"}, r"Write recalibrator='isotonic'\."),
        ({"method": "temperature"}, r"Write recalibrator='temperature'\."),
        ({"base_estimator": GaussianNB()}, r"Write estimator="),
        ({"bins": 10}, r"Write recalibrator=HistogramBinning\(n_bins\)"),
        ({"recalibrater": "platt"}, r"Write 'recalibrator', the nearest name"),
        ({"colour": "blue"}, r"Leave it out"),
    ],
    ids=str,
)
@run_every_case("cls", [CalibratedModel, RefineThenCalibrateCV])
def test_unknown_arguments_say_what_to_write(cls, argument, hint):
    [name] = argument
    message = rf"expected arguments among estimator, .* got {name}=.*{hint}"
    with pytest.raises(TypeError, match=message):
        cls(GaussianNB(), **argument)


@run_every_case(
    "name, hint",
    [
        ("sigmoid", "Write 'platt', the same as scikit-learn's method='sigmoid'"),
        ("Sigmoid", "Write 'platt'"),
        ("LogisticCalibration", "Write 'platt', the same as netcal's"),
        ("IsotonicRegression", "Write 'isotonic'"),
        ("BetaCalibration", "Write 'beta'"),
        ("temprature", "Write 'temperature', the nearest name"),
        ("venn-abers", "Write 'venn_abers'"),
        ("zzz", "Check the spelling, or pass an instance"),
    ],
)
def test_unknown_names_say_what_to_write(data, name, hint):
    with raises_invalid_input(
        ValueError, expected="one of ", value=rf"'{name}'( \(name\))?", hint=f"{hint}"
    ):
        get_recalibrator(name)
    with raises_invalid_input(ValueError, hint=hint):
        CalibratedModel(GaussianNB(), name).fit(*data)


def test_every_equivalent_exists():
    from sklearn_calib.recalibrators._any_recalibrator import RECALIBRATOR_BY_OTHER_NAME

    assert {name for name, _ in RECALIBRATOR_BY_OTHER_NAME.values()} <= {
        *all_recalibrators(),
        "n_bins",
    }
    assert not set(RECALIBRATOR_BY_OTHER_NAME) & set(all_recalibrators())


def test_options_by_name():
    assert get_recalibrator("histogram_binning", n_bins=7).n_bins == 7
    assert get_recalibrator(PlattScaling(), scale="proba").scale == "proba"
    with raises_invalid_input(
        TypeError,
        expected=".*options among n_bins",
        value="'bins'",
        hint="Write 'n_bins'",
    ):
        get_recalibrator("histogram_binning", bins=7)


def test_prefit(data):
    for cls in (CalibratedModel, RefineThenCalibrateCV):
        with pytest.raises(
            ValueError, match=r"cv='prefit'\. Write .*FrozenEstimator\(model\)"
        ):
            cls(GaussianNB(), cv="prefit").fit(*data)


def test_the_checked_constructor_is_the_constructor():
    model = CalibratedModel(GaussianNB(), "beta", cv=3, ensemble=False)
    assert repr(clone(model)) == repr(model)
    assert pickle.loads(pickle.dumps(model)).recalibrator == "beta"


# -- a fitted model that is not frozen -----------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        make_pipeline(StandardScaler(), GaussianNB()),
        GridSearchCV(GaussianNB(), {}),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_fitted_model_is_told_that_it_is_fitted_again(data, model):
    X, y = data
    fitted = clone(model).fit(X, y)
    with pytest.warns(
        CalibrationWarning, match="got a fitted .*It is fitted again"
    ) as caught:
        CalibratedModel(fitted, "platt").fit(X, y)
    assert sum("fitted again" in str(w.message) for w in caught) == 1
    with pytest.warns(
        CalibrationWarning, match=r"RefineThenCalibrateCV\(FrozenEstimator"
    ):
        RefineThenCalibrateCV(fitted).fit(X, y)
    assert hasattr(fitted, "classes_")  # left as it was


@pytest.mark.slow
def test_no_warning_where_nothing_is_lost(data):
    """Warnings are errors in these tests."""
    X, y = data
    unfitted, fitted = GaussianNB(), GaussianNB().fit(X, y)
    model = CalibratedModel(unfitted, "platt")
    model.fit(X, y).fit(X, y)  # its estimator stays unfitted
    cross_val_predict(model, X, y)
    clone(CalibratedModel(fitted, "platt")).fit(X, y)
    GridSearchCV(model, {"estimator": [fitted]}).fit(X, y)
    make_pipeline(StandardScaler(), model).fit(X, y)
    CalibratedModel(FrozenEstimator(fitted), "platt").fit(X, y)
    frozen_end = make_pipeline(
        FrozenEstimator(StandardScaler().fit(X)), FrozenEstimator(fitted)
    )
    CalibratedModel(frozen_end, "platt").fit(X, y)  # a clone keeps the fit


# -- models of other libraries -------------------------------------------------------------------


class KerasLike:
    """No classes_, no fit of scikit-learn's kind; predict returns probabilities, float32."""

    def __init__(self, model, single=False):
        self.model, self.single = model, single

    def predict(self, X):
        proba = self.model.predict_proba(X).astype(np.float32)
        return proba[:, 1:] if self.single else proba


class ProbaOnly:
    def __init__(self, model):
        self.model = model

    def predict_proba(self, X):
        return self.model.predict_proba(X)


class TensorLike:
    """What a torch module returns: to be detached."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return TensorLike(self.values)

    def cpu(self):
        return self.values


@pytest.mark.parametrize("cls", [CalibratedModel, RefineThenCalibrateCV])
@pytest.mark.parametrize("ensemble", [False, True])
def test_a_model_without_classes(data, cls, ensemble):
    X, y = data
    labels = np.array(["a", "b", "c"])[y]
    base = GaussianNB().fit(X[:200], y[:200])
    kinds = [
        ProbaOnly(base),
        KerasLike(base),
        lambda X: TensorLike(base.predict_proba(X)),
    ]
    kinds += [KerasLike(base, single=True)] if len(set(y)) == 2 else []
    expected = CalibratedModel(FrozenEstimator(base), "beta", ensemble=ensemble).fit(
        X[200:], y[200:]
    )
    for kind in kinds:
        model = cls(FrozenEstimator(kind), recalibrator="beta", ensemble=ensemble)
        model.fit(X[200:], labels[200:])
        assert model.classes_.tolist() == sorted(set(labels))
        if cls is CalibratedModel:
            np.testing.assert_allclose(
                model.predict_proba(X), expected.predict_proba(X), atol=1e-4
            )
        assert set(model.predict(X)) <= set(labels)
        assert "<" in model._repr_html_()


def test_a_model_without_classes_is_pickled_with_its_classes(data):
    X, y = data
    model = CalibratedModel(
        FrozenEstimator(ProbaOnly(GaussianNB().fit(X, y))), "platt"
    ).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_a_class_that_the_labels_miss_is_asked_for():
    X, y = make_classification(300, n_informative=6, n_classes=3, random_state=0)
    model = ProbaOnly(GaussianNB().fit(X, y))
    kept = y != 1
    with raises_invalid_input(
        ValueError,
        expected=".*labels of 3 classes",
        value="2 ",
        hint=".*Set model.classes_ to",
    ):
        CalibratedModel(FrozenEstimator(model)).fit(X[kept], y[kept])
    model.classes_ = np.array([0, 1, 2])  # what the message states
    fitted = CalibratedModel(FrozenEstimator(model), "platt").fit(X[kept], y[kept])
    assert fitted.classes_.tolist() == [0, 1, 2]


def test_what_gives_no_probabilities_is_refused(data):
    X, y = data

    class Labels:
        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    with raises_invalid_input(
        ValueError, expected=".*predict returns probabilities", value="int64 values"
    ):
        CalibratedModel(FrozenEstimator(Labels())).fit(X, y)
    with raises_invalid_input(TypeError, expected="a fitted classifier", value="3"):
        CalibratedModel(FrozenEstimator(3)).fit(X, y)
    with raises_invalid_input(
        TypeError, hint=r".*PlattScaling\(\)\.fit\(canonical_proba\(-model"
    ):
        CalibratedModel(FrozenEstimator(IsolationForest().fit(X))).fit(X, y)
    with pytest.raises(NotFittedError):
        CalibratedModel(FrozenEstimator(GaussianNB())).fit(X, y)


def test_the_recipe_for_outlier_scores():
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.2).astype(int)
    X = rng.normal(size=(2000, 3)) * np.where(y, 3.0, 1.0)[:, None]
    forest = IsolationForest(n_estimators=20, random_state=0).fit(X[:1000])
    scores = canonical_proba(-forest.score_samples(X), kind="logits")
    proba = (
        PlattScaling().fit(scores[:1000], y[:1000]).predict_proba(scores[1000:])[:, 1]
    )
    assert proba.mean() == pytest.approx(0.2, abs=0.05)
    assert proba[y[1000:] == 1].mean() > 0.5


@pytest.mark.parametrize("how", ["float16", "two digits"])
def test_rounded_probabilities(data, how):
    X, y = data

    class Exact(GaussianNB):
        def predict_proba(self, X):
            return 0.9 * super().predict_proba(X) + 0.1 / len(self.classes_)

    class Rounded(Exact):
        def predict_proba(self, X):
            proba = super().predict_proba(X)
            if how == "float16":
                return proba.astype(np.float16).astype(np.float32)
            return proba.round(2)

    model = CalibratedModel(Rounded(), "platt", cv=3).fit(X, y)
    exact = CalibratedModel(Exact(), "platt", cv=3).fit(X, y)
    assert np.abs(model.predict_proba(X).sum(axis=1) - 1).max() < 1e-12
    assert np.abs(model.predict_proba(X) - exact.predict_proba(X)).max() < 0.05


def test_rows_that_are_far_from_1_are_refused(data):
    class Lost(GaussianNB):
        def predict_proba(self, X):
            return 0.95 * super().predict_proba(X)

    with raises_invalid_input(
        ValueError, expected="rows that sum to 1", value="a sum of"
    ):
        CalibratedModel(Lost()).fit(*data)


def test_catboost_with_categories():
    catboost = imported("catboost")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    letters = rng.choice(list("xyz"), 300)
    X = pandas.DataFrame({"number": rng.random(300), "letter": letters})
    y = (rng.random(300) < np.where(letters == "x", 0.8, 0.2)).astype(int)
    options = {
        "iterations": 5,
        "verbose": 0,
        "allow_writing_files": False,
        "thread_count": 1,
    }
    named = catboost.CatBoostClassifier(cat_features=["letter"], **options)
    for cls in (CalibratedModel, RefineThenCalibrateCV):
        model = cls(named).fit(X, y)
        assert model.predict_proba(X)[letters == "x", 1].mean() > 0.6
    model = CalibratedModel(catboost.CatBoostClassifier(**options), "platt")
    model.fit(X, y, cat_features=["letter"])
    assert model.predict_proba(X)[letters == "x", 1].mean() > 0.6
    frozen = CalibratedModel(FrozenEstimator(named.fit(X[:200], y[:200])), "platt")
    assert frozen.fit(X[200:], y[200:]).predict_proba(X).shape == (300, 2)


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_early_stopping_needs_rows(package, piped):
    module = imported(package)
    X, y = make_classification(600, flip_y=0.2, random_state=0)
    options = {"n_estimators": 200, "early_stopping_rounds": 3, "n_jobs": 1}
    if package == "lightgbm":
        options["verbose"] = -1
    cls = module.XGBClassifier if package == "xgboost" else module.LGBMClassifier
    learner = (
        make_pipeline(StandardScaler(), cls(**options)) if piped else cls(**options)
    )
    with raises_invalid_input(
        ValueError, expected="an eval_set ", value="early_stopping_rounds=3"
    ):
        CalibratedModel(learner).fit(X, y)
    if piped:
        return
    silent = {"verbose": False} if package == "xgboost" else {}
    model = CalibratedModel(learner, "platt").fit(
        X[:400], y[:400], eval_set=[(X[400:], y[400:])], **silent
    )
    assert len(model.calibrated_pairs_) == 5
    if package == "xgboost":
        assert (
            max(pair.estimator.best_iteration for pair in model.calibrated_pairs_) < 190
        )


# -- intervals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [False, True])
def test_intervals(data, ensemble):
    X, y = data
    model = CalibratedModel(GaussianNB(), "venn_abers", ensemble=ensemble, cv=3)
    assert not hasattr(model, "predict_interval")
    interval = model.fit(X, y).predict_interval(X)
    k = len(set(y))
    assert interval.shape == ((len(X), 2) if k == 2 else (len(X), k, 2))
    assert (interval[..., 0] <= interval[..., 1]).all()
    single = [
        pair.recalibrator.predict_interval(
            canonical_proba(pair.estimator.predict_proba(X))
        )
        for pair in model.calibrated_pairs_
    ]
    np.testing.assert_allclose(interval, np.mean(single, axis=0), atol=1e-12)
    if k == 2:
        proba = model.predict_proba(X)[:, 1]
        assert (interval[:, 0] - 1e-12 <= proba).all() and (
            proba <= interval[:, 1] + 1e-12
        ).all()
    assert not hasattr(
        CalibratedModel(GaussianNB(), "platt").fit(X, y), "predict_interval"
    )


# -- fits that fail ------------------------------------------------------------------------------


class FailsLater(GaussianNB):
    """Fits a few times, then raises."""

    left, error = 0, None

    def fit(self, X, y, sample_weight=None):
        FailsLater.left -= 1
        if FailsLater.left < 0:
            raise FailsLater.error
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    "error", [RuntimeError("broken"), KeyboardInterrupt()], ids=repr
)
@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("cls", [CalibratedModel, RefineThenCalibrateCV])
@pytest.mark.parametrize("fits_before", [0, 2, 5])
def test_a_failing_fit_leaves_nothing_half_fitted(error, ensemble, cls, fits_before):
    """The classes of the second fit stood beside the pairs of the first."""
    if ensemble and fits_before == 5:
        return  # five folds, no more fits
    X, y = make_classification(200, random_state=0)
    model = cls(FailsLater(), recalibrator="platt", ensemble=ensemble)
    FailsLater.left, FailsLater.error = 100, error
    model.fit(X, y)
    FailsLater.left = fits_before
    with pytest.raises(type(error)):
        model.fit(X, np.array(["no", "yes"])[y])
    with pytest.raises(NotFittedError):
        model.predict_proba(X)
    assert not [name for name in vars(model) if name.endswith("_") and name[0] != "_"]
    FailsLater.left = 100
    np.testing.assert_array_equal(model.fit(X, y).classes_, [0, 1])


def test_a_recalibrator_that_fails(data):
    class Broken(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("broken")

        def predict_proba(self, X):
            return X

    for cls in (CalibratedModel, RefineThenCalibrateCV):
        model = cls(GaussianNB()).fit(*data)
        model.set_params(recalibrator=Broken())
        with pytest.raises(RuntimeError, match="broken"):
            model.fit(*data)
        with pytest.raises(NotFittedError):
            model.predict(data[0])


def test_warnings_point_to_the_line_of_the_user():
    X, y = make_classification(200, random_state=0)
    fitted = LogisticRegression().fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CalibratedModel(fitted, "platt").fit(X, y)
    pytest.importorskip("sklearn.callback")
    assert caught[0].filename == __file__


# -- models without a FrozenEstimator that scikit-learn does not know ------------------------------


class Bare:
    """A network in the manner of Keras: predict gives probabilities."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return 1 / (1 + np.exp(-X[:, :1]))


@pytest.mark.parametrize("cls", [CalibratedModel, RefineThenCalibrateCV])
@pytest.mark.parametrize("model", [Bare(), lambda X: X], ids=["keras", "function"])
def test_a_bare_model_says_what_to_write(cls, model):
    X, y = make_classification(200, random_state=0)
    message = r"expected a classifier .* write FrozenEstimator\(model\)"
    with pytest.raises(TypeError, match=message):
        cls(model).fit(X, y)
    if isinstance(model, Bare):
        # what the message states
        CalibratedModel(FrozenEstimator(model), "platt").fit(X, y)


@pytest.mark.parametrize("piped", [False, True])
def test_a_bare_outlier_detector_says_what_to_write(piped):
    X, y = make_classification(200, random_state=0)
    model = IsolationForest(n_estimators=5, random_state=0)
    model = make_pipeline(StandardScaler(), model) if piped else model
    for given in (model, clone(model).fit(X)):
        with raises_invalid_input(
            TypeError, value="IsolationForest, ", hint=r".*PlattScaling\(\)\.fit"
        ):
            CalibratedModel(given).fit(X, y)


class OwnOrder(ClassifierMixin, BaseEstimator):
    """A fitted network whose classes are not sorted: its columns are those of ``classes_``."""

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    @property
    def classes_(self):
        return np.array(self.labels)

    def predict_proba(self, X):
        shares = np.exp(X[:, : len(self.labels)])
        return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("labels", [("pos", "neg"), ("b", "c", "a")])
@pytest.mark.parametrize("recalibrator", ["default", LogisticRegression(C=100.0)])
@pytest.mark.filterwarnings("ignore:Recalibration increased the log loss")
def test_columns_are_those_of_a_network_with_an_order_of_its_own(labels, recalibrator):
    """A plain classifier as a recalibrator sorts its classes."""
    rng = np.random.default_rng(0)
    X = 2 * rng.normal(size=(600, 3))
    network = OwnOrder(labels)
    shares = network.predict_proba(X)
    y = np.array(labels)[(rng.random((600, 1)) > shares.cumsum(axis=1)).sum(axis=1)]
    model = CalibratedModel(FrozenEstimator(network), recalibrator).fit(X, y)
    assert model.classes_.tolist() == [*labels]
    assert np.abs(model.predict_proba(X) - shares).mean() < 0.1
    assert model.score(X, y) > 0.6
