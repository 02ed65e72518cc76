"""Ordered classes: cumulative log-odds, rescaled and shifted."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from .._kernels._ordinal import compute_class_proba, compute_cumulative_log_odds
from .._typing import FloatArray
from ._base import CalibrationMap, RowsOfScores, check_length
from ._fields import Number, Numbers, invalid_field, schema_field
from ._ranges import Ranges


@dataclass(frozen=True, eq=False, kw_only=True)
class CumulativeAffine(CalibrationMap):
    """For ordered classes: "above class c" gets the log-odds slope z_c + shifts_c, c = 0 .. k - 2.

    z_c is the logarithm of the sum of exp(l) over the classes above c, minus that over
    the others.
    """

    slope: float = schema_field(Number("Factor of the log-odds.", 0.0))
    shifts: FloatArray = schema_field(
        Numbers("One per class except the last, none larger than the one before.")
    )

    def check(self, k: int, at: str) -> None:
        check_length(self.shifts, k - 1, f"{at}.shifts")
        # Rising shifts would give negative probabilities of the classes between.
        if (np.diff(self.shifts) > 0).any():
            raise invalid_field(
                f"{at}.shifts", expected="numbers that do not rise", got="rising ones"
            )

    def apply(self, rows: Any) -> Any:
        return rows.with_proba(
            compute_class_proba(
                compute_cumulative_log_odds(rows.log), self.slope, self.shifts
            )
        )

    def lower(self, rows: Any) -> Any:
        eta = rows.compute_log_odds_above_each_class() * float(self.slope) + self.shifts
        above = [expit(eta).column(c) for c in range(rows.k - 1)]
        columns = [expit(-eta.column(0))]
        for before, after in itertools.pairwise(above):
            # P(class c) is P(above c - 1) - P(above c); rounding may make it slightly
            # negative.
            columns.append(np.maximum(before - after, 0.0))
        table = np.column_stack([*columns, above[-1]])
        return rows.make_rows(table / table.sum())

    def direction(self) -> int:
        return int(self.slope > 0)

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        pass
