"""Rows that come in blocks: read, checked and summed, with one block in memory at a time."""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, Literal

import numpy as np
from scipy.special import softmax

from .._kernels._probability_floor import (
    ProbabilityFloorStatistics,
    clip_to_floor,
    collect_floor_statistics,
)
from .._simplex_array import (
    SMALLEST_PROBABILITY,
    has_exact_log,
    iter_row_blocks,
    log_proba,
)
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray
from .._validation import (
    DeviceScores,
    canonical_weight,
    check_and_get_common_index,
    check_same_length,
    find_columns_if_names_match,
    has_unsorted_classes,
    raise_if_single_column_class_unclear,
    read_array,
    read_device_scores,
    read_labels,
    read_logits_by_class,
    read_numeric_array,
    read_proba,
    warn_column_order,
)
from ..exceptions import add_error_context, invalid_input

BlockScoreKind = Literal["proba", "logits"]
# Logits up to a constant per row, the codes of the labels, and weights.
SampleRows = tuple[AnyArray, IntArray, FloatArray]

# The sample consists of pieces of so many consecutive rows, from so many places if
# there are enough.
_SAMPLE_PIECE_ROWS = 1000
_N_SAMPLE_PIECES = 20
# The least number of rows of the sample. With few classes there are up to ten times as
# many, but no more entries than this.
_MIN_SAMPLE_ROWS = 20_000
_MAX_SAMPLE_ENTRIES = 4_000_000
# Of more than 20,000 rows at most one in so many is sampled.
_SAMPLING_INTERVAL = 20
# With more classes than this the sample has no more entries than the second number, in
# shorter pieces.
_MAX_FULL_SAMPLE_CLASSES = 2000
_MAX_SAMPLE_ENTRIES_MANY_CLASSES = 5_000_000
# If blocks are loaded by functions, at most one in so many is loaded for the sample.
_LOADED_BLOCK_INTERVAL = 10
# An array is checked and summed in slices of so many entries, which are still in the
# cache when they are summed.
_SLICE_ENTRIES = 1 << 18


