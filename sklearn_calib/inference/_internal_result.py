"""What `internal_validation` returns: corrected measures, instability, and the shrinkage."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import isfinite, isnan
from typing import Any, Literal

import numpy as np
from scipy.special import entr

from .._argument_checks import (
    check_between,
    check_choice,
    import_optional,
    is_real_number,
    unknown_name_error,
)
from .._kernels._batch_measures import SortedMultiModelPredictions
from .._kernels._logistic import compute_log_likelihood, fit_coefficient_and_likelihood
from .._kernels._probability_floor import estimate_floor
from .._show import RenderableMixin, Section, Table
from .._simplex_array import compute_log_odds
from .._typing import AnyArray, DataFrame, Estimator, FloatArray, IntArray
from ..exceptions import invalid_input
from ..recalibrators import PlattScaling

_INTRODUCTION_BY_METHOD = {
    "optimism": "Corrected by the mean optimism of",
    ".632+": "The .632+ estimate from",
    "cross_validation": "Cross-validated by",
}


@dataclass(frozen=True)
class InternalValidationRow:
    """One measure of an `InternalValidation`; a number that does not exist is NaN.

    Attributes
    ----------
    measure : str
    apparent : float
        Of the model, on the rows that it was fitted on.
    optimism : float
        How much the apparent value is too good, or too high: `apparent` less
        `corrected`.
    corrected : float
        What is to be expected on new rows.
    low, high : float
        Confidence interval of the value on new rows.
    n_used : int
        Resamples whose values exist.
    """

    measure: str
    apparent: float
    optimism: float
    corrected: float
    low: float
    high: float
    n_used: int


@dataclass(frozen=True, eq=False)
class Instability:
    """How much each row's prediction changes if the model is developed on other rows.

    Attributes
    ----------
    predicted : ndarray of shape (n_samples,)
        By the model itself.
    low, high : ndarray of shape (n_samples,)
        Quantiles of the predictions of the resampled models for each row.
    mean_absolute_error : ndarray of shape (n_samples,)
        Mean distance of these from `predicted`.
    changed : ndarray of shape (n_samples,)
        Share of the resampled models that put the row on the other side of the
        threshold.
    curves : tuple of ndarray of shape (n_models, n_cells)
        Smoothed calibration curves of the resampled models on the original rows:
        predictions and frequencies.
    curve : tuple of ndarray of shape (n_cells,)
        That of the model itself.
    threshold, level : float
    """

    predicted: FloatArray
    low: FloatArray
    high: FloatArray
    mean_absolute_error: FloatArray
    changed: FloatArray
    curves: tuple[FloatArray, FloatArray]
    curve: tuple[FloatArray, FloatArray]
    threshold: float
    level: float


@dataclass(frozen=True, eq=False)
class InternalValidation(RenderableMixin):
    """The result of `internal_validation`: a model's measures, corrected for optimism.

    Printed it is a table; a notebook shows it as HTML.

    Attributes
    ----------
    rows : tuple of InternalValidationRow
    method : {"optimism", ".632+", "cross_validation"}
    ci : {"pivot", "shifted"}
    level : float
        The level of the intervals.
    n_resamples : int
        Bootstrap samples, or models that were fitted in all folds of all repetitions.
    n_folds : int
        Of each repetition; 0 for the bootstrap.
    n_redrawn : int
        Samples that were drawn again because a class was missing.
    n_samples : int
        Rows of weight above 0.
    estimator : classifier
        The model itself, fitted on all rows.
    classes : ndarray of shape (n_classes,)
    positive : int
        Position of the event among two classes.
    codes : ndarray of shape (n_samples,)
        Labels as positions among `classes`.
    weight : ndarray of shape (n_samples,)
    proba : ndarray of shape (n_samples, n_classes)
        Predictions of the model itself.
    resampled : ndarray of shape (n_resamples, n_samples[, n_classes]), float32, or None
        Predictions of the resampled models: of the event if there are two classes.
    line : tuple of float
        Corrected intercept and slope, if there are two classes; else NaN.
    """

    rows: tuple[InternalValidationRow, ...]
    method: str
    ci: str
    level: float
    n_resamples: int
    n_folds: int
    n_redrawn: int
    n_samples: int
    estimator: Estimator
    classes: AnyArray
    positive: int
    codes: IntArray = field(repr=False)
    weight: FloatArray = field(repr=False)
    proba: FloatArray = field(repr=False)
    resampled: FloatArray | None = field(repr=False)
    line: tuple[float, float]

    def __getitem__(self, measure: str) -> InternalValidationRow:
        """Return the row of a measure.

        Raises
        ------
        KeyError
            No such row.
        """
        for row in self.rows:
            if row.measure == measure:
                return row
        raise unknown_name_error(
            "a measure", measure, [*self], "Name it in measures=", KeyError
        )

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the rows, as of a dict."""
        return (row.measure for row in self.rows)

    def to_frame(self) -> DataFrame:
        """Return the rows as a pandas DataFrame.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        return pd.DataFrame([asdict(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and names for JSON; None for missing values."""
        names = (
            "method",
            "ci",
            "level",
            "n_resamples",
            "n_folds",
            "n_redrawn",
            "n_samples",
        )
        content: dict[str, Any] = {name: getattr(self, name) for name in names}
        content["rows"] = []
        for row in self.rows:
            fields = asdict(row).items()
            content["rows"].append(
                {key: _replace_non_finite_by_none(x) for key, x in fields}
            )
        return content

    # -- instability ---------------------------------------------------------------------------

    def instability(
        self, threshold: float = 0.5, *, pos_label: object = None
    ) -> Instability:
        """Compute how much the predictions of each row change between the resampled models.

        Parameters
        ----------
        threshold : float in (0, 1), default=0.5
            Of a decision, for `Instability.changed`.
        pos_label : label, default=None
            Whose probability it is about; the event of two classes by default.

        Returns
        -------
        instability : Instability

        Raises
        ------
        ValueError
            A threshold outside (0, 1); more than two classes and no `pos_label`;
            predictions that were not kept; a cross-validation, whose models were not
            developed on as many rows.

        References
        ----------
        Riley, Collins (2023), "Stability of clinical prediction models developed using
        statistical or machine learning methods", sections 3 and 4.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn_calib.inference import internal_validation
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> found = internal_validation(LogisticRegression(), X[:, [1, 8]], y, n_resamples=20)
        >>> moved = found.instability(threshold=0.2)
        >>> bool(moved.mean_absolute_error.mean() < 0.05)
        True
        """
        check_between(
            "threshold",
            threshold,
            0,
            1,
            expected="a threshold between 0 and 1",
            hint="Pass for instance 0.1",
        )
        column = self._find_column_or_event_column(pos_label)
        models = self._get_class_proba_by_model(column)
        predicted = self.proba[:, column]
        tail = (1 - self.level) / 2
        low, high = np.quantile(models, [tail, 1 - tail], axis=0)
        outcome = (self.codes == column).astype(np.float64)
        x, y = SortedMultiModelPredictions(models, outcome).smooth_curves(self.weight)
        model_curve = SortedMultiModelPredictions(predicted[None], outcome)
        (x0,), (y0,) = model_curve.smooth_curves(self.weight)
        changes_side = (models >= threshold) != (predicted >= threshold)
        return Instability(
            predicted=predicted,
            low=low,
            high=high,
            mean_absolute_error=np.abs(models - predicted).mean(axis=0),
            changed=changes_side.mean(axis=0),
            curves=(x, y),
            curve=(x0, y0),
            threshold=float(threshold),
            level=self.level,
        )

    def _find_column_or_event_column(self, pos_label):
        """Return the column of a class, by default of the event of two classes."""
        if pos_label is None:
            if len(self.classes) > 2:
                raise invalid_input(
                    "pos_label",
                    expected=f"pos_label among {self.classes[:10].tolist()}",
                    got="none for more than two classes",
                    hint="Name the class whose probability it is about",
                )
            return self.positive
        classes = self.classes.tolist()
        if pos_label not in classes:
            raise unknown_name_error("pos_label", pos_label, classes)
        return classes.index(pos_label)

    def _get_class_proba_by_model(self, column):
        """Return the probabilities of a class by the resampled models, (n_models, n_samples)."""
        if self.method == "cross_validation":
            raise invalid_input(
                expected="models of bootstrap samples",
                got="models of a cross-validation",
                hint="Take method='optimism'",
            )
        if self.resampled is None:
            raise invalid_input(
                expected="the predictions of the resampled models",
                got="None",
                sentence="The predictions of the resampled models were not kept",
                hint="Call internal_validation with keep_predictions=True",
            )
        if self.resampled.ndim == 3:
            return self.resampled[:, :, column].astype(np.float64)
        event_proba = self.resampled.astype(np.float64)
        return event_proba if column == self.positive else 1 - event_proba

    # -- shrinkage -----------------------------------------------------------------------------

    def shrinkage(
        self,
        kind: Literal["corrected", "heuristic"] = "corrected",
        *,
        n_parameters: int | None = None,
    ) -> PlattScaling:
        """Return uniform shrinkage of the model's log-odds, as a fitted recalibrator.

        Parameters
        ----------
        kind : {"corrected", "heuristic"}, default="corrected"
            "corrected": slope and intercept are the corrected ones. "heuristic": the
            slope is (G - k) / G, G the likelihood ratio statistic of the model and k
            its parameters; the intercept makes the mean prediction of these rows the
            event rate.
        n_parameters : int, default=None
            The parameters k that were estimated, without the intercept and with those
            that a selection left out; for "heuristic" alone.

        Returns
        -------
        recalibrator : PlattScaling
            Takes the model's probabilities, and can be exported like any other.

        Raises
        ------
        ValueError
            More than two classes; a slope that is not above 0, of a model that holds
            nothing for new rows; a missing `n_parameters` if it is needed, or one if
            it is not.

        Notes
        -----
        P = expit(intercept + slope log-odds). A slope below 1 draws the probabilities
        of an overfitted model together. Of a linear model it is the same as multiplying
        all coefficients by the slope.

        References
        ----------
        Van Houwelingen, Le Cessie (1990), "Predictive value of statistical models", eq.
        80, for "heuristic". Steyerberg (2019), "Clinical prediction models", section
        13.2.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn_calib.inference import internal_validation
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(120, 6))
        >>> y = X[:, 0] + rng.normal(size=120) > 0
        >>> found = internal_validation(LogisticRegression(C=1e6), X, y, n_resamples=50)
        >>> shrunk = found.shrinkage()
        >>> shrunk.slope_ < 1
        True
        >>> shrunk.predict_proba(found.estimator.predict_proba(X[:5])).shape
        (5, 2)
        """
        check_choice("kind", kind, ("corrected", "heuristic"))
        if len(self.classes) > 2:
            raise invalid_input(
                expected="two classes",
                got=f"{len(self.classes)}",
                hint="Validate each class against the others: y == label",
            )
        if (n_parameters is None) == (kind == "heuristic"):
            raise invalid_input(
                expected="n_parameters with kind='heuristic', and not without",
                got=f"n_parameters={n_parameters!r} with kind={kind!r}",
                hint="Pass the number of parameters that were estimated, without the intercept",
            )
        if kind == "corrected":
            intercept, slope = self.line
        else:
            intercept, slope = self._compute_heuristic_coefficients(n_parameters)
        if not (slope > 0 and isfinite(slope) and isfinite(intercept)):
            hint = "The model holds nothing for new rows: take fewer features, or more rows"
            if isnan(slope):
                hint = "Take method='.632+' or 'cross_validation': the model is certain of its rows"
            raise invalid_input(
                expected="a finite slope above 0", got=f"{slope:.4g}", hint=hint
            )
        # A recalibrator works on the log-odds of the second class.
        if self.positive == 0:
            intercept = -intercept
        return _make_fitted_line(
            float(intercept),
            float(slope),
            self.classes,
            self.proba,
        )

    def _compute_heuristic_coefficients(self, n_parameters):
        """Return (intercept, slope) of the heuristic shrinkage."""
        if not (is_real_number(n_parameters) and n_parameters >= 0):
            raise invalid_input(
                expected="a number n_parameters >= 0",
                got=repr(n_parameters),
                hint="Count the coefficients without the intercept",
            )
        z = compute_log_odds(self.proba) * (1 if self.positive else -1)
        outcome = (self.codes == self.positive).astype(np.float64)
        rate = self.weight @ outcome / self.weight.sum()
        null_likelihood = -self.weight.sum() * (entr(rate) + entr(1 - rate))
        gain = 2 * (compute_log_likelihood(z, outcome, self.weight) - null_likelihood)
        # Van Houwelingen and Le Cessie's heuristic shrinkage: (model chi-square -
        # number of parameters) / model chi-square.
        slope = (gain - n_parameters) / gain if gain > 0 else -np.inf
        if slope <= 0:
            return 0.0, slope
        # The intercept keeps the mean prediction at the observed frequency.
        ones = np.ones_like(z)
        intercept, _ = fit_coefficient_and_likelihood(
            slope * z, ones, outcome, self.weight
        )
        return intercept, slope

    # -- as text -------------------------------------------------------------------------------

    def _make_sections(self):
        head = ["", "apparent", "optimism", "corrected"]
        # A cross-validation has no intervals: the column is left out.
        if any(not isnan(row.low) for row in self.rows):
            head.append(f"{100 * self.level:g} % interval")
        table = Table(head, [_format_cells(row)[: len(head)] for row in self.rows])
        return [Section(tables=[table], notes=self._list_notes())]

    def _list_notes(self):
        """Return sentences on the rows, the resamples, and those without a value."""
        resamples = f"{self.n_resamples} bootstrap samples"
        n_models = self.n_resamples
        if self.n_folds:
            n_models = self.n_resamples // self.n_folds
            resamples = f"{self.n_folds} folds, {n_models} time{'s' * (n_models > 1)}"
        introduction = _INTRODUCTION_BY_METHOD[self.method]
        notes = [f"{self.n_samples} rows. {introduction} {resamples}."]
        if self.n_redrawn:
            notes.append(
                f"{self.n_redrawn} samples without one of the classes were drawn again."
            )
        for row in self.rows:
            if row.n_used < n_models:
                notes.append(
                    f"{row.measure}: from {row.n_used} resamples; the others have no value."
                )
        if self.n_folds:
            notes.append("Repeated folds give no interval: take method='optimism'.")
        return notes


def _format_cells(row):
    cells = [row.measure]
    for value in (row.apparent, row.optimism, row.corrected):
        cells.append("" if isnan(value) else f"{value:.4f}")
    cells.append("" if isnan(row.low) else f"{row.low:.4f} to {row.high:.4f}")
    return cells


def _replace_non_finite_by_none(value):
    if isinstance(value, str | int) or isfinite(value):
        return value
    return None


def _make_fitted_line(intercept, slope, classes, proba):
    """Make a fitted `PlattScaling` with these parameters."""
    recalibrator = PlattScaling()
    recalibrator.classes_ = classes
    recalibrator.n_features_in_ = 2
    recalibrator.floor_ = estimate_floor(proba)
    recalibrator.slope_ = slope
    recalibrator.intercept_ = intercept
    return recalibrator
