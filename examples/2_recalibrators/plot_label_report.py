"""
A report on many labels
=======================

Films have genres, and a model gives a probability of each. One report states which genres it gets
wrong, with one p-value for all of them together, and counts a film once, with all its genres.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from sklearn_calib.recalibrators import MultilabelCalibration
from sklearn_calib.report import multilabel_report

# %%
# 1500 films and eight genres, from drama, which every second film has, to noir, which one in sixty
# has. Genres of a film depend on each other through a mood that they share. The model is right but
# for three genres: it is too sure about drama, states comedy too often, and family too seldom.

genres = ["drama", "comedy", "action", "romance", "horror", "family", "western", "noir"]
rates = np.array([0.5, 0.35, 0.25, 0.2, 0.12, 0.06, 0.02, 0.007])
rng = np.random.default_rng(0)
mood = 0.8 * rng.normal(size=(3000, 1)) * np.where(np.arange(8) % 2, 1, -1)
true = logit(rates) + mood + 1.2 * rng.normal(size=(3000, 8))
has = (rng.random(true.shape) < expit(true)).astype(int)
said = true.copy()
said[:, 0] *= 2.0
said[:, 1] += 0.7
said[:, 5] -= 1.0
proba = expit(said)

report = multilabel_report(has[:1500], proba[:1500], labels=genres)
print(report)

# %%
# The repair learns one line on the log-odds for each genre, rare ones drawn towards the
# others, from the films above; the other 1500 films judge it.

repair = MultilabelCalibration().fit(proba[:1500], has[:1500])
repaired = repair.predict_proba(proba[1500:])
after = multilabel_report(has[1500:], repaired, labels=genres)
print(
    f"p of all genres together: {report.p_value:.2g} as given, {after.p_value:.2g} repaired"
)

# %%
# O/E, observed over expected positives, with its interval for each genre: 1 is right. The
# rarer a genre, the longer is its interval.


def draw(ax, report, color, label, move):
    place = np.arange(len(report.labels)) + move
    value = np.array([row.observed_over_expected for row in report.labels])
    ends = np.array([[row.ratio_low, row.ratio_high] for row in report.labels]).T
    ax.errorbar(
        value, place, xerr=np.abs(ends - value), fmt="o", ms=5, color=color, label=label
    )


figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
draw(ax, report, "#b04a2f", "as given", -0.12)
draw(ax, after, "#2f6db0", "repaired, new films", 0.12)
ax.axvline(1, color="0.6", lw=0.8)
ax.set_yticks(
    np.arange(8), [f"{row.group} ({row.events:.0f})" for row in report.labels]
)
ax.set_xscale("log")
ax.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
ax.minorticks_off()
ax.invert_yaxis()
ax.set(xlabel="observed over expected positives", ylabel="genre (its films among 1500)")
_ = ax.legend(frameon=False)

# %%
# ``report.to_html("films.html")`` writes the page with the diagrams of the worst three genres.
