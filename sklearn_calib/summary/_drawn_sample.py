"""Drawn rows in folds: what a recalibrator does to rows that its fit has not seen."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .._typing import AnyArray, Estimator, FloatArray, IntArray
from ..canonical import canonical_proba
from ..metrics import Case
from ..recalibrators import aligned_proba, fit_recalibrator, fold_masses, resolve_recalibrator
from ._drawn import DrawnRows

_MOST_DEALT = 2_000_000  # equal rows are dealt out one by one, but no more than so many


class HeldOut(NamedTuple):
    """Rows of all folds in turn, each recalibrated by a fit to the other folds.

    Attributes
    ----------
    case : Case
        With the recalibrated probabilities.
    rows : ndarray of shape (n_rows,)
        Which of the drawn rows they are; equal rows may be in several folds.
    squares : ndarray of shape (n_rows,)
        Their sums of squared weights.
    """

    case: Case
    rows: IntArray
    squares: FloatArray


class DrawnSample:
    """Drawn rows as probabilities that weigh as the rows that they stand for.

    Parameters
    ----------
    drawn : DrawnRows
    classes : ndarray of shape (n_classes,)
    kind : {"proba", "logits"}, default="proba"
    proba : ndarray of shape (n_rows, n_classes), default=None
        Where they are known better than by their scores.

    Attributes
    ----------
    case : Case
        All rows, equal ones once.
    squares : ndarray of shape (n_rows,)
        Their sums of squared weights.
    """

    def __init__(
        self,
        drawn: DrawnRows,
        classes: AnyArray,
        kind: Literal["proba", "logits"] = "proba",
        proba: FloatArray | None = None,
    ) -> None:
        self.drawn, self.classes = drawn, classes
        if proba is None:
            proba = canonical_proba(drawn.scores, kind=kind, _where="DrawnSample")
        self.squares = drawn.counts * drawn.unit**2
        weight = drawn.counts * drawn.unit
        self.case = Case(proba, drawn.codes, weight, classes, 1, "DrawnSample")

    def folds(
        self, n_folds: int, groups: IntArray | None = None
    ) -> list[tuple[FloatArray, FloatArray]]:
        """For each fold how many of the equal rows are fitted, and how many left out.

        The digits of the rows decide; a group, numbered from 0, stays in one fold.
        """
        given = self.case.proba, self.case.codes, self.drawn.counts.astype(np.float64)
        return fold_masses(*given, n_folds, _MOST_DEALT, groups)

    def held_out(
        self,
        recalibrator: str | Estimator,
        folds: Sequence[Any],
        groups: AnyArray | None = None,
        where: str = "DrawnSample.held_out",
    ) -> HeldOut:
        """Recalibrate each row by a fit to the folds that it is not in."""
        case, unit = self.case, self.drawn.unit
        numbers = np.arange(len(self.classes))
        proba, rows, left = [], [], []
        for kept, out in folds:
            seen, needed = np.flatnonzero(kept > 0), np.flatnonzero(out > 0)
            if not len(needed):
                continue
            weight = (kept * unit)[seen]
            fitted = fit_recalibrator(
                resolve_recalibrator(recalibrator, where),
                case.proba[seen],
                case.codes[seen],
                classes=numbers,
                sample_weight=None if (weight == 1).all() else weight,
                groups=None if groups is None else groups[seen],
            )
            proba.append(aligned_proba(fitted, case.proba[needed], numbers))
            rows.append(needed)
            left.append(out[needed])
        place, mass = np.concatenate(rows), np.concatenate(left)
        given = np.vstack(proba), case.codes[place], mass * unit[place], self.classes, 1, where
        return HeldOut(Case(*given), place, mass * unit[place] ** 2)
