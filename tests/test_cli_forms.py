"""How numbers are written - with %, with a decimal comma - is a matter of the column, not of a row.

What the first row or block shows must hold for those below, and rows that are empty say
nothing.
"""

from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib._cli import _streams, _tables, main
from sklearn_calib._cli._request import Request
from sklearn_calib._cli._tables import read_score_column
from sklearn_calib._files import tables
from sklearn_calib._files.columns import is_written_in_percent, read_finite_numbers
from sklearn_calib._files.tables import iter_table_blocks, load_table
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.export import to_json
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.summary import _parts, summarize
from sklearn_calib.summary._draw_options import DrawAndScoreOptions

SIZE = 60  # characters of a block


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Blocks of some ten rows, with every reader."""
    monkeypatch.chdir(tmp_path)
    blocks = partial(tables.iter_table_blocks)

    def of_size(file, pick, **given):
        return blocks(file, pick, **{"size": SIZE, **given})

    for subpackage in (_tables, _streams, _parts):
        monkeypatch.setattr(subpackage, "iter_table_blocks", of_size)
    monkeypatch.setattr(_parts, "PIECE_ROWS", 10)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 10)


def written(cells, sep=","):
    lines = [f"{('no', 'yes')[i % 2]}{sep}{cell}" for i, cell in enumerate(cells)]
    with open("t.csv", "w", encoding="utf-8") as file:
        file.write("\n".join([f"y{sep}p", *lines, ""]))
    return "t.csv"


def test_percent_where_the_first_cell_is_empty(tmp_path, monkeypatch):
    """30 % became 0.003: the sign was looked for in the first cell alone."""
    monkeypatch.chdir(tmp_path)
    rows = [
        ("a", "", "30%", "70%"),
        ("b", "20%", "30%", "50%"),
        ("c", "10%", "10%", "80%"),
    ] * 8
    frame = pd.DataFrame(rows, columns=["y", "a", "b", "c"])
    frame["y"] = [row[0] if row[0] != "a" else "c" for row in rows]
    frame.loc[1::9, "y"] = "a"
    frame.to_csv("t.csv", index=False)
    (table,) = [load_table("t.csv", lambda _: ["a", "b"])]
    options = Request(prob=["a,b"], percent=True, absent="nan", scale=None)
    found = read_score_column(table, "a", options)
    assert np.isnan(found[0]) and found[1] == pytest.approx(0.2)
    assert read_score_column(table, "b", options)[0] == pytest.approx(0.3)


MIXED = [
    (["30%"] * 12 + ["0.3"] * 12, ",", "in percent, or none"),
    (["0.3"] * 12 + ["30%"] * 12, ",", "in percent, or none"),
    ([""] * 12 + ["0.3"] * 12 + ["30%"] * 12, ",", "in percent, or none"),
    (["0,3"] * 12 + ["0.25"] * 12, ";", "decimal"),
    (["0.25"] * 12 + ["0,3"] * 12, ";", "decimal"),
    (["3,5%"] * 12 + ["3.5%"] * 12, ";", r"'3\.5%' in row 1\d"),
]


@run_every_case(("cells", "sep", "words"), MIXED)
def test_mixed_ways_below_each_other(small, cells, sep, words):
    """In one block they were rejected, in two they were not."""
    file = written(cells, sep)
    for size in (SIZE, None):
        with raises_invalid_input(
            InvalidInputError, expected="numbers in column 'p' ", value=r".* in row \d+"
        ):
            for table in iter_table_blocks(file, lambda _: ["p"], size=size):
                read_finite_numbers(table, "p", allow_missing=True)
    for draw in (DrawAndScoreOptions(0), DrawAndScoreOptions(0, percent=True)):
        with pytest.raises(ValueError, match=words):
            summarize(
                file,
                label="y",
                prob="p",
                drop_missing=True,
                classes=["no", "yes"],
                _draw=draw,
            )


@pytest.mark.parametrize("make", ["to_parquet", "to_feather"])
def test_mixed_ways_in_files_of_types(small, make):
    frame = pd.DataFrame({"y": ["no", "yes"] * 15, "p": ["30%"] * 20 + ["0.3"] * 10})
    getattr(frame, make)("t.x")
    for draw in (DrawAndScoreOptions(0), DrawAndScoreOptions(0, percent=True)):
        with raises_invalid_input(ValueError, hint=".*all of them in percent, or none"):
            summarize("t.x", label="y", prob="p", classes=["no", "yes"], _draw=draw)
    words = [
        "--label",
        "y",
        "--prob",
        "p",
        "--positive",
        "yes",
        "--scale",
        "percent",
        "--allow",
        "order",
    ]
    assert main(["monitor", "t.x", *words]) == 2


def test_blocks_without_a_value_say_nothing(small):
    """A first block of empty cells counted as one without %: what came below was rejected."""
    file = written([""] * 30 + ["30%"] * 30)
    for table in iter_table_blocks(file, lambda _: ["p"], size=SIZE):
        numbers = read_finite_numbers(table, "p", allow_missing=True)
        assert set(numbers[~np.isnan(numbers)]) <= {0.3}
    assert is_written_in_percent(table, "p")


def test_whole_numbers_go_with_both_marks(small):
    for cells in (["0", "1"] * 8 + ["0,25"] * 12, ["0,25"] * 12 + ["0", "1"] * 8):
        file = written(cells, ";")
        found = [
            read_finite_numbers(t, "p")
            for t in iter_table_blocks(file, lambda _: ["p"], size=SIZE)
        ]
        assert np.concatenate(found).sum() == pytest.approx(11)


def test_text_beside_numbers_of_a_workbook():
    """Cells 30% (text) and 0.5 (a number): the number was taken for a share."""
    frame = pd.DataFrame({"p": ["30%", 0.5, None]}, dtype=object)
    with raises_invalid_input(InvalidInputError, value=r"for instance '0\.5' in row 1"):
        read_finite_numbers(
            tables.TableBlock(frame, "t.xlsx", "."), "p", allow_missing=True
        )


def test_new_cells_have_the_mark_of_all_rows(small, tmp_path):
    """apply wrote points where the first block has whole numbers alone."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    frame = pd.DataFrame({"y": rng.random(200) < p, "p": p.round(3)})
    frame.to_csv("cal.csv", index=False)
    words = [
        "--label",
        "y",
        "--prob",
        "p",
        "--recalibrator",
        "platt",
        "--out",
        "map.json",
    ]
    assert main(["fit", "cal.csv", *words, "--allow", "no-gain"]) == 0
    file = written(["0", "1"] * 10 + ["0,25"] * 12, ";")
    assert main(["apply", "map.json", file, "--prob", "p", "--out", "out.csv"]) == 0
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "y;p;p_calibrated" and len(lines) == 33
    assert not any("." in line for line in lines)


