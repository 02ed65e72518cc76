"""
A judge and 200 labels
======================

A judge has scored 5000 answers and is too kind; people have labelled 200 of them. The mean of the
scores is wrong, the mean of the labels is vague, and both together are neither.

The law: an answer is good with probability p, whose log-odds z are normal with mean 0 and standard
deviation 2.5, so that half of all are good. The log-odds of the judge are 1.6 z + 0.8.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from sklearn_calib.inference import calibrated_mean


def answers(seed, n=5000, n_labelled=200):
    """Labels of some answers, and scores of these and of the others."""
    rng = np.random.default_rng(seed)
    z = 2.5 * rng.normal(size=n)
    good = (rng.random(n) < expit(z)).astype(int)
    judge = expit(1.6 * z + 0.8)
    return good[:n_labelled], judge[:n_labelled], judge[n_labelled:]


found = [calibrated_mean(*answers(seed)) for seed in range(20)]
print(found[0])

# %%
# Twenty such draws. The interval of labels and scores is the shorter one each time; one in twenty
# intervals of each kind misses the truth on average.
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
number = np.arange(len(found))
for shift, prefix, colour, name in (
    (-0.17, "", "C0", "labels and scores"),
    (0.17, "labels_", "C7", "labels alone"),
):
    middle, low, high = (
        np.array([getattr(one, prefix + end) for one in found])
        for end in ("estimate", "low", "high")
    )
    ends = [middle - low, high - middle]
    ax.errorbar(number + shift, middle, ends, fmt="o", ms=3, color=colour, label=name)
ax.plot(number, [one.raw for one in found], "x", color="C3", label="mean of the scores")
ax.axhline(0.5, color="k", lw=0.8, ls=":", label="truth")
ax.set(xlabel="draw", ylabel="share of good answers", xticks=number[::5])
fig.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()

# %%
# How many labels would an interval of width 0.08 take?
first = found[0]
print(first.labels_needed(0.08), "labels with the scores,")
print(first.labels_needed(0.08, alone=True), "without")
