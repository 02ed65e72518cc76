"""The mergeable summary of predictions and labels."""

import copy
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
from sklearn.utils import Bunch

from .._argument_checks import (
    check_choice,
    is_real_number,
    read_bool_with_none_as_false,
    unknown_name_error,
    validate_count,
)
from .._atomic import restore_if_raised
from .._kernels._binning import compute_rounded_up_cube_root
from .._kernels._cells import MANTISSA_BITS
from .._kernels._exact_sums import (
    SUM_FRACTION_BITS,
    add_sum_lists,
    convert_sums_to_floats,
)
from .._kernels._two_class_problems import make_two_class_problems
from .._random import make_generator, spawn_generators
from .._typing import (
    AnyArray,
    ArrayLike,
    CurveStrategy,
    Estimator,
    Multiclass,
    NumberOfBins,
    RandomStateLike,
    RecalibratorLike,
    Self,
)
from .._validation import (
    check_and_get_common_index,
    read_array,
    reorder_columns_if_names_match,
)
from ..exceptions import invalid_input
from ..inference import MonteCarloResult, SignificanceResult
from ..metrics import (
    CurveRows,
    Measure,
    Predictions,
    ReliabilityCurves,
    all_metrics,
    compute_curve,
)
from ..recalibrators import fit_recalibrator, resolve_recalibrator
from ._input import (
    StreamLabelEncoder,
    check_counts,
    check_one_label_per_row,
    check_scores_and_get_proba_converter,
    check_weight,
    iter_score_blocks,
    make_soft_label_rows_with_majority_weight,
)
from ._pattern_cells import ScoreGroupTable
from ._problems import (
    CLASSICAL_TEST_BY_NAME,
    EMPTY_COMPLEMENT,
    MIN_CELLS_PER_PROBLEM,
    SUM_NAME_BY_LOSS,
    CellProblems,
    MulticlassTotals,
    Totals,
    compute_multiclass_totals,
    expand_cells_to_label_rows,
    get_scores_complements_and_events,
    make_empty_cell_states,
    run_classical_test,
)
from ._resampling import CellSample
from ._row_reservoir import RowReservoir, merge_reservoirs_if_complete
from ._state import count_rows_across
from ._storage import Storable

_MULTICLASS_MODES = "auto", "confidence", "top_label", "classwise"
_INTEGER_TOTALS = "n_samples", "certain_and_wrong"
_MAX_SUMMARY_CELLS = 2**24
N_MULTICLASS_TOTALS = len(MulticlassTotals._fields)
# Cells of a sample that is resampled many times.
_N_RESAMPLED_CELLS = 4096
_DEFAULT_RECALIBRATORS = ("identity", "temperature", "platt", "beta", "isotonic")
# Relative, of sums of floating-point numbers in another order.
_SUM_ORDER_TOLERANCE = 1e-11


