"""Which classes columns of probabilities belong to: by name, the owner of a single one, the order.

The indexes of rows are compared here too.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from .._argument_checks import is_scalar_equal
from .._simplex_array import take_columns_or_zeros
from .._typing import AnyArray, FloatArray, IntArray
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._arrays import collect_lazy_frame
from ._labels import has_unsorted_classes, read_labels
from ._scores import add_first_class_column_if_single

# Columns are taken for permuted if ranks this good have a smaller chance.
_MAX_LOG_PERMUTATION_P_VALUE = np.log(1e-9)
# Under the other order, the fraction of rows whose true class has the largest
# probability must be higher by this much.
MIN_PERMUTED_ACCURACY_GAIN = 0.3
# Under the other order each class must have at least this area under the ROC curve.
_MIN_PERMUTED_AUC = 0.65
# A score without information exceeds this in one of a thousand tables.
_MIN_SIGNIFICANT_RANK_Z_SCORE = 3.09
EQUAL_LABEL_TEXTS = {"True": "1", "true": "1", "False": "0", "false": "0"}
_MISALIGNED_INDEX_HINT = (
    "Bring them into one order first, for instance with p.loc[y.index]; or pass "
    ".to_numpy() of each if the rows are in the same order"
)


def get_raw_column_names(table: Any) -> Any:
    """Return the names of the columns of a table as it has them; None of anything else."""
    table = collect_lazy_frame(table)
    return getattr(table, "column_names", getattr(table, "columns", None))


def get_given_column_names(table: Any) -> list[str] | None:
    """Return the names of the columns of a table of pandas, polars or Arrow, as text.

    None if they have no meaning: for all but tables, and for the numbers from 0 that
    pandas gives to columns without names.
    """
    names = get_raw_column_names(table)
    return None if names is None or _is_default_index(names) else [*map(str, names)]


def _is_default_index(index):
    """Return whether an index of pandas only counts from 0."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def find_columns_if_names_match(table: Any, *alternatives: Any) -> IntArray | None:
    """Return where in a table each wanted column is; None unless all names are the wanted ones.

    Parameters
    ----------
    table : object
        A table of pandas, polars or Arrow, or a list of names; anything else has none.
    *wanted : iterable or None
        Classes or names, which are compared as text. If that fails, 1, 1.0 and True are
        the same, and so are 0, 0.0 and False. The first that the table has counts.

    Returns
    -------
    places : ndarray of shape (n_wanted,), or None

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_calib._validation import find_columns_if_names_match
    >>> scores = pd.DataFrame([[0.9, 0.1]], columns=["yes", "no"])
    >>> find_columns_if_names_match(scores, ["no", "yes"])
    array([1, 0])
    """
    named = isinstance(table, list) and all(isinstance(text, str) for text in table)
    names = table if named else get_given_column_names(table)
    if names is None or len(names) < 2:
        return None
    for labels in alternatives:
        texts = [] if labels is None else [*map(str, labels)]
        # Exact texts come first: columns named "1" and "1.0" may be different.
        for read in (str, _unify_number_and_bool_text):
            places = {read(name): place for place, name in enumerate(names)}
            keys = [*map(read, texts)]
            if len(names) == len(keys) and {*keys} == {*places}:
                return np.array([places[key] for key in keys])
    return None


def _unify_number_and_bool_text(text):
    """Return the text of a whole number without a point, 1 for true and 0 for false."""
    return EQUAL_LABEL_TEXTS.get(text, text.removesuffix(".0"))


def reorder_columns_if_names_match(
    proba: FloatArray, table: Any, *wanted: Any
) -> FloatArray:
    """Return what was made of a table with its columns in the wanted order.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, n_classes)
    table : object
        The scores as they were given.
    *wanted : iterable or None
        As `find_columns_if_names_match` takes them: the classes, and other names that
        the columns may have.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
        As it came, unless the table has columns of these names in another order.
    """
    if isinstance(table, np.ndarray):
        return proba
    places = find_columns_if_names_match(table, *wanted)
    if places is None or (places[:-1] < places[1:]).all():
        return proba
    return proba[:, places]


