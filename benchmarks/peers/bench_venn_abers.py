"""venn-abers: inductive Venn-Abers prediction of one calibration set."""

import numpy as np
from runner import Predictions
from venn_abers import VennAbers as TheirVennAbers

from sklearn_calib.recalibrators import VennAbers


def _problem(n, a, b, m=None):
    rng = np.random.default_rng(0)
    p = rng.beta(a, b, n)
    y = (rng.random(n) < p).astype(int)
    queries = rng.beta(a, b, m or 1000)
    return p, y, queries


def _theirs(p, y, queries):
    def run():
        va = TheirVennAbers()
        va.fit(np.column_stack([1 - p, p]), y)
        return va.predict_proba(np.column_stack([1 - queries, queries]))[1]

    return run


def _ours(p, y, queries):
    return lambda: VennAbers().fit(p, y).predict_interval(queries)


def cases():
    skewed = _problem(200_000, 0.05, 3)
    even = _problem(20_000, 1, 1)
    large = _problem(1_000_000, 1, 1, 1_000_000)
    return [
        Predictions(
            "interval, n = 2e4 uniform scores, 1e3 queries",
            _ours(*even),
            _theirs(*even),
            tolerance=1e-4,
            note="the peer rounds scores to some digits",
        ),
        Predictions(
            "interval, n = 2e5 skewed scores Beta(.05, 3), 1e3 queries",
            _ours(*skewed),
            _theirs(*skewed),
            tolerance=1e-3,
            bar="ours <= 0.5 s",
        ),
        Predictions(
            "interval, n = 1e6 uniform scores, 1e6 queries",
            _ours(*large),
            bar="ours <= 2 s",
            note="the peer was not run at this size",
        ),
    ]
