"""The pages that go from data to a signed report: their code runs, and prints what they show."""

import inspect
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn

from sklearn_calib._cli import main
from sklearn_calib.export import ExportedMap
from sklearn_calib.recalibrators import PriorShift

GUIDE = Path(__file__).parent.parent / "doc" / "user_guide"
if not GUIDE.exists():
    pytest.skip("not a checkout", allow_module_level=True)

BLOCK = re.compile(r"code-block:: (python|console|text)\n\n((?:(?:   .*)?\n)+)")
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
DATA = Path(os.environ.get("SKLEARN_CALIB_DATA", "../shared/data"))
LOANS = DATA / "credit_default" / "credit_default.csv.gz"
SAME_TREES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)  # as on the page


def missing(block):
    """What a block needs that this version does not have."""
    if "PriorShift(mean=" in block and "mean" not in inspect.signature(PriorShift).parameters:
        return "PriorShift(mean=)"
    if ".describe()" in block and not hasattr(ExportedMap, "describe"):
        return "ExportedMap.describe"
    return None


def follow(page, capsys):
    """Run the blocks of a page; pairs of what it shows and what was printed."""
    names, said, pairs, lacking = {}, "", [], None
    for kind, block in BLOCK.findall((GUIDE / page).read_text(encoding="utf-8")):
        text = re.sub(r"(?m)^   ", "", block)
        if kind == "text":
            pairs.append((text, said))
            continue
        lacking = missing(text)
        if lacking:
            break
        if kind == "python":
            exec(text, names)
        for command in re.findall(r"(?m)^\$ sklearn-calib (.+)$", text * (kind == "console")):
            assert main(shlex.split(command)) == 0
        said = capsys.readouterr().out
    return pairs, lacking


def same(shown, printed):
    """Equal words; numbers to a few percent, since other versions of libraries fit others."""
    words, numbers = (
        [find(" ".join(text.split())) for text in (shown, printed)]
        for find in (lambda text: NUMBER.sub("#", text), NUMBER.findall)
    )
    assert words[0] == words[1]
    ours, theirs = (np.array(values, dtype=float) for values in numbers)
    np.testing.assert_allclose(theirs, ours, rtol=0.05, atol=0.005)


def invented(rng):
    """Loans of the columns that the page names, where the real ones are not at hand."""
    z = rng.normal(size=(3000, 4))
    chance = 1 / (1 + np.exp(1.3 - z @ [1.2, 0.8, -0.5, 0.0]))
    loans = pd.DataFrame(z, columns=["LIMIT_BAL", "PAY_0", "PAY_2", "BILL_AMT1"])
    loans["SEX"], loans["MARRIAGE"] = rng.integers(1, 3, (2, len(z)))
    return loans.assign(AGE=40, default=(rng.random(len(z)) < chance).astype(int))


@pytest.mark.slow
def test_clinical_study(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs, lacking = follow("clinical_study.rst", capsys)
    assert len(pairs) >= 4
    for shown, printed in pairs:
        same(shown, printed)
    finished(lacking, tmp_path)


@pytest.mark.slow
def test_credit_risk(capsys, tmp_path, monkeypatch):
    real = LOANS.exists()
    loans = pd.read_csv(LOANS) if real else invented(np.random.default_rng(0))
    loans = loans.rename(columns={"target": "default"})
    monkeypatch.chdir(tmp_path)
    loans.to_csv("loans.csv", index=False)
    pairs, lacking = follow("credit_risk.rst", capsys)
    assert len(pairs) >= 4
    for shown, printed in pairs if real and SAME_TREES else ():
        same(shown, printed)
    finished(lacking, tmp_path)
    if not real:
        pytest.skip("the code ran on invented loans: set SKLEARN_CALIB_DATA for the figures")


def finished(lacking, folder):
    """The last step of the page was reached."""
    if lacking:
        pytest.skip(f"{lacking} is not in this version: the blocks from there on did not run")
    assert (folder / "report.html").stat().st_size > 10_000
