"""A drawing of the sub-packages and of who imports whom, read off the imports themselves."""

import ast
import re
from pathlib import Path

import sklearn_calib

ROOT = Path(sklearn_calib.__file__).parent
SMALL = {"__init__", "__main__", "_version"}


def imports(root=ROOT):
    """{part: the parts_ that it imports}; a part is a sub-package or a module of the package."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        part = relative.parts[0].removesuffix(".py")
        if part not in SMALL:
            found.setdefault(part, set())
            package = relative.parts[:-1]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.level:
                    base = package[: len(package) - node.level + 1]
                    names = (
                        [node.module]
                        if node.module
                        else [alias.name for alias in node.names]
                    )
                    tops = {[*base, *name.split(".")][0] for name in names}
                    found[part] |= {
                        top for top in tops if top != part and top not in SMALL
                    }
    return {
        part: {other for other in others if other in found}
        for part, others in found.items()
    }


def read_orientation(root=ROOT):
    """Return the three sentences of the docstring of each sub-package.

    They are about its purpose, its imports and where to start reading.
    """
    sentences = {}
    for path in sorted(root.glob("*/__init__.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        text = " ".join((ast.get_docstring(module) or "").split())
        sentences[path.parent.name] = re.split(r"(?<=[.!?]) ", text)
    return sentences


def ground(graph):
    """Small modules that all may use: drawn as one, without arrows."""
    found = {"exceptions"}
    helpers = sorted(
        part for part in graph if part.startswith("_") and part != "_kernels"
    )
    for _ in helpers:
        found |= {part for part in helpers if graph[part] <= found}
    return found


def levels(graph):
    """The parts from the ground up: each stands above all that it imports."""
    level = {}
    while len(level) < len(graph):
        ready = [
            part for part in graph if part not in level and graph[part] <= set(level)
        ]
        if not ready:
            raise ValueError(
                f"a cycle of imports among {sorted(set(graph) - set(level))}"
            )
        for part in ready:
            level[part] = 1 + max((level[other] for other in graph[part]), default=-1)
    return [
        [r for r in graph if level[r] == height]
        for height in range(max(level.values()) + 1)
    ]


def drawing():
    """An SVG of the parts, the ground layer at the bottom; arrows leave out what follows."""
    graph = imports()
    small = ground(graph)
    graph = {
        part: others - small for part, others in graph.items() if part not in small
    }
    layers = levels(graph)
    width, step = 900, 84
    top = step * len(layers)
    height = top + 50
    place = {}
    for number, layer in enumerate(layers):
        for position, part in enumerate(layer):
            x = width * (position + 0.5) / len(layer)
            place[part] = (x, top - step * (number + 0.5))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="15" text-anchor="middle">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>',
    ]
    for part, others in graph.items():
        for other in sorted(_direct(graph, others)):
            (x1, y1), (x2, y2) = place[part], place[other]
            lines.append(
                f'<line x1="{x1:.0f}" y1="{y1 + 16:.0f}" x2="{x2:.0f}" y2="{y2 - 17:.0f}" '
                'stroke="#777" marker-end="url(#tip)"/>'
            )
    for part, (x, y) in place.items():
        half = 5 * len(part) + 10
        lines.append(
            f'<rect x="{x - half:.0f}" y="{y - 16:.0f}" width="{2 * half}" height="32" rx="6" '
            f'fill="#eef4f4" stroke="#0a7d91"/><text x="{x:.0f}" y="{y + 5:.0f}">{part}</text>'
        )
    lines.append(
        f'<rect x="10" y="{top + 6}" width="{width - 20}" height="32" rx="6" fill="#f3f0e8" '
        f'stroke="#8a7a4a"/><text x="{width / 2}" y="{top + 27}">used by all: '
        f"{', '.join(sorted(small))}</text>"
    )
    return "\n".join([*lines, "</svg>", ""])


def _direct(graph, others):
    """Those of `others` that no other of them imports, directly or not."""
    below = {other: _reach(graph, other) for other in others}
    return {o for o in others if not any(o in below[via] for via in others if via != o)}


def _reach(graph, part):
    found, todo = set(), list(graph[part])
    while todo:
        other = todo.pop()
        if other not in found:
            found.add(other)
            todo += graph[other]
    return found


if __name__ == "__main__":
    for number, layer in enumerate(levels(imports())):
        print(number, *layer)
