"""The contract of `Measure`, `Predictions` and `BinaryProblem`, which all measures share."""

import inspect
import pickle
import re

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib import canonical_proba
from sklearn_calib._validation import _labels, _scores
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.inference import calibration_test, confidence_interval
from sklearn_calib.metrics import (
    BinaryProblem,
    Measure,
    all_metrics,
    binary_measure,
    brier_loss,
    calibration_error,
    expected_calibration_error,
    kernel_calibration_error,
    log_loss,
    measure,
    smooth_calibration_error,
    validate_predictions,
)
from sklearn_calib.report import calibration_report

MEASURES = pytest.mark.parametrize("measure", all_metrics().values(), ids=repr)


@MEASURES
def test_signature_and_docstring(measure):
    names = list(inspect.signature(measure).parameters)
    assert names[:2] == ["y_true", "y_proba"]
    assert {"sample_weight", "labels", "pos_label"} <= set(names)
    for name in names:
        assert re.search(rf"(?m)^(\w+, )*{name}(, \w+)*( :|$)", measure.__doc__), name
    assert measure.__doc__.count("Parameters\n---") == 1
    assert "are a ValueError or TypeError" in measure.__doc__
    assert pickle.loads(pickle.dumps(measure)) is measure
    assert repr(measure) == f"<measure {measure.__name__}>"


def test_what_needs_no_positive_class_takes_it_as_the_owner_of_a_column():
    assert not log_loss.has_pos_label and not brier_loss.has_pos_label
    for loss in (log_loss, brier_loss):
        expected = loss([1, 0], [0.8, 0.1])
        assert loss([0, 1], [0.8, 0.1], pos_label=0) == pytest.approx(expected)
        two = [[0.8, 0.2], [0.1, 0.9]]
        assert loss([0, 1], two, pos_label=0) == loss([0, 1], two)


def test_what_a_measure_alone_takes_is_said_elsewhere():
    """Was: got 'multilabel'. Write 'multilabel', the nearest name."""
    message = (
        r"got 'multilabel'\. Leave it out: smooth_calibration_error takes it where it"
    )
    with pytest.raises(ValueError, match=message):
        calibration_test([0, 1], [0.2, 0.9], multilabel="macro")
    with raises_invalid_input(
        ValueError, value="'pos_lable'", hint="Write 'pos_label', the nearest name"
    ):
        smooth_calibration_error([0, 1], [0.2, 0.9], pos_lable=1)


@MEASURES
def test_an_unknown_option_is_refused_by_name(measure):
    y, p = [0, 1], [0.2, 0.9]
    message = rf"^expected options of {measure.__name__} among .*, got 'bandwith'"
    with pytest.raises(ValueError, match=message):
        measure(y, p, bandwith=1)
    with pytest.raises(ValueError, match=message):
        measure.evaluate(validate_predictions(y, p), bandwith=1)


@run_every_case("k", [2, 4])
@MEASURES
def test_resamples_equal_fresh_evaluations(measure, k):
    """Sharing the order of the scores changes nothing, also if weights become 0."""
    proba, y = make_overconfident(k, 300)
    # ties
    proba = canonical_proba(proba.round(2) / proba.round(2).sum(axis=1, keepdims=True))
    case = validate_predictions(y, proba)
    measure.evaluate(case)  # so that there is an order to share
    rng = np.random.default_rng(0)
    codes, weight = rng.permutation(y), rng.integers(0, 3, len(y)).astype(float)
    known = {"labels": np.arange(k)}
    tolerance = 1e-6 if "distance" in measure.__name__ else 1e-12
    for resample, fresh in (
        (case.with_labels(codes), measure(codes, proba, **known)),
        (case.with_weight(weight), measure(y, proba, sample_weight=weight, **known)),
        (case.take(np.arange(50)), measure(y[:50], proba[:50], **known)),
    ):
        value = measure.evaluate(resample)
        assert isinstance(value, float) and value == pytest.approx(fresh, abs=tolerance)


@pytest.mark.parametrize("call", ["report", "test", "bootstrap", "inversion"])
def test_predictions_are_checked_once(call, monkeypatch):
    checked, labelled = [], []
    check, label = _scores._check_and_normalise_proba, _labels._read_label_array
    monkeypatch.setattr(
        _scores,
        "_check_and_normalise_proba",
        lambda *a: checked.append(len(a[0])) or check(*a),
    )
    monkeypatch.setattr(
        _labels, "_read_label_array", lambda *a: labelled.append(len(a[0])) or label(*a)
    )
    proba, y = make_overconfident(2, 301)
    if call == "report":
        calibration_report(y, proba, n_resamples=3)
    elif call == "test":
        calibration_test(
            y, proba, statistic="expected_calibration_error", n_resamples=9
        )
    else:
        measure = "brier_loss" if call == "bootstrap" else "smooth_calibration_error"
        confidence_interval(y, proba, measure, n_resamples=9, recalibrator="platt")
    assert checked.count(301) == 1
    assert labelled.count(301) == 1


