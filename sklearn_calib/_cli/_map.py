"""Maps in files, as ``fit`` writes them and ``apply`` and ``export`` read them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._show import make_printable, quote_text
from ..exceptions import InvalidInputError
from ._messages import invalid_option

if TYPE_CHECKING:
    from ..export import ExportedMap

#: Those of `sklearn_calib.export`, which would take longer to import.
SQL_DIALECTS = (
    *("ansi", "postgres", "sqlite", "duckdb", "mysql", "bigquery", "snowflake", "tsql"),
    *("clickhouse", "spark", "databricks"),
)


#: What ``--allow edited`` does.
ALLOW_EDITED_HELP = (
    "read a map that was changed by hand, although checksum or check rows do not match"
)


def load_map(file: str, *, edited: bool = False) -> "ExportedMap":
    """Return the map in a file; reject other documents, and maps that were changed."""
    from ..export import from_json

    try:
        return from_json(Path(file), edited=edited)
    except InvalidInputError as error:
        error.set_fields(
            source=f"{make_printable(file, 200)}, {make_printable(error.argument, 200)}"
        )
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "binary content"
        raise invalid_option(
            expected=f"a calibration map in {quote_text(file, 200)}",
            got=reason,
            hint="Name a file that sklearn-calib fit, or to_json, has written",
        ) from error


def check_score_kind(exported_map: "ExportedMap", kind: str, file: str) -> None:
    """Reject scores of another kind than those that the map was written for."""
    wanted = exported_map.document["input"]
    if kind == wanted:
        return
    hint = "Add --scale logits" if wanted == "logits" else "Leave --scale logits out"
    words = {"proba": "probabilities", "logits": "logits"}
    raise invalid_option(
        expected=f"{words[wanted]}, for which the map in {quote_text(file, 200)} was written",
        got=f"{words[kind]}",
        hint=f"{hint}, and name the columns of the {words[wanted]} with --prob",
    )


def format_label_names(exported_map: "ExportedMap") -> list[Any]:
    """Return the labels of a map, as the command line names them."""
    return [make_printable(label, 40) for label in exported_map.classes_.tolist()]
