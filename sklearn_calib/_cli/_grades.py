"""The option ``--grades`` of ``audit``: rating grades of rows, or of a summary."""

import json
import os
from typing import TYPE_CHECKING, Any

from .._files.opened import json_text
from .._show import plain, quoted
from ._names import split_names
from ._options import any_number, as_number
from ._wording import refuse

if TYPE_CHECKING:
    import argparse


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
        refuse(
            "the column of one class in --prob, whose probability has --grades",
            f"{n_columns} columns",
            "Name one of two classes, or leave --grades out",
        )


def grades_in(given: str | None) -> Any:
    """The grades of an option: edges, or a file of them; None without one."""
    if given is None:
        return None
    from ..groups import grades_of

    where = "audit"
    if not os.path.exists(given):
        return grades_of([_edge(text) for text in split_names([given])], where)
    try:
        content = json.loads(json_text(given))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "no JSON"
        refuse(
            f"grades in {quoted(given, 200)}",
            plain(said, 200),
            'Write for instance {"edges": [0.02, 0.05], "names": ["A", "B", "C"]}',
        )
    return grades_of(content, where)


def _edge(text):
    try:
        return any_number(text)
    except Exception:
        cure = as_number(text) or "Write for instance --grades 0.01,0.02,0.05"
        refuse("edges or a file in --grades", quoted(text), cure)
