"""The commands fit, apply and export."""

import csv
import io
import json
import os
import re
import shlex
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from systems import symlink

from sklearn_calib._cli import _apply, _export, _fit, _streams, main
from sklearn_calib._files import tables
from sklearn_calib._files.csv_text import get_exact_number_options
from sklearn_calib._files.tables import iter_table_blocks
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_json, to_json
from sklearn_calib.inference import paired_difference
from sklearn_calib.recalibrators import (
    AngularCalibration,
    PlattScaling,
    TemperatureScaling,
    cross_fitted_proba,
)
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

COLUMNS = ["--label", "y", "--prob", "p", "--positive", "yes"]
read_csv = partial(pd.read_csv, **get_exact_number_options())


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Overconfident rows in cal.csv, and a map of them in map.json."""
    monkeypatch.chdir(tmp_path)
    proba, y = make_overconfident(2, 400)
    frame = pd.DataFrame({"id": [f"{i:04d}" for i in range(400)], "p": proba[:, 1]})
    frame["y"] = np.array(["no", "yes"])[y]
    frame.to_csv("cal.csv", index=False)
    fitted = PlattScaling().fit(frame["p"], frame["y"], classes=["no", "yes"])
    to_json(fitted, "map.json")
    return frame, fitted


def fit(*arguments, method="platt"):
    return main(["fit", "cal.csv", *COLUMNS, "--out", "new.json", "--recalibrator", method,
                 *arguments])  # fmt: skip


def apply(file, out, *arguments, map="map.json"):
    return main(["apply", map, file, "--prob", "p", "--out", out, *arguments])


def left():
    """What lies in the folder, temporary files too."""
    return sorted(os.listdir())


def one_sentence(capsys):
    """What went wrong; nothing is on the standard output."""
    captured = capsys.readouterr()
    assert captured.err.startswith("sklearn-calib: ") and captured.err.count("\n") == 1
    return captured.err


def test_fit_writes_the_map_and_says_what_it_gains(rows, capsys):
    frame, fitted = rows
    frame.assign(w=np.arange(400) % 3).to_csv("cal.csv", index=False)
    assert fit("--weight", "w") == 0
    weight = np.arange(400) % 3
    fitted = PlattScaling().fit(
        frame["p"], frame["y"], classes=["no", "yes"], sample_weight=weight
    )
    written = from_json("new.json")
    assert written.classes_.tolist() == ["no", "yes"]
    expected = fitted.predict_proba(frame["p"])
    assert np.abs(written.predict_proba(frame["p"]) - expected).max() < 1e-12
    given = {"sample_weight": weight, "classes": ["no", "yes"]}
    after = cross_fitted_proba("platt", frame["p"], frame["y"], **given)
    found = paired_difference(
        frame["y"],
        frame["p"],
        after,
        level=0.9,
        sample_weight=weight,
        labels=["no", "yes"],
    )
    said = " ".join(capsys.readouterr().out.split())
    words = (
        r"a gain of (\S+) \(standard error (\S+), 90 % interval (\S+) to (\S+), 5 folds"
    )
    gain, error, low, high = map(float, re.search(words, said).groups())
    assert abs(gain + found.difference) < error / 4  # folds of cells, and of rows
    assert error == pytest.approx(
        np.sqrt(2) * (found.high - found.low) / 2 / 1.6448536, rel=0.1
    )
    assert (high - low) / 2 / error == pytest.approx(1.6448536, rel=2e-3)
    assert "400 rows, classes no, yes" in said and -found.difference > 0


@pytest.mark.slow
def test_fit_and_audit_say_the_same_gain(rows, capsys):
    """One number for one file: both judge by the same folds of the same cells."""
    frame = rows[0].assign(w=np.arange(400) % 3)
    frame.to_csv("cal.csv", index=False)
    assert fit("--weight", "w") == 0
    said = " ".join(capsys.readouterr().out.split())
    how = {
        "sample_weight": frame["w"],
        "n_resamples": 2,
        "advice": True,
        "pos_label": "yes",
    }
    report = calibration_report(frame["y"], frame["p"], measures=["log_loss"], **how)
    row = report.advice["model"].row("platt")
    assert f"a gain of {row.gain:.4f} (standard error {row.standard_error:.4f}," in said
    assert f"is {row.loss:.4f}, as given" in said


@pytest.mark.slow
def test_small_maps(rows, capsys):
    frame, _ = rows
    assert fit(method="venn_abers") == 0
    large = from_json("new.json")
    assert fit("--simplify", "0.01", method="venn_abers") == 0
    small = from_json("new.json")
    assert small.document["largest_error"] == {"simplify": 0.01}
    assert len(str(small.document)) < len(str(large.document)) / 2
    difference = small.predict_proba(frame["p"]) - large.predict_proba(frame["p"])
    assert 0 < np.abs(difference).max() <= 0.01
    assert fit(method="angular") == 2
    assert "Pass --tabulate 1e-06" in capsys.readouterr().err


def gain_of(text):
    found = re.search(
        r"is ([\d.]+), as given ([\d.]+): a gain of ([-\d.]+)", " ".join(text.split())
    )
    return np.array(found.groups(), dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [[], ["--weight", "w"], ["--positive", "no", "--allow", "order"]]
)
def test_large_tables_are_fitted_in_cells(rows, capsys, monkeypatch, more):
    """As from rows in memory: the same map, nearly the same gain (other folds)."""
    frame = rows[0].assign(w=1 + np.arange(400) % 3)
    frame.to_csv("cal.csv", index=False)
    frame.to_parquet("cal.parquet")
    assert fit(*more) == 0
    of_rows, known = from_json("new.json"), gain_of(capsys.readouterr().out)
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    for file in ("cal.csv", "cal.parquet"):
        words = [
            "fit",
            file,
            *COLUMNS,
            "--out",
            "cells.json",
            "--recalibrator",
            "platt",
            *more,
        ]
        assert main(words) == 0
        said = capsys.readouterr().out
        np.testing.assert_allclose(gain_of(said), known, atol=0.01)
        assert "400 rows" in said
        of_cells = from_json("cells.json")
        assert of_cells.classes_.tolist() == of_rows.classes_.tolist()
        one, two = (each.predict_proba(frame["p"]) for each in (of_cells, of_rows))
        assert 0 < np.abs(one - two).max() < 1e-5
    if more != ["--weight", "w"]:
        main(
            [
                "audit",
                "cal.csv",
                *COLUMNS,
                *more,
                "--out",
                "none",
                "--no-advice",
                "--save",
                "s.parquet",
            ]
        )
        again = [
            "fit",
            "s.parquet",
            "--out",
            "saved.json",
            "--recalibrator",
            "platt",
            *more[2:],
        ]
        assert main(again) == 0
        saved, cells = (
            json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
            for name in ("saved", "cells")
        )
        assert cells.pop("columns") == {"label": ["y"], "scores": ["p"]}
        # a summary has no such names
        assert saved | {"sha256": ""} == cells | {"sha256": ""}


def test_many_rows_of_a_small_file_are_fitted_in_cells(rows, capsys, monkeypatch):
    monkeypatch.setattr(_fit, "_MAX_UNPOOLED_ROWS", 399)
    monkeypatch.setattr(_fit, "_fit_rows", None)
    assert fit() == 0 and "400 rows, classes no, yes" in capsys.readouterr().out


def test_a_large_table_of_the_other_class(rows, capsys, monkeypatch):
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    assert fit("--positive", "no") == 2
    assert "got probabilities of the other class. Add --positive" in one_sentence(
        capsys
    )
    rows[0][rows[0].index < 4].to_csv("cal.csv", index=False)
    assert fit() == 2
    assert "expected at least 5 rows of each class" in one_sentence(capsys)
    assert fit("--allow", "no-gain") == 0


@pytest.mark.parametrize("large", [False, True])
def test_repeated_rows_are_told_once(rows, capsys, monkeypatch, large):
    if large:
        monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    pd.concat([rows[0]] * 6).to_csv("cal.csv", index=False)
    fit(method="temperature")
    said = capsys.readouterr().err
    assert said.count("got scores that repeat with the same labels") == 1
    assert "sklearn-calib: expected" in said and "with --cluster" in said


def test_fewer_groups_than_folds(rows, capsys):
    rows[0].assign(g=np.arange(400) % 3).to_csv("cal.csv", index=False)
    assert fit("--cluster", "g") == 2
    said = capsys.readouterr().err
    assert (
        "expected at least 5 groups, one for each fold, got 3. Name a column of more"
        in said
    )


def test_summaries_heed_what_they_can(rows, capsys):
    frame = rows[0]
    CalibrationSummary(classes=["no", "yes"]).update(frame["y"], frame["p"]).to_parquet(
        "two.parquet"
    )
    proba, y = make_overconfident(3, 60)
    CalibrationSummary(multiclass="top_label").update(y, proba).to_parquet(
        "three.parquet"
    )
    CalibrationSummary().to_parquet("none.parquet")
    for file, arguments, message in (
        (
            "two.parquet",
            ["--weight", "w"],
            "expected rows for --weight, got summaries, which keep",
        ),
        (
            "two.parquet",
            ["--positive", "no"],
            "expected --positive 'yes', as the summaries have",
        ),
        (
            "three.parquet",
            [],
            "a summary of two classes, got a summary of 3 classes in three.parquet",
        ),
        (
            "none.parquet",
            [],
            "a summary of at least one row, got an empty summary. Give",
        ),
    ):
        again = ["fit", file, "--out", "new.json", "--recalibrator", "platt"]
        assert main([*again, *arguments]) == 2
        assert message in one_sentence(capsys)
    assert main(["fit", "two.parquet", "--out", "new.json", "--recalibrator", "platt",
                 "--positive", "yes"]) == 0  # fmt: skip


def test_workers_read_the_files_of_a_fit(rows, monkeypatch):
    asked = []

    def on_workers(address, work):
        asked.append(address)
        return work(None)

    monkeypatch.setattr(
        "sklearn_calib._cli._large._run_here_or_on_dask_workers", on_workers
    )
    assert fit("--dask", "tcp://here:8786") == 0
    assert asked == ["tcp://here:8786"]


@pytest.mark.slow
def test_a_method_that_needs_the_order_reads_all_rows(rows, monkeypatch):
    assert fit("--allow", "no-gain", method="online") == 0
    expected = Path("new.json").read_text(encoding="utf-8")
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    assert fit("--allow", "no-gain", method="online") == 0
    assert Path("new.json").read_text(encoding="utf-8") == expected


@pytest.mark.slow
def test_maps_without_a_finite_form(rows):
    frame, _ = rows
    assert fit("--tabulate", "1e-3", method="angular") == 0
    found = from_json("new.json").predict_proba(frame["p"])
    expected = (
        AngularCalibration()
        .fit(frame["p"], frame["y"], classes=["no", "yes"])
        .predict_proba(frame["p"])
    )
    assert np.abs(found - expected).max() <= 1e-3


def test_fit_refuses_where_recalibration_hurts(rows, capsys):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    calibrated = pd.DataFrame({"p": p, "y": np.where(rng.random(200) < p, "yes", "no")})
    calibrated.to_csv("cal.csv", index=False)
    assert fit(method="isotonic") == 3
    captured = capsys.readouterr()
    assert "nothing was written: isotonic does not lower the log loss" in captured.err
    assert "--allow", "no-gain" in captured.err and "new.json" not in left()
    assert fit("--allow", "no-gain", method="isotonic") == 0
    assert from_json("new.json").classes_.tolist() == ["no", "yes"]


def test_fit_judges_only_with_five_rows_of_each_class(rows, capsys):
    frame, _ = rows
    few = frame[(frame["y"] == "yes") | (frame.index < 6)]
    few.to_csv("cal.csv", index=False)
    assert 0 < (few["y"] == "no").sum() < 5
    assert fit() == 2
    assert "expected at least 5 rows of each class" in one_sentence(capsys)
    assert fit("--allow", "no-gain") == 0
    assert "too few rows of some class" in capsys.readouterr().out


def test_several_classes_and_logits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proba, y = make_overconfident(3, 300)
    logits = np.log(proba) + 1.5
    for name, scores, more in (("p", proba, []), ("z", logits, ["--scale", "logits"])):
        pd.DataFrame(scores, columns=[*"abc"]).assign(y=y + 1).to_csv(
            f"{name}.csv", index=False
        )
        words = [
            "fit",
            f"{name}.csv",
            "--label",
            "y",
            "--prob",
            "a,b,c",
            "--out",
            f"{name}.json",
        ]
        assert main([*words, "--recalibrator", "temperature", *more]) == 0
        assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))[
            "classes"
        ] == [
            1,
            2,
            3,
        ]
        words = ["apply", f"{name}.json", f"{name}.csv", "--out", "out.parquet", *more]
        assert (
            main([*words, "--prob", "c,a,b", "--classes", "3,1,2", "--name", "u,v,w"])
            == 0
        )
        found = pd.read_parquet("out.parquet")
        expected = TemperatureScaling().fit(proba, y).predict_proba(proba)
        assert np.abs(found[["v", "w", "u"]] - expected).to_numpy().max() < 1e-12
        assert list(found) == ["a", "b", "c", "y", "u", "v", "w"]


def test_positive_class(rows):
    """The column of the other class, in both commands."""
    frame, fitted = rows
    frame.assign(p=1 - frame["p"]).to_csv("cal.csv", index=False)
    assert fit("--positive", "no") == 0
    assert from_json("new.json").classes_.tolist() == ["yes", "no"]
    assert apply("cal.csv", "a.parquet", map="new.json") == 0
    assert apply("cal.csv", "b.parquet", "--positive", "no") == 0
    expected = fitted.predict_proba(frame["p"])[:, 0]
    # one of a fit with the classes exchanged
    for name, bound in (
        ("a", 1e-7),
        ("b", 1e-12),
    ):
        found = pd.read_parquet(f"{name}.parquet")["p_calibrated"]
        assert np.abs(found - expected).max() < bound


# -- apply ----------------------------------------------------------------------------------------


def parquet_of_all_kinds(frame):
    """Types that a detour through another library would change."""
    n = len(frame)
    table = pa.table(
        {
            "p": pa.array(frame["p"]),
            "list": pa.array([[i, None] for i in range(n)]),
            "small": pa.array(np.arange(n) % 7, pa.int8()),
            "holes": pa.array([None if i % 2 else i for i in range(n)], pa.int64()),
            "time": pa.array(np.arange(n), pa.timestamp("us", tz="Europe/Rome")),
            "kind": pa.array(["a", "b"] * (n // 2)).dictionary_encode(),
            "money": pa.array([None] * n, pa.decimal128(12, 2)),
        }
    )
    return table.replace_schema_metadata({"owner": "somebody"})


def test_parquet_keeps_all_columns_and_their_types(rows, monkeypatch):
    frame, fitted = rows
    monkeypatch.setattr(tables, "_BATCH_ROWS", 64)
    table = parquet_of_all_kinds(frame)
    pq.write_table(table, "in.parquet", row_group_size=150)
    assert apply("in.parquet", "out.parquet") == 0
    found = pq.read_table("out.parquet")
    assert found.drop_columns(["p_calibrated"]).equals(table)
    assert found.schema.metadata[b"owner"] == b"somebody"
    expected = fitted.predict_proba(frame["p"])[:, 1]
    assert np.abs(found["p_calibrated"].to_numpy() - expected).max() < 1e-15


CSV = (
    '\ufeffid;p;note\r\n'
    '007;0,25;"a ""quoted"";\r\nnote"\r\n'
    "\r\n"
    "NA;0,5\r\n"  # a cell is missing
    " x;0,75;1,50;;\r\n"  # empty ones too many
    "=1+1;1;\u2028"
)  # fmt: skip


def test_csv_keeps_every_line_as_it_is(rows):
    with open("in.csv", "w", newline="", encoding="utf-8") as file:
        file.write(CSV)
    assert apply("in.csv", "out.csv") == 0
    with open("out.csv", newline="", encoding="utf-8") as file:
        text = file.read()
    q = [_comma(value) for value in rows[1].predict_proba([0.25, 0.5, 0.75, 1.0])[:, 1]]
    assert text == (
        "\ufeffid;p;note;p_calibrated\r\n"
        f'007;0,25;"a ""quoted"";\r\nnote";{q[0]}\r\n'
        f"NA;0,5;;{q[1]}\r\n"
        f" x;0,75;1,50;{q[2]}\r\n"
        f"=1+1;1;\u2028;{q[3]}\n"
    )


def test_new_cells_never_take_the_place_of_others(rows):
    """A row that ends early, with a separator inside quotes: as many separators as a whole row."""
    with open("in.csv", "w", encoding="utf-8") as file:
        file.write('name,p,note\n"Smith, J",0.3\nDoe,0.4,x\n')
    assert apply("in.csv", "out.csv") == 0
    found = read_csv("out.csv")
    expected = rows[1].predict_proba([0.3, 0.4])[:, 1]
    assert found["p_calibrated"].tolist() == expected.tolist()
    assert found["note"].fillna("").tolist() == ["", "x"]


def test_long_cells(rows):
    before, note = csv.field_size_limit(), "x, " * 50_000
    pd.DataFrame({"note": [note], "p": [0.3]}).to_csv("in.csv", index=False)
    for out, read in (("out.csv", pd.read_csv), ("out.parquet", pd.read_parquet)):
        assert apply("in.csv", out) == 0
        assert read(out)["note"].tolist() == [note]
    assert csv.field_size_limit() == before


def _comma(value):
    return repr(float(value)).replace(".", ",")


def test_csv_in_blocks_and_from_several_files(rows, monkeypatch):
    frame, fitted = rows
    frame["note"] = ['x, "y"\nz' if i % 3 else "" for i in range(400)]
    frame[:150].to_csv("a1.csv", index=False)
    frame[150:].to_csv("a2.csv", index=False)
    monkeypatch.setattr(
        _streams,
        "iter_table_blocks",
        lambda *a, **k: iter_table_blocks(*a, **k, size=900),
    )
    expected = fitted.predict_proba(frame["p"])[:, 1]
    for out in ("out.csv", "out.parquet"):
        assert apply("a?.csv", out) == 0
    found = read_csv("out.csv", dtype={"id": str}, keep_default_na=False)
    assert found.drop(columns="p_calibrated").equals(frame)
    assert np.abs(found["p_calibrated"] - expected).max() < 1e-15
    stored = pd.read_parquet("out.parquet")
    assert stored["id"].tolist() == frame["id"].tolist()  # 0007 is text
    assert (stored["p"] == frame["p"]).all() and (
        stored["p_calibrated"] == expected
    ).all()
    assert stored["note"].isna().tolist() == (frame["note"] == "").tolist()


def test_types_of_csv_columns_lose_no_digit(rows):
    columns = {
        "p": ["0.5", "0.25"],
        "whole": ["-3", "123456789012345678"],
        "code": ["7", "007"],
        "long": ["123456789012345678", "0.5"],
        "mixed": ["12", "1.5e3"],
        "empty": ["", ""],
    }
    with open("in.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    assert apply("in.csv", "out.parquet") == 0
    found = pq.read_table("out.parquet").to_pydict()
    del found["p_calibrated"]
    assert found == {
        "p": [0.5, 0.25],
        "whole": [-3, 123456789012345678],
        "code": ["7", "007"],
        "long": ["123456789012345678", "0.5"],
        "mixed": [12.0, 1500.0],
        "empty": [None, None],
    }


def test_new_names_never_meet_those_of_the_table(rows, capsys):
    frame, _ = rows
    frame.assign(P_Calibrated=1, p_calibrated_2=2).to_csv("in.csv", index=False)
    assert apply("in.csv", "out.csv") == 0
    assert list(pd.read_csv("out.csv"))[-3:] == [
        "P_Calibrated",
        "p_calibrated_2",
        "p_calibrated_3",
    ]
    assert apply("in.csv", "out.csv", "--name", 'a,b;"c"') == 2
    assert apply("in.csv", "out.csv", "--name", '"a,b""c"') == 0
    assert list(pd.read_csv("out.csv"))[-1] == 'a,b"c'
    capsys.readouterr()
    assert apply("in.csv", "new.csv", "--name", "ID") == 2
    assert "expected new names in --name, got 'ID'" in one_sentence(capsys)
    assert "new.csv" not in left()


def test_missing_probabilities(rows, capsys):
    frame, fitted = rows
    frame.loc[[3, 7], "p"] = np.nan
    frame.to_csv("in.csv", index=False)
    frame.to_parquet("in.parquet")
    expected = fitted.predict_proba(frame["p"].dropna())[:, 1]
    for name in ("in.csv", "in.parquet"):
        assert apply(name, "out.parquet") == 2
        said = one_sentence(capsys)
        assert (
            "got nan in rows 3 and 7" in said
            and "keep them with --missing keep." in said
        )
        assert "out.parquet" not in left()
        for out in ("out.csv", "out.parquet"):
            assert apply(name, out, "--missing", "keep") == 0
        capsys.readouterr()
        for found in (read_csv("out.csv"), pd.read_parquet("out.parquet")):
            new = found["p_calibrated"]
            assert np.flatnonzero(new.isna()).tolist() == [3, 7]
            assert np.abs(new.dropna() - expected).max() < 1e-15
        os.remove("out.parquet")


def test_standard_input_and_output(rows, capsysbinary, monkeypatch):
    with open("cal.csv", "rb") as file:
        content = file.read()
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
    )
    assert apply("-", "-") == 0
    streamed = capsysbinary.readouterr().out
    assert apply("cal.csv", "out.csv") == 0
    with open("out.csv", "rb") as file:
        assert file.read() == streamed
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"q\n0.5\n"), encoding="utf-8")
    )
    capsysbinary.readouterr()
    assert apply("-", "-") == 2
    assert (
        b"expected a column 'p' in standard input, got q"
        in capsysbinary.readouterr().err
    )
    frame, _ = rows
    frame.loc[399, "p"] = 2  # after some blocks were written
    text = frame.to_csv(index=False).encode()
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8")
    )
    monkeypatch.setattr(
        _streams,
        "iter_table_blocks",
        lambda *a, **k: iter_table_blocks(*a, **k, size=900),
    )
    assert apply("-", "-") == 2
    captured = capsysbinary.readouterr()
    assert b"got 2 in row 399" in captured.err and captured.out.startswith(
        b"id,p,y,p_calibrated\n"
    )


def bad_map(change):
    document = json.loads(Path("map.json").read_text(encoding="utf-8"))
    change(document)
    with open("bad.json", "w", encoding="utf-8") as file:
        json.dump(document, file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["map.json", "cal.csv", "--prob", "q"], "expected a column 'q' in cal.csv"),
        (
            ["map.json", "cal.csv", "--prob", "p,id,y"],
            "expected one or 2 columns in --prob",
        ),
        (
            ["map.json", "cal.csv", "--prob", "p", "--classes", "no,maybe"],
            "classes of the map",
        ),
        (
            ["map.json", "cal.csv", "--prob", "p", "--positive", "maybe"],
            "--positive among no, yes",
        ),
        (
            ["map.json", "cal.csv", "--prob", "p", "--scale", "logits"],
            "Leave --scale logits out",
        ),
        (["map.json", "cal.csv", "--prob", "y"], "expected numbers in column 'y'"),
        (
            ["map.json", "cal.csv", "high.csv", "--prob", "p"],
            "expected probabilities in",
        ),
        (
            ["map.json", "cal.csv", "other.csv", "--prob", "p"],
            "the columns, separator and encod",
        ),
        (
            ["map.json", "cal.csv", "in.parquet", "--prob", "p"],
            "expected files of one format",
        ),
        (["map.json", "nowhere.csv", "--prob", "p"], "Check the path"),
        (
            ["cal.csv", "map.json", "--prob", "p"],
            "cal.csv, the text: expected JSON, got",
        ),
        (
            ["nowhere.json", "cal.csv", "--prob", "p"],
            "expected a calibration map in 'nowhere.json'",
        ),
        (
            ["in.parquet", "cal.csv", "--prob", "p"],
            "in.parquet, the text: expected JSON",
        ),
        (["bad.json", "cal.csv", "--prob", "p"], "map"),
    ],
)
@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_apply_refuses_and_writes_nothing(rows, capsys, arguments, message, out):
    frame, _ = rows
    frame.to_parquet("in.parquet")
    frame.rename(columns={"id": "key"}).to_csv("other.csv", index=False)
    frame.assign(p=frame["p"] + 1).to_csv("high.csv", index=False)
    bad_map(lambda document: document["check"][2][1].reverse())
    with open(out, "w", encoding="utf-8") as file:
        file.write("yesterday")
    before = left()
    assert main(["apply", *arguments, "--out", out]) == 2
    assert message in one_sentence(capsys)
    assert left() == before
    with open(out, encoding="utf-8") as file:
        assert file.read() == "yesterday"


@pytest.mark.parametrize(
    "place", ["cal.csv", "./cal.csv", "soft.csv", "hard.csv", "map.json"]
)
def test_inputs_are_never_written_to(rows, capsys, place):
    if place == "soft.csv":
        symlink("soft.csv", "cal.csv")
    os.link("cal.csv", "hard.csv")
    os.rename("map.json", "map.csv")
    place = place.replace("map.json", "map.csv")
    content = Path(place).read_bytes()
    assert apply("cal.csv", place, map="map.csv") == 2
    words = ["fit", "cal.csv", *COLUMNS, "--recalibrator", "platt", "--out", place]
    assert main(words) == (2 if "map" not in place else 0)
    assert place == "map.csv" or Path(place).read_bytes() == content
    assert main(["export", "map.csv", "--to", "c", "--out", "map.csv"]) == 2
    assert "the table itself" in capsys.readouterr().err


def test_the_file_of_the_standard_input_is_not_written_to(rows, capsys, monkeypatch):
    content = Path("cal.csv").read_bytes()
    fitting = ["fit", "-", *COLUMNS, "--recalibrator", "platt", "--out", "cal.csv"]
    for words in (
        fitting,
        ["apply", "map.json", "-", "--prob", "p", "--out", "cal.csv"],
    ):
        with open("cal.csv", encoding="utf-8") as file:
            monkeypatch.setattr("sys.stdin", file)
            assert main(words) == 2
        assert "the table itself" in one_sentence(capsys)
        assert Path("cal.csv").read_bytes() == content


def test_a_full_disk_leaves_nothing(rows, capsys, monkeypatch):
    def full(*arguments, **named):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(_streams, "_append_csv_and_iter_progress", full)
    before = left()
    assert apply("cal.csv", "out.csv") == 2
    assert "No space left on device" in one_sentence(capsys) and left() == before


def peak_of(n_rows, rng):
    """Bytes of Python and of Arrow while parquet rows pass."""
    with pq.ParquetWriter("in.parquet", pa.schema([("p", pa.float64())])) as writer:
        for _ in range(n_rows // 50_000):
            writer.write_table(pa.table({"p": rng.random(50_000)}))
    highest = []
    pool = pa.default_memory_pool()
    rise = pool.bytes_allocated()
    fill = tables.convert_arrow_to_pandas

    def watched(table, **how):
        highest.append(pool.bytes_allocated() - rise)
        return fill(table, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "convert_arrow_to_pandas", watched)
        patch.setattr(tables, "_BATCH_ROWS", 50_000)
        tracemalloc.start()
        assert apply("in.parquet", "out.parquet") == 0
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak, max(highest)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(rows):
    rng = np.random.default_rng(0)
    small, large = peak_of(100_000, rng), peak_of(1_000_000, rng)
    assert large[0] < 1.2 * small[0] + 2**20 and large[1] < 1.2 * small[1] + 2**20
    assert pq.read_metadata("out.parquet").num_rows == 1_000_000


def test_encodings_and_files_without_names(rows):
    frame, fitted = rows
    expected = fitted.predict_proba(frame["p"])[:, 1]
    frame.assign(note="größer").to_csv(
        "in.csv", index=False, header=False, encoding="utf-16"
    )
    words = ["--read", "header=id,p,y,note", "--classes", "yes,no"]
    assert apply("in.csv", "out.csv", *words, "--read", "encoding=utf-16") == 0
    found = pd.read_csv("out.csv", encoding="utf-16", header=None)
    assert (found[3] == "größer").all()
    other = fitted.predict_proba(1 - frame["p"])[:, 0]  # the column is that of "no" now
    assert np.abs(found[4] - other).max() < 1e-12 < np.abs(found[4] - expected).max()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_lines(rows, monkeypatch):
    monkeypatch.setattr(
        _streams,
        "iter_table_blocks",
        lambda *a, **k: iter_table_blocks(*a, **k, size=100_000),
    )
    monkeypatch.setattr("sklearn_calib._files.tables._SEPARATOR_SEARCH_BYTES", 2**14)
    peaks = []
    for n_rows in (15_000, 60_000):
        p = np.random.default_rng(0).random(n_rows)
        Path("in.csv").write_text(
            "p\n" + "\n".join(map(repr, p.tolist())) + "\n", encoding="utf-8"
        )
        tracemalloc.start()
        assert apply("in.csv", "out.csv") == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 2**18


# -- export ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [_fit, _apply, _export], ids=["fit", "apply", "export"]
)
def test_examples_of_the_help_run(rows, capsys, monkeypatch, command):
    frame, _ = rows
    table = frame.rename(columns={"y": "outcome"}).assign(
        score=np.log(frame["p"] / (1 - frame["p"])),
        outcome=(frame["y"] == "yes").astype(int),
    )
    for name in ("cal.csv", "new.csv"):
        table.to_csv(name, index=False)
    lines = (f'{{"scores": {{"yes": {p}}}}}\n' for p in frame["p"])
    Path("log.jsonl").write_text("".join(lines), encoding="utf-8")
    proba, y = make_overconfident(3, 100)
    digits = pd.DataFrame(proba, columns=["p0", "p1", "p2"]).assign(digit=y)
    os.mkdir("scores")
    for name in ("cal.parquet", "digits.parquet"):
        digits.to_parquet(name)
    table.to_parquet("scores/a.parquet")
    with pytest.raises(SystemExit):
        main([command.__name__.rsplit("_")[-1], "--help"])
    shown = capsys.readouterr().out
    for line in command.EXAMPLES:
        assert line in shown
        words, _, stdin = shlex.split(line), *line.partition(" < ")[1:]
        words = words[1 : words.index("<")] if stdin else words[1:]
        if words[0] == "fit":
            words += ["--allow", "no-gain", "--recalibrator", "temperature"]
        if "digits.parquet" in words:
            assert main(["fit", "cal.parquet", "--label", "digit", "--prob", "p0,p1,p2", "--out",
                         "map.json", "--recalibrator", "temperature"]) == 0  # fmt: skip
        elif words[0] == "apply":
            to_json(rows[1], "map.json")
        if stdin:
            content = Path("new.csv").read_bytes()
            monkeypatch.setattr(
                "sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
            )
        assert main(words) == 0, line


def test_export_to_every_target(rows, capsysbinary):
    frame, fitted = rows
    expected = fitted.predict_proba(frame["p"])
    assert main(["export", "map.json", "--to", "python", "--name", "repair"]) == 0
    space = {}
    exec(capsysbinary.readouterr().out.decode(), space)
    found = [space["repair"]([1 - p, p]) for p in frame["p"]]
    assert np.abs(np.array(found) - expected).max() < 1e-12
    for target, opening in (("c", b"void calibrate("), ("js", b"function calibrate(")):
        assert main(["export", "map.json", "--to", target]) == 0
        assert opening in capsysbinary.readouterr().out
    duckdb = pytest.importorskip("duckdb")
    words = ["export", "map.json", "--to", "sql", "--dialect", "duckdb", "--prob", "p"]
    assert main([*words, "--into", "q", "--out", "map.sql"]) == 0
    with open("map.sql", encoding="utf-8") as file, duckdb.connect() as database:
        database.register("scores", frame)
        got = database.execute(f"SELECT {file.read()} FROM scores").fetchnumpy()["q"]
    assert np.abs(got - expected[:, 1]).max() < 1e-9
    onnxruntime = pytest.importorskip("onnxruntime")
    assert main(["export", "map.json", "--to", "onnx", "--out", "map.onnx"]) == 0
    scores = np.column_stack([1 - frame["p"], frame["p"]])
    [got] = onnxruntime.InferenceSession("map.onnx").run(None, {"scores": scores})
    assert np.abs(got - expected).max() < 1e-12


def test_export_shows_how_to_use_an_expression(rows, capsys):
    words = ["export", "map.json", "--to", "sql", "--out", "map.sql"]
    shown = "Use it as SELECT id, <expression> FROM scores; the expression already ends"
    assert main(words) == 0
    assert f"{shown} in AS calibrated (see --into)\n" in capsys.readouterr().out
    assert main([*words, "--into", "q"]) == 0
    assert f"{shown} in AS q " in capsys.readouterr().out
    assert main([*words, "--prob", "a,b"]) == 0
    assert "Use it" not in capsys.readouterr().out


def test_export_to_a_pipe_begins_with_a_comment(rows, capsysbinary):
    words = ["export", "map.json", "--to", "sql", "--dialect", "duckdb"]
    assert main([*words, "--prob", "p"]) == 0
    written = capsysbinary.readouterr().out.decode()
    comment, _, expression = written.partition("\n")
    assert comment.startswith("-- Use it as SELECT id, <expression> FROM scores;")
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as database:
        database.execute("CREATE TABLE scores (p DOUBLE)")
        database.execute("INSERT INTO scores VALUES (0.2), (0.9)")
        got, bare = (
            database.execute(f"SELECT {text} FROM scores").fetchnumpy()["calibrated"]
            for text in (written, expression)
        )
    assert len(got) == 2 and (got == bare).all()
    assert main([*words, "--prob", "a,b"]) == 0
    assert b"Use it" not in capsysbinary.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["map.json", "--to", "c", "--dialect", "mysql"],
            "--dialect needs --to sql",
        ),
        (
            ["map.json", "--to", "sql", "--name", "f"],
            "--name needs --to c or js or python",
        ),
        (["map.json", "--to", "onnx"], "Name it with --out"),
        (
            ["map.json", "--to", "sql", "--prob", "a,b,c"],
            "expected 2 columns, one for each class",
        ),
        (["map.json", "--to", "c", "--name", "1"], "Pass another name"),
        (["cal.csv", "--to", "c"], "cal.csv, the text: expected JSON"),
    ],
)
def test_export_refuses(rows, capsys, arguments, message):
    assert main(["export", *arguments]) == 2
    assert message in one_sentence(capsys)


def test_names_of_new_columns_are_no_formulas(tmp_path, monkeypatch):
    """The columns of the table stay as they are."""
    monkeypatch.chdir(tmp_path)
    to_json(PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), "map.json")
    Path("t.csv").write_text("=1+1,p\n0.2,0.3\n", encoding="utf-8")
    assert (
        main(["apply", "map.json", "t.csv", "--prob", "=1+1", "--out", "out.csv"]) == 0
    )
    assert (
        Path("out.csv").read_text(encoding="utf-8").splitlines()[0]
        == "=1+1,p,calibrated_=1+1"
    )
    assert main(["apply", "map.json", "t.csv", "--prob", "p", "--out", "out.csv"]) == 0
    assert (
        Path("out.csv").read_text(encoding="utf-8").splitlines()[0]
        == "=1+1,p,p_calibrated"
    )


@pytest.mark.parametrize("word", ["None", "NA"])
def test_labels_that_are_words_for_nothing(tmp_path, monkeypatch, capsys, word):
    monkeypatch.chdir(tmp_path)
    rows = "".join(
        f"{p},{label}\n" for p in (0.2, 0.4, 0.7) for label in ("yes", "no", word)
    )
    Path("t.csv").write_text("p,y\n" + rows, encoding="utf-8")
    given = ["t.csv", *COLUMNS]
    assert main(["monitor", *given]) == 2
    assert "the texts NA, N/A, None, null" in capsys.readouterr().err
    assert main(["monitor", *given, "--missing", "drop"]) in (0, 3)
    assert (
        "where one of them is a label, write it in other words"
        in capsys.readouterr().err
    )


def test_fit_keeps_a_date_and_names_of_columns(rows, capsys):
    """No clock is read and no path is kept: the same rows give the same file."""
    rows[0].assign(w=1 + np.arange(400) % 3).to_csv("cal.csv", index=False)
    assert fit("--date", "2026-11-23", "--weight", "w") == 0
    first = Path("new.json").read_text(encoding="utf-8")
    assert fit("--date", "2026-11-23", "--weight", "w") == 0
    assert (
        Path("new.json").read_text(encoding="utf-8") == first
        and str(Path.cwd()) not in first
    )
    document = json.loads(first)
    assert document["columns"] == {"label": ["y"], "weight": ["w"], "scores": ["p"]}
    assert document["date"] == "2026-11-23"
    assert fit() == 0
    assert "date" not in json.loads(Path("new.json").read_text(encoding="utf-8"))
    changed = first.replace('"date": "2026-11-23"', '"date": "2026-11-24"')
    Path("new.json").write_text(changed, encoding="utf-8")
    capsys.readouterr()
    assert main(["export", "new.json", "--to", "c"]) == 2
    assert "is read with --allow edited" in capsys.readouterr().err


def test_a_wrong_date_is_refused_before_the_work(rows, capsys):
    assert fit("--date", "23.11.2026") == 2
    assert "expected a date such as 2026-11-23 after --date, got '23.11.2026'" in (
        capsys.readouterr().err
    )
    assert not Path("new.json").exists()
