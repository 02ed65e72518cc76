"""Boosted trees on histograms that start from given log-odds, with logistic loss.

Why an own booster: gradient boosting that begins at given log-odds (an "offset", "base
margin" or "init score") exists in XGBoost and LightGBM only, each a runtime of its own
and more code than the rest of this package, and scikit-learn's histogram trees have no
offset. Boosting a response fixed beforehand, (y - p) / (p (1 - p)), is not a substitute:
it does not see that the offset saturates, and overshoots. What is needed here are a few
small trees on columns of one byte.

A tree is grown best leaf first; it is a single leaf if all rows have far to go. Nodes
are numbered as they come up, the right child follows the left one, and a node without
children has feature -1.

A split sends the first bins of a column to the left. The bins of categories are put in
order anew in each leaf, by the step that each of them would take there. An order that
was chosen on the same rows gains by chance, the more the more categories there are, so
the step and the gain of such a split are drawn to 0 more strongly for each category
beyond two.

With the step of one tree bounded by 1 and a learning rate r, the loss falls by at least
r G^2 / (H + l2) (1 - e r / 2) in each leaf: no tree raises it for r <= 0.73.
"""

import math

import numpy as np

from ._compile import compile_helper, compile_kernel

# Added to l2 for each category beyond two in a leaf.
L2_PER_CATEGORY = 3.0
# A tree changes log-odds by at most this, and the curvature therefore by at most a
# factor of e.
MAX_TREE_STEP_LOG_ODDS = 1.0


@compile_helper
def _get_leaf_value(residual_sum, curvature_sum, l2, low, high):
    return min(max(residual_sum / (curvature_sum + l2), low), high)


@compile_helper
def _compute_doubled_gain(g, h, l2, value):
    """Return twice the fall of the loss to second order.

    It is G^2 / (H + l2) if the value is the best.
    """
    return 2.0 * g * value - (h + l2) * value * value


@compile_helper
def _fill_histograms(bins, rows, begin, end, g, h, weight, cells):
    """Sum gradient, curvature and weight in the bins of every column."""
    cells[:] = 0.0
    for i in range(begin, end):
        r = rows[i]
        gr = g[r]
        hr = h[r]
        wr = weight[r]
        for f in range(bins.shape[1]):
            cell = cells[f, bins[r, f]]
            cell[0] += gr
            cell[1] += hr
            cell[2] += wr


@compile_helper
def _order_bins_and_get_n_and_split_l2(cells, unordered, l2, order):
    """Order the bins of a column in which a leaf has rows, as the cuts go.

    How many they are, and the l2 of their splits.
    """
    n_known = 0
    for b in range(cells.shape[0]):
        if cells[b, 2] != 0.0:
            order[n_known] = b
            n_known += 1
    # The smoothing penalty grows with the number of categories, because ordering them
    # by their own gradients fits noise.
    if unordered:
        l2 += L2_PER_CATEGORY * max(n_known - 2, 0)
        # Insertion sort: a leaf has few categories, and a call of a sort would not be
        # compiled here.
        for k in range(1, n_known):
            b = order[k]
            position = k
            step = cells[b, 0] / (cells[b, 1] + l2)
            while position > 0:
                before = order[position - 1]
                if cells[before, 0] / (cells[before, 1] + l2) <= step:
                    break
                order[position] = before
                position -= 1
            order[position] = b
    return n_known, l2


@compile_helper
def _fill_best_split(
    cells, total, bounds, unordered, order, rising, min_weight, l2, best
):
    """Find the best split: best = (gain, feature, cut, G, H, weight of the left child).

    The first cut + 1 bins in order go to the left.
    """
    g = total[0]
    h = total[1]
    w = total[2]
    low = bounds[0]
    high = bounds[1]
    # The gain of a split is what the two children lower the loss more than the parent
    # as a leaf would.
    parent_gain = _compute_doubled_gain(g, h, l2, _get_leaf_value(g, h, l2, low, high))
    best[0] = 0.0
    best[1] = -1.0
    for f in range(cells.shape[0]):
        gl = 0.0
        hl = 0.0
        wl = 0.0
        n_known, split_l2 = _order_bins_and_get_n_and_split_l2(
            cells[f], unordered[f], l2, order
        )
        for k in range(n_known - 1):
            b = order[k]
            gl += cells[f, b, 0]
            hl += cells[f, b, 1]
            wl += cells[f, b, 2]
            if wl < min_weight:
                continue
            if w - wl < min_weight:
                break
            left = _get_leaf_value(gl, hl, split_l2, low, high)
            right = _get_leaf_value(g - gl, h - hl, split_l2, low, high)
            # The map must not fall with the score, so splits on it whose left child is
            # higher are skipped.
            if f == rising and left > right:
                continue
            gain = (
                _compute_doubled_gain(gl, hl, split_l2, left)
                + _compute_doubled_gain(g - gl, h - hl, split_l2, right)
                - parent_gain
            )
            if gain > best[0]:
                best[0] = gain
                best[1] = f
                best[2] = k
                best[3] = gl
                best[4] = hl
                best[5] = wl


