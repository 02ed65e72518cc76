"""The command ``audit``: a report on tables of predictions, or on saved summaries of them."""

import json
import os
from typing import Any

import numpy as np

from .._files.input_files import read_uncompressed_json_text
from .._show import make_printable, quote_text
from ..exceptions import add_error_context
from ._console import Screen, show_progress
from ._messages import invalid_option
from ._options import parse_float_text, suggest_plain_number
from ._outputs import check_outputs_writable_and_distinct
from ._prediction_batches import describe_files, load_rows
from ._remote import local_files
from ._request import Request, parse_names
from ._result import emit_report, make_report_arguments, parse_conditions
from ._tables import print_identifier_note

EXAMPLES = (
    "sklearn-calib audit predictions.csv --label outcome --prob p",
    "sklearn-calib audit digits.parquet --label digit --prob p0,p1,p2",
    "sklearn-calib audit 'day=*/*.parquet' --label outcome --prob p --save june.parquet",
    "sklearn-calib audit june.parquet --out june.html",
    "sklearn-calib audit predictions.csv --label outcome --prob p --by sex,age --features region",
    'sklearn-calib audit new.csv --label outcome --prob p --fail-if "log_loss > 0.6"',
    "sklearn-calib audit answers.jsonl --label correct --prob confidence --cluster question_id",
)


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "audit",
        help="report on a table of predictions",
        description="Report on a table of predictions: its measures with intervals, and whether "
        "recalibration would help. Writes a page for a browser.",
        examples=EXAMPLES,
    )
    parser.add_file_arguments(
        "a table: csv or JSON lines (also compressed), parquet, Arrow, Excel; a folder or a "
        "pattern of these, or summaries that --save wrote; - is the standard input",
    )
    columns = parser.add_column_options()
    columns.add_scale_option(logits=True)
    columns.add_shared_options("--prediction")
    columns.add_repeatable_option(
        "--by",
        "COLUMN,...",
        "also audit the groups of each column and of any two columns, with one "
        "exact p-value for all; folder names such as day=2026-01-31 are columns",
    )
    columns.add_repeatable_option(
        "--features",
        "COLUMN,...",
        "also find out whether to recalibrate or to retrain, from the gain of a "
        "better use of these columns (computed from at most 20,000 rows); all: "
        "every other column",
    )
    columns.add_soft_labels_option()
    columns.add_cluster_option(
        "intervals, tests and the verdict count these clusters instead of rows "
        "(tables are held in memory; for subgroups see --by)",
    )
    add_grades_option(columns)
    order = "report even if another order of the columns fits far better"
    parser.add_reading_options(divides_rounded_rows=True, order=order)
    _add_computation_options(parser.add_argument_group("work"))
    _add_result_options(parser.add_argument_group("results"))
    parser.set_defaults(run=run_audit)


def _add_computation_options(group):
    group.add_shared_options("--resamples", "--level")
    group.add_argument(
        "--recalibrate",
        action="store_true",
        help='also report on probabilities that "auto" has recalibrated, each row by '
        "a fit to other rows",
    )
    group.add_argument(
        "--no-advice",
        action="store_true",
        help="do not test whether recalibration would help (faster)",
    )
    group.add_shared_options("--query", "--dask")


def _add_result_options(group):
    group.add_report_options()
    group.add_argument(
        "--save",
        metavar="FILE",
        help="write a summary, which audit and CalibrationSummary.from_parquet can read",
    )


def run_audit(options: Request) -> int:
    """Report on a table and on the gain of a recalibration; returns the exit code."""
    from ._large import (
        audit_large_files,
        check_conflicts_with_all_rows,
        find_options_needing_all_rows,
        should_summarize_files,
    )

    # Conditions that cannot be read are rejected before the work.
    conditions = parse_conditions(options.fail_if)
    options.grades = _read_grades_or_none(options.grades)
    with local_files(options) as files:
        check_outputs_writable_and_distinct(options, files)
        print_identifier_note(files, options)
        if find_options_needing_all_rows(options):
            check_conflicts_with_all_rows(files, options)
        elif should_summarize_files(files, options):
            return audit_large_files(files, options, conditions)
        screen, report = _make_screen_and_row_report(files, options, conditions)
        return emit_report(screen, report, options, conditions)


