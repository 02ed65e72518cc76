"""Tables in blocks: the same values as when read at once, wherever the blocks end."""

import gzip
import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli import _large, _tables, main
from sklearn_calib._cli._remote import local_files
from sklearn_calib._cli._request import Request
from sklearn_calib._files.arrow import iter_batches
from sklearn_calib._files.columns import (
    map_texts_to_values,
    read_finite_numbers,
    read_label_column_with_missing,
)
from sklearn_calib._files.tables import (
    is_unpacked_size_above,
    iter_table_blocks,
    load_table,
)
from sklearn_calib.exceptions import InvalidInputError

NOTES = ["", "plain", 'say "yes"', "two\nlines", "a,b", '5" pipe', '"', "\r\n\n"]


def written(path, *, line="\n", quoting=0, sep=",", decimal="."):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"note": rng.choice(NOTES, 120), "p": rng.random(120).round(3), "y": 1}
    )
    frame["y"] = rng.integers(0, 2, 120)
    frame.to_csv(
        path,
        index=False,
        lineterminator=line,
        quoting=quoting,
        sep=sep,
        decimal=decimal,
    )
    return frame


@pytest.mark.parametrize("size", [1, 7, 100, 1000, 10**6])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [0, 1])
def test_blocks_are_the_table(tmp_path, size, line, quoting):
    file = str(tmp_path / "t.csv")
    frame = written(file, line=line, quoting=quoting)
    blocks = [*iter_table_blocks(file, lambda names: ["p", "y"], size=size)]
    assert [block.first_row for block in blocks] == np.cumsum(
        [0, *(b.n_rows for b in blocks[:-1])]
    ).tolist()
    assert (len(blocks) > 10) == (size < 500), "blocks as small as they may be"
    found = np.concatenate([read_finite_numbers(block, "p") for block in blocks])
    assert found.tolist() == frame["p"].tolist()
    whole = load_table(file, lambda names: ["p", "y"]).columns
    assert pd.concat([block.columns for block in blocks], ignore_index=True).equals(
        whole
    )


@pytest.mark.slow
def test_a_quote_inside_a_cell_opens_nothing(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        'note,p\n5" pipe,0.1\n"two\nlines",0.2\n6" pipe,0.3\n' * 1, encoding="utf-8"
    )
    for size in range(1, 60):
        blocks = [*iter_table_blocks(str(file), lambda names: ["p"], size=size)]
        assert np.concatenate([b.columns["p"] for b in blocks]).tolist() == [
            0.1,
            0.2,
            0.3,
        ]


@pytest.mark.slow
def test_rows_are_counted_from_the_beginning_of_the_file(tmp_path):
    lines = ["p,y", *["0.5,1"] * 999]
    for wrong, message in (
        ("x,1", "got for instance 'x' in row 700"),
        (",1", "got nan in row 700"),
        ("0.2,1,1", "Row 700 of .* has more cells than the 2 names"),
        ("50%,1", "in percent, or none"),
    ):
        (tmp_path / "t.csv").write_text(
            "\n".join([*lines[:701], wrong, *lines[701:]]), encoding="utf-8"
        )
        with pytest.raises(InvalidInputError, match=message):
            for block in iter_table_blocks(
                str(tmp_path / "t.csv"), lambda names: ["p", "y"], size=50
            ):
                read_finite_numbers(block, "p")


def test_percent_in_one_block_and_fractions_in_another_are_refused(tmp_path):
    for above, below in (("50%", "0.5"), ("0.5", "50%")):
        (tmp_path / "t.csv").write_text(
            "p,y\n" + f"{above},1\n" * 100 + f"{below},1\n" * 100, encoding="utf-8"
        )
        with raises_invalid_input(
            InvalidInputError, hint="Write all of them in percent, or none"
        ):
            for block in iter_table_blocks(
                str(tmp_path / "t.csv"), lambda names: ["p", "y"], size=50
            ):
                read_finite_numbers(block, "p")


@pytest.mark.parametrize("values", [("50%", "0.5"), ("0.5", "50%")])
def test_signs_are_remembered_from_block_to_block(tmp_path, values):
    """Where no block by itself has both."""
    lines = [f"{value},{'x' * 60}\n" for value in values for _ in range(3)]
    (tmp_path / "t.csv").write_text("p,y\n" + "".join(lines), encoding="utf-8")
    blocks = [
        *iter_table_blocks(str(tmp_path / "t.csv"), lambda names: ["p", "y"], size=50)
    ]
    assert all(block.columns["p"].astype(str).nunique() == 1 for block in blocks)
    with pytest.raises(
        InvalidInputError, match=r"in row 3\b.*Write all of them in percent, or none"
    ):
        for block in blocks:
            read_finite_numbers(block, "p")


