"""An estimator fitted again and again, on rows drawn or on folds, and what that corrects."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed

from .._clone import clone_comparing_by_value
from .._group_folds import FastStratifiedGroupKFold
from .._kernels._batch_measures import (
    MEASURE_RANGES,
    compute_measures_by_weight_and_model,
)
from .._sklearn_compat import routing_enabled, safe_split
from .._typing import Estimator, Features, FloatArray, IntArray
from .._validation import read_labels, read_proba
from .._warnings import emit_warning, warn_calibration
from ..exceptions import invalid_input
from ..metrics import Measure, Predictions
from ._internal_result import InternalValidationRow

# One sample with all classes is drawn in at most this many attempts.
_MAX_DRAW_ATTEMPTS = 1000
DEFAULT_N_FOLDS = 10


class Refit(NamedTuple):
    """The predictions of all rows by a fit on some of them.

    Attributes
    ----------
    proba : ndarray of shape (n_samples, n_classes)
    counts : ndarray of shape (n_samples,), float
        How often each row was in the fit.
    n_redrawn : int
        Samples that were thrown away because a class was missing.
    """

    proba: FloatArray
    counts: FloatArray
    n_redrawn: int


class RepeatedFits:
    """Rows, and an estimator that is cloned and fitted on some of them.

    Parameters
    ----------
    estimator : classifier
    X : array, sparse matrix or table of n_samples rows
    predictions : Predictions
        Labels, classes and weights of the rows.
    weighted : bool
        Whether the weights are passed to fit, if it takes sample_weight.
    groups : ndarray of shape (n_samples,), intp, or None
        Numbers of rows that are drawn together.
    """

    def __init__(
        self,
        estimator: Estimator,
        X: Features,
        predictions: Predictions,
        weighted: bool,
        groups: IntArray | None,
    ) -> None:
        self.estimator = estimator
        self.X = X
        self.classes = predictions.classes
        self.codes = predictions.codes
        self.groups = groups
        self.weight = predictions.weight if weighted else None
        # XGBoost needs 0, 1, ...; scikit-learn rejects bytes.
        is_bytes = self.classes.dtype.kind == "S"
        needs_codes = is_bytes or _is_from_package("xgboost", estimator)
        self._names = np.arange(len(self.classes)) if needs_codes else self.classes
        self._labels = self._names[self.codes]
        has_tags = hasattr(estimator, "__sklearn_tags__")
        self._pairwise = has_tags and bool(get_tags(estimator).input_tags.pairwise)
        self._params = self._collect_fit_metadata_by_argument()
        # An estimator that divides groups itself needs no folds from here.
        self._folds = None
        if groups is None or _find_fit_argument(estimator, "groups") is None:
            self._folds = _find_cv_parameter_and_row_folds_or_none(
                estimator, self.codes, groups
            )

    def _collect_fit_metadata_by_argument(self):
        """Return the metadata of fit, by argument name, with one entry per row."""
        metadata = {}
        if self.weight is not None:
            name = _find_fit_argument(self.estimator, "sample_weight")
            if name is None:
                warn_calibration(
                    expected="an estimator whose fit takes sample_weight",
                    got=f"{type(self.estimator).__name__}, fitted without weights",
                    hint="The measures use them; take another estimator to fit with them as well",
                    estimator=self,
                    category=UserWarning,
                )
            else:
                metadata[name] = self.weight
        if self.groups is not None:
            name = _find_fit_argument(self.estimator, "groups")
            if name is not None:
                metadata[name] = self.groups
        return metadata

    def fit(self, rows: IntArray, *, has_copies: bool = False) -> Estimator:
        """Fit a clone on these rows; with `has_copies`, rows may be repeated."""
        fitted = clone_comparing_by_value(self.estimator)
        # Copies of a row must be in one fold of an inner cross-validation.
        if has_copies and self._folds is not None:
            name, fold = self._folds
            fitted.set_params(**{name: PredefinedSplit(fold[rows])})
        features = self._select_features(rows)
        params = {name: values[rows] for name, values in self._params.items()}
        fitted.fit(features, self._labels[rows], **params)
        if not hasattr(fitted, "predict_proba"):
            raise invalid_input(
                expected="a classifier with predict_proba",
                got=type(fitted).__name__,
                hint="Wrap it: CalibratedModel(estimator) makes probabilities of its scores",
                error=TypeError,
            )
        return fitted

    def _select_features(self, rows):
        if type(self.X) is np.ndarray and not self._pairwise:
            # 50 times as fast as the general way.
            return self.X[rows]
        return safe_split(self.estimator, self.X, self.codes, rows)[0]

    def predict_proba_for_all_rows(
        self, fitted: Estimator, train: IntArray
    ) -> FloatArray:
        """Predict all rows with an estimator that was fitted on the rows `train`."""
        X = self.X
        # A kernel matrix has one column per training row.
        if self._pairwise:
            X, _ = safe_split(fitted, X, self.codes, np.arange(len(self.codes)), train)
        proba = read_proba(fitted.predict_proba(X), n_classes=len(self.classes))
        proba = np.asarray(proba)
        if np.array_equal(fitted.classes_, self._names):
            return proba
        # A classifier may sort its classes otherwise.
        _, columns = read_labels(fitted.classes_, classes=self._names)
        if (np.diff(columns) > 0).all():
            return proba
        return proba[:, np.argsort(columns)]

    def fit_on_resample_and_predict_all(self, rng: np.random.Generator) -> Refit:
        """Fit on rows, or groups of rows, drawn with replacement until all classes are there."""
        for redrawn in range(_MAX_DRAW_ATTEMPTS):
            rows = self._draw_bootstrap_row_indices(rng)
            # A model without one of the classes has another number of columns.
            if np.bincount(self.codes[rows], minlength=len(self.classes)).all():
                count = np.bincount(rows, minlength=len(self.codes)).astype(np.float64)
                fitted = self.fit(rows, has_copies=True)
                return Refit(
                    self.predict_proba_for_all_rows(fitted, rows), count, redrawn
                )
        raise invalid_input(
            expected="rows of each class in a bootstrap sample",
            got=f"{_MAX_DRAW_ATTEMPTS} others",
            sentence=f"None of {_MAX_DRAW_ATTEMPTS} bootstrap samples had rows of each class",
            hint="Give rare classes more rows, or groups that are finer",
        )

    def _draw_bootstrap_row_indices(self, rng):
        n = len(self.codes)
        if self.groups is None:
            # Sorted rows are read faster; the order of a bootstrap sample has no
            # meaning.
            return np.sort(rng.integers(0, n, n))
        order, starts, group_sizes = self._group_order_starts_and_sizes
        drawn_groups = rng.integers(0, len(group_sizes), len(group_sizes))
        return np.concatenate(
            [
                order[starts[g] : starts[g] + group_sizes[g]]
                for g in np.sort(drawn_groups)
            ]
        )

    @cached_property
    def _group_order_starts_and_sizes(self):
        size = np.bincount(self.groups)
        return np.argsort(self.groups, kind="stable"), np.cumsum(size) - size, size

    def cross_fit_rows(self, rng: np.random.Generator) -> Refit:
        """Predict each row with a fit on the other folds of a random partition."""
        for redrawn in range(_MAX_DRAW_ATTEMPTS):
            folds = list(self._iter_shuffled_fold_splits(rng))
            n_classes = [len(np.unique(self.codes[train])) for train, _ in folds]
            if min(n_classes) < len(self.classes):
                continue
            proba = np.empty((len(self.codes), len(self.classes)))
            for train, test in folds:
                fitted = self.fit(train)
                proba[test] = self.predict_proba_for_all_rows(fitted, train)[test]
            return Refit(proba, np.ones(len(self.codes)), redrawn)
        raise invalid_input(
            expected="rows of each class outside every fold",
            got=f"{_MAX_DRAW_ATTEMPTS} partitions without",
            hint="Give rare classes more rows, or groups that are finer",
        )

    def _iter_shuffled_fold_splits(self, rng):
        seed = int(rng.integers(2**32))
        splitter_class = (
            StratifiedKFold if self.groups is None else FastStratifiedGroupKFold
        )
        splitter = splitter_class(self.n_folds, shuffle=True, random_state=seed)
        return splitter.split(self.codes, self.codes, self.groups)

    @property
    def n_folds(self) -> int:
        """Return the number of folds: ten, or as many as the rarest class has rows or groups."""
        if self.groups is None:
            rarest = int(np.bincount(self.codes).min())
        else:
            pairs = np.unique(np.column_stack([self.codes, self.groups]), axis=0)
            # Each fold needs a group with the rarest class in the others.
            rarest = int(np.bincount(pairs[:, 0]).min())
        if rarest < 2:
            unit = "rows" if self.groups is None else "groups"
            raise invalid_input(
                expected=f"two {unit} of each class for folds",
                got=f"{rarest}",
                hint="Leave that class out, or take method='optimism'",
            )
        return min(DEFAULT_N_FOLDS, rarest)


def check_can_refit_and_warn_if_frozen(estimator: Estimator) -> None:
    """Reject an estimator that cannot be refitted; warn if a part of it stays frozen."""
    has_methods = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    if isinstance(estimator, type) or not has_methods:
        raise invalid_input(
            expected="estimator as a classifier of scikit-learn's kind",
            got=repr(estimator)[:60],
            hint="Pass an instance, such as LogisticRegression(), and then X and y",
            error=TypeError,
        )
    if isinstance(estimator, FrozenEstimator):
        raise invalid_input(
            expected="an estimator that can be fitted again",
            got="a FrozenEstimator",
            hint=(
                "Pass the estimator itself; predictions of a fitted model for rows that "
                "it has not seen are judged by validation_summary(y, "
                "model.predict_proba(X))"
            ),
            error=TypeError,
        )
    parameters = estimator.get_params().values()
    if any(isinstance(parameter, FrozenEstimator) for parameter in parameters):
        warn_calibration(
            expected="an estimator that learns everything again on each resample",
            got="a FrozenEstimator inside of it",
            hint=(
                "What that has learned is taken as given: pass the estimator itself if "
                "it was fitted on these rows"
            ),
        )


def _is_from_package(package, estimator):
    """Return whether an estimator, or the end of a pipeline, comes from a package."""
    if isinstance(estimator, Pipeline):
        return _is_from_package(package, estimator.steps[-1][1])
    modules = [cls.__module__ for cls in type(estimator).__mro__]
    return any(module.partition(".")[0] == package for module in modules)


def _find_fit_argument(estimator, name):
    """Return the argument of fit for weights or groups; None if it has none."""
    if isinstance(estimator, Pipeline):
        if routing_enabled():
            routed = get_routing_for_object(estimator).consumes("fit", [name])
            return name if name in routed else None
        step, last_step = estimator.steps[-1]
        inner_name = _find_fit_argument(last_step, name)
        return inner_name and f"{step}__{inner_name}"
    if not hasattr(estimator, "fit"):
        return None
    parameters = signature(estimator.fit).parameters
    if name in parameters:
        return name
    kinds = [parameter.kind for parameter in parameters.values()]
    if Parameter.VAR_KEYWORD not in kinds:
        return None
    # `**fit_params` may pass groups on or raise an error. Only this package's estimators,
    # and searches whose folds are made of groups, are certain to use them.
    if name == "groups":
        uses_group_folds = "Group" in type(getattr(estimator, "cv", None)).__name__
        is_search = hasattr(estimator, "param_grid") or hasattr(
            estimator, "param_distributions"
        )
        uses_groups = hasattr(estimator, "recalibrator") or (
            is_search and uses_group_folds
        )
        return name if uses_groups else None
    inner_name = getattr(estimator, "estimator", None)
    return None if inner_name is None else _find_fit_argument(inner_name, name)


def _find_cv_parameter_and_row_folds_or_none(estimator, codes, groups):
    """Return (parameter, fold of each row) of estimators with a numbered `cv`.

    They keep the copies of a row, or of a group, in a bootstrap sample in one fold: a
    fold that is judged by copies of the rows of its fit looks too good.
    """
    is_pipeline = isinstance(estimator, Pipeline)
    name = f"{estimator.steps[-1][0]}__cv" if is_pipeline else "cv"
    params = estimator.get_params(deep=is_pipeline)
    if name not in params or isinstance(params[name], bool):
        return None
    n_folds = 5 if params[name] is None else params[name]
    if not isinstance(n_folds, int | np.integer):
        return None
    splitter_class = StratifiedKFold if groups is None else FastStratifiedGroupKFold
    fold = np.zeros(len(codes), dtype=np.intp)
    # At most as many folds as the rarest class has rows.
    if groups is None:
        n_units = int(np.bincount(codes).min())
    else:
        n_units = len(np.unique(groups))
    splitter = splitter_class(max(2, min(int(n_folds), n_units)))
    splits: Iterator[Any] = splitter.split(codes, codes, groups)
    # scikit-learn warns if a class has fewer rows than folds.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for number, (_, test) in enumerate(splits):
            fold[test] = number
    return name, fold


#: Quantities whose value does not fall if predictions have no relation to the
#: outcome.
MEASURES_WITHOUT_UNINFORMED_VALUE = ("O/E", "calibration in the large", "intercept")
# The measure whose relative overfitting stands in for that of the target measures.
LOSS_MEASURE = "log loss"
# The largest task: so many models, or so many predictions of them.
MAX_MODELS_PER_TASK = 25
MAX_PREDICTIONS_PER_TASK = 1 << 22
_NAN = float("nan")


class RefitMeasuresEvaluator:
    """The measures of many models on the same rows.

    Parameters
    ----------
    predictions : Predictions
        Labels and weights; the predictions do not matter.
    measures : dict of str to (str or Measure)
        What is measured: a name among those of two classes, or a measure.
    """

    def __init__(
        self, predictions: Predictions, measures: Mapping[str, str | Measure]
    ) -> None:
        self.predictions = predictions
        self.measures = dict(measures)
        self._hit = (predictions.codes == predictions.positive).astype(np.float64)
        # Measures given by a name are computed for all models at once.
        self._batch_names = [
            name for name, measure in self.measures.items() if isinstance(measure, str)
        ]

    def select_event_column_or_all(self, proba: FloatArray) -> FloatArray:
        """Select the columns that measures read: the event's of two, or else all."""
        if len(self.predictions.classes) > 2:
            return proba
        return proba[:, self.predictions.positive]

    def evaluate_model(self, proba: FloatArray, weight: FloatArray) -> FloatArray:
        """Compute the measures of one model, of shape (n_measures,)."""
        models = self.select_event_column_or_all(proba)[None]
        values = self.compute_values_by_weight_measure_and_model(models, [weight])
        return values[0, :, 0]

    def compute_values_by_weight_measure_and_model(
        self, models: FloatArray, weights: Sequence[FloatArray]
    ) -> FloatArray:
        """Compute measures of shape (n_weights, n_measures, n_models).

        Parameters
        ----------
        models : ndarray of shape (n_models, n_samples[, n_classes])
        weights : sequence of ndarray of shape (n_samples,) or (n_models, n_samples)
            NaN if those of a model are all 0.
        """
        values_by_measure = np.full(
            (len(weights), len(self.measures), len(models)), np.nan
        )
        has_rows_by_weight = [
            np.broadcast_to(weight.any(axis=-1), len(models)) for weight in weights
        ]
        # Samples without any row left out get weights of 1, and NaN at the end.
        positive_weights = [
            weight + ~weight.any(axis=-1, keepdims=True) for weight in weights
        ]
        if self._batch_names:
            rows = [[*self.measures].index(name) for name in self._batch_names]
            values_by_measure[:, rows] = compute_measures_by_weight_and_model(
                models, self._hit, positive_weights, self._batch_names
            )
        for row, measure in enumerate(self.measures.values()):
            if isinstance(measure, Measure):
                for model, predicted in enumerate(models):
                    proba = self._restore_both_columns_if_one(predicted)
                    predictions = self.predictions.with_proba(proba)
                    for i, weight in enumerate(positive_weights):
                        # Weights are those of all models, or one row for each model.
                        model_weight = weight if weight.ndim == 1 else weight[model]
                        values_by_measure[i, row, model] = measure.evaluate(
                            predictions.with_weight(model_weight)
                        )
        for values, has_rows in zip(values_by_measure, has_rows_by_weight, strict=True):
            values[:, ~has_rows] = np.nan
        return values_by_measure

    def _restore_both_columns_if_one(self, predicted):
        if predicted.ndim == 2:
            return predicted
        columns = [1 - predicted, predicted]
        return np.column_stack(columns if self.predictions.positive else columns[::-1])

    def compute_no_information_measures(self, proba: FloatArray) -> FloatArray:
        """Compute the measures of every prediction paired with every label."""
        predictions = self.predictions
        k = proba.shape[1]
        # The no-information value of the .632+ estimate: every prediction with every
        # label, weighted by the frequencies of the labels.
        weight = predictions.weight
        frequencies = np.bincount(predictions.codes, weight, k) / weight.sum()
        pair_weight = np.concatenate([weight * frequency for frequency in frequencies])
        pair_proba = np.tile(proba, (k, 1))
        pairs = Predictions(
            pair_proba,
            np.repeat(np.arange(k), len(proba)),
            None,
            predictions.classes,
            predictions.positive,
        )
        evaluator = RefitMeasuresEvaluator(pairs, self.measures)
        return evaluator.evaluate_model(pair_proba, pair_weight)


