"""How many threads a compiled kernel may use."""

import sys
from typing import Any

import numba


def n_threads() -> int:
    """The number of threads of numba.

    The first question starts numba's pool, which may set the number of threads of OpenMP for the
    whole process: torch, where it was imported, gets its own number back.
    """
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "get_num_threads"):
        return numba.get_num_threads()
    before = torch.get_num_threads()
    found = numba.get_num_threads()
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)
    return found
