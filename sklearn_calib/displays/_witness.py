"""WitnessDisplay: where predictions are off, under a reliability curve."""

from .._extras import require
from .._show import in_picture
from ..exceptions import refuse
from ..metrics import calibration_witness, reliability_curve, smooth_calibration_error


class WitnessDisplay:
    """A reliability curve, and below it the witness of the smooth calibration error.

    The witness is the function of slope at most 1 that shows the most of the miscalibration: higher
    where events are more frequent than predicted, lower where they are rarer.

    Parameters
    ----------
    curve : ReliabilityCurve
    witness : CalibrationWitness
    error : float
        The smooth calibration error.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import WitnessDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> display = WitnessDisplay.from_predictions(y, proba)
    >>> display.axes_[1].get_ylabel()
    'witness'
    """

    def __init__(self, curve, witness, error):
        self.curve = curve
        self.witness = witness
        self.error = error

    @classmethod
    def from_predictions(cls, y_true, y_proba, *, axes=None, **options):
        """Compute both and draw.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Of more than two classes the largest probability is shown.
        axes : sequence of two matplotlib Axes, default=None
            A new figure by default.
        **options
            Passed to both: sample_weight, labels, pos_label.

        Returns
        -------
        display : WitnessDisplay
        """
        error = smooth_calibration_error(y_true, y_proba, **options)
        witness = calibration_witness(y_true, y_proba, **options)
        (curve,) = reliability_curve(y_true, y_proba, strategy="isotonic", n_resamples=0, **options)
        return cls(curve, witness, error).plot(axes=axes)

    def plot(self, *, axes=None):
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            A new figure by default.

        Returns
        -------
        self : WitnessDisplay
        """
        if axes is None:
            plt = require("matplotlib.pyplot", "plot", "WitnessDisplay.plot")
            _, axes = plt.subplots(
                2, 1, figsize=(5, 6), sharex=True, height_ratios=(3, 1.2), layout="constrained"
            )
        if len(axes) != 2:
            refuse("WitnessDisplay.plot", "two axes", f"{len(axes)}", "Pass None for a new figure")
        above, below = axes
        curve = self.curve
        above.plot([0, 1], [0, 1], color="0.35", lw=1, ls="--")
        above.step(curve.predicted, curve.observed, where="mid", color="C0")
        above.fill_between(
            curve.predicted, curve.predicted, curve.observed, step="mid", color="C0", alpha=0.15
        )
        above.set(
            xlim=(0, 1), ylim=(0, 1), ylabel="observed frequency", title=in_picture(curve.title)
        )
        self.witness.plot(ax=below, color="C1")
        p = self.witness.scores
        below.fill_between(p, 0, self.witness(p), color="C1", alpha=0.2, lw=0)
        below.set_title(f"smooth calibration error {self.error:.4f}", fontsize="medium")
        self.axes_, self.figure_ = axes, above.figure
        return self


class NullDistributionDisplay:
    """The distribution of a test's statistic if predictions were calibrated, and what was found.

    Parameters
    ----------
    result : MonteCarloResult
        From `calibration_test`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import NullDistributionDisplay
    >>> from sklearn_calib.inference import calibration_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 200)
    >>> result = calibration_test(y, proba, n_resamples=99, random_state=0)
    >>> NullDistributionDisplay(result).plot().ax_.get_ylabel()
    'replicates'
    """

    def __init__(self, result):
        self.result = result

    def plot(self, *, ax=None, bins=40):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        bins : int, default=40

        Returns
        -------
        self : NullDistributionDisplay
        """
        if ax is None:
            plt = require("matplotlib.pyplot", "plot", "NullDistributionDisplay.plot")
            _, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
        found = self.result
        ax.hist(found.null_distribution, bins=bins, color="0.75", label="if calibrated")
        label = f"found: {found.statistic:.4g}, p = {found.pvalue:.3g}"
        ax.axvline(found.statistic, color="C3", lw=2, label=label)
        ax.set(xlabel=found.name.replace("_", " "), ylabel="replicates")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
