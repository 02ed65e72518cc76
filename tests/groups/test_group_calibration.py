"""The audit of groups: values of the note, an independent computation, bad input."""

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import parse_error_fields, raises_invalid_input
from golden_sets import golden_set
from scipy import optimize
from scipy.special import expit, logit

from sklearn_calib import canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import group_calibration
from sklearn_calib.groups._events import find_upper_quantile_or_inf
from sklearn_calib.inference import cumulative_test

QUICK = {"n_resamples": 19, "min_rows": 1}


def masks_of(p):
    i = np.arange(len(p))
    return [i % 2 == 0, i % 3 == 0, p > 0.6]


def test_golden_values():
    y, p = golden_set()
    found = group_calibration(y, p, masks_of(p), n_resamples=99)
    wanted = {
        "sigma": (2.1709994874, 1.8255501282, 1.3379229248, 0.8126742273),
        "observed_over_expected": (1.09, 1.1050009995, 1.0794954364, 0.9747792873),
        "in_the_large": (0.2986947793, 0.3469852609, 0.2634295176, -0.1473762889),
        "in_the_large_error": (0.1824231661, 0.2581078243, 0.3155234020, 0.2818233353),
        "slope": (0.7496974409, 0.7184167283, 0.7201824666, 0.8230474321),
        "slope_error": (0.1123554820, 0.1556271217, 0.1894034111, 0.3977736893),
    }
    assert [row.n_rows for row in found.rows] == [200, 100, 67, 86]
    for name, values in wanted.items():
        np.testing.assert_allclose(
            [getattr(r, name) for r in found.rows], values, atol=1e-8
        )


def naive_kuiper(y, p, w):
    path = [np.sum((w * (y - p))[p <= score]) for score in np.unique(p)]
    return (max(*path, 0.0) - min(*path, 0.0)) / np.sqrt(np.sum(w**2 * p * (1 - p)))


def weighted_set(n=240, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.uniform(0.05, 0.95, n), 1 + seed % 2)  # ties
    return (rng.random(n) < p).astype(int), p, rng.choice([0.5, 1.0, 3.0], n)


def naive_fits(y, p, w):
    """(shift, slope, its standard error by the sandwich formula), by other solvers."""
    z = logit(p)
    shift = optimize.brentq(lambda a: w @ (y - expit(z + a)), -9, 9, xtol=1e-14)
    design = np.column_stack([np.ones_like(z), z])
    coef = optimize.minimize(
        lambda c: w @ (np.logaddexp(0, design @ c) - y * (design @ c)),
        [0, 1],
        jac=lambda c: -design.T @ (w * (y - expit(design @ c))),
        method="BFGS",
        options={"gtol": 1e-9},
    ).x
    chance = expit(design @ coef)
    bread = np.linalg.inv(design.T @ (design * (w * chance * (1 - chance))[:, None]))
    meat = design.T @ (design * (w**2 * chance * (1 - chance))[:, None])
    return shift, coef[1], np.sqrt((bread @ meat @ bread)[1, 1])


def standardised_excess(y, p, w):
    return w @ (y - p) / np.sqrt(w**2 @ (p * (1 - p)))


@pytest.mark.parametrize("seed", [0, 1])
def test_against_an_independent_computation_with_ties_and_weights(seed):
    y, p, w = weighted_set(seed=seed)
    masks = masks_of(p)
    found = group_calibration(y, p, masks, sample_weight=w, n_resamples=199)
    for row, mask in zip(found.rows, [p >= 0, *masks], strict=True):
        one, q, v = y[mask], p[mask], w[mask]
        assert row.sigma == pytest.approx(naive_kuiper(one, q, v), abs=1e-10)
        shift, slope, error = naive_fits(one, q, v)
        assert row.in_the_large == pytest.approx(shift, abs=1e-10)
        assert row.slope == pytest.approx(slope, abs=1e-6)
        assert row.slope_error == pytest.approx(error, abs=1e-6)
        low, high = (
            expit(logit(q) + end)
            for end in (row.in_the_large_low, row.in_the_large_high)
        )
        above = standardised_excess(one, low, v)
        assert above == pytest.approx(-standardised_excess(one, high, v), abs=1e-9)
        assert 2 < above < 4
        assert row.ratio_high == pytest.approx(v @ high / (v @ q), abs=1e-9)


def test_the_only_group_has_the_statistic_of_cumulative_test():
    y, p, _ = weighted_set()
    found = group_calibration(y, p, [p > 2], **QUICK)
    assert len(found.rows) == 1
    assert found.sigma == pytest.approx(cumulative_test(y, p).statistic, abs=1e-12)
    assert found.p_value == found.rows[0].p_value == found.rows[0].adjusted_p_value


