"""`internal_validation` beside rms::validate on the same resamples, and beside pminternal's page.

``python benchmarks/validation/internal_against_r.py`` writes tests/data/internal_r.json
(rows, resamples and numbers of R) and internal_differences.csv; it needs Rscript with
rms, which Debian packages.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_calib.inference import internal_validation
from sklearn_calib.inference._refits import RepeatedFits

HERE = Path(__file__).parent
KEPT = HERE.parents[1] / "tests" / "data" / "internal_r.json"
sys.path.insert(0, str(HERE.parent))
import runner  # noqa: E402

RESAMPLES = 40
MODEL = LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky", max_iter=200)
NAMES = {"Dxy": "AUC", "Intercept": "intercept", "Slope": "slope", "B": "Brier"}
COLUMNS = {"index.orig": "apparent", "index.corrected": "corrected"}
#: What pminternal's start page prints for its example of 800 rows and 100 resamples.
PRINTED = {
    "AUC": (0.8567, 0.8474),
    "Brier": (0.1423, 0.1477),
    "intercept": (0.0, -0.017),
    "slope": (1.0, 0.947),
}
EXAMPLE = """
set.seed(2345); n <- 800; p <- 10
X <- matrix(rnorm(n * p), nrow = n, ncol = p); LP <- -1 + apply(X[, 1:5], 1, sum)
y <- rbinom(n, 1, plogis(LP)); write.csv(data.frame(X, y), FILE, row.names = FALSE)
"""


def example():
    """150 rows of five features, two of them noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 5)).round(2)
    chance = expit(X @ [1, -1, 0.5, 0, 0] - 0.5)
    return X, (rng.random(len(X)) < chance).astype(int)


def of_r(X, y, folder):
    """The numbers of rms, and the rows that it drew."""
    head = [f"x{i + 1}" for i in range(X.shape[1])] + ["y"]
    rows, drawn = folder / "rows.csv", folder / "drawn.csv"
    table = [
        ",".join(map(repr, map(float, [*a, b]))) for a, b in zip(X, y, strict=True)
    ]
    rows.write_text("\n".join([",".join(head), *table]) + "\n", encoding="utf-8")
    command = [
        "Rscript",
        str(HERE / "internal.R"),
        str(rows),
        str(RESAMPLES),
        str(drawn),
    ]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers = {
        n: float(v) for n, v in (line.rsplit(" ", 1) for line in out.splitlines())
    }
    return numbers, np.loadtxt(drawn, delimiter=",", dtype=int)


def ours(X, y, drawn):
    """The same numbers, on the same resamples."""
    order = iter(drawn)
    with mock.patch.object(
        RepeatedFits, "_draw_bootstrap_row_indices", lambda self, rng: next(order)
    ):
        found = internal_validation(MODEL, X, y, n_resamples=len(drawn))
    numbers = {
        f"{name} {column}": getattr(found[measure], field)
        for name, measure in NAMES.items()
        for column, field in COLUMNS.items()
    }
    for column in COLUMNS:
        numbers[f"Dxy {column}"] = 2 * numbers[f"Dxy {column}"] - 1
    shrunk = found.shrinkage("heuristic", n_parameters=X.shape[1])
    return {**numbers, "heuristic slope": shrunk.slope_}


def beside_pminternal(folder):
    """Its example, drawn by R; the resamples are others, so that digits differ by chance."""
    file = folder / "example.csv"
    code = EXAMPLE.replace("FILE", json.dumps(str(file)))
    subprocess.run(["Rscript", "-e", code], check=True)
    table = np.genfromtxt(file, delimiter=",", skip_header=1)
    found = internal_validation(
        MODEL, table[:, :-1], table[:, -1].astype(int), n_resamples=1000
    )
    for name, printed in PRINTED.items():
        for field, value in zip(("apparent", "corrected"), printed, strict=True):
            yield f"pminternal {name} {field}", getattr(found[name], field), value


def main():
    X, y = example()
    with tempfile.TemporaryDirectory() as folder:
        theirs, drawn = of_r(X, y, Path(folder))
        own = ours(X, y, drawn)
        pairs = [(f"rms {name}", own[name], theirs[name]) for name in own]
        pairs += beside_pminternal(Path(folder))
    rows = [
        {
            "quantity": name,
            "ours": f"{a:.10g}",
            "R": f"{b:.10g}",
            "difference": f"{abs(a - b):.1e}",
        }
        for name, a, b in pairs
    ]
    runner.write(HERE / "internal_differences.csv", rows)
    command = "python benchmarks/validation/internal_against_r.py"
    kept = {"X": X.tolist(), "y": y.tolist(), "drawn": drawn.tolist(), "R": theirs}
    KEPT.write_text(json.dumps({"command": command, **kept}) + "\n", encoding="utf-8")
    for row in rows:
        print(*row.values(), sep="  ")


if __name__ == "__main__":
    main()
