"""
A first calibration
===================

Naive Bayes multiplies the evidence of features as if they were independent, and is far too sure
of itself. One number, the temperature, repairs most of it.
"""

# %%
# Hand-written digits: one part trains the model, one calibrates it, one is kept for the
# measurement.

from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from sklearn_calib import CalibratedModel
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import log_loss
from sklearn_calib.report import calibration_report

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
X, X_calib, y, y_calib = train_test_split(X, y, test_size=0.5, random_state=0)

naive = GaussianNB(var_smoothing=1e-3).fit(X, y)
calibrated = CalibratedModel(FrozenEstimator(naive), "temperature").fit(
    X_calib, y_calib
)
print(f"temperature: {calibrated.recalibrator_.temperature_:.2f}")

# %%
# On the test rows the calibrated confidence is much nearer to the diagonal, but not on it: one
# number cannot repair everything.

ReliabilityDisplay.from_estimator(
    {"naive Bayes": naive, "after temperature scaling": calibrated},
    X_test,
    y_test,
    n_bins=10,
)

# %%
# The report has the numbers. "if calibrated" is the value that calibrated predictions would stay
# below with probability 90 %. The remaining error is more than chance: the test of calibration
# rejects the result, and a method with more parameters does better on these rows.

calibration_report(
    y_test,
    {"before": naive.predict_proba(X_test), "after": calibrated.predict_proba(X_test)},
    n_resamples=50,
)

# %%
# :func:`~sklearn_calib.inference.calibration_test` gives the probability that calibrated
# predictions would look as bad by chance.

for name in ("temperature", "beta", "structured_matrix"):
    model = CalibratedModel(FrozenEstimator(naive), name).fit(X_calib, y_calib)
    proba = model.predict_proba(X_test)
    pvalue = calibration_test(y_test, proba, random_state=0).pvalue
    print(f"{name:18} log loss {log_loss(y_test, proba):.3f}   p-value {pvalue:.3f}")

# %%
# Two answers to two questions. Beta calibration removes the error of the confidence, which the test
# looks at; structured matrix scaling has the smallest log loss, because it also moves probability
# between classes that are confused.
