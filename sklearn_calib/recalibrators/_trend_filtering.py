"""Linear trend filtering as a recalibrator."""

from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import xlogy
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._binning import BIN_EDGE_TOLERANCE_IN_BINS, find_mass_midpoint_fractions
from .._kernels._log_odds import get_rounded_second_class_column
from .._sklearn_compat import NONNEGATIVE_REAL
from .._typing import FloatArray, IntArray
from .._validation import get_rows_per_weight
from ._base import Capabilities, Recalibrator
from ._penalty_paths import compute_bic_penalty_per_df

# Less bends nothing but the last digits of a line.
MIN_PENALTY_PER_ROW = 1e-12
# Penalties from the one of a straight line to 1e-4 of it.
_N_PENALTIES = 50
# Scores closer than this share a point.
_SCORE_RESOLUTION = 1e-5
# More points are joined to the given number of cells.
MAX_UNJOINED_POINTS = 20_000
MAX_POINTS_AFTER_JOINING = 10_000


class TrendLine(NamedTuple):
    """A continuous piecewise linear function and what it cost."""

    # Both ends and every change of slope.
    knots: FloatArray
    values: FloatArray
    lam: float
    df: int
    criterion: float

    def __call__(self, score: FloatArray) -> FloatArray:
        """Evaluate the line, also beyond the ends, within [0, 1]."""
        if len(self.knots) == 1:
            return np.full(len(score), self.values[0])
        left = np.searchsorted(self.knots[1:-1], score, side="right")
        slope = np.diff(self.values) / np.diff(self.knots)
        return np.clip(
            self.values[left] + slope[left] * (score - self.knots[left]), 0.0, 1.0
        )

    def make_map(self) -> maps.FunctionOfScore:
        """Return the function as a map of probabilities."""
        if len(self.knots) == 1:
            return maps.make_constant(np.clip(self.values[0], 0.0, 1.0))
        return maps.PiecewiseLinear(
            input="proba",
            ties=True,
            domain=None,
            knots=self.knots,
            values=self.values,
        )


class TrendFiltering(Recalibrator):
    """A continuous, piecewise linear map with few changes of slope (LiTE).

    Each change of slope is penalised by its size, so that most of them are zero and the
    others stand where the data ask for them. The map may fall. More than two classes
    are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    penalty : float or {"aicc", "bic"}, default="aicc"
        The penalty, at least 0, of sum w (y - b)^2 / 2 + lam sum of the absolute
        changes of slope; it grows with the number of rows, and with the weights w. A
        criterion chooses among 50, from the one of a straight line down to 1e-4 of it.

    Attributes
    ----------
    penalty_ : float
    knots_ : ndarray of shape (n_knots,)
        Smallest and largest score, and between them those where the slope changes.
    values_ : ndarray of shape (n_knots,)
        The fit there; it may leave [0, 1], a prediction does not.
    df_ : int
        Degrees of freedom: knots of the slope and two.
    line_ : TrendLine
        All of these as a named tuple, called as a function of scores.
    one_vs_rest_ : list of TrendFiltering
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The fit is exact: an interior-point method whose Newton systems are solved by a
    Kalman filter, to a duality gap of 1e-10 of the penalty's part. Departures from the
    authors' R program, whose solver stops early: scores within 1e-5 become one point at
    their mean, in any order of the rows; the criteria count rows instead of points; a
    probability counts as no nearer to 0 or 1 than 1 / (rows + 2) in the likelihood,
    whereas the program leaves out the rows that a fit calls impossible; the corrected
    AIC of a fit with as many degrees of freedom as rows is infinite. Weights that are
    whole numbers count rows; other weights add up to Kish's effective number of rows,
    (sum w)^2 / sum w^2, so that a criterion ignores a common factor. Where more than
    20,000 points are left, neighbours are joined to at most 10,000 cells, each no wider
    than 2e-4 and with no more than 2e-4 of the weight (or one point). That moves a fit,
    in root mean square, by no more than the root of 4e-4 times its mean absolute slope,
    which is proved in the source; in two laws of a million rows it was at most 2e-5
    (and 4e-4 if a criterion then chose the penalty beside). Beyond the calibration
    scores the outer lines go on. Cost: O(n log n) and some 20 passes over the distinct
    scores a penalty.

    References
    ----------
    Naeini, Cooper (2016), "Binary classifier calibration using an ensemble of linear
    trend estimation". Wang, Li, Dang (2019), eq. 12, whose penalty is 2 lam / n here.
    Kim, Koh, Boyd, Gorinevsky (2009), "l1 trend filtering".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.recalibrators import TrendFiltering
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> truth = np.minimum(2 * p, 1)
    >>> lite = TrendFiltering(penalty="bic").fit(p, rng.random(4000) < truth)
    >>> bool(np.abs(lite.predict_proba(p)[:, 1] - truth).mean() < 0.02)
    True
    """

    penalty_: float
    knots_: FloatArray
    values_: FloatArray
    df_: int
    line_: TrendLine

    capabilities = Capabilities(
        continuous=True,
        nonparametric_shape=True,
        nonparametric=True,
        weights="rows",
        cost="O(k n log n)",
        max_classes=200,
    )
    _parameter_constraints: ClassVar = {
        "penalty": [
            NONNEGATIVE_REAL,
            StrOptions({"aicc", "bic"}),
        ],
    }

    def __init__(self, penalty: float | Literal["aicc", "bic"] = "aicc") -> None:
        self.penalty = penalty

    def _fit(self, proba, codes, weight):
        """Fit all penalties and keep the best line, or fit the given penalty."""
        if isinstance(self.penalty, str):
            best = min(
                iter_trend_lines_by_penalty(proba, codes, weight, self.penalty),
                key=lambda line: line.criterion,
            )
        else:
            best = next(
                iter_trend_lines_by_penalty(
                    proba, codes, weight, "aicc", lam=self.penalty
                )
            )
        self.line_ = best
        self.penalty_ = best.lam
        self.df_ = best.df
        self.knots_ = best.knots
        self.values_ = best.values

    def _make_map(self):
        return self.line_.make_map()


