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


class SortedScores:
    """Scores of all rows, sorted once; samples are given as counts of the rows."""

    def __init__(self, proba: FloatArray, codes: IntArray) -> None:
        """Rows of several columns, and their classes: of rows without label any number."""
        self.proba, self.codes = np.asarray(proba), codes
        self.k = self.proba.shape[1]
        self.columns = [1] if self.k == 2 else [*range(self.k)]  # of two, one says it all
        self.orders, self.ends = [], []
        for column in self.columns:
            order = np.argsort(self.proba[:, column], kind="stable")
            ranked = self.proba[order, column]
            self.orders.append(order)
            self.ends.append(np.append(ranked[1:] != ranked[:-1], True))  # last of equal scores

    def distance(self, labelled: FloatArray, unlabelled: FloatArray) -> MixtureDistance:
        """Kolmogorov and Smirnov's distance, the largest of all classes' scores.

        Between the scores of `unlabelled`, and those of `labelled` with weights that give its
        classes the proportions for which the mean scores agree, or nearly, within the simplex.
        """
        member = np.zeros((len(self.codes), self.k))
        member[np.arange(len(self.codes)), self.codes] = labelled
        mass = member.sum(axis=0)
        given = self.proba.T @ (member / mass)
        known = mass / mass.sum()
        miss = (unlabelled / unlabelled.sum()) @ self.proba - given @ known
        raw = np.maximum(known + np.linalg.lstsq(given, miss, rcond=_SINGULAR)[0], 0.0)
        prior = raw / raw.sum()
        gap = labelled * (prior / mass)[self.codes] - unlabelled / unlabelled.sum()
        found = [
            float(np.abs(np.cumsum(gap[order])[ends]).max())
            for order, ends in zip(self.orders, self.ends, strict=True)
        ]
        worst = int(np.argmax(found))
        return MixtureDistance(min(found[worst], 1.0), self.columns[worst], prior)
