"""Maps as documents: dicts, JSON and its files, and the map that is read from them."""

import itertools
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from .. import classifiers
from .._files.atomic import write_atomically
from .._files.input_files import get_path_text
from .._show import make_printable, quote_text
from .._typing import ArrayLike, Self
from .._validation import (
    check_and_get_common_index,
    check_same_length,
    read_labels,
    validate_soft_labels,
)
from ..exceptions import InvalidInputError, invalid_input
from ..maps import MAX_MAP_DEPTH, CalibrationMap, invalid_field, short_repr
from ..recalibrators import Capabilities, Recalibrator, all_recalibrators
from ._document import Kind, parse_document, to_document
from ._notes import Columns, Date, write_notes


class ExportedMap(Recalibrator):
    """A map read from a document: it predicts with numpy alone, without the estimator.

    It needs no fit and stands wherever a fitted recalibrator does: in a pipeline, a
    `CalibratedModel`, a display, a measure's ``recalibrator=``. ``fit`` checks that
    rows and labels are those of the map and changes nothing.

    Parameters
    ----------
    document : dict
        What `to_dict` returned. `from_dict` checks it and gives an instance.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the document.
    n_features_in_ : int
        The number of classes.

    Raises
    ------
    ValueError
        At the first use, a document that is damaged, see `from_dict`.

    Notes
    -----
    Probabilities and `canonical_proba` of logits are both taken, for every "input" of
    the document, which defines the scores of a program in another language. While
    scikit-learn dispatches to the array API, tensors are mapped on their device if all
    nodes are arithmetic (see the tag ``array_api_support`` of the result of
    `from_dict`: temperature, vector, matrix, the logistic family, offsets). Otherwise
    they are copied to the host, and the result is an array of numpy.

    Examples
    --------
    >>> from sklearn_calib.export import ExportedMap, to_dict
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> y = ["no", "no", "yes", "yes"]
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], y, classes=["no", "yes"])
    >>> exported = ExportedMap(to_dict(fitted))
    >>> bool((exported.predict_proba([0.3]) == fitted.predict_proba([0.3])).all())
    True
    >>> exported.predict([0.2, 0.95]).tolist()
    ['no', 'yes']
    """

    capabilities = Capabilities(multiclass="native", cost="O(n), nothing is learned")
    _parameter_constraints: ClassVar = {"document": [dict]}

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        entries = self.document if isinstance(self.document, dict) else {}
        estimator_entry = entries.get("estimator", {})
        name = repr(estimator_entry.get("name", "unknown"))
        name += ", edited" * ("edited" in estimator_entry)
        return f"<ExportedMap of {name}, {len(entries.get('classes', []))} classes>"

    def _parse_and_store_map(self, parsed=None) -> Self:
        """Keep the nodes, which are otherwise read at each use.

        `parsed` is the document if it has been read already.
        """
        parsed = parsed or parse_document(self.document)
        self.classes_ = parsed.classes
        self.n_features_in_ = len(parsed.classes)
        self._root = parsed.root
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the document alone, which is read and checked when it is loaded."""
        # A pickle of the document is checked again when it is loaded, and does not
        # depend on the classes of nodes.
        follows = ("classes_", "n_features_in_", "_root")
        return {
            name: value
            for name, value in super().__getstate__().items()
            if name not in follows
        }

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = "_root" in vars(self) and self._can_map_tensors()
        return tags

    def __getattr__(self, name: str) -> Any:
        # After unpickling or cloning the nodes are made at first use.
        if name in ("classes_", "n_features_in_", "_root") and "document" in vars(self):
            self._parse_and_store_map()
            return vars(self)[name]
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
    ) -> Self:
        """Check that rows and labels are those of the map; nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities.
        y : array-like of shape (n_samples,)
            Labels, all of them classes of the map.
        sample_weight : array-like of shape (n_samples,), default=None
            Not used.
        classes : array-like of shape (n_classes,), default=None
            If given, they must be those of the map, in the same order.
        soft_labels : bool, default=False
            Whether `y` holds shares of these classes, as `Recalibrator.fit` takes them.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            Columns or labels that the map does not know, and a damaged document.
        """
        self._parse_and_store_map()
        if classes is not None:
            names, _ = read_labels(classes, classes=classes, input_name="classes")
            if names.tolist() != self.classes_.tolist():
                raise invalid_input(
                    expected=f"the classes of the map, {self.classes_.tolist()}",
                    got=f"{names.tolist()}",
                    hint="Pass labels and columns in the order of classes_",
                )
        check_and_get_common_index(X, y, sample_weight)
        proba = self._align_proba_columns(X)
        if soft_labels:
            validate_soft_labels(
                y,  # type: ignore[arg-type]
                sample_weight,
                self.classes_,
                n_rows=len(proba),
                input_name="y",
            )
            return self
        _, codes = read_labels(y, classes=self.classes_, input_name="y")  # type: ignore[arg-type]
        check_same_length(codes, proba)
        return self

    def _get_feature_names_in(self) -> list[str] | None:
        """Return the names of the scores that the map was fitted to, from the document."""
        return self.document.get("columns", {}).get("scores")

    def _can_map_tensors(self):
        return self._root.supports_tensors()

    def _fit(self, proba, codes, weight):
        # The class has a `fit` of its own.
        raise NotImplementedError

    def _check_absent_classes_allowed(self, proba):
        if not self._root.keeps_absent():
            super()._check_absent_classes_allowed(proba)

    @property
    def map_(self) -> CalibrationMap:
        return self._root

    def _make_map(self) -> CalibrationMap:
        return self._root

    def _get_default_score_kind(self) -> Any:
        return self.document["input"]


def _list_type_names_in_class_module(cls):
    """Return the names of the types that the file of a class defines."""
    module = cls.__module__
    return [
        f"{module}.{value.__qualname__}"
        for value in vars(sys.modules[module]).values()
        if isinstance(value, type) and value.__module__ == module
    ]


_EXPORTABLE_MODELS = [
    value
    for name in classifiers.__all__
    if isinstance(value := getattr(classifiers, name), type)
]
_EXPORTABLE_CLASSES = (
    *all_recalibrators().values(),
    ExportedMap,
    *_EXPORTABLE_MODELS,
    classifiers.CalibratedPair,
)

#: For ``skops.io.load(file, trusted=skops_trusted)``: recalibrators and whole models,
#: and what they are made of. Classifiers inside that are not scikit-learn's have types
#: of their own.
skops_trusted: list[str] = sorted(
    set().union(*map(_list_type_names_in_class_module, _EXPORTABLE_CLASSES))
)


#: Longer texts are rejected unread; a table of a million scores has about 60 million.
MAX_JSON_BYTES = 1_000_000_000
# A node inside another is a dict in a list; around them are the document and lists of
# numbers.
_MAX_JSON_DEPTH = 2 * MAX_MAP_DEPTH + 10
# A bracket, or a text with the brackets in it. A text without an end extends to the end
# of the file.
_BRACKET_PATTERN = re.compile(rb'[\[\]{}]|"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_DEPTH_STEP_BY_BRACKET = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def to_dict(
    fitted: Any,
    *,
    input: Kind | None = None,
    tabulate: float | None = None,
    date: Date | None = None,
    columns: Columns | None = None,
    scale: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Write a fitted map as a dict of plain JSON types, which other languages can read.

    Parameters
    ----------
    fitted : fitted recalibrator, Pipeline of recalibrators, ExportedMap or dict
        Parts of combinators must be recalibrators of this package too.
    input : {"proba", "logits"}, default=None
        What a program in another language will be given: probabilities, or logits, of
        which it takes the softmax; one column per class. The map is the same for both;
        from logits it has exact logarithms. By default "proba", and for a map that was
        read its own kind.
    tabulate : float in [1e-9, 0.1], default=None
        `AdaptiveCalibration` and `AngularCalibration` have no finite form: they become
        tables, right to this difference in the probability of the second class.
    date : date or str, default=None
        Of the rows, of the fit or of an approval, or any other date to record: a date,
        or its text as "2026-11-23". No clock is read, so that the same fit gives the
        same document.
    columns : list of str or dict, default=None
        The columns that the map was fitted to: names of scores, or roles with a name or
        several, for instance ``{"label": "default", "scores": ["pd"]}``. By default the
        names that the fit saw. The map takes tables with these names of scores in any
        order.
    scale : tuple of two floats, default=None
        The ends of the scale on which these columns hold the scores, if they are not
        probabilities: ``(0, 100)`` for percentages. The map itself takes probabilities.
        The command ``apply`` follows the scale; `to_sql`, `to_code` and `to_onnx`
        reject such a map.

    Returns
    -------
    document : dict
        Entries "format", "schema", "package", "classes", "classes_type", "estimator",
        "input", "map", the tree of nodes, "check", five rows with their results, if
        `tabulate` or `simplify` were used "largest_error", if they are given "date",
        "columns" and "scale", "map_sha256", the checksum of labels and nodes alone,
        which depends on nothing but the predictions' formula, and "sha256", the
        checksum of all others.

    Raises
    ------
    TypeError
        What is not a recalibrator of this package, or has a part from elsewhere; labels
        that are not all text, integers, floats, booleans or bytes.
    ValueError
        A method without a finite form and no `tabulate`; an invalid `date`; columns
        that are not texts; a `scale` that is not two numbers.
    RuntimeError
        A recalibrator of your own whose nodes do not give what it predicts.

    Notes
    -----
    Cost: O(size of the fitted state); for tables also some 20 predictions for each jump
    of the map.

    Examples
    --------
    >>> from sklearn_calib.export import to_dict
    >>> from sklearn_calib.recalibrators import PlattScaling
    >>> document = to_dict(PlattScaling("proba").fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]))
    >>> document["classes"], document["input"], document["map"]["node"]
    ([0, 1], 'proba', 'chain')
    """
    parsed = to_document(fitted, input=input, tabulate=tabulate)
    if columns is None and hasattr(fitted, "feature_names_in_"):
        # The names of the table of the fit, unless others are given.
        columns = [*map(str, fitted.feature_names_in_)]
    notes = parsed.notes | write_notes(date, columns, scale)
    noted = replace(parsed, notes=notes)
    return noted.to_dict()


