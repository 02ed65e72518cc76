"""Additive explanations of a score, carried to the scale of the calibrated probability."""

import copy
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._simplex import carries_log, log_proba
from .._typing import AnyArray, ArrayLike, Estimator, FloatArray
from ..canonical import align_columns, canonical_proba, check_indexes, read_numbers
from ..exceptions import check_known, equals, named, refuse
from ._pairs import CalibratedClassifier

_WHERE = "calibrated_attributions"
_SCALES = ("logit", "probability")
_INPUTS = ("logits", "proba")
NEAR = 1e-6  # log-odds: below that a difference quotient has fewer digits than the derivative
STEP = 1e-4  # of the derivative's differences, whose error is of its square
ROUNDING = 1e-6  # of attributions in single precision


def calibrated_attributions(
    values: Any,
    base: ArrayLike | None,
    model_or_map: Estimator,
    scale: Literal["logit", "probability"] = "logit",
    *,
    input: Literal["logits", "proba"] = "logits",
    pos_label: object = None,
) -> Any:
    """Explain calibrated probabilities by the attributions of the scores behind them.

    Attributions add up to a row's score: SHAP values, ``pred_contrib`` of LightGBM and XGBoost, the
    terms of a linear model. Calibration bends the score, so that they add up to the calibrated
    probability no more. These do, in its log-odds or in probability.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_features), (n_features,) or \
(n_samples, n_features, 2), or an explanation
        Attributions of each row; one row; or those of both classes, as for forests. Or an object
        with ``values`` and ``base_values``, such as ``shap.Explanation``.
    base : float or array-like of shape (n_samples,), (2,) or (n_samples, 2)
        The score that attributions start from, ``expected_value`` of shap, the last column of
        ``pred_contrib``; with one value per class for values of both classes. None for an
        explanation, which has its own.
    model_or_map : estimator
        A fitted `CalibratedModel`, or another of this sub-package, whose map is meant; or the map:
        a fitted recalibrator, an `ExportedMap`, a pipeline of recalibrators. For two classes.
    scale : {"logit", "probability"}, default="logit"
        What the new attributions add up to: log-odds of the calibrated probability, or itself.
    input : {"logits", "proba"}, default="logits"
        What the given ones add up to: log-odds, the raw scores of boosted trees and linear models,
        or probabilities, as of forests.
    pos_label : label, default=None
        The class whose score is explained, before and after; the second by default. Values of both
        classes come back for both.

    Returns
    -------
    values, base : ndarray, and float or ndarray
        Of the shapes of the given ones. Or, for an explanation, a copy of it that has them and is
        otherwise the same; yours is not changed.

    Raises
    ------
    ValueError
        More than two classes; a model of several pairs; values that are not finite, or of another
        shape; probabilities outside [0, 1]; with ``scale="logit"`` a calibrated probability of
        exactly 0 or 1, whose log-odds are infinite.
    TypeError
        What is no map.
    NotFittedError
        A map that is not fitted.

    Notes
    -----
    With z0 the base, z the base and the sum of a row's attributions, and h the map, an attribution
    phi becomes phi (h(z) - h(z0)) / (z - z0). It is the average of the derivative on the straight
    way from z0 to z: the attribution of Aumann and Shapley, also called integrated gradients, of h
    after the sum. Where z and z0 are closer than 1e-6, it is the derivative between them, unless h
    has a step there.

    They add up to h(z) - h(z0) to 1e-12, or some 1e-15 of the sum of their sizes where large ones
    cancel. The map is the same for all features of a row, so that their order and their shares of
    the sum remain, whatever the map; where it falls, the signs turn. In the log-odds,
    of Platt scaling and temperature scaling, it is exact: all attributions times the slope.

    Maps with steps (isotonic, bins) give nothing to rows on the step of the base, and much to rows
    just beyond it, for both is true of the map: choose one without steps for explanations. With
    several pairs, explain each estimator with its map and average the attributions of probability:
    they are those of the mean.

    Cost: two predictions for each row, and a product.

    References
    ----------
    Aumann, Shapley (1974), chapter III, for the average of the derivative on the straight way.

    Examples
    --------
    >>> from sklearn_calib.export import from_dict
    >>> from sklearn_calib.meta import calibrated_attributions
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> values, base = calibrated_attributions([[0.5, 1.5]], -1.0, fitted, "probability")
    >>> values.round(3).tolist(), round(base, 3)
    ([[0.047, 0.14]], 0.406)
    >>> total = fitted.predict_proba([0.7310585786300049])[0, 1]  # of log-odds -1 + 0.5 + 1.5
    >>> bool(abs(base + values.sum() - total) < 1e-12)
    True
    """
    check_known(_WHERE, "scale", scale, _SCALES, "Say what they should add up to")
    check_known(_WHERE, "input", input, _INPUTS, "Say what the values add up to")
    value = _Curve(model_or_map, scale, input, pos_label)
    if not (hasattr(values, "values") and hasattr(values, "base_values")):
        if base is None:
            cure = "Pass expected_value of shap, or the last column of pred_contrib as base"
            refuse(_WHERE, "the base that the attributions start from", "None", cure)
        check_indexes(_WHERE, values, base)
        return _carried(values, base, value)
    if base is not None:
        cure = "Pass None as base"
        refuse(_WHERE, "no base besides the one of an explanation", "one", cure)
    explained = copy.deepcopy(values)
    found = _carried(values.values, values.base_values, value)
    explained.values, explained.base_values = found
    return explained


