"""Weights of a mixture: the maximum of a concave likelihood on the simplex."""

import numpy as np

_STEPS = 100
_SMALLEST_COUNT = 1e-3  # of the prior: a barrier that keeps all weights above 0


def mixture_weights(likelihood, mass, prior):
    """Maximise sum_i mass_i log(sum_m w_m likelihood_im) + sum_m prior_m log w_m.

    The posterior mode under a Dirichlet prior with prior_m invented rows for each part. Newton's
    method on the simplex with the step 1 / (1 + decrement), which is safe since the logarithms
    are self-concordant; EM for the same maximum takes thousands of steps where parts are alike.

    Parameters
    ----------
    likelihood : ndarray of shape (n, m), > 0
    mass : ndarray of shape (n,), >= 0
    prior : ndarray of shape (m,), counted as 0.001 where smaller

    Returns
    -------
    weights : ndarray of shape (m,)
        Sum 1.
    """
    prior = np.maximum(prior, _SMALLEST_COUNT)
    weights = prior / prior.sum()
    table = likelihood / likelihood.max(axis=1, keepdims=True)
    for _ in range(_STEPS):
        share = table / (table @ weights)[:, None]
        gradient = mass @ share + prior / weights
        hessian = (share * mass[:, None]).T @ share
        hessian.flat[:: len(prior) + 1] += prior / weights**2
        scale = 1 / np.sqrt(hessian.diagonal())
        scaled = hessian * scale * scale[:, None]
        scaled.flat[:: len(prior) + 1] += 1e-12
        both = np.linalg.solve(scaled, np.column_stack([scale * gradient, scale]))
        towards, level = scale[:, None].T * both.T
        step = towards - level * towards.sum() / level.sum()
        decrement = np.sqrt(max(step @ hessian @ step, 0.0))
        falling = step < 0
        furthest = 0.95 * (weights[falling] / -step[falling]).min(initial=np.inf)
        weights = weights + min(1.0 if decrement < 0.25 else 1 / (1 + decrement), furthest) * step
        weights /= weights.sum()
        if decrement < 1e-7:
            break
    return weights
