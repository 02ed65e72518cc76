"""Errors and warnings of the package: what is wrong with which argument, and what to do.

Errors are the built-in ``ValueError`` and ``TypeError``, and `Refusal`, whose fields make the
message: ``{where}: expected {rule}, got {value}. {cure}.``
"""

import copy
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from numbers import Real
from types import FrameType
from typing import Any, NamedTuple, NoReturn, TypeGuard

__all__ = ["CalibrationWarning", "Refusal"]  # for users; the rest is for the other rooms


class Setting(NamedTuple):
    """An argument that a text names, and the value to give it; ``...`` where none is said.

    A name that is no argument is a choice, of which each reader has words of their own.
    """

    argument: str
    value: Any
    words: str  # of Python


class Words(str):
    """A text in the words of Python that knows which of its parts are `Setting`.

    It is joined by ``+``; in an f-string it becomes plain text.
    """

    parts: "tuple[str | Setting, ...]"

    def __new__(cls, *parts: "str | Setting") -> "Words":
        """Of its parts, in their order."""
        text = "".join(part.words if isinstance(part, Setting) else part for part in parts)
        made = super().__new__(cls, text)
        made.parts = parts
        return made

    def __add__(self, other: str) -> "Words":
        return Words(*self.parts, *_parts_of(other))

    def __radd__(self, other: str) -> "Words":
        return Words(*_parts_of(other), *self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Words, self.parts


def _parts_of(text):
    return text.parts if isinstance(text, Words) else (text,)


def setting(argument: str, value: Any = ..., words: str | None = None) -> Words:
    """``argument=value`` in a rule or a cure, or other `words` that mean it."""
    said = "" if value is ... else repr(value)
    return Words(Setting(argument, value, f"{argument}={said}" if words is None else words))


def named(argument: str) -> Words:
    """The name of an argument in a rule or a cure."""
    return setting(argument, words=argument)


class Statement(Exception):
    """What is wrong with a value, in fields; its text is ``where: expected rule, got value. cure``.

    Attributes
    ----------
    where : str
        The function or method that was called.
    source : str
        The file that the value comes from; empty where there is none.
    argument : str or None
        The argument that holds the value, where that is known.
    rule : str
        What is expected.
    value : str
        What came instead.
    row, column : int or None
        Where in the argument (of a file: its row) the value stands.
    cure : str
        What to do.
    """

    where = source = rule = value = cure = ""
    argument: str | None = None
    row: int | None = None
    column: int | None = None
    shown = ""  # the argument, where neither the rule nor the cure names it
    remark = ""  # a sentence behind the others
    is_named = False  # whether the argument is as the user has called it

    def place(self, **fields: Any) -> None:
        """Say more of where it was found; the text follows."""
        vars(self).update(fields)
        self.args = (self.worded(),)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the cure would have set, and to what; ``...`` where that is open."""
        parts = [part for part in _parts_of(self.cure) if isinstance(part, Setting)]
        return {part.argument: part.value for part in parts}

    def worded(self, write: Callable[[Setting], str] | None = None) -> str:
        """The text; `write` has other words for its settings, and says no function's name."""
        if not self.rule:  # said in one sentence
            return str(self)
        rule, cure = (
            text if write is None else "".join(map(partial(_written, write), _parts_of(text)))
            for text in (self.rule, self.cure)
        )
        begin = "".join(f"{name}: " for name in ("" if write else self.where, self.source) if name)
        row = "" if self.row is None else f" in row {self.row}"
        row += "" if self.column is None else f", column {self.column}"
        shown = f" ({self.shown})" if self.shown and write is None else ""
        stop = "" if cure.endswith(("?", ".")) else "."
        end = "".join(f" {text}" for text in (cure and f"{cure}{stop}", self.remark) if text)
        return f"{begin}expected {rule}, got {self.value}{row}{shown}.{end}"


def _written(write, part):
    return write(part) if isinstance(part, Setting) else part


class Refusal(Statement):
    """An error of this package, beside the built-in one that it is, such as ValueError.

    Its fields say what `str` says in a sentence, for programs that answer in words of their own.

    Examples
    --------
    >>> from sklearn_calib.exceptions import Refusal
    >>> from sklearn_calib.metrics import brier_loss
    >>> try:
    ...     brier_loss([0, 1, 1], [0.2, 0.7, 1.3])
    ... except Refusal as error:
    ...     print(isinstance(error, ValueError), error.argument, error.value, error.row)
    True y_proba 1.3 2
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self).__bases__[1], vars(self))


@cache
def _form(error):
    """The class of a built-in error that has the fields of `Refusal`."""
    return type(error.__name__, (Refusal, error), {"__module__": error.__module__})


def _made(error, fields):
    made = _form(error)()
    made.place(**fields)
    return made


class CalibrationWarning(Statement, UserWarning):
    """The fit is legal but the data leave it undetermined or at a limit.

    The message names the fallback that was used. Silence it with
    ``warnings.filterwarnings("ignore", category=CalibrationWarning)``. Its fields are those of
    `Refusal`.
    """


@contextmanager
def no_cautions() -> Iterator[None]:
    """Without a `CalibrationWarning`: what it would say is a fact here, not a mistake."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        yield


@contextmanager
def restore_if_raised(instance: object) -> Iterator[None]:
    """Leave an object as it was before if anything is raised inside, an interruption too."""
    before = copy.deepcopy(vars(instance))
    try:
        yield
    except BaseException:
        vars(instance).clear()
        vars(instance).update(before)
        raise


def refusal(
    where: str, rule: str, got: str, cure: str, error: type[Exception] = ValueError, **place: Any
) -> Refusal:
    """A `Refusal` that is also the `error`; rule and cure may be `Words` with settings.

    Its `place` is an argument, a row, a column, a source; the argument that the rule names is one.
    """
    return _made(error, _fields(where, rule, got, cure, **place))


def refuse(
    where: str, rule: str, got: str, cure: str, error: type[Exception] = ValueError, **place: Any
) -> NoReturn:
    """Raise a `refusal`."""
    raise refusal(where, rule, got, cure, error, **place)


#: How a scalar of numpy 2 shows itself, ``np.str_('good')``; messages show it as Python's.
_SCALAR_OF_NUMPY = re.compile(
    r"\bnp\.(?:(?:str_|bytes_|u?int\d+|float\d+)\((b?'[^']*'|b?\"[^\"]*\"|[-+.\w]*)\)"
    r"|(True|False)_\b)"
)


def _fields(where, rule, got, cure, argument=None, **place):
    named_there = (part.argument for part in _parts_of(rule) if isinstance(part, Setting))
    for axis in {"row", "column"} & {*place}:
        place[axis] = None if place[axis] is None else int(place[axis])
    got = _SCALAR_OF_NUMPY.sub(r"\1\2", got)
    said = {"where": where, "rule": rule, "value": got, "cure": cure}
    return said | {"argument": argument or next(named_there, None)} | place


@contextmanager
def placed(
    source: str = "", row: Callable[[int], int] | None = None, where: str | None = None
) -> Iterator[None]:
    """Inside it errors learn where their value stands: the file, and of its row the one in there.

    `where` is said instead of the function that found it.
    """
    try:
        yield
    except Refusal as error:
        fields: dict[str, Any] = {} if error.source else {"source": source}
        if where is not None:
            fields["where"] = where
        if row is not None and error.row is not None:
            fields["row"] = int(row(error.row))
        error.place(**fields)
        raise


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


def meant(
    name: object, known: Iterable[object], otherwise: str = "Check the spelling", prefix: str = ""
) -> str:
    """The cure for a name that is not known: the nearest one, where one is near."""
    near = nearest(name, known)
    return otherwise if near is None else f"Write {prefix}{near!r}, the nearest name"


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
    known_as = what if what.isidentifier() else None
    refuse(where, rule, repr(name)[:200], meant(name, names, otherwise), error, argument=known_as)


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
    try:  # an old numpy warns where an array is compared with a text
        same: object = not getattr(value, "ndim", 0) and value == known
    except (TypeError, ValueError):  # numbers of other libraries
        return False
    return type(same).__name__ in ("bool", "bool_") and bool(same)


def number_or_nan(value: object) -> float:
    """A number as a float; NaN for what is none."""
    return float(value) if is_number(value) else math.nan


def check_level(level: object, where: str) -> None:
    """Raise ValueError unless a confidence level is a number between 0 and 1."""
    if not (is_number(level) and 0 < level < 1):
        rule = "a " + named("level") + " between 0 and 1"
        refuse(where, rule, repr(level), "Pass for instance 0.95")


def check_between(value: object, low: float, high: float, rule: str, where: str, cure: str) -> None:
    """Raise ValueError unless it is a number strictly between two others."""
    if not (is_number(value) and low < value < high):
        refuse(where, rule, repr(value), cure)


def check_count(
    value: object, name: str, where: str, least: int = 1, cure: str = "Leave the default"
) -> int:
    """A whole number of at least `least`, as an int; raises ValueError for anything else.

    What is computed so many times, or held so often, has an upper end, too.
    """
    if not (is_number(value) and value < math.inf and least <= value == int(value)):
        rule = "a whole number " + named(name) + f" >= {least}"
        refuse(where, rule, repr(value)[:60], cure)
    if value > _MOST.get(name, math.inf):
        rule = "a whole number " + named(name) + f" <= {_MOST[name]}"
        refuse(where, rule, repr(value)[:60], cure)
    return int(value)


_MOST = {
    "n_resamples": 10**6,
    "n_splits": 1000,
    "n_bins": 10**6,
    "n_samples": 10**9,
}  # what ends within a day


def check_sizes(estimator: Any) -> None:
    """Refuse numbers as parameters that are so large or so near 0 that arithmetic loses them."""
    where = f"{type(estimator).__name__}.fit"
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Real) and not _is_plain(value):
            refuse(where, f"{name} as a float or an int", repr(value)[:60], "Pass float(...) of it")
        if name in ("mean", "error_score") or not is_number(value):
            continue  # a probability has bounds of its own, and NaN stands for a failed fit
        size = abs(float(value))
        if not (size in (0, math.inf) or _TINY <= size <= _HUGE):
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
        refuse(where, named(name) + " as True or False", repr(value)[:60], cure)
    return bool(value)


