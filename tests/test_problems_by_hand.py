"""Several two-class problems of unequal shares, against each problem computed by itself.

Every function that has `multiclass`, with every value that it can be and every string
that its other options can be; so do summaries, monitors and displays. What is by hand
here is which rows belong to a problem, what their scores and weights are, and how the
problems are put together.
"""

import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases import run_every_case
from test_functions import FUNCTIONS, call, options
from words import numbers, strings

from sklearn_calib import displays
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import GroupRow
from sklearn_calib.metrics import Measure, all_metrics, reliability_curve
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.summary import CalibrationSummary

N, K = 200, 4
SHARES = [0.46, 0.27, 0.15, 0.12]
NAMES = np.array(["p", "q", "r", "s"])
#: Fields that are drawn: each problem has draws of its own, or all have one set.
DRAWN = {
    *("consistency_low", "consistency_high", "null_mean"),
    *("p_value", "adjusted_p_value", "ratio_low", "ratio_high"),
    *("in_the_large_low", "in_the_large_high", "slope_low", "slope_high"),
}
#: Results that are lists with one entry per problem, or have them in a field.
LISTED = {
    "calibration_witness": lambda found: found if isinstance(found, list) else [found],
    "cumulative_differences": lambda found: (
        found if isinstance(found, list) else [found]
    ),
    "group_calibration": lambda found: np.split(
        np.array([row[2:] for row in found.rows], dtype=float)[:, ANALYTIC],
        len({row.event for row in found.rows}),
    ),
    "reliability_curve": lambda found: found,
    "validation_summary": lambda found: [table.rows for table in found.tables],
}
#: Fields of a row of `group_calibration`, after group and event, that are not drawn.
ANALYTIC = [at for at, name in enumerate(GroupRow._fields[2:]) if name not in DRAWN]
DRAWN_ROWS = {"ICI", "E50", "E90", "Emax"}  # their p-values
OF_BINS = (
    "reliability_curve",
    "calibration_error",
    "expected_calibration_error",
    "maximum_calibration_error",
)
#: Of which the problems are not separate ones.
NOT_HERE = {
    "variational_calibration_interval": "its fits share folds",
    ("kernel_calibration_error", "linear"): "of vectors only",
    ("kernel_calibration_error", "unbiased"): "of vectors only",
    ("kernel_calibration_error", "median"): "of vectors only",
    **dict.fromkeys(
        ((name, "cube_root") for name in OF_BINS),
        "the number of bins is of all rows together",
    ),
    ("reliability_curve", "isotonic"): "its intervals are drawn",
}
#: What puts together measures that are not mean over problems.
LARGEST = {"maximum_calibration_error"}


def rows_of_unequal_classes():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(4 * np.array(SHARES), N).clip(1e-3)
    proba /= proba.sum(axis=1, keepdims=True)
    law = np.cumsum(0.6 * proba + 0.4 * np.array(SHARES[::-1]), axis=1)
    y = (rng.random(N)[:, None] * law[:, -1:] > law).sum(axis=1)
    return y, proba, rng.integers(1, 7, N)


def problems(multiclass, y, proba, weight):
    """(share, rows, events, probabilities of the event) of each problem."""
    top, largest = proba.argmax(axis=1), proba.max(axis=1)
    everything = np.arange(len(y))
    if multiclass in ("auto", "confidence"):
        return [(1.0, everything, top == y, largest)]
    if multiclass == "classwise":
        return [(1 / K, everything, y == c, proba[:, c]) for c in range(K)]
    found = []
    for c in np.unique(top):
        rows = np.flatnonzero(top == c)
        share = weight[rows].sum() / weight.sum()
        found.append((share, rows, y[rows] == c, largest[rows]))
    return found


def kinds(name):
    function = FUNCTIONS[name]
    if isinstance(function, Measure):
        return [kind for kind in function.spec.multiclass if kind != "canonical"]
    annotation = inspect.signature(function).parameters["multiclass"].annotation
    return [
        kind for kind in strings(annotation) if kind not in ("canonical", "confidence")
    ]


def parameters():
    for name, function in sorted(FUNCTIONS.items()):
        if (
            "multiclass" in inspect.signature(function).parameters
            and name not in NOT_HERE
        ):
            for kind in kinds(name):
                slow = name == "validation_summary"
                marks = pytest.mark.slow if slow else ()
                yield pytest.param(name, kind, id=f"{name}-{kind}", marks=marks)


