"""Temperature and vector scaling by passes over blocks of rows, whose sums add up.

Vector scaling: Newton's method with the Hessian of a sample H_s reduces the gap to the
optimum by a constant factor per pass; L-BFGS that starts from H_s^-1 learns where H_s
is wrong, and is safe if the sample is small compared with the number of coefficients.
The decrement g' H^-1 g / 2 predicts the gap.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._typing import FloatArray
from ._softmax_regression import (
    SoftmaxFit,
    compute_softmax_loss_and_proba,
    fit_softmax_regression,
    make_diagonal_model_solver,
)
from ._temperature import (
    choose_sums_function,
    compute_halley_step_or_inf,
    compute_loss_beyond_cap_and_derivative,
    get_inverse_temperature_bounds,
    get_max_logit_gap_below_loss_cap,
    solve_temperature,
)

# A Halley step of log beta below the first limit has an error below 2e-7. If it is
# corrected by the higher derivatives of the sample, a step below the second limit has
# an error below 1e-6.
_MAX_HALLEY_LOG_STEP = 5e-3
_MAX_CORRECTED_LOG_STEP = 2e-2
# A class with a lower logit is impossible at any sensible coefficient.
MIN_SCALED_LOGIT = -1e4
# L-BFGS stores so many pairs of a step and the change of the gradient.
_MAX_LBFGS_PAIRS = 10


@dataclass(frozen=True)
class TemperatureLossSums:
    """Sums over some rows at one beta.

    Those of other rows are added.
    """

    # L, L', L'', L''', D and M as in `_temperature`.
    sums: FloatArray
    weight: float
    # The lowest and the highest logit.
    min_logit: float
    max_logit: float
    # The loss above the largest one that counts, and its derivative.
    loss_beyond_cap: FloatArray
    n_classes: int

    def __add__(self, other: Any) -> "TemperatureLossSums":
        return TemperatureLossSums(
            self.sums + other.sums,
            self.weight + other.weight,
            min(self.min_logit, other.min_logit),
            max(self.max_logit, other.max_logit),
            self.loss_beyond_cap + other.loss_beyond_cap,
            self.n_classes,
        )


def run_temperature_pass(logits, y_encoded, weight, beta):
    """Return the `TemperatureLossSums` of rows with float32 or float64 logits."""
    logits = np.ascontiguousarray(logits)
    lowest = float(logits.min())
    highest = float(logits.max())
    # A large number of entries chooses the compiled sums: there are many such blocks.
    sums = np.asarray(choose_sums_function(np.inf)(logits, y_encoded, weight, beta))
    # The loss of a row is capped at the largest one that float64 can express. Few
    # blocks come near the cap, and only those need the second pass.
    reachable = beta * (highest - lowest) > get_max_logit_gap_below_loss_cap(
        logits.shape[1]
    )
    excess = (
        compute_loss_beyond_cap_and_derivative(logits, y_encoded, weight, beta)
        if reachable
        else np.zeros(2)
    )
    return TemperatureLossSums(
        sums,
        float(weight.sum()),
        lowest,
        highest,
        excess,
        logits.shape[1],
    )


def make_corrected_halley_step_function(sample):
    """Return a step for `solve_temperature` that is better than Halley's.

    It uses `sample`, (logits, y_encoded, weight).

    If the first three derivatives of all rows at beta are known, the sample gives
    the rest of the slope at beta + step, in the ratio of the second derivatives. The
    relative error of the sample, some percent, is then that of what Halley's step
    leaves out.
    """
    # The sample gives the higher derivatives of the loss, which Halley's step neglects.
    # Its curvature is rescaled to that of all rows, because only the shape is borrowed.
    sums = choose_sums_function(np.inf)

    def compute_corrected_beta_step(beta, first, second, third):
        """Return the next step of beta, from the three derivatives of the loss of all rows."""
        step = halley = compute_halley_step_or_inf(first, second, third)
        # Far from the optimum the Taylor expansion of the sample does not hold, and
        # Halley's step is safe.
        if not abs(step) < 0.1 * beta:
            return step
        s1, s2, s3 = sums(*sample, beta)[1:4]
        for _ in range(2):
            t1, t2 = sums(*sample, beta + step)[1:3]
            slope = first + step * (second + step * third / 2)
            slope += second / s2 * (t1 - s1 - step * (s2 + step * s3 / 2))
            step -= slope / (
                second / s2 * (t2 - s2 - step * s3) + second + step * third
            )
        # If the correction is large, the sample disagrees with all rows and is not
        # used.
        return step if abs(step - halley) < 0.1 * abs(halley) else halley

    return compute_corrected_beta_step


def fit_temperature_passes_and_get_weight(
    run_pass, beta, label_smoothing=0.0, sample=None
):
    """Fit as `fit_temperature`, and return the sum of the weights too.

    `run_pass(beta)` is the pass of all rows.

    One pass is enough if the step after it changes log beta by less than
    `_MAX_HALLEY_LOG_STEP`, or, with a `sample`, `_MAX_CORRECTED_LOG_STEP`.
    """
    pass_beta = beta
    current_pass = run_pass(beta)

    def get_sums(beta):
        nonlocal pass_beta, current_pass
        # A pass reads all blocks, so the sums of the last beta are kept; the solver
        # often needs the same beta twice.
        if beta != pass_beta:
            pass_beta = beta
            current_pass = run_pass(beta)
        return current_pass.sums

    box = get_inverse_temperature_bounds(
        current_pass.max_logit - current_pass.min_logit or 1.0
    )
    solve_sums = partial(
        solve_temperature,
        get_sums,
        current_pass.weight,
        current_pass.n_classes,
        label_smoothing,
        beta,
        box,
    )
    if sample is None:
        fit = solve_sums(_MAX_HALLEY_LOG_STEP)
    else:
        fit = solve_sums(
            _MAX_CORRECTED_LOG_STEP, make_corrected_halley_step_function(sample)
        )
    if not label_smoothing:
        # The last pass was at a beta near the optimum; the capped part of the loss is
        # extrapolated linearly instead of reading all rows again.
        excess = (
            current_pass.loss_beyond_cap
            @ (1.0, fit.beta - pass_beta)
            / current_pass.weight
        )
        fit = fit._replace(loss=max(float(fit.loss - excess), 0.0))
    return fit, current_pass.weight


# -- vector scaling ------------------------------------------------------------------------------


@dataclass(frozen=True)
class VectorLossAndGradientSums:
    """Sums of the loss and its gradient over some rows.

    Those of other rows are added.
    """

    loss: float
    # The derivatives by the k factors, then by the k intercepts.
    gradient: FloatArray
    weight: float

    def __add__(self, other: Any) -> "VectorLossAndGradientSums":
        return VectorLossAndGradientSums(
            self.loss + other.loss,
            self.gradient + other.gradient,
            self.weight + other.weight,
        )


def sum_vector_scaling_loss_and_gradient(
    logits, y_encoded, weight, beta, coef, intercept
):
    """Return the `VectorLossAndGradientSums` of rows.

    The probabilities are softmax(coef max(beta (z - max z), -1e4) + intercept).
    """
    from ._temperature_compiled import add_vector_scaling_loss_and_gradient

    logits = np.ascontiguousarray(logits)
    gradient = np.zeros((2, logits.shape[1]))
    row = np.empty((2, len(coef)))
    loss = add_vector_scaling_loss_and_gradient(
        logits,
        y_encoded,
        weight,
        float(beta),
        coef,
        intercept,
        gradient,
        row,
    )
    return VectorLossAndGradientSums(float(loss), gradient.ravel(), float(weight.sum()))


def scale_logits_to_nonpositive(logits, beta):
    """Return the inputs of the model, at most 0, from logits."""
    logits = np.asarray(logits, dtype=np.float64)
    return np.maximum(
        beta * (logits - logits.max(axis=1, keepdims=True)), MIN_SCALED_LOGIT
    )


def fit_softmax_by_vector_passes(
    run_pass, sample, beta, penalty, tol=None, max_passes=100
):
    """Minimise mean loss + penalty (|A|^2 + |b|^2) over softmax((1 + A) s + b).

    ``run_pass(coef, intercept)`` is the `VectorLossAndGradientSums` of all rows at
    coef = 1 + A. `sample`, (z, codes, weight), gives the start and the Hessian. Stops
    when the loss is predicted to be less than `tol` above the smallest. The default,
    p / (20 n), is a tenth of the p / (2 n) that the p = 2 k coefficients cost on other
    rows.
    """
    x, solve = _find_sample_optimum_and_hessian_solver(*sample, beta, penalty)
    k = len(x) // 2
    value = np.inf
    slope = 0.0
    length = 1.0
    pairs = []
    step = np.zeros(2 * k)
    gradient = np.zeros(2 * k)
    for n_passes in range(1, max_passes + 1):
        trial = x + length * step
        current_pass = run_pass(1.0 + trial[:k], trial[k:])
        new_value = current_pass.loss / current_pass.weight + penalty * trial @ trial
        # Armijo's condition; each trial costs a pass, so the step is halved rather than
        # fitted.
        if new_value > value + 1e-4 * length * slope and length > 1e-8:
            length /= 2
            continue
        new_gradient = current_pass.gradient / current_pass.weight + 2 * penalty * trial
        if n_passes > 1:
            pairs = [
                *pairs[-_MAX_LBFGS_PAIRS + 1 :],
                (trial - x, new_gradient - gradient),
            ]
        x = trial
        value = new_value
        gradient = new_gradient
        step = -_apply_inverse_hessian(gradient, pairs, solve)
        length = 1.0
        slope = float(gradient @ step)
        # By default a tenth of the statistical error: 2 k coefficients have an expected
        # excess loss of 2 k / (2 n).
        enough = 2 * k / (20 * current_pass.weight) if tol is None else tol
        if -slope / 2 <= enough:
            break
    norm = float(np.abs(gradient).max())
    # The last step is applied although it was not evaluated: its predicted gain is
    # below the tolerance, and it costs no pass.
    x = x + step
    return SoftmaxFit(x[:k], x[k:], float(value + slope / 2), norm, -slope, n_passes)


def _find_sample_optimum_and_hessian_solver(logits, y_encoded, weight, beta, penalty):
    """Return the optimum of the sample and a solver.

    The solver is for systems of the Hessian at the optimum.
    """
    # The optimum of the sample is the start, and its Hessian the preconditioner, of all
    # further passes.
    k = logits.shape[1]
    logits = np.ascontiguousarray(scale_logits_to_nonpositive(logits, beta).T)
    ridge = np.full(k, float(penalty))
    w = weight / weight.sum()
    fit = fit_softmax_regression(
        logits,
        y_encoded,
        w,
        ridge,
        float(penalty),
        tol=k / (10 * len(y_encoded)),
    )
    proba = compute_softmax_loss_and_proba(
        logits,
        y_encoded,
        w,
        fit.A,
        fit.b,
        ridge,
        float(penalty),
    )[1]
    return np.r_[fit.A, fit.b], make_diagonal_model_solver(
        logits, w, proba, ridge, float(penalty)
    )


def _apply_inverse_hessian(gradient, pairs, solve):
    """Multiply the gradient by the inverse Hessian of L-BFGS.

    These are the two loops of Nocedal (1980).
    """
    # The two-loop recursion of L-BFGS. Pairs without positive curvature, which rounding
    # can cause near the optimum, would make the matrix indefinite.
    pairs = [(s, y, 1.0 / (s @ y)) for s, y in pairs if s @ y > 0]
    q = gradient.copy()
    alphas = []
    for s, y, rho in reversed(pairs):
        alphas.append(rho * (s @ q))
        q -= alphas[-1] * y
    q = solve(q)
    for (s, y, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        q += (alpha - rho * (y @ q)) * s
    return q
