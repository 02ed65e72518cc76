"""
When class frequencies change
=============================

A model of breast tumours is used where malignant ones are rarer than among the rows that it was
trained on. The frequencies are estimated from rows without labels, and the probabilities moved.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict, train_test_split

from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.inference import prior_shift_test
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import PlattScaling, PriorShift

X, y = load_breast_cancer(return_X_y=True)
y = 1 - y  # 1 is malignant: 37 %
X = X[:, :4]  # an easier measurement, so that the model is not perfect
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
rare = (y_new == 0) | (np.cumsum(y_new) % 5 == 1)  # every fifth malignant one
X_new, y_new = X_new[rare], y_new[rare]

forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=0)
proba = cross_val_predict(forest, X, y, method="predict_proba")
platt = PlattScaling().fit(proba, y)
proba = platt.predict_proba(proba)
proba_new = platt.predict_proba(forest.fit(X, y).predict_proba(X_new))

# %%
# Does anything speak against a shift of the frequencies alone? Then they are estimated, without the
# labels of the new rows.

print(f"p-value of label shift: {prior_shift_test(proba, y, proba_new).pvalue:.2f}")
shift = PriorShift("em").fit(proba, y).adapt(proba_new)
low, high = shift.prior_interval_[1]
print(
    f"malignant: {y.mean():.2f} before; estimated {shift.prior_[1]:.3f} ({low:.3f} to {high:.3f})"
)
print(f"true: {y_new.mean():.3f}")

# %%
# The moved probabilities have the smaller loss. The labels are used for nothing but this.

models = {"as calibrated before": proba_new, "moved": shift.predict_proba(proba_new)}
for name, p in models.items():
    print(f"log loss {log_loss(y_new, p):.3f} {name}")

ReliabilityDisplay.from_predictions(y_new, models, n_bins=6)

# %%
# What every method states, with 95 % intervals.

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
names = {"em": PriorShift("em"), "bbse soft": PriorShift("bbse")}
names["bbse hard"] = PriorShift("bbse", confusion="hard")
for row, method in enumerate(names.values()):
    found = method.fit(proba, y).adapt(proba_new)
    low, high = found.prior_interval_[1]
    ax.plot([low, high], [row, row], color="C0")
    ax.plot(found.prior_[1], row, "o", color="C0")
ax.axvline(y_new.mean(), color="0.4", linestyle="--", label="true frequency")
ax.set(
    yticks=range(3),
    yticklabels=names,
    xlabel="frequency of malignant",
    ylim=(-0.6, 3.6),
)
ax.legend(loc="upper right")