def found_by(name, y, proba, weight, rows, **more):
    data = {
        "y": y,
        "first": proba,
        "second": proba,
        "groups": rows % 2,
        "clusters": rows % 10,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return call(FUNCTIONS[name], data, sample_weight=weight, **more)


def together(name, option, shares, values):
    """One number of those of the problems."""
    if name in LARGEST or option.get("norm") == "max":
        return np.max(values, axis=0)
    power = 2 if option.get("norm") == "l2" else 1
    return (shares @ values**power) ** (1 / power)


def check_numbers(one, other, where):
    first, second = dict(numbers(one)), dict(numbers(other))
    assert first and first.keys() == second.keys(), where
    for field, value in second.items():
        words = set(field.split("."))
        if not words & DRAWN and not ("pvalue" in words and words & DRAWN_ROWS):
            np.testing.assert_allclose(
                first[field], value, 1e-6, 1e-9, err_msg=where + field
            )


@pytest.mark.slow
@pytest.mark.whole
@run_every_case(("name", "kind"), parameters())
def test_problems_are_put_together_by_their_shares(name, kind):
    y, proba, weight = rows_of_unequal_classes()
    for option in options(name):
        option = {key: value for key, value in option.items() if key != "multiclass"}
        if {(name, value) for value in option.values()} & NOT_HERE.keys():
            continue
        found = found_by(
            name, y, proba, weight, np.arange(N), multiclass=kind, **option
        )
        parts = problems(kind, y, proba, weight)
        shares = np.array([share for share, *_ in parts])
        single = [
            found_by(
                name, hit.astype(int), p, weight[rows], rows, labels=[0, 1], **option
            )
            for _, rows, hit, p in parts
        ]
        where = f"{name}, multiclass={kind!r}, {option}: "
        if name in LISTED:
            own = LISTED[name](found)
            assert len(own) == len(single), where
            for one, other in zip(own, single, strict=True):
                check_numbers(one, LISTED[name](other)[0], where)
        else:
            values = np.array([[*np.ravel(value)] for value in map(np.asarray, single)])
            expected = together(name, option, shares, values)
            assert np.isfinite(expected).all(), f"{where}{expected} says nothing"
            np.testing.assert_allclose(
                np.ravel(found), expected, 1e-6, 1e-9, err_msg=where
            )


@pytest.mark.parametrize("kind", ["confidence", "top_label", "classwise"])
def test_a_summary_puts_problems_together_as_well(kind):
    y, proba, weight = rows_of_unequal_classes()
    summary = CalibrationSummary(multiclass=kind, classes=range(K))
    for part in (slice(0, 40), slice(40, None)):
        summary.update(y[part], proba[part], sample_weight=weight[part])
    parts = problems(kind, y, proba, weight)
    shares = np.array([share for share, *_ in parts])
    for name, measure in all_metrics().items():
        if measure.spec.poolable and kind in measure.spec.multiclass:
            single = [
                measure(hit.astype(int), p, sample_weight=weight[rows], labels=[0, 1])
                for _, rows, hit, p in parts
            ]
            expected = together(name, {}, shares, np.array(single))
            found = summary.measure(name)
            assert found == pytest.approx(expected, rel=1e-6), f"{kind}, {name}"
    assert [
        curve.weight.sum() for curve in summary.reliability_curve()
    ] == pytest.approx([weight[rows].sum() for _, rows, *_ in parts])


@pytest.mark.parametrize("kind", ["auto", "top_label", "classwise"])
def test_displays_show_the_curve_of_each_problem(kind):
    y, proba, weight = rows_of_unequal_classes()
    given = {"sample_weight": weight, "multiclass": kind, "n_bins": 4}
    shown = displays.ReliabilityDisplay.from_predictions(
        y, proba, bands="none", **given
    )
    (curves,) = shown.curves.values()
    parts = problems(kind, y, proba, weight)
    assert len(curves) == len(parts)
    for curve, (_, rows, hit, p) in zip(curves, parts, strict=True):
        how = {"sample_weight": weight[rows], "n_bins": 4, "labels": [False, True]}
        (own,) = reliability_curve(hit, p, n_resamples=0, **how)
        np.testing.assert_allclose(curve.predicted, own.predicted, err_msg=curve.title)
        np.testing.assert_allclose(curve.observed, own.observed, err_msg=curve.title)
    plt.close("all")


@pytest.mark.parametrize("kind", ["auto", "classwise"])
def test_a_monitor_watches_each_problem(kind):
    y, proba, weight = rows_of_unequal_classes()
    watched = CalibrationMonitor("test", multiclass=kind, classes=range(K)).update(
        y, proba
    )
    single = [
        CalibrationMonitor("test", classes=[0, 1])
        .update(hit.astype(int), p)
        .log_e_value_
        for _, _, hit, p in problems(kind, y, proba, weight)
    ]
    expected = np.logaddexp.reduce(single) - np.log(len(single))
    assert watched.log_e_value_ == pytest.approx(expected, rel=1e-9), kind
    if kind == "classwise":
        assert list(watched.e_values_.values()) == pytest.approx(np.exp(single)), kind


def test_the_evidence_of_a_group_is_the_mean_of_that_of_its_classes():
    y, proba, _ = rows_of_unequal_classes()
    group = np.arange(len(y)) % 2
    given = {"classes": range(K), "multiclass": "classwise"}
    watched = CalibrationMonitor(groups=[0, 1], **given).update(y, proba, groups=group)
    for name in (0, 1):
        own = CalibrationMonitor(**given).update(y[group == name], proba[group == name])
        expected = np.mean([*own.e_values_.values()])
        assert watched.e_values_[name] == pytest.approx(expected), f"group {name}"
