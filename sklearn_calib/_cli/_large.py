"""Rows by summaries: many files, large ones, saved summaries, groups; memory stays small."""

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.tables import UserError, column_names
from .._show import Section, Table, plain, quoted
from ..summary import find_classes, is_summary_file, summarize
from ._classes import check_two_classes, named_classes
from ._gate import Condition
from ._grades import grade_summary
from ._names import split_columns
from ._options import check_different, check_groups, check_named, form_of, kind_of
from ._printing import Screen, note, progress
from ._result import finish, settings_of
from ._rows import read_rows

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_AT_ONCE = 2**23  # bytes of a table that is read as a whole
_SAMPLED = 20_000  # rows of larger ones that the features are tried on


def is_large(files: "Sequence[str]", options: "argparse.Namespace", several: bool = True) -> bool:
    """Whether to summarise; if not, the rows are read at once.

    So are rows of more than two classes, rounded rows (``--tolerance``, ``--normalize``),
    percentages, logits, the standard input, and rows that are fitted by group. Groups (``--by``)
    do not change it; nor, but where `several` is true, the number of files.
    """
    _is_saved.cache_clear()  # a file may have been written since
    saved = [file for file in files if _is_saved(file)]
    tables = [file for file in files if file not in saved]
    if tables:
        check_named(options, plain(tables[0]))
    wanted = saved or getattr(options, "save", None) or options.dask
    reason = None
    if files == ["-"]:
        reason = "the standard input"
    elif in_memory := _needs_memory(options):
        reason = in_memory
    elif tables and len(_prob_columns(tables[0], options)) > 2:
        reason = "more than two columns of probabilities"
    if reason is not None and wanted:
        raise UserError(
            f"expected two classes in files without --tolerance, --normalize and --percent, for "
            f"summaries, --save and --dask, got {reason}. Leave one of them out."
        )
    size = sum(os.path.getsize(file) for file in tables if reason is None)
    many = several and len(tables) > 1
    return bool(wanted) or (reason is None and (many or size > _AT_ONCE))


def _needs_memory(options):
    given = {"--tolerance": options.tolerance is not None, "--normalize": options.normalize}
    given |= {"--percent": options.percent, "--logits": kind_of(options) == "logits"}
    given["--group"] = getattr(options, "group", None) is not None
    return next((option for option, there in given.items() if there), None)


@cache
def _is_saved(file):
    try:
        return is_summary_file(file)
    except (OSError, ValueError):  # reading it words the error
        return False


def _prob_columns(file, options):
    def pick(present):
        return [options.label, *split_columns(options.prob, present)]

    columns = split_columns(options.prob, column_names(file, pick, **form_of(options)))
    check_different(options.label, columns)
    return columns


def audit_large(
    files: "Sequence[str]", options: "argparse.Namespace", conditions: "Sequence[Condition]"
) -> int:
    """Report on the rows of all files, and say whether recalibration would help."""
    from ..report import calibration_report

    screen = Screen()
    found, name, positive = summaries_of(list(files), options)
    summary = sum(found.values()) if options.by else found
    settings = settings_of(files, options, conditions)
    with progress("measuring") as advance:
        name = plain(options.name or name)
        report = calibration_report(summary, name=name, progress=advance, **settings)
    grade_summary(report, summary, options)
    if options.features:
        report.features[name] = _by_features(files, options)
    if options.save is not None:
        _save(summary, options.save)
    if options.by:
        _print_groups(screen, found, positive)
    return finish(screen, report, options, conditions)


def summaries_of(files: list[str], options: "argparse.Namespace") -> tuple[Any, str, Any]:
    """The summary of all rows, or a dict of groups; its name; the positive class."""
    grouping = getattr(options, "by", None)
    tables = [file for file in files if not _is_saved(file)]
    if getattr(options, "features", None) and len(tables) < len(files):
        raise UserError("expected rows with features, got summaries. Leave --features out.")
    if not tables:
        if grouping:
            raise UserError("expected rows to group, got summaries. Leave --by out.")
        with progress("reading") as advance:
            summary = summarize(files, progress=advance)
        _check_of_summaries(summary, options)
        return summary, files[0] if len(files) == 1 else f"{len(files)} summaries", None
    columns = _prob_columns(tables[0], options)
    present = column_names(tables[0], lambda n: [])
    by = split_columns(grouping, present) if grouping else None
    check_groups(by or [], options.label, columns)
    classes, positive = _classes(files, options, len(columns))
    if len(columns) == 1 and positive is not None and classes[0] == positive:
        classes = classes[::-1]  # the column is the probability of the first class
    plan = {"label": options.label, "prob": columns, "weight": options.weight, "by": by}
    plan |= {"classes": classes, "pos_label": positive, "csv": form_of(options)}
    plan["drop_missing"] = options.drop_missing
    with progress("reading") as advance:
        found = _on_workers(
            options.dask, lambda n: summarize(files, n_jobs=n, progress=advance, **plan)
        )
    rows = sum(s.n_samples for s in (found.values() if by else [found]))
    if not rows:
        raise UserError("expected rows of positive weight, got none. Check the files.")
    return found, ", ".join(columns), classes[1] if positive is None else positive


