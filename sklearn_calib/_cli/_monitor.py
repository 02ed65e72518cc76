"""The command ``monitor``: watch the calibration of a model, a table of new rows at a time."""

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .._files.opened import json_text
from .._files.tables import weigh_more
from .._files.whole import held
from .._show import plain, quoted
from ..exceptions import CalibrationWarning, Refusal
from ._batches import Batches, MixedTimes, Order
from ._codes import DONE, FOUND
from ._options import (
    add_files,
    add_label,
    add_prediction,
    add_reading,
    add_scale,
    add_scores,
    add_soft_labels,
    examples,
    share,
)
from ._printing import Output, check_writable, note, refuse_out, write_text
from ._remote import local_files
from ._request import Request
from ._rows import called
from ._wording import WITHOUT_LABEL, refuse, sentence

if TYPE_CHECKING:
    from .._typing import AnyArray
    from ..monitoring import CalibrationMonitor

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
        help="watch the calibration of a model, a table of new rows at a time",
        description="Add the rows of a table, whose labels have come, to what was seen before, and "
        "print one line: whether the probabilities are still calibrated. Ends with exit code 3 "
        "after an alarm: made for cron. It may run as often as you like; while the probabilities "
        "are calibrated, a false alarm comes after --run-length rows on average, or later.",
        epilog=examples(*EXAMPLES),
    )
    add_files(parser)
    columns = parser.add_argument_group("columns")
    add_label(columns)
    add_scores(columns)
    add_scale(columns, logits=True)
    add_soft_labels(columns, ": a row counts once, however many it had")
    add_prediction(columns)
    columns.add_argument(
        "--time",
        metavar="COLUMN",
        help="numbers, dates, or text such as 2026-03-01T12:00: the rows are put in this order, "
        "and rows that are not later than those of the state are refused (default: the rows are "
        "in order and new); where labels come late, the time at which the label came; a table that "
        "is not sorted so is held in memory",
    )
    order = "take the columns as they are, although they fit other classes (default: refuse them "
    order += "in the first table, and say so in later ones)"
    add_reading(parser, order=order)
    work = parser.add_argument_group("work")
    work.add_argument(
        "--alarm",
        choices=("detector", "test"),
        help='find changes ("detector"), starting anew after each alarm, or ask ("test") '
        "whether the probabilities were calibrated all along (default: detector)",
    )
    work.add_argument(
        "--run-length",
        type=_number("a number above 1", lambda rows: 1 < rows <= 1e12),
        metavar="N",
        help="while the probabilities are calibrated, the detector raises a false alarm after N "
        "rows on average, or later (default: 10000)",
    )
    work.add_argument(
        "--alpha",
        type=share,
        metavar="A",
        help="while the probabilities are calibrated, the test ever raises a false alarm with "
        "probability A at most (default: 0.05)",
    )
    work.add_argument(
        "--classwise",
        action="store_true",
        default=None,
        help="of more than two classes, watch each one against the others (default: the largest "
        "probability)",
    )
    _add_results(parser)
    parser.set_defaults(run=monitor, words=WITHOUT_LABEL, modules=("pandas",))


def _add_results(parser: Any) -> None:
    results = parser.add_argument_group("results")
    results.add_argument(
        "--state",
        metavar="FILE",
        help="where the monitor goes on from, and what it writes back; a new file begins anew "
        "(default: only the rows of this call)",
    )
    results.add_argument(
        "--wait",
        type=_number("a number of seconds", lambda seconds: 0 <= seconds < 1e9),
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
        batches = Batches(files, options, _classes_of(known))
        with _alone(options):
            now = _classes_of(_read_state(options, again=True))
            if _listed(now) != _listed(_classes_of(known)):  # another process has been there
                batches = Batches(files, options, now)
            found = _updated(batches, options)
            batches.say_what_is_left_out()
            if options.state is not None:
                text = json.dumps(found.state_dict(), allow_nan=False)
                write_text(f"{text}\n", options.state, "--state")
    output = Output()
    if found.alarm_ or not options.quiet:
        output.print(plain(f"{called(options.files)}: {found}", None))
    return output.finish({}, FOUND if found.alarm_ else DONE)


def _check_state(state, files):
    """Refuse a place that cannot hold a state, before anything waits for it."""
    check_writable(state, files, "--state")
    if os.path.exists(state) and not os.path.isfile(state):
        refuse_out(state, "a device or a pipe, which cannot be read back", "--state")


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
        refuse(
            f"the state {name} to be free",
            f"another process that held it for {options.wait:g} seconds",
            "The file is as that process leaves it, without these rows: run again, or give "
            "--wait more seconds",
        )
    except OSError as error:
        refuse_out(options.state, error.strerror or error, "--state")


def _number(rule: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """A type of argparse: numbers that fit."""

    def number(text):
        with suppress(ValueError):
            if fits(value := float(text)):
                return value
        raise argparse.ArgumentTypeError(f"expected {rule}, got {text!r}")

    return number


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
        refuse(
            f"the state of a monitor in {name}",
            f"a file that cannot be read ({said})",
            "Take another file, or remove it to begin anew",
        )
    try:
        with warnings.catch_warnings():
            if again:
                warnings.simplefilter("ignore", CalibrationWarning)
            found = CalibrationMonitor.from_state_dict(content)
    except Refusal as error:
        error.place(source=name, remark="The file is as it was.")
        raise
    for setting, value in _settings(options).items():
        if (own := getattr(found, setting)) != value:
            said = setting.replace("average_run_length", "run length")
            refuse(
                f"the {said} {own} of the monitor in {name}",
                f"{value}",
                "Leave the option out, or take another --state",
            )
    return found


def _classes_of(known: "CalibrationMonitor | None") -> "AnyArray | None":
    return None if known is None else known.classes_


def _listed(classes):
    return None if classes is None else classes.tolist()


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
    from ..monitoring import CalibrationMonitor

    known = _read_state(options, again=True)
    found = known or CalibrationMonitor(classes=batches.classes, **_settings(options))
    began = False
    for batch in rows:
        try:
            how = {"soft_labels": bool(options.soft_labels), "_goes_on": began}
            found.update(batch.labels, batch.proba, time=batch.time, only_later=True, **how)
        except Refusal as error:
            if began and "time" in error.settings:  # it runs backwards
                raise _Backwards from error
            error.place(source=called(batches.files))
            raise
        began = True
        _judge(order.see(batch), known, options)
    _judge(order.see(None), known, options)
    return found


def _judge(said, known, options):
    """Columns of other classes: later tables may be those of a model that went wrong."""
    if said is not None and known is None:
        refuse(*said, source=called(options.files))
    if said is not None:
        note(f"{called(options.files)}: {sentence(*said)}")
