"""The document around a map: classes, the kind of scores, and rows that every reader checks."""

import base64
import binascii
import json
import re
import warnings
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from .._argument_checks import is_real_number, read_bool_with_none_as_false
from .._files.checksum import CHECKSUM_KEY, compute_checksum
from .._typing import AnyArray, Estimator, FloatArray
from .._validation import canonical_proba
from .._version import __version__
from ..exceptions import add_error_context, invalid_input
from ..maps import (
    MAP_KINDS,
    CalibrationMap,
    Numbers,
    get_schema_fields,
    invalid_field,
    read_map,
    short_repr,
)
from ..recalibrators import Recalibrator, all_recalibrators, get_map
from ._notes import NOTE_KEYS, parse_notes
from ._tabulate import tabulate_curves

DOCUMENT_FORMAT = "sklearn-calib-map"
SCHEMA_VERSION = 1
#: The key of the checksum of labels and nodes.
MAP_CHECKSUM_KEY = "map_sha256"
#: The largest difference that a reader may find at the check rows.
MAX_CHECK_ERROR = 1e-9
# A steep map of nearly equal scores enlarges errors up to this one.
CHECK_ROW_PREDICTION_TOLERANCE = 1e-6
N_CHECK_ROWS = 5
INPUT_KINDS = ("proba", "logits")
_REQUIRED_KEYS = (
    *(
        "format",
        "schema",
        "package",
        "classes",
        "classes_type",
        "input",
        "map",
        "check",
    ),
    *(MAP_CHECKSUM_KEY, CHECKSUM_KEY),
)
_KNOWN_KEYS = (*_REQUIRED_KEYS, "estimator", "largest_error", *NOTE_KEYS)
_CHANGED_MAP_HINT = (
    "The map was changed or cut off: export it again; one that you changed "
    "on purpose is read with edited=True"
)
_INTEGER_LABEL_LIMIT = 2**64
# The JSON type of the labels of each type; bytes are written in base64.
_JSON_TYPE_BY_LABEL_TYPE = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "bytes": str,
}
# What ends or nests comments, ends statements, or is a placeholder for some driver.
# None of it stands in JSON but inside texts.
_UNSAFE_COMMENT_PATTERN = re.compile(r"[^A-Za-z0-9 _.,+\-\[\]{}:\"\\]|:(?! )")

Kind = Literal["proba", "logits"]


