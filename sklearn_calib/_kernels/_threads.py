"""How many threads a compiled kernel may use."""

import sys

import numba


def n_threads() -> int:
    """The number of threads of numba.

    The first question starts numba's pool, which may set the number of threads of OpenMP for the
    whole process: torch, where it was imported, gets its own number back.
    """
    torch = sys.modules.get("torch")
    before = getattr(torch, "get_num_threads", lambda: None)()
    found = numba.get_num_threads()
    if before is not None and torch.get_num_threads() != before:
        torch.set_num_threads(before)
    return found
