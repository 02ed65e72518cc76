"""Largest differences between what methods predict and what their exported maps give.

Each file ``target_<name>.py`` beside this one is a column: a function
``predict(document, scores)`` gives probabilities of shape (n_rows, n_classes) for
probabilities, or None where the target does not take the map. To import it may raise
ImportError where a program is missing.

Rows: 4000 new ones, the same in float32, the corners, rows next to them down to 5e-324,
the centre; rows in which a class has the knots of the map's tables and the four numbers
around each. The last digits of a row at an edge decide: "steps beside" counts the rows
to which a target gives what the map gives with probabilities that differ by 4e-16, and
no column has their differences.
"""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "export")]

from export_cases import METHODS, TABULATED, at_knots, fitted, probabilities, tabulate  # noqa: E402

from sklearn_calib.export import to_dict  # noqa: E402
from sklearn_calib.export._document import to_document  # noqa: E402

CLASSES = (2, 4, 10)
KNOTS = 1000  # of each class, at most
ROWS = 1000  # for the fit; a table of an adaptive map grows fast
ROWS_OF_TABLES = 300
LAST_DIGITS, STEP = 4e-16, 1e-9


def targets():
    found = {}
    for path in sorted(HERE.glob("target_*.py")):
        try:
            found[path.stem.removeprefix("target_")] = importlib.import_module(
                path.stem
            ).predict
        except ImportError as error:
            print(f"skipped {path.stem}: {error}")
    return found


def rows_of(document, k):
    rows = probabilities(k, 4000)
    single = rows.astype(np.float32).astype(np.float64)
    rows = np.vstack([rows, single])
    return np.vstack(
        [rows / rows.sum(axis=1, keepdims=True), at_knots(document, KNOTS)]
    )


def is_beside(method, row, got):
    """Whether a result lies within those of a row whose probabilities differ in the last digits."""
    moved = row + LAST_DIGITS * np.vstack([np.eye(len(row)), -np.eye(len(row))])
    near = method.predict_proba(np.clip(moved, 0.0, 1.0))
    return bool(
        ((near.min(axis=0) - STEP <= got) & (got <= near.max(axis=0) + STEP)).all()
    )


def line(name, k, found):
    method = fitted(name, k, ROWS_OF_TABLES if name in TABULATED else ROWS)
    document = to_dict(method, **tabulate(name))
    rows = rows_of(to_document(document), k)
    expected = method.predict_proba(rows)
    out, beside = {"method": name, "classes": k}, 0
    for target, predict in found.items():
        got = predict(document, rows)
        if got is None:
            out[target] = ""
            continue
        error = np.abs(np.asarray(got) - expected).max(axis=1)
        excused = np.array(
            [
                e > STEP and is_beside(method, *r)
                for e, *r in zip(error, rows, got, strict=True)
            ]
        )
        out[target] = f"{error[~excused].max():.1e}"
        beside = max(beside, int(excused.sum()))
    out |= {"steps beside": beside, "rows": len(rows)}
    print(out, flush=True)
    return out


def main():
    found = targets()
    chosen = sys.argv[1:] or METHODS
    lines = [line(name, k, found) for name in chosen for k in CLASSES]
    if chosen is METHODS:
        with open(HERE / "differences.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(
                file,
                ["method", "classes", *found, "steps beside", "rows"],
                lineterminator="\n",
            )
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
