"""The cells of a summary, by sorting its rows: what the kernels must give."""

import numpy as np

from sklearn_calib._kernels._cells import (
    ALLOWED_BIT_SHIFTS,
    COUNT_COLUMN_0,
    COUNT_COLUMN_1,
    IDENTITY_COLUMN,
    N_UNWEIGHTED_COLUMNS,
    N_WEIGHTED_COLUMNS,
    OFFSET_COLUMN,
    WEIGHT_COLUMN_0,
    WEIGHT_COLUMN_1,
    compute_ordered_cell_ids,
    encode_float_keys,
    find_cell_start_keys,
    round_keys_to_36_bit_steps,
    split_distance_and_side,
    view_as_float,
)


def sums_of_rows(ids, distance, y, weight, count):
    """A table of the rows' sums in the order of the probabilities; the reference of the kernels."""
    order = np.argsort(ids.view(np.uint64), kind="stable")
    first = np.flatnonzero(
        np.append(len(ids) > 0, np.diff(ids[order].view(np.uint64)) != 0)
    )
    table = np.zeros(
        (len(first), N_UNWEIGHTED_COLUMNS if weight is None else N_WEIGHTED_COLUMNS),
        dtype=np.int64,
    )
    table[:, IDENTITY_COLUMN] = ids[order][first]
    w = np.ones(len(ids)) if weight is None else weight
    zeros, ones = (1 - y), y
    table[:, COUNT_COLUMN_0] = np.add.reduceat((zeros * count)[order], first)
    table[:, COUNT_COLUMN_1] = np.add.reduceat((ones * count)[order], first)
    numbers = view_as_float(table)
    numbers[:, OFFSET_COLUMN] = np.add.reduceat((count * w * distance)[order], first)
    if weight is not None:
        for column, label in ((WEIGHT_COLUMN_0, zeros), (WEIGHT_COLUMN_1, ones)):
            numbers[:, column] = np.add.reduceat((label * count * w)[order], first)
            numbers[:, column + 2] = np.add.reduceat(
                (label * count * w * w)[order], first
            )
    return table


def by_sorting(p, y, max_cells, weight=None, count=None):
    """(table, shift) of rows, by sorting them: what the kernels must give.

    The shift is the smallest at which the rows fill at most `max_cells` cells.
    """
    p, y = np.asarray(p, dtype=np.float64), np.asarray(y).astype(np.int64)
    count = np.ones(len(p), dtype=np.int64) if count is None else np.asarray(count)
    kept = count > 0 if weight is None else (count > 0) & (np.asarray(weight) > 0)
    p, y, count = p[kept], y[kept], count[kept]
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)[kept]
    t, high = split_distance_and_side(p)
    keys = encode_float_keys(t)
    for shift in ALLOWED_BIT_SHIFTS:
        cells = find_cell_start_keys(keys, high, shift)
        ids = compute_ordered_cell_ids(cells, high)
        if len(np.unique(ids)) <= max_cells:
            break
    distance = round_keys_to_36_bit_steps(keys) - round_keys_to_36_bit_steps(cells)
    return sums_of_rows(ids, distance, y, weight, count), shift
