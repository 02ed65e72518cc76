"""The logits of boosted trees in ONNX: the trees, summed, without sigmoid or softmax.

The converters of onnxmltools give probabilities in float32, of which a logarithm has no
tails; that of skl2onnx for HistGradientBoostingClassifier fails under some versions of
protobuf.
"""

import warnings
from copy import copy
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier

from .._argument_checks import import_optional
from .._typing import AnyArray, Estimator
from ..exceptions import invalid_input
from ..staged import classifier_logits

TREE_OPERATOR_DOMAIN = "ai.onnx.ml"
# From this version on trees may hold float64.
DOUBLE_TREE_VERSION = 3
# The code of float64 in onnx.TensorProto.
DOUBLE_TYPE_CODE = 11
_DOUBLE_ATTRIBUTES = ("nodes_values", "target_weights", "base_values")


class BoostedMargins(BaseEstimator):
    """A boosted classifier that stands for its logits, where a converter meets it.

    Parameters
    ----------
    estimator : XGBClassifier, LGBMClassifier or HistGradientBoostingClassifier
        Fitted.
    """

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator

    @property
    def classes_(self) -> AnyArray:
        return self.estimator.classes_


def has_tree_margins_or_raise(estimator: Estimator) -> bool:
    """Return whether probabilities of a classifier come from logits that are sums of trees.

    Raises TypeError for other learners that have logits behind their probabilities.
    """
    if isinstance(estimator, HistGradientBoostingClassifier):
        if estimator.is_categorical_ is not None and estimator.is_categorical_.any():
            raise invalid_input(
                expected="a HistGradientBoostingClassifier without categorical features",
                got="categorical features, which skl2onnx does not convert",
                hint="Encode them before, for instance with OneHotEncoder",
            )
        return True
    if (
        not hasattr(estimator, "n_features_in_")
        or _evaluate_at_zero_row(estimator, classifier_logits) is None
    ):
        return False
    if find_boosting_package(estimator) is None:
        raise invalid_input(
            expected="an estimator of scikit-learn, XGBoost or LightGBM",
            got=type(estimator).__name__,
            hint=(
                "Export it with its own package, and the map of its logits with "
                "to_onnx(model.recalibrator_, input='logits')"
            ),
            error=TypeError,
        )
    return True


def _evaluate_at_zero_row(estimator, function):
    """Evaluate a function of a fitted estimator and rows at one row of zeros."""
    with warnings.catch_warnings():
        # The warning would be that the row has no feature names.
        warnings.simplefilter("ignore")
        return function(estimator, np.zeros((1, estimator.n_features_in_)))


def find_boosting_package(estimator: Estimator) -> str | None:
    """Return "xgboost", "lightgbm" or "sklearn", or None for other packages."""
    roots = {cls.__module__.partition(".")[0] for cls in type(estimator).__mro__}
    if isinstance(estimator, HistGradientBoostingClassifier):
        return "sklearn"
    return next((name for name in ("xgboost", "lightgbm") if name in roots), None)


def set_margin_shape(operator: Any) -> None:
    """Set the output shape for skl2onnx: (n, n_classes), or (n, 1) for two classes."""
    k = len(operator.raw_operator.classes_)
    operator.outputs[0].type.shape = [None, 1 if k == 2 else k]


def convert_margins(scope: Any, operator: Any, container: Any) -> None:
    """Write the trees, as the converter of onnxmltools reads them, as a sum for each class."""
    from onnx.helper import make_tensor
    from skl2onnx.common.data_types import DoubleTensorType

    estimator = operator.raw_operator.estimator
    package = find_boosting_package(estimator)
    trees = _read_tree_attributes(scope, operator, container, estimator, package)
    name = operator.inputs[0].full_name
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    if package != "xgboost":
        trees = trees | {"nodes_values": _list_thresholds_rounded_down(trees, double)}
    elif double:
        # XGBoost itself converts features to float32.
        narrow = scope.get_unique_variable_name("float32")
        container.add_node("Cast", [name], [narrow], to=1)
        name = narrow
        double = False
    if double:
        # Plain attributes of the operator are float32, so float64 needs tensors.
        for key in [key for key in _DOUBLE_ATTRIBUTES if key in trees]:
            values = np.asarray(trees.pop(key), dtype=float)
            trees[f"{key}_as_tensor"] = make_tensor(
                key, DOUBLE_TYPE_CODE, [len(values)], values
            )
    out = operator.outputs[0].full_name
    # The logits of LightGBM are the sum of the trees times a factor.
    factor = _find_margin_factor(estimator, package)
    summed = out if factor == 1 else scope.get_unique_variable_name("summed")
    container.add_node(
        "TreeEnsembleRegressor",
        [name],
        [summed],
        op_domain=TREE_OPERATOR_DOMAIN,
        op_version=DOUBLE_TREE_VERSION if double else 1,
        name=scope.get_unique_operator_name("margins"),
        **trees,
    )
    if factor != 1:
        constant = scope.get_unique_variable_name("factor")
        container.add_initializer(constant, 1, [], [factor])
        container.add_node("Mul", [summed, constant], [out])


