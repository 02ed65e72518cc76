"""The smooth calibration error and its witness."""

import numpy as np

from ._base import binary_problems, canonical_case, metric


class CalibrationWitness:
    """The function that shows best where, and in which direction, predictions are off.

    Of all functions w with values in [-1, 1] and slopes in [-1, 1] the one with the largest mean of
    w(p) (y - p), which is the smooth calibration error. It is higher where events are more frequent
    than predicted than where they are rarer; its level follows the error on the whole, and need not
    cross 0.

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
    >>> from sklearn_calib.metrics import smooth_calibration_error
    >>> y, p = [0, 0, 1, 1], [0.3, 0.4, 0.5, 0.6]
    >>> error, witness = smooth_calibration_error(y, p, return_witness=True)
    >>> witness([0.0, 0.45, 1.0]).round(2).tolist()
    [0.7, 0.85, 1.0]
    """

    def __init__(self, scores, values, title=""):
        self.scores = scores
        self.values = values
        self.title = title

    def __call__(self, p):
        """The function at any probabilities: linear between the scores, constant outside.

        Parameters
        ----------
        p : array-like

        Returns
        -------
        values : ndarray of the same shape
        """
        return np.interp(np.asarray(p, dtype=float), self.scores, self.values)

    def plot(self, *, ax=None, **style):
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
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained")
        ends = np.concatenate([[0.0], self.scores, [1.0]])
        ax.axhline(0, color="0.35", lw=1)
        ax.plot(ends, self(ends), **style)
        ax.set(xlim=(0, 1), ylim=(-1.05, 1.05), xlabel="predicted probability", ylabel="witness")
        return ax


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"))
def smooth_calibration_error(
    y_true,
    y_proba,
    *,
    multiclass="auto",
    return_witness=False,
    sample_weight=None,
    labels=None,
    pos_label=None,
):
    """Largest mean of w(p) (y - p) over functions w that change no faster than p.

    A measure without bins: continuous in the predictions, estimated at the rate n^-1/2 whatever
    their distribution, and 0 in the limit exactly for calibrated predictions. Half of it is a lower
    bound, twice it an upper bound of the distance to the nearest calibrated predictor
    (`lower_distance_to_calibration`).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels; one dimension is the probability
        of the second class.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        As in `calibration_error`.
    return_witness : bool, default=False
        Return the optimal w as well.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0. Counts of equal predictions may be given as weights.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.

    Returns
    -------
    error : float
        In [0, 1], perfect 0; at most the expected calibration error. Biased upwards: for calibrated
        predictions it is of the order n^-1/2 (0.004 at n = 10,000); `calibration_test` gives the
        distribution.
    witness : CalibrationWitness or list of CalibrationWitness
        Only with ``return_witness=True``; a list where there are several binary problems.

    Raises
    ------
    ValueError
        Unknown option, or input that the door refuses.

    Notes
    -----
    Exact, up to rounding. Cost: O(n log n), two sorts and a pass of compiled code; about three
    times the sorting of the predictions. The linear program's solution by dynamic programming with
    a queue of kinks is simpler and faster than the paper's minimum-cost flow.

    References
    ----------
    Kakade, Foster (2008), "Deterministic calibration and Nash equilibrium". Hu, Jambulapati, Tian,
    Yang (2024), "Testing calibration in nearly-linear time", definition 3 and lemmas 2 and 6.
    Blasiok, Gopalan, Hu, Nakkiran (2023), "A unifying theory of distance from calibration",
    theorem 7.3.

    Examples
    --------
    >>> from sklearn_calib.metrics import smooth_calibration_error
    >>> from sklearn_calib.testing import make_scores
    >>> proba, y = make_scores(2, 2000)
    >>> smooth_calibration_error(y, proba) > 0.03  # overconfident
    True
    """
    from .._kernels._smooth_calibration import smooth_calibration, smooth_witness

    where = "smooth_calibration_error"
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    error, witnesses = 0.0, []
    for share, score, hit, weight, title in binary_problems(case, multiclass, where):
        residual = (hit - score) * (weight / weight.sum())
        error += share * smooth_calibration(score, residual)
        if return_witness:
            witnesses.append(CalibrationWitness(*smooth_witness(score, residual), title))
    error = float(min(max(error, 0.0), 1.0))
    if return_witness:
        return error, witnesses[0] if len(witnesses) == 1 else witnesses
    return error
