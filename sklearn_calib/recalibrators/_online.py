"""Online recalibration: a mixture of logistic maps that learns row by row."""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .. import maps
from .._atomic import restore_if_raised
from .._kernels._logistic_grid import (
    FINE_LINE_GRID,
    compute_proba_by_line,
    update_grid_weights,
)
from .._kernels._two_class_problems import iter_one_vs_rest
from .._simplex_array import compute_log_odds, iter_row_blocks
from .._typing import ArrayLike, FloatArray, Self
from ..exceptions import invalid_input
from ._base import Capabilities, Recalibrator, make_two_columns

# Log-odds are clipped to this.
MAX_ABS_LOG_ODDS = 30.0
# Likelihoods are computed for this many rows at once.
BLOCK_ROWS = 256


class OnlineCalibration(Recalibrator):
    """Learn a logistic map row by row, and follow changes: a mixture weighted by likelihood.

    325 maps, sigmoid(shift + slope * log-odds), with 13 slopes from 0.125 to 2 and 25
    shifts from -3 to 3. Their weights are the prior's at the start; each row multiplies
    them by the likelihoods of its label, and a small share of the weight then goes back
    to the prior, so that any map can come back when the stream changes. There is no
    step size, nothing diverges, and the first row already counts: use `partial_fit`
    if labels come in one by one. More than two classes are handled one-vs-rest and
    the rows divided by their sums.

    Parameters
    ----------
    share : float, default=1e-3
        From 0 to 1: what goes back to the prior after each row. About one over the
        number of rows between two changes; 0 for a stream that does not change, in
        which the rows' order does not matter.

    Attributes
    ----------
    log_weights_ : ndarray of shape (325,)
        Logarithms of the weights of the maps; the shifts vary fastest.
    slope_, shift_ : float
        Weighted means over the maps, of the slope the geometric one. One-vs-rest fits
        keep theirs in ``one_vs_rest_[c]``.
    one_vs_rest_ : list of OnlineCalibration
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    With ``share=0`` and two classes, the total log loss of predictions made before each
    label came is at most that of the best of the maps plus the logarithm of its inverse
    prior weight, for every sequence of labels, also one chosen by an adversary. With a
    share s, against a sequence of maps with S changes, about (S + 1) log(1 / (s
    weight)) + n s more.

    The prior is normal for the shift (standard deviation 1) and for the logarithm of
    the slope (0.5). Log-odds beyond 30 count as 30. Sample weights multiply
    log-likelihoods. `fit` forgets all and takes the rows in their order. Cost: some 5
    µs a row and class to learn.

    Labels that depend on the labels before them help any online method, beyond
    calibration; a small loss is then not evidence for good scores.

    References
    ----------
    Herbster, Warmuth (1998), "Tracking the best expert", section 5, the fixed-share
    update. The task: Gupta, Ramdas (2023), "Online Platt scaling with calibeating".

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.recalibrators import OnlineCalibration
    >>> proba, y = make_overconfident(2, 600)
    >>> online = OnlineCalibration()
    >>> for rows in range(0, 600, 50):  # the labels of 50 rows have come
    ...     online = online.partial_fit(
    ...         proba[rows : rows + 50], y[rows : rows + 50], classes=[0, 1]
    ...     )
    >>> bool(online.slope_ < 0.6)
    True
    """

    log_weights_: FloatArray

    capabilities = Capabilities(
        monotone=True,
        increasing=True,
        continuous=True,
        order_dependent=True,
        weights="counts",
        cost="O(k n)",
    )
    _parameter_constraints: ClassVar = {"share": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, share: float = 1e-3) -> None:
        self.share = share

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Learn from further rows, in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities, as `fit` takes them.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, which multiply the log-likelihoods of the rows.
        classes : array-like of shape (n_classes,), default=None
            All classes in the order of the columns; in the first call, unless its rows
            show all.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            As in `fit`; other classes than before. After an error the estimator is as
            it was.
        """
        self._validate_params()
        earlier_classes = getattr(self, "classes_", None)
        if (
            earlier_classes is not None
            and classes is not None
            and [*classes] != [*earlier_classes]  # type: ignore[misc]
        ):
            raise invalid_input(
                expected=f"the classes of earlier rows, {[*earlier_classes]}",
                got=f"{classes}",
                hint="Leave classes out, or call fit to begin anew",
            )
        all_classes = classes if earlier_classes is None else earlier_classes
        rows = self._read_fit_input(X, y, sample_weight, all_classes, keeps_unit=True)
        proba = rows.proba
        codes = rows.y_encoded
        weight = rows.weight
        n_classes = len(rows.classes)
        with restore_if_raised(self):
            self._set_input_features(X, proba, reset=earlier_classes is None)
            # The map before these rows is dropped.
            self.__dict__.pop("_derived", None)
            if earlier_classes is None:
                self.classes_ = rows.classes
                self._reset_to_prior(n_classes)
            if n_classes == 2:
                self._learn_rows(proba, codes, weight)
            else:
                for column, pair in enumerate(iter_one_vs_rest(proba)):
                    is_class = (codes == column).astype(np.intp)
                    self.one_vs_rest_[column]._learn_rows(pair, is_class, weight)
        return self

    @property
    def slope_(self) -> float:
        # The geometric mean, as the prior of slopes is log-normal.
        return float(np.exp(np.exp(self.log_weights_) @ np.log(FINE_LINE_GRID.slope)))

    @property
    def shift_(self) -> float:
        return float(np.exp(self.log_weights_) @ FINE_LINE_GRID.shift)

    def _reset_to_prior(self, n_classes):
        if n_classes == 2:
            self.log_weights_ = FINE_LINE_GRID.log_prior.copy()
            return
        self.one_vs_rest_ = [type(self)(self.share) for _ in range(n_classes)]
        for binary in self.one_vs_rest_:
            binary._reset_to_prior(2)

    def _fit(self, proba, codes, weight):
        self._reset_to_prior(2)
        self._learn_rows(proba, codes, weight)

    def _learn_rows(self, proba, codes, weight):
        """Update the weights of all (shift, slope) pairs by rows of two classes, in order."""
        log_weight = self.log_weights_
        # A certain and wrong prediction would give all pairs a likelihood of 0.
        z = np.clip(compute_log_odds(proba), -MAX_ABS_LOG_ODDS, MAX_ABS_LOG_ODDS)
        towards = np.where(codes == 1, 1.0, -1.0)
        equal = bool((weight == 1).all())
        for start in range(0, len(z), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            likelihood = compute_proba_by_line(towards[rows], z[rows], FINE_LINE_GRID)
            # Weights of 1 need no power of each likelihood.
            power = None if equal else weight[rows]
            log_weight = update_grid_weights(
                log_weight, likelihood, power, FINE_LINE_GRID, self.share
            )
        self.log_weights_ = log_weight

    def _predict_proba(self, proba):
        z = np.clip(compute_log_odds(proba), -MAX_ABS_LOG_ODDS, MAX_ABS_LOG_ODDS)
        weight = np.exp(self.log_weights_)
        out = np.empty(len(z))
        for rows in iter_row_blocks(np.broadcast_to(z[:, None], (len(z), len(weight)))):
            # The prediction is the mean over all pairs, by their posterior weights.
            out[rows] = compute_proba_by_line(1.0, z[rows], FINE_LINE_GRID) @ weight
        return make_two_columns(np.clip(out / weight.sum(), 0.0, 1.0))

    def _make_map(self):
        """Make the mixture of the maps of all pairs by their present weights."""
        line_maps = []
        for slope, shift in zip(
            FINE_LINE_GRID.slope, FINE_LINE_GRID.shift, strict=True
        ):
            line_map = maps.SoftmaxAffine(
                coef=slope,
                intercept=[0.0, shift],
                centred=True,
                least=-MAX_ABS_LOG_ODDS,
            )
            line_maps.append(line_map)
        weight = np.exp(self.log_weights_)
        return maps.make_mixture(weight / weight.sum(), line_maps)
