"""Many labels per row: the test, the intervals and the averages of a report on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from .._kernels._seen_errors import SIGNIFICANCE
from .._simplex import log_odds, log_proba
from .._typing import FloatArray
from ..groups import GroupRow, audit_case, group_calibration

if TYPE_CHECKING:
    from ..metrics import Case, Measure
    from ._models import Model
    from ._table import ReportRow

_DRAWS = 999
_EXACT_ROWS = 2048  # of more rows the test takes so many cells
_CELLS = 512  # where it takes more draws
_IN_DOUBT = 0.005  # p-values up to that are worth more draws
_BOUND_SHARE = 0.05  # of the level of a label: for the bound, the rest for the draws
_DRAWS_OF_LEVEL = 2  # the smallest adjusted p-value of draws is SIGNIFICANCE over that
_LARGEST_STEP = 60.0  # of the exponent of the bound


class LabelAverage(NamedTuple):
    """One measure over all labels.

    Parameters
    ----------
    measure : str
    macro : float
        The mean over labels.
    macro_low, macro_high : float
        Its interval; of a loss by its exact standard error, in which a row counts with all its
        labels; of another measure the means of the ends of the labels' intervals, which are wide
        enough however labels depend on each other.
    micro : float
        Of all known pairs of a row and a label as one problem.
    micro_low, micro_high : float
        Of a loss; NaN for other measures.
    if_calibrated : float
        The mean of the values that calibrated predictions of the single labels would exceed with
        probability 1 - level.
    """

    measure: str
    macro: float
    macro_low: float
    macro_high: float
    micro: float
    micro_low: float
    micro_high: float
    if_calibrated: float


def audit_labels(models: "dict[str, Model]", level: float, seed: int) -> list[GroupRow]:
    """One row per label, in their order; adjusted p-values are Holm's."""
    rng = np.random.default_rng(seed)
    found = [_audited(model, len(models), level, rng) for model in models.values()]
    adjusted = holm([row.p_value for row in found])
    rows = zip(models, found, adjusted.tolist(), strict=True)
    return [row._replace(group=name, adjusted_p_value=p) for name, row, p in rows]


def holm(p_values: Sequence[float]) -> FloatArray:
    """Adjusted p-values that hold whatever the dependence (Holm, 1979)."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _audited(model, n_labels, level, rng):
    """One label, tested by a bound and by draws; the latter are more where that decides."""
    seeds = rng.integers(2**63, size=2)
    row = _drawn(model, level, _DRAWS, seeds[0], _EXACT_ROWS)
    bound = chernoff_bound(model.case) / _BOUND_SHARE
    enough = SIGNIFICANCE / _DRAWS_OF_LEVEL / n_labels  # of this label, for its adjusted p-value
    p = row.p_value
    if (1 + _DRAWS) * enough < 1 and bound > enough and p <= _IN_DOUBT:
        draws = int(np.ceil(1 / enough / (1 - _BOUND_SHARE))) - 1
        p = _drawn(model, level, draws, seeds[1], _CELLS).p_value
    return row._replace(p_value=min(p / (1 - _BOUND_SHARE), bound, 1.0))


def _drawn(model, level, n_resamples, seed, most):
    """The audit of all rows of a label as one group."""
    how: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "random_state": int(seed)}
    case = model.case
    if len(case.codes) <= most:
        return audit_case(case, [np.ones(len(case.codes), dtype=bool)], min_rows=1, **how).rows[0]
    summary = model.summary.coarsen(min(model.summary.max_cells, most))
    return group_calibration({"all": summary}, groups="rows", min_rows=1, **how).rows[0]


def chernoff_bound(case: "Case") -> float:
    """A p-value from below no draw: the bound of four weighted sums of the residuals.

    The sums of y - p, and of y - p times the log-odds from their mean, either too large or too
    small: P(S >= s) <= min over t of E exp(t S - t s), for independent rows with the probabilities
    p (Chernoff, 1952), times four.
    """
    p, hit = case.second, case.codes == 1
    odds = np.clip(log_odds(case.proba), -30, 30)
    center = case.weight * (odds - np.average(odds, weights=case.weight * (p * (1 - p) + 1e-12)))
    best = 0.0
    for factor in (case.weight, center):
        largest = np.abs(factor).max()
        if largest == 0:
            continue
        for sign in (1, -1):
            best = min(best, _log_bound(sign * factor / largest, log_proba(case.proba), p, hit))
    return min(4 * float(np.exp(best)), 1.0)


def _log_bound(factor, logs, p, hit):
    """The logarithm of the bound for the sum of `factor` times the residual to be so large."""
    excess = float(factor @ (hit - p))
    if excess <= 0:
        return 0.0

    def exponent(t):
        moved = np.logaddexp(logs[:, 0], logs[:, 1] + t * factor) - t * factor * p
        return float(moved.sum() - t * excess)

    found = minimize_scalar(exponent, bounds=(0.0, _LARGEST_STEP), method="bounded")
    return min(float(found.fun), 0.0)


class LabelTable(NamedTuple):
    """Labels with their weights as a table: 0 where one is not known."""

    known: FloatArray  # of shape (n_samples, n_labels)
    weight: FloatArray  # of shape (n_samples,)

    def rows(self, label: int) -> Any:
        """Positions of the rows that count for a label."""
        return np.flatnonzero(self.known[:, label] * (self.weight > 0))

    def interval(
        self, losses: Sequence[FloatArray], means: Sequence[float], shares: FloatArray, level: float
    ) -> tuple[float, float]:
        """Ends for a mean of losses; a row counts once, with all of its labels.

        Parameters
        ----------
        losses : list of ndarray
            Of the rows of each label.
        means : sequence of float
            What the losses of each label are compared with.
        shares : ndarray of shape (n_labels,)
            What a unit of weight of each label counts.
        level : float
        """
        moved = np.zeros(len(self.weight))
        for label, loss in enumerate(losses):
            rows = self.rows(label)
            moved[rows] += shares[label] * self.weight[rows] * (loss - means[label])
        n = np.count_nonzero((self.known.any(axis=1)) & (self.weight > 0))
        factor = n / (n - 1) if n > 1 else np.inf
        half = ndtri((1 + level) / 2) * np.sqrt(factor * float(moved @ moved))
        return -half, half


def averages_of(
    functions: "Sequence[Measure]",
    rows: "Sequence[ReportRow]",
    models: "dict[str, Model]",
    pooled: "Case",
    table: LabelTable,
    level: float,
) -> list[LabelAverage]:
    """The macro and micro mean of each measure."""
    totals = table.weight @ table.known
    found = []
    for function in functions:
        name = function.spec.name
        own = [row for row in rows if row.measure == name]
        values = [row.value for row in own]
        macro, micro = float(np.mean(values)), function.of_case(pooled)
        ends, micro_ends = (float("nan"),) * 2, (float("nan"),) * 2
        limit = float(np.mean([row.if_calibrated for row in own]))
        loss = function.spec.loss
        if loss is not None:
            cases: Any = [model.case for model in models.values()]
            losses = [loss.of_rows(case.proba, case.codes) for case in cases]
            shares = 1 / (len(cases) * totals)
            low, high = table.interval(losses, values, shares, level)
            ends = macro + low, macro + high
            shares = np.full(len(cases), 1 / totals.sum())
            low, high = table.interval(losses, [micro] * len(cases), shares, level)
            micro_ends = micro + low, micro + high
        else:
            ends = float(np.mean([r.low for r in own])), float(np.mean([r.high for r in own]))
        found.append(LabelAverage(name, macro, *ends, micro, *micro_ends, limit))
    return found
