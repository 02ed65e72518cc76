"""The methods of sklearn_calib as calibrators of CalArena.

Put this file in the place of `custom_calibrators.py` in a copy of
https://github.com/probkit/CalArena, with sklearn_calib installed there; then

    python run_benchmark.py --benchmark tabrepo-binary --calibrator sklearn_calib-auto

runs one of them. The arena of this folder runs all of them through the same class.
"""

import warnings

import numpy as np

from sklearn_calib.recalibrators import all_recalibrators, get_recalibrator


class Ours:
    """A recalibrator with the two methods that CalArena calls.

    Parameters
    ----------
    recalibrator : str or recalibrator
        A registered name, or an instance.
    """

    def __init__(self, recalibrator):
        self.recalibrator = recalibrator

    def fit(self, p_cal, y_cal):
        """Probabilities of shape (n,) for two classes or (n, k), and labels 0 .. k - 1."""
        p_cal = np.asarray(p_cal)
        classes = np.arange(2 if p_cal.ndim == 1 else p_cal.shape[1])
        with warnings.catch_warnings():
            # all correct, no cell heavy enough: expected here
            warnings.simplefilter("ignore")
            self.fitted_ = get_recalibrator(self.recalibrator).fit(
                p_cal, y_cal, classes=classes
            )
        return self

    def predict_proba(self, p_test):
        return self.fitted_.predict_proba(p_test)


def _factory(name):
    return lambda: Ours(name)


CUSTOM_CALIBRATORS = {
    f"sklearn_calib-{name}": _factory(name) for name in all_recalibrators()
}
