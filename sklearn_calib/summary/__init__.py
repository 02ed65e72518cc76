"""Small summaries of predictions and labels, which can be merged and measured.

It may import `inference`, `classifiers`, `testing` and the layers below them.
Start reading with `CalibrationSummary` in `_summary.py`.
"""

from ._draw_options import DrawAndScoreOptions
from ._parts import parse_folder_values
from ._patterns import count_values, summarize_groups
from ._problems import (
    SUM_NAME_BY_LOSS,
    CellProblems as CellProblems,
    MulticlassTotals as MulticlassTotals,
    Totals as Totals,
)
from ._resampling import CellSample as CellSample, Fold as Fold, HeldOutPredictions
from ._row_reservoir import DrawnSample, RowReservoir, get_max_sample_rows
from ._sources import DROPPED_ROWS_HINT, find_distinct_labels, summarize
from ._storage import is_summary_file as is_summary_file
from ._summary import CalibrationSummary

__all__ = [
    "CalibrationSummary",
    "find_distinct_labels",
    "summarize",
]


def __dir__() -> list[str]:
    return __all__
