"""Tables of a predicted class with its confidence, of marks on a scale, of certain predictions."""

import json

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._cli import main
from sklearn_calib.report import calibration_report

LEVELS = np.array([0.5, 0.7, 0.8, 0.9, 1.0])


@pytest.fixture
def answers():
    """150 answers to questions of four choices, with confidences of five levels."""
    rng = np.random.default_rng(0)
    level, truth = rng.choice(LEVELS, 150), rng.choice([*"ABCD"], 150)
    other = np.array([rng.choice([c for c in "ABCD" if c != t]) for t in truth])
    said = np.where(rng.random(150) < 0.8 * level, truth, other)
    marks, texts = 10 * level, [f"{100 * x:.0f}%" for x in level]
    columns = {"truth": truth, "answer": said, "p": level, "mark": marks, "text": texts}
    return pd.DataFrame(columns)


def written(table, tmp_path, kind):
    path = tmp_path / f"answers.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "parquet":
        table.to_parquet(path)
    else:
        table.to_json(path, orient="records", lines=True)
    return str(path)


def audit(path, tmp_path, *more):
    out = tmp_path / "numbers.json"
    words = ["audit", path, "--label", "truth", "--no-page", "--no-advice", "--resamples", "20"]
    code = main([*words, "--json", str(out), *more])
    return code, json.loads(out.read_text(encoding="utf-8")) if code == 0 else None


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_predicted_class_and_confidence(answers, tmp_path, kind):
    path = written(answers, tmp_path, kind)
    _, found = audit(path, tmp_path, "--prediction", "answer", "--prob", "p")
    right = (answers["truth"] == answers["answer"]).to_numpy()
    wanted = calibration_report(right, answers["p"].to_numpy(), n_resamples=20)
    (model,) = found["models"]
    losses = {row["measure"]: row["value"] for row in model["measures"]}
    assert losses["brier_loss"] == pytest.approx(wanted.rows[0].value)
    assert found["classes"] == [0, 1]


@pytest.mark.slow
def test_marks_and_percent_signs(answers, tmp_path):
    path, found = written(answers, tmp_path, "csv"), []
    for more in (["p"], ["mark", "--scale", "0,10"], ["text"]):
        _, numbers = audit(path, tmp_path, "--prediction", "answer", "--prob", *more)
        found.append([row["value"] for row in numbers["models"][0]["measures"]])
    assert found[1] == pytest.approx(found[0]) and found[2] == pytest.approx(found[0])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--prob", "p"], "name that class's column with audit --prediction"),
        (["--prediction", "answer", "--prob", "mark"], "audit --scale 0,10 for marks"),
        (["--prediction", "answer", "--prob", "mark", "--scale", "0,9"], "from 0 to 9"),
        (["--prediction", "truth", "--prob", "p"], "some are right and some wrong"),
        (["--prediction", "answer", "--prob", "p,mark"], "one column of --prob with --prediction"),
        (["--prediction", "answer", "--prob", "p", "--save", "x"], "--prediction without --save"),
        (["--prediction", "answer", "--prob", "p", "--positive", "1"], "without --positive"),
        (["--prob", "mark", "--scale", "0,10", "--percent"], "--scale without --percent"),
    ],
)
def test_what_is_refused(answers, tmp_path, capsys, more, said):
    code, _ = audit(written(answers, tmp_path, "csv"), tmp_path, *more)
    assert code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("scale", ["10,0", "a,b", "1", "0,inf"])
def test_scales_that_are_none(answers, tmp_path, capsys, scale):
    with pytest.raises(SystemExit):
        audit(written(answers, tmp_path, "csv"), tmp_path, "--prob", "mark", "--scale", scale)
    assert "expected two numbers, the lower one first" in capsys.readouterr().err


def test_confidence_in_python(answers):
    with pytest.raises(ValueError, match="pass y_true == y_pred as y_true"):
        calibration_report(answers["truth"], answers["p"])


@pytest.mark.parametrize("clustered", [False, True])
def test_certain_and_wrong(answers, clustered):
    right, p = (answers["truth"] == answers["answer"]).to_numpy(), answers["p"].to_numpy()
    groups = np.arange(150) // 2 if clustered else None
    report = calibration_report(right, p, n_resamples=20, groups=groups)
    (sentence,) = (s for s in report.verdict.sentences if s.topic == "certain")
    wrong = int((~right & (p == 1)).sum())
    assert sentence.numbers == {"certain": int((p == 1).sum()), "wrong": wrong, "values": 5}
    assert "only 5 different predictions" in sentence.text
    line, rest = report.line(), p < 1
    own = None if groups is None else groups[rest]
    alone = calibration_report(right[rest], p[rest], n_resamples=20, groups=own).line()
    assert line[:2] == pytest.approx(alone[:2]) and line.slope > 0.1  # not 0.01
    if not clustered:
        assert line.slope_error == pytest.approx(alone.slope_error)
    sure = calibration_report(right | (p == 1), p, n_resamples=20)
    assert all(s.topic != "certain" for s in sure.verdict.sentences)
