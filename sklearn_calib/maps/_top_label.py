"""A new probability for the predicted class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from .._kernels._two_class_problems import pair_top_with_rest
from .._simplex_array import log_proba
from .._typing import AnyArray, FloatArray, IntArray
from ._base import CalibrationMap
from ._fields import MapListField, Number, invalid_field, schema_field
from ._rows import Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class TopLabel(CalibrationMap):
    """A new probability for the class t with the largest p, the first one in case of ties.

    The part is applied to two classes, all others and t, as in `one_vs_rest`. The
    others share the remaining probability in proportion to exp(rest l).
    """

    parts: tuple[CalibrationMap | None, ...] = schema_field(
        MapListField(
            "One node per class t, null if the row keeps p; or one node for all classes.",
            gaps=True,
        )
    )
    rest: float = schema_field(
        Number("Exponent of the probabilities of the other classes.")
    )
    splits = True

    def check(self, k: int, at: str) -> None:
        if len(self.parts) not in (1, k):
            raise invalid_field(
                f"{at}.parts",
                expected=f"1 node or {k} of them",
                got=f"{len(self.parts)}",
            )
        if k == 2:
            raise invalid_field(
                at,
                expected="more than two classes",
                got="two",
                hint="For two classes, use the part alone",
            )

    def apply(self, rows: Any) -> Any:
        top = rows.proba.argmax(axis=1)
        if len(self.parts) == 1:
            return rows.with_proba(
                self._apply_part_to_top_class(self.parts[0], rows, top)
            )
        # Rows whose class has no part keep their probabilities.
        out = np.array(rows.proba)
        for column, part in enumerate(self.parts):
            chosen = np.flatnonzero(top == column)
            if part is not None and len(chosen):
                out[chosen] = self._apply_part_to_top_class(
                    part, rows.select(chosen), top[chosen]
                )
        return rows.with_proba(out)

    def _apply_part_to_top_class(self, part, rows, top):
        """Return the rows whose predicted class gets a probability from a part."""
        if part is None:
            return rows.proba
        proba = rows.to_canonical()
        pairs = Rows.from_canonical(pair_top_with_rest(proba, top))
        return distribute_rest(part.apply(pairs).proba, proba, top, self.rest)

    def lower(self, rows: Any) -> Any:
        is_top = rows.mark_first_top_class()
        exact = None
        log_others = is_top.where(rows.number_below_all_logs, rows.log)
        if rows.exact is not None:
            log_top = is_top.where(rows.exact, 0.0).sum()
            exact = np.column_stack([log_others.log_sum_exp(), log_top])
        p: Any = np.column_stack([is_top.where(0.0, rows.p).sum(), rows.p.max()])
        pair = rows.make_rows(p, 2, exact)
        mapped = [p if part is None else pair.apply_map(part).p for part in self.parts]
        rest = mapped[0].column(0)
        top = mapped[0].column(1)
        # Each row takes the numbers from the part of its predicted class.
        if len(mapped) > 1:
            rests = np.column_stack([table.column(0) for table in mapped])
            tops = np.column_stack([table.column(1) for table in mapped])
            rest = is_top.where(rests, 0.0).sum()
            top = is_top.where(tops, 0.0).sum()
        # The logarithms are relative to the largest of the others, so that the exponent
        # does not cause an overflow. The predicted class gets no share.
        exponents = (rows.log - log_others.max()) * self.rest
        shares = is_top.where(rows.number_below_all_logs, exponents).softmax()
        out = is_top.where(top, rest * shares)
        if None in self.parts:
            # A row without a part is recognised by a table of 0 and 1 over the
            # predicted classes.
            kept = np.array([float(part is None) for part in self.parts])
            out = (is_top.where(kept, 0.0).sum() > 0.5).where(rows.p, out)
        return rows.make_rows(out)


def select_other_log_proba_and_mask(
    proba: FloatArray, top: IntArray
) -> tuple[FloatArray, AnyArray]:
    """Return the log-probabilities of all classes but the predicted one, and their places."""
    log = np.asarray(log_proba(proba))
    is_other = np.arange(log.shape[1]) != top[:, None]
    return log[is_other].reshape(len(log), -1), is_other


def distribute_rest(
    pair: FloatArray, proba: FloatArray, top: IntArray, exponent: float
) -> FloatArray:
    """Return rows from pairs (all others, predicted class): the others share the first part."""
    log, is_other = select_other_log_proba_and_mask(proba, top)
    shares = softmax(exponent * (log - log.max(axis=1, keepdims=True)), axis=1)
    out = np.empty(is_other.shape)
    out[~is_other] = pair[:, 1]
    out[is_other] = (pair[:, [0]] * shares).ravel()
    return out
