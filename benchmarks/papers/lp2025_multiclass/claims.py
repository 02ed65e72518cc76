"""The claims of the theorem in 96 configurations: error, iterations, squared error."""

import warnings

import numpy as np
import pandas as pd
import setting

from sklearn_calib.recalibrators import MulticlassBinning

ROWS = {3: 400_000, 10: 400_000, 100: 50_000}
TARGETS = [
    (np.inf, 0.1), (np.inf, 0.05), (np.inf, 0.02), (np.inf, 0.01),
    (4.0, 0.1), (2.0, 0.2), (2.0, 0.1), (2.0, 0.05),
]  # fmt: skip


def one(k, family, p, epsilon):
    warnings.simplefilter("ignore")
    p = float(p)
    predicted, _, y = setting.draw(family, ROWS[k], k, 1)
    new, new_truth, _ = setting.draw(family, min(ROWS[k], 200_000), k, 2)
    model = MulticlassBinning.paper(p, epsilon).fit(predicted, y)
    after = model.predict_proba(new)
    levels = model.n_levels_
    squared = ((after - new_truth) ** 2 - (new - new_truth) ** 2).sum(axis=1).mean()
    kept = (
        MulticlassBinning.paper(p, epsilon, keep=True)
        .fit(predicted, y)
        .predict_proba(new)
    )
    before_error = setting.true_error(new, new_truth, p, levels)
    row = {
        "k": k,
        "predictor": family,
        "p": p,
        "epsilon": epsilon,
        "levels": levels,
        "heavy cells": len(model.bins_),
        "iterations": model.n_iter_,
        "merges": model.n_merges_,
        "error before": before_error,
        "error after": setting.true_error(after, new_truth, p, levels),
        "iterations * beta^2": model.n_iter_ * model.beta_**2,
        "squared error, change": squared,
        "the same, keep=True": ((kept - new_truth) ** 2 - (new - new_truth) ** 2)
        .sum(axis=1)
        .mean(),
    }
    return [{name: v if isinstance(v, str) else float(v) for name, v in row.items()}]


def main():
    jobs = [
        (k, f, str(p), e) for k in ROWS for f in setting.FAMILIES for p, e in TARGETS
    ]
    path = setting.HERE / "claims.partial.jsonl"
    rows = setting.runner.rounds(path, jobs, one)
    table = pd.DataFrame(rows)
    met = table["error after"] <= table["epsilon"]
    summary = [
        ("configurations", len(table)),
        ("error of the population at most epsilon", int(met.sum())),
        (
            "largest error / epsilon",
            f"{(table['error after'] / table['epsilon']).max():.2f}",
        ),
        ("above epsilon before", int((table["error before"] > table["epsilon"]).sum())),
        ("no iteration at all", int((table["iterations"] == 0).sum())),
        ("no heavy cell", int((table["heavy cells"] == 0).sum())),
        ("most iterations * beta^2", f"{table['iterations * beta^2'].max():.3f}"),
        ("squared error grew", int((table["squared error, change"] > 1e-9).sum())),
        ("by at most", f"{table['squared error, change'].max():.4f}"),
        (
            "it grew with keep=True by at most",
            f"{table['the same, keep=True'].max():.4f}",
        ),
    ]
    summary = [{"what": what, "value": value} for what, value in summary]
    print(pd.DataFrame(summary).to_string(index=False))
    setting.runner.write(
        setting.HERE / "claims_summary.csv", summary, ["what", "value"]
    )
    shown = table.round(4).to_dict("records")
    setting.runner.write(setting.HERE / "claims.csv", shown)


if __name__ == "__main__":
    main()