def from_dict(document: dict[str, Any], *, edited: bool = False) -> ExportedMap:
    """Read what `to_dict` returned.

    Parameters
    ----------
    document : dict
    edited : bool, default=False
        Whether the document was changed by hand: its checksum and its check rows are
        then made anew, not compared. Ranges and orders are checked as always, and the
        document of the result has ``"edited": true`` in its entry "estimator".

    Returns
    -------
    exported : ExportedMap

    Raises
    ------
    ValueError
        A document that is not a map, has another schema, is damaged, whose check rows do
        not give the results that it states, within 1e-9, or that was changed since it
        was written, as its checksum shows. The message names the place in the tree.
        Nothing in a document is ever executed.

    Examples
    --------
    >>> from sklearn_calib.export import from_dict, to_dict
    >>> from sklearn_calib.recalibrators import TemperatureScaling
    >>> document = to_dict(TemperatureScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]))
    >>> from_dict(document)
    <ExportedMap of 'temperature', 2 classes>
    >>> del document["map"]["parts"][1]["coef"]
    >>> from_dict(document)
    Traceback (most recent call last):
    ...
    ValueError: map.parts[1].coef: expected a value, got nothing. The map was
    changed or cut off; export it again.
    """
    parsed = parse_document(document, edited=edited)
    if edited:
        document = parsed.to_dict()
    return ExportedMap(document)._parse_and_store_map(parsed)


