"""Fitted maps outside Python: as nodes, as JSON, and read back with numpy alone."""

from ._exported import ExportedMap as ExportedMap
from ._json import from_dict as from_dict
from ._json import from_json as from_json
from ._json import to_dict as to_dict
from ._json import to_json as to_json
from ._onnx import to_onnx as to_onnx
from ._onnx_models import register_onnx_converters as register_onnx_converters
from ._schema import json_schema as json_schema
from ._simplify import simplify as simplify
from ._skops import skops_trusted as skops_trusted

__all__ = [
    "ExportedMap",
    "from_dict",
    "from_json",
    "json_schema",
    "register_onnx_converters",
    "simplify",
    "skops_trusted",
    "to_dict",
    "to_json",
    "to_onnx",
]
