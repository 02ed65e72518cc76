"""Equal width and equal mass: the same predictions, two diagrams."""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import calibration_error

rng = np.random.default_rng(0)
p = rng.beta(0.5, 2.0, 2000)
y = rng.random(2000) < p**1.2

figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.6), sharey=True)
names = {"uniform": "15 bins of equal width", "quantile": "15 bins of equal mass"}
for ax, (strategy, name) in zip(axes, names.items(), strict=True):
    ReliabilityDisplay.from_predictions(y, p, n_bins=15, strategy=strategy, ax=ax)
    error = calibration_error(y, p, n_bins=15, strategy=strategy)
    ax.set_title(f"{name}: ECE {error:.4f}")
    if legend := ax.get_legend():
        legend.remove()
# the labels below are outside
figure.set_layout_engine("constrained", rect=(0, 0.13, 1, 0.87))
