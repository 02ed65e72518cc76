"""Ensemble of nearly-isotonic regressions."""

from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .._typing import FloatArray
from .._validation import get_rows_per_weight
from ._near_isotonic import BaseScoreInterpolator
from ._penalty_paths import (
    MAX_PENALTIES,
    compute_bic_penalty_per_df,
    compute_deviance_rows_and_positives,
    compute_model_weights,
    find_run_starts_and_values,
    pool_log_odds_mass_and_event_rates,
    select_evenly_by_rank,
)


class ENIR(BaseScoreInterpolator):
    """Average of nearly-isotonic fits along their path, weighted by an information criterion.

    More than two classes are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    criterion : {"bic", "aic"}, default="bic"
        BIC = -2 log-likelihood + groups (log n + log 2 pi), as in the authors' program;
        AIC = -2 log-likelihood + 2 groups, which favours fits with hundreds of groups.

    Attributes
    ----------
    penalties_ : ndarray of shape (n_models,)
        The penalties of the models.
    weights_ : ndarray of shape (n_models,)
        Their weights, with sum 1.
    log_odds_ : ndarray of shape (n_scores,)
        Log-odds of the distinct calibration scores, increasing.
    knots_ : ndarray of shape (n_scores,)
        Their probabilities; equal if float64 cannot tell them from 0 or 1.
    values_ : ndarray of shape (n_scores,)
        The average there.
    one_vs_rest_ : list of ENIR
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    At most 100 of the path's breakpoints are models. Those with an infinite likelihood
    loss, and the one without penalty, are left out; if only isotonic regression
    remains, or nothing, it is the fit. Each group's value is moved towards its mean
    score, with the weight of at most one row. Departures from the authors' R program:
    equal scores are pooled in any order of the rows, nearly equal breakpoints
    (rounding) count once, and separable data are not an error. Weights that are whole
    numbers count rows; other weights add up to Kish's effective number of rows, (sum
    w)^2 / sum w^2, so that a common factor changes nothing. Scores are ordered by their
    log-odds, and swapping the classes swaps the result. Predictions between scores are
    interpolated linearly in the probability, constant outside. Cost: O(n log n + 100
    n).

    References
    ----------
    Naeini, Cooper (2016), "Binary classifier calibration using an ensemble of near
    isotonic regression models".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import ENIR
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> enir = ENIR().fit(proba, y)
    >>> len(enir.penalties_) > 1
    True
    """

    penalties_: FloatArray
    weights_: FloatArray

    _parameter_constraints: ClassVar = {"criterion": [StrOptions({"bic", "aic"})]}

    def __init__(self, criterion: Literal["bic", "aic"] = "bic") -> None:
        self.criterion = criterion

    def _fit(self, proba, codes, weight):
        """Fit the near-isotonic path, and weigh its solutions by an information criterion."""
        from .._kernels._near_isotonic import PenaltyPath, find_breakpoints
        from .._kernels._range_sums import RangeSums

        rows = get_rows_per_weight(weight)
        self.log_odds_, mass, share = pool_log_odds_mass_and_event_rates(
            proba, codes, weight
        )
        mass = mass * rows
        path = PenaltyPath(share, mass)
        scores = RangeSums(mass * self.knots_)
        # The path changes its groups at the breakpoints only; of very many, evenly
        # spaced ones are enough.
        lams = select_evenly_by_rank(
            np.append(0.0, find_breakpoints(path.merges)), MAX_PENALTIES
        )
        price = (
            2.0 if self.criterion == "aic" else compute_bic_penalty_per_df(mass.sum())
        )
        models = []
        for lam in lams[1:] if len(lams) > 1 else lams:
            starts, value = find_run_starts_and_values(path, lam, 6)
            loss, total, ones = compute_deviance_rows_and_positives(starts, value, path)
            [score] = scores.sum_runs(starts)
            # The authors' program shrinks the value of a group to its mean score, the
            # more the better both agree.
            g = 1 - np.abs(ones - score) / total
            shrunk = (value * total + score / total * g) / (total + g)
            models.append((lam, loss + price * len(starts), starts, shrunk))
        possible = [model for model in models if np.isfinite(model[1])] or models[-1:]
        self.penalties_ = np.array([model[0] for model in possible]) / rows
        criterion = np.array([model[1] for model in possible])
        self.weights_ = compute_model_weights(
            np.where(np.isfinite(criterion), criterion, 0.0)
        )
        # A sum of step functions is the sum of their jumps: no model is evaluated at
        # every row.
        steps = np.zeros(path.n)
        for weight_of_model, (*_, starts, value) in zip(
            self.weights_, possible, strict=True
        ):
            steps[starts] += weight_of_model * np.diff(value, prepend=0.0)
        self.values_ = np.clip(np.cumsum(steps), 0.0, 1.0)
