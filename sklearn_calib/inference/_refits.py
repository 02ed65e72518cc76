"""An estimator fitted again and again: on rows drawn with replacement, and on folds."""

import warnings
from collections.abc import Iterator
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object

from .._sklearn_compat import StratifiedGroups, clone_by_value, routing_enabled, safe_split
from .._typing import Estimator, Features, FloatArray, IntArray
from ..canonical import canonical_labels, canonical_proba
from ..exceptions import caution, refuse
from ..metrics import Case

_MOST_DRAWS = 1000  # of one sample with all classes
FOLDS = 10


class Refit(NamedTuple):
    """What a fit on some rows says of all rows.

    Attributes
    ----------
    proba : ndarray of shape (n_samples, n_classes)
    counts : ndarray of shape (n_samples,), float
        How often each row was in the fit.
    n_redrawn : int
        Samples that were thrown away because a class was missing.
    """

    proba: FloatArray
    counts: FloatArray
    n_redrawn: int


class Refits:
    """Rows, and an estimator that is cloned and fitted on some of them.

    Parameters
    ----------
    estimator : classifier
    X : array, sparse matrix or table of n_samples rows
    case : Case
        Labels, classes and weights of the rows.
    weighted : bool
        Whether the weights are passed to fit, where it takes sample_weight.
    groups : ndarray of shape (n_samples,), intp, or None
        Numbers of rows that are drawn together.
    """

    def __init__(
        self,
        estimator: Estimator,
        X: Features,
        case: Case,
        weighted: bool,
        groups: IntArray | None,
    ) -> None:
        self.estimator, self.X, self.where = estimator, X, case.where
        self.classes, self.codes, self.groups = case.classes, case.codes, groups
        self.weight = case.weight if weighted else None
        plain = not (_is_of("xgboost", estimator) or self.classes.dtype.kind == "S")
        self._names = self.classes if plain else np.arange(len(self.classes))
        self._labels = self._names[self.codes]
        tagged = hasattr(estimator, "__sklearn_tags__")
        self._pairwise = tagged and bool(get_tags(estimator).input_tags.pairwise)
        self._params = self._metadata()
        splits_groups = groups is not None and _name_in_fit(estimator, "groups") is not None
        self._folds = None if splits_groups else _folds_of_copies(estimator, self.codes, groups)

    @property
    def n_entries(self) -> int:
        """Numbers that one model predicts."""
        return len(self.codes) * len(self.classes)

    def _metadata(self):
        """What else is passed to fit, by the names of its arguments: one entry per row."""
        found = {}
        if self.weight is not None:
            name = _name_in_fit(self.estimator, "sample_weight")
            if name is None:
                rule = "an estimator whose fit takes sample_weight"
                got = f"{type(self.estimator).__name__}, fitted without weights"
                cure = "The measures use them; take another estimator to fit with them as well"
                caution(self.where, rule, got, cure, UserWarning)
            else:
                found[name] = self.weight
        if self.groups is not None:
            name = _name_in_fit(self.estimator, "groups")
            if name is not None:
                found[name] = self.groups
        return found

    def fit(self, rows: IntArray, *, copies: bool = False) -> Estimator:
        """A clone fitted on these rows; `copies` says that some may be there more than once."""
        fitted = clone_by_value(self.estimator)
        if copies and self._folds is not None:
            name, fold = self._folds
            fitted.set_params(**{name: PredefinedSplit(fold[rows])})
        part = self._part(rows)
        params = {name: values[rows] for name, values in self._params.items()}
        fitted.fit(part, self._labels[rows], **params)
        if not hasattr(fitted, "predict_proba"):
            refuse(
                self.where,
                "a classifier with predict_proba",
                type(fitted).__name__,
                "Wrap it: CalibratedModel(estimator) makes probabilities of its scores",
                error=TypeError,
            )
        return fitted

    def _part(self, rows):
        if type(self.X) is np.ndarray and not self._pairwise:
            return self.X[rows]  # 50 times faster
        return safe_split(self.estimator, self.X, self.codes, rows)[0]

    def proba(self, fitted: Estimator, train: IntArray) -> FloatArray:
        """Probabilities of all rows by an estimator that was fitted on the rows `train`."""
        X = self.X
        if self._pairwise:
            X, _ = safe_split(fitted, X, self.codes, np.arange(len(self.codes)), train)
        found = canonical_proba(
            fitted.predict_proba(X), n_classes=len(self.classes), _where=self.where
        )
        plain = np.asarray(found)
        if np.array_equal(fitted.classes_, self._names):
            return plain
        _, columns = canonical_labels(fitted.classes_, classes=self._names, _where=self.where)
        return plain if (np.diff(columns) > 0).all() else plain[:, np.argsort(columns)]

    def resampled(self, rng: np.random.Generator) -> Refit:
        """A fit on rows, or on groups of rows, drawn with replacement; all classes are there."""
        for redrawn in range(_MOST_DRAWS):
            rows = self._drawn(rng)
            if np.bincount(self.codes[rows], minlength=len(self.classes)).all():
                count = np.bincount(rows, minlength=len(self.codes)).astype(np.float64)
                return Refit(self.proba(self.fit(rows, copies=True), rows), count, redrawn)
        refuse(
            self.where,
            "rows of each class in a bootstrap sample",
            f"{_MOST_DRAWS} samples without",
            "Give rare classes more rows, or groups that are finer",
        )

    def _drawn(self, rng):
        n = len(self.codes)
        if self.groups is None:
            return np.sort(rng.integers(0, n, n))
        order, starts, size = self._layout
        chosen = rng.integers(0, len(size), len(size))
        return np.concatenate([order[starts[g] : starts[g] + size[g]] for g in np.sort(chosen)])

    @cached_property
    def _layout(self):
        size = np.bincount(self.groups)
        return np.argsort(self.groups, kind="stable"), np.cumsum(size) - size, size

    def cross_fitted(self, rng: np.random.Generator) -> Refit:
        """Probabilities of each row by a fit on the other folds of a random partition."""
        for redrawn in range(_MOST_DRAWS):
            parts = list(self._partition(rng))
            if all(len(np.unique(self.codes[train])) == len(self.classes) for train, _ in parts):
                proba = np.empty((len(self.codes), len(self.classes)))
                for train, test in parts:
                    proba[test] = self.proba(self.fit(train), train)[test]
                return Refit(proba, np.ones(len(self.codes)), redrawn)
        rule, got = "rows of each class outside every fold", f"{_MOST_DRAWS} partitions without"
        refuse(self.where, rule, got, "Give rare classes more rows, or groups that are finer")

    def _partition(self, rng):
        seed = int(rng.integers(2**32))
        kind = StratifiedKFold if self.groups is None else StratifiedGroups
        folds = kind(self.n_folds, shuffle=True, random_state=seed)
        return folds.split(self.codes, self.codes, self.groups)

    @property
    def n_folds(self) -> int:
        """Folds of a partition: ten, or as many as the rarest class has rows or groups."""
        if self.groups is None:
            rarest = int(np.bincount(self.codes).min())
        else:
            pairs = np.unique(np.column_stack([self.codes, self.groups]), axis=0)
            rarest = int(np.bincount(pairs[:, 0]).min())
        if rarest < 2:
            kind = "rows" if self.groups is None else "groups"
            cure = "Leave that class out, or take method='optimism'"
            refuse(self.where, f"two {kind} of each class for folds", f"{rarest}", cure)
        return min(FOLDS, rarest)


