"""Threads are pinned before numpy loads, so that timings of CI do not depend on the machine."""

import json
import os
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest  # noqa: E402


@pytest.fixture
def oracle():
    """Read a file of tests/data."""
    return lambda name: json.loads((Path(__file__).parent / "data" / name).read_text())
