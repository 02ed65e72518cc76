"""Calls of `stored_numbers` that are whole commands: what they print, write and reject.

A case is one or more lines of words, run in turn in a folder that holds the tables of
`write_tables`. The numbers of all that is printed and written are compared, and a
checksum of the other words.
"""

import contextlib
import functools
import io
import json
import os
import re
import shutil
import tempfile
import warnings
import zlib
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from stored_calls import OTHER_NUMBERS, numbers_in

from sklearn_calib._cli import main
from sklearn_calib.datasets import make_overconfident

N = 120
ROWS = "--label y --prob p"
SHARES = "--label a,b,c --prob p0,p1,p2 --soft-labels"
THREE = "--label k --prob p0,p1,p2"
FEW = "--resamples 5 --no-advice --out none"
AUDIT = f"audit t.csv {ROWS} {FEW}"
FIT = f"fit t.csv {ROWS} --allow no-gain --out m.json"
FIT_THREE = f"fit k.csv {THREE} --recalibrator vector --allow no-gain --out m.json"
APPLY = f"{FIT} --recalibrator histogram_binning"
COMPARE = f"compare t.csv u.csv {ROWS} --resamples 20"
MONITOR = f"monitor t.csv {ROWS} --state s.json"
MEAN = "estimate-mean few.csv --label y --score p"

