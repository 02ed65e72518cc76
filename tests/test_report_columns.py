"""Columns of a report: orders that cannot be meant, rounded rows, log losses of other floors."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy.special import expit, softmax

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import log_loss
from sklearn_calib.report import calibration_report, find_column_order
from sklearn_calib.summary import CalibrationSummary

QUICK = {"measures": ["expected_calibration_error"], "n_resamples": 2}


def good(n, k, seed=0):
    """Labels and predictions of a model that is right in most rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    z = rng.normal(size=(n, k))
    z[np.arange(n), y] += 3
    return y, softmax(1.5 * z, axis=1)


# -- orders that cannot be meant ------------------------------------------------------------------


@run_every_case(
    "order",
    [
        [1, 0],
        [1, 2, 0],
        [0, 2, 1, 3],
        [1, 0, 3, 2],
        [*range(8), 9, 8],
        [*range(1, 10), 0],
    ],
)
def test_exchanged_columns_are_found(order):
    k = len(order)
    y, proba = good(800, k)
    labels = np.array(list("abcdefghij"[:k]))
    assert find_column_order(labels[y], proba) is None
    found = find_column_order(labels[y], proba[:, order])
    assert found.classes.tolist() == labels[order].tolist()
    assert found.accuracy == pytest.approx((proba.argmax(axis=1) == y).mean())
    assert found.accuracy_as_given < found.accuracy - 0.15 / k
    # what the message states to pass is right
    assert find_column_order(labels[y], proba[:, order], labels=found.classes) is None


def test_probability_of_the_other_class():
    """Also of a rare event, where no prediction is above 1/2, and of a summary."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=5000)
    p = np.minimum(expit(2 * z - 5.5), 0.4)
    y = (rng.random(5000) < p).astype(int)
    assert 0.01 < y.mean() < 0.05
    message = (
        r"columns of model in the order of the classes \[0, 1\], "
        r"got columns that fit \[1, 0\]"
    )
    with pytest.raises(ValueError, match=message):
        calibration_report(y, 1 - p, **QUICK)
    with pytest.raises(
        ValueError, match=r"probabilities of the other class.*check_columns=False"
    ):
        calibration_report(CalibrationSummary().update(y, 1 - p), **QUICK)
    assert (
        calibration_report(y, 1 - p, check_columns=False, **QUICK).accuracy["model"]
        < 0.1
    )
    for given in ((y, p), (CalibrationSummary().update(y, p),)):
        calibration_report(*given, **QUICK)


def test_message_names_the_order_and_the_cure():
    y, proba = good(500, 3)
    names = np.array(["bird", "cat", "dog"])
    with pytest.raises(ValueError) as error:
        calibration_report(names[y], proba[:, [2, 0, 1]], name="net", **QUICK)
    text = str(error.value)
    assert "columns of net in the order of the classes ['bird', 'cat', 'dog']" in text
    assert "Pass labels=['dog', 'bird', 'cat']" in text
    accuracies = [float(x) for x in re.findall(r"in (0\.\d{4})", text)]
    assert accuracies[0] < 0.2 and accuracies[1] > 0.8
    report = calibration_report(
        names[y], proba[:, [2, 0, 1]], labels=["dog", "bird", "cat"], **QUICK
    )
    assert report.accuracy["model"] == pytest.approx(accuracies[1], abs=1e-4)


def honest(kind, rng):
    """Labels and predictions that are meant as they are, however poor."""
    n, k = int(rng.integers(2, 400)), int(rng.integers(2, 8))
    if kind == "noise":  # predictions that know nothing
        return rng.integers(0, k, n), rng.dirichlet(np.ones(k), n), k
    if kind == "calibrated":
        p = rng.dirichlet(np.full(k, 0.5), n)
        y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=k - 1)
        return y, p, k
    # 1 % positives, from a model for half of them: all predictions too high
    if kind == "rare":
        z = rng.normal(size=n)
        return (rng.random(n) < expit(z - 5)).astype(int), expit(z + rng.normal()), 2
    if kind == "tiny":  # all predictions wrong
        n = int(rng.integers(2, 9))
        y = rng.integers(0, 2, n)
        return y, np.abs(1 - y - 0.05), 2
    # a class that the model has never seen so often; it states another one
    if kind == "shift":
        y = np.where(rng.random(n) < 0.9, 0, rng.integers(0, k, n))
        z = rng.normal(size=(n, k))
        z[:, k - 1] += 2
        z[np.arange(n), y] += 0.5
        return y, softmax(z, axis=1), k
    z = rng.normal(size=n)  # worse than nothing, but not by much
    return (rng.random(n) < expit(-0.3 * z)).astype(int), expit(z), 2


@run_every_case("kind", ["noise", "calibrated", "rare", "tiny", "shift", "worse"])
def test_no_alarm_on_honest_predictions(kind):
    rng = np.random.default_rng(0)
    for _ in range(100):
        y, proba, k = honest(kind, rng)
        assert find_column_order(y, proba, labels=range(k)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["noise", "calibrated", "rare", "tiny", "shift", "worse"]
)
def test_no_alarm_on_many_honest_predictions(kind):
    rng = np.random.default_rng(1)
    for _ in range(3000):
        y, proba, k = honest(kind, rng)
        assert find_column_order(y, proba, labels=range(k)) is None


def test_a_model_that_ranks_well_is_never_exchanged():
    """Nine of ten predictions on the wrong side of 1/2, and ranks that are right."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=3000)
    y = (rng.random(3000) < expit(2 * z - 4)).astype(int)
    p = expit(z + 3)
    report = calibration_report(y, p, **QUICK)
    assert report.accuracy["model"] < 0.2


