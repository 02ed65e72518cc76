"""Weights that make source rows look like target rows."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from .._sklearn_compat import clone_by_value, safe_split
from .._typing import CV, Estimator, Features, FloatArray, RandomStateLike
from ..canonical import align_columns, read_array
from ..exceptions import caution, is_number, refuse
from ..recalibrators import folds_of

_FEW = 30  # effective rows
_COVERED = 0.5  # mean of the density ratios, of true ones 1
_SMALLEST = 1e-12  # probabilities that odds are taken of


@dataclass(frozen=True)
class CovariateWeights:
    """The result of `covariate_weights`.

    Attributes
    ----------
    weights : ndarray of shape (n_source,)
        Positive, with mean 1: pass them as ``sample_weight``.
    effective_rows : float
        (sum w)^2 / sum w^2: how many equally weighted rows they are worth.
    limit : float
        What larger weights were cut to, in units of the mean.
    n_limited : int
        How many were.
    auc : float
        How well the classifier tells target rows from source rows, out of fold: 0.5 is a guess;
        near 1 there is hardly a source row like the target's.
    covered : float
        The mean of the density ratios before they were cut and divided by their mean. The true
        ratios have mean 1; less says how much of the target lies where source rows are.
    """

    weights: FloatArray
    effective_rows: float
    limit: float
    n_limited: int
    auc: float
    covered: float


def covariate_weights(
    X_source: Features,
    X_target: Features,
    estimator: Estimator | None = None,
    *,
    cv: CV = 5,
    quantile: float = 0.99,
    random_state: RandomStateLike = 0,
) -> CovariateWeights:
    """Weight source rows so that their features are distributed as in the target rows.

    For covariate shift: the features of the target are distributed otherwise, but the same features
    still mean the same probabilities of the classes. A recalibrator, or a measure, that gets these
    weights as ``sample_weight`` sees the source rows as if they were drawn from the target.

    Parameters
    ----------
    X_source : array-like, sparse matrix or table of shape (n_source, n_features)
        The calibration rows. Labels are not needed.
    X_target : array-like, sparse matrix or table of shape (n_target, n_features)
        Rows of the target, of the same columns.
    estimator : classifier, default=None
        Tells target rows from source rows; needs ``predict_proba``. The weights are its odds, so it
        should be calibrated: a ``CalibratedModel(...)`` is, nearly. By default a logistic
        regression on standardised features, for numbers without missing values; for other
        tables pass a pipeline.
    cv : int, splitter or iterable of (train, test), default=5
        A row's weight comes from a fit that has not seen it. At most as many folds as the smaller
        sample has rows.
    quantile : float in (0, 1], default=0.99
        Larger weights than this quantile are cut to it: a few rows must not decide everything.
    random_state : int, Generator, RandomState or None, default=0
        Shuffles the rows where `cv` is an int.

    Returns
    -------
    found : CovariateWeights
        ``found.weights`` are the weights, ``found.effective_rows`` is what they cost.

    Raises
    ------
    ValueError
        Tables with different columns, fewer than two rows in a sample, a `quantile` outside (0, 1],
        fewer than two folds, or folds that do not test every source row; without an `estimator`,
        text and missing values.
    TypeError
        An estimator without ``predict_proba``.

    Warns
    -----
    CalibrationWarning
        The weights are worth fewer than 30 rows, or the density ratios have a mean below 0.5:
        source and target hardly overlap.

    Notes
    -----
    The density ratio is P(target | x) / P(source | x) n_source / n_target by Bayes. Where target
    rows lie outside of what the source covers, no weights help. For other class frequencies take
    `PriorShift`: it is a shift of another kind. Cost: one fit and one prediction per fold.

    References
    ----------
    Shimodaira (2000), "Improving predictive inference under covariate shift by weighting the
    log-likelihood function", for the weights. Bickel, Brueckner, Scheffer (2009), "Discriminative
    learning under covariate shift", section 3, for their estimate by a classifier. Kish (1965),
    "Survey sampling", for the effective rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.shift import covariate_weights
    >>> rng = np.random.default_rng(0)
    >>> X, X_target = rng.normal(size=(1000, 2)), rng.normal([1, 0], 1, size=(500, 2))
    >>> found = covariate_weights(X, X_target)
    >>> float(np.average(X[:, 0], weights=found.weights).round(1))
    0.9
    >>> round(found.effective_rows)
    470
    """
    where = "covariate_weights"
    if not is_number(quantile) or not 0 < quantile <= 1:
        refuse(where, "a quantile in (0, 1]", repr(quantile), "Pass 0.99, or 1 to cut nothing")
    X, n, m = _stacked(X_source, X_target, where)
    cv = _at_most(cv, min(n, m), where)
    if estimator is None:
        _check_numbers(X, where)
        scaled = StandardScaler(with_mean=not scipy.sparse.issparse(X))
        estimator = make_pipeline(scaled, LogisticRegression(max_iter=1000))
    if not hasattr(estimator, "predict_proba"):
        cure = "Wrap it: CalibratedModel(estimator)"
        refuse(where, "predict_proba", type(estimator).__name__, cure, error=TypeError)
    target = np.repeat([0, 1], [n, m])
    share = np.full(n + m, np.nan)
    for train, test in folds_of(target, cv, random_state):
        model = clone_by_value(estimator)
        model.fit(*safe_split(model, X, target, train))
        rows, _ = safe_split(model, X, target, test, train)
        proba = align_columns(model.predict_proba(rows), model.classes_, np.array([0, 1]), where)
        share[test] = proba[:, 1]
    left = int(np.isnan(share[:n]).sum())
    if left:
        cure = "Use a partition, such as StratifiedKFold"
        refuse(where, "folds that test every source row", f"{left} rows left out", cure)
    tested = ~np.isnan(share)
    share = np.clip(share, _SMALLEST, 1 - _SMALLEST)
    ratio = share[:n] / (1 - share[:n]) * (n / m)
    limit = float(np.quantile(ratio, quantile))
    cut = np.minimum(ratio, limit)
    found = CovariateWeights(
        weights=cut / cut.mean(),
        effective_rows=float(cut.sum() ** 2 / (cut @ cut)),
        limit=limit / float(cut.mean()),
        n_limited=int((ratio > limit).sum()),
        auc=float(roc_auc_score(target[tested], share[tested])),
        covered=float(ratio.mean()),
    )
    if found.effective_rows < _FEW or found.covered < _COVERED:
        caution(
            where,
            "source rows like those of the target",
            f"weights worth {found.effective_rows:.3g} of {n} rows, from density ratios with a "
            f"mean of {found.covered:.2g} instead of 1",
            "The samples hardly overlap and the weights say little; get labelled rows of the "
            "target",
        )
    return found


def _check_numbers(X: Any, where: str) -> None:
    """Refuse what the logistic regression cannot read."""
    try:
        check_array(X, accept_sparse=True, dtype=np.float64)
    except ValueError as error:
        rule = "finite numbers in all columns where no estimator is given"
        cure = "Pass estimator=, a pipeline that encodes text and fills in missing values"
        refuse(where, rule, str(error).splitlines()[0].rstrip("."), cure)


def _at_most(cv: Any, fewest: int, where: str) -> Any:
    """A number of folds of which each can hold a row of both samples; other folds as they are."""
    if not isinstance(cv, Integral):
        return cv
    if cv < 2:
        refuse(where, "at least two folds", f"cv={cv}", "Pass 5, the default")
    if fewest < 2:
        got = f"{fewest} in one of them"
        refuse(where, "at least two rows in both samples", got, "Get more rows of it")
    return min(int(cv), fewest)


def _stacked(source: Any, target: Any, where: str) -> tuple[Any, int, int]:
    """Source rows above target rows, in the type they came in, and the number of each."""
    kinds = [type(X).__module__.split(".")[0] for X in (source, target)]
    if kinds[0] in ("pandas", "polars") and kinds[0] == kinds[1]:
        names = [[*X.columns] for X in (source, target)]
        if names[0] != names[1]:
            differ = sorted({str(c) for c in names[0]} ^ {str(c) for c in names[1]})[:5]
            got = f"{differ} in one of them only" if differ else "the same in another order"
            refuse(where, "the same columns in both tables", got, "Select the model's columns")
        if kinds[0] == "pandas":
            import pandas

            both = pandas.concat([source, target], ignore_index=True)
        else:
            import polars

            both = polars.concat([source, target], how="vertical_relaxed")
    else:
        sparse = any(scipy.sparse.issparse(X) for X in (source, target))
        if not sparse:
            source = read_array(source, "X_source", where)
            target = read_array(target, "X_target", where)
        for name, X in (("X_source", source), ("X_target", target)):
            if X.ndim != 2:
                got = f"{X.ndim} dimensions"
                refuse(where, f"{name} of two dimensions", got, "Reshape to (n_samples, 1)")
        if source.shape[1] != target.shape[1]:
            got = f"{source.shape[1]} and {target.shape[1]}"
            refuse(where, "as many columns in X_source as in X_target", got, "Select the same")
        pair = [source, target]
        both = scipy.sparse.vstack(pair, "csr") if sparse else np.concatenate(pair)
    n, m = source.shape[0], target.shape[0]
    if min(n, m) == 0:
        refuse(where, "rows in both samples", f"{n} and {m}", "Check the selection of the rows")
    return both, n, m