CASES = {
    "audit": f"{AUDIT} --json r.json --markdown r.md",
    "audit, page": f"audit t.csv {ROWS} --resamples 5 --out r.html",
    "audit, advice": f"audit t.csv {ROWS} --resamples 5 --out none --json r.json",
    "audit, weights": f"{AUDIT} --weight w --json r.json",
    "audit, groups": f"{AUDIT} --by s,g --json r.json --markdown r.md",
    "audit, features": f"{AUDIT} --features x,s --json r.json",
    "audit, clusters": f"{AUDIT} --cluster g --json r.json",
    "audit, grades": f"{AUDIT} --grades 0.2,0.5 --json r.json --markdown r.md",
    "audit, level": f"{AUDIT} --level 0.6 --json r.json",
    "audit, positive": f"audit words.csv {ROWS} {FEW} --positive yes --json r.json",
    "audit, gate": f"{AUDIT} --fail-if log_loss>0.1",
    "audit, two columns": f"audit two.csv --label y --prob n,p {FEW} --positive 0",
    "audit, missing": f"audit holes.csv {ROWS} {FEW} --missing drop",
    "audit, decimal commas": f"audit comma.csv {ROWS} {FEW} --json r.json",
    "audit, percent": f"audit percent.csv {ROWS} {FEW} --scale percent",
    "audit, logits": f"audit t.csv --label y --prob z {FEW} --scale logits",
    "audit, lines": f"audit t.jsonl {ROWS} {FEW} --json r.json",
    "audit, parquet": f"audit t.parquet {ROWS} {FEW} --json r.json",
    "audit, excel": f"audit t.xlsx {ROWS} {FEW} --json r.json",
    "audit, compressed": f"audit t.csv.gz {ROWS} {FEW} --json r.json",
    "audit, two files": f"audit t.csv u.csv {ROWS} {FEW} --json r.json",
    "audit, three classes": f"audit k.csv {THREE} {FEW} --json r.json --markdown r.md",
    "audit, page of three": f"audit k.csv {THREE} --resamples 5 --out r.html",
    "audit, shares": f"audit k.csv {SHARES} {FEW} --json r.json",
    "audit, confidence": f"audit k.csv --label k --prob top --prediction guess {FEW}",
    "audit, saved": (
        f"{AUDIT} --save sum.parquet",
        f"audit sum.parquet {FEW} --json r.json --markdown r.md",
    ),
    "audit, saved groups": (
        f"{AUDIT} --by s --save sum.parquet",
        f"audit sum.parquet {FEW} --by s --json r.json",
    ),
    "audit, saved three": (
        f"audit k.csv {THREE} {FEW} --save sum.parquet",
        f"audit sum.parquet {FEW} --json r.json --markdown r.md",
    ),
    "audit-multilabel": (
        "audit-multilabel labels.csv --label l0,l1 --prob q0,q1 --resamples 5 "
        "--out none --json r.json --markdown r.md"
    ),
    "audit-multilabel, missing": (
        "audit-multilabel gaps.csv --label l0,l1 --prob q0,q1 --resamples 5 "
        "--out none --missing drop --json r.json"
    ),
    "compare": f"{COMPARE} --json r.json --out r.html",
    "compare, columns": f"compare t.csv {ROWS} --prob q --resamples 20 --json r.json",
    "compare, weights": f"{COMPARE} --weight w --json r.json",
    "compare, clusters": f"{COMPARE} --cluster g --json r.json",
    "compare, identifiers": f"compare t.csv turned.csv {ROWS} --id i --resamples 20",
    "compare, three classes": f"compare k.csv k2.csv {THREE} --resamples 20",
    "fit": FIT,
    "fit, weights": f"{FIT} --weight w --recalibrator isotonic",
    "fit, clusters": f"{FIT} --cluster g",
    "fit, shares": f"fit k.csv {SHARES} --allow no-gain --out m.json",
    "fit, three classes": FIT_THREE,
    "fit, not better": f"fit t.csv {ROWS} --recalibrator histogram_binning --out m.json",
    "apply": (APPLY, "apply m.json u.csv --prob p --out o.csv"),
    "apply, lines": (APPLY, "apply m.json t.jsonl --prob p --out o.jsonl"),
    "apply, parquet": (APPLY, "apply m.json t.parquet --prob p --out o.csv"),
    "apply, excel": (APPLY, "apply m.json t.xlsx --prob p --out o.csv"),
    "apply, name": (APPLY, "apply m.json t.csv --prob p --name new --out o.tsv"),
    "apply, missing": (
        APPLY,
        "apply m.json holes.csv --prob p --missing keep --out o.csv",
    ),
    "apply, three classes": (
        FIT_THREE,
        "apply m.json k2.csv --prob p0,p1,p2 --out o.csv",
    ),
    "apply, a map of logits": (
        "fit t.csv --label y --prob z --scale logits --allow no-gain --out m.json",
        "apply m.json t.csv --prob p --out o.csv",
        "apply m.json t.csv --prob z --scale logits --out o.csv",
    ),
    "apply, classes": (
        FIT_THREE,
        "apply m.json k2.csv --prob p2,p0,p1 --classes c,a,b --out o.csv",
    ),
    "threshold": (APPLY, "threshold m.json --at 0.2,0.5 --json r.json"),
    "threshold, sql": (
        APPLY,
        "threshold m.json --at 0.2,0.5 --sql postgres --names low,middle,high",
    ),
    "export, sql": (APPLY, "export m.json --to sql --prob p --dialect mysql"),
    "export, table": (APPLY, "export m.json --to sql --prob p --into table"),
    "export, c": (APPLY, "export m.json --to c --name f"),
    "export, js": (FIT_THREE, "export m.json --to js"),
    "export, python": (FIT_THREE, "export m.json --to python"),
    "monitor": (MONITOR, f"monitor u.csv {ROWS} --state s.json"),
    "monitor, time": f"{MONITOR} --time t --alarm test --run-length 200",
    "monitor, three classes": f"monitor k.csv {THREE} --state s.json",
    "monitor, again": (MONITOR, MONITOR),
    "estimate-mean": f"{MEAN} --json r.json",
    "estimate-mean, clusters": f"{MEAN} --cluster g --json r.json",
    "estimate-mean, width": f"{MEAN} --width 0.1 --recalibrator platt",
    "sample-size": "sample-size t.csv --prob p --error 0.02,0.1 --json r.json",
    "sample-size, weights": "sample-size t.csv --prob p --error 0.1 --weight w",
}
#: Lines that end with an error or a warning.
REJECTED = f"""
{AUDIT} --level 2
{AUDIT} --weight p9
audit inf.csv {ROWS} {FEW} --weight w
sample-size inf.csv --prob p --error 0.1 --weight w
fit inf.csv {ROWS} --weight w --out m.json
{AUDIT} --by p
{AUDIT} --cluster y
{AUDIT} --grades 0.5,0.2
{AUDIT} --grades 0.2 --cluster g
{AUDIT} --features y
{AUDIT} --positive 7
{AUDIT} --fail-if log_loss
{AUDIT} --fail-if nothing>0.1
{AUDIT} --tolerance 0.1 --scale logits
{AUDIT} --read decimal=; --skip-rows 1
{AUDIT} --read dot=.
{AUDIT} --classes 0
{AUDIT} --recalibrate --save sum.parquet
audit nothing.csv {ROWS} {FEW}
audit t.csv https://example.org/t.csv {ROWS} {FEW}
audit - - {ROWS} {FEW}
audit - t.csv {ROWS} {FEW}
audit empty.csv {ROWS} {FEW}
audit t.csv --label y --prob z {FEW}
audit t.csv --label y --prob p,q,z {FEW}
audit t.csv --label p --prob y {FEW}
audit t.csv --label yy --prob p {FEW}
audit t.csv --prob p {FEW}
audit words.csv {ROWS} {FEW}
audit holes.csv {ROWS} {FEW}
audit k.csv {THREE} {FEW} --positive a
audit k.csv {THREE} {FEW} --grades 0.3
audit k.csv {SHARES} {FEW} --by k
audit k.csv --label a,b --prob p0,p1,p2 {FEW} --soft-labels
audit-multilabel labels.csv --label l0 --prob q0,q1 --out none
audit-multilabel labels.csv --label q0,l1 --prob q0,q1 --out none
compare t.csv {ROWS}
compare t.csv k.csv {ROWS}
compare t.csv turned.csv {ROWS}
compare t.csv u.csv {ROWS} --id x
compare t.csv u.csv {ROWS} --name one
fit t.csv {ROWS} --recalibrator platy --out m.json
fit t.csv {ROWS} --recalibrator online --out m.json --cluster g
fit t.csv {ROWS} --out m.txt
fit k.csv {SHARES} --recalibrator online --out m.json
fit few.csv {ROWS} --out m.json
apply m.json t.csv --out o.csv
apply m.json t.csv --prob p --out o.doc
apply m.json t.csv --prob p --name p --out o.csv
apply m.json t.csv --prob p --name a,b --out o.csv
apply m.json t.csv --prob p,q,z --out o.csv
apply m.json t.csv --prob z --out o.csv
apply m.json empty.csv --prob p --out o.csv
apply m.json t.csv --prob z --scale logits --out o.csv
apply m.json holes.csv --prob p --out o.csv
threshold m.json --at 0,5
threshold m.json --at 1.5
threshold m.json --at 50%
threshold m.json --at 0.5 --names a,b
threshold m.json --at 0.5 --sql ansi --json r.json
threshold m.json --at 0.5 --sql ansi --names a
threshold m.json --at 0,0.5 --sql ansi --names a,b,c
threshold m.json --at 0.5 --scores logits
export m.json --to sql --name f
export m.json --to c --prob p
export m.json --to onnx
monitor t.csv {ROWS} --alpha 0.1
monitor t.csv {ROWS} --state t.csv
monitor t.csv {ROWS} --alarm test --alpha 2
monitor t.csv {ROWS} --time y9
monitor words.csv {ROWS}
estimate-mean t.csv --label y --score p
estimate-mean few.csv --label y --score x9
estimate-mean blank.jsonl --label y --score p
estimate-mean few.csv --label y --score p --width 0
estimate-mean few.csv --label y --score p --scale 1,0
estimate-mean few.csv --label p --score p
sample-size t.csv --prob p --error 2
sample-size t.csv --prob z --error 0.1
sample-size k.csv --prob p0,p1,p2 --error 0.1
"""


