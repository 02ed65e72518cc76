"""CalibratedModel: a classifier and the recalibrator of its scores, as one classifier."""

import warnings
from inspect import signature
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._simplex import stack_rows
from .._sklearn_compat import (
    CallbackSupportMixin,
    callback_fit,
    callback_task,
    callback_tasks,
    check_method_params,
    routing_enabled,
    safe_split,
    with_callbacks,
)
from ..canonical import canonical_labels, canonical_weight
from ..exceptions import expectation, refuse
from ..recalibrators._base import aligned_proba, fit_recalibrator, resolve_recalibrator
from ._scores import RESPONSE_METHODS, aligned_scores, is_boosted


class CalibratedPair(NamedTuple):
    """A fitted classifier with the recalibrator of its scores.

    ``columns`` are the positions of the classifier's classes among all classes.
    """

    estimator: Any
    recalibrator: Any
    columns: np.ndarray


class CalibratedModel(CallbackSupportMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are recalibrated on rows it was not trained on.

    Parameters
    ----------
    estimator : classifier
        Anything with fit and ``decision_function`` or ``predict_proba``: scikit-learn, XGBoost,
        LightGBM, a pipeline. A fitted model is wrapped in ``sklearn.frozen.FrozenEstimator``; all
        rows given to fit are then calibration rows.
    recalibrator : str or recalibrator, default="temperature"
        A registered name (see `recalibrator_names`), an instance, a pipeline of recalibrators, or
        any scikit-learn classifier, whose features are then the probabilities.
    cv : int, cross-validation generator or iterable, default=None
        The folds; 5 stratified ones by default. Not used for a FrozenEstimator unless
        ``ensemble=True``.
    ensemble : bool or "auto", default="auto"
        True: one pair of classifier and recalibrator a fold; their probabilities are averaged.
        False: one recalibrator on the out-of-fold scores of all rows, and one classifier fitted on
        all rows. "auto": True, except for a FrozenEstimator.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Which scores are recalibrated. ``decision_function`` values are taken as logits (log-odds of
        the second class where there are two), ``predict_proba`` values as probabilities. "auto"
        takes the first that exists of: ``decision_function``, the raw margins of XGBoost and
        LightGBM as logits, ``predict_proba``.
    n_jobs : int, default=None
        Folds fitted in parallel, as in joblib.

    Attributes
    ----------
    calibrated_pairs_ : list of CalibratedPair
        Named tuples (estimator, recalibrator, columns), one for each member of the ensemble.
    estimator_, recalibrator_
        The members of the only pair, where there is one.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the estimator defines them.

    Raises
    ------
    ValueError
        Fewer than two classes; weights that are negative or all zero; a FrozenEstimator and a label
        it does not know; no calibration row left.
    TypeError
        A `recalibrator` that is none; an estimator without the response method.

    Warns
    -----
    CalibrationWarning
        From the recalibrator. UserWarning: sample weights that the estimator cannot use.

    Notes
    -----
    A fold's model may miss a rare class; rows of that class in the fold's test part are left out of
    the calibration, since a score of 0 from a model that never saw the class says nothing about its
    other scores. Labels of any type are allowed: estimators that want 0 .. K-1 (XGBoost) get those.
    No training data are kept. Cost: the fits of the folds, and one more without `ensemble`.

    Progress is reported through scikit-learn's callbacks (version 1.9 on):
    ``model.set_callbacks(sklearn.callback.ProgressBar())``.

    References
    ----------
    Platt (1999), section 2.1, for cross-fitted scores; scikit-learn's ``CalibratedClassifierCV``
    for the semantics of `cv` and `ensemble`.

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
    >>> model = CalibratedModel(FrozenEstimator(nb)).fit(X[200:], y[200:])
    >>> bool(model.recalibrator_.temperature_ > 1)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "recalibrator": "no_validation",
        "cv": ["cv_object"],
        "ensemble": ["boolean", StrOptions({"auto"})],
        "response_method": [StrOptions(set(RESPONSE_METHODS))],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator,
        recalibrator="temperature",
        *,
        cv=None,
        ensemble="auto",
        response_method="auto",
        n_jobs=None,
    ):
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response_method = response_method
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit the classifier and its recalibrator.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            As the estimator takes it.
        y : array-like of shape (n_samples,)
            Labels: integers, text, bytes, booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, passed to the estimator where it takes them, and to the recalibrator.
        **fit_params : dict
            ``groups`` is passed to the splitter, the rest to the estimator's fit; with metadata
            routing enabled, each to whoever requests it (estimator, recalibrator, splitter).

        Returns
        -------
        self : object
        """
        where = "CalibratedModel.fit"
        self._validate_params()
        frozen = isinstance(self.estimator, FrozenEstimator)
        known = None
        if frozen:
            check_is_fitted(self.estimator)
            known = self.estimator.classes_
        classes, codes = canonical_labels(y, classes=known, where=where)
        if len(classes) < 2:
            refuse(
                where,
                "labels of at least two classes",
                f"one class, {classes[0]!r}",
                "There is nothing to classify; check the selection of the rows",
            )
        X, codes = indexable(X, codes)
        canonical_weight(sample_weight, len(codes), where=where)  # refuses bad ones
        self.classes_ = classes
        estimator_params, recalibrator_params, split_params = self._route(
            X, sample_weight, fit_params, frozen
        )
        job = _Job(
            where=where,
            X=X,
            codes=codes,
            classes=classes,
            estimator=self.estimator,
            recalibrator=resolve_recalibrator(self.recalibrator, where),
            estimator_params=estimator_params,
            recalibrator_params=recalibrator_params,
            response_method=self.response_method,
        )
        ensemble = self.ensemble if self.ensemble != "auto" else not frozen
        if frozen and not ensemble:
            with callback_fit(self, 1, X, codes) as context:
                (task,) = callback_tasks(context, 1, "calibrate")
                with callback_task(task, self, None, X, codes):
                    self.calibrated_pairs_ = [_calibrate_frozen(job)]
        else:
            cv = check_cv(self.cv, codes, classifier=True)
            folds = list(cv.split(X, codes, **split_params))
            self.calibrated_pairs_ = self._fit_folds(job, folds, ensemble)
        first = self.calibrated_pairs_[0].estimator
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        return self

    def predict_proba(self, X):
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``; the mean over the ensemble.
        """
        check_is_fitted(self)
        where = "CalibratedModel.predict_proba"
        total = 0.0
        for estimator, recalibrator, columns in self.calibrated_pairs_:
            scores = aligned_scores(
                estimator, columns, len(self.classes_), X, self.response_method, where
            )
            total = total + aligned_proba(recalibrator, scores, self.classes_)
        return total / len(self.calibrated_pairs_)

    def predict(self, X):
        """The class with the largest calibrated probability; the first of equals."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @property
    def estimator_(self):
        """The fitted classifier, where there is one pair."""
        return self._only_pair("estimator_").estimator

    @property
    def recalibrator_(self):
        """The fitted recalibrator, where there is one pair."""
        return self._only_pair("recalibrator_").recalibrator

    def get_metadata_routing(self):
        """The metadata that fit takes: for the estimator, the recalibrator and the splitter."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        recalibrator = resolve_recalibrator(self.recalibrator, "CalibratedModel")
        if isinstance(self.recalibrator, str):  # no instance on which the user could request it
            recalibrator.set_fit_request(sample_weight=True)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=fit)
            .add(recalibrator=recalibrator, method_mapping=fit)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags

    def _only_pair(self, name):
        if len(getattr(self, "calibrated_pairs_", ())) != 1:
            raise AttributeError(
                f"{type(self).__name__}.{name} exists after a fit with one pair; see "
                "calibrated_pairs_, or fit with ensemble=False."
            )
        return self.calibrated_pairs_[0]

    def _route(self, X, sample_weight, fit_params, frozen):
        """Parameters for the estimator's fit, the recalibrator's fit and the splitter."""
        if routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.recalibrator.fit), routed.splitter.split
        params, weights = dict(fit_params), {}
        groups = {"groups": params.pop("groups")} if "groups" in params else {}
        if sample_weight is not None:
            weights["sample_weight"] = sample_weight
            if "sample_weight" in signature(self.estimator.fit).parameters:
                params["sample_weight"] = sample_weight
            elif not frozen:
                name = type(self.estimator).__name__
                warnings.warn(
                    expectation(
                        "CalibratedModel.fit",
                        "an estimator whose fit takes sample_weight",
                        f"{name}, fitted without weights",
                        "The recalibrator uses them; for a pipeline pass "
                        "STEP__sample_weight=... or enable metadata routing",
                    ),
                    UserWarning,
                    stacklevel=3,
                )
        return params, weights, groups

    def _fit_folds(self, job, folds, ensemble):
        n_tasks = len(folds) + (not ensemble)
        with callback_fit(self, n_tasks, job.X, job.codes) as context:
            tasks = callback_tasks(context, n_tasks, "fold")
            done = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_fold)(job, train, test, ensemble, task, self)
                for (train, test), task in zip(folds, tasks, strict=False)
            )
            if ensemble:
                return done
            rows = np.concatenate([kept for _, kept in done])
            scores = stack_rows([block for block, _ in done])
            with callback_task(tasks[-1], self, None, job.X, job.codes):
                estimator, columns = _fit_estimator(job, np.arange(len(job.codes)))
                return [CalibratedPair(estimator, _fit_recalibrator(job, scores, rows), columns)]