# -- rounded rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.round(2), "2 decimals"),
        (lambda p: p.round(3), "3 decimals"),
        (lambda p: p.astype(np.float16).astype(float), "half precision"),
    ],
)
def test_rounded_rows_are_divided_with_one_warning(change, said):
    proba, y = make_overconfident(10, 300)
    given = change(proba)
    assert np.abs(given.sum(axis=1) - 1).max() > 1e-5
    with pytest.warns(CalibrationWarning, match=said) as caught:
        report = calibration_report(y, {"one": given}, **QUICK)
    assert len(caught) == 1
    divided = given / given.sum(axis=1, keepdims=True)
    assert report.rows[0].value == pytest.approx(
        calibration_report(y, divided, **QUICK).rows[0].value
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibration_report(y, given, normalize=True, **QUICK)


def test_other_sums_are_refused_unless_asked():
    proba, y = make_overconfident(3, 200)
    with raises_invalid_input(ValueError, expected="rows that sum to 1"):
        calibration_report(y, 0.9 * proba, **QUICK)
    report = calibration_report(y, 0.9 * proba, normalize=True, **QUICK)
    assert report.rows[0].value == pytest.approx(
        calibration_report(y, proba, **QUICK).rows[0].value
    )
    with raises_invalid_input(ValueError, expected=r"probabilities in \[0, 1\]"):
        calibration_report(y, 100 * proba, normalize=True, **QUICK)
    proba[7] = 0.0
    with pytest.raises(ValueError, match="row 7"):
        calibration_report(y, proba, normalize=True, **QUICK)


# -- log losses of other floors -------------------------------------------------------------------


def test_scikit_learn_is_quoted_where_it_differs():
    """Of float32 it raises probabilities to 1.2e-7; of float64 it states the same as the report."""
    p = np.full(100, 0.5, dtype=np.float32)
    p[:3] = 1e-10
    y = np.arange(100) % 2
    y[:3] = 1
    theirs = sklearn.metrics.log_loss(y, p)
    report = calibration_report(y, p, measures=["log_loss"], n_resamples=2)
    assert report.sklearn_log_loss == {"model": pytest.approx(theirs, rel=1e-6)}
    assert (
        report.rows[0].value == pytest.approx(log_loss(y, p)) != pytest.approx(theirs)
    )
    assert f"scikit-learn's log loss is {theirs:.4f}" in str(report)
    table = pd.DataFrame({"no": 1 - p, "yes": p})
    of_table = calibration_report(y, table, measures=["log_loss"], n_resamples=2)
    assert of_table.sklearn_log_loss == {"model": pytest.approx(theirs, rel=1e-6)}
    same = calibration_report(y, p.astype(float), measures=["log_loss"], n_resamples=2)
    assert same.sklearn_log_loss == {} and "scikit-learn" not in str(same)
    assert same.rows[0].value == pytest.approx(
        sklearn.metrics.log_loss(y, p.astype(float))
    )


@pytest.mark.slow
def test_one_log_loss_in_table_decomposition_advice_and_json():
    """Exact zeros and ones among the predictions, one of them wrong."""
    proba, y = make_overconfident(2, 2000)
    proba[0] = [1.0, 0.0]
    y[0] = 1
    report = calibration_report(
        y, proba, measures=["log_loss"], n_resamples=2, advice=True
    )
    expected = sklearn.metrics.log_loss(y, proba)
    content = report.to_dict()["models"][0]
    assert content["log_loss"] == {
        "rows_below_floor": 1,
        "rows_of_zero": 1,
        "scikit_learn": None,
    }
    for value in (
        content["measures"][0]["value"],
        content["decomposition"]["risk"],
        content["advice"]["rows"][0]["loss"],
        next(s for s in report.verdict.sentences if s.topic == "gain").numbers["loss"],
    ):
        assert value == pytest.approx(expected, rel=1e-9)
