"""Maps without a finite form become tables: straight pieces of the log-odds of the result."""

from dataclasses import replace

import numpy as np
from scipy.special import expit

from .._kernels._log_odds import round_to_36_bits
from ..exceptions import invalid_input
from ..maps import CalibrationMap, CallableMap, PiecewiseLinear

# Log-odds beyond this, in units of the largest point, get the value at this limit.
MAX_TABULATED_LOG_ODDS = 1e6
# The first grid has this step at log-odds 0 and widens with the log-odds.
_MIN_GRID_STEP = 1e-3
_N_GRID_POINTS = 1001
_MIN_TABULATION_ERROR = 1e-9
_MAX_TABULATION_ERROR = 0.1
_MAX_KNOTS = 1_000_000
_PROBE_POSITIONS = (1 / 16, 1 / 4, 1 / 2, 3 / 4, 15 / 16)
# The probes must stay below this fraction of the bound, because the curve may be
# farther away between them.
_PROBE_ERROR_FRACTION = 0.5


def tabulate_curves(
    root: CalibrationMap, bound: float | None
) -> tuple[CalibrationMap, float]:
    """Return the map with a table in place of each curve, and the largest error of a table.

    Parameters
    ----------
    root : CalibrationMap
    bound : float in [1e-9, 0.1], or None
        The largest difference of P_1 between a curve and its table, at log-odds of 36
        significant bits: a jump may move by rounding noise, 1.5e-11 of the score.

    Returns
    -------
    root : CalibrationMap
    error : float
        The bound; 0 if the map has no curve.

    Raises
    ------
    ValueError
        A map with curves if `bound` is None or out of its range, and a table of more
        than a million knots.

    Notes
    -----
    Between places where the map may jump, intervals are halved until the table is right
    to half the bound at five places of each; at jumps until the ends are neighbours
    among numbers of 36 bits.
    """
    if isinstance(root, CallableMap):
        return tabulate_curve(
            root, _check_tabulation_error_bound(bound, root.name)
        ), float(bound or 0)
    if not root.children():
        return root, 0.0
    parts = []
    largest = 0.0
    for curve in root.parts:  # type: ignore[attr-defined]
        table, error = (None, 0.0) if curve is None else tabulate_curves(curve, bound)
        parts.append(table)
        largest = max(largest, error)
    return replace(root, parts=tuple(parts)), largest  # type: ignore[call-arg]


def _check_tabulation_error_bound(bound, method_name) -> float:
    """Raise an error if the largest error of a table is missing or extreme."""
    if bound is None:
        raise invalid_input(
            expected="a method whose map has a finite form",
            got=method_name,
            hint="Pass tabulate=1e-6 for a table of it, right to that difference",
        )
    if not _MIN_TABULATION_ERROR <= bound <= _MAX_TABULATION_ERROR:
        raise invalid_input(
            "tabulate",
            expected=f"tabulate from {_MIN_TABULATION_ERROR:g} to {_MAX_TABULATION_ERROR:g}",
            got=repr(bound),
            hint="Take 1e-6",
        )
    return bound


def tabulate_curve(curve: CallableMap, bound: float) -> PiecewiseLinear:
    """Return the table of a curve."""
    value = curve.compute_log_odds
    piece = curve.find_pieces
    farthest = max(
        MAX_TABULATED_LOG_ODDS,
        MAX_TABULATED_LOG_ODDS * float(np.abs(curve.points).max(initial=0.0)),
    )
    widest = np.arcsinh(farthest / _MIN_GRID_STEP)
    # Fine near 0, where most probabilities are, and coarse outside.
    grid = _MIN_GRID_STEP * np.sinh(np.linspace(-widest, widest, _N_GRID_POINTS))
    x = np.unique(round_to_36_bits(np.append(grid, curve.points), 0))
    # One row each for the positions, the values and the pieces.
    knots = [np.array([x, value(x), piece(x)])]
    begin = knots[0][:, :-1]
    end = knots[0][:, 1:]
    total = len(x)
    # All pieces that are not good enough are halved at once, until none is left.
    while begin.shape[1]:
        low = begin[0]
        high = end[0]
        good = (begin[2] == end[2]) & (
            _compute_max_proba_error_by_piece(value, begin, end)
            <= _PROBE_ERROR_FRACTION * bound
        )
        middle = round_to_36_bits(low + (high - low) / 2, 0)
        # Neighbouring floats cannot be divided: a jump of the map stays between them.
        split = ~good & (low < middle) & (middle < high)
        x = middle[split]
        knots.append(np.array([x, value(x), piece(x)]))
        total += len(x)
        if total > _MAX_KNOTS:
            raise invalid_input(
                expected="a table of fewer knots",
                got=f"more than {_MAX_KNOTS} for {curve.name}",
                hint="Raise tabulate",
            )
        begin = np.hstack([begin[:, split], knots[-1]])
        end = np.hstack([knots[-1], end[:, split]])
    x, y, _ = np.hstack(knots)
    order = np.argsort(x)
    return PiecewiseLinear(
        input=curve.input,
        ties=True,
        link="sigmoid",
        domain=x[order][[0, -1]],
        knots=x[order],
        values=y[order],
    )


def _compute_max_proba_error_by_piece(value, begin, end):
    """Measure the largest error of probabilities at the probes of pieces."""
    low, left = begin[:2]
    high, right = end[:2]
    worst = np.zeros(len(low))
    for share in _PROBE_POSITIONS:
        x = round_to_36_bits(low + share * (high - low), 0)
        t = (x - low) / (high - low)
        straight = expit(left + t * (right - left))
        worst = np.maximum(worst, np.abs(straight - expit(value(x))))
    return worst
