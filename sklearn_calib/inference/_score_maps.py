"""Maps from cheap scores to expected labels, each fitted on labelled rows of other folds."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .._show import quoted
from .._typing import AnyArray, FloatArray, IntArray
from ..canonical import canonical_proba, is_missing, read_array, read_numbers
from ..exceptions import is_number, no_cautions, refuse, setting
from ..recalibrators import aligned_proba, fit_recalibrator, resolve_recalibrator

#: The default: a line, logistic where the outcome is a share.
LINE = "line"
_CLASSES = np.arange(2)
_VERDICTS = 20  # more are refused where there are more than labelled rows


class JudgeScores(NamedTuple):
    """Scores of all rows, labelled ones first."""

    number: FloatArray | None  # between 0 and 1 where they have a scale
    verdict: IntArray | None  # codes, where scores are classes
    names: AnyArray | None  # of the verdicts
    given: AnyArray  # the scores of labelled rows as they came
    bounded: bool

    @property
    def n_rows(self) -> int:
        """Labelled and others."""
        return len(self.number if self.verdict is None else self.verdict)  # type: ignore[arg-type]


def read_scores(score: Any, score_unlabelled: Any, scale: Any, where: str) -> JudgeScores:
    """Scores as numbers, or as codes of verdicts where they are text or booleans."""
    given = [
        read_array(values, name, where)
        for values, name in ((score, "score"), (score_unlabelled, "score_unlabelled"))
    ]
    for values, name in zip(given, ("score", "score_unlabelled"), strict=True):
        if values.ndim != 1:
            cure = "Pass one number or one verdict for each row"
            refuse(where, f"{name} of one column", f"shape {values.shape}", cure)
    if any(_is_text(values) for values in given if len(values)):
        return _verdicts(given, where)
    parts = []
    for values, name in zip((score, score_unlabelled), ("score", "score_unlabelled"), strict=True):
        numbers = np.asarray(read_numbers(values, name, where), dtype=np.float64)
        _check_finite(numbers, name, where)
        parts.append(numbers)
    if scale is None:
        return JudgeScores(np.concatenate(parts), None, None, parts[0], False)
    low, high = _ends(scale, "scale", where, "or None for scores without ends")
    for numbers, name in zip(parts, ("score", "score_unlabelled"), strict=True):
        wrong = np.flatnonzero((numbers < low) | (numbers > high))
        if len(wrong):
            got, row = f"{numbers[wrong[0]]:g}", wrong[0]
            cure = "Say what the lowest and the highest score can be, such as "
            cure += setting("scale", (1, 10)) + ", or " + setting("scale", None)
            cure += " for any numbers"
            refuse(where, f"{name} from {low:g} to {high:g}", got, cure, row=row, argument=name)
    number = (np.concatenate(parts) - low) / (high - low)
    return JudgeScores(number, None, None, parts[0], True)


def _is_text(values):
    if values.dtype.kind == "O":
        return any(isinstance(value, str | bool | np.bool_) for value in values)
    return values.dtype.kind in "bUST"


def _verdicts(given, where):
    for values, name in zip(given, ("score", "score_unlabelled"), strict=True):
        row = next((row for row, value in enumerate(values.tolist()) if is_missing(value)), None)
        if row is not None:
            cure = "Drop such rows, or call it a verdict of its own"
            refuse(where, f"a verdict in every row of {name}", "none", cure, row=row)
    together = [value for values in given for value in values.tolist()]
    kinds = Counter(_kind(value) for value in together)
    if len(kinds) > 1:
        got = " and ".join(f"{count} of {kind}" for kind, count in kinds.items())
        refuse(where, "verdicts of one kind", got, "Write the same verdict the same way everywhere")
    names, codes = np.unique([str(value) for value in together], return_inverse=True)
    n = len(given[0])
    if len(names) > max(_VERDICTS, n):
        got, cure = f"{len(names)} different texts", "Pass the column of the scores"
        refuse(where, "verdicts of some classes", got, cure)
    labelled = np.bincount(codes[:n], minlength=len(names)) > 0
    if n and not labelled.all():
        name, count = names[~labelled][0], int((~labelled[codes]).sum())
        got = f"none of {quoted(name)}, and {count} such rows of {len(codes) - n} without a label"
        cure = "Spell verdicts alike, label some of those rows, or join rare verdicts to others"
        known = ", ".join(quoted(known) for known in names[labelled][:5])
        rule = f"a label for some rows of each verdict, as for {known}"
        refuse(where, rule, got, cure)
    return JudgeScores(None, codes.ravel(), names, names[codes[:n]], True)


def _kind(value):
    if isinstance(value, bool):
        return "booleans"
    return "text" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "numbers"


def _check_finite(numbers, name, where):
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        cure, row = "Leave out rows without a score", wrong[0]
        refuse(where, f"finite numbers as {name}", f"{numbers[row]}", cure, row=row)


def _ends(pair, name, where, otherwise=""):
    """The two numbers of a scale or of bounds."""
    ends = list(pair) if np.ndim(pair) == 1 and len(pair) == 2 else []
    fits = len(ends) == 2 and all(is_number(end) and np.isfinite(end) for end in ends)
    if not (fits and ends[0] < ends[1]):
        rule = " ".join(filter(None, [f"{name} as (lowest, highest)", otherwise]))
        refuse(where, rule, repr(pair)[:60], "Pass for instance (1, 10)")
    return float(ends[0]), float(ends[1])


def check_bounds(bounds: Any, outcome: FloatArray, where: str) -> tuple[float, float] | None:
    """The bounds of labels that are numbers."""
    if bounds is None:
        return None
    low, high = _ends(bounds, "bounds", where)
    wrong = np.flatnonzero((outcome < low) | (outcome > high))
    if len(wrong):
        rule, row = f"labels within bounds, {low:g} to {high:g}", wrong[0]
        refuse(where, rule, f"{outcome[row]:g}", "Pass wider ones", row=row)
    return low, high


class Maps:
    """Fits the map of a method on some labelled rows, and predicts all rows."""

    def __init__(
        self, scores: JudgeScores, outcome: FloatArray, weight: FloatArray, method: Any, where: str
    ) -> None:
        self._scores, self._outcome, self._weight = scores, outcome, weight
        self._method = method
        self._of_shares = bool(np.isin(outcome, (0, 1)).all())
        self._by_line = isinstance(method, str) and method == LINE
        self._proba: FloatArray | None = None
        if scores.number is None or method is None:
            return
        if self._by_line and not self._of_shares:
            return
        name = "platt" if self._by_line else method
        self._method = resolve_recalibrator(name, where)
        self._proba = _as_proba(scores)

    def of_rows(self, train: IntArray) -> FloatArray:
        """What the map fitted on these labelled rows gives for all rows."""
        outcome, weight = self._outcome[train], self._weight[train]
        if self._scores.verdict is not None:
            return self._means_of_verdicts(self._scores.verdict, train, outcome, weight)
        number = self._scores.number
        assert number is not None
        if np.ptp(outcome) == 0 or np.ptp(number[train]) == 0:
            return np.full(len(number), np.average(outcome, weights=weight))
        if self._proba is None:
            return self._line(number, train, outcome, weight)
        return self._recalibrated(train, outcome, weight)

    def _means_of_verdicts(self, verdict, train, outcome, weight):
        """Mean labels of each verdict, with one row of the mean of all among them."""
        codes, n_names = verdict[train], int(verdict.max()) + 1
        middle = np.average(outcome, weights=weight)
        total = np.bincount(codes, weights=weight * outcome, minlength=n_names)
        mass = np.bincount(codes, weights=weight, minlength=n_names)
        return ((total + middle) / (mass + 1))[verdict]

    def _line(self, number, train, outcome, weight):
        """Least squares."""
        x = number[train]
        middle, height = np.average(x, weights=weight), np.average(outcome, weights=weight)
        moved = weight * (x - middle)
        slope = moved @ (outcome - height) / (moved @ (x - middle))
        return height + slope * (number - middle)

    def _recalibrated(self, train, outcome, weight):
        """By a recalibrator; numbers are shares of the way from the least to the most."""
        low, high = outcome.min(), outcome.max()
        if self._of_shares:
            rows, codes = train, outcome.astype(np.intp)
        else:  # as a row with the event and one without
            share = (outcome - low) / (high - low)
            rows, codes = np.tile(train, 2), np.repeat([1, 0], len(train))
            weight = np.concatenate([weight * share, weight * (1 - share)])
            kept = weight > 0
            rows, codes, weight = rows[kept], codes[kept], weight[kept]
        assert self._proba is not None
        with no_cautions():  # of fits of folds, which no map is kept of
            fitted = fit_recalibrator(
                resolve_recalibrator(self._method, "calibrated_mean"),
                self._proba[rows],
                codes,
                classes=_CLASSES,
                sample_weight=weight,
            )
            found = aligned_proba(fitted, self._proba, _CLASSES)[:, 1]
        return found if self._of_shares else low + (high - low) * found


def _as_proba(scores):
    """Scores as probabilities; those without ends as log-odds of standard deviation 1."""
    number = scores.number
    if scores.bounded:
        return canonical_proba(number)
    spread = number.std()
    z = (number - number.mean()) / spread if spread > 0 else np.zeros_like(number)
    return canonical_proba(z, kind="logits")
