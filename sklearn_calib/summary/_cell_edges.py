"""Count the rows of cells that an edge, such as that of a grade, may cut."""

import numpy as np

from .._kernels._cells import (
    ID,
    N0,
    N1,
    OFFSET,
    STEP_BITS,
    count_dropped_bits,
    decode_cells,
    find_last_keys,
    get_label_sums,
    get_values,
    round_to_steps,
    view_as_float,
)
from .._typing import AnyArray
from ._state import CellState


def count_rows_across(state: CellState, edges: AnyArray) -> int:
    """Return how many rows are in cells with scores below an edge and from it on."""
    table = state.table
    first, last = _find_end_keys(table, state.shift)
    is_high_side = table[:, ID] < 0
    near = np.where(is_high_side, 1.0 - get_values(first), get_values(first))
    far = np.where(is_high_side, 1.0 - get_values(last), get_values(last))
    edges = np.sort(edges)
    first_edge = np.searchsorted(edges, np.minimum(near, far), "right")
    last_edge = np.searchsorted(edges, np.maximum(near, far), "right")
    rows = table[:, N0] + table[:, N1]
    # the rows of such a cell have one score, known or not
    is_whole = (rows == 1) | (first == last)
    return int(rows[(first_edge < last_edge) & ~is_whole].sum())


def _find_end_keys(table, shift):
    """Return the first and the last key that rows of each cell may have."""
    start, high_side = decode_cells(table[:, ID])
    last = find_last_keys(start, high_side, count_dropped_bits(table[:, ID], np.int64(shift)))
    offset = view_as_float(table)[:, OFFSET]
    weight = get_label_sums(table)[0].sum(axis=1)
    # such a cell is as wide as a step: scores are kept in steps of 36 bits
    is_one_step = (table[:, N0] + table[:, N1] == 1) | (offset == 0)
    middle = (round_to_steps(start) + np.rint(offset / weight).astype(np.int64)) << STEP_BITS
    half = 1 << (STEP_BITS - 1)
    first = np.where(is_one_step, np.maximum(start, middle - half), start)
    last = np.where(is_one_step, np.minimum(last, middle + half - 1), last)
    # nobody's scores are 1e-319
    return first, np.where((start == 0) & (offset == 0), 0, last)
