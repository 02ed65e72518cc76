"""Maps in ONNX, run by onnxruntime, give what the methods predict."""

import json
import sys

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from export_cases import (
    DEFAULTS,
    METHODS,
    TABULATED,
    VARIANTS,
    at_knots,
    fitted,
    logits,
    probabilities,
    tabulate,
)

from sklearn_calib import canonical_proba
from sklearn_calib._simplex_array import log_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import ExportedMap, from_json, to_dict, to_onnx
from sklearn_calib.export._document import MapDocument, to_document
from sklearn_calib.maps import MAP_KINDS, CalibrationMap, SigmoidPoly, read_map
from sklearn_calib.recalibrators import (
    HistogramBinning,
    Identity,
    PlattScaling,
    TopLabel,
    VennAbers,
)

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

EXACT = 1e-8
# of ten classes more than ten seconds each
LARGE = {
    "online",
    "trend_filtering_ensemble",
}
# kinds of nodes that more than two classes bring
OF_MORE_CLASSES = {
    "isotonic": 3,
    "top_label.per_class": 3,
    "multiclass_binning": 3,
    "multiclass_binning.rounded": 3,
    "structured_matrix": 10,
}


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model, scores):
    [result] = session_of(model).run(None, {"scores": scores})
    return result


def of_sizes(rows):
    """The rows, one of them, and none."""
    return rows, rows[:1], rows[:0]


def worst(name, k, n=300, opset=17, bound=1e-3):
    """The largest difference between a method and its ONNX models, over both kinds of scores.

    Of methods that become tables, right to `bound`, the tables are compared.
    """
    method, found = fitted(name, k, n), []
    document = to_dict(method, **({"tabulate": bound} if name in TABULATED else {}))
    exact = ExportedMap(document) if name in TABULATED else method
    for kind, all_rows in (("proba", probabilities(k)), ("logits", logits(k))):
        session = session_of(to_onnx(document, input=kind, opset=opset))
        for rows in of_sizes(all_rows):
            [got] = session.run(None, {"scores": rows})
            assert got.dtype == np.float64
            assert got.shape == rows.shape
            if len(rows):
                expected = exact.predict_proba(canonical_proba(rows, kind=kind))
                found.append(np.abs(got - expected).max())
    return max(found)


@run_every_case(  # 325 parts take their time
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow) if n in ("adaptive", "online") else n
        for n in DEFAULTS
    ],
)
def test_two_classes(name):
    assert worst(name, 2) <= EXACT


@pytest.mark.parametrize("name", OF_MORE_CLASSES)
def test_more_classes(name):
    assert worst(name, OF_MORE_CLASSES[name]) <= EXACT


@pytest.mark.cross
@pytest.mark.parametrize(
    ("name", "k"),
    [(n, k) for n in METHODS for k in (2, 3, 10) if k < 10 or n not in LARGE],
)
def test_in_full(name, k):
    assert worst(name, k, 500 if name in TABULATED else 3000, bound=1e-6) <= EXACT


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("opset", [13, 18, "newest"])
def test_other_opsets(name, opset):
    session = 23  # onnxruntime may be older than onnx
    opset = min(session, onnx.defs.onnx_opset_version()) if opset == "newest" else opset
    for k in (2, 3):
        assert worst(name, k, 200, opset) <= EXACT


@pytest.mark.parametrize(
    "name", ["isotonic", "multiclass_binning", "top_label.per_class"]
)
def test_4000_rows(name):
    method, rows = fitted(name, 3), probabilities(3, 4000)
    got = run(to_onnx(method), rows)
    assert np.abs(got - method.predict_proba(rows)).max() <= EXACT


def test_no_tensor_is_longer_than_the_rows():
    """Tables are searched by halving: a table of m entries takes about 4 log2(m) operations."""
    p = np.random.default_rng(0).uniform(size=4000)
    y = np.random.default_rng(1).uniform(size=4000) < p
    method = VennAbers().fit(p, y)
    model = to_onnx(method)
    n_edges = len(to_dict(method)["map"]["edges"])
    assert n_edges > 2000
    assert len(model.graph.node) < 40 + 5 * np.log2(n_edges)
    lengths = {max(tensor.dims, default=1) for tensor in model.graph.initializer}
    # the table itself, no copies of it
    assert sorted(lengths)[-2:] == [
        n_edges,
        n_edges + 1,
    ]


