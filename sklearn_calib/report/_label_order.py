"""Many labels per row: whether the columns of probabilities are those of their labels."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from .._show import quoted
from .._typing import FloatArray, IntArray
from ..canonical import canonical_label_scores, canonical_label_table
from ..exceptions import named, refuse, setting
from ._columns import order_of_case

_MEANT = "; where they are meant, " + setting("check_columns", False)

if TYPE_CHECKING:
    from ..metrics import Case

_LEAST_AREA = 0.65  # of each column that moves, for the label that it moves to
_LEAST_GAIN = 0.1  # in area, of each label that gets another column
_LEAST_ERRORS = 8.5  # of an area, which are six of a difference of two
_NAMED = 5


def check_order_of_labels(cases: "dict[str, Case]", y_true: Any, y_proba: Any, where: str) -> None:
    """Raise ValueError where columns cannot be meant for the labels that they stand for.

    Parameters
    ----------
    cases : dict of str to Case
        Of each label.
    y_true, y_proba
        The tables as they were given.
    where : str
    """
    backwards = [name for name, case in cases.items() if order_of_case(case) is not None]
    if backwards:
        refuse(
            where,
            "columns of " + named("y_proba") + " with the probability that a row has the label",
            f"{_listed(backwards)} ranked backwards, far beyond chance",
            setting("other_column", words="Pass the other column, or 1 - p") + _MEANT,
        )
    pairs, _ = canonical_label_scores(y_proba, where)
    table = canonical_label_table(y_true, len(pairs[0]), len(pairs), where)
    places = better_columns(np.column_stack([np.asarray(pair)[:, 1] for pair in pairs]), table)
    if places is None:
        return
    names = list(cases)
    moved = [
        f"{quoted(names[label], 40)} by the column of {quoted(names[place], 40)}"
        for label, place in enumerate(places.tolist())
        if label != place
    ]
    more = f" and {len(moved) - _NAMED} more" if len(moved) > _NAMED else ""
    refuse(
        where,
        "columns of " + named("y_proba") + " in the order of the labels",
        f"labels that other columns rank far better: {', '.join(moved[:_NAMED])}{more}",
        "Bring the columns into the order of the labels" + _MEANT,
    )


def better_columns(proba: FloatArray, table: FloatArray) -> IntArray | None:
    """The column of each label in an order that fits far better; None where nothing says so.

    Areas under the ROC curve of every column for every label decide. Of the best assignment those
    exchanges are kept in which each label gains at least 0.1 and six standard errors, and reaches
    0.65. Labels that merely depend on each other do not gain: their own columns rank them as well.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, n_labels)
    table : ndarray of shape (n_samples, n_labels)
        0, 1, and NaN where a label is not known.
    """
    ranks = rankdata(proba, axis=0) - 0.5
    hits = np.nan_to_num(table)
    rest = np.where(np.isnan(table), 0.0, 1.0 - table)
    ones, zeros = hits.sum(axis=0), rest.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = ranks.T @ (hits / ones) - ranks.T @ (rest / zeros)  # columns by labels
        error = np.sqrt((1 / ones + 1 / zeros) / 12)
    area = 0.5 + np.where(np.isfinite(gap), gap, 0.0) / len(table)
    columns, labels = linear_sum_assignment(area, maximize=True)
    places = np.empty(len(labels), dtype=np.intp)
    places[labels] = columns
    label = np.arange(len(places))
    new, own = area[places, label], area[label, label]
    gain = new - own
    sure = (new >= _LEAST_AREA) & (gain >= _LEAST_GAIN) & (gain >= _LEAST_ERRORS * error)
    for cycle in _cycles(places):
        if not sure[cycle].all():
            places[cycle] = cycle
    return places if (places != label).any() else None


def _cycles(places):
    """Labels that exchange their columns, in groups that do so among themselves."""
    left = set(np.flatnonzero(places != np.arange(len(places))).tolist())
    while left:
        cycle = [left.pop()]
        while (after := int(places[cycle[-1]])) != cycle[0]:
            cycle.append(after)
        left.difference_update(cycle)
        yield np.array(cycle)


def _listed(names):
    shown = ", ".join(quoted(name, 40) for name in names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
