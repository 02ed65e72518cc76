import pickle

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import GroupRecalibration, MulticalibratedScores
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import IsotonicCalibration, PlattScaling


def draw(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    site, score = (
        rng.choice(["big", "mid", "new"], n, p=[0.7, 0.28, 0.02]),
        1.5 * rng.normal(size=n),
    )
    a = pd.Series(site).map({"big": 0.0, "mid": 1.0, "new": -1.0}).to_numpy()
    b = pd.Series(site).map({"big": 1.0, "mid": 0.5, "new": 1.0}).to_numpy()
    return expit(score), (rng.random(n) < expit(a + b * score)).astype(int), site


@pytest.fixture(scope="module")
def case():
    p, y, site = draw()
    return p, y, site, GroupRecalibration().fit(p, y, groups=site)


@pytest.mark.parametrize("strength", [1e-3, 20.0, 1e6])
def test_each_line_minimises_its_objective(strength):
    p, y, site = draw(800)
    model = GroupRecalibration(strength=strength).fit(p, y, groups=site)
    platt, z = PlattScaling().fit(p, y), logit(p)
    assert model.pooled_line_ == (platt.intercept_, platt.slope_)
    for place, (name,) in enumerate(model.groups_):
        rows = site == name

        def objective(line, rows=rows):
            t = line[0] + line[1] * z[rows]
            pull = (line[0] - platt.intercept_) ** 2 + (
                line[1] - platt.slope_
            ) ** 2 * z.var()
            return (np.logaddexp(0, t) - y[rows] * t).sum() + strength / 2 * pull

        found = objective(np.array([model.intercepts_[place], model.slopes_[place]]))
        best = minimize(objective, model.pooled_line_, method="Nelder-Mead", tol=1e-10)
        assert found <= best.fun + 1e-6
    if strength == 1e6:
        np.testing.assert_allclose(model.slopes_, platt.slope_, atol=1e-3)


def test_it_learns_the_groups(case):
    _, _, _, model = case
    p, y, site = draw(4000, seed=1)
    after = model.predict_proba(p, groups=site)
    assert (
        log_loss(y, after)
        < log_loss(y, PlattScaling().fit(*draw()[:2]).predict_proba(p)) - 0.01
    )
    assert model.groups_ == [("big",), ("mid",), ("new",)]
    assert (
        model.intercepts_[1] > 0.7 > 0.3 > model.intercepts_[0] > model.intercepts_[2]
    )
    assert model.slopes_[1] < 0.7 < model.slopes_[0]
    assert np.array_equal(model.predict(p, groups=site), after.argmax(axis=1))


def test_rows_of_new_groups_get_the_line_of_all(case):
    p, y, _, model = case
    platt = PlattScaling().fit(p, y).predict_proba(p)
    np.testing.assert_allclose(
        model.predict_proba(p, groups=["none"] * len(p)), platt, rtol=1e-9
    )


def test_the_table(case):
    p, y, site, model = case
    frame = model.to_frame()
    columns = ["group", "rows", "events", "expected", "intercept", "slope"]
    assert frame.columns.tolist() == columns
    assert frame["group"].tolist() == ["big", "mid", "new", "all"]
    mid = site == "mid"
    assert frame.loc[1, "rows"] == mid.sum() and frame.loc[1, "events"] == y[mid].sum()
    assert frame.loc[1, "expected"] == pytest.approx(p[mid].sum())
    assert frame.loc[3, "rows"] == 3000
    assert frame["intercept"].tolist() == [*model.intercepts_, model.pooled_line_[0]]
    assert frame["slope"].tolist() == [*model.slopes_, model.pooled_line_[1]]


def test_several_columns_and_missing_values():
    p, y, site = draw(600)
    table = pd.DataFrame(
        {"site": site, "level": np.arange(600) % 2, "half": np.arange(600) % 3 / 2}
    )
    table.loc[:49, "site"] = None
    table.loc[50:99, "half"] = np.nan
    model = GroupRecalibration().fit(p, y, groups=table)
    assert model.groups_[0] == ("big", 0, 0) and model.groups_[-1][0] is None
    assert ("big", 1, 0.5) in model.groups_
    assert any(key[2] is None for key in model.groups_)
    after = model.predict_proba(p, groups=table)
    other = model.predict_proba(
        p, groups={name: table[name].tolist() for name in table}
    )
    assert np.array_equal(after, other)
    table["site"] = table["site"].astype(object).where(table["site"].notna(), pd.NA)
    again = GroupRecalibration().fit(p, y, groups=table)
    assert np.array_equal(after, again.predict_proba(p, groups=table))


def test_any_recalibrator(case):
    p, y, site, _ = case
    model = GroupRecalibration("isotonic").fit(p, y, groups=site)
    assert isinstance(model.pooled_, IsotonicCalibration) and model.pooled_line_ == (
        0.0,
        1.0,
    )
    assert log_loss(y, model.predict_proba(p, groups=site)) < log_loss(
        y, model.pooled_.predict_proba(p)
    )
    with raises_invalid_input(ValueError, expected="one of"):
        GroupRecalibration("plat").fit(p, y, groups=site)


def test_weights_are_repetitions():
    p, y, site = draw(500)
    weight = np.random.default_rng(0).integers(0, 4, 500)
    rows = np.repeat(np.arange(500), weight)
    weighted = GroupRecalibration().fit(p, y, groups=site, sample_weight=weight)
    repeated = GroupRecalibration().fit(p[rows], y[rows], groups=site[rows])
    np.testing.assert_allclose(weighted.intercepts_, repeated.intercepts_, atol=1e-7)
    np.testing.assert_allclose(weighted.slopes_, repeated.slopes_, atol=1e-7)


def test_groups_of_one_class_one_row_and_certain_scores():
    p = np.concatenate([np.linspace(0.05, 0.95, 60), [0.0, 1.0, 1.0]])
    y = np.concatenate([np.arange(60) % 2, [1, 0, 1]])
    site = np.array(
        ["all ones"] * 30 + ["mixed"] * 30 + ["single", "certain", "certain"]
    )
    y[:30] = 1
    model = GroupRecalibration().fit(p, y, groups=site)
    after = model.predict_proba(p, groups=site)
    assert np.isfinite(after).all() and after.min() > 1e-4
    assert after[:30, 1].mean() > model.pooled_.predict_proba(p[:30])[:, 1].mean()
    with pytest.warns(CalibrationWarning, match="at least two different rows"):
        constant = GroupRecalibration("identity").fit(np.full(63, 0.3), y, groups=site)
    assert np.isfinite(constant.predict_proba([0.3, 0.9], groups=["mixed", "?"])).all()


def test_several_classes():
    proba, y = make_overconfident(3, 600)
    site = np.arange(600) % 2
    with pytest.warns(
        CalibrationWarning, match="two classes for a correction by groups, got 3"
    ):
        model = GroupRecalibration().fit(proba, y, groups=site)
    after = model.predict_proba(proba, groups=site)
    assert log_loss(y, after) < log_loss(y, proba)
    assert [len(part.to_frame()) for part in model.one_vs_rest_] == [3, 3, 3]
    with raises_invalid_input(ValueError, expected="two classes"):
        model.to_frame()


def test_it_is_an_estimator(case):
    p, _, site, model = case
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(
        again.predict_proba(p, groups=site), model.predict_proba(p, groups=site)
    )
    assert len(pickle.dumps(model)) < 10_000
    assert clone(model).get_params() == model.get_params()
    assert "GroupRecalibration" in repr(model)


def test_mistakes(case):
    p, y, site, model = case
    with pytest.raises(ValueError, match=r".*lacks 'group'"):
        model.predict_proba(p, groups={"site": site})
    with raises_invalid_input(TypeError, expected="a table of groups", value="none"):
        model.predict_proba(p)
    with pytest.raises(ValueError, match="strength"):
        GroupRecalibration(strength=0).fit(p, y, groups=site)
    with pytest.warns(
        CalibrationWarning, match="at most 1000 groups.*got 3000.*into intervals"
    ) as said:
        GroupRecalibration().fit(p, y, groups=np.arange(3000))
    assert said[0].filename == __file__
    GroupRecalibration().fit(p, y, groups=np.arange(3000) % 1000)  # without a warning
    with pytest.warns(CalibrationWarning, match="at most 1000 groups.*got 1001"):
        GroupRecalibration().fit(p, y, groups=np.arange(3000) % 1001)


def test_the_table_of_groups_counts_weights(case):
    p, y, site, _ = case
    weight = 1 + np.arange(len(y)) % 3
    again = np.repeat(np.arange(len(y)), weight)
    weighted = (
        GroupRecalibration().fit(p, y, groups=site, sample_weight=weight).to_frame()
    )
    repeated = (
        GroupRecalibration().fit(p[again], y[again], groups=site[again]).to_frame()
    )
    numbers = weighted.select_dtypes("number")
    np.testing.assert_allclose(numbers, repeated.select_dtypes("number"), rtol=1e-6)
    assert not np.allclose(
        numbers, GroupRecalibration().fit(p, y, groups=site).to_frame()[numbers.columns]
    )


NUMBERS, TEXTS = "numbers, as at fit", "categories, as at fit"


@pytest.mark.parametrize(
    ("fitted", "given", "rule"),
    [
        (int, str, NUMBERS),
        (float, str, NUMBERS),
        (bool, str, NUMBERS),
        (int, "category of text", NUMBERS),
        (str, int, TEXTS),
        (str, float, TEXTS),
        (str, bool, TEXTS),
        (str, "category of numbers", TEXTS),
        ("category of numbers", str, TEXTS),
        ("category of text", int, TEXTS),
        (int, float, None),
        (float, int, None),
        (bool, int, None),
        (int, "category of numbers", None),
        ("category of numbers", float, None),
        (str, "category of text", None),
    ],
)
@pytest.mark.parametrize("cls", [GroupRecalibration, MulticalibratedScores])
def test_groups_of_another_type_than_at_fit(cls, fitted, given, rule):
    """0 and "0" are not one group; 0 and 0.0 are."""
    p, y, site = draw(300)
    codes = (site == "big").astype(int)

    def of_type(kind):
        if not isinstance(kind, str):
            return codes.astype(kind)
        return pd.Series(codes.astype(str if "text" in kind else int)).astype(
            "category"
        )

    more = (
        {"cv": 2, "n_rounds": 1, "n_trees": 2} if cls is MulticalibratedScores else {}
    )
    model = cls(**more).fit(p, y, groups=of_type(fitted))
    if rule is not None:
        with raises_invalid_input(
            ValueError, expected=f".*{rule}", value=".*in column 'group'"
        ):
            model.predict_proba(p, groups=of_type(given))
        return
    try:
        found = model.predict_proba(p, groups=of_type(given))
    except ValueError as error:  # numbers have an order for trees, categories have none
        assert cls is MulticalibratedScores and "numbers, as at fit" in str(error)
        return
    np.testing.assert_array_equal(found, model.predict_proba(p, groups=of_type(fitted)))


def test_new_groups_of_the_same_type_get_the_line_of_all_rows(case):
    p, _, _, model = case
    found = model.predict_proba(p[:5], groups=np.full(5, "elsewhere"))
    a, b = model.pooled_line_
    np.testing.assert_allclose(found[:, 1], expit(a + b * logit(p[:5])), rtol=1e-12)
    missing = model.predict_proba(p[:5], groups=np.full(5, None))
    np.testing.assert_array_equal(missing, found)
