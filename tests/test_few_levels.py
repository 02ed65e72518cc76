"""Maps from few levels of confidence, among them certain ones that are wrong."""

import numpy as np
import pytest

from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import get_recalibrator

LEVELS = np.array([0.6, 0.8, 0.9, 0.95, 1.0])


@pytest.mark.parametrize("method", ["auto", "default"])
@pytest.mark.parametrize(
    "law", [[0.4, 0.6, 0.7, 0.8, 0.9], [0.75, 0.6, 0.7, 0.9, 0.85]]
)
def test_150_rows_of_five_levels(method, law):
    rng = np.random.default_rng(0)
    place = np.repeat(np.arange(5), 30)
    right = (rng.random(150) < np.array(law)[place]).astype(int)
    assert not right[place == 4].all()
    found = (
        get_recalibrator(method).fit(LEVELS[place], right).predict_proba(LEVELS)[:, 1]
    )
    assert ((found > 0.2) & (found < 0.99)).all()
    fresh = np.tile([0, 1], 5)  # both labels at each level
    assert log_loss(fresh, np.repeat(found, 2)) < 1.5
    frequency = np.bincount(place, right) / 30
    assert np.abs(found - frequency).mean() < np.abs(LEVELS - frequency).mean()
