"""MulticlassBinning: oracles, an exact rational reference, invariants, what it is good for."""

import warnings
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from error_fields import raises_invalid_input
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_calib._kernels._level_merging import (
    GroupCorrectionRule,
    SplitSampleLabelEstimates,
    WholeSampleLabelEstimates,
    correct_and_merge_cells,
)
from sklearn_calib._kernels._level_sets import (
    compute_levels,
    project_levels_to_simplex_proba,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import brier_loss, get_scorer, lp_calibration_error
from sklearn_calib.recalibrators import MulticlassBinning, TemperatureScaling


def cells_of(P, y, n_levels, least):
    """Heavy cells of exact rows, with their label masses."""
    n, k = len(y), len(P[0])
    level = [tuple(floor(Fraction(p) * n_levels) for p in row) for row in P]
    heavy = sorted(v for v in set(level) if level.count(v) >= least * n)
    labels = np.zeros((len(heavy), k))
    for v, label in zip(level, y, strict=True):
        if v in heavy:
            labels[heavy.index(v), label] += 1 / n
    return np.array(heavy, dtype=np.int64).reshape(-1, k), labels


def exact_projection(z):
    descending = sorted(z, reverse=True)
    total, shift = Fraction(0), None
    for i, value in enumerate(descending, 1):
        total += value
        if value > (total - 1) / i:
            shift = (total - 1) / i
    return [max(value - shift, Fraction(0)) for value in z]


def narrower(margin, *differences):
    """The smallest size of these that is not an exact tie."""
    return min([margin, *(abs(d) for d in differences if d)])


def exact(heavy, counts, n, n_levels, tolerance):
    """The algorithm in fractions; also the smallest margin of any comparison, and the losses.

    Exact ties have no margin: the lowest cell and class come first, in fractions as in
    floats.
    """
    k = len(heavy[0])
    groups = {
        i: {
            "cells": [i],
            "labels": [Fraction(int(c), n) for c in counts[i]],
            "key": tuple(v),
            "pred": [
                (Fraction(int(m)) + Fraction(n_levels - int(sum(v)), k)) / n_levels
                for m in v
            ],
        }
        for i, v in enumerate(heavy)
    }
    steps, merges, margin, falls = 0, 0, Fraction(1), []

    def loss(group):
        mass = sum(group["labels"])
        return mass * sum(p * p for p in group["pred"]) - 2 * sum(
            p * e for p, e in zip(group["pred"], group["labels"], strict=True)
        )

    while True:
        errors = sorted(
            (
                (abs(sum(g["labels"]) * g["pred"][j] - g["labels"][j]), -i, -j)
                for i, g in groups.items()
                for j in range(k)
            ),
            reverse=True,
        )
        error, i, j = errors[0][0], -errors[0][1], -errors[0][2]
        margin = narrower(margin, error - tolerance)
        if error <= tolerance:
            return groups, steps, merges, margin, falls
        margin = narrower(margin, *(error - other[0] for other in errors[1:]))
        steps += 1
        group = groups[i]
        mass, before = sum(group["labels"]), loss(group)
        z = list(group["pred"])
        z[j] = group["labels"][j] / mass
        group["pred"] = exact_projection(z)
        falls.append(before - loss(group))
        group["key"] = tuple(floor(p * n_levels) for p in group["pred"])
        for p in group["pred"]:
            part = p * n_levels - floor(p * n_levels)
            if part:
                margin = min(margin, part, 1 - part)
        other = next(
            (o for o in groups if o != i and groups[o]["key"] == group["key"]), None
        )
        if other is not None:
            merges += 1
            rival = groups[other]
            margin = narrower(margin, mass - sum(rival["labels"]))
            pred = rival["pred"] if mass <= sum(rival["labels"]) else group["pred"]
            kept, gone = min(i, other), max(i, other)
            groups[kept] = {
                "cells": sorted(group["cells"] + rival["cells"]),
                "labels": [
                    a + b for a, b in zip(group["labels"], rival["labels"], strict=True)
                ],
                "key": group["key"],
                "pred": pred,
            }
            del groups[gone]


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_against_fractions(block):
    """Random small problems; those with a comparison closer than rounding are left out."""
    merges = steps = compared = 0
    for seed in range(60 * block, 60 * block + 60):
        rng = np.random.default_rng(seed)
        k, n_levels = int(rng.integers(2, 5)), int(rng.integers(2, 9))
        n, b = 40, int(rng.integers(2, 7))
        rows = rng.multinomial(16, rng.dirichlet(np.ones(k)), size=b) / 16
        which, y = rng.integers(0, b, n), rng.integers(0, k, n)
        heavy, labels = cells_of(rows[which].tolist(), y, n_levels, 1 / n)
        counts = np.rint(labels * n)
        tolerance = Fraction(1, int(rng.integers(20, 200)))
        groups, count, joined, margin, falls = exact(
            heavy, counts, n, n_levels, tolerance
        )
        assert all(fall >= tolerance**2 for fall in falls)
        if margin < Fraction(1, 10**4):
            continue
        compared += 1
        first = project_levels_to_simplex_proba(heavy, n_levels)
        found = correct_and_merge_cells(
            heavy,
            labels,
            first,
            GroupCorrectionRule(n_levels, float(tolerance), float(n)),
        )
        assert (found.n_iter, found.n_merges, found.converged) == (count, joined, True)
        for i, group in groups.items():
            assert np.flatnonzero(found.group == i).tolist() == group["cells"]
            assert_allclose(
                found.prediction[i], [float(p) for p in group["pred"]], atol=1e-12
            )
        merges, steps = merges + joined, steps + count
    assert compared > 40 and merges > 2 and steps > 100


@pytest.mark.parametrize("name", ["case3_binary_half_steps", "case6_empty_B"])
def test_oracle(oracle, name):
    case = oracle("multiclass_binning.json")[name]
    P, y, expected = np.array(case["P"]), np.array(case["y"]), case["expected"]
    heavy, labels = cells_of(case["P"], y, case["lam"], expected["min_mass"])
    assert heavy.tolist() == expected["bins"]
    first = project_levels_to_simplex_proba(heavy, case["lam"])
    found = correct_and_merge_cells(
        heavy,
        labels,
        first,
        GroupCorrectionRule(case["lam"], expected["tol"], float(len(y))),
    )
    assert (found.n_iter, found.n_merges) == (expected["n_iter"], expected["n_merges"])
    for group in expected["groups"]:
        assert_allclose(found.prediction[group["bins"][0]], group["pred"], atol=1e-14)
    if not expected["bins"]:
        model = MulticlassBinning(n_levels=case["lam"], keep=False, min_count=20)
        with pytest.warns(
            CalibrationWarning, match="got none among 40 rows and 40 levels"
        ):
            model.fit(P, y)
        assert_allclose(model.predict_proba(P), expected["predict_proba"], atol=1e-14)


class Watched(WholeSampleLabelEstimates):
    """Checks at every merge that mass is neither lost nor made."""

    def __init__(self, labels):
        super().__init__(labels)
        self.alive = set(range(len(labels)))
        self.total = labels.sum()

    def merge_groups(self, kept, gone):
        super().merge_groups(kept, gone)
        self.alive.remove(gone)
        assert_allclose(self.labels[sorted(self.alive)].sum(), self.total, rtol=1e-12)


@pytest.mark.parametrize("vector", [False, True])
def test_invariants(vector):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        level = np.unique(
            rng.multinomial(12, rng.dirichlet(np.ones(4)), size=60), axis=0
        )
        mass = rng.dirichlet(np.ones(len(level)))
        labels = mass[:, None] * rng.dirichlet(np.ones(4) * 0.5, len(level))
        rule = GroupCorrectionRule(
            12,
            1e-3,
            5000.0,
            corrects_all_classes=vector,
            first_prediction_rows=5.0 * vector,
        )
        found = correct_and_merge_cells(
            level,
            labels,
            project_levels_to_simplex_proba(level, 12),
            rule,
            Watched(labels),
        )
        assert found.converged and found.n_merges <= len(level) - 1
        alive = np.unique(found.group)
        keys = {
            compute_levels(found.prediction[g], 12).tobytes()
            for g in alive
            if found.touched[g]
        }
        assert len(keys) == found.touched[alive].sum()  # no two groups share a cell
        assert_allclose(found.prediction[alive].sum(axis=1), 1)
        assert_allclose(found.labels[alive].sum(), 1)


def test_pools_are_binary_digits():
    """The sets that make up a group of s cells have the sizes of the binary digits of s."""
    rng = np.random.default_rng(0)
    b = 37
    pools = [rng.dirichlet(np.ones(b * 3)).reshape(b, 3) for _ in range(b.bit_length())]
    estimates = SplitSampleLabelEstimates(pools)
    members = {i: {i} for i in range(b)}
    while len(members) > 1:
        kept, gone = sorted(rng.choice(sorted(members), 2, replace=False))
        estimates.merge_groups(kept, gone)
        members[kept] |= members.pop(gone)
        parts = estimates.parts[kept]
        assert sum(2**power for power in parts) == len(members[kept])
        assert set().union(*(cells for cells, _ in parts.values())) == members[kept]
        expected = sum(
            pools[power][cells].sum(axis=0) for power, (cells, _) in parts.items()
        )
        assert_allclose(estimates.labels[kept], np.clip(expected, 0, None), atol=1e-12)


def leaves(n, k=5, n_leaves=20, seed=0):
    """A tree with wrong leaves: predictions, labels, truth."""
    rng = np.random.default_rng(seed)
    predicted, truth = rng.dirichlet(np.ones(k) * 0.5, (2, n_leaves))
    leaf = rng.integers(0, n_leaves, n)
    y = (truth[leaf].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    return predicted[leaf], y, truth[leaf]


@pytest.mark.parametrize("update", ["vector", "coordinate"])
@pytest.mark.parametrize("keep", [True, False])
def test_repairs_leaves(update, keep):
    P, y, truth = leaves(20_000)
    model = MulticlassBinning(update=update, keep=keep, epsilon=0.02).fit(P, y)
    after = np.abs(model.predict_proba(P) - truth).mean()
    assert after < 0.15 * np.abs(P - truth).mean()
    assert model.brier_after_ < model.brier_before_
    assert_allclose(model.brier_before_, brier_loss(y, P))
    assert_allclose(model.brier_after_, brier_loss(y, model.predict_proba(P)))
    assert model.mass_in_bins_ == 1
    assert_allclose(sum(group.mass for group in model.groups_), 1)
    assert sorted(np.concatenate([g.bins for g in model.groups_])) == list(
        range(len(model.bins_))
    )
    temperature = TemperatureScaling().fit(P, y)
    assert brier_loss(y, temperature.predict_proba(P)) > model.brier_after_ + 0.05


def test_smooth_predictions_stay():
    """Nothing crowds: a warning, and not a number is changed."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(20), 2000)
    y = rng.integers(0, 20, 2000)
    with pytest.warns(
        CalibrationWarning, match="at least 20 rows .* temperature scaling"
    ):
        model = MulticlassBinning().fit(P, y)
    assert_allclose(model.predict_proba(P), P, atol=1e-15)
    assert model.mass_in_bins_ == 0 and model.groups_ == [] and model.n_iter_ == 0


def test_errors_within_noise_stay():
    """Calibrated leaves of 100 rows: few are more than 3 standard errors off."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(4), 50)
    leaf = np.repeat(np.arange(50), 100)
    y = (truth[leaf].cumsum(axis=1) < rng.random((5000, 1))).sum(axis=1)
    careful = MulticlassBinning(z=3.5).fit(truth[leaf], y)
    eager = MulticlassBinning(z=0).fit(truth[leaf], y)
    assert careful.n_iter_ <= 3 < eager.n_iter_


def test_paper():
    """Algorithm 2: its levels, the error in the sample below epsilon."""
    P, y, _ = leaves(20_000)
    for p, epsilon in ((np.inf, 0.02), (np.inf, 0.05), (2, 0.1)):
        model = MulticlassBinning.paper(p, epsilon).fit(P, y)
        assert model.n_levels_ == {0.02: 50, 0.05: 20, 0.1: 200}[epsilon]
        error = lp_calibration_error(
            y, model.predict_proba(P), p=p, n_levels=model.n_levels_
        )
        assert error <= epsilon
    with raises_invalid_input(ValueError, expected=".*at most 5000 levels"):
        MulticlassBinning.paper(1.2, 0.05).fit(P, y)


def test_what_stands_for_an_absent_class_is_not_split():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 2000)
    y = rng.integers(0, 3, 2000)
    method = MulticlassBinning(split=True, n_levels=5, min_count=40)
    expected = method.fit(P, y)
    with pytest.warns(CalibrationWarning, match="none of 2"):
        found = clone(method).fit(P, np.minimum(y, 1), classes=range(3))
    # which the labels do not choose
    np.testing.assert_array_equal(found.bins_, expected.bins_)
    assert 0.1 < found.mass_in_bins_ == expected.mass_in_bins_ < 0.8
    assert abs(found.predict_proba(P)[:, 2].mean() - P[:, 2].mean()) < 0.03
    with (
        raises_invalid_input(
            ValueError, expected="at least 4 rows to split", value="3"
        ),
        pytest.warns(CalibrationWarning),
    ):
        clone(method).fit(P[:3], [0, 1, 0], classes=range(3))


@pytest.mark.slow
def test_pools_and_noise():
    P, y, truth = leaves(60_000, seed=2)
    before = np.abs(P - truth).mean()
    plain = MulticlassBinning.paper(np.inf, 0.02, pools="paper", random_state=0).fit(
        P, y
    )
    assert np.abs(plain.predict_proba(P) - truth).mean() < 0.5 * before
    noisy = clone(plain).set_params(noise="laplace").fit(P, y)
    assert np.abs(noisy.predict_proba(P) - plain.predict_proba(P)).max() > 0
    again = clone(noisy).fit(P, y)
    assert (again.predict_proba(P) == noisy.predict_proba(P)).all()
    with raises_invalid_input(ValueError, expected="pools='paper' with noise"):
        MulticlassBinning(noise="laplace").fit(P, y)


def test_never_an_endless_loop():
    """Pools estimate differently and may contradict; the loop ends all the same."""
    for seed in range(10):
        P, y, _ = leaves(300, 3, 4, seed)
        model = MulticlassBinning.paper(
            np.inf, 0.05, pools="paper", noise="laplace", random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            model.fit(P, y)
        assert model.n_iter_ <= 2000


def test_max_iter_warns():
    P, y, _ = leaves(5000)
    model = MulticlassBinning(epsilon=0.01, max_iter=2)
    with pytest.warns(
        CalibrationWarning, match="after 2 iterations, got .* raise max_iter"
    ):
        model.fit(P, y)
    assert model.n_iter_ == 2


@pytest.mark.slow
def test_split_bound_holds():
    P, y, _ = leaves(40_000, seed=1)
    P_new, y_new, _ = leaves(200_000, seed=1)
    for p in (2, np.inf):
        model = MulticlassBinning(p, 0.05, split=True, random_state=0).fit(P, y)
        error = lp_calibration_error(
            y_new, model.predict_proba(P_new), p=p, n_levels=20
        )
        assert error < model.error_bound_ < (0.6 if p == 2 else 0.15)
    assert np.isnan(MulticlassBinning().fit(P, y).error_bound_)
    with raises_invalid_input(ValueError, expected="at least 4 rows to split"):
        MulticlassBinning(split=True).fit([0.2, 0.4, 0.9], [0, 1, 1])


def test_split_bound_is_not_loose():
    """Beyond the error in the sample, 6 times the largest deviation of any group of cells."""
    n = 20_000
    P, y, truth = leaves(2 * n, seed=1)
    model = MulticlassBinning(np.inf, 0.05, split=True, random_state=0).fit(P, y)
    inside = max(
        np.abs(g.mass * (g.prediction - g.frequency)).max() for g in model.groups_
    )
    _, cell = np.unique(P[:n], axis=0, return_inverse=True)
    rng, largest = np.random.default_rng(0), []
    for _ in range(20):
        drawn = (truth[:n].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 4)
        gap = np.eye(5)[drawn] - truth[:n]
        cells = np.array([np.bincount(cell.ravel(), column) for column in gap.T]) / n
        largest.append(
            max(cells.clip(0).sum(axis=1).max(), -cells.clip(max=0).sum(axis=1).min())
        )
    # the lightest cells are left alone
    margin = model.error_bound_ - inside - model.beta_ / 6
    assert 1 < margin / np.mean(largest) < 6


def test_number_of_levels_by_cross_validation():
    P, y, _ = leaves(8000)
    search = GridSearchCV(
        MulticlassBinning(),
        {"n_levels": [2, 20]},
        scoring=get_scorer("neg_brier_loss"),
        cv=3,
    ).fit(P, y)
    assert search.best_params_ == {"n_levels": 20}


def test_weights_are_rows():
    P, y, _ = leaves(3000)
    weight = np.random.default_rng(0).integers(0, 3, 3000)
    one = MulticlassBinning().fit(P, y, sample_weight=weight)
    two = MulticlassBinning().fit(np.repeat(P, weight, axis=0), np.repeat(y, weight))
    assert_allclose(one.predict_proba(P), two.predict_proba(P), atol=1e-12)
    assert_allclose(one.brier_after_, two.brier_after_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options", [{"n_levels": 5, "epsilon": 0.02, "z": 0, "min_count": 0}, {}]
)
def test_one_class_at_a_time_does_not_depend_on_the_order_of_the_rows(
    options, weighted
):
    """Two classes of a cell often have the same error; rounding must not choose between them."""
    for seed in range(2, 6):
        rng = np.random.default_rng(seed)
        k, n = 4 - seed % 2, 300
        P = rng.dirichlet(np.ones(k), n if seed < 4 else 12)
        P = P if seed < 4 else P[rng.integers(0, 12, n)]
        y, weight = rng.integers(0, k, n), rng.random(n) if weighted else np.ones(n)
        expected = None
        for order in (np.arange(n), *(rng.permutation(n) for _ in range(4))):
            model = MulticlassBinning(update="coordinate", **options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CalibrationWarning)
                model.fit(
                    P[order], y[order], sample_weight=weight[order], classes=range(k)
                )
            expected = model.predict_proba(P) if expected is None else expected
            assert_allclose(model.predict_proba(P), expected, atol=1e-9)
