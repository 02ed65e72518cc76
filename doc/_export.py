"""The tables of the page about exported maps: nodes and their fields, and what exports where."""

import warnings

from sklearn_calib import export, recalibrators
from sklearn_calib.datasets import make_overconfident

#: Columns of the table, those that the package has; a writer that refuses a map says "no".
WRITERS = {"JSON": "to_json", "ONNX": "to_onnx", "SQL": "to_sql", "C, JavaScript": "to_code"}

_SAID = {
    (True, True): "yes",
    (True, False): "two classes",
    (False, True): "several classes",
    (False, False): "no",
}


def tables(table):
    """Text by the name of the file; `table` makes one of a header and rows."""
    return {"export_nodes.inc": _nodes(table), "export_methods.inc": _methods(table)}


def _nodes(table):
    definitions = export.json_schema()["$defs"]
    lines = []
    for name, node in sorted(definitions.items()):
        if name == "node":
            continue
        lines += [f"``{name}``", "~" * (len(name) + 4), "", _plain(node["description"]), ""]
        rows = [
            (f"``{field}``" + " (optional)" * (field not in node["required"]), _plain(said))
            for field, entry in node["properties"].items()
            if field != "node" and (said := entry.get("description"))
        ]
        lines += [table(("field", "what it holds"), rows, widths="20 80"), ""] if rows else []
    return "\n".join(lines)


def _plain(text):
    return text.replace("_", "\\_").replace("`", "``").replace("*", "\\*")


def kinds(tree):
    """The kinds of nodes in a tree."""
    found = {tree["node"]}
    for part in tree.get("parts", []):
        found |= kinds(part) if part else set()
    return found


def fitted_methods(k):
    """(name, class, document, whether it was tabulated) of each registered method."""
    data = make_overconfident(k, 300)
    for name, cls in recalibrators.all_recalibrators().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method = cls().fit(*data)
        if cls.capabilities.not_exported:
            yield name, cls, None, False
            continue
        try:
            yield name, cls, export.to_dict(method), False
        except ValueError:  # no finite form
            yield name, cls, export.to_dict(method, tabulate=1e-6), True


def _methods(table):
    writers = {title: name for title, name in WRITERS.items() if hasattr(export, name)}
    several = {name: document for name, _, document, _ in fitted_methods(3)}
    rows = []
    for name, cls, document, tabulated in fitted_methods(2):
        link = f':class:`~sklearn_calib.recalibrators.{cls.__name__}` ``"{name}"``'
        if document is None:
            rows.append((link, cls.capabilities.not_exported, *[""] * len(writers)))
            continue
        nodes = ", ".join(f"``{kind}``" for kind in sorted(kinds(document["map"])))
        takes = [
            _SAID[tuple(_takes(getattr(export, writer), d) for d in (document, several[name]))]
            for writer in writers.values()
        ]
        rows.append((link, nodes + " (a table)" * tabulated, *takes))
    return table(("method", "nodes for two classes", *writers), rows)


def _takes(write, document):
    try:
        write(document)
    except (ValueError, TypeError):
        return False
    return True
