"""How many times faster than the other package, from the table of the benchmark."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

table = Path("../../benchmarks/peers/results.csv")
with table.open(encoding="utf-8", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["ratio"]]
peers = list(dict.fromkeys(row["peer"] for row in rows))

figure, ax = plt.subplots(figsize=(6.5, 2.6))
for place, peer in enumerate(peers[::-1]):
    ratios = [float(row["ratio"]) for row in rows if row["peer"] == peer]
    ax.plot(ratios, [place] * len(ratios), "o", alpha=0.6, label=peer)
ax.axvline(1, color="0.35", lw=1, ls="--")
ax.set(
    xscale="log", xlabel="their time / our time, one point for each case of the table"
)
ax.set_yticks(range(len(peers)), peers[::-1])