@dataclass(frozen=True, eq=False)
class MapDocument:
    """A map and what a reader must know of it; the writers of all formats start from it.

    Parameters
    ----------
    root : CalibrationMap
        The map, from rows of probabilities to rows of probabilities.
    classes : ndarray of shape (n_classes,)
        Labels in the order of the columns.
    input : {"proba", "logits"}
        The scores that a program in another language is given: probabilities, or
        logits, of which it takes the softmax and, exactly, its logarithm. Both have one
        column per class.
    check : tuple of two ndarrays of shape (5, n_classes)
        Scores of that kind, and results.
    estimator : dict
        Name and parameters of the recalibrator, for the reader's information.
    package : str
        The version that wrote the document.
    largest_error : dict of str to float
        What "tabulate" and "simplify" may have changed P_1 of each table by, at most.
    notes : dict
        What the user notes about the rows: "date", "columns" and "scale".
    """

    root: CalibrationMap
    classes: AnyArray
    input: str
    check: tuple[FloatArray, FloatArray]
    estimator: dict[str, Any] = field(default_factory=dict)
    package: str = __version__
    largest_error: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as a dict of JSON types."""
        names, kind = write_classes(self.classes)
        tree = self.root.to_tree()
        entries = {
            "format": DOCUMENT_FORMAT,
            "schema": SCHEMA_VERSION,
            "package": self.package,
            "classes": names,
            "classes_type": kind,
            "estimator": self.estimator,
            "input": self.input,
            "map": tree,
            "check": [
                [p.tolist(), q.tolist()] for p, q in zip(*self.check, strict=True)
            ],
            MAP_CHECKSUM_KEY: compute_map_checksum(names, kind, tree),
        }
        entries |= self.notes
        entries |= {"largest_error": self.largest_error} if self.largest_error else {}
        return entries | {CHECKSUM_KEY: compute_checksum(entries)}

    @property
    def json_without_map(self) -> str:
        """Return the JSON without the map, on one line that is safe in comments of any language."""
        head = {name: value for name, value in self.to_dict().items() if name != "map"}
        text = json.dumps(head, ensure_ascii=True, allow_nan=False)
        return _UNSAFE_COMMENT_PATTERN.sub(
            lambda match: f"\\u{ord(match.group()):04x}", text
        )

    def check_has_no_scale(self) -> None:
        """Reject a map of numbers on another scale, for programs that take probabilities."""
        if "scale" not in self.notes:
            return
        low, high = self.notes["scale"]
        raise invalid_input(
            expected="a map of probabilities or logits",
            got=f"one fitted to numbers from {low:g} to {high:g}",
            hint="Make a column of probabilities of them and fit to that; apply follows the scale",
        )

    def rows(self, scores: FloatArray) -> FloatArray:
        """Evaluate the map at scores of the kind `input`."""
        kind: Any = self.input
        return np.asarray(self.root(canonical_proba(scores, kind=kind)))

    def add_check_rows(self) -> "MapDocument":
        """Return the document with the check rows of its map."""
        scores = make_check_scores(len(self.classes), self.input)
        return replace(self, check=(scores, self.rows(scores)))


def to_document(
    source: Any, *, input: Kind | None = None, tabulate: float | None = None
) -> MapDocument:
    """Return the document of any source; every writer calls this first.

    Parameters
    ----------
    source : fitted recalibrator, Pipeline of them, ExportedMap, dict or MapDocument
    input : {"proba", "logits"}, default=None
        As in `MapDocument`; by default that of the document, and "proba" for
        estimators.
    tabulate : float in (0, 0.1], default=None
        As in `to_dict`.
    """
    # An ExportedMap holds its document.
    document = getattr(source, "document", source)
    if isinstance(document, dict):
        document = parse_document(document)
    if not isinstance(document, MapDocument):
        return _document_fitted(source, "proba" if input is None else input, tabulate)
    if input in (None, document.input):
        return document
    return replace(document, input=input).add_check_rows()


def _document_fitted(fitted, kind, tabulate):
    """Document a fitted recalibrator, and compare the map with its own predictions."""
    if tabulate is not None and not is_real_number(tabulate):
        raise invalid_input(
            "tabulate",
            expected="tabulate as a number",
            got=repr(tabulate),
            hint="Take 1e-6, or leave it out",
        )
    if not isinstance(kind, str) or kind not in INPUT_KINDS:
        raise invalid_input(
            expected="input='proba' or 'logits'",
            got=repr(kind),
            hint="Say what the scores will be",
        )
    with add_error_context("fitted"):
        tree = get_map(fitted)
    tree, error = tabulate_curves(tree, tabulate)
    classes = np.asarray(fitted.classes_)
    write_classes(classes)
    # Reading the tree applies all checks of documents.
    root = read_map(tree.to_tree(), len(classes))
    scores = make_check_scores(len(classes), kind)
    rows = canonical_proba(scores, kind=kind)
    results = np.asarray(root(rows))
    with warnings.catch_warnings():
        # The check rows have no feature names, unlike the table of the fit.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        predicted = np.asarray(fitted.predict_proba(rows))
    worst = float(np.abs(results - predicted).max())
    # Sums over classes may enlarge the errors of tables.
    if worst > CHECK_ROW_PREDICTION_TOLERANCE + 100 * error:
        raise invalid_input(
            expected=f"nodes that give what {type(fitted).__name__}.predict_proba gives",
            got=f"a difference of {worst:.2g}",
            hint=(
                "Its _make_map() and its _predict_proba() differ. A map of log-odds "
                "beyond 80 is written for logits, input='logits': a probability has no "
                "such numbers"
            ),
            error=RuntimeError,
        )
    errors = {"tabulate": error} if error else {}
    return MapDocument(
        root,
        classes,
        kind,
        (scores, results),
        estimator=_write_estimator(fitted),
        largest_error=errors,
    )


def compute_map_checksum(classes: list[Any], kind: str, tree: dict[str, Any]) -> str:
    """Return the SHA-256 of what determines predictions: labels and nodes, nothing else."""
    return compute_checksum({"classes": classes, "classes_type": kind, "map": tree})


def make_check_scores(k: int, kind: str) -> FloatArray:
    """Return five rows that distinguish columns: even, rising, steep, nearly certain, certain."""
    weights = np.arange(1.0, k + 1)
    rising = weights / weights.sum()
    steep = (weights**3)[::-1] / (weights**3).sum()
    near = np.full(k, 1e-6 / k)
    near[0] += 1 - near.sum()
    if kind == "logits":
        certain = -2.5 * np.arange(k)
        return np.vstack(
            [np.zeros(k), *(np.log(p) for p in (rising, steep, near)), certain]
        )
    return np.vstack([np.full(k, 1 / k), rising, steep, near, np.eye(k)[-1]])


# -- reading ----------------------------------------------------------------------------------


def parse_document(document: Any, *, edited: bool = False) -> MapDocument:
    """Read and check the document in a dict; see `from_dict`."""
    parsed = _parse_document_parts(document)
    if read_bool_with_none_as_false(edited, "edited"):
        _check_class_order(document, parsed.root.to_tree())
        return replace(
            parsed, estimator=parsed.estimator | {"edited": True}
        ).add_check_rows()
    _verify_check_rows(parsed)
    if (computed := compute_checksum(document)) != document[CHECKSUM_KEY]:
        stated = short_repr(document[CHECKSUM_KEY])
        raise invalid_field(
            CHECKSUM_KEY,
            expected=f"the checksum of the document, '{computed[:12]}...'",
            got=stated,
            hint=_CHANGED_MAP_HINT,
        )
    computed = compute_map_checksum(
        document["classes"], document["classes_type"], document["map"]
    )
    if computed != document[MAP_CHECKSUM_KEY]:
        stated = short_repr(document[MAP_CHECKSUM_KEY])
        raise invalid_field(
            MAP_CHECKSUM_KEY,
            expected=f"the checksum of the map, '{computed[:12]}...'",
            got=stated,
            hint=_CHANGED_MAP_HINT,
        )
    return parsed


def _check_class_order(document, tree):
    """Reject labels that changed places while the map, whose columns are theirs, did not."""
    names = document["classes"]
    kind = document["classes_type"]
    stated = document[MAP_CHECKSUM_KEY]
    for other in (sorted(names), names[::-1]):
        if other != names and compute_map_checksum(other, kind, tree) == stated:
            raise invalid_field(
                "classes",
                expected=f"the order of the map's columns, {short_repr(other)}",
                got=short_repr(names),
                hint=(
                    "The columns do not move with the names: write them back as they were"
                ),
            )


def _parse_document_parts(document):
    """Read the parts of a document, and check each."""
    if not isinstance(document, dict):
        raise invalid_field(
            "the document",
            expected="a dict",
            got=type(document).__name__,
            hint="Pass what to_dict returned",
        )
    # The schema comes first, because documents of other schemas have other entries.
    _check_format_and_schema(document)
    _check_keys_present(document, _REQUIRED_KEYS)
    for name in document:
        if name not in _KNOWN_KEYS:
            raise invalid_field(
                str(name)[:40],
                expected=f"one of the entries {', '.join(_KNOWN_KEYS)}",
                got=short_repr(name),
            )
    kind = document["input"]
    if not isinstance(kind, str) or kind not in INPUT_KINDS:
        raise invalid_field(
            "input", expected="'proba' or 'logits'", got=short_repr(kind)
        )
    expected_types = {"package": str, "estimator": dict, "largest_error": dict}
    for name, expected in expected_types.items():
        value = document.get(name, expected())
        if not isinstance(value, expected):
            raise invalid_field(
                name, expected=f"a {expected.__name__}", got=type(value).__name__
            )
    # The map and the check rows are checked against the number of classes.
    classes = parse_classes(document["classes"], document["classes_type"])
    root = read_map(document["map"], len(classes))
    check = _read_check_rows(document["check"], len(classes))
    return MapDocument(
        root,
        classes,
        kind,
        check,
        estimator=document.get("estimator", {}),
        package=document["package"],
        largest_error=document.get("largest_error", {}),
        notes=parse_notes(document),
    )


def _check_keys_present(document, names):
    for name in names:
        if name not in document:
            raise invalid_field(name, expected="a value", got="nothing")


def _check_format_and_schema(document):
    """Raise an error if this version does not read the schema of a document."""
    _check_keys_present(document, ("format", "schema"))
    if document["format"] != DOCUMENT_FORMAT:
        raise invalid_field(
            "format",
            expected=repr(DOCUMENT_FORMAT),
            got=short_repr(document["format"]),
            hint="Pass what to_dict returned",
        )
    schema = document["schema"]
    if isinstance(schema, bool) or schema != SCHEMA_VERSION:
        raise invalid_field(
            "schema",
            expected=f"{SCHEMA_VERSION}, which this version reads",
            got=short_repr(schema),
            hint="Read it with the version of sklearn-calib that wrote it, or export the map again",
        )


def _read_check_rows(check, k):
    """Return scores and results of the check rows, each of shape (n, k)."""
    if not isinstance(check, list) or len(check) != N_CHECK_ROWS:
        got = (
            f"{len(check)} of them" if isinstance(check, list) else type(check).__name__
        )
        raise invalid_field(
            "check", expected=f"a list of {N_CHECK_ROWS} pairs of rows", got=got
        )
    for i, pair in enumerate(check):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise invalid_field(
                f"check[{i}]", expected="a row and its result", got=short_repr(pair)
            )
    row = Numbers(length=k)
    scores = []
    results = []
    for i, (scores_of_row, result) in enumerate(check):
        scores.append(row.read(scores_of_row, f"check[{i}][0]"))
        results.append(row.read(result, f"check[{i}][1]"))
    return np.vstack(scores), np.vstack(results)


def _verify_check_rows(document):
    """Raise an error if the map does not reproduce the results of the check rows."""
    scores, expected = document.check
    try:
        results = document.rows(scores)
    except ValueError as error:
        raise invalid_field(
            "check", expected="rows of scores", got=str(error)
        ) from error
    # Negated, so that NaN counts as a difference.
    far = ~(np.abs(results - expected) <= MAX_CHECK_ERROR)
    if far.any():
        row, column = np.argwhere(far)[0]
        raise invalid_field(
            f"check[{row}]",
            expected=f"the result that the document states, {expected[row, column]:.12g}",
            got=f"{results[row, column]:.12g} in column {column}",
            hint=_CHANGED_MAP_HINT,
        )


# -- labels and parameters --------------------------------------------------------------------


def write_classes(classes: AnyArray) -> tuple[list[Any], str]:
    """Return labels as JSON values, and the name of their type."""
    # An object array may still hold numpy's own numbers after `tolist`.
    values = np.asarray(classes).tolist()
    values = [
        value.item() if isinstance(value, np.generic) else value for value in values
    ]
    kind = type(values[0]).__name__
    # Exact types are compared, because True is also an int.
    if all(type(value) is _JSON_TYPE_BY_LABEL_TYPE.get(kind) for value in values):
        return values, kind
    if all(isinstance(value, bytes) for value in values):
        return [base64.b64encode(value).decode() for value in values], "bytes"
    raise invalid_input(
        expected="labels that are all text, integers, floats, booleans or bytes",
        got=", ".join(sorted({type(value).__name__ for value in values})),
        hint="Fit with such labels, for instance the text of each",
        error=TypeError,
    )


def parse_classes(names: Any, kind: Any) -> AnyArray:
    """Read the labels that `write_classes` wrote."""
    if not isinstance(kind, str) or kind not in _JSON_TYPE_BY_LABEL_TYPE:
        raise invalid_field(
            "classes_type",
            expected=f"one of {', '.join(_JSON_TYPE_BY_LABEL_TYPE)}",
            got=short_repr(kind),
        )
    if not isinstance(names, list) or len(names) < 2:
        raise invalid_field(
            "classes", expected="a list of at least two labels", got=short_repr(names)
        )
    for i, name in enumerate(names):
        kind_of_name = type(name)
        if kind_of_name is not _JSON_TYPE_BY_LABEL_TYPE[kind]:
            raise invalid_field(
                f"classes[{i}]",
                expected=f"a label of type {kind}",
                got=short_repr(name),
            )
        if kind == "int" and not -(2**63) <= name < _INTEGER_LABEL_LIMIT:
            raise invalid_field(
                f"classes[{i}]",
                expected="an integer of 64 bits",
                got="one that needs more",
            )
        if kind == "float" and not np.isfinite(name):
            raise invalid_field(
                f"classes[{i}]", expected="a finite number", got=f"{name}"
            )
    if len(set(names)) < len(names):
        raise invalid_field("classes", expected="different labels", got="repeated ones")
    if kind == "bytes":
        try:
            names = [base64.b64decode(name, validate=True) for name in names]
        except (binascii.Error, ValueError):
            raise invalid_field(
                "classes", expected="bytes in base64", got="something else"
            ) from None
    # Numpy would convert such numbers to floats if one of them is negative.
    if kind == "int" and max(names) >= 2**63:
        return np.asarray(names, dtype=np.uint64 if min(names) >= 0 else object)
    return np.asarray(names)


def _write_estimator(fitted: Estimator) -> dict[str, Any]:
    """Name and parameters, as far as JSON has types for them."""
    names = {cls: name for name, cls in all_recalibrators().items()}
    if isinstance(fitted, Recalibrator):
        params = {
            param: _to_json_value(value)
            for param, value in fitted.get_params(deep=False).items()
        }
        return {
            "name": names.get(type(fitted), type(fitted).__name__),
            "params": params,
        }
    steps = [pipeline_step for _, pipeline_step in getattr(fitted, "steps", [])]
    return {"name": "pipeline", "steps": [_to_json_value(step) for step in steps]}


def _to_json_value(value):
    """Return a parameter as JSON; objects that JSON does not have become texts."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.number):
        return float(value) if np.isfinite(value) else repr(float(value))
    if isinstance(value, list | tuple):
        return [_to_json_value(entry) for entry in value]
    if isinstance(value, Recalibrator):
        return _write_estimator(value)
    return repr(value)[:200]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the output of `to_json`.

    A copy lies in the package as ``sklearn_calib/export/schema-1.json``, for programs
    in other languages. The schema defines each field. Rules between fields,
    such as one value per knot, are checked by the readers only.

    Returns
    -------
    schema : dict

    Examples
    --------
    >>> from sklearn_calib.export import json_schema
    >>> schema = json_schema()
    >>> schema["properties"]["schema"]
    {'const': 1}
    >>> schema["$defs"]["steps"]["required"]
    ['node', 'input', 'edges', 'values']
    """
    file = files(__package__).joinpath(f"schema-{SCHEMA_VERSION}.json")
    definitions = {
        name: _make_node_json_schema(name, cls)
        for name, cls in sorted(MAP_KINDS.items())
    }
    choice = {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in definitions]}
    around_nodes = json.loads(file.read_text(encoding="utf-8"))
    return around_nodes | {"$defs": {"node": choice} | definitions}


def _make_node_json_schema(name, cls):
    """Return the JSON schema of a kind of node."""
    fields = get_schema_fields(cls)
    described = {field: kind.describe_field() for field, (kind, _) in fields.items()}
    return {
        "type": "object",
        "description": " ".join((cls.__doc__ or "").split()),
        "properties": {"node": {"const": name}} | described,
        "required": [
            "node",
            *(field for field, (_, needed) in fields.items() if needed),
        ],
        "additionalProperties": False,
    }