class _Curve:
    """The map as a function of one number: the score of a class and its calibrated value."""

    def __init__(self, model_or_map, scale, input, pos_label):
        self.map, self.classes_of_map = _map_of(model_or_map)
        self.classes = self.classes_of_map
        if isinstance(model_or_map, CalibratedClassifier):  # values follow the estimator's order
            self.classes = self.classes[model_or_map.calibrated_pairs_[0].columns]
        self.scale, self.input = scale, input
        labels = self.classes.tolist()
        self.positive = 1
        if pos_label is not None:
            if not any(equals(pos_label, label) for label in labels):
                rule = named("pos_label") + f" among {labels}"
                refuse(_WHERE, rule, repr(pos_label), "Name a label")
            self.positive = labels.index(pos_label)

    def __call__(self, z: FloatArray) -> FloatArray:
        """The calibrated value of each score."""
        if self.input == "logits":
            rows = canonical_proba(z if self.positive else -z, kind="logits", _where=_WHERE)
        else:
            pair = np.column_stack([1 - z, z] if self.positive else [z, 1 - z])
            rows = canonical_proba(pair, _where=_WHERE)
        rows = align_columns(rows, self.classes, self.classes_of_map, _WHERE)
        proba = self.map.predict_proba(rows)
        proba = align_columns(proba, self.map.classes_, self.classes, _WHERE)
        p = np.asarray(proba, dtype=np.float64)
        if self.scale == "probability":
            return p[:, self.positive]
        if carries_log(proba):
            log = log_proba(proba)
        else:
            self._check_inside(p, z)
            log = np.log(p)
        return log[:, self.positive] - log[:, 1 - self.positive]

    def _check_inside(self, p, z):
        at_end = (p <= 0).any(axis=1)
        if at_end.any():
            row = int(at_end.argmax())
            end = f"{p[row, self.positive]:g} at the score {z[row]:.6g}"
            refuse(
                _WHERE,
                "calibrated probabilities strictly between 0 and 1, whose log-odds are finite",
                f"{end}, one of {at_end.sum()} such scores",
                "Pass scale='probability', or a map that reaches neither end, such as 'platt'",
            )

    def slope(self, z: FloatArray) -> FloatArray:
        """The derivative; beside a step that of the smoother side."""
        if self.input == "logits":
            low, high = z - STEP, z + STEP
        else:
            step = STEP * np.maximum(np.minimum(z, 1 - z), ROUNDING)
            low, high = np.maximum(z - step, 0), np.minimum(z + step, 1)
        at, below, above = self(z), self(low), self(high)
        with np.errstate(divide="ignore", invalid="ignore"):
            left, right = (at - below) / (z - low), (above - at) / (high - z)
        left, right = np.where(z > low, left, right), np.where(high > z, right, left)
        smoother = np.where(np.abs(left) < np.abs(right), left, right)
        both = (above - below) / (high - low)
        # kinks bend a curve by less than that; a step is some thousand times as steep
        return np.where(np.abs(left - right) <= 0.5 * np.abs(both), both, smoother)


def _map_of(given):
    """The map of a model, or a map, and the classes."""
    map_, classes = given, None
    if isinstance(given, CalibratedClassifier):
        check_is_fitted(given)
        pairs, classes = given.calibrated_pairs_, given.classes_
        if len(pairs) > 1:
            refuse(
                _WHERE,
                "a model with one map",
                f"{len(pairs)} pairs of estimator and map",
                "Explain each estimator of calibrated_pairs_ with its map, in probability, and "
                "average; or fit with ensemble=False",
            )
        map_ = pairs[0].recalibrator
    if isinstance(map_, type) or not hasattr(map_, "predict_proba"):
        cure = "Pass a fitted recalibrator, an ExportedMap or a CalibratedModel"
        rule = "a map of probabilities as model_or_map"
        refuse(_WHERE, rule, repr(map_)[:80], cure, error=TypeError)
    check_is_fitted(map_)
    width = getattr(map_, "n_features_in_", 2)
    classes = map_.classes_ if classes is None else classes
    several = isinstance(classes, list)
    if several or len(classes) != 2 or len(map_.classes_) != 2:
        refuse(
            _WHERE,
            "a map for two classes",
            "one for several labels" if several else f"one for {len(classes)} classes",
            "Fit one for the class that is explained: fit(proba[:, c], y == c)",
        )
    if width > 2:
        refuse(
            _WHERE,
            "a map of probabilities as model_or_map",
            f"{type(map_).__name__} of {width} features",
            "Pass the recalibrator of its probabilities, or a CalibratedModel with it inside",
            error=TypeError,
        )
    return map_, np.asarray(classes)


