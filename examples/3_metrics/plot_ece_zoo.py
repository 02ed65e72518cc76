"""
One name, four numbers
======================

"The" expected calibration error depends on the bins, on what is compared in each bin, and on how
the bins are averaged. Here all versions are options of one function.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.metrics import calibration_error

rng = np.random.default_rng(0)
n = 2000
p = rng.beta(0.5, 2.0, n)
y = rng.random(n) < p**1.2
proba = np.column_stack([1 - p, p])

# %%
# Ten or fifteen bins, of equal width or equal mass, of the positive class or of the confidence,
# debiased or not:

versions = {
    "equal width, positive class": {"strategy": "uniform"},
    "equal width, confidence": {"strategy": "uniform", "multiclass": "confidence"},
    "equal mass, positive class": {},
    "equal mass, bins weighted equally": {"bin_weight": "equal", "n_bins": 100},
    "equal mass, debiased": {"debias": True},
    "equal mass, root mean square": {"norm": "l2"},
    "equal mass, maximum": {"norm": "max"},
}
for name, options in versions.items():
    print(f"{name:35s} {calibration_error(y, proba, **{'n_bins': 15, **options}):.4f}")

# %%
# The number of bins is a choice too. The plain error of *perfect* predictions grows with it; the
# debiased one does not.

bins = np.unique(np.geomspace(2, 500, 25).astype(int))
perfect = rng.random(n) < p
figure, ax = plt.subplots(layout="constrained")
for label, debias in (("plain", False), ("debiased", True)):
    errors = [
        calibration_error(perfect, p, n_bins=int(b), norm="l2", debias=debias)
        for b in bins
    ]
    ax.plot(bins, errors, "o-", ms=3, label=label)
ax.set(
    xscale="log", xlabel="number of bins", ylabel="root mean square calibration error"
)
ax.set_title("predictions that are calibrated")
ax.legend(frameon=False)
