"""
Calibrated in every group
=========================

A model that is right on average and wrong in each of three clinics; a table that repairs named
groups, and trees that find groups by themselves.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_calib.groups import (
    GroupRecalibration,
    MulticalibratedScores,
    group_calibration,
)
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import PlattScaling


def patients(n, seed):
    """Risk rises with a marker, unequally in the clinics; smokers above 60 are at more risk."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "clinic": rng.choice(["city", "coast", "hills"], n, p=[0.6, 0.3, 0.1]),
            "age": rng.integers(20, 90, n),
            "smokes": rng.random(n) < 0.3,
        }
    )
    marker = rng.normal(size=n)
    slope = table["clinic"].map({"city": 1.2, "coast": 0.3, "hills": 1.2})
    shift = table["clinic"].map({"city": -0.6, "coast": 0.6, "hills": 0.9})
    shift += 1.5 * (table["smokes"] & (table["age"] > 60))
    return (
        marker[:, None],
        table,
        (rng.random(n) < expit(slope * marker + shift)).astype(int),
    )


# %%
# The model sees the marker only. On average its probabilities are right, in the groups they are
# not.

X, _, y = patients(3000, seed=0)
model = LogisticRegression().fit(X, y)
(X_fit, table_fit, y_fit), (X_new, table_new, y_new) = (
    patients(6000, 1),
    patients(6000, 2),
)
p_fit, p_new = model.predict_proba(X_fit)[:, 1], model.predict_proba(X_new)[:, 1]
print(group_calibration(y_new, p_new, table_new, depth=2, n_resamples=199))

# %%
# Two numbers for each clinic: an intercept of 0 and a slope of 1 would mean that nothing is wrong.

lines = GroupRecalibration().fit(p_fit, y_fit, groups=table_fit["clinic"])
lines.to_frame().round(2)

# %%
# Smokers above 60 are a group without a name. Trees find it in the columns of the table.

trees = MulticalibratedScores().fit(p_fit, y_fit, groups=table_fit)
print({name: round(gain) for name, gain in trees.feature_gains_.items()})
corrected = {
    "the model": p_new,
    "Platt, all rows": PlattScaling().fit(p_fit, y_fit).predict_proba(p_new)[:, 1],
    "a line for each clinic": lines.predict_proba(p_new, groups=table_new["clinic"])[
        :, 1
    ],
    "trees": trees.predict_proba(p_new, groups=table_new)[:, 1],
}

# %%
# For each correction, one dot for each group of new patients: how far it is off, in standard
# deviations. Beyond the line the largest of all groups would be in one of twenty cases by chance.

_, ax = plt.subplots(figsize=(7, 3.2), constrained_layout=True)
for height, p in enumerate(corrected.values()):
    audit = group_calibration(y_new, p, table_new, depth=2, n_resamples=199)
    sigma = np.array([row.sigma for row in audit.rows])
    ax.plot(sigma, height + np.linspace(-0.2, 0.2, len(sigma)), "o", ms=4, alpha=0.6)
    ax.annotate(
        f"log loss {log_loss(y_new, p):.3f}", (sigma.max() + 0.5, height), va="center"
    )
ax.axvline(audit.critical_sigma, color="0.4", ls="--", lw=1)
ax.set(yticks=range(len(corrected)), yticklabels=corrected, xlim=(0, 22))
ax.set_xlabel("distance of a group from calibration (standard deviations)")
ax.invert_yaxis()
plt.show()
