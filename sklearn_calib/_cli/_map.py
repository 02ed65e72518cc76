"""Maps in files, as ``fit`` writes them and ``apply`` and ``export`` read them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files.tables import UserError
from .._show import plain, quoted

if TYPE_CHECKING:
    from ..export import ExportedMap

_WHERE = "sklearn_calib.export, "
#: Those of `sklearn_calib.export`, which would take longer to import.
DIALECTS = ("ansi", "postgres", "sqlite", "duckdb", "mysql", "bigquery", "snowflake", "tsql")


def add_map(parser: Any) -> None:
    """Add the argument that names the file of a map."""
    parser.add_argument("map", metavar="MAP", help="the map, as fit wrote it")


def add_edited(parser: Any) -> None:
    """Add the option that says that a map was changed by hand."""
    parser.add_argument(
        "--edited",
        action="store_true",
        help="the map was changed by hand: read it although its checksum or its check rows do not "
        "fit (default: refuse)",
    )


def read_map(file: str, *, edited: bool = False) -> "ExportedMap":
    """The map in a file; raises UserError for what is none, and where it was changed."""
    from ..export import from_json

    try:
        return from_json(Path(file), edited=edited)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        if not said.startswith(_WHERE):  # no text, or no file
            said = "binary content" if isinstance(error, UnicodeDecodeError) else said
            said = f"{said}. Name a file that sklearn-calib fit, or to_json, has written"
        elif "expected JSON" in said:
            said = "no JSON, or JSON that was cut off. Fit again, or name a file that fit wrote"
        said = said.replace("is read with edited=True", "is read with --edited")
        said = plain(said.removeprefix(_WHERE), 400).rstrip(".")
        raise UserError(
            f"expected a calibration map in {quoted(file, 200)}, got: {said}."
        ) from error


def check_kind(found: "ExportedMap", kind: str, file: str) -> None:
    """Refuse scores of another kind than those that the map was written for."""
    wanted = found.document["input"]
    if kind == wanted:
        return
    cure = "Add --logits" if wanted == "logits" else "Leave --logits out"
    words = {"proba": "probabilities", "logits": "logits"}
    raise UserError(
        f"expected {words[wanted]}, for which the map in {quoted(file, 200)} was written, got "
        f"{words[kind]}. {cure}, and name the columns of the {words[wanted]} with --prob."
    )


def label_names(found: "ExportedMap") -> list[Any]:
    """The labels of a map, as the command line names them."""
    return [plain(label, 40) for label in found.classes_.tolist()]
