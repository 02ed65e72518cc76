"""Which scores get a calibrated probability of at least a target: the inverse of a map."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._argument_checks import check_choice, is_real_number
from .._kernels._float_order import decode_floats, find_level_crossings
from .._kernels._probability_floor import clip_to_floor
from .._show import RenderableMixin, Section, Table
from .._typing import AnyArray, FloatArray
from .._validation import read_proba
from ..exceptions import invalid_input
from ..maps import CalibrationMap, Ranges, Rows

ScoreKind = Literal["proba", "logits"]
# The range of the scores that `canonical_proba` accepts.
_SCORE_RANGE_BY_INPUT = {"proba": (0.0, 1.0), "logits": (-1e150, 1e150)}
_NOTE_BY_INPUT = {
    "proba": "Scores are probabilities before recalibration.",
    "logits": "Scores are log-odds before recalibration.",
}
_DTYPE_NAMES = ("float64", "float32")


@dataclass(frozen=True)
class Threshold(RenderableMixin):
    """The result of `Recalibrator.threshold`: which scores reach a calibrated probability.

    ``print(threshold)`` shows the rule and the range of the map.

    Attributes
    ----------
    target : float
        A calibrated probability of the second class.
    score : float or None
        The threshold on the score, if it is a single number: see `side`. None if the
        target is outside the range of the map, or if several intervals of scores reach
        it.
    side : {">=", "<=", ""}
        The calibrated probability is at least `target` if and only if ``score >=
        threshold.score``; "<=" of maps that fall. Empty if `score` is None.
    intervals : tuple of (float, float)
        All scores that reach the target, as intervals with both ends, in increasing
        order. None of them for a target above the range; one of all scores for a target
        below it.
    range : (float, float)
        The smallest and the largest value of the map over all scores.
    input : {"proba", "logits"}
        What scores are: probabilities of the second class, or log-odds.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import HistogramBinning
    >>> fitted = HistogramBinning(2).fit([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1])
    >>> threshold = fitted.threshold(0.5)
    >>> threshold.side, round(threshold.score, 6)
    ('>=', 0.45)
    >>> print(fitted.threshold(0.9))
    p >= 0.9: no score (the map gives 0.132 to 0.836)
    <BLANKLINE>
    Scores are probabilities before recalibration.
    """

    target: float
    score: float | None
    side: str
    intervals: tuple[tuple[float, float], ...]
    range: tuple[float, float]
    input: str

    @property
    def rule(self) -> str:
        """Return the condition on scores that reach the target, such as ``score >= 0.0143``."""
        if self.score is not None:
            return f"score {self.side} {self.score!r}"
        if not self.intervals or self.target < self.range[0]:
            lowest, highest = self.range
            which = "every" if self.intervals else "no"
            return f"{which} score (the map gives {lowest:.3g} to {highest:.3g})"
        return " or ".join(map(self._format_range, self.intervals))

    def _format_range(self, ends):
        smallest, largest = _SCORE_RANGE_BY_INPUT[self.input]
        low, high = ends
        if low == high:
            return f"score = {low!r}"
        if low == smallest:
            return f"score <= {high!r}"
        if high == largest:
            return f"{low!r} <= score"
        return f"{low!r} <= score <= {high!r}"

    def to_dict(self) -> dict[str, Any]:
        """Return the threshold as a dict of numbers, texts and lists."""
        return vars(self) | {
            "intervals": [list(ends) for ends in self.intervals],
            "range": list(self.range),
        }

    def _make_sections(self):
        rule = f"p >= {self.target:.6g}: {self.rule}"
        return [Section(sentences=[rule], notes=[_NOTE_BY_INPUT[self.input]])]


def make_thresholds_section(thresholds: Sequence[Threshold]) -> Section:
    """Build the table of thresholds for reports and the command line."""
    rows = [(f"{threshold.target:.6g}", threshold.rule) for threshold in thresholds]
    sentence = (
        f"{_NOTE_BY_INPUT[thresholds[0].input]} Each rule holds if and only if the calibrated "
        "probability is at least the target."
    )
    return Section(
        tables=[Table(("target", "rule"), rows, "", "names unbroken")],
        notes=[sentence],
    )


def find_threshold_or_threshold_list(
    compute_second_proba: Callable[[Any], FloatArray],
    target: Any,
    *,
    input: str,
    dtype: str,
    floor: float | None,
    turning_map: Callable[[], CalibrationMap | None],
) -> Any:
    """Compute `Recalibrator.threshold` of a map for two classes.

    Parameters
    ----------
    compute_second_proba : callable
        From rows of two columns to the probability of the second class.
    target, input, dtype
        As in `Recalibrator.threshold`.
    floor : float or None
        What probabilities are raised to before `compute_second_proba`.
    turning_map : callable
        Called without arguments: None if the map only rises or only falls, else the
        map.
    """
    check_choice("input", input, _SCORE_RANGE_BY_INPUT, "Say what the scores are")
    check_choice("dtype", dtype, _DTYPE_NAMES, "Say how the scores are stored")
    targets = _read_target_probabilities(target)

    def read_proba_from_scores(x):
        return read_proba(x, kind=input)  # type: ignore[arg-type]

    def compute_calibrated_proba(x):
        rows = read_proba_from_scores(x)
        return compute_second_proba(
            rows if floor is None else clip_to_floor(rows, floor)
        )

    low, high = _SCORE_RANGE_BY_INPUT[input]
    # The largest numbers of float32 limit the range further.
    if dtype == "float32":
        low, high = np.clip(
            [low, high], *np.finfo(np.float32).max * np.array([-1.0, 1.0])
        )
    calibration_map = turning_map()
    ranges = Ranges(low, high, dtype)
    if calibration_map is not None and calibration_map.direction() is None:
        calibration_map.cut_ranges(
            ranges, lambda x: Rows.from_canonical(read_proba_from_scores(x))
        )
        # The computed places of the cuts are rounded; the exact jumps are found by
        # evaluating the map.
        ranges.move_to_jumps(compute_calibrated_proba)
        if ranges.needs_search:
            ranges.cut_at_extremes(compute_calibrated_proba)
    listed = _make_thresholds(compute_calibrated_proba, ranges, targets, input)
    return listed[0] if np.ndim(target) == 0 else listed


def _read_target_probabilities(target):
    """Return targets as an array of float64, and raise an error if one is not in [0, 1]."""
    targets = np.atleast_1d(np.asarray(target, dtype=object))
    for number in targets.ravel():
        if not is_real_number(number) or not 0 <= number <= 1:
            raise invalid_input(
                "targets",
                expected="targets from 0 to 1",
                got=repr(number)[:60],
                hint=(
                    "Pass a calibrated probability, such as 0.02; divide percentages by 100"
                ),
            )
    if targets.ndim > 1 or not len(targets):
        raise invalid_input(
            "target",
            expected="one target or a list of them",
            got=f"shape {targets.shape}",
            hint="Pass a number or a list of numbers",
        )
    return targets.astype(np.float64)


def _make_thresholds(compute_second_proba, ranges, targets, input):
    """Return a `Threshold` for each target, from the crossings in the ranges of a map."""
    starts = ranges.first_keys
    stops = ranges.last_keys
    dtype = ranges.dtype
    of_range, target_indices, keys, first, last = find_level_crossings(
        compute_second_proba, starts, stops, targets, dtype
    )
    ends = compute_second_proba(decode_floats(np.concatenate([starts, stops]), dtype))
    lowest = float(ends.min())
    highest = float(ends.max())
    thresholds = []
    for number, target in enumerate(targets.tolist()):
        mine = target_indices == number
        # In each range the map passes the target at most once.
        crossing = np.zeros(len(starts), dtype=np.uint64)
        crossing[of_range[mine]] = keys[mine]
        begin = first[:, number]
        end = last[:, number]
        # A range that reaches the target at its start or its end contains one interval.
        low = np.where(begin, starts, crossing)[begin | end]
        high = np.where(end, stops, crossing - np.uint64(1))[begin | end]
        low, high = _join_intervals(low, high)
        pairs = decode_floats(np.stack([low, high]), dtype).T.tolist()
        score = None
        side = ""
        # A single interval that begins or ends with all scores is a rule with one
        # number.
        if lowest <= target <= highest and len(low) == 1:
            if high[0] == stops[-1]:
                score = pairs[0][0]
                side = ">="
            elif low[0] == starts[0]:
                score = pairs[0][1]
                side = "<="
        intervals = tuple(map(tuple, pairs))
        thresholds.append(
            Threshold(target, score, side, intervals, (lowest, highest), input)
        )
    return thresholds


def _join_intervals(
    low_keys: AnyArray, high_keys: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Join intervals of keys whose borders have no number between them."""
    # Keys count the floats, so neighbouring keys have no number between them.
    apart = low_keys[1:] > high_keys[:-1] + np.uint64(1)
    some = np.ones(len(low_keys[:1]), dtype=bool)
    return low_keys[np.append(some, apart)], high_keys[np.append(apart, some)]
