"""The command mean."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from sklearn_calib._cli import main
from sklearn_calib.inference import calibrated_mean

NAMED = ["--label", "human", "--score", "judge"]
USUAL = [*NAMED, "--positive", "good"]


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Three hundred answers, 60 with a label, also as t.jsonl."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=300)
    there = np.arange(300) % 5 == 0
    words = np.where(rng.random(300) < expit(z), "good", "bad")
    found = pd.DataFrame(
        {"human": np.where(there, words, None), "judge": expit(z + 0.6).round(4)}
    )
    found["ten"] = np.rint(1 + 9 * found["judge"])
    found["word"] = np.where(found["judge"] > 0.6, "yes", "no")
    found["minutes"] = np.where(
        there, (3 * found["judge"] + rng.normal(size=300)).round(3), np.nan
    )
    found["grade"] = np.where(there, rng.integers(1, 6, 300), np.nan)
    found["w"] = np.where(there, 1 + rng.random(300), np.nan)
    found["question"] = np.arange(300) // 10
    found.to_json("t.jsonl", orient="records", lines=True)
    return found


def run(*arguments, file="t.jsonl"):
    assert main(["estimate-mean", file, *arguments, "--json", "out.json"]) == 0
    return json.loads(Path("out.json").read_text(encoding="utf-8"))


def parts(frame, label="human", score="judge"):
    there = frame[label].notna().to_numpy()
    return frame[label][there].to_numpy(), frame[score][there], frame[score][~there]


def same(found, expected):
    for name, value in expected.to_dict().items():
        assert found[name] == (
            value if isinstance(value, str) else pytest.approx(value)
        ), name


def test_as_in_python(frame, capsys):
    content = run(*USUAL)
    (found,) = content["means"]
    expected = calibrated_mean(*parts(frame), pos_label="good")
    same(found, expected)
    said = capsys.readouterr().out
    assert (
        "labels alone" in said and f"{expected.low:.4f} to {expected.high:.4f}" in said
    )
    assert content["differences"] == [] and found["plan"] is None
    frame.to_parquet("t.parquet")
    frame.to_csv("t.csv", index=False, sep=";", decimal=",")
    for file in ("t.parquet", "t.csv"):
        assert run(*USUAL, file=file) == content


@pytest.mark.slow
def test_each_option(frame):
    there = frame["human"].notna().to_numpy()
    clusters = frame["question"].astype(str)
    groups = {"groups": clusters[there], "groups_unlabelled": clusters[~there]}
    for options, call, more in (
        (["--positive", "bad"], parts(frame), {"pos_label": "bad"}),
        (["--weight", "w"], parts(frame), {"sample_weight": frame["w"][there]}),
        (["--cluster", "question"], parts(frame), groups),
        (["--level", "0.8"], parts(frame), {"level": 0.8}),
        (["--recalibrator", "isotonic"], parts(frame), {"recalibrator": "isotonic"}),
        (["--recalibrator", "none"], parts(frame), {"recalibrator": None}),
        (
            ["--score", "ten", "--scale", "1,10"],
            parts(frame, score="ten"),
            {"scale": (1, 10)},
        ),
        (
            ["--score", "ten", "--scale", "any"],
            parts(frame, score="ten"),
            {"scale": None},
        ),
        (["--score", "word"], parts(frame, score="word"), {}),
        (["--label", "minutes"], parts(frame, "minutes"), {}),
        (
            ["--label", "grade", "--bounds", "1,5"],
            parts(frame, "grade"),
            {"bounds": (1, 5)},
        ),
    ):
        named = {} if options[0] == "--label" else {"pos_label": "good"}
        (found,) = run(*(USUAL if named else NAMED), *options)["means"]
        same(found, calibrated_mean(*call, **(named | more)))


def test_width_and_markdown(frame, capsys):
    (found,) = run(*USUAL, "--width", "0.2", "--markdown", "out.md")["means"]
    expected = calibrated_mean(*parts(frame), pos_label="good")
    assert found["plan"]["labels"] == expected.labels_needed(0.2)
    assert found["plan"]["labels_alone"] == expected.labels_needed(0.2, alone=True)
    said = " ".join(capsys.readouterr().out.split())
    assert f"takes {expected.labels_needed(0.2)} labels; without the scores" in said
    assert "| labels alone |" in Path("out.md").read_text(encoding="utf-8")
    (found,) = run(*USUAL, "--width", "0.001")["means"]
    assert (
        found["plan"]["labels"] is None
        and "more labels than" in capsys.readouterr().out
    )


def test_systems(frame, capsys):
    item = np.arange(300)
    other = frame.assign(judge=1 - frame["judge"] / 2, model="new", item=item)
    pd.concat([frame.assign(model="old", item=item), other]).to_csv(
        "two.csv", index=False
    )
    content = run(*USUAL, "--system", "model", "--cluster", "item", file="two.csv")
    assert [each["system"] for each in content["means"]] == ["old", "new"]
    (gap,) = content["differences"]
    assert (gap["system"], gap["less"], gap["outcome"]) == ("new", "old", "difference")
    assert gap["labels_estimate"] == 0 and "new less old" in capsys.readouterr().out


def test_missing_scores(frame, capsys):
    frame.loc[[3, 5], "judge"] = np.nan
    frame.to_csv("holes.csv", index=False)
    assert main(["estimate-mean", "holes.csv", *USUAL]) == 2
    assert "--missing", "drop" in capsys.readouterr().err
    (found,) = run(*USUAL, "--missing", "drop", file="holes.csv")["means"]
    assert (
        found["n_labelled"] + found["n_unlabelled"] == 298 and found["n_labelled"] == 59
    )
    assert "rows 3 and 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--score", "ten"], ". Add --scale with the lowest"),
        (["--score", "human"], "different columns for --label and --score"),
        (["--system", "question"], "--system needs --cluster"),
        (
            ["--positive", "nice"],
            "expected --positive among ['bad', 'good'], got 'nice'",
        ),
        (
            ["--label", "word", "--score", "judge", "--json", "t.jsonl"],
            "the table itself",
        ),
        (
            ["--json", "a", "--markdown", "a"],
            "different files for --json and --markdown",
        ),
        (
            ["--score", "word", "--recalibrator", "none", "--positive", "bad"],
            "numbers with --recalibrator none",
        ),
        (["--level", "0.9"], "Pass --positive good if it is the probability of 'good'"),
    ],
)
def test_bad_options(frame, capsys, options, words):
    given = [] if options[0] == "--score" else ["--score", "judge"]
    assert main(["estimate-mean", "t.jsonl", "--label", "human", *given, *options]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1 and "calibrated_mean" not in said


def test_a_word_is_no_class_of_numbers(frame, capsys):
    """Nor is it an error of this program."""
    for labels, given in (
        ({"bad": 0.0, "good": 1.0}, "good"),
        ({"bad": 3.0, "good": 4.0}, "yes"),
    ):
        frame.assign(human=frame["human"].map(labels)).to_csv("n.csv", index=False)
        assert main(["estimate-mean", "n.csv", *NAMED, "--positive", given]) == 2
        said = capsys.readouterr().err
        assert (
            f"expected --positive among {[*labels.values()]}, got {given!r}. Pass one"
            in said
        )


def test_no_labels_and_all_labels(frame, capsys):
    frame.assign(human="").to_csv("none.csv", index=False)
    assert main(["estimate-mean", "none.csv", *USUAL]) == 2
    assert (
        "expected a label in some rows of column 'human', got none"
        in capsys.readouterr().err
    )
    frame.dropna().to_csv("all.csv", index=False)
    run(*USUAL, file="all.csv")
    assert "got labels in all rows" in capsys.readouterr().err
    frame.dropna().assign(human="good").to_csv("one.csv", index=False)
    assert main(["estimate-mean", "one.csv", *NAMED]) == 2
    assert "Name the class whose share it is with --positive" in capsys.readouterr().err


def test_options_that_argparse_refuses(frame, capsys):
    for option, value in (
        ("--scale", "9"),
        ("--bounds", "5,1"),
        ("--width", "0"),
        ("--level", "2"),
    ):
        with pytest.raises(SystemExit):
            main(["estimate-mean", "t.jsonl", *USUAL, option, value])
        assert f"argument {option}: expected" in capsys.readouterr().err


def test_verdicts_spelt_in_two_ways(frame, capsys):
    rest = frame["human"].isna()
    frame.assign(word=frame["word"].where(~rest, frame["word"].str.title())).to_csv(
        "t.csv"
    )
    assert main(["estimate-mean", "t.csv", *USUAL, "--score", "word"]) == 2
    said = capsys.readouterr().err
    assert (
        "a label for some rows of each verdict, as for 'no', 'yes', got none of 'No'"
        in said
    )
    assert "240 such rows of 240 without a label" in said


@pytest.mark.filterwarnings("ignore:.*expected labels that differ for a map")
def test_bounds_where_all_labels_are_equal(frame):
    """Then nothing but the bounds states how far the mean may be."""
    frame.loc[frame["human"].notna(), "grade"] = 2.0
    frame.to_json("t.jsonl", orient="records", lines=True)
    call, options = parts(frame, "grade"), ["--label", "grade"]
    for pair in ((1, 5), (0, 10)):
        (found,) = run(*NAMED, *options, "--bounds", "{},{}".format(*pair))["means"]
        same(found, calibrated_mean(*call, bounds=pair))
        assert pair[0] < found["low"] < 2 < found["high"] < pair[1]
