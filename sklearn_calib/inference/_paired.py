"""Two models on the same rows: the difference of a measure, with an interval."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtri

from .._typing import ArrayLike, FloatArray, IntArray, RandomStateLike
from ..exceptions import check_count, check_level, refuse_unknown
from ..metrics import all_metrics, canonical_case
from ._intervals import confidence_interval
from ._resampling import bootstrap_distribution


def _hits(proba: FloatArray, codes: IntArray) -> FloatArray:
    return (np.asarray(proba).argmax(axis=1) == codes).astype(float)


@dataclass(frozen=True)
class PairedDifference:
    """By how much the measure of a second model is above that of a first one.

    Attributes
    ----------
    measure : str
    first, second : float
        The measure of each.
    difference : float
        ``second - first``.
    low, high : float
        The interval of the difference.
    level : float
    method : {"normal", "bootstrap", "combined"}
    """

    measure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    level: float
    method: str


def paired_difference(
    y_true: ArrayLike,
    first_proba: ArrayLike,
    second_proba: ArrayLike,
    measure: str = "log_loss",
    *,
    level: float = 0.95,
    n_resamples: int = 199,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> PairedDifference:
    """Compare two models on the same rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    first_proba, second_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the same rows by each model.
    measure : str, default="log_loss"
        A name from `all_metrics`, or "accuracy".
    level : float in (0, 1), default=0.95
    n_resamples : int, default=199
        For measures that are no means of rows; see `confidence_interval` for the fewest.
    n_jobs : int, default=None
        Threads, as in joblib.
    random_state : int, Generator, RandomState or None, default=0
        Of the draws; without effect where the interval is "normal".
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None

    Returns
    -------
    found : PairedDifference

    Raises
    ------
    ValueError
        An unknown measure, a level outside (0, 1), or invalid scores, labels or weights; see
        `canonical_proba`.

    Notes
    -----
    "normal", for the log loss, the Brier loss and the accuracy: these are means of one number per
    row, so their difference is the mean of the differences row by row, which vary less than the
    numbers themselves where the models agree. Cost: O(n).

    "bootstrap", for other proper losses: percentiles of the difference over rows drawn with
    replacement, the same for both. Cost: 2 `n_resamples` evaluations.

    "combined", for calibration errors, whose bootstrap fails near 0 (see `confidence_interval`):
    with (l, u) the interval by inversion of each model alone, the ends are l2 - u1 and u2 - l1.
    This holds the level even where one estimate falls as the other rises, as when one model is too
    low and the other too high. Where they rise and fall together the interval is wider than it
    need be: a difference that it shows is there, one that it does not show may be there. Cost:
    twice that of `confidence_interval`.

    Measured coverage: ``benchmarks/paired_coverage``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import paired_difference
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = (rng.random(500) < p).astype(int)
    >>> found = paired_difference(y, p, p**2)
    >>> 0 < found.low < found.difference < found.high
    True
    """
    where = "paired_difference"
    known = all_metrics()
    if not isinstance(measure, str) or measure not in ("accuracy", *known):
        refuse_unknown(where, "a measure", measure, ["accuracy", *known], "See the list")
    check_level(level, where)
    n_resamples = check_count(n_resamples, "n_resamples", where, 2)
    probas = first_proba, second_proba
    cases = [canonical_case(where, y_true, p, sample_weight, labels) for p in probas]
    loss = None if measure == "accuracy" else known[measure].spec.loss
    if measure == "accuracy" or loss is not None:  # means of one number per row
        of_rows = _hits if loss is None else loss.of_rows
        rows = [of_rows(case.proba, case.codes) for case in cases]
        first, second = (cases[0].mean(values) for values in rows)
        low, high = _normal(rows[1] - rows[0], cases[0].weight, level)
        return PairedDifference(measure, first, second, second - first, low, high, level, "normal")
    function = known[measure]
    if function.spec.proper:
        first, second = (function.of_case(case) for case in cases)
        draws = [  # the same seed draws the same rows
            bootstrap_distribution(case, function.of_case, n_resamples, random_state, n_jobs=n_jobs)
            for case in cases
        ]
        low, high = np.quantile(draws[1] - draws[0], [(1 - level) / 2, (1 + level) / 2])
        low, high, method = float(low), float(high), "bootstrap"
    else:
        interval = partial(
            confidence_interval,
            measure=measure,
            level=level,
            n_resamples=n_resamples,
            n_jobs=n_jobs,
            random_state=random_state,
            sample_weight=None
            if sample_weight is None
            else cases[0].weight,  # rows of weight 0 left
            labels=range(len(cases[0].classes)),  # what was to be said of the labels has been said
        )
        one, two = (interval(case.codes, case.proba) for case in cases)
        first, second = one.estimate, two.estimate
        (low, high), method = _combined(one, two), "combined"
    return PairedDifference(measure, first, second, second - first, low, high, level, method)


def _normal(differences, weight, level):
    """The interval of a weighted mean."""
    total = weight.sum()
    mean = float(weight @ differences / total)
    squares = weight @ weight
    freedom = total**2 - squares
    spread = (weight**2) @ (differences - mean) ** 2
    half = float(ndtri((1 + level) / 2) * np.sqrt(spread / freedom)) if freedom > 0 else np.inf
    return mean - half, mean + half


def _combined(one, two):
    """The interval of a difference from those of its parts."""
    difference = two.estimate - one.estimate  # inside, also where a part leaves its estimate out
    return min(two.low - one.high, difference), max(two.high - one.low, difference)
