"""Classifiers with their maps as ONNX models, through skl2onnx.

The map is written into the graph of skl2onnx's converter. Two models joined by
``onnx.compose`` need the same classifier's scores, a model for the types between them,
and would do for one classifier that is not a part of a pipeline; what stays is most of
this file, and `_onnx_boosted`.
"""

import itertools
import json
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import classifiers
from .._argument_checks import import_optional
from .._simplex_array import SMALLEST_PROBABILITY
from .._typing import Features
from .._validation import canonical_labels
from ..exceptions import invalid_input
from . import _onnx_boosted as boosted
from ._document import to_document
from ._onnx_nodes import Graph, GraphExpression, Tensor

METADATA_KEY = "sklearn_calib_maps"
# The code of float32 in onnx.TensorProto.
_FLOAT_TYPE_CODE = 1
# Rows of X that are compared at once.
COMPARED_BATCH_ROWS = 1000
# The graph may differ from the model by this much in any row.
MAX_ROW_ERROR = 1e-4
# The same if everything is in float64 and no map is tabulated.
_MAX_DOUBLE_ROW_ERROR = 1e-7
#: What scores may be off, relative to their size, if something computes them in float32
#: or nothing.
_FLOAT32_SCORE_TOLERANCE = 2.0**-19
_FLOAT64_SCORE_TOLERANCE = 2.0**-34

#: The estimators of this package that have a converter.
CONVERTIBLE_MODELS = tuple(
    cls
    for cls in (getattr(classifiers, name) for name in classifiers.__all__)
    if hasattr(cls, "predict_proba")
)


def register_onnx_converters() -> None:
    """Register the classifiers of this package with ``skl2onnx``, inside pipelines too.

    `to_onnx` calls it. Call it yourself before ``skl2onnx.to_onnx`` or
    ``convert_sklearn``, if you want their options. Registered are `CalibratedModel`,
    `RefineThenCalibrateCV` and `AngularCalibratedClassifier`, with the options "zipmap"
    of all classifiers and "tabulate" of `to_dict`. Unlike `to_onnx`, ``skl2onnx`` does
    not compare the result with Python.

    Raises
    ------
    ModuleNotFoundError
        Without skl2onnx.

    Examples
    --------
    >>> import skl2onnx
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_calib import CalibratedModel
    >>> from sklearn_calib.export import register_onnx_converters
    >>> register_onnx_converters()
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), CalibratedModel(GaussianNB(), "beta"))
    >>> onnx_model = skl2onnx.to_onnx(model.fit(X, y), X[:1], options={"zipmap": False})
    >>> [output.name for output in onnx_model.graph.output]
    ['label', 'probabilities']
    """
    skl2onnx = import_optional("skl2onnx", "export")
    options = {
        "zipmap": [True, False, "columns"],
        "nocl": [True, False],
        "tabulate": None,
    }
    for cls in CONVERTIBLE_MODELS:
        name = f"SklearnCalib{cls.__name__}"
        skl2onnx.update_registered_converter(
            cls,
            name,
            _set_model_shape,
            _convert_model,
            options=options,
        )
    skl2onnx.update_registered_converter(
        boosted.BoostedMargins,
        "SklearnCalibBoostedMargins",
        boosted.set_margin_shape,
        boosted.convert_margins,
    )


def find_models(fitted: Any) -> list[Any]:
    """Return the classifiers of this package in an estimator or a pipeline."""
    if isinstance(fitted, CONVERTIBLE_MODELS):
        return [fitted]
    parts = [step for _, step in fitted.steps] if isinstance(fitted, Pipeline) else []
    return [*itertools.chain(*map(find_models, parts))]


