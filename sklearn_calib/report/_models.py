"""The models of a report: what it asks of predictions, whether their rows are there or not."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import plain
from .._simplex import LARGEST_LOG_LOSS, LOG_LOSS_FLOOR, absent_of, carries_log
from ..decomposition import (
    LossDecomposition,
    decompose_by_features,
    decompose_case,
    enough_for_features,
)
from ..exceptions import invalid_input
from ..groups import GradeCalibration, Grades, grade_calibration, grades_of
from ..inference import ClusterSample
from ..metrics import LogLoss
from ..summary import CalibrationSummary, DrawnSample, RowDraw, rows_to_draw

if TYPE_CHECKING:
    from ..metrics import Case


class Model:
    """The predictions of one model, of which a report has a summary alone.

    Attributes
    ----------
    summary : CalibrationSummary
    case : Case or None
        The rows, where they are there: see `ModelOfRows`, which answers the same questions.
    classes : list of label
    positive : label
        Of the positive class of two.
    two_classes : bool
    n_samples : int
        Rows of weight above 0; of soft labels the items.
    n_clusters : int or None
        The number of clusters, or None where rows are independent.
    """

    case: "Case | None" = None
    n_clusters: int | None = None

    def __init__(self, summary: CalibrationSummary) -> None:
        self.summary = summary
        self.classes: list[Any] = [0, 1] if summary.classes is None else summary.classes.tolist()
        self.positive: Any = summary.positive_label
        self.two_classes = len(self.classes) == 2
        self.n_samples = summary.n_samples

    def cells(self, most: int | None = None) -> Any:
        """The rows of the one two-class problem in cells, to draw from: of whole clusters, or rows.

        Returns
        -------
        sample : CellSample or ClusterSample
        """
        if self.case is None or self.case.clusters is None:
            return self.summary.samples(most)[0]
        (problem,) = self.case.problems()
        return ClusterSample(problem, self.case.clusters, most or self.summary.max_cells)

    def sample(self, most: int | None = None) -> DrawnSample | None:
        """Rows of several classes that their digits draw, or those that were; None without rows.

        Parameters
        ----------
        most : int, default=None
            About how many; by default all that were drawn with a summary.
        """
        draw, classes = self.summary.drawn, self.summary.classes
        if draw is None or classes is None:
            return None
        rows = (draw if most is None else draw.coarsened(most)).rows()
        return None if rows is None else DrawnSample(rows, classes)

    def accuracy(self) -> float:
        """The share of the rows whose class of the largest probability is the true one."""
        if not self.two_classes:
            totals: Any = self.summary.totals
            return float(totals.correct / self.summary.weight)
        return _accuracy(self.summary.case())

    def floored(self) -> tuple[int, int]:
        """Rows whose true class has a probability that the log loss raises, and exactly 0 of these.

        Of soft labels the items.
        """
        zero = self.summary.totals.certain_and_wrong
        if not self.two_classes:
            return zero, zero
        sample = self.cells()
        return int(sample.counts[sample.proba <= LOG_LOSS_FLOOR].sum()), zero

    def decomposed(self) -> LossDecomposition | None:
        """The log loss by temperature; of two classes from the cells."""
        if self.two_classes:
            cells, squares = self.summary.samples()[0].filled
            return decompose_case(cells, squares=squares)
        drawn = self.sample()
        return None if drawn is None else decompose_case(drawn.case, squares=drawn.squares)

    def graded(self, grades: Grades) -> GradeCalibration:
        """Rating grades of the cells."""
        rows, summary = self.summary.rows(), self.summary
        classes: Any = {"labels": summary.classes, "pos_label": summary.positive_label}
        given = rows.y, rows.proba, grades
        found = grade_calibration(*given, counts=rows.sample_weight, **classes)
        return replace(found, n_unsure=summary.rows_across(grades.edges))


class ModelOfRows(Model):
    """The predictions of one model whose rows are there, and may belong together.

    Its summary has the positions of the classes as labels.
    """

    case: "Case"

    def __init__(self, case: "Case") -> None:
        super().__init__(summarised(case))
        self.case = case
        self.classes, self.positive = case.classes.tolist(), case.classes[case.positive]
        self.n_samples, self.n_clusters = case.n_items, case.n_clusters

    def sample(self, most: int | None = None) -> DrawnSample | None:
        case = self.case
        n_classes = len(case.classes)
        most = rows_to_draw(n_classes) if most is None else most
        draw, rows = RowDraw(n_classes, most), np.arange(len(case.codes))
        proba = np.asarray(case.proba)
        draw.add(case.codes, proba, proba[rows, case.codes], _unequal(case.weight), extras=rows)
        drawn = draw.coarsened(most).rows()
        if drawn is None:
            return None
        known = case.proba[drawn.extras]  # with its logarithms
        return DrawnSample(drawn, np.arange(n_classes), proba=known)

    def accuracy(self) -> float:
        return _accuracy(self.case)

    def floored(self) -> tuple[int, int]:
        case = self.case
        low = LogLoss().of_rows(case.proba, case.codes) >= LARGEST_LOG_LOSS
        zero = np.asarray(case.proba)[np.arange(len(low)), case.codes] == 0
        if case.items is None:
            return int(low.sum()), int(zero.sum())
        return len(np.unique(case.items[low])), len(np.unique(case.items[zero]))

    def decomposed(self) -> LossDecomposition | None:
        """From the cells only where no logarithms are known.

        None where rows have options of their own: there the frequencies of the classes are no
        forecast.
        """
        if absent_of(self.case.proba) is not None:
            return None
        if self.case.clusters is not None:  # intervals are those of independent rows
            return decompose_case(self.case).without_intervals()
        if self.two_classes and not carries_log(self.case.proba):
            return super().decomposed()
        return decompose_case(self.case)

    def graded(self, grades: Grades) -> GradeCalibration:
        """Rating grades; weights are numbers of rows."""
        case = self.case
        counts, y = case.weight * case.unit, case.classes[case.codes]
        if not (counts == np.floor(counts)).all():
            got = f"{counts[counts != np.floor(counts)][0]:.6g}"
            rule = "whole numbers >= 0 as sample_weight, for grades count rows"
            cure = "Leave grades= out, or sample_weight"
            raise invalid_input("sample_weight", expected=rule, got=got, hint=cure)
        classes = {"labels": case.classes, "pos_label": self.positive}
        return grade_calibration(y, case.proba, grades, counts=_unequal(counts), **classes)


def _accuracy(case):
    return case.mean(np.asarray(case.proba).argmax(axis=1) == case.codes)


def _unequal(weight):
    """Weights, or None where all are 1."""
    return None if (weight == 1).all() else weight


def summarised(case: "Case") -> CalibrationSummary:
    """The summary of checked rows, with the positions of the classes as labels."""
    numbers = np.arange(len(case.classes))
    positive = case.positive if len(numbers) == 2 else None
    summary = CalibrationSummary(classes=numbers, pos_label=positive)
    return summary.update(case.codes, np.asarray(case.proba), _unequal(case.weight))


def models_of_summaries(summaries: object, name: str, more: bool) -> dict[str, Model]:
    """Models of summaries alone."""
    named: Mapping[str, Any]
    named = summaries if isinstance(summaries, dict) else {name: summaries}
    if not named or not all(isinstance(s, CalibrationSummary) for s in named.values()):
        rule, cure = "labels and probabilities, or summaries alone", "Pass y_proba"
        raise invalid_input(expected=rule, got="no y_proba", hint=cure, error=TypeError)
    if more:
        rule, cure = "summaries alone", "Give weights and labels to CalibrationSummary"
        raise invalid_input(expected=rule, got="also sample_weight, labels or pos_label", hint=cure)
    models = {key: Model(summary) for key, summary in named.items()}
    for key, model in models.items():
        if not model.two_classes and model.summary.multiclass not in ("auto", "confidence"):
            rule = "summaries of the confidence, where there are more than two classes"
            got = f"multiclass={model.summary.multiclass!r} for {plain(key)}"
            raise invalid_input(expected=rule, got=got, hint="Summarise with multiclass='auto'")
    return models


def grades_of_models(models: Mapping[str, Model], grades: Any) -> dict[str, GradeCalibration]:
    """The rating grades of each model."""
    bands = grades_of(grades)
    for model in models.values():
        if not model.two_classes:
            got = f"{len(model.classes)}"
            cure = "Leave grades out, or pass the probability of one class and y == label"
            raise invalid_input(
                expected="two classes, whose probability has grades", got=got, hint=cure
            )
    return {name: model.graded(bands) for name, model in models.items()}


def cases_of(models: Mapping[str, Model], cure: str, what: str) -> "dict[str, Case]":
    """The rows of all models, which `what` needs."""
    cases = {name: model.case for name, model in models.items() if model.case is not None}
    if len(cases) < len(models):
        raise invalid_input(
            expected=f"labels and probabilities of each row, for {what}", got="summaries", hint=cure
        )
    return cases


def features_of(models: Mapping[str, Model], features: Any) -> dict[str, LossDecomposition | None]:
    """What a better use of the features gains, for each model; None where the rows are too few."""
    cases = cases_of(models, "Pass y_proba, or leave features out", "features")
    return {
        name: decompose_by_features(case, features) if enough_for_features(case) else None
        for name, case in cases.items()
    }


def loss_of_scikit_learn(case: "Case", given: object) -> float | None:
    """`sklearn.metrics.log_loss` of the probabilities as given, where it differs from ours.

    It raises probabilities to the machine epsilon of their own type: 1.2e-7 in float32, 9.8e-4 in
    float16.
    """
    kind = getattr(given, "dtype", None)  # of a table the one of all its columns
    kinds = set(getattr(given, "dtypes", [kind]) if kind is None else [kind])
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in (np.float16, np.float32):
        return None
    own = LogLoss().of_rows(case.proba, case.codes)
    theirs = np.minimum(own, -np.log(float(np.finfo(kind).eps)))
    return case.mean(theirs) if (theirs < own).any() else None
