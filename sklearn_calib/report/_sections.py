"""The sections of a report, from which text, Markdown and HTML are written."""

import html
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._show import MarkedCell, Section, Table, format_best_rows, make_printable
from ..metrics import all_metrics
from ._pictures import (
    MAX_LARGE_DIAGRAM_MODELS,
    MAX_SHOWN_CLASSES,
    draw_class_diagrams_if_multiclass,
    draw_model_comparison_if_several,
    draw_reliability,
)
from ._table import format_interval_or_blank, format_row

if TYPE_CHECKING:
    from ._svg import DiagramSeries
    from ._table import ReportRow

# The worst groups of each model.
MAX_SHOWN_GROUPS = 20
MAX_SHOWN_FEATURES = 10
_DESCRIPTION_BY_DECOMPOSITION_TERM = {
    "risk": "as given",
    "calibration": "gained by recalibration",
    "grouping": "gained by the features beyond it, at least",
    "irreducible": "what remains, at most",
}
# Names in the first column of a table of numbers are shortened to this.
_MAX_TABLE_NAME_CHARACTERS = 24
_TEXT_BY_CALIBRATED = {True: "yes", False: "no", None: "too few rows"}
# Formats of a section that is too long for text.
_LONG_SECTION_FORMATS = "html markdown"


def make_sections(
    report: Any, curves: "Mapping[str, list[DiagramSeries]] | None" = None
) -> list[Section]:
    """Return all sections in reading order; with pictures if there are `curves`."""
    drawn = curves is not None
    return [
        _make_report_origin_section(report),
        make_verdicts_section(report),
        Section() if curves is None else make_reliability_section(report, curves),
        make_measures_section(report),
        _make_comparison_or_empty_section(report) if drawn else Section(),
        _make_recalibration_gains_or_empty_section(report),
        _make_recalibrate_or_retrain_section(report),
        _make_bins_section(report),
        _make_groups_section(report),
        _make_grades_section(report),
        _make_best_model_classes_section(report) if drawn else Section(),
        make_meanings_section({row.measure for row in report.rows}),
    ]


def _exceeds_large_diagram_models(report):
    """Return whether there are too many models for large diagrams, and one line for each."""
    return len(report.accuracy) > MAX_LARGE_DIAGRAM_MODELS


def _make_section_per_model(
    report: Any, names: Iterable[str], make_section: Callable[[str], Section]
) -> list[Section]:
    """Return a part for each model, under its name if there are several; closed if many."""
    sections = []
    for name in names:
        section = make_section(name)
        # A page on many models shows one line each; the details are folded.
        if _exceeds_large_diagram_models(report):
            section = section._replace(fold_label=make_printable(name))
        elif len(report.accuracy) > 1:
            section = section._replace(name=name)
        sections.append(section)
    return sections


def make_origin_section(report: Any, *lines: str) -> Section:
    """Show the source and the number of rows; a page has this in its head."""
    items = [*lines]
    if report.source is not None:
        origin = f"source: {make_printable(report.source, 200)}; {report.created}"
        items.insert(0, f"{origin}; sklearn-calib {report.version}")
    return Section(items=items, formats="text terminal markdown")


def _make_report_origin_section(report):
    together = "" if report.n_clusters is None else f" in {report.n_clusters} clusters"
    rows = f"{report.n_samples} rows{together}, {len(report.classes)} classes"
    if _exceeds_large_diagram_models(report):
        return make_origin_section(report, rows)
    shares = [
        f"accuracy of {make_printable(name)}: {accuracy:.4f}"
        for name, accuracy in report.accuracy.items()
    ]
    return make_origin_section(report, rows, *shares)


#: Classes of a verdict in HTML, by whether the predictions are calibrated.
_CSS_CLASS_BY_CALIBRATED = {True: "right", False: "wrong", None: "open"}


def make_verdicts_section(report: Any) -> Section:
    """Show the sentences of a few models; of many one line each, and sentences on demand."""

    def make_verdict_section(name):
        verdict = report.verdicts[name]
        sentences = [sentence.text for sentence in verdict.sentences]
        accuracy = Section(
            notes=[f"accuracy {report.accuracy[name]:.4f}"], formats="html"
        )
        title = name if len(report.accuracy) > 1 else ""
        kind = f"verdict {_CSS_CLASS_BY_CALIBRATED[verdict.calibrated]}"
        return Section(
            name=title, sentences=sentences, parts=[accuracy], css_class=kind
        )

    parts = [make_verdict_section(name) for name in report.accuracy]
    if not _exceeds_large_diagram_models(report):
        return Section("Verdict", parts=parts)
    folded = Section(parts=parts, fold_label="in sentences", formats="html")
    return Section("Verdict", tables=[_make_verdicts_table(report)], parts=[folded])