def _read_tree_attributes(scope, operator, container, estimator, package):
    """Return the attributes of a TreeEnsembleRegressor."""
    from skl2onnx.common.data_types import DoubleTensorType

    attributes_of_node = {}

    def store_classifier_attributes(op, inputs, outputs, **attributes):
        if op == "TreeEnsembleClassifier":
            attributes_of_node.update(attributes)

    outputs = [SimpleNamespace(full_name=name) for name in ("label", "probabilities")]
    reader = SimpleNamespace(
        raw_operator=_copy_xgboost_without_feature_names(estimator)
        if package == "xgboost"
        else estimator,
        # With an input of float64 the converters keep all digits of the thresholds.
        inputs=[SimpleNamespace(type=DoubleTensorType())],
        input_full_names=operator.input_full_names,
        outputs=outputs,
        output_full_names=[output.full_name for output in outputs],
        full_name="trees",
    )
    recorder = SimpleNamespace(
        add_node=store_classifier_attributes,
        add_initializer=lambda *args, **kwargs: None,
        get_options=lambda model, options: options | {"raw_scores": True},
        target_opset=container.target_opset,
        verbose=0,
    )
    _find_converter(package)(scope, reader, recorder)
    trees = {}
    for name, value in attributes_of_node.items():
        if name.startswith(("nodes_", "class_", "base_")):
            # The operator for regression has the same attributes with "target_".
            trees[name.replace("class_", "target_")] = (
                _convert_to_list_with_bools_as_ints(value)
            )
    k = len(estimator.classes_)
    return trees | {"n_targets": 1 if k == 2 else k, "post_transform": "NONE"}


def _copy_xgboost_without_feature_names(estimator):
    """Copy XGBoost's estimator without feature names, as converters need it."""
    booster = estimator.get_booster().copy()
    booster.feature_names = None
    unnamed = copy(estimator)
    unnamed._Booster = booster
    return unnamed


def _convert_to_list_with_bools_as_ints(values):
    values = np.asarray(values)
    return (values.astype(int) if values.dtype.kind == "b" else values).tolist()


def _find_converter(package):
    """Return the converter of a package's boosted trees."""
    if package == "sklearn":
        from skl2onnx.operator_converters.random_forest import (
            convert_sklearn_random_forest_classifier,
        )

        # From this version on the operator keeps thresholds in float64.
        return partial(
            convert_sklearn_random_forest_classifier, op_version=DOUBLE_TREE_VERSION
        )
    folder = "onnxmltools.convert"
    if package == "xgboost":
        path = f"{folder}.xgboost.operator_converters.XGBoost"
        name = "convert_xgboost"
    else:
        path = f"{folder}.lightgbm.operator_converters.LightGbm"
        name = "convert_lightgbm"
    return getattr(import_optional(path, "export"), name)


def _list_thresholds_rounded_down(trees, double):
    """Round thresholds down for float32 x; x <= threshold is compared in float64."""
    values = np.asarray(trees["nodes_values"], dtype=float)
    if double:
        return values.tolist()
    rounded = values.astype(np.float32)
    ordered = np.asarray(trees["nodes_modes"]) == "BRANCH_LEQ"
    above = ordered & (rounded.astype(float) > values)
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded).tolist()


def _find_margin_factor(estimator, package):
    """Return the factor from the sum of the trees to `classifier_logits`."""
    if package != "lightgbm":
        return 1.0
    raw = np.ravel(
        _evaluate_at_zero_row(
            estimator, lambda fit, X: fit.predict_proba(X, raw_score=True)
        )
    )
    largest = np.abs(raw).argmax()
    if raw[largest]:
        return float(
            np.ravel(_evaluate_at_zero_row(estimator, classifier_logits))[largest]
            / raw[largest]
        )
    return 1.0
