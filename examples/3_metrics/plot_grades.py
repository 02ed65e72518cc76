"""
Rating grades, from data to audit
=================================

A bank sorts its customers into grades by their probability of default. The grades are made on the
rows of one year and judged on those of the next, in which the economy is worse.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from sklearn_calib.displays import GradeDisplay
from sklearn_calib.groups import Grades, grade_calibration
from sklearn_calib.recalibrators import PlattScaling, PriorShift
from sklearn_calib.report import calibration_report

rng = np.random.default_rng(0)


def year(n, shift):
    """Raw log-odds, twice as sure as they should be, and who defaulted."""
    z = rng.normal(-4.5, 1.2, n)
    y = rng.random(n) < expit(z + shift)
    return expit(2 * z + 4), np.where(y, "default", "paid")


# %%
# The first half of the year calibrates the raw score, and the second makes the grades: as many as
# have 40 defaults each, with rates that rise. The score is that of a default, so "default"
# is the last of the classes.

raw, y = year(40_000, 0.0)
first, second = np.arange(40_000) < 20_000, np.arange(40_000) >= 20_000
map_ = PlattScaling().fit(raw[first], y[first], classes=["paid", "default"])
pd = map_.predict_proba(raw)[:, 1]
hit = (y == "default").astype(int)
fitted = Grades.fit(hit[second], pd[second], min_events=40, max_grades=6)
edges = np.round(fitted.edges, 4)  # as they are written into a contract
grades = Grades(edges, names=list("ABCDEFGH"[: len(edges) + 1]))
print(grades)

# %%
# The rows that calibrated and those that made the grades are not judges. Next year's are: one row
# for each grade, with the p-value of all grades together.

raw_next, y_next = year(30_000, 0.4)
hit_next = (y_next == "default").astype(int)
pd_next = map_.predict_proba(raw_next)[:, 1]
audit = grade_calibration(hit_next, pd_next, grades)
print(audit)

# %%
# The order of the grades holds, their level does not. Probabilities are moved to the level of the
# year, as Bayes' theorem does, by the defaults of its first third; edges stay.

known = np.arange(30_000) < 10_000
rate = hit_next[known].mean()
moved = PriorShift(rate, training_prior=hit.mean()).fit(pd_next[known], hit_next[known])
pd_moved = moved.predict_proba(pd_next)[:, 1]
after = grade_calibration(hit_next[~known], pd_moved[~known], grades)
before = grade_calibration(hit_next[~known], pd_next[~known], grades)
print(
    f"all grades together: p = {before.p_value:.2g} before, {after.p_value:.2g} after"
)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), sharey=True, layout="tight")
for ax, p, name in zip(axes, (pd_next, pd_moved), ("as it was", "moved"), strict=True):
    GradeDisplay.from_predictions(hit_next[~known], p[~known], grades, ax=ax)
    ax.set_title(name)

# %%
# The report has the table beside the rest, as a page with ``to_html``.

report = calibration_report(
    hit_next[~known], pd_moved[~known], grades=grades, n_resamples=20
)
print(report.grades["model"])
plt.show()
