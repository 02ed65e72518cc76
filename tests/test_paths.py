"""The pages that go from data to a signed report: their code runs, and prints what they show."""

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from checkout import GUIDE

from sklearn_calib._cli import main

BLOCK = re.compile(r"code-block:: (python|console|text)\n\n((?:(?:   .*)?\n)+)")
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
DATA = Path(os.environ.get("SKLEARN_CALIB_DATA", "../shared/data"))
LOANS = DATA / "credit_default" / "credit_default.csv.gz"
SAME_TREES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)  # as on the page


def follow(page, capsys):
    """Run the blocks of a page; pairs of what it shows and what was printed."""
    names, said, pairs = {}, "", []
    for kind, block in BLOCK.findall((GUIDE / page).read_text(encoding="utf-8")):
        text = re.sub(r"(?m)^   ", "", block)
        if kind == "text":
            pairs.append((text, said))
            continue
        if kind == "python":
            exec(text, names)
        for command in re.findall(r"(?m)^\$ sklearn-calib (.+)$", text * (kind == "console")):
            assert main(shlex.split(command)) == 0
        said = capsys.readouterr().out
    return pairs


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
    pairs = follow("clinical_study.rst", capsys)
    assert len(pairs) >= 4
    for shown, printed in pairs:
        same(shown, printed)
    finished(tmp_path)


@pytest.mark.slow
def test_credit_risk(capsys, tmp_path, monkeypatch):
    real = LOANS.exists()
    loans = pd.read_csv(LOANS) if real else invented(np.random.default_rng(0))
    loans = loans.rename(columns={"target": "default"})
    monkeypatch.chdir(tmp_path)
    loans.to_csv("loans.csv", index=False)
    pairs = follow("credit_risk.rst", capsys)
    assert len(pairs) >= 4
    for shown, printed in pairs if real and SAME_TREES else ():
        same(shown, printed)
    finished(tmp_path)
    if not real:
        pytest.skip("the code ran on invented loans: set SKLEARN_CALIB_DATA for the figures")


@pytest.mark.slow
def test_confidence_of_language_models(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    follow("confidence_of_language_models.rst", capsys)
    rows = pd.read_json("repaired.jsonl", lines=True)
    assert rows["mark_calibrated"].max() < 0.95 and len(rows) == 1500
    assert "only 5 different predictions" in Path("answers.html").read_text(encoding="utf-8")


def finished(folder):
    """The last step of the page was reached."""
    assert (folder / "report.html").stat().st_size > 10_000
