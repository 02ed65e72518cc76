"""Maps that are made of others: means, and one after the other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._typing import FloatArray
from ._base import CalibrationMap, RowsOfScores, check_length, combine_directions
from ._elementary import Floor
from ._fields import MapListField, Numbers, invalid_field, schema_field
from ._ranges import Ranges

#: How far a sum of weights, which must be 1, may be from it.
WEIGHT_SUM_SLACK = 1e-9
#: Tensors go through mixtures of at most so many maps; one of `OnlineCalibration` has
#: thousands.
MAX_MIXTURE_PARTS_FOR_TENSORS = 100

PARTS_FIELD = MapListField("The nodes inside.")

Operand = TypeVar("Operand")


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixture(CalibrationMap):
    """The weighted mean of the results of the parts."""

    weights: FloatArray = schema_field(
        Numbers("One weight per part, at least 0, with sum 1.", 0.0, 1.0)
    )
    parts: tuple[CalibrationMap, ...] = schema_field(PARTS_FIELD)
    supports_array_api = True

    def check(self, k: int, at: str) -> None:
        check_length(self.weights, len(self.parts), f"{at}.weights")
        total = float(self.weights.sum())
        if abs(total - 1) > WEIGHT_SUM_SLACK:
            raise invalid_field(
                f"{at}.weights", expected="a sum of 1", got=f"{total:.12g}"
            )

    def supports_tensors(self) -> bool:
        return (
            len(self.parts) <= MAX_MIXTURE_PARTS_FOR_TENSORS
            and super().supports_tensors()
        )

    def apply(self, rows: Any) -> Any:
        total = 0.0
        for weight, part in zip(self.weights.tolist(), self.parts, strict=True):
            total = total + weight * rows.apply_map(part).proba
        # The weights are rounded, so their sum may exceed 1.
        return rows.with_proba(rows.xp.clip(total, None, 1.0))

    def lower(self, rows: Any) -> Any:
        terms = []
        for weight, part in zip(self.weights.tolist(), self.parts, strict=True):
            terms.append(rows.apply_map(part).p * weight)
        return rows.make_rows(combine_pairwise(np.add, terms))

    def direction(self) -> int | None:
        return combine_directions(part.direction() for part in self.parts)

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        """Cut at the cuts of all parts, between which the sum is linear or is searched."""
        for part in self.parts:
            part.cut_ranges(ranges, rows, every=True)
        inputs = {part.linear_input() for part in self.parts}
        if None in inputs or len(inputs - {"constant"}) > 1:
            ranges.needs_search = True

    def keeps_absent(self) -> bool:
        return all(part.keeps_absent() for part in self.parts)


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(CalibrationMap):
    """The parts in their order: each is applied to the result of the one before it."""

    parts: tuple[CalibrationMap, ...] = schema_field(PARTS_FIELD)
    supports_array_api = True

    def apply(self, rows: Any) -> Any:
        for part in self.parts:
            rows = rows.apply_map(part)
        return rows

    def lower(self, rows: Any) -> Any:
        return self.apply(rows)

    def direction(self) -> int | None:
        signs = [part.direction() for part in self.parts]
        if 0 in signs:
            return 0
        known_signs = [sign for sign in signs if sign is not None]
        return math.prod(known_signs) if len(known_signs) == len(signs) else None

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        last = -1
        for number, part in enumerate(self.parts):
            if every or part.direction() is None:
                last = number
        for part in self.parts[: last + 1]:
            if every or part.direction() is None:
                part.cut_ranges(ranges, rows, every=every)
            rows = _compose_with_map(part, rows)

    def keeps_absent(self) -> bool:
        # The probabilities that `Floor` returns are still marked as absent or not.
        *before, last = self.parts
        return all(isinstance(part, Floor) for part in before) and last.keeps_absent()


def _compose_with_map(part: CalibrationMap, rows: RowsOfScores) -> RowsOfScores:
    return lambda x: part.apply(rows(x))


def make_chain(*parts: CalibrationMap) -> CalibrationMap:
    """Return one map after the other; chains inside are opened."""
    steps: list[CalibrationMap] = []
    for part in parts:
        steps += part.parts if isinstance(part, Chain) else [part]
    return steps[0] if len(steps) == 1 else Chain(parts=tuple(steps))


def make_mixture(weights: Any, parts: Sequence[CalibrationMap]) -> CalibrationMap:
    """Return the weighted mean of maps, without those of weight 0."""
    kept = [(float(w), part) for w, part in zip(weights, parts, strict=True) if w > 0]
    if len(kept) == 1:
        return kept[0][1]
    positive = np.array([weight for weight, _ in kept])
    return Mixture(weights=positive, parts=tuple(part for _, part in kept))


def combine_pairwise(
    operation: Callable[..., Any], terms: Sequence[Operand]
) -> Operand:
    """Return an associative operation over all terms, as a balanced tree.

    Databases limit the depth of expressions.
    """
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [operation(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0]
