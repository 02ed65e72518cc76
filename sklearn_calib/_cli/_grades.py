"""The option ``--grades`` of ``audit``: rating grades of rows, or of a summary."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files.tables import UserError
from .._show import plain, quoted
from ._names import split_names
from ._options import any_number, as_number, tolerance_of

if TYPE_CHECKING:
    import argparse

    from ..report import CalibrationReport
    from ..summary import CalibrationSummary
    from ._rows import LabelledRows


def add_grades(group: Any) -> None:
    """Add the option."""
    group.add_argument(
        "--grades",
        metavar="EDGES|FILE",
        help="also test rating grades: where the second one and those after it begin, such as "
        '0.01,0.02,0.05; or a JSON file with "edges" and "names" (two classes)',
    )


def check_columns(options: "argparse.Namespace", n_columns: int) -> None:
    """Refuse grades of several classes, before the rows are read."""
    if getattr(options, "grades", None) is not None and n_columns > 2:
        raise UserError(
            f"expected the column of one class in --prob, whose probability has --grades, got "
            f"{n_columns} columns. Name one of two classes, or leave --grades out."
        )


def grade_rows(
    report: "CalibrationReport", rows: "LabelledRows", options: "argparse.Namespace"
) -> None:
    """Put the grades of rows into the report on them."""
    if options.grades is None:
        return
    from ..canonical import canonical_proba
    from ..groups import grade_calibration

    (name,) = report.accuracy
    report.grades[name] = grade_calibration(
        rows.labels,
        canonical_proba(rows.scores, tolerance=tolerance_of(options), _where="audit"),
        options.grades,
        counts=rows.weight,
        labels=rows.classes,
        pos_label=rows.positive,
    )


def grade_summary(
    report: "CalibrationReport", summary: "CalibrationSummary", options: "argparse.Namespace"
) -> None:
    """Put the grades of a summary into the report on it."""
    if options.grades is None:
        return
    from ..groups import grade_calibration

    (name,) = report.accuracy
    rows = summary.rows()
    graded = grade_calibration(
        rows.y,
        rows.proba,
        options.grades,
        counts=rows.sample_weight,
        labels=summary.classes,
        pos_label=summary.positive_label,
    )
    report.grades[name] = replace(graded, n_unsure=summary.rows_across(options.grades.edges))


def grades_in(given: str | None) -> Any:
    """The grades of an option: edges, or a file of them; None without one."""
    if given is None:
        return None
    from ..groups import grades_of

    where = "audit"
    if not os.path.exists(given):
        return grades_of([_edge(text) for text in split_names([given])], where)
    try:
        content = json.loads(Path(given).read_text("utf-8"))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "no JSON"
        raise UserError(
            f"expected grades in {quoted(given, 200)}, got: {plain(said, 200)}. Write for instance "
            '{"edges": [0.02, 0.05], "names": ["A", "B", "C"]}.'
        ) from error
    return grades_of(content, where)


def _edge(text):
    try:
        return any_number(text)
    except Exception:
        cure = as_number(text) or "Write for instance --grades 0.01,0.02,0.05"
        raise UserError(
            f"expected edges or a file in --grades, got {quoted(text)}. {cure}."
        ) from None
