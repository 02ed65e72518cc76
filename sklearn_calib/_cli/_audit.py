"""The command ``audit``: a report on tables of predictions, or on saved summaries of them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import plain
from ..exceptions import placed
from ._gate import FORM, conditions_of
from ._grades import add_grades, grades_in
from ._identifiers import remark_on_identifiers
from ._labels import audit_labels, check_labels
from ._options import (
    add_clusters,
    add_columns,
    add_confidence,
    add_dask,
    add_files,
    add_reading,
    add_soft_labels,
    examples,
    share,
    whole_number,
)
from ._plan import PlanAction, errors, plan
from ._printing import EXTRAS, Screen, check_outputs, progress
from ._remote import local_files
from ._result import finish, settings_of
from ._rows import called, read_rows

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    "sklearn-calib audit predictions.csv --label outcome --prob p",
    "sklearn-calib audit digits.parquet --label digit --prob p0,p1,p2 --name forest",
    "sklearn-calib audit 'day=*/*.parquet' --label outcome --prob p --save june.parquet",
    "sklearn-calib audit june.parquet --out june.html",
    "sklearn-calib audit predictions.csv --label outcome --prob p --by sex,age",
    "sklearn-calib audit predictions.csv --label outcome --prob p --features age,region",
    "sklearn-calib audit films.csv --labels comedy,drama --prob p_comedy,p_drama",
    "sklearn-calib audit predictions.csv --label outcome --prob p --grades 0.01,0.02,0.05",
    'sklearn-calib audit new.csv --label outcome --prob p --fail-if "log_loss > 0.6"',
    "sklearn-calib audit answers.jsonl --label correct --prob confidence --cluster question_id",
    "sklearn-calib audit answers.jsonl --label truth --prediction answer --prob mark --scale 0,10",
    "sklearn-calib audit scores.csv --prob p --plan 0.02",
    "sklearn-calib audit - --label outcome --prob p --json report.json < predictions.csv",
)


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "audit",
        help="report on a table of predictions (csv, JSON lines, parquet)",
        description="Report on a table of predictions: its measures with intervals, and whether "
        "recalibration would help. Writes a page for a browser.",
        epilog=examples(*EXAMPLES),
    )
    add_files(
        parser,
        "a table: csv or JSON lines (also compressed: .gz, .bz2, .xz, .zst, .zip), parquet, Arrow, "
        "Excel; a folder or a pattern of these, or summaries that --save wrote; - is the standard "
        "input",
    )
    columns = add_columns(parser)
    add_confidence(columns)
    columns.add_argument(
        "--labels",
        action="append",
        metavar="COLUMN[,COLUMN...]",
        help="many labels per row instead of --label: columns of 0 and 1 (or true and false, yes "
        "and no; empty: not known), with as many columns of --prob in the same order",
    )
    columns.add_argument(
        "--by",
        action="append",
        metavar="COLUMN[,COLUMN...]",
        help="also audit the groups of rows that a column makes, and those of any two columns: one "
        "exact p-value for all together, of any number of rows. Of several files the names of "
        "folders such as day=2026-01-31 are columns too, also of saved summaries",
    )
    columns.add_argument(
        "--features",
        action="append",
        metavar="COLUMN[,COLUMN...]",
        help="also find out whether to recalibrate or to retrain: what a better use of these "
        "columns would gain; all: every other column. Name what is known when the model predicts "
        "(of several files and of tables above 8 MB a sample of 20,000 rows)",
    )
    add_soft_labels(columns)
    add_clusters(
        columns,
        "intervals, tests and the verdict count these clusters, not the rows (the tables are then "
        "read whole; not for subgroups, which are --by)",
    )
    add_grades(columns)
    add_reading(parser, mends=True)
    _add_work(parser.add_argument_group("work"))
    _add_results(parser.add_argument_group("results"))
    parser.set_defaults(run=audit, modules=EXTRAS)


def _add_work(group):
    group.add_argument(
        "--resamples",
        type=whole_number(2),
        metavar="N",
        help="draws behind each interval (default: 200, fewer where rows are many and a measure "
        "needs all of them)",
    )
    group.add_argument(
        "--level",
        type=share,
        default=0.9,
        metavar="L",
        help="of the intervals, between 0 and 1 (default: %(default)s)",
    )
    group.add_argument(
        "--recalibrate",
        action="store_true",
        help='also report on the recalibrated probabilities, before beside after: "auto", each '
        "row by a fit that has not seen it",
    )
    group.add_argument(
        "--any-order",
        action="store_true",
        help="report also where another order of the columns fits far better",
    )
    group.add_argument(
        "--no-advice",
        action="store_true",
        help="do not try whether recalibration would help, which takes most of the time",
    )
    group.add_argument(
        "--plan",
        action=PlanAction,
        type=errors,
        metavar="ERROR[,ERROR...]",
        help="no report, but how many rows with labels it takes: for a verdict that finds a mean "
        "error of 0.02, say, with probability 80 %%, and for intervals of O/E, slope and C "
        "statistic that are short enough; reads the scores alone, no labels (two classes)",
    )
    add_dask(group)


def _add_results(group):
    group.add_argument(
        "--name", metavar="TEXT", help="what to call the model (default: its columns)"
    )
    group.add_argument(
        "--out",
        default="report.html",
        metavar="FILE",
        help="the page to write (default: %(default)s)",
    )
    group.add_argument("--no-page", action="store_true", help="write no page")
    group.add_argument("--json", metavar="FILE", help="write all numbers")
    group.add_argument("--markdown", metavar="FILE", help="write the tables as text for a wiki")
    group.add_argument(
        "--save",
        metavar="FILE",
        help="write a summary that audit and CalibrationSummary.from_parquet read again",
    )
    group.add_argument(
        "--fail-if",
        action="append",
        metavar="CONDITION",
        help=f'exit with code 3 where it holds: "{FORM}", for instance '
        '"smooth_calibration_error > 0.05", or "smooth_calibration_error.low > 0.05" for the '
        'lower end of its interval, or "smooth_calibration_error > if_calibrated" for more than '
        "chance; any measure by name, and accuracy; may be given several times",
    )


def audit(options: "argparse.Namespace") -> int:
    """Report on a table and say whether recalibration would help; returns the exit code."""
    from ._large import audit_large, check_whole, is_large, read_whole

    if options.labels is not None:
        check_labels(options)
    if options.plan is not None:
        return plan(options)
    conditions = conditions_of(options.fail_if)  # what is no condition is refused before the work
    options.grades = grades_in(options.grades)
    how: dict[str, Any] = {"copied": True, "workers": options.dask}
    with local_files(options.files, options.allow_remote, **how) as files:
        check_outputs(options, files)
        if options.labels is not None:
            return audit_labels(files, options, conditions)
        remark_on_identifiers(files, options)
        if read_whole(options):
            check_whole(files, options)
        elif is_large(files, options):
            return audit_large(files, options, conditions)
        return _audit_rows(files, options, conditions)


def _audit_rows(files, options, conditions):
    """Report on rows in memory."""
    from ..report import calibration_report

    rows = read_rows(files, options)
    with placed(called(files)):
        screen = Screen()
        with progress("measuring") as advance:
            report = calibration_report(
                rows.labels,
                rows.scores,
                sample_weight=rows.weight,
                labels=rows.classes,
                pos_label=rows.positive,
                by=rows.groups,
                features=rows.features,
                grades=options.grades,
                groups=rows.together,
                soft_labels=bool(options.soft_labels),
                name=plain(options.name or ", ".join(rows.names)),
                normalize=options.normalize,
                progress=advance,
                **settings_of(files, options, conditions),
            )
    if _were_divided(rows.scores):
        options.normalize = True  # fit and apply, which are printed, divide no rows unasked
    return finish(screen, report, options, conditions)


def _were_divided(scores):
    """Whether a report divides rows of several columns by their sums."""
    from ..canonical import SLACK, canonical_proba

    if np.ndim(scores) < 2 or np.shape(scores)[1] < 2:
        return False
    try:
        canonical_proba(scores, tolerance=SLACK)
    except ValueError:
        return True
    return False
