"""Tables of a predicted class with its confidence, of marks on a scale, of certain predictions."""

import json

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input

from sklearn_calib import canonical_proba
from sklearn_calib._cli import main
from sklearn_calib._cli._request import Request
from sklearn_calib._cli._tables import read_score_column
from sklearn_calib._files.columns import TableBlock
from sklearn_calib.inference import paired_difference
from sklearn_calib.metrics import brier_loss, log_loss
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import TemperatureScaling
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
    words = [
        "audit",
        path,
        "--label",
        "truth",
        "--out",
        "none",
        "--no-advice",
        "--resamples",
        "20",
    ]
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
        (["--prob", "p"], "name that class's column with --prediction"),
        (["--prediction", "answer", "--prob", "mark"], "or --scale 0,10 for marks"),
        (["--prediction", "answer", "--prob", "mark", "--scale", "0,9"], "from 0 to 9"),
        (["--prediction", "truth", "--prob", "p"], "some are right and some wrong"),
        (
            ["--prediction", "answer", "--prob", "p,mark"],
            "one column of --prob with --prediction",
        ),
        (
            ["--prediction", "answer", "--prob", "p", "--save", "x"],
            "--prediction and --save cannot be combined",
        ),
        (
            ["--prediction", "answer", "--prob", "p", "--positive", "1"],
            "--prediction and --positive cannot be combined",
        ),
    ],
)
def test_what_is_refused(answers, tmp_path, capsys, more, said):
    code, _ = audit(written(answers, tmp_path, "csv"), tmp_path, *more)
    assert code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("scale", [1, 100])
def test_the_probability_of_one_answer(tmp_path, capsys, scale):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    answer = np.where(p < 0.5, "no", "yes")
    truth = np.where(rng.random(60) < p, "yes", "no")
    frame = pd.DataFrame({"truth": truth, "answer": answer, "probability": scale * p})
    more = ["--prob", "probability", *(["--scale", "percent"] * (scale > 1))]
    path = written(frame, tmp_path, "jsonl")
    code, _ = audit(path, tmp_path, "--prediction", "answer", *more)
    assert code == 2
    assert (
        "The column 'probability' looks like the probability of 'yes', not the "
        "confidence in the answer: it is below 0.5 in every row with answer 'no'. "
        "Leave out --prediction and write --positive yes"
    ) in capsys.readouterr().err
    assert audit(path, tmp_path, "--positive", "yes", *more)[0] == 0


@pytest.mark.slow
def test_confidences_that_are_not_the_probability_of_one_answer(tmp_path):
    """One row of the lower answer that is sure, or few rows."""
    p = np.r_[np.full(20, 0.2), np.full(20, 0.8)]
    answer = np.where(p < 0.5, "no", "yes")
    truth = np.tile(["no", "yes"], 20)
    frame = pd.DataFrame({"truth": truth, "answer": answer, "p": p})
    words = ["--prediction", "answer", "--prob", "p"]
    sure = frame.copy()
    sure.loc[0, "p"] = 0.6
    assert audit(written(sure, tmp_path, "csv"), tmp_path, *words)[0] == 0
    few = frame.iloc[11:30]
    assert audit(written(few, tmp_path, "csv"), tmp_path, *words)[0] == 0
    rare = frame.iloc[18:]
    assert audit(written(rare, tmp_path, "csv"), tmp_path, *words)[0] == 0
    assert audit(written(frame, tmp_path, "csv"), tmp_path, *words)[0] == 2


def test_a_scale_that_does_not_begin_at_zero():
    marks = pd.DataFrame({"m": [-2.0, 1.0, 2.5, 8.0]})
    for scale in ((-2.0, 8.0), (-5.0, 10.0)):
        options = Request(prob=["m"], scale=scale, percent=False, absent=None)
        found = read_score_column(TableBlock(marks, "t.csv", "."), "m", options)
        assert found.tolist() == pytest.approx((marks.m - scale[0]) / np.ptp(scale))


@pytest.mark.parametrize("scale", ["10,0", "a,b", "1", "0,inf"])
def test_scales_that_are_none(answers, tmp_path, capsys, scale):
    with pytest.raises(SystemExit):
        audit(
            written(answers, tmp_path, "csv"),
            tmp_path,
            "--prob",
            "mark",
            "--scale",
            scale,
        )
    assert "expected two numbers, the lower one first" in capsys.readouterr().err


def test_confidence_in_python(answers):
    with raises_invalid_input(ValueError, hint=".*pass y_true == y_pred as y_true"):
        calibration_report(answers["truth"], answers["p"])


@pytest.mark.parametrize("clustered", [False, True])
def test_certain_and_wrong(answers, clustered):
    right, p = (
        (answers["truth"] == answers["answer"]).to_numpy(),
        answers["p"].to_numpy(),
    )
    groups = np.arange(150) // 2 if clustered else None
    report = calibration_report(right, p, n_resamples=20, groups=groups)
    (sentence,) = (s for s in report.verdict.sentences if s.topic == "certain")
    wrong = int((~right & (p == 1)).sum())
    assert sentence.numbers == {
        "certain": int((p == 1).sum()),
        "wrong": wrong,
        "values": 5,
    }
    assert "only 5 different predictions" in sentence.text
    line, rest = report.line(), p < 1
    own = None if groups is None else groups[rest]
    alone = calibration_report(right[rest], p[rest], n_resamples=20, groups=own).line()
    assert line[:2] == pytest.approx(alone[:2]) and line.slope > 0.1  # not 0.01
    if not clustered:
        assert line.slope_error == pytest.approx(alone.slope_error)
    sure = calibration_report(right | (p == 1), p, n_resamples=20)
    assert all(s.topic != "certain" for s in sure.verdict.sentences)


