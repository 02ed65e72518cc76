"""Print, write and judge a report, and print the commands that would repair the model."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._show import get_sections, quote_for_shell, quote_text
from .._spelling import find_nearest_name, suggest_name
from ._console import Screen, print_note, show_progress
from ._messages import EXIT_FINDING, EXIT_SUCCESS, invalid_option
from ._options import CONDITION_FORM, Parser, suggest_plain_number
from ._outputs import write_report, write_results
from ._remote import describe_source
from ._request import Request

if TYPE_CHECKING:
    from ..report import CalibrationReport

_CONDITION_OPERATOR_BY_SIGN = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_CONDITION_FIELDS = ("value", "low", "high", "null_mean")
_CONDITION_PATTERN = re.compile(
    r"\s*(\w+)(?:\.(\w+))?\s*(>=|<=|>|<)\s*(\S+|\S+\s*%)\s*"
)


class Condition(NamedTuple):
    """``measure.field sign limit``; the limit is a number or the name of a field."""

    measure: str
    field_name: str
    sign: str
    limit: float | str

    def evaluate_condition(self, value_by_field: dict[str, Any]) -> tuple[bool, str]:
        """Return whether it holds of the fields of its measure, and the finding in words."""
        value = value_by_field[self.field_name]
        limit = (
            value_by_field[self.limit] if isinstance(self.limit, str) else self.limit
        )
        if math.isnan(value) or math.isnan(limit):
            raise invalid_option(
                expected="numbers to compare",
                got=f"{value} and {limit} for {self.measure}",
                hint="Check the rows",
            )
        name = (
            self.measure
            if self.field_name == "value"
            else f"{self.measure}.{self.field_name}"
        )
        holds = bool(_CONDITION_OPERATOR_BY_SIGN[self.sign](value, limit))
        shown = (
            f"{self.limit} ({limit:.4g})"
            if isinstance(self.limit, str)
            else f"{limit:g}"
        )
        return (
            holds,
            f"{name} is {value:.4g}, {'' if holds else 'not '}{self.sign} {shown}",
        )


def parse_conditions(texts: Iterable[str] | None) -> list[Condition]:
    """Read conditions; reject other texts."""
    return [_parse_fail_if_condition(text) for text in texts or ()]


def _parse_fail_if_condition(text):
    match = _CONDITION_PATTERN.fullmatch(text)
    if match is None:
        raise invalid_option(
            expected=f"--fail-if {quote_text(CONDITION_FORM)}",
            got=quote_text(text),
            hint='An example: --fail-if "smooth_calibration_error > 0.05"',
        )
    measure, field, sign, limit = match.groups()
    from ..metrics import all_metrics

    known_measures = ["accuracy", *all_metrics()]
    if measure not in known_measures:
        raise invalid_option(
            expected=f"in --fail-if one of {', '.join(known_measures)}",
            got=quote_text(measure),
            hint=suggest_name(measure, known_measures, "Name one of them"),
        )
    fields = ("value",) if measure == "accuracy" else _CONDITION_FIELDS
    if (field or "value") not in fields:
        raise invalid_option(
            expected=f"{' or '.join(f'{measure}.{name}' for name in fields)} in --fail-if",
            got=quote_text(f"{measure}.{field}"),
            hint=suggest_name(field, fields, "Without an ending it is the value"),
        )
    if limit != "null_mean" or measure == "accuracy":
        limit_text = limit
        try:
            limit = float(limit)
        except ValueError:
            limit = math.nan
        if not math.isfinite(limit):
            hint = "Write one with a point, or null_mean for the limit of chance"
            if find_nearest_name(limit_text, ["null_mean"]):
                hint = "Write null_mean for the limit of chance"
            raise invalid_option(
                expected="a number at the end of --fail-if",
                got=quote_text(text),
                hint=suggest_plain_number(limit_text) or hint,
            )
    return Condition(measure, field or "value", sign, limit)


def _list_report_measures_if_not_default(conditions):
    """Return the measures of a report that can be judged; None for those of every report."""
    from ..metrics import all_metrics

    usual = [name for name, measure in all_metrics().items() if measure.spec.in_report]
    more = {condition.measure for condition in conditions} - {"accuracy", *usual}
    return [name for name in all_metrics() if name in {*usual, *more}] if more else None


_PATTERN_BY_ENDING = {
    ".jsonl": re.compile(r"\.(jsonl|ndjson)(\.\w+)?$", re.IGNORECASE),
    ".parquet": re.compile(r"\.parquet$", re.IGNORECASE),
}


def format_fit_and_apply_commands(options: Request) -> str:
    """Write ``fit`` with the files and options of an audit, then ``apply``, one line each."""
    fit = Parser()
    apply = Parser()
    columns = fit.add_column_options()
    columns.add_scale_option()
    columns.add_shared_options("--prediction")
    columns.add_cluster_option("")
    columns.add_soft_labels_option()
    fit.add_reading_options()
    apply.add_score_options()
    apply.add_scale_option()
    apply.add_reading_options(missing=("absent",))
    ending = ".csv"
    for other, pattern in _PATTERN_BY_ENDING.items():
        if any(map(pattern.search, options.files)):
            ending = other
    new = f"new{ending}"
    repaired = f"repaired{ending}"
    lines = (
        [
            "fit",
            *options.files,
            *_format_given_options_as_words(fit, options),
            "--out",
            "map.json",
        ],
        [
            "apply",
            "map.json",
            new,
            *_format_given_options_as_words(apply, options),
            "--out",
            repaired,
        ],
    )
    return "".join(
        f"sklearn-calib {' '.join(map(quote_for_shell, line))}\n" for line in lines
    )


def _format_given_options_as_words(parser, options):
    """Return the words that give a parser those of its options that differ from their defaults."""
    words = []
    for action in parser._actions:
        value = getattr(options, action.dest, action.default)  # none of --help
        name = action.option_strings[0]
        if value is True:
            words.append(name)
        elif value != action.default:
            many = value if isinstance(value, list) else [value]
            option_values = [
                option_value
                for option_value in many
                if action.choices is None or option_value in action.choices
            ]
            words += [
                word
                for option_value in option_values
                for word in (name, str(option_value))
            ]
    return words


def make_report_arguments(
    files: Sequence[str],
    options: Request,
    conditions: Sequence[Condition],
) -> dict[str, Any]:
    """Return arguments of `calibration_report`: how, and where the rows come from."""
    source = describe_source(options.files, files)
    return {
        "level": options.level,
        "n_resamples": "auto" if options.resamples is None else options.resamples,
        "measures": _list_report_measures_if_not_default(conditions),
        "source": None if source == "-" else source,
        "check_columns": not options.any_order,
    }


def emit_report(
    screen: Screen,
    report: "CalibrationReport",
    options: Request,
    conditions: Sequence[Condition],
) -> int:
    """Print, write and judge a report on one model; returns the exit code."""
    (model,) = report.accuracy
    few = False
    if not options.no_advice:
        with show_progress("recalibrating") as advance:
            report.advise(advance)  # the verdict mentions it
        advice = report.advice[model]
        few = advice is None
        of_table = options.label is not None and options.prob is not None
        if advice is not None and of_table:
            # which read the file as audit does
            advice.code = format_fit_and_apply_commands(options)
    screen.show_sections(*get_sections(report))
    if few:
        reason = "too few rows of some class"
        if len(report.classes) > 2 and options.label is None:
            reason = "summaries of several classes hold no rows"
        screen.print(f"{reason} to say whether recalibration would help\n")
    after = (
        _make_recalibrated_report_or_raise(report, model, options)
        if options.recalibrate
        else None
    )
    if after is not None:
        screen.print("each row recalibrated by a fit that has not seen it:")
        screen.show_sections(*get_sections(after))
    page = None
    if not options.no_page:
        page = write_report(report, options.out, f"Calibration of {model}")

    def get_report_as_dict():
        content = report.to_dict()
        content["models"] += [] if after is None else after.to_dict()["models"]
        return content

    def get_report_markdown():
        return "\n".join(
            shown_report.to_markdown()
            for shown_report in (report, after)
            if shown_report is not None
        )

    def get_measure_value_by_field(measure):
        if measure == "accuracy":
            return {"value": report.accuracy[model]}
        return next(
            vars(row)
            for row in report.rows
            if (row.model, row.measure) == (model, measure)
        )

    written = {
        "report": page,
        "summary": options.save,
        **write_results(options, get_report_as_dict, get_report_markdown),
    }
    return screen.print_paths_and_get_exit_code(
        written, judge_conditions(screen, conditions, get_measure_value_by_field)
    )


def judge_conditions(
    screen: Screen,
    conditions: Sequence[Condition],
    get_measure_value_by_field: Callable[[str], dict[str, Any]],
    prefix: str = "",
) -> int:
    """Print which conditions hold, given the fields of each measure; returns the exit code."""
    failed = []
    for condition in conditions:
        holds, finding = condition.evaluate_condition(
            get_measure_value_by_field(condition.measure)
        )
        if holds:
            failed.append(f"{prefix}{finding}")
        else:
            screen.print(f"passed: {prefix}{finding}")
    for finding in failed:
        print_note(f"failed: {finding}")
    return EXIT_FINDING if failed else EXIT_SUCCESS


def _make_recalibrated_report_or_raise(report, model, options):
    """Return a report on the same rows, each recalibrated by a fit that has not seen it."""
    from ..report import calibration_report

    advice = report.advise()[model]
    if advice is None:
        raise invalid_option(
            expected="at least five rows of each class for --recalibrate",
            got="fewer",
            hint="Leave it out",
        )
    summary = advice.summaries()["recalibrated"]
    with show_progress("measuring") as advance:
        return calibration_report(
            {f"{model}, recalibrated": summary},
            level=options.level,
            n_resamples="auto" if options.resamples is None else options.resamples,
            check_columns=False,
            progress=advance,
        )
