"""What `calibrated_mean` returns: the estimate, the labels alone beside it, and differences."""

from dataclasses import dataclass, field
from math import ceil, inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from .._argument_checks import check_between
from .._kernels._prediction_powered_mean import (
    bound_square_from_one_unseen_unit,
    choose_power_tuning_factors,
    compute_equivalent_label_count,
    compute_error_sum_variance,
    compute_plain_and_corrected_ends,
    get_two_sided_student_quantile,
    shrink_interval_to_width,
)
from .._show import RenderableMixin, Section, Table
from .._typing import AnyArray, FloatArray
from ..exceptions import invalid_input


class EstimateErrorsByUnit(NamedTuple):
    """Errors by row or cluster, whose sum is the error of the estimate.

    They are ``label_errors - score_gains @ power``.
    """

    # The errors of the labels alone.
    label_errors: FloatArray
    # What the scores of each system remove from them, of shape (n, n_systems).
    score_gains: FloatArray
    # The names of the clusters.
    cluster_names: AnyArray | None
    # What each system's scores subtract from the estimate at power 1.
    shifts: FloatArray
    # The effective number of labelled rows or clusters.
    n_effective: float
    n_labelled: int
    n_samples: int
    # True if the powers are chosen here, False if the caller has set them.
    is_tuned: bool
    power: FloatArray


