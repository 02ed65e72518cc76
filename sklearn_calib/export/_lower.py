"""Rows inside a program or an ONNX graph, of which maps make other rows; and whole programs.

What is the same for both is written once here, with the operators and functions of
numpy.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.special import expit, log_expit

from .._kernels._float_order import decode_floats, encode_floats, find_first_keys_beyond
from .._kernels._log_odds import LOG_OF_ZERO, compute_map_input
from .._simplex_array import SMALLEST_PROBABILITY, convert_log_odds
from .._typing import FloatArray, IntArray, Self
from .._validation import FLOAT32_SUM_TOLERANCE, MAX_ABS_LOGIT
from ..maps import CalibrationMap, Cells, FunctionOfScore
from . import _program as ops
from ._document import MapDocument
from ._program import Columns, Expr

MAX_FLOAT = float(np.finfo(np.float64).max)
_MAX_ABS_LOG_ODDS = 1e300
# 1 divided by the smallest normal number.
_MIN_NORMAL_RECIPROCAL = 2.0**1022
MIN_FLOAT = float(np.nextafter(0.0, 1.0))
# Sums that are this close to 1 are left as they are.
ROW_SUM_TOLERANCE = 1e-15
_MAX_EXACT_INTEGER = 2**53

#: What is done to an array of numbers.
Transformation: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class ScoreOrigin:
    """A number from which rows of two classes come, such that P_1 never falls as it grows.

    `compute_rows` computes them as the reference does; `ends` are the least and the largest
    number.
    """

    number: Any
    ends: tuple[float, float]
    compute_rows: Transformation


def make_two_class_proba_origin(p: Any) -> ScoreOrigin:
    """Return rows (1 - p, p)."""
    return ScoreOrigin(p, (0.0, 1.0), lambda p: np.column_stack([1.0 - p, p]))


def make_log_odds_origin(x: Any) -> ScoreOrigin:
    """Return rows with exact log-odds."""
    return ScoreOrigin(x, (-_MAX_ABS_LOG_ODDS, _MAX_ABS_LOG_ODDS), convert_log_odds)


@dataclass(frozen=True, eq=False)
class RowExpression:
    """Rows on the simplex between two maps of a program or a graph.

    Parameters
    ----------
    p : Columns, or Tensor of shape (n, k)
    k : int
    exact : Columns or Tensor, default=None
        Their logarithms, if the rows carry them.
    origin : Origin, default=None
        Of two classes, if one is known.
    """

    p: Any
    k: int
    exact: Any = None
    origin: ScoreOrigin | None = None

    #: Whether they are the row of a program, which has operations for searches in
    #: tables.
    is_program: ClassVar[bool] = False

    @property
    def number_below_all_logs(self) -> float:
        """Return a number below all logarithms."""
        return -1e300

    @property
    def is_double(self) -> bool:
        """Return whether numbers have the digits of float64."""
        return True

    @classmethod
    def from_margin(cls, x: Any) -> Self:
        """Return rows of two classes from the log-odds of the second."""
        both_margins = np.column_stack([-x, x])
        return cls(
            expit(both_margins), 2, log_expit(both_margins), make_log_odds_origin(x)
        )

    @classmethod
    def from_logits(cls, z: Any, k: int) -> Self:
        """Return rows from one logit for each class."""
        parts = z.compute_shifted_exponentials()
        # Exact logarithms of the softmax: the difference from the largest logit, less
        # the logarithm of the sum.
        total = parts.sum()
        return cls(parts / total, k, z - z.max() - np.log(total))

    @classmethod
    def from_probabilities(cls, x: Any, k: int) -> tuple[Any, Self]:
        """Return whether `x` are probabilities, and the rows, as `canonical_proba` does."""
        p = np.clip(x, 0.0, 1.0)
        total = p.sum()
        error = abs(total - 1.0)
        divisor = (error > ROW_SUM_TOLERANCE).where(
            np.maximum(total, ROW_SUM_TOLERANCE), 1.0
        )
        within = (
            (x >= -FLOAT32_SUM_TOLERANCE) & (x <= 1 + FLOAT32_SUM_TOLERANCE)
        ).all()
        return within & (error <= FLOAT32_SUM_TOLERANCE), cls(p / divisor, k)

    def make_rows(self, p: Any, k: int | None = None, exact: Any = None) -> Self:
        """Return other rows of the same program or graph."""
        return type(self)(p, self.k if k is None else k, exact)

    def apply_map(self, node: CalibrationMap) -> "RowExpression":
        """Return the rows that a map makes of these."""
        return node.lower(self)

    @property
    def log(self) -> Any:
        """Return logarithms, as `log_proba` does."""
        if self.exact is None:
            return self._log_at_least(SMALLEST_PROBABILITY)
        return self.exact

    def _log_at_least(self, floor):
        return np.log(np.maximum(self.p, floor))

    def divide_by_sums_or_keep_p(self, values: Any) -> Self:
        """Divide rows by their sums; a row of zeros keeps p."""
        whole = values.sum()
        # All candidates are 0: the row stays as it is.
        some = whole > 0.0
        return self.make_rows(
            some.where(values, self.p) / some.where(whole, self.p.sum())
        )

    def iter_one_vs_rest(self) -> Iterator[Self]:
        """Iterate over each class against the rest, as `iter_one_vs_rest` does."""
        others, log_others = self.sum_other_classes_with_log_if_exact()
        for c in range(self.k):
            exact = None
            if self.exact is not None:
                exact = np.column_stack([log_others[c], self.exact.column(c)])
            yield self.make_rows(
                np.column_stack([others[c], self.p.column(c)]), 2, exact
            )

    # -- the number that a function of two classes reads ------------------------------------------

    def score(self, kind: str) -> Any:
        """Return the score that a function of two classes reads."""
        if kind == "proba":
            return self.p.column(1)
        log = self.log
        # The order of ranks distinguishes 0 from the smallest positive number.
        if kind == "rank" and self.exact is None:
            # Ranks distinguish 0 from the smallest positive number.
            log = (self.p > 0.0).where(
                self._log_at_least(MIN_FLOAT), float(LOG_OF_ZERO)
            )
        return log.column(1) - log.column(0)

    def compute_input_score(self, function: FunctionOfScore) -> Any:
        """Return the score that a function reads, rounded if the function rounds it."""
        x = self.score(function.input)
        if not (self.is_double and function.rounds_scores):
            return x
        return round_expression_to_36_bits(x, 0.0 if function.input == "proba" else 1.0)

    def count_reached_targets(
        self, function: FunctionOfScore, targets: FloatArray, transform: Transformation
    ) -> Any:
        """Count the targets that moved(x) reaches, without a logarithm of other precision."""
        if function.input == "proba" and self.origin is None:
            origin = make_two_class_proba_origin(self.p.column(1))
        else:
            origin = self.make_pair_origin()
        # The edges are moved to the number from which the row is made, so that the
        # program needs no logarithm, whose last digits differ between languages.
        edges = find_smallest_reaching_or_max_float(
            lambda number: transform(
                compute_map_input(origin.compute_rows(number), function.input)
            ),
            targets,
            *origin.ends,
        )
        return np.searchsorted(
            self.shift_edges_by_rounding_slack(edges, origin),
            origin.number,
            side="right",
        )

    def shift_edges_by_rounding_slack(
        self, edges: FloatArray, origin: ScoreOrigin
    ) -> FloatArray:
        """Return edges as rows that may have been rounded are compared with them."""
        return edges

    def make_pair_origin(self) -> ScoreOrigin:
        """Return the origin of two probabilities: by default p_1 if it is small, else 1 / p_0.

        This number orders like the log-odds, keeps their digits, and needs no
        logarithm. Below the smallest normal p_0 it goes on linearly, since 1 / p_0
        would overflow: from 2^1022 to 2^1023 at 0, which has a number for each of the
        subnormal ones.
        """
        if self.origin is not None:
            return self.origin
        if self.exact is not None:
            return make_log_odds_origin(self.score("logit"))
        zero = self.p.column(0)
        second = self.p.column(1)
        # One number that orders all pairs of probabilities: p_1 up to 1/2, then the
        # reciprocal of p_0, which keeps its digits near p_1 = 1.
        scaled = zero * _MIN_NORMAL_RECIPROCAL
        beyond = (scaled < 1.0).where(2.0 - scaled, 1.0 / np.maximum(scaled, 1.0))
        order = (second <= zero).where(second, beyond * _MIN_NORMAL_RECIPROCAL)
        return ScoreOrigin(
            order,
            (0.0, 2.0 * _MIN_NORMAL_RECIPROCAL),
            _convert_order_number_to_proba_pairs,
        )

    # -- what programs and graphs do in ways of their own ------------------------------------------

    def sum_other_classes_with_log_if_exact(self) -> tuple[Any, Any]:
        """Sum all other probabilities for each class, with logarithms if they are exact."""
        raise NotImplementedError

    def mark_first_top_class(self) -> Any:
        """Return, for each class, whether it is the first of the largest."""
        raise NotImplementedError

    def compute_log_odds_above_each_class(self) -> Any:
        """Return thresholds of ordered classes: log-odds of being above each class but the last."""
        raise NotImplementedError

    def look_up_cells(self, cells: Cells, levels: Any, other: Any) -> Any:
        """Return the results of the cells of levels, and `other` for levels outside of cells."""
        raise NotImplementedError


def _convert_order_number_to_proba_pairs(order_number):
    """Return the probabilities (p_0, p_1) of numbers that `make_pair_origin` orders them by."""
    second = np.minimum(order_number, 0.5)
    zero = 1.0 / np.maximum(order_number, 2.0)
    beyond = (
        2.0 - np.clip(order_number / _MIN_NORMAL_RECIPROCAL, 1.0, 2.0)
    ) / _MIN_NORMAL_RECIPROCAL
    zero = np.where(order_number < _MIN_NORMAL_RECIPROCAL, zero, beyond)
    small = order_number < 1.0
    return np.column_stack(
        [np.where(small, 1.0 - second, zero), np.where(small, second, 1.0 - zero)]
    )


def round_expression_to_36_bits(x: Any, min_power: float) -> Any:
    """Round to 36 significant bits, as `round_to_36_bits` does.

    `power` is the power of two above |x| [Rump, Ogita, Oishi (2008), NextPowerTwo], or
    0 where x is one, which needs no rounding; adding 1.5 * 2^16 of it leaves 36 bits.
    """
    far = abs(x) * 2.0**53
    power = (far + abs(x)) - far
    shift = 1.5 * 2.0**16 * (np.maximum(power, min_power) if min_power else power)
    return (x + shift) - shift


def find_smallest_reaching_or_max_float(
    function: Transformation, targets: FloatArray, low: float, high: float
) -> FloatArray:
    """Find the smallest floats in [low, high] at which an increasing function reaches targets.

    The largest float64 where it reaches them nowhere. Takes 64 evaluations of all
    targets.
    """
    first, last = encode_floats([low, high], "float64")
    # Bisection over all floats: 64 evaluations find the exact edge.
    before = np.full(len(targets), first - np.uint64(1))
    beyond = np.full(len(targets), last + np.uint64(1))
    reaches = np.ones(len(targets), dtype=bool)
    keys = find_first_keys_beyond(function, before, beyond, targets, reaches, "float64")
    return np.where(
        keys > last, MAX_FLOAT, decode_floats(np.minimum(keys, last), "float64")
    )


# -- programs ---------------------------------------------------------------------------------


def make_program(document: MapDocument, *, second_only: bool = False) -> ops.Program:
    """Build the program of a map: from its scores to the probabilities of all classes.

    Parameters
    ----------
    document : MapDocument
    second_only : bool, default=False
        For two classes: the scores are one number, the probability of the second class
        or its log-odds, and so is the result.
    """
    document.check_has_no_scale()
    k = 1 if second_only else len(document.classes)
    x: Any = Columns([Expr("input", data=c) for c in range(k)])
    if document.input == "logits":
        # Larger logits would overflow in differences.
        valid = (abs(x) <= MAX_ABS_LOGIT).all()
        if second_only:
            rows = ProgramExpression.from_margin(x)
        else:
            rows = ProgramExpression.from_logits(
                np.clip(x, -MAX_ABS_LOGIT, MAX_ABS_LOGIT), k
            )
    elif second_only:
        valid = (x >= 0.0) & (x <= 1.0)
        rows = ProgramExpression(
            np.column_stack([1.0 - x, x]), 2, origin=make_two_class_proba_origin(x)
        )
    else:
        valid, rows = ProgramExpression.from_probabilities(x, k)
    outputs = rows.apply_map(document.root).p.expressions
    return ops.merge_equal_expressions(
        ops.Program(
            k, valid.expressions[0], tuple(outputs[1:] if second_only else outputs)
        )
    )


class ProgramExpression(RowExpression):
    """The row of a program."""

    is_program = True

    def apply_map(self, node: CalibrationMap) -> RowExpression:
        mapped = node.lower(self)
        if self.k == 2 and mapped is not self and node.direction() in (0, 1):
            before = self.make_pair_origin()
            origin = replace(
                before, compute_rows=lambda number: node(before.compute_rows(number))
            )
            return replace(mapped, origin=origin)
        return mapped

    @property
    def smallest_divisor(self) -> float:
        """Return a number whose reciprocal is finite."""
        return ops.MIN_DIVISOR

    def chebyshev(self, z: Columns, coef: FloatArray) -> Columns:
        """Return a sum of Chebyshev polynomials of numbers in [-1, 1]."""
        return ops.apply_table_operation("chebyshev", z, coef)

    def sum_other_classes_with_log_if_exact(self) -> tuple[Any, Any]:
        log = (
            None
            if self.exact is None
            else ops.reduce_excluding_each(
                ops.add_logarithms, self.exact.split_columns()
            )
        )
        return ops.reduce_excluding_each(np.add, self.p.split_columns()), log

    def mark_first_top_class(self) -> Any:
        """Return for each class whether it is the first of the largest."""
        p = self.p.split_columns()
        # Class c is the first of the largest if all before it are smaller and none
        # after it is larger.
        before = list(itertools.accumulate(p, np.maximum))
        from_here = list(itertools.accumulate(p[::-1], np.maximum))[::-1]
        is_largest = [column >= top for column, top in zip(p, from_here, strict=True)]
        later = zip(is_largest[1:], before[:-1], p[1:], strict=True)
        return np.column_stack(
            [is_largest[0], *(same & (top < column) for same, top, column in later)]
        )

    def compute_log_odds_above_each_class(self) -> Any:
        """Return the log-odds of being above each class but the last."""
        # One logarithm for each sum is enough.
        if self.exact is None:
            terms = np.maximum(self.p, SMALLEST_PROBABILITY).split_columns()
            sums = (itertools.accumulate(side, np.add) for side in (terms, terms[::-1]))
            below, above = (
                [np.log(total) for total in list(side)[:-1]] for side in sums
            )
        else:
            terms = self.exact.split_columns()
            sums = (
                itertools.accumulate(side, ops.add_logarithms)
                for side in (terms, terms[::-1])
            )
            below, above = (list(side)[:-1] for side in sums)
        return np.column_stack(above[::-1]) - np.column_stack(below)

    def look_up_cells(self, cells: Cells, levels: Any, other: Any) -> Columns:
        """Return the row of the cell that has the levels as its key, else `other`."""
        # Keys beyond the number of levels are never reached.
        is_used = (cells.keys <= cells.n_levels).all(axis=1)
        if not is_used.any():
            return other
        is_cell, place, number_of_key = _match_levels_to_keys(
            levels.split_columns(), cells.keys[is_used], cells.n_levels + 1
        )
        tables = np.empty((number_of_key.max() + 2, self.k))
        tables[0] = 0.0
        tables[number_of_key + 1] = cells.rows[is_used]
        return is_cell.where(
            np.column_stack([place.look_up_in_table(row) for row in tables.T]), other
        )


def _match_levels_to_keys(
    levels: list[Any], keys: IntArray, base: int
) -> tuple[Any, Any, IntArray]:
    """Return whether levels are a key, their place, and the place of each key.

    As many columns as fit join into one whole number, which is looked up; its place
    stands for them when the next columns join.
    """
    rank: Any = Columns([ops.make_number(0.0)])
    rank_of_keys: Any = np.zeros(len(keys))
    conditions: list[Any] = []
    first = 0
    while first < len(levels):
        code = rank
        code_of_keys = rank_of_keys
        largest_code = float(len(keys))
        # As many levels as fit exactly into a float64 are joined into one code and
        # searched at once.
        while first < len(levels) and (largest_code + 1) * base < _MAX_EXACT_INTEGER:
            code = code * float(base) + levels[first]
            code_of_keys = code_of_keys * base + keys[:, first]
            largest_code = (largest_code + 1) * base
            first += 1
        codes, rank_of_keys = np.unique(code_of_keys, return_inverse=True)
        place = np.searchsorted(codes, code, side="right")
        conditions.append(code <= place.look_up_in_table(np.append(-1.0, codes)))
        rank = place.look_up_in_table(np.append(0.0, np.arange(len(codes))))
        rank_of_keys = rank_of_keys.ravel()
    return np.column_stack(conditions).all(), place, rank_of_keys