def test_p_values_are_the_ranks_of_the_draws():
    y, p, _ = weighted_set()
    y = np.where(p > 0.6, 1, y)
    found = group_calibration(y, p, masks_of(p), n_resamples=99)
    assert found.p_value == min(row.adjusted_p_value for row in found.rows)
    for row in found.rows:
        count = np.count_nonzero(found.null_distribution >= row.sigma - 1e-9)
        assert row.adjusted_p_value == (1 + count) / 100
        assert row.p_value <= row.adjusted_p_value
    assert found.critical_sigma == np.sort(found.null_distribution)[94]


@pytest.mark.parametrize("weight", [None, 0.1])
def test_p_values_count_ties(weight):
    """Few rows, whose statistics take few values: against all sets of labels."""
    p, y = (
        np.array([0.3, 0.3, 0.3, 0.6, 0.6, 0.6, 0.6]),
        np.array([0, 1, 1, 1, 1, 0, 1]),
    )
    groups = [np.ones(7, dtype=bool), np.arange(7) < 3, np.arange(7) > 2]
    more = {} if weight is None else {"sample_weight": np.full(7, weight)}
    found = group_calibration(y, p, groups[1:], min_rows=1, n_resamples=3999, **more)
    sets = (np.arange(128)[:, None] >> np.arange(7)) & 1
    chance = np.where(sets, p, 1 - p).prod(axis=1)
    sigma = np.array(
        [[naive_kuiper(s[g], p[g], np.ones(g.sum())) for g in groups] for s in sets]
    )
    tied = []
    for row, group, drawn in zip(found.rows, groups, sigma.T, strict=True):
        own = naive_kuiper(y[group], p[group], np.ones(group.sum()))
        for seen, of in (
            (row.p_value, drawn),
            (row.adjusted_p_value, sigma.max(axis=1)),
        ):
            tied.append(chance[np.abs(of - own) < 1e-9].sum())
            exact = chance[of > own - 1e-9].sum()
            assert seen == pytest.approx(
                exact, abs=4 * np.sqrt(exact * (1 - exact) / 3999) + 1e-3
            )
    assert min(tied[::2]) > 0.02 and max(tied[1::2]) > 0.02  # so that it matters


def test_too_few_draws_for_an_interval_say_so():
    y, p, _ = weighted_set()
    few, enough = (
        group_calibration(y, p, masks_of(p), n_resamples=r) for r in (18.0, 19)
    )
    assert few.critical_sigma == np.inf > enough.critical_sigma
    for row in few.rows:
        assert (row.in_the_large_low, row.in_the_large_high) == (-np.inf, np.inf)
        assert (row.slope_low, row.slope_high) == (-np.inf, np.inf)
        assert row.ratio_low == 0
    assert np.isfinite([row.slope_high for row in enough.rows]).all()
    assert "(0.00 to " in str(few)


def test_doubled_groups_change_nothing():
    """The largest of the same statistics twice is the largest of them."""
    y, p, _ = weighted_set()
    once = group_calibration(y, p, masks_of(p), n_resamples=99)
    twice = group_calibration(y, p, masks_of(p) * 2, n_resamples=99)
    assert twice.rows[:4] == once.rows
    assert [row[2:] for row in twice.rows[4:]] == [row[2:] for row in once.rows[1:]]


def test_threads_and_order_of_rows_change_nothing(monkeypatch):
    import numba

    y, p, w = weighted_set(seed=1)
    given = {"sample_weight": w, "n_resamples": 40}
    one = group_calibration(y, p, masks_of(p), **given)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 3)
    three = group_calibration(y, p, masks_of(p), **given)
    assert one.rows == three.rows
    assert (one.null_distribution == three.null_distribution).all()


def test_weights_scale_and_rows_without_weight_are_left_out():
    y, p, w = weighted_set()
    keep = np.arange(len(y)) % 5 > 0
    found = group_calibration(
        y, p, {"a": np.arange(240) % 3}, sample_weight=w * keep, **QUICK
    )
    small = group_calibration(
        y[keep],
        p[keep],
        {"a": np.arange(240)[keep] % 3},
        sample_weight=7 * w[keep],
        **QUICK,
    )
    for one, other in zip(found.rows, small.rows, strict=True):
        assert one.n_rows == other.n_rows
        np.testing.assert_allclose(
            [one.sigma, one.slope, one.in_the_large_low, one.ratio_high, one.p_value],
            [
                other.sigma,
                other.slope,
                other.in_the_large_low,
                other.ratio_high,
                other.p_value,
            ],
        )
    assert keep[found.members[1]].all()
    assert found.n_samples == keep.sum()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_a_common_factor_of_the_weights_says_nothing(scale):
    y, p, w = weighted_set()
    groups = {"a": np.arange(240) % 3}
    found = group_calibration(y, p, groups, sample_weight=w, **QUICK)
    scaled = group_calibration(y, p, groups, sample_weight=scale * w, **QUICK)
    for one, other in zip(found.rows, scaled.rows, strict=True):
        np.testing.assert_allclose(one[6:], other[6:], rtol=1e-7)
        np.testing.assert_allclose(scale * one.events, other.events)