def compared(path, tmp_path, *more):
    out = tmp_path / "compared.json"
    words = ["compare", path, *more, "--resamples", "20", "--json", str(out)]
    assert main(words) == 0
    return {
        row["measure"]: row
        for row in json.loads(out.read_text(encoding="utf-8"))["differences"]
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_compare_of_two_confidences(answers, tmp_path, kind):
    """Of one answer: what is compared is whether it is right, on a scale of marks."""
    right = (answers["truth"] == answers["answer"]).to_numpy()
    second = answers["p"].to_numpy() ** 2
    path = written(answers.assign(second=10 * second, right=right), tmp_path, kind)
    words = ["--prob", "mark", "--prob", "second", "--scale", "0,10"]
    found = compared(
        path, tmp_path, "--label", "truth", "--prediction", "answer", *words
    )
    assert found == compared(path, tmp_path, "--label", "right", *words)
    wanted = paired_difference(right, answers["p"], second, "brier_loss", level=0.9)
    for end in ("first", "second", "low", "high"):
        assert found["brier_loss"][end] == pytest.approx(
            getattr(wanted, end), abs=1e-12
        )


@pytest.fixture
def options_by_row(tmp_path):
    """Questions of two to four choices: two models, the second one too sure."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(120, 4)) * 2
    for row, n in enumerate(rng.integers(2, 5, 120)):
        logits[row, n:] = np.nan
    frame = pd.DataFrame({"y": 0}, index=range(120))
    for name, scale in (("p", 1.0), ("q", 2.0)):
        power = np.exp(scale * logits)
        proba = power / np.nansum(power, axis=1, keepdims=True)
        frame[[f"{name}{number}" for number in range(4)]] = proba
    chance = frame[["p0", "p1", "p2", "p3"]].fillna(0).to_numpy()
    frame["y"] = (rng.random((120, 1)) > chance.cumsum(axis=1)).sum(axis=1)
    return frame, str(tmp_path / "options.csv")


@pytest.mark.slow
def test_compare_of_options_by_row(options_by_row, tmp_path, capsys):
    frame, path = options_by_row
    frame.to_csv(path, index=False)
    words = ["--label", "y", "--prob", "p0,p1,p2,p3", "--prob", "q0,q1,q2,q3"]
    found = compared(path, tmp_path, *words, "--missing", "absent")
    probas = [
        canonical_proba(
            frame[[f"{name}{n}" for n in range(4)]].to_numpy(), absent="nan"
        )
        for name in "pq"
    ]
    for measure, own in (("log_loss", log_loss), ("brier_loss", brier_loss)):
        values = [own(frame.y, proba) for proba in probas]
        assert [found[measure]["first"], found[measure]["second"]] == pytest.approx(
            values
        )
    scaled = [
        log_loss(frame.y, TemperatureScaling().fit(p, frame.y).predict_proba(p))
        for p in probas
    ]
    after = found["log_loss, temperature"]
    assert [after["first"], after["second"]] == pytest.approx(scaled, rel=1e-5)
    assert main(["compare", path, *words]) == 2
    assert "add --missing absent" in capsys.readouterr().err
    lost = frame.p3.isna().to_numpy().argmax()
    frame.assign(y=frame.y.where(frame.index != lost, 3)).to_csv(path, index=False)
    assert main(["compare", path, *words, "--missing", "absent"]) == 2
    assert (
        f"got option 3, whose probability is NaN, in row {lost}"
        in capsys.readouterr().err
    )


def test_monitor_of_options_by_row(options_by_row, capsys):
    frame, path = options_by_row
    frame.to_csv(path, index=False)
    words = [
        "monitor",
        path,
        "--label",
        "y",
        "--prob",
        "q0,q1,q2,q3",
        "--alarm",
        "test",
    ]
    assert main([*words, "--missing", "absent"]) in (0, 3)
    said = capsys.readouterr().out
    proba = frame[["q0", "q1", "q2", "q3"]].fillna(0).to_numpy()
    assert str(CalibrationMonitor("test").update(frame.y, proba)) in said
    assert main(words) == 2
    assert "add --missing absent" in capsys.readouterr().err


def test_monitor_of_confidences(answers, tmp_path, capsys):
    path, state = written(answers, tmp_path, "csv"), tmp_path / "state.json"
    words = [
        "--label",
        "truth",
        "--prediction",
        "answer",
        "--prob",
        "mark",
        "--scale",
        "0,10",
    ]
    assert main(["monitor", path, *words, "--state", str(state)]) in (0, 3)
    right = (answers["truth"] == answers["answer"]).to_numpy()
    expected = CalibrationMonitor().update(right, answers["p"].to_numpy())
    assert str(expected) in capsys.readouterr().out
    found = json.loads(state.read_text(encoding="utf-8"))
    assert (found["n_samples"], found["classes"]) == (150, [0, 1])
    answers[right].to_csv(path, index=False)  # a day on which every answer is right
    assert main(["monitor", path, *words, "--state", str(state)]) in (0, 3)
    assert main(["monitor", path, *words, "--missing", "absent"]) == 2
    assert (
        "--prediction and --missing absent cannot be combined"
        in capsys.readouterr().err
    )
