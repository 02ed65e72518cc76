"""Modules that are not installed with the package."""

from importlib import import_module
from typing import Any


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
