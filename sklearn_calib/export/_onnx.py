"""Maps as ONNX models."""

import json
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.pipeline import Pipeline

from .._argument_checks import check_choice, import_optional, is_real_number
from .._simplex_array import log_proba
from .._typing import Features
from ..exceptions import invalid_input
from ._document import Kind, to_document
from ._exported import to_dict
from ._onnx_models import convert_model, find_models, run_onnx
from ._onnx_nodes import Graph, GraphExpression, Tensor

INPUT_NAME = "scores"
OUTPUT_NAME = "calibrated"
METADATA_KEY = "sklearn_calib_map"
FLOAT32_ERROR_KEY = "largest_float32_error"
_MIN_OPSET = 13
# The differences of logits must not overflow.
MAX_LOGIT_BY_DTYPE = {"float64": 1e150, "float32": 1e37}

# The error of float32 is measured on at most this many rows.
_MAX_ERROR_MEASUREMENT_ROWS = 20_000
_ERROR_CHECK_LOG_ODDS_GRID = np.linspace(-40, 40, 1601)

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
    """Write a fitted map, or a classifier with its map, as an ONNX model.

    A map uses the standard operators of ONNX alone, in float64, and gives what
    ``predict_proba`` gives, to about 1e-15. Tables are searched by halving, so memory
    grows with the rows only.

    Parameters
    ----------
    fitted : fitted recalibrator, Pipeline of recalibrators, ExportedMap, dict, or classifier
        A classifier is a `CalibratedModel`, `RefineThenCalibrateCV` or
        `AngularCalibratedClassifier`, or a scikit-learn pipeline that ends in one.
    X : ndarray, DataFrame or sparse matrix of shape (n_samples, n_features), default=None
        For a classifier: some rows, as the ONNX model will be given them. Their dtype
        becomes that of its input, which is dense; each is compared with
        ``predict_proba``. float64 is better if scikit-learn computes in float64. The
        ONNX model has one input for each column of a table where a
        ``ColumnTransformer`` is the first step, and else one, "X".
    opset : int from 13, default=17
        The version of ONNX's operators.
    dtype : {"float64", "float32"}, default="float64"
        Of a map, its input and its output. In float32 steps move and tails are rounded;
        the largest error, measured at the knots and on a grid, is in the metadata. Not
        used for classifiers.
    input : {"proba", "logits"}, default=None
        As in `to_dict`. Not used for classifiers, whose maps get the scores that they
        were fitted on: the values of ``decision_function``, the summed trees of
        XGBoost, LightGBM and HistGradientBoostingClassifier, or probabilities.
    tabulate : float in [1e-9, 0.1], default=None
        As in `to_dict`.

    Returns
    -------
    model : onnx.ModelProto
        For a map: input "scores" and output "calibrated", both of shape (n, n_classes).
        Rows that ``predict_proba`` rejects (NaN, no probabilities) give NaN. For a
        classifier: the inputs, and the outputs "label" and "probabilities", as skl2onnx
        names them.

        ``metadata_props`` holds "sklearn_calib_map", the text of `to_json`, for a
        classifier "sklearn_calib_maps", a list with one document for each member of the
        ensemble, and "largest_difference_in_sample"; in float32
        "largest_float32_error".

    Raises
    ------
    ModuleNotFoundError
        Without the packages onnx, and for classifiers skl2onnx (onnxmltools for XGBoost
        and LightGBM).
    TypeError
        What is neither map nor classifier; a classifier that has no converter.
    ValueError
        A classifier without `X`; an opset or dtype that is not allowed; as in
        `to_dict`.
    RuntimeError
        A converted classifier that does not run, or differs from ``predict_proba`` on
        any row of X by more than 1e-7 if ONNX computes it in float64 and without
        `tabulate`, otherwise 1e-4. To be expected are 1e-12 of linear models and
        float64 rows, 2e-7 of trees or float32 rows with smooth or constant pieces, and
        up to 2e-5 if the map is steep between knots, such as an isotonic one.

    See Also
    --------
    register_onnx_converters : For conversions that start with ``skl2onnx``.

    Notes
    -----
    Cost: O(size of the fitted state). A model of a table of m knots does about 4
    log2(m) simple operations for each row.

    Examples
    --------
    >>> from sklearn_calib.export import to_onnx
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> y = ["no", "yes", "no", "yes"]
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], y, classes=["no", "yes"])
    >>> model = to_onnx(fitted)
    >>> [value.name for value in [*model.graph.input, *model.graph.output]]
    ['scores', 'calibrated']

    The package onnx computes it too, slowly; onnxruntime is the usual choice:

    >>> import numpy as np
    >>> from onnx.reference import ReferenceEvaluator
    >>> scores = np.array([[0.7, 0.3], [0.2, 0.8]])
    >>> [calibrated] = ReferenceEvaluator(model).run(None, {"scores": scores})
    >>> bool(np.abs(calibrated - fitted.predict_proba(scores)).max() < 1e-12)
    True
    """
    onnx = import_optional("onnx", "export")
    newest = onnx.defs.onnx_opset_version()
    if not (is_real_number(opset) and opset in range(_MIN_OPSET, newest + 1)):
        raise invalid_input(
            expected=f"opset from {_MIN_OPSET} to {newest}",
            got=repr(opset),
            hint="Leave it out",
        )
    opset = int(opset)
    check_choice("dtype", dtype, MAX_LOGIT_BY_DTYPE, "Leave it out")
    if find_models(fitted) or (X is not None and isinstance(fitted, Pipeline)):
        if X is None:
            raise invalid_input(
                expected="some rows X for a classifier",
                got="none",
                hint="Pass to_onnx(model, X)",
            )
        return convert_model(fitted, X, opset, tabulate)
    document = to_document(fitted, input=input, tabulate=tabulate)
    document.check_has_no_scale()
    nodes = []
    make_node = onnx.helper.make_node
    graph = Graph(
        lambda *args, **options: nodes.append(make_node(*args, **options)),
        np.dtype(dtype),
        opset,
    )
    result = _apply_map_or_nan_if_invalid(document, Tensor(graph, INPUT_NAME))
    nodes.append(make_node("Identity", [result.name], [OUTPUT_NAME], OUTPUT_NAME))
    model = _build_model(onnx, graph, nodes, document)
    # Surrogates are escaped in JSON, because ONNX cannot hold them.
    metadata = {METADATA_KEY: json.dumps(to_dict(document), allow_nan=False)}
    if dtype == "float32":
        metadata[FLOAT32_ERROR_KEY] = _format_doubled_float32_error(model, document)
    onnx.helper.set_model_props(model, metadata)
    return model


