"""Takes fitted maps out of Python: JSON, ONNX, SQL and source code.

It may import `inference`, `classifiers`, `testing` and the layers below them.
Start reading with `to_dict` in `_exported.py`.
"""

from ._code import to_code
from ._document import json_schema
from ._exported import (
    ExportedMap as ExportedMap,
    from_dict,
    from_json,
    skops_trusted,
    to_dict,
    to_json,
)
from ._onnx import to_onnx
from ._onnx_models import register_onnx_converters
from ._simplify import simplify
from ._sql import to_sql

__all__ = [
    "from_dict",
    "from_json",
    "json_schema",
    "register_onnx_converters",
    "simplify",
    "skops_trusted",
    "to_code",
    "to_dict",
    "to_json",
    "to_onnx",
    "to_sql",
]


def __dir__() -> list[str]:
    return __all__
