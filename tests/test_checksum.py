"""Maps, states and summaries: a change of any character is noticed, or changes nothing."""

import functools
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli import main
from sklearn_calib._files.checksum import compute_checksum
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_dict, from_json, simplify, to_dict, to_json
from sklearn_calib.maps import MAP_KINDS
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    PlattScaling,
    get_recalibrator,
)
from sklearn_calib.summary import CalibrationSummary

#: Recalibrators whose maps have all kinds of nodes, and the number of classes.
CASES = (
    ("platt", 2),
    ("isotonic", 2),
    ("histogram_binning", 3),
    ("spline", 2),
    ("restricted_polynomial", 2),
    ("multiclass_binning", 3),
    ("ordinal", 3),
    ("top_label", 3),
    ("beta", 2),
    ("structured_matrix", 3),
    ("ensemble_temperature", 3),
)


@functools.cache
def text_of(name, k):
    n = 300 if name == "multiclass_binning" else 40
    # all of whose weights are far from 0
    seed = 0 if name == "ensemble_temperature" else 3
    method = get_recalibrator(name).fit(*make_overconfident(k, n, random_state=seed))
    return to_json(simplify(method, 1e-2))


def nodes_of(tree):
    yield tree["node"]
    for part in tree.get("parts", ()):
        yield from nodes_of(part) if part else ()


@pytest.mark.slow
def test_all_kinds_of_nodes_are_among_the_cases():
    found = {
        kind for case in CASES for kind in nodes_of(json.loads(text_of(*case))["map"])
    }
    assert found == set(MAP_KINDS)


def changed(text, place, rng):
    """The text with another character: of digits another digit, else any."""
    alphabet = "0123456789" if text[place].isdigit() else '0123456789-+.eE[]{},: "abtz'
    others = alphabet.replace(text[place], "")
    return text[:place] + others[rng.integers(len(others))] + text[place + 1 :]


def places_of(text, n, rng):
    return range(len(text)) if n is None else rng.choice(len(text), n, replace=False)


def is_another(read, text, original):
    """Whether a text is read, and states something else."""
    try:
        found = read(text)
    except ValueError:
        return False
    return found != original


NUMBERS = (100, pytest.param(None, marks=pytest.mark.cross))


@pytest.mark.parametrize("n", NUMBERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_character_of_a_map_can_change_silently(case, n):
    rng, text = np.random.default_rng(0), text_of(*case)
    original = json.loads(text)
    for place in places_of(text, n, rng):
        other = changed(text, place, rng)
        assert not is_another(lambda t: from_json(t).document, other, original), other


@pytest.mark.parametrize("n", NUMBERS)
def test_no_character_of_a_state_can_change_silently(n):
    rng = np.random.default_rng(1)
    proba, y = make_overconfident(2, 30, random_state=1)
    monitor = CalibrationMonitor(average_run_length=20, classes=["no", "yes"])
    monitor.update(np.array(["no", "yes"])[y], proba, time=np.arange(30))
    text = json.dumps(monitor.state_dict())
    read = CalibrationMonitor.from_state_dict
    for place in places_of(text, n, rng):
        other = changed(text, place, rng)
        assert not is_another(
            lambda t: read(json.loads(t)).state_dict(), other, json.loads(text)
        )


@pytest.mark.parametrize("n", NUMBERS)
def test_no_character_of_a_summary_can_change_silently(n):
    rng = np.random.default_rng(2)
    summary = CalibrationSummary().update([0.0, 1.0, 1.0], [0.25, 0.5, 0.75])
    table = summary.to_arrow()
    ((key, text),) = table.schema.metadata.items()
    read = CalibrationSummary.from_arrow
    for place in places_of(text.decode(), n, rng):
        other = changed(text.decode(), place, rng)
        assert not is_another(
            lambda t: read(table.replace_schema_metadata({key: t})), other, summary
        )


# -- what is meant as it is -----------------------------------------------------------------------


def isotonic():
    p = np.linspace(0.02, 0.98, 49)
    y = (np.arange(49) * 29 % 49 < 49 * p).astype(int)
    return to_dict(IsotonicCalibration().fit(p, y))


def test_an_edited_map_is_read_with_a_word_that_says_so():
    document = isotonic()
    document["map"]["values"][7] += 1e-3
    with raises_invalid_input(
        ValueError, expected="the checksum ", hint=".* with edited=True"
    ):
        from_dict(document)
    found = from_dict(document, edited=True)
    assert found.map_.to_tree()["values"][7] == document["map"]["values"][7]
    assert found.document["estimator"]["edited"] is True and ", edited," in repr(found)
    # from here on it is as all maps
    assert from_json(to_json(found)).document == found.document
    document["map"]["values"][7] = 1.5
    with raises_invalid_input(ValueError, expected="numbers <= 1", value=r"1\.5"):
        from_dict(document, edited=True)
    swapped = isotonic() | {"classes": [1, 0]}
    with raises_invalid_input(ValueError, expected="the checksum of the document"):
        from_dict(swapped)
    with raises_invalid_input(ValueError, expected="the order of the map's columns"):
        from_dict(swapped, edited=True)
    renamed = isotonic() | {"classes": [7, 5]}
    assert from_dict(renamed, edited=True).classes_.tolist() == [7, 5]


@pytest.mark.parametrize(
    ("case", "place", "field", "value", "words"),
    [
        (("isotonic", 2), (), "knots", "falling", "increasing"),
        (("restricted_polynomial", 2), (), "domain", [0.9, 0.2], "increasing"),
        (("multiclass_binning", 3), (), "keys", "falling", "keys in increasing order"),
        (("multiclass_binning", 3), (), "rows", [[0.2, 0.3, 1.5]], "numbers <= 1"),
        (("beta", 2), (0,), "floor", 0.6, r"a number <= 0\.5, one over the classes"),
    ],
)
def test_ranges_and_orders_hold_for_edited_maps_too(case, place, field, value, words):
    document = json.loads(text_of(*case))
    node = document["map"]
    for part in place:
        node = node["parts"][part]
    if node["node"] in ("chain", "one_vs_rest"):
        node = next(part for part in node["parts"] if field in part)
    if value == "falling":
        value = node[field][::-1]
    node[field] = value
    with raises_invalid_input(ValueError, expected=f".*{words}"):
        from_dict(document, edited=True)


def test_the_option_of_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("p\n0.2\n0.7\n", encoding="utf-8")
    text = to_json(PlattScaling("proba").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]))
    coef = (
        json.loads(text)["map"]["parts"][0].get("coef")
        or json.loads(text)["map"]["parts"][1]["coef"]
    )
    assert text.count(repr(coef[0])) >= 1
    Path("map.json").write_text(
        text.replace(repr(coef[0]), repr(coef[0] + 0.25)), encoding="utf-8"
    )
    commands = (
        ["apply", "map.json", "rows.csv", "--prob", "p", "--out", "out.csv"],
        ["export", "map.json", "--to", "python", "--out", "map.py"],
    )
    for command in commands:
        assert main(command) == 2
        assert "is read with --allow edited" in capsys.readouterr().err
        assert main([*command, "--allow", "edited"]) == 0
    assert Path("out.csv").exists() and Path("map.py").exists()


