"""Maps in C, JavaScript and Python."""

import ast
import ctypes
import json
import re
import subprocess
import tempfile
from functools import cache, partial

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from export_cases import (
    IN_FULL,
    METHODS,
    QUICK,
    TABULATED,
    fitted,
    logits,
    probabilities,
    tabulate,
)
from other_languages import (
    CC,
    NODE,
    at_last_digits,
    called,
    compiled,
    in_c,
    in_javascript,
    in_python,
    in_sql,
    loop_over_rows,
    python_function,
)
from sklearn.base import clone

from sklearn_calib import canonical_proba
from sklearn_calib.export import _code as code_module, from_dict, to_code, to_dict
from sklearn_calib.export._document import MapDocument, make_check_scores, to_document
from sklearn_calib.export._program import MIN_DIVISOR
from sklearn_calib.maps import read_map
from sklearn_calib.recalibrators import (
    HistogramBinning,
    Identity,
    PlattScaling,
    VennAbers,
    get_recalibrator,
)

EXACT = 1e-12
RUNNERS = {"c": in_c, "javascript": in_javascript, "python": in_python}
LANGUAGES = [
    pytest.param("c", marks=pytest.mark.skipif(CC is None, reason="no C compiler")),
    pytest.param(
        "javascript", marks=pytest.mark.skipif(NODE is None, reason="no node")
    ),
    "python",
]
HOSTILE = [
    "*/ #error /*",
    "\\u002a/ \n#error",
    '"; \u2028 alert(1) ; %s ? :p',
    "--> ``` ]]>",
]


@cache
def pairs(k, n=300, rows=100, names=tuple(METHODS)):
    """Documents and scores of both kinds, for the methods with a finite form and small tables."""
    found = []
    for name in names:
        proba = to_document(fitted(name, k, n), **tabulate(name))
        found.append((proba, probabilities(k, rows)))
        found.append((to_document(proba, input="logits"), logits(k, rows)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("k", QUICK)
@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_give_what_the_reference_gives(language, k):
    cases = pairs(k, names=QUICK[k])
    for (document, scores), got in zip(cases, RUNNERS[language](cases), strict=True):
        assert len(at_last_digits(document, scores, got, EXACT)) == 0, (
            document.estimator
        )


@pytest.mark.cross
@pytest.mark.parametrize(("name", "k"), IN_FULL)
@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_give_what_the_methods_predict(language, name, k):
    cases = pairs(k, 500 if name in TABULATED else 3000, 4000, (name,))
    for (document, scores), got in zip(cases, RUNNERS[language](cases), strict=True):
        assert len(at_last_digits(document, scores, got, EXACT)) == 0
    (_, scores), _ = cases
    expected = fitted(name, k, 500 if name in TABULATED else 3000).predict_proba(scores)
    got = RUNNERS[language](cases[:1])[0]
    assert np.quantile(np.abs(got - expected), 0.999) <= (
        k * 1e-6 if name in TABULATED else EXACT
    )


# -- nodes that no method writes like this ------------------------------------------------------


def document(tree, k, kind="proba"):
    root, scores = read_map(tree, k), make_check_scores(k, kind)
    results = root(canonical_proba(scores, kind=kind))
    return MapDocument(root, np.arange(k), kind, (scores, np.asarray(results)))


def uncommon():
    """(tree, number of classes)."""
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=9))
    curve = {
        "knots": knots,
        "values": rng.uniform(0, 1, 9),
        "slopes": rng.normal(size=9),
    }
    linear = {key: curve[key] for key in ("knots", "values")}
    for score in ("proba", "logit", "rank"):
        for domain in (None, [-0.5, 0.5], [-9.0, 9.0]):
            more = {"input": score, "domain": domain, "ties": score == "rank"}
            yield {"node": "piecewise_linear"} | linear | more, 2
            yield {"node": "piecewise_cubic", "link": "sigmoid"} | curve | more, 2
        falling = {
            "node": "steps",
            "input": score,
            "edges": [-1, 0.1, 0.7],
            "values": [1, 0.2, 0, 1],
        }
        yield {"node": "chain", "parts": [falling, falling]}, 2
        coef = rng.normal(size=30)
        more = {"domain": [-1.0, 0.6], "coef": coef, "ties": True}
        yield {"node": "clipped_chebyshev", "input": score} | more, 2
    poly = {
        "node": "sigmoid_poly",
        "input": "logit",
        "coef": [0.1, -2.0, 0.3, 0.01],
        "spread": 2.0,
    }
    yield poly, 2
    yield {"node": "top_label", "parts": [poly, None, poly], "rest": -0.7}, 3
    yield (
        {
            "node": "one_vs_rest",
            "parts": [
                {"node": "steps", "input": "proba", "edges": [0.6], "values": [0, 1]}
            ],
        },
        3,
    )
    constant = {
        "node": "one_vs_rest",
        "parts": [{"node": "steps", "input": "proba", "edges": [], "values": [0]}],
    }
    yield constant, 3
    affine = {
        "node": "softmax_affine",
        "coef": rng.normal(size=(3, 3)),
        "intercept": [1, -2, 0],
    }
    yield affine | {"centred": True, "least": -3.0}, 3
    many = np.unique(rng.integers(0, 3, (60, 20)), axis=0)
    cells = {
        "n_levels": 10,
        "slack": 0.0,
        "keys": many,
        "rows": rng.dirichlet(np.ones(20), len(many)),
    }
    yield {"node": "cells", "keep": True} | cells, 20
    yield {"node": "cells", "keep": False} | cells | {"keys": [], "rows": []}, 20
    above = {"keys": [[0, 12, 0], [1, 1, 8]], "rows": np.eye(3)[:2]}
    yield {"node": "cells", "keep": False} | cells | above, 3


