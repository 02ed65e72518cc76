"""Models without predict_proba or classes_, where displays and reports want probabilities."""

import re

import numpy as np
import pytest
from cases import run_every_case
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_calib import canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.displays import (
    CumulativeDifferenceDisplay,
    DecompositionDisplay,
    GroupReliabilityDisplay,
    ReliabilityDisplay,
)
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.report import calibration_report

PROBA, Y = make_overconfident(2, 300)
X = PROBA[:, 1:]
DISPLAYS = {
    CumulativeDifferenceDisplay: {},
    DecompositionDisplay: {},
    GroupReliabilityDisplay: {"groups": np.arange(300) % 2},
    ReliabilityDisplay: {},
}


class KerasLike:
    def predict(self, X):
        return X


class NoClasses:
    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


FOREST = IsolationForest(n_estimators=5, random_state=0).fit(X)
WRITE = "If its predict gives probabilities, write {}(y, model.predict(X))"
PLATT = "kind='logits'), y), and write {}(y, its probabilities)"
WRONG = {
    "keras": (KerasLike(), "KerasLike, which has no predict_proba", WRITE),
    "frozen keras": (FrozenEstimator(KerasLike()), "KerasLike, which has no", WRITE),
    "function": (
        lambda X: X,
        "function",
        "If it gives probabilities, write {}(y, model(X))",
    ),
    "forest": (FOREST, "IsolationForest, which learns no labels", PLATT),
    "piped": (
        make_pipeline(StandardScaler(), FOREST),
        "IsolationForest, which learns",
        PLATT,
    ),
    "svc": (
        LinearSVC().fit(X, Y),
        "LinearSVC",
        "CalibratedModel(FrozenEstimator(model)).fit",
    ),
    "class": (
        LogisticRegression,
        "the class LogisticRegression",
        "fit it and pass that",
    ),
}


def said(call, *args, **options):
    with pytest.raises(TypeError) as caught:
        call(*args, **options)
    return str(caught.value)


@run_every_case("kind", WRONG)
def test_what_to_write_instead(kind):
    model, got, hint = WRONG[kind]
    for display, options in DISPLAYS.items():
        message = said(display.from_estimator, model, X, Y, **options)
        assert message.startswith("expected a fitted classifier with predict_pr")
        assert got in message
        assert hint.format(f"{display.__name__}.from_predictions") in message
    two = {"good": LogisticRegression().fit(X, Y), "other": model}
    assert got in said(ReliabilityDisplay.from_estimator, two, X, Y)
    for given in (model, {"a": PROBA, "b": model}):
        message = said(calibration_report, Y, given)
        assert message.startswith("expected probabilities, got ")
        assert got in message and hint.format("calibration_report") in message


def test_a_display_of_one_model_takes_no_dict():
    two = dict.fromkeys("ab", LogisticRegression().fit(X, Y))
    assert "got dict, which has no" in said(
        CumulativeDifferenceDisplay.from_estimator, two, X, Y
    )
    assert list(ReliabilityDisplay.from_estimator(two, X, Y).curves) == ["a", "b"]


def test_the_class_or_the_name_of_a_fitted_model():
    model = LogisticRegression().fit(X, Y)
    assert list(ReliabilityDisplay.from_estimator(model, X, Y).curves) == [
        "LogisticRegression"
    ]
    assert list(ReliabilityDisplay.from_estimator(model, X, Y, name="mine").curves) == [
        "mine"
    ]
    with pytest.raises(TypeError, match=r"expected an option .*, got 'name'"):
        CumulativeDifferenceDisplay.from_estimator(model, X, Y, name="mine")


def test_a_classifier_in_a_report():
    message = said(calibration_report, Y, LogisticRegression().fit(X, Y))
    assert re.search(
        r"the model LogisticRegression.*\(y, model\.predict_proba\(X\)\)", message
    )


def test_what_is_said_works():
    report = calibration_report(Y, KerasLike().predict(X), n_resamples=20)
    assert report.n_samples == 300
    ReliabilityDisplay.from_predictions(Y, KerasLike().predict(X), n_resamples=0)
    logits = canonical_proba(-FOREST.score_samples(X), kind="logits")
    proba = PlattScaling().fit(logits, Y).predict_proba(logits)
    ReliabilityDisplay.from_predictions(Y, proba, n_resamples=0)


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
def test_without_classes_the_labels_are_the_classes(display):
    options = dict(DISPLAYS[display])
    found = display.from_estimator(NoClasses(), X, Y, **options)
    groups = options.pop("groups", None)
    rest = () if groups is None else (groups,)
    expected = display.from_predictions(Y, PROBA, *rest)
    for mine, theirs in zip(
        found.get_plotted_data(), expected.get_plotted_data(), strict=True
    ):
        for one, other in zip(mine, theirs, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float))
