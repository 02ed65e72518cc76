"""The exit codes of all commands; the page of the command line shows this table."""

import signal

DONE, DEFECT, MENDABLE, FOUND = range(4)

#: Signals that end a command in order: its temporary files go, and its code is the usual one.
ENDED_BY = ("SIGHUP", "SIGTERM")

INTERRUPTED = 128 + signal.SIGINT

#: What the codes mean, as the page says it.
MEANINGS = {
    f"{DONE}": "done",
    f"{DEFECT}": "a defect of this program, named in one sentence; with "
    "``SKLEARN_CALIB_TRACEBACK=1`` in the environment Python shows where",
    f"{MENDABLE}": "something that you can mend, named in one sentence: an option, a table, a full "
    "disk, a state that another process holds. Nothing has been written, but where the standard "
    "output is full or closed (the sentence then names the files that were written), and where of "
    "several files a later one finds no room. A state, and a file of an earlier run, are as they "
    "were",
    f"{FOUND}": "a condition of ``--fail-if`` holds; ``fit`` gains nothing and has written "
    "nothing; ``monitor`` raises an alarm, which is in the state. It stays 3 where the standard "
    "output is full, closed, or a pipe that nobody reads",
    f"129, {INTERRUPTED}, 143": "the terminal was closed (SIGHUP), interrupted (Ctrl-C), "
    "terminated (SIGTERM): temporary files are removed, and what was to be written is absent, or "
    "as it was before, or whole",
    "137": "killed (SIGKILL), by the system where memory ends: the same holds of what was to be "
    "written; a temporary file with a point before its name stays until the next run that writes "
    "there. The lock of a state ends with its process",
}
