"""How far the scores of one sample are from a mixture of the classes of another."""

from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray

_RELATIVE_SINGULAR_VALUE_TOLERANCE = 1e-8


class WorstClassMixtureDistance(NamedTuple):
    """The largest distance, the class whose score shows it, and the mixture's proportions."""

    distance: float
    column: int
    prior: FloatArray


class RankedClassScores:
    """Scores of all rows, ranked once; samples are given as positions of their rows.

    Every permutation and resample reuses the ranks of all classes.
    """

    def __init__(self, proba: FloatArray, y_encoded: IntArray) -> None:
        """Rank rows of several columns; rows without a label may have any class."""
        self.proba = np.asarray(proba)
        self.y_encoded = y_encoded
        self.k = self.proba.shape[1]
        # The first of two columns contains nothing that the second does not.
        self.columns = [1] if self.k == 2 else [*range(self.k)]
        self.ranks = []
        self.alone = []
        for column in self.columns:
            _, rank, count = np.unique(
                self.proba[:, column], return_inverse=True, return_counts=True
            )
            self.ranks.append(rank.astype(np.float64))
            self.alone.append((count[rank] == 1).astype(np.float64))

    def compute_mixture_distance(
        self,
        labelled: IntArray,
        unlabelled: IntArray,
        copy_order_rng: np.random.Generator | None = None,
    ) -> WorstClassMixtureDistance:
        """Return Kolmogorov and Smirnov's distance, the largest of all classes' scores.

        Between the scores of `unlabelled`, and those of `labelled` with weights that
        give its classes the proportions for which the mean scores agree, or nearly,
        within the simplex.

        With `copy_order_rng`, copies of a row follow each other in random order, as new
        rows with scores nearly the same would, unless another row has the same score.
        """
        scores = self.proba.take(labelled, axis=0)
        y_encoded = self.y_encoded[labelled]
        member = (y_encoded[:, None] == np.arange(self.k)).astype(np.float64)
        mass = member.sum(axis=0)
        # The mixture that fits the unlabelled means best, by least squares; its
        # distance from them is what label shift cannot explain.
        class_means = scores.T @ (member / mass)
        class_frequencies = mass / mass.sum()
        row_fraction = 1.0 / len(unlabelled)
        mismatch = (
            row_fraction
            * np.bincount(unlabelled, minlength=len(self.y_encoded))
            @ self.proba
        )
        mismatch -= class_means @ class_frequencies
        raw = np.maximum(
            class_frequencies
            + np.linalg.lstsq(
                class_means, mismatch, rcond=_RELATIVE_SINGULAR_VALUE_TOLERANCE
            )[0],
            0.0,
        )
        prior = raw / raw.sum()
        rows = np.concatenate([labelled, unlabelled])
        gap = np.concatenate(
            [(prior / mass)[y_encoded], np.full(len(unlabelled), -row_fraction)]
        )
        distances = []
        for rank, alone in zip(self.ranks, self.alone, strict=True):
            rank_position = rank[rows]
            if copy_order_rng is not None:
                # A random number places each row anywhere within its rank.
                rank_position += alone[rows] * copy_order_rng.random(len(rows))
            order = np.argsort(rank_position)
            rank_position = rank_position[order]
            # The distribution functions are compared only after all rows of a tie.
            last = np.append(rank_position[1:] != rank_position[:-1], True)
            path = np.cumsum(gap[order])[last]
            distances.append(float(np.abs(path).max()))
        worst = int(np.argmax(distances))
        return WorstClassMixtureDistance(
            min(distances[worst], 1.0), self.columns[worst], prior
        )
