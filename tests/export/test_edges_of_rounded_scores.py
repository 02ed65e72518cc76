"""Steps and knots hold for scores that are one step of float32 off a fitted score."""

import numpy as np
import pytest

from sklearn_calib.export._document import to_document
from sklearn_calib.export._onnx_nodes import Graph, GraphExpression, Tensor
from sklearn_calib.recalibrators import HistogramBinning, IsotonicCalibration, VennAbers

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
MARGINS = np.unique(RNG.normal(size=300).round(3) + 1e-9 * np.pi)
LABELS = (RNG.random(len(MARGINS)) < 1 / (1 + np.exp(-2 * MARGINS))).astype(int)


def run_map(fitted, margins, slack):
    """What the graph of a map gives for log-odds that may be off by so much."""
    nodes = []

    def write(op, inputs, outputs, **attributes):
        nodes.append(onnx.helper.make_node(op, inputs, outputs, **attributes))

    graph = Graph(write, np.dtype(np.float64), 17, slack=slack)
    rows = GraphExpression.from_margin(Tensor(graph, "x")).apply_map(
        to_document(fitted).root
    )
    double = onnx.TensorProto.DOUBLE
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            nodes,
            "map",
            [onnx.helper.make_tensor_value_info("x", double, [None, 1])],
            [onnx.helper.make_tensor_value_info(rows.p.name, double, [None, 2])],
            [onnx.numpy_helper.from_array(a, n) for n, a in graph.constants.items()],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": margins[:, None]})[0]


@pytest.mark.parametrize(
    "method", [VennAbers(), IsotonicCalibration(), HistogramBinning()]
)
def test_a_step_of_float32_to_either_side_changes_nothing(method):
    proba = 1 / (1 + np.exp(-MARGINS))
    fitted = method.fit(proba, LABELS)
    expected = fitted.predict_proba(proba)
    single = MARGINS.astype(np.float32)
    for end in (-np.inf, 0.0, np.inf):
        near = np.nextafter(single, np.float32(end)) if end else single
        got = run_map(fitted, near.astype(np.float64), 2.0**-19)
        assert np.abs(got - expected).max() <= 1e-7
