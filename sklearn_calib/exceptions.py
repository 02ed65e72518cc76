"""Warnings of the package.

Errors are the built-in ``ValueError`` and ``TypeError``; each message reads
``{Class}.{method}: expected {rule}, got {value}. {what to do instead}.``
"""

import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from numbers import Real
from types import FrameType
from typing import Any, NoReturn, TypeGuard


class CalibrationWarning(UserWarning):
    """The fit is legal but the data leave it undetermined or at a limit.

    The message names the fallback that was used. Silence it with
    ``warnings.filterwarnings("ignore", category=CalibrationWarning)``.
    """


@contextmanager
def no_cautions() -> Iterator[None]:
    """Without a `CalibrationWarning`: what it would say is a fact here, not a mistake."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        yield


def expectation(where: str, rule: str, got: str, cure: str) -> str:
    """Word an error: ``where: expected rule, got value. cure.``"""
    return f"{where}: expected {rule}, got {got}. {cure}."


def refuse(
    where: str, rule: str, got: str, cure: str, error: type[Exception] = ValueError
) -> NoReturn:
    """Raise an error worded by `expectation`, whose ``parts`` are the four texts."""
    raised: Any = error(expectation(where, rule, got, cure))
    raised.parts = where, rule, got, cure
    raise raised


def nearest(name: object, known: Iterable[object]) -> str | None:
    """The known name that a misspelt or shortened one means; None where none is near.

    Case, spaces, hyphens and underscores do not count. In this order: the same name, the one that
    begins with it ("temp") or ends with it ("bins"), the one with these initials ("ece"), the most
    similar one, and one that is left when letters are taken out ("js" of "javascript"), or added.

    Examples
    --------
    >>> from sklearn_calib.exceptions import nearest
    >>> nearest("temp", ["isotonic", "temperature"]), nearest("ece", ["expected_calibration_error"])
    ('temperature', 'expected_calibration_error')
    """
    names = [str(other) for other in known]
    wanted = _letters(str(name)[:_LONGEST_NAME])
    if not wanted:
        return None
    by_letters = {_letters(other): other for other in reversed(names)}
    if wanted in by_letters:
        return by_letters[wanted]
    if len(wanted) > 1:
        for has in (str.startswith, str.endswith):
            found = [letters for letters in by_letters if has(letters, wanted)]
            if found:
                return by_letters[min(found, key=len)]
        for other in names:
            initials = "".join(word[:1] for word in re.split(r"[\W_]+", other)).casefold()
            if initials.endswith(wanted) and len(wanted) >= len(initials) - 1:  # but for neg_
                return other
    close = get_close_matches(wanted, by_letters, 1)
    if close:
        return by_letters[close[0]]
    inside = [x for x in by_letters if min(len(x), len(wanted)) > 1 and x[0] == wanted[0]]
    inside = [x for x in inside if _is_left(x, wanted) or _is_left(wanted, x)]
    return by_letters[max(inside, key=len)] if inside else None


_LONGEST_NAME = 200


def _letters(name):
    return re.sub(r"[\s_-]", "", name.casefold())


def _is_left(short, text):
    """Whether the letters of `short` stand in `text` in this order."""
    rest = iter(text)
    return all(letter in rest for letter in short)


def meant(name: object, known: Iterable[object], otherwise: str = "Check the spelling") -> str:
    """The cure for a name that is not known: the nearest one, where one is near."""
    near = nearest(name, known)
    return otherwise if near is None else f"Write {near!r}, the nearest name"


def refuse_unknown(
    where: str,
    what: str,
    name: object,
    known: Iterable[object],
    otherwise: str = "Check the spelling",
    error: type[Exception] = ValueError,
) -> NoReturn:
    """Refuse a name that is not among the known ones, and name the nearest."""
    names = [str(other) for other in known]
    rule = f"{what} among {', '.join(names)}" if names else f"no {what}"
    refuse(where, rule, repr(name)[:200], meant(name, names, otherwise), error)


def check_known(
    where: str,
    what: str,
    value: object,
    known: Iterable[str],
    otherwise: str = "Check the spelling",
) -> None:
    """Refuse what is none of the known names: a misspelt one, or no text at all."""
    if not (isinstance(value, str) and value in known):
        refuse_unknown(where, what, value, known, otherwise)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, which true, false and a duration of numpy are not."""
    return isinstance(value, Real) and type(value).__name__ not in ("bool", "timedelta64")


def equals(value: object, known: object) -> bool:
    """Whether a value is this text or label; an array and what is missing are equal to nothing."""
    try:
        same: object = value == known
    except (TypeError, ValueError):  # numbers of other libraries
        return False
    return type(same).__name__ in ("bool", "bool_") and bool(same)


def number_or_nan(value: object) -> float:
    """A number as a float; NaN for what is none."""
    return float(value) if is_number(value) else math.nan


def check_level(level: object, where: str) -> None:
    """Raise ValueError unless a confidence level is a number between 0 and 1."""
    if not (is_number(level) and 0 < level < 1):
        refuse(where, "a level between 0 and 1", repr(level), "Pass for instance 0.95")


