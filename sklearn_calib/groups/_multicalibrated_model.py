"""MulticalibratedModel: a classifier and the correction of its probabilities in many groups."""

from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._atomic import replace_state_after_fitting_copy
from .._show import make_printable, quote_text
from .._simplex_array import stack_proba_rows
from .._sklearn_compat import safe_indexing
from .._typing import CV, AnyArray, ArrayLike, Estimator, Features, FloatArray, Self
from ..classifiers import (
    ESTIMATOR_CONSTRAINTS,
    BaseCalibratedClassifier,
    CalibratedPair,
)
from ..exceptions import invalid_input
from ..recalibrators import (
    BoosterOptionsMixin,
    MulticalibratedScores,
    check_cv_pairs,
    read_group_columns,
)


class MulticalibratedModel(BoosterOptionsMixin, BaseCalibratedClassifier):
    """A classifier whose probabilities are corrected to be right in many groups at once.

    `MulticalibratedScores` on rows that the classifier was not trained on, with the
    groups taken from the features.

    Parameters
    ----------
    estimator : classifier
        Anything with fit and ``decision_function`` or ``predict_proba``. A fitted model
        is wrapped in ``sklearn.frozen.FrozenEstimator``; all rows given to fit are then
        calibration rows. Otherwise the correction is learned on out-of-fold scores of
        all rows, and one classifier is fitted on all rows.
    groups : "all", str, int, list of these, or callable, default="all"
        Columns of X that the groups are made of, by names or positions, also columns
        that the estimator does not use; or a function that makes a table of groups from
        X, with one row for each row of X. "all": all columns.
    n_rounds, n_trees, learning_rate, max_leaves, min_samples_leaf, l2, min_gain,
    n_bins, patience,\
 monotone, use_score
        See `MulticalibratedScores`.
    cv : int, cross-validation generator or iterable, default=5
        Folds that choose the number of rounds, and, for an estimator that is not
        frozen, those of the out-of-fold scores.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        As in `CalibratedModel`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    correction_ : MulticalibratedScores
    n_rounds_, n_trees_, cv_losses_, feature_gains_
        Those of the correction; for more than two classes see
        ``correction_.one_vs_rest_``.
    calibrated_pairs_ : list of CalibratedPair
        One (estimator, correction, columns).
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the estimator defines them.

    Raises
    ------
    ValueError
        What `CalibratedModel` and `MulticalibratedScores` reject; columns that X does
        not have.
    TypeError
        A function that gives no table.

    Warns
    -----
    CalibrationWarning
        As `MulticalibratedScores`; a fitted estimator without a FrozenEstimator, which
        is fitted again.

    Notes
    -----
    The correction of an estimator that is not frozen is fitted to scores of models
    trained on four fifths of the rows, as in ``CalibratedModel(ensemble=False)``. Cost:
    the fits of the folds and one more, then that of `MulticalibratedScores`.

    References
    ----------
    See `MulticalibratedScores`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.groups import MulticalibratedModel
    >>> from sklearn_calib.metrics import log_loss
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=6000), rng.integers(0, 3, 6000)])
    >>> y = (rng.random(6000) < 1 / (1 + np.exp(-X[:, 0] * (X[:, 1] - 1)))).astype(int)
    >>> linear = LogisticRegression().fit(X[:2000], y[:2000])
    >>> model = MulticalibratedModel(FrozenEstimator(linear), groups=[1])
    >>> model = model.fit(X[2000:4000], y[2000:4000])
    >>> before, after = linear.predict_proba(X[4000:]), model.predict_proba(X[4000:])
    >>> log_loss(y[4000:], after) < 0.95 * log_loss(y[4000:], before)
    True
    """

    # The correction is the only recalibration.
    recalibrator = "identity"
    _parameter_constraints: ClassVar = {
        **BoosterOptionsMixin._parameter_constraints,
        "estimator": ESTIMATOR_CONSTRAINTS,
        "groups": [str, "array-like", Integral, callable],
        "response_method": [StrOptions({"auto", "decision_function", "predict_proba"})],
    }

    def __init__(
        self,
        estimator: Estimator,
        groups: Any = "all",
        *,
        n_rounds: int = 20,
        n_trees: int = 100,
        learning_rate: float = 0.1,
        max_leaves: int = 5,
        min_samples_leaf: float | Literal["auto"] = "auto",
        l2: float = 1.0,
        min_gain: float = 0.15,
        n_bins: int = 64,
        cv: CV = 5,
        patience: int = 1,
        monotone: bool = False,
        use_score: bool = True,
        response_method: Literal["auto", "decision_function", "predict_proba"] = "auto",
    ) -> None:
        super().__init__(
            n_rounds=n_rounds,
            n_trees=n_trees,
            learning_rate=learning_rate,
            max_leaves=max_leaves,
            min_samples_leaf=min_samples_leaf,
            l2=l2,
            min_gain=min_gain,
            n_bins=n_bins,
            cv=cv,
            patience=patience,
            monotone=monotone,
            use_score=use_score,
        )
        self.estimator = estimator
        self.groups = groups
        self.response_method = response_method

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifier, unless it is frozen, and the correction.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            As the estimator takes it, with the columns of the groups.
        y : array-like of shape (n_samples,)
            Labels: integers, text, bytes, booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, passed to the estimator if it takes them, and to the
            correction.
        **fit_params : dict
            ``groups`` is passed to the splitter, the rest to the estimator's fit; with
            metadata routing enabled, each to the objects that request it.

        Returns
        -------
        self : object
        """
        with replace_state_after_fitting_copy(self) as new:
            context = new._make_context_and_set_classes(X, y, sample_weight, fit_params)
            if isinstance(new.estimator, FrozenEstimator):
                estimator = context.estimator
                columns = context.all_columns
                rows = context.all_rows
                cv = new.cv
                features = _drop_unfitted_group_columns(
                    estimator, context.X, new.groups
                )
                scores = context.compute_scores(estimator, columns, features)
            else:
                scores, rows, cv = new._get_held_out_scores_rows_and_fold_pairs(context)
                estimator, columns = context.fit_estimator_and_get_columns(
                    context.all_rows
                )
            table = select_group_columns(X, new.groups, len(context.y_encoded))
            correction = new._make_correction(cv)._fit_validated_groups(
                scores,
                context.y_encoded[rows],
                context.classes,
                context.weight[rows],
                {name: column[rows] for name, column in table.items()},
            )
            new.calibrated_pairs_ = [CalibratedPair(estimator, correction, columns)]
            new._copy_feature_names(estimator)
            return self

    def predict_proba(self, X: Features) -> FloatArray:
        """Predict corrected probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            With the columns of the groups.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        features = _drop_unfitted_group_columns(self.estimator_, X, self.groups)
        [(correction, scores)] = self._iter_recalibrators_and_scores(features)
        table = select_group_columns(X, self.groups, len(scores))
        return correction.predict_proba(scores, groups=table)

    @property
    def correction_(self) -> MulticalibratedScores:
        """Return the fitted correction."""
        return self._get_only_calibrated_pair("correction_").recalibrator

    @property
    def n_rounds_(self) -> int:
        """Return the chosen number of rounds."""
        return self.correction_.n_rounds_

    @property
    def n_trees_(self) -> int:
        """Return the chosen number of trees in all rounds together."""
        return self.correction_.n_trees_

    @property
    def cv_losses_(self) -> FloatArray:
        """Return the held-out log loss in nats, before and after every 10 trees."""
        return self.correction_.cv_losses_

    @property
    def feature_gains_(self) -> dict[Any, float]:
        """Sum of the gains of the splits of each column."""
        return self.correction_.feature_gains_

    def _make_correction(self, cv):
        # All other parameters of the correction are parameters of this class too.
        names = set(MulticalibratedScores._get_param_names()) - {"cv"}
        params = {name: getattr(self, name) for name in names}
        return MulticalibratedScores(cv=cv, **params)

    def _get_held_out_scores_rows_and_fold_pairs(self, context):
        """Return out-of-fold scores, their rows, and the folds of these."""
        cv = check_cv(self.cv, context.y_encoded, classifier=True)
        scores = []
        rows = []
        splits = [*cv.split(context.X, context.y_encoded, **context.split_params)]
        check_cv_pairs(splits)
        for train, test in splits:
            estimator, columns = context.fit_estimator_and_get_columns(
                np.asarray(train)
            )
            fold = context.score_test_rows(estimator, columns, train, test)
            scores.append(fold.scores)
            rows.append(fold.rows)
        bounds = np.cumsum([0, *map(len, rows)])
        all_rows = np.arange(bounds[-1])
        folds = [
            (np.delete(all_rows, np.s_[begin:end]), all_rows[begin:end])
            for begin, end in pairwise(bounds)
        ]
        return stack_proba_rows(scores), np.concatenate(rows), folds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= not _is_all_columns_keyword(self.groups)
        return tags


