"""Classical tests of the rows of a summary."""

from collections.abc import Callable
from functools import partial
from typing import Any

from .._kernels import _classical_tests as tests
from .._kernels._cells import N0, N1, TOTALS, WIDE, label_sums, mean_scores
from .._typing import AnyArray
from ..exceptions import check_count, check_known, refuse
from ._state import CellState

_Result = tuple[float, float]


def _spiegelhalter(table: AnyArray, totals: dict[str, float], where: str) -> _Result:
    excess = totals["brier"] - totals["variance"]
    variance = totals["spiegelhalter_variance"]
    return tests.spiegelhalter(excess, variance, totals["certain_and_wrong"])


def _hosmer_lemeshow(
    table: AnyArray, totals: dict[str, float], where: str, n_bins: int = 10
) -> _Result:
    n_bins = check_count(n_bins, "n_bins", where)
    rows, events = _unweighted(table, where)
    return tests.hosmer_lemeshow(mean_scores(table)[:, 1], rows, events, n_bins, 0)


def _cox(table: AnyArray, totals: dict[str, float], where: str) -> _Result:
    rest, score = mean_scores(table).T
    return tests.cox(score, rest, *_unweighted(table, where))


def _cumulative(
    table: AnyArray, totals: dict[str, float], where: str, *, statistic: str
) -> _Result:
    score, weight = mean_scores(table)[:, 1], label_sums(table)[0]
    residual = weight[:, 1] - weight.sum(axis=1) * score
    return tests.cumulative(score, residual, totals["squared_variance"], statistic)


def _unweighted(table, where):
    """The numbers of rows and of events in each cell."""
    if table.shape[1] == WIDE:
        cure = "Test 'spiegelhalter', 'kuiper' or a measure"
        refuse(where, "rows without sample_weight for this test", "weighted ones", cure)
    return table[:, N0] + table[:, N1], table[:, N1]


#: The classical tests by name: functions of the cells, their totals and the opening of errors.
CLASSICAL: dict[str, Callable[..., _Result]] = {
    "spiegelhalter": _spiegelhalter,
    "hosmer_lemeshow": _hosmer_lemeshow,
    "cox": _cox,
    **{statistic: partial(_cumulative, statistic=statistic) for statistic in tests.LAWS},
}


def classical(name: str, state: CellState, options: dict[str, Any], where: str) -> _Result:
    """(statistic, p-value) of a classical test of a problem."""
    known = ("n_bins",) if name == "hosmer_lemeshow" else ()
    for option in options:
        check_known(where, f"options of {name!r}", option, known)
    totals = dict(zip(TOTALS, state.totals.tolist(), strict=True))
    return CLASSICAL[name](state.table, totals, where, **options)
