"""The fits of a search over candidates and folds, and the results of their stages."""

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel

from .._callbacks import report_task
from .._simplex_array import stack_proba_rows
from .._typing import Estimator, FloatArray, IntArray
from .._validation import place_columns, read_proba
from ..staged import find_staging
from ._user_estimators import clone_or_raise

if TYPE_CHECKING:
    from ..metrics import ProperLoss
    from ..staged import Staging
    from ._fit_context import FitContext


class SearchFold(NamedTuple):
    """A model fitted on a fold, and the rows it is judged on; or why it could not be fitted."""

    estimator: Any
    columns: Any
    # The test rows of classes that the model has seen, and their features.
    rows: Any
    X_test: Any
    seconds: float
    error: str | None = None

    def predict_test_scores(self, context: "FitContext") -> FloatArray:
        return context.compute_scores(self.estimator, self.columns, self.X_test)

    def truncate_estimator(self, staging: "Staging | None", stage: int) -> "SearchFold":
        if staging is None:
            return self
        # A fold may have stopped earlier by itself.
        stage = min(stage, staging.n_stages(self.estimator))
        return self._replace(
            estimator=staging.truncate_to_stage(unwrap_frozen(self.estimator), stage)
        )


def run_parallel_lazily(n_jobs: int | None, tasks: Iterable[Any]) -> Iterator[Any]:
    """Return the results one after the other; all at once if joblib's backend cannot do that."""
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        # The multiprocessing backend cannot do that: the models of all candidates stay
        # in memory.
        parallel = Parallel(n_jobs=n_jobs)
    return iter(parallel(tasks))


def fit_search_fold(
    context: "FitContext",
    params: dict[str, Any],
    split: tuple[IntArray, IntArray],
    caller: Any,
    task: Any,
) -> SearchFold:
    """Fit a candidate to the training part of a split, with its test rows beside it."""
    estimator = context.estimator
    train, test = split
    start = time.perf_counter()
    with report_task(task, caller, None, context.X, context.y_encoded):
        if isinstance(estimator, FrozenEstimator):
            columns = context.all_columns
            return SearchFold(unwrap_frozen(estimator), columns, test, context.X, 0.0)
        try:
            estimator, staging = _make_estimator_and_staging(
                context, params, caller.stages
            )
            estimator, columns = context.fit_estimator_and_get_columns(
                train, estimator, staging and staging.fit
            )
        except Exception as error:
            # Without a grid there is no other candidate to choose.
            if caller.error_score == "raise" or caller.param_grid is None:
                raise
            seconds = time.perf_counter() - start
            return SearchFold(
                None,
                None,
                None,
                None,
                seconds,
                f"{type(error).__name__}: {error}",
            )
        seconds = time.perf_counter() - start
        rows, _ = context.get_test_rows_and_learned_labels(columns, test)
        X = context.get_features_at_rows(estimator, train, rows)
        return SearchFold(estimator, columns, rows, X, seconds)


def _make_estimator_and_staging(context, params, stages):
    """Return an unfitted estimator with these parameters, and its staging."""
    estimator = _clone_with_params(context, params)
    staging = None if stages is None else find_staging(estimator)
    if staging is not None:
        estimator = staging.with_recording(estimator)
    return estimator, staging


def _clone_with_params(context, params):
    return clone_or_raise(context.estimator).set_params(**clone(params, safe=False))


def refit_candidate(
    context: "FitContext", params: dict[str, Any], staging: "Staging | None", stage: int
) -> tuple[Estimator, IntArray]:
    """Fit a candidate to all rows up to a stage; return it with its class columns."""
    estimator = _clone_with_params(context, params)
    if staging is None:
        return context.fit_estimator_and_get_columns(context.all_rows, estimator)
    # The refit on all rows does not need more stages than the chosen one.
    estimator = staging.with_max_stages(staging.with_recording(estimator), stage)
    estimator, columns = context.fit_estimator_and_get_columns(
        context.all_rows, estimator, staging.fit
    )
    # A learner that stops early by itself may have fewer stages.
    stage = min(stage, staging.n_stages(estimator))
    return staging.truncate_to_stage(estimator, stage), columns