def _drop_unfitted_group_columns(estimator, X, groups):
    """Return X without columns of groups that a frozen estimator was fitted without."""
    if not isinstance(estimator, FrozenEstimator):
        return X
    fitted_names = getattr(estimator, "feature_names_in_", None)
    names = list(getattr(X, "columns", ()))
    if fitted_names is not None and names and len(fitted_names) < len(names):
        has_columns = set(fitted_names) <= set(names)
        return X[list(fitted_names)] if has_columns else X
    n_features = getattr(estimator, "n_features_in_", None)
    if n_features is None or callable(groups) or _is_all_columns_keyword(groups):
        return X
    X = X if hasattr(X, "shape") else np.asarray(X)
    n_columns = X.shape[1]
    # Columns that X does not have are rejected later, by `select_group_columns`.
    selected = np.atleast_1d(groups).tolist()
    group_positions = {names.index(name) for name in selected if name in names}
    group_positions |= {
        position % n_columns for position in selected if isinstance(position, int)
    }
    kept_positions = [
        position for position in range(n_columns) if position not in group_positions
    ]
    return (
        safe_indexing(X, kept_positions, axis=1)
        if len(kept_positions) == n_features
        else X
    )


def _is_all_columns_keyword(groups):
    return isinstance(groups, str) and groups == "all"


