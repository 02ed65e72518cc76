"""Level and power of the Hosmer-Lemeshow test of clusters, at several levels, on both sides."""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import hosmer_lemeshow_test

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import bins
import runner

HERE = Path(__file__).parent
LEVELS = (0.5, 0.1, 0.05, 0.01)
LAWS = [law for law in bins.LAWS if "weights" not in law]  # the test takes none
bins.LAWS["20 of 5"] = (20, 5, 0, 1)
bins.LAWS["20 of 20"] = (20, 20, 0, 1)


def draw_pvalues(law, draws, seed):
    """Return the p-values of samples that have both labels."""
    pvalues = []
    for number in range(draws):
        y, p, given = bins.draw(law, np.random.default_rng([number, seed, 53]))
        if np.ptp(y) == 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            how = {
                "n_resamples": 199,
                "random_state": np.random.default_rng([number, seed]),
            }
            pvalues.append(hosmer_lemeshow_test(y, p, **how, **given).pvalue)
    return np.array(pvalues)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("draws", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = []
    for law in ("20 of 5", "20 of 20", *LAWS):
        pvalues = draw_pvalues(law, given.draws, given.seed)
        row = {"law": law, "seed": given.seed, "draws": len(pvalues)}
        row |= {f"at {level}": f"{np.mean(pvalues <= level):.3f}" for level in LEVELS}
        rows.append(row)
        print(*row.values(), flush=True)
        runner.write(HERE / "hosmer_lemeshow.csv", rows)


if __name__ == "__main__":
    main()
