"""
Is it calibrated, or could it be?
=================================

Every calibration error is above 0 on finite data. Labels drawn from the predictions themselves show
how far above.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sklearn_calib.displays import NullDistributionDisplay
from sklearn_calib.inference import calibration_test, confidence_interval

X, y = make_classification(4000, n_informative=6, flip_y=0.1, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
models = {
    "logistic regression": LogisticRegression().fit(X, y),
    "random forest": RandomForestClassifier(100, random_state=0).fit(X, y),
}

figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    result = calibration_test(y_test, model.predict_proba(X_test), random_state=0)
    NullDistributionDisplay(result).plot(ax=ax)
    ax.set_title(name)

# %%
# By how much? The interval starts at 0 where calibration is not rejected. The estimate is
# that of the error on infinitely many rows: what chance adds on these rows is taken off.

for name, model in models.items():
    interval = confidence_interval(
        y_test, model.predict_proba(X_test), "smooth_calibration_error", random_state=0
    )
    print(
        f"{name}: {interval.estimate:.4f}, 95 % [{interval.low:.4f}, {interval.high:.4f}]"
    )
    seen, chance = interval.sample_value, interval.null_mean
    print(f"    on these rows {seen:.4f}; if calibrated it would be {chance:.4f}")
