"""A model judged on the rows it was made from: optimism, .632+, cross-validation."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from sklearn.utils import indexable

from .._argument_checks import (
    check_choice,
    check_jobs,
    check_level,
    unknown_name_error,
    validate_count,
)
from .._kernels._batch_measures import MEASURE_METHODS
from .._random import spawn_generators
from .._sklearn_compat import safe_split
from .._typing import ArrayLike, Estimator, Features, RandomStateLike
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    check_two_or_more_classes,
    read_labels,
)
from .._warnings import warn_calibration
from ..decomposition import integrated_calibration_index
from ..exceptions import invalid_input
from ..metrics import Measure, Predictions, all_metrics, brier_loss, log_loss
from ..recalibrators import encode_groups
from ._internal_result import InternalValidation
from ._refits import (
    LOSS_MEASURE,
    RefitMeasuresEvaluator,
    RepeatedFits,
    build_bootstrap_rows,
    build_cross_validation_rows,
    check_can_refit_and_warn_if_frozen,
    evaluate_resampled_fits,
)

_VALIDATION_METHODS = ("optimism", ".632+", "cross_validation")
_INTERVAL_METHODS = ("pivot", "shifted")
_BINARY_MEASURES = ("slope", "intercept", "O/E", "AUC", "Brier", LOSS_MEASURE, "ICI")
_MULTICLASS_MEASURES = {
    "Brier": brier_loss,
    LOSS_MEASURE: log_loss,
    "ICI": integrated_calibration_index,
}


def internal_validation(
    estimator: Estimator,
    X: Features,
    y: ArrayLike,
    *,
    n_resamples: int = 200,
    method: Literal["optimism", ".632+", "cross_validation"] = "optimism",
    measures: "Sequence[str | Measure] | None" = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    ci: Literal["pivot", "shifted"] = "pivot",
    pos_label: object = None,
    keep_predictions: bool = True,
    random_state: RandomStateLike = 0,
    n_jobs: int | None = None,
) -> InternalValidation:
    """Estimate how good a model is on new rows, from the rows that it is developed on.

    A model looks better on its own rows than it is; the optimism is the difference. All
    that was learned is learned again on each resample, so pass the whole procedure as
    one estimator, with the selection of features, the tuning and the calibration. In
    the place of R's ``rms::validate`` and ``pminternal::validate``.

    Parameters
    ----------
    estimator : classifier
        With fit and ``predict_proba``; it is cloned for every fit: a pipeline, a
        search, a `CalibratedModel`. An estimator whose ``cv`` is a number of folds gets
        folds in which copies of a row stay together.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        As the estimator takes it: a table stays a table.
    y : array-like of shape (n_samples,)
        Labels of any type.
    n_resamples : int, default=200
        Models that are fitted, besides the model itself: bootstrap samples, or for
        "cross_validation" folds, rounded up to whole repetitions of ten.
    method : {"optimism", ".632+", "cross_validation"}, default="optimism"
        "optimism": Harrell's bootstrap, for models that do not fit their rows
        perfectly. ".632+": of the rows that a sample leaves out, for models that do,
        such as forests. "cross_validation": ten folds, stratified, shuffled anew for
        every repetition.
    measures : list of str or Measure, default=None
        "slope", "intercept", "calibration in the large", "O/E", "AUC", "Brier", "scaled
        Brier", "log loss", "ICI" and "Nagelkerke R2", as in `validation_summary`; names
        from `all_metrics`; measures. By default slope, intercept, O/E, AUC, Brier, log
        loss and ICI; of more than two classes the last three.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as those of a patient: drawn, or left out,
        together. Passed to fit if it makes folds of them.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0 for fit, if it takes them, and for the measures. Each row is drawn
        as one row, regardless of its weight: repeat rows for counts, or give them a
        group. Of a pipeline the last step alone is fitted with them, a scaler before it
        without; enable metadata routing and call
        ``set_fit_request(sample_weight=True)`` on each step that should have them.
    level : float in (0, 1), default=0.95
        The level of the intervals.
    ci : {"pivot", "shifted"}, default="pivot"
        "pivot": apparent value less the quantiles of the optimism of the resamples.
        "shifted": the quantiles of their apparent values, moved by the mean optimism
        (Noma et al.).
    pos_label : label, default=None
        The event among two classes; the second by default.
    keep_predictions : bool, default=True
        Keep what each resampled model predicts, for `InternalValidation.instability`: 4
        bytes for each resample and row (and class, where there are more than two).
    random_state : int, Generator, RandomState or None, default=0
        Of the resamples. What the estimator draws is up to its own.
    n_jobs : int, default=None
        Processes, as in joblib. The result does not depend on it.

    Returns
    -------
    found : InternalValidation
        Rows by name, such as ``found["slope"].corrected``; the model itself as
        `estimator`; and the methods `shrinkage` and `instability`.

    Raises
    ------
    ValueError
        Unknown measure, method or `ci`; fewer than two resamples; labels of one class;
        measures of two classes if there are more; a class so rare that no sample has
        it; invalid labels, weights or groups.
    TypeError
        What cannot be fitted again (a class, a FrozenEstimator) or gives no
        probabilities.

    Warns
    -----
    CalibrationWarning
        A measure without a value in some of the resamples, which are left out: the
        slope of a model that separates its rows is infinite. A FrozenEstimator inside
        of the estimator.
    UserWarning
        `sample_weight` that the estimator's fit does not take. Warnings of the
        resampled fits are given once for each line of code that gave them, with their
        number.

    Notes
    -----
    With A the apparent value of a measure, A_b that of the model b on its own sample,
    and T_b its value on the original rows:

    * "optimism": A - mean(A_b - T_b). A model that memorises its own rows, such as a
      forest, memorises two thirds of the original rows, and the optimism comes out too
      small.
    * ".632+": between A and the mean over the samples of the values on the rows that
      they leave out, by the relative overfitting of Efron and Tibshirani. Its value
      without information is that of every prediction with every label: 1/2 for the AUC,
      0 for the slope. O/E and the intercepts have none that is worse: their weights are
      those of the log loss. An infinite apparent slope counts as wholly overfitted.
      Efron and Tibshirani average losses by row, here by sample; the two differ by what
      the number of resamples leaves to chance.
    * "cross_validation": the predictions of all folds are judged together, once for
      each repetition; the mean of these. Folds vary together, so that there is no
      interval.

    The value that intervals are about is that of this model on endlessly many new rows.

    * "pivot": A - T has the law of A_b - T_b. For ".632+" T_b is the value on the rows
      that the sample leaves out, and the law is moved so that its mean is the .632+
      estimate.
    * "shifted": the quantiles of A_b, moved by the corrected less the apparent value.
      Of a logistic regression without penalty, whose apparent slope is 1 on all rows,
      that has no width.

    The ends are quantiles of `n_resamples` values: at the level 0.95 a further value
    lies between them with probability 0.94 for 200 resamples and 0.90 for 40, 0.95 (n -
    1) / (n + 1). With 40 the intervals of the simulations below held the truth in 80 to
    87 % of the draws.

    Both are approximate, "shifted" more so. In simulations of logistic regressions of
    100 to 1000 rows the 95 % intervals of "optimism" and "pivot" held the truth in 80
    to 99 % of the draws, the AUC, the intercept and O/E of few events least often;
    those of the slope not at all if there is nothing to learn, which "optimism" does
    not find out: it gives 0.46 where .632+ gives 0.06 and the truth is 0. The ICI of
    ".632+" is too large, since few rows are left out, and its other intervals are too
    wide: they held the truth in 98 to 100 %. ``benchmarks/validation`` has the table,
    also of where it fails.

    A sample without one of the classes is drawn again, and counted. The ICI here is
    that of 64 cells of equally many rows, smoothed as by loess: within 0.003 of the
    exact one in simulations of 200 to 3000 rows. Intercept and slope are fitted
    together, as in `validation_summary`.

    Cost: `n_resamples` fits and predictions of all rows; the measures of a resample
    take less than one fit of a logistic regression. Measures from `all_metrics` take
    their own time, twice for each resample.

    References
    ----------
    Harrell (2015), "Regression modeling strategies", section 5.3. Efron, Tibshirani
    (1997), "Improvements on cross-validation: the .632+ bootstrap method", eq. 28
    to 32. Noma, Shinozaki, Iba, Teramukai, Furukawa (2021), "Confidence intervals of
    prediction accuracy measures for multivariable prediction models based on the
    bootstrap-based optimism correction methods".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.inference import internal_validation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 6))
    >>> y = X[:, 0] + rng.normal(size=120) > 0
    >>> found = internal_validation(LogisticRegression(C=1e6), X, y, n_resamples=50)
    >>> slope = found["slope"]
    >>> round(slope.apparent, 2), slope.corrected < 0.95  # overfitted
    (1.0, True)
    >>> found["AUC"].corrected < found["AUC"].apparent
    True
    """
    check_can_refit_and_warn_if_frozen(estimator)
    _check_options(method, ci, level, keep_predictions, n_jobs)
    n_resamples = validate_count(n_resamples, "n_resamples", 2)
    X, predictions, group_codes = _read_features_unscored_rows_and_groups(
        estimator,
        X,
        y,
        sample_weight,
        groups,
        pos_label,
    )
    selected_measures = _get_measure_by_name(measures, len(predictions.classes))
    refits = RepeatedFits(
        estimator,
        X,
        predictions,
        sample_weight is not None,
        group_codes,
    )
    required_measures = _get_required_measure_by_name(len(predictions.classes))
    evaluator = RefitMeasuresEvaluator(
        predictions, selected_measures | required_measures
    )
    all_rows = np.arange(len(predictions.codes))
    fitted = refits.fit(all_rows)
    proba = refits.predict_proba_for_all_rows(fitted, all_rows)
    apparent = evaluator.evaluate_model(proba, predictions.weight)
    is_crossed = method == "cross_validation"
    n_folds = 0
    n_repetitions = n_resamples
    if is_crossed:
        # Each repetition has n_folds fits: as many repetitions as give n_resamples fits.
        n_folds = refits.n_folds
        n_repetitions = -(-n_resamples // n_folds)
    rngs = spawn_generators(random_state, n_repetitions)
    resampled = evaluate_resampled_fits(
        refits,
        evaluator,
        rngs,
        method,
        keep_predictions and not is_crossed,
        n_jobs,
    )
    if is_crossed:
        rows = build_cross_validation_rows(
            evaluator.measures,
            apparent,
            resampled.values["original"],
        )
    else:
        # The measure if features and outcome were unrelated, from which .632+ derives
        # how much the model overfits.
        unrelated_values = None
        if method == ".632+":
            unrelated_values = evaluator.compute_no_information_measures(proba)
        rows = build_bootstrap_rows(
            evaluator.measures,
            apparent,
            resampled,
            unrelated_values,
            (1 - level) / 2,
            ci,
        )
    row_by_name = {row.measure: row for row in rows}
    selected_rows = tuple(row_by_name[name] for name in selected_measures)
    _warn_missing_metrics(selected_rows, len(rngs), method)
    line = []
    for name in _LINE_MEASURES:
        line.append(row_by_name[name].corrected if name in row_by_name else np.nan)
    return InternalValidation(
        rows=selected_rows,
        method=method,
        ci=ci,
        level=float(level),
        n_resamples=len(rngs) * max(n_folds, 1),
        n_folds=n_folds,
        n_redrawn=resampled.n_redrawn,
        n_samples=len(predictions.codes),
        estimator=fitted,
        classes=predictions.classes,
        positive=predictions.positive,
        codes=predictions.codes,
        weight=predictions.weight,
        proba=proba,
        resampled=resampled.predictions,
        line=(line[0], line[1]),
    )


_LINE_MEASURES = ("intercept", "slope")


def _check_options(method, ci, level, keep_predictions, n_jobs):
    check_choice("method", method, _VALIDATION_METHODS)
    check_choice("ci", ci, _INTERVAL_METHODS)
    check_level(level)
    if not isinstance(keep_predictions, bool | np.bool_):
        raise invalid_input(
            expected="keep_predictions as True or False",
            got=repr(keep_predictions)[:60],
            hint="Pass False to save memory",
        )
    check_jobs(n_jobs)


def _read_features_unscored_rows_and_groups(
    estimator, X, y, sample_weight, groups, pos_label
):
    """Return rows of positive weight: features, `Predictions` without scores, and groups."""
    check_and_get_common_index(X, y, sample_weight, groups)
    classes, codes = read_labels(y, input_name="y")
    check_two_or_more_classes(
        classes, "There is nothing to judge; check the selection of the rows"
    )
    X = _check_and_get_indexable_features(X, len(codes))
    weight = canonical_weight(sample_weight, len(codes))
    if groups is not None:
        groups = encode_groups(groups, len(codes))
    # Rows of weight 0 would be drawn, and would make folds without any weight.
    if not weight.all():
        weighted_rows = np.flatnonzero(weight)
        X, codes = safe_split(estimator, X, codes, weighted_rows)
        weight = weight[weighted_rows]
        present_codes = np.unique(codes)
        if len(present_codes) < len(classes):
            lost_classes = np.delete(classes, present_codes)
            raise invalid_input(
                expected="a row of weight above 0 of each class",
                got=f"none of {lost_classes[:5].tolist()}",
                hint="Leave these rows out of X and y",
            )
        if groups is not None:
            groups = np.unique(groups[weighted_rows], return_inverse=True)[1]
    if groups is not None and groups.max() == 0:
        raise invalid_input(
            expected="at least two groups, which are drawn",
            got="one",
            hint="Pass one value for each patient, say, or leave groups out",
        )
    positive = len(classes) - 1 if len(classes) == 2 else 1
    if pos_label is not None:
        if pos_label not in classes.tolist():
            raise unknown_name_error("pos_label", pos_label, classes.tolist())
        positive = classes.tolist().index(pos_label)
    # A placeholder: the predictions of each refitted model take its place.
    proba = np.full((len(codes), len(classes)), 1 / len(classes))
    return X, Predictions(proba, codes, weight, classes, positive), groups


def _check_and_get_indexable_features(X, n_rows):
    """Check that features can be indexed, and have as many rows as labels."""
    expected = f"X as a table of {n_rows} rows, one for each label"
    try:
        (table,) = indexable(X)
        n_found = table.shape[0] if hasattr(table, "shape") else len(table)
    except (TypeError, IndexError):
        raise invalid_input(
            expected=expected,
            got=f"a {type(X).__name__}",
            hint="Pass an array or a DataFrame",
            error=TypeError,
        ) from None
    if n_found != n_rows:
        raise invalid_input(
            expected=expected,
            got=f"{n_found} rows",
            hint="Pass the rows of y, in their order",
        )
    return table


def _get_measure_by_name(measures, n_classes):
    """Return the measures by the names of their rows."""
    if measures is None:
        measures = _BINARY_MEASURES if n_classes == 2 else tuple(_MULTICLASS_MEASURES)
    elif isinstance(measures, str | Measure):
        measures = [measures]
    elif not isinstance(measures, Iterable):
        raise invalid_input(
            expected="measures as a list of names",
            got=repr(measures)[:60],
            hint="Leave measures out for the usual ones",
            error=TypeError,
        )
    available = all_metrics()
    names = [*MEASURE_METHODS, *available]
    selected = {}
    for measure in measures:
        if isinstance(measure, Measure):
            selected[measure.spec.name] = measure
        elif not isinstance(measure, str) or measure not in names:
            raise unknown_name_error("measures", measure, names, "See the list")
        elif measure in available:
            selected[measure] = available[measure]
        elif n_classes == 2:
            selected[measure] = measure
        elif measure in _MULTICLASS_MEASURES:
            selected[measure] = _MULTICLASS_MEASURES[measure]
        else:
            raise invalid_input(
                "measures",
                expected=(
                    f"measures of {n_classes} classes, such as "
                    f"{', '.join(_MULTICLASS_MEASURES)}"
                ),
                got=f"{measure!r}, which is one of two",
                hint="Leave measures out, or validate each class against the others: y == label",
            )
    if not selected:
        raise invalid_input(
            expected="at least one measure",
            got="none",
            hint="Leave measures out for the usual ones",
        )
    return selected


def _get_required_measure_by_name(n_classes):
    """Return the measures for shrinkage and for the weights of .632+."""
    if n_classes > 2:
        return {LOSS_MEASURE: log_loss}
    return {name: name for name in (*_LINE_MEASURES, LOSS_MEASURE)}


def _warn_missing_metrics(rows, n_models, method):
    """Warn of measures that do not exist in some resamples, such as an infinite slope."""
    incomplete_rows = [row for row in rows if row.n_used < n_models]
    if not incomplete_rows:
        return
    counts_text = ", ".join(
        f"{row.measure} in {n_models - row.n_used}" for row in incomplete_rows
    )
    hint = "Those resamples are left out: more rows, or groups that are finer, leave fewer out"
    if method == "optimism":
        hint = "Those resamples are left out. For a model that is certain of its own rows take "
        hint += "method='.632+' or 'cross_validation'"
    warn_calibration(
        expected="a value of each measure in each resample",
        got=f"none of {counts_text} of {n_models}",
        hint=hint,
    )
