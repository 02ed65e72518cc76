"""What a stack is made of: folds that depend on the data alone, candidates, chains of them."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._count_weights import are_counts
from .._kernels._binning import BIN_EDGE_TOLERANCE_IN_BINS
from .._random import GOLDEN_RATIO_INCREMENT, mix_bits
from .._typing import CV, AnyArray, Estimator, FloatArray, IntArray
from .._validation import read_proba
from ..exceptions import invalid_input
from ._any_recalibrator import (
    fit_validated,
    predict_proba_aligned,
    resolve_recalibrator,
)
from ._base import Recalibrator
from ._cross_fitting import make_folds

RecalibratorChains = dict[str, tuple[Estimator, ...]]
FittedChains = dict[str, tuple[Estimator, ...]]
ErrorByChain = dict[str, Exception]


def make_chains_by_name(recalibrators: object) -> RecalibratorChains:
    """Return candidates by name, each as the recalibrators that it applies in turn.

    A pipeline of recalibrators is a chain; two chains that begin with the same instance
    share it.
    """
    if isinstance(recalibrators, Mapping):
        pairs = [(str(name), method) for name, method in recalibrators.items()]
    elif isinstance(recalibrators, Sequence) and not isinstance(recalibrators, str):
        pairs = [
            (method if isinstance(method, str) else repr(method), method)
            for method in recalibrators
        ]
    else:
        pairs = []
    if not pairs:
        raise invalid_input(
            expected=(
                'recalibrators="auto", a list of names and instances, or a dict of name to these'
            ),
            got=repr(recalibrators),
            hint="See sklearn_calib.recalibrators.all_recalibrators()",
            error=TypeError,
        )
    chains: RecalibratorChains = {}
    for name, method in pairs:
        recalibrator = resolve_recalibrator(method)
        # Equal names are made different by primes.
        while name in chains:
            name += "'"
        steps = (
            [step for _, step in method.steps] if isinstance(method, Pipeline) else []
        )
        are_recalibrators = steps and all(
            isinstance(step, Recalibrator) for step in steps
        )
        if are_recalibrators:
            # The parts are not copied, so that shared ones can be recognised.
            chains[name] = tuple(steps)
        else:
            chains[name] = (recalibrator if isinstance(method, str) else method,)
    return chains


def compute_fit_and_held_out_weights(
    proba: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    cv: CV,
    max_rows: int,
    groups: IntArray | None = None,
) -> list[tuple[FloatArray, FloatArray]]:
    """Return, for each fold, the weights of the fitted rows and of those left out.

    An int makes stratified folds from the rows' own digits: as good as random, but the
    order of the rows and of the classes does not matter. A weight that is a whole
    number counts as so many rows, which may fall into different folds. Of more rows
    than `max_rows` a sample of so many is taken. A group, numbered from 0, stays in one
    fold.
    """
    if not isinstance(cv, int | np.integer):
        splits = make_folds(codes, cv, groups=groups)
        tests = [np.isin(np.arange(len(codes)), test) for _, test in splits]
        return [
            (np.where(test, 0.0, weight), np.where(test, weight, 0.0)) for test in tests
        ]
    is_count = are_counts(weight)
    key, column_key = _hash_rows_without_and_with_columns(
        proba, codes, weight if is_count else np.ones(len(codes))
    )
    # Equal rows become neighbours.
    order = np.lexsort((weight, column_key, key, codes))
    count, copy_weight = _compute_copy_counts_and_copy_weights(
        weight[order], is_count, max_rows
    )
    # The index into `order` of each copy.
    copies = np.repeat(np.arange(len(order)), count.astype(np.intp))
    label = codes[order][copies]
    key = _make_keys_distinct_for_copies(key[order][copies], label)
    n_folds = int(cv)
    if groups is None:
        if n_folds > len(key):
            raise invalid_input(
                expected=f"at most {len(key)} folds as cv, one for each row",
                got=f"{n_folds}",
                hint="Pass for instance cv=5",
            )
        fold = _deal_rows(key, label, n_folds)
    else:
        copy_groups = groups[order][copies]
        n_folds = min(n_folds, len(np.unique(copy_groups)))
        fold = find_fold_by_group(copy_groups, label, key, n_folds)[copy_groups]
    folds = []
    for fold_number in range(n_folds):
        is_held_out = fold == fold_number
        fit_weight, held_out_weight = np.zeros((2, len(codes)))
        held_out_weight[order] = copy_weight * np.bincount(
            copies[is_held_out], minlength=len(order)
        )
        fit_weight[order] = copy_weight * np.bincount(
            copies[~is_held_out], minlength=len(order)
        )
        folds.append((fit_weight, held_out_weight))
    return folds


def find_fold_by_group(
    groups: IntArray, codes: IntArray, key: AnyArray, n_folds: int
) -> IntArray:
    """Assign groups to folds so that the classes are spread as evenly as possible.

    The largest groups are dealt out one by one, each to the fold that has the least of
    its classes; small ones, beyond the first 5000, in turns. `key` has a number for
    each row that decides between groups of one size, so that neither the names of the
    groups nor the order of the rows matters.
    """
    n_groups = groups.max() + 1
    k = codes.max() + 1
    counts = np.bincount(groups * k + codes, minlength=n_groups * k).reshape(
        n_groups, k
    )
    digest = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(digest, groups, key)
    order = np.lexsort((digest, -counts.sum(axis=1)))
    share = counts / np.maximum(counts.sum(axis=0), 1)
    fold = np.empty(n_groups, dtype=np.intp)
    filled = np.zeros((n_folds, k))
    for group in order[:_MAX_GROUPS_DEALT_SINGLY]:
        crowded = (filled @ share[group]) + 1e-6 * filled.sum(axis=1)
        fold[group] = crowded.argmin()
        filled[fold[group]] += share[group]
    rest = order[_MAX_GROUPS_DEALT_SINGLY:]
    fold[rest] = np.arange(len(rest)) % n_folds
    return fold


_MAX_GROUPS_DEALT_SINGLY = 5000


def _compute_copy_counts_and_copy_weights(weight, is_count, max_total_copies):
    """Return how many copies of each row are divided, and the weight of one copy.

    There are at most `max_total_copies` copies in all.
    """
    n = len(weight)
    count = weight if is_count else np.ones(n)
    copy_weight = np.ones(n) if is_count else weight
    if n > max_total_copies or count.sum() > max_total_copies:
        # A systematic sample: rows at equal distances along the cumulated weight.
        cumulative_weight = np.cumsum(weight)
        points = (np.arange(max_total_copies) + 0.5 - BIN_EDGE_TOLERANCE_IN_BINS) * (
            cumulative_weight[-1] / max_total_copies
        )
        drawn = np.minimum(np.searchsorted(cumulative_weight, points), n - 1)
        count = np.bincount(drawn, minlength=n).astype(float)
        if not is_count:
            copy_weight = np.full(n, cumulative_weight[-1] / max_total_copies)
    return count, copy_weight


def _make_keys_distinct_for_copies(key, label):
    """Return keys that differ between the copies of a row, which are neighbours."""
    place = np.arange(len(key))
    is_first = np.append(True, (np.diff(key) != 0) | (np.diff(label) != 0))
    number = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return mix_bits(key + number.astype(np.uint64) * GOLDEN_RATIO_INCREMENT)


def _deal_rows(key, label, n_folds):
    """Return stratified folds of rows, which depend on their keys alone."""
    smallest_key = np.full(label.max() + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    # The classes are ordered by their smallest keys, regardless of their numbers.
    np.minimum.at(smallest_key, label, key)
    order = np.lexsort((key, label, smallest_key[label]))
    fold = np.empty(len(key), dtype=np.intp)
    # Rows are dealt on from class to class, so that no fold stays empty.
    fold[order] = np.arange(len(key)) % n_folds
    return fold


def _hash_rows_without_and_with_columns(
    proba, codes, row_counts
) -> tuple[AnyArray, AnyArray]:
    """Hash each row and label; the first hash ignores exchanged columns.

    A column is known by the sum of its digits over all rows, not by its place, so
    neither depends on the order of the classes. Equal rows with different labels get
    different numbers: they must not be dealt out in parallel.
    """
    # Rounding noise does not change the whole number.
    digits = np.rint(np.asarray(proba) * 2.0**36).astype(np.uint64)
    row_counts = row_counts.astype(np.uint64)
    key, column_key = np.zeros((2, len(proba)), dtype=np.uint64)
    for column in digits.T:
        digit_hash = mix_bits(column * GOLDEN_RATIO_INCREMENT)
        key += digit_hash
        column_key += digit_hash * mix_bits(
            (digit_hash * row_counts).sum(keepdims=True)
        )
    return mix_bits(
        key + digits[np.arange(len(codes)), codes] * GOLDEN_RATIO_INCREMENT
    ), column_key


def fit_chains(
    chains: RecalibratorChains, proba: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[FittedChains, ErrorByChain]:
    """Fit all candidates to the rows that have weight; those that raise an error are returned.

    A chain's first steps that other chains share are fitted once. What they warn of is
    known to the stack, which judges by the losses: it is not repeated.
    """
    kept = weight > 0
    if not kept.all():
        proba = proba[kept]
        codes = codes[kept]
        weight = weight[kept]
    classes = np.arange(proba.shape[1])
    # Only steps that others follow need predictions for the rows of the fit.
    inner = set()
    for steps in chains.values():
        for end in range(1, len(steps)):
            inner.add(tuple(map(id, steps[:end])))
    fit_by_steps: dict[tuple[int, ...], tuple[Any, Any]] = {(): (None, proba)}
    fitted: FittedChains = {}
    failed: ErrorByChain = {}
    for name, steps in chains.items():
        key: tuple[int, ...] = ()
        fitted_steps = []
        try:
            for step in steps:
                scores = fit_by_steps[key][1]
                key = (*key, id(step))
                if key not in fit_by_steps:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        fitted_step = fit_validated(
                            clone(step),
                            scores,
                            codes,
                            classes,
                            sample_weight=weight,
                        )
                        transformed = (
                            read_proba(fitted_step.transform(scores))
                            if key in inner
                            else None
                        )
                        fit_by_steps[key] = fitted_step, transformed
                fitted_steps.append(fit_by_steps[key][0])
            fitted[name] = tuple(fitted_steps)
        except Exception as error:
            # A candidate may raise any exception.
            failed[name] = error
    return fitted, failed


def iter_chain_predictions(
    fitted: FittedChains, proba: FloatArray, classes: AnyArray
) -> Iterator[tuple[str, FloatArray | Exception]]:
    """Iterate over the candidates' probabilities or errors; shared steps run once."""
    scores_by_steps: dict[tuple[int, ...], Any] = {(): proba}
    for name, steps in fitted.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                key: tuple[int, ...] = ()
                for step in steps[:-1]:
                    scores = scores_by_steps[key]
                    key = (*key, id(step))
                    if key not in scores_by_steps:
                        scores_by_steps[key] = step.transform(scores)
                predicted = predict_proba_aligned(
                    steps[-1], scores_by_steps[key], classes
                )
            if predicted.shape != proba.shape or not np.isfinite(predicted).all():
                raise ValueError(
                    "probabilities that are not finite, or of another shape"
                )
        except Exception as error:
            # A candidate may raise any exception.
            yield name, error
        else:
            yield name, predicted


def make_estimator(steps: tuple[Estimator, ...]) -> Estimator:
    """Return a fitted chain as a fitted estimator."""
    if len(steps) == 1:
        return steps[0]
    return Pipeline(
        [(f"{type(step).__name__.lower()}{i}", step) for i, step in enumerate(steps)]
    )
