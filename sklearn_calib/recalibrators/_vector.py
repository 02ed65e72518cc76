"""Vector scaling."""

import builtins
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from .._atomic import replace_state_after_fitting_copy
from .._kernels._block_passes import (
    fit_softmax_by_vector_passes,
    sum_vector_scaling_loss_and_gradient,
)
from .._typing import ArrayLike, Self
from ..exceptions import invalid_input
from ._blocks import BlockScoreKind, ScoreBlocks
from ._softmax_family import BaseSoftmaxScaling
from ._temperature import TemperatureScaling


class VectorScaling(BaseSoftmaxScaling):
    """Multiply each class's log-probability by its own factor, and add its own intercept.

    2 k parameters; corrects class-wise shifts that a temperature cannot. Needs some
    dozens of rows per class.

    Parameters
    ----------
    penalty : float, default=1e-4
        Penalty penalty (sum (coef - 1)^2 + sum intercept^2) beside the mean log loss,
        towards temperature scaling. It keeps the coefficients finite on separable data.

    Attributes
    ----------
    temperature_scaling_ : TemperatureScaling
        The first step.
    coef_ : ndarray of shape (n_classes,)
        Factors of the temperature-scaled log-probabilities, less the largest of their
        row.
    intercept_ : ndarray of shape (n_classes,)
        With mean 0.
    objective_, gradient_norm_, newton_decrement_ : float
        The penalised loss, in nats, and the certificate of its optimality.
    n_iter_ : int
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Newton's method with the full Hessian; cost O(n k^2) an iteration, 3 to 8
    iterations.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks",
    section 4.2.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import VectorScaling
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> vector = VectorScaling().fit(proba, y)
    >>> vector.coef_.shape, vector.newton_decrement_ < 1e-10
    ((3,), True)
    """

    def _compute_coef_and_intercept_ridges(self, n, k):
        return np.full(k, float(self.penalty)), float(self.penalty)

    def fit_blocks(
        self,
        blocks: Iterable[Any],
        *,
        kind: BlockScoreKind = "logits",
        classes: ArrayLike | None = None,
        map: Callable[..., Iterable[Any]] = builtins.map,
        tol: float | None = None,
    ) -> Self:
        """Fit on rows that come in blocks, one block in memory at a time.

        Parameters
        ----------
        blocks, kind, classes, map
            As in `TemperatureScaling.fit_blocks`.
        tol : float > 0, default=None
            The fit ends where its objective is predicted to be less than this above the
            smallest, in nats. By default k / (10 n) for k classes and n, the sum of the
            weights: a tenth of what estimating 2 k coefficients costs on other rows.
            `fit` takes 1e-12.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError, ValueError
            As `TemperatureScaling.fit_blocks`, and a `tol` that is not positive.

        Notes
        -----
        One pass finds the temperature. Then a sample, the one that the temperature
        started from, gives the first coefficients and the Hessian, and each pass gives
        the loss and the gradient of all rows for a Newton step with the sample's
        Hessian, which L-BFGS corrects: 2 to 4 passes by the default `tol`. Cost: O(n k)
        a pass, O(m k^2) for the m rows of the sample.

        References
        ----------
        Byrd, Chin, Neveitt, Nocedal (2011), "On the use of stochastic Hessian
        information in optimization methods for machine learning".

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.recalibrators import VectorScaling
        >>> proba, y = make_overconfident(3, 1000)
        >>> logits = np.log(proba)
        >>> blocks = [(logits[i : i + 300], y[i : i + 300]) for i in range(0, 1000, 300)]
        >>> vector = VectorScaling().fit_blocks(blocks, tol=1e-10)
        >>> np.allclose(vector.coef_, VectorScaling().fit(proba, y).coef_, atol=1e-4)
        True
        """
        self._validate_params()
        if tol is not None and not 0 < tol < np.inf:
            raise invalid_input(
                "tol",
                expected="tol > 0",
                got=repr(tol),
                hint="Pass nats, for instance 1e-6, or None",
            )
        with replace_state_after_fitting_copy(self) as new:
            new._fit_passes(ScoreBlocks(blocks, kind, classes, map), tol)
        return self

    def _fit_passes(self, blocks, tol):
        """Fit temperature, factors and intercepts by passes over blocks of rows."""
        temperature = TemperatureScaling()
        temperature._fit_passes(blocks, None)
        self.temperature_scaling_ = temperature
        beta = temperature.inverse_temperature_

        def run_pass(coef, intercept):
            return blocks.sum_over_slices(
                partial(
                    sum_vector_scaling_loss_and_gradient,
                    beta=beta,
                    coef=coef,
                    intercept=intercept,
                )
            )

        self._store_fit(
            fit_softmax_by_vector_passes(
                run_pass,
                blocks.sample_pieces(),
                beta,
                float(self.penalty),
                tol,
            )
        )
        for name in ("classes_", "n_features_in_", "floor_"):
            setattr(self, name, getattr(temperature, name))
        self.n_iter_ = blocks.n_passes
