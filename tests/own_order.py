"""A classifier whose `classes_` have an order of their own, which is not that of the labels."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if


def _has_scores(model):
    return model.scores == "both"


class OwnOrder(ClassifierMixin, BaseEstimator):
    """The classifier inside with its classes, and all that belongs to them, in another order.

    Parameters
    ----------
    inner : classifier
    order : sequence of int
        Positions of the sorted classes.
    scores : {"both", "proba"}
        Whether there is ``decision_function`` beside ``predict_proba``.
    """

    def __init__(self, inner, order, scores="both"):
        self.inner = inner
        self.order = order
        self.scores = scores

    def fit(self, X, y, sample_weight=None):
        self.fitted_ = clone(self.inner).fit(X, y, sample_weight)
        return self._remember()

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if not hasattr(self, "fitted_"):
            self.fitted_ = clone(self.inner)
        self.fitted_.partial_fit(X, y, classes, sample_weight)
        return self._remember()

    def _remember(self):
        self.classes_ = self.fitted_.classes_[list(self.order)]
        self.n_features_in_ = self.fitted_.n_features_in_
        return self

    def predict(self, X):
        return self.fitted_.predict(X)

    def predict_proba(self, X):
        return self.fitted_.predict_proba(X)[:, list(self.order)]

    @available_if(_has_scores)
    def decision_function(self, X):
        scores = self.fitted_.decision_function(X)
        if scores.ndim == 1:
            return scores if self.order[0] == 0 else -scores
        return scores[:, list(self.order)]


class LinearOwnOrder(LogisticRegression):
    """A logistic regression of two or more classes, the last of which comes first."""

    def __init__(self, *, C=1.0, max_iter=200):
        super().__init__(C=C, max_iter=max_iter)

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if len(self.classes_) == 2:
            self.coef_, self.intercept_ = -self.coef_, -self.intercept_
        else:
            self.coef_, self.intercept_ = (
                self.coef_[::-1].copy(),
                self.intercept_[::-1].copy(),
            )
        self.classes_ = np.array(self.classes_[::-1])
        return self
