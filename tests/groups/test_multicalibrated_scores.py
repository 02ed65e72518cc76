import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

from sklearn_calib import canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import MulticalibratedScores
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators._booster import (
    BoosterOptionsMixin,
    BoosterRows,
    BoostingRounds,
    _MarginUpdater,
    sum_losses,
)

QUICK = {"n_trees": 30, "n_rounds": 4, "cv": 2}


def draw(n=1500, seed=0, wrong=1.0):
    """Probabilities, labels and a table of groups in which the former are wrong."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "region": rng.choice(["east", "north", "west"], n, p=[0.2, 0.5, 0.3]),
            "age": rng.integers(18, 90, n).astype(float),
            "smokes": rng.random(n) < 0.3,
        }
    )
    score = 1.5 * rng.normal(size=n)
    shift = np.where(table["region"] == "east", 1.5, -0.4) * np.where(
        table["smokes"], 1.0, 0.2
    )
    true = score + wrong * (shift + 0.02 * (table["age"].to_numpy() - 50))
    return expit(score), (rng.random(n) < expit(true)).astype(int), table, expit(true)


def fitted(p, y, table, **options):
    return MulticalibratedScores(**{**QUICK, **options}).fit(p, y, groups=table)


def second(model, p, table):
    return model.predict_proba(p, groups=table)[:, 1]


@pytest.fixture(scope="module")
def case():
    p, y, table, true = draw()
    return p, y, table, true, fitted(p, y, table)


def test_it_learns_the_groups(case):
    _, _, _, _, model = case
    p, _, table, true = draw(4000, seed=1)
    after = second(model, p, table)
    assert np.abs(after - true).mean() < 0.7 * np.abs(p - true).mean()
    east = (table["region"] == "east") & table["smokes"]
    assert abs((true - after)[east].mean()) < 0.1 < 0.2 < (true - p)[east].mean()
    assert model.n_rounds_ >= 1 and model.n_trees_ == 10 * np.argmin(model.cv_losses_)
    assert model.cv_losses_.min() < model.cv_losses_[0]
    assert set(model.feature_gains_) == {"region", "age", "smokes", "(score)"}
    assert min(model.feature_gains_.values()) >= 0 < model.feature_gains_["region"]
    assert model.group_names_ == ["region", "age", "smokes"]


@pytest.mark.slow
def test_every_number_counts(case):
    p, y, table, _, model = case
    plain = second(model, p, table)
    numbers = {
        "learning_rate": 0.02,
        "max_leaves": 2,
        "min_samples_leaf": 300.0,
        "l2": 500.0,
    }
    for name, value in (
        numbers | {"min_gain": 50.0, "n_bins": 4, "n_trees": 10}
    ).items():
        other = second(fitted(p, y, table, **{name: value}), p, table)
        assert np.abs(other - plain).max() > 1e-3, name


def test_the_losses_are_those_of_the_rows_left_out(case):
    """One fold predicts what its own correction states."""
    p, y, table, _, model = case
    assert model.cv_losses_[0] == pytest.approx(log_loss(y, p), abs=1e-12)
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    one = fitted(p, y, table, cv=[(train, test)], n_rounds=1)
    proba = one.predict_proba(p[test], groups=table.iloc[test])
    assert log_loss(y[test], proba) == pytest.approx(one.cv_losses_.min(), abs=1e-12)
    assert one.n_rounds_ == 1


def test_the_prediction_is_the_mean_of_the_folds(case):
    p, y, table, *_ = case
    margins = []
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(p, y):
        part = fitted(p, y, table, cv=[(train, test)], n_trees=10, n_rounds=1)
        margins.append(logit(second(part, p, table)))
    both = fitted(p, y, table, n_trees=10, n_rounds=1)
    np.testing.assert_allclose(
        second(both, p, table), expit(np.mean(margins, axis=0)), rtol=1e-9
    )


def rows_of(p, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    age = np.random.default_rng(0).normal(size=len(y))
    return BoosterRows(logit(p), [age, np.arange(len(y)) % 5], y.astype(float), weight)


SETTINGS = {"n_trees": 30, "n_bins": 64}  # 3 steps of 10 trees


@pytest.mark.parametrize("options", [{}, {"learning_rate": 0.7}, {"use_score": False}])
def test_the_training_loss_never_rises(options):
    p, y, _, _ = draw(800)
    rows = rows_of(p, y)
    settings = BoosterOptionsMixin(**SETTINGS, **options)
    rounds = BoostingRounds(rows, settings.n_bins)
    track = _MarginUpdater(rows, rounds.coding)
    losses = [sum_losses(track.margin, rows)]
    for _ in range(15):
        rounds.grow_step(track, settings, 20.0)
        losses.append(sum_losses(track.margin, rows))
    assert (np.diff(losses) <= 1e-9).all()
    assert np.array_equal(rounds.predict(rows), track.margin)


@pytest.mark.slow
def test_where_nothing_is_wrong_nothing_changes():
    """Seldom do the folds see by chance what is not there."""
    untouched = 0
    for seed in range(12):
        p, y, table, _ = draw(600, seed=seed, wrong=0.0)
        model = fitted(p, y, table)
        if model.n_rounds_ == 0:
            untouched += 1
            assert np.array_equal(second(model, p, table), p)
    assert untouched >= 9


@pytest.mark.parametrize("n_rounds", [0, 1])
def test_never_worse_than_the_input_on_the_folds(n_rounds):
    p, y, table, _ = draw(300)
    model = fitted(p, y, table, n_rounds=n_rounds)
    assert model.n_rounds_ <= n_rounds
    assert model.cv_losses_[: 3 * n_rounds + 1].min() <= model.cv_losses_[0]


def test_weights_are_repetitions():
    p, y, table, _ = draw(800)
    weight = np.random.default_rng(0).integers(0, 4, 800)
    rows, fold = (
        np.repeat(np.arange(800), weight),
        np.random.default_rng(1).integers(0, 2, 800),
    )
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(2)]
    repeated_folds = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in folds
    ]
    weighted = MulticalibratedScores(cv=folds)
    weighted.fit(p, y, groups=table, sample_weight=weight)
    repeated = MulticalibratedScores(cv=repeated_folds)
    repeated.fit(p[rows], y[rows], groups=table.iloc[rows])
    assert weighted.n_rounds_ == repeated.n_rounds_ > 0
    np.testing.assert_allclose(weighted.cv_losses_, repeated.cv_losses_, rtol=1e-9)
    np.testing.assert_allclose(
        second(weighted, p, table), second(repeated, p, table), rtol=1e-7
    )


def test_a_common_factor_of_fractions_does_not_matter(case):
    p, y, table, *_ = case
    weight = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    a, b = (
        MulticalibratedScores(**QUICK).fit(p, y, groups=table, sample_weight=w)
        for w in (weight, 8 * weight)
    )
    np.testing.assert_allclose(second(a, p, table), second(b, p, table), rtol=1e-7)


def test_a_row_alone_is_a_row_in_a_batch(case):
    p, _, table, _, model = case
    together = model.predict_proba(p[:40], groups=table[:40])
    for i in range(40):
        alone = model.predict_proba(p[i : i + 1], groups=table[i : i + 1])
        assert np.array_equal(alone[0], together[i])


def test_the_line_of_the_last_step_keeps_the_mean(case):
    p, y, table, _, model = case
    assert model.n_trees_ > 10
    assert abs(second(model, p, table).mean() - y.mean()) < 0.002


def test_the_order_of_the_columns_does_not_matter(case):
    p, y, table, _, model = case
    other = fitted(p, y, table[["smokes", "region", "age"]])
    np.testing.assert_allclose(
        second(other, p, table), second(model, p, table), rtol=1e-12
    )
    mixed = table[["age", "smokes", "region"]].assign(unused=1)
    assert np.array_equal(second(model, p, mixed), second(model, p, table))


@run_every_case(
    "kind", ["plain", "rounded", "logits", "balanced", "monotone", "weights"]
)
def test_a_swap_of_the_classes_swaps_the_columns(kind):
    p, y, table, _ = draw(900, seed=3)
    weight, options = None, {"monotone": kind == "monotone"}
    if kind == "balanced":
        kept = np.concatenate([np.flatnonzero(y == k)[:300] for k in range(2)])
        kept = np.random.default_rng(0).permutation(kept)
        p, y, table = p[kept], y[kept], table.iloc[kept]
    elif kind == "rounded":
        p = p.round(2)
    elif kind == "weights":
        weight = np.random.default_rng(0).integers(0, 4, len(y))
    proba = canonical_proba(logit(p) * 20, kind="logits") if kind == "logits" else None
    swapped = (
        canonical_proba(-logit(p) * 20, kind="logits") if kind == "logits" else None
    )
    proba = np.column_stack([1 - p, p]) if proba is None else proba
    swapped = proba[:, ::-1] if swapped is None else swapped
    table = table.assign(age=table["age"].mask(table["age"] > 80))
    models = [
        MulticalibratedScores(**{**QUICK, **options}).fit(
            q, labels, table, sample_weight=weight
        )
        for q, labels in ((proba, y), (swapped, 1 - y))
    ]
    assert models[0].n_rounds_ == models[1].n_rounds_ > 0
    assert models[0].feature_gains_ == pytest.approx(models[1].feature_gains_, rel=1e-9)
    after, mirrored = (
        model.predict_proba(q, table)
        for model, q in zip(models, (proba, swapped), strict=True)
    )
    np.testing.assert_allclose(mirrored[:, ::-1], after, rtol=1e-12)


def test_an_order_of_three_classes_does_not_matter():
    proba, y = make_overconfident(3, 900)
    table, order = {"half": np.arange(900) % 2}, np.array([2, 0, 1])
    after = []
    for q, labels in ((proba, y), (proba[:, order], np.argsort(order)[y])):
        with pytest.warns(CalibrationWarning, match="got 3"):
            model = MulticalibratedScores(**QUICK).fit(q, labels, groups=table)
        after.append(model.predict_proba(q, groups=table))
    np.testing.assert_allclose(after[1], after[0][:, order], rtol=1e-9)


def test_new_categories_count_as_missing(case):
    p, _, table, _, model = case
    new, none = table.assign(region="south"), table.assign(region=None)
    assert np.array_equal(second(model, p, new), second(model, p, none))
    assert not np.array_equal(second(model, p, new), second(model, p, table))


def test_missing_values_are_a_group():
    p, y, table, _ = draw(2000)
    table.loc[table["region"] == "east", "region"] = None
    table.loc[table["age"] > 70, "age"] = np.nan
    model = fitted(p, y, table)
    whole = fitted(*draw(2000)[:3])
    assert abs(model.cv_losses_.min() - whole.cv_losses_.min()) < 0.01


@pytest.mark.parametrize("monotone", [True, False])
def test_monotone_keeps_the_order_inside_a_group(monotone):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    side = rng.random(2000) < 0.5
    # not monotone
    y = (rng.random(2000) < np.where(side, 1 - np.abs(2 * p - 1), p)).astype(int)
    model = fitted(p, y, {"side": side}, monotone=monotone, n_rounds=3)
    grid = np.linspace(0.001, 0.999, 400)
    falls = [
        -np.diff(second(model, grid, {"side": np.full(400, s)})).min()
        for s in (False, True)
    ]
    assert (max(falls) > 0.05) != monotone
    assert not monotone or max(falls) <= 1e-15


def test_without_the_score_only_the_mean_of_groups_is_right():
    """One line through all log-odds, moved up and down by the groups."""
    p, y, table, _ = draw(2000)
    model = fitted(p, y, table, use_score=False)
    assert model.feature_gains_["(score)"] == 0 < model.feature_gains_["region"]
    grid = np.linspace(0.1, 0.9, 9)
    one = pd.concat([table[:1]] * 9)
    assert (
        np.ptp(np.diff(logit(second(model, grid, one))) / np.diff(logit(grid))) < 1e-9
    )


CONTAINERS = {
    "dict": lambda t: {name: t[name].tolist() for name in t},
    "objects": lambda t: t.to_numpy(dtype=object),
    "category": lambda t: t.assign(region=t["region"].astype("category")),
    "nullable": lambda t: t.convert_dtypes(),
    "polars": lambda t: pytest.importorskip("polars").from_pandas(t),
    "arrow": lambda t: pytest.importorskip("pyarrow").Table.from_pandas(t),
}


@run_every_case("container", CONTAINERS)
def test_any_table(case, container):
    p, y, table, _, model = case
    groups = CONTAINERS[container](table)
    other = fitted(p, y, groups)
    assert np.array_equal(second(other, p, groups), second(model, p, table))


def test_one_column_masks_and_dates():
    p, y, table, _ = draw()
    a = second(fitted(p, y, table["smokes"]), p, table["smokes"])
    masks = [table["smokes"].to_numpy()]
    assert np.array_equal(a, second(fitted(p, y, masks), p, masks))
    array = table["smokes"].to_numpy()
    assert np.array_equal(a, second(fitted(p, y, array), p, array))
    born = pd.DataFrame(
        {"born": pd.to_datetime("2020-01-01") - pd.to_timedelta(table["age"], "D")}
    )
    days = -table[["age"]]
    assert np.array_equal(
        second(fitted(p, y, born), p, born), second(fitted(p, y, days), p, days)
    )


@pytest.mark.parametrize("kind", ["bool", "boolean", "polars"])
def test_masks_of_any_library(kind):
    rng = np.random.default_rng(0)
    here, proba = np.arange(400) < 200, rng.uniform(0.2, 0.8, 400)
    y = (rng.random(400) < np.where(here, proba**3, proba)).astype(int)
    mask = pl.Series(here) if kind == "polars" else pd.Series(here, dtype=kind)
    fitted = MulticalibratedScores(n_trees=10).fit(proba, y, groups=[mask])
    expected = MulticalibratedScores(n_trees=10).fit(proba, y, groups=[here])
    assert fitted.cv_losses_.tolist() == expected.cv_losses_.tolist()


def test_the_unit_of_dates_does_not_matter():
    rng = np.random.default_rng(0)
    day, proba = np.arange(400), rng.uniform(0.2, 0.8, 400)
    y = (rng.random(400) < np.where(day < 200, proba**3, proba)).astype(int)
    days = day.astype("M8[D]")
    fitted = MulticalibratedScores(n_trees=10).fit(proba, y, groups={"day": days})
    expected = fitted.predict_proba(proba, groups={"day": days})
    assert abs(expected[:, 1] - proba).max() > 0.05
    zoned = pd.Series(days.astype("M8[ns]")).dt.tz_localize("UTC")
    for same in (days.astype("M8[ns]"), zoned, days.astype(object)):
        np.testing.assert_array_equal(
            fitted.predict_proba(proba, groups={"day": same}), expected
        )


def test_many_categories_share_bins():
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 600, 6000)
    effect = np.where(shop % 2, 1.5, -1.5)
    y = (rng.random(6000) < expit(effect)).astype(int)
    p = np.full(6000, 0.5)
    p[::2] = 0.49
    shops = {"shop": np.char.add("s", shop.astype(str))}
    model = fitted(p, y, shops)
    assert np.corrcoef(second(model, p, shops), effect)[0, 1] > 0.8


def test_labels_and_scores_of_any_kind(case):
    p, y, table, _, model = case
    words = np.array(["no", "yes"])[y]
    named = fitted(np.column_stack([1 - p, p]), words, table)
    assert named.classes_.tolist() == ["no", "yes"]
    assert set(named.predict(p, groups=table)) <= {"no", "yes"}
    assert np.array_equal(second(named, p, table), second(model, p, table))
    both = canonical_proba(logit(p), kind="logits")
    np.testing.assert_allclose(
        second(fitted(both, y, table), both, table), second(model, p, table)
    )


def test_several_classes_one_against_the_rest():
    proba, y = make_overconfident(3, 1200)
    table = {"half": np.arange(1200) % 2}
    expected = "two classes for a correction by groups, got 3"
    with pytest.warns(CalibrationWarning, match=expected) as said:
        model = MulticalibratedScores(**QUICK).fit(proba, y, groups=table)
    assert said[0].filename == __file__
    after = model.predict_proba(proba, groups=table)
    assert after.shape == (1200, 3) and np.abs(after.sum(axis=1) - 1).max() < 1e-12
    assert log_loss(y, after) < log_loss(y, proba)
    assert [part.n_rounds_ > 0 for part in model.one_vs_rest_] == [True] * 3
    assert not hasattr(model, "n_rounds_")


def test_it_is_an_estimator(case):
    p, y, table, _, model = case
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(second(again, p, table), second(model, p, table))
    assert len(pickle.dumps(model)) < 100_000  # no rows of the data
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict_proba(p, groups=table)
    before = (p.copy(), table.copy())
    copy.fit(p, y, groups=table)
    assert np.array_equal(p, before[0]) and table.equals(before[1])
    assert np.array_equal(second(copy, p, table), second(model, p, table))


# -- data at the limits ---------------------------------------------------------------------------


def rare(rng, n):
    q = expit(rng.normal(size=n) - 5)
    return q, rng.random(n) < q * np.where(np.arange(n) % 2, 1.8, 0.2)


LIMITS = {
    "rare": lambda rng: rare(rng, 4000),
    "tiny": lambda rng: (rng.random(12), np.arange(12) % 2),
    "two rows": lambda rng: (np.array([0.2, 0.7]), np.array([0, 1])),
    "certain": lambda rng: ((rng.random(500) < 0.5) * 1.0, rng.random(500) < 0.5),
    "certain of the wrong": lambda rng: (
        1.0 * (np.arange(300) % 3 > 0),
        np.arange(300) % 3 == 0,
    ),
    "separable": lambda rng: (np.linspace(0.3, 0.6, 300), np.arange(300) > 150),
    "constant": lambda rng: (np.full(400, 0.3), np.arange(400) % 3 > 0),
    "huge weights": lambda rng: (rng.random(200), rng.random(200) < 0.5),
}


@run_every_case("name", LIMITS)
def test_data_at_the_limits(name):
    p, y = LIMITS[name](np.random.default_rng(0))
    y = np.asarray(y).astype(int)
    table = {
        "a": np.arange(len(y)) % 2,
        "b": np.array(["x", "y", None])[np.arange(len(y)) % 3],
    }
    weight = np.where(table["a"], 1e9, 1e-9) if name == "huge weights" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = MulticalibratedScores(n_rounds=2, n_trees=50, cv=3)
        model.fit(p, y, groups=table, sample_weight=weight)
    after = model.predict_proba(p, groups=table)
    assert np.isfinite(after).all() and np.abs(after.sum(axis=1) - 1).max() < 1e-12
    assert model.cv_losses_[model.n_trees_ // 10] <= model.cv_losses_[0]
    extremes = model.predict_proba(
        [0.0, 1.0, 5e-324], groups={"a": [0, 1, 9], "b": ["x"] * 3}
    )
    assert np.isfinite(extremes).all()
    if name in ("rare", "certain of the wrong", "separable"):
        assert log_loss(y, after) < 0.99 * log_loss(y, p)


def test_exact_zeros_are_not_impossible():
    """A forest's 0 counts as half its smallest probability, or one such event would cost 36."""
    p, y, table, _ = draw(3000)
    p = p.round(1)
    model = fitted(p, y, table)
    assert model.floor_ == pytest.approx(0.01)
    assert second(model, p, table).min() > 1e-4
    assert log_loss(y, second(model, p, table)) < log_loss(y, np.clip(p, 0.01, 0.99))


