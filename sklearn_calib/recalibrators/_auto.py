"""A mixture of methods, weighted by cross-validation."""

import itertools
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import Parallel, delayed

from .. import maps
from .._argument_checks import import_optional, is_scalar_equal
from .._callbacks import (
    CallbackSupportMixin,
    make_task_contexts,
    report_fit,
    report_task,
    with_callbacks,
)
from .._show import quote_text
from .._simplex_array import (
    attach_log_proba,
    compute_log_losses,
    compute_log_odds,
    compute_log_proba_or_minus_inf_if_absent,
    convert_log_odds,
    get_absent_option_mask,
)
from .._sklearn_compat import NONNEGATIVE_REAL
from .._typing import CV, ArrayLike, DataFrame, FloatArray, RecalibratorLike, Self
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    get_rows_per_weight,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._base import Capabilities
from ._beta import BetaCalibration
from ._default import DefaultCalibration
from ._fitted_maps import BaseCombinedRecalibrator, get_map
from ._group_columns import encode_groups
from ._harm_checks import GROUPS_HINT, warn_repeated_rows
from ._identity import Identity
from ._one_vs_rest import OneVsRest
from ._platt import PlattScaling
from ._quadratic import QuadraticScaling
from ._spline import SplineCalibration
from ._stacking import (
    RecalibratorChains,
    compute_fit_and_held_out_weights,
    fit_chains,
    iter_chain_predictions,
    make_chains_by_name,
    make_estimator,
)
from ._structured_vector import StructuredVectorScaling
from ._temperature import TemperatureScaling
from ._top_label import TopLabel
from ._venn_abers import VennAbers

Candidates = Sequence[RecalibratorLike] | Mapping[str, RecalibratorLike]

# With fewer rows the weights are those of the prior.
_MIN_WEIGHTING_ROWS = 20
# Fewer rows are recalibrated by lines alone, without curves that fall.
_MIN_CURVE_ROWS = 1000
# From so many classes on, no candidate fits one spline per class.
_MIN_CLASSES_TO_DROP_OWN_SPLINES = 50
_MAX_MATRIX_CLASSES = 200
_MAX_WEIGHTING_ROWS = 200_000
_MIN_CANDIDATE_WEIGHT = 1e-3
_MIN_LIKELIHOOD = 1e-12


