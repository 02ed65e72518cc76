"""Grades: bands of calibrated probabilities, from the best to the worst."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._argument_checks import is_real_number, validate_count
from .._show import RenderableMixin, Section, Table, make_printable
from .._sklearn_compat import fit_isotonic_shares
from .._typing import AnyArray, ArrayLike, FloatArray
from .._validation import read_proba
from ..exceptions import InvalidInputError, invalid_input
from ..metrics import validate_predictions


@dataclass(frozen=True)
class Grades(RenderableMixin):
    """Bands of probabilities with names, from the smallest to the largest: a masterscale.

    A probability belongs to the first grade below the first edge, and to the next one
    from the edge on.

    Parameters
    ----------
    edges : sequence of float
        Where the second grade and those after it begin: increasing, between 0 and 1.
    names : sequence of str, default=None
        One more than edges, the best (of the smallest probabilities) first; by default
        "1", "2" and so on.

    Attributes
    ----------
    edges : tuple of float
    names : tuple of str

    Raises
    ------
    ValueError
        Edges that do not increase, or are not between 0 and 1; another number of names,
        or names that are not different texts.

    Examples
    --------
    >>> from sklearn_calib.groups import Grades
    >>> grades = Grades([0.01, 0.02, 0.05], names=["A", "B", "C", "D"])
    >>> grades.assign([0.005, 0.01, 0.3]).tolist()
    ['A', 'B', 'D']
    >>> print(grades)
    grade  from  below
    A         0   0.01
    B      0.01   0.02
    C      0.02   0.05
    D      0.05      1
    """

    edges: Any
    names: Any = None

    def __post_init__(self) -> None:
        edges = self._validate_edges()
        names = _convert_to_list_if_column(self.names)
        if names is None:
            names = [str(number + 1) for number in range(len(edges) + 1)]
        n_grades = len(edges) + 1
        is_valid = isinstance(names, Sequence) and not isinstance(names, str)
        is_valid = is_valid and all(isinstance(name, str) and name for name in names)
        if not is_valid or not len({*names}) == len(names) == n_grades:
            raise invalid_input(
                expected=f"{n_grades} different names as texts, one more than edges",
                got=make_printable(repr(self.names), 80),
                hint="Name each grade once, the best first, or leave names out",
            )
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "names", tuple(str(name) for name in names))

    def _validate_edges(self):
        edges = _convert_to_list_if_column(self.edges)
        is_valid = isinstance(edges, Sequence) and not isinstance(edges, str)
        is_valid = is_valid and len(edges) > 0 and all(map(is_real_number, edges))
        if is_valid:
            ends = (0, *edges, 1)
            is_valid = all(low < high for low, high in itertools.pairwise(ends))
        if not is_valid:
            raise invalid_input(
                expected="edges that increase, between 0 and 1",
                got=make_printable(repr(edges), 80),
                hint=(
                    "Pass for instance [0.01, 0.02, 0.05]; 2 percent are 0.02. Grades that "
                    "rows have already are groups: group_calibration(y, p, {'grade': grades})"
                ),
            )
        return tuple(float(edge) for edge in edges)

    # -- other ways to make them ----------------------------------------------------------------

    @classmethod
    def from_quantiles(
        cls, y_proba: ArrayLike, n_grades: int = 7, names: Sequence[str] | None = None
    ) -> "Grades":
        """Make grades with numbers of rows as equal as ties allow.

        Parameters
        ----------
        y_proba : array-like of shape (n_samples,) or (n_samples, 2)
            Probabilities; of two columns the second.
        n_grades : int, default=7
            At most: equal probabilities stay in one grade.
        names : sequence of str, default=None
            Of the grades that there are.

        Returns
        -------
        grades : Grades

        Raises
        ------
        ValueError
            Fewer than two different probabilities, and what `Grades` rejects.
        """
        n_grades = validate_count(n_grades, "n_grades", 2)
        values, counts = np.unique(_read_event_proba(y_proba), return_counts=True)
        # A cut can only be between distinct values: ties stay in one grade.
        rows_below = np.cumsum(counts)[:-1]
        # An edge must be below 1.
        inside = values[1:] < 1
        values = values[1:][inside]
        rows_below = rows_below[inside]
        if not len(values):
            raise invalid_input(
                expected="probabilities of more than one grade",
                got="equal ones",
                hint="Pass more rows, or edges of your own",
            )
        wanted_rows = np.arange(1, n_grades) * (counts.sum() / n_grades)
        # Each wanted edge moves to the cut with the nearest number of rows below.
        deviations = np.abs(np.subtract.outer(wanted_rows, rows_below))
        nearest_cuts = np.unique(deviations.argmin(axis=1))
        return cls(values[nearest_cuts].tolist(), names)

    @classmethod
    def fit(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        min_events: float = 20,
        max_grades: int = 10,
        labels: ArrayLike | None = None,
        pos_label: object = None,
    ) -> "Grades":
        """Make grades whose observed rates rise, with at least `min_events` events each.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of two classes.
        y_proba : array-like of shape (n_samples,) or (n_samples, 2)
            Probabilities.
        min_events : float, default=20
            Events of the positive class in each grade, at least.
        max_grades : int, default=10
            Of more grades those neighbours are joined, one pair after the other, that
            lose least log likelihood.
        labels : array-like of shape (2,), default=None
            Both classes in the order of the columns.
        pos_label : label, default=None
            The positive class, which owns a single column; the second by default.
            Required with a single column as in the measures.

        Returns
        -------
        grades : Grades
            Named "1", "2" and so on.

        Raises
        ------
        ValueError
            Fewer than ``2 * min_events`` events, or rates that do not rise with the
            probability, so that there is one grade alone.

        Notes
        -----
        The isotonic regression of the labels on the probability gives blocks of rows
        with rising rates. From the best one on, blocks are joined until they have the
        events; what is left over joins the last grade. A grade begins at its smallest
        probability.

        The rates of the rows that grades were fitted to are in order by construction:
        judge them on others.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.groups import Grades
        >>> proba, y = make_overconfident(2, 2000)
        >>> grades = Grades.fit(y, proba, min_events=100, max_grades=4)
        >>> len(grades.names)
        4
        """
        max_grades = validate_count(max_grades, "max_grades", 2)
        if not is_real_number(min_events) or not min_events >= 1:
            raise invalid_input(
                "min_events",
                expected="min_events >= 1",
                got=repr(min_events),
                hint="Leave it out for 20",
            )
        _check_not_swapped(y_true, y_proba)
        predictions = validate_predictions(y_true, y_proba, None, labels, pos_label)
        check_two_classes(predictions)
        score = predictions.proba[:, predictions.positive]
        hit = predictions.codes == predictions.positive
        n_events = hit.sum()
        if not 2 * min_events <= n_events:
            raise invalid_input(
                expected=(
                    f"at least {2 * min_events:g} events, {min_events:g} for each of "
                    "two grades"
                ),
                got=f"{n_events}",
                hint="Pass more rows, or a smaller min_events",
            )
        # Isotonic blocks have rising rates, but some of them have hardly any events.
        blocks = _find_block_first_scores_events_and_rows(np.asarray(score), hit)
        starts, events, rows = _join_blocks(*blocks, min_events)
        # Neighbours are joined greedily, at the smallest loss of likelihood.
        while len(starts) > max_grades:
            index = int(np.argmin(_compute_joining_loss(events, rows)))
            starts = np.delete(starts, index + 1)
            events = _merge_with_next(events, index)
            rows = _merge_with_next(rows, index)
        if len(starts) < 2:
            raise invalid_input(
                expected="rates that rise with the probability",
                got="rates that do not rise",
                hint="Recalibrate first, or pass edges of your own",
            )
        return cls(starts[1:].tolist())

    # -- what they do -----------------------------------------------------------------------------

    def assign(self, y_proba: ArrayLike) -> AnyArray:
        """Return the name of the grade of each row.

        Parameters
        ----------
        y_proba : array-like of shape (n_samples,) or (n_samples, 2)
            Probabilities; of two columns the second.

        Returns
        -------
        names : ndarray of shape (n_samples,)
        """
        return np.asarray(self.names)[self.transform(y_proba)]

    def transform(self, y_proba: ArrayLike) -> AnyArray:
        """Return the number of the grade of each row, from 0 on.

        Parameters
        ----------
        y_proba : array-like of shape (n_samples,) or (n_samples, 2)
            Probabilities; of two columns the second.

        Returns
        -------
        numbers : ndarray of int of shape (n_samples,)
        """
        return np.searchsorted(self.edges, _read_event_proba(y_proba), side="right")

    @property
    def bands(self) -> dict[str, float]:
        """Return the lowest probability of each grade by its name, for ``to_sql(map, bands=)``."""
        return dict(zip(self.names, (0.0, *self.edges), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return edges and names as lists: ``Grades(**grades.to_dict())`` is equal."""
        return {"edges": [*self.edges], "names": [*self.names]}

    def _make_sections(self):
        lows = (0, *self.edges)
        highs = (*self.edges, 1)
        rows = []
        for name, low, high in zip(self.names, lows, highs, strict=True):
            rows.append((make_printable(name, 40), f"{low:.6g}", f"{high:.6g}"))
        return [Section(tables=[Table(("grade", "from", "below"), rows)])]


