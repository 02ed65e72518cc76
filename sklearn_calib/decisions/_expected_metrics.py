"""Performance without labels: the metrics to expect if probabilities are calibrated."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr

from .._argument_checks import check_between, import_optional
from .._kernels import _expected_metrics as kernels
from .._show import RenderableMixin, Section, Table
from .._spelling import suggest_name
from .._typing import AnyArray, ArrayLike, DataFrame, FloatArray
from .._validation import (
    check_and_get_common_index,
    check_same_length,
    find_positive_index_or_second,
    get_proba_with_single_column_at_class,
    raise_if_single_column_class_unclear,
    read_labels,
    read_proba,
    read_weight_and_unit,
    reorder_columns_if_names_match,
    warn_column_order,
)
from ..exceptions import invalid_input
from ..metrics import BrierLoss, LogLoss
from ._costs import canonical_costs


@dataclass(frozen=True)
class ExpectedMetrics(RenderableMixin):
    """The metrics to expect if the predictions are calibrated, with their standard deviations.

    Attributes
    ----------
    accuracy : float
    brier_loss : float
        On the scale of the function `brier_loss`.
    log_loss : float
        In nats.
    cost : float
        Mean cost per row of the actions that look cheapest. Without `costs`, the share
        of rows whose most probable class is not the true one. Of two actions that cost
        the same the second is taken, as from a threshold on.
    precision, recall, auc : float or None
        For the positive class; None for more than two classes. NaN if the number is not
        defined: no row is predicted positive, or no event is possible.
    confusion : ndarray of shape (n_classes, n_classes)
        Expected weight of the rows of each true class (rows) and predicted class
        (columns).
    standard_deviations : dict of str to float
        How far each metric varies by chance: its standard deviation over labels drawn
        from the probabilities.
    realised : dict of str to float
        The metrics computed from the true labels, if these were given.
    """

    accuracy: float
    brier_loss: float
    log_loss: float
    cost: float
    precision: float | None
    recall: float | None
    auc: float | None
    confusion: FloatArray
    standard_deviations: dict[str, float]
    realised: dict[str, float] = field(default_factory=dict)

    def z_score(self, name: str) -> float:
        """Return the realised less the expected value of a metric, in standard deviations.

        Parameters
        ----------
        name : str
            A key of `standard_deviations`.

        Returns
        -------
        z : float
            About normal if the probabilities are calibrated and the rows many;
            infinite if a metric differs that could not.
        """
        if name not in self.realised:
            names = "no metric, since there were no labels"
            hint = "Pass y_true= to expected_metrics"
            if self.realised:
                names = ", ".join(self.realised)
                hint = suggest_name(name, self.realised)
            raise invalid_input(expected=f"one of {names}", got=repr(name), hint=hint)
        gap = self.realised[name] - getattr(self, name)
        deviation = self.standard_deviations[name]
        # A deviation of 0 means that the metric is certain, such as the accuracy if all
        # probabilities are 0 or 1.
        if deviation > 0 or np.isnan(gap):
            return float(gap / deviation)
        # Rounding must not make such a metric infinitely different.
        return 0.0 if abs(gap) < 1e-12 else float(np.copysign(np.inf, gap))

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per metric.

        Columns metric, expected, standard_deviation; with labels realised, z and
        pvalue, two-sided.
        """
        pd = import_optional("pandas", "cli")
        rows: list[dict[str, Any]] = []
        for name, deviation in self.standard_deviations.items():
            row = {
                "metric": name,
                "expected": getattr(self, name),
                "standard_deviation": deviation,
            }
            if self.realised:
                z = self.z_score(name)
                row |= {
                    "realised": self.realised[name],
                    "z": z,
                    "pvalue": 2 * ndtr(-abs(z)),
                }
            rows.append(row)
        return pd.DataFrame(rows)

    def _make_sections(self):
        lines = [["metric", "expected", "standard deviation"]]
        for name, deviation in self.standard_deviations.items():
            lines.append([name, f"{getattr(self, name):.4f}", f"{deviation:.4f}"])
        if self.realised:
            lines[0] += ["realised", "z"]
            for line in lines[1:]:
                line += [
                    f"{self.realised[line[0]]:.4f}",
                    f"{self.z_score(line[0]):.2f}",
                ]
        header, *rows = lines
        return [Section(tables=[Table(header, rows)])]


