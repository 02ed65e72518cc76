"""The sections of a report on many labels."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._kernels._detectable_error import SIGNIFICANCE_LEVEL
from .._show import (
    MarkedCell,
    Section,
    Table,
    join_truncated,
    make_printable,
    quote_text,
)
from ._pictures import draw_reliability_by_label
from ._sections import make_meanings_section, make_measures_table, make_origin_section
from ._table import format_interval_or_blank

if TYPE_CHECKING:
    from ..groups import GroupRow

MAX_LABEL_RESAMPLES = 200
# A page lists the worst labels.
MAX_SHOWN_LABELS = 100
_MAX_TEXT_LABELS = 20
_MAX_DRAWN_LABELS = 3
# A sentence names this many labels.
_MAX_NAMED_LABELS = 5
_MAX_NAME_CHARACTERS = 40
# Fewer events, or rows without an event, carry hardly any information.
_MIN_INFORMATIVE_EVENTS = 10
_LABEL_TABLE_MEASURES = ("log_loss", "expected_calibration_error")


def make_label_report_sections(report: Any, drawn: bool = False) -> list[Section]:
    """Return all sections in reading order; with pictures if these are `drawn`."""
    return [
        make_origin_section(
            report, f"{report.n_samples} rows, {len(report.labels)} labels"
        ),
        Section(
            "Verdict",
            parts=[
                Section(
                    sentences=_write_label_verdict_sentences(report),
                    css_class="verdict",
                )
            ],
        ),
        _make_macro_micro_section(report),
        _make_labels_section(report),
        _make_worst_labels_section(report) if drawn else Section(),
        _make_all_measures_section(report),
        _make_repair_code_section_if_rejected(report),
        make_meanings_section({row.measure for row in report.rows}),
    ]


def describe_finding(row: "GroupRow") -> str:
    """Describe the finding about a label in words."""
    words = []
    if row.events <= 0:
        words.append("no positive row")
    elif row.events >= row.weight:
        words.append("no negative row")
    if row.adjusted_p_value > SIGNIFICANCE_LEVEL:
        rarer = min(row.events, row.weight - row.events) * row.n_rows / row.weight
        few = rarer < _MIN_INFORMATIVE_EVENTS
        return ", ".join(words or ["too few positives to say" if few else "nothing"])
    # The direction is only named if its interval excludes calibration.
    sides = {
        "too high": row.ratio_high < 1,
        "too low": row.ratio_low > 1,
        "too certain": row.slope_high < 1,
        "too cautious": row.slope_low > 1 and np.isfinite(row.slope),
    }
    words += [word for word, holds in sides.items() if holds]
    return ", ".join(words if any(sides.values()) else [*words, "miscalibrated"])


def _write_label_verdict_sentences(report):
    """Write about the joint test, wrong labels, and labels with too few rows."""
    count = len(report.labels)
    wrong = [
        row for row in report.worst(count) if row.adjusted_p_value <= SIGNIFICANCE_LEVEL
    ]
    together = (
        f"p = {report.p_value:.2g} for all {count} labels together, however they depend on each "
        "other."
    )
    if not wrong:
        sentences = [f"No label is found miscalibrated: {together}"]
    else:
        verb = "is" if len(wrong) == 1 else "are"
        sentences = [f"{len(wrong)} of {count} labels {verb} miscalibrated: {together}"]
        named = [
            f"{quote_text(row.group, _MAX_NAME_CHARACTERS)} ({describe_finding(row)})"
            for row in wrong
        ]
        sentences.append(
            f"The worst first: {join_truncated(named, _MAX_NAMED_LABELS, '; ')}."
        )
    empty = [row for row in report.labels if row.events <= 0]
    if empty:
        named = [quote_text(row.group, _MAX_NAME_CHARACTERS) for row in empty]
        sentences.append(
            f"No row is positive for {join_truncated(named, _MAX_NAMED_LABELS)}: such "
            "a label has no slope, "
            "and only probabilities that are too high can be seen."
        )
    few = [
        row
        for row in report.labels
        if 0 < row.events * row.n_rows / row.weight < _MIN_INFORMATIVE_EVENTS
    ]
    if few:
        subject = f"{len(few)} labels have"
        pronoun = "them"
        if len(few) == 1:
            subject = "1 label has"
            pronoun = "it"
        sentences.append(
            f"{subject} fewer than {_MIN_INFORMATIVE_EVENTS} positive rows, "
            f"which say little of {pronoun}."
        )
    return sentences


def _make_macro_micro_section(report):
    """Show the macro and micro mean of each measure."""
    interval = f"{100 * report.level:.0f} % interval"
    header = ("measure", "macro", interval, "if calibrated", "micro", interval)
    rows = []
    for average in report.averages:
        null_mean = "" if np.isnan(average.null_mean) else f"{average.null_mean:.4f}"
        rows.append(
            [
                average.measure,
                f"{average.macro:.4f}",
                format_interval_or_blank(average.macro_low, average.macro_high),
                null_mean,
                f"{average.micro:.4f}",
                format_interval_or_blank(average.micro_low, average.micro_high),
            ]
        )
    table = Table(header, rows, css_class="names", hidden_if_narrow=(3, 5))
    return Section(
        "All labels",
        tables=[table],
        parts=[Section(notes=[_MACRO_MICRO_NOTE], formats="html markdown")],
    )


def _make_labels_section(report):
    """Show one line per label, the worst first; fewer on a screen of text."""
    values = {(row.model, row.measure): row for row in report.rows}
    measured = [average.measure for average in report.averages]
    measured = [name for name in measured if name in _LABEL_TABLE_MEASURES]
    short = [
        name.replace("expected_calibration_error", "ECE").replace("_", " ")
        for name in measured
    ]
    header = (
        "label",
        "found",
        "rows",
        "positives",
        "O/E",
        "slope",
        *short,
        "adjusted p",
    )

    def make_label_cells(row):
        """Return the cells of one label; a significant p-value is marked."""
        p = f"{row.adjusted_p_value:.2g}"
        return [
            make_printable(row.group, _MAX_NAME_CHARACTERS),
            describe_finding(row),
            f"{row.n_rows}",
            _format_count(row.events),
            _format_estimate_or_dash(
                row.observed_over_expected, row.ratio_low, row.ratio_high
            ),
            _format_estimate_or_dash(row.slope, row.slope_low, row.slope_high),
            *(f"{values[row.group, name].value:.4f}" for name in measured),
            MarkedCell(p) if row.adjusted_p_value <= SIGNIFICANCE_LEVEL else p,
        ]

    def make_list_section(max_labels):
        """Return the table of the worst labels, with a note on the number of others."""
        rows = [make_label_cells(row) for row in report.worst(max_labels)]
        table = Table(header, rows, "", "names unbroken", 2, (2, 5))
        n_others = len(report.labels) - max_labels
        notes = [f"... and {n_others} more, less far off"] if n_others > 0 else []
        return Section(tables=[table], notes=notes)

    # The text of a terminal shows fewer labels than a page.
    parts = [
        make_list_section(_MAX_TEXT_LABELS)._replace(formats="text terminal"),
        make_list_section(MAX_SHOWN_LABELS)._replace(formats="html markdown"),
        Section(
            notes=[_LABEL_TABLE_NOTE.format(level=f"{100 * report.level:.0f} %")],
            formats="html markdown",
        ),
    ]
    return Section("Each label", parts=parts, css_class="whole")


def _format_count(events):
    """Format a sum of weights."""
    return f"{events:.0f}" if events >= _MIN_INFORMATIVE_EVENTS else f"{events:.3g}"


def _format_estimate_or_dash(value, low, high):
    """Format a number with its interval; as a dash if it is not determined."""
    if not np.isfinite(value):
        return "-"
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def _make_worst_labels_section(report):
    """Draw the diagrams of the worst labels."""
    models = {
        row.group: report._models[row.group] for row in report.worst(_MAX_DRAWN_LABELS)
    }
    picture = draw_reliability_by_label(models, report.level)
    return Section(
        "The worst labels", picture=picture, css_class="whole", formats="html"
    )


def _make_all_measures_section(report):
    """Show every measure of the labels that are shown, with its interval."""
    shown = {row.group for row in report.worst(MAX_SHOWN_LABELS)}
    rows = [row for row in report.rows if row.model in shown]
    wrong = {
        row.group for row in report.labels if row.adjusted_p_value <= SIGNIFICANCE_LEVEL
    }
    table = make_measures_table(rows, report.level, wrong, "label")
    return Section(
        "All measures",
        tables=[table],
        fold_label="with intervals",
        formats="html markdown",
    )


def _make_repair_code_section_if_rejected(report):
    """Show code that recalibrates all labels."""
    # Without evidence of an error there is nothing to repair.
    if report.p_value > SIGNIFICANCE_LEVEL:
        return Section()
    sentence = (
        "One line for each label, rare labels drawn towards the others, from rows of "
        "their own:"
    )
    return Section(
        "To repair it",
        sentences=[sentence],
        code=_REPAIR_CODE,
        formats="html markdown terminal",
    )


_REPAIR_CODE = (
    "from sklearn_calib.recalibrators import MultilabelCalibration\n\n"
    "# y_true, y_proba: tables of rows of their own; new_proba: of the rows to repair\n"
    "recalibrator = MultilabelCalibration().fit(y_proba, y_true)\n"
    "repaired = recalibrator.predict_proba(new_proba)"
)

_MACRO_MICRO_NOTE = (
    "Macro: the mean over labels. Micro: all pairs of a row and a label as one problem. A row is "
    "drawn with all of its labels, so that the interval of a loss allows for their dependence, and "
    "it is longer upwards where few rows are positive; the macro interval of another measure goes "
    "from the mean of the labels’ lower ends to that of their upper ends, which is wide enough for "
    "any dependence. “If calibrated”: the mean of what calibrated predictions of each label stay "
    "below."
)

_LABEL_TABLE_NOTE = (
    "The worst labels first. O/E: observed over expected positives, 1 is right; slope of the "
    "log-odds, 1 is right; intervals ({level}) hold for each label by itself, and a dash is what "
    "the rows do not determine. The adjusted p-value (Holm) allows for the number of labels and "
    "for any dependence between them: the smallest is that of all labels together."
)
