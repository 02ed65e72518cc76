import io
import json
import os

import numpy as np
import pytest
from error_fields import raises_invalid_input
from laws import LAWS, sample

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.summary import CalibrationSummary, is_summary_file

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def same_bits(a, b):
    """Equal in every bit of every sum."""
    return a == b and all(
        np.array_equal(x.table, y.table)
        and (x.shift, x.max_cells) == (y.shift, y.max_cells)
        and x.totals.tobytes() == y.totals.tobytes()
        for x, y in zip(a._states, b._states, strict=True)
    )


def summaries():
    for law in LAWS:
        p, y = sample(law, 20_000)
        yield CalibrationSummary(4096).update(y, p)
        yield CalibrationSummary().update(
            y[:3000], p[:3000], np.random.default_rng(0).random(3000)
        )
    yield CalibrationSummary()
    yield CalibrationSummary(pos_label="yes").update(["yes"], [0.25])
    yield CalibrationSummary(classes=["n", "j"], pos_label="n").update(
        ["n", "j"], [0.25, 0.5]
    )
    yield CalibrationSummary(classes=[False, True]).update([True, False], [0.25, 0.5])
    yield CalibrationSummary().update([0, 1], [0.2, 0.4], counts=[2**52, 1])
    for kind in ("confidence", "top_label", "classwise"):
        proba, y = make_overconfident(4, 500)
        yield CalibrationSummary(multiclass=kind).update(y, proba)
        yield CalibrationSummary(multiclass=kind).update(y, proba, np.arange(500.0))


@pytest.mark.parametrize("summary", summaries(), ids=repr)
def test_round_trip(summary, tmp_path):
    path = tmp_path / "summary.parquet"
    summary.to_parquet(path)
    assert same_bits(CalibrationSummary.from_parquet(path), summary)
    back = CalibrationSummary.from_parquet(str(path))
    assert same_bits(back, summary) and is_summary_file(path)
    assert os.listdir(tmp_path) == ["summary.parquet"]
    if summary.n_samples and summary.classes is not None:
        assert back + summary == summary + summary  # it goes on
        assert back.classes.dtype.kind == summary.classes.dtype.kind


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "low", "float32", "saturated"])
def test_size_of_a_full_summary(law, tmp_path):
    p, y = sample(law, 1_000_000)
    summary = CalibrationSummary().update(y, p)
    assert summary.n_cells > 30_000
    summary.to_parquet(tmp_path / "full.parquet")
    assert os.path.getsize(tmp_path / "full.parquet") <= 300_000


@pytest.mark.parametrize(
    ("law", "kilobytes"),
    [("uniform", 350), ("float32", 130), ("float16", 10), ("saturated", 250)],
)
def test_size_of_a_full_summary_of_all_digits(law, kilobytes, tmp_path):
    p, y = sample(law, 60_000)
    summary = CalibrationSummary().update(y, p)
    assert summary.exact
    summary.to_parquet(tmp_path / "full.parquet")
    assert os.path.getsize(tmp_path / "full.parquet") <= 1000 * kilobytes


def saved(tmp_path):
    p, y = sample("uniform", 5000)
    summary = CalibrationSummary(4096).update(y, p)
    summary.to_parquet(tmp_path / "s.parquet")
    return summary, tmp_path / "s.parquet"


@pytest.mark.parametrize("kept", [0, 3, 4, 500, 5000, -1])
def test_truncated(tmp_path, kept):
    _, path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    with raises_invalid_input(
        ValueError, expected=".*s.parquet", value="one that cannot"
    ):
        CalibrationSummary.from_parquet(path)
    assert not is_summary_file(path)


@pytest.mark.slow
def test_damaged(tmp_path):
    """A flipped bit is found, by the checksum or because nothing can be read."""
    summary, path = saved(tmp_path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(4, len(content) - 4, 100):
        wrong = bytearray(content)
        wrong[place] ^= 1 << rng.integers(8)
        path.write_bytes(wrong)
        try:
            found = CalibrationSummary.from_parquet(path)
        except ValueError as error:
            assert "s.parquet" in str(error)
        else:
            assert same_bits(found, summary)  # in parts that are not read


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: m | {"format": "sklearn-calib summary 2"},
            "expected .sklearn-calib summary 1. in .*got .sklearn-calib summary 2.",
        ),
        (lambda m: {"format": 7}, "got 7"),
        (lambda m: {}, "metadata that cannot be read"),
        (lambda m: [], "metadata that cannot be read"),
        (lambda m: m | {"max_cells": 7}, "an unchanged calibration summary"),
        (
            lambda m: m | {"problems": m["problems"] * 2},
            "an unchanged calibration summary",
        ),
        (
            lambda m: m | {"problems": [m["problems"][0] | {"cells": 3}]},
            "another checksum",
        ),
    ],
)
def test_other_metadata(tmp_path, change, message):
    summary, _ = saved(tmp_path)
    table = summary.to_arrow()
    said = json.loads(table.schema.metadata[b"sklearn_calib.summary"])
    table = table.replace_schema_metadata(
        {b"sklearn_calib.summary": json.dumps(change(said))}
    )
    parquet.write_table(table, tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"(?s)(?=.*other.parquet).*" + message):
        CalibrationSummary.from_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"(?s)(?=.*in the table).*" + message):
        CalibrationSummary.from_arrow(table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["n1"]), "the columns"),
        (lambda t: t.slice(1), "another checksum"),
        (lambda t: t.take([1, 0, *range(2, len(t))]), "another checksum"),
        (lambda t: t.set_column(1, "n0", [np.arange(len(t))]), "another checksum"),
    ],
)
def test_other_cells(tmp_path, change, message):
    summary, _ = saved(tmp_path)
    with pytest.raises(
        ValueError, match="an unchanged calibration summary .* " + message
    ):
        CalibrationSummary.from_arrow(change(summary.to_arrow()))