def test_certain_predictions_are_told_without_intervals():
    y = np.arange(200) % 2
    told = str(group_calibration(y, 1.0 - y, [y == 0, y == 1], n_resamples=9))
    assert "-inf to" not in told
    assert "which 9 draws are too few to show" in " ".join(told.split())


def three_classes(n=900):
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([1, 2, 3], n)
    return np.array(["x", "y", "z"])[
        (rng.random(n)[:, None] > proba.cumsum(1)).sum(1)
    ], proba


def test_several_classes():
    y, proba = three_classes()
    table = {"s": np.arange(900) % 2}
    top = proba.argmax(1)
    found = group_calibration(y, proba, table, **QUICK)
    assert {row.event for row in found.rows} == {"confidence"}
    right = np.array(["x", "y", "z"])[top] == y
    alone = group_calibration(right, proba.max(1), table, **QUICK)
    assert found.sigma == pytest.approx(alone.sigma, abs=1e-12)
    assert found.rows[1].slope == pytest.approx(alone.rows[1].slope, abs=1e-6)
    each = group_calibration(y, proba, table, multiclass="classwise", **QUICK)
    assert [row.event for row in each.rows] == ["class x"] * 3 + ["class y"] * 3 + [
        "class z"
    ] * 3
    second = group_calibration(y == "y", proba[:, 1], table, **QUICK)
    assert each.rows[4].sigma == pytest.approx(second.rows[1].sigma, abs=1e-12)
    assert len(each.members) == 9


def test_classwise_of_two_classes_mirrors_and_the_positive_class_can_be_the_first():
    y, p, _ = weighted_set()
    both = group_calibration(y, p, masks_of(p), multiclass="classwise", **QUICK)
    first = group_calibration(
        y, np.column_stack([1 - p, p]), masks_of(p), pos_label=0, **QUICK
    )
    for row, mirrored, alone in zip(
        both.rows[4:], both.rows[:4], first.rows, strict=True
    ):
        assert row.sigma == pytest.approx(mirrored.sigma, abs=1e-12)
        assert row.slope == pytest.approx(mirrored.slope, abs=1e-8)
        assert row.in_the_large == pytest.approx(-mirrored.in_the_large, abs=1e-8)
        assert alone.event == mirrored.event == "class 0"
        assert alone.sigma == pytest.approx(mirrored.sigma, abs=1e-12)


def test_groups_with_one_class_one_score_or_a_threshold():
    p = np.tile([0.2, 0.4, 0.6, 0.8], 30)
    group = np.repeat(["none", "every", "split"], 40)
    y = np.select([group == "none", group == "every"], [0, 1], (p > 0.5).astype(int))
    same = np.repeat(["0.6", "not"], 60)
    q = np.where(same == "0.6", 0.6, p)
    rows = {r.group: r for r in group_calibration(y, p, {"g": group}, **QUICK).rows}
    none, every, split = (rows[f"g = {name}"] for name in ("none", "every", "split"))
    assert none.observed_over_expected == none.ratio_low == 0 < none.ratio_high < 0.5
    assert (
        none.in_the_large
        == none.in_the_large_low
        == -np.inf
        < none.in_the_large_high
        < 0
    )
    assert (
        every.in_the_large
        == every.in_the_large_high
        == np.inf
        > every.in_the_large_low
        > 0
    )
    assert every.ratio_high == pytest.approx(every.observed_over_expected)
    assert np.isnan([none.slope, every.slope]).all()
    assert split.slope == np.inf
    assert np.isfinite(split.in_the_large)
    for row in (none, every, split):
        assert (row.slope_low, row.slope_high) == (-np.inf, np.inf)
    alternating = np.arange(120) % 2
    one = group_calibration(alternating, q, {"s": same}, **QUICK).rows[1]
    assert np.isnan(one.slope)
    assert one.in_the_large == pytest.approx(-logit(0.6))


