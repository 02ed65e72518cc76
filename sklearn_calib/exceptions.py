"""Warnings of the package.

Errors are the built-in ``ValueError`` and ``TypeError``; each message reads
``{Class}.{method}: expected {rule}, got {value}. {what to do instead}.``
"""

import warnings


class CalibrationWarning(UserWarning):
    """The fit is legal but the data leave it undetermined or at a limit.

    The message names the fallback that was used. Silence it with
    ``warnings.filterwarnings("ignore", category=CalibrationWarning)``.
    """


def expectation(where, rule, got, cure):
    """Word an error: ``where: expected rule, got value. cure.``"""
    return f"{where}: expected {rule}, got {got}. {cure}."


def refuse(where, rule, got, cure, error=ValueError):
    """Raise an error worded by `expectation`."""
    raise error(expectation(where, rule, got, cure))


def caution(where, rule, got, cure, *, stacklevel=4):
    """Give a `CalibrationWarning` worded by `expectation`; `stacklevel` counts from here."""
    warnings.warn(expectation(where, rule, got, cure), CalibrationWarning, stacklevel=stacklevel)