def check_count(
    value: object, name: str, where: str, least: int = 1, cure: str = "Leave the default"
) -> int:
    """A whole number of at least `least`, as an int; raises ValueError for anything else.

    What is computed so many times, or held so often, has an upper end, too.
    """
    if not (is_number(value) and value < math.inf and least <= value == int(value)):
        refuse(where, f"a whole number {name} >= {least}", repr(value)[:60], cure)
    if value > _MOST.get(name, math.inf):
        refuse(where, f"a whole number {name} <= {_MOST[name]}", repr(value)[:60], cure)
    return int(value)


_MOST = {
    "n_resamples": 10**6,
    "n_splits": 10**4,
    "n_bins": 10**6,
    "n_samples": 10**9,
}  # what ends within a day


def check_sizes(estimator: Any) -> None:
    """Refuse numbers as parameters that are so large or so near 0 that arithmetic loses them."""
    where = f"{type(estimator).__name__}.fit"
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Real) and not _is_plain(value):
            refuse(where, f"{name} as a float or an int", repr(value)[:60], "Pass float(...) of it")
        if name == "mean" or not is_number(value):  # a probability has bounds of its own
            continue
        if not (abs(value) in (0, math.inf) or _TINY <= abs(value) <= _HUGE):
            rule = f"{name} of 0, or from {_TINY:g} to {_HUGE:g} in size"
            refuse(where, rule, repr(value)[:60], "Take one of these")


def _is_plain(number):
    """Whether it is of Python or numpy and, where it is whole, one of 64 bits."""
    known = type(number).__module__ in ("builtins", "numpy")
    known &= isinstance(number, bool) or is_number(number)
    return known and (not isinstance(number, int) or abs(number) < 2**63)


_TINY, _HUGE = 1e-100, 1e100  # whose squares are numbers


def check_flag(value: object, name: str, where: str) -> bool:
    """True or false, also as numpy has them; None is false. Raises ValueError for anything else."""
    if value is not None and type(value).__name__ not in ("bool", "bool_"):
        cure = "Pass one of the two, for all rows"
        refuse(where, f"{name} as True or False", repr(value)[:60], cure)
    return bool(value)


def check_jobs(n_jobs: object) -> None:
    """Raise ValueError unless it is None or a whole number that can be one of processes."""
    fits = n_jobs is None or (is_number(n_jobs) and 0 < abs(n_jobs) < _JOBS)
    if not fits or (n_jobs is not None and n_jobs != int(n_jobs)):  # type: ignore[call-overload]
        cure = "Pass for instance n_jobs=2, or -1 for all cores"
        refuse(called("n_jobs"), "n_jobs as a whole number or None", repr(n_jobs)[:60], cure)


_JOBS = 2**15


def check_progress(progress: object, where: str) -> None:
    """Raise ValueError unless what is told of the progress can be called, or is None."""
    if progress is not None and not callable(progress):
        cure = "Pass a function progress(done, total)"
        refuse(where, "progress that can be called", repr(progress), cure)


def caution(where: str, rule: str, got: str, cure: str, *, stacklevel: int | None = None) -> None:
    """Give a `CalibrationWarning` worded by `expectation`.

    By default it is blamed on the line that called the package; `stacklevel` counts from here.
    """
    level = _level_of_caller() if stacklevel is None else stacklevel
    warnings.warn(expectation(where, rule, got, cure), CalibrationWarning, stacklevel=level)


_PACKAGE = __name__.partition(".")[0]
_NOT_OWN = {_PACKAGE, "sklearn"}


def _module_of(frame):
    """The name of the frame's module inside the package; None of a frame outside."""
    package, _, module = frame.f_globals.get("__name__", "").partition(".")
    return module if package == _PACKAGE else None


def _level_of_caller():
    """The `stacklevel`, for whoever calls this, of the first frame that is the user's own.

    Frames of scikit-learn are not: it wraps methods, and calls them in searches and pipelines.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_OWN:
        frame, level = frame.f_back, level + 1
    return level


def public_calls() -> list[FrameType]:
    """The frames of public functions that are running, the one that the user called first.

    None on the command line, whose users call no function.
    """
    frame, found = sys._getframe(1), []
    while frame is not None:
        module = _module_of(frame)
        if module is not None:
            found.append((frame, module))
        frame = frame.f_back  # type: ignore[assignment]
    if found and found[-1][1].startswith(("_cli", "__main__")):
        return []
    public = ("__call__", "__init__")
    names = [(frame, frame.f_code.co_name) for frame, _ in reversed(found)]
    return [frame for frame, name in names if name[0] not in "_<" or name in public]


def called(otherwise: str) -> str:
    """The public function or method that the user called, as errors begin with it."""
    for frame in public_calls():
        name, owner = frame.f_code.co_name, frame.f_locals.get("self")
        if owner is None:
            return name
        own = getattr(owner, "__name__", type(owner).__name__)  # a measure has its function's
        return own if name[0] == "_" else f"{own}.{name}"
    return otherwise


def require(module: str, extra: str, where: str) -> Any:
    """Import a module of an extra, or say how to install it (ModuleNotFoundError)."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or package).partition(".")[0] != package:
            raise  # the package is there, and something of its own is missing
        raise ModuleNotFoundError(
            f"{where}: expected {package}, got no such package. "
            f"Run: pip install 'sklearn-calib[{extra}]'.",
            name=package,
        ) from error
