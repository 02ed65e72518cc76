"""Columns of --prob that are named after the classes, or as at fit, and numbers on a scale."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli import main
from sklearn_calib.export import from_json, to_code, to_dict, to_json, to_onnx, to_sql
from sklearn_calib.recalibrators import PlattScaling

CLASSES = ["c1", "c10", "c2"]  # in the order of text
NAMED = "c1,c2,c10"
N = 300


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Rows of three classes in t.csv; the same probabilities as c1, c2, c10, and as pa, pb, pc."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], N)
    law = truth.cumsum(axis=1)
    codes = (rng.random(N)[:, None] > law).sum(axis=1)
    sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    found = pd.DataFrame(sharp, columns=CLASSES).assign(y=np.array(CLASSES)[codes])
    found[["pa", "pb", "pc"]] = sharp
    found[["sa", "sb", "sc"]] = np.eye(3)[codes] * 0.8 + 0.2 / 3
    found["day"] = np.arange(N) // 100
    found.to_csv("t.csv", index=False)
    return found


def read(file):
    return json.loads(Path(file).read_text(encoding="utf-8"))


def fitted(prob, *more, out="map.json"):
    given = [
        "t.csv",
        "--label",
        "y",
        "--prob",
        prob,
        "--recalibrator",
        "vector",
        "--out",
        out,
    ]
    assert main(["fit", *given, "--allow", "no-gain", *more]) == 0
    return read(out)


def applied(prob, *more, map="map.json"):
    assert main(["apply", map, "t.csv", "--prob", prob, "--out", "out.csv", *more]) == 0
    return pd.read_csv("out.csv")


def test_fit_and_apply_follow_the_labels(frame, capsys):
    plain = fitted("pa,pb,pc")
    for prob, more in (
        (NAMED, ()),
        ("c10,c1,c2", ()),
        (NAMED, ("--classes", "c1,c10,c2")),
    ):
        document = fitted(prob, *more, out="other.json")
        assert document["classes"] == CLASSES
        assert document["map"] == plain["map"]
    expected = applied("pa,pb,pc")
    for prob in (NAMED, "c10,c1,c2"):
        for more in ((), ("--classes", "c1,c10,c2")):
            found = applied(prob, *more)
            for name, column in zip(CLASSES, ("pa", "pb", "pc"), strict=True):
                np.testing.assert_array_equal(
                    found[f"{name}_calibrated"], expected[f"{column}_calibrated"]
                )


def test_apply_follows_the_names_of_the_fit(frame, capsys):
    fitted("pa,pb,pc")
    expected = applied("pa,pb,pc")
    found = applied("pc,pa,pb")
    pd.testing.assert_frame_equal(found[expected.columns], expected)
    explicit = applied("pc,pa,pb", "--classes", "c2,c1,c10")
    pd.testing.assert_frame_equal(explicit, found)


def test_several_blocks_are_read_by_name(frame, monkeypatch, capsys):
    from sklearn_calib._cli import _fit

    plain = fitted("pa,pb,pc")
    monkeypatch.setattr(_fit, "_MAX_UNPOOLED_ROWS", 10)
    assert fitted(NAMED)["map"] == plain["map"]


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--soft-labels",)])
def test_audit(frame, capsys, more):
    label = (
        ("--label", "sa,sb,sc", "--classes", "c1,c10,c2") if more else ("--label", "y")
    )
    for prob in ("pa,pb,pc", NAMED):
        given = [
            "audit",
            "t.csv",
            *label,
            "--prob",
            prob,
            "--json",
            f"{prob[:2]}.json",
            "--resamples",
            "20",
            *more,
        ]
        assert main(given) == 0
    one, other = (read(f"{name}.json")["models"][0] for name in ("pa", "c1"))
    assert one["measures"] == other["measures"] and one["accuracy"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--soft-labels",)])
def test_compare(frame, capsys, more):
    label = (
        ("--label", "sa,sb,sc", "--classes", "c1,c10,c2") if more else ("--label", "y")
    )
    given = ["compare", "t.csv", *label, "--prob", "pa,pb,pc", "--prob", NAMED, *more]
    given += ["--resamples", "20"]
    assert main([*given, "--json", "c.json"]) == 0
    rows = read("c.json")["differences"]
    assert rows and all(row["first"] == row["second"] for row in rows)


def test_monitor(frame, capsys):
    for prob, state in (("pa,pb,pc", "one"), (NAMED, "two")):
        given = [
            "monitor",
            "t.csv",
            "--label",
            "y",
            "--prob",
            prob,
            "--state",
            f"{state}.json",
        ]
        assert main(given) in (0, 3)
    one, two = (read(f"{name}.json") for name in ("one", "two"))
    assert one["classes"] == two["classes"] == CLASSES
    said = {
        key: value for key, value in one.items() if "e_value" in key or "log" in key
    }
    assert said == {key: two[key] for key in said}


# -- scales ---------------------------------------------------------------------------------------


@pytest.fixture
def percent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(N) / 100  # below 1 %, so that every number is a probability, too
    found = pd.DataFrame(
        {"p": 100 * p, "y": (rng.random(N) < 40 * p).astype(int), "share": p}
    )
    found.to_csv("t.csv", index=False)
    return found


@pytest.mark.parametrize(
    ("scale", "ends", "kept"), [("percent", (0, 100), 100), ("0,50", (0, 50), 50)]
)
def test_apply_follows_the_scale_of_the_fit(percent, capsys, scale, ends, kept):
    given = ["fit", "t.csv", "--label", "y", "--prob", "p", "--recalibrator", "platt"]
    given += ["--allow", "no-gain", "--out", "map.json", "--scale", scale]
    assert main(given) == 0
    document = read("map.json")
    assert document["scale"] == [*ends]
    exported = from_json("map.json")
    expected = exported.predict_proba(percent["p"] / kept)[:, 1]
    for more in ((), ("--scale", scale)):
        found = applied("p", *more)["p_calibrated"]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # another column states its own
    found = applied("share", "--scale", "0,1")["share_calibrated"]
    np.testing.assert_allclose(
        found, exported.predict_proba(percent["share"])[:, 1], rtol=1e-12
    )
    capsys.readouterr()
    for target in ("sql", "c", "js", "python"):
        assert main(["export", "map.json", "--to", target]) == 2
        assert f"fitted to numbers from 0 to {kept}" in capsys.readouterr().err
    assert main(["threshold", "map.json", "--at", "0.2"]) == 2
    assert f"fitted to numbers from 0 to {kept}" in capsys.readouterr().err


def test_a_scale_in_python():
    fitted_ = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    document = to_dict(fitted_, scale=(0, 10))
    assert document["scale"] == [0, 10]
    assert to_dict(document)["scale"] == [0, 10]
    assert "scale" not in to_dict(fitted_)
    assert json.loads(to_json(fitted_, scale=[0.0, 10.0]))["scale"] == [0.0, 10.0]
    for write in (to_sql, lambda found: to_code(found, "python")):
        with raises_invalid_input(
            ValueError, expected="a map of probabilities", value=".*from 0 to 10"
        ):
            write(document)
    for wrong in (10, (10, 0), (0, "10"), (0, 1, 2), (0, float("nan"))):
        with raises_invalid_input(
            ValueError, expected="scale as two numbers, the lower one first"
        ):
            to_dict(fitted_, scale=wrong)
    pytest.importorskip("onnx")
    with raises_invalid_input(
        ValueError, expected="a map of probabilities", value=".*from 0 to 10"
    ):
        to_onnx(document)
