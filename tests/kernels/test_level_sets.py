"""Rounding, projection and grouping, with the floating-point traps."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from sklearn_calib._kernels import _level_sets_compiled
from sklearn_calib._kernels._level_sets import (
    compute_levels,
    find_row_cell_indices,
    project_levels_to_simplex_proba,
    project_to_simplex,
    sort_rows_into_level_runs,
)
from sklearn_calib._kernels._level_sets_compiled import draw_labels


def test_oracle(oracle):
    case = oracle("multiclass_binning.json")["case1_levels_rho_projection"]
    for part in case["level_cases"]:
        for dtype in (np.float64, np.float32):
            assert (
                compute_levels(np.array(part["P"], dtype), part["lam"]).tolist()
                == part["levels"]
            )
        assert_allclose(
            project_levels_to_simplex_proba(part["levels"], part["lam"]),
            part["rho"],
            atol=1e-15,
        )
    for part in case["projection_cases"]:
        assert_allclose(project_to_simplex(part["z"]), part["pi"], atol=1e-15)


@given(st.integers(1, 1000), st.integers(2, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_the_member_of_a_level_set_lies_in_it(n_levels, k, seed):
    """rho(v) has level v again, in float64 and in float32."""
    rng = np.random.default_rng(seed)
    level = rng.multinomial(n_levels, rng.dirichlet(np.ones(k)))
    rest = min(rng.integers(0, k), level.max())  # at most k - 1 are missing
    level[level.argmax()] -= rest
    v = project_levels_to_simplex_proba(level, n_levels)
    assert_allclose(v.sum(), 1)
    assert compute_levels(v, n_levels).tolist() == level.tolist()
    assert compute_levels(v.astype(np.float32), n_levels).tolist() == level.tolist()


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_projection_is_the_nearest_point(z):
    """Characterised: u on the simplex with (z - u)'(v - u) <= 0 for every corner v."""
    z = np.array(z)
    u = project_to_simplex(z)
    assert u.min() >= -1e-15 and abs(u.sum() - 1) < 1e-12
    assert ((z - u) - (z - u) @ u).max() < 1e-10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grouping(dtype):
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(3), 3000).astype(dtype)
    table[::7] = table[0]
    order, starts = sort_rows_into_level_runs(table, 10)
    expected = np.unique(
        compute_levels(table.astype(float), 10), axis=0, return_inverse=True
    )[1].ravel()
    found = np.empty(3000, dtype=int)
    found[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=3000))
    pairs = set(zip(found.tolist(), expected.tolist(), strict=True))
    assert len(pairs) == len(starts) == expected.max() + 1


def test_a_collision_of_hashes_starts_anew(monkeypatch):
    table = np.random.default_rng(0).dirichlet(np.ones(4), 500)
    plain, calls = _level_sets_compiled.hash_row_levels, []

    def colliding(*args):
        calls.append(1)
        keys = plain(*args)
        return keys % np.uint64(8) if len(calls) == 1 else keys

    monkeypatch.setattr(_level_sets_compiled, "hash_row_levels", colliding)
    starts = sort_rows_into_level_runs(table, 20)[1]
    assert len(calls) == 2
    monkeypatch.undo()
    assert len(starts) == len(sort_rows_into_level_runs(table, 20)[1])


@pytest.mark.slow
def test_finding_cells():
    table = np.random.default_rng(0).dirichlet(np.ones(3), 1000)
    every = np.unique(compute_levels(table, 8), axis=0)
    cells = every[::2]
    found = find_row_cell_indices(table, 8, cells)
    for row, place in zip(compute_levels(table, 8).tolist(), found, strict=True):
        assert (
            (cells[place].tolist() == row)
            if place >= 0
            else (row not in cells.tolist())
        )
    assert (find_row_cell_indices(table, 8, cells[:0]) == -1).all()


@pytest.mark.parametrize("n_rows", [1, 2, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_are_drawn_by_inversion(n_rows, dtype):
    """The largest uniform number draws the last class of positive probability."""
    table = np.tile(np.array([0.2, 0.1, 0.0, 0.7, 0.0], dtype=dtype), (n_rows, 1))
    for uniform, label in ((0.0, 0), (0.19, 0), (0.21, 1), (0.31, 3), (1 - 2**-53, 3)):
        drawn = draw_labels(table, np.full(n_rows, uniform))
        assert drawn.tolist() == [label] * n_rows
