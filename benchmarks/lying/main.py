"""By how much dishonest predictions lower each calibration error on a finite sample."""

import sys
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

from sklearn_calib.metrics import all_metrics

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
TRUTHFUL = "averaged two bins"
MEASURES = {
    "ECE, equal mass": ("expected_calibration_error", {}),
    "ECE, equal width": ("expected_calibration_error", {"strategy": "uniform"}),
    "ECE, debiased": ("expected_calibration_error", {"debias": True}),
    "smooth error": ("smooth_calibration_error", {}),
    "distance to calibration": ("lower_distance_to_calibration", {}),
    "kernel error": ("kernel_calibration_error", {}),
    "cumulative error (ECCE)": ("cumulative_calibration_error", {}),
    TRUTHFUL: ("averaged_two_bin_error", {}),
    "averaged two bins, debiased": ("averaged_two_bin_error", {"debias": True}),
}
LAWS = {"Beta(2, 2)": (2.0, 2.0), "Beta(.5, 4.5)": (0.5, 4.5)}
FEW = 20  # rows, where the truthful measure alone is tried, with many draws
BATCHES = 20
JOBS = [
    (law, n, batch, draws)
    for law in LAWS
    for n, draws in ((FEW, 1000), (50, 150), (500, 40))
    for batch in range(BATCHES)
]


def merged(p, bins):
    """The mean of each of so many bins of equal mass."""
    out = np.empty_like(p)
    for rows in np.array_split(np.argsort(p), bins):
        out[rows] = p[rows].mean()
    return out


LIES = {
    "round to .05": lambda p: np.round(20 * p) / 20,
    "round to .1": lambda p: np.round(10 * p) / 10,
    "shrink by 5 %": lambda p: 0.95 * p + 0.05 * p.mean(),
    "shrink by 20 %": lambda p: 0.8 * p + 0.2 * p.mean(),
    "stretch log-odds by 5 %": lambda p: expit(1.05 * logit(p)),
    "stretch log-odds by 20 %": lambda p: expit(1.2 * logit(p)),
    "merge into 10": lambda p: merged(p, 10),
    "merge into 3": lambda p: merged(p, 3),
    "the mean": lambda p: np.full_like(p, p.mean()),
    "0 or 1": np.round,
}


def measures_of(n):
    """What is measured on n rows."""
    return {TRUTHFUL: MEASURES[TRUTHFUL]} if n == FEW else MEASURES


def values(law, n, batch, draws):
    """The measures of the truth and of each lie, for labels drawn from the truth."""
    rng = np.random.default_rng([n, batch, len(law)])
    measures = [all_metrics()[name] for name, _ in measures_of(n).values()]
    options = [options for _, options in measures_of(n).values()]
    found = np.empty((draws, 1 + len(LIES), len(measures)))
    for number in range(draws):
        truth = np.clip(rng.beta(*LAWS[law], n), 1e-12, 1 - 1e-12)
        y = (rng.random(n) < truth).astype(int)
        for at, p in enumerate([truth, *(lie(truth) for lie in LIES.values())]):
            found[number, at] = [
                measure(y, p, labels=[0, 1], **given)
                for measure, given in zip(measures, options, strict=True)
            ]
    return [found.tolist()]


def rows_of(law, n, found):
    """One row for each measure and lie."""
    for at, measure in enumerate(measures_of(n)):
        honest = found[:, 0, at]
        for number, lie in enumerate(LIES, 1):
            change = found[:, number, at] - honest
            error = change.std(ddof=1) / len(change) ** 0.5
            row = {
                "law": law,
                "n": n,
                "measure": measure,
                "lie": lie,
                "draws": len(change),
            }
            row |= {"truth": f"{honest.mean():.5f}", "change": f"{change.mean():+.6f}"}
            yield row | {
                "se": f"{error:.6f}",
                "percent": f"{100 * change.mean() / honest.mean():+.1f}",
            }


def best_lies(rows):
    """For each measure and law the lie that lowers it most, for a table of the guide."""
    for law in LAWS:
        for measure in MEASURES:
            out = {"law": law, "measure": measure}
            for n in (50, 500):
                found = [
                    r
                    for r in rows
                    if (r["law"], r["measure"], r["n"]) == (law, measure, n)
                ]
                row = min(found, key=lambda r: float(r["change"]))
                change, honest = float(row["change"]), float(row["truth"])
                gains = change < -2 * float(row["se"])
                shown = f"{-change:.2g}"
                if honest > 1e-3:  # others are 0 on average
                    shown += f" ({-float(row['percent']):.0f} %)"
                out[f"truth, n = {n}"] = row["truth"]
                out[f"lowered by, n = {n}"] = shown if gains else "no lie"
                out[f"best lie, n = {n}"] = row["lie"] if gains else ""
            yield out


def main():
    found = {}
    drawn = runner.rounds(HERE / "rounds.partial.jsonl", JOBS, values)
    for (law, n, _, _), part in zip(JOBS, drawn, strict=True):
        found.setdefault((law, n), []).append(np.array(part))
    rows = [
        row
        for (law, n), parts in found.items()
        for row in rows_of(law, n, np.concatenate(parts))
    ]
    runner.write(HERE / "results.csv", rows)
    summary = [*best_lies(rows)]
    runner.write(HERE / "summary.csv", summary)
    for row in summary:
        print(row)


if __name__ == "__main__":
    main()
