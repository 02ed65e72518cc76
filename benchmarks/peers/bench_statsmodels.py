"""statsmodels: the integrated calibration index by its lowess, of local lines."""

import numpy as np
from runner import Predictions
from statsmodels.nonparametric.smoothers_lowess import lowess

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import integrated_calibration_index


def cases():
    for n in (1000, 10_000, 100_000):
        proba, y = make_overconfident(2, n)
        p = np.ascontiguousarray(proba[:, 1])

        def theirs(p=p, y=y):
            spacing = 0.01 * np.ptp(p)
            curve = lowess(y, p, frac=0.75, it=0, delta=spacing, return_sorted=False)
            return np.mean(np.abs(curve - p))

        yield Predictions(
            f"ICI, n = {n}",
            lambda p=p, y=y: integrated_calibration_index(y, p),
            theirs,
            tolerance=2e-2,
            bar=">= 1x",
            note="theirs: local lines, interpolated within 1 % of the range",
        )
