"""The command ``threshold``: from which score on a map gives a probability; bands as SQL."""

import math
import re
from typing import TYPE_CHECKING, Any

from .._show import quote_text
from ._console import Screen, open_writable_standard_output
from ._map import ALLOW_EDITED_HELP, SQL_DIALECTS, load_map
from ._messages import invalid_option
from ._options import parse_float_text, suggest_plain_number
from ._outputs import check_writable, write_json_to_file
from ._request import Request, parse_names

if TYPE_CHECKING:
    from ..export import ExportedMap

EXAMPLES = (
    "sklearn-calib threshold map.json --at 0.02,0.05",
    "sklearn-calib threshold map.json --at 0.02 --scores logits --json thresholds.json",
    "sklearn-calib threshold map.json --at 0.01,0.02,0.05 --sql postgres --prob score",
    "sklearn-calib threshold map.json --at 0.02,0.05 --sql bigquery --names low,middle,high",
)
_SQL_OPTIONS = ("prob", "names", "into")


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "threshold",
        help="find the score at which a map reaches a probability",
        description="Find the scores to which a map of two classes gives at least the "
        "probabilities of --at: the rule for the raw score, to the last bit. Or "
        "write the bands between them as SQL that only compares the score.",
        examples=EXAMPLES,
    )
    parser.add_shared_options("map")
    parser.add_argument(
        "--at",
        required=True,
        action="append",
        metavar="P[,P...]",
        help="calibrated probabilities of the second class, from 0 to 1",
    )
    parser.add_argument(
        "--scores",
        choices=("proba", "logits"),
        help="kind of the score: a probability, or log-odds (default: the kind that "
        "the map was written for)",
    )
    parser.add_argument(
        "--float32",
        action="store_true",
        help="the scores are stored in single precision, and the thresholds are "
        "single-precision numbers",
    )
    parser.add_argument("--json", metavar="FILE", help="write the thresholds")
    parser.add_allow_option(edited=ALLOW_EDITED_HELP)
    sql = parser.add_argument_group("sql")
    sql.add_argument(
        "--sql",
        choices=SQL_DIALECTS,
        metavar="DIALECT",
        help="print an expression that gives the band of a score, counted from 0: one of "
        + ", ".join(SQL_DIALECTS),
    )
    sql.add_argument(
        "--prob", metavar="COLUMN", help="the column of the score (default: p)"
    )
    sql.add_repeatable_option(
        "--names",
        "NAME,...",
        "names of the bands, one more than --at, the lowest first (default: 0, 1, ...)",
    )
    sql.add_argument(
        "--into", metavar="NAME", help="the name of the result (default: band)"
    )
    parser.set_defaults(run=run_threshold)


def run_threshold(options: Request) -> int:
    """Print thresholds of a map, or bands of scores as SQL."""
    comma = next(
        (text for text in options.at if re.fullmatch(r"\s*0,\d+\s*", text)), None
    )
    if comma is not None:
        raise invalid_option(
            expected="probabilities with a point in --at",
            got=f"{comma!r}, which may be one with a decimal comma",
            hint=f"{suggest_plain_number(comma)}, or give --at once for each of two",
        )
    targets = [_parse_target_probability(text) for text in parse_names(options.at)]
    if not targets:
        raise invalid_option(
            expected="a probability after --at",
            got="none",
            hint="Write for instance --at 0.02",
        )
    for name in _SQL_OPTIONS:
        if getattr(options, name) is not None and options.sql is None:
            raise invalid_option(
                sentence=f"--{name} needs --sql", hint="Add --sql DIALECT"
            )
    if options.sql is not None and (options.float32 or options.json is not None):
        got = "--float32" if options.float32 else "--json"
        raise invalid_option(
            sentence=f"--sql and {got} cannot be combined", hint="Leave one out"
        )
    exported_map = load_map(options.map, edited=options.edited)
    if options.sql is not None:
        content = f"{_format_band_sql(exported_map, targets, options)}\n".encode()
        with open_writable_standard_output("SQL", "Lead it to a file") as stream:
            stream.write(content)
        return 0
    return _show_thresholds(exported_map, targets, options)


def _parse_target_probability(text):
    try:
        value = parse_float_text(text)
    except Exception:
        value = math.nan
    if not 0 <= value <= 1:
        raise invalid_option(
            expected="probabilities from 0 to 1 in --at",
            got=f"{text!r}",
            hint=(
                suggest_plain_number(text)
                or "Write for instance --at 0.02; divide percentages by 100"
            ),
        )
    return value


def _show_thresholds(
    exported_map: "ExportedMap", targets: list[float], options: Request
) -> int:
    from ..recalibrators import make_thresholds_section

    if options.json is not None:
        check_writable(options.json, [options.map], "--json")
    scale = exported_map.document.get("scale")
    if scale is not None:
        raise invalid_option(
            expected=f"a map of probabilities or logits in {quote_text(options.map)}",
            got=f"one fitted to numbers from {scale[0]:g} to {scale[1]:g}",
            hint="Make a column of probabilities of them and fit to that",
        )
    dtype: Any = "float32" if options.float32 else "float64"
    thresholds = exported_map.threshold(targets, input=options.scores, dtype=dtype)
    screen = Screen()
    screen.show_sections(make_thresholds_section(thresholds))
    if options.json is not None:
        write_json_to_file(
            {"thresholds": [threshold.to_dict() for threshold in thresholds]},
            options.json,
        )
    return screen.print_paths_and_get_exit_code({"numbers": options.json})


def _format_band_sql(
    exported_map: "ExportedMap", targets: list[float], options: Request
) -> str:
    from ..export import to_sql

    edges = sorted(set(targets))
    bands = None
    if options.names is not None:
        names = parse_names(options.names)
        if edges[0] == 0:
            raise invalid_option(
                expected="--at above 0 with --names",
                got="0, below which there are no probabilities",
                hint="Leave it out, and the first name",
            )
        if len(set(names)) != len(edges) + 1:
            raise invalid_option(
                expected=f"{len(edges) + 1} different --names, one more than --at",
                got=f"{len(set(names))}",
                hint="Name all bands, the lowest first",
            )
        bands = dict(zip(names, [0.0, *edges], strict=True))
    return to_sql(
        exported_map,
        options.prob or "p",
        dialect=options.sql,
        into=options.into or "band",
        input=options.scores,
        bands=bands or edges,
    )
