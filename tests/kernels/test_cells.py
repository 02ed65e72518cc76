import numpy as np
import pytest
from cases import run_every_case
from cells_by_sorting import by_sorting

from sklearn_calib._kernels import _cells
from sklearn_calib._kernels._cells import (
    ALLOWED_BIT_SHIFTS,
    CUT_KEYS,
    IDENTITY_COLUMN,
    compute_mean_label_proba_by_cell,
    compute_ordered_cell_ids,
    count_dropped_bits_by_cell,
    decode_cell_start_and_side,
    decode_float_keys,
    encode_float_keys,
    find_cell_start_keys,
    find_last_cell_keys,
    round_keys_to_36_bit_steps,
)

GOLDEN_STEPS = {
    0.5: 70231305224192,
    0.25: 70162585747456,
    0.1: 70066378480026,
    1 / 3: 70185492239701,
    1e-6: 68928973283510,
    2.0**-24: 68650757259264,
    0.0: 0,
    5e-324: 0,
}


def distances(n=20_000, seed=0):
    """Numbers in [0, 1/2] of every size, with the edges of all cuts and their neighbours."""
    rng = np.random.default_rng(seed)
    edges = np.concatenate([np.arange(31) / 60, 1 - np.arange(30, 61) / 60])
    near = [
        np.nextafter(edges, 0),
        edges,
        np.nextafter(edges, 1),
        edges * (1 + 2.0**-37),
    ]
    some = [
        rng.random(n) / 2,
        np.ldexp(rng.random(n), -rng.integers(1, 1074, n)),
        *near,
    ]
    return np.clip(np.concatenate(some), 0.0, 0.5)


@run_every_case("t", GOLDEN_STEPS)
def test_golden_steps(t):
    assert round_keys_to_36_bit_steps(encode_float_keys([t]))[0] == GOLDEN_STEPS[t]


def test_keys_keep_the_order_and_all_bits():
    t = np.sort(distances())
    assert (np.diff(encode_float_keys(t)) >= 0).all() and np.array_equal(
        decode_float_keys(encode_float_keys(t)), t
    )
    assert encode_float_keys([-0.0])[0] == 0
    normal = t[t > 1e-300]
    steps = decode_float_keys(
        round_keys_to_36_bit_steps(encode_float_keys(normal)) << 16
    )
    assert np.abs(steps / normal - 1).max() <= 2.0**-37


@pytest.mark.slow
def test_cells_are_nested_and_stay_between_cuts():
    keys = encode_float_keys(distances())
    for side in (0, 1):
        high = np.full(len(keys), side == 1)
        finer = keys
        for shift in ALLOWED_BIT_SHIFTS:
            cells = find_cell_start_keys(keys, high, shift)
            # of cells of one less
            assert np.array_equal(find_cell_start_keys(finer, high, shift), cells)
            assert np.array_equal(
                np.searchsorted(CUT_KEYS[side], cells, side="right"),
                np.searchsorted(CUT_KEYS[side], keys, side="right"),
            )
            finer = cells
    assert len(np.unique(finer)) < 2048  # the coarsest fit, on both sides, into 4096


@pytest.mark.slow
def test_compiled_cells_are_those_of_numpy():
    from sklearn_calib._kernels._cells_compiled import identify_cells_and_offsets

    t = distances()
    for p in (t, 1 - t):
        high = p > 0.5
        keys = encode_float_keys(np.where(high, 1 - p, p))
        for shift in ALLOWED_BIT_SHIFTS:
            ids, distance = identify_cells_and_offsets(p, np.zeros(0), shift)
            cells = find_cell_start_keys(keys, high, shift)
            assert np.array_equal(ids, compute_ordered_cell_ids(cells, high))
            assert np.array_equal(
                distance,
                round_keys_to_36_bit_steps(keys) - round_keys_to_36_bit_steps(cells),
            )


