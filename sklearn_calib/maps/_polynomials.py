"""Polynomials of the score."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import chebyshev, polynomial

from .._typing import FloatArray
from ._base import combine_directions
from ._fields import Number, Numbers, invalid_field, schema_field
from ._function import LOGIT_FIELD, TIES_FIELD, FunctionOfScore
from ._ranges import get_distinct_real_parts_between

# The slope of a Chebyshev series is checked at this many scores.
_MONOTONE_GRID_SCORES = 4097
_CHEBYSHEV_SLOPE_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class SigmoidPoly(FunctionOfScore):
    """P_1 = sigmoid(sum_j coef_j z^j), z = (x - centre) / spread."""

    input: str = schema_field(LOGIT_FIELD)
    coef: FloatArray = schema_field(
        Numbers("Coefficients, the constant first.", least=1)
    )
    centre: float = schema_field(Number("Number that is subtracted from x."), 0.0)
    spread: float = schema_field(Number("Number that x is divided by."), 1.0)
    link: ClassVar[str] = "sigmoid"
    supports_array_api = True

    def check(self, k: int, at: str) -> None:
        if not self.spread > 0:
            raise invalid_field(
                f"{at}.spread", expected="a number above 0", got=f"{self.spread:g}"
            )

    def value(self, x: Any) -> Any:
        is_shifted = self.centre != 0.0 or self.spread != 1.0
        z = (x - self.centre) / self.spread if is_shifted else x
        *lower, highest = self.coef.tolist()
        # Horner's rule. For a constant, 0 x gives the result the shape of x.
        total = highest if lower else 0.0 * x + highest
        for coefficient in reversed(lower):
            total = total * z + coefficient
        return total

    def direction(self) -> int | None:
        return int(np.sign(self.coef[1:].sum())) if len(self.coef) < 3 else None

    def find_turns(self, every: bool) -> FloatArray:
        if len(self.coef) < 3:
            return np.array([])
        roots = get_distinct_real_parts_between(
            polynomial.polyroots(polynomial.polyder(self.coef))
        )
        return self.centre + self.spread * roots


@dataclass(frozen=True, eq=False, kw_only=True)
class ClippedChebyshev(FunctionOfScore):
    """P_1 = sum_j coef_j T_j(z), clipped to [0, 1].

    z = 2 (x - a) / (b - a) - 1, clipped to [-1, 1].
    """

    domain: FloatArray = schema_field(
        Numbers("Two numbers a < b.", length=2, increasing=True)
    )
    coef: FloatArray = schema_field(
        Numbers("Coefficients of the Chebyshev polynomials T_0, T_1, ...", least=1)
    )
    ties: bool = schema_field(TIES_FIELD, False)

    def value(self, x: Any) -> Any:
        low, high = self.domain
        z = 2.0 * (np.clip(x, low, high) - low) / (high - low) - 1.0
        return chebyshev.chebval(np.clip(z, -1.0, 1.0), self.coef)

    def lower_value_to_operations(self, rows: Any) -> Any:
        if not rows.is_program:
            return super().lower_value_to_operations(rows)
        low, high = self.domain
        # The constants are one factor, which saves an operation of the program.
        z = (np.clip(rows.compute_input_score(self), low, high) - low) * (
            2.0 / (high - low)
        ) - 1.0
        return rows.chebyshev(np.clip(z, -1.0, 1.0), self.coef)

    def direction(self) -> int | None:
        z = np.linspace(-1.0, 1.0, _MONOTONE_GRID_SCORES)
        derivative = chebyshev.chebder(self.coef)
        roots = get_distinct_real_parts_between(
            chebyshev.chebroots(derivative), -1.0, 1.0
        )
        # The sign of the derivative is constant between its roots. The grid guards
        # against roots that the solver misses.
        ends = np.unique(np.concatenate([z, roots]))
        slope = chebyshev.chebval((ends[:-1] + ends[1:]) / 2, derivative)
        noise = _CHEBYSHEV_SLOPE_TOLERANCE * np.abs(derivative).sum()
        return find_slope_direction(slope, noise)

    def find_turns(self, every: bool) -> FloatArray:
        low, high = self.domain
        roots = get_distinct_real_parts_between(
            chebyshev.chebroots(chebyshev.chebder(self.coef)), -1.0, 1.0
        )
        return np.concatenate([[low, high], low + (roots + 1) / 2 * (high - low)])


def find_slope_direction(slope: FloatArray, noise: Any) -> int | None:
    """Return the direction of a function with these slopes, of which `noise` is rounding."""
    falls = bool((slope < -noise).any())
    rises = bool((slope > noise).any())
    return combine_directions([-int(falls), int(rises)])
