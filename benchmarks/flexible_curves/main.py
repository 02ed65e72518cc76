"""Coverage of the pointwise intervals of "loess" and "spline" reliability curves, both sides."""

import sys
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

from sklearn_calib.metrics import reliability_curve

HERE = Path(__file__).parent
LEVEL = 0.95
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CASES = {
    "calibrated": lambda z: z,
    "overconfident": lambda z: 0.6 * z,
    "too high": lambda z: z - 0.7,
    "bent": lambda z: z - 0.15 * z**2,
}
COLUMNS = ["case", "mean", "n", "strategy", "quantile", "draws"]
COLUMNS += ["covered", "truth_below", "truth_above", "width"]


def coverage(case, middle, n, draws, strategies=("loess", "spline")):
    """One row for each strategy and each of five quantiles of the predictions."""
    ends = {strategy: [] for strategy in strategies}
    normal = np.random.default_rng(2**32).normal(middle, 1.2, 200_000)
    at = expit(np.quantile(normal, QUANTILES))
    truth = expit(CASES[case](logit(at)))
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        z = rng.normal(middle, 1.2, n)
        y = (rng.random(n) < expit(CASES[case](z))).astype(int)
        for strategy in strategies:
            curve = reliability_curve(
                y, expit(z), strategy=strategy, level=LEVEL, labels=[0, 1]
            )
            bounds = curve.confidence_low, curve.confidence_high
            ends[strategy].append(
                [np.interp(at, curve.predicted, one) for one in bounds]
            )
    rows = []
    for strategy, found in ends.items():
        low, high = np.moveaxis(np.array(found), 1, 0)
        below, above = (truth < low).mean(axis=0), (truth > high).mean(axis=0)
        width = (high - low).mean(axis=0)
        for one in range(len(at)):
            row = [case, f"{expit(middle):.2f}", n, strategy, QUANTILES[one], draws]
            figures = 1 - below[one] - above[one], below[one], above[one], width[one]
            row += [f"{figure:.3f}" for figure in figures]
            rows.append(dict(zip(COLUMNS, row, strict=True)))
    return rows


def main():
    sys.path.insert(0, str(HERE.parent))
    import runner

    rows = []
    for n, draws in ((300, 400), (1000, 400)):
        for middle in (0.0, -2.0):
            for case in CASES:
                rows += coverage(case, middle, n, draws)
    runner.write(HERE / "results.csv", rows, COLUMNS)


if __name__ == "__main__":
    main()
