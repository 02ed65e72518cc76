"""SelectiveClassifier: a classifier that abstains where it would err too often."""

from typing import Any, Literal

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from .._kernels._risk_coverage import ROUNDING, largest_coverage, risk_by_coverage
from .._random import legacy_generator
from .._sklearn_compat import check_method_params, safe_split
from .._typing import AnyArray, ArrayLike, Estimator, Features, RandomStateLike, Self
from ..canonical import canonical_labels, canonical_proba, check_same_length
from ..exceptions import caution, is_number, refuse
from ._costs import array_of_names
from ._deciding import DecidingClassifier


class SelectiveClassifier(DecidingClassifier):
    """A classifier that answers only if it is confident enough to keep a guaranteed error rate.

    With probability 1 - `delta` over the rows given to fit, at most a share `max_risk` of the
    answers to new rows of the same law is wrong.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``. A fitted one in a ``sklearn.frozen.FrozenEstimator`` stays as it
        is, and all rows given to fit choose the threshold: pass rows that it has not seen. Another
        one is fitted on a part of the rows, and the others choose the threshold.
    max_risk : float in (0, 1), default=0.05
        The largest error rate among the answers.
    delta : float in (0, 1), default=0.1
        The probability that the guarantee fails.
    method : {"sgr"}, default="sgr"
        Selection with guaranteed risk, by bisection.
    abstain_label : object, default=None
        What `predict` returns where it does not answer; no class.
    calibration_size : float in (0, 1), default=0.5
        The share of the rows, stratified, that choose the threshold; of a FrozenEstimator all do.
    random_state : int, Generator, RandomState or None, default=0
        Of that division.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    classes_ : ndarray of shape (n_classes,)
    threshold_ : float
        Rows are answered whose largest probability is at least that; 0 where all rows that chose it
        are answered, infinite where none is.
    coverage_ : float
        The share of the rows that chose the threshold which are answered.
    risk_ : float
        The error rate among these; NaN where there is none.
    risk_bound_ : float
        The upper bound of the error rate of new rows; 1 where no row is answered.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the classifier inside defines them.

    Raises
    ------
    ValueError
        `max_risk`, `delta` or `calibration_size` outside (0, 1), an `abstain_label` that is a
        class, an unknown method, one class only.
    TypeError
        A classifier without ``predict_proba``.

    Warns
    -----
    CalibrationWarning
        No number of answers that was tried has an error rate that is surely at most `max_risk`;
        all rows are abstained from.

    Notes
    -----
    The rows are sorted by confidence, ties together, and a bisection of ceil(log2(n + 1)) steps
    looks for the largest number of answers whose upper bound of the error rate (Clopper and
    Pearson's, at level `delta` over the number of steps) is at most `max_risk`. New rows that
    differ from those given to fit have no guarantee, and neither has a single class or group. It
    takes some rows: with no error at all among n answers, the bound is about
    log(steps / delta) / n. The guarantee is cautious (``benchmarks/decisions``): allowed to fail in
    10 % of the draws, it failed in 1 %.

    The guarantee does not need calibrated probabilities. If they are calibrated, the mean of
    1 - confidence over the answers is the error rate to expect.

    `score` is the share of rows that are answered rightly, so that a search maximises the coverage.
    Cost: the fit, and O(n log n).

    References
    ----------
    Geifman, El-Yaniv (2017), "Selective classification for deep neural networks", algorithm 1.

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

    def __init__(
        self,
        estimator: Estimator,
        max_risk: float = 0.05,
        delta: float = 0.1,
        method: Literal["sgr"] = "sgr",
        *,
        abstain_label: object = None,
        calibration_size: float = 0.5,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.estimator = estimator
        self.max_risk = max_risk
        self.delta = delta
        self.method = method
        self.abstain_label = abstain_label
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(self, X: Features, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit the classifier, unless it is frozen, and choose the threshold on other rows.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels: integers, text, booleans.
        **fit_params : dict
            Passed to the classifier's fit, those with one entry per row for its rows; with metadata
            routing enabled, what it requests. The guarantee counts rows, whatever their weights.

        Returns
        -------
        self : object
        """
        where = f"{type(self).__name__}.fit"
        self._check_arguments(where)
        classes, codes = self._check_estimator(y, where)
        if self.abstain_label is not None and self.abstain_label in classes.tolist():
            cure = "Leave it out, or choose another word"
            refuse(where, "an abstain_label that is no class", repr(self.abstain_label), cure)
        estimator, rows, held_out = self.estimator, slice(None), X
        if not self._is_frozen:
            X, codes = indexable(X, codes)
            rng = legacy_generator(self.random_state)
            division = StratifiedShuffleSplit(1, test_size=self.calibration_size, random_state=rng)
            ((train, rows),) = division.split(codes, codes)
            params = check_method_params(X, params=self._route(**fit_params), indices=train)
            part, _ = safe_split(estimator, X, codes, train)
            held_out, _ = safe_split(estimator, X, codes, rows, train)
            estimator = self._fitted_estimator(part, classes[codes[train]], params)
        proba = canonical_proba(
            estimator.predict_proba(held_out), n_classes=len(classes), _where=where
        )
        check_same_length(codes[rows], proba, where)
        self._choose(np.asarray(proba), codes[rows], where)
        self._remember(estimator)
        return self

    def predict(self, X: Features) -> AnyArray:
        """The class with the largest probability, or `abstain_label`.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Of the dtype of ``classes_`` where each row is answered or `abstain_label` is of that
            type, else of dtype object.
        """
        check_is_fitted(self)
        chosen, answered = self._answers(X)
        if answered.all():
            return self.classes_[chosen]
        names = array_of_names([*self.classes_.tolist(), self.abstain_label])
        return names[np.where(answered, chosen, len(self.classes_))]

    def score(self, X: Features, y: ArrayLike) -> float:
        """The share of rows that are answered, and rightly.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        score : float
            In [0, 1].
        """
        check_is_fitted(self)
        where = f"{type(self).__name__}.score"
        _, codes = canonical_labels(y, classes=self.classes_, _where=where)
        chosen, answered = self._answers(X)
        return float(np.mean(answered & (chosen == codes)))

    def _answers(self, X):
        """Position of the largest probability of each row, and whether it is answered."""
        proba = np.asarray(self.predict_proba(X))
        least = np.round(self.threshold_, ROUNDING)
        return proba.argmax(axis=1), np.round(proba.max(axis=1), ROUNDING) >= least

    def _check_arguments(self, where):
        for name in ("max_risk", "delta", "calibration_size"):
            value = getattr(self, name)
            if not is_number(value) or not 0 < value < 1:
                cure = "Pass for instance 0.05" if name == "max_risk" else "Leave the default"
                refuse(where, f"{name} strictly between 0 and 1", repr(value), cure)
        if self.method != "sgr":
            refuse(where, "method 'sgr'", repr(self.method), "Leave the default")

    def _choose(self, proba, codes, where):
        error = (proba.argmax(axis=1) != codes).astype(float)
        levels = risk_by_coverage(proba.max(axis=1), error, np.ones(len(codes)))
        confidence, mass, errors = levels
        count, bound = largest_coverage(mass, errors, self.max_risk, self.delta)
        reached = mass[:count].sum()
        self.threshold_ = float(confidence[count - 1]) if count else np.inf
        if count == len(confidence):  # the bound is that of answering always
            self.threshold_ = 0.0
        self.coverage_ = float(reached / len(codes))
        self.risk_ = float(errors[:count].sum() / reached) if count else np.nan
        self.risk_bound_ = bound
        if not count:
            caution(
                where,
                "confident rows with an error rate that is surely small enough",
                f"no bound of at most max_risk={self.max_risk:g} on {len(codes)} rows",
                "All rows are abstained from. Allow a larger max_risk or delta, or pass more rows",
            )
