"""Class frequencies of unlabelled rows from what predictions say on labelled ones."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.special import ndtri, softmax

from .._simplex_array import has_exact_log, log_proba
from .._typing import FloatArray, IntArray

_WORST_CONDITION = 1e10


class Confusion(NamedTuple):
    """What labelled rows say of the predictions.

    `given` : mean predictions of the rows of each class, one column per class; `spread` : entry
    (k, j) is the mean over rows of class j of the squared k-th entry of given^-1 @ prediction, or
    None where `given` has no inverse; `frequencies` : of the classes; `rows` : of each class.
    """

    given: FloatArray
    spread: FloatArray | None
    frequencies: FloatArray
    rows: FloatArray


def predicted(proba: FloatArray, hard: bool) -> FloatArray:
    """The predictions that are compared: probabilities, or 1 for the largest of them."""
    plain = np.asarray(proba)
    return np.eye(plain.shape[1])[plain.argmax(axis=1)] if hard else plain


def confusion(guess: FloatArray, codes: IntArray, weight: FloatArray) -> Confusion:
    """`Confusion` of labelled rows; columns of classes without a row are 0."""
    k = guess.shape[1]
    mass = np.bincount(codes, weight, k)
    share = weight / np.where(mass > 0, mass, 1.0)[codes]

    def means(columns):
        return np.array([np.bincount(codes, share * column, k) for column in columns])

    given, spread = means(guess.T), None
    if (mass > 0).all() and np.linalg.cond(given) < _WORST_CONDITION:
        spread = means((np.linalg.inv(given) @ guess.T) ** 2)
    total = np.bincount(codes, share**2, k)
    rows = np.divide(1.0, total, out=np.zeros(k), where=total > 0)
    return Confusion(given, spread, mass / mass.sum(), rows)


def on_simplex(raw: FloatArray) -> FloatArray:
    """Negative entries become 0, and the rest is divided by its sum."""
    kept = np.maximum(raw, 0.0)
    return kept / kept.sum()


def confusion_prior(
    known: Confusion, guess: FloatArray, weight: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Frequencies b with given @ b = mean prediction; their standard errors and intervals.

    The standard errors are those of the delta method, from the rows of both samples. The interval
    of a class holds each t with (raw estimate - t)^2 <= z^2 V(t), where V(t) is the variance if the
    frequency is t and the others keep their proportions: Wilson's interval where the predictions
    are perfect.
    """
    assert known.spread is not None
    share = weight / weight.sum()
    parts = np.linalg.inv(known.given) @ guess.T
    raw = parts @ share
    prior = on_simplex(raw)
    k = len(prior)
    noise = known.spread - np.eye(k)  # variances of the labelled rows' part, per squared frequency
    noise = np.maximum(noise, 0.0) / np.maximum(known.rows - 1.0, 1.0)
    se = np.sqrt((parts - raw[:, None]) ** 2 @ share**2 + noise @ prior**2)
    kept, z2 = share @ share, ndtri((1 - level) / 2) ** 2

    def variance(c, t):
        others = np.delete(np.arange(k), c)
        rest = prior[others].sum()
        b = np.empty(k)
        b[others] = (1 - t) * (prior[others] / rest if rest > 0 else 1.0 / (k - 1))
        b[c] = t
        return kept * (known.spread[c] @ b - t**2) + noise[c] @ b**2

    interval = np.empty((k, 2))
    for c in range(k):
        v0, v1, v_half = variance(c, 0.0), variance(c, 1.0), variance(c, 0.5)
        bend = 2 * v0 + 2 * v1 - 4 * v_half
        quadratic = 1 - z2 * bend, -2 * raw[c] - z2 * (v1 - v0 - bend), raw[c] ** 2 - z2 * v0
        interval[c] = _between_roots(*quadratic)
    low, high = np.clip(interval, 0.0, 1.0).T
    return prior, se, np.column_stack([np.minimum(low, prior), np.maximum(high, prior)])


def _between_roots(a, b, c):
    """Where a t^2 + b t + c <= 0 around its minimum; everything where it has none."""
    root = b * b - 4 * a * c
    if a <= 0 or root < 0:
        return (-np.inf, np.inf) if a <= 0 else (-b / (2 * a), -b / (2 * a))
    return (-b - np.sqrt(root)) / (2 * a), (-b + np.sqrt(root)) / (2 * a)


def regularised_prior(
    known: Confusion, guess: FloatArray, weight: FloatArray, penalty: float
) -> FloatArray:
    """Frequencies by the weights w >= 0 of smallest ||C w - mu|| + rho ||w - 1||.

    C is the joint table of predictions and classes, mu the mean prediction, and rho = `penalty`
    times the deviation of C that its number of rows n allows,
    3 (2 log(2 k / .05) / (3 n) + sqrt(2 log(2 k / .05) / n)).
    """
    k = len(known.frequencies)
    joint = known.given * known.frequencies
    miss = (weight / weight.sum()) @ guess - joint.sum(axis=1)
    few = np.log(2 * k / 0.05) / known.rows.sum()
    rho = penalty * 3 * (2 * few / 3 + np.sqrt(2 * few))

    def change(log_ridge):
        """The minimum of ||C theta - miss||^2 + ridge ||theta||^2 with theta >= -1."""
        ridge = np.sqrt(np.exp(log_ridge))
        table = np.vstack([joint, ridge * np.eye(k)])
        wanted = np.concatenate([miss + joint.sum(axis=1), np.full(k, ridge)])
        return nnls(table, wanted, maxiter=30 * k + 100)[0] - 1.0

    def slack(log_ridge):
        """Zero where the ridge is what the norms, without squares, ask for."""
        theta = change(log_ridge)
        left = np.linalg.norm(joint @ theta - miss)
        return np.exp(log_ridge) * np.linalg.norm(theta) - rho * left

    low, high = -60.0, 30.0
    if not miss.any() or rho == 0 or slack(low) > 0:
        theta = change(low) if miss.any() else np.zeros(k)
    elif slack(high) < 0:  # the penalty keeps all weights at 1
        theta = np.zeros(k)
    else:
        theta = change(brentq(slack, low, high, xtol=1e-13))
    return on_simplex((1.0 + theta) * known.frequencies)


LOG_OF_NOTHING = -1e30  # for exports, which hold finite numbers; its exponential is 0


def log_ratio(prior: FloatArray, source: FloatArray, strength: float) -> FloatArray:
    """What is added to the logarithms: strength log(prior / source), -inf where prior is 0."""
    with np.errstate(divide="ignore"):
        return strength * (np.log(prior) - np.log(source))


def moved_posterior(proba: FloatArray, added: FloatArray) -> FloatArray:
    """Rows proportional to p exp(added).

    A probability of 0 stays 0. Where nothing would be left of a row, because all that it has is on
    classes whose factor is 0, the classes that it calls impossible are equally so.
    """
    if has_exact_log(proba):
        z = log_proba(proba) + added
    else:
        with np.errstate(divide="ignore"):
            z = np.log(np.asarray(proba)) + added
        lost = np.isneginf(z.max(axis=1))
        if lost.any():
            z[lost] = log_proba(proba[lost]) + added
    return softmax(z, axis=1)
