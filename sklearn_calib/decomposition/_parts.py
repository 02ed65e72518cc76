"""LossDecomposition: a mean loss and its parts, with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from .._argument_checks import check_level, unknown_name_error
from .._show import make_printable
from ..metrics import LossLike, get_loss
from ._intervals import SamplingErrorDistribution

LOSS_TERMS = ("risk", "calibration", "refinement", "sharpness", "uncertainty")
FEATURE_TERMS = ("grouping", "irreducible")
# The level of the one-sided test of each gain.
GAIN_SIGNIFICANCE_LEVEL = 0.05
# A gain of `minimum_detectable` is found with this probability.
DETECTION_POWER = 0.8
# A sentence names columns with at least a tenth of the gains of the splits.
_MAX_NAMED_COLUMNS = 3

Action = Literal["recalibrate", "retrain", "both", "neither"]


@dataclass(frozen=True)
class LossDecomposition:
    """The result of `decompose_loss`: a mean loss and its parts.

    risk = calibration + refinement = calibration + uncertainty - sharpness. With
    features: risk = calibration + grouping + irreducible.

    Attributes
    ----------
    risk : float
        Mean loss of the predictions.
    calibration : float
        What recalibration removes: risk - refinement.
    refinement : float
        Mean loss after recalibration.
    sharpness : float
        How much the scores, once recalibrated, lower the loss: uncertainty -
        refinement.
    uncertainty : float
        Mean loss if the class frequencies were predicted for every row.
    standard_errors : dict of str to float or None
        The standard error of each term: the term plus or minus 1.96 standard errors is
        a 95 % interval. Some terms have None instead. Uncertainty always has, because
        its errors are far from normal if the classes are equally frequent. So has
        calibration without features, because its errors are far from normal if the rows
        are calibrated. The method `interval` gives intervals of both. Without features,
        refinement and sharpness have a standard error only if the recalibrator is
        temperature scaling: see `decompose_loss`.
    loss : str or ProperLoss
        As it was given.
    grouping : float or None
        With features: a better use of them lowers the loss by at least this much beyond
        what recalibration does. Never below 0. This and the following attributes are
        None without features.
    gain_of_features : float or None
        The same number before it is raised to 0: negative if the correction by features
        made the loss larger, which happens by chance if the features have nothing to
        add.
    irreducible : float or None
        The loss that remains: refinement - grouping. The part of the loss that no model
        with these features can remove is at most this large.
    feature_gains : dict of column name to float, or None
        How much each column contributed to the gains of the trees' splits, as a share;
        the largest comes first. The shares add up to 1, or are all 0 if no tree was
        grown. Columns have the names of the table, or "column 0" and so on.
    minimum_detectable : float or None
        If the model overlooks a single feature that is worth this gain, the gain is
        found with probability 0.8 or more. Products of features need a larger gain, see
        Notes of `decompose_loss`. None if no gain of any size would be found so
        reliably.
    n_rows : int or None
        The number of rows with positive weight, on which the gains rest.
    """

    risk: float
    calibration: float
    refinement: float
    sharpness: float
    uncertainty: float
    standard_errors: dict[str, float | None]
    loss: LossLike
    grouping: float | None = None
    gain_of_features: float | None = None
    irreducible: float | None = None
    feature_gains: dict[Any, float] | None = None
    minimum_detectable: float | None = None
    n_rows: int | None = None
    _sampling_errors: Mapping[str, SamplingErrorDistribution] = field(
        repr=False, default_factory=dict
    )

    @property
    def action(self) -> Action | None:
        """Return "recalibrate", "retrain", "both" or "neither", according to the gains.

        None without features or without intervals. A gain counts as found if the lower
        end of its 90 % interval is above 0, which happens by chance in at most 5 % of
        the samples in which there is nothing to be gained.
        """
        if self.grouping is None or not self._sampling_errors:
            return None
        is_miscalibrated = self._is_significantly_positive("calibration")
        misses_features = self._is_significantly_positive("grouping")
        if is_miscalibrated and misses_features:
            return "both"
        if is_miscalibrated:
            return "recalibrate"
        return "retrain" if misses_features else "neither"

    def advice(self, level: float = 0.9) -> str | None:
        """Describe `action` in plain English, with the gains; None if `action` is None.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            The level of the intervals that are quoted.

        Returns
        -------
        text : str
            Begins with "Recalibrate:", "Retrain:", "Recalibrate and retrain:" or
            "Neither:".

        Raises
        ------
        ValueError
            A level outside (0, 1).

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.special import expit
        >>> from sklearn_calib.decomposition import decompose_loss
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> y = (np.random.default_rng(1).random(400) < expit(X[:, 0] + 2 * X[:, 1])).astype(int)
        >>> given = {"recalibrator": "identity", "cv": 2}
        >>> parts = decompose_loss(y, expit(X[:, 0]), features=X, **given)
        >>> parts.advice().partition(" would")[0]
        'Retrain: a model that used column 1 better'
        """
        check_level(level)
        if self.action is None:
            return None
        loss = get_loss(self.loss).title
        rows = f"{self.n_rows:,} rows"
        n_features = len(self.feature_gains or ())
        columns = "the feature" if n_features == 1 else f"the {n_features} features"
        by_map = f"by {self._format_term('calibration', level)}"
        better_use = f"A model that used {self._describe_large_gain_features()} better would lower "
        at_least = f"by at least {self._format_term('grouping', level)}"
        undetected = f"in {rows} a gain of any size would hardly have been found"
        if self.minimum_detectable is not None:
            smallest_gain = _format_number(
                self.minimum_detectable, self.minimum_detectable
            )
            undetected = (
                f"with {rows}, a gain of {smallest_gain} by a single feature would have been "
                f"found with probability {100 * DETECTION_POWER:.0f} % or more"
            )
        if self.action == "both":
            return (
                f"Recalibrate and retrain: recalibration lowers the {loss} {by_map}. {better_use}"
                f"it further, {at_least}."
            )
        if self.action == "retrain":
            return (
                f"Retrain: a{better_use[1:]}the {loss} {at_least}. These rows show no gain from "
                f"recalibration ({self._format_term('calibration', level)})."
            )
        if self.action == "recalibrate":
            return (
                f"Recalibrate: this lowers the {loss} {by_map}. A gain from a better use of "
                f"{columns} was not found; {undetected}."
            )
        return (
            f"Neither: the rows show no gain in {loss} from recalibration "
            f"({self._format_term('calibration', level)}), and none from a better use of "
            f"{columns}; {undetected}."
        )

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return numbers and texts for JSON: the terms with standard errors and intervals.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            The level of the intervals.

        Returns
        -------
        content : dict
            A dict ``{"value", "standard_error", "low", "high"}`` for each term, and
            with features also ``action``, ``advice``, ``gain_of_features``,
            ``feature_gains`` (whose keys are text), ``minimum_detectable`` and
            ``n_rows``. Unknown values are None.
        """
        check_level(level)
        with_features = self.grouping is not None
        content: dict[str, Any] = {"loss": get_loss(self.loss).name, "level": level}
        for term in LOSS_TERMS + FEATURE_TERMS * with_features:
            low, high = self.interval(term, level) or (None, None)
            error = self.standard_errors[term]
            value = getattr(self, term)
            content[term] = {
                "value": value,
                "standard_error": error,
                "low": low,
                "high": high,
            }
        if with_features:
            names = "action", "gain_of_features", "minimum_detectable", "n_rows"
            content |= {name: getattr(self, name) for name in names}
            content["advice"] = self.advice(level)
            fractions = (self.feature_gains or {}).items()
            content["feature_gains"] = {
                str(name): fraction for name, fraction in fractions
            }
        return content

    def _is_significantly_positive(self, term):
        # The lower end of a two-sided interval is the bound of a one-sided test.
        level = 1 - 2 * GAIN_SIGNIFICANCE_LEVEL
        low, _ = self._sampling_errors[term].compute_interval(level)
        return low > 0

    def _format_term(self, term, level):
        low, high = self._sampling_errors[term].compute_interval(level)
        width = (high - low) / 2
        middle = _format_number(self._sampling_errors[term].estimate, width)
        ends = f"{_format_number(low, width)} to {_format_number(high, width)}"
        return f"{middle} ({100 * level:.0f} % interval {ends})"

    def _describe_large_gain_features(self):
        fractions = (self.feature_gains or {}).items()
        names = [
            make_printable(name, 40) for name, fraction in fractions if fraction >= 0.1
        ]
        if not names:
            return "the features"
        *first_names, last_name = names[:_MAX_NAMED_COLUMNS]
        return f"{', '.join(first_names)} and {last_name}" if first_names else last_name

    def without_intervals(self) -> "LossDecomposition":
        """Return the same terms without standard errors and intervals."""
        return replace(
            self,
            standard_errors=dict.fromkeys(self.standard_errors),
            _sampling_errors={},
        )

    def interval(self, term: str, level: float = 0.95) -> tuple[float, float] | None:
        """Return a confidence interval for the value of a term in the population.

        Parameters
        ----------
        term : {"risk", "calibration", "refinement", "sharpness", "uncertainty",
        "grouping", \
"irreducible"}
        level : float in (0, 1), default=0.95

        Returns
        -------
        low, high : float
            Or None if no interval is known that holds what it promises: calibration,
            refinement and sharpness by another recalibrator than temperature scaling,
            or if the best temperature is infinite or 0; grouping and irreducible
            without features.

        Raises
        ------
        ValueError
            An unknown term, or a level outside (0, 1).

        Notes
        -----
        The population values are: risk, the expected loss of the predictions;
        refinement, that of the predictions after the temperature with the smallest
        expected log loss; uncertainty, that of the true class frequencies; calibration
        and sharpness, their differences. With `cv` the estimates differ from those in
        sample by about 1 / n, the population values do not, and neither do the
        intervals.

        The bias of the terms in sample is taken off, so an interval need not be centred
        on its term. Risk: the normal law with Hall's correction for skewness.
        Refinement and sharpness: the normal law of the influences of the rows, which
        for the Brier loss include that of the fitted temperature. Calibration and
        uncertainty: those values q for which the estimate is within 1.96 standard
        deviations, whose square is a + b q; a is the variance of second order that is
        left on calibrated rows, or for equally frequent classes, where b q is 0.

        Measured coverage of the 95 % intervals: 93 to 97 % for two and four classes,
        200 to 20,000 rows, calibrated and overconfident, for log and Brier loss
        (``benchmarks/decomposition_coverage``). Of the spherical loss and two of the
        beta family, two classes: 90 to 96 % at 300 rows for the calibration term, whose
        law does not know its skewness, and 93 to 98 % at 1500; it is lowest for a loss
        without a bound on overconfident rows.

        References
        ----------
        Hall (1992), "On the removal of skewness by transformation", section 2.

        Examples
        --------
        >>> from sklearn_calib.decomposition import decompose_loss
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(3, 1000)
        >>> low, high = decompose_loss(y, proba).interval("calibration")
        >>> low > 0  # overconfident
        True
        """
        if term not in LOSS_TERMS + FEATURE_TERMS:
            raise unknown_name_error("term", term, LOSS_TERMS + FEATURE_TERMS)
        check_level(level)
        law = self._sampling_errors.get(term)
        return None if law is None else law.compute_interval(level)


def _format_number(value, width):
    """Format a number with two digits of its half width."""
    digits = 2
    if width > 0:
        digits = int(np.clip(1 - np.floor(np.log10(width)), 2, 8))
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return text
