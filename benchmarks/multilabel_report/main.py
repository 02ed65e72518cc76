"""Do the joint p-value and the averages of a report on many labels keep what they say?"""

import sys
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from sklearn_calib.report import multilabel_report

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LAWS = {"independent": 0.0, "strongly dependent": 0.9, "all equal": 1.0}
SHAPES = {"common": (1, 4), "rare": (1, 60)}
LEVEL = 0.9
# of the sets of rows in a full run; in parts, so that it resumes
DRAWS, PARTS = (
    800,
    16,
)
MEASURES = ("log_loss", "expected_calibration_error")
JOBS = [
    (law, shape, n, labels, part)
    for part in range(PARTS)
    for n, labels in ((200, 5), (200, 40))
    for law in LAWS
    for shape in SHAPES
]


def rows_of(law, shape, n, labels, rng):
    """(labels, probabilities); where all are equal, so are the probabilities of a row."""
    rho = LAWS[law]
    P = rng.beta(*SHAPES[shape], size=(n, 1 if rho == 1 else labels))
    P = np.repeat(P, labels, axis=1) if rho == 1 else P
    z = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(
        size=(n, labels)
    )
    return (ndtr(z) < P).astype(int), P


def truth_of(shape):
    """The log loss to expect, of any number of labels."""
    p = np.random.default_rng(0).beta(*SHAPES[shape], size=1_000_000)
    return float(-(p * np.log(p) + (1 - p) * np.log1p(-p)).mean())


def measured(law, shape, n, labels, part):
    rows = []
    expected = truth_of(shape)
    for number in range(DRAWS // PARTS):
        rng = np.random.default_rng([n, labels, part, number])
        Y, P = rows_of(law, shape, n, labels, rng)
        found = multilabel_report(
            Y, P, n_resamples=0, measures=MEASURES[:1], level=LEVEL,
            random_state=number,
        )  # fmt: skip
        one = found.averages[0]
        ends = int(one.macro_low > expected), int(one.macro_high < expected)
        rows.append([float(found.p_value), *ends])
    return [{"law": law, "labels are": shape, "n": n, "labels": labels, "values": rows}]


def main():
    jobs = JOBS[: int(sys.argv[1])] if len(sys.argv) > 1 else JOBS
    groups = {}
    for row in runner.rounds(HERE / "rounds.partial.jsonl", jobs, measured):
        key = tuple(row[name] for name in ("law", "labels are", "n", "labels"))
        groups.setdefault(key, []).extend(row["values"])
    table = []
    for (law, shape, n, labels), values in groups.items():
        p, below, above = np.array(values, dtype=float).T
        row = {"labels of a row": law, "labels are": shape, "rows": n, "labels": labels}
        row |= {"draws": len(p)}
        row |= {
            f"p <= {level}": f"{np.mean(p <= level):.3f}" for level in (0.01, 0.05, 0.1)
        }
        row |= {"log loss held": f"{1 - np.mean(below + above):.3f}"}
        row |= {
            "truth below": f"{below.mean():.3f}",
            "truth above": f"{above.mean():.3f}",
        }
        table.append(row)
        print(row)
    runner.write(HERE / "results.csv", table, list(table[0]))


if __name__ == "__main__":
    main()
