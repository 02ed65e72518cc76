"""The base of maps for two classes that give P_1 as a function of one number.

The functions are written once, with operators and functions of NumPy: they compute with
arrays, and write a graph of ONNX or of a program if they are called with its tensors or
columns.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from .._typing import FloatArray
from ._base import CalibrationMap, RowsOfScores
from ._fields import Choice, Flag, schema_field
from ._ranges import Ranges

TIES_FIELD = Flag(
    "Whether x is first rounded to 36 significant bits, halves to even. Log-odds below 1 in "
    "absolute value are rounded to multiples of 2^-36. Rows that differ only by rounding "
    "noise then get the same result."
)
SCORE_FIELD = Choice(
    'Meaning of x: "proba" is p_1, "logit" is l_1 - l_0, and "rank" is the same with l = log p '
    "down to the smallest float64, and -745.1332191019412, which is -1075 log 2, for zero.",
    ("proba", "logit", "rank"),
)
LOGIT_FIELD = Choice(
    'Meaning of x: "proba" or "logit", as in `steps`.', ("proba", "logit")
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionOfScore(CalibrationMap, in_documents=False):
    """P_1 as a function of one number x of the row; P_0 = 1 - P_1."""

    input: str = schema_field(SCORE_FIELD)
    is_binary = True
    #: Whether the map jumps at its turning points.
    has_jumps = False

    @property
    def rounds_scores(self) -> bool:
        """Return whether x is rounded first."""
        return getattr(self, "ties", False)

    @property
    def _has_sigmoid_link(self):
        return getattr(self, "link", None) == "sigmoid"

    def apply(self, rows: Any) -> Any:
        value = self.value(rows.score(self.input, is_rounded=self.rounds_scores))
        return self.to_rows(rows, value)

    def to_rows(self, rows: Any, value: Any) -> Any:
        """Return rows from values of the function."""
        if self._has_sigmoid_link:
            return rows.from_log_odds(value)
        return rows.with_proba(self.to_pair(value))

    def has_same_input(self, other: "FunctionOfScore") -> bool:
        """Return whether another function reads the same score and has the same link."""
        if self.input != other.input or self.rounds_scores != other.rounds_scores:
            return False
        return self._has_sigmoid_link == other._has_sigmoid_link

    def lower(self, rows: Any) -> Any:
        return rows.make_rows(self.to_pair(self.lower_value_to_operations(rows)))

    def lower_value_to_operations(self, rows: Any) -> Any:
        """Write the value, before the link, as operations on rows."""
        return self.value(rows.compute_input_score(self))

    def value(self, x: Any) -> Any:
        """Return the value at numbers x, before the link: an array, a tensor, or a column."""
        raise NotImplementedError

    def to_pair(self, value: Any) -> Any:
        """Return (P_0, P_1) from an array, a tensor or a column of values."""
        if self._has_sigmoid_link:
            return np.column_stack([expit(-value), expit(value)])
        # Rounding may move an interpolated value slightly out of [0, 1].
        value = np.clip(value, 0.0, 1.0)
        return np.column_stack([1.0 - value, value])

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        levels = np.unique(self.find_turns(every))
        ranges.cut_at_levels(
            lambda x: rows(x).score(self.input), levels, jumps=self.has_jumps
        )

    def find_turns(self, every: bool) -> FloatArray:
        """Return the numbers x at which the function turns, or all at which its formula changes."""
        raise NotImplementedError


def take_entries(table: FloatArray, places: Any) -> Any:
    """Return entries of a table at places that are an array, a tensor, or a column."""
    return (
        table[places]
        if isinstance(places, np.ndarray)
        else places.look_up_in_table(table)
    )