@pytest.mark.parametrize(
    "column",
    [
        ["1", "0"],
        ["1", "2.0"],
        ["True", "False"],
        ["yes", "no", "1"],
        ["007", "8"],
        ["a,b"],
    ],
)
def test_labels_mean_what_they_mean_in_the_whole_column(tmp_path, column):
    file = str(tmp_path / "t.csv")
    pd.DataFrame({"y": column * 50, "z": 1}).to_csv(file, index=False)
    whole = read_label_column_with_missing(load_table(file, lambda names: ["y"]), "y")
    texts = [
        text
        for block in iter_table_blocks(
            file, lambda names: ["y"], size=40, as_text=["y"]
        )
        for text in block.columns["y"]
    ]
    values = map_texts_to_values(dict.fromkeys(texts))
    assert [values[text] for text in texts] == whole.tolist()
    assert {type(value) for value in values.values()} == {
        type(value) for value in whole.tolist()
    }


@pytest.mark.parametrize(
    "column",
    [
        ["1", "2", "3"],
        ["1", "2.5", ""],
        ["", "", "a"],
        ["1", "007", "x"],
        ["true", "False", ""],
        ["true", "no", "1"],
        ["", "true", "x"],
        [str(2**53 + 1), "", "0.5"],
        [str(2**63), "1", "-1"],
        ["0,5", "1", "7%"],
    ],
)
def test_a_long_file_is_what_it_is_at_once(tmp_path, monkeypatch, column):
    """Each chunk has one of the three cells: what it means, the others decide."""
    file = tmp_path / "t.csv"
    rows = "".join(
        f"{cell},{number}\n" for number, cell in enumerate(np.repeat(column, 10))
    )
    file.write_text(f"y,z\n{rows}".replace("0,5", '"0,5"'), encoding="utf-8")
    wanted = load_table(str(file), lambda names: ["y", "z"]).columns
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 60)
    found = load_table(str(file), lambda names: ["y", "z"]).columns
    for name in ("y", "z"):
        assert found[name].isna().equals(wanted[name].isna())
        one, other = (frame[name].dropna().tolist() for frame in (found, wanted))
        assert one == other and [*map(type, one)] == [*map(type, other)]


@pytest.mark.slow
def test_a_long_file_keeps_no_cells_that_nobody_asked_for(tmp_path):
    """A small file that unpacks to 64 MB."""
    resource = pytest.importorskip("resource", reason="a system without limits")
    code = (
        "import sys, resource; from sklearn_calib._files.tables import load_table;"
        "n = len(load_table(sys.argv[1], lambda names: ['p']).columns);"
        f"print(n, resource.getrusage({resource.RUSAGE_SELF}).ru_maxrss // 1024)"
    )
    megabytes = []
    for times in (10, 60):
        with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
            file.write(b"p,t\n")
            for _ in range(times):
                file.write(f"0.5,{'x' * 100}\n".encode() * 10_000)
        called = [sys.executable, "-c", code, str(tmp_path / "t.csv.gz")]
        said = subprocess.run(called, capture_output=True, text=True, check=True).stdout
        assert int(said.split()[0]) == times * 10_000
        megabytes.append(int(said.split()[1]))
    assert megabytes[1] < megabytes[0] + 40, megabytes


def test_a_file_without_names(tmp_path):
    lines = "0.2;1\n0,7;0\n0.9;1\n".replace(",", ".")
    (tmp_path / "t.csv").write_text(lines, encoding="utf-8")
    form = {"header": ["p", "y"]}
    for size in (None, 1):
        blocks = [
            *iter_table_blocks(
                str(tmp_path / "t.csv"), lambda names: ["p", "y"], size=size, **form
            )
        ]
        assert (
            [block.first_row for block in blocks] == [0] if size is None else [0, 1, 2]
        )
        assert np.concatenate([b.columns["p"] for b in blocks]).tolist() == [
            0.2,
            0.7,
            0.9,
        ]
    with raises_invalid_input(InvalidInputError, hint=".*give all names with csv="):
        load_table(str(tmp_path / "t.csv"), lambda names: ["p"])
    with raises_invalid_input(
        InvalidInputError, expected="3 cells in the first line, ", value="2"
    ):
        load_table(str(tmp_path / "t.csv"), lambda names: ["p"], header=["a", "b", "c"])


@pytest.mark.parametrize("packed", ["gz", "bz2", "xz", "zst", "zip"])
def test_compression_is_told_by_the_first_bytes(tmp_path, monkeypatch, packed):
    frame = pd.DataFrame({"p": [0.2, 0.7], "y": [0, 1]})
    if packed == "zst":
        with pa.CompressedOutputStream(str(tmp_path / "t.csv.zst"), "zstd") as file:
            file.write(frame.to_csv(index=False).encode())
    else:
        frame.to_csv(tmp_path / f"t.csv.{packed}", index=False)
    data = (tmp_path / f"t.csv.{packed}").read_bytes()
    (tmp_path / "t.csv").write_bytes(data)
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    )
    options = Request(files=[str(tmp_path / "t.csv"), "-"])
    with local_files(options, allows_stdin_among_files=True) as files:
        assert len(files) == 2
        for file in files:
            assert load_table(file, lambda names: ["p", "y"]).columns.equals(frame)


