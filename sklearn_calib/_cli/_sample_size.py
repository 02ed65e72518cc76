"""The command ``sample-size``: how many rows with labels it takes, from the scores alone."""

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .._show import get_sections, make_printable, render_markdown
from ._console import Screen, show_progress
from ._messages import invalid_option
from ._options import parse_float_text
from ._outputs import check_outputs_writable_and_distinct, write_results
from ._prediction_batches import load_batch_without_classes
from ._remote import local_files
from ._request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = (
    "sklearn-calib sample-size scores.csv --prob p --error 0.02",
    "sklearn-calib sample-size scores.parquet --prob p --error 0.02,0.05 --json plan.json",
)


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "sample-size",
        help="compute how many labelled rows a validation needs",
        description="Compute from the scores alone (two classes) how many labelled "
        "rows are needed: for a verdict that finds a mean error with probability "
        "80 %, and for intervals of O/E, slope and C statistic that are short "
        "enough.",
        examples=EXAMPLES,
    )
    parser.add_file_arguments()
    columns = parser.add_argument_group("columns")
    columns.add_score_options(classes=False)
    columns.add_shared_options("--weight")
    columns.add_scale_option()
    parser.add_reading_options(missing=("drop",))
    work = parser.add_argument_group("work")
    work.add_argument(
        "--error",
        type=parse_errors,
        required=True,
        metavar="ERROR,...",
        help="the mean error to be found, such as 0.02",
    )
    work.add_shared_options("--level")
    results = parser.add_argument_group("results")
    results.add_shared_options("--json", "--markdown")
    parser.set_defaults(run=run_sample_size)


def parse_errors(text: str) -> list[float]:
    """Return a type of argparse: mean errors between 0 and 0.5, separated by commas."""
    errors = [parse_float_text(number_text) for number_text in text.split(",")]
    wrong = next((size for size in errors if not 0 < size < 0.5), None)
    if wrong is not None:
        raise argparse.ArgumentTypeError(
            f"expected errors between 0 and 0.5, got {wrong:g}. Write 0.02 for 2 percentage points"
        )
    return errors


def run_sample_size(options: Request) -> int:
    """Print how many rows with labels serve a validation and a verdict; returns the exit code."""
    if options.prob is None:
        raise invalid_option(
            expected="--prob, the column of the probabilities",
            got="none",
            hint="Name it; a plan needs no labels",
        )
    with local_files(options) as files:
        _reject_summary_files(files)
        check_outputs_writable_and_distinct(options, files)
        size = _plan_sample_size(files, options)
    screen = Screen()
    sections = get_sections(size)
    screen.show_sections(*sections)
    written = write_results(
        options, lambda: {"plan": size.to_dict()}, lambda: render_markdown(sections)
    )
    return screen.print_paths_and_get_exit_code(written)


def _reject_summary_files(files):
    """Reject what is not a table of scores."""
    from ..summary import is_summary_file

    for file in files:
        with suppress(OSError, ValueError):  # reading it words the error
            if is_summary_file(file):
                raise invalid_option(
                    expected="a table of scores",
                    got=f"the summary {make_printable(file)}",
                    hint="Name the file of the rows, with --prob",
                )


def _plan_sample_size(files: "Sequence[str]", options: Request) -> Any:
    from .._validation import read_proba
    from ..inference import validation_sample_size

    rows = load_batch_without_classes(files, options)
    proba = rows.scores
    if proba.shape[1] > 2:
        raise invalid_option(
            expected="one column in --prob",
            got=f"{proba.shape[1]}",
            hint="Name that of the class that counts; a plan is of two classes",
        )
    if proba.shape[1] == 2:
        proba = read_proba(proba, tolerance=options.sum_tolerance)
    with show_progress("planning"):
        return validation_sample_size(
            proba if proba.shape[1] == 2 else proba[:, 0],
            error=options.error,
            level=options.level,
            sample_weight=rows.weight,
        )
