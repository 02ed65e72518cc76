"""What the contracts of words share: strings of a signature, numbers of a result, comparisons."""

import dataclasses
import typing

import numpy as np


def strings(annotation):
    """The strings of all `Literal` inside an annotation."""
    if typing.get_origin(annotation) is typing.Literal:
        return [one for one in typing.get_args(annotation) if isinstance(one, str)]
    return [one for part in typing.get_args(annotation) for one in strings(part)]


#: Numbers that are not the quantity itself: what they do with weights is in tests of
#: their own.
UNCERTAIN = (
    *(
        "se",
        "error",
        "low",
        "high",
        "pvalue",
        "p_value",
        "interval",
        "band",
        "variance",
        "level",
    ),
    *(
        "n_",
        "sigma",
        "effective",
        "std",
        "null",
        "count",
        "size",
        "replicates",
        "draws",
    ),
    *("confidence", "members"),  # positions of rows
)


def numbers(result, name="", exact=False):
    """(path, array) of all numbers that a result holds; `exact` leaves out the uncertain ones."""
    last = name.rpartition(".")[2]
    if exact and any(
        last == word or last.startswith(word) or f"_{word}" in last
        for word in UNCERTAIN
    ):
        return
    if isinstance(result, dict):
        parts = result.items()
    elif hasattr(result, "_fields"):
        parts = ((field, getattr(result, field)) for field in result._fields)
    elif dataclasses.is_dataclass(result) and not hasattr(result, "get_params"):
        parts = ((f.name, getattr(result, f.name)) for f in dataclasses.fields(result))
    elif isinstance(result, list | tuple) and not all(
        np.isscalar(one) for one in result
    ):
        parts = (
            (getattr(one, "quantity", str(i)), one) for i, one in enumerate(result)
        )
    elif type(result).__module__.startswith("sklearn_calib."):
        parts = vars(result).items()
    else:
        array = np.asarray(result) if result is not None else np.array([])
        if array.dtype.kind in "fiub" and array.size:
            yield name, array.astype(float)
        return
    for part, one in parts:
        if part[0] != "_":
            yield from numbers(one, f"{name}.{part}", exact)


def same(one, other, rtol=1e-7, exact=True, but=(), turned=()):
    first, second = dict(numbers(one, exact=exact)), dict(numbers(other, exact=exact))
    assert first and first.keys() == second.keys()
    for name, value in first.items():
        if name in but:
            continue
        value = value[::-1, ::-1] if name in turned else value
        np.testing.assert_allclose(
            second[name], value, rtol=rtol, atol=1e-9, err_msg=name
        )


def differ(one, other):
    first, second = dict(numbers(one)), dict(numbers(other))
    return any(not np.array_equal(first[name], second.get(name)) for name in first)


#: Parameters with which recalibrators fit in milliseconds that by default do not.
QUICKER = {
    "RestrictedPolynomialRegression": {"degree": 3, "cv": 2},
    "StackedCalibration": {"recalibrators": ("temperature", "isotonic"), "cv": 2},
}
