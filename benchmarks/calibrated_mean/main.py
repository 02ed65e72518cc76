"""Coverage of `calibrated_mean`, beside the labels alone and ppi-python; which map is best."""

import sys
import warnings
from pathlib import Path

import numpy as np

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import calibrated_mean

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import runner
from laws import LAWS

HERE = Path(__file__).parent
LEVEL = 0.95
MANY, SOME, FEW = 2000, 1000, 500
AMONG_MAPS = 100
#: The number of draws decides how sure the table is: 2000 tell 0.95 from 0.94 and 0.96.
DRAWS = dict.fromkeys(LAWS, FEW)
DRAWS |= dict.fromkeys(("reference", "useless", "perfect", "reversed"), MANY)
DRAWS |= dict.fromkeys(("numbers", "30 numbers", "grades 1 to 10", "verdicts"), MANY)
DRAWS |= dict.fromkeys(("30 labels", "clustered"), SOME)
DRAWS["two systems that rarely differ, 40 clusters"] = 200
MAPS = ("line", "isotonic", "spline", "quadratic")
COMPARED = ("reference", "useless", "curved", "30 labels", "1 % positives")
PLANNED = ("reference", "numbers", "clustered", "1 % positives")
JOBS = [
    (law, "line", draws)
    for law, draws in sorted(DRAWS.items(), key=lambda job: -job[1])
]
JOBS += [(law, "planned", AMONG_MAPS) for law in PLANNED]
JOBS += [(law, name, AMONG_MAPS) for law in COMPARED for name in MAPS]
JOBS = list(dict.fromkeys(JOBS))


def estimate(law, draw, recalibrator):
    """The result of one draw."""
    call = LAWS[law][0](np.random.default_rng([draw, list(LAWS).index(law)]))
    options = {"recalibrator": recalibrator, "level": LEVEL}
    if isinstance(call, list):
        one, two = (calibrated_mean(**each, **options) for each in call)
        return two.difference(one)
    return calibrated_mean(**call, **options)


def planned(law, draws):
    """Widths with the labels that `labels_needed` asks for, from half the rows of the law."""
    draw, options = LAWS[law][0], {"level": LEVEL}
    n = 1000 if law == "1 % positives" else 200
    found = {"asked": [], "got": [], "rows": []}
    for number in range(draws):
        rng = np.random.default_rng([number, 99])
        first = calibrated_mean(**draw(rng, n=n), **options)
        width = 0.8 * (first.labels_high - first.labels_low)
        rows = first.labels_needed(width)
        rows = -(-rows // 5) * 5  # whole clusters
        second = calibrated_mean(**draw(rng, n=rows), **options)
        for name, value in zip(
            found, (width, second.high - second.low, rows), strict=True
        ):
            found[name].append(value)
    row = {"law": law, "recalibrator": "line", "draws": draws}
    row["planned_width"] = f"{np.mean(found['asked']):.4f}"
    row["width"] = f"{np.mean(found['got']):.4f}"
    row["planned_labels"] = f"{np.mean(found['rows']):.0f}"
    return [row]


def coverage(law, recalibrator, draws):
    """One row of the table."""
    if recalibrator == "planned":
        return planned(law, draws)
    truth = LAWS[law][1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        found = [estimate(law, draw, recalibrator) for draw in range(draws)]
    column = {
        name: np.array([getattr(each, name) for each in found])
        for name in ("estimate", "se", "low", "high", "raw")
    }
    alone = {
        name: np.array([getattr(each, f"labels_{name}") for each in found])
        for name in ("estimate", "se", "low", "high")
    }
    row = {
        "law": law,
        "recalibrator": recalibrator,
        "draws": draws,
        "truth": f"{truth:.4f}",
    }
    row["raw_mean"] = f"{column['raw'].mean():.4f}"
    for name, each in (("", column), ("labels_", alone)):
        low, high = each["low"], each["high"]
        row[f"{name}covered"] = f"{((low <= truth) & (truth <= high)).mean():.4f}"
        row[f"{name}truth_below"] = f"{(truth < low).mean():.4f}"
        row[f"{name}truth_above"] = f"{(truth > high).mean():.4f}"
        row[f"{name}bias"] = f"{each['estimate'].mean() - truth:.5f}"
        row[f"{name}se"] = f"{each['se'].mean():.5f}"
        row[f"{name}deviation"] = f"{each['estimate'].std():.5f}"
        row[f"{name}width"] = f"{(high - low).mean():.4f}"
    width = column["high"] - column["low"]
    row["wider"] = int((width > (alone["high"] - alone["low"]) * (1 + 1e-12)).sum())
    return [row]


def main():
    runner.study(HERE, JOBS, coverage)


if __name__ == "__main__":
    main()
