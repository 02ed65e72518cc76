"""Arrays of probabilities, their logarithms, and how these are made."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special

from ._typing import AnyArray, FloatArray, IntArray
from .exceptions import invalid_input

#: Probabilities below the smallest normal float32 (1.18e-38) are raised to it before a
#: logarithm is taken, for every dtype: the result must not depend on how a zero was
#: stored.
SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)


#: Wherever a log loss is *evaluated*, a true class of a probability below the float64
#: machine epsilon, 2.2e-16, counts as that, as in scikit-learn; no row loses more than
#: 36.04 nats.
LOG_LOSS_FLOOR = float(np.finfo(np.float64).eps)


LARGEST_LOG_LOSS = -float(np.log(LOG_LOSS_FLOOR))


#: Several blocks of this many numbers fit into the cache together.
_CACHE_BLOCK_ENTRIES = 1 << 16


class SimplexArray(np.ndarray):
    """A read-only array of probabilities that stores exact logarithms.

    `canonical_proba` returns one for logits: values such as ``softmax([0, 1e4])`` are
    exactly 0 and 1 in floating point, and only their logarithms still distinguish the
    rows. Rows can be selected, columns exchanged and both copied without losing them;
    any other operation gives a plain array.
    """

    _log: FloatArray | None = None
    # A bool array: options that a row does not have.
    _absent: AnyArray | None = None

    def __array_finalize__(self, obj: object) -> None:
        self._log = self._absent = None

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Any:
        array = np.asarray(array)
        return array[()] if array.ndim == 0 else array

    def __getitem__(self, key: Any) -> Any:
        rows = np.asarray(self)[key]
        # A selection of columns is no longer a distribution.
        if np.ndim(rows) != 2 or rows.shape[1] != self.shape[1]:
            return rows
        if self._absent is self._log is None:
            return rows
        absent = None if self._absent is None else self._absent[key]
        log = None if self._log is None else self._log[key]
        return attach_log_proba(rows, log, absent)

    def copy(self, order: Any = "C") -> FloatArray:
        copied = np.array(self, order=order)
        if self._absent is self._log is None:
            return copied
        log = None if self._log is None else self._log.copy()
        return attach_log_proba(copied, log, self._absent)

    def __reduce__(self) -> Any:
        if self._absent is self._log is None:
            return np.asarray(self).__reduce__()
        return attach_log_proba, (np.array(self), self._log, self._absent)


def attach_log_proba(
    proba: FloatArray, log: FloatArray | None, absent: AnyArray | None = None
) -> FloatArray:
    """Return a `SimplexArray` of probabilities and their logarithms, if these are known.

    `absent` marks the options that each row does not have; their probability is 0.
    """
    out = np.asarray(proba).view(SimplexArray)
    out._log = log
    out._absent = absent
    out.flags.writeable = False
    return out


def get_absent_option_mask(proba: FloatArray) -> AnyArray | None:
    """Return which options each row does not have, bool like `proba`; None if it has all."""
    return proba._absent if isinstance(proba, SimplexArray) else None


def get_exact_log(proba: FloatArray) -> FloatArray | None:
    """Return the exact logarithms of an array, as those made from logits have; else None."""
    return proba._log if isinstance(proba, SimplexArray) else None


def has_exact_log(proba: FloatArray) -> bool:
    """Return whether an array has exact logarithms."""
    return get_exact_log(proba) is not None


def log_proba(proba: FloatArray) -> FloatArray:
    """Return logarithms of probabilities, finite even if a probability is zero.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, n_classes)
        What `canonical_proba` returned.

    Returns
    -------
    log : ndarray of shape (n_samples, n_classes), in nats
        Exact for arrays made from logits. Otherwise probabilities below the smallest
        normal float32, 1.18e-38, count as that number: the floor is -87.34.

    Examples
    --------
    >>> from sklearn_calib import canonical_proba, log_proba
    >>> log_proba(canonical_proba([0.0, 0.5])).round(2).tolist()
    [[0.0, -87.34], [-0.69, -0.69]]
    >>> log_proba(canonical_proba([1000.0], kind="logits")).tolist()
    [[-1000.0, -0.0]]
    """
    if get_absent_option_mask(proba) is not None:
        raise invalid_input(
            expected="probabilities of all classes in every row",
            got="rows without some of them (absent='nan')",
            hint="They are for 'temperature', log_loss, brier_loss and errors of the largest p",
        )
    exact = get_exact_log(proba)
    if exact is not None:
        return exact
    positive = np.maximum(np.asarray(proba), SMALLEST_PROBABILITY)
    if np.isnan(positive.sum()):
        raise invalid_input(
            expected="numbers as probabilities",
            got="NaN",
            hint="Call canonical_proba first",
        )
    return np.log(positive, out=positive)


def compute_log_proba_or_minus_inf_if_absent(proba: FloatArray) -> FloatArray:
    """Return `log_proba`, with -inf for the options that a row does not have."""
    absent = get_absent_option_mask(proba)
    exact = get_exact_log(proba)
    if absent is None:
        return log_proba(proba)
    log = log_proba(np.asarray(proba)) if exact is None else exact.copy()
    log[absent] = -np.inf
    return log


def compute_log_losses(proba: AnyArray, entries: Any = ...) -> FloatArray:
    """Return -log(max(p, 2.2e-16)) in nats, from 0 to 36.04, of the entries `entries`.

    Every log loss that the package reports is defined here. Fits have floors of their
    own.
    """
    exact = get_exact_log(proba)
    if exact is not None:
        return np.minimum(-exact[entries], LARGEST_LOG_LOSS)
    return -np.log(np.maximum(np.asarray(proba, dtype=float)[entries], LOG_LOSS_FLOOR))


def compute_log_odds(pair_proba: FloatArray) -> FloatArray:
    """Return the log-odds of the second of two classes: ``log p_1 - log p_0``.

    They order like the probability and keep its digits at both ends.

    Parameters
    ----------
    pair_proba : ndarray of shape (n_samples, 2)

    Returns
    -------
    log_odds : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from sklearn_calib import canonical_proba
    >>> from sklearn_calib._simplex_array import compute_log_odds
    >>> compute_log_odds(canonical_proba([0.5, 1 - 1e-12])).round(2).tolist()
    [0.0, 27.63]
    """
    log = log_proba(pair_proba)
    return log[:, 1] - log[:, 0]


def convert_log_odds(margin: FloatArray) -> FloatArray:
    """Return two columns of probabilities, with logarithms, from the second's log-odds."""
    log = _build_two_columns_from_margin(special.log_expit, margin)
    return attach_log_proba(np.exp(log), log)


