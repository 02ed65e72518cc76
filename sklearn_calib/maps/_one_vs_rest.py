"""One map of two classes for each class against all others."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._kernels._two_class_problems import pair_with_rest
from ._base import CalibrationMap, RowsOfScores
from ._curves import CallableMap
from ._fields import MapListField, invalid_field, schema_field
from ._function import FunctionOfScore
from ._ranges import Ranges
from ._rows import Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class OneVsRest(CalibrationMap):
    """One part per class c, applied to two classes: all others, and c.

    The p of the others is the sum of their probabilities, and their l is the logarithm
    of the sum of exp(l). Rows are divided by their sums. A row for which every part
    gives 0 keeps p.
    """

    parts: tuple[CalibrationMap, ...] = schema_field(
        MapListField("One node per class, or one for all classes.")
    )
    splits = True
    supports_array_api = True

    def check(self, k: int, at: str) -> None:
        if len(self.parts) not in (1, k):
            raise invalid_field(
                f"{at}.parts",
                expected=f"1 node or {k} of them",
                got=f"{len(self.parts)}",
            )

    def apply(self, rows: Any) -> Any:
        pairs = rows.one_vs_rest_pairs
        k = rows.n_classes
        n_rows = rows.proba.shape[0]
        # The pairs of all classes are one block below the other, so a shared part is
        # applied once.
        blocks = [slice(column * n_rows, (column + 1) * n_rows) for column in range(k)]
        if len(self.parts) == 1:
            second = pairs.apply_map(self.parts[0]).proba[:, 1]
        elif self._parts_use_same_score:
            first: Any = self.parts[0]
            x = pairs.score(first.input, is_rounded=first.rounds_scores)
            values = []
            for part, block in zip(self.parts, blocks, strict=True):
                values.append(part.value(x[block, ...]))  # type: ignore[attr-defined]
            second = first.to_rows(pairs, rows.join(values)).proba[:, 1]
        else:
            columns = []
            for part, block in zip(self.parts, blocks, strict=True):
                columns.append(part.apply(pairs.select(block)).proba[:, 1])
            second = rows.join(columns)
        return rows.normalise_nonzero_rows(rows.xp.reshape(second, (k, n_rows)).T)

    @cached_property
    def _parts_use_same_score(self):
        """Return whether all parts are functions of one score, which is then computed once."""
        first = self.parts[0]
        # A curve without a finite form has no values to compare.
        for part in self.parts:
            if not isinstance(part, FunctionOfScore) or isinstance(part, CallableMap):
                return False
        return all(map(first.has_same_input, self.parts))

    def lower(self, rows: Any) -> Any:
        parts = self.parts * (rows.k if len(self.parts) == 1 else 1)
        columns = []
        for part, pair in zip(parts, rows.iter_one_vs_rest(), strict=True):
            columns.append(pair.apply_map(part).p.column(1))
        return rows.divide_by_sums_or_keep_p(np.column_stack(columns))

    def direction(self) -> int | None:
        return 1 if {part.direction() for part in self.parts} <= {0, 1} else None

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        """Cut at the cuts of both parts; the ratio of their results is searched."""
        for column, part in enumerate(self.parts * (3 - len(self.parts))):
            part.cut_ranges(
                ranges, _compose_with_pair_against_rest(rows, column), every=True
            )
        ranges.needs_search = True


def _compose_with_pair_against_rest(rows: RowsOfScores, column: int) -> RowsOfScores:
    return lambda x: Rows.from_canonical(pair_with_rest(rows(x).to_canonical(), column))