def _convert_to_list_if_column(values):
    """Convert a column of a table or an array to a list.

    Return anything else unchanged.
    """
    if isinstance(values, str | Sequence):
        return values
    column = values.to_list() if hasattr(values, "to_list") else values
    return column.tolist() if isinstance(column, np.ndarray) else column


def to_grades(grades: Any) -> Grades:
    """Return grades, which are made of edges or of a dict with "edges" and "names" if needed."""
    if isinstance(grades, Grades):
        return grades
    if isinstance(grades, Mapping) and not {"edges"} <= {*grades} <= {"edges", "names"}:
        raise invalid_input(
            expected='grades with "edges", and perhaps "names"',
            got=make_printable(", ".join(map(str, grades)), 80) or "nothing",
            hint="Pass what Grades.to_dict returned",
        )
    arguments = grades if isinstance(grades, Mapping) else {"edges": grades}
    try:
        return Grades(**arguments)
    except InvalidInputError as error:
        error.set_fields(expected=f"grades with {error.expected}")
        raise


def check_two_classes(predictions: Any) -> None:
    """Raise an error for predictions of several classes."""
    if len(predictions.classes) != 2:
        raise invalid_input(
            expected="two classes, whose probability has grades",
            got=f"{len(predictions.classes)}",
            hint="Pass the probability of one class, and whether it came true",
        )


