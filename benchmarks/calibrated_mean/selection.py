"""False alarms and power of the test in `calibrated_mean` of labels drawn at random."""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import calibrated_mean

HERE = Path(__file__).parent
LEVELS = (0.05, 0.01, 0.001)
N = 2000
CLUSTER = 10  # rows


def at_random(rng, n, n_levels=None):
    """Labels of n rows drawn at random; scores of few levels have ties."""
    p = expit(1.5 * rng.normal(size=N))
    y = (rng.random(N) < p).astype(int)
    score = p if n_levels is None else np.round(p * (n_levels - 1)) / (n_levels - 1)
    return {"y": y[:n], "score": score[:n], "score_unlabelled": score[n:]}


def in_clusters(rng, n):
    """Labels of all rows of n clusters drawn at random."""
    height = np.repeat(rng.normal(size=N // CLUSTER), CLUSTER)
    p = expit(height + 0.5 * rng.normal(size=N))
    y, cluster, n = (
        (rng.random(N) < p).astype(int),
        np.arange(N) // CLUSTER,
        n * CLUSTER,
    )
    rows = {"y": y[:n], "score": p[:n], "score_unlabelled": p[n:]}
    return rows | {"groups": cluster[:n], "groups_unlabelled": cluster[n:]}


def ordered(rng, n, key):
    """Labels of the n rows with the largest key of their scores."""
    p = expit(-1.5 + 1.5 * rng.normal(size=N))
    p = p[np.argsort(-key(p))]
    y = (rng.random(N) < p).astype(int)
    return {"y": y[:n], "score": p[:n], "score_unlabelled": p[n:], "bounds": (0, 1)}


LAWS = {
    "10 labels": lambda rng: at_random(rng, 10),
    "30 labels": lambda rng: at_random(rng, 30),
    "200 labels": lambda rng: at_random(rng, 200),
    "30 labels, two scores": lambda rng: at_random(rng, 30, 2),
    "30 labels, five scores": lambda rng: at_random(rng, 30, 5),
    "10 clusters": lambda rng: in_clusters(rng, 10),
    "30 clusters": lambda rng: in_clusters(rng, 30),
    "the 20 highest scores": lambda rng: ordered(rng, 20, lambda p: p),
    "the 20 scores nearest to 1/2": lambda rng: ordered(
        rng, 20, lambda p: -np.abs(p - 0.5)
    ),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("draws", type=int, nargs="?", default=400)
    # 7 was that of choosing the method
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = []
    for name, law in LAWS.items():
        pvalues = []
        for number in range(given.draws):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CalibrationWarning)
                found = calibrated_mean(
                    **law(np.random.default_rng([number, given.seed])), cv=2
                )
            pvalues.append(found.selection_pvalue)
        below = {
            f"p < {level}": float(np.mean(np.array(pvalues) < level))
            for level in LEVELS
        }
        rows.append({"law": name, "seed": given.seed, "draws": given.draws} | below)
        print(rows[-1], flush=True)
    with (HERE / "selection.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
