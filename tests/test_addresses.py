"""Addresses are shown without their secrets: in messages, documents and commands to paste."""

import traceback
from types import SimpleNamespace

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib._cli import main
from sklearn_calib._cli._prediction_batches import describe_files
from sklearn_calib._cli._remote import describe_source
from sklearn_calib._files import input_files
from sklearn_calib._show import (
    format_error_or_type_if_secret,
    make_printable,
    quote_for_shell,
    quote_text,
    redact_secrets,
)
from sklearn_calib.export import from_json, to_json
from sklearn_calib.recalibrators import TemperatureScaling
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import (
    CalibrationSummary,
    find_distinct_labels,
    is_summary_file,
    summarize,
)

ADDRESSES = {
    "postgresql://user:TOPSECRET@h/db": "postgresql://h/db",
    "postgresql://user:TOP/SEC'RET?TOPSECRET@h/db": "postgresql://h/db",
    "ftp://TOPSECRET@h/t.csv": "ftp://h/t.csv",
    "jdbc:postgresql://h/db?user=u&password=TOPSECRET": "jdbc:postgresql://h/db",
    "https://h/t.parquet?X-Amz-Signature=TOPSECRET": "https://h/t.parquet",
    "https://h/t.csv#TOPSECRET": "https://h/t.csv",
    "http://h/a b.csv?token=TOP SECRET": "http://h/a b.csv",
    "Server=h;Uid=u;Password=TOP SECRET;Port=1": "Server=h;Uid=u;Password=...;Port=1",
    "Driver=x;PWD={TOP;SECRET};Server=h": "Driver=x;PWD=...;Server=h",
    "host=h password=TOPSECRET": "host=h password=...",
    "jdbc:sqlserver://h;user=u;password=TOPSECRET": "jdbc:sqlserver://h;user=u;password=...",
    "AccountName=a;AccountKey=TOPSECRET==;Suffix=e": "AccountName=a;AccountKey=...;Suffix=e",
    "https://h/" + "long/" * 30 + "t.csv?token=TOPSECRET": "https://h/"
    + "long/" * 30
    + "t.csv",
}


@run_every_case("address", ADDRESSES)
def test_what_is_left_of_an_address(address):
    assert redact_secrets(address) == ADDRESSES[address]
    for show in (
        make_printable,
        quote_text,
        quote_for_shell,
        lambda text: describe_files([text]),
    ):
        assert "SECRET" not in show(address)
    assert describe_source(
        [address], ["copy.csv", "two.csv"]
    ) == f"{ADDRESSES[address]} and 1 more" or (
        "=" in ADDRESSES[address] or address.startswith("jdbc")
    )


@run_every_case(
    "text",
    [
        "design=5",
        "monkey=3/key=1",
        "Password=...;x",
        "C:\\t?.csv",
        "C://t.csv",
        "p?x=1",
        "me@h",
        "a@b://",
        "50 %",
    ],
)
def test_what_is_no_address_stays(text):
    assert redact_secrets(text) == text


@pytest.mark.parametrize("address", ADDRESSES)
def test_errors(address, capsys):
    """Neither the message nor what a traceback shows above it, which pyarrow words."""
    for read in (summarize, find_distinct_labels):
        more = {"prob": "p"} if read is summarize else {}
        try:
            read(address, label="y", **more)
        except (ValueError, OSError):
            assert "SECRET" not in traceback.format_exc()
    words = ["--label", "y", "--prob", "p"]
    assert main(["audit", address, *words]) == 2
    assert main(["monitor", address, *words]) == 2
    if address.startswith("postgres"):
        assert main(["audit", address, *words, "--allow", "remote"]) == 2
    said = capsys.readouterr()
    assert "SECRET" not in said.out + said.err


@run_every_case("address", [a for a in ADDRESSES if not a.startswith("jdbc")])
def test_one_file_is_one_of_this_machine(address):
    """The system's error would show the whole address."""
    fitted = TemperatureScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    calls = (
        lambda: from_json(address),
        lambda: to_json(fitted, address),
        lambda: CalibrationSummary().to_parquet(address),
        lambda: CalibrationSummary.from_parquet(address),
        lambda: is_summary_file(address),
    )
    for call in calls:
        with raises_invalid_input(
            ValueError, expected=".*the path of a local file", value="the address"
        ) as error:
            call()
        assert "SECRET" not in str(error.value)


def test_documents_and_commands(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    address = "https://user:TOPSECRET@h/t.csv?token=TOPSECRET"
    report = calibration_report(
        rng.random(60) < p, p, source=address, n_resamples=2, measures=["log_loss"]
    )
    page = str(tmp_path / "page.html")
    report.to_html(page)
    texts = [
        str(report),
        str(report.to_dict()),
        (tmp_path / "page.html").read_text(encoding="utf-8"),
    ]
    assert not any("SECRET" in text for text in texts)
    assert report.source == "https://h/t.csv"


REPEATED = [
    "https://user:TOPSECRET@host/",  # "nonnumeric port: 'TOPSECRET@host'"
    # "URL can't contain control characters. ..."
    "https://user:TOP SECRET@127.0.0.1:1/a b",
    # "Invalid value for option 'replication': ..."
    "hdfs://h:1/x?replication=TOPSECRET",
]


@pytest.mark.parametrize("address", REPEATED)
def test_libraries_that_repeat_a_secret_are_not_quoted(address, capsys):
    words = ["--label", "y", "--prob", "p"]
    assert main(["audit", address, *words, "--allow", "remote"]) == 2
    with raises_invalid_input(ValueError, expected="an address") as error:
        summarize(address, label="y", prob="p")
    assert "SECRET" not in capsys.readouterr().err + "".join(
        traceback.format_exception(error.value)
    )


def test_a_reason_that_repeats_no_secret_is_quoted():
    said = "no route to h"
    assert (
        format_error_or_type_if_secret(OSError(said), "https://user:pass@h/t.csv?k=v")
        == said
    )
    assert (
        format_error_or_type_if_secret(
            OSError("for 'pa%73s'"), "https://user:pass@h/t.csv"
        )
        == "OSError"
    )


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("gs://b/x.parquet", "gs://b/x.parquet?retry_limit_seconds=5"),
        ("gs://b/x?scheme=http", "gs://b/x?scheme=http&retry_limit_seconds=5"),
        ("gs://b/x?retry_limit_seconds=60", "gs://b/x?retry_limit_seconds=60"),
        ("s3://b/x", "s3://b/x"),
    ],
)
def test_google_is_asked_for_seconds(monkeypatch, address, asked):
    given = []

    def from_uri(text):
        given.append(text)
        raise OSError("no network")

    fs = SimpleNamespace(FileSystem=SimpleNamespace(from_uri=from_uri))
    monkeypatch.setattr(input_files, "import_optional", lambda *_: fs)
    with raises_invalid_input(
        ValueError, expected="an address that pyarrow can open", value=".*no network"
    ):
        list(input_files.expand_to_names_paths_and_filesystems(address))
    assert given == [asked]
