"""Streams of the command line: closed, full, without a reader; pipes, long rows, leftovers."""

import bz2
import gzip
import lzma
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sklearn_calib import _cli
from sklearn_calib._cli import main
from sklearn_calib._files import atomic, csv_text
from sklearn_calib._files.atomic import temporary_folder
from sklearn_calib._files.tables import iter_table_blocks
from sklearn_calib.exceptions import InvalidInputError

AS_USUAL = ("--label", "y", "--prob", "p")
REPORT = ("--out", "none", "--no-advice")
pytestmark = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="no pipes with names here"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with tables and a map; `bad.csv` raises an alarm."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    fewer = y * (rng.random(400) < p**2)
    for name, labels in (("good.csv", y), ("bad.csv", fewer)):
        rows = "".join(f"{a!r},{b}\n" for a, b in zip(p.tolist(), labels, strict=True))
        (tmp_path / name).write_text(f"p,y\n{rows}", encoding="utf-8")
    fit = (
        "fit",
        "good.csv",
        *AS_USUAL,
        "--recalibrator",
        "temperature",
        "--allow",
        "no-gain",
    )
    assert main([*fit, "--out", "map.json"]) == 0
    return tmp_path


def shell(line):
    """Run a line of bash in which `calib` is the command."""
    command = f'calib() {{ "{sys.executable}" -m sklearn_calib "$@"; }}; {line}'
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    called = ["bash", "-c", command]
    return subprocess.run(
        called, capture_output=True, text=True, timeout=120, env=environment
    )


#: Of these lines every second one is tried once a week.
LINES_OF_FULL_STREAMS = [
    ("monitor bad.csv --label y --prob p > /dev/full", 3, "No space left"),
    ("monitor good.csv --label y --prob p > /dev/full", 2, "No space left"),
    ("monitor good.csv --label y --prob p >&-", 2, "it is closed"),
    ("monitor good.csv --label y --prob p --quiet >&-", 0, ""),
    ("monitor bad.csv --label y --prob p 2> /dev/full >&-", 3, ""),
    (
        "monitor - --label y --prob p <&-",
        2,
        "expected a table on the standard input",
    ),
    ("apply map.json good.csv --prob p --out - > /dev/full", 2, "No space left"),
    (
        "apply map.json good.csv --prob p --out - >&-",
        2,
        "it is closed. Name a file with",
    ),
    ("apply map.json good.csv --prob p --out /dev/full", 2, "No space left"),
    ("apply map.json good.csv --prob p --out x.csv <&- >&-", 2, "The table is in"),
    ("apply map.json - --prob p --out - <&-", 2, "got a closed one"),
    ("export map.json --to sql > /dev/full", 2, "No space left"),
    ("export map.json --to sql >&-", 2, "it is closed. Name a file with --out"),
    (
        "audit good.csv --label y --prob p --resamples 2 --out none --no-advice >&-",
        2,
        "it is closed",
    ),
    (
        "audit good.csv --label y --prob p --resamples 2 --out none --no-advice"
        " --fail-if 'log_loss > 0'"
        " > /dev/full",
        3,
        "No space left",
    ),
    (
        "fit good.csv --label y --prob p --allow no-gain --out m.json >&-",
        2,
        "The map is in",
    ),
    (
        "compare good.csv $(cp good.csv a.csv; echo a.csv) --label y --prob p --resamples 20"
        " > /dev/full",
        2,
        "No space left",
    ),
    ("--help > /dev/full", 2, "No space left"),
]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        pytest.param(*case, marks=[pytest.mark.cross] if number % 2 else [])
        for number, case in enumerate(LINES_OF_FULL_STREAMS)
    ],
)
@pytest.mark.slow
def test_streams_that_take_nothing(folder, line, code, said):
    found = shell(f"calib {line}")
    assert found.returncode == code and said in found.stderr, found.stderr
    assert "report it" not in found.stderr and "Traceback" not in found.stderr


class Full:
    """A standard output without space, or without a reader."""

    encoding = "utf-8"

    def __init__(self, error):
        self.error = error

    def write(self, text):
        raise self.error

    def isatty(self):
        return False

    def flush(self):
        raise self.error


@pytest.mark.parametrize(
    ("stdout", "quiet_code"),
    [(Full(BrokenPipeError(32, "broken")), 0), (Full(OSError(28, "full")), 2)],
)
def test_an_alarm_keeps_its_code(folder, monkeypatch, capsys, stdout, quiet_code):
    monkeypatch.setattr("sys.stdout", stdout)
    assert main(["monitor", "bad.csv", *AS_USUAL]) == 3
    assert main(["monitor", "good.csv", *AS_USUAL]) == quiet_code
    assert ("got full." in capsys.readouterr().err) == bool(quiet_code)


