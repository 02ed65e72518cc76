"""summarize: rows of files, tables and clusters become summaries."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from .._argument_checks import (
    check_jobs,
    check_progress_callback,
    import_optional,
    read_bool_with_none_as_false,
)
from .._files.columns import (
    TableBlock,
    encode_column,
    expand_list_column_name,
    is_written_in_percent,
    make_array,
    map_texts_to_values,
    read_label_values,
    read_number_values,
)
from .._files.rows import GroupedRowCountColumns, iter_query_pieces
from .._show import quote_text
from .._spelling import suggest_name
from .._typing import AnyArray, ArrayLike, Multiclass, Progress
from .._validation import (
    check_vote_kinds,
    find_columns_if_names_match,
    read_labels,
    read_shares_or_votes,
)
from .._warnings import warn_calibration
from ..exceptions import InvalidInputError, add_error_context, invalid_input
from ._draw_options import (
    EMPTY_DRAW,
    DrawAndScoreOptions,
    add_block_to_summary_and_draw,
)
from ._parts import (
    DataObjectPart,
    FilePart,
    SavedSummaryPart,
    get_part_bytes_or_default,
    make_parts,
    make_path_absolute,
    parse_folder_values,
    validate_csv_options,
)
from ._summary import CalibrationSummary

#: The hint on rows with missing values, which are dropped.
DROPPED_ROWS_HINT = "These rows are left out"
_MAX_GROUPS = 10_000
_MAX_CLASSES = 10_000
# Smaller codes are sorted by their digits.
_MAX_RADIX_SORTED_CODE = 2**16


class SummaryPlan(NamedTuple):
    """What every part of the rows is summarised by; can be sent to another process."""

    labels: tuple[str, ...]  # one, or one per class of soft labels
    prob: tuple[str, ...]
    weight: str | None
    counts: str | None
    by: tuple[str, ...]
    one_key: bool  # a group is named by its value, not by a tuple of one
    max_cells: int
    multiclass: Multiclass
    classes: Any
    pos_label: Any
    drop_missing: bool = False
    draw: DrawAndScoreOptions = EMPTY_DRAW
    soft: bool = False  # the labels are shares

    @property
    def required_columns(self) -> list[str]:
        """The columns that must have a value."""
        names = [
            *self.labels,
            *self.prob,
            self.weight,
            self.counts,
            self.draw.group_column,
        ]
        return [*dict.fromkeys(name for name in names if name is not None)]

    @property
    def all_columns(self) -> list[str]:
        """All columns that are read."""
        groups = [column.name for column in self.draw.grouped_columns]
        names = [*self.required_columns, *self.by, *groups, *self.draw.extra_columns]
        return [*dict.fromkeys(names)]

    @property
    def text_columns(self) -> list[str]:
        """The columns of a text file that are read as text."""
        labels = () if self.soft else self.labels
        groups = [column.name for column in self.draw.grouped_columns if column.as_text]
        return [*labels, *self.draw.extra_columns, *groups]

    @property
    def has_text_classes(self) -> bool:
        """Whether the classes are text."""
        labels = (
            [self.pos_label]
            if self.classes is None
            else np.asarray(self.classes).tolist()
        )
        return any(isinstance(label, str) for label in labels)


def summarize(
    data: object,
    *,
    label: str | Sequence[str] | None = None,
    prob: str | Sequence[str] | None = None,
    weight: str | None = None,
    counts: str | None = None,
    by: str | Sequence[str] | None = None,
    n_jobs: int | None = None,
    max_cells: int = 65_536,
    multiclass: Multiclass = "auto",
    classes: ArrayLike | None = None,
    pos_label: object = None,
    csv: dict[str, Any] | None = None,
    drop_missing: bool = False,
    soft_labels: bool = False,
    query: str | None = None,
    in_database: bool = False,
    progress: Progress | None = None,
    _draw: DrawAndScoreOptions = EMPTY_DRAW,
) -> Any:
    """Make a `CalibrationSummary` of rows that need not fit into memory.

    Parameters
    ----------
    data : object
        Where the rows are:

        * the path of a file (parquet, csv, JSON lines, Arrow, Excel; nested fields are
          ``a.b``), a pattern (``"day=*/*.parquet"``), a folder, or a list of these. Of
          a folder or a pattern without ending, files that end in ``.parquet``,
          ``.csv``, ``.jsonl``, ``.arrow`` and the like are read and no others; names
          that begin with ``_`` or ``.`` never;
        * files of `CalibrationSummary.to_parquet` among these: they are merged with the
          rest;
        * the address of parquet files, such as ``"s3://bucket/day=1/"``, by
          ``pyarrow.fs``;
        * a ``pyarrow.dataset.Dataset``, of any file system, with its filter if it has
          one;
        * a table: pandas, and objects with ``__arrow_c_stream__`` (polars, DuckDB,
          ibis, pyarrow);
        * a dict of arrays, by name;
        * a dask DataFrame, or a dict of dask arrays;
        * a Spark DataFrame: each partition becomes a summary if it is;
        * with `query` the address of a database by SQLAlchemy
          (``"postgresql://host/name"``), an engine or a connection of SQLAlchemy, or a
          connection of ADBC, DuckDB or any other driver with cursors (psycopg, pymysql,
          sqlite3); or a cursor or result of such a query;
        * an iterator: of tables, as ``pandas.read_sql(chunksize=)`` gives; of dicts or
          tuples of arrays; of rows, dicts or tuples. Tuples without names are label,
          prob, weight, counts, by, those that are named here, in this order.
    label : str or list of str
        The column of true labels; needed unless all files are saved summaries, as is
        `prob`. A list is for soft labels.
    prob : str or list of str
        The column with the probability of the positive class, or one column per class.
    weight : str, default=None
        The column of sample weights.
    counts : str, default=None
        The column with the number of rows that each row stands for.
    by : str or list of str, default=None
        One summary for each value of this column, or for each combination of several;
        missing values are the value None. Values in the names of folders
        (``day=2026-01-31``) are columns too, also of saved summaries in them.
        `group_calibration` takes what is returned.
    n_jobs : int, default=None
        Processes for files, by joblib (hence also its other backends); if there are
        fewer files than processes, row groups of parquet files are shared out. Tables
        in memory and datasets are read by this process.
    max_cells, multiclass, classes, pos_label
        As in `CalibrationSummary`.
    csv : dict, default=None
        ``sep``, ``decimal``, ``encoding`` of csv files; found out, ".", and UTF-8 by
        default; and ``header``, the list of all names, for files without a line of
        names; and ``skip_rows``, the number of lines above the names, such as titles,
        also in Excel's sheets.
    drop_missing : bool, default=False
        Leave out rows with a missing value in one of the columns but those of `by`, and
        say how many and which in a `CalibrationWarning`; by default they are rejected.
    soft_labels : bool, default=False
        Whether the column of labels holds shares of the second class; or, of a list of
        columns, one per class, shares that sum to 1, or whole numbers: votes, of which
        a row with n weighs n times as much. See `CalibrationSummary.update`.
    query : str, default=None
        The SQL query whose rows are summarised; `data` is the database then.
    in_database : bool, default=False
        Whether the database counts the rows of `query` that are equal in all columns
        named here, by GROUP BY, so that these numbers come instead of the rows. The
        cells are the same in every bit. It pays if scores are rounded or of few
        levels; errors give the number of a group.
    progress : callable, default=None
        Called as ``progress(done, total)``, in bytes of the files.

    Returns
    -------
    summary : CalibrationSummary, or dict
        With `by` a dict from the value to its summary, in sorted order; the keys are
        tuples if `by` is a list.

    Raises
    ------
    ValueError
        Files that are not tables, missing columns, missing values, invalid labels,
        scores or weights, with the file, the row group and the row of the file (from
        0); more than 10,000 groups; a query that the database rejects, or that returns
        no row.
    OSError
        A cursor or iterator that breaks off; the message has the number of rows before.
    ModuleNotFoundError
        pyarrow, pandas, dask or SQLAlchemy is not installed and needed.

    Warns
    -----
    CalibrationWarning
        Rows that `drop_missing` leaves out; `classes` in an order of their own if
        the columns fit another one far better.

    Notes
    -----
    Some 130,000 rows of the named columns are in memory at a time. The result does not
    depend on the order of the files, on `n_jobs` or on the size of row groups. Cost:
    some 20 to 40 ns a row and what reading costs; with `by` four to five times as much
    for eight groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.summary import summarize
    >>> proba, y = make_overconfident(2, 1000)
    >>> table = pd.DataFrame({"p": proba[:, 1], "y": y, "shop": ["north", "south"] * 500})
    >>> summary = summarize(table, label="y", prob="p")
    >>> groups = summarize(table, label="y", prob="p", by="shop")
    >>> [(name, s.n_samples) for name, s in groups.items()]
    [('north', 500), ('south', 500)]
    >>> sum(groups.values()) == summary
    True
    """
    csv = validate_csv_options(csv)
    read_bool_with_none_as_false(drop_missing, "drop_missing")
    read_bool_with_none_as_false(soft_labels, "soft_labels")
    read_bool_with_none_as_false(in_database, "in_database")
    if in_database and (query is None or drop_missing):
        got = "no query" if query is None else "drop_missing=True"
        raise invalid_input(
            expected="query without drop_missing, for in_database=True",
            got=got,
            hint="Write what is to be counted as a query, with WHERE p IS NOT NULL",
        )
    labels: Any = (
        () if label is None or (isinstance(label, str) and not label) else (label,)
    )
    if soft_labels and np.iterable(label) and not isinstance(label, str):
        labels = tuple(label)
    for name, column in (
        *(("label", column) for column in labels),
        *(("weight", weight), ("counts", counts)),
    ):
        if not isinstance(column, str | None):
            raise invalid_input(
                expected=f"{name} as the name of a column",
                got=repr(column)[:60],
                hint="Pass a text",
            )
    for name, names in (("prob", prob), ("by", by)):
        if not isinstance(names, str | Sequence | None):
            raise invalid_input(
                expected=f"{name} as the name of a column, or a list of names",
                got=repr(names)[:60],
                hint="Pass a text, or a list",
            )
    check_jobs(n_jobs)
    check_progress_callback(progress)
    several = not isinstance(by, str | None)
    columns = (by,) if isinstance(by, str) else tuple(by or ())
    probs = (prob,) if isinstance(prob, str) else tuple(prob or ())
    places = find_columns_if_names_match(
        [*probs], range(len(probs)) if classes is None else classes
    )
    if places is not None:
        probs = tuple(probs[place] for place in places)
    plan = SummaryPlan(
        labels,
        probs,
        weight,
        counts,
        columns,
        one_key=not several,
        max_cells=max_cells,
        multiclass=multiclass,
        classes=classes,
        pos_label=pos_label,
        drop_missing=drop_missing,
        draw=_draw,
        soft=bool(soft_labels),
    )
    make = partial(GroupSummaryTally, plan)
    # An empty summary checks its options before the work.
    make().make_empty_summary()
    # The database counts equal rows, so that fewer of them are transferred.
    if query is not None:
        counting = None
        if in_database:
            counting, plan = _make_count_query_and_answer_plan(plan)
            make = partial(GroupSummaryTally, plan)
        data = iter_query_pieces(data, query, counting)
    if _is_dask(data):
        total = _tally_dask(data, plan.all_columns, make)
    elif type(data).__module__.startswith("pyspark."):
        total = _tally_spark(data, plan.all_columns, make)
    else:
        parts = make_parts(data, plan.text_columns, csv)
        if not (labels and probs) and any(
            not isinstance(one, SavedSummaryPart) for one in parts
        ):
            raise invalid_input(
                expected="label= and prob=",
                got="one of them",
                sentence="label= and prob= are required",
                hint="Name the columns of the labels and of the probabilities",
            )
        total = tally_parts(parts, make, n_jobs, progress)
    total.check_votes_dropped_rows_and_order()
    return total.get_summary_or_groups()


def _make_count_query_and_answer_plan(plan):
    """Return what the database counts, and the plan for its answer."""
    names = [name for name in plan.all_columns if name != plan.counts]
    into = "n_rows"
    while into in names:
        into += "_"
    return GroupedRowCountColumns(names, into, plan.counts), plan._replace(counts=into)


def _is_dask(data):
    several = [*data.values()] if isinstance(data, dict) else [data]
    return any(type(value).__module__.startswith("dask") for value in several)


def tally_parts(
    parts: list[Any], make: Callable[[], Any], n_jobs: Any, progress: Progress | None
) -> Any:
    """Return the tally of all parts; `make` returns an empty one."""
    total = make()
    # With fewer files than processes the row groups are divided among them.
    if n_jobs not in (None, 1) and len(parts) < effective_n_jobs(n_jobs):
        pieces: list[Any] = []
        for part in parts:
            is_file = isinstance(part, FilePart)
            pieces += (
                part.split_row_groups_if_possible(total.number_columns)
                if is_file
                else [part]
            )
        parts = pieces
    ends = np.cumsum([0, *(get_part_bytes_or_default(part) for part in parts)]).tolist()

    def report_progress(number, share):
        if progress is not None:
            start, ended = ends[number : number + 2]
            progress(int(start + share * (ended - start)), ends[-1])

    if n_jobs in (None, 1) or len(parts) == 1:
        tallies = (
            _tally_part(part, make, partial(report_progress, i))
            for i, part in enumerate(parts)
        )
    else:
        jobs = [delayed(_tally_part)(make_path_absolute(part), make) for part in parts]
        tallies = _iter_results_in_job_order(n_jobs, jobs)
    # In the order of the parts: messages do not depend on which process ends first.
    for number, tally in enumerate(tallies):
        # summaries may be of other classes
        with add_error_context(source=parts[number].name):
            total.merge(tally)
        report_progress(number, 1.0)
    return total


def _tally_part(part, make, report=None):
    """Return the tally of a part; `report` is called with the share that is done."""
    tally = make()
    if isinstance(part, SavedSummaryPart):
        tally.add_stored_summary_or_raise(part)
        return tally
    with add_error_context():
        for block in part.iter_blocks(tally.needed):
            tally.add(block)
            if report is not None:
                report(block.read_fraction)
    return tally


def invalid_grouping(part: SavedSummaryPart) -> InvalidInputError:
    """Return the error to raise about rows that are to be grouped and were added up."""
    return invalid_input(
        expected="rows to group",
        got=f"the summary {quote_text(part.name)}",
        hint="Save one summary for each group, in folders such as day=2026-01-31",
    )


def _iter_results_in_job_order(n_jobs, jobs):
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    except ValueError as error:  # dask as the backend of an older joblib
        if "return_as" not in str(error):
            raise
        return Parallel(n_jobs=n_jobs)(jobs)


def _find_file_row(block, rows, row):
    return block.get_file_row(rows[row])


class GroupSummaryTally:
    """Summaries by group, of one plan; of all rows if the plan has no groups."""

    def __init__(self, plan: SummaryPlan) -> None:
        self.plan = plan
        self.needed = plan.all_columns
        self.number_columns = (*plan.prob, plan.weight)
        self.groups: dict[tuple[Any, ...], CalibrationSummary] = {}
        self.n_dropped_rows = 0  # rows with a missing value
        # The first of them in each part.
        self._dropped_rows: list[tuple[str, list[int]]] = []
        self.kinds: frozenset[str] = (
            frozenset()
        )  # of soft labels, see `read_shares_or_votes`

    def make_empty_summary(self) -> CalibrationSummary:
        """Return a summary of no rows."""
        plan = self.plan
        empty = CalibrationSummary(
            plan.max_cells, plan.multiclass, plan.classes, plan.pos_label
        )
        # A warning of another process would not be shown.
        empty._labels.silent = True
        return empty

    def add_stored_summary_or_raise(self, part: SavedSummaryPart) -> None:
        """Add the summary of a part."""
        folders = parse_folder_values(part.path)
        key = tuple(folders.get(name) for name in self.plan.by)
        if None in key or self.plan.draw.grouped_columns:
            raise invalid_grouping(part)
        self.groups[key] = CalibrationSummary.from_parquet(part.path)

    def add(self, block: TableBlock) -> None:
        """Add the rows of a block; the error names the place of a wrong one."""
        plan = self.plan
        if plan.drop_missing:
            keep = block.find_filled_rows(plan.required_columns)
            if not keep.all():
                self._record_dropped_rows(block, np.flatnonzero(~keep))
                block = block.select_rows(keep)
            if not block.n_rows:
                return
        labels, votes = self._read_labels_and_votes_and_add_kinds(block)
        names = [
            column
            for name in plan.prob
            for column in expand_list_column_name(name, block.columns)
        ]
        scores = [self._get_scores(block, name) for name in names]
        # columns lie side by side
        proba = scores[0] if len(scores) == 1 else np.stack(scores).T
        rest = [
            None if name is None else read_number_values(block, name)
            for name in (plan.weight, plan.counts)
        ]
        # An item with n votes weighs n times as much as one vote.
        if votes is not None:
            rest[0] = votes if rest[0] is None else votes * rest[0]
        for key, rows in iter_groups(block, plan.by):
            summary = self.groups.get(key)
            if summary is None:
                summary = self._add_group(key)
            arrays = [
                array if rows is None or array is None else array[rows]
                for array in (labels, proba, *rest)
            ]
            with add_error_context(
                source=block.source_name,
                map_row=block.get_file_row
                if rows is None
                else partial(_find_file_row, block, rows),
            ):
                add_block_to_summary_and_draw(
                    summary, plan.draw, block, arrays, plan.soft
                )

    def _read_labels_and_votes_and_add_kinds(self, block):
        """Return the labels of a block, or its shares with the votes of each row."""
        names = self.plan.labels
        if not self.plan.soft:
            return read_label_values(block, names[0], self.plan.has_text_classes), None
        columns = [read_number_values(block, name) for name in names]
        if len(columns) == 1:
            return columns[0], None
        with add_error_context(source=block.source_name, map_row=block.get_file_row):
            votes = read_shares_or_votes(np.column_stack(columns))
        self.kinds |= votes.kinds
        return votes.shares, votes.n_votes_by_row if (
            votes.n_votes_by_row != 1
        ).any() else None

    def _get_scores(self, block, name):
        """Return a column of scores.

        Of percentages a hundredth, which text with a sign is already.
        """
        values = read_number_values(block, name)
        is_hundredfold = self.plan.draw.percent and not is_written_in_percent(
            block, name
        )
        return values / 100 if is_hundredfold else values

    def _record_dropped_rows(self, block, places):
        self.n_dropped_rows += len(places)
        self._dropped_rows.append(
            (block.source_name, [block.get_file_row(place) for place in places[:5]])
        )
        del self._dropped_rows[5:]

    def describe_dropped_rows(self) -> str:
        """Return how many rows had a missing value, and the first of them."""
        row_texts = [
            f"row {row} of {source}" if source else f"row {row}"
            for source, rows in self._dropped_rows
            for row in rows
        ][:5]
        more = ", ..." if self.n_dropped_rows > len(row_texts) else ""
        return f"{self.n_dropped_rows} rows ({', '.join(row_texts)}{more})"

    def _add_group(self, key):
        if len(self.groups) == _MAX_GROUPS:
            raise invalid_input(
                expected=f"at most {_MAX_GROUPS} groups by {', '.join(self.plan.by)}",
                got="more",
                hint="Group by columns of few values, for instance by the day",
            )
        self.groups[key] = self.make_empty_summary()
        return self.groups[key]

    def merge(self, other: "GroupSummaryTally") -> "GroupSummaryTally":
        """Add the rows of another tally, which stays as it is."""
        self.n_dropped_rows += other.n_dropped_rows
        self.kinds |= other.kinds
        self._dropped_rows = [*self._dropped_rows, *other._dropped_rows][:5]
        for key, other_summary in other.groups.items():
            own_summary = self.groups.get(key)
            if own_summary is None:
                if len(self.groups) == _MAX_GROUPS:
                    self._add_group(key)  # rejects
                self.groups[key] = other_summary.copy()
            else:
                own_summary.merge(other_summary)
        return self

    def check_votes_dropped_rows_and_order(self) -> None:
        """Warn of rows that were left out, and of classes that the columns do not fit.

        Raises ValueError if some rows are shares and others votes.
        """
        check_vote_kinds(self.kinds)
        if self.n_dropped_rows:
            warn_calibration(
                expected="a value in every cell",
                got=f"none in {self.describe_dropped_rows()}",
                hint=DROPPED_ROWS_HINT,
            )
        for summary in self.groups.values():
            if summary._labels.doubt is not None:
                warn_calibration(*summary._labels.doubt)
                break

    def get_summary_or_groups(self) -> Any:
        """Return what `summarize` returns."""
        if not self.plan.by:
            return self.groups.get((), self.make_empty_summary())
        keys = sorted(
            self.groups, key=lambda key: [(type(part).__name__, part) for part in key]
        )
        return {key[0] if self.plan.one_key else key: self.groups[key] for key in keys}


def iter_groups(
    block: TableBlock, by: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], AnyArray | None]]:
    """Yield (key, rows of the block) of each group that the block has; rows None are all."""
    if not by:
        yield (), None
        return
    columns = [encode_column(block, name, None) for name in by]
    code = columns[0].codes
    size = len(columns[0].values)
    for column in columns[1:]:
        # Combinations of values as numbers in a mixed base.
        code = code * len(column.values) + column.codes
        size *= len(column.values)
        if size > _MAX_RADIX_SORTED_CODE:
            code = np.unique(code, return_inverse=True)[1]
            size = int(code.max(initial=0)) + 1
    order = np.argsort(
        code.astype(np.uint16) if size <= _MAX_RADIX_SORTED_CODE else code,
        kind="stable",
    )
    ends = np.cumsum(np.bincount(code, minlength=1))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if start == end:
            continue
        rows = order[start:end]
        key = tuple(
            _to_python_value(column.values[column.codes[rows[0]]]) for column in columns
        )
        yield key, rows


def _to_python_value(value):
    return value.item() if isinstance(value, np.generic) else value


_TALLIES_PER_MERGE = 8


def _tally_dask(data, needed, make):
    """Return the tally of all partitions, computed by the scheduler that dask has at hand."""
    dask = import_optional("dask", "dask")
    if isinstance(data, dict):
        pieces = _split_dask_arrays_into_blocks(data, needed)
    else:
        missing = [name for name in needed if name not in data.columns]
        if missing:
            raise invalid_input(
                expected=f"the column {missing[0]!r}",
                got=f"{[*data.columns][:30]}",
                hint=suggest_name(missing[0], data.columns),
            )
        pieces = data[needed].to_delayed()
    tally = dask.delayed(_tally_partition)
    merge = dask.delayed(_merge_tallies)
    tallies = [tally(piece, f"partition {i}", make) for i, piece in enumerate(pieces)]
    # A tree of merges keeps the number of tallies in memory small on each worker.
    while len(tallies) > 1:
        starts = range(0, len(tallies), _TALLIES_PER_MERGE)
        tallies = [
            merge(tallies[start : start + _TALLIES_PER_MERGE], make) for start in starts
        ]
    return tallies[0].compute()


def _split_dask_arrays_into_blocks(data, needed) -> list[dict[str, Any]]:
    """Return dicts of the blocks of arrays that lie side by side."""
    arrays = {name: data[name] for name in needed if name in data}
    if len(arrays) < len(needed):
        raise invalid_input(
            expected=f"arrays {needed}",
            got=f"{[*data][:30]}",
            hint="Name the arrays as label= and prob= do",
        )
    first = next(array for array in arrays.values() if hasattr(array, "dask"))
    columns = []
    for name, array in arrays.items():
        if not hasattr(array, "dask"):
            raise invalid_input(
                expected=f"{name!r} as a dask array like the others",
                got=f"a {type(array).__name__}",
                hint="Turn it into one with dask.array.from_array",
            )
        if array.ndim == 2:
            array = array.rechunk({1: -1})
        if array.numblocks[0] != first.numblocks[0] or not np.array_equal(
            array.chunks[0], first.chunks[0], equal_nan=True
        ):
            array = array.rechunk({0: first.chunks[0]})
        columns.append(array.to_delayed().ravel().tolist())
    return [
        dict(zip(arrays, blocks, strict=True)) for blocks in zip(*columns, strict=True)
    ]


def _tally_partition(partition, name, make_tally):
    return _tally_part(DataObjectPart(partition, name), make_tally)


def _merge_tallies(tallies, make):
    """Return a new tally: a task may be run again, so those that it is given stay as they are."""
    total = make()
    for tally in tallies:
        total.merge(tally)
    return total


def _tally_spark(data, needed, make):
    """Return the tally of all partitions of a Spark DataFrame, each computed where it is."""

    def iter_single_pickled_tally_batch(batches):
        import pyarrow as pa

        filled = (batch for batch in batches if batch.num_rows)
        # Empty partitions give no tally.
        if (first := next(filled, None)) is not None:
            tally = _tally_partition(chain([first], filled), "a partition", make)
            yield pa.RecordBatch.from_pydict({"tally": [pickle.dumps(tally)]})

    rows = (
        data.select(*needed)
        .mapInArrow(iter_single_pickled_tally_batch, "tally binary")
        .collect()
    )
    return _merge_tallies([pickle.loads(row["tally"]) for row in rows], make)


def find_distinct_labels(
    data: object,
    *,
    label: str,
    csv: dict[str, Any] | None = None,
    drop_missing: bool = False,
    _enough: int | None = None,
) -> AnyArray:
    """Find the different labels, sorted, of rows that need not fit into memory.

    A summary has to know its classes before the first batch. If they are not 0 and 1
    and not given, this reads the column of labels, and no other.

    Parameters
    ----------
    data : object
        Files or tables, as in `summarize`; no stream that can be read only once, and no
        dask collection. Saved summaries count with their classes.
    label : str
        The column of true labels.
    csv : dict, default=None
        As in `summarize`.
    drop_missing : bool, default=False
        Pass over missing labels, which are rejected otherwise.

    Returns
    -------
    classes : ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        What `summarize` rejects, no labels at all, or more than 10,000 different ones.

    Examples
    --------
    >>> from sklearn_calib.summary import find_distinct_labels, summarize
    >>> table = {"y": ["no", "yes", "no"], "p": [0.1, 0.7, 0.2]}
    >>> classes = find_distinct_labels(table, label="y")
    >>> classes.tolist()
    ['no', 'yes']
    >>> summarize(table, label="y", prob="p", classes=classes).n_samples
    3
    """
    if type(data).__name__ == "RecordBatchReader" or type(data).__module__.startswith(
        "dask"
    ):
        raise invalid_input(
            expected="data that can be read twice",
            got=f"a {type(data).__name__}",
            hint="Pass classes= to summarize yourself",
            error=TypeError,
        )
    if not isinstance(label, str):
        raise invalid_input(
            expected="label as the name of a column",
            got=repr(label)[:60],
            hint="Pass a text",
        )
    csv = validate_csv_options(csv)
    distinct_labels: dict[Any, None] = {}
    texts: dict[str, None] = {}
    decimal = None
    with add_error_context():
        for part in make_parts(data, (label,), csv):
            if isinstance(part, SavedSummaryPart):
                summary_classes = CalibrationSummary.from_parquet(part.path).classes
                distinct_labels |= dict.fromkeys(
                    [] if summary_classes is None else summary_classes.tolist()
                )
                continue
            for block in part.iter_blocks([label]):
                if drop_missing:
                    block = block.select_rows(block.find_filled_rows([label]))
                values = encode_column(block, label, "label").values
                if block.is_csv:
                    texts |= dict.fromkeys(values.tolist())
                    decimal = block.decimal
                else:
                    distinct_labels |= dict.fromkeys(values.tolist())
                if len(distinct_labels) + len(texts) > _MAX_CLASSES:
                    raise invalid_input(
                        expected=f"at most {_MAX_CLASSES} different labels",
                        got="more",
                        hint="Name the column of the labels",
                    )
                # The caller only needs to know whether there are that many.
                if _enough and len(distinct_labels) + len(texts) >= _enough:
                    return _add_texts_and_sort_distinct_labels(
                        distinct_labels, texts, decimal
                    )
    return _add_texts_and_sort_distinct_labels(distinct_labels, texts, decimal)


def _add_texts_and_sort_distinct_labels(distinct_labels, texts, decimal):
    distinct_labels |= dict.fromkeys(map_texts_to_values(texts, decimal).values())
    if not distinct_labels:
        raise invalid_input(
            expected="rows with labels", got="none", hint="Check the data"
        )
    return read_labels(make_array([*distinct_labels]))[0]
