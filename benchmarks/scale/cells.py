"""Measures of a million rows in units of np.argsort of their scores, for six laws of scores.

One thread, process time, the least of five runs in turns. probcal, where it is
installed, runs in the same process; a measure that takes more than `LIMIT` seconds is
not run again.
"""

import time
from pathlib import Path

import numpy as np
import runner

from sklearn_calib import metrics

HERE = Path(__file__).parent
N, TURNS, LIMIT = 1_000_000, 5, 20


def laws():
    rng = np.random.default_rng(0)
    uniform, squeezed = rng.random(N), rng.beta(0.3, 5, N)
    return {
        "uniform": uniform,
        "beta(.3, 5)": squeezed,
        "near 1": 1 - squeezed,
        "ten scores": rng.integers(1, 11, N) / 11,
        "sorted": np.sort(uniform),
        "reversed": np.sort(uniform)[::-1].copy(),
    }


def jobs():
    ece = metrics.expected_calibration_error
    found = {
        "cells": lambda y, p: metrics.validate_predictions(y, p).problems()[0].cells,
        "expected_calibration_error": ece,
        "expected_calibration_error, equal widths": lambda y, p: ece(
            y, p, strategy="uniform"
        ),
        "smooth_calibration_error": metrics.smooth_calibration_error,
        "lower_distance_to_calibration": metrics.lower_distance_to_calibration,
        "convolved_calibration_error": metrics.convolved_calibration_error,
    }
    try:
        import probcal.metrics as peer
    except ModuleNotFoundError:
        return found
    found["probcal ece"] = peer.ece
    found["probcal smooth_ece"] = peer.smooth_ece
    return found


def seconds(function, *given):
    start = time.process_time()
    function(*given)
    return time.process_time() - start


def main():
    rows = []
    for law, p in laws().items():
        y = (np.random.default_rng(1).random(N) < p).astype(int)
        everything = jobs()
        least = dict.fromkeys(["argsort", *everything], np.inf)
        for _ in range(TURNS):
            least["argsort"] = min(least["argsort"], seconds(np.argsort, p))
            for name, job in [*everything.items()]:
                try:
                    with runner.at_most(LIMIT):
                        least[name] = min(least[name], seconds(job, y, p))
                except TimeoutError:
                    del everything[name]
        for name, best in least.items():
            row = {"seconds": f"{best:.4f}", "ratio": f"{best / least['argsort']:.2f}"}
            if not np.isfinite(best):
                row = {
                    "seconds": f"> {LIMIT}",
                    "ratio": f"> {LIMIT / least['argsort']:.0f}",
                }
            rows.append({"law": law, "job": name, **row})
            print(rows[-1], flush=True)
    runner.write(HERE / "cells.csv", rows, ["law", "job", "seconds", "ratio"])


if __name__ == "__main__":
    main()
