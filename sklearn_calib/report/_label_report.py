"""Many labels per row: their tests, intervals and averages, and the report on them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from .._argument_checks import import_optional, is_scalar_equal
from .._kernels._detectable_error import SIGNIFICANCE_LEVEL
from .._kernels._importance_sampling import (
    compute_path_range_p_value,
    compute_skewed_interval_offsets,
)
from .._random import make_generator
from .._show import redact_secrets
from .._simplex_array import compute_log_odds, log_proba
from .._typing import ArrayLike, DataFrame, FloatArray, Progress, RandomStateLike
from .._validation import (
    get_label_names,
    read_label_names_proba_and_table,
    read_raw_weight,
)
from .._version import __version__
from .._warnings import ignore_calibration_warnings
from ..exceptions import invalid_input
from ..groups import GroupRow, audit_predictions, audit_summaries
from ..metrics import validate_multilabel
from ._calibration_report import check_no_model, check_report_options
from ._columns import check_label_order
from ._label_sections import MAX_LABEL_RESAMPLES, make_label_report_sections
from ._models import PredictionsModel
from ._table import ReportRow, find_measures_by_name, measure_models
from ._written_report import WrittenReport, convert_to_json_values

if TYPE_CHECKING:
    from ..metrics import Predictions

_N_TEST_DRAWS = 999
# More rows are pooled to so many cells for the test.
_MAX_UNPOOLED_TEST_ROWS = 2048
# Cells of the test if it uses tilted draws.
_N_TILTED_CELLS = 256
# Up to this p-value tilted draws are worth their time.
_MAX_REDRAWN_PVALUE = 0.005
# The part of the level of a label that the bound takes; draws take the rest.
_BOUND_LEVEL_FRACTION = 0.05
# Draws decide alone if they resolve the level divided by this number.
_DRAW_RESOLUTION_LEVEL_DIVISOR = 2
# The bound is minimised over exponents up to this one.
_MAX_CHERNOFF_TILT = 60.0


class LabelAverage(NamedTuple):
    """One measure over all labels.

    Parameters
    ----------
    measure : str
    macro : float
        The mean over labels.
    macro_low, macro_high : float
        Its interval; of a loss by the variance and the skewness of its rows, each of
        which counts with all its labels; of another measure the means of the ends of
        the labels' intervals, which are wide enough however labels depend on each
        other.
    micro : float
        Of all known pairs of a row and a label as one problem.
    micro_low, micro_high : float
        Of a loss; NaN for other measures.
    null_mean : float
        The mean of the values that calibrated predictions of the single labels would
        exceed with probability 1 - level.
    """

    measure: str
    macro: float
    macro_low: float
    macro_high: float
    micro: float
    micro_low: float
    micro_high: float
    null_mean: float


def audit_labels(
    models: "dict[str, PredictionsModel]", level: float, seed: int
) -> list[GroupRow]:
    """Return one row per label, in their order; adjusted p-values are Holm's."""
    # Labels have independent draws; Holm's adjustment holds for any dependence.
    rng = np.random.default_rng(seed)
    rows = [_audit_label(model, len(models), level, rng) for model in models.values()]
    adjusted = adjust_by_holm([row.p_value for row in rows]).tolist()
    return [
        row._replace(group=name, adjusted_p_value=p)
        for name, row, p in zip(models, rows, adjusted, strict=True)
    ]


