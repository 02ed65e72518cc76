"""Reading a map: a tree of dicts becomes a map, or an error names the faulty place."""

from typing import Any

from ._base import MAP_KINDS, CalibrationMap
from ._fields import MapListField, get_schema_fields, invalid_field, short_repr

#: Nodes inside nodes, at most; what the package writes has about ten levels.
MAX_MAP_DEPTH = 50
#: Nodes of one description, at most. Many classes have many: 50 of them 1225 pairs.
MAX_MAP_NODES = 100_000


def read_map(tree: Any, n_classes: int) -> CalibrationMap:
    """Return the map of a tree, after checks of all its fields.

    Parameters
    ----------
    tree : dict
        With "node", the kind, and its fields: lists or arrays of numbers, and dicts of
        this form.
    n_classes : int

    Raises
    ------
    ValueError
        An unknown kind, a field that is missing, unknown or of another type than
        declared, more than `MAX_MAP_DEPTH` levels or `MAX_MAP_NODES` nodes. The message names
        the place.
    """
    return _read_node(tree, n_classes, "map", MAX_MAP_DEPTH, iter(range(MAX_MAP_NODES)))


def _read_node(tree, k, at, depth, budget):
    """Read a node and its parts.

    `at` is its place in the document, `depth` how many levels may follow, and `budget`
    an iterator with one item for each node that may follow.
    """
    if depth == 0:
        raise invalid_field(
            at, expected=f"at most {MAX_MAP_DEPTH} nodes inside each other", got="more"
        )
    if next(budget, None) is None:
        raise invalid_field(at, expected=f"at most {MAX_MAP_NODES} nodes", got="more")
    if not isinstance(tree, dict):
        raise invalid_field(at, expected="a node, a dict", got=type(tree).__name__)
    if "node" not in tree:
        raise invalid_field(f"{at}.node", expected="the name of a node", got="nothing")
    name = tree["node"]
    cls = MAP_KINDS.get(name) if isinstance(name, str) else None
    if cls is None:
        raise invalid_field(
            f"{at}.node",
            expected=f"one of {', '.join(sorted(MAP_KINDS))}",
            got=short_repr(name),
            hint="Update the package",
        )
    fields = get_schema_fields(cls)
    for extra in tree:
        if extra not in fields and extra != "node":
            raise invalid_field(
                f"{at}.{str(extra)[:40]}",
                expected=f"the fields {', '.join(fields) or 'none'}",
                got=short_repr(extra),
            )
    if cls.is_binary and k != 2:
        raise invalid_field(
            at,
            expected="two classes",
            got=f"{k}",
            hint=f"Nodes of kind {name!r} are for two classes",
        )
    values = {}
    for field, (kind, needed) in fields.items():
        if field not in tree:
            if needed:
                raise invalid_field(f"{at}.{field}", expected="a value", got="nothing")
        elif tree[field] is None and kind.optional:
            values[field] = None
        elif isinstance(kind, MapListField):
            inner = 2 if cls.splits else k
            values[field] = _parse_inner_nodes(
                tree[field],
                kind,
                inner,
                f"{at}.{field}",
                depth,
                budget,
            )
        else:
            values[field] = kind.read(tree[field], f"{at}.{field}")
    node = cls(**values)
    node.check(k, at)
    return node


def _parse_inner_nodes(parts, kind, k, at, depth, budget):
    """Read a list of nodes, in which None stands for a gap if the field allows gaps."""
    if not isinstance(parts, list | tuple):
        raise invalid_field(at, expected="a list of nodes", got=type(parts).__name__)
    if not parts:
        raise invalid_field(at, expected="a list of nodes", got="none")
    nodes = []
    for i, part in enumerate(parts):
        if part is not None or not kind.gaps:
            part = _read_node(part, k, f"{at}[{i}]", depth - 1, budget)
        nodes.append(part)
    return tuple(nodes)
