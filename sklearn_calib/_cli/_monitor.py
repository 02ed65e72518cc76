"""The command ``monitor``: watch the calibration of a model, a table of new rows at a time."""

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._files.checksum import ENTRY, checksum
from .._files.columns import NO_ROWS, whole_column
from .._files.opened import json_text, opened
from .._files.tables import table_blocks, weigh_more
from .._files.whole import held
from .._show import plain, quoted
from .._typing import AnyArray, FloatArray
from ..exceptions import CalibrationWarning, InvalidInputError
from ._codes import DONE, FOUND
from ._messages import AS_MISSING, WITHOUT_LABEL, Said, format_sentence, invalid_option
from ._options import examples, number_that, share
from ._pairs import check_known, codes_of
from ._printing import Output, check_writable, note, unwritable_output, write_text
from ._remote import local_files
from ._request import Request
from ._rows import another_order, called, classes_of, in_class_order, likeliest
from ._tables import Tables, check_there, joined, right_of, scores_of, shares_of

if TYPE_CHECKING:
    from ..monitoring import CalibrationMonitor

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

    def __init__(
        self, files: Sequence[str], options: Request, state: "CalibrationMonitor | None"
    ) -> None:
        self.files, self.options, self.tables = files, options, Tables(options)
        roles = options.roles(self.tables.names(files[0], options.picked))
        self.names, self.labels = roles.scores, roles.labels
        self._kinds: frozenset[str] = frozenset()  # of soft labels
        self._without_label = False
        self.classes = self._classes(None if state is None else state.classes_)
        self.names = in_class_order(self.names, self.classes)

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
        from .._validation import check_votes

        dtypes: set[Any] = set()
        for file in self.files:
            for table in self.tables.blocks(file, self.options.picked, whole):
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
        check_votes(self._kinds)
        self.tables.check()

    def _batch(self, table):
        options = self.options
        proba = scores_of(table, self.names, options)
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
            soft = shares_of([table], self.labels)
            self._kinds |= soft.kinds
            return soft.values
        if options.prediction is not None:
            return right_of([table], options, self.names, both=False).to_numpy()
        codes = codes_of(table, options.label, self.classes)
        check_known(table, options.label, codes, self.classes)
        check_there(codes, proba, table)
        return self.classes[codes]

    def _classes(self, known):
        """The classes in the order of the columns; those of a state are read from no file."""
        options = self.options
        made = options.soft_labels or options.prediction
        known_owner = None if known is None else str(known[-1])
        as_before = options.classes is None and options.positive in (None, known_owner)
        if known is not None and not made and as_before:
            return known  # without a look at the labels: a new table may lack a class
        n_columns = len(self.names)
        classes, flipped = classes_of(self.files, n_columns, options, self.labels)
        classes = classes[::-1] if flipped else classes
        if known is not None and classes.tolist() != known.tolist():
            own = ", ".join(map(str, known.tolist()))
            raise invalid_option(
                expected=f"the classes {plain(own)} of the state, in this order",
                got=f"{plain(', '.join(map(str, classes.tolist())))}",
                hint="Leave --classes and --positive out",
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

    from .._simplex_array import stack_rows

    if len(batches) == 1:
        return batches[0]
    proba = stack_rows([batch.proba for batch in batches])
    times = [pd.Series(batch.time) for batch in batches if batch.time is not None]
    labels = np.concatenate([batch.labels for batch in batches])
    return Watched(labels, proba, joined(times).to_numpy() if times else None)


_MOST_CHECKSUMS = 400  # of files, which a state remembers
_MUCH = 2**23  # bytes of tables in any order, of which a word is said
EXAMPLES = (
    "sklearn-calib monitor week.csv --label outcome --prob p --state state.json",
    "sklearn-calib monitor today.csv --label outcome --prob p --time day --state state.json "
    "--quiet",
    "sklearn-calib monitor year.csv --label outcome --prob p --time day --alarm test",
)


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "monitor",
        help="watch the calibration of a model, one table of new rows at a time",
        description="Add the rows of a table, whose labels have arrived, to those of "
        "earlier runs, and print one line: whether the probabilities are still "
        "calibrated. Ends with exit code 3 after an alarm, for use with cron. It "
        "can run as often as you like; while the probabilities are calibrated, a "
        "false alarm comes after --run-length rows on average, or later.",
        epilog=examples(*EXAMPLES),
    )
    parser.add_files()
    columns = parser.add_argument_group("columns")
    columns.add_label()
    columns.add_scores()
    columns.add_scale(logits=True)
    columns.add_soft_labels(". Each row counts once, whatever its number of annotators")
    columns.add_prediction()
    columns.add_argument(
        "--time",
        metavar="COLUMN",
        help="numbers, dates, or text such as 2026-03-01T12:00, by which the rows are "
        "sorted; rows that are not later than those of the state are an error "
        "(default: the rows are in order and new). If labels arrive late, it is "
        "the time of the label. A table that is not sorted by it is held in memory",
    )
    order = "take the columns as they are, although they fit other classes (default: an "
    order += "error in the first table, a message in later ones)"
    repeated = "without --time, also read a file with the content of an earlier one"
    parser.add_reading(order=order, repeated=repeated)
    work = parser.add_argument_group("work")
    work.add_argument(
        "--alarm",
        choices=("detector", "test"),
        help='find changes ("detector"), starting again after each alarm, or test '
        'whether the probabilities were calibrated all along ("test") (default: '
        "detector)",
    )
    work.add_argument(
        "--run-length",
        type=number_that("a number above 1", lambda rows: 1 < rows <= 1e12),
        metavar="N",
        help="while the probabilities are calibrated, the detector raises a false alarm after N "
        "rows on average, or later (default: 10000)",
    )
    work.add_argument(
        "--alpha",
        type=share,
        metavar="A",
        help="while the probabilities are calibrated, the test ever raises a false "
        "alarm with probability at most A (default: 0.05)",
    )
    work.add_argument(
        "--classwise",
        action="store_true",
        default=None,
        help="with more than two classes, watch each one against the others (default: "
        "the largest probability)",
    )
    _add_results(parser)
    parser.set_defaults(run=monitor, words=WITHOUT_LABEL, modules=("pandas",))


