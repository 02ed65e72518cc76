"""The smooth calibration error and its witness."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._argument_checks import import_optional
from .._typing import ArrayLike, Axes, FloatArray, Multiclass
from ._measure import BinaryOptions, binary_measure
from ._predictions import validate_predictions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import BinaryProblem


class CalibrationWitness:
    """The result of `calibration_witness`: where predictions are too low or too high.

    Of all functions w with values in [-1, 1] and slopes in [-1, 1] the one with the
    largest mean of w(p) (y - p), which is the smooth calibration error. It is higher
    where events are more frequent than predicted than where they are rarer; its level
    follows the error on the whole, and need not cross 0.

    Parameters
    ----------
    scores : ndarray of shape (n_scores,)
        Distinct predictions, increasing.
    values : ndarray of shape (n_scores,)
        The function at these.
    title : str
        The binary problem it belongs to.

    Examples
    --------
    >>> from sklearn_calib.metrics import calibration_witness
    >>> witness = calibration_witness([0, 0, 1, 1], [0.3, 0.4, 0.5, 0.6])
    >>> witness([0.0, 0.45, 1.0]).round(2).tolist()
    [0.7, 0.85, 1.0]
    """

    def __init__(self, scores: FloatArray, values: FloatArray, title: str = "") -> None:
        self.scores = scores
        self.values = values
        self.title = title

    def __call__(self, p: ArrayLike) -> FloatArray:
        """Evaluate the function: linear between the scores, constant outside.

        Parameters
        ----------
        p : array-like

        Returns
        -------
        values : ndarray of the same shape
        """
        return np.interp(np.asarray(p, dtype=float), self.scores, self.values)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw the function.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        **style
            Passed to ``Axes.plot``.

        Returns
        -------
        ax : matplotlib Axes
        """
        if ax is None:
            plt = import_optional("matplotlib.pyplot", "plot")
            _, ax = plt.subplots(layout="constrained")
        ends = np.concatenate([[0.0], self.scores, [1.0]])
        ax.axhline(0, color="0.35", lw=1)
        ax.plot(ends, self(ends), **style)
        ax.set(
            xlim=(0, 1),
            ylim=(-1.05, 1.05),
            xlabel="predicted probability",
            ylabel="witness",
        )
        return ax


@binary_measure(range=(0.0, 1.0), poolable=True)
def smooth_calibration_error(
    problem: "BinaryProblem", **shared: "Unpack[BinaryOptions]"
) -> float:
    """Smooth calibration error: largest mean of w(p) (y - p), where w changes no faster than p.

    A measure without bins: continuous in the predictions, estimated at the rate n^-1/2
    for every distribution of them, and 0 in the limit exactly for calibrated
    predictions. Half of it is a lower bound, twice it an upper bound of the distance to
    the nearest calibrated predictor (`lower_distance_to_calibration`).
    `calibration_witness` is the function w that attains it.

    Parameters
    ----------
    {shared_parameters}

    Returns
    -------
    error : float
        In [0, 1], perfect 0; at most the expected calibration error. Biased upwards:
        for calibrated predictions it is of the order n^-1/2 (0.004 at n = 10,000);
        `calibration_test` gives the distribution.

    Notes
    -----
    Exact, up to rounding. Cost: O(n log n), one sort of numbers and passes of compiled
    code: about twice ``np.argsort`` of the predictions. The linear program's solution
    by dynamic programming with a queue of kinks is simpler and faster than the paper's
    minimum-cost flow.

    References
    ----------
    Kakade, Foster (2008), "Deterministic calibration and Nash equilibrium". Hu,
    Jambulapati, Tian, Yang (2024), "Testing calibration in nearly-linear time",
    definition 3 and lemmas 2 and 6. Blasiok, Gopalan, Hu, Nakkiran (2023), "A unifying
    theory of distance from calibration", theorem 7.3.

    Examples
    --------
    >>> from sklearn_calib.metrics import smooth_calibration_error
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 2000)
    >>> smooth_calibration_error(y, proba) > 0.03  # overconfident
    True
    """
    from .._kernels._smooth_calibration import compute_smooth_error

    cells = problem.cells
    return min(max(compute_smooth_error(cells.score, cells.residual), 0.0), 1.0)


def calibration_witness(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    multiclass: Multiclass = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> CalibrationWitness | list[CalibrationWitness]:
    """Find where predictions are too low or too high: the witness of `smooth_calibration_error`.

    Parameters
    ----------
    y_true, y_proba, multiclass, sample_weight, labels, pos_label
        As in `smooth_calibration_error`.

    Returns
    -------
    witness : CalibrationWitness or list of CalibrationWitness
        A list if `multiclass` means several two-class problems.

    Raises
    ------
    ValueError, TypeError
        Invalid scores, labels or weights; see `canonical_proba`.

    Notes
    -----
    Cost: O(n log n), about twice that of the error alone.

    References
    ----------
    Hu, Jambulapati, Tian, Yang (2024), definition 3 and lemma 6.

    Examples
    --------
    >>> from sklearn_calib.metrics import calibration_witness
    >>> witness = calibration_witness([0, 0, 0, 1], [0.3, 0.4, 0.5, 0.6])  # predicted too high
    >>> witness([0.3, 0.6]).round(2).tolist()
    [-1.0, -0.9]
    """
    from .._kernels._smooth_calibration import compute_witness_by_distinct_score

    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    witnesses = []
    for problem in predictions.problems(multiclass):
        cells = problem.cells
        scores, values = compute_witness_by_distinct_score(cells.score, cells.residual)
        witnesses.append(CalibrationWitness(scores, values, problem.title))
    return witnesses[0] if len(witnesses) == 1 else witnesses
