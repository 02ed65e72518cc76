"""Probability calibration for scikit-learn.

Scores are validated once (`canonical_proba`), become rows on the simplex, and meet
estimators that change them (`sklearn_calib.recalibrators`) and functions that measure
them (`sklearn_calib.metrics`). `CalibratedModel` wraps the classifier you already have,
`RefineThenCalibrateCV` tunes it and chooses when to stop its training.
"""

from importlib import import_module as _import_module
from pkgutil import iter_modules as _iter_modules
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._version import __version__

if _TYPE_CHECKING:  # at run time they are imported at first use
    from . import (
        classifiers as classifiers,
        datasets as datasets,
        decisions as decisions,
        decomposition as decomposition,
        displays as displays,
        exceptions as exceptions,
        export as export,
        extending as extending,
        groups as groups,
        inference as inference,
        linear as linear,
        maps as maps,
        metrics as metrics,
        monitoring as monitoring,
        recalibrators as recalibrators,
        report as report,
        staged as staged,
        summary as summary,
        testing as testing,
        theory as theory,
    )
    from ._compile_kernels import compile_kernels
    from ._validation import canonical_labels, canonical_proba, log_proba
    from .classifiers import CalibratedModel, RefineThenCalibrateCV

# Modules that define the names of `__all__` which are imported on demand.
_LAZY_EXPORT_MODULES = ("_validation", "classifiers", "_compile_kernels")

__all__ = [
    "CalibratedModel",
    "RefineThenCalibrateCV",
    "__version__",
    "canonical_labels",
    "canonical_proba",
    "compile_kernels",
    "log_proba",
]


def __dir__() -> list[str]:
    subpackages = (
        module.name for module in _iter_modules(__path__) if module.name[0] != "_"
    )
    return sorted([*__all__, *subpackages])


if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import sub-packages and their public names when they are first used."""
        if name in __all__:
            homes = (
                vars(_import_module(f"{__name__}.{home}"))
                for home in _LAZY_EXPORT_MODULES
            )
            globals()[name] = next(home[name] for home in homes if name in home)
        elif name[0] != "_" and name in __dir__():
            _import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[name]
