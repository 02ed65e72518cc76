"""Coverage of shares by `calibrated_mean` on both sides: rare and ordinary ones, few labels."""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import calibrated_mean

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import runner
from laws import N, expected

HERE = Path(__file__).parent
DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
JOBS = [
    (rate, n, weighted, DRAWS)
    for n in (100, 50, 500)
    for rate in (0.02, 0.05, 0.3)
    for weighted in (False, True)
]


def draw(rate, n, weighted, rng):
    """A good score; labels of n rows, or of the more the higher the root of the score is."""
    centre = brentq(lambda centre: expected(centre) - rate, -12, 2)
    p = expit(centre + 1.5 * rng.normal(size=N))
    y, score = (rng.random(N) < p).astype(int), expit((logit(p) + 0.8) / 1.2)
    if not weighted:
        return {"y": y[:n], "score": score[:n], "score_unlabelled": score[n:]}
    chance = np.minimum(n * np.sqrt(score) / np.sqrt(score).sum(), 1)
    there = rng.random(N) < chance
    rows = {"y": y[there], "score": score[there], "score_unlabelled": score[~there]}
    return rows | {"sample_weight": 1 / chance[there]}


def coverage(rate, n, weighted, draws):
    """One row of the table."""
    found = []
    for number in range(draws):
        call = draw(rate, n, weighted, np.random.default_rng([number, n, weighted]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            one = calibrated_mean(**call, bounds=(0, 1))
        found.append((one.low, one.high, one.labels_low, one.labels_high))
    low, high, labels_low, labels_high = np.array(found).T
    row = {"rate": rate, "labels": n, "weighted": weighted, "draws": draws}
    row |= runner.covered(low, high, rate) | {"width": f"{(high - low).mean():.4f}"}
    alone = runner.covered(labels_low, labels_high, rate)
    row |= {f"labels_{name}": share for name, share in alone.items()}
    return [row | {"labels_width": f"{(labels_high - labels_low).mean():.4f}"}]


def main():
    rows = runner.rounds(HERE / "rates.partial.jsonl", JOBS, coverage)
    runner.write(HERE / "rates.csv", rows)


if __name__ == "__main__":
    main()
