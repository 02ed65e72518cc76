"""Old names, kept for one release: each works, and says with a FutureWarning what to write."""

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from ._typing import Function


def warn_renamed(old: str, new: str, stacklevel: int = 2) -> None:
    """Say that a name has changed; `stacklevel` counts from the caller."""
    message = f"{old} is called {new} now; the old name goes with the next release."
    warnings.warn(message, FutureWarning, stacklevel=stacklevel + 1)


def renamed_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that finds old names.

    Parameters
    ----------
    package : str
        The module's ``__name__``.
    names : dict
        Old name to new one: of the same module, or "other.module:name" below ``sklearn_calib``.
    """

    def find(name):
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, new = names[name].rpartition(":")
        module = f"sklearn_calib.{module}" if module else package
        warn_renamed(f"{package}.{name}", f"{module}.{new}", stacklevel=2)
        return getattr(import_module(module), new)

    return find


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """Let a function or constructor take old argument names, and positions that are gone.

    Parameters
    ----------
    **names : str
        Old name to new one.

    Notes
    -----
    scikit-learn reads the parameters of an estimator off the undecorated constructor.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_calib._renamed import renamed_arguments
    >>> @renamed_arguments(lam="penalty")
    ... def smooth(*, penalty=1.0):
    ...     return penalty
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FutureWarning)
    ...     smooth(lam=3.0)
    3.0
    """

    def decorate(function):
        parameters = list(signature(function).parameters.values())
        n_positional = sum(p.kind is not Parameter.KEYWORD_ONLY for p in parameters)
        keywords = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
        title = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def wrapper(*args, **kwargs):
            extra = args[n_positional:]
            if extra and len(extra) <= len(keywords):
                given = dict(zip(keywords, extra, strict=False))
                shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
                warnings.warn(
                    f"{title} will take {', '.join(given)} by name only from the next release: "
                    f"write {shown}.",
                    FutureWarning,
                    stacklevel=2,
                )
                args, kwargs = args[:n_positional], {**given, **kwargs}
            for old, new in names.items():
                if old in kwargs:
                    warn_renamed(f"{title}({old}=)", f"{new}=", stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        wrapper.deprecated_original = function  # what scikit-learn reads the parameters of
        return wrapper

    return decorate


class renamed_attribute:
    """A fitted attribute under its old name.

    Parameters
    ----------
    new : str
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = getattr(instance, self.new)
        warn_renamed(self.old, self.new, stacklevel=2)
        return value
