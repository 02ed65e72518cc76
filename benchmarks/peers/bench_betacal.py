"""betacal: the reference implementation of beta calibration."""

import numpy as np
from betacal import BetaCalibration as TheirBeta
from runner import Predictions

from sklearn_calib.recalibrators import BetaCalibration


def cases():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 100_000)
    y = (rng.random(100_000) < p**1.3).astype(int)
    for kind in ("abm", "am", "ab"):
        yield Predictions(
            f"beta calibration {kind}, n = 1e5",
            lambda kind=kind: BetaCalibration(kind).fit(p, y).predict_proba(p)[:, 1],
            lambda kind=kind: TheirBeta(kind).fit(p[:, None], y).predict(p),
            tolerance=2e-3,
            note="the peer's general solver stops earlier",
        )
