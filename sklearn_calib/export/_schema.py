"""The JSON Schema of the documents, read off the nodes."""

from typing import Any

from .._files.checksum import ENTRY
from ._document import FORMAT, KINDS, N_CHECKS, SCHEMA
from ._fields import kinds_of
from ._nodes import NODES
from ._record import ENTRY as RECORD
from ._record import record_schema


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what `to_json` writes.

    A copy lies in the package as ``sklearn_calib/export/schema-3.json``, for programs in other
    languages. Documents of earlier versions have their own schema: ``schema-2.json`` if they have
    no record, ``schema-1.json`` if they have no checksum either. The schema says what each field
    holds. Rules between fields, such as one value per knot, are checked by the readers only.

    Returns
    -------
    schema : dict

    Examples
    --------
    >>> from sklearn_calib.export import json_schema
    >>> schema = json_schema()
    >>> schema["properties"]["schema"]
    {'const': 3}
    >>> schema["$defs"]["steps"]["required"]
    ['node', 'input', 'edges', 'values']
    """
    row = {"type": "array", "items": {"type": "number"}, "minItems": 2}
    pair = {"type": "array", "prefixItems": [row, row], "items": False, "minItems": 2}
    label = {"type": ["string", "number", "boolean"]}
    properties = {
        "format": {"const": FORMAT},
        "schema": {"const": SCHEMA},
        "package": {"type": "string"},
        "classes": {"type": "array", "items": label, "minItems": 2, "uniqueItems": True},
        "classes_type": {"enum": ["bool", "int", "float", "str", "bytes"]},
        "estimator": {"type": "object"},
        "input": {"enum": [*KINDS]},
        "map": {"$ref": "#/$defs/node"},
        "check": {"type": "array", "items": pair, "minItems": N_CHECKS, "maxItems": N_CHECKS},
        "largest_error": {"type": "object", "additionalProperties": {"type": "number"}},
        RECORD: record_schema(),
        ENTRY: {
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "SHA-256 of the document without this entry, in the form of RFC 8785; "
            "integers above 2^53 in full.",
        },
    }
    optional = ("estimator", "largest_error")
    definitions = {name: _node_schema(name, cls) for name, cls in sorted(NODES.items())}
    choice = {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in definitions]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A calibration map of sklearn-calib",
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        "$defs": {"node": choice} | definitions,
    }


def _node_schema(name, cls):
    fields = kinds_of(cls)
    described = {
        field: kind.schema() | {"description": kind.text} for field, (kind, _) in fields.items()
    }
    return {
        "type": "object",
        "description": " ".join((cls.__doc__ or "").split()),
        "properties": {"node": {"const": name}} | described,
        "required": ["node", *(field for field, (_, needed) in fields.items() if needed)],
        "additionalProperties": False,
    }