def adjust_by_holm(p_values: Sequence[float]) -> FloatArray:
    """Return adjusted p-values that hold under any dependence (Holm, 1979)."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    # The k-th smallest p-value times the number of hypotheses that are left; cumulative
    # maxima keep the order.
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _audit_label(model, n_labels, level, rng):
    """Test a label by a bound and by draws; by tilted draws if these cannot decide."""
    seeds = rng.integers(2**63, size=2)
    row = _audit_label_by_draws(
        model,
        level,
        _N_TEST_DRAWS,
        seeds[0],
        _MAX_UNPOOLED_TEST_ROWS,
    )
    # Two tests share the level: the p-value is the smaller one, each divided by its
    # share.
    bound = compute_chernoff_p_value(model.predictions) / _BOUND_LEVEL_FRACTION
    # The p-value of this label that makes its adjusted one significant.
    enough = SIGNIFICANCE_LEVEL / _DRAW_RESOLUTION_LEVEL_DIVISOR / n_labels
    p = row.p_value
    # The smallest p-value of plain draws is 1 / (1 + draws). Tilted draws, which resolve
    # smaller ones, are made only if that is too large, if the bound is not enough, and
    # if the plain draws leave a chance.
    is_too_coarse = (1 + _N_TEST_DRAWS) * enough < 1
    if is_too_coarse and bound > enough and p <= _MAX_REDRAWN_PVALUE:
        p = compute_path_range_p_value(
            *_make_proba_trials_events_and_weight(model),
            _N_TEST_DRAWS,
            np.random.default_rng(seeds[1]),
        )
    return row._replace(p_value=min(p / (1 - _BOUND_LEVEL_FRACTION), bound, 1.0))


def _make_proba_trials_events_and_weight(model):
    """Return increasing scores, rows, those with the label, and weights of one row."""
    predictions = model.predictions
    weight = predictions.weight
    if len(predictions.codes) <= _MAX_UNPOOLED_TEST_ROWS or (weight != weight[0]).any():
        order = np.argsort(predictions.second, kind="stable")
        hits = (predictions.codes[order] == 1).astype(np.int64)
        return (
            predictions.second[order],
            np.ones(len(order), np.int64),
            hits,
            weight[order],
        )
    # Many rows are pooled into cells, to limit the time of the tilted draws.
    (sample,) = model.summary.samples(_N_TILTED_CELLS)
    order = np.argsort(sample.proba[:, 1], kind="stable")
    counts = sample.counts[order].astype(np.int64)
    return (
        sample.proba[order, 1],
        counts.sum(axis=1),
        counts[:, 1],
        np.ones(len(counts)),
    )


def _audit_label_by_draws(model, level, n_resamples, seed, max_rows):
    """Audit all rows of a label as one group."""
    options = {
        "level": level,
        "n_resamples": n_resamples,
        "random_state": int(seed),
    }
    predictions = model.predictions
    if len(predictions.codes) <= max_rows:
        return audit_predictions(
            predictions,
            [np.ones(len(predictions.codes), dtype=bool)],
            min_rows=1,
            **options,
        ).rows[0]
    return audit_summaries(
        {"all": model.summary},
        "rows",
        max_rows,
        min_rows=1,
        **options,
    ).rows[0]


def compute_chernoff_p_value(predictions: "Predictions") -> float:
    """Bound the p-value without draws: by four weighted sums of the residuals.

    The sums of y - p, and of y - p times the log-odds from their mean, either too large
    or too small: P(S >= s) <= min over t of E exp(t S - t s), for independent rows with
    the probabilities p (Chernoff, 1952), times four.
    """
    p = predictions.second
    has_label = predictions.codes == 1
    # Residuals times log-odds detect a wrong slope; exact zeros and ones would
    # dominate.
    odds = np.clip(compute_log_odds(predictions.proba), -30, 30)
    center = predictions.weight * (
        odds - np.average(odds, weights=predictions.weight * (p * (1 - p) + 1e-12))
    )
    log_bound = 0.0
    for factor in (predictions.weight, center):
        largest = np.abs(factor).max()
        if largest == 0:
            continue
        # Four one-sided bounds: too high, too low, too extreme, not extreme enough.
        for sign in (1, -1):
            bound = _compute_log_chernoff_bound(
                sign * factor / largest, log_proba(predictions.proba), p, has_label
            )
            log_bound = min(log_bound, bound)
    # Bonferroni over the four.
    return min(4 * float(np.exp(log_bound)), 1.0)


def _compute_log_chernoff_bound(factor, logs, p, has_label):
    """Return the log of the bound for the sum of `factor` times the residuals.

    `logs` are the logarithms of both probabilities, of shape (n_samples, 2).
    """
    excess = float(factor @ (has_label - p))
    if excess <= 0:
        return 0.0

    def compute_log_bound(t):
        # The cumulant generating function of the sum of residuals: Chernoff's bound is
        # its smallest value less t times the excess.
        cumulants = np.logaddexp(logs[:, 0], logs[:, 1] + t * factor) - t * factor * p
        return float(cumulants.sum() - t * excess)

    minimum = minimize_scalar(
        compute_log_bound, bounds=(0.0, _MAX_CHERNOFF_TILT), method="bounded"
    )
    return min(float(minimum.fun), 0.0)


class _KnownLabelMask(NamedTuple):
    """Labels with their weights as a table: 0 if one is not known."""

    # Whether the label of a row is known, of shape (n_samples, n_labels).
    is_known: FloatArray
    # The weights of the rows, of shape (n_samples,).
    weight: FloatArray

    def find_label_row_positions(self, label):
        """Return the positions of the rows that count for a label."""
        return np.flatnonzero(self.is_known[:, label] * (self.weight > 0))

    def compute_mean_loss_interval_offsets(
        self, loss, all_predictions, means, shares, level
    ):
        """Return the ends of an interval for a mean of losses, relative to that mean.

        A row counts once, with the losses of all its labels.

        Parameters
        ----------
        loss : ProperLoss
        all_predictions : sequence of Predictions
            The rows that count for each label.
        means : sequence of float
            The value that is subtracted from the losses of each label.
        shares : ndarray of shape (n_labels,)
            The weight of one row in the mean, for each label.
        level : float
        """
        deviation = np.zeros(len(self.weight))
        second = third = 0.0
        for label, predictions in enumerate(all_predictions):
            rows = self.find_label_row_positions(label)
            counted = shares[label] * self.weight[rows]
            losses = loss.compute_row_losses(predictions.proba, predictions.codes)
            deviation[rows] += counted * (losses - means[label])
            # Second and third moment of the loss by the predictions themselves: they
            # give the skewness of a mean of few events.
            of_labels = loss.compute_label_losses(predictions.proba)
            proba = np.asarray(predictions.proba)
            expected = predictions.mean((proba * of_labels).sum(axis=1))
            either = counted[:, None] * (of_labels - expected)
            second += float((proba * either**2).sum())
            third += float((proba * either**3).sum())
        is_counted = self.is_known.any(axis=1) & (self.weight > 0)
        skewness = third / second if second > 0 else 0.0
        ends = compute_skewed_interval_offsets(deviation[is_counted], skewness, level)
        return np.array(ends)


def _make_macro_and_micro_averages(functions, rows, models, pooled, table, level):
    """Return the macro and micro mean of each measure."""
    totals = table.weight @ table.is_known
    all_predictions = [model.predictions for model in models.values()]
    n_labels = len(all_predictions)
    # Macro: each label has the same share; micro: each known pair of a row and a label.
    macro_shares = 1 / (n_labels * totals)
    micro_shares = np.full(n_labels, 1 / totals.sum())
    averages = []
    for function in functions:
        label_rows = [row for row in rows if row.measure == function.spec.name]
        values = [row.value for row in label_rows]
        macro = float(np.mean(values))
        micro = function.evaluate(pooled)
        low = np.mean([row.low for row in label_rows])
        high = np.mean([row.high for row in label_rows])
        micro_low = micro_high = np.nan
        # Losses are means over rows, whose intervals allow for the dependence of labels.
        loss = function.spec.loss
        if loss is not None:
            low, high = macro + table.compute_mean_loss_interval_offsets(
                loss,
                all_predictions,
                values,
                macro_shares,
                level,
            )
            micro_low, micro_high = micro + table.compute_mean_loss_interval_offsets(
                loss,
                all_predictions,
                [micro] * n_labels,
                micro_shares,
                level,
            )
        average = LabelAverage(
            function.spec.name,
            macro,
            float(low),
            float(high),
            micro,
            float(micro_low),
            float(micro_high),
            float(np.mean([row.null_mean for row in label_rows])),
        )
        averages.append(average)
    return averages


LABEL_REPORT_FORMAT = "sklearn-calib-label-report"
SCHEMA_VERSION = 1
# The resamples of all labels together, and those of one label at least.
_N_TOTAL_RESAMPLES = 6000
_MIN_LABEL_RESAMPLES = 20
# Of more labels the costly measure is only computed if it is named.
_MAX_LABELS_ALL_MEASURES = 100
_COSTLY_MEASURE = "lower_distance_to_calibration"


@dataclass
class LabelReport(WrittenReport):
    """The result of `multilabel_report`: one line for each label.

    ``print(report)`` shows the text; `to_html`, `to_json` and `to_markdown` write it.
    In the page the three worst labels are drawn, and the tables have the 100 worst, for
    any number of labels; `to_frame` and `to_json` have all.

    Attributes
    ----------
    labels : list of GroupRow
        One for each label, in the order of the columns: its rows, events, O/E,
        calibration in the large and slope with intervals, each by itself at `level`.
        ``p_value`` is that of the label alone, ``adjusted_p_value`` allows for all
        labels (Holm).
    p_value : float
        Of the hypothesis that the probabilities of all labels are calibrated. Never too
        small, however the labels of a row depend on each other.
    averages : list of LabelAverage
        The macro and micro mean of each measure.
    rows : list of ReportRow
        Each measure of each label, which is called the model there.
    accuracy : float
        The mean over labels of the share of rows where the more probable answer is
        right.
    n_samples : int
    level : float
        Of the intervals.
    name : str
    source : str or None
    created : str
        The date, as in 2026-01-31.
    version : str
        Of this package.
    """

    labels: list[GroupRow]
    p_value: float
    averages: list[LabelAverage]
    rows: list[ReportRow]
    accuracy: float
    n_samples: int
    level: float
    name: str = "model"
    source: str | None = None
    created: str = field(default_factory=lambda: date.today().isoformat())
    version: str = __version__
    _models: dict[str, PredictionsModel] = field(repr=False, default_factory=dict)

    def worst(self, n: int = 3) -> list[GroupRow]:
        """Return the labels of the smallest adjusted p-values; of ties those of the larger sigma.

        Parameters
        ----------
        n : int, default=3

        Returns
        -------
        rows : list of GroupRow
        """
        return sorted(self.labels, key=lambda row: (row.adjusted_p_value, -row.sigma))[
            :n
        ]

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per label: `GroupRow`, and a column per measure.

        Raises ModuleNotFoundError if pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        frame = pd.DataFrame(self.labels, columns=GroupRow._fields)
        frame = frame.drop(columns="event").rename(columns={"group": "label"})
        for name in (average.measure for average in self.averages):
            frame[name] = [row.value for row in self.rows if row.measure == name]
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return all contents of the report as dicts, lists, texts and numbers.

        Returns
        -------
        content : dict
            ``"format": "sklearn-calib-label-report"`` and ``"schema": 1`` identify it;
            numbers that do not exist are None.
        """
        names = "version", "created", "source", "name", "level", "p_value", "accuracy"
        measured = "value", "low", "high", "null_mean"
        by_label: dict[str, dict[str, Any]] = {row.group: {} for row in self.labels}
        for row in self.rows:
            by_label[row.model][row.measure] = {
                key: getattr(row, key) for key in measured
            }
        labels = []
        for label_row in self.labels:
            numbers = label_row._asdict()
            label = numbers.pop("group")
            del numbers["event"]
            labels.append({"label": label, **numbers, "measures": by_label[label]})
        content = {"format": LABEL_REPORT_FORMAT, "schema": SCHEMA_VERSION}
        content |= {key: getattr(self, key) for key in names}
        content |= {
            "n_rows": self.n_samples,
            "averages": [average._asdict() for average in self.averages],
            "labels": labels,
        }
        return convert_to_json_values(content)

    def _make_sections(self, drawn=False):
        return make_label_report_sections(self, drawn)

    def _make_notebook_display_sections(self):
        return self._make_sections(drawn=True)[:5]

    def _make_subject_html(self):
        return f"{self.n_samples:,} rows; {len(self.labels)} labels"


