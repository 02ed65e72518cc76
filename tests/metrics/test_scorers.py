import pickle
from functools import partial

import numpy as np
import pytest
import sklearn
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from sklearn_calib import CalibratedModel
from sklearn_calib.metrics import (
    all_metrics,
    brier_loss,
    calibration_error,
    expected_calibration_error,
    get_scorer,
)

SCORER_NAMES = [one.spec.scorer_name for one in all_metrics().values()]


@pytest.fixture(params=[2, 3])
def data(request):
    X, y = make_classification(
        300, n_informative=5, n_classes=request.param, random_state=0, flip_y=0.2
    )
    return X, np.array(["a", "b", "c"])[y]


def scorer_of_text(name, classes):
    """Return a scorer that has the order of the classes if it needs one: text has none."""
    if name == "neg_ranked_probability_score":
        return get_scorer(name, order=np.roll(classes, 1))
    return get_scorer(name)


@run_every_case("name", SCORER_NAMES)
def test_value(data, name):
    X, y = data
    model = LogisticRegression().fit(X, y)
    scorer = scorer_of_text(name, np.unique(y))
    value = scorer(model, X, y)
    measure = partial(scorer._score_func, **scorer._kwargs)
    assert value == pytest.approx(-measure(y, model.predict_proba(X)), abs=1e-12)
    weight = np.random.default_rng(0).random(len(y))
    weighted = scorer(model, X, y, sample_weight=weight)
    assert weighted == pytest.approx(
        -measure(y, model.predict_proba(X), sample_weight=weight), abs=1e-12
    )


@pytest.mark.slow
def test_model_selection(data):
    X, y = data
    scoring = {name: scorer_of_text(name, np.unique(y)) for name in SCORER_NAMES}
    results = cross_validate(LogisticRegression(), X, y, scoring=scoring)
    assert all(np.isfinite(results[f"test_{name}"]).all() for name in scoring)
    search = GridSearchCV(
        CalibratedModel(LogisticRegression()),
        {"recalibrator": ["temperature", "platt"], "estimator__C": [0.01, 1]},
        scoring=get_scorer("neg_calibration_error", norm="l2", n_bins=5),
    ).fit(X, y)
    assert search.best_score_ <= 0


def test_test_part_may_miss_a_class(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    kept = y != "a"
    value = get_scorer("neg_expected_calibration_error")(model, X[kept], y[kept])
    expected = expected_calibration_error(
        y[kept], model.predict_proba(X[kept]), labels=model.classes_
    )
    assert value == pytest.approx(-expected)


def test_pos_label(data):
    X, y = data
    if len(set(y)) > 2:
        return
    model = LogisticRegression().fit(X, y)
    scorer = get_scorer("neg_calibration_error", pos_label="a", n_bins=7)
    assert scorer(model, X, y) == pytest.approx(
        -calibration_error(y, model.predict_proba(X), pos_label="a", n_bins=7)
    )


def test_metadata_routing(data):
    X, y = data
    weight = np.random.default_rng(1).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        scorer = get_scorer("neg_brier_loss").set_score_request(sample_weight=True)
        plain = get_scorer("neg_brier_loss").set_score_request(sample_weight=False)
        with_weight, without = (
            cross_validate(model, X, y, scoring=s, params={"sample_weight": weight})[
                "test_score"
            ]
            for s in (scorer, plain)
        )
    assert not np.allclose(with_weight, without)


@run_every_case("name", SCORER_NAMES)
def test_equal_scorers(name):
    scorer, again = get_scorer(name), get_scorer(name)
    assert scorer == again and hash(scorer) == hash(again)
    assert len({scorer, again}) == 1
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy == scorer and repr(copy) == repr(scorer) == f"get_scorer({name!r})"
    assert all(scorer != get_scorer(other) for other in SCORER_NAMES if other != name)
    assert scorer != name


def test_options_and_requests_tell_scorers_apart():
    name = "neg_expected_calibration_error"
    ten = get_scorer(name, n_bins=10, pos_label=0)
    assert ten == get_scorer(name, pos_label=0, n_bins=10)
    assert ten != get_scorer(name, n_bins=11, pos_label=0)
    assert ten != get_scorer(name, n_bins=10, pos_label=1)
    assert ten != get_scorer(name, n_bins=10)
    assert pickle.loads(pickle.dumps(ten)) == ten
    edges = [
        type(ten)(ten._score_func, -1, {"edges": np.array(values)})
        for values in ([0, 1], [0, 2])
    ]
    assert edges[0] != edges[1] and edges[0] == pickle.loads(pickle.dumps(edges[0]))
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = get_scorer(name).set_score_request(sample_weight=True)
        assert weighted != get_scorer(name)
        assert weighted == get_scorer(name).set_score_request(sample_weight=True)
        assert pickle.loads(pickle.dumps(weighted)) == weighted


def test_a_search_takes_the_scorer(data):
    """The first screen of the guide to the measures."""
    X, y = data
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=get_scorer("neg_brier_loss")
    ).fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    assert search.scorer_ == get_scorer("neg_brier_loss")


def test_a_measure_that_is_passed_as_a_scorer():
    """scikit-learn calls it with (estimator, X, y): the words say what to pass, not five nan."""
    X, y = np.arange(40.0)[:, None] % 7, np.arange(40) % 2
    words = r"got a LogisticRegression\. .*get_scorer\('neg_expected_calibration_error'"
    options = {"cv": 2, "error_score": "raise"}
    with pytest.raises(TypeError, match=words):
        cross_val_score(
            LogisticRegression(), X, y, scoring=expected_calibration_error, **options
        )
    scorer = get_scorer("neg_expected_calibration_error")
    assert (
        cross_val_score(LogisticRegression(), X, y, scoring=scorer, **options) <= 0
    ).all()
    with raises_invalid_input(
        TypeError, expected=".*two of them, y_true and y_proba", value="3 positional"
    ):
        brier_loss([0, 1], [0.2, 0.7], [1, 1])