def convert_model(fitted: Any, X: Features, opset: int, tabulate: float | None) -> Any:
    """Convert a classifier or pipeline to an ONNX model; see `to_onnx`."""
    skl2onnx = import_optional("skl2onnx", "export")
    check_is_fitted(fitted)
    register_onnx_converters()
    labels = np.asarray(getattr(fitted, "classes_", ()))
    if labels.dtype.kind == "S":
        raise invalid_input(
            expected="labels that are text or whole numbers",
            got="bytes, which ONNX does not have",
            hint="Fit with y.astype(str)",
            error=TypeError,
        )
    try:
        # ONNX stores texts as UTF-8, in which lone surrogates do not exist.
        "".join(map(str, labels.ravel())).encode()
    except UnicodeEncodeError:
        raise invalid_input(
            expected="labels whose characters UTF-8 has",
            got=ascii(labels.tolist()),
            hint="Fit with other names",
        ) from None
    models = find_models(fitted)
    options = {id(model): {"zipmap": False, "tabulate": tabulate} for model in models}
    versions = {"": opset, boosted.TREE_OPERATOR_DOMAIN: boosted.DOUBLE_TREE_VERSION}
    onnx_model = skl2onnx.to_onnx(
        fitted,
        _make_dense_array_or_keep_table(fitted, X[:1]),
        target_opset=versions,
        options=options,
    )
    pairs = itertools.chain(*(model.calibrated_pairs_ for model in models))
    documents = [
        to_document(pair.recalibrator, tabulate=tabulate).to_dict() for pair in pairs
    ]
    text = json.dumps(documents, allow_nan=False)
    onnx_model.metadata_props.add(key=METADATA_KEY, value=text)
    _check_onnx_and_record_difference(onnx_model, fitted, X, tabulate)
    return onnx_model


def _make_dense_array_or_keep_table(fitted, X):
    """Return rows as the ONNX model gets them."""
    if hasattr(X, "columns") and _reads_columns(fitted):
        return X
    return X.toarray() if issparse(X) else np.asarray(X)


# -- the converter of skl2onnx ----------------------------------------------------------------


def _set_model_shape(operator):
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    classes = operator.raw_operator.classes_
    label = StringTensorType if classes.dtype.kind in "UO" else Int64TensorType
    operator.outputs[0].set_type(label([None]))
    operator.outputs[1].type.shape = [None, len(classes)]


def _convert_model(scope, operator, container):
    """Write a classifier and its maps into the graph of skl2onnx."""
    from skl2onnx.common.data_types import guess_proto_type

    model = operator.raw_operator
    prefix = scope.get_unique_variable_name("map")
    version = container.target_opset
    write = partial(container.add_node, op_version=version)
    graph = Graph(write, np.dtype(np.float64), version, prefix)
    tabulate = container.get_options(model, {"tabulate": None})["tabulate"]
    parts = []
    for pair in model.calibrated_pairs_:
        document = to_document(pair.recalibrator, tabulate=tabulate)
        rows = _compute_scores_and_set_slack(
            model, pair, scope, operator, container, graph
        )
        mapped = rows.apply_map(document.root)
        _, places = canonical_labels(document.classes, classes=model.classes_)
        parts.append(
            _add_missing_classes(
                GraphExpression(mapped.p, mapped.k), places, len(model.classes_)
            ).p
        )
    # The probabilities of the pairs are averaged, as in `predict_proba`.
    mean = sum(parts[1:], start=parts[0]) / float(len(parts))
    labels = model.classes_
    labels = labels.astype(str if labels.dtype.kind in "UO" else np.int64)
    label = graph.add_constant(labels).entries(mean.find_top_column().change_shape(-1))
    _add_constants(graph, container)
    out = operator.outputs
    kind = guess_proto_type(operator.outputs[1].type)
    container.add_node("Identity", [label.name], [out[0].full_name])
    container.add_node("Cast", [mean.name], [out[1].full_name], to=kind)


def _add_constants(graph, container):
    from onnx import TensorProto, numpy_helper

    for name, array in graph.constants.items():
        if array.dtype.kind == "U":
            # ONNX stores texts as bytes.
            text = [label.encode() for label in array.tolist()]
            container.add_initializer(name, TensorProto.STRING, list(array.shape), text)
        else:
            container.add_initializer(name, None, None, numpy_helper.from_array(array))


def _place_table_columns_and_fill_rest(table, other, places, k):
    """Place the columns of a table among k, and fill the others with the column `other`."""
    # Columns of ONNX are selected by index: absent classes get the index of the last
    # column, `other`.
    source = np.full(k, len(places))
    source[places] = np.arange(len(places))
    return np.column_stack([table, other]).columns(source)


# -- scores of a classifier -------------------------------------------------------------------