UNCOMMON = list(uncommon())


def rows_for(tree, k):
    """Probabilities; those of cells also hit cells."""
    rows = probabilities(k, 200)
    if tree["node"] == "cells" and len(tree["keys"]):
        share = np.array(tree["keys"]) / 10 + 1e-3
        rows = np.vstack([rows, share / share.sum(axis=1, keepdims=True)])
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_uncommon_nodes(language):
    cases = [(document(tree, k), rows_for(tree, k)) for tree, k in UNCOMMON]
    cases += [
        (document(tree, k, "logits"), logits(k, 200)) for tree, k in UNCOMMON if k == 2
    ]
    for (map_, scores), got in zip(cases, RUNNERS[language](cases), strict=True):
        assert len(at_last_digits(map_, scores, got, EXACT)) == 0, map_.root.tree()


# -- the text -----------------------------------------------------------------------------------


def head_in(code):
    return json.loads(re.search(r"\{.*\}", code.split("\n")[1])[0])


@pytest.mark.parametrize("language", LANGUAGES)
def test_head_has_the_check_rows(language):
    exported = to_dict(fitted("isotonic", 3))
    head = head_in(to_code(exported, language))
    assert head == {name: value for name, value in exported.items() if name != "map"}
    scores, results = np.moveaxis(np.array(head["check"]), 1, 0)
    assert np.abs(RUNNERS[language]([(exported, scores)])[0] - results).max() <= EXACT


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_are_data(language):
    rows = probabilities(4, 50)
    method = Identity().fit(rows, np.resize(HOSTILE, len(rows)))
    code = to_code(method, language)
    assert head_in(code)["classes"] == sorted(HOSTILE)
    assert code.isascii()
    head = code.split("\n")[1]
    assert not re.search(r"[/*;?%'`<>$]|:\S", head)
    got = RUNNERS[language]([(to_dict(method), rows)])[0]
    assert np.abs(got - rows).max() <= EXACT


@pytest.mark.parametrize("language", ["c", "python"])
def test_text_is_the_same_for_the_same_map(language):
    method = fitted("multiclass_binning", 3)
    code = to_code(method, language)
    assert code == to_code(method, language)
    assert code == to_code(from_dict(to_dict(method)), language)


@run_every_case(
    "name",
    ["", "1a", "for", "ä", "a b", "x){} int y(", "_x", "exp", "a" * 61, None, "p\n"],
)
def test_names_are_identifiers(name):
    for language in ("c", "javascript", "python"):
        if name == "exp" and language != "c":
            continue
        with raises_invalid_input(ValueError, expected="a name of ASCII letters"):
            to_code(fitted("platt", 2), language, name)


def test_python_needs_two_modules_of_its_library():
    for name in ("isotonic", "restricted_polynomial"):
        tree = ast.parse(to_code(fitted(name, 2), "python"))
        imports = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert [ast.unparse(node) for node in imports] == [
            "import math",
            "from bisect import bisect_right",
        ]


def test_refusals(monkeypatch):
    with raises_invalid_input(
        ValueError, expected="a language among c, javascript, python", value="'rust'"
    ):
        to_code(fitted("platt", 2), "rust")
    monkeypatch.setattr(code_module, "MAX_CODE_OPERATIONS", 20)
    with raises_invalid_input(
        ValueError,
        expected=".*a map of at most 20 operations",
        value=r"\d+",
        hint="Use to_json",
    ):
        to_code(fitted("platt", 2))


# -- rows -------------------------------------------------------------------------------------

