"""The protocol by which a learner's stages are seen, its registry, and pipelines."""

import copy
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from .._typing import ArrayLike, Estimator, Features
from ..exceptions import invalid_input

#: Of each stage the kind of the scores, "proba" or "logits", and the scores.
StagedScores = Iterator[tuple[str, ArrayLike]]
_STAGING_BY_TYPE: dict[type | str, "Staging"] = {}
# The adapters that were found, by exact class.
_STAGING_CACHE: "WeakKeyDictionary[type, Staging | None]" = WeakKeyDictionary()


class Staging:
    """Adapter of a family of learners: its predictions if training had stopped earlier.

    Write `n_stages`, `staged_scores` and `truncate_to_stage`; the rest has defaults.

    Attributes
    ----------
    unit : str
        What a stage is, in the plural: the label of an axis.

    Examples
    --------
    A learner of your own whose stages are the members of a list:

    >>> import copy
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, ClassifierMixin
    >>> from sklearn_calib.staged import Staging, register_staging, find_staging
    >>> class Averages(ClassifierMixin, BaseEstimator):
    ...     def __init__(self, n_members=3):
    ...         self.n_members = n_members
    ...     def fit(self, X, y):
    ...         self.classes_, rng = np.unique(y), np.random.default_rng(0)
    ...         self.members_ = [np.mean(rng.choice(y, len(y))) for _ in range(self.n_members)]
    ...         return self
    ...     def predict_proba(self, X):
    ...         p = np.full(len(X), np.mean(self.members_))
    ...         return np.column_stack([1 - p, p])
    >>> class AveragesStaging(Staging):
    ...     unit = "members"
    ...     def n_stages(self, estimator):
    ...         return len(getattr(estimator, "members_", [0] * estimator.n_members))
    ...     def staged_scores(self, fitted, X):
    ...         for stage in range(1, len(fitted.members_) + 1):
    ...             yield "proba", self.truncate_to_stage(fitted, stage).predict_proba(X)
    ...     def truncate_to_stage(self, fitted, stage):
    ...         shorter = copy.copy(fitted)
    ...         shorter.members_ = fitted.members_[:stage]
    ...         return shorter
    >>> register_staging(Averages, AveragesStaging())
    >>> find_staging(Averages()).unit
    'members'
    """

    unit = "stages"

    def applies(self, estimator: Estimator) -> bool:
        """Return whether this estimator, with its parameters, has stages."""
        return True

    def n_stages(self, estimator: Estimator) -> int:
        """Return the stages of a fitted estimator; if unfitted, its maximum.

        Parameters
        ----------
        estimator : classifier

        Returns
        -------
        n_stages : int
        """
        raise NotImplementedError

    def with_recording(self, estimator: Estimator) -> Estimator:
        """Return an unfitted estimator that is fitted once with all stages.

        It is a clone if it had to be changed. Parameters that cannot be followed stage by
        stage are rejected here.
        """
        return estimator

    def fit(
        self, estimator: Estimator, X: Features, y: ArrayLike, **params: Any
    ) -> Estimator:
        """Fit in place; a learner that forgets its stages is recorded here."""
        return estimator.fit(X, y, **params)

    def staged_scores(self, fitted: Estimator, X: Features) -> StagedScores:
        """Iterate over the scores after stage 1, 2, ..., up to ``n_stages(fitted)``.

        Parameters
        ----------
        fitted : classifier
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        kind : {"proba", "logits"}
        scores : array of shape (n_samples, n_classes) or (n_samples,)
            What `canonical_proba` takes, equal to the scores of the truncated
            classifier: its `logits`, else its ``decision_function``, else its
            ``predict_proba``.
        """
        raise NotImplementedError

    def staged_proba(
        self, fitted: Estimator, X: Features
    ) -> Iterable[ArrayLike] | None:
        """Iterate over ``predict_proba`` after each stage if `staged_scores` do not determine it.

        For a ``decision_function`` whose softmax is not the learner's
        ``predict_proba``: the loss before recalibration is taken from here.

        Parameters
        ----------
        fitted : classifier
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : iterable of array of shape (n_samples, n_classes), or None
            None, the default: they are the scores, or the softmax of these logits.
        """
        return None

    def caveat(self, estimator: Estimator) -> tuple[str, str, str] | None:
        """Return a caveat about the comparison of stages, or None.

        Parameters
        ----------
        estimator : classifier

        Returns
        -------
        caveat : tuple of str (expected, got, hint), or None
            `RefineThenCalibrateCV` gives it as a `CalibrationWarning`.
        """
        return None

    def logits(self, fitted: Estimator, X: Features) -> ArrayLike | None:
        """Return the logits of ``predict_proba`` if the learner rounds that, else None.

        Parameters
        ----------
        fitted : classifier
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        logits : array of shape (n_samples, n_classes) or (n_samples,), or None
            What `CalibratedModel` recalibrates with ``response_method="auto"``.
        """
        return None

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        """Return a copy that predicts as the fitted classifier did after a stage.

        Parameters
        ----------
        fitted : classifier
        stage : int
            From 1 to ``n_stages(fitted)``.

        Returns
        -------
        classifier : fitted classifier
        """
        raise NotImplementedError

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        """Return an unfitted estimator whose fit reaches the stage; it may go further."""
        return estimator


