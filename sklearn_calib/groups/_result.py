"""The result of an audit of groups: one row for each group, as a frame, text or a table."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .._argument_checks import import_optional
from .._show import MarkedCell, RenderableMixin, Section, Table, make_printable
from .._typing import AnyArray, DataFrame, FloatArray

_MAX_SHOWN_GROUPS = 10
_TABLE_HEADER = ("group", "rows", "O/E", "in the large", "slope", "sigma", "adjusted p")


class GroupRow(NamedTuple):
    """One row of `GroupCalibration`: a group, or one class in a group.

    Parameters
    ----------
    group : str
        What its rows have in common.
    event : str
        What the probabilities are of: "class x", or "confidence" for the largest of
        several.
    n_rows : int
    weight : float
        The sum of their weights.
    events, expected : float
        Weighted numbers of events, observed and predicted.
    observed_over_expected, ratio_low, ratio_high : float
        ``events / expected`` (O/E) with its interval. 1 is right, above 1 the
        predictions are too low. NaN if nothing happened and nothing was expected.
    in_the_large, in_the_large_error, in_the_large_low, in_the_large_high : float
        Calibration in the large: by how much the log-odds of the group would have to
        move, with standard error and interval. 0 is right. Infinite if all rows have
        the event, or none; NaN if all predictions are 0 or 1.
    slope, slope_error, slope_low, slope_high : float
        Of the logistic regression of the event on the log-odds. 1 is right. Infinite
        if a threshold separates the events, NaN if all rows have the event, or
        none, or the same score; the interval is then the whole line.
    sigma : float
        The range of the path of cumulative differences (Kuiper) in standard deviations
        of its end.
    p_value : float
        Of this group, if it were the only one.
    adjusted_p_value : float
        Allows for all groups: below alpha for any calibrated group at all in a share
        alpha of the audits.
    """

    group: str
    event: str
    n_rows: int
    weight: float
    events: float
    expected: float
    observed_over_expected: float
    ratio_low: float
    ratio_high: float
    in_the_large: float
    in_the_large_error: float
    in_the_large_low: float
    in_the_large_high: float
    slope: float
    slope_error: float
    slope_low: float
    slope_high: float
    sigma: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True, eq=False)
class GroupCalibration(RenderableMixin):
    """The result of `group_calibration`.

    ``print(result)`` shows the worst groups; `to_frame` gives all.

    Attributes
    ----------
    rows : list of GroupRow
        In the order of the groups, all rows first; with ``multiclass="classwise"`` all
        groups of the first class, then those of the next.
    p_value : float
        Of the hypothesis that all predictions are calibrated, for any groups.
        Exact.
    sigma : float
        The largest of all groups.
    critical_sigma : float
        What the largest exceeds with probability 1 - level at most, if all are
        calibrated.
    level : float
        The level of the intervals, which hold for all groups at once.
    n_samples : int
    n_left_out : int
        How many groups had fewer rows than `min_rows`.
    min_rows : int
    n_resamples : int
    null_distribution : ndarray of shape (n_resamples,)
        The largest sigma of all groups on labels drawn from the predictions.
    members : list of ndarray of int32
        The rows of each group, as positions in the labels that were given; the n-th
        belongs to the n-th of `rows`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.groups import group_calibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 600)
    >>> found = group_calibration(y, proba, {"site": np.arange(600) % 3}, n_resamples=199)
    >>> len(found.rows), found.worst(1)[0].group, found.p_value
    (4, 'all rows', 0.005)
    """

    rows: list[GroupRow]
    p_value: float
    sigma: float
    critical_sigma: float
    level: float
    n_samples: int
    n_left_out: int
    min_rows: int
    n_resamples: int
    null_distribution: FloatArray = field(repr=False)
    members: list[AnyArray] = field(repr=False, default_factory=list)

    def worst(self, n: int = 5) -> list[GroupRow]:
        """Return the groups with the largest sigma, the largest first.

        Parameters
        ----------
        n : int, default=5

        Returns
        -------
        rows : list of GroupRow
        """
        order = np.argsort([-row.sigma for row in self.rows], kind="stable")
        return [self.rows[index] for index in order[:n]]

    @property
    def rejected(self) -> list[GroupRow]:
        """Return the groups whose adjusted p-value is at most 1 - level, the worst first."""
        rows = self.worst(len(self.rows))
        return [row for row in rows if row.adjusted_p_value <= self.alpha]

    @property
    def alpha(self) -> float:
        """Return 1 - level: the probability of rejecting any group if all are calibrated."""
        return round(1 - self.level, 12)

    def to_frame(self) -> DataFrame:
        """Return all groups as a pandas DataFrame with one row each and the columns of `GroupRow`.

        Raises ModuleNotFoundError if pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        return pd.DataFrame(self.rows, columns=GroupRow._fields)

    def to_dict(self) -> dict[str, object]:
        """Return all fields except the draws and the members as a dict of plain values."""
        return {
            "p_value": self.p_value,
            "sigma": self.sigma,
            "critical_sigma": self.critical_sigma,
            "level": self.level,
            "n_rows": self.n_samples,
            "n_left_out": self.n_left_out,
            "min_rows": self.min_rows,
            "n_resamples": self.n_resamples,
            "groups": [row._asdict() for row in self.rows],
        }

    @property
    def summary(self) -> str:
        """Describe the result in three sentences."""
        groups_text = "1 group" if len(self.rows) == 1 else f"{len(self.rows)} groups"
        if self.n_left_out:
            groups_text += (
                f"; {self.n_left_out} with fewer than {self.min_rows} rows left out"
            )
        n_wrong = len(self.rejected)
        text = (
            f"{self.n_samples} rows in {groups_text}: "
            f"p = {self.p_value:.3g} for all together."
        )
        finding = "No group is found miscalibrated"
        if n_wrong:
            finding = (
                f"{n_wrong} group{'s are' if n_wrong > 1 else ' is'} miscalibrated"
            )
        chance = f"where the largest of all exceeds {self.critical_sigma:.2f} sigma by chance"
        if np.isinf(self.critical_sigma):
            chance = f"which {self.n_resamples} draws are too few to show"
        return (
            f"{text} {finding} at {self.alpha:.3g}, {chance}. Intervals hold for all at once "
            f"({100 * self.level:.0f} %)."
        )

    def _make_sections(self):
        return [self.section(_MAX_SHOWN_GROUPS)]

    def section(self, n: int) -> Section:
        """Build the section of a report: the summary and the worst groups.

        Parameters
        ----------
        n : int
            How many groups at most.
        """
        shown = self.worst(n)
        n_others = len(self.rows) - n
        notes = [f"... and {n_others} more, less far off"] if n_others > 0 else []
        table = Table(
            _TABLE_HEADER,
            [self._format_row(row) for row in shown],
            "",
            "names unbroken",
            hidden_if_narrow=(3, 4),
        )
        return Section(sentences=[self.summary], tables=[table], notes=notes)

    def _format_row(self, row):
        """Return the cells of a row; a significant p-value is marked."""
        name = make_printable(row.group, 80)
        # With several events, each group has a row for each of them.
        if len({other_row.event for other_row in self.rows}) > 1:
            name += f" | {make_printable(row.event, 40)}"
        adjusted = f"{row.adjusted_p_value:.3g}"
        return (
            name,
            str(row.n_rows),
            _format_estimate(row.observed_over_expected, row.ratio_low, row.ratio_high),
            _format_estimate(
                row.in_the_large, row.in_the_large_low, row.in_the_large_high
            ),
            _format_estimate(row.slope, row.slope_low, row.slope_high),
            f"{row.sigma:.2f}",
            MarkedCell(adjusted) if row.adjusted_p_value <= self.alpha else adjusted,
        )


def _format_estimate(value, low, high):
    """Format a number with its interval, or a dash."""
    if np.isnan(value):
        return "-"
    if not np.isfinite([low, high]).any():
        return _format_number(value)
    return f"{_format_number(value)} ({_format_number(low)} to {_format_number(high)})"


def _format_number(value):
    # Infinite values become "inf" and "-inf".
    return f"{value:.2f}"
