"""Temperature scaling by passes over blocks of rows: the six sums of a pass add up."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from .._simplex import row_blocks
from .._typing import FloatArray
from ._temperature import (
    TemperatureFit,
    box_of,
    choose_pass,
    excess_loss,
    halley_step,
    solve,
    unreachable,
)

_TOL = 5e-3  # of log beta: below it the error of a Halley step is below 2e-7
_TOL_CORRECTED = 2e-2  # and with what the sample says of the higher derivatives, below 1e-6


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


def corrected_step(sample):
    """A better step than Halley's, for `solve`: `sample`, (z, codes, weight), helps.

    Where the first three derivatives of all rows at beta are known, the sample gives the rest of
    the slope at beta + step, in the ratio of the second derivatives. The relative error of the
    sample, some percent, is then that of what Halley's step leaves out.
    """
    sums = choose_pass(np.inf)

    def step_from(beta, first, second, third):
        step = halley = halley_step(first, second, third)
        if not abs(step) < 0.1 * beta:
            return step
        s1, s2, s3 = sums(*sample, beta)[1:4]
        for _ in range(2):
            t1, t2 = sums(*sample, beta + step)[1:3]
            slope = first + step * (second + step * third / 2)
            slope += second / s2 * (t1 - s1 - step * (s2 + step * s3 / 2))
            step -= slope / (second / s2 * (t2 - s2 - step * s3) + second + step * third)
        return step if abs(step - halley) < 0.1 * abs(halley) else halley

    return step_from


def fit_temperature_passes(run, beta, label_smoothing=0.0, sample=None):
    """As `fit_temperature`, and the sum of the weights: `run(beta)` is the pass of all rows.

    One pass is enough where the step after it changes log beta by less than _TOL, or, where there
    is a `sample`, _TOL_CORRECTED.
    """
    there, here = beta, run(beta)

    def sums(beta):
        nonlocal there, here
        if beta != there:
            there, here = beta, run(beta)
        return here.sums

    box = box_of(here.highest - here.lowest or 1.0)
    problem = sums, here.weight, here.n_classes, label_smoothing, beta, box
    if sample is None:
        fit = solve(*problem, _TOL)
    else:
        fit = solve(*problem, _TOL_CORRECTED, corrected_step(sample))
    if not label_smoothing:
        excess = here.excess @ (1.0, fit.beta - there) / here.weight
        fit = fit._replace(loss=max(float(fit.loss - excess), 0.0))
    return fit, here.weight


_EQUAL = 1e-12


def fit_expected_accuracy(z, codes, weight, label_smoothing=0.0):
    """The beta >= 0 where the mean of max softmax(beta * z) is the share of right predictions.

    The mean confidence rises with beta, from 1 / k to 1: one root, by Brent's method in log beta.
    The accuracy counts as (1 - eps) accuracy + eps / k for a `label_smoothing` eps. Statuses as in
    `fit_temperature`; the loss is that at beta, of labels as they are.
    """
    z = np.asarray(z, dtype=np.float64)
    z = z - z.max(axis=1, keepdims=True)
    share, k = weight / weight.sum(), z.shape[1]
    accuracy = float(share[z.argmax(axis=1) == codes].sum())
    accuracy = (1 - label_smoothing) * accuracy + label_smoothing / k
    n_passes = 0

    def excess(log_beta):
        nonlocal n_passes
        n_passes += 1
        confidence = 0.0
        for block in row_blocks(z):
            confidence += share[block] @ (1 / np.exp(np.exp(log_beta) * z[block]).sum(axis=1))
        return confidence - accuracy

    low, high = np.log(box_of(float(-z.min()) or 1.0))
    least, most = excess(low), excess(high)
    if least >= -_EQUAL or most - least < _EQUAL:
        status, beta = "uninformative", np.exp(low)
    elif most <= _EQUAL:
        status, beta = "separable", np.exp(high)
    else:
        status, beta = "inside", np.exp(brentq(excess, low, high, xtol=1e-10, rtol=1e-12))
    loss = choose_pass(z.size)(z, codes, weight, beta)[0] / weight.sum()
    return TemperatureFit(float(beta), max(float(loss), 0.0), status, n_passes + 1)
