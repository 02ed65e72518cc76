"""Files that break off in the middle: nothing is written, and the sentence names the file."""

import os

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from sklearn_calib._cli import main
from sklearn_calib._files import tables
from sklearn_calib.export import to_json
from sklearn_calib.recalibrators import PlattScaling


@pytest.mark.parametrize("out", ["new.csv", "new.parquet"])
def test_a_damaged_part_of_a_parquet_file(tmp_path, monkeypatch, capsys, out):
    """Its first row groups can be read, its footer too, one page in the last group cannot."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 100)
    p = np.random.default_rng(0).random(400)
    to_json(PlattScaling().fit(p, np.arange(400) % 2), "map.json")
    pd.DataFrame({"p": p}).to_parquet(
        "rows.parquet", row_group_size=100, compression=None
    )
    apply = ["apply", "map.json", "rows.parquet", "--prob", "p", "--out", out]
    assert main(apply) == 0
    os.remove(out)
    column = pq.ParquetFile("rows.parquet").metadata.row_group(3).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    with open("rows.parquet", "r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 40)
    capsys.readouterr()
    assert main(apply) == 2
    said = capsys.readouterr().err
    assert "rows.parquet" in said and said.count("\n") == 1
    assert sorted(os.listdir()) == ["map.json", "rows.parquet"]