def write_tables():
    """Write tables of two and of three classes, of every kind, into this folder."""
    rng = np.random.default_rng(0)
    p, y = make_overconfident(2, N, random_state=0)
    p = p[:, 1].round(4).clip(0.0001, 0.9999)
    frame = pd.DataFrame({"y": y, "p": p, "q": (0.8 * p + 0.1).round(5)})
    frame["z"] = np.log(p / (1 - p)).round(6)
    frame["x"] = rng.normal(size=N).round(3)
    frame["w"] = rng.integers(1, 9, N) / 4
    frame["g"] = np.arange(N) // 5
    frame["s"] = np.array(["north", "south", "west"])[np.arange(N) % 3]
    frame["t"] = np.arange(N) * 2
    frame["i"] = np.arange(N) + 100
    other = frame.assign(p=(0.7 * p + 0.2).round(4))
    frame.to_csv("t.csv", index=False)
    frame.to_csv("t.csv.gz", index=False)
    blank = frame.assign(p=None)
    blank.to_json("blank.jsonl", orient="records", lines=True)
    frame.to_parquet("t.parquet")
    frame.to_excel("t.xlsx", index=False)
    frame.to_json("t.jsonl", orient="records", lines=True)
    frame.to_csv("comma.csv", index=False, sep=";", decimal=",")
    frame.assign(p=100 * p).to_csv("percent.csv", index=False)
    frame.assign(y=np.where(y == 1, "yes", "no")).to_csv("words.csv", index=False)
    frame.assign(n=1 - p).to_csv("two.csv", index=False)
    frame.assign(p=frame.p.where(frame.i % 17 > 0)).to_csv("holes.csv", index=False)
    frame.assign(y=frame.y.where(frame.i % 3 > 0)).to_csv("few.csv", index=False)
    frame.assign(w=frame.w.where(frame.i != 105, np.inf)).to_csv("inf.csv", index=False)
    other.to_csv("u.csv", index=False)
    other.iloc[::-1].to_csv("turned.csv", index=False)
    frame.iloc[:0].to_csv("empty.csv", index=False)
    proba, k = make_overconfident(3, N, random_state=1)
    proba = proba.round(4)
    proba[:, 2] = (1 - proba[:, 0] - proba[:, 1]).round(4).clip(0)
    three = pd.DataFrame(proba, columns=["p0", "p1", "p2"])
    three["k"] = np.array(["a", "b", "c"])[k]
    three["top"] = proba.max(axis=1)
    three["guess"] = np.array(["a", "b", "c"])[proba.argmax(axis=1)]
    three[["a", "b", "c"]] = (0.5 * np.eye(3)[k] + 0.5 / 3).round(6)
    three["c"] = 1 - three["a"] - three["b"]
    three.to_csv("k.csv", index=False)
    softer = (0.6 * proba + 0.4 / 3).round(5)
    softer[:, 2] = 1 - softer[:, 0] - softer[:, 1]
    three[["p0", "p1", "p2"]] = softer
    three.to_csv("k2.csv", index=False)
    labels = pd.DataFrame({"l0": y, "l1": np.roll(y, 1), "q0": p, "q1": p[::-1]})
    labels.to_csv("labels.csv", index=False)
    number = np.arange(N)
    labels["l0"] = labels["l0"].where(number % 31 != 5)
    labels["q0"] = labels["q0"].where(number % 29 != 3)
    labels.to_csv("gaps.csv", index=False)


