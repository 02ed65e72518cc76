"""Would recalibration help? Losses of some methods on rows that they have not seen."""

import warnings

import numpy as np

from .._typing import AnyArray, FloatArray
from ..exceptions import CalibrationWarning
from ..recalibrators import cross_fitted_proba, get_recalibrator
from ..summary import CalibrationSummary
from ._printing import Screen, print_losses, print_values, progress

ADVICE = ("identity", "auto", "temperature", "platt", "beta", "isotonic")
_QUESTION = "would recalibration help? (5-fold cross-validated{})"
_TOO_FEW = "too few rows of some class to say whether recalibration would help"
_CELLS = 4096  # of a summary; moves no score by more than 1/512 of it
_ENTRIES = 50_000  # rows times classes


def advise_on_summary(screen: Screen, summary: CalibrationSummary) -> None:
    """The advice for two classes, of all rows."""
    if summary.max_cells > _CELLS:
        summary = summary.coarsen(_CELLS)
    cells = summary.to_arrow()
    if min(sum(cells[name].to_pylist()) for name in ("n0", "n1")) < 5:
        screen.print(_TOO_FEW)
        return
    measures = ("log_loss", "brier_loss", "expected_calibration_error")
    found = {}
    with progress("recalibrating") as advance, warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        for number, name in enumerate(ADVICE, 1):
            values = summary.cross_validate([name], measures=measures)[name]
            found[name] = [values[measure] for measure in measures]
            advance(number, len(ADVICE))
        stack = summary.fit("auto") if "auto" in found else None
    print_values(screen, _QUESTION.format(""), found)
    _print_weights(screen, stack)


def advise_on_rows(
    screen: Screen, proba: FloatArray, codes: AnyArray, classes: AnyArray, weight: FloatArray
) -> None:
    """The advice for several classes; of many rows a sample."""
    rows = np.arange(len(codes))
    most = max(_ENTRIES // len(classes), 1000)
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))
    counts = np.bincount(codes[rows], minlength=len(classes))
    if counts[counts > 0].min() < 5 or (counts > 0).sum() < 2:
        screen.print(_TOO_FEW)
        return
    sample = f", {len(rows)} rows drawn" if len(rows) < len(codes) else ""
    proba, codes, weight = proba[rows], codes[rows], weight[rows]
    numbers = np.arange(len(classes))
    pooled = {}
    with progress("recalibrating") as advance, warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        for number, name in enumerate(ADVICE, 1):
            pooled[name] = cross_fitted_proba(
                name, proba, codes, cv=5, sample_weight=weight, classes=numbers
            )
            advance(number, len(ADVICE))
        stack = None
        if "auto" in pooled:
            stack = get_recalibrator("auto")
            stack.fit(proba, codes, sample_weight=weight, classes=numbers)
    print_losses(screen, _QUESTION.format(sample), codes, pooled, numbers, weight)
    _print_weights(screen, stack)


def _print_weights(screen, stack):
    """What the mixture is made of, the largest weight first."""
    if stack is None:
        return
    weights = sorted(getattr(stack, "weights_", {}).items(), key=lambda pair: -pair[1])
    parts = [f"{name} {weight:.2f}" for name, weight in weights if weight >= 0.005]
    if parts:
        screen.print(f'"auto" is a mixture: {", ".join(parts)}')
