"""What measures are functions of: validated predictions, and the two-class problems inside them."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from .._argument_checks import check_choice, read_bool_with_none_as_false
from .._kernels._two_class_problems import make_two_class_problems, name_problem
from .._simplex_array import stack_proba_rows
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray, Multiclass
from .._validation import (
    BINARY_CLASSES,
    add_first_class_column_if_single,
    check_and_get_common_index,
    check_same_length,
    find_known_rows,
    find_positive_index_or_second,
    get_proba_with_single_column_at_class,
    raise_if_single_column_class_unclear,
    read_label_names_proba_and_table,
    read_labels,
    read_proba_keeping_single_column,
    read_raw_weight,
    read_weight_and_unit,
    reorder_columns_if_names_match,
    validate_soft_labels,
    warn_column_order,
)
from ..exceptions import add_error_context, invalid_input

_ALL_CLASSES_HINT = (
    " misses a class, name all, in the order of the columns, with labels="
)
_CONFIDENCE_HINT = (
    "where y_proba is the confidence in one predicted class, "
    "pass y_true == y_pred as y_true"
)

# The ways to make two-class problems of several classes.
MULTICLASS_REDUCTIONS = ("confidence", "top_label", "classwise")
MULTICLASS_MODES = ("auto", *MULTICLASS_REDUCTIONS)
# From here on compiled code is worth its import.
MIN_COMPILED_ROWS = 20_000


class Cells(NamedTuple):
    """The rows of a two-class problem, pooled by score: the input of most measures.

    Cells only have sums of weights. `PredictionsByScore` also have the numbers of rows,
    and draw resamples of them.

    Attributes
    ----------
    score : ndarray of shape (n_cells,)
        Distinct scores, increasing.
    mass, hits : ndarray of shape (n_cells,)
        Sum of the weights of all rows, and of those with the event, at each score.
    """

    score: FloatArray
    mass: FloatArray
    hits: FloatArray

    @property
    def residual(self) -> FloatArray:
        """Weighted sum of event less score in each cell; the weights of all rows sum to 1."""
        return (self.hits - self.mass * self.score) / self.mass.sum()


class _ProblemScoreOrder:
    """Scores of a two-class problem and their order, which resamples share."""

    def __init__(self, score, target=None, title="", rows=slice(None)):
        self.score = score
        # The event of a row is that its label is the target.
        self.target = target
        self.title = title
        # The rows of the predictions that this problem has.
        self.rows = rows
        self.derived = {}
        # True if resamples share these scores: sorting them once is worth it then.
        self.is_shared = False

    @cached_property
    def order_starts_and_distinct_scores(self):
        """Return the order of the rows, where each distinct score starts, and these scores."""
        order = slice(None)
        # Scores that are sorted already, as those of pooled rows, cost one comparison.
        if (self.score[1:] < self.score[:-1]).any():
            order = np.argsort(self.score)
        sorted_score = self.score[order]
        is_first = np.empty(len(sorted_score), dtype=bool)
        is_first[:1] = True
        np.not_equal(sorted_score[1:], sorted_score[:-1], out=is_first[1:])
        starts = np.flatnonzero(is_first)
        # A view of the caller's array must not be returned as the cells' own scores.
        is_copy = sorted_score.base is None and len(starts) == len(sorted_score)
        distinct = sorted_score if is_copy else sorted_score[starts]
        return order, starts, distinct


def _sum_runs(starts, values):
    """Sum over runs of rows of equal score.

    Without ties, return the values, never a view.
    """
    if len(starts) < len(values):
        return np.add.reduceat(values, starts)
    return values if values.base is None else values.copy()


@dataclass(frozen=True, eq=False)
class BinaryProblem:
    """One event per row with its score: the input of measures for two classes.

    Attributes
    ----------
    score : ndarray of shape (n_samples,)
        Predicted probability of the event.
    hit : ndarray of shape (n_samples,), float
        1 if it happened, else 0.
    weight : ndarray of shape (n_samples,)
        At least 0, not all 0.
    share : float
        The part of this problem in the average of several.
    title : str
        "class x", "confidence" or "predicted x".
    cells : Cells
        The rows pooled by score. Sorted once for all resamples of predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.metrics import BinaryProblem
    >>> problem = BinaryProblem(np.array([0.5, 0.2, 0.5]), np.array([1.0, 0, 0]), np.ones(3))
    >>> problem.cells.score.tolist(), problem.cells.mass.tolist(), problem.cells.hits.tolist()
    ([0.2, 0.5], [1.0, 2.0], [0.0, 1.0])
    """

    score: FloatArray
    hit: FloatArray
    weight: FloatArray
    share: float = 1.0
    title: str = ""
    _problem_scores: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self._problem_scores is None:
            object.__setattr__(self, "_problem_scores", _ProblemScoreOrder(self.score))

    @property
    def rows(self) -> AnyArray | slice:
        """Return the rows in this problem: all, or those of a predicted class."""
        return self._problem_scores.rows

    @cached_property
    def cells(self) -> Cells:
        """Return the rows pooled by score."""
        if self._is_hash_pooling_faster():
            from .._kernels._pool_by_score import pool_rows_by_score_if_possible

            score = np.ascontiguousarray(self.score, dtype=np.float64)
            pooled = pool_rows_by_score_if_possible(score, self.hit)
            if pooled is not None:
                return Cells(*pooled)
        order, starts, score = self._problem_scores.order_starts_and_distinct_scores
        weight = np.ones(len(self.hit))
        hits = self.hit[order]
        # Gathering weights takes as long as the sort, so equal ones are not gathered.
        if (self.weight != 1).any():
            weight = self.weight[order]
            hits = weight * hits
        return Cells(score, _sum_runs(starts, weight), _sum_runs(starts, hits))

    def _is_hash_pooling_faster(self):
        """Return whether pooling by a hash table is faster than sorting the scores."""
        if len(self.score) < MIN_COMPILED_ROWS or self._problem_scores.is_shared:
            return False
        is_sorted = "order_starts_and_distinct_scores" in vars(self._problem_scores)
        return not is_sorted and bool((self.weight == 1).all())

    def derive_from_scores(self, function: Callable[..., Any], *options: Any) -> Any:
        """Compute a function of the distinct scores, once for all resamples of predictions.

        Parameters
        ----------
        function : callable
            Takes the scores of the cells, and the options. A function of a module:
            results are kept by function and options.
        *options : hashable

        Returns
        -------
        result : object
        """
        results = self._problem_scores.derived
        return _memoize_by_function_and_options(
            results, function, self.cells.score, options
        )

    @cached_property
    def cell_indices(self) -> IntArray:
        """Return the position among the cells of each row."""
        order, starts, _ = self._problem_scores.order_starts_and_distinct_scores
        cell = np.zeros(len(self.score), dtype=np.intp)
        cell[starts[1:]] = 1
        cell_of_row = np.empty_like(cell)
        cell_of_row[order] = np.cumsum(cell)
        return cell_of_row


def _memoize_by_function_and_options(results, function, argument, options):
    """Compute the result of a function, and keep it in `results`."""
    key = function, options
    if key not in results:
        results[key] = function(argument, *options)
    return results[key]


@dataclass(eq=False, repr=False)
class Predictions:
    """Validated predictions with their labels and weights: the input of a measure.

    Made by `validate_predictions`. All derived arrays are made at first use,
    and the orders of the scores are shared by `with_labels` and `with_weight`, so that
    resamples sort nothing.

    Attributes
    ----------
    proba : ndarray of shape (n_samples, n_classes)
    second : ndarray of shape (n_samples,)
        The last column where there are two classes.
    codes : ndarray of shape (n_samples,), intp
        Positions of the true classes among `classes`.
    weight : ndarray of shape (n_samples,)
        At least 0, not all 0; ones if all that were given are equal, but for counts
        above 1.
    unit : float
        What `weight` has to be multiplied by to be the weights that were given.
    classes : ndarray of shape (n_classes,)
    positive : int
        Position of the positive class if there are two.
    is_resample : bool
        Whether it came from `with_labels` or `with_weight`: there will be others like
        it, so what serves many of one size pays.
    items : ndarray of shape (n_samples,), intp, or None
        For soft labels, which of the rows that were given each row comes from: rows of
        one item are not independent. None for labels of one class.
    clusters : ndarray of shape (n_samples,), intp, or None
        Which rows belong together, numbered from 0; None if they are independent.
    n_given : int
        The number of rows that were given, those of weight 0 too.
    kept : ndarray of shape (n_samples,), intp, or None
        Which of these the rows are; None for all.
    index : pandas Index or None
        Of the rows that were given, if labels, scores or weights have one.

    Examples
    --------
    >>> from sklearn_calib.metrics import validate_predictions
    >>> predictions = validate_predictions([0, 1, 0], [0.2, 0.9, 0.4])
    >>> predictions.proba.shape, predictions.codes.tolist(), predictions.mean(predictions.second)
    ((3, 2), [0, 1, 0], 0.5)
    """

    # All columns, or of shape (n, 1) the second of two: the first is made when needed.
    _columns: FloatArray
    codes: IntArray
    # None if all weights are 1.
    _weight: FloatArray | None
    classes: AnyArray
    positive: int = 1
    unit: float = 1.0
    items: IntArray | None = None
    clusters: IntArray | None = None
    kept: IntArray | None = None
    # The number of rows that the caller passed; -1 if none was left out or repeated.
    n_given: int = -1
    index: Any = None
    is_resample: bool = False
    _problem_scores_by_mode: dict[str, list[_ProblemScoreOrder]] = field(
        default_factory=dict
    )
    _derived: dict[Any, Any] = field(default_factory=dict)
    _problems: dict[str, list[BinaryProblem]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_given < 0:
            self.n_given = len(self.codes)

    @cached_property
    def proba(self) -> FloatArray:
        return add_first_class_column_if_single(self._columns)

    @property
    def second(self) -> FloatArray:
        return np.asarray(self._columns)[:, -1]

    @cached_property
    def weight(self) -> FloatArray:
        return np.ones(len(self.codes)) if self._weight is None else self._weight

    @property
    def n_items(self) -> int:
        """Return the number of given rows with positive weight."""
        if self.items is None:
            return len(self.codes)
        return len(np.unique(self.items))

    def mean(self, values: FloatArray) -> float:
        """Compute the weighted mean of one number per row."""
        if self._weight is None:
            return float(np.mean(values))
        return float(self.weight @ values / self.weight.sum())

    @property
    def n_clusters(self) -> int | None:
        """Return the number of clusters, or None if rows are independent."""
        return None if self.clusters is None else int(self.clusters.max()) + 1

    def expand_input_column(self, column: AnyArray) -> AnyArray:
        """Select the entries for the rows from a column with one entry for each given row."""
        if self.items is not None:
            return column[self.items]
        return column if self.kept is None else column[self.kept]

    def take(self, rows: AnyArray) -> "Predictions":
        """Return some of the rows."""
        weight = None if self._weight is None else self._weight[rows]
        clusters = self.clusters
        if clusters is not None:
            # Cluster numbers must have no gaps, because sums are indexed by them.
            clusters = np.unique(clusters[rows], return_inverse=True)[1].ravel()
        items = None if self.items is None else self.items[rows]
        return self._replace_rows(
            self._columns[rows],
            self.codes[rows],
            weight,
            items=items,
            clusters=clusters,
            kept=None,
            n_given=-1,
            index=None,
        )

    def with_proba(self, proba: FloatArray) -> "Predictions":
        """Return the same labels and weights with other (canonical) predictions."""
        return self._replace_rows(proba, self.codes, self._weight)

    def with_clusters(self, clusters: IntArray | None) -> "Predictions":
        """Return the same rows with a cluster number for each."""
        clustered = copy(self)
        clustered.clusters = clusters
        return clustered

    def check_single_labels(self, option: str, hint: str) -> None:
        """Raise ValueError for soft labels, if an option needs rows that are independent."""
        if self.items is not None:
            raise invalid_input(
                expected=f"rows of one label each, for {option}",
                got="soft labels, of which one row stands for several",
                hint=hint,
            )

    def with_labels(self, codes: IntArray) -> "Predictions":
        """Return the same predictions and weights with other labels."""
        return self._resample_rows(codes, self._weight)

    def with_weight(self, weight: FloatArray) -> "Predictions":
        """Return the same predictions and labels with other weights, not all 0."""
        return self._resample_rows(self.codes, weight)

    def _replace_rows(self, proba, codes, weight, **changes):
        """Return other predictions, from which nothing has been derived yet."""
        changes |= {
            "_problem_scores_by_mode": {},
            "_derived": {},
            "_problems": {},
            "is_resample": False,
        }
        return replace(self, _columns=proba, codes=codes, _weight=weight, **changes)

    def _resample_rows(self, codes, weight):
        """Return a resample that shares all results which only depend on the scores."""
        # A resample changes labels or weights only, so sort orders and kernels of the
        # predictions remain valid and are shared.
        resample = copy(self)
        vars(resample).pop("weight", None)
        resample.codes = codes
        resample._weight = weight
        resample._problems = {}
        resample.is_resample = True
        return resample

    def derive_from_proba(self, function: Callable[..., Any], *options: Any) -> Any:
        """Compute a function of the predictions, once for all resamples.

        Parameters
        ----------
        function : callable
            Takes `proba` and the options. A function of a module: results are kept by
            function and options.
        *options : hashable

        Returns
        -------
        result : object

        Examples
        --------
        >>> from sklearn_calib._validation import log_proba
        >>> from sklearn_calib.metrics import validate_predictions
        >>> predictions = validate_predictions([0, 1], [0.2, 0.9])
        >>> one, other = (predictions.with_labels(predictions.codes[::step]) for step in (1, -1))
        >>> one.derive_from_proba(log_proba) is other.derive_from_proba(log_proba)
        True
        """
        if not self.is_resample:
            return function(self.proba, *options)
        return _memoize_by_function_and_options(
            self._derived, function, self.proba, options
        )

    def problems(self, multiclass: Multiclass = "auto") -> list[BinaryProblem]:
        """Return the two-class problems of a `multiclass` option.

        Parameters
        ----------
        multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
            "confidence": the largest probability, and whether that class is true.
            "top_label": the same for each predicted class by itself, averaged with its
            share of the rows. "classwise": each class against the others, averaged
            equally. "auto": the positive class if there are two classes, else
            "confidence".

        Returns
        -------
        problems : list of BinaryProblem
        """
        check_choice(
            "multiclass",
            multiclass,
            MULTICLASS_MODES,
            "See the user guide, Measures",
        )
        if multiclass in self._problems:
            return list(self._problems[multiclass])
        score_orders = self._get_problem_scores(multiclass)
        total = self.weight.sum()
        problems = []
        for score_order in score_orders:
            hit = (self.codes[score_order.rows] == score_order.target).astype(float)
            weight = self.weight[score_order.rows]
            share = 1 / len(score_orders)
            if multiclass == "top_label":
                share = weight.sum() / total
            score_order.is_shared |= self.is_resample
            # A resample may have no row of a predicted class.
            if share > 0:
                problem = BinaryProblem(
                    score_order.score,
                    hit,
                    weight,
                    share,
                    score_order.title,
                    score_order,
                )
                problems.append(problem)
        self._problems[multiclass] = problems
        return list(problems)

    def _get_problem_scores(self, multiclass):
        """Return the scores of each two-class problem, which resamples share."""
        if multiclass in self._problem_scores_by_mode:
            return self._problem_scores_by_mode[multiclass]
        needs_one_column = multiclass == "auto" and self.positive == 1
        proba = np.asarray(self._columns if needs_one_column else self.proba)
        score_orders = []
        for number, rows, score, target in make_two_class_problems(
            multiclass, proba, self.positive
        ):
            title = name_problem(multiclass, self.classes, number)
            score_orders.append(_ProblemScoreOrder(score, target, title, rows))
        # Lists are stored only when they are complete, since threads share predictions.
        self._problem_scores_by_mode[multiclass] = score_orders
        return score_orders


class PredictionsByScore:
    """Rows of two classes, pooled by score, from which resamples of the rows are drawn.

    A `CellSample` of summaries draws independent rows, a `ClusterSample` whole
    clusters. Both keep only the numbers and weights of their rows in each cell.

    Attributes
    ----------
    proba : ndarray of shape (n_cells, 2)
        Probabilities of both labels, cells in increasing order of the second.
    counts, weight, squares : ndarray of shape (n_cells, 2)
        Numbers of rows with label 0 and 1, sums of their weights and squared weights.
    n_clusters : int or None
        The number of clusters that the rows belong to; None if they are independent.
    """

    proba: FloatArray
    counts: AnyArray
    weight: FloatArray
    squares: FloatArray
    n_clusters: int | None = None

    @cached_property
    def predictions(self) -> Predictions:
        """Return the cells as `Predictions` of labels 0 and 1: a row for each cell and label."""
        codes = np.tile(np.arange(2), len(self.proba))
        predictions = Predictions(
            np.repeat(self.proba, 2, axis=0),
            codes,
            self.weight.ravel(),
            np.arange(2),
        )
        # The cells are sorted here, once for all resamples.
        predictions.problems()
        return predictions

    @cached_property
    def filled_predictions_and_squares(self) -> tuple[Predictions, FloatArray]:
        """Return the entries of `predictions` that have rows, and their summed squared weights."""
        filled = np.flatnonzero(self.counts.ravel())
        return self.predictions.take(filled), self.squares.ravel()[filled]


def validate_predictions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    validate: Callable[..., FloatArray] = read_proba_keeping_single_column,
    *,
    check_order: bool = True,
    soft_labels: bool = False,
    input_name: str = "y_proba",
) -> Predictions:
    """Check the arguments that every measure takes, and return them as `Predictions`.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label
        As every measure takes them. Columns of a table of probabilities that are named
        after the classes come into their order.
    validate : callable, optional
        Another function than `canonical_proba` that checks the scores, called with
        ``(y_proba, input_name=input_name)``.
    check_order : bool, default=True
        Warn if the columns fit another order than that of `labels` far better.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as every measure takes them.
    input_name : str, default="y_proba"
        The argument of probabilities that errors name.

    Returns
    -------
    predictions : Predictions
        Rows of weight 0 are left out. Of soft labels each row comes once per class that
        has a share of it, one after the other.

    Raises
    ------
    ValueError, TypeError
        Invalid scores, labels or weights; see `canonical_proba`. A single column,
        neither `pos_label` nor `labels`, and labels other than 0 and 1, False and True,
        or -1 and 1. Indexes of pandas that hold different labels, see `check_and_get_common_index`.

    Warns
    -----
    CalibrationWarning
        Indexes of pandas that hold the same labels in different orders; `labels` in an
        order of their own which the columns cannot have.

    Notes
    -----
    A single column is the probability of `pos_label` if that is given, else of the last
    class.

    Examples
    --------
    >>> from sklearn_calib.metrics import validate_predictions
    >>> validate_predictions([0, 1], [0.2, 0.9], sample_weight=[0, 1]).codes.tolist()
    [1]
    """
    index = check_and_get_common_index(y_true, y_proba, sample_weight)
    proba = validate(y_proba, input_name=input_name)
    n_given = len(proba)
    is_ordered = labels is not None
    items = None
    kept = None
    if read_bool_with_none_as_false(soft_labels, "soft_labels"):
        # Each row is repeated for each of its classes, with the shares as weights.
        soft = validate_soft_labels(
            y_true,
            sample_weight,
            labels,
            n_rows=n_given,
            scores=y_proba,
        )
        proba, y_true, sample_weight, labels = soft.expand_scores_to_fit_arguments(
            proba
        )
        items = soft.items
    classes, codes = read_labels(y_true, classes=labels)
    check_same_length(codes, proba)
    # A single column is the probability of one of two classes.
    n_columns = max(proba.shape[1], 2)
    if len(classes) != n_columns:
        hint = "Pass one column per class, or " + _CONFIDENCE_HINT
        if len(classes) < n_columns:
            hint = "If y_true" + _ALL_CLASSES_HINT
        raise invalid_input(
            "y_proba",
            expected=f"one class for each of the {n_columns} columns of y_proba",
            got=f"{len(classes)} classes, {classes[:10].tolist()}",
            hint=hint,
        )
    proba = reorder_columns_if_names_match(proba, y_proba, classes)
    positive = find_positive_index_or_second(classes, pos_label)
    if pos_label is None and not is_ordered:
        raise_if_single_column_class_unclear(y_proba, classes, "pos_label")
    proba = get_proba_with_single_column_at_class(proba, y_proba, positive)
    weight = None
    unit = 1.0
    if sample_weight is not None:
        weight, unit = read_weight_and_unit(sample_weight, len(codes))
        # Rows of weight 0 are dropped, so that measures need not handle empty cells.
        if not weight.all():
            kept = np.flatnonzero(weight)
            proba = proba[kept]
            codes = codes[kept]
            weight = weight[kept]
        # Without weights most sums are faster and exactly those of counts.
        if (weight == 1).all():
            weight = None
    if is_ordered and check_order:
        warn_column_order(proba, codes, classes, "labels", weight)
    return Predictions(
        proba,
        codes,
        weight,
        classes,
        positive,
        unit,
        items=items,
        kept=kept,
        n_given=n_given,
        index=index,
    )


def validate_multilabel(
    y_true: Any,
    y_proba: Any,
    multilabel: Literal["macro", "micro"],
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    validate: Callable[..., FloatArray] = read_proba_keeping_single_column,
) -> list[tuple[str, Predictions]]:
    """Check predictions of many labels per row, and split them into two-class predictions.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        1 if a row has the label, 0 if not, NaN if unknown.
    y_proba : array-like of shape (n_samples, n_labels), or list of n_labels array-likes
        The probability of each label; or for each label an array of shape (n_samples,
        2).
    multilabel : {"macro", "micro"}
        "macro": one for each label, of the rows where it is known. "micro": one of all
        known pairs of a row and a label.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0.
    labels : array-like of shape (n_labels,), default=None
        Names of the labels; by default the names of the columns of `y_true`, or their
        numbers.
    validate : callable, optional
        As in `validate_predictions`.

    Returns
    -------
    all_predictions : list of (str, Predictions)
        A title, such as "label rain", and the predictions.

    Raises
    ------
    ValueError, TypeError
        Another option; invalid scores, labels or weights; a label that is known of no
        row.

    Examples
    --------
    >>> from sklearn_calib.metrics import validate_multilabel
    >>> Y, P = [[1, 0], [0, float("nan")]], [[0.9, 0.2], [0.3, 0.6]]
    >>> [(title, len(one.codes)) for title, one in validate_multilabel(Y, P, "macro")]
    [('label 0', 2), ('label 1', 1)]
    >>> [(title, len(one.codes)) for title, one in validate_multilabel(Y, P, "micro")]
    [('all labels', 3)]
    """
    if not isinstance(multilabel, str) or multilabel not in ("macro", "micro"):
        raise invalid_input(
            expected="multilabel 'macro' or 'micro'",
            got=repr(multilabel),
            hint="See the user guide",
        )
    check_and_get_common_index(y_true, y_proba, sample_weight)
    names, pairs, table = read_label_names_proba_and_table(y_true, y_proba, labels)
    weight = read_raw_weight(sample_weight, len(table))
    if len(names) != len(pairs):
        raise invalid_input(
            expected=f"{len(pairs)} names as labels",
            got=f"{len(names)}",
            hint="Name each column of y",
        )
    rows_by_label = []
    for label, name in enumerate(names):
        known_rows = find_known_rows(table, label)
        known_rows = known_rows[weight[known_rows] > 0]
        if not len(known_rows):
            raise invalid_input(
                expected="a known label in every column",
                got=f"none for {name}",
                hint="Drop the column",
            )
        rows_by_label.append(known_rows)

    def pool_labels_into_one_problem(label_numbers):
        """Validate the known rows of some labels as one two-class problem."""
        hits = []
        proba = []
        weights = []
        for i in label_numbers:
            rows = rows_by_label[i]
            hits.append(table[rows, i])
            proba.append(pairs[i][rows])
            weights.append(weight[rows])
        return validate_predictions(
            np.concatenate(hits).astype(np.intp),
            stack_proba_rows(proba),
            None if sample_weight is None else np.concatenate(weights),
            BINARY_CLASSES,
            validate=validate,
        )

    if multilabel == "micro":
        return [("all labels", pool_labels_into_one_problem(range(len(pairs))))]
    all_predictions = []
    for i, name in enumerate(names):
        with add_error_context(source=f"label {name}"):
            all_predictions.append((f"label {name}", pool_labels_into_one_problem([i])))
    return all_predictions
