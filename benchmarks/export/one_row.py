"""One row at a time: `predict_proba` and the Python function that `to_code` writes, each method.

Microseconds of a call, the shortest of 200 in a row, and milliseconds to write and load
the function. Both are compared on 500 rows before: `difference` is the largest.
"""

import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "export")]

import runner  # noqa: E402
from export_cases import DEFAULTS, TABULATED, fitted, probabilities, tabulate  # noqa: E402
from other_languages import python_function  # noqa: E402

from sklearn_calib.export import to_dict  # noqa: E402

CALLS = 200
ROWS = 1000
ROWS_OF_TABLES = 300


def microseconds(function):
    """The shortest of many calls."""
    spent = []
    for _ in range(CALLS):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    return f"{1e6 * min(spent):.1f}"


def line(name, k):
    method = fitted(name, k, ROWS_OF_TABLES if name in TABULATED else ROWS)
    rows = probabilities(k)
    start = time.perf_counter()
    calibrate = python_function(to_dict(method, **tabulate(name)))
    written = time.perf_counter() - start
    found = np.array([calibrate(row) for row in rows.tolist()])
    one, numbers = rows[:1], rows[0].tolist()
    return {
        "method": name,
        "classes": k,
        "predict_proba us": microseconds(lambda: method.predict_proba(one)),
        "function us": microseconds(lambda: calibrate(numbers)),
        "to write it ms": f"{1e3 * written:.0f}",
        "difference": f"{np.abs(found - method.predict_proba(rows)).max():.1e}",
    }


def main():
    lines = [line(name, k) for name in DEFAULTS for k in (2, 4)]
    for one in lines:
        print(one)
    runner.write(HERE / "one_row.csv", lines)


if __name__ == "__main__":
    main()