def test_certain_predictions():
    p = np.repeat([0.0, 1.0, 0.5], 40)
    y = np.concatenate([np.zeros(40), np.ones(40), np.arange(40) % 2]).astype(int)
    group = {"sure": np.where(p == 0.5, "no", "yes")}
    right = group_calibration(y, p, group, **QUICK).rows[2]
    assert (right.sigma, right.p_value) == (0.0, 1.0)
    assert np.isnan(right.in_the_large)
    y[3] = 1
    wrong = group_calibration(y, p, group, **QUICK)
    assert wrong.rows[2].sigma == np.inf == wrong.sigma
    assert wrong.rows[2].p_value == wrong.rows[2].adjusted_p_value == 1 / 20
    assert "inf" in str(wrong)
    nothing = group_calibration(
        y[:40] * 0, p[:40], [p[:40] < 1], labels=[0, 1], **QUICK
    ).rows[0]
    assert np.isnan(nothing.observed_over_expected)
    assert "-" in str(
        group_calibration(y[:40] * 0, p[:40], [p[:40] < 1], labels=[0, 1], **QUICK)
    )


def test_exact_logits_far_out():
    z = np.linspace(-900, 900, 200)
    y = (z > 0).astype(int)
    y[[0, -1, 90, 110]] ^= 1
    row = group_calibration(
        y, canonical_proba(z, kind="logits"), [z > 0], **QUICK
    ).rows[0]
    assert np.isfinite([row.slope, row.slope_error, row.in_the_large]).all()


@run_every_case(
    ("change", "message"),
    [
        ({"level": 1}, "a level between"),
        ({"n_resamples": 0}, "a whole number n_resamples >= 1"),
        ({"n_resamples": 2.5}, "a whole number n_resamples >= 1"),
        ({"multiclass": "top_label"}, "multiclass among auto, confidence, classwise"),
        ({"groups": {}}, "groups with at least one column"),
        (
            {"groups": [np.ones(7, dtype=bool)]},
            "masks with .* the 240 rows, got 7 in mask 0",
        ),
        ({"y_true": [0, 1]}, "as many labels"),
        ({"depth": 0}, "a whole number depth >= 1"),
    ],
)
def test_bad_input(change, message):
    y, p, _ = weighted_set()
    given = {"y_true": y, "y_proba": p, "groups": {"a": y}, **change}
    with raises_invalid_input(ValueError, **parse_error_fields(message)):
        group_calibration(**given)


def test_all_groups_too_small():
    y, p, _ = weighted_set()
    with pytest.warns(
        CalibrationWarning, match="Only all rows together are reported"
    ) as given:
        found = group_calibration(
            y, p, {"a": np.arange(240) // 3 % 40}, n_resamples=9, n_bins=80
        )
    assert [row.group for row in found.rows] == ["all rows"]
    assert found.n_left_out > 1
    assert given[0].filename == __file__


def test_result_shows_names_of_strangers_safely():
    y, p, _ = weighted_set()
    hostile = "<script>alert(1)</script>\x1b[31m" + "long " * 40
    found = group_calibration(
        y, p, {hostile: np.where(p > 0.5, "<b>&", "plain")}, **QUICK
    )
    page, text = found._repr_html_(), str(found)
    assert "<script" not in page
    assert "&lt;b&gt;&amp;" in page
    assert "\x1b" not in text + page
    assert max(map(len, text.splitlines())) < 220
    frame = found.to_frame()
    assert len(frame) == 3
    assert frame["sigma"].max() == found.sigma
    assert found.to_dict()["groups"][0]["group"] == "all rows"
    with pytest.raises(AttributeError):
        found.p_value = 1.0


def test_wrong_groups_are_found_and_worst_first():
    rng = np.random.default_rng(5)
    p, site = rng.uniform(0.1, 0.9, 3000), rng.choice(list("abcdef"), 3000)
    y = (rng.random(3000) < np.where(site == "d", p**2, p)).astype(int)
    found = group_calibration(y, p, {"site": site, "x": rng.normal(size=3000)}, depth=2)
    assert found.rejected[0].group == found.worst(1)[0].group == "site = d"
    assert found.rejected[0].ratio_high < 1
    assert all("site = d" in r.group or "site" not in r.group for r in found.rejected)
    assert "site = d" in str(found).partition("adjusted p")[2].splitlines()[1]


def test_columns_of_one_name_are_refused():
    y, p = golden_set()
    groups = pd.DataFrame([["a", "b"], ["a", "c"]] * 100, columns=["g", "g"])
    with raises_invalid_input(
        ValueError, expected=".*different names of columns", value="'g' twice"
    ):
        group_calibration(y, p, groups)


def test_the_quantile_of_draws_is_not_moved_by_rounding():
    """100 * 0.55 is 55.00000000000001; and more than all draws is needed where there are few."""
    assert find_upper_quantile_or_inf(np.arange(99.0), 0.55) == 54.0
    assert find_upper_quantile_or_inf(np.arange(99.0), 0.95) == 94.0
    assert find_upper_quantile_or_inf(np.arange(10.0), 0.95) == np.inf
