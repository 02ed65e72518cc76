"""``audit --plan``: how many rows with labels it takes, from the scores alone."""

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.tables import number_column
from .._show import markdown_of, plain, sections_of
from ._columns import probability
from ._names import split_columns
from ._options import any_number, check_different, tolerance_of
from ._printing import Screen, check_outputs, progress, write_json, write_text
from ._remote import local_files
from ._tables import Tables
from ._wording import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_USED = (
    "resamples",
    "no_advice",
    "name",
    "by",
    "features",
    "fail_if",
    "save",
    "recalibrate",
    "dask",
    "classes",
    "positive",
)


class PlanAction(argparse.Action):
    """What to plan for; there will be no page."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        namespace.plan, namespace.no_page = values, True


def errors(text: str) -> list[float]:
    """A type of argparse: mean errors between 0 and 0.5, separated by commas."""
    found = [any_number(part) for part in text.split(",")]
    wrong = next((size for size in found if not 0 < size < 0.5), None)
    if wrong is not None:
        raise argparse.ArgumentTypeError(
            f"expected errors between 0 and 0.5, got {wrong:g}. Write 0.02 for 2 percentage points"
        )
    return found


def plan(options: "argparse.Namespace") -> int:
    """Print how many rows with labels serve a validation and a verdict; returns the exit code."""
    with local_files(options.files, options.allow_remote) as files:
        _check_rows(files)
        _check(options)
        check_outputs(options, files)
        size = _size(files, options)
    screen = Screen()
    screen.show(*sections_of(size))
    if options.json is not None:
        write_json({"plan": size.to_dict()}, options.json)
    if options.markdown is not None:
        write_text(markdown_of(sections_of(size)), options.markdown, "--markdown")
    return screen.finish({"numbers": options.json, "text": options.markdown})


def _check(options):
    """Refuse options that a plan does nothing with."""
    if options.prob is None:
        refuse("--prob, the column of the probabilities", "none", "Name it; a plan needs no labels")
    given = next((name for name in _NOT_USED if getattr(options, name)), None)
    if given is not None:
        option = f"--{given.replace('_', '-')}"
        refuse(f"--plan without {option}", "both: a plan reads the scores alone", "Leave one out")


def _check_rows(files):
    """Refuse what is no table of scores."""
    from ..summary import is_summary_file

    for file in files:
        with suppress(OSError, ValueError):  # reading it words the error
            if is_summary_file(file):
                refuse(
                    "a table of scores for --plan",
                    f"the summary {plain(file)}",
                    "Name the file of the rows, with --prob",
                )


def _size(files: "Sequence[str]", options: "argparse.Namespace") -> Any:
    from ..canonical import canonical_proba
    from ..inference import validation_sample_size

    scores, weights, reading = [], [], Tables(options)
    for file in files:
        names: list[str] = []

        def pick(present, names=names):
            names[:] = split_columns(options.prob, present)
            check_different([], names)
            return [*names, *filter(None, [options.weight])]

        (table,) = reading.kept(reading.read(file, pick))
        scores.append(np.column_stack([probability(table, name, options) for name in names]))
        if options.weight is not None:
            weights.append(number_column(table, options.weight))
    reading.say_what_is_left_out()
    proba = np.vstack(scores)
    if proba.shape[1] > 2:
        refuse(
            "one column in --prob for --plan",
            f"{proba.shape[1]}",
            "Name that of the class that counts; a plan is of two classes",
        )
    if proba.shape[1] == 2:
        proba = canonical_proba(proba, tolerance=tolerance_of(options), _where="audit")
    given = np.concatenate(weights) if weights else None
    with progress("planning"):
        return validation_sample_size(
            proba if proba.shape[1] == 2 else proba[:, 0],
            error=options.plan,
            level=options.level,
            sample_weight=given,
        )