class _Job(NamedTuple):
    """What every fold needs."""

    where: str
    X: Any
    codes: np.ndarray
    classes: np.ndarray
    estimator: Any
    recalibrator: Any
    estimator_params: dict
    recalibrator_params: dict
    response_method: str


def _fit_fold(job, train, test, ensemble, task, caller):
    """A fitted pair, or the out-of-fold scores and their rows."""
    estimator = clone(job.estimator)
    with callback_task(task, caller, estimator, job.X, job.codes):
        estimator, columns = _fit_estimator(job, train, estimator)
        rows = np.arange(len(job.codes))[test]
        rows = rows[np.isin(job.codes[rows], columns)]
        part, _ = safe_split(estimator, job.X, job.codes, rows, train)
        scores = (
            _scores(job, estimator, columns, part) if len(rows) else np.empty((0, len(job.classes)))
        )
        if not ensemble:
            return scores, rows
        return CalibratedPair(estimator, _fit_recalibrator(job, scores, rows), columns)


def _calibrate_frozen(job):
    columns = np.arange(len(job.classes))
    scores = _scores(job, job.estimator, columns, job.X)
    return CalibratedPair(
        job.estimator, _fit_recalibrator(job, scores, np.arange(len(scores))), columns
    )


def _scores(job, estimator, columns, X):
    return aligned_scores(estimator, columns, len(job.classes), X, job.response_method, job.where)