class StackedCalibration(CallbackSupportMixin, BaseCombinedRecalibrator):
    """A mixture of several methods, weighted by cross-validation (``"auto"``).

    A method for users who do not want to choose. Picking the method with the smallest
    loss of cross-validation is a gamble if losses are close; the mixture that predicts
    held-out labels best does at least nearly as well as the best method, and is hardly
    ever worse than doing nothing.

    Parameters
    ----------
    recalibrators : "auto", list or dict, default="auto"
        The candidates: names and instances, or a dict of name to these. Anything with
        ``fit`` and ``predict_proba``, so a pipeline or a classifier too. "auto" depends
        on the numbers of rows and classes, see Notes.
    cv : int or splitter, default=5
        Folds, at least 2. An int makes stratified folds from the rows' own digits:
        nothing is random, and the order of the rows does not matter.
    monotone : bool, default=False
        Take only candidates that declare that they are monotone, and leave out those
        whose map falls: for two classes the result rises with the score.
    alpha : float, default=2.0
        Invented rows, at least 0, that hold the weights near those of the prior: 0.95
        of the weight on the candidate "default", 0.025 on "identity", which changes
        nothing, 0.025 on the others. Without "default", half of it on "identity" and
        the other half on the others; without "identity", evenly on all.
    n_jobs : int, default=None
        Processes for the folds; -1 for all cores.

    Attributes
    ----------
    weights_ : dict of str to float
        Of all candidates that could be fitted; their sum is 1. Those below 0.001 are
        set to 0.
    recalibrators_ : dict of str to recalibrator
        Those of positive weight, fitted to all rows.
    cv_losses_ : dict of str to tuple of float
        Mean and standard error of the log loss, in nats, of the rows that each
        candidate has not seen. Empty with fewer than 20 rows.
    n_features_in_ : int
    classes_ : ndarray of shape (n_classes,)
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.

    Warns
    -----
    CalibrationWarning
        A candidate failed and is left out. Or there are fewer than 20 rows, or rows of
        one class only: the weights are those of the prior. Or no `groups`, and scores
        that repeat with the same labels, so that folds share what belongs together.

    Raises
    ------
    TypeError
        A candidate without ``fit`` and ``predict_proba``.
    ValueError
        No candidate could be fitted, or with `monotone` one that is not declared
        monotone.

    Notes
    -----
    The prediction is the mean of the candidates' probabilities p_m with weights w_m
    that maximise sum_i log(sum_m w_m p_m(y_i | x_i)) + sum_m alpha_m log w_m, p_m
    fitted without row i. Each p_m is mixed with 1 / (n + 1) of the score itself. The
    maximum is found by Newton's method. The kept candidates are then fitted to all
    rows. Above 200,000 rows the weights come from a sample of as many, at no loss that
    could be measured (below 1e-4 nats at 400,000).

    "auto" is for two classes `Identity`, `DefaultCalibration`, `SplineCalibration` and
    `VennAbers`; below 1000 rows also `PlattScaling`, from 1000 on `QuadraticScaling`.
    With `monotone` `BetaCalibration` joins them, and the quadratic form is left out.
    For several classes it is `Identity`, `TemperatureScaling` with Laplace smoothing,
    `DefaultCalibration`, the same followed by `SplineCalibration`, one `VennAbers` map
    shared by all classes, and below 1000 rows the default followed by one spline that
    they share. From 50 classes on there is no Venn-Abers map but
    `StructuredVectorScaling`, and the spline after the default is shared, or
    recalibrates the predicted class only; above 200 the matrix, k^2 numbers, is left
    out. Of rows with options of their own (``canonical_proba(scores, absent="nan")``)
    it is the first two. Chosen with real tables; see the folder ``benchmarks/stack``.

    All of it is one compiled program at prediction, if each candidate has nodes for
    it (up to 49 classes; candidates of your own as well): a row costs some
    microseconds.

    Whole numbers as sample weights count rows. Progress is reported through
    scikit-learn's callbacks (version 1.9 on). Cost: cv + 1 fits of each candidate; 0.2 s
    for 5000 rows and two classes, 5 s for a million, 1.5 s for 10,000 rows and 10
    classes, 6 s and 100 classes.

    References
    ----------
    Breiman (1996), "Stacked regressions". van der Laan, Polley, Hubbard (2007), "Super
    learner".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import StackedCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> stack = StackedCalibration().fit(*make_overconfident(2, 500))
    >>> len(stack.weights_), max(stack.weights_, key=stack.weights_.get)
    (5, 'default')
    >>> bool(stack.weights_["identity"] < 0.5)
    True

    Candidates of one's own, such as two chains that share their first step:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_calib.recalibrators import StructuredMatrixScaling
    >>> matrix = StructuredMatrixScaling()
    >>> candidates = {
    ...     "matrix": matrix,
    ...     "bent": make_pipeline(matrix, "spline"),
    ... }
    """

    weights_: dict[str, float]
    recalibrators_: dict[str, Any]
    cv_losses_: dict[str, tuple[float, float]]

    capabilities = Capabilities(
        multiclass="native",
        # This holds with monotone=True only.
        increasing=True,
        nonparametric_shape=True,
        needs_positive_proba=True,
        nonparametric=True,
        weights="counts",
        allows_absent_classes=True,
        cost="cv + 1 fits of each",
    )
    _parameter_constraints: ClassVar = {
        "recalibrators": "no_validation",
        "cv": ["cv_object"],
        "monotone": ["boolean"],
        "alpha": [NONNEGATIVE_REAL],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        recalibrators: Literal["auto"] | Candidates = "auto",
        cv: CV = 5,
        *,
        monotone: bool = False,
        alpha: float = 2.0,
        n_jobs: int | None = None,
    ) -> None:
        self.recalibrators = recalibrators
        self.cv = cv
        self.monotone = monotone
        self.alpha = alpha
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
    ) -> Self:
        """Learn the map from scores to calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities as `canonical_proba` takes them: one column per class in the
            order of the sorted labels, or the last of `classes` alone. For logits pass
            ``canonical_proba(scores, kind="logits")``.
        y : array-like of shape (n_samples,)
            Labels. Only a `PriorShift` to a given mean can do without.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0. A weight of 2 equals the row given twice, 0 equals the row
            left out.
        classes : array-like of shape (n_classes,), default=None
            All classes in the order of the columns, for a calibration set that misses
            one, or columns that are not in the order of the sorted labels. It names the
            columns and moves nothing.
        soft_labels : bool, default=False
            Whether `y` holds shares of classes instead: of shape (n_samples,) the share
            of the second class, in [0, 1], or of shape (n_samples, n_classes). The same
            as each row given once per class, with the share times its weight as weight.
            Of k votes of n pass k / n and n as `sample_weight`. The classes are 0, 1,
            ..., unless `classes` names them.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together, such as the visits of a patient or the forecasts
            of one election: no group is split between folds. Without it the fits of the
            folds know the labels of the rows that they are judged by, and maps that
            learn them by heart win.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            Anything `canonical_proba` rejects; labels that do not match the columns;
            soft labels outside [0, 1], or if the order of the rows matters
            (``capabilities.order_dependent``); weights that are negative or all zero; more
            classes than ``capabilities.max_classes``. After any error or interruption
            the estimator is unfitted, also if it was fitted before. Threads that
            predict during a fit see the map of before until it ends.

        Warns
        -----
        CalibrationWarning
            Equal rows of scores; `classes` in an order of their own if the columns
            fit another one far better. From maps that cannot fall
            (``capabilities.increasing``): scores that fall with the outcome, by the
            rank correlation at a level of 1e-4, one-sided, divided by the number of
            classes where there are more than two.
        """
        self._groups = groups
        try:
            return super().fit(X, y, sample_weight, classes, soft_labels=soft_labels)
        finally:
            del self._groups

    def to_frame(self) -> DataFrame:
        """Return the candidates as a pandas DataFrame, the largest weight first.

        Returns
        -------
        table : DataFrame
            One row per candidate, its name as the index; columns ``weight``,
            ``cv_loss`` and ``standard_error``, the latter NaN without cross-validation.

        Raises
        ------
        ModuleNotFoundError
            Pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        unknown = np.nan, np.nan
        rows = {
            name: (weight, *self.cv_losses_.get(name, unknown))
            for name, weight in self.weights_.items()
        }
        columns = ["weight", "cv_loss", "standard_error"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        return table.sort_values("weight", ascending=False, kind="stable")

    # -- fit ----------------------------------------------------------------------------------

    def _read_fit_input(self, X, y, sample_weight, classes, *, soft_labels=False):
        """Validate the rows, and number the groups that stay together in folds."""
        rows = super()._read_fit_input(
            X,
            y,
            sample_weight,
            classes,
            soft_labels=soft_labels,
        )
        n_rows = np.shape(y)[0]
        check_and_get_common_index(y, self._groups)
        if self._groups is not None:
            self._groups = _encode_group_numbers(
                encode_groups(self._groups, n_rows)[rows.items]
            )
        elif soft_labels:
            # All rows of an item stay in one fold.
            self._groups = _encode_group_numbers(np.arange(n_rows)[rows.items])
        return rows

    @with_callbacks
    def _fit_validated(
        self,
        proba,
        y_encoded,
        classes,
        sample_weight=None,
        groups=None,
        category_order=None,
    ):
        """Fit to validated rows, with groups that stay together in folds."""
        self._groups = None
        if groups is not None:
            group_numbers = encode_groups(groups, len(proba))
            has_weight = canonical_weight(sample_weight, len(proba)) > 0
            self._groups = _encode_group_numbers(group_numbers[has_weight])
        try:
            return super()._fit_validated(proba, y_encoded, classes, sample_weight)
        finally:
            del self._groups

    def _fit(self, proba, codes, weight):
        """Weigh the candidates by their held-out likelihood, and refit those with weight."""
        per_weight = get_rows_per_weight(weight)
        n_rows = float(weight.sum() * per_weight)
        chains = self._make_candidate_chains_by_name(proba, n_rows)
        folds = []
        alone = self._groups is not None and self._groups.max() == 0
        if alone:
            warn_calibration(
                expected="at least two groups, to compare candidates",
                got="one",
                hint="The weights are those of the prior; check the column of the groups",
                estimator=self,
            )
        elif n_rows >= _MIN_WEIGHTING_ROWS and (codes != codes[0]).any():
            # Folds are masses per row instead of positions, so that rows with counts as
            # weights can be divided between folds.
            folds = compute_fit_and_held_out_weights(
                proba,
                codes,
                weight,
                self.cv,
                _MAX_WEIGHTING_ROWS,
                groups=self._groups,
            )
            # Copies of a row in different folds would make flexible candidates look
            # better than they are.
            if self._groups is None and isinstance(self.cv, Integral):
                warn_repeated_rows(proba, codes, GROUPS_HINT)
        else:
            warn_calibration(
                expected="enough rows of two classes to compare candidates",
                got=f"{n_rows:.4g} of {len(np.unique(codes))}, "
                f"fewer than {_MIN_WEIGHTING_ROWS} of 2",
                hint="The weights are those of the prior; pass more rows",
                estimator=self,
            )
        with report_fit(self, len(folds) + 1, proba, codes) as context:
            *tasks, last = make_task_contexts(context, len(folds) + 1, "fold")
            calls = (
                delayed(_compute_held_out_likelihoods_and_mass)(
                    task, self, chains, proba, codes, *masses
                )
                for task, masses in zip(tasks, folds, strict=True)
            )
            outside = Parallel(n_jobs=self.n_jobs)(calls)
            with report_task(last, self, None, proba, codes):
                self._fit_weights_and_cv_losses(
                    self._list_names_fitted_in_all_folds_or_raise(chains, outside),
                    outside,
                    per_weight,
                )
                # Tables of the folds are not held during the last fits.
                del folds, calls, outside
                self._refit_and_store_chains(chains, proba, codes, weight, n_rows)

    def _make_candidate_chains_by_name(self, proba, n_rows):
        """Return the candidates by name, each a tuple of steps."""
        if is_scalar_equal(self.recalibrators, "auto"):
            candidates = list_candidates(proba.shape[1], n_rows, monotone=self.monotone)
            if get_absent_option_mask(proba) is None:
                return candidates
            return {
                name: candidates[name]
                for name in ("identity", "temperature")
                if name in candidates
            }
        chains = make_chains_by_name(self.recalibrators)
        for name, steps in chains.items():
            if self.monotone and not all(
                getattr(getattr(step, "capabilities", None), "monotone", False)
                for step in steps
            ):
                raise invalid_input(
                    expected="with monotone=True candidates that declare that they are monotone",
                    got=quote_text(name),
                    hint="Leave it out, or set monotone=False",
                )
        return chains

    def _list_names_fitted_in_all_folds_or_raise(self, chains, outside):
        """Return the candidates that no fold failed to fit; warn about the others."""
        kept = list(chains)
        error = None
        for name in chains:
            errors = [
                losses_by_name[name]
                for losses_by_name, _ in outside
                if isinstance(losses_by_name[name], Exception)
            ]
            if errors:
                kept.remove(name)
                error = errors[0]
                self._warn_left_out(name, error)
        if not kept:
            raise _no_usable_method_error(error)
        return kept

    def _warn_left_out(self, name, error):
        warn_calibration(
            expected="candidates that can be fitted",
            got=f"{type(error).__name__} from {quote_text(name)}: {error}",
            hint="It is left out; see the warnings of its own fit",
            estimator=self,
        )

    def _fit_weights_and_cv_losses(self, names, held_out_by_fold, per_weight):
        """Fit the weights of the candidates.

        `held_out_by_fold` has one pair per fold: the likelihoods of the held-out rows
        for each candidate by name, and the masses of these rows.
        """
        from .._kernels._mixture_proportions import fit_mixture_weights

        prior = get_prior_shares(names)
        self.cv_losses_ = {}
        if held_out_by_fold:
            columns = []
            for name in names:
                fold_values = [
                    values_by_name[name] for values_by_name, _ in held_out_by_fold
                ]
                columns.append(np.concatenate(fold_values))
            table = np.column_stack(columns)
            mass = np.concatenate([left for _, left in held_out_by_fold]) * per_weight
            losses = compute_log_losses(table)
            means = mass @ losses / mass.sum()
            errors = np.sqrt(mass @ (losses - means) ** 2) / mass.sum()
            # The losses are as large as the table.
            del losses
            pairs = zip(means.tolist(), errors.tolist(), strict=True)
            self.cv_losses_ = dict(zip(names, pairs, strict=True))
            # The weights maximise the held-out likelihood of the mixture. The rows of
            # the prior keep the weights near it if few rows are held out.
            prior = fit_mixture_weights(table, mass, self.alpha * prior)
        weights = prior / prior.sum()
        # A candidate of negligible weight would still cost a fit and its share of every
        # prediction.
        weights[weights < _MIN_CANDIDATE_WEIGHT] = 0.0
        weights /= weights.sum()
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))

    def _refit_and_store_chains(self, chains, proba, codes, weight, n_rows):
        """Refit the candidates with weight to all rows, and drop those that fail or decrease."""
        kept = {
            name: chains[name] for name, share in self.weights_.items() if share > 0
        }
        fitted, failed = fit_chains(kept, proba, codes, weight)
        for name, error in failed.items():
            self._warn_left_out(name, error)
            del self.weights_[name]
        # Candidates that claim to be monotone may still decrease for these data, for
        # instance if the scores are reversed.
        falling = []
        if self.monotone and proba.shape[1] == 2:
            falling = _list_decreasing_map_names(fitted, proba)
        for name in falling:
            del fitted[name], self.weights_[name]
        total = sum(self.weights_.values())
        if falling and not total > 0 and "identity" in chains:
            identity = {"identity": chains["identity"]}
            fitted |= fit_chains(identity, proba, codes, weight)[0]
            self.weights_["identity"] = total = 1.0
        if not total > 0:
            raise _no_usable_method_error(None if falling else error)
        self.weights_ = {name: share / total for name, share in self.weights_.items()}
        self._fitted = fitted
        self._share_of_input = 1 / (n_rows + 1)
        self.recalibrators_ = {
            name: make_estimator(steps) for name, steps in fitted.items()
        }

    # -- predict ------------------------------------------------------------------------------

    def _list_fitted_parts(self):
        return [*itertools.chain(*self._fitted.values())]

    def _predict_proba_with_parts(self, proba):
        """Return the mixture, each candidate by itself."""
        # A small share of the input keeps probabilities of 0 out of the mixture, for
        # all predictions of the candidates.
        mixed = self._share_of_input * np.asarray(proba)
        scale = 1 - self._share_of_input
        for name, predicted in iter_chain_predictions(
            self._fitted, proba, np.arange(proba.shape[1])
        ):
            if isinstance(predicted, Exception):
                raise predicted
            mixed = mixed + scale * self.weights_[name] * predicted
        return mixed / mixed.sum(axis=1, keepdims=True)

    def _make_map(self):
        """Make a mixture of the input and the candidates' maps."""
        input_share = self._share_of_input
        # RecalibratorChains may share a step; its map is then computed once.
        map_by_step = {}
        for step in self._list_fitted_parts():
            if id(step) not in map_by_step:
                map_by_step[id(step)] = get_map(step)
        mixed_maps: list[maps.CalibrationMap] = [maps.Identity()]
        shares = [input_share]
        for name, steps in self._fitted.items():
            mixed_maps.append(
                maps.make_chain(*(map_by_step[id(step)] for step in steps))
            )
            shares.append((1 - input_share) * self.weights_[name])
        return maps.make_mixture(shares, mixed_maps)


