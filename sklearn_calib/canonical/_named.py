"""Tables whose columns and rows have names: columns are matched by name, rows are only checked."""

from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..exceptions import caution, refuse
from ._arrays import collected

_SAME = {"True": "1", "true": "1", "False": "0", "false": "0"}
_REMEDY = (
    "Bring them into one order first, for instance with p.loc[y.index]; or pass "
    ".to_numpy() of each if the rows are in the same order"
)


def names_in(table: Any) -> Any:
    """Return the names of the columns of a table as it has them; None of anything else."""
    table = collected(table)
    return getattr(table, "column_names", getattr(table, "columns", None))


def column_names(table: Any) -> list[str] | None:
    """Return the names of the columns of a table of pandas, polars or Arrow, as text.

    None if they say nothing: of anything but a table, and of the numbers from 0 that
    pandas counts columns with if nobody has named them.
    """
    names = names_in(table)
    return None if names is None or _is_counted(names) else [*map(str, names)]


def _is_counted(index):
    """Return whether an index of pandas only counts from 0."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def find_columns(table: Any, *wanted: Any) -> IntArray | None:
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
    >>> from sklearn_calib.canonical import find_columns
    >>> find_columns(pd.DataFrame([[0.9, 0.1]], columns=["yes", "no"]), ["no", "yes"])
    array([1, 0])
    """
    names = table if isinstance(table, list) else column_names(table)
    if names is None or len(names) < 2:
        return None
    for known in wanted:
        texts = [] if known is None else [*map(str, known)]
        for read in (str, _read_number):
            places = {read(name): place for place, name in enumerate(names)}
            keys = [*map(read, texts)]
            if len(names) == len(keys) and {*keys} == {*places}:
                return np.array([places[key] for key in keys])
    return None


def _read_number(text):
    """Return the text of a whole number without a point, 1 for true and 0 for false."""
    return _SAME.get(text, text.removesuffix(".0"))


def match_columns(proba: FloatArray, table: Any, *wanted: Any) -> FloatArray:
    """Return what was made of a table with its columns in the wanted order.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, n_classes)
    table : object
        The scores as they were given.
    *wanted : iterable or None
        As `find_columns` takes them: the classes, and other names that the columns may have.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
        As it came, unless the table has columns of these names in another order.
    """
    places = find_columns(table, *wanted)
    if places is None or (places[:-1] < places[1:]).all():
        return proba
    return proba[:, places]


def check_indexes(where: str, *given: Any, first: Any = None) -> Any:
    """Compare the index of what belongs to the same rows with the first one that there is.

    Rows are always taken by position, so two orders of one index are a mistake, or an
    accident that changes nothing. An index that only counts from 0, as that of
    ``pd.Series(array)``, may differ: it was made beside the rows and says nothing of them.
    If it holds the same numbers in another order, it is compared.

    Parameters
    ----------
    where : str
        The opening of the message.
    *given : object
        Labels, scores, weights, groups. Only Series and DataFrames of pandas, and dicts of
        them, have an index.
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
        Two hold the same labels in different orders; once, whatever else differs.
    """
    for one in given:
        if isinstance(one, dict):
            one = next(iter(one.values()), None)
        index = one.index if hasattr(one, "iloc") else first
        first = index if first is None else first
        if index is first or len(index) != len(first) or index.equals(first):
            continue
        rule = "one index for labels, scores, weights and groups of the same rows"
        apart = index.symmetric_difference(first, sort=False)
        if not len(apart):
            got = "one index in two orders, of which neither is followed"
            caution(where, rule, got, _REMEDY)
            break
        if not (_is_counted(index) or _is_counted(first)):
            refuse(where, rule, f"{apart[:1].tolist()[0]!r} in some only", _REMEDY)
    return first