@compile_helper
def _mark_left_bins(cells, unordered, order, l2, cut, heavier, left):
    """Mark the bins of the left child; categories without rows go to the heavier one."""
    n_known, _ = _order_bins_and_get_n_and_split_l2(cells, unordered, l2, order)
    last = order[cut]
    for b in range(left.shape[0]):
        left[b] = heavier if unordered else b <= last
    # Only categories of this leaf are ordered; the others follow the heavier child.
    for k in range(n_known):
        left[order[k]] = k <= cut


@compile_helper
def _partition_node_rows(bins, rows, spare, begin, end, f, left):
    """Put the rows of the left child first, and return where the right child begins.

    The order is kept.
    """
    middle = begin
    n_right = 0
    for i in range(begin, end):
        r = rows[i]
        if left[bins[r, f]]:
            rows[middle] = r
            middle += 1
        else:
            spare[n_right] = r
            n_right += 1
    for i in range(n_right):
        rows[middle + i] = spare[i]
    return middle


@compile_kernel
def _grow_trees_in_place_and_get_count(
    bins, target, weight, offset, unordered, rate, l2, min_weight, min_gain, rising,
    order, g, h, rows, spare, cells, total, bounds, best, span, node_of,
    feature, left, child, value, gains,
):  # fmt: skip
    """Grow all trees and add them to `offset`; return how many there are.

    The first arguments are those of `boost_trees_and_get_log_odds_and_gains`. The
    others are arrays to work in: the `order` of the bins of a column; gradient `g` and
    curvature `h` of each row; `rows` in the order of the leaves, and space for a move
    (`spare`); for each leaf the histograms of all columns (`cells`), the sums of g, h
    and weight (`total`), the `bounds` of its value, its `best` split as in
    `_fill_best_split`, the begin and end of its rows (`span`) and its node (`node_of`).
    `feature`, `left`, `child` and `value` get the nodes of each tree, `gains` the gain
    of each column.
    """
    n = len(target)
    max_leaves = cells.shape[0]
    for t in range(feature.shape[0]):
        sums = total[0]
        sums[:] = 0.0
        for i in range(n):
            p = 1.0 / (1.0 + math.exp(-offset[i]))
            g[i] = weight[i] * (target[i] - p)
            h[i] = weight[i] * p * (1.0 - p)
            rows[i] = i
            sums[0] += g[i]
            sums[1] += h[i]
            sums[2] += weight[i]
        # Leaf values are multiplied by the learning rate afterwards, so the bound on a
        # tree's step is divided by it here.
        bounds[0, 0] = -MAX_TREE_STEP_LOG_ODDS / rate
        bounds[0, 1] = MAX_TREE_STEP_LOG_ODDS / rate
        span[0, 0] = 0
        span[0, 1] = n
        node_of[0] = 0
        _fill_histograms(bins, rows, 0, n, g, h, weight, cells[0])
        _fill_best_split(
            cells[0],
            total[0],
            bounds[0],
            unordered,
            order,
            rising,
            min_weight,
            l2,
            best[0],
        )
        leaves = 1
        nodes = 1
        feature[t, 0] = -1
        while leaves < max_leaves:
            # The leaf whose split gains most. It becomes the left child and b the right
            # one.
            a = 0
            for i in range(1, leaves):
                if best[i, 0] > best[a, 0]:
                    a = i
            if not best[a, 0] > min_gain:
                break
            f = int(best[a, 1])
            c = int(best[a, 2])
            b = leaves
            node = node_of[a]
            gains[f] += best[a, 0]
            feature[t, node] = f
            child[t, node] = nodes
            heavier = 2.0 * best[a, 5] >= total[a, 2]
            _mark_left_bins(
                cells[a, f],
                unordered[f],
                order,
                l2,
                c,
                heavier,
                left[t, node],
            )
            feature[t, nodes] = -1
            feature[t, nodes + 1] = -1
            node_of[a] = nodes
            node_of[b] = nodes + 1
            middle = _partition_node_rows(
                bins,
                rows,
                spare,
                span[a, 0],
                span[a, 1],
                f,
                left[t, node],
            )
            span[b, 0], span[b, 1], span[a, 1] = middle, span[a, 1], middle
            for j in range(3):
                total[b, j] = total[a, j] - best[a, 3 + j]
                total[a, j] = best[a, 3 + j]
            bounds[b, 0], bounds[b, 1] = bounds[a, 0], bounds[a, 1]
            # Monotone trees: the middle of both children bounds all later leaves below
            # them, as in XGBoost and scikit-learn.
            if f == rising:
                low = bounds[a, 0]
                high = bounds[a, 1]
                bounds[a, 1] = bounds[b, 0] = 0.5 * (
                    _get_leaf_value(total[a, 0], total[a, 1], l2, low, high)
                    + _get_leaf_value(total[b, 0], total[b, 1], l2, low, high)
                )
            leaves += 1
            nodes += 2
            if leaves == max_leaves:
                break
            small, large = (
                (a, b) if middle - span[a, 0] < span[b, 1] - middle else (b, a)
            )
            # The parent's sums are stored in the place of child a.
            if large == b:
                cells[b] = cells[a]
            _fill_histograms(
                bins,
                rows,
                span[small, 0],
                span[small, 1],
                g,
                h,
                weight,
                cells[small],
            )
            # The histogram of the larger child is that of the parent less the smaller
            # one, which saves its rows.
            cells[large] -= cells[small]
            for i in (a, b):
                _fill_best_split(
                    cells[i],
                    total[i],
                    bounds[i],
                    unordered,
                    order,
                    rising,
                    min_weight,
                    l2,
                    best[i],
                )
        if leaves == 1:
            v = _get_leaf_value(
                total[0, 0], total[0, 1], l2, bounds[0, 0], bounds[0, 1]
            )
            # A tree without a split may still correct the overall level; if not even
            # that pays, boosting ends.
            if not _compute_doubled_gain(total[0, 0], total[0, 1], l2, v) > min_gain:
                return t
        for i in range(leaves):
            v = _get_leaf_value(
                total[i, 0], total[i, 1], l2, bounds[i, 0], bounds[i, 1]
            )
            value[t, node_of[i]] = rate * v
            for k in range(span[i, 0], span[i, 1]):
                offset[rows[k]] += rate * v
    return feature.shape[0]


