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

CROSS = 8  # fewer sets of parameters all run, unless `--each-value 1` asks for the fewest


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
        help=f"of a test with {CROSS} sets of parameters or more, those run in which each value "
        "comes TIMES (default: 2); the others are marked `cross`; 1: of every other test as well",
    )


@pytest.hookimpl(tryfirst=True)  # before the deselection by marks
def pytest_collection_modifyitems(config, items):
    """Of a cross of parameters a part runs: each value with some of the others."""
    crosses, times = defaultdict(list), config.getoption("--each-value")
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if hasattr(item, "callspec") and (times == 1 or "whole" not in marks):
            crosses[item.nodeid.partition("[")[0], "slow" in marks].append(item)
    for cross in crosses.values():
        if len(cross) >= (CROSS if times > 1 else 2):
            sets = [tuple(enumerate(item.callspec.id.split("-"))) for item in cross]
            kept = with_each_value(sets, times)
            for at, item in enumerate(cross):
                if at not in kept:
                    item.add_marker("cross")


@pytest.fixture
def oracle():
    """Read a file of tests/data."""
    return lambda name: json.loads((Path(__file__).parent / "data" / name).read_text())
