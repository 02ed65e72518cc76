"""What threads cost where they do not help: the processor's time as users have it.

``python benchmarks/run.py threads [words]`` runs each job in turns in two processes,
one with one thread and one with the default threads of BLAS, OpenMP and numba, and
beside both a process that keeps a core busy. The ratio is that of the processor's time,
all threads counted; above `MOST` it fails. `words` choose the jobs whose names have one
of them, and then nothing is written. ``--before`` writes the column of the tree that
the other one is compared with.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

TABLE = Path(__file__).parent / "results.csv"
COLUMNS = ["job", "classes", "rows", "one_s", "before", "after"]
ROWS, CLASSES = 2000, (2, 10, 100)
MOST = 1.3
TOO_LONG, LONG = 1.5, 0.1  # seconds of a first call: left out; called only once more
SETTINGS = [f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")]


def jobs(k, n):
    """Pairs: a name, and what is called."""
    from sklearn_calib import metrics
    from sklearn_calib.datasets import make_overconfident
    from sklearn_calib.inference import calibration_test, confidence_interval
    from sklearn_calib.recalibrators import all_recalibrators
    from sklearn_calib.report import calibration_report

    p, y = make_overconfident(k, n)
    for name, method in all_recalibrators().items():
        if k <= (method.capabilities.max_classes or k):
            fitted = method()
            yield f"{name}: fit", partial(fitted.fit, p, y)
            yield (
                f"{name}: predict_proba",
                lambda fitted=fitted: fitted.predict_proba(p),
            )
    yield from grouped(p, y)
    yield "calibration_report", partial(calibration_report, y, p)
    measures = metrics.all_metrics()
    yield "confidence_interval", partial(confidence_interval, y, p, n_resamples=99)
    yield "calibration_test", partial(calibration_test, y, p)
    for name, measure in measures.items() if k < 100 else ():
        yield f"measure: {name}", partial(measure, y, p)


def grouped(p, y):
    import numpy as np

    from sklearn_calib.groups import GroupRecalibration, MulticalibratedScores

    groups = np.arange(len(y)) % 4
    for method in (
        GroupRecalibration("temperature"),
        MulticalibratedScores(n_rounds=2),
    ):
        yield f"{type(method).__name__}: fit", partial(method.fit, p, y, groups=groups)


def large():
    """Jobs of many rows; threads help from 200 classes on."""
    from sklearn_calib.datasets import make_overconfident
    from sklearn_calib.recalibrators import get_recalibrator

    for k, n in ((2, 1_000_000), (10, 200_000), (100, 20_000), (199, 10_000)):
        p, y = make_overconfident(k, n)
        for name in ("temperature", "vector", "structured_matrix"):
            yield f"{name}: fit", k, n, partial(get_recalibrator(name).fit, p, y)


def listed(words):
    """All jobs of which one of the words is a part, or all: name, classes, rows, what is called."""
    every = [(name, k, ROWS, call) for k in CLASSES for name, call in jobs(k, ROWS)]
    for job in (*every, *large()):
        if not words or any(word in f"{job[0]} {job[1]}" for word in words):
            yield job


def work(words):
    """One of the two processes: an answer for each line that asks for the next job, or to skip."""
    warnings.simplefilter("ignore")
    for *job, call in listed(words):
        seconds = measured(call) if input() == "next" else None
        print(json.dumps([*job, seconds]), flush=True)


def measured(call):
    """The processor's seconds, the least of some calls after one that may compile; None if long."""
    most = TOO_LONG if os.environ.get("OMP_NUM_THREADS") else 100 * TOO_LONG
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, most)
    try:
        first = spent(call)
    except (ValueError, TypeError, NotImplementedError, TimeoutError) as error:
        print(f"skipped: {str(error)[:90]}", file=sys.stderr)
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return min(spent(call) for _ in range(2 if first > LONG else 5))


def stop(signum, frame):
    raise TimeoutError(f"more than {TOO_LONG} s")


def spent(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def ratios(words):
    """Each job with its seconds in one thread, and those of default threads, job by job."""
    plain = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    command = [sys.executable, __file__, "--work", *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    one = subprocess.Popen(command, env=plain | dict.fromkeys(SETTINGS, "1"), **pipes)
    many = subprocess.Popen(command, env=plain, **pipes)
    try:
        while answer := asked(one, "next"):
            *job, alone = json.loads(answer)
            *_, threads = json.loads(asked(many, "next" if alone else "skip"))
            if alone and threads:
                yield (*job, alone, threads)
    finally:
        for process in (spinning, one, many):
            process.kill()


def asked(process, word):
    """The line with which a process answers; empty at its end."""
    try:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    return process.stdout.readline()


def main():
    words = sys.argv[1:]
    if words[:1] == ["--work"]:
        work(words[1:])
        return
    column = "before" if "--before" in words else "after"
    words = [word for word in words if word != "--before"]
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    known = {
        (row["job"], row["classes"], row["rows"]): row for row in csv.DictReader(lines)
    }
    rows = []
    for name, k, n, alone, threads in ratios(words):
        row = known.get((name, str(k), str(n)), dict.fromkeys(COLUMNS, ""))
        row = {column: row.get(column, "") for column in COLUMNS}  # but the machine
        row |= {"job": name, "classes": k, "rows": n, "one_s": f"{alone:.3g}"}
        rows.append(row | {column: f"{threads / alone:.2f}"})
        print(*rows[-1].values(), sep="; ", flush=True)
    if not words:
        import runner  # sets threads to one: not before the processes have started

        runner.write(TABLE, rows, COLUMNS)
    if worse := [
        row["job"] for row in rows if column == "after" and float(row[column]) > MOST
    ]:
        sys.exit(
            f"expected at most {MOST} times the time of one thread, got more for {worse}"
        )


if __name__ == "__main__":
    main()