@pytest.mark.slow
def test_closed_streams(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)
    assert main(["monitor", "bad.csv", *AS_USUAL]) == 3
    assert main(["monitor", "good.csv", *AS_USUAL]) == 2
    assert main(["apply", "map.json", "good.csv", "--prob", "p", "--out", "-"]) == 2
    assert main(["export", "map.json", "--to", "c"]) == 2
    assert main(["audit", "good.csv", *AS_USUAL, *REPORT]) == 2
    assert capsys.readouterr().err.count("it is closed") == 5
    monkeypatch.setattr("sys.stdin", None)
    assert main(["monitor", "-", *AS_USUAL]) == 2
    assert main(["apply", "map.json", "-", "--prob", "p", "--out", "x.csv"]) == 2
    assert capsys.readouterr().err.count("got a closed one") == 2


def test_a_closed_error_stream_leaves_the_table_alone(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr", None)
    assert main(["monitor", "none.csv", *AS_USUAL]) == 2
    assert capsys.readouterr().out == ""


# -- pipes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["apply", "map.json", "pipe", "--prob", "p", "--out", "got.csv"],
        ["audit", "pipe", "--label", "y", "--prob", "p"],
        ["monitor", "good.csv", "pipe", "--label", "y", "--prob", "p"],
    ],
)
def test_a_named_pipe_is_refused(folder, capsys, command):
    """At once: it has no writer."""
    os.mkfifo("pipe")
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "expected a file, which can be read again, got the pipe 'pipe'" in said
    assert "lead them to the standard input, whose name is -" in said


def test_a_pipe_without_an_other_end(folder, capsys, monkeypatch):
    monkeypatch.setattr(atomic, "PIPE_READER_TIMEOUT_SECONDS", 0.1)
    os.mkfifo("pipe")
    assert main(["apply", "map.json", "good.csv", "--prob", "p", "--out", "pipe"]) == 2
    assert "no program reads this pipe" in capsys.readouterr().err


def test_a_pipe_to_write(folder):
    os.mkfifo("pipe")
    found = []
    thread = threading.Thread(
        target=lambda: found.append((folder / "pipe").read_bytes())
    )
    thread.start()
    assert main(["apply", "map.json", "good.csv", "--prob", "p", "--out", "pipe"]) == 0
    thread.join()
    assert found[0].startswith(b"p,y,p_calibrated\n") and found[0].count(b"\n") == 401


def test_a_device_is_no_table(folder, capsys):
    assert main(["audit", "/dev/null", *AS_USUAL]) == 2
    assert "got the pipe or device '/dev/null'" in capsys.readouterr().err


# -- folders --------------------------------------------------------------------------------------


def test_no_folder_is_made_for_local_files(folder, monkeypatch):
    def none(*args, **options):
        raise AssertionError("a temporary folder was made")

    monkeypatch.setattr(tempfile, "mkdtemp", none)
    assert main(["monitor", "good.csv", *AS_USUAL]) == 0


def test_a_folder_of_a_killed_process_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "sklearn-calib-left"
    left.mkdir()
    (left / ".lock").touch()
    (
        tmp_path / "sklearn-calib-other"
    ).mkdir()  # without a lock it is not known whose it is
    with temporary_folder() as first, temporary_folder() as second:
        assert not left.exists() and os.path.isdir(first) and os.path.isdir(second)
    assert os.listdir(tmp_path) == ["sklearn-calib-other"]


def test_terminated_in_order(folder, monkeypatch):
    def kill(options):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    monkeypatch.setattr(_cli, "_run_command", kill)
    with pytest.raises(SystemExit) as ended:
        main(["demo"])
    assert (
        ended.value.code == 143 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )


# -- rows without an end --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["audit", "monitor", "apply"])
@pytest.mark.parametrize(
    "end",
    ["z" * 5000, '"' + "z\n" * 2500, '"' + "z" * 5000 + '"'],
    ids=["line", "open", "cell"],
)
def test_a_row_that_is_too_long(folder, capsys, monkeypatch, command, end):
    monkeypatch.setattr(csv_text, "MAX_ROW_CHARACTERS", 1000)
    with gzip.open("long.csv.gz", "wt") as file:
        file.write(f"p,y,t\n0.5,1,a\n0.25,0,{end}")
    line = {
        "audit": ("audit", "long.csv.gz", *AS_USUAL, *REPORT),
        "monitor": ("monitor", "long.csv.gz", *AS_USUAL),
        "apply": ("apply", "map.json", "long.csv.gz", "--prob", "p", "--out", "x.csv"),
    }[command]
    assert main(line) == 2
    said = capsys.readouterr().err
    if "\n" in end:  # pandas finds the quote first
        assert (
            "expected quotes in pairs in long.csv.gz, got a quote that is not closed in row 1"
            in said
        )
    else:
        assert (
            "rows of at most 1,000 characters in long.csv.gz" in said
            and "in line 3" in said
        )


