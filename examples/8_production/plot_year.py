"""
A year in production
====================

A model predicts every day; labels come once a week. In the 31st week something changes. A monitor
that may be looked at every week states when, and what; a recalibrator that learns from each week's
labels repairs it.
"""

# %%
# The model was trained and calibrated last year. In production there are 150 rows a week. From the
# 31st week on the features say less than they did: what were certain cases are less certain now.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel
from sklearn_calib.displays import MonitorDisplay
from sklearn_calib.inference import hosmer_lemeshow_test
from sklearn_calib.metrics import log_loss
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import OnlineCalibration

rng = np.random.default_rng(3)
effects = np.array([1.0, -0.8, 0.6, 0.4])


def draw(n, strength=1.0):
    X = rng.normal(size=(n, 4))
    return X, (rng.random(n) < expit(strength * X @ effects)).astype(int)


X, y = draw(8000)
model = FrozenEstimator(LogisticRegression().fit(X[:4000], y[:4000]))
still = CalibratedModel(model, "platt").fit(X[4000:], y[4000:])
online = CalibratedModel(model, OnlineCalibration()).fit(X[4000:], y[4000:])

# %%
# Each week: predict, wait for the labels, test them as one would, update the monitor, and let the
# second model learn. A false alarm is expected once in 100,000 rows at most, thirteen years of this
# traffic, although the monitor is looked at every week.

monitor = CalibrationMonitor(average_run_length=100_000)
start, losses, rejected = np.datetime64("2025-01-06"), [], []
for week in range(52):
    X, y = draw(150, 1.0 if week < 30 else 0.5)
    p, q = still.predict_proba(X), online.predict_proba(X)
    losses.append((log_loss(y, p), log_loss(y, q)))
    if hosmer_lemeshow_test(y, p).pvalue < 0.05:
        rejected.append(week + 1)
    monitor.update(y, p, time=start + 7 * week)
    if monitor.alarm_:
        print(f"week {week + 1}: {monitor.new_alarms_[0].meaning}")
    online.partial_fit_recalibrator(X, y)
print("the weekly test rejects in the weeks", *rejected)

# %%
# The weekly test at the level of 5 % also rejects good weeks, and misses bad ones. The detector
# crosses its line in the second week after the change and, as it is not repaired here, again and
# again.
# The evidence over the whole year (blue) first has to make up for thirty good weeks: it answers
# another question.

MonitorDisplay.from_monitor(monitor)

# %%
# The model whose recalibrator learns has followed the change within some weeks. The figure shows
# how much lower its log loss is, summed over the rows; while nothing changes, learning costs next
# to nothing.

gain = 150 * np.cumsum([before - after for before, after in losses])
_, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(np.arange(1, 53), gain, "o-", ms=3)
ax.axvline(30.5, color="0.3", lw=1, ls="--", label="the change")
ax.axhline(0, color="0.6", lw=0.8)
ax.set(xlabel="week", ylabel="log loss saved so far [nats]")
ax.legend(frameon=False)
before, after = np.mean(losses[31:], axis=0)
print(
    f"log loss from week 32 on: {before:.3f} as it was, {after:.3f} with online recalibration"
)
