"""The contract of a recalibrator: one base class that validates, subclasses that compute.

A subclass states its `capabilities` and writes `_fit(proba, codes, weight)` and
`_make_map()`, the fitted map, or `_predict_proba(proba)`; they see clean arrays only.
Everything a user can do wrong is caught here.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from .._argument_checks import check_param_magnitudes, read_bool_with_none_as_false
from .._atomic import replace_state_after_fitting_copy
from .._blas_threads import MAX_UNTHREADED_ENTRIES, limit_blas_threads
from .._kernels._logistic import compute_platt_targets
from .._kernels._probability_floor import clip_to_floor, estimate_floor
from .._kernels._two_class_problems import iter_one_vs_rest
from .._simplex_array import get_absent_option_mask
from .._sklearn_compat import check_feature_names
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray, Self
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    check_column_labels,
    check_names_differ,
    check_same_length,
    find_columns_if_names_match,
    get_present_ordered_categories,
    has_unsorted_classes,
    raise_if_single_column_class_unclear,
    read_labels,
    read_proba,
    reorder_columns_if_names_match,
    validate_soft_labels,
    warn_column_order,
)
from .._warnings import emit_warning, warn_calibration
from ..exceptions import invalid_input
from ..maps import CalibrationMap, Floor, OneVsRest, make_chain
from ._device_map import make_device_predictor
from ._harm_checks import (
    find_negative_rank_correlation,
    warn_absent_classes,
    warn_constant_scores,
    warn_decreasing_scores,
)
from ._threshold import ScoreKind, find_threshold_or_threshold_list

# Entries of the rows that stand for absent classes.
MAX_ABSENT_CLASS_ENTRIES = 20_000_000


def split_rows_among_absent_classes(
    proba: FloatArray, codes: IntArray, weight: FloatArray, absent: IntArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return rows in which classes without a label are as frequent as predicted.

    Each row comes once with its label, and once with each absent class, weighted by
    that class's probability: the map learns from the labels how the other classes share
    the rest. Of many rows and classes only some rows stand for the absent ones.
    """
    chance = np.asarray(proba)[:, absent]
    # With many absent classes every `step`-th row stands for its neighbours, with a
    # weight that makes up for them.
    step = max(1, -(-chance.size * proba.shape[1] // MAX_ABSENT_CLASS_ENTRIES))
    some = np.zeros_like(chance)
    some[::step] = chance[::step] * step
    mass = weight[:, None] * np.column_stack([1 - chance.sum(axis=1), some])
    labels = np.column_stack([codes, np.tile(absent, (len(codes), 1))])
    rows, columns = np.nonzero(mass > 0)
    return proba[rows], labels[rows, columns], mass[rows, columns]


@dataclass(frozen=True)
class Capabilities:
    """The properties that a recalibrator declares, such as the number of classes it handles.

    Parameters
    ----------
    multiclass : {"native", "one-vs-rest"}
        How more than two classes are handled: by the method, or by the base class,
        which fits one copy per class and divides the rows by their sums.
    monotone : bool
        For two classes the result is a monotone function of the score.
    increasing : bool
        For two classes the result never falls as the score rises, so that scores
        which fall with the outcome are lost: `Recalibrator.fit` then warns. If the
        method has a parameter ``monotone``, only if that is true.
    continuous : bool
        For two classes the result is a continuous function of the score, by default
        parameters.
    nonparametric_shape : bool
        Comes close to a map of any shape (any monotone one, if monotone) as the
        calibration set grows.
    needs_positive_proba : bool
        Works on log-probabilities, so probabilities are raised to ``floor_``, learned
        at fit.
    order_dependent : bool
        The order of the rows matters: they are taken as they came in time, and a row of
        weight 2 is not the same as two rows.
    nonparametric : bool
        The fitted state grows with the calibration set.
    sample_weight : bool
        Uses sample weights; if not, weights that differ are rejected.
    weights : {"ratios", "rows", "counts"}
        What matters of the sample weights, by default parameters. "ratios": nothing
        else, any multiple of the weights gives the same result. "rows": also the number
        of rows. It is the sum of the weights if all are whole numbers, and Kish's
        effective number (sum w)^2 / sum w^2 if not, so that any multiple of such
        weights gives the same result. "counts": also the sum of the weights, whole
        numbers or not.
    cost : str
        Cost of a fit for n rows and k classes.
    max_classes : int or None
        More classes are rejected, since a fit would take minutes even on 2000 rows.
    allows_absent_classes : bool
        Takes rows of which each has its own options, see
        ``canonical_proba(absent="nan")``.
    array_api : bool
        Maps tensors on their device: every fitted map is made of nodes that are
        arithmetic (see `Recalibrator.predict_proba`). Others copy them to the host and
        return arrays of numpy.
    export_error : str
        Why a fitted map cannot be written as nodes, with what to do instead; empty
        if it can.
    """

    multiclass: str = "one-vs-rest"
    monotone: bool = False
    increasing: bool = False
    continuous: bool = False
    nonparametric_shape: bool = False
    needs_positive_proba: bool = False
    order_dependent: bool = False
    nonparametric: bool = False
    sample_weight: bool = True
    weights: str = "ratios"
    cost: str = "O(n k)"
    max_classes: int | None = None
    allows_absent_classes: bool = False
    array_api: bool = False
    export_error: str = ""


class Recalibrator(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Base class of the recalibrators: estimators whose features are probabilities.

    Warning: derive from it only to write a new recalibrator (see "Add a recalibrator"
    in the documentation); do not override the public methods.

    Attributes
    ----------
    floor_ : float
        Methods that take logarithms only: half the smallest positive probability of the
        calibration rows, between 1.18e-38 and 0.01. If all are multiples of 1 / N, N at
        most 1000, as the votes of a forest are, half of 1 / N. If there are exact
        zeros, values more than a thousandfold below all others, such as one 2e-14 of a
        forest, are rounding noise and not looked at. Smaller probabilities, and exact
        zeros, count as this number, at fit and at prediction, and the row is divided by
        its sum. A 0 of a forest means that none of its trees voted for the class, not
        that it is impossible. Logits have exact logarithms: they are never raised. To
        count zeros as 1.18e-38, pass ``canonical_proba(log_proba(p), kind="logits")``
        for probabilities ``p`` of several columns.
    map_ : CalibrationMap
        The fitted map, for rows whose probabilities are not below ``floor_``. It is
        made of the fitted attributes when it is first used: attributes that are changed
        by hand after a prediction change nothing. Methods that have no map reject it.
    """

    classes_: AnyArray
    n_features_in_: int
    floor_: float
    one_vs_rest_: list[Any]

    capabilities = Capabilities()
    # Absent classes get invented rows, unless these would change base rates or count as
    # rows.
    _completes_rows = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        """Take no parameters; a subclass with parameters writes its own constructor."""

    # -- what a subclass writes -------------------------------------------------------------

    @abstractmethod
    def _fit(self, proba: FloatArray, codes: IntArray, weight: FloatArray) -> None:
        """Learn from float64 arrays: simplex rows (n, k), class positions (n,), weights (n,)."""

    def _make_map(self) -> CalibrationMap:
        """Return the map of the fitted attributes, see `sklearn_calib.maps`.

        It is made once for each fit, when it is first used.
        """
        raise invalid_input(
            expected="a recalibrator that describes its map",
            got="a class without _make_map",
            hint="Write it, or declare capabilities.export_error",
            error=NotImplementedError,
        )

    def _predict_proba(self, proba: FloatArray) -> FloatArray:
        """Map (n, k) simplex rows to (n, k) simplex rows; by default with `_make_map`."""
        return self.map_(proba)

    @property
    def map_(self) -> CalibrationMap:
        """Return the fitted map, for rows whose probabilities are not below ``floor_``."""
        return self._derive_once("map", self._make_all_classes_map)

    # -- what a user calls ------------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
    ) -> Self:
        """Learn the map from scores to calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities as `canonical_proba` takes them: one column per class in the
            order of the sorted labels, or the last of `classes` alone. Columns of a
            table that are named after the classes are theirs, in any order; names of
            other kinds are remembered for `predict`. For logits pass
            ``canonical_proba(scores, kind="logits")``.
        y : array-like of shape (n_samples,)
            Labels. Only a `PriorShift` to a given mean can do without.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0. A weight of 2 equals the row given twice, 0 equals the row
            left out.
        classes : array-like of shape (n_classes,), default=None
            All classes in the order of the columns, for a calibration set that misses
            one, or columns that are not in the order of the sorted labels. It names the
            columns and moves nothing, unless the columns of a table have these names.
            Required with a single column, unless labels are 0 and 1, False and True, or
            -1 and 1; the last class is then its owner.
        soft_labels : bool, default=False
            Whether `y` holds shares of classes instead: of shape (n_samples,) the share
            of the second class, in [0, 1], or of shape (n_samples, n_classes). The same
            as each row given once per class, with the share times its weight as weight.
            Of k votes of n pass k / n and n as `sample_weight`. The classes are 0, 1,
            ..., unless `classes` names them.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            Anything `canonical_proba` rejects; labels that do not match the columns;
            indexes of pandas with different labels; soft labels outside [0, 1], or
            if the order of the rows matters (``capabilities.order_dependent``); weights that
            are negative or all zero; more classes than ``capabilities.max_classes``.
            After any error or interruption the estimator is unfitted, also if it was
            fitted before. Threads that predict during a fit see the map of before until
            it ends.

        Warns
        -----
        CalibrationWarning
            Equal rows of scores; indexes of pandas in different orders; a class without
            a row, which keeps its mean probability, as if it were as frequent as
            predicted, while the others share the rest; `classes` in an order of their
            own if the columns fit another one far better. From maps that cannot fall
            (``capabilities.increasing``): scores that fall with the outcome, by the
            rank correlation at a level of 1e-4, one-sided, divided by the number of
            classes if there are more than two.
        """
        with replace_state_after_fitting_copy(self) as new:
            new._validate_params()
            # A new dict, because a prediction fills it and sets no attribute.
            new._derived = {}
            soft_labels = read_bool_with_none_as_false(soft_labels, "soft_labels")
            # Tables that do not fit into memory are summed in passes by methods whose
            # fit is a sum over rows.
            if not soft_labels and new._try_fit_before_validation_and_get_success(
                X, y, sample_weight, classes
            ):
                return self
            rows = new._read_fit_input(
                X, y, sample_weight, classes, soft_labels=soft_labels
            )
            new.classes_ = rows.classes
            new._set_input_features(X, rows.proba, reset=True)
            new._fit_canonical(rows.proba, rows.y_encoded, rows.weight)
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Scores of the same kind as at fit. Columns of a table with the names of the
            classes, or those of the fit, may come in any order.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``; rows sum to 1 within 1e-12. A row's
            result does not depend on the other rows, up to rounding in the last digit.
            For a tensor, while scikit-learn dispatches to the array API: a tensor on
            its device, in its float32 or float64, if ``capabilities.array_api``.
        """
        self = self._make_view_unaffected_by_fits()
        if (
            not isinstance(X, np.ndarray)
            and (on_device := make_device_predictor(self, X)) is not None
        ):
            return on_device.compute_proba()
        proba = self._read_predict_input(X)
        # Entering the limit of threads takes longer than predicting a few rows.
        if proba.size < MAX_UNTHREADED_ENTRIES:
            return self._predict_from_canonical_proba(proba)
        with limit_blas_threads(*proba.shape):
            return self._predict_from_canonical_proba(proba)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Transform as `predict_proba` does: recalibrators chain in a `Pipeline`."""
        return self.predict_proba(X)

    def predict(self, X: ArrayLike) -> AnyArray:
        """Predict the class with the largest calibrated probability.

        The first of equals.
        """
        self = self._make_view_unaffected_by_fits()
        if (on_device := make_device_predictor(self, X)) is not None:
            return on_device.compute_labels(self.classes_)
        class_index = self.predict_proba(X).argmax(axis=1)
        return self.classes_[class_index]

    def threshold(
        self,
        target: Any,
        *,
        input: ScoreKind | None = None,
        dtype: Literal["float64", "float32"] = "float64",
    ) -> Any:
        """Compute the score from which on the calibrated probability reaches a target.

        Parameters
        ----------
        target : float in [0, 1], or array-like of shape (n_targets,)
            Calibrated probabilities of the second class.
        input : {"proba", "logits"}, default=None
            What scores are: probabilities of the second class, or log-odds, which are
            raw scores of most models. By default what the map was written for, if it
            was read from a document, else "proba".
        dtype : {"float64", "float32"}, default="float64"
            How the scores are stored that will be compared. The threshold is a number
            of that type, so that a comparison in single precision is right too.

        Returns
        -------
        threshold : Threshold, or list of them
            One for each target. For a map that rises, ``score >= threshold.score`` if
            and only if the calibrated probability is at least the target; for one that
            falls ``score <= threshold.score``; `Threshold.intervals` for others. The
            left end of a flat piece; `Threshold.score` is None for a target outside the
            range of the map.

        Raises
        ------
        ValueError
            More than two classes; a target outside [0, 1]; `AdaptiveCalibration`, which
            has no finite form: take the threshold of a table, ``to_dict(fitted,
            tabulate=1e-6)``.

        Notes
        -----
        The map is evaluated, and not inverted by a formula: halving the range of all
        numbers of the type finds two neighbours of which one reaches the target and the
        other does not, in at most 64 evaluations of all targets at once. So the rule
        holds to the last bit of what `predict_proba` computes. If that arithmetic is
        not monotone in its last digits, as that of smooth curves, scores whose
        probability is within some 1e-15 of the target may be on the other side.

        Methods that round scores to 36 bits may take those whose log-odds are within
        the last digit of such a border to either side.

        A ``Pipeline`` of recalibrators, which is scikit-learn's, has no such method; as
        a map it has one: ``from_dict(to_dict(pipeline)).threshold(target)`` of
        `sklearn_calib.export`.

        Maps that turn are cut at their knots and stationary points first. Of sums of
        curves that rise and fall (some maps of "auto") these points are searched for on
        a grid of thousands of scores: a turn between two scores of it is not seen.

        Examples
        --------
        >>> from sklearn_calib.recalibrators import PlattScaling
        >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> found = fitted.threshold(0.5)
        >>> found.side, round(found.score, 3)
        ('>=', 0.5)
        >>> [round(t.score, 3) for t in fitted.threshold([0.3, 0.7], input="logits")]
        [-2.237, 2.237]
        """
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise invalid_input(
                expected="a map for two classes",
                got=f"{len(self.classes_)} classes, whose probabilities no single score decides",
                hint=(
                    "Fit one map for the class that is asked for, fit(proba[:, c], y == c), "
                    "and take its threshold"
                ),
            )
        return find_threshold_or_threshold_list(
            lambda rows: self._predict_from_canonical_proba(rows)[:, 1],
            target,
            input=input or self._get_default_score_kind(),
            dtype=dtype,
            floor=self.floor_ if self.capabilities.needs_positive_proba else None,
            turning_map=self._make_map_if_nonmonotone,
        )

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Return names of the columns of `transform`: the lowercase class name and the label."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.asarray(
            [f"{prefix}_{label}" for label in self.classes_], dtype=object
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.classifier_tags.multi_class = True
        tags.array_api_support = self.capabilities.array_api
        return tags

    # -- the machinery ------------------------------------------------------------------------

    def _validate_params(self):
        validate_params(self)

    def _try_fit_before_validation_and_get_success(self, X, y, sample_weight, classes):
        """Fit to scores that are not to be read as a whole; return whether that was done."""
        return False

    def _fit_validated(
        self,
        proba,
        y_encoded,
        classes,
        sample_weight=None,
        groups=None,
        category_order=None,
    ):
        """Fit an unfitted copy to canonical scores and encoded labels, which are not checked again.

        See `fit_validated` for the arguments. Methods whose `fit` takes groups override
        it.
        """
        self._validate_params()
        self._derived = {}
        rows = make_fit_input(
            proba,
            y_encoded,
            sample_weight,
            classes,
            category_order,
            has_weights=self.capabilities.sample_weight,
        )
        self._check_and_prepare_for_fit_rows(rows)
        self.classes_ = classes
        self.n_features_in_ = proba.shape[1]
        self._fit_canonical(rows.proba, rows.y_encoded, rows.weight)
        return self

    def _fit_canonical(self, proba, y_encoded, weight):
        """Learn from validated rows of positive weight."""
        warn_constant_scores(self, proba)
        if self.capabilities.needs_positive_proba:
            self.floor_ = estimate_floor(proba)
            proba = clip_to_floor(proba, self.floor_)
        learned = proba
        labels = y_encoded
        masses = weight
        absent = np.flatnonzero(
            np.bincount(y_encoded, minlength=len(self.classes_)) == 0
        )
        # A mean that the caller gives replaces the labels as the frequency of each
        # class.
        if len(absent) and vars(self).get("mean") is None:
            warn_absent_classes(self, absent)
            if self._completes_rows:
                learned, labels, masses = split_rows_among_absent_classes(
                    proba, y_encoded, weight, absent
                )
        with limit_blas_threads(*proba.shape):
            if proba.shape[1] > 2 and self.capabilities.multiclass != "native":
                self._fit_one_vs_rest(learned, labels, masses)
                return
            if self._is_always_increasing():
                # An increasing map of scores that fall with the outcome can only be
                # constant; users mostly have the wrong column.
                correlation = self._find_negative_rank_correlation_if_any(
                    proba, y_encoded, weight
                )
                if correlation is not None:
                    warn_decreasing_scores(self, {"": correlation})
            self._fit(learned, labels, masses)

    def __getstate__(self) -> Any:
        """Return the state without what follows from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_derived"}

    def _get_default_score_kind(self) -> ScoreKind:
        return "proba"

    def _derive_once(self, name, compute):
        """Return what follows from the fitted attributes, computed once for each fit."""
        derived = vars(self).setdefault("_derived", {})
        if name not in derived:
            derived[name] = compute()
        return derived[name]

    def _make_all_classes_map(self):
        """Return the map of all classes: of a method for two classes, one against the rest."""
        fitted_copies = getattr(self, "one_vs_rest_", None)
        if fitted_copies is None:
            return self._make_map()
        return OneVsRest(parts=[class_map._make_map() for class_map in fitted_copies])

    def _make_map_with_floor_or_raise(self):
        """Return the map of rows as they are given, or reject predictions that are not a map."""
        if not self._has_map_matching_predictions():
            Recalibrator._make_map(self)
        if not self.capabilities.needs_positive_proba:
            return self.map_
        return make_chain(Floor(floor=self.floor_), self.map_)

    @classmethod
    def _has_map_matching_predictions(cls):
        """Return whether no class overrides predictions below the one that makes the map."""
        # A subclass that overrides `_predict_proba` below the class that defines the
        # map no longer predicts by that map.
        for base in cls.__mro__:
            if "_make_map" in vars(base):
                return base is not Recalibrator
            if "_predict_proba" in vars(base):
                return False
        return False

    def _predicts_by_map(self) -> bool:
        """Return whether predictions are those of the map."""
        return type(self)._predict_proba is Recalibrator._predict_proba

    def _make_map_if_nonmonotone(self):
        """Return a map of two classes that may turn, None if it only rises or only falls."""
        if self.capabilities.monotone and getattr(self, "monotone", True):
            return None
        return self._make_map_with_floor_or_raise()

    def _make_view_unaffected_by_fits(self) -> Self:
        """Return this object as it is now, unaffected by fits in other threads."""
        # `replace_state_after_fitting_copy` replaces the attribute dictionary at the
        # end of a fit; a view keeps the dictionary of before.
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        return view

    def _read_fit_input(
        self, X, y, sample_weight, classes, *, soft_labels=False, keeps_unit=False
    ):
        """Return validated rows, and raise an error if this method cannot learn from them."""
        if soft_labels and self.capabilities.order_dependent:
            raise invalid_input(
                expected="labels of rows in their order, which this method follows",
                got="soft labels, which stand for several rows at once",
                hint="Draw a label for each row, or take a method such as 'platt'",
            )
        rows = validate_fit_input(
            X,
            y,
            sample_weight,
            classes,
            soft_labels=soft_labels,
            keeps_unit=keeps_unit,
            has_weights=self.capabilities.sample_weight,
        )
        self._check_and_prepare_for_fit_rows(rows)
        return rows

    def _check_and_prepare_for_fit_rows(self, rows):
        """Raise ValueError if this method cannot learn from validated rows."""
        self._check_class_number(rows.proba, rows.classes)
        self._check_absent_classes_allowed(rows.proba)

    def _fit_and_return_same_step(self, step, proba, codes, weight):
        """Fit a step of this map, which then predicts by itself."""
        step._fit(proba, codes, weight)
        shared = ("classes_", "n_features_in_", "feature_names_in_", "floor_")
        vars(step).update(
            {name: vars(self)[name] for name in shared if name in vars(self)}
        )
        return step

    def _check_class_number(self, proba, classes):
        check_column_labels(classes, proba.shape[1])
        n_classes = len(classes)
        max_classes = self.capabilities.max_classes
        if max_classes is not None and n_classes > max_classes:
            raise invalid_input(
                expected=f"at most {max_classes} classes, with more this method takes minutes",
                got=f"{n_classes}",
                hint="Take 'structured_matrix', 'vector' or 'temperature'",
            )

    def _read_predict_input(self, X):
        """Return validated probabilities in the order of the classes."""
        # This look-up is 30 times faster than `check_is_fitted`.
        if "classes_" not in vars(self):
            check_is_fitted(self)
        proba = self._align_proba_columns(X)
        self._check_absent_classes_allowed(proba)
        self._set_input_features(X, proba, reset=False)
        return (
            clip_to_floor(proba, self.floor_)
            if self.capabilities.needs_positive_proba
            else proba
        )

    def _align_proba_columns(self, X):
        """Return probabilities in the order of the classes, or of the names at fit."""
        proba = read_proba(X, n_classes=len(self.classes_), input_name="X")
        if isinstance(X, np.ndarray):
            return proba
        return reorder_columns_if_names_match(
            proba, X, self.classes_, self._get_feature_names_in()
        )

    def _get_feature_names_in(self):
        return getattr(self, "feature_names_in_", None)

    def _check_absent_classes_allowed(self, proba):
        """Raise an error for rows without some classes if the method does not support them."""
        if (
            get_absent_option_mask(proba) is not None
            and not self.capabilities.allows_absent_classes
        ):
            raise invalid_input(
                expected="scores of all classes in every row",
                got="rows without some of them (absent='nan')",
                hint=(
                    "Take 'temperature', 'identity' or 'auto', which keep such options at 0"
                ),
            )

    def _can_map_tensors(self):
        return self.capabilities.array_api and self._has_map_matching_predictions()

    def _set_input_features(self, X, proba, *, reset):
        """Set the number and names of columns at fit, or compare them at predict."""
        single = proba.shape[1] == 2 and (np.ndim(X) == 1 or np.shape(X)[1] == 1)
        if reset:
            self.n_features_in_ = 1 if single else proba.shape[1]
        if isinstance(X, np.ndarray) and not hasattr(self, "feature_names_in_"):
            # There are no names, and none to compare them with.
            return
        if hasattr(X, "columns"):
            check_names_differ(X)
        if (
            not reset
            and find_columns_if_names_match(
                X, self.classes_, self._get_feature_names_in()
            )
            is not None
        ):
            # The columns were ordered by their names.
            return
        # One column or two columns of binary scores are both accepted at predict.
        if single == (self.n_features_in_ == 1):
            check_feature_names(self, X, reset=reset)

    def _is_always_increasing(self):
        return self.capabilities.increasing and getattr(self, "monotone", True)

    def _fit_one_vs_rest(self, proba, y_encoded, weight):
        """Fit a copy of this method to each class against the others."""
        self.one_vs_rest_ = []
        # The warnings of the fits are collected, so that each is given once for all its
        # classes.
        labels_of_message = {}
        decreasing = {}
        pairs = zip(self.classes_, iter_one_vs_rest(proba), strict=True)
        for column, (label, pair) in enumerate(pairs):
            fitted_copy = clone(self)
            is_class = (y_encoded == column).astype(np.intp)
            if self._is_always_increasing():
                # The significance level is divided among the classes.
                correlation = find_negative_rank_correlation(
                    pair, is_class, weight, proba.shape[1]
                )
                if correlation is not None:
                    decreasing[str(label)] = correlation
            # Equal warnings of several classes are given once, with the names of the
            # classes.
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted_copy._fit(pair, is_class, weight)
            for warning in caught:
                message = warning.message
                _, labels = labels_of_message.setdefault(str(message), (message, []))
                labels.append(str(label))
            self.one_vs_rest_.append(fitted_copy)
        if decreasing:
            warn_decreasing_scores(self, decreasing)
        for message, labels in labels_of_message.values():
            names = f"{', '.join(labels[:5])}{', ...' if len(labels) > 5 else ''}"
            emit_warning(message, f"(One-vs-rest, classes {names}.)")

    def _find_negative_rank_correlation_if_any(self, proba, y_encoded, weight):
        """Return the rank correlation of scores that fall with the outcome, or None."""
        return find_negative_rank_correlation(proba, y_encoded, weight)

    def _predict_from_canonical_proba(self, proba):
        if self._predicts_by_map():
            return self.map_(proba)
        fitted_copies = getattr(self, "one_vs_rest_", None)
        if fitted_copies is None:
            return self._predict_proba(proba)
        return combine_one_vs_rest(
            fitted_copies, proba, lambda fitted, pair: fitted._predict_proba(pair)
        )


def validate_params(estimator: BaseEstimator) -> None:
    """Raise an error if a parameter breaks its constraints or is of an extreme size."""
    cls: Any = type(estimator)
    names = _get_parameter_names(cls)
    params = {name: getattr(estimator, name) for name in names}
    check_param_magnitudes(params)
    constraints = estimator._parameter_constraints
    validate_parameter_constraints(constraints, params, cls.__name__)


@cache
def _get_parameter_names(cls):
    """Return the names of the parameters, which take scikit-learn a while to find."""
    return cls._get_param_names()


class FitInput(NamedTuple):
    """Hold the validated rows of a fit that have a weight."""

    proba: FloatArray
    y_encoded: IntArray
    weight: FloatArray
    classes: AnyArray
    # The indices of the given rows; with soft labels each of them is repeated.
    items: Any
    # The order of the categories, if the labels are an ordered Categorical.
    category_order: list[Any] | None = None
    # The columns of a table of groups that was passed beside the scores.
    group_columns: Any = None


def validate_fit_input(
    X: ArrayLike,
    y: Any,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None,
    *,
    soft_labels: bool,
    keeps_unit: bool = False,
    has_weights: bool = True,
) -> FitInput:
    """Validate the arguments of a fit; `has_weights` is whether it can use unequal weights."""
    check_and_get_common_index(y, X, sample_weight)
    proba = read_proba(X, input_name="X")
    items = None
    is_ordered = classes is not None
    if soft_labels:
        soft = validate_soft_labels(
            y, sample_weight, classes, n_rows=len(proba), scores=X, input_name="y"
        )
        items = soft.items
        proba, y, sample_weight, classes = soft.expand_scores_to_fit_arguments(proba)
    classes, y_encoded = read_labels(y, classes=classes, input_name="y")
    category_order = get_present_ordered_categories(y, classes)
    check_same_length(y_encoded, proba)
    check_column_labels(classes, proba.shape[1])
    proba = reorder_columns_if_names_match(proba, X, classes)
    if not is_ordered:
        raise_if_single_column_class_unclear(X, classes, "classes")
    return make_fit_input(
        proba,
        y_encoded,
        sample_weight,
        classes,
        category_order,
        items,
        keeps_unit=keeps_unit,
        has_weights=has_weights,
    )


def make_fit_input(
    proba: FloatArray,
    y_encoded: IntArray,
    sample_weight: ArrayLike | None,
    classes: AnyArray,
    category_order: list[Any] | None = None,
    items: IntArray | None = None,
    *,
    keeps_unit: bool = False,
    has_weights: bool = True,
) -> FitInput:
    """Return the rows that have a weight, of validated scores and labels."""
    if sample_weight is None:
        weight = np.ones(len(proba))
    else:
        weight = canonical_weight(sample_weight, len(proba), keeps_unit=keeps_unit)
    if not has_weights and not (weight == weight[0]).all():
        raise invalid_input(
            "sample_weight",
            expected="equal weights, as this method cannot use sample_weight",
            got="weights that differ",
            hint="Leave sample_weight out, or choose a method that declares it",
        )
    if sample_weight is not None and not (kept := weight > 0).all():
        items = np.flatnonzero(kept) if items is None else items[kept]
        proba = proba[kept]
        y_encoded = y_encoded[kept]
        weight = weight[kept]
    if has_unsorted_classes(classes):
        warn_column_order(proba, y_encoded, classes, "classes")
    chosen = slice(None) if items is None else items
    return FitInput(proba, y_encoded, weight, classes, chosen, category_order)


def combine_one_vs_rest(
    recalibrators: Iterable[Any],
    proba: FloatArray,
    predict_pair: Callable[[Any, FloatArray], FloatArray],
) -> FloatArray:
    """Evaluate each class against the rest, and divide the rows by their sums.

    ``predict_pair(recalibrator, pair)`` gives two columns for two columns.
    """
    pairs = zip(recalibrators, iter_one_vs_rest(proba), strict=True)
    class_proba = [predict_pair(fitted, pair)[:, 1] for fitted, pair in pairs]
    return normalise_rows(np.column_stack(class_proba), proba)


def normalise_rows(values: FloatArray, fallback: FloatArray) -> FloatArray:
    """Divide rows by their sums; rows without mass are replaced by those of `fallback`."""
    total = values.sum(axis=1, keepdims=True)
    # All maps may return 0 for a row; its own probabilities are then the only
    # information about it.
    empty = total[:, 0] <= 0
    if empty.any():
        values = np.where(empty[:, None], np.asarray(fallback), values)
        total = values.sum(axis=1, keepdims=True)
    return values / total


def smooth_targets_if_separable(
    method: str, separator_text: str, codes: IntArray, weight: FloatArray
) -> FloatArray:
    """Return the labels as targets of a logistic fit, with a finite maximum likelihood.

    `separator_text` names what divides the classes or holds all rows of one, such as "a
    threshold"; it is empty if nothing does. Then Platt's smoothed targets, with a
    warning.
    """
    if not separator_text:
        return codes.astype(float)
    warn_calibration(
        expected="classes that overlap in the score",
        got=f"classes that {separator_text} separates (the slopes would be infinite)",
        hint="Platt's smoothed targets are used; pass more rows to do without",
        estimator=method,
    )
    return compute_platt_targets(codes, weight)


def warn_if_not_converged(method: str, fit: Any) -> None:
    """Warn if a fit ended further than 1e-9 nats from the optimum."""
    if not fit.gap <= 1e-9 * max(fit.loss, 1.0):
        warn_calibration(
            expected="a loss within 1e-9 nats of the smallest one",
            got=f"one that may be {fit.gap:.1g} above it",
            hint="Rescale scores or weights of extremely different sizes",
            estimator=method,
        )


def make_two_columns(second: FloatArray) -> FloatArray:
    """Return P(second class) as an array of two columns."""
    return np.column_stack([1.0 - second, second])
