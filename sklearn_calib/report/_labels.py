"""Many labels per row: the test, the intervals and the averages of a report on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from .._kernels._seen_errors import SIGNIFICANCE
from .._kernels._skewed_ends import skewed_ends
from .._kernels._tilted_draws import tail_of_range
from .._simplex import log_odds, log_proba
from .._typing import FloatArray
from ..groups import GroupRow, audit_case, audit_summaries

if TYPE_CHECKING:
    from ..metrics import Case, Measure
    from ._models import ModelOfRows
    from ._table import ReportRow

_DRAWS = 999
_EXACT_ROWS = 2048  # of more rows the test takes so many cells
_CELLS = 256  # where it takes other draws
_IN_DOUBT = 0.005  # p-values up to that are worth other draws
_BOUND_SHARE = 0.05  # of the level of a label: for the bound, the rest for the draws
_DRAWS_OF_LEVEL = 2  # draws decide alone where they resolve SIGNIFICANCE over that
_LARGEST_STEP = 60.0  # of the exponent of the bound


class LabelAverage(NamedTuple):
    """One measure over all labels.

    Parameters
    ----------
    measure : str
    macro : float
        The mean over labels.
    macro_low, macro_high : float
        Its interval; of a loss by the variance and the skewness of its rows, each of which counts
        with all its labels; of another measure the means of the ends of the labels' intervals,
        which are wide enough however labels depend on each other.
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


def audit_labels(models: "dict[str, ModelOfRows]", level: float, seed: int) -> list[GroupRow]:
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
    """One label, tested by a bound and by draws; by tilted ones where these cannot decide."""
    seeds = rng.integers(2**63, size=2)
    row = _drawn(model, level, _DRAWS, seeds[0], _EXACT_ROWS)
    bound = chernoff_bound(model.case) / _BOUND_SHARE
    enough = SIGNIFICANCE / _DRAWS_OF_LEVEL / n_labels  # of this label, for its adjusted p-value
    p = row.p_value
    if (1 + _DRAWS) * enough < 1 and bound > enough and p <= _IN_DOUBT:
        p = tail_of_range(*_path(model), _DRAWS, np.random.default_rng(seeds[1]))
    return row._replace(p_value=min(p / (1 - _BOUND_SHARE), bound, 1.0))


def _path(model):
    """Scores in increasing order, rows, those with the label, and weights of one row."""
    case = model.case
    weight = case.weight
    if len(case.codes) <= _EXACT_ROWS or (weight != weight[0]).any():
        order = np.argsort(case.second, kind="stable")
        hits = (case.codes[order] == 1).astype(np.int64)
        return case.second[order], np.ones(len(order), np.int64), hits, weight[order]
    (sample,) = model.summary.samples(_CELLS)
    order = np.argsort(sample.proba[:, 1], kind="stable")
    counts = sample.counts[order].astype(np.int64)
    return sample.proba[order, 1], counts.sum(axis=1), counts[:, 1], np.ones(len(counts))


def _drawn(model, level, n_resamples, seed, most):
    """The audit of all rows of a label as one group."""
    how: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "random_state": int(seed)}
    case = model.case
    if len(case.codes) <= most:
        return audit_case(case, [np.ones(len(case.codes), dtype=bool)], min_rows=1, **how).rows[0]
    return audit_summaries({"all": model.summary}, "rows", most, min_rows=1, **how).rows[0]


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
        self, losses: "Sequence[LabelLoss]", shares: FloatArray, level: float
    ) -> tuple[float, float]:
        """Ends for a mean of losses, less the mean; a row counts once, with all of its labels.

        Parameters
        ----------
        losses : list of LabelLoss
            Of each label.
        shares : ndarray of shape (n_labels,)
            What a unit of weight of each label counts.
        level : float
        """
        moved = np.zeros(len(self.weight))
        second = third = 0.0
        for label, loss in enumerate(losses):
            rows = self.rows(label)
            counted = shares[label] * self.weight[rows]
            moved[rows] += counted * (loss.of_rows - loss.mean)
            either = counted[:, None] * (loss.of_labels - loss.expected)
            second += float((loss.proba * either**2).sum())
            third += float((loss.proba * either**3).sum())
        kept = moved[self.known.any(axis=1) & (self.weight > 0)]
        return skewed_ends(kept, third / second if second > 0 else 0.0, level)


class LabelLoss(NamedTuple):
    """A loss of the rows of a label: of the true labels, and of either."""

    of_rows: FloatArray  # of shape (n_known,)
    of_labels: FloatArray  # of shape (n_known, 2)
    proba: FloatArray  # of shape (n_known, 2)
    mean: float  # what the losses are compared with
    expected: float  # the mean that the probabilities make expect


def averages_of(
    functions: "Sequence[Measure]",
    rows: "Sequence[ReportRow]",
    models: "dict[str, ModelOfRows]",
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
            cases = [model.case for model in models.values()]
            losses = [_label_loss(loss, c, v) for c, v in zip(cases, values, strict=True)]
            low, high = table.interval(losses, 1 / (len(cases) * totals), level)
            ends = macro + low, macro + high
            shares = np.full(len(cases), 1 / totals.sum())
            moved = [one._replace(mean=micro) for one in losses]
            low, high = table.interval(moved, shares, level)
            micro_ends = micro + low, micro + high
        else:
            ends = float(np.mean([r.low for r in own])), float(np.mean([r.high for r in own]))
        found.append(LabelAverage(name, macro, *ends, micro, *micro_ends, limit))
    return found


def _label_loss(loss, case, mean):
    """A loss of a label, whose mean over the rows is known."""
    either, proba = loss.of_labels(case.proba), np.asarray(case.proba)
    expected = case.mean((proba * either).sum(axis=1))
    return LabelLoss(loss.of_rows(case.proba, case.codes), either, proba, mean, expected)
