"""
What recalibrators do to a probability
======================================

Each method learns a map from predicted to calibrated probability. Here the truth is known: labels
are drawn with a probability
that is a distorted version of the prediction.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.recalibrators import all_recalibrators

rng = np.random.default_rng(0)
p = rng.beta(0.8, 1.2, 600)


def truth(p):
    return 0.08 + 0.75 * p**2 * (3 - 2 * p)


y = rng.random(600) < truth(p)
grid = np.linspace(0, 1, 501)

# %%
# The combinators (one-vs-rest and so on) are left out: for two classes they are the method they
# combine.

methods = {
    name: cls()
    for name, cls in all_recalibrators().items()
    if "recalibrator" not in cls().get_params()
}
figure, axes = plt.subplots(2, 4, figsize=(12, 6.4), sharex=True, sharey=True, layout="constrained")
for ax, (name, method) in zip(axes.flat, methods.items(), strict=False):
    method.fit(p, y)
    ax.plot(grid, truth(grid), color="0.7", lw=4, label="truth")
    ax.plot(grid, method.predict_proba(grid)[:, 1], label="learned")
    if hasattr(method, "predict_interval"):
        ax.fill_between(grid, *method.predict_interval(grid).T, alpha=0.3, label="interval")
    ax.set_title(name)
    ax.legend(frameon=False, loc="upper left")
for ax in axes.flat[len(methods) :]:
    ax.remove()
figure.supxlabel("predicted probability")
figure.supylabel("recalibrated probability")
