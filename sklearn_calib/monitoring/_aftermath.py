"""After an alarm: how far off the probabilities are, since when, and what is enough."""

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit

from .._kernels import _log_odds_cells as cells
from .._typing import FloatArray
from ..exceptions import invalid_input
from ._record import StreamCellCounts
from ._rows import format_time

_MAX_SHOWN_CLASSES = 10
# The p-value below which the report states that something is missing.
_MISFIT_SIGNIFICANCE_LEVEL = 0.05


class ShiftRegion(NamedTuple):
    """A confidence region for shift and slope of the log-odds, valid however often one looks.

    Attributes
    ----------
    shift, slope : float
        The likeliest pair, P(event) = sigmoid(shift + slope * log-odds). 0 and 1 if
        the probabilities are calibrated.
    shift_interval, slope_interval : tuple of float
        The projections of the region, (low, high); infinite if the rows cannot
        tell (beyond 50).
    border : ndarray of shape (256, 2)
        Shift and slope along the border of the region, which is convex, in turn.
    level : float
    n_samples : int
        Informative rows: not those of probability 0 or 1.
    calibrated : bool
        Whether (0, 1) is in the region.
    """

    shift: float
    slope: float
    shift_interval: tuple[float, float]
    slope_interval: tuple[float, float]
    border: FloatArray
    level: float
    n_samples: int
    calibrated: bool


class Diagnosis(NamedTuple):
    """The diagnosis of an alarm: since when probabilities are off, how far, and what repairs them.

    Attributes
    ----------
    onset : int
        The likeliest first row behind the change, counted from 1.
    onset_interval : tuple of int
        Rows between which that row is with probability 0.95.
    onset_time : float, str or None
        The time of the row `onset`.
    n_samples : int
        Rows from there on, on which the rest stands; without those of probability 0 or
        1.
    repair : {"offset", "line", "refit"}
        What is enough: a number added to the log-odds; a new slope, too; or nothing
        less than a new map or model.
    shift, slope : float
        What to do with the log-odds, shift + slope * log-odds; the slope of "offset" is
        1.
    pvalue_slope, pvalue_curvature : float
        P-values: that an offset leaves no slope, and that a line leaves no bend.
    mean_proba, event_rate : float
        Mean probability and share of events of these rows.
    class_rates : tuple of float
        The share of each class, in the order of the columns, among all rows from
        `onset` on, also those of probability 0 or 1: what ``PriorShift(mean=)`` takes.
        Where a class did not come, half a row was added to each.
    confidence : bool
        Whether the probability is the largest of the row, and the event that its class
        is true.
    """

    onset: int
    onset_interval: tuple[int, int]
    onset_time: float | str | None
    n_samples: int
    repair: Literal["offset", "line", "refit"]
    shift: float
    slope: float
    pvalue_slope: float
    pvalue_curvature: float
    mean_proba: float
    event_rate: float
    class_rates: tuple[float, ...]
    confidence: bool

    @property
    def advice(self) -> str:
        """Describe the diagnosis in words, and recommend what to do next.

        The recalibrators that it names are fitted to the probabilities (all columns)
        and labels of the rows from `onset` on, and then applied to those of new rows.
        Of more than ten classes ``diagnosis.class_rates`` stands for the numbers. An
        offset of the largest probability need not come from the frequencies of the
        classes; both ways are named.
        """
        low, high = self.onset_interval
        time_text = "" if self.onset_time is None else f", {self.onset_time}"
        rows = "1 row" if self.n_samples == 1 else f"{self.n_samples} rows"
        since = f"off since about row {self.onset} ({low} to {high}{time_text})"
        events = "right" if self.confidence else "events"
        rates = (
            f"mean probability {self.mean_proba:.3g}, {events} {self.event_rate:.3g}"
        )
        subject = " of the largest probability" if self.confidence else ""
        line_text = f"{self.shift:+.2f} {self.slope:+.2f} * log-odds"
        if self.repair == "offset":
            advice = (
                "an offset is enough so far: "
                f"add {self.shift:+.2f} to the log-odds{subject}"
                f"{self._format_prior_shift_advice()} ({rates})"
            )
        elif self.repair == "line":
            advice = (
                f"an offset is not enough (p = {self.pvalue_slope:.1g}), "
                f"a line is so far: make the log-odds{subject} {line_text}, "
                "or fit PlattScaling() to these rows"
            )
        elif self.slope <= 0:
            advice = (
                f"the order of the scores is lost (slope {self.slope:.2f}): "
                "fit the model anew"
            )
        else:
            advice = (
                f"a line is not enough (p = {self.pvalue_curvature:.1g}): "
                "fit a map of any shape to more of these rows, "
                "such as SplineCalibration(), or the model anew"
            )
        return f"{since}; by its {rows} {advice}"

    def _format_prior_shift_advice(self):
        # `PriorShift` does not accept a mean of 0 or 1.
        if not 0 < self.event_rate < 1:
            return ""
        call = f"fit PriorShift(mean={_write_class_rates_as_code(self.class_rates)}) to these rows"
        if self.confidence:
            return f", or {call} if the classes' frequencies changed, TemperatureScaling() if not"
        return f", or {call}"