def test_cells():
    rng = np.random.default_rng(0)
    score, hit = rng.integers(0, 9, 200) / 8, rng.integers(0, 2, 200).astype(float)
    weight = rng.random(200)
    problem = BinaryProblem(score, hit, weight)
    cells = problem.cells
    np.testing.assert_array_equal(cells.score, np.unique(score))
    for i, value in enumerate(cells.score):
        rows = score == value
        assert cells.mass[i] == pytest.approx(weight[rows].sum())
        assert cells.hits[i] == pytest.approx(weight[rows] @ hit[rows])
        assert (problem.cell_indices[rows] == i).all()
    assert cells.residual.sum() == pytest.approx(weight @ (hit - score) / weight.sum())


def test_a_measure_of_a_problem_is_averaged_over_the_classes():
    @binary_measure(range=(-1, 1))
    def bias(problem):
        """Mean prediction less frequency."""
        weight = problem.weight / problem.weight.sum()
        return weight @ (problem.score - problem.hit)

    assert isinstance(bias, Measure)
    proba, y = make_overconfident(4, 200)
    by_class = [bias((y == c).astype(int), proba[:, c]) for c in range(4)]
    assert bias(y, proba, multiclass="classwise") == pytest.approx(np.mean(by_class))
    top = proba.argmax(axis=1)
    right = (top == y).astype(int)
    by_prediction = [
        np.mean(top == c)
        * bias(right[top == c], proba.max(axis=1)[top == c], labels=[0, 1])
        for c in np.unique(top)
    ]
    assert bias(y, proba, multiclass="top_label") == pytest.approx(sum(by_prediction))
    with raises_invalid_input(
        ValueError, expected="multiclass among auto, ", value="'each'"
    ):
        bias(y, proba, multiclass="each")


def test_options_that_are_not_keyword_only_are_refused():
    with raises_invalid_input(
        ValueError, expected="a function of validated predictions and keyword-only"
    ):

        @measure()
        def old(y_true, y_proba):
            return 0.0


def test_cube_root_bins():
    proba, y = make_overconfident(2, 1000)
    value = expected_calibration_error(y, proba, n_bins="cube_root")
    assert value == expected_calibration_error(y, proba, n_bins=10)


def test_errors_carry_the_name_that_was_called():
    for error in (calibration_error, expected_calibration_error):
        with raises_invalid_input(ValueError, expected="strategy among"):
            error([0, 1], [0.2, 0.9], strategy="width")
    with raises_invalid_input(ValueError, expected="kernel 'laplace'"):
        kernel_calibration_error([0, 1], [0.2, 0.9], kernel="gauss")


@pytest.mark.parametrize("pos_label", ["no", "yes"])
def test_some_rows_of_a_case_keep_the_positive_class(pos_label):
    """`take` of a case, also of one whose scores came in one column."""
    rng = np.random.default_rng(0)
    p, y = rng.random(60), rng.choice(["no", "yes"], 60)
    rows = np.flatnonzero(rng.random(60) < 0.5)
    for scores in (p, np.column_stack([1 - p, p])):
        for weight in (None, rng.random(60) + 0.1):
            case = validate_predictions(y, scores, weight, None, pos_label)
            own = None if weight is None else weight[rows]
            found = expected_calibration_error.evaluate(case.take(rows))
            assert found == expected_calibration_error(
                y[rows],
                scores[rows],
                sample_weight=own,
                labels=["no", "yes"],
                pos_label=pos_label,
            )
            assert case.take(rows).positive == ["no", "yes"].index(pos_label)


def test_a_measure_with_a_joint_value_has_one_of_all_classes():
    @binary_measure(range=(0, 1), joint=lambda predictions: 0.25)
    def share(problem):
        """Weight of the events."""
        return problem.weight @ problem.hit / problem.weight.sum()

    proba, y = make_overconfident(3, 30)
    assert "canonical" in share.spec.multiclass
    assert share(y, proba, multiclass="canonical") == 0.25
    assert share(y, proba, multiclass="classwise") != 0.25
