"""Rows of probabilities between two maps: of NumPy, or tensors of another library."""

from functools import cached_property
from typing import Any

import numpy as np

from .._kernels._log_odds import LOG_OF_ZERO, round_to_36_bits
from .._kernels._probability_floor import clip_to_floor
from .._kernels._two_class_problems import combine_others
from .._simplex_array import (
    SMALLEST_PROBABILITY,
    SimplexArray,
    attach_log_proba,
    get_absent_option_mask,
)
from .._typing import AnyArray, FloatArray

#: With fewer classes columns are added one by one: `sum` rounds a single row in another
#: order.
MIN_CLASSES_FOR_NUMPY_SUM = 8


class Rows:
    """Rows of probabilities of NumPy.

    Numbers that several parts of a map read, such as logarithms, are computed once.

    Parameters
    ----------
    proba : ndarray of shape (n, k)
    exact_log : ndarray of shape (n, k), default=None
        Exact logarithms, if the rows were made from logits.
    absent : ndarray of bool of shape (n, k), default=None
        Options that a row does not have.
    """

    xp = np

    def __init__(
        self,
        proba: FloatArray,
        exact_log: FloatArray | None = None,
        absent: AnyArray | None = None,
    ) -> None:
        self.proba = proba
        self.exact_log = exact_log
        self.absent = absent
        self._results: dict[Any, Any] = {}

    @classmethod
    def from_canonical(cls, proba: FloatArray) -> "Rows":
        """Return the rows of an array that `canonical_proba` made."""
        if isinstance(proba, SimplexArray):
            return cls(np.asarray(proba), proba._log, get_absent_option_mask(proba))
        return cls(proba)

    def to_canonical(self) -> FloatArray:
        """Return the rows as an array that carries their logarithms."""
        if self.exact_log is None and self.absent is None:
            return self.proba
        return attach_log_proba(self.proba, self.exact_log, self.absent)

    @property
    def n_classes(self) -> int:
        return self.proba.shape[1]

    # -- numbers of the rows --------------------------------------------------------------------

    @cached_property
    def log(self) -> FloatArray:
        """Return the logarithms, -inf for options that a row lacks."""
        log = self.exact_log
        # The methods read columns, which is faster if they are contiguous.
        if log is None:
            log = np.maximum(self.proba, SMALLEST_PROBABILITY, order="F")
            np.log(log, out=log)
        if self.absent is None:
            return log
        log = log.copy()
        log[self.absent] = -np.inf
        return log

    @property
    def log_up_to_constant(self) -> FloatArray:
        """Return the logarithms, perhaps up to a constant of each row."""
        return self.log

    @cached_property
    def log_odds(self) -> FloatArray:
        """Return the log-odds of the second of two classes."""
        return self.column(self.log, 1) - self.column(self.log, 0)

    @cached_property
    def _unclipped_log_odds(self):
        """Return log-odds in which all positive numbers keep their order."""
        if self.exact_log is not None:
            return self.log_odds
        with np.errstate(divide="ignore"):
            log = np.maximum(np.log(self.proba), LOG_OF_ZERO)
        return log[:, 1] - log[:, 0]

    def score(self, kind: str, *, is_rounded: bool = False) -> FloatArray:
        """Return the score that a function of two classes reads: "proba", "logit" or "rank"."""
        if is_rounded:
            return self._get_score_rounded_to_36_bits(kind)
        if kind == "proba":
            return self.proba[:, 1]
        return self.log_odds if kind == "logit" else self._unclipped_log_odds

    def _get_score_rounded_to_36_bits(self, kind):
        key = "rounded", kind
        if key not in self._results:
            # Probabilities keep 36 significant bits; log-odds near 0 keep the place
            # 2^-36.
            least_exponent = -2000 if kind == "proba" else 0
            rounded = round_to_36_bits(self.score(kind), least_exponent)
            self._results[key] = rounded
        return self._results[key]

    # -- other rows -----------------------------------------------------------------------------

    def apply_map(self, calibration_map: Any) -> "Rows":
        """Return the rows that a map makes of these, computed once for each map."""
        key = id(calibration_map)
        if key in self._results:
            return self._results[key]
        mapped: Rows = calibration_map.apply(self)
        # Rows that hold themselves would wait for the garbage collector.
        if mapped is not self:
            self._results[key] = mapped
        return mapped

    def with_proba(self, proba: FloatArray) -> "Rows":
        """Return rows without exact logarithms."""
        return Rows(proba)

    def from_log_odds(self, log_odds: FloatArray) -> "Rows":
        """Return rows of two classes from the log-odds of the second."""
        # Both probabilities are computed from the log-odds, because 1 - p has no digits
        # left near p = 1.
        columns = np.stack([log_odds, -log_odds])
        # NumPy's exponential takes a fifth of the time of SciPy's `expit`; 1 / inf is 0.
        with np.errstate(over="ignore"):
            np.exp(columns, out=columns)
        columns += 1.0
        return Rows(np.divide(1.0, columns, out=columns).T)

    def softmax(self, logits: FloatArray, *, is_centred: bool = False) -> "Rows":
        """Return rows from logits, whose maxima are 0 if they are centred."""
        if not is_centred:
            logits = logits - self.row_max(logits)
        power = np.exp(logits)
        return Rows(power / self.row_sum(power))

    def row_max(self, table: FloatArray) -> FloatArray:
        """Return the largest number of each row as a column."""
        return np.maximum.reduce(table, axis=1, keepdims=True)

    def row_sum(self, table: FloatArray) -> FloatArray:
        """Return the sum of each row as a column."""
        if table.shape[1] >= MIN_CLASSES_FOR_NUMPY_SUM:
            return np.add.reduce(table, axis=1, keepdims=True)
        total = table[:, :1] + table[:, 1:2]
        for column in range(2, table.shape[1]):
            total += table[:, column : column + 1]
        return total

    def normalise_nonzero_rows(self, values: FloatArray) -> "Rows":
        """Return rows divided by their sums; a row of zeros keeps its probabilities."""
        total = self.row_sum(values)
        is_empty = total <= 0.0
        if is_empty.any():
            values = np.where(is_empty, self.proba, values)
            total = self.row_sum(values)
        return Rows(values / total)

    def clip_to_floor(self, floor: float) -> "Rows":
        """Return rows with at least this probability; rows with exact logarithms stay."""
        if self.exact_log is not None or self.proba.min() >= floor:
            return self
        key = "floor", floor
        if key not in self._results:
            proba = self.to_canonical()
            clipped = clip_to_floor(proba, floor)
            if clipped is proba:
                return self
            self._results[key] = Rows.from_canonical(clipped)
        return self._results[key]

    def uniform(self) -> "Rows":
        """Return equal probabilities of all options that a row has."""
        if self.absent is None:
            return Rows(np.full(self.proba.shape, 1.0 / self.n_classes))
        is_present = ~self.absent
        return Rows(is_present / is_present.sum(axis=1, keepdims=True))

    @cached_property
    def one_vs_rest_pairs(self) -> "Rows":
        """Return the pairs (others, c) of each class c: n rows of class 0, n of class 1, ..."""
        n_rows, k = self.proba.shape
        pairs = np.empty((2, k, n_rows))
        pairs[0] = combine_others(np.add, self.proba, 0.0).T
        pairs[1] = self.proba.T
        log = None
        if self.exact_log is not None:
            logs = np.empty((2, k, n_rows))
            logs[0] = combine_others(np.logaddexp, self.exact_log, -np.inf).T
            logs[1] = self.exact_log.T
            log = logs.reshape(2, -1).T
        return Rows(pairs.reshape(2, -1).T, log)

    def select(self, rows: Any) -> "Rows":
        """Return some rows."""
        log = self.exact_log
        absent = self.absent
        return Rows(
            self.proba[rows],
            None if log is None else log[rows],
            None if absent is None else absent[rows],
        )

    def join(self, blocks: list[FloatArray]) -> FloatArray:
        """Return blocks of rows one below the other."""
        return np.concatenate(blocks)

    def column(self, table: FloatArray, column: int) -> FloatArray:
        """Return a column of a table as scores."""
        return table[:, column]

    def constant(self, calibration_map: Any, name: str) -> FloatArray:
        """Return an array of a map, for arithmetic with these rows."""
        return getattr(calibration_map, name)


