"""A refit while another thread predicts: the model of before, all of it, until the new one is."""

from threading import Event, Thread

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from sklearn_calib.classifiers import CalibratedModel

BEGUN, GOES_ON = Event(), Event()
WAIT = 30  # seconds, which a test that fails takes


class Waiting(LogisticRegression):
    """Its second fit shows that it has begun, and waits."""

    fails = False

    def fit(self, X, y, sample_weight=None):
        if isinstance(y[0], str):
            BEGUN.set()
            assert GOES_ON.wait(WAIT)
            assert not type(self).fails, "the fit fails"
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("ensemble", [True, False])
def test_a_reader_passes_a_fit_that_waits(ensemble, fails, monkeypatch):
    monkeypatch.setattr(Waiting, "fails", fails)
    BEGUN.clear()
    GOES_ON.clear()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    model = CalibratedModel(Waiting(), "platt", cv=2, ensemble=ensemble).fit(X, y)
    before, labels = model.predict_proba(X), model.predict(X)
    failed = []

    def refit():
        try:
            model.fit(-X[:, :2], np.where(y, "yes", "no"))
        except AssertionError as error:
            failed.append(error)

    thread = Thread(target=refit)
    thread.start()
    try:
        assert BEGUN.wait(WAIT)
        assert model.classes_.tolist() == [0, 1]
        assert (model.predict_proba(X) == before).all() and (
            model.predict(X) == labels
        ).all()
    finally:
        GOES_ON.set()
        thread.join()
    assert bool(failed) == fails == (not hasattr(model, "classes_"))
    if not fails:
        assert set(model.predict(X[:, :2])) == {"yes", "no"}


def test_an_iterator_of_folds_is_read_once():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    found = [
        CalibratedModel(LogisticRegression(), "platt", cv=cv).fit(X, y).predict_proba(X)
        for cv in (KFold(4), KFold(4).split(X))
    ]
    np.testing.assert_array_equal(*found)
