"""The binned error of perfect predictions is not 0, and falls with the number of rows."""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.metrics import calibration_error

rng = np.random.default_rng(0)
sizes = np.geomspace(100, 30_000, 12).astype(int)
found = {"plain": [], "debiased": []}
for n in sizes:
    errors = []
    for _ in range(20):
        p = rng.random(n)
        y = rng.random(n) < p
        errors.append(
            [calibration_error(y, p, debias=debias) for debias in (False, True)]
        )
    for name, column in zip(found, np.transpose(errors), strict=True):
        found[name].append(column.mean())

figure, ax = plt.subplots(figsize=(5.5, 3))
for name, values in found.items():
    ax.plot(sizes, values, "o-", ms=3, label=name)
ax.set(xscale="log", xlabel="rows", ylabel="expected calibration error, 15 bins")
ax.set_title("predictions that are calibrated")
ax.set_ylim(0)
ax.legend(frameon=False)
