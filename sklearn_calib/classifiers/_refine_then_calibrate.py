"""RefineThenCalibrateCV: choose the model by what it is worth once calibrated, and calibrate it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from .._atomic import replace_state_after_fitting_copy
from .._callbacks import make_task_contexts, report_fit, report_task, with_callbacks
from .._random import make_random_state
from .._simplex_array import stack_proba_rows
from .._sklearn_compat import POSITIVE_INTEGER
from .._typing import (
    CV,
    ArrayLike,
    Estimator,
    Features,
    FloatArray,
    RandomStateLike,
    RecalibratorLike,
    Self,
)
from .._warnings import emit_warning, warn_calibration
from ..decomposition import RefinementCurve, refinement_curve
from ..exceptions import invalid_input
from ..metrics import LossLike, ProperLoss, get_loss
from ..staged import find_staging
from ._base import ESTIMATOR_CONSTRAINTS, BaseCalibratedClassifier, CalibratedPair
from ._classifier_scores import suggest_argument_names
from ._fit_context import HeldOutScores
from ._search import (
    fit_search_fold,
    iter_scores_and_record_losses,
    iter_stage_scores_and_own_proba,
    make_results_table,
    refit_candidate,
    run_parallel_lazily,
)

_MIN_VALIDATION_ROWS = 1000
_MIN_VALIDATION_ERRORS = 10


@suggest_argument_names
class RefineThenCalibrateCV(BaseCalibratedClassifier):
    """Tuning and early stopping by refinement, then calibration, in one classifier.

    Every candidate is fitted once per fold, and judged after each stage of its training
    (boosting round, tree, epoch) by the loss that remains after recalibration. The best
    candidate at its best stage is kept and recalibrated on the same out-of-fold scores.
    The plain log loss would stop a learner too early, for it also counts the
    overconfidence, which a temperature removes afterwards.

    Parameters
    ----------
    estimator : classifier
        With fit and ``decision_function`` or ``predict_proba``; also a pipeline that
        ends in one. A fitted model in ``sklearn.frozen.FrozenEstimator`` is not fitted
        again: all rows are validation rows, for its stages and the recalibrator.
    param_grid : dict or list of dict, default=None
        Candidates as in ``GridSearchCV``; with `n_iter`, distributions as in
        ``RandomizedSearchCV``. None: the estimator as it is.
    n_iter : int, default=None
        Number of candidates to draw from `param_grid`; None tries all.
    stages : "auto", None or sequence of int, default="auto"
        "auto": every stage of learners that have them (see `find_staging`). None: the
        end of the training only. A sequence: these stages, counted from 1.
    recalibrator : str or recalibrator, default="default"
        What calibrates the chosen model, as in `CalibratedModel`. It is fitted once,
        after the search, so that "auto", `StackedCalibration`, costs seconds at most.
    refinement : str or recalibrator, default="temperature-in-sample"
        What defines the loss that remains. The default is temperature scaling with
        smoothed labels, fitted on the rows it is judged on; "isotonic" or another
        recalibrator: cross-fitted in 5 folds.
    loss : {"log", "brier", "spherical"} or ProperLoss, default="log"
        What is small for a good model, as in `decompose_loss`.
    selection : {"minimum", "one_standard_error"}, default="minimum"
        The stage with the smallest criterion, the earliest of equals; or the earliest
        that is not worse by more than one standard error of the paired difference, for
        smaller models.
    cv : int, cross-validation generator or iterable, default=None
        The folds; 5 stratified ones by default. One split is hold-out validation. Rows
        that are in no test part are not judged.
    refit : bool, default=True
        Fit the chosen candidate up to the chosen stage on all rows. False: with one
        split, its model is kept; with several, the search is all there is, unless
        ``ensemble=True``.
    ensemble : bool, default=False
        Keep the folds' models at the chosen stage and average their recalibrated
        probabilities, instead of refitting.
    error_score : "raise" or numpy.nan, default=numpy.nan
        What a failing fit of a grid does: raise, or a warning and a candidate that is
        not chosen. An error is raised if all fail, and the fit's own one if there is
        no grid.
    n_jobs : int, default=None
        Fits in parallel, as in joblib.
    random_state : int, Generator, RandomState or None, default=0
        For the draws of `n_iter`.

    Attributes
    ----------
    best_params_ : dict
    best_stage_ : int or None
        None if stages were not looked at.
    best_score_ : float
        Minus the criterion of the chosen row: greater is better.
    best_index_ : int
        The row of `cv_results_`.
    best_estimator_ : classifier
        The chosen model before calibration, if there is one.
    recalibrator_ : recalibrator
    calibrated_pairs_ : list of CalibratedPair
        One, or one per fold with ``ensemble=True``.
    cv_results_ : dict of str to array
        One row for each candidate and stage, for ``pandas.DataFrame``: candidate,
        params, param_*, stage, risk, refinement, calibration, criterion,
        standard_error, rank, and fit_time in seconds, summed over the folds. "risk" is
        the loss of the learner's own ``predict_proba`` if it has one; "refinement"
        and "criterion" are those of the scores that are recalibrated
        (`CalibratedModel`, response_method="auto"), "calibration" their difference.
    refinement_curve_ : RefinementCurve
        Of the best candidate.
    n_splits_, refit_time_, classes_, n_features_in_, feature_names_in_
        As in ``GridSearchCV``.

    Raises
    ------
    ValueError
        No candidate; an unknown loss, or one of another number of classes; stages that
        the fit does not reach; all fits failing; fewer than two classes.
    TypeError
        An object that is not a recalibrator.

    Warns
    -----
    CalibrationWarning
        Fewer than 1000 validation rows or 10 validation errors: the choice is then
        mostly chance. Or the recalibration harms, by the rules of `CalibratedModel`. A
        learner whose later rounds change earlier ones (dart): what a stage is then. A
        fitted estimator without a FrozenEstimator, which is fitted again.
    FitFailedWarning
        A fit failed.

    Notes
    -----
    The scores of all folds are pooled and one temperature is fitted to them, which is
    exactly the calibration that follows; the mean of each fold's own minimum would be
    lower by some (folds - 1) / (2 n). Rows of classes that a fold's model has not seen
    are left out of its judgement.

    The learner's own early stopping is not needed: the stage is chosen from all that
    were fitted. ``HistGradientBoostingClassifier(early_stopping="auto")`` is switched
    off, and learners with ``partial_fit`` run ``max_iter`` epochs. A refit on all rows
    has more rows than the folds had.

    Cost: candidates x folds fits, one prediction of all stages, and about 4 passes over
    the scores per stage. Memory: the scores of one stage and the folds' models of two
    candidates (of all with joblib's multiprocessing backend); stages are predicted one
    after the other and never held together.

    Progress is reported through scikit-learn's callbacks (version 1.9 on):
    ``model.set_callbacks(sklearn.callback.ProgressBar())``.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), "Rethinking early stopping: refine, then
    calibrate".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from sklearn_calib import RefineThenCalibrateCV
    >>> X, y = make_classification(2000, n_informative=8, flip_y=0.1, random_state=0)
    >>> learner = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.3, random_state=0)
    >>> model = RefineThenCalibrateCV(learner, {"max_leaf_nodes": [4, 16]}, cv=3).fit(X, y)
    >>> model.best_estimator_.n_iter_ == model.best_stage_
    True
    >>> curve = model.refinement_curve_
    >>> bool(model.best_stage_ > curve.stage[curve.risk.argmin()])
    True
    """

    best_params_: dict[str, Any]
    best_stage_: int | None
    best_score_: float
    best_index_: int
    recalibrator_: Any
    cv_results_: dict[str, Any]
    refinement_curve_: RefinementCurve

    _parameter_constraints: ClassVar = {
        "estimator": ESTIMATOR_CONSTRAINTS,
        "param_grid": [dict, list, None],
        "n_iter": [POSITIVE_INTEGER, None],
        "stages": [StrOptions({"auto"}), "array-like", None],
        "recalibrator": "no_validation",
        "refinement": "no_validation",
        "loss": [str, ProperLoss],
        "selection": [StrOptions({"minimum", "one_standard_error"})],
        "cv": ["cv_object"],
        "refit": ["boolean"],
        "ensemble": ["boolean"],
        "error_score": [StrOptions({"raise"}), Real],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        estimator: Estimator,
        param_grid: dict[str, Any] | list[dict[str, Any]] | None = None,
        *,
        n_iter: int | None = None,
        stages: Literal["auto"] | Sequence[int] | None = "auto",
        recalibrator: RecalibratorLike = "default",
        refinement: RecalibratorLike = "temperature-in-sample",
        loss: LossLike = "log",
        selection: Literal["minimum", "one_standard_error"] = "minimum",
        cv: CV = None,
        refit: bool = True,
        ensemble: bool = False,
        error_score: Literal["raise"] | float = np.nan,
        n_jobs: int | None = None,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_iter = n_iter
        self.stages = stages
        self.recalibrator = recalibrator
        self.refinement = refinement
        self.loss = loss
        self.selection = selection
        self.cv = cv
        self.refit = refit
        self.ensemble = ensemble
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    def fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Search, refit and calibrate.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            As the estimator takes it.
        y : array-like of shape (n_samples,)
            Labels: integers, text, bytes, booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, passed to the estimator if it takes them, to the criterion
            and to the recalibrator.
        **fit_params : dict
            ``groups`` is passed to the splitter and to the recalibrator, as in
            `CalibratedModel`, the rest to the estimator's fit; with metadata routing
            enabled, each to the objects that request it. ``eval_set`` as there.

        Returns
        -------
        self : object
        """
        with replace_state_after_fitting_copy(self) as new:
            context = new._make_context_and_set_classes(X, y, sample_weight, fit_params)
            if new.error_score != "raise" and not np.isnan(new.error_score):
                raise invalid_input(
                    expected="error_score 'raise' or numpy.nan",
                    got=repr(new.error_score),
                    hint="The criterion is a loss: use nan",
                )
            get_loss(new.loss, len(context.classes))
            candidates = new._list_candidates()
            if isinstance(new.estimator, FrozenEstimator):
                everything = context.all_rows
                # A frozen estimator is judged on all given rows, which it has not been
                # trained on.
                splits = [(everything, everything)]
            else:
                splits = context.make_folds(new.cv)
            new.n_splits_ = len(splits)
            wanted = _read_unique_stage_numbers_if_given(new.stages)
            n_fits = len(candidates) * len(splits)
            with report_fit(new, n_fits + 1, context.X, context.y_encoded) as progress:
                tasks = make_task_contexts(progress, n_fits + 1, "fit")
                # The last task is the final fit. The others go candidate by candidate,
                # so that only the models of one candidate and of the best so far are
                # held in memory.
                runs = zip(product(candidates, splits), tasks[:-1], strict=True)
                fits = run_parallel_lazily(
                    new.n_jobs,
                    (
                        delayed(fit_search_fold)(context, params, split, new, task)
                        for (params, split), task in runs
                    ),
                )
                table, winner, failures = new._get_search_rows_best_and_failures(
                    context, candidates, fits, wanted
                )
                new._report_results(table, winner, failures, n_fits)
                with report_task(tasks[-1], new, None, context.X, context.y_encoded):
                    new._recalibrate_and_refit_winner(context, winner)
            return self

    @property
    def best_estimator_(self) -> Any:
        """The chosen model before calibration, if there is one."""
        return self._get_only_calibrated_pair("best_estimator_").estimator

    def predict_proba(self, X: Features) -> FloatArray:
        """Predict calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``; the mean over the pairs.

        Raises
        ------
        AttributeError
            The search does not keep models: ``refit=False`` with several folds.
        """
        check_is_fitted(self)
        if not self.calibrated_pairs_:
            raise invalid_input(
                expected="a model that was kept",
                got=f"refit=False, ensemble=False and {self.n_splits_} folds",
                sentence=(
                    "The fitted models were not kept (refit=False, ensemble=False "
                    f"and {self.n_splits_} folds)"
                ),
                hint="Set refit=True or ensemble=True, or validate on one split",
                error=AttributeError,
            )
        return super().predict_proba(X)

    # -- the search ---------------------------------------------------------------------------

    def _list_candidates(self):
        """Return the parameters of each candidate, a single empty dict without a grid."""
        grid = self.param_grid
        if grid is None and self.n_iter is None:
            return [{}]
        if grid is None or isinstance(self.estimator, FrozenEstimator):
            raise invalid_input(
                "param_grid",
                expected="a param_grid of an estimator that can be fitted",
                got=(
                    f"param_grid={grid!r}, n_iter={self.n_iter!r}, {type(self.estimator).__name__}"
                ),
                hint="Leave out n_iter without a grid, and the grid for a FrozenEstimator",
            )
        if self.n_iter is None:
            parameters = ParameterGrid(grid)
        else:
            rng = make_random_state(self.random_state)
            parameters = ParameterSampler(grid, self.n_iter, random_state=rng)
        candidates = list(parameters)
        if not candidates:
            raise invalid_input(
                expected="at least one candidate",
                got=repr(grid),
                hint="Pass param_grid=None for none",
            )
        return candidates

    def _get_search_rows_best_and_failures(self, context, candidates, fits, wanted):
        """Return the rows of cv_results_, the best candidate, and the errors of failing fits."""
        rows = []
        best = None
        failures = []
        for number, params in enumerate(candidates):
            folds = list(islice(fits, self.n_splits_))
            seconds = sum(fold.seconds for fold in folds)
            failed = [fold.error for fold in folds if fold.error]
            failures += failed
            if failed:
                rows.append((number, params, seconds, None))
                continue
            # All folds have the same type of learner.
            staging = None if self.stages is None else find_staging(folds[0].estimator)
            curve = self._compute_refinement_curve(context, folds, staging, wanted)
            rows.append((number, params, seconds, curve))
            position = curve.best(self.selection)
            criterion = curve.criterion[position]
            # Strictly: of equal candidates the first one wins, as in scikit-learn.
            if best is None or criterion < best.criterion:
                best = _BestCandidate(
                    number,
                    params,
                    criterion,
                    position,
                    curve,
                    folds,
                    staging,
                )
        return rows, best, failures

    def _compute_refinement_curve(self, context, folds, staging, wanted):
        """Compute risk and refinement error of each stage on the test rows of the folds."""
        counts = [
            1 if staging is None else staging.n_stages(fold.estimator) for fold in folds
        ]
        stages = np.arange(1, max(counts) + 1) if wanted is None else wanted
        if staging is None and wanted is not None:
            raise invalid_input(
                expected="a learner with stages",
                got=repr(self.estimator),
                hint=(
                    "Set stages='auto', or declare them with sklearn_calib.staged.register_staging"
                ),
            )
        if stages[-1] > max(counts):
            raise invalid_input(
                "stages",
                expected=f"stages up to the {max(counts)} {staging.unit} of the fit",
                got=f"{stages[-1]}",
                hint="Let the estimator train longer, or leave out the larger ones",
            )
        rows = np.concatenate([fold.rows for fold in folds])
        if not len(rows):
            raise invalid_input(
                expected="test rows of classes that the training part has",
                got="none in any fold",
                hint="Use stratified folds",
            )
        # The paper's TS-refinement (section 4) is the loss of the test rows after
        # temperature scaling on the same rows. It has one parameter; other
        # recalibrators are cross-validated, or they would reward overfitting.
        is_temperature = (
            isinstance(self.refinement, str)
            and self.refinement == "temperature-in-sample"
        )
        options = {
            "sample_weight": context.weight[rows],
            "labels": np.arange(len(context.classes)),
        }
        # Stages are computed one after the other, so that memory does not grow with
        # their number.
        stream = iter_stage_scores_and_own_proba(
            context, folds, staging, set(stages.tolist())
        )
        risks = []
        curve = refinement_curve(
            context.y_encoded[rows],
            iter_scores_and_record_losses(
                stream,
                risks,
                get_loss(self.loss),
                context.y_encoded[rows],
                options,
            ),
            stages=stages,
            loss=self.loss,
            recalibrator="temperature" if is_temperature else self.refinement,
            cv=None if is_temperature else 5,
            unit="stages" if staging is None else staging.unit,
            **options,
        )
        # If the learner has probabilities of its own, the reported risk is theirs, and
        # the calibration error the rest.
        risk = np.where(np.isnan(risks), curve.risk, risks)
        return replace(curve, risk=risk, calibration=risk - curve.refinement)

    def _report_results(self, table, winner, failures, n_fits):
        """Set the results, and warn of failed fits and of too few rows."""
        if failures:
            failed = f"{len(failures)} of {n_fits} fits failed, the first with:\n{failures[0]}\n"
            debug = "Candidates with a failing fit are not chosen. Debug with error_score='raise'"
            if winner is None:
                raise invalid_input(
                    expected="one candidate that can be fitted",
                    got=f"none: {failed}",
                    hint=debug,
                )
            emit_warning(FitFailedWarning(f"{failed}{debug}."))
        self.cv_results_ = make_results_table(table)
        self.best_index_ = int(
            np.flatnonzero(self.cv_results_["candidate"] == winner.number)[
                winner.stage_index
            ]
        )
        self.best_params_ = winner.params
        self.best_score_ = -float(winner.criterion)
        self.refinement_curve_ = winner.curve
        staged = winner.staging is not None
        self.best_stage_ = (
            int(winner.curve.stage[winner.stage_index]) if staged else None
        )

    def _recalibrate_and_refit_winner(self, context, winner):
        """Recalibrate the chosen model, and refit it."""
        stage = self.best_stage_
        staging = winner.staging
        folds = [fold.truncate_estimator(staging, stage) for fold in winner.folds]
        # The recalibrator is fitted to held-out scores of all folds, at the chosen
        # stage.
        scores = stack_proba_rows([fold.predict_test_scores(context) for fold in folds])
        rows = np.concatenate([fold.rows for fold in folds])
        held_out = HeldOutScores(scores, rows, context.y_encoded[rows])
        _warn_few_validation_rows(scores, held_out.y_encoded)
        caveat = staging and staging.caveat(folds[0].estimator)
        if caveat:
            warn_calibration(*caveat, estimator=self)
        self.recalibrator_ = context.fit_recalibrator(held_out)
        context.warn_if_harmful(self.recalibrator_, held_out)
        start = time.perf_counter()
        if isinstance(self.estimator, FrozenEstimator):
            kept = [(FrozenEstimator(fold.estimator), fold.columns) for fold in folds]
        # With one split the model of its training part can be kept as it is.
        elif self.ensemble or (not self.refit and len(folds) == 1):
            kept = [(fold.estimator, fold.columns) for fold in folds]
        elif self.refit:
            kept = [refit_candidate(context, winner.params, staging, stage)]
        else:
            kept = []
        self.refit_time_ = time.perf_counter() - start
        self.calibrated_pairs_ = [
            CalibratedPair(estimator, self.recalibrator_, columns)
            for estimator, columns in kept
        ]
        self._copy_feature_names(kept[0][0] if kept else folds[0].estimator)


