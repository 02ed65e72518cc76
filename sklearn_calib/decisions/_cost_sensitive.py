"""CostSensitiveClassifier: the action with the smallest expected cost; and what others share."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted

from .._base_meta_classifier import BaseMetaClassifier
from .._clone import clone_comparing_by_value
from .._kernels._expected_metrics import (
    choose_best_actions,
    compute_expected_costs,
    get_chosen_costs,
)
from .._sklearn_compat import routing_enabled
from .._typing import AnyArray, ArrayLike, Estimator, Features, FloatArray, Self
from .._validation import (
    align_columns,
    canonical_weight,
    check_and_get_common_index,
    check_two_or_more_classes,
    read_labels,
    read_proba,
)
from ..exceptions import invalid_input
from ._costs import canonical_actions, canonical_costs


class DecidingClassifier(BaseMetaClassifier):
    """A classifier that acts on the probabilities of another one, ``estimator``."""

    estimator_: Estimator

    def predict_proba(self, X: Features) -> FloatArray:
        """Predict the probabilities of the wrapped classifier.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        return self._predict_ordered_proba(self.estimator_, X, self.classes_)

    def _predict_ordered_proba(self, estimator, X, classes):
        """Predict probabilities, with columns in the order of `classes`."""
        own_classes = estimator.classes_
        proba = read_proba(estimator.predict_proba(X), n_classes=len(own_classes))
        return align_columns(proba, own_classes, classes)

    @property
    def _is_frozen(self):
        return isinstance(self.estimator, FrozenEstimator)

    def _check_and_read_classes_and_codes(self, y):
        """Check the estimator before anything is fitted, and encode the labels."""
        if not hasattr(self.estimator, "predict_proba"):
            inner = type(getattr(self.estimator, "estimator", self.estimator)).__name__
            raise invalid_input(
                expected="a classifier with predict_proba",
                got=inner,
                hint=f"Write CalibratedModel({inner}(...)), which has calibrated probabilities",
                error=TypeError,
            )
        # The columns of a frozen estimator are those of its own classes, of which `y`
        # may lack some.
        fitted_classes = None
        if self._is_frozen:
            fitted_classes = getattr(self.estimator, "classes_", None)
            if fitted_classes is None:
                raise invalid_input(
                    expected="a fitted classifier with classes_ in the FrozenEstimator",
                    got=type(self.estimator.estimator).__name__,
                    hint="Fit it first; give a model of another library to CalibratedModel",
                )
        classes, codes = read_labels(y, classes=fitted_classes, input_name="y")
        check_two_or_more_classes(
            classes, "There is nothing to decide; check the selection of the rows"
        )
        return classes, codes

    def _route_fit_params(self, **params):
        """Route metadata to the fit of the wrapped classifier."""
        if routing_enabled():
            return dict(process_routing(self, "fit", **params).estimator.fit)
        return {name: value for name, value in params.items() if value is not None}

    def _fit_estimator(self, X, y, params):
        """Fit a clone of the estimator; a FrozenEstimator stays as it is."""
        # `clone` returns a frozen estimator unchanged, with its fit.
        estimator = clone_comparing_by_value(self.estimator)
        if not self._is_frozen:
            estimator.fit(X, y, **params)
        return estimator

    def _set_fitted_attributes(self, estimator, classes):
        """Set the fitted attributes; `classes` are those of the labels and costs."""
        self.estimator_ = estimator
        self.classes_ = classes
        self._copy_feature_names(estimator)


