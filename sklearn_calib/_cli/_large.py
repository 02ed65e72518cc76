"""Rows by summaries: many files, large ones, saved summaries, groups; memory stays small."""

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from .._argument_checks import import_optional
from .._files.columns import TableBlock
from .._files.tables import is_unpacked_size_above, read_all_column_names
from .._kernels._detectable_error import SIGNIFICANCE_LEVEL
from .._show import make_printable, quote_text
from ..exceptions import InvalidInputError
from ..groups import audit_pair_sums, group_calibration, partition_values
from ..summary import count_values, is_summary_file, summarize, summarize_groups
from ._classes import (
    check_column_order,
    find_class_order,
    sort_by_class_order_if_class_names,
)
from ._console import Screen, show_progress
from ._drawn import (
    check_scores_not_reversed,
    compute_feature_gains_if_enough_rows,
    get_checked_sample,
    make_draw_options,
    reject_empty_summary,
    repeat_soft_label_items_up_to_max_rows,
)
from ._messages import invalid_option
from ._outputs import translate_write_errors
from ._request import Request, format_option_name, parse_column_names_expanding_lists
from ._result import Condition, emit_report, make_report_arguments
from ._tables import infer_text_column, parse_column_if_numbers_or_dates

if TYPE_CHECKING:
    from ..groups import GroupCalibration
    from ..summary import CalibrationSummary, DrawAndScoreOptions
    from ._prediction_batches import PredictionBatch

_GROUP_AUDIT_OPTIONS = {"depth": 2, "level": 1 - SIGNIFICANCE_LEVEL}


def audit_groups(
    files: list[str],
    by: Sequence[str],
    plan: dict[str, Any],
    draw: "DrawAndScoreOptions",
    *,
    n_jobs: int | None = None,
) -> "tuple[CalibrationSummary, GroupCalibration | None]":
    """Return the summary of all rows, and the audit of their groups; None of no rows.

    They are read twice: what values the columns have, then how often they come with
    each score.

    Parameters
    ----------
    files : list of str
    by : sequence of str
        The columns.
    plan : dict
        Further arguments of `summarize`.
    draw : DrawAndScoreOptions
        What to draw beside the summary.
    n_jobs : int, optional
    """
    reading = {"n_jobs": n_jobs, "csv": plan["csv"]}
    with show_progress("reading groups") as advance:
        # the label, which is in the files, is read with columns that only folders name
        values = count_values(files, [*by, plan["label"]], progress=advance, **reading)
    del values[plan["label"]]
    partitions = []
    for name, column in values.items():
        listed, counts = column.list_values_and_counts()
        listed = _parse_group_values(listed, column)
        # The groups of a column are known after its values have been counted; then the
        # rows are counted by group and score.
        partition = partition_values(
            make_printable(name), listed, counts, **_GROUP_AUDIT_OPTIONS
        )
        column.assign_values_to_groups(partition.codes, len(partition.names))
        partitions.append(partition)
    with show_progress("reading") as advance:
        columns = [*values.values()]
        grouped = summarize_groups(
            files,
            columns,
            progress=advance,
            draw=draw,
            **plan | reading,
        )
    partitions = [
        values_of_column._replace(codes=codes)
        for values_of_column, codes in zip(partitions, grouped.groups, strict=True)
    ]
    audited = None
    if grouped.summary.n_samples:
        audited = audit_pair_sums(
            grouped.pairs,
            partitions,
            grouped.row_counts,
            grouped.summary,
            **_GROUP_AUDIT_OPTIONS,
        )
    return grouped.summary, audited


def _read_total_summary_and_group_audit(files, by):
    """Return the summary of all rows, and the groups that the folders of saved summaries name."""
    with show_progress("reading") as advance:
        summary_by_group = summarize(files, by=[*by], progress=advance)
    groups = group_calibration(
        summary_by_group,
        groups=[make_printable(name) for name in by],
        **_GROUP_AUDIT_OPTIONS,
    )
    return sum(summary_by_group.values()), groups


def _parse_group_values(values, column):
    """Return values of a column as if it had been read at once."""
    import pandas as pd

    if values.dtype.kind != "O":
        return values
    listed = pd.Series(values, dtype=object)
    if column.as_text:
        listed = infer_text_column(listed, column.decimal)
    if not any(isinstance(value, str) for value in listed):
        return listed.to_numpy(dtype=object)
    frame = pd.DataFrame({column.name: listed})
    return parse_column_if_numbers_or_dates(
        TableBlock(frame, "", column.decimal), column.name
    ).to_numpy()


# Smaller tables are read as a whole.
_MAX_WHOLE_TABLE_BYTES = 2**23


