"""One thread of BLAS where arrays are small.

OpenBLAS shares a product of 100 x 100 numbers between two threads. The second one then spins for
some 20 ms in the hope of more, and where the other core is busy the first waits for it: a fit that
calls BLAS a thousand times took fifteen times as long. Measured in ``benchmarks/threads``.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_NEVER_SHARED = 2048  # numbers: of so few BLAS does not share a product, and they are fast
_MANY = 2_000_000  # numbers from which a second thread pays


def threads_for(size: int) -> AbstractContextManager[None]:
    """As many threads of BLAS as rows of `size` numbers are worth: one, or those there are."""
    return one_thread() if _NEVER_SHARED <= size < _MANY else nullcontext()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of BLAS in the block; 15 us, and 2 ms the first time."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


class _Limit:
    """Of the whole process: the first thread that enters sets it, the last that leaves ends it."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.set: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.set = _blas().limit(limits=1)
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.set.restore_original_limits()


_limit = _Limit()


@cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which has to be found

    return ThreadpoolController().select(user_api="blas")