def test_a_quote_that_is_not_closed_fills_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "MAX_ROW_CHARACTERS", 1000)
    path = tmp_path / "open.csv"
    path.write_text('p,y,t\n0.5,1,a\n0.25,0,"' + "z,\n" * 5000, encoding="utf-8")
    with pytest.raises(
        InvalidInputError, match=r"at most 1,000 characters in .* begins in line 3"
    ):
        list(iter_table_blocks(str(path), lambda names: ["p"], size=100))


@pytest.mark.parametrize(
    ("sep", "count"),
    [
        pytest.param(",", 90_000, marks=pytest.mark.slow),
        (";", 20_000),
        pytest.param("\t", 20_000, marks=pytest.mark.slow),
    ],
)
def test_a_header_of_many_names(folder, capsys, sep, count):
    names = ["p", *(f"column_{i:06}" for i in range(count)), "y"]
    rows = [sep.join([f"0.{50 + i}", *["1"] * count, str(i % 2)]) for i in range(3)]
    (folder / "wide.csv").write_text(
        "\n".join([sep.join(names), *rows, ""]), encoding="utf-8"
    )
    assert main(["monitor", "wide.csv", *AS_USUAL]) == 0
    if count < 50_000:
        assert (
            main(["apply", "map.json", "wide.csv", "--prob", "p", "--out", "x.csv"])
            == 0
        )


# -- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "option"), [("y", "--label"), ("p", "--prob")])
@pytest.mark.parametrize("files", [["good.csv"], ["good.csv", "bad.csv"]])
def test_groups_that_labels_or_scores_make(folder, capsys, name, option, files):
    assert (
        main(["audit", *files, *AS_USUAL, *REPORT, "--allow", "order", "--by", name])
        == 2
    )
    assert f"got '{name}', the column of {option}" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["good.csv", "good.parquet"])
@pytest.mark.parametrize("name", ["x.csv.gz", "x.TSV.GZ", "x.csv.bz2", "x.txt.xz"])
def test_a_packed_table_to_write(folder, capsys, source, name):
    table = pd.read_csv("good.csv")
    table.to_parquet("good.parquet")
    command = ("apply", "map.json", source, "--prob", "p", "--out")
    assert main([*command, "plain.csv"]) == 0
    assert main([*command, name]) == 0
    open_packed = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}[
        name[-3:].lower().strip(".")
    ]
    with open_packed(name) as file:
        text = file.read()
    tabs = source.endswith("parquet") and "TSV" in name  # a csv keeps its separator
    wanted = (folder / "plain.csv").read_bytes()
    assert text == (wanted.replace(b",", b"\t") if tabs else wanted)
    first = (folder / name).read_bytes()
    assert len(first) < len(wanted)
    assert main([*command, name]) == 0
    assert (folder / name).read_bytes() == first  # no time inside
    again = ("apply", "map.json", name, "--prob", "p_calibrated", "--out", "again.csv")
    assert main([*again]) == 0
    np.testing.assert_allclose(
        pd.read_csv("again.csv", sep="\t" if tabs else ",")["p"], table["p"], rtol=1e-15
    )
    capsys.readouterr()


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.bz2", "x.csv.xz"])
def test_a_packed_table_is_written_whole_or_not_at_all(
    folder, capsys, name, monkeypatch
):
    (folder / name).write_bytes(b"yesterday")
    bad = (folder / "good.csv").read_text(encoding="utf-8") + "7,1\n"
    (folder / "worse.csv").write_text(bad, encoding="utf-8")
    assert main(["apply", "map.json", "worse.csv", "--prob", "p", "--out", name]) == 2
    assert "got 7" in capsys.readouterr().err

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        assert (
            main(["apply", "map.json", "good.csv", "--prob", "p", "--out", name]) == 2
        )
    assert "No space left" in capsys.readouterr().err
    assert (folder / name).read_bytes() == b"yesterday" and not [*folder.glob(".*")]
    for other in ("x.parquet.gz", "x.csv.zip", "x.gz"):
        assert (
            main(["apply", "map.json", "good.csv", "--prob", "p", "--out", other]) == 2
        )
        assert "with .gz, .bz2, .xz behind it, got" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["twice.csv", "twice.parquet"])
def test_two_columns_of_one_name(folder, capsys, source):
    (folder / "twice.csv").write_text("p,a,a\n.1,1,2\n.2,3,4\n", encoding="utf-8")
    names = ["p", "a", "a"]
    table = pa.Table.from_arrays(
        [pa.array(c) for c in ([0.1, 0.2], [1, 3], [2, 4])], names=names
    )
    pq.write_table(table, "twice.parquet")
    command = ["apply", "map.json", source, "--prob", "p", "--out"]
    assert main([*command, "x.parquet"]) == 2
    said = capsys.readouterr().err
    assert (
        f"got 2 columns 'a' in {source}. Rename them, or write csv with --out" in said
    )
    assert not [*folder.glob("x.*")]
    assert main([*command, "x.csv"]) == 0  # nothing is lost there
    first = (
        (folder / "x.csv").read_text(encoding="utf-8").splitlines()[0].replace('"', "")
    )
    assert first == "p,a,a,p_calibrated"
