"""Recalibrators: estimators that turn scores into calibrated probabilities.

One file per method and one import line here. The registry below is read off these lines: the string
name of a method is its file's name.
"""

from sklearn.base import clone as _clone

from ..exceptions import expectation as _expectation
from ._adaptive import AdaptiveCalibration as AdaptiveCalibration
from ._angular import AngularCalibration as AngularCalibration
from ._anybody import aligned_proba as aligned_proba
from ._anybody import fit_recalibrator as fit_recalibrator
from ._anybody import resolve_recalibrator as resolve_recalibrator
from ._base import Capabilities as Capabilities
from ._base import Recalibrator as Recalibrator
from ._bbq import BBQ as BBQ
from ._beta import BetaCalibration as BetaCalibration
from ._default import DefaultCalibration as DefaultCalibration
from ._dirichlet import DirichletCalibration as DirichletCalibration
from ._elite import ELiTE as ELiTE
from ._enir import ENIR as ENIR
from ._ensemble_temperature import EnsembleTemperatureScaling as EnsembleTemperatureScaling
from ._histogram_binning import HistogramBinning as HistogramBinning
from ._identity import Identity as Identity
from ._isotonic import IsotonicCalibration as IsotonicCalibration
from ._matrix import MatrixScaling as MatrixScaling
from ._multiclass_binning import CellGroup as CellGroup
from ._multiclass_binning import MulticlassBinning as MulticlassBinning
from ._near_isotonic import NearIsotonic as NearIsotonic
from ._one_vs_one import OneVsOne as OneVsOne
from ._one_vs_rest import OneVsRest as OneVsRest
from ._platt import PlattScaling as PlattScaling
from ._quadratic import QuadraticScaling as QuadraticScaling
from ._restricted_polynomial import (
    RestrictedPolynomialRegression as RestrictedPolynomialRegression,
)
from ._smooth_isotonic import SmoothIsotonic as SmoothIsotonic
from ._structured_matrix import StructuredMatrixScaling as StructuredMatrixScaling
from ._structured_vector import StructuredVectorScaling as StructuredVectorScaling
from ._temperature import TemperatureScaling as TemperatureScaling
from ._top_label import TopLabel as TopLabel
from ._trend_filtering import TrendFilteringCalibration as TrendFilteringCalibration
from ._vector import VectorScaling as VectorScaling
from ._venn_abers import VennAbers as VennAbers

RPR = RestrictedPolynomialRegression

_REGISTRY = {
    value.__module__.rpartition("._")[2]: value
    for value in list(globals().values())
    if isinstance(value, type) and issubclass(value, Recalibrator) and value is not Recalibrator
}


def all_recalibrators():
    """The registered methods: a dict of name to class, sorted by name.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import all_recalibrators
    >>> all_recalibrators()["temperature"].__name__
    'TemperatureScaling'
    """
    return dict(sorted(_REGISTRY.items()))


def recalibrator_names():
    """Names that `get_recalibrator` and every `recalibrator=` parameter take.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import recalibrator_names
    >>> "isotonic" in recalibrator_names()
    True
    """
    return sorted(_REGISTRY)


def get_recalibrator(name):
    """A new recalibrator with default parameters.

    Parameters
    ----------
    name : str or recalibrator
        One of `recalibrator_names`; an instance is cloned.

    Raises
    ------
    ValueError
        The name is not registered.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import get_recalibrator
    >>> get_recalibrator("beta")
    BetaCalibration()
    """
    if not isinstance(name, str):
        return _clone(name)
    if name not in _REGISTRY:
        raise ValueError(
            _expectation(
                "get_recalibrator",
                f"one of {', '.join(recalibrator_names())}",
                repr(name),
                "Check the spelling, or pass an instance",
            )
        )
    return _REGISTRY[name]()


__all__ = [
    "Capabilities",
    "CellGroup",
    "Recalibrator",
    "all_recalibrators",
    "get_recalibrator",
    "recalibrator_names",
    *sorted(cls.__name__ for cls in _REGISTRY.values()),
]
