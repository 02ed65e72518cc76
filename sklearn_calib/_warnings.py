"""Warnings about calibration, which point at the line that called the package."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from .exceptions import CalibrationWarning, StructuredMessage, make_message_fields


@contextmanager
def ignore_calibration_warnings() -> Iterator[None]:
    """Ignore each `CalibrationWarning`, for data that are possible here and not a mistake."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        yield


def warn_calibration(
    expected: str,
    got: str,
    hint: str,
    *,
    sentence: str = "",
    argument: str | None = None,
    estimator: object = None,
    category: type[Warning] | None = None,
) -> None:
    """Warn the line that called the package, by default with a `CalibrationWarning`.

    The message begins with the class of the `estimator` (an instance or a name), if one
    is given, because a pipeline hides it.
    """
    message = CalibrationWarning()
    fields = make_message_fields(
        argument,
        expected=expected,
        got=got,
        hint=hint,
        sentence=sentence,
    )
    if estimator is not None:
        name = estimator if isinstance(estimator, str) else type(estimator).__name__
        fields["estimator"] = name
    message.set_fields(**fields)
    emit_warning(message if category is None else category(str(message)))


def emit_warning(message: Warning, remark: str = "") -> None:
    """Give a warning to the line that called the package, with a `remark` after its text."""
    if isinstance(message, StructuredMessage):
        message.set_fields(remark=remark)
    elif remark:
        message = type(message)(f"{message} {remark}")
    warnings.warn(message, stacklevel=_find_caller_level())


_LIBRARY_PACKAGES = {__name__.partition(".")[0], "sklearn"}


def _find_caller_level():
    """Return the `stacklevel` of the first frame that belongs to the user.

    Frames of scikit-learn are skipped too: it wraps methods, and calls them in searches
    and pipelines.
    """
    level = 1
    frame = sys._getframe(1)
    while (
        frame.f_back
        and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARY_PACKAGES
    ):
        frame = frame.f_back
        level += 1
    return level
