"""
Explain a calibrated probability
================================

Boosted trees say how much each feature moved a row's raw score (SHAP values, by ``pred_contrib``).
These numbers add up to the raw score, and not to the calibrated probability that one acts on.
Carried through the map they do.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from sklearn_calib import CalibratedModel, canonical_proba

data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean")
y = (data.target == 0).map({True: "malignant", False: "benign"})
X, X_new, y, y_new = train_test_split(X, y, test_size=0.7, stratify=y, random_state=0)
X_own, X_new, y_own, y_new = train_test_split(
    X_new, y_new, stratify=y_new, random_state=0
)

# %%
# Both packages give the attributions themselves, with the base in the last column.


def fit_lightgbm():
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(
        n_estimators=200, min_child_samples=5, n_jobs=1, verbose=-1
    ).fit(X, y)
    return model, model.predict(X_new, pred_contrib=True)


def fit_xgboost():
    from xgboost import DMatrix, XGBClassifier

    model = XGBClassifier(n_estimators=200, n_jobs=1).fit(X, y == "malignant")
    return model, model.get_booster().predict(DMatrix(X_new), pred_contribs=True)


fits = {"lightgbm": fit_lightgbm, "xgboost": fit_xgboost}
installed = [name for name in fits if find_spec(name)]
for name in sorted(set(fits) - set(installed)):
    print(f"SKIPPED: {name} is not installed")
if not installed:
    raise ImportError("This example needs LightGBM or XGBoost: pip install lightgbm")

# %%
# Each row's attributions are multiplied by one factor: the change of the calibrated score, divided
# by that of the raw score.


def calibrate_attributions(
    values, base, recalibrator, scale="probability", kind="logits"
):
    """Return attributions that add up to the calibrated score, and their base."""

    def calibrate_scores(scores):
        proba = recalibrator.predict_proba(canonical_proba(scores, kind=kind))
        if scale == "probability":
            return proba[:, 1]
        return np.log(proba[:, 1]) - np.log(proba[:, 0])

    def keep_in_range(scores):
        return scores if kind == "logits" else np.clip(scores, 0, 1)

    values = np.asarray(values, dtype=float)
    total = values.sum(axis=1)
    base = np.broadcast_to(np.ravel(base), len(values)).astype(float)
    new_base = calibrate_scores(base)
    change = calibrate_scores(keep_in_range(base + total)) - new_base
    # a quotient of two differences near 0 has no digits: the derivative takes its place
    is_near = np.abs(total) < 1e-6
    low = keep_in_range(base + total / 2 - 1e-4)
    high = keep_in_range(base + total / 2 + 1e-4)
    slope = (calibrate_scores(high) - calibrate_scores(low)) / (high - low)
    factor = np.where(is_near, slope, change / np.where(is_near, 1.0, total))
    return values * factor[:, None], new_base


# %%
# ``model`` recalibrates the booster, and has the map. The new attributions add up to the calibrated
# probability of each row, to the last digits that the booster gives: XGBoost's have seven.

explained = {}
for name in installed:
    booster, table = fits[name]()
    model = CalibratedModel(FrozenEstimator(booster), "platt")
    model.fit(X_own, y_own if name == "lightgbm" else y_own == "malignant")
    contributions, base = table[:, :-1], table[:, -1]
    values, new_base = calibrate_attributions(contributions, base, model.recalibrator_)
    calibrated = model.predict_proba(X_new)[:, 1]
    off = np.abs(new_base + values.sum(axis=1) - calibrated).max()
    explained[name] = model, contributions, base, values, new_base, calibrated
    print(f"{name}: slope {model.recalibrator_.slope_:.2f}, sums off by {off:.1g}")

# %%
# One patient for whom the raw score and the calibrated probability differ much. The raw score is
# far too sure, and so are its reasons: all features' shares of the log-odds are made smaller by the
# same factor. In probability they say by how many percentage points a feature moved the prediction.

model, contributions, base, values, new_base, calibrated = explained[installed[0]]
raw = expit(base + contributions.sum(axis=1))
row = int(np.abs(raw - calibrated).argmax())
log_odds, _ = calibrate_attributions(
    contributions[[row]], base[row], model.recalibrator_, scale="logit"
)
order = np.argsort(np.abs(values[row]))
names = X.columns[order].str.removeprefix("mean ")
print(
    f"raw {raw[row]:.4f}, calibrated {calibrated[row]:.4f}, true class {y_new.iloc[row]}"
)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4.5), sharey=True, layout="tight"
)
left.barh(names, contributions[row][order], color="0.8", label="raw score")
left.barh(names, log_odds[0, order], height=0.4, label="calibrated")
left.set(xlabel="log-odds of malignant", title="Shares of the log-odds")
left.legend()
right.barh(names, 100 * values[row][order])
right.set(
    xlabel=f"percentage points, from {new_base[row]:.0%} to {calibrated[row]:.0%}",
    title="Shares of the probability",
)
for ax in (left, right):
    ax.axvline(0, color="black", linewidth=0.8)
plt.show()
