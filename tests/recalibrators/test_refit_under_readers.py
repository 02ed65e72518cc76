"""A fit again while others predict: what they see is the old map until the new one is whole."""

import threading

import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.base import clone
from words import QUICKER

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.recalibrators import all_recalibrators

ROWS = make_overconfident(2, 80)
AGAIN = make_overconfident(2, 90, random_state=1)


@pytest.mark.parametrize(
    "name", ["PlattScaling", "TemperatureScaling", "IsotonicCalibration"]
)
def test_readers_see_the_old_map_until_the_new_one_is_whole(name, monkeypatch):
    known = {cls.__name__: cls for cls in all_recalibrators().values()}
    cls = known[name]
    model = cls(**QUICKER.get(name, {})).fit(*ROWS)
    old, seen = model.predict_proba(ROWS[0]), []
    whole = cls._fit

    def slowly(self, *rows):
        for _ in range(2):  # before and after the arithmetic, from another thread
            reader = threading.Thread(
                target=lambda: seen.append(model.predict_proba(ROWS[0]))
            )
            reader.start()
            reader.join()
            whole(self, *rows)

    monkeypatch.setattr(cls, "_fit", slowly)
    assert model.fit(*AGAIN) is model
    assert len(seen) == 2 and all(np.array_equal(one, old) for one in seen)
    monkeypatch.undo()
    assert np.array_equal(
        model.predict_proba(ROWS[0]), clone(model).fit(*AGAIN).predict_proba(ROWS[0])
    )


def test_a_prediction_that_has_begun_ends_with_the_map_it_began_with(monkeypatch):
    model = all_recalibrators()["temperature"]().fit(*ROWS)
    old = model.predict_proba(ROWS[0])
    check = type(model)._read_predict_input

    def refitted_meanwhile(self, X):
        proba = check(self, X)
        monkeypatch.undo()
        model.fit(*AGAIN)
        return proba

    monkeypatch.setattr(type(model), "_read_predict_input", refitted_meanwhile)
    assert np.array_equal(model.predict_proba(ROWS[0]), old)


def test_after_an_error_there_is_no_map():
    model = all_recalibrators()["platt"]().fit(*ROWS)
    with raises_invalid_input(ValueError):
        model.fit(ROWS[0], ROWS[1][:-1])
    assert not [name for name in vars(model) if name.endswith("_") and name[0] != "_"]
