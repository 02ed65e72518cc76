"""Threads are pinned before numpy loads, so that timings of CI do not depend on the machine."""

import gc
import json
import os
from collections import defaultdict
from pathlib import Path

gc.set_threshold(50_000, 20, 50)  # tests and modules stay to the end, and looking costs time
for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest  # noqa: E402
from crosses import with_each_value  # noqa: E402

CROSS = 8  # fewer sets of parameters are all quick


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Each process compiles what it needs: more than some do not pay."""
    return min(8, os.cpu_count() or 1)


def pytest_addoption(parser):
    parser.addoption(
        "--each-value",
        type=int,
        default=2,
        metavar="TIMES",
        help=f"of a test with {CROSS} sets of parameters or more, quick are those in which each "
        "value comes TIMES (default: 2); the others are slow",
    )


@pytest.hookimpl(tryfirst=True)  # before the deselection by marks
def pytest_collection_modifyitems(config, items):
    """Of a cross of parameters a part is quick: each value with some of the others."""
    crosses = defaultdict(list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if hasattr(item, "callspec") and not marks & {"slow", "whole"}:
            crosses[item.nodeid.partition("[")[0]].append(item)
    for cross in crosses.values():
        if len(cross) >= CROSS:
            sets = [tuple(enumerate(item.callspec.id.split("-"))) for item in cross]
            kept = with_each_value(sets, config.getoption("--each-value"))
            for at, item in enumerate(cross):
                if at not in kept:
                    item.add_marker("slow")


@pytest.fixture
def oracle():
    """Read a file of tests/data."""
    return lambda name: json.loads((Path(__file__).parent / "data" / name).read_text())
