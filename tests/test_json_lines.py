"""JSON lines as tables: exact values, nested names, hostile lines, and lines that apply writes."""

import gzip
import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib._cli import build_parser, main
from sklearn_calib._cli._result import format_fit_and_apply_commands
from sklearn_calib._files import csv_text, json_lines
from sklearn_calib._files.columns import (
    read_finite_numbers,
    read_label_column_with_missing,
)
from sklearn_calib._files.tables import (
    iter_table_blocks,
    load_table,
    read_all_column_names,
)
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.export import to_json
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.summary import find_distinct_labels, summarize

GOOD = '{"p": 0.5, "y": 1}\n'


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="t.jsonl"):
        (tmp_path / name).write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
        return name

    return write


def read(file, *needed, **form):
    return load_table(file, lambda names: [*needed], **form).columns


def awkward(n=400):
    """Objects whose fields have every kind of value that is one number, text or boolean."""
    rng = np.random.default_rng(7)
    for number in range(n):
        row = {
            "id": 2**53 + number,
            "p": float(rng.random()) ** 40,
            "y": ["no", "yes"][number % 2],
        }
        row["m"] = {
            "n": number,
            "deep": {"q": [float(rng.normal()), 1]},
            'a"b': bool(number % 3),
        }
        row["note"] = ["plain", 'say "yes"', "two\nlines", "é😀\u2028", "{", ""][
            number % 6
        ]
        if number > 200 and number % 7 == 0:
            row["p"], row["m"] = None, {}
        if number > 300 and number % 5 == 0:
            row = {"extra": [1, {"z": {}}], **dict(reversed(row.items()))}
            row["p"] = number
        yield row


NAMES = ["id", "p", "y", "m.n", "m.deep.q.0", "m.deep.q.1", 'm.a"b', "note"]


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("size", [3000, 10**6])
def test_both_parsers_read_the_same(write, monkeypatch, size, ascii_only):
    rows = [*awkward()]
    lines = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)
    file = write("\ufeff" + lines.replace('"note"', '\t"note" '))
    calls = []
    own = json_lines._JsonLinesReader._read_columns_with_arrow_if_safe
    monkeypatch.setattr(
        json_lines._JsonLinesReader,
        "_read_columns_with_arrow_if_safe",
        lambda *given: calls.append(own(*given) is not None) or own(*given),
    )
    fast = [
        block.columns
        for block in iter_table_blocks(file, lambda names: NAMES, size=size)
    ]
    assert any(calls) or size == 10**6
    monkeypatch.setattr(
        json_lines._JsonLinesReader,
        "_read_columns_with_arrow_if_safe",
        lambda *given: None,
    )
    slow = [
        block.columns
        for block in iter_table_blocks(file, lambda names: NAMES, size=size)
    ]
    for one, other in zip(fast, slow, strict=True):
        pd.testing.assert_frame_equal(one, other, check_dtype=False)
    whole = read(file, *NAMES)
    assert whole["id"].tolist() == [row["id"] for row in rows], "beyond 2^53"
    wanted = [row["p"] for row in rows]
    assert [None if np.isnan(p) else p for p in whole["p"].astype(float)] == wanted
    assert whole["note"].tolist() == [row["note"] for row in rows]
    firsts = [row["m"].get("deep", {"q": [None]})["q"][0] for row in rows]
    assert [None if np.isnan(q) else q for q in whole["m.deep.q.0"]] == firsts
    assert read_all_column_names(file, lambda names: [])[: len(NAMES)] == NAMES


