"""Columns that are named after the classes, in another order: everything that takes them."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from offered import names_of
from test_functions import FUNCTIONS, SLOW, call, rows
from test_methods import CLASSES, GROUPS, build, rows as rows_of_methods
from words import same

from sklearn_calib import displays as displays_
from sklearn_calib._validation import canonical_proba, find_columns_if_names_match
from sklearn_calib.decisions import expected_cost_test, expected_metrics
from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.inference import prior_shift_test
from sklearn_calib.metrics import brier_loss, log_loss, reliability_curve
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    MultilabelCalibration,
    PriorShift,
    TemperatureScaling,
    VectorScaling,
    cross_fitted_proba,
)
from sklearn_calib.report import (
    calibration_report,
    find_column_order,
    multilabel_report,
)
from sklearn_calib.summary import CalibrationSummary, summarize

NAMES = np.array(["a", "b", "c"])
KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}
TABLES = ("y_proba", "first_proba", "second_proba")


def table(proba, order, kind="pandas", names=NAMES):
    """Probabilities as a table whose columns are named, in this order."""
    frame = pd.DataFrame(proba, columns=np.asarray(names)[: proba.shape[1]].tolist())
    return KINDS[kind](frame.iloc[:, list(order)])


def turned(k):
    """An order of k columns that no exchange of two repairs for three."""
    return [2, 0, 1] if k == 3 else [1, 0]


def with_tables(k, change):
    """Rows of text labels, and of them the arguments that hold probabilities, changed."""
    data = rows(k)
    data["y"] = NAMES[data["y"]]
    return data | {key: change(data[key]) for key in ("first", "second")}


def of_three_or_two(function, compare):
    """Compare for three classes, or for two if it has no three."""
    try:
        compare(3)
    except ValueError as error:
        assert isinstance(error, InvalidInputError)
        compare(2)


def in_turn(names, slow=()):
    """Parameters of a test: each name with one kind of table, the next one with another."""
    for place, name in enumerate(names):
        kind = [*KINDS][place % len(KINDS)]
        title = name if isinstance(name, str) else name.__name__
        marks = [pytest.mark.slow] * (title in slow)
        yield pytest.param(name, kind, marks=marks, id=f"{title}-{kind}")


#: Functions that have no labels, or whose columns are not classes.
WITHOUT_CLASSES = ("validation_sample_size", "multilabel_report")


def of_tables():
    """Functions of probabilities whose columns are classes."""
    for name, function in FUNCTIONS.items():
        known = set(inspect.signature(function).parameters)
        if {*TABLES, "staged_proba"} & known and name not in WITHOUT_CLASSES:
            yield name


@run_every_case(("name", "kind"), in_turn(of_tables(), {*SLOW, "group_calibration"}))
def test_every_function_follows_the_names(name, kind):
    function = FUNCTIONS[name]

    def compare(k):
        expected = call(function, with_tables(k, lambda proba: proba))
        order = turned(k)
        found = call(function, with_tables(k, lambda proba: table(proba, order, kind)))
        same(found, expected, exact=False, rtol=1e-9)
        if "labels" in inspect.signature(function).parameters:
            data = with_tables(k, lambda proba: table(proba, order, kind))
            same(
                call(function, data, labels=NAMES[:k]), expected, exact=False, rtol=1e-9
            )

    of_three_or_two(function, compare)


@run_every_case(("cls", "kind"), in_turn(CLASSES))
def test_every_recalibrator_follows_the_names(cls, kind):
    proba, y = rows_of_methods(2)
    at = {}
    if "groups" in inspect.signature(cls.predict_proba).parameters:
        at = {"groups": GROUPS}
    if cls.__name__ == "StackedCalibration":
        proba, y = proba[:80], y[:80]
    y = NAMES[y]
    plain = build(cls).fit(proba, y, **at).predict_proba(proba, **at)
    for order in ([0, 1], [1, 0]):
        fitted = build(cls).fit(table(proba, order, kind), y, **at)
        for other in ([0, 1], [1, 0]):
            found = fitted.predict_proba(table(proba, other, kind), **at)
            np.testing.assert_allclose(found, plain, rtol=0, atol=1e-9)


@run_every_case(("cls", "kind"), in_turn(CLASSES))
def test_every_recalibrator_remembers_other_names(cls, kind):
    """Names that are not the classes keep their position at fit, and find it afterwards."""
    proba, y = rows_of_methods(2)
    at = {}
    if "groups" in inspect.signature(cls.predict_proba).parameters:
        at = {"groups": GROUPS}
    names = np.array(["p_no", "p_yes"])
    fitted = build(cls).fit(table(proba, [0, 1], kind, names), y, **at)
    assert fitted.feature_names_in_.tolist() == names.tolist()
    plain = fitted.predict_proba(table(proba, [0, 1], kind, names), **at)
    found = fitted.predict_proba(table(proba, [1, 0], kind, names), **at)
    np.testing.assert_array_equal(found, plain)


# -- names --------------------------------------------------------------------------------------


@run_every_case(
    ("columns", "classes", "places"),
    [
        (["1", "0"], [0, 1], [1, 0]),
        ([1, 0], [0, 1], [1, 0]),
        ([1, 0], [0.0, 1.0], [1, 0]),
        (["1.0", "0.0"], [0, 1], [1, 0]),
        (["1", "0"], [False, True], [1, 0]),
        (["true", "false"], [False, True], [1, 0]),
        ([True, False], [0, 1], [1, 0]),
        (["c1", "c2", "c10"], ["c1", "c10", "c2"], [0, 2, 1]),
        (["b", "a"], ["a", "b"], [1, 0]),
        (["p_b", "p_a"], ["a", "b"], None),
        (["a", "a"], ["a", "b"], None),
        (["b", "a", "c"], ["a", "b"], None),
        (["a"], ["a"], None),
        (["1", "1.0"], [0, 1], None),
    ],
)
def test_which_names_are_those_of_classes(columns, classes, places):
    proba = np.full((1, len(columns)), 1 / len(columns))
    found = find_columns_if_names_match(pd.DataFrame(proba, columns=columns), classes)
    assert (None if found is None else found.tolist()) == places


def test_numbers_that_pandas_counts_with_are_no_names():
    """A table of an array has the columns 0, 1, 2, whatever the order of `labels`."""
    data = rows(3)
    order = [2, 1, 0]
    given = pd.DataFrame(data["first"][:, order])
    expected = brier_loss(data["y"], data["first"])
    assert brier_loss(data["y"], given, labels=order) == pytest.approx(expected)
    picked = pd.DataFrame(data["first"])[order]
    assert brier_loss(data["y"], picked) == pytest.approx(expected)
    assert brier_loss(data["y"], picked, labels=order) == pytest.approx(expected)


def test_a_lazy_frame_and_integers_as_names():
    data = rows(2)
    lazy = table(data["first"], [1, 0], "polars", np.array(["0", "1"])).lazy()
    assert log_loss(data["y"], lazy) == pytest.approx(
        log_loss(data["y"], data["first"])
    )


def test_other_names_keep_their_position():
    data = rows(3)
    given = pd.DataFrame(data["first"], columns=["c_", "a_", "b_"])
    assert log_loss(NAMES[data["y"]], given) == log_loss(data["y"], data["first"])


def test_logits_are_followed_with_their_logarithms():
    data = rows(3)
    logits = 300 * np.log(data["first"])
    expected = decompose_loss(NAMES[data["y"]], canonical_proba(logits, kind="logits"))
    model = TemperatureScaling().fit_blocks(
        [(table(logits, [2, 0, 1]), NAMES[data["y"]])], classes=NAMES
    )
    plain = TemperatureScaling().fit_blocks([(logits, data["y"])])
    assert model.temperature_ == plain.temperature_
    proba = canonical_proba(logits, kind="logits")
    exchanged = proba[:, [1, 0, 2]]
    np.testing.assert_array_equal(exchanged._log, proba._log[:, [1, 0, 2]])
    assert expected.risk > 0 and type(proba[:, :2]) is np.ndarray


# -- what has arguments of its own ----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_reports(kind):
    quick = {"measures": ["log_loss"], "n_resamples": 2}
    data = rows(3)
    y, given = NAMES[data["y"]], table(data["first"], [2, 0, 1], kind)
    expected = calibration_report(y, data["first"], check_columns=False, **quick)
    for more in ({}, {"normalize": True}):
        found = calibration_report(y, {"model": given}, **quick, **more)
        assert found.rows[0].value == pytest.approx(expected.rows[0].value)
    assert find_column_order(y, given) is None


@pytest.mark.parametrize("kind", KINDS)
def test_summaries_and_monitors(kind):
    data = rows(3)
    y, order = NAMES[data["y"]], [2, 0, 1]
    given = table(data["first"], order, kind)
    found = CalibrationSummary(classes=NAMES).update(y, given)
    expected = CalibrationSummary(classes=NAMES).update(y, data["first"])
    assert found.measure("log_loss") == expected.measure("log_loss")
    shares = np.eye(3)[data["y"]] * 0.8 + 0.2 / 3
    soft = CalibrationSummary(classes=NAMES).update(
        table(shares, [1, 0, 2], kind), given, soft_labels=True
    )
    plain = CalibrationSummary(classes=NAMES).update(
        shares, data["first"], soft_labels=True
    )
    assert soft.measure("log_loss") == pytest.approx(plain.measure("log_loss"))
    frame = table(data["first"], order).assign(y=y)
    one = summarize(KINDS[kind](frame), label="y", prob=["c", "a", "b"], classes=NAMES)
    assert one.measure("log_loss") == expected.measure("log_loss")
    numbered = table(data["first"], order, names=np.array(["0", "1", "2"])).assign(
        y=data["y"]
    )
    one = summarize(KINDS[kind](numbered), label="y", prob=["2", "0", "1"])
    assert one.measure("log_loss") == expected.measure("log_loss")
    watch = {"classes": NAMES, "multiclass": "classwise"}
    found = CalibrationMonitor(**watch).update(y, given)
    expected = CalibrationMonitor(**watch).update(y, data["first"])
    assert found.e_values_ == expected.e_values_


#: Arguments that displays need, or that let those without `groups=` in their signature
#: draw.
MORE = {
    "GradeDisplay": {"grades": [0.2, 0.5]},
    "GroupReliabilityDisplay": {
        "groups": GROUPS[:80],
        "min_rows": 10,
        "n_resamples": 2,
    },
}
#: Displays of other arguments.
OTHERS = {"CalibratingFunctionDisplay", "RefinementCurveDisplay"}


def displays():
    """Displays that are drawn of labels and probabilities."""
    for name in names_of("displays"):
        drawn = getattr(getattr(displays_, name), "from_predictions", None)
        known = () if drawn is None else inspect.signature(drawn).parameters
        if "y_proba" in known and name not in OTHERS:
            yield name


@run_every_case("name", displays())
def test_displays(name):
    pytest.importorskip("matplotlib").use("Agg")
    draw = getattr(displays_, name).from_predictions
    known = inspect.signature(draw).parameters
    more = {"n_resamples": 2, "groups": GROUPS[:80]}
    more = {key: value for key, value in more.items() if key in known}
    more |= MORE.get(name, {})
    data = rows(2)
    y = NAMES[data["y"]]
    expected = draw(y, data["first"], **more).get_plotted_data()
    found = draw(y, table(data["first"], [1, 0], "polars"), **more).get_plotted_data()
    same(found, expected, exact=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("multilabel", ["macro", "micro"])
def test_many_labels(kind, multilabel):
    rng = np.random.default_rng(0)
    proba = rng.random((60, 3)) ** [1, 2, 4]
    Y = (rng.random((60, 3)) < proba).astype(int)
    expected = log_loss(Y, proba, multilabel=multilabel)
    P = table(proba, [2, 0, 1], kind)
    named = table(Y, [0, 1, 2], kind)
    for given, options in (
        ((named, P), {}),
        ((table(Y, [1, 0, 2], kind), P), {}),
        ((named, P), {"labels": ["x", "y", "z"]}),
        ((named, P), {"labels": ["b", "c", "a"]}),
        ((Y, P), {"labels": ["a", "b", "c"]}),
    ):
        found = log_loss(*given, multilabel=multilabel, **options)
        assert found == pytest.approx(expected, rel=1e-12)
    curves = reliability_curve(named, P, multilabel=multilabel, n_resamples=0)
    plain = reliability_curve(Y, proba, multilabel=multilabel, n_resamples=0)
    same([*curves], [*plain], exact=False)
    quick = {"measures": ["log_loss"], "n_resamples": 2}
    one, other = (multilabel_report(*g, **quick) for g in ((named, P), (Y, proba)))
    assert [row.value for row in one.rows] == [row.value for row in other.rows]
    model = MultilabelCalibration().fit(P, named)
    plain = MultilabelCalibration().fit(proba, Y).predict_proba(proba)
    for order in ([0, 1, 2], [1, 2, 0]):
        np.testing.assert_allclose(
            model.predict_proba(table(proba, order, kind)), plain
        )


@pytest.mark.parametrize("kind", KINDS)
def test_soft_labels(kind):
    data = rows(3)
    shares = np.eye(3)[data["y"]] * 0.8 + 0.2 / 3
    expected = log_loss(shares, data["first"], soft_labels=True)
    for names in (NAMES, np.array(["0", "1", "2"]), np.array(["p", "q", "r"])):
        Y = table(shares, [1, 2, 0], kind, names)
        P = table(data["first"], [2, 0, 1], kind, names)
        found = log_loss(Y, P, soft_labels=True)
        assert found == pytest.approx(expected)
        fitted = VectorScaling().fit(P, Y, soft_labels=True)
        plain = VectorScaling().fit(data["first"], shares, soft_labels=True)
        places = [2, 0, 1] if names[0] != "0" else [0, 1, 2]
        np.testing.assert_allclose(
            fitted.predict_proba(table(data["first"], [0, 1, 2], kind, names)),
            plain.predict_proba(data["first"])[:, places],
            atol=1e-6,
        )
    Y = table(shares, [1, 2, 0], kind)
    found = log_loss(
        Y, table(data["first"], [2, 0, 1], kind), soft_labels=True, labels=NAMES
    )
    assert found == pytest.approx(expected)


def test_costs():
    data = rows(3)
    y = NAMES[data["y"]]
    costs = np.array([[0, 1, 7], [2, 0, 3], [9, 4, 0.0]])
    given = pd.DataFrame(costs, NAMES, NAMES)
    expected = expected_cost_test(y, data["first"], costs)
    for order in ([2, 0, 1], [1, 0, 2]):
        for frame in (
            given.iloc[order],
            given.iloc[:, order],
            given.iloc[order, order],
        ):
            same(expected_cost_test(y, data["first"], frame), expected, exact=False)
    found = expected_metrics(data["first"], y_true=y, costs=given.iloc[[2, 0, 1]])
    same(found, expected_metrics(data["first"], y_true=y, costs=costs), exact=False)


def test_maps_without_labels_and_two_samples():
    proba, y = rows_of_methods(2)
    y = NAMES[y]
    given = table(proba, [1, 0])
    shift = PriorShift(mean={"a": 0.3, "b": 0.7})
    found = shift.fit(given).predict_proba(given)
    np.testing.assert_array_equal(found, shift.fit(proba).predict_proba(proba))
    adapted = PriorShift().fit(proba, y).adapt(given)
    assert (
        adapted.prior_.tolist()
        == PriorShift().fit(proba, y).adapt(proba).prior_.tolist()
    )
    quick = {"n_resamples": 20, "random_state": 0}
    found = prior_shift_test(given, y, table(proba, [0, 1]), **quick)
    same(found, prior_shift_test(proba, y, proba, **quick), exact=False)
    found = cross_fitted_proba("platt", given, y)
    np.testing.assert_array_equal(found, cross_fitted_proba("platt", proba, y))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", KINDS)
def test_a_document_knows_the_names(kind):
    proba, y = rows_of_methods(3)
    names = np.array(["pa", "pb", "pc"])
    fitted = VectorScaling().fit(table(proba, [0, 1, 2], kind, names), NAMES[y])
    document = to_dict(fitted)
    assert document["columns"] == {"scores": names.tolist()}
    exported = from_dict(document)
    expected = fitted.predict_proba(table(proba, [0, 1, 2], kind, names))
    for known in (names, NAMES):
        found = exported.predict_proba(table(proba, [2, 0, 1], kind, known))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    written = from_dict(
        to_dict(VectorScaling().fit(proba, NAMES[y]), columns=names.tolist())
    )
    found = written.transform(table(proba, [2, 0, 1], kind, names))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_report_of_many_labels_looks_at_the_named_columns():
    rng = np.random.default_rng(0)
    proba = rng.random((400, 3)) ** [1, 2, 3]
    Y = (rng.random((400, 3)) < proba).astype(int)
    quick = {"measures": ["log_loss"], "n_resamples": 2}
    expected = multilabel_report(Y, proba, labels=NAMES, **quick)
    given = table(Y, [0, 1, 2]), table(proba, [1, 2, 0])
    for more in ({}, {"labels": ["c", "b", "a"]}):
        found = multilabel_report(*given, **quick, **more)
        values = {row.model: row.value for row in found.rows}
        assert values == {row.model: row.value for row in expected.rows}
    unnamed = [pd.DataFrame(one.to_numpy()) for one in given]
    with raises_invalid_input(ValueError, expected=".*in the order of the labels"):
        multilabel_report(*unnamed, **quick)


def test_names_that_were_not_there_at_fit():
    proba, y = rows_of_methods(2)
    fitted = TemperatureScaling().fit(table(proba, [0, 1]), NAMES[y])
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict_proba(table(proba, [0, 1], names=np.array(["x", "y"])))
    twice = pd.DataFrame(proba, columns=["a", "a"])
    with raises_invalid_input(ValueError, expected="columns of different names"):
        TemperatureScaling().fit(twice, NAMES[y])
