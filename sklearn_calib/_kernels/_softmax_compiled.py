"""Loss and gradient of vector scaling, compiled: one reading of the scores."""

import math

import numpy as np

from ._compile import kernel
from ._temperature_compiled import exp_negative


@kernel(fastmath={"reassoc", "contract", "nsz"})
def vector_sums(z, codes, weight, beta, coef, intercept, gradient, row):
    """The loss is returned, the gradient is added to `gradient`; `row`, (2, k), is overwritten."""
    n, k = z.shape
    loss = 0.0 * beta
    for i in range(n):
        top = np.float64(z[i, 0])
        for c in range(k):
            top = max(top, np.float64(z[i, c]))
        highest = intercept[0] - 1e300
        for c in range(k):
            s = max(beta * (np.float64(z[i, c]) - top), -1e4)
            u = coef[c] * s + intercept[c]
            row[0, c] = s
            row[1, c] = u
            highest = max(highest, u)
        true, w, total = row[1, codes[i]] - highest, weight[i], 0.0 * beta
        for c in range(k):
            power = exp_negative(row[1, c] - highest)
            row[1, c] = power
            total += power
        share = w / total
        for c in range(k):
            p = share * row[1, c]
            gradient[0, c] += p * row[0, c]
            gradient[1, c] += p
        gradient[0, codes[i]] -= w * row[0, codes[i]]
        gradient[1, codes[i]] -= w
        loss += w * (math.log(total) - true)
    return loss