@dataclass(frozen=True, eq=False)
class CalibratedMean(RenderableMixin):
    """The result of `calibrated_mean`: the mean label of all rows, with an interval.

    Printed it is a table with two sentences; a notebook shows it as HTML.

    Attributes
    ----------
    outcome : {"share", "mean", "difference"}
        A share of rows with a label, a mean of numbers, or the difference of two of
        them.
    positive : label or None
        Whose share it is.
    estimate, se : float
        The mean from scores and labels together, and its standard error.
    low, high : float
        Its interval.
    labels_estimate, labels_se, labels_low, labels_high : float
        The same of the labels alone.
    raw : float
        The mean of the scores as they are, between 0 and 1 if they have a scale; NaN
        for verdicts.
    power : tuple of float
        How much the scores count, from 0 (not at all) to 1; of a difference one for
        each system.
    n_labelled, n_unlabelled : int
        Rows.
    n_clusters : int or None
        Clusters with labelled rows.
    level : float
        The level of the intervals.
    selection_pvalue : float or None
        Of the hypothesis that labels were drawn at random, given the scores. None for a
        difference, for rows of unequal weights, and if all rows are labelled or all
        scores are equal.
    """

    outcome: str
    positive: Any
    estimate: float
    se: float
    low: float
    high: float
    labels_estimate: float
    labels_se: float
    labels_low: float
    labels_high: float
    raw: float
    power: tuple[float, ...]
    n_labelled: int
    n_unlabelled: int
    n_clusters: int | None
    level: float
    selection_pvalue: float | None
    _errors: EstimateErrorsByUnit = field(repr=False)

    @property
    def labels_saved(self) -> float:
        """Return the share of labels that the scores replace: 1 - (se / labels_se)^2, or NaN."""
        if self.labels_se == 0:
            return float("nan")
        return 1 - (self.se / self.labels_se) ** 2

    def difference(self, other: "CalibratedMean") -> "CalibratedMean":
        """Subtract the mean of another system that answered the same rows.

        Parameters
        ----------
        other : CalibratedMean
            Of the same rows in the same order. With `groups` the clusters are matched
            by their names, so the two may have other rows of them, and labels of other
            ones.

        Returns
        -------
        found : CalibratedMean
            Its `outcome` is "difference"; never wider than that of the labels alone.

        Raises
        ------
        TypeError
            No `CalibratedMean`.
        ValueError
            Numbers of rows that differ, clusters in one of the two alone, another
            level, or a difference of differences.

        Notes
        -----
        Errors of the two are subtracted row by row, so what makes an item hard for both
        does not count. How much the scores of each count is found again, for the
        difference. Labels 0 and 1 that never differ do not mean that they cannot: the
        variance is that of n labels with t^2/2 differences more. With `groups` it is
        that of t^2/2 clusters more, which differ as much as those do that were seen to;
        if none does, by all their rows. Measured at 95 %: 0.944 for 20 clusters of 5
        rows (500 draws); 0.930 for 40 clusters of which one in ten differs (200 draws),
        with all misses on one side, the truth above: ``benchmarks/calibrated_mean``.
        Cost: O(n).

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_calib.inference import calibrated_mean
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(2000)
        >>> y = (rng.random(200) < p[:200]).astype(int)
        >>> better = (rng.random(200) < p[:200] ** 0.5).astype(int)
        >>> first, second = (calibrated_mean(x, p[:200], p[200:]) for x in (y, better))
        >>> found = second.difference(first)
        >>> bool(found.low > 0)
        True
        """
        if not isinstance(other, CalibratedMean):
            raise invalid_input(
                expected="a CalibratedMean",
                got=type(other).__name__,
                hint="Pass what calibrated_mean gives for the other system",
                error=TypeError,
            )
        if self.outcome == "difference" or other.outcome == "difference":
            raise invalid_input(
                expected="means",
                got="a difference",
                hint="Subtract the means of two systems",
            )
        if self.level != other.level:
            raise invalid_input(
                "level",
                expected="one level",
                got=f"{self.level:g} and {other.level:g}",
                hint="Compute both with the same level=",
            )
        # Both systems answered the same rows, so their errors are subtracted row by
        # row; the common part cancels.
        errors = _subtract_errors(self._errors, other._errors)
        labels = self.labels_estimate - other.labels_estimate
        are_shares = self.outcome == other.outcome == "share"
        raw = self.raw - other.raw
        return build_calibrated_mean(
            errors,
            labels,
            self.level,
            "difference",
            are_shares=are_shares,
            raw=raw,
        )

    def labels_needed(self, width: float, *, alone: bool = False) -> int:
        """Return how many labels an interval of this width takes, drawn from as many rows.

        Parameters
        ----------
        width : float > 0
            `high` - `low`.
        alone : bool, default=False
            For labels without scores.

        Returns
        -------
        n_labelled : int
            Rows with labels, at least 10.

        Raises
        ------
        ValueError
            A width that is not a number above 0, or that labels of all rows would not
            give.

        Notes
        -----
        The variance is v / N + (1 / n - 1 / N) r for n labels of N rows, where v is the
        variance of a label and r that of what the scores leave of it, as these labels
        show them; what an interval of a share reaches beyond Student's falls as 1 / n.
        Simulated in ``benchmarks/calibrated_mean``. Cost: O(1).

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_calib.inference import calibrated_mean
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(20000)
        >>> y = (rng.random(200) < p[:200]).astype(int)
        >>> found = calibrated_mean(y, p[:200], p[200:])
        >>> found.labels_needed(0.05) < found.labels_needed(0.05, alone=True)
        True
        """
        check_between(
            "width",
            width,
            0,
            inf,
            expected="a width > 0",
            hint="Pass for instance 0.05",
        )
        n = self.n_labelled
        total = self.n_labelled + self.n_unlabelled
        # Independent units (clusters, effective rows) for each labelled row.
        ratio = self._errors.n_effective / n
        label_variance = self.labels_se**2 * n
        residual = label_variance
        if not alone and n < total:
            # The variance has a part that falls with the labelled rows and one that all
            # rows determine; both follow from the present standard error.
            residual = max(
                (self.se**2 - label_variance / n * n / total) / (1 / n - 1 / total), 0.0
            )
        rows = total
        half_width = (self.high - self.low) / 2
        t = get_two_sided_student_quantile(self._errors.n_effective, self.level)
        se = self.se
        if alone:
            half_width = (self.labels_high - self.labels_low) / 2
            se = self.labels_se
        # What an interval of a share has beyond Student's, which falls as 1 / n.
        excess = max(half_width - t * se, 0.0) * n
        # Student's quantile depends on the number of rows, so it is iterated.
        for _ in range(100):
            quantile = get_two_sided_student_quantile(rows * ratio, self.level)
            se_allowed = max(width / 2 - excess / rows, 0.0) / quantile
            variance_left = se_allowed**2 - (
                0 if alone else (label_variance - residual) / total
            )
            if variance_left <= 0 or residual / variance_left > total:
                raise invalid_input(
                    expected="a width that labels of all rows would give",
                    got=f"{width:g}, too narrow for {total} rows",
                    hint="Ask for more",
                )
            previous = rows
            rows = max(ceil(residual / variance_left), 10)
            if rows == previous:
                break
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and names for JSON; None for missing values."""
        fields = dict(vars(self))
        del fields["_errors"]
        fields["positive"] = None if self.positive is None else str(self.positive)
        fields |= {"power": [*self.power], "labels_saved": self.labels_saved}
        # NaN is not equal to itself.
        return {name: x if x == x else None for name, x in fields.items()}

    def _make_sections(self):
        """Return a table of both estimates, with sentences and notes."""
        head = ["", "estimate", "standard error", f"{100 * self.level:g} % interval"]
        rows = [
            [
                "labels and scores",
                *_format_cells(self.estimate, self.se, self.low, self.high),
            ],
            [
                "labels alone",
                *_format_cells(
                    self.labels_estimate,
                    self.labels_se,
                    self.labels_low,
                    self.labels_high,
                ),
            ],
        ]
        # NaN: verdicts do not have a mean.
        if self.raw == self.raw:
            rows.append(["scores as they are", f"{self.raw:.4f}", "", ""])
        return [
            Section(
                sentences=self._list_mean_sentences(),
                tables=[Table(head, rows)],
                notes=self._list_notes(),
            )
        ]

    def _list_mean_sentences(self):
        """Return sentences with the estimate and the number of labels that scores replace."""
        subject = f"The {self.outcome}"
        if self.positive is not None:
            subject += f" of {self.positive!r}"
        ends = f"{self.low:.4f} and {self.high:.4f}"
        sentences = [
            f"{subject} is {self.estimate:.4f}, between {ends} ({100 * self.level:g} %)."
        ]
        if not any(self.power):
            return [
                *sentences,
                "The scores add nothing to the labels: it is the mean of these.",
            ]
        n_more = self.n_labelled * (1 / (1 - self.labels_saved) - 1)
        if n_more >= 1:
            sentences += [f"The scores are worth {n_more:.0f} more labels."]
        return sentences

    def _list_notes(self):
        rows = f"{self.n_labelled} labelled rows, {self.n_unlabelled} without a label"
        cluster_text = (
            f", in {self.n_clusters} clusters with labels" if self.n_clusters else ""
        )
        power = " and ".join(f"{value:.2f}" for value in self.power)
        notes = [f"{rows}{cluster_text}. The scores count with weight {power}."]
        if self.selection_pvalue is None:
            notes.append(
                "It is not tested whether the labels were drawn at random: that takes one "
                "mean of rows of equal weight, some without a label, and scores that differ."
            )
        else:
            pvalue = f"{self.selection_pvalue:.3g}"
            notes.append(f"Scores of labelled rows against the others: p = {pvalue}.")
        return notes


def _format_cells(estimate, se, low, high):
    return [f"{estimate:.4f}", f"{se:.4f}", f"{low:.4f} to {high:.4f}"]


def _subtract_errors(first, second):
    """Compute errors of the difference, with a column of gains for each system."""
    if (first.cluster_names is None) != (second.cluster_names is None):
        raise invalid_input(
            expected="clusters of both or of neither",
            got="clusters of only one",
            hint="Pass groups= for both",
        )
    if first.cluster_names is None:
        if (first.n_labelled, first.n_samples) != (second.n_labelled, second.n_samples):
            raise invalid_input(
                expected="the same rows",
                got=(
                    f"{first.n_labelled} of {first.n_samples} labelled and "
                    f"{second.n_labelled} of {second.n_samples} labelled"
                ),
                hint="Pass the same rows in the same order, or groups= with a name of each item",
            )
        cluster_names = None
        rows = np.arange(len(first.label_errors))
        positions = [rows, rows]
    else:
        cluster_names = np.union1d(first.cluster_names, second.cluster_names)
        n_shared = min(len(first.cluster_names), len(second.cluster_names))
        if len(cluster_names) > n_shared:
            lonely = np.setxor1d(first.cluster_names, second.cluster_names)
            raise invalid_input(
                expected="the same clusters",
                got=f"{lonely[0]!r} in only one of them",
                hint="Pass the items that both systems answered",
            )
        positions = [
            np.searchsorted(cluster_names, first.cluster_names),
            np.searchsorted(cluster_names, second.cluster_names),
        ]
    # Rows or clusters of the second system are subtracted from those of the first.
    n_units = len(first.label_errors)
    label_errors = np.zeros(n_units)
    score_gains = np.zeros((n_units, 2))
    for column, (errors, index) in enumerate(
        zip((first, second), positions, strict=True)
    ):
        sign = 1 - 2 * column
        label_errors[index] += sign * errors.label_errors
        score_gains[index, column] = sign * errors.score_gains[:, 0]
    return EstimateErrorsByUnit(
        label_errors,
        score_gains,
        cluster_names,
        shifts=np.array([first.shifts[0], -second.shifts[0]]),
        n_effective=min(first.n_effective, second.n_effective),
        n_labelled=min(first.n_labelled, second.n_labelled),
        n_samples=min(first.n_samples, second.n_samples),
        is_tuned=first.is_tuned and second.is_tuned,
        power=np.concatenate([first.power, second.power]),
    )


def build_calibrated_mean(
    errors: EstimateErrorsByUnit,
    labels_estimate: float,
    level: float,
    outcome: str,
    *,
    raw: float,
    are_shares: bool = False,
    positive: Any = None,
    bounds: tuple[float, float] | None = None,
    n_clusters: int | None = None,
    selection_pvalue: float | None = None,
) -> CalibratedMean:
    """Build the result: powers, standard errors and intervals."""
    label_errors = errors.label_errors
    score_gains = errors.score_gains
    n_effective = errors.n_effective
    label_variance = compute_error_sum_variance(label_errors, n_effective, 1)
    # The weight of the scores that minimises the variance, as in power-tuned
    # prediction-powered inference.
    power = errors.power
    lost_freedom = 1
    if errors.is_tuned:
        power = choose_power_tuning_factors(label_errors, score_gains)
        lost_freedom += np.count_nonzero(power)
    residual = label_errors - score_gains @ power
    variance = compute_error_sum_variance(residual, n_effective, lost_freedom)
    # Tuning costs a degree of freedom. If that is more than the scores save, the labels
    # alone are used.
    if errors.is_tuned and not variance < label_variance:
        power = np.zeros_like(power)
        variance = label_variance
    estimate = labels_estimate - float(errors.shifts @ power)
    if bounds is not None:
        labels_estimate = min(max(labels_estimate, bounds[0]), bounds[1])
        estimate = min(max(estimate, bounds[0]), bounds[1])
    t = get_two_sided_student_quantile(n_effective, level)
    if outcome == "share" or (bounds is not None and label_variance == 0):
        label_ends, ends = _compute_plain_and_corrected_intervals(
            labels_estimate,
            estimate,
            (label_variance, variance),
            errors,
            level,
            bounds,
        )
    else:
        extra = 0.0
        # Two systems that agree on all labelled rows may still differ on others, which
        # a variance of 0 would deny.
        if outcome == "difference" and are_shares:
            n_rows = None if errors.cluster_names is None else errors.n_labelled
            unseen_square = bound_square_from_one_unseen_unit(
                label_errors, n_effective, n_rows
            )
            extra = t**2 / 2 * unseen_square
        limits = bounds or (-inf, inf)
        label_ends = _bound_interval(
            labels_estimate, t * sqrt(label_variance + extra), limits
        )
        ends = _bound_interval(estimate, t * sqrt(variance + extra), limits)
        ends = shrink_interval_to_width(estimate, ends, label_ends[1] - label_ends[0])
    return CalibratedMean(
        outcome=outcome,
        positive=positive,
        estimate=estimate,
        se=sqrt(variance),
        low=float(ends[0]),
        high=float(ends[1]),
        labels_estimate=labels_estimate,
        labels_se=sqrt(label_variance),
        labels_low=float(label_ends[0]),
        labels_high=float(label_ends[1]),
        raw=raw,
        power=tuple(map(float, power)),
        n_labelled=errors.n_labelled,
        n_unlabelled=errors.n_samples - errors.n_labelled,
        n_clusters=n_clusters,
        level=level,
        selection_pvalue=selection_pvalue,
        _errors=errors,
    )


def _bound_interval(middle, half_width, limits):
    """Return the ends of an interval around `middle`, within the limits of labels."""
    return max(middle - half_width, limits[0]), min(middle + half_width, limits[1])


def _compute_plain_and_corrected_intervals(
    labels_estimate, corrected_estimate, variances, errors, level, bounds
):
    """Compute both intervals of a share, or of numbers scaled to their bounds."""
    low = bounds[0]
    span = bounds[1] - bounds[0]
    label_share = (labels_estimate - low) / span
    share = (corrected_estimate - low) / span
    label_variance, variance = (value / span**2 for value in variances)
    n_effective = errors.n_effective
    rows = compute_equivalent_label_count(
        label_share,
        label_variance * (n_effective - 1) / n_effective,
        n_effective,
        errors.n_labelled,
    )
    intervals = compute_plain_and_corrected_ends(
        label_share,
        share,
        (label_variance, variance),
        rows,
        level,
        get_two_sided_student_quantile(n_effective, level),
    )
    return tuple((low + span * ends[0], low + span * ends[1]) for ends in intervals)
