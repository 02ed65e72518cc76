"""Calibrating the predictions of heavy cells: correct the worst, merge what becomes equal.

Algorithm 2 of "Sample-efficient multiclass calibration under probability-weighted l_p
error", corrected: one estimate of a group's mass, the sum of those of its labels (two
may contradict each other so that the loop never ends); integer keys; masses compared
before the merge.

Equal errors are the rule and not the exception (the two classes of a cell, cells of
equal counts), and rounding must not choose among them: values closer than 1e-12 are
equal, and of equals the lowest cell and the lowest class come first.
"""

from typing import NamedTuple

import numpy as np

from ._level_sets import compute_levels, project_to_simplex

# Masses and errors that are closer than this are equal.
TIE_TOLERANCE = 1e-12


class MergeResult(NamedTuple):
    """Groups of cells after calibration."""

    # Of shape (b,): the number of each cell's group, which is that of its first cell.
    group: np.ndarray
    # The next two have the shape (b, k), `touched` has (b,). Only the rows of the
    # numbers in `group` are meaningful.
    prediction: np.ndarray
    labels: np.ndarray
    touched: np.ndarray
    n_iter: int
    n_merges: int
    converged: bool
    # The largest error that remains.
    error: float


class GroupCorrectionRule(NamedTuple):
    """When and how a group is corrected."""

    n_levels: int
    tolerance: float
    # The number of rows of the sample: a mass times this is a count.
    n_sample_rows: float
    # An error must exceed so many of its standard errors to be corrected.
    min_standard_errors: float = 0.0
    # All classes are corrected at once.
    corrects_all_classes: bool = False
    # The first prediction counts for so many rows in a vector correction.
    first_prediction_rows: float = 0.0
    max_iter: int = 100_000


class WholeSampleLabelEstimates:
    """Every estimate from the whole sample: sums over cells."""

    def __init__(self, labels):
        self.labels = labels.copy()

    def merge_groups(self, kept, gone):
        self.labels[kept] += self.labels[gone]


class SplitSampleLabelEstimates:
    """The paper's: groups of 2^i cells are estimated from pool i, once, when they arise.

    Each group of predictions is a union of such sets whose sizes are the binary digits
    of its number of cells. `noise` draws what is added to an estimate.
    """

    def __init__(self, pools, noise=None):
        self.pools = pools
        self.noise = noise
        b = pools[0].shape[0]
        self.parts = [
            {0: ([cell], self._estimate_label_masses_over_cells(0, [cell]))}
            for cell in range(b)
        ]
        self.labels = np.array([parts[0][1] for parts in self.parts])

    def merge_groups(self, kept, gone):
        """Move the cells of group `gone` to group `kept`."""
        pools = self.parts[kept]
        for power, pool_cells in sorted(self.parts[gone].items()):
            # Groups are merged like digits of a binary number: two of size 2^i make one
            # of size 2^(i+1), so that each group is estimated from its own pool
            # (algorithm 2, the inner while loop).
            while power in pools:
                cells = sorted(pools.pop(power)[0] + pool_cells[0])
                power += 1
                pool_cells = cells, self._estimate_label_masses_over_cells(power, cells)
            pools[power] = pool_cells
        self.parts[gone] = {}
        self.labels[kept] = sum(estimate for _, estimate in pools.values())

    def _estimate_label_masses_over_cells(self, pool_number, cells):
        labels = self.pools[pool_number][cells].sum(axis=0)
        # The noise is that of the proof of lemma 9 (differential privacy), with which
        # lemma 4 bounds adaptive estimates.
        if self.noise is not None:
            labels = labels + self.noise(labels.shape)
        return np.clip(labels, 0, 1)


