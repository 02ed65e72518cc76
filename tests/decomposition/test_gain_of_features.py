"""What a better use of the features gains: values, words, and what is rejected."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from error_fields import parse_error_fields, raises_invalid_input
from scipy.special import expit

from sklearn_calib._validation import canonical_proba
from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.decomposition._grouping import (
    _estimate_fold_mean_and_variance,
    compute_detectable_feature_gain,
)
from sklearn_calib.metrics import BetaFamilyLoss, get_loss
from sklearn_calib.recalibrators import MulticalibratedScores, get_recalibrator


def regions(n=300, effect=1.5, seed=0):
    """Scores that do not know of two regions."""
    rng = np.random.default_rng(seed)
    z, region = rng.normal(size=n), rng.choice(["north", "south"], n)
    y = (
        rng.random(n) < expit(z + np.where(region == "north", effect, -effect))
    ).astype(int)
    return y, expit(z), {"z": z, "region": region}


@pytest.fixture(scope="module")
def found():
    y, p, table = regions()
    return decompose_loss(y, p, features=table, recalibrator="temperature", cv=2)


@pytest.mark.slow
def test_the_parts_add_up(found):
    assert found.risk == pytest.approx(found.calibration + found.refinement)
    assert found.refinement == pytest.approx(found.grouping + found.irreducible)
    assert found.grouping == found.gain_of_features > 0.05
    assert found.n_rows == 300


def test_by_hand(found):
    """Each fold by its own loop."""
    from sklearn.model_selection import KFold

    y, p, table = regions()
    p, losses = canonical_proba(p), {"mapped": np.empty(300), "used": np.empty(300)}
    for train, test in KFold(2, shuffle=True, random_state=0).split(y):
        fitted = get_recalibrator("temperature").fit(p[train], y[train])
        mapped = fitted.predict_proba(p)
        parts = [{name: c[rows] for name, c in table.items()} for rows in (train, test)]
        trees = MulticalibratedScores().fit(mapped[train], y[train], groups=parts[0])
        used = trees.predict_proba(mapped[test], groups=parts[1])
        for name, q in (("mapped", mapped[test]), ("used", used)):
            losses[name][test] = -np.log(q[np.arange(len(test)), y[test]])
    assert found.gain_of_features == pytest.approx(
        np.mean(losses["mapped"] - losses["used"])
    )
    assert found.refinement == pytest.approx(losses["mapped"].mean())
    error = np.std(losses["mapped"] - losses["used"], ddof=1) / np.sqrt(300)
    assert error <= found.standard_errors["grouping"] <= 1.4143 * error


def test_without_intervals_nothing_is_advised(found):
    plain = found.without_intervals()
    assert plain.action is None and plain.advice() is None
    content = plain.to_dict()
    assert content["action"] is content["advice"] is None
    assert content["grouping"] == {
        "value": found.grouping,
        "standard_error": None,
        "low": None,
        "high": None,
    }


def test_words(found):
    assert found.action == "retrain"
    assert next(iter(found.feature_gains)) == "region"
    assert sum(found.feature_gains.values()) == pytest.approx(1)
    text = found.advice(0.8)
    low, high = found.interval("grouping", 0.8)
    assert text.startswith("Retrain: a model that used region")
    assert "would lower the log loss by at least" in text
    assert f"(80 % interval {low:.3f} to {high:.3f})" in text
    # A tenth of the gain is the least that is named.
    others = replace(found, feature_gains={"a": 0.8, "b": 0.1, "c": 0.0999})
    assert others.advice().startswith("Retrain: a model that used a and b better")


def test_nothing_to_be_gained():
    y, p, table = regions(200, effect=0.0, seed=1)
    parts = decompose_loss(y, p, features=table, recalibrator="identity", cv=2)
    assert parts.calibration == 0
    assert parts.grouping == max(parts.gain_of_features, 0)
    assert parts.action == "neither"
    assert parts.minimum_detectable > 0
    size = f"a gain of {parts.minimum_detectable:.2f} by a single feature"
    promise = "would have been found with probability 80 % or more"
    assert f"with 200 rows, {size} {promise}" in parts.advice()


@pytest.mark.slow
def test_what_a_map_repairs_is_not_put_down_to_the_features():
    rng = np.random.default_rng(0)
    z = rng.normal(size=600)
    y = (rng.random(600) < expit(z)).astype(int)
    table = rng.normal(size=(600, 2))
    parts = decompose_loss(
        y, expit(4 * z - 1), features=table, recalibrator="platt", cv=2
    )
    assert parts.action == "recalibrate"
    assert parts.advice().startswith("Recalibrate: this lowers the log loss by")


@pytest.mark.slow
def test_weight_zero_is_left_out_and_options_count():
    y, p, table = regions(150)
    weight = np.r_[np.zeros(50), np.ones(100)]
    some = {name: c[50:] for name, c in table.items()}
    given = {"recalibrator": "identity", "cv": 2}
    a = decompose_loss(y, p, features=table, sample_weight=weight, **given)
    b = decompose_loss(y[50:], p[50:], features=some, **given)
    assert a.grouping == b.grouping
    assert a.n_rows == 100
    brier = decompose_loss(y[50:], p[50:], features=some, loss="brier", **given)
    other = decompose_loss(
        y[50:], p[50:], features=some, loss=BetaFamilyLoss(2, 8), **given
    )
    assert len({b.risk, brier.risk, other.risk}) == 3
    assert "Brier" in brier.advice()
    thirds = decompose_loss(y[50:], p[50:], features=some, recalibrator="platt", cv=3)
    assert thirds.refinement != b.refinement


@pytest.mark.slow
def test_frames_arrays_and_several_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 120)
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=row) for row in p]]
    frame = pd.DataFrame(
        {"x": rng.normal(size=120), "t": pd.Categorical(rng.choice(list("uv"), 120))}
    )
    frame.loc[:30, "x"] = np.nan
    given = {"recalibrator": "temperature", "cv": 2}
    parts = decompose_loss(y, p, features=frame, **given)
    assert set(parts.feature_gains) == {"x", "t"}
    array = decompose_loss(y, p, features=frame[["x"]].to_numpy(), **given)
    assert list(array.feature_gains) == ["column 0"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        np.ones(100),
        np.full(100, np.nan),
        np.array([None] * 100),
        [f"text {i}" for i in range(100)],
    ],
    ids=["constant", "missing", "nothing", "all different"],
)
def test_columns_that_say_nothing(column):
    y, p, _ = regions(100, effect=0.0)
    parts = decompose_loss(y, p, features={"c": column}, recalibrator="identity", cv=2)
    assert np.isfinite(parts.gain_of_features)


@pytest.mark.parametrize(
    ("rows", "features", "message"),
    [
        (
            100,
            np.zeros((99, 1)),
            "one entry of features for each of the 100 rows, got shape",
        ),
        (
            100,
            np.zeros((100, 10_000)),
            "at most 1000 features, got 10000. Choose those",
        ),
        (100, {}, "at least one column of features, got none"),
        (
            49,
            np.zeros((49, 1)),
            "at least 50 rows of .* for features, got 49 rows",
        ),
        (100, {"(score)": np.zeros(100)}, "features with names other than"),
    ],
)
def test_refused(rows, features, message):
    y, p, _ = regions(rows)
    with raises_invalid_input(ValueError, **parse_error_fields(message)):
        decompose_loss(y, p, features=features)


def test_refused_folds_and_one_class():
    y, p, table = regions(60)
    with raises_invalid_input(ValueError, expected="folds that test each row once"):
        decompose_loss(y, p, features=table, cv=[(np.arange(30), np.arange(30, 60))])
    with raises_invalid_input(ValueError, expected=".*5 of each of two classes"):
        decompose_loss(np.r_[np.zeros(57, int), 1, 1, 1], p, features=table)


def test_without_features_nothing_is_said():
    y, p, _ = regions(100)
    parts = decompose_loss(y, p)
    assert (
        parts.action
        is parts.advice()
        is parts.grouping
        is parts.interval("grouping")
        is None
    )
    assert "action" not in parts.to_dict()


def test_exported(found):
    content = found.to_dict(0.9)
    assert content["grouping"]["value"] == found.grouping
    assert content["grouping"]["low"] == found.interval("grouping", 0.9)[0]
    assert content["advice"] == found.advice()
    assert content["action"] == "retrain"


def test_more_rows_show_less():
    """The size that would be seen falls about like 1 / n."""
    proba = canonical_proba(np.linspace(0.1, 0.9, 400))
    w = np.full(400, 1 / 400)
    # 9 times the rows
    sizes = [
        compute_detectable_feature_gain(get_loss("log"), proba, k * w)
        for k in (1, 1 / 3)
    ]
    assert 8 < sizes[0] / sizes[1] < 9.5


def test_the_gain_that_would_have_been_seen():
    """For a small one: n gain - 30 = (1.645 + 0.842) sqrt(2 n gain), so n gain = 56.6."""
    # 10^6 rows
    proba, w = (
        canonical_proba(np.linspace(0.1, 0.9, 400)),
        np.full(400, 1 / 20_000),
    )
    assert compute_detectable_feature_gain(
        get_loss("log"), proba, w
    ) * 1e6 == pytest.approx(56.6, rel=0.02)
    sure = canonical_proba(np.repeat([0.0, 1.0], 200))
    assert (
        compute_detectable_feature_gain(get_loss("log"), sure, np.full(400, 1 / 400))
        is None
    )


def test_what_differs_between_maps_counts_near_zero_only():
    """By hand: rows of two folds, judged by their own map and by the other."""
    rng = np.random.default_rng(0)
    fold, w = np.arange(100) % 2, np.full(100, 0.01)
    for shift, factor in ((0.01, 1.0), (1.0, 1.645**2)):
        losses = np.stack([rng.normal(size=100), np.zeros(100)]) * 0.5 + rng.normal(
            size=100
        )
        losses += shift - losses[fold, np.arange(100)].mean()
        plain = losses[fold, np.arange(100)].var(ddof=1) / 100
        twice = min(2 * np.sum((losses[0] - losses[1]) ** 2) / 100**2, plain)
        expected = plain + twice * min(1, factor * plain / shift**2)
        assert _estimate_fold_mean_and_variance(
            losses, fold, w, fading=True
        ).variance == pytest.approx(expected, rel=1e-3)
        assert _estimate_fold_mean_and_variance(
            losses, fold, w
        ).variance == pytest.approx(plain + twice)
