"""A gate on speed: ratios to what is always there, beside those that are committed.

``python benchmarks/run.py gate`` measures each job in turns with its unit (a stable
``np.argsort`` of a million numbers, as the other kind is several times as fast where a
processor has AVX-512, scikit-learn's way, one call of the classifier, Python's start),
the least time of both, and exits with 1 if a ratio is more than `MOST` times the
committed one in three attempts; with one thread, in time of the processor, and then
with as many threads as the machine has cores, in time of the clock, because threads
that wait for others also use the processor. Run the second part on an idle machine.
``run.py gate --write`` writes ``results.csv``: of each job the median of five such
ratios, as one alone may be a lucky one, which later runs fail to reach.
"""

import csv
import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import runner
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from sklearn_calib import CalibratedModel, metrics
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import get_recalibrator
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

TABLE = Path(__file__).parent / "results.csv"
MOST, ATTEMPTS, RUNS = 1.5, 3, 5
THREADS = {"one_thread": 1, "all_cores": os.cpu_count()}
COLUMNS = ["job", "unit", *THREADS]
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")


def jobs():
    """Quadruples: a job, what is called, the unit's name, the unit."""
    yield from of_rows()
    yield from of_fits()
    yield from of_models()
    start = [sys.executable, "-c", "import argparse, json, numpy"]
    for words in (["--version"], ["audit", "--help"]):
        yield (
            f"sklearn-calib {' '.join(words)}",
            partial(run, [sys.executable, "-m", "sklearn_calib", *words]),
            "Python with numpy",
            partial(run, start),
        )


def of_rows(n=1_000_000):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    sort = partial(np.argsort, p, kind="stable")
    for measure in (
        metrics.expected_calibration_error,
        metrics.smooth_calibration_error,
        metrics.lower_distance_to_calibration,
    ):
        yield measure.spec.name, partial(measure, y, p), "stable argsort", sort
    yield "a summary", lambda: CalibrationSummary().update(y, p), "stable argsort", sort
    yield (
        "log_loss",
        partial(metrics.log_loss, y, p),
        "scikit-learn",
        partial(log_loss, y, p),
    )
    theirs = partial(brier_score_loss, y, p)
    yield "brier_loss", partial(metrics.brier_loss, y, p), "scikit-learn", theirs
    few = y[:10_000], p[:10_000]
    yield (
        "a report of 10,000 rows",
        partial(calibration_report, *few),
        "stable argsort",
        sort,
    )
    monitor = lambda: CalibrationMonitor().update(y[:20_000], p[:20_000])  # noqa: E731
    yield "20,000 rows watched", monitor, "stable argsort", sort


def of_fits():
    p, y = make_overconfident(2, 100_000)
    score = np.asarray(p)[:, 1]
    step = IsotonicRegression(out_of_bounds="clip")
    yield (
        "isotonic",
        partial(get_recalibrator("isotonic").fit, p, y),
        "scikit-learn",
        partial(step.fit, score, y),
    )
    line = LogisticRegression(C=np.inf)
    z = np.log(score / (1 - score))[:, None]
    for name in ("temperature", "default"):
        recalibrator = get_recalibrator(name)
        theirs = partial(line.fit, z, y)
        yield (
            f"{name}, two classes",
            partial(recalibrator.fit, p, y),
            "logistic regression",
            theirs,
        )
    p, y = make_overconfident(5, 500)
    line = LogisticRegression(C=np.inf, max_iter=500)
    for name in ("default", "auto"):
        recalibrator = get_recalibrator(name)
        theirs = partial(line.fit, np.log(p), y)
        yield (
            f"{name}, five classes",
            partial(recalibrator.fit, p, y),
            "logistic regression",
            theirs,
        )


def of_models():
    X, y = make_classification(6000, 20, n_informative=10, n_classes=5, random_state=0)
    classifier = LogisticRegression(max_iter=500).fit(X[:3000], y[:3000])
    frozen, one = FrozenEstimator(classifier), X[:1]
    alone = partial(many, classifier, one)
    for name in ("default", "auto"):
        model = CalibratedModel(frozen, name).fit(X[3000:], y[3000:])
        yield f"one row, {name}", partial(many, model, one), "the classifier", alone
    ours, theirs = CalibratedModel(frozen, "platt"), CalibratedClassifierCV(frozen)
    yield (
        "CalibratedModel by Platt scaling",
        partial(ours.fit, X, y),
        "scikit-learn",
        partial(theirs.fit, X, y),
    )


def many(model, row, calls=100):
    for _ in range(calls):
        model.predict_proba(row)


def run(words):
    subprocess.run(words, check=True, capture_output=True)


def seconds(call, clock):
    before = clock()
    call()
    return clock() - before


def spent():
    """Time of the processor, that of child processes included."""
    both = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def ratio(ours, unit, clock, turns=5):
    """The least times of both, in turns; the first of each, which may compile, does not count."""
    ours(), unit()
    times = [[seconds(ours, clock), seconds(unit, clock)] for _ in range(turns)]
    least = np.min(times, axis=0)
    return least[0] / least[1]


def usual(ours, unit, clock):
    """Return the ratio to commit: the median of several."""
    return float(np.median([ratio(ours, unit, clock) for _ in range(RUNS)]))


def attempted(ours, unit, clock, most):
    """The least ratio of some attempts; the first that is at most `most` is the last."""
    found = np.inf
    for _ in range(ATTEMPTS):
        found = min(found, ratio(ours, unit, clock))
        if found <= most:
            break
    return found


def measured(column, write):
    """Measure all jobs, in this process, whose threads the column names."""
    table = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    known = {row["job"]: row for row in csv.DictReader(table)}
    clock = spent if column == "one_thread" else time.perf_counter
    rows, slower = [], []
    for job, ours, unit, theirs in jobs():
        row = {"job": job, "unit": unit} | known.get(job, {})
        before = float(row.get(column) or np.inf)
        if write:
            found = usual(ours, theirs, clock)
        else:
            found = attempted(ours, theirs, clock, MOST * before)
        slower += [job] if found > MOST * before else []
        rows.append(
            {name: row.get(name) for name in COLUMNS} | {column: f"{found:.3g}"}
        )
        said = (
            ""
            if before == np.inf
            else f", {found / before:.2f} times the committed {before}"
        )
        print(f"{job}: {found:.3g} of {unit}{said}", flush=True)
    if write:
        runner.write(TABLE, rows, COLUMNS)
        return
    if missing := [
        row["job"] for row in rows if not known.get(row["job"], {}).get(column)
    ]:
        sys.exit(
            f"expected a committed ratio for each job, got none for {missing}. Run --write."
        )
    if slower:
        sys.exit(
            f"expected at most {MOST} times the committed ratios, got more for {slower}"
        )


def main():
    write = "--write" in sys.argv
    if sys.argv[-1] in THREADS:
        measured(sys.argv[-1], write)
        return
    failed = 0
    # Without compiled files each start of Python would compile the package again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for column, threads in THREADS.items():
        settings = dict.fromkeys(
            (f"{name}_NUM_THREADS" for name in LIBRARIES), str(threads)
        )
        command = [
            sys.executable,
            str(TABLE.parents[1] / "run.py"),
            "gate",
            *sys.argv[1:],
            column,
        ]
        failed |= subprocess.run(
            command, env=os.environ | settings, check=False
        ).returncode
    sys.exit(failed)


if __name__ == "__main__":
    main()
