"""Whatever reads tables reads them in blocks of seven rows as in one: every command, every option.

Read off the parser and the signature of `summarize`: an option that is not in the table
below fails here, as does an option of which no value changes anything.
"""

import argparse
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from sklearn_calib._cli import build_parser, main
from sklearn_calib._files import arrow, csv_text
from sklearn_calib.export import to_json
from sklearn_calib.recalibrators import get_recalibrator
from sklearn_calib.summary import summarize

N, SEVEN = 90, 7
THREE = {"--label": "z", "--prob": "a,b,c"}
FIRST = {"--prob": "r", "--positive": "0"}  # the positive class sorts first
CONFIDENCE = {"--label": "z", "--prob": "sure", "--prediction": "guess"}
#: What each option is tried with, beside what the command needs; lists are several
#: tries.
TRIED = {
    "--label": [THREE],
    "--prob": {"--prob": "q"},
    "--classes": THREE | {"--classes": "v,u,t", "--prob": "c,b,a"},
    "--positive": [FIRST, FIRST | {"--weight": "w"}, FIRST | {"--cluster": "shop"}],
    "--weight": [{"--weight": "w"}, THREE | {"--weight": "w"}],
    "--cluster": [
        {"--cluster": "shop"},
        THREE | {"--cluster": "shop", "--weight": "w"},
    ],
    "--soft-labels": [
        {"--label": "share", "--soft-labels": True},
        {"--label": "n0,n1", "--prob": "r,p", "--soft-labels": True},
    ],
    "--prediction": CONFIDENCE,
    "--missing": [
        THREE | {"--missing": "absent", "--prob": "oa,ob,oc"},
        {"--prob": "hole", "--missing": "drop"},
    ],
    "--scale": [
        {"--prob": "mark", "--scale": "1,10"},
        CONFIDENCE | {"--scale": "0,1"},
        {"--prob": "hundred", "--scale": "percent"},
        {"--prob": "sign"},
    ],
    "--tolerance": [
        {"--prob": "near,p", "--tolerance": "0.01"},
        {"--prob": "no,half", "--tolerance": "any"},
    ],
    "--by": {"--by": "shop"},
    "--features": {"--features": "x,shop"},
    "--grades": {"--grades": "0.1,0.3,0.6"},
    "--id": {"--id": "row"},
    "--time": {"--time": "day"},
    "--allow": {"--allow": "remote"},
    "--alarm": {"--alarm": "test"},
    "--run-length": {"--run-length": "50", "--prob": "q"},
    "--alpha": {"--alarm": "test", "--alpha": "0.9"},
    "--classwise": THREE | {"--classwise": True},
    "--recalibrator": [{"--recalibrator": "isotonic"}],
    "--level": {"--level": "0.6"},
    "--resamples": {"--resamples": "30"},
    "--system": {"--system": "side", "--cluster": "item"},
    "--score": {"--score": "q"},
    "--bounds": {"--label": "minutes", "--bounds": "0,9"},
    "--width": {"--width": "0.2"},
    "--error": {"--error": "0.3"},
    "--recalibrate": {"--recalibrate": True},
    "--no-advice": {},
    "--name": {"--name": "one"},
    "--fail-if": {"--fail-if": "log_loss > 0.1"},
}
#: What a command needs where it differs from the others.
OWN = {
    ("audit", "--allow"): {"--prob": "r", "--allow": "order"},
    ("fit", "--allow"): {"--prob": "r", "--allow": "order"},
    ("monitor", "--allow"): {"--prob": "r", "--allow": "order"},
    ("estimate-mean", "--label"): {"--label": "minutes"},
    ("estimate-mean", "--positive"): [
        {"--positive": "0"},
        {"--positive": "0", "--cluster": "shop"},
    ],
    ("estimate-mean", "--weight"): {"--weight": "w"},
    ("estimate-mean", "--cluster"): [
        {"--cluster": "shop"},
        {"--cluster": "shop", "--weight": "w"},
    ],
    ("estimate-mean", "--scale"): {"--score": "mark", "--scale": "1,10"},
    ("estimate-mean", "--missing"): {"--score": "hole", "--missing": "drop"},
    ("sample-size", "--missing"): {"--prob": "hole", "--missing": "drop"},
    ("sample-size", "--weight"): {"--weight": "w"},
    ("sample-size", "--scale"): {"--prob": "hundred", "--scale": "percent"},
    ("monitor", "--positive"): FIRST,
    ("fit", "--missing"): [
        THREE
        | {
            "--missing": "absent",
            "--prob": "oa,ob,oc",
            "--recalibrator": "temperature",
        },
        {"--prob": "hole", "--missing": "drop"},
    ],
    ("fit", "--scale"): [
        {"--prob": "mark", "--scale": "1,10"},
        CONFIDENCE | {"--scale": "0,1"},
        {"--prob": "logit", "--scale": "logits"},
        {"--prob": "hundred", "--scale": "percent"},
    ],
    ("apply", "--classes"): {"--prob": "r,p", "--classes": "0,1"},
    ("apply", "--positive"): {"--prob": "r", "--positive": "0"},
    ("apply", "--missing"): [
        {"--prob": "r,p", "--missing": "absent"},
        {"--prob": "hole", "--missing": "keep"},
    ],
    ("apply", "--scale"): [
        {"--prob": "mark", "--scale": "1,10"},
        {"--prob": "logit", "--scale": "logits", "--map": "logits.json"},
        {"--prob": "hundred", "--scale": "percent"},
    ],
    ("compare", "--classes"): THREE | {"--classes": "v,u,t", "--prob": "c,b,a"},
    ("compare", "--cluster"): [
        {"--cluster": "shop"},
        {"--cluster": "shop", "--weight": "w"},
        THREE | {"--cluster": "shop", "--weight": "w"},
    ],
    ("compare", "--name"): {"--name": "one", "--other-name": "two"},
}
#: Options that no rows pass through, each with its reason.
ELSEWHERE = {
    **dict.fromkeys(("--help", "--quiet", "--wait", "--date"), "says nothing of rows"),
    **dict.fromkeys(
        ("--out", "--json", "--markdown", "--save", "--state"), "writes a result"
    ),
    **dict.fromkeys(("--tabulate", "--simplify"), "is of the map"),
    **dict.fromkeys(("--read",), "is in one file, below"),
    "--skip-rows": "is of lines above the names: tests/test_cli_messy_files.py",
    **dict.fromkeys(("--dask", "--query"), "only brings the file"),
}
MORE = {
    "audit": ["--out", "none", "--json", "out"],
    "fit": ["--out", "out", "--allow", "no-gain", "--date", "2020-01-01"],
    "compare": ["--json", "out"],
    "apply": ["--out"],
    "estimate-mean": ["--json", "out"],
    "sample-size": ["--json", "out"],
    "monitor": ["--state", "out"],
}
DEFAULTS = {
    "audit": {"--label": "y", "--prob": "p", "--resamples": "3", "--no-advice": True},
    "fit": {"--label": "y", "--prob": "p", "--recalibrator": "platt"},
    "compare": {"--label": "y", "--prob": "p", "--resamples": "20"},
    "apply": {"--prob": "p"},
    "sample-size": {"--prob": "p", "--error": "0.2"},
    "estimate-mean": {"--label": "human", "--score": "p"},
    "monitor": {"--label": "y", "--prob": "p"},
}
KINDS = ("csv", "jsonl", "parquet", "arrow")


