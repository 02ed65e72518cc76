"""Validation of all input: scores become rows on the simplex, labels become codes.

Everything behind this file sees clean float64 arrays only. The two kinds of score are declared
by the caller and never guessed from the values.
"""

import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from ._simplex import SimplexArray, log_proba, two_classes_of_margin, with_log
from .exceptions import refuse

__all__ = [
    "SimplexArray",
    "canonical_labels",
    "canonical_proba",
    "canonical_weight",
    "log_proba",
]

_MAX_LOGIT = 1e150  # differences of larger ones overflow
_MAX_COUNTED_RANGE = 65_536
SLACK = 1e-6  # what rounding may add to a row's sum in float32; float16 gets more


def canonical_proba(scores, *, kind="proba", n_classes=None, where="canonical_proba"):
    """Turn scores into an array whose rows are probability vectors.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
        One column per class, in the order of the sorted labels. A single column, or one dimension,
        is the score of the *second* class: its probability with ``kind="proba"``, its log-odds (a
        ``decision_function``) with ``kind="logits"``. Lists, numpy arrays, pandas and polars
        tables of any real numeric type are accepted and never modified.
    kind : {"proba", "logits"}, default="proba"
        What the scores are. With ``"logits"`` the softmax is taken (the sigmoid for one column).
    n_classes : int, default=None
        The number of classes expected, where the caller knows it.
    where : str, default="canonical_proba"
        Who is asking: the opening of every error message.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes), float64
        Finite, in [0, 1], rows summing to 1 within 1e-15. For logits, a `SimplexArray`, which
        also carries the logarithms without underflow.

    Raises
    ------
    TypeError
        Sparse, text, object or complex input.
    ValueError
        Empty, more than two dimensions, NaN or infinite, negative, above 1, or rows that do not
        sum to 1. Rounding of 1e-6 (float16: 4e-3) is forgiven and divided out.

    Notes
    -----
    Cost: O(n_samples * n_classes). float32 is raised to float64 exactly.

    Examples
    --------
    >>> from sklearn_calib import canonical_proba
    >>> canonical_proba([0.25, 0.5])
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> canonical_proba([[0.0, 0.0, 0.0]], kind="logits").round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """
    if kind not in ("proba", "logits"):
        refuse(where, "kind 'proba' or 'logits'", repr(kind), "Say which of the two the scores are")
    if kind == "proba":
        return _check_columns(two_columns(valid_proba(scores, where=where)), n_classes, where)
    return _check_columns(_softmax(_logit_table(scores, where)), n_classes, where)


def valid_proba(scores, *, where="valid_proba"):
    """As `canonical_proba` of probabilities, but a single column stays single."""
    if isinstance(scores, SimplexArray) and scores._log is not None:
        return scores
    return _simplex_from_proba(*_numeric_table(scores, where), where)


def two_columns(proba):
    """Probabilities of both classes where only those of the second are given."""
    return proba if proba.shape[1] > 1 else np.hstack([1.0 - proba, proba])


def canonical_logits(scores, *, where="canonical_logits"):
    """Logits as a float64 array with one column per class, without taking the softmax.

    For computations that need only differences of logits; the rules are those of
    `canonical_proba` with ``kind="logits"``.
    """
    table = _logit_table(scores, where)
    return table if table.shape[1] > 1 else np.hstack([np.zeros_like(table), table])


def _logit_table(scores, where):
    table, _ = _numeric_table(scores, where)
    cure = "For log-probabilities with -inf pass their exponentials with kind='proba'"
    _check_finite(table, where, cure)
    largest = max(table.max(), -table.min())
    if largest > _MAX_LOGIT:
        refuse(
            where,
            f"logits of size at most {_MAX_LOGIT:g}",
            f"{largest:g}",
            "Divide all logits by one constant",
        )
    return table


def _check_finite(table, where, cure):
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        refuse(where, "finite scores", f"{table[row, column]} in row {row}, column {column}", cure)


