"""Results as tables of text, for a terminal and a notebook."""

from collections.abc import Sequence

import numpy as np

from .._show import in_page
from .._typing import FloatArray, IntArray

_SHOWN = 10
_CELL = "style='padding: .15em .7em; white-space: nowrap; text-align: {}'"


class Printed:
    """Prints `_lines`, rows of cells of which the first has the heads, and `_note` below."""

    def _lines(self) -> list[list[str]]:
        raise NotImplementedError

    def _note(self) -> str:
        return ""

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])])
            for first, *rest in lines
        ]
        return "\n".join([*text, *filter(None, [self._note()])])

    def _repr_html_(self) -> str:
        head, *body = self._lines()
        rows = "".join(_row(line, "td") for line in body)
        note = f"<p><small>{in_page(self._note(), None)}</small></p>" if self._note() else ""
        return f"<table><thead>{_row(head, 'th')}</thead><tbody>{rows}</tbody></table>{note}"


def _row(cells: Sequence[str], tag: str) -> str:
    first, *rest = (in_page(cell) for cell in cells)
    other = "".join(f"<{tag} {_CELL.format('right')}>{cell}</{tag}>" for cell in rest)
    return f"<tr><th {_CELL.format('left')}>{first}</th>{other}</tr>"


def some_of(threshold: FloatArray) -> IntArray:
    """Positions of at most ten thresholds, evenly spaced."""
    n = len(threshold)
    return np.linspace(0, n - 1, min(n, _SHOWN)).round().astype(np.intp)


def interval(low: float, high: float) -> str:
    """Two ends of an interval."""
    return f"{low:.4f} to {high:.4f}"
