"""The rows of a monitor, block by block: labels, probabilities and times."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._files.columns import whole_column
from .._show import plain
from .._typing import AnyArray, FloatArray
from ._pairs import check_known, codes_of
from ._printing import note
from ._request import Request
from ._rows import another_order, classes_of, likeliest, soft_classes
from ._tables import Tables, check_there, joined, right_of, scores_of, shares_of
from ._wording import AS_MISSING, Said, refuse

_ALIKE = 256  # a monitor adds so many rows at a time: a multiple of them leaves it the same bits
_JUDGED = 2**17  # first rows, by which the order of the columns is judged


class Watched(NamedTuple):
    """Some rows."""

    labels: AnyArray
    proba: FloatArray  # what canonical_proba made of the scores
    time: AnyArray | None


class MixedTimes(Exception):
    """Blocks whose times are of several kinds: only all of them say what they are."""


class Batches:
    """The rows of some files, as often as they are asked for.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        In the order of the columns: a single column has the probability of the second.
    """

    def __init__(self, files: Sequence[str], options: Request, known: AnyArray | None) -> None:
        self.files, self.options, self.tables = files, options, Tables(options)
        roles = options.roles(self.tables.names(files[0], options.picked))
        self.names, self.labels = roles.scores, roles.labels
        self._kinds: frozenset[str] = frozenset()  # of soft labels
        self._without_label = False
        self.classes = self._classes(known)

    def rows(self, whole: bool = False) -> Iterator[Watched]:
        """All rows, in batches of a multiple of 256 of them but for the last.

        With `whole` they come as one, in memory, whose times are what they are together.
        """
        self.tables.begin()
        batches = self._blocks(whole)
        if whole:
            batches = iter([_below([*batches])])
        left: Watched | None = None
        for batch in batches:
            now = batch if left is None else _below([left, batch])
            n = len(now.labels) // _ALIKE * _ALIKE
            if whole or not n:
                left = now
                continue
            left = _part(now, slice(n, None)) if n < len(now.labels) else None
            yield _part(now, slice(n))
        if left is not None:
            yield left

    def say_what_is_left_out(self) -> None:
        """Rows with holes, once all have been read."""
        if self._without_label and any(isinstance(label, str) for label in self.classes.tolist()):
            note(f"{AS_MISSING}.")
        self.tables.say_what_is_left_out()

    def _blocks(self, whole):
        from ..canonical import check_votes

        dtypes: set[Any] = set()
        plain_values = self.options.soft_labels or self.options.prediction
        how: dict[str, Any] = {"as_text": [] if plain_values else self.labels}
        how |= {"size": None} if whole or self.options.prediction else {}
        for file in self.files:
            for table in self.tables.blocks(file, self.options.picked, **how):
                if self.options.drop_missing:
                    self._without_label |= table.columns[self.labels].isna().any(axis=None)
                (kept,) = self.tables.kept(table)
                if not kept.n_rows:
                    continue
                batch = self._batch(kept)
                dtypes.add(None if batch.time is None else batch.time.dtype)
                if len(dtypes) > 1 and not whole:
                    raise MixedTimes
                yield batch
        check_votes(self._kinds, "monitor")
        self.tables.check()

    def _batch(self, table):
        options = self.options
        proba = scores_of(table, self.names, options, "monitor")
        labels = self._labels(table, proba)
        if options.absent:  # the largest probability is that of the options that are there
            proba = np.asarray(proba)
        when = None
        if options.time is not None:
            when = whole_column(table, options.time, "time").to_numpy()
        return Watched(labels, proba, when)

    def _labels(self, table, proba):
        """The labels of a block, or its shares."""
        options = self.options
        if options.soft_labels:
            soft = shares_of([table], self.labels, "monitor")
            self._kinds |= soft.kinds
            return soft.values
        if options.prediction is not None:
            return right_of([table], options, self.names, both=False).to_numpy()
        codes = codes_of(table, options.label, self.classes)
        check_known(table, options.label, codes, self.classes)
        check_there(codes, proba, table, "monitor")
        return self.classes[codes]

    def _classes(self, known):
        """The classes in the order of the columns; those of a state are read from no file."""
        options = self.options
        made = options.soft_labels or options.prediction
        if known is not None and not made and options.classes is None and options.positive is None:
            return known
        if made:
            return self._known(self._made_classes(), known)
        classes, flipped = classes_of(self.files, len(self.names), options, "monitor")
        return self._known(classes[::-1] if flipped else classes, known)

    def _made_classes(self):
        """Those of shares; wrong and right of predictions."""
        if not self.options.soft_labels:
            return np.arange(2)
        return soft_classes(self.options, self.labels, len(self.names))

    def _known(self, classes, known):
        """The classes, which have to be those of the state."""
        if known is not None and classes.tolist() != known.tolist():
            own = ", ".join(map(str, known.tolist()))
            refuse(
                f"the classes {plain(own)} of the state, in this order",
                f"{plain(', '.join(map(str, classes.tolist())))}",
                "Leave --classes and --positive out",
            )
        return classes


class Order:
    """Whether the columns fit other classes: the first 131,072 rows know."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._seen: list[Watched] | None = []
        self._left = _JUDGED

    @property
    def done(self) -> bool:
        """Whether it has been judged."""
        return self._seen is None

    def see(self, batch: Watched | None) -> Said | None:
        """What is to be said, once; None is the end of the rows."""
        if self._seen is None:
            return None
        if batch is not None:
            self._seen.append(_part(batch, slice(self._left)))
            self._left -= len(self._seen[-1].labels)
            if self._left:
                return None
        rows, self._seen = _below(self._seen), None
        about = self._batches.classes, len(self._batches.names), self._batches.options
        soft, labels = about[-1].soft_labels, rows.labels
        given = likeliest(labels, about[0]) if soft else labels
        return another_order(given, rows.proba, *about)


def _part(batch, rows):
    """Some rows; what they leave behind is not held."""
    when = None if batch.time is None else batch.time[rows].copy()
    return Watched(batch.labels[rows].copy(), batch.proba[rows].copy(), when)


def _below(batches: Sequence[Watched]) -> Watched:
    """Batches one below the other."""
    import pandas as pd

    from .._simplex import carries_log, log_proba, with_log

    if len(batches) == 1:
        return batches[0]
    proba = np.vstack([np.asarray(batch.proba) for batch in batches])
    if carries_log(batches[0].proba):
        proba = with_log(proba, np.vstack([log_proba(batch.proba) for batch in batches]))
    times = [pd.Series(batch.time) for batch in batches if batch.time is not None]
    labels = np.concatenate([batch.labels for batch in batches])
    return Watched(labels, proba, joined(times).to_numpy() if times else None)
