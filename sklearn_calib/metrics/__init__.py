"""Measures of probabilities, proper losses and their scorers.

It may import `_files`, `datasets`, `maps`, `staged` and the layers below them.
Start reading with `Measure` in `_measure.py`.
"""

from collections.abc import Iterable as _Iterable
from functools import cache as _cache
from importlib import import_module as _import_module
from pkgutil import iter_modules as _iter_modules
from typing import Any as _Any

from .._argument_checks import unknown_name_error as _unknown_name
from ._beta_family import BetaFamilyLoss
from ._calibration_error import (
    LARGEST_BIN_MEASURES,
    calibration_error as calibration_error,
    expected_calibration_error as expected_calibration_error,
    maximum_calibration_error as maximum_calibration_error,
)
from ._convolved import convolved_calibration_error as convolved_calibration_error
from ._cumulative import (
    CumulativeDifferences as CumulativeDifferences,
    cumulative_calibration_error as cumulative_calibration_error,
    cumulative_differences,
)
from ._interval import (
    interval_calibration_error as interval_calibration_error,
    random_interval_calibration_error as random_interval_calibration_error,
)
from ._kernel import kernel_calibration_error as kernel_calibration_error
from ._loss import LossLike, ProperLoss as ProperLoss
from ._lower_distance import (
    DistanceInterval as DistanceInterval,
    lower_distance_interval,
    lower_distance_to_calibration as lower_distance_to_calibration,
)
from ._lp_calibration import (
    LpCalibrationResult as LpCalibrationResult,
    lp_calibration_error as lp_calibration_error,
    lp_calibration_test,
)
from ._measure import (
    BinaryOptions as BinaryOptions,
    BinaryOrCanonicalOptions,
    Measure as Measure,
    MetricSpec as MetricSpec,
    SharedOptions as SharedOptions,
    binary_measure as binary_measure,
    measure as measure,
)
from ._predictions import (
    MULTICLASS_REDUCTIONS,
    BinaryProblem as BinaryProblem,
    Cells as Cells,
    Predictions as Predictions,
    PredictionsByScore,
    validate_multilabel as validate_multilabel,
    validate_predictions as validate_predictions,
)
from ._proper import (
    BrierLoss as BrierLoss,
    LogLoss as LogLoss,
    SphericalLoss as SphericalLoss,
    brier_loss as brier_loss,
    log_loss as log_loss,
    ranked_probability_score as ranked_probability_score,
    spherical_loss as spherical_loss,
)
from ._reliability import (
    CurveRows as CurveRows,
    ReliabilityCurve as ReliabilityCurve,
    ReliabilityCurves as ReliabilityCurves,
    compute_curve as compute_curve,
    reliability_curve,
    resolve_n_bins_unless_sweep,
)
from ._scorers import ProbabilityScorer as ProbabilityScorer
from ._smooth_calibration import (
    CalibrationWitness as CalibrationWitness,
    calibration_witness,
    smooth_calibration_error as smooth_calibration_error,
)
from ._two_bin import averaged_two_bin_error as averaged_two_bin_error

_MEASURE_REGISTRY: dict[str, Measure] = {}


def _complete_registry() -> dict[str, Measure]:
    """Return the registry, after importing the measures of higher sub-packages."""
    _import_measures()
    return _MEASURE_REGISTRY


@_cache
def _import_measures() -> None:
    package = _import_module(__name__.rpartition(".")[0])
    for subpackage in _iter_modules(package.__path__):
        modules = _iter_modules(
            [f"{path}/{subpackage.name}" for path in package.__path__]
        )
        # Sub-packages above this one define measures too. They register when imported,
        # which happens at the first look-up and not with `import sklearn_calib`.
        if "_measures" in {module.name for module in modules}:
            _import_module(f"{package.__name__}.{subpackage.name}")


