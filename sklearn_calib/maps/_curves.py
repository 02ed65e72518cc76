"""Functions of the score between knots: steps, straight lines and cubic curves."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from .._kernels._log_odds import (
    find_smallest_log_odds_rounding_beyond,
    round_to_36_bits,
    subtract_sigmoids,
)
from .._simplex_array import convert_log_odds
from .._typing import AnyArray, FloatArray
from ..exceptions import invalid_input
from ._base import RowsOfScores, check_length, combine_directions
from ._fields import Choice, Field, Numbers, invalid_field, schema_field
from ._function import TIES_FIELD, FunctionOfScore, take_entries
from ._polynomials import find_slope_direction
from ._ranges import RELATIVE_SLOPE_TOLERANCE, Ranges
from ._rows import TensorRows

# Slices that select the starts and the ends of the pieces between knots.
_PIECE_STARTS = slice(-1)
_PIECE_ENDS = slice(1, None)
# In tables; lines to it from other values must not be too steep.
_LOG_OF_ZERO = -40.0
# Rounding may move a probability beyond 0 or 1 by this much.
_PROBA_RANGE_TOLERANCE = 1e-9
#: A function from rows of two classes to rows of two classes.
RowFunction = Callable[[FloatArray], FloatArray]
#: A function from log-odds to the numbers of the pieces that they are in.
PieceFunction = Callable[[FloatArray], AnyArray]
DOMAIN_FIELD = Numbers(
    "Two numbers a <= b: x is first clipped to [a, b]. If null, x is not clipped, and the "
    "curve continues beyond the knots as a straight line.",
    length=2,
    optional=True,
)
SCALE_FIELD = Choice(
    'How lengths are measured. With "input", the length from a to b is b - a. With "proba", '
    "where x and the knots are log-odds, it is sigmoid(b) - sigmoid(a).",
    ("input", "proba"),
)
LINK_FIELD = Choice(
    'If null, P_1 is the value, clipped to [0, 1]. With "sigmoid", it is its sigmoid.',
    ("sigmoid", None),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps(FunctionOfScore):
    """P_1 = values_j where edges_(j-1) <= x < edges_j."""

    edges: FloatArray = schema_field(
        Numbers("Increasing; empty for a constant.", increasing=True)
    )
    values: FloatArray = schema_field(Numbers("One number more than edges.", 0.0, 1.0))
    has_jumps = True

    def check(self, k: int, at: str) -> None:
        check_length(self.values, len(self.edges) + 1, f"{at}.values")

    def value(self, x: Any) -> Any:
        return take_entries(self.values, count_reached_edges(self.edges, x))

    def lower_value_to_operations(self, rows: Any) -> Any:
        if not rows.is_double:
            return super().lower_value_to_operations(rows)
        return take_entries(
            self.values, rows.count_reached_targets(self, self.edges, np.asarray)
        )

    def direction(self) -> int | None:
        return find_monotone_direction(self.values)

    def find_turns(self, every: bool) -> FloatArray:
        if every or len(self.edges) < 2:
            return self.edges
        return self.edges[1:][mark_direction_changes(self.values)]

    def linear_input(self) -> str:
        return "constant"


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveBetweenKnots(FunctionOfScore, in_documents=False):
    """The common part of the two kinds of curves between knots."""

    knots: FloatArray = schema_field(
        Numbers("Increasing, at least two.", least=2, increasing=True)
    )
    values: FloatArray = schema_field(
        Numbers(
            "The values at the knots. With a domain and no link, they are in [0, 1]."
        )
    )
    domain: FloatArray | None = schema_field(DOMAIN_FIELD)
    scale: str = schema_field(SCALE_FIELD, "input")
    link: str | None = schema_field(LINK_FIELD, None)
    ties: bool = schema_field(TIES_FIELD, False)

    def check(self, k: int, at: str) -> None:
        check_length(self.values, len(self.knots), f"{at}.values")
        domain = self.domain
        if domain is not None and domain[0] > domain[1]:
            raise invalid_field(
                f"{at}.domain", expected="a <= b", got=f"{domain.tolist()}"
            )
        if self.scale == "proba":
            if self.input == "proba":
                raise invalid_field(
                    f"{at}.scale",
                    expected="'input', where x is a probability",
                    got="'proba'",
                )
            # A curve in the probability cannot continue beyond its knots on the
            # log-odds.
            low, high = self.knots[[0, -1]]
            if domain is None or domain[0] < low or domain[1] > high:
                raise invalid_field(
                    f"{at}.domain",
                    expected="a domain within the knots, if scale is 'proba'",
                    got="a larger one",
                )
        if self.link is None and domain is not None:
            proba = Numbers("", -_PROBA_RANGE_TOLERANCE, 1 + _PROBA_RANGE_TOLERANCE)
            proba.read(self.values, f"{at}.values")

    @cached_property
    def _piece_starts_lengths_and_terms(self):
        """Return the start and the length of each piece, and other terms of its t."""
        low = self.knots[:-1]
        high = self.knots[1:]
        if self.scale == "input":
            return low, high - low
        return (
            low,
            subtract_sigmoids(low, high),
            _log_sigmoid(high),
            np.expm1(low - high),
        )

    def _find_piece_and_position(self, x):
        """Return the piece of each number, t, and the length of the piece."""
        if self.domain is not None:
            x = clip_to_interval(x, *self.domain)
        piece = count_reached_edges(self.knots[1:-1], x)
        low, width, *more = (
            take_entries(table, piece) for table in self._piece_starts_lengths_and_terms
        )
        if self.scale == "input":
            return piece, (x - low) / width, width
        # (sigmoid(x) - sigmoid(low)) / (sigmoid(high) - sigmoid(low)), written without
        # a difference of nearly equal probabilities.
        share = np.exp(_log_sigmoid(x) - more[0]) * np.expm1(low - x) / more[1]
        return piece, clip_to_interval(share, 0.0, 1.0), width

    def lower_value_to_operations(self, rows: Any) -> Any:
        """Write the value; a program finds the piece without a logarithm of other digits."""
        if not rows.is_program:
            return super().lower_value_to_operations(rows)
        x = rows.compute_input_score(self)
        if self.domain is not None:
            x = np.clip(x, *self.domain)
        place = rows.count_reached_targets(
            self, self.knots[1:-1], self._round_if_ties_and_clip_to_domain
        )
        low = self.knots[:-1]
        high = self.knots[1:]
        start = place.look_up_in_table(low)
        if self.scale == "input":
            with np.errstate(over="ignore"):
                share = (x - start) * place.look_up_in_table(1.0 / (high - low))
        else:
            # The length of the piece as a probability, negative here; it may underflow
            # in float32.
            smallest = expit(high) * np.expm1(low - high)
            unit = 1.0 / np.minimum(smallest, -rows.smallest_divisor)
            share = expit(x) * np.expm1(start - x) * place.look_up_in_table(unit)
            share = np.clip(share, 0.0, 1.0)
        return self.lower_piece_to_operations(place, share)

    def supports_tensors(self) -> bool:
        """Return whether tensors can go through the curve."""
        return self.scale == "input" and self._has_sigmoid_link and not self.ties

    def apply(self, rows: Any) -> Any:
        if isinstance(rows, TensorRows):
            x = rows.score(self.input)
            return self.to_rows(rows, self._compute_values_at_tensor_column(rows, x))
        return super().apply(rows)

    def _compute_values_at_tensor_column(self, rows, x):
        """Return the values at a column of a tensor: the sum of what each piece adds.

        Each row computes all pieces, since tensors of gradients are not looked up.
        """
        xp = rows.xp
        if self.domain is not None:
            x = xp.clip(x, *self.domain.tolist())
        # Tensors have no search of sorted arrays on all devices: each piece adds its
        # part, clipped to its ends.
        start = rows.constant(self, "_piece_starts")
        share = (x - start) / rows.constant(self, "_piece_lengths")
        share = xp.clip(share, 0.0, 1.0)
        added = xp.zeros_like(share)
        for name in (
            "_cubic_coefficient_by_piece",
            "_square_coefficient_by_piece",
            "_linear_coefficient_by_piece",
        ):
            added = (added + rows.constant(self, name)) * share
        first, last = self.knots[[0, -1]].tolist()
        left, right = self._compute_end_slopes().tolist()
        # Straight lines beyond the first and the last knot.
        beyond = xp.clip(x - first, None, 0.0) * left
        beyond = beyond + xp.clip(x - last, 0.0, None) * right
        return float(self.values[0]) + beyond + rows.row_sum(added)

    @property
    def _piece_starts(self):
        return self._piece_starts_lengths_and_terms[0]

    @property
    def _piece_lengths(self):
        return self._piece_starts_lengths_and_terms[1]

    @property
    def _has_lines_beyond_knots(self):
        """Return whether numbers beyond the knots occur, where the curve is a straight line."""
        if self.scale == "proba":
            return False
        return (
            self.domain is None
            or self.domain[0] < self.knots[0]
            or self.domain[1] > self.knots[-1]
        )

    def _round_if_ties_and_clip_to_domain(self, x):
        """Return numbers as the curve reads them: rounded, and moved into the domain."""
        if self.ties:
            x = round_to_36_bits(x, -2000 if self.input == "proba" else 0)
        return x if self.domain is None else np.clip(x, *self.domain)

    def lower_piece_to_operations(self, place: Any, t: Any) -> Any:
        """Write the value from the piece and t."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class PiecewiseLinear(CurveBetweenKnots):
    """Linear between knots: value_j + (value_(j+1) - value_j) t on [knot_j, knot_(j+1)].

    t is the length from knot_j to x divided by that from knot_j to knot_(j+1).
    """

    _cubic_coefficient_by_piece = _square_coefficient_by_piece = np.zeros(1)

    @cached_property
    def _linear_coefficient_by_piece(self):
        return np.diff(self.values)

    def _compute_end_slopes(self):
        return (self._linear_coefficient_by_piece / self._piece_lengths)[[0, -1]]

    def value(self, x: Any) -> Any:
        piece, t, _ = self._find_piece_and_position(x)
        return self.lower_piece_to_operations(piece, t)

    def lower_piece_to_operations(self, place: Any, t: Any) -> Any:
        start = take_entries(self.values[:-1], place)
        return start + t * take_entries(self._linear_coefficient_by_piece, place)

    def direction(self) -> int | None:
        return find_monotone_direction(self.values)

    def find_turns(self, every: bool) -> FloatArray:
        if every:
            return np.append(self.knots, [] if self.domain is None else self.domain)
        return self.knots[1:-1][mark_direction_changes(self.values)]

    def linear_input(self) -> str | None:
        if self.link is not None:
            return None
        return "proba" if self.scale == "proba" else self.input