def commands():
    """The options of each command that reads tables, by its name."""
    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                whole = name == "audit-multilabel"  # tests/test_report_labels.py
                if not whole and any(one.dest == "files" for one in command._actions):
                    found = [one.option_strings for one in command._actions]
                    yield name, [names for names in found if names]


def tries():
    for command, options in commands():
        yield command, "plain", {}
        for names in options:
            if set(names) & set(ELSEWHERE):
                continue
            name = next((one for one in names if one in TRIED), None)
            given = OWN.get((command, name), TRIED.get(name))
            given = given if isinstance(given, list) else [given]
            for number, one in enumerate(given):
                yield command, f"{names[0]}{number or ''}", one


def table(seed=0):
    """Rows in which every option finds what it is about; nothing is special in the first ones."""
    rng = np.random.default_rng(seed)
    same = np.random.default_rng(0)
    z = 1.5 * same.normal(size=N)
    p = 1 / (1 + np.exp(-z - 0.5 * seed * rng.normal(size=N)))
    law = same.dirichlet(np.ones(3), N)
    abc = 0.8 * law + 0.2 * rng.dirichlet(np.ones(3), N)
    event, place = (
        same.random(N) < 1 / (1 + np.exp(-z)),
        (same.random((N, 1)) > law.cumsum(axis=1)).sum(axis=1),
    )
    at, votes = np.arange(N), same.integers(1, 5, N)
    ones = same.binomial(votes, 1 / (1 + np.exp(-z)))
    y = event.astype(int)
    some = np.where(
        (at % 11 == 8)[:, None] & (place[:, None] < 2) & [0, 0, 1], np.nan, abc
    )
    some /= np.nansum(some, axis=1, keepdims=True)
    p = p.round(4)
    return pd.DataFrame(
        {
            "y": y,
            "p": p,
            "r": 1 - p,
            "q": (0.1 + 0.8 * p**2).round(6),
            "no": 0.5 - p / 2,
            "half": p / 2,
            "near": 1.002 - p,
            "hundred": 100 * p,
            "sign": [f"{100 * one:.2f}%" for one in p],
            "mark": 1 + 9 * p,
            "logit": np.log(p / (1 - p)),
            "hole": np.where(at % 13 == 9, np.nan, p),
            "z": np.array([*"tuv"])[np.minimum(place, 2)],
            **dict(zip("abc", abc.T, strict=True)),
            **dict(zip(("oa", "ob", "oc"), some.T, strict=True)),
            "sure": abc.max(axis=1),
            "guess": np.array([*"tuv"])[abc.argmax(axis=1)],
            "w": 1.0 + at % 4,
            "shop": [f"shop {i}" for i in at * 7 % 15 % 9],
            "item": at // 2,
            "side": np.array(["old", "new"])[at % 2],
            "share": ones / votes,
            "n0": votes - ones,
            "n1": ones,
            "human": np.where(at % 3 == 0, y, np.nan),
            "minutes": np.where(at % 3 == 0, 3 * p + same.random(N), np.nan),
            "x": same.random(N),
            "day": 20260101 + at // 5,
            "row": at + 17,
        }
    )


