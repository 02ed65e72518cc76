"""Labels and probabilities made without random numbers, for expected values to the last digit."""

import numpy as np
from scipy.special import expit, logit

#: What ``val.prob`` of R's rms states, and where the validation table has it: row,
#: attribute.
OF_VAL_PROB = {
    "Intercept": ("intercept", "estimate"),
    "Slope": ("slope", "estimate"),
    "Brier": ("Brier", "estimate"),
    "U:Chi-sq": ("Cox chi-square", "estimate"),
    "S:p": ("Brier", "pvalue"),
    "R2": ("Nagelkerke R2", "estimate"),
}


def golden_set(n=200, intercept=0.25, slope=0.7):
    """(labels, probabilities): log-odds evenly spaced over (-3, 3), labels of a logistic law."""
    i = np.arange(n)
    proba = expit(-3 + 6 * (i + 0.5) / n)
    threshold = (i + 1) * (np.sqrt(5) - 1) / 2 % 1
    return (threshold < expit(intercept + slope * logit(proba))).astype(int), proba
