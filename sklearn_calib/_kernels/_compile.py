"""How kernels are compiled.

`compile_kernel` is for what Python calls, `compile_helper` for what only kernels call.

The first call of every user waits for the compiler, so a kernel is written to be
compiled quickly:

* Arrays are made in Python and passed in. `np.zeros` inside costs as much as the loop
  around it, and so does `sum`. Assigning an array to a part of another costs two
  seconds.
* A number that starts as a bare literal is compiled twice, as the literal and as a
  number.
* Divisions are numpy's: an exception for a divisor of 0 costs as much as the division.
* A helper has few callers, because each of them may contain a copy of it.
"""

import os
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache, NullCache

from .._show import make_printable
from .._warnings import warn_calibration

# A line is printed once a process has compiled for so many seconds.
MAX_SILENT_COMPILE_SECONDS = 1.0

_compile_with_defaults = partial(
    njit,
    error_model="numpy",
    nogil=True,
    no_cfunc_wrapper=True,
)
compile_helper = partial(_compile_with_defaults, no_cpython_wrapper=True)


def compile_kernel(function=None, **options):
    """Compile at the first call and keep the result: once per installation.

    If neither the folder of the package nor numba's cache can be written, or a file
    there is damaged: once per process, with a warning.
    """
    if function is None:
        return partial(compile_kernel, **options)
    # Without compilation integers wrap around as well, of which numpy would warn.
    if numba.config.DISABLE_JIT:
        return np.errstate(over="ignore")(function)
    # `cache=True` of numba raises an error if the folder cannot be written; this cache
    # warns once and compiles anew.
    compiled = _compile_with_defaults(function, **options)
    if isinstance(getattr(compiled, "_cache", None), NullCache):
        try:
            compiled._cache = FailSafeKernelCache(function)
        except (RuntimeError, OSError) as error:
            # Numba found no folder for its files.
            compiled._cache = NoCacheWithWarning(error)
    return compiled


def count_threads() -> int:
    """Return the number of threads of numba.

    The first question starts numba's pool, which may set the number of threads of
    OpenMP for the whole process: torch, if it was imported, gets its own number
    back.
    """
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "get_num_threads"):
        return numba.get_num_threads()
    before = torch.get_num_threads()
    count = numba.get_num_threads()
    # Starting numba's thread layer changes the number of threads of torch if both use
    # OpenMP.
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)
    return count


class FailSafeKernelCache(FunctionCache):
    """A cache of numba whose failures cost time and no result."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            # Any exception is possible: unpickling a damaged file can call anything.
            warn_uncached_code(error, self.cache_path)
            with suppress(OSError):
                # The new result of the compiler takes the place of the damaged files.
                self.flush()
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception as error:
            warn_uncached_code(error, self.cache_path)


class NoCacheWithWarning(NullCache):
    """No cache; a warning is given when the compiler has run."""

    def __init__(self, error):
        self.error = error

    def save_overload(self, sig, data):
        warn_uncached_code(self.error)


_has_warned = False


def warn_uncached_code(error, folder=None):
    """Warn, once in a process, that compiled code could not be kept."""
    global _has_warned
    if _has_warned:
        return
    _has_warned = True
    what = f"{type(error).__name__} ({make_printable(error, 200)})"
    warn_calibration(
        expected="a cache that can be read and written",
        got=f"{what} in {make_printable(folder, 200)}" if folder else what,
        hint=(
            "Results are right, but parts are compiled anew. If this "
            "warning comes again, free the disk, or set NUMBA_CACHE_DIR to a folder that can be "
            "written"
        ),
    )


class CompilationNotice(event.Listener):
    """Prints once, on a terminal, what the user is waiting for.

    SKLEARN_CALIB_QUIET=1 turns it off.
    """

    def __init__(self):
        self.depth = 0
        self.began = 0.0
        self.spent = 0.0
        self.is_printed = False

    def on_start(self, event):
        """Start the clock, and print the notice if compilation has taken long."""
        # Kernels of other packages may be compiled too. Helpers compiled inside our
        # kernels count only once.
        if self.depth == 0 and not _is_package_event(event):
            return
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
        if (
            self.spent + time.perf_counter() - self.began >= MAX_SILENT_COMPILE_SECONDS
            and not self.is_printed
        ):
            self.is_printed = True
            _print_notice_if_on_terminal()

    def on_end(self, event):
        if self.depth == 0:
            return
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.perf_counter() - self.began


def _is_package_event(event):
    return event.data["dispatcher"].py_func.__module__.startswith(__package__)


def _print_notice_if_on_terminal():
    quiet = os.environ.get("SKLEARN_CALIB_QUIET", "0") != "0"
    if not quiet and sys.stderr is not None and sys.stderr.isatty():
        print(
            "sklearn_calib: compiling, once per installation (a few seconds)",
            file=sys.stderr,
        )


event.register("numba:compile", CompilationNotice())
