"""Rows drawn by their own digits: a sample that can be merged, in any order of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .._random import GOLDEN_RATIO_INCREMENT, mix_bits
from .._typing import AnyArray, FloatArray, IntArray, RecalibratorLike
from .._validation import read_proba
from ..metrics import Predictions
from ..recalibrators import (
    compute_fit_and_held_out_weights,
    fit_recalibrator,
    predict_proba_aligned,
    resolve_recalibrator,
)
from ._resampling import HeldOutPredictions

# Scores of a sample; rows below.
_MAX_SAMPLE_ENTRIES = 500_000
_MIN_SAMPLE_ROWS = 20_000
_MAX_SAMPLE_ROWS = 100_000
# Strata of all classes and, at most, of one.
_MAX_STRATA = 4096
_MAX_STRATA_PER_CLASS = 32
# Rows that are kept whatever the others are.
_MIN_ROWS_PER_CLASS = 1000
_MIN_ROWS_PER_STRATUM = 4
# A class keeps one in so many of the rows that would be its share.
_GUARANTEED_CLASS_SHARE_DIVISOR = 2
_MAX_KEY = np.iinfo(np.uint64).max
_LABEL_HASH_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_HALF_WORD_BITS = np.uint64(32)
# More equal rows are not dealt out one by one.
_MAX_ROWS_DEALT_SINGLY = 2_000_000


def get_max_sample_rows(n_classes: int) -> int:
    """Return how many rows a map is learnt from: 100,000 to 5 classes, 20,000 from 25 on."""
    return int(
        np.clip(_MAX_SAMPLE_ENTRIES // n_classes, _MIN_SAMPLE_ROWS, _MAX_SAMPLE_ROWS)
    )


def _hash_scores_and_labels(scores, codes):
    """Return keys of rows: equal for equal scores and labels, else as good as random."""
    key = codes.astype(np.uint64) * _LABEL_HASH_FACTOR
    factors = GOLDEN_RATIO_INCREMENT * np.arange(
        1, 2 * scores.shape[1], 2, dtype=np.uint64
    )
    for column, factor in zip(scores.T, factors, strict=True):
        # Equal numbers must have equal bits: adding 0.0 makes 0.0 of -0.0.
        bits = (column + 0.0).view(np.uint64)
        key += (bits ^ (bits >> _HALF_WORD_BITS)) * factor
    return mix_bits(key)


@dataclass(frozen=True, eq=False)
class DrawnSample:
    """A sample of rows, in an order that their digits decide; equal rows are one.

    Attributes
    ----------
    scores : ndarray of shape (n_rows, n_columns)
        As they came, unless they were divided by their sums; logits stay logits.
    weight : ndarray of shape (n_rows,), or None
        The sample weights, if there are any.
    counts : ndarray of shape (n_rows,), int64
        How often each of these rows is there.
    extras : pandas DataFrame, ndarray or None
        Other columns.
    codes : ndarray of shape (n_rows,)
        The places of their labels among the classes.
    stratum : ndarray of shape (n_rows,)
        Rows of one stratum stand for each other.
    share : ndarray of shape (n_rows,)
        How many rows of the whole each of those stands for; 1 if all are here.
    n_seen : int
        The rows that they were drawn from.
    classes : ndarray of shape (n_classes,)
    kind : {"proba", "logits"}
        What the scores are.
    proba : ndarray of shape (n_rows, n_classes), or None
        Probabilities, where they are known better than by the scores.
    """

    scores: FloatArray
    weight: FloatArray | None
    counts: IntArray
    extras: Any
    codes: IntArray
    stratum: IntArray
    share: FloatArray
    n_seen: int
    classes: AnyArray
    kind: Literal["proba", "logits"] = "proba"
    proba: FloatArray | None = None

    @property
    def n_drawn(self) -> int:
        """How many rows these are, equal ones counted."""
        return int(self.counts.sum())

    @property
    def is_complete(self) -> bool:
        """Whether no row was left out."""
        return self.n_drawn == self.n_seen

    @property
    def weight_per_count(self) -> FloatArray:
        """The weight of one of the `counts` of each row; all together weigh as the rows here."""
        unit = np.ones(len(self.codes)) if self.weight is None else self.weight
        if self.is_complete:
            return unit
        # A row weighs as the rows of its stratum that it stands for; the factor makes
        # all weights together those of the sample.
        scale = self.n_drawn / self.n_seen
        return unit * self.share * scale

    @property
    def sample_weight(self) -> FloatArray | None:
        """The weights of a fit; None if all are 1."""
        weight = self.weight_per_count * self.counts
        return None if (weight == 1).all() else weight

    @property
    def squares(self) -> FloatArray:
        """The sums of squared weights of all rows, equal ones once."""
        return self.counts * self.weight_per_count**2

    @cached_property
    def predictions(self) -> Predictions:
        """All rows, equal ones once, which weigh as the rows that they stand for."""
        proba = self.proba
        if proba is None:
            proba = read_proba(self.scores, kind=self.kind)
        # Equal rows are fitted once, with their number as weight.
        weight = self.counts * self.weight_per_count
        return Predictions(proba, self.codes, weight, self.classes, 1)

    def split_into_folds(
        self, n_folds: int, groups: IntArray | None = None
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Return for each fold how many of the equal rows are fitted, and how many left out.

        The digits of the rows decide; a group, numbered from 0, stays in one fold.
        """
        predictions = self.predictions
        counts = self.counts.astype(float)
        return compute_fit_and_held_out_weights(
            predictions.proba,
            predictions.codes,
            counts,
            n_folds,
            _MAX_ROWS_DEALT_SINGLY,
            groups,
        )

    def recalibrate_held_out(
        self,
        recalibrator: RecalibratorLike,
        folds: Sequence[Any],
        groups: AnyArray | None = None,
    ) -> HeldOutPredictions:
        """Recalibrate each row by a fit to the folds that it is not in."""
        predictions = self.predictions
        unit = self.weight_per_count
        numbers = np.arange(len(self.classes))
        proba = []
        rows = []
        left = []
        for kept, out in folds:
            seen = np.flatnonzero(kept > 0)
            needed = np.flatnonzero(out > 0)
            if not len(needed):
                continue
            weight = (kept * unit)[seen]
            fitted = fit_recalibrator(
                resolve_recalibrator(recalibrator),
                predictions.proba[seen],
                predictions.codes[seen],
                classes=numbers,
                sample_weight=None if (weight == 1).all() else weight,
                groups=None if groups is None else groups[seen],
            )
            proba.append(
                predict_proba_aligned(fitted, predictions.proba[needed], numbers)
            )
            rows.append(needed)
            left.append(out[needed])
        place = np.concatenate(rows)
        mass = np.concatenate(left)
        codes = predictions.codes[place]
        weight = mass * unit[place]
        recalibrated = Predictions(np.vstack(proba), codes, weight, self.classes, 1)
        return HeldOutPredictions(recalibrated, place, mass * unit[place] ** 2)


