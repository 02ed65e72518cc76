"""Dask DataFrames and arrays: one task a partition, and summaries merged eight at a time."""

from typing import Any

import numpy as np

from ..exceptions import meant, refuse, require
from ._parts import StreamPart

_SPLIT_EVERY = 8


def tally_of_dask(data: Any, plan: Any, where: str) -> Any:
    """The tally of all partitions, computed by the scheduler that dask has at hand."""
    dask = require("dask", "dask", where)
    if isinstance(data, dict):
        pieces = _pieces_of_arrays(data, plan.needed, where)
    else:
        missing = [name for name in plan.needed if name not in data.columns]
        if missing:
            got = f"{[*data.columns][:30]}"
            refuse(where, f"the column {missing[0]!r}", got, meant(missing[0], data.columns))
        pieces = data[plan.needed].to_delayed()
    part, merged = dask.delayed(_tally_of_piece), dask.delayed(_merged)
    tallies = [part(piece, f"partition {i}", plan) for i, piece in enumerate(pieces)]
    while len(tallies) > 1:
        starts = range(0, len(tallies), _SPLIT_EVERY)
        tallies = [merged(tallies[start : start + _SPLIT_EVERY], plan) for start in starts]
    return tallies[0].compute()


def _pieces_of_arrays(data, needed, where):
    """Dicts of the blocks of arrays that lie side by side."""
    arrays = {name: data[name] for name in needed if name in data}
    if len(arrays) < len(needed):
        got, cure = f"{[*data][:30]}", "Name the arrays as label= and prob= do"
        refuse(where, f"arrays {needed}", got, cure)
    first = next(array for array in arrays.values() if hasattr(array, "dask"))
    columns = []
    for name, array in arrays.items():
        if not hasattr(array, "dask"):
            got, cure = f"a {type(array).__name__}", "Turn it into one with dask.array.from_array"
            refuse(where, f"{name!r} as a dask array like the others", got, cure)
        if array.ndim == 2:
            array = array.rechunk({1: -1})
        if array.numblocks[0] != first.numblocks[0] or not np.array_equal(
            array.chunks[0], first.chunks[0], equal_nan=True
        ):
            array = array.rechunk({0: first.chunks[0]})
        columns.append(array.to_delayed().ravel().tolist())
    return [dict(zip(arrays, blocks, strict=True)) for blocks in zip(*columns, strict=True)]


def _tally_of_piece(piece, name, plan):
    return plan.empty().add_part(StreamPart(piece, name))


def _merged(tallies, plan):
    """A new tally: a task may be run again on the same inputs, so these stay as they are."""
    total = plan.empty()
    for tally in tallies:
        total.merge(tally)
    return total