def _add_results(parser: Any) -> None:
    results = parser.add_argument_group("results")
    results.add_argument(
        "--state",
        metavar="FILE",
        help="the state of the monitor, which is read and replaced; a new file starts "
        "a new monitor (default: only the rows of this call)",
    )
    results.add_argument(
        "--wait",
        type=number_that("a number of seconds", lambda seconds: 0 <= seconds < 1e9),
        default=60.0,
        metavar="SECONDS",
        help="how long to wait while another process changes the state (default: 60)",
    )
    results.add_argument("--quiet", action="store_true", help="print nothing without an alarm")


def monitor(options: Request) -> int:
    """Add rows to a monitor, print its line and write its state; returns the exit code."""
    options.check_named()
    options.check_of_logits()
    options.check_confidence()
    with local_files(options.files, options.allow_remote, copied=True) as files:
        if options.state is not None:
            _check_state(options.state, [*files, *options.files])
        known = _read_state(options)  # what is wrong with it is said before the table is read
        files = [file for file in files if _has_rows(file, options)]
        if not files:
            return DONE
        batches = Batches(files, options, known)
        with _alone(options):
            now = _read_state(options, again=True)
            if _labels_of(now) != _labels_of(known):  # another process has been there
                batches = Batches(files, options, now)
            checksums = _read_checksums(files, options)
            found = _updated(batches, options)
            batches.say_what_is_left_out()
            if options.state is not None:
                state = found.state_dict()
                if checksums:
                    state["files"] = checksums
                    state[ENTRY] = checksum(state)
                text = json.dumps(state, allow_nan=False)
                write_text(f"{text}\n", options.state, "--state")
    output = Output()
    if found.alarm_ or not options.quiet:
        output.print(plain(f"{called(options.files)}: {found}", None))
    return output.finish({}, FOUND if found.alarm_ else DONE)


def _has_rows(file, options):
    """Return whether a file has rows; say so if it has none, as on a day without any."""
    try:
        next(table_blocks(file, options.picked, **options.csv))
    except InvalidInputError as error:
        if error.hint != NO_ROWS:
            raise
        if not options.quiet:
            note(f"{called([file])} has no rows: there is nothing to add")
        return False
    return True


def _read_checksums(files, options):
    """Return those that the state remembers, and those of `files`; refuse one that comes again.

    With ``--time`` rows that come again are refused by their times.
    """
    known = []
    if options.state is not None and os.path.exists(options.state):
        known = json.loads(json_text(options.state)).get("files", [])
    for file in files if options.time is None else ():
        digest = sha256()
        with opened(file) as stream:
            while piece := stream.read(2**20):
                digest.update(piece)
        found = digest.hexdigest()[:16]
        if found in known and not options.repeated:
            raise invalid_option(
                expected="files that were not read before",
                got=f"{called([file])}, which holds the same as one of them",
                hint=(
                    "Name a file of new rows, or add --allow repeated if the same rows came again"
                ),
            )
        known.append(found)
    return known[-_MOST_CHECKSUMS:]