class ResampledMeasures(NamedTuple):
    """The measures of the refitted models.

    Attributes
    ----------
    values : dict of str to ndarray of shape (n_measures, n_models)
        By the rows that are judged: "sample", those of the fit, "original", all of
        them, and "left", those that the fit has not seen.
    predictions : ndarray of shape (n_models, n_samples[, n_classes]), float32, or None
    n_redrawn : int
    """

    values: dict[str, FloatArray]
    predictions: FloatArray | None
    n_redrawn: int


def evaluate_resampled_fits(
    refits: RepeatedFits,
    evaluator: RefitMeasuresEvaluator,
    rngs: Sequence[Any],
    method: str,
    keep_predictions: bool,
    n_jobs: int | None,
) -> ResampledMeasures:
    """Fit and judge one model for each generator."""
    evaluated_rows = _EVALUATED_ROWS_BY_METHOD[method]
    # The number of probabilities that one model predicts.
    n_entries = len(refits.codes) * len(refits.classes)
    # Tasks are large enough to pay for their start, and small enough for memory.
    n_models = max(1, min(MAX_MODELS_PER_TASK, MAX_PREDICTIONS_PER_TASK // n_entries))
    batches = [
        rngs[start : start + n_models] for start in range(0, len(rngs), n_models)
    ]
    results = Parallel(n_jobs=n_jobs)(
        delayed(_evaluate_fits)(
            refits, evaluator, batch, evaluated_rows, keep_predictions
        )
        for batch in batches
    )
    batch_values, predictions, n_redrawn, caught_warnings = zip(*results, strict=True)
    _emit_unique_warnings(caught_warnings, len(rngs))
    values = np.concatenate(batch_values, axis=2)
    values_by_rows = dict(zip(evaluated_rows, values, strict=True))
    models = np.concatenate(predictions) if keep_predictions else None
    return ResampledMeasures(values_by_rows, models, sum(n_redrawn))


#: The rows on which refitted models are judged.
_EVALUATED_ROWS_BY_METHOD = {
    "optimism": ("sample", "original"),
    ".632+": ("sample", "original", "left"),
    "cross_validation": ("original",),
}
_WEIGHT_FUNCTION_BY_ROWS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "sample": lambda weight, count: weight * count,
    "original": lambda weight, count: weight,
    "left": lambda weight, count: weight * (count == 0),
}


def _evaluate_fits(refits, evaluator, rngs, evaluated_rows, keep_predictions):
    """Fit and judge a model per generator: (values, predictions, n_redrawn, warnings).

    `values` has shape (rows that are judged, measures, models).
    """
    draw = refits.cross_fit_rows
    if "sample" in evaluated_rows:
        draw = refits.fit_on_resample_and_predict_all
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        refitted = [draw(rng) for rng in rngs]
        predicted = np.stack(
            [evaluator.select_event_column_or_all(fit.proba) for fit in refitted]
        )
        count = np.stack([fit.counts for fit in refitted])
        weights = []
        for rows in evaluated_rows:
            compute_weight = _WEIGHT_FUNCTION_BY_ROWS[rows]
            weights.append(compute_weight(evaluator.predictions.weight, count))
        values = evaluator.compute_values_by_weight_measure_and_model(
            predicted, weights
        )
    # Warnings go back to the calling process as tuples, which can be pickled.
    caught_warnings = [
        (warning.message, warning.filename, warning.lineno) for warning in recorded
    ]
    n_redrawn = sum(fit.n_redrawn for fit in refitted)
    return (
        values,
        predicted.astype(np.float32) if keep_predictions else None,
        n_redrawn,
        caught_warnings,
    )


def _emit_unique_warnings(warnings_by_task, n_models):
    """Emit each warning of the fits once, by type and line of code."""
    by_line: dict[Any, list[Warning]] = {}
    for caught_warnings in warnings_by_task:
        for message, file, line in caught_warnings:
            by_line.setdefault((type(message), file, line), []).append(message)
    for messages in by_line.values():
        emit_warning(
            messages[0],
            f"(Said {len(messages)} times in the fits of {n_models} resamples.)",
        )


def build_cross_validation_rows(
    measures: Mapping[str, Any], apparent_values: FloatArray, values: FloatArray
) -> list[InternalValidationRow]:
    """Build the rows of a cross-validation: means over the repetitions."""
    rows = []
    for name, apparent, repeated_values in zip(
        measures, apparent_values, values, strict=True
    ):
        corrected = _average_finite(repeated_values)
        n_used = int(np.isfinite(repeated_values).sum())
        original = float(apparent)
        optimism = original - corrected
        rows.append(
            InternalValidationRow(
                name,
                original,
                optimism,
                corrected,
                _NAN,
                _NAN,
                n_used,
            )
        )
    return rows


def build_bootstrap_rows(
    measures: Mapping[str, Any],
    apparent_values: FloatArray,
    resampled: ResampledMeasures,
    unrelated_values: FloatArray | None,
    tail: float,
    ci: str,
) -> list[InternalValidationRow]:
    """Build the rows of a bootstrap; `unrelated_values` adds the .632+ estimate."""
    loss_overfitting = 0.0
    judged_rows = "original" if unrelated_values is None else "left"
    if unrelated_values is not None:
        i = [*measures].index(LOSS_MEASURE)
        left_out = _average_finite(resampled.values["left"][i])
        loss_overfitting = compute_relative_overfitting(
            apparent_values[i], left_out, unrelated_values[i]
        )
    rows = []
    for i, (name, measure) in enumerate(measures.items()):
        apparent = float(apparent_values[i])
        sample = resampled.values["sample"][i]
        # Infinite slopes give inf - inf.
        with np.errstate(invalid="ignore"):
            excess = sample - resampled.values[judged_rows][i]
        is_finite = np.isfinite(excess)
        if unrelated_values is None:
            corrected = apparent - _average_finite(excess)
            n_used = int(is_finite.sum())
        else:
            n_used = int(np.isfinite(resampled.values["left"][i]).sum())
            left_out = _average_finite(resampled.values["left"][i])
            # These measures have no value of uninformed predictions, so they use the
            # relative overfitting of the log loss.
            rate = (
                loss_overfitting if name in MEASURES_WITHOUT_UNINFORMED_VALUE else None
            )
            corrected = compute_632_plus(
                apparent, left_out, float(unrelated_values[i]), rate
            )
        ends = _NAN, _NAN
        tails = [tail, 1 - tail]
        optimism = apparent - corrected
        if is_finite.sum() > 1 and np.isfinite(optimism):
            if ci == "pivot":
                # The pivot: the deviations of the optimism of single resamples, turned
                # around.
                deviations = excess[is_finite].mean() - excess[is_finite]
                ends = corrected + np.quantile(deviations, tails)
            else:
                # Quantiles of the apparent values of the resamples, shifted by the
                # optimism.
                ends = np.quantile(sample[is_finite], tails) - optimism
            ends = np.clip(ends, *_get_range_or_infinite(measure))
        low, high = map(float, ends)
        row = InternalValidationRow(
            name,
            apparent,
            optimism,
            corrected,
            low,
            high,
            n_used,
        )
        rows.append(row)
    return rows


def _get_range_or_infinite(measure):
    if isinstance(measure, Measure):
        return measure.spec.range
    return MEASURE_RANGES.get(measure, (-np.inf, np.inf))


def _average_finite(values):
    finite_values = values[np.isfinite(values)]
    if not len(finite_values):
        return _NAN
    return float(finite_values.mean())


def compute_relative_overfitting(
    apparent: float, left_out: float, unrelated: float
) -> float:
    """Compute R' of Efron and Tibshirani (1997), eq. 28, between 0 and 1."""
    largest_rise = unrelated - apparent
    rise = left_out - apparent
    if not largest_rise * rise > 0:
        return 0.0
    return min(rise / largest_rise, 1.0)


def compute_632_plus(
    apparent: float, left_out: float, unrelated: float, rate: float | None = None
) -> float:
    """Compute the .632+ estimate (eq. 32 there).

    With `rate`, only its weights (eq. 29).
    """
    if not np.isfinite(apparent):
        return left_out
    if rate is not None:
        left_out_weight = 0.632 / (1 - 0.368 * rate)
        return (1 - left_out_weight) * apparent + left_out_weight * left_out
    rate = compute_relative_overfitting(apparent, left_out, unrelated)
    shift = rate * (unrelated - apparent)
    estimate_632 = 0.368 * apparent + 0.632 * left_out
    return estimate_632 + shift * 0.368 * 0.632 * rate / (1 - 0.368 * rate)
