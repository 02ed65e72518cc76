"""The models of a report: what was passed, checked, summarised, and its simplest numbers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._show import plain
from .._simplex import LARGEST_LOG_LOSS, LOG_LOSS_FLOOR, absent_of, carries_log
from ..decomposition import (
    LossDecomposition,
    decompose_by_features,
    decompose_case,
    enough_for_features,
)
from ..exceptions import named, refuse
from ..groups import GradeCalibration, grade_calibration, grades_of
from ..inference import ClusterSample
from ..metrics import LogLoss
from ..summary import CalibrationSummary, DrawnSample, RowDraw, rows_to_draw

if TYPE_CHECKING:
    from .._typing import IntArray
    from ..metrics import Case


class Model(NamedTuple):
    """Predictions of one model: a summary, and the rows and their clusters where they are there."""

    summary: CalibrationSummary
    case: "Case | None" = None
    groups: "IntArray | None" = None

    @property
    def two_classes(self) -> bool:
        return self.summary.classes is None or len(self.summary.classes) == 2

    def sample(self, most: int | None = None) -> DrawnSample | None:
        """Rows of several classes that their digits draw, or those that were; None without rows.

        Parameters
        ----------
        most : int, default=None
            About how many; by default all that were drawn with a summary.
        """
        case, draw = self.case, self.summary.drawn
        classes: Any = self.summary.classes
        if case is None and (draw is None or classes is None):
            return None
        if case is not None:
            n_classes = len(case.classes)
            most = rows_to_draw(n_classes) if most is None else most
            draw = RowDraw(n_classes, most)
            weight = None if (case.weight == 1).all() else case.weight
            plain, rows = np.asarray(case.proba), np.arange(len(case.codes))
            draw.add(case.codes, plain, plain[rows, case.codes], weight, extras=rows)
        assert draw is not None
        drawn = (draw if most is None else draw.coarsened(most)).rows()
        if drawn is None:
            return None
        known = None if case is None else case.proba[drawn.extras]  # with its logarithms
        return DrawnSample(drawn, classes, proba=known)

    def cells(self, most: int | None = None) -> Any:
        """The rows of the one two-class problem in cells, to draw from: of whole clusters, or rows.

        Returns
        -------
        sample : CellSample or ClusterSample
        """
        if self.groups is None or self.case is None:
            (sample,) = self.summary.samples(most)
            return sample
        (problem,) = self.case.problems()
        return ClusterSample(problem, self.groups, most or self.summary.max_cells)

    @property
    def positive(self) -> Any:
        """The label of the positive class of two."""
        if self.case is not None:
            return self.case.classes[self.case.positive]
        return self.summary.positive_label


def models_of_summaries(summaries: object, name: str, more: bool, where: str) -> dict[str, Model]:
    """Models of summaries alone."""
    named: Mapping[str, Any]
    named = summaries if isinstance(summaries, dict) else {name: summaries}
    if not named or not all(isinstance(s, CalibrationSummary) for s in named.values()):
        rule, cure = "labels and probabilities, or summaries alone", "Pass y_proba"
        refuse(where, rule, "no y_proba", cure, error=TypeError)
    if more:
        rule, cure = "summaries alone", "Give weights and labels to CalibrationSummary"
        refuse(where, rule, "also sample_weight, labels or pos_label", cure)
    models = {key: Model(summary) for key, summary in named.items()}
    for key, model in models.items():
        if not model.two_classes and model.summary.multiclass not in ("auto", "confidence"):
            rule = "summaries of the confidence, where there are more than two classes"
            got = f"multiclass={model.summary.multiclass!r} for {plain(key)}"
            refuse(where, rule, got, "Summarise with multiclass='auto'")
    return models


def grades_of_models(
    models: Mapping[str, Model], grades: Any, sample_weight: Any, where: str
) -> dict[str, GradeCalibration]:
    """The rating grades of each model."""
    bands, counts = grades_of(grades, where), None
    for model in models.values():
        if not model.two_classes:
            got = f"{len(size_and_classes(model)[1])}"
            cure = "Leave grades out, or pass the probability of one class and y == label"
            refuse(where, "two classes, whose probability has grades", got, cure)
    if sample_weight is not None:
        given = np.asarray(sample_weight)
        counts = given[given > 0]  # the rows of a case
        if not (counts == np.floor(counts)).all():
            got = f"{counts[counts != np.floor(counts)][0]:.6g}"
            cure = "Leave grades out, or the weights"
            rule = "whole numbers >= 0 as " + named("sample_weight") + ", for grades count rows"
            refuse(where, rule, got, cure)
    return {name: _graded(model, bands, counts) for name, model in models.items()}


def _graded(model, grades, counts):
    """Grades of rows, or of the cells of a summary."""
    if model.case is not None:
        case = model.case
        named = {"labels": case.classes, "pos_label": model.positive}
        y = case.classes[case.codes]
        return grade_calibration(y, case.proba, grades, counts=counts, **named)
    summary = model.summary
    rows = summary.rows()
    found = grade_calibration(
        rows.y,
        rows.proba,
        grades,
        counts=rows.sample_weight,
        labels=summary.classes,
        pos_label=summary.positive_label,
    )
    return replace(found, n_unsure=summary.rows_across(grades.edges))


def summarised(case: "Case") -> CalibrationSummary:
    """The summary of checked rows, with the positions of the classes as labels."""
    numbers = np.arange(len(case.classes))
    positive = case.positive if len(numbers) == 2 else None
    summary = CalibrationSummary(classes=numbers, pos_label=positive)
    weight = None if (case.weight == 1).all() else case.weight
    return summary.update(case.codes, np.asarray(case.proba), sample_weight=weight)


def size_and_classes(model: Model) -> tuple[int, list[Any]]:
    """The number of rows, and the labels."""
    if model.case is not None:
        return model.case.n_items, model.case.classes.tolist()
    classes = model.summary.classes
    return model.summary.n_samples, [0, 1] if classes is None else classes.tolist()


def accuracy_of(model: Model) -> float:
    """The share of the rows whose class of the largest probability is the true one."""
    case: Any = model.case
    if case is None:
        if not model.two_classes:
            totals: Any = model.summary.totals
            return float(totals.correct / model.summary.weight)
        case = model.summary.case()
    return case.mean(np.asarray(case.proba).argmax(axis=1) == case.codes)


def decomposed(model: Model) -> LossDecomposition | None:
    """The log loss by temperature; of two classes from the cells, unless logarithms are known.

    None where rows have options of their own: there the frequencies of the classes are no forecast.
    """
    case = model.case
    if case is not None and absent_of(case.proba) is not None:
        return None
    if case is not None and model.groups is not None:
        return decompose_case(case).without_intervals()  # they are those of independent rows
    if model.two_classes and (case is None or not carries_log(case.proba)):
        (sample,) = model.summary.samples()
        cells, squares = sample.filled
        return decompose_case(cells, squares=squares)
    if case is not None:
        return decompose_case(case)
    drawn = model.sample()
    return None if drawn is None else decompose_case(drawn.case, squares=drawn.squares)


def features_of(
    models: dict[str, Model], features: Any, sample_weight: Any, where: str
) -> dict[str, LossDecomposition | None]:
    """What a better use of the features gains, for each model; None where the rows are too few."""
    cases = {name: model.case for name, model in models.items()}
    found = {}
    for name, case in cases.items():
        if case is None:
            cure = "Pass y_proba, or leave features out"
            refuse(where, "labels and probabilities of each row, for features", "summaries", cure)
        enough, given = enough_for_features(case), {"sample_weight": sample_weight}
        found[name] = decompose_by_features(case, features, **given) if enough else None
    return found


def floored(model: Model) -> tuple[int, int]:
    """Rows whose true class has a probability that the log loss raises, and of these, exactly 0.

    Of soft labels the items.
    """
    case, totals = model.case, model.summary.totals
    if case is not None:
        low = LogLoss().of_rows(case.proba, case.codes) >= LARGEST_LOG_LOSS
        true = np.asarray(case.proba)[np.arange(len(low)), case.codes]
        if case.items is None:
            return int(low.sum()), int((true == 0).sum())
        return len(np.unique(case.items[low])), len(np.unique(case.items[true == 0]))
    if not model.two_classes:
        return totals.certain_and_wrong, totals.certain_and_wrong
    (sample,) = model.summary.samples()
    low = sample.proba <= LOG_LOSS_FLOOR
    return int(sample.counts[low].sum()), totals.certain_and_wrong


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