def should_summarize_files(
    files: "Sequence[str]", options: Request, by_file_count: bool = True
) -> bool:
    """Return whether to summarise; if not, the rows are read at once.

    If `by_file_count` is true, the number of files decides too.
    """
    _is_saved_summary.cache_clear()  # a file may have been written since
    # Saved summaries have no rows to read.
    tables = [file for file in files if not _is_saved_summary(file)]
    if tables:
        _check_columns_named_and_grades_binary(tables[0], options)
    wanted = len(tables) < len(files) or options.save or options.dask
    many = by_file_count and len(tables) > 1
    return (
        bool(wanted) or many or is_unpacked_size_above(tables, _MAX_WHOLE_TABLE_BYTES)
    )


#: Options that need all rows at once, however large the tables are.
_OPTIONS_NEEDING_ALL_ROWS = (
    "group",
    "prediction",
    "scale",
    "soft_labels",
    "absent",
    "logits",
)


def find_options_needing_all_rows(
    options: Request, names: Sequence[str] = _OPTIONS_NEEDING_ALL_ROWS
) -> list[str]:
    """Return which options were given that need all rows at once."""
    return [
        format_option_name(name)
        for name in names
        if getattr(options, name) not in (None, False)
    ]


def check_conflicts_with_all_rows(files: "Sequence[str]", options: Request) -> None:
    """Reject what cannot go together with rows that are read whole, or with clusters."""
    option = find_options_needing_all_rows(options)[0]
    _check_no_summaries(files, option, options.group is not None)
    others = ["save", "dask"]
    if options.group is not None or options.soft_labels:
        others += ["by", "features", "grades", "recalibrate"]
    if options.soft_labels:
        option = "--soft-labels"
    options.check_conflicting_options(option, others)
    _check_columns_named_and_grades_binary(files[0], options)


def _check_columns_named_and_grades_binary(file, options):
    """Raise an error for unnamed columns or grades of several classes, before rows are read."""
    options.check_required_columns_named(make_printable(file))
    n_columns = len(_find_column_roles(file, options).scores)
    if options.grades is not None and n_columns > 2:
        raise invalid_option(
            expected="the column of one class in --prob, whose probability has --grades",
            got=f"{n_columns} columns",
            hint="Name one of two classes, or leave --grades out",
        )


@cache
def _is_saved_summary(file):
    try:
        return is_summary_file(file)
    except (OSError, ValueError):  # reading it words the error
        return False


def _find_column_roles(file, options):
    """Return the columns of a file by what they are for."""

    def pick_columns(present):
        return [
            *options.get_label_columns(present),
            *parse_column_names_expanding_lists(options.prob, present),
        ]

    return options.find_roles(
        read_all_column_names(file, pick_columns, **options.csv_options)
    )


def audit_large_files(
    files: "Sequence[str]", options: Request, conditions: "Sequence[Condition]"
) -> int:
    """Report on the rows of all files and on the gain of a recalibration."""
    from ..report import calibration_report

    screen = Screen()
    summary, groups, name = summarize_files_and_groups(list(files), options)
    if summary.drawn is not None:
        get_checked_sample(summary, options)  # rejects columns in another order
    else:
        check_scores_not_reversed(summary, options)
    settings = make_report_arguments(files, options, conditions)
    with show_progress("measuring") as advance:
        name = make_printable(options.name or name)
        settings["grades"] = options.grades
        report = calibration_report(summary, name=name, progress=advance, **settings)
    if options.by:
        report.groups[name] = groups
    if options.features:
        report.features[name] = compute_feature_gains_if_enough_rows(summary, options)
    if options.save is not None:
        with translate_write_errors(options.save, "--save"):
            summary.to_parquet(options.save)
    return emit_report(screen, report, options, conditions)


def summarize_files_and_groups(
    files: list[str], options: Request, rows: bool = False
) -> tuple[Any, Any, str]:
    """Return the summary of all rows, the audit of the groups of ``--by`` or None, and a name.

    With `rows`, and of several classes, some rows are drawn beside it.
    """
    tables = [file for file in files if not _is_saved_summary(file)]
    if options.features and len(tables) < len(files):
        raise invalid_option(
            sentence="--features needs rows, but summaries were given",
            hint="Leave --features out",
        )
    if not tables:
        name = files[0] if len(files) == 1 else f"{len(files)} summaries"
        groups = None
        if options.by:
            summary, groups = _read_total_summary_and_group_audit(
                files, options.get_group_columns(())
            )
        else:
            with show_progress("reading") as advance:
                summary = summarize(files, progress=advance)
        _check_summary_options(summary, options)
        return summary, groups, name
    read = partial(_read_summary_groups_and_columns, files, tables[0], options, rows)
    try:
        summary, groups, columns = read(all_labels=len(files) > 1)
    # maybe a label that the first rows of the file do not show
    # The first attempt reads labels only until every column has a class.
    except (ValueError, InvalidInputError):
        summary, groups, columns = read(all_labels=True)
    return summary, groups, ", ".join(columns)


