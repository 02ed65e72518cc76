"""SelectiveClassifier: a classifier that abstains if it would err too often."""

from collections.abc import Hashable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import indexable
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._argument_checks import check_between, is_real_number, is_scalar_equal
from .._kernels._proportion import compute_exact_interval, compute_upper_bound
from .._kernels._risk_coverage import (
    CONFIDENCE_DIGITS,
    find_n_answered_levels_and_bound,
)
from .._random import make_random_state
from .._show import make_printable
from .._sklearn_compat import check_method_params, safe_split
from .._typing import AnyArray, ArrayLike, Estimator, Features, RandomStateLike, Self
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    check_same_length,
    read_labels,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ..metrics import BinaryProblem
from ._cost_sensitive import DecidingClassifier
from ._costs import make_type_preserving_array
from ._risk_coverage import pool_confidence_mass_and_errors


class Cutoff(NamedTuple):
    """The threshold from which rows, or those of a group, are answered, and its estimates."""

    threshold: float
    coverage: float
    risk: float
    risk_bound: float
    coverage_interval: tuple[float, float]


class SelectiveClassifier(DecidingClassifier):
    """A classifier that answers if it is confident enough for an error rate, or a share of rows.

    With `max_risk` and probability 1 - `delta` over the rows given to fit, at most a
    share `max_risk` of the answers to new rows of the same law is wrong. With
    `coverage` that share of the rows is answered, the most confident ones. Either for
    all rows, or for each group.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``. A fitted one in a ``sklearn.frozen.FrozenEstimator``
        stays as it is, and all rows given to fit choose the threshold: pass rows that
        it has not seen. Another one is fitted on a part of the rows, and the others
        choose the threshold.
    max_risk : float in (0, 1), default=None
        The largest error rate among the answers. By default 0.05, unless `coverage` is
        given.
    delta : float in (0, 1), default=0.1
        The probability that the guarantee fails; with groups, that it fails in any of
        them.
    method : {"sgr"}, default="sgr"
        Selection with guaranteed risk, by bisection.
    coverage : float in (0, 1], default=None
        Instead of `max_risk`: answer at least this share of the rows that choose the
        threshold, and as few more as rows of equal confidence allow. The weights of
        rows count.
    abstain_label : object, default=None
        What `predict` returns where it does not answer; no class. One of the type of
        the labels, such as -1 or "unsure", keeps their dtype; with None `predict`
        returns an array of objects, which ``np.unique`` and measures of scikit-learn
        cannot sort.
    calibration_size : float in (0, 1), default=0.5
        The share of the rows, stratified, that choose the threshold; of a
        FrozenEstimator all do.
    random_state : int, Generator, RandomState or None, default=0
        Of that division.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    classes_ : ndarray of shape (n_classes,)
    threshold_ : float
        Rows are answered whose largest probability is at least that; 0 if all rows
        that chose it are answered, infinite if none is. Not there after a fit with
        groups.
    coverage_ : float
        The share of the rows that chose the threshold which are answered.
    coverage_interval_ : tuple of float
        Of the share of new rows that will be answered, at level 1 - `delta`; see Notes.
    risk_ : float
        The error rate among these; NaN if there is none.
    risk_bound_ : float
        The upper bound of the error rate of new rows; 1 if no row is answered. With
        groups the largest of all.
    thresholds_, coverages_, risks_, risk_bounds_, coverage_intervals_ : dict
        The same of each group, after a fit with groups; each with all of `delta` shared
        equally among them.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the classifier inside defines them.

    Raises
    ------
    ValueError
        `max_risk`, `delta` or `calibration_size` outside (0, 1), `coverage` outside (0,
        1] or beside `max_risk`, an `abstain_label` that is a class, an unknown method,
        one class only, groups that are missing, or given to a classifier that was
        fitted without.
    TypeError
        A classifier without ``predict_proba``.

    Warns
    -----
    CalibrationWarning
        No number of answers that was tried has an error rate that is surely at most
        `max_risk`; all rows are abstained from, or all of the groups that are named.
        Groups at predict that fit has not seen; their rows are abstained from.

    Notes
    -----
    The rows are sorted by confidence, ties together, and a bisection of ceil(log2(n +
    1)) steps looks for the largest number of answers whose upper bound of the error
    rate (Clopper and Pearson's, at level `delta` over the number of steps) is at most
    `max_risk`. New rows that differ from those given to fit have no guarantee, and
    neither has a single class, nor a group unless `groups` are given. Each of G groups
    then has its own threshold, with `delta` / G: with probability 1 - `delta` the
    guarantee holds in all of them. It takes some rows: with no error at all among n
    answers, the bound is about log(steps / delta) / n. The guarantee is conservative
    (``benchmarks/decisions``): allowed to fail in 10 % of the draws, it failed in 1 %,
    of one group or of any of four.

    With `coverage` the threshold is a quantile of the confidence. If k of n rows are
    answered and confidences are continuous, the share of new rows that will be answered
    has the law Beta(k, n + 1 - k); `coverage_interval_` goes from its lower quantile to
    the upper one of Beta(k + 1, n - k), which allows for ties. Weighted rows count as
    sum(w)^2 / sum(w^2) rows. `risk_bound_` is then Clopper and Pearson's at level
    `delta` for the answered rows, without a search: at 10 % it was too low in 6 to 8 %
    of the draws, some bound of four groups in 7 to 9 %.

    The guarantee does not need calibrated probabilities. If they are calibrated, the
    mean of 1 - confidence over the answers is the error rate to expect.

    `score` is the share of rows that are answered rightly, so that a search maximises
    the coverage. Cost: the fit, and O(n log n).

    References
    ----------
    Geifman, El-Yaniv (2017), "Selective classification for deep neural networks",
    algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.decisions import SelectiveClassifier
    >>> X, y = make_classification(4000, flip_y=0.02, random_state=0)
    >>> model = SelectiveClassifier(LogisticRegression(), max_risk=0.08).fit(X[:3000], y[:3000])
    >>> answers = model.predict(X[3000:])
    >>> answered = answers != None
    >>> bool(0.5 < answered.mean() < 1), bool((answers != y[3000:])[answered].mean() < 0.08)
    (True, True)
    """

    threshold_: float
    coverage_: float
    risk_: float
    risk_bound_: float
    coverage_interval_: tuple[float, float]
    thresholds_: dict[Hashable, float]
    coverages_: dict[Hashable, float]
    risks_: dict[Hashable, float]
    risk_bounds_: dict[Hashable, float]
    coverage_intervals_: dict[Hashable, tuple[float, float]]

    _parameter_constraints: ClassVar = {
        "estimator": "no_validation",
        "max_risk": [Real, None],
        "delta": [Real],
        "method": [StrOptions({"sgr"})],
        "coverage": [Real, None],
        "abstain_label": "no_validation",
        "calibration_size": [Real],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        estimator: Estimator,
        max_risk: float | None = None,
        delta: float = 0.1,
        method: Literal["sgr"] = "sgr",
        *,
        coverage: float | None = None,
        abstain_label: Any = None,
        calibration_size: float = 0.5,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.estimator = estimator
        self.max_risk = max_risk
        self.delta = delta
        self.method = method
        self.coverage = coverage
        self.abstain_label = abstain_label
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifier, unless it is frozen, and choose the threshold on other rows.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels: integers, text, booleans.
        groups : array-like of shape (n_samples,), default=None
            A threshold for each group of rows; `predict` and `score` then need theirs.
        **fit_params : dict
            Passed to the classifier's fit, those with one entry per row for its rows;
            with metadata routing enabled, what it requests. The guarantee counts rows,
            not their weights; `coverage` is a share of their ``sample_weight``, also of
            a frozen classifier.

        Returns
        -------
        self : object
        """
        self._check_arguments()
        check_and_get_common_index(X, y, groups, fit_params.get("sample_weight"))
        classes, codes = self._check_and_read_classes_and_codes(y)
        for label in classes.tolist():
            if is_scalar_equal(self.abstain_label, label):
                raise invalid_input(
                    expected="an abstain_label that is not a class",
                    got=repr(self.abstain_label),
                    hint="Leave it out, or choose another word",
                )
        group_names = (
            None
            if groups is None
            else _read_groups_or_raise_if_missing(groups, len(codes))
        )
        weight = canonical_weight(fit_params.get("sample_weight"), len(codes))
        estimator = self.estimator
        rows = slice(None)
        held_out = X
        if not self._is_frozen:
            # Lists and sparse matrices of other formats cannot be indexed by rows.
            X, codes = indexable(X, codes)
            rng = make_random_state(self.random_state)
            # The bound holds for rows that the classifier was not fitted to, so a part
            # is held out.
            splitter = StratifiedShuffleSplit(
                1, test_size=self.calibration_size, random_state=rng
            )
            ((train, rows),) = splitter.split(codes, codes)
            params = check_method_params(
                X, params=self._route_fit_params(**fit_params), indices=train
            )
            train_features, _ = safe_split(estimator, X, codes, train)
            # A kernel matrix of the held-out rows has the columns of the training rows.
            held_out, _ = safe_split(estimator, X, codes, rows, train)
            estimator = self._fit_estimator(
                train_features, classes[codes[train]], params
            )
        proba = self._predict_ordered_proba(estimator, held_out, classes)
        check_same_length(codes[rows], proba)
        held_out_groups = None if group_names is None else group_names[rows]
        self._set_thresholds_and_estimates(
            np.asarray(proba), codes[rows], weight[rows], held_out_groups
        )
        self._set_fitted_attributes(estimator, classes)
        return self

    def predict(self, X: Features, groups: ArrayLike | None = None) -> AnyArray:
        """Predict the class with the largest probability, or `abstain_label`.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), default=None
            After a fit with groups: those of the rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Of the dtype of ``classes_`` if each row is answered or `abstain_label`
            is of that type, else of dtype object.
        """
        check_is_fitted(self)
        check_and_get_common_index(X, groups)
        chosen, answered = self._predict_positions_and_answered(X, groups)
        if answered.all():
            return self.classes_[chosen]
        # The array of predictions must hold the classes and the label without a change
        # of type.
        label = np.asarray(self.abstain_label)
        names = make_type_preserving_array([*self.classes_.tolist(), label.tolist()])
        if label.dtype.kind in "iu" and self.classes_.dtype.kind in "iuf":
            # Integers beside an integer label stay a numeric array, so that comparisons
            # with `y` work.
            dtype = np.promote_types(self.classes_.dtype, np.min_scalar_type(label))
            names = names.astype(dtype)
        return names[np.where(answered, chosen, len(self.classes_))]

    def score(
        self, X: Features, y: ArrayLike, groups: ArrayLike | None = None
    ) -> float:
        """Compute the share of rows that are answered correctly.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), default=None
            After a fit with groups: those of the rows.

        Returns
        -------
        score : float
            In [0, 1].
        """
        check_is_fitted(self)
        check_and_get_common_index(X, y, groups)
        _, codes = read_labels(y, classes=self.classes_, input_name="y")
        chosen, answered = self._predict_positions_and_answered(X, groups)
        return float(np.mean(answered & (chosen == codes)))

    def _predict_positions_and_answered(self, X, groups):
        """Return the position of the largest probability of each row and whether it is answered."""
        proba = np.asarray(self.predict_proba(X))
        threshold = self._look_up_row_or_common_threshold(groups, len(proba))
        return proba.argmax(axis=1), _reaches_threshold(proba.max(axis=1), threshold)

    def _look_up_row_or_common_threshold(self, groups, n_samples):
        """Return the threshold of each row, or the one of all rows."""
        threshold_by_group = getattr(self, "thresholds_", None)
        if threshold_by_group is None:
            if groups is not None:
                raise invalid_input(
                    expected="rows without groups, as in fit",
                    got="groups",
                    hint="Leave them out, or pass groups to fit",
                )
            return self.threshold_
        if groups is None:
            raise invalid_input(
                expected="the groups of the rows, as fit had them",
                got="none",
                hint="Pass groups",
            )
        row_groups = _read_groups_or_raise_if_missing(groups, n_samples)
        names = list(dict.fromkeys(row_groups.tolist()))
        unseen = [name for name in names if name not in threshold_by_group]
        if unseen:
            unseen_groups = np.array(unseen, dtype=row_groups.dtype)
            n_unseen = np.isin(row_groups, unseen_groups).sum()
            warn_calibration(
                expected="groups that fit has seen",
                got=f"{_join_max_5_names(unseen)} in {n_unseen} rows",
                hint="These rows are abstained from. Fit with rows of these groups",
                estimator=self,
            )
        # Rows of a group that `fit` did not have are not answered: there is no
        # guarantee for them.
        return np.array(
            [threshold_by_group.get(name, np.inf) for name in row_groups.tolist()]
        )

    def _check_arguments(self):
        """Reject parameters outside their range, and two that exclude each other."""
        hints = {"delta": "Leave the default", "calibration_size": "Leave the default"}
        if self.max_risk is not None:
            hints["max_risk"] = "Pass for instance 0.05"
        for name, hint in hints.items():
            check_between(
                "?",
                getattr(self, name),
                0,
                1,
                expected=f"{name} strictly between 0 and 1",
                hint=hint,
            )
        coverage = self.coverage
        if coverage is not None:
            if not is_real_number(coverage) or not 0 < coverage <= 1:
                raise invalid_input(
                    "coverage",
                    expected="coverage above 0 and at most 1",
                    got=repr(coverage),
                    hint="Pass for instance 0.9",
                )
            if self.max_risk is not None:
                raise invalid_input(
                    "max_risk",
                    expected="max_risk or coverage",
                    got=f"max_risk={self.max_risk!r} and coverage={coverage!r}",
                    hint="Leave one of them out",
                )
        if not is_scalar_equal(self.method, "sgr"):
            raise invalid_input(
                expected="method 'sgr'", got=repr(self.method), hint="Leave the default"
            )

    def _set_thresholds_and_estimates(self, proba, codes, weight, groups):
        """Set the threshold, or that of each group."""
        error = (proba.argmax(axis=1) != codes).astype(float)
        confidence = proba.max(axis=1)
        # Attributes of an earlier fit, with groups or without, must not remain.
        for name in ("threshold_", *(f"{field}s_" for field in Cutoff._fields)):
            vars(self).pop(name, None)
        rows_by_group: dict[Hashable, Any] = {None: slice(None)}
        if groups is not None:
            names = dict.fromkeys(groups.tolist())
            rows_by_group = {name: groups == name for name in names}
        # Bonferroni: all groups hold their rate together with probability 1 - delta.
        delta = self.delta / len(rows_by_group)
        cutoffs = {}
        for name, rows in rows_by_group.items():
            cutoffs[name] = self._choose_possibly_infinite_cutoff(
                confidence[rows], error[rows], weight[rows], delta
            )
        self._warn_no_threshold(cutoffs, len(codes))
        answered = np.zeros(len(codes), dtype=bool)
        for name, rows in rows_by_group.items():
            threshold = cutoffs[name].threshold
            answered[rows] = _reaches_threshold(confidence[rows], threshold)
        counted_weight = weight if self.coverage is not None else np.ones(len(codes))
        estimates = _get_coverage_risk_and_coverage_interval(
            answered, error, counted_weight, self.delta
        )
        self.coverage_, self.risk_, self.coverage_interval_ = estimates
        # The bounds of the groups hold together, hence so does their maximum.
        self.risk_bound_ = max(cutoff.risk_bound for cutoff in cutoffs.values())
        if groups is None:
            self.threshold_ = cutoffs[None].threshold
            return
        for field in Cutoff._fields:
            values = {name: getattr(cutoff, field) for name, cutoff in cutoffs.items()}
            setattr(self, f"{field}s_", values)

    def _choose_possibly_infinite_cutoff(self, confidence, error, weight, delta):
        """Choose the threshold for some rows, with its coverage, risk and bound."""
        # Weights do not enter the guarantee: the exact binomial bound is one of counts.
        counted_weight = np.ones(len(error))
        if self.coverage is not None:
            has_weight = weight > 0
            confidence = confidence[has_weight]
            error = error[has_weight]
            counted_weight = weight[has_weight]
        if not len(error):
            return Cutoff(np.inf, 0.0, np.nan, 1.0, (0.0, 1.0))
        rows = BinaryProblem(confidence, error, np.ones(len(error)))
        # Rows of equal confidence are accepted together, otherwise the order of the
        # rows would decide.
        level, mass, errors = pool_confidence_mass_and_errors(rows)
        if self.coverage is None:
            risk = 0.05 if self.max_risk is None else self.max_risk
            # The search of Geifman and El-Yaniv (2017): bisection over the coverage,
            # each step with a bound at a part of delta.
            count, bound = find_n_answered_levels_and_bound(mass, errors, risk, delta)
        else:
            _, weighted_mass, _ = pool_confidence_mass_and_errors(
                replace(rows, weight=counted_weight)
            )
            cumulated_coverage = np.cumsum(weighted_mass) / weighted_mass.sum()
            # The smallest coverage of at least the requested share; the slack absorbs
            # rounding of the cumulative sum.
            count = int(np.searchsorted(cumulated_coverage, self.coverage - 1e-12)) + 1
            count = min(count, len(level))
            n_errors = errors[:count].sum()
            bound = float(compute_upper_bound(n_errors, mass[:count].sum(), delta))
        threshold = float(level[count - 1]) if count else np.inf
        # If all calibration rows are answered, the bound is that of answering always, so
        # new rows of a lower confidence are answered too.
        if count == len(level):
            threshold = 0.0
        answered = _reaches_threshold(confidence, threshold)
        coverage, risk, interval = _get_coverage_risk_and_coverage_interval(
            answered, error, counted_weight, delta
        )
        return Cutoff(threshold, coverage, risk, bound, interval)

    def _warn_no_threshold(self, cutoffs, n_samples):
        """Warn of groups (or all rows) for which no threshold has a small enough bound."""
        names = [name for name in cutoffs if cutoffs[name].threshold == np.inf]
        if not names:
            return
        risk = 0.05 if self.max_risk is None else self.max_risk
        groups = "" if None in cutoffs else f" in the groups {_join_max_5_names(names)}"
        warn_calibration(
            expected="confident rows with an error rate that is surely small enough",
            got=f"no bound of at most max_risk={risk:g} on {n_samples} rows{groups}",
            hint=(
                f"All {'rows' if not groups else 'their rows'} are abstained from. Allow "
                "a larger max_risk or delta, or pass more rows"
            ),
            estimator=self,
        )


def _reaches_threshold(confidence, threshold):
    """Return whether rows are answered."""
    # Probabilities of one row in another batch may differ in the last bits; rounding
    # keeps it on one side of the threshold.
    rounded = np.round(confidence, CONFIDENCE_DIGITS)
    return rounded >= np.round(threshold, CONFIDENCE_DIGITS)


def _get_coverage_risk_and_coverage_interval(answered, error, counted_weight, delta):
    """Compute the share of answered rows, their error rate, and an interval for new rows.

    `counted_weight` is the weight with which rows count; see Notes of the class.
    """
    total = float(counted_weight.sum())
    mass = float(counted_weight @ answered)
    risk = float((counted_weight * error) @ answered) / mass if mass else np.nan
    # Kish's number of rows; equal weights give the number of rows itself.
    n_rows = total**2 / float(counted_weight @ counted_weight)
    low, high = compute_exact_interval(mass / total * n_rows, n_rows, 1 - delta)
    return mass / total, risk, (float(low), float(high))


def _read_groups_or_raise_if_missing(groups, n_samples):
    """Return the group of each row, none of which is missing."""
    names = np.asarray(groups)
    if names.shape != (n_samples,):
        raise invalid_input(
            expected=f"one group for each of the {n_samples} rows",
            got=f"shape {names.shape}",
            hint="Pass one column",
        )
    # Other types, such as dates and categories, are compared as Python objects.
    names = names.astype(object) if names.dtype.kind not in "biufUS" else names
    # NaN and NaT do not equal themselves.
    for row, name in enumerate(names.tolist()):
        if name is None or name != name:
            raise invalid_input(
                expected="a group in every row",
                got="none",
                hint="Name a group of its own for these rows",
                row=row,
            )
    return names


def _join_max_5_names(names):
    text = ", ".join(make_printable(name, 40) for name in names[:5])
    if len(names) > 5:
        text += f" and {len(names) - 5} more"
    return text
