"""summarize: the same summary from every kind of file and table; errors name the place."""

import pickle
import re
from decimal import Decimal

import dask.dataframe as dd
import duckdb
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.fs
import pytest
from error_fields import raises_invalid_input
from pyarrow import dataset, parquet

from sklearn_calib._files.columns import TableBlock
from sklearn_calib._files.csv_text import get_exact_number_options
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import brier_loss
from sklearn_calib.summary import (
    CalibrationSummary,
    _sources,
    find_distinct_labels,
    summarize,
)
from sklearn_calib.summary._parts import PIECE_ROWS, FilePart
from sklearn_calib.summary._sources import iter_groups

COLUMNS = {"label": "y", "prob": "p", "max_cells": 4096}


def table(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return pd.DataFrame(
        {
            "p": p,
            "y": (rng.random(n) < p**1.5).astype(np.int8),
            "w": rng.integers(0, 4, n) / 2,
            "n": rng.integers(0, 5, n),
            "shop": rng.choice(["north", "south", "west"], n),
            "size": rng.integers(1, 3, n),
        }
    )


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def expected(frame):
    return CalibrationSummary(4096).update(frame["y"], frame["p"])


@pytest.fixture
def folder(frame, tmp_path, monkeypatch):
    """Three parquet files of several row groups in folders of their day, and strays."""
    monkeypatch.chdir(tmp_path)
    for day in range(3):
        place = tmp_path / f"day=2026-01-0{day + 1}"
        place.mkdir()
        frame.iloc[day::3].to_parquet(place / "a.parquet", row_group_size=700)
    (tmp_path / "day=2026-01-01" / "_SUCCESS").write_text("", encoding="utf-8")
    (tmp_path / "day=2026-01-01" / "._a.parquet").write_text(
        "not a table", encoding="utf-8"
    )
    (tmp_path / "notes.md").write_text("not a table", encoding="utf-8")
    return tmp_path


def test_files(folder, frame, expected):
    files = [f"day=2026-01-0{day}/a.parquet" for day in (3, 1, 2)]
    here = dataset.dataset([*map(str, folder.glob("*/a.parquet"))])
    for data in (
        "day=*/*.parquet",
        "day=*/*",
        "**/a.parquet",
        ".",
        folder,
        files,
        [files[0], folder / "day=2026-01-01", "day=2026-01-02/*"],
        [*files, "day=*/a.parquet"],
        folder.as_uri(),
        [f"{folder.as_uri()}/{file}" for file in files],
        here,
    ):
        assert summarize(data, **COLUMNS) == expected, data


def test_a_dataset_keeps_its_filter_and_its_file_system(folder, frame):
    low = frame["p"] < 0.3
    wanted = CalibrationSummary().update(frame["y"][low], frame["p"][low])
    here = pa.fs.SubTreeFileSystem(str(folder), pa.fs.LocalFileSystem())
    files = [f"day=2026-01-0{day}/a.parquet" for day in (1, 2, 3)]
    rows = dataset.dataset(files, filesystem=here).filter(dataset.field("p") < 0.3)
    assert summarize(rows, label="y", prob="p") == wanted


@pytest.mark.slow
def test_csv(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("comma.csv", index=False)
    frame = pd.read_csv("comma.csv", **get_exact_number_options())
    expected = CalibrationSummary(4096).update(frame["y"], frame["p"])
    frame.to_csv("semicolon.csv.gz", index=False, sep=";", decimal=",")
    frame.to_csv("wide.txt", index=False, encoding="utf-16", sep="\t")
    for file in ("comma.csv", "semicolon.csv.gz", "wide.txt"):
        assert summarize(file, **COLUMNS) == expected, file
        monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 1000)
    frame[:2000].to_csv("one.csv", index=False)
    frame[2000:].to_parquet("two.parquet")
    assert summarize(["one.csv", "two.parquet"], **COLUMNS) == expected
    frame.to_csv("tilde.csv", index=False, sep="~", decimal=",")
    assert (
        summarize("tilde.csv", csv={"sep": "~", "decimal": ","}, **COLUMNS) == expected
    )
    names = frame.assign(y=np.array(["no", "yes"])[frame["y"]])
    names.to_csv("names.csv", index=False)
    found = summarize("names.csv", classes=["no", "yes"], **COLUMNS)
    wanted = CalibrationSummary(4096, classes=["no", "yes"]).update(
        names["y"], names["p"]
    )
    assert found == wanted
    frame.assign(y=frame["y"] == 1).to_csv("booleans.csv", index=False)
    assert summarize("booleans.csv", **COLUMNS) == expected
    frame.assign(y=frame["y"].map({0: "0", 1: "1"})).to_csv("text.csv", index=False)
    assert summarize("text.csv", classes=["0", "1"], **COLUMNS).n_samples == len(frame)


def test_tables_in_memory(frame, expected):
    arrow = pa.Table.from_pandas(frame)
    connection = duckdb.connect()
    connection.register("scores", arrow)
    for data in (
        frame,
        frame.set_index("y", drop=False),
        arrow,
        arrow.to_reader(max_chunksize=100),
        pl.from_pandas(frame),
        connection.sql("select y, p from scores"),
        {"y": frame["y"], "p": frame["p"].to_numpy()},
        {"y": frame["y"].tolist(), "p": frame["p"].tolist()},
    ):
        assert summarize(data, **COLUMNS) == expected, type(data)


KINDS = {
    "bool": lambda y: y == 1,
    "Int64": lambda y: y.astype("Int64"),
    "boolean": lambda y: (y == 1).astype("boolean"),
    "float32": lambda y: y.astype(np.float32),
    "object": lambda y: y.astype(object),
    "category": lambda y: y.astype("category"),
    "text": lambda y: y.map({0: "no", 1: "yes"}),
    "text category": lambda y: y.map({0: "no", 1: "yes"}).astype("category"),
    "arrow text": lambda y: y.map({0: "no", 1: "yes"}).astype("string[pyarrow]"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_labels(frame, expected, kind, tmp_path):
    other = frame.assign(y=KINDS[kind](frame["y"]))
    options = {"classes": ["no", "yes"]} if "text" in kind else {}
    wanted = CalibrationSummary(4096, **options).update(
        np.asarray(other["y"]), frame["p"]
    )
    other.to_parquet(tmp_path / "t.parquet")
    arrow = pa.Table.from_pandas(other)
    polars = [] if kind == "category" else [pl.from_pandas(other)]
    for data in (other, arrow, tmp_path / "t.parquet", *polars):
        assert summarize(data, **COLUMNS, **options) == wanted
    if options:
        with pytest.raises(ValueError, match=r"in row 0"):
            summarize(other, **COLUMNS)
        positive = summarize(other, pos_label="yes", **COLUMNS)
        assert positive == CalibrationSummary(4096, pos_label="yes").update(
            np.asarray(other["y"]), frame["p"]
        )


@pytest.mark.parametrize("kind", [np.float16, np.float32, "Float64", "decimal"])
def test_kinds_of_scores(frame, kind, tmp_path):
    p = frame["p"].round(3)
    if kind == "decimal":
        other = frame.assign(p=[Decimal(str(value)) for value in p])
        wanted = CalibrationSummary().update(frame["y"], p)
    else:
        other = frame.assign(p=p.astype(kind))
        wanted = CalibrationSummary().update(frame["y"], other["p"].to_numpy(float))
    for data in (other, pa.Table.from_pandas(other)):
        assert summarize(data, label="y", prob="p") == wanted


def test_weights_counts_and_two_columns(frame):
    two = frame.assign(q=1 - frame["p"])
    for data in (two, pa.Table.from_pandas(two)):
        found = summarize(data, label="y", prob=["q", "p"], weight="w", counts="n")
        assert found == CalibrationSummary().update(
            frame["y"], np.column_stack([two["q"], two["p"]]), frame["w"], frame["n"]
        )
        assert found.n_samples == frame["n"][frame["w"] > 0].sum()


def test_groups(folder, frame, expected):
    for data in (frame, pa.Table.from_pandas(frame), ".", {k: frame[k] for k in frame}):
        groups = summarize(data, by="shop", **COLUMNS)
        assert [*groups] == ["north", "south", "west"]
        for shop, rows in frame.groupby("shop"):
            assert groups[shop] == CalibrationSummary(4096).update(rows["y"], rows["p"])
        assert sum(groups.values()) == expected
    groups = summarize("day=*/*.parquet", by=["day", "size"], weight="w", **COLUMNS)
    assert [*groups][:3] == [("2026-01-01", 1), ("2026-01-01", 2), ("2026-01-02", 1)]
    rows = frame.iloc[1::3].query("size == 2")
    wanted = CalibrationSummary(4096).update(rows["y"], rows["p"], rows["w"])
    assert groups["2026-01-02", 2] == wanted
    assert [*summarize(frame, by=["size"], **COLUMNS)] == [(1,), (2,)]
    (folder / "hour=07").mkdir()
    frame.to_parquet(folder / "hour=07" / "b.parquet")
    (folder / "n=3").mkdir()
    frame.drop(columns="n").to_parquet(folder / "n=3" / "b.parquet")
    assert [*summarize("hour=07/b.parquet", by="hour", **COLUMNS)] == ["07"]
    assert [*summarize("n=3/b.parquet", by="n", **COLUMNS)] == [3]


def test_many_combinations_of_groups(monkeypatch):
    rng = np.random.default_rng(0)
    columns = {"a": rng.integers(0, 20, 500), "b": rng.choice([*"xyz"], 500)}
    columns["c"] = rng.integers(0, 3, 500).astype(bool)
    data = {"y": np.arange(500) % 2, "p": rng.random(500), **columns}
    groups = summarize(data, label="y", prob="p", by=["a", "b", "c"])
    sizes = pd.DataFrame(columns).value_counts()
    assert {key: s.n_samples for key, s in groups.items()} == sizes.to_dict()
    monkeypatch.setattr("sklearn_calib.summary._sources._MAX_GROUPS", 100)
    wide = {"y": [0, 1] * 60, "p": [0.5] * 120, "g": np.arange(120)}
    with raises_invalid_input(
        ValueError, expected="at most 100 groups by g", value="more"
    ):
        summarize(wide, label="y", prob="p", by="g")


@pytest.mark.parametrize(
    "backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)]
)
def test_processes_give_the_same(folder, backend):
    for data in ("day=*/*.parquet", "day=2026-01-01/a.parquet"):
        alone, progress = summarize(data, **COLUMNS), []
        with joblib.parallel_config(backend):
            found = summarize(
                data,
                n_jobs=2,
                progress=lambda *done, p=progress: p.append(done),
                **COLUMNS,
            )
        assert found == alone
        assert progress == sorted(progress) and len(progress) > 2
        assert progress[-1][0] == progress[-1][1]
    assert pickle.loads(pickle.dumps(found)) == found


def test_progress_inside_a_file(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 10_000)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=500)
    for file in ("t.csv", "t.csv.gz", "t.parquet"):
        progress = []
        summarize(
            tmp_path / file,
            progress=lambda *done, p=progress: p.append(done),
            **COLUMNS,
        )
        assert progress == sorted(progress) and progress[-1][0] == progress[-1][1]
    assert len(progress) > 10 and progress[0][0] < 0.1 * progress[-1][1]


def test_no_rows(frame, tmp_path):
    frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    frame.to_parquet(tmp_path / "some.parquet")
    assert summarize(tmp_path, **COLUMNS).n_samples == len(frame)
    assert summarize(frame.iloc[:0], **COLUMNS).n_samples == 0
    assert summarize(tmp_path / "none.parquet", by="shop", **COLUMNS) == {}


def changed(frame, column, value, row=5000):
    other = frame.copy()
    other[column] = other[column].astype("Int64" if value is pd.NA else object)
    other.loc[row, column] = value
    return (
        other
        if value is pd.NA or isinstance(value, str)
        else other.astype({column: float})
    )


WRONG = [
    ("p", 1.5, "expected probabilities in [0, 1], got 1.5 in row 5000"),
    ("p", np.nan, "in row 5000"),
    ("y", 2, "expected labels among [0, 1], got"),
    ("y", pd.NA, "expected a label in every row, got nan in row 5000 of column 'y'"),
    ("w", -1, "expected sample_weight >= 0 and finite, got -1 in row 5000"),
    (
        "n",
        0.5,
        "expected counts that are whole numbers from 0 to 2^53, got 0.5 in row 5000",
    ),
    ("n", pd.NA, "expected a number in every row, got nan in row 5000 of column 'n'"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("column", "value", "message"), WRONG)
@pytest.mark.parametrize("by", [None, "shop"])
def test_errors_name_file_row_group_and_row(
    frame, tmp_path, column, value, message, by, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn_calib.summary._parts.PIECE_ROWS", 900)
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 10_000)
    other = changed(frame, column, value)
    other.to_parquet("t.parquet", row_group_size=2000)
    other.to_csv("t.csv", index=False)
    options = {"weight": "w", "counts": "n", "by": by, **COLUMNS}
    for data in (other, "t.parquet", "t.csv"):
        with pytest.raises(ValueError, match=r"^") as caught:
            summarize(data, **options)
        said = str(caught.value)
        assert "row 5000" in said
        if isinstance(data, str):
            assert data in said
        if isinstance(data, str) and data == "t.parquet":
            assert "t.parquet, row group 2" in said
        if not (isinstance(data, str) and data == "t.csv"):
            assert message in said, said


def test_what_is_refused(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_parquet("t.parquet")
    frame.to_csv("t.csv", index=False)
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "hole.parquet").write_bytes(
        whole[:4] + b"\xff" * 40_000 + whole[40_004:]
    )
    frame.rename(columns={"p": "score"}).to_parquet("other.parquet")
    frame.assign(p=[[0.1]] * len(frame)).to_parquet("lists.parquet")
    (tmp_path / "empty").mkdir()
    cases = [
        ("half.parquet", "expected a readable table, got 'half.parquet'"),
        ("hole.parquet", "expected a readable table, got 'hole.parquet'"),
        ("absent.parquet", "'absent.parquet' (No such file or directory)"),
        (
            ["t.parquet", "other.parquet"],
            "expected a column 'p' in other.parquet, got score, y",
        ),
        (
            "lists.parquet",
            "expected one value in each row of column 'p' of lists.parquet",
        ),
        (".", "got parquet and csv in '.'"),
        ("empty", "(parquet, csv, JSON lines, Arrow), got none in 'empty'"),
        ("absent*", "No file matches 'absent*'"),
        ("magic://nowhere/t.parquet", "expected an address that pyarrow can open"),
        ((tmp_path / "t.csv").as_uri(), "expected parquet files at an address"),
        ({"y": [0, 1], "p": [0.5]}, "expected columns of one length"),
        (frame[["y"]], "expected a column 'p' in the table, got y"),
        (
            pa.Table.from_pandas(frame[["y"]]),
            "expected a column 'p' in the table, got y",
        ),
        (frame.assign(p="high"), "expected numbers in column 'p'"),
    ]
    for data, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            summarize(data, **COLUMNS)
    with raises_invalid_input(
        TypeError, expected="the path of a file", value="the int"
    ):
        summarize([1], **COLUMNS)
    with raises_invalid_input(
        TypeError, expected="data as paths, a table, ", value="a set"
    ):
        summarize({1}, **COLUMNS)
    with raises_invalid_input(ValueError, expected="csv with"):
        summarize("t.csv", csv={"separator": ";"}, **COLUMNS)
    with raises_invalid_input(ValueError, expected="max_cells from 4096"):
        summarize("absent", label="y", prob="p", max_cells=7)


def test_a_column_of_lists_is_refused_with_a_remedy_that_works(tmp_path):
    rows = [[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]]
    frame = pd.DataFrame({"y": [1, 0, 1], "p": rows})
    path = tmp_path / "lists.parquet"
    frame.to_parquet(path)
    read = pd.read_parquet(path)  # whose lists are arrays
    for data in (path, frame, read, pa.Table.from_pandas(frame)):
        with pytest.raises(ValueError, match="column 'p'") as error:
            summarize(data, label="y", prob="p")
        assert "one column per class, in pandas for example frame[['p0'" in str(error)
    read[["p0", "p1"]] = read["p"].tolist()
    found = summarize(read, label="y", prob=["p0", "p1"])
    assert found.measure("brier_loss") == pytest.approx(0.07)
    for column in (frame["p"], read["p"]):
        with pytest.raises(TypeError, match=r"for instance np\.stack\(p\)"):
            brier_loss(frame["y"], column)
        assert brier_loss(frame["y"], np.stack(column)) == pytest.approx(0.07)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path):
    import tracemalloc

    def peak(n):
        rng = np.random.default_rng(0)
        names = ["y", "p"]
        arrays = [pa.array(rng.integers(0, 2, n)), pa.array(rng.random(n))]
        parquet.write_table(pa.Table.from_arrays(arrays, names), tmp_path / "t.parquet")
        del arrays
        summarize(tmp_path / "t.parquet", label="y", prob="p")
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        summarize(tmp_path / "t.parquet", label="y", prob="p")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert pa.total_allocated_bytes() == before
        return most

    few, many = peak(3 * PIECE_ROWS), peak(12 * PIECE_ROWS)
    assert many < 1.2 * few, "python's share; the rest is a batch of Arrow"


@pytest.mark.slow
def test_rows_with_missing_values_are_left_out(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn_calib.summary._parts.PIECE_ROWS", 900)
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 10_000)
    holed = frame[["y", "p", "w"]].astype({"y": "Int64", "w": float})
    for row, column in (
        (5, "y"),
        (6, "p"),
        (1800, "p"),
        (1801, "w"),
        (4000, "y"),
        (4001, "p"),
    ):
        holed.loc[row, column] = pd.NA if column == "y" else np.nan
    whole = holed.dropna().astype({"y": int})
    expected = CalibrationSummary(4096).update(whole["y"], whole["p"], whole["w"])
    holed.to_parquet("t.parquet", row_group_size=2000)
    holed.to_csv("t.csv", index=False)
    memory = {
        name: holed[name].to_numpy(dtype=float, na_value=np.nan) for name in holed
    }
    for data in (
        holed,
        "t.parquet",
        "t.csv",
        memory,
        dd.from_pandas(holed, npartitions=3),
    ):
        named = (
            r"6 rows \(row 5.*, row 6.*, row 1800.*, row 1801.*, row 4000.*, \.\.\.\)"
        )
        named = "6 rows" if hasattr(data, "dask") else named
        with pytest.warns(CalibrationWarning, match=named):
            found = summarize(data, weight="w", drop_missing=True, **COLUMNS)
        assert found == expected
        with raises_invalid_input(ValueError, value="nan in row"):
            summarize(data, weight="w", **COLUMNS)
    with raises_invalid_input(
        ValueError, value="nan in rows 6, 1800 and 4001 of column 'p'"
    ):
        monkeypatch.setattr("sklearn_calib.summary._parts.PIECE_ROWS", 9000)
        summarize(holed[["y", "p"]].assign(y=1), **COLUMNS)
    assert find_distinct_labels("t.csv", label="y", drop_missing=True).tolist() == [
        0,
        1,
    ]
    wrong = holed.assign(p=holed["p"].where(holed.index != 1803, 7.0))
    wrong.to_csv("t.csv", index=False)
    with raises_invalid_input(ValueError, value="7", row=1803):
        summarize("t.csv", weight="w", drop_missing=True, **COLUMNS)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_text_labels_without_classes_are_named_in_the_error(n_classes):
    names = ["high", "low", "mid"][:n_classes]
    columns = [f"p{c}" for c in range(n_classes)]
    table = pd.DataFrame({name: [1 / n_classes] * 6 for name in columns})
    table["y"] = (names * 3)[:6]
    hint = re.escape(f"Name the classes in the order of the columns, classes={names}")
    with pytest.raises(ValueError, match=hint):
        summarize(table, label="y", prob=columns)
    assert summarize(table, label="y", prob=columns, classes=names).n_samples == 6


@pytest.mark.parametrize("skip_rows", ["a", 1.5, -1])
def test_classes_are_not_sought_below_lines_that_are_no_number(tmp_path, skip_rows):
    (tmp_path / "a.csv").write_text("y,p\nno,0.1\nyes,0.9\n", encoding="utf-8")
    with pytest.raises(ValueError, match="whole number skip_rows >= 0"):
        find_distinct_labels(
            tmp_path / "a.csv", label="y", csv={"skip_rows": skip_rows}
        )


@pytest.mark.slow
def test_each_of_70_000_groups_has_its_rows():
    number = np.arange(70_000)
    block = TableBlock(pd.DataFrame({"a": number // 300, "b": number % 300}), "", None)
    found = [(a, b, *rows) for (a, b), rows in iter_groups(block, ["a", "b"])]
    expected = np.column_stack([number // 300, number % 300, number])
    np.testing.assert_array_equal(found, expected)


def test_labels_are_at_most_so_many(monkeypatch):
    monkeypatch.setattr(_sources, "_MAX_CLASSES", 3)
    table = pd.DataFrame({"y": [0, 1, 2, 1]})
    assert find_distinct_labels(table, label="y").tolist() == [0, 1, 2]
    with raises_invalid_input(
        ValueError, expected="at most 3 different labels", value="more"
    ):
        find_distinct_labels(table.assign(y=[0, 1, 2, 3]), label="y")


def test_row_groups_stay_together_if_some_numbers_are_text(tmp_path):
    path = str(tmp_path / "t.parquet")
    rows = pd.DataFrame({"p": ["10%", "20%"] * 4, "w": np.ones(8), "y": [0, 1] * 4})
    rows.to_parquet(path, row_group_size=2)
    part = FilePart(path, path, None, {}, ())
    assert part.split_row_groups_if_possible(["p", "w"]) == [part]
    assert len(part.split_row_groups_if_possible(["w"])) == 4


def test_of_many_rows_that_are_left_out_five_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [f"{number}.csv" for number in range(7)]
    for file in files:
        pd.DataFrame({"y": [0, 1, 1], "p": [0.1, None, 0.3]}).to_csv(file, index=False)
    named = ", ".join(f"row 1 of {file}" for file in files[:5])
    with pytest.warns(CalibrationWarning, match=rf"7 rows \({named}, \.\.\.\)"):
        summarize(files, label="y", prob="p", drop_missing=True)
