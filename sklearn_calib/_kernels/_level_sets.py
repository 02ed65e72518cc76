"""Level sets of predictions for several classes: rounding and grouping.

The level set of a row p is the integer vector m = floor(n_levels * p). Floats need care
twice: floor((m / n) * n) is not m for many m (0.29 * 100), and rows stored as float32
miss lattice points by 3e-8; so fractions within `get_integer_snap_width` of the next integer
count as it, by a rule that does not depend on the dtype, and levels are kept as
integers, never found again from a rounded vector.
"""

import numpy as np

# With more levels, rounding at float32 precision would be wider than a hundredth of a
# level.
MAX_LEVELS = 5000


def get_max_cell_error(p, epsilon):
    """Return beta with 2 beta^(p - 1) = epsilon^p.

    If no cell is off by more, the l_p error is at most epsilon.
    """
    # Algorithm 2 of the paper sets beta = epsilon^(p / (p - 1)) 2^(-1 / (p - 1)). This
    # form does not overflow for p near 1.
    return float(epsilon * (epsilon / 2) ** (1 / (p - 1)))


def choose_n_levels(beta):
    """Return the paper's number of levels, ceil(1 / beta), in spite of rounding."""
    return int(np.ceil(1 / max(beta, 1e-12) * (1 - 1e-12)))


def get_integer_snap_width(n_levels):
    """Return how far below an integer n_levels * p may lie and still count as it."""
    return min(0.01, max(1e-9, 2e-6 * n_levels))


def compute_levels(proba, n_levels):
    """Return integer level vectors of rows on the simplex."""
    scaled = np.asarray(proba) * float(n_levels)
    return np.floor(scaled + get_integer_snap_width(n_levels)).astype(np.int64)


def project_levels_to_simplex_proba(level, n_levels):
    """Return the member of a level set that is nearest to the simplex.

    The rest n_levels - sum(m) is spread evenly; it is below the number of classes, so
    that the result lies in the same level set (in exact arithmetic: do not round it
    again).
    """
    level = np.asarray(level, dtype=float)
    # Rounding down leaves a sum below 1; the remainder is shared equally, which is the
    # nearest point with sum 1.
    remainder = n_levels - level.sum(axis=-1, keepdims=True)
    return (level + remainder / level.shape[-1]) / n_levels


def project_to_simplex(vector):
    """Return the nearest point of the simplex to a vector."""
    vector = np.asarray(vector, dtype=float)
    excess = vector.sum() - 1
    # No entry becomes negative, so the projection on the plane is already in the
    # simplex.
    if excess <= 0 and vector.min() >= excess / len(vector):
        return vector - excess / len(vector)
    descending = np.sort(vector)[::-1]
    shift = (np.cumsum(descending) - 1) / np.arange(1, len(vector) + 1)
    size = int(np.flatnonzero(descending > shift)[-1])
    return np.maximum(vector - shift[size], 0)


def sort_rows_into_level_runs(table, n_levels, seed=0):
    """Group rows of equal level: (order, starts), the groups being runs of `order`.

    Levels are hashed to 64 bits, sorted, and compared with those of the first row of
    their run; a collision starts anew with other multipliers, so that the grouping is
    exact.
    """
    from ._level_sets_compiled import hash_row_levels, have_runs_equal_levels

    size = float(n_levels)
    slack = get_integer_snap_width(n_levels)
    while True:
        multipliers = _draw_hash_multipliers(table.shape[1], seed)
        # Sorting hashes of the rows is faster than sorting rows of many columns. Runs
        # of equal hashes are compared, and a collision draws new multipliers.
        keys = hash_row_levels(table, size, slack, multipliers)
        order = np.argsort(keys, kind="stable")
        is_first = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[order[1:]], keys[order[:-1]], out=is_first[1:])
        starts = np.flatnonzero(is_first)
        if have_runs_equal_levels(table, size, slack, order, starts):
            return order, starts
        seed += 1


def find_row_cell_indices(table, n_levels, cells, slack=None, seed=0):
    """Return the position of the level of each row among `cells` (b, k), or -1."""
    from ._level_sets_compiled import (
        fill_cell_indices_where_levels_match,
        hash_row_levels,
    )

    index = np.full(len(table), -1, dtype=np.intp)
    if not len(cells):
        return index
    multipliers = _draw_hash_multipliers(table.shape[1], seed)
    keys = (cells.astype(np.uint64) * multipliers).sum(axis=1, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    if (keys[order[1:]] == keys[order[:-1]]).any():
        return find_row_cell_indices(table, n_levels, cells, slack, seed + 1)
    size = float(n_levels)
    slack = get_integer_snap_width(n_levels) if slack is None else slack
    row_keys = hash_row_levels(table, size, slack, multipliers)
    position = np.searchsorted(keys[order], row_keys)
    candidate = order[np.minimum(position, len(keys) - 1)]
    # Equal hashes are only candidates; the levels themselves are compared below.
    candidate[keys[candidate] != row_keys] = -1
    fill_cell_indices_where_levels_match(table, size, slack, cells, candidate, index)
    return index


def _draw_hash_multipliers(k, seed):
    """Draw odd numbers of 64 bits, for hashes modulo 2^64."""
    random = np.random.default_rng(seed).integers(0, 2**63, k, dtype=np.uint64)
    return random * np.uint64(2) + np.uint64(1)