# -- mistakes -------------------------------------------------------------------------------------


def test_mistakes_at_fit():
    p, y, table, _ = draw(60)
    fit = MulticalibratedScores().fit
    with raises_invalid_input(
        TypeError, expected="a table of groups", value="none", hint="Pass groups="
    ):
        fit(p, y)
    with raises_invalid_input(TypeError, value="the text 'region'"):
        fit(p, y, groups="region")
    with raises_invalid_input(
        ValueError,
        expected=".*each of the 60 rows",
        value=r"shape \(59,\) in column 'age'",
    ):
        fit(p, y, groups={"age": np.arange(59)})
    with raises_invalid_input(
        ValueError, expected=".*at least two classes", value="one class"
    ):
        fit(p, np.ones(60), groups=table)
    with raises_invalid_input(
        ValueError, expected=".*2 columns of scores", value="3 classes"
    ):
        fit(p, np.arange(60) % 3, groups=table)
    with raises_invalid_input(
        ValueError,
        expected=".*at most 1000 columns of groups",
        value="1001",
        hint=".*combine them",
    ):
        fit(p, y, groups=np.zeros((60, 1001)))
    with raises_invalid_input(
        ValueError, expected=".*different names of columns", value="'age' twice"
    ):
        fit(p, y, groups=table[["age", "age"]])
    with raises_invalid_input(ValueError, expected="at least one column of groups"):
        fit(p, y, groups={})
    with raises_invalid_input(
        TypeError, expected=".*single values as groups", value="list in column 'a'"
    ):
        fit(p, y, groups={"a": pd.Series([[1], [2, 3]] * 30)})
    with raises_invalid_input(
        ValueError, expected=r"columns with names other than '\(score\)'"
    ):
        fit(p, y, groups={"(score)": p})
    with pytest.raises(ValueError, match="l2"):
        MulticalibratedScores(l2=0).fit(p, y, groups=table)