def _make_verdicts_table(report):
    """Return the verdicts on many models, one row each."""
    header = ("model", "accuracy", "calibrated", "p", "error in points", "direction")
    rows = []
    for name, verdict in report.verdicts.items():
        by_topic = {sentence.topic: sentence.numbers for sentence in verdict.sentences}
        size = by_topic.get("size")
        points = ""
        if size is not None:
            points = f"{100 * size['low']:.1f} to {100 * size['high']:.1f}"
        direction = by_topic.get("direction", {})
        rows.append(
            (
                make_printable(name, _MAX_TABLE_NAME_CHARACTERS),
                f"{report.accuracy[name]:.4f}",
                _TEXT_BY_CALIBRATED[verdict.calibrated],
                f"{verdict.p_value:.3f}",
                points,
                ", ".join(direction.get("words", ())),
            )
        )
    return Table(header, rows, css_class="names")


def make_reliability_section(
    report: Any, curves: "Mapping[str, list[DiagramSeries]]"
) -> Section:
    """Show the diagrams."""
    picture = draw_reliability(report, curves)
    return Section("Reliability", picture=picture, css_class="whole", formats="html")


def make_measures_section(report: Any) -> Section:
    """Show one row per measure; of many models one each, and the intervals on demand."""
    note = Section(
        notes=[_MEASURES_NOTE.format(level=f"{100 * report.level:.0f} %")],
        formats="html",
    )
    long = _make_long_measures_table(report)
    if not _exceeds_large_diagram_models(report):
        return Section("Measures", tables=[long], parts=[note])
    intervals = Section(tables=[long], fold_label="with intervals", formats="html")
    wide = _make_wide_measures_table(report)
    return Section("Measures", tables=[wide], parts=[intervals, note])


def _make_comparison_or_empty_section(report):
    """Show models beside each other, as pictures."""
    pictures = draw_model_comparison_if_several(report)
    if not pictures:
        return Section()
    return Section(
        "Models compared", picture=pictures, css_class="whole", formats="html"
    )


def make_measures_table(
    rows: "Iterable[ReportRow]",
    level: float,
    rejected_names: Container[str],
    subject: str = "",
) -> Table:
    """Return a table of measures with intervals.

    Values of the models or labels `rejected_names` are marked if they exceed what chance
    explains; `subject` heads the column of the names.
    """
    lines = [
        [
            subject,
            "measure",
            "value",
            f"{100 * level:.0f} % interval",
            "if calibrated, below",
        ]
    ]
    for row in rows:
        name, measure, value, *rest = format_row(row)
        lines.append([name, measure, _mark_value(row, value, rejected_names), *rest])
    if not subject:
        # A single model needs no column of names.
        lines = [line[1:] for line in lines]
    return Table(
        lines[0], lines[1:], css_class="names", n_name_columns=2 if subject else 1
    )


def _make_long_measures_table(report):
    """Return one row per model and measure."""
    subject = "model" if len(report.accuracy) > 1 else ""
    return make_measures_table(
        report.rows, report.level, _find_rejected_models(report), subject
    )


def _find_rejected_models(report):
    """Return the models whose calibration the verdict rejects."""
    return {
        name for name, verdict in report.verdicts.items() if verdict.calibrated is False
    }


def _make_wide_measures_table(report):
    """Return one row per model, one column per measure."""
    names = list(dict.fromkeys(row.measure for row in report.rows))
    by_cell = {(row.model, row.measure): row for row in report.rows}
    wrong = _find_rejected_models(report)
    rows = []
    for name in report.accuracy:
        line = [make_printable(name, _MAX_TABLE_NAME_CHARACTERS)]
        for measure in names:
            row = by_cell[name, measure]
            line.append(_mark_value(row, format_row(row)[2], wrong))
        rows.append(line)
    short = [
        name.replace("calibration_error", "error").replace("_", " ") for name in names
    ]
    return Table(("model", *short), rows, css_class="names")


def _mark_value(row, value, rejected_names):
    """Return the value, marked if it is beyond what chance explains for a wrong model."""
    return (
        MarkedCell(value, "beyond")
        if row.exceeds_chance and row.model in rejected_names
        else value
    )


def _make_recalibration_gains_or_empty_section(report):
    """Show what a temperature removes of the log loss, and what the methods gain."""
    lines = report.decomposition_lines()
    level = f"{100 * report.level:.0f} %"
    note = []
    if lines:
        note = [Section(notes=[_LOSS_SPLIT_NOTE.format(level=level)], formats="html")]
    folded = _exceeds_large_diagram_models(report)
    split = Section(
        items=lines,
        parts=note,
        fold_label="what a temperature removes" if folded else "",
        formats=_LONG_SECTION_FORMATS if folded else "",
    )
    advised = [name for name in report.advice if report.advice[name] is not None]

    def make_advice_section(name):
        return _make_advice_section(
            report.advice[name], bool(_find_groups_to_repair(report, name))
        )

    parts = _make_section_per_model(report, advised, make_advice_section)
    if not lines and not parts:
        return Section()
    return Section("What recalibration gains", parts=[split, *parts])


