"""CalibratedModel: a classifier and the recalibrator of its scores, as one classifier."""

import copy
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed

from .._argument_checks import is_scalar_equal, read_bool_with_none_as_false
from .._atomic import replace_state_after_fitting_copy
from .._callbacks import make_task_contexts, report_fit, report_task, with_callbacks
from .._typing import CV, ArrayLike, Estimator, Features, RecalibratorLike, Self
from .._validation import (
    check_and_get_common_index,
    is_label_table,
    place_columns,
    read_labels,
    read_proba,
)
from ..exceptions import invalid_input
from ..linear import (
    compute_leave_one_out_scores,
    refine_fits_and_update_own_model,
)
from ..recalibrators import group_near_duplicates_and_warn
from ._base import (
    ESTIMATOR_CONSTRAINTS,
    BaseCalibratedClassifier,
    CalibratedPair,
    every_recalibrator_has,
)
from ._classifier_scores import suggest_argument_names
from ._fit_context import FitContext, HeldOutScores, SoftLabelContext
from ._multilabel_context import MultilabelContext, predict_label_proba
from ._user_estimators import clone_or_raise

# A fold needs this many rows for a recalibrator of its own.
MIN_FOLD_ROWS = 10


@suggest_argument_names
class CalibratedModel(BaseCalibratedClassifier):
    """A classifier whose probabilities are recalibrated on rows it was not trained on.

    Parameters
    ----------
    estimator : classifier
        Anything with fit and ``decision_function`` or ``predict_proba``: scikit-learn,
        XGBoost, LightGBM, a pipeline. A fitted model is wrapped in
        ``sklearn.frozen.FrozenEstimator``; all rows given to fit are then calibration
        rows. Such a model needs no ``classes_`` if there is one label for each column:
        with ``predict_proba``, a ``predict`` that returns probabilities (Keras), or a
        function of X (PyTorch).
    recalibrator : str or recalibrator, default="default"
        "default" is `DefaultCalibration`, for any number of classes: a mean of scaled
        and unchanged scores, which rarely makes them worse. It takes milliseconds,
        which counts in a search. "auto", `StackedCalibration`, predicts better and
        takes up to seconds: for the final model. Or a registered name (see
        `all_recalibrators`), an instance, a pipeline of recalibrators, or any
        scikit-learn classifier, whose features are then the probabilities.
    cv : int, cross-validation generator, iterable or "alo", default=None
        The folds; 5 stratified ones by default. Not used for a FrozenEstimator unless
        ``ensemble=True``. "alo": for a linear classifier (see
        `approximate_leave_one_out`) one fit on all rows; the recalibrator is fitted to
        their leave-one-out scores. A fit that stopped early is carried on to its
        minimum. A FrozenEstimator is then given the rows it was fitted on.
    ensemble : bool or "auto", default="auto"
        True: one pair of classifier and recalibrator per fold; their probabilities are
        averaged. False: one recalibrator on the out-of-fold scores of all rows, and one
        classifier fitted on all rows. "auto": True, except for a FrozenEstimator, and
        if the test part of a fold has fewer than 10 rows or one class only, as with
        ``LeaveOneOut()``: True is then an error.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Which scores are recalibrated. ``decision_function`` values are taken as logits
        (log-odds of the second class if there are two), ``predict_proba`` values as
        probabilities. "auto" takes the first that exists of: the logits behind the
        probabilities of XGBoost and LightGBM, ``decision_function``, ``predict_proba``.
    n_jobs : int, default=None
        Folds fitted in parallel, as in joblib.

    Attributes
    ----------
    calibrated_pairs_ : list of CalibratedPair
        Named tuples (estimator, recalibrator, columns), one for each member of the
        ensemble.
    estimator_, recalibrator_
        The members of the only pair, if there is one.
    classes_ : ndarray of shape (n_classes,)
        For many labels a list of arrays of shape (2,).
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the estimator defines them.

    Raises
    ------
    ValueError
        Fewer than two classes; weights that are negative or all zero; a FrozenEstimator
        and a label it does not know; no calibration row left.
    TypeError
        A `recalibrator` that is not one; an estimator without the response method; an
        argument that does not exist: the message names the one that is meant.

    Warns
    -----
    CalibrationWarning
        From the recalibrator. Or the recalibration harms: the mean calibrated
        probability of a class is more than 3 standard errors from the class's frequency
        (with K classes, the same false alarm rate over all), judged on at most 20,000
        rows; or, with 500 to 4000 calibration rows, the log loss of the rows of each
        half, recalibrated by a fit on the other half, is above the uncalibrated one by
        more than 3 standard errors and 5 %. Of an ensemble, the first member is judged;
        of many labels each, with the false alarm rate of one problem over all, and the
        log loss of their sum. Or a fitted estimator without a FrozenEstimator, which is
        fitted again. Or a fifth of the rows of X are copies of others, or half of them
        (up to 20,000) nearly so, though two columns are continuous, with `cv` as a
        number and no `groups`: oversampled rows, or such as belong together, which the
        folds then keep together. UserWarning: sample weights that the estimator cannot
        use.

    Notes
    -----
    A fold's model may miss a rare class; rows of that class in the fold's test part are
    left out of the calibration, since a score of 0 from a model that was never trained
    on the class does not inform about its other scores. Labels of any type are allowed:
    estimators that want 0 .. K-1 (XGBoost) get those. Probabilities that the estimator
    rounds (float16, two digits), so that a row's sum is off by up to 0.02, are divided
    by the sum. A fit that fails leaves the model unfitted.

    Many labels per row: a `y` of several columns of 0 and 1 with a classifier that
    takes them (``MultiOutputClassifier``, ``ClassifierChain``, ``OneVsRestClassifier``,
    forests). The recalibrator is then a `MultilabelCalibration`: "default" the one by
    default, any other method one for each label by itself. An int `cv` means folds of
    shuffled rows; a label that is all 0 or all 1 in the training rows of a fold is not
    calibrated on its test rows. NaN in `y` is an unknown label, which most classifiers
    reject, and which is not passed to a FrozenEstimator.

    **Class weights and resampling.** ``class_weight="balanced"``, ``scale_pos_weight``,
    SMOTE and undersampling train the classifier on other class frequencies than those
    of the rows. If the calibration rows have the true ones, as the folds have if the
    weights, or the sampler in a pipeline, are the classifier's own, the recalibrator
    learns them: "default", and any other that can move a base rate, needs nothing more.
    If all rows that are left were resampled, the frequencies are given:
    ``PriorShift.from_class_weight("balanced", y)``, with ``{0: 1, 1: w}`` for
    ``scale_pos_weight=w`` and ``{0: beta, 1: 1}`` if a share beta of class 0 was
    kept; or ``PriorShift(prior)`` as the last recalibrator, for the frequencies of
    wherever the model is used.

    No training data are kept. Cost: the fits of the folds, and one more without
    `ensemble`.

    Progress is reported through scikit-learn's callbacks (version 1.9 on):
    ``model.set_callbacks(sklearn.callback.ProgressBar())``.

    References
    ----------
    Platt (1999), section 2.1, for cross-fitted scores; scikit-learn's
    ``CalibratedClassifierCV`` for the semantics of `cv` and `ensemble`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_calib import CalibratedModel
    >>> from sklearn_calib.metrics import log_loss
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    >>> before = GaussianNB().fit(X, y).predict_proba(X_test)
    >>> after = CalibratedModel(GaussianNB(), "beta").fit(X, y).predict_proba(X_test)
    >>> log_loss(y_test, after) < 0.5 * log_loss(y_test, before)
    True

    A model that is fitted already:

    >>> from sklearn.frozen import FrozenEstimator
    >>> nb = GaussianNB().fit(X[:200], y[:200])
    >>> model = CalibratedModel(FrozenEstimator(nb), "temperature").fit(X[200:], y[200:])
    >>> bool(model.recalibrator_.temperature_ > 1)
    True
    """

    _parameter_constraints: ClassVar = {
        "estimator": ESTIMATOR_CONSTRAINTS,
        "recalibrator": "no_validation",
        "cv": ["cv_object", StrOptions({"alo"})],
        "ensemble": ["boolean", StrOptions({"auto"})],
        "response_method": [StrOptions({"auto", "decision_function", "predict_proba"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Estimator,
        recalibrator: RecalibratorLike = "default",
        *,
        cv: CV | Literal["alo"] | None = None,
        ensemble: bool | Literal["auto"] = "auto",
        response_method: Literal["auto", "decision_function", "predict_proba"] = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response_method = response_method
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifier and its recalibrator.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            As the estimator takes it.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels: integers, text, bytes, booleans. Several columns are many labels per
            row: 0 or 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, passed to the estimator if it takes them, and to the
            recalibrator.
        soft_labels : bool, default=False
            Whether `y` holds shares of classes instead: of shape (n_samples,) the share
            of the second class, in [0, 1], or of shape (n_samples, n_classes). The same
            as each row given once per class, with the share times its weight as weight,
            in one fold; so the estimator, unless it is a FrozenEstimator, takes
            ``sample_weight``. The classes are 0, 1, ..., or those of a FrozenEstimator.
        **fit_params : dict
            ``groups``, rows that belong together, is passed to the splitter (if `cv` is
            a number or None, folds that split no group) and to a recalibrator that
            takes them, as "auto" does; the rest to the estimator's fit. With metadata
            routing enabled, each to the objects that request it (estimator,
            recalibrator, splitter). The labels of ``eval_set`` (``eval_y``, ``y_val``)
            are those of `y`; every fold's model is judged on all its rows, but for
            classes that the fold misses.

        Returns
        -------
        self : object
        """
        # A copy is fitted, whose attributes self takes over at the end.
        with replace_state_after_fitting_copy(self) as new:
            kind = FitContext
            if read_bool_with_none_as_false(soft_labels, "soft_labels"):
                kind = SoftLabelContext
            elif is_label_table(y):
                kind = MultilabelContext
            context = kind.from_fit_and_set_classes(
                new, X, y, sample_weight, fit_params
            )
            is_frozen = isinstance(new.estimator, FrozenEstimator)
            # A frozen estimator is the same in all folds, so an average of pairs has no
            # advantage.
            ensemble = not is_frozen if new.ensemble == "auto" else new.ensemble
            if is_scalar_equal(new.cv, "alo"):
                new._check_leave_one_out_options(context)
                fits = new._fit_without_folds(
                    context, "fit", _fit_pair_by_leave_one_out
                )
            elif is_frozen and not ensemble:
                fits = new._fit_without_folds(
                    context, "calibrate", _fit_frozen_pair_and_get_held_out
                )
            else:
                fits = new._fit_pair_per_fold_or_one_pair(context, ensemble)
            new.calibrated_pairs_ = [pair for pair, _ in fits]
            # The checks for harm take seconds; the first fold stands for the others.
            first, held_out = fits[0]
            context.warn_if_harmful(first.recalibrator, held_out)
            new._copy_feature_names(first.estimator)
        return self

    # Used after a fit to many labels.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Name in the error for a threshold what chooses one."""
            if name not in ("threshold", "threshold_"):
                # Raises the error again that led here, such as that of a property.
                return self.__getattribute__(name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}. Choose a threshold "
                "by costs with sklearn_calib.decisions.CostSensitiveClassifier, by a measure "
                "with sklearn.model_selection.TunedThresholdClassifierCV"
            )

    _predict_label_proba = predict_label_proba

    @available_if(every_recalibrator_has("partial_fit"))
    def partial_fit_recalibrator(
        self, X: Features, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Let the recalibrators learn from rows whose labels have come; the classifiers stay.

        For a model in production, fitted with a recalibrator that has ``partial_fit``,
        such as ``"online"``.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            New rows, in the order in which their labels came.
        y : array-like of shape (n_samples,)
            Labels among ``classes_``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            As the recalibrator's ``partial_fit``; the model is then as it was.
        """
        check_and_get_common_index(X, y, sample_weight)
        _, codes = read_labels(y, classes=self.classes_, input_name="y")
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        # The new state is only set after all recalibrators have learned: an error
        # leaves none of them half updated.
        learned = []
        for pair, (method, scores) in zip(
            self.calibrated_pairs_, self._iter_recalibrators_and_scores(X), strict=True
        ):
            updated = copy.deepcopy(method).partial_fit(
                scores, self.classes_[codes], **options
            )
            learned.append(pair._replace(recalibrator=updated))
        self.calibrated_pairs_ = learned
        return self

    @property
    def recalibrator_(self) -> Any:
        """The fitted recalibrator, if there is one pair."""
        return self._get_only_calibrated_pair("recalibrator_").recalibrator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(
            getattr(self.estimator, "estimator", self.estimator), "__sklearn_tags__"
        ):
            inner = get_tags(self.estimator)
            tags.classifier_tags.multi_label = inner.classifier_tags.multi_label
            tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    def _fit_without_folds(
        self, context, task_name, fit_pair
    ) -> list[tuple[CalibratedPair, HeldOutScores]]:
        """Fit the one pair of all rows, without folds."""
        with report_fit(self, 1, context.X, context.y_encoded) as progress:
            (task,) = make_task_contexts(progress, 1, task_name)
            with report_task(task, self, None, context.X, context.y_encoded):
                return [fit_pair(context)]

    def _fit_pair_per_fold_or_one_pair(
        self, context, ensemble
    ) -> list[tuple[CalibratedPair, HeldOutScores]]:
        """Fit one pair per fold; or one of all rows, with a recalibrator of all held-out scores."""
        is_free = context.groups is None and context.items is None
        # Copies of a row in both parts of a fold would make held-out scores as good as
        # training scores.
        if is_free and isinstance(self.cv, Integral | None):
            groups = group_near_duplicates_and_warn(context.X, int(self.cv or 5))
            if groups is not None:
                context = context.with_groups_for_all_splits(groups)
        folds = context.make_folds(self.cv)
        ensemble = ensemble and self._can_fit_per_fold_or_raise_if_forced(
            context, folds
        )
        # One task of the progress bar per fit; without an ensemble, the last one fits to
        # all rows.
        n_tasks = len(folds) if ensemble else len(folds) + 1
        with report_fit(self, n_tasks, context.X, context.y_encoded) as progress:
            tasks = make_task_contexts(progress, n_tasks, "fold")
            fits = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_fold_and_score_test_rows)(
                    context,
                    train,
                    test,
                    ensemble,
                    task,
                    self,
                )
                for (train, test), task in zip(folds, tasks, strict=False)
            )
            if ensemble:
                return fits
            with report_task(tasks[-1], self, None, context.X, context.y_encoded):
                estimator, columns = context.fit_estimator_and_get_columns(
                    context.all_rows
                )
                held_out = context.concatenate_folds([fold for _, fold in fits])
                return [
                    _fit_pair_to_held_out_scores(context, estimator, columns, held_out)
                ]

    def _can_fit_per_fold_or_raise_if_forced(self, context, folds):
        """Return whether the test part of each fold is enough for a recalibrator of its own."""
        # Rows of soft labels are copies of an item, so items are counted.
        items = context.all_rows if context.items is None else context.items
        for _, test in folds:
            # A recalibrator per fold needs enough rows of both kinds in its test part.
            n_rows = len(np.unique(items[test]))
            n_classes = len(np.unique(context.y_encoded[test]))
            if n_rows < MIN_FOLD_ROWS or n_classes < 2:
                break
        else:
            return True
        if self.ensemble is True:
            raise invalid_input(
                expected=(
                    f"at least {MIN_FOLD_ROWS} rows and two classes in the test part of each "
                    "fold, for a recalibrator of its own"
                ),
                got=f"{n_rows} rows of {n_classes} classes",
                hint=(
                    "Pass ensemble=False, which fits one recalibrator on the scores of all "
                    "folds, or take fewer and stratified folds"
                ),
            )
        return False

    def _check_leave_one_out_options(self, context):
        """Raise an error if the labels or options do not allow approximate leave-one-out."""
        kind = context.label_kind
        if kind != "plain":
            raise invalid_input(
                expected=f"folds for {kind} labels",
                got="cv='alo'",
                sentence=f"cv='alo' does not support {kind} labels",
                hint="Leave cv out",
            )
        if self.ensemble is True or self.response_method == "predict_proba":
            raise invalid_input(
                expected="ensemble=False and the scores of decision_function with cv='alo'",
                got=f"ensemble={self.ensemble}, response_method={self.response_method!r}",
                hint="Leave both out",
            )


def _fit_fold_and_score_test_rows(context, train, test, keeps_pair, task, model):
    """Return the fitted pair of a fold, if `keeps_pair`, and its held-out scores."""
    estimator = clone_or_raise(context.estimator)
    with report_task(task, model, estimator, context.X, context.y_encoded):
        estimator, columns = context.fit_estimator_and_get_columns(train, estimator)
        held_out = context.score_test_rows(estimator, columns, train, test)
        if not keeps_pair:
            return None, held_out
        return _fit_pair_to_held_out_scores(context, estimator, columns, held_out)


def _fit_frozen_pair_and_get_held_out(context):
    """Return the estimator as it is with a recalibrator of its scores."""
    columns = context.all_columns
    scores = context.compute_scores(context.estimator, columns, context.X)
    held_out = HeldOutScores(scores, context.all_rows, context.y_encoded)
    return _fit_pair_to_held_out_scores(context, context.estimator, columns, held_out)


def _fit_pair_by_leave_one_out(context):
    """Return the estimator of all rows with a recalibrator of scores by fits without each row.

    A model that stopped early is carried on to its minimum, unless it is frozen.
    """
    estimator, columns = context.fit_estimator_and_get_columns(context.all_rows)
    model, fits, is_ours = context.read_model_and_linear_fits(estimator, columns)
    logits = compute_leave_one_out_scores(
        refine_fits_and_update_own_model(fits, model, is_ours)
    )
    scores = read_proba(logits, kind="logits", n_classes=len(model.classes_))
    # All classes are learned here, but the estimator may have another order.
    scores = place_columns(scores, columns, len(context.classes))
    held_out = HeldOutScores(scores, context.all_rows, context.y_encoded)
    return _fit_pair_to_held_out_scores(context, estimator, columns, held_out)


def _fit_pair_to_held_out_scores(
    context, estimator, columns, held_out
) -> tuple[CalibratedPair, HeldOutScores]:
    """Return the pair of a classifier and a recalibrator fitted to scores, and the scores."""
    recalibrator = context.fit_recalibrator(held_out)
    return CalibratedPair(estimator, recalibrator, columns), held_out
