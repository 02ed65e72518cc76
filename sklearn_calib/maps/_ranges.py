"""Ranges of scores that are cut where a map for two classes may turn.

The turning points are read off the fields of the maps: knots, steps and stationary
points, carried back to the scores that come in. Those of sums of rising and falling
parts are searched for.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._kernels._float_order import (
    decode_floats,
    encode_floats,
    find_first_keys_beyond,
    find_level_crossings,
)
from .._typing import AnyArray, FloatArray

#: A function from scores to numbers.
ScoreFunction = Callable[[FloatArray], FloatArray]

#: Relative slopes and steps below this are rounding.
RELATIVE_SLOPE_TOLERANCE = 1e-13
#: Floating-point numbers, at most, between a cut and the jump of the map that it stands
#: for.
_MAX_FLOATS_BEFORE_JUMP_BY_DTYPE = {
    "float64": np.uint64(1 << 16),
    "float32": np.uint64(4),
}
_MIN_JUMP = 1e-9
# A range is searched on at most this many scores.
_MAX_GRID_SCORES = 257
# Approximately, in all ranges together.
_MAX_SEARCHED_SCORES = 20_000


class Ranges:
    """Ranges of scores, by their keys, that are cut where a map may turn.

    Parameters
    ----------
    low, high : float
        The smallest and the largest score.
    dtype : {"float64", "float32"}
        Their type.
    """

    def __init__(self, low: float, high: float, dtype: str) -> None:
        self.first_keys = encode_floats([low], dtype)
        self._last = encode_floats([high], dtype)
        self.dtype = dtype
        # Without a search, because a part of the map may turn between the cuts.
        self.needs_search = False
        self._jumps = self.first_keys[:0]

    @property
    def last_keys(self) -> AnyArray:
        """Return the last key of each range."""
        return np.append(self.first_keys[1:] - np.uint64(1), self._last)

    def _add_cuts(self, keys):
        self.first_keys = np.union1d(self.first_keys, keys)

    def cut_at_levels(
        self, score: ScoreFunction, levels: FloatArray, *, jumps: bool = False
    ) -> None:
        """Cut where a function of the scores passes levels; it turns at cuts alone."""
        if len(levels):
            keys = find_level_crossings(
                score,
                self.first_keys,
                self.last_keys,
                np.asarray(levels),
                self.dtype,
            )[2]
            self._add_cuts(keys)
            if jumps:
                self._jumps = np.union1d(self._jumps, keys)

    def move_to_jumps(self, value: ScoreFunction) -> None:
        """Move cuts to where the map itself jumps, whose arithmetic may round otherwise."""
        jump_indices = np.flatnonzero(
            np.isin(self.first_keys, self._jumps)
            & (self.first_keys > self.first_keys[0])
        )
        if not len(jump_indices):
            return
        ends = np.append(self.first_keys, self._last)
        jump_keys = self.first_keys[jump_indices]
        max_steps = _MAX_FLOATS_BEFORE_JUMP_BY_DTYPE[self.dtype]
        # Half the way to the neighbours, so that no two searches meet.
        half_below = (jump_keys - ends[jump_indices - 1]) // np.uint64(2)
        half_above = (ends[jump_indices + 1] - jump_keys) // np.uint64(2)
        low = jump_keys - np.minimum(half_below, max_steps)
        high = jump_keys + np.minimum(half_above, max_steps)
        x = decode_floats(np.append(low, high), self.dtype)
        left, right = value(x).reshape(2, -1)
        jump = np.abs(right - left) > _MIN_JUMP
        level = (left + right)[jump] / 2
        rises = right[jump] >= level
        self.first_keys[jump_indices[jump]] = find_first_keys_beyond(
            value,
            low[jump],
            high[jump],
            level,
            rises,
            self.dtype,
        )

    def cut_at_extremes(self, value: ScoreFunction) -> None:
        """Cut where a function that is smooth between the cuts is largest or smallest."""
        number = max(
            9, min(_MAX_GRID_SCORES, _MAX_SEARCHED_SCORES // len(self.first_keys))
        )
        x = self._make_key_table_by_range(number)
        y = value(decode_floats(x.ravel(), self.dtype)).reshape(x.shape)
        step = np.diff(y, axis=1)
        step[np.abs(step) <= RELATIVE_SLOPE_TOLERANCE] = 0.0
        range_number, turn_positions = np.nonzero(step)
        sign = np.sign(step[range_number, turn_positions])
        turns = (np.diff(sign) != 0) & (np.diff(range_number) == 0)
        if turns.any():
            range_number = range_number[:-1][turns]
            before = turn_positions[:-1][turns]
            after = turn_positions[1:][turns] + 1
            low = x[range_number, before]
            high = x[range_number, after]
            self._add_cuts(
                self._find_extreme_score_keys(value, low, high, sign[:-1][turns])
            )

    def _make_key_table_by_range(self, n_keys_per_scale):
        """Return keys of each range, in even steps and in even steps of log-odds."""
        starts = self.first_keys[:, None]
        stops = self.last_keys[:, None]
        low = decode_floats(starts, self.dtype)
        high = decode_floats(stops, self.dtype)
        share = np.linspace(0.0, 1.0, n_keys_per_scale)
        even = low + share * (high - low)
        if low.min() >= 0 and high.max() <= 1:
            logits = []
            for x in (low, high):
                with np.errstate(divide="ignore"):
                    logit = np.log(x) - np.log1p(-x)
                logits.append(np.clip(logit, -700.0, 40.0))
            even_logits = logits[0] + share * (logits[1] - logits[0])
            other = 1 / (1 + np.exp(-even_logits))
        else:
            near = [np.clip(x, -745.0, 745.0) for x in (low, high)]
            other = near[0] + share * (near[1] - near[0])
        keys = encode_floats(np.clip(np.hstack([even, other]), low, high), self.dtype)
        return np.sort(np.hstack([starts, np.clip(keys, starts, stops), stops]), axis=1)

    def _find_extreme_score_keys(self, value, low_keys, high_keys, sign):
        """Return keys where a function is largest (sign 1) or smallest, each between two others."""
        while ((high_keys - low_keys) > 2).any():
            third = (high_keys - low_keys) // np.uint64(3)
            left = low_keys + third
            right = high_keys - third
            y = value(decode_floats(np.append(left, right), self.dtype)).reshape(2, -1)
            beyond = sign * y[0] < sign * y[1]
            low_keys = np.where(beyond, left, low_keys)
            high_keys = np.where(beyond, high_keys, right)
        return low_keys + np.uint64(1)


def get_distinct_real_parts_between(
    roots: Any, low: float = -np.inf, high: float = np.inf
) -> FloatArray:
    """Return the real parts of roots between two numbers.

    The real part of a pair that is not real is a cut too many, which changes nothing.
    """
    real = np.real(roots)
    return np.unique(real[(real > low) & (real < high)])
