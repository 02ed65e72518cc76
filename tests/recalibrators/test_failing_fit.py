"""A fit that fails or is interrupted leaves nothing that looks fitted."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from systems import SIGNALS

from sklearn_calib.recalibrators import (
    BetaCalibration,
    IsotonicCalibration,
    Recalibrator,
    TrendFiltering,
    VennAbers,
    get_recalibrator,
)


class Stopping(Recalibrator):
    """Learns something, then raises what it is told to."""

    def __init__(self, error=None):
        self.error = error

    def _fit(self, proba, codes, weight):
        self.half_ = codes.mean()
        if self.error is not None:
            raise self.error()

    def _predict_proba(self, proba):
        return np.full(proba.shape, 1 / proba.shape[1])


def system_error():
    """As a compiled function leaves it: an interruption within two other errors."""
    error, inner = SystemError("returned a result with an exception set"), SystemError()
    inner.__cause__, error.__cause__ = KeyboardInterrupt(), inner
    return error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyboardInterrupt, KeyboardInterrupt),
        (system_error, KeyboardInterrupt),
        (SystemError, SystemError),
        (MemoryError, MemoryError),
    ],
    ids=["interrupt", "interrupt in compiled code", "system error", "memory"],
)
@pytest.mark.parametrize("k", [2, 3])
def test_nothing_half_fitted_looks_fitted(error, raised, k):
    proba, y = np.random.default_rng(0).dirichlet(np.ones(k), 30), np.arange(30) % k
    model = Stopping().fit(proba, y)
    model.set_params(error=error).mine = "kept"
    with pytest.raises(raised):
        model.fit(proba, y)
    assert set(vars(model)) == {"error", "mine"}
    with pytest.raises(NotFittedError):
        model.predict_proba(proba)


@pytest.mark.parametrize("method", [BetaCalibration(), VennAbers()], ids=repr)
def test_refused_arguments_leave_no_old_fit(method):
    p, y = np.linspace(0.1, 0.9, 20), np.arange(20) % 2
    for wrong in (p[:5], np.full(20, np.nan), np.full((20, 3), 1 / 3)):
        method.fit(p, y)
        with pytest.raises(ValueError):
            method.fit(wrong, y)
        with pytest.raises(NotFittedError):
            method.predict_proba(p)


def test_a_second_fit_forgets_the_first():
    rng = np.random.default_rng(0)
    model = IsotonicCalibration().fit(rng.dirichlet(np.ones(3), 60), np.arange(60) % 3)
    model.fit(rng.random(60), np.arange(60) % 2)
    assert not hasattr(model, "one_vs_rest_") and model.predict_proba([0.3]).shape == (
        1,
        2,
    )


@pytest.mark.parametrize("name", ["matrix", "dirichlet", "restricted_polynomial"])
def test_many_classes_are_refused_at_once(name):
    """50 rows of 1000 classes ran for minutes."""
    proba = np.full((50, 1000), 1e-3)
    message = r"at most \d+ classes.*got 1000\. Take 'structured_matrix', 'vector' or 'temperature'"
    with pytest.raises(ValueError, match=message):
        get_recalibrator(name).fit(proba, np.arange(50), classes=np.arange(1000))


CODE = """
import numpy as np
from sklearn_calib.recalibrators import TrendFiltering
p = np.random.default_rng(0).random(30_000)
y = (np.random.default_rng(1).random(30_000) < p).astype(int)
model = TrendFiltering().fit(p[:300], y[:300])
print("ready", flush=True)
try:
    for _ in range(1000):
        model.fit(p, y)
except BaseException as error:
    print(type(error).__name__, *vars(model), flush=True)
"""


@SIGNALS
@pytest.mark.slow
def test_interruption_of_compiled_code():
    """Was: SystemError, and an estimator with classes_ and the last fit's line."""
    run = subprocess.Popen(
        [sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True
    )
    try:
        assert run.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(0.5)
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert said.split() == ["KeyboardInterrupt", *vars(TrendFiltering())]
