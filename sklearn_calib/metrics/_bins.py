"""How many bins: a number, or a rule that finds one."""

from typing import TYPE_CHECKING

import numpy as np

from .._kernels._binning import cube_root_bins
from .._typing import NumberOfBins
from ..exceptions import is_number, refuse

if TYPE_CHECKING:
    from . import Case


MAX_BINS = 10**6  # whose edges are held


def checked_bins(where: str, n_bins: NumberOfBins, case: "Case | None" = None) -> NumberOfBins:
    """The number of bins, that of the case for "cube_root"; or "sweep", which needs the labels."""
    if isinstance(n_bins, str) and n_bins == "sweep":
        return n_bins
    if isinstance(n_bins, str) and n_bins == "cube_root" and case is not None:
        return cube_root_bins(case.n_items)
    if (
        isinstance(n_bins, bool | str)
        or not isinstance(n_bins, int | np.integer)
        or not 1 <= n_bins <= MAX_BINS
    ):
        rule = "n_bins >= 1, 'cube_root' or 'sweep'"
        rule = f"n_bins <= {MAX_BINS}" if is_number(n_bins) and n_bins > MAX_BINS else rule
        refuse(where, rule, repr(n_bins), "Pass a whole number")
    return int(n_bins)
