"""E_Z s(mu + tau Z), Z standard normal, for a link s, with its derivatives in mu and tau.

Every function takes arrays mu and one tau >= 0 and returns three arrays.

Logistic: 81 trapezoid nodes in z up to tau = 3; beyond, s(mu + tau Z) = P(L < mu + tau
Z) for a logistic L, hence 101 trapezoid nodes in L. Absolute error below 1e-12 for |mu|
<= 60, tau <= 50. Gauss-Hermite, the usual choice, needs 128 nodes for 1e-10 at tau =
2.6 and 4000 for 1e-6 at 30.
"""

from functools import partial

import numpy as np
from scipy.special import expit, log_ndtr, ndtr

_NORMAL_NODES = np.linspace(-8, 8, 81)
_NORMAL_WEIGHTS = np.exp(-(_NORMAL_NODES**2) / 2)
_NORMAL_WEIGHTS /= _NORMAL_WEIGHTS.sum()
_LOGISTIC_NODES = np.linspace(-32, 32, 101)
_LOGISTIC_WEIGHTS = expit(_LOGISTIC_NODES) * expit(-_LOGISTIC_NODES)
_LOGISTIC_WEIGHTS /= _LOGISTIC_WEIGHTS.sum()
_MAX_TAU_FOR_NORMAL_NODES = 3.0
# From so many rows on, values are interpolated in a table of this step.
_LOGISTIC_TABLE_STEP = 0.01
_MIN_ROWS_TO_INTERPOLATE = 20_000
# The largest node for any link; the normal distribution has a mass of 1e-16 beyond.
_MAX_NODE_DEVIATIONS = 8.3


def compute_normal_density(z):
    """Return the density of the standard normal distribution."""
    return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def map_in_blocks(function, mu, block_size):
    """Return the three arrays of a function of mu, evaluated block by block."""
    block_values = [
        function(mu[i : i + block_size]) for i in range(0, max(1, len(mu)), block_size)
    ]
    return tuple(np.concatenate(blocks) for blocks in zip(*block_values, strict=True))


def average_logistic_and_derivatives(mu, tau):
    """Average s(t) = 1 / (1 + exp(-t)).

    Many rows are interpolated in a table, to 1e-11.
    """
    n_rows = len(mu)
    # A table is cheaper if it has fewer nodes than there are rows.
    if n_rows > _MIN_ROWS_TO_INTERPOLATE and np.ptp(mu) / _LOGISTIC_TABLE_STEP < n_rows:
        return _interpolate_logistic_and_derivatives(mu, tau)
    return _average_logistic_by_quadrature(mu, tau)


def _average_logistic_by_quadrature(mu, tau):
    return map_in_blocks(
        lambda block: _sum_logistic_quadrature_nodes(block, tau), mu, 4096
    )


def _sum_logistic_quadrature_nodes(mu, tau):
    """Sum over normal nodes if tau is small, else over logistic nodes."""
    if tau <= _MAX_TAU_FOR_NORMAL_NODES:
        # The trapezoid rule converges geometrically for functions that are analytic in
        # a strip. The poles of the logistic function come closer as tau grows, hence
        # the other form beyond tau = 3.
        value = expit(mu[:, None] + tau * _NORMAL_NODES)
        slope = value * (1 - value)
        return (
            value @ _NORMAL_WEIGHTS,
            slope @ _NORMAL_WEIGHTS,
            slope @ (_NORMAL_WEIGHTS * _NORMAL_NODES),
        )
    z = (mu[:, None] - _LOGISTIC_NODES) / tau
    bell = compute_normal_density(z) / tau
    return (
        ndtr(z) @ _LOGISTIC_WEIGHTS,
        bell @ _LOGISTIC_WEIGHTS,
        -(bell * z) @ _LOGISTIC_WEIGHTS,
    )


def _interpolate_logistic_and_derivatives(mu, tau):
    """Interpolate by cubics on a grid of mu; d slope / d mu is spread / tau, exactly."""
    low = mu.min()
    nodes = np.arange(low, mu.max() + 3 * _LOGISTIC_TABLE_STEP, _LOGISTIC_TABLE_STEP)
    value, slope, spread = _average_logistic_by_quadrature(nodes, tau)
    bend = np.gradient(spread, _LOGISTIC_TABLE_STEP, edge_order=2)
    # Stein's identity E[Z s'(mu + tau Z)] = tau E[s''(mu + tau Z)] gives this
    # derivative without differences.
    curve = (
        spread / tau
        if tau > 0
        else np.gradient(slope, _LOGISTIC_TABLE_STEP, edge_order=2)
    )
    index = np.minimum(
        ((mu - low) / _LOGISTIC_TABLE_STEP).astype(np.intp), len(nodes) - 2
    )
    t = (mu - nodes[index]) / _LOGISTIC_TABLE_STEP
    pairs = ((value, slope), (slope, curve), (spread, bend))
    parts = []
    for f, d in pairs:
        left = f[index]
        right = f[index + 1]
        rise = _LOGISTIC_TABLE_STEP * d[index]
        fall = _LOGISTIC_TABLE_STEP * d[index + 1]
        step = right - left
        curved = 3 * step - 2 * rise - fall + t * (rise + fall - 2 * step)
        parts.append(left + t * (rise + t * curved))
    return tuple(parts)


def average_clipped_relu_and_derivatives(mu, tau):
    """Average s(t) = min(max(t, 0), 1), in closed form."""
    if tau == 0:
        inside = (mu > 0) & (mu < 1)
        return np.clip(mu, 0, 1), inside.astype(float), np.zeros_like(mu)
    low = mu / tau
    high = (mu - 1) / tau
    below = ndtr(low)
    above = ndtr(high)
    edge = compute_normal_density(low) - compute_normal_density(high)
    return mu * below - (mu - 1) * above + tau * edge, below - above, edge


