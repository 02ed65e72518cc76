"""Level and power of tests by errors of bins, of clusters whose labels are drawn."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import calibration_test

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
STATISTICS = "expected_calibration_error", "maximum_calibration_error"
DRAWS = 250
#: Law: clusters, rows of each, log-odds are lower by, true slope.
LAWS = {
    "20 of 3": (20, 3, 0, 1),
    "30 of 5": (30, 5, 0, 1),
    "10 of 5": (10, 5, 0, 1),
    "60 of 1": (60, 1, 0, 1),
    "rare, 30 of 5": (30, 5, 3, 1),
    "rare, 10 of 5": (10, 5, 3, 1),
    "copies": (20, 4, 0, 1),
    "copies in half of the clusters": (20, 4, 0, 1),
    "1 to 12 rows": (30, 12, 0, 1),
    "weights 1 to 10": (30, 5, 0, 1),
    "60 soft labels of 5 votes": (60, 5, 0, 1),
    "overconfident, 30 of 5": (30, 5, 0, 0.6),
    "overconfident, 200 of 5": (200, 5, 0, 0.6),
}


def draw(law, rng):
    """Labels, predictions and the options of a test; a cause is shared by six tenths."""
    n_clusters, size, lower, slope = LAWS[law]
    groups = np.repeat(np.arange(n_clusters), size)
    if law.startswith("1 to"):
        groups = np.repeat(np.arange(n_clusters), rng.integers(1, size + 1, n_clusters))
    rows = len(groups)
    z = rng.normal(size=n_clusters)[groups] + 0.5 * rng.normal(size=rows) - lower
    cause = np.sqrt(0.6) * rng.normal(size=n_clusters)[groups] + np.sqrt(
        0.4
    ) * rng.normal(size=rows)
    if size == 1:
        cause = rng.normal(size=rows)
    if law.startswith("copies"):
        until = n_clusters // 2 if "half" in law else n_clusters
        own = groups < until
        z[own], cause[own] = (
            x[np.searchsorted(groups, groups[own])] for x in (z, cause)
        )
        cause[~own] = rng.normal(size=np.count_nonzero(~own))
    p = expit(z)
    if "votes" in law:
        p = p[::size]
        return rng.binomial(size, p) / size, p, {"soft_labels": True}
    given = {"groups": groups, "labels": [0, 1]}
    if "weights" in law:
        given["sample_weight"] = rng.integers(1, 11, rows).astype(float)
    return (norm.cdf(cause) < expit(slope * z)).astype(int), p, given


def main():
    most = float(sys.argv[1]) if len(sys.argv) > 1 else 480  # seconds of the processor
    found = {(law, name): [] for law in LAWS for name in STATISTICS}
    start = time.process_time()
    for number in range(DRAWS):
        if time.process_time() - start > most:
            break
        for place, law in enumerate(LAWS):
            y, p, given = draw(law, np.random.default_rng([place, number]))
            for name in STATISTICS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalibrationWarning)
                    test = calibration_test(
                        y,
                        p,
                        statistic=name,
                        n_resamples=199,
                        random_state=number,
                        **given,
                    )
                found[law, name].append(test.pvalue)
        if number % 50 == 49:
            table(found)
    table(found)


def table(found):
    rows = []
    for (law, name), pvalues in found.items():
        shares = {
            f"at {level}": f"{np.mean(np.array(pvalues) <= level):.3f}"
            for level in (0.05, 0.01)
        }
        rows.append({"law": law, "statistic": name, "draws": len(pvalues), **shares})
    runner.write(HERE / "bins.csv", rows)


if __name__ == "__main__":
    main()
