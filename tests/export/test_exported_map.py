"""A map that was read stands wherever a recalibrator does."""

import pickle

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from export_cases import DEFAULTS, METHODS, fitted, tabulate
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.displays import CalibratingFunctionDisplay
from sklearn_calib.export import (
    ExportedMap,
    from_dict,
    from_json,
    skops_trusted,
    to_dict,
    to_json,
    to_onnx,
)
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    OneVsRest,
    PlattScaling,
    cross_fitted_proba,
)
from sklearn_calib.testing import contract_checks

# learning is not what it does; these checks fit it to data of other classes or other
# labels
NOT_ITS = (
    "check_labels",
    "check_learns",
    "check_direction",
    "check_refit",
    "check_missing_class",
    "check_one_class",
    "check_constant_scores",
    "check_class_permutation",
    "check_capabilities",
    "check_shape",
    "check_weights_are_repetition",
    "check_bad_input",
    "check_containers",
    "check_documented",
)
RANGE = (2, 4)


def exported(k, name="default"):
    return from_dict(to_dict(fitted(name, k), **tabulate(name)))


def checks():
    for k in RANGE:
        for name, check in contract_checks(exported(k), n_classes=(k,)):
            if not name.startswith(NOT_ITS):
                yield pytest.param(check, id=name)


@run_every_case("check", list(checks()))
def test_contract(check):
    check()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.5, np.nan]], "finite"),
        ([[0.5, 0.6]], "sum to 1"),
        ([[0.2, 0.3, 0.5]], "2 columns of scores"),
    ],
)
def test_bad_rows_are_refused(rows, words):
    with raises_invalid_input(ValueError, expected=f".*{words}"):
        exported(2).predict_proba(rows)


def test_it_needs_no_fit():
    document = to_dict(fitted("beta", 2))
    rows = make_overconfident(2, 50)[0]
    fresh = ExportedMap(document)
    assert vars(fresh) == {"document": document}
    expected = fitted("beta", 2).predict_proba(rows)
    assert np.abs(fresh.predict_proba(rows) - expected).max() <= 1e-15
    assert np.abs(clone(fresh).predict_proba(rows) - expected).max() <= 1e-15
    assert fresh.classes_.tolist() == [0, 1] and fresh.n_features_in_ == 2
    again = pickle.loads(pickle.dumps(fresh))
    assert vars(again).keys() == {"document"}
    assert np.array_equal(again.predict_proba(rows), fresh.predict_proba(rows))
    assert is_classifier(fresh)
    assert repr(fresh) == "<ExportedMap of 'beta', 2 classes>"
    with pytest.raises(AttributeError, match="no attribute 'coef_'"):
        _ = fresh.coef_