def write(frame, file):
    kind = file.rpartition(".")[2]
    if kind == "csv":
        frame.to_csv(file, index=False)
    elif kind == "jsonl":
        frame.to_json(file, orient="records", lines=True, double_precision=15)
    elif kind == "parquet":
        frame.to_parquet(file)
    else:
        pa.feather.write_feather(
            pa.Table.from_pandas(frame), file, compression="uncompressed"
        )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two models' tables of the same rows in each kind of file, and a map."""
    folder = tmp_path_factory.mktemp("tables")
    for number, name in enumerate(("t", "u")):
        frame = table(number)
        for kind in KINDS:
            write(frame, str(folder / f"{name}.{kind}"))
    frame = table()
    fitted = get_recalibrator("platt").fit(frame["p"], frame["y"])
    to_json(fitted, folder / "map.json")
    to_json(fitted, folder / "logits.json", input="logits")
    return folder


class Blocks:
    """Every block of rows that a reader of files has given."""

    def __init__(self):
        self.count = 0

    def text(self, stream, encoding, sep, size, file, title=""):
        lines, rest = [], []
        for block in csv_text.iter_text_blocks(
            stream, encoding, sep, size, file, title
        ):
            lines += block.splitlines(keepends=True)
        head = 0 if sep is None or not lines[0].startswith("y,") else 1
        rest = [*range(SEVEN + head, len(lines), SEVEN)]
        for start, end in zip([0, *rest], [*rest, len(lines)], strict=True):
            self.count += 1
            yield "".join(lines[start:end])

    def arrow(self, source, batch_size, columns=None, group=None, first=0):
        for batch in arrow.iter_batches(source, SEVEN, columns, group, first):
            self.count += 1
            yield batch


@pytest.fixture
def small(monkeypatch):
    """What makes readers give blocks of seven rows; states how many there were."""

    def begin():
        blocks = Blocks()
        for name, module in [*sys.modules.items()]:
            if not name.startswith(
                ("sklearn_calib._files", "sklearn_calib._cli", "sklearn_calib.su")
            ):
                continue
            for found, wrong in (
                ("iter_text_blocks", blocks.text),
                ("iter_batches", blocks.arrow),
            ):
                if (
                    found in vars(module)
                    and name != "sklearn_calib._files.csv_text"
                    and (name != "sklearn_calib._files.arrow")
                ):
                    monkeypatch.setattr(module, found, wrong)
            for found in ("_BATCH_ROWS", "_BLOCK_ROWS", "PIECE_ROWS"):
                if found in vars(module):
                    monkeypatch.setattr(module, found, SEVEN)
        return blocks

    return begin


NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def alike(one, other):
    """Equal but for the last digits of numbers, which are sums in another order."""
    if one == other:
        return
    assert NUMBER.sub("#", one) == NUMBER.sub("#", other)
    first, second = (
        np.array(NUMBER.findall(text), dtype=float) for text in (one, other)
    )
    np.testing.assert_allclose(second, first, rtol=1e-7, atol=1e-9)


