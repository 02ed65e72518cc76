"""Classifiers of many labels per row: what `CalibratedModel` fits and asks in their case."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import get_tags, indexable

from .._argument_checks import equals
from .._simplex_array import stack_rows, take_columns
from .._sklearn_compat import check_method_params, safe_split
from .._typing import CV, AnyArray, Estimator, Features, FloatArray, IntArray, RecalibratorLike
from .._validation import (
    BOTH,
    LabelScores,
    canonical_label_scores,
    canonical_label_table,
    canonical_weight,
    check_indexes,
    read_proba,
)
from ..exceptions import invalid_input
from ..recalibrators import (
    MultilabelCalibration,
    check_cv_pairs,
    resolve_recalibrator,
    warn_if_labels_harmed,
)
from ._base import AnyJob
from ._classifier_scores import check_method, check_not_prefit
from ._user_estimators import check_clonable, check_early_stopping, clone_or_raise


class FoldScores(NamedTuple):
    """Scores of some rows, and whether the model that gave them had learned each label."""

    pairs: list[FloatArray]
    learned: AnyArray  # shape (n_samples, n_labels)


class LabelsJob(AnyJob):
    """That of many labels. Its columns say of each label whether a model saw both kinds."""

    codes: FloatArray  # the table of labels
    classes: list[AnyArray]

    @property
    def all_columns(self) -> AnyArray:
        """The columns of a model that has learned all labels."""
        return np.ones(len(self.classes), dtype=bool)

    def splits(self, cv: CV) -> list[Any]:
        """The pairs (train, test) of rows; an int means shuffled ones, since none is stratified.

        Where groups are given, folds that split none.
        """
        if cv is None or isinstance(cv, Integral):
            count, grouped = 5 if cv is None else int(cv), self.groups is not None
            cv = GroupKFold(count) if grouped else KFold(count, shuffle=True, random_state=0)
        folds = list(check_cv(cv).split(self.X, self.codes, **self.splitter_params))
        check_cv_pairs(folds)
        return folds

    def fit_estimator(
        self, rows: IntArray, estimator: Estimator | None = None
    ) -> tuple[Estimator, AnyArray]:
        """Fit a clone on some rows; also which labels it saw both kinds of."""
        estimator = clone_or_raise(self.estimator) if estimator is None else estimator
        part, table = safe_split(estimator, self.X, self.codes, rows)
        params = check_method_params(self.X, params=self.estimator_params, indices=rows)
        check_early_stopping(estimator, params)
        try:
            estimator.fit(part, table if np.isnan(table).any() else table.astype(np.intp), **params)
        except ValueError as error:
            _explain(error, estimator)
            raise
        return estimator, (table == 0).any(axis=0) & (table == 1).any(axis=0)

    def test_part(
        self, estimator: Estimator, columns: AnyArray, train: IntArray, test: IntArray
    ) -> tuple[IntArray, Features]:
        """The test rows and their features."""
        rows = np.arange(len(self.codes))[test]
        part, _ = safe_split(estimator, self.X, self.codes, rows, train)
        return rows, part

    def scores(self, estimator: Estimator, columns: AnyArray, X: Features) -> FoldScores:
        """Scores of a fitted estimator."""
        count = len(self.classes)
        pairs = scores_of_labels(estimator, count, X, self.response_method).pairs
        return FoldScores(pairs, np.tile(columns, (len(pairs[0]), 1)))

    @staticmethod
    def stacked(blocks: list[FoldScores]) -> FoldScores:
        """The scores of several folds one below the other."""
        parts = zip(*(block.pairs for block in blocks), strict=True)
        learned = np.vstack([block.learned for block in blocks])
        return FoldScores([stack_rows(part) for part in parts], learned)

    def fit_recalibrator(
        self, scores: FoldScores, rows: IntArray, *, watch: bool = True
    ) -> Estimator:
        """A recalibrator fitted on scores of these rows; what was not learned is unknown."""
        table = np.where(scores.learned, self.codes[rows], np.nan)
        params = check_method_params(self.X, params=self.recalibrator_params, indices=rows)
        weight = params.get("sample_weight")

        def fit(some):
            own = {} if weight is None else {"sample_weight": np.asarray(weight)[some]}
            pairs = [pair[some] for pair in scores.pairs]
            return clone(self.recalibrator).fit(pairs, table[some], **{**params, **own})

        fitted = clone(self.recalibrator).fit(scores.pairs, table, **params)
        if watch:
            known = canonical_weight(weight, len(rows))
            warn_if_labels_harmed(fitted, fit, scores.pairs, table, known)
        return fitted


def start_labels(
    model: Any, X: Features, y: Any, sample_weight: Any, fit_params: dict[str, Any]
) -> LabelsJob:
    """What the parts of a fit need, where `y` has a column for each label."""
    check_not_prefit(model.cv)
    check_clonable(model.estimator)
    model._validate_params()
    n_samples, n_labels = np.shape(y)
    table = canonical_label_table(y, n_samples, n_labels, input_name="y")
    estimator, frozen = model._given_estimator(lambda: np.arange(n_labels))
    check_indexes(X, y, sample_weight, fit_params.get("groups"))
    check_indexes(X, y, sample_weight, fit_params.get("groups"))
    X, table = indexable(X, table)
    if sample_weight is not None:
        canonical_weight(sample_weight, len(table))
    model.classes_ = [BOTH.copy() for _ in range(n_labels)]
    return LabelsJob(
        X=X,
        codes=table,
        classes=model.classes_,
        estimator=estimator,
        recalibrator=_of_labels(model.recalibrator),
        response_method=model.response_method,
        **model._route(sample_weight, fit_params, frozen),
    )


def _of_labels(recalibrator: RecalibratorLike) -> Estimator:
    """The recalibrator of many labels that is meant."""
    if equals(recalibrator, "default"):
        return MultilabelCalibration()
    method = resolve_recalibrator(recalibrator)
    if isinstance(method, MultilabelCalibration):
        return method
    return MultilabelCalibration(method, pooling="none")


def scores_of_labels(
    estimator: Estimator, n_labels: int, X: Features, response_method: str
) -> LabelScores:
    """Canonical scores of a fitted classifier of many labels, in the form of its own."""
    if response_method != "predict_proba" and hasattr(estimator, "decision_function"):
        table = np.asarray(estimator.decision_function(X))
        pairs = [read_proba(column, kind="logits") for column in table.T]
        pairs = _order_pairs(pairs, estimator)
        if len(pairs) == n_labels:
            return LabelScores(pairs, False)
        raise invalid_input(
            expected=f"scores of {n_labels} labels",
            got=f"{len(pairs)}",
            hint="Pass y of the same labels",
        )
    check_method(estimator, response_method)
    proba = estimator.predict_proba(X)
    if isinstance(proba, list | tuple):
        known = getattr(estimator, "classes_", [None] * len(proba))
        proba = [_both(part, own) for part, own in zip(proba, known, strict=True)]
        proba = _order_pairs(proba, estimator)
    return canonical_label_scores(proba, n_labels)


def _both(part, own):
    """Two columns; a model that saw one kind of rows gives one."""
    part = np.asarray(part)
    if part.ndim != 2 or part.shape[1] != 1 or own is None or len(own) != 1:
        return part
    return np.hstack([1 - part, part] if own[0] else [part, 1 - part])


def _order_pairs(pairs, estimator):
    """Return two columns for each label, that of 0 first, whatever the estimator's order."""
    known = getattr(estimator, "classes_", ())
    if len(known) != len(pairs) or np.ndim(known[0]) != 1:
        return pairs
    return [
        take_columns(pair, [1, 0]) if len(own) == 2 and own[0] > own[1] else pair
        for pair, own in zip(pairs, known, strict=True)
    ]


def labels_proba(model: Any, X: Features) -> FloatArray | list[FloatArray]:
    """The mean over the pairs of a fitted model, in the form of its classifier."""
    members = []
    for estimator, recalibrator, _ in model.calibrated_pairs_:
        count = len(model.classes_)
        scores = scores_of_labels(estimator, count, X, model.response_method)
        members.append(recalibrator.predict_proba(scores.pairs))
    means = [sum(parts) / len(members) for parts in zip(*members, strict=True)]
    return scores.in_form(means)


def _explain(error, estimator):
    """Say what to do where an estimator takes one label per row only."""
    tags = get_tags(estimator)
    if tags.target_tags.multi_output or tags.classifier_tags.multi_label:
        return
    try:
        raise invalid_input(
            expected="an estimator that takes many labels per row, for y of several columns",
            got=f"{type(estimator).__name__}, which says: {str(error).rstrip('.')}",
            hint=(
                "Wrap it in sklearn.multioutput.MultiOutputClassifier; if the columns "
                "are one-hot labels, pass y.argmax(axis=1)"
            ),
        )
    except ValueError as explained:
        raise explained from error
