"""
Where a model is off
====================

The smooth calibration error comes with a witness: the function, of slope at most 1, that shows the
most of the miscalibration.
"""

import numpy as np

from sklearn_calib.displays import CumulativeDifferenceDisplay, WitnessDisplay
from sklearn_calib.metrics import lower_distance_interval, smooth_calibration_error

rng = np.random.default_rng(0)
p = rng.random(5000)
truth = p + 0.12 * np.sin(2 * np.pi * p)  # too low below 1/2, too high above
y = rng.random(5000) < truth

WitnessDisplay.from_predictions(y, p)

# %%
# The error is within a factor of two of the distance to calibration.

distance, bound = lower_distance_interval(y, p)
print(f"smooth calibration error {smooth_calibration_error(y, p):.4f}")
print(f"lower distance to calibration {distance:.4f} +- {bound:.4f}")

# %%
# Without any smoothing: the cumulative sum of label less prediction, in the order of the
# predictions. Its slope over any interval is the mean error there. The grey triangle has the height
# that calibrated predictions would hardly leave.

CumulativeDifferenceDisplay.from_predictions(y, p)
