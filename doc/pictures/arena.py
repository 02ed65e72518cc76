"""The place of every registered method in the local arena, from the benchmark's table."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

from sklearn_calib.recalibrators import all_recalibrators

with Path("../../benchmarks/arena/leaderboard.csv").open(
    newline="", encoding="utf-8"
) as file:
    rows = [row for row in csv.DictReader(file) if row["rows"] == "all"]

figure, axes = plt.subplots(1, 2, figsize=(9, 6.2), sharex=True)
for ax, classes in zip(axes, ("two", "several"), strict=True):
    part = [
        r
        for r in rows
        if r["classes"] == classes and r["method"] in all_recalibrators()
    ]
    part.sort(key=lambda row: float(row["wins, log loss"]))
    mean, low, high = (
        [float(r[f"{n}, log loss"]) for r in part] for n in ("wins", "low", "high")
    )
    error = [[m - a for m, a in zip(mean, low, strict=True)]]
    error.append([b - m for m, b in zip(mean, high, strict=True)])
    names = [
        "no recalibration" if r["method"] == "identity" else r["method"] for r in part
    ]
    ax.barh(names, mean, xerr=error, color="#9cc4e4", error_kw={"elinewidth": 1.2})
    ax.axvline(mean[names.index("no recalibration")], color="black", ls="-.", lw=1)
    ax.tick_params(axis="y", labelsize=8)
    ax.set(
        title=f"{classes} classes",
        xlabel="share of the other methods beaten",
        xlim=(0, 1),
    )