@pytest.mark.slow
def test_clusters_of_one_name_in_two_blocks(small, capsys):
    """A cluster 1 of a block of whole numbers was another one than the 1.0 of the next."""
    rng = np.random.default_rng(0)
    n = 200
    p = rng.random(n)
    frame = pd.DataFrame(
        {"y": np.where(rng.random(n) < p, "yes", "no"), "a": p, "b": p**2}
    )
    frame["group"] = [str(i % 20) if i < 100 else f"{i % 20}.0" for i in range(n)]
    frame.to_csv("t.csv", index=False)
    frame.assign(group=[i % 20 for i in range(n)]).to_csv("whole.csv", index=False)
    said = []
    for file in ("t.csv", "whole.csv"):
        words = ["--label", "y", "--prob", "a", "--prob", "b", "--cluster", "group"]
        words += ["--positive", "yes", "--resamples", "20"]
        assert main(["compare", file, *words]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_row_groups_in_several_processes_share_the_form_of_text(tmp_path):
    """A row group in percent and one without are rejected as by one process."""
    frame = pd.DataFrame(
        {"y": [0, 1] * 4, "p": ["10%", "90%"] * 2 + ["0.1", "0.9"] * 2}
    )
    path = str(tmp_path / "t.parquet")
    frame.to_parquet(path, row_group_size=4)
    for n_jobs in (None, 2):
        with (
            joblib.parallel_config("threading"),
            raises_invalid_input(
                ValueError, hint="Write all of them in percent, or none"
            ),
        ):
            summarize(path, label="y", prob="p", n_jobs=n_jobs)


def test_apply_reads_text_of_parquet_as_fit_does(small, capsys):
    """A decimal comma was rejected, and a block without % was read after one with it."""
    p = np.random.default_rng(0).random(40).round(3)
    to_json(PlattScaling().fit(p, np.arange(40) % 2), "map.json")
    words = ["apply", "map.json", "t.parquet", "--prob", "p", "--out", "out.parquet"]
    found = []
    for cells in (p, [f"{value:.3f}".replace(".", ",") for value in p]):
        pd.DataFrame({"p": cells}).to_parquet("t.parquet")
        assert main(words) == 0
        found.append(pd.read_parquet("out.parquet")["p_calibrated"].tolist())
    assert found[0] == found[1]
    cells = [f"{value:.1f}%" if row < 20 else f"{value}" for row, value in enumerate(p)]
    pd.DataFrame({"p": cells}).to_parquet("t.parquet")
    capsys.readouterr()
    assert main(words) == 2
    assert "Write all of them in percent, or none" in capsys.readouterr().err
