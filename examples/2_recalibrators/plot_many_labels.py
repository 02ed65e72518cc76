"""
Rare labels borrow from the others
==================================

Twelve labels per row, the rarest in one row of forty. Their probabilities are too certain, each
label in its own way, and there are 200 rows to calibrate on.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import MultilabelCalibration

rng = np.random.default_rng(0)
n, rates = 200, 0.4 / np.arange(1, 17)[[0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15]]
slopes, shifts = 1 / (2 + 0.3 * rng.normal(size=12)), 0.3 * rng.normal(size=12)


def draw(n):
    true = 1.2 * rng.normal(size=(n, len(rates))) + logit(rates)
    return expit((true - shifts) / slopes), (
        rng.random(true.shape) < expit(true)
    ).astype(int)


proba, labels = draw(n)
new, new_labels = draw(20_000)
print("positive rows:", labels.sum(axis=0))

# %%
# One line on the log-odds for each label by itself, one for all labels, or lines drawn towards the
# common one. The strength is chosen by leave-one-out.

fits = {
    how: MultilabelCalibration(pooling=how).fit(proba, labels)
    for how in ("none", "all")
}
fits["shrink"] = shrunk = MultilabelCalibration().fit(proba, labels)
print("shrinkage:", shrunk.shrinkage_)
print(f"{'uncalibrated':15s} {log_loss(new_labels, new, multilabel='macro'):.4f}")
for how, fit in fits.items():
    print(
        f"{how:15s} {log_loss(new_labels, fit.predict_proba(new), multilabel='macro'):.4f}"
    )

# %%
# The slopes that were learned. By itself a rare label finds a slope far off; the common slope is
# wrong for all; the shrunken ones stay near the others where a label has few rows.

figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
place = np.arange(len(rates))
ax.plot(place, slopes, "k_", ms=18, mew=1.5, label="truth")
for (how, fit), move in zip(fits.items(), (-0.2, 0, 0.2), strict=True):
    found = [line.slope_ for line in fit.recalibrators_]
    ax.plot(place + move, found, "o", ms=5, label=how)
ax.set_xticks(place, [f"{count}" for count in labels.sum(axis=0)])
ax.set(xlabel="positive rows of the label", ylabel="slope")
ax.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14))

# %%
# Reliability diagrams of the first four labels, before and after, on new rows:

ReliabilityDisplay.from_predictions(
    new_labels[:, :4],
    {"before": new[:, :4], "after": shrunk.predict_proba(new)[:, :4]},
    multilabel="macro",
    n_bins=10,
)
plt.show()
