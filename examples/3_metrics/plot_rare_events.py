"""
Pictures of rare events, and of several models
==============================================

One row in a hundred has the event. On the usual axes of a reliability diagram such probabilities
are a blot in the corner; on log-odds they fill the picture.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.displays import (
    DecompositionDisplay,
    MurphyDisplay,
    ReliabilityDisplay,
)

rng = np.random.default_rng(0)
risk = rng.normal(-5.3, 1.2, 60_000)  # true log-odds
y = (rng.random(len(risk)) < 1 / (1 + np.exp(-risk))).astype(int)
noisy = risk + rng.normal(0, 0.8, len(risk))
models = {
    "overconfident": 1 / (1 + np.exp(-(1.5 * risk + 2.5))),
    "fewer features": 1 / (1 + np.exp(-(0.7 * noisy - 1.5))),
}
print(f"{y.mean():.2%} of the rows have the event")

# %%
# On both axes below is the first model. Dots are bins with intervals for the true frequencies, the
# grey band is where they would lie if the model were calibrated.

name, p = next(iter(models.items()))
for scale in ("linear", "logit"):
    ReliabilityDisplay.from_predictions(y, p, name=name, scale=scale)

# %%
# A second model on the same axes takes the next colour.

first = ReliabilityDisplay.from_predictions(
    y, p, name=name, scale="logit", bands="confidence"
)
ReliabilityDisplay.from_predictions(
    y,
    models["fewer features"],
    name="fewer features",
    bands="confidence",
    ax=first.axes_,
)
plt.show()

# %%
# The Murphy diagram shows for whom which one is better: below 0, the second is better for those who
# act at that probability. A model that is better everywhere is better by every proper loss.

MurphyDisplay.from_predictions(y, models, difference=True)
plt.show()

# %%
# Why? The plane splits the losses: to the right what recalibration would remove, upwards what the
# model has. Recalibrated, the first model would be the better one.

DecompositionDisplay.from_predictions(y, models, kind="plane")
plt.show()
