"""The context of a fit to many labels per row, and the scores of classifiers of many labels."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import get_tags, indexable

from .._argument_checks import is_scalar_equal
from .._simplex_array import stack_proba_rows, take_columns_or_zeros
from .._typing import (
    CV,
    AnyArray,
    Estimator,
    Features,
    FloatArray,
    IntArray,
    RecalibratorLike,
    Self,
)
from .._validation import (
    BINARY_CLASSES,
    MultilabelScorePairs,
    check_and_get_common_index,
    read_label_scores,
    read_label_table,
    read_proba,
)
from ..exceptions import invalid_input
from ..recalibrators import (
    MultilabelCalibration,
    check_cv_pairs,
    fit_validated_labels,
    resolve_recalibrator,
    warn_if_harmful_for_labels,
)
from ._classifier_scores import check_gives_scores_without_logits
from ._fit_context import (
    FitContext,
    HeldOutScores,
    check_meta_classifier_params,
    get_estimator_and_add_classes_if_frozen,
    route_metadata_to_context_fields,
)


@dataclass(frozen=True, kw_only=True)
class MultilabelContext(FitContext):
    """Hold the arguments of a fit to many labels per row.

    ``y_encoded`` is a table of 0, 1 and NaN, ``columns`` marks the labels of which a
    model was trained on both kinds of rows, and scores are a list of an array of two
    columns per label.
    """

    label_kind = "many"

    @classmethod
    def from_fit_and_set_classes(
        cls,
        model: Any,
        X: Features,
        y: Any,
        sample_weight: Any,
        fit_params: dict[str, Any],
    ) -> Self:
        """Read a table of many labels and the parameters of the fit."""
        check_meta_classifier_params(model)
        n_samples, n_labels = np.shape(y)
        table = read_label_table(y, n_samples, n_labels, input_name="y")
        estimator = get_estimator_and_add_classes_if_frozen(
            model, lambda: np.arange(n_labels)
        )
        check_and_get_common_index(X, y, sample_weight, fit_params.get("groups"))
        X, table = indexable(X, table)
        model.classes_ = [BINARY_CLASSES.copy() for _ in range(n_labels)]
        return cls(
            X=X,
            y_encoded=table,
            classes=model.classes_,
            estimator=estimator,
            recalibrator=_resolve_multilabel_recalibrator(model.recalibrator),
            response_method=model.response_method,
            **route_metadata_to_context_fields(
                model, sample_weight, fit_params, n_samples
            ),
        )

    @property
    def all_columns(self) -> AnyArray:
        return np.ones(len(self.classes), dtype=bool)

    def make_folds(self, cv: CV) -> list[Any]:
        """Return folds of (train, test) positions."""
        # An int means shuffled rows, since no splitter stratifies by many labels.
        if cv is None or isinstance(cv, Integral):
            n_folds = 5 if cv is None else int(cv)
            if self.groups is None:
                cv = KFold(n_folds, shuffle=True, random_state=0)
            else:
                cv = GroupKFold(n_folds)
        folds = list(
            check_cv(cv).split(self.X, self.y_encoded, **self.prepare_splitter_params())
        )
        check_cv_pairs(folds)
        return folds

    def _fit_and_get_learned_columns(self, fit, estimator, X, y, params):
        """Fit a model to a table of labels; return which labels it has seen both kinds of."""
        try:
            # Integers, unless unknown labels need NaN: scikit-learn does not accept
            # floats as labels.
            fit(X, y if np.isnan(y).any() else y.astype(np.intp), **params)
        except ValueError as error:
            _raise_if_not_multilabel_estimator(error, estimator)
            raise
        # A model that was trained on one kind of rows has no information about the
        # label.
        return (y == 0).any(axis=0) & (y == 1).any(axis=0)

    def get_test_rows_and_learned_labels(
        self, columns: AnyArray, test: IntArray
    ) -> tuple[IntArray, AnyArray]:
        rows = self.all_rows[test]
        # Labels that the fold's model has not learned are unknown for the recalibrator.
        return rows, np.where(columns, self.y_encoded[rows], np.nan)

    def compute_scores(
        self, estimator: Estimator, columns: AnyArray, X: Features
    ) -> list[FloatArray]:
        return compute_multilabel_scores(
            estimator, len(self.classes), X, self.response_method
        ).pairs

    def _concatenate_score_rows(self, blocks):
        return [stack_proba_rows(parts) for parts in zip(*blocks, strict=True)]

    def fit_recalibrator(self, held_out: HeldOutScores) -> Estimator:
        pairs, rows, table = held_out
        params = self.select_recalibrator_params(rows)
        return fit_validated_labels(clone(self.recalibrator), pairs, table, **params)

    def warn_if_harmful(self, recalibrator: Estimator, held_out: HeldOutScores) -> None:
        pairs, rows, table = held_out

        def fit_recalibrator_on_held_out_part(part):
            some = [pair[part] for pair in pairs]
            return self.fit_recalibrator(HeldOutScores(some, rows[part], table[part]))

        warn_if_harmful_for_labels(
            recalibrator,
            fit_recalibrator_on_held_out_part,
            pairs,
            table,
            self.weight[rows],
        )


def _resolve_multilabel_recalibrator(recalibrator: RecalibratorLike) -> Estimator:
    """Return the recalibrator of many labels for a name, an instance or a single method."""
    if is_scalar_equal(recalibrator, "default"):
        return MultilabelCalibration()
    method = resolve_recalibrator(recalibrator)
    if isinstance(method, MultilabelCalibration):
        return method
    return MultilabelCalibration(method, pooling="none")


def compute_multilabel_scores(
    estimator: Estimator, n_labels: int, X: Features, response_method: str
) -> MultilabelScorePairs:
    """Return canonical scores of a fitted classifier of many labels, in the form of its own."""
    if response_method != "predict_proba" and hasattr(estimator, "decision_function"):
        table = np.asarray(estimator.decision_function(X))
        # One column of log-odds per label.
        pairs = [read_proba(column, kind="logits") for column in table.T]
        pairs = _put_zero_columns_first(pairs, estimator)
        if len(pairs) == n_labels:
            return MultilabelScorePairs(pairs, False)
        raise invalid_input(
            expected=f"scores of {n_labels} labels",
            got=f"{len(pairs)}",
            hint="Pass y of the same labels",
        )
    check_gives_scores_without_logits(estimator, response_method)
    proba = estimator.predict_proba(X)
    # MultiOutputClassifier and forests return one array per label, in the order of the
    # classes of each.
    if isinstance(proba, list | tuple):
        classes_by_label = getattr(estimator, "classes_", [None] * len(proba))
        proba = [
            _add_missing_pair_column(label_proba, label_classes)
            for label_proba, label_classes in zip(proba, classes_by_label, strict=True)
        ]
        proba = _put_zero_columns_first(proba, estimator)
    return read_label_scores(proba, n_labels)


def _add_missing_pair_column(label_proba, label_classes):
    """Return two columns, also for a model that saw one kind of rows and gives one."""
    label_proba = np.asarray(label_proba)
    if (
        label_proba.ndim != 2
        or label_proba.shape[1] != 1
        or label_classes is None
        or len(label_classes) != 1
    ):
        return label_proba
    return np.hstack(
        [1 - label_proba, label_proba]
        if label_classes[0]
        else [label_proba, 1 - label_proba]
    )


def _put_zero_columns_first(pairs, estimator):
    """Return two columns for each label, that of 0 first, for any order of the estimator."""
    classes_by_label = getattr(estimator, "classes_", ())
    if len(classes_by_label) != len(pairs) or np.ndim(classes_by_label[0]) != 1:
        return pairs
    return [
        take_columns_or_zeros(pair, [1, 0])
        if len(label_classes) == 2 and label_classes[0] > label_classes[1]
        else pair
        for pair, label_classes in zip(pairs, classes_by_label, strict=True)
    ]


def predict_label_proba(
    calibrated_model: Any, X: Features
) -> FloatArray | list[FloatArray]:
    """Return the mean over the pairs of a fitted model, in the form of its classifier."""
    members = []
    for estimator, recalibrator, _ in calibrated_model.calibrated_pairs_:
        count = len(calibrated_model.classes_)
        scores = compute_multilabel_scores(
            estimator, count, X, calibrated_model.response_method
        )
        members.append(recalibrator.predict_proba(scores.pairs))
    means = [sum(parts) / len(members) for parts in zip(*members, strict=True)]
    return scores.match_form(means)


def _raise_if_not_multilabel_estimator(fit_error, estimator):
    """Raise an error that names a remedy if an estimator takes one label per row only."""
    tags = get_tags(estimator)
    if tags.target_tags.multi_output or tags.classifier_tags.multi_label:
        return
    try:
        raise invalid_input(
            expected="an estimator that takes many labels per row, for y of several columns",
            got=f"{type(estimator).__name__}, whose fit raises: {str(fit_error).rstrip('.')}",
            hint=(
                "Wrap it in sklearn.multioutput.MultiOutputClassifier; if the columns "
                "are one-hot labels, pass y.argmax(axis=1)"
            ),
        )
    except ValueError as explained:
        raise explained from fit_error
