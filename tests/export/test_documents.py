"""JSON documents: what is kept, what is rejected, and what is stored."""

import copy
import itertools
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from export_cases import METHODS, fitted, tabulate

import sklearn_calib.export
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import (
    _document,
    _notes,
    from_dict,
    from_json,
    json_schema,
    simplify,
    to_dict,
    to_json,
)
from sklearn_calib.export._simplify import _drop_knots
from sklearn_calib.maps import PiecewiseLinear
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    MulticlassBinning,
    PlattScaling,
    TemperatureScaling,
)

MAPS = Path(__file__).parent.parent / "data" / "maps"
STORED = sorted(MAPS.glob("*.json"))
SCHEMA_FILE = Path(sklearn_calib.export.__file__).parent / "schema-1.json"


def labelled(labels):
    labels = np.asarray(labels)
    proba, y = make_overconfident(len(labels), 60, random_state=1)
    return TemperatureScaling().fit(proba, labels[y], classes=labels)


# -- what is kept -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["platt", "venn_abers", "pipeline", "multiclass_binning"]
)
@pytest.mark.parametrize("kind", ["proba", "logits"])
def test_text_says_the_same(name, kind, tmp_path):
    method = fitted(name, 2)
    path = tmp_path / "map.json"
    text = to_json(method, path, input=kind, indent=1)
    again = from_json(path)
    assert json.loads(text) == to_dict(again) == to_dict(from_json(text))
    assert to_dict(again)["input"] == kind
    rows = make_overconfident(2, 100, random_state=3)[0]
    assert np.abs(again.predict_proba(rows) - method.predict_proba(rows)).max() <= 1e-12


def test_the_estimator_is_named():
    """A pipeline by its steps in their order."""
    found = to_dict(fitted("pipeline", 2))["estimator"]
    assert found["name"] == "pipeline"
    steps = [step["name"] for step in found["steps"]]
    assert steps == ["structured_matrix", "spline"]
    assert to_dict(fitted("platt", 2))["estimator"]["name"] == "platt"


@run_every_case(
    ("labels", "kind"),
    [
        (["no", "yes"], "str"),
        (['"', "\\", "ä"], "str"),
        ([b"\x00a", b"\xff"], "bytes"),
        ([False, True], "bool"),
        ([-3, 2**60, 2**62 + 1], "int"),
        (np.array([2**63 + 5, 2**63 + 9], dtype=np.uint64), "int"),
        (np.array([-1, 2**63 + 5], dtype=object), "int"),
        (np.array([1, 2, 3], dtype=np.int8), "int"),
        (np.array([0.0, 1.0]), "float"),
        (np.array(["a", "b"], dtype=object), "str"),
        (np.array([np.str_("a"), np.str_("b")], dtype=object), "str"),
        (np.array([np.int64(3), np.int64(5)], dtype=object), "int"),
        (np.array([np.False_, np.True_], dtype=object), "bool"),
    ],
)
def test_labels_come_back(labels, kind):
    method = labelled(labels)
    document = to_dict(method)
    assert document["classes_type"] == kind
    again = from_json(to_json(method))
    assert again.classes_.tolist() == method.classes_.tolist()
    assert {type(label).__name__ for label in again.classes_.tolist()} == {kind}
    rows = make_overconfident(len(labels), 30)[0]
    assert again.predict(rows).tolist() == method.predict(rows).tolist()