def correct_and_merge_cells(
    cell_levels, labels, first, rule, estimates=None
) -> MergeResult:
    """Correct and merge groups of heavy cells until no error exceeds the tolerance.

    Parameters
    ----------
    cell_levels : ndarray of shape (b, k), int
        The levels of the probabilities in each cell.
    labels : ndarray of shape (b, k)
        The mass of each label, a share of the whole sample; rows sum to the mass of the
        cell.
    first : ndarray of shape (b, k)
        The first prediction of each cell.
    rule : GroupCorrectionRule
    estimates : WholeSampleLabelEstimates or SplitSampleLabelEstimates, default=None
        One pool of the labels by default.
    """
    b = len(cell_levels)
    estimates = WholeSampleLabelEstimates(labels) if estimates is None else estimates
    labels = estimates.labels
    prediction = first.copy()
    first = first.copy()
    # At most one group may hold each level set; the dictionary finds the group that a
    # corrected prediction must be merged with.
    keys = [level.tobytes() for level in cell_levels]
    owner = {key: cell for cell, key in enumerate(keys)}
    group = np.arange(b)
    alive = np.ones(b, dtype=bool)
    touched = np.zeros(b, dtype=bool)
    is_final = np.zeros(b, dtype=bool)
    worst = np.zeros(b)
    worst_class = np.zeros(b, dtype=np.intp)

    def update_worst_error_and_class(g):
        """Update the error of group g, and the class in which it is largest."""
        mass = labels[g].sum()
        # The estimated error of algorithm 2: the mass of the group times its
        # prediction, less its estimated label frequencies.
        error = np.abs(mass * prediction[g] - labels[g])
        if rule.min_standard_errors > 0:
            # An extension of the paper: errors within their own standard errors are not
            # corrected, because a correction would only fit noise.
            spread = (
                np.maximum(prediction[g] * (1 - prediction[g]), 0)
                * max(mass, 0)
                / rule.n_sample_rows
            )
            error = np.where(
                error > rule.min_standard_errors * np.sqrt(spread) + TIE_TOLERANCE,
                error,
                0,
            )
        worst_class[g] = _find_largest_index(error)
        worst[g] = 0 if is_final[g] else error[worst_class[g]]

    for g in range(b):
        update_worst_error_and_class(g)
    n_iter = n_merges = 0
    while b and n_iter < rule.max_iter:
        g = _find_largest_index(worst)
        if not worst[g] > rule.tolerance + TIE_TOLERANCE:
            break
        n_iter += 1
        prediction[g] = _get_corrected_group_prediction(
            prediction[g],
            first[g],
            labels[g],
            worst_class[g],
            rule,
        )
        touched[g] = True
        # A shrunken estimate still differs from the labels, which is intended: the
        # group is not corrected again.
        is_final[g] = rule.corrects_all_classes
        del owner[keys[g]]
        key = compute_levels(prediction[g], rule.n_levels).tobytes()
        other = owner.get(key)
        # At most one other group has this key, and the merged group keeps the key.
        if other is not None:
            n_merges += 1
            # The merged group keeps the prediction of the heavier one, as in algorithm
            # 2; a tie keeps that of the other group.
            masses = labels[g].sum(), labels[other].sum()
            winner = prediction[
                other if masses[0] <= masses[1] + TIE_TOLERANCE else g
            ].copy()
            fraction = masses[0] / max(sum(masses), np.finfo(float).tiny)
            prior = fraction * first[g] + (1 - fraction) * first[other]
            gone = max(g, other)
            g = min(g, other)
            estimates.merge_groups(g, gone)
            prediction[g] = winner
            first[g] = prior
            group[group == gone] = g
            alive[gone] = False
            worst[gone] = 0.0
            touched[g] = True
            is_final[g] = False
        keys[g] = key
        owner[key] = g
        update_worst_error_and_class(g)
    largest = float(worst[alive].max()) if b else 0.0
    converged = not largest > rule.tolerance + TIE_TOLERANCE
    return MergeResult(
        group, prediction, labels, touched, n_iter, n_merges, converged, largest
    )


def _find_largest_index(values):
    return int((values >= values.max() - TIE_TOLERANCE).argmax())


def _get_corrected_group_prediction(prediction, first, labels, class_index, rule):
    """Return the prediction of a group, corrected in one class or in all."""
    mass = labels.sum()
    if rule.corrects_all_classes:
        prior = rule.first_prediction_rows / rule.n_sample_rows
        total = mass + prior
        return (labels + prior * first) / total if total > 0 else prediction
    corrected = prediction.copy()
    # Only the worst class is corrected; the projection to the simplex distributes the
    # difference over the others.
    corrected[class_index] = (
        np.clip(labels[class_index] / mass, 0, 1) if mass > 0 else 0.0
    )
    return project_to_simplex(corrected)
