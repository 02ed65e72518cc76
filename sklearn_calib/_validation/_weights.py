"""Sample weights: read, checked and scaled to a size whose sums and squares are safe.

Weights that are whole numbers up to 2^53, or within 1e-6 of them (as sums and quotients
leave them), are counts: a weight of 2 is a row given twice. Of all others only the
ratios matter, to most methods and to all measures.
"""

import numpy as np

from .._count_weights import are_counts
from .._typing import ArrayLike, FloatArray
from ..exceptions import invalid_input
from ._arrays import read_numeric_array

# No integer of a numpy array is above 2^64.
_MAX_INTEGER_BITS = 64
# Lighter rows weigh this much of the largest weight (4e-121); squares stay exact.
MIN_RELATIVE_WEIGHT = 2.0**-400
# So many weights are looked at first: they mostly show which kind all of them are.
N_PROBED_WEIGHTS = 100
# Bounds of the sum of weights whose unit matters.
MIN_WEIGHT_SUM = 1e-100
MAX_WEIGHT_SUM = 1e100


def canonical_weight(
    sample_weight: ArrayLike | None, n_samples: int, *, keeps_unit: bool = False
) -> FloatArray:
    """Turn sample weights into a checked float64 array; by default every weight is 1.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), or None
        Numbers >= 0, not all of them 0. Booleans are weights of 0 and 1.
    n_samples : int
    keeps_unit : bool, default=False
        Whether other weights are measured in the same unit: those of later blocks of
        rows, or a penalty. Then weights come back as they are, and those that cannot be
        added up safely, outside 1e-100 to 1e100, are rejected.

    Returns
    -------
    weight : ndarray of shape (n_samples,), float64
        Where the largest is outside 2^-65 to 2^64 (some 3e-20 to 2e19) all are
        multiplied by the power of two that moves it to the nearest end: this is exact,
        so a result that depends on ratios does not change; to what depends on counts,
        so many rows are as good as infinitely many, and so few as none. Rows that weigh
        less than 2^-400 (4e-121) of the heaviest weigh as much as that.

    Raises
    ------
    ValueError
        A wrong length; negative, missing, masked or infinite weights; none above 0.
    TypeError
        Weights that are not real numbers.

    Examples
    --------
    >>> from sklearn_calib._validation import canonical_weight
    >>> canonical_weight([0.5, 2, 0], 3).tolist()
    [0.5, 2.0, 0.0]
    >>> canonical_weight([2.0**1000, 2.0**1001], 2) / 2.0**62
    array([1., 2.])
    """
    weight = read_raw_weight(sample_weight, n_samples, keeps_unit=keeps_unit)
    return weight if keeps_unit else _scale_and_raise_weights_to_safe_range(weight)


def read_weight_and_unit(
    sample_weight: ArrayLike, n_samples: int
) -> tuple[FloatArray, float]:
    """Return the weights of a measure, and the factor that restores the given ones.

    If all that are not 0 are equal, and are not counts, they become ones: a constant
    weight gives the digits that no weight gives.
    """
    raw_weight = read_raw_weight(sample_weight, n_samples)
    largest = raw_weight.max()
    if _are_all_zero_or_value(raw_weight, largest) and not are_counts(raw_weight):
        return (raw_weight > 0).astype(float), float(largest)
    weight = _scale_and_raise_weights_to_safe_range(raw_weight)
    return weight, float(largest / weight.max())


def _are_all_zero_or_value(weight, value):
    """Return whether all weights are zero or `value`; the first rows are checked first."""
    return all(
        ((values == value) | (values == 0)).all()
        for values in (weight[:N_PROBED_WEIGHTS], weight)
    )


def read_raw_weight(
    sample_weight: ArrayLike | None, n_samples: int, *, keeps_unit: bool = False
) -> FloatArray:
    """Validate weights as `canonical_weight` does, but keep their unit."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = read_numeric_array(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(n_samples, float(weight))
    if weight.shape != (n_samples,):
        raise invalid_input(
            "sample_weight",
            expected=f"one sample_weight per row, shape ({n_samples},), a 1d array",
            got=f"shape {weight.shape}",
            hint="Check the rows that the weights belong to",
        )
    weight = weight.astype(float)
    check_weights(weight, checks_size_limits=keeps_unit)
    if not weight.any():
        raise invalid_input(
            "sample_weight",
            expected="at least one sample_weight above 0",
            got="all-zero weights",
            hint="Pass sample_weight=None for equal weights",
        )
    return np.rint(weight) if are_counts(weight) else weight


def check_weights(weight: FloatArray, *, checks_size_limits: bool) -> None:
    """Raise ValueError for negative, missing or infinite weights.

    With `checks_size_limits` also for weights whose sum would not be safe.
    """
    if (
        len(weight)
        and weight.min() >= MIN_WEIGHT_SUM
        and weight.max() <= MAX_WEIGHT_SUM
    ):
        # Nearly all weights are of this kind. NaN fails both comparisons.
        return
    bad = ~np.isfinite(weight) | (weight < 0)
    expected = " >= 0 and finite"
    hint = "Drop those rows or give them weight 0"
    if checks_size_limits and not bad.any():
        bad = (weight > MAX_WEIGHT_SUM) | ((weight < MIN_WEIGHT_SUM) & (weight > 0))
        expected = f" of 0 or from {MIN_WEIGHT_SUM:g} to {MAX_WEIGHT_SUM:g}"
        hint = (
            "Divide all weights by the same number, or give the lightest rows weight 0"
        )
    if bad.any():
        row = int(bad.argmax())
        raise invalid_input(
            "sample_weight",
            expected=("sample_weight" + expected),
            got=f"{weight[row]:g}",
            hint=hint,
            row=row,
        )


def _scale_and_raise_weights_to_safe_range(weight):
    """Scale weights by a power of two and raise the smallest, so that sums stay finite."""
    # The exponent satisfies 2^(exponent - 1) <= the largest weight < 2^exponent.
    exponent = int(np.frexp(weight.max())[1])
    if abs(exponent) > _MAX_INTEGER_BITS:
        weight = np.ldexp(
            weight,
            int(np.clip(exponent, -_MAX_INTEGER_BITS, _MAX_INTEGER_BITS)) - exponent,
        )
    if weight.min() >= MIN_RELATIVE_WEIGHT * weight.max():
        return weight
    light = (weight > 0) & (weight < MIN_RELATIVE_WEIGHT * weight.max())
    if light.any():
        return np.where(light, MIN_RELATIVE_WEIGHT * weight.max(), weight)
    return weight


def get_rows_per_weight(weight: FloatArray) -> float:
    """Return the number of rows that a weight of 1 stands for, for criteria that count rows.

    Whole numbers, up to 2^53, are counts, so 1: a weight of 2 is a row given twice. Of
    other weights only the ratios matter: they add up to Kish's effective number of
    rows, (sum w)^2 / sum w^2. No rule could do both for all weights: one that ignores a
    common factor takes n ones and n twos for the same, which are n rows and 2 n.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib._validation import get_rows_per_weight
    >>> get_rows_per_weight(np.array([1.0, 3.0])), get_rows_per_weight(np.array([0.5, 0.5]))
    (1.0, 2.0)
    """
    if are_counts(weight):
        return 1.0
    largest = weight.max()
    share = weight / largest
    return float(share.sum() / (share @ share) / largest)
