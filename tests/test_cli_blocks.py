"""The commands monitor and apply read block by block: the same results, in the same memory."""

import json
import os
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_calib import canonical_proba
from sklearn_calib._cli import _monitor, _streams, _tables, main
from sklearn_calib._cli._prediction_batches import PredictionBatch
from sklearn_calib._files import tables
from sklearn_calib._validation import read_proba
from sklearn_calib.export import to_json
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import get_recalibrator

ROWS = ["--label", "outcome", "--prob", "p", "--positive", "yes"]
TIMED = [*ROWS, "--time", "day", "--state", "state.json"]
N = 1500


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Rows of which only those in the middle are wrong; several have the same time."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=N)
    wrong = (np.arange(N) >= 300) & (np.arange(N) < 700)
    truth = 1 / (1 + np.exp(-np.where(wrong, 0.3 * z, z)))
    found = pd.DataFrame(
        {"p": 1 / (1 + np.exp(-z)), "day": 20260000 + np.arange(N) // 9}
    )
    return found.assign(outcome=np.where(rng.random(N) < truth, "yes", "no"))


@pytest.fixture
def small(monkeypatch):
    """Blocks of so many characters or rows."""

    def set_size(characters, rows=100):
        blocks = partial(tables.iter_table_blocks, size=characters)

        def of_size(file, pick, size=characters, **given):
            return blocks(file, pick, **given | {"size": size})

        monkeypatch.setattr(_tables, "iter_table_blocks", of_size)
        monkeypatch.setattr(tables, "_BATCH_ROWS", rows)

    return set_size


def run(*words):
    return main(["monitor", *words])


def result(capsys, *words):
    """What a new state is, what was said and the exit code."""
    Path("state.json").unlink(missing_ok=True)
    capsys.readouterr()
    code = run(*words)
    return code, capsys.readouterr(), Path("state.json").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("csv", (4000, 0)),
        ("csv", (20_000, 0)),
        ("two", (9000, 0)),
        ("jsonl", (9000, 0)),
        ("parquet", (0, 100)),
        ("parquet", (0, 256)),
        ("parquet", (0, 700)),
    ],
)
def test_blocks_leave_every_bit(frame, small, capsys, size, kind):
    """Alarms in the middle, ties of times between blocks, and rows that are left out."""
    frame.loc[[5, 310, 1200], "p"] = None
    file = f"t.{kind}"
    if kind == "csv":
        frame.to_csv(file, index=False)
    elif kind == "parquet":
        frame.to_parquet(file)
    elif kind == "jsonl":
        frame.to_json(file, orient="records", lines=True, double_precision=15)
    else:
        file = "part*.csv"
        frame[:811].to_csv("part1.csv", index=False)
        frame[811:].to_csv("part2.csv", index=False)
    words = [file, *TIMED, "--missing", "drop", "--run-length", "1000"]
    at_once = result(capsys, *words)
    assert at_once[0] == 3 and "ALARM at row" in at_once[1].out
    assert at_once[1].err.count("left out, with missing values: row") == 1
    small(*size)
    assert result(capsys, *words) == at_once
    if kind in ("csv", "parquet"):
        rows = frame.dropna()
        monitor = CalibrationMonitor(average_run_length=1000, classes=["no", "yes"])
        monitor.update(rows["outcome"], rows["p"], time=rows["day"], only_later=True)
        assert monitor.alarms_[-1].n_samples < 1000, "before the last block"
        assert json.loads(at_once[2]) == monitor.state_dict()


@pytest.mark.slow
def test_blocks_of_logits_and_of_each_class(frame, small, capsys):
    rng = np.random.default_rng(1)
    logits = 3 * rng.normal(size=(N, 3))
    logits[::200, 0] = -1000  # probabilities of 0, whose logarithms are kept
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    pd.DataFrame(logits, columns=[*"abc"]).assign(y=y).to_csv("t.csv", index=False)
    words = [
        "t.csv",
        "--label",
        "y",
        "--prob",
        "a,b,c",
        "--scale",
        "logits",
        "--classwise",
    ]
    words += ["--state", "state.json"]
    small(5000)
    found = result(capsys, *words)
    monitor = CalibrationMonitor(classes=[0, 1, 2], multiclass="classwise")
    monitor.update(y, canonical_proba(logits, kind="logits"))
    state = {**json.loads(found[2]), "sha256": None}
    assert len(state.pop("files")) == 1
    assert state == {**monitor.state_dict(), "sha256": None} and monitor.n_alarms_


@pytest.mark.parametrize("much", [0, 2**23])
def test_rows_in_any_order_of_time(frame, small, capsys, monkeypatch, much):
    frame["day"] = np.arange(N)
    frame.to_csv("t.csv", index=False)
    expected = result(capsys, "t.csv", *TIMED)
    frame.sample(frac=1, random_state=0).to_csv("t.csv", index=False)
    small(9000)
    monkeypatch.setattr(_monitor, "_MIN_UNORDERED_NOTE_BYTES", much)
    code, said, state = result(capsys, "t.csv", *TIMED)
    assert (code, said.out, state) == (expected[0], expected[1].out, expected[2])
    assert said.err.count("not in the order of 'day'") == (much == 0)


