"""An interval for a sum of skewed terms, such as the losses of rows of which few have an event."""

import numpy as np
from scipy.special import gammaincinv, ndtri

_SYMMETRIC = 1e-4  # a skewness that moves no end


def skewed_ends(moved, jump, level):
    """Ends for the expectation of a sum of independent terms, less that sum.

    `moved` are the terms, whose sum is 0; `jump` is the size of a term that they may lack.

    The normal interval is too short where few events make the sum: it forgets the skewness, and a
    sample that lacks events has too small a variance as well. Here the sum has the law of a shifted
    gamma variable (Pearson's type III) with the variance and the third moment of the terms, and
    at the end where the long tail is one more term is counted, as in the gamma interval of Fay and
    Feuer (1997) for weighted sums of counts.
    """
    squares = float(moved @ moved)
    seen = float((moved**3).sum()) / squares if squares > 0 else 0.0
    jump = max(jump, seen, key=abs)
    ends = []
    for tail, more in (((1 - level) / 2, min(jump, 0.0)), ((1 + level) / 2, max(jump, 0.0))):
        terms = np.append(moved, more) if more else moved
        terms = terms - terms.mean()
        ends.append(more + _quantile_of_sum(terms, tail))
    return min(ends[0], 0.0), max(ends[1], 0.0)


def _quantile_of_sum(terms, tail):
    variance = float(terms @ terms)
    if variance <= 0:
        return 0.0
    deviation = np.sqrt(variance)
    skewness = float((terms**3).sum()) / (variance * deviation)
    if abs(skewness) < _SYMMETRIC:
        return float(ndtri(tail) * deviation)
    shape = 4 / skewness**2
    place = gammaincinv(shape, tail if skewness > 0 else 1 - tail)
    return float((place - shape) * deviation * skewness / 2)