def _read_summary_groups_and_columns(files, table, options, rows, all_labels):
    """Do as `summarize_files_and_groups`.

    Labels are read till each column has a class, or all of them if `all_labels`.
    """
    roles = _find_column_roles(table, options)
    draw = make_draw_options(options, roles.features, rows or len(roles.scores) > 2)
    order = _find_class_order_and_check_columns(files, options, roles, all_labels)
    columns = sort_by_class_order_if_class_names(roles.scores, order.classes)
    plan = {
        "label": roles.labels if options.soft_labels else options.label,
        "prob": columns,
        "weight": options.weight,
        "classes": order.column_classes,
        "pos_label": order.positive,
        "csv": options.csv_options,
        "drop_missing": options.drop_missing,
        "soft_labels": bool(options.soft_labels),
    }

    def summarize_with_group_audit_or_none(n_jobs):
        if roles.groups:
            return audit_groups(files, roles.groups, plan, draw, n_jobs=n_jobs)
        with show_progress("reading") as advance:
            return summarize(
                files,
                n_jobs=n_jobs,
                progress=advance,
                _draw=draw,
                **plan,
            ), None

    summary, groups = _run_here_or_on_dask_workers(
        options.dask, summarize_with_group_audit_or_none
    )
    reject_empty_summary(summary)
    return summary, groups, columns


def draw_soft_label_items_and_count_all(
    files: "Sequence[str]", options: Request
) -> "tuple[PredictionBatch, int]":
    """Read items of soft labels that their own digits draw, and count all of them.

    If they are not many, all of them.
    """
    _check_no_summaries(files, "--soft-labels")
    summary, _, columns = _read_summary_groups_and_columns(
        [*files],
        files[0],
        options,
        rows=True,
        all_labels=True,
    )
    drawn = summary.drawn.get_sample(summary.classes)
    rows = repeat_soft_label_items_up_to_max_rows(drawn, columns, options)
    check_column_order(rows.labels, rows.scores, rows.classes, len(rows.names), options)
    return rows, summary.n_samples


def _check_no_summaries(files, option, clusters=False):
    """Reject summaries if single rows are needed, or sums of clusters."""
    if any(_is_saved_summary(file) for file in files):
        why = "which do not keep single rows"
        if clusters:
            why = "which add rows up by score: what each cluster adds there is as much as the rows"
        raise invalid_option(
            expected=f"rows for {option}", got=f"summaries, {why}", hint="Give the rows"
        )


def _check_summary_options(summary, options):
    """Reject options that need the rows, and summaries without rows."""
    if not summary.n_samples:
        raise invalid_option(
            expected="a summary of at least one row",
            got="an empty summary",
            hint="Give one of rows, or the rows themselves",
        )
    words = {
        "weight": "weight",
        "cluster": "group",
        "scale": "numbers",
        "tolerance": "sums",
    }
    for option, name in words.items():
        if getattr(options, name) is not None:
            more = (
                ", which keep the weights that they were made with"
                if name == "weight"
                else ""
            )
            raise invalid_option(
                expected=f"rows for --{option}",
                got=f"summaries{more}",
                hint="Leave it out, or give the rows",
            )
    summary_positive = summary.positive_label
    if options.positive is not None and make_printable(
        options.positive
    ) != make_printable(summary_positive):
        raise invalid_option(
            expected=f"--positive {quote_text(summary_positive)}, as the summaries have it",
            got=quote_text(options.positive),
            hint="Leave it out, or give the rows",
        )


def _find_class_order_and_check_columns(files, options, roles, all_labels):
    n_columns = len(roles.scores)
    n_enough = None if all_labels else max(2, n_columns)
    order = find_class_order(files, n_columns, options, roles.labels, n_enough)
    if len(order.classes) > 2 >= n_columns:
        raise invalid_option(
            expected=f"labels of two classes in column {quote_text(options.label)}",
            got=f"{len(order.classes)}",
            hint=(
                "Name one column of probabilities for each class, or with audit "
                "--prediction the predicted class, whose confidence the one column is"
            ),
        )
    return order


def _run_here_or_on_dask_workers(address, work):
    """Return the work in this process, or by the workers of a dask cluster."""
    if address is None:
        return work(None)
    import joblib

    dask = import_optional("distributed", "dask")
    try:
        client = dask.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise invalid_option(
            expected="the address of a dask scheduler",
            got=f"{quote_text(address)} ({make_printable(str(error), 200).rstrip('.')})",
            hint="Give one such as tcp://host:8786",
        ) from error
    try:
        with client, joblib.parallel_config("dask", client=client):
            return work(-1)
    except Exception as error:
        # Errors of the rows are raised as they are.
        if not type(error).__module__.startswith("distributed"):
            raise
        got = f"{type(error).__name__}: {make_printable(str(error), 200).rstrip('.')}"
        raise invalid_option(
            sentence=f"A worker of {quote_text(address)} ended ({got})",
            hint=(
                "Look for the reason (often too little memory), and run again; nothing "
                "has been written"
            ),
        ) from error
