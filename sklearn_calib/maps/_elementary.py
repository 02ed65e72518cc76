"""Maps with one number or none."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._base import CalibrationMap, RowsOfScores
from ._fields import Number, invalid_field, schema_field
from ._ranges import Ranges


@dataclass(frozen=True, eq=False, kw_only=True)
class _RisingMap(CalibrationMap, in_documents=False):
    """Base of maps that never fall and have one formula for all scores."""

    supports_array_api = True

    def direction(self) -> int:
        return 1

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        pass

    def keeps_absent(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Identity(_RisingMap):
    """p, without exact logarithms."""

    def apply(self, rows: Any) -> Any:
        return rows.with_proba(rows.proba)

    def lower(self, rows: Any) -> Any:
        return rows.make_rows(rows.p)

    def linear_input(self) -> str:
        return "proba"


@dataclass(frozen=True, eq=False, kw_only=True)
class Uniform(_RisingMap):
    """1 / k for each of the k classes."""

    def apply(self, rows: Any) -> Any:
        return rows.uniform()

    def lower(self, rows: Any) -> Any:
        return rows.make_rows(rows.p * 0.0 + 1.0 / rows.k)

    def direction(self) -> int:
        return 0

    def linear_input(self) -> str:
        return "constant"


@dataclass(frozen=True, eq=False, kw_only=True)
class Floor(_RisingMap):
    """Probabilities below `floor` become `floor`, and their row is divided by its sum.

    Rows without such a probability, and rows with exact logarithms, stay as they are.
    """

    floor: float = schema_field(Number("The smallest probability.", 0.0, 1.0))

    def check(self, k: int, at: str) -> None:
        # Then the uniform row would be below the floor.
        if self.floor > 1 / k:
            raise invalid_field(
                f"{at}.floor",
                expected=f"a number <= {1 / k:.6g}, one over the classes",
                got=f"{self.floor}",
            )

    def apply(self, rows: Any) -> Any:
        return rows.clip_to_floor(self.floor)

    def lower(self, rows: Any) -> Any:
        # Rows from logits have exact logarithms and need no floor.
        if rows.exact is not None:
            return rows
        higher = np.maximum(rows.p, self.floor)
        # Rows without a low probability keep all their digits.
        low = rows.p.min() < self.floor
        return rows.make_rows(low.where(higher / higher.sum(), rows.p))


@dataclass(frozen=True, eq=False, kw_only=True)
class TailCompression(_RisingMap):
    """P_c proportional to 1 / (1 + m - l_c), where m = max(l): this shortens the tails."""

    def apply(self, rows: Any) -> Any:
        # Logarithms less the largest one: the map does not depend on the sum of the
        # row.
        log = rows.log_up_to_constant
        shares = 1.0 / (1.0 + rows.row_max(log) - log)
        return rows.with_proba(shares / rows.row_sum(shares))

    def lower(self, rows: Any) -> Any:
        shares = 1.0 / (1.0 + rows.log.max(axis=1, keepdims=True) - rows.log)
        return rows.make_rows(shares / shares.sum(axis=1, keepdims=True))

    def keeps_absent(self) -> bool:
        return False