def _numeric_table(scores, where):
    """Any array-like as a two-dimensional float64 array, with the dtype it came in."""
    if sparse.issparse(scores):
        refuse(
            where,
            "a dense array of scores",
            "a sparse matrix",
            "Call .toarray() on it first",
            error=TypeError,
        )
    raw = np.asarray(scores)
    if raw.dtype.kind in "OUSVMmc" and raw.size:
        refuse(
            where,
            "numbers as scores",
            f"dtype {raw.dtype}",
            "Convert the columns first, for instance with .astype(float)",
            error=TypeError,
        )
    if raw.ndim not in (1, 2):
        refuse(
            where,
            "one or two dimensions of scores",
            f"{raw.ndim} dimensions {raw.shape}",
            "Reshape to (n_samples, n_classes)",
        )
    if raw.shape[0] == 0 or raw.size == 0:
        refuse(
            where,
            "at least one row and one column of scores",
            f"shape {raw.shape}, 0 sample(s)",
            "Check the selection that produced this table (a minimum of 1 is required)",
        )
    table = raw.astype(np.float64, copy=False)
    return (table[:, None] if raw.ndim == 1 else table), raw.dtype


def _simplex_from_proba(table, dtype, where):
    slack = max(SLACK, 4 * np.finfo(dtype).eps) if dtype.kind == "f" else SLACK
    cure = "For logits call canonical_proba(scores, kind='logits') first"
    lowest, highest = table.min(), table.max()
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        _check_finite(table, where, "Drop or repair those rows first")
    if lowest < -slack or highest > 1 + slack:
        row, column = np.argwhere((table < -slack) | (table > 1 + slack))[0]
        refuse(
            where,
            "probabilities in [0, 1]",
            f"{table[row, column]:.6g} in row {row}, column {column}",
            cure,
        )
    if lowest < 0 or highest > 1:
        table = np.clip(table, 0.0, 1.0)
    if table.shape[1] == 1:
        return table
    total = table.sum(axis=1)
    error = np.abs(total - 1.0)
    worst = int(error.argmax())
    if error[worst] > slack:
        refuse(where, "rows that sum to 1", f"row {worst}, which sums to {total[worst]:.6g}", cure)
    if error[worst] > 1e-15:
        off = error > 1e-15
        table = table.copy()
        table[off] /= total[off, None]
    return table


def _softmax(table):
    if table.shape[1] == 1:
        return two_classes_of_margin(table[:, 0])
    # softmax and its logarithm from one exponential; the transposed copy makes the maximum fast
    log = table - np.ascontiguousarray(table.T).max(axis=0)[:, None]
    proba = np.exp(log)
    total = proba @ np.ones(proba.shape[1])
    proba /= total[:, None]
    log -= np.log(total)[:, None]
    return with_log(proba, log)


def _check_columns(proba, n_classes, where):
    if n_classes is not None and proba.shape[1] != n_classes:
        refuse(
            where,
            f"{n_classes} columns of scores, one per class",
            f"{proba.shape[1]}",
            "Pass the columns in the order of classes_",
        )
    return proba


def canonical_labels(y, *, classes=None, where="canonical_labels"):
    """Encode labels as positions in a list of classes.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Integers, text, bytes, booleans or whole floats. A pandas index is ignored.
    classes : array-like of shape (n_classes,), default=None
        The classes, in the order of the score columns; by default the sorted labels of `y`.
    where : str, default="canonical_labels"
        Who is asking: the opening of every error message.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n_samples,), intp
        ``classes[codes]`` are the labels.

    Raises
    ------
    ValueError
        Missing or continuous labels, more than one dimension, labels that are not in `classes`,
        repeated classes.
    TypeError
        Labels of types that cannot be compared.

    Examples
    --------
    >>> from sklearn_calib.canonical import canonical_labels
    >>> classes, codes = canonical_labels(["no", "yes", "no"])
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [0, 1, 0])
    """
    if y is None:
        refuse(
            where,
            "labels y",
            "None",
            "This estimator requires y to be passed, but the target y is None",
        )
    labels = _label_array(y, where)
    known, codes = _unique(labels, where)
    if known.dtype.kind == "f" and np.any(known != np.floor(known)):
        refuse(
            where,
            "class labels",
            "fractions (Unknown label type: continuous)",
            "Turn the target into classes first",
        )
    if classes is None:
        return known, codes
    wanted = _label_array(classes, where)
    ordered, position = _unique(wanted, where)
    if len(ordered) != len(wanted):
        refuse(where, "different classes", f"{wanted.tolist()}", "Name each class once")
    kinds = ordered.dtype.kind, known.dtype.kind
    if kinds[0] != kinds[1] and set(kinds) & set("OUS"):  # text and numbers do not compare
        ordered, known = ordered.astype(object), known.astype(object)
    unknown = ~np.isin(known, ordered)
    if unknown.any():
        label = known[unknown][0]
        refuse(
            where,
            f"labels among {wanted.tolist()}",
            f"{label!r} in row {np.flatnonzero(codes == np.flatnonzero(unknown)[0])[0]}",
            "Pass all classes, or drop those rows",
        )
    column_of_ordered = np.empty(len(wanted), dtype=np.intp)
    column_of_ordered[position] = np.arange(len(wanted))
    return wanted, column_of_ordered[np.searchsorted(ordered, known)][codes]


