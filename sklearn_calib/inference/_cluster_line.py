"""logit P = a + b z of rows in clusters: intervals and tests that serve few of them."""

import numpy as np
from scipy import stats
from scipy.special import expit, stdtrit

from .._kernels._cluster_sums import Total, jackknife, score_test
from .._typing import FloatArray, IntArray


class ClusterLine:
    """Intercept and slope of the outcomes on predicted log-odds.

    Parameters
    ----------
    z, hit, weight : ndarray of shape (n_samples,)
        Log-odds, outcomes and weights above 0.
    groups : ndarray of shape (n_samples,), intp
        The cluster of each row, numbered from 0.
    level : float, default=0.95
        Of the intervals.
    """

    def __init__(
        self,
        z: FloatArray,
        hit: FloatArray,
        weight: FloatArray,
        groups: IntArray,
        level: float = 0.95,
    ) -> None:
        self.z, self.hit, self.weight, self.groups = z, hit, weight, groups
        self.level = level

    def large(self, estimate: float) -> tuple[tuple[float, float], float]:
        """The interval of calibration in the large around its estimate, and the p-value of 0."""

        def expected(a):
            return np.bincount(self.groups, self.weight * expit(a + self.z))

        events = np.bincount(self.groups, self.weight * self.hit)
        total = Total(events, self.weight.sum(), expected)
        return total.ends(estimate, self.level), float(2 * stats.norm.sf(abs(total.z(0.0))))

    def ends(self, a: float, b: float) -> list[tuple[float, float]]:
        """The intervals of intercept and slope around their estimates."""
        columns = np.column_stack([np.ones_like(self.z), self.z])
        given = self.hit, self.weight, self.groups
        errors, freedom = jackknife(columns, a + b * self.z, *given)
        half = stdtrit(freedom, (1 + self.level) / 2) * errors
        both = zip((a, b), half, strict=True)
        return [(float(value - width), float(value + width)) for value, width in both]

    def chi_squares(self, large: float) -> tuple[float, float]:
        """Score tests: of slope 1 given calibration in the large; of intercept 0 and slope 1."""
        columns, *rows = self._score(large)
        slope = score_test(columns[:, 1:], *rows)[0]
        return slope**2, self.cox()[0]

    def cox(self) -> tuple[float, float]:
        """(chi-square, p-value) of intercept 0 and slope 1."""
        root, pvalue = score_test(*self._score(0.0))
        return root**2, pvalue

    def _score(self, a):
        """Columns without correlation at slope 1, and what else `score_test` needs."""
        mean = expit(a + self.z)
        variance = mean * (1 - mean)
        mass = self.weight * variance
        centre = (mass @ self.z) / mass.sum() if mass.any() else 0.0
        columns = np.column_stack([np.ones_like(self.z), self.z - centre])
        return columns, self.hit - mean, variance, self.weight, self.groups
