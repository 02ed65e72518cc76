"""How kernels are compiled: `kernel` for what Python calls, `part` for what only kernels call.

The first call of every user waits for the compiler, so a kernel is written to be compiled quickly:

* Arrays are made in Python and handed in. `np.zeros` inside costs as much as the loop around it,
  `sum` likewise; an assignment of one array to a part of another costs two seconds.
* A number that starts as a bare literal is compiled twice, as the literal and as a number.
* Few places call a part: each of them may become a copy of it.
"""

import os
import sys
import time
from functools import partial

from numba import njit
from numba.core import event

SLOW = 1.0  # seconds of compilation in one process before a line is printed

part = partial(njit, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def kernel(function=None, **options):
    """Compile at the first call and keep the result: once per installation.

    Where neither the folder of the package nor numba's cache can be written: once per process.
    """
    if function is None:
        return partial(kernel, **options)
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    try:
        return njit(function, cache=True, **options)
    except RuntimeError:  # numba found no place for its files
        return njit(function, **options)


class Announcement(event.Listener):
    """Says once, on a terminal, what the user is waiting for; SKLEARN_CALIB_QUIET=1 forbids it."""

    def __init__(self):
        self.depth, self.began, self.spent, self.said = 0, 0.0, 0.0, False

    def on_start(self, event):
        if self.depth == 0 and not _is_ours(event):
            return
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
        if self.spent + time.perf_counter() - self.began >= SLOW and not self.said:
            self.said = True
            _say()

    def on_end(self, event):
        if self.depth == 0:
            return
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.perf_counter() - self.began


def _is_ours(event):
    return event.data["dispatcher"].py_func.__module__.startswith(__package__)


def _say():
    quiet = os.environ.get("SKLEARN_CALIB_QUIET", "0") != "0"
    if not quiet and sys.stderr is not None and sys.stderr.isatty():
        print("sklearn_calib: compiling, once per installation (a few seconds)", file=sys.stderr)


event.register("numba:compile", Announcement())
