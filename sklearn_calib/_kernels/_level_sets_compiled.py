"""The passes over a table of `_level_sets`, and the sums over its cells, compiled.

They take the table as it is stored, float32 or float64, and divide each row by its sum
on the way; no array of the table's size is made.
"""

import numpy as np

from ._compile import compile_helper, compile_kernel


@compile_helper
def _compute_inverse_clipped_row_sum(row):
    total = 0.0
    for j in range(len(row)):
        total += max(np.float64(row[j]), 0.0)
    return 1.0 / total


@compile_helper
def _compute_floored_level(value, scale, slack):
    return np.floor(max(np.float64(value), 0.0) * scale + slack)


@compile_helper
def _get_run_end(starts, run_index, n_rows):
    return starts[run_index + 1] if run_index + 1 < len(starts) else n_rows


def hash_row_levels(table, n_levels, slack, multipliers):
    """Return sum_j multiplier_j m_j modulo 2^64, which no order of summation changes."""
    keys = np.empty(len(table), dtype=np.uint64)
    _hash_each_row(table, n_levels, slack, multipliers, keys)
    return keys


@compile_kernel
def _hash_each_row(table, n_levels, slack, multipliers, keys):
    for i in range(len(table)):
        scale = n_levels * _compute_inverse_clipped_row_sum(table[i])
        key = np.uint64(0)
        for j in range(table.shape[1]):
            m = _compute_floored_level(table[i, j], scale, slack)
            if m > 0:
                key += np.uint64(m) * multipliers[j]
        keys[i] = key


def have_runs_equal_levels(table, n_levels, slack, order, starts):
    """Return whether the rows of each run of `order` have the same levels."""
    return _have_runs_equal_levels(
        table,
        n_levels,
        slack,
        order,
        starts,
        np.empty(table.shape[1]),
    )


@compile_kernel
def _have_runs_equal_levels(table, n_levels, slack, order, starts, level):
    """Compare the levels of each row with those of the first row of its run."""
    for g in range(len(starts)):
        end = _get_run_end(starts, g, len(order))
        if end - starts[g] == 1:
            continue
        for position in range(starts[g], end):
            i = order[position]
            scale = n_levels * _compute_inverse_clipped_row_sum(table[i])
            for j in range(len(level)):
                m = _compute_floored_level(table[i, j], scale, slack)
                if position == starts[g]:
                    level[j] = m
                elif level[j] != m:
                    return False
    return True


@compile_helper
def _raise_magnitude_to_power(value, p):
    """Return |value|^p."""
    value = abs(value)
    # The usual exponents avoid a call of `pow`, which takes most of the time of the
    # loop.
    if p == 2.0:
        return value * value
    if p == 1.0:
        return value
    if p == 1.5:
        return value * np.sqrt(value)
    if p == 4.0:
        return value * value * value * value
    return value**p


def sum_gap_powers_over_cells_and_row_squares(
    table, y_encoded, weight, order, starts, p
):
    """Return the sum of p-th powers of the cells' gaps, and that of the rows' squares.

    For p = inf the first number is the largest gap.

    The gap of a cell in a class is the weighted sum of prediction minus label. The
    second number is the sum of squares over single rows, which an unbiased estimate for
    p = 2 takes off.
    """
    return _sum_gap_powers_and_squares(
        table,
        y_encoded,
        weight,
        order,
        starts,
        p,
        np.empty(table.shape[1]),
    )


@compile_kernel
def _sum_gap_powers_and_squares(table, y_encoded, weight, order, starts, p, gap):
    """Add the powers of the gaps run by run; `gap` is overwritten."""
    k = len(gap)
    total = 0.0
    row_squares = 0.0
    largest = 0.0
    for g in range(len(starts)):
        end = _get_run_end(starts, g, len(order))
        for j in range(k):
            gap[j] = 0.0
        for position in range(starts[g], end):
            i = order[position]
            scale = _compute_inverse_clipped_row_sum(table[i])
            for j in range(k):
                # Negative entries are rounding errors; the scale makes the row sum to
                # 1.
                residual = max(np.float64(table[i, j]), 0.0) * scale
                if j == y_encoded[i]:
                    residual -= 1.0
                residual *= weight[i]
                gap[j] += residual
                row_squares += residual * residual
        cell = 0.0
        for j in range(k):
            if np.isinf(p):
                largest = max(largest, abs(gap[j]))
            else:
                cell += _raise_magnitude_to_power(gap[j], p)
        total += cell
    return (largest if np.isinf(p) else total), row_squares


def draw_labels(table, uniform):
    """Draw one label per row from its probabilities, by inversion of uniform numbers."""
    y_encoded = np.empty(len(table), dtype=np.int64)
    _draw_each_label(table, uniform, y_encoded)
    return y_encoded


@compile_kernel
def _draw_each_label(table, uniform, y_encoded):
    """Subtract probabilities from the uniform number until it is negative."""
    for i in range(len(table)):
        # Scaling the uniform number by the sum of the row avoids dividing each entry.
        remaining = uniform[i] / _compute_inverse_clipped_row_sum(table[i])
        last = 0
        for j in range(table.shape[1]):
            mass = max(np.float64(table[i, j]), 0.0)
            if mass > 0:
                # Rounding may leave a rest after the last class; the row then gets the
                # last class of positive probability.
                last = j
                remaining -= mass
                if remaining < 0:
                    break
        y_encoded[i] = last


@compile_kernel
def fill_cell_indices_where_levels_match(
    table, n_levels, slack, cells, candidate, index
):
    """Set the index of each row whose candidate cell has the same levels."""
    for i in range(len(table)):
        if candidate[i] < 0:
            continue
        scale = n_levels * _compute_inverse_clipped_row_sum(table[i])
        is_equal = True
        for j in range(table.shape[1]):
            if (
                _compute_floored_level(table[i, j], scale, slack)
                != cells[candidate[i], j]
            ):
                is_equal = False
                break
        if is_equal:
            index[i] = candidate[i]