BAD = [
    [0.5, 0.6],
    [-0.1, 1.1],
    [np.nan, 0.5],
    [np.inf, 0.5],
    [0.5, 0.5 + 3e-6],
    [0.0, 0.0],
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_rows_that_are_no_probabilities_give_nan(language):
    case = (to_dict(fitted("isotonic", 2)), np.array(BAD))
    if language == "javascript":  # JSON has neither NaN nor infinity
        case = (case[0], np.array(BAD)[[0, 1, 4, 5]])
    assert np.isnan(RUNNERS[language]([case])[0]).all()
    if language != "javascript":
        wild = np.array([[1e151, 0.0], [0.0, np.nan], [-np.inf, 0.0]])
        got = RUNNERS[language]([(to_dict(fitted("platt", 2), input="logits"), wild)])[
            0
        ]
        assert np.isnan(got).all()


@pytest.mark.parametrize("language", LANGUAGES)
def test_rows_are_divided_by_their_sums(language):
    method = fitted("platt.proba", 2)
    single = probabilities(2, 200).astype(np.float32)
    single[0] = [np.float32(1 + 3e-7), np.float32(-3e-7)]
    got = RUNNERS[language]([(to_dict(method), single.astype(np.float64))])[0]
    assert np.abs(got - method.predict_proba(single)).max() <= EXACT


@pytest.mark.skipif(CC is None, reason="no C compiler")
def test_c_writes_over_its_input():
    rows = probabilities(3, 50)
    for name in ("matrix", "top_label.per_class"):
        method = fitted(name, 3)
        code = to_code(method, "c") + loop_over_rows("calibrate", 3)
        with tempfile.TemporaryDirectory() as folder:
            library = compiled(code, folder)
            loop = library.calibrate_rows
            expected = called(loop, rows)
            own = np.ascontiguousarray(rows)
            pointer = own.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
            loop(pointer, pointer, len(own))
        assert np.array_equal(own, expected)


def test_python_takes_integers_and_numpy_numbers():
    calibrate = python_function(
        to_dict(PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]))
    )
    assert calibrate([0, 1]) == calibrate((0.0, 1.0)) == calibrate(np.array([0, 1]))


@pytest.mark.parametrize("name", ["venn_abers", "histogram_binning", "enir"])
@pytest.mark.parametrize("k", [2, 3])
def test_certain_scores_among_those_of_the_fit(name, k):
    """Edges between zero and the smallest numbers: a class without probability is beyond them."""
    rng = np.random.default_rng(0)
    scores = canonical_proba(rng.normal(size=(300, k)) * 900, kind="logits")
    rows = np.vstack([np.asarray(scores)[:100], np.eye(k)])
    y = np.append(np.arange(k), rng.integers(0, k, len(scores) - k))
    method = get_recalibrator(name).fit(np.asarray(scores), y)
    function = python_function(to_document(method))
    got = [function(row) for row in rows.tolist()]
    tiny = ((rows > 0) & (rows < MIN_DIVISOR)).any(axis=1)
    assert np.abs(got - method.predict_proba(rows))[~tiny].max() <= EXACT


@pytest.mark.parametrize("name", ["venn_abers", "isotonic.step", "enir"])
def test_certain_scores_of_a_forest(name):
    """Scores such as shares of votes are often 0 and 1, and so are those of the fit."""
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 11, 300) / 10
    y = (rng.random(300) < scores).astype(int)
    method = clone(METHODS[name]).fit(scores, y)
    function = python_function(to_document(method))
    rows = np.column_stack([1 - scores, scores])
    got = [function(row) for row in rows.tolist()]
    assert np.abs(got - method.predict_proba(rows)).max() <= EXACT


def test_scores_on_an_edge():
    p = np.linspace(0, 1, 11)
    method = HistogramBinning(5, strategy="uniform").fit(p, np.arange(11) % 2)
    rows = np.column_stack([1 - p, p])
    got = in_python([(to_dict(method), rows)])[0]
    assert np.array_equal(got, method.predict_proba(p))


@pytest.mark.parametrize("language", [*LANGUAGES, "sqlite", "duckdb"])
def test_steps_at_the_smallest_numbers(language):
    """All numbers down to 5e-324, of the first class as of the second."""
    rng = np.random.default_rng(0)
    tiny = np.r_[
        10.0 ** -rng.uniform(300, 323, 150),
        5e-324,
        1e-323,
        2.4e-308,
        2.5e-308,
        2.6e-308,
    ]
    normal = np.finfo(float).tiny * np.array([0.5, 1 - 2**-52, 1, 1 + 2**-52, 2])
    rows = np.r_[tiny, tiny, normal, 0.0, 1.0, rng.random(100)]
    y = (rng.random(len(rows)) < np.where(rows < 1e-315, 0.1, 0.4)).astype(int)
    second = np.column_stack([1 - rows, rows])
    first = np.ascontiguousarray(second[:, ::-1])
    given, expected = [], []
    for scores, labels in ((second, y), (first, 1 - y)):
        model = VennAbers().fit(scores, labels)
        given.append((to_document(model), scores))
        expected.append(model.predict_proba(scores))
    run = RUNNERS.get(language, partial(in_sql, language))
    for got, wanted in zip(run(given), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="no node")
def test_javascript_is_found_by_require_and_by_import(tmp_path):
    method = fitted("platt", 2)
    (tmp_path / "map.cjs").write_text(
        to_code(method, "javascript", "churn"), encoding="utf-8"
    )
    call = "console.log(JSON.stringify(churn([0.3, 0.7])));"
    programs = {
        "a.mjs": f'import {{ churn }} from "./map.cjs"; {call}',
        "b.cjs": f'const {{ churn }} = require("./map.cjs"); {call}',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        ran = subprocess.run(
            [NODE, name], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        np.testing.assert_allclose(
            json.loads(ran.stdout), method.predict_proba([0.7])[0], atol=1e-12
        )