def register_staging(cls: type | str, staging: Staging) -> None:
    """Register the adapter of a class of learners, so that its stages of training can be used.

    Parameters
    ----------
    cls : type or str
        The class, or "package.ClassName" for a package that need not be installed.
        Subclasses inherit it.
    staging : Staging
        The adapter; see `Staging` for an example. A later registration replaces an
        earlier one.
    """
    if not isinstance(staging, Staging):
        raise invalid_input(
            expected="an instance of Staging",
            got=repr(staging),
            hint="Derive the adapter from sklearn_calib.staged.Staging and pass an instance",
            error=TypeError,
        )
    _STAGING_BY_TYPE[cls] = staging
    # The new adapter may be the better match for a type in the cache.
    _STAGING_CACHE.clear()


def find_staging(estimator: Estimator) -> Staging | None:
    """Look up the adapter of a classifier, of a pipeline that ends in one, or of a frozen one.

    Parameters
    ----------
    estimator : classifier

    Returns
    -------
    staging : Staging or None
        None if the learner has no stages.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.staged import find_staging
    >>> find_staging(HistGradientBoostingClassifier(max_iter=50)).unit
    'boosting rounds'
    >>> find_staging(LogisticRegression()) is None
    True
    """
    if isinstance(estimator, FrozenEstimator):
        return find_staging(estimator.estimator)
    if isinstance(estimator, Pipeline):
        inner = find_staging(estimator.steps[-1][1])
        return None if inner is None else _PipelineStaging(inner)
    staging = _find_adapter(estimator)
    return staging if staging is not None and staging.applies(estimator) else None


def classifier_logits(estimator: Estimator, X: Features) -> ArrayLike | None:
    """Return the logits of a fitted classifier from its adapter (`Staging.logits`), or None.

    Parameters
    ----------
    estimator : classifier
        Also a pipeline that ends in one, or a frozen one.
    X : array-like of shape (n_samples, n_features)

    Returns
    -------
    logits : array of shape (n_samples, n_classes) or (n_samples,), or None

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.staged import classifier_logits
    >>> classifier_logits(LogisticRegression().fit([[0], [1]], [0, 1]), [[0]]) is None
    True
    """
    if isinstance(estimator, FrozenEstimator):
        return classifier_logits(estimator.estimator, X)
    piped = isinstance(estimator, Pipeline)
    learner = estimator[-1] if piped else estimator
    staging = _find_adapter(learner)
    # Without such a method the features need not be transformed.
    if staging is None or type(staging).logits is Staging.logits:
        return None
    return staging.logits(learner, _transform_features(estimator, X) if piped else X)


def _transform_features(pipeline, X):
    """Transform X with all steps of a pipeline but the last."""
    return pipeline[:-1].transform(X) if len(pipeline.steps) > 1 else X


def _find_adapter(learner):
    """Return the adapter of a learner or of a base class, or None."""
    kind = type(learner)
    # The names of all base classes are compared, so the result is kept.
    if kind not in _STAGING_CACHE:
        names = [
            f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in kind.__mro__
        ]
        pairs = zip(kind.__mro__, names, strict=True)
        staged = (
            _STAGING_BY_TYPE.get(cls) or _STAGING_BY_TYPE.get(name)
            for cls, name in pairs
        )
        _STAGING_CACHE[kind] = next(filter(None, staged), None)
    return _STAGING_CACHE[kind]


def copy_with_attributes(fitted: Estimator, **attributes: Any) -> Estimator:
    """Return a shallow copy of a fitted estimator with other attributes."""
    changed = copy.copy(fitted)
    for name, value in attributes.items():
        setattr(changed, name, value)
    return changed


class _PipelineStaging(Staging):
    """The stages of the last step, on features that the other steps have transformed."""

    def __init__(self, inner):
        self.inner = inner
        self.unit = inner.unit

    def n_stages(self, estimator):
        return self.inner.n_stages(estimator.steps[-1][1])

    def with_recording(self, estimator):
        return _set_last_step_in_place(
            clone(estimator), self.inner.with_recording(estimator.steps[-1][1])
        )

    def fit(self, estimator, X, y, **params):
        name, learner = estimator.steps[-1]
        recorder = _StagedFitStep(learner, self.inner)
        # The pipeline transforms the features itself and passes them to the recorder,
        # which fits the learner stage by stage.
        estimator.steps[-1] = (name, recorder)
        try:
            estimator.fit(X, y, **params)
        finally:
            estimator.steps[-1] = (name, recorder.learner)
        return estimator

    def staged_scores(self, fitted, X):
        return self.inner.staged_scores(fitted[-1], _transform_features(fitted, X))

    def staged_proba(self, fitted, X):
        # Without such a method the features need not be transformed.
        if type(self.inner).staged_proba is Staging.staged_proba:
            return None
        return self.inner.staged_proba(fitted[-1], _transform_features(fitted, X))

    def caveat(self, estimator):
        return self.inner.caveat(estimator.steps[-1][1])

    def truncate_to_stage(self, fitted, stage):
        return _set_last_step_in_place(
            copy.copy(fitted), self.inner.truncate_to_stage(fitted[-1], stage)
        )

    def with_max_stages(self, estimator, stage):
        return _set_last_step_in_place(
            clone(estimator), self.inner.with_max_stages(estimator.steps[-1][1], stage)
        )


def _set_last_step_in_place(pipeline, learner):
    pipeline.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], learner)]
    return pipeline


class _StagedFitStep(BaseEstimator):
    """Stands for the last step of a pipeline while the pipeline is fitted."""

    def __init__(self, learner, staging):
        self.learner = learner
        self.staging = staging

    def fit(self, X, y, **params):
        self.staging.fit(self.learner, X, y, **params)
        return self

    def get_metadata_routing(self):
        return get_routing_for_object(self.learner)
