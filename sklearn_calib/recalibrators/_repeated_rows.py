"""Signs that rows belong together, so that folds which share them judge a fit too well."""

import numpy as np

from .._typing import FloatArray, IntArray
from .._warnings import warn_calibration

_ROWS, _SCORES = 5, 20  # of a score that counts; such scores at least
_LEVEL = 1e-4
INDEPENDENT = "rows that are independent, to judge a fit by rows that it has not seen"
REPEATED = "scores that repeat with the same labels"
GROUPS = (
    "Name what belongs together, such as the number of the patient or of "
    "the election, with groups=; instead of repeated rows pass "
    "sample_weight="
)


def has_repeated_rows(proba: FloatArray, codes: IntArray) -> bool:
    """Whether rows of one score agree in their labels as independent rows would not.

    Looked at are scores that at least 5 rows have. They must hold half of all rows, and be 20 at
    least. Where all rows of one score are positive and all of the next higher one negative, the
    pair falls; where it is the other way round, it rises. If rows are independent and the share of
    positives rises with the score (or falls), one of the two has in a pair of m1 and m2 rows a
    probability of at most max_x x^m1 (1 - x)^m2, 1 in 1000 for 5 and 5, whatever the law of the
    scores: votes of trees, rounded numbers, steps. Each second pair is independent of the others.
    More falling and more rising pairs than that, at a level of 1e-4 by Chernoff's bound, are rows
    that belong together. For several classes each is looked at against the others.
    """
    digits = np.rint(np.asarray(proba) * 2.0**36)
    key = (
        digits[:, 1] if proba.shape[1] == 2 else digits @ np.sqrt(np.arange(2.0, 2 + len(digits.T)))
    )
    _, tie, count = np.unique(key, return_inverse=True, return_counts=True)
    large = count >= _ROWS
    if large.sum() < _SCORES or 2 * count[large].sum() < len(codes):
        return False
    columns = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    return any(_agrees(digits[:, c], codes == c, tie, large, len(columns)) for c in columns)


def _agrees(score, hit, tie, large, n_tests):
    count = np.bincount(tie)[large]
    hits = np.bincount(tie, weights=hit)[large]
    value = np.zeros(len(large))
    value[tie] = score
    order = np.lexsort((hits / count, value[large]))  # of equal columns the rising order
    return _alternate(count[order], hits[order], n_tests)


def _alternate(count, hits, n_tests):
    all_hit, none = hits == count, hits == 0
    first, second = count[:-1], count[1:]
    both = first + second
    most = np.exp(first * np.log(first / both) + second * np.log(second / both))
    falls, rises = all_hit[:-1] & none[1:], none[:-1] & all_hit[1:]
    for start in (0, 1):
        found = min(falls[start::2].sum(), rises[start::2].sum())
        expected = most[start::2].sum()
        if found > expected:
            bound = found - expected + found * np.log(expected / found)
            if bound < np.log(_LEVEL / (2 * n_tests)):
                return True
    return False


def warn_leaky_folds(got: str, cure: str = GROUPS) -> None:
    """Folds share what belongs together, or would share it."""
    warn_calibration(expected=INDEPENDENT, got=got, hint=cure)


def warn_repeated_cells(counts: IntArray) -> None:
    """The same of two classes, given how many rows of each are in the cells of rising scores."""
    count, hits = counts.sum(axis=1).astype(float), counts[:, 1].astype(float)
    large = count >= _ROWS
    if large.sum() < _SCORES or 2 * count[large].sum() < count.sum():
        return
    if _alternate(count[large], hits[large], 1):
        warn_leaky_folds(REPEATED)


def warn_repeated_rows(proba: FloatArray, codes: IntArray, cure: str) -> None:
    """Folds that share such rows know the labels that they are judged by."""
    if has_repeated_rows(proba, codes):
        warn_calibration(expected=INDEPENDENT, got=REPEATED, hint=cure)