def _select_rows(columns, rows):
    return {name: _take_rows_or_none(column, rows) for name, column in columns.items()}


def _take_rows_or_none(column, rows):
    if column is None:
        return None
    return column.iloc[rows] if hasattr(column, "iloc") else column[rows]


def _join_and_count_equal_rows(parts):
    """Return rows below each other; of equal ones the first, with all their counts."""
    rows = {
        name: _join_column_pieces_if_any([piece[name] for piece in parts])
        for name in parts[0]
    }
    # Equal keys are equal rows, apart from collisions of 64-bit hashes.
    key = rows["key"]
    order = np.argsort(key, kind="stable")
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = key[order[1:]] != key[order[:-1]]
    starts = np.flatnonzero(fresh)
    counts = rows["counts"]
    if len(starts):
        counts = np.add.reduceat(counts[order], starts)
    return _select_rows(rows, order[starts]) | {"counts": counts}


def _join_column_pieces_if_any(pieces):
    """Return one column whose pieces are arrays, DataFrames or None."""
    if hasattr(pieces[0], "iloc"):
        import pandas as pd

        return pd.concat(pieces, ignore_index=True)
    return None if pieces[0] is None else np.concatenate(pieces)


class RowReservoir:
    """Keeps a bounded number of rows of a stream: those of the smallest keys.

    A key is a hash of the digits of a row (scores, label, weight, other columns), so
    the same rows are kept in any order and pieces, and two draws merge into that of all
    rows. Equal rows have one key and are counted. Beside the `most` smallest of all,
    each class keeps some of its own, and so does each stratum: rows of one class whose
    odds of the true class are alike to a factor of two. The numbers of rows of the
    strata are known, so a row stands for as many rows of its stratum as were not kept:
    also if many rows are equal, no stratum is lost or counts twice.

    Parameters
    ----------
    n_classes : int
    most : int
        Different rows of all classes together.
    """

    def __init__(self, n_classes: int, max_rows: int) -> None:
        self.max_rows = max_rows
        # Rare classes keep rows that a draw of all rows would leave out.
        self._of_class = min(
            _MIN_ROWS_PER_CLASS,
            -(-max_rows // (_GUARANTEED_CLASS_SHARE_DIVISOR * n_classes)),
        )
        self._steps = int(np.clip(_MAX_STRATA // n_classes, 1, _MAX_STRATA_PER_CLASS))
        n_strata = n_classes * self._steps
        # A row with a key above the limit of its stratum cannot be in the sample any
        # more.
        self._limit = np.full(n_strata, _MAX_KEY)
        self._seen = np.zeros(n_strata, dtype=np.int64)
        self._parts: list[dict[str, Any]] = []  # columns of the rows by name

    def add(
        self,
        codes: IntArray,
        scores: FloatArray,
        true: FloatArray,
        weight: FloatArray | None = None,
        counts: IntArray | None = None,
        extras: Any = None,
        digests: Sequence[AnyArray] = (),
    ) -> None:
        """Add checked rows.

        Parameters
        ----------
        codes : ndarray of shape (n_samples,)
        scores : ndarray of shape (n_samples,) or (n_samples, n_columns), float64
            One dimension is the score of the second class.
        true : ndarray of shape (n_samples,)
            The probability of the true class.
        weight : ndarray of shape (n_samples,), default=None
            Rows of weight 0 are left out.
        counts : ndarray of shape (n_samples,), int64, default=None
        extras : pandas DataFrame or ndarray, default=None
        digests : sequence of ndarray of shape (n_samples,), uint64
            Of other columns that identify rows.
        """
        scores = scores.reshape(len(scores), -1)
        key = _hash_scores_and_labels(scores, codes)
        stratum = codes.astype(np.intp) * self._steps + self._get_octave_index(true)
        weight_digests = [] if weight is None else [(weight + 0.0).view(np.uint64)]
        for digest in (*weight_digests, *digests):
            # Rows that differ in another column are different rows.
            key = mix_bits(key ^ mix_bits(digest))
        if weight is not None:
            counts = np.where(weight > 0, 1 if counts is None else counts, 0)
        self._seen += np.bincount(stratum, counts, len(self._seen)).astype(np.int64)
        near = key <= self._limit[stratum]
        kept = np.flatnonzero(near if counts is None else near & (counts > 0))
        if not len(kept):
            return
        if counts is None:
            counts = np.ones(len(codes), dtype=np.int64)
        columns = {
            "key": key,
            "stratum": stratum,
            "scores": scores,
            "weight": weight,
            "counts": counts,
            "extras": extras,
        }
        self._parts.append(_select_rows(columns, kept))
        # Reducing the sample sorts it, so rows are collected first.
        if sum(len(piece["key"]) for piece in self._parts[1:]) > self.max_rows // 2:
            self._keep_sample()

    def _get_octave_index(self, true):
        """Return the octave of the odds of the true class."""
        with np.errstate(divide="ignore"):
            # The exponent of a float64 is the octave.
            octave = ((true / (1.0 - true)).view(np.int64) >> 52) - 1023
        half = self._steps // 2
        return np.clip(octave, -half, self._steps - 1 - half) + half

    def limit_rows(self, max_rows: int) -> "RowReservoir":
        """Return the draw of fewer rows, as if it had been made so."""
        n_classes = len(self._seen) // self._steps
        return RowReservoir(n_classes, min(max_rows, self.max_rows)).merge(self)

    def merge(self, other: "RowReservoir") -> "RowReservoir":
        """Add the rows of another draw, of the same classes; it keeps no fewer."""
        self._seen += other._seen
        # A row must pass the limits of both draws to be in that of all rows.
        self._limit = np.minimum(self._limit, other._limit)
        self._parts = [*self._parts, *other._parts]
        self._keep_sample()
        return self

    def copy(self) -> "RowReservoir":
        """Return the same rows, in a draw of its own."""
        return self.limit_rows(self.max_rows)

    def _keep_sample(self):
        """Keep what belongs to the sample."""
        if not self._parts:
            return
        rows = _join_and_count_equal_rows(self._parts)
        key = rows["key"]
        stratum = rows["stratum"]
        # Rows are sorted by their keys: the first are the sample, to which the minima
        # of classes and strata are added.
        ranks = np.arange(len(key)) < self.max_rows
        limit = np.full(
            len(self._limit),
            key[self.max_rows] if len(ranks) > self.max_rows else _MAX_KEY,
        )
        for group, size, min_rows in (
            (stratum // self._steps, self._steps, self._of_class),
            (stratum, 1, _MIN_ROWS_PER_STRATUM),
        ):
            n_groups = len(limit) // size
            # of each group the smallest keys first
            order = np.argsort(group, kind="stable")
            ends = np.bincount(group, minlength=n_groups).cumsum()
            starts = np.append(0, ends[:-1])
            place = np.empty(len(order), dtype=np.intp)
            place[order] = np.arange(len(order)) - starts[group[order]]
            ranks |= place < min_rows
            group_limit = np.full(n_groups, _MAX_KEY)
            full = ends - starts > min_rows
            # A stratum whose minimum is filled only takes smaller keys.
            group_limit[full] = key[order[starts[full] + min_rows]]
            limit = np.maximum(limit, np.repeat(group_limit, size))
        self._limit = np.minimum(limit, self._limit)
        self._parts = [_select_rows(rows, np.flatnonzero(ranks))]

    def get_sample(
        self,
        classes: AnyArray | None = None,
        kind: Literal["proba", "logits"] = "proba",
    ) -> DrawnSample | None:
        """Return the sample, of `classes` or of their numbers; None if there were no rows."""
        self._keep_sample()
        if not self._parts:
            return None
        columns = {**self._parts[0]}
        del columns["key"]
        stratum = columns["stratum"]
        drawn = np.bincount(stratum, columns["counts"], len(self._seen))
        if hasattr(columns["extras"], "iloc"):
            columns["extras"] = columns["extras"].reset_index(drop=True)
        if classes is None:
            classes = np.arange(len(self._seen) // self._steps)
        return DrawnSample(
            **columns,
            codes=stratum // self._steps,
            # The rows that one drawn row of the stratum stands for.
            share=(self._seen / np.maximum(drawn, 1))[stratum],
            n_seen=int(self._seen.sum()),
            classes=classes,
            kind=kind,
        )


def merge_reservoirs_if_complete(
    first: RowReservoir | None, second: RowReservoir | None, n_first: int, n_second: int
) -> RowReservoir | None:
    """Return the draw of all rows of two summaries; None if one has rows and no draw."""
    if first is not None and second is not None:
        return first.merge(second)
    if not n_second:
        return first
    return None if n_first or second is None else second.copy()
