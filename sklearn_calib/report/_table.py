"""The rows of a report: measures of one model, and their values on resampled cells."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._argument_checks import check_choice, is_scalar_equal, validate_count
from .._blas_threads import limit_blas_threads
from .._random import make_generator
from .._show import make_printable
from .._typing import FloatArray, Progress, RandomStateLike
from ..exceptions import invalid_input
from ..inference import (
    compute_clustered_sum_error,
    compute_mean_loss_interval,
    compute_small_sample_inflation,
    depends_only_on_residuals,
    simulate_bootstrap_distribution,
    simulate_distribution,
    simulate_null_distribution,
)
from ..metrics import LARGEST_BIN_MEASURES, all_metrics
from ..summary import SUM_NAME_BY_LOSS

if TYPE_CHECKING:
    from ..metrics import Measure
    from ._models import ReportedModel

# Cells of the sample from which hundreds of resamples are drawn.
_MIN_CELLS_POOLED_FOR_RESAMPLES = 1024
_MAX_CELLS_POOLED_FOR_RESAMPLES = 4096
# Rows in a cell on average: cells that wide blur less than the variation of so few rows.
_MEAN_ROWS_PER_CELL = 8
_MAX_RESAMPLES = 200


@dataclass(frozen=True)
class ReportRow:
    """One row of a report's table: one measure of one model.

    Attributes
    ----------
    model, measure : str
    value : float
    low, high : float
        Interval that holds the value: by percentiles of resamples, of a calibration
        error without the bias of a norm; for a loss of more than two classes the normal
        interval of a mean, and for a loss of clusters, or whose rarest class has few
        rows, that of `confidence_interval`.
    null_mean : float
        The value that calibrated predictions would exceed with probability 1 - level by
        chance alone (or fall short of, if greater is better).
    """

    model: str
    measure: str
    value: float
    low: float
    high: float
    null_mean: float

    @property
    def exceeds_chance(self) -> bool:
        """Return whether the value is worse than chance explains for calibrated predictions."""
        if all_metrics()[self.measure].spec.greater_is_better:
            return self.value < self.null_mean
        return self.value > self.null_mean


class _MeasuresOnSharedDraws(NamedTuple):
    """Measures that are evaluated on the same draws: of rows, then of labels."""

    functions: "list[Measure]"
    values: list[float]
    draws: tuple[Callable[..., Any], ...]
    n_resamples: int


def choose_resample_count(n_rows: int) -> int:
    """Return how many resamples of n rows to draw: 200 up to 100,000 rows, at least 20."""
    return int(np.clip(2e7 / n_rows, 20, _MAX_RESAMPLES))


def find_measures_by_name(
    names: Iterable[str] | None, clustered: bool = False
) -> "list[Measure]":
    """Return the measures of these names; by default those that are meant for reports.

    For `clustered` rows only measures that read the residuals of cells are available.
    """
    registered = all_metrics()
    if clustered:
        registered = {
            name: f for name, f in registered.items() if depends_only_on_residuals(name)
        }
    if names is None:
        return [measure for measure in registered.values() if measure.spec.in_report]
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise invalid_input(
            "measures",
            expected="measures as a list of names",
            got=repr(names),
            hint="Pass a list of names, also of one",
        )
    names = [*names]
    for measure in names:
        check_choice("measures", measure, registered)
    return [registered[measure] for measure in names]


def measure_models(
    models: "Mapping[str, ReportedModel]",
    functions: "list[Measure]",
    level: float,
    n_resamples: int | Literal["auto"],
    random_state: RandomStateLike,
    progress: Progress | None = None,
) -> list[ReportRow]:
    """Return the rows of all models, each with the same draws.

    Parameters
    ----------
    models : dict of str to Model
    functions : list of Measure
    level : float in (0, 1)
    n_resamples : int or "auto"
    random_state : int, Generator, RandomState or None
    progress : callable, default=None
        Called as ``progress(done, total)``.
    """
    seeds = make_generator(random_state).integers(0, 2**63, size=2)
    if not is_scalar_equal(n_resamples, "auto"):
        n_resamples = validate_count(n_resamples, "n_resamples", 0)
    plans = {
        name: _group_measures_by_draws(model, functions, n_resamples)
        for name, model in models.items()
    }
    total = 0
    for parts in plans.values():
        total += sum(len(seeds) * group.n_resamples for group in parts)
    done = 0
    rows = []
    for name, model in models.items():
        row_by_measure = {
            measure: _make_row_from_sums(name, measure, model, level)
            for measure in functions
            if _is_mean_in_summary(measure, model)
        }
        for group in plans[name]:
            values = []
            for draws, seed in zip(group.draws, seeds, strict=True):
                step = None
                if progress is not None:
                    step = partial(_report_overall_progress, progress, done, total)
                evaluate = partial(_evaluate_measures, group.functions)
                # The threads are limited once for all resamples, not for each.
                with limit_blas_threads(model.n_samples, len(model.classes)):
                    values.append(
                        draws(evaluate, group.n_resamples, seed, progress=step)
                    )
                done += group.n_resamples
            row_by_measure |= _make_row_by_measure_from_draws(
                name, model, group, values, level
            )
        rows += [row_by_measure[function] for function in functions]
    return rows


def _report_overall_progress(progress, done, total, more, _):
    progress(done + more, total)


def _evaluate_measures(functions, predictions) -> list[float]:
    return [function.evaluate(predictions) for function in functions]


def _is_mean_in_summary(function, model):
    """Return whether a measure is a mean that the summary has added up, with its variance."""
    return not model.two_classes and function.spec.name in SUM_NAME_BY_LOSS


def _group_measures_by_draws(model, functions, n_resamples):
    """Return the measures that read cells and those that read rows, with their draws."""
    functions = [
        function for function in functions if not _is_mean_in_summary(function, model)
    ]
    on_cells = [
        function
        for function in functions
        if function.spec.poolable and (model.two_classes or function.has_pos_label)
    ]
    on_rows = [function for function in functions if function not in on_cells]
    parts = []
    if on_cells:
        size = model.summary.n_samples // _MEAN_ROWS_PER_CELL
        size = int(
            np.clip(
                size, _MIN_CELLS_POOLED_FOR_RESAMPLES, _MAX_CELLS_POOLED_FOR_RESAMPLES
            )
        )
        (cells,) = model.summary.samples()
        sample = model.get_cell_or_cluster_sample(size)
        draws = (
            partial(simulate_distribution, sample.draw_bootstrap_sample),
            partial(simulate_distribution, sample.simulate_labels),
        )
        values = [
            _evaluate_on_all_rows(function, model, cells.predictions)
            for function in on_cells
        ]
        number = _MAX_RESAMPLES if n_resamples == "auto" else n_resamples
        parts.append(_MeasuresOnSharedDraws(on_cells, values, draws, number))
    if on_rows:
        predictions = model.predictions
        if predictions is None:
            raise invalid_input(
                expected="measures of cells",
                got=", ".join(function.spec.name for function in on_rows),
                hint="Report on the rows themselves, or leave these out",
            )
        draws = (
            partial(
                simulate_bootstrap_distribution,
                predictions,
                groups=predictions.clusters,
            ),
            partial(simulate_null_distribution, predictions),
        )
        number = n_resamples
        if n_resamples == "auto":
            number = choose_resample_count(len(predictions.codes))
        parts.append(
            _MeasuresOnSharedDraws(
                on_rows, _evaluate_measures(on_rows, predictions), draws, number
            )
        )
    return parts


def _evaluate_on_all_rows(function, model, predictions):
    """Return the measure of all rows; the summary has exact sums of some losses."""
    key = SUM_NAME_BY_LOSS.get(function.spec.name)
    if key is None:
        return function.evaluate(predictions)
    return getattr(model.summary.totals, key) / model.summary.weight


def _make_row_by_measure_from_draws(model_name, model, group, values, level):
    """Return a row for each measure of a part.

    `values` holds those of resampled rows and those of drawn labels, each of shape
    (n_resamples, n_measures).
    """
    resampled, null = values
    rows = {}
    inflation = 1.0
    if model.n_clusters is not None:
        inflation = compute_small_sample_inflation(
            model.predictions.weight, model.predictions.clusters, level
        )
    for number, function in enumerate(group.functions):
        value = group.values[number]
        low = high = limit = np.nan
        if len(resampled):
            draws = resampled[:, number], null[:, number]
            low, high = make_draw_interval(function, value, *draws, level)
            tail = 1 - level if function.spec.greater_is_better else level
            low, high = (value + inflation * (end - value) for end in (low, high))
            # The mean of a loss may have an interval that needs no draws.
            exact = _compute_analytic_loss_interval(function.spec.loss, model, level)
            low, high = exact or (low, high)
            # No lower than the range of the measure.
            low = max(low, min(function.spec.range[0], value))
            limit = np.quantile(draws[1], tail)
        name = function.spec.name
        rows[function] = ReportRow(
            model_name,
            name,
            value,
            float(low),
            float(high),
            float(limit),
        )
    return rows


def make_draw_interval(
    function: "Measure",
    value: float,
    resampled: FloatArray,
    null: FloatArray,
    level: float,
) -> tuple[float, float]:
    """Return percentiles of resamples; for a calibration error ends that allow for its bias.

    The error of n rows is the norm of the true error and noise, whose squares add up,
    and a resample has as much noise again.

    Lower end: twice the square less the mean square of resamples is an unbiased square
    of the true error; the normal quantile is subtracted from its root. The end is 0 if
    calibrated predictions have such a value by chance. The squares of the largest bin
    do not add up: its lower end is the value less that of calibrated predictions (the
    triangle inequality).

    Upper end: the bias is not subtracted, since a norm is small by chance only if noise
    and error are opposite. Near 0 the resampled norms are folded to be positive, which
    makes their standard deviation too small by a factor of at most sqrt(1 - 2 / pi).
    """
    tail = (1 - level) / 2
    spec = function.spec
    is_error = not spec.proper and spec.perfect == 0 and spec.multiclass
    if not is_error:
        low, high = np.quantile(resampled, [tail, 1 - tail])
    else:
        z = ndtri(1 - tail)
        square = np.mean(resampled**2)
        spread = np.std(resampled)
        noise = np.sqrt(max(square - value**2, spread**2))
        low = max(np.sqrt(max(2 * value**2 - square, 0.0)) - z * spread, 0.0)
        if spec.name in LARGEST_BIN_MEASURES:
            low = max(value - np.quantile(null, 1 - tail), 0.0)
        high = value + z * min(noise, spread / np.sqrt(1 - 2 / np.pi))
        if 1 + np.count_nonzero(null >= value) > tail * (1 + len(null)):
            low = 0.0
    return min(float(low), value), max(float(high), value)


def _make_row_from_sums(name, function, model, level):
    """Make a row from the mean, its standard error, and the law for drawn labels."""
    sums = model.summary.totals._asdict()
    key = SUM_NAME_BY_LOSS[function.spec.name]
    weight = sums["weight"]
    squares = sums["squared_weight"]
    value = sums[key] / weight
    # The sum of w^2 (loss - mean)^2, multiplied out.
    spread = (
        sums[f"squared_{key}"]
        - 2 * value * sums[f"{key}_of_squares"]
        + value**2 * squares
    )
    # For equal weights this is n (n - 1).
    freedom = weight**2 - squares
    error = np.sqrt(max(spread, 0.0) / freedom) if freedom > 0 else np.inf
    half = ndtri((1 + level) / 2) * error
    # The standard deviation of the sum if labels are drawn from the predictions.
    spread = np.sqrt(sums[f"variance_of_{key}"])
    loss = function.spec.loss
    predictions = model.predictions
    ends = value - half, value + half
    ends = _compute_analytic_loss_interval(loss, model, level) or ends
    if model.n_clusters is not None:
        losses = loss.compute_row_losses(predictions.proba, predictions.codes)
        expected = (
            np.asarray(predictions.proba) * loss.compute_label_losses(predictions.proba)
        ).sum(axis=1)
        spread = compute_small_sample_inflation(
            predictions.weight, predictions.clusters, level
        )
        spread *= compute_clustered_sum_error(
            predictions.weight * (losses - expected), predictions.clusters
        )
    limit = sums[f"expected_{key}"] + ndtri(level) * spread
    low, high = map(float, ends)
    return ReportRow(name, function.spec.name, value, low, high, float(limit / weight))


def _compute_analytic_loss_interval(loss, model, level) -> tuple[float, float] | None:
    """Return the ends that need no draws, of few events or clusters; None for other rows."""
    predictions = model.predictions
    counts = None
    if loss is None or (predictions is None and not model.two_classes):
        return None
    if predictions is None:
        (sample,) = model.summary.samples()
        predictions = sample.predictions
        counts = sample.counts
    interval = compute_mean_loss_interval(predictions, loss, level, counts)
    if interval is None:
        return None
    _, low, high = interval
    return low, high


def format_interval_or_blank(low: float, high: float) -> str:
    """Format an interval; empty if there is none."""
    return "" if np.isnan(low) else f"{low:.4f} to {high:.4f}"


def format_row(row: ReportRow) -> tuple[str, ...]:
    """Format a row: model, measure, value, interval, the value if calibrated."""
    names = make_printable(row.model), row.measure, f"{row.value:.4f}"
    # Without resamples a row has neither an interval nor a limit.
    if np.isnan(row.low):
        return *names, "", ""
    return *names, format_interval_or_blank(row.low, row.high), f"{row.null_mean:.4f}"