def compute_sigmoid_columns(margin: FloatArray) -> FloatArray:
    """Return two columns of probabilities from the second's log-odds, as plain numbers."""
    return _build_two_columns_from_margin(special.expit, margin)


def _build_two_columns_from_margin(fill_column, margin):
    """Apply a function to the log-odds of the first class and of the second."""
    columns = np.empty((len(margin), 2))
    fill_column(-margin, out=columns[:, 0])
    fill_column(margin, out=columns[:, 1])
    return columns


def apply_softmax_or_sigmoid(logits: AnyArray) -> FloatArray:
    """Return the softmax of rows with its logarithms; of one column the sigmoid."""
    if logits.shape[1] == 1:
        return convert_log_odds(logits[:, 0].astype(float, copy=False))
    proba = np.empty(logits.shape)
    log = np.empty(logits.shape)
    for block in iter_row_blocks(logits):
        z = logits[block]
        p = proba[block]
        lp = log[block]
        # numpy computes the maximum faster along the first axis of a contiguous array.
        top = np.ascontiguousarray(z.T).max(axis=0)[:, None]
        np.exp(np.subtract(z, top, out=lp, dtype=float), out=p)
        total = p @ np.ones(p.shape[1])
        p /= total[:, None]
        lp -= np.log(total)[:, None]
    return attach_log_proba(proba, log)


def iter_row_blocks(table: Any, entries: int = _CACHE_BLOCK_ENTRIES) -> Iterator[slice]:
    """Return slices of rows of a table, of about so many entries each."""
    rows = max(1, entries // table.shape[1])
    return (slice(start, start + rows) for start in range(0, len(table), rows))


def stack_proba_rows(blocks: Sequence[FloatArray]) -> FloatArray:
    """Stack canonical arrays, and their logarithms if every block has them."""
    proba = np.vstack([np.asarray(block) for block in blocks])
    if not all(map(has_exact_log, blocks)):
        return proba
    logs: list[Any] = [get_exact_log(block) for block in blocks]
    return attach_log_proba(proba, np.vstack(logs))


def take_columns_or_zeros(proba: FloatArray, columns: IntArray) -> FloatArray:
    """Reorder or widen columns: `columns` has one entry per new column, -1 for none.

    A row's old columns must all be kept. New columns have probability 0.
    """
    columns = np.asarray(columns)
    widened = np.where(columns >= 0, np.asarray(proba)[..., columns], 0.0)
    log = get_exact_log(proba)
    if log is None:
        return widened
    lowest = np.minimum(log.min(axis=-1, keepdims=True), np.log(SMALLEST_PROBABILITY))
    return attach_log_proba(widened, np.where(columns >= 0, log[..., columns], lowest))
