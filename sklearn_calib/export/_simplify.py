"""Tables with fewer knots."""

from dataclasses import replace
from typing import Any

import numpy as np

from .._argument_checks import is_real_number
from .._kernels._log_odds import subtract_sigmoids
from .._simplex_array import SMALLEST_PROBABILITY
from ..exceptions import invalid_input
from ..maps import (
    CalibrationMap,
    CallableMap,
    Mixture,
    PiecewiseLinear,
    SoftmaxAffine,
    Steps,
)
from ._document import to_document
from ._exported import ExportedMap
from ._tabulate import tabulate_curve

_MAX_SIMPLIFY_TOLERANCE = 0.1
_FIRST_SIMPLIFIED_BLOCK_KNOTS = 64
_MAX_UNTABULATED_MIXTURE_PARTS = 16
_MAX_SIGMOID_SLOPE = 0.25
_MIN_PIECE_WIDTH = 1e-290


def simplify(source: Any, tolerance: float = 1e-4) -> ExportedMap:
    """Make an exported map smaller: leave out knots and steps that hardly change it.

    Parameters
    ----------
    source : fitted recalibrator, Pipeline of them, ExportedMap or dict
        As for `to_dict`.
    tolerance : float in (0, 0.1], default=1e-4
        By how much P_1 of each table may change, at most. It holds everywhere, not only
        at the knots. With several classes the rows are then divided by their sums,
        which may enlarge it.

    Returns
    -------
    simplified : ExportedMap
        The same map with smaller tables; ``document["largest_error"]["simplify"]`` is
        the tolerance, added to that of earlier calls. Cubic curves and cells stay as
        they are; mixtures of more than 16 logistic maps, as `OnlineCalibration` has,
        become tables.

    Raises
    ------
    ValueError
        A tolerance outside (0, 0.1], and what `to_dict` rejects.

    Notes
    -----
    Kept knots keep their values. From a knot a line goes to the farthest one that
    leaves all between within the tolerance: one pass, O(m) if pieces are short.
    Steps are joined as long as their values differ by no more than twice the tolerance,
    and get the middle of these values, which is the smallest possible number of steps.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.export import simplify, to_json
    >>> from sklearn_calib.recalibrators import VennAbers
    >>> fitted = VennAbers().fit(*make_overconfident(2, 2000))
    >>> small = simplify(fitted, tolerance=1e-3)
    >>> len(to_json(small)) < 0.1 * len(to_json(fitted))
    True
    """
    if not is_real_number(tolerance) or not 0 < tolerance <= _MAX_SIMPLIFY_TOLERANCE:
        raise invalid_input(
            "simplify",
            expected=f"a tolerance above 0, up to {_MAX_SIMPLIFY_TOLERANCE:g}",
            got=repr(tolerance),
            hint="Take 1e-4",
        )
    document = to_document(source)
    root = _simplify_map(document.root, float(tolerance), len(document.classes))
    # Errors of repeated calls add up.
    before = document.largest_error.get("simplify", 0.0)
    errors = document.largest_error | {"simplify": before + float(tolerance)}
    simplified = replace(document, root=root, largest_error=errors).add_check_rows()
    return ExportedMap(simplified.to_dict())._parse_and_store_map()


def _simplify_map(node: CalibrationMap, tolerance: float, k: int) -> CalibrationMap:
    """Simplify steps, lines and long mixtures in a map of k classes."""
    if isinstance(node, Steps):
        return _merge_similar_steps(node, tolerance)
    if isinstance(node, PiecewiseLinear):
        return _drop_knots(node, tolerance)
    # The tolerance is divided between the table and its simplification.
    if isinstance(node, Mixture) and k == 2 and _is_long_sigmoid_mixture(node):
        return _drop_knots(_tabulate_map(node, tolerance / 2), tolerance / 2)
    if node.children():
        k = 2 if node.splits else k
        parts = (child and _simplify_map(child, tolerance, k) for child in node.parts)  # type: ignore[attr-defined]
        return replace(node, parts=tuple(parts))  # type: ignore[call-arg]
    return node