def test_fit_checks_and_changes_nothing():
    proba, y = make_overconfident(3, 90)
    method = exported(3)
    before = method.predict_proba(proba)
    assert np.array_equal(method.fit(proba, (y + 1) % 3).predict_proba(proba), before)
    for bad, words in (
        (lambda: method.fit(proba, y + 1), r"labels among \[0, 1, 2\]"),
        (
            lambda: method.fit(proba[:, :2] / proba[:, :2].sum(1, keepdims=True), y),
            "3 columns",
        ),
        (lambda: method.fit(proba, y, classes=[2, 1, 0]), "the classes of the map"),
        (lambda: method.fit(proba, y[:-1]), "as many labels"),
        (
            lambda: ExportedMap({"format": 1}).fit(proba, y),
            "expected a value, got nothing",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            bad()


def test_in_a_pipeline_and_in_combinators():
    proba, y = make_overconfident(2, 200)
    chained = make_pipeline(exported(2), PlattScaling()).fit(proba, y)
    again = from_dict(to_dict(chained))
    got = again.predict_proba(proba)
    assert np.abs(got - chained.predict_proba(proba)).max() <= 1e-12
    out = cross_fitted_proba(exported(2), proba, y)
    assert np.array_equal(out, exported(2).predict_proba(proba))
    three, labels = make_overconfident(3, 200)
    lifted = OneVsRest(exported(2)).fit(three, labels)
    got = from_dict(to_dict(lifted)).predict_proba(three)
    assert np.abs(got - lifted.predict_proba(three)).max() <= 1e-12


def test_in_a_calibrated_model_and_a_display():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    proba = model.predict_proba(X)
    method = exported_for(proba, y)
    wrapped = CalibratedModel(FrozenEstimator(model), method).fit(X, y)
    assert np.abs(wrapped.predict_proba(X) - method.predict_proba(proba)).max() <= 1e-12
    display = CalibratingFunctionDisplay.from_recalibrators(method)
    assert len(display.axes_) == 1


def exported_for(proba, y):
    return from_dict(to_dict(IsotonicCalibration().fit(proba, y)))


def test_logits_keep_their_logarithms():
    logits = np.array([[0.0, 800.0], [0.0, -900.0], [3.0, 1.0]])
    rows = canonical_proba(logits, kind="logits")
    method = fitted("temperature", 2)
    got = exported(2, "temperature").predict_proba(rows)
    assert np.abs(got - method.predict_proba(rows)).max() <= 1e-15


# -- other ways to keep a fitted recalibrator -----------------------------------------------------


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        name
        if name in DEFAULTS and name not in ("adaptive", "angular")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in METHODS
    ],
)
def test_skops(name, k):
    skops = pytest.importorskip("skops.io")
    method = fitted(name, k)
    content = skops.dumps(method)
    unknown = skops.get_untrusted_types(data=content)
    assert set(unknown) <= set(skops_trusted)
    again = skops.loads(content, trusted=skops_trusted)
    rows = make_overconfident(k, 50, random_state=2)[0]
    assert np.array_equal(again.predict_proba(rows), method.predict_proba(rows))


def test_skops_of_an_exported_map():
    skops = pytest.importorskip("skops.io")
    method = exported(2)
    again = skops.loads(skops.dumps(method), trusted=skops_trusted)
    rows = make_overconfident(2, 50, random_state=2)[0]
    assert np.array_equal(again.predict_proba(rows), method.predict_proba(rows))


def test_skops_trusts_types_of_the_package_alone():
    assert all(name.startswith("sklearn_calib.") for name in skops_trusted)
    assert len(set(skops_trusted)) == len(skops_trusted)


def test_whole_models_are_trusted_and_named_where_a_map_is_expected():
    sio = pytest.importorskip("skops.io")
    X = np.random.default_rng(0).normal(size=(80, 2))
    model = CalibratedModel(LogisticRegression(), ensemble=False).fit(X, X[:, 0] > 0)
    data = sio.dumps(model)
    assert set(sio.get_untrusted_types(data=data)) <= set(skops_trusted)
    again = sio.loads(data, trusted=skops_trusted)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    with raises_invalid_input(
        TypeError, value="CalibratedModel", hint=r"Pass .*model\.recalibrator_"
    ):
        to_dict(model)
    many = CalibratedModel(LogisticRegression(), ensemble=True).fit(X, X[:, 0] > 0)
    with raises_invalid_input(
        TypeError, hint=r".*model\.calibrated_pairs_\[0\]\.recalibrator"
    ):
        to_dict(many)
    texts = CalibratedModel(LogisticRegression()).fit(
        X, np.where(X[:, 0] > 0, b"yes", b"no")
    )
    pytest.importorskip("skl2onnx")
    with raises_invalid_input(TypeError, value="bytes", hint=r".*y\.astype\(str\)"):
        to_onnx(texts, X)


def test_a_label_with_half_a_character_is_written_and_read(tmp_path):
    names = ["a\ud800", "b"]
    fitted = PlattScaling().fit(
        [0.1, 0.4, 0.6, 0.9], [names[0], names[1]] * 2, classes=names
    )
    to_json(fitted, tmp_path / "map.json")
    assert from_json(tmp_path / "map.json").classes_.tolist() == names