def test_documents_of_another_schema_or_without_a_checksum_are_refused():
    document = isotonic()
    for other in (0, 2, 3, True, "1", None):
        with raises_invalid_input(
            ValueError, expected="1, which this version reads", value=repr(other)
        ):
            from_dict(document | {"schema": other})
    with raises_invalid_input(ValueError, value="2"):
        from_dict({"format": document["format"], "schema": 2})
    for entry in ("sha256", "map_sha256"):
        left = {key: value for key, value in document.items() if key != entry}
        with raises_invalid_input(ValueError, expected="a value", value="nothing"):
            from_dict(left)


# -- the canonical form ---------------------------------------------------------------------------


def test_form_does_not_count():
    text = text_of("platt", 2)
    names = sorted(json.loads(text), reverse=True)
    turned = {name: json.loads(text)[name] for name in names}
    assert (
        from_json(json.dumps(turned, indent=3)).document["sha256"] == turned["sha256"]
    )
    assert compute_checksum({"a": 1.0, "b": (2,)}) == compute_checksum(
        {"b": [2], "a": 1}
    )
    assert compute_checksum({"a": 2**53 + 1}) != compute_checksum({"a": 2**53})
    assert (
        compute_checksum({"a": True})
        != compute_checksum({"a": 1})
        != compute_checksum({"a": "1"})
    )


NODE = """
const lines = require("fs").readFileSync(0, "utf8").split("\\n");
const sorted = v => Array.isArray(v) ? v.map(sorted) : v && typeof v === "object"
  ? Object.fromEntries(Object.keys(v).sort().map(k => [k, sorted(v[k])])) : v;
for (const line of lines) {
  const value = JSON.parse(line); delete value.sha256;
  console.log(require("crypto").createHash("sha256")
    .update(JSON.stringify(sorted(value))).digest("hex"));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_javascript_finds_the_same_checksum():
    """RFC 8785 is what JSON.stringify gives for sorted keys."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63, 3000, dtype=np.uint64).tolist()
    numbers = [struct.unpack("d", struct.pack("Q", b))[0] for b in bits]
    numbers = [x for x in numbers if np.isfinite(x)] + (
        10.0 ** rng.uniform(-9, 23, 500)
    ).tolist()
    numbers += [sign * 10.0**k for k in range(-9, 24) for sign in (-1, 1)]
    numbers += [0.0, -0.0, 5e-324, sys.float_info.max, 333333333.33333329, 1e23]
    text = {
        "\u20ac$": '\x0f\nA\'B"\\\\"/\u2028',
        "\r": [None, True],
        "\U0001f600": 2,
        "\ufb33": 3,
    }
    documents = [{"numbers": numbers}, text, json.loads(text_of("isotonic", 2))]
    lines = "\n".join(json.dumps(document) for document in documents)
    done = subprocess.run(
        ["node", "-e", NODE], input=lines, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [compute_checksum(document) for document in documents]