def check_estimator_given(estimator: Estimator, where: str) -> None:
    """Refuse what cannot be fitted again; warn where a part of it will not be."""
    if isinstance(estimator, type) or not (
        hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    ):
        rule = "estimator as a classifier of scikit-learn's kind"
        cure = "Pass an instance, such as LogisticRegression(), and then X and y"
        refuse(where, rule, repr(estimator)[:60], cure, TypeError)
    if isinstance(estimator, FrozenEstimator):
        refuse(
            where,
            "an estimator that can be fitted again",
            "a FrozenEstimator",
            "Pass the estimator itself; predictions of a fitted model for rows that it has not "
            "seen are judged by validation_summary(y, model.predict_proba(X))",
            error=TypeError,
        )
    if any(isinstance(part, FrozenEstimator) for part in estimator.get_params().values()):
        caution(
            where,
            "an estimator that learns everything again on each resample",
            "a FrozenEstimator inside of it",
            "What that has learned is taken as given: pass the estimator itself if it was fitted "
            "on these rows",
        )


def _is_of(package, estimator):
    """Whether an estimator, or the end of a pipeline, comes from a package."""
    if isinstance(estimator, Pipeline):
        return _is_of(package, estimator.steps[-1][1])
    return any(cls.__module__.partition(".")[0] == package for cls in type(estimator).__mro__)


def _name_in_fit(estimator, name):
    """Under which name fit takes weights or groups; None where it does not."""
    if isinstance(estimator, Pipeline) and routing_enabled():
        known = get_routing_for_object(estimator).consumes("fit", [name])
        return name if name in known else None
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = _name_in_fit(last, name)
        return inner and f"{step}__{inner}"
    if not hasattr(estimator, "fit"):
        return None
    known = signature(estimator.fit).parameters
    if name in known:
        return name
    if not any(one.kind is Parameter.VAR_KEYWORD for one in known.values()):
        return None
    if name == "groups":  # where folds are made of them
        grouping = "Group" in type(getattr(estimator, "cv", None)).__name__
        searches = hasattr(estimator, "param_grid") or hasattr(estimator, "param_distributions")
        return name if hasattr(estimator, "recalibrator") or (searches and grouping) else None
    inner = getattr(estimator, "estimator", None)
    return None if inner is None else _name_in_fit(inner, name)


def _folds_of_copies(estimator, codes, groups):
    """(name of the parameter, fold of each row), for estimators that make folds by number.

    Copies of a row, or of a group, that a bootstrap sample has are then in one fold: a fold that
    is judged by copies of rows of the fit says too much good.
    """
    name, given = "cv", estimator.get_params(deep=False)
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        name = f"{step}__cv"
        given = {f"{step}__{key}": value for key, value in _params(last).items()}
    if name not in given or isinstance(given[name], bool):
        return None
    n_folds = 5 if given[name] is None else given[name]
    if not isinstance(n_folds, int | np.integer):
        return None
    kind = StratifiedKFold if groups is None else StratifiedGroups
    fold = np.zeros(len(codes), dtype=np.intp)
    least = int(np.bincount(codes).min()) if groups is None else len(np.unique(groups))
    splits: Iterator[Any] = kind(max(2, min(int(n_folds), least))).split(codes, codes, groups)
    with warnings.catch_warnings():  # classes of fewer rows than folds
        warnings.simplefilter("ignore", UserWarning)
        for number, (_, test) in enumerate(splits):
            fold[test] = number
    return name, fold


def _params(estimator):
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
