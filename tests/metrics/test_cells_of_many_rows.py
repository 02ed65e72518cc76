"""Cells, bins and sums of many rows, which need no order: as those of few rows, in every bit."""

import numba
import numpy as np
import pytest
from cases import run_every_case

from sklearn_calib.metrics import (
    BinaryProblem,
    _predictions,
    all_metrics,
    calibration_witness,
    smooth_calibration_error,
    validate_predictions,
)

N = 30_000


def law(name, n=N):
    rng = np.random.default_rng(5)
    p = rng.random(n)
    if name == "near 0":
        p = rng.beta(0.3, 5, n)
    elif name == "near 1":
        p = 1 - rng.beta(0.3, 5, n)
    elif name == "ten scores":
        p = rng.integers(0, 11, n) / 10
    elif name == "float32":
        p = np.float32(p).astype(float)
    elif name == "ends and subnormals":
        p[: n // 2] = rng.choice(
            [0.0, -0.0, 1.0, 5e-324, 1e-310, np.nextafter(1, 0)], n // 2
        )
        p = rng.permutation(p)
    elif name == "rising":
        p = np.sort(np.round(p, 4))
    elif name == "falling":
        p = np.sort(np.round(p, 4))[::-1]
    elif name == "rising, then more":
        p = np.append(np.sort(p[2000:]), np.tile(0.5, 2000))
    elif name == "column of a table":
        p = np.column_stack([1 - p, p])[:, 1]
    return p, (rng.random(n) < p).astype(int)


LAWS = [
    "uniform",
    "near 0",
    "near 1",
    "ten scores",
    "float32",
    "ends and subnormals",
    "rising",
    "falling",
    "rising, then more",
    "column of a table",
]


@pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="rows are sorted unless cells are compiled"
)
@run_every_case("name", LAWS)
def test_cells_are_those_of_an_order(name):
    p, y = law(name)
    problem = BinaryProblem(p, y.astype(float), np.ones(N))
    score, place = np.unique(p, return_inverse=True)
    assert (
        problem._problem_scores.order_starts_and_distinct_scores is not None
        and "order_starts_and_distinct_scores" in vars(problem._problem_scores)
    )
    ordered = problem.cells
    fresh = BinaryProblem(p, y.astype(float), np.ones(N))
    pooled = fresh.cells
    assert "order_starts_and_distinct_scores" not in vars(fresh._problem_scores)
    for cells in (pooled, ordered):
        assert np.array_equal(cells.score, score)
        assert np.array_equal(cells.mass, np.bincount(place))
        assert np.array_equal(cells.hits, np.bincount(place, y))
    assert not np.signbit(pooled.score).any()
    assert np.array_equal(fresh.cell_indices, place)


def test_weights_resamples_and_scores_outside_keep_their_order():
    p, y = law("uniform")
    weight = np.random.default_rng(0).integers(1, 4, N).astype(float)
    weighted = BinaryProblem(p, y.astype(float), weight).cells
    order = np.argsort(p)
    assert np.array_equal(weighted.mass, weight[order])
    outside = BinaryProblem(p - 0.5, y.astype(float), np.ones(N)).cells
    assert (
        np.array_equal(outside.score, np.sort(p - 0.5))
        and outside.hits.sum() == y.sum()
    )
    case = validate_predictions(y, p)
    one, other = (case.with_labels(labels).problems()[0] for labels in (y, 1 - y))
    # what depends on the scores is made once
    assert one.cells.score is other.cells.score
    assert np.array_equal(one.cells.hits, case.problems()[0].cells.hits)
    assert np.array_equal(one.cells.hits + other.cells.hits, one.cells.mass)


MEASURES = [
    ("expected_calibration_error", {}),
    ("expected_calibration_error", {"n_bins": 7, "bin_weight": "equal"}),
    ("expected_calibration_error", {"strategy": "uniform", "n_bins": 7}),
    ("expected_calibration_error", {"debias": True}),
    ("maximum_calibration_error", {"n_bins": 100}),
    ("convolved_calibration_error", {}),
    ("lower_distance_to_calibration", {}),
    ("smooth_calibration_error", {}),
]


@pytest.mark.parametrize(("measure", "options"), MEASURES, ids=str)
@pytest.mark.parametrize("name", ["near 0", "ten scores", "ends and subnormals"])
def test_measures_are_those_of_the_ways_for_few_rows(
    measure, options, name, monkeypatch
):
    """Weights of 1 and 3 rows and their repetition; with the ways that few rows take."""
    p, y = law(name)
    y = np.where(p < 0.3, 0, y)
    weight = np.where(np.arange(N) % 3 == 0, 3.0, 1.0)
    function = all_metrics()[measure]
    value = function(y, p)
    assert function(y, p, sample_weight=np.full(N, 2.0)) == value
    repeated = np.repeat(np.arange(N), weight.astype(int))
    if not options.get("debias"):
        of_repeated = function(y[repeated], p[repeated])
        assert function(y, p, sample_weight=weight) == pytest.approx(
            of_repeated, abs=1e-12
        )
    monkeypatch.setattr(_predictions, "MIN_COMPILED_ROWS", np.inf)
    monkeypatch.setattr(
        "sklearn_calib.metrics._calibration_error.MIN_COMPILED_ROWS", np.inf
    )
    assert function(y, p) == pytest.approx(value, abs=1e-13)


@run_every_case("name", [*LAWS, "smooth"])
def test_the_queues_of_the_smooth_error_against_its_witness(name):
    """The witness comes from another queue, with ranks; its value is the error."""
    p, y = law(name, 6000)
    if name == "smooth":  # sums that rise and fall without noise, and many equal ones
        p, y = np.repeat(np.linspace(0, 1, 3000), 2), np.tile([0, 1], 3000)
    witness = calibration_witness(y, p)
    attained = np.mean(witness(p) * (y - p))
    assert smooth_calibration_error(y, p) == pytest.approx(attained, abs=1e-12)


def test_an_order_that_is_there_already_is_used():
    rng = np.random.default_rng(0)
    problem = BinaryProblem(rng.random(N), np.zeros(N), np.ones(N))
    assert problem._is_hash_pooling_faster()
    assert len(problem.cell_indices) == N  # which sorts the rows
    assert not problem._is_hash_pooling_faster()