class ScoreBlock:
    """One block of rows; its scores are read slice by slice, the rest as a whole.

    The scores may be too many to be checked at once, so a block is not `Predictions`.

    Parameters
    ----------
    number : int
        Its place among the blocks, for messages.
    item : tuple or callable
        Scores, labels and perhaps weights, or a function that returns them.
    kind, classes
        As in `ScoreBlocks`.
    """

    def __init__(
        self, number: int, item: Any, kind: BlockScoreKind, classes: AnyArray | None
    ) -> None:
        self.source = f"block {number}"
        self.kind = kind
        self._known_classes = classes
        with add_error_context(source=self.source):
            self._set_scores_and_labels_from_item(item)

    def _set_scores_and_labels_from_item(self, item):
        """Load the block, and check shapes, columns and indexes."""
        kind = self.kind
        classes = self._known_classes
        item = item() if callable(item) else item
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            size = f" of length {len(item)}" if isinstance(item, tuple | list) else ""
            raise invalid_input(
                expected="a tuple of scores and labels, or of scores, labels and weights",
                got=type(item).__name__ + size,
                hint="Pass a list of such tuples, or of functions that return one",
                error=TypeError,
            )
        self.scores, self.y, self.sample_weight = (*item, None)[:3]
        held = read_device_scores(self.scores, kind, read_proba)
        # The check of device scores contains the tolerance.
        self._check = read_proba if held is None else held.check
        if held is not None:
            if held.kind != kind:
                raise invalid_input(
                    expected=f"scores of the kind {kind!r}",
                    got=repr(held.kind),
                    hint="Pass the tensor itself, and say by kind= what it holds",
                )
            self.scores = held
        shape = getattr(self.scores, "shape", None)
        # Such a table is not an array whose slices are rows.
        if shape is None or hasattr(self.scores, "iloc"):
            self.scores = read_numeric_array(self.scores, "scores")
            shape = self.scores.shape
        if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] == 0):
            raise invalid_input(
                expected=(
                    "scores of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)"
                ),
                got=f"shape {tuple(shape)}",
                hint="Reshape them",
            )
        self.n_rows = int(shape[0])
        self.has_single_column = len(shape) == 1 or shape[1] == 1
        columns = 2 if self.has_single_column else int(shape[1])
        if classes is not None and self.n_rows and len(classes) != columns:
            raise invalid_input(
                expected=f"{len(classes)} columns of scores, one per class",
                got=f"{columns}",
                hint="Pass the columns in the order of classes",
            )
        self.is_unnamed = classes is None
        self.classes = np.arange(columns) if classes is None else classes
        check_and_get_common_index(self.y, item[0], self.sample_weight)
        places = find_columns_if_names_match(item[0], self.classes)
        if places is not None:
            self.scores = read_numeric_array(self.scores, "scores")[:, places]

    @cached_property
    def codes(self) -> IntArray:
        with add_error_context(source=self.source):
            labels = np.atleast_1d(read_array(self.y, "labels"))
            check_same_length(labels, range(self.n_rows))
            if not self.n_rows:
                return np.zeros(0, dtype=np.intp)
            if self.is_unnamed and labels.dtype.kind not in "biuf":
                distinct = read_labels(labels)[0]
                raise_if_single_column_class_unclear(self.scores, distinct, "classes")
            return read_labels(labels, classes=self.classes, input_name="labels")[1]

    @cached_property
    def weight(self) -> FloatArray:
        with add_error_context(source=self.source):
            weight = self.sample_weight
            if weight is not None and not read_array(weight, "sample_weight").any():
                # Other blocks may have positive weights.
                return np.zeros(self.n_rows)
            return canonical_weight(weight, self.n_rows, keeps_unit=True)

    def select_rows_and_smallest_proba(
        self, row_slice: slice, floor: float
    ) -> tuple[SampleRows, ProbabilityFloorStatistics, float]:
        """Return the rows with positive weight, and two statistics of all rows."""
        with add_error_context(source=self.source):
            scores = self.scores[row_slice]
            codes = self.codes[row_slice]
            weight = self.weight[row_slice]
            kept = weight > 0
            smallest = np.inf
            if self.kind == "logits":
                # Logits are not turned into probabilities, whose logarithms would have
                # lost the far classes.
                z = read_logits_by_class(
                    scores, input_name="scores", first=row_slice.start
                )
                z = z if kept.all() else z[kept]
                floor_statistics = collect_floor_statistics(
                    _find_smallest_proba_in_widest_row(z) if len(z) else np.zeros(0),
                    shares=False,
                )
            else:
                proba = self._check(scores, input_name="scores", first=row_slice.start)
                proba = proba if kept.all() else proba[kept]
                floor_statistics = collect_floor_statistics(proba)
                smallest = (
                    np.inf
                    if has_exact_log(proba)
                    else float(np.min(proba, initial=np.inf))
                )
                z = log_proba(clip_to_floor(proba, floor))
            return (z, codes[kept], weight[kept]), floor_statistics, smallest


def _find_smallest_proba_in_widest_row(z):
    """Return the smallest probability in the row with the widest range of logits."""
    # The smallest probability is in a row of wide range; computing the softmax of all
    # rows for it would double the work.
    width = z.max(axis=1) - z.min(axis=1)
    row = z[width.argmax()].astype(np.float64)
    return np.exp(row.min() - row.max()) / np.exp(row - row.max()).sum()


@dataclass(frozen=True)
class RowSumAndFloorStatistics:
    """What one reading of some rows gives."""

    # The sum of a function of the rows; None if no row had a positive weight.
    value: Any
    # These statistics decide the floor.
    floor_statistics: ProbabilityFloorStatistics
    # The smallest probability that has no exact logarithm.
    smallest_inexact_proba: float
    n_classes: int
    # Whether the scores are a single column, of the second class.
    has_single_column: bool

    def __add__(self, other: "RowSumAndFloorStatistics") -> "RowSumAndFloorStatistics":
        """Add the reading of other rows of the same width."""
        if self.n_classes != other.n_classes:
            raise invalid_input(
                expected=f"{self.n_classes} columns of scores as in the blocks before",
                got=f"{other.n_classes}",
                hint="Pass one column per class in every block",
            )
        values = [value for value in (self.value, other.value) if value is not None]
        return RowSumAndFloorStatistics(
            reduce(operator.add, values) if values else None,
            self.floor_statistics + other.floor_statistics,
            min(self.smallest_inexact_proba, other.smallest_inexact_proba),
            self.n_classes,
            self.has_single_column,
        )


