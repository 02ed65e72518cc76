"""calibration_report: the measures of one or several models, with intervals and pictures."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from .._extras import require
from .._files import write_whole
from .._show import plain
from .._simplex import LARGEST_LOG_LOSS, carries_log, log_loss_of_rows
from .._typing import ArrayLike, Progress, RandomStateLike
from ..decomposition import LossDecomposition, decompose_case
from ..exceptions import refuse
from ..metrics import canonical_case
from ..summary import CalibrationSummary
from ._page import page, table
from ._table import Model, ReportRow, affordable_resamples, cells, report_measures, report_rows

_PICTURE_CELLS = 4096

if TYPE_CHECKING:
    import pandas as pd

    from ..displays import ReliabilityDisplay


@dataclass
class CalibrationReport:
    """The result of `calibration_report`: a table, and pictures drawn on demand.

    Attributes
    ----------
    rows : list of ReportRow
    n_samples : int
    classes : list
    level : float
    accuracy : dict of str to float
    decomposition : dict of str to LossDecomposition
        Of the log loss, by temperature scaling. Without the models that are summaries of more than
        two classes.
    floored : dict of str to tuple of int
        How many rows give their true class a probability below 2.2e-16, which the log loss counts
        as 2.2e-16 (36.04 nats), and how many of these give it exactly 0. Of a summary of more than
        two classes only the latter are known, and are both numbers.
    """

    rows: list[ReportRow]
    n_samples: int
    classes: list[Any]
    level: float
    accuracy: dict[str, float]
    decomposition: dict[str, LossDecomposition]
    floored: dict[str, tuple[int, int]]
    _data: dict[str, Any] = field(repr=False, default_factory=dict)

    def to_frame(self) -> "pd.DataFrame":
        """The rows as a pandas DataFrame, one row for each model and measure.

        Raises ModuleNotFoundError where pandas is not installed.
        """
        pd = require("pandas", "cli", "CalibrationReport.to_frame")
        return pd.DataFrame([vars(row) for row in self.rows])

    def __str__(self) -> str:
        lines = [f"{self.n_samples} rows, {len(self.classes)} classes"]
        lines += [
            f"accuracy of {plain(name)}: {value:.4f}" for name, value in self.accuracy.items()
        ]
        header = ("model", "measure", "value", f"{self.level:.0%} interval", "if calibrated")
        lines_of_cells = [header, *(cells(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines_of_cells) for i in range(len(header))]
        for line in lines_of_cells:
            lines.append("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip())
        return "\n".join(lines + self.decomposition_lines())

    def decomposition_lines(self) -> list[str]:
        """The decomposition of the log loss in words, one line per model.

        One more for each model that calls a true class impossible (see `floored`).
        """
        parts = []
        for name, d in self.decomposition.items():
            ends = d.interval("calibration", self.level)
            within = f" ({self.level:.0%}: {ends[0]:.4f} to {ends[1]:.4f})" if ends else ""
            parts.append(
                f"{plain(name)}: log loss {d.risk:.4f} = calibration {d.calibration:.4f}{within} "
                f"+ refinement {d.refinement:.4f}; class frequencies alone {d.uncertainty:.4f}"
            )
        floors = [
            f"{plain(name)}: the true class has a probability below 2.2e-16 in {low} rows "
            f"(exactly 0 in {zero}); the log loss counts each as 2.2e-16, 36.04 nats"
            for name, (low, zero) in self.floored.items()
            if low
        ]
        return parts + floors

    def _repr_html_(self):
        return table(self)

    def plot(self, **options: Any) -> "ReliabilityDisplay":
        """A `ReliabilityDisplay` of the models.

        Parameters
        ----------
        **options
            As in ``ReliabilityDisplay.from_predictions``, for instance ``strategy="isotonic"``; of
            summaries those of `CalibrationSummary.reliability_curve`.
        """
        from ..displays import ReliabilityDisplay

        data = self._data
        if "summaries" in data:
            curves = {
                n: _to_draw(s).reliability_curve(**options) for n, s in data["summaries"].items()
            }
            return ReliabilityDisplay(curves).plot()
        if len(data["proba"]) == 1:
            options.setdefault("n_resamples", affordable_resamples(self.n_samples))
        return ReliabilityDisplay.from_predictions(
            data["y"], data["proba"], labels=self.classes, sample_weight=data["weight"], **options
        )

    def to_html(self, path: str | Path, *, title: str = "Calibration report") -> str | Path:
        """Write one self-contained file: tables and pictures, no scripts, no network.

        It is written whole or not at all: on an error an existing file is as it was.

        Parameters
        ----------
        path : str or path-like
        title : str, default="Calibration report"

        Returns
        -------
        path : str
            Where the file is, absolute.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        text = page(self, title)
        path = os.path.abspath(os.fspath(path))
        write_whole(path, text)
        return path


def _to_draw(summary):
    """The summary in so many cells as a picture shows; bands are drawn from it 400 times."""
    if summary.exact or len(summary.classes) > 2:
        return summary
    return summary.coarsen(min(summary.max_cells, _PICTURE_CELLS))


