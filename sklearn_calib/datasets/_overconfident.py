"""Overconfident probabilities."""

import numpy as np

from .._random import generator
from .._typing import FloatArray, IntArray, RandomStateLike
from ..canonical import canonical_proba
from ..exceptions import check_count, is_number, named, refuse


def make_overconfident(
    n_classes: int,
    n_samples: int = 158,
    *,
    random_state: RandomStateLike = 0,
    sharpness: float = 2.5,
) -> tuple[FloatArray, IntArray]:
    """Simulate overconfident probabilities, and labels drawn from the true probabilities.

    Parameters
    ----------
    n_classes : int
    n_samples : int, default=158
    random_state : int, Generator, RandomState or None, default=0
    sharpness : float, default=2.5
        Factor on the true logits.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
    y : ndarray of shape (n_samples,)
        Labels 0 .. n_classes - 1, each at least twice.

    Raises
    ------
    ValueError
        Fewer than two classes, fewer than two rows for each class, a sharpness that is not above 0.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> make_overconfident(3)[0].shape
    (158, 3)
    """
    where = "make_overconfident"
    n_classes = check_count(n_classes, "n_classes", where, 2)
    n_samples = check_count(n_samples, "n_samples", where, 2 * n_classes)
    if not is_number(sharpness) or not 0 < sharpness < np.inf:
        refuse(where, "a " + named("sharpness") + " above 0", repr(sharpness), "Leave the default")
    rng = generator(random_state)
    logits = 1.5 * rng.normal(size=(n_samples, n_classes))
    true = np.asarray(canonical_proba(logits, kind="logits"))
    y = (rng.random((n_samples, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(max=n_classes - 1)
    y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    return np.array(canonical_proba(sharpness * logits, kind="logits")), y
