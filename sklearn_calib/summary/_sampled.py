"""Rows of blocks into a summary and, at the same time, into a sample."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .._typing import AnyArray
from ..canonical import canonical_proba
from ._columns import digests, whole_frame
from ._drawn import RowDraw, rows_to_draw
from ._parts import Block
from ._summary import CalibrationSummary


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
    """

    most: int | None = None
    features: tuple[str, ...] = ()
    group: str | None = None
    kind: Literal["proba", "logits"] = "proba"
    tolerance: float | None = None
    percent: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """All that the rows keep beside scores, labels and weights."""
        return self.features if self.group is None else (*self.features, self.group)


def draw_batch(summary: CalibrationSummary, draw: Draw, block: Block, given: Sequence[Any]) -> None:
    """Add the rows of a block to a summary and to its draw, which begins with the first of them.

    Parameters
    ----------
    summary : CalibrationSummary
    draw : Draw
    block : Block
        Where the other columns are.
    given : sequence
        Labels, scores, weights and counts of the block.
    """
    labels, scores, *rest = given
    extras = whole_frame(block, draw.columns, draw.group) if draw.columns else None
    digest = [] if extras is None else digests(extras)
    start = 0
    batch = summary._batch(labels, probabilities(draw, scores), *rest)
    for codes, proba, weight, counts in batch:
        place = slice(start, start + len(codes))
        start = place.stop
        summary._add(codes, proba, weight, counts)
        if draw.most == 0:
            continue
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


def probabilities(draw: Draw | None, scores: AnyArray) -> AnyArray:
    """Scores as they are given, in the form that a summary takes."""
    if draw is None or (draw.kind == "proba" and draw.tolerance is None):
        return scores
    where = "CalibrationSummary.update"
    given = canonical_proba(scores, kind=draw.kind, tolerance=draw.tolerance, _where=where)
    return np.asarray(given)
