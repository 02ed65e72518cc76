"""How many rows the l_p calibration error takes, and what it is at most."""

from typing import Literal

import numpy as np
from scipy.special import gammaln

from .._argument_checks import (
    check_between,
    check_level,
    is_real_number,
    validate_count,
)
from .._kernels._level_sets import choose_n_levels, get_max_cell_error
from .._typing import ArrayLike
from ..exceptions import invalid_input
from ..metrics import lp_calibration_error, validate_predictions


def lp_calibration_bound(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    p: float = 2.0,
    n_levels: int = 20,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Compute an upper confidence bound of the l_p calibration error of any number of classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of rows that neither the model nor its recalibration has seen.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities.
    p : float, default=2
        At least 2.
    n_levels : int, default=20
        As in `lp_calibration_error`.
    level : float, default=0.95
        Between 0 and 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Of independent rows; the effective number of rows is (sum w)^2 / sum w^2.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.

    Returns
    -------
    bound : float
        The plug-in error plus (sqrt(2) + 2 sqrt(log(1 / (1 - level)))) / sqrt(n): the
        error of the population is below with that probability, for all classes, cells
        and predictions.

    Raises
    ------
    ValueError
        p below 2; a level out of range; input that the measure rejects.

    Notes
    -----
    The vector of all cells' gaps is a mean of n independent vectors of length at most
    sqrt(2); its l_2 distance from its expectation is at most sqrt(2 / n) in the mean
    and concentrates by McDiarmid's inequality; for p >= 2 the l_p norm is below the l_2
    norm. Cost: the measure's.

    References
    ----------
    McDiarmid (1989), "On the method of bounded differences".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import lp_calibration_bound
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> bool(lp_calibration_bound(rng.random(10_000) < p, p) < 0.06)
    True
    """
    if not is_real_number(p) or not p >= 2:
        raise invalid_input(
            "p",
            expected="p >= 2",
            got=repr(p),
            hint="For smaller p use lp_calibration_test",
        )
    check_level(level)
    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    value = lp_calibration_error.evaluate(predictions, p=p, n_levels=n_levels)
    # Kish's number of rows of equal weight.
    n_effective = predictions.weight.sum() ** 2 / np.sum(predictions.weight**2)
    # For p >= 2 the l_p norm is at most the l_2 norm. The first term bounds the mean
    # deviation of a vector of means, the second its fluctuation.
    radius = np.sqrt(2) + 2 * np.sqrt(-np.log(1 - level))
    return float(value + radius / np.sqrt(n_effective))


def binning_sample_size(
    p: float,
    epsilon: float,
    delta: float = 0.05,
    n_classes: int = 10,
    *,
    n_bins: int | None = None,
    method: Literal["plugin", "paper"] = "plugin",
) -> int:
    """Return the rows `MulticlassBinning` needs for an l_p calibration error below `epsilon`.

    Parameters
    ----------
    p : float
        Above 1, infinity included.
    epsilon : float
        Between 0 and 1.
    delta : float, default=0.05
        Probability of failure.
    n_classes : int, default=10
    n_bins : int, default=None
        Heavy cells; 6 / beta, the largest number possible, by default.
    method : {"plugin", "paper"}, default="plugin"
        "plugin": one half of the rows chooses the cells, the other estimates all groups
        of them at once (``split=True``). "paper": private estimates from separate
        pools, with the paper's constants (those of its lemma 16 corrected).

    Returns
    -------
    n_samples : int
        Both halves, or all pools, together.

    Raises
    ------
    ValueError
        Arguments out of range.

    Notes
    -----
    beta = (epsilon^p / 2)^(1 / (p - 1)). The dependence on the number of classes is
    logarithmic. A bare minimum in practice was 1 / epsilon^2 for p = inf and 3 /
    epsilon^2 for p = 2.

    References
    ----------
    "Sample-efficient multiclass calibration under probability-weighted l_p error"
    (2025, submitted without names), lemmas 8, 9, 16 and 17.

    Examples
    --------
    >>> from sklearn_calib.inference import binning_sample_size
    >>> binning_sample_size(float("inf"), 0.1, n_bins=10)
    16760
    >>> binning_sample_size(float("inf"), 0.1, method="paper") > 10**10
    True
    """
    if not is_real_number(p) or not p > 1:
        raise invalid_input(
            expected="p above 1",
            got=repr(p),
            hint="At 1 no polynomial number of rows suffices",
        )
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        check_between(
            "value",
            value,
            1e-9,
            1,
            expected=f"{name} between 1e-9 and 1",
            hint="Choose a value in the range",
        )
    # A number of half precision would overflow below.
    delta = float(delta)
    n_classes = validate_count(n_classes, "n_classes", 2, "Change it")
    if n_bins is not None:
        n_bins = validate_count(n_bins, "n_bins")
    if method not in ("plugin", "paper"):
        raise invalid_input(
            expected="method 'plugin' or 'paper'",
            got=repr(method),
            hint="Choose one of them",
        )
    beta = get_max_cell_error(p, epsilon)
    if not beta > 1e-100:
        raise invalid_input(
            expected="p and epsilon whose number of rows can be written",
            got=f"p={p}, epsilon={epsilon}",
            hint="Take a larger p",
        )
    n_used_bins = 6 / beta if n_bins is None else n_bins
    if method == "plugin":
        # Rows that find all cells of mass beta / 6, by Chernoff's inequality, and rows
        # that estimate all unions of them, by Hoeffding's.
        selection_rows = 72 / beta * np.log(8 / (beta * delta))
        log_unions = n_used_bins * np.log(2) + np.log(8 * n_classes / delta)
        estimation_rows = 8 / beta**2 * log_unions
        return int(np.ceil(selection_rows) + np.ceil(estimation_rows))
    return _compute_paper_size(beta, delta, n_classes, n_used_bins)


def _compute_paper_size(beta, delta, k, n_bins):
    """Return the rows of the paper's algorithm, for accuracy `beta` and `k` classes."""
    n_levels = choose_n_levels(beta)
    n_pools = np.floor(np.log2(max(n_bins, 1))) + 1
    # A third of the failure probability, and the accuracy, of event A_1 in section 3.1 of
    # the paper.
    selection_delta = delta / 3
    accuracy = beta / 12
    log_sets = compute_log_level_sets(n_levels, k)
    selection_rows = max(
        np.log(4 / (accuracy * selection_delta)) / (2 * accuracy**2),
        8 / (3 * accuracy) * (np.log(2 / selection_delta) + log_sets),
    )
    # Events A_2 and A_3: an accuracy of beta / (36 (ceil(log2 |B|) + 1)) in each pool,
    # by lemma 9 with the constant 32 of its proof (36^2 * 32 = 41472).
    mass_rows = 41472 * n_pools**3 * np.log(12 * n_bins * n_pools / delta) / beta**2
    label_rows = (
        41472 * n_pools**3 * np.log(12 * n_bins * k * n_pools / delta) / beta**2
    )
    return int(np.ceil(selection_rows + mass_rows + label_rows))


def compute_log_level_sets(n_levels: int, k: int) -> float:
    """Compute log of the number of level sets, C(n + k, k) - C(n, k) (lemma 3, corrected)."""
    log_total = gammaln(n_levels + k + 1) - gammaln(k + 1) - gammaln(n_levels + 1)
    if n_levels < k:
        return float(log_total)
    log_excluded = gammaln(n_levels + 1) - gammaln(k + 1) - gammaln(n_levels - k + 1)
    return float(log_total + np.log1p(-np.exp(log_excluded - log_total)))