def test_a_workbook_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr("xl/workbook.xml", "")
    with raises_invalid_input(
        InvalidInputError, hint=r".*sklearn-calib\[excel\].*, or save the sheet"
    ):
        load_table(str(tmp_path / "t.xlsx"), lambda names: ["p"])


def test_a_sheet_with_empty_cells_beside_its_header(tmp_path):
    """Those at the end are left out; one before the others keeps their places."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in ([None, "y", "p", None], [7, 0, 0.25, None], [8, 1, 0.5, None]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    seen = []
    found = load_table(
        str(tmp_path / "t.xlsx"), lambda names: seen.extend(names) or ["p"]
    )
    assert seen == ["", "y", "p"]
    assert found.columns["p"].tolist() == [0.25, 0.5]


def test_the_name_that_was_meant(tmp_path):
    names = [f"feature_{i}" for i in range(5000)] + ["outcome"]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError) as error:
        load_table(str(tmp_path / "t.csv"), lambda present: ["outcone"])
    assert "(5001 columns). Do you mean 'outcome'?" in str(error.value)
    assert len(str(error.value)) < 800


def test_utf_16_without_its_mark(tmp_path):
    (tmp_path / "t.csv").write_bytes("p,y\n0.2,1\n".encode("utf-16-le"))
    with raises_invalid_input(InvalidInputError, hint=".*name utf-16-le or utf-16-be"):
        load_table(str(tmp_path / "t.csv"), lambda names: ["p"])
    found = load_table(
        str(tmp_path / "t.csv"), lambda names: ["p"], encoding="utf-16-le"
    )
    assert found.columns["p"].tolist() == [0.2]


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_decimal_commas_in_text_of_typed_files(tmp_path, kind):
    file = tmp_path / f"t.{kind}"
    getattr(pd.DataFrame({"p": ["0,37", "0,5"]}), f"to_{kind}")(file)
    table = load_table(str(file), lambda names: ["p"])
    assert read_finite_numbers(table, "p").tolist() == [0.37, 0.5]
    given = load_table(str(file), lambda names: ["p"], decimal=".")
    with raises_invalid_input(
        InvalidInputError, hint=".*is the decimal mark, read it with csv="
    ):
        read_finite_numbers(given, "p")


def test_a_small_file_of_many_rows_weighs_as_much_as_they(tmp_path):
    """Equal rows are packed a thousand times smaller: whether to read blocks is not asked of it."""
    rows = pd.DataFrame({"y": np.arange(60_000) % 2, "p": 0.5})
    files = [
        str(tmp_path / f"t{end}")
        for end in (".parquet", ".feather", ".csv.gz", ".csv.zip")
    ]
    rows.to_parquet(files[0])
    rows.to_feather(files[1], compression="zstd")
    for file in files[2:]:
        rows.to_csv(file, index=False)
    for file in files:
        assert os.path.getsize(file) < 30_000
        assert is_unpacked_size_above([file], 300_000) and not is_unpacked_size_above(
            [file], 1_000_000
        )
        assert is_unpacked_size_above([file] * 4, 1_000_000)


@pytest.mark.parametrize("row", [3, 12, 20])
def test_a_cell_too_many_is_refused_in_any_chunk(tmp_path, monkeypatch, row):
    """Of a long file the first chunk has none."""
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 60)
    lines = ["0.5,1,g"] * 21
    lines[row] += ",h"
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["p,y,s", *lines, ""]), encoding="utf-8")
    with raises_invalid_input(
        InvalidInputError, expected="3 cells in each row ", value=f"more in row {row}"
    ):
        load_table(str(file), lambda _: ["p", "y"])


@pytest.mark.slow
def test_a_small_file_of_many_rows_is_read_in_blocks(tmp_path, monkeypatch):
    rows = pd.DataFrame({"y": np.arange(200_000) % 2, "p": 0.5})
    rows.to_parquet(file := str(tmp_path / "t.parquet"))
    assert os.path.getsize(file) < 100_000
    monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 1_000_000)
    monkeypatch.setattr(_tables, "load_table", None)
    given = [
        "--label",
        "y",
        "--prob",
        "p",
        "--no-advice",
        "--out",
        "none",
        "--resamples",
        "2",
    ]
    assert main(["audit", file, *given]) == 0


def test_a_group_of_rows_of_parquet_is_read_alone(tmp_path):
    """Its share of the file begins where the rows before it end."""
    table = pa.table({"x": list(range(10))})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=4)
    source = parquet.ParquetFile(tmp_path / "t.parquet")
    parts = [*iter_batches(source, 3, ["x"], row_group=1, first_row=4)]
    found = [(batch.column(0).to_pylist(), share) for batch, share in parts]
    assert found == [([4, 5, 6], 0.7), ([7], 0.8)]