@compile_kernel
def _add_all_tree_values_in_place(bins, feature, left, child, value, out):
    for t in range(len(feature)):
        for i in range(len(bins)):
            node = 0
            while feature[t, node] >= 0:
                goes_left = left[t, node, bins[i, feature[t, node]]]
                node = child[t, node] + (0 if goes_left else 1)
            out[i] += value[t, node]


def boost_trees_and_get_log_odds_and_gains(
    bins, target, weight, offset, *,
    unordered, n_trees, learning_rate, max_leaves, min_weight, l2, min_gain, rising_column=-1,
):  # fmt: skip
    """Boost trees for targets in [0, 1] from an offset, the log-odds of each row.

    `bins` is (n, m) uint8, `min_weight` the smallest weight of a leaf, `rising_column`
    the column along which the trees may not fall; `unordered` is true for each column
    if its bins are categories. Returns the trees (feature, bins that go left as packed
    bits, child, value), the offset with them added, and the sum of the gains of each
    column. Growing ends early if no split gains.
    """
    n, m = bins.shape
    nodes = 2 * max_leaves - 1
    n_bins = int(bins.max(initial=0)) + 1
    feature = np.full((n_trees, nodes), -1, np.int32)
    left = np.zeros((n_trees, nodes, 256), np.bool_)
    child = np.zeros((n_trees, nodes), np.int32)
    value = np.zeros((n_trees, nodes))
    gains = np.zeros(m)
    out = np.array(offset, dtype=np.float64)
    grown = _grow_trees_in_place_and_get_count(
        np.ascontiguousarray(bins), np.asarray(target, float), np.asarray(weight, float), out,
        np.asarray(unordered, np.bool_), float(learning_rate), float(l2), float(min_weight),
        float(min_gain), int(rising_column), np.empty(256, np.int64),
        np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty((max_leaves, m, n_bins, 3)), np.empty((max_leaves, 3)), np.empty((max_leaves, 2)),
        np.empty((max_leaves, 6)), np.empty((max_leaves, 2), np.int64),
        np.empty(max_leaves, np.int64), feature, left, child, value, gains,
    )  # fmt: skip
    left = np.packbits(left[:grown], axis=2)
    return (feature[:grown], left, child[:grown], value[:grown]), out, gains


def sum_offset_and_tree_values(trees, bins, offset):
    """Return the offset of each row plus the values of the trees."""
    feature, left, child, value = trees
    out = np.array(offset, dtype=np.float64)
    left = np.unpackbits(left, axis=2).view(np.bool_)
    _add_all_tree_values_in_place(
        np.ascontiguousarray(bins), feature, left, child, value, out
    )
    return out