def list_candidates(
    k: int, n_rows: float, *, monotone: bool = False
) -> RecalibratorChains:
    """Return the candidates of "auto" for k classes and a number of rows."""
    default = DefaultCalibration()
    spline = SplineCalibration()
    few = n_rows < _MIN_CURVE_ROWS
    chains: RecalibratorChains = {"identity": (Identity(),)}
    if k == 2:
        chains |= {
            "default": (default,),
            "spline": (spline,),
            "venn_abers": (VennAbers(),),
        }
        chains |= {"beta": (BetaCalibration(),)} if monotone else {}
        if few:
            chains["platt"] = (PlattScaling(),)
        elif not monotone:
            chains["quadratic"] = (QuadraticScaling(),)
        return chains
    chains["temperature"] = (TemperatureScaling(laplace=True),)
    # A map that all classes share has k times as many rows, which counts more than
    # differences between classes if these have few.
    one_for_all = OneVsRest(VennAbers(), shared=True)
    shared = OneVsRest(spline, shared=True)
    if k < _MIN_CLASSES_TO_DROP_OWN_SPLINES:
        chains |= {"default": (default,), "default, spline": (default, spline)}
        chains |= {"default, shared spline": (default, shared)} if few else {}
        return chains | {"shared venn_abers": (one_for_all,)}
    vector = StructuredVectorScaling()
    chains["structured_vector"] = (vector,)
    first = (default,) if k <= _MAX_MATRIX_CLASSES else (vector,)
    name = "default" if k <= _MAX_MATRIX_CLASSES else "structured_vector"
    chains[name] = first
    chains[f"{name}, shared spline"] = (*first, shared)
    chains[f"{name}, top spline"] = (*first, TopLabel(spline))
    return chains


