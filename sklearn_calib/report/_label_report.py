"""LabelReport: what `calibration_report` found out about many labels per row."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._random import generator
from .._show import bare, html_of, in_notebook
from .._typing import ArrayLike, DataFrame, Progress, RandomStateLike
from .._version import __version__
from ..canonical import canonical_label_scores, canonical_label_table, label_names, raw_weight
from ..exceptions import check_level, refuse, require
from ..groups import GroupRow
from ..metrics import label_cases
from ._json import WrittenReport, clean, write_page
from ._label_order import check_order_of_labels
from ._label_sections import PAIRS_DRAWN, sections_of_labels
from ._labels import LabelAverage, LabelTable, audit_labels, averages_of
from ._models import ModelOfRows
from ._page import page
from ._style import NOTEBOOK
from ._table import ReportRow, report_measures, report_rows

FORMAT, SCHEMA = "sklearn-calib-label-report", 1
_DRAWS_OF_ALL, _FEWEST = 6000, 20  # resamples of all labels together, and of one at least
_FEW_LABELS, _COSTLY = 100, "lower_distance_to_calibration"  # of more labels by its name alone


@dataclass
class LabelReport(WrittenReport):
    """The result of `calibration_report` with ``multilabel=True``: one line for each label.

    ``print(report)`` shows the text; `to_html`, `to_json` and `to_markdown` write it.

    Attributes
    ----------
    labels : list of GroupRow
        One for each label, in the order of the columns: its rows, events, O/E, calibration in the
        large and slope with intervals, each by itself at `level`. ``p_value`` is that of the label
        alone, ``adjusted_p_value`` allows for all labels (Holm).
    p_value : float
        Of the hypothesis that the probabilities of all labels are calibrated. Never too small,
        however the labels of a row depend on each other.
    averages : list of LabelAverage
        The macro and micro mean of each measure.
    rows : list of ReportRow
        Each measure of each label, which is called the model there.
    accuracy : float
        The mean over labels of the share of rows where the more probable answer is right.
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
    _models: dict[str, ModelOfRows] = field(repr=False, default_factory=dict)

    def worst(self, n: int = 3) -> list[GroupRow]:
        """The labels of the smallest adjusted p-values; of equal ones those of the larger sigma.

        Parameters
        ----------
        n : int, default=3

        Returns
        -------
        rows : list of GroupRow
        """
        return sorted(self.labels, key=lambda row: (row.adjusted_p_value, -row.sigma))[:n]

    def to_frame(self) -> DataFrame:
        """All labels as a pandas DataFrame, one row each: `GroupRow`, and a column per measure.

        Raises ModuleNotFoundError where pandas is not installed.
        """
        pd = require("pandas", "cli", "LabelReport.to_frame")
        frame = pd.DataFrame(self.labels, columns=GroupRow._fields)
        frame = frame.drop(columns="event").rename(columns={"group": "label"})
        for name in (average.measure for average in self.averages):
            frame[name] = [row.value for row in self.rows if row.measure == name]
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Everything that the report says, as dicts, lists, texts and numbers.

        Returns
        -------
        content : dict
            ``"format": "sklearn-calib-label-report"`` and ``"schema": 1`` say what it is; numbers
            that do not exist are None.
        """
        own = "version", "created", "source", "name", "level", "p_value", "accuracy"
        measured = "value", "low", "high", "if_calibrated"
        by_label: dict[str, dict[str, Any]] = {row.group: {} for row in self.labels}
        for row in self.rows:
            by_label[row.model][row.measure] = {key: getattr(row, key) for key in measured}
        labels = []
        for found in self.labels:
            line = {key: v for key, v in found._asdict().items() if key not in ("group", "event")}
            labels.append({"label": found.group, **line, "measures": by_label[found.group]})
        content = {"format": FORMAT, "schema": SCHEMA}
        content |= {key: getattr(self, key) for key in own} | {"n_rows": self.n_samples}
        content |= {"averages": [one._asdict() for one in self.averages], "labels": labels}
        return clean(content)

    def to_html(self, path: str | Path, *, title: str = "Calibration report") -> str | Path:
        """Write one self-contained file to send around: no scripts, no network.

        Parameters
        ----------
        path : str or path-like
            Written whole or not at all.
        title : str, default="Calibration report"

        Returns
        -------
        path : str
            Where the file is, absolute.

        Raises
        ------
        OSError
            The file cannot be written.

        Notes
        -----
        The three worst labels are drawn, and the tables have the 100 worst, whatever the number of
        labels; `to_frame` and `to_json` have all.
        """
        rows = f"{self.n_samples:,} rows; {len(self.labels)} labels"
        return write_page(path, page(self, title, rows, sections_of_labels(self, drawn=True)))

    def _sections(self):
        return sections_of_labels(self)

    def _repr_html_(self):
        return in_notebook(html_of(sections_of_labels(self, drawn=True)[:5], level=3), NOTEBOOK)


def label_report(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: ArrayLike | None,
    labels: ArrayLike | None,
    check_columns: bool,
    name: str,
    source: str | None,
    measures: Iterable[str] | None,
    level: float,
    n_resamples: int | Literal["auto"],
    random_state: RandomStateLike,
    progress: Progress | None,
) -> LabelReport:
    """`calibration_report` of many labels, with arguments that are checked where they are used."""
    where = "calibration_report"
    functions = report_measures(measures, where)
    check_level(level, where)
    given: dict[str, Any] = {"sample_weight": sample_weight, "labels": labels}
    cases = [case for _, case in label_cases(where, y_true, y_proba, "macro", **given)]
    named = label_names(y_true, len(cases)) if labels is None else np.asarray(labels).tolist()
    names = [str(one) for one in named]
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        refuse(where, "different names of labels", f"{twice[:60]!r} twice", "Pass others as labels")
    if measures is None and len(names) > _FEW_LABELS:
        functions = [one for one in functions if one.spec.name != _COSTLY]
    if check_columns:
        check_order_of_labels(dict(zip(names, cases, strict=True)), y_true, y_proba, where)
    models = {key: ModelOfRows(case) for key, case in zip(names, cases, strict=True)}
    rng = generator(random_state)
    if n_resamples == "auto":
        n_resamples = int(np.clip(_DRAWS_OF_ALL // len(names), _FEWEST, PAIRS_DRAWN))
    rows = report_rows(models, functions, level, n_resamples, rng, progress)
    found = audit_labels(models, level, int(rng.integers(2**63)))
    pairs, _ = canonical_label_scores(y_proba, where)
    known = ~np.isnan(canonical_label_table(y_true, len(pairs[0]), len(pairs), where))
    weight = raw_weight(sample_weight, len(known), where)
    ((_, pooled),) = label_cases(where, y_true, y_proba, "micro", **given)
    table = LabelTable(known, weight)
    return LabelReport(
        found,
        min(row.adjusted_p_value for row in found),
        averages_of(functions, rows, models, pooled, table, level),
        rows,
        float(np.mean([model.accuracy() for model in models.values()])),
        int(np.count_nonzero(weight > 0)),
        level,
        name,
        source and bare(source),
        _models=models,
    )
