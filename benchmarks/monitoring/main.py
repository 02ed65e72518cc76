"""The guarantees of `CalibrationMonitor`, and how fast it and its peers see a change."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from sklearn_calib.inference import cox_test, hosmer_lemeshow_test
from sklearn_calib.metrics import expected_calibration_error
from sklearn_calib.monitoring import CalibrationMonitor

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
STREAMS, RUNS = 2000, 500  # of the first family; of the others a quarter
CHUNKS = 20
ROWS = 3000  # of each stream for the level
SPREAD = 1.5  # standard deviation of the log-odds

# -- guarantees -----------------------------------------------------------------------------------


def independent(n, rng):
    p = expit(SPREAD * rng.normal(size=n))
    return (rng.random(n) < p).astype(int), p, {}


def adaptive(n, rng):
    """Probabilities that depend on the labels before them; each event makes the next likelier."""
    uniform, z, y, p = (
        rng.random(n),
        rng.normal(size=n),
        np.zeros(n, dtype=int),
        np.zeros(n),
    )
    heat = 0.0
    for row in range(n):
        p[row] = expit(z[row] + heat - 1)
        y[row] = uniform[row] < p[row]
        heat = 0.8 * heat + y[row]
    return y, p, {}


def rounded(n, rng):
    """Eleven values, 0 and 1 among them, as of a small forest."""
    p = rng.integers(0, 11, n) / 10
    return (rng.random(n) < p).astype(int), p, {}


def grouped(n, rng):
    y, p, _ = independent(n, rng)
    return y, p, {"groups": rng.integers(0, 5, n)}


def several(n, rng):
    p = rng.dirichlet(np.ones(4), n)
    return (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1), p, {}


FAMILIES = {
    "independent": (independent, {}),
    "adaptive": (adaptive, {}),
    "rounded, with 0 and 1": (rounded, {}),
    "five groups": (grouped, {"groups": range(5)}),
    "four classes, largest probability": (several, {}),
    "four classes, classwise": (several, {"multiclass": "classwise"}),
}


def power(chunk):
    """P-values against a slope of 0.8 by 1000 rows: of the monitor, and of Cox's test once."""
    found = []
    for number in range(STREAMS // 2 // CHUNKS):
        y, p = stream(
            0, 1000, CHANGES["slope 0.8"], np.random.default_rng([5, chunk, number])
        )
        found.append(
            [CalibrationMonitor("test").update(y, p).p_value_, cox_test(y, p).pvalue]
        )
    return found


def power_rows():
    found = runner.rounds(
        HERE / "power.partial.jsonl", [(c,) for c in range(CHUNKS)], power, processes=1
    )
    rows = []
    for name, p in zip(
        ("the monitor", "Cox's test, once"), np.array(found).T, strict=True
    ):
        share = (p <= 0.05).mean()
        row = {"what": "rejected at 0.05 within 1000 rows, slope 0.8", "family": name}
        row |= {"streams": len(p), "promised": "", "measured": f"{share:.4f}"}
        rows.append(
            row | {"standard_error": f"{np.sqrt(share * (1 - share) / len(p)):.4f}"}
        )
    return rows


def _count(total, family):
    """Streams of a chunk."""
    return total // CHUNKS // (1 if family == "independent" else 4)


def level(family, chunk):
    """How many streams of a chunk were ever rejected at 5 % and at 1 %."""
    draw, options = FAMILIES[family]
    smallest = []
    for number in range(_count(STREAMS, family)):
        y, p, more = draw(ROWS, np.random.default_rng([1, chunk, number]))
        smallest.append(
            CalibrationMonitor("test", **options).update(y, p, **more).p_value_
        )
    return [{"family": family, "smallest": smallest}]


def run_length(family, promised, chunk):
    """Rows until the first alarm of calibrated streams."""
    draw, options = FAMILIES[family]
    lengths = []
    for number in range(_count(RUNS, family)):
        rng = np.random.default_rng([2, chunk, number])
        monitor = CalibrationMonitor(average_run_length=promised, **options)
        while not monitor.alarms_:
            y, p, more = draw(500, rng)
            monitor.update(y, p, **more)
        lengths.append(monitor.alarms_[0].n_samples)
    return [{"family": family, "promised": promised, "lengths": lengths}]


def guarantees():
    jobs = [(family, chunk) for family in FAMILIES for chunk in range(CHUNKS)]
    found = runner.rounds(HERE / "level.partial.jsonl", jobs, level, processes=1)
    rows = []
    for family in FAMILIES:
        p = np.concatenate(
            [row["smallest"] for row in found if row["family"] == family]
        )
        for alpha in (0.05, 0.01):
            share = (p <= alpha).mean()
            error = np.sqrt(share * (1 - share) / len(p))
            row = {
                "what": f"rejected at {alpha:g} within {ROWS} rows",
                "family": family,
            }
            row |= {"streams": len(p), "promised": f"at most {alpha:g}"}
            rows.append(
                row | {"measured": f"{share:.4f}", "standard_error": f"{error:.4f}"}
            )
    lengths = [("independent", promised) for promised in (100, 1000, 10_000)]
    lengths += [(family, 1000) for family in FAMILIES if family != "independent"]
    jobs = [(*length, chunk) for length in lengths for chunk in range(CHUNKS)]
    found = runner.rounds(HERE / "lengths.partial.jsonl", jobs, run_length, processes=1)
    for family, promised in lengths:
        n = [
            row["lengths"]
            for row in found
            if (row["family"], row["promised"]) == (family, promised)
        ]
        n = np.concatenate(n)
        row = {
            "what": "mean rows to a false alarm",
            "family": family,
            "streams": len(n),
        }
        row |= {"promised": f"at least {promised}", "measured": f"{n.mean():.0f}"}
        rows.append(row | {"standard_error": f"{n.std() / np.sqrt(len(n)):.0f}"})
    return rows + power_rows()


# -- delays ---------------------------------------------------------------------------------------

WEEK, WINDOW = 200, 1000  # rows
GOOD, BAD = 1000, 12_000  # rows before and after the change
LONG = 30_000  # rows of the calibrated streams by which thresholds are tuned
LENGTH = 10_000  # the mean run length of all
TUNING, DELAYS = 200, 300  # streams
CHANGES = {
    "slope 0.6": (0.6, 0.0),
    "slope 0.8": (0.8, 0.0),
    "shift 0.5": (1.0, 0.5),
    "shift 1": (1.0, 1.0),
}


def stream(good, bad, change, rng):
    """Labels and probabilities; after `good` rows the true log-odds are shift + slope * theirs."""
    p = expit(SPREAD * rng.normal(size=good + bad))
    slope, shift = change
    truth = np.r_[p[:good], expit(shift + slope * logit(p[good:]))]
    return (rng.random(good + bad) < truth).astype(int), p


def detector_path(y, p):
    """The detector's statistic after each row, never set back."""
    from sklearn_calib._kernels._logistic_grid import (
        COARSE_LINE_GRID,
        compute_line_gains_and_impossible,
    )

    gain, _ = compute_line_gains_and_impossible(
        np.log(np.column_stack([1 - p, p])), y == 1, COARSE_LINE_GRID
    )
    factor, prior = np.exp(gain), np.exp(COARSE_LINE_GRID.log_prior)
    state, path = np.zeros(len(prior)), np.empty(len(y))
    for row in range(len(y)):
        state += 1.0
        state *= factor[row]
        path[row] = total = prior @ state
        if total > 1e6:  # above all thresholds
            path[row:] = total
            break
    return np.arange(1, len(y) + 1), path


def weekly_path(y, p):
    """The p-value of Hosmer and Lemeshow's test of each week, inverted."""
    ends = np.arange(WEEK, len(y) + 1, WEEK)
    tests = [
        hosmer_lemeshow_test(y[end - WEEK : end], p[end - WEEK : end]) for end in ends
    ]
    return ends, np.array([1 / max(test.pvalue, 1e-300) for test in tests])


def rolling_path(y, p):
    """The ECE of the last 1000 rows, at the end of each week."""
    ends = np.arange(WINDOW, len(y) + 1, WEEK)
    return ends, np.array(
        [expected_calibration_error(y[e - WINDOW : e], p[e - WINDOW : e]) for e in ends]
    )


PATHS = {
    "CalibrationMonitor": detector_path,
    "Hosmer-Lemeshow, each week of 200 rows": weekly_path,
    "ECE of the last 1000 rows, each week": rolling_path,
}
DELTAS = tuple(float(f"{delta:.2g}") for delta in np.geomspace(0.1, 0.6, 9))


def first_of_path(path, y, p, thresholds):
    """The row of the first alarm for each threshold, -1 where there is none."""
    ends, values = path(y, p)
    highest = np.maximum.accumulate(values)
    place = np.searchsorted(highest, thresholds)
    return np.where(place < len(ends), np.append(ends, -1)[place], -1).tolist()


def first_of_adwin(y, p, deltas):
    from river.drift import ADWIN

    loss = -np.log(np.where(y == 1, p, 1 - p))
    found = []
    for delta in deltas:
        adwin, alarm = ADWIN(delta=delta), -1
        for row, value in enumerate(loss.tolist(), 1):
            adwin.update(value)
            if adwin.drift_detected:
                alarm = row
                break
        found.append(alarm)
    return found


def grid_of(method):
    if method == "CalibrationMonitor":
        return np.geomspace(2000, 20_000, 200)
    if method.startswith("Hosmer"):
        return np.geomspace(5, 500, 400)
    if method.startswith("ECE"):
        return np.linspace(0.02, 0.12, 400)
    return np.array(DELTAS)


def firsts(method, good, bad, change, chunk, streams, thresholds):
    """First alarms of a chunk of streams, for each threshold."""
    find = partial(first_of_path, PATHS[method]) if method in PATHS else first_of_adwin
    rows = []
    for number in range(streams // CHUNKS):
        rng = np.random.default_rng([3 + (change == "none"), chunk, number])
        y, p = stream(good, bad, CHANGES.get(change, (1.0, 0.0)), rng)
        rows.append(
            {"method": method, "change": change, "first": find(y, p, thresholds)}
        )
    return rows


def tune(method, chunk):
    return firsts(method, LONG, 0, "none", chunk, TUNING, grid_of(method))


def delay(method, threshold, change, chunk):
    return firsts(method, GOOD, BAD, change, chunk, DELAYS, [threshold])


def mean_run_length(first, rows):
    """Of alarms that come at a constant rate, from streams that end after some rows."""
    first = np.asarray(first)
    seen = np.where(first < 0, rows, first)
    return seen.sum() / max((first >= 0).sum(), 1)


def delays():
    methods = [*PATHS]
    try:
        import river  # noqa: F401
    except ImportError:
        print("skipped river, which is not installed")
    else:
        methods.append("ADWIN of river, on the log loss")
    jobs = [(method, chunk) for method in methods for chunk in range(CHUNKS)]
    found = runner.rounds(HERE / "tuning.partial.jsonl", jobs, tune, processes=1)
    rows, thresholds = [], {}
    for method in methods:
        first = np.array([row["first"] for row in found if row["method"] == method])
        lengths = np.array([mean_run_length(column, LONG) for column in first.T])
        place = int(np.abs(np.log(lengths / LENGTH)).argmin())
        thresholds[method] = float(grid_of(method)[place]), lengths[place]
    jobs = [
        (method, thresholds[method][0], change, chunk)
        for method in methods
        for change in CHANGES
        for chunk in range(CHUNKS)
    ]
    found = runner.rounds(HERE / "delays.partial.jsonl", jobs, delay, processes=1)
    for change in CHANGES:
        for method in methods:
            key = (method, change)
            first = np.array(
                [r["first"][0] for r in found if (r["method"], r["change"]) == key]
            )
            late = first[(first < 0) | (first > GOOD)]
            waited = np.where(late < 0, BAD, late - GOOD)
            never = " or more" if np.median(waited) >= BAD else ""
            far = np.quantile(waited, 0.9)
            row = {"change": change, "method": method, "streams": len(first)}
            row["mean_run_length"] = f"{thresholds[method][1]:.0f}"
            row["threshold"] = f"{thresholds[method][0]:.3g}"
            row["median_delay"] = f"{np.median(waited):.0f}{never}"
            row["delay_90"] = f"{far:.0f}" + (" or more" if far >= BAD else "")
            row["false_before"] = f"{((first > 0) & (first <= GOOD)).mean():.3f}"
            rows.append(row)
    return rows


# -- real predictions -----------------------------------------------------------------------------


def games():
    """Published probabilities of games in the order of their dates, one group per league."""
    if runner.data_folder() is None:
        print("skipped the games, which are not there")
        return []
    table = pd.read_csv(
        runner.data_folder() / "fivethirtyeight_games/fivethirtyeight_games.csv.gz"
    )
    table = table.sort_values("date", kind="stable")
    leagues = sorted(table["league"].unique())
    monitor = CalibrationMonitor(groups=leagues)
    monitor.update(
        table["target"], table["p"], groups=table["league"], time=table["date"]
    )
    print(monitor)
    rows = []
    for league in leagues:
        own = [alarm for alarm in monitor.alarms_ if alarm.stream == f"group {league}"]
        row = {"league": league, "games": int((table["league"] == league).sum())}
        row |= {"e_value": f"{monitor.e_values_[league]:.3g}"}
        row |= {
            "flagged": "yes" if league in monitor.flagged_ else "no",
            "alarms": len(own),
        }
        row["first_alarm"] = own[0].time if own else ""
        rows.append(row | {"meaning": own[0].meaning if own else ""})
    return rows


def main():
    for name, make in (("games", games), ("results", guarantees), ("delays", delays)):
        rows = make()
        if not rows:
            continue
        runner.write(HERE / f"{name}.csv", rows)
        for row in rows:
            print(row)


if __name__ == "__main__":
    main()
