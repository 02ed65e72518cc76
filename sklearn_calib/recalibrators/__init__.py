"""Estimators that turn scores into calibrated probabilities, one file per method.

It may import `_files`, `datasets`, `maps`, `staged` and the layers below them.
Start reading with `Recalibrator` in `_base.py`.
"""

from typing import Any as _Any

from .._typing import RecalibratorLike as _RecalibratorLike
from ..exceptions import invalid_input as _invalid_input
from ._adaptive import AdaptiveCalibration as AdaptiveCalibration
from ._angular import AngularCalibration as AngularCalibration
from ._any_recalibrator import (
    fit_clone,
    fit_recalibrator,
    fit_validated,
    make_method_name_hint,
    predict_proba_aligned,
    resolve_recalibrator,
    select_and_request_fit_arguments,
)
from ._auto import StackedCalibration as StackedCalibration
from ._base import (
    Capabilities as Capabilities,
    Recalibrator as Recalibrator,
    validate_params,
)
from ._bbq import BBQ as BBQ
from ._beta import BetaCalibration as BetaCalibration
from ._booster import BoosterOptionsMixin
from ._by_group import BaseGroupRecalibrator
from ._cross_fitting import (
    check_cv_pairs,
    check_folds_fit_largest_class,
    cross_fitted_proba,
    make_folds,
    recalibrate_in_sample_or_by_cv,
)
from ._default import DefaultCalibration as DefaultCalibration
from ._dirichlet import DirichletCalibration as DirichletCalibration
from ._enir import ENIR as ENIR
from ._ensemble_temperature import (
    EnsembleTemperatureScaling as EnsembleTemperatureScaling,
)
from ._fitted_maps import get_map
from ._group_columns import encode_groups, is_missing_value, read_group_columns
from ._group_recalibration import GroupRecalibration
from ._harm_checks import (
    group_near_duplicates_and_warn,
    warn_if_harmful,
    warn_if_harmful_for_labels,
    warn_leaky_folds,
    warn_repeated_rows_in_counts,
)
from ._histogram_binning import HistogramBinning as HistogramBinning
from ._identity import Identity as Identity
from ._isotonic import IsotonicCalibration as IsotonicCalibration
from ._matrix import MatrixScaling as MatrixScaling
from ._multicalibrated_scores import (
    MAX_GROUP_COLUMNS,
    SCORE_FEATURE_NAME,
    MulticalibratedScores,
)
from ._multiclass_binning import (
    CellGroup as CellGroup,
    MulticlassBinning as MulticlassBinning,
)
from ._multilabel import MultilabelCalibration, fit_validated_labels
from ._near_isotonic import NearIsotonicCalibration as NearIsotonicCalibration
from ._one_vs_rest import OneVsRest as OneVsRest
from ._online import OnlineCalibration as OnlineCalibration
from ._ordinal import OrdinalCalibration as OrdinalCalibration
from ._platt import PlattScaling as PlattScaling
from ._prior_shift import PriorShift as PriorShift
from ._quadratic import QuadraticScaling as QuadraticScaling
from ._restricted_polynomial import (
    RestrictedPolynomialRegression as RestrictedPolynomialRegression,
)
from ._smooth_isotonic import SmoothIsotonicCalibration as SmoothIsotonicCalibration
from ._spline import SplineCalibration as SplineCalibration
from ._stacking import compute_fit_and_held_out_weights
from ._structured_matrix import StructuredMatrixScaling as StructuredMatrixScaling
from ._structured_vector import StructuredVectorScaling as StructuredVectorScaling
from ._temperature import TemperatureScaling as TemperatureScaling
from ._threshold import Threshold as Threshold, make_thresholds_section
from ._top_label import TopLabel as TopLabel
from ._trend_filtering import TrendFiltering as TrendFiltering
from ._trend_filtering_ensemble import TrendFilteringEnsemble as TrendFilteringEnsemble
from ._vector import VectorScaling as VectorScaling
from ._venn_abers import VennAbers as VennAbers


def _is_recalibrator_class(value: object) -> bool:
    """Return whether a value is a recalibrator class other than the base class."""
    return isinstance(value, type) and Recalibrator in value.__mro__[1:]


# Every recalibrator imported above is registered. Its name is that of its file.
_RECALIBRATOR_REGISTRY = {
    value.__module__.rpartition("._")[2]: value
    for value in list(globals().values())
    if _is_recalibrator_class(value)
}


def all_recalibrators() -> dict[str, type[Recalibrator]]:
    """Return the registered methods: a dict of name to class, sorted by name.

    The names are those that `get_recalibrator` and every `recalibrator=` parameter
    accept.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import all_recalibrators
    >>> all_recalibrators()["temperature"].__name__
    'TemperatureScaling'
    """
    return dict(sorted(_RECALIBRATOR_REGISTRY.items()))


def get_recalibrator(name: _RecalibratorLike, **options: _Any) -> Recalibrator:
    """Make a new recalibrator from its name.

    Parameters
    ----------
    name : str or recalibrator
        One of `all_recalibrators`; an instance is cloned.
    **options
        Arguments of its constructor; by default its defaults.

    Raises
    ------
    ValueError
        The name is not registered. The message names the nearest one, or what another
        package's name, such as scikit-learn's "sigmoid", is called here.
    TypeError
        The method has no such option.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import get_recalibrator
    >>> get_recalibrator("beta")
    BetaCalibration()
    >>> get_recalibrator("histogram_binning", n_bins=7)
    HistogramBinning(n_bins=7)
    """
    if not isinstance(name, str):
        return resolve_recalibrator(name).set_params(**options)
    if name not in _RECALIBRATOR_REGISTRY:
        raise _invalid_input(
            "name",
            expected=f"one of {', '.join(all_recalibrators())}",
            got=repr(name),
            hint=make_method_name_hint(name, all_recalibrators())
            or "Check the spelling, or pass an instance",
        )
    defaults = _RECALIBRATOR_REGISTRY[name]().get_params(deep=False)
    for option in options:
        if option not in defaults:
            raise _invalid_input(
                expected=f"options among {', '.join(defaults)}"
                if defaults
                else "no options",
                got=f"{option!r}",
                hint=make_method_name_hint(option, defaults) or "Check the spelling",
                error=TypeError,
            )
    return _RECALIBRATOR_REGISTRY[name](**options)


__all__ = [
    "MultilabelCalibration",
    "all_recalibrators",
    "cross_fitted_proba",
    "get_recalibrator",
    *sorted(cls.__name__ for cls in _RECALIBRATOR_REGISTRY.values()),
]


def __dir__() -> list[str]:
    return __all__
