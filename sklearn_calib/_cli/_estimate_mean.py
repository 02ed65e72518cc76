"""The command ``estimate-mean``: the mean of few labels from the scores of all rows."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.columns import (
    TableBlock,
    read_complete_column,
    read_finite_numbers,
    read_label_column_with_missing,
)
from .._show import get_sections, quote_text, render_markdown
from ._console import Screen, show_progress
from ._messages import invalid_option
from ._options import parse_float_text, parse_scale_ends
from ._outputs import check_outputs_writable_and_distinct, write_results
from ._remote import local_files
from ._request import Request
from ._tables import TableReader, check_scale, parse_column_if_numbers_or_dates

if TYPE_CHECKING:
    from ..inference import CalibratedMean

EXAMPLES = (
    "sklearn-calib estimate-mean judged.jsonl --label correct --score judge",
    "sklearn-calib estimate-mean judged.jsonl --label human --score judge "
    "--positive good --width 0.05",
    "sklearn-calib estimate-mean judged.csv --label minutes --score guess "
    "--scale 0,100 --cluster customer",
    "sklearn-calib estimate-mean judged.csv --label correct --score judge "
    "--system model --cluster question",
)
_COLUMN_HELP = {
    "--label": "the labels, empty if a row has none: numbers, or two classes, to "
    "estimate the share of one of them",
    "--score": "the scores of the judge in every row: numbers, or verdicts such as good "
    "and bad",
    "--weight": "the inverse of the probability that a row is labelled, if it differs "
    "between rows",
    "--cluster": "rows with the same value belong together, such as several answers to "
    "one question",
    "--system": "print the mean for each value, and its difference from the first one, "
    "item by item of --cluster",
}
_COLUMN_ROLES = [option.removeprefix("--") for option in _COLUMN_HELP]


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "estimate-mean",
        help="estimate the mean of labels that few rows have",
        description="Estimate the mean label of all rows. A few rows, sampled at "
        "random, have a label (the cell of the others is empty), and all rows "
        "have the score of a judge. The labelled rows correct the judge: it may "
        "be wrong, and the interval is never wider than that of the labels alone.",
        examples=EXAMPLES,
    )
    parser.add_file_arguments()
    _add_column_options(parser.add_argument_group("columns"))
    parser.add_reading_options(missing=("drop",), has_tolerance_option=False)
    work = parser.add_argument_group("work")
    work.add_argument(
        "--recalibrator",
        metavar="NAME",
        default="line",
        help="the map from scores to expected labels, fitted in folds: line, "
        "isotonic, spline, auto (takes seconds) or another method, or none to use "
        "the scores as they are (default: line)",
    )
    work.add_shared_options("--level")
    work.add_argument(
        "--width",
        type=_parse_interval_width,
        metavar="W",
        help="also print the number of labels needed for an interval of this width",
    )
    results = parser.add_argument_group("results")
    results.add_shared_options("--json", "--markdown")
    parser.set_defaults(run=run_estimate_mean, level=0.95)


def _add_column_options(group):
    for option, text in _COLUMN_HELP.items():
        required = option in ("--label", "--score")
        group.add_argument(option, metavar="COLUMN", required=required, help=text)
    group.add_argument(
        "--scale",
        type=_parse_scale_ends_or_none,
        default=(0.0, 1.0),
        metavar="LOW,HIGH",
        help="the lowest and the highest possible score, or any (default: 0,1)",
    )
    group.add_argument(
        "--bounds",
        type=parse_scale_ends,
        metavar="LOW,HIGH",
        help="the lowest and the highest possible label, if labels are numbers",
    )
    group.add_argument(
        "--positive",
        metavar="LABEL",
        help="the class whose share is estimated, pos_label in Python (default: 1, or true; "
        "other labels need it)",
    )


def _parse_scale_ends_or_none(text):
    return None if text == "any" else parse_scale_ends(text)


def _parse_interval_width(text):
    number = parse_float_text(text)
    if not 0 < number < np.inf:
        raise argparse.ArgumentTypeError(
            f"expected a width above 0, got {text!r}. Write 0.05"
        )
    return number


def run_estimate_mean(options: Request) -> int:
    """Print the means, and write them; returns the exit code."""
    _check_roles(options)
    with local_files(options) as files:
        check_outputs_writable_and_distinct(options, files)
        rows = _load_columns_by_role(files, options)
    systems = list(dict.fromkeys(rows["system"])) if "system" in rows else [None]
    with show_progress("recalibrating"):
        means = {name: _estimate_mean(rows, name, options) for name in systems}
        first, *others = means
        gaps = {name: means[name].difference(means[first]) for name in others}
        plans = {
            name: _make_label_plan_dict_or_none(estimate, options.width)
            for name, estimate in means.items()
        }
    return _output_means_and_get_exit_code(means, gaps, plans, options)


def _check_roles(options):
    """Reject columns of two roles, and systems that cannot be compared item by item."""
    roles = {}
    for role in _COLUMN_ROLES:
        name = getattr(options, role)
        if name is not None and roles.setdefault(name, role) != role:
            raise invalid_option(
                expected=f"different columns for --{roles[name]} and --{role}",
                got=f"{quote_text(name)} for both",
                hint="Name another one",
            )
    if options.system is not None and options.cluster is None:
        raise invalid_option(
            sentence="--system needs --cluster",
            hint="Name the column of the item, such as a question, that all systems answered",
        )
    if options.json is not None and options.json == options.markdown:
        raise invalid_option(
            expected="different files for --json and --markdown",
            got="one file for both",
            hint="Name two",
        )


def _load_columns_by_role(files: Sequence[str], options: Request) -> dict[str, Any]:
    """Return columns by their roles: pandas Series, of all files."""
    import pandas as pd

    names = {
        role: name
        for role in _COLUMN_ROLES
        if (name := getattr(options, role)) is not None
    }
    filled = [name for role, name in names.items() if role not in ("label", "weight")]
    tables = TableReader(options).load_complete_rows_and_print_dropped(
        files, lambda *_: [*names.values()], lambda *_: filled
    )
    verdicts = all(_is_column_without_numbers(table, options.score) for table in tables)
    column_by_role = {}
    for role, name in names.items():
        parts = [
            _read_column_by_role(table, role, name, verdicts, options)
            for table in tables
        ]
        column_by_role[role] = pd.concat(parts, ignore_index=True)
    return column_by_role


def _is_column_without_numbers(table: TableBlock, name: str) -> bool:
    """Return whether no value of a column is a number."""
    import pandas as pd

    column = table.columns[name]
    if column.dtype.kind in "iuf":
        return False
    texts = pd.Series(
        [str(value).strip() for value in column.dropna().unique()], dtype=object
    )
    numbers = texts.str.removesuffix("%").str.replace(",", ".")
    return len(texts) > 0 and not pd.to_numeric(numbers, errors="coerce").notna().any()


def _read_column_by_role(table, role, name, verdicts, options):
    import pandas as pd

    if role == "label":
        changed = parse_column_if_numbers_or_dates(table, name)
        return read_label_column_with_missing(
            table._replace(columns=table.columns.assign(**{name: changed})), name
        )
    if role in ("cluster", "system"):
        return read_complete_column(table, name, role).astype(str)
    if role == "weight":
        is_labelled = table.columns[options.label].notna().to_numpy()
        values = np.full(len(is_labelled), np.nan)
        values[is_labelled] = read_finite_numbers(table.select_rows(is_labelled), name)
        return pd.Series(values)
    if verdicts:
        filled = read_complete_column(table, name, "verdict").to_frame()
        return read_label_column_with_missing(table._replace(columns=filled), name)
    numbers = read_finite_numbers(table, name)
    if options.scale is not None:
        hint = (
            "Add --scale with the lowest and the highest score possible, such as --scale 1,10, or "
            "--scale any"
        )
        check_scale(table, name, numbers, options.scale, hint)
    return pd.Series(numbers)


def _estimate_mean(rows, system, options) -> "CalibratedMean":
    from ..inference import calibrated_mean

    chosen = np.ones(len(rows["label"]), dtype=bool)
    if system is not None:
        chosen = (rows["system"] == system).to_numpy()
    is_labelled = rows["label"].notna().to_numpy() & chosen
    rest = chosen & ~is_labelled
    if not is_labelled.any():
        for_system = "" if system is None else f" for the system {quote_text(system)}"
        raise invalid_option(
            expected=f"a label in some rows of column {quote_text(options.label)}{for_system}",
            got="none",
            hint="Label some rows drawn at random",
        )
    labels = rows["label"][is_labelled].infer_objects().to_numpy()
    cluster = rows["cluster"].to_numpy() if "cluster" in rows else None
    weight = None
    if "weight" in rows:
        weight = rows["weight"][is_labelled].to_numpy()
    return calibrated_mean(
        labels,
        rows["score"][is_labelled].to_numpy(),
        rows["score"][rest].to_numpy(),
        recalibrator=None if options.recalibrator == "none" else options.recalibrator,
        scale=options.scale,
        pos_label=_find_positive_class(options.positive, labels),
        bounds=options.bounds,
        sample_weight=weight,
        groups=None if cluster is None else cluster[is_labelled],
        groups_unlabelled=None if cluster is None else cluster[rest],
        level=options.level,
    )


def _find_positive_class(positive, labels):
    """Return the class that was named, as the column has it."""
    if positive is None:
        return None
    for label in set(labels.tolist()):
        if positive == str(label):
            return label
    if labels.dtype.kind in "iuf":
        # Text that is not a number is rejected later, as an unknown label.
        with suppress(argparse.ArgumentTypeError):
            return parse_float_text(positive)
    return positive


def _make_label_plan_dict_or_none(estimate, width):
    """Return labels that a width takes, with the scores and without.

    None if no number is enough.
    """
    if width is None:
        return None
    plan = {}
    for name, alone in (("labels", False), ("labels_alone", True)):
        try:
            plan[name] = estimate.labels_needed(width, alone=alone)
        except ValueError:
            plan[name] = None
    return {"width": width, **plan}


def _output_means_and_get_exit_code(means, gaps, plans, options):
    first = next(iter(means))
    titles = {name: name or "" for name in means}
    sections = [
        section._replace(
            name=titles[name], items=_list_label_plan_sentences(plans[name])
        )
        for name, estimate in means.items()
        for section in get_sections(estimate)
    ]
    sections += [
        section._replace(name=f"{name} less {first}")
        for name, estimate in gaps.items()
        for section in get_sections(estimate)
    ]
    screen = Screen()
    screen.show_sections(*sections)
    content = {
        "means": [
            {"system": name, **estimate.to_dict(), "plan": plans[name]}
            for name, estimate in means.items()
        ],
        "differences": [
            {"system": name, "less": first, **estimate.to_dict()}
            for name, estimate in gaps.items()
        ],
    }
    return screen.print_paths_and_get_exit_code(
        write_results(options, lambda: content, lambda: render_markdown(sections))
    )


def _list_label_plan_sentences(plan):
    if plan is None:
        return []
    texts = {
        what: "more labels than there are rows"
        if plan[key] is None
        else f"{plan[key]} labels"
        for what, key in (("with", "labels"), ("without", "labels_alone"))
    }
    return [
        f"An interval of width {plan['width']:g} takes {texts['with']}; without the scores "
        f"{texts['without']}."
    ]