def _make_advice_section(advice, has_group_repair):
    header = ("method", "log loss", "gain", "standard error", "Brier")
    losses = {row.method: row[1:5] for row in advice.rows}
    # The best loss and gain are marked; a small standard error is not a merit.
    rows = format_best_rows(losses, (min, max, None, min))
    repair = "To repair all rows by one map:" if has_group_repair else "To repair it:"
    code = Section(
        sentences=[repair],
        code=advice.code,
        formats=f"{_LONG_SECTION_FORMATS} terminal",
    )
    note = _RECALIBRATION_GAINS_NOTE.format(rows=f"{advice.n_rows:,} {advice._unit}")
    return Section(sentences=[note], tables=[Table(header, rows)], parts=[code])


def _make_recalibrate_or_retrain_section(report):
    """Show whether to recalibrate or to retrain each model whose features were given."""

    def make_feature_section(name):
        """Return the losses of one model, and the columns that the trees were split on."""
        parts = report.features[name]
        if parts is None:
            return Section(sentences=[_TOO_FEW_ROWS_MESSAGE])
        rows = [
            _make_decomposition_table_row(parts, term, description, report.level)
            for term, description in _DESCRIPTION_BY_DECOMPOSITION_TERM.items()
        ]
        interval = f"{100 * report.level:.0f} % interval"
        split = Table(
            ("log loss", "value", "standard error", interval), rows, css_class="names"
        )
        shares = list(parts.feature_gains.items())[:MAX_SHOWN_FEATURES]
        named = [
            (make_printable(name, _MAX_TABLE_NAME_CHARACTERS), f"{100 * share:.0f} %")
            for name, share in shares
        ]
        columns = Table(("feature", "share of the gains"), named, css_class="names")
        sentence = parts.advice(report.level)
        if parts.n_rows < report.n_samples:
            sentence += f" From {parts.n_rows:,} of {report.n_samples:,} rows."
        return Section(
            sentences=[sentence],
            tables=[split, columns] if parts.grouping else [split],
            parts=[Section(notes=[_FEATURE_SPLIT_NOTE], formats="html")],
        )

    if not report.features:
        return Section()
    return Section(
        "Recalibrate or retrain",
        parts=_make_section_per_model(report, report.features, make_feature_section),
    )


def _make_decomposition_table_row(parts, term, description, level):
    """Format a term of a decomposition."""
    ends = parts.interval(term, level)
    numbers = getattr(parts, term), parts.standard_errors[term]
    return description, *(f"{x:.4f}" for x in numbers), format_interval_or_blank(*ends)


def _make_bins_section(report):
    """Show the bins of each model as a table."""
    header = (
        "bin",
        "score",
        "rows",
        "predicted",
        "observed",
        f"{100 * report.level:.0f} % interval",
        "ratio",
    )

    def make_bin_section(name):
        bins = enumerate(report.bins(name), 1)
        rows = [
            (f"{number}", *_format_bin(reliability_bin))
            for number, reliability_bin in bins
        ]
        return Section(tables=[Table(header, rows)])

    note = Section(notes=[_BINS_NOTE])
    return Section(
        "Bins of equal mass",
        parts=[
            *_make_section_per_model(report, report.accuracy, make_bin_section),
            note,
        ],
        formats="html"
        if _exceeds_large_diagram_models(report)
        else _LONG_SECTION_FORMATS,
    )


def _format_bin(row):
    """Format a bin: scores, rows, prediction, frequency, its interval, their ratio."""
    return (
        format_interval_or_blank(row.low, row.high),
        f"{row.rows}",
        f"{row.predicted:.4f}",
        f"{row.observed:.4f}",
        format_interval_or_blank(row.observed_low, row.observed_high),
        _format_ratio_or_empty(row.observed_over_expected),
    )


def _format_ratio_or_empty(ratio):
    if ratio is None:
        return ""
    # Large ratios would have more digits than the rows support.
    return f"{ratio:.3f}" if ratio < 1000 else f"{ratio:.3g}"


def _make_groups_section(report):
    """Show the worst groups of each model."""
    if not report.groups:
        return Section()

    def make_group_section(name):
        section = report.groups[name].section(MAX_SHOWN_GROUPS)
        repair = _find_groups_to_repair(report, name)
        if not repair:
            return section
        names = ", ".join([make_printable(group, 100) for group in repair])
        code = Section(
            sentences=[
                f"To repair {names} alone and leave the other rows as they are:"
            ],
            code=report._group_codes[name].replace("GROUPS", repr(repair)),
            formats=f"{_LONG_SECTION_FORMATS} terminal",
        )
        return section._replace(parts=[code])

    parts = _make_section_per_model(report, report.groups, make_group_section)
    return Section(
        "Groups",
        parts=[*parts, Section(notes=[_GROUPS_NOTE], formats="html")],
        css_class="whole",
    )


