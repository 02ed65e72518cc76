"""Rows on the simplex, their logarithms, and the two-class problems inside them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ._typing import AnyArray, FloatArray, IntArray, Multiclass
from .exceptions import invalid_input

#: Probabilities below the smallest normal float32 (1.18e-38) are raised to it before a logarithm is
#: taken, whatever the input's dtype: the result must not depend on how a zero was stored.
SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)

#: Where scores are only ordered, a zero comes before the smallest float64, 2^-1074.
LOG_OF_ZERO = -1075 * np.log(2.0)

LARGEST_FLOOR = 0.01  # a model whose smallest probability is large may still say smaller ones

#: Wherever a log loss is *evaluated*, a true class of a probability below the float64 machine
#: epsilon, 2.2e-16, counts as that, as in scikit-learn; no row loses more than 36.04 nats.
LOG_LOSS_FLOOR = float(np.finfo(np.float64).eps)
LARGEST_LOG_LOSS = -float(np.log(LOG_LOSS_FLOOR))

_SOME = "rows without some of them (absent='nan')"
_OF_ALL = "They are for 'temperature', log_loss, brier_loss and errors of the largest p"
_EXPONENTS = 1076  # of float64 in [0, 1]
_FAR_BELOW = 10  # binary exponents without a value: a factor of 1000
_MOST_LEVELS = 1000  # trees, neighbours, or digits after the point
# further from a multiple of 1 / N is none; rounded to float32 it still is one
SHARE_ROUNDING = 1e-7

_BLOCK_ENTRIES = 1 << 16  # of them some arrays stay in the cache


class SimplexArray(np.ndarray):
    """A read-only array of probabilities that remembers exact logarithms.

    `canonical_proba` returns one for logits: values such as ``softmax([0, 1e4])`` are exactly 0
    and 1 in floating point, and only their logarithms still tell the rows apart. Rows can be
    selected, columns exchanged and both copied without losing them; any other operation gives a
    plain array.
    """

    _log: FloatArray | None = None
    _absent: AnyArray | None = None  # of bool: options that a row does not have

    def __array_finalize__(self, obj: object) -> None:
        self._log = self._absent = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        array = np.asarray(array)
        return array[()] if array.ndim == 0 else array

    def __getitem__(self, key: Any) -> Any:
        rows = np.asarray(self)[key]
        if np.ndim(rows) != 2 or rows.shape[1] != self.shape[1]:
            return rows  # one column, or some
        absent, log = (None if part is None else part[key] for part in (self._absent, self._log))
        return rows if absent is log is None else with_log(rows, log, absent)

    def copy(self, order: Any = "C") -> FloatArray:
        copied = np.array(self, order=order)
        if self._absent is self._log is None:
            return copied
        return with_log(copied, None if self._log is None else self._log.copy(), self._absent)

    def __reduce__(self) -> Any:
        if self._absent is self._log is None:
            return np.asarray(self).__reduce__()
        return with_absent, (np.array(self), self._absent, self._log)


def two_classes_of_margin(margin: FloatArray) -> FloatArray:
    """Return two columns of probabilities from the log-odds of the second class."""
    log = _of_both_classes(special.log_expit, margin)
    return with_log(np.exp(log), log)


def sigmoid_columns(margin: FloatArray) -> FloatArray:
    """Return two columns from the log-odds of the second class, without logarithms."""
    return _of_both_classes(special.expit, margin)


def _of_both_classes(function, margin):
    """Apply a function to the log-odds of the first class and of the second, as two columns."""
    columns = np.empty((len(margin), 2))
    function(-margin, out=columns[:, 0])
    function(margin, out=columns[:, 1])
    return columns


def with_log(
    proba: FloatArray, log: FloatArray | None, absent: AnyArray | None = None
) -> FloatArray:
    """Make a `SimplexArray` of probabilities, their logarithms, and a mask of absent options."""
    out = np.asarray(proba).view(SimplexArray)
    out._log, out._absent = log, absent
    out.flags.writeable = False
    return out


def with_absent(
    proba: FloatArray, absent: AnyArray | None, log: FloatArray | None = None
) -> FloatArray:
    """Make a `SimplexArray` with a mask of the options that a row lacks.

    They have probability 0.
    """
    return with_log(proba, log, absent)


def absent_of(proba: FloatArray) -> AnyArray | None:
    """Return the mask of the options that each row lacks; None if all rows have all."""
    return proba._absent if isinstance(proba, SimplexArray) else None


def log_of_options(proba: FloatArray) -> FloatArray:
    """Return `log_proba`, with -inf for the options that a row lacks."""
    if not isinstance(proba, SimplexArray) or proba._absent is None:
        return log_proba(proba)
    log = log_proba(np.asarray(proba)) if proba._log is None else proba._log.copy()
    log[proba._absent] = -np.inf
    return log


def row_blocks(table: Any, entries: int = _BLOCK_ENTRIES) -> Iterator[slice]:
    """Iterate over slices of rows of a two-dimensional table, of about `entries` entries each."""
    rows = max(1, entries // table.shape[1])
    return (slice(start, start + rows) for start in range(0, len(table), rows))


def softmax_of_rows(logits: AnyArray) -> FloatArray:
    """Compute probabilities and logarithms with one exponential.

    The sigmoid for one column.
    """
    if logits.shape[1] == 1:
        return two_classes_of_margin(logits[:, 0].astype(np.float64, copy=False))
    proba, log = np.empty(logits.shape), np.empty(logits.shape)
    for block in row_blocks(logits):
        z, p, lp = logits[block], proba[block], log[block]
        # the transposed copy makes the maximum fast
        top = np.ascontiguousarray(z.T).max(axis=0)[:, None]
        np.exp(np.subtract(z, top, out=lp, dtype=np.float64), out=p)
        total = p @ np.ones(p.shape[1])
        p /= total[:, None]
        lp -= np.log(total)[:, None]
    return with_log(proba, log)


def log_proba(proba: FloatArray) -> FloatArray:
    """Return logarithms of probabilities, finite even if a probability is zero.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, n_classes)
        What `canonical_proba` returned.

    Returns
    -------
    log : ndarray of shape (n_samples, n_classes), in nats
        Exact for arrays made from logits. Otherwise probabilities below the smallest normal
        float32, 1.18e-38, count as that number: the floor is -87.34.

    Examples
    --------
    >>> from sklearn_calib import canonical_proba, log_proba
    >>> log_proba(canonical_proba([0.0, 0.5])).round(2).tolist()
    [[0.0, -87.34], [-0.69, -0.69]]
    >>> log_proba(canonical_proba([1000.0], kind="logits")).tolist()
    [[-1000.0, -0.0]]
    """
    if absent_of(proba) is not None:
        raise invalid_input(
            expected="probabilities of all classes in every row", got=_SOME, hint=_OF_ALL
        )
    if isinstance(proba, SimplexArray) and proba._log is not None:
        return proba._log
    positive = np.maximum(np.asarray(proba), SMALLEST_PROBABILITY)
    if np.isnan(positive.sum()):
        raise invalid_input(
            expected="numbers as probabilities", got="NaN", hint="Call canonical_proba first"
        )
    return np.log(positive, out=positive)


def carries_log(proba: FloatArray) -> bool:
    """Return whether an array has exact logarithms, as those made from logits do."""
    return isinstance(proba, SimplexArray) and proba._log is not None


@dataclass(frozen=True)
class LowEnd:
    """What decides what an exact zero counts as: of some rows; that of more rows is their sum.

    Which values there are, not how often: a repeated row, or a weight, changes nothing.
    """

    zeros: bool
    smallest: FloatArray  # positive value of each binary exponent, infinite where there is none
    levels: int  # the least N for which all values are multiples of 1 / N, 0 where there is none

    def __add__(self, other: "LowEnd") -> "LowEnd":
        levels = math.lcm(self.levels, other.levels)
        return LowEnd(
            self.zeros or other.zeros,
            np.minimum(self.smallest, other.smallest),
            levels if levels <= _MOST_LEVELS else 0,
        )

    @property
    def floor(self) -> float:
        """Return half of a vote if values are fractions of votes, else half the smallest positive.

        Where there are exact zeros, values far below all others are rounding noise, and zeros too.
        """
        if self.levels:
            return _floor_below(1.0 / self.levels)
        there = np.flatnonzero(self.smallest < np.inf)
        if len(there) == 0:
            return _floor_below(1.0)
        wide = np.flatnonzero(np.diff(there) >= _FAR_BELOW)
        first = there[wide[0] + 1] if self.zeros and len(wide) else there[0]
        return _floor_below(float(self.smallest[first]))


def low_end(proba: FloatArray, shares: bool = True) -> LowEnd:
    """Compute the `LowEnd` of rows of probabilities.

    `shares` allows fractions of votes.
    """
    plain = np.asarray(proba)
    low = plain[(plain > 0) & (plain <= 2 * LARGEST_FLOOR)]
    smallest = np.full(_EXPONENTS, np.inf)
    np.minimum.at(smallest, np.frexp(low)[1] + _EXPONENTS - 2, low)
    if len(low) < np.count_nonzero(plain):
        smallest[-1] = min(smallest[-1], 1.0)  # something above: the largest floor
    return LowEnd(bool((plain == 0).any()), smallest, _levels(plain) if shares else 0)


def learned_floor(proba: FloatArray) -> float:
    """Return the value that replaces an exact zero; see `LowEnd.floor`."""
    plain, absent = np.asarray(proba), absent_of(proba)
    if absent is not None:
        plain = plain[~absent][:, None]
    if carries_log(proba) or (plain.min(initial=1.0) > 0 and not _may_be_shares(plain)):
        return _floor_below(float(plain.min(initial=1.0, where=plain > 0)))
    return low_end(plain).floor


def _floor_below(smallest):
    return float(np.clip(smallest / 2, SMALLEST_PROBABILITY, LARGEST_FLOOR))


def _may_be_shares(plain):
    """Return whether some values are multiples of one 1 / N, as fractions of votes are."""
    return bool(_fitting_levels(plain.ravel()[: 4 * plain.shape[1]][:16]).any())


def _levels(plain):
    """Return the least N up to 1000 for which all values are multiples of 1 / N, or 0."""
    flat = plain.ravel()
    fits = _fitting_levels(flat[:: max(1, len(flat) // 32)][:32])
    while fits.any():
        levels = int(fits.argmax()) + 1
        scaled = flat * levels
        wrong = np.flatnonzero(np.abs(scaled - np.rint(scaled)) > SHARE_ROUNDING * levels)
        if len(wrong) == 0:
            return levels
        fits &= _fitting_levels(flat[wrong[:32]])
    return 0


def _fitting_levels(values):
    """Return, for N = 1, 2, ..., 1000, whether all values are multiples of 1 / N."""
    scaled = np.multiply.outer(np.arange(1, _MOST_LEVELS + 1), values)
    away = np.abs(scaled - np.rint(scaled)).max(axis=1, initial=0.0)
    return away <= SHARE_ROUNDING * np.arange(1, _MOST_LEVELS + 1)


def raised(proba: FloatArray, floor: float) -> FloatArray:
    """Raise probabilities below the floor to it, and divide their rows by the sum.

    Arrays that carry exact logarithms, and rows without such a probability, stay as they are.
    """
    if carries_log(proba):
        return proba
    absent, under = absent_of(proba), np.asarray(proba) < floor
    if absent is not None:
        under &= ~absent
    low = under.any(axis=1)
    if not low.any():
        return proba
    out = np.array(proba)
    rows = np.maximum(out[low], floor)
    if absent is not None:
        rows[absent[low]] = 0.0
    out[low] = rows / rows.sum(axis=1, keepdims=True)
    return out if absent is None else with_absent(out, absent)


def log_losses(proba: AnyArray, at: Any = ...) -> FloatArray:
    """Compute -log(max(p, 2.2e-16)) in nats, from 0 to 36.04, of all entries or some.

    The one definition for every log loss that the package reports. Fits have floors of their own.
    """
    if isinstance(proba, SimplexArray) and proba._log is not None:
        return np.minimum(-proba._log[at], LARGEST_LOG_LOSS)
    return -np.log(np.maximum(np.asarray(proba, dtype=np.float64)[at], LOG_LOSS_FLOOR))


def log_odds(proba: FloatArray) -> FloatArray:
    """Compute the log-odds of the second of two classes: ``log p_1 - log p_0``.

    Orders like the probability and keeps its digits at both ends.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, 2)

    Returns
    -------
    log_odds : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from sklearn_calib import canonical_proba
    >>> from sklearn_calib._simplex import log_odds
    >>> log_odds(canonical_proba([0.5, 1 - 1e-12])).round(2).tolist()
    [0.0, 27.63]
    """
    log = log_proba(proba)
    return log[:, 1] - log[:, 0]


def without_rounding_noise(scores: FloatArray, least_exponent: int = -2000) -> FloatArray:
    """Round scores to 36 significant bits (1.5e-11), for methods that pool equal scores.

    A model may give the same row another last digit alone than in a batch; such rows are ties.
    Scores below 2^least_exponent are rounded as those above, to the same multiples.
    """
    _, exponent = np.frexp(scores)
    last = np.maximum(exponent, least_exponent) - 36
    return np.ldexp(np.round(np.ldexp(scores, -last)), last)


def least_rounding_above(bounds: FloatArray, *, inclusive: bool) -> FloatArray:
    """Return the smallest log-odds that `rank_score` moves above bounds, or also onto them.

    Steps at such edges give to numbers as they are what steps at the bounds give to rounded ones.
    """
    bounds = np.asarray(bounds, dtype=np.float64)

    def far_enough(x):
        rounded = without_rounding_noise(x, 0)
        return rounded >= bounds if inclusive else rounded > bounds

    def step_below(x):
        """Return the step from a rounded number to the one below it."""
        _, exponent = np.frexp(np.nextafter(x, -np.inf))
        return np.ldexp(1.0, np.maximum(exponent, 0) - 36)

    target = without_rounding_noise(bounds, 0)
    target = np.where(far_enough(target), target, target + step_below(-target))
    edge = target - step_below(target) / 2
    return np.where(far_enough(edge), edge, np.nextafter(edge, np.inf))


def second_score(proba: FloatArray) -> FloatArray:
    """Return the probability of the second of two classes without rounding noise."""
    return without_rounding_noise(np.asarray(proba)[:, 1])


def rank_score(proba: FloatArray) -> FloatArray:
    """Return log-odds of the second of two classes without rounding noise, to order rows.

    No probability is raised before the logarithm, so all float64 numbers keep their order; a zero
    counts as half the smallest of them. Swapping the classes changes the sign.
    """
    return without_rounding_noise(unrounded_rank_score(proba), least_exponent=0)


def unrounded_rank_score(proba: FloatArray) -> FloatArray:
    """Return the scores that `rank_score` rounds."""
    if isinstance(proba, SimplexArray) and proba._log is not None:
        log = proba._log
    else:
        with np.errstate(divide="ignore"):
            log = np.maximum(np.log(np.asarray(proba)), LOG_OF_ZERO)
    return log[:, 1] - log[:, 0]


def score_of(proba: FloatArray, score: str) -> FloatArray:
    """The number of each row of two classes that a map reads: "proba", "logit" or "rank"."""
    if score == "proba":
        return np.asarray(proba)[:, 1]
    return log_odds(proba) if score == "logit" else unrounded_rank_score(proba)


def one_against_rest(proba: FloatArray, column: int) -> FloatArray:
    """The two-class problem "this column or another" as an array of shape (n_samples, 2)."""
    others = np.delete(np.arange(proba.shape[1]), column)
    plain = np.asarray(proba)
    pair = np.column_stack([plain[:, others].sum(axis=1), plain[:, column]])
    if not isinstance(proba, SimplexArray) or proba._log is None:
        return pair
    log = proba._log
    rest = special.logsumexp(log[:, others], axis=1)
    return with_log(pair, np.column_stack([rest, log[:, column]]))


def each_against_rest(proba: FloatArray) -> Iterator[FloatArray]:
    """`one_against_rest` of every column in turn, in O(n k) together."""
    plain = np.asarray(proba)
    log = proba._log if isinstance(proba, SimplexArray) else None
    others = combine_others(np.add, plain, 0.0)
    log_others = None if log is None else combine_others(np.logaddexp, log, -np.inf)
    for column in range(plain.shape[1]):
        pair = np.column_stack([others[:, column], plain[:, column]])
        if log is not None and log_others is not None:
            pair = with_log(pair, np.column_stack([log_others[:, column], log[:, column]]))
        yield pair


def combine_others(operation: Any, table: FloatArray, neutral: float) -> Any:
    """Return the operation over all columns but one, for each column."""
    joined = np.full_like(table, neutral)
    joined[:, 1:] = operation.accumulate(table[:, :-1], axis=1)
    after = operation.accumulate(table[:, :0:-1], axis=1)[:, ::-1]
    joined[:, :-1] = operation(joined[:, :-1], after)
    return joined


def top_against_rest(proba: FloatArray, top: IntArray) -> FloatArray:
    """The two-class problem "class top[i] or another" for each row i, of shape (n_samples, 2)."""
    columns = np.arange(proba.shape[1])
    order = np.argsort(columns != np.asarray(top)[:, None], axis=1, kind="stable")
    moved = np.take_along_axis(np.asarray(proba), order, axis=1)
    if isinstance(proba, SimplexArray) and proba._log is not None:
        moved = with_log(moved, np.take_along_axis(proba._log, order, axis=1))
    return one_against_rest(moved, 0)


class TwoClasses(NamedTuple):
    """Rows of a table of probabilities as one two-class problem."""

    number: int  # of the class that is asked about; 0 where it is the predicted one of each row
    rows: Any  # which of the table
    score: FloatArray  # of these rows
    target: Any  # the event of a row is that its label is this: one class, or one for each row


def two_class_problems(kind: Multiclass, plain: AnyArray, positive: int = 1) -> list[TwoClasses]:
    """What a `multiclass` option makes of a table; of two classes one column may be missing.

    "auto" asks of two classes for the positive one, of more for the predicted one, as "confidence"
    does; "top_label" does so for the rows of each predicted class, "classwise" for every class.
    """
    everything = slice(None)
    if kind == "auto" and plain.shape[1] <= 2:
        return [TwoClasses(positive, everything, plain[:, positive - 2], positive)]
    if kind == "classwise":
        columns = (np.ascontiguousarray(plain[:, c]) for c in range(plain.shape[1]))
        return [TwoClasses(c, everything, score, c) for c, score in enumerate(columns)]
    top = plain.argmax(axis=1)
    score = plain[np.arange(len(plain)), top]
    if kind != "top_label":
        return [TwoClasses(0, everything, score, top)]
    predicted = ((int(c), np.flatnonzero(top == c)) for c in np.unique(top))
    return [TwoClasses(c, rows, score[rows], c) for c, rows in predicted]


def two_class_pairs(
    kind: Multiclass, proba: FloatArray, positive: int = 1
) -> Iterator[tuple[TwoClasses, FloatArray]]:
    """Each of `two_class_problems` of all rows, with its two columns, which keep logarithms."""
    problems = two_class_problems(kind, np.asarray(proba), positive)
    if kind == "classwise":
        yield from zip(problems, each_against_rest(proba), strict=True)
    elif kind == "auto" and proba.shape[1] == 2:
        yield problems[0], proba if positive == 1 else take_columns(proba, np.array([1, 0]))
    else:
        yield problems[0], top_against_rest(proba, problems[0].target)


def title_of_problem(kind: Multiclass, classes: AnyArray, number: int) -> str:
    """What one of `two_class_problems` is called: "class x", "confidence" or "predicted x"."""
    if kind == "confidence" or (kind == "auto" and len(classes) > 2):
        return "confidence"
    return f"{'predicted' if kind == 'top_label' else 'class'} {classes[number]}"


def stack_rows(blocks: Sequence[FloatArray]) -> FloatArray:
    """Stack canonical arrays, keeping logarithms where every block has them."""
    plain = np.vstack([np.asarray(block) for block in blocks])
    logs = [block._log for block in blocks if isinstance(block, SimplexArray)]
    known = [log for log in logs if log is not None]
    return with_log(plain, np.vstack(known)) if len(known) == len(blocks) else plain


def take_columns(proba: FloatArray, columns: IntArray) -> FloatArray:
    """Reorder or widen columns: `columns` has one entry a new column, an old one or -1 for none.

    A row's old columns must all be kept. New columns have probability 0.
    """
    columns = np.asarray(columns)
    plain = np.where(columns >= 0, np.asarray(proba)[..., columns], 0.0)
    if not isinstance(proba, SimplexArray) or proba._log is None:
        return plain
    lowest = np.minimum(proba._log.min(axis=-1, keepdims=True), np.log(SMALLEST_PROBABILITY))
    return with_log(plain, np.where(columns >= 0, proba._log[..., columns], lowest))
