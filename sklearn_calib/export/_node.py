"""The base of the nodes."""

import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from .._typing import FloatArray
from ._fields import wrong


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """What all nodes share: call one with rows, of shape (n, k), to get its rows."""

    #: Its name in a description.
    kind: ClassVar[str]
    #: For two classes only.
    binary: ClassVar[bool] = False
    #: The nodes inside see two classes, whatever the number outside.
    splits: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __call__(self, rows: FloatArray) -> FloatArray:
        raise NotImplementedError

    def check(self, k: int, at: str) -> None:
        """Refuse fields that do not fit each other, or the number of classes."""

    def tree(self) -> dict[str, Any]:
        """The node as it was read: a dict of JSON's types."""
        return {"node": self.kind} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def children(self) -> tuple["Node", ...]:
        """The nodes inside, without gaps."""
        return tuple(part for part in getattr(self, "parts", ()) if part is not None)


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [None if part is None else part.tree() for part in value]
    return value


def check_length(values: FloatArray, length: int, at: str) -> None:
    if len(values) != length:
        wrong(at, f"{length} numbers", f"{len(values)}")
