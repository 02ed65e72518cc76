"""The verdict: sentences about one model, each from a test or an interval."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._kernels._detectable_error import (
    KERNEL_BANDWIDTH,
    SIGNIFICANCE_LEVEL,
    TARGET_POWER,
)
from .._show import make_printable
from ..groups import ALL_ROWS_NAME
from ..metrics import all_metrics
from ._evidence import (
    N_TEST_CELLS,
    N_TEST_DRAWS,
    Evidence,
    collect_evidence,
    count_certain,
    find_wrong_groups,
    run_kernel_test,
)
from ._table import measure_models

# The measure that states the size of the error.
_ERROR_MEASURE = "expected_calibration_error"
_N_POWER_CELLS = 512
# A sentence mentions the number of distinct predictions up to this one.
_MAX_MENTIONED_DISTINCT_VALUES = 20
# Predictions with a smaller mean error are called calibrated.
_TOLERABLE_ERROR = 0.05
# The same as a fraction of the rate of the rarer outcome, if that is less.
_TOLERABLE_RATE_FRACTION = 0.25


class Sentence(NamedTuple):
    """One finding of a verdict, as a sentence with its numbers.

    Parameters
    ----------
    topic : str
        "calibrated", "size", "direction", "where", "certain", "groups", "power",
        "gain", "map" or "action".
    text : str
        Plain English.
    numbers : dict
        What the text rests on, not rounded; shares and errors as fractions of 1.
    """

    topic: str
    text: str
    numbers: dict[str, Any]


class Verdict(str):
    """The verdict on one model: sentences for the reader who has to decide.

    It is a text, the sentences one behind the other, with attributes.

    Attributes
    ----------
    calibrated : bool or None
        False: the test rejects calibration at 0.05. True: it does not, and the interval
        of the mean error ends below 5 percentage points (a quarter of the rate of the
        rarer outcome, if that is less); if a threshold of the score separates the
        outcomes, it ends at 3 / n_rows at least, since resamples hardly differ. None:
        there are too few rows to decide.
    p_value : float
        Of the one test that decides: the kernel calibration error with bandwidth 0.2,
        against 999 draws of labels from the predictions. Exact. With ``groups=``
        against 999 draws of a sign for the residuals of each cluster: approximate, see
        `calibration_test`.
    sentences : list of Sentence
        In the order "calibrated", "size", "direction", "where", "certain", "groups",
        "power", "gain", "map", "action". "certain" is there if predictions of exactly 0
        or 1 are wrong. Those on which the rows are uninformative are left out;
        "gain" and "map" need `CalibrationReport.advise`, "action" (recalibrate,
        retrain, both or neither) needs ``calibration_report(features=)``. "groups"
        names the groups of ``calibration_report(by=...)`` that are not calibrated and
        recommends to repair them alone if no error is found in the other rows;
        `calibrated` and `p_value` are of the whole.
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
        text = " ".join(sentence.text for sentence in sentences)
        verdict = super().__new__(cls, text)
        verdict.calibrated = calibrated
        verdict.p_value = p_value
        verdict.sentences = sentences
        verdict.evidence = evidence
        return verdict

    def __reduce__(self) -> tuple[Any, ...]:
        return Verdict, (self.calibrated, self.p_value, self.sentences, self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and texts, for JSON."""
        evidence = self.evidence
        in_the_large = {key: getattr(evidence, key) for key in Evidence._fields[:4]}
        return {
            "calibrated": self.calibrated,
            "p_value": self.p_value,
            "in_the_large": in_the_large,
            "minimum_detectable": evidence.minimum_detectable,
            "sentences": [sentence._asdict() for sentence in self.sentences],
        }


class _Findings:
    """The numbers and results from which the sentences are written.

    Attributes
    ----------
    rows_text : str
        The number of rows, and of clusters, in words.
    certain : tuple of int
        The number of certain predictions, of wrong ones among them, and of different
        predictions.
    error_interval : tuple of float
        The interval of the mean error, a share; wider if resamples hardly differ.
    """

    def __init__(self, report, name):
        model = self.model = report._models[name]
        self.advice = report.advice.get(name)
        self.groups = report.groups.get(name)
        self.features = report.features.get(name)
        self.rows = f"{model.n_samples} rows"
        if model.n_clusters is not None:
            self.rows += f" in {model.n_clusters} clusters"
        self.level = report.level
        self.error_row = _find_or_compute_error_row(report, name)
        # All cells of the model for its evidence, fewer for the test and for its power.
        cells = model.get_cell_or_cluster_sample()
        tested = model.get_cell_or_cluster_sample(N_TEST_CELLS)
        self.test = run_kernel_test(tested, report._seed)
        items = None if model.predictions is None else model.predictions.items
        self.certain = *count_certain(cells, items), len(cells.proba)
        null = self.test.null_distribution
        critical = float(np.quantile(null, 1 - SIGNIFICANCE_LEVEL))
        inflation = _compute_cluster_inflation(model, tested, self.test)
        coarse = model.get_cell_or_cluster_sample(_N_POWER_CELLS)
        evidence = collect_evidence(cells, coarse, self.level, critical, inflation)
        self.evidence = evidence
        low = self.error_row.low
        high = self.error_row.high
        # Outcomes that a threshold separates do not vary between resamples: the bound of
        # an error rate of 0 widens the interval.
        if evidence.unseen > 0:
            low = max(min(low, self.error_row.value - evidence.unseen), 0.0)
        self.error_interval = low, min(max(high, evidence.unseen), 1.0)
        self.tolerable = _compute_tolerable_error(evidence.observed)
        self.rejected = self.test.pvalue <= SIGNIFICANCE_LEVEL
        # True only if the test could have found an error, and the interval excludes those
        # that matter; None if there are too few rows for either verdict.
        is_detectable = evidence.minimum_detectable is not None
        is_small = is_detectable and self.error_interval[1] < self.tolerable
        self.calibrated = True if is_small else None
        self.wrong_groups = None
        if self.rejected:
            self.calibrated = False
            if self.groups is not None:
                self.wrong_groups = find_wrong_groups(
                    model, self.groups, evidence.line, report._seed
                )


def _compute_tolerable_error(rate):
    return min(_TOLERABLE_ERROR, _TOLERABLE_RATE_FRACTION * min(rate, 1 - rate))


def make_verdict(report: Any, name: str) -> Verdict:
    """Return the verdict on one model of a report."""
    findings = _Findings(report, name)
    parts = (
        _describe_calibration,
        _describe_error_size_or_none,
        _describe_direction_if_rejected,
        _describe_wrong_ranges,
        _describe_wrong_certain_predictions,
        _describe_miscalibrated_groups,
        _describe_power,
        _describe_gain_if_advised,
        _describe_auto_mixture_if_better,
        _make_action_sentence_if_features,
    )
    described = [describe_part(findings) for describe_part in parts]
    # A part that has nothing to add returns None.
    sentences = [sentence for sentence in described if sentence is not None]
    return Verdict(
        findings.calibrated, findings.test.pvalue, sentences, findings.evidence
    )


def _find_or_compute_error_row(report, name):
    """Return the mean error of a model with its interval, from the table if it has one."""
    for row in report.rows:
        is_error = row.model == name and row.measure == _ERROR_MEASURE
        if is_error and not np.isnan(row.high):
            return row
    models = {name: report._models[name]}
    functions = [all_metrics()[_ERROR_MEASURE]]
    (row,) = measure_models(models, functions, report.level, "auto", report._seed)
    return row


def _compute_cluster_inflation(model, sample, test):
    """Return how much clusters enlarge the mean square of the statistic."""
    if model.n_clusters is None:
        return 1.0
    p = sample.proba[:, 1]
    mass = sample.weight.sum()
    # The variance of the total if all rows were independent.
    alone = (sample.squares.sum(axis=1) * p * (1 - p)).sum() / mass**2
    return float(np.mean(test.null_distribution**2) / alone) if alone > 0 else 1.0


def _format_percentage_points(share):
    """Format a difference of probabilities in percentage points."""
    points = 100 * share
    return f"{points:.2g}" if points < 0.95 else f"{points:.1f}"


def _format_percent(share):
    percent = 100 * share
    if 0 < percent < 1e-3:
        return "less than 0.001 %"
    return f"{percent:.2g} %" if 0 < percent < 0.95 else f"{percent:.1f} %"


def _format_probability(p):
    """Format a probability with two decimals, or with more near 0 and 1."""
    if p == 0:
        return "0"
    if 0 < p < 0.1:
        return f"{p:.2g}"
    return f"{p:.4f}" if 0.99 < p < 1 else f"{p:.2f}"


def _write_interval(findings, ends, format_end):
    return f"{100 * findings.level:.0f} % interval {format_end(ends[0])} to {format_end(ends[1])}"


def _describe_calibration(findings):
    """Return the sentence on whether the predictions are calibrated."""
    p = findings.test.pvalue
    rows = findings.rows
    numbers = {"p_value": p, "draws": N_TEST_DRAWS, "significance": SIGNIFICANCE_LEVEL}
    numbers |= {
        "test": findings.test.name,
        "bandwidth": KERNEL_BANDWIDTH,
        "tolerable": findings.tolerable,
    }
    if findings.rejected:
        # p = (1 + number of draws that deviate as much) / (1 + number of draws).
        more = round(p * (N_TEST_DRAWS + 1)) - 1
        draws = "sets of labels drawn from them deviated as much as the true labels."
        if findings.model.n_clusters is not None:
            draws = "sets of residuals with random signs of the clusters deviated as much as the "
            draws += "true ones."
        text = (
            f"The probabilities are not calibrated (p = {p:.3f}): {more or 'none'} of "
            f"{N_TEST_DRAWS} {draws}"
        )
    elif findings.calibrated:
        text = (
            f"No miscalibration is found in {rows} (p = {p:.2f}), "
            "and there is little room for it."
        )
    else:
        text = (
            f"{rows} are too few for a verdict: no miscalibration is found (p = {p:.2f}), but "
            "there may be some."
        )
    return Sentence("calibrated", text, numbers)


def _describe_error_size_or_none(findings):
    """Return the sentence on the mean error, with the bin of the largest one."""
    row = findings.error_row
    low, high = findings.error_interval
    numbers = {"error": row.value, "low": low, "high": high, "level": findings.level}
    if findings.rejected:
        text = (
            f"On average they are off by {_format_percentage_points(row.value)} percentage points "
            f"({_write_interval(findings, (low, high), _format_percentage_points)})"
        )
        worst = findings.evidence.worst
        if worst is not None:
            ends = worst.observed_low, worst.observed_high
            text += (
                f"; predictions of {_format_probability(worst.predicted)} come true in "
                f"{_format_probability(worst.observed)} of the cases "
                f"({_write_interval(findings, ends, _format_probability)}, for all bins at once)"
            )
            numbers["worst"] = worst._asdict()
        return Sentence("size", text + ".", numbers)
    # If certain predictions are all right, all resamples are equal.
    if row.low == row.high:
        return None
    text = (
        f"On average they are off by at most {_format_percentage_points(high)} percentage points "
        f"(end of the {100 * findings.level:.0f} % interval)."
    )
    return Sentence("size", text, numbers)


def _describe_direction_if_rejected(findings):
    """Describe only what the intervals of a rejected model exclude."""
    if not findings.rejected:
        return None
    parts = [
        _describe_mean_direction(findings),
        _make_slope_direction_parts(findings),
    ]
    parts = [sentence_part for sentence_part in parts if sentence_part is not None]
    if not parts:
        return None
    words, texts, numbers_of_parts = zip(*parts, strict=True)
    # Both parts may use the same word.
    numbers = {"words": list(dict.fromkeys(words)), "level": findings.level}
    for more in numbers_of_parts:
        numbers |= more
    return Sentence("direction", " ".join(texts), numbers)


def _describe_mean_direction(findings) -> tuple[str, str, dict[str, float]] | None:
    """Return (word, text, numbers) of the mean prediction."""
    evidence = findings.evidence
    ends = evidence.observed_low, evidence.observed_high
    if ends[0] <= evidence.predicted <= ends[1]:
        return None
    low = evidence.predicted < ends[0]
    if findings.model.two_classes:
        word = "too low" if low else "too high"
        event = f"the class {make_printable(findings.model.positive, 40)} was true"
    else:
        word = "underconfident" if low else "overconfident"
        event = "the predicted class was right"
    text = (
        f"They are {word} on the whole: {_format_percent(evidence.predicted)} on average, where "
        f"{event} in {_format_percent(evidence.observed)} of the cases "
        f"({_write_interval(findings, ends, _format_percent)})."
    )
    numbers = {"predicted": evidence.predicted, "observed": evidence.observed}
    return word, text, numbers | {"observed_low": ends[0], "observed_high": ends[1]}


def _make_slope_direction_parts(findings):
    """Return (word, text, numbers) of the slope of the log-odds."""
    line = findings.evidence.line
    if line is None:
        return None
    low, high = line.slope_interval(findings.level)
    if low <= 1 <= high:
        return None
    # `fit_event_line` leaves certain predictions out if one of them is wrong.
    they = "Those between 0 and 1" if findings.certain[1] else "They"
    word = "overconfident"
    sentence = f"{they} are too extreme (overconfident)"
    if high < 0:
        word = "backwards"
        sentence = f"{they} run backwards, higher ones come true less often"
    elif low > 1:
        word = "underconfident"
        sentence = f"{they} are too cautious (underconfident)"
    text = (
        f"{sentence}: the slope of the log-odds is {line.slope:.2f} "
        f"({_write_interval(findings, (low, high), '{:.2f}'.format)}), 1 would be right."
    )
    if word == "backwards" and findings.model.two_classes:
        text += " Perhaps they are those of the other class: then name that as the positive one."
    return word, text, {"slope": line.slope, "slope_low": low, "slope_high": high}


def _describe_wrong_ranges(findings):
    """Return the sentence on the ranges of predictions that are wrong."""
    if not findings.rejected or not findings.evidence.runs:
        return None
    parts = []
    for run in findings.evidence.runs:
        # Two ends that look the same are written once.
        ends = dict.fromkeys(
            (_format_probability(run.low), _format_probability(run.high))
        )
        parts.append(
            f"{' to '.join(ends)} ({'too high' if run.too_high else 'too low'})"
        )
    numbers = {
        "intervals": [run._asdict() for run in findings.evidence.runs],
        "level": findings.level,
    }
    return Sentence(
        "where", f"Where they are wrong: predictions of {', '.join(parts)}.", numbers
    )


def _describe_wrong_certain_predictions(findings):
    """Describe certain predictions that are wrong, and ties."""
    rows, wrong, values = findings.certain
    if not wrong:
        return None
    text = (
        f"{rows} of the predictions are exactly 0 or 1, and {wrong} of these are wrong: the log "
        "loss counts each wrong one as 36 nats, so judge by the Brier loss and the bins; a slope "
        "leaves the certain ones out."
    )
    if values <= _MAX_MENTIONED_DISTINCT_VALUES:
        text += f" There are only {values} different predictions, and ties cannot be told apart."
    return Sentence(
        "certain", text, {"certain": rows, "wrong": wrong, "values": values}
    )


def _describe_miscalibrated_groups(findings):
    """Describe miscalibrated groups, and whether to repair these alone."""
    if findings.groups is None:
        return None
    wrong = [row for row in findings.groups.rejected if row.group != ALL_ROWS_NAME]
    if not wrong:
        return None
    local = findings.wrong_groups
    worst = wrong[0]
    numbers = {"rejected": len(wrong), "worst": worst._asdict(), "repair": []}
    number = "one group is" if len(wrong) == 1 else f"{len(wrong)} groups are"
    text = f"{number.capitalize()} not calibrated; the worst is"
    advice = "Other rows are wrong, too: repair all of them."
    if not findings.rejected:
        text = f"But {number} not calibrated; the worst is"
        advice = "Repair such groups one by one, for the rows as a whole are right."
    elif local is not None:
        worst = local.groups[0]
        text = "The error is in"
        others = local.groups[1:]
        for row in others:
            text += f" {make_printable(row.group, 100)} and"
        advice = (
            f"In the other {local.n_others} rows no miscalibration is found "
            f"(p = {local.p_others:.2f}): repair {'these groups' if others else 'this group'} "
            "and leave the other rows as they are."
        )
        numbers["repair"] = [row.group for row in local.groups]
        numbers |= {"other_rows": local.n_others, "p_of_other_rows": local.p_others}
    text += f" {_describe_group(worst, findings.groups.level)}. {advice}"
    return Sentence("groups", text, numbers)


def _describe_group(row, level):
    """Return words on one group: the ratio of events, or else the slope."""
    p = f"adjusted p = {row.adjusted_p_value:.3f})"
    name = make_printable(row.group, 100)
    if not np.isfinite(row.observed_over_expected):
        return f"{name} ({p}"
    finding = f"{row.observed_over_expected:.2f} times as many events as predicted"
    low = row.ratio_low
    high = row.ratio_high
    ratio_may_be_right = low <= 1 <= high
    slope_may_be_right = row.slope_low <= 1 <= row.slope_high
    # If the number of events may be right, the error is in the slope.
    if ratio_may_be_right and not slope_may_be_right:
        finding = f"the slope of the log-odds is {row.slope:.2f} where 1 would be right"
        low = row.slope_low
        high = row.slope_high
    elif ratio_may_be_right:
        return f"{name}, {row.n_rows} rows ({p}"
    return (
        f"{name}, {row.n_rows} rows: {finding} ({100 * level:.0f} % interval {low:.2f} to "
        f"{high:.2f}, for all groups at once; {p}"
    )


def _describe_power(findings):
    """Return the sentence on the smallest error that the test would find."""
    smallest = findings.evidence.minimum_detectable
    blind = findings.evidence.blind
    numbers = {"smallest_error": smallest, "probability": TARGET_POWER, "blind": blind}
    if smallest is None:
        text = f"With {findings.rows} like these no error could be seen."
    else:
        points = _format_percentage_points(smallest)
        text = (
            f"With {findings.rows} the test finds an error of {points} percentage "
            "points on average, or more, with probability 80 %"
        )
        if blind:
            text += (
                "; scores without any information might pass, if their mean is right"
            )
        text += "."
    return Sentence("power", text, numbers)


def _describe_gain_if_advised(findings):
    """Describe what "auto" gains, which was chosen beforehand.

    The best of several methods would look better than it is on the rows that chose it.
    """
    advice = findings.advice
    if advice is None:
        return None
    row = advice.row("auto")
    unchanged = advice.row("identity")
    half = ndtri((1 + findings.level) / 2) * row.standard_error
    ends = row.gain - half, row.gain + half
    numbers = {"loss": unchanged.loss, "recalibrated_loss": row.loss, "gain": row.gain}
    numbers |= {"standard_error": row.standard_error, "low": ends[0], "high": ends[1]}
    numbers |= {"level": findings.level, "rows": advice.n_rows}
    measured = (
        f"({_write_interval(findings, ends, '{:.4f}'.format)}; "
        f"standard error {row.standard_error:.4f}, {advice.n_rows} {advice._unit}, "
        "each judged by a fit that has not seen it)"
    )
    if ends[0] > 0:
        text = (
            f'Recalibration by "auto" lowers the log loss from {unchanged.loss:.4f} to '
            f"{row.loss:.4f}, by {row.gain:.4f} {measured}."
        )
    elif ends[1] < 0:
        text = f'Recalibration by "auto" raises the log loss, a gain of {row.gain:.4f} {measured}.'
    else:
        text = (
            "These rows do not show that recalibration would help: the log loss would gain "
            f'{row.gain:.4f} by "auto" {measured}.'
        )
    if findings.wrong_groups is not None:
        text += " This is one map for all rows, which also moves those that are right."
    return Sentence("gain", text, numbers)


def _make_action_sentence_if_features(findings):
    """Return whether to recalibrate, retrain, both or neither."""
    if findings.features is None:
        return None
    return Sentence(
        "action",
        findings.features.advice(findings.level),
        findings.features.to_dict(findings.level),
    )


def _describe_auto_mixture_if_better(findings):
    """Describe what "auto" is made of, if it gains anything."""
    gain = _describe_gain_if_advised(findings)
    if gain is None or not gain.numbers["low"] > 0 or findings.wrong_groups is not None:
        return None
    weights = findings.advice.weights
    # A smaller weight would be written as 0 %.
    parts = [
        f"{name.replace('_', ' ')} {100 * weight:.0f} %"
        for name, weight in weights.items()
        if weight >= 0.005
    ]
    *others, last = parts
    text = f'The repair "auto" is the method {last} alone.'
    if others:
        text = (
            f'The repair "auto" averages the predictions of {len(parts)} methods, weighted '
            f"{', '.join(others)} and {last}."
        )
    return Sentence("map", text, {"weights": weights, "best": findings.advice.best})
