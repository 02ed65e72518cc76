"""Every measure on fixed data: numbers that must not move when the code behind them does.

``python tests/metrics/test_golden_values.py`` writes the file anew.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import sklearn_calib  # noqa: F401 - the measures of all sub-packages register
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import all_metrics

FILE = Path(__file__).parent.parent / "data" / "measures.json"
BINARY = [
    "calibration_decision_loss",
    "convolved_calibration_error",
    "cumulative_calibration_error",
    "expected_calibration_error",
    "integrated_calibration_index",
    "interval_calibration_error",
    "kernel_calibration_error",
    "lower_distance_to_calibration",
    "maximum_calibration_error",
    "random_interval_calibration_error",
    "smooth_calibration_error",
]
BINNED = [
    {"strategy": strategy, "n_bins": n_bins}
    for strategy in ("quantile", "uniform")
    for n_bins in (1, 7, 40)
]
OPTIONS = {
    **{
        name: [{"multiclass": m} for m in ("confidence", "top_label", "classwise")]
        for name in BINARY
    },
    "calibration_error": [
        {"norm": "l2"},
        {"norm": "max"},
        {"debias": True},
        {"norm": "l2", "debias": True},
        {"bin_weight": "equal"},
        *({"multiclass": "top_label", "norm": "l2", **bins} for bins in BINNED),
    ],
    "lp_calibration_error": [
        {"p": 1.0},
        {"p": np.inf},
        {"estimator": "unbiased"},
        {"n_levels": 5},
    ],
}
OPTIONS["expected_calibration_error"] += [
    *BINNED,
    {"debias": True},
    {"bin_weight": "equal"},
]
OPTIONS["kernel_calibration_error"] += [{"bandwidth": 0.1}]
OPTIONS["cumulative_calibration_error"] += [{"statistic": "mad"}]
OPTIONS["integrated_calibration_index"] += [
    {"smoother": s} for s in ("cox", "isotonic")
]
OPTIONS["convolved_calibration_error"] += [{"bandwidth": 0.05}]
OPTIONS["random_interval_calibration_error"] += [{"width": 0.03}]
OPTIONS["lower_distance_to_calibration"] += [{"resolution": 0.01}]


def datasets():
    """Two and more classes: plain, weighted, tied, saturated; name to (y, proba, weight)."""
    for k in (2, 4):
        proba, y = make_overconfident(k, 400, random_state=k)
        weight = np.random.default_rng(k).gamma(2.0, size=len(y))
        yield f"plain-{k}", (y, proba, None)
        yield f"weighted-{k}", (y, proba, weight)
        counts = np.floor(20 * proba[:, 1:]) / (20 * (k - 1))
        yield (
            f"tied-{k}",
            (y, np.column_stack([1 - counts.sum(axis=1), counts]), weight),
        )
        certain = np.where(proba.max(axis=1, keepdims=True) > 0.9, proba > 0.5, proba)
        # the log loss of a certain mistake is a convention
        right = certain[np.arange(len(y)), y] > 0
        yield f"saturated-{k}", (y[right], certain[right].astype(float), None)


def values():
    found = {}
    for data, (y, proba, weight) in datasets():
        for name, measure in all_metrics().items():
            for options in [{}, *OPTIONS.get(name, [])]:
                key = f"{data} {name} " + " ".join(
                    f"{k}={v}" for k, v in options.items()
                )
                found[key.strip()] = (measure, y, proba, weight, options)
    return found


CASES = values()


@pytest.mark.parametrize("data", sorted({key.split()[0] for key in CASES}))
def test_golden_values(data):
    expected = json.loads(FILE.read_text(encoding="utf-8"))
    assert set(expected) == set(CASES)
    for key, (measure, y, proba, weight, options) in CASES.items():
        if key.split()[0] == data:
            value = measure(y, proba, sample_weight=weight, **options)
            # an interior-point method
            tolerance = 1e-6 if "lower_distance" in key else 1e-11
            assert value == pytest.approx(expected[key], abs=tolerance), key


if __name__ == "__main__":
    numbers = {
        key: measure(y, proba, sample_weight=weight, **options)
        for key, (measure, y, proba, weight, options) in CASES.items()
    }
    FILE.write_text(
        json.dumps(numbers, indent=0, sort_keys=True) + "\n", encoding="utf-8"
    )