def get_prior_shares(names: Sequence[str]) -> FloatArray:
    """Return the fraction of one invented row for each candidate."""
    n = len(names)
    if "identity" not in names or n == 1:
        return np.full(n, 1 / n)
    shares = {"identity": 0.5}
    if "default" in names and n > 2:
        # The default is itself a mean of unchanged scores and several maps. With few
        # rows others must be clearly better than it.
        shares = {"identity": 0.025, "default": 0.95}
    other_share = (1 - sum(shares.values())) / (n - len(shares))
    return np.array([shares.get(name, other_share) for name in names])


def _encode_group_numbers(groups):
    return np.unique(groups, return_inverse=True)[1].ravel()


def _no_usable_method_error(error):
    """Return the error if no candidate remains: an exception, or all maps decrease."""
    got = "only maps that fall"
    hint = "Check which column is the positive class"
    if error is not None:
        got = f"none: {type(error).__name__}: {error}"
        hint = "Add 'identity' to the candidates"
    return invalid_input(expected="a candidate that can be fitted", got=got, hint=hint)


def _list_decreasing_map_names(fitted, proba):
    """Return the names of two-class maps that decrease somewhere on the fitted scores."""
    score = compute_log_odds(proba)
    grid = convert_log_odds(np.linspace(score.min(), score.max(), 101))
    predictions = iter_chain_predictions(fitted, grid, np.arange(2))
    return [name for name, table in predictions if np.diff(table[:, 1]).min() < -1e-12]


