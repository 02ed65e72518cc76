"""Limits on the number of threads of BLAS for a table of rows.

OpenBLAS shares a product of 100 x 100 numbers between two threads. The second one then
spins for some 20 ms in case of further products, and if the other core is busy the
first waits for it: a fit that calls BLAS a thousand times took fifteen times as long
(``benchmarks/threads``).
"""

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

#: Entries of a table up to which BLAS does not share a product between threads.
MAX_UNTHREADED_ENTRIES = 2048
#: From this number of classes on a second thread saves time; for two classes it does not,
#: even with a million rows.
MIN_THREADED_CLASSES = 200


class _SingleBlasThread:
    """A context with one thread of BLAS, which several threads may enter at once.

    The first thread that enters sets the limit, and the last one that leaves removes it.
    It takes 10 us, and 2 ms the first time.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limiter: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limiter = _get_controller().limit(limits=1)
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limiter.restore_original_limits()


single_blas_thread = _SingleBlasThread()


def limit_blas_threads(n_rows: int, n_classes: int) -> AbstractContextManager[None]:
    """Return a context with one thread of BLAS, or with all if the table is worth it."""
    is_small = n_rows * n_classes < MAX_UNTHREADED_ENTRIES
    if is_small or n_classes >= MIN_THREADED_CLASSES:
        return nullcontext()
    return single_blas_thread


@cache
def _get_controller() -> Any:
    import scipy.linalg  # noqa: F401 - loads a BLAS of its own, which has to be found

    return ThreadpoolController().select(user_api="blas")