def test_mean_scores_stay_in_their_bins():
    """Exact edges belong to the bin below them, and what is next to them to the bin above."""
    edges = np.arange(61) / 60
    p = np.unique(np.clip(np.r_[edges, np.nextafter(edges, 2), edges + 1e-7], 0, 1))
    for max_cells in (10_000, 130):
        table, _ = by_sorting(p, np.zeros(len(p)), max_cells)
        mean = compute_mean_label_proba_by_cell(table)
        assert np.array_equal(mean.sum(axis=1), np.ones(len(mean)))
        assert (np.diff(mean[:, 1]) >= 0).all()
        for n_bins in (2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60):
            edges_of_bins = np.arange(n_bins + 1) / n_bins
            counts = np.bincount(
                np.searchsorted(edges_of_bins, p), minlength=n_bins + 1
            )
            rows = table[:, 1] + table[:, 2]
            found = np.bincount(
                np.searchsorted(edges_of_bins, mean[:, 1]),
                weights=rows,
                minlength=n_bins + 1,
            )
            # 0 is in the first bin
            counts[1], found[1] = (
                counts[:2].sum(),
                found[:2].sum(),
            )
            assert np.array_equal(counts[1:], found[1:])
            exact = np.bincount(
                np.searchsorted(edges_of_bins, edges), minlength=n_bins + 1
            )
            only = by_sorting(edges, np.zeros(61), max_cells)[0]
            assert np.array_equal(
                np.bincount(
                    np.searchsorted(
                        edges_of_bins, compute_mean_label_proba_by_cell(only)[:, 1]
                    ),
                    weights=only[:, 1],
                    minlength=n_bins + 1,
                ),
                exact,
            )


def test_rows_lie_in_the_width_of_their_cell():
    p = np.sort(np.r_[distances(2000), 1 - distances(2000, 1)])
    for max_cells in (2500, 5000, 10**6):
        table, shift = by_sorting(p, np.zeros(len(p)), max_cells)
        high = p > 0.5
        ids = compute_ordered_cell_ids(
            find_cell_start_keys(
                encode_float_keys(np.where(high, 1 - p, p)), high, shift
            ),
            high,
        )
        order = np.argsort(ids.view(np.uint64), kind="stable")
        group = np.cumsum(np.append(0, np.diff(ids[order].view(np.uint64)) != 0))
        t = np.where(high, 1 - p, p)[order]
        first = np.flatnonzero(np.append(True, np.diff(group) > 0))
        spread = np.maximum.reduceat(t, first) - np.minimum.reduceat(t, first)
        start, side = decode_cell_start_and_side(table[:, IDENTITY_COLUMN])
        last = find_last_cell_keys(
            start,
            side,
            count_dropped_bits_by_cell(table[:, IDENTITY_COLUMN], np.int64(shift)),
        )
        own = 2.0**-36 * decode_float_keys(last) + 4e-319  # what rounding to a key adds
        assert (
            spread <= decode_float_keys(last) - decode_float_keys(start) + own
        ).all()


def test_the_complement_keeps_its_digits_and_the_score_its_own():
    """Which of p and 1 - p a key is made of: both are found again wherever that is possible."""
    from sklearn_calib._kernels._cells_compiled import identify_cells_and_offsets

    p = np.array([0.8, 0.8, 0.8, 1.0, 1.0, 0.2, 0.5])
    q = np.array([0.2, 1 - 0.8, 0.2000000001, 1e-20, 0.0, 0.8, 0.5])
    t, high = _cells.split_distance_and_side(p, q)
    assert t.tolist() == [0.2, 1 - 0.8, 1 - 0.8, 1e-20, 0.0, 0.2, 0.5]
    ids, _ = identify_cells_and_offsets(p, q, 0)
    assert np.array_equal(ids, compute_ordered_cell_ids(encode_float_keys(t), high))
    near = np.arange(36, 60) / 60  # at a cut, by complements that round to it
    for rest in (1 - near, np.nextafter(1 - near, 0), np.arange(24, 0, -1) / 60):
        for shift in (16, 30, 52):
            ids, _ = identify_cells_and_offsets(1 - rest, rest, shift)
            table = np.zeros((len(ids), 4), dtype=np.int64)
            table[:, IDENTITY_COLUMN], table[:, 1] = ids, 1
            bins = [
                np.searchsorted(np.arange(61) / 60, x)
                for x in (1 - rest, compute_mean_label_proba_by_cell(table)[:, 1])
            ]
            assert np.array_equal(*bins)
