"""The validation table beside R's rms, MASS, pROC, sandwich and loess on three data sets.

``python benchmarks/validation/against_r.py`` writes tests/data/validation_r.json
(numbers of R) and differences.csv; it needs Rscript with rms, MASS, pROC and sandwich,
which Debian packages.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib.inference import spiegelhalter_test, validation_summary

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "tests" / "data" / "validation_r.json"
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(HERE.parent))
import runner  # noqa: E402
from golden_sets import OF_VAL_PROB, golden_set  # noqa: E402


def breast_cancer():
    """Three features of scikit-learn's table; every second row for the fit."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, [1, 4, 8]]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], y[::2])
    return y[1::2], model.predict_proba(X[1::2])[:, 1].round(6)


def job_times():
    """Held-out probabilities of the shortest class of a table of run times; None if not here."""
    file = (
        (runner.data_folder() or Path("nowhere")) / "hpc_cv_probs" / "hpc_cv_probs.npz"
    )
    if not file.exists():
        return None
    with np.load(file) as table:
        return (table["labels"] == 0).astype(int), table["probs"][:, 0].clip(
            1e-6, 1 - 1e-6
        )


SETS = {"golden": golden_set, "breast cancer": breast_cancer, "job times": job_times}


def weights(n):
    """Of the weighted comparison."""
    return 1 + np.arange(n) % 3 / 2


def numbers_of_r(y, p):
    """What peers.R prints."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.csv")
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["y", "p", "w"])
            writer.writerows(
                (int(a), repr(float(b)), c)
                for a, b, c in zip(y, p, weights(len(y)), strict=True)
            )
        command = ["Rscript", str(HERE / "peers.R"), path]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in out.splitlines())
    }


def ours(y, p):
    """The same numbers of this package, by the names of peers.R."""
    found = validation_summary(y, p, n_resamples=1)
    wald = validation_summary(y, p, n_resamples=1, ci="wald")
    weighted = validation_summary(y, p, n_resamples=1, sample_weight=weights(len(y)))
    large, intercept, slope = (
        [table[name] for table in (found, wald, weighted)]
        for name in ("calibration in the large", "intercept", "slope")
    )
    numbers = {
        f"O/E {end}": getattr(found["O/E"], end) for end in ("estimate", "low", "high")
    }
    for name, (row, straight, _) in (
        ("large", large),
        ("intercept", intercept),
        ("slope", slope),
    ):
        numbers[f"{name} estimate"] = row.estimate
        numbers[f"{name} se"] = _error(straight)
        for end in ("low", "high"):
            numbers[f"{name} {end}"] = numbers[f"{name} confint {end}"] = getattr(
                row, end
            )
    for name, rows in (("Intercept", large), ("Slope", slope)):
        numbers |= {
            f"ci.2 {name} {end}": getattr(rows[1], end) for end in ("low", "high")
        }
        numbers[f"ci.2 {name}"] = rows[0].estimate
    numbers |= {
        **{
            f"rms {name}": getattr(found[row], at)
            for name, (row, at) in OF_VAL_PROB.items()
        },
        "rms C (ROC)": found["AUC"].estimate,
        "pROC auc": found["AUC"].estimate,
        "LR both": found["Cox chi-square"].estimate,
        "rms U:p": found["Cox chi-square"].pvalue,
        "rms S:z": spiegelhalter_test(y, p).statistic,
        "ci.2 Brier scaled": found["scaled Brier"].estimate,
        "log loss": found["log loss"].estimate,
        "weighted large": large[2].estimate,
        "weighted large se": _error(large[2]),
        "weighted slope": slope[2].estimate,
        "weighted slope se": _error(slope[2]),
    }
    for name in ("ICI", "E50", "E90", "Emax"):
        numbers |= {
            f"{surface} {name}": found[name].estimate
            for surface in ("direct", "interpolate")
        }
    return numbers


def _error(row):
    return (row.high - row.low) / 2 / 1.959963984540054


def main():
    kept, rows = {}, []
    for name, make in SETS.items():
        data = make()
        if data is None:
            print(f"skipped {name}: not in the folder of data")
            continue
        y, p = data
        theirs, own = numbers_of_r(y, p), ours(y, p)
        kept[name] = {"R": theirs}
        if name == "breast cancer":
            kept[name] |= {"y": y.tolist(), "p": p.tolist()}
        for quantity in theirs.keys() & own.keys():
            gap = abs(theirs[quantity] - own[quantity])
            rows.append(
                {
                    "set": name,
                    "n": len(y),
                    "quantity": quantity,
                    "ours": f"{own[quantity]:.10g}",
                    "R": f"{theirs[quantity]:.10g}",
                    "difference": f"{gap:.1e}",
                }
            )
    rows.sort(key=lambda row: (list(SETS).index(row["set"]), row["quantity"]))
    kept["command"] = "python benchmarks/validation/against_r.py"
    KEPT.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
    runner.write(HERE / "differences.csv", rows)
    for row in rows:
        print(*row.values(), sep="  ")


if __name__ == "__main__":
    main()
