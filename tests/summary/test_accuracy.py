"""Measures of coarse cells are near those of the rows."""

import pytest
from laws import LAWS, kept_bits, sample

from sklearn_calib import metrics
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.summary import CalibrationSummary

UNIFORM = {"strategy": "uniform"}
#: Measure, options, and how far 1000 cells may be off: about twice the largest of all
#: laws.
CASES = [
    ("smooth_calibration_error", {}, 3e-5),
    ("lower_distance_to_calibration", {}, 2e-5),
    ("expected_calibration_error", {}, 2e-3),
    ("expected_calibration_error", UNIFORM, 1e-12),
    ("expected_calibration_error", UNIFORM | {"n_bins": 7}, 2e-4),
    ("expected_calibration_error", {"bin_weight": "equal", "n_bins": 5}, 3e-4),
    ("expected_calibration_error", {"n_bins": "cube_root"}, 2e-3),
    ("calibration_error", {"norm": "l2"}, 5e-4),
    ("calibration_error", {"norm": "l2", "bin_weight": "equal", "n_bins": 4}, 6e-4),
    ("calibration_error", UNIFORM | {"norm": "l2", "n_bins": 15}, 1e-12),
    ("maximum_calibration_error", {"n_bins": 4}, 2e-3),
    ("maximum_calibration_error", UNIFORM | {"n_bins": 9}, 3e-3),
    ("random_interval_calibration_error", {}, 1e-4),
    ("random_interval_calibration_error", {"width": 0.37}, 2e-5),
    ("interval_calibration_error", {}, 8e-3),
    ("kernel_calibration_error", {}, 1e-5),
    ("kernel_calibration_error", {"bandwidth": 0.1}, 2e-5),
    ("convolved_calibration_error", {}, 4e-5),
    ("convolved_calibration_error", {"bandwidth": 0.05}, 2e-5),
    ("averaged_two_bin_error", {}, 1e-6),
    ("isotonic_refinement_brier", {}, 8e-4),
    ("temperature_refinement_log_loss", {}, 5e-5),
    ("brier_loss", {}, 1e-12),
    ("log_loss", {}, 1e-12),
]


@pytest.mark.parametrize(("name", "options", "tolerance"), CASES, ids=str)
@pytest.mark.parametrize("law", LAWS)
def test_coarse_cells_are_near_the_rows(name, options, tolerance, law, small_cells):
    p, y = sample(law, 3000)
    p = kept_bits(p)
    summary = CalibrationSummary(1000).update(y, p)
    assert not summary.exact
    found = summary.measure(name, **options)
    expected = metrics.all_metrics()[name](y, p, labels=[0, 1], **options)
    assert abs(found - expected) <= tolerance
    if name == "isotonic_refinement_brier":  # a cell cannot part its rows
        assert found >= expected - 1e-12


@pytest.mark.parametrize("kind", ["confidence", "top_label", "classwise"])
@pytest.mark.parametrize(
    ("name", "options", "tolerance"),
    [c for c in CASES if "refinement" not in c[0]],
    ids=str,
)
def test_several_classes(kind, name, options, tolerance, small_cells):
    proba, y = make_overconfident(3, 2000)
    proba = kept_bits(proba)
    summary = CalibrationSummary(1000, multiclass=kind).update(y, proba)
    more = {} if name.endswith("_loss") else {"multiclass": kind}
    expected = metrics.all_metrics()[name](y, proba, **options, **more)
    # These labels are farther from the probabilities than those of `LAWS`: the errors of
    # cells are up to 2.7 times as large for the three problems of "classwise".
    factor = 3 if kind == "classwise" else 2
    limit = max(factor * tolerance, 1e-9)
    assert abs(summary.measure(name, **options) - expected) <= limit
