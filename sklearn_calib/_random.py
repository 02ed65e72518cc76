"""Randomness: one policy for `random_state`, one way to draw labels and bootstrap counts."""

from typing import NoReturn

import numpy as np

from ._typing import ArrayLike, FloatArray, IntArray, RandomStateLike
from .exceptions import called, refuse


def generator(random_state: RandomStateLike) -> np.random.Generator:
    """A numpy Generator from anything that `random_state` may be.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        An int gives the same draws each time, None others each time. A Generator or RandomState is
        used, and moves on.

    Examples
    --------
    >>> from sklearn_calib._random import generator
    >>> bool(generator(0).random() == generator(0).random())
    True
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    try:
        if isinstance(random_state, bool):
            raise TypeError
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        _refuse(random_state)


def legacy_generator(random_state: RandomStateLike) -> np.random.RandomState:
    """A RandomState from the same, for scikit-learn and for draws that were published with one."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**32))
    try:
        if isinstance(random_state, bool):
            raise TypeError
        return np.random.RandomState(random_state)
    except (TypeError, ValueError):
        _refuse(random_state)


def check_seed(random_state: RandomStateLike) -> None:
    """Refuse what is no `random_state`, without drawing from it."""
    known = (np.integer, np.random.RandomState, np.random.Generator)
    if random_state is not None and not isinstance(random_state, known):
        generator(random_state)


def _refuse(random_state: object) -> NoReturn:
    rule = "random_state as a whole number from 0, a Generator, a RandomState or None"
    refuse(called("random_state"), rule, repr(random_state), "Pass for instance random_state=0")


def spawned(random_state: RandomStateLike, n: int) -> list[np.random.Generator]:
    """`n` independent Generators that depend on `random_state` alone."""
    seeds = generator(random_state).integers(0, 2**63, size=(n, 2))
    return [np.random.default_rng(seed) for seed in seeds]


def draw_labels(bounds: FloatArray, rng: np.random.Generator) -> IntArray:
    """One label per row from its law.

    Parameters
    ----------
    bounds : ndarray of shape (n_samples, n_classes)
        Cumulated probabilities, as `label_bounds` makes them.
    rng : Generator

    Returns
    -------
    codes : ndarray of shape (n_samples,), intp
    """
    u = rng.random(len(bounds))
    if bounds.shape[1] == 2:
        return (u >= bounds[:, 0]).astype(np.intp)
    return (u[:, None] >= bounds[:, :-1]).sum(axis=1)


def label_bounds(proba: ArrayLike) -> FloatArray:
    """What `draw_labels` compares uniform numbers with: cumulated rows, the last exactly 1."""
    bounds = np.cumsum(np.asarray(proba, dtype=np.float64), axis=1)
    return bounds / bounds[:, -1:]


def multiplicities(n: int, rng: np.random.Generator) -> FloatArray:
    """How often each of `n` rows is drawn in a bootstrap sample: float64, sums to n."""
    return np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