def multilabel_report(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    check_columns: bool = True,
    name: str = "model",
    source: str | None = None,
    measures: Iterable[str] | None = None,
    level: float = 0.9,
    n_resamples: int | Literal["auto"] = "auto",
    random_state: RandomStateLike = 0,
    progress: Progress | None = None,
) -> LabelReport:
    """Judge the calibration of predictions of many labels per row: a line for each label.

    Parameters
    ----------
    y_true : array-like of shape (n_samples, n_labels)
        1 if a row has the label, 0 if not, NaN if that is not known.
    y_proba : array-like of shape (n_samples, n_labels), or list of n_labels array-likes
        The probability of each label; or for each label an array of shape (n_samples,
        2), as `MultiOutputClassifier` gives it.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_labels,), default=None
        Names of the labels; by default those of the columns of `y_true`, or numbers.
    check_columns : bool, default=True
        Reject a column that ranks its label backwards, and columns that rank each
        other's labels far better.
    name : str, default="model"
        What to call the model.
    source : str, default=None
        Where the rows come from, such as the name of a file: shown in the report.
    measures : list of str, default=None
        Names from `all_metrics`; by default the registered measures that are meant for
        reports.
    level : float in (0, 1), default=0.9
    n_resamples : int or "auto", default="auto"
        Bootstrap resamples, and as many draws of labels from the predictions.
    random_state : int, Generator, RandomState or None, default=0
    progress : callable, default=None
        Called as ``progress(done, total)``.

    Returns
    -------
    report : LabelReport

    Raises
    ------
    ValueError
        Invalid scores, labels or weights (see `canonical_proba`), an unknown measure,
        or columns in an order that cannot be meant.
    TypeError
        A model instead of its probabilities.

    See Also
    --------
    calibration_report : The report on one label per row.

    Notes
    -----
    Each label is tested by the range of the cumulative differences (see
    `group_calibration`) on 999 draws of labels, at 0.95 of the level, and by Chernoff's
    bound of weighted sums of residuals at 0.05 of it, which detects errors that no
    number of draws would resolve. If 999 draws cannot resolve a p-value that the number
    of labels requires, as many draws from tilted predictions do, which are weighted
    (Harrison, 2012). The p-values are adjusted by Holm's method, which holds under any
    dependence between the labels of a row; the smallest is that of all labels together.
    The intervals of a macro and a micro loss allow for the skewness of rows with few
    events, as the gamma interval of Fay and Feuer (1997) does. "auto" resamples are
    6000 over the number of labels, at least 20 and at most 200. Of more than 100 labels
    the lower distance to calibration, which costs as much as all other measures, is
    left out unless `measures` names it. Cost: some 0.6 s per label up to 30 labels,
    half a minute for 500.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure". Chernoff
    (1952), "A measure of asymptotic efficiency for tests of a hypothesis based on the
    sum of observations", theorem 1. Fay, Feuer (1997), "Confidence intervals for
    directly standardized rates: a method based on the gamma distribution". Harrison
    (2012), "Conservative hypothesis tests and confidence intervals using importance
    sampling".

    Examples
    --------
    Three labels per row, of which one is wrong:

    >>> import numpy as np
    >>> from sklearn_calib.report import multilabel_report
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.beta(1, [1, 3, 9], size=(800, 3))
    >>> Y = (rng.random(truth.shape) < truth).astype(int)
    >>> given = np.column_stack([truth[:, 0], np.sqrt(truth[:, 1]), truth[:, 2]])
    >>> names = ["rain", "wind", "snow"]
    >>> report = multilabel_report(Y, given, labels=names, n_resamples=20)
    >>> [row.group for row in report.labels if row.adjusted_p_value < 0.05]
    ['wind']
    """
    check_report_options(level, name, None, progress)
    if y_proba is None or isinstance(y_proba, dict):
        raise invalid_input(
            "y_proba",
            expected="the probabilities of one model",
            got="None" if y_proba is None else "a dict",
            hint="Pass them as y_proba; report on several models one by one",
        )
    check_no_model(y_proba, "multilabel_report")
    functions = find_measures_by_name(measures)
    options: dict[str, Any] = {"sample_weight": sample_weight, "labels": labels}
    problems = validate_multilabel(y_true, y_proba, "macro", **options)
    all_predictions = [predictions for _, predictions in problems]
    if labels is None:
        label_names = get_label_names(y_true, len(all_predictions))
    else:
        label_names = np.asarray(labels).tolist()
    names = [str(label) for label in label_names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid_input(
            expected="different names of labels",
            got=f"{twice[:60]!r} twice",
            hint="Pass others as labels",
        )
    if measures is None and len(names) > _MAX_LABELS_ALL_MEASURES:
        functions = [
            function for function in functions if function.spec.name != _COSTLY_MEASURE
        ]
    if check_columns:
        check_label_order(
            dict(zip(names, all_predictions, strict=True)), y_true, y_proba
        )
    models = {
        key: PredictionsModel(predictions)
        for key, predictions in zip(names, all_predictions, strict=True)
    }
    rng = make_generator(random_state)
    if is_scalar_equal(n_resamples, "auto"):
        # Resamples of all labels share one budget.
        share = _N_TOTAL_RESAMPLES // len(names)
        n_resamples = int(np.clip(share, _MIN_LABEL_RESAMPLES, MAX_LABEL_RESAMPLES))
    # The report itself names labels without events.
    with ignore_calibration_warnings():
        rows = measure_models(models, functions, level, n_resamples, rng, progress)
    label_rows = audit_labels(models, level, int(rng.integers(2**63)))
    # Unknown labels are not pairs of the micro average.
    is_known = ~np.isnan(read_label_names_proba_and_table(y_true, y_proba, names)[2])
    weight = read_raw_weight(sample_weight, len(is_known))
    ((_, pooled),) = validate_multilabel(y_true, y_proba, "micro", **options)
    table = _KnownLabelMask(is_known, weight)
    return LabelReport(
        label_rows,
        min(row.adjusted_p_value for row in label_rows),
        _make_macro_and_micro_averages(functions, rows, models, pooled, table, level),
        rows,
        float(np.mean([model.compute_accuracy() for model in models.values()])),
        int(np.count_nonzero(weight > 0)),
        level,
        name,
        source and redact_secrets(source),
        _models=models,
    )
