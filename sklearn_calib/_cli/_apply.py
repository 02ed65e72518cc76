"""The command ``apply``: calibrated probabilities beside the columns of a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.columns import TableBlock
from .._files.tables import check_columns, read_all_column_names
from .._show import make_printable, quote_text
from .._typing import FloatArray
from ..exceptions import add_error_context
from ._classes import match_named_classes_and_positive
from ._console import Screen, show_progress
from ._map import ALLOW_EDITED_HELP, check_score_kind, format_label_names, load_map
from ._messages import KEEP_MISSING_HINTS, invalid_option
from ._outputs import check_writable
from ._remote import local_files
from ._request import (
    Request,
    check_label_and_prob_columns,
    parse_column_names_expanding_lists,
    parse_names,
)
from ._streams import CopiedTable, get_format, write_with_new_columns
from ._tables import read_score_column

if TYPE_CHECKING:
    from ..export import ExportedMap

# A cell that starts with one of these is a formula in a spreadsheet.
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
EXAMPLES = (
    "sklearn-calib apply map.json new.csv --prob p --out calibrated.csv",
    "sklearn-calib apply map.json 'scores/*.parquet' --prob p --out calibrated.parquet",
    "sklearn-calib apply map.json log.jsonl --prob scores.yes --out calibrated.jsonl",
    "sklearn-calib apply map.json digits.parquet --prob p0,p1,p2 --name q0,q1,q2 --out out.parquet",
    "sklearn-calib apply map.json - --prob p --out - < new.csv > calibrated.csv",
)


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "apply",
        help="add calibrated probabilities to a table",
        description="Add calibrated probabilities to a table, using a map that was "
        "written by fit or sklearn_calib.export.to_json. All columns stay as they "
        "are; tables can be larger than the memory.",
        examples=EXAMPLES,
    )
    parser.add_shared_options("map")
    parser.add_file_arguments(
        "a table: csv or JSON lines (also compressed), parquet, Arrow, Excel; a folder or a "
        "pattern of these, all with the same columns; - is the standard input",
    )
    columns = parser.add_argument_group("columns")
    columns.add_score_options("the classes of the map", "the second")
    columns.add_scale_option(logits=True)
    columns.add_repeatable_option(
        "--name",
        "NAME,...",
        "names of the new columns, one for each of --prob (default: p_calibrated "
        "for p, or p_calibrated_2 and so on if the table has such a column)",
    )
    parser.add_reading_options(missing=("keep", "absent"), edited=ALLOW_EDITED_HELP)
    results = parser.add_argument_group("results")
    results.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="the table to write: .parquet, or .csv, .tsv, .txt, .jsonl, optionally "
        "followed by .gz, .bz2 or .xz; - is the standard output (JSON lines if "
        "the input is JSON lines, else csv)",
    )
    parser.set_defaults(run=run_apply, words=KEEP_MISSING_HINTS, no_page=True)


def run_apply(options: Request) -> int:
    """Add calibrated probabilities to a table."""
    if options.prob is None:
        raise invalid_option(
            expected="--prob, the columns of the probabilities",
            got="none",
            hint="Name one column, or one per class",
        )
    into = get_format(options.out)
    exported_map = load_map(options.map, edited=options.edited)
    check_score_kind(exported_map, options.score_kind, options.map)
    if options.scale_ends_if_declared is None:
        options.scale = exported_map.document.get("scale")
    with local_files(options) as files:
        if options.out != "-":
            check_writable(options.out, [options.map, *files, *options.files])
        present = read_all_column_names(
            files[0],
            lambda names: _find_score_columns(options, names),
            **options.csv_options,
        )
        names = _find_score_columns(options, present)
        check_columns(names, present, files[0])
        new = _choose_unused_column_names(names, present, options)
        fill = ColumnCalibrator(exported_map, names, options)
        copied = CopiedTable(files, names, new, fill, options)
        with show_progress("applying") as advance:
            n_rows = write_with_new_columns(copied, into, advance)
    if options.out == "-":
        return 0
    screen = Screen()
    quoted_columns = ", ".join(make_printable(name, 40) for name in new)
    screen.print(f"{n_rows} rows, new: {quoted_columns}")
    return screen.print_paths_and_get_exit_code({"table": options.out})


def _find_score_columns(options, present):
    names = parse_column_names_expanding_lists(options.prob, present)
    check_label_and_prob_columns([], names)
    return names


def _choose_unused_column_names(
    names: Sequence[str], present: Sequence[str], options: Any
) -> list[str]:
    """Return names that no column of the table has, in upper or lower case."""
    taken = {name.casefold() for name in present}
    if options.name is None:
        return [
            _reserve_unused_name(_name_calibrated_column(name), taken) for name in names
        ]
    wanted_names = parse_names(options.name)
    if len(wanted_names) != len(names):
        raise invalid_option(
            expected=f"{len(names)} names in --name, one for each column of --prob",
            got=f"{len(wanted_names)}",
            hint="Name each of them",
        )
    for name in wanted_names:
        if not name or name.casefold() in taken:
            raise invalid_option(
                expected="new names in --name",
                got=f"{quote_text(name)}, which the table already has",
                hint="Choose another, or leave --name out",
            )
        taken.add(name.casefold())
    return wanted_names


def _name_calibrated_column(name):
    """Return the name of a new column; none that a spreadsheet would take for a formula."""
    if name.startswith(_FORMULA_PREFIXES):
        return f"calibrated_{name}"
    return f"{name}_calibrated"


def _reserve_unused_name(name, taken):
    unused_name = name
    number = 1
    while unused_name.casefold() in taken:
        number += 1
        unused_name = f"{name}_{number}"
    taken.add(unused_name.casefold())
    return unused_name


class ColumnCalibrator:
    """From the columns of a block to calibrated ones, in the same order."""

    def __init__(
        self, exported_map: "ExportedMap", names: Sequence[str], options: Any
    ) -> None:
        self.map = exported_map
        self.names = names
        self.options = options
        self.codes = _find_class_code_by_column(exported_map, names, options)

    def __call__(self, table: TableBlock) -> FloatArray:
        """Return numbers of shape (n_rows, n_columns), NaN in rows that miss a probability."""
        kept = np.ones(table.n_rows, dtype=bool)
        if self.options.allow_missing:
            kept = table.find_filled_rows(self.names)
        rows = table if kept.all() else table.select_rows(kept)
        # places stay, so that messages name the right rows
        scores = np.full((len(kept), len(self.names)), 1 / max(2, len(self.names)))
        scores[kept] = np.column_stack(
            [read_score_column(rows, name, self.options) for name in self.names]
        )
        with add_error_context(source=make_printable(table.file)):
            calibrated = self._calibrate_scores(scores, table.first_row)
        return calibrated if kept.all() else np.where(kept[:, None], calibrated, np.nan)

    def _calibrate_scores(self, scores, first):
        from .._validation import read_proba

        kind = self.options.score_kind
        absent = self.options.absent
        flip = self.codes == [0]  # the one column is of the first class
        ordered_scores = (
            scores if len(self.codes) == 1 else scores[:, np.argsort(self.codes)]
        )
        proba = read_proba(
            -ordered_scores if flip and kind == "logits" else ordered_scores,
            kind=kind,
            tolerance=self.options.sum_tolerance,
            absent=absent,
            first=first,
        )
        if flip and kind == "proba":
            proba = proba[:, ::-1]
        calibrated = np.asarray(self.map.predict_proba(proba))[:, self.codes]
        if absent is None:
            return calibrated
        return np.where(np.isnan(scores), np.nan, calibrated)


def _find_class_code_by_column(exported_map, names, options):
    """Return the class of the map that each column stands for."""
    import pandas as pd

    from .._validation import find_columns_if_names_match

    k = len(exported_map.classes_)
    class_names = ", ".join(format_label_names(exported_map))
    if len(names) != k and (k != 2 or len(names) != 1):
        raise invalid_option(
            expected=(
                f"{'one or ' if k == 2 else ''}{k} columns in --prob, for the classes "
                f"{class_names} of the map"
            ),
            got=f"{len(names)}",
            hint="Name one column per class",
        )
    classes, positive = match_named_classes_and_positive(
        options, pd.Series(exported_map.classes_), len(names)
    )
    labels = exported_map.classes_.tolist()
    places = find_columns_if_names_match(
        [*names], labels, None if classes else exported_map._get_feature_names_in()
    )
    if places is not None:
        codes = np.argsort(places).tolist()
    elif classes is None:
        codes = [*range(k)]
    elif len({*classes} & {*labels}) == k:
        codes = [labels.index(label) for label in classes]
    else:
        raise invalid_option(
            expected=f"the classes of the map, {class_names}, in --classes",
            got=f"{make_printable(', '.join(map(str, classes)))}",
            hint="Name them in the order of the columns",
        )
    if len(names) > 1:
        return codes
    return [codes[1] if positive is None else labels.index(positive)]