def check_and_get_common_index(*tables: Any, first: Any = None) -> Any:
    """Compare the index of what belongs to the same rows with the first one that there is.

    Rows are always taken by position, so two orders of one index are a mistake, or an
    accident that changes nothing. An index that only counts from 0, as that of
    ``pd.Series(array)``, may differ: it was made independently of the rows. If it holds
    the same numbers in another order, it is compared.

    Parameters
    ----------
    *given : object
        Labels, scores, weights, groups. Only Series and DataFrames of pandas, and dicts
        of them, have an index.
    first : pandas Index, default=None
        The index of what was given before.

    Returns
    -------
    first : pandas Index or None
        The first index that there is.

    Raises
    ------
    ValueError
        Two hold different labels, and neither only counts from 0.

    Warns
    -----
    CalibrationWarning
        Two hold the same labels in different orders; once per call.
    """
    for values in tables:
        if isinstance(values, dict):
            values = next(iter(values.values()), None)
        # Only tables of pandas have an index; other arrays follow the first one.
        index = values.index if hasattr(values, "iloc") else first
        first = index if first is None else first
        if index is first or len(index) != len(first) or index.equals(first):
            continue
        expected = "one index for labels, scores, weights and groups of the same rows"
        # An index of dates does not count rows.
        numbers = [
            labels_array
            for labels_array in (index, first)
            if labels_array.dtype.kind not in "mM"
        ]
        counted = any(
            np.array_equal(labels_array, np.arange(len(index)))
            for labels_array in numbers
        )
        if counted and not (len(index) - 1 in index and len(index) - 1 in first):
            # The counted rows have other labels, so they need not be compared one by
            # one.
            continue
        labels = index.tolist()
        others = first.tolist()
        apart = {*labels} ^ {*others}
        if not apart:
            warn_calibration(
                expected=expected,
                got="one index in two orders, of which neither is followed",
                hint=_MISALIGNED_INDEX_HINT,
            )
            break
        if not counted:
            label = next(label for label in labels + others if label in apart)
            raise invalid_input(
                expected=expected,
                got=f"{label!r} in some only",
                hint=_MISALIGNED_INDEX_HINT,
            )
    return first


# -- orders that fit the labels better ------------------------------------------------------------


def is_single_column(scores: Any) -> bool:
    """Return whether scores are those of one of two classes alone."""
    return len(np.shape(scores)) == 1 or np.shape(scores)[1:] == (1,)


def raise_if_single_column_class_unclear(
    scores: Any, classes: AnyArray, argument: str
) -> None:
    """Raise ValueError if it is unknown which of two classes a single column belongs to.

    Only 0 and 1, False and True, -1 and 1 have an order that everybody means.
    `argument` is the one to add: "pos_label" names a class, any other both of them, in
    the order of the columns.
    """
    names = classes.tolist()
    if len(names) != 2 or names in ([0, 1], [-1, 1]) or not is_single_column(scores):
        return
    raise invalid_input(
        expected="to be told which class a single column of probabilities belongs to",
        got=f"labels {names}",
        sentence=(
            f"The labels {names} have no natural order, so it is unclear which class "
            "a single column of probabilities belongs to"
        ),
        hint=suggest_single_column_class(names, argument),
    )


def suggest_single_column_class(names: list[Any], argument: str) -> str:
    """Return the hint for a column without an owner: the argument with either class."""
    first, second = names
    owner = f"{argument}={second if argument == 'pos_label' else names!r}"
    other = f"{argument}={first if argument == 'pos_label' else [second, first]!r}"
    return "Pass " + owner + f" if it is the probability of {second!r}, else " + other


def find_positive_index_or_second(
    classes: AnyArray, pos_label: object, hint: str = "Name one of the labels"
) -> int:
    """Return the position of the positive class, 1 if none is named."""
    if pos_label is None:
        return 1
    names = classes.tolist()
    places = [
        place for place, label in enumerate(names) if is_scalar_equal(pos_label, label)
    ]
    if len(places) != 1:
        raise invalid_input(
            "pos_label",
            expected=f"pos_label among {names}",
            got=repr(pos_label),
            hint=hint,
        )
    return places[0]


def get_proba_with_single_column_at_class(
    proba: FloatArray, scores: Any, positive: int
) -> FloatArray:
    """Return checked rows in which a single column of `scores` is that of the class `positive`."""
    if positive == 1 or not is_single_column(scores):
        return proba
    return take_columns_or_zeros(
        add_first_class_column_if_single(proba), np.array([1, 0])
    )


def align_columns(proba: Any, proba_classes: AnyArray, classes: AnyArray) -> Any:
    """Return columns of the classes `proba_classes` in the order of `classes`.

    Classes that are not known get probability 0.
    """
    if np.array_equal(proba_classes, classes):
        return proba
    _, places = read_labels(proba_classes, classes=classes)
    return place_columns(proba, places, len(classes))


def place_columns(proba: Any, places: IntArray, n_classes: int) -> Any:
    """Return a table of `n_classes` columns in which the given ones are at `places`."""
    if np.array_equal(places, np.arange(n_classes)):
        return proba
    source = np.full(n_classes, -1)
    source[places] = np.arange(len(places))
    return take_columns_or_zeros(proba, source)


