"""The audit of groups from summaries of combinations of values: that of their rows."""

import numpy as np
import pandas as pd
import pytest
from error_fields import parse_error_fields, raises_invalid_input

from sklearn_calib.groups import _cells, group_calibration
from sklearn_calib.summary import CalibrationSummary, summarize

COLUMNS = {"label": "y", "prob": "p"}
BY = ["site", "age"]


def table(n=1500, seed=0, digits=2):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(1.0, 2.0, n), digits)
    site = rng.choice(["north", "south", None], n, p=[0.5, 0.4, 0.1])
    y = (rng.random(n) < np.where(site == "south", p**1.3, p)).astype(int)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 60, n))
    return pd.DataFrame({"p": p, "y": y, "site": site, "age": age})


def numbers_of(found):
    assert [row.event for row in found.rows] == [found.rows[0].event] * len(found.rows)
    return np.array([row[2:] for row in found.rows])


def of_both(frame, options, given=()):
    """The audit of the rows, and that of summaries."""
    rows = group_calibration(
        frame["y"], frame["p"], frame[BY], **options, **dict(given)
    )
    groups = summarize(frame, by=BY, weight="w" if given else None, **COLUMNS)
    return rows, group_calibration(groups, groups=BY, **options)


@pytest.mark.parametrize("digits", [2, 9])
def test_summaries_have_the_audit_of_their_rows(digits):
    rows, found = of_both(table(digits=digits), {"depth": 2, "n_resamples": 99})
    assert [r.group for r in found.rows] == [r.group for r in rows.rows]
    assert "site missing" in [r.group for r in found.rows]
    np.testing.assert_allclose(numbers_of(found), numbers_of(rows), rtol=1e-9)
    np.testing.assert_allclose(
        found.null_distribution, rows.null_distribution, rtol=1e-12
    )
    assert found.n_samples == rows.n_samples == 1500
    assert found.n_left_out == rows.n_left_out > 0
    assert found.members == []


@pytest.mark.parametrize("option", [{"random_state": 5}, {"n_bins": 2}, {"level": 0.8}])
def test_options_are_heeded(option):
    frame = table(600)
    as_usual = of_both(frame, {"n_resamples": 39})[1]
    rows, found = of_both(frame, {"n_resamples": 39, **option})
    np.testing.assert_allclose(numbers_of(found), numbers_of(rows), rtol=1e-9)
    assert repr(found.rows) != repr(as_usual.rows)


@pytest.mark.slow
def test_rows_of_one_score_and_different_weights():
    """All that is not a draw is the same; the draws have the mean and the variance of the rows'."""
    frame = table(1200, digits=1)
    frame["w"] = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(frame))
    rows, found = of_both(frame, {"n_resamples": 999}, {"sample_weight": frame["w"]})
    same = [
        "weight",
        "events",
        "expected",
        "in_the_large",
        "in_the_large_error",
        "slope",
        "sigma",
    ]
    one, other = rows.to_frame(), found.to_frame()
    np.testing.assert_allclose(
        one[["n_rows", *same]], other[["n_rows", *same]], rtol=1e-8
    )
    assert found.critical_sigma == pytest.approx(rows.critical_sigma, rel=0.1)
    equal = frame.assign(w=3.0)
    rows, found = of_both(equal, {"n_resamples": 39}, {"sample_weight": equal["w"]})
    np.testing.assert_allclose(numbers_of(found), numbers_of(rows), rtol=1e-9)


def test_the_confidence_of_several_classes():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([1, 2, 3], 600)
    y, site = (
        (rng.random(600)[:, None] > proba.cumsum(1)).sum(1),
        rng.choice([*"ab"], 600),
    )
    names = {"label": "y", "prob": ["a", "b", "c"], "classes": [0, 1, 2]}
    frame = pd.DataFrame(proba, columns=[*"abc"]).assign(y=y, site=site)
    groups = summarize(frame, by="site", **names)
    rows = group_calibration(y, proba, {"site": site}, n_resamples=39)
    found = group_calibration(groups, groups="site", n_resamples=39)
    assert found.rows[0].event == "confidence"
    np.testing.assert_allclose(numbers_of(found), numbers_of(rows), rtol=1e-9)
    with raises_invalid_input(
        ValueError, hint=".*drawn together need the rows: pass y_proba"
    ):
        group_calibration(groups, groups="site", multiclass="classwise")


@pytest.mark.slow
def test_many_scores_are_pooled_alike(monkeypatch):
    frame = table(3000, digits=12)
    exact, _ = of_both(frame, {"n_resamples": 99})
    monkeypatch.setattr(_cells, "MAX_FINE_CELLS", 600)
    monkeypatch.setattr(_cells, "MAX_POOLED_CELLS", 500)
    rows, found = of_both(frame, {"n_resamples": 99})
    np.testing.assert_allclose(numbers_of(found), numbers_of(rows), rtol=1e-7)
    difference = np.abs(numbers_of(exact) - numbers_of(rows))[
        :, [1, 2, 3, 4, 7, 11]
    ].max()
    assert difference < 0.02
    assert not np.array_equal(exact.null_distribution, rows.null_distribution)


def test_the_positive_class_can_be_the_first():
    frame = table(500).assign(site="all")
    frame["q"] = 1 - frame["p"]
    names = {"label": "y", "prob": ["q", "p"], "pos_label": 0, "classes": [0, 1]}
    groups = summarize(frame, by=["site", "age"], **names)
    found = group_calibration(groups, groups=BY, n_resamples=19)
    both = frame[["q", "p"]]
    rows = group_calibration(frame["y"], both, frame[BY], pos_label=0, n_resamples=19)
    assert found.rows[0].event == rows.rows[0].event == "class 0"
    np.testing.assert_allclose(numbers_of(found), numbers_of(rows), rtol=1e-9)


def of_shops(**changes):
    frame = table(200)
    made = {"north": frame[:100], "south": frame[100:]}
    given = {
        k: CalibrationSummary().update(rows["y"], rows["p"]) for k, rows in made.items()
    }
    return given | changes


def test_names_of_the_columns():
    found = group_calibration(of_shops(), n_resamples=9)
    assert [row.group for row in found.rows] == [
        "all rows",
        "group = north",
        "group = south",
    ]
    named = group_calibration(
        of_shops(west=CalibrationSummary()), groups="shop", n_resamples=9
    )
    assert named.rows[1].group == "shop = north"
    assert len(named.rows) == 3


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({}, {}, "summaries of at least one row, got none"),
        (
            of_shops(west=CalibrationSummary(pos_label=0).update([0, 1], [0.2, 0.3])),
            {},
            ".* same cla",
        ),
        (of_shops(), {"groups": ["a", "b"]}, "1 names of columns as groups"),
        (of_shops(), {"groups": 7}, "1 names of columns as groups"),
        (of_shops(), {"sample_weight": [1]}, "summaries alone, got other arguments"),
        (
            of_shops(),
            {"multiclass": "classwise"},
            "the positive class, or the confidence, of summ",
        ),
        (of_shops(), {"n_resamples": 0}, "a whole number n_resamples >= 1"),
    ],
)
def test_bad_input(given, options, message):
    with raises_invalid_input(ValueError, **parse_error_fields(message)):
        group_calibration(given, **options)
