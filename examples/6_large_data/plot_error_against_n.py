"""
What a summary costs in accuracy
================================

A `CalibrationSummary` keeps the weights of both labels at each score: exactly up to 65,536 distinct
scores, later in cells. Here its smooth calibration error is compared with that of the rows, from a
thousand rows to a million, beside what the choice of the rows leaves open.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.metrics import smooth_calibration_error
from sklearn_calib.summary import CalibrationSummary

rng = np.random.default_rng(0)
largest = 1_000_000
p = rng.beta(0.5, 4.0, largest)
y = rng.random(largest) < p**1.1

# %%
# The same rows once as they are and once as summaries, of the usual size and of the smallest.

sizes = np.unique(np.geomspace(1000, largest, 10).astype(int))
cells = (4096, 65_536)
CalibrationSummary().update(y[:10], p[:10]).measure(
    "smooth_calibration_error"
)  # compiles
error = np.zeros((2, len(sizes)))
seconds = np.zeros((3, len(sizes)))
for i, n in enumerate(sizes):
    start = time.perf_counter()
    exact = smooth_calibration_error(y[:n], p[:n])
    seconds[2, i] = time.perf_counter() - start
    for k, max_cells in enumerate(cells):
        start = time.perf_counter()
        summary = CalibrationSummary(max_cells).update(y[:n], p[:n])
        found = summary.measure("smooth_calibration_error")
        seconds[k, i] = time.perf_counter() - start
        error[k, i] = abs(found - exact)
print(f"{n} rows: {exact:.8f}")
print(f"{summary.n_cells} cells: {found:.8f}")

# %%
# As long as there are no more scores than cells, the difference is that of rounding. Beyond, it
# stays below what other rows of the same number would change, for which the dotted line stands; it
# falls as one over the root of the number of rows. The usual size is meant for that: a million rows
# leave open 3e-4, and the cells 1e-7.

noise = np.sqrt(np.mean((y - p) ** 2) / sizes)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.plot(sizes, noise, "k:", label="standard error of the mean of y - p")
for k, color in enumerate(("C1", "C0")):
    left.plot(
        sizes, error[k], "o-", ms=3, color=color, label=f"{cells[k]} cells, difference"
    )
left.set(xscale="log", yscale="log", xlabel="rows", ylabel="smooth calibration error")
left.set(ylim=(1e-17, 10), title="summary against rows")
for k, label in enumerate(("4096 cells", "65536 cells", "rows")):
    right.plot(sizes, seconds[k], "-o", ms=3, color=("C1", "C0", "k")[k], label=label)
right.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
right.set_title("from the rows to the value")
for ax in (left, right):
    ax.legend(
        frameon=False,
        fontsize=8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.15),
        ncols=2,
    )

# %%
# The summary is not made for one value: it is added to those of other days and machines, and each
# further measure, picture, interval or recalibrator takes it instead of the rows.