def compute_shift_region(counts: cells.LogOddsAtoms, level: float) -> ShiftRegion:
    """Compute the region of shift and slope of the rows so far."""
    centre, border = cells.find_confidence_centre_and_border(counts, level)
    shift, slope = centre
    # The weak penalty keeps the fit finite if a line separates the outcomes.
    if len(counts.log_odds):
        (shift, slope), _ = cells.fit_line_and_information(counts, np.full(2, 1e-4))
    lows = border.min(axis=0).tolist()
    highs = border.max(axis=0).tolist()
    shift_interval, slope_interval = zip(lows, highs, strict=True)
    return ShiftRegion(
        float(shift),
        float(slope),
        shift_interval,
        slope_interval,
        border,
        level,
        n_samples=round(float(counts.rows.sum())),
        calibrated=cells.is_in_confidence_region(counts, level, 0.0, 1.0),
    )


def diagnose_stream_if_any_rows(
    record: StreamCellCounts, confidence: bool, *, drop_earlier_blocks: bool
) -> Diagnosis | None:
    """Diagnose the rows since the change.

    `drop_earlier_blocks` drops blocks that certainly precede it.
    """
    if not record.add_waiting_rows_in_place().blocks:
        return None
    onset, low, high = record.locate_onset_and_interval_blocks()
    blocks = record.blocks
    onset_time = blocks[onset].start_time
    rows = record.get_cells_since_block(onset)
    # Nested repairs: each is only given up if a test rejects it.
    offset, line, pvalue_slope, pvalue_curvature = cells.fit_shift_and_line_with_tests(
        rows, cells.COARSE_LOG_ODDS_GRID
    )
    # A line with a slope of 0 or less reverses the order of the scores, which a
    # recalibration should not do.
    needs_slope = pvalue_slope < _MISFIT_SIGNIFICANCE_LEVEL
    needs_curve = pvalue_curvature < _MISFIT_SIGNIFICANCE_LEVEL
    repair: Any = "offset"
    if needs_curve or (needs_slope and line[1] <= 0):
        repair = "refit"
    elif needs_slope:
        repair = "line"
    n = float(rows.rows.sum())
    shift, slope = (offset if repair == "offset" else line).tolist()
    diagnosis = Diagnosis(
        blocks[onset].first,
        (blocks[low].first, blocks[high].last),
        None if onset_time is None else format_time(onset_time),
        round(n),
        repair,
        shift,
        slope,
        pvalue_slope,
        pvalue_curvature,
        float(rows.rows @ expit(rows.log_odds)) / n,
        float(rows.events.sum()) / n,
        _compute_positive_class_rates(record.count_labels_since_block(onset)),
        confidence,
    )
    if drop_earlier_blocks:
        record.drop_older_blocks_and_freeze_interval(low, high)
    return diagnosis


def _compute_positive_class_rates(label_counts):
    """Compute the fraction of each class, all above 0."""
    # Half a row in every class if one has none: `PriorShift` needs positive
    # frequencies.
    counts = label_counts + (0.5 if (label_counts == 0).any() else 0.0)
    return tuple((counts / counts.sum()).tolist())


def _write_class_rates_as_code(rates):
    """Write class rates as an argument: few digits, with a sum of 1."""
    if len(rates) > _MAX_SHOWN_CLASSES:
        return "diagnosis.class_rates"
    rounded = [float(f"{rate:.4g}") for rate in rates]
    # The largest rate absorbs the rounding of the others, so that the printed call is
    # valid.
    largest = max(rounded)
    rounded[rounded.index(largest)] = round(1.0 - (sum(rounded) - largest), 15)
    return f"{rounded[1] if len(rounded) == 2 else rounded}"


def to_json_state(diagnosis: Diagnosis | None) -> list[Any] | None:
    """Convert a diagnosis to JSON values."""
    if diagnosis is None:
        return None
    return [[*value] if isinstance(value, tuple) else value for value in diagnosis]


def from_json_state(values: list[Any] | None) -> Diagnosis | None:
    """Convert the JSON values of `to_json_state` back to a diagnosis."""
    if values is None:
        return None
    entries: Any = (tuple(v) if isinstance(v, list) else v for v in values)
    return Diagnosis(*entries)


def find_stream(names: list[str], stream: str | None) -> int:
    """Find the number of a stream by the name that alarms give it."""
    if stream is None and len(names) == 1:
        return 0
    if stream is None or stream not in names:
        shown = ", ".join(map(repr, names[:5]))
        if len(names) > 5:
            shown += ", ..."
        expected = "no stream, as there is only one"
        if len(names) > 1:
            expected = f"stream among {shown}"
        raise invalid_input(
            expected=expected, got=repr(stream), hint="Name it as alarms do"
        )
    return names.index(stream)