def to_json(
    fitted: Any,
    path: str | Path | None = None,
    *,
    indent: int | None = None,
    input: Kind | None = None,
    tabulate: float | None = None,
    date: Date | None = None,
    columns: Columns | None = None,
    scale: tuple[float, float] | None = None,
) -> str:
    """Write a fitted map as JSON text.

    Parameters
    ----------
    fitted, input, tabulate, date, columns, scale
        As in `to_dict`.
    path : str or Path, default=None
        A file to write as well, as UTF-8, whole or not at all.
    indent : int, default=None
        Spaces of indentation; by default one line.

    Returns
    -------
    text : str
        Numbers have enough digits that reading returns the same ones.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `to_dict`.
    OSError
        The file cannot be written.

    Examples
    --------
    >>> from sklearn_calib.export import from_json, to_json
    >>> from sklearn_calib.recalibrators import BetaCalibration
    >>> fitted = BetaCalibration().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> text = to_json(fitted)
    >>> exported = from_json(text)
    >>> bool(abs(exported.predict_proba([0.3]) - fitted.predict_proba([0.3])).max() < 1e-15)
    True
    """
    document = to_dict(
        fitted,
        input=input,
        tabulate=tabulate,
        date=date,
        columns=columns,
        scale=scale,
    )
    # JSON has no NaN.
    text = json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)
    if path is not None:
        write_atomically(get_path_text(path), text)
    return text


