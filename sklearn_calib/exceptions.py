"""Warnings of the package.

Errors are the built-in ``ValueError`` and ``TypeError``; each message reads
``{Class}.{method}: expected {rule}, got {value}. {what to do instead}.``
"""

import math
import warnings
from numbers import Real
from typing import NoReturn


class CalibrationWarning(UserWarning):
    """The fit is legal but the data leave it undetermined or at a limit.

    The message names the fallback that was used. Silence it with
    ``warnings.filterwarnings("ignore", category=CalibrationWarning)``.
    """


def expectation(where: str, rule: str, got: str, cure: str) -> str:
    """Word an error: ``where: expected rule, got value. cure.``"""
    return f"{where}: expected {rule}, got {got}. {cure}."


def refuse(
    where: str, rule: str, got: str, cure: str, error: type[Exception] = ValueError
) -> NoReturn:
    """Raise an error worded by `expectation`."""
    raise error(expectation(where, rule, got, cure))


def check_level(level: object, where: str) -> None:
    """Raise ValueError unless a confidence level is a number between 0 and 1."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0 < level < 1:
        refuse(where, "a level between 0 and 1", repr(level), "Pass for instance 0.95")


def check_count(
    value: object, name: str, where: str, least: int = 1, cure: str = "Leave the default"
) -> int:
    """A whole number of at least `least`, as an int; raises ValueError for anything else."""
    known = isinstance(value, Real) and not isinstance(value, bool)
    if not (known and value >= least and value != math.inf and value == int(value)):
        refuse(where, f"a whole number {name} >= {least}", repr(value), cure)
    return int(value)


def caution(where: str, rule: str, got: str, cure: str, *, stacklevel: int = 4) -> None:
    """Give a `CalibrationWarning` worded by `expectation`; `stacklevel` counts from here."""
    warnings.warn(expectation(where, rule, got, cure), CalibrationWarning, stacklevel=stacklevel)
