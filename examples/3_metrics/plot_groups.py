"""
Right on the whole, wrong for a group
=====================================

A model of readmission has never seen which clinic a patient comes from. Its probabilities are right
on the whole. In one clinic they are too low, in another too high; a reliability diagram of all rows
shows neither.
"""

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sklearn_calib.displays import GroupReliabilityDisplay, ReliabilityDisplay
from sklearn_calib.groups import group_calibration
from sklearn_calib.inference import calibration_test

rng = np.random.default_rng(0)
n = 12_000
patients = pd.DataFrame(
    {
        "age": rng.integers(20, 90, n),
        "severity": rng.normal(size=n).round(2),
        "clinic": rng.choice(["north", "south", "east", "harbour", "hill"], n),
        "insurance": rng.choice(["public", "private", None], n, p=[0.7, 0.2, 0.1]),
    }
)
of_clinic = patients["clinic"].map({"harbour": 0.6, "hill": -0.6}).fillna(0.0)
truth = expit(-1 + patients["severity"] + 0.02 * (patients["age"] - 50) + of_clinic)
y = (rng.random(n) < truth).astype(int)

train, test = train_test_split(np.arange(n), test_size=0.5, random_state=0)
features = patients[["age", "severity"]]
model = LogisticRegression().fit(features.iloc[train], y[train])
proba = model.predict_proba(features.iloc[test])[:, 1]

print(f"all rows: p = {calibration_test(y[test], proba).pvalue:.2f}")
ReliabilityDisplay.from_predictions(y[test], proba, name="all patients")

# %%
# The audit looks at each clinic, each insurance, thirds of the age and of the severity, and at what
# any two of them have in common. One p-value allows for all of these groups having been looked at.

found = group_calibration(y[test], proba, patients.iloc[test], depth=2)
print(found)

# %%
# Observed over expected events of the groups that are furthest off, with intervals that hold for
# all groups at once, and the reliability curves of the four worst over bands where they would lie
# if the predictions were calibrated.

GroupReliabilityDisplay.from_predictions(y[test], proba, patients.iloc[test], depth=2)

# %%
# A model that has the clinic is right in all groups.

features = pd.get_dummies(patients[["age", "severity", "clinic"]])
model = LogisticRegression(max_iter=1000).fit(features.iloc[train], y[train])
proba = model.predict_proba(features.iloc[test])[:, 1]
print(group_calibration(y[test], proba, patients.iloc[test], depth=2).summary)
