"""The predictions in files, batch by batch; a small table is a single batch."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._files.columns import TableBlock, read_complete_column, read_finite_numbers
from .._show import make_printable, redact_secrets
from .._typing import AnyArray, FloatArray
from ..exceptions import add_error_context
from ._classes import (
    check_column_order,
    find_class_order,
    get_soft_label_classes,
    make_classes_and_positive,
    match_named_classes_and_positive,
    reject_single_or_unnamed_class,
    sort_by_class_order_if_class_names,
)
from ._messages import invalid_option
from ._request import ColumnRoles, Request
from ._tables import (
    TableReader,
    check_labels_offered_by_rows,
    check_right_and_wrong_present,
    encode_known_labels,
    get_correctness_as_int_series,
    get_scores,
    make_frame_with_numbers_and_dates,
    read_filled_labels,
    read_label_votes,
    read_score_column,
)


class PredictionBatch(NamedTuple):
    """The predictions of some rows; the columns of scores have the order of the classes.

    Attributes
    ----------
    labels : Series or ndarray
        Labels; or shares of classes, of shape (n_rows,) or (n_rows, n_classes).
    scores : ndarray of shape (n_rows, n_columns), or list of them
        The numbers in the table, percentages as probabilities, or what `read_proba`
        made of them; of two models a list.
    weight, votes : ndarray of shape (n_rows,), or None
    cluster : ndarray or None
        The column of ``--cluster``.
    time : Series or None
    groups, features : DataFrame or None
        The columns of ``--by`` and ``--features``.
    names, label_names : sequence of str
        The columns of scores and of labels.
    classes : ndarray or None
    positive : label or None
    """

    labels: Any
    scores: Any
    weight: FloatArray | None = None
    votes: FloatArray | None = None
    cluster: Any = None
    time: Any = None
    groups: Any = None
    features: Any = None
    names: Sequence[str] = ()
    label_names: Sequence[str] = ()
    classes: Any = None
    positive: Any = None

    def select_rows(self, rows: slice) -> "PredictionBatch":
        """Return a copy of some rows, which does not hold the others."""
        columns = {name: getattr(self, name) for name in _ROW_FIELDS}
        return self._replace(
            **{
                name: column[rows].copy()
                for name, column in columns.items()
                if column is not None
            }
        )

    def get_weights_with_votes(self) -> FloatArray | None:
        """Return the weights of rows which their votes weigh too."""
        if self.votes is None or (self.votes == 1).all():
            return self.weight
        return self.votes if self.weight is None else self.votes * self.weight


_ROW_FIELDS = PredictionBatch._fields[:8]


def join_batches(batches: Sequence[PredictionBatch]) -> PredictionBatch:
    """Return the rows of batches below each other."""
    if len(batches) == 1:
        return batches[0]
    columns = {
        name: [getattr(batch, name) for batch in batches] for name in _ROW_FIELDS
    }
    joined = {
        name: _join_column_pieces_if_any(pieces) for name, pieces in columns.items()
    }
    return batches[0]._replace(**joined)


def _join_column_pieces_if_any(pieces):
    import pandas as pd

    from .._simplex_array import stack_proba_rows

    if pieces[0] is None:
        return None
    if hasattr(pieces[0], "iloc"):
        return pd.concat(pieces, ignore_index=True)
    return stack_proba_rows(pieces) if pieces[0].ndim == 2 else np.concatenate(pieces)


# a monitor adds so many at a time: a multiple leaves it the same bits
_MONITOR_ROW_MULTIPLE = 256


class MixedTimesError(Exception):
    """Blocks whose times are of several kinds: only all of them determine the kind."""


class PredictionBatches:
    """The predictions in some files, which can be read repeatedly.

    Attributes
    ----------
    names, labels : list of str
        The columns of the scores and of the labels.
    classes : ndarray of shape (n_classes,)
        In the order of the columns: a single column has the probability of the second.
    """

    def __init__(
        self,
        files: Sequence[str],
        options: Request,
        known_classes: AnyArray | None = None,
    ) -> None:
        self.files = files
        self.options = options
        self.tables = TableReader(options)
        roles = options.find_roles(
            self.tables.list_all_columns(files[0], options.pick_columns)
        )
        self.names = roles.scores
        self.labels = roles.labels
        self.classes = self._find_column_classes(known_classes)
        self.names = sort_by_class_order_if_class_names(self.names, self.classes)

    def iter_batches_by_row_multiple(
        self, tables: Iterable[PredictionBatch]
    ) -> Iterator[PredictionBatch]:
        """Yield the rows of `iter_tables` in batches of a multiple of 256 but for the last."""
        left = None
        dtypes = set[Any]()
        for batch in tables:
            dtypes.add(None if batch.time is None else batch.time.dtype)
            if len(dtypes) > 1:
                raise MixedTimesError
            batch = batch if left is None else join_batches([left, batch])
            n = len(batch.labels) // _MONITOR_ROW_MULTIPLE * _MONITOR_ROW_MULTIPLE
            left = batch.select_rows(slice(n, None)) if n else batch
            if n:
                yield batch.select_rows(slice(n))
        if left is not None and len(left.labels):
            yield left

    def print_dropped_rows(self) -> None:
        """Print which rows had holes, once all have been read."""
        names = any(isinstance(label, str) for label in self.classes.tolist())
        self.tables.print_dropped_rows(names)

    def iter_file_batches(self, whole: bool = False) -> Iterator[PredictionBatch]:
        """Yield the rows of each block of the files, or of each file if `whole`."""
        from .._validation import check_vote_kinds

        self.tables.reset_counts()
        kinds = set[str]()
        for file in self.files:
            for table in self.tables.iter_blocks_with_all_rows(
                file, self.options.pick_columns, whole
            ):
                (kept,) = self.tables.drop_incomplete_rows_if_asked(table)
                if kept.n_rows:
                    yield self._make_batch_and_add_kinds(kept, kinds)
        check_vote_kinds(frozenset(kinds))
        self.tables.check_rows_kept()

    def _make_batch_and_add_kinds(
        self, table: TableBlock, kinds: set[str]
    ) -> PredictionBatch:
        options = self.options
        proba = get_scores(table, self.names, options)
        if options.soft_labels:
            votes = read_label_votes(table, self.labels)
            labels = votes.shares
            kinds |= votes.kinds
        elif options.prediction is not None:
            labels = get_correctness_as_int_series(
                table, options, self.names
            ).to_numpy()
        else:
            codes = encode_known_labels(table, options.label, self.classes)
            check_labels_offered_by_rows(codes, proba, table)
            labels = self.classes[codes]
        # the largest probability is that of the options that are there
        if options.absent:
            proba = np.asarray(proba)
        when = None
        if options.time is not None:
            when = read_complete_column(table, options.time, "time")
        return PredictionBatch(labels, proba, time=when)

    def _find_column_classes(self, known_classes):
        """Return the classes in the order of the columns; known ones are read from no file."""
        options = self.options
        made = options.soft_labels or options.prediction
        known_owner = None if known_classes is None else str(known_classes[-1])
        as_before = options.classes is None and options.positive in (None, known_owner)
        if known_classes is not None and not made and as_before:
            return known_classes  # without a look at the labels: a new table may lack a class
        order = find_class_order(self.files, len(self.names), options, self.labels)
        classes = order.column_classes
        if known_classes is not None and classes.tolist() != known_classes.tolist():
            known_names = ", ".join(map(str, known_classes.tolist()))
            raise invalid_option(
                expected=f"the classes {make_printable(known_names)} of the state, in this order",
                got=f"{make_printable(', '.join(map(str, classes.tolist())))}",
                hint="Leave --classes and --positive out",
            )
        return classes


def read_weight_and_cluster_or_nones(
    table: TableBlock, options: Request, what: str = "group"
) -> dict[str, Any]:
    """Return the weights and clusters of rows, which are None if none were named.

    `what` is what a message calls a cluster.
    """
    weight = together = None
    if options.weight is not None:
        weight = read_finite_numbers(table, options.weight)
    if options.group is not None:
        together = read_complete_column(table, options.group, what)
    return {"weight": weight, "cluster": together}


# -- all rows in memory ----------------------------------------------------------------------


def describe_files(files: Sequence[str]) -> str:
    """Return what an error message calls some files."""
    return redact_secrets(files[0]) if len(files) == 1 else f"{len(files)} files"


def load_batch_without_classes(
    files: Sequence[str], options: Request
) -> PredictionBatch:
    """Return the columns that the options name, with no classes yet; reject missing values.

    Those of ``--by`` and ``--features`` may have them. Without ``--label`` the labels
    are None.
    """
    from .._validation import check_vote_kinds
    from ..summary import parse_folder_values

    roles: dict[str, ColumnRoles] = {}

    def store_roles_and_pick_columns(file, present):
        roles[file] = options.find_roles(present)
        folders = parse_folder_values(file)
        return [
            name
            for name in roles[file].all_columns
            if name in present or name not in folders
        ]

    tables = TableReader(options).load_complete_rows_and_print_dropped(
        files,
        store_roles_and_pick_columns,
        lambda file, _: roles[file].required_columns,
    )
    kinds: frozenset[str] = frozenset()
    batches = []
    for table in tables:
        folders = parse_folder_values(table.file)
        for name in roles[table.file].groups:
            if name not in table.columns:
                table.columns[name] = folders[name]
        batch, more_kinds = _parse_batch_and_vote_kinds(
            table, roles[table.file], options
        )
        batches.append(batch)
        kinds |= more_kinds
    rows = join_batches(batches)
    if options.prediction is not None:
        check_right_and_wrong_present(rows.labels, tables[0], options)
    if options.soft_labels:
        with add_error_context(source=describe_files(files)):
            check_vote_kinds(kinds)
    return rows


def _parse_batch_and_vote_kinds(table, roles, options):
    """Return the rows of a file, and the kinds of votes that it has."""
    more = {
        field: make_frame_with_numbers_and_dates(
            table._replace(columns=table.columns[names])
        )
        for field, names in (("groups", roles.groups), ("features", roles.features))
        if names
    }
    batch = PredictionBatch(
        labels=None,
        scores=np.column_stack(
            [read_score_column(table, name, options) for name in roles.scores]
        ),
        names=roles.scores,
        label_names=roles.labels,
        **read_weight_and_cluster_or_nones(table, options),
        **more,
    )
    if options.soft_labels:
        votes = read_label_votes(table, roles.labels)
        return batch._replace(
            labels=votes.shares, votes=votes.n_votes_by_row
        ), votes.kinds
    labels = None
    if options.prediction is not None:
        labels = get_correctness_as_int_series(table, options, roles.scores)
    elif roles.labels:
        labels = read_filled_labels(table, options.label)
    return batch._replace(labels=labels), frozenset()


def load_rows(files: Sequence[str], options: Request) -> PredictionBatch:
    """Return the rows of some files, with the classes that their columns stand for.

    Soft labels are shares of the class 1, or of one column per class. A single column
    is the probability of ``classes[1]``. Columns that fit other classes are rejected,
    unless ``--allow order`` was given.
    """
    from .._validation import read_labels, read_proba, reorder_columns_if_names_match

    absent = options.absent
    rows = load_batch_without_classes(files, options)
    n_columns = len(rows.names)
    named = positive = None
    if not options.soft_labels:
        named, positive = match_named_classes_and_positive(
            options, rows.labels, n_columns
        )
    with add_error_context(source=describe_files(files)):
        if options.soft_labels:
            classes = get_soft_label_classes(options, rows.label_names, n_columns)
            labels = rows.labels
        else:
            classes, codes = read_labels(rows.labels, classes=named)
            reject_single_or_unnamed_class(classes, n_columns, options)
            labels = classes[codes]
        names = [*rows.names]
        scores = reorder_columns_if_names_match(rows.scores, names, classes)
        names = sort_by_class_order_if_class_names(names, classes)
        classes = make_classes_and_positive(classes, positive, n_columns).column_classes
        if options.score_kind == "logits":
            scores = read_proba(scores, kind="logits", absent=absent)
        elif absent:
            scores = read_proba(scores, tolerance=options.sum_tolerance, absent=absent)
        check_column_order(labels, scores, classes, n_columns, options)
        if options.tolerance is not None:
            scores = read_proba(scores, tolerance=options.tolerance)
    return rows._replace(
        labels=labels,
        scores=scores,
        weight=rows.get_weights_with_votes(),
        names=names,
        classes=classes,
        positive=positive,
    )


def expand_soft_labels(rows: PredictionBatch, first: int = 0) -> PredictionBatch:
    """Return soft labels as weighted rows of one label each, which belong together.

    Without clusters each item is one; `first` is the number of the first of them.
    """
    from .._validation import validate_soft_labels

    n_items = len(rows.labels)
    soft = validate_soft_labels(rows.labels, rows.weight, rows.classes, n_rows=n_items)
    items = soft.items
    together = first + items if rows.cluster is None else rows.cluster[items]
    scores = rows.scores
    if isinstance(scores, list):  # of two models
        scores = [np.asarray(proba)[items] for proba in scores]
    else:
        scores = scores[items]
    return rows._replace(
        labels=soft.labels,
        scores=scores,
        weight=soft.weight,
        classes=soft.classes,
        cluster=together,
    )
