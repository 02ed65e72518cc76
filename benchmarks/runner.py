"""Time this package beside a peer: verified first, in turns, medians, one table."""

import csv
import importlib.metadata
import json
import os
import platform
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402


@dataclass
class Predictions:
    """One comparison: `ours` and `theirs` are callables without arguments."""

    name: str
    ours: object
    theirs: object = None
    difference: object = None  # f(our answer, their answer) -> float
    tolerance: float = 1e-9
    bar: str = ""  # what was promised, for the table
    note: str = ""
    extra: dict = field(default_factory=dict)


def data_folder():
    """The folder of the real data, or None."""
    folder = Path(os.environ.get("SKLEARN_CALIB_DATA", "../shared/data"))
    return folder if folder.is_dir() else None


def largest_difference(ours, theirs):
    """Largest absolute difference of two arrays."""
    return float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())


def measure(peer, case):
    """One row of the table."""
    answer = case.ours()  # also compiles
    row = {
        "peer": peer,
        "case": case.name,
        "difference": "",
        "theirs_s": "",
        "ratio": "",
    }
    if case.theirs is not None:
        start = time.process_time()
        other = case.theirs()
        slow = time.process_time() - start > 10
        difference = (case.difference or largest_difference)(answer, other)
        if not difference <= case.tolerance:
            raise AssertionError(
                f"{peer}, {case.name}: answers differ by {difference:.3g}"
            )
        row["difference"] = f"{difference:.1e}"
    else:
        slow = False
    ours, theirs = [], []
    least = _cpu_time(case.ours)
    # short calls are repeated for half a second, as single ones vary
    runs = 3 if slow else max(5, min(201, int(0.5 / least)))
    for _ in range(runs):
        ours.append(_cpu_time(case.ours))
        if case.theirs is not None:
            theirs.append(_cpu_time(case.theirs))
    row["ours_s"] = f"{np.median(ours):.4g}"
    if theirs:
        row["theirs_s"] = f"{np.median(theirs):.4g}"
        row["ratio"] = f"{np.median(theirs) / np.median(ours):.3g}"
    row["bar"], row["note"] = case.bar, case.note
    return row


def _time(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _cpu_time(function):
    """Return seconds of the processor, which depend little on what else it computes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def rounds(path, jobs, function, processes=2):
    """Rows of all jobs, run on both cores; finished ones are kept in `path` and not run again.

    A job is a tuple of numbers and words, the arguments of `function`, which returns
    rows.
    """
    done = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            job, rows = json.loads(line)
            done[tuple(job)] = rows
    todo = [job for job in jobs if tuple(job) not in done]
    name = path.name.partition(".")[0]
    if todo:
        print(
            f"{name}: {len(jobs) - len(todo)} of {len(jobs)} rounds are there already"
        )
    calls = (delayed(_labelled)(function, job) for job in todo)
    with open(path, "a", encoding="utf-8") as file:
        finished = Parallel(n_jobs=processes, return_as="generator_unordered")(calls)
        for number, (job, rows) in enumerate(finished, 1):
            file.write(json.dumps([job, rows]) + "\n")
            file.flush()
            done[tuple(job)] = rows
            if number % 10 == 0 or number == len(todo):
                print(f"{name}: {number} of {len(todo)}", flush=True)
    return [row for job in jobs for row in done[tuple(job)]]


def study(folder, jobs, function, processes=2):
    """`rounds` that make one `table`."""
    table(folder, rounds(folder / "rounds.partial.jsonl", jobs, function, processes))


def table(folder, rows):
    """``results.csv``, where cells that a row lacks are empty; also printed."""
    write(folder / "results.csv", rows)
    for row in rows:
        print(row)


def covered(low, high, truth):
    """Shares of intervals that hold the truth, and of those that have it on either side."""
    below, above = np.mean(truth < low), np.mean(truth > high)
    shares = {"truth_below": below, "truth_above": above, "covered": 1 - below - above}
    return {name: f"{share:.3f}" for name, share in shares.items()}


def _labelled(function, job):
    return list(job), function(*job)


@contextmanager
def at_most(cpu_seconds):
    """Raise `TimeoutError` in the block after so much time of the processor (main thread only)."""
    over = TimeoutError(f"more than {cpu_seconds} s")
    fired = []

    def stop(signum, frame):
        fired.append(signum)
        raise over

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        yield
    except KeyboardInterrupt:  # what CatBoost makes of any error in a handler
        raise over if fired else KeyboardInterrupt from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds(function, times=7):
    """Median of several runs."""
    return float(np.median([_time(function) for _ in range(times)]))


def cpu_seconds(function, runs=5):
    """Median of the processor's time, after one run that is not counted."""
    function()
    spent = []
    for _ in range(runs):
        start = time.process_time()
        function()
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def write(path, rows, columns=None):
    """A tracked table, with the machine in its last column; rows that were kept have theirs.

    The columns are by default those of the rows.
    """
    columns = columns or dict.fromkeys(
        name for row in rows for name in row if name != "machine"
    )
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*columns, "machine"], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({"machine": machine(), **row})


def machine():
    """One line: cores, Python and the libraries that matter."""
    versions = " ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("numpy", "scikit-learn", "numba")
    )
    threads = os.environ["OMP_NUM_THREADS"]
    return (
        f"{os.cpu_count()} cores {platform.machine()}; "
        f"{threads} thread{'s' * (threads != '1')}; "
        f"Python {platform.python_version()}; {versions}"
    )
