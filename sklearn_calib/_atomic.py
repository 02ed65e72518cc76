"""Changes of an object that are made as a whole or not at all."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager


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
