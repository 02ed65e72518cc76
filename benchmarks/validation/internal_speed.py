"""What `internal_validation` costs beside the fits that it needs.

``python benchmarks/run.py validation/internal_speed`` writes internal_speed.csv: CPU
seconds, in turns within one process.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_calib.inference import internal_validation

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

N, FEATURES, RESAMPLES, TURNS = 1000, 20, 200, 3


def cpu_seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, FEATURES))
    y = (rng.random(N) < expit(0.6 * X[:, :6].sum(axis=1))).astype(int)
    model = LogisticRegression()
    samples = rng.integers(0, N, (RESAMPLES, N))

    def fits():
        for rows in samples:
            model.fit(X[rows], y[rows])

    jobs = {
        "fits alone": fits,
        "optimism": lambda: internal_validation(model, X, y, n_resamples=RESAMPLES),
        ".632+": lambda: internal_validation(
            model, X, y, n_resamples=RESAMPLES, method=".632+"
        ),
    }
    spent = {name: [] for name in jobs}
    for turn in range(TURNS + 1):
        for name, job in jobs.items():
            seconds = cpu_seconds(job)
            spent[name] += [seconds] * (turn > 0)  # the first one compiles and imports
    alone = np.array(spent["fits alone"])
    rows = [
        {
            "what": name,
            "cpu_s": f"{np.median(seconds):.3f}",
            "times_the_fits": f"{np.median(np.array(seconds) / alone):.2f}",
            "bar": "1.5" if name == "optimism" else "",
        }
        for name, seconds in spent.items()
    ]
    path = Path(__file__).with_name("internal_speed.csv")
    runner.write(path, rows)
    for row in rows:
        print(*row.values(), sep="  ")


if __name__ == "__main__":
    main()
