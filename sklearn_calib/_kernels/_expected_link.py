"""E_Z s(mu + tau Z), Z standard normal, for a link s, with its derivatives in mu and tau.

Every function takes arrays mu and one tau >= 0 and returns three arrays.

Logistic: 81 trapezoid nodes in z up to tau = 3; beyond, s(mu + tau Z) = P(L < mu + tau Z) for a
logistic L, hence 101 trapezoid nodes in L. Absolute error below 1e-12 for |mu| <= 60, tau <= 50.
Gauss-Hermite, the usual choice, needs 128 nodes for 1e-10 at tau = 2.6 and 4000 for 1e-6 at 30.
"""

from functools import partial

import numpy as np
from scipy.special import expit, log_ndtr, ndtr

_Z = np.linspace(-8, 8, 81)
_Z_WEIGHT = np.exp(-(_Z**2) / 2)
_Z_WEIGHT /= _Z_WEIGHT.sum()
_L = np.linspace(-32, 32, 101)
_L_WEIGHT = expit(_L) * expit(-_L)
_L_WEIGHT /= _L_WEIGHT.sum()
_STEEP_SLOPE = 3.0
_STEP, _TABLE = 0.01, 20_000  # of the table for many rows
_REACH = 8.3  # of the nodes for any link; the normal law has 1e-16 beyond


def density(z):
    """Of the standard normal law."""
    return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def in_parts(function, mu, size):
    """The three arrays of a function of mu, some rows at a time."""
    parts = [function(mu[i : i + size]) for i in range(0, max(1, len(mu)), size)]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def logistic(mu, tau):
    """For s(t) = 1 / (1 + exp(-t)); many rows are interpolated in a table, to 1e-11."""
    if len(mu) > _TABLE and np.ptp(mu) / _STEP < len(mu):
        return _interpolated(mu, tau)
    return _at_nodes(mu, tau)


def _at_nodes(mu, tau):
    return in_parts(lambda part: _logistic(part, tau), mu, 4096)


def _logistic(mu, tau):
    if tau <= _STEEP_SLOPE:
        value = expit(mu[:, None] + tau * _Z)
        slope = value * (1 - value)
        return value @ _Z_WEIGHT, slope @ _Z_WEIGHT, slope @ (_Z_WEIGHT * _Z)
    z = (mu[:, None] - _L) / tau
    bell = density(z) / tau
    return ndtr(z) @ _L_WEIGHT, bell @ _L_WEIGHT, -(bell * z) @ _L_WEIGHT


def _interpolated(mu, tau):
    """Cubic Hermite interpolation on a grid of mu; d slope / d mu is spread / tau, exactly."""
    low = mu.min()
    nodes = np.arange(low, mu.max() + 3 * _STEP, _STEP)
    value, slope, spread = _at_nodes(nodes, tau)
    bend = np.gradient(spread, _STEP, edge_order=2)
    curve = spread / tau if tau > 0 else np.gradient(slope, _STEP, edge_order=2)
    place = np.minimum(((mu - low) / _STEP).astype(np.intp), len(nodes) - 2)
    t = (mu - nodes[place]) / _STEP
    pairs = ((value, slope), (slope, curve), (spread, bend))
    parts = []
    for f, d in pairs:
        left, right = f[place], f[place + 1]
        rise, fall = _STEP * d[place], _STEP * d[place + 1]
        step = right - left
        curved = 3 * step - 2 * rise - fall + t * (rise + fall - 2 * step)
        parts.append(left + t * (rise + t * curved))
    return tuple(parts)


def probit(mu, tau):
    """For the standard normal distribution function: closed form."""
    norm = np.hypot(1, tau)
    z = mu / norm
    bell = density(z)
    return ndtr(z), bell / norm, -bell * mu * tau / norm**3


def clipped(mu, tau):
    """For s(t) = min(max(t, 0), 1): closed form."""
    if tau == 0:
        inside = (mu > 0) & (mu < 1)
        return np.clip(mu, 0, 1), inside.astype(float), np.zeros_like(mu)
    low, high = mu / tau, (mu - 1) / tau
    below, above = ndtr(low), ndtr(high)
    edge = density(low) - density(high)
    return mu * below - (mu - 1) * above + tau * edge, below - above, edge


