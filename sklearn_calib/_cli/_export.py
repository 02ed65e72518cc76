"""The command ``export``: a map as ONNX, SQL, C, JavaScript or Python."""

from typing import TYPE_CHECKING, Any

from .._show import make_printable
from ._console import Output, open_writable_standard_output
from ._map import ALLOW_EDITED_HELP, SQL_DIALECTS, load_map
from ._messages import invalid_option
from ._outputs import check_writable, write_text_to_file
from ._request import Request, parse_names

if TYPE_CHECKING:
    from ..export import ExportedMap

EXAMPLES = (
    "sklearn-calib export map.json --to onnx --out map.onnx",
    "sklearn-calib export map.json --to sql --dialect postgres --prob score",
    "sklearn-calib export map.json --to c --name calibrate --out calibrate.c",
)
EXPORT_TARGETS = ("onnx", "sql", "c", "js", "python")
_TARGETS_BY_OPTION = {
    "dialect": ("sql",),
    "prob": ("sql",),
    "source": ("sql",),
    "keep": ("sql",),
    "into": ("sql",),
    "name": ("c", "js", "python"),
    "float32": ("onnx",),
}


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "export",
        help="write a map as ONNX, SQL, C, JavaScript or Python",
        description="Export a map that was written by fit or "
        "sklearn_calib.export.to_json, as code that needs no Python, or no "
        "package.",
        examples=EXAMPLES,
    )
    parser.add_shared_options("map")
    parser.add_argument(
        "--to",
        required=True,
        choices=EXPORT_TARGETS,
        help="the output format; js is JavaScript, onnx needs the extra export",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the file to write (default: the standard output, except for onnx)",
    )
    parser.add_allow_option(edited=ALLOW_EDITED_HELP)
    sql = parser.add_argument_group("sql")
    sql.add_argument(
        "--dialect", choices=SQL_DIALECTS, help="the database (default: ansi)"
    )
    sql.add_repeatable_option(
        "--prob",
        "COLUMN,...",
        "the column of the positive class (default: p), which gives an expression for "
        "SELECT id, <expression> FROM scores, with its name at the end (see --into); or one "
        "column per class, which gives a query",
    )
    sql.add_argument(
        "--source", metavar="TABLE", help="the table of a query (default: scores)"
    )
    sql.add_repeatable_option(
        "--keep",
        "COLUMN,...",
        "other columns of the table that the query returns, such as a key",
    )
    sql.add_argument(
        "--into",
        metavar="NAME",
        help="the name of the result (default: calibrated); table writes the pieces of a large map "
        "into a table and joins them",
    )
    code = parser.add_argument_group("c, js, python")
    code.add_argument("--name", help="name of the function (default: calibrate)")
    onnx = parser.add_argument_group("onnx")
    onnx.add_argument(
        "--float32",
        action="store_true",
        help="for runtimes without float64; steps move slightly",
    )
    parser.set_defaults(run=run_export, modules=(), no_page=True)


def run_export(options: Request) -> int:
    """Write a map in another language."""
    for option, targets in _TARGETS_BY_OPTION.items():
        if getattr(options, option) not in (None, False) and options.to not in targets:
            raise invalid_option(
                sentence=f"--{option} needs --to {' or '.join(targets)}",
                hint="Leave it out",
            )
    if options.to == "onnx" and options.out is None:
        raise invalid_option(
            expected="a file for the ONNX model", got="none", hint="Name it with --out"
        )
    exported_map = load_map(options.map, edited=options.edited)
    if options.out is not None:
        check_writable(options.out, [options.map])
    content = _export_map_to_bytes(exported_map, options)
    usage = ""
    # Only one column without --into table gives an expression. Everything else is a
    # complete statement, which needs no hint.
    is_expression = options.to == "sql" and len(_parse_sql_prob_columns(options)) == 1
    if is_expression and options.into != "table":
        usage = (
            f"Use it as SELECT id, <expression> FROM {options.source or 'scores'}; the expression "
            f"already ends in AS {options.into or 'calibrated'} (see --into)"
        )
    if options.out is None:
        with open_writable_standard_output("map", "Name a file with --out") as stream:
            if usage:
                stream.write(f"-- {make_printable(usage, None)}\n".encode())
            # A map is UTF-8, also if the terminal has another encoding.
            stream.write(content)
        return 0
    write_text_to_file(content, options.out, "--out")
    output = Output()
    if usage:
        output.print(usage)
    return output.print_paths_and_get_exit_code({options.to: options.out})


def _parse_sql_prob_columns(options):
    return parse_names(options.prob) if options.prob else ["p"]


def _export_map_to_bytes(exported_map: "ExportedMap", options: Request) -> bytes:
    from ..export import to_code, to_onnx, to_sql

    if options.to == "onnx":
        dtype: Any = "float32" if options.float32 else "float64"
        return to_onnx(exported_map, dtype=dtype).SerializeToString()
    if options.to != "sql":
        language: Any = {"js": "javascript"}.get(options.to, options.to)
        return to_code(exported_map, language, options.name or "calibrate").encode()
    columns: Any = _parse_sql_prob_columns(options)
    if len(columns) == 1 and len(exported_map.classes_) == 2:
        columns = columns[0]
    sql = to_sql(
        exported_map,
        columns,
        dialect=options.dialect or "ansi",
        into=options.into or "calibrated",
        source=options.source or "scores",
        keep=parse_names(options.keep or []),
    )
    return f"{sql}\n".encode()
