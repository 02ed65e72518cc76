"""Fitted maps and rows that the tests of all formats share."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_calib import canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export._onnx import _iter_map_knots_as_log_odds
from sklearn_calib.recalibrators import (
    AdaptiveCalibration,
    AngularCalibration,
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MulticlassBinning,
    OneVsRest,
    PlattScaling,
    PriorShift,
    RestrictedPolynomialRegression,
    SplineCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    TopLabel,
    all_recalibrators,
)

DEFAULTS = {name: cls() for name, cls in all_recalibrators().items()}
VARIANTS = {
    "platt.proba": PlattScaling("proba"),
    "temperature.laplace": TemperatureScaling(laplace=True),
    "beta.am": BetaCalibration("am"),
    "beta.ab": BetaCalibration("ab"),
    "isotonic.step": IsotonicCalibration("step"),
    "isotonic.centred": IsotonicCalibration(centred=True),
    "histogram_binning.uniform": HistogramBinning(strategy="uniform"),
    "restricted_polynomial.logit": RestrictedPolynomialRegression(4, scale="logit"),
    "spline.any": SplineCalibration(monotone=False),
    "multiclass_binning.rounded": MulticlassBinning(keep=False),
    "one_vs_rest.shared": OneVsRest("isotonic", shared=True),
    "top_label.per_class": TopLabel("isotonic", per_class=True, rest="proportional"),
    "angular.clipped_relu": AngularCalibration(link="clipped_relu"),
    "adaptive.interval": AdaptiveCalibration("interval"),
    "prior_shift.uniform": PriorShift("uniform", strength=0.7),
    "pipeline": make_pipeline(StructuredMatrixScaling(), SplineCalibration()),
}
METHODS = DEFAULTS | VARIANTS
# these have no finite form
TABULATED = {name for name in METHODS if name.split(".")[0] in ("adaptive", "angular")}
TABLE_ERROR = 1e-6


@cache
def fitted(name, k, n=300):
    """A method of `METHODS`, fitted to n rows of k classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return clone(METHODS[name]).fit(*make_overconfident(k, n, random_state=1))


def tabulate(name):
    return {"tabulate": TABLE_ERROR} if name in TABULATED else {}


@cache
def probabilities(k, n=500):
    """New rows, the corners, rows next to them down to the smallest number, and the centre."""
    rows = [
        make_overconfident(k, n, random_state=7)[0],
        np.eye(k),
        np.full((1, k), 1 / k),
    ]
    for tiny in (1e-9, 1e-16, 1e-30, 1e-300, 5e-324):
        rows.append(np.where(np.eye(k) > 0, 1 - tiny * (k - 1), tiny))
    return np.vstack(rows)


def at_knots(document, most):
    """Rows in which a class has the knots of all tables, four numbers around each, and the ends.

    The others share what is left. At most about so many knots of each class are kept.
    """
    k = len(document.classes)
    p = expit(np.concatenate([[0.0], *_iter_map_knots_as_log_odds(document.root)]))
    for _ in range(2):
        p = np.concatenate([p, np.nextafter(p, 0), np.nextafter(p, 1)])
    p = np.unique(np.append(p, [0.0, 5e-324, 1e-310, 1 - 2**-53, 1.0]))
    p = p[:: len(p) // most + 1]
    blocks = np.repeat(((1 - p) / (k - 1))[None, :, None], k, axis=0).repeat(k, axis=2)
    for c, block in enumerate(blocks):
        block[:, c] = p
    return np.vstack(blocks)


@cache
def logits(k, n=300):
    """Logits from tiny to enormous."""
    size = 10.0 ** np.linspace(-3, 6, n)
    return np.random.default_rng(0).normal(size=(n, k)) * size[:, None]


def inputs(k, name):
    """Rows as a caller of the methods would give them: "proba", "float32" or "logits"."""
    if name == "logits":
        return canonical_proba(logits(k), kind="logits")
    dtype = np.float32 if name == "float32" else np.float64
    return probabilities(k).astype(dtype)


#: Methods whose programs the quick tests run, by the number of classes: all kinds of
#: nodes.
QUICK = {
    2: (
        "beta",
        "histogram_binning",
        "isotonic",
        "restricted_polynomial",
        "spline",
        "structured_matrix",
        "trend_filtering",
        "venn_abers",
    ),
    3: (
        "beta",
        "isotonic",
        "matrix",
        "multiclass_binning",
        "top_label.per_class",
    ),
}

#: The same methods in engines that take seconds to start; all others run once a week.
ONE_OF_EACH_KIND = [
    name
    if name in {*QUICK[2], *QUICK[3]} - {"structured_matrix"}
    else pytest.param(name, marks=pytest.mark.cross)
    for name in METHODS
]

#: (method, classes) of the slow tests of texts: what OneVsRest makes of more classes is
#: one node, and those of "online" are 325 times those of other methods.
IN_FULL = [(name, 2) for name in METHODS if name != "online"] + [
    (name, 3) for name in QUICK[3]
]
IN_FULL += [("top_label.per_class", 10)]