@pytest.mark.parametrize(("value", "kind"), [("0.25", "f"), ("7", "f"), ('"a"', "O")])
def test_a_column_whose_first_values_are_missing_has_the_type_of_the_others(
    write, monkeypatch, value, kind
):
    monkeypatch.setattr(json_lines, "_HEAD_BYTES", 100)
    file = write('{"p": null, "y": 1}\n' * 20 + f'{{"p": {value}, "y": 0}}\n' * 20)
    column = read(file, "p", "y")["p"]
    assert column.isna().tolist() == [True] * 20 + [False] * 20
    assert column.dtype.kind == kind and column[20] == json.loads(value)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            '{"p": 0.1,',
            r"\(expecting property name .* at character \d+\) in line 1001 of t.jsonl",
        ),
        ('{"p": 0.1} {"p": 0.2}', r"more behind it at character 11\) in line 1001"),
        (
            '{"a field": "of thirty characters here", "p": nope}',
            r"""got 'racters here", "p": nope}' \(no value at character 47\)""",
        ),
        (
            '{"q": ' + "9" * 5000 + "} {",
            r"\(Exceeds the limit \(4300 digits\) for integer string conversion\)",
        ),
        ("5", "expected an object in each line, got '5' in line 1001"),
        (
            '{"p": "0.7"}',
            r"""got the text '"0.7"' in line 1001 .*number without quotes""",
        ),
        (
            '{"p": true}',
            "expected numbers in all rows of column 'p'.*the boolean 'true' in line",
        ),
        (
            '{"p": 0.1, "p": 0.2}',
            "expected each field once in an object, got 'p' twice in line 1",
        ),
        ('{"p": {"yes": 0.2}}', "got an object in line 1001 .* such as p.yes"),
        (
            '{"p": ' + "[" * 10**5,
            "some hundred levels at most, got a deeper one in line 1001",
        ),
        ('{"p": "\udcff"}', "got the byte 0xff"),
    ],
)
@pytest.mark.parametrize("size", [3000, None])
def test_hostile_lines_are_told_by_their_number(
    write, monkeypatch, lines, message, size
):
    monkeypatch.setattr(json_lines, "_HEAD_BYTES", 100)
    file = write((GOOD * 1000 + lines + "\n" + GOOD).encode(errors="surrogateescape"))
    with pytest.raises(InvalidInputError, match=message):
        [*iter_table_blocks(file, lambda names: ["p"], size=size)]


def test_a_line_that_fills_the_memory(write, monkeypatch):
    monkeypatch.setattr(csv_text, "MAX_ROW_CHARACTERS", 2000)
    file = write(GOOD * 1000 + f'{{"t": "{"x" * 5000}"}}\n')
    with pytest.raises(
        InvalidInputError, match=r"at most 2,000 characters .* begins in line 1001"
    ):
        [*iter_table_blocks(file, lambda names: ["p"], size=3000)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (GOOD.encode("utf-16"), [0.5]),
        (GOOD.replace("\n", "\r\n") * 2 + "\n \t\r\n\n", [0.5, 0.5]),
        (
            '{"p": NaN}\n{"p": Infinity}\n{"p": -0.0}\n{"p": null}',
            [np.nan, np.inf, -0.0, np.nan],
        ),
        ('{"p": 0.1}\n{}\n{"q": 1}', [0.1, np.nan, np.nan]),
        ('{"p": 1e-320}\n{"p": 0.1000000000000000055511151231257827}', [1e-320, 0.1]),
        ('[{"p": 1},\n\n {"p":\n2}]\n', [1, 2]),
        ('{"p": 1, "z": 1, "z": 2}', [1]),
    ],
)
@pytest.mark.parametrize("name", ["t.jsonl", "t.txt", "t.ndjson.gz"])
def test_what_is_read(write, text, found, name):
    data = text if isinstance(text, bytes) else text.encode()
    file = write(gzip.compress(data) if name.endswith("gz") else data, name)
    np.testing.assert_array_equal(read(file, "p")["p"].astype(float), found)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "t.jsonl", "expected rows in t.jsonl, got an empty file"),
        (" \n\n", "t.jsonl", "got an empty file"),
        ("[]", "t.json", "expected rows in t.json, got none"),
        (
            '[{"p": 1}\n {"p": 2}]',
            "t.json",
            "expected a list of JSON objects .* in line 2",
        ),
        (
            '[{"p": 1}, {"p": [1}]',
            "t.json",
            "expected a list of JSON objects .* in line 1",
        ),
        (
            '[{"p": 1}, 5]',
            "t.json",
            "expected an object in each line, got '5' in object 2",
        ),
        (
            "[" + '{"p": 1},' * 300 + "{}]",
            "t.json",
            "a list of more than 2,000 .* by jq -c",
        ),
        (
            '{\n"p": 1\n}',
            "t.json",
            r"got '\{' .* in line 1 .*jq -c \. puts it into one",
        ),
        (
            json.dumps({"p": dict.fromkeys("abc" * 9, 1)}),
            "t.json",
            r"Do you mean 'p\.a'\?",
        ),
        (
            json.dumps({"p": {i: 1 for i in range(99)}}),
            "t.json",
            "orient='records', lines=True",
        ),
        ('{"p.a": 1, "p": {"a": 2}}', "t.jsonl", "got 2 columns of that name"),
        (GOOD.encode("utf-16-le"), "t.jsonl", "name utf-16-le or utf-16-be as csv="),
        ("p,y\n0.5,1\n", "t.jsonl", "expected a JSON object in each line, got 'p,y'"),
    ],
)
def test_what_is_refused(write, monkeypatch, text, name, message):
    monkeypatch.setattr(csv_text, "MAX_ROW_CHARACTERS", 2000)
    with pytest.raises(InvalidInputError, match=message):
        read(write(text, name), "p.a" if "p.a" in str(text) else "p")


