"""The command ``audit-multilabel``: a report on tables with a column for each of many labels."""

from functools import partial
from typing import Any

import numpy as np

from .._files.columns import TableBlock, read_label_column_with_missing
from .._files.tables import is_unpacked_size_above
from .._show import get_sections, make_printable, quote_text
from ..exceptions import add_error_context
from ._console import Screen, show_progress
from ._messages import invalid_option
from ._outputs import check_outputs_writable_and_distinct, write_report, write_results
from ._prediction_batches import (
    PredictionBatch,
    describe_files,
    join_batches,
    read_weight_and_cluster_or_nones,
)
from ._remote import local_files
from ._request import (
    Request,
    check_label_and_prob_columns,
    parse_column_names_expanding_lists,
)
from ._result import judge_conditions, make_report_arguments, parse_conditions
from ._tables import TableReader, read_score_column

# Larger tables are not read as a whole.
_MAX_TABLE_BYTES = 2**30
_LABEL_BY_TEXT = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "no": 0.0, "yes": 1.0}
_LABEL_BY_TEXT |= {"0.0": 0.0, "1.0": 1.0, "0,0": 0.0, "1,0": 1.0}
EXAMPLES = (
    "sklearn-calib audit-multilabel films.csv --label comedy,drama --prob p_comedy,p_drama",
    "sklearn-calib audit-multilabel films.csv --label comedy,drama "
    '--prob p_comedy,p_drama --fail-if "log_loss > 0.6"',
)


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "audit-multilabel",
        help="report on a table with many labels per row",
        description="Report on a table with many labels per row, each with a column "
        "of 0 and 1 and a column of probabilities: the measures of each label and "
        "their means. Writes a page for a browser.",
        examples=EXAMPLES,
    )
    parser.add_file_arguments()
    columns = parser.add_argument_group("columns")
    for option, text in (
        (
            "--label",
            "the labels: 0 and 1, true and false, or yes and no; an empty cell is an unknown label",
        ),
        ("--prob", "the probability of each label, in the same order"),
    ):
        columns.add_argument(
            option,
            action="append",
            required=True,
            metavar="COLUMN,...",
            help=text,
        )
    columns.add_shared_options("--weight")
    columns.add_scale_option(marks=False)
    order = "report even if other columns fit the labels far better"
    parser.add_reading_options(
        missing=("drop",), has_tolerance_option=False, order=order
    )
    parser.add_argument_group("work").add_shared_options("--resamples", "--level")
    parser.add_argument_group("results").add_report_options()
    parser.set_defaults(run=audit_labels)


def audit_labels(options: Request) -> int:
    """Report on the labels of all rows; returns the exit code."""
    # Conditions that cannot be read are rejected before the work.
    conditions = parse_conditions(options.fail_if)
    with local_files(options) as files:
        check_outputs_writable_and_distinct(options, files)
        return _emit_multilabel_report(files, options, conditions)


def _emit_multilabel_report(files, options, conditions):
    from ..report import multilabel_report

    if is_unpacked_size_above(files, _MAX_TABLE_BYTES):
        raise invalid_option(
            expected="tables of at most 1 GB, unpacked, for many labels",
            got="larger ones",
            hint="Give a sample of the rows, or audit one label at a time, which reads any size",
        )
    rows = _load_multilabel_batch(files, options)
    screen = Screen()
    settings = make_report_arguments(files, options, conditions)
    name = make_printable(options.name or f"{len(rows.names)} labels")
    with (
        add_error_context(source=describe_files(files)),
        show_progress("measuring") as advance,
    ):
        report = multilabel_report(
            rows.labels,
            rows.scores,
            sample_weight=rows.weight,
            labels=rows.names,
            name=name,
            progress=advance,
            **settings,
        )
    screen.show_sections(*get_sections(report))
    page = None
    if not options.no_page:
        page = write_report(report, options.out, f"Calibration of {report.name}")
    written = write_results(options, report.to_dict, report.to_markdown)
    code = judge_conditions(
        screen,
        conditions,
        partial(_get_mean_fields, report),
        "of the mean over labels, ",
    )
    return screen.print_paths_and_get_exit_code({"report": page, **written}, code)


def _get_mean_fields(report, measure):
    """Return the fields of the mean of a measure over the labels."""
    if measure == "accuracy":
        return {"value": report.accuracy}
    average = next(average for average in report.averages if average.measure == measure)
    ends = {
        "low": average.macro_low,
        "high": average.macro_high,
        "null_mean": average.null_mean,
    }
    return {"value": average.macro, **ends}


def _load_multilabel_batch(files, options):
    """Return all rows, whose labels are those of each column."""
    weight = [*filter(None, [options.weight])]

    def pick_columns(file, present):
        labels, columns = _find_label_and_prob_columns(options, present)
        return [*dict.fromkeys([*labels, *columns, *weight])]

    def find_required(file, present):
        return [*_find_label_and_prob_columns(options, present)[1], *weight]

    tables = TableReader(options).load_complete_rows_and_print_dropped(
        files, pick_columns, find_required
    )
    return join_batches([_make_prediction_batch(table, options) for table in tables])


def _make_prediction_batch(table, options):
    labels, columns = _find_label_and_prob_columns(options, list(table.columns))
    truth = np.column_stack([_parse_binary_labels(table, name) for name in labels])
    scores = np.column_stack(
        [read_score_column(table, name, options) for name in columns]
    )
    return PredictionBatch(
        truth, scores, names=labels, **read_weight_and_cluster_or_nones(table, options)
    )


def _find_label_and_prob_columns(options, present):
    """Return the columns of the labels, and those of their probabilities."""
    labels, columns = (
        parse_column_names_expanding_lists(option_values, present)
        for option_values in (options.label, options.prob)
    )
    if len(labels) != len(columns):
        raise invalid_option(
            expected=(
                f"one column of --prob for each of the {len(labels)} columns of --label, "
                "in their order"
            ),
            got=f"{len(columns)}",
            hint="Name as many",
        )
    check_label_and_prob_columns(labels, columns)
    return labels, columns


def _parse_binary_labels(table: TableBlock, name: str) -> Any:
    """Return a column of labels as 0, 1 and NaN, which is an empty cell."""
    column = read_label_column_with_missing(table, name)
    if column.dtype.kind in "fiub":
        return column.to_numpy(dtype=float, na_value=np.nan)
    words = column.map(lambda text: str(text).strip().lower(), na_action="ignore")
    numbers = words.map(_LABEL_BY_TEXT)
    wrong = np.flatnonzero(numbers.isna().to_numpy() & column.notna().to_numpy())
    if len(wrong):
        raise invalid_option(
            expected=(
                f"0 and 1, true and false or yes and no in column {quote_text(name)} of "
                f"{make_printable(table.file)}"
            ),
            got=f"{quote_text(column.iloc[wrong[0]])} in row {table.get_file_row(wrong[0])}",
            hint=(
                "An empty cell is a label that is not known; one label of several "
                "classes goes with audit"
            ),
        )
    return numbers.to_numpy(dtype=float)
