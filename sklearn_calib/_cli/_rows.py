"""All rows with labels in memory, and the classes that their columns stand for."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._files.columns import number_column, whole_column
from .._show import bare
from ..exceptions import add_error_context
from ._classes import (
    check_classes,
    check_order,
    in_class_order,
    likeliest,
    named_classes,
    order_classes,
    soft_classes,
)
from ._messages import AS_MISSING
from ._prediction_batches import PredictionBatch, join_batches
from ._printing import note
from ._request import Request, Roles
from ._tables import (
    Tables,
    check_both,
    checked_labels,
    probability,
    right_of,
    shares_of,
    with_orders,
)


def called(files: Sequence[str]) -> str:
    """What an error message calls some files."""
    return bare(files[0]) if len(files) == 1 else f"{len(files)} files"


def read_columns(files: Sequence[str], options: Request) -> PredictionBatch:
    """Return the columns that the options name, with no classes yet; refuse missing values.

    Those of ``--by`` and ``--features`` may have them. Without ``--label`` the labels are None.
    """
    from .._validation import check_votes
    from ..summary import folder_values

    tables: list[Any] = []
    batches: list[PredictionBatch] = []
    kinds: frozenset[str] = frozenset()
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
        more = {
            field: with_orders(table._replace(columns=table.columns[names]))
            for field, names in (("groups", roles[-1].groups), ("features", roles[-1].features))
            if names
        }
        table = table._replace(columns=table.columns[roles[0].measured])
        if options.drop_missing and _labels_are_text(table, roles[-1].labels):
            note(f"{AS_MISSING}.")
        (kept,) = reading.kept(table)
        chosen = slice(None) if kept.rows is None else kept.rows
        more = {field: each.iloc[chosen].reset_index(drop=True) for field, each in more.items()}
        tables.append(kept)
        names = {"names": roles[0].scores, "label_names": roles[-1].labels}
        batches.append(PredictionBatch(None, None, **names, **more))
    reading.check()
    reading.print_left_out()
    for number, table in enumerate(tables):
        batches[number], more_kinds = _read_table(table, batches[number], options)
        kinds |= more_kinds
    rows = join_batches(batches)
    if options.prediction is not None:
        check_both(rows.labels, tables[0], options)
    with add_error_context(source=called(files)):
        check_votes(kinds)
    return rows._replace(given=rows.scores)


def _read_table(table, batch, options):
    """Return a batch with labels and scores, and the kinds of votes that it has."""
    scores = np.column_stack([probability(table, name, options) for name in batch.names])
    weight = None if options.weight is None else number_column(table, options.weight)
    together = None if options.group is None else whole_column(table, options.group, "group")
    batch = batch._replace(scores=scores, weight=weight, together=together)
    if options.soft_labels:
        votes = shares_of(table, batch.label_names)
        return batch._replace(labels=votes.shares, votes=votes.number), votes.kinds
    labels = None
    if options.prediction is not None:
        labels = right_of(table, options, batch.names, both=False)
    elif batch.label_names:
        labels = checked_labels(table, options.label)
    return batch._replace(labels=labels), frozenset()


def _labels_are_text(table, names):
    """Return whether labels are missing beside text, so that one may be called "None"."""
    columns = [table.columns[name] for name in names[:1]]
    return any(column.dtype.kind not in "fiub" and column.isna().any() for column in columns)


def read_rows(files: Sequence[str], options: Request) -> PredictionBatch:
    """Return the rows of some files, with the classes that their columns stand for.

    A single column is the probability of ``classes[1]``. Columns that fit other classes are
    refused, unless ``--allow order`` was given.
    """
    from .._validation import read_labels, read_proba

    absent = options.absent
    rows = read_columns(files, options)
    n_columns = len(rows.names)
    if options.soft_labels:
        with add_error_context(source=called(files)):
            return _read_soft(rows, options)
    named, positive = named_classes(options, rows.labels, n_columns)
    with add_error_context(source=called(files)):
        classes, codes = read_labels(rows.labels, classes=named)
        check_classes(classes, n_columns, options)
        labels = classes[codes]
        rows = _match_columns(rows, classes)
        scores, classes = rows.scores, order_classes(classes, positive, n_columns).owners
        if options.kind == "logits":
            scores = read_proba(scores, kind="logits", absent=absent)
        elif absent:
            scores = read_proba(scores, tolerance=options.sum_tolerance, absent=absent)
        check_order(labels, scores, classes, n_columns, options)
        if options.tolerance is not None:
            scores = read_proba(scores, tolerance=options.tolerance)
    return rows._replace(labels=labels, scores=scores, classes=classes, positive=positive)


def _match_columns(rows, classes):
    """Return rows with their columns in the order of the classes that these are named after."""
    from .._validation import match_columns

    names = [*rows.names]
    scores = match_columns(rows.scores, names, classes)
    given = match_columns(rows.given, names, classes)
    return rows._replace(scores=scores, given=given, names=in_class_order(names, classes))


def _read_soft(rows, options):
    """Return rows whose labels are shares of the class 1, or of one column per class."""
    from .._validation import read_proba

    scores = rows.scores
    if options.kind == "logits":
        scores = read_proba(scores, kind="logits")
    elif options.tolerance is not None:
        scores = read_proba(scores, tolerance=options.tolerance)
    classes = soft_classes(options, rows.label_names, len(rows.names))
    rows = rows._replace(scores=scores, weight=rows.weigh_votes(), classes=classes)
    return check_soft_order(_match_columns(rows, classes), options)


def check_soft_order(rows: PredictionBatch, options: Request) -> PredictionBatch:
    """Return rows of soft labels; refuse them if another order of the columns fits far better."""
    labels = likeliest(rows.labels, rows.classes)
    check_order(labels, rows.scores, rows.classes, len(rows.names), options)
    return rows


def expanded(rows: PredictionBatch) -> PredictionBatch:
    """Return soft labels as weighted rows of one label each, which belong together."""
    from .._validation import soft_rows

    soft = soft_rows(rows.labels, rows.weight, rows.classes, n_rows=len(rows.scores))
    together = np.arange(len(rows.labels)) if rows.together is None else rows.together
    scores, labels, weight, classes = soft.expanded(rows.scores)
    return rows._replace(
        labels=labels,
        scores=scores,
        weight=weight,
        classes=classes,
        together=together[soft.items],
    )
