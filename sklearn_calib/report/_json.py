"""A report as dicts, JSON and Markdown."""

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.names import path_of
from .._files.whole import write_whole
from .._show import Section, Shown, markdown_of

if TYPE_CHECKING:
    from ._content import Content

FORMAT, SCHEMA = "sklearn-calib-report", 1


def as_dict(report: "Content") -> dict[str, Any]:
    """What `CalibrationReport.to_dict` returns."""
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": report.version,
        "created": report.created,
        "source": report.source,
        "n_rows": report.n_samples,
        "n_clusters": report.n_clusters,
        "classes": report.classes,
        "level": report.level,
        "models": [_model(report, name) for name in report.accuracy],
    }
    return clean(content)


def _model(report, name):
    parts, line, advice = report.decomposition.get(name), report.line(name), report.advice[name]
    below, zeros = report.floored[name]
    used = report.features.get(name)
    keys = "risk", "calibration", "refinement", "uncertainty"
    measured = "measure", "value", "low", "high", "if_calibrated"
    return {
        "name": name,
        "accuracy": report.accuracy[name],
        "verdict": report.verdicts[name].to_dict(),
        "measures": [
            {key: getattr(row, key) for key in measured} for row in report.rows if row.model == name
        ],
        "decomposition": None if parts is None else {key: getattr(parts, key) for key in keys},
        "log_loss": {
            "rows_below_floor": below,
            "rows_of_zero": zeros,
            "scikit_learn": report.sklearn_log_loss.get(name),
        },
        "line": None if line is None else line._asdict(),
        "bins": [one._asdict() for one in report.bins(name)],
        "advice": None if advice is None else advice.to_dict(),
        "groups": report.groups[name].to_dict() if name in report.groups else None,
        "grades": report.grades[name].to_dict() if name in report.grades else None,
        "features": None if used is None else used.to_dict(report.level),
    }


def clean(value: Any) -> Any:
    """Plain Python without NaN and infinities."""
    if isinstance(value, dict):
        return {str(key): clean(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [clean(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def write_page(path: str | Path, text: str) -> str:
    """Write a page whole or not at all; where it is, absolute."""
    place = os.path.abspath(path_of(path, "to_html"))
    write_whole(place, text)
    return place


class WrittenReport(Shown):
    """A report that is written as JSON and as Markdown: its `to_dict`, and its `_sections`."""

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} has no to_dict; see WrittenReport")

    def to_json(self, path: str | Path | None = None) -> str:
        """`to_dict` as JSON.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write it, whole or not at all.

        Returns
        -------
        text : str

        Raises
        ------
        OSError
            The file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_whole(path_of(path, "to_json"), text)
        return text

    def to_markdown(self) -> str:
        """The report as Markdown, for an issue, a notebook or a model card."""
        return markdown_of([Section("Calibration report", parts=self._sections())])
