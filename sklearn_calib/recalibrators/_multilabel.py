"""Recalibration of many labels per row, rare ones with the help of the others."""

from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._atomic import replace_state_after_fitting_copy
from .._count_weights import are_counts
from .._kernels._log_odds import compute_map_input
from .._kernels._probability_floor import clip_to_floor
from .._kernels._ridge_logistic_groups import (
    COMMON_LINE_PENALTY,
    DEFAULT_PENALTIES,
    MultilabelRidgeInput,
    choose_shrunken_lines,
)
from .._simplex_array import stack_proba_rows
from .._sklearn_compat import check_feature_names
from .._typing import AnyArray, ArrayLike, FloatArray, RecalibratorLike, Self
from .._validation import (
    BINARY_CLASSES,
    canonical_weight,
    check_and_get_common_index,
    find_columns_if_names_match,
    find_known_rows,
    read_label_names_proba_and_table,
    read_label_scores,
)
from .._warnings import ignore_calibration_warnings, warn_calibration
from ..exceptions import invalid_input
from ._any_recalibrator import (
    fit_validated,
    predict_proba_aligned,
    resolve_recalibrator,
)
from ._base import validate_params
from ._identity import Identity
from ._platt import PlattScaling


class MultilabelCalibration(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Recalibrate many labels per row, such as the genres of a film; rare labels borrow from all.

    Each label is a two-class problem of its own, and rows need not sum to 1. A rare
    label has few rows to learn a map from: by default its slope and intercept are drawn
    towards those of all labels together, as far as leave-one-out suggests.

    Parameters
    ----------
    recalibrator : str or recalibrator, default="platt"
        The two-class method: a registered name, or anything with fit and predict_proba.
    pooling : {"none", "all", "shrink"}, default="shrink"
        "none": one map for each label by itself. "all": one map for all labels, fitted
        to all pairs of a row and a label. "shrink": one line on the log-odds for each
        label, drawn to the common one; for "platt" only.
    shrinkage : "auto" or float >= 0, default="auto"
        For "shrink", tau in the penalty tau/2 ((a_l - a)^2 + s^2 (b_l - b)^2) of label
        l, with log-odds a_l + b_l z at the score z, (a, b) the line of all labels, and
        s the standard deviation of all scores. 0: no shrinkage. Infinity: the common
        line. "auto": the one of 0.1, 1, 10, 100 and infinity with the least approximate
        leave-one-out log loss.

    Attributes
    ----------
    recalibrators_ : list of length n_labels
        The fitted map of each label; with pooling "all" the same one each time.
    pooled_ : recalibrator
        With pooling "all" or "shrink": the map of all labels together.
    shrinkage_ : float
        With pooling "shrink".
    leave_one_out_ : dict of float to float
        With shrinkage "auto": the log loss, in nats per known label, of each shrinkage.
    n_features_in_ : int
        The number of labels.
    classes_ : list of ndarray of shape (2,)
        0 and 1 for each label.

    Warns
    -----
    CalibrationWarning
        A label that only one class, or no row, is known of. With pooling "none" its
        probabilities stay as they are; else a label without any row gets the map of all
        labels.

    Notes
    -----
    A label that is NaN counts nothing for its label; a row's other labels count.
    "shrink" fits the labels as they are, without Platt's smoothed targets, which would
    move rare labels up: the penalty keeps the slopes finite. With shrinkage 0 it is
    "none" with ``PlattScaling(smooth_targets=False)``, with infinity "all". Leaving out
    a row leaves out all of its labels, also of the common line. Sample weights count
    rows: their sum matters. Cost of "shrink": five fits of O(n_samples n_labels).

    References
    ----------
    Morris (1983), "Parametric empirical Bayes inference: theory and applications", for
    drawing many small estimates towards their mean. Rad, Maleki (2020), "A scalable
    estimate of the out-of-sample prediction error via approximate leave-one-out
    cross-validation".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.recalibrators import MultilabelCalibration
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.beta(1, [1, 3, 30], size=(500, 3))  # three labels, the last one rare
    >>> Y = (rng.random(truth.shape) < truth).astype(float)
    >>> Y[0, 2] = np.nan  # nobody knows
    >>> proba = truth**2 / (truth**2 + (1 - truth) ** 2)  # overconfident
    >>> model = MultilabelCalibration().fit(proba, Y)
    >>> model.predict_proba(proba).shape
    (500, 3)
    >>> [round(line.slope_, 1) for line in model.recalibrators_]
    [0.4, 0.4, 0.4]
    """

    recalibrators_: list[Any]
    pooled_: Any
    shrinkage_: float
    leave_one_out_: dict[float, float]
    classes_: list[AnyArray]
    n_features_in_: int

    _parameter_constraints: ClassVar = {
        "recalibrator": "no_validation",
        "pooling": [StrOptions({"none", "all", "shrink"})],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both")],
    }

    def __init__(
        self,
        recalibrator: RecalibratorLike = "platt",
        pooling: Literal["none", "all", "shrink"] = "shrink",
        *,
        shrinkage: Literal["auto"] | float = "auto",
    ) -> None:
        self.recalibrator = recalibrator
        self.pooling = pooling
        self.shrinkage = shrinkage

    def fit(
        self,
        X: ArrayLike | list[Any],
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the maps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_labels), or list of n_labels array-likes
            The probability of each label; or for each label an array of shape
            (n_samples, 2), as ``MultiOutputClassifier.predict_proba`` returns them. For
            logits pass a list of ``canonical_proba(column, kind="logits")``.
        y : array-like or sparse matrix of shape (n_samples, n_labels)
            1 if a row has the label, 0 if not, NaN if unknown.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0. A weight of 2 equals the row given twice.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            Scores that are not probabilities; labels other than 0, 1 and NaN, of
            another shape than the scores, or all NaN; bad weights; "shrink" with
            another method than Platt scaling. After any error the estimator is
            unfitted.
        """
        with replace_state_after_fitting_copy(self) as new:
            validate_params(new)
            method = new._resolve_recalibrator()
            check_and_get_common_index(y, X, sample_weight)
            names, pairs, table = read_label_names_proba_and_table(
                y,
                X,
                None,
                label_name="y",
                input_name="X",
            )
            weight = canonical_weight(sample_weight, len(table))
            new._fit_labels_and_set_attributes(
                _MultilabelInput(pairs, table, weight, names), method
            )
            check_feature_names(new, X, reset=True)
        return self

    def _fit_validated_labels(self, pairs, table, sample_weight=None):
        """Fit an unfitted copy to canonical scores and a table of labels, not checked again."""
        validate_params(self)
        weight = canonical_weight(sample_weight, len(table))
        names = list(range(len(pairs)))
        self._fit_labels_and_set_attributes(
            _MultilabelInput(pairs, table, weight, names), self._resolve_recalibrator()
        )
        return self

    def _fit_labels_and_set_attributes(self, data, method):
        if self.pooling == "none":
            self._fit_labels_separately(data, method)
        elif self.pooling == "all":
            self._fit_one_map_to_all_labels(data, method)
        else:
            self._fit_shrunken(data, method)
        self.classes_ = [BINARY_CLASSES.copy() for _ in data.pairs]
        self.n_features_in_ = len(data.pairs)
        self._names = data.names

    def predict_proba(self, X: ArrayLike | list[Any]) -> FloatArray | list[FloatArray]:
        """Predict calibrated probabilities in the form of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_labels), or list of n_labels array-likes
            As at fit; either form is fine.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_labels), or list of ndarray of shape
        (n_samples, 2)
        """
        scores = self._read_predict_input(X)
        return scores.match_form(self._recalibrate_pairs(scores))

    def transform(self, X: ArrayLike | list[Any]) -> FloatArray | list[FloatArray]:
        """Transform as `predict_proba` does."""
        return self.predict_proba(X)

    def predict(self, X: ArrayLike | list[Any]) -> AnyArray:
        """Predict 1 for each label with a calibrated probability above 1/2, else 0."""
        scores = self._read_predict_input(X)
        pairs = self._recalibrate_pairs(scores)
        return np.column_stack([pair[:, 1] > pair[:, 0] for pair in pairs]).astype(
            np.intp
        )

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Return names of the columns of `transform`: lowercase class name and label number."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.asarray(
            [f"{prefix}{i}" for i in range(self.n_features_in_)], dtype=object
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    # -- the three poolings -------------------------------------------------------------------

    def _fit_labels_separately(self, data, method) -> None:
        """Fit a method to each label; labels of one kind keep their probabilities."""
        self.recalibrators_ = []
        lost = []
        for label in range(len(data.pairs)):
            fitted = data.fit_copy_to_labels_unless_constant(method, [label])
            if fitted is None:
                lost.append(data.names[label])
                fitted = data.fit_identity(label)
            self.recalibrators_.append(fitted)
        if lost:
            warn_calibration(
                expected="rows with the label and rows without it, for each label",
                got=f"one kind or none for {_format_first_label_names(lost)}",
                hint=(
                    "The probabilities of these labels stay as they are; pooling='shrink' "
                    "learns from the other labels"
                ),
                estimator=self,
            )

    def _fit_one_map_to_all_labels(self, data, method):
        """Fit one method to the rows of all labels."""
        labels = range(len(data.pairs))
        self.pooled_ = data.fit_copy_to_labels_unless_constant(method, labels)
        if self.pooled_ is None:
            warn_calibration(
                expected="some label that is 0 in some rows and 1 in others",
                got="known labels that are all equal",
                hint="All probabilities stay as they are",
                estimator=self,
            )
            self.pooled_ = data.fit_identity(0)
        self.recalibrators_ = [self.pooled_] * len(labels)
        unknown = [
            data.names[i] for i in labels if not len(data.find_fit_row_indices(i))
        ]
        if unknown:
            warn_calibration(
                expected="a row whose label is known, for each label",
                got=f"none for {_format_first_label_names(unknown)}",
                hint="The map of all labels together is used for these",
                estimator=self,
            )

    def _fit_shrunken(self, data, method):
        """Fit a line to each label, shrunk towards the line of all labels."""
        # Platt's targets depend on the class sizes of each label; the lines that are
        # shrunk must have the same targets.
        method.set_params(smooth_targets=False)
        self._fit_one_map_to_all_labels(data, method)
        tau = self.shrinkage
        if isinstance(self.pooled_, Identity) or tau == COMMON_LINE_PENALTY:
            self.shrinkage_ = COMMON_LINE_PENALTY
        elif tau == 0:
            self.shrinkage_ = 0.0
            self._fit_labels_separately(data, method)
        else:
            fit = choose_shrunken_lines(
                data.make_platt_label_columns(self.pooled_),
                [self.pooled_.intercept_, self.pooled_.slope_],
                DEFAULT_PENALTIES if tau == "auto" else [float(tau)],
            )
            self.shrinkage_ = fit.penalty
            if tau == "auto":
                self.leave_one_out_ = fit.loss_by_penalty
            self.recalibrators_ = [
                self._make_line(*line) for line in fit.lines.tolist()
            ]

    def _make_line(self, intercept, slope):
        """Copy the pooled map with another line."""
        line = clone(self.pooled_)
        for name in ("classes_", "n_features_in_", "floor_"):
            setattr(line, name, getattr(self.pooled_, name))
        # A clone has only parameters; the attributes of a fit are set by hand.
        line.intercept_ = intercept
        line.slope_ = slope
        return line

    # -- the machinery ------------------------------------------------------------------------

    def _resolve_recalibrator(self):
        """Return the method for each label, and raise an error if it cannot be shrunk."""
        method = resolve_recalibrator(self.recalibrator)
        if self.pooling == "shrink" and not (
            isinstance(method, PlattScaling) and method.prior_weight == 0
        ):
            raise invalid_input(
                expected=(
                    "recalibrator='platt' or a PlattScaling with prior_weight=0 for "
                    "pooling='shrink'"
                ),
                got=repr(self.recalibrator),
                hint="Choose pooling='none' or 'all'",
            )
        return method

    def _read_predict_input(self, X):
        check_is_fitted(self)
        scores = read_label_scores(X, self.n_features_in_, input_name="X")
        fitted = getattr(self, "feature_names_in_", None)
        if find_columns_if_names_match(X, fitted) is None:
            check_feature_names(self, X, reset=False)
        return scores.order_pairs_like_score_columns(
            X, vars(self).get("_names"), fitted
        )

    def _recalibrate_pairs(self, scores):
        label_pairs = zip(self.recalibrators_, scores.pairs, strict=True)
        return [
            predict_proba_aligned(recalibrator, pair, BINARY_CLASSES)
            for recalibrator, pair in label_pairs
        ]


class _MultilabelInput(NamedTuple):
    """Hold the validated arguments of a fit."""

    pairs: list[FloatArray]
    table: FloatArray
    weight: FloatArray
    names: list[object]

    def find_fit_row_indices(self, label):
        """Return the rows that count for a label."""
        labelled = find_known_rows(self.table, label)
        return labelled[self.weight[labelled] > 0]

    def fit_copy_to_labels_unless_constant(self, method, labels):
        """Return a copy of a method fitted to some labels together; None if all rows agree."""
        outcomes = []
        pairs = []
        weights = []
        for label in labels:
            rows = self.find_fit_row_indices(label)
            outcomes.append(self.table[rows, label])
            pairs.append(self.pairs[label][rows])
            weights.append(self.weight[rows])
        y_encoded = np.concatenate(outcomes).astype(np.intp)
        # A fit needs rows of both kinds.
        if len(np.unique(y_encoded)) < 2:
            return None
        return fit_validated(
            clone(method),
            stack_proba_rows(pairs),
            y_encoded,
            BINARY_CLASSES,
            sample_weight=np.concatenate(weights),
        )

    def fit_identity(self, label):
        pair = self.pairs[label]
        # The identity learns nothing, so warnings about the data do not apply.
        with ignore_calibration_warnings():
            return Identity().fit(
                pair, np.zeros(len(pair), np.intp), classes=BINARY_CLASSES
            )

    def make_platt_label_columns(self, platt) -> MultilabelRidgeInput:
        """Return what the kernel takes, with the scores that a Platt scaling gives these pairs."""
        is_known = ~np.isnan(self.table)
        # Leaving a row out removes one of its copies if the weight is a count, else the
        # whole row.
        unit = np.minimum(self.weight, 1.0) if are_counts(self.weight) else self.weight
        scores = []
        for pair in self.pairs:
            clipped = clip_to_floor(pair, platt.floor_)
            scores.append(compute_map_input(clipped, platt.scale))
        return MultilabelRidgeInput(
            np.column_stack(scores),
            np.where(is_known, self.table, 0.0),
            is_known * self.weight[:, None],
            is_known * unit[:, None],
        )


def fit_validated_labels(
    recalibrator: MultilabelCalibration,
    score_pairs: list[FloatArray],
    label_table: FloatArray,
    **params: Any,
) -> MultilabelCalibration:
    """Fit an unfitted copy in place to canonical scores and a table of 0, 1 and NaN.

    The weights are all that its own fit has beside these; other parameters are those of
    a subclass.
    """
    if type(recalibrator).fit is MultilabelCalibration.fit and set(params) <= {
        "sample_weight"
    }:
        return recalibrator._fit_validated_labels(score_pairs, label_table, **params)
    return recalibrator.fit(score_pairs, label_table, **params)


def _format_first_label_names(names):
    shown = ", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else "")
    return f"labels {shown}" if len(names) > 1 else f"label {shown}"
