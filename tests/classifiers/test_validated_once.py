"""Labels are validated once for each fit, however many folds and recalibrators it has."""

import sys

import numpy as np
import pytest
from cases import run_every_case
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from sklearn_calib import CalibratedModel
from sklearn_calib.classifiers._classifier_scores import (
    compute_canonical_classifier_scores,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    OneVsRest,
    PlattScaling,
    StackedCalibration,
    TemperatureScaling,
    cross_fitted_proba,
    get_recalibrator,
)

rng = np.random.default_rng(0)
Y = rng.permutation(np.arange(120) % 2)
X = rng.normal(size=(120, 2)) + Y[:, None]
TABLE = np.column_stack([Y, 1 - rng.permutation(Y)])
ROWS = GaussianNB().fit(X, Y).predict_proba(X)


def count_readings(call):
    """Return how often labels are validated in a call."""
    readings = 0

    def note(frame, event, _):
        nonlocal readings
        if event == "call":
            readings += frame.f_code.co_name in ("read_labels", "read_label_table")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return readings


@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@run_every_case(
    ("model", "y", "options"),
    [
        (CalibratedModel(GaussianNB()), Y, {}),
        (CalibratedModel(GaussianNB(), "temperature"), np.array(["no", "yes"])[Y], {}),
        (
            CalibratedModel(GaussianNB(), "platt", ensemble=False),
            Y,
            {"sample_weight": 1 + Y},
        ),
        (CalibratedModel(GaussianNB(), OneVsRest("beta"), cv=2), Y, {}),
        (
            CalibratedModel(
                GaussianNB(), StackedCalibration(["platt", "beta"], cv=2), cv=2
            ),
            Y,
            {},
        ),
        (
            CalibratedModel(GaussianNB(), "platt", cv=2),
            ROWS[:, 1],
            {"soft_labels": True},
        ),
        (
            CalibratedModel(FrozenEstimator(GaussianNB().fit(X, Y)), "temperature"),
            Y,
            {},
        ),
        (CalibratedModel(MultiOutputClassifier(GaussianNB()), cv=2), TABLE, {}),
    ],
)
def test_a_fit_validates_labels_once(model, y, options):
    assert count_readings(lambda: model.fit(X, y, **options)) == 1


def test_cross_fitting_validates_labels_once():
    assert count_readings(lambda: cross_fitted_proba("default", ROWS, Y)) == 1


class Remembering(PlattScaling):
    """A recalibrator of another package whose fit does more."""

    def fit(self, X, y=None, sample_weight=None, classes=None, *, soft_labels=False):
        super().fit(X, y, sample_weight, classes, soft_labels=soft_labels)
        self.labels_ = y
        return self


def test_a_fit_that_is_overridden_gets_labels():
    y = np.array(["no", "yes"])[Y]
    model = CalibratedModel(GaussianNB(), Remembering(), cv=2).fit(X, y)
    for pair in model.calibrated_pairs_:
        assert set(pair.recalibrator.labels_) == {"no", "yes"}


@pytest.mark.parametrize(
    "name",
    [
        "default",
        "platt",
        "isotonic",
        "venn_abers",
        "auto",
        pytest.param("adaptive", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
def test_a_fold_is_the_public_fit(name):
    """The recalibrator of a fold is the one that its scores and labels give by themselves."""
    y = np.array(["no", "yes"])[Y]
    weight = rng.integers(0, 3, 120)
    train, test = np.arange(60), np.arange(60, 120)
    model = CalibratedModel(GaussianNB(), name, cv=[(train, test)], ensemble=True)
    model.fit(X, y, weight)
    [pair] = model.calibrated_pairs_
    scores = compute_canonical_classifier_scores(pair.estimator, X[test], "auto")
    alone = get_recalibrator(name).fit(scores, y[test], weight[test])
    assert (pair.recalibrator.predict_proba(ROWS) == alone.predict_proba(ROWS)).all()
    assert pair.recalibrator.n_features_in_ == alone.n_features_in_


def test_a_pipeline_is_fitted_as_scikit_learn_does():
    chain = make_pipeline(TemperatureScaling(), PlattScaling())
    model = CalibratedModel(GaussianNB(), chain, cv=2).fit(
        X, np.array(["no", "yes"])[Y]
    )
    assert model.calibrated_pairs_[0].recalibrator[-1].classes_.tolist() == [
        "no",
        "yes",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_harm_is_reported_once_wherever_the_folds_were_fitted(n_jobs):
    y = (rng.random(2000) < 0.05).astype(int)
    features = rng.normal(size=(2000, 1)) + y[:, None]
    classifier = LogisticRegression(class_weight="balanced")
    model = CalibratedModel(classifier, "temperature", n_jobs=n_jobs)
    with pytest.warns(
        CalibrationWarning, match="standard errors from its frequency"
    ) as caught:
        model.fit(features, y)
    assert len(caught) == 1
