"""Softmax of an affine function of the logarithms."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import FloatArray
from ._base import CalibrationMap, RowsOfScores, check_length, combine_directions
from ._fields import Flag, Number, Numbers, invalid_field, schema_field
from ._ranges import Ranges


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxAffine(CalibrationMap):
    """softmax(coef u + intercept), where u is l, minus its largest entry if `centred`."""

    coef: FloatArray = schema_field(
        Numbers(
            "One factor for all classes, one per class, or a k x k matrix.",
            shapes=(0, 1, 2),
        )
    )
    intercept: FloatArray = schema_field(
        Numbers("One number for all classes, or one per class.", shapes=(0, 1))
    )
    centred: bool = schema_field(
        Flag("Whether the largest entry of l is subtracted from it."), False
    )
    least: float | None = schema_field(
        Number(
            "Smaller entries of u count as this number; null for no limit.",
            optional=True,
        ),
        None,
    )
    supports_array_api = True

    def check(self, k: int, at: str) -> None:
        if self.coef.shape not in ((), (k,), (k, k)):
            shape = "x".join(map(str, self.coef.shape))
            raise invalid_field(
                f"{at}.coef",
                expected=f"one number, {k} or {k}x{k} of them",
                got=f"{shape} numbers",
            )
        if self.intercept.ndim:
            check_length(self.intercept, k, f"{at}.intercept")

    def apply(self, rows: Any) -> Any:
        # If the coefficient is one number, adding a constant to a row changes nothing.
        is_scaled = self.coef.ndim == 0
        slope_0, slope_1 = self._slope_pair
        if rows.n_classes == 2 and is_scaled and self.least is None:
            return rows.from_log_odds(
                slope_1 * rows.log_odds + self._two_class_log_odds_shift
            )
        u = rows.log_up_to_constant if self.centred or is_scaled else rows.log
        if self.centred:
            u = u - rows.row_max(u)
        # Clipping at the smallest float32 would change nothing in a tensor of float32.
        if self.least is not None and self.least > float(rows.xp.finfo(u.dtype).min):
            u = rows.xp.clip(u, self.least, None)
        if rows.n_classes == 2:
            log_odds = slope_1 * rows.column(u, 1) - slope_0 * rows.column(u, 0)
            return rows.from_log_odds(log_odds + self._two_class_log_odds_shift)
        if is_scaled:
            u = u * slope_1
        elif self.coef.ndim == 1:
            u = u * rows.constant(self, "coef")
        else:
            u = u @ rows.constant(self, "coef").T
        if self._has_offset:
            return rows.softmax(u + rows.constant(self, "intercept"))
        # Centred logits that are multiplied by a factor of at least 0 still have the
        # maximum 0.
        return rows.softmax(u, is_centred=self.centred and is_scaled and slope_1 >= 0)

    @cached_property
    def _slope_pair(self):
        """Return the factors of log p_0 and log p_1 in the log-odds of the result."""
        if self.coef.ndim == 2:
            difference = self.coef[1] - self.coef[0]
            return float(-difference[0]), float(difference[1])
        coef = np.broadcast_to(self.coef, 2) if self.coef.ndim == 0 else self.coef
        return float(coef[0]), float(coef[1])

    @cached_property
    def _has_offset(self):
        """Return whether the intercept has an effect.

        One number for all classes has none.
        """
        return self.intercept.ndim == 1 and bool(self.intercept.any())

    @cached_property
    def _two_class_log_odds_shift(self):
        return float(self.intercept[1] - self.intercept[0]) if self._has_offset else 0.0

    def lower(self, rows: Any) -> Any:
        u = rows.log
        if self.centred:
            u = u - u.max(axis=1, keepdims=True)
        if self.least is not None:
            u = np.maximum(u, self.least)
        moved = u @ self.coef.T if self.coef.ndim == 2 else u * self.coef
        return rows.make_rows((moved + self.intercept).softmax())

    def direction(self) -> int | None:
        return combine_directions(np.sign(self._slope_pair).astype(int).tolist())

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        slope_0, slope_1 = self._slope_pair
        if self.least is not None:
            for column, sign in ((0, -1), (1, 1)):
                self._cut_at_lower_limit(ranges, rows, column, sign)
        turn = 0.0
        if not self.centred and slope_0 * slope_1 < 0:
            # The derivative of one log p_1 - zero log p_0 is one / p_1 + zero / p_0,
            # which is 0 at p_1 / p_0 = -one / zero.
            turn = np.log(-slope_1 / slope_0)
        ranges.cut_at_levels(lambda x: rows(x).log_odds, np.array([turn]))

    def _cut_at_lower_limit(self, ranges, rows, column, sign):
        """Cut where an entry of u passes `least`."""

        def compute_rising_score(x):
            """Return a logarithm, with the other sign if it falls, or the log-odds."""
            read_rows = rows(x)
            return sign * (
                read_rows.log_odds if self.centred else read_rows.log[:, column]
            )

        level = self.least if self.centred else sign * self.least
        ranges.cut_at_levels(compute_rising_score, np.array([level]))

    def keeps_absent(self) -> bool:
        return self.coef.ndim == self.intercept.ndim == 0 and self.least is None
