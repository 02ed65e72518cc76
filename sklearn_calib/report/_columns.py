"""Whether columns of probabilities are in the order of the classes, or of the labels."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from .._show import join_truncated, quote_text
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray
from .._validation import find_likely_class_by_column, read_label_names_proba_and_table
from ..exceptions import invalid_input
from ..metrics import Predictions, validate_predictions
from ._models import ReportedModel


class ColumnOrder(NamedTuple):
    """The result of `find_column_order`: another order of the classes that fits far better.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        In the order of the columns that fits.
    accuracy, accuracy_as_given : float
        How often the largest probability is that of the true class, in that order and
        as given.
    """

    classes: AnyArray
    accuracy: float
    accuracy_as_given: float


def find_column_order(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> ColumnOrder | None:
    """Find out whether the columns are in another order of the classes than the given one.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        The classes in the order of the columns; sorted by default.
    pos_label : label, default=None
        The class of two that a single column belongs to; required as in the measures.

    Returns
    -------
    order : ColumnOrder or None
        None if there is no evidence, or too little, against the given order.

    Raises
    ------
    ValueError
        Invalid scores or labels.

    Notes
    -----
    Poor predictions are not a wrong order: all of the following must hold, in the rows of
    the classes that another assignment of classes to columns moves (the best one for
    the confusion matrix). It puts the largest probability on the true class in at least
    30 % more of them; each of its columns ranks its class well, AUC at least 0.65; and
    no ranks without information would do so with probability 1e-9 (Mann and Whitney's
    test, the mean over classes), divided by the number of orders. So of two classes a
    model must rank backwards, at any level of its probabilities, with at least some 25
    rows of each as evidence. Cost: O(n k).

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.report import find_column_order
    >>> proba, y = make_overconfident(3, 500)
    >>> find_column_order(y, proba) is None
    True
    >>> find_column_order(y, proba[:, [1, 2, 0]]).classes.tolist()
    [1, 2, 0]
    """
    return find_better_order(
        validate_predictions(
            y_true,
            y_proba,
            sample_weight,
            labels,
            pos_label,
            check_order=False,
        )
    )


def find_better_order(predictions: Predictions) -> ColumnOrder | None:
    """Return `find_column_order` of checked rows."""
    proba = np.asarray(predictions.proba)
    codes = predictions.codes
    weight = predictions.weight
    places = find_likely_class_by_column(proba, codes, weight)
    if places is None:
        return None
    # The predicted class under another order is the class that this order gives to the
    # largest column.
    largest = proba.argmax(axis=1)
    return ColumnOrder(
        predictions.classes[places],
        float(np.average(places[largest] == codes, weights=weight)),
        float(np.average(largest == codes, weights=weight)),
    )


def check_column_order(predictions: Predictions, name: str) -> None:
    """Raise ValueError if the order of the columns cannot be meant."""
    better = find_better_order(predictions)
    if better is None:
        return
    current = predictions.classes.tolist()[:20]
    fits = better.classes.tolist()[:20]
    raise invalid_input(
        expected=f"columns of {name} in the order of the classes {current}",
        got=(
            f"columns that fit {fits}: the largest probability is that of the true "
            f"class in {better.accuracy_as_given:.4f} of the rows as given, in "
            f"{better.accuracy:.4f} in that order"
        ),
        hint=(
            f"Pass labels={fits}, or as pos_label the class that a single column "
            "belongs to; where they are meant as they are, check_columns=False"
        ),
    )


def check_summary_column_order(models: Mapping[str, ReportedModel]) -> None:
    """Check the columns of summaries; with several classes, by their sample of rows."""
    for name, model in models.items():
        sample = None if model.two_classes else model.sample_multiclass_rows_if_any()
        if sample is not None:
            check_column_order(sample.predictions, name)
        # A summary only stores whether its scores rank the labels backwards.
        if model.two_classes and model.summary.samples()[0].exchanged:
            positive = np.asarray(model.positive).tolist()
            raise invalid_input(
                expected=f"probabilities of the class {positive!r} in the summary {name}",
                got="probabilities of the other class",
                hint=(
                    "Summarise the other column, or 1 - p; if they are meant, pass "
                    "check_columns=False"
                ),
            )


_INTENDED_COLUMNS_HINT = "; where they are meant, check_columns=False"


# A column that moves has at least this area for the label that it moves to.
_MIN_MOVED_COLUMN_AUC = 0.65
# A label that gets another column gains at least this area.
_MIN_MOVED_COLUMN_AUC_GAIN = 0.1
# The gain in standard errors of one area; these are six of a difference of two areas.
_MIN_AUC_GAIN_STANDARD_ERRORS = 8.5
_MAX_NAMED_LABELS = 5


def check_label_order(
    all_predictions: dict[str, Predictions], y_true: Any, y_proba: Any
) -> None:
    """Raise ValueError if the columns of other labels rank some labels far better.

    Parameters
    ----------
    all_predictions : dict of str to Predictions
        Of each label.
    y_true, y_proba
        The tables as they were given.
    """
    backwards = [
        name
        for name, predictions in all_predictions.items()
        if find_better_order(predictions) is not None
    ]
    if backwards:
        names = [quote_text(name, 40) for name in backwards]
        raise invalid_input(
            "y_proba",
            expected="columns of y_proba with the probability that a row has the label",
            got=f"{join_truncated(names, _MAX_NAMED_LABELS)} ranked backwards, far beyond chance",
            hint=("Pass the other column, or 1 - p" + _INTENDED_COLUMNS_HINT),
        )
    _, pairs, table = read_label_names_proba_and_table(
        y_true, y_proba, list(all_predictions)
    )
    places = find_better_columns(
        np.column_stack([np.asarray(pair)[:, 1] for pair in pairs]), table
    )
    if places is None:
        return
    names = [quote_text(name, 40) for name in all_predictions]
    moved = [
        f"{names[label]} by the column of {names[place]}"
        for label, place in enumerate(places.tolist())
        if label != place
    ]
    raise invalid_input(
        "y_proba",
        expected="columns of y_proba in the order of the labels",
        got=(
            "labels that other columns rank far better: "
            f"{join_truncated(moved, _MAX_NAMED_LABELS)}"
        ),
        hint="Bring the columns into the order of the labels" + _INTENDED_COLUMNS_HINT,
    )


def find_better_columns(proba: FloatArray, table: FloatArray) -> IntArray | None:
    """Return the column of each label in an order that fits far better, or None.

    The areas under the ROC curve of every column for every label decide. An exchange of
    the best assignment is kept if each of its labels gains at least 0.1 and six standard
    errors, and reaches 0.65. Labels that merely depend on each other do not gain: their
    own columns rank them as well.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, n_labels)
    table : ndarray of shape (n_samples, n_labels)
        0, 1, and NaN if a label is not known.
    """
    # Areas under the ROC curve of every column for every label, from the mean ranks of
    # both kinds of rows.
    ranks = rankdata(proba, axis=0) - 0.5
    hits = np.nan_to_num(table)
    misses = np.where(np.isnan(table), 0.0, 1.0 - table)
    ones = hits.sum(axis=0)
    zeros = misses.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The difference of mean ranks, of shape (columns, labels).
        gap = ranks.T @ (hits / ones) - ranks.T @ (misses / zeros)
        # The standard error of the area if the column is unrelated to the label: ranks
        # are uniform, with variance 1/12.
        error = np.sqrt((1 / ones + 1 / zeros) / 12)
    area = 0.5 + np.where(np.isfinite(gap), gap, 0.0) / len(table)
    # The assignment with the largest sum of areas.
    columns, labels = linear_sum_assignment(area, maximize=True)
    places = np.empty(len(labels), dtype=np.intp)
    places[labels] = columns
    label = np.arange(len(places))
    new_area = area[places, label]
    old_area = area[label, label]
    gain = new_area - old_area
    is_clear = (
        (new_area >= _MIN_MOVED_COLUMN_AUC)
        & (gain >= _MIN_MOVED_COLUMN_AUC_GAIN)
        & (gain >= _MIN_AUC_GAIN_STANDARD_ERRORS * error)
    )
    # Columns change places in cycles; each cycle is judged by itself, and only if all
    # its labels gain clearly.
    for cycle in _iter_column_cycles(places):
        if not is_clear[cycle].all():
            places[cycle] = cycle
    return places if (places != label).any() else None


def _iter_column_cycles(places):
    """Yield groups of labels that exchange their columns among themselves."""
    remaining = set(np.flatnonzero(places != np.arange(len(places))).tolist())
    while remaining:
        cycle = [remaining.pop()]
        while (after := int(places[cycle[-1]])) != cycle[0]:
            cycle.append(after)
        remaining.difference_update(cycle)
        yield np.array(cycle)