def _compute_block_sum_and_statistics(numbered_block, function, floor, kind, classes):
    """Compute the `RowSumAndFloorStatistics` of one block, or None without rows."""
    block = ScoreBlock(*numbered_block, kind, classes)
    if len(block.codes) == 0:
        return None
    table = block.scores
    # Slices of device scores come to the host one by one.
    if not isinstance(table, DeviceScores):
        if not isinstance(table, np.ndarray):
            # Load the table once.
            table = block.scores = read_numeric_array(table, "scores")
        table = table.reshape(block.n_rows, -1)
    slice_results = []
    for row_slice in iter_row_blocks(table, _SLICE_ENTRIES):
        rows, *rest = block.select_rows_and_smallest_proba(row_slice, floor)
        value = function(*rows) if len(rows[0]) else None
        slice_results.append(
            RowSumAndFloorStatistics(
                value, *rest, len(block.classes), block.has_single_column
            )
        )
    return reduce(operator.add, slice_results)


class ScoreBlocks:
    """Blocks of rows that can be read again and again.

    Parameters
    ----------
    blocks, kind, classes, map
        As in ``TemperatureScaling.fit_blocks``.

    Attributes
    ----------
    n_passes : int
        How often all blocks were read.
    floor : float
        As ``floor_`` of the recalibrators; known when the blocks were read.
    n_classes : int
    has_single_column : bool
        Whether scores are a single column, of the second class.
    """

    n_classes: int
    has_single_column: bool

    def __init__(
        self,
        blocks: Iterable[Any],
        kind: BlockScoreKind,
        classes: ArrayLike | None,
        map: Callable[..., Iterable[Any]],
    ) -> None:
        if kind not in ("proba", "logits"):
            raise invalid_input(
                "kind",
                expected="kind 'proba' or 'logits'",
                got=repr(kind),
                hint="Say which of the two the scores are",
            )
        if isinstance(blocks, np.ndarray | str) or not isinstance(blocks, Iterable):
            raise invalid_input(
                expected="a list of blocks",
                got=type(blocks).__name__,
                hint="Pass a list of tuples (scores, labels)",
                error=TypeError,
            )
        if isinstance(blocks, Iterator):
            raise invalid_input(
                "blocks",
                expected="blocks that can be read more than once",
                got=f"a {type(blocks).__name__}, which is empty after the first time",
                hint=(
                    "Pass a list of functions that load one block each, or collect 50,000 "
                    "rows and call fit: the expected log loss is then 1e-5 nats above that "
                    "of all rows"
                ),
                error=TypeError,
            )
        if classes is not None:
            classes = read_labels(classes, classes=classes, input_name="classes")[0]
        self.blocks = blocks
        self.map = map
        self.kind = kind
        self.classes = classes
        self.n_passes = 0
        self.floor = SMALLEST_PROBABILITY
        self._sample: Any = None

    def sum_over_slices(self, function: Callable[..., Any]) -> Any:
        """Sum ``function(z, codes, weight)`` over slices of all rows, in one pass.

        The first time perhaps two: if there are exact zeros, all rows decide what
        they count as.
        """
        options = {"kind": self.kind, "classes": self.classes}
        call = partial(
            _compute_block_sum_and_statistics,
            function=function,
            floor=self.floor,
            **options,
        )
        block_results = (
            block_result
            for block_result in self.map(call, enumerate(self.blocks))
            if block_result is not None
        )
        self.n_passes += 1
        total = next(block_results, None)
        if total is None:
            raise invalid_input(
                expected="at least one row",
                got="no blocks with rows",
                hint="Check what makes them",
            )
        total = reduce(operator.add, block_results, total)
        if total.value is None:
            raise invalid_input(
                expected="at least one sample_weight above 0",
                got="all-zero weights",
                hint="Pass no weights for equal weights",
            )
        self.n_classes = total.n_classes
        self.has_single_column = total.has_single_column
        used_floor = self.floor
        self.floor = total.floor_statistics.floor
        # The floor depends on all rows. If it has changed and matters for some row, the
        # pass is repeated with the final floor.
        if used_floor != self.floor and total.smallest_inexact_proba < max(
            used_floor, self.floor
        ):
            return self.sum_over_slices(function)
        return total.value

    def sample_pieces(self) -> SampleRows:
        """Return a sample: pieces of 1000 adjacent rows from fixed random positions.

        20,000 rows; of few classes up to 200,000, if that is no more than one in 20. Of
        blocks that are loaded by functions, at most one in ten is loaded for it; of
        blocks that can only be read in order, the first ones are taken.
        """
        if self._sample is None:
            self._sample = self._join_sample_parts(self._collect_sample_parts())
        return self._sample

    def warn_column_order(self) -> None:
        """Warn if the sample must have its columns in another order than that of the classes."""
        if has_unsorted_classes(self.classes):
            z, codes, _ = self.sample_pieces()
            warn_column_order(softmax(z, axis=1), codes, self.classes, "classes")

    def _join_sample_parts(self, parts):
        # There are no rows, or tables of different widths; the sum raises an error that
        # names the block.
        if len({z.shape[1] for z, *_ in parts}) != 1:
            self.sum_over_slices(lambda *_: 0)
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    def _collect_sample_parts(self):
        """Return the rows of the sample, in one or several parts."""
        blocks = self.blocks
        rng = np.random.default_rng(0)
        if not isinstance(blocks, list | tuple):
            return self._sample_parts_from_first_blocks(rng)
        if any(map(callable, blocks)):
            return self._sample_parts_from_some_loaded_blocks(rng)
        all_blocks = [
            self._make_block(number, item) for number, item in enumerate(blocks)
        ]
        wanted_rows = sum(block.n_rows for block in all_blocks) // _SAMPLING_INTERVAL
        n_sampled = min(
            _compute_max_sample_rows(all_blocks), max(_MIN_SAMPLE_ROWS, wanted_rows)
        )
        return self._copy_row_sample_part_if_any(all_blocks, n_sampled, rng)

    def _sample_parts_from_first_blocks(self, rng):
        """Sample the first blocks, because these can only be read in order."""
        first_blocks = []
        for number, item in enumerate(self.blocks):
            first_blocks.append(self._make_block(number, item))
            if sum(block.n_rows for block in first_blocks) >= _MIN_SAMPLE_ROWS:
                break
        n_sampled = min(_MIN_SAMPLE_ROWS, _compute_max_sample_rows(first_blocks))
        return self._copy_row_sample_part_if_any(first_blocks, n_sampled, rng)

    def _sample_parts_from_some_loaded_blocks(self, rng):
        """Sample the blocks of some functions, because loading a block may be slow."""
        blocks = self.blocks
        n_chosen = max(1, len(blocks) // _LOADED_BLOCK_INTERVAL)
        parts = []
        for number in rng.permutation(len(blocks))[:n_chosen]:
            block = [self._make_block(number, blocks[number])]
            max_rows = _compute_max_sample_rows(block)
            # A part of the sample from each block, but not from more than `_N_SAMPLE_PIECES`.
            parts += self._copy_row_sample_part_if_any(
                block, max_rows // min(n_chosen, _N_SAMPLE_PIECES), rng
            )
            if sum(len(z) for z, *_ in parts) >= min(_MIN_SAMPLE_ROWS, max_rows):
                break
        return parts

    def _copy_row_sample_part_if_any(self, blocks, n_sampled, rng):
        """Copy about `n_sampled` rows of these blocks, so that the blocks are not kept."""
        # Pieces of adjacent rows are read fast from memory-mapped files; several places
        # protect against files that are sorted.
        piece_rows = min(
            _SAMPLE_PIECE_ROWS,
            max(1, _compute_max_sample_rows(blocks) // _N_SAMPLE_PIECES),
        )
        slices = []
        for block in blocks:
            for start in range(0, block.n_rows, piece_rows):
                end = min(start + piece_rows, block.n_rows)
                slices.append((block, slice(start, end)))
        n_rows = sum(block.n_rows for block in blocks)
        order = rng.permutation(len(slices))[
            : -(-n_sampled * len(slices) // max(1, n_rows))
        ]
        chosen = [slices[index] for index in order]
        parts = [
            block.select_rows_and_smallest_proba(row_slice, self.floor)
            for block, row_slice in chosen
        ]
        # If the floor matters for a row of the sample, the pieces are read again with
        # the floor of the sample.
        if parts and min(part[2] for part in parts) < self.floor:
            self.floor = reduce(operator.add, (part[1] for part in parts)).floor
            parts = [
                block.select_rows_and_smallest_proba(row_slice, self.floor)
                for block, row_slice in chosen
            ]
        # Pieces without a row of positive weight are empty.
        rows = [part[0] for part in parts if len(part[0][0])]
        return [self._join_sample_parts(rows)] if rows else []

    def _make_block(self, number, item):
        return ScoreBlock(number, item, self.kind, self.classes)


def _compute_max_sample_rows(blocks):
    n_classes = max((len(block.classes) for block in blocks), default=2)
    max_rows = int(
        np.clip(
            _MAX_SAMPLE_ENTRIES // n_classes, _MIN_SAMPLE_ROWS, 10 * _MIN_SAMPLE_ROWS
        )
    )
    return (
        max_rows
        if n_classes <= _MAX_FULL_SAMPLE_CLASSES
        else max(1, min(max_rows, _MAX_SAMPLE_ENTRIES_MANY_CLASSES // n_classes))
    )
