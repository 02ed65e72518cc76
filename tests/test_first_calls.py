"""What a user tries first: it works, or is told in the words of what was called."""

import inspect
import pickle

import numpy as np
import pytest
import sklearn
from boosters import imported
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import CalibratedModel, displays
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_dict, from_json, to_dict
from sklearn_calib.groups import grade_calibration
from sklearn_calib.inference import internal_validation
from sklearn_calib.metrics import reliability_curve
from sklearn_calib.recalibrators import PlattScaling, PriorShift
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
P, Y = make_overconfident(2, 200, random_state=0)


@pytest.mark.parametrize("X", [P, P[:, 1], P[:, 1:]])
def test_a_given_mean_needs_no_labels(X):
    weight = np.arange(200) % 3
    shift = PriorShift(mean=0.03).fit(X, sample_weight=weight)
    assert shift.classes_.tolist() == [0, 1]
    moved = shift.predict_proba(X)
    np.testing.assert_array_equal(
        moved, PriorShift(mean=0.03).fit(X, Y, sample_weight=weight).predict_proba(X)
    )
    assert np.average(moved[:, 1], weights=weight) == pytest.approx(0.03, abs=1e-12)
    np.testing.assert_array_equal(from_dict(to_dict(shift)).predict_proba(X), moved)
    assert shift.adapt(X).predict_proba(X)[:, 1].mean() == pytest.approx(
        0.03, abs=1e-12
    )


def test_a_given_mean_names_its_classes():
    by_name = PriorShift(mean={"yes": 0.1, "no": 0.9}).fit(P)
    assert by_name.classes_.tolist() == ["no", "yes"]
    assert PriorShift(mean=0.1).fit(P, classes=["b", "a"]).classes_.tolist() == [
        "b",
        "a",
    ]
    proba = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    three = PriorShift(mean=[0.2, 0.3, 0.5]).fit(proba)
    assert three.predict_proba(proba).mean(axis=0) == pytest.approx(
        [0.2, 0.3, 0.5], abs=1e-12
    )
    with raises_invalid_input(ValueError, expected=r".*(one column per class|columns)"):
        PriorShift(mean=0.1).fit(
            proba[:, :2] / proba[:, :2].sum(axis=1)[:, None], classes=[1, 2, 3]
        )


@pytest.mark.parametrize("method", [PlattScaling(), PriorShift(0.1)])
def test_other_maps_say_that_they_need_labels(method):
    with raises_invalid_input(ValueError, expected="labels y", value="None"):
        method.fit(P)


@pytest.mark.parametrize("kind", [int, float, bool])
def test_grades_of_no_defaults_need_no_labels(kind):
    proba = np.full(40, 0.02)
    found = grade_calibration(np.zeros(40, kind), proba, [0.05])
    assert (
        found.to_dict()
        == grade_calibration([0] * 40, proba, [0.05], labels=[0, 1]).to_dict()
    )
    assert found.rows[0].events == 0 and found.rows[0].n_rows == 40
    assert grade_calibration(np.ones(40, kind), proba, [0.05]).rows[0].events == 40
    with raises_invalid_input(ValueError, hint=".*with labels="):
        grade_calibration(["no"] * 40, proba, [0.05])
    with raises_invalid_input(ValueError, hint=".*with labels="):
        grade_calibration([2] * 40, proba, [0.05])


MAKERS = [
    (cls, name)
    for cls in map(displays.__dict__.get, displays.__all__)
    for name in dir(cls)
    if name.startswith("from_")
]


@pytest.mark.whole
@run_every_case(("cls", "name"), MAKERS)
def test_an_unknown_option_is_refused_by_the_display(cls, name):
    maker = getattr(cls, name)
    parameters = inspect.signature(maker).parameters
    said = r"expected an option among .*, got 'colour'"
    with pytest.raises(TypeError, match=said) as raised:
        maker(
            *(None for one in parameters.values() if one.default is one.empty),
            colour="red",
        )
    assert all(option in str(raised.value) for option in parameters)


def test_options_of_a_display_reach_the_function():
    said = r".*Did you mean 'n_bins'|n_bins"
    model = LogisticRegression().fit(P, Y)
    with raises_invalid_input(TypeError, expected=f".*({said})"):
        displays.ReliabilityDisplay.from_estimator(model, P, Y, bins=3)
    drawn = displays.ReliabilityDisplay.from_estimator(
        model, P, Y, n_bins=3, bands="none"
    )
    assert len(drawn.curves["LogisticRegression"].observed) == 3

    class Own(displays.Display):  # with **options it takes any
        @classmethod
        def from_numbers(cls, **options):
            return options

    assert Own.from_numbers(colour=1) == {"colour": 1}


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_a_booster_is_a_model(package):
    library = imported(package)
    X, y = make_classification(300, random_state=0)
    if package == "xgboost":
        rows = library.DMatrix(X[:150], y[:150])
        booster = library.train({"objective": "binary:logistic", "nthread": 1}, rows, 5)
        given = booster.predict(library.DMatrix(X))
    else:
        settings = {"objective": "binary", "verbose": -1, "num_threads": 1}
        booster = library.train(settings, library.Dataset(X[:150], y[:150]), 5)
        given = booster.predict(X)
    model = CalibratedModel(FrozenEstimator(booster), "platt").fit(X[150:], y[150:])
    expected = PlattScaling().fit(given[150:].astype(float), y[150:])
    np.testing.assert_allclose(
        model.predict_proba(X), expected.predict_proba(given.astype(float)), rtol=1e-9
    )