def _check_state(state, files):
    """Refuse a place that cannot hold a state, before anything waits for it."""
    check_writable(state, files, "--state")
    if os.path.exists(state) and not os.path.isfile(state):
        raise unwritable_output(state, "a device or a pipe, which cannot be read back", "--state")


@contextmanager
def _alone(options: Request) -> Iterator[None]:
    """No other process reads the state to change it meanwhile."""
    if options.state is None:
        yield
        return
    name = quoted(options.state, 200)
    try:
        with held(options.state, options.wait) as locked:
            if not locked:
                note(f"the folder of {name} knows no locks: run one monitor of it at a time")
            yield
    except TimeoutError:
        raise invalid_option(
            expected=f"the state {name} to be free",
            got=f"another process that held it for {options.wait:g} seconds",
            hint=(
                "The file is as that process leaves it, without these rows: run again, "
                "or give --wait more seconds"
            ),
        ) from None
    except OSError as error:
        raise unwritable_output(options.state, error.strerror or error, "--state") from error


def _settings(options):
    """What was said of the monitor; the rest is by default."""
    given = {
        "alarm": options.alarm,
        "average_run_length": options.run_length,
        "alpha": options.alpha,
        "multiclass": None if options.classwise is None else "classwise",
    }
    return {name: value for name, value in given.items() if value is not None}


def _read_state(options: Request, *, again: bool = False) -> "CalibrationMonitor | None":
    """The monitor of the state; None where a new one begins. What was said is not said `again`."""
    from ..monitoring import CalibrationMonitor

    if options.state is None or not os.path.exists(options.state):
        return None
    name = quoted(options.state, 200)
    try:
        content = json.loads(json_text(options.state))
    except (OSError, ValueError) as error:
        said = plain(getattr(error, "strerror", None) or error, 100)
        raise invalid_option(
            expected=f"the state of a monitor in {name}",
            got=f"a file that cannot be read ({said})",
            hint="Take another file, or remove it to begin anew",
        ) from error
    try:
        with warnings.catch_warnings():
            if again:
                warnings.simplefilter("ignore", CalibrationWarning)
            found = CalibrationMonitor.from_state_dict(content)
    except InvalidInputError as error:
        error.set_fields(source=name, remark="The file is as it was.")
        raise
    for setting, value in _settings(options).items():
        if (own := getattr(found, setting)) != value:
            said = setting.replace("average_run_length", "run length")
            raise invalid_option(
                expected=f"the {said} {own} of the monitor in {name}",
                got=f"{value}",
                hint="Leave the option out, or take another --state",
            )
    return found


def _labels_of(known):
    return None if known is None else known.classes_.tolist()


def _updated(batches: Batches, options: Request) -> "CalibrationMonitor":
    """The monitor of the state with all rows, or a new one; nothing is written.

    Rows that are not in the order of their times are read again, all at once.
    """
    order = Order(batches)
    try:
        return _added(batches.rows(), order, batches, options)
    except (MixedTimes, _Backwards):
        pass
    if weigh_more(batches.files, _MUCH):
        note(
            f"the rows are not in the order of {quoted(options.time)}: to be put in it, all of "
            "them are held in memory. Give a sorted table, or a day at a time, where they are too "
            "many."
        )
    order = order if order.done else Order(batches)
    return _added(batches.rows(whole=True), order, batches, options)


class _Backwards(Exception):
    """A batch begins before the last one ends."""


def _added(rows, order, batches, options):
    from ..monitoring import TIME_RUNS_BACKWARDS, CalibrationMonitor

    known = _read_state(options, again=True)
    found = known or CalibrationMonitor(classes=batches.classes, **_settings(options))
    began = False
    for batch in rows:
        try:
            how = {"soft_labels": bool(options.soft_labels), "_goes_on": began}
            found.update(batch.labels, batch.proba, time=batch.time, only_later=True, **how)
        except InvalidInputError as error:
            if began and error.hint == TIME_RUNS_BACKWARDS:  # it runs backwards
                raise _Backwards from error
            error.set_fields(source=called(batches.files))
            raise
        began = True
        _judge(order.see(batch), known, options)
    _judge(order.see(None), known, options)
    return found


def _judge(said, known, options):
    """Columns of other classes: later tables may be those of a model that went wrong."""
    if said is not None and known is None:
        raise invalid_option(*said, source=called(options.files))
    if said is not None:
        note(f"{called(options.files)}: {format_sentence(*said)}")
