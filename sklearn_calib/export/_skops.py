"""The types that skops must be told to trust."""

import sys

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


#: For ``skops.io.load(file, trusted=skops_trusted)``: recalibrators and what they are made of.
skops_trusted: list[str] = sorted(
    {name for cls in (*all_recalibrators().values(), ExportedMap) for name in _types_beside(cls)}
)
