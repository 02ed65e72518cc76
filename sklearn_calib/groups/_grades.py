"""Grades: bands of calibrated probabilities, from the best to the worst."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._argument_checks import check_count, is_number
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
        edges = self._check_edges()
        names = _to_label_list(self.names)
        if names is None:
            names = [str(number + 1) for number in range(len(edges) + 1)]
        expected = f"{len(edges) + 1} different names as texts, one more than edges"
        named = isinstance(names, Sequence) and not isinstance(names, str)
        texts = [str(name) for name in names] if named else []
        good = named and all(isinstance(name, str) and name for name in names)
        if not good or len({*texts}) != len(edges) + 1 or len(texts) != len(edges) + 1:
            raise invalid_input(
                expected=expected,
                got=make_printable(repr(self.names), 80),
                hint="Name each grade once, the best first, or leave names out",
            )
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "names", tuple(texts))

    def _check_edges(self):
        edges = _to_label_list(self.edges)
        hint = (
            "Pass for instance [0.01, 0.02, 0.05]; 2 percent are 0.02. Grades that rows have "
            "already are groups: group_calibration(y, p, {'grade': grades})"
        )
        expected = "edges that increase, between 0 and 1"
        if isinstance(edges, str) or not isinstance(edges, Sequence):
            raise invalid_input(
                expected=expected, got=make_printable(repr(edges), 80), hint=hint
            )
        good = (
            all(is_number(edge) and 0 < edge < 1 for edge in edges) and len(edges) > 0
        )
        if not good or any(one >= other for one, other in itertools.pairwise(edges)):
            raise invalid_input(
                expected=expected, got=make_printable(repr(edges), 80), hint=hint
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
        n_grades = check_count(n_grades, "n_grades", 2)
        values, counts = np.unique(_validate_scores(y_proba), return_counts=True)
        # A cut can only be between distinct values: ties stay in one grade.
        before = np.cumsum(counts)[:-1]  # rows below each value but the first
        # An edge must be below 1.
        inside = values[1:] < 1
        values = values[1:][inside]
        before = before[inside]
        if not len(values):
            raise invalid_input(
                expected="probabilities of more than one grade",
                got="equal ones",
                hint="Pass more rows, or edges of your own",
            )
        places = np.arange(1, n_grades) * (counts.sum() / n_grades)
        # Each wanted edge moves to the cut with the nearest number of rows below.
        nearest = np.abs(np.subtract.outer(places, before)).argmin(axis=1)
        return cls(values[np.unique(nearest)].tolist(), names)

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
        max_grades = check_count(max_grades, "max_grades", 2)
        if not is_number(min_events) or not min_events >= 1:
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
        if not 2 * min_events <= hit.sum():
            raise invalid_input(
                expected=(
                    f"at least {2 * min_events:g} events, {min_events:g} for each of "
                    "two grades"
                ),
                got=f"{hit.sum()}",
                hint="Pass more rows, or a smaller min_events",
            )
        # Isotonic blocks have rising rates, but some of them have hardly any events.
        starts, events, rows = _join_blocks(
            *_fit_blocks(np.asarray(score), hit), min_events
        )
        # Neighbours are joined greedily, at the smallest loss of likelihood.
        while len(starts) > max_grades:
            first = int(np.argmin(_compute_joining_loss(events, rows)))
            starts = np.delete(starts, first + 1)
            events, rows = (_merge_with_next(one, first) for one in (events, rows))
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
        return np.searchsorted(self.edges, _validate_scores(y_proba), side="right")

    @property
    def bands(self) -> dict[str, float]:
        """Return the lowest probability of each grade by its name, for ``to_sql(map, bands=)``."""
        return dict(zip(self.names, (0.0, *self.edges), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return edges and names as lists: ``Grades(**grades.to_dict())`` is equal."""
        return {"edges": [*self.edges], "names": [*self.names]}

    def _make_sections(self):
        ends = [0, *self.edges, 1]
        rows = [
            (make_printable(name, 40), f"{low:.6g}", f"{high:.6g}")
            for name, (low, high) in zip(
                self.names, itertools.pairwise(ends), strict=True
            )
        ]
        return [Section(tables=[Table(("grade", "from", "below"), rows)])]


def _to_label_list(values):
    """Convert a column of a table or an array to a list.

    Return anything else unchanged.
    """
    if isinstance(values, str | Sequence):
        return values
    found = values.to_list() if hasattr(values, "to_list") else values
    return found.tolist() if isinstance(found, np.ndarray) else found


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
    given = grades if isinstance(grades, Mapping) else {"edges": grades}
    try:
        return Grades(**given)
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


def _validate_scores(y_proba):
    return np.asarray(read_proba(y_proba, n_classes=2))[:, 1]


def _fit_blocks(
    score: FloatArray, hit: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Fit isotonic blocks, and return the start, events and rows of each."""
    values, place = np.unique(score, return_inverse=True)
    rows = np.bincount(place.ravel())
    events = np.bincount(place.ravel(), weights=hit)
    fitted = fit_isotonic_shares(events / rows, rows)
    first = np.flatnonzero(np.append(True, np.diff(fitted) > 0))
    return values[first], np.add.reduceat(events, first), np.add.reduceat(rows, first)


def _join_blocks(starts, events, rows, least):
    """Join neighbours, from the first on, until each has at least `least` events."""
    first = [0]
    total = 0.0
    for number, found in enumerate(events):
        if total >= least:
            first.append(number)
            total = 0.0
        total += found
    # The last grade has too few events: it joins the one before.
    if total < least and len(first) > 1:
        first.pop()
    return starts[first], np.add.reduceat(events, first), np.add.reduceat(rows, first)


def _merge_with_next(values, place):
    joined = np.delete(values, place + 1)
    joined[place] += values[place + 1]
    return joined


def _compute_joining_loss(events, rows):
    """Compute the log likelihood that is lost if each grade joins the next one."""

    def compute_likelihood(k, n):
        with np.errstate(divide="ignore", invalid="ignore"):
            # 0 log 0 is 0: grades without events or without non-events.
            parts = k * np.log(k / n), (n - k) * np.log1p(-k / n)
        return sum(np.where(np.isfinite(part), part, 0.0) for part in parts)

    apart = compute_likelihood(events[:-1], rows[:-1]) + compute_likelihood(
        events[1:], rows[1:]
    )
    return apart - compute_likelihood(events[:-1] + events[1:], rows[:-1] + rows[1:])


def _check_not_swapped(y_true, y_proba):
    """Raise an error for probabilities in the place of the labels."""
    first, second = (
        array.dtype.kind == "f" and bool((array % 1 != 0).any())
        for array in (np.asarray(y_true), np.asarray(y_proba))
    )
    # Fractions in the labels and none in the probabilities: the arguments were
    # exchanged.
    if first and not second:
        raise invalid_input(
            expected="labels as y_true, then probabilities",
            got="the probabilities first",
            hint="Pass the labels first: Grades.fit(y_true, y_proba)",
        )
