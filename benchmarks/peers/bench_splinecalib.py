"""splinecalib: the author's program for splines on the log-odds."""

import warnings

import numpy as np
from runner import Predictions
from scipy.special import expit, xlogy
from splinecalib import SplineCalib
from splinecalib.calib_utils import get_stratified_foldnums

from sklearn_calib._kernels import _spline as kernel
from sklearn_calib.recalibrators import SplineCalibration


def cases():
    yield same_spline()
    for n in (1000, 10_000, 100_000):
        yield whole_method(n)


def data(n):
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=n)
    truth = expit(0.8 * x + np.sin(x))
    return expit(x), (rng.random(n) < truth).astype(int), truth


def above(loss):
    """By how much our loss is above theirs."""
    return lambda ours, theirs: max(0.0, loss(ours) - loss(theirs))


def same_spline():
    """The likelihood itself: the same knots, no prior, and next to no penalty on either side.

    After its search the peer fits to the rows outside the first fold only.
    """
    p, y, _ = data(10_000)
    at = np.linspace(0.05, 0.95, 8)
    rows = get_stratified_foldnums(y, 5) != 0
    x, knots = np.log(p / (1 - p)), np.log(at / (1 - at))

    def ours():
        cells = kernel.make_spline_cells(x[rows], y[rows], np.ones(rows.sum()))
        return expit(
            kernel.fit_spline(cells, knots, identity_ridge=0.0, penalties=[1e-8]).curve(
                x[rows]
            )
        )

    def theirs():
        peer = SplineCalib(
            knot_sample_size=0,
            add_knots=at,
            unity_prior=False,
            reg_param_vec=[1e-8],
            tol=1e-9,
        )
        return quiet(peer.fit, p, y) or peer.calibrate(p[rows])

    def loss(q):
        return -(xlogy(y[rows], q) + xlogy(1 - y[rows], 1 - q)).mean()

    return Predictions(
        "8 given knots, no penalty, n = 1e4",
        ours,
        theirs,
        difference=above(loss),
        note="difference: by how much our log loss of the fitted rows is above theirs",
    )


def whole_method(n):
    p, y, truth = data(n)

    def theirs():
        peer = SplineCalib()
        return quiet(peer.fit, p, y) or peer.calibrate(p)

    def loss(q):
        return -(xlogy(truth, q) + xlogy(1 - truth, 1 - q)).mean()

    return Predictions(
        f"spline on log-odds, n = {n}",
        lambda: SplineCalibration().fit(p, y).predict_proba(p)[:, 1],
        theirs,
        difference=above(loss),
        tolerance=1e-3,
        note="difference: by how much our expected log loss is above theirs",
    )


def quiet(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)
