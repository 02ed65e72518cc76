"""Costs of decisions, and the order of errors by confidence, as measures with scorers."""

from typing import TYPE_CHECKING

import numpy as np

from .._count_weights import are_counts
from .._kernels._expected_metrics import choose_best_actions, get_chosen_costs
from .._kernels._net_benefit import (
    compute_piecewise_linear_regret,
    find_max_proper_regret_and_thresholds,
)
from .._kernels._risk_coverage import average_risk_over_coverages
from .._sklearn_compat import fit_isotonic_shares
from .._typing import ArrayLike
from ..metrics import (
    BinaryOptions,
    BinaryProblem,
    Predictions,
    SharedOptions,
    binary_measure,
    measure,
)
from ._costs import canonical_costs
from ._risk_coverage import pool_confidence_mass_and_top_class_errors

if TYPE_CHECKING:
    from typing_extensions import Unpack


@measure(range=(-np.inf, np.inf), in_report=False, poolable=True)
def expected_cost_score(
    predictions: Predictions,
    *,
    costs: ArrayLike | None = None,
    **shared: "Unpack[SharedOptions]",
) -> float:
    """Compute the mean cost per row of the actions that look cheapest by the probabilities.

    Parameters
    ----------
    {shared_parameters}
    costs : array-like of shape (n_classes, n_actions), default=None
        ``costs[j, a]`` is the cost of action a where class j is true, as in
        `CostSensitiveClassifier`. None: each error costs 1, and the measure is the
        error rate.

    Returns
    -------
    cost : float
        In the unit of the costs, between the smallest and the largest of them. Not
        proper: probabilities on the right side of each threshold are as good as the
        true ones. Unbiased for the mean cost of other rows. Of actions that are equally
        cheap the first is taken: if classes and costs are swapped, only rows that
        are so change. Cost: O(n k m) for k classes and m actions.

    Raises
    ------
    ValueError
        Costs of another shape, missing or infinite, or an action that never costs less
        than another one.

    References
    ----------
    Elkan (2001), "The foundations of cost-sensitive learning", eq. 1.

    Examples
    --------
    >>> from sklearn_calib.decisions import expected_cost_score
    >>> expected_cost_score([0, 0, 1], [0.1, 0.3, 0.2], costs=[[0, 1], [5, 0]])  # from 1/6 on
    0.3333333333333333
    >>> ask = [[0, 1, 0.6], [5, 0, 0.6]]  # a third action, whatever the class
    >>> round(expected_cost_score([0, 0, 1], [0.1, 0.3, 0.2], costs=ask), 3)
    0.4
    """
    table = canonical_costs(costs, predictions.classes)
    actions = choose_best_actions(np.asarray(predictions.proba), table)
    return predictions.mean(get_chosen_costs(table, predictions.codes, actions))


@measure(range=(0.0, 1.0), in_report=False, poolable=True)
def area_under_risk_coverage(
    predictions: Predictions, **shared: "Unpack[SharedOptions]"
) -> float:
    """Compute the area under the risk-coverage curve (AURC), a mean of error rates.

    Parameters
    ----------
    {shared_parameters}

    Returns
    -------
    area : float
        In [0, 1]; the error rate itself if confidence is uninformative, less if
        errors are less confident. Rows of equal confidence (at 12 digits) come in
        random order, and the mean over orders is taken. Weights that are whole numbers
        count rows; of others the ratios matter, and the error rate is averaged over all
        coverages between 0 and 1, the limit of many rows: of 60 rows the two differ by
        up to 0.005. Of equal probabilities the first class is taken, so that swapping
        the classes changes the area by at most the share of such rows. It depends on
        the order of the confidences alone, and not on calibration, for two classes.
        Cost: O(n log n).

    References
    ----------
    Geifman, Uziel, El-Yaniv (2019), "Bias-reduced uncertainty estimation for deep
    neural classifiers", section 3.

    Examples
    --------
    >>> from sklearn_calib.decisions import area_under_risk_coverage
    >>> round(area_under_risk_coverage([1, 1, 0], [0.9, 0.8, 0.6]), 4)  # only the last is wrong
    0.1111
    """
    _, mass, errors = pool_confidence_mass_and_top_class_errors(predictions)
    return average_risk_over_coverages(mass, errors, are_counts(predictions.weight))


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def calibration_decision_loss(
    problem: BinaryProblem, **shared: "Unpack[BinaryOptions]"
) -> float:
    """Compute the calibration decision loss (CDL): the largest loss by miscalibration.

    A user who acts on calibrated probabilities instead of the given ones gains
    something per row. How much depends on the user's proper loss, that is, on what the
    decisions cost. The CDL is the largest gain over all proper losses whose values for
    either label span at most 1. The calibrated probabilities are those of isotonic
    calibration on the same rows.

    Parameters
    ----------
    {shared_parameters}

    Returns
    -------
    loss : float
        In [0, 1]; 0 is perfect. The largest regret R(t), see below, is at most this
        number and at least half of it; that of `regret_curve`, which has other
        calibrated probabilities and counts labels in the place of c, need not be. Like
        all calibration errors it is too large on finitely many rows: for 500 rows of
        calibrated predictions it is 0.012 on average with normal log-odds, 0.004 with 3
        % events, and 0.027 with predictions between 0.45 and 0.55. `calibration_test`
        compares it with its distribution for calibrated predictions, and
        `confidence_interval` estimates the bias by simulation and removes it.

    Notes
    -----
    With c the calibrated prediction, a V-shaped loss with its kink at t has the regret
    R(t) = E (c - t)(1{c > t} - 1{p > t}) for costs of t and 1 - t. A proper loss is a
    mixture of these with weights w >= 0 of the thresholds, and bounded by 1 if the
    integrals of t dw and of (1 - t) dw are at most 1. So the loss is the largest
    integral of R dw, twice the value at 1/2 of the smallest concave function above R:
    V-shaped losses alone, bounded by 1, reach max R(t) / max(t, 1 - t), which is at
    least half of it. With L1 the mean of ``|c - p|`` and L2 the root of the mean of
    (c - p)^2: L1^2 <= L2^2 <= CDL <= 2 L1. Isotonic calibration keeps the order of the
    predictions; a gain that takes another order is not counted. Cost: O(n log n).

    References
    ----------
    Hu, Wu (2024), "Predict to minimize swap regret for all payoff-bounded tasks", for
    the definition.

    Examples
    --------
    >>> from sklearn_calib.decisions import calibration_decision_loss
    >>> p = [0.5, 0.5, 0.5, 0.5]  # but three of four are events
    >>> calibration_decision_loss([0, 1, 1, 1], p)
    0.5
    """
    cells = problem.cells
    # Resampled weights may leave cells empty.
    is_filled = cells.mass > 0
    score = cells.score[is_filled]
    mass = cells.mass[is_filled]
    hits = cells.hits[is_filled]
    # The best rule that does not reverse the order of the scores acts on the isotonic
    # rates; the loss against it is what recalibration gains.
    rate = fit_isotonic_shares(hits / mass, mass)
    breaks, intercept, slope = compute_piecewise_linear_regret(score, rate, rate, mass)
    # The regret is linear in the threshold between the scores and rates, so its maximum
    # is at an end of a piece.
    ends = np.append(breaks[:-1], breaks[1:])
    regret = np.tile(intercept, 2) + np.tile(slope, 2) * ends
    return find_max_proper_regret_and_thresholds(ends, regret)[0]
