"""The rows of two models side by side, in blocks, which can be read repeatedly."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._files.columns import TableBlock
from .._files.tables import check_columns, load_table
from .._show import make_printable, quote_text
from ._classes import find_class_order, sort_by_class_order_if_class_names
from ._messages import invalid_option
from ._prediction_batches import (
    PredictionBatch,
    expand_soft_labels,
    read_weight_and_cluster_or_nones,
)
from ._request import (
    Request,
    check_label_and_prob_columns,
    parse_column_names_expanding_lists,
)
from ._tables import (
    TableReader,
    check_known,
    check_labels_offered_by_rows,
    check_right_and_wrong_present,
    encode_labels_or_minus_one,
    get_correctness_as_int_series,
    get_scores,
    read_label_votes,
)

# Rows of the tables that are in memory at a time.
_BATCH_ROWS = 2**17


class PairedModel(NamedTuple):
    """What was named as one model."""

    name: str
    file: str
    prob: str  # as --prob has it
    needs_label: bool
    columns: list[str]  # once the header has been read


def make_paired_models(files: Sequence[str], options: Request) -> list[PairedModel]:
    """Return what was named, as two models."""
    options.check_required_columns_named()
    named = options.prob
    if len(files) > 2 or len(named) > 2 or (len(files) == 1 and len(named) != 2):
        raise invalid_option(
            expected="two files, or one file and --prob twice",
            got=f"files: {len(files)}, --prob: {len(named)}",
            hint="A file named twice is one; name the columns of one model in one --prob a,b,c",
        )
    called = options.name or []
    if len(called) not in (0, 2):
        raise invalid_option(
            expected="--name twice, once for each model",
            got=f"{len(called)} names",
            hint="Name both",
        )
    if not called:
        called = named if len(files) == 1 else _shorten_names(files)
    if called[0] == called[1]:
        raise invalid_option(
            expected="two different models",
            got=f"{quote_text(called[0])} twice",
            hint="Name two columns or two files, or call them by --name",
        )
    places = zip(
        called,
        (*files, *files)[:2],
        (named * 2)[:2],
        (True, False),
        strict=True,
    )
    return [PairedModel(*place, []) for place in places]


def _shorten_names(files):
    """Return names of files without what both have in common."""
    stems = [os.path.basename(file).partition(".")[0] for file in files]
    return stems if stems[0] != stems[1] else files


class PairedPredictionBatches:
    """The rows of both models: those of one file, of two in one order, or matched by ``--id``.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        In the order of the columns.
    is_flipped : bool
        Whether a single column is the probability of the first of them.
    n_rows : int
        Once all blocks have been given.
    """

    def __init__(self, models: Sequence[PairedModel], options: Request) -> None:
        self.models = models
        self.options = options
        self.n_rows = 0
        self.one_file = models[0].file == models[1].file
        self.tables = TableReader(options)
        self._tables = None
        self.labels = []  # the columns of the labels
        if options.id is not None and not self.one_file:
            self._tables = self._load_id_matched_tables()
            self.labels = options.get_label_columns(list(self._tables[0].columns))
        else:
            for model in models:  # its errors are raised early
                pick = partial(self._store_and_pick_columns, [model])
                present = self.tables.list_all_columns(model.file, pick)
                check_columns(pick(present), present, model.file)
                self.labels = self.labels or options.get_label_columns(present)
        self._check_same_column_count()
        order = self._find_class_order_in_first_file()
        self.classes = order.classes
        self.is_flipped = order.is_flipped

    def iter_batches(
        self, advance: Callable[[float], Any]
    ) -> Iterator[PredictionBatch]:
        """Yield all rows, whose scores are those of both models, and whose labels are codes.

        Soft labels become weighted rows of one label each, in clusters. `advance` is
        called with the share that has been read.
        """
        from .._validation import check_vote_kinds

        self.n_rows = 0
        self.tables.reset_counts()
        options = self.options
        differing = _LabelDifferences(options)
        kinds: frozenset[str] = frozenset()
        for tables in self._iter_aligned_tables():
            if options.second_label is not None:
                renamed = tables[1].columns.rename(
                    columns={options.second_label: options.label}
                )
                tables[1] = tables[1]._replace(columns=renamed)
            kept = self.tables.drop_incomplete_rows_if_asked(*tables)
            votes = None
            if options.soft_labels:
                label_votes = self._read_first_votes_and_compare(kept, differing)
                kinds |= label_votes.kinds
                labels = label_votes.shares
                votes = label_votes.n_votes_by_row
            else:
                labels = self._read_first_codes_and_compare(kept, differing)
            if kept[0].n_rows and not differing.n_rows:
                batch = self._make_prediction_batch(kept, labels, votes)
                if options.soft_labels:
                    batch = batch._replace(weight=batch.get_weights_with_votes())
                    if batch.weight is not None and not batch.weight.any():
                        batch = None
                    else:
                        batch = expand_soft_labels(batch, self.n_rows)
                if batch is not None:
                    yield batch
            self.n_rows += kept[0].n_rows
            advance(min(table.read_fraction for table in tables))
        # Only if all rows are counted: files of other lengths are reported first.
        differing.raise_if_different()
        check_vote_kinds(kinds)
        self.tables.check_rows_kept()

    def _make_prediction_batch(self, tables, labels, votes):
        options = self.options
        scores = []
        for model, table in zip(self.models, tables, strict=True):
            proba = get_scores(
                table,
                sort_by_class_order_if_class_names(model.columns, self.classes),
                options,
            )
            if self.is_flipped:
                proba = np.asarray(proba)[:, ::-1]
            if not options.soft_labels:
                check_labels_offered_by_rows(labels, proba, table)
            scores.append(proba)
        beside = read_weight_and_cluster_or_nones(tables[0], options, "cluster")
        if options.group is not None:
            beside["cluster"] = beside["cluster"].astype(str).to_numpy()
        return PredictionBatch(labels, scores, votes=votes, **beside)

    # -- tables -----------------------------------------------------------------------------------

    def _store_and_pick_columns(self, models, present):
        """Return all columns that are read; of each model the names of its own are kept."""
        columns = []
        options = self.options
        for model in models:
            model.columns[:] = parse_column_names_expanding_lists([model.prob], present)
            labels = options.get_label_columns(present)
            second = None if model.needs_label else options.second_label
            if second is not None:
                labels = [second]
            check_label_and_prob_columns(labels, model.columns)
            columns += model.columns
            if second is not None or model.needs_label or {*labels} <= {*present}:
                columns += labels
            if model.needs_label:
                columns += filter(
                    None, (options.weight, options.group, options.prediction)
                )
        if options.id is not None and not self.one_file:
            columns.append(options.id)
        return [*dict.fromkeys(columns)]

    def _iter_model_tables(self, models):
        whole = self.options.group is not None  # only all rows show which names are one
        return self.tables.iter_blocks_with_all_rows(
            models[0].file, partial(self._store_and_pick_columns, models), whole
        )

    def _iter_aligned_tables(self):
        """Yield tables of the same rows by both models."""
        if self._tables is not None:
            n = self._tables[0].n_rows
            for start in range(0, n, _BATCH_ROWS):
                rows = slice(start, start + _BATCH_ROWS)
                selected_tables = (table.select_rows(rows) for table in self._tables)
                yield [
                    table._replace(read_fraction=min(1.0, (start + _BATCH_ROWS) / n))
                    for table in selected_tables
                ]
        elif self.one_file:
            for table in self._iter_model_tables(self.models):
                yield [table, table]
        else:
            yield from _iter_aligned_blocks(
                [self._iter_model_tables([model]) for model in self.models]
            )

    def _load_id_matched_tables(self):
        """Return both tables in the order of the first; they are read whole."""
        tables = [
            load_table(
                model.file,
                partial(self._store_and_pick_columns, [model]),
                **self.options.csv_options,
            )
            for model in self.models
        ]
        name = self.options.id
        keys = [_make_unique_key_index(table, name) for table in tables]
        kinds = {key_column.dtype.kind for key_column in keys}
        if "i" in kinds and len(kinds) > 1:  # text such as "17" in one of the files
            keys = [key_column.astype(str) for key_column in keys]
        places = keys[1].get_indexer(keys[0])
        lost = np.flatnonzero(places < 0)
        if len(lost) or len(keys[0]) != len(keys[1]):
            file = self.models[0 if len(lost) else 1].file
            only = (
                keys[0][lost] if len(lost) else keys[1].difference(keys[0], sort=False)
            )
            raise invalid_option(
                expected=f"the same values of {quote_text(name)} in both files",
                got=f"{len(only)} only in {make_printable(file)}, for instance "
                f"{quote_text(only[0])}",
                hint="Keep the rows that both have",
            )
        return [tables[0], tables[1].select_rows(places)]

    # -- labels -----------------------------------------------------------------------------------

    def _check_same_column_count(self):
        first, second = (model.columns for model in self.models)
        if len(first) != len(second):
            raise invalid_option(
                expected="as many columns for both models",
                got=f"{len(first)} and {len(second)}",
                hint="Name one column per class, or the positive class alone",
            )

    def _find_class_order_in_first_file(self):
        """Return the classes of the first file, one for each column."""
        options = self.options
        n_columns = len(self.models[0].columns)
        order = find_class_order([self.models[0].file], n_columns, options, self.labels)
        if max(n_columns, 2) != len(order.classes) and options.prediction is None:
            raise invalid_option(
                expected=f"one class for each of the {max(n_columns, 2)} columns",
                got=f"{len(order.classes)} classes",
                hint="Name all of them with --classes",
            )
        return order

    def _read_first_votes_and_compare(self, tables, differing):
        """Return the shares of a block."""
        first_votes = read_label_votes(tables[0], self.labels)
        if not self.one_file and {*self.labels} <= {*tables[1].columns}:
            second = read_label_votes(tables[1], self.labels).shares
            same = np.isclose(first_votes.shares, second, rtol=0, atol=1e-9)
            differing.add_label_differences_in_block(
                tables, same.reshape(len(same), -1).all(axis=1), True
            )
        return first_votes

    def _read_first_codes_and_compare(self, tables, differing):
        """Return the places of the labels among the classes."""
        label = self.options.label
        if self.options.prediction is not None:
            right = get_correctness_as_int_series(
                tables[0], self.options, self.models[0].columns
            )
            check_right_and_wrong_present(right, tables[0], self.options)
            return right.to_numpy()
        codes = encode_labels_or_minus_one(tables[0], label, self.classes)
        if not self.one_file and label in tables[1].columns:
            differing.add_label_differences_in_block(
                tables,
                codes,
                encode_labels_or_minus_one(tables[1], label, self.classes),
            )
        if not differing.n_rows:
            check_known(tables[0], label, codes, self.classes)
        return codes


class _LabelDifferences:
    """Rows whose labels are not the same in both files."""

    def __init__(self, options: Request) -> None:
        self.options = options
        self.n_rows = 0
        self._first = ""

    def add_label_differences_in_block(
        self, tables: Sequence[TableBlock], first: Any, second: Any
    ) -> None:
        """Compare the labels of a block."""
        places = np.flatnonzero(first != second)
        if len(places) and not self.n_rows:
            label = self.options.get_label_columns(list(tables[0].columns))[0]
            place = places[0]
            first_label, second_label = (
                quote_text(table.columns[label].iloc[place]) for table in tables
            )
            self._first = f"{first_label} and {second_label} in row {tables[0].get_file_row(place)}"
        self.n_rows += len(places)

    def raise_if_different(self) -> None:
        """Raise an error if there are such rows."""
        if self.n_rows:
            hint = (
                "Check the files"
                if self.options.id
                else "Match the rows with --id COLUMN"
            )
            raise invalid_option(
                expected="the same labels in both files",
                got=f"{self._first} (of {self.n_rows} such rows)",
                hint=hint,
            )


def _make_unique_key_index(table, name):
    """Return the values that identify the rows, as an index."""
    import pandas as pd

    keys = pd.Index(table.columns[name])
    if keys.dtype.kind == "f" and (keys == keys.round()).all():
        keys = keys.astype("int64")
    twice = keys.duplicated()
    if twice.any() or keys.hasnans:
        value = keys[int((twice | keys.isna()).argmax())]
        raise invalid_option(
            sentence=(
                f"The values of {quote_text(name)} in {make_printable(table.file)} "
                f"do not identify the rows: "
                f"{quote_text(value)} occurs several times or is missing"
            ),
            hint="Choose another --id",
        )
    return keys


def _iter_aligned_blocks(streams):
    """Yield blocks of two files, cut to the same rows; reject files of which one has more."""
    tables = [next(stream, None) for stream in streams]
    counts = [0, 0]
    while None not in tables:
        n = min(table.n_rows for table in tables)
        yield [table.select_rows(slice(n)) for table in tables]
        for number, table in enumerate(tables):
            counts[number] += n
            left = table.n_rows > n
            if left:
                tables[number] = table.select_rows(slice(n, None))
            else:
                tables[number] = next(streams[number], None)
    for number, table in enumerate(tables):
        if table is not None:
            rest = sum(block.n_rows for block in streams[number])
            counts[number] += table.n_rows + rest
    if counts[0] != counts[1]:
        raise invalid_option(
            expected="the same rows in both files",
            got=f"{counts[0]} and {counts[1]} rows",
            hint="Match them with --id COLUMN",
        )
