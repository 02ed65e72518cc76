"""Scores that fall with the outcome, which maps that cannot fall lose."""

from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri

from .._kernels._rank_correlation import rank_correlation
from .._simplex import rank_score
from .._typing import FloatArray, IntArray
from ..exceptions import caution, setting

_EXCHANGE = "pass 1 - p, or exchange the columns or the two names in classes="

LEVEL = 1e-4  # of a warning on scores that say nothing


def falling_by(
    proba: FloatArray, codes: IntArray, weight: FloatArray, n_tests: int = 1
) -> float | None:
    """The rank correlation of scores and classes where it is negative beyond chance, else None.

    The mean of the scores comes first: where it rises with the outcome nothing is sorted.
    """
    plain = np.asarray(proba)
    two = plain.shape[1] == 2
    score = plain[:, 1] if two else plain @ np.arange(plain.shape[1], dtype=float)  # mean position
    share = weight / weight.max()
    outcome = share * codes
    if outcome @ score >= outcome.sum() / share.sum() * (share @ score):
        return None
    if two:
        score = rank_score(proba)
    correlation, statistic = rank_correlation(score, codes, weight)
    return correlation if statistic < ndtri(LEVEL / n_tests) else None


def warn_of_falling_scores(method: object, found: Mapping[str, float]) -> None:
    """One warning, of two classes or of those of many that are concerned."""
    names = ", ".join([*found][:5]) + (", ..." if len(found) > 5 else "")
    worst = min(found.values())
    of_classes = f" of the classes {names}" if names else ""
    cure = (
        "Check the order of the columns, " + setting("classes") + " and logits of the wrong sign"
        if names
        else "If a high score speaks for the first class, "
        + setting("exchange", words=_EXCHANGE)
        + "; a method that may fall is 'platt'"
    )
    caution(
        f"{type(method).__name__}.fit",
        f"scores{of_classes} that rise with the outcome",
        f"scores that fall (rank correlation about {worst:.1f}), of which a map that cannot fall "
        "keeps the class frequencies only",
        cure,
    )