@pytest.mark.parametrize("slope", [1 + 3e-8, 1 - 2e-8])
def test_factors_that_float32_takes_for_one(slope):
    """onnxruntime leaves out factors that are 1 in float32."""
    root = read_map({"node": "softmax_affine", "coef": slope, "intercept": 0.0}, 2)
    z = np.column_stack([np.zeros(50), np.linspace(-4, 4, 50)])
    expected = root(canonical_proba(z, kind="logits"))
    document = MapDocument(root, np.arange(2), "logits", (z[:5], expected[:5]))
    assert np.abs(run(to_onnx(document), z) - expected).max() <= 1e-15


# -- what a model is made of ------------------------------------------------------------------


def test_every_node_has_its_operators():
    for cls in MAP_KINDS.values():
        assert cls.lower is not CalibrationMap.lower, cls.kind


@pytest.mark.parametrize("name", ["platt", "isotonic", "spline", "multiclass_binning"])
def test_standard_operators_only(name):
    model = to_onnx(fitted(name, 3), opset=17)
    onnx.checker.check_model(model, full_check=True)
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 17)]
    assert {node.domain for node in model.graph.node} == {""}
    [scores], [calibrated] = model.graph.input, model.graph.output
    for end in (scores, calibrated):
        assert end.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
        assert end.type.tensor_type.shape.dim[1].dim_value == 3


def properties(model):
    return {one.key: one.value for one in model.metadata_props}


def test_the_model_carries_the_map():
    method = fitted("beta", 2)
    text = properties(to_onnx(method))["sklearn_calib_map"]
    assert json.loads(text) == to_dict(method)
    rows = probabilities(2)
    assert (
        np.abs(from_json(text).predict_proba(rows) - method.predict_proba(rows)).max()
        <= 1e-12
    )


def test_a_surrogate_in_a_label_is_carried():
    labels = ["a", "b\udc80"]
    method = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], labels * 2, classes=labels)
    text = properties(to_onnx(method))["sklearn_calib_map"]
    assert from_json(text).classes_.tolist() == ["a", "b\udc80"]


@pytest.mark.parametrize("of", ["dict", "map", "method"])
def test_of_documents_too(of):
    method = fitted("isotonic", 2)
    document = to_dict(method, input="logits")
    source = {"dict": document, "map": ExportedMap(document), "method": method}[of]
    model = to_onnx(source, input="logits")
    expected = method.predict_proba(canonical_proba(logits(2), kind="logits"))
    assert np.abs(run(model, logits(2)) - expected).max() <= EXACT


def test_the_package_onnx_agrees():
    from onnx.reference import ReferenceEvaluator

    method = fitted("isotonic", 3)
    rows = probabilities(3)
    with np.errstate(divide="ignore"):  # logarithms of zeros, which are then raised
        [got] = ReferenceEvaluator(to_onnx(method)).run(None, {"scores": rows})
    assert np.abs(got - method.predict_proba(rows)).max() <= EXACT


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("proba", [np.nan, 0.5]),
        ("proba", [0.5, 0.6]),
        ("proba", [-0.1, 1.1]),
        ("proba", [np.inf, 0.0]),
        ("logits", [np.nan, 0.0]),
        ("logits", [np.inf, 0.0]),
        ("logits", [1e200, 0.0]),
    ],
)
@pytest.mark.parametrize("name", ["platt", "isotonic", "identity"])
def test_rows_that_are_no_scores_give_nan(name, kind, bad):
    method = fitted(name, 2)
    good = [0.25, 0.75]
    got = run(to_onnx(method, input=kind), np.array([good, bad, good]))
    assert np.isnan(got[1]).all()
    expected = method.predict_proba(canonical_proba([good], kind=kind))
    assert np.abs(got[[0, 2]] - expected).max() <= EXACT


# -- float32 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [("platt", "proba"), ("isotonic", "logits"), ("venn_abers", "proba")],
)
def test_float32_states_its_error(name, kind):
    """At least what it is at the scores that were learned, and no more than float32 explains."""
    method = fitted(name, 2)
    model = to_onnx(method, dtype="float32", input=kind)
    stated = float(properties(model)["largest_float32_error"])
    learned = canonical_proba(make_overconfident(2, 300, random_state=1)[0])
    rows = np.vstack([probabilities(2), learned])
    scores = log_proba(rows) if kind == "logits" else np.asarray(rows)
    got = run(model, scores.astype(np.float32))
    assert got.dtype == np.float32
    found = np.abs(got - method.predict_proba(canonical_proba(scores, kind=kind))).max()
    assert found <= stated
    steps = name == "venn_abers"
    assert (1e-3 if steps else 1e-9) < stated < (0.2 if steps else 1e-5)


def test_float64_states_no_error():
    assert "largest_float32_error" not in properties(to_onnx(fitted("platt", 2)))


