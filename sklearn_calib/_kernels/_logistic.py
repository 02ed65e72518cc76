"""Small logistic regressions with soft targets and sign constraints, by projected Newton steps."""

import numpy as np


def logistic_loss(features, target, weight, coef):
    """Mean cross-entropy of soft targets in nats, and probabilities: one exponential per row."""
    z = features @ coef
    small = np.exp(-np.abs(z))
    loss = weight @ (np.maximum(z, 0) + np.log1p(small) - target * z)
    return loss / weight.sum(), np.where(z >= 0, 1.0, small) / (1.0 + small)


def fit_logistic(features, target, weight, start, lower, max_iter=200, tol=1e-12):
    """Minimise the cross-entropy of expit(features @ coef) over coef >= lower.

    Convex, with a handful of columns. Bertsekas (1982), "Projected Newton methods for optimization
    problems with simple constraints": coordinates that sit at their bound with the gradient
    pointing outwards are fixed, a Newton step is taken in the others, and an Armijo search runs
    along the projected arc. Returns (coef, gradient) at the solution.
    """
    total = weight.sum()
    coef = np.maximum(np.asarray(start, dtype=float), lower)
    loss, proba = logistic_loss(features, target, weight, coef)
    for _ in range(max_iter):
        gradient = features.T @ (weight * (proba - target)) / total
        free = ~((coef <= lower) & (gradient > 0))
        curvature = weight * proba * (1 - proba) / total
        part = features[:, free]
        hessian = part.T @ (curvature[:, None] * part)
        step = np.zeros_like(coef)
        step[free] = -_solve(hessian, gradient[free])
        last = -gradient @ step <= tol * max(loss, 1e-3)  # Newton decrement
        length = 1.0
        while length > 1e-12:
            trial = np.maximum(coef + length * step, lower)
            trial_loss, trial_proba = logistic_loss(features, target, weight, trial)
            if trial_loss <= loss + 1e-4 * gradient @ (trial - coef):
                break
            length *= 0.5
        else:
            break  # no progress is possible in floating point
        coef, loss, proba = trial, trial_loss, trial_proba
        if last:
            break
    return coef, features.T @ (weight * (proba - target)) / total


def _solve(hessian, gradient):
    """Newton system; scaled to a unit diagonal, least-norm where it is singular."""
    scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian / np.outer(scale, scale)
    return np.linalg.lstsq(scaled, gradient / scale, rcond=1e-13)[0] / scale


def smoothed_targets(codes, weight):
    """Platt's targets: (N+ + 1)/(N+ + 2) for the positives, 1/(N- + 2) for the negatives.

    Platt (1999), section 2.2. N+ and N- are sums of weights.
    """
    positive = weight[codes == 1].sum()
    negative = weight[codes == 0].sum()
    return np.where(codes == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))


def separated(score, codes):
    """Whether one threshold on the score splits the classes: -1 reversed, 0 no, +1 yes.

    A tie at the threshold counts as split (the maximum likelihood is then infinite as well). A
    missing class counts as split.
    """
    if np.all(codes == codes[0]):
        return 1
    negative, positive = score[codes == 0], score[codes == 1]
    if negative.max() <= positive.min():
        return 1
    return -1 if positive.max() <= negative.min() else 0
