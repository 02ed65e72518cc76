"""
What recalibrators do to a probability
======================================

Each method learns a map from predicted to calibrated probability. Here the truth is known: labels
are drawn with a probability that is a distorted version of the prediction.
"""

import numpy as np

from sklearn_calib.displays import CalibratingFunctionDisplay
from sklearn_calib.recalibrators import all_recalibrators

rng = np.random.default_rng(0)
p = rng.beta(0.8, 1.2, 600)


def truth(p):
    return 0.08 + 0.75 * p**2 * (3 - 2 * p)


y = rng.random(600) < truth(p)

# %%
# Parametric methods first. The combinators (one-vs-rest and so on) are left out, and so are the
# methods that differ from the shown ones for more than two classes only.

maps = [
    name
    for name, cls in all_recalibrators().items()
    if "recalibrator" not in cls().get_params()
    and name not in ("identity", "dirichlet", "matrix", "vector")
    and not name.startswith("structured")
]
maps.sort(key=lambda name: all_recalibrators()[name].capabilities.nonparametric_shape)
CalibratingFunctionDisplay.from_predictions(y, p, maps, truth=truth)

# %%
# One of each kind, larger:

two = ["platt", "isotonic"]
display = CalibratingFunctionDisplay.from_predictions(y, p, two, truth=truth)
# sphinx_gallery_thumbnail_number = 2

# %%
# Methods with a few parameters are smooth and need few rows, but bend as their formula allows. The
# others go where the data go: in steps (isotonic, histogram binning, Venn-Abers), in smooth rising
# curves (RPR, smooth isotonic), or without the promise to rise (nearly isotonic, trend filtering).