def expected_metrics(
    y_proba: ArrayLike,
    *,
    threshold: float | None = None,
    costs: ArrayLike | None = None,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> ExpectedMetrics:
    """Estimate accuracy, precision, AUC and more without labels, from calibrated probabilities.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities.
    threshold : float in (0, 1), default=None
        For two classes only: a row is predicted positive if the probability of the
        positive class is at least this. By default the class with the largest
        probability is predicted.
    costs : array-like of shape (n_classes, n_actions), default=None
        As in `CostSensitiveClassifier`, for ``cost``.
    y_true : array-like of shape (n_samples,), default=None
        Labels, if they have come in: the realised metrics stand beside the expected
        ones, which is a check of calibration in the metrics themselves.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The positive class, for two classes only: `threshold`, precision, recall and AUC
        are about it, and a single column of `y_proba` is its probability. By default
        the second class. Required with a single column for labels other than 0 and 1,
        False and True, or -1 and 1, unless `labels` is given. Without `y_true` and
        `labels` the classes are 0 and 1.

    Returns
    -------
    metrics : ExpectedMetrics

    Raises
    ------
    ValueError
        A `pos_label` that is not a class, or with more than two; a threshold outside (0,
        1) or with more than two classes, invalid costs (see `CostSensitiveClassifier`),
        or invalid scores, labels or weights; see `canonical_proba`.

    Warns
    -----
    CalibrationWarning
        `labels` in an order of their own if the columns fit another one of `y_true`
        far better.

    Notes
    -----
    Labels are taken as drawn from the probabilities, independently. Then the
    expectations of the means of rows (accuracy, losses, cost) and of the precision are
    exact, and so are their standard deviations; for the accuracy it is sqrt(sum m (1 -
    m)) / n with m the probability of the predicted class. Recall and AUC are ratios of
    expectations, whose standard deviations come from the derivatives with respect to
    the labels; they differ from the expected ratio by O(1 / n). The AUC is sum_{i != j}
    p_i (1 - p_j) (1{p_i > p_j} + 1/2 1{=}) / sum_{i != j} p_i (1 - p_j). If the
    probabilities are not calibrated, all of this is wrong: overconfident ones promise
    too much. Cost: O(n k + n log n).

    References
    ----------
    Guillory et al. (2021), "Predicting with confidence on unseen distributions", for
    the mean confidence as an estimate of accuracy.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.decisions import expected_metrics
    >>> proba, y = make_overconfident(2, 2000)
    >>> found = expected_metrics(proba, y_true=y)
    >>> found.accuracy > found.realised["accuracy"]  # it promises too much
    True
    >>> bool(found.z_score("accuracy") < -5), found.to_frame().shape
    (True, (7, 6))
    """
    proba = np.asarray(read_proba(y_proba))
    check_and_get_common_index(y_true, y_proba, sample_weight)
    classes, codes = _get_classes_and_codes_or_none(proba, y_true, labels)
    proba = reorder_columns_if_names_match(proba, y_proba, classes)
    positive = _find_positive_column(classes, pos_label)
    if labels is pos_label is None:
        raise_if_single_column_class_unclear(y_proba, classes, "pos_label")
    proba = np.asarray(get_proba_with_single_column_at_class(proba, y_proba, positive))
    weight = np.ones(len(proba))
    unit = 1.0
    if sample_weight is not None:
        weight, unit = read_weight_and_unit(sample_weight, len(proba))
    if codes is not None and labels is not None:
        rows = weight > 0
        warn_column_order(proba[rows], codes[rows], classes, "labels")
    # The metrics are expectations over labels drawn from the probabilities.
    weight_share = weight / weight.sum()
    predicted = _predict_classes(proba, threshold, positive)
    values = _compute_label_values_by_metric(proba, predicted, costs, classes)
    # Metrics that are means over rows have exact moments: labels of different rows are
    # independent given the scores.
    moments = {}
    realised = {}
    for name, rows in values.items():
        moments[name] = kernels.compute_expected_mean_and_sd(proba, rows, weight_share)
        if codes is not None:
            # The realised value takes the entry of the true label of each row.
            row_values = rows[np.arange(len(codes)), codes]
            realised[name] = float(weight_share @ row_values)
    if proba.shape[1] == 2:
        score = proba[:, positive]
        is_acted = predicted == positive
        # Precision, recall and AUC are ratios, whose moments are those of their linear
        # part.
        moments |= _get_mean_and_sd_by_event_metric(
            score, score, is_acted, weight_share
        )
        if codes is not None:
            # With labels in the place of probabilities the same formulas give the
            # realised values.
            is_event = (codes == positive).astype(float)
            events = _get_mean_and_sd_by_event_metric(
                score, is_event, is_acted, weight_share
            )
            realised |= {name: value for name, (value, _) in events.items()}
    confusion = np.zeros((proba.shape[1],) * 2)
    # Each row counts in the column of its prediction, divided among the true classes by
    # its probabilities.
    np.add.at(confusion.T, predicted, proba * weight[:, None])
    # The metrics of the positive class do not exist for more than two classes.
    means: Any = {"precision": None, "recall": None, "auc": None}
    deviations = {}
    for name, (mean, deviation) in moments.items():
        means[name] = mean
        deviations[name] = deviation
    return ExpectedMetrics(
        **means,
        confusion=confusion * unit,
        standard_deviations=deviations,
        realised=realised,
    )


def _get_classes_and_codes_or_none(proba, y_true, labels):
    """Return the classes of the columns, and the encoded labels, or None without `y_true`."""
    k = proba.shape[1]
    codes = None
    classes: AnyArray = np.arange(k)
    if y_true is not None:
        classes, codes = read_labels(y_true, classes=labels)
        check_same_length(codes, proba)
    elif labels is not None:
        classes, _ = read_labels(labels, classes=labels)
    if len(classes) != k:
        raise invalid_input(
            "y_proba",
            expected=f"one class for each of the {k} columns of y_proba",
            got=f"{len(classes)} classes, {classes[:10].tolist()}",
            hint="If y_true misses a class, name all, in the order of the columns, with labels=",
        )
    return classes, codes


def _find_positive_column(classes, pos_label):
    """Find the column of the positive class."""
    if pos_label is not None and len(classes) != 2:
        raise invalid_input(
            expected="two classes with pos_label=",
            got=f"{len(classes)}",
            hint="Leave pos_label out, or pass one class against the others",
        )
    return find_positive_index_or_second(
        classes, pos_label, "Name one of the labels; without y_true pass labels= too"
    )


def _predict_classes(proba, threshold, positive):
    """Return the position of the predicted class of each row."""
    if threshold is None:
        return proba.argmax(axis=1)
    check_between(
        "threshold",
        threshold,
        0,
        1,
        expected="a threshold strictly between 0 and 1",
        hint="Leave it out to predict the class with the largest probability",
    )
    if proba.shape[1] != 2:
        raise invalid_input(
            expected="two classes with threshold=",
            got=f"{proba.shape[1]}",
            hint="Leave threshold out, or pass one class against the others",
        )
    return np.where(proba[:, positive] >= threshold, positive, 1 - positive)


def _compute_label_values_by_metric(proba, predicted, costs, classes):
    """Compute, for each metric that is a mean of rows, its value for each row and label."""
    k = proba.shape[1]
    table = canonical_costs(costs, classes)
    return {
        "accuracy": (predicted[:, None] == np.arange(k)).astype(float),
        "brier_loss": BrierLoss().compute_label_losses(proba),
        "log_loss": LogLoss().compute_label_losses(proba),
        "cost": table[:, kernels.choose_best_actions(proba, table)].T,
    }


def _get_mean_and_sd_by_event_metric(score, p, is_acted, weight_share):
    """Compute the metrics of the positive class of two, whose probabilities are p."""
    return {
        "precision": kernels.compute_expected_precision_and_sd(
            p, is_acted, weight_share
        ),
        "recall": kernels.compute_expected_recall_and_sd(p, is_acted, weight_share),
        "auc": kernels.compute_expected_auc_and_sd(score, p, weight_share),
    }