def run(capsys, command, kind, given, folder):
    out = Path(f"out.{kind}" if command == "apply" else "out")
    out.unlink(missing_ok=True)
    names = [str(folder / f"t.{kind}")]
    if command == "compare":
        names.append(str(folder / f"u.{kind}"))
    more = dict(DEFAULTS[command] | given)
    map_ = str(folder / more.pop("--map", "map.json"))
    words = [command, *([map_] if command == "apply" else []), *names]
    other = more.pop("--other-name", None)
    for name, value in more.items():
        words += [name] if value is True else [name, value]
    words += ["--name", other] if other else []
    words += [*MORE[command], *([str(out)] if command == "apply" else [])]
    code = main(words)
    said = capsys.readouterr()
    found = ""
    if out.exists():
        binary = kind in ("parquet", "arrow") and command == "apply"
        found = (
            pd.read_parquet(out).to_csv() if binary else out.read_text(encoding="utf-8")
        )
    found = re.sub(r'"created": "[^"]*"', "", found)
    return code, said.out, said.err, found


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)


def marks(command, place, kind):
    """Each try has one kind of file; the other kinds are for the weekly run."""
    if place % 3 != kind:
        return pytest.mark.cross
    return (
        ()
        if command not in ("audit", "compare") and place % 12 == kind
        else pytest.mark.slow
    )


TRIES = [*tries()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "option", "given", "kind"),
    [
        pytest.param(
            *one,
            kind,
            id=f"{one[0]}-{one[1]}-{kind}",
            marks=marks(one[0], place, KINDS.index(kind)),
        )
        for place, one in enumerate(TRIES)
        for kind in KINDS[:3]
    ],
)
@pytest.mark.whole
def test_blocks_of_seven_rows(command, option, given, kind, files, small, here, capsys):
    assert given is not None, (
        f"{command} {option}: a value in TRIED, or in ELSEWHERE why not"
    )
    whole = run(capsys, command, kind, given, files)
    assert whole[0] in (0, 1, 3), whole[2]
    blocks = small()
    pieces = run(capsys, command, kind, given, files)
    at_once = command in ("estimate-mean", "sample-size")
    assert option != "plain" or at_once or blocks.count > N // SEVEN
    assert pieces[0] == whole[0], pieces[2]
    for one, other in zip(whole[1:], pieces[1:], strict=True):
        alike(one, other)


# -- summarize --------------------------------------------------------------------------------

USUAL = {"label": "y", "prob": "p", "classes": [0, 1]}
CLASSES = {"label": "z", "prob": ["a", "b", "c"], "classes": ["t", "u", "v"]}
#: What each argument is tried with.
SUMMARIZED = {
    "label": [CLASSES],
    "prob": [{"prob": "q"}],
    "weight": [{"weight": "w"}, {"weight": "w", "prob": "r", "pos_label": 0}],
    "counts": [{"counts": "n1"}],
    "by": [{"by": "shop"}, {"by": ["shop", "day"], "weight": "w"}],
    "n_jobs": [],
    "max_cells": [{"max_cells": 4096}],
    "multiclass": [CLASSES | {"multiclass": "classwise"}],
    "classes": [{"label": "z", "prob": ["c", "b", "a"], "classes": ["v", "u", "t"]}],
    "pos_label": [{"prob": "r", "pos_label": 0}],
    "csv": [],
    "drop_missing": [{"prob": "hole", "drop_missing": True}],
    "soft_labels": [
        {"label": "share", "soft_labels": True, "classes": None},
        {
            "label": ["n0", "n1"],
            "prob": ["r", "p"],
            "soft_labels": True,
            "by": "shop",
            "classes": None,
        },
    ],
}
NO_ROWS = ("query", "in_database", "data", "progress", "_draw")


@pytest.mark.filterwarnings(
    "ignore:.*left out:sklearn_calib.exceptions.CalibrationWarning"
)
@pytest.mark.filterwarnings("ignore:.*without missing values")
@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("kind", [*KINDS, "frame", "table"])
def test_summaries_of_blocks_of_seven_rows(kind, files, small):
    """Equal summaries, from files and from tables in memory; each argument changes something."""
    names = {*inspect.signature(summarize).parameters} - {*NO_ROWS}
    assert names == {*SUMMARIZED}
    data = str(files / f"t.{kind}")
    if kind in ("frame", "table"):
        data = table() if kind == "frame" else pa.Table.from_pandas(table())
    given = [
        USUAL,
        *(USUAL | one for several in SUMMARIZED.values() for one in several),
    ]
    whole = [summarize(data, **one) for one in given]
    small()
    for one, expected in zip(given, whole, strict=True):
        assert summarize(data, **one) == expected, one
    for one, expected in zip(given[1:], whole[1:], strict=True):
        assert expected != whole[0], f"{one} changes nothing"