def select_group_columns(X: Features, groups: Any, n_rows: int) -> dict[Any, AnyArray]:
    """Take the columns of the groups from the features."""
    if callable(groups):
        return read_group_columns(groups(X), n_rows)
    if _is_all_columns_keyword(groups):
        if sparse.issparse(X):
            raise invalid_input(
                expected="a dense X with groups='all'",
                got="a sparse matrix",
                hint="Pass groups=[...] with positions of the columns that matter",
                error=TypeError,
            )
        return read_group_columns(X, n_rows)
    # Lists are recognised first: numpy raises an error for the dimensions of
    # [[1], [2, 3]].
    is_single = not isinstance(groups, list | tuple) and np.ndim(groups) == 0
    selected = [groups] if is_single else list(groups)
    if any(isinstance(name, bool | np.bool_) for name in selected):
        raise invalid_input(
            expected="names or positions of columns as groups",
            got="booleans",
            hint="Pass np.flatnonzero(mask)",
        )
    if all(isinstance(name, Integral) for name in selected):
        return _get_columns_at_positions_by_name(
            X, [int(name) for name in selected], n_rows
        )
    names = list(getattr(X, "columns", ()))
    unknown = [name for name in selected if name not in names]
    if unknown:
        shown_names = ", ".join(map(make_printable, names[:30]))
        raise invalid_input(
            expected=f"a column {quote_text(unknown[0])} of X for the groups",
            got=shown_names or "an array without names",
            hint="Name columns of the table X, or their positions, or pass a function of X",
        )
    return read_group_columns(X[selected], n_rows)


def _get_columns_at_positions_by_name(X, positions, n_rows) -> dict[Any, AnyArray]:
    """Return the columns at some positions, by their names or else by these positions."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    n_columns = X.shape[1]
    unknown = [
        position for position in positions if not -n_columns <= position < n_columns
    ]
    if unknown:
        raise invalid_input(
            expected=f"positions below {n_columns} as groups, the columns of X",
            got=f"{unknown[0]}",
            hint="Count the columns of X from 0",
        )
    if sparse.issparse(X):
        # Not every sparse format can select columns.
        selected = X.tocsc()[:, positions].toarray()
    else:
        selected = safe_indexing(X, positions, axis=1)
    columns = read_group_columns(selected, n_rows)
    if hasattr(X, "columns"):
        return columns
    return dict(zip(positions, columns.values(), strict=True))
