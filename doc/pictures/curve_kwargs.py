"""Two models of rare events, each curve in a look of its own."""

import numpy as np
from scipy.special import expit

from sklearn_calib.displays import ReliabilityDisplay

rng = np.random.default_rng(0)
z = rng.normal(-3.5, 1.2, 5000)  # true log-odds
y = rng.binomial(1, expit(z))
models = {"old": expit(0.6 * z - 1), "new": expit(z + rng.normal(0, 0.3, len(z)))}
ReliabilityDisplay.from_predictions(
    y,
    models,
    strategy="spline",
    scale="logit",
    bands="confidence",
    curve_kwargs=[
        {"color": "0.5", "linestyle": "--"},
        {"color": "tab:green", "label": "this year's"},
    ],
)