class _BestCandidate(NamedTuple):
    """The best candidate so far."""

    number: int
    params: dict
    criterion: float
    # The position of the stage in the curve.
    stage_index: int
    curve: Any
    folds: list
    staging: Any


def _read_unique_stage_numbers_if_given(stages):
    """Return the stages that are given by their numbers, or None."""
    if stages is None or isinstance(stages, str):
        return None
    table = np.asarray(stages)
    has_integers = table.ndim == 1 and len(table) and table.dtype.kind in "iu"
    if not has_integers or table.min() < 1:
        raise invalid_input(
            expected="stages as whole numbers from 1 on",
            got=repr(stages),
            hint="Count stages from 1",
        )
    return np.unique(table)


def _warn_few_validation_rows(scores, codes):
    """Warn if the validation rows, or the errors among them, are too few for a choice."""
    errors = int((np.asarray(scores).argmax(axis=1) != codes).sum())
    if len(codes) >= _MIN_VALIDATION_ROWS and errors >= _MIN_VALIDATION_ERRORS:
        return
    warn_calibration(
        expected=(
            f"at least {_MIN_VALIDATION_ROWS} validation rows and "
            f"{_MIN_VALIDATION_ERRORS} validation errors"
        ),
        got=f"{len(codes)} rows and {errors} errors",
        hint=(
            "On fewer the choice is mostly chance, and stopping by the log loss did "
            "as well or better; use more folds or rows, or stages=None"
        ),
        estimator="RefineThenCalibrateCV",
    )