def find_likely_class_by_column(
    proba: FloatArray, codes: IntArray, weight: FloatArray | None = None
) -> IntArray | None:
    """Return the class of each column if it cannot be the given one.

    See `find_column_order`.
    """
    k = proba.shape[1]
    table = np.bincount(codes * k + proba.argmax(axis=1), weight, k * k).reshape(k, k)
    # The assignment of columns to classes that predicts most rows correctly.
    column = _assign_column_to_each_class(table)
    moved = np.flatnonzero(column != np.arange(k))
    rows = np.flatnonzero(np.isin(codes, moved))
    if not len(rows):
        return None
    scores = proba[rows]
    row_codes = codes[rows]
    top = moved[scores[:, moved].argmax(axis=1)]
    # How many more rows the other order predicts correctly, as a fraction of these
    # rows.
    farther = np.average(
        (top == column[row_codes]) * 1.0 - (top == row_codes),
        weights=None if weight is None else weight[rows],
    )
    if farther < MIN_PERMUTED_ACCURACY_GAIN:
        return None
    ranks = [
        count_correctly_ranked_pairs(
            scores[:, column[column_class]], row_codes == column_class
        )
        for column_class in moved[np.isin(moved, row_codes)]
    ]
    return np.argsort(column) if are_ranked_well(ranks, k) else None


COLUMN_ORDER_HINT = (
    "pass the order that they have, or the columns in the order that is named"
)


def describe_doubtful_order(
    proba: FloatArray,
    codes: IntArray,
    classes: AnyArray,
    order_argument: str,
    weight: FloatArray | None = None,
) -> tuple[str, str, str] | None:
    """Describe columns named in an order of their own that must have another one.

    Only an order that is not that of the sorted labels is doubted: who names it may
    have meant the order of a scale, and the columns of scikit-learn are sorted. `order_argument`
    is the argument's name. Returns what is expected, what was got and the hint, as
    `warn_calibration` takes them.
    """
    names = classes.tolist()
    table = np.asarray(proba)
    if (
        not has_unsorted_classes(classes)
        or not len(table)
        or table.shape[1] != len(names)
    ):
        return None
    places = find_likely_class_by_column(table, codes, weight)
    if places is None:
        return None
    right = table.argmax(axis=1)
    fits = [names[place] for place in places]
    return (
        f"columns in the order of {order_argument}={names[:20]}",
        f"columns that fit {fits[:20]}: the largest probability is that of the true class in "
        f"{np.average(right == codes, weights=weight):.2f} of the rows as given, in "
        f"{np.average(places[right] == codes, weights=weight):.2f} in that order",
        f"{order_argument}= names the columns and does not move them: {COLUMN_ORDER_HINT}",
    )


def warn_column_order(
    proba: FloatArray,
    codes: IntArray,
    classes: AnyArray,
    order_argument: str,
    weight: FloatArray | None = None,
) -> None:
    """Warn if `describe_doubtful_order` finds columns that must have another order."""
    words = describe_doubtful_order(proba, codes, classes, order_argument, weight)
    if words is not None:
        warn_calibration(*words)


def _assign_column_to_each_class(table):
    """Assign to each class the column of the most rows, its own in case of a tie."""
    k = len(table)
    if (table.argmax(axis=1) == np.arange(k)).all():
        return np.arange(k)
    return linear_sum_assignment(table + 1e-6 * np.eye(k), maximize=True)[1]


class OrderedPairAndRowCounts(NamedTuple):
    """Pairs of a row of a class and one of another in this order, and the numbers of both."""

    pairs: float
    ones: float
    others: float

    @property
    def auc(self) -> float:
        return self.pairs / (self.ones * self.others)

    @property
    def z_score(self) -> float:
        """Return Mann and Whitney's statistic, standard normal for ranks without information."""
        spread = np.sqrt((self.ones + self.others + 1) / (12 * self.ones * self.others))
        return float((self.auc - 0.5) / spread)

    @property
    def is_significant(self) -> bool:
        """Return whether the order holds at the level 0.001, one-sided."""
        return bool(
            self.ones and self.others and self.z_score > _MIN_SIGNIFICANT_RANK_Z_SCORE
        )


def count_correctly_ranked_pairs(
    score: AnyArray, hit: AnyArray
) -> OrderedPairAndRowCounts:
    """Count the pairs that a score ranks correctly; `hit` marks the rows of the class."""
    ones = float(hit.sum())
    others = float((~hit).sum())
    return OrderedPairAndRowCounts(
        stats.rankdata(score)[hit].sum() - ones * (ones + 1) / 2, ones, others
    )


def are_ranked_well(ranks: Sequence[OrderedPairAndRowCounts], k: int) -> bool:
    """Return whether all classes are ranked well, and together better than chance allows."""
    if not all(
        pair_ranks.others and pair_ranks.auc >= _MIN_PERMUTED_AUC
        for pair_ranks in ranks
    ):
        return False
    chance = stats.norm.logsf(np.mean([pair_ranks.z_score for pair_ranks in ranks]))
    return bool(chance + gammaln(k + 1) < _MAX_LOG_PERMUTATION_P_VALUE)
