"""The command ``monitor``: watch the calibration of a model, a table of new rows at a time."""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.atomic import lock_file
from .._files.checksum import CHECKSUM_KEY, compute_checksum
from .._files.columns import EMPTY_TABLE_HINT
from .._files.input_files import open_decompressed, read_uncompressed_json_text
from .._files.tables import is_unpacked_size_above, iter_table_blocks
from .._show import make_printable, quote_text
from ..exceptions import CalibrationWarning, InvalidInputError
from ._classes import check_column_order
from ._console import Output, print_note
from ._messages import EXIT_FINDING, EXIT_SUCCESS, MISSING_LABEL_HINTS, invalid_option
from ._options import make_number_parser, parse_fraction
from ._outputs import (
    check_writable,
    is_device_or_pipe,
    unwritable_output,
    write_text_to_file,
)
from ._prediction_batches import (
    MixedTimesError,
    PredictionBatches,
    describe_files,
    join_batches,
)
from ._remote import local_files
from ._request import Request

if TYPE_CHECKING:
    from ..monitoring import CalibrationMonitor


# The order of the columns is checked on this many first rows.
_COLUMN_ORDER_ROWS = 2**17
# A state stores the checksums of this many files.
_MAX_STORED_CHECKSUMS = 400
# Unordered tables of at least this size get a note.
_MIN_UNORDERED_NOTE_BYTES = 2**23
EXAMPLES = (
    "sklearn-calib monitor week.csv --label outcome --prob p --state state.json",
    "sklearn-calib monitor today.csv --label outcome --prob p --time day --state state.json "
    "--quiet",
    "sklearn-calib monitor year.csv --label outcome --prob p --time day --alarm test",
)


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "monitor",
        help="watch the calibration of a model, table by table",
        description="Add the rows of a table, whose labels have arrived, to those of "
        "earlier runs, and print one line: whether the probabilities are still "
        "calibrated. Ends with exit code 3 after an alarm, for use with cron. It "
        "can run as often as you like; while the probabilities are calibrated, a "
        "false alarm comes after --run-length rows on average, or later.",
        examples=EXAMPLES,
    )
    parser.add_file_arguments()
    columns = parser.add_argument_group("columns")
    columns.add_shared_options("--label")
    columns.add_score_options()
    columns.add_scale_option(logits=True)
    columns.add_soft_labels_option(
        ". Each row counts once, whatever its number of annotators"
    )
    columns.add_shared_options("--prediction")
    columns.add_argument(
        "--time",
        metavar="COLUMN",
        help="numbers, dates, or text such as 2026-03-01T12:00, by which the rows are "
        "sorted; rows that are not later than those of the state are an error "
        "(default: the rows are in order and new). If labels arrive late, it is "
        "the time of the label. A table that is not sorted by it is held in memory",
    )
    order = (
        "take the columns as they are, although they fit other classes (default: an "
    )
    order += "error in the first table, a message in later ones)"
    repeated = "without --time, also read a file with the content of an earlier one"
    parser.add_reading_options(order=order, repeated=repeated)
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
        type=make_number_parser("a number above 1", lambda rows: 1 < rows <= 1e12),
        metavar="N",
        help="while the probabilities are calibrated, the detector raises a false alarm after N "
        "rows on average, or later (default: 10000)",
    )
    work.add_argument(
        "--alpha",
        type=parse_fraction,
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
    _add_result_options(parser)
    parser.set_defaults(run=run_monitor, words=MISSING_LABEL_HINTS, modules=("pandas",))


def _add_result_options(parser: Any) -> None:
    results = parser.add_argument_group("results")
    results.add_argument(
        "--state",
        metavar="FILE",
        help="the state of the monitor, which is read and replaced; a new file starts "
        "a new monitor (default: only the rows of this call)",
    )
    results.add_argument(
        "--wait",
        type=make_number_parser(
            "a number of seconds", lambda seconds: 0 <= seconds < 1e9
        ),
        default=60.0,
        metavar="SECONDS",
        help="how long to wait while another process changes the state (default: 60)",
    )
    results.add_argument(
        "--quiet", action="store_true", help="print nothing without an alarm"
    )


def run_monitor(options: Request) -> int:
    """Add rows to a monitor, print its line and write its state; returns the exit code."""
    options.check_required_columns_named()
    with local_files(options) as files:
        if options.state is not None:
            _check_state_writable(options.state, [*files, *options.files])
        # its errors are raised before the table is read
        old_monitor = _load_monitor_from_state(options)
        files = [file for file in files if _has_rows_or_print_note(file, options)]
        if not files:
            return EXIT_SUCCESS
        batches = PredictionBatches(files, options, _get_known_classes(old_monitor))
        with _lock_state(options):
            now = _load_monitor_from_state(options, ignore_warnings=True)
            # another process has been there
            if not np.array_equal(
                _get_known_classes(now), _get_known_classes(old_monitor)
            ):
                batches = PredictionBatches(files, options, _get_known_classes(now))
            checksums = _list_old_and_new_checksums_or_raise(files, options)
            new_monitor = _update_monitor(batches, options)
            batches.print_dropped_rows()
            if options.state is not None:
                state = new_monitor.state_dict()
                if checksums:
                    state["files"] = checksums
                    state[CHECKSUM_KEY] = compute_checksum(state)
                text = json.dumps(state, allow_nan=False)
                write_text_to_file(f"{text}\n", options.state, "--state")
    output = Output()
    if new_monitor.alarm_ or not options.quiet:
        output.print(
            make_printable(f"{describe_files(options.files)}: {new_monitor}", None)
        )
    return output.print_paths_and_get_exit_code(
        {}, EXIT_FINDING if new_monitor.alarm_ else EXIT_SUCCESS
    )


def _has_rows_or_print_note(file, options):
    """Return whether a file has rows; print a note if it has none."""
    try:
        next(iter_table_blocks(file, options.pick_columns, **options.csv_options))
    except InvalidInputError as error:
        if error.hint != EMPTY_TABLE_HINT:
            raise
        if not options.quiet:
            print_note(f"{describe_files([file])} has no rows: there is nothing to add")
        return False
    return True


def _list_old_and_new_checksums_or_raise(files, options):
    """Return the hashes in the state, and those of `files`; reject a file that comes again.

    With ``--time`` rows that come again are rejected by their times.
    """
    checksums = []
    if options.state is not None and os.path.exists(options.state):
        checksums = json.loads(read_uncompressed_json_text(options.state)).get(
            "files", []
        )
    for file in files if options.time is None else ():
        digest = sha256()
        with open_decompressed(file) as stream:
            while piece := stream.read(2**20):
                digest.update(piece)
        checksum = digest.hexdigest()[:16]
        if checksum in checksums and not options.repeated:
            raise invalid_option(
                expected="files that were not read before",
                got=f"{describe_files([file])}, which has the same content as one of them",
                hint=(
                    "Name a file of new rows, or add --allow repeated if the same rows came again"
                ),
            )
        checksums.append(checksum)
    return checksums[-_MAX_STORED_CHECKSUMS:]


def _check_state_writable(state, files):
    """Reject a place that cannot hold a state, before anything waits for it."""
    check_writable(state, files, "--state")
    if is_device_or_pipe(state):
        raise unwritable_output(
            state, "a device or a pipe cannot be read back", "--state"
        )


@contextmanager
def _lock_state(options: Request) -> Iterator[None]:
    """Let no other process read the state to change it meanwhile."""
    if options.state is None:
        yield
        return
    name = quote_text(options.state, 200)
    try:
        with lock_file(options.state, options.wait) as locked:
            if not locked:
                print_note(
                    f"the folder of {name} does not support locks: run one monitor of it at a time"
                )
            yield
    except TimeoutError:
        raise invalid_option(
            sentence=(
                f"Another process has held the lock of the state {name} for {options.wait:g} "
                "seconds"
            ),
            hint=(
                "The file is as that process leaves it, without these rows: run again, "
                "or give --wait more seconds"
            ),
        ) from None
    except OSError as error:
        raise unwritable_output(
            options.state, error.strerror or error, "--state"
        ) from error


def _make_monitor_arguments(options):
    """Return the given settings of the monitor; the rest has defaults."""
    settings = {
        "alarm": options.alarm,
        "average_run_length": options.run_length,
        "alpha": options.alpha,
        "multiclass": None if options.classwise is None else "classwise",
    }
    return {name: value for name, value in settings.items() if value is not None}


def _load_monitor_from_state(
    options: Request, *, ignore_warnings: bool = False
) -> "CalibrationMonitor | None":
    """Return the monitor of the state.

    None if a new one begins. Its notes are not printed if `ignore_warnings`.
    """
    from ..monitoring import CalibrationMonitor

    if options.state is None or not os.path.exists(options.state):
        return None
    name = quote_text(options.state, 200)
    try:
        content = json.loads(read_uncompressed_json_text(options.state))
    except (OSError, ValueError) as error:
        reason = make_printable(getattr(error, "strerror", None) or error, 100)
        raise invalid_option(
            expected=f"the state of a monitor in {name}",
            got=f"a file that cannot be read ({reason})",
            hint="Take another file, or remove it to begin anew",
        ) from error
    try:
        with warnings.catch_warnings():
            if ignore_warnings:
                warnings.simplefilter("ignore", CalibrationWarning)
            monitor = CalibrationMonitor.from_state_dict(content)
    except InvalidInputError as error:
        error.set_fields(source=name, remark="The file is as it was.")
        raise
    for setting, value in _make_monitor_arguments(options).items():
        if (stored_value := getattr(monitor, setting)) != value:
            described = setting.replace("average_run_length", "run length")
            raise invalid_option(
                expected=f"the {described} {stored_value} of the monitor in {name}",
                got=f"{value}",
                hint="Leave the option out, or take another --state",
            )
    return monitor


def _get_known_classes(monitor):
    """Return the classes of a monitor, or None."""
    return None if monitor is None else monitor.classes_


def _update_monitor(
    batches: PredictionBatches, options: Request
) -> "CalibrationMonitor":
    """Return the monitor of the state with all rows, or a new one; nothing is written.

    Rows that are not in the order of their times are read again, all at once.
    """
    tables = _iter_column_order_checked_batches(batches, options)
    try:
        return _load_monitor_and_add_batches(
            batches.iter_batches_by_row_multiple(tables), batches, options
        )
    except (MixedTimesError, _OverlappingBatchError):
        pass
    if is_unpacked_size_above(batches.files, _MIN_UNORDERED_NOTE_BYTES):
        print_note(
            f"the rows are not in the order of {quote_text(options.time)}: to be put in it, all of "
            "them are held in memory. Give a sorted table, or a day at a time, where they are too "
            "many."
        )
    rows = join_batches([*batches.iter_file_batches(whole=True)])
    return _load_monitor_and_add_batches([rows], batches, options)


def _iter_column_order_checked_batches(batches, options):
    """Raise an error if the first rows fit columns of other classes; return all tables.

    If there is a state, the error is only printed: later tables may be those of a model
    that went wrong.
    """
    tables = batches.iter_file_batches()
    if options.any_order:
        return tables
    first = []
    judged = []
    left = _COLUMN_ORDER_ROWS
    for batch in tables:
        first.append(batch)
        judged.append(batch.select_rows(slice(left)))
        left -= len(judged[-1].labels)
        if not left:
            break
    if not first:
        return tables
    rows = join_batches(judged)
    n_columns = len(batches.names)
    try:
        check_column_order(
            rows.labels,
            rows.scores,
            batches.classes,
            n_columns,
            options,
        )
    except InvalidInputError as error:
        if _load_monitor_from_state(options, ignore_warnings=True) is None:
            error.set_fields(source=describe_files(options.files))
            raise
        print_note(f"{describe_files(options.files)}: {error}")
    return _iter_and_free(first, tables)


def _iter_and_free(first, rest):
    """Yield tables; the first ones are in memory only until they have been used."""
    while first:
        yield first.pop(0)
    yield from rest


class _OverlappingBatchError(Exception):
    """A batch begins before the last one ends."""


def _load_monitor_and_add_batches(rows, batches, options):
    from ..monitoring import (
        TIME_ORDER_HINT,
        CalibrationMonitor,
        add_rows_to_last_batch_in_place,
    )

    monitor = _load_monitor_from_state(
        options, ignore_warnings=True
    ) or CalibrationMonitor(classes=batches.classes, **_make_monitor_arguments(options))
    soft = bool(options.soft_labels)
    update = partial(monitor.update, only_later=True)
    began = False
    for batch in rows:
        time = None if batch.time is None else batch.time.to_numpy()
        try:
            update(batch.labels, batch.scores, time=time, soft_labels=soft)
        except InvalidInputError as error:
            if began and error.hint == TIME_ORDER_HINT:  # it runs backwards
                raise _OverlappingBatchError from error
            error.set_fields(source=describe_files(batches.files))
            raise
        began = True
        # Further tables may begin at the time at which the one before ended.
        update = partial(add_rows_to_last_batch_in_place, monitor)
    return monitor
