"""Where a fit ends is told by the rows, and not by the order in which a library adds them up."""

import numpy as np
import pytest
from scipy.special import expit
from test_soft_labels import RECALIBRATORS, doubled, shares
from words import QUICKER

from sklearn_calib._kernels._logistic import fit_logistic
from sklearn_calib.recalibrators import StackedCalibration

#: Fits that end before rounding hides the optimum, and how far from it in a probability.
#: Angular: a quasi-Newton method that sees losses alone, which are flat to rounding within 1e-8
#: of the optimum.
EARLY = {"AngularCalibration": 1e-7}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", RECALIBRATORS)
def test_the_order_of_rows_and_last_bits_do_not_show(cls):
    method, within = cls(**QUICKER.get(cls.__name__, {})), EARLY.get(cls.__name__, 1e-12)
    for k, seed in ((2, 0), (2, 5), (2, 6), (3, 0), (3, 5), (3, 6)):
        proba, soft, weight = shares(k, seed=seed)
        items, labels, mass = doubled(soft, weight)
        together = {"groups": items} if isinstance(method, StackedCalibration) else {}
        expected = method.fit(proba[items], labels, mass, **together).predict_proba(proba)
        rng = np.random.default_rng(seed)
        near = np.where((rng.random(len(mass)) < 0.5) & (mass > 0), np.nextafter(mass, 9), mass)
        found = method.fit(proba[items], labels, near, **together).predict_proba(proba)
        np.testing.assert_allclose(found, expected, rtol=0, atol=within)
        if together:
            continue  # folds are drawn by the places of rows
        rows = rng.permutation(len(items))
        found = method.fit(proba[items][rows], labels[rows], mass[rows]).predict_proba(proba)
        np.testing.assert_allclose(found, expected, rtol=0, atol=within)


@pytest.mark.parametrize("nonnegative", [(), (0, 1)])
def test_a_logistic_fit_ends_where_its_slope_is_rounding(nonnegative):
    rng = np.random.default_rng(1)
    for _ in range(20):
        columns = rng.normal(size=(80, 3)) * [1, 1, 0] + [0, 0, 1.0]
        target, weight = rng.random(80), rng.random(80)
        coef = fit_logistic(columns, target, weight, nonnegative).coef
        residual = weight / weight.sum() * (expit(columns @ coef) - target)
        slope = residual @ columns
        free = [j for j in range(3) if coef[j] != 0 or j not in nonnegative]
        assert np.abs(slope[free]).max() < 2e-15
