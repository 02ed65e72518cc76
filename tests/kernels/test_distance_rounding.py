"""A program whose balance of masses stays a little above the tolerance, by rounding."""

import numpy as np

from sklearn_calib.report import calibration_report


def test_rounding_does_not_end_in_nan():
    """The draws of this report hold such a program: the gap stood still at 1e-10, then NaN."""
    rng = np.random.default_rng([200, 9])
    p = rng.uniform(0, 0.98, 200)
    y = (rng.random(200) < p + 0.02).astype(int)
    options = {"random_state": 9, "n_resamples": 100, "check_columns": False}
    (row,) = calibration_report(
        y, p, measures=["lower_distance_to_calibration"], **options
    ).rows
    assert 0 < row.value <= row.high < 0.1
