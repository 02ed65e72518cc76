"""The tables of a command, read with its options, and their columns of scores and labels."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.columns import (
    MISSING_VALUE_HINT,
    EncodedColumn,
    TableBlock,
    check_filled,
    is_written_in_percent,
    read_finite_numbers,
    read_label_column_with_missing,
    read_label_values,
)
from .._files.csv_text import ColumnSelector, infer_column_series
from .._files.tables import iter_table_blocks, load_table, read_all_column_names
from .._show import format_row_numbers, make_printable, quote_for_shell, quote_text
from .._typing import AnyArray, FloatArray, IntArray
from ..exceptions import InvalidInputError, add_error_context
from ._console import print_note
from ._messages import MISSING_TEXTS_HINT, invalid_option
from ._request import Request, parse_names

if TYPE_CHECKING:
    from .._validation import LabelSharesAndVoteCounts


class TableReader:
    """The content of some files, which can be read repeatedly.

    Attributes
    ----------
    n_rows : int
        Rows that were read and kept.
    """

    def __init__(self, options: Request) -> None:
        self._options = options
        self._form = options.csv_options
        self._drop = options.drop_missing
        self.reset_counts()

    def reset_counts(self) -> None:
        """Forget what was left out before: all is to be read anew."""
        self.n_rows = 0
        self._misses_text = False  # whether labels are missing beside text
        # by file: how many rows, and the first of them
        self._left_out: dict[str, tuple[int, list[int]]] = {}

    def list_all_columns(self, file: str, pick: ColumnSelector) -> list[str]:
        """Return all columns of a file."""
        return read_all_column_names(file, pick, **self._form)

    def load_complete_rows_and_print_dropped(
        self,
        files: Sequence[str],
        pick: Callable[[str, Sequence[str]], list[str]],
        required: Callable[[str, Sequence[str]], list[str]] | None = None,
    ) -> list[TableBlock]:
        """Return some columns of files, each at once, and print which rows are left out.

        Parameters
        ----------
        files : sequence of str
        pick : callable
            Given a file and the names of all its columns, those to read.
        required : callable, default=None
            Those among the columns read that must have a value; all by default.
        """
        kept = []
        for file in files:
            table = load_table(file, partial(pick, file), **self._form)
            columns = None
            if required is not None:
                columns = required(file, list(table.columns))
            kept += self.drop_incomplete_rows_if_asked(table, columns=columns)
        self.check_rows_kept()
        self.print_dropped_rows()
        return kept

    def iter_blocks_with_all_rows(
        self, file: str, pick: ColumnSelector, whole: bool
    ) -> Iterator[TableBlock]:
        """Yield some columns in blocks, or as one if `whole`; labels that name classes are text.

        All rows are needed to find which predictions are right: these come as one
        block, too.
        """
        predicted = self._options.prediction is not None
        labels = self._options.get_label_columns()
        if self._options.second_label is not None:
            labels = [*labels, self._options.second_label]
        as_text = [] if self._options.soft_labels or predicted else labels
        if whole or predicted:
            yield load_table(file, pick, as_text=as_text, **self._form)
        else:
            yield from iter_table_blocks(file, pick, as_text=as_text, **self._form)

    def drop_incomplete_rows_if_asked(
        self, *tables: TableBlock, columns: Sequence[str] | None = None
    ) -> list[TableBlock]:
        """Return tables of the same rows without those that miss a value, if these are left out.

        Of the first table it is looked for in some `columns`, by default in all.
        """
        whole = np.ones(tables[0].n_rows, dtype=bool)
        for number, table in enumerate(tables if self._drop else ()):
            required_columns = table.columns if columns is None or number else columns
            whole &= table.find_filled_rows([*required_columns])
            for name in self._options.get_label_columns([*table.columns])[:1]:
                if (
                    name in required_columns
                    and table.columns[name].dtype.kind not in "fiub"
                ):
                    self._misses_text |= table.columns[name].isna().any()
        self.n_rows += np.count_nonzero(whole)
        if whole.all():
            return [*tables]
        first = tables[0]
        holes = np.flatnonzero(~whole)
        count, rows = self._left_out.get(first.file, (0, []))
        rows = rows + [first.get_file_row(place) for place in holes[: 5 - len(rows)]]
        self._left_out[first.file] = count + len(holes), rows
        return [table.select_rows(whole) for table in tables]

    def check_rows_kept(self) -> None:
        """Raise an error for files of which no row was kept."""
        if not self.n_rows:
            raise invalid_option(
                expected="rows without missing values",
                got="none",
                hint="Check the files",
            )

    def print_dropped_rows(self, text_labels: bool = True) -> None:
        """Print which rows missed a value, once all have been read.

        If there are `text_labels`, one that is missing may be called "None".
        """
        if self._misses_text and text_labels:
            print_note(f"{MISSING_TEXTS_HINT}.")
        sentences = [
            f"{format_row_numbers(rows, count)} of {make_printable(file)}"
            for file, (count, rows) in self._left_out.items()
        ]
        if sentences:
            print_note(f"left out, with missing values: {'; '.join(sentences)}")


_DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")


def read_label_votes(
    table: TableBlock, names: Sequence[str]
) -> "LabelSharesAndVoteCounts":
    """Return the columns of labels as shares; one column has one dimension, and no votes."""
    from .._validation import LabelSharesAndVoteCounts, read_shares_or_votes

    for name in names:
        read_filled_labels(table, name)
    columns = [read_finite_numbers(table, name) for name in names]
    if len(names) == 1:
        return LabelSharesAndVoteCounts(
            _get_checked_shares(table, names[0], columns[0]), None, frozenset()
        )
    with add_error_context(source=table.source_name, map_row=table.get_file_row):
        return read_shares_or_votes(np.column_stack(columns))


def _get_checked_shares(table, name, values):
    """Return a column of shares of one class."""
    wrong = np.flatnonzero((values < 0) | (values > 1))
    if len(wrong):
        raise invalid_option(
            expected=f"shares from 0 to 1 in column {quote_text(name)} of {table.source_name}",
            got=f"{values[wrong[0]]:g} in row {table.get_file_row(wrong[0])}",
            hint=(
                "Divide by the number of votes, which is the --weight; or name both "
                "columns of votes, --label no,yes"
            ),
        )
    return values


def check_labels_offered_by_rows(
    codes: Any, proba: FloatArray, table: TableBlock
) -> None:
    """Reject labels that are an option which their row does not have."""
    from .._validation import check_same_length

    with add_error_context(source=table.source_name, map_row=table.get_file_row):
        check_same_length(codes, proba)


def infer_text_column(column: Any, decimal: str | None) -> Any:
    """Return a column that was read as text as if it had been read at once."""
    texts = column.dropna().unique()
    if len(texts) and all(isinstance(text, str) for text in texts):
        return infer_column_series(column, decimal)
    return column


def make_frame_with_numbers_and_dates(table: TableBlock) -> Any:
    """Return the frame with numbers and dates for texts that are such in all rows."""
    frame = table.columns.copy()
    for name in frame.columns:
        if frame[name].dtype.kind in "OTU":
            frame[name] = parse_column_if_numbers_or_dates(table, name)
    return frame


def parse_column_if_numbers_or_dates(table: TableBlock, name: str) -> Any:
    """Return a column, whose text becomes dates or numbers where all of it is."""
    import pandas as pd

    column = table.columns[name]
    present = column.notna().to_numpy()
    cells = [str(value).strip() for value in column[present]]
    if cells and all(_DATE_PATTERN.fullmatch(cell) for cell in cells):
        try:
            return pd.to_datetime(column, utc=True, format="ISO8601").dt.tz_localize(
                None
            )
        except ValueError:  # the 30th of February
            return column
    if table.decimal != "." and any("," in cell for cell in cells):
        try:
            numbers = read_finite_numbers(
                table._replace(columns=table.columns[present]), name
            )
        except InvalidInputError:  # it is text
            return column
        return pd.Series(numbers, column.index[present]).reindex(column.index)
    return column


def read_score_column(table: TableBlock, name: str, options: Request) -> FloatArray:
    """Return a column of scores as numbers; percentages are divided by 100."""
    try:
        numbers = read_finite_numbers(
            table, name, allow_missing=options.absent is not None
        )
    except InvalidInputError as error:
        several = len(parse_names(options.prob)) > 1 or name not in options.prob
        if several and MISSING_VALUE_HINT in error.hint:
            hint = "Where that is an option which the row does not have, add --missing absent."
            error.set_fields(remark=hint)
        raise
    signed = is_written_in_percent(table, name)
    if signed or options.scale_ends_if_declared is None:
        return numbers
    if options.percent:
        return numbers / 100
    # Marks become shares of the way from the lowest to the highest.
    low, high = options.scale_ends_if_declared
    hint = "Name the ends of the scale with --scale"
    check_scale(table, name, numbers, options.scale_ends_if_declared, hint)
    return (numbers - low) / (high - low)


def get_scores(table: TableBlock, names: Sequence[str], options: Request) -> FloatArray:
    """Return the probabilities of a block of rows, checked."""
    from .._validation import read_proba

    scores = np.column_stack(
        [read_score_column(table, name, options) for name in names]
    )
    with add_error_context(source=table.source_name, map_row=table.get_file_row):
        return read_proba(
            scores,
            kind=options.score_kind,
            tolerance=options.sum_tolerance,
            absent=options.absent,
        )


def check_scale(
    table: TableBlock,
    name: str,
    numbers: FloatArray,
    scale: tuple[float, float],
    hint: str,
) -> None:
    """Raise an error for numbers of a column that are outside of their scale."""
    low, high = scale
    outside = np.flatnonzero((numbers < low) | (numbers > high))
    if len(outside):
        raise invalid_option(
            expected=(
                f"numbers from {low:g} to {high:g} in column {quote_text(name)} of "
                f"{table.source_name}"
            ),
            got=f"{numbers[outside[0]]:g} in row {table.get_file_row(outside[0])}",
            hint=hint,
        )


def get_correctness_as_int_series(
    table: TableBlock, options: Request, names: Sequence[str]
) -> Any:
    """Return whether the class of --prediction is that of --label: a Series of 1 and 0.

    `names` are the columns of scores.
    """
    if len(names) != 1:
        raise invalid_option(
            expected=(
                "one column of --prob with --prediction, the confidence in the predicted class"
            ),
            got=f"{len(names)}",
            hint="Leave --prediction out where there is one for each class",
        )
    truth, predicted = (
        read_filled_labels(table, name)
        for name in (options.label, str(options.prediction))
    )
    if not all(column.dtype.kind in "iuf" for column in (truth, predicted)):
        truth, predicted = (
            column.map(str).str.strip() for column in (truth, predicted)
        )
    confidence = read_score_column(table, names[0], options)
    _raise_if_fixed_answer_probability(confidence, predicted, names[0])
    return truth.__class__((truth.to_numpy() == predicted.to_numpy()).astype(int))


# With fewer rows confidences may look like this by chance.
_MIN_CONFIDENCE_ROWS = 20
_MIN_ANSWER_ROWS = 3


def _raise_if_fixed_answer_probability(confidence, answers, name):
    """Reject column `name` if it is the probability of one of two answers.

    A confidence in the likelier of two answers is never below 0.5.
    """
    rows_per_answer = answers.value_counts()
    if (
        len(rows_per_answer) != 2
        or len(answers) < _MIN_CONFIDENCE_ROWS
        or rows_per_answer.min() < _MIN_ANSWER_ROWS
    ):
        return
    is_high = confidence >= 0.5
    high = answers.to_numpy()[is_high.argmax()]
    if (is_high != (answers == high).to_numpy()).any():
        return
    (low,) = rows_per_answer.index.drop(high)
    raise invalid_option(
        sentence=(
            f"The column {quote_text(name)} looks like the probability of {quote_text(str(high))}, "
            "not the confidence in the answer: it is below 0.5 in every row with answer "
            f"{quote_text(str(low))}"
        ),
        hint="Leave out --prediction and write --positive "
        + quote_for_shell(str(high)),
    )


def check_right_and_wrong_present(
    right: Any, table: TableBlock, options: Request
) -> None:
    """Reject predictions that are all right, or all wrong; `table` has the first of them."""
    if right.all() or not right.any():
        truth, predicted = (
            quote_text(str(table.columns[name].iloc[0]).strip())
            for name in (options.label, options.prediction)
        )
        raise invalid_option(
            expected="predictions of which some are right and some wrong",
            got=(
                f"{right.sum()} right of {len(right)}: {predicted} in column "
                f"{quote_text(options.prediction)} where {quote_text(options.label)} has {truth}"
            ),
            hint="Check that both columns spell the classes alike",
        )


def read_filled_labels(table: TableBlock, name: str) -> Any:
    """Return a column of labels without holes."""
    check_filled(table, name, "label")
    return read_label_column_with_missing(table, name)


def encode_labels_or_minus_one(
    table: TableBlock, name: str, classes: AnyArray
) -> IntArray:
    """Return the places of the labels among the classes; -1 for others."""
    names = any(isinstance(label, str) for label in classes.tolist())
    labels = read_label_values(table, name, names)
    if not isinstance(labels, EncodedColumn):
        labels = EncodedColumn(*np.unique(labels, return_inverse=True))
    code_by_label = {label: place for place, label in enumerate(classes.tolist())}
    codes_of_values = [code_by_label.get(label, -1) for label in labels.values.tolist()]
    return np.array(codes_of_values, dtype=np.intp)[labels.codes]


def encode_known_labels(table: TableBlock, name: str, classes: AnyArray) -> IntArray:
    """Return what `encode_labels_or_minus_one` does; reject other labels."""
    codes = encode_labels_or_minus_one(table, name, classes)
    check_known(table, name, codes, classes)
    return codes


def check_known(
    table: TableBlock, name: str, codes: IntArray, classes: AnyArray
) -> None:
    """Raise an error for labels of which `encode_labels_or_minus_one` found no class."""
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        read_filled_labels(table, name)  # names missing ones
        value = quote_text(table.columns[name].iloc[unknown[0]])
        class_names = make_printable(", ".join(map(str, classes.tolist())))
        raise invalid_option(
            expected=f"labels among {class_names} in column {quote_text(name)} of "
            f"{make_printable(table.file)}",
            got=f"{value} in row {table.get_file_row(unknown[0])}",
            hint="Name all of them with --classes, or drop those rows",
        )


_IDENTIFIER_NAME_PATTERN = re.compile(
    r"(?i:(?:^|.*[_\W])(?:id|ids|uuid|guid))|.*[a-z](?:Id|ID)"
    r"|(?i:(?:account|case|client|conversation|customer|doc|document|household|patient|person"
    r"|prompt|query|question|session|subject|user)s?(?:[_\W]?(?:name|no|nr|number|key))?)"
)
# Identifiers are looked for in this many first rows.
_N_IDENTIFIER_SCAN_ROWS = 200_000
# Different values: with fewer, intervals by clusters are too wide.
_MIN_NOTED_CLUSTERS = 30
_MIN_ROWS_PER_NOTED_CLUSTER = 1.5


def print_identifier_note(files: Sequence[str], options: Request) -> None:
    """Print which column may name clusters; files that cannot be read are reported later."""
    if options.group is not None or options.label is None or options.dask:
        return
    try:
        repeated_columns = _list_identifiers_values_and_rows(files[0], options)
    except (InvalidInputError, ValueError, TypeError, OSError):
        return
    for name, values, rows in repeated_columns[:1]:
        print_note(
            f"{make_printable(name, 60)} has {values:,} different values in "
            f"{rows:,} rows. If rows with the "
            "same value belong together, such as answers to one question, intervals and p-values "
            f"are too certain: add --cluster {quote_for_shell(name)}."
        )


def _find_identifier_columns(names, options):
    """Return names that look like those of clusters, and have no other role."""
    used_columns = [options.weight, options.prediction, options.time]
    for words in (
        *(options.prob or ()),
        *(options.by or ()),
        *(options.features or ()),
    ):
        used_columns += [word.strip() for word in words.split(",")]
    return [
        name
        for name in names
        if name not in used_columns and _IDENTIFIER_NAME_PATTERN.fullmatch(name)
    ]


def _list_identifiers_values_and_rows(file, options):
    """Return columns with their numbers of values and rows, the most values first."""
    present = read_all_column_names(
        file, options.get_label_columns, **options.csv_options
    )
    label = options.get_label_columns(present)
    names = _find_identifier_columns(
        [name for name in present if name not in label], options
    )
    values = {name: set() for name in names}
    rows = dict.fromkeys(names, 0)
    for table in (
        iter_table_blocks(file, lambda _: [*label, *names], **options.csv_options)
        if names
        else ()
    ):
        for name in names:
            column = table.columns[name].dropna()
            values[name].update(column.unique())
            rows[name] += len(column)
        if max(rows.values()) >= _N_IDENTIFIER_SCAN_ROWS:
            break
    repeated_columns = [(name, len(values[name]), rows[name]) for name in names]
    return sorted(
        (
            counted
            for counted in repeated_columns
            if counted[1] >= _MIN_NOTED_CLUSTERS
            and counted[2] >= _MIN_ROWS_PER_NOTED_CLUSTER * counted[1]
        ),
        key=lambda counted: -counted[1],
    )
