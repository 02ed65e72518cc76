"""
Calibrate without spare rows
============================

A :class:`~sklearn_calib.CalibratedModel` cross-fits: each fold's model is calibrated on rows that
it has not seen, so that no rows have to be set aside.
"""

import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_validate
from sklearn.svm import LinearSVC

from sklearn_calib import CalibratedModel
from sklearn_calib.metrics import get_scorer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X / X.max()

# %%
# A support vector machine has no probabilities, only margins. They are taken as logits.

names = ["neg_log_loss", "neg_brier_loss", "neg_expected_calibration_error"]
scoring = {name: get_scorer(name) for name in names}
table = {}
for recalibrator in (
    "identity",
    "temperature",
    "platt",
    "beta",
    "isotonic",
    "venn_abers",
):
    model = CalibratedModel(LinearSVC(), recalibrator, cv=5)
    results = cross_validate(model, X, y, scoring=scoring, cv=5)
    table[recalibrator] = {name: -results[f"test_{name}"].mean() for name in names}

pd.DataFrame(table).T.round(4)

# %%
# Each method makes the logits better probabilities.

losses = pd.DataFrame(table).loc["neg_log_loss"]
ax = losses.sort_values(ascending=False).plot.barh()
ax.set(xlabel="log loss of rows that no fit has seen")
ax.figure.tight_layout()