def calibration_report(
    y_true: ArrayLike | CalibrationSummary | dict[str, CalibrationSummary],
    y_proba: ArrayLike | dict[str, Any] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    name: str = "model",
    measures: Iterable[str] | None = None,
    level: float = 0.9,
    n_resamples: int | Literal["auto"] = "auto",
    random_state: RandomStateLike = 0,
    progress: Progress | None = None,
) -> CalibrationReport:
    """Measure the calibration of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or CalibrationSummary or dict of these
        Labels; or, alone, a summary of labels and probabilities, or a dict of name to summary.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict, default=None
        Probabilities; a dict of name to probabilities compares models.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.
    name : str, default="model"
        What to call the model, where there is one.
    measures : list of str, default=None
        Names from `all_metrics`; by default the registered measures that are meant for reports.
    level : float in (0, 1), default=0.9
    n_resamples : int or "auto", default="auto"
        Bootstrap resamples, and as many draws of labels from the predictions; "auto" takes 200. Of
        measures that need single rows it takes fewer beyond 100,000 rows, at least 20.
    random_state : int, Generator, RandomState or None, default=0
    progress : callable, default=None
        Called as ``progress(done, total)``.

    Returns
    -------
    report : CalibrationReport

    Raises
    ------
    ValueError
        Invalid scores, labels or weights (see `canonical_proba`), or an unknown measure.

    Notes
    -----
    The interval is the percentile bootstrap over rows. For a calibration error near 0 it lies too
    high, because the error of a finite sample is biased upwards; compare the value with the column
    "if calibrated" there, which is exact: labels drawn from the predictions.

    The rows are summarised first, as `CalibrationSummary` does it: up to 65,536 distinct scores
    (largest probabilities, for several classes) nothing is lost, and beyond that some 1e-7 of a
    measure. Resamples draw from 1024 to 4096 cells, which has the law of drawing rows. The two
    losses of more than two classes are means, with normal intervals by their exact standard errors
    and the exact mean and variance of labels drawn from the predictions. Cost: some 20 ns a row,
    and 2 n_resamples + 1 evaluations on the cells, about a millisecond each.

    Every log loss of the report, in the table and in the decomposition, counts a row as
    -log(max(p, 2.2e-16)) with p the probability of its true class, as `log_loss` does; where this
    floor is reached, the report says in how many rows, and how many of them are exactly 0.

    Examples
    --------
    >>> from sklearn_calib.report import calibration_report
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> report = calibration_report(y, proba, n_resamples=20)
    >>> report.rows[0].measure
    'brier_loss'
    >>> error = next(r for r in report.rows if r.measure == "expected_calibration_error")
    >>> error.value > error.if_calibrated
    True
    """
    where = "calibration_report"
    functions = report_measures(measures, where)
    if not 0 < level < 1:
        refuse(where, "level in (0, 1)", repr(level), "90 % is 0.9")
    given = sample_weight, labels, pos_label
    if y_proba is None:
        models = _of_summaries(y_true, name, any(x is not None for x in given), where)
        data: dict[str, Any] = {"summaries": {key: m.summary for key, m in models.items()}}
    else:
        named = y_proba if isinstance(y_proba, dict) else {name: y_proba}
        true = cast("ArrayLike", y_true)
        cases = {key: canonical_case(where, true, p, *given) for key, p in named.items()}
        models = {key: Model(_summarised(case), case) for key, case in cases.items()}
        case = next(iter(cases.values()))
        data = {"y": case.classes[case.codes], "weight": case.weight}
        data["proba"] = {key: case.proba for key, case in cases.items()}
    rows = report_rows(models, functions, level, n_resamples, random_state, progress)
    first = next(iter(models.values()))
    n, classes = _size_and_classes(first)
    return CalibrationReport(
        rows,
        n,
        classes,
        level,
        {key: _accuracy(model) for key, model in models.items()},
        {key: parts for key, model in models.items() if (parts := _decomposed(model))},
        {key: _floored(model) for key, model in models.items()},
        data,
    )


def _of_summaries(summaries, name, more, where):
    """Models of summaries alone."""
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


def _summarised(case):
    """The summary of checked rows, with the positions of the classes as labels."""
    numbers = np.arange(len(case.classes))
    positive = case.positive if len(numbers) == 2 else None
    summary = CalibrationSummary(classes=numbers, pos_label=positive)
    weight = None if (case.weight == 1).all() else case.weight
    return summary.update(case.codes, np.asarray(case.proba), sample_weight=weight)


def _size_and_classes(model):
    if model.case is not None:
        return len(model.case.codes), model.case.classes.tolist()
    classes = model.summary.classes
    return model.summary.n_samples, [0, 1] if classes is None else classes.tolist()


def _accuracy(model):
    case = model.case
    if case is None:
        if not model.two_classes:
            return model.summary.totals.correct / model.summary.weight
        case = model.summary.case()
    return case.mean(np.asarray(case.proba).argmax(axis=1) == case.codes)


def _decomposed(model):
    """The log loss by temperature; of two classes from the cells, unless logarithms are known."""
    case = model.case
    if model.two_classes and (case is None or not carries_log(case.proba)):
        (sample,) = model.summary.samples()
        cells, squares = sample.filled
        return decompose_case(cells, squares=squares)
    return None if case is None else decompose_case(case)


def _floored(model):
    """Rows whose true class has a probability that the log loss raises, and of these, exactly 0."""
    case, totals = model.case, model.summary.totals
    if case is not None:
        low = log_loss_of_rows(case.proba, case.codes) >= LARGEST_LOG_LOSS
        true = np.asarray(case.proba)[np.arange(len(low)), case.codes]
        return int(low.sum()), int((true == 0).sum())
    if not model.two_classes:
        return totals.certain_and_wrong, totals.certain_and_wrong
    (sample,) = model.summary.samples()
    low = sample.proba <= np.finfo(np.float64).eps
    return int(sample.counts[low].sum()), totals.certain_and_wrong
