"""Measures of refitted models, and what they say about the model itself."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from .._kernels._batch_measures import RANGES, batch_measures
from .._typing import FloatArray
from ..exceptions import warn
from ..metrics import Case, Measure
from ._internal_result import InternalValidationRow
from ._refits import Refits

#: Quantities whose value does not fall where predictions have no relation to the outcome.
TARGETS = ("O/E", "calibration in the large", "intercept")
LOSS = "log loss"  # whose relative overfitting stands in for those
_BATCH, _ENTRIES = 25, 1 << 22  # models of a task, and their predictions
_NAN = float("nan")


class Judge:
    """The measures of many models on the same rows.

    Parameters
    ----------
    case : Case
        Labels and weights; the predictions do not matter.
    named : dict of str to (str or Measure)
        What is measured: a name among those of two classes, or a measure.
    """

    def __init__(self, case: Case, named: Mapping[str, str | Measure]) -> None:
        self.case, self.named = case, dict(named)
        self._hit = (case.codes == case.positive).astype(np.float64)
        self._quick = [name for name, what in self.named.items() if isinstance(what, str)]

    def columns(self, proba: FloatArray) -> FloatArray:
        """What `values` takes of a model: the event's column of two, else all."""
        return proba[:, self.case.positive] if len(self.case.classes) == 2 else proba

    def values(self, models: FloatArray, weights: Sequence[FloatArray]) -> FloatArray:
        """Shape (n_weights, n_measures, n_models).

        Parameters
        ----------
        models : ndarray of shape (n_models, n_samples[, n_classes])
        weights : sequence of ndarray of shape (n_samples,) or (n_models, n_samples)
            NaN where those of a model are all 0.
        """
        found = np.full((len(weights), len(self.named), len(models)), np.nan)
        there = [np.broadcast_to(weight.any(axis=-1), len(models)) for weight in weights]
        safe = [weight + ~weight.any(axis=-1, keepdims=True) for weight in weights]
        if self._quick:
            places = [[*self.named].index(name) for name in self._quick]
            found[:, places] = batch_measures(models, self._hit, safe, self._quick)
        for place, what in enumerate(self.named.values()):
            if isinstance(what, Measure):
                for model, predicted in enumerate(models):
                    case = self.case.with_proba(self._both(predicted))
                    for i, weight in enumerate(safe):
                        own = weight if weight.ndim == 1 else weight[model]
                        found[i, place, model] = what.of_case(case.with_weight(own))
        for values, some in zip(found, there, strict=True):
            values[:, ~some] = np.nan
        return found

    def _both(self, predicted):
        if predicted.ndim == 2:
            return predicted
        columns = [1 - predicted, predicted]
        return np.column_stack(columns if self.case.positive else columns[::-1])

    def without_relation(self, proba: FloatArray) -> FloatArray:
        """The measures if labels had nothing to do with predictions: each with each."""
        case, k = self.case, proba.shape[1]
        share = np.bincount(case.codes, case.weight, k) / case.weight.sum()
        weight = np.concatenate([case.weight * one for one in share])
        codes = np.repeat(np.arange(k), len(proba))
        each = Case(np.tile(proba, (k, 1)), codes, None, case.classes, case.positive, case.where)
        judge = Judge(each, self.named)
        return judge.values(judge.columns(np.tile(proba, (k, 1)))[None], [weight])[0, :, 0]


class Resampled(NamedTuple):
    """What the refitted models say.

    Attributes
    ----------
    values : dict of str to ndarray of shape (n_measures, n_models)
        By the rows that are judged: "sample", those of the fit, "original", all of them, and
        "left", those that the fit has not seen.
    predictions : ndarray of shape (n_models, n_samples[, n_classes]), float32, or None
    n_redrawn : int
    """

    values: dict[str, FloatArray]
    predictions: FloatArray | None
    n_redrawn: int