def test_one_reliability_curve_is_read_at_once():
    curves = reliability_curve(Y, P, n_bins=4, n_resamples=0)
    (curve,) = curves
    assert curves.observed is curve.observed and curves.title == curve.title
    assert pickle.loads(pickle.dumps(curves)).title == curve.title
    summary = CalibrationSummary().update(Y, P)
    assert summary.reliability_curve(n_bins=4, n_resamples=0).weight.sum() == 200
    proba = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    several = reliability_curve(
        np.arange(50) % 3, proba, multiclass="classwise", n_resamples=0
    )
    with raises_invalid_input(
        AttributeError, expected="one curve", value="3 ", hint=r".*curves\[0\].observed"
    ):
        several.observed  # noqa: B018
    assert not hasattr(several, "predictions") and len(several) == 3


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_no_path(text):
    with raises_invalid_input(
        ValueError, expected="JSON or the path of a file", value="an empty text"
    ):
        from_json(text)


def test_weights_reach_the_last_step_of_a_pipeline_alone():
    assert "last step alone" in " ".join(internal_validation.__doc__.split())
    X, y = make_classification(80, random_state=1)
    weight = np.where(np.arange(80) < 40, 3.0, 0.5)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = internal_validation(
        model, X, y, sample_weight=weight, n_resamples=2
    ).estimator
    np.testing.assert_allclose(found[0].mean_, X.mean(axis=0))
    with config_context(enable_metadata_routing=True):
        steps = (
            one.set_fit_request(sample_weight=True)
            for one in (StandardScaler(), found[1])
        )
        found = internal_validation(
            make_pipeline(*steps), X, y, sample_weight=weight, n_resamples=2
        ).estimator
        np.testing.assert_allclose(
            found[0].mean_, np.average(X, axis=0, weights=weight)
        )


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_a_model_of_tensors_is_fitted_under_dispatch(library, monkeypatch):
    xp = pytest.importorskip(library)
    if SKLEARN < (1, 7):  # which needs another package
        pytest.importorskip("array_api_compat")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y = make_classification(120, random_state=0)
    expected = (
        CalibratedModel(LinearDiscriminantAnalysis(), "platt")
        .fit(X, y)
        .predict_proba(X)
    )
    names = np.array(["no", "yes"])  # of which libraries of tensors have no arrays
    text = names[y], names[y].astype(object)
    for labels, classes in (
        (y, [0, 1]),
        (xp.asarray(y), [0, 1]),
        *((t, names) for t in text),
    ):
        with config_context(array_api_dispatch=True):
            model = CalibratedModel(LinearDiscriminantAnalysis(), "platt")
            found = model.fit(xp.asarray(X), labels).predict_proba(xp.asarray(X))
            said = np.asarray(model.predict(xp.asarray(X)))
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-9)
        assert said.tolist() == [classes[code] for code in expected.argmax(axis=1)]


def test_what_chooses_a_threshold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    model = CalibratedModel(GaussianNB(), "platt").fit(X, y)
    for name in ("threshold", "threshold_"):
        with pytest.raises(AttributeError, match="CostSensitiveClassifier"):
            getattr(model, name)
    assert not hasattr(model, "threshold") and not hasattr(model, "other")
    # Errors of properties and of methods that are not available stay theirs.
    with pytest.raises(AttributeError, match=r"no attribute 'other'$"):
        _ = model.other
    with pytest.raises(AttributeError, match="partial_fit_recalibrator"):
        _ = model.partial_fit_recalibrator
    assert pickle.loads(pickle.dumps(model)).predict_proba(X).shape == (60, 2)


def test_pos_label_is_not_for_a_fit():
    X, y = np.arange(12.0)[:, None], np.arange(12) % 2
    with pytest.raises(TypeError, match=r"without pos_label, got 1\. .*to measures"):
        CalibratedModel(GaussianNB()).fit(X, y, pos_label=1)


def test_groups_of_a_report_are_not_subgroups():
    y, p = np.arange(12) % 2, np.full(12, 0.5)
    message = r"groups: one value.*by=table, or report\.add_groups\(table\)"
    with pytest.raises(ValueError, match=message):
        calibration_report(y, p, groups={"site": ["a", "b"] * 6})
