"""The tables of the page about exported maps: nodes and their fields, and what exports where."""

import csv
import warnings
from functools import cache
from pathlib import Path

from sklearn_calib import export, recalibrators
from sklearn_calib.datasets import make_overconfident

#: Columns of the table, those that the package has; a writer that rejects a map states
#: "no".
WRITERS = {
    "JSON": "to_json",
    "ONNX": "to_onnx",
    "SQL": "to_sql",
    "C, JavaScript": "to_code",
}

#: Of differences.csv, besides one for each target.
OTHER_COLUMNS = ("method", "classes", "steps beside", "rows")

_SAID = {
    (True, True): "yes",
    (True, False): "two classes",
    (False, True): "several classes",
    (False, False): "no",
}


def tables(table):
    """Text by the name of the file; `table` makes one of a header and rows."""
    return {
        "export_nodes.inc": _nodes(table),
        "export_methods.inc": _methods(table),
        "export_largest.inc": _largest_differences(table),
    }


def _largest_differences(table):
    """The largest difference of all methods, those with a finite form and those as a table."""
    path = Path(__file__).parents[1] / "benchmarks" / "export" / "differences.csv"
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    targets = [name for name in lines[0] if name not in OTHER_COLUMNS]
    tabulated = {name for name, *_, as_table in fitted_methods(2) if as_table}
    rows = []
    for target in targets:
        measured = {True: [], False: []}
        for line in lines:
            if line[target]:
                measured[line["method"].split(".")[0] in tabulated].append(
                    float(line[target])
                )
        cells = [f"{max(found):.1e}" if found else "" for found in measured.values()]
        missing = sum(not line[target] for line in lines)
        rows.append((target, cells[1], cells[0], str(missing)))
    return table(("in", "finite forms", "tables to 1e-6", "maps too large"), rows)


def _nodes(table):
    definitions = export.json_schema()["$defs"]
    lines = []
    for name, node in sorted(definitions.items()):
        if name == "node":
            continue
        lines += [
            f"``{name}``",
            "~" * (len(name) + 4),
            "",
            _plain(node["description"]),
            "",
        ]
        rows = [
            (
                f"``{field}``" + " (optional)" * (field not in node["required"]),
                _plain(said),
            )
            for field, entry in node["properties"].items()
            if field != "node" and (said := entry.get("description"))
        ]
        lines += [table(("field", "meaning"), rows, widths="20 80"), ""] if rows else []
    return "\n".join(lines)


def _plain(text):
    return text.replace("_", "\\_").replace("`", "``").replace("*", "\\*")


def kinds(tree):
    """The kinds of nodes in a tree."""
    found = {tree["node"]}
    for part in tree.get("parts", []):
        found |= kinds(part) if part else set()
    return found


@cache
def fitted_methods(k):
    """(name, class, document, whether it was tabulated) of each registered method."""
    data = make_overconfident(k, 300)
    methods = []
    for name, cls in recalibrators.all_recalibrators().items():
        if cls.capabilities.export_error:
            methods.append((name, cls, None, False))
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method = cls().fit(*data)
        try:
            methods.append((name, cls, export.to_dict(method), False))
        except ValueError:  # no finite form
            document = export.to_dict(method, tabulate=1e-6)
            methods.append((name, cls, document, True))
    return methods


def _methods(table):
    writers = {title: name for title, name in WRITERS.items() if hasattr(export, name)}
    several = {name: document for name, _, document, _ in fitted_methods(3)}
    rows = []
    for name, cls, document, tabulated in fitted_methods(2):
        link = f':class:`~sklearn_calib.recalibrators.{cls.__name__}` ``"{name}"``'
        if document is None:
            rows.append((link, cls.capabilities.export_error, *[""] * len(writers)))
            continue
        nodes = ", ".join(f"``{kind}``" for kind in sorted(kinds(document["map"])))
        takes = [
            _SAID[
                tuple(
                    _takes(getattr(export, writer), d)
                    for d in (document, several[name])
                )
            ]
            for writer in writers.values()
        ]
        rows.append((link, nodes + " (a table)" * tabulated, *takes))
    return table(("method", "nodes for two classes", *writers), rows)


def _takes(write, document):
    columns = [f"p{i}" for i in range(len(document["classes"]))]
    try:
        write(document, columns) if write is getattr(export, "to_sql", None) else write(
            document
        )
    except (ValueError, TypeError):
        return False
    return True
