"""Rows pooled by score, as `Predictions` with two rows per cell, one for each label."""

from functools import cached_property
from typing import Any

import numpy as np

from .._typing import AnyArray, FloatArray
from ._predictions import Predictions


class PooledPredictions:
    """What samples of cells have in common: the cells as `Predictions` of the labels 0 and 1.

    Attributes
    ----------
    proba : ndarray of shape (n_cells, 2)
        Probabilities of both labels, cells in increasing order of the second.
    counts, weight, squares : ndarray of shape (n_cells, 2)
        Numbers of rows with label 0 and 1, sums of their weights and squared weights.
    n_clusters : int or None
        The number of clusters that the rows belong to; None where they are independent.
    """

    proba: FloatArray
    counts: AnyArray
    weight: FloatArray
    squares: FloatArray
    n_clusters: int | None = None

    @cached_property
    def predictions(self) -> Predictions:
        """The cells as `Predictions` of the labels 0 and 1: two rows each, one a label."""
        codes = np.tile(np.arange(2), len(self.proba))
        predictions = Predictions(
            np.repeat(self.proba, 2, axis=0), codes, self.weight.ravel(), np.arange(2)
        )
        predictions.problems()  # sorted once for all that is drawn
        return predictions

    @cached_property
    def filled(self) -> tuple[Predictions, FloatArray]:
        """The entries of `predictions` that have rows, and their summed squared weights."""
        kept = np.flatnonzero(self.counts.ravel())
        return self.predictions.take(kept), self.squares.ravel()[kept]


class CurveOfCells:
    """A sample of cells as `CurveRows`: drawn as its rows, or its clusters of rows, would be."""

    def __init__(self, sample: Any, title: str) -> None:
        self.score, self.weight = sample.proba[:, 1], sample.weight.sum(axis=1)
        self.hits, self.squares = sample.weight[:, 1], sample.squares.sum(axis=1)
        self.title, self._sample = title, sample
        self.share_intervals = None if sample.n_clusters is None else sample.share_intervals

    def relabelled(self, rng: np.random.Generator) -> FloatArray:
        return self._sample.relabelled(rng).weight[1::2]

    def redrawn(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        weight = self._sample.redrawn(rng).weight.reshape(-1, 2)
        return weight.sum(axis=1), weight[:, 1]
