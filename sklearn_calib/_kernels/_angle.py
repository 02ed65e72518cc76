"""The inner product of estimated and true coefficients, from training data alone.

For Gaussian rows with covariance S, y a function of w*'x (w*'S w* = 1) and noise, and w a penalised
fit whose leave-one-out scores are u. Notation of Li and Sur (2025), equation 11; corrected: gamma
is df / (n v), not df.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lstsq


class Observables(NamedTuple):
    """What the formulas need of a fit; scores centred where the fit has an intercept.

    scores f, residuals psi = -l'(f), curvatures D = l''(f), m = 1 - D_i h_i, d all coefficients.
    """

    f: np.ndarray
    psi: np.ndarray
    gamma: float
    v: float
    d: int

    @property
    def u(self):
        """Leave-one-out scores, to first order."""
        return self.f - self.gamma * self.psi


def observables(f, psi, curvature, m, d, intercept):
    """From the parts of a fit; with an intercept the scores are centred, psi sums to 0 already."""
    n = len(f)
    v = float(np.mean(curvature * m))
    df = n - m.sum() - intercept
    gamma = float(df / (n * v))
    centre = (f - gamma * psi).mean() if intercept else 0.0
    return Observables(f - centre, psi, gamma, v, d)


def by_covariance(seen, quadratic, norm2=None):
    """(N, t2): a = N / sqrt(t2) estimates <w*, w>_S (equation 11).

    quadratic = psi'X S^-1 X'psi / n^2, 0 for a fit without penalty. `norm2` is w'S w where S is
    known, else the mean square of u stands for it; the same in both, mixing them is worse.
    """
    n = len(seen.f)
    size = np.mean(seen.u**2) if norm2 is None else norm2
    r2 = np.mean(seen.psi**2)
    cross = np.mean(seen.psi * seen.f)
    inner = seen.v * size + cross - seen.gamma * r2
    t2 = quadratic + 2 * seen.v * cross + seen.v**2 * size - seen.d / n * r2
    return float(inner), float(t2)


def by_least_squares(seen, X, y, intercept):
    """(N, t2) without any covariance, for n > d: the least squares fit of y is the pivot.

    Its leave-one-out scores have the same correlation with the truth, and their own scale is
    known from the same formulas, where the covariance drops out since X'psi = 0.
    """
    n = len(y)
    if intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    fitted = X @ lstsq(X, y, check_finite=False, lapack_driver="gelsy")[0]
    psi = y - fitted
    v = 1 - seen.d / n
    gamma = seen.d / n / v
    u = fitted - gamma * psi
    t2 = v**2 * np.mean(u**2) - seen.d / n * np.mean(psi**2)
    inner = v * np.mean(u * seen.u) - seen.gamma * np.mean(psi * seen.psi)
    return float(inner), float(t2)


def quadratic_form(X, psi, covariance):
    """psi'X S^-1 X'psi / n^2; LinAlgError where S is not positive definite."""
    g = X.T @ psi / len(psi)
    return float(g @ cho_solve(cho_factor(covariance, lower=True), g))