class CostSensitiveClassifier(DecidingClassifier):
    """A classifier that predicts the action with the smallest expected cost.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``; its probabilities should be calibrated, for instance a
        `CalibratedModel`. A fitted one in a ``sklearn.frozen.FrozenEstimator`` stays as
        it is.
    costs : array-like of shape (n_classes, n_actions), callable or None, default=None
        ``costs[j, a]`` is the cost of action a where class j is true, in any unit; a
        gain is a negative cost. Classes in the order of ``classes_``: of the sorted
        labels, or of a FrozenEstimator's own. A callable takes X and returns such a
        table, or an array of shape (n_samples, n_classes, n_actions) with a table for
        each row. None: each error costs 1.
    actions : array-like of shape (n_actions,), default=None
        The names of the actions, which `predict` returns; the classes by default. There
        may be more or fewer actions than classes: one more, for instance, to consult a
        person.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    classes_ : ndarray of shape (n_classes,)
    actions_ : ndarray of shape (n_actions,)
    costs_ : ndarray of shape (n_classes, n_actions)
        The table that fit was given; None for costs by row or by callable.
    threshold_ : float
        With two classes and two actions: the probability of the second class from which
        on the second action is taken, (c01 - c00) / (c01 - c00 + c10 - c11).
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the classifier inside defines them.

    Raises
    ------
    ValueError
        Costs of another shape, missing or infinite; an action that never costs less
        than another one, which the message names; actions without a name or of one
        name; one class only.
    TypeError
        A classifier without ``predict_proba``.

    Notes
    -----
    Of equally cheap actions the first is taken; with two classes and two actions the
    second, as in ``FixedThresholdClassifier`` and `decision_curve`, in which rows at
    the threshold are acted on.

    The decision follows from the probabilities: no threshold is tuned, and costs can
    change after the fit, also by row, with the parameter ``costs=`` of `fit`,
    `predict`, `expected_cost` and `score`, the last given being used. Request it with
    metadata routing (``set_predict_request(costs=True)``) inside of pipelines and
    searches. `score` is minus the mean cost, so that a search minimises the cost.

    Cost: the fit of the classifier; O(n_samples * n_classes * n_actions) for `predict`.

    References
    ----------
    Elkan (2001), "The foundations of cost-sensitive learning", eqs. 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_calib import CalibratedModel
    >>> from sklearn_calib.decisions import CostSensitiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> y = y.map({0: "malignant", 1: "benign"})
    >>> model = CalibratedModel(make_pipeline(StandardScaler(), LogisticRegression()))
    >>> costs = [[0, 1, 0.3], [20, 0, 0.3]]  # a tumour that is missed costs 20, a biopsy 0.3
    >>> actions = ["benign", "malignant", "biopsy"]
    >>> clf = CostSensitiveClassifier(model, costs, actions=actions).fit(X[:400], y[:400])
    >>> sorted({str(action) for action in clf.predict(X[400:])})
    ['benign', 'biopsy', 'malignant']
    >>> round(float(clf.expected_cost(X[400:]).max()), 3)  # never above that of a biopsy
    0.3
    """

    _parameter_constraints: ClassVar = {
        "estimator": "no_validation",
        "costs": ["array-like", callable, None],
        "actions": ["array-like", np.ndarray, None],
    }

    def __init__(
        self,
        estimator: Estimator,
        costs: ArrayLike | Callable[[Any], ArrayLike] | None = None,
        *,
        actions: Sequence[object] | AnyArray | None = None,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.actions = actions

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifier inside. The costs do not change this fit.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            As the classifier takes it.
        y : array-like of shape (n_samples,)
            Labels: integers, text, booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to the classifier's fit.
        costs : array-like of shape (n_classes, n_actions) or (n_samples, n_classes, n_actions), \
default=None
            In place of those of the constructor. A table is kept for `predict`; of
            costs by row, which belong to these rows, none can be kept: give `predict`
            those of its rows.
        **fit_params : dict
            Passed to the classifier's fit; with metadata routing enabled, what it
            requests.

        Returns
        -------
        self : object
        """
        check_and_get_common_index(X, y, sample_weight)
        classes, codes = self._check_and_read_classes_and_codes(y)
        if sample_weight is not None:
            canonical_weight(sample_weight, len(codes))
        actions = canonical_actions(self.actions, classes)
        cost_source = self.costs if costs is None else costs
        table = None
        # A function of X is only called in `predict`, with the new rows.
        if not callable(cost_source):
            rows = len(codes)
            table = canonical_costs(cost_source, classes, n_rows=rows, actions=actions)
        params = self._route_fit_params(sample_weight=sample_weight, **fit_params)
        self._set_fitted_attributes(self._fit_estimator(X, y, params), classes)
        # Costs of each row belong to the rows of `fit`; prediction needs those of the
        # new rows.
        self._by_row = table is not None and table.ndim == 3
        self.costs_ = None if self._by_row else table
        self.actions_ = actions
        return self

    def predict(self, X: Features, costs: ArrayLike | None = None) -> AnyArray:
        """Predict the action with the smallest expected cost.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        costs : array-like of shape (n_classes, n_actions) or (n_samples, n_classes, n_actions), \
default=None
            In place of those of fit and of the constructor.

        Returns
        -------
        actions : ndarray of shape (n_samples,)
            Entries of ``actions_``.
        """
        proba, table = self._predict_proba_and_get_costs(X, costs)
        return self.actions_[choose_best_actions(proba, table)]

    def expected_cost(self, X: Features, costs: ArrayLike | None = None) -> FloatArray:
        """Compute the expected cost of the best action for each row.

        Parameters
        ----------
        X, costs
            As in `predict`.

        Returns
        -------
        cost : ndarray of shape (n_samples,)
            min over a of sum over j of p_j costs[j, a]; right on average if the
            probabilities are calibrated. `expected_cost_test` compares it with what was
            paid.
        """
        proba, table = self._predict_proba_and_get_costs(X, costs)
        return compute_expected_costs(proba, table).min(axis=1)

    def score(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> float:
        """Compute the negative mean cost of the actions, given the true classes.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        costs : array-like, default=None
            As in `predict`.

        Returns
        -------
        score : float
            Greater is better. With costs of 1 for each error it is accuracy - 1.
        """
        check_and_get_common_index(X, y, sample_weight)
        proba, table = self._predict_proba_and_get_costs(X, costs)
        _, codes = read_labels(y, classes=self.classes_, input_name="y")
        weight = canonical_weight(sample_weight, len(codes))
        paid_costs = get_chosen_costs(table, codes, choose_best_actions(proba, table))
        return -float(np.average(paid_costs, weights=weight))

    @property
    def threshold_(self) -> float:
        """Return the probability of the second class from which on the second action is taken."""
        table = getattr(self, "costs_", None)
        # The second action is taken from a threshold on if it costs more in the first
        # class; otherwise it is taken at small probabilities.
        if table is None or table.shape != (2, 2) or table[0, 1] < table[0, 0]:
            raise AttributeError(
                f"{type(self).__name__}.threshold_ exists after a fit with one table of costs, of "
                "two classes and two actions, the second for the second class; see expected_cost."
            )
        # The expected costs (1 - p) c_01 + p c_11 and (1 - p) c_00 + p c_10 of the two
        # actions are equal at this p (Elkan, 2001).
        false_alarm = table[0, 1] - table[0, 0]
        return float(false_alarm / (false_alarm + table[1, 0] - table[1, 1]))

    def _predict_proba_and_get_costs(self, X, costs):
        """Predict probabilities, and select the costs that apply to their rows."""
        check_is_fitted(self)
        if costs is None and self._by_row:
            raise invalid_input(
                expected="the costs of these rows, because fit had costs of its own rows",
                got="costs=None",
                hint="Pass costs=, of shape (n_samples, n_classes, n_actions)",
            )
        proba = np.asarray(self.predict_proba(X))
        if costs is None and self.costs_ is not None:
            return proba, self.costs_
        if costs is None:
            costs = self.costs(X)
        table = canonical_costs(
            costs, self.classes_, n_rows=len(proba), actions=self.actions_
        )
        return proba, table
