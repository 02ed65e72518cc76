"""Threads are pinned before numpy loads, so that timings of CI do not depend on the machine."""

import gc
import json
import os
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest  # noqa: E402


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Each process compiles what it needs: more than some do not pay."""
    return min(8, os.cpu_count() or 1)


def pytest_collection_finish():
    """Tests and modules stay to the end: looking through them often for garbage costs time."""
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def oracle():
    """Read a file of tests/data."""
    return lambda name: json.loads((Path(__file__).parent / "data" / name).read_text())
