"""Threads are pinned before numpy loads, so that timings of CI do not depend on the machine."""

import atexit
import gc
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

gc.set_threshold(50_000, 20, 50)  # looking costs time
for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest  # noqa: E402
from crosses import with_each_value  # noqa: E402

NO_CASES = SimpleNamespace(params={})
CROSS = 4  # of fewer sets of parameters none is left out, unless `--fewest` reports it


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Each process compiles what it needs: more than some do not pay."""
    return min(8, os.cpu_count() or 1)


def pytest_addoption(parser):
    parser.addoption(
        "--fewest",
        action="store_true",
        help="of every test, contracts too, the fewest sets of parameters that have each value",
    )


def pytest_configure(config):
    """A process of several ends at once, as everything in it would be freed for 1.5 s.

    What is registered later runs before, so that temporary files are gone.
    """
    if hasattr(config, "workerinput"):
        atexit.register(end_process)


def end_process():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays to the end: no garbage is looked for in it."""
    gc.disable()
    yielded = yield
    gc.freeze()
    # compiled modules name what is left at the very end as leaks
    atexit.register(gc.unfreeze)
    gc.enable()
    return yielded


@pytest.hookimpl(tryfirst=True)  # before the deselection by marks
def pytest_collection_modifyitems(config, items):
    """Of a cross of parameters each value is kept; the rest has the mark `cross`."""
    crosses, fewest = defaultdict(list), config.getoption("--fewest")
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if hasattr(item, "callspec") and (fewest or "whole" not in marks):
            crosses[item.nodeid.partition("[")[0], "slow" in marks].append(item)
    for cross in crosses.values():
        if len(cross) >= (2 if fewest else CROSS):
            sets = [tuple(enumerate(item.callspec.id.split("-"))) for item in cross]
            kept = with_each_value(sets)
            for at, item in enumerate(cross):
                if at not in kept:
                    item.add_marker("cross")
    if fewest:
        for item in items:
            for name, cases in getattr(item, "callspec", NO_CASES).params.items():
                if name.startswith("cases_of_") and isinstance(cases, dict):
                    item.callspec.params[name] = choose_cases(cases)


def choose_cases(cases):
    """Return the fewest cases of one test that have each value, by their titles."""
    titles = [*cases]
    kept = with_each_value([tuple(enumerate(title.split("-"))) for title in titles])
    return {titles[at]: cases[titles[at]] for at in sorted(kept)}


@pytest.fixture
def oracle():
    """Read a file of tests/data."""
    return lambda name: json.loads(
        (Path(__file__).parent / "data" / name).read_text(encoding="utf-8")
    )
