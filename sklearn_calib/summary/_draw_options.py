"""Rows of blocks into a summary and, at the same time, into a sample."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .._files.columns import TableBlock, check_filled
from .._validation import read_proba
from ._input import check_scores_and_get_proba_converter, iter_score_blocks
from ._pattern_cells import ScoreGroupTable
from ._row_reservoir import RowReservoir, get_max_sample_rows
from ._summary import CalibrationSummary
from ._values import ColumnValues, combine_groups


class DrawAndScoreOptions(NamedTuple):
    """What is drawn beside a summary, and how its scores are to be read.

    Attributes
    ----------
    max_rows : int or None
        Different rows, 0 for none; None for `get_max_sample_rows`.
    features : tuple of str
        Columns that the rows keep; they may have missing values.
    group_column : str or None
        Another one, without.
    score_kind : {"proba", "logits"}
    tolerance : float or None
        How far sums of rows may be from 1; they are divided then.
    percent : bool
        Whether probabilities go to 100.
    grouped_columns : tuple of ColumnValues
        Columns whose combinations of groups are counted by score.
    """

    max_rows: int | None = None
    features: tuple[str, ...] = ()
    group_column: str | None = None
    score_kind: Literal["proba", "logits"] = "proba"
    tolerance: float | None = None
    percent: bool = False
    grouped_columns: tuple[ColumnValues, ...] = ()

    @property
    def extra_columns(self) -> tuple[str, ...]:
        """All that the rows keep beside scores, labels and weights."""
        return (
            self.features
            if self.group_column is None
            else (*self.features, self.group_column)
        )


#: A draw without rows that reads probabilities.
EMPTY_DRAW = DrawAndScoreOptions(0)


def add_block_to_summary_and_draw(
    summary: CalibrationSummary,
    draw: DrawAndScoreOptions,
    block: TableBlock,
    checked_arrays: Sequence[Any],
    soft: bool = False,
) -> None:
    """Add the rows of a block to a summary and to its draw, which begins with the first of them.

    After an error the summary may have some of the rows.

    Parameters
    ----------
    summary : CalibrationSummary
    draw : DrawAndScoreOptions
    block : TableBlock
        Where the other columns are.
    checked_arrays : sequence
        Labels, scores, weights and counts of the block.
    soft : bool, default=False
        Whether the labels are shares. Items are drawn then, by the class of the largest
        share, and keep the shares before their other columns.
    """
    labels, scores, weight, counts = checked_arrays
    extras = block.columns[[*draw.extra_columns]] if draw.extra_columns else None
    if draw.group_column is not None:
        check_filled(block, draw.group_column, "group")
    proba = scores
    # The summary takes probabilities; the sample keeps the scores as they were given.
    if draw.score_kind != "proba" or draw.tolerance is not None:
        proba = np.asarray(
            read_proba(scores, kind=draw.score_kind, tolerance=draw.tolerance)
        )
    batch = summary._iter_checked_blocks_learning_classes(
        labels, proba, weight, counts, soft
    )
    if soft:
        for rows in batch:
            summary._add_checked_rows(*rows)
        # The sample keeps items with their shares, not the copies of each item.
        batch = ()
        if draw.max_rows != 0:
            batch = _iter_largest_share_blocks(labels, proba, weight, counts)
        extras = _join_share_and_extra_columns(labels, extras)
    # Numbers in text are numbers, as if the column had been read at once.
    digest = [] if extras is None else [_hash_column(extras[name]) for name in extras]
    if draw.grouped_columns:
        pattern = combine_groups(draw.grouped_columns, block)
        patterns = summary.patterns = summary.patterns or ScoreGroupTable()
    start = 0
    for codes, proba, weight, counts in batch:
        place = slice(start, start + len(codes))
        start = place.stop
        if not soft:
            summary._add_checked_rows(codes, proba, weight, counts)
        if draw.grouped_columns:
            positive = summary._labels.positive
            patterns.add_block(pattern[place], codes, proba, weight, positive)
        if draw.max_rows == 0:
            continue
        # The number of classes is known after the first batch.
        if summary.drawn is None:
            n_classes = summary._labels.n_classes
            max_rows = (
                get_max_sample_rows(n_classes)
                if draw.max_rows is None
                else draw.max_rows
            )
            summary.drawn = RowReservoir(n_classes, max_rows)
        if proba.ndim == 1:
            true = np.where(codes == 1, proba, 1.0 - proba)
        else:
            true = proba[np.arange(len(codes)), codes]
        if draw.score_kind == "logits":
            proba = np.asarray(scores[place], dtype=float)
        frame = None if extras is None else extras.iloc[place]
        more = [column_digest[place] for column_digest in digest]
        summary.drawn.add(codes, proba, true, weight, counts, frame, more)


def _iter_largest_share_blocks(shares, proba, weight, counts):
    """Yield checked items in blocks, each with the class of its largest share."""
    scores = check_scores_and_get_proba_converter(proba)
    two = np.ndim(shares) == 1
    largest_class = (
        (shares > 0.5).astype(np.uint8) if two else np.argmax(shares, axis=1)
    )
    for rows, block in iter_score_blocks(*scores):
        block_weight, block_counts = (
            None if values is None else np.asarray(values[rows])
            for values in (weight, counts)
        )
        yield (
            largest_class[rows],
            block,
            None if block_weight is None else block_weight.astype(float),
            block_counts,
        )


def _join_share_and_extra_columns(shares, extras):
    """Return the shares as columns before the others, as a DataFrame."""
    import pandas as pd

    table = np.asarray(shares, dtype=float)
    table = table.reshape(len(table), -1)
    frame = pd.DataFrame(
        table, columns=[f"share {number}" for number in range(table.shape[1])]
    )
    if extras is None:
        return frame
    return pd.concat([frame, extras.reset_index(drop=True)], axis=1)


def _hash_column(column):
    """Return a number for each value of a column: equal if the values are."""
    import pandas as pd

    if column.dtype.kind in "iuf" and isinstance(column.dtype, np.dtype):
        numbers = column.to_numpy(dtype=float) + 0.0
        return np.where(np.isnan(numbers), np.uint64(0), numbers.view(np.uint64))
    codes, values = pd.factorize(column)
    texts = pd.Series([str(value) for value in values], dtype=object)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float)
    hashes = pd.util.hash_array(texts.to_numpy())
    # The text "1.0" and the number 1.0 have the same digest: the same file may be read
    # in either way.
    hashes = np.where(np.isnan(numbers), hashes, (numbers + 0.0).view(np.uint64))
    return np.append(hashes, np.uint64(0))[codes]  # the last is that of a missing value
