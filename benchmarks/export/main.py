"""Largest differences between what methods predict and what their exported maps give.

Each file ``target_<name>.py`` beside this one is a column: a function ``predict(document, scores)``
gives probabilities of shape (n_rows, n_classes) for probabilities, or None where the target does
not take the map. To import it may raise ImportError where a program is missing.

Rows: 4000 new ones, the same in float32, the corners, rows next to them down to 5e-324, the centre.
"""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "export")]

from export_cases import METHODS, TABULATED, fitted, probabilities, tabulate  # noqa: E402

from sklearn_calib.export import to_dict  # noqa: E402

CLASSES = (2, 3, 10)
ROWS = 1000  # for the fit; a table of an adaptive map grows fast
ROWS_OF_TABLES = 300


def targets():
    found = {}
    for path in sorted(HERE.glob("target_*.py")):
        try:
            found[path.stem.removeprefix("target_")] = importlib.import_module(path.stem).predict
        except ImportError as error:
            print(f"skipped {path.stem}: {error}")
    return found


def rows_of(k):
    rows = probabilities(k, 4000)
    single = rows.astype(np.float32).astype(np.float64)
    rows = np.vstack([rows, single])
    return rows / rows.sum(axis=1, keepdims=True)


def line(name, k, found):
    method = fitted(name, k, ROWS_OF_TABLES if name in TABULATED else ROWS)
    document, rows = to_dict(method, **tabulate(name)), rows_of(k)
    expected = method.predict_proba(rows)
    out = {"method": name, "classes": k}
    for target, predict in found.items():
        got = predict(document, rows)
        out[target] = "" if got is None else f"{np.abs(np.asarray(got) - expected).max():.1e}"
    print(out, flush=True)
    return out


def main():
    found = targets()
    chosen = sys.argv[1:] or METHODS
    lines = [line(name, k, found) for name in chosen for k in CLASSES]
    if chosen is METHODS:
        with open(HERE / "differences.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["method", "classes", *found], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
