"""Three models of the same events: calibrated, too sure, and saying nothing."""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import log_loss

rng = np.random.default_rng(0)
z = rng.normal(scale=1.5, size=5000)
truth = 1 / (1 + np.exp(-z))
y = rng.random(len(z)) < truth
models = {
    "calibrated": truth,
    "overconfident": 1 / (1 + np.exp(-2.5 * z)),
    "the base rate for every row": np.full(len(z), y.mean()),
}

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), sharey=True)
for ax, (name, p) in zip(axes, models.items(), strict=True):
    ReliabilityDisplay.from_predictions(y, p, n_bins=10, ax=ax)
    ax.set_title(f"{name}\nlog loss {log_loss(y, p):.3f}")
    if legend := ax.get_legend():
        legend.remove()
# the labels below are outside
figure.set_layout_engine("constrained", rect=(0, 0.13, 1, 0.87))