class TensorRows:
    """Rows of tensors on their device: the arithmetic part of `Rows`, by the array API.

    Parameters
    ----------
    xp : module
        The array API of the library.
    proba : tensor of shape (n, k), default=None
    log : tensor of shape (n, k), default=None
        Exact logarithms, instead.
    is_normalised : bool, default=False
        Whether the exponentials of `log` have the sum 1; otherwise `log` is right up to
        a constant of each row.
    constants : dict, default=None
        Arrays of maps that are on the device already.
    """

    absent = None

    def __init__(
        self,
        xp: Any,
        proba: Any = None,
        log: Any = None,
        *,
        is_normalised: bool = False,
        constants: dict[Any, Any] | None = None,
    ) -> None:
        self.xp = xp
        self._proba = proba
        self._log = log
        self._is_normalised = is_normalised
        self._constants = {} if constants is None else constants

    @property
    def _input_array(self):
        return self._proba if self._log is None else self._log

    @property
    def n_classes(self) -> int:
        return self._input_array.shape[1]

    @property
    def proba(self) -> Any:
        """Return the probabilities."""
        if self._proba is None:
            self._proba = self.softmax(self._log).proba
        return self._proba

    @property
    def log(self) -> Any:
        """Return the logarithms."""
        if self._log is not None and not self._is_normalised:
            self._log = self._log - self._log_sum(self._log)
            self._is_normalised = True
        return self.log_up_to_constant

    @property
    def log_up_to_constant(self) -> Any:
        """Return the logarithms, perhaps up to a constant of each row."""
        if self._log is not None:
            return self._log
        return self.xp.log(self.xp.clip(self._proba, SMALLEST_PROBABILITY, None))

    @property
    def log_odds(self) -> Any:
        """Return the log-odds of the second of two classes, as a column."""
        log = self.log_up_to_constant
        return self.column(log, 1) - self.column(log, 0)

    def score(self, kind: str, *, is_rounded: bool = False) -> Any:
        """Return the score that a function of two classes reads: "proba" or "logit"."""
        return self.proba[:, 1:] if kind == "proba" else self.log_odds

    def apply_map(self, calibration_map: Any) -> "TensorRows":
        """Return the rows that a map makes of these."""
        return calibration_map.apply(self)

    def with_proba(self, proba: Any) -> "TensorRows":
        """Return rows without exact logarithms."""
        return TensorRows(self.xp, proba, constants=self._constants)

    def from_log_odds(self, log_odds: Any) -> "TensorRows":
        """Return rows of two classes from the log-odds of the second, a column."""
        logits = self.xp.concat([self.xp.zeros_like(log_odds), log_odds], axis=1)
        return self.softmax(logits)

    def softmax(self, logits: Any, *, is_centred: bool = False) -> "TensorRows":
        """Return rows from logits, whose maxima are 0 if they are centred."""
        if not is_centred:
            logits = logits - self.row_max(logits)
        power = self.xp.exp(logits)
        # Not in place, which would break the gradients of tensors.
        return self.with_proba(power / self.row_sum(power))

    def row_max(self, table: Any) -> Any:
        """Return the largest number of each row as a column."""
        return self.xp.max(table, axis=1, keepdims=True)

    def row_sum(self, table: Any) -> Any:
        """Return the sum of each row as a column."""
        return self.xp.sum(table, axis=1, keepdims=True)

    def _log_sum(self, logits):
        """Return the logarithm of the sum of the exponentials of each row, as a column."""
        # Subtracting the maximum keeps the exponentials from overflowing.
        top = self.row_max(logits)
        return top + self.xp.log(self.row_sum(self.xp.exp(logits - top)))

    def normalise_nonzero_rows(self, values: Any) -> "TensorRows":
        """Return rows divided by their sums; a row of zeros keeps its probabilities."""
        total = self.row_sum(values)
        is_empty = total <= 0.0
        values = self.xp.where(is_empty, self.proba, values)
        total = self.xp.where(is_empty, self.row_sum(values), total)
        return self.with_proba(values / total)

    def clip_to_floor(self, floor: float) -> "TensorRows":
        """Return rows with at least this probability; rows with exact logarithms stay."""
        xp = self.xp
        if self._log is not None:
            return self
        is_low = xp.any(self._proba < floor, axis=1, keepdims=True)
        if not bool(xp.any(is_low)):
            return self
        clipped = xp.clip(self._proba, floor, None)
        return self.with_proba(
            xp.where(is_low, clipped / self.row_sum(clipped), self._proba)
        )

    def uniform(self) -> "TensorRows":
        """Return equal probabilities."""
        return self.with_proba(self.xp.full_like(self.proba, 1.0 / self.n_classes))

    @property
    def one_vs_rest_pairs(self) -> "TensorRows":
        """Return the pairs (others, c) of each class c: n rows of class 0, n of class 1, ..."""
        xp = self.xp
        values = self._proba if self._log is None else self.log
        rest = self._sum_other_classes_in_same_kind(values)
        blocks = []
        for column in range(self.n_classes):
            this = slice(column, column + 1)
            blocks.append(xp.concat([rest[:, this], values[:, this]], axis=1))
        return self._with_same_kind(xp.concat(blocks, axis=0))

    def _sum_other_classes_in_same_kind(self, values):
        """Return the sum over all other classes, or its logarithm.

        No numbers near 1 are subtracted from each other.
        """
        xp = self.xp
        top = xp.argmax(values, axis=1, keepdims=True)
        classes = xp.arange(self.n_classes, dtype=top.dtype, device=values.device)
        # For the largest class 1 - p would lose digits, so the others are added up.
        is_top = classes == top
        if self._log is None:
            rest = self.row_sum(xp.where(is_top, xp.zeros_like(values), values))
            return xp.where(is_top, rest, 1.0 - values)
        rest = self._log_sum(
            xp.where(is_top, xp.full_like(values, -float("inf")), values)
        )
        # All entries except the largest are below 1/2, up to rounding.
        below = xp.clip(xp.exp(values), None, 0.5)
        return xp.where(is_top, rest, xp.log1p(-below))

    def _with_same_kind(self, table):
        """Return rows from probabilities, or from logarithms if these rows have exact ones."""
        if self._log is None:
            return self.with_proba(table)
        return TensorRows(
            self.xp,
            log=table,
            is_normalised=True,
            constants=self._constants,
        )

    def select(self, rows: slice) -> "TensorRows":
        """Return some rows."""
        return self._with_same_kind(self._input_array[rows, :])

    def join(self, blocks: list[Any]) -> Any:
        """Return blocks of rows one below the other."""
        return self.xp.concat(blocks, axis=0)

    def column(self, table: Any, column: int) -> Any:
        """Return a column of a table as scores, which are a column here."""
        return table[:, column : column + 1]

    def constant(self, calibration_map: Any, name: str) -> Any:
        """Return an array of a map on the device, to which it is moved once."""
        key = id(calibration_map), name
        if key not in self._constants:
            values = np.array(getattr(calibration_map, name), dtype=np.float64)
            scores = self._input_array
            self._constants[key] = self.xp.asarray(
                values, dtype=scores.dtype, device=scores.device
            )
        return self._constants[key]
