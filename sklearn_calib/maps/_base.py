"""The base of all calibration maps: frozen dataclasses, one for each kind.

A map takes rows on the simplex to rows on the simplex. In the docstrings of the kinds
`p` is a row, `p_1` the probability of the second class, counted from 0. `l` are its
logarithms: exact ones if the row was made from logits and nothing but `Floor` came
before, which hands them on; otherwise log p, with p below 1.1754943508222875e-38
counted as that.

The tables of the documentation and the JSON Schema of documents are read off the
fields.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from .._simplex_array import iter_row_blocks
from .._typing import FloatArray
from ..exceptions import invalid_input
from ._fields import invalid_field
from ._ranges import Ranges
from ._rows import Rows

#: All kinds of maps, by their names in documents: a class is one as soon as it is
#: defined.
MAP_KINDS: dict[str, type["CalibrationMap"]] = {}

#: Numbers of a table that are mapped at once, so that intermediate results stay in the
#: cache.
BLOCK_ENTRIES = 2**14

#: A function from scores to rows of two classes.
RowsOfScores = Callable[[FloatArray], Rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationMap:
    """Map rows of probabilities to rows of probabilities.

    The fields of a kind are its schema in documents; arrays are copied and read-only.
    """

    #: Its name in a document.
    kind: ClassVar[str]
    #: Whether it is for two classes only.
    is_binary: ClassVar[bool] = False
    #: Whether the parts inside have two classes, for any number outside.
    splits: ClassVar[bool] = False
    #: Whether `apply` takes `TensorRows`, if all parts do.
    supports_array_api: ClassVar[bool] = False

    def __init_subclass__(cls, *, in_documents: bool = True) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        if in_documents:
            MAP_KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        for field in fields(self):
            value = field.metadata["kind"].convert(getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without tables that follow from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, proba: FloatArray) -> FloatArray:
        """Map a table of NumPy, which may carry exact logarithms."""
        if proba.size <= BLOCK_ENTRIES:
            return np.array(self.apply(Rows.from_canonical(proba)).proba, order="C")
        out = np.empty(proba.shape)
        for block in iter_row_blocks(proba, BLOCK_ENTRIES):
            mapped = self.apply(Rows.from_canonical(proba[block])).proba
            if proba.shape[1] == 2:
                # Parts hold columns, which one assignment copies four times as slowly.
                out[block, 0] = mapped[:, 0]
                out[block, 1] = mapped[:, 1]
            else:
                out[block] = mapped
        return out

    def apply(self, rows: Any) -> Any:
        """Map `Rows`, or `TensorRows` if the kind supports the array API."""
        raise NotImplementedError

    def lower(self, rows: Any) -> Any:
        """Write the map as operations on the rows of a program or of an ONNX graph."""
        raise NotImplementedError

    def direction(self) -> int | None:
        """Return 1 if a map of two classes never falls, -1 if it never rises, 0 for both.

        None stands for maps that do both, and for unknown ones.
        """
        return None

    def cut_ranges(
        self, ranges: Ranges, rows: RowsOfScores, *, every: bool = False
    ) -> None:
        """Cut ranges of scores at the turning points of a map of two classes.

        Parameters
        ----------
        ranges : Ranges
            Changed in place.
        rows : callable
            From scores to the `Rows` that the map is given.
        every : bool
            Whether to cut wherever the formula changes, also if the direction stays.
        """
        raise invalid_input(
            expected="a map that only rises or only falls, or one whose turning points are known",
            got=self.kind,
            hint="Take the threshold of a map for two classes without such a part",
        )

    def linear_input(self) -> str | None:
        """Return the score in which the map is linear between its cuts, if there is one.

        "constant" stands for maps that are constant between their cuts.
        """
        return None

    def keeps_absent(self) -> bool:
        """Return whether options that a row does not have keep the probability 0."""
        return False

    def check(self, k: int, at: str) -> None:
        """Reject fields that do not fit each other, or the number of classes."""

    def supports_tensors(self) -> bool:
        """Return whether tensors can go through the map and all maps inside."""
        return self.supports_array_api and all(
            part.supports_tensors() for part in self.children()
        )

    def to_tree(self) -> dict[str, Any]:
        """Return the map as a dict of JSON's types, which `read_map` reads."""
        tree: dict[str, Any] = {"node": self.kind}
        for field in fields(self):
            tree[field.name] = to_json_value(getattr(self, field.name))
        return tree

    def children(self) -> tuple["CalibrationMap", ...]:
        """Return the maps inside, without gaps."""
        return tuple(part for part in getattr(self, "parts", ()) if part is not None)


def to_json_value(value: Any) -> Any:
    """Return the value of a field as JSON has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [None if part is None else part.to_tree() for part in value]
    return value


def check_length(values: FloatArray, length: int, at: str) -> None:
    """Raise an error for a list of another length."""
    if len(values) != length:
        raise invalid_field(at, expected=f"{length} numbers", got=f"{len(values)}")


def combine_directions(directions: Any) -> int | None:
    """Return what parts do together if all that move do so in one direction."""
    moving = set(directions) - {0}
    if len(moving) > 1:
        return None
    return moving.pop() if moving else 0