def _check_of_summaries(summary, options):
    """Refuse what only rows could heed."""
    if options.weight is not None:
        raise UserError(
            "expected rows to weigh, got summaries, which keep the weights that they were made "
            "with. Leave --weight out, or give the rows."
        )
    known = summary.positive_label
    if options.positive is not None and plain(options.positive) != plain(known):
        raise UserError(
            f"expected --positive {quoted(known)}, as the summaries have it, got "
            f"{quoted(options.positive)}. Leave it out, or give the rows."
        )


def _by_features(files, options):
    """The decomposition of a sample of the rows; None where they are too few."""
    from ..decomposition import decompose_by_features, enough_for_features
    from ..metrics import canonical_case

    rows = read_rows(files, options, _SAMPLED)
    note(f"--features: a sample of {len(rows.labels):,} rows")
    given = rows.labels, rows.scores, rows.weight, rows.classes
    case = canonical_case("audit", *given)
    given = {"sample_weight": rows.weight}
    enough = enough_for_features(case)
    return decompose_by_features(case, rows.features, **given) if enough else None


def _classes(files, options, n_columns):
    import pandas as pd

    reading = {"csv": form_of(options), "drop_missing": options.drop_missing}
    found = find_classes(files, label=options.label, **reading)
    classes, positive = named_classes(options, pd.Series(found), n_columns)
    classes = found.tolist() if classes is None else classes
    check_two_classes(classes, options)
    if len(classes) > 2:
        raise UserError(
            f"expected labels of two classes in column {quoted(options.label)}, got "
            f"{len(classes)}. Name one column of probabilities for each class."
        )
    return classes, positive


def _on_workers(address, work):
    """The work in this process, or by the workers of a dask cluster."""
    if address is None:
        return work(None)
    import joblib

    from ..exceptions import require

    try:
        client = require("distributed", "dask", "audit").Client(address)
    except ModuleNotFoundError as error:
        raise UserError(str(error).removeprefix("audit: ")) from error
    except (OSError, ValueError) as error:
        raise UserError(
            f"expected the address of a dask scheduler, got {quoted(address)} "
            f"({plain(str(error), 200).rstrip('.')}). Give one such as tcp://host:8786."
        ) from error
    try:
        with client, joblib.parallel_config("dask"):
            return work(-1)
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        raise UserError(
            f"expected workers of {quoted(address)} that stay, got {type(error).__name__}: "
            f"{plain(str(error), 200).rstrip('.')}. See why they ended (often for want of memory), "
            "and run again; nothing has been written."
        ) from error


def _save(summary, path):
    try:
        summary.to_parquet(path)
    except OSError as error:
        raise UserError(
            f"expected a place to write {quoted(path, 200)}, got: "
            f"{plain(error.strerror or error, 200)}. Choose one with --save."
        ) from error


def _print_groups(screen, groups, positive):
    lines = [
        (", ".join(plain(value, 40) for value in key), *_group_cells(summary, positive))
        for key, summary in groups.items()
        if summary.n_samples
    ]
    header = (
        "group",
        "rows",
        f"rate of {plain(positive, 20)}",
        "mean p",
        "ECE",
        "smooth",
        "log loss",
    )
    screen.show(Section(tables=[Table(header, lines, "groups")]))


def _group_cells(summary, positive):
    rows = summary.rows()
    column = summary.classes.tolist().index(positive)
    rate = np.average(rows.y == summary.classes[column], weights=rows.sample_weight)
    mean = np.average(rows.proba[:, column], weights=rows.sample_weight)
    measures = ("expected_calibration_error", "smooth_calibration_error", "log_loss")
    numbers = (rate, mean, *map(summary.measure, measures))
    return [f"{summary.n_samples}", *(f"{number:.4f}" for number in numbers)]
