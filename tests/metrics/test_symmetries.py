"""What a swap of the classes, and another unit of weights, change: nothing, or what is said.

Scores are multiples of 1/20: many are equal, lie on edges of bins, or are 1/2.
"""

import numpy as np
import pytest
from cases import run_every_case

from sklearn_calib.metrics import all_metrics, expected_calibration_error

N = 60
#: How much the docstring states that a swap may change, if not nothing; of ties the share
#: of rows.
SWAPPED = {
    "variational_calibration_error": 0.031,
    **dict.fromkeys(("area_under_risk_coverage", "expected_cost_score"), "ties"),
}
#: The same of weights that are not whole numbers any more.
SCALED = {"area_under_risk_coverage": 0.005}


def rows(seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 20, N) / 20
    return (rng.random(N) < p**1.3).astype(int), p, rng.integers(1, 4, N)


#: Draws of its own take a second.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name.startswith("convolved") else ())
    for name in all_metrics()
]


@run_every_case("name", NAMES)
def test_swapped_classes(name):
    measure = all_metrics()[name]
    y, p, weight = rows(0)
    most = SWAPPED.get(name, 1e-9)
    most = weight[p == 0.5].sum() / weight.sum() if most == "ties" else most
    change = measure(1 - y, 1 - p, sample_weight=weight) - measure(
        y, p, sample_weight=weight
    )
    assert abs(change) <= most


@run_every_case("name", NAMES)
@run_every_case("factor", [0.1, 3])
def test_weights_in_another_unit(name, factor):
    measure = all_metrics()[name]
    y, p, weight = rows(1)
    change = measure(y, p, sample_weight=factor * weight) - measure(
        y, p, sample_weight=weight
    )
    assert abs(change) <= SCALED.get(name, 1e-9)


@pytest.mark.parametrize("n_bins", [10, 20])
@pytest.mark.parametrize("seed", range(5))
def test_scores_on_edges_of_equal_widths(n_bins, seed):
    y, p, _ = rows(seed)
    how = {"strategy": "uniform", "n_bins": n_bins}
    change = expected_calibration_error(1 - y, 1 - p, **how)
    change -= expected_calibration_error(y, p, **how)
    on_edges = np.abs(p * n_bins - np.round(p * n_bins)) < 1e-9
    assert abs(change) <= 2 * on_edges.mean()
    distinct = p + np.linspace(0.001, 0.01, N)  # and none on an edge
    for strategy in ("quantile", "uniform"):
        how["strategy"] = strategy
        swapped = expected_calibration_error(1 - y, 1 - distinct, **how)
        assert swapped == pytest.approx(
            expected_calibration_error(y, distinct, **how), abs=1e-9
        )