def _fit_estimator(job, rows, estimator=None):
    """Fit a clone on some rows; also the positions of its classes among all classes."""
    estimator = clone(job.estimator) if estimator is None else estimator
    part, codes = safe_split(estimator, job.X, job.codes, rows)
    params = check_method_params(job.X, params=job.estimator_params, indices=rows)
    # 0 .. K-1 without gaps for XGBoost; bytes are refused by scikit-learn's own classifiers
    if not isinstance(estimator, FrozenEstimator) and (
        is_boosted(estimator, "xgboost") or job.classes.dtype.kind == "S"
    ):
        present, local = np.unique(codes, return_inverse=True)
        estimator.fit(part, local, **params)
        return estimator, present
    estimator.fit(part, job.classes[codes], **params)
    _, columns = canonical_labels(estimator.classes_, classes=job.classes, where=job.where)
    return estimator, columns


def _fit_recalibrator(job, scores, rows):
    if not len(scores):
        refuse(
            job.where,
            "calibration rows in every fold",
            "a fold without any row of a class that its model has seen",
            "Use fewer folds, or stratified ones",
        )
    params = check_method_params(job.X, params=job.recalibrator_params, indices=rows)
    return fit_recalibrator(
        clone(job.recalibrator), scores, job.classes[job.codes[rows]], classes=job.classes, **params
    )
