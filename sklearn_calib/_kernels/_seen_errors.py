"""Which errors the test by the kernel calibration error finds, with how many rows."""

import numpy as np
from scipy import stats
from scipy.special import expit

SIGNIFICANCE = 0.05  # of the test that decides on calibration
BANDWIDTH = 0.2  # of its statistic, the kernel calibration error
SEEN = 0.8  # the probability that makes an error one that would be seen
_DRAWS, _TERMS = 50_000, 30
_MOST_ROWS = 1e12


class Errors:
    """Errors of two kinds, and the power of the test against them.

    "shifted": log-odds that are all too far from 0 by one amount. "drawn_together": log-odds that
    are too far from their mean by one factor (overconfidence), up to scores without information.
    The squared statistic is a quadratic form of the residuals; its law is taken as normal, with
    the mean and the variance of the form under normal residuals.

    Parameters
    ----------
    score, share : ndarray of shape (n_cells,)
        Scores, and the parts of all rows that have them.
    z : ndarray of shape (n_cells,)
        The log-odds of the scores.
    bandwidth : float
    """

    def __init__(self, score, share, z, bandwidth=BANDWIDTH):
        self.score, self.share, self._z = score, share, z
        self._kernel = np.exp(-np.abs(score[:, None] - score) / bandwidth)
        self._middle, self._toward = share @ z, -1.0 if share @ score > 0.5 else 1.0
        self.kinds = [self.shifted] if np.ptp(z) < 1e-9 else [self.shifted, self.drawn_together]

    def shifted(self, strength):  # 0 to 1
        return expit(self._z + self._toward * strength * 20)

    def drawn_together(self, strength):
        return expit(self._middle + (1 - strength) * (self._z - self._middle))

    def size(self, truth):
        """The mean distance between the scores and the truth."""
        return float(self.share @ np.abs(truth - self.score))

    def power(self, truth, noise, critical):
        """The probability that the statistic is above `critical`; `noise` is share / rows."""
        gap, spread = self.share * (truth - self.score), noise * truth * (1 - truth)
        pull = self._kernel @ gap
        mean = gap @ pull + spread.sum()
        variance = 2 * spread @ (self._kernel**2 @ spread) + 4 * spread @ pull**2
        return stats.norm.sf((critical**2 - mean) / np.sqrt(max(variance, 1e-300)))

    def smallest(self, noise, critical):
        """The smallest error seen, of both kinds the larger (None: none), and whether it is blind.

        It is blind where even scores without any information would be missed.
        """
        seen = [kind for kind in self.kinds if self.power(kind(1.0), noise, critical) >= SEEN]
        errors = []
        for kind in seen:
            strength = _crossing(
                lambda s, kind=kind: self.power(kind(s), noise, critical) >= SEEN, 0.0, 1.0
            )
            errors.append(self.size(kind(strength)))
        return max(errors, default=None), self.drawn_together not in seen

    def rows(self, size):
        """The rows, all of one weight, with which an error of a mean `size` of either kind is seen.

        Of both kinds the larger number, as far as there are errors of that size; None where there
        are none, or where more than 1e12 rows would be needed.
        """
        critical = self._critical_of_one_row()
        numbers = []
        for kind in self.kinds:
            if self.size(kind(1.0)) < size:
                continue
            strength = _crossing(lambda s, kind=kind: self.size(kind(s)) >= size, 0.0, 1.0)
            truth = kind(strength)

            def found(log, truth=truth):
                n = np.exp(log)
                return self.power(truth, self.share / n, critical / np.sqrt(n)) >= SEEN

            if not found(np.log(_MOST_ROWS)):
                return None
            numbers.append(float(np.exp(_crossing(found, 0.0, np.log(_MOST_ROWS)))))
        return max(numbers, default=None)

    def _critical_of_one_row(self):
        """What calibrated rows exceed with probability 0.05, times the root of their number.

        The squared statistic is a sum of chi-squares, of which the largest are drawn, always the
        same, and the others are replaced by their mean.
        """
        spread = np.sqrt(self.share * self.score * (1 - self.score))
        values = np.maximum(np.linalg.eigvalsh(spread[:, None] * self._kernel * spread), 0.0)
        largest, rest = values[-_TERMS:], values[:-_TERMS].sum()
        draws = np.random.default_rng(0).normal(size=(_DRAWS, len(largest)))
        return float(np.sqrt(np.quantile(draws**2 @ largest + rest, 1 - SIGNIFICANCE)))


def _crossing(holds, low, high):
    """From where on it holds, to 0.1 %; it holds at `high`."""
    while high - low > 1e-3 * high and high > 1e-9:
        half = (low + high) / 2
        low, high = (low, half) if holds(half) else (half, high)
    return high
