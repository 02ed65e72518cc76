"""
Cells of equal predictions: when they help
==========================================

A decision tree predicts the same vector for every row of a leaf, and its small leaves are badly
wrong. ``MulticlassBinning`` corrects whole vectors where many rows share one; temperature scaling
and isotonic calibration cannot tell such cells apart. For a smooth model it is the other way round.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from sklearn_calib.metrics import brier_loss, lp_calibration_error, lp_calibration_test
from sklearn_calib.recalibrators import get_recalibrator

X, y = make_classification(
    60_000, n_features=12, n_informative=8, n_classes=5, flip_y=0.1, random_state=0
)
X, X_rest, y, y_rest = train_test_split(X, y, train_size=2000, random_state=0)
X_cal, X_test, y_cal, y_test = train_test_split(
    X_rest, y_rest, train_size=0.5, random_state=0
)
models = {
    "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X, y),
    "forest": RandomForestClassifier(100, min_samples_leaf=2, random_state=0).fit(X, y),
}
names = ["identity", "temperature", "isotonic", "multiclass_binning"]

# %%
# The Brier loss on new rows, and the l_2 error over cells of 20 levels, unbiased. The share of
# the rows in heavy cells shows beforehand whether binning has anything to work on.

brier = {}
for title, model in models.items():
    p_cal, p_test = model.predict_proba(X_cal), model.predict_proba(X_test)
    for name in names:
        fitted = get_recalibrator(name).fit(p_cal, y_cal)
        p = fitted.predict_proba(p_test)
        error = lp_calibration_error(y_test, p, estimator="unbiased")
        brier[title, name] = brier_loss(y_test, p)
        line = (
            f"{title:7} {name:19} Brier {brier[title, name]:.4f}   Err_2 {error:7.4f}"
        )
        if hasattr(fitted, "mass_in_bins_"):
            line += f"   {fitted.mass_in_bins_:.0%} of the rows in {len(fitted.bins_)} cells"
        print(line)

# %%
# The same as a picture.

figure, axes = plt.subplots(1, 2, figsize=(6.4, 4), sharey=True)
for axis, title in zip(axes, models, strict=True):
    axis.plot([brier[title, name] for name in names[::-1]], names[::-1], "o")
    axis.set(title=title, xlabel="Brier loss")
    axis.grid(axis="y", lw=0.5)
figure.tight_layout()

# %%
# The l_p error is a weak measure: with finer cells it falls, although the predictions are the same.
# Compare it at one number of levels only, and beside its value for calibrated predictions.

p_test = models["forest"].predict_proba(X_test)[:5000]
for n_levels in (5, 20, 80):
    found = lp_calibration_test(y_test[:5000], p_test, n_levels=n_levels)
    print(
        f"{n_levels:3} levels: {found.value:.4f}, if calibrated below {found.null_quantile:.4f}"
    )
