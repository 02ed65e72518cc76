"""One result for all rows of a cell of the simplex."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels._level_sets import (
    find_row_cell_indices,
    project_levels_to_simplex_proba,
)
from .._typing import FloatArray, IntArray
from ._base import CalibrationMap, RowsOfScores
from ._fields import Flag, Number, Numbers, invalid_field, schema_field
from ._ranges import Ranges


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(CalibrationMap):
    """One result for all rows of a cell, which share the levels floor(n_levels p + slack).

    A row outside all cells keeps p if `keep` is true. Otherwise it becomes (levels + r
    / k) / n_levels, where r is n_levels minus the sum of the levels. Rows are divided
    by their sums; a row of zeros keeps p.
    """

    n_levels: int = schema_field(
        Number("Number of levels of a probability.", 1, 5000, whole=True)
    )
    slack: float = schema_field(
        Number("Allowance for the rounding of n_levels p.", 0.0, 0.5)
    )
    keys: IntArray = schema_field(
        Numbers(
            "The levels of each cell, k numbers, in lexicographic order.",
            0,
            whole=True,
            shapes=(2,),
        )
    )
    rows: FloatArray = schema_field(
        Numbers("The result of each cell, k numbers.", 0.0, 1.0, shapes=(2,))
    )
    keep: bool = schema_field(Flag("Whether rows outside all cells stay as they are."))

    def check(self, k: int, at: str) -> None:
        for name in ("keys", "rows"):
            table = getattr(self, name)
            if len(table) and table.shape[1] != k:
                raise invalid_field(
                    f"{at}.{name}",
                    expected=f"{k} numbers for each cell",
                    got=f"{table.shape[1]}",
                )
        if len(self.keys) != len(self.rows):
            raise invalid_field(
                f"{at}.rows",
                expected=f"{len(self.keys)} of them, one for each key",
                got=f"{len(self.rows)}",
            )
        # The cells are found by bisection, which needs increasing keys.
        keys = list(map(tuple, self.keys.tolist()))
        if any(later <= earlier for earlier, later in itertools.pairwise(keys)):
            raise invalid_field(
                f"{at}.keys",
                expected="different keys in increasing order",
                got="keys in another order",
            )

    def apply(self, rows: Any) -> Any:
        proba = np.ascontiguousarray(rows.proba)
        if self.keep:
            out = proba.copy()
        else:
            # The level of a probability is the integer below n_levels p; the slack
            # absorbs rounding.
            levels = np.floor(proba * float(self.n_levels) + self.slack).astype(
                np.int64
            )
            out = project_levels_to_simplex_proba(levels, self.n_levels)
        if len(self.keys):
            cell = find_row_cell_indices(proba, self.n_levels, self.keys, self.slack)
            is_inside = cell >= 0
            out[is_inside] = self.rows[cell[is_inside]]
        return rows.normalise_nonzero_rows(out)

    def lower(self, rows: Any) -> Any:
        n_levels = float(self.n_levels)
        levels = np.floor(rows.p * n_levels + self.slack)
        # The rest that floors leave is divided evenly, so that the row sums to 1.
        missing = (n_levels - levels.sum()) / float(rows.k)
        out = rows.p if self.keep else (levels + missing) / n_levels
        return rows.divide_by_sums_or_keep_p(
            rows.look_up_cells(self, levels, out) if len(self.keys) else out
        )

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        """Cut where a level of either class changes."""
        steps = np.arange(1, self.n_levels + 1, dtype=np.float64)

        def compute_proba_level(x, column):
            return np.floor(
                rows(x).proba[:, column] * float(self.n_levels) + self.slack
            )

        ranges.cut_at_levels(lambda x: compute_proba_level(x, 1), steps, jumps=True)
        ranges.cut_at_levels(lambda x: compute_proba_level(x, 0), steps, jumps=True)