def test_mistakes_at_prediction(case):
    p, _, table, _, model = case
    with pytest.raises(
        ValueError,
        match=r".*lacks 'age'; at fit it had the columns 'region', 'age', 'smokes'",
    ):
        model.predict_proba(p, groups=table[["region", "smokes"]])
    with raises_invalid_input(
        ValueError, expected=".*numbers, as at fit", value="'old' in column 'age'"
    ):
        model.predict_proba(p, groups=table.assign(age="old"))
    with raises_invalid_input(
        ValueError,
        expected=".*categories, as at fit",
        value="the number 1 in column 'region'",
    ):
        model.predict_proba(p, groups=table.assign(region=1))


def test_a_class_of_one_row():
    p, y, table, _ = draw(50)
    y[:] = 0
    y[3] = 1
    with pytest.warns(
        CalibrationWarning, match="at least two rows of each class, got 1"
    ) as said:
        model = MulticalibratedScores().fit(p, y, groups=table)
    assert said[0].filename == __file__
    assert model.n_rounds_ == 0 and np.array_equal(second(model, p, table), p)
    with pytest.warns(
        CalibrationWarning, match="at least two rows of each class, got 0"
    ):
        MulticalibratedScores().fit(p, 0 * y, groups=table, classes=[0, 1])


def test_a_failing_fit_leaves_nothing(case):
    p, y, table, *_ = case
    model = fitted(p, y, table)
    with raises_invalid_input(ValueError):
        model.fit(p[:10], y, groups=table)
    with pytest.raises(NotFittedError):
        model.predict_proba(p, groups=table)


def test_the_first_steps_are_what_was_fitted_first(case):
    p, y, _, _, _ = case
    rows = rows_of(p, y)
    long, short = BoostingRounds(rows, 64), BoostingRounds(rows, 64)
    for rounds, n_steps in ((long, 8), (short, 4)):
        track = _MarginUpdater(rows, rounds.coding)
        for _ in range(n_steps):
            rounds.grow_step(track, BoosterOptionsMixin(**SETTINGS), 20.0)
    assert [len(one.trees) for one in long.rounds] == [3, 3, 2]
    assert [len(one.trees) for one in long.keep_first_steps_in_place(4).rounds] == [
        3,
        1,
    ] and len(long.gains) == 4
    assert np.array_equal(long.predict(rows), short.predict(rows))
    assert np.array_equal(long.keep_first_steps_in_place(0).predict(rows), rows.margin)
