"""Checks of arguments, each of which raises an error that names the argument."""

import math
from collections.abc import Iterable
from importlib import import_module
from numbers import Real
from typing import Any, TypeGuard

from ._spelling import suggest_name
from .exceptions import InvalidInputError, invalid_input


def unknown_name_error(
    what: str,
    name: object,
    choices: Iterable[object],
    fallback_hint: str = "Check the spelling",
    error: type[Exception] = ValueError,
    *,
    argument: str | None = None,
) -> InvalidInputError:
    """Return the error to raise for a name that is not known; it suggests the nearest one."""
    names = [str(other) for other in choices]
    expected = f"{what} among {', '.join(names)}" if names else f"no {what}"
    if argument is None and what.isidentifier():
        argument = what
    return invalid_input(
        argument,
        expected=expected,
        got=repr(name)[:200],
        hint=suggest_name(name, names, fallback_hint),
        error=error,
    )


def check_choice(
    what: str,
    value: object,
    choices: Iterable[str],
    fallback_hint: str = "Check the spelling",
) -> None:
    """Raise ValueError unless the value is one of the known names."""
    if not (isinstance(value, str) and value in choices):
        raise unknown_name_error(what, value, choices, fallback_hint)


def is_real_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number; True and a duration of numpy are not."""
    # bool and timedelta64 are registered as real numbers.
    return isinstance(value, Real) and type(value).__name__ not in (
        "bool",
        "timedelta64",
    )


def is_finite_whole_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number without a fraction, also if it is a float."""
    return is_real_number(value) and abs(value) < math.inf and value == int(value)


def is_scalar_equal(value: object, other: object) -> bool:
    """Return whether a value is this text or label; arrays and missing values are not."""
    try:
        # An old numpy warns if an array is compared with a text.
        same = not getattr(value, "ndim", 0) and value == other
    except (TypeError, ValueError):
        # Numbers of other libraries may not be comparable with a text.
        return False
    # A comparison with pandas.NA gives NA.
    return type(same).__name__ in ("bool", "bool_") and bool(same)


def to_float_or_nan(value: object) -> float:
    """Return a number as a float, and NaN for anything else."""
    return float(value) if is_real_number(value) else math.nan


def check_level(level: object) -> None:
    """Raise ValueError unless a confidence level is a number between 0 and 1."""
    check_between(
        "level",
        level,
        0,
        1,
        expected="a level between 0 and 1",
        hint="Pass for instance 0.95",
    )


def check_between(
    argument: str, value: object, low: float, high: float, *, expected: str, hint: str
) -> None:
    """Raise ValueError unless the value is a number strictly between two others."""
    if not (is_real_number(value) and low < value < high):
        raise invalid_input(argument, expected=expected, got=repr(value), hint=hint)


def validate_count(
    value: object, name: str, minimum: int = 1, hint: str = "Leave the default"
) -> int:
    """Return a whole number of at least `minimum` as an int; raise ValueError for anything else.

    Numbers of repetitions and of stored values also have an upper limit.
    """
    got = repr(value)[:60]
    if not (is_finite_whole_number(value) and value >= minimum):
        raise invalid_input(
            name, expected=f"a whole number {name} >= {minimum}", got=got, hint=hint
        )
    if value > _MAX_COUNTS.get(name, math.inf):
        raise invalid_input(
            name,
            expected=f"a whole number {name} <= {_MAX_COUNTS[name]}",
            got=got,
            hint=hint,
        )
    return int(value)


#: Counts with which a call ends within a day.
_MAX_COUNTS = {
    "n_resamples": 10**6,
    "n_splits": 1000,
    "n_bins": 10**6,
    "n_samples": 10**9,
}


def check_param_magnitudes(params: dict[str, Any]) -> None:
    """Raise ValueError if a parameter is so large or so near 0 that arithmetic loses it."""
    for name, value in params.items():
        got = repr(value)[:60]
        if isinstance(value, Real) and not _is_64_bit_python_or_numpy_number(value):
            raise invalid_input(
                name,
                expected=f"{name} as a float or an int",
                got=got,
                hint="Pass float(...) of it",
            )
        # A mean probability has bounds of its own, and an error score may be NaN.
        if name in ("mean", "error_score") or not is_real_number(value):
            continue
        size = abs(float(value))
        in_range = _MIN_PARAMETER_MAGNITUDE <= size <= _MAX_PARAMETER_MAGNITUDE
        if size not in (0, math.inf) and not in_range:
            bounds = f"{_MIN_PARAMETER_MAGNITUDE:g} to {_MAX_PARAMETER_MAGNITUDE:g}"
            raise invalid_input(
                name,
                expected=f"{name} of 0, or from {bounds} in size",
                got=got,
                hint="Take one of these",
            )


def _is_64_bit_python_or_numpy_number(number):
    """Return whether the number is of Python or numpy and, if it is whole, has 64 bits."""
    is_usual = type(number).__module__ in ("builtins", "numpy")
    is_usual &= isinstance(number, bool) or is_real_number(number)
    return is_usual and (not isinstance(number, int) or abs(number) < 2**63)


#: The squares of numbers in this range are neither 0 nor infinite.
_MIN_PARAMETER_MAGNITUDE = 1e-100
_MAX_PARAMETER_MAGNITUDE = 1e100


def read_bool_with_none_as_false(value: object, name: str) -> bool:
    """Return True or False; None is False. Raise ValueError for anything else."""
    if value is not None and type(value).__name__ not in ("bool", "bool_"):
        raise invalid_input(
            name,
            expected=f"{name} as True or False",
            got=repr(value)[:60],
            hint="Pass one of the two, for all rows",
        )
    return bool(value)


def check_jobs(n_jobs: object) -> None:
    """Raise ValueError unless `n_jobs` is None or a possible number of processes."""
    is_count = is_finite_whole_number(n_jobs) and 0 < abs(n_jobs) < _MAX_PROCESSES
    if n_jobs is not None and not is_count:
        raise invalid_input(
            "n_jobs",
            expected="n_jobs as a whole number or None",
            got=repr(n_jobs)[:60],
            hint="Pass for instance n_jobs=2, or -1 for all cores",
        )


_MAX_PROCESSES = 2**15


def check_progress_callback(progress: object) -> None:
    """Raise ValueError unless the callback of the progress can be called, or is None."""
    if progress is not None and not callable(progress):
        raise invalid_input(
            "progress",
            expected="progress that can be called",
            got=repr(progress),
            hint="Pass a function progress(done, total)",
        )


def import_optional(module: str, extra: str) -> Any:
    """Import a module of an extra; raise ModuleNotFoundError with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        # The package is installed, but a dependency of it is missing.
        if (error.name or package).partition(".")[0] != package:
            raise
        raise invalid_input(
            package,
            expected=package,
            got="no such package",
            sentence=f"{package} is not installed",
            hint=f"Run: pip install 'sklearn-calib[{extra}]'",
            error=ModuleNotFoundError,
        ) from error
