"""Errors and warnings of the package, whose fields can be read by programs.

Errors are built-in ones, such as ``ValueError`` and ``TypeError``, that are also an
`InvalidInputError`. The message is made from its fields:
``expected {expected}, got {value} in row {row} of {argument}. {hint}.``
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["CalibrationWarning", "InvalidInputError"]


class StructuredMessage(Exception):
    """A message about a value that is not as expected; its text is made from its fields.

    Attributes
    ----------
    argument : str or None
        The argument that holds the value, if it is known.
    expected : str
        What is expected.
    value : str
        What was found instead.
    row, column : int or None
        Where the value stands in the argument (or in the file: its row).
    hint : str
        What to do.
    source : str
        The file that the value comes from; empty if there is none.
    sentence : str
        The text instead of ``expected ..., got ...``; empty if that form fits.
    """

    argument: str | None = None
    expected = value = hint = source = ""
    row: int | None = None
    column: int | None = None
    # The class whose fit warns, which a pipeline would hide.
    estimator = ""
    # It replaces "expected ..., got ..." if that form does not fit.
    sentence = ""
    # A sentence after the others.
    remark = ""

    def set_fields(self, **fields: Any) -> None:
        """Change some fields and write the text again."""
        vars(self).update(fields)
        self.args = (self.format_text(),)

    def format_text(self, show_argument: bool = True) -> str:
        """Return the text; the command line shows neither arguments nor classes."""
        # A message that was made from a text has no fields.
        if not self.expected:
            return str(self)
        place = self._format_place(show_argument)
        text = f"expected {self.expected}, got {self.value}{place}."
        if self.sentence:
            text = f"{self.sentence}{place if self.row is not None else ''}."
        if self.source:
            text = f"{self.source}: {text}"
        if self.estimator and show_argument:
            text = f"{self.estimator}: {text}"
        if self.hint:
            text += f" {self.hint}"
            if not self.hint.endswith(("?", ".")):
                text += "."
        if self.remark:
            text += f" {self.remark}"
        return text

    def _format_place(self, show_argument):
        place = ""
        if self.row is not None:
            place += f" in row {self.row}"
        if self.column is not None:
            place += f", column {self.column}"
        if show_argument and self.argument and not self._names_argument():
            place += f" {'of' if place else 'for'} {self.argument}"
        return place

    def _names_argument(self):
        """Return whether another field names the argument."""
        name = re.escape(str(self.argument))
        texts = (
            f"{self.source} {self.sentence} {self.expected} {self.value} {self.hint}"
        )
        return re.search(rf"(?<!\w){name}(?!\w)", texts) is not None


class InvalidInputError(StructuredMessage):
    """An error of this package, which is also a built-in one such as ValueError.

    Examples
    --------
    >>> from sklearn_calib.exceptions import InvalidInputError
    >>> from sklearn_calib.metrics import brier_loss
    >>> try:
    ...     brier_loss([0, 1, 1], [0.2, 0.7, 1.3])
    ... except InvalidInputError as error:
    ...     print(isinstance(error, ValueError), error.argument, error.value, error.row)
    True y_proba 1.3 2
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_error, (type(self).__bases__[1], vars(self))


class CalibrationWarning(StructuredMessage, UserWarning):
    """The fit is legal but the data leave it undetermined or at a limit.

    The message names the fallback that was used. Silence it with
    ``warnings.filterwarnings("ignore", category=CalibrationWarning)``. Its fields are
    those of `InvalidInputError`.
    """


@cache
def _make_error_class(error_type):
    """Return the class that is a built-in error and an `InvalidInputError`."""
    return type(
        error_type.__name__,
        (InvalidInputError, error_type),
        {"__module__": error_type.__module__},
    )


def _make_error(error_type, fields):
    instance = _make_error_class(error_type)()
    instance.set_fields(**fields)
    return instance


def invalid_input(
    argument: str | None = None,
    *,
    expected: str,
    got: str,
    hint: str = "",
    sentence: str = "",
    error: type[Exception] = ValueError,
    row: Any = None,
    column: Any = None,
    source: str = "",
) -> InvalidInputError:
    """Return the error to raise about an argument; it is a ValueError unless `error` differs.

    Pass a `sentence` if ``expected ..., got ...`` does not read as English.
    """
    fields = make_message_fields(
        argument,
        expected=expected,
        got=got,
        hint=hint,
        sentence=sentence,
    )
    fields["row"] = None if row is None else int(row)
    fields["column"] = None if column is None else int(column)
    fields["source"] = source
    return _make_error(error, fields)


def invalid_combination(argument: str, other: str, *, hint: str) -> InvalidInputError:
    """Return the error to raise about two arguments that exclude each other."""
    return invalid_input(
        argument,
        expected=f"{argument} without {other}",
        got="both",
        hint=hint,
        sentence=f"{argument} and {other} cannot be combined",
    )


#: The form in which numpy 2 writes a scalar, such as ``np.str_('good')``; messages show it
#: as Python does.
_NUMPY_SCALAR_PATTERN = re.compile(
    r"\bnp\.(?:(?:str_|bytes_|u?int\d+|float\d+)\((b?'[^']*'|b?\"[^\"]*\"|[-+.\w]*)\)"
    r"|(True|False)_\b)"
)


def make_message_fields(
    argument: str | None, *, expected: str, got: str, hint: str, sentence: str
) -> dict[str, Any]:
    """Return the fields of a message, without the names of numpy's scalars."""
    return {
        "argument": argument,
        "expected": expected,
        "value": _NUMPY_SCALAR_PATTERN.sub(r"\1\2", got),
        "hint": hint,
        "sentence": _NUMPY_SCALAR_PATTERN.sub(r"\1\2", sentence),
    }


@contextmanager
def add_error_context(
    argument: str | None = None,
    *,
    source: str = "",
    map_row: Callable[[int], int] | None = None,
) -> Iterator[None]:
    """Add to errors raised inside the argument and the file, if they have none yet.

    Parameters
    ----------
    argument : str, optional
        The name of the argument that is read inside.
    source : str
        The file that is read inside.
    map_row : callable, optional
        Turns a row of what is read inside into the row of the file.
    """
    try:
        yield
    except InvalidInputError as error:
        fields: dict[str, Any] = {}
        if argument is not None and error.argument is None:
            fields["argument"] = argument
        if source and not error.source:
            fields["source"] = source
        if map_row is not None and error.row is not None:
            fields["row"] = int(map_row(error.row))
        error.set_fields(**fields)
        raise


def __dir__() -> list[str]:
    return __all__
