"""What `validation_summary` returns: rows of numbers, as text, HTML and a table."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isnan

from .._show import Section, Shown, Table
from .._typing import DataFrame
from ..exceptions import refuse, refuse_unknown, require


@dataclass(frozen=True)
class ValidationRow:
    """One line of a `ValidationTable`; a number that does not exist is NaN.

    Attributes
    ----------
    quantity : str
    estimate : float
    low, high : float
        Confidence interval.
    if_calibrated : float
        The value for calibrated predictions: the target of O/E, intercepts and slope; for all
        others the expectation on rows with these predictions.
    pvalue : float
        Of the predictions being calibrated.
    """

    quantity: str
    estimate: float
    low: float
    high: float
    if_calibrated: float
    pvalue: float


@dataclass(frozen=True)
class ValidationTable:
    """The validation table of one two-class problem.

    Attributes
    ----------
    problem : str
        "class x", "confidence" or "predicted x".
    n_samples : int
        Rows of weight above 0.
    event_rate : float
        Observed, weighted.
    rows : tuple of ValidationRow

    Examples
    --------
    >>> from sklearn_calib.inference import validation_summary
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> (table,) = validation_summary(y, proba, n_resamples=9).tables
    >>> table["slope"].high < 1  # overconfident
    True
    """

    problem: str
    n_samples: int
    event_rate: float
    rows: tuple[ValidationRow, ...]

    def __getitem__(self, quantity: str) -> ValidationRow:
        """The row of a quantity.

        Raises
        ------
        KeyError
            No such row.
        """
        for row in self.rows:
            if row.quantity == quantity:
                return row
        known = [*self]
        refuse_unknown("ValidationTable", "a quantity", quantity, known, error=KeyError)

    def __iter__(self) -> Iterator[str]:
        """The names of the rows, as of a dict."""
        return (row.quantity for row in self.rows)


@dataclass(frozen=True)
class ValidationSummary(Shown):
    """The result of `validation_summary`: one `ValidationTable`, or one per class.

    Printed it is a table; a notebook shows it as HTML.

    Attributes
    ----------
    tables : tuple of ValidationTable
        One per two-class problem.
    level : float
        The level of the intervals.
    ci : {"profile", "wald", "sandwich"}
        How those of intercepts and slope were made.
    smoother : str
        Of the ICI, E50, E90 and Emax.
    n_resamples : int
        Draws of labels behind the values for calibrated predictions.
    """

    tables: tuple[ValidationTable, ...]
    level: float
    ci: str
    smoother: str
    n_resamples: int

    def __getitem__(self, quantity: str) -> ValidationRow:
        """The row of a quantity, where there is one table.

        Raises
        ------
        KeyError
            No such row, or several tables.
        """
        return self._only()[quantity]

    def __iter__(self) -> Iterator[str]:
        """The names of the rows, as of a dict, where there is one table."""
        return iter(self._only())

    def _only(self):
        if len(self.tables) != 1:
            got = f"{len(self.tables)} tables"
            refuse("ValidationSummary", "one table", got, "Take one out of tables first", KeyError)
        return self.tables[0]

    def to_frame(self) -> DataFrame:
        """All rows as a pandas DataFrame, with the problem in the first column.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        pd = require("pandas", "cli", "ValidationSummary.to_frame")
        rows = [{"problem": t.problem, **asdict(row)} for t in self.tables for row in t.rows]
        return pd.DataFrame(rows)

    def _sections(self):
        tables = [
            Table(self._head(), [_cells(row) for row in one.rows], _title(one))
            for one in self.tables
        ]
        return [Section(tables=tables, notes=[self._note()])]

    def _head(self):
        return ["", "estimate", f"{100 * self.level:g} % interval", "if calibrated", "p-value"]

    def _note(self):
        return (
            f"Intervals of intercepts and slope: {self.ci}. ICI to Emax: smoother "
            f"{self.smoother}; p-values and values if calibrated from {self.n_resamples} "
            "draws of labels."
        )


def _title(table):
    return f"{table.problem}: {table.n_samples} rows, event rate {table.event_rate:.4g}"


def _cells(row):
    ends = "" if isnan(row.low) else f"{row.low:.4f} to {row.high:.4f}"
    numbers = ["" if isnan(x) else f"{x:.4f}" for x in (row.estimate, row.if_calibrated)]
    return [row.quantity, numbers[0], ends, numbers[1], _p_in_words(row.pvalue)]


def _p_in_words(pvalue):
    if isnan(pvalue):
        return ""
    return f"{pvalue:.3f}" if pvalue >= 0.001 else "< 0.001"