# -- errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"opset": 12}, "opset from 13 to"),
        ({"opset": 1000}, "opset from 13 to"),
        ({"opset": True}, "opset from 13 to"),
        ({"dtype": "float16"}, "dtype among float64, float32"),
        ({"input": "scores"}, "input='proba' or 'logits'"),
    ],
)
def test_wrong_options_are_named(options, words):
    with raises_invalid_input(ValueError, expected=words):
        to_onnx(fitted("platt", 2), **options)


def test_methods_without_a_finite_form_ask_for_tables():
    with raises_invalid_input(ValueError, hint="Pass tabulate=1e-6"):
        to_onnx(fitted("adaptive", 2))


def test_unfitted_and_foreign():
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(PlattScaling())
    with raises_invalid_input(TypeError, expected="a recalibrator of this package"):
        to_onnx(object())


def test_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    words = r"onnx is not installed. Run: pip install 'sklearn-calib\[export\]'"
    with pytest.raises(ModuleNotFoundError, match=words):
        to_onnx(fitted("platt", 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_knots_and_their_neighbours(name):
    """Steps are searched without a logarithm: 0.3 was the largest difference with one."""
    from onnx.reference import ReferenceEvaluator

    method, options = fitted(name, 2), tabulate(name)
    document = to_document(method, **options)
    rows, model = at_knots(document, 3000), to_onnx(method, **options)
    expected = document.rows(rows)
    found = run(model, rows)
    assert np.abs(found - expected).max() < 1e-12
    few = rows[:: len(rows) // 20 + 1]
    with np.errstate(divide="ignore"):
        [slowly] = ReferenceEvaluator(model).run(None, {"scores": few})
    assert np.abs(slowly - document.rows(few)).max() < 1e-12
    assert np.isnan(run(model, np.array([[np.nan, 0.5]]))).all()


@pytest.mark.parametrize(
    "name", ["auto", "histogram_binning", "isotonic.step", "venn_abers"]
)
def test_knots_of_steps(name):
    test_knots_and_their_neighbours(name)


def test_edges_of_bins():
    """A score at an edge belongs to the bin above it."""
    grid = np.linspace(0, 1, 11)
    method = HistogramBinning(5, strategy="uniform").fit(grid, np.arange(11) % 2)
    steps = VennAbers().fit(grid, np.arange(11) % 2)
    near = np.concatenate([grid, np.nextafter(grid[1:], 0), np.nextafter(grid[:-1], 1)])
    pairs = np.column_stack([1 - near, near])
    for one in (method, steps):
        expected = one.predict_proba(pairs)
        found = run(to_onnx(one, dtype="float64"), pairs)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert len(np.unique(expected[:, 1])) > 2


@pytest.mark.parametrize("per_class", [False, True])
def test_top_label_of_exact_logits(per_class):
    """Far out the probability of the top class is 1: what a map sees of it are the logits."""
    z = canonical_proba(logits(3, 300), kind="logits")
    y = np.random.default_rng(0).integers(0, 3, 300)
    method = TopLabel("platt", per_class=per_class).fit(z, y)
    far = np.array(
        [[45.0, 0.0, 1.0], [0.0, 90.0, -3.0], [-50.0, -60.0, 30.0], [60.0, 0.0, 0.0]]
    )
    got = run(to_onnx(method, input="logits"), far)
    expected = method.predict_proba(canonical_proba(far, kind="logits"))
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-15)
    assert np.ptp(expected.max(axis=1)) > 1e-6  # so that it matters


@pytest.mark.parametrize(("dtype", "largest"), [("float64", 1e150), ("float32", 1e37)])
def test_logits_up_to_the_largest_give_probabilities(dtype, largest):
    document = to_dict(PlattScaling().fit(*make_overconfident(2, 60)), input="logits")
    rows = np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 2.0], [0.0, -2.0]]) * largest
    found = run(to_onnx(document, dtype=dtype), rows.astype(dtype))
    assert np.isnan(found).any(axis=1).tolist() == [False, False, True, True]


class OfCurve(Identity):
    def __init__(self, curve=None):
        self.curve = curve

    def _make_map(self):
        return self.curve


@pytest.mark.parametrize("spread", [1 - 1e-9, 1 + 1e-9, 1.5])
def test_divisors_that_are_almost_one(spread):
    """Onnxruntime drops what rounds to 1 in float32, so such a division is written as two."""
    curve = SigmoidPoly(input="logit", coef=[0.2, 1.5], centre=0.0, spread=spread)
    model = OfCurve(curve).fit([0.2, 0.8], [0, 1])
    rows = probabilities(2)
    found = run(to_onnx(model), rows)
    assert np.abs(found - model.predict_proba(rows)).max() <= 1e-12