def _compute_scores_and_set_slack(model, pair, scope, operator, container, graph):
    """Compute scores as `compute_aligned_canonical_scores`, and set their slack."""
    from skl2onnx._parse import _parse_sklearn
    from skl2onnx.common.data_types import DoubleTensorType

    estimator, last = _unwrap_and_get_last_step(pair.estimator)
    kind = _get_classifier_score_kind(last, model.response_method)
    _check_converter(container, last, kind)
    # ONNX adds up the leaves of trees in float32.
    adds_in_float32 = (
        kind == "margins" or hasattr(last, "estimators_") or hasattr(last, "tree_")
    )
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    # Scores may differ from Python's by this rounding, which must not move them across
    # a step.
    graph.slack = (
        _FLOAT32_SCORE_TOLERANCE
        if adds_in_float32 or not is_double
        else _FLOAT64_SCORE_TOLERANCE
    )
    if kind == "margins":
        estimator, last = _unwrap_and_get_last_step(
            pair.estimator, boosted.BoostedMargins
        )
    k = len(model.classes_)
    n_own = len(last.classes_)
    options = {"zipmap": False, "raw_scores": kind == "raw"}
    # Each converter has some of these options only.
    options = {
        name: value
        for name, value in options.items()
        if container.has_options(last, name)
    }
    for place in (scope, container):
        # skl2onnx looks options up by the identity of the estimator, in both objects.
        place.add_options(id(last), options)
    graph.second_only = adds_in_float32 and n_own == 2
    outputs = _parse_sklearn(scope, estimator, operator.inputs)
    scores = graph.add(
        "Cast", Tensor(graph, outputs[-1].full_name), to=boosted.DOUBLE_TYPE_CODE
    )
    if kind == "proba":
        # Sums of leaves in float32 may exceed 1 by rounding.
        p = np.clip(scores, 0.0, 1.0)
        rows = GraphExpression(p / p.sum(), n_own)
    elif n_own == 2:
        rows = GraphExpression.from_margin(scores.column(-1))
    else:
        rows = GraphExpression.from_logits(scores, n_own)
    if kind == "margins" and model.response_method == "predict_proba":
        rows = _round_like_predict_proba(rows, last)
    return _add_missing_classes(rows, pair.columns, k)


def _round_like_predict_proba(rows, margins):
    """Round probabilities as predict_proba does: p_0 is 1 - p_1, XGBoost uses float32."""
    p = rows.p
    if rows.k == 2:
        p = np.column_stack([1.0 - p.column(1), p.column(1)])
    if boosted.find_boosting_package(margins.estimator) == "xgboost":
        p = p.graph.add(
            "Cast",
            p.graph.add("Cast", p, to=_FLOAT_TYPE_CODE),
            to=boosted.DOUBLE_TYPE_CODE,
        )
    return GraphExpression(p / p.sum(), rows.k)


def _add_missing_classes(rows, places, k) -> GraphExpression:
    """Add classes with probability 0 that the classifier, or its map, has not seen."""
    if np.array_equal(places, np.arange(k)):
        return rows
    p = _place_table_columns_and_fill_rest(rows.p, rows.p.column(0) * 0.0, places, k)
    if rows.exact is None:
        return GraphExpression(p, k)
    missing_log = np.minimum(rows.exact.min(), np.log(SMALLEST_PROBABILITY))
    return GraphExpression(
        p, k, _place_table_columns_and_fill_rest(rows.exact, missing_log, places, k)
    )


def _unwrap_and_get_last_step(estimator, wrap_last=lambda last: last):
    """Unwrap the classifier, and return its last step, with `wrap_last` applied to it."""
    if isinstance(estimator, Pipeline):
        *steps, (name, inner) = estimator.steps
        inner, last = _unwrap_and_get_last_step(inner, wrap_last)
        steps = [
            (key, _unwrap_once_if_wrapped(step))
            for key, step in steps
            if step not in (None, "passthrough")
        ]
        return Pipeline([*steps, (name, inner)]), last
    inner = _unwrap_once_if_wrapped(estimator)
    if inner is not estimator:
        return _unwrap_and_get_last_step(inner, wrap_last)
    last = wrap_last(inner)
    return last, last


def _unwrap_once_if_wrapped(estimator):
    """Return the wrapped estimator, or the estimator itself."""
    if isinstance(estimator, FrozenEstimator):
        return estimator.estimator
    return getattr(estimator, "best_estimator_", estimator)


def _reads_columns(estimator):
    """Return whether the first step selects columns of a table by name."""
    if isinstance(estimator, Pipeline):
        return _reads_columns(estimator.steps[0][1])
    if isinstance(estimator, CONVERTIBLE_MODELS):
        return _reads_columns(estimator.calibrated_pairs_[0].estimator)
    inner = _unwrap_once_if_wrapped(estimator)
    if inner is not estimator:
        return _reads_columns(inner)
    return isinstance(estimator, ColumnTransformer)