class CalibrationSummary(Storable):
    """A summary of any number of rows in 0.2 to 4 MB, enough for measures and recalibrators.

    The weights of both labels at each score are kept: exactly as long as there are at
    most `max_cells` distinct scores, later in cells that are narrow relative to the
    distance from 0 or 1. Summaries of parts are merged by ``+``. All of it depends on
    the rows alone, not on their order, on how they were cut into batches, or on which
    parts were merged first: in every bit without weights, or if these are whole
    numbers. Other weights are added up in each cell as floating-point numbers, so that
    they, and the scores of cells that several scores share, are the same up to
    rounding; ``==`` allows for 1e-11 of their size. The `totals` are exact sums of the
    terms of each row: for all weights, they are the same in every bit.

    Parameters
    ----------
    max_cells : int, default=65_536
        The largest number of cells, from 4096 on. More cells are finer.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        How more than two classes are treated, as in the measures.
    classes : array-like of shape (n_classes,), default=None
        All classes in the order of the columns of the scores. Needed unless the labels
        are 0 and 1 or booleans, or `pos_label` is given: no batch need show all
        classes. Of an order of their own the batches among the first 65,536 rows tell
        whether the columns can have it; else `update` warns, once.
    pos_label : label, default=None
        The positive class of two, whose probability a single column is; the second by
        default. Without `classes`, one other label is accepted; with two columns it
        must come before `pos_label` in sorted order.

    Attributes
    ----------
    n_samples : int
        Rows so far; those of weight 0 do not count. A row of soft labels is one.
    weight : float
        The sum of their weights.
    exact : bool
        Whether no two distinct scores share a cell: each is kept in all its digits
        then. Of two columns that are not complements to the last digit the one of the
        positive class counts.
    n_cells : int
    significant_bits : int
        Bits of the distance of a score from 0 or 1, behind the leading one, that the
        cells tell apart: 52 while exact, else 36 or fewer.

    Notes
    -----
    Cost of a row: some 20 ns. Neither the scores nor the labels are anonymous in a
    summary: while it is exact it holds them, and cells of a single row may always
    exist.

    References
    ----------
    The cells are related to those of Masson, Rim, Lee (2019), "DDSketch: a fast and
    fully-mergeable quantile sketch with relative-error guarantees", and of Epicoco,
    Melle, Cafaro, Pulimeno, Morleo (2020), "UDDSketch: accurate tracking of quantiles
    in data streams".

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

    # a sample of the rows, if it is requested
    drawn: RowReservoir | None = None
    patterns: ScoreGroupTable | None = None  # rows by groups, if requested
    soft = False  # whether some rows came as shares, whose items cells do not keep

    def __init__(
        self,
        max_cells: int = 65_536,
        multiclass: Multiclass = "auto",
        classes: ArrayLike | None = None,
        pos_label: object = None,
    ) -> None:
        whole = isinstance(max_cells, int | np.integer) and not isinstance(
            max_cells, bool
        )
        if not whole or not MIN_CELLS_PER_PROBLEM <= max_cells <= _MAX_SUMMARY_CELLS:
            raise invalid_input(
                expected=f"max_cells from {MIN_CELLS_PER_PROBLEM} to {_MAX_SUMMARY_CELLS}",
                got=repr(max_cells),
                hint="Leave the default, or take 4096",
            )
        check_choice(
            "multiclass", multiclass, _MULTICLASS_MODES, "See the user guide, Measures"
        )
        self.multiclass = multiclass
        self._labels = StreamLabelEncoder(classes, pos_label)
        self._max_cells = int(max_cells)
        self._set_classes_and_states(self._labels.classes)

    def _set_classes_and_states(self, classes):
        """Create empty states of the two-class problems of these classes."""
        self._labels.classes = classes
        self._states = make_empty_cell_states(
            self.multiclass, self._labels.n_classes, self._max_cells
        )
        self._joint = None if self._labels.n_classes == 2 else [0] * N_MULTICLASS_TOTALS

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
            Probabilities, float16 to float64; one dimension is the probability of
            `pos_label`, or of the second class. No copy of the batch is made.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0; rows of weight 0 are skipped.
        counts : array-like of shape (n_samples,), default=None
            How many rows each of these stands for, as GROUP BY returns them: whole
            numbers >= 0.
        soft_labels : bool, default=False
            Whether `y_true` holds shares of classes, of shape (n_samples,) or
            (n_samples, n_classes), as measures take them. The measures and fits of the
            summary are then those of weighted rows; what counts rows (tests, intervals,
            reports) it rejects, because it does not keep which of them belong to one
            item.

        Returns
        -------
        self : CalibrationSummary

        Raises
        ------
        ValueError, TypeError
            Invalid scores, labels, weights or counts, with their row. The summary is
            then as it was before, as after an interruption.

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
        with restore_if_raised(self):
            for rows in self._iter_checked_blocks_learning_classes(
                y_true,
                y_proba,
                sample_weight,
                counts,
                soft_labels,
            ):
                self._add_checked_rows(*rows)
        return self

    def _iter_checked_blocks_learning_classes(
        self, y_true, y_proba, sample_weight, counts, soft_labels=False
    ):
        """Yield checked rows in blocks: codes, probabilities, weights, counts."""
        check_and_get_common_index(y_true, y_proba, sample_weight, counts)
        scores, repair = check_scores_and_get_proba_converter(y_proba)
        n = len(scores)
        y_true = check_one_label_per_row(y_true, n)
        weight = check_weight(sample_weight, n)
        count = check_counts(counts, n)
        if not n:
            return
        columns = 1 if scores.ndim == 1 else scores.shape[1]
        sure = weight
        more = 0
        if read_bool_with_none_as_false(soft_labels, "soft_labels"):
            arrays = y_true, scores, weight, count, y_proba
            y_true, scores, weight, count, sure, more = (
                make_soft_label_rows_with_majority_weight(self._labels, *arrays)
            )
        classes, codes = self._labels.read_labels(y_true, columns, not self.n_samples)
        if classes is not None:
            scores = reorder_columns_if_names_match(scores, y_proba, classes)
        if max(columns, 2) != self._labels.n_classes:
            self._set_classes_and_states(classes)
        self._labels.set_classes_and_positive_index(classes)
        self.soft = self.soft or bool(soft_labels)
        n_before = self.n_samples
        # Totals of several classes are sums over the rows, apart from the two-class
        # problems.
        # Items are counted, not the rows of each.
        self._exact_sum_integers[0] -= more << SUM_FRACTION_BITS
        for rows, block in iter_score_blocks(scores, repair):
            if rows.start == 0:
                self._labels.warn_once_about_column_order(
                    codes,
                    block,
                    sure,
                    count,
                    n_before,
                )
            arrays = [
                None if column is None else column[rows] for column in (weight, count)
            ]
            yield codes[rows], block, *arrays

    def _add_checked_rows(self, codes, block, weight, count):
        """Add checked rows; those of weight or count 0 are left out."""
        kept = [column > 0 for column in (weight, count) if column is not None]
        if kept and not np.all(kept):
            rows = np.logical_and.reduce(kept)
            columns = codes, block, weight, count
            codes, block, weight, count = (
                None if values is None else values[rows] for values in columns
            )
        if not len(codes):
            return
        if self._joint is None:
            columns = get_scores_complements_and_events(
                codes, block, self._labels.positive
            )
            self._states[0].add(*columns, weight, count)
            return
        sums, confidence, hit = compute_multiclass_totals(codes, block, weight, count)
        self._joint = add_sum_lists(self._joint, sums)
        if len(self._states) == 1:
            state = self._states[0]
            state.add(confidence, EMPTY_COMPLEMENT, hit.view(np.uint8), weight, count)
            return
        for problem in make_two_class_problems(self.multiclass, block):
            rows = problem.rows
            hit = (codes[rows] == problem.target).astype(np.uint8)
            weight_and_count = [
                None if column is None else column[rows] for column in (weight, count)
            ]
            self._states[problem.number].add(
                problem.score, EMPTY_COMPLEMENT, hit, *weight_and_count
            )

    def merge(self, other: "CalibrationSummary") -> Self:
        """Add the rows of another summary to this one.

        Parameters
        ----------
        other : CalibrationSummary
            Of the same classes. Of two `max_cells` the smaller one holds for the
            result.

        Returns
        -------
        self : CalibrationSummary

        Raises
        ------
        TypeError
            What is not a summary.
        ValueError
            Other classes, or another `multiclass`.
        """
        if not isinstance(other, CalibrationSummary):
            raise invalid_input(
                expected="a CalibrationSummary",
                got=type(other).__name__,
                hint="Summarise the rows first",
                error=TypeError,
            )
        if self.multiclass != other.multiclass:
            raise invalid_input(
                expected="summaries of one multiclass option",
                got=f"{self.multiclass!r} and {other.multiclass!r}",
                hint="Summarise again",
            )
        # An empty summary takes over the number of classes of the other one.
        if self._labels.guessed and other._labels.guessed:  # no rows, no classes yet
            if not self.n_samples:
                self._set_classes_and_states(other.classes)
            elif not other.n_samples:
                other = other.copy()
                other._set_classes_and_states(self.classes)
        self._labels.adopt_matching_classes(other._labels)
        self.soft = self.soft or other.soft
        self.drawn = merge_reservoirs_if_complete(
            self.drawn, other.drawn, self.n_samples, other.n_samples
        )
        if self.patterns is not None and other.patterns is not None:
            self.patterns.merge(other.patterns)
        # The merged summary has the coarser resolution.
        self._max_cells = min(self._max_cells, other._max_cells)
        for own_state, other_state in zip(self._states, other._states, strict=True):
            own_state.merge(other_state)
        if self._joint is not None and other._joint is not None:
            self._joint = add_sum_lists(self._joint, other._joint)
        return self

    def __add__(self, other: "CalibrationSummary") -> "CalibrationSummary":
        if not isinstance(other, CalibrationSummary):
            return NotImplemented
        return self.copy().merge(other)

    def __radd__(self, other: Literal[0]) -> "CalibrationSummary":
        """``sum(summaries)`` starts with 0."""
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def coarsen(self, max_cells: int) -> "CalibrationSummary":
        """Return a summary of the same rows in fewer cells, as if it had been made with them.

        For a smaller file, or to show less of single rows: while a summary is exact it
        holds their scores and labels.

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
        if not is_real_number(max_cells) or not max_cells <= self.max_cells:
            raise invalid_input(
                expected=f"max_cells of at most {self.max_cells}, the summary's own",
                got=repr(max_cells),
                hint="Finer cells need the rows again",
            )
        empty = CalibrationSummary(cast("int", max_cells), self.multiclass)
        empty._labels = copy.deepcopy(self._labels)
        empty._set_classes_and_states(self.classes)
        return empty.merge(self)

    def copy(self) -> "CalibrationSummary":
        """Return an equal summary of its own."""
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
        """The label whose probability the scores are, if there are two."""
        return self._labels.positive_label

    @property
    def totals(self) -> Totals | MulticlassTotals:
        """Sums over all rows that need no cells; `Totals` for two classes."""
        kind = Totals if self._joint is None else MulticlassTotals
        sums = convert_sums_to_floats(self._exact_sum_integers).tolist()
        named = dict(zip(kind._fields, sums, strict=True))
        return kind(**named | {name: int(named[name]) for name in _INTEGER_TOTALS})

    @property
    def _exact_sum_integers(self):
        """The exact sums over all rows, the first of which is their number."""
        return self._states[0].sums if self._joint is None else self._joint

    @property
    def n_samples(self) -> int:
        return self._exact_sum_integers[0] >> SUM_FRACTION_BITS

    @property
    def weight(self) -> float:
        return self.totals.weight

    @property
    def n_cells(self) -> int:
        return sum(len(state.table) for state in self._states)

    @property
    def exact(self) -> bool:
        return self.significant_bits == MANTISSA_BITS

    @property
    def significant_bits(self) -> int:
        return MANTISSA_BITS - max(state.shift for state in self._states)

    def rows(self) -> Bunch:
        """Return weighted rows that stand for all: at most two for each cell, one a label.

        For measures, recalibrators and pictures that depend only on the weight of the
        labels at each score. Not for what counts rows (standard errors, tests,
        intervals): these are not as many rows as there were.

        Returns
        -------
        rows : Bunch
            ``y`` of shape (n_rows,), labels; ``proba`` of shape (n_rows, 2), columns in
            the order of `classes`, sorted by the score; ``sample_weight`` of shape
            (n_rows,).

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.75])
        >>> rows = summary.rows()
        >>> rows.y.tolist(), rows.proba[:, 1].tolist(), rows.sample_weight.tolist()
        ([0, 1, 1], [0.5, 0.5, 0.75], [1.0, 2.0, 1.0])
        """
        self._check_filled()
        self._check_two_classes("whole vectors of probabilities")
        proba, codes, weight = self._make_proba_codes_and_weight()
        if self.classes is None:
            y = np.full(len(codes), self._labels.pos_label)
        else:
            y = self.classes[codes]
        return Bunch(y=y, proba=proba, sample_weight=weight)

    def predictions(self) -> Predictions | CellProblems:
        """Return the cells as what measures and their ``evaluate`` are functions of.

        Returns
        -------
        predictions : Predictions or CellProblems
            For two classes `Predictions` of `rows`; for more, an object with the method
            ``problems`` of `Predictions` alone.
        """
        self._check_filled()
        classes = np.arange(2) if self.classes is None else self.classes
        if self._joint is not None:
            return CellProblems(self.multiclass, self._states, classes)
        proba, codes, weight = self._make_proba_codes_and_weight()
        return Predictions(proba, codes, weight, classes, self._labels.positive)

    def samples(self, max_cells: int | None = None) -> list[CellSample]:
        """Return the cells of each two-class problem, to draw rows and labels from.

        Parameters
        ----------
        max_cells : int, default=None
            Make the cells as coarse as that needs; below 4096 as far as cells of one
            octave do.

        Returns
        -------
        samples : list of CellSample
            One for two classes and "confidence", else one per class; problems without
            rows are left out.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.75])
        >>> summary.samples()[0].counts.tolist()
        [[1, 2], [0, 1]]
        """
        self._check_filled()
        self._check_independent()
        return [
            CellSample.from_table(
                state.table, state.shift, max_cells or len(state.table)
            )
            for state in self._states
            if len(state.table)
        ]

    def _make_proba_codes_and_weight(self):
        """Return (probabilities in the order of the classes, codes, weights) of `rows`."""
        codes, proba, weight = expand_cells_to_label_rows(self._states[0])
        if self._labels.positive == 0:
            codes = 1 - codes
            proba = np.ascontiguousarray(proba[:, ::-1])
        return proba, codes, weight

    def _check_filled(self):
        if not self.n_samples:
            raise invalid_input(
                expected="a summary of at least one row",
                got="an empty summary",
                hint="Call update first",
            )

    def _check_two_classes(self, what):
        if self._joint is not None:
            raise invalid_input(
                expected="a summary of two classes",
                got=f"a summary of {len(self.classes)} classes",
                hint=f"Pass the rows themselves for {what}",
            )

    # -- what it answers ----------------------------------------------------------------------

    def rows_across(self, edges: ArrayLike) -> int:
        """Return how many rows lie in cells that reach across an edge: their side is not known.

        Parameters
        ----------
        edges : array-like of shape (n_edges,)
            Scores; a row belongs to the side above from the edge on.

        Returns
        -------
        n_rows : int
            0 while the summary is exact.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> CalibrationSummary().update([0, 1], [0.2, 0.7]).rows_across([0.2, 0.5])
        0
        """
        self._check_filled()
        self._check_independent()
        self._check_two_classes("several classes")
        if self.exact:
            return 0
        state = self._states[0]
        scores = np.ravel(read_array(edges, "edges")).astype(float)
        return count_rows_across(state, scores)

    def measure(self, name: str, **options: Any) -> float:
        """Return a registered measure of all rows.

        Parameters
        ----------
        name : str
            One of `all_metrics`.
        **options
            Options of the measure, such as ``n_bins=10``.

        Returns
        -------
        value : float
            The measure of the cells. But for rounding it is that of the rows for the
            losses, for bins of equal width whose number divides 60, and for all while
            the summary is exact.

        Raises
        ------
        ValueError
            An unknown measure or option, one that needs single rows, or no rows.

        Notes
        -----
        Cost: that of the measure with two rows per cell.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 50_000)
        >>> summary = CalibrationSummary(4096).update(y, proba)
        >>> round(summary.measure("smooth_calibration_error"), 4)
        0.0457
        """
        measure = self._get_measure_object_for_cells(name, cells_are_exact=self.exact)
        measure.check_options(options)
        predictions = self.predictions()
        totals = self.totals
        if name in SUM_NAME_BY_LOSS:
            return getattr(totals, SUM_NAME_BY_LOSS[name]) / totals.weight
        return measure.evaluate(
            predictions, **self._check_and_adapt_options(measure, options)
        )

    def _check_and_adapt_options(
        self, measure: Measure, options: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the options of a measure as they are for cells.

        Rejected if single rows are needed.
        """
        single = options.get("estimator") in ("unbiased", "linear")
        if options.get("debias") or single or options.get("multiclass") == "canonical":
            raise invalid_input(
                expected="options that read weights of scores",
                got="an option that reads single rows",
                hint="Measure the rows themselves, or without that option",
            )
        if options.get("cv") is not None:
            raise invalid_input(
                expected="cv=None", got=repr(options["cv"]), hint="Call cross_validate"
            )
        if "multiclass" not in measure.option_names:
            reason = f"{measure.spec.name}, which reads whole vectors of probabilities"
            self._check_two_classes(reason)
            return options
        options = {"multiclass": self.multiclass, **options}
        # The number of rows, not of cells.
        if options.get("n_bins") == "cube_root":
            options["n_bins"] = compute_rounded_up_cube_root(self.n_samples)
        return options

    # -- recalibrators ------------------------------------------------------------------------

    def fit(self, recalibrator: RecalibratorLike) -> Estimator:
        """Return a recalibrator fitted to the cells, as if to all rows.

        Parameters
        ----------
        recalibrator : str or recalibrator
            A name, or an instance, which is cloned.

        Returns
        -------
        fitted : recalibrator
            Takes probabilities of both classes, or of the second.

        Raises
        ------
        ValueError
            An unknown name, no rows, one class only, more than two classes, or a method
            that learns from the order of the rows, which a summary does not keep.
        TypeError
            No recalibrator.

        Notes
        -----
        Cost: that of the fit to two rows per cell. What a recalibrator cross-validates
        inside, it cross-validates over cells; choose between recalibrators by
        `cross_validate`.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.recalibrators import PlattScaling
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 5000)
        >>> of_cells = CalibrationSummary().update(y, proba).fit("platt")
        >>> of_rows = PlattScaling().fit(proba, y)
        >>> bool(abs(of_cells.predict_proba(proba) - of_rows.predict_proba(proba)).max() < 1e-6)
        True
        """
        model = resolve_recalibrator(recalibrator)
        self._check_filled()
        self._check_two_classes("a recalibrator of several classes")
        # Cells have lost the order of the rows.
        if getattr(getattr(model, "capabilities", None), "order_dependent", False):
            raise invalid_input(
                expected="a method that needs no order of the rows",
                got=type(model).__name__,
                hint="Fit it to the rows themselves, in the order of time",
            )
        rows = self.rows()
        return fit_recalibrator(
            model,
            rows.proba,
            rows.y,
            classes=self.classes,
            sample_weight=rows.sample_weight,
        )

    def cross_validate(
        self,
        recalibrators: Sequence[RecalibratorLike] = _DEFAULT_RECALIBRATORS,
        *,
        cv: int = 5,
        measures: Sequence[str] = (
            "log_loss",
            "brier_loss",
            "expected_calibration_error",
        ),
        random_state: RandomStateLike = 0,
    ) -> dict[str, dict[str, float]]:
        """Return measures of predictions, each recalibrated by a fit that has not seen it.

        The rows of each cell and label are divided at random among the folds, which has
        the law of a random partition of the rows.

        Parameters
        ----------
        recalibrators : sequence of str or recalibrator
            By default "identity" (no change), "temperature", "platt", "beta" and
            "isotonic".
        cv : int, default=5
            The number of folds.
        measures : sequence of str
            Names from `all_metrics`; computed for the predictions of all folds
            together.
        random_state : int, Generator, RandomState or None, default=0

        Returns
        -------
        values : dict of str to dict of str to float
            The measures of each recalibrator, by its name; an instance is named by its
            class.

        Raises
        ------
        ValueError
            An unknown name, fewer than 2 folds, no rows, or more than two classes.
        TypeError
            No recalibrator.

        Notes
        -----
        All rows of a cell are at its mean, also for "identity". Cost: `cv` fits of
        each.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 5000)
        >>> found = CalibrationSummary().update(y, proba).cross_validate(["identity", "platt"])
        >>> found["platt"]["log_loss"] < found["identity"]["log_loss"]
        True
        """
        if isinstance(cv, bool) or not isinstance(cv, int | np.integer) or cv < 2:
            raise invalid_input(
                expected="cv as a number of folds, at least 2",
                got=repr(cv),
                hint="Leave the default",
            )
        functions = [self._get_measure_object_for_cells(name) for name in measures]
        models = {
            name
            if isinstance(name, str)
            else type(name).__name__: resolve_recalibrator(name)
            for name in recalibrators
        }
        self._check_two_classes("a recalibrator of several classes")
        self._check_independent()
        self._get_only_state()
        (sample,) = self.samples()
        # All methods are judged on the same folds.
        folds = sample.split_into_folds(int(cv), make_generator(random_state))
        values = {}
        for name, model in models.items():
            predictions = sample.recalibrate_held_out(model, folds).predictions
            values[name] = {
                function.spec.name: function.evaluate(predictions)
                for function in functions
            }
        return values

    def _get_measure_object_for_cells(self, name, cells_are_exact=False):
        """Return a measure.

        `cells_are_exact` is whether cells are as good as rows: they are for one value,
        not for drawing from them.
        """
        measure = all_metrics().get(name)
        if measure is None:
            raise unknown_name_error("a measure", name, all_metrics())
        if not cells_are_exact:
            self._check_reads_cells(measure)
        return measure

    @staticmethod
    def _check_reads_cells(measure):
        """Reject a measure that reads more than the weight of each label at each score."""
        if not measure.spec.poolable:
            raise invalid_input(
                expected="a measure that cells are enough for",
                got=f"{measure.spec.name!r}, which needs single rows",
                hint="Measure the rows themselves",
            )

    def _check_independent(self):
        """Reject what counts rows, if several of them may belong to one item."""
        if self.soft:
            argument_text = "soft_labels=True"
            raise invalid_input(
                expected="rows that are independent",
                got="a summary of soft labels",
                hint=(
                    "Pass the rows themselves with "
                    + argument_text
                    + "; measure and fit read cells"
                ),
            )

    def _get_only_state(self):
        """Return the cells of the only two-class problem."""
        self._check_filled()
        if len(self._states) > 1:
            raise invalid_input(
                expected="one two-class problem",
                got=f"{len(self._states)}",
                hint="Summarise with multiclass='confidence', or use the rows themselves",
            )
        return self._states[0]

    # -- tests and curves ---------------------------------------------------------------------

    def test(
        self,
        statistic: str = "smooth",
        *,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        **options: Any,
    ) -> MonteCarloResult | SignificanceResult:
        """Test whether the predictions are perfectly calibrated.

        Parameters
        ----------
        statistic : str, default="smooth"
            "smooth" for `smooth_calibration_error`, or the name of another measure:
            labels are drawn from the predictions, as in `calibration_test`. Or a
            classical test: "spiegelhalter", "hosmer_lemeshow", "cox", "kuiper" or
            "kolmogorov_smirnov".
        n_resamples : int, default=999
            Draws of labels, for measures.
        random_state : int, Generator, RandomState or None, default=0
        **options
            Options of the measure, or `n_bins` of "hosmer_lemeshow" (10).

        Returns
        -------
        result : MonteCarloResult or SignificanceResult
            The latter for the classical tests.

        Raises
        ------
        ValueError
            An unknown statistic or option, no rows, or several two-class problems.

        Notes
        -----
        A measure is tested on at most 4096 cells, observed and drawn alike; the number
        of events in a cell is binomial with its mean score, whose variance is too large
        by h^2 / 4 a row at most in a cell of width h. "spiegelhalter" is exact.
        "kuiper" and "kolmogorov_smirnov" test the scores rounded to the means, which is
        valid too. "cox" and "hosmer_lemeshow" read the cells as repeated rows and need
        unweighted ones. Cost: some milliseconds for the classical tests, 1 ms for a
        draw.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 5000)
        >>> summary = CalibrationSummary().update(y, proba)
        >>> summary.test("smooth", n_resamples=99).pvalue
        0.01
        >>> summary.test("spiegelhalter").pvalue < 1e-9
        True
        """
        self._check_independent()
        if statistic in CLASSICAL_TEST_BY_NAME:
            state = self._get_only_state()
            return SignificanceResult(*run_classical_test(statistic, state, options))
        hint = "Pass 999 for p-values down to 0.001"
        n_resamples = validate_count(n_resamples, "n_resamples", hint=hint)
        name = "smooth_calibration_error" if statistic == "smooth" else statistic
        measure = all_metrics().get(name)
        if measure is None:
            known_statistics = ("smooth", *CLASSICAL_TEST_BY_NAME, *all_metrics())
            raise unknown_name_error("a statistic", statistic, known_statistics)
        measure.check_options(options)
        self._check_reads_cells(measure)
        options = self._check_and_adapt_options(measure, options)
        if len(self._states) == 1 and self._joint is not None:
            options.pop("multiclass", None)  # the problem is a two-class one by now
        self._get_only_state()
        (sample,) = self.samples(_N_RESAMPLED_CELLS)
        sign = -1.0 if measure.spec.greater_is_better else 1.0
        observed = sign * measure.evaluate(sample.predictions, **options)
        rngs = spawn_generators(random_state, n_resamples)
        null = [
            sign * measure.evaluate(sample.simulate_labels(rng), **options)
            for rng in rngs
        ]
        return MonteCarloResult.from_draws(observed, np.array(null), measure.spec.name)

    def reliability_curve(
        self,
        *,
        strategy: CurveStrategy = "quantile",
        n_bins: NumberOfBins = 15,
        level: float = 0.9,
        n_resamples: int = 200,
        random_state: RandomStateLike = 0,
    ) -> ReliabilityCurves:
        """Return observed frequencies against predictions, with bands.

        Parameters
        ----------
        strategy, n_bins, level, n_resamples, random_state
            As in `sklearn_calib.metrics.reliability_curve`.

        Returns
        -------
        curves : ReliabilityCurves
            One per two-class problem. ``ReliabilityDisplay({"model": curves}).plot()``
            draws them.

        Raises
        ------
        ValueError
            An unknown strategy, a level outside of (0, 1), or no rows.

        Notes
        -----
        Points of bins of equal width are those of the rows where 60 is a multiple of
        `n_bins`; the bands count the rows, not the cells. Cost: some milliseconds, and
        1 ms a resample.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6])
        >>> (curve,) = summary.reliability_curve(n_bins=2)
        >>> curve.observed.tolist()
        [0.0, 1.0]
        """
        self._check_filled()
        self._check_independent()
        rng = make_generator(random_state)
        n_bins = (
            compute_rounded_up_cube_root(self.n_samples)
            if n_bins == "cube_root"
            else n_bins
        )
        titles = [problem.title for problem in self.predictions().problems()]
        curves = []
        for sample, title in zip(self.samples(), titles, strict=True):
            rows = CurveRows.from_pooled(sample, title)
            curves.append(
                compute_curve(rows, strategy, n_bins, level, n_resamples, rng)
            )
        return ReliabilityCurves(curves)

    # -- equality, text -----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Return whether all cells are the same; sums of weights and totals up to rounding."""
        if not isinstance(other, CalibrationSummary):
            return NotImplemented
        return (
            (self.max_cells, self.multiclass, self._labels.classes_in_words)
            == (other.max_cells, other.multiclass, other._labels.classes_in_words)
            and np.allclose(self.totals, other.totals, _SUM_ORDER_TOLERANCE, 0.0)
            and all(
                own_state.is_close_to(other_state, _SUM_ORDER_TOLERANCE)
                for own_state, other_state in zip(
                    self._states, other._states, strict=True
                )
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.n_samples:
            return f"<CalibrationSummary of no rows, max_cells={self.max_cells}>"
        how = "exact" if self.exact else f"{self.significant_bits} significant bits"
        return f"<CalibrationSummary of {self.n_samples} rows in {self.n_cells} cells, {how}>"