def from_json(source: str | Path, *, edited: bool = False) -> ExportedMap:
    """Read a map from JSON text, or from a file that `to_json` wrote.

    Parameters
    ----------
    source : str or Path
        Text that begins with a brace or a bracket is read as JSON, any other text as
        the path of a file.
    edited : bool, default=False
        As in `from_dict`.

    Returns
    -------
    exported : ExportedMap

    Raises
    ------
    ValueError
        For the reasons of `from_dict`, and if the text is not JSON, names an entry
        twice, holds NaN or infinity, is nested some hundred levels deep, or has more
        than 1e9 bytes.
    OSError
        The file cannot be read.

    Warns
    -----
    CalibrationWarning
        As `from_dict`.

    Examples
    --------
    >>> from sklearn_calib.export import from_json
    >>> from_json("[1, 2]")
    Traceback (most recent call last):
    ...
    ValueError: the document: expected a dict, got list. Pass what to_dict
    returned.
    """
    return from_dict(_parse_json(_get_json_bytes(source)), edited=edited)


def _get_json_bytes(source):
    """Return the bytes of a JSON text or file."""
    if isinstance(source, str):
        if not source.strip():
            raise invalid_field(
                "the text", expected="JSON or the path of a file", got="an empty text"
            )
        # A text is JSON if it begins like it, otherwise a path.
        begins = source.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
        # A text that contains this key is not a path but a damaged document.
        if begins or '"format"' in source:
            return source.encode()
    # A text may have been meant as JSON.
    is_text = isinstance(source, str)
    source = get_path_text(source)
    try:
        size = os.path.getsize(source)
    except FileNotFoundError:
        if not is_text:
            raise
        raise invalid_input(
            expected="a file or JSON text",
            got=quote_text(source),
            sentence=f"{quote_text(source)} is neither JSON text nor an existing file",
            hint="Check the name and the folder; JSON itself begins with a brace",
            error=FileNotFoundError,
        ) from None
    if size > MAX_JSON_BYTES:
        raise invalid_field(
            make_printable(source, 200),
            expected=f"at most {MAX_JSON_BYTES:.0e} bytes",
            got=f"{size}",
        )
    return Path(source).read_bytes()


def _parse_json(content):
    """Parse bytes of JSON, and raise an error for nested, repeated or infinite entries."""
    # The parser of Python recurses into brackets, so they are counted first.
    _check_json_depth(content)
    try:
        return json.loads(
            content,
            # Of repeated keys parsers keep different ones, so a document must not have
            # them.
            object_pairs_hook=_reject_repeated_keys,
            parse_constant=_reject_nonfinite_number,
        )
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:
        raise invalid_field("the text", expected="JSON", got=f"{error}") from error


def _check_json_depth(content):
    """Reject brackets inside brackets before anything recurses into them."""
    steps = (
        _DEPTH_STEP_BY_BRACKET.get(match[0], 0)
        for match in _BRACKET_PATTERN.finditer(content)
    )
    if any(depth > _MAX_JSON_DEPTH for depth in itertools.accumulate(steps)):
        raise invalid_field(
            "the text",
            expected=f"at most {_MAX_JSON_DEPTH} levels of brackets",
            got="more",
        )


def _reject_repeated_keys(pairs):
    entries = dict(pairs)
    if len(entries) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid_field(
            twice[:40], expected="each entry once", got=f"{short_repr(twice)} twice"
        )
    return entries


def _reject_nonfinite_number(name):
    raise invalid_field("the text", expected="finite numbers", got=name)