def _get_classifier_score_kind(last, response_method):
    """Return the kind of scores that `compute_canonical_classifier_scores` uses."""
    if boosted.has_tree_margins_or_raise(last):
        return "margins"
    if response_method != "predict_proba" and hasattr(last, "decision_function"):
        return "raw"
    return "proba"


def _check_converter(container, last, kind):
    """Raise an error if skl2onnx does not convert the needed scores of a classifier."""
    from skl2onnx._supported_operators import sklearn_operator_name_map

    name = type(last).__name__
    if type(last) not in sklearn_operator_name_map and kind != "margins":
        raise invalid_input(
            expected="a classifier that skl2onnx or onnxmltools converts",
            got=name,
            hint=(
                "Export the map alone, to_onnx(model.recalibrator_), and the classifier "
                "with its own package"
            ),
            error=TypeError,
        )
    if len(last.classes_) < 2:
        raise invalid_input(
            expected="classifiers of at least two classes",
            got=f"a {name} of one class",
            hint="Use fewer folds",
        )
    unknown = not container.has_options(last, "raw_scores") or (
        getattr(last, "probability", False) is True
    )
    if kind == "raw" and unknown and hasattr(last, "predict_proba"):
        raise invalid_input(
            expected="a classifier whose decision_function skl2onnx converts",
            got=name,
            sentence=(
                f"skl2onnx converts the probabilities of {name}, but not its "
                "decision_function"
            ),
            hint="Fit the model with response_method='predict_proba'",
            error=TypeError,
        )


# -- the result against Python ----------------------------------------------------------------


def _check_onnx_and_record_difference(onnx_model, fitted, X, tabulate):
    """Reject a conversion that does not give what the model predicts for each row of X."""
    rule = "a conversion that gives what the model predicts for X"
    alone = "export the map alone, to_onnx(model.recalibrator_)"
    limit = (
        MAX_ROW_ERROR
        if tabulate or not _is_all_in_float64(onnx_model)
        else _MAX_DOUBLE_ROW_ERROR
    )
    farthest = 0.0
    for start in range(0, np.shape(X)[0], COMPARED_BATCH_ROWS):
        batch = X[start : start + COMPARED_BATCH_ROWS]
        expected = fitted.predict_proba(batch)
        try:
            proba = run_onnx(
                onnx_model, _make_dense_array_or_keep_table(fitted, batch)
            )[1]
        except Exception as error:
            raise invalid_input(
                expected=rule,
                got=f"one that does not run ({str(error)[:300]})",
                hint=f"Its converter fails for this dtype of X: try the other, or {alone}",
                error=RuntimeError,
            ) from error
        far = np.abs(proba - expected).max(axis=1)
        farthest = max(farthest, float(far.max()))
        if not far.max() <= limit:
            raise invalid_input(
                expected=rule,
                got=f"differences up to {far.max():.2g}",
                hint=(
                    "The classifier's own conversion is wrong, or rounds to float32 where a "
                    f"tree or the map has a step: {alone}, and give it the scores of the "
                    "classifier"
                ),
                row=start + int(np.argmax(~(far <= limit))),
                error=RuntimeError,
            )
    onnx_model.metadata_props.add(
        key="largest_difference_in_sample", value=f"{farthest:.3g}"
    )


def _is_all_in_float64(onnx_model):
    """Return whether rows and all operations are in float64."""
    for node in onnx_model.graph.node:
        if node.op_type.startswith(("TreeEnsemble", "SVM")):
            return False
        if node.op_type == "Cast" and node.attribute[0].i == _FLOAT_TYPE_CODE:
            return False
    return (
        onnx_model.graph.input[0].type.tensor_type.elem_type == boosted.DOUBLE_TYPE_CODE
    )


def run_onnx(onnx_model: Any, X: Features) -> list[Any]:
    """Run an ONNX model with onnxruntime, or with the slower reference of onnx.

    Parameters
    ----------
    onnx_model : ModelProto
    X : ndarray or DataFrame
        One input; of a table, one for each column.

    Returns
    -------
    results : list of ndarray
    """
    feed = {onnx_model.graph.input[0].name: X}
    if hasattr(X, "columns"):
        feed = {name: np.asarray(X[name])[:, None] for name in X.columns}
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(onnx_model).run(None, feed))
    session = InferenceSession(
        onnx_model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)
