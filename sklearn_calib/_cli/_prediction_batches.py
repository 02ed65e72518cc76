"""The predictions in files, batch by batch; a small table is a single batch."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._files.columns import Block, whole_column
from .._show import plain
from .._typing import AnyArray, FloatArray
from ._classes import find_class_order, in_class_order
from ._messages import AS_MISSING, invalid_option
from ._printing import note
from ._request import Request
from ._tables import Tables, check_there, find_codes, right_of, scores_of, shares_of


class PredictionBatch(NamedTuple):
    """The predictions of some rows; the columns of scores have the order of the classes.

    Attributes
    ----------
    labels : Series or ndarray
        Labels; or shares of classes, of shape (n_rows,) or (n_rows, n_classes).
    scores : ndarray of shape (n_rows, n_columns), or list of them
        What `read_proba` made of the numbers in the table, or these; of two models a list.
    weight, votes : ndarray of shape (n_rows,), or None
    together : ndarray or None
        The column of ``--cluster``.
    time : Series or None
    groups, features : DataFrame or None
        The columns of ``--by`` and ``--features``.
    given : ndarray or None
        The numbers in the table, percentages as probabilities.
    names, label_names : sequence of str
        The columns of scores and of labels.
    classes : ndarray or None
    positive : label or None
    """

    labels: Any
    scores: Any
    weight: FloatArray | None = None
    votes: FloatArray | None = None
    together: Any = None
    time: Any = None
    groups: Any = None
    features: Any = None
    given: Any = None
    names: Sequence[str] = ()
    label_names: Sequence[str] = ()
    classes: Any = None
    positive: Any = None

    def take(self, rows: slice) -> "PredictionBatch":
        """Return a copy of some rows, which does not hold the others."""
        columns = {name: getattr(self, name) for name in _ROW_COLUMNS}
        return self._replace(
            **{name: c[rows].copy() for name, c in columns.items() if c is not None}
        )

    def weigh_votes(self) -> FloatArray | None:
        """Return the weights of rows which their votes weigh too."""
        if self.votes is None or (self.votes == 1).all():
            return self.weight
        return self.votes if self.weight is None else self.votes * self.weight


_ROW_COLUMNS = PredictionBatch._fields[:9]


def join_batches(batches: Sequence[PredictionBatch]) -> PredictionBatch:
    """Return the rows of batches below each other."""
    if len(batches) == 1:
        return batches[0]
    columns = {name: [getattr(batch, name) for batch in batches] for name in _ROW_COLUMNS}
    joined = {name: _join_columns(pieces) for name, pieces in columns.items()}
    return batches[0]._replace(**joined)


def _join_columns(pieces):
    import pandas as pd

    from .._simplex_array import stack_rows

    if pieces[0] is None:
        return None
    if hasattr(pieces[0], "iloc"):
        return pd.concat(pieces, ignore_index=True)
    return stack_rows(pieces) if pieces[0].ndim == 2 else np.concatenate(pieces)


_ALIKE = 256  # a monitor adds so many rows at a time: a multiple of them leaves it the same bits


class MixedTimes(Exception):
    """Blocks whose times are of several kinds: only all of them say what they are."""


class PredictionBatches:
    """The predictions in some files, as often as they are asked for.

    Attributes
    ----------
    names, labels : list of str
        The columns of the scores and of the labels.
    classes : ndarray of shape (n_classes,)
        In the order of the columns: a single column has the probability of the second.
    """

    def __init__(
        self, files: Sequence[str], options: Request, known_classes: AnyArray | None = None
    ) -> None:
        self.files, self.options, self.tables = files, options, Tables(options)
        roles = options.roles(self.tables.names(files[0], options.picked))
        self.names, self.labels = roles.scores, roles.labels
        self._without_label = False
        self.classes = self._find_classes(known_classes)
        self.names = in_class_order(self.names, self.classes)

    def batches(self, whole: bool = False) -> Iterator[PredictionBatch]:
        """Yield all rows, in batches of a multiple of 256 of them but for the last.

        With `whole` they come as one, in memory, whose times are what they are together.
        """
        self.tables.begin()
        if whole:
            yield join_batches([*self._read(whole)])
            return
        left: PredictionBatch | None = None
        for batch in self._read(whole):
            batch = batch if left is None else join_batches([left, batch])
            n = len(batch.labels) // _ALIKE * _ALIKE
            left = batch.take(slice(n, None)) if n else batch
            if n:
                yield batch.take(slice(n))
        if left is not None and len(left.labels):
            yield left

    def print_left_out(self) -> None:
        """Print which rows had holes, once all have been read."""
        if self._without_label and any(isinstance(label, str) for label in self.classes.tolist()):
            note(f"{AS_MISSING}.")
        self.tables.print_left_out()

    def _read(self, whole):
        from .._validation import check_votes

        kinds, dtypes = set[str](), set[Any]()
        for file in self.files:
            for table in self.tables.blocks(file, self.options.picked, whole):
                if self.options.drop_missing:
                    self._without_label |= table.columns[self.labels].isna().any(axis=None)
                (kept,) = self.tables.kept(table)
                if not kept.n_rows:
                    continue
                batch = self._read_batch(kept, kinds)
                dtypes.add(None if batch.time is None else batch.time.dtype)
                if len(dtypes) > 1 and not whole:
                    raise MixedTimes
                yield batch
        check_votes(frozenset(kinds))
        self.tables.check()

    def _read_batch(self, table: Block, kinds: set[str]) -> PredictionBatch:
        options = self.options
        proba: Any = scores_of(table, self.names, options)
        if options.soft_labels:
            votes = shares_of(table, self.labels)
            labels = votes.shares
            kinds |= votes.kinds
        elif options.prediction is not None:
            labels = right_of(table, options, self.names).to_numpy()
        else:
            codes = find_codes(table, options.label, self.classes)
            check_there(codes, proba, table)
            labels = self.classes[codes]
        if options.absent:  # the largest probability is that of the options that are there
            proba = np.asarray(proba)
        when = None if options.time is None else whole_column(table, options.time, "time")
        return PredictionBatch(labels, proba, time=when)

    def _find_classes(self, known):
        """Return the classes in the order of the columns; known ones are read from no file."""
        options = self.options
        made = options.soft_labels or options.prediction
        known_owner = None if known is None else str(known[-1])
        as_before = options.classes is None and options.positive in (None, known_owner)
        if known is not None and not made and as_before:
            return known  # without a look at the labels: a new table may lack a class
        order = find_class_order(self.files, len(self.names), options, self.labels)
        classes = order.owners
        if known is not None and classes.tolist() != known.tolist():
            own = ", ".join(map(str, known.tolist()))
            raise invalid_option(
                expected=f"the classes {plain(own)} of the state, in this order",
                got=f"{plain(', '.join(map(str, classes.tolist())))}",
                hint="Leave --classes and --positive out",
            )
        return classes
