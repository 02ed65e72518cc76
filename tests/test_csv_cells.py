"""Csv text means what pandas makes of it, whichever of the two libraries has read a block."""

import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib._files.columns import (
    TableBlock,
    get_raw_values_or_codes,
    read_finite_numbers,
    read_label_values,
)
from sklearn_calib._files.csv_text import (
    CsvParser,
    _find_quotes_if_around_cells,
    iter_text_blocks,
)
from sklearn_calib._files.tables import iter_table_blocks, load_table
from sklearn_calib.exceptions import InvalidInputError

COLUMNS = {
    "numbers": ["0.5", ".5", "5.", "1e5", "-0.0", "1E-3", "0." + "3" * 40, "5e-324"],
    "whole": ["1", "-2", "0", "007"],
    "whole with holes": ["1", "", "3"],
    "signs": ["+1", "-0", "+0"],
    "signs of fractions": ["+0.5", "1"],
    "hexadecimal": ["0x1F", "3"],
    "beyond int64": ["9223372036854775807", "9223372036854775808", "1"],
    "beyond uint64": ["18446744073709551616", "1"],
    "uint64 and a hole": ["18446744073709551615", "", "1"],
    "beyond floats": ["9007199254740993", "0.5"],
    "large with a hole": ["9007199254740993", ""],
    "too large": ["1e400", "0.5"],
    "infinities": ["inf", "-Infinity", "INF", "0.5"],
    "no number": ["NAN", "0.5"],
    "a number with a mark": ["nan(1)", "0.5"],
    "missing": ["NA", "null", "<NA>", "#N/A", "0.5"],
    "not missing": ["Null", "none", "-"],
    "booleans": ["True", "false", "TRUE"],
    "booleans with holes": ["True", "", "False"],
    "booleans and numbers": ["True", "1"],
    "almost booleans": ["tRUE", "False"],
    "booleans with blanks": ["True ", "False"],
    "dates": ["2020-01-01", "", "2020-02-01"],
    "times": ["12:30", "13:00:01"],
    "blanks": [" 0.5 ", "  1", "0.25  "],
    "blanks in text": ["  a b ", "c"],
    "blanks and holes": [" NA", "NA ", " "],
    "vertical tabs": ["0.5\x0b", "1"],
    "tabs": ["\t0.5", "1\t"],
    "underscores": ["1_000", "2"],
    "other digits": ["\u0663", "1"],
    "letters of numbers": ["fun", "tall", "rise"],
    "quotes": ['"a,b"', '"c""d"', '""', '"1"'],
    "blanks before quotes": [' "a,b"', "c"],
    "blanks behind quotes": ['"a,b" ', "c"],
    "quotes inside": ['a"b', 'c"d"e'],
    "text behind quotes": ['"a"b', "c"],
    "line breaks": ['"a\nb"', '"c\r\nd"', "e"],
    "lone returns": ["a\rb", "c"],
    "nothing": ["", ""],
    "no characters": ["a\0b", "c"],
    "marks": ["\ufeff1", "\ufeff"],
    "percent": ["50%", "60 %"],
    "too many cells": ["1,", "2"],
    "holes of blanks": ["  ", "0.5", "x"],
    "numbers and holes of blanks": [" ", "0.5", " 0.25"],
    "blanks before text": [" a", "b"],
    "rows of blanks": ["1\n  \n\n", "2"],
}


def same(found, wanted):
    assert [*found] == [*wanted] and len(found) == len(wanted)
    for name in wanted:
        assert found[name].dtype.kind == wanted[name].dtype.kind
        assert found[name].isna().equals(wanted[name].isna())
        pairs = zip(
            found[name].dropna().tolist(), wanted[name].dropna().tolist(), strict=True
        )
        assert all(type(one) is type(other) and one == other for one, other in pairs)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
@pytest.mark.parametrize("cells", COLUMNS.values(), ids=COLUMNS)
def test_a_block_is_what_pandas_makes_of_it(cells, sep, named):
    rows = "".join(f"{sep.join((cell, '0.25', 'x'))}\n" for cell in cells)
    text = sep.join("abc") + "\n" + rows if named else rows
    for as_text in ((), (0,)):
        of_pandas = CsvParser(
            3, [0, 1], sep, ".", as_text
        )._read_frame_and_extra_with_pandas(text, named)
        found = CsvParser(3, [0, 1], sep, ".", as_text).read_frame(text, named)
        same(found[0], of_pandas[0])
        wanted = [] if of_pandas[1] is None else of_pandas[1].dropna().tolist()
        assert ([] if found[1] is None else found[1].dropna().tolist()) == wanted


def test_pyarrow_reads_what_is_plain():
    text = 'y,p\n1,0.5\n0,"0.25"\n'
    assert (
        CsvParser(2, [0, 1], ",", ".", ())._read_columns_with_arrow_if_safe(text, True)
        is not None
    )
    assert (
        CsvParser(2, [0, 1], ",", ".", ())._read_columns_with_arrow_if_safe(
            'y,p\n1,a"b"\n', True
        )
        is None
    )


