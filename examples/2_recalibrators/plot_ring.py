"""
A support vector machine's scores: recalibrators beside each other
==================================================================

A support vector machine is trained on two hundred points on a ring, and its scores are recalibrated
on the same points, as in the first experiment of Wang, Li and Dang (2019). A hundred thousand new
points show what the recalibrated probabilities are worth.
"""

import numpy as np
from sklearn.svm import SVC

from sklearn_calib import canonical_proba
from sklearn_calib.displays import CalibratingFunctionDisplay
from sklearn_calib.metrics import brier_loss, expected_calibration_error, log_loss
from sklearn_calib.recalibrators import get_recalibrator

rng = np.random.default_rng(1)


def draw(n):
    y = np.repeat([0, 1], n // 2)
    radius = np.where(y, rng.beta(5, 2, n), rng.beta(2, 5, n))
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.sin(angle), radius * np.cos(angle)]), y


X, y = draw(200)
X_test, y_test = draw(100_000)
machine = SVC(gamma=0.5).fit(X, y)

# %%
# A support vector machine has margins, no probabilities. They are taken as log-odds; the
# recalibrators learn what is wrong with that.

scores = canonical_proba(machine.decision_function(X), kind="logits")
test_scores = canonical_proba(machine.decision_function(X_test), kind="logits")
names = [
    "platt",
    "isotonic",
    "smooth_isotonic",
    "restricted_polynomial",
    "trend_filtering",
    "enir",
]
fitted = {name: get_recalibrator(name).fit(scores, y) for name in names}
CalibratingFunctionDisplay.from_recalibrators(fitted, y_test, test_scores, n_bins=50)

# %%
# Two of them, larger:

two = {name: fitted[name] for name in ("platt", "isotonic")}
display = CalibratingFunctionDisplay.from_recalibrators(
    two, y_test, test_scores, n_bins=50
)
# sphinx_gallery_thumbnail_number = 2

# %%
# Each point is the share of positives among test rows of nearly the same score: what the map
# should say there. In numbers:

for name, recalibrator in {"as they are": None, **fitted}.items():
    p = recalibrator.predict_proba(test_scores) if recalibrator else test_scores
    found = [f(y_test, p) for f in (expected_calibration_error, brier_loss, log_loss)]
    print(
        f"{name:22} ECE {found[0]:.3f}   Brier {found[1]:.4f}   log loss {found[2]:.4f}"
    )

# %%
# Over 24 such draws Platt scaling has the smallest error, since this machine's scores follow nearly
# a logistic curve, then RPR; isotonic regression states 0 and 1, which the log loss does not
# forgive.
