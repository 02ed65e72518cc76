"""What commands read: the roles of columns, rows that are left out, and where others stand."""

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli import main
from sklearn_calib._cli._request import Request
from sklearn_calib._cli._tables import TableReader
from sklearn_calib._files.columns import TableBlock
from sklearn_calib.exceptions import InvalidInputError


def test_roles_of_columns():
    options = Request(label="y", prob=["a,b"], weight="w", by=["g"], features=["all"])
    roles = options.find_roles(["y", "a", "b", "w", "g", "h"])
    assert (roles.labels, roles.scores, roles.groups) == (["y"], ["a", "b"], ["g"])
    assert roles.required_columns == ["y", "a", "b", "w"] and roles.features == [
        "g",
        "h",
    ]
    assert roles.all_columns == ["y", "a", "b", "w", "g", "h"]
    options.features = ["y"]
    with raises_invalid_input(
        InvalidInputError, value=".*which determines the outcome"
    ):
        options.find_roles(["y", "a", "b", "w", "g", "h"])


def test_rows_with_holes_are_left_out_of_all_tables(capsys):
    tables = TableReader(Request(drop_missing=True))
    first = TableBlock(
        pd.DataFrame({"p": [0.5, None, 0.25, 1.0]}), "one.csv", ".", first_row=10
    )
    second = TableBlock(pd.DataFrame({"q": [1.0, 2.0, None, 3.0]}), "two.csv", ".")
    one, two = tables.drop_incomplete_rows_if_asked(first, second)
    assert one.columns["p"].tolist() == [0.5, 1.0] and two.columns["q"].tolist() == [
        1.0,
        3.0,
    ]
    rows = [one.get_file_row(0), one.get_file_row(1), two.get_file_row(1)]
    assert rows == [10, 13, 3] and tables.n_rows == 2
    (again,) = tables.drop_incomplete_rows_if_asked(
        one.select_rows(np.array([False, True]))
    )
    assert again.get_file_row(0) == 13
    tables.print_dropped_rows()
    assert (
        "left out, with missing values: rows 11 and 12 of one.csv"
        in capsys.readouterr().err
    )
    tables.reset_counts()
    with raises_invalid_input(
        InvalidInputError, expected="rows without missing values", value="none"
    ):
        tables.check_rows_kept()


@pytest.mark.parametrize("command", ["monitor", "compare"])
def test_a_wrong_row_below_one_that_is_left_out(tmp_path, monkeypatch, capsys, command):
    """It is the row of the file that is named."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"y": [0, 1] * 20, "p": 0.5, "q": 0.25})
    frame.loc[3, "p"], frame.loc[10, "p"] = np.nan, 7.0
    frame.to_csv("t.csv", index=False)
    more = ["--prob", "q"] if command == "compare" else []
    columns = ["--label", "y", "--prob", "p", *more, "--missing", "drop"]
    assert main([command, "t.csv", *columns]) == 2
    assert "in row 10" in capsys.readouterr().err