def _find_groups_to_repair(report, name):
    """Return the groups that the verdict recommends to repair alone."""
    for sentence in report.verdicts[name].sentences:
        if sentence.topic == "groups":
            return sentence.numbers["repair"]
    return []


def _make_grades_section(report):
    """Show the rating grades of each model."""
    if not report.grades:
        return Section()

    def make_grade_section(name):
        return report.grades[name].section()._replace(title="")

    return Section(
        "Grades",
        parts=_make_section_per_model(report, report.grades, make_grade_section),
        css_class="whole",
    )


def _make_best_model_classes_section(report):
    """Show each class against the others, of the model with the lowest log loss."""
    losses = {row.model: row.value for row in report.rows if row.measure == "log_loss"}
    # One model is enough as an example of single classes: the one with the smallest log
    # loss.
    best = next(iter(report.accuracy))
    if losses:
        best = min(losses, key=losses.__getitem__)
    picture = draw_class_diagrams_if_multiclass(report, best)
    if not picture:
        return Section()
    count = len(report.classes)
    shown = "all classes"
    if count > MAX_SHOWN_CLASSES:
        shown = _SELECTED_CLASSES_NOTE.format(count=count)
    note = (
        f"{make_printable(best)}: {shown}. Across: predicted probability of the class; up: how "
        "often it is true. Bins have equal width."
    )
    return Section(
        "Each class against the others",
        sentences=[note],
        picture=picture,
        formats="html",
    )


def make_meanings_section(names: set[str]) -> Section:
    """Explain measures in a list of definitions."""
    lines = ""
    for name, function in all_metrics().items():
        if name in names:
            # The first line of the docstring is the explanation, so that both agree.
            # A page describes the measure, where a docstring has an imperative.
            meaning = str(function.__doc__).splitlines()[0].replace("`", "")
            meaning = meaning.removeprefix("Compute ")
            meaning = meaning[0].upper() + meaning[1:]
            title = name.replace("_", " ")
            lines += f"<dt>{title}</dt><dd>{html.escape(meaning)}</dd>"
    definitions = f'<dl class="note">{lines}</dl>'
    return Section("What the measures mean", picture=definitions, formats="html")


_MEASURES_NOTE = (
    "Intervals are bootstraps over rows; those of calibration errors are corrected for the bias "
    "that a finite sample gives them. “If calibrated, below”: predictions that are calibrated stay "
    "below this value with probability {level}. If the verdict rejects calibration, values beyond "
    "it are marked ▲."
)

_LOSS_SPLIT_NOTE = (
    "Calibration is what a temperature removes from the log loss (with its {level} interval, where "
    "one is known), refinement what remains; a model is worth having as far as its refinement lies "
    "below the log loss of the class frequencies. Every log loss on this page counts a row as "
    "−log(max(p, 2.2e−16)), with p the probability of its true class."
)

_RECALIBRATION_GAINS_NOTE = (
    "Would recalibration help? Mean losses of {rows}, each recalibrated by a fit that has not "
    "seen it (5 folds); the gain is in log loss, in nats, with its standard error. “Identity” "
    "leaves the probabilities as they are."
)

_FEATURE_SPLIT_NOTE = (
    "What the log loss is made of, each row judged by maps that have not seen it (5 folds): first "
    "recalibrated (auto), then corrected by trees on the features. The features’ gain is the least "
    "that a better use of them is worth; shown as 0 where the trees did harm. Intervals are for "
    "what these maps gain on new rows; the shares say on which columns the trees were split."
)

_TOO_FEW_ROWS_MESSAGE = (
    "Too few rows to say whether to recalibrate or to retrain: at least 50, and 5 of each of two "
    "classes."
)

_BINS_NOTE = (
    "Bin: its number in the diagram. Score: smallest and largest of the bin. Ratio: observed over "
    "predicted. The interval is for the true frequency, for each bin by itself."
)

_GROUPS_NOTE = (
    "The groups furthest off. O/E: observed over expected events, 1 is right; in the large: how "
    "far the log-odds of the group are off, 0 is right; slope of the log-odds, 1 is right. "
    "Intervals hold for all groups at once. Sigma: the range of the cumulative differences in "
    "standard deviations. The adjusted p-value allows for the largest of all groups being looked "
    "at; it is exact where all are calibrated."
)

_SELECTED_CLASSES_NOTE = (
    "of {count} classes the six with the largest expected calibration error, then the six most "
    "frequent of the others"
)
