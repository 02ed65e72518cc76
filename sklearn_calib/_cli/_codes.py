"""The exit codes of all commands; the page of the command line shows this table."""

import signal

DONE, DEFECT, MENDABLE, FOUND = range(4)

#: Signals that end a command in order: its temporary files go, and its code is the usual one.
ENDED_BY = ("SIGHUP", "SIGTERM")

INTERRUPTED = 128 + signal.SIGINT

#: What the codes mean, as the page says it.
MEANINGS = {
    f"{DONE}": "success",
    f"{DEFECT}": "a defect of this program, which the message describes; with "
    "``SKLEARN_CALIB_TRACEBACK=1`` in the environment Python prints the traceback",
    f"{MENDABLE}": "an error that you can correct, which the message describes: an "
    "option, a table, a full disk, a state that another process has locked. "
    "Nothing has been written, with two exceptions: the standard output is full "
    "or closed (the message then names the files that were written), or the disk "
    "is full only for a later one of several files. A state and the files of an "
    "earlier run are unchanged",
    f"{FOUND}": "a condition of ``--fail-if`` holds, ``fit`` found no gain and wrote "
    "nothing, or ``monitor`` raised an alarm, which is in the state. The code is "
    "still 3 if the standard output is full, closed, or a pipe that no process "
    "reads",
    f"129, {INTERRUPTED}, 143": "the terminal was closed (SIGHUP), or the command was "
    "interrupted (Ctrl-C) or terminated (SIGTERM). Temporary files are removed, "
    "and each output file is absent, unchanged or complete",
    "137": "the command was killed (SIGKILL), for instance by the system for lack of "
    "memory. Each output file is absent, unchanged or complete. A temporary file "
    "with a point before its name remains until the next run that writes there. "
    "The lock of a state ends with its process",
}
