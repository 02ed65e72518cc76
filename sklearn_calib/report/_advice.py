"""Would recalibration help? Losses of some methods on rows that their fits have not seen."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._argument_checks import import_optional
from .._group_folds import FastStratifiedGroupKFold
from .._random import make_generator
from .._simplex_array import get_absent_option_mask
from .._typing import DataFrame, FloatArray, Progress
from .._warnings import ignore_calibration_warnings
from ..inference import compute_clustered_sum_error
from ..metrics import LogLoss, all_metrics
from ..recalibrators import cross_fitted_proba, get_recalibrator
from ..summary import CalibrationSummary
from ._models import summarize_predictions

if TYPE_CHECKING:
    from ..metrics import Predictions
    from ._models import ReportedModel

COMPARED_RECALIBRATORS = (
    "identity",
    "auto",
    "temperature",
    "platt",
    "beta",
    "isotonic",
)
# The methods that allow for rows with options of their own.
_RECALIBRATORS_FOR_ABSENT_OPTIONS = ("identity", "auto", "temperature")
_N_FOLDS = 5
# A cell of the summary moves no score by more than 1/512 of it.
_N_SUMMARY_CELLS = 4096
_MAX_SAMPLE_ENTRIES = 50_000
_MIN_CLASS_ROWS_FOR_ADVICE = 5


class AdviceRow(NamedTuple):
    """One method in the table of an `Advice`, judged by cross-validation.

    Parameters
    ----------
    method : str
    loss : float
        Mean log loss in nats.
    gain : float
        By how much that is below the loss of the probabilities as they were given.
    standard_error : float
        Of the gain: that of the mean of differences row by row, times sqrt(2), since
        rows of two folds meet twice, each fitted once and judged once. Too large if
        the gain is large.
    brier_loss, expected_calibration_error : float
    """

    method: str
    loss: float
    gain: float
    standard_error: float
    brier_loss: float
    expected_calibration_error: float


@dataclass
class Advice:
    """Whether recalibration would help, by cross-validation: the result of `make_advice`.

    Attributes
    ----------
    rows : list of AdviceRow
        For "identity" (nothing is changed), "auto" and some other methods.
    best : str
        The method of the smallest log loss.
    weights : dict of str to float
        What "auto", fitted to all rows, is a mixture of; the largest weight first.
    stack : StackedCalibration
        That fit; ``stack.to_frame()`` has the weights with losses.
    n_rows : int
        The rows that this rests on: all, or of several classes a sample of 50,000
        probabilities, or some more, so that rare classes have some. Of soft labels the
        items.
    given, recalibrated : Predictions
        These rows with their probabilities as given, and out of fold after "auto"; of
        two classes cells of rows, with weights.
    code : str
        Python that fits the repair and applies it; of ``audit`` the commands that do.
    """

    rows: list[AdviceRow]
    best: str
    weights: dict[str, float]
    stack: Any = field(repr=False)
    n_rows: int
    given: "Predictions" = field(repr=False)
    recalibrated: "Predictions" = field(repr=False)
    code: str = field(repr=False)
    _summaries: dict[str, CalibrationSummary] = field(repr=False)
    # Whether `n_rows` counts rows, or items of soft labels.
    _unit: str = field(default="rows", repr=False)

    def row(self, method: str) -> AdviceRow:
        """Return the row of a method."""
        return next(row for row in self.rows if row.method == method)

    def summaries(self) -> dict[str, CalibrationSummary]:
        """Return the rows before and after "auto" as summaries, for pictures.

        Returns
        -------
        summaries : dict of str to CalibrationSummary
            "as given" and "recalibrated"; of several classes of the largest
            probability.
        """
        return dict(self._summaries)

    def to_frame(self) -> DataFrame:
        """Return the rows as a pandas DataFrame, one per method.

        Raises ModuleNotFoundError if pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        return pd.DataFrame(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and texts, for JSON."""
        return {
            "n_rows": self.n_rows,
            "best": self.best,
            "rows": [row._asdict() for row in self.rows],
            "weights": self.weights,
            "code": self.code,
        }


def make_advice(
    model: "ReportedModel",
    random_state: int,
    code: str,
    progress: Progress | None = None,
) -> Advice | None:
    """Judge methods for a model; return None if some class has fewer than five rows.

    Parameters
    ----------
    model : Model
    random_state : int
        Of the folds, and of the sample.
    code : str
    progress : callable, default=None
        Called as ``progress(done, total)``.
    """
    # Cells of two classes keep all that the methods depend on; for more classes they
    # would be too many.
    make_source: Any = _CellSource if model.two_classes else _MulticlassSampleSource
    if model.n_clusters is not None:
        make_source = _ClusterSource
    source = make_source(model)
    if not source.store_folds_if_enough_rows(make_generator(random_state)):
        return None
    rows_given = model.predictions
    names: tuple[str, ...] = COMPARED_RECALIBRATORS
    if rows_given is not None and get_absent_option_mask(rows_given.proba) is not None:
        names = _RECALIBRATORS_FOR_ABSENT_OPTIONS
    # The last step is the fit of the stack.
    steps = len(names) + 1
    all_predictions = {}
    # Warnings of candidates would puzzle a reader who has not chosen them.
    with ignore_calibration_warnings():
        for number, name in enumerate(names, 1):
            all_predictions[name] = source.recalibrate_held_out(name)
            if progress is not None:
                progress(number, steps)
        stack = source.fit_stack()
    if progress is not None:
        progress(steps, steps)
    loss = LogLoss()
    losses = {
        name: loss.compute_row_losses(predictions.proba, predictions.codes)
        for name, predictions in all_predictions.items()
    }
    full_loss = source.compute_all_rows_log_loss_if_known()
    rows = []
    for name in names:
        predictions = all_predictions[name]
        rows.append(
            _make_advice_row(
                name,
                predictions,
                losses,
                source.compute_gain_standard_error,
                full_loss,
            )
        )
    unchanged = all_predictions["identity"]
    recalibrated = all_predictions["auto"]
    unit = "rows"
    if rows_given is not None and rows_given.items is not None:
        unit = "items"
    return Advice(
        rows=rows,
        # Chosen on the rows that it is judged by, so the text recommends "auto" and not
        # this one.
        best=min(rows, key=lambda row: row.loss).method,
        weights=dict(sorted(stack.weights_.items(), key=lambda pair: -pair[1])),
        stack=stack,
        n_rows=source.n_rows,
        given=unchanged,
        recalibrated=recalibrated,
        code=code,
        _summaries={
            "as given": source.make_summary(unchanged),
            "recalibrated": source.make_summary(recalibrated),
        },
        _unit=unit,
    )


def _make_advice_row(name, predictions, losses, compute_gain_standard_error, full_loss):
    """Return loss, gain and its standard error, and the other measures of a method.

    The gain is that of the cells; `full_loss` is the loss of the rows as given, or None.
    """
    gains = losses["identity"] - losses[name]
    gain = predictions.mean(gains)
    loss = predictions.mean(losses[name]) if full_loss is None else full_loss - gain
    error = compute_gain_standard_error(predictions, gains - gain)
    measures = [
        all_metrics()[field].evaluate(predictions) for field in AdviceRow._fields[4:]
    ]
    return AdviceRow(name, float(loss), gain, float(error), *measures)


class _AdviceSource:
    """Rows on which methods are judged, with the sums of their squared weights."""

    squares: FloatArray
    n_rows: int

    def __init__(self, model):
        self._model = model

    def compute_gain_standard_error(self, predictions, deviations):
        # Twice the variance: two rows of different folds depend on each other twice, since
        # each is once in the training rows of the other.
        return np.sqrt(2 * self.squares @ deviations**2) / predictions.weight.sum()

    def compute_all_rows_log_loss_if_known(self) -> float | None:
        summary = self._model.summary
        return summary.totals.log_loss / summary.weight

    def make_summary(self, predictions):
        return summarize_predictions(predictions)


class _CellSource(_AdviceSource):
    """Two classes: all rows, in cells."""

    def __init__(self, model):
        super().__init__(model)
        self.n_rows = model.summary.n_samples
        summary = model.summary
        if summary.max_cells > _N_SUMMARY_CELLS:
            summary = summary.coarsen(_N_SUMMARY_CELLS)
        self._summary = summary
        (self._sample,) = self._summary.samples()

    def store_folds_if_enough_rows(self, rng):
        """Draw the folds, the same for all methods; return whether the rows suffice."""
        # With fewer rows some folds would lack a class.
        if self._sample.counts.sum(axis=0).min() < _MIN_CLASS_ROWS_FOR_ADVICE:
            return False
        self._folds = self._sample.split_into_folds(_N_FOLDS, rng)
        self._counts = np.concatenate(
            [fold.counts[fold.weight > 0] for fold in self._folds]
        )
        return True

    def recalibrate_held_out(self, name):
        held_out = self._sample.recalibrate_held_out(name, self._folds)
        self.squares = held_out.squares
        return held_out.predictions

    def fit_stack(self):
        return self._summary.fit("auto")

    def make_summary(self, predictions):
        # A cell holds rows of equal weight.
        weight = predictions.weight / self._counts
        row_weight = None if (weight == 1).all() else weight
        summary = CalibrationSummary(classes=[0, 1])
        return summary.update(
            predictions.codes, predictions.proba, row_weight, counts=self._counts
        )


class _MulticlassSampleSource(_AdviceSource):
    """Several classes: all rows, or a sample of many that their digits draw."""

    def store_folds_if_enough_rows(self, rng):
        """Draw the sample and the folds for all methods; return whether the rows suffice."""
        n_classes = len(self._model.summary.classes)
        self._sample = self._model.sample_multiclass_rows_if_any(
            max(_MAX_SAMPLE_ENTRIES // n_classes, 1000)
        )
        if self._sample is None:
            return False
        counts = np.bincount(self._sample.codes, self._sample.counts)
        if not _has_enough_rows(counts):
            return False
        self.n_rows = self._sample.n_drawn
        self._folds = self._sample.split_into_folds(_N_FOLDS)
        return True

    def recalibrate_held_out(self, name):
        held_out = self._sample.recalibrate_held_out(name, self._folds)
        self.squares = held_out.squares
        return held_out.predictions

    def fit_stack(self):
        predictions = self._sample.predictions
        weight = self._sample.sample_weight
        return get_recalibrator("auto").fit(
            predictions.proba,
            predictions.codes,
            sample_weight=weight,
            classes=np.arange(len(predictions.classes)),
        )


class _ClusterSource(_AdviceSource):
    """Rows in clusters, which folds, and a sample of many rows, do not split."""

    def store_folds_if_enough_rows(self, rng):
        """Draw the sample and the folds for all methods; return whether the rows suffice."""
        predictions = self._model.predictions
        groups = predictions.clusters
        max_rows = max(_MAX_SAMPLE_ENTRIES // len(predictions.classes), 1000)
        # Whole clusters in random order until the limit of rows is reached.
        order = rng.permutation(int(groups.max()) + 1)
        size = np.cumsum(np.bincount(groups)[order])
        # At least one cluster per fold, even if the clusters are larger than the limit.
        n_clusters = max(int(np.searchsorted(size, max_rows, side="right")), _N_FOLDS)
        sampled = np.flatnonzero(np.isin(groups, order[:n_clusters]))
        self._predictions = predictions.take(sampled)
        # Several rows of one cluster with the same class count once.
        pairs = np.unique(
            np.column_stack([self._predictions.codes, self._predictions.clusters]),
            axis=0,
        )
        if not _has_enough_rows(np.bincount(pairs[:, 0])):
            return False
        self.n_rows = self._predictions.n_items
        self._is_complete = len(sampled) == len(groups)
        splitter = FastStratifiedGroupKFold(
            _N_FOLDS, shuffle=True, random_state=int(rng.integers(2**31))
        )
        codes = self._predictions.codes
        clusters = self._predictions.clusters
        self._folds = [*splitter.split(codes, codes, clusters)]
        return all(len(test) for _, test in self._folds)

    def recalibrate_held_out(self, name):
        proba = cross_fitted_proba(
            name,
            np.asarray(self._predictions.proba),
            self._predictions.codes,
            cv=self._folds,
            **self._make_fit_options(),
        )
        return self._predictions.with_proba(proba)

    def compute_gain_standard_error(self, predictions, deviations):
        error = compute_clustered_sum_error(
            predictions.weight * deviations, self._predictions.clusters
        )
        # Twice the variance, as for independent rows.
        return np.sqrt(2) * error / predictions.weight.sum()

    def compute_all_rows_log_loss_if_known(self) -> float | None:
        # The loss of all rows is only that of the sample if nothing was left out.
        return (
            super().compute_all_rows_log_loss_if_known() if self._is_complete else None
        )

    def fit_stack(self):
        return get_recalibrator("auto").fit(
            self._predictions.proba, self._predictions.codes, **self._make_fit_options()
        )

    def _make_fit_options(self):
        return {
            "sample_weight": self._predictions.weight,
            "classes": np.arange(len(self._predictions.classes)),
            "groups": self._predictions.clusters,
        }


def _has_enough_rows(counts):
    """Return whether there are two classes, and enough rows of each that is there."""
    class_counts = counts[counts > 0]
    return len(class_counts) > 1 and class_counts.min() >= _MIN_CLASS_ROWS_FOR_ADVICE
