"""The models of a report: one interface for predictions with and without their rows."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._simplex_array import (
    LARGEST_LOG_LOSS,
    LOG_LOSS_FLOOR,
    get_absent_option_mask,
    has_exact_log,
)
from ..decomposition import LossDecomposition, decompose_predictions
from ..exceptions import invalid_input
from ..groups import GradeCalibration, Grades, grade_calibration
from ..inference import ClusterSample
from ..metrics import LogLoss
from ..summary import CalibrationSummary, DrawnSample, RowReservoir, get_max_sample_rows

if TYPE_CHECKING:
    from ..metrics import Predictions


class ReportedModel:
    """The predictions of one model of which a report has only a summary.

    Attributes
    ----------
    summary : CalibrationSummary
    predictions : Predictions or None
        The rows, if they are there: see `PredictionsModel`, which answers the same
        questions.
    classes : list of label
    positive : label
        Of the positive class of two.
    two_classes : bool
    n_samples : int
        Rows of weight above 0; of soft labels the items.
    n_clusters : int or None
        The number of clusters, or None if rows are independent.
    """

    predictions: "Predictions | None" = None
    n_clusters: int | None = None

    def __init__(self, summary: CalibrationSummary) -> None:
        self.summary = summary
        self.classes = [0, 1] if summary.classes is None else summary.classes.tolist()
        self.positive = summary.positive_label
        self.two_classes = len(self.classes) == 2
        self.n_samples = summary.n_samples

    def get_cell_or_cluster_sample(self, max_cells: int | None = None) -> Any:
        """Return the rows of the one two-class problem in cells, to draw rows or clusters from.

        Returns
        -------
        sample : CellSample or ClusterSample
        """
        # Independent rows are exchangeable within a cell; clusters need their rows.
        if self.predictions is None or self.predictions.clusters is None:
            return self.summary.samples(max_cells)[0]
        (problem,) = self.predictions.problems()
        return ClusterSample(
            problem, self.predictions.clusters, max_cells or self.summary.max_cells
        )

    def sample_multiclass_rows_if_any(
        self, max_rows: int | None = None
    ) -> DrawnSample | None:
        """Return rows of several classes that their digits draw; None without rows.

        Parameters
        ----------
        max_rows : int, default=None
            About how many; by default all that were drawn with a summary.
        """
        draw = self.summary.drawn
        classes = self.summary.classes
        # A summary of two classes keeps no sample: its cells are enough.
        if draw is None or classes is None:
            return None
        return (draw if max_rows is None else draw.limit_rows(max_rows)).get_sample(
            classes
        )

    def compute_accuracy(self) -> float:
        """Return the share of the rows whose class of the largest probability is the true one."""
        if not self.two_classes:
            totals: Any = self.summary.totals
            return float(totals.correct / self.summary.weight)
        return _compute_accuracy(self.summary.predictions())

    def count_floored_and_zero_rows(self) -> tuple[int, int]:
        """Count rows whose true class has a probability that the log loss raises, or exactly 0.

        With soft labels, items are counted.
        """
        zero = self.summary.totals.certain_and_wrong
        if not self.two_classes:
            return zero, zero
        sample = self.get_cell_or_cluster_sample()
        return int(sample.counts[sample.proba <= LOG_LOSS_FLOOR].sum()), zero

    def decompose_log_loss(self) -> LossDecomposition | None:
        """Decompose the log loss by temperature; of two classes from the cells."""
        if self.two_classes:
            cells, squares = self.summary.samples()[0].filled_predictions_and_squares
            return decompose_predictions(cells, squares=squares)
        sample = self.sample_multiclass_rows_if_any()
        if sample is None:
            return None
        return decompose_predictions(sample.predictions, squares=sample.squares)

    def test_model_grades(self, grades: Grades) -> GradeCalibration:
        """Test rating grades of the cells."""
        rows = self.summary.rows()
        summary = self.summary
        result = grade_calibration(
            rows.y,
            rows.proba,
            grades,
            counts=rows.sample_weight,
            labels=summary.classes,
            pos_label=summary.positive_label,
        )
        return replace(result, n_unsure=summary.rows_across(grades.edges))


class PredictionsModel(ReportedModel):
    """The predictions of one model with all rows, which may form clusters.

    Its summary has the positions of the classes as labels.
    """

    predictions: "Predictions"

    def __init__(self, predictions: "Predictions") -> None:
        super().__init__(summarize_predictions(predictions))
        self.predictions = predictions
        self.classes = predictions.classes.tolist()
        self.positive = predictions.classes[predictions.positive]
        self.n_samples = predictions.n_items
        self.n_clusters = predictions.n_clusters

    def sample_multiclass_rows_if_any(
        self, max_rows: int | None = None
    ) -> DrawnSample | None:
        """Return about `max_rows` rows of several classes that their digits draw."""
        predictions = self.predictions
        n_classes = len(predictions.classes)
        max_rows = get_max_sample_rows(n_classes) if max_rows is None else max_rows
        # The same draw as that of a summary, so a report on rows and one on their
        # summary agree.
        draw = RowReservoir(n_classes, max_rows)
        rows = np.arange(len(predictions.codes))
        proba = np.asarray(predictions.proba)
        draw.add(
            predictions.codes,
            proba,
            proba[rows, predictions.codes],
            _drop_unit_weight(predictions.weight),
            extras=rows,
        )
        sample = draw.limit_rows(max_rows).get_sample()
        if sample is None:
            return None
        # These probabilities keep their exact logarithms.
        return replace(sample, proba=predictions.proba[sample.extras])

    def compute_accuracy(self) -> float:
        return _compute_accuracy(self.predictions)

    def count_floored_and_zero_rows(self) -> tuple[int, int]:
        """Count rows, or items, as for a summary."""
        predictions = self.predictions
        losses = LogLoss().compute_row_losses(predictions.proba, predictions.codes)
        low = losses >= LARGEST_LOG_LOSS
        places = np.arange(len(low)), predictions.codes
        zero = np.asarray(predictions.proba)[places] == 0
        items = predictions.items
        if items is None:
            return int(low.sum()), int(zero.sum())
        # Copies of an item of soft labels count once.
        return len(np.unique(items[low])), len(np.unique(items[zero]))

    def decompose_log_loss(self) -> LossDecomposition | None:
        """Decompose the log loss by temperature; with two classes, from the cells.

        The result is None if rows have options of their own: the frequencies of the
        classes are not a forecast of these.
        """
        if get_absent_option_mask(self.predictions.proba) is not None:
            return None
        # The intervals are those of independent rows.
        if self.predictions.clusters is not None:
            return decompose_predictions(self.predictions).without_intervals()
        # Cells are faster; exact logarithms of logits would be lost in them.
        if self.two_classes and not has_exact_log(self.predictions.proba):
            return super().decompose_log_loss()
        return decompose_predictions(self.predictions)

    def test_model_grades(self, grades: Grades) -> GradeCalibration:
        """Test rating grades of the cells."""
        predictions = self.predictions
        counts = predictions.weight * predictions.unit
        y = predictions.classes[predictions.codes]
        # Tests of grades are exact for counts, and do not exist for other weights.
        if not (counts == np.floor(counts)).all():
            raise invalid_input(
                "sample_weight",
                expected="whole numbers >= 0 as sample_weight, for grades count rows",
                got=f"{counts[counts != np.floor(counts)][0]:.6g}",
                hint="Leave grades= out, or sample_weight",
            )
        return grade_calibration(
            y,
            predictions.proba,
            grades,
            counts=_drop_unit_weight(counts),
            labels=predictions.classes,
            pos_label=self.positive,
        )


def _compute_accuracy(predictions):
    return predictions.mean(
        np.asarray(predictions.proba).argmax(axis=1) == predictions.codes
    )


def _drop_unit_weight(weight):
    """Return weights, or None if all are 1."""
    return None if (weight == 1).all() else weight


def summarize_predictions(predictions: "Predictions") -> CalibrationSummary:
    """Return the summary of checked rows, with the positions of the classes as labels."""
    numbers = np.arange(len(predictions.classes))
    positive = predictions.positive if len(numbers) == 2 else None
    summary = CalibrationSummary(classes=numbers, pos_label=positive)
    return summary.update(
        predictions.codes,
        np.asarray(predictions.proba),
        _drop_unit_weight(predictions.weight),
    )
