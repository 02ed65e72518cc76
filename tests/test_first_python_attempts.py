"""What people try first in Python: each attempt works, or its error states what to write."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, canonical_proba
from sklearn_calib._warnings import warn_calibration
from sklearn_calib.decisions import SelectiveClassifier, risk_coverage_curve
from sklearn_calib.decomposition import variational_calibration_error
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.export import from_json
from sklearn_calib.groups import MulticalibratedModel
from sklearn_calib.inference import confidence_interval
from sklearn_calib.metrics import all_metrics, brier_loss, expected_calibration_error
from sklearn_calib.monitoring import safe_calibration_test
from sklearn_calib.recalibrators import (
    MulticalibratedScores,
    PlattScaling,
    RestrictedPolynomialRegression,
    StackedCalibration,
    all_recalibrators,
)
from sklearn_calib.report import calibration_report

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
P = 1 / (1 + np.exp(-X[:, 0]))
Y = (RNG.random(120) < P).astype(int)
TWO = np.column_stack([1 - P, P])
WORDS = np.array(["bad", "good"])[Y]


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("wrap", [FrozenEstimator, make_pipeline, clone])
def test_scores_of_pairs_of_classes_are_refused(n_classes, wrap):
    y = np.arange(120) % n_classes
    svc = SVC(decision_function_shape="ovo")
    model = wrap(svc.fit(X, y) if wrap is FrozenEstimator else svc)
    n_pairs = n_classes * (n_classes - 1) // 2
    with raises_invalid_input(
        ValueError, value=f"{n_pairs}, one per pair", hint=".*'ovr'"
    ):
        CalibratedModel(model).fit(X, y)


@pytest.mark.parametrize("learned, given", [(Y, WORDS), (WORDS, Y)])
def test_labels_of_another_encoding_than_the_model(learned, given):
    model = FrozenEstimator(LogisticRegression().fit(X, learned))
    with raises_invalid_input(ValueError, hint=".*encode y in the same way"):
        CalibratedModel(model).fit(X, given)


RECORDS = np.array(
    list(zip(Y == 1, P, strict=True)), dtype=[("event", bool), ("time", float)]
)


@pytest.mark.parametrize("y", [RECORDS, list(zip(Y == 1, P * 9, strict=True))])
@pytest.mark.parametrize(
    "call",
    [
        lambda y: CalibratedModel(LogisticRegression()).fit(X, y),
        lambda y: PlattScaling().fit(TWO, y),
        lambda y: expected_calibration_error(y, P),
        lambda y: calibration_report(y, P),
    ],
)
def test_times_to_an_event_are_out_of_scope(call, y):
    with pytest.raises(InvalidInputError, match="out of scope: choose a time"):
        call(y)


def test_regressors_are_out_of_scope():
    with raises_invalid_input(
        TypeError, value="PoissonRegressor", hint=".*choose a threshold"
    ):
        CalibratedModel(PoissonRegressor()).fit(X, Y)


@pytest.mark.parametrize("groups", [["sex"], "sex", lambda X: X[["sex"]]])
def test_groups_by_a_column_that_the_frozen_model_does_not_know(groups):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        sex=np.where(X[:, 3] > 0, "m", "f")
    )
    known = LogisticRegression().fit(frame[list("abcd")], Y)
    model = MulticalibratedModel(FrozenEstimator(known), groups=groups, n_trees=20).fit(
        frame, Y
    )
    alone = MulticalibratedScores(n_trees=20).fit(
        known.predict_proba(frame[list("abcd")]), Y, groups={"sex": frame["sex"]}
    )
    expected = alone.predict_proba(
        known.predict_proba(frame[list("abcd")]), groups={"sex": frame["sex"]}
    )
    np.testing.assert_allclose(model.predict_proba(frame[["sex", *"dcba"]]), expected)
    assert set(model.predict(frame)) <= {0, 1}


def test_groups_by_a_position_that_the_frozen_model_does_not_know():
    known = LogisticRegression().fit(X[:, :3], Y)
    model = MulticalibratedModel(FrozenEstimator(known), groups=[-1]).fit(X, Y)
    same = MulticalibratedModel(FrozenEstimator(known), groups=3).fit(X.tolist(), Y)
    np.testing.assert_array_equal(
        model.predict_proba(X), same.predict_proba(X.tolist())
    )


@run_every_case("y", [WORDS, WORDS.astype(object), pd.Series(WORDS)])
@run_every_case(
    "call",
    [
        lambda y: brier_loss(y, P),
        lambda y: brier_loss(y, P, pos_label=np.str_("worse")),
        lambda y: brier_loss(y, P, labels=np.array(["bad", "best"])),
        lambda y: brier_loss(y, TWO, labels=[np.str_("good")]),
        lambda y: PlattScaling().fit(P, y),
        lambda y: PlattScaling().fit(TWO, y, classes=[np.str_("a"), np.str_("b")]),
        lambda y: calibration_report(y, P),
        lambda y: calibration_report(y, P, pos_label=y[0] + "x"),
        lambda y: CalibratedModel(FrozenEstimator(LogisticRegression().fit(X, Y))).fit(
            X, y
        ),
        lambda y: confidence_interval(y, P, np.str_("ace")),
    ],
)
def test_messages_show_labels_as_python_does(call, y):
    with pytest.raises(InvalidInputError) as raised:
        call(y)
    assert "np." not in str(raised.value)


def test_scalars_of_numpy_look_like_those_of_python():
    given = [
        np.str_("it's"),
        np.float64(-1.5),
        np.int64(3),
        np.bool_(True),
        np.bytes_(b"a"),
    ]
    with pytest.warns(UserWarning) as caught:
        warn_calibration("another", f"{given}", "Write np.asarray(x)")
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert caught[0].message.value == """["it's", -1.5, 3, True, b'a']"""
    assert "np.asarray(x)" in str(caught[0].message)


@pytest.mark.parametrize("name", ["auc", "AUC", "roc_auc", "accuracy", "f1"])
def test_what_is_no_measure_of_calibration(name):
    with raises_invalid_input(
        ValueError, expected="a measure of calibration", hint=".*validation_summary"
    ):
        confidence_interval(Y, P, name)


def test_names_of_other_measures_are_not_ours():
    assert not {"auc", "roc_auc", "accuracy", "f1"} & {*all_metrics()}


class Module:  # of torch, which is not needed for this
    __module__ = "torch.nn.modules.module"

    def __call__(self, X):
        raise TypeError("linear(): argument 'input' must be Tensor")


class Net(Module):
    pass


class NotCallable:
    __module__ = "torch.jit"


@pytest.mark.parametrize("module", [Module, Net, NotCallable])
def test_a_torch_module_is_told_what_to_write(module):
    with raises_invalid_input(
        TypeError, hint=r".*FrozenEstimator\(lambda X: module\(torch"
    ):
        CalibratedModel(FrozenEstimator(module())).fit(X, Y)


def test_functions_keep_their_own_errors():
    def wrong(X):
        raise TypeError("of mine")

    with pytest.raises(TypeError, match="of mine"):
        CalibratedModel(FrozenEstimator(wrong)).fit(X, Y)


@pytest.mark.parametrize("n_folds", [2**31, 10**15])
def test_more_folds_than_rows(n_folds):
    found = RestrictedPolynomialRegression(cv=n_folds).fit(TWO, Y)
    assert found.degree_ == RestrictedPolynomialRegression(cv=121).fit(TWO, Y).degree_


def test_safe_tests_have_a_bounded_number_of_fits():
    with raises_invalid_input(ValueError, expected=".*n_splits <= 1000", value="10000"):
        safe_calibration_test(Y, P, n_splits=10**4)


def test_a_file_that_is_not_there(tmp_path):
    with raises_invalid_input(
        FileNotFoundError, value="'.*no.json'", hint="Check the name"
    ):
        from_json(str(tmp_path / "no.json"))


@pytest.mark.parametrize("n_classes", [np.array([1, 2]), "2", 2.5])
def test_a_number_of_classes_is_a_number(n_classes):
    with raises_invalid_input(ValueError, expected="a whole number n_classes"):
        canonical_proba(P, n_classes=n_classes)


EMPTY = {
    "CalibratedModel": lambda cv: CalibratedModel(LogisticRegression(), cv=cv).fit(
        X, Y
    ),
    "many labels": lambda cv: CalibratedModel(
        MultiOutputClassifier(LogisticRegression()), cv=cv
    ).fit(X, np.column_stack([Y, 1 - Y])),
    "RefineThenCalibrateCV": lambda cv: RefineThenCalibrateCV(
        LogisticRegression(), cv=cv
    ).fit(X, Y),
    "MulticalibratedModel": lambda cv: MulticalibratedModel(
        LogisticRegression(), cv=cv
    ).fit(X, Y),
    "MulticalibratedScores": lambda cv: MulticalibratedScores(cv=cv).fit(
        TWO, Y, groups={"a": Y}
    ),
    "StackedCalibration": lambda cv: StackedCalibration(cv=cv).fit(TWO, Y),
    "auto": lambda cv: all_recalibrators()["auto"](cv=cv).fit(TWO, Y),
    "variational": lambda cv: variational_calibration_error(Y, P, cv=cv),
}


@run_every_case("kind", [list, lambda pairs: iter([*pairs])])
@run_every_case("who", EMPTY)
def test_folds_that_are_none(who, kind):
    with raises_invalid_input(ValueError, expected="at least one fold"):
        EMPTY[who](kind([]))


@run_every_case("name", sorted(all_recalibrators()))
def test_a_penalty_of_single_precision(name):
    method = all_recalibrators()[name]
    options = {"penalty", "strength", "prior_weight"} & {*method._get_param_names()}
    for option in sorted(options):
        found = method(**{option: np.float32(0.5)}).fit(TWO, Y).predict_proba(TWO)
        expected = method(**{option: 0.5}).fit(TWO, Y).predict_proba(TWO)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


PLAIN_PYTHON = """
import numpy as np
from sklearn_calib.metrics import expected_calibration_error
from sklearn_calib.recalibrators import IsotonicCalibration, PlattScaling
from sklearn_calib.summary import CalibrationSummary
p = np.linspace(0.02, 0.98, 25)
y = (np.arange(25) % 3 == 0).astype(int)
two = np.column_stack([1 - p, p])
for method in (PlattScaling(), IsotonicCalibration()):
    print(method.fit(two, y).predict_proba(two)[:3, 1].round(9).tolist())
