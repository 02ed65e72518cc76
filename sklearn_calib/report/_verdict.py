"""The verdict: sentences about one model, each from a test or an interval."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._show import plain
from ..inference import MonteCarloResult, distribution_of_draws
from ..metrics import kernel_calibration_error
from ._evidence import (
    Bin,
    Line,
    Run,
    bins_for_band,
    bins_of,
    line_of,
    outside_of_band,
    proportion_interval,
    smallest_seen,
)

if TYPE_CHECKING:
    from ..summary import CellSample
    from ._advice import Advice
    from ._table import Model, ReportRow

TOPICS = ("calibrated", "size", "direction", "where", "power", "gain", "map")
SIGNIFICANCE = 0.05  # of the one test that decides
BANDWIDTH = 0.2  # of its statistic, the kernel calibration error
_DRAWS = 999
_TESTED_CELLS = 1024
_POWER_CELLS = 512
_TOLERABLE = 0.05  # mean error of predictions that are called calibrated
_TOLERABLE_PART = 0.25  # of the rate of the rarer outcome, where that is less


class Sentence(NamedTuple):
    """One finding.

    Parameters
    ----------
    topic : str
        "calibrated", "size", "direction", "where", "power", "gain" or "map".
    text : str
        Plain English.
    numbers : dict
        What the text rests on, not rounded; shares and errors as fractions of 1.
    """

    topic: str
    text: str
    numbers: dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What a report says about one model, in sentences for whoever has to decide.

    Attributes
    ----------
    calibrated : bool or None
        False: the test rejects calibration at 0.05. True: it does not, and the interval of the mean
        error ends below 5 percentage points (a quarter of the rate of the rarer outcome, where
        that is less). None: there are too few rows to say.
    p_value : float
        Of the one test that decides: the kernel calibration error with bandwidth 0.2, against 999
        draws of labels from the predictions. Exact.
    sentences : list of Sentence
        In the order "calibrated", "size", "direction", "where", "power", "gain", "map". Those about
        which the rows say nothing are left out; "gain" and "map" need `CalibrationReport.advise`.

    Examples
    --------
    >>> from sklearn_calib.report import calibration_report
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 1000)
    >>> verdict = calibration_report(y, proba, n_resamples=50).verdict
    >>> verdict.calibrated, verdict.p_value
    (False, 0.001)
    >>> [sentence.topic for sentence in verdict.sentences]
    ['calibrated', 'size', 'direction', 'where', 'power']
    """

    calibrated: bool | None
    p_value: float
    sentences: list[Sentence] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Numbers and texts, for JSON."""
        return {
            "calibrated": self.calibrated,
            "p_value": self.p_value,
            "sentences": [sentence._asdict() for sentence in self.sentences],
        }


class _Findings(NamedTuple):
    """What the sentences are made of."""

    n_rows: int
    level: float
    event: str
    of_several: bool
    test: MonteCarloResult
    error: "ReportRow"
    rate: float
    rate_ends: tuple[float, float]
    predicted: float
    line: Line | None
    outside: list[Run]
    worst: Bin | None
    seen: float | None
    advice: "Advice | None"

    @property
    def rejected(self) -> bool:
        return self.test.pvalue <= SIGNIFICANCE

    @property
    def tolerable(self) -> float:
        return min(_TOLERABLE, _TOLERABLE_PART * min(self.rate, 1 - self.rate))

    @property
    def calibrated(self) -> bool | None:
        if self.rejected:
            return False
        return True if self.error.high <= self.tolerable else None


def verdict_of(
    model: "Model",
    error: "ReportRow",
    level: float,
    seed: int,
    advice: "Advice | None" = None,
) -> Verdict:
    """The verdict on one model.

    Parameters
    ----------
    model : Model
    error : ReportRow
        Of the expected calibration error.
    level : float
        Of the intervals.
    seed : int
        Of the draws.
    advice : Advice, default=None
    """
    summary = model.summary
    ((whole,), (tested,), (coarse,)) = (
        summary.samples(n) for n in (None, _TESTED_CELLS, _POWER_CELLS)
    )
    test = _test(tested, seed)
    critical = float(np.quantile(test.null_distribution, 1 - SIGNIFICANCE))
    n_bins = bins_for_band(whole)
    weight, events = whole.weight.sum(), whole.weight[:, 1].sum()
    rows = weight**2 / whole.squares.sum()
    rate = float(events / weight)
    ends = proportion_interval(np.array(rate), np.array(rows), level)
    found = _Findings(
        summary.n_samples,
        level,
        f"the class {plain(model.positive, 40)} was true"
        if model.two_classes
        else "the predicted class was right",
        not model.two_classes,
        test,
        error,
        rate,
        (float(ends[0]), float(ends[1])),
        float(whole.weight.sum(axis=1) @ whole.proba[:, 1] / weight),
        line_of(whole),
        *outside_of_band(bins_of(whole, n_bins, level ** (1 / n_bins))),
        smallest_seen(coarse, BANDWIDTH, critical),
        advice,
    )
    parts = (_calibrated, _size, _direction, _where, _power, _gain, _map)
    sentences = [part(found) for part in parts]
    return Verdict(
        found.calibrated, test.pvalue, [sentence for sentence in sentences if sentence is not None]
    )


def _test(sample: "CellSample", seed):
    def statistic(case):
        return kernel_calibration_error.of_case(case, bandwidth=BANDWIDTH)

    null = distribution_of_draws(sample.relabelled, statistic, _DRAWS, seed)
    return MonteCarloResult.of_draws(statistic(sample.case), null, "kernel_calibration_error")


def _points(share):
    """A difference of probabilities in percentage points."""
    points = 100 * share
    return f"{points:.2g}" if points < 0.95 else f"{points:.1f}"


def _percent(share):
    percent = 100 * share
    return f"{percent:.2g} %" if 0 < percent < 0.95 else f"{percent:.1f} %"


def _between(found, ends, show):
    return f"{found.level:.0%} interval {show(ends[0])} to {show(ends[1])}"


def _calibrated(found):
    p, rows = found.test.pvalue, f"{found.n_rows} rows"
    numbers = {"p_value": p, "draws": _DRAWS, "significance": SIGNIFICANCE}
    numbers |= {"test": found.test.name, "bandwidth": BANDWIDTH, "tolerable": found.tolerable}
    if found.rejected:
        more = round(p * (_DRAWS + 1)) - 1
        text = (
            f"The probabilities are not calibrated (p = {p:.3f}): {more or 'none'} of {_DRAWS} "
            "sets of labels drawn from them deviated as much as the true labels."
        )
    elif found.calibrated:
        text = (
            f"No miscalibration is found in {rows} (p = {p:.2f}), and there is little room for it."
        )
    else:
        text = (
            f"{rows} are too few for a verdict: no miscalibration is found (p = {p:.2f}), but "
            "there may be some."
        )
    return Sentence("calibrated", text, numbers)


def _size(found):
    row = found.error
    numbers = {"error": row.value, "low": row.low, "high": row.high, "level": found.level}
    if found.rejected:
        text = (
            f"On average they are off by {_points(row.value)} percentage points "
            f"({_between(found, (row.low, row.high), _points)})"
        )
        worst = found.worst
        if worst is not None:
            text += (
                f"; predictions of {worst.predicted:.2f} come true in {worst.observed:.2f} of the "
                f"cases ({found.level:.0%} interval {worst.observed_low:.2f} to "
                f"{worst.observed_high:.2f}, for all bins at once)"
            )
            numbers["worst"] = worst._asdict()
        return Sentence("size", text + ".", numbers)
    text = (
        f"On average they are off by at most {_points(row.high)} percentage points "
        f"(end of the {found.level:.0%} interval)."
    )
    return Sentence("size", text, numbers)


def _direction(found):
    """Only what the intervals of a rejected model exclude."""
    if not found.rejected:
        return None
    low, high = found.rate_ends
    numbers = {"predicted": found.predicted, "observed": found.rate}
    numbers |= {"observed_low": low, "observed_high": high, "level": found.level}
    said, words = [], []
    if not low <= found.predicted <= high:
        word = "too low" if found.predicted < low else "too high"
        if found.of_several:
            word = "underconfident" if found.predicted < low else "overconfident"
        words.append(word)
        said.append(
            f"They are {word} on the whole: {_percent(found.predicted)} on average, where "
            f"{found.event} in {_percent(found.rate)} of the cases "
            f"({_between(found, found.rate_ends, _percent)})."
        )
    if found.line is not None:
        line, half = found.line, ndtri((1 + found.level) / 2) * found.line.slope_error
        ends = line.slope - half, line.slope + half
        numbers |= {"slope": line.slope, "slope_low": ends[0], "slope_high": ends[1]}
        numbers |= {"intercept": line.intercept}
        if not ends[0] <= 1 <= ends[1]:
            word = "extreme (overconfident)" if ends[1] < 1 else "cautious (underconfident)"
            words.append("overconfident" if ends[1] < 1 else "underconfident")
            between = _between(found, ends, "{:.2f}".format)
            said.append(
                f"They are too {word}: the slope of the log-odds is {line.slope:.2f} ({between}), "
                "1 would be right."
            )
    numbers["words"] = list(dict.fromkeys(words))
    return Sentence("direction", " ".join(said), numbers) if said else None


def _where(found):
    if not found.rejected or not found.outside:
        return None
    parts = [
        f"{run.low:.2f} to {run.high:.2f} ({'too high' if run.too_high else 'too low'})"
        for run in found.outside
    ]
    numbers = {"intervals": [run._asdict() for run in found.outside], "level": found.level}
    return Sentence("where", f"Where they are wrong: predictions of {', '.join(parts)}.", numbers)


def _power(found):
    numbers = {"smallest_error": found.seen, "probability": 0.8}
    if found.seen is None:
        text = f"With {found.n_rows} rows even predictions without any information might pass."
    else:
        text = (
            f"With {found.n_rows} rows the test finds an error of {_points(found.seen)} percentage "
            "points on average, or more, with probability 80 %."
        )
    return Sentence("power", text, numbers)


def _gain(found):
    """What "auto", chosen beforehand, gains; not the best of several."""
    advice = found.advice
    if advice is None:
        return None
    row, given = advice.row("auto"), advice.row("identity")
    half = ndtri((1 + found.level) / 2) * row.standard_error
    ends = row.gain - half, row.gain + half
    numbers = {"loss": given.loss, "recalibrated_loss": row.loss, "gain": row.gain}
    numbers |= {"standard_error": row.standard_error, "low": ends[0], "high": ends[1]}
    numbers |= {"level": found.level, "rows": advice.n_rows}
    measured = (
        f"({_between(found, ends, '{:.4f}'.format)}; standard error {row.standard_error:.4f}, "
        f"{advice.n_rows} rows, each judged by a fit that has not seen it)"
    )
    if ends[0] > 0:
        text = (
            f'Recalibration by "auto" lowers the log loss from {given.loss:.4f} to {row.loss:.4f}, '
            f"by {row.gain:.4f} {measured}."
        )
    elif ends[1] < 0:
        text = f'Recalibration by "auto" raises the log loss, a gain of {row.gain:.4f} {measured}.'
    else:
        text = (
            "These rows do not show that recalibration would help: the log loss would gain "
            f'{row.gain:.4f} by "auto" {measured}.'
        )
    return Sentence("gain", text, numbers)


def _map(found):
    """What "auto" is made of, where it gains anything."""
    gain = _gain(found)
    if gain is None or not gain.numbers["low"] > 0:
        return None
    weights = found.advice.weights
    parts = [f"{name} {weight:.0%}" for name, weight in weights.items() if weight >= 0.005]
    text = f'The map: "auto" is a mixture of {", ".join(parts)}.'
    return Sentence("map", text, {"weights": weights, "best": found.advice.best})
