"""The verdict: sentences about one model, each from a test or an interval."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._kernels._detectable_error import KERNEL_BANDWIDTH, SIGNIFICANCE_LEVEL, TARGET_POWER
from .._show import plain
from ..groups import WHOLE
from ..inference import MonteCarloResult
from ..metrics import all_metrics
from ._evidence import Evidence, evidence_of, of_certain
from ._table import report_rows

_ERROR = "expected_calibration_error"  # the size of the error
_DRAWS = 999
_TESTED_CELLS = 1024
_POWER_CELLS = 512
_FEW_VALUES = 20  # of predictions that are named in a sentence
_TOLERABLE = 0.05  # mean error of predictions that are called calibrated
_TOLERABLE_PART = 0.25  # of the rate of the rarer outcome, where that is less


class Sentence(NamedTuple):
    """One finding of a verdict, as a sentence with its numbers.

    Parameters
    ----------
    topic : str
        "calibrated", "size", "direction", "where", "certain", "groups", "power", "gain", "map" or
        "action".
    text : str
        Plain English.
    numbers : dict
        What the text rests on, not rounded; shares and errors as fractions of 1.
    """

    topic: str
    text: str
    numbers: dict[str, Any]


class Verdict(str):
    """What a report says about one model, in sentences for whoever has to decide.

    It is a text, the sentences one behind the other, with attributes.

    Attributes
    ----------
    calibrated : bool or None
        False: the test rejects calibration at 0.05. True: it does not, and the interval of the mean
        error ends below 5 percentage points (a quarter of the rate of the rarer outcome, where
        that is less); where a threshold of the score separates the outcomes, it ends at 3 / n_rows
        at least, since resamples hardly differ. None: there are too few rows to say.
    p_value : float
        Of the one test that decides: the kernel calibration error with bandwidth 0.2, against 999
        draws of labels from the predictions. Exact. With ``groups=`` against 999 draws of a sign
        for the residuals of each cluster: approximate, see `calibration_test`.
    sentences : list of Sentence
        In the order "calibrated", "size", "direction", "where", "certain", "groups", "power",
        "gain", "map", "action". "certain" is there where predictions of exactly 0 or 1 are wrong.
        Those about which the rows say nothing are left out; "gain" and "map" need
        `CalibrationReport.advise`, "action" (recalibrate, retrain, both or neither) needs
        ``calibration_report(features=)``. "groups" is there where the rows as a whole pass and a
        group of ``calibration_report(by=...)`` does not; `calibrated` and `p_value` are of the
        whole.
    evidence : Evidence
        The numbers, whether or not a sentence came of them.

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
    sentences: list[Sentence]
    evidence: Evidence

    def __new__(
        cls,
        calibrated: bool | None,
        p_value: float,
        sentences: list[Sentence],
        evidence: Evidence,
    ) -> "Verdict":
        made = super().__new__(cls, " ".join(sentence.text for sentence in sentences))
        made.calibrated, made.p_value = calibrated, p_value
        made.sentences, made.evidence = sentences, evidence
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Verdict, (self.calibrated, self.p_value, self.sentences, self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Numbers and texts, for JSON."""
        of = self.evidence
        return {
            "calibrated": self.calibrated,
            "p_value": self.p_value,
            "in_the_large": {key: getattr(of, key) for key in Evidence._fields[:4]},
            "smallest_seen": of.smallest_seen,
            "sentences": [sentence._asdict() for sentence in self.sentences],
        }


class _Findings:
    """What the sentences are made of.

    Attributes
    ----------
    rows : str
        What the verdict rests on, in words.
    certain : tuple of int
        Rows that are predicted with certainty, wrong ones, and different predictions.
    ends : tuple of float
        Of the interval of the mean error, a share; wider where resamples hardly differ.
    """

    def __init__(self, report, name):
        model = self.model = report._models[name]
        self.advice, self.groups, self.features = (
            known.get(name) for known in (report.advice, report.groups, report.features)
        )
        n = model.n_clusters
        self.rows = f"{model.n_samples} rows" + ("" if n is None else f" in {n} clusters")
        self.level, self.error = report.level, _error_of(report, name)
        whole, tested = model.cells(), model.cells(_TESTED_CELLS)
        self.test = _test(tested, report._seed)
        items = None if model.predictions is None else model.predictions.items
        self.certain = *of_certain(whole, items), len(whole.proba)
        critical = float(np.quantile(self.test.null_distribution, 1 - SIGNIFICANCE_LEVEL))
        inflation = _inflation(model, tested, self.test)
        coarse = model.cells(_POWER_CELLS)
        of = self.evidence = evidence_of(whole, coarse, self.level, critical, inflation)
        low, high = self.error.low, self.error.high
        if of.unseen > 0:
            low = max(min(low, self.error.value - of.unseen), 0.0)
        self.ends = low, min(max(high, of.unseen), 1.0)
        self.tolerable = _tolerable(of.observed)
        self.rejected = self.test.pvalue <= SIGNIFICANCE_LEVEL
        known = of.smallest_seen is not None  # or nothing could have been seen
        self.calibrated = True if known and self.ends[1] < self.tolerable else None
        if self.rejected:
            self.calibrated = False


def _tolerable(rate):
    return min(_TOLERABLE, _TOLERABLE_PART * min(rate, 1 - rate))


def verdict_of(report: Any, name: str) -> Verdict:
    """The verdict on one model of a report."""
    findings = _Findings(report, name)
    parts = _calibrated, _size, _direction, _where, _certain, _groups, _power, _gain, _map, _action
    said = [sentence for part in parts if (sentence := part(findings)) is not None]
    return Verdict(findings.calibrated, findings.test.pvalue, said, findings.evidence)


def _error_of(report, name):
    """The mean error of a model with its interval, from the table where that has one."""
    for row in report.rows:
        if row.model == name and row.measure == _ERROR and not np.isnan(row.high):
            return row
    models, functions = {name: report._models[name]}, [all_metrics()[_ERROR]]
    (row,) = report_rows(models, functions, report.level, "auto", report._seed)
    return row


def _inflation(model, sample, test):
    """The mean square of the statistic over that of independent rows, where there are clusters."""
    if model.n_clusters is None:
        return 1.0
    p, mass = sample.proba[:, 1], sample.weight.sum()
    alone = (sample.squares.sum(axis=1) * p * (1 - p)).sum() / mass**2
    return float(np.mean(test.null_distribution**2) / alone) if alone > 0 else 1.0


def _test(sample, seed):
    """`calibration_test` by the kernel calibration error, all draws at once."""
    score, mass = sample.proba[:, 1], sample.weight.sum(axis=1)
    kernel = np.exp(-np.abs(score[:, None] - score) / KERNEL_BANDWIDTH)
    drawn = sample.events(_DRAWS, np.random.default_rng(seed))
    residual = np.vstack([sample.weight[:, 1], drawn]) - mass * score
    squares = np.einsum("ij,ij->i", residual @ kernel, residual)
    observed, *null = np.minimum(np.sqrt(np.maximum(squares, 0.0)) / mass.sum(), 1.0)
    return MonteCarloResult.of_draws(observed, np.array(null), "kernel_calibration_error")


def _points(share):
    """A difference of probabilities in percentage points."""
    points = 100 * share
    return f"{points:.2g}" if points < 0.95 else f"{points:.1f}"


def _percent(share):
    percent = 100 * share
    if 0 < percent < 1e-3:
        return "less than 0.001 %"
    return f"{percent:.2g} %" if 0 < percent < 0.95 else f"{percent:.1f} %"


def _probability(p):
    """Two decimals, and more where they say nothing."""
    if 0 < p < 0.1:
        return f"{p:.2g}"
    return f"{p:.4f}" if 0.99 < p < 1 else f"{p:.2f}"


def _between(findings, ends, show):
    return f"{findings.level:.0%} interval {show(ends[0])} to {show(ends[1])}"


def _calibrated(findings):
    p, rows = findings.test.pvalue, findings.rows
    numbers = {"p_value": p, "draws": _DRAWS, "significance": SIGNIFICANCE_LEVEL}
    numbers |= {
        "test": findings.test.name,
        "bandwidth": KERNEL_BANDWIDTH,
        "tolerable": findings.tolerable,
    }
    if findings.rejected:
        more = round(p * (_DRAWS + 1)) - 1
        text = f"The probabilities are not calibrated (p = {p:.3f}): {more or 'none'} of {_DRAWS} "
        text += (
            "sets of residuals with random signs of the clusters deviated as much as the true ones."
            if findings.model.n_clusters is not None
            else "sets of labels drawn from them deviated as much as the true labels."
        )
    elif findings.calibrated:
        text = (
            f"No miscalibration is found in {rows} (p = {p:.2f}), and there is little room for it."
        )
    else:
        text = (
            f"{rows} are too few for a verdict: no miscalibration is found (p = {p:.2f}), but "
            "there may be some."
        )
    return Sentence("calibrated", text, numbers)


def _size(findings):
    row, (low, high) = findings.error, findings.ends
    numbers = {"error": row.value, "low": low, "high": high, "level": findings.level}
    if findings.rejected:
        text = (
            f"On average they are off by {_points(row.value)} percentage points "
            f"({_between(findings, (low, high), _points)})"
        )
        worst = findings.evidence.worst
        if worst is not None:
            ends = worst.observed_low, worst.observed_high
            text += (
                f"; predictions of {_probability(worst.predicted)} come true in "
                f"{_probability(worst.observed)} of the cases "
                f"({_between(findings, ends, _probability)}, for all bins at once)"
            )
            numbers["worst"] = worst._asdict()
        return Sentence("size", text + ".", numbers)
    if row.low == row.high:  # certain predictions that are all right: no resample differs
        return None
    text = (
        f"On average they are off by at most {_points(high)} percentage points "
        f"(end of the {findings.level:.0%} interval)."
    )
    return Sentence("size", text, numbers)


def _direction(findings):
    """Only what the intervals of a rejected model exclude."""
    if not findings.rejected:
        return None
    parts = [part for part in (_on_the_whole(findings), _of_slope(findings)) if part is not None]
    if not parts:
        return None
    numbers = {"words": list(dict.fromkeys(word for word, *_ in parts)), "level": findings.level}
    for *_, more in parts:
        numbers |= more
    return Sentence("direction", " ".join(text for _, text, _ in parts), numbers)


def _on_the_whole(findings):
    """(word, text, numbers) of the mean prediction."""
    of = findings.evidence
    ends = of.observed_low, of.observed_high
    if ends[0] <= of.predicted <= ends[1]:
        return None
    low = of.predicted < ends[0]
    if findings.model.two_classes:
        word = "too low" if low else "too high"
        event = f"the class {plain(findings.model.positive, 40)} was true"
    else:
        word = "underconfident" if low else "overconfident"
        event = "the predicted class was right"
    text = (
        f"They are {word} on the whole: {_percent(of.predicted)} on average, where {event} "
        f"in {_percent(of.observed)} of the cases ({_between(findings, ends, _percent)})."
    )
    numbers = {"predicted": of.predicted, "observed": of.observed}
    return word, text, numbers | {"observed_low": ends[0], "observed_high": ends[1]}


def _of_slope(findings):
    """(word, text, numbers) of the slope of the log-odds."""
    line = findings.evidence.line
    if line is None:
        return None
    low, high = line.slope_interval(findings.level)
    if low <= 1 <= high:
        return None
    word, said = "overconfident", "They are too extreme (overconfident)"
    if high < 0:
        word, said = "backwards", "They run backwards, higher ones come true less often"
    elif low > 1:
        word, said = "underconfident", "They are too cautious (underconfident)"
    text = (
        f"{said}: the slope of the log-odds is {line.slope:.2f} "
        f"({_between(findings, (low, high), '{:.2f}'.format)}), 1 would be right."
    )
    if word == "backwards" and findings.model.two_classes:
        text += " Perhaps they are those of the other class: then name that as the positive one."
    return word, text, {"slope": line.slope, "slope_low": low, "slope_high": high}


def _where(findings):
    if not findings.rejected or not findings.evidence.runs:
        return None
    parts = []
    for run in findings.evidence.runs:
        ends = dict.fromkeys((_probability(run.low), _probability(run.high)))
        parts.append(f"{' to '.join(ends)} ({'too high' if run.too_high else 'too low'})")
    numbers = {
        "intervals": [run._asdict() for run in findings.evidence.runs],
        "level": findings.level,
    }
    return Sentence("where", f"Where they are wrong: predictions of {', '.join(parts)}.", numbers)


def _certain(findings):
    """Certain predictions that are wrong, and ties: what the log loss and a slope make of them."""
    rows, wrong, values = findings.certain
    if not wrong:
        return None
    text = (
        f"{rows} of the predictions are exactly 0 or 1, and {wrong} of these are wrong: the log "
        "loss counts each wrong one as 36 nats, so judge by the Brier loss and the bins; a slope "
        "leaves the certain ones out."
    )
    if values <= _FEW_VALUES:
        text += f" There are only {values} different predictions, and ties cannot be told apart."
    return Sentence("certain", text, {"certain": rows, "wrong": wrong, "values": values})


def _groups(findings):
    """That the whole passes and a group does not."""
    if findings.rejected or findings.groups is None:
        return None
    wrong = [row for row in findings.groups.rejected if row.group != WHOLE]
    if not wrong:
        return None
    worst, level = wrong[0], findings.groups.level
    number = "one group is" if len(wrong) == 1 else f"{len(wrong)} groups are"
    text = f"But {number} not calibrated; the worst is {plain(worst.group, 100)}"
    p = f"adjusted p = {worst.adjusted_p_value:.3f})."
    if np.isfinite(worst.observed_over_expected):
        text += (
            f", {worst.n_rows} rows: {worst.observed_over_expected:.2f} times as many events as "
            f"predicted ({level:.0%} interval {worst.ratio_low:.2f} to {worst.ratio_high:.2f}, for "
            f"all groups at once; {p}"
        )
    else:
        text += f" ({p}"
    return Sentence("groups", text, {"rejected": len(wrong), "worst": worst._asdict()})


def _power(findings):
    seen, blind = findings.evidence.smallest_seen, findings.evidence.blind
    numbers = {"smallest_error": seen, "probability": TARGET_POWER, "blind": blind}
    if seen is None:
        text = f"With {findings.rows} like these no error could be seen."
    else:
        text = (
            f"With {findings.rows} the test finds an error of {_points(seen)} percentage "
            "points on average, or more, with probability 80 %"
        )
        text += "; scores without any information might pass, if their mean is right" * blind + "."
    return Sentence("power", text, numbers)


def _gain(findings):
    """What "auto", chosen beforehand, gains; not the best of several."""
    advice = findings.advice
    if advice is None:
        return None
    row, given = advice.row("auto"), advice.row("identity")
    half = ndtri((1 + findings.level) / 2) * row.standard_error
    ends = row.gain - half, row.gain + half
    numbers = {"loss": given.loss, "recalibrated_loss": row.loss, "gain": row.gain}
    numbers |= {"standard_error": row.standard_error, "low": ends[0], "high": ends[1]}
    numbers |= {"level": findings.level, "rows": advice.n_rows}
    measured = (
        f"({_between(findings, ends, '{:.4f}'.format)}; standard error {row.standard_error:.4f}, "
        f"{advice.n_rows} {advice._unit}, each judged by a fit that has not seen it)"
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


def _action(findings):
    """Recalibrate, retrain, both or neither."""
    if findings.features is None:
        return None
    return Sentence(
        "action",
        findings.features.advice(findings.level),
        findings.features.to_dict(findings.level),
    )


def _map(findings):
    """What "auto" is made of, where it gains anything."""
    gain = _gain(findings)
    if gain is None or not gain.numbers["low"] > 0:
        return None
    weights = findings.advice.weights
    parts = [f"{name} {weight:.0%}" for name, weight in weights.items() if weight >= 0.005]
    text = f'The map: "auto" is a mixture of {", ".join(parts)}.'
    return Sentence("map", text, {"weights": weights, "best": findings.advice.best})