def check_jobs(n_jobs: object) -> None:
    """Raise ValueError unless it is None or a whole number that can be one of processes."""
    fits = n_jobs is None or (is_number(n_jobs) and 0 < abs(n_jobs) < _JOBS)
    if not fits or (n_jobs is not None and n_jobs != int(n_jobs)):  # type: ignore[call-overload]
        cure = "Pass for instance n_jobs=2, or -1 for all cores"
        refuse(
            called("n_jobs"),
            named("n_jobs") + " as a whole number or None",
            repr(n_jobs)[:60],
            cure,
        )


_JOBS = 2**15


def check_progress(progress: object, where: str) -> None:
    """Raise ValueError unless what is told of the progress can be called, or is None."""
    if progress is not None and not callable(progress):
        cure = "Pass a function progress(done, total)"
        refuse(where, named("progress") + " that can be called", repr(progress), cure)


def caution(
    where: str, rule: str, got: str, cure: str, category: type[Warning] | None = None
) -> None:
    """Warn the line that called the package, by default with a `CalibrationWarning`."""
    given = CalibrationWarning()
    given.place(**_fields(where, rule, got, cure))
    warn(given if category is None else category(str(given)))


def warn(message: Warning, remark: str = "") -> None:
    """Give a warning to the line that called the package; a `remark` stands behind its text."""
    if isinstance(message, Statement):
        message.place(remark=remark)
    elif remark:
        message = type(message)(f"{message} {remark}")
    warnings.warn(message, stacklevel=_level_of_caller())


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
        cure = f"Run: pip install 'sklearn-calib[{extra}]'"
        refuse(where, package, "no such package", cure, ModuleNotFoundError, argument=package)


def __dir__() -> list[str]:
    return __all__