def _compute_held_out_likelihoods_and_mass(
    task, caller, chains, proba, codes, fit_mass, held_out_mass
):
    """Compute held-out probabilities of the true classes for each candidate, or its error."""
    with report_task(task, caller, None, proba, codes):
        test = held_out_mass > 0
        fitted, results = fit_chains(chains, proba, codes, fit_mass)
        input_share = 1 / (fit_mass.sum() + 1)
        rows = np.flatnonzero(test)
        # A fold must not raise small probabilities to a floor of its own, because the
        # final map, whose floor is that of all rows, leaves these rows as they are.
        test_proba = proba[test]
        log = compute_log_proba_or_minus_inf_if_absent(test_proba)
        test_proba = attach_log_proba(
            test_proba, log, get_absent_option_mask(test_proba)
        )
        input_likelihood = np.asarray(test_proba)[np.arange(len(rows)), codes[rows]]
        for name, predicted in iter_chain_predictions(
            fitted, test_proba, np.arange(proba.shape[1])
        ):
            if not isinstance(predicted, Exception):
                predicted = predicted[np.arange(len(rows)), codes[rows]]
                # As in the final mixture, so that the held-out likelihood is that of
                # what will be predicted.
                predicted = (
                    1 - input_share
                ) * predicted + input_share * input_likelihood
                predicted = np.maximum(predicted, _MIN_LIKELIHOOD)
            results[name] = predicted
        return results, held_out_mass[test]
