"""The mergeable summary of predictions and labels."""

import copy
from typing import Any, Literal, cast

import numpy as np
from sklearn.utils import Bunch

from .._kernels._cells import KEPT_BITS
from .._kernels._exact_sums import UNIT_BITS, added, as_floats
from .._typing import AnyArray, ArrayLike, Multiclass, Self
from ..exceptions import called, check_flag, check_known, is_number, refuse
from ..metrics import Case
from ._answers import Answers
from ._drawn import RowDraw, merged_draws
from ._input import (
    Labels,
    SoftBatch,
    checked_counts,
    checked_scores,
    checked_weight,
    one_label_per_row,
)
from ._problems import (
    LEAST_CELLS,
    CellProblems,
    MulticlassTotals,
    Totals,
    joint_totals,
    parts_of_many,
    rows_of,
    states_of,
    two_class_part,
)
from ._resampling import CellSample
from ._storage import Storable

_MULTICLASS = "auto", "confidence", "top_label", "classwise"
_WHOLE = "n_samples", "certain_and_wrong"
_MOST_CELLS = 2**24
N_JOINT = len(MulticlassTotals._fields)
_ROUNDING = 1e-11  # relative, of sums of floating-point numbers in another order


class CalibrationSummary(Answers, Storable):
    """A summary of any number of rows in 0.2 to 4 MB, enough for measures and recalibrators.

    The weights of both labels at each score are kept: exactly as long as there are at most
    `max_cells` distinct scores, later in cells that are narrow relative to the distance from 0 or
    1. Summaries of parts are merged by ``+``. All of it depends on the rows alone, not on their
    order, on how they were cut into batches, or on which parts were merged first: in every bit
    without weights, or where these are whole numbers. Other weights are added up in each cell as
    floating-point numbers, so that they, and the scores of cells that several scores share, are the
    same up to rounding; ``==`` allows for 1e-11 of their size. The `totals` are exact sums of what
    each row gives: whatever the weights, they are the same in every bit.

    Parameters
    ----------
    max_cells : int, default=65_536
        The largest number of cells, from 4096 on. More cells are finer.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        How more than two classes are treated, as in the measures.
    classes : array-like of shape (n_classes,), default=None
        All classes in the order of the columns of the scores. Needed unless the labels are 0 and 1
        or booleans: no batch need show all classes. Of an order of their own the batches among the
        first 65,536 rows tell whether the columns can have it; else `update` warns, once.
    pos_label : label, default=None
        The positive class of two; the second by default. Without `classes`, one other label is
        accepted, which must come before `pos_label` in sorted order.

    Attributes
    ----------
    n_samples : int
        Rows so far; those of weight 0 do not count. A row of soft labels is one.
    weight : float
        The sum of their weights.
    exact : bool
        Whether no two distinct scores share a cell: each is kept in all its digits then. Of two
        columns that are not complements to the last digit the one of the positive class counts.
    n_cells : int
    significant_bits : int
        Bits of the distance of a score from 0 or 1, behind the leading one, that the cells tell
        apart: 52 while exact, else 36 or fewer.

    Notes
    -----
    Cost of a row: some 20 ns. Neither the scores nor the labels are anonymous in a summary: while
    it is exact it holds them, and cells of a single row may always exist.

    References
    ----------
    The cells are related to those of Masson, Rim, Lee (2019), "DDSketch: a fast and fully-mergeable
    quantile sketch with relative-error guarantees", and of Epicoco, Melle, Cafaro, Pulimeno, Morleo
    (2020), "UDDSketch: accurate tracking of quantiles in data streams".

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.summary import CalibrationSummary
    >>> proba, y = make_overconfident(2, 2000)
    >>> monday = CalibrationSummary().update(y[:900], proba[:900])
    >>> tuesday = CalibrationSummary().update(y[900:], proba[900:])
    >>> both = monday + tuesday
    >>> both == CalibrationSummary().update(y, proba)
    True
    >>> both.n_samples, both.exact
    (2000, True)
    >>> from sklearn_calib.metrics import smooth_calibration_error
    >>> error = both.measure("smooth_calibration_error")
    >>> round(error - smooth_calibration_error(y, proba), 9)
    0.0
    """

    drawn: RowDraw | None = None  # a sample of the rows, where whoever reads them asks for one
    soft = False  # whether some rows came as shares, whose items cells do not keep

    def __init__(
        self,
        max_cells: int = 65_536,
        multiclass: Multiclass = "auto",
        classes: ArrayLike | None = None,
        pos_label: object = None,
    ) -> None:
        where = called("CalibrationSummary")
        whole = isinstance(max_cells, int | np.integer) and not isinstance(max_cells, bool)
        if not whole or not LEAST_CELLS <= max_cells <= _MOST_CELLS:
            rule = f"max_cells from {LEAST_CELLS} to {_MOST_CELLS}"
            refuse(where, rule, repr(max_cells), "Leave the default, or take 4096")
        check_known(where, "multiclass", multiclass, _MULTICLASS, "See the user guide, Measures")
        self.multiclass = multiclass
        self._labels = Labels(classes, pos_label, where)
        self._max_cells = int(max_cells)
        self._open(self._labels.classes)

    def _open(self, classes):
        """Empty states of the two-class problems of these classes."""
        self._labels.classes = classes
        self._states = states_of(self.multiclass, self._labels.n_classes, self._max_cells)
        self._joint = None if self._labels.n_classes == 2 else [0] * N_JOINT

    # -- rows in ------------------------------------------------------------------------------

    def update(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        sample_weight: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
    ) -> Self:
        """Add a batch of rows of any size, also none.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_proba : array-like of shape (n_samples,) or (n_samples, 2)
            Probabilities, float16 to float64; one dimension is the probability of the second class.
            No copy of the batch is made.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0; rows of weight 0 are skipped.
        counts : array-like of shape (n_samples,), default=None
            How many rows each of these stands for, as GROUP BY returns them: whole numbers >= 0.
        soft_labels : bool, default=False
            Whether `y_true` holds shares of classes, of shape (n_samples,) or (n_samples,
            n_classes), as measures take them. The measures and fits of the summary are then those
            of weighted rows; what counts rows (tests, intervals, reports) it refuses, because it
            does not keep which of them belong to one item.

        Returns
        -------
        self : CalibrationSummary

        Raises
        ------
        ValueError, TypeError
            Invalid scores, labels, weights or counts, with their row. The summary is then as it
            was before.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> grouped = CalibrationSummary().update([0, 1, 1], [0.2, 0.2, 0.7], counts=[8, 1, 3])
        >>> grouped.n_samples, grouped.n_cells
        (12, 2)
        >>> shares = CalibrationSummary().update([0.25, 1], [0.4, 0.8], soft_labels=True)
        >>> shares.n_samples, shares.totals.weight
        (2, 2.0)
        """
        for rows in self._batch(y_true, y_proba, sample_weight, counts, soft_labels):
            self._add(*rows)
        return self

    def _batch(self, y_true, y_proba, sample_weight, counts, soft_labels=False):
        """Checked rows in blocks: codes, probabilities, weights, counts. Nothing is added yet."""
        where = "CalibrationSummary.update"
        scores = checked_scores(y_proba, where)
        y_true, n = one_label_per_row(y_true, len(scores.raw), where), len(scores.raw)
        weight = checked_weight(sample_weight, n, where)
        count = checked_counts(counts, n, where)
        if not n:
            return
        columns = 2 if scores.raw.ndim == 1 else scores.raw.shape[1]
        sure, more = weight, 0
        if check_flag(soft_labels, "soft_labels", where):
            given = y_true, scores, weight, count
            y_true, scores, weight, count, sure, more = SoftBatch.of(self._labels, *given, where)
        classes, codes = self._labels.read(y_true, columns, not self.n_samples, where)
        if columns != self._labels.n_classes:
            self._open(classes)
        self._labels.classes = classes
        self._labels.watch(codes, scores, sure, count, self.n_samples, where)
        self.soft = self.soft or bool(soft_labels)
        whole = self._states[0].sums if self._joint is None else self._joint
        whole[0] -= more << UNIT_BITS  # items are counted, not the rows of each
        for rows, block in scores.blocks():
            given = [None if column is None else column[rows] for column in (weight, count)]
            yield codes[rows], block, *given

    def _add(self, codes, block, weight, count):
        """Add checked rows; those of weight or count 0 are left out."""
        kept = [column > 0 for column in (weight, count) if column is not None]
        if kept and not np.all(kept):
            rows = np.logical_and.reduce(kept)
            columns = codes, block, weight, count
            codes, block, weight, count = (None if c is None else c[rows] for c in columns)
        if not len(codes):
            return
        if self._joint is None:
            parts = [two_class_part(codes, block, self._labels.positive)]
        else:
            sums, whole = joint_totals(codes, block, weight, count)
            self._joint = added(self._joint, sums)
            by_class = self.multiclass in ("top_label", "classwise")
            parts = parts_of_many(self.multiclass, codes, block) if by_class else [whole]
        for number, rows, *columns in parts:
            given = [None if column is None else column[rows] for column in (weight, count)]
            self._states[number].add(*columns, *given)

    def merge(self, other: "CalibrationSummary") -> Self:
        """Add the rows of another summary to this one.

        Parameters
        ----------
        other : CalibrationSummary
            Of the same classes. Of two `max_cells` the smaller one holds for the result.

        Returns
        -------
        self : CalibrationSummary

        Raises
        ------
        TypeError
            What is no summary.
        ValueError
            Other classes, or another `multiclass`.
        """
        where = "CalibrationSummary.merge"
        if not isinstance(other, CalibrationSummary):
            got, cure = type(other).__name__, "Summarise the rows first"
            refuse(where, "a CalibrationSummary", got, cure, error=TypeError)
        if self.multiclass != other.multiclass:
            got, cure = f"{self.multiclass!r} and {other.multiclass!r}", "Summarise again"
            refuse(where, "summaries of one multiclass option", got, cure)
        if self._labels.guessed and other._labels.guessed:  # no rows, no classes yet
            if not self.n_samples:
                self._open(other.classes)
            elif not other.n_samples:
                other = other.copy()
                other._open(self.classes)
        self._labels.agree(other._labels, where)
        self.soft = self.soft or other.soft
        self.drawn = merged_draws(self.drawn, other.drawn, self.n_samples, other.n_samples)
        self._max_cells = min(self._max_cells, other._max_cells)
        for mine, theirs in zip(self._states, other._states, strict=True):
            mine.merge(theirs)
        if self._joint is not None and other._joint is not None:
            self._joint = added(self._joint, other._joint)
        return self

    def __add__(self, other: "CalibrationSummary") -> "CalibrationSummary":
        if not isinstance(other, CalibrationSummary):
            return NotImplemented
        return self.copy().merge(other)

    def __radd__(self, other: Literal[0]) -> "CalibrationSummary":
        """``sum(summaries)`` starts with 0."""
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def coarsen(self, max_cells: int) -> "CalibrationSummary":
        """A summary of the same rows in fewer cells, as if it had been made with them.

        For a smaller file, or to show less of single rows: while a summary is exact it holds their
        scores and labels.

        Parameters
        ----------
        max_cells : int
            From 4096 on; no more than the summary's own.

        Returns
        -------
        coarser : CalibrationSummary

        Raises
        ------
        ValueError
            Another number.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 20_000)
        >>> fine = CalibrationSummary().update(y, proba)
        >>> fine.coarsen(4096) == CalibrationSummary(4096).update(y, proba)
        True
        """
        where = "CalibrationSummary.coarsen"
        if not is_number(max_cells) or not max_cells <= self.max_cells:
            rule = f"max_cells of at most {self.max_cells}, the summary's own"
            refuse(where, rule, repr(max_cells), "Finer cells need the rows again")
        empty = CalibrationSummary(cast("int", max_cells), self.multiclass)
        empty._labels = copy.deepcopy(self._labels)
        empty._open(self.classes)
        return empty.merge(self)

    def copy(self) -> "CalibrationSummary":
        """An equal summary of its own."""
        return copy.deepcopy(self)

    # -- what is inside -----------------------------------------------------------------------

    @property
    def max_cells(self) -> int:
        return self._max_cells

    @property
    def classes(self) -> AnyArray | None:
        """All classes; None as long as only `pos_label` is known."""
        return self._labels.classes

    @property
    def positive_label(self) -> object:
        """The label whose probability the scores are, where there are two."""
        return self._labels.positive_label

    @property
    def totals(self) -> Totals | MulticlassTotals:
        """Sums over all rows that need no cells; `Totals` for two classes."""
        kind: type[Any] = Totals if self._joint is None else MulticlassTotals
        named = dict(zip(kind._fields, self._sums.tolist(), strict=True))
        return kind(**named | {name: int(named[name]) for name in _WHOLE})

    @property
    def _sums(self):
        return self._states[0].totals if self._joint is None else as_floats(self._joint)

    @property
    def n_samples(self) -> int:
        return self.totals.n_samples

    @property
    def weight(self) -> float:
        return self.totals.weight

    @property
    def n_cells(self) -> int:
        return sum(len(state.table) for state in self._states)

    @property
    def exact(self) -> bool:
        return self.significant_bits == KEPT_BITS

    @property
    def significant_bits(self) -> int:
        return KEPT_BITS - max(state.shift for state in self._states)

    def rows(self) -> Bunch:
        """Weighted rows that stand for all: at most two for each cell, one a label.

        For whatever depends on the weight of the labels at each score, and on that alone: measures,
        recalibrators, pictures. Not for what counts rows (standard errors, tests, intervals):
        these are not as many rows as there were.

        Returns
        -------
        rows : Bunch
            ``y`` of shape (n_rows,), labels; ``proba`` of shape (n_rows, 2), columns in the order
            of `classes`, sorted by the score; ``sample_weight`` of shape (n_rows,).

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.75])
        >>> rows = summary.rows()
        >>> rows.y.tolist(), rows.proba[:, 1].tolist(), rows.sample_weight.tolist()
        ([0, 1, 1], [0.5, 0.5, 0.75], [1.0, 2.0, 1.0])
        """
        where = "CalibrationSummary.rows"
        self._check_filled(where)
        self._check_two_classes(where, "whole vectors of probabilities")
        proba, codes, weight = self._rows()
        if self.classes is None:
            y = np.full(len(codes), self._labels.pos_label)
        else:
            y = self.classes[codes]
        return Bunch(y=y, proba=proba, sample_weight=weight)

    def case(self) -> Case | CellProblems:
        """What measures and their ``of_case`` are functions of, of the cells instead of rows.

        Returns
        -------
        case : Case or CellProblems
            For two classes a `Case` of `rows`; for more, an object with the method ``problems``
            of a `Case` alone.
        """
        return self._case("CalibrationSummary.case")

    def samples(self, max_cells: int | None = None) -> list[CellSample]:
        """The cells of each two-class problem, to draw rows and labels from.

        Parameters
        ----------
        max_cells : int, default=None
            Make the cells as coarse as that needs; below 4096 as far as cells of one octave do.

        Returns
        -------
        samples : list of CellSample
            One for two classes and "confidence", else one per class; problems without rows are left
            out.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.75])
        >>> summary.samples()[0].counts.tolist()
        [[1, 2], [0, 1]]
        """
        self._check_filled("CalibrationSummary.samples")
        self._check_independent("CalibrationSummary.samples")
        return [
            CellSample.of_table(state.table, state.shift, max_cells or len(state.table))
            for state in self._states
            if len(state.table)
        ]

    def _case(self, where):
        self._check_filled(where)
        if self._joint is not None:
            return CellProblems(self.multiclass, self._states, self.classes, where)
        classes = np.arange(2) if self.classes is None else self.classes
        return Case(*self._rows(), classes, self._labels.positive, where)

    def _rows(self):
        """(probabilities in the order of the classes, codes, weights) of `rows`."""
        codes, proba, weight = rows_of(self._states[0])
        if self._labels.positive == 0:
            codes, proba = 1 - codes, np.ascontiguousarray(proba[:, ::-1])
        return proba, codes, weight

    def _check_filled(self, where):
        if not self.n_samples:
            refuse(where, "a summary of at least one row", "an empty one", "Call update first")

    def _check_two_classes(self, where, what):
        if self._joint is not None:
            rule, cure = "a summary of two classes", f"Of {what} the rows themselves are needed"
            refuse(where, rule, f"one of {len(self.classes)}", cure)

    # -- equality, text -----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether all cells are the same; sums of weights and totals up to rounding."""
        if not isinstance(other, CalibrationSummary):
            return NotImplemented
        return (
            (self.max_cells, self.multiclass, self._labels.said)
            == (other.max_cells, other.multiclass, other._labels.said)
            and np.allclose(self._sums, other._sums, _ROUNDING, 0.0)
            and all(
                mine.equals(theirs, _ROUNDING)
                for mine, theirs in zip(self._states, other._states, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.n_samples:
            return f"<CalibrationSummary of no rows, max_cells={self.max_cells}>"
        how = "exact" if self.exact else f"{self.significant_bits} significant bits"
        return f"<CalibrationSummary of {self.n_samples} rows in {self.n_cells} cells, {how}>"
