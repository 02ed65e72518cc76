"""From tables and masks to groups of rows."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import find_groups

N = 120


def names_and_sizes(groups, n=N, **options):
    found = find_groups(groups, n, **{"min_rows": 1, **options})
    return dict(zip(found.names, map(len, found.rows), strict=True))


def test_values_of_text_integers_and_booleans():
    i = np.arange(N)
    table = {"t": np.where(i % 3 == 0, "a", "b"), "k": i % 2 + 7, "b": i < 30}
    assert names_and_sizes(table) == {
        "all rows": N,
        "t = a": 40,
        "t = b": 80,
        "k = 7": 60,
        "k = 8": 60,
        "b = False": 90,
        "b = True": 30,
    }


def test_rare_values_of_text_are_one_group():
    values = [f"v{k:02d}" for k in range(25) for _ in range(25 - k)]
    found = names_and_sizes({"t": values}, len(values))
    assert len(found) == 22
    assert found["t = v19"] == 6
    assert "t = v20" not in found
    assert found["t other (5 values)"] == 5 + 4 + 3 + 2 + 1


def test_numbers_are_cut_at_quantiles_that_are_values():
    found = names_and_sizes(
        {"x": np.arange(N), "y": np.linspace(0, 1, N) ** 2}, n_bins=4
    )
    assert [
        found[name] for name in ("x <= 29", "29 < x <= 59", "59 < x <= 89", "x > 89")
    ] == [
        30,
        30,
        30,
        30,
    ]
    assert sum(size == 30 for name, size in found.items() if "y" in name) == 4


def test_heavy_ties_and_constants():
    ties = np.where(np.arange(N) < 100, 0.5, np.linspace(1, 2, N))
    assert names_and_sizes({"x": ties}) == {
        "all rows": N,
        "x <= 0.5": 100,
        "x > 0.5": 20,
    }
    # Behind the largest value is nothing, however many rows have it.
    heavy = np.repeat([0.5, 1.5, 2.5], [10, 10, 100])
    assert names_and_sizes({"x": heavy}, n_bins=12, min_rows=10) == {
        "all rows": N,
        "x <= 0.5": 10,
        "0.5 < x <= 1.5": 10,
        "x > 1.5": 100,
    }
    assert names_and_sizes({"x": np.full(N, 0.5), "t": ["same"] * N}) == {"all rows": N}
    whole = np.repeat([3.0, 1e15 - 1, 1e15], [60, 30, 30])  # as numbers below 1e15
    assert [*names_and_sizes({"x": whole})] == [
        "all rows",
        "x = 3",
        "x = 999999999999999",
        "x = 1e+15",
    ]
    mixed = np.repeat([0.5, 1.0, 2.0], 40)  # not all whole, so they are cut
    assert [*names_and_sizes({"x": mixed})] == [
        "all rows",
        "x <= 0.5",
        "0.5 < x <= 1",
        "x > 1",
    ]
    edges = 1 + 1e-9 * np.arange(N)
    assert len(names_and_sizes({"x": edges}, n_bins=5)) == 6  # names stay different


def test_missing_values_are_a_group():
    i = np.arange(N)
    table = pd.DataFrame(
        {
            "x": np.where(i < 20, np.nan, i + 0.5),
            "k": pd.array(np.where(i < 30, None, i % 2), dtype="Int64"),
            "t": np.where(i < 10, None, "a"),
            "c": pd.Categorical(
                np.where(i % 2, "u", "v"), categories=["u", "v", "never seen"]
            ),
            "d": pd.Series(
                pd.Timestamp("2026-01-01") + pd.to_timedelta(i, unit="D")
            ).where(i > 4),
        }
    )
    found = names_and_sizes(table)
    expected = {
        "x missing": 20,
        "k missing": 30,
        "k = 0": 45,
        "t missing": 10,
        "t = a": 110,
    }
    expected |= {"c = u": 60, "c = v": 60, "d missing": 5}
    assert expected.items() <= found.items()
    assert not any("never" in name or "nan" in name.lower() for name in found)
    assert sum(
        size
        for name, size in found.items()
        if "d" in name.split() and "ing" not in name
    )


def test_infinite_numbers_are_numbers():
    x = np.arange(N) + 0.5
    x[:30], x[90:] = -np.inf, np.inf
    found = names_and_sizes({"x": x}, n_bins=2)
    assert found == {"all rows": N, "x <= 59.5": 60, "x > 59.5": 60}


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "dict"])
def test_tables_of_every_library_give_the_same(kind):
    i = np.arange(N)
    table = {"t": np.where(i % 3 == 0, "a", "b").tolist(), "x": (i / 7).tolist()}
    expected = names_and_sizes(table)
    if kind == "pandas":
        table = pd.DataFrame(table)
    elif kind == "polars":
        table = pytest.importorskip("polars").DataFrame(table)
    elif kind == "pyarrow":
        table = pytest.importorskip("pyarrow").table(table)
    assert names_and_sizes(table) == expected


def test_arrays_series_and_lists():
    i = np.arange(N)
    assert set(names_and_sizes(i % 2)) == {"all rows", "group = 0", "group = 1"}
    assert set(names_and_sizes(pd.Series(i % 2, name="site"))) == {
        "all rows",
        "site = 0",
        "site = 1",
    }
    assert set(names_and_sizes(["a", "b"] * 60)) == {
        "all rows",
        "group = a",
        "group = b",
    }
    assert "column 1 = 2" in names_and_sizes(np.column_stack([i % 2, i % 3]))


def test_masks_overlap_and_keep_their_names():
    i = np.arange(N)
    found = find_groups([i < 70, pd.Series(i >= 50, name="late")], N, min_rows=1)
    assert found.names == ["all rows", "mask 0", "late"]
    assert found.rows[2].tolist() == list(range(50, N))
    pairs = find_groups([i < 70, i >= 50], N, depth=2, min_rows=1)
    assert pairs.names[-1] == "mask 0, mask 1"
    assert pairs.rows[-1].tolist() == list(range(50, 70))


def test_pairs_are_intersections_and_nothing_twice():
    i = np.arange(N)
    table = {"a": i % 2, "b": i % 3, "of_a": np.where(i % 2, "odd", "even")}
    found = find_groups(table, N, depth=2, min_rows=1)
    sets = dict(zip(found.names, map(frozenset, found.rows), strict=True))
    assert sets["a = 1, b = 2"] == frozenset(
        np.flatnonzero((i % 2 == 1) & (i % 3 == 2))
    )
    assert not any(name.startswith("a = ") and "of_a" in name for name in sets)
    assert len(sets) == 1 + 2 + 3 + 2 + 6 + 6


def test_small_groups_are_left_out_and_counted():
    values = np.repeat(["a", "b", "c"], [60, 40, 20])
    found = find_groups({"t": values}, N, min_rows=30)
    assert found.names == ["all rows", "t = a", "t = b"]
    assert found.n_left_out == 1
    with pytest.warns(CalibrationWarning, match="at least 100 rows, got 3 groups"):
        assert find_groups({"t": values}, N, min_rows=100).names == ["all rows"]


@pytest.mark.slow
def test_many_groups_are_tested_with_advice():
    i = np.arange(200)
    with pytest.warns(CalibrationWarning, match="at most 5000 groups, got 5201"):
        found = find_groups([(i + k) % 211 < 100 for k in range(5200)], 200, min_rows=1)
    assert len(found.names) == 5201


@run_every_case(
    ("groups", "message"),
    [
        ({}, "at least one column"),
        ([], "at least one column|as a table|one value"),
        (pd.DataFrame(index=range(N)), "at least one column"),
        (
            [np.ones(N - 1, dtype=bool)],
            r"masks with one entry for each of the 120 rows, got 119",
        ),
        ([np.arange(N)], "boolean masks in a list"),
        (
            {"site": np.zeros(7)},
            r"one value for each of the 120 rows, got shape \(7,\) in column",
        ),
        (np.zeros((2, 3, 4)), "as a table"),
        (np.zeros(N - 1), "one value for each"),
    ],
)
def test_bad_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        find_groups(groups, N)


@pytest.mark.parametrize(
    "option", [{"depth": 3}, {"n_bins": 1}, {"min_rows": 0}, {"depth": True}]
)
def test_bad_options(option):
    with raises_invalid_input(ValueError, expected=f".*{next(iter(option))} "):
        find_groups({"a": np.arange(N)}, N, **option)


def test_values_of_several_kinds_and_dates():
    days = [datetime.date(2026, 1, 1 + k % 3) for k in range(N)]
    for same in (days, np.array(days, "M8[ns]")):
        assert "day = 2026-01-02" in names_and_sizes({"day": same})
    mixed = [1, "one", None, 2.5] * 30
    assert set(names_and_sizes({"m": mixed})) == {
        "all rows",
        "m = 1",
        "m = 2.5",
        "m = one",
        "m missing",
    }
    assert "m = ' '" in names_and_sizes({"m": [" ", "x"] * 60})


def test_only_the_kept_rows_count():
    found = find_groups({"a": np.arange(N) % 2}, N, min_rows=1, kept=np.arange(0, N, 2))
    assert found.names == ["all rows"]  # all that are kept are even


def test_nan_beside_text_in_a_list_is_missing():
    values = ["x", np.nan] * 60
    assert set(names_and_sizes({"a": values})) == {"all rows", "a = x", "a missing"}
    assert set(names_and_sizes(values)) == {"all rows", "group = x", "group missing"}


DAYS = np.datetime64("2020-01-01") + np.arange(90)


@pytest.mark.parametrize(
    "days",
    [
        pd.Series(DAYS).dt.tz_localize("UTC"),
        [*DAYS.astype(object)[:-1], None],
        DAYS.astype("M8[ns]"),
        pl.Series(DAYS.astype("M8[us]")).dt.replace_time_zone("Asia/Tokyo"),
    ],
    ids=["zone", "dates of python", "nanoseconds", "polars"],
)
def test_dates_of_any_kind_are_ordered(days):
    found = find_groups({"day": days}, 90, n_bins=2, min_rows=5)
    assert len(found.names) == 3
    assert found.rows[1].tolist() == [*range(len(found.rows[1]))]
    assert found.names[1].startswith("day <= 2020-02-")
    assert len(found.names[1]) <= len("day <= 2020-02-13T15:00")


def test_durations_are_told_in_days():
    found = find_groups(
        {"age": np.arange(40).astype("m8[D]")}, 40, n_bins=2, min_rows=1
    )
    assert found.names[1] == "age <= 19 days, 0:00:00"


def test_records_and_lists():
    records = np.array([(1, "x"), (2, "y")], dtype=[("a", int), ("b", "U1")])
    with raises_invalid_input(
        ValueError, expected=".*one value for each row", value="records in column group"
    ):
        find_groups(records, 2)
    lists = pl.DataFrame({"tags": [[1, 2], [3]]})
    assert find_groups(lists, 2, min_rows=1).names[1:] == ["tags = [1 2]", "tags = [3]"]
