"""Calibration maps as objects: what all kinds share, and how a recalibrator keeps its own."""

import itertools
import pickle
import time

import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_calib import CalibratedModel, canonical_proba, maps
from sklearn_calib._simplex_array import convert_log_odds
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import to_dict
from sklearn_calib.maps import Rows, TensorRows
from sklearn_calib.maps._base import BLOCK_ENTRIES
from sklearn_calib.maps._curves import count_reached_edges
from sklearn_calib.recalibrators import (
    Identity,
    IsotonicCalibration,
    OneVsRest,
    OnlineCalibration,
    PlattScaling,
    SplineCalibration,
    StackedCalibration,
    TemperatureScaling,
    TopLabel,
    VennAbers,
    get_recalibrator,
)

SCALED = maps.SoftmaxAffine(coef=0.5, intercept=0.0, centred=True)
PLATT = maps.SigmoidPoly(input="logit", coef=[0.2, 1.5])


def scores(k, n, kind, seed):
    """Return probabilities of three decimals, zeros among them, or logits, and labels."""
    proba, y = make_overconfident(k, n, random_state=seed)
    if kind == "logits":
        return canonical_proba(1.4 * np.log(proba), kind="logits"), y
    proba = np.round(proba, 3)
    return proba / proba.sum(axis=1, keepdims=True), y


# -- maps -----------------------------------------------------------------------------------------


