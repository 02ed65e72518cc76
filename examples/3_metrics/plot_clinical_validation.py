"""
Validate a clinical prediction model
====================================

A model of breast cancer was developed on half of the patients. The other half shows whether its
probabilities can be believed: the table that papers report, and the calibration belt.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from sklearn_calib import CalibratedModel
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.inference import polynomial_test, validation_summary

data = load_breast_cancer(as_frame=True)
X = data.data[["mean texture", "mean smoothness", "mean symmetry", "mean compactness"]]
y = (data.target == 0).map({True: "malignant", False: "benign"})
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)

model = GaussianNB().fit(X, y)
p = model.predict_proba(X_new)[:, 1]
summary = validation_summary(y_new, p, pos_label="malignant")
print(summary)

# %%
# The slope is below 1: high probabilities are too high and low ones too low. Naive Bayes counts
# related features as if each were news. The belt has the whole curve, with the same test.

recalibrated = CalibratedModel(GaussianNB(), "platt").fit(X, y)
after = recalibrated.predict_proba(X_new)[:, 1]

figure, axes = plt.subplots(1, 2, figsize=(9, 5), sharey=True, layout="tight")
for ax, (name, proba) in zip(
    axes, {"naive Bayes": p, "recalibrated": after}.items(), strict=True
):
    options = {"strategy": "polynomial", "level": 0.95, "pos_label": "malignant"}
    ReliabilityDisplay.from_predictions(y_new, proba, name=name, ax=ax, **options)
    test = polynomial_test(y_new, proba, pos_label="malignant")
    print(f"{name}: p-value {test.pvalue:.2g}")

# %%
# Recalibrated on the rows of the development, out of fold, the slope is near 1.

after_summary = validation_summary(y_new, after, pos_label="malignant")
for name in ("O/E", "calibration in the large", "slope", "ICI"):
    row = after_summary[name]
    print(f"{name}: {row.estimate:.3f} (calibrated: {row.null_mean:.3f})")