@dataclass(frozen=True, eq=False, kw_only=True)
class PiecewiseCubic(CurveBetweenKnots):
    """Cubic between knots, with the given slopes at the knots.

    On [knot_j, knot_(j+1)] of length w, with t as in `piecewise_linear` and s = 1 - t:
    s^2 (1 + 2 t) value_j + t^2 (3 - 2 t) value_(j+1) + w t s^2 slope_j - w t^2 s
    slope_(j+1).
    """

    slopes: FloatArray = schema_field(
        Numbers("The slopes at the knots, per unit of length.")
    )

    def check(self, k: int, at: str) -> None:
        super().check(k, at)
        check_length(self.slopes, len(self.knots), f"{at}.slopes")

    def value(self, x: Any) -> Any:
        piece, at, width = self._find_piece_and_position(x)
        first, last = (
            take_entries(self.values[ends], piece)
            for ends in (_PIECE_STARTS, _PIECE_ENDS)
        )
        rise, fall = (
            take_entries(self.slopes[ends], piece)
            for ends in (_PIECE_STARTS, _PIECE_ENDS)
        )
        # The cubic inside the piece; beyond the knots a straight line with the slope of
        # the end.
        t = clip_to_interval(at, 0.0, 1.0)
        beyond = (at - t) * width
        s = 1.0 - t
        square = t * t
        return (
            s * s * (1.0 + 2.0 * t) * first
            + square * (3.0 - 2.0 * t) * last
            + (width * t * s * s + np.minimum(beyond, 0.0)) * rise
            + (np.maximum(beyond, 0.0) - width * square * s) * fall
        )

    def lower_piece_to_operations(self, place: Any, t: Any) -> Any:
        """Write the cubic in powers of t, and straight lines beyond the knots."""
        at = t
        if self._has_lines_beyond_knots:
            t = np.clip(at, 0.0, 1.0)
        powers = [
            self.values[:-1],
            self._linear_coefficient_by_piece,
            self._square_coefficient_by_piece,
        ]
        value = place.look_up_in_table(self._cubic_coefficient_by_piece)
        # Horner's scheme.
        for power in powers[::-1]:
            value = place.look_up_in_table(power) + t * value
        if self._has_lines_beyond_knots:
            value = value + np.minimum(at - t, 0.0) * place.look_up_in_table(powers[1])
            right = self._piece_lengths * self.slopes[1:]
            value = value + np.maximum(at - t, 0.0) * place.look_up_in_table(right)
        return value

    @property
    def _linear_coefficient_by_piece(self):
        return self._piece_lengths * self.slopes[:-1]

    @property
    def _square_coefficient_by_piece(self):
        right = self._piece_lengths * self.slopes[1:]
        return 3 * np.diff(self.values) - 2 * self._linear_coefficient_by_piece - right

    @property
    def _cubic_coefficient_by_piece(self):
        right = self._piece_lengths * self.slopes[1:]
        return self._linear_coefficient_by_piece + right - 2 * np.diff(self.values)

    def _compute_end_slopes(self):
        return self.slopes[[0, -1]]

    def _compute_slope_coefficients(self):
        """Return a, b, c of each piece, whose slope in t is a t^2 + b t + c."""
        return (
            3 * self._cubic_coefficient_by_piece,
            2 * self._square_coefficient_by_piece,
            self._linear_coefficient_by_piece,
        )

    def direction(self) -> int | None:
        a, b, c = self._compute_slope_coefficients()
        with np.errstate(divide="ignore", invalid="ignore"):
            # The slope of a cubic is a parabola: its sign is decided by both ends and
            # the vertex.
            vertex = np.where(a != 0, np.clip(-b / (2 * a), 0.0, 1.0), 0.0)
        slope = np.vstack([c, a + b + c, (a * vertex + b) * vertex + c])
        return find_slope_direction(
            slope, RELATIVE_SLOPE_TOLERANCE * (np.abs(a) + np.abs(b) + np.abs(c))
        )

    def find_turns(self, every: bool) -> FloatArray:
        a, b, c = self._compute_slope_coefficients()
        root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
        # The stable form of the quadratic formula, without a difference of nearly equal
        # numbers.
        half = -(b + np.where(b < 0, -root, root)) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.vstack([half / a, c / half])
        inside = (t > 0) & (t < 1)
        low = np.broadcast_to(self.knots[:-1], t.shape)[inside]
        high = np.broadcast_to(self.knots[1:], t.shape)[inside]
        positions = t[inside]
        if self.scale == "input":
            positions = low + positions * (high - low)
        else:
            # Here t is a share of the probability, so the position is found there and
            # converted to log-odds.
            ones = (1 - positions) * expit(low) + positions * expit(high)
            zeros = (1 - positions) * expit(-low) + positions * expit(-high)
            positions = np.log(ones) - np.log(zeros)
        return np.concatenate(
            [self.knots, positions, [] if self.domain is None else self.domain]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class CallableMap(FunctionOfScore, in_documents=False):
    """A map for two classes without a finite form, which `tabulate` replaces by a table.

    It may jump between `points` where the number that `piece` gives to log-odds
    changes.
    """

    name: str = schema_field(Field("The name of the method."))
    predict: RowFunction = schema_field(Field("From rows of two classes to rows."))
    points: FloatArray = schema_field(Numbers("Log-odds."), ())
    piece: PieceFunction | None = schema_field(Field("From log-odds to numbers."), None)

    def apply(self, rows: Any) -> Any:
        return rows.with_proba(self.predict(rows.to_canonical()))

    def compute_log_odds(self, log_odds: FloatArray) -> FloatArray:
        """Return log-odds of the result, from those of the rows."""
        probability = self.predict(convert_log_odds(log_odds))
        with np.errstate(divide="ignore"):
            # Tables cannot contain infinite log-odds.
            log = np.where(probability > 0, np.log(probability), _LOG_OF_ZERO)
        return log[:, 1] - log[:, 0]

    def find_pieces(self, log_odds: FloatArray) -> AnyArray:
        """Return numbers of the smooth pieces that log-odds are in."""
        return np.zeros(len(log_odds)) if self.piece is None else self.piece(log_odds)

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        raise invalid_input(
            expected="a map that only rises or only falls, or one with a finite form",
            got=self.name,
            hint=(
                "Take the threshold of a table of it: from_dict(to_dict(fitted, "
                "tabulate=1e-6)).threshold(target), of sklearn_calib.export"
            ),
        )


def make_steps(score: str, edges: FloatArray, values: AnyArray) -> Steps:
    """Return a step function that contains its left edges, without pieces between equal edges."""
    # Edges that rounding has made equal have no piece between them.
    kept = np.append(np.diff(edges) > 0, True)[: len(edges)]
    values = np.append(values[:1], np.asarray(values)[1:][kept])
    return Steps(input=score, edges=edges[kept], values=values)


def make_steps_on_rounded_log_odds(
    cuts: FloatArray, values: FloatArray, *, right_closed: bool
) -> Steps:
    """Return a step function of rounded log-odds, with edges for those that are not rounded."""
    return make_steps(
        "rank",
        find_smallest_log_odds_rounding_beyond(cuts, inclusive=not right_closed),
        values,
    )


def make_constant(value: float) -> Steps:
    """Return the same probability of the second class for every row."""
    return Steps(input="proba", edges=np.zeros(0), values=np.array([value]))


def make_linear_in_proba(log_odds: FloatArray, values: FloatArray) -> FunctionOfScore:
    """Return straight lines in the probability between knots, constant outside."""
    if len(log_odds) == 1:
        return make_constant(values[0])
    return PiecewiseLinear(
        input="rank",
        ties=True,
        scale="proba",
        domain=log_odds[[0, -1]],
        knots=log_odds,
        values=values,
    )


def count_reached_edges(edges: FloatArray, x: Any) -> Any:
    """Return how many of the increasing edges each number reaches.

    Many numbers halve the edges together, which takes half the time of a search for
    each, whose branches no processor can predict.
    """
    bits = len(edges).bit_length()
    # Small inputs do not pay for the vectorised bisection.
    if not isinstance(x, np.ndarray) or not len(edges) or x.size < 8 << bits:
        return np.searchsorted(edges, x, side="right")
    # Padded to a power of two, so that every number takes the same steps. Not even an
    # infinite number reaches NaN.
    table = np.full(1 << bits, np.nan)
    table[: len(edges)] = edges
    count = np.zeros(x.shape, np.intp)
    for step in 1 << np.arange(bits)[::-1]:
        count += step * (table[count + (step - 1)] <= x)
    return count


def _log_sigmoid(x):
    """Return `log_expit` with an error of at most 1e-16, of arrays in a third of the time.

    Arrays of every size take the same operations, so that few rows get the digits that
    many rows get, and thresholds hold for both.
    """
    if not isinstance(x, np.ndarray):
        return log_expit(x)
    return np.minimum(x, 0.0) - np.log(1.0 + np.exp(-np.abs(x)))


def clip_to_interval(x: Any, low: float, high: float) -> Any:
    """Return numbers moved into an interval; of a single row quicker than `np.clip`."""
    return np.minimum(np.maximum(x, low), high)


def find_monotone_direction(values: FloatArray) -> int | None:
    """Return the direction of a function that is monotone between these values."""
    return combine_directions(np.sign(np.diff(values)).astype(int).tolist())


def mark_direction_changes(values: FloatArray) -> FloatArray:
    """Return whether the direction changes at each step but the first, or between two pieces."""
    sign = np.sign(np.diff(values))
    before = sign.copy()
    # A flat piece keeps the direction of the one before it.
    for j in range(1, len(before)):
        before[j] = before[j] or before[j - 1]
    return (sign[1:] != 0) & (sign[1:] != before[:-1])
