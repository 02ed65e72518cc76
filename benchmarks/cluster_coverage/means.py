"""Coverage of intervals of losses, and of differences of losses, of rows in few clusters."""

import sys
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from sklearn_calib.inference import confidence_interval, paired_difference
from sklearn_calib.metrics import all_metrics

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import runner
from main import SHIFT, SLOPE

HERE = Path(__file__).parent
MEASURES = "log_loss", "brier_loss"
SIZES = {  # rows of each cluster
    "5": lambda n, rng: np.full(n, 5),
    "1 to 12": lambda n, rng: rng.integers(1, 13, n),
    "lognormal": lambda n, rng: np.maximum(
        1, np.rint(5 * np.exp(rng.normal(size=n) - 0.5))
    ),
}
DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 600
JOBS = [
    (family, n_clusters, sizes, DRAWS)
    for n_clusters in (20, 10, 40)
    for sizes in SIZES
    for family in SHIFT
]


def draw(family, n_clusters, sizes, rng):
    """The laws of ``main.py``, with clusters of other sizes."""
    size = SIZES[sizes](n_clusters, rng).astype(int)
    groups, rows = np.repeat(np.arange(n_clusters), size), size.sum()
    z = (
        rng.normal(size=n_clusters)[groups]
        + 0.5 * rng.normal(size=rows)
        + SHIFT[family]
    )
    cause = np.sqrt(0.6) * rng.normal(size=n_clusters)[groups]
    cause = cause + np.sqrt(0.4) * rng.normal(size=rows)
    y = (norm.cdf(cause) < expit(SLOPE[family] * z)).astype(int)
    return groups, z, z + 0.5 * rng.normal(size=rows), y


def population(family):
    """Both models' measures; rows of a cluster have the law of all."""
    _, z, other, _ = draw(family, 60_000, "5", np.random.default_rng(2**32))
    truth = expit(SLOPE[family] * z)
    y, weight = np.repeat([1, 0], len(z)), np.r_[truth, 1 - truth]
    return {
        name: [
            all_metrics()[name](y, np.tile(expit(one), 2), sample_weight=weight)
            for one in (z, other)
        ]
        for name in MEASURES
    }


def coverage(family, n_clusters, sizes, draws):
    """Rows of the table: one for each measure, and one for each difference."""
    truth, ends = population(family), {}
    for number in range(draws):
        rng = np.random.default_rng([n_clusters, number])
        groups, z, other, y = draw(family, n_clusters, sizes, rng)
        given = {"groups": groups, "labels": [0, 1]}
        for name in MEASURES:
            one = confidence_interval(y, expit(z), name, **given)
            two = paired_difference(y, expit(z), expit(other), name, **given)
            for quantity, found in (("one model", one), ("difference", two)):
                ends.setdefault((name, quantity), []).append((found.low, found.high))
    rows = []
    for (name, quantity), found in ends.items():
        first, second = truth[name]
        value = first if quantity == "one model" else second - first
        head = {"family": family, "clusters": n_clusters, "rows_of_each": sizes}
        head |= {"measure": name, "quantity": quantity, "draws": len(found)}
        low, high = np.array(found).T
        width = {"median_width": f"{np.median(high - low):.4f}"}
        rows.append(head | runner.covered(low, high, value) | width)
    return rows


def main():
    rows = runner.rounds(HERE / "means.partial.jsonl", JOBS, coverage)
    runner.write(HERE / "means.csv", rows)


if __name__ == "__main__":
    main()
