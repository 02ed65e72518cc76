"""Maps without a finite form become tables."""

from typing import Any

from ..exceptions import refuse


def tabulated(tree: Any, bound: float | None, where: str) -> tuple[Any, float]:
    """The tree with a table for each curve, and the largest error that this may make.

    Raises ValueError for a tree with curves where `bound` is None.
    """
    if tree.get("node") != "curve":
        parts = tree.get("parts")
        if parts is None:
            return tree, 0.0
        done = [(None, 0.0) if part is None else tabulated(part, bound, where) for part in parts]
        return tree | {"parts": [part for part, _ in done]}, max(error for _, error in done)
    if bound is None:
        refuse(
            where,
            "a method whose map has a finite form",
            tree["name"],
            "Pass tabulate=1e-6 for a table of it, right to that difference",
        )
    raise NotImplementedError
