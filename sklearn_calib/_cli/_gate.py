"""Conditions under which ``audit`` fails: ``--fail-if "smooth_calibration_error > 0.05"``."""

import math
import operator
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .._show import quoted
from ..exceptions import meant, nearest
from ._options import as_number
from ._wording import refuse

if TYPE_CHECKING:
    from ..report import CalibrationReport

_OPERATORS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}
_FIELDS = ("value", "low", "high", "if_calibrated")
_FORM = re.compile(r"\s*(\w+)(?:\.(\w+))?\s*(>=|<=|>|<)\s*(\S+|\S+\s*%)\s*")
FORM = "MEASURE[.low|.high] > or < NUMBER"


class Condition(NamedTuple):
    """``measure.field sign limit``; the limit is a number or the name of a field."""

    measure: str
    field: str
    sign: str
    limit: float | str

    def check(self, report: "CalibrationReport", model: str) -> tuple[bool, str]:
        """Whether it holds, and the finding in words."""
        if self.measure == "accuracy":
            found = {"value": report.accuracy[model]}
        else:
            rows = (r for r in report.rows if (r.model, r.measure) == (model, self.measure))
            found = vars(next(rows))
        value = found[self.field]
        limit = found[self.limit] if isinstance(self.limit, str) else self.limit
        if math.isnan(value) or math.isnan(limit):
            refuse(
                "numbers to compare", f"{value} and {limit} for {self.measure}", "Check the rows"
            )
        name = self.measure if self.field == "value" else f"{self.measure}.{self.field}"
        holds = bool(_OPERATORS[self.sign](value, limit))
        shown = f"{self.limit} ({limit:.4g})" if isinstance(self.limit, str) else f"{limit:g}"
        return holds, f"{name} is {value:.4g}, {'' if holds else 'not '}{self.sign} {shown}"


def conditions_of(texts: Iterable[str] | None) -> list[Condition]:
    """Read conditions; refuses what is none."""
    return [_condition(text) for text in texts or ()]


def _condition(text):
    match = _FORM.fullmatch(text)
    if match is None:
        refuse(
            f"--fail-if {quoted(FORM)}",
            quoted(text),
            'An example: --fail-if "smooth_calibration_error > 0.05"',
        )
    measure, field, sign, limit = match.groups()
    from ..metrics import all_metrics

    known = ["accuracy", *all_metrics()]
    if measure not in known:
        cure = meant(measure, known, "Name one of them")
        refuse(f"in --fail-if one of {', '.join(known)}", quoted(measure), cure)
    fields = ("value",) if measure == "accuracy" else _FIELDS
    if (field or "value") not in fields:
        refuse(
            f"{' or '.join(f'{measure}.{name}' for name in fields)} in --fail-if",
            quoted(f"{measure}.{field}"),
            meant(field, fields, "Without an ending it is the value"),
        )
    if limit != "if_calibrated" or measure == "accuracy":
        given = limit
        try:
            limit = float(limit)
        except ValueError:
            limit = math.nan
        if not math.isfinite(limit):
            cure = "Write one with a point, or if_calibrated for the limit of chance"
            if nearest(given, ["if_calibrated"]):
                cure = "Write if_calibrated for the limit of chance"
            cure = as_number(given) or cure
            refuse("a number at the end of --fail-if", quoted(text), cure)
    return Condition(measure, field or "value", sign, limit)


def measures_for(conditions: Sequence[Condition]) -> list[str] | None:
    """The measures of a report that can be judged; None for those of every report."""
    from ..metrics import all_metrics

    usual = [name for name, measure in all_metrics().items() if measure.spec.in_report]
    more = {c.measure for c in conditions} - {"accuracy", *usual}
    return [name for name in all_metrics() if name in {*usual, *more}] if more else None