def unwrap_frozen(estimator: Estimator) -> Estimator:
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def iter_stage_scores_and_own_proba(
    context: "FitContext",
    folds: list[SearchFold],
    staging: "Staging | None",
    wanted: Collection[int],
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the scores of all folds' test rows, stage by stage; a shorter fit keeps its last ones.

    The scores to be recalibrated, and the learner's own probabilities; often the same
    array.
    """
    if staging is None:
        yield _stack_scores_and_own_proba(
            [
                _compute_fold_scores_and_own_proba(context, fold)
                for fold in folds
                if len(fold.rows)
            ]
        )
        return
    streams = [
        _iter_stage_scores_and_proba_or_none(context, fold, staging, wanted)
        for fold in folds
        if len(fold.rows)
    ]
    # A fold that has ended keeps the scores of its last stage.
    blocks = [None] * len(streams)
    for stage in range(1, max(wanted) + 1):
        blocks = [
            next(stream, block) for stream, block in zip(streams, blocks, strict=True)
        ]
        if stage in wanted:
            yield _stack_scores_and_own_proba(
                [block for block in blocks if block is not None]
            )


def iter_scores_and_record_losses(
    stream: Iterable[tuple[FloatArray, FloatArray]],
    losses: list[float],
    loss: "ProperLoss",
    y_encoded: IntArray,
    options: dict[str, Any],
) -> Iterator[FloatArray]:
    """Yield the scores to be recalibrated; append the learner's own loss, NaN if it is theirs."""
    measure = loss.measure()
    for scores, own_scores in stream:
        losses.append(
            np.nan
            if own_scores is scores
            else measure(y_encoded, own_scores, **options)
        )
        yield scores


def _stack_scores_and_own_proba(blocks):
    stacked = stack_proba_rows([scores for scores, _ in blocks])
    if all(own_scores is scores for scores, own_scores in blocks):
        return stacked, stacked
    return stacked, stack_proba_rows([own_scores for _, own_scores in blocks])


def _compute_fold_scores_and_own_proba(context, fold):
    scores = fold.predict_test_scores(context)
    if not (
        hasattr(fold.estimator, "decision_function")
        and hasattr(fold.estimator, "predict_proba")
    ):
        return scores, scores
    return scores, fold.predict_test_scores(
        replace(context, response_method="predict_proba")
    )


def _iter_stage_scores_and_proba_or_none(context, fold, staging, wanted):
    """Iterate over the scores and own probabilities of the test rows at each stage.

    Yields None for stages that are not wanted.
    """

    def read_proba_in_all_class_columns(kind, scores):
        proba = read_proba(scores, kind=kind, n_classes=len(fold.columns))
        return place_columns(proba, fold.columns, len(context.classes))

    staged_scores = staging.staged_scores(fold.estimator, fold.X_test)
    staged_proba = staging.staged_proba(fold.estimator, fold.X_test)
    pairs = zip(
        staged_scores,
        repeat(None) if staged_proba is None else staged_proba,
        strict=False,
    )
    last = staging.n_stages(fold.estimator)
    for stage, ((kind, scores), proba) in enumerate(pairs, 1):
        # The last stage is needed when other folds go on.
        if stage not in wanted and stage != last:
            yield None
            continue
        # A fold with a single class has no scores.
        if len(fold.columns) == 1:
            kind = "proba"
            scores = np.ones((len(fold.rows), 1))
            proba = None
        canonical = read_proba_in_all_class_columns(kind, scores)
        yield (
            canonical,
            canonical
            if proba is None
            else read_proba_in_all_class_columns("proba", proba),
        )


def make_results_table(table: list[Any]) -> dict[str, Any]:
    """Return cv_results_: one row for each candidate and stage."""
    parts = []
    for number, params, seconds, curve in table:
        n_rows = 1 if curve is None else len(curve.stage)
        columns = {
            "candidate": np.full(n_rows, number),
            "params": np.array([params] * n_rows, dtype=object),
            "fit_time": np.full(n_rows, seconds),
            "stage": np.zeros(1, dtype=int) if curve is None else curve.stage,
        }
        for name in (
            "risk",
            "refinement",
            "calibration",
            "criterion",
            "standard_error",
        ):
            columns[name] = (
                np.full(1, np.nan) if curve is None else getattr(curve, name)
            )
        parts.append(columns)
    results = {
        name: np.concatenate([candidate[name] for candidate in parts])
        for name in parts[0]
    }
    # Masked, as in scikit-learn: a grid of several dicts does not set every parameter
    # in each candidate.
    names = set().union(*(params for _, params, *_ in table))
    for name in sorted(names):
        values = np.ma.masked_all(len(results["params"]), dtype=object)
        for row, params in enumerate(results["params"]):
            if name in params:
                values[row] = params[name]
        results[f"param_{name}"] = values
    # Missing values are NaN, which sorts last.
    order = np.argsort(results["criterion"], kind="stable")
    results["rank"] = np.empty(len(order), dtype=int)
    results["rank"][order] = np.arange(1, len(order) + 1)
    return results
