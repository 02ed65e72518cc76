"""What the checks share: scores to try them on, and the assertions."""

import warnings

import numpy as np
from sklearn.base import clone

from ..canonical import canonical_proba
from ..exceptions import CalibrationWarning
from ..metrics import log_loss

TOLERANCE = 1e-6  # two optimiser runs on equal problems


def make_scores(n_classes, n_samples=158, *, seed=0, sharpness=2.5):
    """Overconfident probabilities with labels drawn from the true ones.

    Parameters
    ----------
    n_classes : int
    n_samples : int, default=158
    seed : int, default=0
    sharpness : float, default=2.5
        Factor on the true logits.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
    y : ndarray of shape (n_samples,)
        Labels 0 .. n_classes - 1, each at least twice.

    Examples
    --------
    >>> from sklearn_calib.testing import make_scores
    >>> make_scores(3)[0].shape
    (158, 3)
    """
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n_samples, n_classes))
    true = np.asarray(canonical_proba(logits, kind="logits"))
    y = (rng.random((n_samples, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(max=n_classes - 1)
    y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    return np.array(canonical_proba(sharpness * logits, kind="logits")), y


def held_out_loss(recalibrator, n_classes, n_samples=1500):
    """Log loss of new rows before and after recalibration, on overconfident scores."""
    proba, y = make_scores(n_classes, n_samples, seed=20)
    new, labels = make_scores(n_classes, n_samples, seed=21)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        after = clone(recalibrator).fit(proba, y).predict_proba(new)
    known = {"labels": range(n_classes)}
    return log_loss(labels, new, **known), log_loss(labels, after, **known)


def run(checks):
    for name, check in checks:
        try:
            check()
        except Exception as error:
            raise AssertionError(f"{name} failed: {error}") from error


def assert_simplex(proba, shape):
    assert isinstance(proba, np.ndarray) and proba.dtype == np.float64, "not a float64 array"
    assert proba.shape == shape, f"shape {proba.shape} instead of {shape}"
    assert np.isfinite(proba).all(), "values that are not finite"
    assert proba.min() >= 0 and proba.max() <= 1, "values outside [0, 1]"
    assert np.abs(proba.sum(axis=1) - 1).max() <= 1e-12, "rows that do not sum to 1"


def assert_same(first, second, tolerance=TOLERANCE):
    worst = np.abs(first - second).max()
    assert worst <= tolerance, f"differ by {worst:.3g}"


def assert_refused(call, *words, error=(ValueError, TypeError)):
    try:
        call()
    except error as raised:
        text = str(raised)
        for word in ("expected", "got", *words):
            assert word in text, f"message without {word!r}: {text}"
    else:
        raise AssertionError(f"bad input was accepted; expected a message with {words}")
