"""Would recalibration help? What the report found out, on the screen."""

from typing import TYPE_CHECKING

from .._show import plain
from ._printing import Screen, print_table

if TYPE_CHECKING:
    from ..report import Advice, CalibrationReport

_TOO_FEW = "too few rows of some class to say whether recalibration would help"
_HEADER = ("recalibrator", "log loss", "gain", "standard error", "Brier", "ECE")


def print_advice(screen: Screen, report: "CalibrationReport") -> None:
    """Print the table of losses, and the code that repairs the probabilities."""
    for name, advice in report.advice.items():
        if advice is None:
            screen.print(f"\n{_TOO_FEW}")
        else:
            _print(screen, name, advice, report.n_samples)


def _print(screen: Screen, name: str, advice: "Advice", n_samples: int) -> None:
    drawn = f", {advice.n_rows} rows drawn" if advice.n_rows < n_samples else ""
    title = f"would recalibration help? (5-fold cross-validated{drawn}); * best"
    columns = [*zip(*(row[1:] for row in advice.rows), strict=True)]
    best = [max(c) if n == 1 else min(c) for n, c in enumerate(columns)]
    best[2] = None  # a standard error is no merit
    lines = [
        (row[0], *(f"{'* ' if v == b else ''}{v:.4f}" for v, b in zip(row[1:], best, strict=True)))
        for row in advice.rows
    ]
    print_table(screen, title, _HEADER, lines)
    screen.print(f"\nto repair the probabilities of {plain(name)}:\n", highlight=False)
    for line in advice.code.splitlines():
        screen.print(f"    {plain(line, None)}" if line else "", highlight=False, soft_wrap=True)
