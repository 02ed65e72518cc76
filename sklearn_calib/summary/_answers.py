"""What a summary answers: measures with bounds, fits, tests and curves."""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .._typing import FloatArray, Multiclass
from ..exceptions import refuse
from ..metrics import Measure, all_metrics
from ._bounds import BOUNDS, BoundedValue, cell_sums

if TYPE_CHECKING:
    from ._state import CellState

_LOSSES = {"brier_loss": "brier", "log_loss": "log_loss"}  # measures that are totals
_NOT_OF_BOUNDS = "multiclass", "debias", "cv", "label_smoothing"  # options that no bound takes


class Answers:
    """The methods of a summary that compute something of its rows."""

    if TYPE_CHECKING:  # what `CalibrationSummary` has
        multiclass: Multiclass
        _joint: FloatArray | None
        _states: list[CellState]
        _case: Callable[[str], Any]
        _check_two_classes: Callable[[str, str], None]

        @property
        def n_samples(self) -> int: ...
        @property
        def exact(self) -> bool: ...
        @property
        def totals(self) -> Any: ...

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
            and for all while the summary is exact. Scores that agree in 36 bits count as equal, and
            rounding is not in the bound.

        Raises
        ------
        ValueError
            An unknown measure or option, one that needs single rows, one without a known bound, or
            no rows.

        Notes
        -----
        Cost: that of the measure with two rows per cell; of the bound about as much again. The
        bounds hold for any scores. They are loose where many rows of one score share a cell with
        others: use more `max_cells`.

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
        measure = all_metrics().get(name)
        if measure is None:
            rule = f"a measure among {', '.join(all_metrics())}"
            refuse(where, rule, repr(name), "Check the spelling")
        measure.check_options(options, where)
        case, totals = self._case(where), self.totals
        if name in _LOSSES:
            value = getattr(totals, _LOSSES[name]) / totals.weight
            return BoundedValue(value, 0.0) if return_bound else value
        options = self._options(measure, options, where)
        value = measure.of_case(case, **options)
        if not return_bound:
            return value
        return BoundedValue(value, self._bound(measure, options, value, where))

    def _options(self, measure: Measure, options: dict[str, Any], where: str) -> dict[str, Any]:
        """The options of a measure as they are for cells; refused where single rows are needed."""
        if options.get("debias") or options.get("estimator") == "unbiased":
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
            options["n_bins"] = int(np.cbrt(self.n_samples) + 1e-9)
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
