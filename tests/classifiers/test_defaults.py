"""What happens when no method is chosen: forests, neighbours, trees, class weights, hard data."""

import warnings

import numpy as np
import pytest
from cases import run_every_case
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    DefaultCalibration,
    PlattScaling,
    TemperatureScaling,
)

HARMED = "mean is the class's frequency|is not above the uncalibrated one"


def imbalanced(n, positives, seed=0, flip=0.002):
    return make_classification(
        n,
        n_features=12,
        n_informative=6,
        weights=[1 - positives],
        flip_y=flip,
        class_sep=0.8,
        random_state=seed,
    )


def thirds(X, y):
    X_train, X, y_train, y = train_test_split(
        X, y, train_size=1 / 3, stratify=y, random_state=0
    )
    X_calib, X, y_calib, y = train_test_split(
        X, y, train_size=1 / 2, stratify=y, random_state=0
    )
    return X_train, y_train, X_calib, y_calib, X, y


@pytest.mark.slow
@pytest.mark.parametrize(
    "classifier, method",
    [
        (RandomForestClassifier(30, random_state=0), "default"),
        pytest.param(
            RandomForestClassifier(random_state=0), "platt", marks=pytest.mark.slow
        ),
        (KNeighborsClassifier(), "default"),
        (DecisionTreeClassifier(random_state=0), "beta"),
        (DecisionTreeClassifier(min_samples_leaf=5, random_state=0), "default"),
    ],
    ids=repr,
)
def test_exact_zeros_of_rare_positives(classifier, method):
    """A few positives at probability 0 must not dictate the fit."""
    X_train, y_train, X_calib, y_calib, X, y = thirds(
        *imbalanced(12_000, 0.03, flip=0.01)
    )
    frozen = FrozenEstimator(classifier.fit(X_train, y_train))
    assert (frozen.predict_proba(X_calib)[y_calib == 1, 1] == 0).any()
    theirs = CalibratedClassifierCV(frozen).fit(X_calib, y_calib).predict_proba(X)
    ours = CalibratedModel(frozen, method).fit(X_calib, y_calib).predict_proba(X)
    assert log_loss(y, ours) < 1.04 * log_loss(y, theirs)
    assert ours[:, 1].mean() == pytest.approx(y.mean(), abs=0.01)


