"""Rows of blocks into a summary and, at the same time, into a sample."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .._files.columns import Block, check_filled
from .._validation import read_proba
from ._drawn import RowDraw, rows_to_draw
from ._input import check_scores, iter_score_blocks
from ._pattern_cells import PatternTable
from ._summary import CalibrationSummary
from ._values import ColumnValues, combine_groups


class Draw(NamedTuple):
    """What is drawn beside a summary, and how its scores are to be read.

    Attributes
    ----------
    most : int or None
        Different rows, 0 for none; None for `rows_to_draw`.
    features : tuple of str
        Columns that the rows keep; they may have missing values.
    group : str or None
        Another one, without.
    kind : {"proba", "logits"}
    tolerance : float or None
        How far sums of rows may be from 1; they are divided then.
    percent : bool
        Whether probabilities go to 100.
    groups : tuple of ColumnValues
        Columns whose combinations of groups are counted by score.
    """

    most: int | None = None
    features: tuple[str, ...] = ()
    group: str | None = None
    kind: Literal["proba", "logits"] = "proba"
    tolerance: float | None = None
    percent: bool = False
    groups: tuple[ColumnValues, ...] = ()

    @property
    def extra_columns(self) -> tuple[str, ...]:
        """All that the rows keep beside scores, labels and weights."""
        return self.features if self.group is None else (*self.features, self.group)


#: A draw without rows that reads probabilities.
EMPTY_DRAW = Draw(0)


def add_block(
    summary: CalibrationSummary,
    draw: Draw,
    block: Block,
    given: Sequence[Any],
    soft: bool = False,
) -> None:
    """Add the rows of a block to a summary and to its draw, which begins with the first of them.

    After an error the summary may have some of the rows.

    Parameters
    ----------
    summary : CalibrationSummary
    draw : Draw
    block : Block
        Where the other columns are.
    given : sequence
        Labels, scores, weights and counts of the block.
    soft : bool, default=False
        Whether the labels are shares. Items are drawn then, by the class of the largest
        share, and keep the shares before their other columns.
    """
    labels, scores, weight, counts = given
    extras = block.columns[[*draw.extra_columns]] if draw.extra_columns else None
    if draw.group is not None:
        check_filled(block, draw.group, "group")
    proba = scores
    # The summary takes probabilities; the sample keeps the scores as they were given.
    if draw.kind != "proba" or draw.tolerance is not None:
        proba = np.asarray(read_proba(scores, kind=draw.kind, tolerance=draw.tolerance))
    batch: Any = summary._iter_checked_blocks(labels, proba, weight, counts, soft)
    if soft:
        for rows in batch:
            summary._add_checked_rows(*rows)
        # The sample keeps items with their shares, not the copies of each item.
        batch = ()
        if draw.most != 0:
            batch = _iter_items(labels, proba, weight, counts)
        extras = _with_shares(labels, extras)
    # Numbers in text are numbers, as if the column had been read at once.
    digest = [] if extras is None else [_digest_column(extras[name]) for name in extras]
    if draw.groups:
        pattern = combine_groups(draw.groups, block)
        patterns = summary.patterns = summary.patterns or PatternTable()
    start = 0
    for codes, proba, weight, counts in batch:
        place = slice(start, start + len(codes))
        start = place.stop
        if not soft:
            summary._add_checked_rows(codes, proba, weight, counts)
        if draw.groups:
            positive = summary._labels.positive
            patterns.add_block(pattern[place], codes, proba, weight, positive)
        if draw.most == 0:
            continue
        # The number of classes is known after the first batch.
        if summary.drawn is None:
            n_classes = summary._labels.n_classes
            most = rows_to_draw(n_classes) if draw.most is None else draw.most
            summary.drawn = RowDraw(n_classes, most)
        if proba.ndim == 1:
            true = np.where(codes == 1, proba, 1.0 - proba)
        else:
            true = proba[np.arange(len(codes)), codes]
        if draw.kind == "logits":
            proba = np.asarray(scores[place], dtype=np.float64)
        frame = None if extras is None else extras.iloc[place]
        more = [each[place] for each in digest]
        summary.drawn.add(codes, proba, true, weight, counts, frame, more)


def _iter_items(shares, proba, weight, counts):
    """Yield checked items in blocks, each with the class of its largest share."""
    scores = check_scores(proba)
    two = np.ndim(shares) == 1
    most = (shares > 0.5).astype(np.uint8) if two else np.argmax(shares, axis=1)
    for rows, block in iter_score_blocks(*scores):
        own, times = (
            None if c is None else np.asarray(c[rows]) for c in (weight, counts)
        )
        yield most[rows], block, None if own is None else own.astype(np.float64), times


def _with_shares(shares, extras):
    """Return the shares as columns before the others, as a DataFrame."""
    import pandas as pd

    table = np.asarray(shares, dtype=np.float64)
    table = table.reshape(len(table), -1)
    frame = pd.DataFrame(
        table, columns=[f"share {number}" for number in range(table.shape[1])]
    )
    return (
        frame
        if extras is None
        else pd.concat([frame, extras.reset_index(drop=True)], axis=1)
    )


def _digest_column(column):
    """Return a number for each value of a column: equal if the values are."""
    import pandas as pd

    if column.dtype.kind in "iuf" and isinstance(column.dtype, np.dtype):
        numbers = column.to_numpy(dtype=np.float64) + 0.0
        return np.where(np.isnan(numbers), np.uint64(0), numbers.view(np.uint64))
    codes, values = pd.factorize(column)
    texts = pd.Series([str(value) for value in values], dtype=object)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    found = pd.util.hash_array(texts.to_numpy())
    # The text "1.0" and the number 1.0 have the same digest: the same file may be read
    # in either way.
    found = np.where(np.isnan(numbers), found, (numbers + 0.0).view(np.uint64))
    return np.append(found, np.uint64(0))[codes]  # the last is that of a missing value