def _is_long_sigmoid_mixture(node):
    """Return whether a mixture of maps of the log-odds is longer than a table of it."""
    return len(node.parts) > _MAX_UNTABULATED_MIXTURE_PARTS and all(
        isinstance(child, SoftmaxAffine) for child in node.parts
    )


def _tabulate_map(node, tolerance):
    def compute_floored_mapped_proba(proba):
        return np.maximum(node(proba), SMALLEST_PROBABILITY)

    ends = [-child.least for child in node.parts if child.least is not None]
    points = np.unique([*(-end for end in ends), *ends])
    curve = CallableMap(
        input="logit",
        name="a mixture",
        predict=compute_floored_mapped_proba,
        points=points,
    )
    return replace(tabulate_curve(curve, tolerance), ties=False)


def _merge_similar_steps(node, tolerance):
    """Join neighbouring steps whose values differ by at most twice the tolerance."""
    starts = [0]
    values = []
    start = 0
    while start < len(node.values):
        rest = node.values[start:]
        end = 0
        size = _FIRST_SIMPLIFIED_BLOCK_KNOTS
        # Blocks of growing size: most steps are short, but some hold all values.
        while end == 0:
            block = rest[:size]
            low = np.minimum.accumulate(block)
            high = np.maximum.accumulate(block)
            far = np.flatnonzero(high - low > 2 * tolerance)
            if len(far) or size >= len(rest):
                end = int(far[0]) if len(far) else len(rest)
            size *= 2
        # The middle of the range of the values, so that each moves by at most the
        # tolerance.
        values.append((low[end - 1] + high[end - 1]) / 2)
        start += end
        starts.append(start)
    return replace(
        node,
        edges=node.edges[np.array(starts[1:-1], dtype=int) - 1],
        values=np.array(values),
    )


def _drop_knots(node, tolerance):
    """Drop knots without which the lines stay within the tolerance."""
    if node.link == "sigmoid":
        # A change of log-odds changes the probability by at most a quarter of it.
        tolerance /= _MAX_SIGMOID_SLOPE
    length = (
        subtract_sigmoids if node.scale == "proba" else lambda low, high: high - low
    )
    first = 0
    last = len(node.knots) - 1
    kept = [0]
    # The lines beyond the ends continue the first and the last piece.
    if node.domain is None:
        first = 1
        last = max(last - 1, 1)
        kept = [0, 1]
    knot = first
    while knot < last:
        knot = _find_last_knot(node, knot, last, tolerance, length)
        kept.append(knot)
    kept = np.unique(np.append(kept, len(node.knots) - 1))
    return replace(node, knots=node.knots[kept], values=node.values[kept])


def _find_last_knot(node, start, last, tolerance, length):
    """Find the last knot to which a line from `start` stays within the tolerance."""
    size = _FIRST_SIMPLIFIED_BLOCK_KNOTS
    while True:
        end = min(start + size, last)
        run = slice(start + 1, end + 1)
        width = length(node.knots[start], node.knots[run])
        # Differences of very large log-odds lose their digits; only ratios keep them.
        if not width[0] > _MIN_PIECE_WIDTH:
            return start + 1
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rise = node.values[run] - node.values[start]
            slope = rise / width
            # The cone of slopes that pass all knots so far within the tolerance.
            highest = np.minimum.accumulate((rise + tolerance) / width)
            lowest = np.maximum.accumulate((rise - tolerance) / width)
        # The line ends at a knot of the original table, so its own slope must be in the
        # cone.
        good = np.flatnonzero((slope <= highest) & (slope >= lowest))
        if (highest < lowest).any() or end == last:
            return start + 1 + int(good[-1]) if len(good) else start + 1
        size *= 2