def test_arrays_are_copied_and_read_only():
    edges = np.array([0.2, 0.5])
    steps = maps.Steps(input="proba", edges=edges, values=[0.1, 0.4, 0.9])
    edges[0] = 0.9
    assert steps.edges.tolist() == [0.2, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        steps.values[0] = 1.0
    with pytest.raises(AttributeError):
        steps.input = "rank"


def test_pickles_hold_the_fields_alone():
    knots = np.linspace(-3, 3, 1000)
    line = maps.PiecewiseLinear(
        input="logit", knots=knots, values=1 / (1 + np.exp(-knots)), domain=[-3, 3]
    )
    size, proba = len(pickle.dumps(line)), convert_log_odds(knots / 2)
    before = line(proba)
    # These follow from the knots.
    assert "_piece_starts_lengths_and_terms" in vars(line)
    assert len(pickle.dumps(line)) == size
    assert np.array_equal(pickle.loads(pickle.dumps(line))(proba), before)


def test_identity_returns_a_copy():
    proba = np.array([[0.3, 0.7]])
    found = maps.Identity()(proba)
    found[0, 0] = 0.0
    assert proba[0, 0] == 0.3


@pytest.mark.parametrize("k", [2, 3, 7])
def test_a_row_alone_is_that_of_a_batch_of_many_blocks(k):
    proba, y = make_overconfident(k, BLOCK_ENTRIES // k + 50)
    found = TemperatureScaling(laplace=True).fit(proba[:500], y[:500]).map_
    together = found(proba)
    assert together.flags.c_contiguous
    for row in (0, 7, len(proba) - 1):
        assert np.array_equal(found(proba[row : row + 1])[0], together[row])


def test_results_of_shared_parts_are_computed_once(monkeypatch):
    calls = []
    apply = maps.SoftmaxAffine.apply

    def count(self, rows):
        calls.append(self)
        return apply(self, rows)

    monkeypatch.setattr(maps.SoftmaxAffine, "apply", count)
    second = maps.make_chain(SCALED, maps.TailCompression())
    maps.Mixture(weights=[0.5, 0.5], parts=[SCALED, second])(
        make_overconfident(3, 20)[0]
    )
    assert calls == [SCALED]


def test_weights_that_are_rounded_give_no_probability_above_one():
    weights = [0.7, 0.1 + 2e-16, 0.2]
    assert sum(weights) > 1
    ones = maps.Steps(input="proba", edges=[], values=[1.0])
    found = maps.Mixture(weights=weights, parts=[ones] * 3)(np.array([[0.5, 0.5]]))
    assert found.max() == 1


@pytest.mark.parametrize("k", [2, 3])
def test_tensors_and_arrays_have_one_formula(k):
    xp = pytest.importorskip(
        "array_api_strict", reason="array-api-strict is not installed"
    )
    matrix = np.eye(k) + 0.1
    parts = [
        SCALED,
        maps.SoftmaxAffine(coef=np.arange(1.0, k + 1), intercept=np.arange(float(k))),
        maps.SoftmaxAffine(coef=matrix, intercept=0.0, centred=True, least=-3.0),
        maps.make_chain(maps.Floor(floor=0.01), maps.TailCompression()),
        maps.OneVsRest(parts=[PLATT]),
        maps.OneVsRest(
            parts=[PLATT, *[maps.SigmoidPoly(input="proba", coef=[0, 2])] * (k - 1)]
        ),
        maps.Uniform(),
        maps.Identity(),
    ]
    mixture = maps.Mixture(weights=np.full(len(parts), 1 / len(parts)), parts=parts)
    assert mixture.supports_tensors()
    proba = make_overconfident(k, 50)[0]
    logits = 3 * np.log(proba)
    found = mixture.apply(TensorRows(xp, xp.asarray(proba))).proba
    np.testing.assert_allclose(np.asarray(found), mixture(proba), rtol=1e-12)
    found = mixture.apply(TensorRows(xp, log=xp.asarray(logits))).proba
    expected = mixture(canonical_proba(logits, kind="logits"))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_maps_with_a_table_are_not_arithmetic():
    steps = maps.Steps(input="proba", edges=[0.5], values=[0.2, 0.8])
    assert not maps.Mixture(weights=[0.5, 0.5], parts=[PLATT, steps]).supports_tensors()
    many = [PLATT] * 101
    assert not maps.Mixture(
        weights=np.full(101, 1 / 101), parts=many
    ).supports_tensors()


def test_a_kind_without_turning_points_has_no_thresholds():
    rest = maps.Ranges(0.0, 1.0, "float64")
    with raises_invalid_input(
        ValueError, expected=".*turning points are known", value="top_label"
    ):
        maps.TopLabel(parts=[PLATT], rest=1.0).cut_ranges(rest, Rows.from_canonical)


# -- maps of recalibrators ------------------------------------------------------------------------


def test_a_map_belongs_to_one_fit():
    first, second = (
        make_overconfident(2, 300),
        make_overconfident(2, 300, random_state=5),
    )
    platt = PlattScaling().fit(*first)
    found = platt.map_
    assert platt.map_ is found
    assert platt.fit(*second).map_ is not found
    with pytest.raises(ValueError, match="rows"):
        platt.fit(second[0], second[1][:-1])
    assert "_derived" not in vars(platt)
    online = OnlineCalibration().fit(*first)
    before = online.map_(second[0])
    after = online.partial_fit(*second).map_(second[0])
    np.testing.assert_allclose(after, online.predict_proba(second[0]), atol=1e-12)
    assert np.abs(after - before).max() > 1e-6


def test_a_map_is_not_pickled():
    proba, y = make_overconfident(3, 300)
    fitted = IsotonicCalibration().fit(proba, y)
    size = len(pickle.dumps(fitted))
    before = fitted.predict_proba(proba)
    assert len(pickle.dumps(fitted)) == size
    assert np.array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(proba), before
    )


class Halved(PlattScaling):
    """Predicts in a way of its own, of which its map has nothing."""

    def _predict_proba(self, proba):
        second = super()._predict_proba(proba)[:, 1] / 2
        return np.column_stack([1 - second, second])


class HalvedMap(PlattScaling):
    """Predicts the same, by its map."""

    def _make_map(self):
        line = maps.PiecewiseLinear(
            input="proba", knots=[0, 1], values=[0, 0.5], domain=[0, 1]
        )
        return maps.make_chain(super()._make_map(), line)


def test_an_override_of_predictions_has_no_map():
    proba, y = make_overconfident(2, 300)
    for cls in (Halved, HalvedMap):
        fitted = cls().fit(proba, y)
        plain = PlattScaling().fit(proba, y).predict_proba(proba)
        np.testing.assert_allclose(fitted.predict_proba(proba)[:, 1], plain[:, 1] / 2)
    with raises_invalid_input(
        NotImplementedError, expected="a recalibrator that describes its map"
    ):
        to_dict(Halved().fit(proba, y))
    assert to_dict(HalvedMap().fit(proba, y))["map"]["node"] == "chain"
    stack = StackedCalibration({"one": Halved()}, alpha=50).fit(proba, y)
    own = stack._share_of_input
    expected = (
        own * proba[:, 1]
        + (1 - own) * stack.recalibrators_["one"].predict_proba(proba)[:, 1]
    )
    np.testing.assert_allclose(stack.predict_proba(proba)[:, 1], expected, atol=1e-12)


# -- methods made of others -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["proba", "logits"])
@pytest.mark.parametrize(
    ("k", "options"),
    [
        (2, {}),
        (2, {"monotone": True}),
        (2, {"recalibrators": [PlattScaling("proba"), OneVsRest(VennAbers())]}),
        (
            2,
            {
                "recalibrators": [
                    "platt",
                    make_pipeline(PlattScaling(), IsotonicCalibration()),
                ]
            },
        ),
        (3, {}),
        (5, {"recalibrators": ["vector", "matrix", "spline", "venn_abers", "platt"]}),
    ],
)
def test_the_map_of_a_mixture_is_that_of_its_candidates(k, options, kind):
    proba, y = scores(k, 1200, kind, 0)
    stack = StackedCalibration(**options).fit(proba, y)
    others, _ = scores(k, 700, kind, 1)
    extreme = np.eye(k)[[0, 1, -1]]
    assert stack._predicts_by_map()
    for rows in (proba, others, others[:1], np.asarray(others), extreme):
        raised = stack._read_predict_input(rows)
        found = stack.predict_proba(rows)
        np.testing.assert_allclose(
            found, stack._predict_proba_with_parts(raised), rtol=0, atol=1e-14
        )


@pytest.mark.parametrize(
    "combined", [OneVsRest, TopLabel, lambda part: StackedCalibration([part])]
)
def test_parts_without_a_map_predict_by_themselves(combined):
    proba, y = scores(3, 300, "proba", 0)
    fitted = combined(LogisticRegression()).fit(proba, y)
    assert not fitted._predicts_by_map()
    found = fitted.predict_proba(proba)
    raised = fitted._read_predict_input(proba)
    np.testing.assert_allclose(
        found, fitted._predict_proba_with_parts(raised), atol=1e-14
    )
    with raises_invalid_input(
        TypeError, expected="a recalibrator of this package", value="LogisticRegression"
    ):
        to_dict(fitted)


@pytest.mark.parametrize("combined", [OneVsRest, TopLabel])
@pytest.mark.parametrize("k", [2, 3])
def test_parts_with_maps_are_one_map(combined, k):
    proba, y = scores(k, 300, "proba", 0)
    fitted = combined(SplineCalibration()).fit(proba, y)
    assert fitted._predicts_by_map()
    raised = fitted._read_predict_input(proba)
    expected = fitted._predict_proba_with_parts(raised)
    np.testing.assert_allclose(
        fitted.predict_proba(proba), expected, rtol=0, atol=1e-14
    )


def test_another_fit_of_a_mixture_is_another_map():
    stack = StackedCalibration([Identity(), VennAbers()]).fit(
        *scores(2, 300, "proba", 0)
    )
    rows, _ = scores(2, 50, "proba", 9)
    before = stack.predict_proba(rows)
    after = stack.fit(*scores(2, 300, "proba", 1)).predict_proba(rows)
    assert np.abs(after - before).max() > 1e-4
    raised = stack._read_predict_input(rows)
    np.testing.assert_allclose(
        after, stack._predict_proba_with_parts(raised), atol=1e-14
    )


@pytest.mark.slow
@pytest.mark.parametrize(("method", "most"), [("default", 3), ("auto", 10)])
def test_one_row_costs_a_few_calls_of_the_classifier(method, most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = (2 * X[:, :5] + rng.gumbel(size=(1000, 5))).argmax(axis=1)
    model = LogisticRegression().fit(X[:500], y[:500])
    calibrated = CalibratedModel(FrozenEstimator(model), method).fit(X[500:], y[500:])

    def measure_shortest(function):
        function()
        spent = []
        for _ in range(50):
            start = time.perf_counter()
            function()
            spent.append(time.perf_counter() - start)
        return min(spent)

    one = X[:1]
    own = measure_shortest(lambda: model.predict_proba(one))
    assert measure_shortest(lambda: calibrated.predict_proba(one)) < most * own


@pytest.mark.parametrize("name", ["isotonic", "smooth_isotonic", "spline", "enir"])
def test_few_rows_get_the_digits_of_many(name):
    """Otherwise a threshold, found with few scores, would not hold for a large table."""
    proba, y = make_overconfident(2, 2000, random_state=3)
    fitted = get_recalibrator(name).fit(proba, y)
    few = [
        fitted.predict_proba(proba[start : start + 7]) for start in range(0, 2000, 7)
    ]
    many = fitted.predict_proba(proba)
    np.testing.assert_array_equal(np.concatenate(few), many)


@pytest.mark.parametrize("n_edges", [1, 3, 20])
def test_an_infinite_number_reaches_all_edges_and_no_more(n_edges):
    edges = np.arange(n_edges, dtype=float)
    x = np.append(np.linspace(-1.0, n_edges, 1000), [np.inf, -np.inf])
    expected = np.searchsorted(edges, x, side="right")
    np.testing.assert_array_equal(count_reached_edges(edges, x), expected)


@pytest.mark.parametrize("slopes", [[0.1, 3.0, -2.0, 0.4], [-1.0, 0.3, 2.5, 0.0]])
def test_between_turns_a_cubic_rises_or_falls(slopes):
    """Its powers of t are its values, and it turns nowhere else."""
    curve = maps.PiecewiseCubic(
        input="logit",
        ties=False,
        scale="input",
        link="sigmoid",
        domain=None,
        knots=[-2.0, -0.5, 0.4, 1.5],
        values=[-1.0, 0.2, 0.1, 2.0],
        slopes=slopes,
    )
    assert curve.direction() is None
    turns = np.sort(curve.find_turns(every=False))
    ends = [-2.0, *turns[(turns > -2.0) & (turns < 1.5)], 1.5]
    for low, high in itertools.pairwise(ends):
        change = np.diff(curve.value(np.linspace(low, high, 200)))
        assert (change >= -1e-12).all() or (change <= 1e-12).all(), (low, high)
