"""The fits of a search over candidates and folds, and what their stages say."""

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
from .._simplex_array import stack_rows
from .._typing import Estimator, FloatArray, IntArray
from .._validation import place_columns, read_proba
from ..staging import staging_of
from ._user_estimators import clone_or_raise

if TYPE_CHECKING:
    from ..metrics import ProperLoss
    from ..staging import Staging
    from ._base import Job


class SearchFold(NamedTuple):
    """A model fitted on a fold, and the rows it is judged on; or why it could not be fitted."""

    estimator: Any
    columns: Any
    rows: Any  # test rows of classes that the model has seen
    part: Any  # their features
    seconds: float
    error: str | None = None

    def scores(self, job: "Job") -> FloatArray:
        return job.scores(self.estimator, self.columns, self.part)

    def truncated(self, staging: "Staging | None", stage: int) -> "SearchFold":
        if staging is None:
            return self
        stage = min(stage, staging.n_stages(self.estimator))
        return self._replace(estimator=staging.truncated(unwrap_frozen(self.estimator), stage))


def run_parallel_lazily(n_jobs: int | None, tasks: Iterable[Any]) -> Iterator[Any]:
    """The results one after the other; all at once where joblib's backend cannot do that."""
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # multiprocessing: every candidate's models are held
        parallel = Parallel(n_jobs=n_jobs)
    return iter(parallel(tasks))


def fit_fold(
    job: "Job", params: dict[str, Any], split: tuple[IntArray, IntArray], caller: Any, task: Any
) -> SearchFold:
    estimator, (train, test) = job.estimator, split
    start = time.perf_counter()
    with report_task(task, caller, None, job.X, job.codes):
        if isinstance(estimator, FrozenEstimator):
            columns = np.arange(len(job.classes))
            return SearchFold(unwrap_frozen(estimator), columns, test, job.X, 0.0)
        try:
            estimator, staging = _candidate(job, params, caller.stages)
            estimator, columns = job.fit_estimator(train, estimator, staging and staging.fit)
        except Exception as error:
            if caller.error_score == "raise" or caller.param_grid is None:  # nothing else to choose
                raise
            seconds = time.perf_counter() - start
            return SearchFold(None, None, None, None, seconds, f"{type(error).__name__}: {error}")
        seconds = time.perf_counter() - start
        rows, part = job.test_part(estimator, columns, train, test)
        return SearchFold(estimator, columns, rows, part, seconds)


def _candidate(job, params, stages):
    """An unfitted estimator with these parameters, and its staging."""
    estimator = clone_or_raise(job.estimator).set_params(**clone(params, safe=False))
    staging = None if stages is None else staging_of(estimator)
    return (estimator if staging is None else staging.prepared(estimator)), staging


def refit(
    job: "Job", params: dict[str, Any], staging: "Staging | None", stage: int
) -> tuple[Estimator, IntArray]:
    everything = np.arange(len(job.codes))
    estimator = clone_or_raise(job.estimator).set_params(**clone(params, safe=False))
    if staging is None:
        return job.fit_estimator(everything, estimator)
    estimator = staging.limited(staging.prepared(estimator), stage)
    estimator, columns = job.fit_estimator(everything, estimator, staging.fit)
    stage = min(stage, staging.n_stages(estimator))
    return staging.truncated(estimator, stage), columns


def unwrap_frozen(estimator: Estimator) -> Estimator:
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


class BothScores(NamedTuple):
    """What is recalibrated, and the learner's own probabilities; often the same."""

    given: Any
    own: Any


def pooled_stages(
    job: "Job", folds: list[SearchFold], staging: "Staging | None", wanted: Collection[int]
) -> Iterator[BothScores]:
    """`BothScores` of all folds' test rows, stage by stage; a shorter fit keeps its last ones."""
    if staging is None:
        yield _stacked([_unstaged(job, fold) for fold in folds if len(fold.rows)])
        return
    streams = [
        _fold_stages(job, fold, staging, wanted) if len(fold.rows) else iter(()) for fold in folds
    ]
    blocks = [None] * len(folds)
    for stage in range(1, max(wanted) + 1):
        blocks = [next(stream, block) for stream, block in zip(streams, blocks, strict=True)]
        if stage in wanted:
            yield _stacked([block for block in blocks if block is not None])


def own_risks(
    stream: Iterable[BothScores],
    risks: list[float],
    loss: "ProperLoss",
    codes: IntArray,
    known: dict[str, Any],
) -> Iterator[FloatArray]:
    """The scores to be recalibrated; the learner's own loss, where it differs, goes to `risks`."""
    measure = loss.measure()
    for given, own in stream:
        risks.append(np.nan if own is given else measure(codes, own, **known))
        yield given


def _stacked(blocks):
    given = stack_rows([block.given for block in blocks])
    same = all(block.own is block.given for block in blocks)
    return BothScores(given, given if same else stack_rows([block.own for block in blocks]))


def _unstaged(job, fold):
    given, model = fold.scores(job), fold.estimator
    if not (hasattr(model, "decision_function") and hasattr(model, "predict_proba")):
        return BothScores(given, given)
    own = replace(job, response_method="predict_proba")
    return BothScores(given, own.scores(model, fold.columns, fold.part))


def _fold_stages(job, fold, staging, wanted):
    def canonical(kind, scores):
        proba = read_proba(scores, kind=kind, n_classes=len(fold.columns))
        return place_columns(proba, fold.columns, len(job.classes))

    scored = staging.staged_scores(fold.estimator, fold.part)
    own = staging.staged_proba(fold.estimator, fold.part)
    pairs = zip(scored, repeat(None) if own is None else own, strict=False)
    for stage, ((kind, scores), proba) in enumerate(pairs, 1):
        last = stage == staging.n_stages(fold.estimator)
        if stage not in wanted and not last:
            yield None
            continue
        if len(fold.columns) == 1:
            kind, scores, proba = "proba", np.ones((len(fold.rows), 1)), None
        given = canonical(kind, scores)
        yield BothScores(given, given if proba is None else canonical("proba", proba))


def results_table(table: list[Any]) -> dict[str, Any]:
    """cv_results_: one row for each candidate and stage."""
    parts = []
    for number, params, seconds, curve in table:
        n_rows = 1 if curve is None else len(curve.stage)
        columns = {
            "candidate": np.full(n_rows, number),
            "params": np.array([params] * n_rows, dtype=object),
            "fit_time": np.full(n_rows, seconds),
            "stage": np.zeros(1, dtype=int) if curve is None else curve.stage,
        }
        for name in ("risk", "refinement", "calibration", "criterion", "standard_error"):
            columns[name] = np.full(1, np.nan) if curve is None else getattr(curve, name)
        parts.append(columns)
    results = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name in sorted({name for _, params, *_ in table for name in params}):
        values = np.ma.masked_all(len(results["params"]), dtype=object)
        for row, params in enumerate(results["params"]):
            if name in params:
                values[row] = params[name]
        results[f"param_{name}"] = values
    order = np.argsort(results["criterion"], kind="stable")  # missing ones last
    results["rank"] = np.empty(len(order), dtype=int)
    results["rank"][order] = np.arange(1, len(order) + 1)
    return results
