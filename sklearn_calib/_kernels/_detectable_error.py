"""Which errors the test by the kernel calibration error finds, with how many rows."""

import numpy as np
from scipy import stats
from scipy.special import expit

# The level of the test that decides on calibration.
SIGNIFICANCE_LEVEL = 0.05
# The bandwidth of its statistic, the kernel calibration error.
KERNEL_BANDWIDTH = 0.2
# An error is detectable if the test finds it with this probability.
TARGET_POWER = 0.8
_N_NULL_DRAWS = 50_000
_N_EIGENVALUES = 30
_MAX_SEARCHED_ROWS = 1e12


class DetectableErrors:
    """Errors of two kinds, and the power of the test against them.

    "shifted": log-odds that are all too far from 0 by one amount. "drawn_together":
    log-odds that are too far from their mean by one factor (overconfidence), up to
    scores without information. The squared statistic is a quadratic form of the
    residuals; its distribution is taken as normal, with the mean and the variance of
    the form under normal residuals.

    Parameters
    ----------
    score, weight_fraction : ndarray of shape (n_cells,)
        Scores, and the parts of all rows that have them.
    log_odds : ndarray of shape (n_cells,)
        The log-odds of the scores.
    bandwidth : float
    """

    def __init__(self, score, weight_fraction, log_odds, bandwidth=KERNEL_BANDWIDTH):
        self.score = score
        self.weight_fraction = weight_fraction
        self._log_odds = log_odds
        # The Laplace kernel is universal, so the kernel calibration error is 0 only for
        # calibrated predictions.
        self._kernel = np.exp(-np.abs(score[:, None] - score) / bandwidth)
        self._middle = weight_fraction @ log_odds
        self._toward = -1.0 if weight_fraction @ score > 0.5 else 1.0
        self.kinds = (
            [self.make_shifted_proba]
            if np.ptp(log_odds) < 1e-9
            else [self.make_shifted_proba, self.make_shrunk_proba]
        )

    def make_shifted_proba(self, strength):
        return expit(self._log_odds + self._toward * strength * 20)

    def make_shrunk_proba(self, strength):
        return expit(self._middle + (1 - strength) * (self._log_odds - self._middle))

    def measure_size(self, truth):
        """Return the mean distance between the scores and the truth."""
        return float(self.weight_fraction @ np.abs(truth - self.score))

    def compute_power(self, truth, weight_fraction_per_row, critical):
        """Return the probability that the statistic exceeds `critical`.

        `weight_fraction_per_row` is weight_fraction / rows.
        """
        # Mean and variance of the V-statistic under the truth; its distribution is
        # close to normal once the mean is large, which is the case at a power of 0.8.
        gap = self.weight_fraction * (truth - self.score)
        spread = weight_fraction_per_row * truth * (1 - truth)
        pull = self._kernel @ gap
        mean = gap @ pull + spread.sum()
        variance = 2 * spread @ (self._kernel**2 @ spread) + 4 * spread @ pull**2
        return stats.norm.sf((critical**2 - mean) / np.sqrt(max(variance, 1e-300)))

    def find_min_error_or_none_and_is_blind(self, weight_fraction_per_row, critical):
        """Return the smallest detectable error, and whether the test is blind.

        The error is the larger of both kinds, and None if there is none.

        It is blind if it misses even scores without any information.
        """
        errors = []
        is_blind = True
        for distort in self.kinds:

            def is_detected(strength, distort=distort):
                power = self.compute_power(
                    distort(strength), weight_fraction_per_row, critical
                )
                return power >= TARGET_POWER

            if not is_detected(1.0):
                continue
            # Scores that are shrunk all the way have no information.
            if distort == self.make_shrunk_proba:
                is_blind = False
            # The power rises with the strength of an error, so bisection finds where it
            # reaches the target.
            strength = _find_crossing(is_detected, 0.0, 1.0)
            errors.append(self.measure_size(distort(strength)))
        return max(errors, default=None), is_blind

    def count_rows_to_detect(self, size) -> float | None:
        """Return the rows, all of one weight, that reveal an error of this mean size.

        Of both kinds the larger number, as far as there are errors of that size; None
        if there are none, or if more than 1e12 rows would be needed.
        """
        critical = self._draw_scaled_critical_value()
        max_log_rows = np.log(_MAX_SEARCHED_ROWS)
        numbers = []
        for distort in self.kinds:

            def is_large(strength, distort=distort):
                return self.measure_size(distort(strength)) >= size

            if not is_large(1.0):
                continue
            truth = distort(_find_crossing(is_large, 0.0, 1.0))

            def is_detected(log_n_rows, truth=truth):
                n = np.exp(log_n_rows)
                noise = self.weight_fraction / n
                power = self.compute_power(truth, noise, critical / np.sqrt(n))
                return power >= TARGET_POWER

            if not is_detected(max_log_rows):
                return None
            log_rows = _find_crossing(is_detected, 0.0, max_log_rows)
            numbers.append(float(np.exp(log_rows)))
        return max(numbers, default=None)

    def _draw_scaled_critical_value(self):
        """Return the critical value times the root of the number of rows.

        Calibrated rows exceed it with probability 0.05.

        The squared statistic is a sum of chi-squares, of which the largest are drawn,
        always the same, and the others are replaced by their mean.
        """
        spread = np.sqrt(self.weight_fraction * self.score * (1 - self.score))
        # Under calibration the statistic is a weighted sum of chi-square variables,
        # whose weights are the eigenvalues of the kernel between residuals.
        values = np.maximum(
            np.linalg.eigvalsh(spread[:, None] * self._kernel * spread), 0.0
        )
        largest = values[-_N_EIGENVALUES:]
        # The many small eigenvalues add almost no variance, so their mean replaces
        # their draws.
        other_values = values[:-_N_EIGENVALUES].sum()
        draws = np.random.default_rng(0).normal(size=(_N_NULL_DRAWS, len(largest)))
        return float(
            np.sqrt(
                np.quantile(draws**2 @ largest + other_values, 1 - SIGNIFICANCE_LEVEL)
            )
        )


def _find_crossing(holds, low, high):
    """Return where `holds` becomes true, to 0.1 %; it is true at `high`."""
    while high - low > 1e-3 * high and high > 1e-9:
        half = (low + high) / 2
        low, high = (low, half) if holds(half) else (half, high)
    return high