def _make_screen_and_row_report(files, options, conditions):
    """Return where a report is shown, and the report on rows in memory."""
    from ..report import calibration_report

    rows = load_rows(files, options)
    with add_error_context(source=describe_files(files)):
        screen = Screen()
        with show_progress("measuring") as advance:
            report = calibration_report(
                rows.labels,
                rows.scores,
                sample_weight=rows.weight,
                labels=rows.classes,
                pos_label=rows.positive,
                by=rows.groups,
                features=rows.features,
                grades=options.grades,
                groups=rows.cluster,
                soft_labels=bool(options.soft_labels),
                name=make_printable(options.name or ", ".join(rows.names)),
                normalize=options.normalize,
                progress=advance,
                **make_report_arguments(files, options, conditions),
            )
    _insert_file_reading_code_if_plain_file(report, rows, options)
    if _has_row_sums_off_one(rows.scores):
        # fit and apply, which are printed, divide no rows unasked
        options.normalize = True
        options.sums = ["any"]
    return screen, report


def _insert_file_reading_code_if_plain_file(report, rows, options):
    """Let the code that repairs groups read a file that pandas reads as audit does."""
    from ..report import GROUP_CODE_INPUTS

    kind = str(options.files[0]).rpartition(".")[2]
    changed = options.scale or options.soft_labels or options.query
    plain_file = len(options.files) == 1 and kind in ("csv", "parquet")
    # An address may contain secrets, which must not be printed.
    plain_file = plain_file and "://" not in str(options.files[0])
    if rows.groups is None or changed or not plain_file or not options.label:
        return
    wanted = rows.names[0] if len(rows.names) == 1 else list(rows.names)
    reading = (
        f"import pandas as pd\ntable = pd.read_{kind}({options.files[0]!r})\n"
        f"y_true = table[{options.label!r}]\n"
        f"y_proba = table[{wanted!r}]\n"
        f"by = table[{list(rows.groups)!r}]"
    )
    for name, code in report._group_codes.items():
        report._group_codes[name] = code.replace(GROUP_CODE_INPUTS, reading)


def _has_row_sums_off_one(scores):
    """Return whether sums of several columns are not 1, so that a report divides rows."""
    from .._validation import FLOAT32_SUM_TOLERANCE, canonical_proba

    if np.ndim(scores) < 2 or np.shape(scores)[1] < 2:
        return False
    try:
        canonical_proba(scores, tolerance=FLOAT32_SUM_TOLERANCE)
    except ValueError:
        return True
    return False


def add_grades_option(group: Any) -> None:
    """Add the option."""
    group.add_argument(
        "--grades",
        metavar="EDGES|FILE",
        help="also test rating grades, given by the lower edges of the second one and "
        'those after it, such as 0.01,0.02,0.05; or a JSON file with "edges" and '
        '"names" (two classes)',
    )


def _read_grades_or_none(grades_option):
    """Return the grades of an option: edges, or a file of them; None without one."""
    if grades_option is None:
        return None
    from ..groups import to_grades

    if not os.path.exists(grades_option):
        return to_grades([_parse_edge(text) for text in parse_names([grades_option])])
    try:
        content = json.loads(read_uncompressed_json_text(grades_option))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no JSON"
        raise invalid_option(
            expected=f"grades in {quote_text(grades_option, 200)}",
            got=make_printable(reason, 200),
            hint='Write for instance {"edges": [0.02, 0.05], "names": ["A", "B", "C"]}',
        ) from error
    return to_grades(content)


def _parse_edge(text):
    try:
        return parse_float_text(text)
    except Exception:
        raise invalid_option(
            expected="edges or a file in --grades",
            got=quote_text(text),
            hint=suggest_plain_number(text)
            or "Write for instance --grades 0.01,0.02,0.05; a column of grades is --by COLUMN",
        ) from None
