"""The ranked probability score, for classes that have an order."""

from typing import TYPE_CHECKING

import numpy as np

from ._measure import metric

if TYPE_CHECKING:
    from . import Case


@metric(range=(0.0, 1.0), proper=True, in_report=False, cells=True)
def ranked_probability_score(case: "Case") -> float:
    """Brier loss for ordered classes: a prediction next to the truth costs less than one far off.

    The mean of the Brier losses of the questions "is the class at most k?", one for each class but
    the last. The order of the classes is that of the columns, which is that of the sorted labels.
    `labels` names the columns in another one and does not move them: for text pass
    ``proba[:, columns]`` with the columns from the lowest class to the highest.

    Returns
    -------
    score : float
        The mean over the rows of sum_k (F_k - 1{y <= k})^2 / (K - 1) over the first K - 1 of K
        classes, F_k the predicted probability of class k or a lower one. In [0, 1], perfect 0. For
        two classes it is the Brier loss. Unbiased for the expected score. Cost: O(n k).

    Notes
    -----
    Some authors do not divide by K - 1.

    References
    ----------
    Epstein (1969), "A scoring system for probability forecasts of ranked categories". Gneiting and
    Raftery (2007), "Strictly proper scoring rules, prediction, and estimation", section 4.2.

    Examples
    --------
    >>> from sklearn_calib.metrics import ranked_probability_score
    >>> stars = [1, 2, 3, 4, 5]
    >>> near, far = [0, 0, 0, 1, 0], [1, 0, 0, 0, 0]
    >>> [ranked_probability_score([5], [p], labels=stars) for p in (near, far)]
    [0.25, 1.0]
    >>> grades = ["poor", "fair", "good"]  # sorted, "fair" would come first
    >>> round(ranked_probability_score(["good", "poor"], [[0.1, 0.3, 0.6], [1, 0, 0]],
    ...                                labels=grades), 4)
    0.0425
    """
    below = np.cumsum(np.asarray(case.proba), axis=1)[:, :-1]
    below -= case.codes[:, None] <= np.arange(below.shape[1])
    return case.mean(np.einsum("ij,ij->i", below, below) / below.shape[1])
