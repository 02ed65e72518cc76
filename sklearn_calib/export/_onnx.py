"""Maps as ONNX models."""

import json
from typing import Any, Literal

import numpy as np

from .._extras import require
from .._typing import AnyArray, Features, FloatArray
from ..canonical import canonical_proba
from ..exceptions import refuse
from ._document import Kind, MapDocument, document_of
from ._functions import Curve, Function
from ._onnx_graph import Graph, Tensor
from ._onnx_models import MODELS, model_to_onnx
from ._onnx_nodes import Rows, of_logits, written

INPUT, OUTPUT = "scores", "calibrated"
METADATA = "sklearn_calib_map"
_OLDEST_OPSET = 13
_SLACK = {"float64": 1e-6, "float32": 1e-6}
_LARGEST = {"float64": 1e150, "float32": 1e37}

Precision = Literal["float64", "float32"]


def to_onnx(
    fitted: Any,
    X: Features | None = None,
    *,
    opset: int = 17,
    dtype: Precision = "float64",
    input: Kind | None = None,
    tabulate: float | None = None,
) -> Any:
    where = "to_onnx"
    onnx = require("onnx", "export", where)
    if isinstance(fitted, MODELS):
        return model_to_onnx(fitted, X, opset, tabulate)
    document = document_of(fitted, input=input, tabulate=tabulate)
    graph = Graph(np.dtype(dtype), opset)
    scores = graph.named(INPUT)
    result = calibrated(document, scores)
    return _model(onnx, graph, document, result)


def calibrated(document: MapDocument, scores: Tensor) -> Tensor:
    """What the map of a document gives for scores; NaN for rows that are no scores."""
    k = len(document.classes)
    rows, valid = _read(scores, k, document.input)
    return valid.where(written(document.root, rows).p, np.nan)


def _read(scores, k, kind):
    """Scores as rows, as `canonical_proba` reads them, and which of them are good."""
    name = scores.graph.dtype.name
    if kind == "logits":
        return of_logits(scores, k), (scores.abs() <= _LARGEST[name]).all()
    slack = _SLACK[name]
    inside = ((scores - 0.5).abs() <= 0.5 + slack).all()
    p = scores.clip(0.0, 1.0)
    total = p.sum()
    error = (total - 1.0).abs()
    return Rows((error <= 1e-15).where(p, p / total), k), inside & (error <= slack)


def _model(onnx, graph, document, result):
    helper = onnx.helper
    k = len(document.classes)
    nodes = [
        helper.make_node(step.op, step.inputs, [step.output], **step.attributes)
        for step in graph.steps
    ]
    nodes.append(helper.make_node("Identity", [result.name], [OUTPUT]))
    constants = [onnx.numpy_helper.from_array(a, name) for name, a in graph.constants.items()]
    kind = helper.np_dtype_to_tensor_dtype(graph.dtype)
    ends = [helper.make_tensor_value_info(name, kind, ["n", k]) for name in (INPUT, OUTPUT)]
    body = helper.make_graph(nodes, "calibration", ends[:1], ends[1:], constants)
    imports = [helper.make_opsetid("", graph.opset)]
    model = helper.make_model(
        body,
        producer_name="sklearn_calib",
        producer_version=document.package,
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),
    )
    helper.set_model_props(model, {METADATA: json.dumps(document.to_dict(), allow_nan=False)})
    return model