def register_measures(things: _Iterable[object]) -> list[str]:
    """Add the measures among `things` to the registry.

    Returns their names, sorted. A sub-package calls it once with its imported names;
    its module `_measures` makes it discoverable.
    """
    measures = {}
    for thing in list(things):
        if isinstance(thing, Measure):
            measures[thing.spec.name] = thing
    _MEASURE_REGISTRY.update(measures)
    return sorted(measures)


# Every measure imported above is registered.
_PACKAGE_MEASURE_NAMES = register_measures(globals().values())


def all_metrics() -> dict[str, Measure]:
    """Return the registered measures: a dict of name to function, sorted by name.

    Examples
    --------
    >>> from sklearn_calib.metrics import all_metrics
    >>> all_metrics()["brier_loss"].spec.proper
    True
    """
    return dict(sorted(_complete_registry().items()))


def all_losses() -> dict[str, ProperLoss]:
    """Return the losses of the registered measures: a dict of name to loss, sorted by name.

    Examples
    --------
    >>> from sklearn_calib.metrics import all_losses
    >>> list(all_losses())
    ['brier', 'log', 'spherical']
    """
    losses = [measure.spec.loss for measure in _complete_registry().values()]
    by_name = {loss.name: loss for loss in losses if loss is not None}
    return dict(sorted(by_name.items()))


def get_loss(loss: LossLike, n_classes: int | None = None) -> ProperLoss:
    """Look up a loss by its name; a `ProperLoss` is returned unchanged.

    Parameters
    ----------
    loss : str or ProperLoss
        One of `all_losses`, or an instance.
    n_classes : int, default=None
        A loss that is not one of so many classes is rejected.

    Returns
    -------
    loss : ProperLoss

    Raises
    ------
    ValueError
        An unknown name, something else, or a loss of another number of classes.

    Examples
    --------
    >>> from sklearn_calib.metrics import get_loss
    >>> get_loss("log").label
    'log loss [nats]'
    """
    resolved = loss if isinstance(loss, ProperLoss) else None
    if isinstance(loss, str):
        resolved = all_losses().get(loss)
    if resolved is None:
        raise _unknown_name(
            "a loss",
            loss,
            all_losses(),
            "Check the spelling, or pass a ProperLoss",
            argument="loss",
        )
    if n_classes is not None:
        resolved.check_classes(n_classes)
    return resolved


def get_scorer(name: str, **options: _Any) -> ProbabilityScorer:
    """Look up a scorer by its name, for ``scoring=`` of scikit-learn; greater is better.

    Parameters
    ----------
    name : str
        A name of `all_metrics`, with ``neg_`` for errors and losses:
        ``spec.scorer_name`` of the measure. Of a measure of your own
        ``measure.scorer()``.
    **options
        Options of the measure, such as ``n_bins=10``.

    Returns
    -------
    scorer : ProbabilityScorer

    Raises
    ------
    ValueError
        Unknown name or option; the message names the nearest one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_calib.metrics import get_scorer
    >>> search = GridSearchCV(
    ...     LogisticRegression(max_iter=2000),
    ...     {"C": [0.1, 1.0]},
    ...     scoring=get_scorer("neg_brier_loss"),
    ... ).fit(*load_iris(return_X_y=True))
    >>> search.best_params_
    {'C': 1.0}
    """
    scorers = {
        function.spec.scorer_name: function
        for function in _complete_registry().values()
    }
    if isinstance(name, str) and name in scorers:
        return scorers[name].scorer(**options)
    hint = "For scikit-learn's own scorers call sklearn.metrics.get_scorer"
    raise _unknown_name("a scorer", name, sorted(scorers), hint, argument="name")


__all__ = [
    "BetaFamilyLoss",
    "all_metrics",
    "calibration_witness",
    "cumulative_differences",
    "get_scorer",
    "lower_distance_interval",
    "lp_calibration_test",
    "reliability_curve",
    *_PACKAGE_MEASURE_NAMES,
]


def __dir__() -> list[str]:
    return __all__
