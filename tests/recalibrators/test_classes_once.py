"""A class that no row has is named once, when the map is fitted."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel
from sklearn_calib.metrics import get_scorer
from sklearn_calib.recalibrators import (
    all_recalibrators,
    cross_fitted_proba,
    get_recalibrator,
)
from sklearn_calib.report import calibration_report

NAMES = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def rows():
    """Probabilities of three classes, and labels of two of them."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    codes = (rng.random(300)[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    kept = codes != 2
    return proba, proba[kept], NAMES[codes[kept]]


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.parametrize(
    "name", ["temperature", "isotonic", "dirichlet", "histogram_binning"]
)
def test_after_the_fit(rows, name):
    _, proba, y = rows
    fitted = get_recalibrator(name).fit(proba, y, classes=NAMES)
    assert fitted.score(proba, y) > 0.4
    for scorer in ("neg_log_loss", "neg_expected_calibration_error"):
        assert np.isfinite(get_scorer(scorer)(fitted, proba, y))


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_further_batches_of_labels(rows):
    _, proba, y = rows
    fitted = all_recalibrators()["online"]().fit(proba[:30], y[:30], classes=NAMES)
    fitted.partial_fit(proba[30:], y[30:])
    assert fitted.classes_.tolist() == NAMES.tolist()


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_models_know_their_classes(rows):
    every, proba, y = rows
    model = LogisticRegression().fit(every, NAMES[every.argmax(axis=1)])
    wrapped = CalibratedModel(FrozenEstimator(model), "platt").fit(proba, y)
    assert wrapped.predict_proba(every).shape == every.shape
    assert np.isfinite(get_scorer("neg_log_loss")(wrapped, proba, y))


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.filterwarnings("ignore:.*rows of every class, for an interval")
@pytest.mark.slow
def test_folds_and_reports(rows):
    _, proba, y = rows
    assert (
        cross_fitted_proba("temperature", proba, y, classes=NAMES).shape == proba.shape
    )
    report = calibration_report(y, proba, labels=NAMES, n_resamples=2)
    assert report.advise()["model"] is not None
    assert "classes=['a', 'b', 'c']" in report.advice["model"].code