def _apply_map_or_nan_if_invalid(document, score_tensor):
    """Apply the map of a document to scores; invalid rows become NaN."""
    k = len(document.classes)
    if document.input == "logits":
        rows = GraphExpression.from_logits(score_tensor, k)
        good = (
            abs(score_tensor) <= MAX_LOGIT_BY_DTYPE[score_tensor.graph.dtype.name]
        ).all()
    else:
        good, rows = GraphExpression.from_probabilities(score_tensor, k)
    # A graph cannot raise errors.
    return good.where(rows.apply_map(document.root).p, np.nan)


def _build_model(onnx, graph, nodes, document):
    """Make the ONNX model of a graph."""
    helper = onnx.helper
    k = len(document.classes)
    constants = [
        onnx.numpy_helper.from_array(array, name)
        for name, array in graph.constants.items()
    ]
    kind = helper.np_dtype_to_tensor_dtype(graph.dtype)
    ends = [
        helper.make_tensor_value_info(name, kind, ["n", k])
        for name in (INPUT_NAME, OUTPUT_NAME)
    ]
    imports = [helper.make_opsetid("", graph.opset)]
    return helper.make_model(
        helper.make_graph(nodes, "calibration", ends[:1], ends[1:], constants),
        producer_name="sklearn_calib",
        producer_version=document.package,
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),
    )


# -- what float32 costs -----------------------------------------------------------------------


def _format_doubled_float32_error(model, document):
    """Measure twice the largest error by float32, at knots, on a grid and elsewhere, as text.

    The rounding of the scores to float32 counts.
    """
    scores = _make_error_check_rows(document)
    [got] = run_onnx(model, scores.astype(np.float32))
    far = np.abs(got - document.rows(scores)).max()
    if not far <= 1:
        raise invalid_input(
            expected="a map that float32 can hold",
            got="one that returns NaN or infinity in float32",
            hint="Leave dtype out",
        )
    return f"{2 * far:.3g}"


def _make_error_check_rows(document):
    """Return rows with each class at the knots and on a grid, the others equal.

    Any rows.
    """
    k = len(document.classes)
    margin = np.unique(
        np.concatenate(
            [_ERROR_CHECK_LOG_ODDS_GRID, *_iter_map_knots_as_log_odds(document.root)]
        )
    )
    max_margins = _MAX_ERROR_MEASUREMENT_ROWS // k
    if len(margin) > max_margins:
        margin = margin[np.linspace(0, len(margin) - 1, max_margins).astype(int)]
    class_proba = expit(margin)[:, None]
    others = expit(-margin)[:, None] / (k - 1)
    blocks = [
        np.where(np.arange(k) == c, class_proba, others) for c in range(k == 2, k)
    ]
    # Random rows of several spreads complete the rows at the knots.
    rng = np.random.default_rng(0)
    spread = rng.choice([0.5, 2.0, 8.0, 30.0], size=(_MAX_ERROR_MEASUREMENT_ROWS, 1))
    rows = np.vstack(
        [
            *blocks,
            softmax(spread * rng.normal(size=(_MAX_ERROR_MEASUREMENT_ROWS, k)), axis=1),
        ]
    )
    return np.asarray(log_proba(rows)) if document.input == "logits" else rows


def _iter_map_knots_as_log_odds(node):
    """Return the knots of all tables of a map, as log-odds."""
    for name in ("knots", "edges", "domain"):
        x = getattr(node, name, None)
        if x is not None and len(x):
            with np.errstate(divide="ignore", invalid="ignore"):
                x = logit(x) if node.input == "proba" else x
            yield x[np.isfinite(x)]
    for child in node.children():
        yield from _iter_map_knots_as_log_odds(child)
