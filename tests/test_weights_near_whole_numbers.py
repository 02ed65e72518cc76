"""Weights that sums or quotients leave within 1e-6 of whole numbers are counts."""

import numpy as np
import pytest

from sklearn_calib._count_weights import are_counts
from sklearn_calib._validation import canonical_weight
from sklearn_calib.recalibrators import IsotonicCalibration, StackedCalibration
from sklearn_calib.summary import CalibrationSummary

RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)
COUNTS = RNG.integers(1, 4, 60).astype(float)


@pytest.mark.parametrize("off", [1e-9, -1e-9, 9e-7, -9e-7])
def test_almost_whole_weights_are_read_as_whole_ones(off):
    given = COUNTS + np.where(np.arange(60) % 2, off, 0.0)
    assert are_counts(given)
    assert canonical_weight(given, 60).tolist() == COUNTS.tolist()
    summaries = [CalibrationSummary().update(Y, P, one) for one in (given, COUNTS)]
    assert summaries[0].totals == summaries[1].totals
    of_counts = summaries[1].fit("isotonic").predict_proba(P)
    assert np.array_equal(summaries[0].fit("isotonic").predict_proba(P), of_counts)


@pytest.mark.parametrize("given", [[1.0, 2.00001], [1.0, 1e-7], [1e-9, 2e-9]])
def test_other_weights_stay_as_they_are(given):
    assert not are_counts(np.array(given))
    assert canonical_weight(given, 2).tolist() == given


@pytest.mark.parametrize(
    "method", [IsotonicCalibration(), StackedCalibration(["platt", "beta"])]
)
def test_a_map_does_not_change_with_the_last_digits_of_counts(method):
    expected = method.fit(P, Y, sample_weight=COUNTS).predict_proba(P)
    got = method.fit(P, Y, sample_weight=COUNTS - 1e-9).predict_proba(P)
    assert np.array_equal(got, expected)
