"""The tables of a command, read as its options say, and their columns: scores, labels, weights."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._files.columns import (
    FILL,
    Block,
    check_filled,
    in_percent,
    label_column,
    number_column,
    whole_column,
)
from .._files.tables import column_names, read_table, table_blocks
from .._show import in_shell, plain, quoted, rows_in_words
from .._typing import FloatArray
from ..exceptions import InvalidInputError, add_error_context
from ._messages import AS_MISSING, invalid_option
from ._printing import note
from ._request import Request, Roles, split_names

Pick: TypeAlias = Callable[[Sequence[str]], list[str]]


class Tables:
    """What is read of some files, as often as it is asked for.

    Attributes
    ----------
    n_rows : int
        Rows that were read and kept.
    """

    def __init__(self, options: Request) -> None:
        self._options, self._form, self._drop = options, options.csv, options.drop_missing
        self.begin()

    def begin(self) -> None:
        """All is to be read anew: what was left out before is forgotten."""
        self.n_rows = 0
        self._left_out: dict[str, tuple[int, list[int]]] = {}  # of files: how many, the first

    def names(self, file: str, pick: Pick) -> list[str]:
        """All columns of a file."""
        return column_names(file, pick, **self._form)

    def read(self, file: str, pick: Pick) -> Block:
        """Some columns of a file at once."""
        return read_table(file, pick, **self._form)

    def blocks(self, file: str, pick: Pick, whole: bool) -> Iterator[Block]:
        """The same in blocks, or as one where `whole`; labels that name classes are text.

        All rows say which predictions are right: these come as one block, too.
        """
        predicted = self._options.prediction is not None
        labels = self._options.label_columns()
        if self._options.second_label is not None:
            labels = [*labels, self._options.second_label]
        as_text = [] if self._options.soft_labels or predicted else labels
        size: dict[str, Any] = {"size": None} if whole or predicted else {}
        return table_blocks(file, pick, as_text=as_text, **size, **self._form)

    def kept(self, *tables: Block, columns: Sequence[str] | None = None) -> list[Block]:
        """Tables of the same rows without those that miss a value, where these are to be left out.

        Of the first table it is looked for in some `columns`, by default in all.
        """
        whole = np.ones(tables[0].n_rows, dtype=bool)
        for number, table in enumerate(tables if self._drop else ()):
            asked = table.columns if columns is None or number else columns
            whole &= table.filled([*asked])
        self.n_rows += np.count_nonzero(whole)
        if whole.all():
            return [*tables]
        first, holes = tables[0], np.flatnonzero(~whole)
        count, rows = self._left_out.get(first.file, (0, []))
        rows = rows + [first.row(place) for place in holes[: 5 - len(rows)]]
        self._left_out[first.file] = count + len(holes), rows
        return [table.only(whole) for table in tables]

    def check(self) -> None:
        """Refuse files of which no row was kept."""
        if not self.n_rows:
            raise invalid_option(
                expected="rows without missing values", got="none", hint="Check the files"
            )

    def say_what_is_left_out(self) -> None:
        """Rows that missed a value, once all have been read."""
        said = [
            f"{rows_in_words(rows, count)} of {plain(file)}"
            for file, (count, rows) in self._left_out.items()
        ]
        if said:
            note(f"left out, with missing values: {'; '.join(said)}")


_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")


class LabelledRows(NamedTuple):
    """Labels and scores; the columns are those of the classes, in their order.

    As long as these are not known, labels are a pandas Series, or `Shares`.
    """

    labels: Any
    scores: FloatArray  # of shape (n_samples, n_columns), or what canonical_proba made of them
    weight: FloatArray | None
    names: list[str]  # of the columns of scores
    given: FloatArray  # scores as they are in the table; percentages as probabilities
    groups: Any = None  # pandas DataFrame of the columns of --by, or None
    together: Any = None  # ndarray of the column of --cluster, or None
    features: Any = None  # pandas DataFrame of the columns of --features, or None
    shares: Sequence[str] = ()  # names of the columns of labels
    classes: Any = None  # ndarray
    positive: Any = None  # a label, or None


def read_columns(files: Sequence[str], options: Request) -> LabelledRows:
    """The columns that the options name, with no classes yet; refuses missing values.

    Those of ``--by`` and ``--features`` may have them. Without ``--label`` the labels are None.
    """
    from ..summary import folder_values

    tables: list[Block] = []
    groups: list[Any] = []
    features: list[Any] = []
    reading, roles = Tables(options), list[Roles]()

    def pick(present: Sequence[str]) -> list[str]:
        roles[len(tables) :] = [options.roles(present)]
        return [name for name in roles[-1].all if name in present or name not in folders]

    for file in files:
        folders = folder_values(file)
        table = reading.read(file, pick)
        for name in roles[-1].groups:
            if name not in table.columns:
                table.columns[name] = folders[name]
        by, seen = (
            with_orders(table._replace(columns=table.columns[names]))
            for names in (roles[-1].groups, roles[-1].features)
        )
        table = table._replace(columns=table.columns[roles[0].measured])
        if options.drop_missing and _labels_are_text(table, roles[-1].labels):
            note(f"{AS_MISSING}.")
        (kept,) = reading.kept(table)
        chosen_rows = slice(None) if kept.rows is None else kept.rows
        groups.append(by.iloc[chosen_rows].reset_index(drop=True))
        features.append(seen.iloc[chosen_rows].reset_index(drop=True))
        tables.append(kept)
    reading.check()
    reading.say_what_is_left_out()
    names, labelled = roles[0].scores, roles[-1].labels
    parts = [np.column_stack([probability(t, n, options) for n in names]) for t in tables]
    scores, weight = np.vstack(parts), None
    if options.weight is not None:
        weight = np.concatenate([number_column(table, options.weight) for table in tables])
    together = None
    if (cluster := options.group) is not None:
        together = joined([whole_column(table, cluster, "group") for table in tables]).to_numpy()
    labels: Any = None
    if options.soft_labels:
        labels = shares_of(tables, labelled)
    elif options.prediction is not None:
        labels = right_of(tables, options, names)
    elif labelled:
        labels = joined([checked_labels(table, options.label) for table in tables])
    by, seen = (joined(each) if len(each[0].columns) else None for each in (groups, features))
    return LabelledRows(labels, scores, weight, names, scores, by, together, seen, labelled)


class Shares(NamedTuple):
    """The labels of some rows as shares, with what `votes_of` says of them."""

    values: FloatArray  # of shape (n_samples,) or (n_samples, n_classes)
    number: FloatArray | None  # of votes of each row; None where it is 1
    kinds: frozenset[str]

    def weighted(self, weight: FloatArray | None) -> FloatArray | None:
        """The weights of rows which their votes weigh too."""
        if self.number is None or weight is None:
            return self.number if weight is None else weight
        return self.number * weight


def shares_of(tables: Sequence[Block], names: Sequence[str]) -> Shares:
    """The columns of labels as shares; one column has one dimension."""
    from .._validation import votes_of

    found = []
    for table in tables:
        for name in names:
            checked_labels(table, name)
        columns = [number_column(table, name) for name in names]
        if len(names) == 1:
            found.append(Shares(_checked_shares(table, names[0], columns[0]), None, frozenset()))
            continue
        with add_error_context(source=table.source, row=table.row):
            found.append(Shares(*votes_of(np.column_stack(columns))))
    values, numbers, kinds = zip(*found, strict=True)
    number = None if len(names) == 1 else np.concatenate(numbers)
    if number is not None and (number == 1).all():
        number = None
    return Shares(np.concatenate(values), number, frozenset().union(*kinds))


def _checked_shares(table, name, values):
    """A column of shares of one class."""
    wrong = np.flatnonzero((values < 0) | (values > 1))
    if len(wrong):
        raise invalid_option(
            expected=f"shares from 0 to 1 in column {quoted(name)} of {table.source}",
            got=f"{values[wrong[0]]:g} in row {table.row(wrong[0])}",
            hint=(
                "Divide by the number of votes, which is the --weight; or name both "
                "columns of votes, --label no,yes"
            ),
        )
    return values


def check_there(codes: Any, proba: FloatArray, table: Block) -> None:
    """Refuse labels that are an option which their row does not have."""
    from .._validation import check_same_length

    with add_error_context(source=table.source, row=table.row):
        check_same_length(codes, proba)


def _labels_are_text(table, names):
    """Whether labels are missing beside others that are text, so that one may be called "None"."""
    columns = [table.columns[name] for name in names[:1]]
    return any(column.dtype.kind not in "fiub" and column.isna().any() for column in columns)


def with_orders(table: Block) -> Any:
    """The frame, where text that is numbers with a decimal comma, or ISO dates, becomes these."""
    frame = table.columns.copy()
    for name in frame.columns:
        if getattr(frame[name].dtype, "kind", "O") in "OTU":
            frame[name] = with_order(table, name)
    return frame


def with_order(table: Block, name: str) -> Any:
    """A column, whose text becomes dates or numbers where all of it is."""
    import pandas as pd

    column = table.columns[name]
    present = column.notna().to_numpy()
    cells = [str(value).strip() for value in column[present]]
    if cells and all(_DATE.fullmatch(cell) for cell in cells):
        try:
            return pd.to_datetime(column, utc=True, format="ISO8601").dt.tz_localize(None)
        except ValueError:  # the 30th of February
            return column
    if table.decimal != "." and any("," in cell for cell in cells):
        try:
            numbers = number_column(table._replace(columns=table.columns[present]), name)
        except InvalidInputError:  # it is text
            return column
        return pd.Series(numbers, column.index[present]).reindex(column.index)
    return column


def probability(table: Block, name: str, options: Request) -> FloatArray:
    """A column of numbers; of percentages a hundredth."""
    try:
        numbers = number_column(table, name, holes=options.absent is not None)
    except InvalidInputError as error:
        several = len(split_names(options.prob)) > 1 or name not in options.prob
        if several and FILL in error.hint:
            cure = "Where that is an option which the row does not have, add --missing absent."
            error.set_fields(remark=cure)
        raise
    signed = in_percent(table, name)
    if (scale := options.scale) is not None and not signed:
        return _of_scale(table, name, numbers, scale)
    return numbers / 100 if options.percent and not signed else numbers


def scores_of(table: Block, names: Sequence[str], options: Request) -> FloatArray:
    """The probabilities of a block of rows, checked."""

    from .._validation import read_proba

    scores = np.column_stack([probability(table, name, options) for name in names])
    how: dict[str, Any] = {"kind": options.kind, "tolerance": options.sum_tolerance}
    with add_error_context(source=table.source, row=table.row):
        return read_proba(scores, absent=options.absent, **how)


def _of_scale(table, name, numbers, scale):
    """Marks as shares of the way from the lowest to the highest."""
    check_scale(table, name, numbers, scale, "Name the ends of the scale with --scale")
    low, high = scale
    return (numbers - low) / (high - low)


def check_scale(
    table: Block, name: str, numbers: FloatArray, scale: tuple[float, float], cure: str
) -> None:
    """Refuse numbers of a column that are outside of their scale."""
    low, high = scale
    outside = np.flatnonzero((numbers < low) | (numbers > high))
    if len(outside):
        raise invalid_option(
            expected=(
                f"numbers from {low:g} to {high:g} in column {quoted(name)} of {table.source}"
            ),
            got=f"{numbers[outside[0]]:g} in row {table.row(outside[0])}",
            hint=cure,
        )


def right_of(
    tables: Sequence[Block],
    options: Request,
    names: Sequence[str],
    *,
    both: bool = True,
) -> Any:
    """Whether the class of --prediction is that of --label, row by row: a Series of 1 and 0.

    `names` are the columns of scores; with `both`, some rows have to be right and some wrong.
    """
    if len(names) != 1:
        raise invalid_option(
            expected=(
                "one column of --prob with --prediction, the confidence in the predicted class"
            ),
            got=f"{len(names)}",
            hint="Leave --prediction out where there is one for each class",
        )
    truth, said = (
        joined([checked_labels(table, name) for table in tables])
        for name in (options.label, str(options.prediction))
    )
    if not all(each.dtype.kind in "iuf" for each in (truth, said)):
        truth, said = (each.map(str).str.strip() for each in (truth, said))
    right = (truth.to_numpy() == said.to_numpy()).astype(int)
    if both and (right.all() or not right.any()):
        raise invalid_option(
            expected="predictions of which some are right and some wrong",
            got=(
                f"{right.sum()} right of {len(right)}: {quoted(said.iloc[0])} in column "
                f"{quoted(options.prediction)} where {quoted(options.label)} has "
                f"{quoted(truth.iloc[0])}"
            ),
            hint="Check that both columns spell the classes alike",
        )
    return truth.__class__(right, name=options.label)


def checked_labels(table: Block, name: str) -> Any:
    """A column of labels without holes."""
    check_filled(table, name, "label")
    return label_column(table, name)


def joined(columns: Sequence[Any]) -> Any:
    """Series one below the other."""
    import pandas as pd

    return columns[0] if len(columns) == 1 else pd.concat(columns, ignore_index=True)


_NAME = re.compile(
    r"(?i:(?:^|.*[_\W])(?:id|ids|uuid|guid))|.*[a-z](?:Id|ID)"
    r"|(?i:(?:account|case|client|conversation|customer|doc|document|household|patient|person"
    r"|prompt|query|question|session|subject|user)s?(?:[_\W]?(?:name|no|nr|number|key))?)"
)
_ROWS = 200_000  # that are looked at
_FEWEST = 30  # different values: with fewer, intervals by clusters say little
_REPEATS = 1.5  # rows of a value, on average


def remark_on_identifiers(files: Sequence[str], options: Request) -> None:
    """Say which column may name clusters; what cannot be read is left to the reading itself."""
    if options.group is not None or options.label is None or options.dask:
        return
    try:
        found = _repeating(files[0], options)
    except (InvalidInputError, ValueError, TypeError, OSError):
        return
    for name, values, rows in found[:1]:
        note(
            f"{plain(name, 60)} has {values:,} different values in {rows:,} rows. If rows with the "
            "same value belong together, such as answers to one question, intervals and p-values "
            f"are too certain: add --cluster {in_shell(name)}."
        )


def _of_identifiers(names, options):
    """Names that look like those of clusters, and have no other role."""
    said = [options.weight, options.prediction, options.time]
    for words in (*(options.prob or ()), *(options.by or ()), *(options.features or ())):
        said += [word.strip() for word in words.split(",")]
    return [name for name in names if name not in said and _NAME.fullmatch(name)]


def _repeating(file, options):
    """Columns with their numbers of values and rows, the most values first."""
    present = column_names(file, options.label_columns, **options.csv)
    label = options.label_columns(present)
    names = _of_identifiers([name for name in present if name not in label], options)
    values: dict[str, set[Any]] = {name: set() for name in names}
    rows = dict.fromkeys(names, 0)
    for table in table_blocks(file, lambda _: [*label, *names], **options.csv) if names else ():
        for name in names:
            column = table.columns[name].dropna()
            values[name].update(column.unique())
            rows[name] += len(column)
        if max(rows.values()) >= _ROWS:
            break
    found = [(name, len(values[name]), rows[name]) for name in names]
    return sorted(
        (one for one in found if one[1] >= _FEWEST and one[2] >= _REPEATS * one[1]),
        key=lambda one: -one[1],
    )