def test_a_column_that_comes_late(write, monkeypatch):
    monkeypatch.setattr(json_lines, "_HEAD_BYTES", 100)
    with raises_invalid_input(
        InvalidInputError, value="p, y", remark=".* first MB: put a line that has"
    ):
        read(write(GOOD * 10 + '{"p": 1, "late": 2}'), "late")


@run_every_case(
    ("values", "kind"),
    [
        ([0, 1], int),
        ([0.0, 2.0], float),
        ([False, True], bool),
        (["0", "1"], str),
        (["no", "yes"], str),
        (["NA", "null"], str),
    ],
)
def test_labels_keep_their_kind(write, values, kind):
    lines = "".join(
        json.dumps({"y": values[i % 2], "p": 0.5}) + "\n" for i in range(50)
    )
    file = write(lines)
    labels = read_label_column_with_missing(load_table(file, lambda names: ["y"]), "y")
    assert {type(label) for label in labels.tolist()} == {kind}
    classes = find_distinct_labels(file, label="y").tolist()
    assert classes == values and {type(label) for label in classes} == {kind}
    assert summarize(file, label="y", prob="p", classes=classes).n_samples == 50


def test_whole_numbers_stay_exact_where_some_are_missing(write, monkeypatch):
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 40)
    file = write(
        "".join(f'{{"id": {i}}}\n' for i in ("null", 2**53 + 1, 3, 2**70, "null", 5))
    )
    assert [*read(file, "id")["id"].dropna()] == [2**53 + 1, 3, 2**70, 5]


def test_memory_does_not_grow_with_the_lines(write, monkeypatch):
    monkeypatch.setattr("sklearn_calib._files.tables._BLOCK_BYTES", 50_000)
    monkeypatch.setattr(json_lines, "_HEAD_BYTES", 10_000)
    peaks = []
    for rows in (500, 2000):
        file = write(f'{{"p": 0.5, "t": "{"x" * 1000}"}}\n' * rows)
        tracemalloc.start()
        assert len(read(file, "p")) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 5e5, "1.5 million characters more"


# -- the commands ---------------------------------------------------------------------------------


@pytest.fixture
def tables(write):
    """The same rows as csv, JSON lines (plain and packed), and Arrow; a map of them."""
    rng = np.random.default_rng(0)
    p = rng.random(300).round(6)
    frame = pd.DataFrame(
        {"p": p, "q": (p**2).round(6), "y": np.where(rng.random(300) < p, "yes", "no")}
    )
    frame["day"] = np.arange(300) // 100
    frame.to_csv("t.csv", index=False)
    lines = "".join(
        json.dumps(
            {
                "id": f"<b>{i}",
                "scores": {"yes": a, "no": [1 - a]},
                "q": q,
                "y": y,
                "day": d,
            }
        )
        + "\n"
        for i, (a, q, y, d) in enumerate(frame.itertuples(index=False))
    )
    write(lines)
    write(gzip.compress(lines.encode()), "packed.jsonl.gz")
    with pa.CompressedOutputStream("packed.ndjson.zst", "zstd") as file:
        file.write(lines.encode())
    feather.write_feather(frame, "t.feather", chunksize=70)
    with pa.ipc.new_stream("t.arrow", pa.Table.from_pandas(frame).schema) as stream:
        stream.write_table(pa.Table.from_pandas(frame), 70)
    to_json(PlattScaling().fit(p, frame["y"], classes=["no", "yes"]), "map.json")
    return frame


FILES = ["t.jsonl", "packed.jsonl.gz", "packed.ndjson.zst", "t.feather", "t.arrow"]


def columns_of(file):
    return "p" if file.startswith("t.") and "json" not in file else "scores.yes"


