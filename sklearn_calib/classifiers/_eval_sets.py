"""Rows on which a classifier judges its fit, with labels encoded as those it is fitted on."""

from typing import Any, NamedTuple

import numpy as np

from .._sklearn_compat import safe_split
from .._typing import AnyArray, Estimator, IntArray
from .._validation import check_same_length, read_labels
from ..exceptions import invalid_input
from ._classifier_scores import count_rows

_EVAL_PAIRS_PARAMETER = "eval_set"
# The parameter of the features that belong to a parameter of labels.
_FEATURES_BY_LABELS = {"eval_y": "eval_X", "y_val": "X_val"}
# These have one array for each set of rows.
_ROW_PARAMETERS_BY_SET = {
    "eval_set": (
        "sample_weight_eval_set",
        "base_margin_eval_set",
        "eval_sample_weight",
        "eval_init_score",
    ),
    "eval_y": ("eval_sample_weight", "eval_init_score"),
    "y_val": ("sample_weight_val",),
}


class FitLabelEncoding(NamedTuple):
    """Hold how the labels of a fit were written: all classes, those it has, and if as numbers."""

    classes: AnyArray
    # The positions of the fit's classes among all classes.
    present_codes: IntArray
    # Whether the labels are the numbers 0 .. number of classes - 1.
    is_encoded: bool


def encode_eval_labels_and_drop_rows(
    estimator: Estimator, params: dict[str, Any], labelling: FitLabelEncoding
) -> dict[str, Any]:
    """Return the parameters of a fit with the evaluation labels encoded as its own.

    Rows of a class that this fit misses, though others have it, are left out of the
    judgement.

    Raises
    ------
    ValueError
        A label that no training row has; no row left; labels that cannot be reached.
    """
    params = dict(params)
    for name in [*params]:
        if (
            params[name] is not None
            and _strip_step_prefix(name) == _EVAL_PAIRS_PARAMETER
        ):
            _encode_eval_pairs_in_place(estimator, params, name, labelling)
        elif (
            params[name] is not None and _strip_step_prefix(name) in _FEATURES_BY_LABELS
        ):
            _encode_separate_eval_arrays_in_place(estimator, params, name, labelling)
    return params


def _strip_step_prefix(name):
    return name.rpartition("__")[2]


def _encode_eval_pairs_in_place(estimator, params, name, labelling):
    """Encode the labels of a parameter that holds pairs of features and labels."""
    sets = params[name]
    # (X, y) is one set; [(X, y), ...] are several.
    single = isinstance(sets, tuple) and len(sets) == 2 and not _is_pair(sets[0])
    if single or not isinstance(sets, list | tuple):
        sets = [sets]
    done = []
    for number, pair in enumerate(sets):
        # CatBoost's Pool and the path of a file hold labels that cannot be encoded
        # here.
        if not _is_pair(pair):
            if labelling.is_encoded:
                raise invalid_input(
                    expected=(
                        "eval_set as pairs (X, y), whose labels can be written as numbers"
                    ),
                    got=type(pair).__name__,
                    hint="Pass eval_set=[(X_valid, y_valid)], or labels 0, 1, ... in y as well",
                )
            done.append(pair)
            continue
        done.append(
            _encode_eval_set_and_drop_rows(
                estimator,
                pair,
                params,
                name,
                number,
                labelling,
            )
        )
    params[name] = done if isinstance(params[name], list | tuple) else done[0]


def _encode_separate_eval_arrays_in_place(estimator, params, name, labelling):
    """Encode the labels of a parameter whose features are another parameter."""
    own_name = _strip_step_prefix(name)
    of_features = name.removesuffix(own_name) + _FEATURES_BY_LABELS[own_name]
    labels = params[name]
    features = params.get(of_features)
    # A tuple holds several sets.
    several = isinstance(labels, tuple) and isinstance(features, tuple)
    if features is None or (several and len(features) != len(labels)):
        # The learner raises an error that names what is missing.
        return
    pairs = (
        list(zip(features, labels, strict=True)) if several else [(features, labels)]
    )
    encoded = []
    for number, pair in enumerate(pairs):
        index = number if several else None
        encoded.append(
            _encode_eval_set_and_drop_rows(
                estimator,
                pair,
                params,
                name,
                index,
                labelling,
            )
        )
    features, labels = zip(*encoded, strict=True)
    params[of_features], params[name] = (
        (features, labels) if several else (features[0], labels[0])
    )


def _is_pair(value):
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and not isinstance(value[0], str)
    )


def _encode_eval_set_and_drop_rows(estimator, pair, params, name, number, labelling):
    """Return features and labels of one set; drop the same rows of what belongs to it."""
    X, y = pair
    own_name = _strip_step_prefix(name)
    _, codes = read_labels(y, classes=labelling.classes, input_name=name)
    rows = count_rows(X)
    check_same_length(codes, range(rows))
    # A fold may lack a class that the evaluation set has; its loss would be undefined
    # there.
    kept = np.flatnonzero(np.isin(codes, labelling.present_codes))
    if not len(kept):
        raise invalid_input(
            name,
            expected="a row of a class that the fold is trained on",
            got=f"classes {labelling.classes[np.unique(codes)][:10].tolist()} only",
            hint="Pass rows of all classes, and stratified folds",
        )
    if len(kept) < len(codes):
        X, codes = safe_split(estimator, X, codes, kept)
        for other in _ROW_PARAMETERS_BY_SET[own_name]:
            key = name.removesuffix(own_name) + other
            if params.get(key) is not None:
                params[key] = _replace_eval_set_with_kept_rows(
                    params[key], number, kept
                )
    # LightGBM 4.7 takes `eval_y` as codes.
    if labelling.is_encoded or own_name == "eval_y":
        return X, np.searchsorted(labelling.present_codes, codes)
    return X, labelling.classes[codes]


def _replace_eval_set_with_kept_rows(arrays, set_number, kept):
    """Return the arrays that belong to the sets, that of one set reduced to some rows."""
    if set_number is None or not isinstance(arrays, list | tuple | dict):
        return np.asarray(arrays)[kept]
    values = dict(arrays) if isinstance(arrays, dict) else dict(enumerate(arrays))
    if values.get(set_number) is not None:
        values[set_number] = np.asarray(values[set_number])[kept]
    return values if isinstance(arrays, dict) else type(arrays)(values.values())
