"""Rank correlation of scores and outcomes, with ties and weights."""

import numpy as np

from .._typing import AnyArray, FloatArray


def rank_correlation(
    score: FloatArray, outcome: AnyArray, weight: FloatArray
) -> tuple[float, float]:
    """Spearman's correlation of scores and outcomes, and its statistic.

    The statistic is standard normal for many rows whose outcomes say nothing about the scores; for
    two outcomes and no weights it is Mann and Whitney's, with ties. Its variance is that of a
    weighted mean for whole numbers as well, which may be importances: heavy rows prove no more than
    one row each. Zeros where one side is constant.
    """
    order = np.argsort(score, kind="stable")
    scores, share = score[order], weight[order] / weight.max()
    starts = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])
    mass = np.add.reduceat(share, starts)
    total = mass.sum()
    middle = np.cumsum(mass) - mass / 2 - total / 2
    rank = np.repeat(middle, np.diff(np.r_[starts, len(scores)]))
    far = outcome[order] - share @ outcome[order] / total
    spread_of_ranks, spread = share @ rank**2, share @ far**2
    if not (spread_of_ranks > 0 and spread > 0):
        return 0.0, 0.0
    together = (share * rank) @ far
    rows = total**2 / (share @ share)  # Kish's effective number
    variance = (share**2 @ rank**2) * spread / total * rows / max(rows - 1, 1)
    correlation = together / np.sqrt(spread_of_ranks * spread)
    return float(correlation), float(together / np.sqrt(variance))