def resampled(
    refits: Refits, judge: Judge, rngs: Sequence[Any], method: str, keep: bool, n_jobs: int | None
) -> Resampled:
    """Fit and judge one model for each generator."""
    judged = _JUDGED[method]
    size = max(1, min(_BATCH, _ENTRIES // refits.n_entries))
    parts = [rngs[start : start + size] for start in range(0, len(rngs), size)]
    done = Parallel(n_jobs=n_jobs)(
        delayed(_some)(refits, judge, part, judged, keep) for part in parts
    )
    _say_once([one for _, _, _, said in done for one in said], len(rngs))
    values = np.concatenate([values for values, _, _, _ in done], axis=2)
    kept = np.concatenate([models for _, models, _, _ in done]) if keep else None
    by_rows = dict(zip(judged, values, strict=True))
    return Resampled(by_rows, kept, sum(redrawn for _, _, redrawn, _ in done))


#: The rows on which refitted models are judged.
_JUDGED = {
    "optimism": ("sample", "original"),
    ".632+": ("sample", "original", "left"),
    "cross_validation": ("original",),
}
_WEIGHTS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "sample": lambda weight, count: weight * count,
    "original": lambda weight, count: weight,
    "left": lambda weight, count: weight * (count == 0),
}


def _some(refits, judge, rngs, judged, keep):
    draw = refits.resampled if "sample" in judged else refits.cross_fitted
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models, counts, redrawn = [], [], 0
        for rng in rngs:
            one = draw(rng)
            models.append(judge.columns(one.proba))
            counts.append(one.counts)
            redrawn += one.n_redrawn
        predicted, count, weight = np.stack(models), np.stack(counts), judge.case.weight
        values = judge.values(predicted, [_WEIGHTS[rows](weight, count) for rows in judged])
    said = [(one.message, one.filename, one.lineno) for one in caught]
    return values, predicted.astype(np.float32) if keep else None, redrawn, said


def _say_once(said, n_models):
    """Warnings of the fits, each once: the first of a line of code stands for all."""
    by_line: dict[Any, list[Warning]] = {}
    for message, file, line in said:
        by_line.setdefault((type(message), file, line), []).append(message)
    for messages in by_line.values():
        warn(messages[0], f"(Said {len(messages)} times in the fits of {n_models} resamples.)")


def crossed_rows(
    named: Mapping[str, Any], own: FloatArray, values: FloatArray
) -> list[InternalValidationRow]:
    """The rows of a cross-validation: means over the repetitions."""
    rows = []
    for name, apparent, several in zip(named, own, values, strict=True):
        there = several[np.isfinite(several)]
        corrected = float(there.mean()) if len(there) else _NAN
        numbers = float(apparent), float(apparent) - corrected, corrected
        rows.append(InternalValidationRow(name, *numbers, _NAN, _NAN, len(there)))
    return rows


def bootstrapped_rows(
    named: Mapping[str, Any],
    own: FloatArray,
    found: Resampled,
    nothing: FloatArray | None,
    tail: float,
    ci: str,
) -> list[InternalValidationRow]:
    """The rows of a bootstrap; with `nothing`, values without relation, the .632+ estimate."""
    overall, against = 0.0, "original" if nothing is None else "left"
    if nothing is not None:
        place = [*named].index(LOSS)
        left = _finite_mean(found.values["left"][place])
        overall = relative_overfitting(own[place], left, nothing[place])
    rows = []
    for place, (name, what) in enumerate(named.items()):
        apparent = float(own[place])
        sample = found.values["sample"][place]
        with np.errstate(invalid="ignore"):  # infinite slopes
            excess = sample - found.values[against][place]
        used = np.isfinite(excess)
        if nothing is None:
            corrected = apparent - _finite_mean(excess)
            n_used = int(used.sum())
        else:
            n_used = int(np.isfinite(found.values["left"][place]).sum())
            left = _finite_mean(found.values["left"][place])
            rate = overall if name in TARGETS else None
            corrected = of_632_plus(apparent, left, float(nothing[place]), rate)
        ends = _NAN, _NAN
        if used.sum() > 1 and np.isfinite(corrected) and np.isfinite(apparent):
            if ci == "pivot":
                spread = excess[used].mean() - excess[used]
                ends = corrected + np.quantile(spread, [tail, 1 - tail])
            else:
                ends = np.quantile(sample[used], [tail, 1 - tail]) + (corrected - apparent)
            ends = np.clip(ends, *_range(what))
        numbers = apparent, apparent - corrected, corrected, float(ends[0]), float(ends[1])
        rows.append(InternalValidationRow(name, *numbers, n_used))
    return rows


def _range(what):
    return what.spec.range if isinstance(what, Measure) else RANGES.get(what, (-np.inf, np.inf))


def _finite_mean(values):
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else _NAN


def relative_overfitting(apparent: float, left: float, nothing: float) -> float:
    """R' of Efron and Tibshirani (1997), eq. 28: 0 where nothing is overfitted, at most 1."""
    worst, moved = nothing - apparent, left - apparent
    return min(moved / worst, 1.0) if worst * moved > 0 else 0.0


def of_632_plus(apparent: float, left: float, nothing: float, rate: float | None = None) -> float:
    """The .632+ estimate, eq. 32 there; with a given `rate`, its weights alone (eq. 29)."""
    if not np.isfinite(apparent):
        return left
    if rate is not None:
        part = 0.632 / (1 - 0.368 * rate)
        return (1 - part) * apparent + part * left
    rate = relative_overfitting(apparent, left, nothing)
    moved = rate * (nothing - apparent)
    plain = 0.368 * apparent + 0.632 * left
    return plain + moved * 0.368 * 0.632 * rate / (1 - 0.368 * rate)
