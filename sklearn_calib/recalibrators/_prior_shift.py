"""Other class frequencies than those of the training or calibration rows."""

import copy
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from .. import maps
from .._argument_checks import check_level, is_scalar_equal
from .._kernels._label_shift import (
    MIN_EXPORTED_LOG,
    estimate_confusion,
    estimate_prior_with_se_and_interval,
    estimate_regularised_prior,
    make_hard_or_soft_predictions,
    multiply_log_ratio_by_strength,
    shift_posterior,
)
from .._kernels._mean_offset import find_mean_ranges_under_offsets, fit_mean_offset
from .._kernels._mixture_proportions import (
    compute_proportion_se_and_interval,
    fit_proportions,
)
from .._simplex_array import SMALLEST_PROBABILITY, has_exact_log
from .._sklearn_compat import NONNEGATIVE_REAL, OPEN_UNIT_INTERVAL
from .._typing import AnyArray, ArrayLike, FloatArray, Self
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    read_labels,
    read_proba,
    reorder_columns_if_names_match,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._base import Capabilities, Recalibrator

# The sum of frequencies may differ from 1 by this much.
_FREQUENCY_SUM_TOLERANCE = 1e-6
# The largest ratio of class counts that looks like a part of rows resampled to equal
# counts.
MAX_EQUAL_COUNT_RATIO = 1.05
# The distance of a mean from its target, relative to it.
MEAN_RELATIVE_TOLERANCE = 1e-9