def _carried(values: Any, base: Any, value: _Curve) -> tuple[FloatArray, Any]:
    """Attributions and base on the calibrated scale, of the shapes that they had."""
    given = _finite(values, "values")
    start = _finite(base, "base")
    if given.ndim == 3:
        return _of_both_classes(given, start, value)
    n = len(given) if given.ndim == 2 else 1
    shapes = [(), (1,)] + [(n,)] * (given.ndim == 2)
    if given.ndim not in (1, 2) or not given.size or start.shape not in shapes:
        refuse(
            _WHERE,
            "values of shape (n_samples, n_features), with one base or one for each row",
            f"shapes {given.shape} and {start.shape}",
            "Leave the column of the base out of the values: contrib[:, :-1], contrib[:, -1]",
        )
    phi = given.reshape(n, -1)
    total = phi.sum(axis=1)
    z0 = _inside(np.broadcast_to(start, n), value)
    z = _inside(z0 + total, value)
    first = value(z0 if start.shape == (n,) else z0[:1])
    change = value(z) - first
    out = phi * _secant(value, z0, z, total, change)[:, None]
    new_base = first.reshape(start.shape)
    return out.reshape(given.shape), new_base if start.ndim else float(new_base)


def _secant(value, z0, z, total, change):
    """What each row's attributions are multiplied by."""
    unit = 1.0 if value.input == "logits" else np.maximum(np.minimum(z0, 1 - z0), ROUNDING)
    near = np.abs(total) < NEAR * unit
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = change / total
    if near.any():
        middle = (z0 + z)[near] / 2  # of two probabilities another one
        slope = value.slope(middle)
        # a step between the two is in no derivative
        right = np.abs(slope * total[near] - change[near]) <= 1e-12
        ratio[near] = np.where(right | (total[near] == 0), slope, ratio[near])
    return ratio


def _of_both_classes(given, start, value):
    """Values of shape (n, d, 2): those of one class are the others' with the other sign."""
    n, way = len(given), "Pass the values of one class, values[..., 1], with its base"
    if given.shape[2] != 2 or start.shape not in ((2,), (n, 2)) or not given.size:
        refuse(
            _WHERE,
            "values of shape (n_samples, n_features, 2), with a base for each class",
            f"shapes {given.shape} and {start.shape}",
            "Stack a list with numpy.stack(values, axis=-1); reshape interactions to one row of "
            "numbers for each sample",
        )
    whole = float(value.input == "proba")
    size = np.abs(given).max() + np.abs(start).max()
    off = np.abs(given.sum(axis=-1)).max(), np.abs(start.sum(axis=-1) - whole).max()
    if max(off) > ROUNDING * size:
        refuse(
            _WHERE,
            f"values of both classes that add up to 0, and bases to {whole:g}",
            f"sums up to {off[0]:.3g} and {off[1]:.3g} off",
            f"{way}; of logits of each class values[..., 1] - values[..., 0]; of probabilities "
            "write input='proba'",
        )
    at = value.positive
    found, base = _carried(given[..., at], start[..., at], value)
    other = (1.0 if value.scale == "probability" else 0.0) - base
    order = slice(None, None, 1 if at else -1)
    return (
        np.stack([-found, found][order], axis=-1),
        np.stack(np.broadcast_arrays(*[other, base][order]), axis=-1),
    )


def _inside(z, value):
    """Scores; probabilities that rounding moved out of [0, 1] moved back."""
    if value.input == "logits":
        return z
    beyond = np.maximum(z - 1, -z)
    if beyond.max() > ROUNDING:
        row, rule = int(beyond.argmax()), "base and values that add up to 0 to 1"
        cure = "Pass input='logits', if they are log-odds; of probabilities give the right base"
        refuse(_WHERE, rule, f"{z[row]:.6g}", cure, row=row)
    return np.clip(z, 0, 1)


def _finite(numbers: Any, what: str) -> AnyArray:
    table = read_numbers(numbers, what, _WHERE).astype(np.float64)
    bad = ~np.isfinite(table)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        cure = "Explain these rows again, or leave them out"
        refuse(_WHERE, f"finite numbers as {what}", f"{table[place]} at {place}", cure)
    return table