def test_labels_of_other_types_are_refused():
    with raises_invalid_input(
        TypeError, expected=".*text, integers, floats, booleans or bytes", value="date"
    ):
        to_dict(labelled(np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")))


def test_numbers_are_exact():
    method = fitted("isotonic", 2)
    tree = from_json(to_json(method)).map_.to_tree()
    assert (
        tree["knots"] == method.knots_.tolist()
        and tree["values"] == method.values_.tolist()
    )


# -- the schema -------------------------------------------------------------------------------


def test_the_shipped_schema_is_that_of_the_nodes():
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == json_schema()


def test_the_shipped_schema_is_that_of_the_reader():
    schema = json_schema()
    said = schema["properties"]
    assert set(said) == set(_document._KNOWN_KEYS)
    assert schema["required"] == [*_document._REQUIRED_KEYS]
    assert said["format"] == {"const": _document.DOCUMENT_FORMAT}
    assert said["schema"] == {"const": _document.SCHEMA_VERSION}
    assert said["classes_type"] == {"enum": [*_document._JSON_TYPE_BY_LABEL_TYPE]}
    assert said["input"] == {"enum": [*_document.INPUT_KINDS]}
    assert (
        said["check"]["minItems"] == said["check"]["maxItems"] == _document.N_CHECK_ROWS
    )
    assert set(_notes.NOTE_KEYS) < set(said)


def large(path):
    return pytest.mark.slow if path.stat().st_size > 15_000 else ()


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=large(path)) for path in STORED]
)
def test_documents_follow_the_schema(path):
    jsonschema = pytest.importorskip("jsonschema")
    schema, document = json_schema(), json.loads(path.read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    if path == STORED[0]:
        validator.check_schema(schema)
    validator.validate(document)


@run_every_case(
    "change",
    [
        lambda d: d.pop("classes"),
        lambda d: d.update(more=1),
        lambda d: d.update(input="score"),
        lambda d: d["map"]["parts"][0].pop("floor"),
        lambda d: d["map"]["parts"][1].update(node="unheard of"),
        lambda d: d["map"]["parts"][1].update(coef="1"),
        lambda d: d["check"].pop(),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(change):
    jsonschema = pytest.importorskip("jsonschema")
    document = to_dict(fitted("platt", 2))
    change(document)
    with pytest.raises(ValueError):
        from_dict(document)
    assert list(jsonschema.Draft202012Validator(json_schema()).iter_errors(document))


# -- stored documents -------------------------------------------------------------------------


def test_a_document_of_every_method_is_stored():
    stored = {path.stem.rpartition("-")[0] for path in STORED}
    more = {"default.squeezed", "prior_shift.mean", "pipeline.mean"}
    assert stored == {*METHODS, *more}
    assert sum(path.stat().st_size for path in STORED) < 1_000_000


@run_every_case("path", STORED, ids=lambda path: path.stem)
def test_stored_documents_are_read(path, oracle):
    """The check rows, and what was predicted for other rows once the map was stored."""
    exported = from_json(path)
    assert exported.document == json.loads(path.read_text(encoding="utf-8"))
    rows = make_overconfident(len(exported.classes_), 12, random_state=5)[0]
    expected = np.array(oracle("maps/expected/predictions.json")[path.stem])
    assert np.abs(exported.predict_proba(rows) - expected).max() <= 1e-12


# -- hostile documents --------------------------------------------------------------------------


def nested(levels):
    tree = {"node": "identity"}
    for _ in range(levels):
        tree = {"node": "chain", "parts": [tree]}
    return tree


def doubled(levels):
    """A small object in memory with 2^levels nodes."""
    tree = {"node": "identity"}
    for _ in range(levels):
        tree = {"node": "mixture", "weights": [0.5, 0.5], "parts": [tree, tree]}
    return tree


STEPS = {
    "node": "steps",
    "input": "proba",
    "edges": [0.2, 0.5],
    "values": [0.1, 0.3, 0.9],
}
LINE = {
    "node": "piecewise_linear",
    "input": "logit",
    "knots": [-1, 1],
    "values": [0, 1],
    "domain": None,
}
PART = "map.parts[0]"


@run_every_case(
    ("tree", "words"),
    [
        (None, "map: expected a node, a dict, got NoneType"),
        ([], "map: expected a node"),
        ({}, r"map\.node: expected the name of a node, got nothing"),
        ({"node": "eval"}, r"map\.node: expected one of .*got 'eval'"),
        ({"node": ["steps"]}, r"map\.node: expected one of"),
        (STEPS | {"code": "import os"}, r"map\.code: expected the fields"),
        (
            {"node": "steps", "input": "proba", "edges": []},
            r"map\.values: expected a value",
        ),
        (
            STEPS | {"edges": [0.5, 0.2]},
            r"map\.edges\[1\]: expected increasing numbers, got 0\.2",
        ),
        (STEPS | {"edges": [0.5, 0.5]}, r"map\.edges\[1\]: expected increasing"),
        (
            STEPS | {"edges": [0.2, math.nan]},
            r"map\.edges\[1\]: expected finite numbers, got nan",
        ),
        (
            STEPS | {"edges": [0.2, math.inf]},
            r"map\.edges\[1\]: expected finite numbers, got inf",
        ),
        (STEPS | {"edges": [0.2, 10**400]}, r"map\.edges: expected finite numbers"),
        (
            STEPS | {"edges": [0.2, "0.5"]},
            r"map\.edges\[1\]: expected a number, got '0\.5'",
        ),
        (
            STEPS | {"edges": [0.2, True]},
            r"map\.edges\[1\]: expected a number, got True",
        ),
        (
            STEPS | {"edges": [0.2, None]},
            r"map\.edges\[1\]: expected a number, got None",
        ),
        (STEPS | {"edges": [0.2, [0.5]]}, r"map\.edges"),
        (STEPS | {"edges": 0.2}, r"map\.edges: expected a list of numbers"),
        (STEPS | {"edges": {"0": 1}}, r"map\.edges: expected numbers"),
        (STEPS | {"edges": "0.2"}, r"map\.edges: expected numbers"),
        (STEPS | {"values": [0.1, 0.9]}, r"map\.values: expected 3 numbers, got 2"),
        (
            STEPS | {"values": [0.1, 0.3, 1.5]},
            r"map\.values\[2\]: expected numbers <= 1, got 1\.5",
        ),
        (
            STEPS | {"values": [-1e-9, 0.3, 1]},
            r"map\.values\[0\]: expected numbers >= 0",
        ),
        (
            STEPS | {"input": "score"},
            r"map\.input: expected one of 'proba', 'logit', 'rank'",
        ),
        (STEPS | {"input": ["proba"]}, r"map\.input: expected one of"),
        (LINE | {"knots": [0]}, r"map\.knots: expected at least 2 numbers"),
        (LINE | {"domain": [1, 0]}, r"map\.domain: expected a <= b"),
        (LINE | {"domain": [1, 2, 3]}, r"map\.domain: expected 2 numbers, got 3"),
        (LINE | {"scale": "proba"}, r"map\.domain: expected a domain within the knots"),
        (LINE | {"input": "proba", "scale": "proba"}, r"map\.scale: expected 'input'"),
        (LINE | {"link": "probit"}, r"map\.link: expected one of 'sigmoid', None"),
        (LINE | {"ties": 1}, r"map\.ties: expected true or false, got 1"),
        (
            {"node": "mixture", "weights": [0.5, 0.4], "parts": [STEPS, STEPS]},
            r"map\.weights: expected a sum of 1, got 0\.9",
        ),
        (
            {"node": "mixture", "weights": [1.0], "parts": [STEPS, STEPS]},
            r"map\.weights: expected 2 numbers, got 1",
        ),
        (
            {"node": "chain", "parts": []},
            r"map\.parts: expected a list of nodes, got none",
        ),
        (
            {"node": "chain", "parts": STEPS},
            r"map\.parts: expected a list of nodes, got dict",
        ),
        (
            {"node": "chain", "parts": [STEPS, {"node": "floor", "floor": 2}]},
            r"map\.parts\[1\]\.floor: expected a number >= 0 and <= 1, got 2",
        ),
        (
            {"node": "softmax_affine", "coef": [[1, 0], [0]], "intercept": 0},
            r"map\.coef: expected lists of equal lengths",
        ),
        (
            {"node": "softmax_affine", "coef": [1, 2, 3], "intercept": 0},
            r"map\.coef: expected one number, 2 or 2x2 of them, got 3 numbers",
        ),
        (
            {"node": "sigmoid_poly", "input": "logit", "coef": [0, 1], "spread": 0},
            r"map\.spread: expected a number above 0",
        ),
        (
            {"node": "one_vs_rest", "parts": [STEPS] * 3},
            r"map\.parts: expected 1 node or 2 of them, got 3",
        ),
        (
            {"node": "top_label", "parts": [STEPS], "rest": 1},
            "map: expected more than two classes",
        ),
        (
            {
                "node": "cells",
                "n_levels": 2.5,
                "slack": 0,
                "keys": [],
                "rows": [],
                "keep": True,
            },
            r"map\.n_levels: expected a whole number",
        ),
        (
            {
                "node": "cells",
                "n_levels": 2,
                "slack": 0,
                "keys": [[1, 1], [0, 2]],
                "rows": [[0.5, 0.5], [0, 1]],
                "keep": True,
            },
            r"map\.keys: expected different keys in increasing order",
        ),
        (nested(200), "expected at most 50 nodes inside each other"),
        (nested(100_000), "expected at most 50 nodes inside each other"),
    ],
    ids=itertools.count(),
)
def test_damaged_trees_are_refused_where_they_are_damaged(tree, words):
    document = to_dict(PlattScaling().fit(*make_overconfident(2, 50))) | {"map": tree}
    with pytest.raises(ValueError, match=words):
        from_dict(document)


def test_the_number_of_nodes_is_bounded(monkeypatch):
    monkeypatch.setattr("sklearn_calib.maps._reading.MAX_MAP_NODES", 1000)
    document = to_dict(PlattScaling().fit(*make_overconfident(2, 50))) | {
        "map": doubled(40)
    }
    with raises_invalid_input(ValueError, expected="at most 1000 nodes"):
        from_dict(document)


@run_every_case(
    ("change", "words"),
    [
        ({"format": "pickle"}, "format: expected 'sklearn-calib-map', got 'pickle'"),
        ({"format": [[[[[[[]]]]]]]}, r"format: expected 'sklearn-calib-map', got \["),
        (
            {"schema": 2},
            "schema: expected 1, which this version reads, got 2. Read it with the",
        ),
        ({"schema": True}, "schema: expected 1, which this version reads, got True"),
        ({"schema": "1"}, "schema: expected 1, which this version reads, got '1'"),
        ({"input": None}, "input: expected 'proba' or 'logits'"),
        ({"classes": ["a"]}, "classes: expected a list of at least two labels"),
        ({"classes": [0, 0]}, "classes: expected different labels"),
        ({"classes": [0, "1"]}, r"classes\[1\]: expected a label of type int, got '1'"),
        ({"classes": [0, 2**70]}, r"classes\[1\]: expected an integer of 64 bits"),
        ({"classes_type": "object"}, "classes_type: expected one of"),
        (
            {"classes": ["a", "é"], "classes_type": "bytes"},
            "classes: expected bytes in base64",
        ),
        ({"check": []}, "check: expected a list of 5 pairs of rows, got 0 of them"),
        (
            {"check": [[[0.5, 0.5], [0.5]]] * 5},
            r"check\[0\]\[1\]: expected 2 numbers, got 1",
        ),
        ({"check": [[[0.5, 0.6], [0.5, 0.5]]] * 5}, "check: expected rows of scores"),
        (
            {"check": [[[0.5, 0.5], [0.9, 0.1]]] * 5},
            r"check\[0\]: expected the result that",
        ),
        ({"estimator": []}, "estimator: expected a dict, got list"),
        ({"largest_error": 1e-6}, "largest_error: expected a dict, got float"),
        ({"surprise": 1}, "surprise: expected one of the entries"),
    ],
)
def test_damaged_documents_are_refused(change, words):
    document = to_dict(PlattScaling().fit(*make_overconfident(2, 50)))
    with pytest.raises(ValueError, match=words):
        from_dict(document | change)


@run_every_case("name", ["format", "schema", "classes", "input", "map", "check"])
def test_missing_entries_are_named(name):
    document = to_dict(PlattScaling().fit(*make_overconfident(2, 50)))
    del document[name]
    with raises_invalid_input(ValueError, expected="a value", value="nothing"):
        from_dict(document)


def test_a_map_that_changed_its_meaning_is_noticed():
    """Columns in another order, and numbers that lost their last digits."""
    method = fitted("matrix", 3)
    document = to_dict(method)
    swapped = copy.deepcopy(document)
    swapped["map"]["parts"][1]["coef"] = document["map"]["parts"][1]["coef"][::-1]
    rounded = copy.deepcopy(document)
    rounded["map"]["parts"][1]["coef"] = np.round(
        document["map"]["parts"][1]["coef"], 6
    ).tolist()
    for changed in (swapped, rounded):
        with raises_invalid_input(ValueError, expected="the result that the document"):
            from_dict(changed)


@run_every_case(
    ("text", "words"),
    [
        ("{", "the text: expected JSON"),
        ('{"format": NaN}', "the text: expected finite numbers, got NaN"),
        ('{"format": -Infinity}', "expected finite numbers, got -Infinity"),
        ('{"format": 1, "format": 2}', "format: expected each entry once"),
        ('{"a": {"b": 1, "b": 2}}', "b: expected each entry once"),
        ('{"a": ' + "9" * 10_000 + "}", "the text: expected JSON|a: expected"),
        ("[1]", "the document: expected a dict, got list"),
        (
            '{"a": "' + "[" * 1000 + '"}',
            "a: expected one of the entries|format: expected a value",
        ),
        ('{"a": "\\"' + "[" * 1000 + '"}', "format: expected a value"),
        ("[" * 1000, "at most 110 levels of brackets"),
        ('{"a":' * 1000, "at most 110 levels of brackets"),
        ('["[",' * 1000, "at most 110 levels of brackets"),
        ('["' + '\\"[' * 1000, "the text: expected JSON"),
    ],
)
def test_damaged_texts_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        from_json(text)


def test_text_with_the_mark_of_an_encoding():
    text = to_json(labelled(["no", "yes"]))
    assert from_json(f"\ufeff{text}").document == from_json(text).document


@pytest.mark.slow
@pytest.mark.parametrize(
    ("piece", "size", "words"),
    [
        ("[", 100_000_000, "at most 110 levels of brackets"),
        ('{"map":', 100_000_000, "at most 110 levels of brackets"),
        ('"\\"', 10_000_000, "the text: expected JSON"),  # a text that never ends
    ],
)
def test_100_mb(piece, size, words, tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" + piece * (size // len(piece)), encoding="utf-8")
    start = time.process_time()
    with pytest.raises(ValueError, match=words):
        from_json(path)
    assert time.process_time() - start < 10


def test_files_are_bounded(monkeypatch, tmp_path):
    path = tmp_path / "map.json"
    to_json(fitted("platt", 2), path)
    monkeypatch.setattr("sklearn_calib.export._exported.MAX_JSON_BYTES", 100)
    with raises_invalid_input(ValueError, expected=r"at most 1e\+02 bytes"):
        from_json(path)


# -- simplification ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tolerance", [1e-2, pytest.param(1e-4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "name", ["isotonic", "enir", "venn_abers", "trend_filtering", "adaptive", "bbq"]
)
def test_simplified_maps_keep_their_bound(name, tolerance):
    source = from_dict(to_dict(fitted(name, 2, 500), **tabulate(name)))
    small = simplify(source, tolerance)
    p = np.concatenate([np.linspace(0, 1, 20_001), 10.0 ** -np.linspace(1, 300, 500)])
    p = np.concatenate([p, 1 - p[-500:]])
    worst = np.abs(small.predict_proba(p) - source.predict_proba(p)).max()
    assert worst <= tolerance * (1 + 1e-9)
    assert to_dict(small)["largest_error"]["simplify"] == tolerance
    assert len(to_json(small)) <= len(to_json(source)) + 40


def test_simplified_maps_are_small():
    exact = {name: fitted(name, 2, 1000) for name in ("enir", "venn_abers")}
    for method in exact.values():
        assert len(to_json(simplify(method, 1e-2))) < 0.1 * len(to_json(method))


@pytest.mark.parametrize(("tolerance", "pieces"), [(0.1, 4), (0.051, 5), (1e-3, 10)])
def test_steps_are_as_few_as_possible(tolerance, pieces):
    """Values 0, 1, ..., 9 tenths: three fit into an interval of 0.2, two into one of 0.102."""
    document = to_dict(
        IsotonicCalibration("step").fit(np.arange(20) / 20, np.repeat([0, 1], 10))
    )
    tree = {"node": "steps", "input": "proba", "edges": np.arange(1, 10) / 10}
    document["map"] = tree | {"values": np.arange(10) / 10}
    rows = [[1 - p, p] for p in (0.01, 0.25, 0.55, 0.75, 0.99)]
    steps = [0.0, 0.2, 0.5, 0.7, 0.9]
    document["check"] = [[row, [1 - v, v]] for row, v in zip(rows, steps, strict=True)]
    found = simplify(from_dict(document, edited=True), tolerance).map_.to_tree()[
        "values"
    ]
    assert len(found) == pieces


@pytest.mark.parametrize("ends", [None, np.array([-3.0, 3.0])], ids=["lines", "ends"])
@pytest.mark.parametrize(("link", "slack"), [(None, 0.02), ("sigmoid", 0.08)])
def test_each_line_reaches_the_farthest_knot_it_can(ends, link, slack):
    """A sigmoid changes by a quarter of its log-odds at most; two of the pieces are long."""
    rng = np.random.default_rng(4)
    x = np.linspace(-3, 3, 400)
    wild = np.where(np.abs(x) < 1, 0.05, 0.004) * rng.normal(size=400)
    node = PiecewiseLinear(
        input="logit", link=link, domain=ends, knots=x, values=np.tanh(x) + wild
    )
    found = _drop_knots(node, 0.02)
    first, last = ([0, 1], 398) if ends is None else ([0], 399)
    kept = list(first)
    while kept[-1] < last:
        start = kept[-1]
        within = []
        for end in range(start + 1, min(start + 150, last) + 1):
            line = np.interp(x[start:end], x[[start, end]], node.values[[start, end]])
            if np.abs(line - node.values[start:end]).max() <= slack:
                within.append(end)
        kept.append(max(within))
    kept = np.unique([*kept, 399])
    assert len(kept) < 390 and max(np.diff(kept)) > (64 if link else 16)
    np.testing.assert_array_equal(found.knots, x[kept])
    np.testing.assert_array_equal(found.values, node.values[kept])


def test_tolerances_are_checked():
    for tolerance in (0, -1e-3, 0.5, "1e-3"):
        with raises_invalid_input(ValueError, expected="a tolerance above 0"):
            simplify(fitted("isotonic", 2), tolerance)


def test_cells_without_keys():
    with pytest.warns(UserWarning, match="none among"):
        method = MulticlassBinning(min_count=1e6).fit(*make_overconfident(3, 50))
    exported = from_json(to_json(method))
    rows = make_overconfident(3, 20)[0]
    assert np.array_equal(exported.predict_proba(rows), method.predict_proba(rows))


def test_a_fit_on_a_table_is_written_without_warnings():
    """Was: that the rows which check the map have no names of columns."""
    pd = pytest.importorskip("pandas")
    proba, y = make_overconfident(2, 50)
    table = pd.DataFrame(proba, columns=["0", "1"])
    model = PlattScaling().fit(table, y.astype(str))
    assert json.loads(to_json(model))["classes"] == ["0", "1"]
