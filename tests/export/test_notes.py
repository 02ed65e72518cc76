"""What a document holds beside the map: the checksum of the map, and what its user notes."""

import copy
import datetime
import json
from pathlib import Path

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from golden_sets import golden_set

from sklearn_calib._files.checksum import compute_checksum
from sklearn_calib.export import (
    from_dict,
    from_json,
    simplify,
    to_code,
    to_dict,
    to_json,
)
from sklearn_calib.maps import MAP_KINDS
from sklearn_calib.recalibrators import IsotonicCalibration, PlattScaling

Y, P = golden_set()
MAPS = Path(__file__).parent.parent / "data" / "maps"
STORED = sorted(MAPS.glob("*.json"))


def signed(document):
    """With a checksum that fits, as a forger would write it."""
    return document | {"sha256": compute_checksum(document)}


# -- the checksum of the map ------------------------------------------------------------------


def test_the_same_data_give_the_same_checksum():
    """Neither date, columns, parameters that change nothing, nor the form of input matter."""
    first = to_dict(PlattScaling().fit(P, Y))["map_sha256"]
    for said in ({"date": "2026-11-23"}, {"columns": ["p"]}, {"input": "logits"}):
        assert to_dict(PlattScaling().fit(P, Y), **said)["map_sha256"] == first
    assert to_json(PlattScaling().fit(P, Y)) == to_json(PlattScaling().fit(P, Y))
    other = to_dict(PlattScaling().fit(P, 1 - Y[::-1]))["map_sha256"]
    text = PlattScaling().fit(P, np.array(["a", "b"])[Y], classes=["a", "b"])
    labels = to_dict(text)["map_sha256"]
    assert len({first, other, labels}) == 3
    document = to_dict(PlattScaling().fit(P, Y))
    parts = {name: document[name] for name in ("classes", "classes_type", "map")}
    assert compute_checksum(parts) == first  # as the page states


def test_the_checksum_follows_the_map():
    fitted = IsotonicCalibration().fit(P, Y)
    small = simplify(to_dict(fitted, date="2026-11-23"), 0.05).document
    whole = to_dict(fitted)
    assert small["map_sha256"] != whole["map_sha256"] and small["date"] == "2026-11-23"
    assert to_dict(from_json(to_json(fitted)))["map_sha256"] == whole["map_sha256"]
    assert whole["map_sha256"] in to_code(fitted, "c")


def test_a_map_that_disagrees_with_its_checksum_is_refused():
    document = to_dict(PlattScaling().fit(P, Y))
    forged = copy.deepcopy(document)
    forged["map"]["parts"][1]["coef"][0] += 1e-13  # the check rows still fit
    with raises_invalid_input(ValueError, expected="the checksum of the document"):
        from_dict(forged)
    with raises_invalid_input(ValueError, expected="the checksum of the map.*"):
        from_dict(signed(forged))
    edited = from_dict(forged, edited=True)
    assert edited.document["map_sha256"] != document["map_sha256"]
    assert edited.document["estimator"]["edited"] is True
    moved = copy.deepcopy(document)
    moved["date"] = "2026-11-23"
    with raises_invalid_input(ValueError, expected="the checksum of the document"):
        from_dict(moved)


# -- what the user notes -----------------------------------------------------------------------


@pytest.mark.parametrize("date", ["2026-11-23", datetime.date(2026, 11, 23)])
def test_date_and_columns_are_kept(date):
    fitted = PlattScaling().fit(P, Y)
    columns = {"label": "default", "scores": ["pd"]}
    read = from_json(to_json(fitted, date=date, columns=columns))
    assert read.document["date"] == "2026-11-23"
    assert read.document["columns"] == {"label": ["default"], "scores": ["pd"]}
    later = to_dict(read, date="2027-01-01")
    assert later["date"] == "2027-01-01" and later["columns"] == columns | {
        "label": ["default"]
    }
    assert to_dict(fitted, columns=["a", "b"])["columns"] == {"scores": ["a", "b"]}


def test_what_is_no_date_or_column_is_refused():
    fitted = PlattScaling().fit(P, Y)
    for date in ("23.11.2026", "today", 2026):
        with raises_invalid_input(ValueError, expected="a date such as '2026-11-23'"):
            to_dict(fitted, date=date)
    for columns in ([1], {"label": 3}, {1: "a"}, 5):
        with raises_invalid_input(ValueError, expected="names of columns as texts"):
            to_dict(fitted, columns=columns)


@run_every_case(
    ("change", "words"),
    [
        ({"columns": ["p"]}, "columns: expected lists of names"),
        ({"columns": {"label": [1]}}, "columns: expected lists of names"),
        ({"columns": {"label": "y"}}, "columns: expected lists of names"),
        ({"date": 3}, "date: expected a text"),
        ({"scale": [1, 0]}, "scale: expected two numbers, the lower one first"),
        ({"scale": [0, 10**400]}, "scale: expected two numbers"),
        ({"more": 1}, "more: expected one of the entries format"),
    ],
)
def test_damaged_notes_are_refused(change, words):
    document = to_dict(PlattScaling().fit(P, Y))
    with pytest.raises(ValueError, match=words):
        from_dict(signed(document | change))


def test_documents_without_a_checksum_of_the_map_are_refused():
    document = to_dict(PlattScaling().fit(P, Y))
    del document["map_sha256"]
    with raises_invalid_input(ValueError, expected="a value", value="nothing"):
        from_dict(signed(document))


# -- stored documents -----------------------------------------------------------------------------


def kinds_in(tree):
    if isinstance(tree, dict):
        yield from [tree["node"]] if "node" in tree else []
        yield from (kind for value in tree.values() for kind in kinds_in(value))
    elif isinstance(tree, list):
        yield from (kind for value in tree for kind in kinds_in(value))


def test_every_kind_of_node_is_stored():
    trees = [json.loads(path.read_text(encoding="utf-8"))["map"] for path in STORED]
    assert set(kinds_in(trees)) == set(MAP_KINDS)