def _read_event_proba(y_proba):
    proba = read_proba(y_proba, n_classes=2)
    return np.asarray(proba)[:, 1]


def _find_block_first_scores_events_and_rows(
    score: FloatArray, hit: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Fit isotonic blocks, and return the first score, events and rows of each."""
    values, value_index, rows = np.unique(
        score, return_inverse=True, return_counts=True
    )
    events = np.bincount(value_index.ravel(), weights=hit)
    fitted = fit_isotonic_shares(events / rows, rows)
    block_starts = np.flatnonzero(np.append(True, np.diff(fitted) > 0))
    return _merge_neighbours_into_blocks(block_starts, values, events, rows)


def _merge_neighbours_into_blocks(block_starts, values, events, rows):
    """Return the first value, the events and the rows of each block of neighbours."""
    return (
        values[block_starts],
        np.add.reduceat(events, block_starts),
        np.add.reduceat(rows, block_starts),
    )


def _join_blocks(starts, events, rows, min_events):
    """Join neighbours, from the first on, until each has at least `min_events` events."""
    kept_blocks = [0]
    total = 0.0
    for index, n_events in enumerate(events):
        if total >= min_events:
            kept_blocks.append(index)
            total = 0.0
        total += n_events
    # The last grade has too few events: it joins the one before.
    if total < min_events and len(kept_blocks) > 1:
        kept_blocks.pop()
    return _merge_neighbours_into_blocks(kept_blocks, starts, events, rows)


def _merge_with_next(values, index):
    merged = np.delete(values, index + 1)
    merged[index] += values[index + 1]
    return merged


def _compute_joining_loss(events, rows):
    """Compute the log likelihood that is lost if each grade joins the next one."""

    def compute_likelihood(k, n):
        with np.errstate(divide="ignore", invalid="ignore"):
            # 0 log 0 is 0: grades without events or without non-events.
            terms = k * np.log(k / n), (n - k) * np.log1p(-k / n)
        return sum(np.where(np.isfinite(term), term, 0.0) for term in terms)

    likelihood = compute_likelihood(events, rows)
    joint_likelihood = compute_likelihood(
        events[:-1] + events[1:],
        rows[:-1] + rows[1:],
    )
    return likelihood[:-1] + likelihood[1:] - joint_likelihood


def _has_fractions(values):
    array = np.asarray(values)
    return array.dtype.kind == "f" and bool((array % 1 != 0).any())


def _check_not_swapped(y_true, y_proba):
    """Raise an error for probabilities in the place of the labels."""
    # Fractions in the labels and none in the probabilities: the arguments were
    # exchanged.
    if _has_fractions(y_true) and not _has_fractions(y_proba):
        raise invalid_input(
            expected="labels as y_true, then probabilities",
            got="the probabilities first",
            hint="Pass the labels first: Grades.fit(y_true, y_proba)",
        )
