"""Test the command ``sample-size``, which needs scores without labels."""

import json

import numpy as np
import pytest

from sklearn_calib._cli import main
from sklearn_calib.inference import validation_sample_size
from sklearn_calib.summary import CalibrationSummary

P = np.random.default_rng(0).beta(1, 4, 200).round(4)


@pytest.fixture
def scores(tmp_path, monkeypatch):
    """A csv file of Windows: semicolons and decimal commas; no labels."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{row};{str(p).replace('.', ',')};{row % 3 + 1}" for row, p in enumerate(P)
    ]
    (tmp_path / "s.csv").write_text(
        "\n".join(["id;p;w", *lines]) + "\n", encoding="utf-8"
    )


def plan(*arguments):
    return main(["sample-size", "s.csv", "--prob", "p", *arguments])


def test_prints_and_writes_what_the_function_says(scores, tmp_path, capsys):
    written = ("--json", "plan.json", "--markdown", "plan.md")
    assert plan("--error", ".02,.05", "--level", ".95", *written) == 0
    expected = validation_sample_size(P, error=[0.02, 0.05])
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")) == {
        "plan": expected.to_dict()
    }
    assert f"| error of 0.02 | 0.02 |  |  | {expected.targets[3].n_samples} |" in (
        tmp_path / "plan.md"
    ).read_text(encoding="utf-8")
    out = capsys.readouterr().out
    assert f"serve all targets: {expected.n_samples}, some" in out
    for one in expected.targets:
        assert one.target in out and str(one.n_samples) in out
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_options_count(scores, tmp_path, capsys):
    def content(*more):
        assert plan("--error", ".05", "--json", "plan.json", *more) == 0
        return json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["plan"]

    plain = content()
    assert plain["level"] == 0.9
    assert content("--level", ".99")["n_samples"] > plain["n_samples"]
    weighted = validation_sample_size(
        P, error=0.05, level=0.9, sample_weight=np.arange(200) % 3 + 1
    )
    assert content("--weight", "w") == weighted.to_dict() != plain
    both = "\n".join(["a,b", *(f"{1 - p:.4f},{p:.4f}" for p in P)])
    (tmp_path / "s.csv").write_text(both.replace("0.", "."), encoding="utf-8")
    assert (
        main(
            [
                "sample-size",
                "s.csv",
                "--prob",
                "a,b",
                "--error",
                ".05",
                "--json",
                "p.json",
            ]
        )
        == 0
    )
    two = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["plan"]
    same_targets(two, plain)
    (tmp_path / "s.csv").write_text(
        "\n".join(["p", "", *(f"{100 * p:.2f}" for p in P)]) + "\n", encoding="utf-8"
    )
    same_targets(content("--scale", "percent", "--missing", "drop"), plain)


def same_targets(found, expected):
    """But for the last digit of probabilities that were divided."""
    for one, other in zip(found["targets"], expected["targets"], strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            near = (
                pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            )
            assert one[name] == near


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--error", "2"],
            "expected errors between 0 and 0.5, got 2. Write 0.02 for 2 percentage",
        ),
        (["--error", "0,05"], "expected errors between 0 and 0.5, got 0"),
        (["--error", "x"], "expected a number, got 'x'"),
        (["--error", ".02", "--by", "id"], "unrecognized arguments: --by id"),
        (["--error", ".02", "--prob", "w,id"], "expected one column in --prob, got 3"),
        (
            ["--error", "1e-9"],
            "expected an error that some 1e12 rows of such predictions",
        ),
        (["--error", ".02", "--json", "s.csv"], "the table itself"),
    ],
)
def test_bad_input(scores, arguments, said, capsys):
    try:
        code = plan(*arguments)
    except SystemExit as left:  # an option that cannot be read
        code = left.code
    captured = capsys.readouterr()
    assert code == 2 and said in captured.err and not captured.out


def test_files_that_cannot_be_planned_with(scores, tmp_path, capsys):
    (tmp_path / "s.csv").write_text("p\n0.1\n0.2\n", encoding="utf-8")
    assert plan("--error", ".02") == 2
    assert "expected at least 50 rows of --prob, got 2. Pass more." in (
        capsys.readouterr().err
    )
    assert main(["sample-size", "s.csv", "--error", ".02"]) == 2
    assert "expected --prob" in capsys.readouterr().err


def test_a_plan_of_a_summary(scores, capsys):
    CalibrationSummary().update([0, 1], [0.2, 0.7]).to_parquet("june.parquet")
    assert main(["sample-size", "june.parquet", "--prob", "p", "--error", "0.02"]) == 2
    said = capsys.readouterr().err
    assert "expected a table of scores, got the summary june.parquet" in said


def test_a_report_of_an_empty_summary(scores, capsys):
    CalibrationSummary().to_parquet("june.parquet")
    assert main(["audit", "june.parquet", "--out", "none"]) == 2
    said = capsys.readouterr().err
    assert "expected a summary of at least one row, got an empty summary" in said
    assert "CalibrationSummary" not in said and "samples" not in said


def test_weight_and_level(scores, tmp_path):
    """Of a plan without a table of targets: the C statistic is that of the weighted rows."""
    assert (
        plan("--error", ".05", "--weight", "w", "--level", ".8", "--json", "p.json")
        == 0
    )
    found = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["plan"]
    expected = validation_sample_size(
        np.repeat(P, np.arange(200) % 3 + 1), error=0.05, level=0.8
    ).to_dict()
    assert found["level"] == 0.8 and found["n_samples"] == expected["n_samples"]
    assert found["c_statistic"] == pytest.approx(expected["c_statistic"], abs=1e-12)
    assert found["c_statistic"] != validation_sample_size(P, error=0.05).c_statistic
