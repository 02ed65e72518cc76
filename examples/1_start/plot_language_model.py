"""
Confidence of a language model
==============================

A model has answered 300 questions five times each and said how sure it was: 60, 80, 90, 95 or
100 %. How often is it right, and what should it have said?

The law: question q has an ease z, normal with mean 0.9 and standard deviation 1.3; an answer is
right with probability expit(z), and the level grows with 0.8 z + 0.8 and noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from sklearn_calib.recalibrators import get_recalibrator
from sklearn_calib.report import calibration_report

rng = np.random.default_rng(0)
levels = np.array([0.6, 0.8, 0.9, 0.95, 1.0])


def answers(n_questions):
    """The level, whether the answer is right, and the number of its question."""
    question = np.repeat(np.arange(n_questions), 5)
    ease = rng.normal(0.9, 1.3, n_questions)[question]
    place = np.digitize(0.8 * ease + rng.normal(0.8, 1, len(ease)), [0, 0.8, 1.6, 2.4])
    return levels[place], rng.random(len(ease)) < expit(ease), question


confidence, right, question = answers(300)
report = calibration_report(right, confidence, groups=question, n_resamples=50)
print(report.verdict)

# %%
# The repair is learned from these answers and judged by fresh ones. The intervals of the
# frequencies are those of questions: the mean of each, weighted by its answers.
repair = get_recalibrator("auto").fit(confidence, right, groups=question)
fresh, came_true, of = answers(300)
fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
shown = (fresh, repair.predict_proba(fresh)[:, 1])
for ax, said, name in zip(axes, shown, ("as said", "repaired"), strict=True):
    for level in np.unique(said):
        rows = said == level
        n, hits = np.bincount(of[rows]), np.bincount(of[rows], came_true[rows])
        rate = hits.sum() / n.sum()
        error = 1.96 * np.sqrt(((hits - rate * n) ** 2).sum()) / n.sum()
        ax.errorbar(level, rate, error, fmt="o", color="C0")
    ax.plot([0, 1], [0, 1], color="k", lw=0.8, ls=":")
    ax.set(xlabel="confidence", title=name, xlim=(0.2, 1.03), ylim=(0.2, 1.03))
axes[0].set_ylabel("share of right answers")
plt.show()
