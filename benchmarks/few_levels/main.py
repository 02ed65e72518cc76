"""Maps from 150 rows of five levels of confidence, beside frequencies shrunk to a line."""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import betaln, expit, logit

from sklearn_calib.recalibrators import get_recalibrator

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
LEVELS = np.array([0.6, 0.8, 0.9, 0.95, 1.0])
SHARES = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
_SAID = logit(np.minimum(LEVELS, 0.99))
LAWS = {
    "line": expit(0.5 * _SAID - 0.3),  # for choosing
    "flat": np.full(5, 0.7),
    "bent": np.array([0.5, 0.55, 0.6, 0.8, 0.95]),  # for reporting
    "out of order": np.array([0.75, 0.6, 0.7, 0.9, 0.85]),
}
METHODS = (
    "identity",
    "default",
    "auto",
    "auto, folds by level",
    "platt",
    "isotonic",
    "histogram_binning",
    "levels",
)
STRENGTHS = np.geomspace(1, 1000, 25)
N_ROWS, N_DRAWS = 150, 40


def draw(law, rng):
    """Place of the level of each row, and whether the answer was right."""
    place = rng.choice(5, N_ROWS, p=SHARES)
    return place, (rng.random(N_ROWS) < LAWS[law][place]).astype(int)


def shrunk(place, y):
    """Frequencies of the levels, shrunk to Platt's line as the beta-binomial likelihood says."""
    line = get_recalibrator("platt").fit(LEVELS[place], y).predict_proba(LEVELS)[:, 1]
    n, right = (np.bincount(place, w, 5) for w in (None, y))
    a, b = np.outer(STRENGTHS, line), np.outer(STRENGTHS, 1 - line)
    likelihood = (betaln(a + right, b + n - right) - betaln(a, b)).sum(axis=1)
    s = STRENGTHS[likelihood.argmax()]
    return (right + s * line) / (n + s)


def probabilities(method, place, y):
    """What a method says of each of the five levels."""
    if method == "levels":
        return shrunk(place, y)
    name, _, folds = method.partition(",")
    more = {"groups": place} if folds else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer than five levels drawn
        found = get_recalibrator(name).fit(LEVELS[place], y, **more)
    return found.predict_proba(LEVELS)[:, 1]


def compute(law, method):
    """Expected log loss of fresh rows above that of the truth, over draws; the largest answer."""
    above, highest = [], 0.0
    q = LAWS[law]
    for number in range(N_DRAWS):
        place, y = draw(law, np.random.default_rng(number))
        p = probabilities(method, place, y)
        highest = max(highest, float(p.max()))
        eps = np.finfo(float).eps  # as wherever a log loss is evaluated
        p, rest = np.maximum(p, eps), np.maximum(1 - p, eps)
        above.append(SHARES @ (q * np.log(q / p) + (1 - q) * np.log((1 - q) / rest)))
    return {
        "law": law,
        "method": method,
        "draws": N_DRAWS,
        "nats_above_truth": round(float(np.mean(above)), 5),
        "standard_error": round(float(np.std(above) / np.sqrt(N_DRAWS)), 5),
        "largest_probability": highest,
    }


def run(law, method):
    """The row of one job."""
    return [compute(law, method)]


def main():
    jobs = [(law, method) for law in LAWS for method in METHODS]
    runner.study(HERE, jobs, run, processes=1)


if __name__ == "__main__":
    main()