def test_another_table(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"y": [0, 1], "p": [0.1, 0.2]}), path)
    with raises_invalid_input(
        ValueError,
        expected=".*summary in .*rows.parquet",
        value="a table without",
        hint="Give what to_arrow or to_parquet made",
    ):
        CalibrationSummary.from_parquet(path)
    assert not is_summary_file(path)
    with pytest.raises(FileNotFoundError):
        CalibrationSummary.from_parquet(tmp_path / "nothing.parquet")


@pytest.mark.parametrize("n_between", [16, 1024])
def test_cells_that_have_lost_the_fewest_bits(n_between, tmp_path):
    """Scores in pairs, `n_between` floats apart: 16 bits are dropped, and no more."""
    first = np.random.default_rng(0).uniform(0.3, 0.32, 2200)
    second = (first.view(np.int64) + n_between).view(np.float64)
    summary = CalibrationSummary(max_cells=4096)
    summary.update(np.arange(4400) % 2, np.append(first, second))
    assert summary._states[0].shift == 16
    summary.to_parquet(tmp_path / "s.parquet")
    assert same_bits(CalibrationSummary.from_parquet(tmp_path / "s.parquet"), summary)


def test_offsets_in_files_are_counted_from_the_middle_of_their_cells(tmp_path):
    """Files of other versions are read by this: of 43 bits less, in steps of 2^16."""
    proba = np.random.default_rng(0).random(9000)
    summary = CalibrationSummary(4096).update(np.arange(9000) % 2, proba)
    assert summary._states[0].shift == 43
    summary.to_parquet(tmp_path / "s.parquet")
    table = parquet.read_table(tmp_path / "s.parquet")
    bits = table.column("packed_offset").to_numpy().view(np.int64)
    excess = (bits >> 1) ^ -(bits & 1)
    offset = summary.to_arrow().column("offset").to_numpy()
    n_rows = table.column("n0").to_numpy() + table.column("n1").to_numpy()
    np.testing.assert_array_equal(offset - excess, n_rows * 2 ** (43 - 16 - 1))


def test_labels_that_no_file_can_hold():
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    with raises_invalid_input(
        ValueError, expected="classes that are numbers, booleans or text"
    ):
        CalibrationSummary(classes=days).update(days, [0.1, 0.2]).to_arrow()


def test_written_whole_or_not_at_all(tmp_path, monkeypatch):
    _, path = saved(tmp_path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr("sklearn_calib._files.atomic.os.replace", full)
    with pytest.raises(OSError, match="no space"):
        CalibrationSummary().to_parquet(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["s.parquet"]


def test_other_tools_read_the_counts(tmp_path):
    _, path = saved(tmp_path)
    table = parquet.read_table(io.BytesIO(path.read_bytes()))
    assert (
        sum(table.column("n0").to_pylist()) + sum(table.column("n1").to_pylist())
        == 5000
    )


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with raises_invalid_input(
        ModuleNotFoundError, hint=r".*pip install 'sklearn-calib\[cli\]'"
    ):
        CalibrationSummary().to_arrow()


@pytest.mark.parametrize("value", [0, None, 1.5, [1]])
def test_what_is_no_path_opens_no_file(value, tmp_path):
    from sklearn_calib.export import from_json

    kept = os.open(tmp_path / "kept", os.O_RDWR | os.O_CREAT)
    number = kept if value == 0 else value
    try:
        for call in (
            is_summary_file,
            from_json,
            CalibrationSummary.from_parquet,
            CalibrationSummary().to_parquet,
        ):
            with raises_invalid_input(
                TypeError, expected="the path of a file", value="the"
            ):
                call(number)
        os.fstat(kept)
    finally:
        os.close(kept)


@pytest.mark.parametrize("n_cells", range(1, 13))
def test_rows_without_weights_are_stored_without_columns_of_weights(n_cells):
    scores = np.arange(1, n_cells + 1) / 16
    table = CalibrationSummary().update(np.arange(n_cells) % 2, scores).to_arrow()
    weighted = CalibrationSummary().update(
        np.arange(n_cells) % 2, scores, np.arange(1.0, n_cells + 1)
    )
    assert len(table) == n_cells
    assert table.num_columns < weighted.to_arrow().num_columns