def _label_array(y, where):
    if sparse.issparse(y):
        refuse(where, "dense labels", "a sparse matrix", "Call .toarray()", error=TypeError)
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            f"A column-vector y was passed when a 1d array was expected by {where}. "
            "Please change the shape of y to (n_samples,), for example with .ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        labels = labels.ravel()
    if labels.ndim != 1:
        refuse(
            where,
            "one label per row, a 1d array",
            f"labels of shape {labels.shape}",
            "For one-hot labels pass y.argmax(axis=1)",
        )
    if labels.size == 0:
        refuse(where, "at least one label", "none", "Check the selection of the rows")
    return labels


def _unique(labels, where):
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        missing = np.fromiter((_is_missing(v) for v in labels), dtype=bool, count=len(labels))
    else:
        missing = np.zeros(0, dtype=bool)
    if missing.any():
        row = int(missing.argmax())
        refuse(
            where,
            "a label in every row",
            f"{labels[row]} in row {row} (labels must not hold NaN or infinity)",
            "Drop the rows without a label",
        )
    if labels.dtype.kind in "iub":
        lowest, highest = int(labels.min()), int(labels.max())
        if highest - lowest == 1:  # both are present
            both = np.array([lowest, highest]).astype(labels.dtype)
            return both, np.subtract(labels, lowest, dtype=np.intp, casting="unsafe")
        if highest - lowest < _MAX_COUNTED_RANGE:  # counting beats sorting
            offset = labels.astype(np.intp) - lowest
            present = np.flatnonzero(np.bincount(offset))
            position = np.zeros(highest - lowest + 1, dtype=np.intp)
            position[present] = np.arange(len(present))
            return (present + lowest).astype(labels.dtype), position[offset]
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in labels})
        refuse(
            where,
            "labels of one type",
            " and ".join(kinds),
            "Convert them, e.g. to text",
            error=TypeError,
        )


def _is_missing(value):
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and not np.isfinite(value))
    )


def check_same_length(codes, proba, where):
    """Raise ValueError where labels and scores have different numbers of rows."""
    if len(codes) != len(proba):
        refuse(
            where,
            "as many labels as rows of scores",
            f"{len(codes)} labels and {len(proba)} rows (inconsistent numbers of samples)",
            "Check that both come from the same selection",
        )


def canonical_weight(sample_weight, n_samples, *, where="canonical_weight"):
    """Sample weights as a float64 array; ones by default.

    Raises ValueError for a wrong length, negative, missing or infinite weights, or none above 0.
    """
    if sample_weight is None:
        return np.ones(n_samples)
    weight = np.asarray(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_samples, float(weight))
    if weight.shape != (n_samples,):
        refuse(
            where,
            f"one sample_weight per row, shape ({n_samples},), a 1d array",
            f"shape {weight.shape}",
            "Check the rows that the weights belong to",
        )
    weight = weight.astype(np.float64)
    bad = ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        row = int(bad.argmax())
        refuse(
            where,
            "sample_weight >= 0 and finite",
            f"{weight[row]:g} in row {row}",
            "Drop those rows or give them weight 0",
        )
    if not weight.any():
        refuse(
            where,
            "at least one sample_weight above 0",
            "all-zero weights",
            "Pass sample_weight=None for equal weights",
        )
    return weight


def rows_per_weight(weight):
    """The number of rows that a weight of 1 stands for, for criteria that ask how many there are.

    Whole numbers, up to 2^53, are counts, so 1: a weight of 2 is a row given twice. Of other
    weights only the ratios matter: they add up to Kish's effective number of rows, (sum w)^2 /
    sum w^2. No rule could do both for all weights: one that ignores a common factor takes n ones
    and n twos for the same, which are n rows and 2 n.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.canonical import rows_per_weight
    >>> rows_per_weight(np.array([1.0, 3.0])), rows_per_weight(np.array([0.5, 0.5]))
    (1.0, 2.0)
    """
    largest = weight.max()
    if largest <= 2.0**53 and (weight == np.floor(weight)).all():
        return 1.0
    share = weight / largest
    return float(share.sum() / (share @ share) / largest)
