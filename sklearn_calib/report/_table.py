"""The rows of a report: measures of one model, resampled."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._random import generator
from .._show import plain
from .._typing import Progress, RandomStateLike
from ..exceptions import refuse
from ..inference import bootstrap_distribution, null_distribution
from ..metrics import all_metrics

if TYPE_CHECKING:
    from ..metrics import Case, Measure


@dataclass(frozen=True)
class ReportRow:
    """One measure of one model.

    Attributes
    ----------
    model, measure : str
    value : float
    low, high : float
        Percentile bootstrap interval.
    if_calibrated : float
        The value that calibrated predictions would exceed with probability 1 - level by chance
        alone, or fall short of where greater is better.
    """

    model: str
    measure: str
    value: float
    low: float
    high: float
    if_calibrated: float


def affordable_resamples(n: int) -> int:
    """Resamples for n rows: 200 up to 100,000 rows, at least 20."""
    return int(np.clip(2e7 / n, 20, 200))


def report_measures(names: Iterable[str] | None, where: str) -> "list[Measure]":
    """The measures of these names; by default those that are meant for reports."""
    registered = all_metrics()
    if names is None:
        return [f for f in registered.values() if f.spec.in_report]
    for measure in names:
        if measure not in registered:
            refuse(where, f"measures among {', '.join(registered)}", repr(measure), "Check it")
    return [registered[measure] for measure in names]


def report_rows(
    cases: "Mapping[str, Case]",
    functions: "list[Measure]",
    level: float,
    n_resamples: int,
    random_state: RandomStateLike,
    progress: Progress | None = None,
) -> list[ReportRow]:
    """The rows of all models, each with the same draws.

    Parameters
    ----------
    cases : dict of str to Case
    functions : list of Measure
    level : float in (0, 1)
    n_resamples : int
    random_state : int, Generator, RandomState or None
    progress : callable, default=None
        Called as ``progress(done, total)``.
    """

    def evaluate(case):
        return [function.of_case(case) for function in functions]

    seeds = generator(random_state).integers(0, 2**63, size=2)
    rows = []
    for number, (name, case) in enumerate(cases.items()):
        resampled, null = (
            distribution(
                case,
                evaluate,
                n_resamples,
                seed,
                progress=_part_of(progress, 2 * number + half, 2 * len(cases), n_resamples),
            )
            for half, (distribution, seed) in enumerate(
                zip((bootstrap_distribution, null_distribution), seeds, strict=True)
            )
        )
        rows += _rows(name, functions, evaluate(case), resampled, null, level)
    return rows


def _part_of(progress, part, parts, size):
    """The progress of one part of several equal ones."""
    if progress is None:
        return None
    return lambda done, _: progress(part * size + done, parts * size)


def _rows(model, functions, values, resampled, null, level):
    rows = []
    for number, (function, value) in enumerate(zip(functions, values, strict=True)):
        low = high = limit = np.nan
        if len(resampled):
            low, high = np.quantile(resampled[:, number], [(1 - level) / 2, (1 + level) / 2])
            tail = 1 - level if function.spec.greater_is_better else level
            limit = np.quantile(null[:, number], tail)
        rows.append(
            ReportRow(model, function.spec.name, value, float(low), float(high), float(limit))
        )
    return rows


def cells(row: ReportRow) -> tuple[str, ...]:
    """A row as texts: model, measure, value, interval, the value if calibrated."""
    interval = f"{row.low:.4f} to {row.high:.4f}"
    return plain(row.model), row.measure, f"{row.value:.4f}", interval, f"{row.if_calibrated:.4f}"
