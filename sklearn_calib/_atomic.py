"""Changes of an object that are made as a whole or not at all."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def restore_if_raised(instance: object) -> Iterator[None]:
    """Restore an object if anything is raised inside, also an interruption."""
    before = copy.deepcopy(vars(instance))
    try:
        yield
    except BaseException:
        vars(instance).clear()
        vars(instance).update(before)
        raise


@contextmanager
def replace_state_after_fitting_copy(model: Any) -> Iterator[Any]:
    """Yield an unfitted copy, whose state replaces that of the estimator once it is complete.

    Threads that predict meanwhile read all attributes of the previous fit. After an error
    or an interruption the estimator is not fitted, rather than fitted in part.
    """
    new = object.__new__(type(model))
    new.__dict__ = {**vars(model)}
    _delete_fitted_attributes(new)
    try:
        yield new
    except BaseException as error:
        _delete_fitted_attributes(new)
        cause: BaseException | None = error
        # Compiled code turns an interruption into a SystemError.
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt) and cause is not error:
            raise KeyboardInterrupt from error
        raise
    finally:
        model.__dict__ = vars(new)


def _delete_fitted_attributes(model):
    """Delete the attributes that a fit has set; private ones belong to the class."""
    vars(model).pop("_derived", None)
    fitted = {
        name for name in vars(model) if name.endswith("_") and not name.startswith("_")
    }
    # Listing the parameters takes time, which a first fit does not need.
    if fitted:
        for name in fitted.difference(model._get_param_names()):
            delattr(model, name)
