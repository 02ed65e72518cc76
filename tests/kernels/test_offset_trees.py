"""The trees against a plain search over all splits, and the lines against a general solver."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from sklearn_calib._kernels._offset_trees import (
    L2_PER_CATEGORY,
    MAX_TREE_STEP_LOG_ODDS,
    boost_trees_and_get_log_odds_and_gains,
    sum_offset_and_tree_values,
)
from sklearn_calib._kernels._ridge_logistic_groups import fit_group_line_coefficients

OPTIONS = {
    "n_trees": 1,
    "learning_rate": 0.1,
    "max_leaves": 5,
    "min_weight": 5.0,
    "l2": 1.0,
}
OPTIONS["unordered"] = [False, False, False]


def draw(n=300, seed=0, offset=1.5):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, k, n) for k in (2, 7, 30)]).astype(
        np.uint8
    )
    margin = offset * rng.normal(size=n)
    true = margin + (codes[:, 1] > 4) - 0.05 * codes[:, 2]
    return (
        codes,
        (rng.random(n) < expit(true)).astype(float),
        rng.choice([1.0, 2.0, 0.5], n),
        margin,
    )


def plain_tree(
    codes,
    y,
    w,
    margin,
    *,
    unordered,
    learning_rate,
    max_leaves,
    min_weight,
    l2,
    min_gain,
):
    """What one tree adds to each row: every split of every leaf is tried, the best one taken."""
    p = expit(margin)
    g, h = w * (y - p), w * p * (1 - p)

    def score(rows, l2=l2):
        return g[rows].sum() ** 2 / (h[rows].sum() + l2)

    def cuts(rows, f):
        """The sets of bins that may go to the left, and the l2 of such a split."""
        bins, more = np.unique(codes[rows, f]), l2
        if unordered[f]:
            more += L2_PER_CATEGORY * (len(bins) - 2)
            of = [rows[codes[rows, f] == b] for b in bins]
            bins = bins[
                np.argsort([g[part].sum() / (h[part].sum() + more) for part in of])
            ]
        return [(bins[:k], more) for k in range(1, len(bins))]

    def best_split(rows):
        found = (min_gain, None)
        for f in range(codes.shape[1]):
            for first, more in cuts(rows, f):
                goes = np.isin(codes[rows, f], first)
                left, right = rows[goes], rows[~goes]
                if min(w[left].sum(), w[right].sum()) >= min_weight:
                    gain = score(left, more) + score(right, more) - score(rows)
                    found = max(found, (gain, (left, right)), key=lambda pair: pair[0])
        return found

    leaves = [np.arange(len(y))]
    while len(leaves) < max_leaves:
        splits = [best_split(rows) for rows in leaves]
        place = int(np.argmax([gain for gain, _ in splits]))
        if splits[place][1] is None:
            break
        leaves[place : place + 1] = splits[place][1]
    out = np.zeros(len(y))
    for rows in leaves:
        out[rows] = learning_rate * g[rows].sum() / (h[rows].sum() + l2)
    return out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("unordered", "min_gain", "n"),
    [
        ([False, False, False], 0.15, 300),
        ([False, False, False], 8.0, 300),
        ([False, True, True], 0.15, 3000),
    ],
)
def test_a_tree_is_the_best_of_all(seed, unordered, min_gain, n):
    codes, y, w, margin = draw(n, seed)
    options = {**OPTIONS, "min_gain": min_gain, "unordered": unordered}
    trees, raised, gains = boost_trees_and_get_log_odds_and_gains(
        codes, y, w, margin, **options
    )
    del options["n_trees"]
    np.testing.assert_allclose(
        raised - margin, plain_tree(codes, y, w, margin, **options), atol=1e-12
    )
    assert gains.sum() > 0 and gains.min() >= 0
    assert (trees[0] >= 0).sum() == len(
        set((raised - margin).round(9))
    ) - 1  # splits, leaves


@pytest.mark.parametrize("category", [False, True])
def test_trees_add_what_they_added_in_training(category):
    codes, y, w, margin = draw(2000)
    options = {
        **OPTIONS,
        "n_trees": 40,
        "min_gain": 0.15,
        "unordered": [False, category, category],
    }
    trees, raised, _ = boost_trees_and_get_log_odds_and_gains(
        codes, y, w, margin, **options
    )
    assert np.array_equal(sum_offset_and_tree_values(trees, codes, margin), raised)
    alone = [
        sum_offset_and_tree_values(trees, codes[i : i + 1], margin[i : i + 1])[0]
        for i in range(50)
    ]
    assert np.array_equal(alone, raised[:50])


def test_the_codes_of_categories_do_not_matter():
    """Those of numbers do."""
    codes, y, w, margin = draw(2000)
    options = {**OPTIONS, "n_trees": 20, "min_gain": 0.15}
    permuted = codes.copy()
    permuted[:, 2] = np.random.default_rng(0).permutation(30)[codes[:, 2]]
    raised = {}
    for unordered in (False, True):
        options["unordered"] = [False, False, unordered]
        raised[unordered] = [
            boost_trees_and_get_log_odds_and_gains(c, y, w, margin, **options)[1]
            for c in (codes, permuted)
        ]
    np.testing.assert_allclose(*raised[True], atol=1e-12)
    assert np.abs(np.subtract(*raised[False])).max() > 0.01


def test_a_new_category_goes_where_most_rows_go():
    codes, y, w, margin = draw(2000)
    codes = codes[:, 2:]
    options = {**OPTIONS, "max_leaves": 2, "min_gain": 0.15, "unordered": [True]}
    trees, _, _ = boost_trees_and_get_log_odds_and_gains(codes, y, w, margin, **options)
    added = sum_offset_and_tree_values(trees, codes, np.zeros(2000))
    first, second = set(added)
    heavier = first if w[added == first].sum() > w[added == second].sum() else second
    assert (
        sum_offset_and_tree_values(trees, np.array([[200]], np.uint8), np.zeros(1))[0]
        == heavier
    )


@pytest.mark.parametrize("learning_rate", [0.1, 0.7])
@pytest.mark.parametrize("offset", [1.5, -9.0, 36.0])
def test_no_tree_raises_the_loss(learning_rate, offset):
    """Also if the offset is certain of the wrong class and has no curvature."""
    codes, y, w, margin = draw(1000)
    margin = offset + 0.1 * margin
    options = {**OPTIONS, "learning_rate": learning_rate, "min_gain": 0.0}
    losses = []
    for _ in range(60):
        losses.append(w @ (np.logaddexp(0, margin) - y * margin))
        _, raised, _ = boost_trees_and_get_log_odds_and_gains(
            codes, y, w, margin, **options
        )
        assert np.abs(raised - margin).max() <= MAX_TREE_STEP_LOG_ODDS + 1e-12
        margin = raised
    assert (np.diff(losses) <= 1e-9).all()
    assert losses[-1] < 0.9 * losses[0]


def test_trees_rise_along_a_column():
    codes, y, w, margin = draw(2000)
    y = np.where(
        np.random.default_rng(1).random(2000) < 0.5, codes[:, 2] < 15, y
    ).astype(float)
    options = {**OPTIONS, "n_trees": 30, "min_gain": 0.15}
    grid = np.array(
        [[a, b, c] for a in range(2) for b in range(7) for c in range(30)], np.uint8
    )
    falls = []
    for rising in (-1, 2):
        trees, _, _ = boost_trees_and_get_log_odds_and_gains(
            codes, y, w, margin, rising_column=rising, **options
        )
        curve = sum_offset_and_tree_values(trees, grid, np.zeros(len(grid))).reshape(
            14, 30
        )
        falls.append(-np.diff(curve).min())
    assert falls[0] > 0.05 and falls[1] <= 1e-12


def test_no_split_no_tree():
    codes, y, w, margin = draw(30)
    margin = np.full(30, np.log(w @ y / (w @ (1 - y))))
    trees, raised, gains = boost_trees_and_get_log_odds_and_gains(
        codes, y, w, margin, **{**OPTIONS, "min_weight": 20.0, "min_gain": 1.0}
    )
    assert len(trees[0]) == 0 and np.array_equal(raised, margin) and gains.sum() == 0


def test_lines_minimise_their_objective():
    rng = np.random.default_rng(0)
    z, group = 2 * rng.normal(size=400) - 3, rng.integers(0, 3, 400)
    y = (rng.random(400) < expit((group - 1) + 0.5 * z)).astype(float)
    w = rng.choice([0.5, 1.0, 3.0], 400)
    y[group == 2] = 1.0  # one class only
    lines = fit_group_line_coefficients(z, y, w, group, 4, (0.3, 0.8), 20.0, 2.0)
    assert lines[3].tolist() == [0.3, 0.8]  # no rows
    for g in range(3):
        rows = group == g

        def objective(line, rows=rows):
            t = line[0] + line[1] * z[rows]
            pull = (line[0] - 0.3) ** 2 + 4 * (line[1] - 0.8) ** 2
            return w[rows] @ (np.logaddexp(0, t) - y[rows] * t) + 10 * pull

        best = minimize(objective, [0.0, 1.0], tol=1e-12)
        assert objective(lines[g]) <= best.fun + 1e-9
        np.testing.assert_allclose(lines[g], best.x, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 36.0])
def test_lines_end_where_the_classes_are_separated(scale):
    z = scale * np.linspace(-1, 1, 50)
    line = fit_group_line_coefficients(
        z, (z > 0).astype(float), np.ones(50), np.zeros(50, int), 1, (0, 1), 1, scale
    )
    assert np.isfinite(line).all() and line[0, 1] > 0
    t = line[0, 0] + line[0, 1] * z
    gradient = (np.r_[(z > 0) - expit(t)]).sum() - line[0, 0]
    assert abs(gradient) < 1e-6


def test_a_tree_that_rises_anyway_is_not_changed_by_having_to_rise():
    codes, _, weight, margin = draw(3000)
    codes = codes[:, 2:]
    target = (codes[:, 0] > 14).astype(float)
    options = {**OPTIONS, "min_gain": 0.15, "unordered": [False]}
    free, falling = (
        boost_trees_and_get_log_odds_and_gains(
            codes, y, weight, margin, rising_column=-1, **options
        )[1]
        for y in (target, 1 - target)
    )
    forced, flat = (
        boost_trees_and_get_log_odds_and_gains(
            codes, y, weight, margin, rising_column=0, **options
        )[1]
        for y in (target, 1 - target)
    )
    assert np.ptp(free - margin) > 0.1 and np.ptp(falling - margin) > 0.1
    np.testing.assert_array_equal(forced, free)
    # Weights and margins differ within a bin, so that the mean of a leaf need not be 0.
    assert np.ptp(flat - margin) < 0.01
