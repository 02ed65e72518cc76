"""calibration_report: the measures of one or several models, with intervals and pictures."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._extras import require
from .._files import write_whole
from .._show import plain
from .._simplex import LARGEST_LOG_LOSS, log_loss_of_rows
from .._typing import ArrayLike, Progress, RandomStateLike
from ..decomposition import LossDecomposition, decompose_case
from ..exceptions import refuse
from ..metrics import canonical_case
from ._page import page, table
from ._table import ReportRow, affordable_resamples, cells, report_measures, report_rows

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
        Of the log loss, by temperature scaling.
    floored : dict of str to tuple of int
        How many rows give their true class a probability below 2.2e-16, which the log loss counts
        as 2.2e-16 (36.04 nats), and how many of these give it exactly 0.
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
            As in ``ReliabilityDisplay.from_predictions``, for instance ``strategy="isotonic"``.
        """
        from ..displays import ReliabilityDisplay

        data = self._data
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
        ModuleNotFoundError
            matplotlib is not installed.
        """
        sections = [("Bins of equal mass", {}), ("Isotonic (CORP)", {"strategy": "isotonic"})]
        if 2 < len(self.classes) <= 12:
            sections.append(("Each class against the others", {"multiclass": "classwise"}))
        pictures = ((name, self.plot(**options)) for name, options in sections)  # one at a time
        text = page(self, title, pictures)
        path = os.path.abspath(os.fspath(path))
        write_whole(path, text)
        return path


def calibration_report(
    y_true: ArrayLike,
    y_proba: ArrayLike | dict[str, Any],
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
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict
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
        Bootstrap resamples, and as many draws of labels from the predictions; "auto" takes 200,
        fewer beyond 100,000 rows, at least 20.
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
    "if calibrated" there, which is exact: labels drawn from the predictions. Cost: each measure's
    own, times 2 n_resamples + 1.

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
    models = y_proba if isinstance(y_proba, dict) else {name: y_proba}
    functions = report_measures(measures, where)
    if not 0 < level < 1:
        refuse(where, "level in (0, 1)", repr(level), "90 % is 0.9")
    cases = {
        key: canonical_case(where, y_true, p, sample_weight, labels, pos_label)
        for key, p in models.items()
    }
    first = next(iter(cases.values()))
    n = len(first.codes)
    if n_resamples == "auto":
        n_resamples = affordable_resamples(n)

    rows = report_rows(cases, functions, level, n_resamples, random_state, progress)
    accuracy, floored = {}, {}
    for key, case in cases.items():
        accuracy[key] = case.mean(np.asarray(case.proba).argmax(axis=1) == case.codes)
        true = np.asarray(case.proba)[np.arange(n), case.codes]
        low = log_loss_of_rows(case.proba, case.codes) >= LARGEST_LOG_LOSS
        floored[key] = int(low.sum()), int((true == 0).sum())
    data: dict[str, Any] = {"y": first.classes[first.codes], "weight": first.weight}
    data["proba"] = {key: case.proba for key, case in cases.items()}
    parts = {key: decompose_case(case) for key, case in cases.items()}
    classes = first.classes.tolist()
    return CalibrationReport(rows, n, classes, level, accuracy, parts, floored, data)