@functools.cache
def make_folder():
    """A folder with the tables and a map, which lasts as long as the process."""
    folder = tempfile.TemporaryDirectory()
    with enter_folder(folder.name):
        write_tables()
        run_command(APPLY)
    return folder


@contextlib.contextmanager
def enter_folder(folder):
    """Work in a folder, with a terminal that wraps no line."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with mock.patch.dict(os.environ, COLUMNS="300"):
            yield
    finally:
        os.chdir(before)


def run_command(line):
    """The code of a command, and what it prints to both streams."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            code = main(line.split())
        except SystemExit as ended:
            code = ended.code
    printed = []
    for stream in (out, err):
        stream.flush()
        printed.append(stream.buffer.getvalue().decode())
    return code, *printed


def collect_outputs(*lines):
    """Codes, and numbers and words of all that commands print and write."""
    found = {}
    with tempfile.TemporaryDirectory() as name, enter_folder(name):
        for file in Path(make_folder().name).iterdir():
            shutil.copy(file, name)
        for number, line in enumerate(lines):
            code, out, err = run_command(line)
            found[f"{number} code"] = [code]
            for title, text in (("out", out), ("err", err)):
                text = text.replace(name, "folder")
                found[f"{number} {title}"] = summarize_text(text)
        for file in sorted(Path(name).iterdir()):
            if re.match(r"[rmso]\.(?!csv$)|o\.csv", file.name):
                text = file.read_text(encoding="utf-8")
                if file.suffix == ".json":
                    text = drop_dates(text)
                found[file.name] = summarize_text(text)
    return found


def drop_dates(text):
    """A document without what changes with its version or its day."""
    document = json.loads(text)
    for name in ("created", "version", "date", "sha256", "map_sha256", "settings"):
        document.pop(name, None)
    return json.dumps(document)


def summarize_text(text):
    """The numbers of a text, and a checksum of the rest."""
    text = " ".join(re.sub(OTHER_NUMBERS, " ", text).split())
    words = re.sub(r"-?\d[\d.,]*(e[-+]?\d+)?", "#", text)
    checksum = f"{zlib.crc32(words.encode('utf-8', 'replace')):x}"
    return {"numbers": numbers_in(text), "words": checksum}


def calls_of_outputs():
    for title, lines in CASES.items():
        lines = (lines,) if isinstance(lines, str) else lines
        yield "outputs of commands", title, functools.partial(collect_outputs, *lines)
    for line in REJECTED.strip().splitlines():
        yield "outputs of commands", line, functools.partial(collect_outputs, line)


OUTPUTS = (calls_of_outputs,)
