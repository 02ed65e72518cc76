"""Structured fits beside probmetrics', with the default threads and with one.

``python benchmarks/threads/structured.py``, with probmetrics installed: 10,000 rows of
10 and 100 classes, medians of five fits in turns; each setting of threads in a process
of its own.
"""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SETTINGS = [f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")]
ROWS, CLASSES, TURNS = 10_000, (10, 100), 5


def problem(k):
    import numpy as np
    from scipy.special import softmax

    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(ROWS, k))
    y = (z * rng.uniform(0.6, 1.4, k) + rng.gumbel(size=(ROWS, k))).argmax(axis=1)
    return softmax(2.5 * z, axis=1), y


def seconds(function):
    """Of a clock and of the processor."""
    start = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def measured(threads):
    import numpy as np
    import torch
    from probmetrics.calibrators import get_calibrator

    from sklearn_calib.recalibrators import (
        StructuredMatrixScaling,
        StructuredVectorScaling,
    )

    logging.disable(logging.INFO)
    if threads == "one":
        torch.set_num_threads(1)
    for k in CLASSES:
        p, y = problem(k)
        for name, method in (
            ("svs", StructuredVectorScaling),
            ("sms", StructuredMatrixScaling),
        ):
            pair = [
                lambda method=method, p=p, y=y: method().fit(p, y),
                lambda name=name, p=p, y=y: get_calibrator(name).fit(p, y),
            ]
            for function in pair:
                function()  # compiles
            times = [[seconds(function) for function in pair] for _ in range(TURNS)]
            (ours, our_cpu), (theirs, their_cpu) = np.median(times, axis=0)
            row = {"method": name, "classes": k, "threads": threads}
            row |= {"ours_s": f"{ours:.4f}", "theirs_s": f"{theirs:.4f}"}
            row |= {
                "ratio": f"{theirs / ours:.2f}",
                "ratio_of_cpu": f"{their_cpu / our_cpu:.2f}",
            }
            print(json.dumps(row), flush=True)


def main():
    if len(sys.argv) > 1:
        measured(sys.argv[1])
        return
    rows = []
    for threads in ("default", "one"):
        given = {
            name: value for name, value in os.environ.items() if name not in SETTINGS
        }
        given |= dict.fromkeys(SETTINGS, "1") if threads == "one" else {}
        call = [sys.executable, "-W", "ignore", __file__, threads]
        done = subprocess.run(
            call, env=given, check=True, stdout=subprocess.PIPE, text=True
        )
        rows += [
            json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"
        ]
    sys.path.insert(0, str(HERE.parent))
    import runner

    runner.write(HERE / "structured.csv", rows)
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
