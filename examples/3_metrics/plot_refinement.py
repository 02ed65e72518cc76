"""
Where to stop boosting
======================

The log loss of a validation set rises when boosting goes on, although the model still learns: it
becomes overconfident. Refinement is the loss after temperature scaling; it falls for longer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

from sklearn_calib.decomposition import decompose_loss

X, y = make_classification(
    4000, n_features=20, n_informative=10, n_classes=5, flip_y=0.05, random_state=0
)
train, valid = slice(0, 2400), slice(2400, 4000)
model = HistGradientBoostingClassifier(
    max_iter=80, learning_rate=0.3, early_stopping=False, random_state=0
)
model.fit(X[train], y[train])

# %%
# One fit gives every stage. Each is split into calibration and refinement.

parts = [decompose_loss(y[valid], p) for p in model.staged_predict_proba(X[valid])]
risk = np.array([part.risk for part in parts])
refinement = np.array([part.refinement for part in parts])

figure, ax = plt.subplots(layout="constrained")
for values, label in ((risk, "log loss"), (refinement, "refinement: after temperature scaling")):
    (line,) = ax.plot(np.arange(1, len(values) + 1), values, label=label)
    ax.plot(values.argmin() + 1, values.min(), "o", color=line.get_color())
ax.plot([], [], "ko", ls="", label="smallest")
ax.set(xlabel="boosting rounds", ylabel="nats", ylim=(0.9 * refinement.min(), 1.6 * risk.min()))
ax.legend(frameon=False)

# %%
# Stopping on the log loss and recalibrating afterwards leaves some of the model unused.

early, late = risk.argmin(), refinement.argmin()
print(f"stop on log loss, round {early + 1}: {refinement[early]:.4f} after temperature scaling")
print(f"stop on refinement, round {late + 1}: {refinement[late]:.4f}")