@pytest.mark.parametrize("file", FILES)
def test_each_kind_gives_the_summary_of_the_csv(tables, file):
    plan = {"label": "y", "classes": ["no", "yes"], "by": "day"}
    wanted = summarize("t.csv", prob="p", **plan)
    assert summarize(file, prob=columns_of(file), **plan) == wanted
    assert find_distinct_labels(file, label="y").tolist() == ["no", "yes"]


@pytest.mark.parametrize("file", FILES)
def test_monitor_and_apply_of_each_kind(tables, capsys, file):
    said = []
    for name, column in (("t.csv", "p"), (file, columns_of(file))):
        main(
            [
                "monitor",
                name,
                "--label",
                "y",
                "--prob",
                column,
                "--positive",
                "yes",
                "--time",
                "day",
            ]
        )
        said.append(capsys.readouterr().out.removeprefix(f"{name}: "))
        out = ["--name", "new", "--out", f"{name}.out.jsonl"]
        assert main(["apply", "map.json", name, "--prob", column, *out]) == 0
        capsys.readouterr()
    assert said[0] == said[1] and "300 rows" in said[0]
    wanted, found = (
        pd.read_json(f"{name}.out.jsonl", lines=True) for name in ("t.csv", file)
    )
    np.testing.assert_array_equal(found["new"], wanted["new"])
    pd.testing.assert_series_equal(wanted["q"], tables["q"])


@pytest.mark.slow
def test_audit_compare_and_fit_of_json_lines(tables, capsys):
    said = []
    for name, column in (("t.csv", "p"), ("t.jsonl", "scores.yes")):
        prob = ["--label", "y", "--prob", column, "--positive", "yes"]
        assert (
            main(["audit", name, *prob, "--name", "m", "--out", "none", "--no-advice"])
            == 0
        )
        audit = capsys.readouterr().out.partition("\n")[2]
        both = ["--prob", "q", "--name", "a", "--name", "b"]
        assert main(["compare", name, *prob, *both, "--resamples", "20"]) == 0
        compare = capsys.readouterr().out
        fit = ["--recalibrator", "platt", "--allow", "no-gain", "--out", "new.json"]
        assert main(["fit", name, *prob, *fit]) == 0
        said.append((audit, compare, capsys.readouterr().out))
    assert said[0] == said[1]


def test_every_field_stays_as_it_was(write, capsys, monkeypatch, tables):
    rows = [
        '{"z":  1.50e0,"p": 0.25, "a": {"b": [1, {"c": "\\u00e9"}], "p": 2},"i": 9007199254740993}',
        ' {"p":0.5,"t":"}, {\\n\u2028","z":0.10,"z":2} \t',
        "",
        '{"p":1e-3 , "new.0": "é"  }\r',
    ]
    write("\ufeff" + "\n".join(rows))
    apply = ["apply", "map.json", "t.jsonl", "--prob", "p", "--out"]
    assert main([*apply, "out.jsonl"]) == 0
    lines = Path("out.jsonl").read_bytes().decode().split("\n")
    for line, row in zip(lines, [row for row in rows if row], strict=False):
        before, after = row.strip(), line.strip()
        assert after.startswith(before[:-1].rstrip()) and line.endswith(
            "\r"
        ) == row.endswith("\r")
        assert [*json.loads(after)] == [*json.loads(before), "p_calibrated"]
    assert len(lines) == 4 and lines[3] == ""
    for name in ("out.csv", "out.parquet"):
        assert main([*apply, name]) == 2
        assert "expected a name that ends in .jsonl" in capsys.readouterr().err
    assert main([*apply, "-"]) == 0
    assert capsys.readouterr().out.replace("\r", "") == "\n".join(lines).replace(
        "\r", ""
    )