def iter_trend_lines_by_penalty(
    proba: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    criterion: str,
    lam: float | None = None,
) -> Iterator[TrendLine]:
    """Iterate over fits for 50 penalties (or one) with criteria.

    One if all scores agree.
    """
    from .._kernels._trend_filter import find_largest_penalty, fit_trend_filter

    x, y, mass = _pool_rows_by_close_scores(
        get_rounded_second_class_column(proba), codes, weight
    )
    rows = mass * get_rows_per_weight(weight)
    top = find_largest_penalty(x, y, mass)
    if lam is None:
        # If the largest useful penalty is rounding, the points lie on a line and one
        # fit is enough.
        bent = top > MIN_PENALTY_PER_ROW * mass.sum()
        lams = top * np.geomspace(1, 1e-4, _N_PENALTIES) if bent else [0.0]
    else:
        lams = [lam]
    for penalty in lams:
        fit = fit_trend_filter(x, y, mass, penalty)
        kept = np.unique(np.concatenate([[0], fit.knots, [len(x) - 1]]))
        # The degrees of freedom of trend filtering are the number of knots plus the two
        # of a line.
        df = min(len(fit.knots) + 2, len(x))
        price = _compute_criterion(
            np.clip(fit.values, 0.0, 1.0),
            y,
            rows,
            df,
            criterion,
        )
        yield TrendLine(x[kept], fit.values[kept], float(penalty), df, price)


def _pool_rows_by_close_scores(score, codes, weight):
    """Return scores, frequencies and weights of the fitted points."""
    step = np.rint(score / _SCORE_RESOLUTION).astype(np.intp)
    used_steps = np.flatnonzero(np.bincount(step))

    def sum_by_rounded_score(values):
        return np.bincount(step, weights=values)[used_steps]

    mass = sum_by_rounded_score(weight)
    score_sum = sum_by_rounded_score(weight * score)
    event_sum = sum_by_rounded_score(weight * codes)
    if len(used_steps) > MAX_UNJOINED_POINTS:
        cell = _find_cell_starts(score_sum / mass, mass)
        mass, score_sum, event_sum = (
            np.add.reduceat(column, cell) for column in (mass, score_sum, event_sum)
        )
    return score_sum / mass, event_sum / mass, mass


def _find_cell_starts(x, mass):
    """Return the starts of cells of adjacent, narrow and light points.

    With weights of sum 1, let F be the objective and G that of the cells, for functions
    with the penalty on the variation of their slope; both optima f, g are piecewise
    linear. Moving a row within a cell of width h_c changes (y - b)^2 / 2 by at most h_c
    times the slope there, so
    |F - G|(b) <= D(b) = sum w_c h_c |slope of b|. Both are strongly convex in the mean square, so
    that of f - g (the mean of both kinds) is at most F(g) - F(f) + G(f) - G(g) <= D(f)
    + D(g).
    """
    cell = np.floor(
        (find_mass_midpoint_fractions(mass) + x) * (MAX_POINTS_AFTER_JOINING / 2)
        + BIN_EDGE_TOLERANCE_IN_BINS
    )
    return np.flatnonzero(np.append(True, np.diff(cell) > 0))


def _compute_criterion(p, y, rows, df, criterion):
    total = rows.sum()
    # Laplace's rule of succession keeps the likelihood of fitted zeros and ones finite.
    p = np.clip(p, 1 / (total + 2), 1 - 1 / (total + 2))
    loss = -2 * (rows @ (xlogy(y, p) + xlogy(1 - y, 1 - p)))
    if criterion == "bic":
        return loss + df * compute_bic_penalty_per_df(total)
    spare = total - df - 1
    return loss + 2 * df + 2 * df * (df + 1) / spare if spare > 0 else np.inf
