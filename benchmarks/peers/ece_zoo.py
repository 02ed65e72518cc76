"""One set of predictions, the ECE of every library that has one, and our option that equals it."""

import csv
from pathlib import Path

import numpy as np

from sklearn_calib.metrics import calibration_error


def main():
    import calibration as uncertainty_calibration
    import netcal.metrics
    from mapie.metrics.calibration import expected_calibration_error as mapie_ece

    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2.0, 2000)
    y = (rng.random(2000) < p**1.2).astype(int)
    both = np.column_stack([1 - p, p])
    width = {"strategy": "uniform"}
    rows = [
        (
            "netcal ECE(10), positive class",
            netcal.metrics.ECE(10).measure(p, y),
            "strategy='uniform', n_bins=10",
            {**width, "n_bins": 10},
        ),
        (
            "netcal ECE(10), two columns",
            netcal.metrics.ECE(10).measure(both, y),
            "strategy='uniform', n_bins=10 (two classes: the positive one)",
            {**width, "n_bins": 10},
        ),
        (
            "MAPIE expected_calibration_error (num_bins=50)",
            mapie_ece(y, p),
            "strategy='uniform', n_bins=49 (its 50 are edges)",
            {**width, "n_bins": 49},
        ),
        (
            "uncertainty-calibration get_ece (15 bins)",
            uncertainty_calibration.get_ece(both, y),
            "strategy='uniform', multiclass='confidence'",
            {**width, "multiclass": "confidence"},
        ),
        (
            "uncertainty-calibration get_calibration_error (root mean square, debiased)",
            uncertainty_calibration.get_calibration_error(p, y),
            "norm='l2', debias=True (its noise estimate leaves the scores out)",
            {"norm": "l2", "debias": True},
        ),
        ("this package, default", None, "(15 bins of equal mass, positive class)", {}),
    ]
    with open(
        Path(__file__).with_name("ece_zoo.csv"), "w", newline="", encoding="utf-8"
    ) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["library", "its number", "our options", "our number"])
        for name, value, options, keywords in rows:
            ours = calibration_error(y, both, **{"n_bins": 15, **keywords})
            writer.writerow(
                [name, "" if value is None else f"{value:.4f}", options, f"{ours:.4f}"]
            )
            print(name, value, ours)


if __name__ == "__main__":
    main()