def numerical(link):
    """The same for any function: 128 panels of 8 Gauss-Legendre nodes on +-8.3.

    1e-12 for smooth links of moderate steepness; 5e-6 to 6e-5 where the link has kinks.
    """
    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(-_REACH, _REACH, 129)
    half = (edges[1] - edges[0]) / 2
    z = ((edges[:-1] + half)[:, None] + half * nodes).ravel()
    weight = np.tile(weights, 128) * density(z)
    weight /= weight.sum()

    def expected(mu, tau):
        def part(mu):
            t = mu[:, None] + tau * z
            slope = (link(t + 1e-5) - link(t - 1e-5)) / 2e-5
            return link(t) @ weight, slope @ weight, slope @ (weight * z)

        return in_parts(part, mu, 512)

    return expected


LINKS = {"logit": logistic, "probit": probit, "clipped_relu": clipped}
CENTRE = {"logit": 0.0, "probit": 0.0, "clipped_relu": 0.5}  # s(c + t) = 1 - s(c - t)


def log_logistic(mu, tau):
    """Logarithm of the mean, exact in the lower tail, and its derivatives.

    Below -tau^2 / 2 by E s(mu + tau Z) = exp(mu + tau^2 / 2) E s(-mu - tau^2 + tau Z), which
    follows from s(t) = exp(t) s(-t).
    """
    low = mu < -(tau**2) / 2
    other = np.minimum(np.where(low, -mu - tau**2, mu), 60.0 + 8 * tau)  # then the mean is 1
    value, by_mu, by_tau = logistic(other, tau)
    value = np.maximum(value, 1e-300)
    by_mu, by_tau = by_mu / value, by_tau / value
    log = np.log(value) + np.where(low, mu + tau**2 / 2, 0.0)
    by_tau = np.where(low, tau + by_tau - 2 * tau * by_mu, by_tau)
    return log, np.where(low, 1 - by_mu, by_mu), by_tau


def log_probit(mu, tau):
    """The same for the standard normal distribution function."""
    norm = np.hypot(1, tau)
    z = mu / norm
    log = log_ndtr(z)
    ratio = np.exp(-0.5 * np.minimum(np.abs(z), 1e100) ** 2 - 0.5 * np.log(2 * np.pi) - log)
    far = z < -1e4
    ratio[far] = -z[far]
    return log, ratio / norm, -ratio * z * tau / norm**2


def _logarithm(expected, mu, tau):
    value, by_mu, by_tau = expected(mu, tau)
    value = np.maximum(value, 1e-300)
    return np.log(value), by_mu / value, by_tau / value


_LOG_LINKS = {
    "logit": log_logistic,
    "probit": log_probit,
    "clipped_relu": partial(_logarithm, clipped),
}


def log_likelihood(link, mu, tau, positive):
    """Logarithm of the probability of each label and its derivatives in mu and tau.

    The links with a name are symmetric, so that both labels are lower tails.
    """
    if callable(link):
        value, by_mu, by_tau = numerical(link)(mu, tau)
        sign = np.where(positive, 1.0, -1.0)
        hit = np.maximum(np.where(positive, value, 1 - value), 1e-300)
        return np.log(hit), sign * by_mu / hit, sign * by_tau / hit
    tail = np.where(positive, mu, 2 * CENTRE[link] - mu)
    log, by_mu, by_tau = _LOG_LINKS[link](tail, tau)
    return log, np.where(positive, by_mu, -by_mu), by_tau


def both_probabilities(link, mu, tau):
    """Probabilities of the negatives and the positives, the smaller one to its last digits."""
    if callable(link):
        value = np.clip(numerical(link)(mu, tau)[0], 0, 1)
        return 1 - value, value
    high = mu > CENTRE[link]
    smaller = np.exp(np.minimum(log_likelihood(link, mu, tau, ~high)[0], 0.0))
    return np.where(high, smaller, 1 - smaller), np.where(high, 1 - smaller, smaller)
