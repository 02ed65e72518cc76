"""One column that is the probability of the other class: every command stops, with the cure."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sklearn_calib._cli import _large, main
from sklearn_calib.canonical import ranks_of
from sklearn_calib.summary import summarize

N = 600


@pytest.fixture
def table(tmp_path, monkeypatch):
    """AUC .67 for "ja", the class that sorts first: accuracy falls by less than 30 points."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    p = rng.beta(4, 3, N)
    label = np.where(rng.random(N) < p, "ja", "nein")
    pd.DataFrame({"y": label, "p": p, "q": p**2, "noise": rng.random(N)}).to_csv(
        "t.csv", index=False
    )
    return label, p


COMMANDS = {
    "audit": ["audit", "t.csv", "--no-page"],
    "fit": ["fit", "t.csv", "--out", "map.json", "--recalibrator", "platt"],
    "monitor": ["monitor", "t.csv"],
    "compare": ["compare", "t.csv", "--prob", "q"],
    "audit of blocks": ["audit", "t.csv", "--no-page"],
    "fit of blocks": ["fit", "t.csv", "--out", "map.json", "--recalibrator", "platt"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_stops(table, name, capsys, monkeypatch):
    if "blocks" in name:
        monkeypatch.setattr(_large, "_AT_ONCE", 0)
    words = [*COMMANDS[name], "--label", "y", "--prob", "p"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "rises with 'nein'" in said and "Add --positive ja, or --positive nein" in said
    for label in ("ja", "nein"):
        more = ["--any-order"] if label == "nein" and "compare" not in name else []
        assert main([*words, "--positive", label, *more]) in (0, 3)


def test_a_column_without_skill_is_not_stopped(table, capsys):
    for command in ("audit", "fit", "monitor"):
        words = [*COMMANDS[command], "--label", "y", "--prob", "noise"]
        assert main(words) in (0, 3), capsys.readouterr().err


def test_how_often_no_skill_is_stopped():
    """The level is 0.001, one-sided: Mann and Whitney's test, ties make it rarer."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(2000):
        score = rng.random(60)
        found += ranks_of(score, rng.random(60) < 0.4).shown
    assert stats.binom.sf(found - 1, 2000, 0.001) > 1e-3
    assert not ranks_of(np.full(60, 0.5), np.arange(60) % 2 == 0).shown
    assert not ranks_of(rng.random(60), np.zeros(60, dtype=bool)).shown


def test_cells_and_rows_say_the_same(table):
    label, p = table
    cells = summarize({"y": label, "p": p}, label="y", prob="p", classes=["ja", "nein"])
    own = cells.samples()[0].backwards
    assert own.auc == pytest.approx(ranks_of(p, label == "ja").auc, abs=1e-12)


def test_the_warning_of_a_map_that_cannot_fall_speaks_of_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    p = np.linspace(0.01, 0.99, 200)
    y = (np.arange(200) * 29 % 200 < 200 * (1 - p)).astype(int)
    pd.DataFrame({"y": y, "p": p}).to_csv("t.csv", index=False)
    options = ["--label", "y", "--prob", "p", "--any-order", "--force", "--out", "m.json"]
    assert main(["fit", "t.csv", *options, "--recalibrator", "isotonic"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "name it with --positive, or exchange the columns of --prob" in said
    assert "1 - p" not in said and "classes=" not in said