def test_the_objects_of_a_list_stay_as_they_are(write, tables):
    """Spelling of numbers, commas and brackets in text, and a field that comes twice."""
    objects = [
        '{"p": 0.50, "note": "a, ]}\\"[", "n": 1E2}',
        '{"p": 2e-1, "z": 1, "z": [2, {}]}',
        '{"p": 0.7, "big": 123456789012345678901234567890, "none": NaN}',
    ]
    file = write(" [ " + " ,\n".join(objects) + "\n]\n", "list.json")
    assert read(file, "p")["p"].tolist() == [0.5, 0.2, 0.7]
    assert main(["apply", "map.json", file, "--prob", "p", "--out", "list.jsonl"]) == 0
    lines = Path("list.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(objects)
    for line, text in zip(lines, objects, strict=True):
        assert line.startswith(text.removesuffix("}"))


def test_json_lines_on_the_standard_input(tables, monkeypatch, capsys):
    found = []
    for name in ("t.jsonl", "packed.ndjson.zst"):
        content = Path(name).read_bytes()
        monkeypatch.setattr(
            "sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
        )
        main(
            [
                "monitor",
                "-",
                "--label",
                "y",
                "--prob",
                "scores.yes",
                "--positive",
                "yes",
            ]
        )
        assert capsys.readouterr().out.startswith("-: ")
        monkeypatch.setattr(
            "sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
        )
        assert (
            main(["apply", "map.json", "-", "--prob", "scores.yes", "--out", "-"]) == 0
        )
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    assert json.loads(found[0].splitlines()[7])["id"] == "<b>7"


def test_a_new_name_that_a_later_row_has(write, capsys, monkeypatch, tables):
    monkeypatch.setattr(json_lines, "_HEAD_BYTES", 40)
    write(
        GOOD * 10
        + '{"p": 0.5, "t": "p_calibrated"}\n'
        + '{"p": 0.5, "p_calibrated": 1}\n'
    )
    apply = ["apply", "map.json", "t.jsonl", "--prob", "p", "--out", "out.jsonl"]
    assert main(apply) == 2
    assert "got 'p_calibrated', which row 11 of t.jsonl has" in capsys.readouterr().err
    assert not os.path.exists("out.jsonl")
    assert main([*apply, "--name", "new"]) == 0


def test_missing_probabilities_become_null(write, tables):
    write('{"p": 0.5}\n{"q": 1}\n{}\n')
    apply = ["apply", "map.json", "t.jsonl", "--prob", "p", "--out", "out.jsonl"]
    assert main(apply) == 2
    assert main([*apply, "--missing", "keep"]) == 0
    lines = [
        json.loads(line)
        for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert lines[1] == {"q": 1, "p_calibrated": None} and lines[2] == {
        "p_calibrated": None
    }


def test_types_of_other_tables_in_json_lines(tables, capsys):
    table = pa.table({"p": [0.25, 0.5], "f": [float("nan"), 1.5], "l": [[1, None], []]})
    table = table.append_column("d", pa.array([0, None], pa.date32()))
    feather.write_feather(table, "x.feather")
    assert (
        main(["apply", "map.json", "x.feather", "--prob", "p", "--out", "x.jsonl"]) == 0
    )
    first, second = (
        json.loads(line)
        for line in Path("x.jsonl").read_text(encoding="utf-8").splitlines()
    )
    del first["p_calibrated"], second["p_calibrated"]
    assert first == {"p": 0.25, "f": None, "l": [1, None], "d": "1970-01-01"}
    assert second == {"p": 0.5, "f": 1.5, "l": [], "d": None}
    assert (
        main(["apply", "map.json", "x.feather", "--prob", "p", "--out", "x.parquet"])
        == 0
    )
    assert pd.read_parquet("x.parquet")["f"].tolist()[1] == 1.5
    assert (
        main(
            ["apply", "map.json", "x.feather", "t.csv", "--prob", "p", "--out", "x.csv"]
        )
        == 2
    )
    assert (
        "expected files of one format, got arrow x.feather and csv"
        in capsys.readouterr().err
    )


def test_folders_and_patterns(tables, tmp_path):
    plan = {"label": "y", "prob": "scores.yes", "classes": ["no", "yes"]}
    (tmp_path / "day=1").mkdir()
    os.rename("t.jsonl", "day=1/t.jsonl")
    assert summarize("day=1", **plan) == summarize("day=*/*.jsonl", **plan)
    os.rename("t.csv", "day=1/t.csv")
    with raises_invalid_input(ValueError, value="csv and JSON lines in 'day=1'"):
        summarize("day=1", **plan)


def test_number_columns_of_text_alone(write):
    table = load_table(write('{"p": "0.5"}\n{"p": "50e-2"}\n'), lambda names: ["p"])
    assert read_finite_numbers(table, "p").tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("file", "ending"),
    [("a.jsonl.gz", "jsonl"), ("a.csv", "csv"), ("day=*/a.parquet", "parquet")],
)
def test_the_commands_of_repair_keep_the_format(file, ending):
    options = build_parser().parse_args(
        ["audit", file, "--label", "y", "--prob", "a.b"]
    )
    found = format_fit_and_apply_commands(options).splitlines()[1]
    assert found == (
        f"sklearn-calib apply map.json new.{ending} --prob a.b --out repaired.{ending}"
    )


def test_an_arrow_file_that_breaks_off(tables, capsys):
    whole = Path("t.feather").read_bytes()
    for size in (3, 100, len(whole) // 2):
        Path("half.feather").write_bytes(whole[:size])
        for words in (
            ["monitor", "half.feather", "--label", "y"],
            ["apply", "map.json"],
        ):
            more = ["half.feather", "--out", "x.csv"] if words[0] == "apply" else []
            assert main([*words, *more, "--prob", "p"]) == 2
            said = capsys.readouterr().err
            assert (
                "half.feather" in said
                and said.count("\n") == 1
                and "report it" not in said
            )
    assert not os.path.exists("x.csv")


def test_the_name_of_a_list_stands_for_its_values(write, capsys, tables):
    write("".join(f'{{"probs": [{1 - p!r}, {p!r}], "y": "{y}"}}\n' for p, y in zip(
        tables["p"].tolist(), tables["y"], strict=True)))  # fmt: skip
    said = []
    for names in ("probs", "probs.0,probs.1"):
        assert (
            main(["apply", "map.json", "t.jsonl", "--prob", names, "--out", "o.jsonl"])
            == 0
        )
        assert "new: probs.0_calibrated, probs.1_calibrated" in capsys.readouterr().out
        main(["monitor", "t.jsonl", "--label", "y", "--prob", names])
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and "300 rows" in said[0]
    assert main(["monitor", "t.jsonl", "--label", "y", "--prob", "prob"]) == 2


# -- workbooks ------------------------------------------------------------------------------------


@pytest.fixture
def book(tables):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append([])
    sheet.append([*tables.columns, "mixed"])
    for number, row in enumerate(tables.itertuples(index=False)):
        sheet.append([*row, ["a", 1, None][number % 3]])
    sheet.cell(5, 2).value = "#N/A"
    book.create_sheet("empty")
    book.save("t.xlsx")
    return book


@pytest.mark.slow
def test_a_workbook(book, tables, capsys):
    assert read_all_column_names("t.xlsx", lambda names: []) == [
        *tables.columns,
        "mixed",
    ]
    plan = {"label": "y", "prob": "p", "classes": ["no", "yes"]}
    assert summarize("t.xlsx", **plan) == summarize("t.csv", **plan)
    assert summarize("*.xlsx", **plan) == summarize("t.csv", **plan)
    assert np.flatnonzero(read("t.xlsx", "q")["q"].isna()).tolist() == [2]
    for name in ("t.csv", "t.xlsx"):
        assert (
            main(["apply", "map.json", name, "--prob", "p", "--out", f"{name}.parquet"])
            == 0
        )
    wanted, found = (pd.read_parquet(f"{name}.parquet") for name in ("t.csv", "t.xlsx"))
    assert found["p_calibrated"].tolist() == wanted["p_calibrated"].tolist()
    assert found["mixed"].tolist()[:2] == ["a", "1"]
    book["empty"].append(["p"])
    book.save("two.xlsx")
    assert main(["apply", "map.json", "two.xlsx", "--prob", "p", "--out", "x.csv"]) == 2
    assert (
        "expected one sheet with rows in two.xlsx, got 2 sheets ('Sheet', 'empty')"
        in (capsys.readouterr().err)
    )


@pytest.mark.parametrize("stated", [b"A1:B5", b"A1:A21", b"A1"])
def test_a_workbook_that_states_too_few_rows(stated, tmp_path, monkeypatch):
    """Programs that write sheets in passing leave the range of the first rows."""
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    book = openpyxl.Workbook()
    for row in [("y", "p"), *((i % 2, i / 20) for i in range(20))]:
        book.active.append(row)
    book.save("whole.xlsx")
    with (
        zipfile.ZipFile("whole.xlsx") as old,
        zipfile.ZipFile("stale.xlsx", "w") as new,
    ):
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("sheet1.xml"):
                assert b'<dimension ref="A1:B21"' in text
                text = text.replace(b'ref="A1:B21"', b'ref="' + stated + b'"')
            new.writestr(name, text)
    found = read("stale.xlsx", "y", "p")
    pd.testing.assert_frame_equal(found, read("whole.xlsx", "y", "p"))
    assert len(found) == 20
