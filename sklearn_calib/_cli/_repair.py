"""The commands that repair what an audit has found, to be pasted into a shell."""

import argparse
import re

from .._show import in_shell
from ._options import (
    add_clusters,
    add_columns,
    add_prediction,
    add_reading,
    add_scale,
    add_scores,
    add_soft_labels,
)

_JSON_LINES = re.compile(r"\.(jsonl|ndjson)(\.\w+)?$", re.IGNORECASE)


def commands_of_repair(options: argparse.Namespace) -> str:
    """``fit`` with the files and options of an audit, then ``apply``, one line each."""
    fit, apply = (argparse.ArgumentParser(add_help=False) for _ in range(2))
    columns = add_columns(fit)
    add_scale(columns)
    add_prediction(columns)
    add_clusters(columns, "")
    add_soft_labels(columns)
    add_reading(fit)
    add_scores(apply)
    add_scale(apply)
    add_reading(apply, missing=("absent",))
    ending = ".jsonl" if any(map(_JSON_LINES.search, options.files)) else ".csv"
    new, repaired = f"new{ending}", f"repaired{ending}"
    lines = (
        ["fit", *options.files, *_given(fit, options), "--out", "map.json"],
        ["apply", "map.json", new, *_given(apply, options), "--out", repaired],
    )
    return "".join(f"sklearn-calib {' '.join(map(in_shell, line))}\n" for line in lines)


def _given(parser, options):
    """The words that give a parser those of its options that differ from their defaults."""
    words = []
    for action in parser._actions:
        value, name = getattr(options, action.dest), action.option_strings[0]
        if value is True:
            words.append(name)
        elif value != action.default:
            many = value if isinstance(value, list) else [value]
            known = [each for each in many if action.choices is None or each in action.choices]
            words += [word for each in known for word in (name, str(each))]
    return words
