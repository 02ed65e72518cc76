"""Errors among the most confident rows, and the largest share of rows that can be answered."""

import numpy as np
from scipy.special import digamma

from ._proportion import compute_upper_bound

# Confidences are rounded to so many digits, so that rows of probability p and 1 - p are
# equally confident.
CONFIDENCE_DIGITS = 12


def make_descending_confidence_levels(confidence, mass, errors):
    """Return (confidence, mass, errors) of each level, largest first, of increasing ones.

    Confidences are compared at 12 digits; each is the smallest of those that are equal.
    """
    confidence = confidence[::-1]
    mass = mass[::-1]
    errors = errors[::-1]
    rounded = np.round(confidence, CONFIDENCE_DIGITS)
    starts = np.flatnonzero(np.append(True, rounded[1:] != rounded[:-1]))
    if len(starts) < len(rounded):
        confidence = confidence[np.append(starts[1:], len(rounded)) - 1]
        mass = np.add.reduceat(mass, starts)
        errors = np.add.reduceat(errors, starts)
    return confidence, mass, errors


def average_risk_over_coverages(mass, errors, is_row_count):
    """Return the mean over coverages of the error rate among the most confident rows.

    Rows of equal confidence come in random order, and the mean over orders is taken.
    With `is_row_count` the mass is a number of rows and the mean is over 1, 2, ... rows; else
    it is an integral.
    """
    if not mass.all():
        errors = errors[mass > 0]
        mass = mass[mass > 0]
    before = np.cumsum(mass) - mass
    wrong = np.cumsum(errors) - errors
    rate = errors / mass
    # Inside a tie the order of the rows is random, so errors accumulate linearly: the
    # rate is that of the block plus excess / rows, and the mean risk is an integral of
    # this.
    excess = wrong - rate * before
    if is_row_count:
        steps = 1 / (before + 1)
        several = np.flatnonzero(mass != 1)
        begin = before[several] + 1
        steps[several] = digamma(begin + mass[several]) - digamma(begin)
    else:
        steps = np.log1p(
            np.divide(mass, before, out=np.zeros_like(mass), where=before > 0)
        )
    return float((errors + excess * steps).sum() / mass.sum())


def find_n_answered_levels_and_bound(mass, errors, max_risk, delta):
    """Return (levels answered, upper bound of the error rate); 0 levels if none passes.

    Bisection on the number of rows answered, each step at level delta / steps.
    """
    reached = np.cumsum(mass)
    wrong = np.cumsum(errors)
    n = int(reached[-1])
    # Geifman and El-Yaniv (2017): the search looks at ceil(log2(n + 1)) coverages, and
    # a union bound divides delta among them.
    steps = int(np.ceil(np.log2(n + 1)))
    low = 0
    high = n
    answer = (0, 1.0)
    for _ in range(steps):
        middle = -(-(low + high) // 2)
        level = int(np.searchsorted(reached, middle))
        bound = float(compute_upper_bound(wrong[level], reached[level], delta / steps))
        if bound <= max_risk:
            low = middle
            answer = (level + 1, bound)
        else:
            high = middle
    return answer
