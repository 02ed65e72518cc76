"""Scores of another library of arrays stay on their device: read block by block, when used."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np

from .._simplex_array import iter_row_blocks
from .._sklearn_compat import (
    get_array_namespace_if_dispatched,
    get_widest_float,
    to_numpy,
)
from .._typing import AnyArray
from ..exceptions import invalid_input
from ._rounded import (
    BFLOAT16_SUM_TOLERANCE,
    FLOAT32_SUM_TOLERANCE,
    get_float16_sum_tolerance,
)

# A block of this many entries fits into the cache of a processor.
HOST_BLOCK_ENTRIES = 1 << 18
# A block of this many entries keeps a GPU busy.
DEVICE_BLOCK_ENTRIES = 1 << 24
# Differences of larger logits overflow.
MAX_ABS_LOGIT = 1e150

Check = Callable[..., Any]
Kind = Literal["proba", "logits"]


class DeviceScores:
    """Probabilities or logits in an array of PyTorch, CuPy or another library, on its device.

    `canonical_proba` returns one if scikit-learn dispatches to the array API. It can
    be given wherever probabilities can. Nothing is copied until it is used; then it is
    checked, too.

    Parameters
    ----------
    array : array of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
    kind : {"proba", "logits"}
    xp : module
        The array API of its library.
    check : callable
        `canonical_proba`, for rows of the host: it rejects what is wrong, and repairs
        what can be.
    tolerance : float, default=None
        Of the sums of rows. By default what rounding in the type of the array explains.

    Attributes
    ----------
    shape : tuple
        (n_samples, n_classes), or (n_samples, 1) for scores of the second class alone.
    dtype : dtype
        Of the results: float32 for half precision, whose sums would be far from 1, and
        for numbers that are not floats the widest one.
    """

    ndim = 2

    def __init__(
        self,
        array: Any,
        kind: Kind,
        xp: Any,
        check: Check,
        tolerance: float | None = None,
    ) -> None:
        if array.ndim not in (1, 2):
            raise invalid_input(
                expected="one or two dimensions of scores",
                got=f"{array.ndim} dimensions {tuple(array.shape)}",
                hint="Reshape to (n_samples, n_classes)",
            )
        table = xp.reshape(array, (-1, 1)) if array.ndim == 1 else array
        if 0 in table.shape:
            raise invalid_input(
                expected="at least one row and one column of scores",
                got=f"shape {tuple(array.shape)}",
                hint="Check the selection that produced it",
            )
        self.array = table
        self.kind = kind
        self.xp = xp
        self.shape = tuple(map(int, table.shape))
        self.device = table.device
        brain = "bfloat16" in str(table.dtype)
        if tolerance is None:
            half = (
                get_float16_sum_tolerance(self.shape[1])
                if "float16" in str(table.dtype)
                else FLOAT32_SUM_TOLERANCE
            )
            self._sum_tolerance = BFLOAT16_SUM_TOLERANCE if brain else half
        else:
            self._sum_tolerance = tolerance
        # Otherwise `check` derives the tolerance from the type of the numbers.
        warns_of_rounding = kind == "proba" and (brain or tolerance is not None)
        self.check = (
            partial(check, tolerance=self._sum_tolerance)
            if warns_of_rounding
            else check
        )
        try:
            first = self[:1]
        except Exception as error:
            # Each array library raises its own exceptions.
            reason = str(error).partition("\n")[0].rstrip(".")[:120]
            raise invalid_input(
                expected="a dense tensor of real numbers as scores",
                got=f"one of dtype {table.dtype} whose numbers cannot be read ({reason})",
                hint=(
                    "Convert it first, by .to_dense() if it is sparse or .float() if "
                    "it is of 8 bits"
                ),
                error=TypeError,
            ) from error
        if not xp.isdtype(table.dtype, ("bool", "integral", "real floating")):
            # This call raises an error that names the fault.
            check(first, kind=kind)
        wide = get_widest_float(xp, self.device)
        narrow = xp.isdtype(table.dtype, "real floating") and table.dtype != xp.float64
        self.dtype = xp.float32 if narrow else wide

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceScores({self.kind} of shape {self.shape} on {self.device})"

    def __getitem__(self, rows: slice) -> AnyArray:
        """Copy some rows unchanged to a numpy array on the host."""
        return to_numpy(self._slice_device_rows(rows), self.xp)

    def _slice_device_rows(self, rows):
        start, stop, _ = rows.indices(len(self))
        return self.array[start:stop, :]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return the probabilities as a numpy array."""
        return np.asarray(self.to_numpy_proba(), dtype=dtype)

    def to_numpy_proba(self, first: int = 0) -> AnyArray:
        """Return float64 probabilities in numpy, with exact logarithms if they were logits."""
        return self.check(self[:], kind=self.kind, first=first)

    def iter_blocks(self) -> Iterator[tuple[slice, Any]]:
        """Iterate over (slice, rows): checked blocks in the type of the results."""
        xp = self.xp
        size = (
            HOST_BLOCK_ENTRIES
            if "cpu" in str(self.device).lower()
            else DEVICE_BLOCK_ENTRIES
        )
        for block in iter_row_blocks(self, size):
            # The array API standard requires slices within the bounds.
            place = slice(block.start, min(block.stop, len(self)))
            raw_rows = xp.astype(self._slice_device_rows(place), self.dtype, copy=False)
            sure = self._normalise_rows_or_none_if_invalid(raw_rows)
            # The host checks the rows and words the error.
            if sure is None:
                sure = self.check(self[place], kind=self.kind, first=place.start)
                if self.kind == "logits":
                    sure = raw_rows
                else:
                    # The host has repaired the sums of the rows.
                    sure = np.array(sure[:, 1:] if self.shape[1] == 1 else sure)
                    sure = xp.asarray(sure, dtype=self.dtype, device=self.device)
            yield place, sure

    def _normalise_rows_or_none_if_invalid(self, block):
        """Divide rows by their sums; return None if something may be wrong."""
        xp = self.xp
        values = block.detach() if hasattr(block, "detach") else block
        lowest = float(xp.min(values))
        highest = float(xp.max(values))
        if self.kind == "logits":
            if lowest >= -MAX_ABS_LOGIT and highest <= MAX_ABS_LOGIT:
                return block
            return None
        # NaN also makes this condition true.
        if not (lowest >= 0.0 and highest <= 1.0):
            return None
        if self.shape[1] == 1:
            return block
        total = xp.sum(
            values, axis=1, keepdims=True, dtype=get_widest_float(xp, self.device)
        )
        if not float(xp.max(xp.abs(total - 1.0))) <= self._sum_tolerance:
            return None
        return block / xp.astype(total, self.dtype, copy=False)


def read_device_scores(
    scores: Any, kind: Kind, check: Check, tolerance: float | None = None
) -> DeviceScores | None:
    """Return scores that stay on their device; None for what is read as a numpy array."""
    if isinstance(scores, DeviceScores):
        return scores
    xp = get_array_namespace_if_dispatched(scores)
    if xp is None:
        return None
    return DeviceScores(scores, kind, xp, check, tolerance)
