"""The processor's time of the first call on a fresh machine: an empty cache of kernels.

Each call is made twice in a process of its own with an empty ``NUMBA_CACHE_DIR``; the
second call is what all later ones take. Least of `RUNS` processes.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import runner

TABLE = Path(__file__).parent / "first_call.csv"
RUNS = 2
ROWS = 1000
REPORT = "sklearn_calib.report.calibration_report(y, p)"
FIT = "sklearn_calib.recalibrators.get_recalibrator('{}').fit(p, y).predict_proba(p)"
JOBS = [
    ("a report, two classes", 2, REPORT, "<= 4"),
    ("'auto', two classes", 2, FIT.format("auto"), "<= 4"),
    ("'auto', ten classes", 10, FIT.format("auto"), "<= 4"),
    ("'default', two classes", 2, FIT.format("default"), ""),
]
CODE = """
import json, time
begin = time.process_time()
import sklearn_calib.recalibrators, sklearn_calib.report
from sklearn_calib.datasets import make_overconfident
p, y = make_overconfident({classes}, {rows})
marks = [time.process_time()]
for _ in range(2):
    {call}
    marks.append(time.process_time())
print(json.dumps([marks[0] - begin, marks[1] - marks[0], marks[2] - marks[1]]))
"""


def measure_process(classes, call):
    """Return seconds of the imports, the first call and the second one."""
    code = CODE.format(classes=classes, rows=ROWS, call=call)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"NUMBA_CACHE_DIR": folder, "SKLEARN_CALIB_QUIET": "1"}
        out = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(out.stdout.splitlines()[-1])


def main():
    rows = []
    for job, classes, call, bar in JOBS:
        spent = np.array([measure_process(classes, call) for _ in range(RUNS)]).min(0)
        names = ("import_s", "first_s", "second_s")
        row = {"job": job, "rows": ROWS}
        row |= {name: f"{s:.2f}" for name, s in zip(names, spent, strict=True)}
        rows.append(row | {"bar": bar})
        print(rows[-1], flush=True)
    runner.write(TABLE, rows)


if __name__ == "__main__":
    main()