def test_a_short_row_alone_in_a_block_is_a_row(tmp_path):
    (tmp_path / "t.csv").write_text("p\n0.5\n0,5\n" + "0.25\n" * 9, encoding="utf-8")
    blocks = [
        *iter_table_blocks(
            str(tmp_path / "t.csv"), lambda names: ["p"], size=5, sep=";"
        )
    ]
    assert sum(block.n_rows for block in blocks) == 11
    (tmp_path / "t.csv").write_text("y,p\n1,0.5\n0,0.25\n1", encoding="utf-8")
    blocks = [*iter_table_blocks(str(tmp_path / "t.csv"), lambda names: ["p"], size=8)]
    assert blocks[-1].columns["p"].isna().tolist() == [True]


def test_blocks_end_where_rows_end():
    rows = ['1,"a\nb"\n', '2,"c""\n""d"\n', "3,e\n", '4,"\n"\n']
    for text in ("".join(rows), "".join(rows).replace("e", "\u20ac")):
        for size in (1, 7, 1000):
            blocks = [
                *iter_text_blocks(
                    io.BytesIO(text.encode()), "utf-8", ",", size, "t.csv"
                )
            ]
            assert "".join(blocks) == text
            frames = [
                CsvParser(2, [0, 1], ",", ".", ()).read_frame(block, False)[0]
                for block in blocks
            ]
            assert pd.concat(frames)[0].tolist() == [1, 2, 3, 4]


@run_every_case(
    ("cells", "decimal", "numbers"),
    [
        (["50%", " 60 %", None], ".", [0.5, 0.6, np.nan]),
        (["0,5", "+1", ",25"], None, [0.5, 1.0, 0.25]),
        (["5,0 %", "1e1%"], ",", [0.05, 0.1]),
        (["1.000,5"], ",", [np.nan]),
        (["0.5", "\u0663", "x", ""], ".", [0.5, 3.0, np.nan, np.nan]),
        ([b"0.5", "0.5"], ".", [np.nan, 0.5]),
    ],
)
def test_numbers_in_text(cells, decimal, numbers):
    from sklearn_calib._files.columns import _parse_numbers

    found = _parse_numbers(pd.Series(cells, dtype=object), decimal)
    np.testing.assert_array_equal(found, numbers)


def test_numbers_in_text_are_refused_as_before():
    table = TableBlock(pd.DataFrame({"p": [b"0.5", b"0.25"]}), "t.parquet", ".")
    with raises_invalid_input(InvalidInputError, expected="numbers in column 'p'"):
        read_finite_numbers(table, "p")


def test_a_whole_file_has_the_types_of_all_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 2**10)
    rows = ["1,True,,2"] * 200 + ["0,,,0.5"] * 200 + ["1,False,x,+3"] * 200
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d", *rows]), encoding="utf-8")
    found = load_table(str(tmp_path / "t.csv"), lambda names: names).columns
    same(found, pd.read_csv(tmp_path / "t.csv"))


def test_a_file_that_is_cut_off_within_its_last_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,2,3\n4,5", encoding="utf-8")
    with raises_invalid_input(
        ValueError,
        expected="3 cells in each row of .*t.csv, as many as names",
        value="2",
        hint="The file is cut off: export it again",
    ):
        load_table(str(path), lambda names: names)


def test_missing_values_of_every_kind_have_no_place():
    column = pd.Series(
        [Decimal("NaN"), np.inf, "a", None, Decimal("-Infinity"), Decimal(1), "a"]
    )
    values, places = get_raw_values_or_codes(column)
    assert values == ["a", Decimal(1)]
    assert places.tolist() == [-1, -1, 0, -1, -1, 1, 0]


def test_booleans_below_a_block_of_numbers_are_rejected(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,p\n" + "1,0.5\n" * 50 + "True,0.5\n" * 50, encoding="utf-8")
    with raises_invalid_input(
        ValueError,
        expected="only numbers or only booleans in column 'y' of .*t.csv",
        value="'True' in row 50",
        hint="Write all labels alike",
    ):
        for block in iter_table_blocks(
            str(path), lambda names: names, size=304, as_text=["y"]
        ):
            read_label_values(block, "y", keep_text=False)


def test_rows_of_a_file_in_several_blocks_are_counted_from_its_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,p\n" + "1,0.5\n" * 150 + "1,x\n", encoding="utf-8")
    table = load_table(str(path), lambda names: names, size=304)
    assert table.n_rows == 151
    assert [table.get_file_row(place) for place in (0, 150)] == [0, 150]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('a,"b",c\n', [2, 4]),
        ('"a","b"', [0, 2, 4, 6]),
        ('"a""b",c', [0, 2, 3, 5]),
        ('a,"b"\r\n"c"\n', [2, 4, 7, 9]),
        ('a,"b', [2]),
        ("a,b", []),
        ('a,"b"x,c', None),
        ('a,"b"x', None),
        ('"a","b"x', None),
        ('"a",b"c",d', None),
        ('ab"c",d', None),
        ('a, "b",c', None),
    ],
)
def test_quotes_stand_at_the_ends_of_cells(text, places):
    found = _find_quotes_if_around_cells(np.frombuffer(text.encode(), np.uint8), ",")
    assert (found if found is None else found.tolist()) == places