def make_normal_average_and_derivatives(link):
    """Return the average for any link.

    It uses 128 panels of 8 Gauss-Legendre nodes on +-8.3.

    1e-12 for smooth links of moderate steepness; 5e-6 to 6e-5 if the link has kinks.
    """
    # A link may have kinks, for which one rule over the whole line converges slowly;
    # short intervals confine the error to those that contain a kink.
    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(-_MAX_NODE_DEVIATIONS, _MAX_NODE_DEVIATIONS, 129)
    half = (edges[1] - edges[0]) / 2
    z = ((edges[:-1] + half)[:, None] + half * nodes).ravel()
    weight = np.tile(weights, 128) * compute_normal_density(z)
    weight /= weight.sum()

    def average_link_and_derivatives(mu, tau):
        def average_block_link_and_derivatives(mu):
            t = mu[:, None] + tau * z
            # The derivative of the user's link is not known; a central difference has
            # an error of about 1e-10 here.
            slope = (link(t + 1e-5) - link(t - 1e-5)) / 2e-5
            return link(t) @ weight, slope @ weight, slope @ (weight * z)

        return map_in_blocks(average_block_link_and_derivatives, mu, 512)

    return average_link_and_derivatives


# The centre of symmetry c of each link s: s(c + t) = 1 - s(c - t).
SYMMETRY_CENTRE_BY_LINK = {"logit": 0.0, "probit": 0.0, "clipped_relu": 0.5}


def log_average_logistic_and_derivatives(mu, tau):
    """Return the logarithm of the mean, exact in the lower tail, and its derivatives.

    Below -tau^2 / 2 by E s(mu + tau Z) = exp(mu + tau^2 / 2) E s(-mu - tau^2 + tau Z),
    which follows from s(t) = exp(t) s(-t).
    """
    # In the lower tail expit(t) is close to exp(t), whose mean is exp(mu + tau^2 / 2).
    # Tilting the normal distribution by it leaves a mean of expit that is not small.
    low = mu < -(tau**2) / 2
    # Beyond the upper limit the mean is 1 in float64.
    mirrored = np.minimum(np.where(low, -mu - tau**2, mu), 60.0 + 8 * tau)
    log, by_mu, by_tau = _take_log_with_derivatives(
        average_logistic_and_derivatives, mirrored, tau
    )
    log = log + np.where(low, mu + tau**2 / 2, 0.0)
    by_tau = np.where(low, tau + by_tau - 2 * tau * by_mu, by_tau)
    return log, np.where(low, 1 - by_mu, by_mu), by_tau


def log_average_probit_and_derivatives(mu, tau):
    """Return the same for the standard normal distribution function."""
    # E Phi(mu + tau Z) = Phi(mu / sqrt(1 + tau^2)). This makes Platt scaling and
    # angular calibration agree for a probit link: Li and Sur (2025), theorem 5 and eq.
    # (9).
    norm = np.hypot(1, tau)
    z = mu / norm
    log = log_ndtr(z)
    # The ratio of density and distribution function (the inverse Mills ratio), which is
    # -z far in the tail.
    ratio = np.exp(
        -0.5 * np.minimum(np.abs(z), 1e100) ** 2 - 0.5 * np.log(2 * np.pi) - log
    )
    is_far = z < -1e4
    ratio[is_far] = -z[is_far]
    return log, ratio / norm, -ratio * z * tau / norm**2


def _take_log_with_derivatives(compute_expected, mu, tau):
    value, by_mu, by_tau = compute_expected(mu, tau)
    value = np.maximum(value, 1e-300)
    return np.log(value), by_mu / value, by_tau / value


_LOG_MEAN_FUNCTIONS = {
    "logit": log_average_logistic_and_derivatives,
    "probit": log_average_probit_and_derivatives,
    "clipped_relu": partial(
        _take_log_with_derivatives, average_clipped_relu_and_derivatives
    ),
}


def compute_label_log_proba_and_derivatives(link, mu, tau, positive):
    """Return the log-probability of each label and its derivatives in mu and tau.

    The links with a name are symmetric, so that both labels are lower tails.
    """
    if callable(link):
        value, by_mu, by_tau = make_normal_average_and_derivatives(link)(mu, tau)
        sign = np.where(positive, 1.0, -1.0)
        likelihood = np.maximum(np.where(positive, value, 1 - value), 1e-300)
        return np.log(likelihood), sign * by_mu / likelihood, sign * by_tau / likelihood
    # By symmetry of the link, the probability of a negative label is that of a positive
    # one at the mirrored score; both tails then keep their digits.
    tail = np.where(positive, mu, 2 * SYMMETRY_CENTRE_BY_LINK[link] - mu)
    log, by_mu, by_tau = _LOG_MEAN_FUNCTIONS[link](tail, tau)
    return log, np.where(positive, by_mu, -by_mu), by_tau


def compute_negative_and_positive_proba(link, mu, tau):
    """Return probabilities of negatives and positives.

    The smaller one has all its digits.
    """
    if callable(link):
        value = np.clip(make_normal_average_and_derivatives(link)(mu, tau)[0], 0, 1)
        return 1 - value, value
    high = mu > SYMMETRY_CENTRE_BY_LINK[link]
    log = compute_label_log_proba_and_derivatives(link, mu, tau, ~high)[0]
    smaller = np.exp(np.minimum(log, 0.0))
    larger = 1 - smaller
    return np.where(high, smaller, larger), np.where(high, larger, smaller)
