"""Nearly-isotonic regression."""

from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._binning import sum_log_evidence_over_bins
from .._sklearn_compat import NONNEGATIVE_REAL
from .._typing import FloatArray
from .._validation import get_rows_per_weight
from ._base import Capabilities, Recalibrator
from ._penalty_paths import (
    MAX_PENALTIES,
    compute_bic_penalty_per_df,
    compute_deviance_rows_and_positives,
    find_run_starts_and_values,
    pool_log_odds_mass_and_event_rates,
    select_evenly_by_rank,
)


class BaseScoreInterpolator(Recalibrator):
    """Base of fits with a value at each of the calibration scores, and lines between them."""

    log_odds_: FloatArray
    values_: FloatArray

    capabilities = Capabilities(
        continuous=True,
        nonparametric_shape=True,
        nonparametric=True,
        weights="rows",
        cost="O(k n log n)",
    )

    @property
    def knots_(self) -> FloatArray:
        return expit(self.log_odds_)

    def _make_map(self):
        return maps.make_linear_in_proba(self.log_odds_, self.values_)


class NearIsotonicCalibration(BaseScoreInterpolator):
    """Isotonic regression that allows small decreases, at a penalty.

    A decrease between neighbouring scores is not forbidden but penalised. Without
    penalty the map is the frequencies of the calibration set itself; with a large one
    it is isotonic calibration. Like that, it can return exactly 0 and 1: not for the
    log loss, for which `ENIR`, which averages over the penalties, or `VennAbers` is
    better. More than two classes are handled one-vs-rest and the rows divided by their
    sums.

    Parameters
    ----------
    penalty : float or {"bic", "bdeu"}, default="bic"
        The penalty, at least 0, of sum w (y - b)^2 / 2 + lam sum max(b_i - b_(i+1), 0);
        it grows with the number of rows, and with the weights w. Otherwise one of up to
        100 on the path: "bic" takes the smallest -2 log-likelihood + groups (log n +
        log 2 pi), "bdeu" the groups with the largest marginal likelihood under the BDeu
        prior of two pseudo-counts; n and the likelihood are those of the number of
        rows, see the notes.

    Attributes
    ----------
    penalty_ : float
    log_odds_ : ndarray of shape (n_scores,)
        Log-odds of the distinct calibration scores, increasing.
    knots_ : ndarray of shape (n_scores,)
        Their probabilities; equal if float64 cannot tell them from 0 or 1.
    values_ : ndarray of shape (n_scores,)
        The fit there.
    breakpoints_ : ndarray of shape (n_breakpoints,)
        The penalties at which groups of scores merge; from the last on the fit is
        isotonic.
    one_vs_rest_ : list of NearIsotonicCalibration
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The path is computed exactly, for all penalties at once. Equal scores are pooled
    first, or the fit would depend on the order of the rows; breakpoints equal to 12
    digits are one. "bdeu" is the published choice, but the groups are made from the
    labels, which its evidence does not know: runs of equal labels pass for certain
    bins, and on scores without ties it keeps the labels themselves. Weights that are
    whole numbers count rows; other weights add up to Kish's effective number of rows,
    (sum w)^2 / sum w^2, so that a criterion ignores a common factor. Scores are ordered
    by their log-odds, so that those next to 0 and 1 are distinguished, and swapping the
    classes swaps the result. Predictions between scores are interpolated linearly in
    the probability and constant outside, as in the R package neariso. Cost: O(n log n).

    References
    ----------
    Tibshirani, Hoefling, Tibshirani (2011), "Nearly-isotonic regression". Wang, Li,
    Dang (2019), eq. 10, whose penalty is 2 lam / n here.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import NearIsotonicCalibration
    >>> y, p = [0, 1, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.5, 0.7, 0.9]
    >>> NearIsotonicCalibration(penalty=0.2).fit(p, y).values_.tolist()
    [0.0, 0.8, 0.1, 0.1, 1.0, 1.0]
    """

    penalty_: float
    breakpoints_: FloatArray

    _parameter_constraints: ClassVar = {
        "penalty": [NONNEGATIVE_REAL, StrOptions({"bic", "bdeu"})]
    }

    def __init__(self, penalty: float | Literal["bic", "bdeu"] = "bic") -> None:
        self.penalty = penalty

    def _fit(self, proba, codes, weight):
        """Compute the path of solutions, and choose or set the penalty."""
        from .._kernels._near_isotonic import PenaltyPath, find_breakpoints

        rows = get_rows_per_weight(weight)
        self.log_odds_, mass, share = pool_log_odds_mass_and_event_rates(
            proba, codes, weight
        )
        path = PenaltyPath(share, mass * rows)
        breakpoints = find_breakpoints(path.merges)
        if isinstance(self.penalty, str):
            tried = select_evenly_by_rank(np.append(0.0, breakpoints), MAX_PENALTIES)
            costs = np.array([self._compute_cost(path, lam) for lam in tried])
            # If every fit is impossible for some row, the isotonic one is taken.
            best = (
                tried[int(np.argmin(costs))] if np.isfinite(costs).any() else tried[-1]
            )
        else:
            # The penalty of the user is per row; that of the path is for the sum of the
            # weights.
            best = self.penalty * rows
        self.breakpoints_ = breakpoints / rows
        self.penalty_ = float(best) / rows
        self.values_ = np.clip(path.get_row_values(best), 0.0, 1.0)

    def _compute_cost(self, path, lam):
        bic = self.penalty == "bic"
        starts, value = find_run_starts_and_values(path, lam, 6 if bic else 12)
        loss, total, ones = compute_deviance_rows_and_positives(starts, value, path)
        if bic:
            return loss + compute_bic_penalty_per_df(total.sum()) * len(starts)
        # The Bayesian Dirichlet score: a prior of two rows, half of them events, is
        # divided among the groups.
        return -sum_log_evidence_over_bins(total, ones, 2.0 / len(total), 0.5)
