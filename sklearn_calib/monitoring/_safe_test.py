"""An e-value against calibration from one batch of rows."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from .._argument_checks import validate_count
from .._random import make_generator
from .._typing import ArrayLike, FloatArray, RandomStateLike, RecalibratorLike
from .._warnings import ignore_calibration_warnings
from ..exceptions import invalid_input
from ..metrics import validate_predictions
from ..recalibrators import get_recalibrator
from ._rows import compute_exact_log

_MIN_TEST_ROWS = 4


class SafeTestResult(NamedTuple):
    """An e-value, with the p-value that follows from it.

    Attributes
    ----------
    e_value : float
        The mean over the splits; at most 1 in expectation if the probabilities are
        calibrated. E-values of independent studies are multiplied, those of dependent
        ones averaged.
    pvalue : float
        1 / e_value, at most 1.
    log_e_values : ndarray of shape (n_splits,)
        Logarithm of the e-value of each split.
    """

    e_value: float
    pvalue: float
    log_e_values: FloatArray


def safe_calibration_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    recalibrator: RecalibratorLike = "isotonic",
    n_splits: int = 10,
    random_state: RandomStateLike = 0,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> SafeTestResult:
    """Test calibration by an e-value, which may be multiplied by the e-values of other studies.

    A recalibrator is fitted on a random half of the rows; the product over the other
    half of q(y) / p(y), recalibrated over given probability of the label, is an
    e-value. The mean over several splits is one, too. For combining studies: the
    e-values of studies are multiplied, also if later ones were begun because of the
    results of earlier ones. For a stream of rows use `CalibrationMonitor`; for one
    batch and nothing else, `cox_test` or `calibration_test` have more power, since only
    half of the rows are judged here.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    recalibrator : str or recalibrator, default="isotonic"
        What the probabilities are compared with.
    n_splits : int, default=10
        From 1 to 1,000, each of which costs a fit.
    random_state : int, Generator, RandomState or None, default=0
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.

    Returns
    -------
    result : SafeTestResult

    Raises
    ------
    ValueError
        Fewer than four rows; invalid scores or labels (see `canonical_proba`).

    Notes
    -----
    Recalibrated probabilities of exactly 0 or 1 are replaced by (hits + 1/2) / (n + 1),
    over the n rows of the fitting half that have this value: a label that contradicts
    them would make the e-value 0. An event whose given probability is 0 makes it
    infinite. Cost: `n_splits` fits on half of the rows.

    References
    ----------
    Dimitriadis, Henzi, Puke, Ziegel (2022), "A safe Hosmer-Lemeshow test",
    arXiv:2203.00426.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.monitoring import safe_calibration_test
    >>> proba, y = make_overconfident(2, 1000)
    >>> safe_calibration_test(y, proba).pvalue < 0.001
    True
    """
    predictions = validate_predictions(
        y_true, y_proba, labels=labels, pos_label=pos_label
    )
    n = len(predictions.codes)
    if n < _MIN_TEST_ROWS:
        raise invalid_input(
            expected=f"at least {_MIN_TEST_ROWS} rows", got=f"{n}", hint="Add rows"
        )
    n_splits = validate_count(n_splits, "n_splits", hint="Leave the default of 10")
    rng = make_generator(random_state)
    logs = np.empty(n_splits)
    for split in range(n_splits):
        order = rng.permutation(n)
        logs[split] = _compute_split_log_e_value(predictions, recalibrator, order)
    # The mean of e-values is an e-value, whatever their dependence.
    log = float(logsumexp(logs) - np.log(n_splits))
    with np.errstate(over="ignore"):
        return SafeTestResult(float(np.exp(log)), float(np.exp(-max(log, 0.0))), logs)


def _compute_split_log_e_value(predictions, recalibrator, order):
    """Return the log e-value of one split: a map fitted to one half bets on the other."""
    fit_rows, test_rows = np.array_split(order, 2)
    method = get_recalibrator(recalibrator)
    # Any map gives a valid e-value, also a poorly fitted one.
    with ignore_calibration_warnings():
        method.fit(
            predictions.proba[fit_rows],
            predictions.codes[fit_rows],
            classes=np.arange(len(predictions.classes)),
        )
    fitted_proba = np.array(method.predict_proba(predictions.proba[fit_rows]))
    test_proba = np.array(method.predict_proba(predictions.proba[test_rows]))
    # A bet of 0 or 1 would lose everything on one row: it becomes the frequency among
    # the fitted rows with that prediction, with half a row of each outcome more.
    for column in range(test_proba.shape[1]):
        is_label = predictions.codes[fit_rows] == column
        for value in (0.0, 1.0):
            rows = fitted_proba[:, column] == value
            frequency = (is_label[rows].sum() + 0.5) / (rows.sum() + 1)
            test_proba[test_proba[:, column] == value, column] = frequency
    test_proba /= test_proba.sum(axis=1, keepdims=True)
    label_entries = np.arange(len(test_rows)), predictions.codes[test_rows]
    with np.errstate(divide="ignore"):
        log_likelihood = np.log(test_proba[label_entries]).sum()
    log_proba = compute_exact_log(predictions.proba[test_rows])
    return float(log_likelihood - log_proba[label_entries].sum())
