"""The types that skops must be told to trust."""

import sys

from .. import meta
from ..recalibrators import all_recalibrators
from ._exported import ExportedMap


def _types_beside(cls):
    """Names of the types that the file of a class defines."""
    module = cls.__module__
    return [
        f"{module}.{value.__qualname__}"
        for value in vars(sys.modules[module]).values()
        if isinstance(value, type) and value.__module__ == module
    ]


_MODELS = [value for name in meta.__all__ if isinstance(value := getattr(meta, name), type)]
_OWN = (*all_recalibrators().values(), ExportedMap, *_MODELS, meta.CalibratedPair)

#: For ``skops.io.load(file, trusted=skops_trusted)``: recalibrators and whole models, and what they
#: are made of. Classifiers inside that are not scikit-learn's have types of their own.
skops_trusted: list[str] = sorted({name for cls in _OWN for name in _types_beside(cls)})
