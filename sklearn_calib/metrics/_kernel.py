"""The kernel calibration error, of two-class problems and of whole vectors of probabilities."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from .._argument_checks import check_choice
from .._kernels._pairwise_kernel import (
    average_kernel_over_adjacent_pairs,
    average_kernel_over_pairs,
    compute_adjacent_pair_kernel,
    compute_median_bandwidth,
    compute_pair_kernel,
)
from ..exceptions import invalid_input
from ._measure import BinaryOrCanonicalOptions, binary_measure

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import BinaryProblem, Predictions

_ESTIMATOR_NAMES = ("auto", "biased", "unbiased", "linear")
# The kernel of all pairs takes 200 MB then.
_MAX_PAIRED_ROWS = 5000


def _compute_squared_canonical_error(
    predictions: "Predictions", *, kernel="laplace", bandwidth=1.0, estimator="auto"
) -> float:
    """Return the squared error of whole vectors."""
    _check_options(kernel, estimator)
    if estimator == "auto":
        estimator = "unbiased" if predictions.items is None else "biased"
    proba = np.asarray(predictions.proba)
    row_index = None
    if estimator == "biased":
        # Rows with equal vectors add up, so the kernel is computed for distinct ones.
        proba, row_index = predictions.derive_from_proba(_index_distinct_rows)
    else:
        predictions.check_single_labels(
            "pairs of different rows", "Take estimator='biased'"
        )
    n = len(proba)
    if n < 2 and estimator != "biased":
        raise invalid_input(
            expected="at least two rows", got=f"{n}", hint="Take estimator='biased'"
        )
    if n > _MAX_PAIRED_ROWS and estimator != "linear":
        raise invalid_input(
            expected=f"at most {_MAX_PAIRED_ROWS} rows for all of their pairs",
            got=f"{n}",
            hint="Pass a random sample of the rows, or estimator='linear'",
        )
    if isinstance(bandwidth, str) and bandwidth == "median":
        # Bytes can be the key of a stored result, unlike an array.
        items = None if predictions.items is None else predictions.items.tobytes()
        bandwidth = predictions.derive_from_proba(_find_median_distance, items)
    _check_bandwidth(bandwidth, " or 'median'")
    compute_gram = {
        "linear": _compute_kernel_by_disjoint_row_pair,
        "unbiased": compute_pair_kernel,
        "biased": _compute_distinct_row_kernel,
    }[estimator]
    gram = predictions.derive_from_proba(compute_gram, float(bandwidth))
    # Products of large weights would overflow.
    weight = predictions.weight / predictions.weight.max()
    if row_index is not None:
        sums = np.zeros_like(proba)
        np.add.at(sums, (row_index, predictions.codes), weight)
        weight = sums.sum(axis=1)
        residual = sums / weight[:, None] - proba
        return average_kernel_over_pairs(gram, residual, weight, True)
    residual = -proba
    residual[np.arange(n), predictions.codes] += 1
    if estimator == "linear":
        return average_kernel_over_adjacent_pairs(gram, residual, weight)
    return average_kernel_over_pairs(gram, residual, weight, False)


def _index_distinct_rows(proba):
    rows, row_index = np.unique(np.asarray(proba), axis=0, return_inverse=True)
    return rows, row_index.ravel()


def _compute_distinct_row_kernel(proba, bandwidth):
    return compute_pair_kernel(_index_distinct_rows(proba)[0], bandwidth)


def _find_median_distance(proba, item_number_bytes):
    """Return the median distance of rows.

    `item_number_bytes` are the item numbers of soft labels as bytes, which can be
    hashed: an item counts once.
    """
    rows = slice(None)
    if item_number_bytes is not None:
        rows = np.unique(
            np.frombuffer(item_number_bytes, dtype=np.intp), return_index=True
        )[1]
    return compute_median_bandwidth(np.asarray(proba)[rows])


def _compute_kernel_by_disjoint_row_pair(proba, bandwidth):
    return compute_adjacent_pair_kernel(np.asarray(proba), bandwidth)


@binary_measure(
    range=(-2.0, 2.0),
    in_report=False,
    poolable=True,
    joint=_compute_squared_canonical_error,
)
def kernel_calibration_error(
    problem: "BinaryProblem",
    *,
    kernel: Literal["laplace"] = "laplace",
    bandwidth: float | Literal["median"] = 1.0,
    estimator: Literal["auto", "biased", "unbiased", "linear"] = "auto",
    **shared: "Unpack[BinaryOrCanonicalOptions]",
) -> float:
    """Kernel calibration error with the Laplace kernel, without bins, computed exactly.

    It is the norm of the mean residual in the Hilbert space of the Laplace kernel.

    With ``multiclass="canonical"`` it is the squared error of the whole vectors of
    probabilities (SKCE), the strongest notion of calibration; see the notes.

    Parameters
    ----------
    {shared_parameters}
    kernel : {"laplace"}, default="laplace"
        exp(-abs(p - q) / bandwidth), of whole vectors with half the sum of the absolute
        differences. With it the error of two classes is 0 only for calibrated
        predictions, and polynomially related to the distance to calibration; not so
        with the Gaussian kernel.
    bandwidth : float or "median", default=1.0
        Above 0. "median", of whole vectors only: the median distance of all pairs of
        rows, or of those of 2000 rows evenly spaced among more.
    estimator : {"auto", "biased", "unbiased", "linear"}, default="auto"
        "biased", the default of two-class problems: the mean over all pairs of rows,
        those of a row with itself included. Of whole vectors only: "unbiased", the
        default there but for soft labels: without these; "linear": over the pairs of
        rows 1 and 2, 3 and 4, and so on; unbiased as well, much less precise, but of
        any number of rows.

    Returns
    -------
    error : float
        Perfect 0. Of two-class problems in [0, 1]: sqrt(sum_ij r_i r_j k(p_i, p_j)) of
        the weighted residuals; it includes the terms i = j and is of the order n^-1/2
        for calibrated predictions. Of whole vectors the mean of k(p_i, p_j) (e_i - p_i)
        . (e_j - p_j), e_i the true class as a vector: in [-2, 2], "biased" at least 0.
        The others are below 0 for about half of all calibrated predictions.

    Raises
    ------
    ValueError
        An invalid bandwidth, or another estimator without ``multiclass="canonical"``;
        there less than two rows, or more than 5000, "biased" 5000 different ones, of
        which all pairs are used.

    Notes
    -----
    Two-class problems: all pairs are summed by one recursion over the sorted scores.
    Cost: O(n log n).

    Whole vectors: of two classes "biased" is twice the square of the two-class error.
    Weights are of independent rows, not counts of repeated ones: a pair weighs the
    product of its weights. Cost O(n^2 k), "linear" O(n k); the kernel of 5000 rows
    takes 200 MB. For a p-value call ``calibration_test(y, p,
    statistic="kernel_calibration_error", multiclass="canonical", bandwidth="median")``,
    which is exact and computes one kernel for all draws. The bounds of the paper of
    2019 are so wide that tests by them hardly ever reject.

    References
    ----------
    Kumar, Sarawagi, Jain (2018), "Trainable calibration measures for neural networks
    from kernel mean embeddings". Blasiok, Gopalan, Hu, Nakkiran (2023), section 8.
    Whole vectors: Widmann, Lindsten, Zachariah (2019), "Calibration tests in
    multi-class classification", section 4 and table 1; Widmann, Lindsten, Zachariah
    (2021), "Calibration tests beyond classification"; Marx, Zalouk, Ermon (2023),
    "Calibration by distribution matching".

    Examples
    --------
    >>> from sklearn_calib.metrics import kernel_calibration_error
    >>> round(kernel_calibration_error([0, 1], [0.25, 0.75], bandwidth=0.5), 4)
    0.1405
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> kernel_calibration_error(y, proba, multiclass="canonical", bandwidth="median") > 0.01
    True
    """
    from .._kernels._score_sums import sum_residual_products_by_laplace_kernel

    _check_options(kernel, estimator)
    if estimator not in ("auto", "biased"):
        raise invalid_input(
            expected="estimator 'auto' or 'biased' for two-class problems",
            got=repr(estimator),
            hint="Pass multiclass='canonical' too, which treats two classes as well",
        )
    _check_bandwidth(bandwidth)
    cells = problem.cells
    square = sum_residual_products_by_laplace_kernel(
        cells.score, cells.residual, float(bandwidth)
    )
    return min(np.sqrt(max(square, 0.0)), 1.0)


def _check_options(kernel, estimator):
    if kernel != "laplace":
        raise invalid_input(
            "kernel",
            expected="kernel 'laplace'",
            got=repr(kernel),
            hint="Leave the default",
        )
    check_choice("estimator", estimator, _ESTIMATOR_NAMES)


def _check_bandwidth(bandwidth, alternative=""):
    is_real = isinstance(bandwidth, int | float | np.number)
    is_real = is_real and not isinstance(bandwidth, bool)
    if not is_real or not 0 < bandwidth < np.inf:
        raise invalid_input(
            expected=f"a finite bandwidth above 0{alternative}",
            got=repr(bandwidth),
            hint="Leave the default",
        )