def validate_class_frequencies(value: Any, classes: AnyArray, name: str) -> FloatArray:
    """Validate given frequencies, in the order of the classes; `name` is the parameter."""
    k = len(classes)
    if isinstance(value, Real):
        if k != 2:
            raise invalid_input(
                expected=f"{k} numbers in {name}",
                got=f"{value:g}",
                hint="Pass one for each class",
            )
        return np.array([1.0 - float(value), float(value)])
    if isinstance(value, Mapping) or hasattr(value, "items"):
        frequencies = np.full(k, np.nan)
        for column, number in iter_columns_by_label(value, classes):
            frequencies[column] = number
        if len(value) != k:
            missing = classes[np.isnan(frequencies)][:5].tolist()
            raise invalid_input(
                expected=f"all {k} classes in {name}",
                got=f"none of {missing}",
                hint="Give every class its frequency, 0 if it is absent",
            )
    else:
        try:
            frequencies = np.array(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise invalid_input(
                expected=f"numbers in {name}",
                got=f"{value!r}",
                hint="Pass one for each class",
            ) from None
    if frequencies.shape != (k,):
        raise invalid_input(
            expected=f"{k} numbers in {name}, one for each class",
            got=f"shape {frequencies.shape}",
            hint="Pass one for each",
        )
    is_valid = (frequencies >= 0) & (frequencies < np.inf)
    if not is_valid.all():
        wrong = frequencies[~is_valid][0]
        raise invalid_input(
            expected=f"finite numbers >= 0 in {name}",
            got=f"{wrong:g}",
            hint="Pass the frequencies of the classes",
        )
    if abs(frequencies.sum() - 1) > _FREQUENCY_SUM_TOLERANCE:
        raise invalid_input(
            expected=f"numbers with sum 1 in {name}",
            got=f"{frequencies.sum():.6g}",
            hint="Divide them by their sum",
        )
    return frequencies / frequencies.sum()


def iter_columns_by_label(
    numbers: Any, classes: AnyArray
) -> Iterator[tuple[int, float]]:
    """Iterate over (column, number) of a mapping of labels to numbers."""
    if not hasattr(numbers, "items"):
        raise invalid_input(
            expected="a dict of labels to numbers",
            got=f"{numbers!r}",
            hint="Name each label with its number",
        )
    column_of = {label: column for column, label in enumerate(classes.tolist())}
    for label, number in numbers.items():
        if label not in column_of:
            first_classes = classes[:10].tolist()
            raise invalid_input(
                expected=f"labels among {first_classes}",
                got=f"{label}",
                hint="Name the classes as y does",
            )
        try:
            yield column_of[label], float(number)
        except (TypeError, ValueError):
            raise invalid_input(
                expected=f"a number for {label}",
                got=f"{number!r}",
                hint="Pass a number for each label",
            ) from None


def compute_offset_to_mean(
    mean: Any, proba: FloatArray, weight: FloatArray, classes: AnyArray
) -> FloatArray:
    """Compute the offset of the logarithms that gives the rows the weighted mean `mean`."""
    if isinstance(mean, Real) and not 0 < float(mean) < 1:
        raise invalid_input(
            expected="a mean above 0 and below 1",
            got=f"{float(mean):g}",
            hint="Divide percentages by 100",
        )
    target = validate_class_frequencies(mean, classes, "mean")
    ranges = find_mean_ranges_under_offsets(proba, weight)
    columns = [1] if len(classes) == 2 else range(len(classes))
    for column in columns:
        low, high = ranges[column]
        if not low < target[column] < high:
            label = (
                classes[column].item()
                if hasattr(classes[column], "item")
                else classes[column]
            )
            expected = f"a mean of {label!r} above {low:.6g} and below {high:.6g}"
            raise invalid_input(
                expected=f"{expected} (rows of exactly 0 and 1 cannot move)",
                got=f"{target[column]:.6g}",
                hint=(
                    "Choose another mean, or raise probabilities of exactly 0 and 1 before"
                ),
            )
    fit = fit_mean_offset(proba, weight, target)
    if not (np.abs(fit.means / target - 1) <= MEAN_RELATIVE_TOLERANCE).all():
        raise invalid_input(
            expected=f"means that these rows can have, not {np.round(target, 6).tolist()}",
            got=f"{np.round(fit.means, 6).tolist()} as the nearest",
            hint="Probabilities of exactly 0 stay 0: raise them before, or choose other means",
        )
    return fit.offset


#: One number for each class in the order of the columns, a dict or Series of label to
#: number, or for two classes the number of the second.
ClassFrequencies: TypeAlias = ArrayLike | Mapping[Any, float] | float

ESTIMATED_PRIORS = ("bbse", "em", "rlls")
# In nats per row.
_MAX_LIKELIHOOD_GAP_NATS = 1e-7


class PriorShift(Recalibrator):
    """Move probabilities to other class frequencies, or to a mean that is given.

    If only the frequencies of the classes differ between the rows behind the
    probabilities and the target rows, and not what rows of a class look like (label
    shift), Bayes' theorem gives the probabilities for the target: proportional to p_k
    b_k / a_k, with a the frequencies behind p and b those of the target. They can be
    known (a prevalence, a resampling that is undone) or estimated from target rows
    without labels, by `adapt`.

    With `mean` the same offset of the log-odds is chosen otherwise: so that the mean
    probability of the rows of `fit` is exactly this number. Bayes' theorem gives such a
    mean only if scores of a class stay as they are; a target mean is met for any
    reason, such as the long-run default rate of a portfolio.

    Parameters
    ----------
    prior : array-like of shape (n_classes,), dict, float or str, default="em"
        The target's frequencies b. Numbers >= 0 with sum 1, in the order of the
        columns; a dict or a pandas Series of label to frequency; for two classes the
        frequency of the second. Or:

        * "em" (maximum likelihood), "bbse" (confusion matrix), "rlls" (confusion matrix
          with a penalty): `adapt` estimates b from target rows without labels. Until
          then b = a, and probabilities stay as they are;
        * "undo_resampling": b are the frequencies of the labels in `fit`, and
          `training_prior` are those that the model was trained on;
        * "uniform": all classes equally frequent, for balanced accuracy.
    training_prior : array-like of shape (n_classes,), dict or float, default=None
        The frequencies a behind the probabilities, all above 0. By default those of the
        labels in `fit`.
    strength : float >= 0, default=1.0
        The probabilities are proportional to p_k (b_k / a_k)^strength. 0 changes
        nothing.
    confusion : {"soft", "hard"}, default="soft"
        Of "bbse" and "rlls": whether mean probabilities or shares of predicted classes
        are compared. "soft" has the smaller error.
    penalty : float >= 0, default=0.01
        Of "rlls": the factor alpha of its penalty on weights b_k / a_k other than 1.
    mean : float in (0, 1), array-like of shape (n_classes,) or dict, default=None
        The (weighted) mean that the probabilities of the rows of `fit`, or of `adapt`,
        have afterwards: of the second class, or one number above 0 for each class. It
        takes the place of `prior`, which then stays as it is by default, as do
        `training_prior` and `strength`. It needs no labels: ``fit(p)``, with the
        classes 0, 1, ..., those of the dict or `classes`.

    Attributes
    ----------
    prior_ : ndarray of shape (n_classes,)
        The target's frequencies b.
    training_prior_ : ndarray of shape (n_classes,)
        The frequencies a.
    prior_se_ : ndarray of shape (n_classes,)
        After `adapt` with "em" or "bbse": standard errors of `prior_`; inf if the
        target rows are uninformative about a class.
    prior_interval_ : ndarray of shape (n_classes, 2)
        After `adapt` with "em" or "bbse": confidence intervals of `prior_`, one class
        at a time.
    offset_ : ndarray of shape (n_classes,)
        With `mean` only, in place of `prior_` and `training_prior_`: what is added to
        the logarithms of the probabilities; 0 for the first class, so that with two
        classes the second number is added to the log-odds.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        ClassFrequencies that are negative, missing, of another number than the classes, or
        do not sum to 1; a `mean` that the rows cannot have, since probabilities of
        exactly 0 and 1 do not move (the message has the range); `mean` beside `prior`,
        `training_prior` or `strength`; a `training_prior` of 0, or a class without a
        calibration row if a is counted on them; "undo_resampling" without
        `training_prior`.

    Notes
    -----
    The probabilities must be calibrated for a: put a method that calibrates before it,
    ``make_pipeline(TemperatureScaling(), PriorShift(...))``. Under another shift than
    of the frequencies the result is wrong; `prior_shift_test` tests for it.

    A probability of 0 stays 0. A class with b_k = 0 gets probability 0. Fits cost O(n
    k).

    **Undersampling.** Dal Pozzolo et al. correct a model that was trained on all rows
    of class 1 and a share beta of class 0 by p' = beta p / (beta p - p + 1). This is
    the same formula, see `from_class_weight` with the weights {0: beta, 1: 1}. Their
    rule for weights and for oversampling is the same again: a row with weight 2 counts
    as two.

    **Balanced accuracy.** "uniform" with `strength` tau is logit adjustment: tau log
    a_k is subtracted from the logarithms.

    References
    ----------
    Saerens, Latinne, Decaestecker (2002), "Adjusting the outputs of a classifier to new
    a priori probabilities", eq. 2.4 for given frequencies, section 2.2 for EM. Elkan
    (2001), "The foundations of cost-sensitive learning", theorem 2, for two classes.
    Pozzolo, Caelen, Johnson, Bontempi (2015), "Calibrating probability with
    undersampling for unbalanced classification". Lipton, Wang, Smola (2018), "Detecting
    and correcting for label shift with black box predictors". Azizzadenesheli, Liu,
    Yang, Anandkumar (2019), "Regularized learning for domain adaptation under label
    shifts", for the penalty. Menon et al. (2021), "Long-tail learning via logit
    adjustment". Kim, Carbonetto, Stephens, Anitescu (2020), "A fast algorithm for
    maximum likelihood estimation of mixture proportions using sequential quadratic
    programming".

    Examples
    --------
    A model trained where 30 % are positive, used where 10 % are:

    >>> import numpy as np
    >>> from sklearn_calib.recalibrators import PriorShift
    >>> from sklearn_calib.datasets import make_overconfident
    >>> p, y = [0.02, 0.2, 0.5, 0.9], [0, 0, 1, 1]
    >>> shift = PriorShift(prior=0.1, training_prior=0.3).fit(p, y)
    >>> shift.predict_proba(p)[:, 1].round(3).tolist()
    [0.005, 0.061, 0.206, 0.7]

    Target rows without labels:

    >>> proba, y = make_overconfident(2, 2000, sharpness=1.0)
    >>> target = np.r_[proba[y == 1], proba[y == 0][::9]]
    >>> shift = PriorShift("em").fit(proba, y).adapt(target)
    >>> shift.prior_.round(2).tolist(), shift.prior_se_.round(3).tolist()
    ([0.09, 0.91], [0.019, 0.019])

    A mean of 3.5 %:

    >>> PriorShift(mean=0.035).fit(proba).predict_proba(proba).mean(axis=0).round(12).tolist()
    [0.965, 0.035]
    """

    prior_: FloatArray
    training_prior_: FloatArray
    prior_se_: FloatArray
    prior_interval_: FloatArray
    offset_: FloatArray

    _completes_rows = False
    capabilities = Capabilities(
        multiclass="native",
        monotone=True,
        continuous=True,
        cost="O(n k)",
        array_api=True,
    )
    _parameter_constraints: ClassVar = {
        "prior": [
            StrOptions({*ESTIMATED_PRIORS, "undo_resampling", "uniform"}),
            "array-like",
            dict,
            Interval(Real, 0, 1, closed="both"),
        ],
        "training_prior": [
            "array-like",
            dict,
            OPEN_UNIT_INTERVAL,
            None,
        ],
        "strength": [NONNEGATIVE_REAL],
        "confusion": [StrOptions({"soft", "hard"})],
        "penalty": [NONNEGATIVE_REAL],
        "mean": ["array-like", dict, Real, None],
    }

    def __init__(
        self,
        prior: ClassFrequencies | str = "em",
        training_prior: ClassFrequencies | None = None,
        *,
        strength: float = 1.0,
        confusion: Literal["soft", "hard"] = "soft",
        penalty: float = 0.01,
        mean: ClassFrequencies | None = None,
    ) -> None:
        self.prior = prior
        self.training_prior = training_prior
        self.strength = strength
        self.confusion = confusion
        self.penalty = penalty
        self.mean = mean

    @classmethod
    def from_class_weight(
        cls, class_weight: Mapping[Any, float] | Literal["balanced"], y: ArrayLike
    ) -> Self:
        """Return the shift that undoes class weights or resampling, from training labels.

        Training with weights u is training on frequencies a_k proportional to n_k u_k,
        where n_k rows have class k; b_k is n_k / n.

        Parameters
        ----------
        class_weight : dict or "balanced"
            Label to weight > 0; labels that are left out have weight 1. "balanced" is
            that of scikit-learn and ``is_unbalance`` of LightGBM, and fits
            oversampling, undersampling or SMOTE to equal numbers. ``{0: 1, 1: w}`` for
            ``scale_pos_weight=w`` of XGBoost and LightGBM. ``{0: beta, 1: 1}`` if a
            share beta of class 0 was kept.
        y : array-like of shape (n_samples,)
            The labels of the training rows as they were: before the resampling.

        Returns
        -------
        shift : PriorShift
            Fitted: `predict_proba` can be called, since scores can teach nothing more.
            With its numbers as `prior` and `training_prior`, so that it can also be
            cloned and fitted again.

        Raises
        ------
        ValueError
            Weights that are not positive and finite, of a label that `y` does not have,
            or labels of one class only.

        Warns
        -----
        CalibrationWarning
            "balanced", and labels whose classes have equal numbers to 5 %, as after a
            resampling: the shift then changes nothing.

        Examples
        --------
        >>> from sklearn_calib.recalibrators import PriorShift
        >>> shift = PriorShift.from_class_weight({0: 1, 1: 9}, [0, 0, 0, 1])
        >>> shift.predict_proba([0.1, 0.5, 0.9])[:, 1].round(4).tolist()
        [0.0122, 0.1, 0.5]
        """
        classes, codes = read_labels(y, input_name="y")
        k = len(classes)
        if k < 2:
            raise invalid_input(
                expected="labels of at least two classes",
                got="one class",
                hint="Pass all training labels",
            )
        if isinstance(class_weight, str):
            if class_weight != "balanced":
                raise invalid_input(
                    expected="a dict or 'balanced'",
                    got=repr(class_weight),
                    hint="Pass what the model had",
                )
            weights = compute_class_weight("balanced", classes=np.arange(k), y=codes)
        else:
            weights = np.ones(k)
            for column, value in iter_columns_by_label(class_weight, classes):
                weights[column] = value
        is_valid = (weights > 0) & (weights < np.inf)
        if not is_valid.all():
            wrong = f"{weights[~is_valid][0]:g}"
            raise invalid_input(
                expected="weights that are finite and above 0",
                got=wrong,
                hint="Pass what the model had",
            )
        counts = np.bincount(codes).astype(float)
        if (
            class_weight == "balanced"
            and counts.max() <= MAX_EQUAL_COUNT_RATIO * counts.min()
        ):
            warn_calibration(
                expected="the training labels as they were before the resampling",
                got=(
                    f"about equal numbers of each class ({int(counts.min())} to "
                    f"{int(counts.max())}), which look resampled"
                ),
                hint=(
                    "From these the shift changes nothing: pass y as it was before, or "
                    "write PriorShift(prior=0.1, training_prior=0.5) with the frequencies "
                    "of wherever the model is used. If the classes were equal from the "
                    "start, leave the shift out"
                ),
                estimator=cls.__name__,
            )
        before = counts / counts.sum()
        behind = counts * weights
        behind /= behind.sum()
        shift = cls(prior=before, training_prior=behind)
        shift.classes_ = classes
        shift.n_features_in_ = 1 if k == 2 else k
        shift.prior_ = before
        shift.training_prior_ = behind
        return shift

    def adapt(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        level: float = 0.95,
    ) -> Self:
        """Estimate the target's frequencies from its rows, without labels, or meet `mean` there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities of target rows, of the same kind as at fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0. Only their ratios matter; the standard errors take each row as
            one observation, regardless of its weight.
        level : float in (0, 1), default=0.95
            Of the confidence intervals; with `mean` there are none.

        Returns
        -------
        adapted : PriorShift
            A new object for these frequencies. The one it is called on stays as it is.

        Raises
        ------
        ValueError
            A `prior` that is not estimated; a `mean` that these rows cannot have; a
            class whose frequency a is 0, or, for "bbse" and "rlls", which had no row in
            `fit`; for "bbse", predictions that do not separate the classes; invalid
            scores or weights; a `level` outside (0, 1).

        Warns
        -----
        CalibrationWarning
            A class is estimated to be absent: its probability is 0 from now on. EM with
            more than 200 classes ended before its optimum.

        Notes
        -----
        "em" starts at b = a, takes at most 50 EM steps and then Newton steps on the
        simplex, which find frequencies of exactly 0; the likelihood is concave. With
        more than 200 classes there are EM steps only, at most 2000.

        Standard errors of "em" come from the scores of the rows (a sandwich if there
        are weights), and, if a was counted on the rows of `fit`, from the error of
        a. p is taken as known. The intervals are profile likelihood intervals, scaled
        to these standard errors; they do not leave [0, 1] and hold where a class is
        rare or absent. With more than 200 classes both are those of one class against
        the others in fixed proportions, and a is taken as known. For "bbse" standard
        errors are those of the delta method, from the labelled and the target rows, and
        intervals are of Wilson's kind. "rlls" has a bias of unknown size by its
        penalty, so nothing is stated. Coverage is measured in
        ``benchmarks/prior_shift``.

        Cost: O(n k) per EM step, O(n k^2 + k^3) per Newton step, and some 16 passes of
        O(n k) per class for the intervals.

        Examples
        --------
        >>> from sklearn_calib.recalibrators import PriorShift
        >>> p, y = [0.1, 0.2, 0.3, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1]
        >>> shift = PriorShift("em").fit(p, y)
        >>> adapted = shift.adapt([0.1, 0.2, 0.2, 0.9])
        >>> adapted.prior_.round(3).tolist(), shift.prior_.round(3).tolist()
        ([0.78, 0.22], [0.5, 0.5])
        """
        check_is_fitted(self)
        to_mean = self.mean is not None
        if not to_mean and (
            not isinstance(self.prior, str) or self.prior not in ESTIMATED_PRIORS
        ):
            raise invalid_input(
                "prior",
                expected=f"a prior that is estimated, {', '.join(ESTIMATED_PRIORS)}",
                got=f"prior={self.prior if isinstance(self.prior, str) else 'given frequencies'!r}",
                hint="predict_proba already uses it; to estimate it, fit PriorShift('em')",
            )
        check_level(level)
        check_and_get_common_index(X, sample_weight)
        proba = self._align_proba_columns(X)
        # This rejects tables with other column names.
        self._set_input_features(X, proba, reset=False)
        weight = canonical_weight(sample_weight, len(proba))
        proba = proba[weight > 0]
        weight = weight[weight > 0] / weight.max()
        adapted = copy.copy(self)
        if to_mean:
            adapted._set_offset_by_mean(proba, weight)
            return adapted
        if "offset_" in vars(self):
            raise invalid_input(
                expected="a fit without mean",
                got="a fit with mean",
                sentence="The fit used mean, which has been removed since",
                hint="Call fit again after set_params",
            )
        self._check_present(self.training_prior_)
        # These belong to an earlier adaptation.
        for name in ("prior_se_", "prior_interval_"):
            adapted.__dict__.pop(name, None)
        estimate = (
            adapted._set_prior_attributes_by_likelihood
            if self.prior == "em"
            else adapted._set_prior_attributes_by_confusion
        )
        estimate(proba, weight, level)
        if (adapted.prior_ == 0).any():
            absent = self.classes_[adapted.prior_ == 0][:5].tolist()
            warn_calibration(
                expected="target rows of every class",
                got=f"an estimated frequency of 0 for {absent}",
                hint=(
                    "Their probability is 0 from now on; to keep such a class possible, "
                    "pass its frequency as prior="
                ),
                estimator=self,
            )
        return adapted

    def _set_prior_attributes_by_likelihood(self, proba, weight, level):
        """Set `prior_` to the frequencies with the highest likelihood of unlabelled rows."""
        source = self.training_prior_
        # By Bayes' theorem p_c / a_c is proportional to the density of the scores in
        # class c, so the frequencies of the target are the weights of a mixture.
        ratio = np.asarray(proba) / source
        fit = fit_proportions(ratio, weight, source)
        if fit.gap > _MAX_LIKELIHOOD_GAP_NATS:
            warn_calibration(
                expected=f"a likelihood within {_MAX_LIKELIHOOD_GAP_NATS:g} nats per row of "
                "the largest",
                got=f"one up to {fit.gap:.1g} below it after {fit.n_iter} steps",
                hint="The frequencies are close to the best; join classes if they matter",
                estimator=self,
            )
        self.prior_ = fit.prior
        self.prior_se_, self.prior_interval_ = compute_proportion_se_and_interval(
            ratio, weight, fit.prior, source, self._source_rows, level
        )

    def _set_prior_attributes_by_confusion(self, proba, weight, level):
        """Set `prior_` to the frequencies that explain the mean prediction of unlabelled rows."""
        confusion = self._confusion
        if confusion is None:
            raise invalid_input(
                expected=f"a fit with prior={self.prior!r}",
                got="a fit with another prior",
                hint="Call fit again after set_params",
            )
        self._check_present(confusion.frequencies)
        guess = make_hard_or_soft_predictions(proba, self.confusion == "hard")
        if self.prior == "rlls":
            self.prior_ = estimate_regularised_prior(
                confusion, guess, weight, self.penalty
            )
            return
        if confusion.class_square_means is None:
            raise invalid_input(
                expected="predictions that tell the classes apart",
                got="a confusion matrix without an inverse",
                hint="Take confusion='soft', prior='em' or prior='rlls'",
            )
        estimate = estimate_prior_with_se_and_interval(confusion, guess, weight, level)
        self.prior_, self.prior_se_, self.prior_interval_ = estimate

    def _check_present(self, frequencies):
        absent = self.classes_[frequencies == 0]
        if len(absent):
            raise invalid_input(
                expected="rows of every class in fit",
                got=f"none of {absent[:5].tolist()}",
                hint="Fit on rows that have it, pass training_prior=, or leave its column out",
            )

    def _fit(self, proba, codes, weight):
        """Set the class frequencies of training and target, or the offset to a mean."""
        k = proba.shape[1]
        # The largest weight is 1, so that squares stay finite.
        weight = weight / weight.max()
        if self.mean is not None:
            self._set_offset_by_mean(proba, weight)
            return
        counts = np.bincount(codes, weights=weight, minlength=k)
        observed = counts / counts.sum()
        has_prior = self.training_prior is not None
        # Kish's number of rows: frequencies that are given have no error.
        self._source_rows = (
            np.inf if has_prior else counts.sum() ** 2 / (weight @ weight)
        )
        # Only the methods that use a confusion matrix need labelled predictions.
        self._confusion = None
        if isinstance(self.prior, str) and self.prior in ("bbse", "rlls"):
            self._confusion = estimate_confusion(
                make_hard_or_soft_predictions(proba, self.confusion == "hard"),
                codes,
                weight,
            )
        source = observed
        if has_prior:
            source = validate_class_frequencies(
                self.training_prior, self.classes_, "training_prior"
            )
            if (source == 0).any():
                raise invalid_input(
                    "training_prior",
                    expected="a training_prior above 0 for every class",
                    got=f"0 for {self.classes_[source == 0][:5].tolist()}",
                    hint=(
                        "The model has learned nothing about a class without training "
                        "rows; leave its "
                        "column out"
                    ),
                )
        self.training_prior_ = source
        self.prior_ = self._read_target_frequencies_from_prior(source, observed)
        # A class of frequency 0 in training has no density to weigh.
        if self.prior_ is not source:
            self._check_present(source)
        # A copy, so that changing one array does not change the other.
        self.prior_ = self.prior_.copy()

    def _try_fit_before_validation_and_get_success(self, X, y, sample_weight, classes):
        """Fit the offset to a mean, which needs no labels; return whether this applies."""
        if y is not None or self.mean is None:
            return False
        proba = read_proba(X, input_name="X")
        weight = canonical_weight(sample_weight, len(proba))
        # A mean by label names the classes; without labels they are not known
        # otherwise.
        named = (
            list(self.mean)
            if isinstance(self.mean, Mapping)
            else np.arange(proba.shape[1])
        )
        labels = named if classes is None else classes
        self.classes_, _ = read_labels(labels, classes=classes)
        self._check_class_number(proba, self.classes_)
        proba = reorder_columns_if_names_match(proba, X, self.classes_)
        self._set_input_features(X, proba, reset=True)
        proba = proba[weight > 0]
        weight = weight[weight > 0] / weight.max()
        self._set_offset_by_mean(proba, weight)
        return True

    def _set_offset_by_mean(self, proba, weight):
        """Set `offset_`, after which the mean prediction is `mean`."""
        for name, default in (
            ("prior", "em"),
            ("training_prior", None),
            ("strength", 1.0),
        ):
            value = getattr(self, name)
            if not is_scalar_equal(value, default):
                raise invalid_input(
                    expected="mean alone",
                    got=f"{name}={value!r}",
                    sentence=f"mean cannot be combined with {name}={value!r}",
                    hint=(
                        f"A mean takes the place of frequencies: leave {name} out, or mean"
                    ),
                )
        self.offset_ = compute_offset_to_mean(self.mean, proba, weight, self.classes_)

    def _read_target_frequencies_from_prior(self, source, observed):
        """Return the class frequencies of the target, before any estimate."""
        if not isinstance(self.prior, str):
            return validate_class_frequencies(self.prior, self.classes_, "prior")
        if self.prior in ESTIMATED_PRIORS:
            return source
        if self.prior == "uniform":
            return np.full(len(source), 1.0 / len(source))
        if self.training_prior is None:
            raise invalid_input(
                "training_prior",
                expected="training_prior with prior='undo_resampling'",
                got="None",
                hint="Pass the class frequencies after the resampling, for instance [0.5, 0.5]",
            )
        return observed

    def _is_identity(self):
        if "offset_" in vars(self):
            return not self.offset_.any()
        return self.strength == 0 or np.array_equal(self.prior_, self.training_prior_)

    def _compute_offsets(self):
        if "offset_" in vars(self):
            return self.offset_
        return multiply_log_ratio_by_strength(
            self.prior_, self.training_prior_, self.strength
        )

    def _predict_proba(self, proba):
        # Exact zeros have no logarithm to shift.
        if has_exact_log(proba) or np.asarray(proba).min() >= SMALLEST_PROBABILITY:
            return self.map_(proba)
        if self._is_identity():
            return np.array(proba)
        # In this formula zeros stay zeros.
        return shift_posterior(proba, self._compute_offsets())

    def _make_map(self):
        if self._is_identity():
            return maps.Identity()
        # A document cannot contain an infinite offset.
        intercept = np.maximum(self._compute_offsets(), MIN_EXPORTED_LOG)
        return maps.SoftmaxAffine(coef=1.0, intercept=intercept)
