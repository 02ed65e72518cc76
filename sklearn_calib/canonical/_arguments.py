"""Errors name the argument as the user wrote it, however deep it is found to be wrong."""

import inspect
from types import TracebackType

from ..exceptions import Refusal, public_calls


class naming:
    """Inside it an error that `refuse` raises names the argument that `value` came in as.

    Users call many functions of many names, all of which hand their arguments to the same door.
    """

    def __init__(self, value: object) -> None:
        self.value = value

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, Refusal) or error.is_named:
            return
        error.is_named = True  # an outer one would say less
        name = _argument_of(self.value)
        if name is not None and name != error.argument:
            error.place(argument=name, shown=name)


def _argument_of(value):
    """The name under which the user gave a value to a public function; None if that is unknown.

    The outermost function that has it counts. On the command line there are no arguments.
    """
    if value is None:
        return None
    for frame in public_calls():
        code = frame.f_code
        n_names = code.co_argcount + code.co_kwonlyargcount
        given = {name: frame.f_locals.get(name) for name in code.co_varnames[:n_names]}
        if code.co_flags & inspect.CO_VARKEYWORDS:
            rest = n_names + bool(code.co_flags & inspect.CO_VARARGS)
            given |= frame.f_locals.get(code.co_varnames[rest]) or {}
        names = [name for name, one in given.items() if one is value]
        if len(names) == 1:
            return names[0]
    return None
