"""The mixture as one program: equal to its candidates one by one, and used."""

import pickle
import time

import numpy as np
import pytest
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib._kernels import _row_program as kernel
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.recalibrators import (
    Identity,
    IsotonicCalibration,
    OneVsRest,
    PlattScaling,
    RestrictedPolynomialRegression,
    SplineCalibration,
    StackedCalibration,
    VennAbers,
)
from sklearn_calib.recalibrators._row_program import RowProgram


def scores(k, n, kind, seed):
    """Probabilities of three decimals, zeros among them, or logits."""
    proba, y = make_overconfident(k, n, random_state=seed)
    if kind == "logits":
        return canonical_proba(1.4 * np.log(proba), kind="logits"), y
    proba = np.round(proba, 3)
    return proba / proba.sum(axis=1, keepdims=True), y


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["proba", "logits"])
@pytest.mark.parametrize(
    ("k", "options"),
    [
        (2, {}),
        (2, {"monotone": True}),
        (2, {"recalibrators": [PlattScaling("proba"), OneVsRest(VennAbers())]}),
        (3, {}),
        (5, {"recalibrators": ["vector", "matrix", "spline", "venn_abers", "platt"]}),
    ],
)
def test_the_program_is_the_mixture(k, options, kind):
    proba, y = scores(k, 1200, kind, 0)
    stack = StackedCalibration(**options).fit(proba, y)
    others, _ = scores(k, 700, kind, 1)
    extreme = np.eye(k)[[0, 1, -1]]
    for rows in (proba, others, others[:1], np.asarray(others), extreme):
        raised = stack._check_predict(rows, "predict_proba")
        found = stack.predict_proba(rows)
        assert stack._programs and None not in stack._programs.values()
        np.testing.assert_allclose(found, stack._mixed(raised), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "candidate",
    [
        LogisticRegression(),  # no recalibrator
        RestrictedPolynomialRegression(4),  # nodes without steps
        make_pipeline(PlattScaling(), IsotonicCalibration()),  # steps of what is no given score
    ],
)
def test_candidates_without_a_program_predict_by_themselves(candidate):
    proba, y = scores(2, 300, "proba", 0)
    stack = StackedCalibration({"identity": "identity", "other": candidate}, alpha=50).fit(proba, y)
    found = stack.predict_proba(proba)
    assert stack._programs == {False: None}
    own = stack._share_of_input
    weights = [own + (1 - own) * stack.weights_["identity"], (1 - own) * stack.weights_["other"]]
    raised = stack._check_predict(proba, "predict_proba")
    expected = weights[0] * raised + weights[1] * stack.recalibrators_["other"].predict_proba(
        raised
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_another_fit_is_another_program():
    stack = StackedCalibration().fit(*scores(2, 300, "proba", 0))
    rows, _ = scores(2, 50, "proba", 9)
    before = stack.predict_proba(rows)
    after = stack.fit(*scores(2, 300, "proba", 1)).predict_proba(rows)
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_allclose(after, stack._mixed(stack._check_predict(rows, "p")), atol=1e-14)


@pytest.mark.slow
def test_a_program_is_not_pickled():
    proba, y = scores(3, 300, "proba", 0)
    stack = StackedCalibration().fit(proba, y)
    size = len(pickle.dumps(stack))
    before = stack.predict_proba(proba)
    assert len(pickle.dumps(stack)) == size
    assert (pickle.loads(pickle.dumps(stack)).predict_proba(proba) == before).all()


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"node": "uniform"}, lambda p: np.full_like(p, 0.5)),
        ({"node": "raised", "floor": 0.2}, lambda p: np.maximum(p, 0.2)),
        (
            {"node": "sigmoid_poly", "input": "proba", "coef": [0.5, -1.0, 3.0], "centre": 0.25},
            lambda p: second(expit(0.5 - (p[:, 1] - 0.25) + 3 * (p[:, 1] - 0.25) ** 2)),
        ),
        (
            {"node": "steps", "input": "proba", "edges": [0.3, 0.5], "values": [0.1, 0.4, 0.9]},
            lambda p: second(np.select([p[:, 1] < 0.3, p[:, 1] < 0.5], [0.1, 0.4], 0.9)),
        ),
        (
            {
                "node": "piecewise_cubic",  # a straight line, and beyond the knots the same
                "input": "proba",
                "domain": None,
                "knots": [0.3, 0.5, 0.6],
                "values": [0.4, 0.5, 0.55],
                "slopes": [0.5, 0.5, 0.5],
            },
            lambda p: second(0.25 + 0.5 * p[:, 1]),
        ),
    ],
)
def test_steps_of_single_nodes(tree, expected):
    proba = np.column_stack([1 - (p := np.linspace(0, 1, 101)), p])
    proba[0], proba[-1] = [0.999, 0.001], [0.001, 0.999]
    found = RowProgram(tree, 2, carried=False)(proba)
    want = expected(proba)
    want = want / want.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-14)


def second(p):
    return np.column_stack([1 - p, p])


def test_unknown_nodes_and_ranks_of_computed_rows_have_no_program():
    steps = {"node": "steps", "input": "rank", "edges": [0.0], "values": [0.2, 0.8]}
    platt = {"node": "sigmoid_poly", "input": "logit", "coef": [0.0, 2.0]}
    assert RowProgram(steps, 2, carried=False) is not None
    for tree in ({"node": "chain", "parts": [platt, steps]}, {"node": "cells"}):
        with pytest.raises(NotImplementedError):
            RowProgram(tree, 2, carried=False)


def test_rows_in_blocks():
    proba, y = scores(3, 60, "proba", 0)
    stack = StackedCalibration([Identity(), SplineCalibration(), VennAbers()]).fit(proba, y)
    program = RowProgram(stack._nodes(), 3, carried=False)
    out, numbers = np.empty((20, 3)), np.empty((program._size, 7))  # of seven, and one of six rows
    given = program._given(stack._check_predict(proba[:20], "p"))
    kernel.run_rows(*program._lines, given, numbers, out)
    np.testing.assert_allclose(out, stack.predict_proba(proba[:20]), rtol=0, atol=1e-15)


@pytest.mark.slow
def test_one_row_costs_a_few_calls_of_the_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = (2 * X[:, :5] + rng.gumbel(size=(1000, 5))).argmax(axis=1)
    model = LogisticRegression().fit(X[:500], y[:500])
    auto = CalibratedModel(FrozenEstimator(model), "auto").fit(X[500:], y[500:])

    def shortest(function):
        function()
        spent = []
        for _ in range(50):
            start = time.perf_counter()
            function()
            spent.append(time.perf_counter() - start)
        return min(spent)

    one = X[:1]
    ratio = shortest(lambda: auto.predict_proba(one)) / shortest(lambda: model.predict_proba(one))
    assert ratio < 10  # 2; each candidate by itself makes it 50