def test_times_of_several_kinds(frame, small, capsys):
    """Whole numbers at first and fractions later are fractions all along."""
    frame["day"] = [str(i) if i < 900 else f"{i}.5" for i in range(N)]
    frame.to_csv("t.csv", index=False)
    expected = result(capsys, "t.csv", *TIMED)
    small(9000)
    assert result(capsys, "t.csv", *TIMED) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        (
            "p",
            1.5,
            "t.csv: expected probabilities in [0, 1], got 1.5 in row 1400, column 0",
        ),
        ("p", "x", "row 1400"),
        ("outcome", "maybe", "got 'maybe' in row 1400"),
        ("outcome", None, "got nan in row 1400"),
        ("day", None, "got nan in row 1400"),
        ("day", 20250000, "Time runs backwards"),
    ],
)
def test_an_error_in_a_late_row_leaves_the_state(
    frame, small, capsys, column, value, said
):
    frame.assign(day=20250000).to_csv("t.csv", index=False)
    run("t.csv", *TIMED)
    before = Path("state.json").read_bytes()
    frame[column] = frame[column].astype(object)
    frame.loc[1400, column] = value
    frame.to_csv("t.csv", index=False)
    small(9000)
    capsys.readouterr()
    assert run("t.csv", *TIMED) == 2
    out, err = capsys.readouterr()
    assert said in err and err.count("\n") == 1 and not out
    assert Path("state.json").read_bytes() == before


def test_a_late_row_of_logits_is_named(frame, small, capsys):
    frame.loc[1400, "p"] = 1e200
    frame.to_csv("t.csv", index=False)
    with pytest.raises(ValueError, match=r"inf in row 107, column 0"):
        read_proba([0.0] * 7 + [np.inf], kind="logits", first=100)
    small(9000)
    assert run("t.csv", *ROWS, "--scale", "logits") == 2
    assert "logits of size at most" in capsys.readouterr().err


@pytest.mark.slow
def test_columns_of_other_classes_are_told_once(frame, small, capsys, monkeypatch):
    """By the first rows: of the first table before the others are read."""
    frame.to_csv("good.csv", index=False)
    frame.assign(p=1 - frame["p"]).to_csv("swapped.csv", index=False)
    small(9000)
    monkeypatch.setattr(_monitor, "_COLUMN_ORDER_ROWS", 500)
    read = []
    given = _monitor.PredictionBatches.iter_file_batches

    def watched(batches):
        for batch in given(batches):
            read.append(1)
            yield batch

    monkeypatch.setattr(_monitor.PredictionBatches, "iter_file_batches", watched)
    assert run("swapped.csv", *ROWS) == 2
    assert "swapped.csv: expected columns in the order" in capsys.readouterr().err
    assert 1 < len(read) < 5
    run("good.csv", *ROWS, "--state", "state.json")
    capsys.readouterr()
    assert run("swapped.csv", *ROWS, "--state", "state.json") == 3
    assert capsys.readouterr().err.count("columns that fit yes, no") == 1


def test_classes_of_a_state_that_another_process_begins(frame, capsys, monkeypatch):
    """While this one waits: what its columns mean is judged by that state."""
    frame.to_csv("t.csv", index=False)
    first = CalibrationMonitor(classes=["yes", "no"]).update(
        frame["outcome"], 1 - frame["p"]
    )
    alone = _monitor._lock_state

    def late(options):
        Path("state.json").write_text(json.dumps(first.state_dict()), encoding="utf-8")
        return alone(options)

    monkeypatch.setattr(_monitor, "_lock_state", late)
    assert run("t.csv", *ROWS, "--positive", "yes", "--state", "state.json") == 2
    assert "expected the classes yes, no of the state" in capsys.readouterr().err
    assert (
        json.loads(Path("state.json").read_text(encoding="utf-8")) == first.state_dict()
    )


# -- memory ---------------------------------------------------------------------------------------


@pytest.fixture
def held(monkeypatch):
    """How many blocks are held whenever one more is read."""
    known, most = [], []

    def watched(file, pick, size=3000, **given):
        for table in tables.iter_table_blocks(file, pick, **given | {"size": size}):
            known.append(weakref.ref(table.columns))
            most.append(sum(ref() is not None for ref in known))
            yield table

    monkeypatch.setattr(tables, "_BATCH_ROWS", 100)
    for module in (_tables, _streams):
        monkeypatch.setattr(module, "iter_table_blocks", watched)
    return most


@pytest.mark.parametrize("file", ["t.csv", "t.parquet"])
def test_monitor_holds_some_blocks(frame, held, file):
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    assert run(file, *TIMED) == 3
    assert len(held) >= 15 and max(held) <= 3


def test_monitor_holds_no_arrays_of_blocks(frame, small, monkeypatch):
    """What goes on from one batch to the next is a copy, not a view of all of it."""
    frame.to_csv("t.csv", index=False)
    small(3000)
    alive, most, take = [], [], PredictionBatch.select_rows

    def watched(batch, rows):
        alive.append(weakref.ref(batch.scores))
        most.append(sum(ref() is not None for ref in alive))
        return take(batch, rows)

    monkeypatch.setattr(PredictionBatch, "select_rows", watched)
    monkeypatch.setattr(_monitor, "_COLUMN_ORDER_ROWS", 500)
    assert run("t.csv", *TIMED) == 3
    assert max(most[len(most) // 2 :]) <= 4


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_apply_holds_some_blocks(frame, held, out):
    frame.to_csv("t.csv", index=False)
    to_json(
        get_recalibrator("temperature").fit(
            frame["p"], frame["outcome"], classes=["no", "yes"]
        ),
        "map.json",
    )
    assert main(["apply", "map.json", "t.csv", "--prob", "p", "--out", out]) == 0
    assert len(held) >= 15 and max(held) <= 3
    assert os.path.getsize(out)