@pytest.mark.parametrize(
    "method",
    [
        "default",
        *(pytest.param(m, marks=pytest.mark.slow) for m in ("platt", "temperature")),
    ],
)
def test_exact_zeros_of_many_classes(method):
    X_train, y_train, X_calib, y_calib, X, y = thirds(*load_digits(return_X_y=True))
    frozen = FrozenEstimator(
        RandomForestClassifier(50, random_state=0).fit(X_train, y_train)
    )
    theirs = CalibratedClassifierCV(frozen).fit(X_calib, y_calib).predict_proba(X)
    ours = CalibratedModel(frozen, method).fit(X_calib, y_calib).predict_proba(X)
    assert log_loss(y, ours) < 1.05 * log_loss(y, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("search", [False, True])
def test_class_weights(search):
    """1 % positives: the default brings the base rate back, temperature cannot and reports it."""
    X, y = imbalanced(12_000, 0.005, flip=0.01)
    learner = LogisticRegression(class_weight="balanced", max_iter=1000)

    def fitted(method):
        if search:
            return RefineThenCalibrateCV(learner, recalibrator=method, cv=3).fit(X, y)
        return CalibratedModel(learner, method, cv=3).fit(X, y)

    rate = y.mean()
    assert clone(learner).fit(X, y).predict_proba(X)[:, 1].mean() > 20 * rate
    assert fitted("default").predict_proba(X)[:, 1].mean() == pytest.approx(
        rate, rel=0.1
    )
    with pytest.warns(
        CalibrationWarning, match=r"mean .* class 1 .* recalibrator='default'"
    ):
        model = fitted("temperature")
    assert model.predict_proba(X)[:, 1].mean() > 10 * rate


def hard_sets():
    """(name, scores of shape (n, k), labels, how far above the truth the log loss may be)."""
    rng = np.random.default_rng(0)
    for k in (2, 4):
        z = 2 * rng.normal(size=(6000, k))
        y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        for n in (k, 10, 30):
            yield (
                f"tiny, {n} rows",
                canonical_proba(z[:n], kind="logits"),
                np.arange(n) % k,
                None,
            )
        yield "overconfident", canonical_proba(5 * z, kind="logits"), y, 0.01
        yield "saturated", np.eye(k)[z.argmax(axis=1)], y, None
        yield "separable", canonical_proba(z, kind="logits"), z.argmax(axis=1), None
        for far in (3, 8):
            moved = z + np.linspace(0, far, k)
            yield (
                f"base rate shifted by {far}",
                canonical_proba(moved, kind="logits"),
                y,
                0.01,
            )
        rare = z - 5 * (np.arange(k) == k - 1)
        y = (rare + rng.gumbel(size=z.shape)).argmax(axis=1)
        yield "imbalanced", softmax(rare, axis=1), y, 0.01
        yield "imbalanced and shifted", softmax(z, axis=1), y, 0.01
        yield "worse than a guess", canonical_proba(-z, kind="logits"), y, None
        yield "constant", np.full((200, k), 1 / k), y[:200], None


@pytest.mark.slow
@run_every_case(
    "scores, y, excess",
    [
        pytest.param(scores, y, excess, id=f"{name}, {scores.shape[1]} classes")
        for name, scores, y, excess in hard_sets()
    ],
)
def test_hard_data(scores, y, excess):
    """Never worse than the class frequencies on the fitted rows; near the truth where known."""
    k = scores.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = DefaultCalibration().fit(scores, y, classes=range(k))
    proba = model.predict_proba(scores)
    assert np.abs(proba.sum(axis=1) - 1).max() < 1e-12 and (proba > 0).all()
    frequency = np.bincount(y, minlength=k) / len(y)
    loss = log_loss(y, proba, labels=range(k))
    entropy = -(frequency @ np.log(np.maximum(frequency, 1e-300)))
    kept = proba[:, frequency == 0].sum(axis=1).mean()  # of classes without a row
    assert loss <= entropy - np.log(1 - kept) + (0.5 if len(y) <= 30 else 0.01)
    if excess is None:
        return
    held = np.arange(len(y)) % 2 == 0
    half = DefaultCalibration().fit(scores[~held], y[~held], classes=range(k))
    # has seen these rows
    best = PlattScaling().fit(scores[held], y[held], classes=range(k))
    after, bound = (
        log_loss(y[held], part.predict_proba(scores[held]), labels=range(k))
        for part in (half, best)
    )
    assert after < bound + excess


def test_default_of_both_wrappers():
    X, y = imbalanced(600, 0.3)
    model = CalibratedModel(LogisticRegression(), ensemble=False).fit(X, y)
    assert isinstance(model.recalibrator_, DefaultCalibration)
    alo = CalibratedModel(LogisticRegression(), cv="alo").fit(X, y)
    assert isinstance(alo.recalibrator_, DefaultCalibration)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # few rows to choose by
        search = RefineThenCalibrateCV(LogisticRegression(), {"C": [0.1, 1]}).fit(X, y)
    assert isinstance(search.recalibrator_, DefaultCalibration)


# -- the warning ----------------------------------------------------------------------------------


class Known(LogisticRegression):
    """Its scores are its feature, the log-odds."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.ravel(X)


def calibrated_rows(n, base, seed):
    rng = np.random.default_rng(seed)
    z = base + 1.5 * rng.normal(size=n)
    y = (rng.random(n) < expit(z)).astype(int)
    y[:2] = 0, 1
    return z[:, None], y


def warned(method, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CalibratedModel(FrozenEstimator(Known().fit(X, y)), method).fit(X, y)
    return any(
        "standard errors from" in str(w.message)
        or "increased the log loss" in str(w.message)
        for w in caught
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        "default",
        *(
            pytest.param(name, marks=pytest.mark.cross)
            for name in ("temperature", "platt", "beta", "venn_abers")
        ),
    ],
)
def test_no_false_alarms(method):
    """300 calibrated models of 20 to 2000 rows: at most 1 % are warned of."""
    alarms = [
        warned(method, *calibrated_rows(n, base, seed))
        for n in (20, 100, 500, 2000)
        for base in (0, -3)
        for seed in range(40)
    ]
    assert np.mean(alarms) <= 0.01


@pytest.mark.parametrize(("n_events", "is_named"), [(169, True), (170, False)])
def test_three_standard_errors_from_the_base_rate(n_events, is_named):
    """Of 400 rows at 1/2 one row is added to the variance: 31 / sqrt(101) > 3 > 30 / sqrt(101)."""
    scores = np.tile([1e-9, -1e-9], 200)[:, None]
    y = np.repeat([1, 0], [n_events, 400 - n_events])
    assert warned("identity", scores, y) is is_named


def test_alarms():
    """A moved base rate, and a map that overfits."""
    X, y = calibrated_rows(2000, -4, 0)
    assert warned("temperature", X + 4, y) and not warned("default", X + 4, y)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = 0.01 * rng.normal(size=(1000, 1))
    with pytest.warns(CalibrationWarning, match="increased the log loss .* from .* to"):
        CalibratedModel(
            FrozenEstimator(Known().fit(X, y)), DecisionTreeClassifier(random_state=0)
        ).fit(X, y)


def test_few_rows_are_no_evidence():
    X, y = calibrated_rows(12, 0, 1)
    assert not warned(TemperatureScaling(), X + 1, y)
