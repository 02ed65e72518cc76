"""One column that is the probability of the other class: every command stops with a hint."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sklearn_calib._cli import _large, main
from sklearn_calib._validation import count_correctly_ranked_pairs
from sklearn_calib.summary import summarize

N = 600


@pytest.fixture
def table(tmp_path, monkeypatch):
    """AUC 0.67 for 0, the class that sorts first: accuracy falls by less than 30 points."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    p = rng.beta(4, 3, N)
    label = (rng.random(N) >= p).astype(int)
    pd.DataFrame({"y": label, "p": p, "q": p**2, "noise": rng.random(N)}).to_csv(
        "t.csv", index=False
    )
    return label, p


COMMANDS = {
    "audit": ["audit", "t.csv", "--out", "none"],
    "fit": ["fit", "t.csv", "--out", "map.json", "--recalibrator", "platt"],
    "monitor": ["monitor", "t.csv"],
    "compare": ["compare", "t.csv", "--prob", "q"],
    "audit of blocks": ["audit", "t.csv", "--out", "none"],
    "fit of blocks": ["fit", "t.csv", "--out", "map.json", "--recalibrator", "platt"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            one,
            marks=[pytest.mark.slow] if "audit of" in one or one == "compare" else [],
        )
        for one in COMMANDS
    ],
)
def test_every_command_stops(table, name, capsys, monkeypatch):
    if "blocks" in name:
        monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 0)
    words = [*COMMANDS[name], "--label", "y", "--prob", "p"]
    if name.startswith(("audit", "compare")):
        words += ["--resamples", "20"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "ranks '0' above '1'" in said and "Add --positive 0, or --positive 1" in said
    for label in ("0", "1"):
        more = ["--allow", "order"] if label == "1" and "compare" not in name else []
        assert main([*words, "--positive", label, *more]) in (0, 3)


@pytest.mark.slow
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
        found += count_correctly_ranked_pairs(
            score, rng.random(60) < 0.4
        ).is_significant
    assert stats.binom.sf(found - 1, 2000, 0.001) > 1e-3
    assert not count_correctly_ranked_pairs(
        np.full(60, 0.5), np.arange(60) % 2 == 0
    ).is_significant
    assert not count_correctly_ranked_pairs(
        rng.random(60), np.zeros(60, dtype=bool)
    ).is_significant


def test_cells_and_rows_say_the_same(table):
    label, p = table
    cells = summarize({"y": label, "p": p}, label="y", prob="p")
    own = cells.samples()[0].backwards
    assert own.auc == pytest.approx(
        count_correctly_ranked_pairs(p, label == 0).auc, abs=1e-12
    )


def test_the_warning_of_a_map_that_cannot_fall_speaks_of_options(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    p = np.linspace(0.01, 0.99, 200)
    y = (np.arange(200) * 29 % 200 < 200 * (1 - p)).astype(int)
    pd.DataFrame({"y": y, "p": p}).to_csv("t.csv", index=False)
    options = [
        "--label",
        "y",
        "--prob",
        "p",
        "--allow",
        "order",
        "--allow",
        "no-gain",
        "--out",
        "m.json",
    ]
    assert main(["fit", "t.csv", *options, "--recalibrator", "isotonic"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "name it with --positive, or exchange the columns of --prob" in said
    assert "1 - p" not in said and "classes=" not in said


@pytest.fixture
def shares(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.5] * 3, 400)
    votes = rng.multinomial(5, p) / 5
    names = [f"{of}{one}" for of in "pqv" for one in "abc"]
    table = pd.DataFrame(np.hstack([p, (q := p**1.2) / q.sum(1, keepdims=True), votes]))
    table.set_axis(names, axis=1).assign(y=np.array([*"bca"])[votes.argmax(1)]).to_csv(
        "t.csv"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.cross] if "blocks" in name else [])
        for name in COMMANDS
    ],
)
def test_the_order_of_columns_of_shares(shares, name, capsys, monkeypatch):
    if "blocks" in name:
        monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 0)
    compared = name == "compare"
    # the rest names a method or a column
    keep = 2 if compared else -2 if "fit" in name else None
    words = [*COMMANDS[name][:keep], "--soft-labels"]
    if name.startswith(("audit", "compare")):
        words += ["--resamples", "20"]
    several = ["--prob", "pa,pb,pc", *(["--prob", "qa,qb,qc"] if compared else [])]
    code = main([*words, "--label", "vb,vc,va", *several])
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "in the order of the classes vb, vc, va, got columns that fit va, vb, vc"
        in said
    )
    assert code == (0 if compared else 2)
    one = ["--prob", "pb", *(["--prob", "qb"] if compared else [])]
    assert main([*words, "--label", "va", *one]) == code
    said = " ".join(capsys.readouterr().err.split())
    assert "The column ranks '0' above '1'" in said and "has the shares of" in said
    for label, prob in (("va,vb,vc", several), ("vb", one)):
        assert main([*words, "--label", label, *prob]) in (0, 3)
        assert "order" not in capsys.readouterr().err
    if not compared:
        assert main([*words, "--label", "vb,vc,va", *several, "--allow", "order"]) in (
            0,
            3,
        )


@pytest.mark.slow
def test_two_models_of_columns_in_another_order(shares, capsys):
    words = [
        "compare",
        "t.csv",
        "--label",
        "y",
        "--prob",
        "pa,pb,pc",
        "--prob",
        "qa,qb,qc",
        "--resamples",
        "20",
    ]
    assert main(words) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("order of the classes a, b, c, got columns that fit b, c, a") == 2
    assert main([*words, "--classes", "b,c,a"]) == 0
    assert "order" not in capsys.readouterr().err
