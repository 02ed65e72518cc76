"""How far the scores of one sample are from a mixture of the classes of another."""

from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray

_SINGULAR = 1e-8


class MixtureDistance(NamedTuple):
    """The largest distance, the class whose score shows it, and the mixture's proportions."""

    distance: float
    column: int
    prior: FloatArray


class RankedScores:
    """Scores of all rows, ranked once; samples are given as positions of their rows."""

    def __init__(self, proba: FloatArray, codes: IntArray) -> None:
        """Rows of several columns, and their classes: of rows without label any number."""
        self.proba, self.codes = np.asarray(proba), codes
        self.k = self.proba.shape[1]
        self.columns = [1] if self.k == 2 else [*range(self.k)]  # of two, one says it all
        self.ranks, self.alone = [], []
        for column in self.columns:
            _, rank, count = np.unique(
                self.proba[:, column], return_inverse=True, return_counts=True
            )
            self.ranks.append(rank.astype(np.float64))
            self.alone.append((count[rank] == 1).astype(np.float64))

    def distance(
        self,
        labelled: IntArray,
        unlabelled: IntArray,
        rng: np.random.Generator | None = None,
    ) -> MixtureDistance:
        """Kolmogorov and Smirnov's distance, the largest of all classes' scores.

        Between the scores of `unlabelled`, and those of `labelled` with weights that give its
        classes the proportions for which the mean scores agree, or nearly, within the simplex.

        With `rng`, copies of a row follow each other in random order, as new rows with scores
        nearly the same would, unless another row has the same score.
        """
        scores, codes = self.proba.take(labelled, axis=0), self.codes[labelled]
        member = (codes[:, None] == np.arange(self.k)).astype(np.float64)
        mass = member.sum(axis=0)
        given = scores.T @ (member / mass)
        known = mass / mass.sum()
        share = 1.0 / len(unlabelled)
        miss = share * np.bincount(unlabelled, minlength=len(self.codes)) @ self.proba
        miss -= given @ known
        raw = np.maximum(known + np.linalg.lstsq(given, miss, rcond=_SINGULAR)[0], 0.0)
        prior = raw / raw.sum()
        rows = np.concatenate([labelled, unlabelled])
        gap = np.concatenate([(prior / mass)[codes], np.full(len(unlabelled), -share)])
        found = []
        for rank, alone in zip(self.ranks, self.alone, strict=True):
            place = rank[rows]
            if rng is not None:
                place += alone[rows] * rng.random(len(rows))  # within its rank
            order = np.argsort(place)
            place = place[order]
            last = np.append(place[1:] != place[:-1], True)  # of equal scores
            found.append(float(np.abs(np.cumsum(gap[order])[last]).max()))
        worst = int(np.argmax(found))
        return MixtureDistance(min(found[worst], 1.0), self.columns[worst], prior)
