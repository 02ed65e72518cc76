import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from sklearn_calib.metrics import (
    calibration_witness,
    expected_calibration_error,
    smooth_calibration_error,
)


def linear_program(v, y, w):
    """The definition, solved by scipy."""
    order = np.argsort(v)
    v, r = v[order], (w * (y - v))[order] / w.sum()
    if len(v) == 1:
        return abs(r[0])
    n = len(v)
    step = sparse.eye(n - 1, n, k=1) - sparse.eye(n - 1, n)
    bound = np.tile(np.diff(v), 2)
    scale = np.abs(r).max() or 1.0  # the solver's tolerances are absolute
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    lipschitz = sparse.vstack([step, -step])
    solved = linprog(-r / scale, lipschitz, bound, bounds=(-1, 1), options=tight)
    return solved.x @ r


def cases():
    rng = np.random.default_rng(0)
    for i in range(500):
        n = int(np.exp(rng.uniform(0, np.log(2000 if i % 50 == 0 else 80))))
        v = rng.beta(*rng.choice([0.2, 1.0, 5.0], 2), n)
        if i % 4 == 0:
            v = np.round(v, 1)  # ties, exact zeros and ones
        if i % 25 == 0:
            v = np.full(n, v[0])
        y = (rng.random(n) < rng.choice([v, rng.random(n), 1 - v])).astype(int)
        yield v, y, rng.integers(0, 4, n) + rng.random() if i % 2 else np.ones(n)


@pytest.mark.slow
def test_equals_the_linear_program():
    worst = 0.0
    for v, y, w in cases():
        found = smooth_calibration_error(y, v, sample_weight=w, labels=[0, 1])
        worst = max(worst, abs(found - linear_program(v, y, w)))
    assert worst <= 1e-12


def least_cost_flow(v, y):
    """Lemma 3 of Hu et al. (2024): a flow on a path and a star; v and y in whole thousandths."""
    networkx = pytest.importorskip("networkx")
    order = np.argsort(v)
    v, surplus = v[order], (1000 * y - v)[order]
    graph = networkx.DiGraph()
    for i, amount in enumerate(surplus):
        graph.add_node(i, demand=-int(amount))
        graph.add_edge(i, "rest", weight=1000)
        graph.add_edge("rest", i, weight=1000)
    graph.nodes["rest"]["demand"] = int(surplus.sum())
    for i, gap in enumerate(np.diff(v)):
        graph.add_edge(i, i + 1, weight=int(gap))
        graph.add_edge(i + 1, i, weight=int(gap))
    return networkx.min_cost_flow_cost(graph) / 1e6 / len(v)


@pytest.mark.slow
def test_equals_the_least_cost_flow():
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = rng.integers(1, 40)
        v, y = rng.integers(0, 1001, n), rng.integers(0, 2, n)
        found = smooth_calibration_error(y, v / 1000, labels=[0, 1])
        assert found == pytest.approx(least_cost_flow(v, y), abs=1e-12)


@pytest.mark.slow
def test_the_witness_attains_it():
    for v, y, w in cases():
        known = {"sample_weight": w, "labels": [0, 1]}
        error = smooth_calibration_error(y, v, **known)
        witness = calibration_witness(y, v, **known)
        attained = w @ (witness(v) * (y - v)) / w.sum()
        assert attained == pytest.approx(error, abs=1e-12)
        assert np.abs(witness.values).max() <= 1
        assert (
            np.abs(np.diff(witness.values)) <= np.diff(witness.scores) + 1e-15
        ).all()


def test_counts_of_equal_predictions():
    rng = np.random.default_rng(0)
    v = rng.integers(0, 21, 5000) / 20
    y = (rng.random(5000) < v**2).astype(int)
    levels, code = np.unique(v, return_inverse=True)
    ones, total = np.bincount(code, y), np.bincount(code)
    pooled = smooth_calibration_error(
        np.repeat([1, 0], len(levels)),
        np.tile(levels, 2),
        sample_weight=np.concatenate([ones, total - ones]),
    )
    assert pooled == pytest.approx(smooth_calibration_error(y, v), abs=1e-12)


def test_known_values():
    # one score: |mean residual|
    assert smooth_calibration_error([0, 1, 1, 1], [0.5] * 4) == pytest.approx(0.25)
    # far apart: w = -1 and +1 would need a distance of 2, so the slope binds
    error, witness = (
        f([0, 1], [1.0, 0.0]) for f in (smooth_calibration_error, calibration_witness)
    )
    assert error == pytest.approx(0.5)
    assert witness(0.0) - witness(1.0) == pytest.approx(1.0)
    assert smooth_calibration_error([0, 1], [0.0, 1.0]) == 0
    # the bounds are attained: all rows certain, and all right or all wrong
    assert smooth_calibration_error.spec.range == (0.0, 1.0)
    assert smooth_calibration_error([0, 0], [1.0, 1.0], labels=[0, 1]) == 1.0


def test_no_larger_than_the_binned_error_of_many_rows_in_few_bins():
    rng = np.random.default_rng(1)
    v = rng.choice([0.1, 0.4, 0.9], 4000)
    y = (rng.random(4000) < 0.5).astype(int)
    ece = expected_calibration_error(y, v, strategy="uniform", n_bins=50)
    assert smooth_calibration_error(y, v) <= ece + 1e-12


@pytest.mark.parametrize("multiclass", ["confidence", "top_label", "classwise"])
def test_several_classes(multiclass):
    from sklearn_calib.datasets import make_overconfident

    proba, y = make_overconfident(4, 800)
    error = smooth_calibration_error(y, proba, multiclass=multiclass)
    witness = calibration_witness(y, proba, multiclass=multiclass)
    if multiclass == "confidence":
        top = proba.argmax(axis=1)
        by_hand = smooth_calibration_error((top == y).astype(int), proba.max(axis=1))
        assert error == pytest.approx(by_hand, abs=1e-14)
        assert witness.title == "confidence"
    elif multiclass == "classwise":
        parts = [
            smooth_calibration_error((y == c).astype(int), proba[:, c])
            for c in range(4)
        ]
        assert error == pytest.approx(np.mean(parts), abs=1e-14)
        assert len(witness) == 4


def test_nearly_equal_scores_do_not_empty_the_queue():
    rng = np.random.default_rng(2)
    v = np.sort(rng.random(20_000))
    v = np.nextafter(v, 2, where=rng.random(20_000) < 0.5, out=v.copy()).clip(0, 1)
    y = (rng.random(20_000) < v).astype(int)
    assert 0 < smooth_calibration_error(y, v) < 0.02
    tiny = np.linspace(0, 1e-300, 1000)
    assert smooth_calibration_error(np.arange(1000) % 2, tiny) == pytest.approx(0.5)


def test_the_picture():
    import matplotlib.pyplot as plt

    witness = calibration_witness(y_true=[0, 1, 1], y_proba=[0.2, 0.5, 0.8])
    ax = witness.plot()
    assert ax.get_ylabel() == "witness"
    assert ax.get_xlim() == (0, 1)
    low, high = ax.get_ylim()
    assert low < -1 and high > 1, "a witness has values from -1 to 1"
    plt.close("all")