print(round(expected_calibration_error(y, p), 9))
print(CalibrationSummary().update([1, *y], [0.0, *p]).totals)  # one row is certain and wrong
"""


@pytest.mark.slow
def test_without_the_compiler():
    command = [sys.executable, "-W", "error", "-c", PLAIN_PYTHON]
    found = [
        subprocess.run(
            command,
            env=os.environ | changes,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for changes in ({"NUMBA_DISABLE_JIT": "1"}, {})
    ]
    assert found[0] == found[1]


def test_a_verdict_is_a_text_with_attributes():
    verdict = calibration_report(Y, P, n_resamples=20).verdict
    assert verdict == " ".join(sentence.text for sentence in verdict.sentences)
    assert verdict[:10] in verdict
    assert json.loads(json.dumps(verdict)) == str(verdict)
    again = pickle.loads(pickle.dumps(verdict))
    assert (again, again.p_value, again.sentences) == (
        verdict,
        verdict.p_value,
        verdict.sentences,
    )


@run_every_case(
    "label, labels",
    [
        (-1, Y),
        (np.int64(-1), Y),
        (-1, Y.astype(np.int8)),
        (-1, Y.astype(float)),
        (np.str_("no"), WORDS),
        ("no", WORDS),
    ],
)
def test_answers_keep_the_dtype_of_the_labels(label, labels):
    model = SelectiveClassifier(LogisticRegression(), coverage=0.5, abstain_label=label)
    answers = model.fit(X, labels).predict(X)
    assert answers.dtype == labels.dtype
    assert np.unique(answers).tolist() == sorted([*np.unique(labels), label])


@pytest.mark.parametrize("weight", [np.ones(120), np.arange(120) % 7 / 3])
def test_risk_and_coverage_against_their_definition(weight):
    p = np.round(P, 1)
    curve = risk_coverage_curve(Y, p, sample_weight=weight)
    confidence = np.maximum(p, 1 - p)
    for level, coverage, risk, rows in zip(
        curve.threshold, curve.coverage, curve.risk, curve.rows, strict=True
    ):
        answered = confidence >= level - 1e-12
        w = weight[answered]
        wrong = (p > 0.5) != Y
        assert coverage == pytest.approx(w.sum() / weight.sum())
        assert risk == pytest.approx(w @ wrong[answered] / w.sum())
        assert rows == pytest.approx(w.sum() ** 2 / (w @ w))
