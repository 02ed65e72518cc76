"""After an alarm: region, onset and what is enough, counted; and probcal's monitor beside it.

``python benchmarks/run.py monitoring/after [ROUNDS [TABLE ...]]``: rounds of 100
streams each, 20 by default; tables among region, diagnosis and peers, all by default.
It resumes; 0 rounds make the tables of the rounds that are there, of peers those that
all methods have.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit

from sklearn_calib._kernels._log_odds_cells import (
    FINE_LOG_ODDS_GRID,
    is_in_confidence_region,
    split_cells_into_atoms,
)
from sklearn_calib.monitoring import CalibrationMonitor

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
STREAMS = 100  # of each round
CHUNKS = int(sys.argv[1]) if len(sys.argv) > 1 else 20  # rounds
SPREAD = 1.5  # standard deviation of the log-odds

# -- the region -----------------------------------------------------------------------------------

ROWS = 3000
LOOKS = np.unique(np.geomspace(2, ROWS, 32).astype(int))
TRUTHS = {  # mean of the log-odds, their shift and slope
    "calibrated": (0.0, 0.0, 1.0),
    "shift 0.5": (0.0, 0.5, 1.0),
    "slope 0.6": (0.0, 0.0, 0.6),
    "2 % events, shift 0.7": (-5.0, 0.7, 1.0),
    "shift 0 to 1 along the rows": (0.0, 0.5, 1.0),
}


def region(truth, chunk):
    """Whether the pair was ever outside, is at the end, and how wide the region is."""
    mean, shift, slope = TRUTHS[truth]
    found = []
    for number in range(STREAMS):
        rng = np.random.default_rng([21, chunk, number])
        z = mean + SPREAD * rng.normal(size=ROWS)
        moved = np.linspace(0, 1, ROWS) if "along" in truth else shift
        y = rng.random(ROWS) < expit(moved + slope * z)
        counts, first, outside = 0, 0, []
        for look in LOOKS:
            new = slice(first, look)
            part = np.zeros(look - first, dtype=np.intp)
            counts, first = (
                counts
                + FINE_LOG_ODDS_GRID.sum_row_moments_by_part_and_cell(
                    z[new], y[new], part, 1
                )[0],
                look,
            )
            outside.append(
                not is_in_confidence_region(
                    split_cells_into_atoms(counts, FINE_LOG_ODDS_GRID),
                    0.95,
                    shift,
                    slope,
                )
            )
        row = {"truth": truth, "ever": any(outside), "end": outside[-1]}
        if number < 5:
            for n in (300, 3000):
                seen = (
                    CalibrationMonitor()
                    .update(y[:n].astype(int), expit(z[:n]))
                    .region()
                )
                for name in ("shift", "slope"):
                    low, high = getattr(seen, f"{name}_interval")
                    row[f"{name}_{n}"] = high - low
        found.append(row)
    return found


def there(name):
    """The rounds that have been run."""
    path = HERE / f"{name}.partial.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [tuple(json.loads(line)[0]) for line in lines]


def regions():
    jobs = (
        there("region")
        if not CHUNKS
        else [
            (truth, chunk)
            for chunk in range(CHUNKS)
            for truth in TRUTHS
            if "along" not in truth
            or chunk < (CHUNKS + 3) // 4  # of which nothing is promised
        ]
    )
    found = runner.rounds(HERE / "region.partial.jsonl", jobs, region, processes=1)
    rows = []
    for truth in TRUTHS:
        own = [row for row in found if row["truth"] == truth]
        ever = np.mean([row["ever"] for row in own])
        row = {"truth": truth, "streams": len(own), "ever_outside": f"{ever:.4f}"}
        row["standard_error"] = f"{np.sqrt(ever * (1 - ever) / len(own)):.4f}"
        row["outside_at_3000"] = f"{np.mean([r['end'] for r in own]):.4f}"
        for n in (300, 3000):
            for name in ("shift", "slope"):
                widths = [r[f"{name}_{n}"] for r in own if f"{name}_{n}" in r]
                row[f"{name}_width_{n}"] = f"{np.median(widths):.2f}"
        rows.append(row)
    return rows


# -- alarms ---------------------------------------------------------------------------------------

GOOD, BAD, BATCH, LATER = 1000, 3000, 100, 1000  # rows
CALM = 2000  # rows of a stream without a change
LENGTH = GOOD / 0.05  # so that false alarms before the change are some 5 %
CHANGES = {
    "no change": lambda z: z,
    "shift 0.5": lambda z: z + 0.5,
    "shift -1": lambda z: z - 1,
    "slope 0.6": lambda z: 0.6 * z,
    "shift 0.5, slope 0.6": lambda z: 0.6 * z + 0.5,
    "bent: slope 0.4 above 0, 1.6 below": lambda z: np.where(z > 0, 0.4, 1.6) * z,
}
ENOUGH = dict(
    zip(CHANGES, ("", "offset", "offset", "line", "line", "refit"), strict=True)
)


def stream(change, chunk, number):
    rng = np.random.default_rng([22, chunk, number])
    z = SPREAD * rng.normal(size=GOOD + BAD)
    truth = np.where(np.arange(GOOD + BAD) < GOOD, z, CHANGES[change](z))
    y, rows = (
        rng.random(GOOD + BAD) < expit(truth),
        CALM if change == "no change" else GOOD + BAD,
    )
    return y[:rows].astype(int), expit(z[:rows])


def detector(change, chunk):
    """The first alarm of each stream and its diagnosis; and that of 1000 rows later."""
    found = []
    for number in range(STREAMS):
        y, p = stream(change, chunk, number)
        monitor, row = CalibrationMonitor(average_run_length=LENGTH), {"change": change}
        for start in range(0, len(y), BATCH):
            monitor.update(y[start : start + BATCH], p[start : start + BATCH])
            if monitor.alarm_:
                break
        row["alarm"] = start + BATCH if monitor.alarms_ else -1
        if monitor.alarms_ and row["alarm"] > GOOD and change != "no change":
            seen = monitor.alarms_[0].diagnosis
            row |= {
                "onset": seen.onset,
                "interval": seen.onset_interval,
                "enough": seen.repair,
            }
            more = slice(row["alarm"], row["alarm"] + LATER)
            monitor.update(y[more], p[more])
            row["later"] = monitor.diagnose().repair
        found.append(row)
    return found


def test(change, chunk):
    """The rows at which the test of 5 % first rejects, at the end of a batch."""
    found = []
    for number in range(STREAMS):
        at = (
            CalibrationMonitor("test")
            .update(*stream(change, chunk, number))
            .rejected_at_
        )
        row = -1 if at is None else -(-at // BATCH) * BATCH
        found.append({"change": change, "alarm": row})
    return found


def probcal(change, chunk):
    """The same of probcal's monitor as it is by default, whose level is 5 %, too."""
    from probcal.monitor import CalibrationMonitor as Peer

    found = []
    for number in range(STREAMS):
        y, p = stream(change, chunk, number)
        monitor, alarm = Peer(alpha=0.05), -1
        for start in range(0, len(y), BATCH):
            if monitor.update(y[start : start + BATCH], p[start : start + BATCH]).alarm:
                alarm = start + BATCH
                break
        found.append({"change": change, "alarm": alarm})
    return found


