"""Temperature scaling by passes over blocks of rows: the six sums of a pass add up."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import FloatArray
from ._temperature import box_of, choose_pass, excess_loss, solve, unreachable

_TOL = 5e-3  # of log beta: below it one Halley step is exact to its third power


@dataclass(frozen=True)
class TemperaturePass:
    """What one reading of some rows gives at one beta; passes of other rows are added."""

    sums: FloatArray  # L, L', L'', L''', D, M of `_temperature`
    weight: float
    lowest: float  # of the logits
    highest: float
    excess: FloatArray  # of the loss over the largest that counts, and its derivative
    n_classes: int

    def __add__(self, other: Any) -> "TemperaturePass":
        return TemperaturePass(
            self.sums + other.sums,
            self.weight + other.weight,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.excess + other.excess,
            self.n_classes,
        )


def temperature_pass(z, codes, weight, beta):
    """The `TemperaturePass` of rows whose logits are z, in float32 or float64."""
    z = np.ascontiguousarray(z)
    lowest, highest = float(z.min()), float(z.max())
    sums = np.asarray(choose_pass(np.inf)(z, codes, weight, beta))  # there are many such blocks
    reachable = beta * (highest - lowest) > unreachable(z.shape[1])
    excess = excess_loss(z, codes, weight, beta) if reachable else np.zeros(2)
    return TemperaturePass(sums, float(weight.sum()), lowest, highest, excess, z.shape[1])


def fit_temperature_passes(run, beta, label_smoothing=0.0):
    """As `fit_temperature`, and the sum of the weights: `run(beta)` is the pass of all rows.

    One pass is enough where its Halley step changes log beta by less than _TOL.
    """
    there, here = beta, run(beta)

    def sums(beta):
        nonlocal there, here
        if beta != there:
            there, here = beta, run(beta)
        return here.sums

    box = box_of(here.highest - here.lowest or 1.0)
    fit = solve(sums, here.weight, here.n_classes, label_smoothing, beta, box, _TOL)
    if not label_smoothing:
        excess = here.excess @ (1.0, fit.beta - there) / here.weight
        fit = fit._replace(loss=max(float(fit.loss - excess), 0.0))
    return fit, here.weight
