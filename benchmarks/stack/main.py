"""The mixture that "auto" makes, beside each of its candidates and beside picking one of them."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import likelihoods
import runner
import split

from sklearn_calib.recalibrators import StackedCalibration

HERE = Path(__file__).parent
DATA = runner.data_folder()


def one_round(table, model, size, split):
    """Test log losses of one round: a row, or none where the table is too small."""
    found = likelihoods.one_round(table, model, size, split, DATA)
    if found is None:
        return []
    names = [str(name) for name in found["names"]]
    inside = found["inside"].astype(float)
    outside = np.maximum(found["outside"].astype(float), 1e-12)
    row = {"table": table, "model": model, "rows": size, "split": split}
    row |= {"classes": int(found["classes"]), "fewest": int(found["fewest"])}
    row |= {name: loss(p) for name, p in zip(names, inside.T, strict=True)}
    picked = np.log(outside).mean(axis=0).argmax()
    row["smallest loss of cross-validation"] = loss(inside[:, picked])
    row["equal weights"] = loss(inside.mean(axis=1))
    row["scikit-learn's sigmoid"] = row.get("platt of probabilities", np.nan)
    proba, y, calib, test = likelihoods.rows_of(table, model, size, split, DATA)
    for name, options in {"auto": {}, "auto, monotone": {"monotone": True}}.items():
        if options and row["classes"] > 2:
            continue
        method = StackedCalibration(**options)
        row[name] = loss(
            likelihoods.likelihood(method, proba, y, calib, test, row["classes"])
        )
        if not options:
            row["weights"] = ", ".join(
                f"{m} {w:.2f}" for m, w in method.weights_.items()
            )
    return [row]


def loss(p):
    return float(-np.log(np.maximum(p, np.finfo(float).eps)).mean())


def summary(table):
    """Excess over the best single method in %, clipped at 50; share of rounds hurt by over 1 %."""
    singles = (
        [*likelihoods.TWO] if (table.classes == 2).all() else [*likelihoods.SEVERAL]
    )
    others = [
        "auto",
        "auto, monotone",
        "smallest loss of cross-validation",
        "equal weights",
    ]
    rows = []
    for method in [*others, *singles]:
        if method not in table or table[method].isna().all():
            continue
        excess = 100 * (table[method] / table[singles].min(axis=1) - 1).clip(upper=0.5)
        hurt = 100 * (table[method] > 1.01 * table["identity"])
        groups = {
            "100 and more": table[table.rows >= 100],
            **dict(tuple(table.groupby("rows"))),
        }
        row = {"method": method}
        for size, part in groups.items():
            at = f"{excess[part.index].mean():.2f}, {hurt[part.index].mean():.1f} %"
            row[f"{size} rows ({len(part)} rounds)"] = at
        rows.append(row)
    return rows


def main():
    jobs = [job for job in likelihoods.jobs(DATA) if split.part_of(job[0]) == "judging"]
    table = pd.DataFrame(runner.rounds(HERE / "rounds.partial.jsonl", jobs, one_round))
    for two, name in ((True, "two.csv"), (False, "several.csv")):
        part = table[(table.classes == 2) == two]
        if len(part):
            rows = summary(part)
            runner.write(HERE / name, rows)
    kept = [
        "table",
        "model",
        "rows",
        "split",
        "classes",
        "fewest",
        "identity",
        "auto",
        "weights",
    ]
    runner.write(HERE / "rounds.csv", table[kept].round(5).to_dict("records"), kept)


if __name__ == "__main__":
    main()
