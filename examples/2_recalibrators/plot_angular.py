"""
A linear model with more features than rows
===========================================

A logistic regression on 1000 rows of 2000 features is far from calibrated, and there
are not rows to spare to recalibrate it. Angular calibration and leave-one-out scores need none:
they use the training rows (figure 2 of Li and Sur, 2025).
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.datasets import make_high_dimensional
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.linear import approximate_leave_one_out
from sklearn_calib.metrics import expected_calibration_error, log_loss
from sklearn_calib.recalibrators import PlattScaling

X, y, truth = make_high_dimensional(1000, 2000, random_state=0)
X_test, y_test = truth.draw(10_000, random_state=1)
ridge = LogisticRegression(C=200, tol=1e-8, max_iter=1000)
model = ridge.fit(X, y)

# %%
# The scores of the training rows themselves say nothing of new ones. The leave-one-out scores do,
# at the cost of one matrix factorisation.


def spread(u, y):
    return f"mean score of class 0 {u[y == 0].mean():6.2f}, of class 1 {u[y == 1].mean():5.2f}"


print("training     ", spread(model.decision_function(X), y))
print("leave-one-out", spread(approximate_leave_one_out(model, X, y), y))
print("new rows     ", spread(model.decision_function(X_test), y_test))

# %%
# Three ways to use them: the angle between estimated and true coefficients, with the covariance of
# the features and the link known; the same with nothing known; Platt scaling of the leave-one-out
# scores. Beside them Platt scaling with 100 rows held out, if we had them.

X_held, y_held = truth.draw(100, random_state=2)
platt_100 = PlattScaling().fit(
    canonical_proba(model.decision_function(X_held), kind="logits"), y_held
)
angular = AngularCalibratedClassifier(
    ridge, covariance=truth.covariance, link_slope=3, link_intercept=1
)
proba = {
    "uncalibrated": model.predict_proba(X_test),
    "angular": angular.fit(X, y).predict_proba(X_test),
    "angular, nothing known": AngularCalibratedClassifier(ridge)
    .fit(X, y)
    .predict_proba(X_test),
    "Platt, leave-one-out": CalibratedModel(ridge, "platt", cv="alo")
    .fit(X, y)
    .predict_proba(X_test),
    "Platt, 100 rows more": platt_100.predict_proba(
        canonical_proba(model.decision_function(X_test), kind="logits")
    ),
}
for name, p in proba.items():
    error = expected_calibration_error(y_test, p, n_bins=20, strategy="quantile")
    print(f"{name:24} log loss {log_loss(y_test, p):.4f}   ECE {error:.4f}")

ReliabilityDisplay.from_predictions(y_test, proba, n_bins=20)

# %%
# The estimated cosine beside the true one, which is only known in a simulation:

print(f"{angular.cos_theta_:.3f}, {truth.cos_theta(np.ravel(model.coef_)):.3f}")
