"""dcurves: decision curves."""

import numpy as np
import pandas as pd
from dcurves import dca
from runner import Predictions

from sklearn_calib.decisions import decision_curve

THRESHOLDS = np.arange(1, 100) / 100


def cases():
    for n in (1000, 100_000):
        yield _net_benefit(n)
    yield _net_benefit(1000, harms=0.02)
    yield _net_benefit(1000, prevalence=0.1)


def _rows(n):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, n)
    p[::10] = p[::10].round(2)  # some stand on the thresholds
    return p, (rng.random(n) < p**1.2).astype(int)


def _net_benefit(n, harms=0.0, prevalence=None):
    p, y = _rows(n)
    frame = pd.DataFrame({"p": p, "y": y})

    def ours():
        curve = decision_curve(
            y, p, thresholds=THRESHOLDS, harms=harms, prevalence=prevalence
        )
        return np.array(
            [curve.net_benefit, curve.treat_all, curve.interventions_avoided]
        )

    def theirs():
        harm = {"p": harms} if harms else None
        table = dca(
            frame, "y", ["p"], THRESHOLDS, harm=harm, prevalence=prevalence, nper=100
        )
        model, everyone = (table[table["model"] == name] for name in ("p", "all"))
        return np.array([
            model["net_benefit"], everyone["net_benefit"], model["net_intervention_avoided"]
        ])  # fmt: skip

    options = f", harms {harms}" * bool(harms) + f", prevalence {prevalence}" * bool(
        prevalence
    )
    return Predictions(
        f"decision curve, 99 thresholds, n = {n}{options}",
        ours,
        theirs,
        tolerance=1e-9,
        note="ours has standard errors, intervals and bands, the peer none",
    )
