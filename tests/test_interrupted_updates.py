"""What learns batch by batch is as it was before, if something interrupts it in the middle."""

import pickle

import numpy as np
import pytest

from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import OnlineCalibration
from sklearn_calib.summary import CalibrationSummary
from sklearn_calib.summary._state import CellState

P = np.random.default_rng(0).dirichlet([1, 1, 1], 700)
Y = np.arange(700) % 3
FIRST, THEN = slice(0, 100), slice(100, 700)


def learn_online(online, rows):
    online.partial_fit(P[rows], Y[rows], classes=[0, 1, 2])


def update_summary(summary, rows):
    summary.update(Y[rows], P[rows])


#: What is updated, how, and the step of it that is interrupted when it is called again.
CASES = {
    "summary": (
        CalibrationSummary(multiclass="classwise", classes=[0, 1, 2]),
        update_summary,
        (CellState, "add"),
    ),
    "monitor": (
        CalibrationMonitor(classes=[0, 1, 2]),
        update_summary,
        (CalibrationMonitor, "_add_rows"),
    ),
    "online map": (
        OnlineCalibration(),
        learn_online,
        (OnlineCalibration, "_learn_rows"),
    ),
}


def state_of(learner):
    """Return all it holds as bytes, whichever of its parts are one object."""
    if isinstance(learner, CalibrationMonitor):
        return learner.state_dict()
    return pickle.dumps(learner)


def interrupt_second_call(monkeypatch, cls, name):
    step, calls = getattr(cls, name), []

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return step(*args, **kwargs)

    monkeypatch.setattr(cls, name, interrupted)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_update_keeps_nothing_of_its_batch(case, begun, monkeypatch):
    given, update, step = CASES[case]
    learner = pickle.loads(pickle.dumps(given))
    if begun:
        update(learner, FIRST)
    untouched, expected = state_of(learner), pickle.loads(pickle.dumps(learner))
    with monkeypatch.context() as patch:
        interrupt_second_call(patch, *step)
        with pytest.raises(KeyboardInterrupt):
            update(learner, THEN)
    assert state_of(learner) == untouched
    update(learner, THEN)
    update(expected, THEN)
    assert state_of(learner) == state_of(expected)
