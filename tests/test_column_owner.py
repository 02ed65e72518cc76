"""Who owns a single column of probabilities: a contract of everything that takes labels and scores.

It belongs to `pos_label`, or to the last of `labels` or `classes`; labels without a
natural order need one of them. Whatever is said, the result is that of 0 and 1 with the
same column.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from offered import offered
from test_functions import FUNCTIONS, N, call, having, on_each, options, rows
from test_methods import WITH
from words import same

from sklearn_calib import displays
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.groups import Grades, GroupRecalibration, MulticalibratedScores
from sklearn_calib.inference import CalibrationTester, calibrated_mean, prior_shift_test
from sklearn_calib.metrics import get_scorer
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    OnlineCalibration,
    TemperatureScaling,
    VectorScaling,
    all_recalibrators,
    cross_fitted_proba,
)
from sklearn_calib.report import calibration_report, find_column_order
from sklearn_calib.summary import CalibrationSummary, summarize

CLASSES = np.array(["bad", "good"])
HINT = r"Pass pos_label='good' if .* else pos_label='bad'"
OF_CLASSES = r"Pass classes=\['bad', 'good'\] if .* else classes=\['good', 'bad'\]"


def binary(n=N):
    """Labels in words, whether they are "bad", and the probability of that in one column."""
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 1.6, n)
    bad = rng.random(n) < 0.2 + 0.6 * p
    return np.where(bad, "bad", "good"), bad.astype(int), p


def both(p):
    return np.column_stack([p, 1 - p])


# -- functions and measures --------------------------------------------------------------------


def test_functions_of_labels_and_probabilities_can_name_the_owner():
    named = {"y_proba", "first_proba", "staged_proba"}
    for name, function in FUNCTIONS.items():
        known = inspect.signature(function).parameters.keys()
        if (
            known & named
            and known & {"y_true", "labels"}
            and name != "multilabel_report"
        ):
            assert "pos_label" in known, name


def columns(data, column):
    """The data with one of two columns alone, and labels in words."""
    alone = {key: data[key][:, column] for key in ("first", "second")}
    return data | alone


@run_every_case("name", having("pos_label"))
def test_a_column_belongs_to_pos_label(name):
    function = FUNCTIONS[name]

    def check(data, option):
        if option.get("multiclass") in ("classwise", "top_label"):
            return  # one result for each class, in the order of the classes
        words = CLASSES[data["y"]]
        expected = call(function, columns(data, 0) | {"y": 1 - data["y"]}, **option)
        owned = columns(data, 0) | {"y": words}
        found = call(function, owned, pos_label="bad", **option)
        same(expected, found, turned=(".confusion",))
        same(found, call(function, data | {"y": words}, pos_label="bad", **option))

    on_each(name, check, classes=(2,))


@run_every_case("name", having("pos_label"))
def test_a_column_belongs_to_the_last_of_the_labels(name):
    data = columns(rows(2), 0)
    expected = call(FUNCTIONS[name], data | {"y": 1 - data["y"]})
    words = {"y": CLASSES[data["y"]]}
    same(expected, call(FUNCTIONS[name], data | words, labels=["good", "bad"]))
    zero = call(FUNCTIONS[name], data, pos_label=0)
    same(expected, zero, turned=(".confusion",))


@run_every_case("name", having("pos_label"))
@run_every_case("classes", [CLASSES, np.array([1, 2]), np.array([b"n", b"y"])])
def test_labels_without_an_order_need_an_owner(name, classes):
    data = columns(rows(2), 1)
    data["y"] = classes[data["y"]]
    second, first = (repr(label) for label in classes.tolist()[::-1])
    hint = rf"Pass pos_label={second} if it is the probability of {second}, else pos_label={first}"
    for option in options(name):
        with raises_invalid_input(
            ValueError, expected="to be told which class", hint=hint
        ):
            call(FUNCTIONS[name], data, **option)


@run_every_case("name", having("pos_label"))
def test_labels_with_a_natural_order_need_none(name):
    data = columns(rows(2), 1)
    expected = call(FUNCTIONS[name], data)
    same(expected, call(FUNCTIONS[name], data | {"y": np.array([-1, 1])[data["y"]]}))


@pytest.mark.parametrize("classes", [[False, True], [0.0, 1.0], [-1.0, 1.0]])
def test_booleans_and_floats_have_a_natural_order(classes):
    _, bad, p = binary()
    loss = FUNCTIONS["log_loss"]
    assert loss(np.array(classes)[bad], p) == loss(bad, p)
    assert loss(np.array(classes)[bad].astype(object), p) == loss(bad, p)


def test_two_columns_need_no_owner():
    y, bad, p = binary()
    for name in ("brier_loss", "smooth_calibration_error", "decision_curve"):
        expected = FUNCTIONS[name](1 - bad, both(p))
        same(expected, FUNCTIONS[name](y, both(p)))


def test_a_column_keeps_its_smallest_probabilities():
    loss = FUNCTIONS["log_loss"]
    found = loss(["bad", "good", "bad"], [1e-30, 0.5, 0.5], pos_label="bad")
    assert found == loss([1, 0, 1], [1e-30, 0.5, 0.5])
    assert found > 10  # both have a floor


@pytest.mark.parametrize("shape", [list, pd.Series, lambda p: p[:, None], pd.DataFrame])
def test_a_column_of_any_kind(shape):
    y, bad, p = binary()
    measure = FUNCTIONS["expected_calibration_error"]
    assert measure(pd.Series(y), shape(p), pos_label="bad") == pytest.approx(
        measure(bad, p)
    )
    with raises_invalid_input(ValueError, hint=HINT):
        measure(pd.Series(y), shape(p))


def test_columns_of_logits_and_stages():
    y, bad, p = binary()
    z = np.log(p) - np.log1p(-p)
    for name in ("refinement_error", "refinement_curve"):
        function = FUNCTIONS[name]
        scores = (lambda z: [z, 0.5 * z]) if name == "refinement_curve" else lambda z: z
        expected = function(bad, scores(z), kind="logits")
        same(
            expected, function(y, scores(z), kind="logits", pos_label="bad"), rtol=1e-6
        )
        with raises_invalid_input(ValueError, hint=HINT):
            function(y, scores(z), kind="logits")


def test_scorers_do_not_turn_a_column_twice():
    from sklearn.linear_model import LogisticRegression

    y, bad, p = binary()
    model = LogisticRegression().fit(p[:, None], y)
    plain = LogisticRegression().fit(p[:, None], bad)
    for name in ("neg_expected_calibration_error", "neg_log_loss"):
        expected = get_scorer(name)(plain, p[:, None], bad)
        found = get_scorer(name, pos_label="bad")(model, p[:, None], y)
        assert found == pytest.approx(expected, rel=1e-6)
        assert np.isfinite(get_scorer(name)(model, p[:, None], y))


# -- functions with rows of their own ------------------------------------------------------------


def test_the_mean_of_labels():
    y, bad, p = binary()
    expected = calibrated_mean(bad[:60], p[:60], p[60:])
    same(expected, calibrated_mean(y[:60], p[:60], p[60:], pos_label="bad"))
    with raises_invalid_input(ValueError, hint=HINT):
        calibrated_mean(y[:60], p[:60], p[60:])


def test_a_test_of_two_samples():
    y, bad, p = binary()
    given = {"n_resamples": 20}
    expected = prior_shift_test(p, bad, p**2, **given)
    found = prior_shift_test(p, y, p**2, pos_label="bad", **given)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.prior == pytest.approx(expected.prior[::-1])
    with raises_invalid_input(ValueError, hint=HINT):
        prior_shift_test(p, y, p**2)


def test_a_report():
    y, bad, p = binary(300)
    few = {"n_resamples": 9, "measures": ["expected_calibration_error", "log_loss"]}
    expected = calibration_report(bad, p, **few)
    for given in (p, both(p)):
        report = calibration_report(y, given, pos_label="bad", **few)
        assert report.verdict.p_value == expected.verdict.p_value
        for one, other in zip(report.rows, expected.rows, strict=True):
            assert one.value == pytest.approx(other.value)
    owned = calibration_report(y, p, pos_label="bad", normalize=True, **few)
    assert owned.rows[0].value == pytest.approx(expected.rows[0].value)
    assert "classes=['good', 'bad']" in owned._codes["model"]
    assert find_column_order(y, p, pos_label="bad") is None
    for function in (
        lambda: calibration_report(y, p, **few),
        lambda: find_column_order(y, p),
    ):
        with raises_invalid_input(ValueError, hint=HINT):
            function()


# -- summaries, monitors, testers, grades -------------------------------------------------------


def test_a_summary():
    y, bad, p = binary()
    expected = CalibrationSummary().update(bad, p)
    for given in ({"classes": CLASSES}, {}):
        summary = CalibrationSummary(pos_label="bad", **given)
        for part in np.array_split(np.argsort(y == "good", kind="stable"), 4):
            summary.update(y[part], p[part])
        assert summary.positive_label == "bad" and summary.classes.tolist() == [
            "bad",
            "good",
        ]
        for name in (
            "log_loss",
            "expected_calibration_error",
            "smooth_calibration_error",
        ):
            assert summary.measure(name) == pytest.approx(
                expected.measure(name), abs=1e-12
            )
        assert summary.rows().proba[:, 0] == pytest.approx(expected.rows().proba[:, 1])
    two = CalibrationSummary(classes=CLASSES, pos_label="bad").update(y, both(p))
    assert two.measure("log_loss") == pytest.approx(expected.measure("log_loss"))
    table = pd.DataFrame({"y": y, "p": p})
    found = summarize(table, label="y", prob="p", pos_label="bad")
    assert found.measure("log_loss") == pytest.approx(expected.measure("log_loss"))
    for function in (
        lambda: summarize(table, label="y", prob="p"),
        lambda: CalibrationSummary().update(y, p),
    ):
        with raises_invalid_input(ValueError, expected=".*labels among", hint=HINT):
            function()
    with raises_invalid_input(
        ValueError, hint="Name the class of the column with pos_label"
    ):
        CalibrationSummary().update(["bad"], [0.5])


def test_a_monitor_names_the_argument():
    y, bad, p = binary()
    expected = CalibrationMonitor().update(bad, p)
    found = CalibrationMonitor(classes=["good", "bad"]).update(y, p)
    assert found.e_value_ == pytest.approx(expected.e_value_)
    with raises_invalid_input(
        ValueError, hint=r".*CalibrationMonitor\(classes=\['bad', 'good'\]\)"
    ):
        CalibrationMonitor().update(y, p)


def test_a_tester_and_grades():
    y, bad, p = binary(400)
    tester = CalibrationTester(0.3, n_parts=1)
    expected = tester.test(bad, p)
    same(expected, tester.test(y, p, pos_label="bad"))
    grades = Grades.fit(bad, p)
    assert Grades.fit(y, p, pos_label="bad").edges == pytest.approx(grades.edges)
    for function in (tester.test, Grades.fit):
        with raises_invalid_input(ValueError, hint=HINT):
            function(y, p)


# -- recalibrators ------------------------------------------------------------------------------


SLOW = ("trend_filtering", "trend_filtering_ensemble", "angular", "enir")
RECALIBRATORS = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
    for name in all_recalibrators()
    if name != "group"
]


@run_every_case("name", RECALIBRATORS)
def test_a_recalibrator_is_told_by_classes(name):
    y, bad, p = binary()
    kind = all_recalibrators()[name]
    method = kind(**WITH.get(kind.__name__, {}))
    expected = method.fit(p, bad).predict_proba(p)
    found = method.fit(p, y, classes=["good", "bad"])
    assert found.classes_.tolist() == ["good", "bad"]
    assert found.predict_proba(p) == pytest.approx(expected, abs=1e-9)
    two = method.fit(both(p), y)
    assert two.classes_.tolist() == ["bad", "good"]
    with raises_invalid_input(ValueError, hint=OF_CLASSES):
        method.fit(p, y)
    for natural in (bad.astype(bool), 2 * bad - 1, bad.astype(float)):
        assert method.fit(p, natural).predict_proba(p) == pytest.approx(
            expected, abs=1e-9
        )


OTHERS = {
    "cross_fitted_proba": lambda y, p, **more: cross_fitted_proba(
        "temperature", p, y, **more
    ),
    "partial_fit": lambda y, p, **more: OnlineCalibration().partial_fit(p, y, **more),
    "groups": lambda y, p, **more: GroupRecalibration("temperature").fit(
        p, y, groups=np.arange(len(y)) % 2, **more
    ),
    "multicalibrated": lambda y, p, **more: MulticalibratedScores(
        cv=2, n_rounds=1, n_trees=1
    ).fit(p, y, groups=np.arange(len(y)) % 2, **more),
    "temperature in blocks": lambda y, p, **more: TemperatureScaling().fit_blocks(
        [(p, y)], kind="proba", **more
    ),
    "vectors in blocks": lambda y, p, **more: VectorScaling().fit_blocks(
        [(p, y)], kind="proba", **more
    ),
}


@run_every_case("name", OTHERS)
def test_other_fits_are_told_by_classes(name):
    y, bad, p = binary()
    function = OTHERS[name]
    expected, found = function(bad, p), function(y, p, classes=["good", "bad"])
    if hasattr(found, "predict_proba"):
        assert found.classes_.tolist() == ["good", "bad"]
    else:
        assert found == pytest.approx(expected)
    with raises_invalid_input(ValueError, hint=OF_CLASSES):
        function(y, p)


# -- displays ------------------------------------------------------------------------------------

#: Displays that take labels and probabilities, with the arguments that they need.
PICTURES = {
    "GradeDisplay": {"grades": [0.2, 0.5]},
    "GroupReliabilityDisplay": {
        "groups": np.arange(N) % 2,
        "min_rows": 20,
        "n_resamples": 2,
    },
    "CalibratingFunctionDisplay": {"recalibrators": ["platt"]},
    "RefinementCurveDisplay": None,  # of stages: `refinement_curve` is tested
}


@run_every_case(
    "name",
    [
        n
        for n, c in offered()
        if n.endswith("Display") and hasattr(c, "from_predictions")
    ],
)
def test_pictures(name):
    y, bad, p = binary()
    kind, given = getattr(displays, name), PICTURES.get(name, {})
    if given is None:
        p, given = [p, p**2], {}
    drawn = kind.from_predictions(bad, p, **given)
    owned = (
        {"classes": ["good", "bad"]}
        if name.startswith("Calibrating")
        else {"pos_label": "bad"}
    )
    found = kind.from_predictions(y, p, **given, **owned)
    for one, other in zip(
        drawn.get_plotted_data(), found.get_plotted_data(), strict=True
    ):
        for ours, theirs in zip(one, other, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(
                    np.asarray(a, float), np.asarray(b, float), atol=1e-9
                )
    with pytest.raises(
        InvalidInputError,
        match="classes=" if "classes" in owned else "pos_label='good'",
    ):
        kind.from_predictions(y, p, **given)
    plt.close("all")
