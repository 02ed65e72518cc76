"""``compare``: two models on the same rows, from two files or from one."""

import io
import json
import os
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._cli import main
from sklearn_calib._cli._compare import EXAMPLES
from sklearn_calib.inference import paired_difference
from sklearn_calib.recalibrators import TemperatureScaling
from sklearn_calib.summary import CalibrationSummary

AS_USUAL = ["--label", "outcome", "--prob", "p", "--positive", "yes"]


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """A calibrated model p, an overconfident one q, one that has less r; and two files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sklearn_calib._cli._compare._COMPARED_MEASURES", ("log_loss", "accuracy")
    )
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=400)
    outcome = np.where(rng.random(400) < _expit(z), "yes", "no")
    columns = {
        "p": _expit(z),
        "q": _expit(2.5 * z),
        "r": _expit(0.3 * z + rng.normal(size=400)),
    }
    rows = (
        pd.DataFrame(columns)
        .round(5)
        .assign(outcome=outcome, customer=np.arange(400) + 7)
    )
    rows.to_csv("one.csv", index=False)
    rows.to_csv("old.csv", index=False)
    rows.assign(p=rows["q"]).to_csv("new.csv", index=False)
    return rows


def _expit(z):
    return 1 / (1 + np.exp(-z))


def compare(*arguments):
    return main(["compare", *arguments])


def said(capsys):
    captured = capsys.readouterr()
    assert not captured.out and captured.err.count("\n") == 1
    return captured.err.removeprefix("sklearn-calib: ")


def test_all_ways_to_name_two_models(frame, capsys, tmp_path):
    found = paired_difference(
        frame["outcome"], frame["p"], frame["q"], level=0.9, pos_label="yes"
    )
    frame[["customer", "q"]].sample(frac=1, random_state=0).to_parquet(
        "shuffled.parquet"
    )
    frame.assign(p=1 - frame["p"], q=1 - frame["q"]).to_csv("no.csv", index=False)
    outputs = []
    for arguments in (
        ["old.csv", "new.csv", *AS_USUAL],
        ["one.csv", *AS_USUAL, "--prob", "q", "--name", "old", "--name", "new"],
        ["old.csv", "shuffled.parquet", *AS_USUAL, "--prob", "q", "--id", "customer",
         "--name", "old", "--name", "new"],
        ["no.csv", *AS_USUAL, "--prob", "q", "--positive", "no", "--name", "old", "--name", "new"],
    ):  # fmt: skip
        assert compare(*arguments, "--json", "c.json") == 0
        outputs.append(capsys.readouterr().out)
        rows = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))[
            "differences"
        ]
        loss = next(row for row in rows if row["measure"] == "log_loss")
        assert loss["difference"] == pytest.approx(found.difference, rel=1e-9)
        assert loss["low"] == pytest.approx(found.low, rel=1e-9)
    assert len(set(outputs)) == 1
    assert "first: old, second: new" in outputs[0]
    assert (
        f"{found.difference:+.4f} │ {found.low:+.4f} to {found.high:+.4f}" in outputs[0]
    )
    text = " ".join(outputs[0].split())
    assert f"old is better: its log loss is lower by {found.difference:.4f}" in text
    assert "what makes it is calibration, which can be repaired" in text


def test_verdicts(frame, capsys):
    assert compare("one.csv", *AS_USUAL, "--prob", "r") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "p is better" in out
        and "After temperature scaling of both, p is also better: by 0." in out
    )
    assert (
        compare(
            "one.csv", "--label", "outcome", "--prob", "q", "--prob", "r", *AS_USUAL[4:]
        )
        == 0
    )
    out = " ".join(capsys.readouterr().out.split())
    assert "After temperature scaling of both, q is better" in out
    frame.assign(q=frame["p"] + 1e-6).to_csv("same.csv", index=False)
    assert compare("same.csv", *AS_USUAL, "--prob", "q") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "These rows do not show which model is better" in out


def test_several_classes_and_weights(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sklearn_calib._cli._compare._COMPARED_MEASURES", ("log_loss", "brier_loss")
    )
    rng = np.random.default_rng(0)
    one, two = rng.dirichlet(np.ones(3), 200), rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=row) for row in one])
    names = [f"{model}{c}" for model in "ab" for c in range(3)]
    frame = pd.DataFrame(np.hstack([one, two]), columns=names).assign(
        y=y, w=rng.integers(1, 4, 200)
    )
    frame.to_csv("t.csv", index=False)
    arguments = ["t.csv", "--label", "y", "--prob", "a0,a1,a2", "--prob", "b0,b1,b2"]
    assert compare(*arguments, "--weight", "w", "--name", "a", "--name", "b") == 0
    found = paired_difference(
        y, one, two, "brier_loss", level=0.9, sample_weight=frame["w"]
    )
    assert f"{found.difference:+.4f} │ {found.low:+.4f} to" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one.csv", *AS_USUAL], "or one file and --prob twice, got files: 1, --prob: 1. A file"),
        (["a.csv", "b.csv", *AS_USUAL], "No such file"),
        (["one.csv", "old.csv", "new.csv", *AS_USUAL], "expected two files"),
        (["one.csv", *AS_USUAL, "--prob", "p"], "expected two different models, got 'p' twice"),
        (["one.csv", *AS_USUAL, "--prob", "q", "--name", "x"], "expected --name twice"),
        (["one.csv", "--prob", "p", "--prob", "q"], "--label and --prob"),
        (["one.csv", *AS_USUAL, "--prob", "outcome"], "expected different columns for --label"),
        (["one.csv", *AS_USUAL, "--prob", "q,r"], "expected as many columns for both models"),
        (["one.csv", *AS_USUAL, "--prob", "z"], "expected a column 'z' in one.csv"),
        (["old.csv", "short.csv", *AS_USUAL], "got 400 and 399 rows. Match them with --id COLUMN"),
        (["old.csv", "other.csv", *AS_USUAL], "got 'yes' and 'no' in row 0 (of "),
        (["old.csv", "short.csv", *AS_USUAL, "--id", "customer"], "got 1 only in old.csv, for"),
        (["short.csv", "old.csv", *AS_USUAL, "--id", "customer"], "got 1 only in old.csv, for"),
        (["old.csv", "twice.csv", *AS_USUAL, "--id", "customer"], "'7' occurs several times"),
        (["old.csv", "new.csv", *AS_USUAL, "--json", "new.csv"], "it is the table itself"),
        (["old.csv", "holes.csv", *AS_USUAL], "got nan in row 5 of column 'p' of holes.csv. Fill "
         "them, or leave out such rows with --missing drop"),
        (["https://x/a.csv", "new.csv", *AS_USUAL], "add --allow remote"),
        (["old.csv", "large.csv", *AS_USUAL], "add --scale percent for percentages"),
    ],
)  # fmt: skip
def test_one_sentence(frame, capsys, tmp_path, arguments, message):
    frame[1:].to_csv("short.csv", index=False)
    label = frame["outcome"].iloc[::-1].reset_index(drop=True)
    label[0] = "no" if frame["outcome"][0] == "yes" else "yes"
    frame.assign(outcome=label).to_csv("other.csv", index=False)
    frame.assign(customer=7).to_csv("twice.csv", index=False)
    frame.assign(p=frame["p"].where(frame.index != 5)).to_csv("holes.csv", index=False)
    frame.assign(p=100 * frame["p"]).to_csv("large.csv", index=False)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert compare(*arguments) == 2
    text = said(capsys).replace("'yes' and 'no'", "_").replace("'no' and 'yes'", "_")
    assert message.replace("'yes' and 'no'", "_") in text
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_holes_in_one_of_the_files(frame, capsys):
    frame.assign(p=frame["q"].where(frame.index != 5)).to_csv("holes.csv", index=False)
    assert compare("old.csv", "holes.csv", *AS_USUAL, "--missing", "drop") == 0
    captured = capsys.readouterr()
    assert "left out, with missing values: row 5 of old.csv" in captured.err
    whole = frame.drop(5)
    found = paired_difference(
        whole["outcome"], whole["p"], whole["q"], level=0.9, pos_label="yes"
    )
    assert "399 rows" in captured.out and f"{found.low:+.4f} to" in captured.out


def test_the_examples_run(frame, capsys):
    frame = frame.assign(outcome=(frame["outcome"] == "yes").astype(int))
    frame.to_csv("old.csv", index=False)
    new = frame.assign(p=frame["q"], score=frame["q"], y=frame["outcome"])
    new.to_csv("new.csv", index=False)
    frame.assign(p_old=frame["p"], p_new=frame["q"]).to_csv("both.csv", index=False)
    for line in EXAMPLES:
        assert main(line.split()[1:]) == 0


@pytest.mark.slow
def test_the_calibration_error_is_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    pd.DataFrame({"p": p, "q": p**2, "outcome": y}).to_csv("t.csv", index=False)
    more = ["--prob", "q", "--resamples", "20", "--json", "c.json"]
    assert compare("t.csv", *AS_USUAL[:4], *more) == 0
    assert "smooth calibration error" in capsys.readouterr().out
    rows = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["differences"]
    error = next(row for row in rows if row["measure"] == "smooth_calibration_error")
    assert (
        error["method"] == "combined"
        and error["low"] < error["difference"] < error["high"]
    )


def test_whole_numbers_and_their_text_match(frame, capsys):
    frame.sample(frac=1, random_state=0).astype({"customer": str}).to_parquet(
        "text.parquet"
    )
    assert compare("old.csv", "text.parquet", *AS_USUAL, "--id", "customer") == 0
    assert "do not show which model is better" in capsys.readouterr().out


# -- rows that are read block by block --------------------------------------------------------


def differences(*arguments, columns=AS_USUAL[:4]):
    assert compare(*arguments, *columns, "--resamples", "20", "--json", "c.json") == 0
    with open("c.json", encoding="utf-8") as file:
        return {row.pop("measure"): row for row in json.load(file)["differences"]}


@pytest.fixture
def two_files(tmp_path, monkeypatch):
    """Two models in a csv and a parquet file, with weights, some of them 0."""
    monkeypatch.chdir(tmp_path)
    means = ("log_loss", "brier_loss", "accuracy")
    monkeypatch.setattr("sklearn_calib._cli._compare._COMPARED_MEASURES", means)
    rng = np.random.default_rng(3)
    z = 1.5 * rng.normal(size=700)
    p, q = _expit(z), _expit(1.4 * z + 0.2 * rng.normal(size=700))
    p[::60], q[::90] = 0.0, 1.0  # and the temperature finds out what these count as
    weight = np.where(rng.random(700) < 0.1, 0.0, rng.random(700))
    outcome = (rng.random(700) < p).astype(int)
    first = pd.DataFrame({"p": p, "outcome": outcome, "w": weight})
    first.to_csv("one.csv", index=False)
    first[["outcome"]].assign(p=q).to_parquet("two.parquet")
    return first.assign(q=q)


def tempered(proba, codes, weight):
    fitted = TemperatureScaling().fit(proba, codes, sample_weight=weight)
    return fitted.predict_proba(proba)


@pytest.mark.parametrize("weighted", [False, True])
def test_any_size_of_blocks_gives_the_numbers_of_the_rows(
    two_files, monkeypatch, weighted
):
    from sklearn_calib._cli import _tables
    from sklearn_calib._files import tables

    files = ["one.csv", "two.parquet", *(["--weight", "w"] if weighted else [])]
    whole = differences(*files)
    monkeypatch.setattr(
        _tables, "iter_table_blocks", partial(tables.iter_table_blocks, size=6000)
    )
    monkeypatch.setattr(tables, "_BATCH_ROWS", 101)
    assert differences(*files) == whole  # in every bit
    rows = two_files
    weight = rows["w"] if weighted else None
    given = {"level": 0.9, "sample_weight": weight, "n_resamples": 20}
    for name in ("log_loss", "brier_loss", "accuracy"):
        found = vars(
            paired_difference(rows["outcome"], rows["p"], rows["q"], name, **given)
        )
        for key in ("first", "second", "difference", "low", "high"):
            assert whole[name][key] == pytest.approx(found[key], rel=1e-9), (name, key)
    codes = rows["outcome"].to_numpy()
    after = [
        tempered(np.column_stack([1 - s, s]), codes, weight)
        for s in (rows["p"], rows["q"])
    ]
    found = vars(paired_difference(codes, *after, "log_loss", **given))
    for key in ("first", "second", "difference", "low", "high"):
        own = whole["log_loss, temperature"][key]
        assert own == pytest.approx(found[key], rel=1e-6), key


def test_cells_that_scores_share_are_said(two_files, monkeypatch, capsys):
    from sklearn_calib import summary

    said = "the calibration error is that of"
    differences("one.csv", "two.parquet")
    assert said not in capsys.readouterr().out
    rng = np.random.default_rng(0)
    p = rng.random(9000)
    pd.DataFrame({"p": p, "q": p**2, "outcome": rng.integers(0, 2, 9000)}).to_parquet(
        "m.parquet"
    )
    few = partial(summary.CalibrationSummary, 4096)
    monkeypatch.setattr(summary, "CalibrationSummary", few)
    differences("m.parquet", "--prob", "q")
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_labels_mean_the_same_in_every_block(frame, monkeypatch, capsys):
    """Text of a csv file, numbers and booleans; a block in which all labels look like numbers."""
    from sklearn_calib._cli import _tables
    from sklearn_calib._files import tables

    monkeypatch.setattr(
        _tables, "iter_table_blocks", partial(tables.iter_table_blocks, size=5000)
    )
    for yes, no in ((1, 0), (True, False), ("1", "x"), (3, -2)):
        label = np.where(frame["outcome"] == "yes", yes, no).tolist()
        table = frame.assign(outcome=pd.Series(label))
        table.to_csv("a.csv", index=False)
        table.assign(p=frame["q"]).to_json("b.jsonl", orient="records", lines=True)
        assert compare("a.csv", "b.jsonl", *AS_USUAL[:4], f"--classes={no},{yes}") == 0
        assert "a is better" in capsys.readouterr().out
    label[399] = "maybe"
    frame.assign(outcome=pd.Series(label)).to_csv("a.csv", index=False)
    assert compare("a.csv", *AS_USUAL[:4], "--prob", "q", "--classes=-2,3") == 2
    assert "got 'maybe' in row 399. Name all of them with --classes" in said(capsys)


def test_the_standard_input_is_one_of_the_files(frame, capsys, monkeypatch):
    files = ["old.csv", "new.csv", "--name", "old", "--name", "new"]
    assert compare(*files, *AS_USUAL) == 0
    expected = capsys.readouterr().out
    there = sorted(os.listdir())
    for place in range(2):
        with open(files[place], "rb") as stream:
            monkeypatch.setattr(
                "sys.stdin",
                io.TextIOWrapper(io.BytesIO(stream.read()), encoding="utf-8"),
            )
        given = [*files]
        given[place] = "-"
        assert compare(*given, *AS_USUAL) == 0
        assert capsys.readouterr().out == expected
    assert compare("-", "-", *AS_USUAL) == 2
    assert "The standard input is named twice" in said(capsys)
    assert sorted(os.listdir()) == there


def test_rows_left_out_of_blocks_are_counted(frame, capsys, monkeypatch):
    from sklearn_calib._cli import _tables
    from sklearn_calib._files import tables

    monkeypatch.setattr(
        _tables, "iter_table_blocks", partial(tables.iter_table_blocks, size=5000)
    )
    holes = frame.index % 50 == 7
    frame.assign(p=frame["q"].where(~holes)).to_csv("holes.csv", index=False)
    assert compare("old.csv", "holes.csv", *AS_USUAL, "--missing", "drop") == 0
    captured = capsys.readouterr()
    left_out = (
        "left out, with missing values: rows 7, 57, 107, 157, 207 and 3 more of old.csv"
    )
    assert captured.err.count("left out") == 1 and left_out in captured.err
    whole = frame[~holes]
    found = paired_difference(
        whole["outcome"], whole["p"], whole["q"], level=0.9, pos_label="yes"
    )
    assert "392 rows" in captured.out and f"{found.low:+.4f} to" in captured.out


@pytest.mark.slow
def test_no_more_than_some_blocks_are_held(two_files, monkeypatch):
    """Of both files at a time, however many rows there are."""
    from sklearn_calib._cli import _tables
    from sklearn_calib._files import tables

    held, most = [], []

    def watched(file, pick, **given):
        for table in tables.iter_table_blocks(file, pick, **given, size=2000):
            held.append(weakref.ref(table.columns))
            most.append(sum(ref() is not None for ref in held))
            yield table

    monkeypatch.setattr(_tables, "iter_table_blocks", watched)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 70)
    differences("one.csv", "two.parquet")
    assert len(held) > 20 and max(most) <= 6


# -- several classes --------------------------------------------------------------------------

OF_THREE = ["--label", "y", "--prob", "a0,a1,a2"]


@pytest.fixture
def three_classes(tmp_path, monkeypatch):
    """Two models in a csv and a parquet file, with weights, some of them 0, and scores of 0."""
    monkeypatch.chdir(tmp_path)
    means = ("log_loss", "brier_loss", "accuracy")
    monkeypatch.setattr("sklearn_calib._cli._compare._COMPARED_MEASURES", means)
    rng = np.random.default_rng(4)
    logits = 1.5 * rng.normal(size=(600, 3))
    noisy = 1.6 * logits + 0.4 * rng.normal(size=(600, 3))
    one, two = (
        np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in (logits, noisy)
    )
    one[::50], two[::50] = [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    weight = np.where(rng.random(600) < 0.1, 0.0, rng.random(600))
    names = ["a0", "a1", "a2"]
    label = np.array(["x", "y", "z"])[y]
    pd.DataFrame(one, columns=names).assign(y=label, w=weight).to_csv(
        "one.csv", index=False
    )
    pd.DataFrame(two, columns=names).assign(y=label).to_parquet("two.parquet")
    return y, one, two, weight


def in_small_blocks(monkeypatch):
    from sklearn_calib._cli import _tables
    from sklearn_calib._files import tables

    monkeypatch.setattr(
        _tables, "iter_table_blocks", partial(tables.iter_table_blocks, size=6000)
    )
    monkeypatch.setattr(tables, "_BATCH_ROWS", 101)


@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_in_any_blocks(three_classes, monkeypatch, capsys, weighted):
    y, one, two, weight = three_classes
    files = [
        "one.csv",
        "two.parquet",
        *OF_THREE,
        *(["--weight", "w"] if weighted else []),
    ]
    whole = differences(*files, columns=())
    assert "draw" not in capsys.readouterr().out
    in_small_blocks(monkeypatch)
    assert differences(*files, columns=()) == whole  # in every bit
    given = {
        "level": 0.9,
        "sample_weight": weight if weighted else None,
        "n_resamples": 20,
    }
    wanted = {
        name: (y, one, two, name) for name in ("log_loss", "brier_loss", "accuracy")
    }
    after = (tempered(proba, y, given["sample_weight"]) for proba in (one, two))
    wanted["log_loss, temperature"] = (y, *after, "log_loss")
    for name, arguments in wanted.items():
        found = vars(paired_difference(*arguments, **given))
        for key in ("first", "second", "difference", "low", "high"):
            assert whole[name][key] == pytest.approx(found[key], rel=1e-6), (name, key)


@pytest.mark.slow
def test_the_calibration_error_of_several_classes(three_classes, monkeypatch):
    y, one, two, weight = three_classes
    measures = ("log_loss", "smooth_calibration_error")
    monkeypatch.setattr("sklearn_calib._cli._compare._COMPARED_MEASURES", measures)
    in_small_blocks(monkeypatch)
    files = ["one.csv", "two.parquet", *OF_THREE, "--weight", "w"]
    own = differences(*files, columns=())["smooth_calibration_error"]
    given = {"level": 0.9, "sample_weight": weight, "n_resamples": 20}
    found = vars(paired_difference(y, one, two, "smooth_calibration_error", **given))
    for key in ("first", "second", "difference"):
        assert own[key] == pytest.approx(found[key], rel=1e-9), key
    cells = [
        CalibrationSummary(classes=range(3)).update(y, p, weight) for p in (one, two)
    ]
    del given["sample_weight"]
    found = vars(paired_difference(None, *cells, "smooth_calibration_error", **given))
    for key in ("low", "high"):
        assert own[key] == pytest.approx(found[key], rel=1e-9), key


@pytest.mark.slow
@pytest.mark.usefixtures("three_classes")
def test_rows_drawn_for_the_temperatures_are_said(monkeypatch, capsys):
    """The same ones in any order; losses are those of all rows; no more than these are held."""
    from sklearn_calib import summary

    whole = differences("one.csv", "two.parquet", *OF_THREE, columns=())
    monkeypatch.setattr(summary, "get_max_sample_rows", lambda n_classes: 100)
    capsys.readouterr()
    few = differences("one.csv", "two.parquet", *OF_THREE, columns=())
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "The two temperatures are fitted to 1" in text and "of these 600 rows" in text
    )
    order = np.random.default_rng(0).permutation(600)
    # in all their digits
    header, *lines = Path("one.csv").read_text(encoding="utf-8").splitlines()
    Path("three.csv").write_text(
        "\n".join([header, *(lines[place] for place in order)]) + "\n", encoding="utf-8"
    )
    pd.read_parquet("two.parquet").iloc[order].to_parquet("four.parquet")
    in_small_blocks(monkeypatch)
    assert differences("three.csv", "four.parquet", *OF_THREE, columns=()) == few
    after = "log_loss, temperature"
    assert {name: few[name] for name in few if name != after} == {
        name: whole[name] for name in whole if name != after
    }
    assert few[after] != whole[after]
    assert few[after]["difference"] == pytest.approx(
        whole[after]["difference"], abs=0.02
    )


@pytest.mark.slow
@pytest.mark.usefixtures("three_classes")
def test_blocks_of_several_classes_are_let_go(monkeypatch):
    """Also those of probabilities, which the draw keeps no views of."""
    from sklearn_calib import summary
    from sklearn_calib._cli import _compare, _pairs

    held, most = [], []
    read = _pairs.get_scores

    def watched(*given):
        proba = read(*given)
        held.append(weakref.ref(proba))
        most.append(sum(ref() is not None for ref in held))
        return proba

    monkeypatch.setattr(_pairs, "get_scores", watched)
    monkeypatch.setattr(_compare, "_MAX_KEPT_ROWS", 20)  # which are kept
    monkeypatch.setattr(summary, "get_max_sample_rows", lambda n_classes: 50)
    in_small_blocks(monkeypatch)
    differences("one.csv", "two.parquet", *OF_THREE, columns=())
    assert len(held) > 20 and max(most) <= 6


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Two models of three classes, with weights and clusters that the rows' order does not tell."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    one, two = rng.dirichlet(np.ones(3), 90), rng.dirichlet(np.ones(3), 90)
    frame = pd.DataFrame(
        np.hstack([one, two]), columns=[m + c for m in "ab" for c in "012"]
    )
    y = (rng.random((90, 1)) > one.cumsum(axis=1)).sum(axis=1)
    frame = frame.assign(y=y, w=rng.integers(1, 9, 90), shop=rng.integers(0, 12, 90))
    frame.to_csv("t.csv", index=False)
    return frame, one, two


@pytest.mark.parametrize("clusters", [False, True])
def test_blocks_of_three_classes_keep_their_weights_and_clusters(
    three, monkeypatch, clusters
):
    frame, one, two = three
    monkeypatch.setattr("sklearn_calib._cli._compare._COMPARED_MEASURES", ("log_loss",))
    in_small_blocks(monkeypatch)
    columns = [
        "--label",
        "y",
        "--prob",
        "a0,a1,a2",
        "--prob",
        "b0,b1,b2",
        "--weight",
        "w",
    ]
    more = ["--cluster", "shop"] if clusters else []
    found = differences("t.csv", columns=columns + more)["log_loss"]
    groups = frame["shop"] if clusters else None
    expected = paired_difference(
        frame["y"], one, two, level=0.9, sample_weight=frame["w"], groups=groups
    )
    for name in ("difference", "low", "high"):
        assert found[name] == pytest.approx(getattr(expected, name), rel=1e-9)


@pytest.mark.slow
def test_the_calibration_error_of_clusters_with_weights(frame, monkeypatch):
    measures = ("log_loss", "smooth_calibration_error")
    monkeypatch.setattr("sklearn_calib._cli._compare._COMPARED_MEASURES", measures)
    some = frame[:60].assign(
        w=1.0 + 8 * (frame["p"] > 0.6), shop=np.arange(60) * 7 % 25
    )
    some.to_csv("few.csv", index=False)
    columns = [*AS_USUAL, "--prob", "q", "--weight", "w", "--cluster", "shop"]
    found = differences("few.csv", columns=columns)["smooth_calibration_error"]
    given = {"sample_weight": some["w"], "groups": some["shop"], "n_resamples": 20}
    given["pos_label"] = "yes"
    rows = (some["outcome"], some["p"], some["q"], "smooth_calibration_error")
    expected = paired_difference(*rows, level=0.9, **given)
    for name in ("first", "second", "difference"):
        assert found[name] == pytest.approx(getattr(expected, name), rel=1e-9), name
    plain = paired_difference(*rows, level=0.9, **(given | {"sample_weight": None}))
    assert abs(plain.difference - expected.difference) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--cluster", "half"]])
def test_a_page_of_both_models(frame, capsys, tmp_path, more):
    for name in ("old.csv", "new.csv"):
        table = pd.read_csv(name)
        table.assign(half=np.arange(400) // 2).to_csv(name, index=False)
    columns = [*AS_USUAL, "--resamples", "20", *more]
    assert compare("old.csv", "new.csv", *columns, "--out", "page.html") == 0
    out = capsys.readouterr().out
    assert f"report: {tmp_path / 'page.html'}" in out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<h2>Which model is better</h2>" in page
    assert "400 rows, 2 classes" in page and "0 is no, 1 is yes" in page
    better = next(line for line in out.splitlines() if " is better: " in line)
    assert better.split(" (")[0] in page
    # a report on summaries would take the rows of clusters for independent
    assert ("<h2>Reliability</h2>" in page) == (not more)
    assert compare("old.csv", "new.csv", *columns, "--out", "old.csv") == 2
    assert "it is the table itself" in capsys.readouterr().err
