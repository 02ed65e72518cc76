"""The rows of two models side by side, block by block, as often as they are asked for."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._files.columns import Block, Coded, label_values, number_column, whole_column
from .._files.tables import check_columns
from .._show import plain, quoted
from .._typing import AnyArray, FloatArray, IntArray
from ._messages import invalid_option
from ._request import Request, check_different, split_columns
from ._rows import classes_of, in_class_order
from ._tables import Tables, check_there, checked_labels, right_of, scores_of, shares_of

_ROWS = 2**17  # of tables in memory at a time


class PairedModel(NamedTuple):
    """What was named as one model."""

    name: str
    file: str
    prob: str  # as --prob has it
    needs_label: bool
    columns: list[str]  # once the header has been read


class PairRows(NamedTuple):
    """A block of rows."""

    codes: Any  # of shape (n_rows,); shares while a block is read
    probas: list[FloatArray]  # of each model, of shape (n_rows, n_classes)
    weight: FloatArray | None
    groups: AnyArray | None = None  # the column of --cluster


def models_of(files: Sequence[str], options: Request) -> list[PairedModel]:
    """What was named, as two models."""
    options.check_named()
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
            got=f"{len(called)} of them",
            hint="Name both",
        )
    if not called:
        called = named if len(files) == 1 else _short(files)
    if called[0] == called[1]:
        raise invalid_option(
            expected="two different models",
            got=f"{quoted(called[0])} twice",
            hint="Name two columns or two files, or call them by --name",
        )
    places = zip(called, (*files, *files)[:2], (named * 2)[:2], (True, False), strict=True)
    return [PairedModel(*place, []) for place in places]


def _short(files):
    """Names of files without what both have in common."""
    stems = [os.path.basename(file).partition(".")[0] for file in files]
    return stems if stems[0] != stems[1] else files


class Pairs:
    """The rows of both models: those of one file, of two in one order, or matched by ``--id``.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        In the order of the columns.
    flipped : bool
        Whether a single column is the probability of the first of them.
    n_rows : int
        Once all blocks have been given.
    """

    def __init__(self, models: Sequence[PairedModel], options: Request) -> None:
        self.models, self.options, self.n_rows = models, options, 0
        self.one_file = models[0].file == models[1].file
        self.tables = Tables(options)
        self._tables: list[Block] | None = None
        self.labels: list[str] = []  # the columns of the labels
        if options.id is not None and not self.one_file:
            self._tables = self._matched()
            self.labels = options.label_columns(list(self._tables[0].columns))
        else:
            for model in models:  # what is wrong with it is said early
                pick = partial(self._picked, [model])
                present = self.tables.names(model.file, pick)
                check_columns(pick(present), present, model.file)
                self.labels = self.labels or options.label_columns(present)
        self._check_columns()
        self.classes, self.flipped = self._classes()

    def rows(self, advance: Callable[[float], Any]) -> Iterator[PairRows]:
        """All rows; `advance` is told how much has been read.

        Those of soft labels are weighted rows of one label each, in clusters.
        """
        from .._validation import check_votes

        self.n_rows = 0
        self.tables.begin()
        options = self.options
        differing = _Differing(options)
        kinds: frozenset[str] = frozenset()
        for tables in self._aligned():
            if options.second_label is not None:
                renamed = tables[1].columns.rename(columns={options.second_label: options.label})
                tables[1] = tables[1]._replace(columns=renamed)
            kept = self.tables.kept(*tables)
            n = kept[0].n_rows
            if self.options.soft_labels:
                soft = self._shares(kept, differing)
                kinds |= soft.kinds
                labels: Any = soft.values
            else:
                soft, labels = None, self._codes(kept, differing)
            if n and not differing.n_rows:
                weight, together = self.options.weight, self.options.group
                named = [in_class_order(model.columns, self.classes) for model in self.models]
                probas = [
                    scores_of(table, names, self.options)
                    for names, table in zip(named, kept, strict=True)
                ]
                if self.flipped:
                    probas = [np.asarray(proba)[:, ::-1] for proba in probas]
                if soft is None:
                    for proba, table in zip(probas, kept, strict=True):
                        check_there(labels, proba, table)
                block = PairRows(
                    labels,
                    probas,
                    None if weight is None else number_column(kept[0], weight),
                    None
                    if together is None
                    else whole_column(kept[0], together, "cluster").astype(str).to_numpy(),
                )
                if soft is None:
                    yield block
                else:
                    yield from self._weighted(block._replace(weight=soft.weighted(block.weight)))
            self.n_rows += n
            advance(min(table.share for table in tables))
        differing.check()  # when all rows are counted: files of other lengths are told first
        check_votes(kinds)
        self.tables.check()

    # -- tables -----------------------------------------------------------------------------------

    def _picked(self, models, present):
        """All columns that are read; of each model the names of its own are kept."""
        found: list[str] = []
        options = self.options
        for model in models:
            model.columns[:] = split_columns([model.prob], present)
            labels = options.label_columns(present)
            second = None if model.needs_label else options.second_label
            if second is not None:
                labels = [second]
            check_different(labels, model.columns)
            found += model.columns
            if second is not None or model.needs_label or {*labels} <= {*present}:
                found += labels
            if model.needs_label:
                found += filter(None, (options.weight, options.group, options.prediction))
        if options.id is not None and not self.one_file:
            found.append(options.id)
        return [*dict.fromkeys(found)]

    def _stream(self, models):
        whole = self.options.group is not None  # all rows say which names are one
        return self.tables.blocks(models[0].file, partial(self._picked, models), whole)

    def _aligned(self):
        """Tables of the same rows by both models."""
        if self._tables is not None:
            n = self._tables[0].n_rows
            for start in range(0, n, _ROWS):
                part = (table.only(slice(start, start + _ROWS)) for table in self._tables)
                yield [table._replace(share=min(1.0, (start + _ROWS) / n)) for table in part]
        elif self.one_file:
            for table in self._stream(self.models):
                yield [table, table]
        else:
            yield from _side_by_side([self._stream([model]) for model in self.models])

    def _matched(self):
        """Both tables in the order of the first; they are read whole."""
        tables = [self.tables.read(m.file, partial(self._picked, [m])) for m in self.models]
        name = self.options.id
        keys = [_keys(table, name) for table in tables]
        kinds = {each.dtype.kind for each in keys}
        if "i" in kinds and len(kinds) > 1:  # text such as "17" in one of the files
            keys = [each.astype(str) for each in keys]
        places = keys[1].get_indexer(keys[0])
        lost = np.flatnonzero(places < 0)
        if len(lost) or len(keys[0]) != len(keys[1]):
            file = self.models[0 if len(lost) else 1].file
            only = keys[0][lost] if len(lost) else keys[1].difference(keys[0], sort=False)
            raise invalid_option(
                expected=f"the same values of {quoted(name)} in both files",
                got=f"{len(only)} only in {plain(file)}, for instance {quoted(only[0])}",
                hint="Keep the rows that both have",
            )
        return [tables[0], tables[1].only(places)]

    # -- labels -----------------------------------------------------------------------------------

    def _check_columns(self):
        first, second = (model.columns for model in self.models)
        if len(first) != len(second):
            raise invalid_option(
                expected="as many columns for both models",
                got=f"{len(first)} and {len(second)}",
                hint="Name one column per class, or the positive class alone",
            )

    def _classes(self):
        """The classes, and whether a single column is the probability of the first of them."""
        options, n_columns = self.options, len(self.models[0].columns)
        file, shares = self.models[0].file, self.labels
        classes, flipped = classes_of(file, n_columns, options, shares)
        if max(n_columns, 2) != len(classes) and options.prediction is None:
            raise invalid_option(
                expected=f"one class for each of the {max(n_columns, 2)} columns",
                got=f"{len(classes)} classes",
                hint="Name all of them with --classes",
            )
        return classes, flipped

    def _shares(self, tables, differing):
        """The shares of a block."""
        found = shares_of(tables[:1], self.labels)
        if not self.one_file and {*self.labels} <= {*tables[1].columns}:
            second = shares_of(tables[1:], self.labels).values
            same = np.isclose(found.values, second, rtol=0, atol=1e-9)
            differing.see(tables, *(same.reshape(len(same), -1).all(axis=1), np.ones(len(same))))
        return found

    def _weighted(self, block):
        """A block of shares as weighted rows of one label, those of an item in one cluster."""
        from .._validation import soft_rows

        if block.weight is not None and not block.weight.any():
            return
        rows = soft_rows(block.codes, block.weight)
        items, probas = rows.items, [np.asarray(proba)[rows.items] for proba in block.probas]
        groups = items + self.n_rows if block.groups is None else block.groups[items]
        yield PairRows(rows.codes, probas, rows.weight, groups)

    def _codes(self, tables, differing):
        """The places of the labels among the classes."""
        label = self.options.label
        if self.options.prediction is not None:
            return right_of(tables[:1], self.options, self.models[0].columns).to_numpy()
        codes = codes_of(tables[0], label, self.classes)
        if not self.one_file and label in tables[1].columns:
            differing.see(tables, codes, codes_of(tables[1], label, self.classes))
        if not differing.n_rows:
            check_known(tables[0], label, codes, self.classes)
        return codes


class _Differing:
    """Rows whose labels are not the same in both files."""

    def __init__(self, options: Request) -> None:
        self.options, self.n_rows, self._first = options, 0, ""

    def see(self, tables: Sequence[Block], first: IntArray, second: IntArray) -> None:
        """Compare the labels of a block."""
        places = np.flatnonzero(first != second)
        if len(places) and not self.n_rows:
            label, place = self.options.label_columns(list(tables[0].columns))[0], places[0]
            one, two = (quoted(table.columns[label].iloc[place]) for table in tables)
            self._first = f"{one} and {two} in row {tables[0].row(place)}"
        self.n_rows += len(places)

    def check(self) -> None:
        """Refuse where there are some."""
        if self.n_rows:
            cure = "Check the files" if self.options.id else "Match the rows with --id COLUMN"
            got = f"{self._first} (of {self.n_rows} such rows)"
            raise invalid_option(expected="the same labels in both files", got=got, hint=cure)


def codes_of(table: Block, name: str, classes: AnyArray) -> IntArray:
    """The places of the labels among the classes; -1 for others."""
    names = any(isinstance(c, str) for c in classes.tolist())
    labels = label_values(table, name, names)
    if not isinstance(labels, Coded):
        labels = Coded(*np.unique(labels, return_inverse=True))
    known = {label: place for place, label in enumerate(classes.tolist())}
    found = [known.get(label, -1) for label in labels.values.tolist()]
    return np.array(found, dtype=np.intp)[labels.codes]


def check_known(table: Block, name: str, codes: IntArray, classes: AnyArray) -> None:
    """Refuse for labels of which `codes_of` knows no class."""
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        checked_labels(table, name)  # names missing ones
        value = quoted(table.columns[name].iloc[unknown[0]])
        known = plain(", ".join(map(str, classes.tolist())))
        raise invalid_option(
            expected=f"labels among {known} in column {quoted(name)} of {plain(table.file)}",
            got=f"{value} in row {table.row(unknown[0])}",
            hint="Name all of them with --classes, or drop those rows",
        )


def _keys(table, name):
    """The values that tell rows apart, as an index."""
    import pandas as pd

    keys = pd.Index(table.columns[name])
    if keys.dtype.kind == "f" and (keys == keys.round()).all():
        keys = keys.astype("int64")
    twice = keys.duplicated()
    if twice.any() or keys.hasnans:
        value = keys[int((twice | keys.isna()).argmax())]
        raise invalid_option(
            expected=f"each value of {quoted(name)} once in {plain(table.file)}",
            got=f"{quoted(value)} several times or none",
            hint="Choose another --id",
        )
    return keys


def _side_by_side(streams):
    """Blocks of two files, cut to the same rows; refuses it where one has more."""
    tables = [next(stream, None) for stream in streams]
    counts = [0, 0]
    while None not in tables:
        n = min(table.n_rows for table in tables)
        yield [table.only(slice(n)) for table in tables]
        for number, table in enumerate(tables):
            counts[number] += n
            left = table.n_rows > n
            tables[number] = table.only(slice(n, None)) if left else next(streams[number], None)
    for number, table in enumerate(tables):
        if table is not None:
            rest = sum(block.n_rows for block in streams[number])
            counts[number] += table.n_rows + rest
    if counts[0] != counts[1]:
        raise invalid_option(
            expected="the same rows in both files",
            got=f"{counts[0]} and {counts[1]}",
            hint="Match them with --id COLUMN",
        )
