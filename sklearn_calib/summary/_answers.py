"""What a summary answers: measures with bounds, fits, tests and curves."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.utils import Bunch

from .._kernels._binning import cube_root_bins
from .._random import generator, spawned
from .._typing import (
    AnyArray,
    ArrayLike,
    CurveStrategy,
    Estimator,
    Multiclass,
    NumberOfBins,
    RandomStateLike,
    RecalibratorLike,
)
from ..canonical import read_array
from ..exceptions import check_count, refuse, refuse_unknown, setting
from ..inference import MonteCarloResult, SignificanceResult
from ..metrics import Measure, ReliabilityCurves, all_metrics, curve_of
from ..recalibrators import fit_recalibrator, resolve_recalibrator, with_whole_mean
from ._bounds import BOUNDS, BoundedValue, cell_sums, rows_across
from ._inference import CLASSICAL, CellRows, classical
from ._problems import ADDED_UP

if TYPE_CHECKING:
    from ._resampling import CellSample
    from ._state import CellState

_DRAWN_CELLS = 4096  # of a sample that is drawn from often
_USUAL = ("identity", "temperature", "platt", "beta", "isotonic")
# options that no bound takes
_NOT_OF_BOUNDS = "multiclass", "debias", "cv", "label_smoothing", "estimator"


class Answers:
    """The methods of a summary that compute something of its rows."""

    if TYPE_CHECKING:  # what `CalibrationSummary` has
        multiclass: Multiclass
        _joint: list[int] | None
        _states: list[CellState]
        _case: Callable[[str], Any]
        _check_two_classes: Callable[[str, str], None]
        _check_filled: Callable[[str], None]
        soft: bool
        rows: Callable[[], Bunch]
        samples: Callable[..., list[CellSample]]

        @property
        def classes(self) -> AnyArray | None: ...
        @property
        def n_samples(self) -> int: ...
        @property
        def exact(self) -> bool: ...
        @property
        def totals(self) -> Any: ...

    def rows_across(self, edges: ArrayLike) -> int:
        """How many rows lie in cells that reach across an edge, so that their side is not known.

        Parameters
        ----------
        edges : array-like of shape (n_edges,)
            Scores; a row belongs to the side above from the edge on.

        Returns
        -------
        n_rows : int
            0 while the summary is exact.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> CalibrationSummary().update([0, 1], [0.2, 0.7]).rows_across([0.2, 0.5])
        0
        """
        where = "CalibrationSummary.rows_across"
        self._check_filled(where)
        self._check_independent(where)
        self._check_two_classes(where, "several classes")
        if self.exact:
            return 0
        state = self._states[0]
        return rows_across(state, np.ravel(read_array(edges, "edges", where)).astype(np.float64))

    @overload
    def measure(self, name: str, return_bound: Literal[False] = ..., **options: Any) -> float: ...
    @overload
    def measure(self, name: str, return_bound: Literal[True], **options: Any) -> BoundedValue: ...
    def measure(
        self, name: str, return_bound: bool = False, **options: Any
    ) -> float | BoundedValue:
        """A registered measure of all rows.

        Parameters
        ----------
        name : str
            One of `all_metrics`.
        return_bound : bool, default=False
            Also say how far the measure of the rows can be from that of the cells.
        **options
            Options of the measure, such as ``n_bins=10``.

        Returns
        -------
        value : float or BoundedValue
            The measure of the cells; with its bound, (value, bound). The measure of the rows is
            within the bound: 0 for the losses and for bins of equal width whose number divides 60,
            and for all while the summary is exact. Rounding of the sums is not in the bound.

        Raises
        ------
        ValueError
            An unknown measure or option, one that needs single rows, or no rows; with
            `return_bound` and a summary that is not exact also a measure without a known bound,
            such as one that jumps at a threshold.

        Notes
        -----
        Cost: that of the measure with two rows per cell; of the bound about as much again. The
        bounds hold for any scores; those below 2e-319 count as 0 here. They are loose where many
        rows of one score share a cell with others: use more `max_cells`.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 50_000)
        >>> summary = CalibrationSummary(4096).update(y, proba)
        >>> error, bound = summary.measure("smooth_calibration_error", return_bound=True)
        >>> round(error, 4), bound < 0.002
        (0.0457, True)
        """
        where = "CalibrationSummary.measure"
        measure = self._known(name, where, exact=self.exact)
        measure.check_options(options, where)
        case, totals = self._case(where), self.totals
        if name in ADDED_UP:
            value = getattr(totals, ADDED_UP[name]) / totals.weight
            return BoundedValue(value, 0.0) if return_bound else value
        options = self._options(measure, options, where)
        value = measure.of_case(case, **options)
        if not return_bound:
            return value
        return BoundedValue(value, self._bound(measure, options, value, where))

    def _options(self, measure: Measure, options: dict[str, Any], where: str) -> dict[str, Any]:
        """The options of a measure as they are for cells; refused where single rows are needed."""
        single = options.get("estimator") in ("unbiased", "linear")
        if options.get("debias") or single or options.get("multiclass") == "canonical":
            cure = "Measure the rows themselves, or without that option"
            refuse(where, "options that read weights of scores", "one that reads single rows", cure)
        if options.get("cv") is not None:
            refuse(where, "cv=None", repr(options["cv"]), "Call cross_validate")
        if "multiclass" not in measure.option_names:
            reason = f"{measure.spec.name}, which reads whole vectors of probabilities,"
            self._check_two_classes(where, reason)
            return options
        options = {"multiclass": self.multiclass, **options}
        if options.get("n_bins") == "cube_root":
            options["n_bins"] = cube_root_bins(self.n_samples)
        return options

    def _bound(self, measure: Measure, options: dict[str, Any], value: float, where: str) -> float:
        """The bound of a measure, over all of its two-class problems."""
        name, options = measure.spec.name, dict(options)
        multiclass = options.pop("multiclass", "auto")
        if self.exact:
            return 0.0
        if name not in BOUNDS or options.pop("label_smoothing", False):
            rule = f"a measure with a known bound, among {', '.join(BOUNDS)}"
            refuse(where, rule, name, "Leave return_bound out")
        if options.get("n_bins") == "sweep":
            refuse(where, "a number of bins for a bound", "'sweep'", "Leave return_bound out")
        if self._joint is None and multiclass != "auto":
            rule, cure = "multiclass='auto' for a bound", "Leave return_bound out"
            refuse(where, rule, repr(multiclass), cure)
        known = {n: p.default for n, p in signature(measure).parameters.items()}
        known = {n: known[n] for n in measure.option_names if n not in _NOT_OF_BOUNDS}
        options = known | {n: v for n, v in options.items() if n not in _NOT_OF_BOUNDS}
        states = [state for state in self._states if len(state.table)]
        problems = self._case(where).problems(multiclass)
        bounds = []
        for state, problem in zip(states, problems, strict=True):
            if len(problems) > 1 and measure.is_of_problem:
                value = measure.of_problem(problem, **options)
            bounds.append(BOUNDS[name](cell_sums(state), problem, value, **options))
        if "max" in (options.get("norm"), name[:3]):
            return float(max(bounds))
        power = 2 if options.get("norm") == "l2" else 1
        shares = [problem.share for problem in problems]
        return float(np.dot(shares, np.power(bounds, power)) ** (1 / power))

    # -- recalibrators ------------------------------------------------------------------------

    def fit(self, recalibrator: RecalibratorLike) -> Estimator:
        """A recalibrator fitted to the cells, as if to all rows.

        Parameters
        ----------
        recalibrator : str or recalibrator
            A name, or an instance, which is cloned.

        Returns
        -------
        fitted : recalibrator
            Takes probabilities of both classes, or of the second.

        Raises
        ------
        ValueError
            An unknown name, no rows, one class only, more than two classes, or a method that learns
            from the order of the rows, which a summary does not keep.
        TypeError
            No recalibrator.

        Notes
        -----
        Cost: that of the fit to two rows per cell. What a recalibrator cross-validates inside, it
        cross-validates over cells; choose between recalibrators by `cross_validate`.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.recalibrators import PlattScaling
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 5000)
        >>> of_cells = CalibrationSummary().update(y, proba).fit("platt")
        >>> of_rows = PlattScaling().fit(proba, y)
        >>> bool(abs(of_cells.predict_proba(proba) - of_rows.predict_proba(proba)).max() < 1e-6)
        True
        """
        where = "CalibrationSummary.fit"
        model = resolve_recalibrator(recalibrator, where)
        self._check_filled(where)
        self._check_two_classes(where, "a recalibrator of several classes")
        if getattr(getattr(model, "capabilities", None), "ordered", False):
            cure = "Fit it to the rows themselves, in the order of time"
            refuse(where, "a method that needs no order of the rows", type(model).__name__, cure)
        rows = self.rows()
        weight = rows.sample_weight
        found = fit_recalibrator(
            model, rows.proba, rows.y, classes=self.classes, sample_weight=weight
        )
        if hasattr(found, "record_"):
            with_whole_mean(found, rows.proba, weight)
            found.record_ |= {"rows": self.n_samples}  # and not that of the cells
        return found

    def cross_validate(
        self,
        recalibrators: Sequence[RecalibratorLike] = _USUAL,
        *,
        cv: int = 5,
        measures: Sequence[str] = ("log_loss", "brier_loss", "expected_calibration_error"),
        random_state: RandomStateLike = 0,
    ) -> dict[str, dict[str, float]]:
        """Measures of recalibrated predictions, each recalibrated by a fit that has not seen it.

        The rows of each cell and label are divided at random among the folds, which has the law of
        a random partition of the rows.

        Parameters
        ----------
        recalibrators : sequence of str or recalibrator
            By default "identity" (no change), "temperature", "platt", "beta" and "isotonic".
        cv : int, default=5
            The number of folds.
        measures : sequence of str
            Names from `all_metrics`; computed for the predictions of all folds together.
        random_state : int, Generator, RandomState or None, default=0

        Returns
        -------
        values : dict of str to dict of str to float
            The measures of each recalibrator, by its name; an instance is named by its class.

        Raises
        ------
        ValueError
            An unknown name, fewer than 2 folds, no rows, or more than two classes.
        TypeError
            No recalibrator.

        Notes
        -----
        All rows of a cell are at its mean, also for "identity". Cost: `cv` fits of each.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 5000)
        >>> found = CalibrationSummary().update(y, proba).cross_validate(["identity", "platt"])
        >>> found["platt"]["log_loss"] < found["identity"]["log_loss"]
        True
        """
        where = "CalibrationSummary.cross_validate"
        if isinstance(cv, bool) or not isinstance(cv, int | np.integer) or cv < 2:
            refuse(where, "cv as a number of folds, at least 2", repr(cv), "Leave the default")
        functions = [self._known(name, where) for name in measures]
        models = {
            name if isinstance(name, str) else type(name).__name__: resolve_recalibrator(
                name, where
            )
            for name in recalibrators
        }
        self._check_two_classes(where, "a recalibrator of several classes")
        self._check_independent(where)
        self._only_state(where)
        (sample,) = self.samples()
        folds = sample.folds(int(cv), generator(random_state))
        values = {}
        for name, model in models.items():
            case, _ = sample.held_out(model, folds, where)
            values[name] = {f.spec.name: f.of_case(case) for f in functions}
        return values

    def _known(self, name, where, exact=False):
        """A measure; `exact` cells are as good as rows for one value, not for drawing from them."""
        measure = all_metrics().get(name)
        if measure is None:
            refuse_unknown(where, "a measure", name, all_metrics())
        if not exact:
            self._check_reads_cells(measure, where)
        return measure

    @staticmethod
    def _check_reads_cells(measure, where):
        """Refuse a measure that reads more than the weight of each label at each score."""
        if not measure.spec.cells:
            rule, cure = "a measure that cells are enough for", "Measure the rows themselves"
            refuse(where, rule, f"{measure.spec.name!r}, which needs single rows", cure)

    def _check_independent(self, where):
        """Refuse what counts rows, where several of them may belong to one item."""
        if self.soft:
            given = setting("soft_labels", True)
            cure = "Pass the rows themselves with " + given + "; measure and fit read cells"
            refuse(where, "rows that are independent", "a summary of soft labels", cure)

    def _only_state(self, where):
        """The cells of the only two-class problem."""
        self._check_filled(where)
        if len(self._states) > 1:
            cure = "Summarise with multiclass='confidence', or use the rows themselves"
            refuse(where, "one two-class problem", f"{len(self._states)}", cure)
        return self._states[0]

    # -- tests and curves ---------------------------------------------------------------------

    def test(
        self,
        statistic: str = "smooth",
        *,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        **options: Any,
    ) -> MonteCarloResult | SignificanceResult:
        """Test whether the predictions are perfectly calibrated.

        Parameters
        ----------
        statistic : str, default="smooth"
            "smooth" for `smooth_calibration_error`, or the name of another measure: labels are
            drawn from the predictions, as in `calibration_test`. Or a classical test:
            "spiegelhalter", "hosmer_lemeshow", "cox", "kuiper" or "kolmogorov_smirnov".
        n_resamples : int, default=999
            Draws of labels, for measures.
        random_state : int, Generator, RandomState or None, default=0
        **options
            Options of the measure, or `n_bins` of "hosmer_lemeshow" (10).

        Returns
        -------
        result : MonteCarloResult or SignificanceResult
            The latter for the classical tests.

        Raises
        ------
        ValueError
            An unknown statistic or option, no rows, or several two-class problems.

        Notes
        -----
        A measure is tested on at most 4096 cells, observed and drawn alike; the number of events
        in a cell is binomial with its mean score, whose variance is too large by h^2 / 4 a row at
        most in a cell of width h. "spiegelhalter" is exact. "kuiper" and "kolmogorov_smirnov" test
        the scores rounded to the means, which is valid too. "cox" and "hosmer_lemeshow" read the
        cells as repeated rows and need unweighted ones. Cost: some milliseconds for the classical
        tests, 1 ms for a draw.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> proba, y = make_overconfident(2, 5000)
        >>> summary = CalibrationSummary().update(y, proba)
        >>> summary.test("smooth", n_resamples=99).pvalue
        0.01
        >>> summary.test("spiegelhalter").pvalue < 1e-9
        True
        """
        where = "CalibrationSummary.test"
        self._check_independent(where)
        if statistic in CLASSICAL:
            state = self._only_state(where)
            return SignificanceResult(*classical(statistic, state, options, where))
        cure = "Pass 999 for p-values down to 0.001"
        n_resamples = check_count(n_resamples, "n_resamples", where, cure=cure)
        name = "smooth_calibration_error" if statistic == "smooth" else statistic
        measure = all_metrics().get(name)
        if measure is None:
            known = ("smooth", *CLASSICAL, *all_metrics())
            refuse_unknown(where, "a statistic", statistic, known)
        measure.check_options(options, where)
        self._check_reads_cells(measure, where)
        options = self._options(measure, options, where)
        if len(self._states) == 1 and self._joint is not None:
            options.pop("multiclass", None)  # the problem is a two-class one by now
        self._only_state(where)
        (sample,) = self.samples(_DRAWN_CELLS)
        sign = -1.0 if measure.spec.greater_is_better else 1.0
        observed = sign * measure.of_case(sample.case, **options)
        rngs = spawned(random_state, n_resamples)
        null = [sign * measure.of_case(sample.relabelled(rng), **options) for rng in rngs]
        return MonteCarloResult.of_draws(observed, np.array(null), measure.spec.name)

    def reliability_curve(
        self,
        *,
        strategy: CurveStrategy = "quantile",
        n_bins: NumberOfBins = 15,
        level: float = 0.9,
        n_resamples: int = 200,
        random_state: RandomStateLike = 0,
    ) -> ReliabilityCurves:
        """Observed frequencies against predictions, with bands.

        Parameters
        ----------
        strategy, n_bins, level, n_resamples, random_state
            As in `sklearn_calib.metrics.reliability_curve`.

        Returns
        -------
        curves : ReliabilityCurves
            One per two-class problem. ``ReliabilityDisplay({"model": curves}).plot()`` draws them.

        Raises
        ------
        ValueError
            An unknown strategy, a level outside of (0, 1), or no rows.

        Notes
        -----
        Points of bins of equal width are those of the rows where 60 is a multiple of `n_bins`; the
        bands count the rows, not the cells. Cost: some milliseconds, and 1 ms a resample.

        Examples
        --------
        >>> from sklearn_calib.summary import CalibrationSummary
        >>> summary = CalibrationSummary().update([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6])
        >>> (curve,) = summary.reliability_curve(n_bins=2)
        >>> curve.observed.tolist()
        [0.0, 1.0]
        """
        where = "CalibrationSummary.reliability_curve"
        self._check_filled(where)
        self._check_independent(where)
        rng = generator(random_state)
        n_bins = cube_root_bins(self.n_samples) if n_bins == "cube_root" else n_bins
        filled = [state for state in self._states if len(state.table)]
        titles = [problem.title for problem in self._case(where).problems()]
        return ReliabilityCurves(
            curve_of(CellRows(state, title), strategy, n_bins, level, n_resamples, rng, where)
            for state, title in zip(filled, titles, strict=True)
        )