METHODS = {
    f"CalibrationMonitor, detector, run length {LENGTH:.0f}": detector,
    "CalibrationMonitor, test, alpha 0.05": test,
    "probcal 0.4, alpha 0.05": probcal,
}


def found_by(method, same=()):
    """Rows of a method; without rounds those that are there, and those of the `same` methods."""
    find = METHODS[method]
    jobs = [(change, chunk) for change in CHANGES for chunk in range(CHUNKS)]
    if not CHUNKS:
        jobs = set(there(find.__name__)).intersection(
            *(there(METHODS[name].__name__) for name in same)
        )
    return runner.rounds(
        HERE / f"{find.__name__}.partial.jsonl", jobs, find, processes=1
    )


def peers():
    rows = []
    for method in METHODS:
        if method.startswith("probcal"):
            try:
                import probcal.monitor  # noqa: F401
            except ImportError:
                print("skipped probcal, which is not installed")
                continue
        found = found_by(method, METHODS)
        for change in CHANGES:
            first = np.array([row["alarm"] for row in found if row["change"] == change])
            if not len(first):
                continue
            early = (first > 0) & (first <= GOOD)
            row = {"change": change, "method": method, "streams": len(first)}
            row["false_before"] = f"{early.mean():.4f}"
            late = first[~early]
            waited = np.where(late < 0, BAD, late - GOOD)
            none = change == "no change"
            for name, share in (("median_delay", 0.5), ("delay_90", 0.9)):
                delay = np.quantile(waited, share, method="inverted_cdf")
                row[name] = "" if none else f"{delay}" + " or more" * bool(delay >= BAD)
            row[f"false_in_{CALM}"] = f"{(first > 0).mean():.4f}" if none else ""
            rows.append(row)
    return sorted(rows, key=lambda row: [*CHANGES].index(row["change"]))


def diagnoses():
    found = found_by(next(iter(METHODS)))
    rows = []
    for change, enough in ENOUGH.items():
        own = [row for row in found if row["change"] == change and "onset" in row]
        if not own:
            continue
        low, high = np.array([row["interval"] for row in own]).T
        off = np.array([row["onset"] for row in own]) - GOOD - 1
        inside = ((low <= GOOD + 1) & (high >= GOOD + 1)).mean()
        row = {"change": change, "alarms": len(own), "onset_covered": f"{inside:.4f}"}
        row["too_late"] = f"{(low > GOOD + 1).mean():.4f}"
        row["too_early"] = f"{(high < GOOD + 1).mean():.4f}"
        row["interval_width"] = f"{np.median(high - low + 1):.0f}"
        row |= {"median_error": f"{np.median(np.abs(off)):.0f}", "truth": enough}
        for name, key in (("at_alarm", "enough"), ("1000_later", "later")):
            for kind in ("offset", "line", "refit"):
                row[f"{kind}_{name}"] = f"{np.mean([r[key] == kind for r in own]):.3f}"
        rows.append(row)
    return rows


def main():
    tables = {"region": regions, "diagnosis": diagnoses, "peers": peers}
    for name in sys.argv[2:] or tables:
        rows = tables[name]()
        runner.write(HERE / f"{name}.csv", rows)
        for row in rows:
            print(row)


if __name__ == "__main__":
    main()
